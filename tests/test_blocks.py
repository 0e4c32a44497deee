"""Many points in blocks, on one thread or several: the numbers of one evaluation of all points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.repeated import blocks
from gradcli.execution.compiler import thread_pool
from tests.random_programs import make

COUNT = 257


def answered(script: str, points: Any, shared: tuple[str, ...] = ()) -> Any:
    value, slopes = gradcli.compile(script).at_points(**points, shared=shared)
    return [value, *slopes.values()]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(30))
def test_blocks_make_no_difference(seed: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make(70_000 + seed, size=8)
    random = np.random.default_rng(seed)
    points = {
        name: np.asarray(value)[None] + random.uniform(-0.01, 0.01, (COUNT, *np.shape(value)))
        for name, value in program.values.items()
    }
    whole = answered(program.text, points)
    monkeypatch.setattr(blocks, "ALONE", 16)
    monkeypatch.setattr(blocks, "SHARED", 16)
    monkeypatch.setattr(blocks, "FEWEST", 1)
    monkeypatch.setattr(thread_pool, "processors", lambda: threads)
    library = any(word in program.text for word in ("@", "inv", "det", "solve", "expm"))
    for one, other in zip(answered(program.text, points), whole, strict=True):
        if library:  # libraries may choose another order of sums for another count
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
        else:
            assert np.array_equal(one, other, equal_nan=True), program.text


def test_the_whole_is_used_for_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(blocks, "rooms", lambda *args: asked.append(args))
    answered("x*y", {"x": np.ones(100), "y": np.ones(100)})
    assert not asked


def test_what_does_not_depend_on_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    x = np.arange(40.0)
    value, slopes = gradcli.compile("x + k**2", wrt=("x", "k")).at_points(x=x, k=3.0)
    assert np.array_equal(value, x + 9)
    assert np.array_equal(slopes["x"], np.ones(40)) and np.array_equal(slopes["k"], np.full(40, 6.0))
    shared = gradcli.compile("sum(W @ v)").at_points(W=np.ones((2, 3)), v=np.ones((40, 3)), shared=("W",))
    assert shared[0].shape == (40,) and shared[1]["W"].shape == (40, 2, 3)


def test_an_error_in_a_block_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    monkeypatch.setattr(blocks, "SHARED", 4)
    monkeypatch.setattr(blocks, "FEWEST", 1)
    places = np.zeros((64, 1))
    places[50] = 7
    with pytest.raises(gradcli.GradcliError) as refused:
        gradcli.compile("sum(take(x, p))", wrt=("x",)).at_points(x=np.ones((64, 3)), p=places)
    assert refused.value.diagnostics[0].code == "GC406"


def test_single_precision_stays_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    x = np.linspace(0.5, 2.0, 40)
    value, slopes = gradcli.compile("sin(x)*0.1", dtype="float32").at_points(x=x)
    whole = gradcli.compile("sin(x)*0.1", dtype="float32").at_points(x=x[:7])
    assert value.dtype == whole[0].dtype
    assert np.array_equal(value[:7], whole[0]) and np.array_equal(slopes["x"][:7], whole[1]["x"])


@pytest.mark.parametrize(("told", "threads"), [("1", 1), ("3", 3), ("99", thread_pool.MOST_THREADS)])
def test_threads_are_told_by_the_environment(told: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADCLI_THREADS", told)
    assert thread_pool.processors() == threads


@pytest.mark.parametrize("told", ["", "0", "many", "-2"])
def test_what_is_no_number_of_threads_is_not_heard(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLI_THREADS", raising=False)
    own = thread_pool.processors()
    monkeypatch.setenv("GRADCLI_THREADS", told)
    assert thread_pool.processors() == own
