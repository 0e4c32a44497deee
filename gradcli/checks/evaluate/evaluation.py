"""Evaluates programs in any arithmetic, from the entries of leaves to those of all other nodes."""

from __future__ import annotations

import math
from operator import is_
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.evaluate.interpretation import LOST, Entries, Failure, Undecided, Unsupported
from gradcli.graph.arrays import ArrayData
from gradcli.graph.exact import is_fraction
from gradcli.graph.loop import order_of_iterations, readers_by_loop
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, is_reader, reachable
from gradcli.graph.types import size_of
from gradcli.primitives.comparison import detach, ste, where
from gradcli.primitives.contraction import matmul

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction

    from gradcli.checks.evaluate.interpretation import Field
    from gradcli.graph.loop import Body
    from gradcli.graph.primitive import Primitive

    Step = Callable[["FieldEvaluation", Node], Entries]
    Steps = Sequence[tuple[Node, int, Step]]  # a node, its entries, and what gives them

DEFINED = 4  # operations per entry of what is written out by its definition, roughly
MOST_ENTRIES = 1_000_000  # over all nodes, of a loop those of one iteration; beyond that a reading takes too long
MOST_IN_ITERATIONS = 8_000_000  # operations on single entries in the iterations of the loops that are read together
LOOK = 16  # iterations after which a field looks at the digits that are left


class FieldEvaluation:
    """The entries of a program's nodes in one field at one point, computed on demand and kept.

    `point` gives each leaf its entries; `fixed` gives entries to further nodes, whose own arguments are then not read.
    Where a reading starts from the entries of another one, its `base`, and some of them are `fixed` to what moves,
    nodes and entries whose arguments do not move keep those of the base.
    """

    def __init__(
        self,
        field: Field,
        point: Mapping[str, Entries],
        fixed: Mapping[Node, Entries] | None = None,
        base: Mapping[Node, Entries] | None = None,
    ) -> None:
        self.field = field
        self.point = point
        self.base = base or {}
        self.known: dict[Node, Entries] = {**self.base, **(fixed or {})}
        self.waiting: dict[Node, Entries] = {}  # of further readers of a loop that has been evaluated
        self.entries = 0
        self.in_iterations = 0

    def __getitem__(self, output: Node) -> Entries:
        return self.read([output])[0]

    def read(self, outputs: Sequence[Node]) -> list[Entries]:
        """The entries of some nodes; raises Unsupported where an operation cannot be read."""
        self.follow(steps_of([node for node in reachable(outputs, self.known) if node not in self.known]))
        return [self.known[output] for output in outputs]

    def follow(self, steps: Steps) -> None:
        """Read nodes that are given in order, arguments first."""
        known, base = self.known, self.base
        for node, count, step in steps:
            self.entries += count
            if self.entries > MOST_ENTRIES:
                raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
            still = base.get(node)
            if still is None:
                known[node] = step(self, node)
                continue
            for arg in node.args:
                if known[arg] is not base[arg]:
                    entries = step(self, node)
                    known[node] = still if all(map(is_, entries.flat, still.flat)) else entries
                    break
            else:
                known[node] = still

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
        return self._at_the_point(node.args[0])

    def straight_through(self, node: Node) -> Entries:
        """ste(value, surrogate): the value of the first, which moves like the second."""
        value, before = [self._at_the_point(arg) for arg in node.args]
        rows = zip(value.flat, self.known[node.args[1]].flat, before.flat, strict=True)
        return Entries([x if y is then else x + (y - then) for x, y, then in rows], value.shape)

    def _at_the_point(self, arg: Node) -> Entries:
        still = self.base.get(arg)
        return self.field.detached(arg, self.known[arg]) if still is None else still

    def pointwise(self, node: Node) -> Entries:
        """A rule for single entries, applied to each of them."""
        field, known, args = self.field, self.known, node.args
        rule = field.rule(node.primitive)
        if rule is None:
            return self.by_entries(node)
        first = known[args[0]].flat
        if len(first) != 1:
            return Entries(self.each(node, rule, [known[arg] for arg in args]), node.type.shape)
        row = tuple([known[arg].flat[0] for arg in args])
        return Entries([field.apply(node, rule, row)], node.type.shape)

    def chosen(self, node: Node) -> Entries:
        """The entries of `where`: a failure counts only where it is chosen."""
        rows, either = zip(*[self.known[arg].flat for arg in node.args], strict=True), self.field.either
        flat = [
            either(condition, x, y) if isinstance(condition, Failure) else x if condition else y
            for condition, x, y in rows
        ]
        return Entries(flat, node.type.shape)

    def moved(self, node: Node) -> Entries:
        """The entries of an operation that only moves them."""
        xs = [self.known[arg] for arg in node.args]
        places = self.field.sources(node.primitive, tuple([x.shape for x in xs]), node.params)
        flat = xs[0].flat if len(xs) == 1 else [entry for x in xs for entry in x.flat]
        return Entries([flat[place] for place in places], node.type.shape)

    def by_entries(self, node: Node) -> Entries:
        """A rule for whole arrays: the operation's, the field's own, or its definition."""
        field = self.field
        xs = [self.known[arg] for arg in node.args]
        rule = field.array_rule(node)
        if rule is not None:
            return self.by_rule(node, rule, xs)
        if node.primitive.definition is None:
            problem = "cannot be read entry by entry" if node.primitive.package is None else "has no ball="
            raise Unsupported(f"{node.primitive.name} {problem}")
        inputs, order, result = field.definition(node)
        inner = FieldEvaluation(field, {}, dict(zip(inputs, xs, strict=True)))
        inner.entries = self.entries
        flat = inner[result].flat
        self.entries = inner.entries
        if any(isinstance(x, Failure) for x in flat):
            general = field.array_rule(node, closed=False)
            if general is not None:
                return self.by_rule(node, general, xs)
            own = set(order)  # what failed at a node inside failed at the one that it defines
            flat = [type(x)(x.reason, node) if isinstance(x, Failure) and x.node in own else x for x in flat]
        return Entries(flat, node.type.shape)

    def by_rule(self, node: Node, rule: Callable[..., Any], xs: Sequence[Entries]) -> Entries:
        """A rule that mixes entries, so that a failure in one of them is a failure of all."""
        field, shape = self.field, node.type.shape
        try:
            value: Any = rule(field, *xs, **node.params)
        except Exception as reason:
            return Entries([field.failure_of(node, reason)] * size_of(shape), shape)
        entries = value.flat if isinstance(value, Entries) else [value]
        operands = [entry for x in xs for entry in x.flat]
        return Entries([field.accepted(node, entry, operands) for entry in entries], shape)

    def each(self, node: Node, rule: Callable[..., Any], xs: list[Entries]) -> list[Any]:
        """A rule for single entries, applied to each of many; where nothing moves, the entry of the base."""
        apply = self.field.apply
        rows = zip(*[x.flat for x in xs], strict=True)
        still = self.base.get(node)
        if still is None:
            return [apply(node, rule, row) for row in rows]
        before = zip(*[self.base[arg].flat for arg in node.args], strict=True)
        return [
            old if all(map(is_, row, then)) else apply(node, rule, row)
            for old, row, then in zip(still.flat, rows, before, strict=True)
        ]


OWN_STEPS: Mapping[Primitive, Step] = {
    where: FieldEvaluation.chosen, detach: FieldEvaluation.detached, ste: FieldEvaluation.straight_through
}  # fmt: skip


def step_of(node: Node) -> Step:
    """The method that computes the entries of a node."""
    primitive = node.primitive
    if primitive is LEAF:
        return FieldEvaluation.leaf
    if primitive is CONSTANT:
        return FieldEvaluation.constant
    if primitive is DATA:
        return FieldEvaluation.data
    name = primitive.name
    if node.builder.vocabulary.get(name) is not primitive:
        return FieldEvaluation.first
    if primitive in OWN_STEPS:
        return OWN_STEPS[primitive]
    if primitive.pointwise:
        return FieldEvaluation.pointwise
    return FieldEvaluation.moved if primitive.moves else FieldEvaluation.by_entries


def steps_of(order: Iterable[Node]) -> Steps:
    """The steps of nodes that are given in order; all readers of one loop share one."""
    order = list(order)
    iterations = {node: step for step in map(Iterations, readers_by_loop(order).values()) for node in step.readers}
    return [(node, size_of(node.type.shape), iterations.get(node) or step_of(node)) for node in order]


def steps(node: Node) -> int:
    """How many operations on single entries a node takes, roughly; of a loop, those of all iterations."""
    if is_reader(node):
        return int(node.params["count"] * work_of(node.params["body"].steps))
    primitive = node.primitive
    if primitive.entries is None and primitive.definition is not None and not primitive.pointwise and node.args:
        return DEFINED * max(node.type.size, *(arg.type.size for arg in node.args))
    if primitive.entries is None or not node.args:
        return node.type.size
    first = node.args[0].type
    if primitive is matmul:
        return node.type.size * first.shape[-1]
    if primitive.kind == "structured" and len(first.shape) > 1:
        return first.size * first.shape[-1] ** 2
    return max(node.type.size, *(arg.type.size for arg in node.args))


def work_of(order: Iterable[Node]) -> int:
    """How many operations on single entries some nodes take, roughly; the readers of one loop share its iterations."""
    order = list(order)
    return sum([steps(node) for node in (*readers_by_loop(order), *(step for step in order if not is_reader(step)))])


# --- loops --------------------------------------------------------------------------------------------------------


class Iterations:
    """The step of all readers of one loop among nodes that are read together: the loop is evaluated once for all.

    An iteration computes what some reader needs, and its values are dropped after the next iteration.
    """

    def __init__(self, readers: Sequence[Node]) -> None:
        params = readers[0].params
        body: Body = params["body"]
        self.readers = readers
        self.body = body
        self.order = order_of_iterations(params["count"], params["reverse"])
        self.shown = {  # the step of the body whose values a reader has, of the last iteration or of all
            node: body.nexts[node.params["carry"]] if "carry" in node.params else body.steps[node.params["at"]]
            for node in readers
        }
        needed = [body.steps[at] for at in body.demanded([body.positions[step] for step in self.shown.values()])]
        inputs = {*body.inputs, body.index}
        constants = [step for step in needed if step.primitive is CONSTANT]
        iteration = [step for step in needed if step not in inputs and step.primitive is not CONSTANT]
        self.own, computed = set(iteration), set(needed)
        self.stacked = {self.shown[node] for node in readers if "at" in node.params}
        self.carries = {leaf: after for leaf, after in zip(body.carried, body.nexts, strict=True) if after in computed}
        self.size = sum(step.type.size for step in needed)
        self.cost = len(self.order) * work_of(iteration)
        self.holds = any(map(_holds, iteration))
        counted = {body.index, *(node for node in constants if not isinstance(node.params["value"], str))}
        for step in iteration:  # single numbers that follow from the number of the iteration and rational constants
            if counted.issuperset(step.args) and not step.shape and step_of(step) is FieldEvaluation.pointwise:
                counted.add(step)
        self.constants = steps_of(constants)
        self.steps = [(node, _exact if node in counted else step) for node, _, step in steps_of(iteration)]

    def __call__(self, reading: FieldEvaluation, node: Node) -> Entries:
        if node not in reading.waiting:
            reading.waiting.update(self.evaluated(reading))
        return reading.waiting.pop(node)

    def evaluated(self, reading: FieldEvaluation) -> dict[Node, Entries]:
        """The entries of every reader."""
        reading.in_iterations += self.cost
        if reading.in_iterations > MOST_IN_ITERATIONS:
            raise Unsupported(
                f"about {reading.in_iterations:,} operations in iterations of loops, more than {MOST_IN_ITERATIONS:,}"
            )
        if reading.entries + self.size > MOST_ENTRIES:
            raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
        field, body, count = reading.field, self.body, len(self.order)
        if field.most_iterations is not None and count > field.most_iterations:
            raise Unsupported(f"a loop of {count:,} iterations, more than {field.most_iterations}")
        if self.holds and field.hold:
            raise Unsupported("a detached value in a loop")
        inputs = dict(zip(body.inputs, [reading.known[arg] for arg in self.readers[0].args], strict=True))
        inner = FieldEvaluation(field, {}, inputs)
        inner.follow(self.constants)
        known = inner.known
        state = [inputs[leaf] for leaf in self.carries]
        stored: dict[Node, dict[int, list[Any]]] = {step: {} for step in self.stacked}
        for done, number in enumerate(self.order, 1):
            known.update(zip(self.carries, state, strict=True))
            for leaf in body.rows:
                start, size = number * leaf.type.size, leaf.type.size
                known[leaf] = Entries(inputs[leaf].flat[start : start + size], leaf.shape)
            if body.index is not None:
                known[body.index] = Entries([field.constant(number)], ())
            inner.entries, inner.in_iterations = reading.entries + self.size, 0
            for node, step in self.steps:
                known[node] = step(inner, node)
            state = [known[after] for after in self.carries.values()]
            iteration = body.first + number + 1
            for node in (*self.carries.values(), *stored):
                for x in known[node].flat:
                    if isinstance(x, Failure) and x.node in self.own:
                        x.happened_in(iteration, self.readers[0])
            for node, values in stored.items():
                values[number] = known[node].flat
            if (done % LOOK == 0 or done == count) and field.is_lost(state, done, count):
                lost = Undecided(f"{LOST} in iteration {iteration}")
                return {node: Entries([lost] * node.type.size, node.shape) for node in self.readers}
        entries = {}
        for node, step in self.shown.items():
            iterations = stored[step] if "at" in node.params else {count: known[step].flat}
            flat = [entry for number in sorted(iterations) for entry in iterations[number]]
            entries[node] = Entries(flat, node.shape)
        return entries


def _exact(reading: FieldEvaluation, node: Node) -> Entries:
    """The step of a counted number: in fractions where balls do not decide, as at a tie of 0.1*i and 0.3."""
    field, entries = reading.field, reading.pointwise(node)
    if not isinstance(entries.flat[0], Undecided) or field.rounded:
        return entries
    value = exact_number(node, lambda index: field.index(reading.known[index].flat[0]))
    if value is None:
        return entries
    return Entries([bool(value) if node.type.kind == "bool" else field.constant(value)], ())


def exact_number(node: Node, leaf_value: Callable[[Node], int] | None = None) -> int | Fraction | None:
    """The number that a node is, from whole numbers as leaves; None where it is no fraction, or a leaf is not known."""
    from gradcli.lowering.statics import exact_value  # start-up time is a feature

    while node.primitive.moves and len(node.args) == 1 and node.args[0].type.size == 1:
        node = node.args[0]
    if node.primitive is CONSTANT:
        value = node.params["value"]
    else:
        for step in reachable([node]):
            if (step.primitive is LEAF and leaf_value is None) or isinstance(step.params.get("value"), str):
                return None  # pi, say, would be its double
        try:
            value = exact_value(node, leaf_value or (lambda _: math.nan), lambda _: math.nan, None)
        except GradcliError:  # no fraction, or a division by 0
            return None
    return value if isinstance(value, int) or is_fraction(value) else None


def _holds(node: Node) -> bool:
    """Whether a node detaches a value, or a node in the iterations of its loop does."""
    if is_reader(node):
        return any(map(_holds, node.params["body"].steps))
    return node.primitive in (detach, ste)
