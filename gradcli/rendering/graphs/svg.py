"""A picture goes in, an SVG comes out that needs nothing beside itself: both directions, and facts under the pointer.

The drawing holds the forward and the backward arrows; a class on the root decides which are seen. Text of users is
escaped, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import math
from itertools import pairwise

from gradcli.diagnostics import error
from gradcli.execution.results import escaped
from gradcli.rendering.graphs.layout import layout
from gradcli.rendering.text import visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.rendering.graphs.layout import Layout
    from gradcli.rendering.graphs.picture import Arrow, Box, Picture

    Point = tuple[float, float]

MOST_DRAWN = 1500  # boxes; more of them nobody can look at
CELL, LINE, PAD = 7.3, 17.0, 12.0  # of a character, a line, and around the words
MARGIN, TITLE = 24.0, 34.0
TIP = 7.0

STYLE = """
.gradcli{--ink:#0f172a;--soft:#64748b;--paper:#ffffff;--leaf:#dbeafe;--constant:#f1f5f9;--operation:#ffffff;
--output:#dcfce7;--back:#c2410c;background:var(--paper)}
@media (prefers-color-scheme:dark){.gradcli{--ink:#e2e8f0;--soft:#94a3b8;--paper:#0f172a;--leaf:#1e3a5f;
--constant:#1e293b;--operation:#17202f;--output:#14432a;--back:#fb923c}}
.gradcli text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--ink)}
.gradcli .title{font-weight:600;font-size:13px}
.gradcli .second{fill:var(--soft)}
.gradcli .box rect{stroke:var(--soft);stroke-width:1}
.gradcli .leaf rect{fill:var(--leaf)}.gradcli .constant rect{fill:var(--constant)}
.gradcli .operation rect{fill:var(--operation)}.gradcli .output rect{fill:var(--output);stroke-width:2}
.gradcli path{fill:none;stroke:var(--soft);stroke-width:1.3}
.gradcli .tip{fill:var(--soft);stroke:none}
.gradcli .backward path{stroke:var(--back)}.gradcli .backward .tip{fill:var(--back);stroke:none}
.gradcli .sent{fill:var(--back);font-size:11px;paint-order:stroke;stroke:var(--paper);stroke-width:4px}
.gradcli .ct{fill:var(--back)}
.gradcli.show-forward .backward,.gradcli.show-backward .forward{display:none}
"""


def svg(picture: Picture, backward: bool = False) -> str:
    """The whole drawing, with its style inside; raises GradcliError GC510 for more boxes than one can look at."""
    if len(picture.boxes) > MOST_DRAWN:
        raise error(
            "GC510",
            f"a drawing of {len(picture.boxes):,} boxes is too large to look at (at most {MOST_DRAWN:,})",
            help="use --format dot or json, which take any size",
        )
    sizes = [size(box) for box in picture.boxes]
    found = layout(sizes, [(arrow.start, arrow.end) for arrow in picture.arrows])
    title = " ; ".join(line.strip() for line in picture.title.splitlines() if line.strip())
    title = visible(title if len(title) <= 160 else title[:157] + "...")
    wide = max(found.width, CELL * 1.1 * width(title)) + 2 * MARGIN
    tall = found.height + 2 * MARGIN + TITLE
    direction = "backward" if backward else "forward"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gradcli show-{direction}" viewBox="0 0 {wide:.0f} {tall:.0f}" '
        f'width="{wide:.0f}" height="{tall:.0f}" role="img" aria-label="{escaped(title)}">',
        f"<style>{STYLE}</style>",
        f'<g class="canvas"><text class="title" x="{MARGIN:.0f}" y="{MARGIN + 6:.0f}">{escaped(title)}</text>',
        f'<g transform="translate({(wide - found.width) / 2:.1f},{MARGIN + TITLE:.1f})">',
    ]
    lines += arrows(picture, found, sizes)
    lines += (drawn(at, box, found.places[at], sizes[at]) for at, box in enumerate(picture.boxes))
    return "\n".join([*lines, "</g></g></svg>"])


def size(box: Box) -> Point:
    """Width and height of a box: as its longest line, and two lines where there is a number."""
    lines = [box.title, box.value if box.value != box.title else "", box.cotangent]
    wide = max(width(visible(line)) for line in lines) * CELL + 2 * PAD
    return max(wide, 48.0), LINE * (1 + bool(second(box) or box.cotangent)) + PAD


def second(box: Box) -> str:
    return "" if box.value == box.title else box.value


def drawn(at: int, box: Box, place: Point, extent: Point) -> str:
    """One box with its words; what the pointer shows is a `title`."""
    (x, y), (wide, tall) = place, extent
    left, top = x - wide / 2, y - tall / 2
    first = y + 4 if tall < 2 * LINE else y - LINE / 2 + 4
    told = "\n".join(f"{name}: {visible(value)}" for name, value in box.facts)
    parts = [
        f'<g class="box {box.kind}" id="n{at}" tabindex="0"><title>{escaped(told)}</title>',
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="7"/>',
        f'<text x="{x:.1f}" y="{first:.1f}" text-anchor="middle">{escaped(visible(box.title))}</text>',
    ]
    for name, words in (("forward second", second(box)), ("backward ct", box.cotangent)):
        if words:
            parts.append(
                f'<text class="{name}" x="{x:.1f}" y="{first + LINE:.1f}" text-anchor="middle">'
                f"{escaped(visible(words))}</text>"
            )
    return "".join([*parts, "</g>"])


def arrows(picture: Picture, found: Layout, sizes: Sequence[Point]) -> Iterator[str]:
    """Each arrow in both directions; what is sent back stands beside the backward one."""
    several: dict[tuple[int, int], int] = {}
    for arrow, route in zip(picture.arrows, found.routes, strict=True):
        pair = (arrow.start, arrow.end)
        shift = 16.0 * several.get(pair, 0)
        several[pair] = several.get(pair, 0) + 1
        line = outline(arrow, route, sizes, shift)
        for direction, points in (("forward", line), ("backward", line[::-1])):
            yield f'<g class="{direction}"><path d="{curve(points)}"/>{tip(points)}'
            if direction == "backward" and arrow.sent:
                x, y = points[len(points) // 2] if len(points) > 2 else middle(points[0], points[1])
                place = f'x="{x + 5 + shift / 2:.1f}" y="{y + 4 + shift:.1f}"'
                yield f'<text class="sent" {place}>{escaped(arrow.sent)}</text>'
            yield "</g>"


def outline(arrow: Arrow, route: Sequence[Point], sizes: Sequence[Point], shift: float) -> list[Point]:
    """The points of an arrow, from the edge of one box to that of the other."""
    points = list(route)
    below = route[-1][1] > route[0][1]
    (x0, y0), (x1, y1) = route[0], route[-1]
    half0, half1 = sizes[arrow.start][1] / 2, sizes[arrow.end][1] / 2
    lean = math.copysign(min(0.3 * sizes[arrow.end][0], abs(x0 - x1) / 4), x0 - x1) + shift
    points[0] = (x0 + shift, y0 + half0 if below else y0 - half0)
    points[-1] = (x1 + lean, y1 - half1 if below else y1 + half1)
    return points


def middle(one: Point, other: Point) -> Point:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def curve(points: Sequence[Point]) -> str:
    """A smooth path that leaves and reaches boxes upright; it ends where the tip begins."""
    ends = list(points)
    down = math.copysign(TIP, ends[-1][1] - ends[-2][1])
    ends[-1] = (ends[-1][0], ends[-1][1] - down)
    path = f"M{ends[0][0]:.1f},{ends[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(ends):
        bend = (y0 + y1) / 2
        path += f" C{x0:.1f},{bend:.1f} {x1:.1f},{bend:.1f} {x1:.1f},{y1:.1f}"
    return path


def tip(points: Sequence[Point]) -> str:
    """The point of an arrow, a triangle that stands upright on the box."""
    x, y = points[-1]
    back = y - math.copysign(TIP, y - points[-2][1])
    return f'<polygon class="tip" points="{x:.1f},{y:.1f} {x - 4:.1f},{back:.1f} {x + 4:.1f},{back:.1f}"/>'
