"""Turns a lowered script into a graph to draw, with values and cotangents where they are known."""

from __future__ import annotations

from gradcli.base.results.graph_vertices import Graph, Group, Vertex
from gradcli.calculator.questions import leaf_names, scalar_output
from gradcli.calculator.repeated.prepared import PreparedScript
from gradcli.calculator.traces.tracing import Tracer, torch_name
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader, reachable
from gradcli.graph.node_text import body_text, formulas, step_names
from gradcli.lowering import missing_values
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.base.results.calculations import Trace, Value
    from gradcli.graph.node import Node
    from gradcli.lowering import Lowered
    from gradcli.lowering.lowered import Block


def draw(
    lowered: Lowered,
    point: Mapping[str, Any],
    at: dict[str, Value],
    dtype: str,
    backend: str,
    gradient: bool,
    notes: tuple[Diagnostic, ...],
) -> Graph:
    """The graph of the outputs, or of the output and its gradient; numbers are left out where a leaf has no value."""
    program = lowered.program
    outputs = list(program.outputs)
    names: Sequence[str] = ()
    slopes: list[Node] = []
    if gradient:
        names = leaf_names(lowered)
        slopes = derivatives.grad(scalar_output(lowered), [program.leaves[name].node for name in names])
    known: Mapping[Node, Any] = {}
    back: Trace | None = None
    order = reachable([*outputs, *slopes])
    if not missing_values(lowered, point):
        question = PreparedScript(lowered, names, [*outputs, *slopes])
        values = question.values(point)
        known = Tape(order).run_all(values, backend=backend, dtype=dtype)
        scalar = len(outputs) == 1 and not outputs[0].type.shape
        if scalar and not gradient and lowered.wrt:
            back = Tracer(lowered, lowered.wrt, values, dtype, backend).trace(at)
    index = {node: i for i, node in enumerate(order)}
    sent, cotangents = returned(back, program.nodes(), index)
    texts = formulas(order, step_names(index), lowered.names)

    def vertex(node: Node, groups: tuple[Group, ...]) -> Vertex:
        """One node as a picture shows it."""
        role = "leaf" if node.primitive is LEAF else "constant" if node.primitive in (CONSTANT, DATA) else "operation"
        place, text = index[node], texts[node]
        return Vertex(
            place,
            text if role == "leaf" else node.primitive.name,
            torch_name(node),
            role,
            tuple(index[arg] for arg in node.args),
            node.type.text(dtype),
            text,
            node.span,
            node.span.line if node.span else None,
            known.get(node),
            cotangents.get(place),
            tuple(sent.get((place, position)) for position in range(len(node.args))),
            "" if role == "leaf" else lowered.names.get(node, ""),
            iterations=node.params["count"] if is_reader(node) else 0,
            body=body_text(node) if is_reader(node) else "",
            groups=groups,
        )

    vertices = tuple(map(vertex, order, groups_of(lowered.blocks, order)))
    return Graph(
        lowered.text,
        at,
        vertices,
        tuple(index[node] for node in outputs),
        {name: index[node] for name, node in zip(names, slopes, strict=True)},
        tuple(lowered.source.text.splitlines()),
        (*lowered.notes, *notes),
    )


def groups_of(blocks: Sequence[Block], order: Sequence[Node]) -> list[tuple[Group, ...]]:
    """The calls, loops and iterations around each node, the outermost first; nodes come by their serial numbers."""
    pending = sorted(enumerate(blocks), key=lambda item: (-item[1].first, item[1].last, item[0]))  # the outermost last
    around: list[tuple[int, Group]] = []  # the last node of each open block
    groups = []
    for node in order:
        while pending and pending[-1][1].first <= node.serial:
            key, block = pending.pop()
            place = f"line {block.span.line}" if block.span else ""
            around.append((block.last, Group(key, block.label, place)))
        around = [group for group in around if group[0] >= node.serial]
        groups.append(tuple([group for _, group in around]) if node.args else ())
    return groups


def returned(
    back: Trace | None, order: Sequence[Node], index: Mapping[Node, int]
) -> tuple[dict[tuple[int, int], Value], dict[int, Value]]:
    """What each node sends to each of its inputs (node, position of the input), and the cotangent of each node."""
    sent: dict[tuple[int, int], Value] = {}
    cotangents: dict[int, Value] = {}
    for step in back.backward if back is not None else ():
        node = order[step.index]
        cotangents[index[node]] = step.cotangent
        free = list(enumerate(node.args))
        for contribution in step.contributions:
            taken = next((position, arg) for position, arg in free if arg is order[contribution.to])
            free.remove(taken)
            sent[index[node], taken[0]] = contribution.value
            cotangents[index[order[contribution.to]]] = contribution.accumulated  # what came last makes it complete
    return sent, cotangents
