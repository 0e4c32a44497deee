"""Blocks that stand in memory by columns, ties found in one step, choices by what is fastest."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.compiler import run
from gradcli.execution.compiler.emit_numpy import KERNELS, kernel, ties
from gradcli.execution.compiler.ir import CHOICE, ENTRY, REDUCE, VIEW, Op, Value
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.run import WIDEST, turned
from gradcli.execution.compiler.schedule import Loop
from gradcli.execution.compiler.simplify import simplified
from tests.test_plans import judge, question

GIVEN = "const X = zeros(2, 2)\n"
MEANS = GIVEN + "d = sum(X**2, axis=1)[:, None] - 2*X @ C.T + sum(C**2, axis=1)\nsum(min(d, axis=1))"
SOFT = GIVEN + "z = X @ C.T + b\np = exp(z - max(z, axis=1, keepdims=True))\nsum(log(sum(p, axis=1))) + sum(abs(p*b))"
SHOWN = "z = X @ C.T + b\nsum(reshape(z, (len(X)*len(C),))**2) + sum(z*max(z, axis=1, keepdims=True))"


def point(rows: int, columns: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"X": random.normal(size=(rows, 3)), "C": random.normal(size=(columns, 3)), "b": random.normal(size=columns)}


def given(text: str, rows: int, columns: int) -> dict[str, Any]:
    return {name: one for name, one in point(rows, columns).items() if name != "b" or "+ b" in text}


def columns_of(plan: Plan) -> dict[int, set[int]]:
    """The columns of what stands turned in each loop."""
    found = {}
    for place, event in enumerate(plan.schedule.events):
        if isinstance(event, Loop):
            chosen = turned(event)
            found[place] = {op.out.shape[1] for op in event.ops if op.out.serial in chosen}
    return found


# --- turned memory -----------------------------------------------------------------------------------------------


SIZES = [(9_001, 2), (4_003, 17), (3_000, 64), (2_900, 65), (901, WIDEST + 50)]


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [*[(MEANS, *size) for size in SIZES], *[(text, *size) for text in (SOFT, SHOWN) for size in SIZES[1::2]]],
)
def test_turned_blocks_give_what_others_give(
    text: str, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, values = question(text, given(text, rows, columns))
    plan = Plan(tape)
    judge(tape, values, plan)
    at_once = [Plan(tape, threads=count).answer(values) for count in (1, 2, 3)]
    for other in at_once[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(at_once[0] or (), other or (), strict=True))
    monkeypatch.setattr(run, "turned", lambda loop: set())
    straight = Plan(tape).answer(values)
    for one, two in zip(at_once[0] or (), straight or (), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-11)


def test_matrices_beside_columns_and_rows_are_turned() -> None:
    for text in (MEANS, SOFT):
        tape, _ = question(text, given(text, 10_000, 100))
        assert [100] in [sorted(shapes) for shapes in columns_of(Plan(tape)).values()]
    tape, _ = question(MEANS, given(MEANS, 3_000, WIDEST + 1))
    assert not any(columns_of(Plan(tape)).values())


def test_what_is_read_flat_or_given_back_is_not_turned() -> None:
    tape, _ = question(SHOWN, given(SHOWN, 4_000, 20))
    loops = [event for event in Plan(tape).schedule.events if isinstance(event, Loop)]
    assert loops
    for loop in loops:
        chosen = turned(loop)
        assert chosen.isdisjoint(value.serial for value in loop.stored)
        assert chosen.isdisjoint(op.out.serial for op in loop.summed)
    found = gradcli.compile("a = X*c[:, None]\na - max(a, axis=1, keepdims=True)")
    values = {"X": point(5_000, 3)["X"].repeat(10, axis=1), "c": np.linspace(1, 2, 5_000)}
    first, second = found(**values), found(**values)
    assert np.array_equal(first, second) and second.flags.c_contiguous
    whole = values["X"] * values["c"][:, None]
    assert np.array_equal(second, whole - whole.max(1, keepdims=True))


def test_entry_by_entry_steps_are_turned_together() -> None:
    text = "z = X @ C.T\nw = z - c[:, None]\nsum(w*z + w**2)"
    values = {**given(MEANS, 6_000, 30), "c": np.linspace(-1, 1, 6_000)}
    tape, point_ = question(text, values)
    plan = Plan(tape)
    judge(tape, point_, plan)
    for event in plan.schedule.events:
        if not isinstance(event, Loop):
            continue
        chosen = turned(event)
        for op in event.ops:
            matrices = [x for x in (*op.args, op.out) if x.number is None and x.shape == (6_000, 30) == op.out.shape]
            if op.kind == ENTRY and len(matrices) > 1:
                assert len({one.serial in chosen for one in matrices}) == 1


# --- ties ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["min", "max"])
def test_ties_and_nan_share_the_gradient_as_before(name: str) -> None:
    random = np.random.default_rng(1)
    x = random.integers(0, 4, size=(3_000, 12)).astype(float)
    x[5, 3], x[6, :], x[2_999, 11], x[7, 2] = np.nan, np.nan, np.nan, np.inf
    tape, values = question(f"sum({name}(x, axis=1)*v)", {"x": x, "v": np.linspace(1, 2, 3_000)})
    plan = Plan(tape)
    steps = [op for event in plan.schedule.events for op in (event.ops if isinstance(event, Loop) else [event])]
    assert sum(op.function is ties for op in steps) == 1
    answer, plain = plan.answer(values), tape.run(values, backend="numpy")
    assert answer is not None
    for one, other in zip(answer, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(("of", "function", "expected"), [(0, np.maximum, ties), (1, np.maximum, np.bitwise_or),
                                                          (0, np.add, np.bitwise_or)])  # fmt: skip
def test_only_the_extreme_of_the_same_lane_has_its_ties(of: int, function: Any, expected: Any) -> None:
    pair = [Value(1, (40, 5), np.dtype(float)), Value(2, (40, 5), np.dtype(float))]
    made: list[Op] = []

    def step(
        kind: str, function: Any, args: tuple[Value, ...], params: Any, shape: tuple[int, ...], dtype: Any
    ) -> Value:
        out = Value(10 + len(made), shape, np.dtype(dtype))
        out.op = Op(kind, function, args, params, out, None)
        made.append(out.op)
        return out

    best = step(REDUCE, function, (pair[of],), (1,), (40,), float)
    column = step(VIEW, "reshape", (best,), (40, 1), (40, 1), float)
    equal = step(ENTRY, np.equal, (pair[0], column), None, (40, 5), bool)
    odd = step(ENTRY, np.not_equal, (pair[0], pair[0]), None, (40, 5), bool)
    either = step(ENTRY, np.bitwise_or, (equal, odd), None, (40, 5), bool)
    found = simplified(made, [either, best], count(100))
    assert found[-1].function is expected
    assert len(found) == (3 if expected is ties else 5)
    found = simplified(made, [either, equal], count(100))
    assert found[-1].function is np.bitwise_or  # somebody else reads a part of it


# --- choices -----------------------------------------------------------------------------------------------------------


def chosen(condition: Any, x: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """`where(condition, x, 0)` by the kernel of a step, and by NumPy."""
    zero = Value(3, (), np.dtype(float))
    zero.number = np.float64(0)
    args = (Value(1, condition.shape, condition.dtype), Value(2, x.shape, x.dtype), zero)
    out = Value(4, shape, np.dtype(float))
    step = Op(CHOICE, None, args, None, out, None)
    out.op = step
    made = np.full(shape, 7.0)
    kernel(step)(condition, x, np.asarray(0.0), made)
    return made, np.where(condition, x, 0.0)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["ones", "odd", "full", "nearly ones"])
def test_choices_are_those_of_numpy(share: float, kind: str) -> None:
    random = np.random.default_rng(3)
    shape = (300, 40)
    condition = random.uniform(size=shape) < share
    x = {
        "ones": np.ones((300, 1)),
        "odd": np.resize([np.inf, -0.0, np.nan, -1.5, 1.0], (300, 1)),
        "full": random.normal(size=shape),
        "nearly ones": np.where(np.arange(300) == 299, np.nan, 1.0)[:, None],
    }[kind]
    for layout in (np.ascontiguousarray, np.asfortranarray):
        made, expected = chosen(layout(condition), layout(x), shape)
        assert np.array_equal(made, expected, equal_nan=True)
        assert np.array_equal(np.signbit(made), np.signbit(expected))
    rows = condition[:, :1] | (share == 1)
    made, expected = chosen(rows, x, shape)
    assert np.array_equal(made, np.broadcast_to(expected, shape), equal_nan=True)
    assert KERNELS[CHOICE] is not None
