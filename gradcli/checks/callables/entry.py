"""A script or a Python function goes in, the report of whoever checks its kind comes out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from gradcli.checks.report import Report


def check(source: Any, *args: Any, **options: Any) -> Report:
    """Judge every gradient, claim and hand-written rule of a script, or the gradient of a Python function.

    A text or `Source` goes to `check_script`, a function to `check_callable`, each with the options given.

    Raises GradcliError for a script that cannot be read, and GC732 for a point that does not fit the function.

    >>> [one.verdict for one in check(lambda x: x**3, lambda x: 3*x**2, at=2.0).checks]
    ['AGREES']
    """
    if not callable(source) and not isinstance(source, str) and not hasattr(source, "text"):
        told = f"{visible(repr(source), 60)} is neither a script nor a function"
        raise error("GC732", told, help="give the text of a script, or a function and at=")
    room, name = ("callables.api", "check_callable") if callable(source) else ("gradcheck", "check_script")
    found: Report = getattr(import_module(f"gradcli.checks.{room}"), name)(source, *args, **options)
    return found
