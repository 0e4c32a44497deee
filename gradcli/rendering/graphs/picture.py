"""A graph goes in, boxes and arrows with their words come out: what every format draws, before it has a format.

A graph of many nodes is drawn by source line: the nodes of a line are one box, and arrows inside it go.
"""

from __future__ import annotations

from gradcli.records import NamedTuple
from gradcli.rendering.values import inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.graphs import Graph, Vertex
    from gradcli.execution.results import Value
    from gradcli.rendering.document import Style

MOST_BOXES = 150  # of nodes of their own; a larger graph is drawn by source line
CELL = 4  # entries of an array that a box shows
FEW_DIGITS = 4  # of numbers that are too long for a box
TEXT = 40  # characters of a formula that a box shows


class Box(NamedTuple):
    """A box: its title, what it holds, and facts for who looks closer. `kind`: leaf, constant, operation, output."""

    title: str
    value: str
    cotangent: str
    kind: str
    facts: tuple[tuple[str, str], ...]


class Arrow(NamedTuple):
    """From the box that is read to the box that reads it; `sent` is what comes back along it."""

    start: int
    end: int
    sent: str


class Picture(NamedTuple):
    """Boxes in topological order and arrows between them; `folded` tells that a box is a line of source."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    folded: bool


def picture(graph: Graph, style: Style, *, torch: bool = False, most: int = MOST_BOXES) -> Picture:
    """The boxes and arrows of a graph; over `most` nodes, a box per source line."""
    if len(graph.vertices) > most:
        return folded(graph, style)
    ends = {**dict.fromkeys(graph.outputs, "output"), **{at: f"d/d{name}" for name, at in graph.gradient.items()}}
    boxes = tuple(box(one, style, torch, ends.get(one.index)) for one in graph.vertices)
    arrows = tuple(
        Arrow(read, one.index, number(sent, style))
        for one in graph.vertices
        for read, sent in zip(one.inputs, one.sent or (None,) * len(one.inputs), strict=True)
    )
    return Picture(graph.expression, boxes, arrows, False)


def box(one: Vertex, style: Style, torch: bool, end: str | None) -> Box:
    name = one.torch if torch and one.role != "constant" else one.name if one.role != "constant" else one.text
    title = f"{one.text} {name}" if torch and one.role == "leaf" else name
    facts = [("step", str(one.index)), ("expression", one.text), ("type", one.type)]
    if end is not None:
        facts.append(("gives", end))
        if end != "output":
            title = f"{end}: {title}"
    if one.value is not None:
        facts.append(("value", inline(one.value, style.digits, 60)))
    if one.cotangent is not None:
        facts.append(("cotangent", inline(one.cotangent, style.digits, 60)))
    if one.span is not None:
        facts.append(("source", f"{one.span.line}:{one.span.column}"))
    elif one.line is not None:
        facts.append(("source", f"line {one.line}"))
    kind = "output" if end is not None else one.role
    return Box(shortened(title), number(one.value, style), number(one.cotangent, style), kind, tuple(facts))


def number(value: Value | None, style: Style) -> str:
    """A value as a box shows it: fewer digits where all of them are too long; the facts have them all."""
    if value is None:
        return ""
    text = inline(value, style.digits, CELL)
    return text if len(text) <= TEXT else shortened(inline(value, FEW_DIGITS, CELL))


def shortened(text: str, most: int = TEXT) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def folded(graph: Graph, style: Style) -> Picture:
    """A box per source line, and one for what has no line; leaves stay boxes of their own while they are few."""
    groups: dict[object, list[Vertex]] = {}
    leaves = sum(one.role == "leaf" for one in graph.vertices) <= MOST_BOXES // 2
    place: dict[int, object] = {}
    for one in graph.vertices:
        if one.role == "constant":
            continue
        key: object = ("leaf", one.index) if leaves and one.role == "leaf" else one.line
        place[one.index] = key
        groups.setdefault(key, []).append(one)
    position = {key: number for number, key in enumerate(groups)}
    ends = {place[at] for at in (*graph.outputs, *graph.gradient.values()) if at in place}
    boxes = []
    for key, members in groups.items():
        only = members[0]
        if len(members) == 1 and only.role == "leaf":
            boxes.append(box(only, style, False, None))
            continue
        line = graph.lines[only.line - 1].strip() if only.line and only.line <= len(graph.lines) else ""
        title = f"line {only.line}: {line}" if only.line else "without a line"
        counts: dict[str, int] = {}
        for member in members:
            counts[member.name] = counts.get(member.name, 0) + 1
        often = sorted(counts, key=lambda name: (-counts[name], name))
        told = ", ".join(f"{counts[name]} {name}" for name in often[:8]) + (", ..." if len(often) > 8 else "")
        facts = (("source", title), ("nodes", str(len(members))), ("operations", told))
        kind = "output" if key in ends else "operation"
        boxes.append(Box(shortened(title), f"{len(members)} node{'s' * (len(members) > 1)}", "", kind, facts))
    arrows: dict[tuple[int, int], None] = {}
    for one in graph.vertices:
        for read in one.inputs:
            if read in place and one.index in place and place[read] != place[one.index]:
                arrows[position[place[read]], position[place[one.index]]] = None
    drawn = tuple(Arrow(start, end, "") for start, end in arrows)
    return Picture(graph.expression, tuple(boxes), drawn, True)


def payload(graph: Graph) -> dict[str, object]:
    """The graph as JSON fields: numbers whole, nothing shortened."""
    from gradcli.rendering.values import jsonable

    def sent(one: Vertex) -> Sequence[object]:
        return [jsonable(value) for value in one.sent]

    vertices = [
        {
            "index": one.index,
            "name": one.name,
            "torch": one.torch,
            "role": one.role,
            "inputs": list(one.inputs),
            "type": one.type,
            "text": one.text,
            "span": list(one.span) if one.span else None,
            "line": one.line,
            "value": jsonable(one.value),
            "cotangent": jsonable(one.cotangent),
            "sent": sent(one),
        }
        for one in graph.vertices
    ]
    return {
        "expression": graph.expression,
        "at": jsonable(graph.at),
        "nodes": vertices,
        "outputs": list(graph.outputs),
        "gradient": dict(graph.gradient),
    }
