"""Rounds that share their copies: the same bits for every number of them, chunk and count of turns, and damage that is noticed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli.execution.kernels import rounds
from gradcli.execution.plans import layouts, rings, scans
from gradcli.execution.plans.numpy_plan import Plan
from tests.forced import LOOPS, WAVES, patched, patches
from tests.test_plans_rolling import TWO_LAYERS, near, question, scan_events, values_of

READ = (
    "x[t]",
    "x[t + 1]",
    "x[n - t]",
    "z[t]*x[t]",
    "z[n - t]",
)  # several of them: turns of one array some rounds apart
KEPT = ("g", "p", "q", "h*p", "q - g", "0.3*h + w")
FORMS = ("tanh({} + {})", "0.5*({} - {})", "0.4*sin({}*{})", "{}/(2 + ({})**2)")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short loops are treated as long ones are, without machine code, in short chunks."""
    patches(monkeypatch, *LOOPS, *WAVES, (scans, "CHUNK", 16))
    monkeypatch.setattr(rounds, "made", lambda *_: None)


def a_loop(random: Random, turns: int) -> str:
    """A script whose loop reads what is given and what it had some turns before, up to three of them."""
    one, other = random.choice(FORMS), random.choice(FORMS)
    new = one.format(f"({random.choice(KEPT)})", random.choice(READ))
    below = other.format(f"({random.choice(KEPT)})", random.choice(READ))
    return f"""const n = {turns}
g, h, p, q = u, w, u*w, tanh(u)
for t in range({turns}):
    g = {new} + 0.2*g
    q, p, h = p, h, {below} - 0.3*h
sum(g*h) + sum(p*q) + 0.1*(sum(x) + sum(z) + sum(W) + sum(u*w))"""


def answers_of(tape: Any, values: dict[str, Any], together: int, chunk: int) -> tuple[Any, Plan]:
    with patched((layouts, "TOGETHER", together), (scans, "CHUNK", chunk)):
        plan = Plan(tape)
        plan.answer(
            {name: 0.5 * np.asarray(value) for name, value in values.items()}
        )  # other numbers lie in its memory
        return plan.answer(values), plan


def layouts_of(plan: Plan) -> list[Any]:
    return [event.function.layout for event in scan_events(plan)]


def same(one: Any, other: Any) -> None:
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(12, 132, 12)]])
def test_loops_at_random(start: int) -> None:
    """Counts of turns around multiples of the ring and of the chunk; what is read stands up to three turns back."""
    windows, sizes = set(), set()
    for seed in range(start, start + 12):
        turns = 9 + seed % 12 + 16 * (seed % 3)
        tape, values = question(a_loop(Random(seed), turns), values_of(turns, seed))
        first, plan = answers_of(tape, values, 1, 64)
        near(tape, values, plan)
        for together, chunk in ((2, 1), (3, 5), (5, 64), (8, 8), (8, 16), (8, 17), (100, 64)):
            other, plan = answers_of(tape, values, together, chunk)
            same(first, other)
            windows |= {layout.window for layout in layouts_of(plan)}
            sizes |= {layout.together for layout in layouts_of(plan)}
    assert max(windows) > 2
    assert {5, 8} <= sizes
    if not start:
        assert min(windows) < 3 < max(windows)


@pytest.mark.parametrize("turns", range(9, 27))
def test_turns_that_differ(turns: int) -> None:
    """Kernels and views of each turn: they stand by the row of the ring that the turn has, the last ones too."""
    text = f"const n = {turns}\nh, p = u, w\nfor t in range({turns}):\n    h, p = tanh(h*w + relu(p)[mod(t, 2)]), h\nsum(h*p)"
    tape, values = question(text + " + 0*(sum(x) + sum(z) + sum(W))", values_of(turns))
    first, plan = answers_of(tape, values, 1, 64)
    assert any(event.function.turns for event in scan_events(plan))
    near(tape, values, plan)
    for together in (3, 8):
        other, plan = answers_of(tape, values, together, 64)
        same(first, other)


def test_long_texts_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many calls in a round: fewer rounds go together, as few as a round has rows."""
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    usual = [layout.together for layout in layouts_of(Plan(tape))]
    monkeypatch.setattr(layouts, "MOST", 1)
    plan = Plan(tape)
    fewer = layouts_of(plan)
    assert [layout.together for layout in fewer] == [layout.window for layout in fewer]
    assert max(usual) > max(layout.window for layout in fewer)
    near(tape, values, plan)


def test_items_are_whole_rows() -> None:
    memory = np.arange(40.0).reshape(5, 8)
    memory[2, 3] = np.nan
    result = np.zeros((5, 2, 2))
    rings.items(result)[1:4] = rings.items(memory[:, 2:6].reshape(5, 2, 2))[1:4]
    np.testing.assert_array_equal(result[1:4], memory[1:4, 2:6].reshape(3, 2, 2))
    assert not result[[0, 4]].any()
    assert rings.items(memory[:, 0]).dtype == np.float64


copied_in, copied_out, turned = rings.Rings.copied_in, rings.Rings.copied_out, rings.Rings.turned
DAMAGE: dict[str, tuple[Any, str, Any]] = {
    "nothing comes in": (rings.Rings, "copied_in", lambda one, size: copied_in(one, size) if size == 1 else []),
    "nothing comes in behind the last whole group": (rings.Rings, "copied_in",
        lambda one, size: copied_in(one, size) if size > 1 else []),
    "nothing is used again": (rings.Rings, "copied_out", lambda one, size: copied_out(one, size)[: 1 if size > 1 else None]),
    "nothing is used again behind the last whole group": (rings.Rings, "copied_out",
        lambda one, size: copied_out(one, size)[: None if size > 1 else 1]),
    "a row too late": (rings.Rings, "turned", lambda one, cell, width, distance, shape: turned(
        one, cell, width, max(distance - 1, 0), shape)),
    "the rows of the group before": (rings.Rings, "_in_groups", lambda one, rows, size: [
        rows[max(at - size, 0) : max(at - size, 0) + size] for at in range(0, one.chunk - size + 1, size)]),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_planted_errors_are_noticed(damage: str) -> None:
    tape, values = question(TWO_LAYERS.format(turns=29), values_of(29, 3 + list(DAMAGE).index(damage)))
    first, _ = answers_of(tape, values, 1, 64)
    other, plan = answers_of(tape, values, 8, 16)
    assert max(layout.window for layout in layouts_of(plan)) > 1
    same(first, other)
    with patched(DAMAGE[damage]):
        other, _ = answers_of(tape, values, 8, 16)
    with pytest.raises(AssertionError):
        same(first, other)
