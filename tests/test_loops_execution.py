"""Loops while a program runs: every executor gives what the operations' own `impl` gives, turn by turn."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.calculator.notes.undefined_values import explain
from gradcli.diagnostics import GradcliError, Span
from gradcli.execution.compiler import emit_numba, lower, numpy_plan
from gradcli.execution.cuda.plan import device_plan
from gradcli.execution.emit_python import straight
from gradcli.execution.evaluate import Tape, known_floats
from gradcli.execution.namespaces import namespace
from gradcli.graph.builder import Builder
from gradcli.graph.loop import Loop, close
from gradcli.graph.node import LEAF, Node
from gradcli.graph.types import FLOAT, Type
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COUNTS = (1, 2, 33)
VECTOR, MATRIX, BOOL = Type("float", (3,)), Type("float", (3, 3)), Type("bool", ())


class Made:
    """A builder with leaves, and the readers that a case asks for."""

    def __init__(self, count: int) -> None:
        self.builder = Builder(catalogue())
        self.count = count
        self.readers: list[Node] = []
        self.point: dict[str, Any] = {}
        self.random = np.random.default_rng(count)

    def leaf(self, name: str, shape: tuple[int, ...] = (), low: float = 0.2, high: float = 1.0) -> Node:
        value = self.random.uniform(low, high, shape)
        self.point[name] = value if shape else float(value)
        return self.builder.leaf(name, shape)

    def fresh(self, type_: Type = FLOAT) -> Node:
        return self.builder.fresh_leaf(type_)

    def call(self, name: str, *xs: Any, **params: Any) -> Node:
        return self.builder.call(name, *xs, **params)

    def read(self, loop: Loop, *carries: int, stacked: tuple[Node, ...] = ()) -> None:
        self.readers += [loop.last(k) for k in carries]
        self.readers += [loop.turns(node) for node in stacked]


def scalars(made: Made, reverse: bool = False) -> None:
    b = made.builder
    x, y, a, u = made.fresh(), made.fresh(), made.leaf("a"), made.leaf("u")
    root = made.call("sqrt", x * x + y * y)
    moved = (x + a * y / root, y - 0.25 * x * root)
    loop = close(b, made.count, [(x, u), (y, b.constant(1))], moved, outputs=[root], reverse=reverse)
    made.read(loop, 0, 1)


def stacks(made: Made, reverse: bool = False) -> None:
    b = made.builder
    x, y, a, u, r, i = (made.fresh(), made.fresh(), made.leaf("a"), made.leaf("u"), made.fresh(), made.fresh())
    rows = made.leaf("rows", (made.count,))
    root = made.call("sqrt", x * x + r * r + i)
    big = made.call("less", x, root)
    after = made.call("where", big, x + a * y / root, x * r)
    loop = close(
        b, made.count, [(x, u), (y, b.constant(1))], [after, y - 0.25 * x * r],
        rows=[(r, rows)], index=i, outputs=[root, big, x * y], reverse=reverse,
    )  # fmt: skip
    made.read(loop, 0, stacked=(root, big, x * y, r))


def flags(made: Made) -> None:
    b = made.builder
    x, seen, u, y = made.fresh(), made.fresh(BOOL), made.leaf("u"), made.fresh()
    now = made.call("less", x, b.constant(1))
    loop = close(
        b, made.count, [(x, u), (seen, made.call("less", u, u)), (y, u)],
        [x * 1.125, made.call("or", seen, now), made.call("where", seen, x, y)], outputs=[seen],
    )  # fmt: skip
    made.read(loop, 2, stacked=(seen,))


def vectors(made: Made, reverse: bool = False) -> None:
    b = made.builder
    x, n, u, A, r = made.fresh(VECTOR), made.fresh(), made.leaf("u", (3,)), made.leaf("A", (3, 3)), made.fresh(VECTOR)
    a = made.leaf("a", (1,), 0.1, 0.3)
    rows = made.leaf("rows", (made.count, 3))
    product = made.call("matmul", A, made.call("reshape", x, shape=(3, 1)))
    moved = made.call("reshape", product, shape=(3,)) * made.call("broadcast", a, shape=(3,)) + r
    loop = close(
        b, made.count, [(x, u), (n, b.constant(0))], [moved, n + made.call("sum", x * r, axis=(-1,))],
        rows=[(r, rows)], outputs=[x, moved * r], reverse=reverse,
    )  # fmt: skip
    made.read(loop, 0, 1, stacked=(x, moved * r))


def nested(made: Made) -> None:
    b = made.builder
    x, u, a = made.fresh(), made.leaf("u"), made.leaf("a")
    y, r = made.fresh(), made.fresh()
    inner = close(b, 3, [(y, x)], [y * 0.75 + a * x])
    z, s = made.fresh(), made.fresh()
    stacked = close(b, 3, [(z, x)], [z * 0.5 + a], outputs=[z])
    again = close(b, 3, [(s, inner.last(0))], [s + r * 0.125], rows=[(r, stacked.turns(z))])
    loop = close(b, made.count, [(x, u)], [again.last(0) * 0.5], outputs=[inner.last(0)])
    made.read(loop, 0, stacked=(inner.last(0), stacked.turns(z)))


def nested_scalars(made: Made) -> None:
    b = made.builder
    x, u, a, y = made.fresh(), made.leaf("u"), made.leaf("a"), made.fresh()
    inner = close(b, 4, [(y, x)], [y * 0.75 + a * x])
    loop = close(b, made.count, [(x, u)], [inner.last(0) * 0.5])
    made.read(loop, 0)


def delayed(made: Made, reverse: bool = False) -> None:
    """Carries that only pass a value on, add up, are swapped, or are read by another group."""
    b = made.builder
    x, before, total, twice, p, q, z = (made.fresh() for _ in range(7))
    u, a, r = made.leaf("u"), made.leaf("a"), made.fresh()
    rows = made.leaf("rows", (made.count,))
    loop = close(
        b, made.count, [(x, u), (before, a), (total, u), (twice, a), (p, u), (q, a), (z, u)],
        [x * a + r, x * r, total + before * x, twice + twice, q, p, a * u + z * total], rows=[(r, rows)],
        outputs=[before, total, x * r], reverse=reverse,
    )  # fmt: skip
    made.read(loop, 0, 1, 2, 3, 4, 5, 6, stacked=(before, total, x * r))


def still(made: Made) -> None:
    b = made.builder
    r, u, x = made.fresh(), made.leaf("u"), made.fresh()
    rows = made.leaf("rows", (made.count,))
    loop = close(b, made.count, [(x, u)], [r * u], rows=[(r, rows)], outputs=[made.call("sqrt", r) * u])
    made.read(loop, 0, stacked=(made.call("sqrt", r) * u, x))


def inner_readers(made: Made) -> None:
    """A step between two readers of an inner loop reads the first of them."""
    b = made.builder
    x, u, r, y, z = made.fresh(), made.leaf("u"), made.fresh(), made.fresh(), made.fresh()
    rows = made.leaf("rows", (made.count,))
    inner = close(b, 3, [(y, r), (z, r)], [y * 0.75 + z, z * 0.5])
    double = inner.last(0) * 2
    total = double + inner.last(1)
    loop = close(b, made.count, [(x, u)], [x * 0.5 + total], rows=[(r, rows)], outputs=[total])
    made.read(loop, 0, stacked=(total,))


def masks(made: Made, reverse: bool = False) -> None:
    """Truth values that are gathered over the turns, and read before each of them or after the last one."""
    b = made.builder
    seen, always, last, r, u = made.fresh(BOOL), made.fresh(BOOL), made.fresh(BOOL), made.fresh(), made.leaf("u")
    rows = made.leaf("rows", (made.count,))
    large, never = made.call("less", b.constant(0.5), r), made.call("less", u, u)
    loop = close(
        b, made.count, [(seen, never), (always, made.call("not", never)), (last, never)],
        [made.call("or", seen, large), made.call("and", large, always), made.call("or", last, large)],
        rows=[(r, rows)], outputs=[seen, always], reverse=reverse,
    )  # fmt: skip
    made.read(loop, 0, 1, 2, stacked=(seen, always))


CASES: dict[str, Callable[[Made], None]] = {
    "masks": masks,
    "masks backwards": lambda made: masks(made, reverse=True),
    "scalars": scalars,
    "scalars backwards": lambda made: scalars(made, reverse=True),
    "stacks": stacks,
    "stacks backwards": lambda made: stacks(made, reverse=True),
    "flags": flags,
    "vectors": vectors,
    "vectors backwards": lambda made: vectors(made, reverse=True),
    "nested": nested,
    "nested scalars": nested_scalars,
    "inner readers": inner_readers,
    "still": still,
    "delayed": delayed,
    "delayed backwards": lambda made: delayed(made, reverse=True),
}


def case(name: str, count: int) -> Made:
    made = Made(count)
    CASES[name](made)
    return made


def reference(made: Made, point: Mapping[str, Any], xp: Any) -> list[Any]:
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
            assert np.allclose(one, other, rtol=1e-14 if "vectors" in name else 0, atol=0)
    everything = tape.run_all(made.point)
    assert [np.shape(everything[node]) for node in made.readers] == [np.shape(one) for one in expected]
    monkeypatch.setattr(numpy_plan, "MOST_TURNS", 5)
    staged = Tape(made.readers).run(made.point, backend="numpy")
    for one, other in zip(staged, expected, strict=True):  # a product of matrices is added up in another order
        assert np.shape(one) == np.shape(other)
        assert np.allclose(one, other, rtol=1e-14 if "vectors" in name else 0, atol=0)
    assert len(tape.loops) == 1


@pytest.mark.parametrize("name", ["scalars", "scalars backwards", "nested scalars"])
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


@pytest.mark.parametrize("name", [name for name in CASES if "vectors" not in name])
def test_batch_axes_and_blocks_of_turns_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(name, 33)
    expected = Tape(made.readers).run(made.point, backend="numpy")
    monkeypatch.setattr(numpy_plan, "MOST_TURNS", 7)
    point = {name: np.stack([np.asarray(value), np.asarray(value) + 1.0]) for name, value in made.point.items()}
    for found, one in zip(Tape(made.readers).run(point), expected, strict=True):
        assert np.array_equal(np.asarray(found)[0], one)


def test_no_kernel_traces_the_turns() -> None:
    tape = Tape(case("vectors", 33).readers)
    assert device_plan(tape) is None


def test_jax_gives_the_same() -> None:
    pytest.importorskip("jax")
    for name in CASES:
        made = case(name, 3)
        for one, other in zip(
            Tape(made.readers).run(made.point, backend="jax"), Tape(made.readers).run(made.point), strict=True
        ):
            assert np.allclose(one, other, rtol=1e-14, atol=0)


def test_diagnosis_names_the_operation_and_the_turn() -> None:
    made = Made(40)
    b = made.builder
    x, u = made.fresh(), made.leaf("u")
    rest, i = x - 1, made.fresh()
    loop = close(b, 40, [(x, u)], [rest + 0 * made.call("log", x)], index=i, outputs=[made.call("sqrt", 20 - i)])
    (problem,) = explain(Tape([loop.last(0)]), {"u": 7.5}, [np.nan])
    assert (problem.code, problem.message) == (
        "GC401", "log is undefined at -0.5: its argument must lie in (0, inf) in turn 9"
    )  # fmt: skip
    stacked = loop.turns(made.call("sqrt", 20 - i))
    (problem,) = explain(Tape([stacked]), {"u": 7.5}, [np.nan])
    assert problem.message == "sqrt is undefined at -1: its argument must lie in [0, inf) in turn 22"


def test_a_branch_that_no_turn_takes_is_not_blamed() -> None:
    made = Made(40)
    b = made.builder
    x, y, u = made.fresh(), made.fresh(), made.leaf("u")
    safe = made.call("where", made.call("greater", x, b.constant(0)), made.call("log", x), x)
    loop = close(b, 40, [(x, u), (y, u)], [x - 1, 1 / (x - 5) + 0 * safe + 0 * y])
    (problem,) = explain(Tape([loop.last(1)]), {"u": 8.0}, [np.nan])
    assert (problem.code, problem.message) == ("GC402", "1/0 is infinite in turn 4")


def test_an_error_points_to_the_step_of_the_body() -> None:
    made = Made(40)
    b = made.builder
    x, u = made.fresh(), made.leaf("u")
    b.span = Span(3, 7, 3, 9)
    whole = made.call("cast", made.call("cast", x, kind="int"), kind="float")
    b.span = None
    loop = close(b, 40, [(x, u)], [whole * 0 + x + 0.5])
    with pytest.raises(GradcliError) as caught:
        Tape([loop.last(0)]).run({"u": 0.0}, backend="numpy")
    assert caught.value.diagnostics[0].code == "GC406"
    assert caught.value.diagnostics[0].span == Span(3, 7, 3, 9)


def test_long_loops_hold_one_turn_and_what_is_stacked() -> None:
    made = Made(1)
    b = made.builder
    x, u, A = made.fresh(Type("float", (60, 60))), made.leaf("u", (60, 60)), made.leaf("A", (60, 60), 0.0, 0.01)
    size = made.call("sum", x, axis=(-2, -1))
    loop = close(b, 1_000, [(x, u)], [made.call("matmul", A, x) + u], outputs=[size])
    tape = Tape([loop.last(0), loop.turns(size)])
    tracemalloc.start()
    tape.run(made.point)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6  # all states would take 29 MB


def test_a_running_sum_of_the_wrong_turn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    part = lower.Stages._part

    def turn_later(self: Any, x: Any, start: int, stop: int) -> Any:
        return part(self, x, start + 1, stop + 1) if stop == self.count - 1 else part(self, x, start, stop)

    monkeypatch.setattr(lower.Stages, "_part", turn_later)
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


def mixed(made: Made) -> None:
    """Functions, choices and truth values between two carries that need one another."""
    b = made.builder
    x, y, seen, u, r = made.fresh(), made.fresh(), made.fresh(BOOL), made.leaf("u"), made.fresh()
    rows = made.leaf("rows", (made.count,))
    small = made.call("less", x, y)
    root = made.call("where", small, made.call("sqrt", y), made.call("maximum", x, r))
    count = made.call("cast", seen, kind="float")
    loop = close(
        b, made.count, [(x, u), (y, b.constant(1)), (seen, made.call("less", u, u))],
        [root / (1 + y * y), r + 0.5 * x * count, made.call("or", made.call("not", seen), small)],
        rows=[(r, rows)], outputs=[x * y, seen],
    )  # fmt: skip
    made.read(loop, 0, 1, 2, stacked=(x * y, seen))


@pytest.mark.parametrize("name", ["scalars", "scalars backwards", "stacks", "flags", "mixed", "infinite"])
def test_machine_code_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    made = Made(33)
    (mixed if name == "mixed" else CASES["scalars" if name == "infinite" else name])(made)
    if name == "infinite":
        made.point["u"] = 0.0
        made.point["a"] = -1e300
    expected = reference(made, made.point, namespace("numpy"))
    same(Tape(made.readers).run(made.point, backend="numpy"), expected)
    monkeypatch.setattr(emit_numba, "CORE_WORK", 1)
    made_code = []
    compiled = emit_numba.compiled_core
    monkeypatch.setattr(emit_numba, "compiled_core", lambda *args: made_code.append(compiled(*args)) or made_code[-1])
    same(Tape(made.readers).run(made.point, backend="numpy"), expected)
    assert made_code
    assert None not in made_code


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", ["scalars", "vectors", "nested", "delayed", "still"])
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
    made = case("vectors", 33)
    with pytest.raises(GradcliError) as caught:
        Tape(made.readers).run(made.point)
    assert caught.value.diagnostics[0].code == "GC506"
    assert "last" in caught.value.diagnostics[0].message
