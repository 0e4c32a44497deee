"""A compiled function gives the same bits at every call, whatever it was asked before: law over random programs; Hessians.

What computes an answer may depend on the shapes and the number of points of the call, never on earlier calls.
"""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.repeated import blocks
from tests.support import array_programs, loop_scripts, random_programs
from tests.support.forced import patches

if TYPE_CHECKING:
    from gradcli.interfaces.compiled_function import Compiled

COUNTS = (1, 7, 150, 400, 1200)  # of points: on both sides of what makes a kernel worth its making
KINDS = ("call", "grad", "hessian", "jacobian")
Event = tuple[str, int]  # what is asked, and the number of a point or of points


def program(family: str, seed: int) -> tuple[str, dict[str, Any]]:
    """A script and the values of its leaves."""
    if family == "loops":
        return loop_scripts.make(seed)
    if family == "arrays":
        return array_programs.scalar(seed)
    made = random_programs.make(seed)
    return made.text, made.values


def at(values: dict[str, Any], number: int) -> dict[str, Any]:
    """The leaves at one of several points, the odd ones of which hold no arrays."""
    found = {name: np.asarray(value, float) * (1 + number / 16) for name, value in values.items()}
    return {name: value.tolist() for name, value in found.items()} if number % 2 else found


def spread(values: dict[str, Any], count: int) -> dict[str, Any]:
    """The leaves at many points."""
    factors = np.linspace(0.5, 1.5, count)
    return {name: np.multiply.outer(factors, np.asarray(value, float)) for name, value in values.items()}


def answer(function: Compiled, values: dict[str, Any], event: Event) -> str:
    """What one call gives, as a digest of its bytes; an error by its code."""
    kind, number = event
    try:
        if kind == "points":
            value, slopes = function.at_points(**spread(values, number))
            parts = [value, *slopes.values()]
        elif kind == "values":
            parts = [function.at_points(**spread(values, number), gradient=False)[0]]
        elif kind == "call":
            parts = [function(**at(values, number))]
        elif kind == "grad":
            value, slopes = function.value_and_grad(**at(values, number))
            parts = [value, *slopes.values()]
        elif kind == "hessian":
            found = function.hessian(**at(values, number))
            parts = [found.value, *found.gradient.values()]
            parts += [part for row in found.hessian.values() for part in row.values()]
        else:
            parts = list(function.jacobian(**at(values, number)).jacobian.values())
    except GradcliError as problem:
        return problem.diagnostics[0].code
    return blake2b(b"|".join([np.ascontiguousarray(part).tobytes() for part in parts])).hexdigest()


def history(family: str, seed: int, kinds: tuple[str, ...]) -> None:
    """Calls in a random order, many twice, beside the first call of a new function each."""
    text, values = program(family, seed)
    chance = random.Random(seed)
    events: list[Event] = [(kind, number) for kind in kinds for number in (0, 1)]
    events += [(kind, count) for kind in ("points", "values") for count in COUNTS]
    first = {event: answer(gradcli.compile(text), values, event) for event in events}
    function = gradcli.compile(text)
    asked: list[Event] = []
    for event in chance.choices(events, k=3 * len(events)):
        asked.append(event)
        assert answer(function, values, event) == first[event], f"{family} {seed}: {event} behind {asked[:-1]}\n{text}"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the difference for large calls makes it for small ones."""
    patches(monkeypatch, (blocks, "ALONE", 256), (blocks, "SHARED", 512))


@pytest.mark.parametrize(
    ("family", "seed"), [*[("random", seed) for seed in range(24)], *[("arrays", seed) for seed in range(8)]]
)
def test_calls_know_nothing_of_earlier_ones(family: str, seed: int) -> None:
    history(family, seed, KINDS)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(24, 400))
@pytest.mark.parametrize("family", ["random", "arrays"])
def test_calls_know_nothing_of_earlier_ones_many(family: str, seed: int) -> None:
    history(family, seed, KINDS)


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 40)]])
def test_calls_with_loops_know_nothing_of_earlier_ones(seed: int) -> None:
    history("loops", seed, ("call", "grad"))


def test_few_points_behind_many_are_what_they_are_alone() -> None:
    """How many points were asked before changes no bit."""
    chance = np.random.default_rng(1)
    many = {name: chance.uniform(1, 2, 1 << 16) for name in "xy"}
    few = {name: column[:90] for name, column in many.items()}
    script = "sin(x)*y + sum(exp(-x*arange(3)))"
    alone, function = gradcli.compile(script).at_points(**few), gradcli.compile(script)
    within = function.at_points(**many)
    behind = function.at_points(**few)
    assert (behind[0] == alone[0]).all() and all((behind[1][leaf] == alone[1][leaf]).all() for leaf in few)
    assert all((within[1][leaf][:90] == alone[1][leaf]).all() for leaf in few)


# --- Hessians -------------------------------------------------------------------------------------------------------

N = 30
CHAIN = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"


def asked_before(script: str) -> Compiled:
    """A function that has given three Hessians."""
    f = gradcli.compile(script)
    for seed in range(3):
        assert not f.hessian(x=point(seed)).diagnostics
    return f


def point(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, N)


def test_hessians_are_the_callers_own() -> None:
    f, first = asked_before(CHAIN), point(0)
    found = f.hessian(x=first)
    kept = found.hessian["x"]["x"].copy()
    other = f.hessian(x=point(1))
    assert np.array_equal(found.hessian["x"]["x"], kept)
    other.hessian["x"]["x"][:] = 7
    other.gradient["x"][:] = 7
    assert np.array_equal(f.hessian(x=first).hessian["x"]["x"], kept)
    first[0] = 100
    assert found.at["x"][0] != 100


@pytest.mark.parametrize(
    "given", [[0.5 + i / 40 for i in range(N)], np.arange(1, N + 1), np.linspace(0.5, 1.5, N, dtype=np.float32),
              np.linspace(0.5, 1.5, 2 * N)[::2], np.linspace(0.5, 1.5, N + 2)]
)  # fmt: skip
def test_hessians_at_other_kinds_of_values(given: Any) -> None:
    expected = gradcli.hessian(CHAIN, at={"x": np.asarray(given, dtype=float)})
    found = asked_before(CHAIN).hessian(x=given)
    assert np.allclose(found.hessian["x"]["x"], expected.hessian["x"]["x"], rtol=1e-6)


def test_hessians_that_are_not_finite_are_explained() -> None:
    script, x = "sum(sqrt(x[1:])*x[:-1])", point(0)
    x[3] = 0.0
    expected = [d.code for d in gradcli.hessian(script, at={"x": x}).diagnostics]
    assert [d.code for d in asked_before(script).hessian(x=x).diagnostics] == expected != []


def test_defaults_stay_in_hessians() -> None:
    script = f"y = {[1.0] * N}\nsum((y - x**2)**2) + sum(x[1:]*x[:-1])"
    f, x, y = asked_before(script), point(0), point(1)
    for at in ({"x": x}, {"x": x, "y": y}, {"x": x}):
        found, expected = f.hessian(**at), gradcli.hessian(script, at=at)
        for one in "xy":
            for other in "xy":
                assert np.allclose(found.hessian[one][other], expected.hessian[one][other], rtol=1e-12, atol=1e-12)
