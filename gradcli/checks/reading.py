"""A program, a field and the entries of its leaves go in, the entries of its nodes come out; it knows no arithmetic.

What a step does depends on the node alone, so walks that are repeated at many points are prepared once. No derivative
rule is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.checks.entries import Entries, Failure, Unsupported
from gradcli.graph.arrays import ArrayData
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node
from gradcli.graph.types import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.checks.entries import Field

    Step = Callable[["Reading", Node], Entries]
    Steps = Sequence[tuple[Node, int, Step]]  # a node, its entries, and what gives them

DEFINED = 4  # operations per entry of what is written out by its definition, roughly
MOST_ENTRIES = 1_000_000  # entries over all nodes; beyond that an exact reading takes too long


class Reading:
    """The entries of a program's nodes in one field at one point, computed on demand and kept.

    `point` gives each leaf its entries; `fixed` gives entries to further nodes, whose own arguments are then not read.
    """

    def __init__(self, field: Field, point: Mapping[str, Entries], fixed: Mapping[Node, Entries] | None = None) -> None:
        self.field = field
        self.point = point
        self.known: dict[Node, Entries] = {} if fixed is None else dict(fixed)
        self.entries = 0

    def inside(self, fixed: Mapping[Node, Entries]) -> Reading:
        """A reading of a definition, on the entries of its inputs."""
        return Reading(self.field, {}, fixed)

    def __getitem__(self, output: Node) -> Entries:
        return self.read([output])[0]

    def read(self, outputs: Sequence[Node]) -> list[Entries]:
        """The entries of some nodes; raises Unsupported where an operation cannot be read."""
        self.follow(steps_of(self._missing(outputs)))
        return [self.known[output] for output in outputs]

    def follow(self, steps: Steps) -> None:
        """Read nodes that are given in order, arguments first; what is known already stays as it is."""
        known = self.known
        for node, count, step in steps:
            if node not in known:
                self.entries += count
                if self.entries > MOST_ENTRIES:
                    raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
                known[node] = step(self, node)

    def again(self, steps: Steps) -> None:
        """Read nodes that are given in order, whatever is known of them."""
        known = self.known
        for node, count, step in steps:
            self.entries += count
            if self.entries > MOST_ENTRIES:
                raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
            known[node] = step(self, node)

    def _missing(self, outputs: Iterable[Node]) -> list[Node]:
        seen: set[Node] = set()
        stack = list(outputs)
        while stack:
            node = stack.pop()
            if node not in seen and node not in self.known:
                seen.add(node)
                stack.extend(node.args)
        return sorted(seen, key=lambda node: node.serial)

    # --- steps: what a node is, from the entries of its arguments ------------------------------------------------

    def leaf(self, node: Node) -> Entries:
        return self.point[node.params["name"]]

    def constant(self, node: Node) -> Entries:
        value, shape = node.params["value"], node.type.shape
        entry = bool(value) if node.type.kind == "bool" else self.field.constant(value)
        return Entries([entry] * size_of(shape), shape)

    def data(self, node: Node) -> Entries:
        data = node.builder.data[node.params["digest"]]
        flat = data.flat if isinstance(data, ArrayData) else data.reshape(-1).tolist()
        take = bool if node.type.kind == "bool" else self.field.datum
        return Entries([take(entry) for entry in flat], node.type.shape)

    def first(self, node: Node) -> Entries:
        """A function with a hand-written rule: its value."""
        return self.known[node.args[0]]

    def detached(self, node: Node) -> Entries:
        return self.field.detached(node, self.known[node.args[0]])

    def straight_through(self, node: Node) -> Entries:
        value, surrogate = node.args
        return self.field.straight_through(node, self.known[value], self.known[surrogate])

    def pointwise(self, node: Node) -> Entries:
        """A rule for single entries, on each of them."""
        field, known, args = self.field, self.known, node.args
        rule = field.rule(node.primitive)
        if rule is None:
            return self.by_entries(node)
        first = known[args[0]].flat
        if len(first) != 1:
            return Entries(self.each(node, rule, [known[arg] for arg in args]), node.type.shape)
        row = tuple([known[arg].flat[0] for arg in args])
        return Entries([field.apply(node, rule, row)], node.type.shape)

    def moved(self, node: Node) -> Entries:
        """Entries that only change their places."""
        xs = [self.known[arg] for arg in node.args]
        places = self.field.sources(node.primitive, tuple([x.shape for x in xs]), node.params)
        flat = xs[0].flat if len(xs) == 1 else [entry for x in xs for entry in x.flat]
        return Entries([flat[place] for place in places], node.type.shape)

    def by_entries(self, node: Node) -> Entries:
        """A rule for whole arrays: the operation's, the field's own, or its definition."""
        primitive, field = node.primitive, self.field
        xs = [self.known[arg] for arg in node.args]
        if primitive.entries is not None:
            return self.by_rule(node, xs, field.array_rule(primitive))
        own = field.matrix_rule(node)
        if own is not None:
            return self.by_rule(node, xs, own)
        if primitive.definition is None:
            raise Unsupported(f"{primitive.name} cannot be read entry by entry")
        inputs, steps, result = field.definition(node)
        inner = self.inside(dict(zip(inputs, xs, strict=True)))
        inner.entries = self.entries
        inner.follow(steps_of(steps))
        self.entries = inner.entries
        return _outside(node, inner.known[result], xs)

    def each(self, node: Node, rule: Callable[..., Any], xs: list[Entries]) -> list[Any]:
        """A rule for single entries, on each of many."""
        apply = self.field.apply
        return [apply(node, rule, row) for row in zip(*[x.flat for x in xs], strict=True)]

    def by_rule(self, node: Node, xs: list[Entries], rule: Callable[..., Any]) -> Entries:
        """A rule for whole arrays. It mixes entries, so a failure in one of them is a failure of all."""
        shape = node.type.shape
        try:
            made: Any = rule(self.field, *xs, **node.params)
        except Exception as reason:
            return Entries([self.field.told(node, reason)] * size_of(shape), shape)
        found = made if isinstance(made, Entries) else Entries([made], shape)
        return Entries([self.field.checked(node, entry, xs) for entry in found.flat], shape)


OWN_STEPS: Mapping[str, Step] = {"detach": Reading.detached, "ste": Reading.straight_through}


def step_of(node: Node) -> Step:
    """What gives a node its entries."""
    primitive = node.primitive
    if primitive is LEAF:
        return Reading.leaf
    if primitive is CONSTANT:
        return Reading.constant
    if primitive is DATA:
        return Reading.data
    name = primitive.name
    if node.builder.vocabulary.get(name) is not primitive:
        return Reading.first
    if name in OWN_STEPS:
        return OWN_STEPS[name]
    if primitive.pointwise:
        return Reading.pointwise
    return Reading.moved if primitive.moves else Reading.by_entries


def steps_of(order: Iterable[Node]) -> Steps:
    """The steps of nodes that are given in order."""
    return [(node, size_of(node.type.shape), step_of(node)) for node in order]


def steps(node: Node) -> int:
    """How many operations on single entries a node takes, roughly."""
    primitive = node.primitive
    if primitive.entries is None and primitive.definition is not None and not primitive.pointwise and node.args:
        return DEFINED * max(node.type.size, *(arg.type.size for arg in node.args))
    if primitive.entries is None or not node.args:
        return node.type.size
    first = node.args[0].type
    if primitive.name == "matmul":
        return node.type.size * first.shape[-1]
    if primitive.kind == "structured" and len(first.shape) > 1:
        return first.size * first.shape[-1] ** 2
    return max(node.type.size, *(arg.type.size for arg in node.args))


# --- walks that are repeated ------------------------------------------------------------------------------------


def prepared(order: Iterable[Node]) -> Steps:
    """As `steps_of`, for a walk that is repeated: with more work now, each step takes less."""
    return [(node, size_of(node.type.shape), prepared_step(node)) for node in order]


def prepared_step(node: Node) -> Step:
    """What gives a node its entries, again and again."""
    step = step_of(node)
    if step is Reading.constant:
        return _kept()
    if step is Reading.pointwise and len(node.args) <= 2 and size_of(node.type.shape) == 1:
        return _unary(*node.args) if len(node.args) == 1 else _binary(*node.args)
    return step


def _kept() -> Step:
    """The step of a constant: its entries stay what they are in one field."""
    last: tuple[Field, Entries] | None = None

    def step(reading: Reading, node: Node) -> Entries:
        nonlocal last
        if last is None or last[0] is not reading.field:
            last = reading.field, reading.constant(node)
        return last[1]

    return step


def _unary(x: Node) -> Step:
    """The step of an operation on a single entry."""

    def step(reading: Reading, node: Node) -> Entries:
        field = reading.field
        rule = field.rule(node.primitive)
        if rule is None:
            return reading.by_entries(node)
        return Entries([field.apply(node, rule, (reading.known[x].flat[0],))], node.type.shape)

    return step


def _binary(x: Node, y: Node) -> Step:
    """The step of an operation on two single entries."""

    def step(reading: Reading, node: Node) -> Entries:
        field, known = reading.field, reading.known
        rule = field.rule(node.primitive)
        if rule is None:
            return reading.by_entries(node)
        return Entries([field.apply(node, rule, (known[x].flat[0], known[y].flat[0]))], node.type.shape)

    return step


def _outside(node: Node, found: Entries, xs: Sequence[Entries]) -> Entries:
    """The entries of a definition's result; what failed inside it failed at the node that it defines."""
    failed = [x for x in found.flat if isinstance(x, Failure)]
    if not failed:
        return found
    passed = {id(x) for one in xs for x in one.flat if isinstance(x, Failure)}
    own = {id(x): Failure(x.kind, node, x.reason) for x in failed if id(x) not in passed}
    return Entries([own.get(id(x), x) for x in found.flat], found.shape)


__all__ = ["Reading", "Steps", "prepared", "steps", "steps_of"]
