"""Routes of arrows: the points and curves between boxes.

Arrows leave and reach a box upright, side by side in the order in which they come.
"""

from __future__ import annotations

import math
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.rendering.graphs.layout import Layout
    from gradcli.rendering.graphs.picture import Arrow

    Point = tuple[float, float]

TIP = 7.0  # length of the point of an arrow
APART, SHARE = 24.0, 0.6  # between arrows at one box, and the part of its width that they take at most
ROOM = 14.0  # that a route may move sideways while it passes a layer
SLIGHT = 9.0  # arrows that lean less are drawn upright
SAMPLES = 12  # points of a curve between two of its ends


def outlines(arrows: Sequence[Arrow], found: Layout, sizes: Sequence[Point]) -> list[list[Point]]:
    """The points of each arrow, from the edge of one box to that of the other; between them two in each layer."""
    lines = [leaning(route) for route in found.routes]
    sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}  # of a box, its lower or upper edge
    for at, (arrow, line) in enumerate(zip(arrows, lines, strict=True)):
        for box, end, near in ((arrow.start, 0, 1), (arrow.end, len(line) - 1, len(line) - 2)):
            sides.setdefault((box, line[near][1] > line[end][1]), []).append((line[near][0], at, end))
    for (box, lower), ends in sides.items():
        x, y = found.places[box]
        wide, tall = sizes[box]
        step = min(APART, SHARE * wide / max(len(ends) - 1, 1))
        for place, (_, at, end) in enumerate(sorted(ends)):
            lines[at][end] = (x + step * (place - (len(ends) - 1) / 2), y + tall / 2 if lower else y - tall / 2)
    for line in lines:
        if len(line) == 2 and abs(line[0][0] - line[1][0]) < SLIGHT:  # a slight bend would look like a mistake
            middle = (line[0][0] + line[1][0]) / 2
            line[:] = [(middle, line[0][1]), (middle, line[1][1])]
    return lines


def leaning(route: Sequence[Point]) -> list[Point]:
    """A route that passes layers in the direction in which it goes on, as far as the boxes beside it leave room."""
    points = list(route)
    for at in range(1, len(points) - 1, 2):
        (x0, y0), (x, upper), (_, lower), (x1, y1) = route[at - 1 : at + 3]
        lean = (x1 - x0) / (y1 - y0) * (lower - upper) / 2
        lean = max(-ROOM, min(ROOM, lean))
        points[at], points[at + 1] = (x - lean, upper), (x + lean, lower)
    return points


def curve(points: Sequence[Point]) -> str:
    """A smooth path that leaves and reaches boxes upright; it ends where the tip begins."""
    ends = shortened(points)
    path = f"M{ends[0][0]:.1f},{ends[0][1]:.1f}"
    for _, (x0, y0), (x1, y1), (x, y) in pieces(ends):
        path += f" C{x0:.1f},{y0:.1f} {x1:.1f},{y1:.1f} {x:.1f},{y:.1f}"
    return path


def pieces(points: Sequence[Point]) -> Iterator[tuple[Point, Point, Point, Point]]:
    """The cubics of a curve through points: upright at both ends, straight where it passes a layer."""
    slopes = [0.0] * len(points)
    for at in range(1, len(points) - 1, 2):
        (x0, y0), (x1, y1) = points[at : at + 2]
        slopes[at] = slopes[at + 1] = (x1 - x0) / (y1 - y0)
    for at, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        half = (y1 - y0) / 2
        yield (x0, y0), (x0 + slopes[at] * half, y0 + half), (x1 - slopes[at + 1] * half, y1 - half), (x1, y1)


def shortened(points: Sequence[Point]) -> list[Point]:
    """The points of an arrow without its tip."""
    ends = list(points)
    down = math.copysign(TIP, ends[-1][1] - ends[-2][1])
    ends[-1] = (ends[-1][0], ends[-1][1] - down)
    return ends


def samples(points: Sequence[Point]) -> list[Point]:
    """Points on the curve, close to each other, from its start to its end."""
    found = [points[0]]
    for ends in pieces(points):
        for step in range(1, SAMPLES + 1):
            t = step / SAMPLES
            parts = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3)
            found.append((weighted(parts, ends, 0), weighted(parts, ends, 1)))
    return found


def weighted(parts: Sequence[float], ends: Sequence[Point], axis: int) -> float:
    return sum(part * end[axis] for part, end in zip(parts, ends, strict=True))


def loop(place: Point, size: Point) -> tuple[str, str]:
    """The path and the tip of an arrow from a box to itself, at its right side."""
    x, y, tall = place[0] + size[0] / 2, place[1], size[1]
    low, high = y + tall / 4, y - tall / 4
    path = f"M{x:.1f},{low:.1f} C{x + 24:.1f},{low + 6:.1f} {x + 24:.1f},{high - 6:.1f} {x + TIP:.1f},{high:.1f}"
    head = f"{x:.1f},{high:.1f} {x + TIP:.1f},{high - 4:.1f} {x + TIP:.1f},{high + 4:.1f}"
    return path, f'<polygon class="tip" points="{head}"/>'


def tip(points: Sequence[Point]) -> str:
    """The point of an arrow, a triangle that stands upright on the box."""
    x, y = points[-1]
    back = y - math.copysign(TIP, y - points[-2][1])
    return f'<polygon class="tip" points="{x:.1f},{y:.1f} {x - 4:.1f},{back:.1f} {x + 4:.1f},{back:.1f}"/>'
