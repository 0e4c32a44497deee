"""A value and its gradient as a function in another language, in a file of its own with a test of its values.

`python_code` writes NumPy, PyTorch and JAX, `c_code` C, both from the syntax trees of formulas.
"""

from __future__ import annotations

from gradcli.diagnostics import error, visible
from gradcli.rendering.code.c_code import C_WORDS, c_file
from gradcli.rendering.code.python_code import PYTHON_WORDS, python_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.results.calculations import SelfContained

TARGETS = ("numpy", "torch", "jax", "c")


def source_file(function: SelfContained, target: str) -> str:
    """The text of a file for one of TARGETS; raises GradcliError GC512 if the target lacks a function."""
    reserved = C_WORDS if target == "c" else PYTHON_WORDS
    for name in (*function.leaves, *function.sizes, *function.parts):
        if name in reserved:
            message = f"`{visible(name)}` cannot be a name in a file of --emit {target}"
            raise error("GC512", message, help="give it another name in the script")
    return c_file(function) if target == "c" else python_file(function, target)


__all__ = ["TARGETS", "source_file"]
