"""Whole powers of arrays: their errors in units of the last place, against balls of 200 bits."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest

import gradcli

LIMIT = 2.5


BITS = 256


def exactly(function: str, *xs: float) -> Any:
    """The value as a ball."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        first, *rest = map(flint.arb, xs)
        return first ** rest[0] if function == "pow" else getattr(first, function)()
    finally:
        flint.ctx.prec = before


def ulps(found: float, exact: Any) -> float:
    """The distance in units of the last place of the exact value."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        unit = math.ulp(abs(float(exact)))
        return float(abs(flint.arb(found) - exact) / flint.arb(unit))
    finally:
        flint.ctx.prec = before


@pytest.mark.parametrize("power", [5, 6, 7, 12, -1, -2, -3, 31])
def test_whole_powers_of_both_signs(power: int) -> None:
    """A negative base goes by way of the positive one."""
    random = np.random.default_rng(abs(power))
    x = np.concatenate([random.choice([-1.0, 1.0], 3_000) * 2.0 ** random.uniform(-20, 20, 3_000), [-1.0, 1.0, -3.0]])
    value, _ = gradcli.compile(f"x**{power}").at_points(x=x)
    assert max(ulps(v, exactly("pow", b, power)) for b, v in zip(x.tolist(), value.tolist(), strict=True)) <= LIMIT
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    value, _ = gradcli.compile(f"x**{power}").at_points(x=special)
    with np.errstate(all="ignore"):
        expected = special**power
    assert np.array_equal(value, expected, equal_nan=True) and np.array_equal(
        np.signbit(value[:4]), np.signbit(expected[:4])
    )
