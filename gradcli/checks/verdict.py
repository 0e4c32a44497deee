"""A subject and the oracles go in, its verdict comes out; a verdict is never stronger than its evidence.

Three numbers: E, the oracle's enclosure of the derivative; R, what is judged, in balls; F, what is judged, in float64.
R against E says whether the rule is right, F against E whether the number is good. A float alone refutes nothing.
The rungs of the ladder, from the point to the numbers: `enclosure`, `rough`, `refutation`, `quality`, `witness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.case import Case, Outcome
from gradcli.checks.enclosure import by_series
from gradcli.checks.equality import equality
from gradcli.checks.shown import plain
from gradcli.checks.witness import by_differences
from gradcli.checks.worker import TimeOver

if TYPE_CHECKING:
    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.checks.worker import NoAnswer

__all__ = ["Outcome", "judge", "unanswered"]


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
