"""A case at a tie goes in, KINK, BOUNDARY or DISCONTINUOUS comes out, or nothing where the value is smooth.

Ties are exact, decided by balls; slopes and jumps are seen by one-sided differences of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks import kinks, numerical
from gradcli.checks.case import Outcome, leaf_names
from gradcli.checks.floats import evaluated, moving
from gradcli.checks.shown import node_text
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.case import Case, Evidence
    from gradcli.checks.kinks import Behaviour, Surface
    from gradcli.graph.node import Node


def at_a_tie(case: Case) -> Outcome | None:
    """The verdict where a declared tie that moves with the target makes the output rough."""
    near = kinks.moving_with(case.subject.surfaces, case.target)
    if not near:
        return None
    answer = case.exact.values([surface.zero for surface in near], case.values)
    if "problem" in answer:
        return None
    tied = [
        surface
        for surface, row in zip(near, answer["entries"], strict=True)
        if any(entry.get("sign") == 0 for entry in row)
    ]
    return beside(case, tied) if tied else None


def beside(case: Case, tied: Sequence[Surface], reason: str = "") -> Outcome | None:
    """What differences from both sides say of the output here; None where it is smooth and the value is its slope."""
    f, x = moving(case.output, movable(case), case.values)
    count = case.target.type.size
    entries = range(count) if count <= numerical.ALL_ENTRIES else range(numerical.SOME_ENTRIES)
    seen = kinks.behaviour(f, x, entries, joint=True, seed=case.seed)
    found = evaluated([case.subject.judged], case.values, case.dtype)[0].reshape(-1)[: len(entries)]
    returned = [float(value) for value in found]
    if seen.verdict == "smooth":
        case.tried["kinks"] = "a tie, but the value is smooth across it"
        case.smooth_tie = len(entries) == count and kinks.inside(returned, seen)
        return off_a_smooth_tie(tied, returned, seen)
    evidence: Evidence = {"left": seen.left, "right": seen.right, "returned": returned}
    evidence |= {"basis": "numerical", "bound": seen.bound}
    message = reason
    diagnostics: tuple[Diagnostic, ...] = ()
    if tied:
        surface = tied[0]
        evidence |= {"operation": surface.node.primitive.name, "node": node_text(surface.node)}
        evidence |= {"where": surface.where, "convention": surface.convention}
        message = f"{node_text(surface.node)} has a kink ({surface.where.removeprefix('where ')})"
        diagnostics = (Diagnostic("GC410", message, surface.node.span, severity="note"),)
    inside = False
    if seen.verdict == "DISCONTINUOUS":
        evidence |= {"value": seen.value, "limits": list(seen.limits)}
        message = f"the value jumps here: {message}" if message else "the value jumps here"
    elif seen.verdict == "KINK":
        inside = evidence["inside"] = kinks.inside(returned, seen)
        message += f": slopes {slopes(seen)}"
        if all(one is not None and one == other for one, other in zip(seen.left, seen.right, strict=True)):
            message += "; the partials exist, but there is no derivative in other directions"
        if not inside:
            message += f", and the value {short(returned)} is not between them"
    else:
        message += f": slopes {slopes(seen)}, no finite derivative"
    return Outcome(seen.verdict, message, evidence, diagnostics, inside)


def movable(case: Case) -> list[Node]:
    """The target, and the other leaves that may move and that the output depends on."""
    targets = [case.target]
    if case.target.primitive is LEAF:
        names = leaf_names([case.output]) & set(case.subject.moving)
        targets += [
            node
            for node in reachable([case.output])
            if node.primitive is LEAF and node.params["name"] in names and node is not case.target
        ]
    return targets


def off_a_smooth_tie(tied: Sequence[Surface], returned: Sequence[float], seen: Behaviour) -> Outcome | None:
    """Kinks that cancel: the function is smooth, but a convention chose another slope."""
    for value, left, right in zip(returned, seen.left, seen.right, strict=True):
        if left is None or right is None:
            continue
        gap = min(abs(value - left), abs(value - right))
        if not gap <= 100 * seen.bound + 1e-6 * max(abs(left), abs(value)):
            where = f"{node_text(tied[0].node)} has a kink here that cancels" if tied else "a tie that cancels"
            evidence: Evidence = {"left": seen.left, "right": seen.right, "returned": list(returned)}
            evidence |= {"basis": "numerical", "bound": seen.bound, "inside": False}
            return Outcome("KINK", f"{where}: the true slope is {left:.6g}, the value {value:.6g}", evidence)
    return None


def slopes(seen: Behaviour) -> str:
    """The slopes of the first entry whose sides differ."""
    left, right = seen.left[0], seen.right[0]
    for one, other in zip(seen.left, seen.right, strict=True):
        if one != other:
            left, right = one, other
            break
    told = ["undefined" if side is None else f"{side + 0.0:.6g}" for side in (left, right)]
    return f"{told[0]} from below, {told[1]} from above"


def short(found: Sequence[float]) -> str:
    if len(found) == 1:
        return f"{found[0]:.6g}"
    return f"[{', '.join(f'{x:.6g}' for x in found[:4])}{', ...' if len(found) > 4 else ''}]"
