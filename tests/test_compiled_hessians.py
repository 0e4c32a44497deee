"""Hessians of compiled functions, asked again and again: the short way gives what the careful one gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError, hessian

N = 30
CHAIN = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
TWO = "sum((y - x**2)**2*exp(-x)) + sum(x[1:]*x[:-1])"


def points(count: int) -> list[Any]:
    return [np.random.default_rng(seed).uniform(0.5, 1.5, N) for seed in range(count)]


def same(one: Any, other: Any) -> None:
    assert np.allclose(one.value, other.value, rtol=1e-13)
    for name in other.gradient:
        assert np.allclose(one.gradient[name], other.gradient[name], rtol=1e-12, atol=1e-13)
        assert np.array_equal(one.at[name], other.at[name])
        for inner in other.hessian[name]:
            assert one.hessian[name][inner].shape == other.hessian[name][inner].shape
            assert np.allclose(one.hessian[name][inner], other.hessian[name][inner], rtol=1e-12, atol=1e-12)
    assert one.expression == other.expression
    assert [d.code for d in one.diagnostics] == [d.code for d in other.diagnostics]


def test_again_and_again() -> None:
    f = gradcli.compile(CHAIN)
    for x in points(6):
        same(f.hessian(x=x), hessian(CHAIN, at={"x": x}))


def test_two_leaves() -> None:
    f = gradcli.compile(TWO)
    for x, y in zip(points(5), points(5)[::-1], strict=True):
        same(f.hessian(x=x, y=y), hessian(TWO, at={"x": x, "y": y}))


def test_results_are_the_callers_own() -> None:
    f = gradcli.compile(CHAIN)
    first, second = points(2)
    for _ in range(3):
        f.hessian(x=first)
    found = f.hessian(x=first)
    kept = found.hessian["x"]["x"].copy()
    other = f.hessian(x=second)
    assert np.array_equal(found.hessian["x"]["x"], kept)
    other.hessian["x"]["x"][:] = 7
    other.gradient["x"][:] = 7
    assert np.array_equal(f.hessian(x=first).hessian["x"]["x"], kept)
    first[0] = 100
    assert found.at["x"][0] != 100


@pytest.mark.parametrize(
    "given", [[0.5 + i / 40 for i in range(N)], np.arange(1, N + 1), np.linspace(0.5, 1.5, N, dtype=np.float32),
              np.linspace(0.5, 1.5, 2 * N)[::2], np.linspace(0.5, 1.5, N + 2)]
)  # fmt: skip
def test_other_kinds_of_values(given: Any) -> None:
    f = gradcli.compile(CHAIN)
    for x in points(3):
        f.hessian(x=x)
    expected = hessian(CHAIN, at={"x": np.asarray(given, dtype=float)})
    found = f.hessian(x=given)
    assert np.allclose(found.hessian["x"]["x"], expected.hessian["x"]["x"], rtol=1e-6)


def test_what_is_not_finite_is_explained() -> None:
    f = gradcli.compile("sum(sqrt(x[1:])*x[:-1])")
    for x in points(3):
        assert not f.hessian(x=x).diagnostics
    x = points(1)[0]
    x[3] = 0.0
    same_codes = [d.code for d in hessian("sum(sqrt(x[1:])*x[:-1])", at={"x": x}).diagnostics]
    assert [d.code for d in f.hessian(x=x).diagnostics] == same_codes != []


def test_slips_are_told_each_time() -> None:
    f = gradcli.compile(CHAIN)
    for x in points(3):
        f.hessian(x=x)
    for _ in range(2):
        with pytest.raises(GradcliError, match="unknown leaf `z`"):
            f.hessian(x=points(1)[0], z=points(1)[0])
        with pytest.raises(GradcliError):
            f.hessian()


def test_defaults_stay() -> None:
    script = f"y = {[1.0] * N}\nsum((y - x**2)**2) + sum(x[1:]*x[:-1])"
    f = gradcli.compile(script)
    for x in points(4):
        same(f.hessian(x=x), hessian(script, at={"x": x}))
    x, y = points(2)
    same(f.hessian(x=x, y=y), hessian(script, at={"x": x, "y": y}))
    same(f.hessian(x=x), hessian(script, at={"x": x}))
