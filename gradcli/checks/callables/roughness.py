"""A ladder goes in, whether its rungs look like a kink, a jump or a vertical slope comes out; one-sided slopes decide.

Cheap, from values that are there already: a suspicion is a reason to look at both sides, no verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.differences import EPSILON

if TYPE_CHECKING:
    from gradcli.checks.callables.ladder import Ladder

RUNGS = 3  # the smallest steps that show more than rounding
STEEP = 8  # rungs on which a slope has to grow, to be called vertical
LARGE = 6  # of the first rungs one has to see a kink: teeth of rounding are smaller
MOST = 0.8  # of the rungs between
DECADES = 100.0
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
    """What rounding and noise may do to a value of a ladder."""
    largest = max(abs(one.here), float(np.abs(one.values).max(initial=0.0)))
    return ROUNDINGS * max(EPSILON * largest, one.noise)
