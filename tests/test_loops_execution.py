"""Loops while a program runs: every executor gives what the operations' own `impl` gives, turn by turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.execution.devices import device_plan
from gradcli.execution.evaluate import Tape, known_floats
from gradcli.execution.kernels import kernel_of
from gradcli.execution.namespaces import namespace
from gradcli.execution.plans import planned
from gradcli.execution.straightline import straight
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


def still(made: Made) -> None:
    b = made.builder
    r, u, x = made.fresh(), made.leaf("u"), made.fresh()
    rows = made.leaf("rows", (made.count,))
    loop = close(b, made.count, [(x, u)], [r * u], rows=[(r, rows)], outputs=[made.call("sqrt", r) * u])
    made.read(loop, 0, stacked=(made.call("sqrt", r) * u, x))


CASES: dict[str, Callable[[Made], None]] = {
    "scalars": scalars,
    "scalars backwards": lambda made: scalars(made, reverse=True),
    "stacks": stacks,
    "stacks backwards": lambda made: stacks(made, reverse=True),
    "flags": flags,
    "vectors": vectors,
    "vectors backwards": lambda made: vectors(made, reverse=True),
    "nested": nested,
    "nested scalars": nested_scalars,
    "still": still,
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
def test_readers_of_a_loop_get_what_their_impl_gives(name: str, count: int) -> None:
    made = case(name, count)
    tape = Tape(made.readers)
    expected = reference(made, made.point, namespace("numpy"))
    same(tape.run(made.point), expected)
    same(tape.run(made.point, backend="numpy"), expected)
    everything = tape.run_all(made.point)
    same([everything[node] for node in made.readers], expected)
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


@pytest.mark.parametrize("name", CASES)
def test_the_turns_written_out_are_the_definition(name: str) -> None:
    made = case(name, 5)
    written = [
        node if node.primitive.definition is None else node.primitive.definition(*node.args, **node.params)
        for node in made.readers
    ]
    for one, other in zip(Tape(made.readers).run(made.point), Tape(written).run(made.point), strict=True):
        assert np.allclose(one, other, rtol=1e-15, atol=0)


def test_no_plan_traces_the_turns() -> None:
    made = case("vectors", 33)
    tape = Tape(made.readers)
    assert planned(tape, "float64") is None
    assert kernel_of(tape) is None
    assert device_plan(tape) is None


def test_jax_gives_the_same() -> None:
    pytest.importorskip("jax")
    for name in CASES:
        made = case(name, 3)
        for one, other in zip(
            Tape(made.readers).run(made.point, backend="jax"), Tape(made.readers).run(made.point), strict=True
        ):
            assert np.allclose(one, other, rtol=1e-14, atol=0)
