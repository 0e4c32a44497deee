"""How plans run: arrays given again, memory of outputs, loops that follow each other on several threads."""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.questions import value_question
from gradcli.execution.compiler import schedule
from gradcli.execution.compiler.numpy_plan import Plan
from tests.execution.test_plans import judge, question
from tests.support.forced import BLOCKS, busy_helper, patches
from tests.support.passes import without

LOOPS = "M = detach(max(x))\ne = exp(x - M)\nS = sum(e)\np = e/S\nM + log(S) + sum(p**2)*sum(x)"


def numbers(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape)


def tape_of(text: str, **values: Any) -> Any:
    """The tape of the outputs alone."""
    return gradcli.compile(text)._question("value", value_question, values)[0].tape


# --- what is given again ---------------------------------------------------------------------------------------


def test_arrays_given_again_give_the_same_and_others_are_read() -> None:
    f = gradcli.compile("sum(sin(A @ x)**2)")
    A, x = numbers(30, 20), numbers(20)
    first = f.value_and_grad(A=A, x=x)
    for given in (x, x.tolist(), x.astype("f4").astype("f8"), x[::1], np.repeat(x, 2)[::2]):
        value, slopes = f.value_and_grad(A=A, x=given)
        assert value == pytest.approx(first[0], rel=1e-5)
        assert slopes["x"] == pytest.approx(first[1]["x"], rel=1e-4, abs=1e-4)
    again = f.value_and_grad(x=x, A=A)
    assert again[0] == first[0] and np.array_equal(again[1]["A"], first[1]["A"])
    whole = f.value_and_grad(A=np.ones((30, 20), int), x=np.ones(20))
    assert whole[0] == pytest.approx(30 * math.sin(20) ** 2)
    with pytest.raises(GradcliError, match="unknown leaf"):
        f.value_and_grad(A=A, x=x, y=x)
    other = f.value_and_grad(A=numbers(3, 2), x=numbers(2))
    assert other[1]["A"].shape == (3, 2)


def test_the_short_way_is_taken_for_arrays_of_the_right_types_only(monkeypatch: pytest.MonkeyPatch) -> None:
    f = gradcli.compile("sum(sin(x)*a)", wrt=("x",))
    x = numbers(50)
    for _ in range(2):
        expected = f.value_and_grad(x=x, a=np.array(2.0))
    asked: list[str] = []
    usual = f._question
    monkeypatch.setattr(f, "_question", lambda *args: asked.append(args[0]) or usual(*args))
    assert f.value_and_grad(a=np.array(2.0), x=x)[0] == expected[0] and not asked
    assert f.value_and_grad(x=x, a=2.0)[0] == expected[0] and asked == ["grad"]
    assert f.value_and_grad(x=x.astype("f4"), a=np.array(2.0))[0] == pytest.approx(expected[0], rel=1e-4)
    assert f.value_and_grad(x=x[:20], a=np.array(2.0))[1]["x"].shape == (20,)
    assert asked == ["grad"] * 3


def test_static_values_are_looked_at_each_time() -> None:
    f = gradcli.compile("const n = 3\nsum(linspace(0, 1, n)*x[0])", wrt=("x",))
    x = numbers(4)
    for n in (3, 5, 3, 4, 4, 3):
        assert f.value_and_grad(n=n, x=x)[0] == pytest.approx(n / 2 * x[0])


def test_what_a_plan_refuses_the_evaluator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    f = gradcli.compile("sum(sin(x)**2)")
    x = numbers(50)
    for _ in range(2):
        expected = f.value_and_grad(x=x)

    def full(self: Plan, inputs: Any) -> Any:
        raise MemoryError("full")

    monkeypatch.setattr(Plan, "run", full)
    value, slopes = f.value_and_grad(x=x)
    assert value == pytest.approx(expected[0]) and slopes["x"] == pytest.approx(expected[1]["x"])


# --- outputs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 50_000, 3_000_000])
def test_outputs_have_memory_of_their_own(n: int) -> None:
    """Also where they are one array in the plan, and where they are so long that their memory is used again."""
    x = np.arange(n) / n
    plan = Plan(tape_of("y = 2*x\ny, x + 1, y, y[::-1], 2*x", x=x), threads=2)
    first = plan.run([x])
    kept = [one.copy() for one in first]
    second = plan.run([x + 1])
    for place, one in enumerate([*first, *second]):
        assert one.flags.writeable and one.flags.c_contiguous
        assert not any(np.shares_memory(one, other) for other in [*first, *second][:place])
    assert all(np.array_equal(one, other) for one, other in zip(first, kept, strict=True))


STENCILS = [  # scripts, and how many parts are added up where the gradient stands
    ("sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", 2),
    ("sum((x[2:] - 2*x[1:-1] + x[:-2])**3)", 3),
    ("sum(sin(x[5:-2])*x[3:-4])", 2),
    ("sum(exp(x[7:]))", 1),
    ("sum((x[1:, :] - x[:-1, :])**2*cos(x[1:, :]))", 2),
    ("sum(sin(x[300:])*x[:-300])", 0),  # most rows of a block would wait
    ("y = sin(x[1:])*x[:-1]\nsum(y*y) + sum(cumsum(y))", None),
]


@pytest.mark.parametrize("entries", [70, 200, 900])
@pytest.mark.parametrize(("text", "parts"), STENCILS)
def test_parts_that_overlap_are_added_up_in_the_loop(
    text: str, parts: int | None, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any length of a block and any number of threads, with the same bits as by steps on whole arrays."""
    lengths = [(schedule, "ENTRIES", entries), (schedule, "MOST_ENTRIES", entries), (schedule, "FEWEST_ROWS", 9)]
    patches(monkeypatch, *BLOCKS, *lengths)
    x = numbers(701, 3) if ", :" in text else numbers(2_000)
    tape, values = question(text, {"x": x})
    with without("overlaps"):
        expected = Plan(tape, threads=1).answer(values)
    for threads in (1, 3):
        plan = Plan(tape, threads=threads)
        found = plan.workspace().overlaps
        assert parts is None or [len(one.parts) for one in found] == ([parts] if parts else [])
        for _ in range(2):
            for one, other in zip(plan.answer(values), expected, strict=True):
                assert np.array_equal(one, other)
    judge(tape, values, plan)


def test_a_plan_keeps_nothing_of_a_run() -> None:
    """Neither its inputs nor its outputs, nor views of them."""
    for text in (LOOPS, "sum((A.T @ A[:, ::-1])**2)*mean(A)", "A[1:, 0]*A[:-1, 0]"):
        A = numbers(700_001) if text is LOOPS else numbers(20_000, 8)
        values = {"x" if text is LOOPS else "A": A}
        tape = tape_of(text, **values) if text[0] == "A" else question(text, values)[0]
        plan = Plan(tape, threads=2)
        given = A + 1
        before = sys.getrefcount(given)
        found = [weakref.ref(one) for one in plan.run([given])]
        assert sys.getrefcount(given) == before
        assert all(one() is None for one in found)


# --- rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 64, 65, 100, 1000, 5000])
@pytest.mark.parametrize("which", ["min", "max"])
def test_least_and_largest_entries_of_rows(which: str, width: int) -> None:
    X = numbers(400, width)
    X[3, width // 2] = X[5, 0] = np.nan
    X[7, -1], X[8, 0], X[9] = np.inf, -np.inf, np.inf
    X[11, :] = X[11, 0]  # ties
    X[13, ::2] = -1e300
    plan = Plan(tape_of(f"{which}(-X, axis=1), {which}(sin(X), axis=1)", X=X), threads=2)
    with np.errstate(invalid="ignore"):
        for found, expected in zip(plan.run([X]), (-X, np.sin(X)), strict=True):
            assert np.array_equal(found, getattr(expected, which)(1), equal_nan=True)


# --- loops on several threads ----------------------------------------------------------------------------------


def test_results_do_not_depend_on_threads() -> None:
    tape, values = question(LOOPS, {"x": numbers(700_001)})
    judge(tape, values, Plan(tape, threads=1))
    found = [Plan(tape, threads=threads).run([values["x"]]) for threads in (1, 2, 3, 5)]
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_a_plan_whose_threads_sleep_gives_the_same() -> None:
    """The thread that should help is busy: the caller does all the work."""
    tape, values = question(LOOPS, {"x": numbers(700_001)})
    plan = Plan(tape, threads=2)
    expected = plan.run([values["x"]])
    with busy_helper():
        found = plan.run([values["x"]])
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_after_an_error_in_a_block_a_plan_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcli.execution.compiler import workspace

    tape, values = question(LOOPS, {"x": numbers(700_001)})
    plan = Plan(tape, threads=2)
    expected = plan.run([values["x"]])
    usual, calls = workspace.BoundSteps.run, iter(range(100))

    def fail(self: Any, *args: Any) -> None:
        if next(calls) == 3:
            raise MemoryError("full")
        usual(self, *args)

    monkeypatch.setattr(workspace.BoundSteps, "run", fail)
    with pytest.raises(MemoryError):
        plan.run([values["x"]])
    monkeypatch.setattr(workspace.BoundSteps, "run", usual)
    assert all(np.array_equal(one, other) for one, other in zip(plan.run([values["x"]]), expected, strict=True))


@pytest.mark.parametrize("part", ["[1:, ::-1]", "[::-1]", "[:, ::-1]", "[1:-1]"])
def test_a_part_in_another_order_is_copied(part: str) -> None:
    """With columns reversed it was taken for the rows themselves: a wrong gradient."""
    x = numbers(40_000, 3)
    tape, values = question(f"sum(sin(x{part})*2)", {"x": x})
    found, right = Plan(tape, threads=2).answer(values), tape.run(values, backend="numpy")
    assert found is not None
    np.testing.assert_allclose(found[1], right[1], rtol=1e-13, atol=1e-300)
