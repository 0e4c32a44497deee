"""One-sided differences: limits and slopes on both sides of a point, and whether it is a kink, an edge or a jump."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import EPSILON, RATIO, STEPS, evaluated, outvoted, seeded_directions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.differences.step_sequences import Floats, Function

SIDED = np.array([1.0, 2.0, 3.0])
DIRECTIONS = 6  # random ones, beside the axes
CLEAR = 64.0  # bounds: slopes of two sides that are so far apart do not approach each other slowly, as by a logarithm


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


class Behaviour(NamedTuple):
    """What a function does at a point: "smooth", "KINK", "BOUNDARY" or "DISCONTINUOUS", with the slopes by entry."""

    verdict: str
    left: list[float | None]
    right: list[float | None]
    bound: float
    value: float
    limits: tuple[float | None, float | None]


def behaviour(f: Function, x: Floats, entries: Sequence[int], joint: bool, seed: int) -> Behaviour:
    """What an f with one output does at x along the axes of some entries, and with `joint` along random directions."""
    axes = [np.eye(1, x.size, i)[0] for i in entries]
    directions = list(axes)
    if joint and x.size > 1:
        directions += seeded_directions(x, DIRECTIONS, seed)
    seen = sides(f, x, directions)
    verdicts = [_along(one) for one in seen]
    worst = next((v for v in ("DISCONTINUOUS", "BOUNDARY", "KINK") if v in verdicts), "smooth")
    telling = seen[verdicts.index(worst)] if worst != "smooth" else seen[0]
    own = seen[: len(axes)]
    sides_of = [one.left for one in own], [one.right for one in own]
    left, right = ([None if one is None else one.slope for one in side] for side in sides_of)
    bounds = (one.slope_bound for side in sides_of for one in side if one is not None)
    limits = [None if one is None else one.limit for one in (telling.left, telling.right)]
    return Behaviour(worst, left, right, max(bounds, default=0.0), telling.value, (limits[0], limits[1]))


def inside(found: Sequence[float], seen: Behaviour) -> bool:
    """Whether each returned value lies between the known one-sided slopes of its entry."""
    for value, left, right in zip(found, seen.left, seen.right, strict=True):
        if left is None or right is None or not math.isfinite(value):
            return False
        slack = seen.bound + 1e-9 * max(abs(left), abs(right), abs(value))
        if not min(left, right) - slack <= value <= max(left, right) + slack:
            return False
    return True


def sides(f: Function, x: Floats, directions: Sequence[Floats]) -> list[Sides]:
    """What an f with one output does on both sides of x along some directions: limits, slopes, jumps."""
    points = [x[None]]
    steps = []
    for d in directions:
        h = step_sequences.first_step(x, d) * RATIO ** -np.arange(STEPS)
        steps.append(h)
        points += [x + side * (h[:, None] * SIDED).reshape(-1)[:, None] * d for side in (-1.0, 1.0)]
    values = evaluated(f, np.concatenate(points))[:, 0]
    here, rest = float(values[0]), values[1:].reshape(len(directions), 2, STEPS, 3)
    found = []
    for h, (left, right) in zip(steps, rest, strict=True):
        found.append(Sides(here, _side(here, h, left, -1.0), _side(here, h, right, 1.0)))
    return found


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
    error = outvoted(slope, step_sequences.beside(slope) + rounding)
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


def _along(seen: Sides) -> str:
    value, left, right = seen
    for side in (left, right):
        if side is not None and abs(side.limit - value) > 10 * side.limit_bound + 1e-6 * max(1.0, abs(value)):
            return "DISCONTINUOUS"
    if left is None or right is None or not math.isfinite(left.slope) or not math.isfinite(right.slope):
        return "BOUNDARY"
    gap = abs(right.slope - left.slope)
    if gap > CLEAR * (left.slope_bound + right.slope_bound) + 1e-6 * max(abs(left.slope), abs(right.slope)):
        return "KINK"
    return "smooth"
