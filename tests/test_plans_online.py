"""Exponentials beside the largest entry of a block, against the evaluator, as far off as rounding allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.plans import blocks, schedule
from gradcli.execution.plans.memory import laid_out
from gradcli.execution.plans.numpy_plan import Plan
from gradcli.execution.plans.online import NEAR, references, rescaled
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.values import ONLINE, RESCALED, Op, Value
from tests.forced import BLOCKS, patches
from tests.rounding import allowed, beyond
from tests.test_plans import question

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW, COLUMNS = (97,), (60, 3)
TEXTS = {
    "by hand": "x = zeros(5)\nh = detach(max(x))\nh + log(sum(exp(x - h)))",
    "logsumexp": "x = zeros(5)\nlogsumexp(x)",
    "softmax": "x = zeros(5)\nw = arange(len(x)) + 1\nsum(softmax(x)*w)",
    "both": "x = zeros(5)\nw = sin(arange(len(x)) + 1)\np = softmax(x)\nsum(p*p*w) + logsumexp(x)",
    "computed": "x = zeros(5)\nlogsumexp(3*x + sin(x))",
    "columns": "x = zeros(5, 3)\nsum(logsumexp(x, axis=0)**2)",
    "columns of softmax": "x = zeros(5, 3)\nw = sin(arange(len(x)))[:, None]\nsum(softmax(x, axis=0)*w)",
    "all of a matrix": "x = zeros(5, 3)\nlogsumexp(x, axis=(0, 1))",
    "small": "x = zeros(5)\n1e-300*logsumexp(x)",
    "large": "x = zeros(5)\n1e300*logsumexp(x)",
}


def points(shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Entries of all sizes, with infinities and NaN in a block, in some, in all."""
    normal = np.random.default_rng(5).normal(size=shape)
    rows = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    yield "near 0", 3 * normal
    yield "far above", normal + 1000
    yield "far below", normal - 1000
    yield "near and far", np.where(rows % 7 < 3, normal, 800 * normal)
    yield "rising", normal + np.linspace(-60, 60, shape[0]).reshape(rows.shape)
    yield "wide", 1e3 * normal
    yield "huge", 1e307 * normal
    yield "equal", np.full(shape, 5.0)
    yield "at the edge of near", np.where(rows % 2, 32.0, np.nextafter(32.0, 33.0)) + 0 * normal
    yield "-inf in some blocks", np.where(rows < shape[0] // 2, -np.inf, normal)
    yield "-inf beside low ones", np.where(rows < shape[0] // 2, -np.inf, normal - 900)
    yield "-inf in each block", np.where(rows % 2, -np.inf, normal)
    yield "one inf", np.where(rows == 3, np.inf, normal)
    yield "inf beside wide ones", np.where(rows == 3, np.inf, 400 * normal)
    yield "one NaN", np.where(rows == shape[0] - 1, np.nan, normal)
    yield "all -inf", np.full(shape, -np.inf)
    yield "all inf", np.full(shape, np.inf)


CASES = {f"{name}, {what}": (text, x) for name, text in TEXTS.items()
         for what, x in points(COLUMNS if "3)" in text.partition("\n")[0] else ROW)}  # fmt: skip


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row and threads, also in programs of a few entries; a few columns are never cut."""
    patches(monkeypatch, *BLOCKS, (schedule, "FEWEST_ROWS", 4))


def steps(plan: Plan, kind: str) -> list[Op]:
    return [op for event in plan.schedule.events if isinstance(event, Loop) for op in event.ops if op.kind == kind]


def loops(plan: Plan) -> list[Loop]:
    return [event for event in plan.schedule.events if isinstance(event, Loop)]


def judge(text: str, values: dict[str, Any], joined: int, dtype: str = "float64") -> list[Any]:
    """The answer of a plan, if it is the same on one thread and on two, twice, and as near to the evaluator's as rounding allows."""
    tape, held = question(text, values)
    answers = []
    for threads in (1, 2):
        plan = Plan(tape, dtype, threads=threads)
        assert len(steps(plan, ONLINE)) == joined
        answers += [plan.answer(held), plan.answer(held)]
    first = answers[0]
    assert first is not None
    for other in answers[1:]:
        assert other is not None
        assert all(np.array_equal(one, again, equal_nan=True) for one, again in zip(first, other, strict=True))
    assert not beyond(first, allowed(tape, held, dtype))
    return list(first)


@pytest.mark.parametrize("case", CASES)
def test_as_near_as_rounding_allows(case: str, small_blocks: None) -> None:
    text, x = CASES[case]
    judge(text, {"x": x}, 1)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith(("small", "large"))])
def test_float32(case: str, small_blocks: None) -> None:
    text, x = CASES[case]
    with np.errstate(over="ignore"):
        judge(text, {"x": x.astype(np.float32)}, 1, "float32")


@pytest.mark.parametrize("what", [what for what, _ in points(COLUMNS)])
def test_wide_matrices_are_cut_within_their_rows(what: str, small_blocks: None) -> None:
    """Each row has a largest entry of its own, in a block as in all."""
    x = CASES[f"columns, {what}"][1].T.copy()
    judge("x = zeros(3, 5)\nw = sin(arange(len(x)))\nsum(w*logsumexp(x, axis=1))", {"x": x}, 1)


@pytest.mark.parametrize("x", [1000.0, -1000.0, 0.0])
def test_digits_are_kept_where_the_entries_are_far_from_0(x: float, small_blocks: None) -> None:
    """Rounding allows for far more than what comes out: n roundings of sums, against those of some terms."""
    values = x + 3 * np.random.default_rng(1).normal(size=97)
    value, gradient = judge(TEXTS["logsumexp"], {"x": values}, 1)
    exact = np.exp(values - values.max())
    assert value == pytest.approx(values.max() + np.log(exact.sum()), rel=4e-16)
    np.testing.assert_allclose(gradient, exact / exact.sum(), rtol=4e-15)


def test_small_shares_keep_their_digits(small_blocks: None) -> None:
    """A block whose largest entry is near 0 beside one that is far above, and an infinity below."""
    values = np.concatenate([np.linspace(-30, 30, 50), [650.0], np.linspace(-600, -580, 20), [-np.inf]])
    _, gradient = judge(TEXTS["logsumexp"], {"x": values}, 1)
    exact = np.exp(values - 650)
    assert exact[0] > 0
    np.testing.assert_allclose(gradient, exact, rtol=1e-12)


@pytest.mark.parametrize("what", ["one inf", "inf beside wide ones", "one NaN", "all -inf", "all inf"])
def test_what_is_not_finite_has_the_bits_of_the_evaluator(what: str, small_blocks: None) -> None:
    """Then the loop that waits for the largest entry runs."""
    _, x = CASES[f"logsumexp, {what}"]
    tape, held = question(TEXTS["logsumexp"], {"x": x})
    answer = Plan(tape, threads=2).answer(held)
    assert answer is not None
    for one, other in zip(answer, tape.run(held, backend="numpy"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_loop_less_and_nothing_stored_for_the_value_alone() -> None:
    """Entries are read once; the exponentials of a block are written over those of the one before."""
    x = np.random.default_rng(0).normal(size=400_000)
    f = gradcli.compile("x = zeros(5)\nlogsumexp(x)")
    tape, held = question("x = zeros(5)\nlogsumexp(x)", {"x": x})
    plan = Plan(tape, threads=2)
    first, waiting, last = loops(plan)
    assert first.settles is None and waiting.settles is not None and last.settles is None
    assert [op.kind for op in last.ops] == [RESCALED]
    plan.run([x])
    space = plan.workspace()
    assert space.nbytes < x.nbytes  # blocks of both threads
    found = f.value_and_grad(x=x)
    assert found[0] == pytest.approx(float(np.log(np.exp(x).sum())), rel=1e-14)


def test_the_loop_that_waits_runs_where_it_must(small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only there."""
    tape, held = question(TEXTS["logsumexp"], {"x": np.linspace(-3, 3, 97)})
    plan = Plan(tape, threads=1)
    ran = []
    work = blocks.Blocks._work
    monkeypatch.setattr(blocks.Blocks, "_work", lambda one: (ran.append(one.loop.settles is not None), work(one)))
    plan.answer(held)
    assert ran == [False, False]
    ran.clear()
    plan.answer({"x": np.where(np.arange(97) == 5, np.inf, 1.0)})
    assert ran == [False, True, False]
    ran.clear()
    again = plan.answer(held)
    assert ran == [False, False]
    fresh = Plan(tape, threads=1).answer(held)
    assert again is not None and fresh is not None
    np.testing.assert_array_equal(again[1], fresh[1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = zeros(5)\nh = detach(max(x))\nsum(exp(x - h))", "they are the gradient, as they stand"),
        (
            "x = zeros(5)\nh = detach(max(x))\ne = exp(x - h)\nlog(sum(e)) + sum(e[:-1]*e[1:])",
            "others than a block's are read",
        ),
        ("x = zeros(5)\nh = detach(max(x))\nlog(sum(exp(x - h))) + sum((x - h)**4)", "the difference is read too"),
        ("x = zeros(5)\nw = sin(arange(len(x)) + 1)\nsum(log_softmax(x)*w)", "the difference is read later"),
        ("x = zeros(5)\nh = detach(min(x))\nlog(sum(exp(x - h)))", "the smallest entry"),
        ("x = zeros(5)\nh = detach(max(x)) + 1\nlog(sum(exp(x - h)))", "another number"),
        ("x = zeros(5)\nh = detach(max(sin(x)))\nlog(sum(exp(x - h)))", "the largest of another array"),
        ("x = zeros(5)\nlog(sum(exp(x)))", "nothing is subtracted"),
        (
            "x = zeros(5)\nX = reshape(x[:81], (9, 9))\nh = detach(max(X, axis=0))[:, None]\nsum(log(sum(exp(X - h), axis=0)))",
            "other rows'",
        ),
        ("x = zeros(5)\nlogsumexp(x)*logsumexp(-x)", "one loop has the sums of two"),
    ],
)
def test_others_stay_as_they_are(text: str, why: str, small_blocks: None) -> None:
    x = np.random.default_rng(3).normal(size=97)
    tape, held = question(text, {"x": x})
    plan = Plan(tape, threads=2)
    assert not steps(plan, ONLINE), why
    answer = plan.answer(held)
    assert answer is not None
    for one, other in zip(answer, tape.run(held, backend="numpy"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize(
    "text",
    ["A = zeros(5, 4)\nw = zeros(4)\nlogsumexp(A @ w)", "A = zeros(5, 4)\nw = zeros(5)\nsum((softmax(w) @ A)**2)"],
)
def test_blocks_of_one_length_where_a_product_reads_them(text: str) -> None:
    """A matrix product asks for shorter blocks than exponentials; those have to be the same in all loops."""
    random = np.random.default_rng(2)
    values = {"A": random.normal(size=(300_003, 10)), "w": random.normal(size=300_003 if "softmax" in text else 10)}
    tape, held = question(text, values)
    plan = Plan(tape, threads=2)
    first, waiting, *others = loops(plan)
    assert steps(plan, ONLINE) and waiting.settles is not None
    assert {first.rows} == {loop.rows for loop in others} and first.rows < waiting.rows
    answer = plan.answer(held)
    assert answer is not None
    assert not beyond(answer, allowed(tape, held))


def test_what_two_loops_may_write_has_one_place() -> None:
    """Between them others have come and gone."""
    dtype = np.dtype("float64")
    both, passing, other = [Value(place, (8,), dtype) for place in range(3)]
    work = [([], [passing], None), ([], [both], None), ([passing], [other], None), ([other], [both], None)]
    first = laid_out(work[:2], lambda value: value.nbytes, {0, 1})
    whole = laid_out([*work, ([both], [], None)], lambda value: value.nbytes, set())
    assert whole.offsets[both.serial] == first.offsets[both.serial] != first.offsets[passing.serial]


def test_references() -> None:
    """0 where all of a block is near it, else its largest entries, which are never infinite."""
    near = NEAR[8]
    peaks = np.array([[1.0, -near], [near, 2 * near], [-np.inf, 0.0], [-np.inf, 50.0], [np.inf, 50.0], [np.nan, 1.0]])
    expected = [[0, 0], [near, 2 * near], [0, 0], [0, 50], [0, 50], [0, 1]]
    np.testing.assert_array_equal(references(peaks), expected)
    assert references(np.array([3.0, 40.0])).tolist() == [0.0, 40.0]
    assert references(np.array([7.0, 9.0], np.float32)).tolist() == [0.0, 9.0]


@pytest.mark.parametrize("function", [np.multiply, np.divide])
@pytest.mark.parametrize("beside", [1e-300, 1e300, 3.0, 0.0, -2.0, np.inf, np.nan])
@pytest.mark.parametrize("factor", [1e-300, 1e13, 1.0, 0.0])
def test_factors_that_leave_the_range_are_taken_one_by_one(function: Any, beside: float, factor: float) -> None:
    dtype = np.dtype("float64")
    raw, by, other, out = [Value(place, (4,), dtype) for place in range(4)]
    entries, found = np.array([1e-30, 0.5, 1.0, 0.0]), np.empty(4)
    step = rescaled(Op(RESCALED, function, (raw, by, other), None, out, None))
    with np.errstate(all="ignore"):
        step(entries, np.array([factor]), np.array(beside), found)
        one_by_one = function(entries * factor, beside)
        exact = function(entries.astype(np.longdouble) * factor, beside).astype(float)  # its range is wider
    near = [np.isclose(found, other, 5e-16, 0, equal_nan=True) for other in (one_by_one, exact)]
    assert np.all(near[0] | near[1]), (found, one_by_one, exact)


def test_the_report_says_so() -> None:
    """The loop that waits is named with its condition, and the pass."""
    x = np.random.default_rng(0).normal(size=400_000)
    report = gradcli.compile("x = zeros(5)\nlogsumexp(x)").plan(x=x)
    text = str(report)
    assert "exp beside the largest entry of the block" in text
    assert "only where #1.1 is not finite" in text
    assert "factor of the block, multiply" in text
    assert [one.what for one in report.passes if one.name == "online"]
