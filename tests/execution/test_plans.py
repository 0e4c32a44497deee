"""Plans against the evaluator: mostly the same bits, else within what rounding can do (`rounding.py`)."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.questions import value_question
from gradcli.calculator.repeated.compiled import _gradient
from gradcli.execution.compiler import thread_pool
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import steps_of
from gradcli.execution.evaluate import Tape
from tests.benchmarks import gradbench
from tests.support.forced import BLOCKS, patches
from tests.support.rounding import allowed, beyond


def question(text: str, values: dict[str, Any]) -> tuple[Tape, dict[str, Any]]:
    """The tape of value and gradient, and the value of every leaf."""
    found, point = gradcli.compile(text)._question("grad", _gradient, values)
    return found.tape, found.values(point)


def judge(tape: Tape, values: dict[str, Any], plan: Plan) -> bool:
    """Whether the plan gave the evaluator's bits; an assertion fails where it is further off than rounding allows."""
    answer = plan.answer(values)
    assert answer is not None
    rows = allowed(tape, values)
    assert not beyond(answer, rows)
    again = plan.answer(values)
    assert again is not None
    assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(answer, again, strict=True))
    return all(np.array_equal(one, row.value, equal_nan=True) for one, row in zip(answer, rows, strict=True))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, threads and arrays that change from run to run, also in programs of a few entries."""
    patches(monkeypatch, *BLOCKS)


def test_without_sums_bits_are_the_same(small_blocks: None) -> None:
    text = (
        "y = where(x > 0, sigmoid(x)*2, -x/4) + 2*relu(x)*(0.5*x) - tanh(-x)**3\nz = concatenate((y[2:], -y[:2]))\nz[3]"
    )
    tape, values = question(text, {"x": np.linspace(-3, 3, 12).tolist()})
    answer = Plan(tape, threads=2).answer(values)
    assert answer is not None
    for one, other in zip(answer, tape.run(values), strict=True):
        assert np.array_equal(one, other)


# --- what plans do with memory ---------------------------------------------------------------------------------


def events(text: str, values: dict[str, Any]) -> list[Any]:
    return Plan(question(text, values)[0]).schedule.events


def test_constants_are_computed_once() -> None:
    made = events("const n = 50\nT = linspace(0, 1, n)[:, None]**arange(7)\nsum(sin(T @ x))", {"x": [0.1] * 7})
    functions = [op.function for event in made for op in steps_of(event)]
    assert np.power not in functions and np.sin in functions


def test_outputs_that_are_inputs_constants_or_one_array() -> None:
    f = gradcli.compile("x, 2*ones(3), x + 1, (x + 1)[::-1], 1 + x, x[0]")
    x = np.array([1.0, 2.0, 3.0])
    found = f(x=x)
    assert [np.asarray(one).tolist() for one in found] == [[1, 2, 3], [2, 2, 2], [2, 3, 4], [4, 3, 2], [2, 3, 4], 1]
    arrays = [one for one in found if isinstance(one, np.ndarray)]
    for place, one in enumerate(arrays):
        assert one.flags.writeable
        assert not any(np.shares_memory(one, other) for other in [x, *arrays[:place]])


def test_memory_is_used_again() -> None:
    text = "y = x\nfor i in range(40):\n    y = sin(y) + 1\nsum(y)"
    tape = gradcli.compile(text)._question("value", value_question, {"x": np.ones(1000)})[0].tape
    plan = Plan(tape)
    assert plan.answer({"x": np.ones(1000)}) is not None
    assert plan.nbytes <= 2 * 8_064


# --- local rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [3, 3_000])
def test_branches_that_are_not_taken_never_count(bad: float, n: int) -> None:
    x = np.ones(n)
    x[1] = bad
    value, slopes = gradcli.compile("sum(where(abs(x) < 5, x*x, 0))").value_and_grad(x=x)
    assert value == n - 1
    assert slopes["x"].tolist() == [2.0, 0.0, *[2.0] * (n - 2)]
    chosen = gradcli.compile("where(x == 1, 2*x, -x)")(x=x)
    assert np.array_equal(chosen, np.where(x == 1, 2 * x, -x), equal_nan=True)


def test_a_choice_among_numbers_is_a_number() -> None:
    assert gradcli.compile("sum(sigmoid(2*ones(3))*x)")(x=[1.0, 1.0, 1.0]) == pytest.approx(3 / (1 + np.exp(-2)))
    assert gradcli.compile("x + where(ones(3) > 2, 1, 7)")(x=[1.0, 2.0, 3.0]).tolist() == [8, 9, 10]


def test_ties_and_nan_in_a_minimum() -> None:
    f = gradcli.compile("sum(min(X, axis=1))")
    slopes = f.value_and_grad(X=[[1, 1, 2], [3, 2, 5], [np.nan, 1, 1]])[1]["X"]
    assert slopes[:2].tolist() == [[0.5, 0.5, 0], [0, 1, 0]]
    far = f.value_and_grad(X=[[np.inf, 4.0]])[1]["X"]
    assert far.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    "text", ["sum(exp((x[:, None]*ones(50, 60)).T)[3:50, ::-1])", "sum(A @ (x[:, None]*ones(50, 60)))"]
)
def test_what_is_repeated_is_computed_once(text: str) -> None:
    given = {"x": np.linspace(0, 1, 50), **({"A": np.ones((20, 50))} if "A" in text else {})}
    found, point = gradcli.compile(text)._question("value", value_question, given)
    plan = Plan(found.tape)
    judge(found.tape, found.values(point), plan)
    assert plan.schedule.events
    assert not any(60 in one.out.shape for one in plan.schedule.events)


@pytest.mark.parametrize("text", ["sum(sum(P @ W, axis=0)**2)", "sum(sum(W.T @ P.T, axis=1)**2)"])
@pytest.mark.parametrize(
    ("entries", "weight"),
    [
        ([np.inf, 1.0, -1.0], 0.25),
        ([1e308, 1e308, 1.0], 0.0),
        ([1e308, 1e308, 1.0], 1e-309),
        ([-1e308, 1.0, 1.0], 40.0),
    ],
)
def test_a_factor_of_all_terms_is_not_taken_out_of_a_product(text: str, entries: list[float], weight: float) -> None:
    """The cotangent is the same for all rows, or columns: beside it a sum of the entries alone would overflow."""
    tape, values = question(text, {"P": np.array(entries)[:, None], "W": np.full((1, 3), weight)})
    judge(tape, values, Plan(tape))


def test_a_mask_is_not_multiplied_by_ones() -> None:
    """The masks of a minimum pass through a matrix product as sums, in every graph."""
    found = gradcli.compile((gradbench.ROOT / "samples/gradbench/kmeans.grad").read_text("utf-8"), wrt=("C",))
    tape = found._question("grad", _gradient, gradbench.data("kmeans", gradbench.SMALL))[0].tape
    products = [node for node in tape.nodes if node.primitive.name == "matmul"]
    assert len(products) == 2
    assert all(arg.constant is None for node in products for arg in node.args)


def test_gather_and_scatter_by_constant_positions() -> None:
    tape, values = question("sum(take(x, [2, 0, 2, -1])**3) + sum(take(A, [1, 1, 0], axis=1)**2)",
                            {"x": [1.0, 2.0, 3.0, 4.0], "A": [[1.0, 2.0], [3.0, 4.0]]})  # fmt: skip
    judge(tape, values, Plan(tape))
    found = gradcli.compile("sum(take(x, [2, 0, 2, -1])**3)").value_and_grad(x=[1.0, 2.0, 3.0, 4.0])
    assert found[1]["x"].tolist() == [3.0, 0.0, 54.0, 48.0]


# --- what is left to the evaluator --------------------------------------------------------------------------------


def test_errors_are_the_evaluators() -> None:
    f = gradcli.compile("sum(take(x, i))")
    assert f(x=[1.0, 2.0], i=[0, 1]) == 3.0
    with pytest.raises(GradcliError) as caught:
        f(x=[1.0, 2.0], i=[0.5, 1])
    assert caught.value.diagnostics[0].code == "GC406"
    assert caught.value.diagnostics[0].span is not None


def test_float32_and_complex() -> None:
    one = gradcli.compile("sum(sin(x)*x)", dtype="float32").value_and_grad(x=[1.0, 2.0])
    assert one[1]["x"].dtype == np.float32
    assert np.allclose(one[1]["x"], np.sin([1, 2]) + np.cos([1, 2]) * [1, 2], rtol=1e-6)
    value, slopes = gradcli.compile("sum(x*x)", dtype="complex128").value_and_grad(x=[1 + 1j, 2.0])
    assert value == 4  # of the real part
    assert np.allclose(slopes["x"], np.conj([2 + 2j, 4]))  # dL/d(conj z)


# --- claims --------------------------------------------------------------------------------------------------------


CLAIM = "x = [1, 2]\ny = sum(x**2)\nassert hessian(y, x) == 2*eye(len(x))\ny"


def test_claims_limit_no_size_unless_they_are_judged() -> None:
    many = {"x": np.ones(100_000)}
    assert gradcli.compile(CLAIM).value_and_grad(**many)[0] == 100_000
    assert gradcli.grad(CLAIM, at=many).value == 100_000
    with pytest.raises(GradcliError) as caught:
        gradcli.check(CLAIM, at=many)
    assert caught.value.diagnostics[0].code == "GC508"


def test_claims_count_no_nodes_unless_they_are_judged() -> None:
    text = "x = 2\ny = x\nfor i in range(60):\n    y = sin(y)*y\nassert grad(y, x, 3) == 1\ny"
    assert gradcli.evaluate(text, limits="nodes=600").value == gradcli.evaluate(text).value


def test_errors_in_claims_are_told_all_the_same() -> None:
    with pytest.raises(GradcliError) as caught:
        gradcli.evaluate("x = [1, 2]\nassert grad(sum(x), x) == nothing(x)\nsum(x)")
    assert caught.value.diagnostics[0].code == "GC201"


def test_truth_values_are_numbers_as_the_evaluator_gives_them() -> None:
    assert gradcli.compile("x > 1")(x=[1.0, 2.0]).dtype == np.float64
    assert gradcli.compile("x[0] > 1, argmax(x)")(x=[1.0, 2.0]) == (0.0, 1.0)


def test_the_library_has_its_threads_again() -> None:
    found = thread_pool.setters()
    if found is None:
        pytest.skip("NumPy's library is not OpenBLAS")
    get, put = found
    before = get()
    try:
        put(2)
        with thread_pool.one_thread():
            other = thread_pool.one_thread()
            other.__enter__()
            assert get() == 1
        assert get() == 1
        other.__exit__(None, None, None)
        assert get() == 2
    finally:
        put(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_threads_of_its_own() -> None:
    def met() -> bool:
        both = threading.Barrier(2)

        def meet() -> None:
            both.wait(10)

        thread_pool.together([meet, meet])
        return True

    assert met()
    child = os.fork()
    if not child:
        os._exit(0 if met() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
