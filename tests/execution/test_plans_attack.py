"""Algorithms and matrices at random: plans give what the evaluator gives, as far as rounding allows.

A plan is made once and then runs with other values, NaN and infinities among them; the first values again give the
first bits.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.compiler import schedule
from gradcli.execution.compiler.numpy_plan import Plan
from tests.execution.test_plans import question
from tests.support.attack_programs import ALGORITHMS, Case, algorithm, matrices
from tests.support.forced import BLOCKS, LOOPS, patched
from tests.support.rounding import allowed, beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.forced import Change


def settings(random: Random) -> list[Change]:
    """How the loops of a program are treated."""
    return [*LOOPS, *(BLOCKS if random.random() < 0.25 else [])]


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code has bits of its own."""
    monkeypatch.setenv("GRADCLI_FAST", "0")


def bits(found: Sequence[Any] | None) -> list[bytes]:
    assert found is not None
    return [np.asarray(one).tobytes() for one in found]


def judged(case: Case, seed: int, changes: list[Change]) -> None:
    """An assertion fails where anything is wrong."""
    given = bits(list(case.values.values()))
    with patched(*changes):
        tape, values = question(case.text, case.values)
        plan = Plan(tape, threads=1 + seed % 2)
        first = plan.answer(values)
        kept = bits(first)
        for later in [values, *[{**values, **other} for other in case.others]]:
            answer = plan.answer(later)
            assert answer is not None
            assert not beyond(answer, allowed(tape, later)), f"seed {seed}\n{case.text}"
        assert bits(plan.answer(values)) == kept, f"seed {seed}: what ran between changes the answer"
        assert bits(first) == kept, f"seed {seed}: a later run wrote into a result"
        assert bits(Plan(tape, threads=1 + seed % 2).answer(values)) == kept, f"seed {seed}: another plan"
    assert bits(list(case.values.values())) == given, f"seed {seed}: a run wrote into its inputs"


def starts(*shown: int, deep: range) -> list[Any]:
    return [*shown, *[pytest.param(at, marks=pytest.mark.deep) for at in deep]]


@pytest.mark.parametrize(("iterations", "seed"), [(14, 1), *[pytest.param(n, n, marks=pytest.mark.deep) for n in (20, 33, 66, 129)]])  # fmt: skip
@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms(name: str, iterations: int, seed: int) -> None:
    judged(algorithm(name, seed, iterations), seed, settings(Random(f"{name} {seed}")))


@pytest.mark.parametrize("start", starts(0, deep=range(1000, 4000, 100)))
def test_matrices(start: int) -> None:
    for seed in range(start, start + (25 if start < 1000 else 100)):
        random = Random(seed)
        sizes = {"WORTH": 1, "ENTRIES": random.choice((64, 256, 1024)), "MOST_ENTRIES": 4096, "FEWEST_ROWS": random.choice((2, 16))}  # fmt: skip
        judged(matrices(seed), seed, [*BLOCKS, *[(schedule, name, value) for name, value in sizes.items()]])


def test_a_broadcast_constant_is_cut_along_its_own_entries() -> None:
    """Directions of a Hessian are repeated for all iterations, and blocks are cut along an axis that they do have."""
    case = algorithm("gated recurrent unit", 0, 40)
    expected = gradcli.hessian(case.text, at=case.values, wrt=["Wz"]).hessian["Wz"]["Wz"]
    with patched(*BLOCKS):
        found = gradcli.compile(case.text, wrt=("Wz",)).hessian(**case.values).hessian["Wz"]["Wz"]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("iterations", [63, 80, 130])
def test_entries_that_differ_from_iteration_to_iteration(iterations: int) -> None:
    """A recurrence reads another entry of itself in every iteration, for more iterations than go into one chunk."""
    text = f"h, s = u, 0\nfor t in range({iterations}):\n    h = sin(h + h[mod(t, 3)])\n    s = s + sum(h*w)\ns"
    values = {"u": np.array([0.1, 0.2, -0.7]), "w": np.array([1.0, -0.5, 2.0])}
    judged(Case(text, values, [{"u": -values["w"]}]), 0, LOOPS)


@pytest.mark.parametrize(("factor", "iterations"), [(2, 130), (1.25, 130), (1.25, 200)])
def test_what_grows_stays_at_its_fixed_point(factor: float, iterations: int) -> None:
    """Every step of the evaluator is exact here; blocks of iterations would lose all digits."""
    u = np.round(np.array([1.1, 1.3, 1.7]) * 2.0**48) / 2.0**48
    w = np.array([0.3, -0.2, 0.9])
    text = f"h, s = u, 0*u\nfor t in range({iterations}):\n    h = {factor}*h - {factor - 1}*u\n    s = s + h*w\nsum(s)"
    with patched(*LOOPS):
        tape, values = question(text, {"u": u, "w": w})
        plan = Plan(tape)
        answer = plan.answer(values)
    assert plan.cores()
    assert answer is not None
    np.testing.assert_allclose(answer[0], iterations * np.sum(u * w), rtol=1e-12)


def test_constant_gradients_have_numbers_of_their_own() -> None:
    """Loops that become one make new values; a gradient that is 0 by construction is a value already."""
    x = np.random.default_rng(0).normal(size=256)
    text = "out = logsumexp(2*x) - logsumexp(y) + k + sum(c)\nsum(grad(out, x)**2)"
    case = Case(text, {"x": x, "y": -x, "k": 1.0, "c": x[:5]}, [{"x": 40 * x}])
    judged(case, 0, [*BLOCKS, (schedule, "ENTRIES", 64)])
