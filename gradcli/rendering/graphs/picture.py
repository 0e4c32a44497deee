"""The picture of a graph: a box for each node, or for each source line if there are many nodes."""

from __future__ import annotations

from gradcli.base.results.graph_vertices import Extent
from gradcli.rendering.graphs.picture_boxes import MOST_BOXES, Arrow, Picture, box, flows, number
from gradcli.rendering.value_text import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.results.calculations import Value
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.rendering.document import Style


def picture(graph: Graph, style: Style, *, torch: bool = False, most: int = MOST_BOXES, short: bool = True) -> Picture:
    """The boxes and arrows of a graph; over `most` nodes, a box per source line. `short`: numbers fit into boxes."""
    if len(graph.vertices) > most:
        from gradcli.rendering.graphs.line_folding import folded

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
