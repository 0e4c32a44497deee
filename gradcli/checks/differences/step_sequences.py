"""Derivatives from values alone, with error bounds: central differences of order four for a sequence of twelve steps.

The differences of each step are extrapolated from two step lengths (Richardson). The error of a step is how far its
neighbours are, plus a bound on rounding, or on the noise of f where that is coarser. The derivative of a function that
does not change is unknown, never zero; a function that is even about the point has the slope 0. The same record shows
whether the steps contradict a claim, and whether they look like a kink, a jump or a vertical slope.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval

    Floats = NDArray[np.floating[Any]]
    Function = Callable[[Floats], Floats]  # points [n, size] -> outputs [n, m], or [n]; NaN where it has none

STEPS = 12
RATIO = 4.0
FIRST = 2.0**-3
OFFSETS = np.array([-2.0, -1.0, 1.0, 2.0])
CALLS = STEPS * OFFSETS.size  # values for one direction
EPSILON = 2.0**-52
ODD = 0.8086734165  # of a power of two: a step with digits down to the last bit of the point
DISTINCT = 8  # fewer different values on a step sequence say nothing about a slope
BATCH = 1 << 22  # entries of points in one evaluation
DOUBT = 8.0  # a finer step that is off by so many of its own errors is right
ORDER = RATIO**4  # how much the error shrinks from step to step
COARSE = 64.0  # noise of so many roundings is more than rounding
GOOD = 1e-3  # an estimate with a larger relative bound says nothing
WEAK = 1e-7  # a relative bound above this is worth a second step sequence
STILL = "f does not change along it"
UNMOVED = "f does not change here in float64"
EVEN = 6  # steps on which an even function has to move
TABLE = 9  # values in a difference table
FINER = 7  # a second step sequence begins so many steps further down
UNEXPLAINED = 8.0  # times the rounding: smaller steps see another slope
ABOVE = 16.0  # a remainder of so many roundings is not a rounding
CLEAR = 3.0  # times its error and the slack: by so much a step that contradicts a claim differs from it
DECADES = 100.0  # ratio of the steps that contradict a claim, at least
FINEST = 4  # gaps between steps that show nothing but noise
UNEVEN = 16.0  # by so much gaps between steps shrink at least, where f is smooth; ORDER in the end
ELSEWHERE = 0.1  # of the way to the best step: coarse steps so near to each other agree on another slope
HIDDEN = 3e-8  # 1 + t**2 is 1 for a t of 1e-8: such a part of a slope no step sees


class Estimate(NamedTuple):
    """A directional derivative: its value, a bound on its error, and why it is not to be used, if so."""

    value: float
    bound: float
    reason: str | None = None


class Differences(NamedTuple):
    """One output along one direction: the estimate, and the slope, error and values of each step that can be used.

    `still` is true where f did not change at all: then the estimate is 0 with the bound that rounding leaves.
    """

    estimate: Estimate
    steps: Floats
    slopes: Floats
    errors: Floats
    values: Floats  # [steps, 4]
    here: float
    noise: float
    still: bool = False


def differences(
    f: Function,
    x: Floats,
    directions: Sequence[Floats],
    weights: Floats,
    here: Floats,
    noise: Floats,
    reach: Sequence[float] | None = None,
    sizes: Sequence[float] | None = None,
) -> list[list[Differences]]:
    """For each direction the differences of some combinations of f's outputs, a row of `weights` each.

    `here` holds the combinations at x, `noise` their noise. `reach` is how far each direction leads inside the domain,
    and `sizes` are the sizes of steps to try where steps of the point's own size are too small. A second step sequence
    is taken where f varies too fast for the steps, or too little.
    """

    def taken(directions: Sequence[Floats], firsts: Sequence[float]) -> list[list[Differences]]:
        """The step sequences that begin with some steps, in as few batches as memory allows."""
        found = []
        together = max(1, BATCH // (CALLS * max(1, x.size)))
        for start in range(0, len(directions), together):
            some = directions[start : start + together]
            ways = zip(firsts[start : start + together], some, strict=True)
            steps = [off_the_grid(first * RATIO ** -np.arange(STEPS), x, d) for first, d in ways]
            points = [x + (h[:, None] * OFFSETS).reshape(-1)[:, None] * d for h, d in zip(steps, some, strict=True)]
            with np.errstate(all="ignore"):
                values = (evaluated(f, np.concatenate(points)) @ weights.T).reshape(len(some), STEPS, OFFSETS.size, -1)
            for d, h, block in zip(some, steps, values, strict=True):
                rows = enumerate(zip(here.tolist(), noise.tolist(), strict=True))
                found.append([_read(x, d, h, block[:, :, k], *row) for k, row in rows])
        return found

    def better(i: int, first: float) -> list[Differences]:
        """The more informative of two step sequences of each combination."""
        (again,) = taken([directions[i]], [first])
        return [max(pair, key=_quality) for pair in zip(found[i], again, strict=True)]

    reach = [np.inf] * len(directions) if reach is None else reach
    firsts = [first_step(x, d, r) for d, r in zip(directions, reach, strict=True)]
    found = taken(directions, firsts)
    for i, first in enumerate(firsts):
        if any(map(_coarse, found[i])):
            finer = better(i, first * RATIO**-FINER)
            found[i] = [new if _converges(new) else old for old, new in zip(found[i], finer, strict=True)]
        wider = 0.0 if sizes is None else _power_of_two(min(FIRST * sizes[i], 0.45 * reach[i]))
        if wider > 8 * first > 0 and any(map(_weak, found[i])):
            found[i] = better(i, wider)
    return found


def by_entries(f: Function, x: Floats, entries: Sequence[int], domain: Interval | None = None) -> list[Differences]:
    """The differences at x of an f with one output, by some of its entries."""
    room = rooms(domain, x)
    ways = [np.eye(1, x.size, i)[0] for i in entries]
    found = differences(
        f, x, ways, np.ones((1, 1)), evaluated(f, x[None])[0], np.zeros(1), [float(room[i]) for i in entries]
    )
    return [one for (one,) in found]


def rooms(domain: Interval | None, x: Floats) -> Floats:
    """How far each number may move both ways inside an interval."""
    if domain is None:
        return np.full(x.shape, np.inf)
    room: Floats = np.maximum(0.0, np.minimum(x - domain.low, domain.high - x))
    return room


def first_step(x: Floats, d: Floats, reach: float = np.inf) -> float:
    """The first step along a direction: an eighth of the size of what moves, well inside its reach."""
    moving = d != 0
    ratios = np.abs(x[moving] / d[moving])
    ratios = ratios[ratios > 0]
    scale = float(ratios.min()) if ratios.size else 1.0
    return _power_of_two(min(FIRST * (scale if np.isfinite(scale) else 1.0), 0.45 * reach))


def _power_of_two(step: float) -> float:
    return float(2.0 ** np.floor(np.log2(step))) if step > 0 else 0.0


def off_the_grid(steps: Floats, x: Floats, d: Floats) -> Floats:
    """Steps that are no round numbers in binary, yet leave x + step exact where one entry moves.

    With powers of two intermediate roundings are the same at all points of a step, and at those of the next one: the
    steps agree, and all are wrong. With odd steps rounding looks like what it is, noise.
    """
    odd = ODD * steps
    moving = np.flatnonzero(d)
    if moving.size != 1 or abs(d[moving[0]]) != 1.0 or not steps[0] > 0:
        return odd
    unit = float(np.spacing(max(2.0 * abs(float(x[moving[0]])), float(steps[0]))))
    rounded: Floats = np.maximum(np.rint(odd / unit), 1.0) * unit
    return rounded


def evaluated(f: Function, points: Floats) -> Floats:
    """The outputs of f, [n, m], in as few batches as memory allows."""
    rows = max(1, BATCH // max(1, points.shape[1]))
    with np.errstate(all="ignore"):
        found = [np.asarray(f(points[start : start + rows]), dtype=np.float64) for start in range(0, len(points), rows)]
    return np.concatenate(found).reshape(len(points), -1)


def seeded_directions(x: Floats, count: int, seed: int) -> list[Floats]:
    """Random directions in which every entry moves, each by its own size."""
    generator: Any = np.random.default_rng(seed)
    scale = np.where(x == 0, 1.0, np.abs(x))
    return [scale * generator.choice([-1.0, 1.0], x.size) * generator.uniform(0.5, 1.0, x.size) for _ in range(count)]


def noise_of(f: Function, x: Floats, d: Floats, here: Floats) -> Floats:
    """The noise of each output near x, from difference tables at growing spacings; 0 where only rounding is seen.

    Follows J. J. More and S. M. Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011).
    """
    noise = np.zeros(here.size)
    unknown = np.isfinite(here)
    moving = d != 0
    scale = 8.0 * first_step(x, d)
    tiniest = float((np.spacing(np.abs(x[moving])) / np.abs(d[moving])).max())
    for power in range(5):
        spacing = max(scale * 2.0**-44 * 64.0**power, 4.0 * tiniest)
        rows = evaluated(f, x + spacing * np.arange(TABLE)[:, None] * d)
        for k in np.flatnonzero(unknown):
            level = _table(rows[:, k])
            if level is not None:
                unknown[k] = False
                noise[k] = level
        if not unknown.any():
            break
    return np.where(noise > 4.0 * EPSILON * np.abs(here), noise, 0.0)


# --- reading the steps --------------------------------------------------------------------------------------------


def _read(x: Floats, d: Floats, steps: Floats, values: Floats, here: float, noise: float) -> Differences:
    moving = d != 0
    valid = np.isfinite(values).all(axis=1) & ((x + steps[:, None] * d)[:, moving] != x[moving]).all(axis=1)
    h, used = steps[valid], values[valid]
    still = False
    with np.errstate(all="ignore"):
        estimate, noise = _settled(h, used, noise)
        slopes, errors = slopes_of(h, used, noise)
    if not steps[0] > 0:
        estimate = _unknown("the point lies on the edge of its domain")
    elif estimate.reason is not None and len(h) >= EVEN:
        if (used == here).all():
            still = True
            estimate = Estimate(0.0, 12.0 * max(EPSILON * abs(here), noise) / float(h[0]), STILL)
        else:
            estimate = _even(h, used, here, noise) or estimate
    return Differences(estimate, h, slopes, errors, used, here, noise, still)


def _settled(h: Floats, values: Floats, noise: float) -> tuple[Estimate, float]:
    """The slope that the smallest steps do not contradict, and the noise that explains theirs.

    Where f has a ripple on a slope, large steps agree on the slope without the ripple, and the smallest ones on
    another: then larger steps do not count. Where the smallest do not agree with each other, they show noise.
    """
    estimate = best_step(h, values, noise)
    while estimate.reason is None:
        slopes, errors = slopes_of(h, values, noise)
        best = int(np.argmin(errors))
        apart = np.abs(slopes - estimate.value)[best:]
        if (apart <= estimate.bound + UNEXPLAINED * _rounding(h, values, noise)[best:]).all():
            break
        louder = float((apart * h[best:]).max()) / 1.5
        noisy = abs(slopes[-1] - slopes[-2]) > 0.1 * float(apart[-2:].min())
        if not noisy:
            h, values = h[best + 1 :], values[best + 1 :]
        if len(h) < 3 or (noisy and louder <= noise):
            return _unknown("the slope of f changes with the step"), noise
        noise = louder if noisy else noise
        estimate = best_step(h, values, noise)
    return estimate, noise


def best_step(h: Floats, values: Floats, noise: float = 0.0) -> Estimate:
    """The estimate of the step with the least error: `values` has a row of four for each step.

    Where the noise of f is coarser than rounding, steps on which f changes by no more than noise do not count.
    """
    if len(h) < 3:
        return _unknown("f has too few finite values near the point")
    if noise > COARSE * EPSILON * float(np.abs(values).max()):
        clear = np.abs(values[:, 2] - values[:, 1]) > 2.0 * noise
        if clear.sum() < 3:
            return _unknown("the noise of f is larger than its change here")
        h, values = h[clear], values[clear]
    if np.unique(values).size < DISTINCT or int((values[:, 1] == values[:, 2]).sum()) >= 2:
        return _unknown(UNMOVED)
    slope, error = slopes_of(h, values, noise)
    best = int(np.argmin(error))
    value = float(slope[best])
    bound = float(4.0 * error[best] + 8.0 * EPSILON * abs(value))
    typical = float((np.ptp(values, axis=1) / h).max())
    if not bound <= GOOD * max(abs(value), 1e-6 * typical):
        return Estimate(value, bound, "the finite differences of f are too noisy here")
    return Estimate(value, bound)


def slopes_of(h: Floats, values: Floats, noise: float = 0.0) -> tuple[Floats, Floats]:
    """The slope of each step, and its error by its neighbours and by rounding or noise.

    Where finer steps agree among themselves on another slope, a kink or a wave lies within the coarse steps: that
    counts against these, however well they agree.
    """
    slope = (8.0 * (values[:, 2] - values[:, 1]) - (values[:, 3] - values[:, 0])) / (12.0 * h)
    return slope, outvoted(slope, beside(slope) + _rounding(h, values, noise))


def _rounding(h: Floats, values: Floats, noise: float) -> Floats:
    """How far rounding or noise may move the slope of each step."""
    found: Floats = 3.0 * np.maximum(EPSILON * np.abs(values).max(axis=1), noise) / h
    return found


def _unknown(reason: str) -> Estimate:
    return Estimate(float("nan"), float("inf"), reason)


def beside(slope: Floats) -> Floats:
    """How far each number of a sequence is from its neighbours."""
    gaps = np.abs(np.diff(slope))
    return np.maximum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf)) if slope.size else slope


def outvoted(found: Floats, error: Floats) -> Floats:
    """The errors of steps, raised to the gap where a finer step is off by more than its own error."""
    apart = np.abs(found[None, :] - found[:, None])  # [step, finer step]
    against = np.triu(apart > DOUBT * error[None, :], 1)
    raised: Floats = np.maximum(error, np.where(against, apart, 0.0).max(axis=1, initial=0.0))
    return raised


def _coarse(one: Differences) -> bool:
    """Whether a step sequence has no estimate, and not because of rounding: f may vary too fast for its steps."""
    if one.estimate.reason is None or one.still or one.errors.size < 3:
        return False
    size = np.maximum(EPSILON * np.abs(one.values).max(), one.noise)
    return bool(12.0 * size / one.steps[-1] < GOOD * np.abs(one.slopes[-1]))


def _weak(one: Differences) -> bool:
    """Whether a step sequence has no estimate, or a wide one."""
    value, bound, reason = one.estimate
    return reason is not None or one.still or bound > WEAK * abs(value)


def _quality(one: Differences) -> tuple[bool, bool, float]:
    """A key that sorts step sequences of one slope, the most informative one last."""
    return one.estimate.reason is None, not one.still, -one.estimate.bound


def _converges(one: Differences) -> bool:
    """Whether the slopes approach each other at the rate of the formula, as where f is smooth on the finer steps."""
    gaps = np.abs(np.diff(one.slopes))
    with np.errstate(all="ignore"):
        ratios = gaps[:-1] / gaps[1:]
    right = (ratios > ORDER / 5.0) & (ratios < ORDER * 5.0)
    return bool((right[1:] & right[:-1]).any())


def _even(h: Floats, values: Floats, here: float, noise: float) -> Estimate | None:
    """The slope 0 of a function that is even about the point: it changes alike on both sides, less and less steeply."""
    floor = 16.0 * max(EPSILON * max(abs(here), float(np.abs(values).max())), noise)
    if np.abs(values[:, 1] - values[:, 2]).max() > floor or np.abs(values[:, 0] - values[:, 3]).max() > floor:
        return None
    slope = np.abs(values[:, 2] - here) / h
    seen = slope[np.abs(values[:, 2] - here) > floor]
    if seen.size < EVEN or (seen[1:] > 0.6 * seen[:-1]).any():
        return None
    return Estimate(0.0, 2.0 * float(seen.min()))


def _table(values: Floats) -> float | None:
    """The noise that a difference table shows; None where the spacing is too small or too large to show it."""
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


# --- the steps and a claim ------------------------------------------------------------------------------------------


def contradicts(one: Differences, claimed: float) -> bool:
    """Whether the steps contradict a claim by more than chance, a kink or a hidden part explains."""
    gap = abs(claimed - one.estimate.value)
    return gap > max(doubt(one), HIDDEN * abs(one.estimate.value)) and not divided(one, claimed)


def doubt(one: Differences) -> float:
    """How far off the best step may be should steps agree by chance, or on a chord; without bound beside a kink.

    Noise: at the finest steps truncation is nothing, and slopes differ by noise over step. Two steps may agree by
    chance where f moves by a few quanta; the largest of several gaps is no chance. A kink: the slopes on both sides
    differ by as much at the best step as at the one before, where those of a smooth function come closer. A part that
    is rounded to a few digits stands still on fine steps, which then agree perfectly, on the slope of the rest: so what
    counts is how far coarser steps are that agree on another slope, how little the gaps between them shrank, and how
    far all the next finer ones are to one side.
    """
    h, values, slope = one.steps, one.values, one.slopes
    best = int(np.argmin(np.abs(slope - one.estimate.value)))
    bend = np.abs(values[:, 3] + values[:, 0] - values[:, 2] - values[:, 1])[: best + 1] / h[: best + 1]
    rounding = 16.0 * EPSILON * float(np.abs(values[best]).max()) / float(h[best])
    if best > 0 and bend[best] > max(0.6 * float(bend[best - 1]), 8.0 * one.estimate.bound, rounding):
        return float("inf")
    gaps = np.abs(np.diff(slope))
    noise = float((gaps * h[1:])[-FINEST:].max(initial=0.0))
    apart, coarse = np.abs(slope - slope[best])[1:], max(best - 1, 0)
    elsewhere = apart[:coarse][gaps[:coarse] < ELSEWHERE * apart[:coarse]]
    uneven = gaps[1:best][gaps[1:best] > gaps[: max(best - 1, 0)] / UNEVEN]
    finer = (slope - slope[best])[best + 1 : best + 4]
    aside = np.abs(finer) if finer.size == 3 and abs(np.sign(finer).sum()) == 3 else finer[:0]
    seen = max(float(some.max(initial=0.0)) for some in (elsewhere, uneven, aside))
    typical = float((np.ptp(values, axis=1) / h).max())
    return max(12.0 * noise / float(h[best]) + 8.0 * EPSILON * typical, 2.0 * seen)


def decades(one: Differences, claimed: float, slack: float) -> float:
    """The ratio of the largest to the smallest of the steps that contradict a claim."""
    gap = np.abs(one.slopes - claimed)
    same = np.abs(one.slopes - one.estimate.value) <= 0.1 * abs(one.estimate.value - claimed)
    steps = one.steps[(gap > CLEAR * (4.0 * one.errors + slack)) & same]
    return float(steps.max() / steps.min()) if steps.size else 0.0


def divided(one: Differences, claimed: float) -> bool:
    """Whether some steps have the claimed slope and not the estimated one: f differs between scales.

    A value that is rounded coarsely and then divided by something smooth jumps from piece to piece; each has a slope.
    """
    gap = abs(one.estimate.value - claimed)
    near = (np.abs(one.slopes - claimed) <= 4.0 * one.errors) & (one.errors <= 0.1 * gap)
    wide = (one.values[:2, 2] - one.values[:2, 1]) / (2.0 * one.steps[:2])  # what the two largest steps see
    nearer = np.abs(wide - claimed) < np.abs(wide - one.estimate.value) / 3.0
    return bool(near.sum() >= 2 or nearer.all())


def taylor_rate(one: Differences, claimed: float) -> float | None:
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


# --- kinks, jumps and vertical slopes -------------------------------------------------------------------------------

CLEAREST = 3  # the smallest steps that show more than rounding
STEEP = 8  # steps on which a slope has to grow, to be called vertical
LARGE = 6  # of the first steps one has to see a kink: the jumps of rounding are smaller
MOST = 0.8  # of the steps between
ROUNDINGS = 32.0


def suspicious(one: Differences) -> bool:
    """Whether the slopes on both sides stay apart as far as the steps shrink, as at a kink or a jump."""
    if one.steps.size < CLEAREST:
        return False
    floor, apart = rounding(one) / one.steps, between_sides(one)
    clear = np.flatnonzero(floor <= 0.1 * apart.max())[-CLEAREST:]
    last = apart[clear]
    return last.size == CLEAREST and bool((last > floor[clear]).all() and (last[1:] > 0.7 * last[:-1]).all())


def between_sides(one: Differences) -> Floats:
    """How far the slopes on both sides are apart, for each step."""
    gap: Floats = np.abs((one.values[:, 2] - one.here) - (one.here - one.values[:, 1])) / one.steps
    return gap


def bent(one: Differences, left: float, right: float) -> bool:
    """Whether steps over two decades, and large ones among them, see slopes as far apart as a kink has them."""
    apart = between_sides(one)
    alike = np.flatnonzero(np.abs(apart - abs(right - left)) <= 0.3 * abs(right - left))
    if alike.size < CLEAREST or alike[0] >= LARGE or alike.size <= MOST * (alike[-1] - alike[0]):
        return False
    return bool(one.steps[alike[0]] >= DECADES * one.steps[alike[-1]])


def vertical(one: Differences) -> bool:
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


def rounding(one: Differences) -> float:
    """What rounding and noise may do to a value of a step sequence."""
    largest = max(abs(one.here), float(np.abs(one.values).max(initial=0.0)))
    return ROUNDINGS * max(EPSILON * largest, one.noise)


# --- both sides of a point ------------------------------------------------------------------------------------------

SIDED = np.array([1.0, 2.0, 3.0])
AROUND = 6  # random directions, beside the axes
DISTANT = 64.0  # bounds: slopes of two sides that are so far apart do not approach each other slowly, as by a logarithm


class Side(NamedTuple):
    """One side of a point: the limit of the values there, the slope (inf where it has no bound), and error bounds."""

    limit: float
    limit_bound: float
    slope: float
    slope_bound: float


class Sides(NamedTuple):
    """The value at a point and both sides along a direction; None where f is not defined."""

    value: float
    left: Side | None
    right: Side | None

    def verdict(self) -> str:
        """What f does along the direction."""
        for side in (self.left, self.right):
            if side is not None:
                slack = 10 * side.limit_bound + 1e-6 * max(1.0, abs(self.value))
                if abs(side.limit - self.value) > slack:
                    return "DISCONTINUOUS"
        left, right = self.left, self.right
        if left is None or right is None or not math.isfinite(left.slope) or not math.isfinite(right.slope):
            return "BOUNDARY"
        slack = DISTANT * (left.slope_bound + right.slope_bound) + 1e-6 * max(abs(left.slope), abs(right.slope))
        return "KINK" if abs(right.slope - left.slope) > slack else "smooth"


class Behaviour(NamedTuple):
    """What a function does at a point: "smooth", "KINK", "BOUNDARY" or "DISCONTINUOUS", with the slopes by entry."""

    verdict: str
    left: list[float | None]
    right: list[float | None]
    bound: float
    value: float
    limits: tuple[float | None, float | None]

    def has_between(self, slopes: Sequence[float]) -> bool:
        """Whether a slope of each entry lies between the known one-sided ones."""
        for value, left, right in zip(slopes, self.left, self.right, strict=True):
            if left is None or right is None or not math.isfinite(value):
                return False
            slack = self.bound + 1e-9 * max(abs(left), abs(right), abs(value))
            if not min(left, right) - slack <= value <= max(left, right) + slack:
                return False
        return True


def behaviour(f: Function, x: Floats, entries: Sequence[int], joint: bool, seed: int) -> Behaviour:
    """What an f with one output does at x along the axes of some entries, and with `joint` along random directions."""
    directions = [np.eye(1, x.size, i)[0] for i in entries]
    if joint and x.size > 1:
        directions += seeded_directions(x, AROUND, seed)
    found = sides(f, x, directions)
    verdicts = [one.verdict() for one in found]
    worst = min(verdicts, key=("DISCONTINUOUS", "BOUNDARY", "KINK", "smooth").index)
    shown, axes = found[verdicts.index(worst)], found[: len(entries)]
    left, right = ([getattr(one, name) for one in axes] for name in ("left", "right"))
    return Behaviour(
        worst,
        [side and side.slope for side in left],
        [side and side.slope for side in right],
        max((side.slope_bound for side in (*left, *right) if side is not None), default=0.0),
        shown.value,
        (shown.left and shown.left.limit, shown.right and shown.right.limit),
    )


def sides(f: Function, x: Floats, directions: Sequence[Floats]) -> list[Sides]:
    """What an f with one output does on both sides of x along some directions: limits, slopes, jumps."""
    steps = [first_step(x, d) * RATIO ** -np.arange(STEPS) for d in directions]
    ways = [side * d for d in directions for side in (-1.0, 1.0)]
    points = [x + (steps[k // 2][:, None] * SIDED).reshape(-1)[:, None] * way for k, way in enumerate(ways)]
    values = evaluated(f, np.concatenate([x[None], *points]))[:, 0]
    here, rest = float(values[0]), values[1:].reshape(len(directions), 2, STEPS, 3)
    return [
        Sides(here, _side(here, h, left, -1.0), _side(here, h, right, 1.0))
        for h, (left, right) in zip(steps, rest, strict=True)
    ]


def _side(here: float, steps: Floats, values: Floats, side: float) -> Side | None:
    valid = np.isfinite(values).all(axis=1)
    if valid.sum() < 4:
        return None
    h, (f1, f2, f3) = steps[valid], values[valid].T
    size = np.abs(values[valid]).max(axis=1)
    limits = 3.0 * f1 - 3.0 * f2 + f3
    limit_error = np.abs(np.diff(limits, append=limits[-1])) + 16.0 * EPSILON * size
    limit_error[-1] += limit_error[-2]
    at = int(np.argmin(outvoted(limits, limit_error)))
    limit, limit_bound = float(limits[at]), float(4.0 * limit_error[at])
    start = here if abs(limit - here) <= limit_bound + 1e-9 * abs(here) else limit
    rough = side * (f1 - start) / h
    if _grows(rough):
        return Side(limit, limit_bound, float(np.copysign(np.inf, rough[-1])), 0.0)
    slope = side * (-11.0 * start + 18.0 * f1 - 9.0 * f2 + 2.0 * f3) / (6.0 * h)
    error = outvoted(slope, beside(slope) + 12.0 * EPSILON * np.maximum(size, abs(start)) / h)
    best = int(np.argmin(error))
    return Side(limit, limit_bound, float(slope[best]), float(4.0 * error[best]))


def _grows(slope: Floats) -> bool:
    """Whether slopes grow without bound as the steps shrink."""
    size = np.abs(slope)
    if size.size < 6 or not size[-1] > 0:
        return False
    with np.errstate(all="ignore"):
        ratios = size[1:] / size[:-1]
    return bool((ratios[-6:] > 1.2).all())
