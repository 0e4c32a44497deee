"""Pictures as SVG without external files: both directions, and facts at the pointer.

The drawing holds the forward and the backward arrows; a class on the root selects which are visible. User text is
escaped, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import math
from html import escape as escaped
from itertools import pairwise

from gradcli.base.diagnostics import error
from gradcli.rendering.graphs.layout import layout
from gradcli.rendering.safe_text import visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.rendering.graphs.layout import Layout
    from gradcli.rendering.graphs.picture_boxes import Arrow, Box, Picture

    Point = tuple[float, float]
    Area = tuple[float, float, float, float]  # left, top, right, bottom

TALL, AIR = 13.0, 4.0  # of a word, and between a word and its curve
TURNS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)  # places along a curve, the best first
GRID = 48.0  # of the grid in which neighbours are looked up
WORST = 8.0  # points of other curves that a word may hide before it is left out


class Labels:
    """The areas of boxes, curves and words, for placing words where there is room."""

    def __init__(self, boxes: Sequence[Area], curves: Sequence[Sequence[Point]]) -> None:
        self.areas: dict[tuple[int, int], list[Area]] = {}
        self.points: dict[tuple[int, int], dict[tuple[int, int], tuple[float, float, int]]] = {}
        for box in boxes:
            self._take(box)
        for at, curve in enumerate(curves):
            for x, y in curve:  # where many curves share their way, one stands for all
                cell = self.points.setdefault((int(x // GRID), int(y // GRID)), {})
                cell.setdefault((round(x / 2), round(y / 2)), (x, y, at))
        self.curves = curves

    def _take(self, area: Area) -> None:
        for cell in cells(area):
            self.areas.setdefault(cell, []).append(area)

    def place(self, at: int, wide: float, needed: bool) -> Point | None:
        """The position (left end, middle) of a word next to a curve; None for a dispensable word without room."""
        curve = self.curves[at]
        best: tuple[float, Area] | None = None
        for rank, turn in enumerate(TURNS):
            x, y = curve[round(turn * (len(curve) - 1))]
            for left in (x + AIR, x - AIR - wide):
                area = (left, y - TALL / 2, left + wide, y + TALL / 2)
                cost = self._cost(area, at) + rank * 0.3 + (0.2 if left < x else 0.0)
                if best is None or cost < best[0]:
                    best = cost, area
        if best is None or (best[0] > WORST and not needed):
            return None
        self._take(best[1])
        return best[1][0], (best[1][1] + best[1][3]) / 2

    def _cost(self, area: Area, own: int) -> float:
        """The cost of hiding an area: high for boxes and words, for curves by the number of their points."""
        hidden = sum(
            100.0 for other in {near for cell in cells(area) for near in self.areas.get(cell, ())} if meet(area, other)
        )
        for cell in cells(area):
            for x, y, at in self.points.get(cell, {}).values():
                if area[0] - 1 <= x <= area[2] + 1 and area[1] <= y <= area[3]:
                    hidden += 0.5 if at == own else 2.0
        return hidden


def cells(area: Area) -> Iterator[tuple[int, int]]:
    """The cells of the grid that an area touches."""
    for column in range(int(area[0] // GRID), int(area[2] // GRID) + 1):
        for row in range(int(area[1] // GRID), int(area[3] // GRID) + 1):
            yield column, row


def meet(area: Area, other: Area) -> bool:
    """Whether two areas overlap."""
    return area[0] < other[2] and other[0] < area[2] and area[1] < other[3] and other[1] < area[3]


TIP = 7.0  # length of the point of an arrow
APART, SHARE = 24.0, 0.6  # between arrows at one box, and the part of its width that they take at most
ROOM = 14.0  # that a route may move sideways while it passes a layer
SLIGHT = 9.0  # arrows that lean less are drawn upright
SAMPLES = 12  # points of a curve between two of its ends


def outlines(arrows: Sequence[Arrow], arrangement: Layout, sizes: Sequence[Point]) -> list[list[Point]]:
    """The points of each arrow, from the edge of one box to that of the other; between them two in each layer."""
    lines = [leaning(route) for route in arrangement.routes]
    sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}  # of a box, its lower or upper edge
    for at, (arrow, line) in enumerate(zip(arrows, lines, strict=True)):
        for box, end, near in ((arrow.start, 0, 1), (arrow.end, len(line) - 1, len(line) - 2)):
            sides.setdefault((box, line[near][1] > line[end][1]), []).append((line[near][0], at, end))
    for (box, lower), ends in sides.items():
        x, y = arrangement.places[box]
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
    """A route that passes each layer at a slant towards its next point, as far as the boxes leave room."""
    points = list(route)
    for at in range(1, len(points) - 1, 2):
        (x0, y0), (x, upper), (_, lower), (x1, y1) = route[at - 1 : at + 3]
        lean = (x1 - x0) / (y1 - y0) * (lower - upper) / 2
        lean = max(-ROOM, min(ROOM, lean))
        points[at], points[at + 1] = (x - lean, upper), (x + lean, lower)
    return points


def curve(points: Sequence[Point]) -> str:
    """A smooth path that leaves and reaches boxes vertically; it ends where the tip begins."""
    ends = shortened(points)
    path = f"M{ends[0][0]:.1f},{ends[0][1]:.1f}"
    for _, (x0, y0), (x1, y1), (x, y) in pieces(ends):
        path += f" C{x0:.1f},{y0:.1f} {x1:.1f},{y1:.1f} {x:.1f},{y:.1f}"
    return path


def pieces(points: Sequence[Point]) -> Iterator[tuple[Point, Point, Point, Point]]:
    """The cubics of a curve through points: vertical at both ends, straight where it passes a layer."""
    slopes = [0.0] * len(points)
    for at in range(1, len(points) - 1, 2):
        (x0, y0), (x1, y1) = points[at : at + 2]
        slopes[at] = slopes[at + 1] = (x1 - x0) / (y1 - y0)
    for at, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        half, wide = (y1 - y0) / 2, abs(x1 - x0)
        out, back = (
            swing if abs(swing := slope * half) <= 2 * ROOM else math.copysign(min(abs(swing), wide), swing)
            for slope in slopes[at : at + 2]
        )  # a long piece stays between its ends
        yield (x0, y0), (x0 + out, y0 + half), (x1 - back, y1 - half), (x1, y1)


def shortened(points: Sequence[Point]) -> list[Point]:
    """The points of an arrow without its tip."""
    ends = list(points)
    down = math.copysign(TIP, ends[-1][1] - ends[-2][1])
    ends[-1] = (ends[-1][0], ends[-1][1] - down)
    return ends


BERNSTEIN = [
    ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3)
    for t in (step / SAMPLES for step in range(1, SAMPLES + 1))
]


def samples(points: Sequence[Point]) -> list[Point]:
    """Points on the curve, close to each other, from its start to its end."""
    places = [points[0]]
    for (x0, y0), (x1, y1), (x2, y2), (x3, y3) in pieces(points):
        places += ((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3) for a, b, c, d in BERNSTEIN)
    return places


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


MOST_DRAWN = 8_000  # boxes, for which a drawing takes some five seconds
CELL, LINE, PAD = 7.3, 17.0, 12.0  # of a character, a line, and around the words
SMALL_CELL = 6.8  # of a character beside an arrow
MARGIN, TITLE, LEGEND = 24.0, 34.0, 56.0
LONG = 10  # characters beside an arrow that are left out where the box at its end says the same
LIGHT = 0.1  # weight of a constant beside an operation
AGAIN, VALUES, SUMS = "between iterations of a loop", "numbers: values", "numbers: cotangents, sent and added up"
KINDS = ("leaf", "constant", "operation", "output", "gradient")

STYLE = """
.gradcli{--ink:#0f172a;--soft:#56657a;--paper:#ffffff;--leaf:#dbeafe;--constant:#f1f5f9;--operation:#ffffff;
--output:#dcfce7;--gradient:#ffedd5;--back:#b93a0a;background:var(--paper)}
@media (prefers-color-scheme:dark){.gradcli{--ink:#e2e8f0;--soft:#9aa9bd;--paper:#0f172a;--leaf:#1e3a5f;
--constant:#1e293b;--operation:#17202f;--output:#14432a;--gradient:#4a2a12;--back:#fb923c}}
.gradcli text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--ink)}
.gradcli .title{font-weight:600;font-size:13px}
.gradcli .second,.gradcli .legend text{fill:var(--soft)}
.gradcli .legend text{font-size:11px}
.gradcli .box rect,.gradcli .legend rect{stroke:var(--soft);stroke-width:1}
.gradcli .leaf rect{fill:var(--leaf)}.gradcli .constant rect{fill:var(--constant)}
.gradcli .operation rect{fill:var(--operation)}.gradcli .output rect{fill:var(--output);stroke-width:2}
.gradcli .gradient rect{fill:var(--gradient);stroke-width:2}
.gradcli path{fill:none;stroke:var(--soft);stroke-width:1.3}
.gradcli .again path{stroke-dasharray:5 4}
.gradcli .tip{fill:var(--soft);stroke:none}
.gradcli .backward path{stroke:var(--back)}.gradcli .backward .tip{fill:var(--back);stroke:none}
.gradcli .sent{fill:var(--back);font-size:11px}
.gradcli .ground{fill:var(--paper)}
.gradcli .ct{fill:var(--back)}
.gradcli.show-backward .idle{opacity:.4}
.gradcli.show-forward .backward,.gradcli.show-backward .forward{display:none}
"""


def svg(picture: Picture, backward: bool = False) -> str:
    """The whole drawing, with its style; raises GradcliError GC510 for more than 8,000 boxes."""
    if len(picture.boxes) > MOST_DRAWN:
        raise error(
            "GC510",
            f"a drawing of {len(picture.boxes):,} boxes is too large to look at (at most {MOST_DRAWN:,})",
            help="use --format dot or json, which take any size",
        )
    high = max((size(box)[1] for box in picture.boxes), default=0.0)
    sizes = [(size(box)[0], high) for box in picture.boxes]  # of equal height, so that no arrow cuts a corner
    weights = [LIGHT if box.kind == "constant" else 1.0 for box in picture.boxes]
    between = [arrow for arrow in picture.arrows if arrow.start != arrow.end]
    arrangement = layout(sizes, [(arrow.start, arrow.end) for arrow in between], weights)
    lines = outlines(between, arrangement, sizes)
    words = beside(picture.boxes, between, lines, arrangement.places, sizes)
    left = min([0.0, *(x for word in words if word for x in (word[0],))])
    right = max([arrangement.width, *(word[0] + wide(between[at].sent) for at, word in enumerate(words) if word)])
    title = " ; ".join(line.strip() for line in picture.title.splitlines() if line.strip())
    title = visible(title if len(title) <= 160 else title[:157] + "...")
    below, least = legend(picture, arrangement.height + MARGIN + TITLE + LEGEND)
    full = max(right - left, CELL * 1.1 * width(title), least) + 2 * MARGIN
    tall = arrangement.height + 2 * MARGIN + TITLE + LEGEND
    direction = "backward" if backward else "forward"
    drawing = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gradcli show-{direction}" viewBox="0 0 {full:.0f} {tall:.0f}" '
        f'width="{full:.0f}" height="{tall:.0f}" role="img" aria-label="{escaped(title)}">',
        f"<style>{STYLE}</style>",
        f'<g class="canvas"><text class="title" x="{MARGIN:.0f}" y="{MARGIN + 6:.0f}">{escaped(title)}</text>',
        f'<g transform="translate({(full - left - right) / 2:.1f},{MARGIN + TITLE:.1f})">',
    ]
    for arrow, line, word in zip(between, lines, words, strict=True):
        drawing += drawn_arrow(arrow, line, word)
    drawing += (turning(arrow.start, arrangement.places, sizes) for arrow in picture.arrows if arrow.start == arrow.end)
    drawing += (drawn(at, box, arrangement.places[at], sizes[at]) for at, box in enumerate(picture.boxes))
    return "\n".join([*drawing, "</g>", below, "</g></svg>"])


def size(box: Box) -> Point:
    """Width and height of a box: the width of its longest line, and two lines if it has a number."""
    lines = [box.title, second(box), box.cotangent]
    broad = max(width(visible(line)) for line in lines) * CELL + 2 * PAD
    return max(broad, 48.0), LINE * (1 + bool(second(box) or box.cotangent)) + PAD


def second(box: Box) -> str:
    return "" if box.value == box.title else box.value


def wide(text: str) -> float:
    """The width of a word next to an arrow."""
    return width(text) * SMALL_CELL


def drawn(at: int, box: Box, place: Point, extent: Point) -> str:
    """One box with its words; the facts shown at the pointer are a `title`."""
    (x, y), (broad, tall) = place, extent
    left, top = x - broad / 2, y - tall / 2
    phrase = "\n".join(f"{name}: {visible(value)}" for name, value in box.facts)
    kind = f"{box.kind} idle" if box.idle else box.kind
    parts = [
        f'<g class="box {kind}" id="n{at}" tabindex="0"><title>{escaped(phrase)}</title>',
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{broad:.1f}" height="{tall:.1f}" rx="7"/>',
    ]
    title = escaped(visible(box.title))
    numbers = (("forward", "second", second(box)), ("backward", "ct", box.cotangent))
    if second(box) and box.cotangent:
        parts.append(f'<text x="{x:.1f}" y="{y - LINE / 2 + 4:.1f}" text-anchor="middle">{title}</text>')
    elif not (second(box) or box.cotangent):
        parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{title}</text>')
    for direction, style, number in numbers:
        if number:
            where = f'x="{x:.1f}" y="{y + LINE / 2 + 4:.1f}" text-anchor="middle"'
            parts.append(f'<text class="{direction} {style}" {where}>{escaped(visible(number))}</text>')
        if bool(second(box)) != bool(box.cotangent):  # alone in one of the directions the title stands in the middle
            high = y - LINE / 2 + 4 if number else y + 4
            parts.append(f'<text class="{direction}" x="{x:.1f}" y="{high:.1f}" text-anchor="middle">{title}</text>')
    return "".join([*parts, "</g>"])


def beside(
    boxes: Sequence[Box],
    arrows: Sequence[Arrow],
    lines: Sequence[Sequence[Point]],
    places: Sequence[Point],
    sizes: Sequence[Point],
) -> list[Point | None]:
    """The position of the word of each arrow; those at boxes that add up several gradients come first."""
    areas = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    labels = Labels(areas, [samples(line) for line in lines])
    comes: dict[int, int] = {}
    for arrow in arrows:
        comes[arrow.start] = comes.get(arrow.start, 0) + arrow.live
    words: list[Point | None] = [None] * len(lines)
    for at in sorted(range(len(lines)), key=lambda at: comes[arrows[at].start] < 2):
        arrow = arrows[at]
        if arrow.sent:
            alone = comes[arrow.start] < 2 and arrow.sent == boxes[arrow.start].cotangent
            if not alone or len(arrow.sent) <= LONG:
                words[at] = labels.place(at, wide(arrow.sent), needed=not alone)
    return words


def turning(at: int, places: Sequence[Point], sizes: Sequence[Point]) -> str:
    """An arrow from a box to itself, in both directions."""
    path, point = loop(places[at], sizes[at])
    ends = f'data-start="n{at}" data-end="n{at}"'
    return "".join(
        f'<g class="arrow {direction} again" {ends}><path d="{path}"/>{point}</g>'
        for direction in ("forward", "backward")
    )


def drawn_arrow(arrow: Arrow, line: Sequence[Point], word: Point | None) -> list[str]:
    """An arrow in both directions; the backward one is labelled with what is sent, if anything."""
    ends = f'data-start="n{arrow.start}" data-end="n{arrow.end}"'
    again = " again" if arrow.again else ""
    parts = [f'<g class="arrow forward{again}" {ends}><path d="{curve(line)}"/>{tip(line)}</g>']
    if arrow.live:
        back = line[::-1]
        text = ""
        if word is not None:
            x, y = word  # the ground hides what passes below: between two numbers a line would look like a minus
            text = (
                f'<rect class="ground" x="{x - 1:.1f}" y="{y - TALL / 2:.1f}" width="{wide(arrow.sent) + 2:.1f}" '
                f'height="{TALL}"/>'
                f'<text class="sent" x="{x:.1f}" y="{y + TALL / 2 - 3:.1f}">{escaped(arrow.sent)}</text>'
            )
        parts.append(f'<g class="arrow backward{again}" {ends}><path d="{curve(back)}"/>{tip(back)}{text}</g>')
    return parts


def legend(picture: Picture, y: float) -> tuple[str, float]:
    """The legend of colours and arrows, and its width."""
    present = {box.kind for box in picture.boxes}
    parts, x = ['<g class="legend">'], MARGIN
    for kind in KINDS:
        if kind in present:
            parts.append(f'<g class="{kind}"><rect x="{x:.1f}" y="{y - 9:.1f}" width="14" height="11" rx="3"/></g>')
            parts.append(f'<text x="{x + 19:.1f}" y="{y:.1f}">{kind}</text>')
            x += 19 + SMALL_CELL * len(kind) + 14
    broad, low, x = x - MARGIN, y + 18, MARGIN
    if any(arrow.again for arrow in picture.arrows):
        parts.append(f'<g class="again"><path d="M{x:.1f},{low - 4:.1f} h26"/></g>')
        parts.append(f'<text x="{x + 31:.1f}" y="{low:.1f}">{AGAIN}</text>')
        x += 31 + SMALL_CELL * len(AGAIN) + 14
    sums = any(box.cotangent for box in picture.boxes) and not picture.folded
    for direction, words in (("forward", VALUES), ("backward", SUMS)):
        if sums if direction == "backward" else any(second(box) for box in picture.boxes) and not picture.folded:
            parts.append(f'<text class="{direction}" x="{x:.1f}" y="{low:.1f}">{words}</text>')
            broad = max(broad, x - MARGIN + SMALL_CELL * len(words))
    return "".join([*parts, "</g>"]), max(broad, x - MARGIN)
