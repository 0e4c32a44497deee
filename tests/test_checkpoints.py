"""Long loops in reverse: the same bits from far less memory, no step more than twice, and only where memory is short."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import questions
from gradcli.execution import checkpoints
from gradcli.execution.checkpoints import Chain, checkpointed
from gradcli.execution.evaluate import Tape
from gradcli.execution.plans.numpy_plan import planned
from gradcli.lowering.iteration import loops
from tests.forced import patched
from tests.random_programs import make

LOOP = "y = x\nfor i in range({steps}):\n    y = y + 0.05*tanh(W @ y)\nsum(y**2)"
SCALED = "y = x\nfor i in range({steps}):\n    y = where(y > 0.2, y*cos(y), y + 0.01*sin(roll(y, 1)))\nmean(y)"
TWO = "y = x\nz = 2*x\nfor i in range({steps}):\n    y, z = z*exp(-y*y), y + 0.1*z\nsum(y*z)"


def loop(script: str, steps: int, size: int = 500) -> tuple[questions.Question, dict[str, Any]]:
    random = np.random.default_rng(steps)
    shape: tuple[int, ...] = (20, size // 20) if "W" in script else (size,)
    point = {"x": random.uniform(-1, 1, shape)}
    if "W" in script:
        point["W"] = random.uniform(-0.2, 0.2, (20, 20))
    with patched((loops, "FEWEST", 10**9)):  # written out
        lowered = questions.prepare(script.format(steps=steps), point)
    question = questions.gradient_question(lowered)
    return question, question.values(point)


def plain(question: questions.Question) -> Tape:
    """The tape without checkpoints."""
    tape = Tape(question.tape.outputs)
    tape._checkpoints = None
    return tape


def traced(run: Any) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("script", [LOOP, SCALED, TWO])
def test_a_long_loop_needs_the_root_of_its_memory(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "LIVE", 1 << 18)
    measured = []
    for steps in (100, 400):
        question, values = loop(script, steps)
        work = question.tape.checkpoints()
        assert work is not None
        slots = [slot for slot, _ in work]
        assert max(np.bincount(slots)) == 2
        assert len(slots) < 2 * len(question.tape.nodes)
        other = plain(question)
        other._steps(False)
        question.tape._steps(False)
        want, most = traced(lambda other=other, values=values: other.run(values, backend="numpy"))
        found, least = traced(lambda question=question, values=values: question.tape.run(values, backend="numpy"))
        for one, two in zip(found, want, strict=True):
            assert np.array_equal(one, two)
        chain = Chain(question.tape.nodes, question.tape.outputs)
        told = chain.peak(work)[0]
        assert least < 1.5 * told + 200_000  # arrays, and what Python needs beside them
        measured.append((most, least))
    assert measured[1][1] < measured[1][0] / 3
    assert measured[1][0] > 3 * measured[0][0]  # four times the steps: four times the memory
    assert measured[1][1] < 3 * measured[0][1]  # here about twice


@pytest.mark.parametrize("seed", range(80))
def test_random_programs_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no chain, in pieces of any number: first and second derivatives."""
    monkeypatch.setattr(checkpoints, "LIVE", 0)
    monkeypatch.setattr(checkpoints, "GAIN", 0.5)
    program = make(seed, arrays=True)
    question = questions.gradient_question(questions.prepare(program.text, program.values))
    values = question.values(program.values)
    tapes = [question.tape]
    monkeypatch.setattr(checkpoints, "_pieces", lambda *_: 2 + seed % 5)
    for tape in tapes:
        work = checkpointed(tape.nodes, tape.outputs)
        if work is None:
            continue
        assert max(np.bincount([slot for slot, _ in work])) <= 2
        other = plain(question)
        tape._checkpoints, tape._array_steps = work, None
        for one, two in zip(tape.run(values, backend="numpy"), other.run(values, backend="numpy"), strict=True):
            assert np.array_equal(one, two, equal_nan=True)


def test_short_programs_are_left_alone() -> None:
    question, _ = loop(LOOP, 100)
    assert question.tape.checkpoints() is None
    assert planned(question.tape, "float64") is not None


def test_a_wide_program_without_a_chain_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pieces need each other, computing twice would gain nothing."""
    monkeypatch.setattr(checkpoints, "LIVE", 1 << 10)
    point = {"x": np.linspace(0.1, 1, 5000)}
    question = questions.gradient_question(questions.prepare("sum(sin(x)*exp(x))", point))
    assert question.tape.checkpoints() is None


def test_compiled_functions_and_answers_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    x, w = random.uniform(-1, 1, (20, 25)), random.uniform(-0.2, 0.2, (20, 20))
    script = LOOP.format(steps=120)
    value, slopes = gradcli.compile(script).value_and_grad(x=x, W=w)
    monkeypatch.setattr(checkpoints, "LIVE", 1 << 16)
    f = gradcli.compile(script)
    again, same = f.value_and_grad(x=x, W=w)
    (question,) = f._kept.values()
    assert question.tape.checkpoints() is not None
    assert question._plans["float64"] is None
    assert again == pytest.approx(value, rel=1e-13)
    told = gradcli.grad(script, at={"x": x, "W": w})
    for name, slope in slopes.items():
        assert np.allclose(same[name], slope, rtol=1e-12, atol=1e-14)
        assert np.array_equal(told.gradient[name], same[name])
