"""A wrong Jacobian is reported by its entry: never by a combination of its rows, which its author did not write."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gradcli import check_callable
from gradcli.checks import check_script

AT = np.array([2.0, 3.0])
SHAPES = {"recorded": lambda x: True, "by values": lambda x: float(np.sum(x)) < 1e9}


def f(x: Any) -> Any:
    return np.array([x[0] ** 2 * x[1], 5 * x[0] + np.sin(x[1])])


def right(x: Any) -> Any:
    return np.array([[2 * x[0] * x[1], x[0] ** 2], [5 + 0 * x[0], np.cos(x[1])]])


def changed(row: int, column: int, factor: float) -> Any:
    return lambda x: right(x) * np.where(np.arange(4).reshape(2, 2) == 2 * row + column, factor, 1.0)


WRONG: dict[str, tuple[Any, str, str]] = {
    "a sign": (changed(1, 1, -1.0), r"J\[1, 1\]", "-0.98999"),
    "a factor": (changed(0, 1, 2.0), r"J\[0, 1\]", "4"),
    "a zero": (changed(1, 0, 0.0), r"J\[1, 0\]", "5"),
    "an error of one in a million": (changed(0, 0, 1 + 1e-6), r"J\[0, 0\]", "12"),
    "transposed": (lambda x: right(x).T, r"J\[(0, 1|1, 0)\]", ""),
    "another sign": (lambda x: -right(x), r"J\[\d, \d\]", ""),
}
NAMED = {"transposed": "the claim's transpose", "another sign": "the right Jacobian is minus the claim"}


@pytest.mark.parametrize("way", SHAPES)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry_is_named(name: str, way: str) -> None:
    jac, entry, exact = WRONG[name]
    (check,) = check_callable(lambda x: f(x) if SHAPES[way](x) else x, jac=jac, at=(AT,), names=["x"]).checks
    assert check.verdict == "DISAGREES", check
    assert "graph" in check.evidence or way == "by values"
    assert re.search(entry, check.message) and exact in check.message, check.message
    assert NAMED.get(name, "") in check.message
    assert "ct" not in check.evidence["at"] and not re.search(r"\bct\b", str(check.evidence.get("diagnosis")))


@pytest.mark.parametrize("way", SHAPES)
def test_what_is_right_passes(way: str) -> None:
    (check,) = check_callable(lambda x: f(x) if SHAPES[way](x) else x, jac=right, at=(AT,), names=["x"]).checks
    assert check.verdict == ("PROVED" if way == "recorded" else "AGREES"), check


def test_entries_of_several_arguments_and_of_arrays_of_arrays() -> None:
    def g(x: Any, y: Any) -> Any:
        return np.array([[x * y[0], y[1] ** 2], [x**3, y[0] * y[1]]])

    def jac(x: Any, y: Any) -> Any:
        zero = 0 * x
        by_y = [[[x, zero], [zero, y[1]]], [[zero, zero], [y[1], y[0]]]]  # y[1]**2 has the slope 2*y[1]
        return np.array([[y[0], zero], [3 * x**2, zero]]), np.array(by_y)

    first, second = check_callable(g, jac=jac, at=(1.5, AT)).checks
    assert first.verdict == "PROVED"
    assert second.verdict == "DISAGREES" and second.message.startswith("J[0, 1, 1] is 6, not 3")


def test_the_correction_of_a_long_row_is_that_of_its_wrong_entry() -> None:
    """As in the derivative of a Drude profile, whose second entry is wrong."""
    at = np.array([0.5, 1.5, 3.0])

    def drude(p: Any) -> Any:
        a, x0, w = p
        return a * (w / x0) ** 2 / ((at / x0 - x0 / at) ** 2 + (w / x0) ** 2)

    def jac(p: Any) -> Any:
        a, x0, w = p
        d = (w / x0) ** 2 / ((at / x0 - x0 / at) ** 2 + (w / x0) ** 2)
        inner = (-at / x0 - 1 / at) * (at / x0 - x0 / at) - 2 * w**2 / x0**3
        return np.array([d, -2 * a * d * (1 / x0 + d * x0**2 / w**2 * inner), 2 * a * d / w * (1 - d)]).T

    (check,) = check_callable(drude, jac=jac, at=(np.array([1.3, 2.2, 0.7]),)).checks
    (reading, *_) = check.evidence["diagnosis"]  # type: ignore[misc]
    assert check.verdict == "DISAGREES" and "except in [1]" in reading["text"]
    assert reading["correction"].startswith("[1]: ") and len(reading["correction"]) < 200


def test_a_mistake_of_little_effect_is_no_rounded_constant() -> None:
    """At 30 the part that lacks a factor is a ten-millionth of the whole."""

    def current(v: Any) -> Any:
        return 7 - 1e-9 * (np.exp(v / 1.5) - 1) - v / 400 * (1 + 1e-3 * (1 + v / 5.5) ** -3.28)

    def slope(v: Any) -> Any:
        inner = (1 + v / 5.5) ** -3.28 - 3.28 * v * (1 + v / 5.5) ** -4.28  # the factor 1/5.5 is missing
        return -1e-9 / 1.5 * np.exp(v / 1.5) - 1 / 400 - 1e-3 / 400 * inner

    for at in (30.0, -3.0):
        (check,) = check_callable(current, slope, at=(at,)).checks
        assert check.verdict == "DISAGREES" and "rounded constant" not in check.message, check.message
    (check,) = check_callable(lambda x: np.sin(np.pi * x), lambda x: 3.14159265 * np.cos(np.pi * x), at=(0.3,)).checks
    assert check.verdict == "DISAGREES" and "rounded constant" in check.message, check.message


SCRIPT = "[x[0]**2*x[1], 5*x[0] + sin(x[1])]"


@pytest.mark.parametrize(
    ("claim", "verdict", "told"),
    [
        ("[[2*x[0]*x[1], x[0]**2], [5, cos(x[1])]]", "PROVED", ""),
        ("[[2*x[0]*x[1], x[0]**2], [5, -cos(x[1])]]", "DISAGREES", "J[1, 1] is -0.98999"),
        ("[[2*x[0]*x[1], 5], [x[0]**2, cos(x[1])]]", "DISAGREES", "the claim's transpose"),
        ("0", "DISAGREES", "the claim is zero"),
    ],
)
def test_a_claim_about_an_array_is_its_jacobian(claim: str, verdict: str, told: str) -> None:
    report = check_script(SCRIPT, at={"x": AT}, claims={"x": claim})
    (check,) = (one for one in report.checks if one.kind == "claim")
    assert (check.verdict, check.leaf) == (verdict, "x") and told in check.message, check


def test_a_claim_about_an_array_has_the_shape_of_its_jacobian() -> None:
    from gradcli import GradcliError

    with pytest.raises(
        GradcliError, match=r"the Jacobian with respect to `x` is f64\[2,2\], but the claim is f64\[2\]"
    ):
        check_script(SCRIPT, at={"x": AT}, claims={"x": "[1, 2]"})
    with pytest.raises(GradcliError, match="a claim is about one output"):
        check_script("x**2, x**3", at={"x": 2.0}, claims={"x": "2*x"})
    check = check_script("sin(t)*[1, 2]", at={"t": 1.0}, claims={"t": "cos(t)*[1, 2]"}).checks[-1]
    assert check.verdict == "PROVED"
