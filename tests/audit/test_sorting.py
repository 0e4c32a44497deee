"""Each class of gradients that are no derivatives on purpose, by functions that are in it, and functions that only look so."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from gradcli.audit import judging

B = np.array([[1.0, 2.0, -1.0], [0.5, 3.0, 0.7], [0.2, -0.4, 2.0]])
S = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])
C = np.array([0.7, -1.3, 2.1])
X = np.array([0.6, 1.1, -0.8])


def smooth(x):
    return np.sum(np.sin(x)) + np.prod(x)


def slope(x):
    return np.cos(x) + np.prod(x) / x


def rough(x):
    """The slope by forward differences: off by about 1e-6."""
    return approx_fprime(x, smooth, 1e-6)


class Differenced:
    """A function whose derivative is computed two methods further on."""

    def value(self, x):
        return np.sum(np.cosh(x - C)) + 0.3 * np.prod(x - C)

    def gradient(self, x):
        return self.updated(x)

    def updated(self, x):
        return approx_fprime(x, self.value, 1e-6)

    def shifted(self, x):
        return self.updated(x) + 1e-4


def simpson_adjoint(x):
    return slope(x) * (1 + 3e-6)


def exact_adjoint(x):
    return simpson_adjoint(x)


def noisy(x):
    return slope(x) * (1 + 0.1 * np.random.standard_normal())


def biased(x):
    return slope(x) * (1.5 + 0.1 * np.random.standard_normal())


def counting():
    calls = itertools.count()
    return lambda x: smooth(x) + next(calls)


CASES: dict[str, tuple[Any, Any, Any, str]] = {
    "right": (smooth, {"jac": slope}, X, "PROVED"),
    "wrong": (smooth, {"jac": lambda x: 2 * slope(x)}, X, "DISAGREES"),
    "straight through": (np.round, {"vjp": lambda x, ct: ct}, X, "SURROGATE"),
    "step": (lambda x: (x > 0) * 1.0, {"vjp": lambda x, ct: ct * (1 - np.tanh(x) ** 2)}, X, "SURROGATE"),
    "reversal": (np.copy, {"vjp": lambda x, ct: -ct}, X, "SURROGATE"),
    "reversal beside a number": (
        lambda x: np.append(x, 0.7),
        {"vjp": lambda x, ct: -2 * ct[:-1]},
        X,
        "SURROGATE",
    ),
    "reversal beside a sum": (
        lambda x: np.append(x, np.sum(x)),
        {"vjp": lambda x, ct: -2 * ct[:-1]},
        X,
        "DISAGREES",
    ),
    "identity at this point only": (lambda x: x**2, {"vjp": lambda x, ct: ct}, np.ones(3), "DISAGREES"),
    "flat, with a gradient of 0": (np.round, {"vjp": lambda x, ct: 0 * ct}, X, "PROVED"),
    "symmetric": (lambda a: np.sum(B * a), {"jac": lambda a: (B + B.T) / 2}, S, "SYMMETRIC"),
    "transposed, of no symmetric matrix": (lambda a: np.sum(B * a), {"jac": lambda a: B.T}, B, "DISAGREES"),
    "wrong for symmetric matrices too": (lambda a: np.sum(B * a), {"jac": lambda a: 2 * B.T}, S, "DISAGREES"),
    "diagonal": (lambda a: np.sum(B * a), {"jac": lambda a: B.T}, np.eye(3), "DISAGREES"),
    "sphere": (lambda x: C @ x, {"jac": lambda x: C - x * (C @ x)}, X / np.linalg.norm(X), "ON THE SPHERE"),
    "beside the sphere": (lambda x: C @ x, {"jac": lambda x: C - x * (C @ x)}, X, "DISAGREES"),
    "simplex": (lambda x: C @ x, {"jac": lambda x: C - C.mean()}, np.array([0.2, 0.5, 0.3]), "ON THE SIMPLEX"),
    "beside the simplex": (lambda x: C @ x, {"jac": lambda x: C - C.mean()}, np.array([0.2, 0.5, 0.4]), "DISAGREES"),
    "differences": (smooth, {"jac": rough}, X, "APPROXIMATE"),
    "differences beside a minimum": (
        Differenced().value,
        {"jac": Differenced().gradient},
        C + np.array([1e-6, 1e-7, -1e-7]),
        "APPROXIMATE",
    ),
    "differences at a minimum": (
        lambda x: float(np.sum((1e5 * x - 3) ** 2)),
        {"jac": lambda x: approx_fprime(x, lambda x: float(np.sum((1e5 * x - 3) ** 2)), 1e-8)},
        np.full(2, 3e-5),
        "APPROXIMATE",
    ),
    "differences beside a minimum, and more": (
        Differenced().value,
        {"jac": Differenced().shifted},
        C + np.array([1e-6, 1e-7, -1e-7]),
        "DISAGREES",
    ),
    "an adjoint": (smooth, {"jac": exact_adjoint}, X, "APPROXIMATE"),
    "less than differences see": (smooth, {"jac": lambda x: slope(x) * (1 + 3e-9)}, X, "APPROXIMATE"),
    "a small error without either": (smooth, {"jac": lambda x: slope(x) * (1 + 3e-6)}, X, "DISAGREES"),
    "a large error of an adjoint": (smooth, {"jac": lambda x: 1.1 * exact_adjoint(x)}, X, "DISAGREES"),
    "estimate": (smooth, {"jac": noisy}, X, "STOCHASTIC"),
    "estimate that is off": (smooth, {"jac": biased}, X, "DISAGREES"),
    "no number": (smooth, {"jac": lambda x: np.where(x == x[0], np.nan, slope(x))}, X, "DISAGREES"),
    "state": (counting(), {"jac": slope}, X, "STATE CHANGED"),
    "kink": (lambda x: np.sum(np.abs(x)), {"jac": np.sign}, np.array([0.0, 1.0, 2.0]), "KINK"),
    "undefined": (lambda x: float(np.sum(np.log(x))), {"jac": lambda x: 1 / x}, -np.ones(3), "UNDEFINED"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_classes(name: str) -> None:
    f, derivative, point, word = CASES[name]
    found = judging.answer(lambda: (f, derivative, (point,)), {"timeout": 10.0})
    row = found["checks"][0]
    assert row["verdict"] == word, row["message"]


def test_random_numbers_are_those_of_the_call() -> None:
    """A function that draws, and the slope for the same draws, agree."""

    def dropped(x):
        return np.sum(x**2 * (np.random.random(3) < 0.7))

    def gradient(x):
        return 2 * x * (np.random.random(3) < 0.7)

    np.random.seed(5)
    found = judging.answer(lambda: (dropped, {"jac": gradient}, (X,)), {"timeout": 10.0})
    assert [one["verdict"] for one in found["checks"]] == ["PROVED"]  # for these draws


def test_generators_are_begun_anew_for_what_draws_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the kept call had a number of a pair of normal ones left, whose draw moves no other state."""
    begun: list[object] = []
    monkeypatch.setattr(np.random, "set_state", lambda state, own=np.random.set_state: (begun.append(1), own(state)))
    judging.answer(lambda: (smooth, {"jac": slope}, (X,)), {"timeout": 10.0})
    assert not begun
    np.random.seed(3)
    np.random.standard_normal()
    draws = judging.Draws()
    assert not draws.have_moved()
    drawn = np.random.standard_normal()
    assert draws.have_moved()
    draws.is_drawn = True
    assert draws.behind(np.random.standard_normal)() == drawn and begun


def test_what_cannot_be_judged_says_why() -> None:
    def broken(x):
        raise ZeroDivisionError("no")

    found = judging.answer(lambda: (broken, {"jac": slope}, (X,)), {"timeout": 10.0})
    assert found["checks"][0]["verdict"] == "ERROR" and "ZeroDivisionError" in found["checks"][0]["message"]
    found = judging.answer(lambda: broken(X), {"timeout": 10.0})
    assert found == {"error": "ZeroDivisionError: no"}
