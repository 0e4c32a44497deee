"""Computes how entries change when single entries of an input move, from few evaluations.

Entries that reach no entry in common move together: one colour, one evaluation. That holds where every operation works
entry by entry or moves entries; sums and mixtures are left to `ripples`. Values only, no derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.evaluate import Tape
from gradcli.graph.node import reachable
from gradcli.structure.colouring import coloured
from gradcli.structure.flows import empty, identity, stacked
from gradcli.structure.patterns import MOST_NODES, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node
    from gradcli.structure.flows import Flow

    Floats = NDArray[np.floating[Any]]

MOST_COLOURS = 6  # beside which pairs, one by one, are as quick
MOST_ENTRIES = 1 << 22  # of one value, over all colours


class Stripes:
    """The pairs of some nodes, ready to be computed for any steps; `flows` gives what reaches each node, or None."""

    def __init__(
        self, nodes: Sequence[Node], targets: Sequence[Node], values: Mapping[str, Any], flows: Sequence[Flow | None]
    ) -> None:
        self.flows = flows
        self._tape = Tape(nodes)
        self._nodes = nodes
        names = {node.params["name"] for node, _ in self._tape.inputs}
        self._values = {name: value for name, value in values.items() if name in names}
        self._targets = [(target.params["name"], target.shape, target.type.size) for target in targets]
        all_flows = [empty(node.type.size) if flow is None else flow for node, flow in zip(nodes, flows, strict=True)]
        whole = stacked(all_flows)
        self.colours = coloured(whole, sum(size for _, _, size in self._targets))
        self._at = [
            None if flow is None else self.colours.of[flow.columns] * flow.rows + flow.row_of_each() for flow in flows
        ]

    def pairs(self, here: Floats, steps: Floats) -> list[Floats]:
        """For each node the values of its pairs, [count, pairs], when entry j is here[j] + steps[i, j]."""
        count, number = len(steps), self.colours.number
        moved = self.colours.of == np.arange(number)[:, None]
        points = np.where(moved, (here + steps)[:, None], here).reshape(count * number, -1)
        inputs, first = dict(self._values), 0
        for name, shape, size in self._targets:
            inputs[name] = points[:, first : first + size].reshape(-1, *shape)
            first += size
        results: list[Floats] = []
        for node, at, value in zip(self._nodes, self._at, self._tape.run(inputs, backend="numpy"), strict=True):
            if at is None:
                results.append(np.zeros((count, 0)))
                continue
            entries = np.broadcast_to(np.asarray(value), (count * number, *node.shape)).reshape(count, -1)
            results.append(entries.take(at, axis=1))
        return results


def stripes(nodes: Sequence[Node], targets: Sequence[Node], values: Mapping[str, Any], most: float) -> Stripes | None:
    """The stripes of some nodes; None where entries are added up or mixed, or too many colours are needed.

    Raises TooDense where a flow has more than `most` pairs.
    """
    order = reachable(nodes)
    if len(order) > MOST_NODES:
        return None
    names = {target.params["name"] for target in targets}
    walk = Walk(most, True, {name: value for name, value in values.items() if name not in names})
    known: dict[Node, Flow | None] = {}
    first = 0
    for target in targets:
        known[target] = identity(target.type.size, first)
        first += target.type.size
    for node in order:
        if node in known:
            continue
        flows = [known.get(arg) for arg in node.args]
        moving = any(flow is not None for flow in flows)
        if moving and not (node.primitive.pointwise or node.primitive.moves):
            return None
        known[node] = walk.through(node, flows) if moving else None
    result = Stripes(nodes, targets, values, [known[node] for node in nodes])
    largest = max(node.type.size for node in order)
    few = result.colours.number <= MOST_COLOURS and result.colours.number * largest <= MOST_ENTRIES
    return result if few else None
