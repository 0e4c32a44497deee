"""What a survey says of a gradient, in one word, for tests of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.numerical import ByDifferences
from gradcli.checks.differences.survey import Survey, together

if TYPE_CHECKING:
    from collections.abc import Callable

    Floats = np.ndarray[Any, Any]


class Told(NamedTuple):
    """The word, the entry that is farthest off, what differences give there, and how much was looked at."""

    state: str
    entry: int | None
    estimate: float | None
    covered: str
    bound: float


def surveyed(f: Callable[[Floats], Floats], x: Floats, gradient: Floats, seed: int) -> Told:
    """What differences of f say of a gradient at x."""
    slices = {"x": slice(0, x.size)}
    survey = Survey(f, x, slices, gradient.reshape(1, -1), seed)
    survey.look()
    judged = ByDifferences(survey, "x", x.shape)
    state = together([*survey.joint, *judged.findings])
    wrong = [one for one in survey.entries if one.state in ("near", "differs", "not finite")]
    worst = max(wrong, key=lambda one: one.ratio, default=None)
    agreeing = [one for one in judged.findings if one.state == "agrees"]
    bound = judged.bound(agreeing)[0] if agreeing else float("inf")
    return Told(
        "differs" if state == "not finite" else state,
        None if worst is None else worst.entry,
        None if worst is None else worst.seen.estimate.value,
        judged.covered(),
        bound,
    )
