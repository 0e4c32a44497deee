"""The verdict on a subject at a point; it is never stronger than its evidence.

Three numbers: E, the exact side, is the oracle's enclosure of the derivative by power series of the value, or the left
side of an equality; R is what is judged, in balls; F is what is judged, in floats. Disjoint balls of E and R refute, a
proof that their difference vanishes proves, agreement to 56 bits at every point certifies, and F against E says whether
the number is good. What these leave open is decided by floats: finite differences of the output, or both sides of an
equality. Floats may agree and refute nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide.case import RIGHT, Case, Outcome, digits_of, shown_entries, speaks
from gradcli.checks.decide.precision import float_quality
from gradcli.checks.decide.refutation import off_structure, refuted
from gradcli.checks.formatting import counted, plain, shortened_list
from gradcli.checks.oracle.oracle_client import TimeOver, leaf_names
from gradcli.graph.node import DATA, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradcli.checks.decide.case import Evidence
    from gradcli.checks.oracle.oracle_client import Exact, NoAnswer
    from gradcli.checks.subjects import Subject

    Proof = Mapping[str, Any]

SPARE = 3  # times as many points are prepared as are wanted: some may lie outside the region
MOST_ENTRIES = 100_000  # of all points that are prepared for one leaf
MOST_DATA = 32  # entries of a constant array; with more, normal forms are long, and index notation is tried first
PROVED_ENTRIES = 16  # of one leaf, each by itself; those of larger ones all at once, in index notation
FLOAT_TOLERANCE = 1e-9
WIDE = "the enclosures overlap, but are too wide"
INDEPENDENT = "the output does not depend on this name"


def judge(exact: Exact, subject: Subject) -> Outcome:
    """The verdict on one subject."""
    exact.begin()
    case = Case(exact, subject)
    outcome = case.infinite_leaf() or by_enclosures(case) or by_floats(case)
    return outcome._replace(evidence=plain({**case.evidence, **outcome.evidence}))


def unanswered(reason: NoAnswer) -> Outcome:
    """The verdict on a subject whose time is over, or over which the oracle was lost.

    Nothing else counts: what was known by then depends on the machine, and a report does not.
    """
    kind = "timeout" if isinstance(reason, TimeOver) else "lost"
    return Outcome("INCONCLUSIVE", f"not decided: {reason}", {"oracles": {}, "unanswered": kind})


def by_enclosures(case: Case) -> Outcome | None:
    """The verdict from enclosures of both sides; None where they leave it open."""
    outcome = compare_sides(case) if case.output is None else compare_derivative(case)
    if outcome is None and case.given is not None:
        outcome = refuted(case) or agreed(case)
    return outcome


def by_floats(case: Case) -> Outcome:
    """The verdict from floats, and where these agree from a proof in index notation, unless one was tried."""
    if case.output is None:
        outcome = equal_in_floats(case)
    else:
        from gradcli.checks.decide.numerical import by_differences  # enclosures decide nearly all: start-up time counts

        outcome = by_differences(case)
    if outcome.verdict == "AGREES" and case.given is None and (proof := in_index_notation(case)):
        return outcome._replace(verdict="PROVED", message=f"{equal_by_algebra(proof).message}; {outcome.message}")
    return outcome


def equal_in_floats(case: Case) -> Outcome:
    """The verdict on an equality that enclosures leave open, or whose sides no exact oracle can read."""
    if case.given is not None:
        reason = case.evidence.get("not_proved", WIDE)
        return Outcome("INCONCLUSIVE", f"neither proved nor refuted: {reason}", {})
    left, right = case.doubles(case.sides)
    tolerance = case.subject.rtol or FLOAT_TOLERANCE
    slack = tolerance * np.maximum(np.maximum(np.abs(left), np.abs(right)), 1e-300)
    evidence: Evidence = {"basis": "numerical", "points": 1, "bound": tolerance}
    if bool((np.abs(left - right) <= slack).all()):
        return Outcome("AGREES", f"equal in floating point to within {tolerance:g}", evidence)
    return Outcome("INCONCLUSIVE", "the floating-point values differ, and no exact oracle could decide", evidence)


# --- comparing both sides in balls --------------------------------------------------------------------------------


def compare_sides(case: Case) -> Outcome | None:
    """Compares both sides of an equality at the point, and at points where one leaf has moved at a time.

    A verdict where a side has no value.
    """
    outcome = case.value(case.sides)
    if outcome is not None:
        return outcome
    used = leaf_names(case.sides)
    places = case.beside([name for name in case.subject.moving if name in used], case.samples)
    answer = case.compare([case.values, *places])
    if "problem" in answer:
        case.tried["balls"] = answer["reason"]
        return None
    case.given, *others = answer["points"]
    case.nearby = [pair for pair in zip(places, others, strict=True) if speaks(pair[1])]
    return None


def compare_derivative(case: Case) -> Outcome | None:
    """Compares a claimed gradient with the derivative at the point and at points where the checked leaf has moved.

    A verdict where that shows a missing value or a point at which the output is not smooth.
    """
    leaf = case.own_leaf or ""
    near = case.beside([case.own_leaf], min(SPARE * case.samples, MOST_ENTRIES // max(case.target.type.size, 1)))
    beside = [{leaf: values[leaf]} for values in near]
    about = {"beside": beside, "wanted": case.samples, "rtol": case.subject.rtol}
    answer = case.exact.ask("judge", right=case.subject.judged, point=case.values, derivative=case.name, **about)
    if "problem" in answer:
        case.tried["series"] = answer["reason"]
        return case.value([case.output])
    case.holomorphic = answer.get("holomorphic")
    outcome = case.value([case.output], {"entries": [[answer["value"]]]}) or case.of_another_function(answer["value"])
    if outcome is not None:
        return outcome
    case.given, tie = answer["given"], answer["tie"]
    case.at_tie = tie is not None
    case.nearby = [(near[one["position"]], one) for one in answer["beside"]]
    if tie is not None:
        from gradcli.checks.decide.nonsmooth import at_a_tie  # most points are smooth

        outcome = at_a_tie(case, tie)
        if outcome is not None:
            return outcome
    return without_value(case)


def without_value(case: Case) -> Outcome | None:
    """The verdict where the derivative is undefined, or only the claim or gradient."""
    given = case.given
    if "E" in given["relations"]:
        from gradcli.checks.decide.nonsmooth import open_tie

        return open_tie(case, given["reason"] or "the derivative is undefined")
    if "R" not in given["relations"]:
        return None
    exact = given["details"][0]["exact"]
    message = f"{case.role} has no value here, although the derivative is {exact}: {given['reason']}"
    outcome = case.undefined(given)
    return outcome._replace(message=message, evidence={**outcome.evidence, "exact": digits_of(given, "exact")})


# --- both sides agree -----------------------------------------------------------------------------------------------


def agreed(case: Case) -> Outcome | None:
    """PROVED, CERTIFIED or IMPRECISE; None where the sides neither agree nor differ for certain."""
    agree = set(case.given["relations"]) <= RIGHT
    proof = proof_of(case)
    points = counted(1 + len(case.nearby), "point")
    case.tried[case.oracle] = f"both sides agree at {points}" if agree else WIDE
    if not proof and not agree:
        return None
    outcome = None
    if case.output is not None:
        if agree:
            case.evidence |= three_numbers(case)
        outcome = float_quality(case, case.compared[:1] if proof else case.compared)
    if outcome is None:
        outcome = equal_by_algebra(proof) if proof else certified(case, points)
    notes = [case.evidence["ill_conditioned"]] if "ill_conditioned" in case.evidence else []
    notes += [INDEPENDENT] if case.independent else []
    return off_structure(case, proof, outcome._replace(message="; ".join([outcome.message, *notes])))


def three_numbers(case: Case) -> Evidence:
    """E, R and F at the given point, for the first entries, and the bits that E and R share at all points."""
    given, floats = case.given, case.judged_floats(case.values)
    return {
        **({"parts": shown_entries(given, lambda one: case.entry(one["entry"]))} if case.plane else {}),
        "exact": digits_of(given, "exact"),
        "judged": digits_of(given, "claimed"),
        "float": shown_entries(given, lambda one: repr(float(floats[one["entry"]]))),
        "agree_bits": min(answer["agreed"] for _, answer in case.compared),
    }


def proof_of(case: Case) -> Proof:
    """The proof that both sides are equal, with what it shows as evidence; empty where none is tried.

    What is only within a tolerance is not to be proved.
    """
    subject, given = case.subject, case.given
    if case.independent and subject.judged.constant == 0:
        return {"proved": True, "region": [], "frozen": []}
    if case.plane or "~" in given["relations"]:
        return {}
    ways: tuple[Callable[[Case], Proof], ...] = (by_normal_form, in_index_notation)
    if case.output is not None and len(given["entries"]) > PROVED_ENTRIES:
        ways = (in_index_notation,)
    elif any(node.primitive is DATA and node.type.size > MOST_DATA for node in reachable(case.sides)):
        ways = ways[::-1]
    return next((proof for proof in (way(case) for way in ways) if proof), {})


def by_normal_form(case: Case) -> Proof:
    """The proof that the normal forms of both sides are one, entry by entry; empty without one."""
    subject, question = case.subject, {"left": case.subject.left}
    if case.output is not None:
        question = {"output": case.output, "target": case.target, "entries": case.given["entries"]}
    proof: Proof = case.exact.prove(subject.judged, case.values, moving=subject.moving, **question)
    if not proof.get("proved"):
        case.at_tie |= "tie" in proof
        case.evidence |= {"not_proved": proof["reason"]} if "reason" in proof else {}
        return {}
    case.tried["algebra"] = f"proved ({proof['how']})"
    case.evidence |= {"region": shortened_list(proof["region"])} if proof["region"] else {}
    case.evidence |= {"fixed": proof["frozen"]} if proof["frozen"] else {}
    return proof


def in_index_notation(case: Case) -> Proof:
    """The proof that both sides of a claim are one formula in index notation, at any size; empty without one.

    It says nothing of ties, and so nothing at a point that is one.
    """
    subject = case.subject
    left, size = subject.output or subject.left, subject.judged.type.size
    if left is None or case.at_tie or case.plane or subject.rtol is not None or not case.exact.proving:
        return {}
    from gradcli.formulas import NoFormula  # most gradients are of few entries
    from gradcli.formulas.staged_proof import equal_as_formulas

    try:
        found = equal_as_formulas(left, subject.target, subject.judged)
    except NoFormula as problem:
        case.evidence.setdefault("not_proved", str(problem))
        return {}
    if found is None:
        return {}
    case.evidence.pop("not_proved", None)
    case.tried["algebra"] = "proved (index notation)"
    ties = found.ties or any(node.primitive.kinks for node in reachable([left]))
    return {"proved": True, "region": [], "frozen": [], "size": size, "ties": ties}


def equal_by_algebra(proof: Proof) -> Outcome:
    """PROVED, with the signs and fixed leaves under which the proof holds."""
    message, region, fixed = "equal by algebra", proof["region"], proof["frozen"]
    message += f", in all {proof['size']:,} entries" if proof.get("size", 1) > PROVED_ENTRIES else ""
    message += ", wherever no comparison is a tie" if proof.get("ties") else ""
    message += ", by induction over the turns" if proof.get("induction") else ""
    message += f", where {', '.join(region[:4])}{', ...' if len(region) > 4 else ''}" if region else ""
    message += ", in the connected region around the point" if proof.get("local") else ""
    message += f", with {', '.join(fixed)} fixed at their values" if fixed else ""
    return Outcome("PROVED", message, {})


def certified(case: Case, points: str) -> Outcome:
    """Both sides agree, without a proof."""
    given, rtol, derivative = case.given, case.subject.rtol, case.output is not None
    evidence: Evidence = {"points": len(case.compared)}
    message = "the exact derivative is enclosed" if derivative else "both sides are enclosed and agree"
    message += f" at {points}"
    if "~" in given["relations"]:
        evidence["rtol"] = rtol
        tolerance = f"within the tolerance {rtol:g}"
        return Outcome("CERTIFIED", tolerance if derivative else f"{message} {tolerance}", evidence)
    if "chance" in given:
        count, chance = len(given["entries"]), max(answer["chance"] for _, answer in case.compared)
        evidence |= {"covered": f"all {count:,} entries by random directions", "chance": chance}
        message += f", in all {count:,} entries (an error of 1e-12 in one is missed with probability {chance:.0e})"
    zero = all(x == 0 for _, answer in case.compared for x in answer["exact"])
    if derivative and (zero or not case.nearby):
        message += ", at this point only"
    return Outcome("CERTIFIED", message, evidence)
