"""Boxes and arrows with their labels, for all picture formats.

A graph of many nodes is drawn by source line: the nodes of a line are one box, and arrows inside it are left out.
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.base.results.graph_vertices import Extent
from gradcli.graph.exact import count_text
from gradcli.rendering.graphs.numbers import brief, detailed
from gradcli.rendering.values import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.results.calculations import Value
    from gradcli.base.results.graph_vertices import Graph, Vertex
    from gradcli.rendering.document import Style

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

    `again`: it leads to the next iteration of a loop.
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
    boxes = tuple(
        box(node, style, torch, ends.get(node.index), short, not flows(graph, node)) for node in graph.vertices
    )
    arrows = tuple(
        Arrow(read, node.index, number(sent, style, short), sent is not None or flows(graph, graph.vertices[read]))
        for node in graph.vertices
        for read, sent in zip(node.inputs, node.sent or (None,) * len(node.inputs), strict=True)
    )
    return Picture(graph.expression, boxes, arrows, False)


def flows(graph: Graph, node: Vertex) -> bool:
    """Whether backward sends something to a node; True if no backward is known."""
    return node.cotangent is not None or not any(graph.vertices[at].cotangent is not None for at in graph.outputs)


def box(node: Vertex, style: Style, torch: bool, end: str | None, short: bool = True, idle: bool = False) -> Box:
    """The box of one node: `q: matmul`, with its value and its cotangent."""
    name = node.torch if torch and node.role != "constant" else node.name if node.role != "constant" else node.text
    title = f"{node.text} {name}" if torch and node.role == "leaf" else name
    if node.iterations:
        title = f"{count_text(node.iterations)} iterations"
    if node.label and node.label != title:
        title = f"{node.label}: {title}"
    facts = [("step", str(node.index)), ("expression", node.text), ("type", node.type)]
    if node.label:
        facts.append(("name", node.label))
    if end is not None:
        facts.append(("gives", end))
        if end != "output":
            title = f"{end}: {title}"
    if node.value is not None:
        facts.append(("value", detailed(node.value, style.digits)))
    if node.cotangent is not None:
        facts.append(("cotangent", detailed(node.cotangent, style.digits)))
    if node.body:
        facts.append(("each iteration", node.body))
    if node.note:
        facts.append(("own rule", node.note))
    if node.span is not None:
        facts.append(("source", f"{node.span.line}:{node.span.column}"))
    elif node.line is not None:
        facts.append(("source", f"line {node.line}"))
    kind = node.role if end is None else "output" if end == "output" else "gradient"
    value, cotangent = number(node.value, style, short), number(node.cotangent, style, short)
    if node.role == "constant" and value.removesuffix(".0") == node.text:
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
            "index": node.index,
            "name": node.name,
            "label": node.label or None,
            "torch": node.torch,
            "role": node.role,
            "inputs": list(node.inputs),
            "type": node.type,
            "text": node.text,
            **({"note": node.note} if node.note else {}),
            **({"iterations": node.iterations, "body": node.body} if node.iterations else {}),
            "span": list(node.span) if node.span else None,
            "line": node.line,
            "value": whole(node.value),
            "cotangent": whole(node.cotangent),
            "sent": [whole(value) for value in node.sent],
        }
        for node in graph.vertices
    ]
    return {
        "expression": graph.expression,
        "at": jsonable(graph.at),
        "nodes": vertices,
        "outputs": list(graph.outputs),
        "gradient": dict(graph.gradient),
    }
