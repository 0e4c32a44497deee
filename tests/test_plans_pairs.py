"""Programs over all pairs of entries: short steps link both axes of a matrix, large ones are cut all the same."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.execution.compiler import schedule
from gradcli.execution.compiler.ir import ENTRY, REDUCE, Op, Value
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import Loop, follows
from tests.test_plans import judge, question

TEXTS = {
    "kernel": "x = zeros(3)\nsum(exp(-(x[:, None] - x[None, :])**2))",
    "distances": "x = zeros(3, 2)\nsum(sqrt(1 + sum((x[:, None, :] - x[None, :, :])**2, axis=2)))",
    "both sums": "x = zeros(3)\nK = exp(-(x[:, None] - x[None, :])**2)\nsum(sum(K, axis=0)*sum(K, axis=1))",
    "nearest others": "x = zeros(3)\nd = abs(x[:, None] - x[None, :]) + eye(len(x))\nsum(min(d, axis=1)*x)",
    "columns made before": "x = zeros(3)\nu = sin(x)\nv = cos(x)\nsum(tanh(u[:, None]*v[None, :]) + u[None, :]*v[:, None])",
}


@pytest.mark.parametrize("text", TEXTS)
def test_pairs_are_cut(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside inputs and results there is memory for some blocks, and for a matrix only where a sum has to wait."""
    monkeypatch.setattr(schedule, "ENTRIES", 1 << 10)
    monkeypatch.setattr(schedule, "MOST_ENTRIES", 1 << 11)
    random = np.random.default_rng(3)
    x = random.normal(size=(300, 2) if "(3, 2)" in TEXTS[text] else 300)
    tape, held = question(TEXTS[text], {"x": x})
    plan = Plan(tape, threads=2)
    assert any(isinstance(event, Loop) for event in plan.schedule.events)
    assert plan.room() < (3 if text == "both sums" else 1) * 8 * 300 * 300
    judge(tape, held, plan)
    again, other = Plan(tape, threads=1).answer(held), plan.answer(held)
    assert again is not None and other is not None
    assert all(np.array_equal(one, two) for one, two in zip(again, other, strict=True))


def test_what_is_cut_already_is_cut_as_before() -> None:
    """Where the classes of all steps can be cut, short steps in the loops stay there."""
    x = np.random.default_rng(3).normal(size=(2, 900))
    tape, held = question("x = zeros(3)\ny = zeros(3)\nsum(exp(-(x[:, None] - y[None, :])**2))", {"x": x[0], "y": x[1]})
    (loop,) = [event for event in Plan(tape).schedule.events if isinstance(event, Loop)]
    assert len(loop.ops) == 10
    judge(tape, held, Plan(tape, threads=2))


def test_steps_between_classes_are_not_taken_in_blocks() -> None:
    """One operand is cut and the other, or the result, is not."""
    dtype = np.dtype("float64")
    x, y, z, total = [Value(place, shape, dtype) for place, shape in enumerate([(4,), (4,), (4,), ()])]
    add = Op(ENTRY, np.add, (x, y), None, z, None)
    summed = Op(REDUCE, np.add, (x,), (0,), total, None)
    assert follows(add, {0: 0, 1: 0, 2: 0}) and follows(summed, {0: 0})
    assert not follows(add, {0: 0, 2: 0}) and not follows(add, {0: 0, 1: 0}) and not follows(add, {0: 0})
    assert not follows(summed, {1: 0})


@pytest.mark.parametrize("text", ["sum(exp(A + A.T))", "sum(sin(A @ A)*A.T)"])
def test_matrices_of_which_both_axes_are_one_class_are_not_cut(text: str) -> None:
    """Their large steps would read all of what others cut."""
    A = np.random.default_rng(3).normal(size=(300, 300))
    tape, held = question(f"A = zeros(3, 3)\n{text}", {"A": A})
    plan = Plan(tape, threads=2)
    assert not any(isinstance(event, Loop) for event in plan.schedule.events)
    judge(tape, held, plan)


def test_classes_may_be_joined_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long programs take time in proportion; what is not linked then is taken on whole arrays."""
    tape, held = question(TEXTS["kernel"], {"x": np.linspace(-2, 2, 300)})
    monkeypatch.setattr(schedule, "PATIENCE", 0)
    judge(tape, held, Plan(tape, threads=2))
