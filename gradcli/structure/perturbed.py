"""Computes the outputs of a graph for every single entry of an input moved by a step.

A scalar is read term by term, before its terms are added up: terms that an entry does not reach are left out of the
sum, with their rounding. Only values are read, no derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.structure.flows import TooDense, empty, stacked
from gradcli.structure.ripples import MOST_PAIRS, Ripples
from gradcli.structure.stripes import stripes
from gradcli.structure.terms import terms_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]


class Perturbed:
    """An output as it is when entries of the targets move one at a time; all targets are leaves.

    `rows` and `columns` say for each pair which entry of the output it is, and which entry of the targets (counted one
    after the other) has moved. For a scalar the rows are entries of its terms, and `totals` adds them up.
    """

    def __init__(self, output: Node, targets: Sequence[Node], values: Mapping[str, Any]) -> None:
        terms = terms_of(output) if not output.shape else [(output, 1.0)]
        self.size = sum(target.type.size for target in targets)
        self.here = np.concatenate(
            [np.asarray(values[target.params["name"]], dtype=np.float64).reshape(-1) for target in targets]
        )
        nodes = [node for node, _ in terms]
        self._stripes = stripes(nodes, targets, values, MOST_PAIRS)
        self._ripples = Ripples(nodes, targets, values) if self._stripes is None else None
        known = self._ripples or self._stripes
        assert known is not None
        flows = [empty(node.type.size) if flow is None else flow for node, flow in zip(nodes, known.flows, strict=True)]
        whole = stacked(flows)
        self.rows, self.columns = whole.row_of_each(), whole.columns
        self._weights = np.repeat([weight for _, weight in terms], [flow.pairs for flow in flows])

    def pairs(self, steps: Floats) -> Floats:
        """The value of each pair, for each row of `steps`, by which the entries move: [count, pairs]."""
        if self._stripes is not None:
            values = self._stripes.pairs(self.here, steps)
            return values[0] if len(values) == 1 else np.concatenate(values, axis=1)
        assert self._ripples is not None
        return np.stack([np.concatenate(self._ripples.run(self.here, row)) for row in steps])

    def totals(self, steps: Floats) -> Floats:
        """For each entry, the sum of the terms that it reaches, when it has moved: [count, size]."""
        values = self.pairs(steps) * self._weights
        return np.stack([np.bincount(self.columns, row, self.size) for row in values])


def perturbed(output: Node, targets: Sequence[Node], values: Mapping[str, Any]) -> Perturbed | None:
    """One output when entries of the targets move one at a time; None where too much depends on too much.

    `values` gives every leaf a value. A scalar is read term by term.
    """
    if not sum(target.type.size for target in targets):
        return None
    try:
        result = Perturbed(output, targets, values)
    except TooDense:
        return None
    return result if len(result.columns) else None
