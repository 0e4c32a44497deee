"""Judges a function by differences of its values, and notes what is odd about it: a verdict for each argument.

What is seen here, at the point and beside it, `decide/numerical.py` weighs.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.numerical import DIGITS, ByDifferences
from gradcli.checks.differences.step_sequences import noise_of, seeded_directions
from gradcli.checks.differences.survey import Survey, rows_of
from gradcli.recording.calls.box import OWN, VJP
from gradcli.recording.calls.call_arguments import COMPLEX, PARTS, is_complex
from gradcli.recording.calls.failures import Failed, OutOfTime
from gradcli.recording.calls.gradient_libraries import COARSE, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.checks.differences.step_sequences import Floats
    from gradcli.recording.calls.box import BlackBox

REPEATS = 6
LINEAR = 1e-9
SINGLE = "float32"
SINGLE_HIDES = "errors below 6e-08 of its value cannot be detected"


def examined(box: BlackBox, value: Any, seed: int, samples: int, rtol: float) -> tuple[dict[str, Outcome], list[str]]:
    """The verdict for each argument, and notes on the function; `value` is what it returned at first."""
    notes = list(precision(box))
    try:
        return judged(box, value, seed, samples, rtol, notes), notes
    except OutOfTime:
        reason = f"time ran out ({box.seconds:g} s) before the first comparison: allow more with --timeout"
    except Failed as problem:
        reason = f"{problem.reason}, although the first call succeeded"
    return for_all(box, "INCONCLUSIVE", reason), notes


def judged(box: BlackBox, value: Floats, seed: int, samples: int, rtol: float, notes: list[str]) -> dict[str, Outcome]:
    """The verdicts by a survey; adds to the notes. Raises Failed and OutOfTime."""
    if not np.isfinite(value).all():
        return for_all(box, "UNDEFINED", f"f is {float(value[~np.isfinite(value)][0])} at this point")
    if not np.isfinite(box.x).all():
        return for_all(box, "UNDEFINED", "the point holds a value that is not a finite number")
    scatter = spread_at(box, value)
    weights, row_names = rows_of(box.size, seed)
    claims = np.array([box.pullback(box.x, row, at_the_point=True) for row in weights])
    again = np.array([box.pullback(box.x, weights[-1], at_the_point=True) for _ in range(REPEATS)])
    if not np.array_equal(np.broadcast_to(claims[-1], again.shape), again, equal_nan=True):
        with np.errstate(all="ignore"):
            gap = float(np.nanmax(np.abs(claims[-1] - again)) / np.nanmax(np.abs(claims[-1])))
        if not gap <= LINEAR:
            message = f"{box.role} gives different gradients at the same point, by {gap:.1g}"
            return for_all(box, "INCONCLUSIVE", f"{message}: is it random, or does it keep state?")
    if box.kind == VJP or (box.kind == OWN and box.size > 1):
        notes += linearity(box, weights, claims)
    d = seeded_directions(box.x, 1, seed)[0]
    noise = np.maximum(noise_of(box.values, box.x, d, value), scatter)
    survey = Survey(box.values, box.x, box.slices, claims, seed, rtol, weights=weights, noise=np.abs(weights) @ noise)
    survey.look()
    if box.dtype != SINGLE and survey.single:
        notes.append(f"f computes in {SINGLE}: {SINGLE_HIDES}")
    doubt = ""
    if scatter.any() or not np.array_equal(value, box.again()):
        notes.append("f gives different values at the same point: is it random, or does it keep state?")
        doubt = "but f returns different values when called again"
    claimed = box.claimed or "float64"
    precise = DIGITS.get(max(box.taken, claimed, key=unit_of), COARSE)
    lost = claimed if unit_of(claimed) > unit_of(box.taken) else ""
    verdicts = {}
    for name in box.names:
        nearby = partial(beside, box, survey, name, samples)
        shape = box.shape_of(name)
        weighed = ByDifferences(survey, name, shape, nearby, box.role, row_names, doubt, precise, lost, box=box)
        try:
            verdicts[name] = weighed.verdict()
        except OutOfTime:
            text = f"time ran out ({box.seconds:g} s) before a verdict: allow more with --timeout"
            verdicts[name] = Outcome("INCONCLUSIVE", text, {})
    return verdicts


def for_all(box: BlackBox, verdict: str, message: str) -> dict[str, Outcome]:
    """One verdict for all arguments."""
    return {name: Outcome(verdict, message, {}) for name in box.names}


def not_judged(box: BlackBox) -> Iterator[str]:
    """What is said of arguments that are not judged."""
    for name in box.skipped:
        yield f"{box.role} gives nothing for {name}: not checked"
    for argument in box.arguments:
        if is_complex(argument.value):
            yield f"{argument.name} is not checked: {COMPLEX}; {PARTS}"


def precision(box: BlackBox) -> Iterator[str]:
    """What is said of float32."""
    if box.dtype == SINGLE:
        yield f"f returns {SINGLE}: {SINGLE_HIDES}"
    if box.claimed is not None and unit_of(box.claimed) > unit_of("float64"):
        yield f"{box.role} returns {box.claimed}, which has {round(-math.log10(unit_of(box.claimed)))} digits"


def spread_at(box: BlackBox, value: Floats) -> Floats:
    """How far the values at the point itself lie apart; 0 for a function that repeats its values."""
    again = box.again()
    if np.array_equal(value, again):
        return np.zeros(box.size)
    values = np.array([value, again, *(box.again() for _ in range(REPEATS))])
    return np.asarray(np.ptp(values, axis=0))


def linearity(box: BlackBox, weights: Floats, claims: Floats) -> Iterator[str]:
    """What is said of a pullback that is not linear in its cotangent."""
    expected = 2.0 * claims[0] - 3.0 * claims[-1]
    scale = np.abs(claims[0]).max() + np.abs(claims[-1]).max()
    gap = np.abs(box.pullback(box.x, 2.0 * weights[0] - 3.0 * weights[-1]) - expected).max()
    if np.isfinite(gap) and gap > LINEAR * scale:
        yield f"{box.role} is not linear in its cotangent: off by {gap / scale:.1g} of its size"


def beside(box: BlackBox, survey: Survey, name: str, samples: int) -> list[Survey]:
    """Surveys of points near the given one, where one argument has moved and kept its structure.

    Equal entries stay equal and zeros stay zero: a symmetric matrix stays symmetric, a mask a mask. Then, of a
    symmetric or diagonal matrix, points where it is none, and of other arrays, points without equal entries and zeros.
    """
    part = box.slices[name]
    surveys: list[Survey] = []
    value_at = box.x[part].reshape(box.shape_of(name))
    values = [("", moved) for moved in chosen_points.rescaled(box.x[part], samples, survey.seed)]
    if samples and np.unique(np.abs(value_at)).size > 1:
        values += chosen_points.off_structure(value_at, None, survey.seed)
    if samples and chosen_points.repeats(value_at):
        values += [(chosen_points.EQUAL, moved) for moved in chosen_points.both_sides(value_at, None, survey.seed)[0]]
    for lacks, moved in values:
        x = box.x.copy()
        x[part] = moved.reshape(-1)
        try:
            value = box.value(x)
            if not np.isfinite(value).all():
                continue
            claims = np.array([box.pullback(x, row) for row in survey.weights])
            other = Survey(
                box.values, x, box.slices, claims, survey.seed, survey.rtol, weights=survey.weights, noise=survey.noise
            )
            d = np.zeros(x.size)
            d[part] = seeded_directions(x, 1, survey.seed)[0][part]
            other.lacks = lacks
            other.look_along([d])
            surveys.append(other)
        except Failed:
            continue
    return surveys
