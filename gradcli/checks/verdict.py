"""The verdict on a subject at a point; it is never stronger than its evidence.

Three numbers: E, the oracle's enclosure of the derivative; R, what is judged, in balls; F, what is judged, in float64.
R against E says whether the rule is right, F against E whether the number is good: `enclosure`, with `rough` for points
that are not smooth, `refutation` and `quality`. What these leave open is decided by finite differences here. A
difference alone refutes nothing: only where balls part a claim from the engine's own gradient, and differences confirm
the engine at every point where they speak, is the claim wrong, and the evidence says on what basis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks import differences, numerical
from gradcli.checks.case import Case, Outcome, leaf_names, points_told, usable
from gradcli.checks.diagnosis.explanation import explain
from gradcli.checks.enclosure import by_series
from gradcli.checks.equality import equality
from gradcli.checks.floats import evaluated, moving
from gradcli.checks.kinks import on
from gradcli.checks.quality import float_tie
from gradcli.checks.refutation import notes, told
from gradcli.checks.shown import plain, point_text, position, told_apart
from gradcli.checks.subjects import forward
from gradcli.checks.worker import TimeOver
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.case import Answer, Evidence, Values
    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.checks.worker import NoAnswer
    from gradcli.graph.node import Node

__all__ = ["Outcome", "judge", "unanswered"]

ORDER = ("silent", "agrees", "near", "differs")  # of what differences say, the worst last


def judge(
    exact: Exact, subject: Subject, seed: int, samples: int = 3, dtype: str = "float64", backend: str = "numpy"
) -> Outcome:
    """The verdict on one subject; `samples` counts points beside the given one, `backend` computes the floats."""
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
    return found if found is not None else by_differences(case)


# --- by finite differences ------------------------------------------------------------------------------------------


def by_differences(case: Case) -> Outcome:
    """The verdict from values alone."""
    if case.target not in reachable([case.output]):
        return independent(case)
    places: list[Values] = [case.values, *(case.nearby or case.beside()[: case.samples])]
    seen = [differenced(case, values, case.subject.judged) for values in places]
    case.evidence |= {"basis": "numerical", "steps": differences.STEPS}
    if any(one.state in ("differs", "near") for one in seen):
        return parted(case, places, seen)
    spoken = [one for one in seen if one.state == "agrees"]
    if not spoken and not case.smooth_tie:
        case.tried["differences"] = seen[0].reason or "silent"
        return Outcome("INCONCLUSIVE", f"differences cannot tell: {seen[0].reason}", {})
    tie = None if case.smooth_tie else float_tie(case)
    if tie is not None:
        reason = f"the point lies on a kink ({on(tie)}), where differences decide nothing"
        case.tried["differences"] = reason
        return Outcome("INCONCLUSIVE", reason, {"float_kink": on(tie)})
    bound = max((one.bound for one in spoken), default=0.0)
    case.tried["differences"] = f"agree at {points_told(len(spoken))}"
    evidence: Evidence = {"points": len(spoken), "bound": bound, "covered": seen[0].covered}
    if not modes_agree(case):
        return Outcome("INCONCLUSIVE", "forward and reverse mode differ, though differences agree", evidence)
    message = f"differences agree at {points_told(len(spoken))} to {bound:.1g}"
    if seen[0].state == "silent" and case.smooth_tie:
        message = f"differences from both sides agree at the point, and at {points_told(len(spoken))} nearby"
    elif seen[0].state == "silent":
        message += f"; at the point itself they cannot tell ({seen[0].reason})"
    exact = case.tried.get("series", case.tried.get("balls"))
    if exact is not None and not case.smooth_tie:
        message += f"; not certified: {exact}"
    return Outcome("AGREES", message, evidence)


def differenced(case: Case, values: Values, judged: Node) -> numerical.Numerical:
    """What differences say of a gradient at one point."""
    if case.plane:
        f, x = moving(case.output, [case.target], values)
        return numerical.judge(f, x, case.made(values, judged), None, case.seed, case.subject.rtol)
    f, x = moving(case.output, [case.target], values)
    found = evaluated([judged], values)[0]
    many = x.size > numerical.ALL_ENTRIES
    moved = numerical.apart(case.output, case.target, values) if many else None
    alone = many and values is case.values and numerical.affordable(case.output, x.size)
    return numerical.judge(f, x, found, case.subject.domain, case.seed, case.subject.rtol, moved, alone)


def parted(case: Case, places: Sequence[Values], seen: Sequence[numerical.Numerical]) -> Outcome:
    """Differences contradict what is judged."""
    subject = case.subject
    reason = max(seen, key=lambda one: ORDER.index(one.state)).reason
    case.tried["differences"] = f"contradict: {reason}"
    if subject.engine is not None and not case.plane and all(one.state in ("differs", "silent") for one in seen):
        engine = [differenced(case, values, subject.engine) for values in places]
        answer = case.compare(places, left=subject.engine, wide=True)
        both = [
            (values, p)
            for values, one, p in zip(places, engine, answer.get("points", []), strict=False)
            if one.state == "agrees" and usable(p) and "!" in p["relations"]
        ]
        if len(both) > 1 or (both and len(places) == 1):
            return numerically_wrong(case, *both[0])
    if seen[0].state in ("agrees", "silent"):
        return Outcome("INCONCLUSIVE", f"differences contradict it at a point nearby: {reason}", {})
    return Outcome("INCONCLUSIVE", f"differences contradict it, and no exact oracle could decide: {reason}", {})


def numerically_wrong(case: Case, values: Values, answer: Answer) -> Outcome:
    """A claim that balls part from an engine which differences confirm."""
    where, evidence, first = case.counterexample(values, answer)
    shape = case.subject.judged.type.shape
    exact, claimed = (
        np.array([np.nan if x is None else x for x in answer[side]]).reshape(shape) for side in ("exact", "claimed")
    )
    read = explain(case, [values], [exact], [claimed])
    if read:
        evidence["diagnosis"] = [told(reading) for reading in read]
    exact_digits, claimed_digits = told_apart(first["exact"], first["claimed"])
    message = (
        f"the claim{where} is {claimed_digits}; balls part it from the engine's {exact_digits}, "
        "and differences confirm the engine"
    )
    return Outcome("DISAGREES", message + (f"; {read[0].text}" if read else ""), evidence, notes(read))


def modes_agree(case: Case) -> bool:
    """Whether forward mode gives what reverse mode gives, in floats; only the engine's own gradient has modes."""
    if case.subject.kind != "gradient" or case.plane:
        return True
    tangent, direction = forward(case.subject, case.seed)
    moved, judged = evaluated([tangent, case.subject.judged], case.values)
    terms = (judged * direction).reshape(-1)
    gap = abs(float(moved) - float(terms.sum()))
    agree = not np.isfinite(gap) or gap <= 1e-9 * max(float(np.abs(terms).sum()), 1e-300)
    case.tried["modes"] = "forward and reverse mode agree" if agree else "forward and reverse mode differ"
    return bool(agree)


def independent(case: Case) -> Outcome:
    """The output does not depend on the target: the gradient is zero."""
    if case.plane:
        zero = not leaf_names([case.subject.judged]) and not case.made(case.values).any()
        answer: Answer = {"entries": [[{"sign": 0}]] if zero else [[]]}
    else:
        answer = case.exact.values([case.subject.judged], case.values)
    entries = answer.get("entries", [[]])[0]
    if entries and all(entry.get("sign") == 0 for entry in entries):
        return Outcome("PROVED", "the output does not depend on it: the gradient is zero", {"independent": True})
    wrong = next((i for i, entry in enumerate(entries) if entry.get("sign") in (-1, 1)), None)
    if wrong is None:
        return Outcome("INCONCLUSIVE", answer.get("reason", "the claim could not be evaluated"), {})
    where = position(wrong, case.subject.judged.type.shape)
    found = {"at": point_text(case.values, case.exact.used), "entry": where, "exact": "0"}
    evidence: Evidence = {"counterexample": {**found, "claimed": entries[wrong]["digits"]}}
    return Outcome("DISAGREES", f"the output does not depend on it: the gradient{where} is 0", evidence)
