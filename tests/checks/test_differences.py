"""Differences of values: their bounds hold, and where they cannot tell they say so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import Differences, Estimate, LocalBehaviour, Neighbourhood
from gradcli.graph.domain import Closed, Interval, Open

Scalar = Callable[[np.ndarray], np.ndarray]

SMOOTH: list[tuple[str, Scalar, float, float]] = [
    ("sin", np.sin, 1.3, np.cos(1.3)),
    ("sqrt beside 0", np.sqrt, 1e-7, 0.5 / np.sqrt(1e-7)),
    ("log beside 0", np.log, 2e-6, 5e5),
    ("a tiny value", lambda x: 1e-9 * x**2, 3.0, 6e-9),
    ("a huge point", lambda x: x**2, 1e12, 2e12),
    ("an odd cube", lambda x: x**3, 0.0, 0.0),
    ("exp", np.exp, -3.0, np.exp(-3.0)),
    ("a line", lambda x: 3 * x, 0.25, 3.0),
]


def along(f: Scalar, x: float, domain: Interval | None = None) -> Differences:
    ((found,),) = Neighbourhood(lambda points: f(points[:, 0]), np.array([x]), domain).differences([np.ones(1)])
    return found


def both_sides(f: Scalar) -> LocalBehaviour:
    return step_sequences.sides(along(f, 0.0))


def partial(f: Scalar, x: float, domain: Interval | None = None) -> Estimate:
    return along(f, x, domain).estimate


@pytest.mark.parametrize(("name", "f", "x", "exact"), SMOOTH, ids=[row[0] for row in SMOOTH])
def test_the_bound_holds(name: str, f: Scalar, x: float, exact: float) -> None:
    found = partial(f, x)
    assert found.reason is None
    assert abs(found.value - exact) <= found.bound + 1e-15 * abs(exact)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: 1e10 + x**2 * 1e-9, 1.0),
        (lambda x: 0 * x, 1.0),
        (lambda x: np.log(np.exp(x) + 1), 800.0),
        (lambda x: np.where(x == 1.0, 1.0, np.nan), 1.0),
    ],
)
def test_what_does_not_move_is_not_zero(f: Scalar, x: float) -> None:
    with np.errstate(all="ignore"):
        assert partial(f, x).reason is not None


def test_an_even_function_has_the_slope_zero_to_a_bound() -> None:
    found = partial(np.cos, 0.0)
    assert (found.value, found.reason) == (0.0, None)
    assert 0.0 < found.bound < 1e-6


def test_points_stay_inside_the_domain() -> None:
    seen: list[float] = []

    def f(x: np.ndarray) -> np.ndarray:
        seen.extend(x.tolist())
        return np.log(x) + np.log(1 - x)

    found = partial(f, 0.999, Open(0, 1))
    assert all(0 < x < 1 for x in seen)
    assert abs(found.value - (1 / 0.999 - 1 / 0.001)) <= found.bound
    assert partial(np.sqrt, 0.0, Closed(0, 1)).reason is not None


def test_one_batch_for_all_entries() -> None:
    calls = []

    def f(points: np.ndarray) -> np.ndarray:
        calls.append(len(points))
        return (points**2).sum(axis=1)

    x = np.arange(1.0, 6.0)
    near = Neighbourhood(f, x)
    found = near.differences([near.axis(i) for i in range(5)])
    assert len(calls) == 2  # the point, and all that is beside it
    assert [round(one.estimate.value) for (one,) in found] == [2, 4, 6, 8, 10]


def test_directions() -> None:
    x = np.array([1.0, -2.0, 0.5])
    way = np.array([0.3, 0.1, -0.2])
    ((found,),) = Neighbourhood(lambda p: np.sin(p).sum(axis=1), x).differences([way])
    assert abs(found.estimate.value - np.cos(x) @ way) <= found.estimate.bound


@pytest.mark.parametrize(
    ("f", "left", "right"),
    [(np.abs, -1, 1), (lambda x: np.maximum(x, 0), 0, 1), (lambda x: x * np.abs(x), 0, 0), (np.exp, 1, 1)],
)
def test_both_sides(f: Scalar, left: float, right: float) -> None:
    seen = both_sides(f)
    for slope, expected in zip([*seen.left, *seen.right], (left, right), strict=True):
        assert slope is not None
        assert abs(slope - expected) <= seen.bound + 1e-7


def test_edges_and_jumps() -> None:
    root = both_sides(np.sqrt)
    assert root.left == [None]
    assert root.right == [np.inf]
    assert root.verdict == "BOUNDARY"
    step = both_sides(lambda x: (x > 0) * 2.0)
    assert step.verdict == "DISCONTINUOUS"
    assert step.limits == pytest.approx((0, 2), abs=1e-9)
    assert step.value == 0


def test_the_noise_of_many_outputs_is_that_of_each_alone() -> None:
    """Of noise of three sizes, of none, and of an infinite output, which has none."""
    sizes, shift = np.array([1e-4, 1e-8, 1e-12, 0.0, 0.0]), np.array([0, 0, 0, 0, np.inf])
    x, d = np.array([0.7]), np.array([1.0])

    def f(points: np.ndarray) -> np.ndarray:
        return np.sin(3 * points + np.arange(5)) + sizes * np.modf(1e4 * np.sin(1e15 * points))[0] + shift

    center = f(x[None])[0]
    together = step_sequences.noise_of(f, x, d, center)
    alone = [step_sequences.noise_of(lambda p, k=k: f(p)[:, [k]], x, d, center[[k]])[0] for k in range(5)]
    assert together.tolist() == alone
    assert (together > 0).tolist() == (sizes > 0).tolist()
