"""Plots in a terminal: dots of braille characters, eight to a character."""

from __future__ import annotations

import math
from itertools import pairwise

from gradcli.rendering.values import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a character, by row and column
ARROWS = "→↗↑↖←↙↓↘"


class Canvas:
    """Dots in a rectangle of characters; `x` and `y` are ranges, y grows upwards."""

    def __init__(self, columns: int, rows: int, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.columns, self.rows, self.x, self.y = columns, rows, x, y
        self.cells = [[0] * columns for _ in range(rows)]
        self.letters: dict[tuple[int, int], str] = {}

    def spot(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point in dots, from the upper left."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0]) * (2 * self.columns - 1)
        return across, (self.y[1] - y) / (self.y[1] - self.y[0]) * (4 * self.rows - 1)

    def dot(self, across: float, down: float) -> None:
        """Set a dot; outside nothing is drawn."""
        column, row = round(across), round(down)
        if 0 <= column < 2 * self.columns and 0 <= row < 4 * self.rows:
            self.cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]

    def curve(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """Lines between points that follow each other, as far as they are finite and inside."""
        for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
            if not all(map(math.isfinite, (y0, y1))) or max(y0, y1) < self.y[0] or min(y0, y1) > self.y[1]:
                continue
            low, high = self.y[0] - (self.y[1] - self.y[0]), self.y[1] + (self.y[1] - self.y[0])
            self.segment(self.spot(x0, min(max(y0, low), high)), self.spot(x1, min(max(y1, low), high)))

    def segment(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A straight line between two places in dots."""
        count = max(1, math.ceil(max(abs(end[0] - start[0]), abs(end[1] - start[1]))))
        for step in range(count + 1):
            part = step / count
            self.dot(start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1]))

    def lines(self) -> list[str]:
        """The rows as text."""
        return [
            "".join(
                self.letters.get((row, column)) or (chr(0x2800 + cell) if cell else " ")
                for column, cell in enumerate(cells)
            ).rstrip()
            for row, cells in enumerate(self.cells)
        ]


def span(values: Sequence[float]) -> tuple[float, float]:
    """The range of the values that are finite; where a pole stands out, that of the most of them.

    >>> span([1.0, 2.0, float("nan")]), span([3.0])
    ((1.0, 2.0), (2.5, 3.5))
    """
    known = sorted(value for value in values if math.isfinite(value))
    if not known:
        return -1.0, 1.0
    low, high = known[0], known[-1]
    inner = known[len(known) // 20], known[-1 - len(known) // 20]
    if len(known) > 40 and high - low > 20 * (inner[1] - inner[0]) > 0:
        rest = inner[1] - inner[0]
        low, high = max(low, inner[0] - rest), min(high, inner[1] + rest)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def chart(xs: Sequence[float], series: Sequence[Sequence[float]], columns: int, rows: int, label: str) -> list[str]:
    """Curves over the same points with their axes; the range is that of the first curve and of all others.

    >>> chart([0, 1, 2], [[0, 1, 4]], 12, 3, "x")[-1]
    '     0    x     2'
    """
    y = span([value for curve in series for value in curve])
    canvas = Canvas(columns, rows, (xs[0], xs[-1]), y)
    for curve in series:
        canvas.curve(xs, curve)
    return framed(canvas, label)


def framed(canvas: Canvas, label: str) -> list[str]:
    """A canvas with its axes: the ends of both ranges."""
    ends = [number(canvas.y[1], 4), number(canvas.y[0], 4)]
    margin = max(7, *map(len, ends)) if max(map(len, ends)) > 3 else 3
    rows = canvas.lines()
    lines = []
    for at, row in enumerate(rows):
        told = ends[0] if not at else ends[1] if at == len(rows) - 1 else ""
        lines.append(f"{told:>{margin}} {'┤' if told else '│'}{row}".rstrip())
    low, high = number(canvas.x[0], 4), number(canvas.x[1], 4)
    lines.append(f"{'':{margin}} └{'─' * canvas.columns}")
    room = canvas.columns - len(low) - len(high)
    lines.append(f"{'':{margin}}  {low}{label:^{max(room, len(label) + 2)}}{high}")
    return lines


def arrow(dx: float, dy: float) -> str:
    """The arrow that points most nearly where a gradient does; a dot where there is none.

    >>> arrow(1, 0), arrow(-1, 1), arrow(0, -2), arrow(0, 0)
    ('→', '↖', '↓', '·')
    """
    if not math.isfinite(dx + dy) or not (dx or dy):
        return "·"
    return ARROWS[round(math.atan2(dy, dx) / (math.pi / 4)) % 8]


def contours(
    xs: Sequence[float], ys: Sequence[float], values: Sequence[Sequence[float]], levels: Sequence[float], canvas: Canvas
) -> None:
    """Lines of equal values, cell by cell (marching squares); `values[i][j]` stands at x i and y j."""
    for i, (x0, x1) in enumerate(pairwise(xs)):
        for j, (y0, y1) in enumerate(pairwise(ys)):
            left, right = values[i], values[i + 1]
            corners = ((x0, y0, left[j]), (x1, y0, right[j]), (x1, y1, right[j + 1]), (x0, y1, left[j + 1]))
            if not all(math.isfinite(value) for _, _, value in corners):
                continue
            for level in levels:
                ends = []
                for (ax, ay, a), (bx, by, b) in zip(corners, (*corners[1:], corners[0]), strict=True):
                    if (a < level) != (b < level):
                        part = (level - a) / (b - a)
                        ends.append(canvas.spot(ax + part * (bx - ax), ay + part * (by - ay)))
                for start, end in zip(ends[::2], ends[1::2], strict=True):
                    canvas.segment(start, end)
