"""Pictures of where a matrix of derivatives has entries: dots in a terminal, squares in an SVG file; row 0 on top."""

from __future__ import annotations

import math

from gradcli.rendering.curves.plots import BLUE, WIDTH, Canvas, title
from gradcli.rendering.curves.vector_plots import framed_svg, written
from gradcli.rendering.document import GAP, Column, Document, Grid, Line, Style, document
from gradcli.rendering.documents.calculus import head
from gradcli.rendering.machine import opening
from gradcli.rendering.matrix_files import matrix
from gradcli.rendering.value_text import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.base.results.calculations import Hessian, Jacobian

MOST_DOWN = 160  # dots in a terminal
SIDE, LEFT, TOP = 420, 140, 44  # pixels of the picture of a matrix, and of what is beside it


def binned(array: Any, across: int, down: int) -> set[tuple[int, int]]:
    """The entries (row, column) of a sparse array, on a grid of so many places if it has more."""
    places, (rows, columns) = array.tocoo(), array.shape
    high = places.row.astype("int64") * min(down, rows) // max(rows, 1)
    wide = places.col.astype("int64") * min(across, columns) // max(columns, 1)
    return set(zip(high.tolist(), wide.tolist(), strict=True))


def in_words(array: Any) -> str:
    """The sizes of a matrix, and how many entries it has."""
    rows, columns = array.shape
    return f"{rows:,} rows, {columns:,} columns, {array.nnz:,} entries"


def plot(result: Hessian | Jacobian, style: Style) -> Document:
    """The picture in a terminal."""
    array = matrix(result)
    rows, columns = array.shape
    across = min(2 * (min(style.width or WIDTH, 100) - 14), columns)
    down = min(MOST_DOWN, rows, max(1, round(across * rows / max(columns, 1))))
    canvas = Canvas(math.ceil(across / 2), math.ceil(down / 4), (0, 1), (0, 1))
    for row, column in binned(array, across, down):
        canvas.dot(column, row)
    edge = "─" * canvas.columns
    lines = [f"┌{edge}┐", *(f"│{line:{canvas.columns}}│" for line in canvas.lines()), f"└{edge}┘"]
    text = Line("\n".join(lines), "code")
    return document(*head(result.expression, result.at, style), GAP, text, GAP, Line(in_words(array), "note"))


def svg(result: Hessian | Jacobian) -> str:
    """The picture as an SVG document: at most one square for each pixel."""
    array = matrix(result)
    rows, columns = array.shape
    scale = SIDE / max(rows, columns, 1)
    wide, high = columns * scale, rows * scale
    across, down = (min(size, SIDE) for size in (columns, rows))
    steps = wide / max(across, 1), high / max(down, 1)
    squares = "".join(
        f"M{LEFT + column * steps[0]:.2f},{TOP + row * steps[1]:.2f}h{steps[0]:.2f}v{steps[1]:.2f}h-{steps[0]:.2f}z"
        for row, column in sorted(binned(array, across, down))
    )
    frame = f'<rect x="{LEFT}" y="{TOP}" width="{wide:.2f}" height="{high:.2f}" fill="none" stroke="#334155"/>'
    below = written(LEFT + wide / 2, TOP + high + 20, in_words(array))
    return framed_svg(title(result.expression), [f'<path d="{squares}" fill="{BLUE}"/>', frame, below])


def payload(result: Hessian | Jacobian) -> dict[str, Any]:
    """The pattern for programs."""
    array = matrix(result)
    about = {"expression": result.expression, "at": jsonable(result.at), "shape": list(array.shape)}
    return {**opening("plot"), **about, "entries": [list(pair) for pair in pairs(array)]}


def tidy(result: Hessian | Jacobian) -> Grid:
    """An entry in each row, for CSV."""
    return Grid(
        (Column("row"), Column("column")), tuple((str(row), str(column)) for row, column in pairs(matrix(result)))
    )


def pairs(array: Any) -> list[tuple[int, int]]:
    """All entries, in order."""
    return sorted(binned(array, array.shape[1], array.shape[0]))
