"""The scripts of samples/gradbench go in, at several sizes: value and gradient are those of plain NumPy objectives.

The objectives are written apart from the scripts. Some have gradients by hand; gradients of the others, with loops over
points and components, are complex steps, f(x + ih).imag/h, which have no rounding error of a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from tests.benchmarks import gradbench_by_hand as by_hand

FOLDER = Path(__file__).parents[2] / "samples" / "gradbench"
STEP = 1e-30
Point = dict[str, Any]


def square(x: Any) -> Any:
    return x * x


def log_sum_exp(x: Any) -> Any:
    shift = x.real.max()
    return shift + np.log(np.sum(np.exp(x - shift)))


def gmm(X: Any, alpha: Any, mu: Any, q: Any, l: Any, spread: float = 1, excess: float = 0) -> Any:
    (n, d), k = X.shape, len(alpha)
    factors = []
    for logs, below in zip(q, l, strict=True):
        factor = np.diag(np.exp(logs)).astype(complex)
        factor[np.tril_indices(d, -1)] = below
        factors.append(factor)
    total = -n * log_sum_exp(alpha) - n * d * np.log(2 * np.pi) / 2
    for x in X:
        parts = [
            alpha[c] + q[c].sum() - np.sum((factors[c] @ (x - mu[c])) ** 2) / 2  #
            for c in range(k)
        ]
        total = total + log_sum_exp(np.array(parts))
    return total + excess * q.sum() - spread**2 / 2 * (np.sum(np.exp(q) ** 2) + np.sum(l**2))


def det(A: Any) -> Any:
    """By minors, as GradBench has it."""
    if len(A) == 1:
        return A[0, 0]
    return sum((-1) ** j * A[0, j] * det(np.delete(A[1:], j, axis=1)) for j in range(len(A)))


def rotation(turn: Any) -> Any:
    """The matrix of an axis times an angle."""
    angle = np.sqrt(np.sum(turn**2))
    x, y, z = turn / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def ba(camera_of: Any, point_of: Any, seen: Any, cameras: Any, points: Any, w: Any) -> Any:
    total = 0
    for c, p, picture, weight in zip(camera_of, point_of, seen, w, strict=True):
        turn, centre, focal, principal, (k1, k2) = np.split(cameras[c], [3, 6, 7, 9])
        turned = rotation(turn) @ (points[p] - centre)
        plane = turned[:2] / turned[2]
        r2 = np.sum(plane**2)
        error = focal * plane * (1 + k1 * r2 + k2 * r2**2) + principal - picture
        total = total + np.sum((weight * error) ** 2) + (1 - weight**2) ** 2
    return total


def ht(bone: Any, surface: Any, weights: Any, seen: Any, theta: Any) -> Any:
    """A hand whose joints are placed by 4x4 matrices, each relative to the joint before."""
    fingers, joints = bone.shape[:2]
    total = 0
    for p, w, observed in zip(surface, weights, seen, strict=True):
        skin = w[0] * p
        for finger in range(fingers):
            apart, *bends = theta[6:].reshape(fingers, 1 + joints)[finger]
            now, rest = np.eye(4, dtype=theta.dtype), np.eye(4)
            for joint, bend in enumerate(bends):
                step = np.eye(4, dtype=theta.dtype)
                step[:3, 3] = bone[finger, joint]
                rest = rest @ step.real
                turns = [np.array([0, 0, apart])] if joint == 0 else []
                for turn in [*turns, np.array([bend, 0, 0])]:
                    step[:3, :3] = step[:3, :3] @ rotation(turn)
                now = now @ step
                skin = skin + w[1 + joint * fingers + finger] * (now @ np.linalg.inv(rest) @ [*p, 1])[:3]
        total = total + np.sum((rotation(theta[:3]) @ skin + theta[3:6] - observed) ** 2)
    return total


def particle(steps: int, dt: float, w: Any) -> Any:
    x, y, vx, vy = 0.0, 8.0, 0.75, 0.0
    for _ in range(steps):
        if y.real > 0 and (y + dt * vy).real <= 0:
            return (x - y * vx / vy) ** 2
        pull_x, pull_y = 0, 0
        for height in (10 - w, 0):
            cube = ((x - 10) ** 2 + (y - height) ** 2) ** 1.5
            pull_x, pull_y = pull_x + (x - 10) / cube, pull_y + (y - height) / cube
        x, y, vx, vy = x + dt * vx, y + dt * vy, vx + dt * pull_x, vy + dt * pull_y
    raise AssertionError("it never crosses")


def saddle(outer: int, inner: int, rate: float, start: Any) -> Any:
    x, y = start, start
    for _ in range(outer):
        x = x - rate * 2 * x
    for _ in range(inner):
        y = y + rate * -2 * y
    return np.sum(x**2) + np.sum(y**2)


def mixture(n: int, d: int, k: int) -> Point:
    random = np.random.default_rng(n)
    X, mu = random.normal(size=(n, d)), random.normal(size=(k, d))
    packed = 0.3 * random.normal(size=(k, d * (d - 1) // 2))
    return {"X": X, "alpha": random.normal(size=k), "mu": mu, "q": 0.3 * random.normal(size=(k, d)), "l": packed}


def observations(cameras: int, points: int, count: int) -> Point:
    random = np.random.default_rng(count)
    found = 0.1 * random.normal(size=(cameras, 11))
    found[:, 5] -= 4
    found[:, 6] += 1
    pairs = {"camera_of": random.integers(cameras, size=count), "point_of": random.integers(points, size=count)}
    return {**pairs, "seen": random.normal(size=(count, 2)), "cameras": found,
            "points": random.normal(size=(points, 3)), "w": random.uniform(0.5, 1.5, count)}  # fmt: skip


def hand(fingers: int, joints: int, count: int) -> Point:
    random = np.random.default_rng(count)
    return {"bone": random.normal(size=(fingers, joints, 3)), "surface": random.normal(size=(count, 3)),
            "weights": random.dirichlet(np.ones(1 + fingers * joints), count), "seen": random.normal(size=(count, 3)),
            "theta": random.normal(size=6 + fingers * (1 + joints))}  # fmt: skip


def normal(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape)


def recurrent(count: int, b: int) -> Point:
    random = np.random.default_rng(count)
    return {"sequence": random.uniform(size=(count, b)), "state": random.normal(size=(4, b)),
            "main": random.normal(size=(4, 4 * b)), "extra": random.normal(size=(3, b))}  # fmt: skip


DATA = {"X", "spread", "excess", "n", "steps", "dt", "sequence", "state", "camera_of", "point_of", "seen", "outer",
        "inner", "rate", "bone", "surface", "weights"}  # fmt: skip
ROWS: list[tuple[str, Callable[..., Any], list[Point]]] = [
    ("hello", square, [{"x": -1.5}, {"x": 1e6}]),
    ("gmm", gmm, [mixture(5, 2, 3), mixture(9, 4, 2), {**mixture(20, 3, 5), "spread": 1.5, "excess": 2.0}]),
    ("kmeans", by_hand.kmeans, [{"X": normal(12, 2), "C": normal(3, 3, 2)[1]}, {"X": normal(40, 5), "C": normal(2, 7, 5)[1]}]),
    ("lse", by_hand.lse, [{"x": normal(1)}, {"x": 300 * normal(9)}, {"x": normal(50) + 1000}]),
    ("llsq", by_hand.llsq, [{"n": 4, "x": normal(1)}, {"n": 9, "x": normal(3)}, {"n": 30, "x": normal(13)}]),
    ("ode", by_hand.ode, [{"steps": 1, "x": normal(2)}, {"steps": 3, "x": normal(7)}, {"steps": 10, "x": normal(30)}]),
    ("det", det, [{"A": normal(4, 4)}, {"A": normal(4, 4) * [1, 0, 1, 1]}]),
    ("lstm", by_hand.lstm, [recurrent(3, 2), recurrent(9, 5), recurrent(30, 14)]),
    ("ba", ba, [observations(2, 1, 2), observations(3, 5, 11)]),
    ("ht", ht, [hand(1, 1, 2), hand(2, 3, 5), hand(5, 3, 9)]),
    ("particle", particle, [{"steps": 40, "dt": 1.0, "w": 0.1}, {"steps": 100, "dt": 0.4, "w": 0.3}]),
    ("saddle", saddle, [{"outer": 1, "inner": 1, "rate": 0.2, "start": normal(2)},
                        {"outer": 6, "inner": 9, "rate": 0.05, "start": normal(5)}]),
]  # fmt: skip
CASES = [(name, f, point, f"{name}-{i}") for name, f, points in ROWS for i, point in enumerate(points)]
LONG = pytest.param(
    "particle", particle, {"steps": 400, "dt": 0.1, "w": 0.3}, id="particle-long", marks=pytest.mark.deep
)


def complex_step(f: Callable[..., Any], point: Mapping[str, Any], leaf: str) -> Any:
    """The gradient in one leaf, an entry at a time."""
    start = np.array(point[leaf], dtype=complex)
    found = np.zeros(start.shape)
    for place in np.ndindex(start.shape):
        moved = start.copy()
        moved[place] += 1j * STEP
        found[place] = f(**{**point, leaf: moved if start.shape else moved[()]}).imag / STEP
    return found


def answer(f: Callable[..., Any], point: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The value, and the gradient in all leaves that are no data."""
    if f.__module__ == by_hand.__name__:
        return f(**point)  # type: ignore[no-any-return]
    leaves = [leaf for leaf in point if leaf not in DATA]
    value = f(**{leaf: at.astype(complex) if np.ndim(at) and leaf in leaves else at for leaf, at in point.items()})
    return value.real, {leaf: complex_step(f, point, leaf) for leaf in leaves}


@pytest.mark.parametrize(("name", "f", "point"), [*[pytest.param(*case[:3], id=case[3]) for case in CASES], LONG])
def test_value_and_gradient(name: str, f: Callable[..., Any], point: Point) -> None:
    leaves = [leaf for leaf in point if leaf not in DATA]
    compiled = gradcli.compile((FOLDER / f"{name}.grad").read_text(encoding="utf-8"), wrt=leaves)
    value, gradient = compiled.value_and_grad(**point)
    expected, slopes = answer(f, point)
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-12)
    for leaf in leaves:
        exact = slopes[leaf]
        np.testing.assert_allclose(gradient[leaf], exact, rtol=1e-10, atol=1e-11 * np.abs(exact).max(), err_msg=leaf)
        assert np.any(exact) or name == "lse", "where nothing depends on a leaf, zeros are compared"


def test_every_script_has_a_row() -> None:
    assert {path.stem for path in FOLDER.glob("*.grad")} == {row[0] for row in ROWS}
