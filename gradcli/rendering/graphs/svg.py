"""Pictures as SVG without external files: both directions, and facts under the pointer.

The drawing holds the forward and the backward arrows; a class on the root selects which are visible. User text is
escaped, and nothing is loaded from anywhere.
"""

from __future__ import annotations

from html import escape as escaped

from gradcli.diagnostics import error
from gradcli.rendering.graphs.labels import TALL, Labels
from gradcli.rendering.graphs.layout import layout
from gradcli.rendering.graphs.routes import curve, loop, outlines, samples, tip
from gradcli.rendering.text import visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.rendering.graphs.picture import Arrow, Box, Picture

    Point = tuple[float, float]

MOST_DRAWN = 1500  # boxes; a larger drawing is not legible
CELL, LINE, PAD = 7.3, 17.0, 12.0  # of a character, a line, and around the words
SMALL_CELL = 6.8  # of a character beside an arrow
MARGIN, TITLE, LEGEND = 24.0, 34.0, 56.0
LONG = 10  # characters beside an arrow that are left out where the box at its end says the same
LIGHT = 0.1  # weight of a constant beside an operation
AGAIN, VALUES, SUMS = "between turns of a loop", "numbers: values", "numbers: cotangents, sent and added up"
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
.gradcli .sent{fill:var(--back);font-size:11px;paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.gradcli .ct{fill:var(--back)}
.gradcli.show-backward .idle{opacity:.4}
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
    high = max((size(box)[1] for box in picture.boxes), default=0.0)
    sizes = [(size(box)[0], high) for box in picture.boxes]  # of equal height, so that no arrow cuts a corner
    weights = [LIGHT if box.kind == "constant" else 1.0 for box in picture.boxes]
    between = [arrow for arrow in picture.arrows if arrow.start != arrow.end]
    found = layout(sizes, [(arrow.start, arrow.end) for arrow in between], weights)
    lines = outlines(between, found, sizes)
    words = beside(picture.boxes, between, lines, found.places, sizes)
    left = min([0.0, *(x for word in words if word for x in (word[0],))])
    right = max([found.width, *(word[0] + wide(between[at].sent) for at, word in enumerate(words) if word)])
    title = " ; ".join(line.strip() for line in picture.title.splitlines() if line.strip())
    title = visible(title if len(title) <= 160 else title[:157] + "...")
    below, least = legend(picture, found.height + MARGIN + TITLE + LEGEND)
    full = max(right - left, CELL * 1.1 * width(title), least) + 2 * MARGIN
    tall = found.height + 2 * MARGIN + TITLE + LEGEND
    direction = "backward" if backward else "forward"
    drawing = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gradcli show-{direction}" viewBox="0 0 {full:.0f} {tall:.0f}" '
        f'width="{full:.0f}" height="{tall:.0f}" role="img" aria-label="{escaped(title)}">',
        f"<style>{STYLE}</style>",
        f'<g class="canvas"><text class="title" x="{MARGIN:.0f}" y="{MARGIN + 6:.0f}">{escaped(title)}</text>',
        f'<g transform="translate({(full - left - right) / 2:.1f},{MARGIN + TITLE:.1f})">',
    ]
    for one, line, word in zip(between, lines, words, strict=True):
        drawing += drawn_arrow(one, line, word)
    drawing += (turning(one.start, found.places, sizes) for one in picture.arrows if one.start == one.end)
    drawing += (drawn(at, box, found.places[at], sizes[at]) for at, box in enumerate(picture.boxes))
    return "\n".join([*drawing, "</g>", below, "</g></svg>"])


def size(box: Box) -> Point:
    """Width and height of a box: as its longest line, and two lines where there is a number."""
    lines = [box.title, second(box), box.cotangent]
    broad = max(width(visible(line)) for line in lines) * CELL + 2 * PAD
    return max(broad, 48.0), LINE * (1 + bool(second(box) or box.cotangent)) + PAD


def second(box: Box) -> str:
    return "" if box.value == box.title else box.value


def wide(text: str) -> float:
    """The width of a word beside an arrow."""
    return width(text) * SMALL_CELL


def drawn(at: int, box: Box, place: Point, extent: Point) -> str:
    """One box with its words; what the pointer shows is a `title`."""
    (x, y), (broad, tall) = place, extent
    left, top = x - broad / 2, y - tall / 2
    told = "\n".join(f"{name}: {visible(value)}" for name, value in box.facts)
    kind = f"{box.kind} idle" if box.idle else box.kind
    parts = [
        f'<g class="box {kind}" id="n{at}" tabindex="0"><title>{escaped(told)}</title>',
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
    """Where the word of each arrow stands: first those of boxes that add several gradients up."""
    areas = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    labels = Labels(areas, [samples(line) for line in lines])
    comes: dict[int, int] = {}
    for one in arrows:
        comes[one.start] = comes.get(one.start, 0) + one.live
    found: list[Point | None] = [None] * len(lines)
    for at in sorted(range(len(lines)), key=lambda at: comes[arrows[at].start] < 2):
        one = arrows[at]
        if one.sent:
            alone = comes[one.start] < 2 and one.sent == boxes[one.start].cotangent
            if not alone or len(one.sent) <= LONG:
                found[at] = labels.place(at, wide(one.sent), needed=not alone)
    return found


def turning(at: int, places: Sequence[Point], sizes: Sequence[Point]) -> str:
    """An arrow from a box to itself, in both directions."""
    path, point = loop(places[at], sizes[at])
    ends = f'data-start="n{at}" data-end="n{at}"'
    return "".join(
        f'<g class="arrow {direction} again" {ends}><path d="{path}"/>{point}</g>'
        for direction in ("forward", "backward")
    )


def drawn_arrow(one: Arrow, line: Sequence[Point], word: Point | None) -> list[str]:
    """An arrow in both directions; what is sent back stands beside the backward one, where something is."""
    ends = f'data-start="n{one.start}" data-end="n{one.end}"'
    again = " again" if one.again else ""
    parts = [f'<g class="arrow forward{again}" {ends}><path d="{curve(line)}"/>{tip(line)}</g>']
    if one.live:
        back = line[::-1]
        text = ""
        if word is not None:
            text = f'<text class="sent" x="{word[0]:.1f}" y="{word[1] + TALL / 2 - 3:.1f}">{escaped(one.sent)}</text>'
        parts.append(f'<g class="arrow backward{again}" {ends}><path d="{curve(back)}"/>{tip(back)}{text}</g>')
    return parts


def legend(picture: Picture, y: float) -> tuple[str, float]:
    """What the colours and arrows mean, and how wide that is."""
    present = {box.kind for box in picture.boxes}
    parts, x = ['<g class="legend">'], MARGIN
    for kind in KINDS:
        if kind in present:
            parts.append(f'<g class="{kind}"><rect x="{x:.1f}" y="{y - 9:.1f}" width="14" height="11" rx="3"/></g>')
            parts.append(f'<text x="{x + 19:.1f}" y="{y:.1f}">{kind}</text>')
            x += 19 + SMALL_CELL * len(kind) + 14
    broad, low, x = x - MARGIN, y + 18, MARGIN
    if any(one.again for one in picture.arrows):
        parts.append(f'<g class="again"><path d="M{x:.1f},{low - 4:.1f} h26"/></g>')
        parts.append(f'<text x="{x + 31:.1f}" y="{low:.1f}">{AGAIN}</text>')
        x += 31 + SMALL_CELL * len(AGAIN) + 14
    sums = any(box.cotangent for box in picture.boxes) and not picture.folded
    for direction, words in (("forward", VALUES), ("backward", SUMS)):
        if sums if direction == "backward" else any(second(box) for box in picture.boxes) and not picture.folded:
            parts.append(f'<text class="{direction}" x="{x:.1f}" y="{low:.1f}">{words}</text>')
            broad = max(broad, x - MARGIN + SMALL_CELL * len(words))
    return "".join([*parts, "</g>"]), max(broad, x - MARGIN)
