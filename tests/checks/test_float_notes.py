"""What is said of floats: numbers below the smallest double, kinks in float64 only, rewrites, and NaN of a right rule."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.checks import Check, check_script


def claimed(text: str, at: dict[str, Any], claim: str) -> Check:
    return check_script(text, at=at, claims={next(iter(at)): claim}).checks[-1]


UNDERFLOW: list[tuple[str, dict[str, Any], str, str]] = [
    ("exp(-x**2)", {"x": 30.0}, "0", "AGREES"),
    ("exp(-exp(x))", {"x": 10.0}, "x - x", "AGREES"),
    ("sum(exp(-x**2))", {"x": [30.0, 40.0]}, "[0, 0]", "AGREES"),
    ("x*1e-400", {"x": 1.0}, "0", "AGREES"),
    ("x*1e-400", {"x": 1.0}, "-1e-400", "AGREES"),  # a bare number, which is 0 in float64
    ("x*1e-400", {"x": 1.0}, "1e-400", "PROVED"),
    ("exp(-x**2)", {"x": 30.0}, "2*x*exp(-x**2)", "DISAGREES"),  # another formula, however small
    ("exp(-x**2)", {"x": 30.0}, "1e-300", "DISAGREES"),
    ("exp(-x**2)", {"x": 3.0}, "0", "DISAGREES"),
    ("0*exp(-x**2)", {"x": 30.0}, "0", "PROVED"),
]


@pytest.mark.parametrize(("text", "at", "claim", "verdict"), UNDERFLOW)
def test_below_the_smallest_double(text: str, at: dict[str, Any], claim: str, verdict: str) -> None:
    check = claimed(text, at, claim)
    assert check.verdict == verdict, check.message
    assert ("to 0 in float64" in check.message) is (verdict == "AGREES")


FLOAT_KINKS: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("sum(maximum(x, [0, 1]))", {"x": [0.0, 5.0]}, "[2, 2]", None),
    ("sum(abs(x)*[0, 1])", {"x": [0.0, 3.0]}, "[0, 2]", None),
    ("sum(abs(x - x[0])*[0, 1])", {"x": [1.0, 4.0]}, "[-1, 2]", None),
    ("sum(abs(x - 0.1)*[1, 2])", {"x": [0.1, 5.0]}, "[1, 3]", None),  # the refuted entry is not near it
    ("sum(abs(x - 0.1)*[1, 2])", {"x": [0.1, 5.0]}, "[3, 2]", "5.55e-18 above"),
    ("abs(x - 0.1)*x", {"x": 0.1}, "7", "5.55e-18 above"),
    ("relu(0.3 - x)", {"x": 0.3}, "2", "1.11e-17 above"),
    ("relu(x - 3)", {"x": 7.0}, "2", None),
]


@pytest.mark.parametrize(("text", "at", "claim", "words"), FLOAT_KINKS)
def test_a_kink_in_floats_only_is_that_of_the_refuted_entry(
    text: str, at: dict[str, Any], claim: str, words: str | None
) -> None:
    check = claimed(text, at, claim)
    assert check.verdict == "DISAGREES"
    assert ("in exact arithmetic" in check.message) is (words is not None), check.message
    assert (words or "") in check.message


ADVICE: list[tuple[str, float, str | None]] = [
    ("-log(1/(1 + exp(-x)))", -800.0, "-softplus(-x)"),
    ("log(1/(1 + exp(x)))", 800.0, "-softplus(x)"),
    ("(1 - cos(x))/x**2", 1e-8, None),  # 2*sin(x/2)**2/x**2 has no right digit either
    ("1 - cos(x)", 1e-8, None),  # the derivative is sin(x): nothing is lost
    ("(exp(x) - 1)**2", 1e-12, "expm1"),
    ("log(1 + x)", 1e-20, None),
]


@pytest.mark.parametrize(("text", "x", "rewrite"), ADVICE)
def test_a_rewrite_is_offered_if_it_has_digits(text: str, x: float, rewrite: str | None) -> None:
    check = check_script(text, at={"x": x}).checks[0]
    advice = check.message.partition("better: ")[2]
    assert (rewrite or "") in advice if rewrite else not advice, check.message


CHAOS = "y = x\nfor i in range({iterations}):\n    y = sin(3.9*y*(1 - y))*1.3\n"


@pytest.mark.parametrize("iterations", [8, 40])
def test_a_slope_that_is_zero_by_one_factor_is_known_in_any_iteration(iterations: int) -> None:
    """The first iteration has the slope 0 at 0.5, which balls lose in the iterations after it."""
    script = CHAOS.format(iterations=iterations)
    wrong = check_script(f"{script}assert grad(y, x) == 7\ny", at={"x": 0.5}).checks[-1]
    assert wrong.verdict == "DISAGREES" and wrong.message.startswith("the exact derivative is 0, not 7")


def test_a_proved_rule_whose_float_is_not_finite_is_imprecise() -> None:
    steep = "y = x\nfor i in range(1000):\n    y = sin(1000*y)\ny"
    check = check_script(steep, at={"x": 0.5}).checks[0]
    assert check.verdict == "IMPRECISE" and "is not finite; exact: not known" in check.message
