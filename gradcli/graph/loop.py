"""Loops as nodes: a body of a fixed size that is repeated, and the nodes that read its results.

A `Body` is one iteration as a closed graph: its leaves are the carries (the state before the iteration), rows (the
iteration's part of stacked arrays), fixed values, and the number of the iteration; `nexts` is the state after the
iteration. Two kinds of nodes read a loop, and both are composites: `last` is a carry after the last iteration,
`iterations` is the value of one node of the body in every iteration, stacked along a new first axis. Their arguments
are the initial carries, the stacked arrays and the fixed values; the body and the count of iterations are parameters.
Nodes with the same arguments, body, count and direction read the same loop, which is evaluated once for all of them
(`loop_key`). Their definitions are the iterations written out (`written_out_last`, `written_out_iterations`).

Loops are made by tracing: build one iteration from fresh leaves in the surrounding builder and `close` it. Whatever
does not depend on those leaves stays outside the loop and becomes a fixed value. `Opened` is the way back: the body of
a loop on fresh leaves in the surrounding builder, for transforms to work on.
"""

from __future__ import annotations

from gradcli.graph import vocabulary
from gradcli.graph.node import CONSTANT, LEAF, Builder, Node, is_reader
from gradcli.graph.types import FLOAT, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.types import Shape


class Body:
    """One iteration of a loop as a closed graph; equal bodies compare equal, whatever builder they come from.

    `steps` are all nodes in topological order, first the leaves: carries, rows, fixed values, and `index` if the number
    of the iteration is read (a float that counts from 0). `nexts[k]` is the carry k after the iteration, of the type of
    `carried[k]`. Steps beyond those that `nexts` needs are there for `iterations` to read. A body holds no data arrays:
    these are fixed values. `first` counts the iterations that were written out before the loop: for people, the
    iteration with the number t is iteration first + t + 1. Bodies that differ in nothing else are equal.
    """

    __slots__ = (
        *("_hash", "_key", "builder", "carried", "first", "fixed", "index", "nexts", "positions", "rows", "steps"),
    )

    def __init__(
        self,
        carried: tuple[Node, ...],
        rows: tuple[Node, ...],
        fixed: tuple[Node, ...],
        index: Node | None,
        nexts: tuple[Node, ...],
        steps: tuple[Node, ...],
        first: int = 0,
    ) -> None:
        self.builder = steps[0].builder
        self.first = first
        self.carried = carried
        self.rows = rows
        self.fixed = fixed
        self.index = index
        self.nexts = nexts
        self.steps = steps
        self.positions = {node: at for at, node in enumerate(steps)}
        at = self.positions
        self._key = (
            len(carried),
            len(rows),
            len(fixed),
            index is not None,
            tuple([at[node] for node in nexts]),
            tuple(
                [
                    (node.primitive, tuple([at[arg] for arg in node.args]), tuple(node.params.items()), node.type)
                    if node.primitive is not LEAF
                    else node.type
                    for node in steps
                ]
            ),
        )
        self._hash = hash(self._key)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The leaves for the arguments of a reader: carries, rows, fixed values."""
        return (*self.carried, *self.rows, *self.fixed)

    def demanded(self, positions: Iterable[int]) -> list[int]:
        """The positions of the steps that these need, in this iteration and in those before it, in order."""
        after = dict(zip(self.carried, self.nexts, strict=True))
        needed: set[Node] = set()
        pending = [self.steps[at] for at in positions]
        while pending:
            step = pending.pop()
            if step not in needed:
                needed.add(step)
                pending += step.args
                if step in after:
                    pending.append(after[step])
        return sorted([self.positions[step] for step in needed])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Body) and self._hash == other._hash and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<body of {len(self.steps)} nodes, {len(self.carried)} carried>"


class Loop:
    """A loop in a builder: `args` as its readers take them; `last` and `iterations` make readers.

    `close` makes it from traced nodes, which `iterations` then takes; a loop of an existing reader takes positions
    only.
    """

    __slots__ = ("args", "body", "builder", "count", "ends", "reverse", "traced", "unmoved")

    def __init__(
        self,
        body: Body,
        args: tuple[Node, ...],
        count: int,
        reverse: bool,
        traced: Mapping[Node, int] | None = None,
        ends: Sequence[Node | int] | None = None,
        unmoved: Mapping[Node, Node] | None = None,
    ) -> None:
        self.builder = args[0].builder
        self.body = body
        self.args = args
        self.count = count
        self.reverse = reverse
        self.traced = traced or {}
        self.ends = range(len(body.carried)) if ends is None else ends
        self.unmoved = unmoved or {}

    def last(self, carry: int) -> Node:
        """The carry with this number (as given to `close`) after the last iteration."""
        end = self.ends[carry]
        return end if isinstance(end, Node) else self._reader("last", "carry", end)

    def iterations(self, node: Node) -> Node:
        """The value of a traced node in every iteration, stacked along a new first axis.

        A node that does not depend on the iteration is repeated.
        """
        at = self.traced.get(node)
        return repeated(self.builder, self.unmoved.get(node, node), self.count) if at is None else self.stacked(at)

    def stacked(self, at: int) -> Node:
        """The value of the step of the body with this position in every iteration; of a row, the array itself."""
        first = len(self.body.carried)
        if first <= at < first + len(self.body.rows):
            return self.args[at]
        if first <= at < len(self.body.inputs):
            return repeated(self.builder, self.args[at], self.count)
        return self._reader("iterations", "at", at)

    def _reader(self, name: str, key: str, place: int) -> Node:
        if not self.count:
            if name == "last":
                return self.args[place]
            type_ = self.body.steps[place].type
            return self.builder.constant(0, (0, *type_.shape), type_.kind)
        params = {"body": self.body, "count": self.count, "reverse": self.reverse, key: place}
        return self.builder.apply(self.builder.vocabulary[name], self.args, params)


def loop_key(node: Node) -> Any:
    """A key that is the same for all readers of one loop."""
    params = node.params
    return node.args, params["body"], params["count"], params["reverse"]


def readers_by_loop(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The readers of each loop, by the first of them in this order."""
    first: dict[Any, Node] = {}
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        if is_reader(node):
            readers.setdefault(first.setdefault(loop_key(node), node), []).append(node)
    return readers


def nodes_in(nodes: Iterable[Node]) -> int:
    """The number of these nodes and of the nodes in the bodies of their loops, each body counted once."""
    nodes = list(nodes)
    bodies = {node.params["body"] for node in nodes if is_reader(node)}
    return len(nodes) + sum(nodes_in(body.steps) for body in bodies)


def written_nodes(nodes: Iterable[Node]) -> int:
    """Roughly the number of nodes with all iterations of the loops written out."""
    nodes = list(nodes)
    iterations: list[int] = [
        first.params["count"] * written_nodes(first.params["body"].steps) for first in readers_by_loop(nodes)
    ]
    return len(nodes) + sum(iterations)


def single_numbers(node: Node) -> bool:
    """Whether every value in an iteration of the loop that a node reads is a single number."""
    return all(not step.shape and (not is_reader(step) or single_numbers(step)) for step in node.params["body"].steps)


def loop_of(node: Node) -> Loop:
    """The loop that a reader reads, in the reader's builder."""
    params = node.params
    return Loop(params["body"], node.args, params["count"], params["reverse"])


def repeated(builder: Builder, node: Node, count: int) -> Node:
    """A value repeated along a new first axis."""
    raised = vocabulary.reshape(node, (1, *node.shape))
    return raised if count == 1 else vocabulary.broadcast(raised, (count, *node.shape))


def row(builder: Builder, stack: Node, iteration: int) -> Node:
    """The part of a stacked array that belongs to one iteration."""
    return vocabulary.reshape(some_rows(builder, stack, iteration, 1), stack.shape[1:])


def some_rows(builder: Builder, stack: Node, first: int, count: int) -> Node:
    """The part of a stacked array that belongs to `count` iterations."""
    shape = stack.shape
    if count == shape[0]:
        return stack
    rest = (0,) * (len(shape) - 1)
    return vocabulary.part(stack, (first, *rest), (1,) * len(shape), (count, *shape[1:]))


def joined(builder: Builder, stacks: Sequence[Node]) -> Node:
    """Stacked arrays one after the other."""
    if len(stacks) == 1:
        return stacks[0]
    return vocabulary.concat(stacks, -len(stacks[0].shape))


# --- making loops ----------------------------------------------------------------------------------------------


def close(
    builder: Builder,
    count: int,
    carried: Sequence[tuple[Node, Node]],
    nexts: Sequence[Node],
    *,
    rows: Sequence[tuple[Node, Node]] = (),
    index: Node | None = None,
    outputs: Sequence[Node] = (),
    reverse: bool = False,
    first: int = 0,
) -> Loop:
    """The loop that repeats a traced iteration `count` times.

    `carried` pairs the fresh leaf of each carry with its initial value, `rows` the leaf of each row with its array of
    shape [count, ...]; `index` is the leaf that stood for the number of the iteration (0 to count - 1; with `reverse`
    the iterations run from the last to the first). `nexts` are the carries after the iteration, `outputs` further nodes
    of the iteration that `Loop.iterations` may stack, `first` counts the iterations that were written out before. All
    are nodes of `builder`; what does not depend on the leaves is left outside. Raises ValueError where a type does not
    fit.

    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, a = builder.fresh_leaf(FLOAT), builder.leaf("a")
    >>> loop = close(builder, 40, [(x, builder.constant(1))], [x + x*a])
    >>> loop.last(0).primitive.name, [step.primitive.name for step in loop.body.steps]
    ('last', ['leaf', 'leaf', 'mul', 'add'])
    """
    for (leaf, init), after in zip(carried, nexts, strict=True):
        if not leaf.type == init.type == after.type:
            raise ValueError(f"a carry {leaf.type} that starts as {init.type} and becomes {after.type}")
    for leaf, stack in rows:
        if stack.type != Type(leaf.type.kind, (count, *leaf.shape)):
            raise ValueError(f"a row {leaf.type} of {count} iterations in an array {stack.type}")
    # a carry that no iteration changes is a fixed value
    unmoved = {leaf: init for (leaf, init), after in zip(carried, nexts, strict=True) if after is leaf}
    moving = [k for k, (leaf, _) in enumerate(carried) if leaf not in unmoved]
    tracer = _Copy(builder, [carried[k][0] for k in moving], [leaf for leaf, _ in rows], index, unmoved)
    read_nexts = [nexts[k] for k in moving]
    tracer.read([*read_nexts, *outputs])
    ends_of_iteration = tracer.ends(read_nexts)  # before the fixed values are counted: it may be one
    places = {k: place for place, k in enumerate(moving)}
    args = (*(carried[k][1] for k in moving), *(stack for _, stack in rows), *tracer.fixed_values)
    if not args:  # an operation has an argument: a loop over numbers alone is given one that no iteration reads
        tracer.leaf_of(builder.constant(0))
        args = tuple(tracer.fixed_values)
    body = tracer.body(ends_of_iteration, first)
    traced = {node: body.positions[copy] for node, copy in tracer.copies.items()}
    ends: list[Node | int] = [places.get(k, init) for k, (_, init) in enumerate(carried)]
    return Loop(body, args, count, reverse, traced, ends, unmoved)


class _Copy:
    """The nodes of a traced iteration that depend on its leaves, in a builder of their own in a canonical order."""

    __slots__ = (
        "builder",
        "carried",
        "copies",
        "dependent",
        "fixed",
        "fixed_values",
        "index",
        "outer",
        "replaced",
        "rows",
    )

    def __init__(
        self,
        outer: Builder,
        carried: Sequence[Node],
        rows: Sequence[Node],
        index: Node | None,
        replaced: dict[Node, Node],
    ) -> None:
        self.outer = outer
        self.builder = type(outer)(outer.vocabulary, outer.limit, outer.entries)
        self.replaced = replaced
        self.copies: dict[Node, Node] = {}
        self.dependent: set[Node] = set()  # on the leaves of the iteration
        self.fixed: dict[Node, Node] = {}
        self.fixed_values: list[Node] = []
        self.carried = [self._leaf(leaf, "carry") for leaf in carried]
        self.rows = [self._leaf(leaf, "row") for leaf in rows]
        self.index = None if index is None else self._leaf(index, "index")

    def _leaf(self, leaf: Node, what: str) -> Node:
        self.dependent.add(leaf)
        copy = self.copies[leaf] = self._named(leaf, f"~{what}{len(self.copies)}")
        return copy

    def _named(self, value: Node, otherwise: str) -> Node:
        """A leaf for a value; leaves with a name from the user keep it."""
        name: str = value.params["name"] if value.primitive is LEAF else otherwise
        return self.builder.fresh_leaf(value.type, otherwise if name[1:].isdigit() else name)

    def leaf_of(self, value: Node) -> Node:
        """The leaf of a value that is the same in every iteration."""
        known = self.fixed.get(value)
        if known is None:
            known = self.fixed[value] = self._named(value, f"~fixed{len(self.fixed_values)}")
            self.fixed_values.append(value)
        return known

    def outside(self, value: Node) -> Node:
        """Represents a node that does not depend on the iteration: copies a constant, makes any other a leaf."""
        return self.builder.copied(value, ()) if value.primitive is CONSTANT else self.leaf_of(value)

    def read(self, roots: Iterable[Node]) -> None:
        """Copy what these nodes need, depth first, so that equal iterations give equal copies."""
        roots = list(roots)
        self._mark(roots)
        for root in roots:
            stack = [root]
            while stack:
                node = self.replaced.get(stack[-1], stack[-1])
                if node in self.copies or not self._depends(node):
                    stack.pop()
                    continue
                args = [self.replaced.get(arg, arg) for arg in node.args]
                waiting = [arg for arg in args if self._depends(arg) and arg not in self.copies]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
                stack.pop()
                operands = tuple([self.copies[arg] if self._depends(arg) else self.outside(arg) for arg in args])
                self.builder.span = node.span
                self.copies[node] = self.builder.copied(node, operands)

    def _mark(self, roots: Iterable[Node]) -> None:
        """Mark the nodes that depend on the leaves of the iteration; nodes made before these leaves do not."""
        first = min([leaf.serial for leaf in (*self.dependent, *self.replaced)], default=0)
        inside: set[Node] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node.serial >= first and node not in inside and node not in self.dependent:
                inside.add(node)
                stack.extend(node.args)
        for node in sorted(inside, key=lambda node: node.serial):
            if node in self.replaced:
                continue
            if any(map(self._depends, node.args)):
                self.dependent.add(node)
            elif not self.replaced.keys().isdisjoint(node.args):  # it depends on carries that no iteration changes only
                args = tuple([self.replaced.get(arg, arg) for arg in node.args])
                self.replaced[node] = self.outer.apply(node.primitive, args, node.params)

    def _depends(self, node: Node) -> bool:
        return node in self.dependent

    def ends(self, nexts: Sequence[Node]) -> list[Node]:
        """The carries after an iteration that has been read; one that does not depend on it is a fixed value."""
        ends = []
        for node in nexts:
            copy = self.copies.get(node)
            ends.append(self.outside(self.replaced.get(node, node)) if copy is None else copy)
        return ends

    def body(self, ends: Sequence[Node], before: int) -> Body:
        """The body, once everything has been read."""
        fixed = tuple(self.fixed.values())
        first = [*self.carried, *self.rows, *fixed, *([] if self.index is None else [self.index])]
        inner = dict.fromkeys(first)
        for copy in self.copies.values():
            for arg in copy.args:
                inner.setdefault(arg)
            inner.setdefault(copy)
        for end in ends:
            inner.setdefault(end)
        self.builder.close()
        return Body(tuple(self.carried), tuple(self.rows), fixed, self.index, tuple(ends), tuple(inner), before)


# --- reading loops ---------------------------------------------------------------------------------------------


class Opened:
    """One iteration of a loop in the surrounding builder, on fresh leaves for carries, rows and index.

    `nodes[i]` represents `body.steps[i]`. Fixed values are the arguments, so nodes that depend on these alone are
    outside of any iteration. The index counts from 0; the index that the script sees is `first` more.
    """

    __slots__ = ("body", "carried", "index", "nexts", "nodes", "rows")

    def __init__(self, loop: Loop, first: int = 0) -> None:
        body, builder = loop.body, loop.builder
        self.body = body
        self.carried = tuple([builder.fresh_leaf(leaf.type) for leaf in body.carried])
        self.rows = tuple([builder.fresh_leaf(leaf.type) for leaf in body.rows])
        self.index = None if body.index is None else builder.fresh_leaf(FLOAT)
        fixed = loop.args[len(self.carried) + len(self.rows) :]
        number = self.index + first if first and self.index is not None else self.index
        self.nodes = iteration(builder, body, self.carried, self.rows, fixed, number)
        self.nexts = tuple([self.nodes[body.positions[node]] for node in body.nexts])


def iteration(
    builder: Builder,
    body: Body,
    carried: Sequence[Node],
    rows: Sequence[Node],
    fixed: Sequence[Node],
    index: Node | None,
) -> list[Node]:
    """The nodes of one iteration on these values, one for each step of the body."""
    nodes: dict[Node, Node] = dict(zip(body.inputs, (*carried, *rows, *fixed), strict=True))
    if body.index is not None:
        assert index is not None
        nodes[body.index] = index
    outer = builder.span
    for step in body.steps:
        if step not in nodes:
            builder.span = step.span
            nodes[step] = builder.copied(step, tuple([nodes[arg] for arg in step.args]))
    builder.span = outer
    return [nodes[step] for step in body.steps]


def order_of_iterations(count: int, reverse: bool) -> range:
    """The numbers of the iterations in the order in which they run."""
    return range(count - 1, -1, -1) if reverse else range(count)


def written_out_last(*args: Node, body: Body, count: int, reverse: bool, carry: int) -> Node:
    """The definition of `last`: the iterations one after the other."""
    state: Sequence[Node] = args[: len(body.carried)]
    for nodes in _written_out(args, body, count, reverse):
        state = [nodes[body.positions[node]] for node in body.nexts]
    return state[carry]


def written_out_iterations(*args: Node, body: Body, count: int, reverse: bool, at: int) -> Node:
    """The definition of `iterations`: the iterations one after the other, and one value of each stacked."""
    builder = args[0].builder
    values: dict[int, Node] = {}
    for number, nodes in zip(
        order_of_iterations(count, reverse), _written_out(args, body, count, reverse), strict=True
    ):
        values[number] = nodes[at]
    return joined(builder, [repeated(builder, values[number], 1) for number in range(count)])


def _written_out(args: Sequence[Node], body: Body, count: int, reverse: bool) -> Iterable[list[Node]]:
    builder = args[0].builder
    states, stacks = len(body.carried), len(body.rows)
    state, fixed = args[:states], args[states + stacks :]
    for number in order_of_iterations(count, reverse):
        rows = [row(builder, stack, number) for stack in args[states : states + stacks]]
        index = None if body.index is None else builder.constant(number)
        nodes = iteration(builder, body, state, rows, fixed, index)
        state = tuple([nodes[body.positions[node]] for node in body.nexts])
        yield nodes


# --- types -----------------------------------------------------------------------------------------------------


def type_of_last(*args: Type, body: Body, carry: int, **_: Any) -> Type:
    """The type of `last`."""
    return body.carried[carry].type


def type_of_iterations(*args: Type, body: Body, count: int, at: int, **_: Any) -> Type:
    """The type of `iterations`: an axis more in front."""
    step = body.steps[at].type
    shape: Shape = (count, *step.shape)
    return Type(step.kind, shape)
