"""Recurrences that carry what they have by factors and summands: plans solve them for all turns together.

The evaluator takes every turn for itself; `near` and `check` measure how far a plan may be from it.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.questions import value_question
from gradcli.execution.plans import linear, recurrences, sizes
from gradcli.execution.plans.numpy_plan import Plan
from gradcli.execution.plans.values import LINEAR, SCAN
from tests.rounding import allowed, beyond
from tests.test_plans import question
from tests.test_plans_rolling import near, second_by_differences, values_of

Case = tuple[Any, dict[str, Any], Plan]


def events(plan: Plan, kind: str) -> list[Any]:
    return [event for event in plan.schedule.events if getattr(event, "kind", None) == kind]


def forms(plan: Plan) -> list[str]:
    """The forms of the recurrences that a plan solves."""
    return [event.function.form for event in events(plan, LINEAR)]


def case(text: str, turns: int, seed: int = 0, **given: Any) -> Case:
    """Value and gradient of a script, which reads every leaf, and their plan."""
    names = ["x", "z", "u", "w", "W"]
    text = f"{text} + 0.1*(sum(x) + sum(z) + sum(u) + sum(w) + sum(W))"
    values = {name: value for name, value in values_of(turns, seed).items() if name in names}
    tape, values = question(text, {**values, **given})
    return tape, values, Plan(tape)


def within(found: Case, dtype: str = "float64") -> None:
    """The plan's answers are as near to the evaluator's as rounding allows."""
    tape, values, plan = found
    answer = plan.answer(values)
    assert answer is not None
    assert not beyond(answer, allowed(tape, values, dtype))


# --- which recurrences are taken -----------------------------------------------------------------------------

SOLVED = {
    "moving average": ("h = 0.9*h + 0.1*x[t]", "sum(h*p)", "blocks"),
    "autoregression": ("h = w*h + x[t]", "sum(h*p)", "blocks"),
    "factor of a turn": ("h = x[t]*h - z[t]", "sum(h*p)", "blocks"),
    "quotient": ("h = (h - x[t])/(2 + z[t])", "sum(h*p)", "blocks"),
    "Horner": ("h = h*u + z[t]", "sum(h*p)", "blocks"),
    "two ways": ("h = x[t]*h + z[t]*h + u", "sum(h*p)", "blocks"),
    "negative": ("h = -(w*h) + x[t + 1]", "sum(h*p)", "blocks"),
    "choice": ("h = where(x[t] > 0, 0.5*h, w*h + u)", "sum(h*p)", "blocks"),
    "sums that are read": ("h = h + x[t]*w", "sum(h*p)", "sum"),
    "products": ("h = h*(1 + 0.1*x[t])", "sum(h*p)", "product"),
    "in two places": ("g = 0.7*h + x[t]\n    h = g*w + u", "sum(h*p)", "blocks"),
}


@pytest.mark.parametrize("name", SOLVED)
def test_what_is_solved(name: str) -> None:
    body, term, form = SOLVED[name]
    loop = f"h, p, s = u, w, 0\nfor t in range(200):\n    {body}\n    s = s + {term}\ns"
    found = case(loop, 200)
    assert form in forms(found[2])
    assert not events(found[2], SCAN)
    near(*found[:2], found[2])
    within(found)


SCANNED = {
    "not linear": "h = tanh(h*w + x[t])",
    "a square": "h = 0.5*h*h + x[t]",
    "in the denominator": "h = x[t]/(3 + h)",
    "two numbers": "g, h = 0.5*g + 0.3*h, 0.4*h - 0.2*g + x[t]",
    "two turns before": "g, h = h, 0.5*h + 0.3*g + x[t]",
    "entries mixed": "h = 0.5*h[::-1] + x[t]",
    "a matrix": "h = W @ h + x[t]",
    "the condition": "h = where(h > 0, 0.5*h, x[t])",
}


@pytest.mark.parametrize("name", SCANNED)
def test_what_stays_a_scan(name: str) -> None:
    loop = f"h, g, s = u, w, 0\nfor t in range(80):\n    {SCANNED[name]}\n    s = s + sum(h*w)\ns + 0*sum(g)"
    found = case(loop, 80)
    assert events(found[2], SCAN)
    near(*found[:2], found[2])


@pytest.mark.parametrize("turns", [9, 60, 64, 65, 66, 67, 70, 81, 100, 101, 128, 257])
def test_every_number_of_turns(turns: int) -> None:
    found = case(f"h, s = u, 0\nfor t in range({turns}):\n    h = x[t]*h + w\n    s = s + sum(h*h)\ns", turns)
    assert bool(forms(found[2])) == (turns >= linear.FEWEST + 1)
    near(*found[:2], found[2])
    within(found)


def test_only_few_entries() -> None:
    """Beyond that a turn takes longer than its calls do."""
    for size, solved in ((linear.WIDEST, True), (linear.WIDEST + 1, False)):
        text = "h, s = u, 0\nfor t in range(70):\n    h = w*h + u\n    s = s + sum(h*w)\ns"
        tape, values = question(text, {"u": np.linspace(-1, 1, size), "w": np.linspace(0.1, 0.9, size)})
        plan = Plan(tape)
        assert bool(events(plan, LINEAR)) == solved
        near(tape, values, plan)


def test_cotangents_of_layers_are_solved() -> None:
    """Two layers of an LSTM with weights entry by entry: one scan forward, and two recurrences back."""
    text = """h, c, s = u, 0*u, 0
g, e = w, 0*w
for t in range(90):
    c = sigmoid(x[t]*w + 0.3)*c + sigmoid(h*w - 0.1)*tanh(h*u)
    h = sigmoid(x[t]*u)*tanh(c)
    e = sigmoid(h*w + 0.2)*e + sigmoid(g*u)*tanh(g*w + 0.1)
    g = sigmoid(h*u)*tanh(e)
    s = s + sum(exp(g))
s"""
    found = case(text, 90)
    assert forms(found[2]) == ["blocks", "blocks"]
    assert 1 <= len(events(found[2], SCAN)) <= 2
    near(*found[:2], found[2])
    within(found)


# --- at random -----------------------------------------------------------------------------------------------

FACTORS = ("x[t]", "w", "0.9", "z[t]", "(1 - 0.1*x[t])", "tanh(x[t + 1])", "-1.01", "W[0]", "x[t, 0]", "u*z[n - t]")
SUMMANDS = ("x[t]", "w", "z[t]*u", "0.5", "sin(x[n - t])", "W[1]*x[t]", "0*w")


def a_recurrence(random: Random, depth: int = 0) -> str:
    """Something linear in h."""
    if depth > 3 or random.random() < 0.2:
        return random.choice(("h", "h", "-h"))
    inner = a_recurrence(random, depth + 1)
    kind = random.randint(0, 6)
    if kind < 3:
        return f"{random.choice(FACTORS)}*({inner})"
    if kind == 3:
        return f"({inner})/(1.5 + {random.choice(FACTORS)}**2)"
    if kind == 4:
        return f"where({random.choice(FACTORS)} > 0.2, {inner}, {random.choice((inner, '0.5*h', 'w'))})"
    if kind == 5:
        return f"({inner}) {random.choice('+-')} {random.choice(SUMMANDS)}"
    return f"{random.choice(SUMMANDS)} {random.choice('+-')} ({inner})"


def a_loop(random: Random) -> tuple[str, int]:
    """A loop with one or two recurrences, linear or with linear cotangents."""
    turns = random.choice([65, 70, 83, 97])
    first, second = a_recurrence(random), re.sub(r"\bh\b", "g", a_recurrence(random))
    lines = [f"h = {first} + 0*w"]
    extra = random.randint(0, 3)
    if extra == 1:
        lines.append(f"g = {second} + 0.1*h + 0*w")
    elif extra == 2:
        lines.append("g = tanh(0.5*g + h + x[t])")
    elif extra == 3:
        lines = [f"h = {random.choice(('tanh', 'sin', 'sigmoid', 'relu'))}({first}) + 0*w"]
    lines.append(f"s = s + {random.choice(('sum(h*g)', 'sum(h**2)', 'sum(tanh(h))', 'sum(h*x[t + 1])'))}")
    body = "\n".join(f"    {line}" for line in lines)
    return f"const n = {turns}\nh, g, s = u, w, 0\nfor t in range({turns}):\n{body}\ns + sum(h*g)", turns


def solved_at_random(seeds: range) -> int:
    """How many recurrences were solved in loops at random, each of which was looked at."""
    solved = 0
    for seed in seeds:
        text, turns = a_loop(Random(seed))
        found = case(text, turns, seed)
        solved += len(forms(found[2]))
        near(*found[:2], found[2])
        within(found)
    return solved


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_at_random(start: int) -> None:
    assert solved_at_random(range(start, start + 10)) > 5


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 3000, 50))
def test_many_at_random(start: int) -> None:
    assert solved_at_random(range(start, start + 50)) > 25


def test_second_derivatives() -> None:
    """Products of what is carried are no linear recurrence; what is linear beside them is solved."""
    text = "h, s = u, 0\nfor t in range(70):\n    h = tanh(h*w + x[t])\n    s = s + sum(h**2)\ns"
    second_by_differences(text, 70, 1e-5, 1e-6)


def test_scalars() -> None:
    """Compound interest: an account whose deposits and rates differ from year to year."""
    text = "a, s = start, 0\nfor t in range(120):\n    a = a*(1 + r[t]) + d[t]\n    s = s + a**2\ns"
    random = np.random.default_rng(0)
    given = {"start": 100.0, "r": random.uniform(0, 0.05, 120), "d": random.normal(size=120)}
    tape, values = question(text, given)
    plan = Plan(tape)
    assert forms(plan) == ["blocks", "blocks"]
    near(tape, values, plan)
    within((tape, values, plan))


# --- numbers at the edge ----------------------------------------------------------------------------------------

EDGES = {
    "grows": ("h = 1e9*h + x[t]", False),  # to infinity, after some turns
    "grows inside": ("h = 1e-200*(1e200*h) + 1e-9*x[t]", False),
    "fades": ("h = 1e-9*x[t]*h + 1e-300*w", True),
    "fades at once": ("h = 1e-50*x[t]*h + 1e-300*w", False),
    "fades and comes back": ("h = where(z[t] > 0, 1e-40*h, 1e40*h)*w + x[t]", False),
    "comes and goes": ("h = where(z[t] > 0, 1e-9*h, 1e9*h)*w + x[t]", True),
    "faints in a factor": ("h = 1e-200*w*(1e-200*(1e300*h)) + x[t]", False),
    "is reset": ("h = where(z[t] > 0, 0*h, 0.9*h) + x[t]", True),
    "stands still": ("h = 0*h + x[t]", True),
}


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each recurrence that runs is solved for all turns together."""
    found: list[bool] = []
    usual = recurrences.Solver.solved

    def noted(solver: recurrences.Solver, arrays: Any) -> bool:
        found.append(usual(solver, arrays))
        return found[-1]

    monkeypatch.setattr(recurrences.Solver, "solved", noted)
    return found


def same_kind(found: Case, dtype: str = "float64") -> None:
    """Infinities and NaN stand where the evaluator has them, with its signs; zeros too."""
    tape, values, plan = found
    answers, plain = plan.answer(values), tape.run(values, backend="numpy", dtype=dtype)
    assert answers is not None
    for one, other in zip(answers, plain, strict=True):
        assert np.array_equal(np.isnan(one), np.isnan(other))
        odd = ~np.isfinite(other) | np.equal(other, 0)
        assert np.array_equal(np.asarray(one)[odd], np.asarray(other)[odd], equal_nan=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", EDGES)
def test_numbers_at_the_edge(name: str, dtype: str, solved: list[bool]) -> None:
    body, together = EDGES[name]
    if dtype == "float32":
        body = re.sub(r"e(-?)[23]00", r"e\g<1>30", body)
    tape, values, _ = case(f"h, s = u, 0\nfor t in range(70):\n    {body}\n    s = s + sum(h*w)\ns", 70)
    found = tape, values, Plan(tape, dtype)
    assert forms(found[2])
    within(found, dtype)
    same_kind(found, dtype)
    assert solved[0] == together or dtype == "float32"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e200, 5e-324])
@pytest.mark.parametrize("form", ["h = x[t]*h + w", "h = h + x[t]*w", "h = h*x[t]", "h = h/x[t] - z[t]"])
def test_odd_numbers_in_one_turn(odd: float, form: str) -> None:
    for place in (0, 33, 69):
        text = f"h, s = u, 0\nfor t in range(70):\n    {form}\n    s = s + sum(tanh(h)*w)\ns"
        given = values_of(70)
        given["x"][place, 1] = odd
        found = case(text, 70, x=given["x"])
        near(*found[:2], found[2])
        same_kind(found)


def test_turns_one_by_one_are_those_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs where numbers are at the edge is not another way to compute."""
    monkeypatch.setattr(recurrences.Solver, "_fair", lambda solver, arrays, lowest: False)
    loop = (
        "h, s = u, 0*u\nfor t in range(80):\n    h = (x[t] - 0.3*h*w)/(2 + z[t]) + where(z[t] > 0, h, w)\n    s = h*w"
    )
    values = {name: value for name, value in values_of(80).items() if name in "xzuw"}
    f = gradcli.compile(f"{loop}\ns + h")
    tape = f._question("value", value_question, values)[0].tape
    plan = Plan(tape)
    assert forms(plan) == ["blocks"]
    answer = plan.answer(values)
    assert answer is not None
    assert np.array_equal(answer[0], tape.run(values, backend="numpy")[0])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("turns", [64, 65, 100, 1021])
def test_solutions(shape: tuple[int, ...], turns: int) -> None:
    """The solver alone, with operands of all turns and of one."""
    random = np.random.default_rng(turns)
    rows = turns - 1
    for a in (random.uniform(-1, 1, (rows, *shape)), random.uniform(0.5, 1, shape), np.full(shape, 1.001)):
        for b in (random.normal(size=(rows, *shape)), random.normal(size=shape), np.zeros(shape)):
            solver = recurrences.Blocks(shape, turns)
            out = np.empty((turns, *shape))
            out[0] = random.normal(size=shape)
            assert solver.solved(a, b, out)
            x = out[0]
            for t in range(rows):
                x = (a[t] if a.ndim > len(shape) else a) * x + (b[t] if b.ndim > len(shape) else b)
                np.testing.assert_allclose(out[t + 1], x, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_solutions_do_not_depend_on_how_operands_lie(dtype: str) -> None:
    """Backward, with gaps, repeated; with what is known of the factors and without: the same bits."""
    random = np.random.default_rng(1)
    for turns in (66, 100, 257):
        a, b, first = [random.uniform(0.2, 1.1, (n, 2, 3)).astype(dtype) for n in (turns - 1, turns - 1, 1)]
        found = set()
        for lie in (np.copy, lambda x: x[::-1].copy()[::-1], lambda x: x.repeat(2, 0)[::2], np.asfortranarray):
            for known in ({}, {"lowest": float(a.min())}):
                out = lie(np.repeat(first, turns, 0))
                assert recurrences.Blocks((2, 3), turns).solved(lie(a), lie(b), out, **known)
                found.add(out.tobytes())
        assert len(found) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sizes(dtype: str) -> None:
    """What a few passes tell of entries holds for each of them, in whatever order they lie."""
    random = np.random.default_rng(2)
    for shape in ((), (1,), (5, 3), (1021, 14), (3 * sizes.PIECE + 1,)):
        for power in (-8, 0, 8):
            x = (random.normal(size=shape) * 10.0**power).astype(dtype)
            x = np.asarray(x)
            for lie in (x, x[::-1], x[1::2]) if x.size > 1 else (x,):
                top, least = float(np.abs(lie).max()), float(np.abs(lie).min())
                assert (sizes.largest(lie), sizes.smallest(lie)) == (top, least)
                assert top <= sizes.about(lie) <= 1.01 * top * lie.size**0.5
                assert power < 0 or (sizes.within(lie, top) and not sizes.within(lie, np.nextafter(top, 0)))
    x = np.zeros((70, 3), dtype)
    for odd, size in ((np.nan, np.nan), (-np.inf, np.inf)):
        x[69, 2] = odd
        for lie in (x, x[::-1]):
            np.testing.assert_equal([sizes.about(lie), sizes.largest(lie)], [size, size])
            assert not sizes.within(lie, 1e300)
    assert sizes.smallest(np.array([0.0, -3.0, 2.0]), nonzero=True) == 2


def test_single_precision() -> None:
    for seed in range(60, 70):
        text, turns = a_loop(Random(seed))
        tape, values, _ = case(text, turns, seed)
        within((tape, values, Plan(tape, "float32")), "float32")


def test_leaves_with_a_batch_axis() -> None:
    """Leaves that stay as they are may have an axis in front: so have the recurrences."""
    text = "h, s = u, 0\nfor t in range(90):\n    h = w*h + z[t]\n    s = s + sum(h*h)\ns"
    given = values_of(90)
    values = {name: given[name] for name in "zuw"}
    tape, values = question(text, values)
    held = {"w": np.stack([values["w"], -values["w"]])}
    rest = {name: value for name, value in values.items() if name != "w"}
    plan = Plan(tape, held=held)
    assert forms(plan)
    answers = plan.run([rest[node.params["name"]] for node, _ in plan.schedule.inputs])
    for at in range(2):
        plain = tape.run({**rest, "w": held["w"][at]}, backend="numpy")
        for one, other in zip(answers, plain, strict=True):
            np.testing.assert_allclose(one[at] if np.ndim(one) > np.ndim(other) else one, other, rtol=1e-10, atol=1e-10)


# --- that errors are seen -----------------------------------------------------------------------------------------


def test_planted_errors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor of the wrong turn, a summand that is lost, a block that begins elsewhere: more than rounding allows."""
    loop = "h, s = u, 0\nfor t in range(90):\n    g = 0.9*h - x[t]\n    h = z[t]*g + w\n    s = s + sum(h*h)\ns"
    within(case(loop, 90))

    def fails() -> bool:
        try:
            within(case(loop, 90))
        except AssertionError:
            return True
        return False

    usual = linear.Linear._turns
    with monkeypatch.context() as patch:
        patch.setattr(linear.Linear, "_turns", lambda one, steps, value, late: usual(one, steps, value, not late))
        assert fails()
    with monkeypatch.context() as patch:
        patch.setitem(linear.RULES, np.add, lambda steps, own, xs, parts: xs[0] if own[0] else xs[1])
        assert fails()
    with monkeypatch.context() as patch:
        patch.setitem(linear.RULES, np.subtract, linear.RULES[np.add])
        assert fails()
    flat = recurrences.Blocks._flat
    with monkeypatch.context() as patch:
        patch.setattr(recurrences.Blocks, "_flat", lambda blocks, x: np.roll(flat(blocks, x), 1, 0))
        assert fails()


def test_the_plan_tells_of_it() -> None:
    text = "h, s = u, 0\nfor t in range(101):\n    h = 0.5*h + x[t]\n    s = s + sum(h*h)\ns"
    values = values_of(101)
    report = gradcli.compile(text).plan(u=values["u"], x=values["x"])
    assert "linear recurrence: 100 turns in 11 blocks" in [step.operation for step in report.order]
    assert "2 recurrences a*x + b: blocks of turns side by side" in [one.what for one in report.passes]
