"""Derivatives from values alone, with error bounds: central differences of order four for a sequence of twelve steps.

The differences of each step are extrapolated from two step lengths (Richardson). The error of a step is how far its
neighbours are, plus a bound on rounding, or on the noise of f where that is coarser. The derivative of a function that
does not change is unknown, never zero; a function that is even about the point has the slope 0. The same record shows
whether the steps contradict a claim, and whether they look like a kink, a jump or a vertical slope.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.results.curves import StepSequence

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
GOOD = 1e-3  # an estimate with a larger relative bound says nothing
WEAK = 1e-7  # a relative bound above this is worth a second step sequence
HIDING = 4.0  # roundings of f, by as many of which it has to change
COARSE = 64.0  # noise of so many roundings is more than rounding
WIDER = (1.0, 64.0, 4096.0)  # times the size of an array
SHARP = 0.01  # a larger relative bound, by steps that are larger than the point, says nothing
SUDDEN = 4.0**6  # a change by more roundings than this on the first step that shows one did not begin below rounding
STILL = "f does not change along it"
UNMOVED = "f does not change here in float64"
JUMPS = "f stands still over small steps, and jumps"
OTHER = "the smallest steps see another slope: f jumps, or is not smooth there"
DECIMAL = "f is rounded to decimals"
STAIRS = (OTHER, DECIMAL)
BLUNT = "f changes too little along it for so small a slope"
EVEN = 6  # steps on which an even function has to move
TABLE = 9  # values in a difference table
FINER = 7  # a second step sequence begins so many steps further down
UNEXPLAINED = 8.0  # times the rounding: smaller steps see another slope
CLEAR = 3.0  # times its error and the slack: by so much a step that contradicts a claim differs from it
DECADES = 100.0  # ratio of the steps that contradict a claim, at least
SINGLE = 2.0**-22  # float32 has at most this unit beside a number
BINARY = 2.0**-43  # differences of numbers up to 1024 are multiples of such units
SHOWS = 512.0  # roundings, by which a slope shows on a step
FINEST = 8  # such steps on each side
ALIKE, APART = 1 / 16, 1 / 4  # of a claim: slopes on these steps are alike, and another one
ALONE, JUMP = 8.0, 16.0  # times the others, and a claim: a first slope that is off by so much is no rounding
HIDDEN = 3e-8  # 1 + t**2 is 1 for a t of 1e-8: such a part of a slope no step sees
UNEVEN = 16.0  # by so much gaps between steps shrink at least, where f is smooth; ORDER in the end


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
    center: float
    noise: float
    still: bool
    tried: tuple[Floats, Floats]  # steps of the point's own size, with values that are not finite too

    def convergence(self, of: str, claimed: float | None = None, exact: float | None = None) -> StepSequence:
        """The central differences by step, with the rate at which they approach `exact`, else the estimate."""
        value, bound, reason = self.estimate
        slopes = (self.values[:, 2] - self.values[:, 1]) / (2.0 * self.steps)
        rate = rate_of(self.steps, np.abs(slopes - (value if exact is None else exact)))
        known = {"estimate": value, "bound": bound} if reason is None else {}
        return StepSequence(self.steps.tolist(), slopes.tolist(), of, claimed, exact, rate=rate, **known)


class Neighbourhood:
    """A function beside a point, by its values: some combinations of its outputs, a row of `weights` each.

    `noise` is that of the combinations, and `domain` the interval that holds every number of the point.
    """

    def __init__(
        self,
        f: Function,
        x: Floats | Sequence[float],
        domain: Interval | None = None,
        weights: Floats | None = None,
        noise: Floats | None = None,
    ) -> None:
        self.f, self.x = f, np.asarray(x, dtype=np.float64)
        self.weights = np.ones((1, 1)) if weights is None else weights
        self.noise = np.zeros(len(self.weights)) if noise is None else noise
        with np.errstate(all="ignore"):
            self.center = self.weights @ evaluated(f, self.x[None])[0]
        low, high = (-np.inf, np.inf) if domain is None else (domain.low, domain.high)
        self.rooms = np.maximum(0.0, np.minimum(self.x - low, high - self.x))  # how far each number may move both ways

    def differences(self, ways: Sequence[Floats], sizes: Sequence[float] | None = None) -> list[list[Differences]]:
        """For each direction the differences of each combination.

        `sizes` are the sizes of steps to try where steps of the point's own size are too small, and then multiples of
        them. A second step sequence is taken where f varies too fast for the steps, or too little.
        """

        def informative(seen: Differences) -> tuple[bool, bool, float]:
            return seen.estimate.reason is None, not seen.still, -seen.estimate.bound

        def better(i: int, first: float, needs: Callable[..., bool], counts: Callable[[Differences], bool]) -> None:
            if not any(map(needs, series[i])):
                return
            (again,) = self.taken([ways[i]], [first])
            pairs = [(x, y if needs(x) and counts(y) else x) for x, y in zip(series[i], again, strict=True)]
            series[i] = [max(pair, key=informative)._replace(tried=pair[0].tried) for pair in pairs]

        with np.errstate(all="ignore"):
            reach = [float((self.rooms[d != 0] / np.abs(d[d != 0])).min(initial=np.inf)) for d in ways]
        firsts = [first_step(self.x, d, r) for d, r in zip(ways, reach, strict=True)]
        series = self.taken(ways, firsts)
        for i, first in enumerate(firsts):
            better(i, first * RATIO**-FINER, _coarse, _converges)
            size = 0.0 if sizes is None else sizes[i]
            for factor in WIDER:
                wider = _power_of_two(min(FIRST * factor * size, 0.45 * reach[i]))
                if wider > 8 * first > 0:
                    better(i, wider, _weak if factor == 1 else partial(_blunt, first), lambda seen: not _sudden(seen))
        return series

    def axis(self, entry: int) -> Floats:
        """The direction in which one entry of the point moves alone."""
        return np.asarray(np.eye(1, self.x.size, entry)[0])

    def taken(self, directions: Sequence[Floats], firsts: Sequence[float]) -> list[list[Differences]]:
        """The step sequences that begin with some steps, in as few batches as memory allows."""
        sequences = []
        together = max(1, BATCH // (CALLS * max(1, self.x.size)))
        for start in range(0, len(directions), together):
            some = directions[start : start + together]
            ways = zip(firsts[start : start + together], some, strict=True)
            steps = [off_the_grid(first * RATIO ** -np.arange(STEPS), self.x, d) for first, d in ways]
            moves = [(h[:, None] * OFFSETS).reshape(-1)[:, None] * d for h, d in zip(steps, some, strict=True)]
            with np.errstate(all="ignore"):
                values = evaluated(self.f, self.x + np.concatenate(moves)) @ self.weights.T
            blocks = values.reshape(len(some), STEPS, OFFSETS.size, -1)
            for d, h, block in zip(some, steps, blocks, strict=True):
                rows = enumerate(zip(self.center.tolist(), self.noise.tolist(), strict=True))
                sequences.append([_read(self.x, d, h, block[:, :, k], *row) for k, row in rows])
        return sequences


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
        batches = [np.asarray(f(points[i : i + rows]), dtype=np.float64) for i in range(0, len(points), rows)]
    return np.concatenate(batches).reshape(len(points), -1)


def seeded_directions(x: Floats, count: int, seed: int) -> list[Floats]:
    """Random directions in which every entry moves, each by its own size."""
    generator: Any = np.random.default_rng(seed)
    scale = np.where(x == 0, 1.0, np.abs(x))
    return [scale * generator.choice([-1.0, 1.0], x.size) * generator.uniform(0.5, 1.0, x.size) for _ in range(count)]


def noise_of(f: Function, x: Floats, d: Floats, center: Floats) -> Floats:
    """The noise of each output near x, from difference tables at growing spacings; 0 where only rounding is seen.

    Follows J. J. More and S. M. Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011).
    """
    noise = np.zeros(center.size)
    unknown = np.isfinite(center)
    moving = d != 0
    scale = 8.0 * first_step(x, d)
    tiniest = float((np.spacing(np.abs(x[moving])) / np.abs(d[moving])).max())
    for power in range(5):
        spacing = max(scale * 2.0**-44 * 64.0**power, 4.0 * tiniest)
        rows = evaluated(f, x + spacing * np.arange(TABLE)[:, None] * d)
        outputs = np.flatnonzero(unknown)
        levels = _tables(np.ascontiguousarray(rows[:, outputs].T))
        shown = ~np.isnan(levels)
        noise[outputs[shown]], unknown[outputs[shown]] = levels[shown], False
        if not unknown.any():
            break
    return np.where(noise > 4.0 * EPSILON * np.abs(center), noise, 0.0)


# --- reading the steps --------------------------------------------------------------------------------------------


def _read(x: Floats, d: Floats, steps: Floats, values: Floats, center: float, noise: float) -> Differences:
    moving = d != 0
    moves = ((x + steps[:, None] * d)[:, moving] != x[moving]).all(axis=1)
    tried = steps[moves], values[moves]
    h, used = (part[np.isfinite(tried[1]).all(axis=1)] for part in tried)
    still = False
    with np.errstate(all="ignore"):
        estimate, noise = _settled(h, used, noise)
        slopes, errors = slopes_of(h, used, noise)
    if not steps[0] > 0:
        estimate = _unknown("the point lies on the edge of its domain")
    elif estimate.reason is not None and len(h) >= EVEN:
        if (used == center).all():
            still = True
            estimate = Estimate(0.0, 12.0 * max(EPSILON * abs(center), noise) / float(h[0]), STILL)
        else:
            estimate = _even(h, used, center, noise) or estimate
    return Differences(estimate, h, slopes, errors, used, center, noise, still, tried)


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
    if np.unique(values).size < DISTINCT:
        return _unknown(UNMOVED)
    if int((values[:, 1] == values[:, 2]).sum()) >= 2:  # steps on which rounding hides the slope
        clear = np.abs(values[:, 2] - values[:, 1]) > HIDING * EPSILON * np.abs(values).max()
        if clear.sum() < 3:
            return _unknown(UNMOVED)
        h, values = h[clear], values[clear]
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
    bound: Floats = 3.0 * np.maximum(EPSILON * np.abs(values).max(axis=1), noise) / h
    return bound


def _unknown(reason: str) -> Estimate:
    return Estimate(float("nan"), float("inf"), reason)


def beside(slope: Floats) -> Floats:
    """How far each number of a sequence is from its neighbours."""
    gaps = np.abs(np.diff(slope))
    return np.maximum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf)) if slope.size else slope


def outvoted(slopes: Floats, error: Floats) -> Floats:
    """The errors of steps, raised to the gap where a finer step is off by more than its own error."""
    apart = np.abs(slopes[None, :] - slopes[:, None])  # [step, finer step]
    against = np.triu(apart > DOUBT * error[None, :], 1)
    raised: Floats = np.maximum(error, np.where(against, apart, 0.0).max(axis=1, initial=0.0))
    return raised


def _coarse(seen: Differences) -> bool:
    """Whether a step sequence has no estimate, and not because of rounding: f may vary too fast for its steps."""
    if seen.estimate.reason is None or seen.still or seen.errors.size < 3:
        return False
    size = np.maximum(EPSILON * np.abs(seen.values).max(), seen.noise)
    return bool(12.0 * size / seen.steps[-1] < GOOD * np.abs(seen.slopes[-1]))


def _weak(seen: Differences) -> bool:
    """Whether a step sequence has no estimate, or a wide one."""
    value, bound, reason = seen.estimate
    return reason is not None or seen.still or bound > WEAK * abs(value)


def _blunt(first: float, seen: Differences) -> bool:
    """Whether a step sequence has no estimate, or with larger steps than this one a wide one."""
    value, bound, reason = seen.estimate
    return reason is not None or (bound > SHARP * abs(value) and seen.steps[0] > first)


def _sudden(seen: Differences) -> bool:
    """Whether f stands still on fine steps, and then changes at once: as past a threshold, which says nothing of them.

    What rounding hides shows slowly, by a few roundings at first.
    """
    change = np.abs(seen.values - seen.center).max(axis=1, initial=0.0)
    moving = np.flatnonzero(change)
    if not moving.size or moving[-1] == len(change) - 1:
        return False
    return bool(change[moving[-1]] > SUDDEN * EPSILON * abs(seen.center))


def finest(seen: Differences, claimed: float, in_single: Callable[[], bool]) -> float:
    """The step on which a claimed slope would show above rounding; inf where it shows on none.

    Rounding is that of the values, or the unit that they all are multiples of, where that is the one of float32 and f
    may be computed `in_single`, or the one of numbers that are subtracted, as in `1 - cos(x)`.
    """
    values = seen.values[seen.values != 0]
    near = seen.values[len(seen.values) // 2 :]  # on the smaller steps
    if not near.any() or not claimed:
        return math.inf
    largest = float(np.abs(near).max())
    unit = float(last_bits(values).min())
    if unit <= SINGLE * largest and (values == values.astype(np.float32)).all():
        unit = SINGLE * largest if in_single() else 0.0
    elif unit > BINARY:
        unit = 0.0
    return SHOWS * max(EPSILON * largest, unit) / abs(claimed)


def last_bits(values: Floats) -> Floats:
    """The largest power of two of which each number is a multiple; no number is 0."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**53).astype(np.int64)
    bits: Floats = np.ldexp((whole & -whole).astype(np.float64), exponents - 53)
    return bits


def in_decimals(seen: Differences) -> bool:
    """Whether f is rounded to decimals: no value has as many as its float holds, beside steps that change it enough."""
    largest = max(abs(seen.center), float(np.abs(seen.values).max(initial=0.0)))
    if not 0 < largest < math.inf:
        return False
    places = math.floor(-math.log10(4.0 * EPSILON * largest))
    numbers = seen.values[np.abs(seen.values - seen.center) > 64.0 * 10.0**-places] * 10.0**places
    return numbers.size >= EVEN**2 and bool((np.abs(numbers - np.rint(numbers)) <= 0.126).all())


def stepped(slopes: Floats, claimed: float) -> bool:
    """Whether the finest steps of a side show stairs, or a jump at the point itself.

    Most of their slopes are alike, and not the claimed one; or the first one alone is not.
    """
    usual = np.sort(np.abs(slopes), axis=1)[:, FINEST // 2 - 1, None]  # between stairs
    alike = np.count_nonzero(np.abs(np.abs(slopes) - usual) <= ALIKE / 2 * abs(claimed), axis=1) > FINEST // 2
    stairs = alike & (np.abs(usual[:, 0] - abs(claimed)) > APART * abs(claimed))
    off = np.abs(slopes - claimed)
    jumps = off[:, 0] > np.maximum(JUMP * abs(claimed), ALONE * off[:, 1:].max(axis=1))
    return bool((stairs | jumps).any())


def _converges(seen: Differences) -> bool:
    """Whether the slopes approach each other at the rate of the formula, as where f is smooth on the finer steps."""
    gaps = np.abs(np.diff(seen.slopes))
    with np.errstate(all="ignore"):
        ratios = gaps[:-1] / gaps[1:]
    right = (ratios > ORDER / 5.0) & (ratios < ORDER * 5.0)
    return bool((right[1:] & right[:-1]).any())


def _even(h: Floats, values: Floats, center: float, noise: float) -> Estimate | None:
    """The slope 0 of a function that is even about the point: it changes alike on both sides, less and less steeply."""
    floor = 16.0 * max(EPSILON * max(abs(center), float(np.abs(values).max())), noise)
    if np.abs(values[:, 1] - values[:, 2]).max() > floor or np.abs(values[:, 0] - values[:, 3]).max() > floor:
        return None
    slope = np.abs(values[:, 2] - center) / h
    seen = slope[np.abs(values[:, 2] - center) > floor]
    if seen.size < EVEN or (seen[1:] > 0.6 * seen[:-1]).any():
        return None
    return Estimate(0.0, 2.0 * float(seen.min()))


def _tables(values: Floats) -> Floats:
    """The noise that the table of each row shows; NaN where the spacing is too small or too large to show it."""
    noise = np.full(len(values), np.nan)
    known = np.flatnonzero(np.isfinite(values).all(axis=1))
    still = (np.diff(values[known]) == 0).sum(axis=1) >= TABLE // 2
    known = known[~still & (np.ptp(values[known], axis=1) <= 0.1 * np.abs(values[known]).max(axis=1))]
    levels, signs, gamma = [], [], 1.0
    table = values[known]
    for k in range(1, TABLE - 2):
        table = np.diff(table)
        gamma *= 0.5 * k / (2 * k - 1)
        levels.append(np.sqrt(gamma * np.mean(table**2, axis=1)))
        signs.append((table[:, 1:] * table[:, :-1] < 0).any(axis=1))
    for k in reversed(range(len(levels) - 3)):
        low, high = np.min(levels[k : k + 3], axis=0), np.max(levels[k : k + 3], axis=0)
        shown = (low > 0) & (high <= 4.0 * low) & signs[k]
        noise[known[shown]] = levels[k][shown]
    return noise


# --- the steps and a claim ------------------------------------------------------------------------------------------


def contradicts(seen: Differences, claimed: float) -> bool:
    """Whether the steps contradict a claim by more than chance, a kink or a hidden part explains, on every scale."""
    gap = abs(claimed - seen.estimate.value)
    return gap > max(doubt(seen), HIDDEN * abs(seen.estimate.value))


def doubt(seen: Differences) -> float:
    """How far off the best step may be should steps agree by chance; without bound beside a kink.

    There the slopes on both sides differ by as much at the best step as at the one before, where those of a smooth
    function come closer. A part of f that is rounded to a few digits stands still on fine steps, which then agree
    perfectly, on the slope of the rest: so what counts is how little the gaps between coarser steps shrank.
    """
    h, values, slope = seen.steps, seen.values, seen.slopes
    best = int(np.argmin(np.abs(slope - seen.estimate.value)))
    bend = np.abs(values[:, 3] + values[:, 0] - values[:, 2] - values[:, 1])[: best + 1] / h[: best + 1]
    floor = 16.0 * EPSILON * float(np.abs(values[best]).max()) / float(h[best])
    if best > 0 and bend[best] > max(0.6 * float(bend[best - 1]), 8.0 * seen.estimate.bound, floor):
        return float("inf")
    gaps = np.abs(np.diff(slope))[:best]
    return 2.0 * float(gaps[1:][gaps[1:] > gaps[:-1] / UNEVEN].max(initial=0.0))


def decades(seen: Differences, claimed: float, slack: float) -> float:
    """The ratio of the largest to the smallest of the steps that contradict a claim."""
    gap = np.abs(seen.slopes - claimed)
    same = np.abs(seen.slopes - seen.estimate.value) <= 0.1 * abs(seen.estimate.value - claimed)
    steps = seen.steps[(gap > CLEAR * (4.0 * seen.errors + slack)) & same]
    return float(steps.max() / steps.min()) if steps.size else 0.0


def taylor_rate(seen: Differences, claimed: float) -> float | None:
    """How fast f(x + h d) - f(x) - h*claimed shrinks with h: 2 for the right slope, 1 for a wrong one.

    None where the remainder is mere rounding, as for a linear function.
    """
    return rate_of(seen.steps, np.abs(seen.values[:, 2] - seen.center - seen.steps * claimed))


def rate_of(steps: Floats, errors: Floats) -> float | None:
    """The slope of log(error) over log(step) just before rounding takes over; None where the error does not fall."""
    lowest = int(np.argmin(errors)) if errors.size else 0
    used = np.flatnonzero(errors[:lowest] > 10.0 * errors[lowest:].min(initial=np.inf))[-FITTED:]
    if used.size < FEWEST:
        return None
    return round(float(np.polyfit(np.log(steps[used]), np.log(errors[used]), 1)[0]), 2)


# --- kinks, jumps and vertical slopes -------------------------------------------------------------------------------

FEWEST, FITTED = 3, 4  # steps that a rate is fitted to
CLEAREST = 3  # the smallest steps
LARGE = 6  # of the first steps one has to see a kink: the jumps of rounding are smaller
MOST = 0.8  # of the steps between
STEEP = 8  # steps on which a slope has to grow, to be called vertical
ROUNDINGS = 32.0


def suspicious(seen: Differences) -> bool:
    """Whether the slopes on both sides stay apart as far as the steps shrink, as at a kink or a jump."""
    if seen.steps.size < CLEAREST:
        return False
    largest = max(abs(seen.center), float(np.abs(seen.values).max()))
    floor = ROUNDINGS * max(EPSILON * largest, seen.noise) / seen.steps[-CLEAREST:]
    last = between_sides(seen)[-CLEAREST:]
    return bool((last > floor).all() and (last[1:] > 0.7 * last[:-1]).all())


def straddling(seen: Differences) -> bool:
    """Whether slopes on both sides are alike at the smallest steps alone, and apart on many before: a kink is near."""
    largest = max(abs(seen.center), float(np.abs(seen.values).max(initial=0.0)))
    apart = between_sides(seen)
    plain = apart > ROUNDINGS * max(EPSILON * largest, seen.noise) / seen.steps
    level = plain[1:] & (apart[1:] > 0.7 * apart[:-1]) & (apart[1:] < 1.4 * apart[:-1])
    runs = [level[end - CLEAREST : end].all() for end in range(max(CLEAREST, level.size - 2), level.size + 1)]
    return level.size >= CLEAREST and any(runs)


def between_sides(seen: Differences) -> Floats:
    """How far the slopes on both sides are apart, for each step."""
    gap: Floats = np.abs((seen.values[:, 2] - seen.center) - (seen.center - seen.values[:, 1])) / seen.steps
    return gap


def bent(seen: Differences, left: float, right: float) -> bool:
    """Whether steps over two decades, and large ones among them, see slopes as far apart as a kink has them."""
    apart = between_sides(seen)
    alike = np.flatnonzero(np.abs(apart - abs(right - left)) <= 0.3 * abs(right - left))
    if alike.size < CLEAREST or alike[0] >= LARGE or alike.size <= MOST * (alike[-1] - alike[0]):
        return False
    return bool(seen.steps[alike[0]] >= DECADES * seen.steps[alike[-1]])


# --- both sides of a point ------------------------------------------------------------------------------------------

DISTANT = 64.0  # bounds: slopes of two sides that are so far apart do not approach each other slowly, as by a logarithm


class LocalBehaviour(NamedTuple):
    """What a function does at a point: "smooth", "KINK", "BOUNDARY" or "DISCONTINUOUS", with the slopes by entry.

    A slope is inf where it has no bound; slopes and limits are None where they are not known.
    """

    verdict: str
    left: list[float | None]
    right: list[float | None]
    bound: float  # on the errors of slopes
    value: float
    limits: tuple[float | None, float | None]

    def have_between(self, slopes: Sequence[float]) -> bool:
        """Whether a slope of each entry lies between the known one-sided ones."""
        for value, left, right in zip(slopes, self.left, self.right, strict=True):
            if left is None or right is None or not math.isfinite(value):
                return False
            slack = self.bound + 1e-9 * max(abs(left), abs(right), abs(value))
            if not min(left, right) - slack <= value <= max(left, right) + slack:
                return False
        return True


def sides_along(axes: Sequence[Differences], others: Sequence[Differences] = ()) -> LocalBehaviour:
    """Both sides of a point along some axes; other directions may show something worse."""
    each = [sides(seen) for seen in (*axes, *others)]
    worst = min(each, key=lambda line: ("DISCONTINUOUS", "BOUNDARY", "KINK", "smooth").index(line.verdict))
    own = each[: len(axes)]
    left, right = ([slope for line in own for slope in getattr(line, side)] for side in ("left", "right"))
    return worst._replace(left=left, right=right, bound=max((line.bound for line in own), default=0.0))


def sides(seen: Differences) -> LocalBehaviour:
    """What a step sequence shows of both sides of the point: limits, slopes, jumps."""
    h, values = seen.tried
    both = _side(seen, h, values[:, 1::-1], -1.0), _side(seen, h, values[:, 2:], 1.0)
    known = [side for side in both if side is not None]
    slopes, bounds = [side[2] for side in known], [side[3] for side in known]
    size = 1e-6 * max(1.0, abs(seen.center))
    if any(abs(limit - seen.center) > 10 * bound + size for limit, bound, *_ in known):
        verdict = "DISCONTINUOUS"
    elif len(known) < 2 and np.isfinite(values[-1]).all():
        verdict = "smooth"  # on the smallest step: the boundary is not here
    elif len(known) < 2 or not all(map(math.isfinite, slopes)):
        verdict = "BOUNDARY"
    else:
        slack = DISTANT * sum(bounds) + 1e-6 * max(map(abs, slopes))
        verdict = "KINK" if abs(slopes[1] - slopes[0]) > slack else "smooth"
    (below, _, left, _), (above, _, right, _) = (side or (None,) * 4 for side in both)
    return LocalBehaviour(verdict, [left], [right], max(bounds, default=0.0), seen.center, (below, above))


def _side(seen: Differences, steps: Floats, values: Floats, sign: float) -> tuple[float, ...] | None:
    """The limit on one side, its bound, the slope and its bound, by values at one step and at two.

    None where too few of them are finite.
    """
    valid = np.isfinite(values).all(axis=1)
    if valid.sum() < 4:
        return None
    h, (f1, f2), center = steps[valid], values[valid].T, seen.center
    size = np.maximum(np.abs(values[valid]).max(axis=1), abs(center))
    floor = EPSILON * size
    limits = 2.0 * f1 - f2
    limit_error = np.abs(np.diff(limits, append=limits[-1])) + 16.0 * floor
    limit_error[-1] += limit_error[-2]
    at = int(np.argmin(outvoted(limits, limit_error)))
    limit, limit_bound = float(limits[at]), float(4.0 * limit_error[at])
    start = center if abs(limit - center) <= limit_bound + 1e-9 * abs(center) else limit
    rough = sign * (f1 - start) / h
    clear = rough[np.abs(f1 - start) > ROUNDINGS * np.maximum(floor, seen.noise)]
    ratios = np.abs(clear[1:] / clear[:-1])  # without bound as the steps shrink, and more slowly than that of a jump
    if clear.size >= STEEP and ((ratios > 1.1) & (ratios < 3.9)).all():
        return limit, limit_bound, float(np.copysign(np.inf, rough[-1])), 0.0
    slope = sign * (4.0 * f1 - f2 - 3.0 * start) / (2.0 * h)
    error = outvoted(slope, beside(slope) + 12.0 * floor / h)
    best = int(np.argmin(error))
    return limit, limit_bound, float(slope[best]), float(4.0 * error[best])
