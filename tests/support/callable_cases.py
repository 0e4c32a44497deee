"""Functions of NumPy with gradients worked out by hand, and how to draw ordinary points for them; no test by itself.

Rows: name, f, df, and the shapes and intervals of the arguments. `df` returns one array for one argument, else a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

SQUARE = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.4], [-0.1, 0.4, 1.0]])
DATA = np.array([[1.0, 0.5, -1.2], [0.3, -0.7, 0.9], [2.0, 1.1, 0.2], [-0.4, 0.8, 1.6]])
TARGETS = np.array([0.5, -1.0, 2.0, 0.3])


class Case(NamedTuple):
    """A function, its gradient, and for each argument its shape and the interval that its entries are drawn from."""

    name: str
    f: Callable[..., Any]
    df: Callable[..., Any]
    arguments: tuple[tuple[tuple[int, ...], float, float], ...]

    def point(self, seed: int) -> tuple[Any, ...]:
        """A point as positional arguments."""
        generator = np.random.default_rng([seed, *self.name.encode()])
        drawn = [generator.uniform(low, high, shape) for shape, low, high in self.arguments]
        return tuple(float(one) if one.ndim == 0 else one for one in drawn)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def scalar(low: float, high: float) -> tuple[tuple[tuple[int, ...], float, float], ...]:
    return (((), low, high),)


def vector(low: float, high: float, size: int = 5) -> tuple[tuple[tuple[int, ...], float, float], ...]:
    return (((size,), low, high),)


# name, f, df by one number, interval: each is a case as it stands, and summed over a vector
ONE_NUMBER: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any], float, float]] = [
    ("square", lambda x: x**2, lambda x: 2 * x, -3, 3),
    ("cube", lambda x: x**3, lambda x: 3 * x**2, -3, 3),
    ("quintic", lambda x: x**5 - 4 * x**3 + x, lambda x: 5 * x**4 - 12 * x**2 + 1, -2, 2),
    ("reciprocal", lambda x: 1 / x, lambda x: -1 / x**2, 0.2, 4),
    ("sqrt", np.sqrt, lambda x: 0.5 / np.sqrt(x), 0.1, 9),
    ("cbrt", np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2), 0.1, 9),
    ("power 1.7", lambda x: x**1.7, lambda x: 1.7 * x**0.7, 0.1, 5),
    ("power -0.3", lambda x: x**-0.3, lambda x: -0.3 * x**-1.3, 0.1, 5),
    ("exp", np.exp, np.exp, -4, 4),
    ("exp2", np.exp2, lambda x: np.log(2) * np.exp2(x), -4, 4),
    ("expm1", np.expm1, np.exp, -2, 2),
    ("log", np.log, lambda x: 1 / x, 0.05, 8),
    ("log2", np.log2, lambda x: 1 / (x * np.log(2)), 0.05, 8),
    ("log10", np.log10, lambda x: 1 / (x * np.log(10)), 0.05, 8),
    ("log1p", np.log1p, lambda x: 1 / (1 + x), -0.8, 4),
    ("sin", np.sin, np.cos, -6, 6),
    ("cos", np.cos, lambda x: -np.sin(x), -6, 6),
    ("tan", np.tan, lambda x: 1 / np.cos(x) ** 2, -1.2, 1.2),
    ("arcsin", np.arcsin, lambda x: 1 / np.sqrt(1 - x**2), -0.9, 0.9),
    ("arccos", np.arccos, lambda x: -1 / np.sqrt(1 - x**2), -0.9, 0.9),
    ("arctan", np.arctan, lambda x: 1 / (1 + x**2), -4, 4),
    ("sinh", np.sinh, np.cosh, -3, 3),
    ("cosh", np.cosh, np.sinh, -3, 3),
    ("tanh", np.tanh, lambda x: 1 - np.tanh(x) ** 2, -3, 3),
    ("arcsinh", np.arcsinh, lambda x: 1 / np.sqrt(1 + x**2), -4, 4),
    ("arccosh", np.arccosh, lambda x: 1 / np.sqrt(x**2 - 1), 1.2, 6),
    ("arctanh", np.arctanh, lambda x: 1 / (1 - x**2), -0.9, 0.9),
    ("sigmoid", sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x)), -5, 5),
    ("softplus", lambda x: np.logaddexp(0, x), sigmoid, -5, 5),
    ("swish", lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), -4, 4),
    ("gauss", lambda x: np.exp(-(x**2) / 2), lambda x: -x * np.exp(-(x**2) / 2), -3, 3),
    ("erf", special.erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)), -2, 2),
    ("erfc", special.erfc, lambda x: -2 / np.sqrt(np.pi) * np.exp(-(x**2)), -2, 2),
    ("gammaln", special.gammaln, special.digamma, 0.3, 8),
    ("digamma", special.digamma, lambda x: special.polygamma(1, x), 0.3, 8),
    ("bessel j0", special.j0, lambda x: -special.j1(x), 0.2, 8),
    ("bessel j1", special.j1, lambda x: special.j0(x) - special.j1(x) / x, 0.2, 8),
    ("sinc", np.sinc, lambda x: np.cos(np.pi * x) / x - np.sin(np.pi * x) / (np.pi * x**2), 0.2, 3),
    ("x log x", lambda x: x * np.log(x), lambda x: np.log(x) + 1, 0.1, 5),
    ("x to the x", lambda x: x**x, lambda x: x**x * (np.log(x) + 1), 0.2, 3),
    ("rational", lambda x: x / (1 + x**2), lambda x: (1 - x**2) / (1 + x**2) ** 2, -3, 3),
    ("sin of square", lambda x: np.sin(x**2), lambda x: 2 * x * np.cos(x**2), -3, 3),
    ("exp of sin", lambda x: np.exp(np.sin(3 * x)), lambda x: 3 * np.cos(3 * x) * np.exp(np.sin(3 * x)), -3, 3),
    ("log of cosh", lambda x: np.log(np.cosh(x)), np.tanh, -4, 4),
    ("hypot 1", lambda x: np.hypot(x, 1), lambda x: x / np.hypot(x, 1), -4, 4),
    ("damped", lambda x: np.exp(-x) * np.cos(5 * x), lambda x: -np.exp(-x) * (np.cos(5 * x) + 5 * np.sin(5 * x)), 0, 3),
    ("abs away from 0", np.abs, np.sign, 0.2, 3),
    ("relu away from 0", lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), 0.2, 3),
]  # fmt: skip


def rosenbrock_slope(x: Any) -> Any:
    slope = np.zeros_like(x)
    slope[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    slope[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return slope


def black_scholes(s: float, k: float, v: float) -> float:
    d = (np.log(s / k) + v**2 / 2) / v
    return float(s * special.ndtr(d) - k * special.ndtr(d - v))


def black_scholes_slopes(s: float, k: float, v: float) -> tuple[float, float, float]:
    d = (np.log(s / k) + v**2 / 2) / v
    return special.ndtr(d), -special.ndtr(d - v), s * np.exp(-(d**2) / 2) / np.sqrt(2 * np.pi)


MATRIX = (((3, 3), -1.0, 1.0),)
NEAR_ONE = (((3, 3), -0.25, 0.25),)
I3 = np.eye(3)

SEVERAL: list[Case] = [
    Case("sum of squares", lambda x: np.sum(x**2), lambda x: 2 * x, vector(-2, 2)),
    Case("mean of squares", lambda x: np.mean(x**2), lambda x: 2 * x / x.size, vector(-2, 2)),
    Case("norm", np.linalg.norm, lambda x: x / np.linalg.norm(x), vector(-2, 2)),
    Case("log sum exp", lambda x: np.log(np.sum(np.exp(x))), softmax, vector(-2, 2)),
    Case("entropy", lambda p: -np.sum(p * np.log(p)), lambda p: -np.log(p) - 1, vector(0.1, 1)),
    Case("product", np.prod, lambda x: np.prod(x) / x, vector(0.3, 2)),
    Case("variance", np.var, lambda x: 2 * (x - x.mean()) / x.size, vector(-2, 2)),
    Case("std", np.std, lambda x: (x - x.mean()) / (x.size * np.std(x)), vector(-2, 2)),
    Case("quadratic form", lambda x: x @ SQUARE @ x, lambda x: 2 * SQUARE @ x, vector(-2, 2, 3)),
    Case("rosenbrock", lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), rosenbrock_slope, vector(-2, 2)),
    Case("least squares", lambda w: np.sum((DATA @ w - TARGETS) ** 2), lambda w: 2 * DATA.T @ (DATA @ w - TARGETS), vector(-2, 2, 3)),
    Case("logistic loss", lambda w: np.sum(np.logaddexp(0, -(DATA @ w))), lambda w: -DATA.T @ sigmoid(-(DATA @ w)), vector(-2, 2, 3)),
    Case("poisson loss", lambda w: np.sum(np.exp(DATA @ w) - DATA @ w), lambda w: DATA.T @ (np.exp(DATA @ w) - 1), vector(-1, 1, 3)),
    Case("rayleigh quotient", lambda x: x @ SQUARE @ x / (x @ x), lambda x: 2 * (SQUARE @ x - (x @ SQUARE @ x / (x @ x)) * x) / (x @ x), vector(0.3, 2, 3)),
    Case("cosine", lambda x, y: x @ y / np.sqrt((x @ x) * (y @ y)), lambda x, y: (y / np.sqrt((x @ x) * (y @ y)) - x * (x @ y) / ((x @ x) * np.sqrt((x @ x) * (y @ y))), x / np.sqrt((x @ x) * (y @ y)) - y * (x @ y) / ((y @ y) * np.sqrt((x @ x) * (y @ y)))), (((4,), 0.2, 2), ((4,), -1, 2))),
    Case("dot", lambda x, y: x @ y, lambda x, y: (y, x), (((4,), -2, 2), ((4,), -2, 2))),
    Case("product of two", lambda x, y: x * y, lambda x, y: (y, x), (((), -2, 2), ((), -2, 2))),
    Case("quotient", lambda x, y: x / y, lambda x, y: (1 / y, -x / y**2), (((), -2, 2), ((), 0.5, 2))),
    Case("power", lambda x, y: x**y, lambda x, y: (y * x ** (y - 1), x**y * np.log(x)), (((), 0.3, 3), ((), -2, 2))),
    Case("arctan2", np.arctan2, lambda y, x: (x / (x**2 + y**2), -y / (x**2 + y**2)), (((), 0.2, 2), ((), 0.2, 2))),
    Case("hypot", np.hypot, lambda x, y: (x / np.hypot(x, y), y / np.hypot(x, y)), (((), 0.2, 2), ((), 0.2, 2))),
    Case("logaddexp", np.logaddexp, lambda x, y: (sigmoid(x - y), sigmoid(y - x)), (((), -2, 2), ((), -2, 2))),
    Case("beta function", special.betaln, lambda a, b: (special.digamma(a) - special.digamma(a + b), special.digamma(b) - special.digamma(a + b)), (((), 0.5, 4), ((), 0.5, 4))),
    Case("black scholes", black_scholes, black_scholes_slopes, (((), 0.7, 1.4), ((), 0.7, 1.4), ((), 0.1, 0.5))),
    Case("lennard jones", lambda r: 4 * (r**-12 - r**-6), lambda r: 4 * (-12 * r**-13 + 6 * r**-7), scalar(0.9, 2.5)),
    Case("kepler", lambda e, m: m - e * np.sin(m), lambda e, m: (-np.sin(m), 1 - e * np.cos(m)), (((), 0.1, 0.9), ((), 0.3, 3))),
    Case("ideal gas", lambda n, t, v: 8.314 * n * t / v, lambda n, t, v: (8.314 * t / v, 8.314 * n / v, -8.314 * n * t / v**2), (((), 0.5, 2), ((), 250, 400), ((), 0.01, 0.05))),
    Case("normal likelihood", lambda mu, s: np.sum(-((TARGETS - mu) ** 2) / (2 * s**2) - np.log(s)), lambda mu, s: (np.sum(TARGETS - mu) / s**2, np.sum((TARGETS - mu) ** 2 / s**3 - 1 / s)), (((), -1, 1), ((), 0.5, 2))),
    Case("student likelihood", lambda mu: np.sum(-2 * np.log1p((TARGETS - mu) ** 2 / 3)), lambda mu: np.sum(4 * (TARGETS - mu) / (3 + (TARGETS - mu) ** 2)), scalar(-1, 1)),
    Case("bond price", lambda y: np.sum(5 / (1 + y) ** np.arange(1, 11)) + 100 / (1 + y) ** 10, lambda y: np.sum(-5 * np.arange(1, 11) / (1 + y) ** np.arange(2, 12)) - 1000 / (1 + y) ** 11, scalar(0.01, 0.1)),
    Case("himmelblau", lambda x, y: (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2, lambda x, y: (4 * x * (x**2 + y - 11) + 2 * (x + y**2 - 7), 2 * (x**2 + y - 11) + 4 * y * (x + y**2 - 7)), (((), -4, 4), ((), -4, 4))),
    Case("rastrigin", lambda x: 10 * x.size + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)), lambda x: 2 * x + 20 * np.pi * np.sin(2 * np.pi * x), vector(-2, 2)),
    Case("styblinski", lambda x: np.sum(x**4 - 16 * x**2 + 5 * x) / 2, lambda x: (4 * x**3 - 32 * x + 5) / 2, vector(-4, 4)),
    Case("booth", lambda x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, lambda x: np.array([10 * x[0] + 8 * x[1] - 34, 8 * x[0] + 10 * x[1] - 38]), vector(-5, 5, 2)),
    Case("matyas", lambda x: 0.26 * x @ x - 0.48 * x[0] * x[1], lambda x: 0.52 * x - 0.48 * x[::-1], vector(-5, 5, 2)),
    Case("trace", np.trace, lambda X: I3, MATRIX),
    Case("trace of square", lambda X: np.trace(X @ X), lambda X: 2 * X.T, MATRIX),
    Case("trace of X'AX", lambda X: np.trace(X.T @ SQUARE @ X), lambda X: 2 * SQUARE @ X, MATRIX),
    Case("frobenius", np.linalg.norm, lambda X: X / np.linalg.norm(X), MATRIX),
    Case("determinant", lambda X: np.linalg.det(I3 + X), lambda X: np.linalg.det(I3 + X) * np.linalg.inv(I3 + X).T, NEAR_ONE),
    Case("log determinant", lambda X: np.linalg.slogdet(I3 + X)[1], lambda X: np.linalg.inv(I3 + X).T, NEAR_ONE),
    Case("trace of inverse", lambda X: np.trace(np.linalg.inv(I3 + X)), lambda X: -(np.linalg.inv(I3 + X) @ np.linalg.inv(I3 + X)).T, NEAR_ONE),
    Case("solve", lambda b: np.sum(np.linalg.solve(SQUARE, b)), lambda b: np.linalg.solve(SQUARE.T, np.ones(3)), vector(-2, 2, 3)),
    Case("largest singular value", lambda X: np.linalg.svd(2 * I3 * [1, 2, 3] + X)[1][0], lambda X: np.outer(np.linalg.svd(2 * I3 * [1, 2, 3] + X)[0][:, 0], np.linalg.svd(2 * I3 * [1, 2, 3] + X)[2][0]), NEAR_ONE),
    Case("bilinear", lambda x, A, y: x @ A @ y, lambda x, A, y: (A @ y, np.outer(x, y), A.T @ x), (((3,), -2, 2), ((3, 4), -2, 2), ((4,), -2, 2))),
    Case("two layers", lambda W, v: v @ np.tanh(W @ DATA[0]), lambda W, v: (np.outer(v * (1 - np.tanh(W @ DATA[0]) ** 2), DATA[0]), np.tanh(W @ DATA[0])), (((4, 3), -1, 1), ((4,), -1, 1))),
    Case("cross entropy", lambda z: np.log(np.sum(np.exp(z))) - z[1], lambda z: softmax(z) - np.eye(z.size)[1], vector(-2, 2)),
    Case("kl of a normal", lambda m, s: np.sum((m**2 + s**2) / 2 - np.log(s) - 0.5), lambda m, s: (m, s - 1 / s), (((3,), -1, 1), ((3,), 0.4, 2))),
    Case("huber", lambda x: np.sum(np.sqrt(1 + x**2) - 1), lambda x: x / np.sqrt(1 + x**2), vector(-3, 3)),
    Case("cumulative sum", lambda x: np.sum(np.cumsum(x) ** 2), lambda x: 2 * np.cumsum(np.cumsum(x)[::-1])[::-1], vector(-2, 2)),
    Case("convolution", lambda x: np.sum(np.convolve(x, [1, 2, 3]) ** 2), lambda x: 2 * np.correlate(np.convolve(x, [1, 2, 3]), [1, 2, 3], "valid"), vector(-2, 2)),
    Case("fourier", lambda x: np.sum(np.abs(np.fft.fft(x)) ** 4), lambda x: 4 * x.size * np.real(np.fft.ifft(np.abs(np.fft.fft(x)) ** 2 * np.fft.fft(x))), vector(-2, 2)),
    Case("interpolated", lambda x: np.sum(np.polyval([1.0, -2.0, 0.5], x)), lambda x: 2 * x - 2, vector(-2, 2)),
    Case("largest", np.max, lambda x: 1.0 * (x == x.max()), vector(-2, 2)),
    Case("median", np.median, lambda x: 1.0 * (x == np.median(x)), vector(-2, 2)),
    Case("many entries", lambda x: np.sum(np.sin(x) * x), lambda x: np.sin(x) + x * np.cos(x), vector(0.2, 2, 60)),
]  # fmt: skip


def cases() -> list[Case]:
    """All functions: of one number, summed over a vector, and of several arguments."""
    found = [Case(name, f, df, scalar(low, high)) for name, f, df, low, high in ONE_NUMBER]
    for name, f, df, low, high in ONE_NUMBER:
        found.append(Case(f"sum of {name}", lambda x, f=f: np.sum(f(x)), df, vector(low, high, 3)))
    return found + SEVERAL
