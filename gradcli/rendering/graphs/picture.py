"""Boxes and arrows with their labels, for all picture formats.

A graph of many nodes is drawn by source line: the nodes of a line are one box, and arrows inside it are left out.
"""

from __future__ import annotations

from gradcli.graph.exact import count_text
from gradcli.records import NamedTuple
from gradcli.rendering.graphs.numbers import brief, detailed
from gradcli.rendering.values import jsonable
from gradcli.results.graph_vertices import Extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.rendering.document import Style
    from gradcli.results.calculations import Value
    from gradcli.results.graph_vertices import Graph, Vertex

MOST_BOXES = 150  # of nodes of their own; a larger graph is drawn by source line
TEXT = 40  # characters of a formula that a box shows


class Box(NamedTuple):
    """A box: its title, its content, and further facts.

    `kind`: leaf, constant, operation, output, gradient. A box is `idle` if backward sends nothing to it although it
    sends to others; `where` is the order in which equal boxes are drawn.
    """

    title: str
    value: str
    cotangent: str
    kind: str
    facts: tuple[tuple[str, str], ...]
    idle: bool = False


class Arrow(NamedTuple):
    """From the box that is read to the box that reads it; `sent` is what goes back along it, if it is `live`.

    `again`: it leads to the next turn of a loop.
    """

    start: int
    end: int
    sent: str
    live: bool = True
    again: bool = False


class Picture(NamedTuple):
    """Boxes in topological order and arrows between them; `folded`: a box is a line of source."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    folded: bool


def picture(graph: Graph, style: Style, *, torch: bool = False, most: int = MOST_BOXES, short: bool = True) -> Picture:
    """The boxes and arrows of a graph; over `most` nodes, a box per source line. `short`: numbers fit into boxes."""
    if len(graph.vertices) > most:
        from gradcli.rendering.graphs.folding import folded

        return folded(graph, style, torch)
    ends = {**dict.fromkeys(graph.outputs, "output"), **{at: f"d/d{name}" for name, at in graph.gradient.items()}}
    boxes = tuple(box(one, style, torch, ends.get(one.index), short, not flows(graph, one)) for one in graph.vertices)
    arrows = tuple(
        Arrow(read, one.index, number(sent, style, short), sent is not None or flows(graph, graph.vertices[read]))
        for one in graph.vertices
        for read, sent in zip(one.inputs, one.sent or (None,) * len(one.inputs), strict=True)
    )
    return Picture(graph.expression, boxes, arrows, False)


def flows(graph: Graph, one: Vertex) -> bool:
    """Whether backward sends something to a node; True if no backward is known."""
    return one.cotangent is not None or not any(graph.vertices[at].cotangent is not None for at in graph.outputs)


def box(one: Vertex, style: Style, torch: bool, end: str | None, short: bool = True, idle: bool = False) -> Box:
    """The box of one node: `q: matmul`, with its value and its cotangent."""
    name = one.torch if torch and one.role != "constant" else one.name if one.role != "constant" else one.text
    title = f"{one.text} {name}" if torch and one.role == "leaf" else name
    if one.turns:
        title = f"{count_text(one.turns)} turns"
    if one.label and one.label != title:
        title = f"{one.label}: {title}"
    facts = [("step", str(one.index)), ("expression", one.text), ("type", one.type)]
    if one.label:
        facts.append(("name", one.label))
    if end is not None:
        facts.append(("gives", end))
        if end != "output":
            title = f"{end}: {title}"
    if one.value is not None:
        facts.append(("value", detailed(one.value, style.digits)))
    if one.cotangent is not None:
        facts.append(("cotangent", detailed(one.cotangent, style.digits)))
    if one.body:
        facts.append(("each turn", one.body))
    if one.note:
        facts.append(("own rule", one.note))
    if one.span is not None:
        facts.append(("source", f"{one.span.line}:{one.span.column}"))
    elif one.line is not None:
        facts.append(("source", f"line {one.line}"))
    kind = one.role if end is None else "output" if end == "output" else "gradient"
    value, cotangent = number(one.value, style, short), number(one.cotangent, style, short)
    if one.role == "constant" and value.removesuffix(".0") == one.text:
        value = ""
    return Box(shortened(title), value, cotangent, kind, tuple(facts), idle)


def number(value: Value | Extent | None, style: Style, short: bool) -> str:
    """A value for a box, or for a tree."""
    if value is None:
        return ""
    return brief(value, style.digits) if short else detailed(value, style.digits, 4)


def shortened(text: str, most: int = TEXT) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= most else text[: most - 3] + "..."


def payload(graph: Graph) -> dict[str, object]:
    """The graph as JSON fields, without shortening; null for an array that was not kept."""

    def whole(value: Value | Extent | None) -> object:
        return None if isinstance(value, Extent) else jsonable(value)

    vertices = [
        {
            "index": one.index,
            "name": one.name,
            "label": one.label or None,
            "torch": one.torch,
            "role": one.role,
            "inputs": list(one.inputs),
            "type": one.type,
            "text": one.text,
            **({"note": one.note} if one.note else {}),
            **({"turns": one.turns, "body": one.body} if one.turns else {}),
            "span": list(one.span) if one.span else None,
            "line": one.line,
            "value": whole(one.value),
            "cotangent": whole(one.cotangent),
            "sent": [whole(value) for value in one.sent],
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
