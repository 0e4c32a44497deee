"""Judged claims in their order go in; in a derivation, claim after claim, the first step that is wrong is named.

A claim continues the one before it where its left side is that one's right side, or where two equalities have one left
side. A wrong step makes later ones neither right nor wrong: each is judged on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.subjects import Subject
    from gradcli.checks.verdict import Outcome

    Judged = tuple[Subject, Outcome]

WRONG = ("DISAGREES", "UNDEFINED")


def first_wrong_steps(outcomes: Sequence[Judged]) -> list[Judged]:
    """The same outcomes; of each derivation of two steps or more the first wrong one says so, in words and evidence."""
    found = list(outcomes)
    start = 0
    while start < len(found):
        end = start + 1
        while end < len(found) and continues(found[end - 1][0], found[end][0]):
            end += 1
        wrong = next((i for i in range(start, end) if found[i][1].verdict in WRONG), None)
        if end - start > 1 and wrong is not None:
            subject, outcome = found[wrong]
            step, steps = wrong - start + 1, end - start
            message = f"step {step} of {steps} is the first that is wrong: {outcome.message}"
            evidence = {**outcome.evidence, "step": step, "steps": steps}
            found[wrong] = (subject, outcome._replace(message=message, evidence=evidence))
        start = end
    return found


def continues(before: Subject, after: Subject) -> bool:
    """Whether a claim goes on where another ended, or two equalities have one left side."""
    if before.kind != "claim" or after.kind != "claim":
        return False
    if after.left is None:
        return after.engine is before.judged
    return after.left is before.judged or after.left is before.left
