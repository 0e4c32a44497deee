"""Plans against the evaluator on random scripts, in every setting that changes how a plan is made and run.

Scripts broadcast, slice, transpose, reduce, sort, join and multiply arrays; blocks of one entry and more, any number of
threads, short floats, infinities and NaN: as far off as rounding allows, the same bits from run to run and on any number
of threads. One law more: an entry that no result reads has the derivative 0, whatever stands there; the evaluator
multiplies its zero by an infinity and says NaN. What was found this way stands below, each as small as it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.questions import value_question
from gradcli.execution.compiler import demand, emit_numpy, schedule, workspace
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import BlockLoop
from tests.execution.test_plans import question
from tests.support import random_programs
from tests.support.array_programs import make, odd, read, scalar
from tests.support.forced import BLOCKS, patched, patches
from tests.support.rounding import allowed, beyond

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradcli.execution.evaluate import Tape
    from tests.support.forced import Change


def case(seed: int, strange: bool) -> tuple[Tape, dict[str, Any]] | None:
    """A gradient, or several outputs; None where a script is refused or has no arrays."""
    try:
        if seed % 4 == 0:
            body, values, names = make(seed)
            text = f"{body}\n{', '.join(names)}"
            values = read(text, odd(seed, values) if strange else values)
            found, point = gradcli.compile(text)._question("value", value_question, values)
            tape, given = found.tape, found.values(point)
        elif seed % 4 == 1 and not strange:
            program = random_programs.make(seed, arrays=True)
            tape, given = question(program.text, program.values_list())
        else:
            text, values = scalar(seed)
            tape, given = question(text, odd(seed, values) if strange else values)
    except GradcliError:
        return None
    return None if tape.scalar else (tape, given)


def cases(start: int, count: int, strange: bool) -> Iterator[tuple[int, Tape, dict[str, Any]]]:
    for seed in range(start, start + count):
        found = case(seed, strange)
        if found is not None:
            yield seed, *found


def small(seed: int) -> list[Change]:
    """Blocks of a few entries, of other lengths for each seed."""
    random = np.random.default_rng(seed)
    least = int(random.choice([1, 1, 3, 7, 16, 64]))
    return [
        (schedule, "WORTH", 1),
        (schedule, "ENTRIES", least),
        (schedule, "MOST_ENTRIES", max(least, int(random.choice([1, 8, 64])))),
        (schedule, "FEWEST_ROWS", int(random.choice([1, 2]))),
        (workspace, "SMALL", int(random.choice([0, 16, 64]))),
        (workspace, "WORTH_A_THREAD", 0),
    ]


RANGES: list[Change] = [(demand, "WORTH", -(10**9)), (demand, "SHARE", 0)]  # entries are left out wherever possible
SETTINGS: dict[str, Callable[[int], list[Change]]] = {
    "usual": lambda seed: [],
    "small blocks": small,
    "ranges": lambda seed: [*RANGES, *small(seed)],
    "short steps link less": lambda seed: [*BLOCKS, (schedule, "SHARE", (0, 1, 4, 16)[seed // 4 % 4])],
}


def judge(seed: int, tape: Tape, values: dict[str, Any], dtype: str, mended: bool = False) -> bool:
    """Whether the plan has loops. `mended`: there may be 0 where the evaluator says NaN, for entries that nobody reads."""
    rows = allowed(tape, values, dtype)
    plans = [Plan(tape, dtype, threads=threads) for threads in (1, 2, 3)]
    answers = [plan.answer(values) for plan in plans for _ in range(2)]
    for answer in answers[1:]:
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(answer, answers[0], strict=True)), (
            seed
        )
    found = beyond(answers[0], rows)
    assert all(mended and np.isnan(rows[at].value[place]) for at, place in found), (seed, found[:3])
    return any(isinstance(event, BlockLoop) for event in plans[0].schedule.events)


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize(
    ("setting", "start", "count"),
    [
        *[(setting, 100 * at, 30) for at, setting in enumerate(SETTINGS)],
        *[
            pytest.param(list(SETTINGS)[at % 4], 10_000 + 250 * at, 250, marks=pytest.mark.deep, id=f"deep-{at}")
            for at in range(80)
        ],
    ],
)
def test_random_programs(setting: str, start: int, count: int, strange: bool) -> None:
    looped = 0
    for seed, tape, values in cases(start, count, strange):
        with patched(*SETTINGS[setting](seed)):
            looped += judge(seed, tape, values, "float32" if seed % 5 == 0 else "float64", mended=setting == "ranges")
    assert looped > count / 6 or setting == "usual"


@pytest.mark.parametrize("low", [0, 3, 7])
@pytest.mark.parametrize("form", ["sqrt({})", "1/{}", "exp({}*{})", "{}*{}", "log({})*{}", "where({} > 0, 1/{}, {})"])
def test_what_is_not_read_has_no_derivative(form: str, low: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slicing at the end gives what slicing at the start gives."""
    patches(monkeypatch, *RANGES)
    part = f"x[{low}:{low + 4}]"
    late, early = (form.format(*[name] * form.count("{}")) for name in ("x", part))
    for seed in range(10):
        values = odd(seed, {"x": np.linspace(0.3, 2, 12)})
        tape, _ = question(f"y = {late}\nsum(y[{low}:{low + 4}])", values)
        expected = question(f"sum({early})", values)[0].run(values, backend="numpy")
        found = Plan(tape).answer(values)
        assert found is not None
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-15)


# --- what was found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "decides"),
    [
        ([1e308, 1e308, -np.inf], True), ([-1e308, np.inf, -1e308], True), ([1e308, 1e308, -1e308, -1e308], True),
        ([np.inf, -np.inf, 1e308, 1e308], False), ([1e300, -np.inf, 1e300], False), ([np.nan, 1e308, 1e308], False),
        ([1e307, -1e307, 1.0], False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", ["sum(x) + 0*sum(u)", "u @ x", "sum(outer(x, u))"])
def test_where_the_order_of_additions_decides(text: str, terms: list[float], decides: bool) -> None:
    """Beside an infinity, finite terms may overflow to the other one before it is added, or not."""
    tape, values = question(text, {"x": np.array(terms), "u": np.ones(len(terms))})
    gap = allowed(tape, values)[0].gap
    assert np.isinf(gap) if decides else np.isfinite(gap)


@pytest.mark.parametrize("ufunc", sorted(emit_numpy.UNSAFE, key=lambda one: one.__name__), ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_with_gaps_in_memory(ufunc: Any, dtype: Any) -> None:
    """NumPy 2.4 writes wrong negatives and truth values into such memory where the processor has AVX-512."""
    work = emit_numpy.entry(ufunc)
    for n in (1, 3, 8, 16, 17, 37, 64):
        x = np.linspace(-1, 2, n).astype(dtype)
        x[n // 2] = np.nan
        expected = np.array([ufunc(one) for one in x])
        for step in (1, 2, 4, 8, -8, -4):
            for gap in (1, 2, 3, 8):
                source, room = np.zeros(n * abs(step), dtype)[::step], np.zeros(n * gap, expected.dtype)[::gap]
                source[...] = x
                work(source, room)
                assert np.array_equal(room, expected, equal_nan=True), (n, step, gap)


def test_negatives_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of one column of eight they were wrong, and others in each run."""
    for name, value in {"WORTH": 1, "ENTRIES": 1, "MOST_ENTRIES": 1, "FEWEST_ROWS": 1}.items():
        monkeypatch.setattr(schedule, name, value)
    rng = np.random.default_rng(0)
    tape, values = question("t = exp(-x**2)\nsum(concatenate((y, t))) + sum((sin(t)*cos(t))**2)",
                            {"x": rng.normal(size=(8, 1, 8)), "y": rng.normal(size=(1, 1, 8))})  # fmt: skip
    judge(0, tape, values, "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scales_of_norms(dtype: str) -> None:
    """A norm is no whole step any more: it is cut into blocks, with a power of two for each of them."""
    rng = np.random.default_rng(0)
    for turn in range(60):
        x = rng.normal(size=[(7,), (4, 5), (3, 4, 2)][turn % 3]) * 10.0 ** rng.integers(-320, 300)
        x[np.abs(x) < 1e9 * np.finfo(dtype).tiny] = 0.0
        x[rng.random(x.shape) < 0.1 * (turn % 3)] = rng.choice([0.0, np.inf, np.nan])
        tape, values = question("sum(norm(x, axis=-1))" if turn % 2 else "norm(x)", {"x": x})
        assert not any(getattr(event, "kind", "") == "call" for event in Plan(tape).schedule.events)
        judge(turn, tape, values, dtype)


def test_numbers_beyond_short_floats_are_infinities_without_a_warning() -> None:
    f = gradcli.compile("sum(x*x)", dtype="float32")
    for _ in range(3):
        assert f.value_and_grad(x=[1e300, 1.0])[0] == np.inf
    assert f(x=np.full(50_000, 1e300)) == np.inf
    assert f.at_points(x=np.full((50, 2), 1e300))[0][0] == np.inf


def test_a_number_that_is_added_to_a_part_stays_there() -> None:
    """It was added to all rows of a block once: wrong gradients, and nobody told."""
    X, W = np.ones((40_000, 20)), np.full((40_000, 20), 0.5)
    f = gradcli.compile("sum(logsumexp(X*W, axis=1)) + sum(X[5:20000])", wrt=("X",))
    slopes = f.value_and_grad(X=X, W=W)[1]["X"]
    expected = np.full(40_000, 0.025)
    expected[5:20_000] += 1
    np.testing.assert_allclose(slopes[:, 0], expected, rtol=1e-12)
