"""Loops while a program runs: every executor gives what the operations' own `impl` gives, iteration by iteration."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError, Span
from gradcli.calculator.notes.undefined_values import explain
from gradcli.execution.compiler import emit_numba, lower, numpy_plan
from gradcli.execution.cuda.device_plan import device_plan
from gradcli.execution.emit_python import straight
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import namespace
from gradcli.graph.node import LEAF, Node, is_reader, reachable
from gradcli.lowering.names import known_floats
from tests.support import loop_bodies
from tests.support.background import finish_code
from tests.support.loop_bodies import started

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.loop_bodies import Made

COUNTS = (1, 2, 33)


class Case(NamedTuple):
    """What reads the loops of a program, and the values of its leaves."""

    readers: list[Node]
    point: dict[str, Any]


def rows(count: int) -> Any:
    return np.linspace(0.2, 1, count)


def scalars(count: int, reverse: bool = False) -> Made:
    s, t, u, a = started(count, reverse, u=0.4, a=0.7)
    x, y = t.carry(u), t.carry(1)
    root = s.sqrt(x * x + y * y)
    loop = t.loop(x + a * y / root, y - 0.25 * x * root)
    return s.made(loop.last(0) + loop.last(1))


def stacks(count: int, reverse: bool = False) -> Made:
    """What iterations give: numbers, truth values, and a row as it is."""
    s, t, u, a, d = started(count, reverse, u=0.4, a=0.7, d=rows(count))
    x, y, r, i = t.carry(u), t.carry(1), t.row(d), t.index()
    root = s.sqrt(x * x + r * r + i)
    big = s.less(x, root)
    loop = t.loop(s.where(big, x + a * y / root, x * r), y - 0.25 * x * r, outputs=[root, big, x * y])
    stacked = loop.iterations(root) * loop.iterations(x * y) * loop.iterations(r) + s.cast(
        loop.iterations(big), kind="float"
    )
    return s.made(loop.last(0) + s.total(stacked))


def flags(count: int) -> Made:
    s, t, u = started(count, u=0.4)
    x, seen, y = t.carry(u), t.carry(s.less(u, u)), t.carry(u)
    now = s.less(x, s.builder.constant(1))
    loop = t.loop(x * 1.125, s.builder.call("or", seen, now), s.where(seen, x, y), outputs=[seen])
    return s.made(loop.last(2) + s.total(s.cast(loop.iterations(seen), kind="float")))


def delayed(count: int, reverse: bool = False) -> Made:
    """Carries that only pass a value on, add up, are swapped, or are read by another group."""
    s, t, u, a, d = started(count, reverse, u=0.4, a=0.7, d=rows(count))
    x, before, total, twice, p, q, z = (t.carry(start) for start in (u, a, u, a, u, a, u))
    r = t.row(d)
    nexts = (x * a + r, x * r, total + before * x, twice + twice, q, p, a * u + z * total)
    loop = t.loop(*nexts, outputs=[before, total, x * r])
    stacked = loop.iterations(before) * loop.iterations(total) * loop.iterations(x * r)
    return s.made(sum((loop.last(k) for k in range(7)), start=s.total(stacked)))


def still(count: int) -> Made:
    s, t, u, d = started(count, u=0.4, d=rows(count))
    x, r = t.carry(u), t.row(d)
    loop = t.loop(r * u, outputs=[s.sqrt(r) * u])
    return s.made(loop.last(0) + s.total(loop.iterations(s.sqrt(r) * u) * loop.iterations(x)))


def inner_readers(count: int) -> Made:
    """A step between two readers of an inner loop reads the first of them."""
    s, t, u, d = started(count, u=0.4, d=rows(count))
    x, r, inner = t.carry(u), t.row(d), s.iteration(3)
    y, z = inner.carry(r), inner.carry(r)
    closed = inner.loop(y * 0.75 + z, z * 0.5)
    total = closed.last(0) * 2 + closed.last(1)
    loop = t.loop(x * 0.5 + total, outputs=[total])
    return s.made(loop.last(0) + s.total(loop.iterations(total)))


def masks(count: int, reverse: bool = False) -> Made:
    """Truth values that are gathered over the iterations, and read before each of them or after the last one."""
    s, t, u, d = started(count, reverse, u=0.4, d=rows(count))
    never = s.less(u, u)
    seen, always, last, r = t.carry(never), t.carry(s.builder.call("not", never)), t.carry(never), t.row(d)
    large = s.less(s.builder.constant(0.5), r)
    nexts = (s.builder.call("or", seen, large), s.builder.call("and", large, always), s.builder.call("or", last, large))
    loop = t.loop(*nexts, outputs=[seen, always])
    read = [loop.last(0), loop.last(1), loop.last(2), loop.iterations(seen), loop.iterations(always)]
    return s.made(sum((s.total(s.cast(one, kind="float")) for one in read[1:]), start=s.cast(read[0], kind="float")))


def mixed(count: int) -> Made:
    """Functions, choices and truth values between two carries that need one another."""
    s, t, u, d = started(count, u=0.4, d=rows(count))
    x, y, seen, r = t.carry(u), t.carry(1), t.carry(s.less(u, u)), t.row(d)
    small = s.less(x, y)
    root = s.where(small, s.sqrt(y), s.maximum(x, r))
    flag = s.builder.call("or", s.builder.call("not", seen), small)
    after = r + 0.5 * x * s.cast(seen, kind="float")
    loop = t.loop(root / (1 + y * y), after, flag, outputs=[x * y, seen])
    stacked = loop.iterations(x * y) * s.cast(loop.iterations(seen), kind="float")
    return s.made(loop.last(0) + loop.last(1) + s.cast(loop.last(2), kind="float") + s.total(stacked))


PLAIN: dict[str, Callable[[int], Made]] = {  # arithmetic, choices and roots: the same bits by any executor
    "scalars": scalars,
    "scalars backwards": lambda count: scalars(count, reverse=True),
    "stacks": stacks,
    "stacks backwards": lambda count: stacks(count, reverse=True),
    "flags": flags,
    "delayed": delayed,
    "delayed backwards": lambda count: delayed(count, reverse=True),
    "still": still,
    "inner readers": inner_readers,
    "mixed": mixed,
    "masks": masks,
    "masks backwards": lambda count: masks(count, reverse=True),
}
CASES = {
    **PLAIN,
    **{
        name: getattr(loop_bodies, name)
        for name in ("network", "index_backwards", "nested", "nested_thrice", "inner_rows", "later")
    },
}


def case(name: str, count: int) -> Case:
    made = CASES[name](count)
    return Case([node for node in reachable([made.output]) if is_reader(node)], made.values)


def reference(made: Case, point: Mapping[str, Any], xp: Any) -> list[Any]:
    """What each reader's own `impl` gives, one after the other."""
    known: dict[Node, Any] = {}
    for node in Tape(made.readers).nodes:
        if node.primitive is LEAF:
            known[node] = point[node.params["name"]] if xp.name == "math" else xp.array(point[node.params["name"]])
        elif not node.args:
            known[node] = float(node.params["value"]) if xp.name == "math" else xp.array(float(node.params["value"]))
        else:
            ranks = {} if node.primitive.pointwise else {"ranks": tuple([len(arg.shape) for arg in node.args])}
            assert node.primitive.impl is not None
            with np.errstate(all="ignore"):
                known[node] = node.primitive.impl(xp, *[known[arg] for arg in node.args], **node.params, **ranks)
    return [known[node] for node in made.readers]


def same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(np.asarray(one, dtype=float), np.asarray(other, dtype=float), equal_nan=True)
        assert np.shape(one) == np.shape(other)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", CASES)
def test_readers_of_a_loop_get_what_their_impl_gives(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(name, count)
    tape = Tape(made.readers)
    expected = reference(made, made.point, namespace("numpy"))
    for run in (tape.run(made.point), tape.run(made.point, backend="numpy")):
        for one, other in zip(run, expected, strict=True):
            assert np.allclose(one, other, rtol=0 if name in PLAIN else 1e-13, atol=0)
    everything = tape.run_all(made.point)
    assert [np.shape(everything[node]) for node in made.readers] == [np.shape(one) for one in expected]
    monkeypatch.setattr(numpy_plan, "MOST_ITERATIONS", 5)
    staged = Tape(made.readers).run(made.point, backend="numpy")
    for one, other in zip(staged, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.allclose(one, other, rtol=0 if name in PLAIN else 1e-13, atol=0)
    assert len(tape.loops) == 1


@pytest.mark.parametrize("name", ["scalars", "scalars backwards", "nested_thrice"])
def test_single_numbers_need_no_numpy(name: str) -> None:
    made = case(name, 33)
    expected = reference(made, made.point, namespace("math"))
    tape = Tape(made.readers)
    assert tape.scalar
    assert tape.run(made.point, backend="math") == expected
    leaves = dict.fromkeys(made.point)
    printed = straight(tape, leaves, [None, *map(str, range(1, len(expected)))], lambda **_: None)
    assert printed is not None
    found = printed(**made.point)
    assert [found, *()] == expected if len(expected) == 1 else [found[0], *found[1].values()] == expected
    known: dict[Node, Any] = {}
    for reader, value in zip(made.readers, expected, strict=True):
        assert known_floats(reader, known, lambda leaf: made.point[leaf.params["name"]])
        assert known[reader] == value


@pytest.mark.parametrize("name", CASES)
def test_batch_axes_stand_in_front(name: str) -> None:
    made = case(name, 4)
    for batched in made.point:
        values = np.asarray(made.point[batched])
        point = {**made.point, batched: np.stack([values, values * 0.5])}
        found = Tape(made.readers).run(point)
        for k, value in enumerate(found):
            for at in range(2):
                alone = reference(made, {**made.point, batched: point[batched][at]}, namespace("numpy"))[k]
                lead = np.ndim(value) - len(made.readers[k].shape)
                assert np.allclose(np.asarray(value)[at] if lead else value, alone, rtol=1e-15, atol=0)


@pytest.mark.parametrize("name", [name for name in CASES if name != "network"])
def test_batch_axes_and_blocks_of_iterations_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(name, 33)
    expected = Tape(made.readers).run(made.point, backend="numpy")
    monkeypatch.setattr(numpy_plan, "MOST_ITERATIONS", 7)
    point = {name: np.stack([np.asarray(value), np.asarray(value) + 1.0]) for name, value in made.point.items()}
    for found, one in zip(Tape(made.readers).run(point), expected, strict=True):
        assert np.array_equal(np.asarray(found)[0], one)


def test_no_kernel_traces_the_iterations() -> None:
    tape = Tape(case("network", 33).readers)
    assert device_plan(tape) is None


def test_jax_gives_the_same() -> None:
    pytest.importorskip("jax")
    for name in CASES:
        made = case(name, 3)
        for one, other in zip(
            Tape(made.readers).run(made.point, backend="jax"), Tape(made.readers).run(made.point), strict=True
        ):
            assert np.allclose(one, other, rtol=1e-14, atol=0)


def test_diagnosis_names_the_operation_and_the_iteration() -> None:
    s, t, u = started(40, u=7.5)
    x, i = t.carry(u), t.index()
    root = s.sqrt(20 - i)
    loop = t.loop(x - 1 + 0 * s.log(x), outputs=[root])
    (problem,) = explain(Tape([loop.last(0)]), s.values, [np.nan])
    assert (problem.code, problem.message) == (
        "GC401", "log is undefined at -0.5: its argument must lie in (0, inf) in iteration 9"
    )  # fmt: skip
    (problem,) = explain(Tape([loop.iterations(root)]), s.values, [np.nan])
    assert problem.message == "sqrt is undefined at -1: its argument must lie in [0, inf) in iteration 22"


def test_a_branch_that_no_iteration_takes_is_not_blamed() -> None:
    s, t, u = started(40, u=8.0)
    x, y = t.carry(u), t.carry(u)
    safe = s.where(s.greater(x, s.builder.constant(0)), s.log(x), x)
    loop = t.loop(x - 1, 1 / (x - 5) + 0 * safe + 0 * y)
    (problem,) = explain(Tape([loop.last(1)]), s.values, [np.nan])
    assert (problem.code, problem.message) == ("GC402", "1/0 is infinite in iteration 4")


def test_an_error_points_to_the_step_of_the_body() -> None:
    s, t, u = started(40, u=0.0)
    x = t.carry(u)
    s.builder.span = Span(3, 7, 3, 9)
    whole = s.cast(s.cast(x, kind="int"), kind="float")
    s.builder.span = None
    loop = t.loop(whole * 0 + x + 0.5)
    with pytest.raises(GradcliError) as caught:
        Tape([loop.last(0)]).run(s.values, backend="numpy")
    assert caught.value.diagnostics[0].code == "GC406"
    assert caught.value.diagnostics[0].span == Span(3, 7, 3, 9)


def test_long_loops_hold_one_iteration_and_what_is_stacked() -> None:
    random = np.random.default_rng(1)
    s, t, u, A = started(1_000, u=random.uniform(0.2, 1, (60, 60)), A=random.uniform(0, 0.01, (60, 60)))
    x = t.carry(u)
    size = s.sum(x, axis=(-2, -1))
    loop = t.loop(s.matmul(A, x) + u, outputs=[size])
    tape = Tape([loop.last(0), loop.iterations(size)])
    tracemalloc.start()
    tape.run(s.values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6  # all states would take 29 MB


def test_a_running_sum_of_the_wrong_iteration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    part = lower.IterationStages._part

    def iteration_later(self: Any, x: Any, start: int, stop: int) -> Any:
        return part(self, x, start + 1, stop + 1) if stop == self.count - 1 else part(self, x, start, stop)

    monkeypatch.setattr(lower.IterationStages, "_part", iteration_later)
    made = case("delayed", 33)
    expected = reference(made, made.point, namespace("numpy"))
    found = Tape(made.readers).run(made.point, backend="numpy")
    assert not all(np.allclose(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["scalars", "stacks"])
def test_infinities_and_nan_are_those_of_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(name, 33)
    made.point["u"] = 0.0
    made.point["a"] = -1e300 if name == "scalars" else 0.0
    expected = reference(made, made.point, namespace("numpy"))
    same(Tape(made.readers).run(made.point), expected)


@pytest.mark.parametrize("name", ["scalars", "scalars backwards", "stacks", "flags", "mixed", "infinite"])
def test_machine_code_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    made = case("scalars" if name == "infinite" else name, 33)
    if name == "infinite":
        made.point["u"] = 0.0
        made.point["a"] = -1e300
    expected = reference(made, made.point, namespace("numpy"))
    same(Tape(made.readers).run(made.point, backend="numpy"), expected)
    made_code = []
    compiled = emit_numba.compiled_core
    monkeypatch.setattr(emit_numba, "compiled_core", lambda *args: made_code.append(compiled(*args)) or made_code[-1])
    monkeypatch.setattr(emit_numba, "CORE_WORK", 1)
    tape = Tape(made.readers)
    same(tape.run(made.point, backend="numpy"), expected)
    assert not made_code  # one short run is no reason to compile
    for _ in range(2):  # while it is compiled, and with it
        same(tape.run(made.point, backend="numpy"), expected)
        finish_code()
    assert made_code and None not in made_code
    monkeypatch.setattr(emit_numba, "LONG_WORK", 1)
    made_code.clear()
    same(Tape(made.readers).run(made.point, backend="numpy"), expected)
    assert made_code and None not in made_code  # before the first run, which takes longer


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", ["scalars", "network", "nested", "delayed", "still"])
def test_other_widths_run_too(name: str, dtype: str) -> None:
    made = case(name, 33)
    point = {key: np.asarray(value, dtype) for key, value in made.point.items()}
    expected = reference(made, point, namespace("numpy", dtype))
    for one, other in zip(Tape(made.readers).run(point, dtype=dtype), expected, strict=True):
        assert np.asarray(one).dtype in (np.dtype(dtype), np.dtype("float64"))
        assert np.allclose(one, other, rtol=1e-5 if dtype == "float32" else 1e-13)


def test_too_little_memory_is_an_error_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: numpy_plan.LoopPlan, args: Any, ranks: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(numpy_plan.LoopPlan, "run", full)
    made = case("network", 33)
    with pytest.raises(GradcliError) as caught:
        Tape(made.readers).run(made.point)
    assert caught.value.diagnostics[0].code == "GC506"
    assert "last" in caught.value.diagnostics[0].message
