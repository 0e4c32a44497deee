"""Plans at points with infinities, NaN, zeros, huge and tiny numbers: what the evaluator says, but for one law.

The law: an entry that no result reads has the derivative 0, whatever stands there. The evaluator multiplies its zero by
an infinity and says NaN; a plan that leaves such entries out says 0. Elsewhere they differ as far as rounding allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.evaluate import Tape
from gradcli.execution.plans import demand
from gradcli.execution.plans.numpy_plan import Plan
from tests.rounding import allowed, beyond
from tests.sliced_programs import N, make, odd
from tests.test_plans import question, small_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["small_blocks"]  # a fixture


def cases(start: int, count: int, strange: bool = True) -> Iterator[tuple[Tape, dict[str, Any]]]:
    for seed in range(start, start + count):
        text, values = make(seed)
        try:
            yield question(text, odd(seed, values) if strange else values)
        except gradcli.GradcliError:  # the last value depends on no leaf, or is not a number
            continue


def differences(tape: Tape, values: dict[str, Any], made: Any) -> list[tuple[float, float]]:
    """Pairs of entries that differ by more than rounding allows: what a plan says, what the evaluator says."""
    answer, rows = made.answer(values), allowed(tape, values)
    return [(float(np.asarray(answer[at])[place]), float(rows[at].value[place])) for at, place in beyond(answer, rows)]


@pytest.fixture
def on_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are left out wherever that is possible."""
    monkeypatch.setattr(demand, "WORTH", -(10**9))
    monkeypatch.setattr(demand, "SHARE", 0)


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_plans(start: int, strange: bool) -> None:
    for tape, values in cases(start, 100, strange):
        assert not differences(tape, values, Plan(tape))


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("start", range(400, 800, 100))
def test_plans_in_small_blocks(start: int, strange: bool, small_blocks: None) -> None:
    for tape, values in cases(start, 100, strange):
        assert not differences(tape, values, Plan(tape, threads=2))


@pytest.mark.deep
@pytest.mark.parametrize("start", range(10_000, 30_000, 500))
def test_many_plans_in_small_blocks(start: int, small_blocks: None) -> None:
    for tape, values in cases(start, 500, start % 1_000 == 0):
        assert not differences(tape, values, Plan(tape, threads=2))


@pytest.mark.parametrize("strange", [False, True])
def test_where_entries_are_left_out_only_nan_is_mended(strange: bool, on_ranges: None) -> None:
    mended = 0
    for tape, values in cases(1200, 400, strange):
        found = differences(tape, values, Plan(tape))
        assert all(np.isnan(other) for _, other in found), found
        mended += len(found)
    assert mended or not strange


@pytest.mark.parametrize("low", [0, 3, 7])
@pytest.mark.parametrize("form", ["sqrt({})", "1/{}", "exp({}*{})", "{}*{}", "log({})*{}", "where({} > 0, 1/{}, {})"])
def test_what_is_not_read_has_no_derivative(form: str, low: int, on_ranges: None) -> None:
    """Slicing at the end gives what slicing at the start gives."""
    part = f"x[{low}:{low + 4}]"
    late, early = (form.format(*[name] * form.count("{}")) for name in ("x", part))
    for seed in range(20):
        values = odd(seed, {"x": np.linspace(0.3, 2, N)})
        tape, _ = question(f"y = {late}\nsum(y[{low}:{low + 4}])", values)
        expected = question(f"sum({early})", values)[0].run(values, backend="numpy")
        found = Plan(tape).answer(values)
        assert found is not None
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-15)


def test_a_number_that_is_added_to_a_part_stays_there() -> None:
    """It was added to all rows of a block once: wrong gradients, and nobody told."""
    X, W = np.ones((40_000, 20)), np.full((40_000, 20), 0.5)
    f = gradcli.compile("sum(logsumexp(X*W, axis=1)) + sum(X[5:20_000])".replace("_", ""), wrt=("X",))
    slopes = f.value_and_grad(X=X, W=W)[1]["X"]
    expected = np.full(40_000, 0.025)
    expected[5:20_000] += 1
    np.testing.assert_allclose(slopes[:, 0], expected, rtol=1e-12)
