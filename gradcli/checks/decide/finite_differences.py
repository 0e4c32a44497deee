"""Derivatives from values alone, with error bounds, and whether a whole gradient agrees with them.

Central differences of order four for a sequence of twelve steps; the best step is judged by its neighbours and by a
bound on rounding. A function that does not move is inconclusive, never zero. For large arrays a few evaluations
confirm most entries at once; each of the others gets a step sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.floats import evaluated, held_at
from gradcli.checks.evaluate.evaluation import steps
from gradcli.diagnostics import GradcliError
from gradcli.execution.namespaces import REFUSED
from gradcli.graph.node import is_reader, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Function = Callable[[Floats], Floats]  # points of shape [n, size] -> values of shape [n]
    Moved = Callable[[Floats], Floats]  # steps [count, size] -> what is moved by each, [count, size]

STEPS = 12
RATIO = 4.0
FIRST = 2.0**-3
OFFSETS = np.array([-2.0, -1.0, 1.0, 2.0])
FINEST = 4  # gaps between steps that show nothing but noise
SIDED = np.array([1.0, 2.0, 3.0])
EPSILON = 2.0**-52
ODD = 0.8086734165  # of a power of two: a step with digits down to the last bit of the point
DISTINCT = 8  # fewer different values on a step sequence say nothing about a slope
BATCH = 1 << 22  # entries of points in one evaluation
DOUBT = 8.0  # a finer step that is off by so many of its own errors is right
ORDER = 16.0  # by so much gaps between steps shrink at least, where f is smooth; 256 in the end
ELSEWHERE = 0.1  # of the way to the best step: coarse steps so near to each other agree on another slope
COARSE = 64.0  # noise of so many roundings is more than rounding
GOOD = 1e-3  # an estimate with a larger relative bound says nothing


class Estimate(NamedTuple):
    """A directional derivative: its value, a bound on its error, and why it is not to be used, if so.

    `doubt` is how far off it may be should two steps agree by chance, or on the chord across a kink: what is nearer to
    it is no disagreement.
    """

    value: float
    bound: float
    reason: str | None = None
    doubt: float = 0.0


class Side(NamedTuple):
    """One side of a point: the limit of the values there, the slope (inf where it has no bound), and error bounds."""

    limit: float
    limit_bound: float
    slope: float
    slope_bound: float


class Sides(NamedTuple):
    """The value at a point and what is seen from below and from above, along a direction; None: not defined there."""

    value: float
    left: Side | None
    right: Side | None


def directional(
    f: Function, x: Floats, directions: Sequence[Floats], room: Sequence[float] | None = None
) -> list[Estimate]:
    """The derivatives of f at x along some directions.

    `room` gives, for each direction, how far x may move both ways before it leaves its domain.
    """
    ladders = [first_step(x, d, room[i] if room else np.inf) for i, d in enumerate(directions)]
    points, moved = [], []
    for d, h in zip(directions, ladders, strict=True):
        steps = off_the_grid(h * RATIO ** -np.arange(STEPS), x, d)
        offsets = (steps[:, None] * OFFSETS).reshape(-1)
        rows = x + offsets[:, None] * d
        points.append(rows)
        moved.append(steps)
    values = _evaluated(f, np.concatenate(points)) if points else np.zeros(0)
    found = []
    for i, (d, steps) in enumerate(zip(directions, moved, strict=True)):
        block = values[i * STEPS * 4 : (i + 1) * STEPS * 4].reshape(STEPS, 4)
        found.append(judged(x, d, steps, block))
    return found


def by_entries(f: Function, x: Floats, entries: Sequence[int], domain: Interval | None = None) -> list[Estimate]:
    """The partial derivatives of f at x by some of its entries."""
    directions = [np.eye(1, x.size, i)[0] for i in entries]
    room = [room_of(domain, float(x[i])) for i in entries]
    return directional(f, x, directions, room)


def room_of(domain: Interval | None, x: float) -> float:
    """How far a number may move both ways inside an interval."""
    if domain is None:
        return float("inf")
    return max(0.0, min(x - domain.low, domain.high - x))


def sides(f: Function, x: Floats, directions: Sequence[Floats]) -> list[Sides]:
    """What f does on both sides of x along some directions: limits, slopes, jumps."""
    points = [x[None]]
    steps = []
    for d in directions:
        h = first_step(x, d, np.inf) * RATIO ** -np.arange(STEPS)
        steps.append(h)
        for side in (-1.0, 1.0):
            points.append(x + side * (h[:, None] * SIDED).reshape(-1)[:, None] * d)
    values = _evaluated(f, np.concatenate(points))
    here, rest = float(values[0]), values[1:].reshape(len(directions), 2, STEPS, 3)
    found = []
    for h, (left, right) in zip(steps, rest, strict=True):
        found.append(Sides(here, _side(here, h, left, -1.0), _side(here, h, right, 1.0)))
    return found


# --- inner ----------------------------------------------------------------------------------------------------


def first_step(x: Floats, d: Floats, room: float) -> float:
    """The first step along a direction: an eighth of the size of what moves, inside the room."""
    moving = d != 0
    ratios = np.abs(x[moving] / d[moving])
    ratios = ratios[ratios > 0]
    scale = float(ratios.min()) if ratios.size else 1.0
    if not np.isfinite(scale):
        scale = 1.0
    largest = float(np.abs(d[moving]).max())
    step = min(FIRST * scale, 0.45 * room / largest)
    return 2.0 ** np.floor(np.log2(step)) if step > 0 else 0.0


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


def _evaluated(f: Function, points: Floats) -> Floats:
    """The values of f, in as few batches as memory allows."""
    rows = max(1, BATCH // max(1, points.shape[1]))
    with np.errstate(all="ignore"):
        found = [np.asarray(f(points[start : start + rows]), dtype=np.float64) for start in range(0, len(points), rows)]
    return np.concatenate(found)


def judged(x: Floats, d: Floats, steps: Floats, values: Floats, noise: float = 0.0) -> Estimate:
    """The best step of a step sequence: `values` has a row of four for each step, `noise` is the size of f's own noise.

    Where noise is coarser than rounding, steps on which nothing but noise moves do not count.
    """
    if not steps[0] > 0:
        return Estimate(float("nan"), float("inf"), "the point lies on the edge of its domain")
    valid = np.isfinite(values).all(axis=1)
    moving = d != 0
    moves = ((x + steps[:, None] * d)[:, moving] != x[moving]).all(axis=1)
    valid &= moves
    if valid.sum() < 3:
        return Estimate(float("nan"), float("inf"), "f has too few finite values beside the point")
    if noise > COARSE * EPSILON * float(np.abs(values[valid]).max()):
        valid &= np.abs(values[:, 2] - values[:, 1]) > 2.0 * noise
        if valid.sum() < 3:
            return Estimate(float("nan"), float("inf"), "the noise of f hides its slope here")
    used = values[valid]
    if np.unique(used).size < DISTINCT or int((used[:, 1] == used[:, 2]).sum()) >= 2:
        return Estimate(float("nan"), float("inf"), "f does not move here in float64")
    h = steps[valid]
    slope, error = rungs(h, used, noise)
    best = int(np.argmin(error))
    value = float(slope[best])
    bound = float(4.0 * error[best] + 8.0 * EPSILON * abs(value))
    typical = float((np.ptp(used, axis=1) / h).max())
    if not bound <= GOOD * max(abs(value), 1e-6 * typical):
        return Estimate(value, bound, "the differences of f are too noisy here")
    return Estimate(value, bound, doubt=doubted(h, used, best, bound, typical))


def doubted(h: Floats, values: Floats, best: int, bound: float, typical: float) -> float:
    """The error of the best step by the noise that the finest steps show; without bound beside a kink.

    Noise: at the finest steps truncation is nothing, and slopes differ by noise over step. Two steps may agree by
    chance where f moves by a few quanta; the largest of several gaps is no chance. A kink: the slopes on both sides
    differ by as much at the best step as at the one before, where those of a smooth function come closer. A part that
    is rounded to a few digits stands still on fine steps, which then agree perfectly, on the slope of the rest: so what
    counts is how far coarser steps are that agree on another slope, how little the gaps between them shrank, and how
    far all the next finer ones are to one side.
    """
    bend = np.abs(values[:, 3] + values[:, 0] - values[:, 2] - values[:, 1])[: best + 1] / h[: best + 1]
    rounding = 16.0 * EPSILON * float(np.abs(values[best]).max()) / float(h[best])
    if best > 0 and bend[best] > max(0.6 * float(bend[best - 1]), 8.0 * bound, rounding):
        return float("inf")
    slope, _ = rungs(h, values)
    gaps = np.abs(np.diff(slope))
    noise = float((gaps * h[1:])[-FINEST:].max())
    apart, coarse = np.abs(slope - slope[best])[1:], max(best - 1, 0)
    elsewhere = apart[:coarse][gaps[:coarse] < ELSEWHERE * apart[:coarse]]
    uneven = gaps[1:best][gaps[1:best] > gaps[: max(best - 1, 0)] / ORDER]
    finer = (slope - slope[best])[best + 1 : best + 4]
    aside = np.abs(finer) if finer.size == 3 and abs(np.sign(finer).sum()) == 3 else finer[:0]
    seen = max(float(one.max(initial=0.0)) for one in (elsewhere, uneven, aside))
    return max(12.0 * noise / float(h[best]) + 8.0 * EPSILON * typical, 2.0 * seen)


def rungs(h: Floats, values: Floats, noise: float = 0.0) -> tuple[Floats, Floats]:
    """The slope that each step sees, and its error by its neighbours and by rounding or noise.

    Where finer steps agree among themselves on another slope, a kink or a wave lies within the coarse steps: that
    counts against these, however well they agree.
    """
    slope = (8.0 * (values[:, 2] - values[:, 1]) - (values[:, 3] - values[:, 0])) / (12.0 * h)
    rounding = 3.0 * np.maximum(EPSILON * np.abs(values).max(axis=1), noise) / h
    gaps = np.abs(np.diff(slope))
    spread = np.maximum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    error = spread + rounding
    return slope, outvoted(slope, error)


def outvoted(found: Floats, error: Floats) -> Floats:
    """The errors of steps, raised to the gap where a finer step is off by more than its own error."""
    apart = np.abs(found[None, :] - found[:, None])  # [step, finer step]
    told = np.triu(apart > DOUBT * error[None, :], 1)
    raised: Floats = np.maximum(error, np.where(told, apart, 0.0).max(axis=1, initial=0.0))
    return raised


def _side(here: float, steps: Floats, values: Floats, side: float) -> Side | None:
    valid = np.isfinite(values).all(axis=1)
    if valid.sum() < 4:
        return None
    h, (f1, f2, f3) = steps[valid], values[valid].T
    limits = 3.0 * f1 - 3.0 * f2 + f3
    limit_error = np.abs(np.diff(limits, append=limits[-1])) + 16.0 * EPSILON * np.abs(values[valid]).max(axis=1)
    limit_error[-1] += limit_error[-2]
    at = int(np.argmin(outvoted(limits, limit_error)))
    limit, limit_bound = float(limits[at]), float(4.0 * limit_error[at])
    start = here if abs(limit - here) <= limit_bound + 1e-9 * abs(here) else limit
    rough = side * (f1 - start) / h
    if _grows(rough):
        return Side(limit, limit_bound, float(np.copysign(np.inf, rough[-1])), 0.0)
    slope = side * (-11.0 * start + 18.0 * f1 - 9.0 * f2 + 2.0 * f3) / (6.0 * h)
    rounding = 12.0 * EPSILON * np.maximum(np.abs(values[valid]).max(axis=1), abs(start)) / h
    gaps = np.abs(np.diff(slope))
    error = outvoted(slope, np.maximum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf)) + rounding)
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


def seeded_directions(x: Floats, count: int, seed: int) -> list[Floats]:
    """Random directions in which every entry moves, each by its own size."""
    generator: Any = np.random.default_rng(seed)
    scale = np.where(x == 0, 1.0, np.abs(x))
    return [scale * generator.choice([-1.0, 1.0], x.size) * generator.uniform(0.5, 1.0, x.size) for _ in range(count)]


ALL_ENTRIES = 48  # up to so many entries each has a step sequence of its own
SOME_ENTRIES = 16
MOST_LADDERS = 32  # of entries that few values did not confirm
DIRECTIONS = 3
FAR = 30.0  # a difference of so many bounds is no accident of rounding
HIDDEN = 3e-8  # 1 + t**2 is 1 for a t of 1e-8: such a part of a slope no step sees
SMALL = 1e-6  # beside the largest slope: then the bound is told beside that one
RUNGS = np.array([3, 4, 5])  # of the step sequence of `differences`: where the best one mostly is
PAIR = 7  # the place of a single pair of values: its step is about the cube root of a rounding
TRUNCATION = 1e-6  # relative, of a single pair; nothing beside it tells
CACHED = 1 << 15  # entries in one evaluation
MOST_WORK = 1 << 29  # numbers that are computed when every entry is moved alone


FAILED = (GradcliError, *REFUSED)


class Numerical(NamedTuple):
    """`state` is "agrees", "differs", "near" (a little outside the bound) or "silent".

    `bound` is relative; beside a gradient of 0 it is absolute.
    """

    state: str
    reason: str | None
    bound: float
    entry: int | None
    estimate: float | None
    covered: str


def judge(
    f: Callable[[Floats], Floats],
    x: Floats,
    found: Floats,
    domain: Interval | None,
    seed: int,
    rtol: float | None = None,
    moved: Moved | None = None,
    alone: bool = False,
) -> Numerical:
    """Whether a gradient is what the differences of f at x give, to a tolerance if there is one.

    Of many entries most are confirmed by few values, and the rest have ladders of their own; random directions cover
    them all. `moved` moves entries together, where the structure of f lets it; with `alone` each may be moved alone.
    """
    gradient = found.reshape(-1)
    entries: Sequence[int] = range(x.size)
    covered = f"{x.size} entries" if x.size > 1 else "the derivative"
    known = 0.0
    if x.size > ALL_ENTRIES:
        generator = np.random.default_rng(seed)
        entries = sorted(generator.choice(x.size, SOME_ENTRIES, replace=False).tolist())
        count = SOME_ENTRIES
        one_by_one = None
        if moved is not None:
            one_by_one = by_rungs(moved, x, gradient, domain, rtol or 0.0)
        elif alone:
            one_by_one = by_pairs(one_at_a_time(f, x), x, gradient, domain, rtol or 0.0)
        if one_by_one is not None:
            entries = one_by_one.left()[:MOST_LADDERS]
            count = int(one_by_one.entries.sum()) + len(entries)
            known = float(one_by_one.bounds[one_by_one.entries].max(initial=0.0))
        told = f"{count:,} of {x.size:,}" if count < x.size else f"{x.size:,}"
        covered = f"{told} entries and {DIRECTIONS} random directions"
    estimates = by_entries(f, x, entries, domain)
    expected = [float(gradient[i]) for i in entries]
    if x.size > ALL_ENTRIES:
        ways = seeded_directions(x, DIRECTIONS, seed)
        estimates += directional(f, x, ways)
        expected += [float(gradient @ d) for d in ways]
    worst, state, reason, at = (False, 0.0), "agrees", None, None
    largest = known
    steepest = max((abs(one.value) for one in estimates if one.reason is None), default=0.0)
    for position, (estimate, value) in enumerate(zip(estimates, expected, strict=True)):
        if estimate.reason is not None:
            if state == "agrees":
                state, reason, at = "silent", estimate.reason, position
            continue
        gap = abs(value - estimate.value)
        slack = estimate.bound + max(rtol or 0.0, 64 * EPSILON) * abs(value)
        if not gap <= slack:
            ratio = gap / slack if np.isfinite(gap) else np.inf
            sure = ratio > FAR and not gap <= max(estimate.doubt, HIDDEN * abs(estimate.value))
            told = "differs" if sure else "near"
            named = position < len(entries)  # one wrong entry says more than a wrong sum of them
            if state not in ("near", "differs") or (told == "differs", named, ratio) > (state == "differs", *worst):
                worst, state = (named, ratio), told
                reason, at = f"differences give {estimate.value!r} +- {estimate.bound:.1g}", position
        scale = abs(estimate.value) if abs(estimate.value) > SMALL * steepest else steepest
        largest = max(largest, estimate.bound / (scale or 1.0))
    entry_at = None if at is None or at >= len(entries) else int(entries[at])
    return Numerical(state, reason, largest, entry_at, None if at is None else estimates[at].value, covered)


# --- every entry of a large array --------------------------------------------------------------------------------


class Confirmed(NamedTuple):
    """Which entries agree, their relative bounds, and of the others how far off they seem (-1: that cannot be told).

    `still` are entries whose gradient is 0 and that do not move the function: nothing is confirmed of them.
    """

    entries: Any
    bounds: Any
    off: Any
    still: Any

    def left(self) -> list[int]:
        """The entries that have to be looked at more closely, those that seem furthest off first."""
        rest = np.flatnonzero(~self.entries & ~self.still)
        return [int(i) for i in rest[np.argsort(-self.off[rest], kind="stable")]]


def by_rungs(moved: Moved, x: Floats, gradient: Floats, domain: Interval | None, rtol: float) -> Confirmed:
    """Three steps for every entry, from few evaluations: `moved` tells what entries give that move together."""
    first = first_steps(x, domain)
    steps = np.stack([odd_steps(x, first * RATIO**-rung) for rung in RUNGS])  # [step, entry]
    offsets = steps[:, None, :] * OFFSETS[None, :, None]
    with np.errstate(all="ignore"):
        found = moved(offsets.reshape(-1, x.size)).reshape(len(RUNGS), 4, x.size)
        slope = (8.0 * (found[:, 2] - found[:, 1]) - (found[:, 3] - found[:, 0])) / (12.0 * steps)
        rounding = 3.0 * EPSILON * np.abs(found).max(axis=1) / steps
        gaps = np.abs(np.diff(slope, axis=0))
        beside = np.stack([gaps[0], np.maximum(gaps[0], gaps[1]), gaps[1]])
        error = beside + rounding
        best = np.argmin(error, axis=0)
        entry = np.arange(x.size)
        value, bound = (
            slope[best, entry],
            4.0 * error[best, entry] + 8.0 * EPSILON * np.abs(slope[best, entry]),
        )
        still = (found == found[:1, :1]).all(axis=(0, 1))
        usable = ((found[:, 1] == found[:, 2]).sum(axis=0) < 2) & (first > 0)
        return _confirmed(gradient, value, bound, usable, still, rtol)


def by_pairs(moved: Moved, x: Floats, gradient: Floats, domain: Interval | None, rtol: float) -> Confirmed:
    """One central difference for every entry."""
    first = first_steps(x, domain)
    steps = odd_steps(x, first * RATIO**-PAIR)
    with np.errstate(all="ignore"):
        below, above = moved(np.stack([-steps, steps]))
        value = (above - below) / (2.0 * steps)
        rounding = 4.0 * EPSILON * np.maximum(np.abs(above), np.abs(below)) / steps
        bound = rounding + TRUNCATION * np.abs(value)
        return _confirmed(gradient, value, bound, (above != below) & (first > 0), above == below, rtol)


def apart(output: Node, target: Node, values: Mapping[str, Floats]) -> Moved | None:
    """What a scalar node gives with each entry of another node moved, many together; None where that saves nothing."""
    from gradcli.structure.perturbed import perturbed  # of large arrays only: start-up time is a feature

    held, base = held_at(output, [target], values)
    base[held.targets[0].params["name"]] = evaluated([target], values)[0]
    try:
        found = perturbed(held.output, held.targets, base)
    except FAILED:
        return None
    if found is None:
        return None
    together = found

    def moved(steps: Floats) -> Floats:
        try:
            return together.totals(steps)
        except FAILED:  # a moved entry names no position, say: nothing is confirmed
            return np.full(steps.shape, np.nan)

    return moved


def affordable(output: Node, count: int) -> bool:
    """Whether an output can be evaluated twice for each of so many entries; told by counting, not by a clock."""
    work = 0
    for node in reachable([output]):
        inner = node.args[0].shape[-1] if node.primitive.kind == "bilinear" else 1
        work += steps(node) if is_reader(node) else node.type.size * inner
    return 2 * count * work <= MOST_WORK


def one_at_a_time(f: Callable[[Floats], Floats], x: Floats) -> Moved:
    """The values of f with each entry moved alone: an evaluation for every entry and step."""

    def moved(steps: Floats) -> Floats:
        found = np.empty(steps.shape)
        rows = max(4, CACHED // max(x.size, 1))
        for which, step in enumerate(steps):
            for start in range(0, x.size, rows):
                places = np.arange(start, min(start + rows, x.size))
                points = np.repeat(x[None], len(places), axis=0)
                points[places - start, places] += step[places]
                found[which, places] = f(points)
        return found

    return moved


def first_steps(x: Floats, domain: Interval | None) -> Floats:
    """The first step of the step sequence of each entry: `first_step` for all unit directions."""
    with np.errstate(all="ignore"):
        scale = np.where((x == 0) | ~np.isfinite(x), 1.0, np.abs(x))
        step = FIRST * scale
        if domain is not None:
            room = np.maximum(0.0, np.minimum(x - domain.low, domain.high - x))
            step = np.minimum(step, 0.45 * room)
        return np.where(step > 0, 2.0 ** np.floor(np.log2(np.where(step > 0, step, 1.0))), 0.0)


def odd_steps(x: Floats, steps: Floats) -> Floats:
    """Steps off the binary grid that leave x + step exact, as in `off_the_grid`."""
    unit = np.spacing(np.maximum(2.0 * np.abs(x), steps))
    return np.maximum(np.rint(ODD * steps / unit), 1.0) * unit


def _confirmed(gradient: Floats, value: Floats, bound: Floats, usable: Any, still: Any, rtol: float) -> Confirmed:
    size = np.abs(value)
    typical = float(size[np.isfinite(size)].max(initial=0.0))
    sharp = bound <= GOOD * np.maximum(size, 1e-6 * typical)
    gap, slack = np.abs(gradient - value), bound + max(rtol, 64 * EPSILON) * np.abs(gradient)
    agree = usable & sharp & (gap <= slack)
    off = np.nan_to_num(gap / slack, nan=-1.0, posinf=-1.0)
    return Confirmed(agree, np.minimum(1.0, bound / np.maximum(size, 1e-300)), off, still & (gradient == 0))
