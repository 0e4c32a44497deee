"""Ties: both sides of a point as series, slopes and limits without an error, and what is not known said to be so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.checks import Check, check_script
from gradcli.checks.derivatives.jets import Sides
from gradcli.checks.differences.step_sequences import Neighbourhood, sides_along
from gradcli.checks.evaluate import ball_numbers
from tests.support.rows import all_rows
from tests.support.series_lines import exact_lines

INF = math.inf


def seen(text: str, at: dict[str, Any], *wrt: str) -> Sides:
    with ball_numbers.precision(128):
        return exact_lines(text, at, *wrt).sides({0: 1})


def slopes(found: Sides) -> list[float | None]:
    return [None if one.slope is None else float(one.slope) for one in (found.left, found.right)]


TIES = [
    ("relu(x)", 0.0, "KINK", [0, 1]),
    ("abs(x - 2)", 2.0, "KINK", [-1, 1]),
    ("(x*x)**0.5", 0.0, "KINK", [-1, 1]),
    ("sqrt(x*x)", 0.0, "KINK", [-1, 1]),
    ("sqrt(1 - cos(x))", 0.0, "KINK", [-(0.5**0.5), 0.5**0.5]),
    ("acos(1 - x*x)", 0.0, "KINK", [-(2**0.5), 2**0.5]),
    ("exp(-abs(x))", 0.0, "KINK", [1, -1]),
    ("sign(x)*x", 0.0, "KINK", [-1, 1]),
    ("clamp(x, 0, 1)", 1.0, "KINK", [1, 0]),
    ("maximum(x**2, 2*x)", 2.0, "KINK", [2, 4]),
    ("x*abs(x)", 0.0, "smooth", [0, 0]),
    ("abs(x)**3", 0.0, "smooth", [0, 0]),
    ("(x*x)**0.75", 0.0, "smooth", [0, 0]),
    ("cbrt(x)**3", 0.0, "smooth", [1, 1]),
    ("where(x == 0, 1, sin(x)/x)", 0.0, "smooth", [0, 0]),
    ("where(x == 0, 0, (x*x)/x)", 0.0, "smooth", [1, 1]),
    ("where(x == 0, 1, (exp(x) - 1)/x)", 0.0, "smooth", [0.5, 0.5]),
    ("where(x < 1, x**2, 2*x - 1)", 1.0, "smooth", [2, 2]),
    ("relu(x) - relu(-x)", 0.0, "smooth", [1, 1]),
    ("sqrt(x)", 0.0, "BOUNDARY", [None, INF]),
    ("sqrt(x)**2", 0.0, "BOUNDARY", [None, 1]),
    ("sqrt(sqrt(x))", 0.0, "BOUNDARY", [None, INF]),
    ("sqrt(x) - sqrt(x)", 0.0, "BOUNDARY", [None, 0]),
    ("x**1.5", 0.0, "BOUNDARY", [None, 0]),
    ("x**(7/3)", 0.0, "BOUNDARY", [None, 0]),
    ("cbrt(x)", 0.0, "BOUNDARY", [INF, INF]),
    ("asin(x)", 1.0, "BOUNDARY", [INF, None]),
    ("acos(x)", -1.0, "BOUNDARY", [None, -INF]),
    ("acosh(x)", 1.0, "BOUNDARY", [None, INF]),
    ("where(x > 0, sqrt(x), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("floor(x)", 1.0, "DISCONTINUOUS", [0, 0]),
    ("round(x)", 2.5, "DISCONTINUOUS", [0, 0]),
    ("mod(x, 2)", 4.0, "DISCONTINUOUS", [1, 1]),
    ("where(x == 0, 5, x)", 0.0, "DISCONTINUOUS", [1, 1]),
    ("atan2(x, -1)", 0.0, "DISCONTINUOUS", [-1, -1]),
    ("where(x > 0, log(x), 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, exp(-1/x), 0)", 0.0, "smooth", [0, 0]),
    ("abs(x)**x", 0.0, "BOUNDARY", [-INF, -INF]),
]


@all_rows(("text", "x", "kind", "expected"), TIES)
def test_both_sides(text: str, x: float, kind: str, expected: list[float | None]) -> None:
    found = seen(text, {"x": x})
    assert found.kind == kind
    for value, right in zip(slopes(found), expected, strict=True):
        assert value == right or (value is not None and right is not None and abs(value - right) < 1e-15)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("max(x)", [1.0, 1.0, 0.0], [0, 1]),
        ("median(x)", [1.0, 1.0, 0.0], [1, 0]),
        ("sum(sort(x)*[1, 2, 3])", [1.0, 1.0, 0.0], [2, 3]),
        ("norm(x)", [0.0, 0.0], [-1, 1]),
        ("hypot(x[0], x[1])", [0.0, 0.0], [-1, 1]),
        ("std(x)", [1.0, 1.0, 1.0], [-(2**0.5) / 3, 2**0.5 / 3]),
    ],
)
def test_both_sides_of_arrays(text: str, at: list[float], expected: list[float]) -> None:
    found = seen(text, {"x": at})
    assert found.kind == "KINK"
    assert slopes(found) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("text", ["relu(x*x)", "abs(x**3)", "maximum(x**2, 0)", "minimum(x*y, clip(x, -1, 1)*y)"])
def test_what_meets_to_first_order_is_smooth(text: str) -> None:
    found = seen(text, {"x": 0.0, "y": 2.0})
    assert found.kind == "smooth"
    assert float(found.slope) == (2 if "clip" in text else 0)


def test_a_jump_and_its_limits() -> None:
    found = seen("where(x < 1, x**2, 3*x)", {"x": 1.0})
    assert [float(x) for x in (found.left.limit, found.value, found.right.limit)] == [1, 3, 3]


# --- what a check says of it -------------------------------------------------------------------------------------


def only(text: str, at: dict[str, Any], **options: Any) -> Check:
    return check_script(text, at=at, wrt=["x"], **options).checks[0]


@pytest.mark.parametrize(
    ("text", "x", "where"),
    [
        ("abs(x - 2)", 2.0, "x - 2 = 0"),
        ("3*relu(2*x + 1)", -0.5, "2*x + 1 = 0"),
        ("maximum(x, 2)", 2.0, "x = 2"),
        ("where(x**2 < 4, 0, x - 2)", 2.0, "x**2 = 4"),
        ("clamp(x, 0, 1)", 1.0, "x = 1"),
    ],
)
def test_the_surface_is_told_in_the_programs_own_terms(text: str, x: float, where: str) -> None:
    found = only(text, {"x": x})
    assert found.verdict == "KINK"
    assert found.evidence["where"] == where
    assert where in found.message
    assert found.evidence["basis"] == "series"


def test_slopes_are_exact_and_the_value_lies_between() -> None:
    found = only("maximum(x, x/3)", {"x": 0.0})
    assert found.evidence["left"] == [1 / 3]
    assert found.evidence["right"] == [1.0]
    assert found.evidence["inside"] is True
    assert only("maximum(x, x/3)", {"x": 0.0}, allow_kink=True).passed


def test_kinks_that_cancel() -> None:
    found = only("relu(x) - relu(-x)", {"x": 0.0}, allow_kink=True)
    assert found.verdict == "KINK"
    assert not found.passed
    assert "the true slope is 1, the value 0" in found.message


def test_a_smooth_point_at_a_tie_is_certified() -> None:
    for text in ("x*abs(x)", "where(x == 0, 1, sin(x)/x)", "sinc(x)", "abs(x)**3"):
        assert only(text, {"x": 0.0}).verdict in ("CERTIFIED", "PROVED"), text


def test_a_wrong_claim_at_a_smooth_tie_is_refuted() -> None:
    found = check_script("x*abs(x) + x", at={"x": 0.0}, claims={"x": "2*abs(x) + 2"}).checks
    assert [one.verdict for one in found] == ["PROVED", "DISAGREES"]


BOTH_SIDES = [  # a claim, or an equality, at a smooth tie, and whether it is right on both sides of it
    ("x = 1; f = where(x >= 1, x**2, 2*x - 1); assert grad(f, x) == {}; f", "where(x >= 1, 2*x, 2)", "2*x"),
    ("x = 0; f = x*abs(x); assert grad(f, x) == {}; f", "2*abs(x)", "2*x"),
    ("x = 0; f = x**2*abs(x); assert hessian(f, x) == {}; f", "6*abs(x)", "6*x"),
    ("x = 0; f = relu(x)**3; assert grad(grad(f, x), x) == {}; f", "6*relu(x)", "6*x"),
    ("x = [0, 1]; f = sum(x*abs(x)); assert grad(f, x) == {}; f", "2*abs(x)", "2*x"),
]


@pytest.mark.parametrize(("script", "right", "wrong"), BOTH_SIDES)
def test_a_claim_at_a_smooth_tie_is_compared_on_both_sides(script: str, right: str, wrong: str) -> None:
    for claim, verdict in ((right, ("PROVED", "CERTIFIED")), (wrong, ("DISAGREES",))):
        found = next(one for one in check_script(script.format(claim)).checks if one.kind == "claim")
        assert found.verdict in verdict, (claim, found.message)


def test_partials_that_exist_where_there_is_no_derivative() -> None:
    found = check_script("minimum(abs(x), abs(y))", at={"x": 0.0, "y": 0.0}).checks
    assert {one.verdict for one in found} == {"KINK"}
    assert "the partial derivatives exist" in found[0].message


def test_a_gradient_without_a_value_where_the_derivative_has_one() -> None:
    found = only("cbrt(x)**3", {"x": 0.0})
    assert found.verdict == "UNDEFINED"
    assert "though the derivative is 1" in found.message


def test_where_nothing_tells_nothing_is_said() -> None:
    for text in ("where(x > 0, sin(1/x)**2 + cos(1/x), 0)", "where(x > 0, x*abs(sin(1/x)), 0)"):
        found = only(text, {"x": 0.0})
        assert found.verdict == "INCONCLUSIVE", (text, found.message)
        assert "the expansions do not determine" in found.message or "not known" in found.message


SWINGING = ["sin(1/x)", "x*sin(1/x)", "cos(log(x))", "x*cos(log(x)) + x**2", "3*x*sin(1/x)*exp(x)", "sqrt(x)*sin(1/x)",
            "x*exp(sin(1/x))", "x/(2 + sin(1/x))", "1/x - floor(1/x)"]  # fmt: skip


@pytest.mark.parametrize("text", SWINGING)
def test_what_swings_has_no_limit(text: str) -> None:
    found = only(f"where(x > 0, {text}, 0)", {"x": 0.0})
    assert found.verdict == "BOUNDARY" and "has no limit" in found.message, found.message


SQUEEZED = [  # |f| is at most a multiple of |x|**k, whatever its branches are
    "x**3*abs(sin(1/x))", "x**3*where(sin(1/x) > 0, 1, -1)", "x**2*sin(1/x)", "x**2*relu(cos(1/x))",
    "x**2*maximum(sin(1/x), cos(1/x))", "x**2*sign(sin(1/x))", "abs(x)**1.5*where(cos(log(abs(x))) > 0, 2, 3)",
    "x*where(sin(1/x) > 0, sin(x), 2*x)", "x**2*clamp(sin(1/x), -0.5, 0.25)", "abs(x**2*sin(1/x))",
    "x**2*exp(sin(1/x))", "x**2/(2 + sin(1/x))", "x**2*log(3 + cos(1/x))", "x**2*(3 + sin(1/x))**-0.5",
    "x**2*asin(sin(1/x)/2)", "x**2*hypot(sin(1/x), 1)", "x**3*floor(1/x)", "x**2*(1/x - floor(1/x))",
    "x**2*round(3*sin(1/x))", "x**2*cos(exp(1/x**2))", "x**2*sin(1/x + sin(1/x))",
    "x**2*where(sin(1/x) > 2, 1/x**5, 1)",
]  # fmt: skip


def claimed(text: str, slope: str) -> str:
    """The verdict on a claimed slope at 0, where the value is 0."""
    script = f"where(x == 0, 0, {text})"
    return check_script(script, at={"x": 0.0}, claims={"x": slope}).checks[-1].verdict


@pytest.mark.parametrize("text", SQUEEZED)
def test_a_function_between_powers_has_the_slope_0(text: str) -> None:
    assert (claimed(text, "0"), claimed(text, "1")) == ("CERTIFIED", "DISAGREES")


UNKNOWN = [  # what may have another slope, or no value: signs that are open, and what cancels
    "x**2/sin(1/x)", "x**2/(1 + sin(1/x))", "x**2*tan(1/x)", "x*sign(sin(1/x))", "x*sin(pi*floor(1/x))",
    "x*exp(sin(1/x))*exp(-sin(1/x))", "x*cos(2*pi*round(1/x))", "x*(ceil(1/x) + floor(-1/x))",
]  # fmt: skip


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_a_range_does_not_decide_is_left_open(text: str) -> None:
    assert {claimed(text, "0"), claimed(text, "2")} == {"INCONCLUSIVE"}


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc"])
def test_the_integer_part_of_what_grows_is_not_far_from_it(name: str) -> None:
    assert (claimed(f"x**2*{name}(1/x)", "1"), claimed(f"x**2*{name}(1/x)", "0")) == ("CERTIFIED", "DISAGREES")


def test_a_kink_that_only_float64_sees() -> None:
    found = only("abs(x - 0.1)", {"x": 0.1})
    assert found.verdict == "IMPRECISE"
    assert found.evidence["float_kink"] == "x - 0.1 = 0"
    assert found.evidence["float_kink_distance"] == 5.551115123125783e-18
    assert "5.55e-18 above it" in found.message


@all_rows("x", [0.9, 0.999, 0.9999, 0.99999, 1.00001, 1.0001, 1.001, 1.01])
@all_rows("name", ["relu", "abs", "step", "clip"])
def test_differences_see_a_kink_beside_the_point_as_what_it_is(name: str, x: float) -> None:
    """Coarse steps beyond the kink agree exactly; finer ones that disagree count."""
    functions: dict[str, Callable[[Any], Any]] = {
        "relu": lambda p: np.maximum(p[:, 0] - 1, 0) + p[:, 0],
        "abs": lambda p: 3 * np.abs(p[:, 0] - 1),
        "step": lambda p: np.where(p[:, 0] > 1, 2.0, 0.0) + p[:, 0],
        "clip": lambda p: np.clip(p[:, 0], 0, 1),
    }
    at_it = "DISCONTINUOUS" if name == "step" else "KINK"
    for place, verdict in ((x, "smooth"), (1.0, at_it)):
        ((seen,),) = Neighbourhood(functions[name], [place]).differences([np.ones(1)])
        assert sides_along([seen]).verdict == verdict
