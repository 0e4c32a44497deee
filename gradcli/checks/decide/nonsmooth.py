"""Decides whether a point that may not be smooth is a KINK, a BOUNDARY or DISCONTINUOUS, or smooth after all.

Ties are exact, and slopes and jumps are coefficients of expansions on both sides. What these leave open is
INCONCLUSIVE, since finite differences could not decide it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.base.diagnostics import Diagnostic
from gradcli.checks.decide.case import RIGHT, Outcome
from gradcli.checks.decide.floats import evaluated
from gradcli.checks.decide.precision import float_ties
from gradcli.checks.decide.refutation import refuted
from gradcli.checks.differences.step_sequences import LocalBehaviour
from gradcli.checks.evaluate.interpretation import SIGN_OPEN
from gradcli.checks.formatting import counted, node_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.decide.case import Answer, Case, Evidence
    from gradcli.checks.subjects import Surface
    from gradcli.graph.node import Node

MOST_OTHERS = 2  # operations at whose kinks the point lies too


def at_a_tie(case: Case, tie: Answer) -> Outcome | None:
    """The verdict where expansions on both sides show a kink or a jump, or nothing; None where the output is smooth."""
    node, relations = tie["node"], case.comparison["relations"]
    if tie["kind"] == "unknown":
        return open_tie(case, tie["reason"], node)
    if tie["kind"] == "smooth":
        if "T" in relations:
            return open_tie(case, f"not examined: {counted(relations.count('T'), 'tie')}", node)
        case.tried["kinks"] = "a tie, but the value is smooth across it"
        case.smooth_tie = set(relations) <= RIGHT
        wrong = case.subject.kind == "gradient" and "!" in relations and not {"E", "R"} & set(relations)
        return off_a_smooth_tie(case, tie) if wrong else None
    if "!" in relations and tie["kind"] == "KINK":
        return refuted(case)
    case.tried["series"] = "one-sided slopes enclosed"
    seen, returned = seen_by_series(case, tie)
    evidence: Evidence = {"basis": "series", **({"iteration": tie["iteration"]} if tie["iteration"] else {})}
    names = [case.axis(i) for i in tie["axes"]]
    if case.plane:
        evidence["parts"] = [case.entry(i) for i in tie["axes"]]
    if node is None:
        return nonsmooth_outcome(seen, returned, tie["reason"], evidence, names, tie)
    surface, text = responsible(case, node), node_text(node)
    evidence |= {"operation": node.primitive.name, "node": text}
    what = {"DISCONTINUOUS": "", "BOUNDARY": " has no finite derivative", "KINK": " has a kink"}[seen.verdict]
    if surface is not None:
        what += f" ({surface.where})"
        evidence |= {"where": surface.where, "convention": surface.convention}
    elif what:
        what = " has no derivative here" if seen.verdict == "KINK" else f"{what} here"
    message = f"{text}{what}" + (f", in {tie['iteration']}" if tie["iteration"] else "")
    if others := ties_beside(case, node, seen.verdict):
        evidence["also"] = others
        message += f"; also {', '.join(others[:MOST_OTHERS])}{', ...' * (len(others) > MOST_OTHERS)}"
    outcome = nonsmooth_outcome(seen, returned, message, evidence, names, tie)
    return outcome._replace(diagnostics=(Diagnostic("GC410", message, node.span, severity="note"),))


def seen_by_series(case: Case, tie: Answer) -> tuple[LocalBehaviour, list[float]]:
    """The one-sided slopes from series, and the returned gradient, for the entries at the tie."""
    left, right = ([None if x is None else float(x) for x in tie[side]] for side in ("left", "right"))
    floats = case.judged_floats(case.values)
    seen = LocalBehaviour(tie["kind"], left, right, 0.0, tie["value"], (tie["limits"][0], tie["limits"][1]))
    return seen, [float(floats[i]) for i in tie["axes"]]


def responsible(case: Case, node: Node) -> Surface | None:
    """The declared kink of a node that the point lies on, or is nearest to; None where all are far away."""
    surfaces = [surface for surface in case.subject.surfaces if surface.node is node]
    zeros = evaluated([surface.zero for surface in surfaces], case.values) if surfaces else []
    gaps = [float(np.nan_to_num(np.abs(x), nan=np.inf).min(initial=np.inf)) for x in zeros]
    return None if not surfaces or 0.5 < min(gaps) < np.inf else surfaces[int(np.argmin(gaps))]


def ties_beside(case: Case, node: Node, verdict: str) -> list[str]:
    """Other operations at whose kinks, or jumps, the point lies, in words."""
    tied = [surface for surface, gaps in float_ties(case, case.values) if surface.node is not node and not gaps.all()]
    others = [surface for surface in tied if verdict == "KINK" or surface.kink.discontinuity]
    return list(dict.fromkeys(f"{node_text(surface.node)} ({surface.where})" for surface in others))


def open_tie(case: Case, reason: str, node: Node | None = None) -> Outcome:
    """INCONCLUSIVE: what the value does near the point is not known."""
    case.tried["series"] = f"one-sided expansions: {reason}"
    zero = next((surface.zero for surface in case.subject.surfaces if surface.node is node), None)
    if reason == SIGN_OPEN and zero is not None:
        message = f"`{node_text(zero)}` may be 0 here: {reason}"
    else:
        where = "" if node is None else f" at {node_text(node)}"
        message = f"the behaviour near the point is undecided{where}: {reason}"
    return Outcome("INCONCLUSIVE", message, {"open": reason})


def nonsmooth_outcome(
    seen: LocalBehaviour, returned: Sequence[float], message: str, evidence: Evidence, names: Sequence[str], tie: Answer
) -> Outcome:
    """KINK, BOUNDARY or DISCONTINUOUS, with the slopes along entries of these names; the message says where that is.

    Of a `tie` the reason, the entry that is least smooth and the gap between its sides are known.
    """
    reason = tie["reason"]
    evidence = {"left": seen.left, "right": seen.right, "returned": list(returned), **evidence}
    if seen.verdict == "DISCONTINUOUS":
        evidence |= {"value": seen.value, "limits": list(seen.limits)}
        return Outcome(seen.verdict, ": ".join(filter(None, ["the value jumps here", message])), evidence)
    message += f": {slopes(seen, names, tie)}"
    inside = seen.verdict == "KINK" and seen.have_between(returned)
    if seen.verdict == "KINK":
        evidence["inside"] = inside
        if not inside:
            shown = ", ".join(f"{x:.6g}" for x in returned[:4]) + (", ..." if len(returned) > 4 else "")
            message += f", and the value {shown if len(returned) == 1 else f'[{shown}]'} is not between them"
    elif reason and not message.startswith(reason):
        evidence["reason"] = reason
        message += f"; {reason}"
    return Outcome(seen.verdict, message, evidence, inside=inside)


def off_a_smooth_tie(case: Case, tie: Answer) -> Outcome:
    """Kinks that cancel: the function is smooth, but a convention chose another slope."""
    comparison, at = case.comparison, case.comparison["relations"].index("!")
    seen, returned = seen_by_series(case, tie)
    where = "a tie that cancels" if tie["node"] is None else f"{node_text(tie['node'])} has a kink here that cancels"
    evidence = {"left": seen.left, "right": seen.right, "returned": returned, "basis": "series", "inside": False}
    message = f"{where}: the true slope is {comparison['exact'][at]:.6g}, the value {comparison['claimed'][at]:.6g}"
    return Outcome("KINK", message, evidence)


def slopes(seen: LocalBehaviour, names: Sequence[str], tie: Answer) -> str:
    """The slopes of the least smooth entry, or by how much they differ, where six digits do not show it."""
    at, kink = tie["least"], seen.verdict == "KINK"
    if at is None:
        known = kink and seen.left and None not in seen.left and seen.left == seen.right
        partials = "the partial derivatives exist, but not those in other directions"
        return partials if known else "slopes differ along a direction that changes many entries"
    left, right = seen.left[at], seen.right[at]
    missing = "too large for floats" if kink else "undefined"
    below, above = (missing if side is None else f"{side + 0.0:.6g}" for side in (left, right))
    where = f" along {names[at]}" if names and names[at] else ""
    if left is None or right is None or below != above or not kink:
        return f"slopes {below} from below, {above} from above{where}"
    gap = tie["gap"] or abs(right - left)
    return f"slopes {gap:.3g} apart{where}" if gap else f"slopes less than 1e-308 apart{where}"


def jump(seen: LocalBehaviour, gap: float | None) -> str:
    """The value and its limits, or by how much they differ, where no double shows it."""
    value, below, above = ("no number" if x is None else f"{x:.6g}" for x in (seen.value, *seen.limits))
    if gap and seen.value == seen.limits[0] == seen.limits[1]:
        return f"the value {value} jumps by {gap:.3g}"
    return f"the value is {value}, below it {below}, above it {above}"
