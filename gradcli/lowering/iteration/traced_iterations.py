"""Traces one iteration of a loop: what it may do with its number, and with names of the iteration before.

The number of the iteration is a leaf, so it may stand in arithmetic. An entry `x[i]` at a position that only the number
of the iteration decides is a leaf as well, a row: the loop is given all these entries as one array. A condition on the
number is settled as far as it keeps its answer; the trace then holds for so many iterations. Anything else that has to
be known while the script is lowered ends the trace, because it may differ from iteration to iteration.
"""

from __future__ import annotations

from gradcli.graph.exact import is_fraction, rational, whole_or_fraction
from gradcli.graph.node import CONSTANT, Node, reachable
from gradcli.graph.types import FLOAT
from gradcli.lowering.constructs.expressions import index, index_item
from gradcli.lowering.statics import Untraceable, exact_value, read_leaves, sign_of
from gradcli.primitives.arithmetic import add, div, mul, neg, sub
from gradcli.primitives.comparison import and_, not_, or_
from gradcli.primitives.movement import permute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.primitive import Primitive
    from gradcli.language.syntax import Subscript
    from gradcli.lowering.lowerer import Lowerer
    from gradcli.lowering.names import OuterIteration

    Affine = dict[Node | None, Any]  # factors of numbers of iterations, and under None what is added

MOST_COMPUTED = (
    100_000  # iterations of which a position or condition that is not linear in the iteration is computed one by one
)
MOST_GATHERED = 2**22  # entries of an array of rows that is not part of the array they come from


class VaryingPart:
    """An entry or part of an array that depends on the number of the iteration: `places` are the items that do."""

    __slots__ = ("items", "leaf", "places", "span", "x")

    def __init__(self, x: Node, items: list[Any], places: dict[int, Any], leaf: Node, span: Span | None) -> None:
        self.x = x
        self.items = items
        self.places = places
        self.leaf = leaf
        self.span = span


class TracedIteration:
    """An iteration on fresh leaves. `count` is the number of iterations that it stands for, at most."""

    __slots__ = ("_dependent", "carries", "count", "exponents", "first", "index", "outer", "rows", "times", "work")

    def __init__(self, lowerer: Lowerer, count: int) -> None:
        self.outer: OuterIteration | None = lowerer.traces[-1] if lowerer.traces else None
        self.count = count
        self.times: int = count * (self.outer.times if self.outer else 1)  # how often the iteration runs in all
        self.index = lowerer.builder.fresh_leaf(FLOAT)
        self.first = self.index.serial
        self.carries: dict[Node, Node] = {}  # the leaf of each carry and its value before the first iteration
        self.rows: dict[Any, VaryingPart] = {}
        self.exponents: list[list[Node]] = []  # carries of which one has to depend on what moves, in every iteration
        self.work = 0  # of loops inside
        self._dependent: dict[Node, bool] = {}

    # --- what depends on the iteration -------------------------------------------------------------------------

    def depends(self, node: Node) -> bool:
        """Whether a node depends on a leaf of this iteration."""
        if node.serial < self.first:
            return False
        known = self._dependent
        pending = [node]
        while pending:
            current = pending[-1]
            if current in known:
                pending.pop()
                continue
            waiting = [arg for arg in current.args if arg.serial >= self.first and arg not in known]
            if waiting:
                pending += waiting
                continue
            pending.pop()
            known[current] = self.owns(current) or any(known.get(arg, False) for arg in current.args)
        return known[node]

    def owns(self, leaf: Node) -> bool:
        """Whether this is a leaf of this iteration."""
        return leaf is self.index or leaf in self.carries or any(leaf is row.leaf for row in self.rows.values())

    def leaves(self, roots: Iterable[Node]) -> set[Node]:
        """The leaves of this iteration that some nodes depend on."""
        return {node for node in self.inside(roots) if not node.args}

    def inside(self, roots: Iterable[Node]) -> set[Node]:
        """The nodes of this iteration that some nodes depend on, its leaves included."""
        steps: set[Node] = set()
        pending = [root for root in roots if self.depends(root)]
        while pending:
            current = pending.pop()
            if current not in steps:
                steps.add(current)
                pending += [arg for arg in current.args if self.depends(arg)]
        return steps

    def row_of(self, leaf: Node) -> VaryingPart | None:
        """The row that a leaf stands for."""
        return next((row for row in self.rows.values() if row.leaf is leaf), None)

    # --- values that the number of the iteration decides -------------------------------------------------------------

    def linear(self, lowerer: Lowerer, node: Node, span: Span | None) -> tuple[Any, Any] | None:
        """a and b, if a node is a*iteration + b with exact numbers."""
        form = affine(lowerer, node, span)
        if form is None or not form.keys() <= {self.index, None}:
            return None
        return form.get(self.index, 0), form.get(None, 0)

    def sequence(self, lowerer: Lowerer, node: Node, span: Span | None) -> list[Any]:
        """The exact values of a node in all iterations; ends the trace where they depend on more than its number."""
        if self.count > MOST_COMPUTED:
            raise Untraceable
        inputs: dict[Node, Sequence[Any]] = {}
        for leaf in self.leaves([node]):
            row = self.row_of(leaf)
            if row is not None and not leaf.shape:
                inputs[leaf] = lowerer.static(self.stack(lowerer, row), span)
            elif leaf is self.index:
                inputs[leaf] = range(self.count)
            else:
                raise Untraceable
        order = sorted(self.inside([node]), key=lambda step: step.serial)
        fixed = {arg: lowerer.static(arg, span) for step in order for arg in step.args if not self.depends(arg)}
        results = []
        for iteration in range(self.count):
            known = {**fixed, **{leaf: rational(values[iteration], 1) for leaf, values in inputs.items()}}
            results.append(exact_value(node, _none_left, _none_left, span, known))
        return results

    def condition(self, lowerer: Lowerer, node: Node, span: Span) -> bool:
        """The answer of a condition in this iteration; the trace ends with the iteration in which it changes."""
        if node.primitive in (and_, or_, not_):
            answers = [lowerer.condition(arg, span) for arg in node.args]
            if node.primitive is not_:
                return not answers[0]
            return all(answers) if node.primitive is and_ else any(answers)
        if node.primitive.holds is not None:
            sides = [self.linear(lowerer, x, span) for x in node.args]
            if sides[0] is not None and sides[1] is not None:
                a, b = (left - right for left, right in zip(*sides, strict=True))
                return self._compared(node.primitive.holds, a, b)
        answers = self.sequence(lowerer, node, span)
        first = bool(answers[0])
        self.count = next((iteration for iteration, answer in enumerate(answers) if bool(answer) != first), self.count)
        return first

    def _compared(self, holds: Callable[[int], bool], a: Any, b: Any) -> bool:
        """Whether a*iteration + b compares so with 0 in the first iteration; the trace ends where this changes."""
        first = holds(sign_of(b))
        if a != 0:
            root = rational(-b, a)
            at = root.numerator // root.denominator  # where the sign changes
            iterations = [iteration for iteration in (at - 1, at, at + 1, at + 2) if 0 <= iteration < self.count]
            self.count = next(
                (iteration for iteration in iterations if holds(sign_of(a * iteration + b)) != first), self.count
            )
        return first

    # --- what other iterations may do otherwise ------------------------------------------------------------------

    def raised_to(self, lowerer: Lowerer, exponent: Node) -> None:
        """An exponent that stands for a power of floats here must do so in every iteration.

        It would be a whole power, were there nothing that moves in it. A carry moves in every iteration if it does in
        the first one and in the one behind any in which it does; `settled_exponents` looks at that in the end.
        """
        if not self.depends(exponent) or exponent.shape:
            return
        carries = []
        for leaf in self.leaves([exponent]):
            row = self.row_of(leaf)
            if leaf in self.carries:
                carries.append(leaf)
            elif row is not None and moves(lowerer, row.x):
                return
        if not moves(lowerer, exponent):
            self.exponents.append(carries)

    def settled_exponents(self, lowerer: Lowerer, nexts: Mapping[Node, Node | None]) -> None:
        """End the trace where an exponent may be a whole number in some iteration."""
        for carries in self.exponents:
            if not any(self._moves_on(lowerer, leaf, nexts.get(leaf)) for leaf in carries):
                raise Untraceable

    def _moves_on(self, lowerer: Lowerer, leaf: Node, after: Node | None) -> bool:
        if after is None or not moves(lowerer, self.carries[leaf]):
            return False
        return moves(lowerer, after) or leaf in self.leaves([after])

    def differentiate(self, lowerer: Lowerer, output: Node, target: Node) -> None:
        """End the trace where a derivative with respect to a variable would have to go through iterations before."""
        if self.owns(target):
            raise Untraceable
        if target.serial > self.first:
            return
        for leaf in self.leaves([output]):
            row = self.row_of(leaf)
            if leaf in self.carries or (row is not None and target in reachable([row.x])):
                raise Untraceable

    # --- entries of arrays --------------------------------------------------------------------------------------

    def entry(self, lowerer: Lowerer, x: Node, items: list[Any], syntax: Subscript) -> Node:
        """x[items], where numbers of iterations may stand among the items."""
        read = [
            item
            if isinstance(item, Node) and not item.shape and lowerer.traced(item)
            else index_item(lowerer, item, part)
            for item, part in zip(items, syntax.items, strict=True)
        ]
        return self.part(lowerer, x, read, syntax.span)

    def part(self, lowerer: Lowerer, x: Node, items: list[Any], span: Span | None) -> Node:
        moving = [
            at for at, item in enumerate(items) if isinstance(item, Node) and self.depends(item) and not item.shape
        ]
        if not moving:
            return selected(lowerer, self.outer, x, items, span)
        if self.depends(x) or any(isinstance(item, tuple) or _is_data(item) for item in items):
            raise Untraceable
        key = (x, *[("slice", item.start, item.stop, item.step) if isinstance(item, slice) else item for item in items])
        known = self.rows.get(key)
        if known is not None:
            return known.leaf
        places = {at: self._positions(lowerer, x, items, at, span) for at in moving}
        first = [places[at][0] if at in places else item for at, item in enumerate(items)]
        sample = selected(lowerer, self.outer, x, first, span)
        leaf = lowerer.builder.fresh_leaf(sample.type)
        self.rows[key] = VaryingPart(x, items, places, leaf, span)
        return leaf

    def _positions(self, lowerer: Lowerer, x: Node, items: list[Any], at: int, span: Span | None) -> Sequence[int]:
        """The positions of an item in all iterations; the trace ends at the first without such an entry."""
        axis = sum(item is not None for item in items[:at])
        if axis >= x.type.rank:
            raise Untraceable
        size = x.shape[axis]
        linear = self.linear(lowerer, items[at], span)
        if linear is not None:
            a, b = linear
            if type(a) is not int or type(b) is not int or not a:
                raise Untraceable
            positions: Sequence[Any] = range(b, b + a * self.count, a)
            outside = next((iteration for iteration in _leaving(a, b, size) if iteration < self.count), self.count)
        else:
            positions = self.sequence(lowerer, items[at], span)
            wrong = (iteration for iteration, p in enumerate(positions) if type(p) is not int or not -size <= p < size)
            outside = next(wrong, self.count)
        if not outside:
            raise Untraceable
        self.count = outside
        return positions

    def stack(self, lowerer: Lowerer, row: VaryingPart) -> Node:
        """The entries of all iterations along a new first axis."""
        chosen = {at: positions[: self.count] for at, positions in row.places.items()}
        (only, positions), *more = chosen.items()
        ints = [
            at for at, item in enumerate(row.items) if at in chosen or not (item is None or isinstance(item, slice))
        ]
        part = _as_slice(positions, row.x.shape[sum(item is not None for item in row.items[:only])])
        if more or part is None:
            before = ints[0] if ints == list(range(ints[0], ints[-1] + 1)) else 0
            if row.leaf.type.size * self.count > max(MOST_GATHERED, row.x.type.size):
                raise Untraceable
            items = [tuple(chosen[at]) if at in chosen else item for at, item in enumerate(row.items)]
        else:
            before = only - sum(at < only for at in ints)
            items = [part if at == only else item for at, item in enumerate(row.items)]
        stacked = selected(lowerer, self.outer, row.x, items, row.span)
        if not before:
            return stacked
        rank = stacked.type.rank
        axes = (before, *[axis for axis in range(rank) if axis != before])
        return permute(stacked, axes=tuple([axis - rank for axis in axes]))


def selected(lowerer: Lowerer, trace: OuterIteration | None, x: Node, items: list[Any], span: Span | None) -> Node:
    """x[items] in an iteration, or in none."""
    return index(lowerer, x, items, span) if trace is None else trace.part(lowerer, x, items, span)


def moves(lowerer: Lowerer, node: Node) -> bool:
    """Whether a node depends on a leaf of the script that is not const."""
    known = lowerer.leaves
    return any(leaf.params["name"] in known and not lowerer.is_const(leaf) for leaf in read_leaves(node))


def _is_number(item: Any) -> bool:
    return isinstance(item, Node) and not item.shape


def _is_data(item: Any) -> bool:
    return isinstance(item, Node) and bool(item.shape)


def _none_left(node: Node) -> Any:
    raise Untraceable


def affine(lowerer: Lowerer, node: Node, span: Span | None) -> Affine | None:
    """A node as a sum of numbers of iterations, each times an exact number, if it is one."""
    indices = {trace.index for trace in lowerer.traces}

    def is_computed(node: Node) -> bool:  # from numbers of iterations, or from sizes
        return lowerer.traced(node) or (lowerer.open_shapes.symbolic and bool(node.args) and not node.shape)

    steps, pending = {node}, [node]
    while pending:
        args = [arg for arg in pending.pop().args if arg not in steps and is_computed(arg)]
        steps.update(args)
        pending += args
    known: dict[Node, Affine | None] = {}
    for step in sorted(steps, key=lambda step: step.serial):
        if step in indices:
            known[step] = {step: 1}
        elif is_computed(step):
            operands = [known[arg] if arg in known else _fixed(lowerer, arg, span) for arg in step.args]
            known[step] = _combined(step.primitive, operands)
        if not lowerer.traced(step) and known.get(step) is None:
            known[step] = _fixed(lowerer, step, span)
    return known[node]


def _fixed(lowerer: Lowerer, node: Node, span: Span | None) -> Affine | None:
    """A value that is the same in every iteration."""
    if node.shape or node.type.kind == "bool":
        return None
    size = lowerer.symbol_size(node)
    if size is None and node.primitive is not CONSTANT and lowerer.moving_leaf(node) is not None:
        return None
    value = lowerer.static(node, span) if size is None else size
    return {None: value} if type(value) is int or is_fraction(value) else None


def _combined(operation: Primitive, operands: Sequence[Affine | None]) -> Affine | None:
    """What arithmetic makes of such sums."""
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands) or not known:
        return None
    x, *rest = known
    by: Any = -1
    if operation is neg:
        rest = [{}]
    elif len(rest) != 1:
        return None
    (y,) = rest
    if operation in (mul, div) and y.keys() <= {None}:
        by = y.get(None, 0)
        by = by if operation is mul else rational(1, by) if by else None
    elif operation is mul and x.keys() <= {None}:
        by, x = x.get(None, 0), y
    elif operation in (add, sub):
        sign = 1 if operation is add else -1
        total = {key: x.get(key, 0) + sign * y.get(key, 0) for key in (*x, *y)}
        return {key: whole_or_fraction(value) for key, value in total.items() if value or key is None}
    elif operation is not neg:
        return None
    return None if by is None else {key: whole_or_fraction(by * value) for key, value in x.items() if by}


def _leaving(a: int, b: int, size: int) -> list[int]:
    """The first iteration in which a*iteration + b is not a position of an axis, if there is one."""
    if not -size <= b < size:
        return [0]
    return [(size - b - 1) // a + 1 if a > 0 else (b + size) // -a + 1]


def _as_slice(positions: Sequence[int], size: int) -> slice | None:
    """The slice that has these positions, if there is one."""
    if not isinstance(positions, range) or (positions[0] < 0) != (positions[-1] < 0):
        return None
    wrapped = size if positions[0] < 0 else 0
    stop = positions.stop + wrapped
    return slice(positions.start + wrapped, stop if stop >= 0 else None, positions.step)
