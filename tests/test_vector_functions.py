"""Functions of whole arrays that are ours: their errors in units of the last place, against balls of 200 bits."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradcli
from gradcli.execution.plans import emit_numpy
from gradcli.execution.plans.emit_numpy import FARTHEST, PLACES, sines, tables

LIMIT = 2.5


def both(angles: Any) -> tuple[Any, Any]:
    """Sine and cosine in new arrays."""
    sine, cosine = np.empty((2, len(angles)))
    with np.errstate(all="ignore"):
        sines(len(angles))(angles, sine, cosine)
    return sine, cosine


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


def worst(angles: Any) -> float:
    sine, cosine = both(angles)
    found = 0.0
    for x, s, c in zip(angles.tolist(), sine.tolist(), cosine.tolist(), strict=True):
        found = max(found, ulps(s, exactly("sin", x)), ulps(c, exactly("cos", x)))
    return found


def sweeps() -> dict[str, Any]:
    random = np.random.default_rng(8)
    quarters = np.arange(-63_660, 63_660, 7)
    places = np.arange(-3 * PLACES, 3 * PLACES)
    return {
        "short": random.uniform(-4, 4, 8_000),
        "far": random.uniform(-FARTHEST, FARTHEST, 8_000),
        "multiples of a right angle": (quarters * (math.pi / 2)).clip(-FARTHEST, FARTHEST),
        "beside them": np.nextafter(
            (quarters * (math.pi / 2)).clip(-99_999, 99_999), random.choice([-1e9, 1e9], len(quarters))
        ),
        "places of the table": places * (2 * math.pi / PLACES),
        "half-way between": (places + 0.5) * (2 * math.pi / PLACES),
        "beside the first place": (1 + random.uniform(-0.5, 0.5, 8_000)) * (2 * math.pi / PLACES),
        "beside its neighbours": random.choice([-1, 255, 257, 511, 513], 8_000) * (2 * math.pi / PLACES)
        + random.uniform(-0.003, 0.003, 8_000),
        "whole numbers": np.arange(-4_000.0, 4_000.0),
        "small": random.choice([-1.0, 1.0], 2_000) * 2.0 ** random.uniform(-1074, 0, 2_000),
        "the ends": np.array([FARTHEST, -FARTHEST, np.nextafter(FARTHEST, 0), 0.0, 5e-324, 2.2e-308, 1e-310]),
    }


@pytest.mark.parametrize("name", sweeps())
def test_sine_and_cosine_are_near(name: str) -> None:
    assert worst(sweeps()[name]) <= LIMIT


@given(st.lists(st.floats(-FARTHEST, FARTHEST), min_size=1, max_size=20))
@settings(deadline=None, max_examples=200)
def test_sine_and_cosine_of_any_angle(angles: list[float]) -> None:
    assert worst(np.array(angles)) <= LIMIT


def test_the_bound_would_be_seen_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table entry that is two units off is found."""
    right = tables()
    wrong = right.sines.copy()
    wrong[17] += 6 * math.ulp(wrong[17])
    monkeypatch.setattr(emit_numpy, "tables", lambda: right._replace(sines=wrong))
    assert worst(np.array([17 * 2 * math.pi / PLACES])) > LIMIT


def test_the_tables_are_rounded_once() -> None:
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        for place, (s, c) in enumerate(zip(tables().sines.tolist(), tables().cosines.tolist(), strict=True)):
            angle = flint.arb.pi() * place / (PLACES // 2)
            for found, exact in ((s, angle.sin()), (c, angle.cos())):
                if not exact.contains(0):
                    assert ulps(found, exact) <= 0.5, place
                else:
                    assert found == 0
    finally:
        flint.ctx.prec = before


def test_far_angles_and_what_is_not_finite_are_numpys() -> None:
    angles = np.array([1e5 + 1, -1e6, 1e22, np.inf, -np.inf, np.nan, 1.0, -0.0, 0.0])
    sine, cosine = both(angles)
    with np.errstate(all="ignore"):
        for found, expected in ((sine, np.sin(angles)), (cosine, np.cos(angles))):
            assert np.array_equal(found[:6], expected[:6], equal_nan=True)
    assert np.signbit(sine[7]) and not np.signbit(sine[8]) and sine[7] == sine[8] == 0


def test_an_angle_has_one_answer() -> None:
    """Whatever array it stands in, also beside angles that are out of range."""
    angles = np.random.default_rng(1).uniform(-10, 10, 1_001)
    sine, cosine = both(angles)
    for at in (0, 3, 1_000):
        alone = both(angles[at : at + 1])
        assert alone[0][0] == sine[at] and alone[1][0] == cosine[at]
    far = angles.copy()
    far[5] = np.inf
    assert np.array_equal(np.delete(both(far)[0], 5), np.delete(sine, 5))


def test_a_gradient_takes_both_at_once() -> None:
    """A value and its derivative: one of them is the cosine of the same angle."""
    x = np.linspace(-50, 50, 5_001)
    value, slopes = gradcli.compile("sin(x)").at_points(x=x)
    assert np.array_equal(value, both(x)[0]) and np.array_equal(slopes["x"], both(x)[1])
    single, _ = gradcli.compile("sin(x)", dtype="float32").at_points(x=x)
    assert np.array_equal(single, np.sin(x.astype(np.float32)))


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
