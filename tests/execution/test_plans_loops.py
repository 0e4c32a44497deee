"""Loops in plans: what takes all iterations at once and what runs iteration by iteration.

Every answer is compared with the evaluator's on the iterations written out.
"""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.compiler import emit_numba, lower
from gradcli.execution.compiler.numpy_plan import Plan, planned
from gradcli.execution.evaluate import Tape
from gradcli.execution.loops import array_iterations, cores
from gradcli.graph.node import is_reader
from gradcli.lowering.iteration import loops
from tests.execution.test_plans import question
from tests.support import loop_scripts
from tests.support.forced import BLOCKS, LOOPS, patched, patches
from tests.support.rounding import allowed, beyond

ITERATIONS = 26


@pytest.fixture(autouse=True)
def short_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of few iterations are nodes; machine code has a test of its own."""
    monkeypatch.setenv("GRADCLI_FAST", "0")
    patches(monkeypatch, *LOOPS)


def written_out(text: str, values: dict[str, Any]) -> Tape:
    with patched((loops, "FEWEST", 10**9)):
        return question(text, values)[0]


def within(text: str, values: dict[str, Any], dtype: str = "float64") -> Plan:
    """The plan of a script with loops as nodes, whose answers are those of the iterations written out but for rounding."""
    tape, values = question(text, values)
    assert any(map(is_reader, tape.nodes))
    plan = Plan(tape, dtype)
    answer = plan.answer(values)
    assert answer is not None
    assert not beyond(answer, allowed(written_out(text, values), values, dtype))
    again = plan.answer(values)
    assert again is not None
    assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(answer, again, strict=True))
    return plan


def values_of(iterations: int = ITERATIONS, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "x": random.uniform(-1, 1, (iterations + 1, 3)), "z": random.uniform(-1, 1, iterations + 1),
        "u": random.uniform(-1, 1, 3), "w": random.uniform(-1, 1, 3), "W": random.uniform(-0.5, 0.5, (3, 3)),
    }  # fmt: skip


def loop(body: str, term: str = "sum(h*p)", iterations: int = ITERATIONS) -> str:
    """A script with one loop, that reads every leaf."""
    return (
        f"h, g, p, s = u, w, w, 0\nfor t in range({iterations}):\n    {body}\n    s = s + {term}\n"
        "s + sum(h*g) + 0.1*(sum(x) + sum(z) + sum(u) + sum(w) + sum(W))"
    )


# --- what a plan makes of loops ---------------------------------------------------------------------------------


def at_random(seeds: Any, dtype: str = "float64") -> int:
    """Scripts as people write them; how many of their plans have loops."""
    made = 0
    for seed in seeds:
        text, values = loop_scripts.make(seed)
        tape, values = question(text, values)
        if not any(map(is_reader, tape.nodes)) or (plan := planned(tape, dtype)) is None:
            continue
        made += 1
        rows = allowed(written_out(text, values), values, dtype)
        first = plan.answer(values)
        assert first is not None, seed
        assert not beyond(first, rows), seed
        strange = (
            loop_scripts.odd(seed, values)
            if dtype == "float64"
            else {name: 2 * value for name, value in values.items()}
        )
        plan.answer(strange)
        third = plan.answer(values)
        assert third is not None
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(third, first, strict=True)), seed
    return made


def test_scripts_at_random() -> None:
    assert at_random(range(10)) > 4


def test_scripts_at_random_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    patches(monkeypatch, *BLOCKS)
    assert at_random(range(16, 22)) > 2


def test_single_precision() -> None:
    assert at_random(range(24, 29), "float32") > 1


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 3000, 50))
def test_many_scripts_at_random(start: int) -> None:
    assert at_random(range(start, start + 50), "float32" if start % 500 == 0 else "float64") > 10


def test_second_derivatives() -> None:
    *lines, last = loop("h = tanh(h*w + x[t])", "sum(h**2)", 20).splitlines()
    within("\n".join([*lines, f"out = {last}", "sum(grad(out, u)*w) + sum(grad(out, x)**2)"]), values_of(20))


def test_a_sum_over_iterations_is_one_step() -> None:
    plan = within(loop("h = x[t]*w", "sum(sin(h))"), values_of())
    # one carry is replaced in each iteration, none is computed from itself
    assert not any(core.core for core in plan.cores())
    assert len(plan.schedule.events) < 60


INNER = {
    "from a carry": "p = h\n    for k in range(5):\n        p = tanh(p*w + x[t])\n    h = 0.5*h + p",
    "from a row": "p = x[t]\n    for k in range(5):\n        p = sin(p)*w + 0.1*p\n    h = 0.5*h + p",
    "two carries": "p, g = x[t], 0*w\n    for k in range(5):\n        p, g = p*w + g, 0.5*g + p\n    h = h*g + p",
    "three deep": "for k in range(5):\n        for m in range(5):\n            h = tanh(h*w + 0.1*x[t])\n        g = 0.9*g + h",
    "a mask": "p = x[t]\n    for k in range(5):\n        p = where(p > 0, sqrt(abs(p)), p + 0.2)\n    h = 0.5*h + p",
}


@pytest.mark.parametrize("name", INNER)
def test_loops_inside_of_loops(name: str) -> None:
    plan = within(loop(INNER[name]), values_of())
    assert any(is_reader(step) for scan in plan.tape.loops.values() for step in scan.body.steps)


def test_many_directions_in_front_of_a_loop() -> None:
    text, values = loop("h = tanh(h*w + x[t])", "sum(h**2)"), values_of()
    found = gradcli.compile(text, wrt=("u", "w"))
    hessian = found.hessian(**values).hessian
    question = next(iter(found._kept.values()))
    plans = [plan for sweep in question.sweeps for plan in sweep.along._plans.values()]
    assert plans and None not in plans
    alone = gradcli.hessian(text, at=values, wrt=("u", "w")).hessian
    for one in ("u", "w"):
        for other in ("u", "w"):
            np.testing.assert_allclose(hessian[one][other], alone[one][other], rtol=1e-12)


def test_entries_that_nobody_reads_beside_a_loop() -> None:
    """The steps are made again on the ranges that are read; a loop among them stays whole."""
    *lines, last = loop("h = tanh(h*w + x[t])").splitlines()
    text = "\n".join([*lines, f"rest = {last}", "y = sin(v)*v", "rest + y[3]"])
    within(text, {**values_of(), "v": np.linspace(0, 1, 100_000)})


def test_several_threads_run_one_plan() -> None:
    text, values = loop("h = tanh(h*w + x[t])"), values_of()
    tape, values = question(text, values)
    plan = Plan(tape)
    points = [{**values, "u": values["u"] + k / 10} for k in range(6)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(plan.answer, points * 3))
    for one, other in zip(together, points * 3, strict=True):
        alone = plan.answer(other)
        assert alone is not None
        assert one is not None
        assert all(np.array_equal(x, y) for x, y in zip(one, alone, strict=True))


def test_odd_numbers_reach_the_same_places() -> None:
    """Infinities and NaN in one iteration, also where a choice keeps them away."""
    text = loop("h = where(x[t] > 0, h*w + sqrt(x[t]), tanh(h))\n    g = 0.5*g + h")
    tape, values = question(text, values_of())
    plan, plain = Plan(tape), written_out(text, values)
    for bad in (np.nan, np.inf, 0.0):
        values["x"][7, 1] = bad
        answer = plan.answer(values)
        assert answer is not None
        for one, other in zip(answer, plain.run(values, backend="numpy"), strict=True):
            assert np.array_equal(np.isfinite(one), np.isfinite(other))


def test_planted_errors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state after the wrong iteration, rows of the wrong iteration, values that share memory while they are needed."""
    text, values = loop("g = 0.5*g - x[t]\n    h = tanh(h*w) + sin(h*u) + g"), values_of()
    within(text, values)
    run, lay_out, stages = cores.Core.run, array_iterations.lay_out, lower.IterationStages

    def late(core: Any, columns: Any, *rest: Any) -> Any:
        return run(core, [np.roll(one, 1, 0) for one in columns], *rest)

    def overlapping(*args: Any) -> Any:
        made = lay_out(*args)
        made.offsets = dict.fromkeys(made.offsets, 0)
        return made

    def second(one: Any, x: Any) -> Any:
        return one.steps.view("reshape", one._part(x, 1, 2), x.shape[1:], x.shape[1:])

    planted = [(cores.Core, "run", late), (array_iterations, "lay_out", overlapping), (stages, "_last", second)]
    for owner, name, wrong in planted:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrong)
            with pytest.raises(AssertionError):
                within(text, values)


# --- recurrences ----------------------------------------------------------------------------------------------------

RECURRENCES = {
    "autoregression": "h = w*h + x[t]",
    "factor of an iteration": "h = x[t]*h - z[t]",
    "quotient": "h = (h - x[t])/(2 + z[t])",
    "from the left": "h = x[t] - h*u",
    "two ways": "h = x[t]*h + z[t]*h + u",
    "negative": "h = -(w*h) + x[t + 1]",
    "two numbers": "g, h = 0.5*g + 0.3*h + u, 0.4*h - 0.2*g + x[t]",
    "two iterations before": "g, h = h, 0.5*h + 0.3*g + x[t]",
    "a function": "h = tanh(h*w + x[t])",
    "a square": "h = 0.5*h*h + x[t]",
    "in the denominator": "h = x[t]/(3 + h)",
    "entries mixed": "h = 0.5*h[::-1] + x[t]",
    "a matrix": "h = W @ h + x[t]",
    "the condition": "h = where(h > 0, 0.5*h, x[t])",
}


@pytest.mark.parametrize("name", RECURRENCES)
def test_recurrences(name: str) -> None:
    assert within(loop(RECURRENCES[name]), values_of()).cores()


@pytest.mark.parametrize("iterations", [9, 24, 67])
def test_every_number_of_iterations(iterations: int) -> None:
    within(loop("h = x[t]*h + w", "sum(h*h)", iterations), values_of(iterations))


def test_layers() -> None:
    """Two layers of an LSTM with weights entry by entry: two recurrences forward, two back."""
    body = """g = sigmoid(x[t]*w + 0.3)*g + sigmoid(h*w - 0.1)*tanh(h*u)
    h = sigmoid(x[t]*u)*tanh(g)
    q = sigmoid(h*w + 0.2)*q + sigmoid(p*u)*tanh(p*w + 0.1)
    p = sigmoid(h*u)*tanh(q)"""
    plan = within("q = 0*w\n" + loop(body, "sum(exp(p))"), values_of())
    assert len(plan.cores()) == 4


@pytest.mark.parametrize("bad", [np.nan, -np.inf, -0.0, 1e200, 5e-324])
@pytest.mark.parametrize("form", ["h = x[t]*h + w", "h = h/x[t] - z[t]"])
def test_odd_numbers_in_one_iteration(bad: float, form: str) -> None:
    for place in (0, ITERATIONS - 1):
        values = values_of()
        values["x"][place, 1] = bad
        within(loop(form, "sum(tanh(h)*w)"), values)


def test_the_plan_tells_of_it() -> None:
    report = gradcli.compile(loop("h = 0.5*h + x[t]")).plan(**values_of())
    assert any(step.operation.startswith("scan: 25 iterations of ") for step in report.order)


# --- machine code -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
@pytest.mark.parametrize(
    "body",
    [
        "h = tanh(h*w + x[t])",
        "h = where(x[t] > h, 0.5*h, sqrt(abs(h)) + u)",
        "h = w*h + x[t]",
        "h = x[t] + 0.1*h*sum(h)",
        "h = tanh(h)*max(h*w) + x[t]",
        "h = concatenate((h[1:], h[:1]))*w + x[t]",
        "h = sin(h[::-1])*cos(h) + 0.1*x[t]**3*h",
        "h = 0.1*h**3*exp(-h*h) + log1p(x[t]**2)",
        "h = w*norm(h) + h[0]*x[t]",
    ],
)
def test_machine_code(body: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("GRADCLI_FAST")
    monkeypatch.setattr(emit_numba, "WORK", 1)
    found = within(loop(body), values_of()).cores()
    native = [core.native for core in found if core.body.steps[core.carries[0]].type.kind == "float"]
    assert len(native) >= 2
    assert all(native)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
@pytest.mark.parametrize("body", ["h = tanh(W @ h + x[t])", "h = sort(h)*w + x[t]"])
def test_what_has_no_machine_code(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLI_FAST")
    monkeypatch.setattr(emit_numba, "WORK", 1)
    assert not within(loop(body), values_of()).cores()[0].native


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
def test_a_plan_that_is_run_once_has_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLI_FAST")
    monkeypatch.setattr(emit_numba, "WORK", 1)
    tape, values = question(loop("h = tanh(h*w + x[t])"), values_of())
    plan = Plan(tape, once=True)
    plan.answer(values)
    assert not any(core.native for core in plan.cores())


def test_random_points_of_one_plan() -> None:
    """What a run leaves in memory that iterations share never reaches the next run."""
    text = loop("h = where(z[t] > 0, tanh(h*w), W @ h + x[t])", iterations=20)
    tape, values = question(text, values_of(20))
    plan = Plan(tape)
    random = Random(1)
    points = [values_of(20, random.randrange(100)) for _ in range(4)]
    fresh = [Plan(tape).answer(point) for point in points]
    for point, expected in zip(points, fresh, strict=True):
        found = plan.answer(point)
        assert found is not None
        assert expected is not None
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
