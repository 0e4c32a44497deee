"""Starts the watching in a Python process of an audited command, then runs the `sitecustomize` that this one hides."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

NO_WARNING = "\n\nPYTEST_DONT_REWRITE"  # for pytest, which warns of plug-ins that are imported before it


def start_watching(folder: str) -> None:
    """Load gradcli without the packages beside it, and watch; what goes wrong is written down for the audit."""
    package = os.path.dirname(os.path.dirname(folder))
    try:
        if "gradcli" not in sys.modules:
            spec = spec_from_file_location(
                "gradcli", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
            )
            assert spec is not None and spec.loader is not None
            sys.modules["gradcli"] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules["gradcli"])
            sys.modules["gradcli"].__doc__ = f"{sys.modules['gradcli'].__doc__}{NO_WARNING}"
        from gradcli.audit.watching import start

        start(os.environ["GRADCLI_AUDIT"])
    except Exception as problem:  # the command goes on unwatched
        path = os.path.join(os.environ["GRADCLI_AUDIT"], f"{os.getpid()}.trouble")
        with suppress(OSError), open(path, "w", encoding="utf-8") as file:  # the audit may have ended before
            file.write(f"{type(problem).__name__}: {problem}")


def run_hidden(folder: str) -> None:
    """Run the next `sitecustomize` of the path, and leave the path as it is without this folder."""
    sys.path[:] = [place for place in sys.path if place != folder]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])


if os.environ.get("GRADCLI_AUDIT"):
    start_watching(os.path.dirname(os.path.abspath(__file__)))
run_hidden(os.path.dirname(os.path.abspath(__file__)))
