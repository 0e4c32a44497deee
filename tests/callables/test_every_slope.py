"""Values alone: a pass needs every slope, however steep others are; what rounding hides is named, never passed.

Slopes are looked for at larger steps, and where rounding hides a slope that is about 0, at points nearby. What stands
still on all steps has the slope 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from gradcli import check_callable
from tests.support.rows import all_rows

pytestmark = pytest.mark.usefixtures("values_only")
PASSES = {"AGREES", "IMPRECISE", "PROVED", "CERTIFIED"}
FACTORS = {"zero": 0.0, "the other sign": -1.0, "half as much again": 1.5, "a thousand times": 1e3, "5 % more": 1.05}


def verdict(f: Any, df: Any, at: Any, name: str, kind: str = "grad") -> Any:
    return next(check for check in check_callable(f, at=at, **{kind: df}).checks if check.leaf == name)


@pytest.mark.parametrize("steep", [1.0, 1e4, 1e8, 1e10, 1e12, 1e14, 1e20])
def test_a_flat_argument_beside_a_steep_one(steep: float) -> None:
    at = {"p": 3.0, "q": 0.002}

    def f(p: float, q: float) -> float:
        return steep * p**2 + q**2

    for factor in FACTORS.values():
        wrong = verdict(f, lambda p, q, k=factor: (2 * steep * p, 2 * k * q), at, "q")
        assert wrong.verdict not in PASSES and "q" in wrong.message + str(wrong.leaf), wrong
    right = verdict(f, lambda p, q: (2 * steep * p, 2 * q), at, "q")
    assert right.verdict == "AGREES" if steep <= 1e10 else right.verdict == "INCONCLUSIVE", right
    assert verdict(f, lambda p, q: (2 * steep * p, 2 * q), at, "p").verdict == "AGREES"


@pytest.mark.parametrize("size", [3, 40, 60, 200])
@pytest.mark.parametrize(("large", "small"), [(1e3, 1e-6), (1e6, 1e-3), (1e6, 1e-6), (1e3, 1e-9), (1.0, 1e-12)])
def test_a_small_entry_beside_large_ones(size: int, large: float, small: float) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2.0, size)
    x[0], x[1] = large, small
    for factor in FACTORS.values():
        wrong = verdict(
            lambda x: np.sum(x**2), lambda x, k=factor: 2 * x * np.where(np.arange(size) == 1, k, 1), (x,), "x"
        )
        assert wrong.verdict not in PASSES, (factor, wrong)
    right = verdict(lambda x: np.sum(x**2), lambda x: 2 * x, (x,), "x")
    assert (
        right.verdict == "AGREES"
        if size <= 48 and small * large >= 1e-3
        else right.verdict in {"AGREES", "INCONCLUSIVE"}
    )


def test_a_flat_output_beside_a_steep_one() -> None:
    def f(x: Any) -> Any:
        return np.array([1e12 * x[0] ** 2, np.sin(x[1])])

    def jac(x: Any, k: float = 1.0) -> Any:
        return np.array([[2e12 * x[0], 0.0], [0.0, k * np.cos(x[1])]])

    at = (np.array([3.0, 0.4]),)
    assert verdict(f, jac, at, "x", "jac").verdict == "AGREES"
    for factor in FACTORS.values():
        wrong = verdict(f, lambda x, k=factor: jac(x, k), at, "x", "jac")
        assert wrong.verdict == "DISAGREES" and "J[1, 1]" in wrong.message, wrong


# f, its derivative, a point: f stands still, or its slope is 0 there
FLAT: dict[str, tuple[Any, Any, Any]] = {
    "a constant": (lambda x: 3.0 + 0 * x, lambda x: 0.0, 1.0),
    "nothing": (lambda x: 0.0 * x, lambda x: 0.0, 1.0),
    "saturated": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, 100.0),
    "clipped": (lambda x: np.clip(x, -1.3, 1.3), lambda x: 1.0 * (abs(x) < 1.3), 2.9),
    "trimmed": (lambda x: x if abs(x) <= 2 else 0.0, lambda x: 1.0 * (abs(x) <= 2), 5.0),
    "a step": (np.floor, lambda x: 0.0, 1.5),
    "dead units": (lambda x: np.sum(np.maximum(x, 0)), lambda x: 1.0 * (x > 0), np.array([1.0, -3.0, 2.0, -1e-3])),
    "a mode": (lambda p: float(binom.logpmf(2, 5, p)), lambda p: 2 / p - 3 / (1 - p), 0.4),
    "a minimum": (lambda x: np.sum((x - 1) ** 2), lambda x: 2 * (x - 1), np.ones(3)),
    "a flat minimum": (lambda x: (x - 1) ** 4, lambda x: 4 * (x - 1) ** 3, 1.0),
    "a cosine": (np.cos, lambda x: -np.sin(x), np.pi),
    "a saddle": (lambda x: x[0] ** 2 - x[1] ** 2 + 5, lambda x: np.array([2 * x[0], -2 * x[1]]), np.zeros(2)),
    "beside a large value": (lambda x: 1e8 + (x - 0.5) ** 2, lambda x: 2 * (x - 0.5), 0.5),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_is_flat_agrees(name: str) -> None:
    f, df, at = FLAT[name]
    found = verdict(f, df, {"x": at} if name != "a mode" else {"p": at}, "p" if name == "a mode" else "x")
    assert found.verdict == "AGREES", found


@pytest.mark.parametrize("name", ["a mode", "a minimum", "a cosine", "a saddle"])
@pytest.mark.parametrize("change", [lambda g: g + 1e-3, lambda g: 2 * g, lambda g: -g, lambda g: 0 * g])
def test_at_a_stationary_point_a_wrong_derivative_does_not_pass(name: str, change: Any) -> None:
    f, df, at = FLAT[name]
    leaf = "p" if name == "a mode" else "x"
    assert verdict(f, lambda x: change(np.asarray(df(x))), {leaf: at}, leaf).verdict not in PASSES


def by_halves(x: float, width: float) -> float:
    low, high = 0.0, 7.3
    while high - low > width:
        middle = (low + high) / 2
        low, high = (middle, high) if middle**3 <= x else (low, middle)
    return low


# f of a width of steps, and the slope that it seems to have
STAIRS: dict[str, tuple[Any, Any]] = {
    "floor": (lambda x, w: math.floor(x / w) * w, lambda x: 1.0),
    "round": (lambda x, w: math.sin(round(x, round(-math.log10(w)))), math.cos),
    "in part": (lambda x, w: x + round(x, round(-math.log10(w))), lambda x: 2.0),
    "small": (lambda x, w: 1e-6 * round(x, round(-math.log10(w))), lambda x: 1e-6),
    "text": (lambda x, w: float(f"%.{round(-math.log10(w))}f" % x) ** 2, lambda x: 2 * x),
    "a bisection": (by_halves, lambda x: x ** (-2 / 3) / 3),
}


@all_rows("name", STAIRS)
@all_rows("width", [1e-4, 1e-6, 1e-8, 1e-10, 1e-11, 1e-12])
def test_the_slope_of_stairs_is_not_passed(name: str, width: float) -> None:
    f, df = STAIRS[name]
    for at in (0.7312, 1.9173):
        assert verdict(lambda x: f(float(x), width), lambda x: df(float(x)), {"x": at}, "x").verdict not in PASSES, at
    if name == "small":  # its steps are rounding beside others
        return
    beside = verdict(
        lambda x: float(x[0]) ** 2 + f(float(x[1]), width),
        lambda x: np.array([2 * x[0], df(float(x[1]))]),
        {"x": np.array([0.7312, 1.3178])},
        "x",
    )
    assert beside.verdict not in PASSES, beside


@pytest.mark.parametrize("power", [20, 31, 38, 40])
def test_the_slope_of_binary_stairs_is_not_passed(power: int) -> None:
    for at in (0.7312, 1.7, 3.1):
        found = verdict(lambda x: math.floor(float(x) * 2**power) / 2**power, lambda x: 1.0, {"x": at}, "x")
        assert found.verdict not in PASSES, at


@pytest.mark.parametrize("jump", [1e-3, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("side", [np.less, np.greater_equal, np.not_equal])
def test_a_jump_at_the_point_is_not_passed(jump: float, side: Any) -> None:
    smooth = (
        (float, lambda x: 1.0),
        (lambda x: float(x) ** 2, lambda x: 2 * x),
        (math.sin, math.cos),
        (math.floor, lambda x: 0.0),
    )
    for f, df in smooth:
        jumps = lambda x, f=f: f(float(x)) + (jump if side(float(x), 0.7312) else 0.0)  # noqa: E731
        assert verdict(jumps, lambda x, df=df: df(float(x)), {"x": 0.7312}, "x").verdict not in PASSES, f


# f, its derivative, points: rounding moves the values of f in steps
ROUNDED: dict[str, tuple[Any, Any, Any]] = {
    "a difference": (lambda x: 1 - math.cos(x), math.sin, (0.1, 1e-3, 1e-4, 1e-5)),
    "beside 1": (lambda x: math.log(1 + x), lambda x: 1 / (1 + x), (1e-2, 1e-7, 1e-9)),
    "a shift": (lambda x: (x + 1e3) - 1e3, lambda x: 1.0, (0.7312, 3.1)),
    "float32": (lambda x: float(np.float32(x) ** 2), lambda x: 2 * x, (0.7312, 3.1)),
    "steep": (lambda x: math.exp(100 * math.sin(x)), lambda x: 100 * math.cos(x) * math.exp(100 * math.sin(x)), (0.7,)),
    "a sum": (
        lambda x: sum(math.sin(k * x) for k in range(2000)),
        lambda x: sum(k * math.cos(k * x) for k in range(2000)),
        (0.7312,),
    ),
    "by bisection": (lambda x: by_halves(x, 1e-15), lambda x: x ** (-2 / 3) / 3, (0.7312, 2.5)),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_steps_of_rounding_are_no_stairs(name: str) -> None:
    f, df, points = ROUNDED[name]
    for at in points:
        found = verdict(lambda x: f(float(x)), lambda x: df(float(x)), {"x": at}, "x")
        assert found.verdict == "AGREES", (at, found)


def test_a_slope_where_nothing_moves_is_not_passed() -> None:
    for slope in (1.0, 1e-3, -1.0):
        assert verdict(lambda x: 3.0 + 0 * x, lambda x, s=slope: s, (1.0,), "x").verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("large", [1e16, 1e20, 1e30])
@pytest.mark.parametrize("f", [np.sin, np.square, lambda x: 1e-3 * x])
def test_a_slope_of_0_is_not_passed_where_a_large_constant_hides_any_other(large: float, f: Any) -> None:
    hidden = verdict(lambda x: large + float(f(x)), lambda x: 0.0, {"x": 1.0}, "x")
    assert hidden.verdict == "INCONCLUSIVE", hidden


@pytest.mark.parametrize("phi", [0.31, 0.71, 1.3, 2.9])
def test_rounding_of_a_derivative_that_is_0_refutes_nothing(phi: float) -> None:
    def f(R: float, phi: float) -> Any:
        return np.array([R**2, R**3, 0.0]) if R > 0 else np.zeros(3)

    def jac(R: float, phi: float) -> Any:
        c, s = float(np.cos(phi)), float(np.sin(phi))
        return np.array([2 * R, 3 * R**2, 0.0]), np.array([0.0, 0.0, R * (c * (s * c) - s * (c * c))])

    assert verdict(f, jac, {"R": 0.83, "phi": phi}, "phi", "jac").verdict == "AGREES"
    potential = verdict(
        lambda R, phi: -1 / np.hypot(R, 0.3) if R else 0.0,
        lambda R, phi: (R / np.hypot(R, 0.3) ** 3, 2.7e-16 * phi),
        {"R": 0.83, "phi": phi},
        "phi",
    )
    assert potential.verdict == "AGREES"


@pytest.mark.parametrize("size", [1, 5, 100, 1000])
def test_a_gradient_of_nan_never_passes(size: int) -> None:
    x = np.linspace(0.5, 2.0, size)
    for place in {0, size // 2, size - 1}:

        def df(x: Any, place: int = place) -> Any:
            return np.where(np.arange(size) == place, np.nan, np.cos(x))

        assert verdict(lambda x: np.sum(np.sin(x)), df, (x,), "x").verdict not in PASSES


def forward(f: Any, step: float, central: bool = False) -> Any:
    def df(x: Any) -> Any:
        shifts = step * np.eye(len(x))
        if central:
            return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in shifts])
        return np.array([(f(x + d) - f(x)) / step for d in shifts])

    return df


@pytest.mark.parametrize("step", [1e-5, 1e-6, 1e-7, 1e-8])
@pytest.mark.parametrize("central", [False, True])
def test_a_derivative_by_differences_is_named_and_not_refuted(step: float, central: bool) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(x) * x)

    x = np.array([0.3, -1.2, 0.8])
    found = verdict(f, forward(f, step, central), (x,), "x")
    assert found.verdict in {"IMPRECISE", "AGREES"}, found
    assert verdict(f, lambda x: 1.001 * forward(f, step, central)(x), (x,), "x").verdict == "DISAGREES"
    exact = verdict(f, lambda x: np.exp(x) * (x + 1) * (1 + 1e-5), (x,), "x")
    assert exact.verdict == "DISAGREES" and "gradcli.check(..., rtol=1e-04) allows for it" in exact.message
    tolerant = check_callable(f, lambda x: np.exp(x) * (x + 1) * (1 + 1e-5), at=(x,), rtol=1e-4)
    assert tolerant.checks[0].verdict == "AGREES"
