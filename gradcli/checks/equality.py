"""A claim that two values are equal goes in, its verdict comes out: by algebra, in balls, or in floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import points
from gradcli.checks.case import RIGHT, Outcome, leaf_names, points_told, rescued, usable
from gradcli.checks.diagnosis.explanation import explain
from gradcli.checks.enclosure import conditions
from gradcli.checks.refutation import near_enough, notes, off_structure, to_the_digits, told
from gradcli.checks.shown import shortened_list, told_apart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.case import Answer, Case, Evidence, Floats, Values
    from gradcli.graph.node import Node

FLOAT_TOLERANCE = 1e-9


def equality(case: Case) -> Outcome:
    """The verdict on a claim that two values are equal."""
    left, right, rtol = sides(case)[0], case.subject.judged, case.subject.rtol
    stop = case.infinite_leaf() or (None if case.plane else case.value([left, right]))
    if stop is not None:
        return stop
    places = [dict(case.values), *moved_one_by_one(case)]
    answer = case.compare(places, left=left)
    if "problem" in answer:
        case.tried["balls"] = answer["reason"]
        return in_floats(case)
    found = [(v, p) for v, p in zip(places, answer["points"], strict=True) if usable(p)]
    wrong = [(v, p) for v, p in found if "!" in p["relations"]]
    if wrong:
        return unequal(case, wrong)
    close = any("~" in p["relations"] for _, p in found)
    proof: Mapping[str, Any] = {}
    if not close and not case.plane:  # what is only within a tolerance is not to be proved
        proof = case.exact.prove_equal(left, right, case.subject.moving, case.values)
    if proof.get("proved"):
        case.tried["algebra"] = f"proved ({proof['how']})"
        if proof["region"]:
            case.evidence["region"] = shortened_list(proof["region"])
        warning, evidence = off_structure(case, proof)
        return Outcome("PROVED", "equal by algebra" + conditions(proof) + warning, evidence)
    if proof.get("reason"):
        case.evidence["not_proved"] = proof["reason"]
    if found and set(answer["points"][0]["relations"]) <= RIGHT:
        count = sum(1 for _, p in found if set(p["relations"]) <= RIGHT)
        case.tried["balls"] = f"both sides agree at {points_told(count)}"
        within = f" within the tolerance {rtol:g}" if close else ""
        message = f"both sides are enclosed and agree at {points_told(count)}{within}"
        warning, evidence = off_structure(case, proof)
        return Outcome("CERTIFIED", message + warning, {"points": count, **evidence})
    reason = proof.get("reason") or "the enclosures overlap, but are too wide"
    return Outcome("INCONCLUSIVE", f"neither proved nor refuted: {reason}", {})


def sides(case: Case) -> tuple[Node, Node]:
    assert case.subject.left is not None
    return case.subject.left, case.subject.judged


def moved_one_by_one(case: Case) -> list[dict[str, Floats]]:
    """Points where one leaf has moved at a time; none for a bare number or a tolerance."""
    found: list[dict[str, Floats]] = []
    if case.number or case.subject.rtol is not None:
        return found
    used = leaf_names(sides(case))
    names = [name for name in case.subject.moving if name in used]
    for turn in range(case.samples if names else 0):
        name = names[turn % len(names)]
        near = points.nearby(case.values[name], None, 1, case.seed + turn)
        found += [{**case.values, name: moved} for moved, _ in zip(near, range(1), strict=False)]
    return found


def reading(case: Case, values: Values) -> str | None:
    """How both sides can be equal after all: rounded "constants", or "decimals" as written; None if they cannot."""
    for decimal in (False,) if case.plane else (False, True):
        again = case.compare([values], left=case.subject.left, decimal=decimal, wide=True)
        if "problem" not in again and rescued(again["points"][0]):
            return "decimals" if decimal else "constants"
    return None


def unequal(case: Case, wrong: Sequence[tuple[Values, Answer]]) -> Outcome:
    """DISAGREES, unless rounded constants or decimals explain the difference at every point that shows one."""
    if case.number and (near := near_enough(case, None, wrong[0][1])) is not None:
        return near
    read: set[str] = set()
    standing = None
    for one in wrong:
        how = reading(case, one[0])
        if how is None:
            standing = one
            break
        read.add(how)
    if standing is None:
        return to_the_digits(case, read)
    values, answer = standing
    where, evidence, first = case.counterexample(values, answer)
    message = "the left side{} is {}, the right side {}".format(where, *told_apart(first["exact"], first["claimed"]))
    if any(values[name] is not case.values[name] for name in values):
        message += " at a point beside the given one, where it holds"
    causes = [] if case.plane else explain(case, [values])
    if causes:
        evidence["diagnosis"] = [told(cause) for cause in causes]
        message += f"; {causes[0].text}"
    return Outcome("DISAGREES", message, evidence, notes(causes))


def in_floats(case: Case) -> Outcome:
    """Both sides in floats, where no exact oracle can read them."""
    left, right = case.doubles(sides(case))
    tolerance = case.subject.rtol or FLOAT_TOLERANCE
    slack = tolerance * np.maximum(np.maximum(np.abs(left), np.abs(right)), 1e-300)
    evidence: Evidence = {"basis": "numerical", "points": 1, "bound": tolerance}
    if bool((np.abs(left - right) <= slack).all()):
        return Outcome("AGREES", f"equal in floats to {tolerance:g}", evidence)
    return Outcome("INCONCLUSIVE", "the floats differ, and no exact oracle could decide", evidence)
