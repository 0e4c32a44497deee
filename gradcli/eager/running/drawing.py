"""The graph of a run to draw: that of the last backward, else everything that was built."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import error, visible
from gradcli.eager.running.graphs import beneath
from gradcli.execution.graphs import Graph, Vertex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.eager.running.graphs import Backward, Graphs, Made


def drawing(graphs: Graphs, lines: Sequence[str]) -> Graph:
    """The graph with the values of the forward pass and what the last backward sent along it.

    `lines` are those of the file. Raises GradcliError (GC721) where the file built no graph.
    """
    if not graphs.forward:
        raise error(
            "GC721",
            f"{visible(graphs.file, 200)} built no graph",
            help="an operation leaves a node where one of its operands requires a gradient",
        )
    back = graphs.backwards[-1] if graphs.backwards else None
    reached = None if back is None else beneath(graphs.forward, back)
    kept = [one for one in graphs.forward if reached is None or one.number in reached]
    index = {one.number: place for place, one in enumerate(kept)}
    sent, cotangents = returned(back, {one.number: one for one in kept})
    vertices = tuple(vertex(one, index, sent, cotangents) for one in kept)
    read = {place for one in vertices for place in one.inputs}
    ends = tuple(one.index for one in vertices if one.index not in read)
    name = os.path.basename(graphs.file)
    title = name if back is None or not back.text else f"{name}: {back.text}"
    title += f", on {graphs.on}" if graphs.on else ""
    return Graph(title, {}, vertices, ends, {}, tuple(lines))


def returned(back: Backward | None, made: Mapping[int, Made]) -> tuple[dict[tuple[int, int], Any], dict[int, Any]]:
    """What each node sent to each of its inputs (number of the node, position), and what arrived at each."""
    sent: dict[tuple[int, int], Any] = {}
    arrived: dict[int, Any] = {}
    for step in back.ran if back is not None else ():
        number = step.number
        if number is None or number not in made:
            continue
        arrived[number] = step.arrived
        free = list(enumerate(made[number].reads))
        for one in step.sent:
            place = next((place for place, read in free if read == one.to), None)
            if place is not None and one.to is not None:
                free = [(at, read) for at, read in free if at != place]
                sent[number, place] = one.value
    for added in back.added if back is not None else ():
        arrived[added.number] = added.value
    return sent, arrived


def vertex(
    one: Made, index: Mapping[int, int], sent: Mapping[tuple[int, int], Any], arrived: Mapping[int, Any]
) -> Vertex:
    """An operation or a leaf as a picture shows it."""
    leaf = one.node == "leaf"
    places = [(at, index[read]) for at, read in enumerate(one.reads) if read in index]
    name = one.name or "leaf" if leaf else one.rule or operation(one.node)
    return Vertex(
        index[one.number],
        name,
        "AccumulateGrad" if leaf else one.node,
        "leaf" if leaf else "operation",
        tuple(place for _, place in places),
        one.type,
        name if leaf else one.text or one.node,
        None,
        one.line,
        one.value,
        arrived.get(one.number),
        tuple(sent.get((one.number, at)) for at, _ in places),
        "" if leaf else one.name,
        one.note,
        groups=one.groups,
    )


def operation(node: str) -> str:
    """The operation of a node of PyTorch's name: `MulBackward0` is `mul`, `LogSoftmaxBackward0` is `log_softmax`."""
    plain = re.sub(r"Backward\d*$", "", node)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()
