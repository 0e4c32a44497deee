"""Boxes and arrows with their labels, for all picture formats."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.base.results.graph_vertices import Extent
from gradcli.graph.exact import count_text
from gradcli.rendering.graphs.numbers import brief, detailed

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
