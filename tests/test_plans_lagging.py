"""Recurrences a chunk of rounds apart: the evaluator's bits for every length of chunk and loop, and damage that is noticed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli.execution.kernels import rounds
from gradcli.execution.plans import Plan, lagging, packing, scans, waves
from gradcli.execution.plans.nests import Nest
from tests.forced import LOOPS, WAVES, patched, patches
from tests.test_plans import judge
from tests.test_plans_rolling import TWO_LAYERS, near, question, scan_events, values_of

GATES = ("sigmoid({}*u + 0.1)", "tanh({} - x[t])", "0.5*{}", "{}", "exp(-abs({}))", "1/(2 + {}**2)", "sin({}*x[n - t])")
STATES = (
    "{h} = tanh({gate} - 0.5*{h}) + 0*w", "{h} = 0.4*sin({h} + w)*{gate} + 0*w", "{h} = sigmoid({h}*w)*{gate} - 0.2*tanh({h})",
)  # fmt: skip


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short loops are treated as long ones are, without machine code; a turn apart is no choice."""
    patches(monkeypatch, *LOOPS, *WAVES, (packing, "PER_TRY", 500), (waves, "SHARE", 10.0), (scans, "CHUNK", 4))
    patches(monkeypatch, (waves, "_joined", lambda *_: None), (rounds, "likely", lambda *_: False))


def lags_of(plan: Plan) -> list[int]:
    """By how many chunks the last of each scan's recurrences is behind."""
    return [max(event.function.lags.values()) for event in scan_events(plan)]


def a_tower(random: Random, turns: int) -> str:
    """A script of layers, each of which reads those below it in the same turn."""
    names = "ghpq"[: random.randint(2, 4)]
    lines = []
    for at, name in enumerate(names):
        below = random.sample(names[:at], min(at, random.choice((1, 1, 2))))
        gates = [random.choice(GATES).format(one) for one in below] or ["x[t]"]
        lines.append("    " + random.choice(STATES).format(h=name, gate="*".join(f"({gate})" for gate in gates)))
    start = "g, h, p, q = u, w, u*w, tanh(u)\n"
    tail = "\nsum(g*h) + sum(p*q) + 0.1*(sum(x) + sum(z) + sum(W) + sum(u*w))"
    return f"const n = {turns}\n{start}for t in range({turns}):\n" + "\n".join(lines) + tail


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 64])
def test_towers_at_random(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths of loops around the multiples of a chunk, run again and again: the bits of each recurrence by itself."""
    monkeypatch.setattr(scans, "CHUNK", chunk)
    lags: list[int] = []
    for seed in range(8):
        turns = max(9, 16 + chunk * (seed % 2) + seed % 3 - 1)
        text = a_tower(Random(100 * chunk + seed), turns)
        tape, values = question(text, values_of(turns, seed))
        plan = Plan(tape)
        with monkeypatch.context() as patch:
            patch.setattr(waves, "_lagging", lambda *_: None)
            apart = Plan(tape)
        near(tape, values, plan)
        for one in ({**values, "u": values["u"] * 2}, values):
            for mine, other in zip(plan.answer(one) or (), apart.answer(one) or (), strict=True):
                np.testing.assert_array_equal(mine, other)
        lags += lags_of(plan)
    assert max(lags) > 1
    assert sum(lag > 0 for lag in lags) > 4


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_many_towers_at_random(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 50):
        random = Random(seed)
        monkeypatch.setattr(scans, "CHUNK", random.choice((1, 2, 3, 4, 7, 16)))
        turns = random.randint(9, 40)
        tape, values = question(a_tower(random, turns), values_of(turns, seed))
        plan = Plan(tape)
        for _ in range(2):
            near(tape, values, plan)


@pytest.mark.parametrize("turns", range(9, 22))
@pytest.mark.parametrize("chunk", [1, 4])
def test_two_layers_of_every_length(turns: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "CHUNK", chunk)
    monkeypatch.setattr(Nest, "sum", lambda nest, component: None)
    tape, values = question(TWO_LAYERS.format(turns=turns), values_of(turns))
    plan = Plan(tape)
    for _ in range(2):
        judge(tape, values, plan)
    assert 1 in lags_of(plan)


def test_fewer_calls_in_a_round() -> None:
    """What is between takes a call for a chunk, not one for each turn."""
    tape, values = question(TWO_LAYERS.format(turns=300), values_of(300))
    plan = Plan(tape)
    near(tape, values, plan)
    ahead = next(event.function for event in scan_events(plan) if event.function.middle)
    assert ahead.packing.calls < 20
    assert f"{len(ahead.middle)} steps between" in repr(ahead)
    assert len(ahead.middle) >= 10


FAR = {
    "the turn before": "g = tanh(0.5*g + x[t])\n    h = sigmoid(p*w)*tanh(h) + 0.1*h\n    p = g",
    "a choice": "g = tanh(0.5*g + x[t])\n    h = where(g > 0, tanh(h*w), 0.3*h - g)",
    "a part": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w)*sin(g[::-1])",
    "a sum": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w)*sum(sin(g))",
    "a mask": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w + relu(g))*sign(g + 0.3)",
    "nobody reads it": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w)*sin(g)\n    p = tanh(p*h)",
    "turns differ": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w)*sin(g)*(t + 1)*z[n - t]",
    "sums between": "g = tanh(0.5*g + x[t])\n    p = p + sin(g)\n    h = tanh(h*w)*p",
    "one number": "g = tanh(0.5*g + x[t])\n    h = tanh(h*w)*sin(g)\n    q = 0.5*sin(q) + g*h",
    "large and odd": "g = tanh(0.5*g + 1e300*x[t])\n    h = tanh(h*w)*exp(700*g)",
}


@pytest.mark.parametrize("form", FAR)
@pytest.mark.parametrize("chunk", [1, 3])
def test_other_forms(form: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "CHUNK", chunk)
    text = f"const n = 17\ng, h, p, q = u, w, 0*u, w*u\nfor t in range(17):\n    {FAR[form]}\nsum(g*h)" + "{}"
    for tail in ("", " + sum(p*q)"):
        tape, values = question(text.format(tail + " + 0*(sum(z) + sum(W) + sum(u*w))"), values_of(17))
        plan = Plan(tape)
        for _ in range(3):
            near(tape, values, plan)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -0.0, 1e200])
def test_odd_numbers_in_one_turn(odd: float) -> None:
    given = values_of(22)
    given["x"][10, 1] = odd
    tape, values = question(TWO_LAYERS.format(turns=22), given)
    plan = Plan(tape)
    for one in (values, {**values, "x": values_of(22)["x"]}):  # nothing is left of the first run
        near(tape, one, plan)


def test_single_precision() -> None:
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    plan = Plan(tape, "float32")
    answer = plan.answer(values)
    assert answer is not None
    assert 1 in lags_of(plan)
    for one, other in zip(answer, tape.run(values, backend="numpy", dtype="float32"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_wide_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the same in all turns is not written out for each of them where turns are long."""
    monkeypatch.setattr(lagging, "REPEATED", 2)
    tape, values = question(TWO_LAYERS.format(turns=23), values_of(23))
    plan = Plan(tape)
    near(tape, values, plan)
    assert 1 in lags_of(plan)


def test_machine_code_where_it_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is not calls that take time, and no recurrence is a chunk behind."""
    monkeypatch.setattr(rounds, "likely", lambda *_: True)
    tape, _ = question(TWO_LAYERS.format(turns=40), values_of(40))
    assert max(lags_of(Plan(tape))) == 0


DAMAGE: dict[str, tuple[Any, str, Any]] = {
    "nothing is passed on": (scans.Scan, "_pass", lambda scan, arrays, start: None),
    "one chunk is left out": (lagging.Between, "run", lambda between, arrays, start, chunk: None),
    "a turn too early": (lagging.Between, "_turns", lambda between, start, lag, chunk: (max(start - (lag - 1)*chunk, 1) - 1,
        max(start - (lag - 1)*chunk, 1) - 1 + min(chunk, 3))),
    "what stands before is forgotten": (lagging.Between, "take", lambda between, arrays, target, place, distance, first:
        np.copyto(target, between.stacks[place][max(first - distance, 0):][: len(target)])),
    "what is the same is forgotten": (lagging.Between, "begin", lambda between, arrays: [full.fill(0) for full, _ in between._same]),
}  # fmt: skip


GATED = """g, h = u, w
for t in range(22):
    g = tanh(0.5*g + x[t])
    h = 0.7*tanh(h*w + 0.1)*sigmoid(g*u - w)
sum(g*h) + 0*(sum(z) + sum(W))"""


@pytest.mark.parametrize("damage", DAMAGE)
def test_planted_errors_are_noticed(damage: str) -> None:
    """Damaged first, with values of its own: memory may still hold what a run with the same values left there."""
    tape, values = question(GATED, values_of(22, 1 + list(DAMAGE).index(damage)))
    with patched(DAMAGE[damage]), pytest.raises((AssertionError, ValueError)):
        near(tape, values, Plan(tape))
    near(tape, values, Plan(tape))


def test_first_turns_of_a_chunk_behind_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tape, values = question(TWO_LAYERS.format(turns=22), values_of(22, 9))
    bind = scans.Scan._bind

    def forgetful(scan: Any, out: Any) -> None:
        bind(scan, out)
        scan._later.clear()

    monkeypatch.setattr(scans.Scan, "_bind", forgetful)
    with pytest.raises(AssertionError):
        near(tape, values, Plan(tape))


def test_rows_count_as_memory() -> None:
    """The rows of a chunk, and what is between, are in the bytes that a plan says it needs."""
    tape, values = question(GATED, values_of(22))
    plan = Plan(tape)
    plan.answer(values)
    (body,) = [
        event.function for event in scan_events(plan) if event.function.middle and 1 in event.function.lags.values()
    ][:1]
    rows = sum(frame.width * frame.dtype.itemsize for frame in body.layout.frames.values())
    assert body.room > rows * scans.CHUNK
    assert plan.nbytes > body.room
