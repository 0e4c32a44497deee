"""Sums of truth values in plans: which entries tie and whether any counts, with the evaluator's bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.execution.compiler.emit_numpy import counted, ties
from gradcli.execution.compiler.ir import CAST, ENTRY, REDUCE, VIEW, Op, PlanValue
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import BlockLoop
from gradcli.execution.compiler.simplify import simplified
from tests.execution.test_plans import question
from tests.support.forced import BLOCKS, patches

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOAT, BOOL = np.dtype("float64"), np.dtype(bool)
TEXTS = {
    "rows": "x = zeros(5, 4)\nw = sin(arange(len(x)))\nsum(w*min(x, axis=1))",
    "columns": "x = zeros(5, 4)\nsum(max(x, axis=0)**3)",
    "all": "x = zeros(5, 4)\nexp(max(x))",
    "both": "x = zeros(5, 4)\nsum(max(x, axis=1)) - 2*sum(min(x, axis=0)) + min(x)",
    "branches": "x = zeros(5, 4)\nw = zeros(4)\nsum(where(x > 0.5, log(x*w), 0))",
    "distances": "x = zeros(5, 4)\nw = zeros(4)\nsum(min((x - w)**2, axis=1))",
}


def points(shape: tuple[int, int]) -> Iterator[tuple[str, Any]]:
    random = np.random.default_rng(4)
    x = random.normal(size=shape)
    yield "no ties", x
    yield "many ties", np.rint(x)
    yield "all alike", np.ones(shape)
    yield "none and two in a block", np.where(np.arange(shape[0])[:, None] == 3, 9.0, np.minimum(x, 1))
    yield "NaN", np.where(x > 1.5, np.nan, np.rint(x))
    yield "infinities", np.where(x > 1, np.inf, np.where(x < -1, -np.inf, x))
    yield "zeros of both signs", np.where(x > 0, 0.0, -0.0)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    patches(monkeypatch, *BLOCKS)


def steps(plan: Plan) -> list[Op]:
    return [op for event in plan.schedule.events for op in (event.ops if isinstance(event, BlockLoop) else [event])]


def check(text: str, values: dict[str, Any]) -> Plan:
    """A plan whose gradient has the bits of the evaluator, but for sums of floats."""
    tape, held = question(text, values)
    plan = Plan(tape, threads=2)
    answer = plan.answer(held)
    assert answer is not None
    for one, other in zip(answer, tape.run(held, backend="numpy"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-300, equal_nan=True)
    return plan


@pytest.mark.parametrize("what", [what for what, _ in points((40, 6))])
@pytest.mark.parametrize("text", TEXTS)
def test_as_the_evaluator(text: str, what: str, small_blocks: None) -> None:
    x = dict(points((40, 6)))[what]
    values = {"x": x, "w": np.linspace(-1, 2, 6)} if "w = zeros" in TEXTS[text] else {"x": x}
    with np.errstate(all="ignore"):
        check(TEXTS[text], values)


def test_no_array_of_zeros_and_ones_is_made() -> None:
    """Ties are counted, and whether any entry of a column counts is asked of truth values."""
    random = np.random.default_rng(1)
    text = "const X = zeros(5, 4)\nC = zeros(3, 4)\nd = sum(X**2, axis=1)[:, None] - 2*X @ C.T + sum(C**2, axis=1)\n"
    plan = check(text + "sum(min(d, axis=1))", {"X": random.normal(size=(3000, 4)), "C": random.normal(size=(30, 4))})
    large = [op for op in steps(plan) if op.args and op.args[0].size >= 90_000]
    assert not [op for op in large if op.kind == CAST]
    assert [op.function for op in large if op.kind == REDUCE and op.args[0].dtype == BOOL] == [np.add, np.logical_or]


def test_parts_of_lanes_are_counted_one_by_one() -> None:
    """As many ties as lanes do not mean one in each, where a block holds a part of them."""
    x, best, out, total = [PlanValue(place, (4, 2), BOOL) for place in range(4)]
    marks = PlanValue(5, (4, 2), BOOL)
    marks.op = Op(ENTRY, ties, (x, best), None, marks, None)
    step = counted(Op(REDUCE, np.add, (marks,), (0,), PlanValue(6, (2,), FLOAT), None))
    found = np.empty(2)
    step(np.array([[True, False], [True, False]]), found)
    assert found.tolist() == [2, 0]
    step(np.array([[True, False], [False, False], [False, True], [False, False]]), found)
    assert found.tolist() == [1, 1]
    step(np.array([[True, False], [True, False], [False, True], [False, False]]), found)
    assert found.tolist() == [2, 1]


def made(question_of: Any, number: float, again: bool = False, kept: bool = False) -> list[Op]:
    """A sum of truth values, a view of it, and a question that is asked of that."""
    marks, counts, total, view, zero, answer = [
        PlanValue(place, shape, dtype)
        for place, (shape, dtype) in enumerate(
            [((4, 2), BOOL), ((4, 2), FLOAT), ((2,), FLOAT), ((1, 2), FLOAT), ((1, 2), FLOAT), ((1, 2), BOOL)]
        )
    ]
    zero.number = np.float64(number)
    ops = [
        Op(CAST, FLOAT, (marks,), None, counts, None),
        Op(REDUCE, np.add, (counts,), (0,), total, None),
        Op(VIEW, "reshape", (total,), (1, 2), view, None),
        Op(ENTRY, question_of, (view, zero), None, answer, None),
    ]
    if again:
        ops.append(Op(ENTRY, np.negative, (total,), None, PlanValue(7, (2,), FLOAT), None))
    for op in ops:
        op.out.op = op
    return simplified(ops, [answer, *([total] if kept else [])], iter(range(100, 110)))


def test_whether_any_is_asked_of_truth_values() -> None:
    any_, view = made(np.not_equal, 0)
    assert (any_.kind, any_.function, any_.out.dtype, any_.out.serial) == (REDUCE, np.logical_or, BOOL, 100)
    assert view.kind == VIEW and view.args == (any_.out,) and view.out.op is view


@pytest.mark.parametrize(
    ("question_of", "number", "again", "kept"),
    [(np.not_equal, 1, False, False), (np.greater, 0, False, False), (np.not_equal, 0, True, False),
     (np.not_equal, 0, False, True)],
)  # fmt: skip
def test_sums_that_are_read_otherwise_stay(question_of: Any, number: float, again: bool, kept: bool) -> None:
    found = made(question_of, number, again, kept)
    assert [op.kind for op in found][:2] == [CAST, REDUCE] and found[1].function is np.add


@pytest.mark.parametrize(("axis", "counted_at_once"), [(1, True), (0, False)])
def test_ties_are_counted_along_their_lanes_only(axis: int, counted_at_once: bool) -> None:
    """Across lanes an entry may be the extreme of several, and another one of none."""
    x, best, column, marks, counts, total = [
        PlanValue(place, shape, dtype)
        for place, (shape, dtype) in enumerate(
            [((3, 3), FLOAT), ((3,), FLOAT), ((3, 1), FLOAT), ((3, 3), BOOL), ((3, 3), FLOAT), ((3,), FLOAT)]
        )
    ]
    ops = [
        Op(REDUCE, np.maximum, (x,), (1,), best, None),
        Op(VIEW, "reshape", (best,), (3, 1), column, None),
        Op(ENTRY, ties, (x, column), None, marks, None),
        Op(CAST, FLOAT, (marks,), None, counts, None),
        Op(REDUCE, np.add, (counts,), (axis,), total, None),
    ]
    for op in ops:
        op.out.op = op
    found = simplified(ops, [total], iter(range(100, 110)))
    assert (CAST not in [op.kind for op in found]) == counted_at_once
    assert found[-1].args == ((marks,) if counted_at_once else (counts,))
