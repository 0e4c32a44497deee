"""Ties and masks in plans, with the evaluator's bits: whether any entry counts is asked of truth values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

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
    """Whether any entry of a column counts is asked of truth values."""
    random = np.random.default_rng(1)
    text = "const X = zeros(5, 4)\nC = zeros(3, 4)\nd = sum(X**2, axis=1)[:, None] - 2*X @ C.T + sum(C**2, axis=1)\n"
    plan = check(text + "sum(min(d, axis=1))", {"X": random.normal(size=(3000, 4)), "C": random.normal(size=(30, 4))})
    large = [op for op in steps(plan) if op.args and op.args[0].size >= 90_000]
    assert [op.function for op in large if op.kind == REDUCE and op.args[0].dtype == BOOL] == [np.logical_or]


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
    outputs = [answer, *([ops[-1].out] if again else []), *([total] if kept else [])]
    return simplified(ops, outputs)


def test_whether_any_is_asked_of_truth_values() -> None:
    any_, view = made(np.not_equal, 0)
    assert (any_.kind, any_.function, any_.out.dtype, any_.out.serial) == (REDUCE, np.logical_or, BOOL, 1 << 40)
    assert view.kind == VIEW and view.args == (any_.out,) and view.out.op is view


@pytest.mark.parametrize(
    ("question_of", "number", "again", "kept"),
    [(np.not_equal, 1, False, False), (np.greater, 0, False, False), (np.not_equal, 0, True, False),
     (np.not_equal, 0, False, True)],
)  # fmt: skip
def test_sums_that_are_read_otherwise_stay(question_of: Any, number: float, again: bool, kept: bool) -> None:
    found = made(question_of, number, again, kept)
    assert [op.kind for op in found][:2] == [CAST, REDUCE] and found[1].function is np.add
