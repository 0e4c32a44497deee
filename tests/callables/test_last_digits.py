"""What rounding hides: small terms behind large ones, formats with few digits, formulas that are noise to their values.

A claim that differences and formulas cannot confirm is not passed; one that rounding alone separates is not refuted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradcli import check_callable

PASSES = {"AGREES", "IMPRECISE", "PROVED", "CERTIFIED"}
X = np.array([1.0, 2.0, -3.0, 4.0])


def verdicts(f: Any, df: Any, at: Any, kind: str = "grad") -> dict[Any, Any]:
    return {check.leaf: check for check in check_callable(f, at=at, **{kind: df}).checks}


@pytest.mark.parametrize("factor", [-1.0, 0.0, 1.1, 2.0])
@pytest.mark.parametrize(("large", "small"), [(1e12, 1.0), (1e12, 1e-12), (1e15, 1e-12), (1.0, 1e-30), (1e8, 1e-10)])
def test_a_small_term_behind_a_large_one_is_never_passed_unseen(large: float, small: float, factor: float) -> None:
    def f(p: float, q: float) -> float:
        return large * math.sin(p) + small * math.exp(q) if p < 9 else 0.0

    def df(p: float, q: float) -> Any:
        return large * math.cos(p), factor * small * math.exp(q)

    found = verdicts(f, df, {"p": 0.7, "q": 0.3})
    assert found["p"].verdict == "AGREES" and found["q"].verdict not in PASSES, found


@pytest.mark.parametrize("dust", [1e-17, -3e-16])
@pytest.mark.parametrize("recorded", [True, False])
def test_dust_where_f_does_not_depend_on_an_argument(dust: float, recorded: bool) -> None:
    def f(p: Any, q: Any) -> Any:
        return np.sin(p) if recorded or p > 0 else p

    found = verdicts(f, lambda p, q: (np.cos(p), dust), {"p": 0.7, "q": 0.3})
    assert {check.verdict for check in found.values()} <= PASSES, found
    for wrong in (1e-3, 1e-9, 1e-13):
        assert verdicts(f, lambda p, q, k=wrong: (np.cos(p), k), {"p": 0.7, "q": 0.3})["q"].verdict not in PASSES


@pytest.mark.parametrize("place", [(5.0, -1.0), (0.7, 0.3), (0.1, -2.0)])
def test_a_branch_that_is_not_taken_has_the_slope_0(place: tuple[float, float]) -> None:
    def f(p: float, q: float) -> float:
        return max(p, q)

    found = verdicts(f, lambda p, q: (1.0, 0.0), {"p": place[0], "q": place[1]})
    assert {check.verdict for check in found.values()} <= PASSES, found


NOISY = {
    "of 1e-9": (lambda x: np.sin(x) + 1e-9 * np.sin(1e12 * x), np.cos),
    "of 1e-12": (lambda x: np.sin(x) + 1e-12 * np.sin(1e15 * x), np.cos),
    "relative": (lambda x: np.exp(x) * (1 + 1e-9 * np.sin(7e13 * x)), np.exp),
}


@pytest.mark.parametrize("name", NOISY)
def test_a_formula_that_is_noise_to_its_values_decides_nothing(name: str) -> None:
    f, df = NOISY[name]
    right = verdicts(f, df, {"x": 0.7})["x"]
    assert right.verdict == "INCONCLUSIVE" and "finite differences give" in right.message
    for factor in (-1.0, 0.0, 1.5):
        assert verdicts(f, lambda x, k=factor: k * df(x), {"x": 0.7})["x"].verdict not in PASSES


FEWER: dict[str, tuple[Any, Any, Any, str]] = {
    "a constant": (lambda x: 0.1 * x, lambda x: np.float32(0.1), 2.0, "grad"),
    "a cotangent": (lambda x: x**2, lambda x, ct: 2 * x * ct.astype("float32"), X, "vjp"),
    "what is returned": (lambda x: np.sum(x**2), lambda x: (2 * x).astype("float32"), X, "grad"),
    "inside": (lambda x: np.sum(x**2), lambda x: (2 * x).astype("float32").astype(float), X, "grad"),
    "by a text": (lambda x: x**2, lambda x: float(f"{2 * x:.8g}"), 1.5, "grad"),
}


@pytest.mark.parametrize("name", FEWER)
def test_fewer_digits_are_imprecise_even_where_they_suffice_at_the_point(name: str) -> None:
    f, df, at, kind = FEWER[name]
    (check,) = verdicts(f, df, {"x": at}, kind).values()
    assert check.verdict == "IMPRECISE", check
    (wrong,) = verdicts(f, lambda *args: 1.01 * df(*args), {"x": at}, kind).values()
    assert wrong.verdict == "DISAGREES", wrong


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("distance", [1e-6, 1e-7, 3e-8])
def test_an_end_of_the_domain_that_is_near_is_no_boundary_here(sign: float, distance: float) -> None:
    def f(x: float) -> float:
        if sign * (x - 0.7) > distance:
            raise ValueError("outside")
        return x**2

    assert verdicts(f, lambda x: 2 * x, {"x": 0.7})["x"].verdict in {"AGREES", "INCONCLUSIVE"}
    assert verdicts(f, lambda x: 3 * x, {"x": 0.7})["x"].verdict in {"DISAGREES", "INCONCLUSIVE"}
    assert verdicts(lambda x: math.sqrt(x), lambda x: 1.0, {"x": 0.0})["x"].verdict == "BOUNDARY"


@pytest.mark.parametrize("distance", [1e-8, 1e-9, 1e-12, -1e-10])
def test_a_kink_that_is_near_is_none_here(distance: float) -> None:
    kink = 0.7 + distance
    for f, df in (
        (lambda x: abs(x - kink), lambda x: math.copysign(1.0, x - kink)),
        (lambda x: max(x - kink, 0.0), lambda x: float(x > kink)),
    ):
        assert verdicts(f, df, {"x": 0.7})["x"].verdict in {"AGREES", "INCONCLUSIVE"}
        assert verdicts(f, lambda x, df=df: 0.5, {"x": 0.7})["x"].verdict not in PASSES
    assert verdicts(lambda x: abs(x - 0.7), lambda x: 1.0, {"x": 0.7})["x"].verdict == "KINK"
    assert verdicts(lambda x: abs(x - 0.1 - 0.2), lambda x: 1.0, {"x": 0.3})["x"].verdict in {"KINK", "INCONCLUSIVE"}


def test_a_formula_with_cancellation_is_no_difference() -> None:
    def f(x: float) -> float:
        return (math.exp(x) - 1) / x

    def df(x: float) -> float:
        return (x * math.exp(x) - math.exp(x) + 1) / x**2

    assert verdicts(f, df, {"x": 1e-3})["x"].verdict in PASSES
    for factor in (1 + 1e-4, 1 + 6e-5, 1.01, -1.0):
        assert verdicts(f, lambda x, k=factor: k * df(x), {"x": 1e-3})["x"].verdict not in PASSES
