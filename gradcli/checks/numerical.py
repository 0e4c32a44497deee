"""Finite differences against a whole gradient: they agree, differ, or cannot tell.

Entries of small arrays have a step sequence each. Of large ones every entry is looked at in a few evaluations, which
can only confirm it: by three steps that agree with each other and with the gradient, or by one pair of values where
each costs an evaluation of its own. What is not confirmed gets a step sequence. Sees values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks import differences
from gradcli.checks.floats import evaluated, held_at
from gradcli.checks.reading import steps
from gradcli.diagnostics import GradcliError
from gradcli.execution.namespaces import REFUSED
from gradcli.graph.node import is_reader, reachable
from gradcli.structure.perturbed import perturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Moved = Callable[[Floats], Floats]  # steps [count, size] -> what is moved by each, [count, size]

ALL_ENTRIES = 48  # up to so many entries each has a ladder of its own
SOME_ENTRIES = 16
MOST_LADDERS = 32  # of entries that few values did not confirm
DIRECTIONS = 3
FAR = 30.0  # a difference of so many bounds is no accident of rounding
HIDDEN = 3e-8  # 1 + t**2 is 1 for a t of 1e-8: such a part of a slope no step sees
SMALL = 1e-6  # beside the largest slope: then the bound is told beside that one
RUNGS = np.array([3, 4, 5])  # of the ladder of `differences`: where the best one mostly is
PAIR = 7  # the rung of a single pair of values: its step is about the cube root of a rounding
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
    estimates = differences.by_entries(f, x, entries, domain)
    expected = [float(gradient[i]) for i in entries]
    if x.size > ALL_ENTRIES:
        ways = differences.seeded_directions(x, DIRECTIONS, seed)
        estimates += differences.directional(f, x, ways)
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
        slack = estimate.bound + max(rtol or 0.0, 64 * differences.EPSILON) * abs(value)
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
    """Three rungs for every entry, from few evaluations: `moved` tells what entries give that move together."""
    first = first_steps(x, domain)
    steps = np.stack([odd_steps(x, first * differences.RATIO**-rung) for rung in RUNGS])  # [rung, entry]
    offsets = steps[:, None, :] * differences.OFFSETS[None, :, None]
    with np.errstate(all="ignore"):
        found = moved(offsets.reshape(-1, x.size)).reshape(len(RUNGS), 4, x.size)
        slope = (8.0 * (found[:, 2] - found[:, 1]) - (found[:, 3] - found[:, 0])) / (12.0 * steps)
        rounding = 3.0 * differences.EPSILON * np.abs(found).max(axis=1) / steps
        gaps = np.abs(np.diff(slope, axis=0))
        beside = np.stack([gaps[0], np.maximum(gaps[0], gaps[1]), gaps[1]])
        error = beside + rounding
        best = np.argmin(error, axis=0)
        entry = np.arange(x.size)
        value, bound = (
            slope[best, entry],
            4.0 * error[best, entry] + 8.0 * differences.EPSILON * np.abs(slope[best, entry]),
        )
        still = (found == found[:1, :1]).all(axis=(0, 1))
        usable = ((found[:, 1] == found[:, 2]).sum(axis=0) < 2) & (first > 0)
        return _confirmed(gradient, value, bound, usable, still, rtol)


def by_pairs(moved: Moved, x: Floats, gradient: Floats, domain: Interval | None, rtol: float) -> Confirmed:
    """One central difference for every entry."""
    first = first_steps(x, domain)
    steps = odd_steps(x, first * differences.RATIO**-PAIR)
    with np.errstate(all="ignore"):
        below, above = moved(np.stack([-steps, steps]))
        value = (above - below) / (2.0 * steps)
        rounding = 4.0 * differences.EPSILON * np.maximum(np.abs(above), np.abs(below)) / steps
        bound = rounding + TRUNCATION * np.abs(value)
        return _confirmed(gradient, value, bound, (above != below) & (first > 0), above == below, rtol)


def apart(output: Node, target: Node, values: Mapping[str, Floats]) -> Moved | None:
    """What a scalar node gives with each entry of another node moved, many together; None where that saves nothing."""
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
    """The first step of the ladder of each entry: `differences.first_step` for all unit directions."""
    with np.errstate(all="ignore"):
        scale = np.where((x == 0) | ~np.isfinite(x), 1.0, np.abs(x))
        step = differences.FIRST * scale
        if domain is not None:
            room = np.maximum(0.0, np.minimum(x - domain.low, domain.high - x))
            step = np.minimum(step, 0.45 * room)
        return np.where(step > 0, 2.0 ** np.floor(np.log2(np.where(step > 0, step, 1.0))), 0.0)


def odd_steps(x: Floats, steps: Floats) -> Floats:
    """Steps off the binary grid that leave x + step exact, as in `differences.off_the_grid`."""
    unit = np.spacing(np.maximum(2.0 * np.abs(x), steps))
    return np.maximum(np.rint(differences.ODD * steps / unit), 1.0) * unit


def _confirmed(gradient: Floats, value: Floats, bound: Floats, usable: Any, still: Any, rtol: float) -> Confirmed:
    size = np.abs(value)
    typical = float(size[np.isfinite(size)].max(initial=0.0))
    sharp = bound <= differences.GOOD * np.maximum(size, 1e-6 * typical)
    gap, slack = np.abs(gradient - value), bound + max(rtol, 64 * differences.EPSILON) * np.abs(gradient)
    agree = usable & sharp & (gap <= slack)
    off = np.nan_to_num(gap / slack, nan=-1.0, posinf=-1.0)
    return Confirmed(agree, np.minimum(1.0, bound / np.maximum(size, 1e-300)), off, still & (gradient == 0))
