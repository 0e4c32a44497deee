"""Sine and cosine of an array of angles, computed together.

The angle is reduced to the nearest of 1,024 places on the circle (Cody and Waite's way, in four parts, so that the
products are exact), whose sine and cosine are tabled; short polynomials turn by the rest. That is 31 calls of NumPy,
all entry by entry: each entry has one answer, whatever array it stands in. Up to 100,000 the error is at most
2.5 ulp; beyond, and for what is not finite, `np.sin` and `np.cos` answer. NumPy's own two calls take two to three
times as long; for a sine alone they do not.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = 1024
FARTHEST = 1e5  # up to which the products of the reduction are exact
BITS = 29  # of the first three parts of the step: times a place of 24 bits they are doubles
SHORTEST = 1 << 12  # entries, below which NumPy's two calls are as fast
SCRATCH = 4  # arrays beside the two results
TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116419498891846156")
ROUNDING = 1.5 * 2.0**52  # added and taken away, it rounds to a whole number, whose bits stand at the end of the sum


class Tables(NamedTuple):
    """The circle in PLACES parts, and the numbers of the formula as arrays of rank 0, which NumPy takes fastest."""

    sines: Any
    cosines: Any
    numbers: tuple[Any, ...]


@cache
def tables() -> Tables:
    """The tables, rounded once from 60 digits."""
    with localcontext() as context:
        context.prec = 70
        step = TWO_PI / PLACES
        parts: list[float] = []
        for _ in range(3):
            parts.append(_first_bits(step - sum(map(Decimal, parts))))
        parts.append(float(step - sum(map(Decimal, parts))))
        points = [_turned(step * place) for place in range(PLACES // 8 + 1)]
    eighth = PLACES // 8
    sines, cosines = [float(s) for s, _ in points], [float(c) for _, c in points]
    quarter = sines + cosines[eighth - 1 :: -1]  # sin(pi/2 - a) = cos(a)
    half = quarter + quarter[-2:0:-1]
    circle = half + [-one for one in half]
    numbers = (PLACES / float(TWO_PI), ROUNDING, *parts, 1 / 120, -1 / 6, 1 / 24, -0.5)
    table = np.array(circle)
    return Tables(table, np.roll(table, -PLACES // 4), tuple(np.array(one) for one in numbers))


def _first_bits(number: Decimal) -> float:
    """The first BITS bits of a number."""
    fraction, exponent = np.frexp(float(number))
    return float(np.ldexp(np.floor(np.ldexp(fraction, BITS)), exponent - BITS))


def _turned(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Sine and cosine of an angle of at most an eighth of the circle, by their series."""
    sine = cosine = Decimal(0)
    term = Decimal(1)
    for order in range(0, 60, 4):
        for power, (to_sine, to_cosine) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0)), order):
            sine += to_sine * term
            cosine += to_cosine * term
            term = term * angle / (power + 1)
    return sine, cosine


def sincos(x: Any, sine: Any, cosine: Any, *scratch: Any) -> None:
    """Fill `sine` and `cosine`, using SCRATCH further arrays; all are float64, contiguous, of one length.

    No two of them may overlap.
    """
    table = tables()
    places, rounding, first, second, third, fourth, s5, s3, c4, c2 = table.numbers
    r, t, u, v = scratch
    index = v.view(np.int64)
    np.multiply(x, places, t)
    np.add(t, rounding, t)
    np.bitwise_and(t.view(np.int64), _MASK, index)
    np.subtract(t, rounding, t)
    np.multiply(t, first, r)
    np.subtract(x, r, r)
    np.multiply(t, second, u)
    np.subtract(r, u, r)
    np.multiply(t, third, u)
    np.subtract(r, u, r)
    np.multiply(t, fourth, u)
    np.subtract(r, u, r)  # the rest of the angle
    table.sines.take(index, 0, sine, "clip")
    table.cosines.take(index, 0, cosine, "clip")
    np.multiply(r, r, t)
    np.multiply(t, s5, u)
    np.add(u, s3, u)
    np.multiply(u, t, u)
    np.multiply(u, r, u)
    np.add(u, r, r)  # its sine
    np.multiply(t, c4, u)
    np.add(u, c2, u)
    np.multiply(u, t, u)  # its cosine, less 1
    np.multiply(sine, u, t)
    np.multiply(cosine, u, u)
    np.multiply(cosine, r, v)
    np.add(t, v, t)
    np.multiply(sine, r, r)
    np.subtract(u, r, u)
    np.add(sine, t, sine)
    np.add(cosine, u, cosine)
    if x.size:
        least, most = x.min(), x.max()
        if not (least >= -FARTHEST and most <= FARTHEST):  # NaN is neither
            _mend(x, sine, cosine)
        if not (least > 0 or most < 0):
            np.copyto(sine, x, where=x == 0)  # the sine of -0 is -0


_MASK = np.array(PLACES - 1)


def _mend(x: Any, sine: Any, cosine: Any) -> None:
    """The entries that lie far out, by NumPy."""
    far = ~(np.abs(x) <= FARTHEST)
    places = np.flatnonzero(far)
    sine[places] = np.sin(x[places])
    cosine[places] = np.cos(x[places])


def sines(count: int) -> Callable[[Any, Any, Any], None]:
    """A function `f(x, sine, cosine)` for so many entries, with memory of its own for what stands between.

    >>> sine, cosine = np.empty(2), np.empty(2)
    >>> sines(2)(np.array([0.0, 0.5]), sine, cosine)
    >>> float(sine[0]), float(cosine[0])
    (0.0, 1.0)
    """
    scratch = np.empty((SCRATCH, count))

    def both(x: Any, sine: Any, cosine: Any) -> None:
        sincos(np.ascontiguousarray(x).reshape(-1), sine.reshape(-1), cosine.reshape(-1), *scratch)

    return both
