"""A wrong claim about arrays goes in; whether it would be right for special ones comes out: symmetric, diagonal, ...

Each array of the program is held at such a value, and both sides are compared again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.cuts import hold
from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.floats import evaluated
from gradcli.checks.shown import node_text
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.case import Floats, Values
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
    for name, rank, words, change in SHAPES:
        for array in _arrays(judged, order, rank):
            if all(_agree(judged, array, change, place) for place in judged.places):
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


def _agree(judged: Judgement, array: Node, change: Callable[[Floats], Floats], place: Values) -> bool:
    """Whether both sides are equal once an array has been changed, and were not before."""
    values = dict(place)
    found = evaluated([array], values)[0]
    changed = change(found)
    if not np.isfinite(found).all() or np.array_equal(changed, found):
        return False
    sides = []
    for side in (judged.right, judged.claimed):
        held = hold(side, [array])
        name = held.targets[0].params["name"]
        for key, (first, *rest) in held.inputs.items():
            inner = evaluated([first, *rest], values)
            values[key] = inner[0] - inner[1] if rest else inner[0]
        sides.append(evaluated([held.output], {**values, name: changed})[0])
    scale = max(float(np.abs(side).max(initial=0.0)) for side in sides)
    return bool(scale) and bool((np.abs(sides[0] - sides[1]) <= CLOSE * scale).all())
