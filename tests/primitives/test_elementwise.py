"""Points where an elementwise function is easily wrong: hidden limits, tails, kinks; and how derivatives grow."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli.calculator import evaluate, grad, hessian
from gradcli.graph.node import Builder, reachable
from gradcli.primitives import catalogue
from gradcli.primitives.powers import pow_
from gradcli.transforms.derivatives import nth


def slopes(script: str, **at: float) -> dict[str, Any]:
    return dict(grad(script, at=at).gradient)


def derivatives(script: str, x: float, order: int) -> Any:
    found = grad(script, at={"x": x}, order=order).derivatives
    assert found is not None
    return found["x"]


KINKS = [  # beside those that declarations name
    ("leaky_relu(x, 0.3)", 0.0, 0.3),
    ("clamp(x, high=1)", 1.0, 1.0),
    ("maximum(x, x)", 2.0, 1.0),
    ("minimum(x, x)", 2.0, 1.0),
    ("mod(x, 2)", 4.0, 1.0),
]


@pytest.mark.parametrize(("script", "x", "slope"), KINKS)
def test_slope_at_a_kink(script: str, x: float, slope: float) -> None:
    assert slopes(script, x=x)["x"] == slope


def test_nan_between_bounds() -> None:
    assert slopes("clamp(x, -1, 1)", x=math.nan)["x"] == 0
    assert slopes("relu(x)", x=math.nan)["x"] == 1


STEADY = [
    ("sigmoid(x)", -800.0, 0.0, 0.0),
    ("sigmoid(x)", 800.0, 1.0, 0.0),
    ("sigmoid(x)", 40.0, 1.0, math.exp(-40)),
    ("softplus(x)", -800.0, 0.0, 0.0),
    ("softplus(x)", 800.0, 800.0, 1.0),
    ("softplus(x)", -40.0, math.exp(-40), math.exp(-40)),
    ("logsigmoid(x)", -800.0, -800.0, 1.0),
    ("logsigmoid(x)", 800.0, 0.0, 0.0),
    ("logaddexp(x, 0)", 800.0, 800.0, 1.0),
    ("logaddexp(x, 0)", -800.0, 0.0, 0.0),
    ("expm1(x)", -50.0, -1.0, math.exp(-50)),
    ("expm1(x)", 1e-20, 1e-20, 1.0),
    ("log1p(x)", 1e-20, 1e-20, 1.0),
    ("acosh(x)", 1e200, 461.2101657793691, 1e-200),
    ("elu(x)", 800.0, 800.0, 1.0),
    ("gelu(x)", -10.0, -7.619853024160527e-23, -7.618400096464814e-22),
    ("silu(x)", -40.0, -40 * math.exp(-40), -39 * math.exp(-40)),
]


@pytest.mark.parametrize(("script", "x", "value", "slope"), STEADY)
def test_steady_in_the_tails(script: str, x: float, value: float, slope: float) -> None:
    found = grad(script, at={"x": x})
    assert found.value == pytest.approx(value, rel=1e-13, abs=1e-300)
    assert found.gradient["x"] == pytest.approx(slope, rel=1e-13, abs=1e-300)


def test_sinc_at_zero_and_at_whole_numbers() -> None:
    assert derivatives("sinc(x)", 0.0, 4) == pytest.approx((0, -(math.pi**2) / 3, 0, math.pi**4 / 5), rel=1e-15)
    assert evaluate("sinc([-3, 1, 800])").value.tolist() == [0, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize("x", [1e-8, 0.3, 0.63, 0.64, 0.97, -2.4, 50.25])
def test_sinc_derivatives(x: float) -> None:
    with mpmath.workdps(50):
        exact = [float(mpmath.diff(mpmath.sincpi, mpmath.mpf(x), n)) for n in range(1, 6)]
    assert derivatives("sinc(x)", x, 5) == pytest.approx(exact, rel=2e-14)


@pytest.mark.parametrize("x", [-0.5, -3.3, -7.25, 0.01, 2.5, 60.0])
def test_polygamma_on_both_sides(x: float) -> None:
    with mpmath.workdps(40):
        exact = [float(mpmath.polygamma(n, mpmath.mpf(x))) for n in range(5)]
    found = [evaluate(f"polygamma({n}, x)", at={"x": x}).value for n in range(5)]
    assert found == pytest.approx(exact, rel=1e-13)
    assert derivatives("lgamma(x)", x, 5) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize(("x", "y", "in_x", "in_y"), [(2.0, 0.0, 0.0, math.log(2)), (-2.0, 3.0, 12.0, math.nan)])
def test_slopes_of_a_power(x: float, y: float, in_x: float, in_y: float) -> None:
    found = slopes("x**y", x=x, y=y)
    assert [found["x"], found["y"]] == pytest.approx([in_x, in_y], nan_ok=True)


def test_mixed_derivative_of_a_power_whose_exponent_is_zero() -> None:
    found = hessian("x**y", at={"x": 2.0, "y": 0.0}).hessian
    assert found["x"]["y"] == found["y"]["x"] == 0.5


def test_second_derivative_of_a_power_at_zero() -> None:
    assert hessian("x**y", at={"x": 0.0, "y": 2.0}).hessian["x"]["x"] == 2
    assert derivatives("x**0", 0.0, 2) == (0, 0)


def test_constant_exponent_gives_the_plain_formula() -> None:
    builder = Builder(catalogue())
    x = builder.leaf("x")
    node = nth(pow_(x, 2.5), x, 2)[-1]
    assert {inner.primitive.name for inner in reachable([node])} == {"leaf", "constant", "pow", "mul"}


def test_entropy_at_zero() -> None:
    assert slopes("xlogy(x, y)", x=0.0, y=2.0) == {"x": math.log(2), "y": 0}
    assert slopes("xlogy(x, y)", x=0.0, y=0.0) == {"x": 0, "y": 0}
    assert hessian("xlogy(x, y)", at={"x": 0.0, "y": 2.0}).hessian["y"]["x"] == 0.5


def test_lengths_and_angles() -> None:
    assert slopes("hypot(x, y)", x=3e200, y=4e200) == pytest.approx({"x": 0.6, "y": 0.8})
    assert slopes("atan2(y, x)", x=3e200, y=4e200) == pytest.approx({"x": -1.6e-201, "y": 1.2e-201}, rel=1e-14)
    flat = hessian("hypot(x, y)", at={"x": 1.0, "y": 1e-9}).hessian
    assert flat["x"]["x"] == pytest.approx(1e-18, rel=1e-14, abs=0)


ENDS = {"erfcx": (0, math.inf), "k0": (0, math.nan), "i0e": (0, 0), "dawsn": (0, 0), "expi": (math.inf, 0)}


@pytest.mark.parametrize("name", ENDS)
def test_special_functions_at_infinities(name: str) -> None:
    function = gradcli.compile(f"{name}(x)")
    np.testing.assert_array_equal([function(x=x) for x in (math.inf, -math.inf)], ENDS[name])
