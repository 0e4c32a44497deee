"""DISAGREES, with a counterexample and a diagnosis, where enclosures are disjoint.

A refutation must survive two doubts: a constant typed with many digits may be rounded, and a decimal may be meant as it
is written although float64 holds another number. What does not survive is equal to the digits of its decimals.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING

import numpy as np

from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.case import OPEN, RIGHT, Outcome, differ, digits_of
from gradcli.checks.decide.floats import LIMIT_ULPS, ulps
from gradcli.checks.decide.granting import granted_to_digits
from gradcli.checks.decide.precision import float_kink
from gradcli.checks.evaluate.interpretation import rounded_constants
from gradcli.checks.formatting import cut, distinct_digits
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.subjects import surfaces_of
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.decide.case import Answer, Case, Evidence, Values
    from gradcli.checks.diagnosis.ratios import ErrorReading
    from gradcli.checks.subjects import Subject

MOST_MATRIX = 400  # entries of a matrix that is moved off its symmetry
SHOWN_MATRIX = 9  # of one that is written out in a message
FAR = 1e-4  # relative: a larger gap does not come from rounding
NEAR = 1e-12  # relative: of what is left open by a branch
MANY_DIGITS = Context(prec=4000)
PRINTED, CONSTANTS, DECIMALS, BRANCH = "printed", "constants", "decimals", "branch"
READINGS = {  # how numbers are read that may be rounded, and how far both sides may then be apart, relatively
    PRINTED: ({"wide": True, "printed": True}, 0.01),  # half a unit of the third digit
    CONSTANTS: ({"wide": True}, 1e-9),
    DECIMALS: ({"wide": True, "decimal": True}, 1e-9),
}


def refuted(case: Case) -> Outcome | None:
    """DISAGREES where both sides are disjoint at a compared point, or what explains that; None where they are not."""
    wrong = [(values, answer) for values, answer in case.compared if "!" in answer["relations"]]
    if not wrong:
        return None
    case.tried[case.oracle] = "the enclosures of both sides are disjoint"
    first = wrong[0]
    if case.number and (near := near_enough(case, first[1])) is not None:
        return near
    ways: set[str] = set()
    for values, answer in wrong:
        way = equal_after_all(case, values, answer)
        if way is None:
            return refuted_at(case, values, answer)
        ways.add(way)
    lucky = (case.own_leaf is None or DECIMALS in ways) and by_luck(case)
    return refuted_at(case, *first) if lucky else to_the_digits(case, ways, first[1])


def refuted_at(case: Case, values: Values, answer: Answer) -> Outcome:
    """DISAGREES, with the point where both sides differ as the counterexample."""
    where, counterexample = case.counterexample(values, answer)
    evidence: Evidence = {"counterexample": counterexample}
    exact, claimed = counterexample["exact"], counterexample["claimed"]
    side = f"the {'left side' if case.output is None else 'exact derivative'}{where} is"
    if answer["closely"]:
        gap = abs(MANY_DIGITS.subtract(Decimal(exact), Decimal(claimed)))
        return disagrees(f"{side} {cut(exact)}, and {case.role} is off by about {gap:.0e}", evidence, [])
    exact, claimed = distinct_digits(exact, claimed)
    message = f"{side} {exact}, not {claimed}"
    if case.output is None:
        message = f"{side} {exact}, the right side is {claimed}"
        if case.subject.left is not None and case.subject.derived.get(case.subject.left, ("",))[0] == "jacobian":
            message = f"J{where} is {exact}, not {claimed}"
        message += "" if values is case.values else " at a point near the given one, where it holds"
    if values is case.values:
        kink, text = float_kink(case, next(d["entry"] for d in answer["details"] if d["relation"] == "!"))
        evidence |= kink
        message += text
    return disagrees(message, evidence, readings(case, values))


def disagrees(message: str, evidence: Evidence, causes: Sequence[ErrorReading]) -> Outcome:
    """DISAGREES, with the readings of the mistake, and the place of the likeliest for a caret below it."""
    notes: list[Diagnostic] = []
    for cause in causes[:1]:
        message += f"; {cause.text}"
        evidence["diagnosis"] = [{k: v for k, v in cause._asdict().items() if v is not None} for cause in causes]
        if cause.span is not None:
            right = None if cause.correction is None else f"right is {cause.correction}"
            notes.append(Diagnostic("GC412", cause.text, Span(*cause.span), help=right, severity="note"))
    return Outcome("DISAGREES", message, evidence, tuple(notes))


def readings(case: Case, refuting: Values) -> list[ErrorReading]:
    """What may be wrong with a refuted claim; of an equality that the values of a point refute."""
    from gradcli.checks.diagnosis.explanation import conjugated, explain  # most claims are right: start-up time

    if case.subject.kind == "gradient":
        return []
    if case.plane:
        return [] if case.output is None else conjugated(case)
    if case.output is None:
        return explain(case, refuting)
    judged, entries = case.subject.judged.type, case.comparison["entries"]
    shape = judged.shape if len(entries) == judged.size else (len(entries),)
    known = [(v, a) for v, a in case.compared if None not in a["exact"] and None not in a["claimed"]]
    claimed = [np.array(answer["claimed"]).reshape(shape) for _, answer in known]
    exact = [  # NaN where only a combination of entries is known, as for most of a large array
        np.where(np.array([*answer["relations"]]) == OPEN, np.nan, np.array(answer["exact"], float)).reshape(shape)
        for _, answer in known
    ]
    sizes = [n for node in reachable([case.output]) for n in (*node.type.shape, node.type.size)]
    return explain(case, refuting, [values for values, _ in known], exact, claimed, sizes)


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
    if rescued(read_as(case, case.values, PRINTED, closely=answer["closely"]), READINGS[PRINTED][1]):
        return Outcome("AGREES", "the number is right to the digits given at this point", evidence)
    if None in answer["exact"] or None in answer["claimed"]:
        return None
    pairs = [*zip(answer["claimed"], answer["exact"], answer["relations"], strict=True)]
    worst = max(ulps(claimed, exact) for claimed, exact, _ in pairs)
    subnormal = any(claimed != exact and abs(exact) < np.finfo(float).tiny for claimed, exact, _ in pairs)
    if worst > LIMIT_ULPS or subnormal:
        return None
    message = f"the number is right to {worst:.3g} ulp, at this point"
    if (0, 0, "!") in pairs:
        message = "the number and the exact one both round to 0 in float64, at this point"
    return Outcome("AGREES", message, {**evidence, "basis": "numerical", "ulps": worst, "points": 1})


def read_as(case: Case, values: Values, reading: str, **about: bool) -> Answer:
    """The comparison at a point with numbers read in another way; no region where it has none."""
    answer = case.compare([values], **READINGS[reading][0], **about)
    return next(iter(answer.get("points", ())), {"region": False})


def equal_after_all(case: Case, values: Values, answer: Answer) -> str | None:
    """What makes both sides equal after all: rounded "constants", or "decimals" as written; None if nothing does.

    "branch" where a rounded constant leaves the branch of some entries open, and the entries that differ are equal to
    12 digits: such a point neither refutes nor explains.
    """
    undecided = False
    for reading in (CONSTANTS,) if case.plane else (CONSTANTS, DECIMALS):
        point = read_as(case, values, reading, closely=answer["closely"])
        if rescued(point, READINGS[reading][1]):
            return reading
        undecided |= reading == CONSTANTS and (not point["region"] or set(point["relations"]) <= RIGHT | {OPEN})
    disjoint = "".join(OPEN if relation == "!" else "=" for relation in answer["relations"])
    near = rescued({**answer, "relations": disjoint}, NEAR)
    return BRANCH if undecided and near and rounded_constants(case.sides) else None


def rescued(answer: Answer, slack: float) -> bool:
    """Whether both sides are equal to within what rounded numbers explain."""
    if not answer["region"]:
        return False
    pairs = zip(answer["relations"], answer["exact"], answer["claimed"], strict=True)
    return all(
        relation in RIGHT
        or (relation == OPEN and None not in both and abs(both[0] - both[1]) <= slack * max(map(abs, both)))
        for relation, *both in pairs
    )


def to_the_digits(case: Case, ways: set[str], answer: Answer) -> Outcome:
    """CERTIFIED, as far as the digits of rounded constants or decimals go; INCONCLUSIVE where no point was decided."""
    evidence: Evidence = {"exact": digits_of(answer, "exact")}
    if ways == {BRANCH}:
        reason = "a rounded constant decides which branch is taken at the point"
        return Outcome("INCONCLUSIVE", f"equal to 12 digits, and {reason}", {"open": reason, **evidence})
    constants = [] if DECIMALS in ways else rounded_constants(case.sides)[:3]
    if constants:
        which = f"the constant{'s' * (len(constants) > 1)} {', '.join(constants)}"
        evidence |= {"constants": constants, "reading": "rounded"}
    else:
        which = "its decimals, which float64 cannot hold exactly"
        evidence["reading"] = "equal only if decimals are read exactly as written, not as float64"
    return granted_to_digits(which, evidence)


def by_luck(case: Case) -> bool:
    """Whether a claim holds at the decimals of the point only: not beside them, or at numbers of more digits."""
    if case.plane or case.target is None:
        return False
    if (name := case.own_leaf) is None:
        names = sorted(leaf_names([case.target]) & set(case.subject.moving))
        places = case.beside(names, len(names))
    else:
        rows = chosen_points.both_sides(case.values[name], case.domains.get(name), case.seed)
        places = [{**case.values, name: moved} for moved in rows[0]]
    return any(differ(read_as(case, place, DECIMALS)) for place in places)


def off_structure(case: Case, right: Outcome) -> Outcome:
    """A right claim, with a warning where it is wrong for matrices that are not symmetric or diagonal as the given one.

    Or for another value of a leaf that it is not the derivative by, such as 1 in place of which it has nothing.
    DISAGREES where it is wrong as soon as no kinks cancel, or no entries are equal or 0. A proof does not use such a
    structure, and holds without it.
    """
    subject = case.subject
    if subject.kind == "gradient" or case.number or not subject.settings.samples or case.plane:
        return right
    read = leaf_names(case.sides) & set(subject.moving)
    if case.proof:
        read &= set(case.proof.texts("fixed"))
    small = [name for name in read if case.values[name].size <= MOST_MATRIX]
    for name in sorted(small, key=lambda leaf: (leaf != case.own_leaf, leaf)):
        value, domain = case.values[name], case.domains.get(name)
        if case.own_leaf in (None, name) and (wrong := right_here_only(case, name)) is not None:
            return wrong
        others = [] if name == case.own_leaf else [*chosen_points.nearby(value, domain, 1, case.seed)][:1]
        if not value.all() or claim_is_tied(case):  # both sides
            others += [np.asarray(2 * value - other) for other in others]
        off = [*chosen_points.off_structure(value, domain, case.seed), *(("as given", other) for other in others)]
        for word, moved in off:
            at = {**case.values, name: moved}
            answer = read_as(case, at, CONSTANTS, anywhere=name != case.own_leaf)
            if not differ(answer):
                continue
            where, counterexample = case.counterexample(at, answer)
            exact, claimed = distinct_digits(counterexample["exact"], counterexample["claimed"])
            place = f"at {name} = {moved.tolist()}" if moved.size <= SHOWN_MATRIX else f"at a different {name}"
            kind = f"{name} is not {word}"
            message = f"{right.message}; warning: wrong where {kind}: {place} "
            message += f"{f'entry {where}' if where else 'the exact value'} is {exact}, not {claimed}"
            evidence = {**right.evidence, "not_in_general": {"where": kind, **counterexample}}
            return right._replace(message=message, evidence=evidence)
    return right


def right_here_only(case: Case, name: str) -> Outcome | None:
    """DISAGREES where a claim is right at a special point, and wrong however near on one side of it.

    Kinks cancel there, also those of a derivative that is differentiated, or entries of the leaf are equal or 0. An
    equality is refuted by one side alone.
    """
    value, domain = case.values[name], case.domains.get(name)
    tied = case.smooth_tie or (not case.nearby and case.subject.inner is not None) or claim_is_tied(case)
    special = tied or chosen_points.repeats(value) or (value.size == 1 and not value.any())
    rows = chosen_points.both_sides(value, domain, case.seed) if special else []
    wrong: list[tuple[Values, Answer]] = []
    for row in rows:
        places = [{**case.values, name: moved} for moved in row]
        answers = case.compare(places, **READINGS[CONSTANTS][0], anywhere=True).get("points", ())
        pairs = [(at, in_floats_too(case, at, answer)) for at, answer in zip(places, answers, strict=False)]
        differing = [pair for pair in pairs if differ(pair[1])]
        if not differing or (case.output is None and len(differing) > 1):  # an equality may be one of such entries
            return None
        wrong += differing[:1]
    if not rows or len(wrong) < len(rows):
        return None
    refutation = refuted_at(case, *wrong[0])
    where = "where kinks cancel" if tied else f"where entries of {name} are equal or 0"
    return refutation._replace(message=f"it is right {where} only: near the point, {refutation.message}")


def claim_is_tied(case: Case) -> bool:
    """Whether the given point lies on a kink of what is judged."""
    zeros = [surface.zero for surface in surfaces_of(case.subject.judged)]
    return any(not np.all(value) for value in case.doubles(zeros)) if zeros else False


def in_floats_too(case: Case, values: Values, answer: Answer) -> Answer:
    """A comparison in which the float of a claimed entry counts where balls leave the entry open: x == max(x)."""
    if not answer["region"]:
        return answer
    floats, details, relations = case.judged_floats(values), [], [*answer["relations"]]
    for detail in answer["details"]:
        at = answer["entries"].index(detail["entry"])
        exact, claimed = answer["exact"][at], float(floats[detail["entry"]])
        open_claim = relations[at] == OPEN and answer["claimed"][at] is None and exact is not None
        if open_claim and abs(claimed - exact) > FAR * max(abs(claimed), abs(exact)):
            relations[at] = "!"
            detail = {**detail, "relation": "!", "claimed": repr(claimed)}
        elif open_claim:
            relations[at] = "="
        details.append(detail)
    return {**answer, "relations": "".join(relations), "details": details}
