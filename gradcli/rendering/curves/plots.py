"""Plots of functions and their gradients: braille in a terminal; PNG, PDF and JPEG by matplotlib (extra `plot`)."""

from __future__ import annotations

import math
from io import BytesIO
from itertools import pairwise

from gradcli.base.diagnostics import error
from gradcli.rendering.document import GAP, Column, Document, Grid, Line, Style, document
from gradcli.rendering.documents.calculus import head
from gradcli.rendering.documents.convergence import NO_DIFFERENCES, convergence, in_words, measured
from gradcli.rendering.machine import opening
from gradcli.rendering.value_text import jsonable, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Protocol

    from gradcli.base.results.curves import Curves
    from gradcli.rendering.document import Block

    class Sheet(Protocol):
        """What lines are drawn on."""

        def spot(self, x: float, y: float) -> tuple[float, float]: ...

        def segment(self, start: tuple[float, float], end: tuple[float, float]) -> None: ...


DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a character, by row and column
ARROWS = "→↗↑↖←↙↓↘"


class Canvas:
    """Dots in a rectangle of characters; `x` and `y` are ranges, y grows upwards."""

    def __init__(self, columns: int, rows: int, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.columns, self.rows, self.x, self.y = columns, rows, x, y
        self.cells = [[0] * columns for _ in range(rows)]
        self.letters: dict[tuple[int, int], str] = {}

    def spot(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point in dots, from the upper left."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0]) * (2 * self.columns - 1)
        return across, (self.y[1] - y) / (self.y[1] - self.y[0]) * (4 * self.rows - 1)

    def dot(self, across: float, down: float) -> None:
        """Set a dot, if it is inside the canvas."""
        column, row = round(across), round(down)
        if 0 <= column < 2 * self.columns and 0 <= row < 4 * self.rows:
            self.cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]

    def curve(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """Lines between consecutive points that are finite, clipped to the canvas."""
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
    """The range of the finite values; next to a pole, the range of most of them.

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
    """Curves over the same points with their axes, which include all curves.

    >>> chart([0, 1, 2], [[0, 1, 4]], 12, 3, "x")[-1]
    '     0    x     2'
    """
    y = span([value for curve in series for value in curve])
    canvas = Canvas(columns, rows, (xs[0], xs[-1]), y)
    for curve in series:
        canvas.curve(xs, curve)
    return framed(canvas, label)


def framed(canvas: Canvas, label: str) -> list[str]:
    """A canvas with its axes and the ends of both ranges."""
    ends = [number(canvas.y[1], 4), number(canvas.y[0], 4)]
    margin = max(7, *map(len, ends)) if max(map(len, ends)) > 3 else 3
    rows = canvas.lines()
    lines = []
    for at, row in enumerate(rows):
        phrase = ends[0] if not at else ends[1] if at == len(rows) - 1 else ""
        lines.append(f"{phrase:>{margin}} {'┤' if phrase else '│'}{row}".rstrip())
    low, high = number(canvas.x[0], 4), number(canvas.x[1], 4)
    lines.append(f"{'':{margin}} └{'─' * canvas.columns}")
    room = canvas.columns - len(low) - len(high)
    lines.append(f"{'':{margin}}  {low}{label:^{max(room, len(label) + 2)}}{high}")
    return lines


def arrow(dx: float, dy: float) -> str:
    """The arrow whose direction is nearest to that of a gradient; a dot for a zero gradient.

    >>> arrow(1, 0), arrow(-1, 1), arrow(0, -2), arrow(0, 0)
    ('→', '↖', '↓', '·')
    """
    if not math.isfinite(dx + dy) or not (dx or dy):
        return "·"
    return ARROWS[round(math.atan2(dy, dx) / (math.pi / 4)) % 8]


def contours(
    xs: Sequence[float], ys: Sequence[float], values: Sequence[Sequence[float]], levels: Sequence[float], canvas: Sheet
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


WIDTH, HEIGHT = 80, 12  # columns of a plot off a terminal, rows of each curve
LEVELS = 9  # lines of equal values
BLUE, ORANGE, RED, GREY = "#2563eb", "#c2410c", "#dc2626", "#64748b"


def plot(result: Curves, style: Style) -> Document:
    """`plot` in a terminal."""
    return document(*head(result.expression, result.at, style), *drawn(result, style))


def drawn(result: Curves, style: Style) -> Iterator[Block]:
    """The blocks of a plot."""
    columns = min(style.width or WIDTH, 100) - 14
    if result.steps is not None:
        yield from convergence(result.steps, style)
        return
    (leaf, xs), *second = result.points.items()
    if second:
        yield from (GAP, Line(f"equal values; arrows point where it grows ({second[0][0]} upwards)", "note"))
        yield Line("\n".join(field(result, columns)), "code")
        return
    yield from (GAP, Line("value", "title"), Line("\n".join(chart(xs, [result.value], columns, HEIGHT, leaf)), "code"))
    curves, title = [result.gradient[leaf]], f"d/d{leaf}"
    if result.claim is not None:
        curves, title = [*curves, result.claim], f"d/d{leaf} and the claim {result.claimed}"
    yield from (GAP, Line(title, "title"), Line("\n".join(chart(xs, curves, columns, HEIGHT, leaf)), "code"))
    if result.claim is not None:
        at, largest = difference(result)
        where = f" at {leaf} = {number(xs[at], 4)}" if largest else ""
        yield from (GAP, Line(f"largest difference {number(largest, 3)}{where}", "note"))


def difference(result: Curves) -> tuple[int, float]:
    """The point at which the claim differs most from the derivative, and by how much."""
    (slope,) = result.gradient.values()
    apart = [abs(a - b) if math.isfinite(a - b) else 0.0 for a, b in zip(slope, result.claim or slope, strict=True)]
    largest = max(apart)
    return apart.index(largest), largest


def field(result: Curves, columns: int) -> list[str]:
    """Lines of equal value and arrows of the gradient."""
    (first, xs), (second, ys) = result.points.items()
    columns = min(columns, 64)
    canvas = Canvas(columns, columns // 3, (xs[0], xs[-1]), (ys[0], ys[-1]))
    rows = table(result.value, len(ys))
    contours(xs, ys, rows, levels(result), canvas)
    dx, dy = (table(result.gradient[name], len(ys)) for name in (first, second))
    for row in range(1, canvas.rows, 3):
        for column in range(3, columns, 7):
            i = round(column / (columns - 1) * (len(xs) - 1))
            j = round((1 - row / (canvas.rows - 1)) * (len(ys) - 1))
            canvas.letters[row, column] = arrow(dx[i][j] / (ys[-1] - ys[0]), dy[i][j] / (xs[-1] - xs[0]))
    return framed(canvas, first)


def table(values: list[float], width: int) -> list[list[float]]:
    """The rows of values over two leaves."""
    return [values[at : at + width] for at in range(0, len(values), width)]


def levels(result: Curves) -> list[float]:
    """The values of the contour lines, evenly spaced over the usual range of values."""
    low, high = span(result.value)
    return [low + (high - low) * (at + 0.5) / LEVELS for at in range(LEVELS)]


# --- matplotlib ----------------------------------------------------------------------------------------------------


def figure(result: Curves, form: str) -> bytes:
    """The plot as the bytes of a PNG, PDF or JPEG file. Raises GradcliError (GC713) without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise error(
            "GC713", f"a plot as {form.upper()} needs matplotlib",
            help="pip install 'gradcli[plot]', or write a .svg file, which needs nothing",
        ) from None  # fmt: skip
    settings = {
        "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
        "lines.linewidth": 1.8,
    }  # fmt: skip
    with mpl.rc_context(settings):
        sheet = Figure(figsize=(7, 5), dpi=150, layout="constrained")
        if result.steps is not None:
            by_step(result, sheet)
        elif len(result.points) == 2:
            over_two(result, sheet)
        else:
            along_one(result, sheet)
        sheet.suptitle(title(result.expression), family="monospace", size=11, parse_math=False)
        file = BytesIO()
        sheet.savefig(file, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
    return file.getvalue()


def title(expression: str) -> str:
    """The expression on one line, or its beginning."""
    text = " ; ".join(line.strip() for line in expression.splitlines() if line.strip())
    return text if len(text) <= 70 else text[:67] + "..."


def along_one(result: Curves, sheet: Any) -> None:
    """The function above, its derivative below."""
    ((leaf, xs),) = result.points.items()
    above, below = sheet.subplots(2, 1, sharex=True)
    slope = result.gradient[leaf]
    low, high = margin(span(result.value))
    above.plot(xs, without_poles(result.value, slope, high - low), color=BLUE)
    above.set(ylabel="value", ylim=(low, high))
    below.plot(xs, slope, color=ORANGE, label=f"d/d{leaf}")
    shown = [*slope, *(result.claim or ())]
    if result.claim is not None:
        below.plot(xs, result.claim, color=RED, linestyle="--", label=f"claim: {result.claimed}")
        below.fill_between(xs, slope, result.claim, color=RED, alpha=0.12, linewidth=0)
        below.legend(frameon=False, prop={"family": "monospace", "size": 9})
    below.axhline(0, color=GREY, linewidth=0.8)
    below.set(xlabel=leaf, ylabel=f"d/d{leaf}", ylim=margin(span(shown)), xlim=(xs[0], xs[-1]))


def without_poles(values: list[float], slopes: list[float], height: float) -> list[float]:
    """Values with a gap at poles: where they jump against the slope on both sides, as tan does."""
    kept = list(values)
    for at, (value, following) in enumerate(pairwise(values)):
        jump = following - value
        if abs(jump) > height / 2 and jump * slopes[at] < 0 and jump * slopes[at + 1] < 0:
            kept[at] = math.nan
    return kept


def margin(ends: tuple[float, float]) -> tuple[float, float]:
    """A range with some room on both sides."""
    room = (ends[1] - ends[0]) * 0.06
    return ends[0] - room, ends[1] + room


def over_two(result: Curves, sheet: Any) -> None:
    """Lines of equal value, with the gradient as arrows of equal length."""
    from matplotlib.ticker import MaxNLocator

    (first, xs), (second, ys) = result.points.items()
    axes = sheet.subplots()
    columns = [list(column) for column in zip(*table(result.value, len(ys)), strict=True)]
    ticks = MaxNLocator(14).tick_values(*span(result.value))
    filled = axes.contourf(xs, ys, columns, ticks, cmap="Blues", extend="both")
    axes.contour(xs, ys, columns, ticks, colors=GREY, linewidths=0.5)
    sheet.colorbar(filled, label="value", ax=axes)
    wide, tall = xs[-1] - xs[0], ys[-1] - ys[0]
    slopes = [table(result.gradient[name], len(ys)) for name in (first, second)]
    picked = range(2, len(xs) - 1, 4)
    spots = [(i, j) for i in picked for j in picked]
    arrows = [(slopes[0][i][j] * wide, slopes[1][i][j] * tall) for i, j in spots]
    sizes = [math.hypot(*arrow) if math.isfinite(sum(arrow)) else 0.0 for arrow in arrows]
    sizes = [size or math.inf for size in sizes]
    axes.quiver(
        [xs[i] for i, _ in spots], [ys[j] for _, j in spots],
        [dx / wide * wide / size for (dx, _), size in zip(arrows, sizes, strict=True)],
        [dy / tall * tall / size for (_, dy), size in zip(arrows, sizes, strict=True)],
        color=ORANGE, width=0.003, pivot="mid", scale=30, angles="uv",
    )  # fmt: skip
    axes.set(xlabel=first, ylabel=second)
    axes.grid(visible=False)


def by_step(result: Curves, sheet: Any) -> None:
    """The error of central differences against the step, both on logarithmic axes."""
    sequence = result.steps
    assert sequence is not None
    reference, _ = measured(sequence)
    errors = [] if reference is None else [abs(slope - reference) for slope in sequence.slopes]
    known = [(step, size) for step, size in zip(sequence.steps, errors, strict=False) if 0 < size < math.inf]
    axes = sheet.subplots()
    axes.set(xlabel="step", ylabel=f"error of the central difference for {sequence.of}")
    if known:
        axes.loglog([step for step, _ in known], [size for _, size in known], "o-", color=BLUE)
        axes.invert_xaxis()
    else:  # nothing that logarithmic axes could show
        axes.set_axis_off()
        text = "every error is 0" if errors else NO_DIFFERENCES
        axes.text(0.5, 0.5, text, ha="center", va="center", wrap=True, transform=axes.transAxes)
    if sequence.below is not None:
        axes.set_title(in_words(sequence, errors), size=9)


def payload(result: Curves) -> dict[str, Any]:
    """The plot for programs."""
    steps = {} if result.steps is None else {"steps": jsonable(result.steps.evidence())}
    claim = {} if result.claim is None else {"claim": jsonable(result.claim), "claimed": result.claimed}
    return {
        **opening("plot"), "expression": result.expression,
        "at": jsonable(result.at), "points": result.points, "value": jsonable(result.value),
        "gradient": jsonable(result.gradient), **claim, **steps,
    }  # fmt: skip


def tidy(result: Curves) -> Grid:
    """A row per point, for CSV."""
    names = list(result.points)
    if result.steps is not None:
        titles = ["step", "difference"]
        rows = list(zip(result.steps.steps, result.steps.slopes, strict=True))
    else:
        titles = [*names, "value", *(f"d/d{name}" for name in names), *(["claim"] if result.claim is not None else ())]
        first, *second = result.points.values()
        spots = [(a, b) for a in first for b in second[0]] if second else [(a,) for a in first]
        columns = [result.value, *result.gradient.values(), *([result.claim] if result.claim is not None else ())]
        rows = [(*spot, *rest) for spot, rest in zip(spots, zip(*columns, strict=True), strict=True)]
    return Grid(tuple(map(Column, titles)), tuple(tuple(map(number, row)) for row in rows))
