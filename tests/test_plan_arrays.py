"""Plans against the evaluator on random scripts that broadcast, slice, transpose, reduce, sort, join and multiply arrays.

Blocks of one entry and more, any number of threads, short floats, infinities and NaN: as far off as rounding allows,
the same bits from run to run and on any number of threads. What was found this way stands below, each as small as it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.questions import value_question
from gradcli.diagnostics import GradcliError
from gradcli.execution.plans import demand, emit_numpy, run, schedule
from gradcli.execution.plans.numpy_plan import Plan
from tests.array_programs import make, odd, read, scalar
from tests.rounding import allowed, beyond
from tests.test_plans import question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.execution.evaluate import Tape


def case(seed: int, strange: bool) -> tuple[Tape, dict[str, Any]] | None:
    """A gradient, or several outputs; None where a script is refused or has no arrays."""
    try:
        if seed % 4:
            text, values = scalar(seed)
            tape, given = question(text, odd(seed, values) if strange else values)
        else:
            body, values, names = make(seed)
            text = f"{body}\n{', '.join(names)}"
            values = read(text, odd(seed, values) if strange else values)
            found, point = gradcli.compile(text)._question("value", value_question, values)
            tape, given = found.tape, found.values(point)
    except GradcliError:
        return None
    return None if tape.scalar else (tape, given)


def cases(start: int, count: int, strange: bool) -> Iterator[tuple[int, Tape, dict[str, Any]]]:
    for seed in range(start, start + count):
        found = case(seed, strange)
        if found is not None:
            yield seed, *found


def small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few entries, of other lengths for each seed."""
    random = np.random.default_rng(seed)
    least = int(random.choice([1, 1, 3, 7, 16, 64]))
    for name, value in {"WORTH": 1, "ENTRIES": least, "MOST_ENTRIES": max(least, int(random.choice([1, 8, 64]))),
                        "FEWEST_ROWS": int(random.choice([1, 2]))}.items():  # fmt: skip
        monkeypatch.setattr(schedule, name, value)
    monkeypatch.setattr(run, "SMALL", int(random.choice([0, 16, 64])))
    monkeypatch.setattr(run, "WORTH_A_THREAD", 0)


def judge(seed: int, tape: Tape, values: dict[str, Any], dtype: str, mended: bool = False) -> None:
    """`mended`: entries that nobody reads are left out, so there is 0 where the evaluator says NaN."""
    rows = allowed(tape, values, dtype)
    plans = [Plan(tape, dtype, threads=threads) for threads in (1, 2, 3)]
    answers = [plan.answer(values) for plan in plans for _ in range(2)]
    for answer in answers[1:]:
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(answer, answers[0], strict=True)), (
            seed
        )
    found = beyond(answers[0], rows)
    assert all(mended and np.isnan(rows[at].value[place]) for at, place in found), (seed, found[:3])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("start", range(0, 120, 60))
def test_plans(start: int, strange: bool, dtype: str) -> None:
    for seed, tape, values in cases(start, 60, strange):
        judge(seed, tape, values, dtype)


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("start", range(200, 500, 100))
def test_plans_in_small_blocks(start: int, strange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, tape, values in cases(start, 60, strange):
        small(seed, monkeypatch)
        judge(seed, tape, values, "float32" if seed % 5 == 0 else "float64")


@pytest.mark.parametrize("strange", [False, True])
def test_plans_on_ranges(strange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "WORTH", -(10**9))
    monkeypatch.setattr(demand, "SHARE", 0)
    for seed, tape, values in cases(600, 100, strange):
        small(seed, monkeypatch)
        judge(seed, tape, values, "float64", mended=True)


@pytest.mark.deep
@pytest.mark.parametrize("start", range(10_000, 30_000, 250))
def test_many_plans(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = start % 750 == 0
    if cut:
        monkeypatch.setattr(demand, "WORTH", -(10**9))
        monkeypatch.setattr(demand, "SHARE", 0)
    for seed, tape, values in cases(start, 250, start % 1_000 == 0):
        small(seed, monkeypatch)
        judge(seed, tape, values, "float32" if seed % 5 == 0 else "float64", mended=cut)


# --- what was found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ufunc", sorted(emit_numpy.UNSAFE, key=lambda one: one.__name__), ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_with_gaps_in_memory(ufunc: Any, dtype: Any) -> None:
    """NumPy 2.4 writes wrong negatives and truth values into such memory where the processor has AVX-512."""
    work = emit_numpy.entry(ufunc)
    for n in (1, 3, 8, 16, 17, 37, 64):
        x = np.linspace(-1, 2, n).astype(dtype)
        x[n // 2] = np.nan
        expected = np.array([ufunc(one) for one in x])
        for step in (1, 2, 4, 8, -8, -4):
            for gap in (1, 2, 3, 8):
                source, room = np.zeros(n * abs(step), dtype)[::step], np.zeros(n * gap, expected.dtype)[::gap]
                source[...] = x
                work(source, room)
                assert np.array_equal(room, expected, equal_nan=True), (n, step, gap)


def test_negatives_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of one column of eight they were wrong, and others in each run."""
    for name, value in {"WORTH": 1, "ENTRIES": 1, "MOST_ENTRIES": 1, "FEWEST_ROWS": 1}.items():
        monkeypatch.setattr(schedule, name, value)
    rng = np.random.default_rng(0)
    tape, values = question("t = exp(-x**2)\nsum(concatenate((y, t))) + sum((sin(t)*cos(t))**2)",
                            {"x": rng.normal(size=(8, 1, 8)), "y": rng.normal(size=(1, 1, 8))})  # fmt: skip
    judge(0, tape, values, "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scales_of_norms(dtype: str) -> None:
    """A norm is no whole step any more: it is cut into blocks, with a power of two for each of them."""
    rng = np.random.default_rng(0)
    for turn in range(60):
        x = rng.normal(size=[(7,), (4, 5), (3, 4, 2)][turn % 3]) * 10.0 ** rng.integers(-320, 300)
        x[np.abs(x) < 1e9 * np.finfo(dtype).tiny] = 0.0
        x[rng.random(x.shape) < 0.1 * (turn % 3)] = rng.choice([0.0, np.inf, np.nan])
        tape, values = question("sum(norm(x, axis=-1))" if turn % 2 else "norm(x)", {"x": x})
        assert not any(getattr(event, "kind", "") == "call" for event in Plan(tape).schedule.events)
        judge(turn, tape, values, dtype)


def test_numbers_beyond_short_floats_are_infinities_without_a_warning() -> None:
    f = gradcli.compile("sum(x*x)", dtype="float32")
    for _ in range(3):
        assert f.value_and_grad(x=[1e300, 1.0])[0] == np.inf
    assert f(x=np.full(50_000, 1e300)) == np.inf
    assert f.at_points(x=np.full((50, 2), 1e300))[0][0] == np.inf
