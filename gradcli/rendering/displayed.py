"""Results in Python: `str` is what the command prints, notebooks show tables, formulas and drawings."""

from __future__ import annotations

from gradcli.rendering import plain, tabular
from gradcli.rendering.curves import plots, vector_plots
from gradcli.rendering.document import Document, Style
from gradcli.rendering.documents import calculus, formulas, planned, trace_tables
from gradcli.rendering.graphs import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DOCUMENTS: dict[str, Callable[[Any, Style], Document]] = {
    "Evaluation": calculus.evaluation,
    "Gradient": calculus.gradient,
    "Hessian": calculus.hessian,
    "Jacobian": calculus.jacobian,
    "Derivation": formulas.derivation,
    "Trace": trace_tables.trace,
    "Curves": plots.plot,
    "PlanReport": planned.report,
}
LISTED = 40  # entries of an array in a table of a notebook


def text(result: Any) -> str:
    """The text that the command prints for a result."""
    kind = type(result).__name__
    if kind == "Graph":
        return formats.text("tree", result, Style())
    return plain.render(DOCUMENTS[kind](result, Style()))


def bundle(result: Any) -> dict[str, str]:
    """A result for notebooks, by MIME type: plain text, and the richest form available. Long arrays are shortened."""
    kind = type(result).__name__
    if kind == "Graph":
        drawing = formats.text("svg", result, Style(), backward=any(vertex.sent for vertex in result.vertices))
        return {"text/plain": text(result), "image/svg+xml": drawing}
    forms = {"text/plain": plain.render(DOCUMENTS[kind](result, Style(entries=LISTED)))}
    if kind == "Curves":
        return {**forms, "image/svg+xml": vector_plots.svg(result)}
    shown = DOCUMENTS[kind](result, Style(digits=6, entries=LISTED))
    if shown.equations is not None:
        forms["text/latex"] = f"$$\\begin{{aligned}}\n{tabular.aligned(shown)}\n\\end{{aligned}}$$"
    if kind != "Derivation":  # all of which is mathematics
        forms["text/html"] = tabular.html(shown)
    return forms
