"""Plots of functions and their gradients as SVG files, on the standard library alone."""

from __future__ import annotations

import math
from html import escape

from gradcli.rendering.curves.plots import (
    BLUE,
    GREY,
    LEVELS,
    ORANGE,
    RED,
    contours,
    levels,
    margin,
    span,
    table,
    title,
    without_poles,
)
from gradcli.rendering.documents.convergence import NO_DIFFERENCES, in_words, measured
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradcli.base.results.curves import Curves

WIDTH, HEIGHT = 700, 500
LEFT, RIGHT, TOP, BOTTOM, BETWEEN = 76, 18, 44, 46, 18  # pixels around the panels, and between two


class Panel:
    """A rectangle with axes. Coordinates are those of its ranges `x` and `y`, or their logarithms for powers of ten."""

    def __init__(self, top: float, height: float, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.top, self.height, self.width = top, height, WIDTH - LEFT - RIGHT
        self.x, self.y = x, y
        self.marks: list[str] = []

    def spot(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point, in pixels."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return round(LEFT + across * self.width, 2), round(self.top + (1 - up) * self.height, 2)

    def segment(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin line between two positions."""
        self.marks.append(f'<path d="M{start[0]},{start[1]}L{end[0]},{end[1]}" stroke="{GREY}" fill="none"/>')

    def curve(self, xs: Sequence[float], ys: Sequence[float], colour: str, more: str = "") -> None:
        """A line through the points, with a gap where one is not finite; far outside it stands still."""
        low, high = (end + part * (self.y[1] - self.y[0]) for end, part in zip(self.y, (-2, 2), strict=True))
        path, pen = "", "M"
        for x, y in zip(xs, ys, strict=True):
            if not math.isfinite(y):
                pen = "M"
                continue
            across, down = self.spot(x, min(max(y, low), high))
            path += f"{pen}{across},{down}"
            pen = "L"
        self.marks.append(f'<path d="{path}" stroke="{colour}" stroke-width="1.8" fill="none"{more}/>')

    def drawn(self, label: str, under: str, powers: bool = False) -> Iterator[str]:
        """The panel: grid and ticks, what was drawn, and the names of its axes."""
        name = f"p{self.top:.0f}"
        inside = f'x="{LEFT}" y="{self.top}" width="{self.width}" height="{self.height}"'
        yield f'<clipPath id="{name}"><rect {inside}/></clipPath>'
        foot = self.top + self.height
        for value in ticks(*self.x, powers):
            across, _ = self.spot(value, self.y[0])
            yield f'<path d="M{across},{self.top}V{foot}" stroke="#e2e8f0"/>'
            if under:
                yield written(across, foot + 16, numeral(value, powers))
        for value in ticks(*self.y, powers):
            _, down = self.spot(self.x[0], value)
            yield f'<path d="M{LEFT},{down}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>'
            yield written(LEFT - 6, down + 4, numeral(value, powers), "end")
        yield f'<path d="M{LEFT},{self.top}V{foot}H{WIDTH - RIGHT}" stroke="#334155" fill="none"/>'
        yield from (f'<g clip-path="url(#{name})">', *self.marks, "</g>")
        yield written(WIDTH / 2, foot + 36, under) if under else ""
        middle = round(self.top + self.height / 2)
        turned = f' transform="rotate(-90 16 {middle})"'
        yield written(16, middle, label, more=turned)


def svg(result: Curves) -> str:
    """The plot as an SVG document."""
    sheet = (
        by_step(result) if result.steps is not None else (over_two if len(result.points) == 2 else along_one)(result)
    )
    return framed_svg(title(result.expression), sheet)


def framed_svg(heading: str, sheet: Iterable[str]) -> str:
    """A document of the size of all plots with a heading."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11" fill="#334155">'
    )
    back = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    top = written(WIDTH / 2, 22, heading, more=' font-family="monospace" font-size="12"')
    return "\n".join([head, back, top, *(line for line in sheet if line), "</svg>", ""])


def along_one(result: Curves) -> Iterator[str]:
    """The function above, its derivative below."""
    ((leaf, xs),) = result.points.items()
    height = (HEIGHT - TOP - BOTTOM - BETWEEN) / 2
    slope, ends = result.gradient[leaf], (xs[0], xs[-1])
    low, high = margin(span(result.value))
    above = Panel(TOP, height, ends, (low, high))
    above.curve(xs, without_poles(result.value, slope, high - low), BLUE)
    below = Panel(TOP + height + BETWEEN, height, ends, margin(span([*slope, *(result.claim or ())])))
    below.segment(below.spot(xs[0], 0.0), below.spot(xs[-1], 0.0))
    below.curve(xs, slope, ORANGE)
    if result.claim is not None:
        below.curve(xs, result.claim, RED, ' stroke-dasharray="6 4"')
    yield from above.drawn("value", "")
    yield from below.drawn(f"d/d{leaf}", leaf)
    if result.claim is not None:
        beside = below.top - 5
        yield written(LEFT + 4, beside, f"d/d{leaf}", "start", f' style="fill:{ORANGE}"')
        yield written(WIDTH - RIGHT, beside, f"claim: {result.claimed}", "end", f' style="fill:{RED}"')


def over_two(result: Curves) -> Iterator[str]:
    """Lines of equal value, with the gradient as arrows of equal length."""
    (first, xs), (second, ys) = result.points.items()
    panel = Panel(TOP, HEIGHT - TOP - BOTTOM, (xs[0], xs[-1]), (ys[0], ys[-1]))
    contours(xs, ys, table(result.value, len(ys)), levels(result), panel)
    dx, dy = (table(result.gradient[name], len(ys)) for name in (first, second))
    wide, tall = panel.width / (xs[-1] - xs[0]), panel.height / (ys[-1] - ys[0])
    for i in range(2, len(xs) - 1, 4):
        for j in range(2, len(ys) - 1, 4):
            across, up = dx[i][j] / wide, dy[i][j] / tall
            size = math.hypot(across, up)
            if 0 < size < math.inf:
                x, y = panel.spot(xs[i], ys[j])
                angle = round(-math.degrees(math.atan2(up, across)), 1)
                place = f"translate({x} {y}) rotate({angle})"
                panel.marks.append(
                    f'<path d="M-9,0H9M4,-3L9,0L4,3" stroke="{ORANGE}" fill="none" transform="{place}"/>'
                )
    yield from panel.drawn(second, first)
    low, high = span(result.value)
    yield written(WIDTH - RIGHT, TOP - 8, f"{LEVELS} lines of equal value from {low:.4g} to {high:.4g}", "end")


def by_step(result: Curves) -> Iterator[str]:
    """The error of central differences against the step, both on logarithmic axes, the largest step at the left."""
    sequence = result.steps
    assert sequence is not None
    reference, _ = measured(sequence)
    errors = [] if reference is None else [abs(slope - reference) for slope in sequence.slopes]
    known = [(step, size) for step, size in zip(sequence.steps, errors, strict=False) if 0 < size < math.inf]
    if known:
        xs, ys = ([math.log10(value) for value in values] for values in zip(*known, strict=True))
        x = margin(span(xs))
        panel = Panel(TOP + 16, HEIGHT - TOP - BOTTOM - 16, (x[1], x[0]), margin(span(ys)))
        panel.curve(xs, ys, BLUE)
        for across, down in map(panel.spot, xs, ys):
            panel.marks.append(f'<circle cx="{across}" cy="{down}" r="3" fill="{BLUE}"/>')
        yield from panel.drawn(f"error of the central difference for {sequence.of}", "step", powers=True)
    else:  # nothing that logarithmic axes could show
        yield written(WIDTH / 2, HEIGHT / 2, "every error is 0" if errors else NO_DIFFERENCES)
    if sequence.below is not None:
        yield written(WIDTH / 2, TOP, in_words(sequence, errors))


def ticks(low: float, high: float, powers: bool) -> list[float]:
    """Round numbers in a range, about five: multiples of 1, 2 or 5 times a power of ten; whole numbers for `powers`.

    >>> ticks(0.0, 1.0, False), ticks(-7.2, 0.4, True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-6, -4, -2, 0])
    """
    low, high = sorted((low, high))
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.75)
    if powers:
        step = max(1, round(step))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{at * step:.12g}") if not powers else at * step for at in range(first, last + 1)]


def numeral(value: float, powers: bool) -> str:
    return f"1e{value:.0f}" if powers else f"{value:.6g}"


def written(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    """A text at a position."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{escape(visible(text))}</text>'
