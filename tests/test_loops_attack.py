"""Loops in odd shapes, as plans find them again, against the evaluator, against plans without loops, and against themselves.

Every program is rolled whether that pays or not, so that what is rare in good programs is common here. Bits are those of
a plan without loops where nothing is added up within a turn and sums over turns are left in their order.
"""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.execution import kernels, plans
from gradcli.execution.plans import layouts, linear, nests, rolling, scans
from gradcli.execution.plans.numpy_plan import Plan
from gradcli.execution.plans.nests import Nest
from tests import loop_programs, loop_scripts
from tests.forced import BLOCKS, LOOPS, WAVES, patched
from tests.loop_programs import odd
from tests.test_plans import question
from tests.test_plans_rolling import TWO_LAYERS, found_loops, near, scan_events, swing, values_of

if TYPE_CHECKING:
    from gradcli.execution.evaluate import Tape

FORCED = [*LOOPS, (rolling, "FEWEST_STEPS", 8)]


def without_loops(tape: Tape) -> Plan:
    with patched((plans, "rolled", lambda recording, float_type: recording)):
        return Plan(tape, threads=1)


def far(tape: Tape, values: dict[str, Any], answer: Any, dtype: str = "float64") -> str | None:
    """Where a plan is further from the evaluator than another order of additions can bring it; None if nowhere."""
    close, last = (1e-10, 1.0) if dtype == "float64" else (2e-4, 6e8)  # digits, and a last bit in those of doubles
    for at, (one, other) in enumerate(zip(answer, tape.run(values, backend="numpy", dtype=dtype), strict=True)):
        scale = np.max(np.abs(np.where(np.isfinite(other), other, 0)), initial=1.0)
        if not np.allclose(one, other, rtol=close, atol=0.1 * close * scale, equal_nan=True):
            most = max(20 * last * swing(tape, values, at), 0.1 * close * scale)  # some loops are chaotic
            if not np.allclose(one, other, rtol=close, atol=most, equal_nan=True):
                return f"output {at} is {np.max(np.abs(np.subtract(one, other)))} off; the last bits make {most}"
    return None


def alike(answer: Any, other: Any) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(answer, other, strict=True))


def settings(random: Random) -> list[tuple[Any, str, Any]]:
    """How the loops of a program are treated."""
    waved, blocked, solved = random.random() < 0.5, random.random() < 0.25, random.random() < 0.5
    return [
        *FORCED,
        *(WAVES if waved else []),
        *(BLOCKS if blocked else []),
        (linear, "FEWEST", 8 if solved else 10**9),
        (scans, "CHUNK", random.choice((1, 8, 64))),
    ]


def attacked(text: str, values: dict[str, Any], seed: int, dtype: str = "float64") -> str | None:
    """What is wrong with the plan of a program; None if nothing is."""
    tape, values = question(text, values)
    with patched(*settings(Random(seed))):
        plan = Plan(tape, dtype, threads=1 + seed % 2)
        first = plan.answer(values)
        wrong = far(tape, values, first, dtype)
        if wrong is not None:
            return wrong
        other = odd(seed, values) if dtype == "float64" else {name: 2 * value for name, value in values.items()}
        strange = plan.answer(other)
        if dtype == "float64":
            for one, two in zip(strange or [], without_loops(tape).answer(other) or [], strict=True):
                if not np.array_equal(np.isnan(one), np.isnan(two)):
                    return "odd numbers reach other places"
        return None if alike(plan.answer(values), first) else "what ran between changes the answer"


def judged(text: str, values: dict[str, Any], seed: int, dtype: str = "float64") -> None:
    wrong = attacked(text, values, seed, dtype)
    assert wrong is None, f"seed {seed}: {wrong}"


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code has bits of its own; its test turns it on again."""
    monkeypatch.setenv("GRADCLI_FAST", "0")


def second(text: str) -> str:
    """A script whose value is made of first derivatives, so that its gradient is made of second ones."""
    *lines, last = text.split("\n")
    return "\n".join([*lines, f"out = {last}", "sum(grad(out, u)*w) + sum(grad(out, x)**2)"])


@pytest.mark.parametrize("start", [0, 10, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 3000, 50)]])
def test_programs(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    for seed in range(start, start + (10 if start < 1000 else 50)):
        judged(*loop_programs.make(seed), seed)
    assert len(loops) > 10


@pytest.mark.parametrize("start", [0, 10, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 3000, 50)]])
def test_scripts(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    for seed in range(start, start + (10 if start < 1000 else 50)):
        judged(*loop_scripts.make(seed), seed)
    assert len(loops) > 10


@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 2000, 50)]])
def test_bits(start: int) -> None:
    """Nothing is added up in these turns, and sums over turns keep their order: the bits of a plan without loops."""
    late = 0
    for seed in range(start, start + (15 if start < 1000 else 50)):
        text, values = loop_programs.make(seed, entrywise=True)
        tape, values = question(text, values)
        with patched(*FORCED, *WAVES, (Nest, "sum", lambda nest, component: None), (linear, "FEWEST", 10**9)):
            plan, plain = Plan(tape), without_loops(tape).answer(values)
        found = plan.answer(values)
        assert found is not None
        assert plain is not None
        assert alike(found[1:], plain[1:]), seed  # the value is a sum over the entries of a turn
        np.testing.assert_allclose(found[0], plain[0], rtol=1e-12)
        late += sum([event.function.rounds > event.function.count for event in scan_events(plan)])
    assert late > 1 or start >= 1000  # about three of fifty programs have recurrences that share rounds, at random none


@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 1800, 50)]])
def test_second_derivatives(start: int) -> None:
    for seed in range(start, start + (5 if start < 1000 else 50)):
        text, values = (loop_programs if seed % 2 else loop_scripts).make(seed)
        judged(second(text), values, seed)


@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 1800, 50)]])
def test_single_precision(start: int) -> None:
    for seed in range(start, start + (6 if start < 1000 else 50)):
        judged(*(loop_programs if seed % 2 else loop_scripts).make(seed), seed, "float32")


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
@pytest.mark.parametrize("start", [0, *[pytest.param(at, marks=pytest.mark.deep) for at in range(1000, 1200, 20)]])
def test_machine_code(start: int, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("GRADCLI_FAST")
    monkeypatch.setattr(kernels, "NATIVE_WORK", 1)
    compiled = 0
    for seed in (6, 10) if start < 1000 else range(start, start + 20):
        text, values = loop_programs.make(seed, entrywise=True)
        tape, values = question(text, values)
        with patched(*FORCED, *WAVES, (linear, "FEWEST", 10**9), (scans, "CHUNK", 1)):
            plan = Plan(tape)
            first, _, third = plan.answer(values), plan.answer(odd(seed, values)), plan.answer(values)
            assert far(tape, values, first) is None
            assert far(tape, values, third) is None, seed
            assert third is not None
            assert alike(plan.answer(values), third)
        compiled += sum([event.function.machine is not None for event in scan_events(plan)])
    assert compiled


def test_questions_that_are_asked_again() -> None:
    """Hessians, gradients and many points of one compiled script: what is asked again is what was asked first."""
    for seed in (3, 8):
        text, values = loop_scripts.make(seed)
        f = gradcli.compile(text, wrt=("u", "w"))
        first = f.hessian(**values)
        f.hessian(**{**values, "u": 2 * values["u"]})
        again = f.hessian(**values)
        points = np.stack([values["u"], values["w"], 0.5 * values["u"]])
        _, gradients = f.at_points(**{**values, "u": points}, shared=tuple(set(values) - {"u"}))
        for one in "uw":
            for two in "uw":
                np.testing.assert_allclose(again.hessian[one][two], first.hessian[one][two], rtol=1e-8, atol=1e-9)
        for place, point in enumerate(points):
            for _ in range(3):
                _, alone = f.value_and_grad(**{**values, "u": point})
            np.testing.assert_allclose(gradients["u"][place], alone["u"], rtol=1e-8, atol=1e-9)


def test_threads_and_errors() -> None:
    """Threads that run one plan from the start, and a run that was refused, leave its answers alone."""
    text, values = loop_scripts.make(5)
    tape, values = question(text, values)
    with patched(*FORCED, *WAVES):
        plan = Plan(tape)
    point = [{**values, "u": values["u"] + k / 10} for k in range(6)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(plan.answer, point * 3))
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        plan.run([np.zeros((2, 7)) for _ in plan.schedule.inputs])
    for one, other in zip(together, point * 3, strict=True):
        assert alike(one, plan.answer(other))


# --- what was wrong once -----------------------------------------------------------------------------------


def test_a_mask_of_what_the_turn_before_gave() -> None:
    """The mask is made anew for all turns, from what stands behind it in a turn and is read by nobody else."""
    text = "p, q, r, g = u*w, w, u, u\nfor t in range(24):\n    f = where(r > 0, g, 0)\n    g = 0.9*f\n    p, q, r = f, p, q\nsum(g)"
    tape, values = question(text, {"u": np.array([0.3, -0.2, 0.9]), "w": np.array([0.5, 0.1, -0.4])})
    near(tape, values, Plan(tape))


@pytest.mark.parametrize("axis", [0, 1])
def test_positions_that_differ_from_turn_to_turn(axis: int) -> None:
    """A second loop takes entries at positions that the first one has checked: one row of them for each turn."""
    places = np.random.default_rng(0).integers(0, 3, (16, 2))
    turn = "s = s + sum({}(take({}, I[t], axis={}))*x[t, 0])"
    loops = [turn.format("tanh", "A", axis), turn.format("sin", "A*x[t]", axis)]
    text = f"const I = {places.tolist()}\ns = 0\n" + "".join(f"for t in range(16):\n    {one}\n" for one in loops) + "s"
    random = np.random.default_rng(1)
    tape, values = question(text, {"x": random.normal(size=(16, 3)), "A": random.normal(size=(3, 3))})
    near(tape, values, Plan(tape, held={"I": places.astype(float)}))


@pytest.mark.parametrize("more", [1, 5, 40, 100])
def test_a_ring_may_have_more_rows_than_there_are_rounds(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = layouts.Layout._placed
    monkeypatch.setattr(layouts.Layout, "_placed", lambda layout: placed(layout) + more)
    tape, values = question(TWO_LAYERS.format(turns=40), values_of(40))
    with patched(*WAVES):
        plan = Plan(tape)
    assert any(event.function.rounds > event.function.count for event in scan_events(plan))
    for _ in range(2):
        near(tape, values, plan)


def test_lists_of_large_arrays_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = found_loops(monkeypatch)
    names = [f"y{turn}" for turn in range(30)]
    text = "\n".join([*[f"{one} = sin(X*{at/7})" for at, one in enumerate(names)], "a = 0", *[f"a = tanh(a + max({one}))*0.5 + sum({one}[0:3])" for one in names], "a"])  # fmt: skip
    tape, values = question(text, {"X": np.linspace(0, 1, 4000)})
    near(tape, values, Plan(tape))
    assert all(read.values[0].size <= nests.ENTRIES for loop in loops for reads in loop.reads for read in reads if read.kind == nests.LIST)  # fmt: skip


@pytest.mark.parametrize("turns", [20, 80])
def test_running_sums_that_turns_read(turns: int) -> None:
    """A sum over turns that is read before the last one is no sum; one that is read from behind the loop only, is."""
    text = f"""s, q, h = 0*u, 0, u
for t in range({turns}):
    s = s + x[t]*w
    q = q + sum(x[t]*u)
    h = tanh(0.5*h + s)
    g = s[::-1]*q
sum(h) + sum(g) + q + 0*(sum(z) + sum(W))"""
    tape, values = question(text, values_of(turns))
    with patched(*FORCED):
        near(tape, values, Plan(tape))


@pytest.mark.parametrize("border", ["(t, 11 - t)", "(11 - t, t)", "(2*t, 22 - 2*t)", "(22 - 2*t, 2*t)"])
def test_entries_that_turns_add_to(border: str) -> None:
    """Each turn adds to an entry of its own, going up or down, beside each other or not."""
    size = 23 if "2*t" in border else 12
    text = f"a = zeros({size}) + u[1]\nfor t in range(12):\n    a = a + pad(sin(x[t, 0:1]), {border})\nsum(a**3) + 0*sum(u)"
    tape, values = question(text, {name: value for name, value in values_of(12).items() if name in "xu"})
    with patched(*FORCED):
        near(tape, values, Plan(tape))


@pytest.mark.parametrize("reader", ["h = 0.5*x[t] + (-m)*w + 0.1*m", "h = 0.5*x[t] - tanh(-m)*w\n    k = k + m"])
def test_an_absolute_value_that_others_read(reader: str) -> None:
    """-|x| is one call, unless somebody else reads |x|, in the recurrence or outside of it."""
    text = f"h, k = u, 0*u\nfor t in range(30):\n    m = abs(h - w)\n    {reader}\nsum(h) + sum(k**2) + 0*(sum(z) + sum(W))"
    tape, values = question(text, values_of(30))
    with patched(*FORCED):
        plan = Plan(tape)
    assert scan_events(plan)
    near(tape, values, plan)


@pytest.mark.parametrize(("lag", "rolled"), [(20, True), (150, False)])
def test_turns_that_go_far_back(lag: int, rolled: bool) -> None:
    """The text of the rounds has a line for each step of each turn that is held: not thousands of them."""
    turn = "tanh(sin({0}) - cos({1}))*exp(-abs({0} - {1}))/(2 + {1}**2) - atan({0})*sinh({1})"
    names = [f"a{at}" for at in range(lag)]
    lines = [f"{one} = sin(u*{at})" for at, one in enumerate(names)]
    for at in range(lag, 3 * lag):
        names.append(f"a{at}")
        lines.append(f"a{at} = {turn.format(names[at - 1], names[at - lag])}")
    lines = ["c = 0.5*u + 2", *lines, f"sum(c) + sum({names[-1]})"]
    tape, values = question("\n".join(lines), {"u": np.array([0.3, -0.2, 0.9])})
    with patched(*FORCED):
        plan = Plan(tape)
    near(tape, values, plan)
    assert any(event.function.layout.window > 10 for event in scan_events(plan)) == rolled
