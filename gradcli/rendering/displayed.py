"""Results in Python: `str` is what the command prints, notebooks show tables, formulas and drawings."""

from __future__ import annotations

from html import escape as escaped

from gradcli.rendering import plain, plots, vector_plots
from gradcli.rendering.document import Document, Facts, Formula, Grid, Line, Style
from gradcli.rendering.documents import calculus, formulas, planned, trace
from gradcli.rendering.graphs import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

DOCUMENTS: dict[str, Callable[[Any, Style], Document]] = {
    "Evaluation": calculus.evaluation,
    "Gradient": calculus.gradient,
    "Hessian": calculus.hessian,
    "Jacobian": calculus.jacobian,
    "Derivation": formulas.derivation,
    "Trace": trace.trace,
    "Curves": plots.plot,
    "PlanReport": planned.report,
}
LISTED = 40  # entries of an array in a table of a notebook
ALIGNED = {"number": "right"}


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
        forms["image/svg+xml"] = vector_plots.svg(result)
    elif kind == "Derivation":
        forms["text/latex"] = mathematics(DOCUMENTS[kind](result, Style()))
    else:
        forms["text/html"] = html(DOCUMENTS[kind](result, Style(digits=6, entries=LISTED)))
    return forms


def mathematics(document: Document) -> str:
    """The formulas of a document as displayed mathematics."""
    lines = [
        rf"{derivative(label)} &= {value.latex()}" if label.startswith("d") else rf"\text{{{label}}} &= {value.latex()}"
        for block in document.blocks
        if isinstance(block, Facts)
        for label, value, _ in block.rows
        if isinstance(value, Formula)
    ]
    return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def derivative(label: str) -> str:
    r"""The name of a derivative in mathematics.

    >>> derivative("d/dx"), derivative("d2/dx dy")
    ('\\frac{\\partial}{\\partial x}', '\\frac{\\partial^{2}}{\\partial x\\,\\partial y}')
    """
    above, _, below = label.partition("/")
    order = f"^{{{above[1:]}}}" if above[1:] else ""
    names = r"\,".join(rf"\partial {name.removeprefix('d')}" for name in below.split())
    return rf"\frac{{\partial{order}}}{{{names}}}"


def html(document: Document) -> str:
    """A document as HTML."""
    return "".join(piece for block in document.blocks for piece in pieces(block))


def pieces(block: Line | Facts | Grid) -> Iterator[str]:
    """The HTML of one block."""
    if isinstance(block, Line):
        if block.text:
            yield (
                f"<pre style='margin:0'>{escaped(block.text)}</pre>"
                if block.role == "code"
                else f"<div>{escaped(block.text)}</div>"
            )
    elif isinstance(block, Facts):
        left = "style='text-align:left'"
        rows = "".join(
            f"<tr><th {left}>{escaped(name)}</th><td {left}><code>{escaped(value)}</code></td></tr>"
            for name, value, _ in block.rows
        )
        yield f"<table>{rows}</table>"
    else:
        sides = [ALIGNED.get(column.kind, "left") for column in block.columns]
        head = "".join(
            f"<th style='text-align:{side}'>{escaped(column.title)}</th>"
            for column, side in zip(block.columns, sides, strict=True)
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:{side}'><code>{escaped(cell)}</code></td>"
                for cell, side in zip(row, sides, strict=True)
            )
            + "</tr>"
            for row in block.rows
        )
        caption = f"<caption style='text-align:left'>{escaped(block.title)}</caption>" if block.title else ""
        yield f"<table>{caption}<tr>{head}</tr>{rows}</table>"
