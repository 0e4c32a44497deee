"""Loops that plans find again, against the evaluator, which takes every turn for itself.

Bits are the evaluator's but for sums, which may be added in another order; `judge` measures how far that can go.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.evaluate import Tape
from gradcli.execution.plans import layouts, lifting, neighbours, nests, packing, periods, rolling, scans, spreading, waves
from gradcli.execution.plans.numpy_plan import Plan
from gradcli.execution.plans.nests import Nest
from gradcli.execution.plans.values import SCAN
from tests.forced import BLOCKS, WAVES, patches
from tests.test_plans import judge, question

N = 3  # entries of a vector


def scan_events(plan: Plan) -> list[Any]:
    return [event for event in plan.schedule.events if getattr(event, "kind", None) == SCAN]


def found_loops(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The loops that are found from now on."""
    loops: list[Any] = []
    usual = rolling.read_beyond

    def noted(recording: Any, nests: Any, makers: Any) -> None:
        loops.extend(nests)
        usual(recording, nests, makers)

    monkeypatch.setattr(rolling, "read_beyond", noted)
    return loops


def values_of(turns: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "x": random.uniform(-1, 1, (turns + 1, N)), "z": random.uniform(-1, 1, turns + 1),
        "u": random.uniform(-1, 1, N), "w": random.uniform(-1, 1, N), "W": random.uniform(-0.5, 0.5, (N, N)),
    }  # fmt: skip


ATOMS = (
    "h", "g", "w", "x[t]", "x[t + 1]", "x[n - t]", "tanh(h)", "sigmoid(w + g)", "W @ h", "h @ W", "a", "h*g", "z[t]",
    "(t + 1)*0.1", "where(h > 0, g, w)", "x[t:t + 2][0]", "sum(h)", "exp(-h**2)", "relu(g)", "h[::-1]", "max(g)", "abs(h)",
    "sum(x[t]*x[t + 1])", "maximum(h, g)", "0.5", "b", "softmax(h)", "z[n - t]", "x[:, 1][t]", "p", "norm(W @ g + 2)",
)  # fmt: skip
JOINED = ("tanh({} + {})", "0.5*({} - {})", "sin({}*{})", "{}/(2 + ({})**2)", "0.3*{} + 0.2*{}")
CARRIED = ("h", "g", "a", "b", "p")


def a_loop(random: Random) -> tuple[str, int]:
    """A script with a loop that carries five values, and its number of turns."""
    turns = random.choice([9, 12, 17, 30, 40])
    lines = []
    for _ in range(random.randint(1, 5)):
        name, kind = random.choice(CARRIED), random.randint(0, 7)
        value = random.choice(JOINED).format(random.choice(ATOMS), random.choice(ATOMS))
        if name == "a":  # a number: the sum of what happens
            line = f"a = a + sum({value})" if kind < 5 else f"a = 0.5*a + mean({value})"
        elif name == "p":  # two turns before
            line = f"p = q\n    q = h\n    h = {value} + 0*w"
        elif kind == 5:
            line = f"if mod(t, {random.randint(2, 9)}) == 1:\n        {name} = {value} + 0*w"
        else:
            line = f"{name} = {name} + {value} + 0*w" if kind == 4 else f"{name} = {value} + 0*w"
        lines.append("    " + line)
    out = random.choice(["sum(h*g) + a + sum(b*p) + sum(q)", "sum(h**2) + a", "sum(g*b) + sum(p*h)"])
    start = "h, g, b, p, q = u, 0*u, w, u*w, tanh(u)\na = 0\n"
    text = f"const n = {turns}\n{start}for t in range({turns}):\n" + "\n".join(lines)
    return f"{text}\n{out} + 0.1*(sum(x) + sum(z**2) + sum(W) + sum(u*w))", turns


@pytest.fixture(params=["plain", "waves"])
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Short loops are treated as long ones are: fewer calls are looked for, and recurrences share rounds."""
    if request.param == "waves":
        patches(monkeypatch, *WAVES, (scans, "CHUNK", 1))
    return str(request.param)


def swing(tape: Tape, values: dict[str, Any], at: int) -> float:
    """How far one output of the evaluator moves with the last bit of the inputs: some loops are chaotic."""
    still, moved = tape.run(values, backend="numpy")[at], []
    for seed in range(4):
        signs = np.random.default_rng(seed)
        other = {
            name: value * (1 + 2e-16 * signs.choice([-1, 0, 1], np.shape(value))) for name, value in values.items()
        }
        moved.append(np.nanmax(np.abs(tape.run(other, backend="numpy")[at] - still), initial=0.0))
    return float(max(moved))


def near(tape: Tape, values: dict[str, Any], plan: Plan) -> None:
    """The evaluator's answers, up to what another order of additions over the turns can do."""
    answer = plan.answer(values)
    assert answer is not None
    for at, (one, other) in enumerate(zip(answer, tape.run(values, backend="numpy"), strict=True)):
        scale = np.max(np.abs(np.where(np.isfinite(other), other, 0)), initial=1.0)
        if not np.allclose(one, other, rtol=1e-10, atol=1e-11 * scale, equal_nan=True):
            far = 10 * swing(tape, values, at)
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=max(far, 1e-11 * scale))


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_loops_at_random(start: int, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    for seed in range(start, start + 20):
        text, turns = a_loop(Random(seed))
        tape, values = question(text, values_of(turns, seed))
        near(tape, values, Plan(tape))
    assert len(loops) > 5


@pytest.mark.parametrize("start", range(60, 120, 20))
def test_bits_of_loops_at_random(start: int, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums over the turns are taken turn by turn, the bits are the evaluator's, but for those of other sums."""
    monkeypatch.setattr(Nest, "sum", lambda nest, component: None)
    same = []
    for seed in range(start, start + 20):
        text, turns = a_loop(Random(seed))
        tape, values = question(text, values_of(turns, seed))
        same.append(judge(tape, values, Plan(tape)))
    assert sum(same) > 8


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 3000, 50))
def test_many_loops_at_random(start: int, short: str) -> None:
    for seed in range(start, start + 50):
        text, turns = a_loop(Random(seed))
        tape, values = question(text, values_of(turns, seed))
        near(tape, values, Plan(tape))


ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e200)


@pytest.mark.parametrize("odd", ODD)
def test_odd_numbers_in_one_turn(odd: float, short: str) -> None:
    for seed in range(300, 306):
        text, turns = a_loop(Random(seed))
        given = values_of(turns, seed)
        given["x"][turns // 2, 1] = given["z"][3] = odd
        tape, values = question(text, given)
        near(tape, values, Plan(tape))


TWO_LAYERS = """h, c = u, 0*u
g, e = w, 0*w
for t in range({turns}):
    c = sigmoid(x[t]*w + 0.3)*c + sigmoid(h*w - 0.1)*tanh(h*u)
    h = sigmoid(x[t]*u)*tanh(c)
    e = sigmoid(h*w + 0.2)*e + sigmoid(g*u)*tanh(g*w + 0.1)
    g = sigmoid(h*u)*tanh(e)
sum(g*h) + 0*z[0] + 0*sum(W)"""


def test_layers_share_rounds(short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two recurrences one way and two back; as waves one way and one back, in fewer calls, with the same bits."""
    monkeypatch.setattr(Nest, "sum", lambda nest, component: None)
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    plan = Plan(tape)
    judge(tape, values, plan)
    late = [event.function.rounds - event.function.count for event in scan_events(plan)]
    assert (max(late) > 0) == (short == "waves")
    rounds = sum(event.function.calls for event in scan_events(plan)) / 40
    assert rounds < (60 if short == "plain" else 50)


def test_a_long_loop_takes_few_calls() -> None:
    """The cost of a run and of making the plan does not grow with the turns, but for the recurrence."""
    text = TWO_LAYERS.format(turns=300)
    tape, values = question(text, values_of(300))
    plan = Plan(tape)
    near(tape, values, plan)
    assert len(tape.nodes) > 20_000
    assert len(plan.schedule.events) <= 400
    assert sum(event.function.calls for event in scan_events(plan)) < 300 * 50
    assert plan.nbytes < 1 << 22


def test_rows_that_are_read_backwards_and_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    n = 20
    text = f"""a = 0*u
for t in range({n}):
    a = a + tanh(x[t])*x[t + 1]*x[{n} - t] + sum(x[t:t + 2], axis=0)*z[t]
sum(a*w) + sum(W)"""
    tape, values = question(text, values_of(n))
    plan = Plan(tape)
    near(tape, values, plan)
    assert loops
    assert not scan_events(plan)
    assert len(plan.schedule.events) < len(tape.nodes) / 3


@pytest.mark.parametrize("turns", [1, 2, 7])
def test_short_loops_stay_as_they_are(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    tape, values = question(TWO_LAYERS.format(turns=turns), values_of(turns))
    judge(tape, values, Plan(tape))
    assert not loops


def test_large_arrays_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their steps take longer than the calls do, and stacks of them would fill the memory."""
    loops = found_loops(monkeypatch)
    text = "y = u\nfor i in range(20):\n    y = sin(y)*a + y\nsum(y)"
    tape, values = question(text, {"u": np.linspace(0, 1, 600), "a": 0.5})
    judge(tape, values, Plan(tape))
    assert not loops


def test_much_memory_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TWO_LAYERS.format(turns=30)
    tape, values = question(text, values_of(30))
    assert scan_events(Plan(tape))
    monkeypatch.setattr(nests, "ROOM", 10_000)
    plan = Plan(tape)
    judge(tape, values, plan)
    assert not scan_events(plan)


def test_places_without_order() -> None:
    """Entries in no arithmetic order are gathered one by one."""
    order = [3, 1, 4, 10, 5, 9, 2, 6, 8, 7, 13, 11, 12, 0]
    text = (
        f"h = u\norder = {order}\nfor i in range(14):\n    t = order[i]\n    h = tanh(h*w + x[t])*z[t]\nsum(h) + sum(W)"
    )
    tape, values = question(text, values_of(14))
    near(tape, values, Plan(tape))


def test_products_of_matrices_in_a_recurrence(short: str) -> None:
    text = "h = u\nfor t in range(25):\n    h = tanh(W @ h + x[t])\nsum(h*w) + sum(z)"
    tape, values = question(text, values_of(25))
    plan = Plan(tape)
    near(tape, values, plan)
    assert scan_events(plan)


def second_by_differences(text: str, turns: int, rtol: float, atol: float) -> None:
    """Hold the Hessian of a loop in u and w against differences of its gradient."""
    given = {name: value for name, value in values_of(turns).items() if name in "uwx"}
    f = gradcli.compile(text, wrt=("u", "w"))
    found = f.hessian(**given)
    step = 1e-5
    for name in ("u", "w"):
        for i in range(N):
            shifted = [{**given, name: given[name] + sign * step * np.eye(N)[i]} for sign in (1, -1)]
            up, down = [f.value_and_grad(**one)[1] for one in shifted]
            for other in ("u", "w"):
                slope = (up[other] - down[other]) / (2 * step)
                np.testing.assert_allclose(found.hessian[other][name][:, i], slope, rtol=rtol, atol=atol)


def test_second_derivatives(short: str) -> None:
    second_by_differences("h = u\nfor t in range(12):\n    h = tanh(h*w + x[t])*h\nsum(h**2)", 12, 1e-6, 1e-7)


def test_several_threads_run_one_plan() -> None:
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    plan = Plan(tape)
    points = [{**values, "u": values["u"] + k / 10} for k in range(8)]
    alone = [plan.answer(point) for point in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(plan.answer, points))
    for one, other in zip(alone, together, strict=True):
        assert one is not None
        assert other is not None
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_single_precision(short: str) -> None:
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    plan = Plan(tape, "float32")
    answer = plan.answer(values)
    assert answer is not None
    assert scan_events(plan)
    for one, other in zip(answer, tape.run(values, backend="numpy", dtype="float32"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_two_lists_that_begin_alike(short: str) -> None:
    """x[t + 1] and x[n - t] are the same row in one turn, from which on one of them goes up and the other down."""
    loop = "a, g = 0, u\nfor t in range(17):\n    g = x[17 - t] + 0.5*(x[t + 1] - g)\n    a = a + sum(relu(g))"
    tape, values = question(f"{loop}\na + 0*(sum(z) + sum(w) + sum(W))", values_of(17))
    plan = Plan(tape)
    assert scan_events(plan)
    near(tape, values, plan)


def test_planted_errors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row too late, a first turn that is forgotten, a call that runs over the wrong cells: the judge sees each."""
    patches(monkeypatch, (packing, "WORTH", 0), (waves, "WORTH", 0), (waves, "SHARE", 1.0))
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    near(tape, values, Plan(tape))

    def fails() -> bool:
        try:
            near(tape, values, Plan(tape))
        except (AssertionError, ValueError):  # other numbers, or cells that do not fit
            return True
        return False

    row = layouts.Cell.row
    with monkeypatch.context() as patch:
        patch.setattr(layouts.Cell, "row", lambda cell, turn: row(cell, turn) + (turn == -1))
        assert fails()
    begin = scans.Scan._begin
    with monkeypatch.context() as patch:
        patch.setattr(scans.Scan, "_begin", lambda scan, arrays, at: begin(scan, arrays, at) if at < 0 else None)
        assert fails()
    with monkeypatch.context() as patch:
        patch.setattr(neighbours.Neighbours, "beside", lambda cells, sequence: True)
        patch.setattr(neighbours.Neighbours, "may", lambda cells, one, other: True)
        assert fails()
    with monkeypatch.context() as patch:
        patch.setattr(lifting, "summed", lambda steps, stack: lifting.turn(steps, stack, 0))
        patch.setattr(spreading, "summed", lambda steps, stack: lifting.turn(steps, stack, 0))
        assert fails()


def test_periods() -> None:
    body = [1, 2, 3, 1, 2, 4]
    codes = np.array([9, 9, *body * 10, 7, *[5, 6] * 20, 8])
    assert periods.stretches(codes) == [(2, 6, 10), (63, 2, 20)]
    assert periods.stretches(np.arange(100)) == []
    assert periods.stretches(np.array([1, 2] * 7)) == []
    inner = [*[1, 2, 3] * 4, 9]  # a short loop in a long one
    assert periods.stretches(np.array(inner * 12)) == [(0, 13, 12)]


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_that_move(axis: int) -> None:
    """Each form of windows: single entries, entries beside each other, blocks, windows that overlap, either way."""
    for wide in (1, 2, 3):
        for step in (1, 2, 3, -1, -2):
            first = 0 if step > 0 else 30
            rows = [f"{first + step * k}:{first + step * k + wide}" for k in range(12)]
            index = [f"A[{row}]" if axis == 0 else f"A[:, {row}]" for row in rows]
            text = "s = 0\n" + "\n".join(f"s = s + sum(tanh({one})*{k / 7})" for k, one in enumerate(index)) + "\ns"
            shape = (40, 3) if axis == 0 else (3, 40)
            tape, values = question(text, {"A": np.random.default_rng(1).normal(size=shape)})
            near(tape, values, Plan(tape))


@pytest.mark.parametrize("term", ["x[i]**2", "sin(x[i])*x[i + 1]", "x[n - i]*x[i]"])
def test_sums_of_entries_are_not_quadratic(term: str) -> None:
    """The cotangents of all entries are one array, not one array for each entry."""
    n = 200
    text = f"const n = {n}\ns = 0\nfor i in range(n):\n    s = s + {term}\ns + 0*x[{n}]"
    tape, values = question(text, {"x": np.random.default_rng(0).uniform(1, 2, n + 1)})
    plan = Plan(tape)
    near(tape, values, plan)
    assert len(plan.schedule.events) < n
    assert plan.nbytes < 60 * 8 * n


def test_loops_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks that are cut into blocks, and arrays that change from run to run."""
    patches(monkeypatch, *BLOCKS)
    loops = found_loops(monkeypatch)
    for seed in range(400, 420):
        text, turns = a_loop(Random(seed))
        tape, values = question(text, values_of(turns, seed))
        near(tape, values, Plan(tape, threads=2))
    assert len(loops) > 5
