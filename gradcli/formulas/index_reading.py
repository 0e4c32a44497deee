"""A computation graph read entry by entry into index notation.

What only the engine writes is read as what it stands for: a shift that cancels is 0, a mask that guards against a zero
is true, an internal operation is what its declaration says in `closed`. A formula that is read here holds where the
program is smooth; callers have to confirm it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import Index, affine, difference, moved, parts_of_position
from gradcli.formulas.index_terms import (
    COMPARISONS,
    EIGENVECTORS,
    ONE,
    ONE_HOT,
    TRUTHS,
    ZERO,
    Delta,
    EntrywiseCall,
    FreshIndices,
    InputEntry,
    Irrational,
    Less,
    Literal,
    NoFormula,
    Ordinal,
    TooLong,
    Whole,
    add,
    before,
    free,
    free_of,
    key,
    number,
    ordinal,
    over,
    over_all,
    power,
    scaled,
    single,
    times,
    value_of,
    within_limits,
)
from gradcli.formulas.matrix_rules import AT_ZERO
from gradcli.graph.loop import written_nodes
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader
from gradcli.primitives.arithmetic import div
from gradcli.primitives.movement import reshape, unslice
from gradcli.primitives.steps import tie_step
from gradcli.primitives.triangles import triu

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_terms import Sum
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

    At = tuple[Index | int, ...]
    Rule = Generator[tuple[Node, tuple[Position, ...]], Sum, Sum]

FEW = 9  # entries of an array that is written as a list, factors of a product that are written one by one
MOST_READ = 4000  # nodes that are read for one formula, again for each place that is fixed in them
STEPS = "its derivative is a sequence of steps"
PRODUCTS = {"sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "square": Fraction(2)}  # powers under other names


class _Frame:
    """A node that is being read; `asked` are the readings that it needs next."""

    __slots__ = ("asked", "key", "own", "rule")

    def __init__(self, key: Any, own: At, rule: Rule) -> None:
        self.key = key
        self.own = own
        self.rule = rule
        self.asked: tuple[Node, tuple[Position, ...]] | None = None


class Reader:
    """Reads nodes of one graph. The builder must be open: definitions are written out with it.

    `called` are nodes with names of their own, beside the leaves.
    """

    def __init__(self, called: Mapping[Node, str] | None = None, names: FreshIndices | None = None) -> None:
        self.names = names or FreshIndices()
        self.called = dict(called or {})
        self.known: dict[Any, tuple[At, Sum]] = {}
        self.written: dict[Node, Node | None] = {}  # definitions
        self.data: dict[str, Any] = {}
        self.shapes: dict[str, Shape] = {}  # of inputs and nodes with names
        self.decimals = False  # whether numbers are written as decimals

    def entry(self, node: Node, at: tuple[Position, ...]) -> Sum:
        """The entry of a node at these indices; raises NoFormula where index notation does not write it."""
        if _key(node, at) in self.known:
            return self._placed(node, at)
        stack = [self._frame(node, at)]
        answer: Sum | None = None
        while stack:
            frame = stack[-1]
            try:
                asked = next(frame.rule) if answer is None else frame.rule.send(answer)
            except NoFormula as reason:
                reason.span = reason.span or frame.key[0].span
                raise
            except StopIteration as end:
                read: Sum = end.value
                within_limits(read)
                self.known[frame.key] = frame.own, read
                stack.pop()
                if stack:
                    waiting = stack[-1].asked
                    assert waiting is not None
                    answer = self._placed(*waiting)
                continue
            frame.asked = asked
            if _key(*asked) in self.known:
                answer = self._placed(*asked)
            else:
                if len(self.known) + len(stack) > MOST_READ:
                    raise TooLong("it is too long to be read")
                stack.append(self._frame(*asked))
                answer = None
        return self._placed(node, at)

    def _frame(self, node: Node, at: tuple[Position, ...]) -> _Frame:
        own = tuple([i if isinstance(i, int) else self.names.index(n) for i, n in zip(at, node.shape, strict=True)])
        return _Frame(_key(node, at), own, self._rule(node, own))

    def _placed(self, node: Node, at: tuple[Position, ...]) -> Sum:
        own, total = self.known[_key(node, at)]
        return self.names.put(total, {i: j for i, j in zip(own, at, strict=True) if not isinstance(i, int)})

    # --- rules: what an entry of an operation is, in entries of its operands --------------------------------------

    def _rule(self, node: Node, at: At) -> Rule:
        primitive = node.primitive
        name = primitive.name
        if node in self.called or primitive is LEAF or primitive in (CONSTANT, DATA):
            return self._input(node, at)
        if node.builder.vocabulary.get(name) is not primitive:  # a function with a rule by hand is its value
            return self._same(node, at)
        if name in RULES:
            return RULES[name](self, node, at)
        if (
            primitive.closed is not None
            or primitive.kind == "composite"
            or (primitive.internal and primitive.definition)
        ):
            return self._definition(node, at)
        if primitive.internal:
            return refused(STEPS)
        if primitive.pointwise:
            return self._call(node, at)
        return self._whole(node, at)

    def _input(self, node: Node, at: At) -> Rule:
        yield from ()
        if node in self.called or node.primitive is LEAF:
            name = self.called[node] if node in self.called else node.params["name"]
            self.shapes[name] = node.shape
            return single(InputEntry(name, at, node.params.get("symmetric", False)))
        if node.primitive is DATA:
            digest = node.params["digest"]
            self.data[digest] = node.builder.data[digest]
            if len(node.shape) == 1 and node.shape[0] > FEW and [*self.data[digest].flat] == [*range(node.shape[0])]:
                return ordinal(at[0])
            return single(Literal(digest, at))
        value = node.params["value"]
        if isinstance(value, str):
            if value in ("pi", "e"):
                return single(Irrational(value))
            raise NoFormula(f"it contains {value}")
        if not isinstance(value, int) and value.denominator % 5 == 0:
            self.decimals = True
        return number(value)

    def _operands(self, node: Node, at: At) -> Generator[tuple[Node, tuple[Position, ...]], Sum, list[Sum]]:
        """The entries of all operands at the same place."""
        entries = []
        for arg in node.args:
            entries.append((yield arg, at))
        return entries

    def _same(self, node: Node, at: At) -> Rule:
        return (yield node.args[0], at)

    def _add(self, node: Node, at: At) -> Rule:
        *left, last = yield from self._operands(node, at)
        last = last if node.primitive.name == "add" else scaled(last, -1)
        return add(*left, last) if left else last

    def _product(self, node: Node, at: At) -> Rule:
        left, right = yield from self._operands(node, at)
        return times(left, power(right, -1) if node.primitive is div else right)

    def _power(self, node: Node, at: At) -> Rule:
        base = yield node.args[0], at
        name = node.primitive.name
        if name == "power":
            return power(base, node.params["n"])
        if name in PRODUCTS:
            return power(base, PRODUCTS[name])
        exponent = yield node.args[1], at
        value = value_of(exponent)
        if value is None and key(base) == key(single(Irrational("e"))):
            return single(EntrywiseCall("exp", (), (exponent,)))
        return single(EntrywiseCall("pow", (), (base, exponent))) if value is None else power(base, value)

    def _hypot(self, node: Node, at: At) -> Rule:
        left, right = yield from self._operands(node, at)
        return power(add(power(left, 2), power(right, 2)), Fraction(1, 2))

    def _call(self, node: Node, at: At) -> Rule:
        args = yield from self._operands(node, at)
        if args == [ZERO] and node.primitive.name in AT_ZERO:
            return AT_ZERO[node.primitive.name]
        if args == [single(Irrational("e"))] and node.primitive.name == "log":
            return ONE
        if args == [number(-1)] and node.primitive.name == "acos":  # as definitions write it
            return single(Irrational("pi"))
        return single(EntrywiseCall(node.primitive.name, tuple(node.params.items()), tuple(args)))

    def _comparison(self, node: Node, at: At) -> Rule:
        """Truth values are 1 and 0. What is compared with 0 for equality is taken to differ from it."""
        left, right = yield from self._operands(node, at)
        name = node.primitive.name
        if (places := order_of(name, left, right)) is not None:
            return places
        if name in ("equal", "not_equal") and not (left and right):
            inner = left or right
            differs = inner if not inner or getattr(_only(inner), "name", "") in TRUTHS or is_order(inner) else ONE
            return differs if name == "not_equal" else negated(differs)
        if name == "greater" and not right and getattr(_only(left), "name", "") == "relu":
            left = _only(left).args[0]
        return single(EntrywiseCall(name, (), (left, right)))

    def _larger(self, node: Node, at: At) -> Rule:
        """The larger or smaller of two numbers, or the share of one in that: of two that are one formula 1/2."""
        left, right = yield from self._operands(node, at)
        if key(left) == key(right):
            return number(Fraction(1, 2)) if node.primitive is tie_step else left
        return (yield from self._definition(node, at) if node.primitive.closed else self._call(node, at))

    def _connective(self, node: Node, at: At) -> Rule:
        name = node.primitive.name
        args = yield from self._operands(node, at)
        if name == "not":
            return negated(args[0])
        deciding = number(0 if name == "and" else 1)  # the value that decides alone
        rest = [arg for arg in args if value_of(arg) is None]
        if name == "and" and deciding not in args and all(map(is_order, rest)):
            whole: Sum = ONE
            for arg in rest:
                whole = times(whole, arg, entries=False)
            return whole
        opposite = {key(negated(arg)) for arg in rest}
        if deciding in args or any(key(arg) in opposite for arg in rest):  # a condition and its opposite
            return deciding
        if len(rest) < 2:
            return rest[0] if rest else negated(deciding)
        return single(EntrywiseCall(name, (), tuple(rest)))

    def _where(self, node: Node, at: At) -> Rule:
        condition = yield node.args[0], at
        value = value_of(condition)
        if value is not None:
            return (yield node.args[1 if value else 2], at)
        chosen = yield node.args[1], at
        other = yield node.args[2], at
        if is_order(condition) and (not other or is_order(negated(condition))):
            return add(limited(condition, chosen), limited(negated(condition), other) if other else ZERO)
        if chosen == ONE and not other:
            return condition
        bases = [base for base, _ in chosen[0].factors] if len(chosen) == 1 and not other else []
        zero = [base.args[0] for base in bases if getattr(base, "name", "") == "where" and not base.args[2]]
        if key(condition) in map(key, [*zero, *map(single, bases)]):
            return chosen  # where(c, where(c, x, 0), 0), where(c, c*x, 0)
        return single(EntrywiseCall("where", (), (condition, chosen, other)))

    def _sum(self, node: Node, at: At) -> Rule:
        inner, bound = self._lane(node, at)
        return over_all((yield node.args[0], inner), bound, self.names)

    def _lane(self, node: Node, at: At) -> tuple[At, At]:
        """The positions in the operand that an entry of a reduction reads, and those of them that it runs over."""
        shape = node.args[0].shape
        inner, bound = list(at), []
        for axis in sorted(axis % len(shape) for axis in node.params["axis"]):
            bound.append(0 if shape[axis] == 1 else self.names.index(shape[axis]))
            inner.insert(axis, bound[-1])
        return tuple(inner), tuple(bound)

    def _matmul(self, node: Node, at: At) -> Rule:
        size = node.args[0].shape[-1]
        index = self.names.index(size)
        left = yield node.args[0], (*at[:-1], index)
        right = yield node.args[1], (*at[:-2], index, at[-1])
        return over(times(left, right, entries=False), index, self.names)

    def _permute(self, node: Node, at: At) -> Rule:
        places = sorted(range(len(at)), key=lambda place: node.params["axes"][place] % len(at))
        return (yield node.args[0], tuple([at[place] for place in places]))

    def _broadcast(self, node: Node, at: At) -> Rule:
        inner = [0 if n == 1 else i for n, i in zip(node.args[0].shape, at, strict=True)]
        return (yield node.args[0], tuple(inner))

    def _slice(self, node: Node, at: At) -> Rule:
        (x,) = node.args
        if is_diagonal(node):
            return (yield x.args[0], (at[0], at[0]))
        parts = zip(at, node.params["start"], node.params["step"], node.shape, x.shape, strict=True)
        return (yield x, tuple([self._part(*part) for part in parts]))

    def _unslice(self, node: Node, at: At) -> Rule:
        return (yield from self._put(node.args[0], at, node.params["start"], node.params["step"], node.shape))

    def _concat(self, node: Node, at: At) -> Rule:
        axis = node.params["axis"] % len(at)
        parts, start = [], 0
        for arg in node.args:
            starts = [start if own == axis else 0 for own in range(len(at))]
            parts.append((yield from self._put(arg, at, starts, [1] * len(at), node.shape)))
            start += arg.shape[axis]
        return add(*parts)

    def _part(self, position: Position, start: int, step: int, count: int, whole: int) -> Position:
        """A position in a part of an axis, as one of the axis."""
        return affine(start, ((position, step),))

    def _put(self, x: Node, at: At, starts: Sequence[int], steps: Sequence[int], whole: Shape) -> Rule:
        """An array as part of a larger one that is 0 elsewhere."""
        inner = tuple([0 if n == 1 else self.names.index(n) for n in x.shape])
        entry = yield x, inner
        for i, *part in zip(at, inner, starts, steps, x.shape, whole, strict=True):
            entry = times(entry, equal_places(i, self._part(*part)), entries=False)
        return over_all(entry, inner, self.names)

    def _reshape(self, node: Node, at: At) -> Rule:
        (x,) = node.args
        inner, outer = x.shape, node.shape
        if [n for n in inner if n != 1] == [n for n in outer if n != 1]:
            left = [i for n, i in zip(outer, at, strict=True) if n != 1]
            return (yield x, tuple([0 if n == 1 else left.pop(0) for n in inner]))
        half = len(outer) // 2
        if len(inner) == 1 and outer[:half] == outer[half:] and x.primitive is unslice:
            flat, rows = x.args[0], prod(outer[:half])  # a diagonal; with four axes that of a Kronecker product
            if (x.params["start"], x.params["step"], flat.shape) == ((0,), (rows + 1,), (rows,)):
                row = at[0] if half == 1 else self.names.index(rows)
                entry = yield flat, (row,)
                if half == 1 or row not in free(entry):
                    for pair in zip(at[:half], at[half:], strict=True):
                        entry = times(entry, single(Delta(*pair)))
                    return self.names.put(entry, {})
        if self.names.symbols:
            raise NoFormula("it mixes axes by a reshape")
        own = tuple([0 if n == 1 else self.names.index(n) for n in inner])
        entry = yield x, own
        for ours, theirs in groups_of(inner, outer):
            position = raveled([own[axis] for axis in ours], [inner[axis] for axis in ours])
            place = raveled([at[axis] for axis in theirs], [outer[axis] for axis in theirs])
            entry = times(entry, equal_places(position, place), entries=False)
        return over_all(entry, own, self.names)

    def _picked(self, node: Node, at: At) -> Rule:
        """Entries at positions that are known or labels, or entries added up there."""
        x, *labels = node.args
        axis = node.params["axis"] % len(at)
        takes = node.primitive.name.startswith("take")
        chosen = node.params.get("indices", ())
        matrix = x.args[0] if takes and x.primitive is reshape and len(x.args[0].shape) == 2 else None
        if matrix is not None and len(at) == 1 and _one_for_each_row(chosen, matrix.shape):
            place, width = self.names.index(matrix.shape[1]), matrix.shape[1]
            unit = listed_places([position % width for position in chosen], at[0], place, width)
            return over_all(times((yield matrix, (at[0], place)), unit, entries=False), [place], self.names)
        count = labels[0].shape[axis] if labels else len(chosen)
        row = at[axis] if takes else 0 if count == 1 else self.names.index(count)
        place = self.names.index(x.shape[axis]) if takes else at[axis]
        size = x.shape[axis] if takes else node.params["size"]
        unit = listed_places(chosen, row, place, size) if chosen else ZERO
        if labels:
            unit = yield from self._one_hot(labels[0], (*at[:axis], row, *at[axis + 1 :]), place, size)
        entry = times((yield x, (*at[:axis], place if takes else row, *at[axis + 1 :])), unit, entries=False)
        return over_all(entry, [place if takes else row], self.names)

    def _one_hot(self, labels: Node, at: At, place: Position, size: int) -> Rule:
        """1 where a position is the label, else 0."""
        own = tuple([0 if n == 1 else self.names.index(n) for n in labels.shape])
        chosen = yield labels, own
        value = value_of(chosen)
        if value is not None:
            return equal_places(place, int(value) % size)
        rows = free(chosen)
        outer = tuple([at[own.index(i)] for i in rows])
        position = position_of(chosen)
        if position is not None:
            return equal_places(place, moved(position, dict(zip(rows, outer, strict=True))))
        base = chosen[0].factors[0][0]
        if isinstance(base, Literal) and chosen == single(base) and base.at == rows and len(rows) == 1:
            return listed_places([int(label) % size for label in self.data[base.digest].flat], outer[0], place, size)
        return single(Whole(ONE_HOT, (("size", size),), ((rows, chosen),), (*outer, place)))

    def _definition(self, node: Node, at: At) -> Rule:
        written = self._in_others(node)
        if written is None:
            raise NoFormula(STEPS)
        return (yield written, at)

    def _in_others(self, node: Node) -> Node | None:
        """An operation in others; None where there is no such form, as for derivatives by the order of a function."""
        if node not in self.written:
            if is_reader(node) and written_nodes([node]) > MOST_READ:
                raise NoFormula("it is a long loop")
            closed = node.primitive.closed
            self.written[node] = node.builder.expanded(node) if closed is None else closed(*node.args, **node.params)
        return self.written[node]

    def _beside_diagonal(self, node: Node, at: At) -> Rule:
        """Entries on one side of a diagonal: i + k <= j of triu."""
        place = affine(node.params["k"], [(at[0], 1)])
        left, right = (place, at[1]) if node.primitive is triu else (at[1], place)
        return limited(before(left, affine(1, [(right, 1)])), (yield node.args[0], at))

    def _whole(self, node: Node, at: At) -> Rule:
        args = []
        for arg in node.args:
            if arg.type.kind != "float":
                raise NoFormula("it reads positions")
            own = tuple([self.names.index(n) for n in arg.shape])
            args.append((own, (yield arg, own)))
        whole = Whole(node.primitive.name, tuple(node.params.items()), tuple(args), at)
        return _linear(whole) if node.primitive.kind == "linear" else single(whole)

    def _prod(self, node: Node, at: At) -> Rule:
        (arg,) = node.args
        if arg.type.size <= FEW:
            return (yield from self._definition(node, at))
        own = tuple([self.names.index(n) for n in arg.shape])
        axes = tuple([axis % len(own) for axis in node.params["axis"]])
        return single(Whole("prod", (("axis", axes),), ((own, (yield arg, own)),), at))

    def _exponential_along(self, node: Node, at: At) -> Rule:
        """The derivative of a matrix exponential along a multiple of the identity, which is that multiple of it."""
        x, direction = node.args
        own = tuple([self.names.index(n) for n in direction.shape])
        entry = yield direction, own
        term = entry[0] if len(entry) == 1 else None
        along = [factor for factor in term.factors if isinstance(factor[0], Delta)] if term else []
        if term is None or len(along) != 1 or set(free_of(along[0][0])) != set(own):
            raise NoFormula(STEPS)
        rest = (term._replace(factors=tuple([factor for factor in term.factors if factor is not along[0]])),)
        if set(own) & set(free(rest)):
            raise NoFormula(STEPS)
        return times(rest, single(Whole("expm", (), ((own, (yield x, own)),), at)))


def position_of(total: Sum) -> Position | None:
    """The position that a sum of positions and whole numbers is; None for other sums, and for numbers alone."""
    position: Position = 0
    for term in total:
        base, exponent = term.factors[0] if len(term.factors) == 1 else (None, 1)
        counts = isinstance(base, Ordinal) and exponent == 1
        if term.bound or term.coefficient.denominator > 1 or not (counts or not term.factors):
            return None
        step = int(term.coefficient)
        position = affine(step if base is None else 0, [(position, 1), *([] if base is None else [(base.at[0], step)])])
    return position if any(term.factors for term in total) else None


def order_of(name: str, left: Sum, right: Sum) -> Sum | None:
    """A comparison of the positions of two entries as 1 or 0; None for one of other numbers."""
    place, back = (position_of(add(x, scaled(y, -1))) for x, y in ((left, right), (right, left)))
    if place is None or back is None or abs(parts_of_position(place).start) > FEW:  # which may be more than a size
        return None
    if name in ("equal", "not_equal"):
        unit = equal_places(place, 0)
        return unit if name == "equal" else add(before(place, 0), before(back, 0))
    if name in ("less", "less_equal"):
        return before(place, int(name == "less_equal"))
    return before(back, int(name == "greater_equal"))


def limited(places: Sum, total: Sum) -> Sum:
    """A sum where the order of positions is so, and 0 elsewhere."""
    return add(*[times((place,), total, entries=False) for place in places])


def is_order(truth: Sum) -> bool:
    """Whether a truth value is about positions alone."""
    return all(isinstance(base, (Less, Delta)) for term in truth for base, _ in term.factors) and all(
        term.coefficient == 1 and term.factors and not term.bound for term in truth
    )


def negated(truth: Sum) -> Sum:
    """The opposite of a truth value."""
    base = _only(truth)
    if isinstance(base, Less):
        return before(base.right, affine(1, [(base.left, 1)]))
    if isinstance(base, Delta):
        return add(before(*base), before(base.right, base.left))
    value = value_of(truth)
    return single(EntrywiseCall("not", (), (truth,))) if value is None else ZERO if value else ONE


def _linear(whole: Whole) -> Sum:
    """A linear function of an array, with the number in front of the array before it."""
    ((own, argument), *rest) = whole.args
    if rest or len(argument) != 1:
        return single(whole) if argument else ZERO
    number_before = argument[0].coefficient
    return scaled(single(whole._replace(args=((own, scaled(argument, 1 / number_before)),))), number_before)


def refused(reason: str) -> Rule:
    yield from ()
    raise NoFormula(reason)


def _key(node: Node, at: tuple[Position, ...]) -> Any:
    return node, tuple([i if isinstance(i, int) else None for i in at]) if at else ()


def equal_places(position: Position, other: Position) -> Sum:
    """1 where two positions are equal, else 0."""
    gap = difference(position, other)
    return single(Delta(position, other)) if not isinstance(gap, int) else ZERO if gap else ONE


def listed_places(chosen: Sequence[int], row: Position, place: Position, size: int) -> Sum:
    """1 where a position is the one that is listed for a row, else 0."""
    steps = {after - before for before, after in pairwise(chosen)} or {1}
    if isinstance(row, int):
        return equal_places(place, chosen[row])
    if len(steps) == 1:
        return equal_places(place, affine(chosen[0], [(row, step) for step in steps]))
    return single(Whole(ONE_HOT, (("positions", tuple(chosen)), ("size", size)), (), (row, place)))


def _one_for_each_row(chosen: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether flat positions are one in each row of a matrix, as in `x[arange(n), labels]`."""
    rows, width = shape
    return len(chosen) == rows and all(position // width == row for row, position in enumerate(chosen))


def raveled(at: Sequence[Position], shape: Sequence[int]) -> Position:
    """The position in a flattened array."""
    position: Position = 0
    for i, n in zip(at, shape, strict=True):
        position = affine(0, ((position, n), (i, 1)))
    return position


def groups_of(inner: Shape, outer: Shape) -> Iterator[tuple[range, range]]:
    """Neighbouring axes of two shapes of as many entries that a reshape makes of each other."""
    i = j = 0
    while i < len(inner) or j < len(outer):
        first, second = i, j
        i, j = i + 1, j + 1
        while (ours := prod(inner[first:i])) != (theirs := prod(outer[second:j])):
            i, j = (i + 1, j) if ours < theirs else (i, j + 1)
        yield range(first, min(i, len(inner))), range(second, min(j, len(outer)))


def is_diagonal(node: Node) -> bool:
    """Whether a slice reads the diagonal of a square matrix, which is flattened."""
    (x,) = node.args
    shape = x.args[0].shape if x.primitive is reshape else ()
    if len(shape) != 2 or shape[0] != shape[1]:
        return False
    return (node.params["start"], node.params["step"], node.shape) == ((0,), (shape[0] + 1,), shape[:1])


def _only(total: Sum) -> Any:
    """The base that a sum is; None for other sums."""
    base = total[0].factors[0][0] if len(total) == 1 and total[0].factors else None
    return base if total == single(base) else None


RULES: dict[str, Callable[[Reader, Node, At], Rule]] = {
    **dict.fromkeys(("named", "cast", "detach", "ste"), Reader._same),
    **dict.fromkeys(("add", "sub", "neg"), Reader._add),
    **dict.fromkeys(("mul", "div"), Reader._product),
    **dict.fromkeys(("power", "pow", *PRODUCTS), Reader._power),
    "hypot": Reader._hypot,
    **dict.fromkeys(COMPARISONS, Reader._comparison),
    **dict.fromkeys(("maximum", "minimum", "tie_step"), Reader._larger),
    **dict.fromkeys(("and", "or", "not"), Reader._connective),
    "where": Reader._where,
    "sum": Reader._sum,
    "matmul": Reader._matmul,
    "permute": Reader._permute,
    "broadcast": Reader._broadcast,
    "reshape": Reader._reshape,
    "slice": Reader._slice,
    "unslice": Reader._unslice,
    "concat": Reader._concat,
    **dict.fromkeys(("take_along", "put_along", "take_static", "put_static"), Reader._picked),
    "prod": Reader._prod,
    **dict.fromkeys(("max", "min", EIGENVECTORS), Reader._whole),
    **dict.fromkeys(("svd_u", "svd_v"), lambda reader, node, at: refused("it reads singular vectors one by one")),
    "frechet": Reader._exponential_along,
    **dict.fromkeys(("triu", "tril"), Reader._beside_diagonal),
}
