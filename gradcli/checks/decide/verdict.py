"""The verdict on a subject at a point; it is never stronger than its evidence.

Three numbers: E, the oracle's enclosure of the derivative by power series of the value; R, what is judged, in balls;
F, what is judged, in floats. Agreement of R and E to 56 bits at every point certifies, a proof that their difference
vanishes proves, and disjoint balls refute; F against E says whether the number is good. What these leave open is
looked at by finite differences, which may agree and refute nothing. Equalities of two values are decided in the same
way, without a derivative.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.case import RIGHT, Case, Outcome, exact_digits, three_numbers, usable
from gradcli.checks.decide.precision import float_quality
from gradcli.checks.decide.refutation import (
    disagrees,
    explained,
    explained_away,
    near_enough,
    off_structure,
    refuted,
    to_the_digits,
)
from gradcli.checks.evaluate.evaluation import steps
from gradcli.checks.formatting import counted, distinct_digits, plain, shortened_list
from gradcli.checks.oracle.oracle_client import TimeOver, leaf_names
from gradcli.graph.node import is_reader, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.decide.case import Answer, Case, Evidence, Floats, Values
    from gradcli.checks.oracle.oracle_client import Exact, NoAnswer
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node


def judge(
    exact: Exact, subject: Subject, seed: int, samples: int = 3, dtype: str = "float64", backend: str = "numpy"
) -> Outcome:
    """The verdict on one subject; `samples` counts points near the given one, `backend` computes the floats."""
    exact.begin()
    case = Case(exact, subject, seed, samples, dtype, backend)
    found = equality(case) if subject.output is None else derivative(case)
    return found._replace(evidence=plain({**case.evidence, **found.evidence}))


def unanswered(reason: NoAnswer) -> Outcome:
    """The verdict on a subject whose time is over, or over which the oracle was lost.

    Nothing else counts: what had been found by then depends on the machine, and a report does not.
    """
    kind = "timeout" if isinstance(reason, TimeOver) else "lost"
    return Outcome("INCONCLUSIVE", f"not decided: {reason}", {"oracles": {}, "unanswered": kind})


def derivative(case: Case) -> Outcome:
    """The verdict on a claimed gradient."""
    if case.subject.note:
        case.evidence["subject"] = case.subject.note
    found = case.infinite_leaf() or by_series(case)
    if found is not None:
        return found
    from gradcli.checks.decide.numerical import by_differences  # series decide nearly all: start-up time is a feature

    return by_differences(case)


MOST_WORK = 400_000  # entries of all nodes at all points near the given one; a count, so that reports do not vary
MANY_ENTRIES = 5000  # of one leaf: with more, no spare points are prepared
MOST_ENTRIES = 100_000  # and with more than that no points at all
PROVED_ENTRIES = 16  # of one leaf: more are certified, not proved
JOINT = 4  # directions in which everything moves, looked at where there is a tie
MOST_JOINT = 64  # entries that may move together


def by_series(case: Case) -> Outcome | None:
    """The verdict from E and R; None where they leave it open."""
    if case.exact.refused is not None:
        return case.value_in_floats([case.output], case.exact.refused["reason"])
    if case.plane and case.target not in reachable([case.output]):
        return None
    size = case.target.type.size
    order = reachable([case.output, case.subject.judged])
    work = sum(steps(node) if is_reader(node) else node.type.size for node in order)
    wanted = max(1, min(case.samples, MOST_WORK // work)) if case.samples else 0
    if size > MOST_ENTRIES or (work > MOST_WORK and any(map(is_reader, order))):
        near = []
    else:
        near = case.beside(most=wanted if size > MANY_ENTRIES else None)
    beside = [{case.own_leaf: values[case.own_leaf]} for values in near if case.own_leaf is not None]
    about = {"beside": beside, "wanted": wanted, "directions": joint(case), "rtol": case.subject.rtol}
    answer = case.exact.ask("judge", right=case.subject.judged, point=case.values, derivative=case.name, **about)
    if "problem" in answer:
        case.tried["series"] = answer["reason"]
        return case.value_in_floats([case.output], answer["reason"]) if case.plane else case.value([case.output])
    found = case.value_of([answer["value"]], [case.output])
    if found is None and case.plane:
        case.holomorphic = answer.get("holomorphic")
        found = case.of_another_function(answer["value"])
    if found is not None:
        return found
    here, tie = answer["given"], answer["tie"]
    nearby = [(near[p["position"]], p) for p in answer["beside"]]
    if tie is not None:
        from gradcli.checks.decide.nonsmooth import at_a_tie  # most points are smooth

        found = at_a_tie(case, tie, here)
        if found is not None or tie["kind"] == "unknown":
            return found
        case.tried["kinks"] = "a tie, but the value is smooth across it"
        case.smooth_tie = set(here["relations"]) <= RIGHT
    if answer["digits"] is not None:
        case.tried["digits"] = "agree with the series" if answer["digits"] else "contradict the series"
    if answer["digits"] is False:
        return Outcome("INCONCLUSIVE", "series and finite differences at 60 digits contradict each other", {})
    return by_comparisons(case, here, nearby, tie)


def joint(case: Case) -> list[list[tuple[int, float]]]:
    """Directions in which the target and all other leaves move, for the oracle to look along at a tie."""
    sizes = [case.target.type.size, *(case.values[name].size for name in case.moving_beside())]
    count = sum(sizes) * (2 if case.plane else 1)
    if not 1 < count <= MOST_JOINT:
        return []
    ways = sample_points.speeds(Random(case.seed), (JOINT, count))
    return [[(i, round(64 * float(speed)) / 64) for i, speed in enumerate(way)] for way in ways]


def by_comparisons(
    case: Case, here: Answer, nearby: Sequence[tuple[Values, Any]], tie: Answer | None
) -> Outcome | None:
    """The verdict from comparisons at the point and beside it."""
    entries = here["entries"]
    if "E" in here["relations"]:
        from gradcli.checks.decide.nonsmooth import open_tie

        return open_tie(case, here["reason"] or "the derivative is undefined")
    if "R" in here["relations"]:
        return judged_undefined(case, here)
    if tie is not None and case.subject.kind == "gradient" and "!" in here["relations"]:
        from gradcli.checks.decide.nonsmooth import off_a_smooth_tie

        return off_a_smooth_tie(case, tie, here)
    wrong = refuted(case, [(case.values, here), *nearby], entries)
    if wrong is not None:
        case.tried["series"] = "the enclosures of derivative and claim are disjoint"
        return wrong
    case.nearby = [dict(values) for values, _ in nearby]
    return right(case, here, nearby)


def judged_undefined(case: Case, here: Answer) -> Outcome:
    """UNDEFINED: the claim or gradient has no value where the derivative has one."""
    gradient = case.subject.kind == "gradient"
    answer = {} if case.plane else case.exact.values([case.subject.judged], case.values)
    failed = [entry for entry in answer.get("entries", [[]])[0] if entry.get("failure") == "undefined"]
    whose = "the gradient" if gradient else "the claim"
    message = f"{whose} has no value here, although the derivative is {here['details'][0]['exact']}"
    found = case.undefined(failed[0]) if failed else Outcome("UNDEFINED", "", {})
    reason = f": {failed[0]['reason']}" if failed else ""
    return found._replace(message=message + reason, evidence={**found.evidence, "exact": exact_digits(here)})


def right(case: Case, here: Answer, nearby: Sequence[tuple[Values, Any]]) -> Outcome | None:
    """PROVED, CERTIFIED or IMPRECISE; None where E and R neither agree nor differ."""
    entries = here["entries"]
    agree = all(set(p["relations"]) <= RIGHT for p in (here, *(p for _, p in nearby)))
    few = len(entries) <= PROVED_ENTRIES and "~" not in here["relations"]
    proof = proof_of(case, output=case.output, target=case.target, entries=entries) if few else {}
    proved = bool(proof.get("proved"))
    case.tried["series"] = "derivative enclosed" if agree else "the enclosures overlap, but are too wide"
    if proved and proof["frozen"]:
        case.evidence["fixed"] = proof["frozen"]
    if not proved and not agree:
        return None
    if agree:
        case.evidence |= three_numbers(case, here)
        case.evidence["agree_bits"] = min(p["agreed"] for p in (here, *(p for _, p in nearby)))
    found = float_quality(case, [(case.values, here), *([] if proved else nearby)])
    if found is None and proved:
        turns = ", by induction over the turns" if proof.get("induction") else ""
        found = Outcome("PROVED", f"equal by algebra{turns}" + conditions(proof), {})
    elif found is None:
        found = certified(case, here, nearby)
    if "ill_conditioned" in case.evidence:
        found = found._replace(message=f"{found.message}; {case.evidence['ill_conditioned']}")
    return off_structure(case, proof, found)


def proof_of(case: Case, **question: Any) -> Mapping[str, Any]:
    """The proof that both sides are equal, its region among the evidence; empty at a complex point."""
    if case.plane:
        return {}
    subject = case.subject
    proof: Mapping[str, Any] = case.exact.prove(subject.judged, case.values, moving=subject.moving, **question)
    if proof.get("proved"):
        case.tried["algebra"] = f"proved ({proof['how']})"
        if proof["region"]:
            case.evidence["region"] = shortened_list(proof["region"])
    elif proof.get("reason"):
        case.evidence["not_proved"] = proof["reason"]
    return proof


def certified(case: Case, here: Answer, nearby: Sequence[tuple[Values, Any]]) -> Outcome:
    """E and R agree, without a proof."""
    evidence: Evidence = {"points": 1 + len(nearby)}
    if "~" in here["relations"]:
        evidence["rtol"] = case.subject.rtol
        return Outcome("CERTIFIED", f"within the tolerance {case.subject.rtol:g}", evidence)
    message = f"the exact derivative is enclosed at {counted(1 + len(nearby), 'point')}"
    if "chance" in here:
        chance = max(p["chance"] for p in (here, *(p for _, p in nearby)))
        evidence |= {"covered": f"all {len(here['entries']):,} entries by random directions", "chance": chance}
        message += f", in all {len(here['entries']):,} entries (an error of 1e-12 in one is missed with probability "
        message += f"{chance:.0e})"
    zero = all(x == 0 for _, p in [(None, here), *nearby] for x in p["exact"])
    if zero or not nearby:
        message += ", at this point only"
    return Outcome("CERTIFIED", message, evidence)


def conditions(proof: Mapping[str, Any]) -> str:
    """The signs and fixed leaves under which a proof holds, in words."""
    region = ", ".join(proof["region"][:4]) + (", ..." if len(proof["region"]) > 4 else "")
    fixed = ", ".join(proof["frozen"])
    near = ", in the connected region around the point" if proof.get("local") else ""
    return (f", where {region}" if region else "") + near + (f", with {fixed} fixed at their values" if fixed else "")


FLOAT_TOLERANCE = 1e-9


def equality(case: Case) -> Outcome:
    """The verdict on a claim that two values are equal."""
    (left, right), rtol = sides(case), case.subject.rtol
    stop = case.infinite_leaf() or (None if case.plane else case.value([left, right]))
    if stop is not None:
        return stop
    places = [dict(case.values), *moved_one_by_one(case)]
    answer = case.compare(places)
    if "problem" in answer:
        case.tried["balls"] = answer["reason"]
        return in_floats(case)
    found = [(v, p) for v, p in zip(places, answer["points"], strict=True) if usable(p)]
    wrong = [(v, p) for v, p in found if "!" in p["relations"]]
    if wrong:
        return unequal(case, wrong)
    close = any("~" in p["relations"] for _, p in found)
    proof = {} if close else proof_of(case, left=left)  # what is only within a tolerance is not to be proved
    if proof.get("proved"):
        return off_structure(case, proof, Outcome("PROVED", "equal by algebra" + conditions(proof), {}))
    if found and set(answer["points"][0]["relations"]) <= RIGHT:
        count = sum(1 for _, p in found if set(p["relations"]) <= RIGHT)
        case.tried["balls"] = f"both sides agree at {counted(count, 'point')}"
        within = f" within the tolerance {rtol:g}" if close else ""
        message = f"both sides are enclosed and agree at {counted(count, 'point')}{within}"
        return off_structure(case, proof, Outcome("CERTIFIED", message, {"points": count}))
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
        near = sample_points.nearby(case.values[name], None, 1, case.seed + turn)
        found += [{**case.values, name: moved} for moved, _ in zip(near, range(1), strict=False)]
    return found


def unequal(case: Case, wrong: Sequence[tuple[Values, Answer]]) -> Outcome:
    """DISAGREES, unless rounded constants or decimals explain the difference at every point that shows one."""
    if case.number and (near := near_enough(case, wrong[0][1])) is not None:
        return near
    standing, ways = explained_away(case, wrong)
    if standing is None:
        return to_the_digits(case, ways)
    values, answer = standing
    where, evidence, first = case.counterexample(values, answer)
    message = "the left side{} is {}, the right side is {}".format(
        where, *distinct_digits(first["exact"], first["claimed"])
    )
    if any(values[name] is not case.values[name] for name in values):
        message += " at a point near the given one, where it holds"
    return disagrees(message, evidence, [] if case.plane else explained(case, [values]))


def in_floats(case: Case) -> Outcome:
    """Both sides in floats, where no exact oracle can read them."""
    left, right = case.doubles(sides(case))
    tolerance = case.subject.rtol or FLOAT_TOLERANCE
    slack = tolerance * np.maximum(np.maximum(np.abs(left), np.abs(right)), 1e-300)
    evidence: Evidence = {"basis": "numerical", "points": 1, "bound": tolerance}
    if bool((np.abs(left - right) <= slack).all()):
        return Outcome("AGREES", f"equal in floating point to within {tolerance:g}", evidence)
    return Outcome("INCONCLUSIVE", "the floating-point values differ, and no exact oracle could decide", evidence)
