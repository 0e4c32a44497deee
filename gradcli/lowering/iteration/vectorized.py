"""Comprehensions as array operations: one iteration is traced, and then computed for all of them at once.

In the trace the variable is a number that nothing is known of, and `x[i]` stands for all entries of x that it takes.
What is computed from these is lifted (`transforms/lifting.py`): it gets one axis more, along which `sum` and its
relatives reduce. Conditions, and ends of ranges that depend on variables of clauses before, become masks.
"""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.graph.node import Node, reachable
from gradcli.graph.types import Type
from gradcli.language.syntax import Binary, Call, Name, Subscript, Unary, children, names_in, nodes_of
from gradcli.language.unparse import unparse
from gradcli.lowering.assigned_names import CONSTANTS
from gradcli.lowering.constructs.calls import result_value
from gradcli.lowering.constructs.expressions import evaluate, index
from gradcli.lowering.iteration.loops import number_of_iteration
from gradcli.lowering.iteration.ranges import length, range_of
from gradcli.lowering.iteration.snapshot import Snapshot
from gradcli.lowering.iteration.traced_iterations import TracedIteration, affine, moves, selected
from gradcli.lowering.names import Poisoned, without_value
from gradcli.lowering.operands import ScriptList, number, plain, truth
from gradcli.lowering.shapes.open_shapes import LengthsDiffer, OpenCount, Reach
from gradcli.lowering.statics import Untraceable
from gradcli.primitives.arithmetic import div, mul
from gradcli.primitives.axes import diagonal, permuted, positions_of
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import where
from gradcli.primitives.contraction import matmul_call
from gradcli.primitives.creation import arange
from gradcli.primitives.movement import broadcast
from gradcli.transforms.lifting import MOST_ENTRIES, lifted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.language.syntax import Clause, Comprehension, Syntax
    from gradcli.lowering.lowerer import Lowerer

FEWEST = 32  # iterations on numbers alone, from which on they are worth an array
MOST_NESTED = 8  # iterations inside each other: they are traced by recursion
WITHOUT_LIMIT = 1 << 62  # entries of an array that only stands for those of other sizes
LEFT_OUT: dict[str, Any] = {
    "sum": 0,
    "prod": 1,
    "max": "-inf",
    "min": "inf",
    "any": 0,
    "all": 1,
}  # what changes nothing
REDUCTIONS = (*LEFT_OUT, "mean")  # what takes a generator


def computed(lowerer: Lowerer, syntax: Comprehension, reduction: str) -> Any:
    """All iterations of a comprehension as one array, reduced along it; None where they have to be apart."""
    open_counts(lowerer, syntax)
    symbolic, outside, traces = lowerer.open_shapes.symbolic, lowerer.local, len(lowerer.traces)
    if syntax in lowerer.apart or traces >= MOST_NESTED or lowerer.mode.loops == "unroll":
        return None
    if not (symbolic or traces or reads_entries(syntax) or has_many(lowerer, syntax)):
        return None
    before, uses, nest = Snapshot(lowerer), len(lowerer.uses), Nest(lowerer, syntax)
    lowerer.local = dict(outside or {})
    try:
        result = nest.value(reduction)
    except (GradcliError, Poisoned, Untraceable) as problem:
        del lowerer.traces[traces:]
        if isinstance(problem, LengthsDiffer) or (symbolic and isinstance(problem, GradcliError)):
            raise
        before.restore(lowerer)
        lowerer.apart.add(syntax)
        if not symbolic or nest.iterations <= FEWEST:
            return None
        if traces or isinstance(problem, Poisoned):
            raise
        name = visible(syntax.clauses[0].target.id)
        message = f"the iterations over `{name}` are not alike, so there is no formula for all sizes"
        raise error("GC306", message, syntax.span, help="give sizes, as in --shape x=3") from None
    finally:
        lowerer.local = outside
    for name in list(lowerer.uses)[uses:]:
        if name not in lowerer.leaves:  # it stood for entries of an iteration
            del lowerer.uses[name]
    lowerer.builder.span = syntax.span
    return result


def open_counts(lowerer: Lowerer, syntax: Comprehension) -> None:
    """Raise OpenCount for a free name at the end of a range, which is a size then."""
    own = {clause.target.id for clause in syntax.clauses}
    pending: list[Syntax] = [bound for clause in syntax.clauses for bound in clause.bounds]
    while pending:
        node = pending.pop()
        if isinstance(node, (Unary, Binary)):
            pending += children(node)
        if not isinstance(node, Name) or node.id in own or node.id in CONSTANTS:
            continue
        leaf = lowerer.leaves.get(node.id)
        free = leaf is not None and not leaf.declared and node.id not in lowerer.values and not leaf.node.shape
        known = lowerer.is_known(node.id) or node.id in lowerer.open_shapes.counts or not lowerer.leaves_allowed
        if free or not known:
            raise OpenCount(node.id, without_value(node.id, node.span).with_source(lowerer.source))


def reads_entries(syntax: Comprehension) -> bool:
    """Whether entries of arrays are read at positions that depend on the variables."""
    variables = {clause.target.id for clause in syntax.clauses}
    if any(clause.rows is not None for clause in syntax.clauses):
        return True
    read = [item for node in nodes_of(syntax.item) if isinstance(node, Subscript) for item in node.items]
    return any(not variables.isdisjoint(names_in(item)) for item in read)


def has_many(lowerer: Lowerer, syntax: Comprehension) -> bool:
    """Whether the first clause has many iterations."""
    bounds = syntax.clauses[0].bounds
    return length(range_of(lowerer, bounds, [evaluate(lowerer, bound) for bound in bounds])) >= FEWEST


class Nest:
    """The clauses of a comprehension inside each other; `iterations` is the number of those so far."""

    def __init__(self, lowerer: Lowerer, syntax: Comprehension) -> None:
        self.lowerer = lowerer
        self.syntax = syntax
        self.iterations = 1

    def value(self, reduction: str) -> Any:
        """The value of the comprehension."""
        lowerer, syntax = self.lowerer, self.syntax
        if reduction == "mean" and self.is_masked():
            total, count = (self.reduced(0, "sum", item) for item in (self.item, lambda: lowerer.builder.constant(1)))
            return div(*together(total, count))
        if reduction:
            return self.reduced(0, reduction, self.item)
        if len(syntax.clauses) > 1 or syntax.clauses[0].conditions:
            raise Untraceable
        items = ScriptList([], syntax.span)
        items.extend(lowerer, self.stacked(0, "", self.item))
        return items

    def is_masked(self) -> bool:
        """Whether some combinations of the variables are left out."""
        variables: set[str] = set()
        for clause in self.syntax.clauses:
            ends = {name for bound in clause.bounds for name in names_in(bound)}
            if clause.conditions or not variables.isdisjoint(ends):
                return True
            variables.add(clause.target.id)
        return False

    def item(self) -> Node:
        """The item in an iteration of all clauses."""
        return number(self.lowerer, evaluate(self.lowerer, self.syntax.item), self.syntax.item)

    def reduced(self, level: int, reduction: str, item: Callable[[], Node]) -> Node:
        """The reduction over the clauses from this one on."""
        lowerer = self.lowerer
        stacked = self.stacked(level, reduction, item)
        if not stacked.shape[0]:
            if reduction in ("mean", "max", "min"):
                raise Untraceable
            return lowerer.builder.constant(LEFT_OUT[reduction], stacked.shape[1:])
        if lowerer.traces and reduction == "sum" and stacked.primitive is mul and len(stacked.shape) == 1:
            if all(factor.primitive is not broadcast and factor.constant is None for factor in stacked.args):
                product: Node = matmul_call(*stacked.args)  # no array of all products where it is lifted again
                return product
        axis = {"axis": lowerer.builder.constant(0)}
        return number(lowerer, lowerer.call_function(reduction, [stacked], axis, self.syntax))

    def stacked(self, level: int, reduction: str, item: Callable[[], Node]) -> Node:
        """The values of all iterations of a clause; what is left out of a reduction changes nothing in it."""
        lowerer, builder, clause = self.lowerer, self.lowerer.builder, self.syntax.clauses[level]
        local = lowerer.local
        assert local is not None
        masks: list[Node] = []
        if clause.rows is None:
            bounds = [evaluate(lowerer, bound) for bound in clause.bounds]
            numbers, ends = self.range_of(clause, bounds)
            if not numbers:
                return builder.constant(0, (0,))
            trace = Vectorized(lowerer, clause, length(numbers))
            local[clause.target.id] = variable = number_of_iteration(builder, numbers, trace.index)
            masks = [builder.call(name, variable, end) for name, end in ends]
        else:
            x = number(lowerer, plain(lowerer, evaluate(lowerer, clause.rows)), clause.rows)
            if not x.shape or clause.target.id in lowerer.targets:
                raise Untraceable
            trace = Vectorized(lowerer, clause, x.shape[0])
            local[clause.target.id] = trace.row(lowerer, x)
        self.iterations *= trace.count
        if trace.count == 0:
            return builder.constant(0, (0,))
        if trace.count > MOST_ENTRIES and not lowerer.open_shapes.symbolic:
            raise Untraceable
        lowerer.traces.append(trace)
        try:
            for test in clause.conditions:
                condition = truth(lowerer, plain(lowerer, evaluate(lowerer, test)))
                if condition.shape:
                    raise Untraceable
                masks.append(condition)
            more = level + 1 < len(self.syntax.clauses)
            value = self.reduced(level + 1, reduction, item) if more else item()
            for mask in masks[::-1]:
                value = where(*together(mask, value, builder.constant(LEFT_OUT[reduction])))
        finally:
            lowerer.traces.pop()
            lowerer.open_shapes.reached(list(trace.reaches.values()))
        if trace.count < trace.whole:
            raise Untraceable
        return trace.lift(lowerer, value)

    def range_of(self, clause: Clause, bounds: Sequence[Any]) -> tuple[range, list[tuple[str, Node]]]:
        """The numbers that a variable takes in any iteration of the clauses before, and what else bounds it."""
        lowerer = self.lowerer
        nodes = [number(lowerer, bound, syntax) for bound, syntax in zip(bounds, clause.bounds, strict=True)]
        forms = [affine(lowerer, node, clause.span) for node in nodes]
        if all(form is not None and form.keys() <= {None} for form in forms):
            known = [lowerer.builder.constant(form.get(None, 0)) for form in forms if form is not None]
            return range_of(lowerer, clause.bounds, known), []
        if len(forms) > 2 or None in forms:
            raise Untraceable
        ends, masks = [0, 0], []
        for place, (node, form) in enumerate(zip(nodes, forms, strict=True), start=2 - len(forms)):
            low, high = extent(lowerer, form or {})
            ends[place] = high if place else low
            if form is not None and not form.keys() <= {None}:
                masks.append((("greater_equal", "less")[place], node))
        return range(*ends), masks


def extent(lowerer: Lowerer, form: dict[Node | None, Any]) -> tuple[int, int]:
    """The least and the largest value of a sum of numbers of iterations."""
    low = high = form.get(None, 0)
    for trace in lowerer.traces:
        last = form.get(trace.index, 0) * (trace.count - 1)
        low, high = low + min(last, 0), high + max(last, 0)
    if type(low) is not int or type(high) is not int:
        raise Untraceable
    return low, high


class Vectorized(TracedIteration):
    """An iteration of a clause. `stacks` are the values in all iterations that a leaf of it stands for."""

    __slots__ = ("clause", "reaches", "reading", "stacks", "whole")

    def __init__(self, lowerer: Lowerer, clause: Clause, count: int) -> None:
        super().__init__(lowerer, count)
        self.whole = count
        self.clause = clause
        self.stacks: dict[Node, Node] = {}
        self.reaches: dict[tuple[str, int, int], Reach] = {}
        self.reading = ""  # the array of which an entry is read, as the script has it

    def owns(self, leaf: Node) -> bool:
        return leaf is self.index or leaf in self.stacks

    def lift(self, lowerer: Lowerer, node: Node) -> Node:
        """A value in all iterations; ends the trace where an operation is in the way."""
        builder, leaves = lowerer.builder, self.leaves([node])
        values = {leaf: self.stacks[leaf] for leaf in leaves if leaf is not self.index}
        if self.index in leaves or not leaves:
            assert arange.definition is not None
            values[self.index] = result_value(lowerer, arange.definition(self.count))
        most = WITHOUT_LIMIT if lowerer.open_shapes.symbolic else MOST_ENTRIES
        stacked = lifted(builder, node, values, every=True, most=most)
        if stacked is None:
            raise Untraceable
        return stacked

    def raised_to(self, lowerer: Lowerer, exponent: Node) -> None:
        """A few powers with whole exponents are written out, so that they are whole powers."""
        few = self.count < FEWEST and not lowerer.open_shapes.symbolic
        if few and self.depends(exponent) and not self._moves(lowerer, exponent):
            raise Untraceable

    def _moves(self, lowerer: Lowerer, node: Node) -> bool:
        return moves(lowerer, node) or any(
            moves(lowerer, self.stacks[leaf]) for leaf in self.leaves([node]) if leaf in self.stacks
        )

    def differentiate(self, lowerer: Lowerer, output: Node, target: Node) -> None:
        read = [self.stacks[leaf] for leaf in self.leaves([output]) if leaf in self.stacks]
        if self.owns(target) or target in reachable(read):
            raise Untraceable

    # --- entries of arrays --------------------------------------------------------------------------------------

    def entry(self, lowerer: Lowerer, x: Node, items: list[Any], syntax: Subscript) -> Node:
        for trace in lowerer.traces:
            if isinstance(trace, Vectorized):
                trace.reading = unparse(syntax.value)
        return super().entry(lowerer, x, items, syntax)

    def row(self, lowerer: Lowerer, x: Node) -> Node:
        """The entry of x in this iteration, of the first axis."""
        return self._leaf(lowerer, x) if not self.depends(x) else index(lowerer, x, [positions_of(self.index)], None)

    def _leaf(self, lowerer: Lowerer, stack: Node) -> Node:
        """The leaf that stands for a part of a stack."""
        known = next((leaf for leaf, own in self.stacks.items() if own is stack), None)
        if known is None:
            known = lowerer.builder.fresh_leaf(Type(stack.type.kind, stack.shape[1:]))
            self.stacks[known] = stack
        return known

    def part(self, lowerer: Lowerer, x: Node, items: list[Any], span: Span | None) -> Node:
        moving = [at for at, item in enumerate(items) if _is_number(item) and self.depends(item)]
        if not self.depends(x) and not moving and not any(self.depends(item) for item in items if _is_node(item)):
            return selected(lowerer, self.outer, x, items, span)
        if self.depends(x) or any(_is_node(item) and item.shape for item in items):
            return index(lowerer, x, [positions_of(item) if _is_number(item) else item for item in items], span)
        positions = {at: self._positions_of(lowerer, x, items, at, span) for at in moving}
        counted = [at for at in moving if positions[at] is not None]
        others = [at for at in moving if positions[at] is None]
        if counted and others:  # z[i, labels[i]]: a row, and an entry of that
            rows = [slice(None) if at in others else item for at, item in enumerate(items)]
            left = [at for at, item in enumerate(items) if at in others or item is None or isinstance(item, slice)]
            rest = [items[at] if at in others else slice(None) for at in left]
            return self.part(lowerer, self.part(lowerer, x, rows, span), rest, span)
        if others:
            return self._leaf(lowerer, self._at_data(lowerer, x, items, others, span))
        return self._leaf(lowerer, self._at_ranges(lowerer, x, items, positions, span))

    def _positions_of(self, lowerer: Lowerer, x: Node, items: list[Any], at: int, span: Span | None) -> range | None:
        """The positions of an item in all iterations, if they are the same in iterations around this one."""
        form = affine(lowerer, items[at], span)
        if form is None:
            lowerer.reads_positions = True
            return None
        axis = sum(item is not None for item in items[:at])
        if axis >= x.type.rank:
            message = f"`{visible(self.reading)}` has {x.type.rank} axes, and {axis + 1} positions are read"
            raise error("GC305", message, span)
        low, high = extent(lowerer, form)
        size = x.shape[axis]
        end = self.clause.bounds[0 if len(self.clause.bounds) == 1 else 1]
        whole = any(name in lowerer.open_shapes.counts for name in names_in(end)) or (
            self.clause.span.line in lowerer.source.mathematics and isinstance(end, Call)  # \\sum_i: over all entries
        )
        reach = Reach(self.clause.target.id, self.reading, axis, size, high + 1, whole, span)
        known = self.reaches.get((self.reading, axis, size))
        if known is None or known.end < reach.end:
            self.reaches[self.reading, axis, size] = reach
        if low < 0:
            raise Untraceable  # from the end of the axis
        a, b = form.get(self.index, 0), form.get(None, 0)
        own = form.keys() <= {self.index, None} and type(a) is int and type(b) is int
        return range(b, b + a * self.count, a) if own else None

    def _at_data(self, lowerer: Lowerer, x: Node, items: list[Any], others: list[int], span: Span | None) -> Node:
        """The entries of all iterations at positions that are numbers of the script."""
        chosen = [self.lift(lowerer, positions_of(item)) if at in others else item for at, item in enumerate(items)]
        fixed = [
            positions_of(item) if at not in others and _is_number(item) else item for at, item in enumerate(chosen)
        ]
        stacked = index(lowerer, x, fixed, span)
        ints = [at for at, item in enumerate(items) if not (item is None or isinstance(item, slice))]
        return _first(stacked, ints[0] if ints == list(range(ints[0], ints[-1] + 1)) else 0)

    def _at_ranges(self, lowerer: Lowerer, x: Node, items: list[Any], positions: dict[int, Any], span: Any) -> Node:
        """The entries of all iterations as parts of the array."""
        axes = [at for at, item in enumerate(items) if item is None or isinstance(item, slice) or at in positions]
        sliced = list(items)
        for at, own in positions.items():
            axis = sum(item is not None for item in items[:at])
            if max(own[0], own[-1]) >= x.shape[axis]:  # the axis is made longer, and the script lowered again
                if not (lowerer.open_shapes.counts or lowerer.open_shapes.symbolic):
                    raise Untraceable
                entry = [0 if at in positions else item for at, item in enumerate(items)]
                sample = selected(lowerer, self.outer, x, entry, span)
                return lowerer.builder.fresh_leaf(Type(x.type.kind, (self.count, *sample.shape)))
            stop = own[-1] + (1 if own.step > 0 else -1)
            sliced[at] = slice(own[0], None if stop < 0 else stop, own.step)
        stacked = selected(lowerer, self.outer, x, sliced, span)
        places = [axes.index(at) for at in positions]
        rank = len(stacked.shape)
        while len(places) > 1:  # A[i, i] is a diagonal
            first, second = places[:2]
            kept = [axis for axis in range(rank) if axis not in (first, second)]
            stacked = diagonal(permuted(stacked, tuple([axis - rank for axis in (*kept, first, second)])))
            rank -= 1
            places = [rank - 1, *[kept.index(axis) for axis in places[2:]]]
        return _first(stacked, places[0])


def _is_node(item: Any) -> bool:
    return isinstance(item, Node)


def _is_number(item: Any) -> bool:
    return isinstance(item, Node) and not item.shape


def _first(x: Node, axis: int) -> Node:
    """x with an axis in front of the others."""
    rank = len(x.shape)
    order = (axis, *[own for own in range(rank) if own != axis])
    moved: Node = permuted(x, tuple([own - rank for own in order]))
    return moved
