"""Claimed slopes and slopes that differences saw go in, short readings of what may be wrong come out.

Like `checks.diagnosis`, but for numbers that are known to a bound only: a pattern is read where it fits every entry to
that bound and the claim itself does not. A reading is "consistent with" the numbers, never more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

MOST = 3  # readings
LARGEST = 64  # numerators and denominators of a constant factor, beside the sizes of the arrays
FEW = 3  # numbers at one point: they are in some simple ratio by chance
NAMED = 6  # wrong entries that are named one by one
SHARP = 1e-5  # a factor has to be known at least so well


class Reading(NamedTuple):
    """One way to read an error: its name, and a sentence."""

    name: str
    text: str


class Known:
    """What is known of the gradient by one argument: slopes, their bounds, and the claim, in the argument's shape."""

    def __init__(self, slopes: Floats, bounds: Floats, claimed: Floats) -> None:
        self.slopes = slopes
        self.bounds = bounds
        self.claimed = claimed

    def fits(self, other: Floats) -> bool:
        """Whether other numbers of the same shape are what differences saw."""
        slack = 4.0 * self.bounds + 1e-9 * np.abs(self.slopes)
        return other.shape == self.slopes.shape and bool((np.abs(other - self.slopes) <= slack).all())

    @property
    def telling(self) -> bool:
        """Whether the numbers are sharp enough to tell one pattern from another."""
        largest = float(np.abs(self.slopes).max(initial=0.0))
        return largest > 0 and bool(np.isfinite(self.claimed).all()) and float(self.bounds.max()) <= SHARP * largest


def readings(
    known: Known,
    sizes: Sequence[int] = (),
    others: Mapping[str, Known] | None = None,
    elsewhere: Sequence[Known] = (),
    jacobian: bool = False,
) -> list[Reading]:
    """At most three readings of a wrong gradient; `others` are the gradients by arguments of the same shape.

    `elsewhere` holds slopes at other points: few numbers at one point are in many ratios, and a factor has to be the
    same everywhere. A `jacobian` has a row for each output.
    """
    claimed = known.claimed
    if not known.telling or known.fits(claimed):
        return []
    if not claimed.any():
        return [Reading("zero", "the claim is zero, the derivative is not")]
    found: list[Reading] = []
    if known.fits(-claimed):
        found.append(Reading("wrong sign", "consistent with a wrong sign: the right gradient is minus the claim"))
    factor = _factor(known, sizes)
    if factor is not None and known.slopes.size < FEW and factor != -1:
        factor = factor if elsewhere and all(one.fits(float(factor) * one.claimed) for one in elsewhere) else None
    if factor is not None and factor != -1:
        text = f"consistent with a constant factor: the right gradient is {factor} times the claim"
        counts = [n for n in dict.fromkeys(sizes) if n > 2 and abs(factor) in (n, Fraction(1, n))]
        if counts:
            text += f" (there are {counts[0]} entries: is a mean or a sum meant?)"
        elif 2 < abs(factor) == abs(factor.numerator) or 2 < 1 / abs(factor) == factor.denominator:
            text += f" (is a mean over {max(abs(factor.numerator), factor.denominator)} meant, or a sum?)"
        found.append(Reading("constant factor", text))
    for name, other in (others or {}).items():
        if other.slopes.shape == claimed.shape and other.fits(claimed) and other.telling:
            found.append(
                Reading("swapped", f"consistent with swapped arguments: the claim is the gradient by `{name}`")
            )
    what = "Jacobian" if jacobian else "gradient"
    if claimed.ndim == 2 and claimed.shape[0] == claimed.shape[1] and known.fits(claimed.T):
        found.append(Reading("transposed", f"consistent with a transpose: the right {what} is the claim's transpose"))
    if not found and jacobian:
        found += _diagonal(known)
    if not found:
        found += _whole(known) or ([] if jacobian else _axes(known)) or _few(known)
    return found[:MOST]


def _diagonal(known: Known) -> list[Reading]:
    """A Jacobian whose entries beside the diagonal are forgotten, as for a function that works entry by entry."""
    m, n = known.claimed.shape
    beside = ~np.eye(m, n, dtype=bool)
    slack = 4.0 * known.bounds + 1e-9 * np.abs(known.slopes)
    right = (np.abs(known.claimed - known.slopes) <= slack)[~beside].all()
    if m == n and right and not known.claimed[beside].any():
        told = "right on the diagonal, and zero beside it: each output depends on every entry"
        return [Reading("diagonal only", told)]
    return []


def _whole(known: Known) -> list[Reading]:
    """Numbers that were cut to whole ones."""
    for word, cut in (("cut off", np.trunc), ("rounded", np.round)):
        if (known.claimed == cut(known.slopes)).all() and np.abs(known.claimed).max() >= 1:
            return [Reading("whole numbers", f"consistent with decimals that were {word}: is it an array of integers?")]
    return []


def _factor(known: Known, sizes: Sequence[int]) -> Fraction | None:
    """The simple fraction that the claim has to be multiplied with."""
    at = int(np.argmax(np.abs(known.slopes)))
    claimed, slope, bound = (float(one.reshape(-1)[at]) for one in (known.claimed, known.slopes, known.bounds))
    if claimed == 0 or not bound <= SHARP * abs(slope):
        return None
    ratio = slope / claimed
    simple = [Fraction(ratio).limit_denominator(LARGEST)]
    simple += [Fraction(sign * n) for n in sizes if n for sign in (1, -1)]
    simple += [Fraction(sign, n) for n in sizes if n for sign in (1, -1)]
    for one in simple:
        if (
            one not in (0, 1)
            and abs(one.numerator) <= max(LARGEST, *sizes, 1)
            and known.fits(float(one) * known.claimed)
        ):
            return one
    return None


def _axes(known: Known) -> list[Reading]:
    """A gradient that is constant along an axis, at the sum or mean of what it should be there; or turned round."""
    claimed, slopes = known.claimed, known.slopes
    for axis in range(claimed.ndim):
        if claimed.shape[axis] < 2:
            continue
        for word, mixed in (("summed", slopes.sum(axis=axis)), ("averaged", slopes.mean(axis=axis))):
            summed = np.broadcast_to(np.expand_dims(mixed, axis), claimed.shape)
            if Known(summed, known.bounds * claimed.shape[axis], claimed).fits(claimed):
                return [Reading("wrong axis", f"consistent with a gradient {word} over axis {axis} that should not be")]
        if known.fits(np.flip(claimed, axis)):
            return [Reading("reversed", f"consistent with entries in reverse order along axis {axis}")]
        if axis == 0 and claimed.ndim > 1 and known.fits(np.flip(claimed)):
            return [Reading("reversed", "consistent with entries in reverse order along every axis: a kernel flipped?")]
        for shift in (1, -1):
            if claimed.shape[axis] > 2 and known.fits(np.roll(claimed, shift, axis)):
                return [Reading("shifted", f"consistent with entries shifted by one along axis {axis}")]
    if claimed.ndim == 1 and claimed.size > 2 and (claimed == claimed[0]).all():
        return [Reading("constant", "the claim has the same number for every entry; the derivative has not")]
    return []


def _few(known: Known) -> list[Reading]:
    """Right but for the sign of some entries, or for a few entries."""
    slack = 4.0 * known.bounds + 1e-9 * np.abs(known.slopes)
    wrong = np.abs(known.claimed - known.slopes) > slack
    if known.fits(np.where(wrong, -known.claimed, known.claimed)):
        return [Reading("some signs", "consistent with a wrong sign in some entries")]
    count, size = int(wrong.sum()), known.claimed.size
    if 0 < count <= max(1, size // 2) and size > 1:
        places = [list(map(int, place)) for place in np.argwhere(wrong)]
        told = f"{count} of {size} entries"
        if count <= NAMED:
            told = f"the entr{'y' if count == 1 else 'ies'} {', '.join(map(str, places))}"
        return [Reading("some entries", f"right but for {told}")]
    offset = known.slopes - known.claimed
    if size > 1 and np.abs(offset - offset.flat[0]).max() <= 2 * slack.max():
        return [Reading("offset", f"every entry is off by the same {float(offset.mean()):.6g}")]
    return []
