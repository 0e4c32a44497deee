"""Functions that are computed by iterations: their right derivatives are never refuted, and their wrong ones never pass.

A recording of a bisection is smooth between two jumps that are closer than floats, and has the slope of its bracket:
what it says counts only where differences of the function's own values do not contradict it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli.eager as eager
from gradcli import check_callable
from tests.support.rows import every

Z = np.array([0.3, -0.5, 1.2])


def cube_root(x: Any, turns: int = 60) -> Any:
    low, width = 0.0 * x, 1.0 + x
    for _ in range(turns):
        width = width / 2
        middle = low + width
        low = np.where(middle**3 <= x, middle, low)
    return low


def halved(xp: Any, low: Any, high: Any, below: Any, turns: int = 60) -> Any:
    """The place up to which `below` is true."""
    for _ in range(turns):
        middle = (low + high) / 2
        low, high = (xp.where(below(middle), a, b) for a, b in ((middle, low), (high, middle)))
    return (low + high) / 2


def simplex(z: Any) -> Any:
    threshold = halved(np, z.max() - 1.0, z.max() + 0 * z[0], lambda t: np.sum(np.maximum(z - t, 0)) >= 1)
    return np.maximum(z - threshold, 0)


def simplex_vjp(z: Any, ct: Any, mean: float = 1.0) -> Any:
    inside = simplex(z) > 0
    return np.where(inside, ct - mean * np.sum(ct * inside) / np.sum(inside), 0)


def entmax(z: Any) -> Any:
    z = z / 2
    threshold = halved(np, z.max() - 1.0, z.max() + 0 * z[0], lambda t: np.sum(np.maximum(z - t, 0) ** 2) >= 1)
    return np.maximum(z - threshold, 0) ** 2


def entmax_vjp(z: Any, ct: Any, mean: float = 1.0) -> Any:
    root = np.sqrt(entmax(z))
    return root * (ct - mean * np.sum(ct * root) / np.sum(root))


def newton(x: Any) -> Any:
    y = 1.0 + 0 * x
    while abs(y * y - x) > 1e-14:
        y = (y + x / y) / 2
    return y


def with_stop(x: Any) -> Any:
    y = 1.0 + 0 * x
    for _ in range(50):
        step = (y * y - x) / (2 * y)
        y = y - np.where(np.abs(step) > 1e-15, step, 0)
    return y


def kepler(e: Any) -> Any:
    angle = 1.0
    for _ in range(30):
        angle = angle - (angle - e * np.sin(angle) - 1.0) / (1 - e * np.cos(angle))
    return angle


def fixed_point(x: Any) -> Any:
    y = 0.5
    for _ in range(2000):
        before, y = y, np.cos(x * y)
        if abs(before - y) < 1e-15:
            break
    return y


def line_search(x: Any) -> Any:
    """The minimum of (t - x)**2 + t**4/4."""
    t = 0.0
    for _ in range(200):
        slope, step = 2 * (t - x) + t**3, 1.0
        while (t - step * slope - x) ** 2 + (t - step * slope) ** 4 / 4 > (
            t - x
        ) ** 2 + t**4 / 4 - 1e-4 * step * slope**2:
            step /= 2
        if step < 1e-12:
            break
        t -= step * slope
    return t


# f, its derivative times a factor, as it is passed, points
CASES: dict[str, tuple[Any, Any, str, list[Any]]] = {
    "a cube root by bisection": (cube_root, lambda x, k=1: k * cube_root(x) ** -2 / 3, "grad", [2.5, 8.0, 0.3]),
    "the same in 100 turns": (lambda x: cube_root(x, 100), lambda x, k=1: k * x ** (-2 / 3) / 3, "grad", [2.5]),
    "the same in 52 turns": (lambda x: cube_root(x, 52), lambda x, k=1: k * x ** (-2 / 3) / 3, "grad", [2.5]),
    "square roots": (
        lambda x: np.sum(halved(np, 0 * x, 1 + x, lambda t: t * t < x)),
        lambda x, k=1: k * 0.5 / np.sqrt(x),
        "grad",
        [np.array([2.0, 0.25, 9.0])],
    ),
    "the projection onto the simplex": (simplex, lambda z, ct, k=1: k * simplex_vjp(z, ct), "vjp", [Z]),
    "entmax": (entmax, lambda z, ct, k=1: k * entmax_vjp(z, ct), "vjp", [Z]),
    "Newton's method": (newton, lambda x, k=1: k * 0.5 / newton(x), "grad", [2.5]),
    "Newton's method that stops": (with_stop, lambda x, k=1: k * 0.5 / with_stop(x), "grad", [2.5]),
    "Kepler's equation": (kepler, lambda e, k=1: k * np.sin(kepler(e)) / (1 - e * np.cos(kepler(e))), "grad", [0.4]),
    "a fixed point": (
        fixed_point,
        lambda x, k=1: -k * np.sin(x * fixed_point(x)) * fixed_point(x) / (1 + x * np.sin(x * fixed_point(x))),
        "grad",
        [0.8],
    ),
    "a line search": (line_search, lambda x, k=1: k * 2 / (2 + 3 * line_search(x) ** 2), "grad", [0.7]),
}
PASSES = {"PROVED", "CERTIFIED", "AGREES", "IMPRECISE"}


@pytest.mark.parametrize("name", every(2, CASES))
def test_a_right_derivative_of_an_iteration_passes_and_a_wrong_one_does_not(name: str) -> None:
    f, derivative, kind, points = CASES[name]
    for at in points:
        right = check_callable(f, at=(at,), **{kind: derivative}).checks[0]
        assert right.verdict in PASSES, right
        wrong = check_callable(f, at=(at,), **{kind: lambda *args: derivative(*args, k=1.5)}).checks[0]
        assert wrong.verdict == "DISAGREES", wrong


@pytest.mark.parametrize("turns", [25, 35])
def test_of_a_bisection_that_ends_early_nothing_passes_and_what_is_right_is_not_refuted(turns: int) -> None:
    right, wrong = (
        check_callable(lambda x: cube_root(x, turns), lambda x, k=k: k * x ** (-2 / 3) / 3, at=(2.5,)) for k in (1, 1.5)
    )
    assert right.checks[0].verdict == "INCONCLUSIVE", right
    assert wrong.checks[0].verdict in ("INCONCLUSIVE", "DISAGREES"), wrong


@pytest.mark.parametrize(("f", "vjp"), [(simplex, simplex_vjp), (entmax, entmax_vjp)], ids=["simplex", "entmax"])
def test_a_forgotten_term_of_a_projection_does_not_pass(f: Any, vjp: Any) -> None:
    report = check_callable(f, vjp=lambda z, ct: vjp(z, ct, 0.0), at=(Z,))
    assert report.checks[0].verdict not in PASSES, report


def roots(xp: Any, x: Any) -> Any:
    return halved(xp, 0 * x, 1 + x, lambda t: t**3 < x)


def test_the_slope_of_the_bracket_is_no_derivative() -> None:
    """What differentiates the bisection itself gives that: 0.39 where the cube root has 0.18."""
    at = np.array([2.5, 8.1, 0.7])
    assert check_callable(lambda x: roots(eager, x), at=(at,)).checks[0].verdict == "DISAGREES"
    bracket = check_callable(cube_root, lambda x: 0.3877739449, at=(2.5,)).checks[0]
    assert bracket.verdict == "DISAGREES" and "0.18096" in bracket.message


@pytest.mark.peers
def test_a_bisection_in_a_function_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch")
    at = torch.tensor([2.5, 8.0, 0.7], dtype=torch.float64)

    def rule(factor: float) -> Any:
        class Root(torch.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                root = roots(torch, x)
                ctx.save_for_backward(root)
                return root

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (root,) = ctx.saved_tensors
                return factor * g / (3 * root * root)

        return Root

    assert check_callable(rule(1.0), at=(at,)).checks[0].verdict in PASSES
    assert check_callable(rule(1.5), at=(at,)).checks[0].verdict == "DISAGREES"
    assert check_callable(lambda x: roots(torch, x), at=(at,)).checks[0].verdict == "DISAGREES"
