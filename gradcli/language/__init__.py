"""The language: parses source text into a syntax tree with spans, on the standard library alone.

`lexer.py` makes tokens, `parser/` parses them to statements and expressions, `latex/` reads LaTeX, and `values.py`
reads the points of `--at`. Nothing here knows operations or shapes; the only values are literals.
"""

from __future__ import annotations

from gradcli.language.comments.pragmas import file_expectation
from gradcli.language.limits import DEFAULT_LIMITS, Limits, make_limits, parse_limits
from gradcli.language.parser import parse, parse_expression
from gradcli.language.source import Source, decode_source, read_source
from gradcli.language.syntax import children, same
from gradcli.language.unparse import unparse
from gradcli.language.values import Binding, FileReference, parse_at

__all__ = [
    "DEFAULT_LIMITS",
    "Binding",
    "FileReference",
    "Limits",
    "Source",
    "children",
    "decode_source",
    "file_expectation",
    "make_limits",
    "parse",
    "parse_at",
    "parse_expression",
    "parse_limits",
    "read_source",
    "same",
    "unparse",
]
