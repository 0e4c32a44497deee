"""DISAGREES, with a counterexample and a diagnosis, where enclosures are disjoint.

A refutation must survive two doubts: a constant typed with many digits may be rounded, and a decimal may be meant as it
is written although float64 holds another number. What does not survive is equal to the digits of its decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.case import OPEN, RIGHT, Outcome, digits_of, speaks
from gradcli.checks.decide.floats import LIMIT_ULPS, ulps
from gradcli.checks.decide.precision import float_kink
from gradcli.checks.evaluate.interpretation import rounded_constants
from gradcli.checks.formatting import distinct_digits
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.diagnostics import Diagnostic, Span
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.decide.case import Answer, Case, Evidence, Values
    from gradcli.checks.diagnosis.ratios import Reading
    from gradcli.checks.subjects import Subject


MOST_MATRIX = 400  # entries of a matrix that is moved off its symmetry
SHOWN_MATRIX = 9  # of one that is written out in a message
BRANCH = "branch"
PRINTED = 0.01  # half a unit of the third digit: how far a rounded number may be off
NEAR = 1e-12  # relative: of what is left open by a branch


def refuted(case: Case) -> Outcome | None:
    """DISAGREES where both sides are disjoint at a compared point, or what explains that; None where they are not."""
    wrong = [(values, answer) for values, answer in case.compared if "!" in answer["relations"]]
    if not wrong:
        return None
    case.tried[case.oracle] = "the enclosures of both sides are disjoint"
    if case.number and (near := near_enough(case, wrong[0][1])) is not None:
        return near
    ways: set[str] = set()
    for values, answer in wrong:
        way = equal_after_all(case, values, answer)
        if way is None:
            return refuted_at(case, values, answer)
        ways.add(way)
    return refuted_at(case, *wrong[0]) if by_luck(case) else to_the_digits(case, ways, digits_of(wrong[0][1], "exact"))


def refuted_at(case: Case, values: Values, answer: Answer) -> Outcome:
    """DISAGREES, with the point where both sides differ as the counterexample."""
    where, evidence, first = case.counterexample(values, answer)
    exact, claimed = distinct_digits(first["exact"], first["claimed"])
    if case.output is None:
        message = f"the left side{where} is {exact}, the right side is {claimed}"
        message += "" if values is case.values else " at a point near the given one, where it holds"
    else:
        message = f"the exact derivative{where} is {exact}, not {claimed}"
    if values is case.values:
        kink, text = float_kink(case)
        evidence |= kink
        message += text
    if case.holomorphic is False:
        evidence["holomorphic"] = False
        parts = ": use the real and the imaginary part as separate leaves"
        claim = ", so the claim is compared with dL/dx - i*dL/dy of its real part"
        message += f"; the output is not holomorphic here{parts if case.subject.kind == 'gradient' else claim}"
    return disagrees(message, evidence, readings(case, values))


def disagrees(message: str, evidence: Evidence, causes: Sequence[Reading]) -> Outcome:
    """DISAGREES, with the readings of the mistake, and the place of the likeliest for a caret below it."""
    notes: list[Diagnostic] = []
    for cause in causes[:1]:
        message += f"; {cause.text}"
        evidence["diagnosis"] = [{k: v for k, v in one._asdict().items() if v is not None} for one in causes]
        if cause.span is not None:
            right = None if cause.correction is None else f"right is {cause.correction}"
            notes.append(Diagnostic("GC412", cause.text, Span(*cause.span), help=right, severity="note"))
    return Outcome("DISAGREES", message, evidence, tuple(notes))


def readings(case: Case, refuting: Values) -> list[Reading]:
    """What may be wrong with a refuted claim; of an equality that the values of a point refute."""
    from gradcli.checks.diagnosis.explanation import explain  # most claims are right: start-up time is a feature

    if case.plane or case.subject.kind == "gradient":
        return []
    if case.output is None:
        return explain(case, [refuting])
    judged, entries = case.subject.judged.type, case.given["entries"]
    shape = judged.shape if len(entries) == judged.size else (len(entries),)
    known = [(v, a) for v, a in case.compared if None not in a["exact"] and None not in a["claimed"]]
    exact, claimed = [], [np.array(answer["claimed"]).reshape(shape) for _, answer in known]
    for _, answer in known:  # NaN where only a combination of entries is known, as for most of a large array
        entries_of = np.array(answer["exact"], dtype=np.float64)
        entries_of[[one == OPEN for one in answer["relations"]]] = np.nan
        exact.append(entries_of.reshape(shape))
    sizes = [n for node in reachable([case.output]) for n in (*node.type.shape, node.type.size)]
    return explain(case, [values for values, _ in known], exact, claimed, sizes)


def blaming(outcome: Outcome, rules: Sequence[tuple[Subject, Outcome]]) -> Outcome:
    """A refuted gradient with the first wrong one of the hand-written rules that it uses, which has its own check."""
    wrong = next((rule for rule, other in rules if other.verdict == "DISAGREES"), None)
    if outcome.verdict != "DISAGREES" or wrong is None:
        return outcome
    text = f"the rule of {wrong.rule} is wrong, at line {wrong.line}"
    evidence = {**outcome.evidence, "diagnosis": [{"name": "wrong rule", "text": text}]}
    return outcome._replace(message=f"{outcome.message}; {text}", evidence=evidence)


# --- what is no refutation after all ------------------------------------------------------------------------------


def near_enough(case: Case, answer: Answer) -> Outcome | None:
    """AGREES for a bare number that is right to its digits, or to the accuracy of floats."""
    evidence: Evidence = {"basis": "digits", "exact": digits_of(answer, "exact")}
    printed = case.compare([case.values], wide=True, printed=True)
    if "problem" not in printed and rescued(printed["points"][0], PRINTED):
        return Outcome("AGREES", "the number is right to the digits given at this point", evidence)
    if None in answer["exact"] or None in answer["claimed"]:
        return None
    worst = max(ulps(c, e) for c, e in zip(answer["claimed"], answer["exact"], strict=True))
    if worst > LIMIT_ULPS:
        return None
    message = f"the number is right to {worst:.3g} ulp, at this point"
    return Outcome("AGREES", message, {**evidence, "basis": "numerical", "ulps": worst, "points": 1})


def equal_after_all(case: Case, values: Values, answer: Answer) -> str | None:
    """What makes both sides equal after all: rounded "constants", or "decimals" as written; None if nothing does.

    "branch" where a rounded constant leaves the branch of some entries open, and the entries that differ are equal to
    12 digits: such a point neither refutes nor explains.
    """
    undecided = False
    for decimal in (False,) if case.plane else (False, True):
        wide = case.compare([values], decimal=decimal, wide=True)
        if "problem" in wide:
            continue
        point = wide["points"][0]
        if point["region"] and rescued(point):
            return "decimals" if decimal else "constants"
        undecided |= not decimal and (not point["region"] or set(point["relations"]) <= RIGHT | {OPEN})
    disjoint = "".join(OPEN if relation == "!" else "=" for relation in answer["relations"])
    near = rescued({**answer, "relations": disjoint}, NEAR)
    return BRANCH if undecided and near and rounded_constants(case.sides) else None


def rescued(answer: Answer, slack: float = 1e-9) -> bool:
    """Whether both sides are equal to within what rounded constants explain."""
    pairs = zip(answer["relations"], answer["exact"], answer["claimed"], strict=True)
    unequal = [(relation, exact, claimed) for relation, exact, claimed in pairs if relation not in RIGHT]
    if any(relation != OPEN or exact is None or claimed is None for relation, exact, claimed in unequal):
        return False
    return all(abs(exact - claimed) <= slack * max(abs(exact), abs(claimed)) for _, exact, claimed in unequal)


def to_the_digits(case: Case, ways: set[str], exact: list[Any]) -> Outcome:
    """CERTIFIED, as far as the digits of rounded constants or decimals go; INCONCLUSIVE where no point was decided."""
    evidence: Evidence = {"exact": exact}
    if ways == {BRANCH}:
        reason = "a rounded constant decides which branch is taken at the point"
        return Outcome("INCONCLUSIVE", f"equal to 12 digits, and {reason}", {"open": reason, **evidence})
    constants = [] if "decimals" in ways else rounded_constants(case.sides)
    if constants:
        which = f"the constant{'' if len(constants) == 1 else 's'} {', '.join(constants[:3])}"
        evidence |= {"constants": constants[:3], "reading": "rounded"}
        return Outcome("CERTIFIED", f"equal within the digits of {which}", evidence)
    evidence["reading"] = "equal only if decimals are read exactly as written, not as float64"
    return Outcome("CERTIFIED", "equal within the digits of its decimals, which float64 cannot hold exactly", evidence)


def by_luck(case: Case) -> bool:
    """Whether a claim about an intermediate value holds at the decimals of the point only, and not beside them."""
    if case.own_leaf is not None or case.plane or case.target is None:
        return False
    names = sorted(leaf_names([case.target]) & set(case.subject.moving))
    answer = case.compare(case.beside(names, len(names)), decimal=True, wide=True)
    return any(map(differ, answer.get("points", ())))


def differ(answer: Answer) -> bool:
    """Whether both sides are certainly different at a point of the region."""
    return speaks(answer) and "!" in answer["relations"]


def off_structure(case: Case, proof: Mapping[str, Any], right: Outcome) -> Outcome:
    """A right claim, with a warning where it is wrong for matrices that are not symmetric or diagonal as the given one.

    A proof does not use the symmetry, and holds without it.
    """
    subject = case.subject
    if subject.kind == "gradient" or case.number or not case.samples or case.plane:
        return right
    read = leaf_names(case.sides) & set(subject.moving)
    if proof.get("proved"):
        read &= set(proof.get("frozen", ()))
    for name in sorted(read, key=lambda one: (one != case.own_leaf, one)):
        value, domain = case.values[name], subject.domain if name == case.own_leaf else None
        for word, moved in sample_points.off_structure(value, domain, case.seed) if value.size <= MOST_MATRIX else ():
            at = {**case.values, name: moved}
            first = next(iter(case.compare([at], wide=True).get("points", ())), None)
            if first is None or not differ(first):
                continue
            where, evidence, entry = case.counterexample(at, first)
            exact, claimed = distinct_digits(entry["exact"], entry["claimed"])
            place = f"at {name} = {moved.tolist()}" if moved.size <= SHOWN_MATRIX else f"at a different {name}"
            what = f"entry {where} is" if where else "the exact value is"
            kind = f"{name} is not {word}"
            warning = f"; warning: wrong where {kind}: {place} {what} {exact}, not {claimed}"
            evidence = {**right.evidence, "not_in_general": {"where": kind, **evidence["counterexample"]}}
            return right._replace(message=right.message + warning, evidence=evidence)
    return right
