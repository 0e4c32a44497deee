"""A case with SymPy's derivative goes in, the verdict from E, R and F comes out, or nothing where they leave it open.

E is the derivative in balls, R what is judged in balls. Agreement to 56 bits at every point certifies, a proof that
their difference vanishes proves, and disjoint balls refute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import points
from gradcli.checks.case import RIGHT, Outcome, exact_digits, points_told, usable
from gradcli.checks.floats import evaluated
from gradcli.checks.quality import float_quality
from gradcli.checks.refutation import refuted
from gradcli.checks.rough import beside
from gradcli.checks.shown import shortened_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.case import Answer, Case, Evidence, Values

SYMBOLIC_ENTRIES = 16  # entries of one leaf that are differentiated by at once
PICKED_ENTRIES = 6  # of a larger leaf


def chosen_entries(case: Case) -> list[int]:
    """The entries of the target that SymPy differentiates by: all of a small one, the most telling of a large one."""
    size = case.target.type.size
    if size <= SYMBOLIC_ENTRIES:
        return list(range(size))
    subject = case.subject
    nodes = [subject.judged] if subject.engine is None else [subject.judged, subject.engine]
    found = [value.reshape(-1) for value in evaluated(nodes, case.values)]
    weight = np.abs(found[0] - found[1]) if len(found) > 1 else np.abs(found[0])
    weight = np.nan_to_num(weight, nan=np.inf)
    order = np.argsort(-weight, kind="stable")[: PICKED_ENTRIES // 2].tolist()
    generator = np.random.default_rng(case.seed)
    order += generator.choice(size, PICKED_ENTRIES - len(order), replace=False).tolist()
    return sorted(set(order))


def by_enclosure(case: Case, entries: Sequence[int]) -> Outcome | None:
    """The verdict from E and R; None where they leave it open."""
    candidates = case.beside(entries)
    answer = case.exact.compare(
        case.subject.judged, [case.values, *candidates], name=case.names[False], rtol=case.subject.rtol
    )
    if "problem" in answer:
        case.tried["symbolic"] = answer["reason"]
        return None
    here, *rest = answer["points"]
    if not here["region"]:
        case.tried["symbolic"] = "the branches could not be decided at the point"
        return None
    nearby = [(c, p) for c, p in zip(candidates, rest, strict=True) if usable(p)][: case.samples]
    if "E" in here["relations"]:
        case.tried["symbolic"] = f"undefined at the point: {here['reason']}"
        return beside(case, (), here["reason"] or "")
    if "R" in here["relations"]:
        return judged_undefined(case, here)
    wrong = refuted(case, [(case.values, here), *nearby], entries)
    if wrong is not None:
        return wrong
    case.nearby = [dict(values) for values, _ in nearby]
    return right(case, here, nearby, entries)


def judged_undefined(case: Case, here: Answer) -> Outcome:
    """What is judged has no value where the derivative has one."""
    gradient = case.subject.kind == "gradient"
    rough = beside(case, (), "the derivative's formula fails here") if gradient else None
    if rough is not None:
        return rough
    answer = case.exact.values([case.subject.judged], case.values)
    failed = [entry for entry in answer.get("entries", [[]])[0] if entry.get("failure") == "undefined"]
    whose = "the gradient" if gradient else "the claim"
    message = f"{whose} has no value here, though the derivative is {here['details'][0]['exact']}"
    found = case.undefined(failed[0]) if failed else Outcome("UNDEFINED", "", {})
    reason = f": {failed[0]['reason']}" if failed else ""
    return found._replace(message=message + reason, evidence={**found.evidence, "exact": exact_digits(here)})


def right(case: Case, here: Answer, nearby: Sequence[tuple[Values, Any]], entries: Sequence[int]) -> Outcome | None:
    """PROVED, CERTIFIED or IMPRECISE; None where E and R neither agree nor differ."""
    subject = case.subject
    complete = len(entries) == case.target.type.size
    agree = all(set(p["relations"]) <= RIGHT for p in (here, *(p for _, p in nearby)))
    proof: Mapping[str, Any] = {"proved": False}
    if complete and "~" not in here["relations"]:
        proof = case.exact.prove(subject.judged, case.values, name=case.names[False])
    proved = bool(proof.get("proved"))
    if not proved and not agree:
        case.tried["symbolic"] = proof.get("reason") or "E and R overlap, but neither is narrow enough"
        return None
    case.tried["symbolic"] = f"proved ({proof['how']})" if proved else "derivative enclosed"
    case.evidence["exact"] = exact_digits(here)
    if not proved and proof.get("reason"):
        case.evidence["not_proved"] = proof["reason"]
    if proved and proof["region"]:
        case.evidence["region"] = shortened_list(proof["region"])
    if proved and proof["frozen"]:
        case.evidence["fixed"] = proof["frozen"]
    if not complete:
        case.tried["symbolic"] = f"derivative enclosed for {len(entries)} of {case.target.type.size} entries"
        return None
    worst = float_quality(case, [(case.values, here), *([] if proved else nearby)])
    if worst is not None:
        return worst
    if proved:
        return Outcome("PROVED", "equal by algebra" + conditions(proof), {})
    return certified(case, here, nearby)


def certified(case: Case, here: Answer, nearby: Sequence[tuple[Values, Any]]) -> Outcome:
    """E and R agree, without a proof."""
    evidence: Evidence = {"points": 1 + len(nearby)}
    if "~" in here["relations"]:
        return Outcome("CERTIFIED", f"within the tolerance {case.subject.rtol:g}", evidence)
    message = f"the exact derivative is enclosed at {points_told(1 + len(nearby))}"
    zero = all(x == 0 for _, p in [(None, here), *nearby] for x in p["exact"])
    if zero or not nearby:
        message += ", at this point only"
    name = case.own_leaf
    if name is not None and points.structure(case.values[name])[0]:
        message += "; the point is a symmetric matrix, and so is every point beside it"
    return Outcome("CERTIFIED", message, evidence)


def conditions(proof: Mapping[str, Any]) -> str:
    """The signs and fixed leaves under which a proof holds, in words."""
    region = ", ".join(proof["region"][:4]) + (", ..." if len(proof["region"]) > 4 else "")
    fixed = ", ".join(proof["frozen"])
    return (f", where {region}" if region else "") + (f", with {fixed} fixed at their values" if fixed else "")
