"""Plans without one of their passes give the same answers: the evaluator's, as far as rounding allows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.repeated.compiled import _gradient
from gradcli.execution.compiler import emit_numba, schedule
from gradcli.execution.compiler.numpy_plan import Plan
from tests.execution.test_plans_random import cases
from tests.support.attack_programs import ALGORITHMS, algorithm, matrices
from tests.support.forced import BLOCKS, LOOPS, patched, patches
from tests.support.passes import PASSES, without
from tests.support.rounding import allowed, beyond

LINE = np.linspace(-2, 2, 240)
TURNS = np.random.default_rng(0).normal(size=(20, 3))
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a line": ("sum(sin(x)*cos(x) + exp(-x**2) + x**7) + sum((x[1:] - x[:-1]**2)**2)", {"x": LINE}),
    "softmax": ("A = zeros(5, 4)\nsum(logsumexp(A, axis=1)) + sum(softmax(A[:, 0])**2)", {"A": LINE.reshape(-1, 4)}),
    "nearest": (
        "X = zeros(5, 2)\nC = zeros(3, 2)\nsum(min(sum((X[:, None, :] - C)**2, axis=2), axis=1))",
        {"X": LINE.reshape(-1, 2), "C": np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 0.1]])},
    ),
    "layers": (
        "g, h, s = u, u, 0\nfor t in range(20):\n    g = tanh(0.5*g*w + x[t])\n    h = sigmoid(h*w)*sin(g) + 0.1*h\n"
        "    s = 0.9*s + sum(h)\ns",
        {"u": TURNS[0], "w": TURNS[1], "x": TURNS},
    ),
    "one entry": ("y = sin(x)*x\ny[3] + y[5]", {"x": LINE}),
    "repeated": ("y = x\nfor i in range(5):\n    y = sin(y) + 1/(1 + y**2)\nsum(y[3:50])", {"x": LINE}),
}


def question(name: str) -> tuple[Any, dict[str, Any]]:
    text, values = PROGRAMS[name]
    with patched(*LOOPS):
        found, point = gradcli.compile(text)._question("grad", _gradient, values)
        return found.tape, found.values(point)


def answer(tape: Any, values: dict[str, Any]) -> Any:
    """What a compiled function answers."""
    return Plan(tape, threads=2).answer(values)


QUESTIONS = {name: question(name) for name in PROGRAMS}
RIGHT = {name: allowed(*QUESTIONS[name]) for name in PROGRAMS}


@pytest.fixture(autouse=True)
def every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs take the forms of large ones; machine code has tests of its own."""
    monkeypatch.setenv("GRADCLI_FAST", "0")
    patches(
        monkeypatch,
        *BLOCKS,
        *LOOPS,
        (schedule, "FEWEST_ROWS", 4),
        (emit_numba, "WORK", 1),
    )


@pytest.mark.parametrize("name", [None, *PASSES])
def test_answers_are_the_same_without(name: str | None) -> None:
    with without(*([name] if name else [])):
        for program, (tape, values) in QUESTIONS.items():
            assert not beyond(answer(tape, values), RIGHT[program]), program


def test_every_pass_is_taken_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table names is called by some program; with a pass left out, it is not."""
    called: Counter[str] = Counter()

    def noted(name: str, usual: Any) -> Any:
        function = getattr(usual, "__func__", usual)

        def work(*args: Any, **named: Any) -> Any:
            called[name] += 1
            return function(*args, **named)

        return classmethod(work) if isinstance(usual, classmethod) else work

    for name, one in PASSES.items():
        for owner, attribute, _ in one.absent:
            monkeypatch.setattr(owner, attribute, noted(name, vars(owner)[attribute]))
    for tape, values in QUESTIONS.values():
        answer(tape, values)
        Plan(tape).answer(values)
    assert set(called) == set(PASSES)
    called.clear()
    with without(*PASSES):
        for tape, values in QUESTIONS.values():
            answer(tape, values)
    assert not called


def test_what_is_left_out_comes_back() -> None:
    before = [vars(owner)[name] for one in PASSES.values() for owner, name, _ in one.absent]
    with pytest.raises(KeyError), without("blocks", "memory", "no such pass"):
        pass
    with pytest.raises(ZeroDivisionError), without(*PASSES):
        raise ZeroDivisionError
    assert before == [vars(owner)[name] for one in PASSES.values() for owner, name, _ in one.absent]


@pytest.mark.deep
@pytest.mark.parametrize("start", range(0, 1_000, 100))
@pytest.mark.parametrize("name", PASSES)
def test_random_programs_without(name: str, start: int) -> None:
    with without(name):
        for seed, tape, values in cases(20_000 + start, 100, strange=start % 200 == 0):
            assert not beyond(answer(tape, values), allowed(tape, values)), seed
        for seed in range(start // 5, start // 5 + 20):
            algorithms = [
                algorithm(which, seed, 14 + seed % 60) for which in Random(seed).sample(sorted(ALGORITHMS), 2)
            ]
            for case in (matrices(seed), *algorithms):
                found, point = gradcli.compile(case.text)._question("grad", _gradient, case.values)
                tape, values = found.tape, found.values(point)
                assert not beyond(answer(tape, values), allowed(tape, values)), (seed, case.text)


@pytest.mark.deep
def test_random_programs_without_any() -> None:
    with without(*PASSES):
        for seed, tape, values in cases(30_000, 500, strange=False):
            assert not beyond(answer(tape, values), allowed(tape, values)), seed
