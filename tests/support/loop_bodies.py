"""Loops built node by node, and the same written out: what laws of loops are tried on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.evaluate import evaluate
from gradcli.graph.loop import close
from gradcli.graph.node import Builder, is_reader, reachable
from gradcli.graph.types import FLOAT, Type
from gradcli.primitives import catalogue
from gradcli.transforms.derivatives import grad, jvp
from gradcli.transforms.masks import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.loop import Loop
    from gradcli.graph.node import Node

    Values = dict[str, Any]


class Made(NamedTuple):
    """A scalar that reads loops, the leaves to differentiate by, and their values."""

    output: Node
    leaves: list[Node]
    values: Values


class Iteration:
    """A loop in the making: `carry`, `row` and `index` give leaves, `loop` closes it over the carries' next values."""

    def __init__(self, builder: Builder, count: int, reverse: bool = False) -> None:
        self.builder = builder
        self.count = count
        self.reverse = reverse
        self.carried: list[tuple[Node, Node]] = []
        self.rows: list[tuple[Node, Node]] = []
        self.number: Node | None = None

    def carry(self, init: Any) -> Node:
        start = self.builder.lifted(init) if not hasattr(init, "args") else init
        leaf = self.builder.fresh_leaf(start.type)
        self.carried.append((leaf, start))
        return leaf

    def row(self, stack: Node) -> Node:
        leaf = self.builder.fresh_leaf(Type(stack.type.kind, stack.shape[1:]))
        self.rows.append((leaf, stack))
        return leaf

    def index(self) -> Node:
        self.number = self.builder.fresh_leaf(FLOAT)
        return self.number

    def loop(self, *nexts: Any, outputs: Sequence[Node] = ()) -> Loop:
        nodes = [after if hasattr(after, "args") else self.builder.lifted(after) for after in nexts]
        return close(
            self.builder,
            self.count,
            self.carried,
            nodes,
            rows=self.rows,
            index=self.number,
            outputs=outputs,
            reverse=self.reverse,
        )


class Space:
    """A builder, its leaves and their values; `call` and attributes are operations of the catalogue."""

    def __init__(self) -> None:
        self.builder = Builder(catalogue())
        self.leaves: list[Node] = []
        self.values: Values = {}

    def leaf(self, name: str, value: Any) -> Node:
        made = self.builder.leaf(name, np.shape(value))
        self.leaves.append(made)
        self.values[name] = np.asarray(value, float) if np.shape(value) else value
        return made

    def number(self, name: str, value: float) -> Node:
        """A leaf that nothing is differentiated by: a constant that no rule can drop."""
        self.values[name] = value
        return self.builder.leaf(name)

    def __getattr__(self, name: str) -> Callable[..., Node]:
        return lambda *xs, **params: self.builder.call(name, *xs, **params)

    def total(self, x: Node) -> Node:
        return self.builder.call("sum", x, axis=tuple(range(-len(x.shape), 0))) if x.shape else x

    def iteration(self, count: int, reverse: bool = False) -> Iteration:
        return Iteration(self.builder, count, reverse)

    def made(self, output: Node) -> Made:
        return Made(output, self.leaves, self.values)


def started(count: int, /, reverse: bool = False, **values: Any) -> tuple[Any, ...]:
    """A space, a loop in it, and leaves with these values."""
    s = Space()
    leaves = [s.leaf(name, value) for name, value in values.items()]
    return s, s.iteration(count, reverse), *leaves


def written_out(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes with all loops written out, inner ones too."""
    builder = nodes[0].builder
    found = list(nodes)
    while any(is_reader(node) for node in reachable(found)):
        made: dict[Node, Node] = {}
        for node in reachable(found):
            args = tuple([made[arg] for arg in node.args])
            if is_reader(node):
                made[node] = node.primitive.definition(*args, **node.params)
            else:
                made[node] = node if args == node.args else builder.copied(node, args)
        found = [made[node] for node in found]
    return found


def bodies_of(nodes: Sequence[Node]) -> set[Any]:
    """The loops that these nodes read, inner ones left out."""
    return {(node.args, node.params["body"], node.params["reverse"]) for node in reachable(nodes) if is_reader(node)}


# --- bodies ----------------------------------------------------------------------------------------------------


def logistic(count: int) -> Made:
    """One carry, a leaf."""
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x = t.carry(x0)
    return s.made(t.loop(x + 0.05 * a * x * (1 - x / 3)).last(0))


def three_leaves(count: int) -> Made:
    """Two carries, three leaves, read by two readers."""
    s, t, x0, a, b = started(count, x=0.3, a=0.7, b=-0.4)
    x, y = t.carry(x0), t.carry(b)
    loop = t.loop(x + 0.1 * s.sin(a * y), y - 0.1 * x * b)
    return s.made(loop.last(0) * loop.last(1) + loop.last(0))


def swapped(count: int) -> Made:
    s, t, x0, y0 = started(count, x=0.3, y=0.7)
    x, y = t.carry(x0), t.carry(y0)
    loop = t.loop(y, 0.9 * x + 0.01 * x * x)
    return s.made(s.exp(loop.last(0)) + 2 * loop.last(1))


def only_swapped(count: int) -> Made:
    """Nothing but a swap, and one of the two does not move at first."""
    s, t, x0 = started(count, x=0.3)
    x, y = t.carry(x0), t.carry(2)
    loop = t.loop(y, x)
    return s.made(s.exp(loop.last(0)) * loop.last(1) + loop.last(0) * x0)


def accumulated(count: int) -> Made:
    """A cost that is added up before the state changes."""
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x, total = t.carry(x0), t.carry(0)
    loop = t.loop(s.sin(a * x + 0.1), total + x * x)
    return s.made(loop.last(1))


def rows(count: int) -> Made:
    s, t, x0, d, w = started(count, x=0.3, d=np.linspace(-1, 1, count), w=np.linspace(1, 2, count) ** 2)
    x, row, weight = t.carry(x0), t.row(d), t.row(w)
    return s.made(t.loop(s.tanh(x + row * weight)).last(0))


def outputs(count: int) -> Made:
    """A value of every iteration, read with another weight each."""
    s, t, x0, a, w = started(count, x=0.3, a=0.7, w=np.linspace(1, 2, count))
    x = t.carry(x0)
    seen = s.cos(x) * a
    loop = t.loop(x + 0.1 * seen, outputs=[seen])
    return s.made(s.total(loop.iterations(seen) * w) + s.total(loop.iterations(x) * loop.iterations(x)) + loop.last(0))


def index(count: int) -> Made:
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x, i = t.carry(x0), t.index()
    return s.made(t.loop(0.9 * x + s.sin(a * i)).last(0))


def index_backwards(count: int) -> Made:
    s, t, x0, a, d = started(count, reverse=True, x=0.3, a=0.7, d=np.linspace(-1, 1, count))
    x, i, row = t.carry(x0), t.index(), t.row(d)
    seen = x * row
    loop = t.loop(0.9 * x + s.sin(a * i) * row, outputs=[seen])
    return s.made(loop.last(0) + s.total(loop.iterations(seen)))


def network(count: int) -> Made:
    """Matrices and vectors, a loss in every iteration."""
    s, t, x0, m, u = started(count, x=[0.1, -0.2], m=[[0.3, -0.5], [0.8, 0.2]], u=[0.05, 0.1])
    h, loss = t.carry(x0), t.carry(0)
    product = s.reshape(s.matmul(m, s.reshape(h, shape=(2, 1))), shape=(2,))
    after = s.tanh(product + u)
    return s.made(t.loop(after, loss + s.total(after * after)).last(1))


def loss_before(count: int) -> Made:
    """The same with the loss of the state before the iteration: no cotangent comes to the last state."""
    s, t, x0, m = started(count, x=[0.1, -0.2], m=[[0.3, -0.5], [0.8, 0.2]])
    h, loss = t.carry(x0), t.carry(0)
    product = s.reshape(s.matmul(m, s.reshape(h, shape=(2, 1))), shape=(2,))
    return s.made(t.loop(s.sin(product), loss + s.total(h * h)).last(1))


def no_carry(count: int) -> Made:
    s, t, a, d = started(count, a=0.7, d=np.linspace(-1, 1, count))
    seen = s.sin(a * t.row(d))
    return s.made(s.total(t.loop(outputs=[seen]).iterations(seen)) * a)


def equal_inits(count: int) -> Made:
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x, y, _ = t.carry(x0), t.carry(x0), t.carry(0)
    loop = t.loop(s.sin(x + a), 0.9 * y + 0.1 * x, x)
    return s.made(loop.last(0) * loop.last(1) + loop.last(2) + x0)


def later(count: int) -> Made:
    """A carry that is a number at first and moves later, one that nobody reads, one that is copied only."""
    s, t, a, b = started(count, a=0.7, b=0.2)
    x, y, unread, copied = t.carry(1), t.carry(0), t.carry(b), t.carry(b)
    loop = t.loop(0.5 * x + 0.1 * y, s.cos(a + x), s.sin(unread), copied)
    return s.made(loop.last(0) * loop.last(1) + loop.last(3))


def nested(count: int) -> Made:
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x = t.carry(x0)
    inner = s.iteration(3)
    z, i = inner.carry(x * a), inner.index()
    closed = inner.loop(s.sin(z + 0.1 * x) + 0.01 * i, outputs=[z * z])
    return s.made(t.loop(closed.last(0) + 0.1 * s.total(closed.iterations(z * z))).last(0))


def nested_thrice(count: int) -> Made:
    s = Space()
    x0, a = s.leaf("x", 0.3), s.leaf("a", 0.7)
    one = s.iteration(count)
    x = one.carry(x0)
    two = s.iteration(2, reverse=True)
    y = two.carry(x)
    three = s.iteration(2)
    z = three.carry(y * a)
    closed = two.loop(three.loop(s.cos(z * x)).last(0) + y)
    return s.made(one.loop(0.5 * closed.last(0)).last(0))


def inner_rows(count: int) -> Made:
    """What the inner loop is given of its iterations, and its fixed value, are rows of the outer one."""
    s, t, d, e, x0 = started(count, d=np.linspace(0, 1, 3 * count).reshape(count, 3), e=np.ones(count), x=1)
    x, stack, fixed = t.carry(x0), t.row(d), t.row(e)
    inner = s.iteration(3)
    z, row = inner.carry(x), inner.row(stack)
    return s.made(t.loop(inner.loop(s.tanh(z + row * fixed)).last(0) * 0.9).last(0))


def slope_inside(count: int) -> Made:
    """A gradient inside of the body."""
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x = t.carry(x0)
    energy = s.cos(a * x) + x * x * x * x
    return s.made(t.loop(x - 0.1 * grad(energy, [x])[0]).last(0))


def slope_of_loop_inside(count: int) -> Made:
    """A gradient of an inner loop inside of the body."""
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x = t.carry(x0)
    inner = s.iteration(3)
    z = inner.carry(x)
    energy = inner.loop(s.sin(z * a) + 0.2 * z).last(0)
    return s.made(t.loop(x - 0.1 * grad(energy, [x])[0]).last(0))


def detached(count: int) -> Made:
    s, t, x0, a = started(count, x=0.3, a=0.7)
    x = t.carry(x0)
    return s.made(t.loop(s.detach(s.sin(x)) * a + 0.3 * x).last(0))


SMOOTH = (
    logistic, three_leaves, swapped, only_swapped, accumulated, rows, outputs, index, index_backwards, network,
    loss_before, no_carry, equal_inits, later, nested, nested_thrice, inner_rows, slope_inside, slope_of_loop_inside,
    detached,
)  # fmt: skip


# --- bodies with an infinite slope or NaN that must not count --------------------------------------------------


def sqrt_in_some_iterations(count: int) -> Made:
    """The example of the mask that has to stay: x = where(flag > 0, sqrt(x), 5 + a)."""
    s, t, x0, a = started(count, x=0, a=0.5)
    x, flag = t.carry(x0), t.carry(1)
    return s.made(t.loop(s.where(s.greater(flag, 0), s.sqrt(x), 5 + a), flag - 1).last(0))


def branch_not_taken(count: int) -> Made:
    s, t, x0, a = started(count, x=0.4, a=0.5)
    x = t.carry(x0)
    return s.made(t.loop(s.where(s.greater(x, 0), s.sqrt(x) - a, 0.3 - x)).last(0))


def last_iteration_unread(count: int) -> Made:
    """The accumulator takes x before the iteration: in the last iteration nothing arrives at sqrt(0)."""
    s, t, x0, a = started(count, x=count - 1, a=0.5)
    x, y, total = t.carry(x0), t.carry(a), t.carry(0)
    return s.made(t.loop(x - 1, s.sqrt(x - 1) * a, total + y).last(2))


def overwritten(count: int) -> Made:
    """A carry that is overwritten without being read: 1/0 before the loop, and in its iterations."""
    s, t, x0, a = started(count, x=0, a=0.5)
    _, y = t.carry(s.sqrt(x0)), t.carry(a)
    loop = t.loop(s.sqrt(y - y), s.sin(y))
    return s.made(loop.last(1) + s.where(s.greater(a, 9), loop.last(0), a))


def slope_before_init(count: int) -> Made:
    """sqrt(0) before the loop; its first iteration does not read it."""
    s, t, x0, a = started(count, x=0, a=0.5)
    z, first = t.carry(s.sqrt(x0)), t.carry(1)
    return s.made(t.loop(s.where(s.greater(first, 0), a, z * z + a), first - 1).last(0))


def slope_before_stack(count: int) -> Made:
    s, t, x0, a = started(count, x=np.arange(float(count)), a=0.5)
    z, i, row = t.carry(0), t.index(), t.row(s.sqrt(x0))
    return s.made(t.loop(z + s.where(s.greater(i, 0), row, 0) * a).last(0))


def slope_before_fixed(count: int) -> Made:
    s, t, x0, a = started(count, x=[0, 1], a=0.5)
    fixed = s.sqrt(x0)
    z, i = t.carry(s.broadcast(s.reshape(a, shape=(1,)), shape=(2,))), t.index()
    never = s.greater(s.broadcast(s.reshape(-1 - i, shape=(1,)), shape=(2,)), 0)
    one = s.reshape(s.slice(fixed, start=(1,), step=(1,), size=(1,)), shape=())
    return s.made(s.total(t.loop(z + s.where(never, fixed, z * z) * 0.1).last(0)) + one)


def slope_before_inner(count: int) -> Made:
    """sqrt(0) in the outer body, and an inner loop that does not read it."""
    s, t, x0, a = started(count, x=0, a=0.5)
    x = t.carry(x0)
    z = s.sqrt(x)
    inner = s.iteration(2)
    y, i = inner.carry(a), inner.index()
    closed = inner.loop(s.where(s.less(i, -1), y + z, y * a))
    return s.made(t.loop(closed.last(0)).last(0))


def zero_at_first(count: int) -> Made:
    """A carry that is the constant 0 and moves later: its tangent is nothing, not 0, when it meets sqrt."""
    s, t, a = started(count, a=0.5)
    x = t.carry(0)
    return s.made(t.loop(s.sqrt(x) + a).last(0))


def swapped_with_zero(count: int) -> Made:
    """A moving and a still carry take iterations, under sqrt(0)."""
    s, t, a = started(count, a=0.5)
    x, y = t.carry(0), t.carry(a)
    loop = t.loop(y, s.sqrt(x))
    return s.made(loop.last(0) + loop.last(1))


SHARP = (
    sqrt_in_some_iterations, branch_not_taken, last_iteration_unread, overwritten, slope_before_init, slope_before_stack,
    slope_before_fixed, slope_before_inner, zero_at_first, swapped_with_zero,
)  # fmt: skip


# --- laws ------------------------------------------------------------------------------------------------------


def direction(leaves: Sequence[Node], iteration: float = 1.0) -> list[Node]:
    """A tangent or cotangent for each leaf: inputs, whose values `DIRECTIONS` gives."""
    builder = leaves[0].builder
    scalars = [builder.leaf(f"direction{iteration}_{k}") for k in range(len(leaves))]
    return [spread(builder, one, leaf.shape) for one, leaf in zip(scalars, leaves, strict=True)]


DIRECTIONS = {
    f"direction{iteration}_{k}": iteration * (1 - 0.25 * k) for iteration in (0.5, 0.75, 1.0) for k in range(4)
}


def _along(nodes: Sequence[Node], weights: Sequence[Node]) -> Node:
    builder = nodes[0].builder
    terms = [builder.call("mul", node, weight) for node, weight in zip(nodes, weights, strict=True)]
    scalars = [builder.call("sum", t, axis=tuple(range(-len(t.shape), 0))) if t.shape else t for t in terms]
    total = scalars[0]
    for term in scalars[1:]:
        total = builder.call("add", total, term)
    return total


def _r(y: Node, leaves: list[Node]) -> list[Node]:
    return grad(y, leaves)


def _f(y: Node, leaves: list[Node]) -> list[Node]:
    return jvp([y], leaves, direction(leaves))


READINGS: dict[str, Callable[[Node, list[Node]], list[Node]]] = {
    "v": lambda y, leaves: [y],
    "r": _r,
    "f": _f,
    "rr": lambda y, leaves: grad(_along(_r(y, leaves), direction(leaves, 0.5)), leaves),
    "fr": lambda y, leaves: jvp(_r(y, leaves), leaves, direction(leaves, 0.5)),
    "rf": lambda y, leaves: grad(_f(y, leaves)[0], leaves),
    "rrr": lambda y, leaves: grad(
        _along(grad(_along(_r(y, leaves), direction(leaves, 0.5)), leaves), direction(leaves, 0.75)), leaves
    ),
}


def both(made: Made, reading: str) -> tuple[list[Any], list[Any]]:
    """The values of a reading of the loop, and of the same loop written out."""
    output, leaves, values = made
    (flat,) = written_out([output])
    read = READINGS[reading]
    at = {**values, **DIRECTIONS}
    return evaluate(read(output, leaves), at), evaluate(read(flat, leaves), at)


def agree(one: Sequence[Any], other: Sequence[Any], tolerance: float) -> bool:
    """Whether numbers agree, and NaN and infinities stand in the same places."""
    return all(
        np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True) for x, y in zip(one, other, strict=True)
    )


# --- random bodies ---------------------------------------------------------------------------------------------

POINTS = (0, 0, 0.5, 1, -0.7, 1.3)


def random_loop(seed: int) -> Made:
    """A loop of one to three carries with operations that have infinite slopes and NaN, at points with zeros.

    It has no constants, and the directions of derivatives are inputs too: what is written out drops a product by a
    number that is 0 in one iteration (`0*x` for the index 0), also where the other factor is infinite.
    """
    random = Random(seed)
    s = Space()
    count = random.randint(1, 5)
    a, b = s.leaf("a", random.choice(POINTS)), s.leaf("b", random.choice(POINTS))
    d = s.leaf("d", [random.choice(POINTS) for _ in range(count)])
    outer = [a, b, s.number("still", random.choice((0, 1, 2)))]
    loop, seen = _random_loop(s, random, outer, count, d, 2)
    output = s.builder.constant(0)
    for k in range(len(loop.ends)):
        if k == 0 or random.random() < 0.5:
            output = output + loop.last(k)
    if random.random() < 0.5:
        output = output + s.total(loop.iterations(seen))
    return s.made((output + s.number("nothing", 0) * a) * s.number("weight", 1))


def _random_loop(
    s: Space, random: Random, outer: list[Node], count: int, stack: Node | None, depth: int
) -> tuple[Loop, Node]:
    t = s.iteration(count, random.random() < 0.4)
    carries = [t.carry(random.choice(outer)) for _ in range(random.randint(1, 3))]
    pool = [*carries, *carries, *outer[:2]]
    if stack is not None and random.random() < 0.7:
        pool.append(t.row(stack))
    if random.random() < 0.3:
        pool.append(t.index() + s.number("first", 0))
    for _ in range(random.randint(1, 5)):
        x, y, z = (random.choice(pool) for _ in range(3))
        kind = random.randrange(12 if depth > 1 else 11)
        if kind == 11:
            inner, seen = _random_loop(s, random, [x, y, z], random.randint(1, 3), None, depth - 1)
            pool.append(inner.last(0) if random.random() < 0.5 else s.total(inner.iterations(seen)))
            continue
        pool.append(
            [
                lambda x, y, z: x + y, lambda x, y, z: x * y, lambda x, y, z: s.sin(x), lambda x, y, z: s.sqrt(x),
                lambda x, y, z: s.log(x), lambda x, y, z: 1 / x, lambda x, y, z: s.where(s.greater(x, 0), y, z),
                lambda x, y, z: s.where(s.greater(x, 0), s.sqrt(x), y), lambda x, y, z: x - y, lambda x, y, z: x,
                lambda x, y, z: s.where(s.less(x, y), z, s.log(y)),
            ][kind](x, y, z)
        )  # fmt: skip
    nexts = [random.choice(pool[-4:] + carries) for _ in carries]
    seen = pool[-1]
    return t.loop(*nexts, outputs=[seen]), seen
