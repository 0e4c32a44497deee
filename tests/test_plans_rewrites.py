"""What plans leave out, and work that threads share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradcli
from gradcli.calculator.repeated.compiled import _gradient
from gradcli.execution.compiler import demand, thread_pool
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import Loop
from tests.forced import busy_helper
from tests.test_plans import judge, question

# --- what is left out ---------------------------------------------------------------------------


def test_entries_that_no_output_reads_are_not_computed() -> None:
    x = np.linspace(0, 1, 100_000)
    tape, values = question("sum((sin(x)*exp(x))[10:20]**2)", {"x": x})
    plan = Plan(tape)
    judge(tape, values, plan)
    assert [one.out.size for one in plan.schedule.events if one.out.size > 10] == [100_000]  # the gradient's zeros


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("sum(exp(x)[::7][3:9])", 80),
        ("y = concatenate((x[:5]*x[5:10], tanh(x), x[-4:]))\ny[1]*y[9] + y[7]", 90),
        ("y = concatenate((x[:5]*x[5:10], tanh(x), x[-4:]))\ny[-2]*y[-1] + y[-7]", 90),
        ("sum(concatenate((x[:10], zeros(4990)))*sin(x))", 64),
        ("sum(cos(concatenate((x[:10], zeros(4990))))[5:15]*x[5:15])", 80),
        ("A = x[:, None]*ones(5000, 3)\nsum(sin(A)[7:9, 1:].T)", 64),
        ("sum(cumsum(x)[:3])", 5_100),
        ("y = x\nfor i in range(5):\n    y = concatenate((y[:1], y[:-1]*cos(y[1:])))\ny[30]", 128),
        ("y = where(x > 0, x, 0)\ny[2] + y[3]", 64),
    ],
)
def test_ranges(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "WORTH", 1)
    tape, values = question(text, {"x": np.sin(np.arange(5_000.0)) + 0.1})
    plan = Plan(tape, threads=1)
    judge(tape, values, plan)
    steps = [op for one in plan.schedule.events for op in (one.ops if isinstance(one, Loop) else [one])]
    assert sum(op.out.size for op in steps if op.kind not in ("place", "added", "join")) <= most, steps


def test_zeros_by_construction_stay_zeros_beside_an_infinity() -> None:
    x = np.ones(20_000)
    x[5] = np.inf
    slopes = gradcli.compile("sum((x*x)[10:20])").value_and_grad(x=x)[1]["x"]
    assert slopes[10:20].tolist() == [2.0] * 10
    assert not slopes[:10].any()
    assert not slopes[20:].any()


@pytest.mark.parametrize(
    ("text", "n"),
    [("shift = detach(max(x))\nshift + log(sum(exp(x - shift)))", 100_000), ("sum(sin(x)[:5])", 100_000)],
)
def test_what_a_plan_does_better_is_left_to_a_plan(text: str, n: int) -> None:
    """Exponentials are kept from pass to pass; entries that nobody reads are left out."""
    f = gradcli.compile(text)
    given = {"x": np.linspace(-1, 1, n)}
    f.value_and_grad(**given)
    found, point = f._question("grad", _gradient, given)
    (plan,) = found._plans.values()
    assert isinstance(plan, Plan)
    judge(found.tape, found.values(point), plan)


# --- work that threads share -------------------------------------------------------------------------------------------


def test_a_thread_that_is_not_awake_is_not_waited_for() -> None:
    with busy_helper():
        done: list[int] = []
        thread_pool.together([lambda: done.append(threading.get_ident())] * 2)
        assert done == [threading.get_ident()] * 2
    thread_pool.together([int, int])  # what is left in its queue does no harm


def test_without_threads_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    alone = ThreadPoolExecutor(3)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    monkeypatch.setattr(thread_pool, "helpers", lambda: alone)
    done: list[int] = []
    thread_pool.together([lambda: done.append(1), lambda: done.append(2), lambda: done.append(3)])
    assert done == [1, 2, 3]


def test_an_error_in_a_thread_is_told() -> None:
    def fail() -> None:
        raise MemoryError("full")

    for works in ([int, fail], [fail, int], [fail]):
        with pytest.raises(MemoryError):
            thread_pool.together(works)
