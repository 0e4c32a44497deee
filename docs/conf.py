"""Settings of Sphinx for this site: `sphinx-build -W docs build/docs` makes it, `-b man` the manual page."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import gradcli

project = "gradcli"
author = "The gradcli developers"
copyright = "The gradcli developers"  # Sphinx's name for it
version = release = gradcli.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "generated_pages"]
exclude_patterns = ["_extensions", "_generated"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]

smartquotes = False  # `--at` and "x**2" stay as they are typed
default_role = "code"  # docstrings write names between single backticks
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"gradcli {version}"
html_copy_source = False

man_pages = [("reference/commands", "gradcli", "autograd calculator and gradient checker", author, 1)]
