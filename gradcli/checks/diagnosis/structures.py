"""A wrong claim about arrays goes in; whether it would be right for special ones comes out: symmetric, diagonal, ...

Each array of the program is held at such a value, and both sides are compared again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.diagnosis.judgement import dependents
from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.shown import node_text
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.case import Floats
    from gradcli.checks.diagnosis.judgement import Judgement

MOST_ARRAYS = 12
CLOSE = 1e-9


def symmetric(x: Floats) -> Floats:
    return (x + x.T) / 2


def diagonal(x: Floats) -> Floats:
    return np.diag(np.diag(x))


def mirrored(x: Floats) -> Floats:
    return (x + x[::-1]) / 2


SHAPES: tuple[tuple[str, int, str, Callable[[Floats], Floats]], ...] = (
    ("symmetric matrix", 2, "is symmetric", symmetric),
    ("diagonal matrix", 2, "is diagonal", diagonal),
    ("reversed vector", 1, "reads the same backwards", mirrored),
)


def by_structure(judged: Judgement) -> list[Reading]:
    """The array that a claim takes for a special one: at most one reading."""
    order = reachable([judged.right, judged.claimed])
    arrays = {rank: _arrays(judged, order, rank) for _, rank, _, _ in SHAPES}
    values = judged.values(order, judged.places) if any(arrays.values()) else None
    if values is None:
        return []
    above = dependents(order)
    for name, rank, words, change in SHAPES:
        for array in arrays[rank]:
            if _agree(judged, array, change, above[array], values):
                what = node_text(array, 40) if array.primitive is LEAF or array.args else "a constant"
                told = f"consistent with an array taken for another one: the claim is right where `{what}` {words}"
                span = array.span if array.args else None
                return [Reading(name, told, node=what, span=None if span is None else list(span))]
    return []


def _arrays(judged: Judgement, order: Sequence[Node], rank: int) -> list[Node]:
    """Vectors, or square matrices, that are not what is compared; inputs first."""
    found = [
        node
        for node in order
        if node.type.kind == "float"
        and node.type.rank == rank
        and node.shape[0] == node.shape[-1] > 1
        and node not in (judged.right, judged.claimed)
    ]
    return sorted(found, key=lambda node: (len(node.args) > 0, node.serial))[:MOST_ARRAYS]


def _agree(
    judged: Judgement,
    array: Node,
    change: Callable[[Floats], Floats],
    above: Sequence[Node],
    values: Mapping[Node, Floats],
) -> bool:
    """Whether both sides are equal at every place once an array has been changed, and it was another one before."""
    own = values[array]
    changed = np.stack([change(value) for value in own])
    if not np.isfinite(own).all() or any(map(np.array_equal, changed, own)):
        return False
    sides = judged.changed([judged.right, judged.claimed], array, changed, above, values)
    if sides is None:
        return False
    right, claimed = (side.reshape(len(changed), -1) for side in sides)
    scale = np.maximum(np.abs(right), np.abs(claimed)).max(axis=1, initial=0.0)
    return bool(scale.all() and (np.abs(right - claimed) <= CLOSE * scale[:, None]).all())
