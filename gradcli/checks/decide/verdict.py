"""The verdict on a subject at a point; it is never stronger than its evidence.

Three numbers: E, the exact side, is the oracle's enclosure of the derivative by power series of the value, or the left
side of an equality; R is what is judged, in balls; F is what is judged, in floats. Disjoint balls of E and R refute, a
proof that their difference vanishes proves, agreement to 56 bits at every point certifies, and F against E says whether
the number is good. What these leave open is decided by floats: finite differences of the output, or both sides of an
equality. Floats may agree and refute nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from gradcli.base.diagnostics import Diagnostic
from gradcli.checks.decide.assumptions import Proof, by_normal_forms, conditions_of_set
from gradcli.checks.decide.case import RIGHT, UNDERFLOW, Case, Outcome, differ, digits_of, is_evidence, shown_entries
from gradcli.checks.decide.granting import PROVED_ENTRIES, at_points, granted, granted_in_floats, holding
from gradcli.checks.decide.precision import float_quality
from gradcli.checks.decide.refutation import off_structure, refuted
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.formatting import node_text, plain, point_text, shortened_list
from gradcli.checks.oracle.oracle_client import TimeOver, leaf_names
from gradcli.graph.node import DATA, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.decide.case import Answer, Evidence
    from gradcli.checks.oracle.oracle_client import Exact, NoAnswer
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node

SPARE = 3  # times as many points are prepared as are wanted: some may lie outside the region
MOST_ENTRIES = 100_000  # of all points that are prepared for one leaf
MOST_DATA = 32  # entries of a constant array; with more, normal forms are long, and index notation is tried first
MOST_WORK = 100_000  # operations on entries of the enclosures of one leaf; before more, index notation is tried
FLOAT_TOLERANCE = 1e-9
FAR = 1e-6  # a float value so far from the enclosed one is that of another function
# what the iterations of a loop read, which has no name in the script
NAMELESS = re.compile(r"~(carry|row|fixed|index)\d")
WIDE = "the enclosures overlap, but are too wide"
INDEPENDENT = "the output does not depend on this name"
CONVENTION = "dL/dx + i*dL/dy of the real part L; a claim states dL/dx - i*dL/dy, the derivative f'(z)"


def judge(exact: Exact, subject: Subject) -> Outcome:
    """The verdict on one subject. Raises NoAnswer where its time is over, or the oracle is lost."""
    exact.begin()
    case = Case(exact, subject)
    outcome = infinite_leaf(case)
    if outcome is None:
        outcome = compare_sides(case) if case.output is None else compare_derivative(case)
    if outcome is None and case.comparison is not None:
        leave_other_branches(case)
        outcome = refuted(case) or agreed(case)
    outcome = outcome or by_floats(case)
    return outcome._replace(evidence=full_evidence(case, outcome.evidence))


def unanswered(exact: Exact, subject: Subject, reason: NoAnswer) -> Outcome:
    """The verdict on a subject whose time is over, or over which the oracle was lost.

    Nothing else counts: what was known by then depends on the machine, and a report does not.
    """
    kind = "timeout" if isinstance(reason, TimeOver) else "lost"
    evidence = full_evidence(Case(exact, subject), {"unanswered": kind})
    return Outcome("INCONCLUSIVE", f"not decided: {reason}", evidence)


def full_evidence(case: Case, own: Evidence) -> Evidence:
    """All that a report shows of a verdict: what was found out about the subject, and the verdict's own evidence.

    Where both sides of a derivative agree these are E, R and F at the point, for the first entries, and the bits that
    E and R share at all points. Witnesses that the user asks for are added afterwards.
    """
    subject, proof, comparison = case.subject, case.proof, case.comparison
    common = {
        "at": point_text(case.values, leaf_names(case.sides)),
        "seed": subject.settings.seed,
        "oracles": case.tried,
        "convention": CONVENTION if case.plane else None,
        "subject": subject.note,
        "value": case.digits or None,
        "not_proved": None if proof else case.not_proved,
    }
    if proof:
        ties = conditions_of_set([own for own in proof.assumed if own.kind in ("kink", "apart")]) or None
        common |= {"region": shortened_list(proof.texts("sign")) or None, "fixed": proof.texts("fixed") or None}
        common["assumptions"] = ties
    if case.agree:
        floats = case.judged_floats(case.values)
        common |= {
            "parts": shown_entries(comparison, lambda detail: case.entry(detail["entry"])) if case.plane else None,
            "exact": digits_of(comparison, "exact"),
            "judged": digits_of(comparison, "claimed"),
            "float": shown_entries(comparison, lambda detail: repr(float(floats[detail["entry"]]))),
            "agree_bits": min(answer["agreed"] for _, answer in case.compared),
        }
    known = {name: value for name, value in (common | case.quality).items() if value is not None}
    evidence: Evidence = plain(known | own)
    return evidence


def by_floats(case: Case) -> Outcome:
    """The verdict from floats, and where these agree from a proof in index notation, unless one was tried."""
    if case.output is None:
        outcome = equal_in_floats(case)
    else:
        from gradcli.checks.decide.numerical import by_differences  # enclosures decide nearly all: start-up time counts

        outcome = by_differences(case)
    if outcome.verdict == "AGREES" and case.comparison is None:
        case.proof = in_index_notation(case)
        return granted_in_floats(case, outcome)
    return outcome


def equal_in_floats(case: Case) -> Outcome:
    """The verdict on an equality that enclosures leave open, or whose sides no exact oracle can read."""
    if case.comparison is not None:
        return Outcome("INCONCLUSIVE", f"neither proved nor refuted: {case.not_proved or WIDE}", {})
    left, right = case.doubles(case.sides)
    tolerance = case.subject.rtol or FLOAT_TOLERANCE
    slack = tolerance * np.maximum(np.maximum(np.abs(left), np.abs(right)), 1e-300)
    evidence: Evidence = {"basis": "numerical", "points": 1, "bound": tolerance}
    if bool((np.abs(left - right) <= slack).all()):
        return Outcome("AGREES", f"equal in floating point to within {tolerance:g}", evidence)
    return Outcome("INCONCLUSIVE", "the floating-point values differ, and no exact oracle could decide", evidence)


# --- the value itself -----------------------------------------------------------------------------------------------


def infinite_leaf(case: Case) -> Outcome | None:
    """UNDEFINED where a leaf holds what is not a finite number."""
    for name in leaf_names(case.sides) & case.values.keys():
        if not np.isfinite(case.values[name]).all():
            return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
    return None


def without_value(case: Case, nodes: Sequence[Node], answer: Answer) -> Outcome | None:
    """UNDEFINED or INCONCLUSIVE where enclosed nodes have no value, by floats if no oracle can read them; else None."""
    entries = [entry for row in answer.get("entries", ()) for entry in row]
    failed = [entry for entry in entries if "failure" in entry]
    for entry in failed:
        if entry["failure"] == "undefined":
            return undefined(case, entry)
        if entry["failure"] == "tie":  # of a derivative in an equality
            reason, place = entry["reason"], node_text(entry["node"]) if entry["node"] else "an operation"
            verdict = "DISCONTINUOUS" if reason.startswith("jumps") else "KINK" if "kink" in reason else "BOUNDARY"
            return Outcome(verdict, f"{place} {reason}", {"basis": "series"})
    if not failed and "problem" not in answer:
        case.digits = shortened_list([entry["digits"] for entry in entries if "digits" in entry])
        return None
    reason = case.tried["balls"] = failed[0]["reason"] if failed else answer["reason"]
    if all(np.isfinite(x).all() for x in case.doubles(nodes)):
        return None
    if failed:
        return Outcome("INCONCLUSIVE", f"the value is out of range: {reason}", {})
    return Outcome("UNDEFINED", "the value is not a finite number here", {"basis": "numerical"})


def undefined(case: Case, entry: Answer) -> Outcome:
    """UNDEFINED, with the node that fails."""
    node = entry.get("node")
    for at in entry.get("inside", ()):  # in an iteration of a loop
        node = node and node.params["body"].steps[at]
    reason = entry["reason"]
    message = f"{'no' if case.plane else 'not a real'} number here: {reason}"
    if node is None:
        return Outcome("UNDEFINED", message, {"reason": reason})
    text = node_text(node)
    text = node.primitive.name if NAMELESS.search(text) else text.replace("~", "")
    note = Diagnostic("GC401", reason, node.span, severity="warning")
    return Outcome("UNDEFINED", message, {"reason": reason, "node": text}, (note,))


def of_another_function(case: Case, true: float | None) -> Outcome | None:
    """INCONCLUSIVE where floats compute another function of complex numbers than the enclosures do."""
    if not case.plane or true is None:
        return None
    real = float(case.doubles([case.output])[0].real)
    if not np.isfinite(real) or abs(real - true) <= FAR * (1 + abs(true)):
        return None
    message = f"the real part is {real!r} in floats and {true!r} in ball arithmetic: "
    message += "an operation has no single meaning for complex numbers, or rounding decides a branch"
    return Outcome("INCONCLUSIVE", message, {})


# --- comparing both sides in balls --------------------------------------------------------------------------------


def compare_sides(case: Case) -> Outcome | None:
    """Compares both sides of an equality at the point, and at points where one leaf has moved at a time.

    A verdict where a side has no value.
    """
    outcome = without_value(case, case.sides, case.enclosed(case.sides))
    if outcome is not None:
        return outcome
    used = leaf_names(case.sides)
    places = case.beside([name for name in case.subject.moving if name in used], case.subject.settings.samples)
    answer = case.compare([case.values, *places])
    if "problem" in answer:
        case.tried["balls"] = answer["reason"]
        return None
    case.comparison, *others = answer["points"]
    case.nearby = [pair for pair in zip(places, others, strict=True) if is_evidence(pair[1])]
    return None


def compare_derivative(case: Case) -> Outcome | None:
    """Compares a claimed gradient with the derivative at the point and at points where the checked leaf has moved.

    A verdict where that shows a missing value or a point at which the output is not smooth.
    """
    wanted, leaf, size = case.subject.settings.samples, case.own_leaf or "", case.target.type.size
    near = case.beside([case.own_leaf], min(SPARE * wanted, MOST_ENTRIES // max(size, 1)))
    if size > PROVED_ENTRIES and size * work_of(reachable([case.output])) > MOST_WORK and case.identity[0]:
        near = []  # a proof needs no other points
    beside = [{leaf: values[leaf]} for values in near]
    about = {"derivative": case.subject.derivative(), "beside": beside, "wanted": wanted, "rtol": case.subject.rtol}
    answer = case.exact.ask("judge", right=case.subject.judged, point=case.values, **about)
    if "problem" in answer:
        case.tried["series"] = answer["reason"]
        return without_value(case, [case.output], case.enclosed([case.output]))
    value = answer["value"]
    outcome = without_value(case, [case.output], {"entries": [[value]]})
    outcome = outcome or of_another_function(case, value.get("value"))
    if outcome is not None:
        return outcome
    case.comparison, tie = answer["given"], answer["tie"]
    case.ties += ["a tie at the point"] if tie is not None or case.comparison.get("tied") else []
    case.nearby = [(near[other["position"]], other) for other in answer["beside"]]
    if tie is not None:
        from gradcli.checks.decide.nonsmooth import at_a_tie  # most points are smooth

        outcome = at_a_tie(case, tie)
    return outcome or without_derivative(case)


def without_derivative(case: Case) -> Outcome | None:
    """The verdict where the derivative is undefined, or only the claim or gradient."""
    comparison = case.comparison
    if "E" in comparison["relations"]:
        from gradcli.checks.decide.nonsmooth import open_tie

        return open_tie(case, comparison["reason"] or "the derivative is undefined")
    if "R" not in comparison["relations"]:
        return None
    exact = comparison["details"][0]["exact"]
    message = f"{case.role} has no value here, although the derivative is {exact}: {comparison['reason']}"
    outcome = undefined(case, comparison)
    return outcome._replace(message=message, evidence={**outcome.evidence, "exact": digits_of(comparison, "exact")})


def leave_other_branches(case: Case) -> None:
    """Leaves out points nearby that contradict a claim which is proved where some signs are as at the point.

    Other signs hold there, such as that of t in sqrt(t**2), which decides no branch.
    """
    compatible = [pair for pair in case.nearby if "!" not in pair[1]["relations"]]
    agrees, few = set(case.comparison["relations"]) <= RIGHT, len(case.comparison["entries"]) <= PROVED_ENTRIES
    if len(compatible) == len(case.nearby) or not agrees or not few or case.plane:
        return
    proof = by_normal_form(case)
    if proof is not None and proof.assumes("sign") and not proof.assumes("fixed"):
        case.nearby = compatible
    else:
        case.tried.pop("algebra", None)


# --- both sides agree -----------------------------------------------------------------------------------------------


def agreed(case: Case) -> Outcome | None:
    """PROVED, CERTIFIED or IMPRECISE; None where the sides neither agree nor differ for certain."""
    agree = set(case.comparison["relations"]) <= RIGHT
    proof = case.proof = proof_of(case)
    case.tried[case.oracle] = f"both sides agree at {at_points(case)}" if agree else WIDE
    if not proof and not agree:
        return underflowing(case)
    if not proof and differs_closely(case):
        return refuted(case)
    outcome = None
    if case.output is not None:
        case.agree = agree
        outcome = float_quality(case, case.compared[:1] if proof else case.compared)
    if outcome is None:
        outcome = granted(case)
    notes = [case.quality.get("ill_conditioned"), INDEPENDENT if case.independent else None]
    return off_structure(case, outcome._replace(message="; ".join(filter(None, [outcome.message, *notes]))))


def differs_closely(case: Case) -> bool:
    """Whether a claim that is not proved differs far behind its first digits: 1 + exp(-1000) is not 1."""
    if case.subject.kind == "gradient" or "~" in case.comparison["relations"] or "chance" in case.comparison:
        return False
    case.nearby.sort(key=lambda pair: -len(repr([x.tolist() for x in pair[0].values()])))  # short ones are special
    answer = case.compare([values for values, _ in case.compared[:2]], closely=True)
    first, *others = answer.get("points", [{"region": False}])
    if differ(first):
        case.comparison = first
    case.nearby[:1] = [(at, new if differ(new) else old) for (at, old), new in zip(case.nearby, others, strict=False)]
    return any("!" in comparison["relations"] for _, comparison in case.compared)


def underflowing(case: Case) -> Outcome | None:
    """AGREES where 0 is claimed for numbers that no double tells from it."""
    comparison = case.comparison
    if UNDERFLOW not in comparison["relations"] or not set(comparison["relations"]) <= {*RIGHT, UNDERFLOW}:
        return None
    case.tried[case.oracle] = "0 is claimed for a number below half the smallest double"
    first = comparison["details"][0]
    exact = re.sub(r"\.?0*e", "e", first["exact"])
    message = f"{exact}{case.where(first['entry'])} rounds to 0 in float64, which is claimed, but is not 0"
    return Outcome("AGREES", message, {"basis": "underflow", "exact": digits_of(comparison, "exact")})


def proof_of(case: Case) -> Proof | None:
    """The proof that both sides are equal, whose assumptions hold; none is tried of what has a tolerance."""
    subject, comparison = case.subject, case.comparison
    if case.independent and subject.judged.constant == 0:
        return Proof("independent")
    if case.plane or "~" in comparison["relations"]:
        return None
    ways: tuple[Callable[[Case], Proof | None], ...] = (by_normal_form, in_index_notation)
    if case.output is not None and len(comparison["entries"]) > PROVED_ENTRIES:
        ways = (in_index_notation,)
    elif any(node.primitive is DATA and node.type.size > MOST_DATA for node in reachable(case.sides)):
        ways = ways[::-1]
    return next((proof for proof in (way(case) for way in ways) if proof), None)


def by_normal_form(case: Case) -> Proof | None:
    """The proof that the normal forms of both sides are one, entry by entry."""
    subject, question = case.subject, {"left": case.subject.left}
    if case.output is not None:
        question = {"output": case.output, "target": case.target, "entries": case.comparison["entries"]}
    answer = case.exact.prove(subject.judged, case.values, moving=subject.moving, **question)
    case.ties += [answer["reason"]] if "tie" in answer else []
    return holding(case, by_normal_forms(answer), answer.get("reason"))


def in_index_notation(case: Case) -> Proof | None:
    """The proof that both sides of a claim are one formula in index notation."""
    return holding(case, *case.identity)
