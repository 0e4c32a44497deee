"""Recurrences of plans in machine code (extra `fast`): the evaluator's answers, NumPy's bits where arithmetic is IEEE's, and absence."""

from __future__ import annotations

import importlib.util
import re
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution import kernels
from gradcli.execution.kernels import native, rounds
from gradcli.execution.plans import scans
from gradcli.execution.plans.numpy_plan import Plan
from gradcli.execution.plans.scans import Scan
from tests.test_plans_rolling import TWO_LAYERS, near, question, scan_events, short, values_of  # noqa: F401

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
PLAIN = ("h", "g", "w", "x[t]", "x[t + 1]", "x[n - t]", "h*g", "0.5", "abs(h)", "maximum(h, g)", "minimum(g, w)", "-h", "w/3",
         "sqrt(abs(g))", "h**2")  # fmt: skip
CURVED = ("tanh(h)", "exp(-h**2)", "sin(g)", "cos(h + w)", "sigmoid(w + g)", "log(2 + h**2)", "tanh(x[t] - g)")
JOINED = ("0.5*({} - {})", "0.3*{} + 0.2*{}", "{}/(2 + ({})**2)", "{}*({})*0.4")


@pytest.fixture(autouse=True)
def always(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("GRADCLI_FAST", raising=False)
    monkeypatch.setattr(kernels, "NATIVE_WORK", 1)
    monkeypatch.setattr(scans, "CHUNK", 8)


def a_loop(random: Random, atoms: tuple[str, ...]) -> tuple[str, int]:
    """A script whose loop takes entries by themselves."""
    turns = random.choice([9, 17, 40])
    lines = []
    for name in random.choices(("h", "g", "h", "p"), k=random.randint(2, 5)):
        value = random.choice(JOINED).format(random.choice(atoms), random.choice(atoms))
        lines.append(f"    q, p = p, {value} + 0*w" if name == "p" else f"    {name} = {value} + 0.1*{name} + 0*w")
    text = f"const n = {turns}\nh, g, p, q = u, 0*u + w, w, u*w\nfor t in range({turns}):\n" + "\n".join(lines)
    return f"{text}\nsum(h*g) + sum(p*q) + 0.1*(sum(x) + sum(z) + sum(W) + sum(u*w))", turns


def scans_of(plan: Plan) -> list[Any]:
    return [event.function for event in scan_events(plan)]


@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(6, 48, 6)]])
def test_loops_at_random(start: int, short: str) -> None:  # noqa: F811
    compiled = 0
    for seed in range(start, start + 6):
        text, turns = a_loop(Random(seed), PLAIN + CURVED)
        tape, values = question(text, values_of(turns, seed))
        plan = Plan(tape)
        for _ in range(3):
            near(tape, values, plan)
        compiled += sum(body.machine is not None for body in scans_of(plan))
        near(tape, {**values, "u": values["u"] * 2}, plan)
    assert compiled > 3


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(at, marks=pytest.mark.deep) for at in range(2, 12)]])
def test_plain_arithmetic_has_numpys_bits(seed: int, short: str) -> None:  # noqa: F811
    text, turns = a_loop(Random(100 + seed), PLAIN)
    tape, values = question(text, values_of(turns, seed))
    plan = Plan(tape)
    first, second = plan.answer(values), plan.answer(values)
    assert first is not None
    assert second is not None
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_run_gives_the_same_bits(short: str) -> None:  # noqa: F811
    """Machine code has exponentials of its own, so all runs of a plan have it, or none."""
    compiled = 0
    for seed in range(200, 206):
        text, turns = a_loop(Random(seed), PLAIN + CURVED)
        tape, values = question(text, values_of(turns, seed))
        plan, single = Plan(tape), Plan(tape, once=True)
        for made in (plan, single):
            first, *others = [made.answer(values) or () for _ in range(3)]
            assert first
            for other in others:
                for one, another in zip(first, other, strict=True):
                    np.testing.assert_array_equal(one, another)
        compiled += sum(body.machine is not None for body in scans_of(plan))
        assert all(body.machine is None for body in scans_of(single))
    assert compiled > 2


def test_special_values(short: str) -> None:  # noqa: F811
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    values = {
        **values,
        "x": np.where(np.arange(values["x"].size).reshape(values["x"].shape) == 30, np.nan, values["x"]),
    }
    plan = Plan(tape)
    first, second = plan.answer(values), plan.answer(values)
    assert first is not None
    assert second is not None
    assert any(body.machine is not None for body in scans_of(plan))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    assert np.isnan(first[0])


def test_planted_errors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    word, fast = rounds._word, Scan._fast

    def fails(plan: Plan) -> bool:
        plan.answer({name: 0.5 * value for name, value in values.items()})  # other numbers are left in its memory
        try:
            near(tape, values, plan)
        except AssertionError:
            return True
        return False

    assert not fails(Plan(tape))
    with monkeypatch.context() as patch:  # the entry beside the right one
        patch.setattr(rounds, "_word", lambda column, names: word(column, names).replace(" + e]", " + (e + 1)]"))
        assert fails(Plan(tape))
    with monkeypatch.context() as patch:  # one round too few
        short_of = lambda code: code._replace(run=lambda count, *rest: code.run(count - 1, *rest))  # noqa: E731
        patch.setattr(Scan, "_fast", lambda scan, code: fast(scan, short_of(code)))
        assert fails(Plan(tape))


def test_the_text_holds_nothing_but_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    whole = native.made
    monkeypatch.setattr(native, "made", lambda text: texts.append(text) or whole(text))  # type: ignore[func-returns-value]
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    Plan(tape, once=True).answer(values)
    assert not texts  # one run is not worth the compiler
    Plan(tape).answer(values)
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", "\n".join(texts)))
    ours = (
        r"[avs]\d+|loop|count|wide|for|i|e\d*|in|range|if|else|def|abs|sqrt|copysign|INF|NAN|(exp|log|tanh|sincos_far)_"
    )
    assert texts and all(re.fullmatch(ours, word) for word in words), words


@pytest.mark.parametrize("reason", ["turned off", "little work", "another type", "a product"])
def test_numpy_does_the_rest(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "made", lambda text: pytest.fail("not wanted"))
    text, dtype = TWO_LAYERS.format(turns=40), "float64"
    if reason == "turned off":
        monkeypatch.setenv("GRADCLI_FAST", "0")
    elif reason == "little work":
        monkeypatch.setattr(kernels, "NATIVE_WORK", 1 << 62)
    elif reason == "another type":
        dtype = "float32"
    else:
        text = "h = u\nfor t in range(40):\n    h = tanh(W @ h + x[t])\nsum(h) + 0*(sum(z) + sum(w))"
    tape, values = question(text, values_of(40))
    plan = Plan(tape, dtype)
    for _ in range(3):
        assert plan.answer(values) is not None
    assert scan_events(plan)


def test_a_report_tells_it() -> None:
    text = "h = u\nfor t in range(60):\n    h = tanh(0.5*h + x[t])\nsum(h)"
    random = np.random.default_rng(1)
    made = gradcli.compile(text).plan(u=random.normal(size=5), x=random.normal(size=(60, 5)))
    assert any("in machine code" in step.operation for step in made.order)
    assert "native" in [one.name for one in made.passes]
