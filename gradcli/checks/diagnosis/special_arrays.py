"""Claims that are right for special arrays only (symmetric, diagonal), or on one side of a kink only.

Points are drawn on both sides of every surface where the program is not smooth, claim and gradient are compared in
floats, and right and wrong are sorted by the sign of the surface.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide.floats import evaluator
from gradcli.checks.decide.sample_points import scattered
from gradcli.checks.diagnosis.diagnosis_context import dependents
from gradcli.checks.diagnosis.ratios import Reading, span_of
from gradcli.checks.formatting import node_text
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.diagnosis.diagnosis_context import Judgement
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]

MOST_ARRAYS = 12
CLOSE = 1e-9


def symmetric(x: Floats) -> Floats:
    return (x + x.T) / 2


def diagonal(x: Floats) -> Floats:
    return np.diag(np.diag(x))


SHAPES: tuple[tuple[str, str, Callable[[Floats], Floats]], ...] = (
    ("symmetric matrix", "is symmetric", symmetric),
    ("diagonal matrix", "is diagonal", diagonal),
)


def by_structure(judged: Judgement) -> list[Reading]:
    """The square matrix that a claim takes for a special one: at most one reading."""
    order = reachable([judged.right, judged.claimed])
    matrices = [node for node in order if node.type.kind == "float" and node.type.rank == 2]
    matrices = [node for node in matrices if node.shape[0] == node.shape[1] > 1]
    matrices = [node for node in matrices if node not in (judged.right, judged.claimed)]
    matrices.sort(key=lambda node: (len(node.args) > 0, node.serial))  # inputs first
    values = judged.values(order) if matrices else None
    if values is None:
        return []
    above = dependents(order)
    for name, words, change in SHAPES:
        for array in matrices[:MOST_ARRAYS]:
            if _agree(judged, array, change, above[array], values):
                what = node_text(array, 40) if array.primitive is LEAF or array.args else "a constant"
                told = f"consistent with one array mistaken for another: the claim is right where `{what}` {words}"
                return [Reading(name, told, node=what, span=span_of(array) if array.args else None)]
    return []


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


DRAWN = 24
AROUND = 4.0  # sizes of an entry: as far as they are drawn, to lie on both sides of a surface
ENOUGH = 3  # comparisons on each side
MOST_SURFACES = 12


def by_branch(judged: Judgement) -> Reading | None:
    """The surface on one side of which the claim is right, and on the other side wrong."""
    surfaces = list({surface.zero: surface for surface in judged.case.subject.surfaces}.values())[:MOST_SURFACES]
    if not surfaces or not judged.names:
        return None
    same: list[NDArray[np.bool_]] = []
    known: list[list[Floats]] = []
    at = evaluator([judged.right, judged.claimed, *(surface.zero for surface in surfaces)])
    case = judged.case
    for place in islice(scattered(case.values, judged.names, case.domains, AROUND, case.seed), DRAWN):
        gradient, claim, *found = at(place)
        if np.isfinite(gradient).all() and np.isfinite(claim).all():
            scale = np.maximum(np.abs(gradient).max(initial=0.0), np.abs(claim).max(initial=0.0))
            same.append(np.abs(gradient - claim) <= CLOSE * scale)
            known.append(found)
    for position, surface in enumerate(surfaces):
        sides: dict[int, list[bool]] = {1: [], -1: []}
        for agree, found in zip(same, known, strict=True):
            side = np.sign(found[position])
            if side.shape == agree.shape:
                for one, good in zip(side.reshape(-1), agree.reshape(-1), strict=True):
                    sides.get(int(one) if one == one else 0, []).append(bool(good))
            elif not side.shape or (side == side.reshape(-1)[0]).all():
                one = side.reshape(-1)[0]
                sides.get(int(one) if one == one else 0, []).append(bool(agree.all()))
        if any(len(seen) < ENOUGH for seen in sides.values()):
            continue
        for sign, words in ((1, (">", "<")), (-1, ("<", ">"))):
            if all(sides[sign]) and not any(sides[-sign]):
                text = node_text(surface.zero)
                told = f"consistent with a forgotten branch: the claim is right where {text} {words[0]} 0, "
                told += f"and wrong where {text} {words[1]} 0"
                return Reading("right on one branch", told, node=text, span=span_of(surface.node))
    return None
