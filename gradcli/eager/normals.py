"""Uniform numbers go in, pairs of normal numbers come out, with PyTorch's roundings; it knows no generator and no seed.

Singles are computed as PyTorch's vector kernels compute them (with AVX2 or AVX-512), doubles by the C library.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

TWO_PI = 2 * math.pi


def fma32(x: Any, y: Any, z: Any) -> NDArray[np.float32]:
    """x * y + z of singles, rounded once: the product is exact in double precision."""
    result: NDArray[np.float32] = (x.astype(np.float64) * y + z).astype(np.float32)
    return result


def fma64(x: Array, y: float, z: float) -> Array:
    """x * y + z of doubles, rounded once: the product's and the sum's errors are added back (Dekker, 1971; Knuth)."""
    if y == 1.0:
        return x + z
    product = x * y
    if not (1e-140 < abs(y) < 1e140 and abs(z) < 1e140):  # the splitting below would overflow or underflow
        return product + z
    split = 2.0**27 + 1
    x_high = x * split - (x * split - x)
    y_high = y * split - (y * split - y)
    x_low, y_low = x - x_high, y - y_high
    product_error = x_low * y_low - (product - x_high * y_high - x_low * y_high - x_high * y_low)
    total = product + z
    part = total - product
    total_error = (product - (total - part)) + (z - part)
    return total + (product_error + total_error)


def box_muller64(blocks: Array) -> Array:
    """Doubles of shape (n, 2, m) in [0, 1) to normal ones: radii from row 0, angles from row 1."""

    # `math` is the C library, which PyTorch calls too; NumPy's own logarithm and sine differ in the last bit
    def each(function: Any, values: Array) -> Array:
        return np.array(list(map(function, values.ravel().tolist()))).reshape(values.shape)

    radius = np.sqrt(-2 * each(math.log, 1 - blocks[:, 0]))
    angle = TWO_PI * blocks[:, 1]
    return np.stack([radius * each(math.cos, angle), radius * each(math.sin, angle)], axis=1)


def box_muller32(blocks: Array) -> Array:
    """Singles of shape (n, 2, m) in [0, 1) to normal ones: radii from row 0, angles from row 1."""
    radius = np.sqrt(np.float32(-2) * _log32(np.float32(1) - blocks[:, 0]))
    sine, cosine = _sine_cosine32(np.float32(TWO_PI) * blocks[:, 1])
    return np.stack([radius * cosine, radius * sine], axis=1)


# The float32 kernels below are those of Cephes (Moshier, 1989): reduced argument, short polynomial. PyTorch evaluates
# them eight lanes at a time with fused multiply-adds; the same roundings in the same order give the same bits.
_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER_PI = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # negative, in three parts


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    result: Array = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = fma32(result, x, np.float32(coefficient))
    return result


def _log32(x: Array) -> Array:
    """Natural logarithm of singles in (0, 1]."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < np.float32(math.sqrt(0.5))
    e = (exponent - small).astype(np.float32)
    x = (mantissa - np.float32(1)) + np.where(small, mantissa, np.float32(0))
    square = x * x
    y = fma32(_polynomial(_LOG, x) * x, square, e * _LN2_LOW)
    y = fma32(square, np.float32(-0.5), y)
    return fma32(e, _LN2_HIGH, x + y)


def _sine_cosine32(x: Array) -> tuple[Array, Array]:
    """Sine and cosine of singles in [0, 2 pi]."""
    octant = ((x * np.float32(4 / math.pi)).astype(np.int32) + 1) & ~1
    for part in _QUARTER_PI:
        x = fma32(octant.astype(np.float32), np.float32(part), x)
    square = x * x
    y = _polynomial(_COSINE, square) * square
    cosine = fma32(y, square, -(square * np.float32(0.5))) + np.float32(1)
    sine = fma32(_polynomial(_SINE, square) * square, x, x)
    swapped = octant & 2 != 0
    return (
        np.where(swapped, cosine, sine) * np.where(octant & 4, np.float32(-1), np.float32(1)),
        np.where(swapped, sine, cosine) * np.where((octant - 2) & 4, np.float32(1), np.float32(-1)),
    )
