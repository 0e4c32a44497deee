"""Grants PROVED and CERTIFIED: no other module writes these verdicts.

A proof counts where each of its assumptions holds. Balls that enclose both sides at the point have decided every branch
on the way and divided by nothing that may be 0: then they hold, unless the point is a tie. Where balls enclose nothing
the signs of what decides branches are looked at by themselves. An assumption that is false, or not decided, is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.decide.assumptions import conditions
from gradcli.checks.decide.case import RIGHT, Outcome
from gradcli.checks.evaluate.interpretation import LOST
from gradcli.checks.formatting import counted
from gradcli.checks.subjects import surfaces_of
from gradcli.graph.node import dependents, reachable

if TYPE_CHECKING:
    from gradcli.checks.decide.assumptions import Proof
    from gradcli.checks.decide.case import Case, Evidence

PROVED_ENTRIES = 16  # of one leaf, each by itself; those of larger ones all at once, in index notation


# --- assumptions at the point ---------------------------------------------------------------------------------------


def holding(case: Case, proof: Proof | None, reason: str | None) -> Proof | None:
    """A proof where its assumptions hold at the point; else None, and the reason is kept."""
    doubt = reason if proof is None else doubted(case, proof)
    if proof is None or doubt is not None:
        case.not_proved = case.not_proved or doubt or None
        return None
    case.tried["algebra"] = f"proved ({proof.how})"
    return proof


def doubted(case: Case, proof: Proof) -> str | None:
    """The first assumption of a proof that is false at the point or not decided, in words.

    Signs were decided by the prover, at the point.
    """
    comparison = case.comparison
    if comparison is None:
        return undecided_surface(case) if proof.assumes("apart", "kink", "defined") else None
    if case.ties and proof.assumes("apart", "kink"):
        return case.ties[0]
    if set(comparison["relations"]) <= RIGHT or (comparison["reason"] or LOST).startswith(LOST):
        return None
    reason: str = comparison["reason"]
    return reason


def undecided_surface(case: Case) -> str | None:
    """A kink or a tie, in words, on which the point lies or may lie; None where it lies on none."""
    surfaces = [surface for side in case.sides for surface in surfaces_of(side)]
    if case.target is not None:
        moved = dependents(reachable([surface.zero for surface in surfaces]), [case.target])
        surfaces = [surface for surface in surfaces if surface.zero in moved]
    zeros = [surface.zero for surface in surfaces]
    answer = case.exact.beside(zeros).values(zeros, case.values) if zeros else {"entries": []}
    if "problem" in answer:
        reason: str = answer["reason"]
        return reason
    for surface, row in zip(surfaces, answer["entries"], strict=True):
        signs = [entry.get("sign") for entry in row]
        if 0 in signs or None in signs:
            return f"{surface.where} {'here' if 0 in signs else 'may hold here'}"
    return None


# --- verdicts -------------------------------------------------------------------------------------------------------


def granted(case: Case) -> Outcome:
    """PROVED by the proof of a case, else CERTIFIED: both sides agree wherever they were compared."""
    return certified(case) if case.proof is None else Outcome("PROVED", by_algebra(case.proof), {})


def granted_in_floats(case: Case, outcome: Outcome) -> Outcome:
    """A verdict from floats that agree, made PROVED by the proof of the case, if it has one."""
    if case.proof is None:
        return outcome
    return outcome._replace(verdict="PROVED", message=f"{by_algebra(case.proof)}; {outcome.message}")


def granted_to_digits(which: str, evidence: Evidence) -> Outcome:
    """CERTIFIED as far as the digits of some numbers go."""
    return Outcome("CERTIFIED", f"equal within the digits of {which}", evidence)


def granted_on_set(outcome: Outcome, proved: bool, message: str) -> Outcome:
    """The verdict on a set of points of which the outcome is that at one; imprecise floats stay, conditions do not."""
    verdict = "IMPRECISE" if outcome.verdict == "IMPRECISE" else "PROVED" if proved else "CERTIFIED"
    evidence = {name: value for name, value in outcome.evidence.items() if name not in ("region", "assumptions")}
    return outcome._replace(verdict=verdict, message=message, evidence=evidence)


def by_algebra(proof: Proof) -> str:
    """How both sides are proved equal, and what the proof assumes."""
    message, region, fixed = "equal by algebra", proof.texts("sign"), proof.texts("fixed")
    message += f", in all {proof.entries:,} entries" if proof.entries > PROVED_ENTRIES else ""
    message += ", wherever no comparison is a tie" if proof.assumes("apart", "kink") else ""
    message += ", by induction over the iterations" if proof.induction else ""
    message += f", {conditions(region)}" if region else ""
    message += ", in the connected region around the point" if proof.assumes("connected") else ""
    return message + (f", with {', '.join(fixed)} fixed at their values" if fixed else "")


def at_points(case: Case) -> str:
    """How many points were compared."""
    return counted(1 + len(case.nearby), "point")


def certified(case: Case) -> Outcome:
    """Both sides agree, without a proof."""
    comparison, rtol, derivative = case.comparison, case.subject.rtol, case.output is not None
    evidence: Evidence = {"points": len(case.compared)}
    message = "the exact derivative is enclosed" if derivative else "both sides are enclosed and agree"
    message += f" at {at_points(case)}"
    if "~" in comparison["relations"]:
        evidence["rtol"] = rtol
        tolerance = f"within the tolerance {rtol:g}"
        return Outcome("CERTIFIED", tolerance if derivative else f"{message} {tolerance}", evidence)
    if "chance" in comparison:
        count, chance = len(comparison["entries"]), max(answer["chance"] for _, answer in case.compared)
        evidence |= {"covered": f"all {count:,} entries by random directions", "chance": chance}
        message += f", in all {count:,} entries (an error of 1e-12 in one is missed with probability {chance:.0e})"
    zero = all(x == 0 for _, answer in case.compared for x in answer["exact"])
    if derivative and (zero or not case.nearby):
        message += ", at this point only"
    return Outcome("CERTIFIED", message, evidence)
