"""Slopes of a black box for sequences of steps, with the box's own noise, for every output at once.

An even function, and an entry on which nothing depends, are read in their own way; steps that look like a kink, a
jump or a vertical slope are a reason to look at both sides. Sees values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import finite_differences
from gradcli.checks.decide.finite_differences import EPSILON, OFFSETS, RATIO, STEPS, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Function = Callable[[Floats], Floats]  # a point of shape [n] -> outputs of shape [m]; NaN where it has none

CALLS = STEPS * OFFSETS.size  # calls of the box for one direction
WEAK = 1e-7  # a relative bound above this is worth a second step sequence
STILL = "f does not move along it"
EVEN = 6  # steps on which an even function has to move
TABLE = 9  # values in a difference table
FINER = 7  # a second step sequence begins so many steps further down
ORDER = RATIO**4  # how much the error shrinks from step to step
UNEXPLAINED = 8.0  # times the rounding: smaller steps see another slope
ABOVE = 16.0  # a remainder of so many roundings is not a rounding
DECADES = 100.0


class Ladder(NamedTuple):
    """One output along one direction: its estimate, what the steps saw, and the remainders of Taylor's formula.

    `still` is true where f did not move at all: then the estimate is 0 with the bound that rounding leaves.
    """

    estimate: Estimate
    steps: Floats
    slopes: Floats
    errors: Floats
    values: Floats  # [steps, 4]
    here: float
    noise: float
    still: bool = False


def climb(f: Function, x: Floats, d: Floats, weights: Floats, here: Floats, noise: Floats) -> list[Ladder]:
    """The step sequences of some combinations of f's outputs, a row of `weights` each, at x along d.

    `here` holds the combinations at x, `noise` their noise.
    """
    first = finite_differences.first_step(x, d, np.inf)
    found = _climbed(f, x, d, weights, here, noise, first)
    if any(_coarse(one) for one in found):
        finer = _climbed(f, x, d, weights, here, noise, first * RATIO**-FINER)
        found = [better(one, other) if _converges(other) else one for one, other in zip(found, finer, strict=True)]
    return found


def climb_entry(
    f: Function, x: Floats, i: int, scale: float, weights: Floats, here: Floats, noise: Floats
) -> list[Ladder]:
    """The ladders by entry i of x; where its own size is too small a step, a second time with steps of size `scale`."""
    d = np.eye(1, x.size, i)[0]
    found = climb(f, x, d, weights, here, noise)
    own = finite_differences.first_step(x, d, np.inf)
    wider = 2.0 ** np.floor(np.log2(finite_differences.FIRST * scale)) if scale > 0 else 0.0
    if wider > 8 * own and any(weak(one) for one in found):
        again = _climbed(f, x, d, weights, here, noise, float(wider))
        found = [better(one, other) for one, other in zip(found, again, strict=True)]
    return found


def weak(one: Ladder) -> bool:
    """Whether a step sequence says nothing, or little."""
    value, bound, reason = one.estimate[:3]
    return reason is not None or one.still or bound > WEAK * abs(value)


def better(one: Ladder, other: Ladder) -> Ladder:
    """The more informative of two step sequences of one slope."""
    if (one.estimate.reason is None) != (other.estimate.reason is None):
        return one if one.estimate.reason is None else other
    if one.still != other.still:
        return other if one.still else one
    return other if other.estimate.bound < one.estimate.bound else one


def decades(one: Ladder, claimed: float, slack: float, far: float) -> float:
    """The ratio of the largest to the smallest of the steps that contradict a claim."""
    gap = np.abs(one.slopes - claimed)
    same = np.abs(one.slopes - one.estimate.value) <= 0.1 * abs(one.estimate.value - claimed)
    steps = one.steps[(gap > far * (4.0 * one.errors + slack)) & same]
    return float(steps.max() / steps.min()) if steps.size else 0.0


def divided(one: Ladder, claimed: float) -> bool:
    """Whether some steps see the claimed slope and not the estimated one: f is another at another scale.

    So a value that is rounded coarsely and then divided by something smooth is a saw: its teeth have a slope too.
    """
    gap = abs(one.estimate.value - claimed)
    near = (np.abs(one.slopes - claimed) <= 4.0 * one.errors) & (one.errors <= 0.1 * gap)
    wide = (one.values[:2, 2] - one.values[:2, 1]) / (2.0 * one.steps[:2])  # what the two largest steps see
    better = np.abs(wide - claimed) < np.abs(wide - one.estimate.value) / 3.0
    return bool(near.sum() >= 2 or better.all())


def taylor_rate(one: Ladder, claimed: float) -> float | None:
    """How fast f(x + h d) - f(x) - h*claimed shrinks with h: 2 for the right slope, 1 for a wrong one.

    None where the remainder is mere rounding, as for a linear function.
    """
    steps = np.outer(one.steps, OFFSETS[2:])
    values = one.values[:, 2:]
    remainder = np.abs(values - one.here - steps * claimed)
    floor = ABOVE * np.maximum(EPSILON * (np.abs(values) + abs(one.here) + np.abs(steps * claimed)), one.noise)
    usable = np.isfinite(remainder) & (remainder > floor)
    h, r = steps[usable], remainder[usable]
    if h.size < 3:
        return None
    order = np.argsort(h)
    h, r = np.log2(h[order]), np.log2(r[order])
    rates = (r[2:] - r[:-2]) / (h[2:] - h[:-2])  # two apart: neighbours are as near as a factor 2
    return float(np.median(rates[: max(1, min(rates.size, 8))]))  # the smallest steps that rise above the rounding


def noise_of(f: Function, x: Floats, d: Floats, here: Floats) -> Floats:
    """The noise of each output near x, from difference tables at growing spacings; 0 where only rounding is seen.

    Follows J. J. More and S. M. Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011).
    """
    noise = np.zeros(here.size)
    unknown = np.isfinite(here)
    moving = d != 0
    scale = 8.0 * finite_differences.first_step(x, d, np.inf)
    tiniest = float((np.spacing(np.abs(x[moving])) / np.abs(d[moving])).max())
    for power in range(5):
        spacing = max(scale * 2.0**-44 * 64.0**power, 4.0 * tiniest)
        rows = np.array([f(x + j * spacing * d) for j in range(TABLE)])
        for k in np.flatnonzero(unknown):
            told = _table(rows[:, k])
            if told is not None:
                unknown[k] = False
                noise[k] = told
        if not unknown.any():
            break
    return np.where(noise > 4.0 * EPSILON * np.abs(here), noise, 0.0)


# --- inner ----------------------------------------------------------------------------------------------------


def _climbed(
    f: Function, x: Floats, d: Floats, weights: Floats, here: Floats, noise: Floats, first: float
) -> list[Ladder]:
    steps = first * RATIO ** -np.arange(STEPS)
    outputs = np.array([f(x + offset * d) for offset in (steps[:, None] * OFFSETS).reshape(-1)])
    with np.errstate(all="ignore"):
        values = (outputs @ weights.T).reshape(STEPS, OFFSETS.size, -1)
    return [_read(x, d, steps, values[:, :, k], float(here[k]), float(noise[k])) for k in range(len(weights))]


def _coarse(one: Ladder) -> bool:
    """Whether a step sequence says nothing, and rounding is not why: f may be too wild for its steps."""
    if one.estimate.reason is None or one.still or one.errors.size < 3:
        return False
    size = np.maximum(EPSILON * np.abs(one.values).max(), one.noise)
    return bool(12.0 * size / one.steps[-1] < finite_differences.GOOD * np.abs(one.slopes[-1]))


def _converges(one: Ladder) -> bool:
    """Whether the steps come nearer to each other at the rate of their formula, as where f is smooth at last."""
    gaps = np.abs(np.diff(one.slopes))
    with np.errstate(all="ignore"):
        ratios = gaps[:-1] / gaps[1:]
    right = (ratios > ORDER / 5.0) & (ratios < ORDER * 5.0)
    return bool((right[1:] & right[:-1]).any())


def _read(x: Floats, d: Floats, steps: Floats, values: Floats, here: float, noise: float) -> Ladder:
    moving = d != 0
    valid = np.isfinite(values).all(axis=1) & ((x + steps[:, None] * d)[:, moving] != x[moving]).all(axis=1)
    h, used = steps[valid], values[valid]
    with np.errstate(all="ignore"):
        slopes, errors = finite_differences.rungs(h, used, noise) if len(h) > 1 else (np.zeros(0), np.zeros(0))
        estimate = finite_differences.judged(x, d, steps, values, noise)
        if estimate.reason is None:
            estimate, noise = _microscopic(x, d, h, used, noise)
            slopes, errors = finite_differences.rungs(h, used, noise)
    still = False
    if estimate.reason is not None and len(h) >= EVEN:
        if (used == here).all():
            still = True
            estimate = Estimate(0.0, 12.0 * max(EPSILON * abs(here), noise) / float(h[0]), STILL)
        else:
            estimate = _even(h, used, here, noise) or estimate
    return Ladder(estimate, h, slopes[: len(h)], errors[: len(h)], used, here, noise, still)


def _microscopic(x: Floats, d: Floats, h: Floats, values: Floats, noise: float) -> tuple[Estimate, float]:
    """The slope that the smallest steps do not contradict, and the noise that explains what they see.

    Where f has a ripple on a slope, large steps agree on the slope without the ripple, and the smallest ones agree on
    another: what is above them does not count. Where the smallest do not agree with each other, it is noise.
    """
    start = 0
    while len(h) - start >= 3:
        rest, used = h[start:], values[start:]
        estimate = finite_differences.judged(x, d, rest, used, noise)
        if estimate.reason is not None:
            return estimate, noise
        slopes, errors = finite_differences.rungs(rest, used, noise)
        best = int(np.argmin(errors))
        rounding = 3.0 * np.maximum(EPSILON * np.abs(used).max(axis=1), noise) / rest
        apart = np.abs(slopes - estimate.value)[best:]
        if (apart <= estimate.bound + UNEXPLAINED * rounding[best:]).all():
            return estimate, noise
        if abs(slopes[-1] - slopes[-2]) > 0.1 * float(apart[-2:].min()):
            louder = float((apart * rest[best:]).max()) / 1.5
            if louder <= noise:
                break
            noise = louder
            continue
        start += best + 1
    return Estimate(float("nan"), float("inf"), "the slope of f changes with the step"), noise


def _even(h: Floats, values: Floats, here: float, noise: float) -> Estimate | None:
    """The slope 0 of a function that is even about the point: it moves on both sides alike, less and less steeply."""
    floor = 16.0 * max(EPSILON * max(abs(here), float(np.abs(values).max())), noise)
    if np.abs(values[:, 1] - values[:, 2]).max() > floor or np.abs(values[:, 0] - values[:, 3]).max() > floor:
        return None
    slope = np.abs(values[:, 2] - here) / h
    seen = slope[np.abs(values[:, 2] - here) > floor]
    if seen.size < EVEN or (seen[1:] > 0.6 * seen[:-1]).any():
        return None
    return Estimate(0.0, 2.0 * float(seen.min()))


def _table(values: Floats) -> float | None:
    """The noise that a difference table shows; None where the spacing is too small or too large for it to speak."""
    if not np.isfinite(values).all():
        return None
    if int((np.diff(values) == 0).sum()) >= TABLE // 2 or np.ptp(values) > 0.1 * np.abs(values).max():
        return None
    levels, signs, gamma = [], [], 1.0
    table = values
    for k in range(1, TABLE - 2):
        table = np.diff(table)
        gamma *= 0.5 * k / (2 * k - 1)
        levels.append(float(np.sqrt(gamma * np.mean(table**2))))
        signs.append(bool((table[1:] * table[:-1] < 0).any()))
    for k in range(len(levels) - 3):
        three = levels[k : k + 3]
        if min(three) > 0 and max(three) <= 4.0 * min(three) and signs[k]:
            return levels[k]
    return None


RUNGS = 3  # the smallest steps that show more than rounding
STEEP = 8  # steps on which a slope has to grow, to be called vertical
LARGE = 6  # of the first steps one has to see a kink: teeth of rounding are smaller
MOST = 0.8  # of the steps between
ROUNDINGS = 32.0


def suspicious(one: Ladder) -> bool:
    """Whether the slopes on both sides stay apart as far as the steps shrink, as at a kink or a jump."""
    if one.steps.size < RUNGS:
        return False
    floor = rounding(one) / one.steps
    apart = np.abs((one.values[:, 2] - one.here) - (one.here - one.values[:, 1])) / one.steps
    clear = np.flatnonzero(floor <= 0.1 * apart.max())[-RUNGS:]
    last = apart[clear]
    return last.size == RUNGS and bool((last > floor[clear]).all() and (last[1:] > 0.7 * last[:-1]).all())


def bent(one: Ladder, left: float, right: float) -> bool:
    """Whether steps over two decades, and large ones among them, see slopes as far apart as a kink has them."""
    apart = np.abs((one.values[:, 2] - one.here) - (one.here - one.values[:, 1])) / one.steps
    alike = np.flatnonzero(np.abs(apart - abs(right - left)) <= 0.3 * abs(right - left))
    if alike.size < RUNGS or alike[0] >= LARGE or alike.size <= MOST * (alike[-1] - alike[0]):
        return False
    return bool(one.steps[alike[0]] >= DECADES * one.steps[alike[-1]])


def vertical(one: Ladder) -> bool:
    """Whether the slope on a side grows without bound as the steps shrink, and more slowly than that of a jump."""
    floor = rounding(one)
    for side in (1, 2):
        moved = np.abs(one.values[:, side] - one.here)
        slopes = (moved / one.steps)[moved > floor]
        if slopes.size >= STEEP:
            ratios = slopes[1:] / slopes[:-1]
            if ((ratios > 1.1) & (ratios < 3.9)).all():
                return True
    return False


def rounding(one: Ladder) -> float:
    """What rounding and noise may do to a value of a step sequence."""
    largest = max(abs(one.here), float(np.abs(one.values).max(initial=0.0)))
    return ROUNDINGS * max(EPSILON * largest, one.noise)
