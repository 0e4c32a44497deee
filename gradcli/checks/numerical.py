"""A function and a gradient in floats go in, what differences say of it comes out: agrees, differs, or cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval

    Floats = NDArray[np.floating[Any]]

ALL_ENTRIES = 48  # up to so many entries each has a ladder of its own
SOME_ENTRIES = 16
DIRECTIONS = 3
FAR = 30.0  # a difference of so many bounds is no accident of rounding


class Numerical(NamedTuple):
    """`state` is "agrees", "differs", "near" (a little outside the bound) or "silent"; `bound` is relative."""

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
) -> Numerical:
    """Whether a gradient is what the differences of f at x give, to a tolerance if there is one.

    Many entries are covered by random directions and some ladders of their own.
    """
    gradient = found.reshape(-1)
    entries: Sequence[int] = range(x.size)
    covered = f"{x.size} entries" if x.size > 1 else "the derivative"
    if x.size > ALL_ENTRIES:
        generator = np.random.default_rng(seed)
        entries = sorted(generator.choice(x.size, SOME_ENTRIES, replace=False).tolist())
        covered = f"{SOME_ENTRIES} of {x.size} entries and {DIRECTIONS} random directions"
    estimates = differences.partials(f, x, entries, domain)
    expected = [float(gradient[i]) for i in entries]
    if x.size > ALL_ENTRIES:
        ways = differences.seeded_directions(x, DIRECTIONS, seed)
        estimates += differences.directional(f, x, ways)
        expected += [float(gradient @ d) for d in ways]
    worst, state, reason, at = 0.0, "agrees", None, None
    largest = 0.0
    for position, (estimate, value) in enumerate(zip(estimates, expected, strict=True)):
        if estimate.reason is not None:
            if state == "agrees":
                state, reason, at = "silent", estimate.reason, position
            continue
        gap = abs(value - estimate.value)
        slack = estimate.bound + max(rtol or 0.0, 64 * differences.EPSILON) * abs(value)
        if not gap <= slack:
            ratio = gap / slack if np.isfinite(gap) else np.inf
            told = "differs" if ratio > FAR and not gap <= estimate.doubt else "near"
            if state not in ("near", "differs") or (told == "differs", ratio) > (state == "differs", worst):
                worst, state = ratio, told
                reason, at = f"differences give {estimate.value!r} +- {estimate.bound:.1g}", position
        scale = max(abs(estimate.value), 1e-300)
        largest = max(largest, min(1.0, estimate.bound / scale))
    entry_at = None if at is None or at >= len(entries) else int(entries[at])
    return Numerical(state, reason, largest, entry_at, None if at is None else estimates[at].value, covered)
