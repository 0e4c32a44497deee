"""A case whose enclosures are disjoint goes in, DISAGREES with a counterexample and a reading of it comes out.

A refutation must survive two doubts: a constant typed with many digits may be rounded, and a decimal may be meant as it
is written although float64 holds another number. What does not survive is equal to the digits of its decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import diagnosis, points
from gradcli.checks.case import Outcome, exact_digits, rescued, usable
from gradcli.checks.diagnosis.explanation import explain
from gradcli.checks.floats import LIMIT_ULPS, ulps
from gradcli.checks.shown import told_apart
from gradcli.diagnostics import Diagnostic, Span
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.case import Answer, Case, Evidence, Values

PRINTED = 0.01  # half a unit of the third digit
TO_THE_DIGITS = "equal to the digits of its decimals, which float64 cannot hold exactly"


def refuted(case: Case, found: Sequence[tuple[Values, Any]], entries: Sequence[int]) -> Outcome | None:
    """DISAGREES where R and E are disjoint at one of the points; None where they are not."""
    wrong = [(values, answer) for values, answer in found if "!" in answer["relations"]]
    if not wrong:
        return None
    if case.number and (near := near_enough(case, case.names[False], wrong[0][1])) is not None:
        return near
    standing = next(((values, answer) for values, answer in wrong if stands(case, values, entries)), None)
    if standing is None:
        case.evidence["reading"] = "equal only if decimals are read as they are written, not as float64"
        return Outcome("CERTIFIED", TO_THE_DIGITS, {"exact": exact_digits(wrong[0][1])})
    values, answer = standing
    values, answer = shortened(case, values, answer)
    where, evidence, first = case.counterexample(values, answer)
    read = readings(case, found, entries)
    if read:
        evidence["diagnosis"] = [told(reading) for reading in read]
    right, wrong_digits = told_apart(first["exact"], first["claimed"])
    message = f"the exact derivative{where} is {right}, not {wrong_digits}"
    return Outcome("DISAGREES", message + (f"; {read[0].text}" if read else ""), evidence, notes(read))


def stands(case: Case, values: Values, entries: Sequence[int]) -> bool:
    """Whether a refutation survives constants being rounded, and decimals being read as they are written."""
    for decimal in (False, True):
        if decimal not in case.names and not case.derive(entries, decimal):
            continue
        answer = case.exact.compare(
            case.subject.judged,
            [values],
            name=case.names[decimal],
            decimal=decimal,
            wide=True,
            rtol=case.subject.rtol,
        )
        if "problem" not in answer and answer["points"][0]["region"] and rescued(answer["points"][0]):
            return False
    return True


def printed(case: Case, name: Mapping[str, Any] | None) -> bool:
    """Whether a bare number is right to the digits that were typed."""
    subject = case.subject
    answer = case.exact.compare(
        subject.judged, [case.values], name=name, left=subject.left, wide=True, printed=True, rtol=subject.rtol
    )
    return "problem" not in answer and rescued(answer["points"][0], PRINTED)


def near_enough(case: Case, name: Mapping[str, Any] | None, answer: Answer) -> Outcome | None:
    """AGREES for a bare number that is right as far as its digits go, or as far as a float computation does."""
    evidence: Evidence = {"basis": "digits", "exact": exact_digits(answer)}
    if printed(case, name):
        return Outcome("AGREES", "the number is right to the digits given, at this point", evidence)
    if None in answer["exact"] or None in answer["claimed"]:
        return None
    worst = max(ulps(c, e) for c, e in zip(answer["claimed"], answer["exact"], strict=True))
    if worst > LIMIT_ULPS:
        return None
    message = f"the number is right to {worst:.3g} ulp, at this point"
    return Outcome("AGREES", message, {**evidence, "basis": "numerical", "ulps": worst, "points": 1})


def shortened(case: Case, values: Values, answer: Answer) -> tuple[Values, Answer]:
    """The counterexample with fewer digits in the checked leaf, where it still is one."""
    name = case.own_leaf
    if name is None or not case.samples:
        return values, answer
    short = points.shortest(values[name], case.subject.domain, lambda x: differs(case, {**values, name: x}))
    if short is values[name]:
        return values, answer
    again = case.exact.compare(case.subject.judged, [{**values, name: short}], name=case.names[False])
    return ({**values, name: short}, again["points"][0]) if "problem" not in again else (values, answer)


def differs(case: Case, values: Values) -> bool:
    """Whether the judged thing is surely wrong at a point, rounded constants allowed for."""
    answer = case.exact.compare(
        case.subject.judged, [values], name=case.names[False], wide=True, rtol=case.subject.rtol
    )
    return "problem" not in answer and usable(answer["points"][0]) and "!" in answer["points"][0]["relations"]


def readings(case: Case, found: Sequence[tuple[Values, Any]], entries: Sequence[int]) -> list[diagnosis.Reading]:
    """What may be wrong, as far as ratios and exchanges show it."""
    subject = case.subject
    whole = len(entries) == subject.judged.type.size
    shape = subject.judged.type.shape if whole else (len(entries),)
    known = [(v, a) for v, a in found if None not in a["exact"] and None not in a["claimed"]]
    exact = [np.array(answer["exact"]).reshape(shape) for _, answer in known]
    claimed = [np.array(answer["claimed"]).reshape(shape) for _, answer in known]
    sizes = [n for node in reachable([case.output]) for n in (*node.type.shape, node.type.size)]
    return explain(case, [values for values, _ in known], exact, claimed, sizes)


def notes(read: Sequence[diagnosis.Reading]) -> tuple[Diagnostic, ...]:
    """The place of the likeliest slip, for a caret below it."""
    for reading in read[:1]:
        if reading.span is not None:
            right = None if reading.correction is None else f"right is {reading.correction}"
            return (Diagnostic("GC412", reading.text, Span(*reading.span), help=right, severity="note"),)
    return ()


def told(reading: diagnosis.Reading) -> dict[str, Any]:
    """A reading as evidence."""
    return {key: value for key, value in reading._asdict().items() if value is not None}
