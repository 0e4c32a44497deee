"""A function along a line goes in, a step comes out that lowers it enough and flattens its slope: strong Wolfe.

Bracket, then zoom (Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6), with cubic interpolation and
the safeguards that are usual for it: steps grow tenfold at most, and stay a tenth of the bracket away from its ends
where progress stalls. Knows no parameter and no tensor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LOWER, FLATTER = 1e-4, 0.9  # how much the value must fall, and the slope must flatten
MOST = 25


class Point(NamedTuple):
    """A place on the line: how far, the value there, the gradient, and its slope along the line."""

    at: float
    value: float
    gradient: Any
    slope: float


def cubic(one: Point, two: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two values and slopes is least, held between bounds; their middle where it is not."""
    low, high = bounds or (min(one.at, two.at), max(one.at, two.at))
    left, right = (one, two) if one.at <= two.at else (two, one)
    if one.at == two.at:
        return (low + high) / 2
    bend = one.slope + two.slope - 3 * (one.value - two.value) / (one.at - two.at)
    square = bend**2 - one.slope * two.slope
    if square < 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = right.slope - left.slope + 2 * root
    if below == 0:
        return (low + high) / 2
    found = right.at - (right.at - left.at) * ((right.slope + root - bend) / below)
    return min(max(found, low), high)


def strong_wolfe(
    look: Callable[[float], Point], start: Point, step: float, reach: float, tolerance: float
) -> tuple[Point, int]:
    """The point that was chosen, and how often the function was looked at.

    `reach` is the largest entry of the direction, `tolerance` the change of a parameter that is too small to matter.
    """
    before, here, calls = start, look(step), 1
    while calls <= MOST:
        rose = here.value > start.value + LOWER * here.at * start.slope
        if rose or (calls > 2 and here.value >= before.value):
            return _zoomed(look, start, [before, here], calls, reach, tolerance)
        if abs(here.slope) <= -FLATTER * start.slope:
            return here, calls
        if here.slope >= 0:
            return _zoomed(look, start, [before, here], calls, reach, tolerance)
        far = cubic(before, here, (here.at + 0.01 * (here.at - before.at), here.at * 10))
        before, here, calls = here, look(far), calls + 1
    return min((start, here), key=lambda one: one.value), calls


def _zoomed(
    look: Callable[[float], Point], start: Point, ends: list[Point], calls: int, reach: float, tolerance: float
) -> tuple[Point, int]:
    stalled = False
    low = 0 if ends[0].value <= ends[1].value else 1
    while calls <= MOST and abs(ends[1].at - ends[0].at) * reach >= tolerance:
        first, last = min(ends[0].at, ends[1].at), max(ends[0].at, ends[1].at)
        at, margin = cubic(ends[0], ends[1]), 0.1 * (last - first)
        if min(last - at, at - first) < margin:
            if stalled or at >= last or at <= first:
                at = last - margin if abs(at - last) < abs(at - first) else first + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        here, calls = look(at), calls + 1
        if here.value > start.value + LOWER * at * start.slope or here.value >= ends[low].value:
            ends[1 - low] = here
            low = 0 if ends[0].value <= ends[1].value else 1
            continue
        if abs(here.slope) <= -FLATTER * start.slope:
            return here, calls
        if here.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = here
    return ends[low], calls
