"""A wrong claim and the surfaces of its program go in; whether it is right on one side of one of them comes out.

Points are drawn on both sides of every surface, claim and gradient are compared in floats, and right and wrong are
sorted by the sign of the surface: entry by entry where it has the shape of the gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.floats import evaluator
from gradcli.checks.shown import node_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.kinks import Surface
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]

DRAWN = 24
ENOUGH = 3  # comparisons on each side
CLOSE = 1e-9
MOST_SURFACES = 12


def by_branch(
    surfaces: Sequence[Surface],
    right: Node,
    claimed: Node,
    values: Values,
    names: Sequence[str],
    domains: Mapping[str, Interval | None],
    seed: int,
) -> Reading | None:
    """The surface on one side of which the claim is right, and on the other side wrong."""
    zeros = list({surface.zero: surface for surface in surfaces})[:MOST_SURFACES]
    if not zeros or not names:
        return None
    same: list[NDArray[np.bool_]] = []
    known: list[list[Floats]] = []
    at = evaluator([right, claimed, *zeros])
    for place in drawn(values, names, domains, seed):
        gradient, claim, *found = at(place)
        if np.isfinite(gradient).all() and np.isfinite(claim).all():
            scale = np.maximum(np.abs(gradient).max(initial=0.0), np.abs(claim).max(initial=0.0))
            same.append(np.abs(gradient - claim) <= CLOSE * scale)
            known.append(found)
    for position, zero in enumerate(zeros):
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
                text = node_text(zero)
                told = f"consistent with a branch that was forgotten: the claim is right where {text} {words[0]} 0, "
                told += f"and wrong where {text} {words[1]} 0"
                span = surfaces[position].node.span
                return Reading(
                    "right on one branch", told, node=node_text(zero), span=None if span is None else list(span)
                )
    return None


def drawn(
    values: Values, names: Sequence[str], domains: Mapping[str, Interval | None], seed: int
) -> list[dict[str, Floats]]:
    """Points all around the given one: each entry of the named leaves times -3 to 3, inside its domain."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(DRAWN):
        place = dict(values)
        for name in names:
            value = values[name]
            scale = np.where(value == 0, 1.0, np.abs(value))
            made = scale * generator.uniform(-3.0, 3.0, value.shape)
            domain = domains.get(name)
            if domain is not None:
                inside = np.vectorize(lambda x, domain=domain: domain.contains(float(x)), otypes=[bool])(made)
                made = np.where(inside, made, value)
            place[name] = made
        found.append(place)
    return found
