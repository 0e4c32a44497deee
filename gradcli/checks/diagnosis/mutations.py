"""Finds mistakes in the derivation that lead to a refuted claim, as readings of the error.

The derivation is repeated with one or several rules mutated, in floats; what balls refute is dropped.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.decide.case import RIGHT
from gradcli.checks.diagnosis.derivation import Derivation
from gradcli.checks.diagnosis.diagnosis_context import Judgement, Sides, drawn
from gradcli.checks.diagnosis.formula_text import readable, script_text
from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.diagnosis.rederivation import MOST_NEW, Found, Weighing, rule_of
from gradcli.checks.formatting import counted, node_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.decide.case import Values
    from gradcli.graph.node import Node


NAMED = 2  # places that a mistake may be at; the evidence has them all
CONFIRMED_AT = 3  # points


class Slips:
    """The derivation of a claim with mistakes in it, weighed at the moved points and at those of the check."""

    def __init__(self, judged: Judgement) -> None:
        self.judged = judged
        self.sides = judged.sides()
        self.weighings: list[tuple[Weighing, Sequence[Values]]] = []
        if self.sides is None:
            return
        sides = self.sides
        made = Derivation(judged.builder, sides.output, sides.target, sides.direction, MOST_NEW)
        for chosen in judged.sets:
            batch = judged.batch(chosen, sides.inputs)
            self.weighings.append((Weighing(made, sides.right, sides.claimed, batch), chosen))
        if not made.complete:
            judged.note = f"only the first {self.weighings[0][0].tried:,} mistakes were tried"

    def single(self) -> list[Reading]:
        return self._readings(Weighing.single)

    def several(self) -> list[Reading]:
        return self._readings(Weighing.several)

    def _readings(self, find: Callable[[Weighing], list[Found]]) -> list[Reading]:
        """What is found at the moved points, else at those of the check, as far as balls do not refute it."""
        for weighing, chosen in self.weighings:
            assert self.sides is not None
            good = confirmed(self.judged, self.sides, find(weighing), chosen)
            if good:
                write = partial(script_text, self.judged.case, readable(self.judged.case))
                return [written(one, sure, write) for one, sure in good]
        return []


def confirmed(
    judged: Judgement, sides: Sides, found: Sequence[Found], chosen: Sequence[Values]
) -> list[tuple[Found, bool]]:
    """The mistakes that are not refuted in balls, and whether each is confirmed there."""
    good: list[tuple[Found, bool]] = []
    if not found:
        return good
    case, builder = judged.case, judged.builder
    made = [(one, one.result(builder, sides.right)) for one in found]
    exact = case.exact.beside([sides.claimed, *(node for _, node in made)])
    places = [dict(place) for place in chosen[:CONFIRMED_AT]]
    for position, leaf in enumerate(sides.inputs):
        values = drawn(leaf, case.seed + 7 + position, len(places))
        for place, value in zip(places, values, strict=True):
            place[leaf.params["name"]] = np.asarray(value)
    try:
        exact.begin()
        for one, node in made:
            if one.scale != 1:
                good.append((one, False))  # the factor is known as a float only
                continue
            answer = exact.compare(sides.claimed, places, left=node, wide=True)
            if "problem" in answer:
                good.append((one, False))
                continue
            relations = [set(p["relations"]) for p in answer["points"]]
            if not any("!" in here for here in relations):
                good.append((one, all(here <= RIGHT for here in relations)))
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return good


def written(found: Found, sure: bool, write: Callable[[Node], str | None]) -> Reading:
    """A mistake as a reading: where, and what."""
    rule = rule_of(found, write)
    places = dict.fromkeys(f"`{node_text(node, 40)}`" for node in (found.node, *(node for _, node in found.places)))
    more = f" (or at {counted(len(places) - NAMED, 'other place')})" if len(places) > NAMED else ""
    text = f"consistent with a mistake at {' or '.join([*places][:NAMED])}{more}: {found.told}"
    also = [{"name": name, "node": node_text(node), "span": span_of(node)} for name, node in found.places]
    return Reading(
        found.name,
        text,
        node=node_text(found.node),
        span=span_of(found.node),
        rule=rule,
        cause=found.cause,
        confirmed=sure,
        places=also or None,
    )


def span_of(node: Node) -> list[int] | None:
    return None if node.span is None else list(node.span)
