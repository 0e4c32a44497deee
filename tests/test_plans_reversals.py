"""Steps on rows that run backwards are taken forwards: the same entries, sums in another order, nothing read backwards."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.execution.plans import Plan, rolling
from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.recording import live
from gradcli.execution.plans.reversals import unreversed
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.steps import Steps
from gradcli.execution.plans.values import COPY, ENTRY, JOIN, LINEAR, REDUCE, VIEW, Op, Value
from tests.rounding import allowed, beyond
from tests.test_plans import question

if TYPE_CHECKING:
    from collections.abc import Sequence

N, M = 7, 3


def rows(steps: Steps, x: Value, first: int, step: int, count: int) -> Value:
    """Rows of a value, from one on."""
    end = first + count * step
    index = (("slice", first, end if end >= 0 else None, step), *[("slice", 0, n, 1) for n in x.shape[1:]])
    return steps.view("slice", x, index, (count, *x.shape[1:]))


def matrix(steps: Steps, *shape: int) -> Value:
    """An input."""
    return steps.stand_in(Value(0, shape or (N, M), np.dtype(float)))


def some(random: Random, steps: Steps) -> tuple[list[Value], list[Value]]:
    """Inputs, and what random steps make of them, most of them of all rows of something, one way or the other."""
    n, m = random.choice([(N, M), (4, 4)])
    given = [matrix(steps, n, m) for _ in range(3)]
    row = matrix(steps, m)
    full, made = list(given), list[Value]()
    for _ in range(25):
        x, y = random.choice(full[-6:]), random.choice(full)
        way = random.randrange(13)
        if way < 3:
            found = rows(steps, x, n - 1, -1, n)
        elif way < 6:
            found = steps.entry(random.choice([np.multiply, np.add, np.subtract, np.maximum]), x, y)
        elif way == 6:
            wide = steps.view("broadcast", row, (n, m), (n, m))
            found = steps.entry(
                np.multiply, x, random.choice([row, wide, steps.number(1.5), steps.number(0.5, (n, m))])
            )
        elif way == 7:  # all but an end, and something in its place
            piece = rows(steps, x, *random.choice([(0, 1), (1, 1), (n - 1, -1), (n - 2, -1)]), n - 1)
            single = rows(steps, y, random.randrange(n), 1, 1)
            found = steps.join(random.choice([(piece, single), (single, piece)]), 0)
        elif way == 8:
            found = steps.choice(steps.entry(np.greater, x, y), y, steps.entry(np.negative, x))
        elif way == 9:
            total = steps.reduce(random.choice([np.add, np.maximum]), x, random.choice([(0,), (1,), (0, 1)]))
            made.append(total)
            found = steps.entry(np.add, y, steps.view("reshape", total, (n, 1), (n, 1))) if total.shape == (n,) else y
        elif way == 10:  # a view of other rows than those of x
            turned = steps.view("permute", x, (1, 0), (m, n))
            flat = steps.view("reshape", turned, (n, m), (n, m))
            found = random.choice([flat, steps.view("permute", rows(steps, turned, m - 1, -1, m), (1, 0), (n, m))])
        elif way == 11:
            index = (("slice", n - 1, None, -1), ("slice", m - 1, None, -1))
            found = steps.view("slice", x, index, (n, m))
        else:
            part = rows(steps, x, *random.choice([(0, 2, 2), (n - 1, -2, 2), (n - 2, -1, 2), (1, 1, 2)]))
            made.append(steps.entry(np.square, part))
            wide = steps.view("reshape", x, (n, 1, m), (n, 1, m))
            found = steps.view("reshape", steps.entry(np.sin, wide), (n, m), (n, m))
        full.append(found)
    return [*given, row], [*made, *full[3:]]


def computed(ops: Sequence[Op], given: Sequence[Value], arrays: Sequence[Any]) -> dict[int, Any]:
    """What each step gives, one after the other."""
    known = {value.serial: array for value, array in zip(given, arrays, strict=True)}
    for op in ops:
        xs = [operand(op, arg) if arg.number is not None else known[arg.serial] for arg in op.args]
        if op.kind == VIEW:
            out = shown(op, xs[0], op.out.shape)
            assert np.shares_memory(out, xs[0]), "a view that is a copy has the numbers of the first run only"
        else:
            out = np.empty(op.out.shape, op.out.dtype)
            kernel(op)(*xs, out)
        known[op.out.serial] = out
    return known


def backwards(ops: Sequence[Op]) -> list[Op]:
    """The steps entry by entry that read rows of an operand backwards."""
    found = []
    for op in ops:
        ways = [_way(arg) for arg in op.args if len(op.out.shape) > 1 and arg.shape[:1] == op.out.shape[:1]]
        if op.kind == ENTRY and -1 in ways:
            found.append(op)
    return found


def _way(value: Value) -> int:
    way = 1
    while value.op is not None and value.op.kind == VIEW:
        if value.op.function == "slice" and value.op.params[0][3] < 0:
            way = -way
        value = value.op.args[0]
    return way


@pytest.mark.parametrize("start", [0, 100, *[pytest.param(at, marks=pytest.mark.deep) for at in range(200, 4000, 200)]])
def test_random_steps(start: int) -> None:
    """Every step that is left gives the same entries; sums of rows are near."""
    fewer = 0
    for seed in range(start, start + (100 if start < 200 else 200)):
        steps = Steps(np.dtype(float))
        given, made = some(Random(seed), steps)
        numbers = np.random.default_rng(seed)
        arrays = [numbers.uniform(-2, 2, value.shape) for value in given]
        before = [Op(op.kind, op.function, op.args, op.params, op.out, op.node) for op in live(steps.ops, made)]
        known = computed(before, given, arrays)
        mixed = len(backwards(before))
        after = live(unreversed(before, np.dtype(float)), made)
        found = computed(after, given, arrays)
        fewer += len(backwards(after)) < mixed
        sums = any(op.kind == REDUCE and op.function is np.add for op in before)
        for value in made:
            if value.number is None:
                np.testing.assert_allclose(
                    found[value.serial], known[value.serial], rtol=1e-9 if sums else 0, atol=1e-9 * sums
                )
    assert fewer > 20


def test_without_rows_that_run_backwards_nothing_changes() -> None:
    steps = Steps(np.dtype(float))
    x = matrix(steps)
    steps.entry(np.sin, rows(steps, x, 2, 1, 4))
    assert unreversed(steps.ops, np.dtype(float)) == steps.ops


def test_what_runs_both_ways_stays() -> None:
    steps = Steps(np.dtype(float))
    x = matrix(steps)
    y = matrix(steps)
    out = steps.entry(np.multiply, rows(steps, x, N - 1, -1, N), y)
    after = unreversed(steps.ops, np.dtype(float))
    assert out.op in after and out.op is not None and out.op.kind == ENTRY


def test_joins_are_turned_piece_by_piece() -> None:
    steps = Steps(np.dtype(float))
    x = matrix(steps)
    first = matrix(steps, 1, M)
    steps.entry(np.exp, steps.join([first, rows(steps, x, N - 1, -1, N - 1)], 0))
    after = unreversed(steps.ops, np.dtype(float))
    (join,) = [op for op in after if op.kind == JOIN]
    assert join.args[1] is first
    assert not backwards(after)


def test_products_of_rows_keep_their_order() -> None:
    """What is known of roundings is known of sums."""
    steps = Steps(np.dtype(float))
    out = steps.reduce(np.multiply, rows(steps, matrix(steps), N - 1, -1, N), (0,))
    (reduce,) = [op for op in unreversed(steps.ops, np.dtype(float)) if op.out is out]
    assert _way(reduce.args[0]) == -1


LAYER = """h, c = u, u
for t in range({turns}):
    a = tanh(w*h + x[t])
    c = c*sigmoid(x[t]) + a
    h = sigmoid(x[t + 1])*tanh(c)
sum(h*u) + 0.1*(sum(x) + sum(w) + sum(u))"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gradient_reads_nothing_backwards(dtype: str) -> None:
    """Not what a recurrence gives either, which is found from the last turn to the first."""
    random = np.random.default_rng(4)
    values = {"x": random.normal(size=(202, 3)), "w": random.normal(size=3), "u": random.normal(size=3)}
    tape, held = question(LAYER.format(turns=200), values)
    plan = Plan(tape, dtype)
    ops = [op for event in plan.schedule.events for op in (event.ops if isinstance(event, Loop) else [event])]
    assert any(op.kind == LINEAR for op in ops) and any(op.kind == COPY for op in ops)
    assert not backwards(ops)
    answer = plan.answer(held)
    assert answer is not None
    assert not beyond(answer, allowed(tape, held, dtype))


def test_the_pass_is_what_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "unreversed", lambda ops, float_type: list(ops))
    random = np.random.default_rng(4)
    values = {"x": random.normal(size=(202, 3)), "w": random.normal(size=3), "u": random.normal(size=3)}
    plan = Plan(question(LAYER.format(turns=200), values)[0])
    assert backwards([event for event in plan.schedule.events if isinstance(event, Op)])
