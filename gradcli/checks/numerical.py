"""A function and a gradient in floats go in, what differences say of it comes out: agrees, differs, or cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks import differences, everywhere

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval

    Floats = NDArray[np.floating[Any]]

ALL_ENTRIES = 48  # up to so many entries each has a ladder of its own
SOME_ENTRIES = 16
MOST_LADDERS = 32  # of entries that few values did not confirm
DIRECTIONS = 3
FAR = 30.0  # a difference of so many bounds is no accident of rounding
HIDDEN = 3e-8  # 1 + t**2 is 1 for a t of 1e-8: such a part of a slope no step sees
SMALL = 1e-6  # beside the largest slope: then the bound is told beside that one


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
    moved: everywhere.Moved | None = None,
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
            one_by_one = everywhere.by_rungs(moved, x, gradient, domain, rtol or 0.0)
        elif alone:
            one_by_one = everywhere.by_pairs(everywhere.alone(f, x), x, gradient, domain, rtol or 0.0)
        if one_by_one is not None:
            entries = one_by_one.left()[:MOST_LADDERS]
            count = int(one_by_one.entries.sum()) + len(entries)
            known = float(one_by_one.bounds[one_by_one.entries].max(initial=0.0))
        told = f"{count:,} of {x.size:,}" if count < x.size else f"{x.size:,}"
        covered = f"{told} entries and {DIRECTIONS} random directions"
    estimates = differences.partials(f, x, entries, domain)
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
