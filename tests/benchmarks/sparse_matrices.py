"""Sparse Hessians and Jacobians of 100 to 1,000,000 variables as CSR or CSC arrays, beside CasADi, with their growth.

The Jacobians are of a residual on a grid and of an arrow, which has a long row and a long column.

A Hessian comes with value and gradient, as Newton's method needs it. CasADi's programs are made of matrices (MX) up to
1,000 variables, where it is fastest so, and of scalars (SX) above. Both take arrays of NumPy; CasADi gives matrices
of its own, which are turned into SciPy's once, to compare. Results are compared as weighted sums of all entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.driver import Row, raced, rows

CHAIN = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
# the residual of u'' = exp(u) on a square grid, with zeros around it
RESIDUAL = """
w = pad(u, 1)
w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2] - 4*u - 0.1*exp(u)
"""
# a long row and a long column: reverse sweeps give the one, forward sweeps the other
ARROW = "concatenate([[sum(x**2)], x[1:]**2 + x[0]*x[1:]])"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
SIDES = (32, 100, 316)  # of the grid
ARROWS = (
    1_000,
    2_000,
    4_000,
)  # for 10,000 CasADi takes a minute to find colours, and four times as long for twice as many
MOST_SYMBOLIC = 100_000  # variables for which CasADi's programs are made in less than a minute
Found = tuple[Callable[[], Any], Any]


def calls(size: int) -> int:
    """In a turn: what takes microseconds is called more often."""
    return max(1, 20_000 // size)


def often(work: Callable[[], Any], size: int) -> Callable[[], None]:
    """A turn."""

    def turn() -> None:
        for _ in range(calls(size)):
            work()

    return turn


def data(size: int) -> Any:
    return np.random.default_rng(1).uniform(0.5, 1.5, size)


def summed(matrix: Any) -> list[float]:
    """The sum of the entries, and one weighted by their places."""
    places = matrix.tocoo()
    weights = np.cos(places.row) + np.sin(2.0 * places.col)
    return [float(places.data.sum()), float((weights * places.data).sum()), float(places.nnz)]


def ours_hessian(size: int) -> Found:
    import gradcli

    f, x = gradcli.compile(CHAIN), data(size)
    return often(lambda: f.hessian(sparse=True, x=x), size), summed(f.hessian(sparse=True, x=x).hessian["x"]["x"])


def casadi_hessian(size: int) -> Found:
    import casadi

    x = casadi.MX.sym("x", size) if size <= 1_000 else casadi.SX.sym("x", size)
    value = casadi.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    matrix, gradient = casadi.hessian(value, x)
    f, at = casadi.Function("f", [x], [value, gradient, matrix]), data(size)
    return often(lambda: f(at), size), summed(f(at)[2].sparse())


def ours_jacobian(side: int) -> Found:
    import gradcli

    f, u = gradcli.compile(RESIDUAL), data(side * side).reshape(side, side)
    table: Any = f.jacobian(sparse=True, u=u).jacobian
    return often(lambda: f.jacobian(sparse=True, u=u), side * side), summed(table["u"])


def casadi_jacobian(side: int) -> Found:
    import casadi

    u = casadi.SX.sym("u", side * side)
    w = casadi.SX.zeros(side + 2, side + 2)
    w[1:-1, 1:-1] = casadi.reshape(u, side, side).T
    inside = w[1:-1, 1:-1]
    around = w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2]
    residual = casadi.vec((around - 4 * inside - 0.1 * casadi.exp(inside)).T)
    f, at = casadi.Function("f", [u], [residual, casadi.jacobian(residual, u)]), data(side * side)
    return often(lambda: f(at), side * side), summed(f(at)[1].sparse())


def ours_arrow(size: int) -> Found:
    import gradcli

    f, x = gradcli.compile(ARROW), data(size)
    table: Any = f.jacobian(sparse=True, x=x).jacobian
    return often(lambda: f.jacobian(sparse=True, x=x), size), summed(table["x"])


def casadi_arrow(size: int) -> Found:
    import casadi

    x = casadi.SX.sym("x", size)
    value = casadi.vertcat(casadi.sumsqr(x), x[1:] ** 2 + x[0] * x[1:])
    f, at = casadi.Function("f", [x], [value, casadi.jacobian(value, x)]), data(size)
    return often(lambda: f(at), size), summed(f(at)[1].sparse())


def run(rounds: int, small: bool) -> list[Row]:
    """Small Hessians take at most 1.5 times as long as CasADi's, large ones and Jacobians 1.2 times."""
    found: list[Row] = []
    for work, sizes, variables in (
        ("hessian", (20, 40) if small else SIZES, int),
        ("jacobian", (5, 8) if small else SIDES, lambda side: side * side),
        ("arrow", (20, 40) if small else ARROWS, int),
    ):
        seconds: dict[str, list[tuple[int, float]]] = {}
        for size in sizes:
            count = variables(size)
            peers = ("ours", "casadi") if count <= MOST_SYMBOLIC else ("ours",)
            turns = raced({peer: f"{__name__}:{peer}_{work}" for peer in peers}, rounds, size)
            times = {name: turn / calls(count) for name, turn in turns.items()}
            for name, time in times.items():
                seconds.setdefault(name, []).append((count, time))
            limit = 1.5 if work == "hessian" and count <= 1_000 else 1.2
            found += rows(f"sparse {work}, n = {count:,}", times, {"casadi": limit})
            if "casadi" not in times:  # a second for a million
                found += rows(
                    f"sparse {work}, n = {count:,}",
                    {**times, "1 us a variable": 1e-6 * count},
                    {"1 us a variable": 1.0},
                )
        growth = {name: exponent(times[-3:]) for name, times in seconds.items()}
        if "casadi" in growth and not small:
            found.append(
                {**rows("", growth, {"casadi": 1.1})[0], "name": f"sparse {work}, growth exponent", "unit": ""}
            )
    return found


def exponent(times: list[tuple[int, float]]) -> float:
    """The slope of log seconds by log variables, from the first size to the last."""
    (few, short), (many, long) = times[0], times[-1]
    return math.log(long / short) / math.log(many / few)
