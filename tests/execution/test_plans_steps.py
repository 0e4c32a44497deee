"""What plans make of steps: entries that nobody reads, pairs of entries, turned blocks; and work that threads share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.repeated.compiled import _gradient
from gradcli.execution.compiler import demand, schedule, thread_pool, workspace
from gradcli.execution.compiler.emit_numpy import KERNELS, kernel
from gradcli.execution.compiler.ir import CHOICE, ENTRY, REDUCE, Op, PlanValue
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import BlockLoop, follows
from gradcli.execution.compiler.workspace import WIDEST, turned
from tests.execution.test_plans import judge, question
from tests.support.forced import busy_helper

# --- what is left out ---------------------------------------------------------------------------


def test_entries_that_no_output_reads_are_not_computed() -> None:
    x = np.linspace(0, 1, 100_000)
    tape, values = question("sum((sin(x)*exp(x))[10:20]**2)", {"x": x})
    plan = Plan(tape)
    judge(tape, values, plan)
    assert [one.out.size for one in plan.schedule.events if one.out.size > 10] == [100_000]  # the gradient's zeros


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("sum(exp(x)[::7][3:9])", 80),
        ("y = concatenate((x[:5]*x[5:10], tanh(x), x[-4:]))\ny[1]*y[9] + y[7]", 90),
        ("y = concatenate((x[:5]*x[5:10], tanh(x), x[-4:]))\ny[-2]*y[-1] + y[-7]", 90),
        ("sum(concatenate((x[:10], zeros(4990)))*sin(x))", 64),
        ("sum(cos(concatenate((x[:10], zeros(4990))))[5:15]*x[5:15])", 80),
        ("A = x[:, None]*ones(5000, 3)\nsum(sin(A)[7:9, 1:].T)", 64),
        ("sum(cumsum(x)[:3])", 5_100),
        ("y = x\nfor i in range(5):\n    y = concatenate((y[:1], y[:-1]*cos(y[1:])))\ny[30]", 128),
        ("y = where(x > 0, x, 0)\ny[2] + y[3]", 64),
    ],
)
def test_ranges(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "WORTH", 1)
    tape, values = question(text, {"x": np.sin(np.arange(5_000.0)) + 0.1})
    plan = Plan(tape, threads=1)
    judge(tape, values, plan)
    steps = [op for one in plan.schedule.events for op in (one.ops if isinstance(one, BlockLoop) else [one])]
    assert sum(op.out.size for op in steps if op.kind not in ("place", "added", "join")) <= most, steps


def test_zeros_by_construction_stay_zeros_beside_an_infinity() -> None:
    x = np.ones(20_000)
    x[5] = np.inf
    slopes = gradcli.compile("sum((x*x)[10:20])").value_and_grad(x=x)[1]["x"]
    assert slopes[10:20].tolist() == [2.0] * 10
    assert not slopes[:10].any()
    assert not slopes[20:].any()


@pytest.mark.parametrize(
    ("text", "n"),
    [("shift = detach(max(x))\nshift + log(sum(exp(x - shift)))", 100_000), ("sum(sin(x)[:5])", 100_000)],
)
def test_what_a_plan_does_better_is_left_to_a_plan(text: str, n: int) -> None:
    """Exponentials are kept from pass to pass; entries that nobody reads are left out."""
    f = gradcli.compile(text)
    given = {"x": np.linspace(-1, 1, n)}
    f.value_and_grad(**given)
    found, point = f._question("grad", _gradient, given)
    (plan,) = found._plans.values()
    assert isinstance(plan, Plan)
    judge(found.tape, found.values(point), plan)


# --- work that threads share -------------------------------------------------------------------------------------------


def test_a_thread_that_is_not_awake_is_not_waited_for() -> None:
    with busy_helper():
        done: list[int] = []
        thread_pool.together([lambda: done.append(threading.get_ident())] * 2)
        assert done == [threading.get_ident()] * 2
    thread_pool.together([int, int])  # what is left in its queue does no harm


def test_without_threads_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    alone = ThreadPoolExecutor(3)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    monkeypatch.setattr(thread_pool, "helpers", lambda: alone)
    done: list[int] = []
    thread_pool.together([lambda: done.append(1), lambda: done.append(2), lambda: done.append(3)])
    assert done == [1, 2, 3]


def test_an_error_in_a_thread_is_told() -> None:
    def fail() -> None:
        raise MemoryError("full")

    for works in ([int, fail], [fail, int], [fail]):
        with pytest.raises(MemoryError):
            thread_pool.together(works)


# --- pairs of entries ----------------------------------------------------------------------------------------------


TEXTS = {
    "kernel": "x = zeros(3)\nsum(exp(-(x[:, None] - x[None, :])**2))",
    "distances": "x = zeros(3, 2)\nsum(sqrt(1 + sum((x[:, None, :] - x[None, :, :])**2, axis=2)))",
    "both sums": "x = zeros(3)\nK = exp(-(x[:, None] - x[None, :])**2)\nsum(sum(K, axis=0)*sum(K, axis=1))",
    "nearest others": "x = zeros(3)\nd = abs(x[:, None] - x[None, :]) + eye(len(x))\nsum(min(d, axis=1)*x)",
    "columns made before": "x = zeros(3)\nu = sin(x)\nv = cos(x)\nsum(tanh(u[:, None]*v[None, :]) + u[None, :]*v[:, None])",
}


@pytest.mark.parametrize("text", TEXTS)
def test_pairs_are_cut(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside inputs and results there is memory for some blocks, and for a matrix only where a sum has to wait."""
    monkeypatch.setattr(schedule, "ENTRIES", 1 << 10)
    monkeypatch.setattr(schedule, "MOST_ENTRIES", 1 << 11)
    random = np.random.default_rng(3)
    x = random.normal(size=(300, 2) if "(3, 2)" in TEXTS[text] else 300)
    tape, held = question(TEXTS[text], {"x": x})
    plan = Plan(tape, threads=2)
    assert any(isinstance(event, BlockLoop) for event in plan.schedule.events)
    assert plan.room() < (3 if text == "both sums" else 1) * 8 * 300 * 300
    judge(tape, held, plan)
    again, other = Plan(tape, threads=1).answer(held), plan.answer(held)
    assert again is not None and other is not None
    assert all(np.array_equal(one, two) for one, two in zip(again, other, strict=True))


def test_what_is_cut_already_is_cut_as_before() -> None:
    """Where the classes of all steps can be cut, short steps in the loops stay there."""
    x = np.random.default_rng(3).normal(size=(2, 900))
    tape, held = question("x = zeros(3)\ny = zeros(3)\nsum(exp(-(x[:, None] - y[None, :])**2))", {"x": x[0], "y": x[1]})
    (loop,) = [event for event in Plan(tape).schedule.events if isinstance(event, BlockLoop)]
    assert len(loop.ops) == 10
    judge(tape, held, Plan(tape, threads=2))


def test_steps_between_classes_are_not_taken_in_blocks() -> None:
    """One operand is cut and the other, or the result, is not."""
    dtype = np.dtype("float64")
    x, y, z, total = [PlanValue(place, shape, dtype) for place, shape in enumerate([(4,), (4,), (4,), ()])]
    add = Op(ENTRY, np.add, (x, y), None, z, None)
    summed = Op(REDUCE, np.add, (x,), (0,), total, None)
    assert follows(add, {0: 0, 1: 0, 2: 0}) and follows(summed, {0: 0})
    assert not follows(add, {0: 0, 2: 0}) and not follows(add, {0: 0, 1: 0}) and not follows(add, {0: 0})
    assert not follows(summed, {1: 0})


@pytest.mark.parametrize("text", ["sum(exp(A + A.T))", "sum(sin(A @ A)*A.T)"])
def test_matrices_of_which_both_axes_are_one_class_are_not_cut(text: str) -> None:
    """Their large steps would read all of what others cut."""
    A = np.random.default_rng(3).normal(size=(300, 300))
    tape, held = question(f"A = zeros(3, 3)\n{text}", {"A": A})
    plan = Plan(tape, threads=2)
    assert not any(isinstance(event, BlockLoop) for event in plan.schedule.events)
    judge(tape, held, plan)


def test_classes_may_be_joined_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long programs take time in proportion; what is not linked then is taken on whole arrays."""
    tape, held = question(TEXTS["kernel"], {"x": np.linspace(-2, 2, 300)})
    monkeypatch.setattr(schedule, "PATIENCE", 0)
    judge(tape, held, Plan(tape, threads=2))


GIVEN = "const X = zeros(2, 2)\n"
MEANS = GIVEN + "d = sum(X**2, axis=1)[:, None] - 2*X @ C.T + sum(C**2, axis=1)\nsum(min(d, axis=1))"
SOFT = GIVEN + "z = X @ C.T + b\np = exp(z - max(z, axis=1, keepdims=True))\nsum(log(sum(p, axis=1))) + sum(abs(p*b))"
SHOWN = "z = X @ C.T + b\nsum(reshape(z, (len(X)*len(C),))**2) + sum(z*max(z, axis=1, keepdims=True))"


def point(rows: int, columns: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"X": random.normal(size=(rows, 3)), "C": random.normal(size=(columns, 3)), "b": random.normal(size=columns)}


def given(text: str, rows: int, columns: int) -> dict[str, Any]:
    return {name: one for name, one in point(rows, columns).items() if name != "b" or "+ b" in text}


def columns_of(plan: Plan) -> dict[int, set[int]]:
    """The columns of what stands turned in each loop."""
    found = {}
    for place, event in enumerate(plan.schedule.events):
        if isinstance(event, BlockLoop):
            chosen = turned(event)
            found[place] = {op.out.shape[1] for op in event.ops if op.out.serial in chosen}
    return found


# --- turned memory -----------------------------------------------------------------------------------------------


SIZES = [(9_001, 2), (4_003, 17), (3_000, 64), (2_900, 65), (901, WIDEST + 50)]


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [*[(MEANS, *size) for size in SIZES], *[(text, *size) for text in (SOFT, SHOWN) for size in SIZES[1::2]]],
)
def test_turned_blocks_give_what_others_give(
    text: str, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, values = question(text, given(text, rows, columns))
    plan = Plan(tape)
    judge(tape, values, plan)
    at_once = [Plan(tape, threads=count).answer(values) for count in (1, 2, 3)]
    for other in at_once[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(at_once[0] or (), other or (), strict=True))
    monkeypatch.setattr(workspace, "turned", lambda loop: set())
    straight = Plan(tape).answer(values)
    for one, two in zip(at_once[0] or (), straight or (), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-11)


def test_matrices_beside_columns_and_rows_are_turned() -> None:
    for text in (MEANS, SOFT):
        tape, _ = question(text, given(text, 10_000, 100))
        assert [100] in [sorted(shapes) for shapes in columns_of(Plan(tape)).values()]
    tape, _ = question(MEANS, given(MEANS, 3_000, WIDEST + 1))
    assert not any(columns_of(Plan(tape)).values())


def test_what_is_read_flat_or_given_back_is_not_turned() -> None:
    tape, _ = question(SHOWN, given(SHOWN, 4_000, 20))
    loops = [event for event in Plan(tape).schedule.events if isinstance(event, BlockLoop)]
    assert loops
    for loop in loops:
        chosen = turned(loop)
        assert chosen.isdisjoint(value.serial for value in loop.stored)
        assert chosen.isdisjoint(op.out.serial for op in loop.summed)
    found = gradcli.compile("a = X*c[:, None]\na - max(a, axis=1, keepdims=True)")
    values = {"X": point(5_000, 3)["X"].repeat(10, axis=1), "c": np.linspace(1, 2, 5_000)}
    first, second = found(**values), found(**values)
    assert np.array_equal(first, second) and second.flags.c_contiguous
    whole = values["X"] * values["c"][:, None]
    assert np.array_equal(second, whole - whole.max(1, keepdims=True))


def test_entry_by_entry_steps_are_turned_together() -> None:
    text = "z = X @ C.T\nw = z - c[:, None]\nsum(w*z + w**2)"
    values = {**given(MEANS, 6_000, 30), "c": np.linspace(-1, 1, 6_000)}
    tape, point_ = question(text, values)
    plan = Plan(tape)
    judge(tape, point_, plan)
    for event in plan.schedule.events:
        if not isinstance(event, BlockLoop):
            continue
        chosen = turned(event)
        for op in event.ops:
            matrices = [x for x in (*op.args, op.out) if x.number is None and x.shape == (6_000, 30) == op.out.shape]
            if op.kind == ENTRY and len(matrices) > 1:
                assert len({one.serial in chosen for one in matrices}) == 1


# --- choices -----------------------------------------------------------------------------------------------------------


def chosen(condition: Any, x: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """`where(condition, x, 0)` by the kernel of a step, and by NumPy."""
    zero = PlanValue(3, (), np.dtype(float))
    zero.number = np.float64(0)
    args = (PlanValue(1, condition.shape, condition.dtype), PlanValue(2, x.shape, x.dtype), zero)
    out = PlanValue(4, shape, np.dtype(float))
    step = Op(CHOICE, None, args, None, out, None)
    out.op = step
    made = np.full(shape, 7.0)
    kernel(step)(condition, x, np.asarray(0.0), made)
    return made, np.where(condition, x, 0.0)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["ones", "odd", "full", "nearly ones"])
def test_choices_are_those_of_numpy(share: float, kind: str) -> None:
    random = np.random.default_rng(3)
    shape = (300, 40)
    condition = random.uniform(size=shape) < share
    x = {
        "ones": np.ones((300, 1)),
        "odd": np.resize([np.inf, -0.0, np.nan, -1.5, 1.0], (300, 1)),
        "full": random.normal(size=shape),
        "nearly ones": np.where(np.arange(300) == 299, np.nan, 1.0)[:, None],
    }[kind]
    for layout in (np.ascontiguousarray, np.asfortranarray):
        made, expected = chosen(layout(condition), layout(x), shape)
        assert np.array_equal(made, expected, equal_nan=True)
        assert np.array_equal(np.signbit(made), np.signbit(expected))
    rows = condition[:, :1] | (share == 1)
    made, expected = chosen(rows, x, shape)
    assert np.array_equal(made, np.broadcast_to(expected, shape), equal_nan=True)
    assert KERNELS[CHOICE] is not None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("of", ["arrays", "a column", "a row of every other entry", "a number"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_choices_between_arrays_have_the_bits_of_numpy(share: float, of: str, dtype: str) -> None:
    """Zeros of both signs, infinities, and the bits of NaN, which carry a payload."""
    random = np.random.default_rng(4)
    shape = (60, 40)
    condition = random.uniform(size=shape) < share
    x, y = random.normal(size=(2, *shape)).astype(dtype)
    x[:3, :4] = y[5:8, 2:6] = [-0.0, np.inf, np.nan, -np.inf]
    x[20:22].view(f"i{x.itemsize}")[...] |= np.array(np.inf, dtype).view(f"i{x.itemsize}") + 7
    if of == "a column":
        condition, y = condition[:, :1], y[:, :1]
    if of == "a row of every other entry":
        y = np.broadcast_to(random.normal(size=80).astype(dtype)[None, ::2], shape)
    values = [PlanValue(at, one.shape, one.dtype) for at, one in enumerate((condition, x, y))]
    if of == "a number":
        y = np.asarray(-0.0, dtype)
        values[2].number = y[()]
    made = np.empty(shape, dtype)
    kernel(Op(CHOICE, None, tuple(values), None, PlanValue(4, shape, x.dtype), None))(condition, x, y, made)
    assert made.tobytes() == np.where(condition, x, y).tobytes()


# --- short rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum])
@pytest.mark.parametrize("shape", [(300, 2), (40, 10, 5), (300, 7)])
def test_short_rows_are_reduced_by_columns_to_the_same_bits(shape: tuple[int, ...], ufunc: Any, dtype: str) -> None:
    random = np.random.default_rng(3)
    x = (random.normal(size=shape) * 10.0 ** random.integers(-5, 5, size=shape)).astype(dtype)
    x[random.random(shape) < 0.05] = np.inf
    x[random.random(shape) < 0.02] = np.nan
    given, made = PlanValue(0, shape, x.dtype), PlanValue(1, shape[:-1], x.dtype)
    step = kernel(Op(REDUCE, ufunc, (given,), (len(shape) - 1,), made, None))
    found, turned_round = np.empty((2, *shape[:-1]), dtype)
    for block in (x, x[..., :2], x[..., -1:]):  # a loop may be cut along the rows
        with np.errstate(all="ignore"):
            step(block, found)
            step(block.copy("F"), turned_round)
            expected = ufunc.reduce(block, axis=-1)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(turned_round, expected)
