"""A subject at its point goes in, central differences on a ladder of steps come out, to be looked at; judges nothing.

A right derivative shows in how the error falls: by the square of the step, until rounding takes over and it grows. A
wrong one keeps an error that no step can lower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import differences
from gradcli.checks.floats import evaluated, moving
from gradcli.checks.shown import position
from gradcli.execution.step_sequence import StepSequence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.subjects import Subject

RUNGS = 14
FEWEST = 3  # rungs that a rate is fitted to


def ladder(subject: Subject, evidence: Mapping[str, Any], dtype: str = "float64") -> StepSequence | None:
    """The ladder of the entry where claim and differences are farthest apart; None without a derivative or entries.

    Its rate is measured against the exact derivative where that is known, else against the claim.
    """
    if subject.output is None or subject.target is None:
        return None
    f, x = moving(subject.output, [subject.target], subject.values)
    if not x.size:
        return None
    claimed = evaluated([subject.judged], subject.values, dtype)[0].reshape(-1)
    exact = known(evidence, x.size)
    entry = worst(claimed, exact)
    d = np.eye(1, x.size, entry)[0]
    room = differences.room_of(subject.domain, float(x[entry]))
    steps = differences.first_step(x, d, room) * differences.RATIO ** -np.arange(RUNGS)
    if not steps[0] > 0:
        return None
    rows = x + (steps[:, None] * np.array([1.0, -1.0])).reshape(-1)[:, None] * d
    with np.errstate(all="ignore"):
        values = np.asarray(f(rows), dtype=np.float64).reshape(RUNGS, 2)
        slopes = (values[:, 0] - values[:, 1]) / (2.0 * steps)
    kept = np.isfinite(slopes)
    steps, slopes = steps[kept], slopes[kept]
    reference = claimed[entry] if exact is None else exact[entry]
    return StepSequence(
        steps.tolist(),
        slopes.tolist(),
        f"the derivative in {subject.leaf or subject.text}{position(entry, subject.target.type.shape)}",
        claimed=float(claimed[entry]),
        exact=None if exact is None else exact[entry],
        rate=rate_of(steps, np.abs(slopes - reference)),
    )


def known(evidence: Mapping[str, Any], size: int) -> list[float] | None:
    """The exact entries, where evidence has all of them as numbers."""
    exact: Any = evidence.get("exact")
    refuted: Any = evidence.get("counterexample")
    if exact is None and size == 1 and isinstance(refuted, dict) and refuted.get("at") == evidence.get("at"):
        exact = [refuted.get("exact")]
    if not isinstance(exact, (list, tuple)) or len(exact) != size:
        return None
    try:
        return [float(one) for one in exact]
    except (TypeError, ValueError):
        return None


def worst(claimed: Any, exact: list[float] | None) -> int:
    """The entry that is farthest from the exact one; without that, the largest."""
    away = np.abs(claimed if exact is None else claimed - np.array(exact))
    if exact is not None and not away.any():
        away = np.abs(claimed)
    return int(np.argmax(np.nan_to_num(away, nan=np.inf)))


def rate_of(steps: Any, errors: Any) -> float | None:
    """The slope of log(error) over log(step) down to where the error is least; None where it does not fall."""
    lowest = int(np.argmin(errors)) if errors.size else 0
    falling = slice(0, lowest)
    used = errors[falling] > 0
    if used.sum() < FEWEST or not errors[lowest] < 0.1 * errors[0]:
        return None
    return round(float(np.polyfit(np.log(steps[falling][used]), np.log(errors[falling][used]), 1)[0]), 2)
