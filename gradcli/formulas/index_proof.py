"""Proofs for all sizes: a claim and the derivative that it is about as sums of products in index notation.

Both are read from graphs whose sizes are primes that stand for symbols. The derivative comes from a table of its own,
as `d x[k] / d x[i] = delta[k, i]`; no derivative rule is read. What is left of the difference once it is multiplied out
is 0 for all sizes from 1 on, wherever both sides have a value, if no term is left.

A step holds for every size, or it is not taken: no axis is cut, and a number that depends on sizes is a product of
symbols. What is not in the tables stays an unknown function, which nothing is known of.

A comparison says on which side of 0 a difference is (`normal_form`). The largest entry is sum(s[i]*x[i]), with an s
that is 1 at one place and 0 elsewhere, and sort(x) is P@x for a permutation matrix P. Sides, s and P are locally
constant, so their derivatives are 0 except where branches meet. What a proof needs beside the identity are assumptions
about nodes.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gradcli.formulas.index_positions import Index, affine, difference, parts_of_position, span
from gradcli.formulas.index_reading import (
    Reader,
    equal_places,
    is_diagonal,
    is_order,
    limited,
    listed_places,
    order_of,
    refused,
)
from gradcli.formulas.index_terms import (
    COMPARISONS,
    EIGENVECTORS,
    ONE,
    ZERO,
    BracketedSum,
    Delta,
    EntrywiseCall,
    FreshIndices,
    InputEntry,
    Irrational,
    NoFormula,
    Term,
    Whole,
    add,
    bases_in,
    free,
    is_truth,
    key,
    lanes_of,
    merged,
    multiplied,
    number,
    over,
    over_all,
    power,
    scaled,
    single,
    times,
)
from gradcli.formulas.matrix_rules import joined_triangles
from gradcli.formulas.normal_form import (
    HALF,
    continuous,
    differs,
    expanded,
    exponential,
    form,
    function,
    lowest,
    passes,
    pattern,
    undecided,
)
from gradcli.graph.building import building
from gradcli.graph.domain import REAL
from gradcli.graph.node import CONSTANT, DATA, LEAF, reachable
from gradcli.primitives.comparison import cast, equal
from gradcli.primitives.composites import softmax
from gradcli.primitives.extremes import is_max, is_min, max_, min_
from gradcli.primitives.movement import broadcast, reshape, slice_
from gradcli.primitives.ordering import argsort
from gradcli.primitives.positions import put_along
from gradcli.primitives.powers import sqrt
from gradcli.primitives.recurrence import cumsum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_reading import At, Rule
    from gradcli.formulas.index_terms import Sum
    from gradcli.graph.node import Node

    Assumed = dict[Node, Literal["apart", "kink", "defined"]]

MOST_PARTS = 40  # in which a claim about an array is proved
MOST_CUT = 4  # entries of an axis of any size that a slice may leave out
TRIANGLE = "ones up to the diagonal"  # the matrix whose product a cumulative sum is: of each size the same leaf


class SymbolicNames(FreshIndices):
    """Indices whose sizes are made of primes that stand for symbols; `axes` are the sizes that there were."""

    def __init__(self, symbols: Mapping[int, str]) -> None:
        super().__init__(symbols)
        self.axes: dict[int, str] = {}
        ends = range(-MOST_CUT, MOST_CUT + 1)
        self.near = {size + more: f"({name} + {more})" for size, name in symbols.items() for more in ends}

    def index(self, size: int) -> Index:
        if size not in self.axes:
            self.axes[size] = str(size) if size in self.near else key(self.in_sizes(Fraction(size)))
        return super().index(size)

    def at_every_size(self, start: int, count: int, whole: int) -> bool:
        """Whether a slice has so many entries at every size: x[:3] has fewer where x is shorter."""
        fixed = whole < min(self.near, default=whole + 1)
        return fixed or count in (whole, *self.near) or (start, count) == (0, 1)

    def in_symbols(self, text: str) -> str:
        """A text that contains sizes, with their symbols."""
        return re.sub(r"(?<![#\d])\d+", lambda match: self.near.get(int(match[0]), match[0]), text)

    def repeated(self, term: Term, index: Index) -> Term:
        size, *more = self.in_sizes(Fraction(index.size)) or (Term(Fraction(0), (), ()),)
        if more:
            raise NoFormula("it computes with the size of part of an array")
        return merged(term.coefficient * size.coefficient, (*term.factors, *size.factors), term.bound)

    def in_sizes(self, value: Fraction) -> Sum:
        """A number that operations made of sizes, as the 1/n of an average and the 1/(n - 1) of a variance."""
        product = ONE
        for size, symbol in self.symbols.items():
            whole = single(Irrational(f"size {symbol}"))
            for factor, meaning in ((size, whole), ((size - 1) // 2, scaled(add(whole, number(-1)), HALF))):
                for part, exponent in ((value.numerator, 1), (value.denominator, -1)):
                    while part and part % factor == 0:
                        part //= factor
                        value /= Fraction(factor) ** exponent
                        product = times(product, power(meaning, exponent))
        if not self.near.keys().isdisjoint((value.numerator, value.denominator)):
            raise NoFormula("it computes with the size of part of an array")
        return scaled(product, value)


class IndexIdentity(NamedTuple):
    """Two readings of one claim: `text` is the same at every size if the program is, `difference` is to vanish.

    `smooth` are what is differentiated and its derivative, if the claim is about one.
    """

    text: str
    difference: Sum
    reader: SymbolicReader
    smooth: tuple[Sum, ...]

    def proof(self) -> Assumed | None:
        """What is assumed, if no term of the difference is left then, in each part of the array if need be."""
        names = self.reader.names
        pending, count = [self.difference], 0
        ties: list[Sum] = []
        while pending:
            remainder = pending.pop()
            count += 1
            needed = undecided(remainder, names)
            if needed is not None:
                ties += needed
                continue
            ways = [] if names.symbols else [parts_at_deltas(remainder, index, names) for index in free(remainder)]
            parts = next(filter(None, ways), [])
            if not parts or count + len(pending) + len(parts) > MOST_PARTS:
                return None
            pending += [names.put(remainder, change) for change in parts]
        return self.reader.assumptions(ties, not all(continuous(part, names) for part in self.smooth))


def identity(output: Node, target: Node | None, right: Node, symbols: Mapping[int, str]) -> IndexIdentity:
    """The claim that `right` is the gradient of `output` with respect to `target`, or without one equals `output`.

    A target that is computed is read as an input of its own. `symbols` names the sizes, primes p of which (p - 1)/2 is
    prime too; leaves of these names stand for the sizes. Raises NoFormula where something is not read for all sizes.
    """
    names = SymbolicNames(symbols)
    leaf = "target of the claim" if target is None or target.name is None else target.name
    reader = SymbolicReader(names, {} if target is None else {target: leaf})
    with building(right.builder, reachable([output, right])):
        axes = tuple([0 if n == 1 else names.index(n) for n in right.shape])
        left = expanded(reader.entry(output, axes if target is None else ()), names)
        other = written_out(reader.entry(right, axes), names)
        text = names.in_symbols(f"{key(left)} == {key(other)} for {', '.join(names.axes.values())}")
        derivative = left if target is None else EntryDerivative(leaf, axes, names).of(left)
        smooth = () if target is None else (left, derivative)
        difference = add(written_out(derivative, names), scaled(other, -1))
    return IndexIdentity(text, difference, reader, smooth)


def same_form(node: Node, other: Node, called: Mapping[Node, str]) -> bool:
    """Whether two nodes have one normal form, and so are equal wherever both are smooth; builders must be open.

    `called` are nodes with names of their own, beside the leaves. `other` may be an array that broadcasts to `node`.
    False proves nothing.
    """
    sizes = zip(other.shape[::-1], node.shape[::-1], strict=False)
    if len(other.shape) > len(node.shape) or any(n not in (1, m) for n, m in sizes):
        return False
    reader = SymbolicReader(SymbolicNames({}), called)
    axes = tuple([0 if n == 1 else reader.names.index(n) for n in node.shape])
    last = axes[len(axes) - len(other.shape) :]
    try:
        right = reader.entry(other, tuple([0 if n == 1 else i for n, i in zip(other.shape, last, strict=True)]))
        return undecided(add(reader.entry(node, axes), scaled(right, -1)), reader.names) is not None
    except NoFormula:
        return False


def undefined(nodes: Sequence[Node]) -> Assumed:
    """The assumption that nodes have values, and what they are computed from."""
    order, reader = reachable(nodes), SymbolicReader(SymbolicNames({}), {})
    with building(nodes[0].builder, order):
        return {node: "defined" for node in order if reader.may_have_no_value(node)}


def parts_at_deltas(total: Sum, index: Index, names: FreshIndices) -> list[dict[Index, Position]]:
    """An axis cut where deltas begin and end, as changes of its index; nothing where it is not to be cut."""
    ends, period = {0, index.size}, 1
    for delta in [base for base in bases_in(total) if isinstance(base, Delta)]:
        own = parts_of_position(difference(*delta))
        others = [part for part in own.parts if part[0] != index]
        if len(others) == len(own.parts) or abs(dict(own.parts)[index]) != 1:
            continue
        low, high = span(
            affine(-dict(own.parts)[index] * own.start, [(i, -dict(own.parts)[index] * n) for i, n in others])
        )
        ends |= {end for end in (low, high + 1) if 0 < end < index.size}
        period = lcm(period, *[abs(n) for _, n in others])
    parts: list[dict[Index, Position]] = []
    for low, high in pairwise(sorted(ends)) if period <= MOST_PARTS else ():
        for start in range(low, min(low + period, high)):
            count = len(range(start, high, period))
            parts.append({index: start if count == 1 else affine(start, ((names.index(count), period),))})
    return parts if len(parts) > 1 else []


def written_out(total: Sum, names: FreshIndices) -> Sum:
    """A sum that is multiplied out, with triangles read along columns, or joined, wherever that is possible."""
    return expanded(joined_triangles(turned(expanded(total, names), names), names), names)


def turned(total: Sum, names: FreshIndices) -> Sum:
    """A sum that reads triangles along their rows: summed over rows, t[k, i] is 1 + delta[k, i] - t[i, k]."""
    for term in total:
        for place, (base, exponent) in enumerate(term.factors):
            if isinstance(base, InputEntry) and base.name == TRIANGLE and exponent == 1:
                row, column = base.at
                if row in term.bound and column not in term.bound:
                    rest = merged(term.coefficient, (*term.factors[:place], *term.factors[place + 1 :]), term.bound)
                    other = scaled(single(InputEntry(TRIANGLE, (column, row))), -1)
                    parts = multiplied((rest,), add(ONE, single(Delta(row, column)), other), names)
                    return turned(add(*[(part,) for part in total if part is not term], parts), names)
    return total


# --- reading --------------------------------------------------------------------------------------------------------


class SymbolicReader(Reader):
    """Reads what holds at every size; raises NoFormula for the rest."""

    def __init__(self, names: SymbolicNames, called: Mapping[Node, str]) -> None:
        super().__init__(called, names)
        self.names: SymbolicNames = names
        self.parts: set[bool] = set()  # whether those of axes of any size are single entries
        self.branches: dict[Node, tuple[Sum, ...]] = {}  # what compares numbers, with what it reads
        self.single: dict[Node, tuple[Sum, At]] = {}  # of which one entry is taken to be the best: an entry, its lane

    def _rule(self, node: Node, at: At) -> Rule:
        name = node.primitive.name
        if node in self.called or node.primitive is LEAF or node.primitive is CONSTANT or name in PLAIN:
            return super()._rule(node, at)
        if node.builder.vocabulary.get(name) is not node.primitive:  # a function with a rule by hand is its value
            return self._same(node, at)
        if name in OWN:
            return OWN[name](self, node, at)
        if name in REFUSED or name == EIGENVECTORS:
            return refused(f"it reads `{name}`")
        composite = node.primitive.kind == "composite" and not node.primitive.internal
        composite = composite or (node.primitive.closed is not None and self._in_others(node) is not None)
        if composite and not (node.primitive.pointwise and form(name) is not None):
            return self._definition(node, at)
        return self._call(node, at) if node.primitive.pointwise else self._whole(node, at)

    def _input(self, node: Node, at: At) -> Rule:
        yield from ()
        if node.primitive is LEAF and not node.shape and node.params["name"] in self.names.symbols.values():
            return single(Irrational(f"size {node.params['name']}"))
        if node.primitive is CONSTANT and not isinstance(node.params["value"], str):
            return self.names.in_sizes(Fraction(node.params["value"]))
        if node.primitive is DATA and len(node.shape) == 2:
            labels = _labels_of([*node.builder.data[node.params["digest"]].flat], node.shape[1])
            if labels:
                return listed_places(labels, at[0], at[1], node.shape[1])
        return (yield from super()._input(node, at))

    def _cast(self, node: Node, at: At) -> Rule:
        (arg,) = node.args
        if node.params["kind"] == "float" and arg.type.kind == "int" and arg.args:
            raise NoFormula("it reads whole numbers")
        return (yield arg, at)

    def assumptions(self, ties: Sequence[Sum], meets: bool) -> Assumed:
        """What is assumed about the nodes that were read.

        "apart": what a node compares is not equal, or the entry that it chooses is the only one; "kink": the same where
        that leaves out a set of measure 0, on which branches meet; "defined": the node has a value. `ties` are compared
        numbers that must not be 0; `meets`: branches meet in the claim with different derivatives.
        """
        assumed: Assumed = {node: "kink" for node in self.branches if meets}
        assumed |= {node: "defined" for node, _ in [*self.known] if self.may_have_no_value(node)}
        for x in ties:
            node = self._comparing(x)
            if node is None or passes(x, self.names):
                for branch in self.branches if node is None else [node]:
                    assumed.setdefault(branch, "kink")
            else:
                assumed[node] = "apart"
        for node, (entry, lane) in self.single.items():
            fresh = {index: self.names.index(index.size) for index in lane if isinstance(index, Index)}
            gap = expanded(add(entry, scaled(self.names.put(entry, fresh), -1)), self.names)
            assumed[node] = "kink" if differs(gap, self.names) else "apart"
        return assumed

    def _comparing(self, x: Sum) -> Node | None:
        """The node that compares a number with 0; None where it is not seen."""
        for node, args in self.branches.items():
            read = expanded(single(EntrywiseCall(node.primitive.name, (), args)), self.names) if args else ZERO
            sides = [base.args[0] for base in bases_in(read) if isinstance(base, EntrywiseCall) and base.args]
            if pattern(x) in map(pattern, sides):
                return node
        return None

    def may_have_no_value(self, node: Node) -> bool:
        """Whether a node divides by what may be 0, or leaves its domain, as far as the form of its operands shows."""
        name = node.primitive.name
        operand, least = LEAST.get(name, (0, None))
        if name == "power":
            n = Fraction(node.params["n"])
            least = int(n < 0) if n < 0 or n.denominator > 1 else -1
        if least is None:
            return name in POLES or any(domain != REAL for domain in node.primitive.domain)
        arg = node.args[operand]
        try:
            entry = self.entry(arg, tuple([self.names.index(n) for n in arg.shape]))
            bounds = [lowest(scaled(entry, factor), self.names) for factor in ((1, -1) if operand else (1,))]
        except NoFormula:
            return True
        return not any(least < 0 or (bound is not None and bound >= least) for bound in bounds)

    def _call(self, node: Node, at: At) -> Rule:
        read = yield from super()._call(node, at)
        if node.primitive.kinks or node.primitive.compares:
            self.branches[node] = read[0].factors[0][0].args
        return read

    def _comparison(self, node: Node, at: At) -> Rule:
        """A comparison of positions is no branch."""
        left, right = yield from self._operands(node, at)
        places = order_of(node.primitive.name, left, right)
        return places if places is not None else (yield from self._call(node, at))

    def _where(self, node: Node, at: At) -> Rule:
        """A choice; `where(u == 0, 0, sqrt(u))` is sqrt(u). What positions choose is multiplied by 1 or 0."""
        condition, chosen, other = node.args
        if other.constant == 0 and is_order((yield condition, at)):
            return limited((yield condition, at), (yield chosen, at))
        if condition.primitive is equal and chosen.constant == 0 and condition.args[1].constant == 0:
            if other.primitive is sqrt and other.args[0] is condition.args[0]:
                return (yield other, at)
        return (yield from self._call(node, at))

    def _equal(self, node: Node, at: At) -> Rule:
        """`x == max(x)` is what chooses the largest entry, if there is only one."""
        for x, best in (node.args, node.args[::-1]) if node.primitive is equal else ():
            best = best.args[0] if best.primitive is broadcast else best
            shape = best.shape
            while best.primitive is reshape:
                best = best.args[0]
            if best.primitive in (max_, min_) and best.args[0] is x:
                axes = tuple([axis % len(at) for axis in best.params["axis"]])
                if shape == tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)]):
                    return (yield from self._one_best(node, best.primitive.name, x, at, axes))
        return (yield from self._comparison(node, at))

    def _largest(self, node: Node, at: At) -> Rule:
        axes = (node.params["axis"] % len(at),)
        name = node.primitive.name.removeprefix("is_")
        return (yield from self._one_best(node, name, node.args[0], at, axes))

    def _one_best(self, node: Node, name: str, x: Node, at: At, axes: tuple[int, ...]) -> Rule:
        chosen = yield from self._chosen(name, x, at, axes)
        self.single[node] = (yield x, at), tuple([at[axis] for axis in axes])
        return chosen

    def _sum(self, node: Node, at: At) -> Rule:
        """A sum; of what chooses the largest entry of each lane it is 1."""
        (chosen,) = node.args
        chosen = chosen.args[0] if chosen.primitive is cast else chosen
        if chosen.primitive in (is_max, is_min):
            axes = [axis % len(chosen.shape) for axis in node.params["axis"]]
            if axes == [chosen.params["axis"] % len(chosen.shape)]:
                yield chosen, tuple([self.names.index(n) for n in chosen.shape])
                return ONE
        return (yield from super()._rule(node, at))

    # --- the largest entry, and entries in order -----------------------------------------------------------------

    def _chosen(self, name: str, x: Node, at: At, *lanes: tuple[int, ...]) -> Rule:
        """1 at one place of each lane of `at`, which are axes of it, and 0 at the others."""
        own = tuple([self.names.index(n) for n in x.shape])
        sizes = (*x.shape, *[x.shape[lanes[0][0]]] * (len(at) - len(x.shape)))  # a permutation has one axis more
        sized = tuple([tuple([(axis, sizes[axis]) for axis in lane]) for lane in lanes])
        return single(Whole(name, (("lanes", sized),), ((own, (yield x, own)),), at))

    def _extreme(self, node: Node, at: At) -> Rule:
        (x,) = node.args
        self.branches[node] = ()
        inner, bound = self._lane(node, at)
        axes = tuple([axis % len(inner) for axis in node.params["axis"]])
        chosen = yield from self._chosen(node.primitive.name, x, inner, axes)
        return over_all(times(chosen, (yield x, inner)), bound, self.names)

    def _permuted(self, x: Node, by: Node, at: At, axis: int, inverse: bool = False) -> Rule:
        """The entries of an array in the order of another one, or in the order of the ranks there.

        The other one may be a vector, whose order is that of each lane.
        """
        place = self.names.index(x.shape[axis])
        other = (*at[:axis], place, *at[axis + 1 :])
        rows, column = (other, at[axis]) if inverse else (at, place)
        rows, lane = ((rows[axis],), 0) if len(by.shape) == 1 else (rows, axis)
        chosen = yield from self._chosen("sort", by, (*rows, column), (lane,), (len(rows),))
        return over(times(chosen, (yield x, other)), place, self.names)

    def _sort(self, node: Node, at: At) -> Rule:
        self.branches[node] = ()
        return self._permuted(node.args[0], node.args[0], at, node.params["axis"] % len(at))

    # --- entries chosen by positions -----------------------------------------------------------------------------

    def _along(self, node: Node, at: At) -> Rule:
        """Entries in the order of an array, or in its inverse; entries at labels."""
        x, order = node.args
        axis = node.params["axis"] % len(at)
        rows = order.args[0] if order.primitive is broadcast else None
        if rows is not None and rows.primitive is reshape and rows.args[0].shape == (rows.shape[axis],):
            order = rows.args[0]  # A[argsort(x)]
        lane, sorts = axis if len(order.shape) == len(at) else 0, []
        while order.primitive in (cast, argsort):
            sorts += [order] if order.primitive is argsort else []
            order = order.args[0]
        if not sorts:
            return self._picked(node, at)
        if len(sorts) > 2 or any(sort.params["axis"] % len(sort.shape) != lane for sort in sorts):
            return refused("it reads positions")
        self.branches[node] = ()
        return self._permuted(x, order, at, axis, (len(sorts) == 1) is (node.primitive is put_along))

    def _norm(self, node: Node, at: At) -> Rule:
        inner, bound = self._lane(node, at)
        squares = power((yield node.args[0], inner), 2)
        return power(over_all(squares, bound, self.names), HALF)

    def _logsumexp(self, node: Node, at: At) -> Rule:
        inner, bound = self._lane(node, at)
        return single(EntrywiseCall("log", (), (self._exponentials((yield node.args[0], inner), bound),)))

    def _softmax(self, node: Node, at: At) -> Rule:
        """An exponential over their sum, or the logarithm of that."""
        axes = [axis % len(at) for axis in node.params["axis"]]
        inner, bound = self._lane(node, tuple([i for axis, i in enumerate(at) if axis not in axes]))
        total = self._exponentials((yield node.args[0], inner), bound)
        own = yield node.args[0], at
        if node.primitive is softmax:
            return times(single(EntrywiseCall("exp", (), (own,))), power(total, -1))
        return add(own, scaled(single(EntrywiseCall("log", (), (total,))), -1))

    def _solve(self, node: Node, at: At) -> Rule:
        matrix, right = node.args
        if len(matrix.shape) != 2 or len(right.shape) != 2:
            raise NoFormula("it has more than two axes")
        own = tuple([self.names.index(n) for n in matrix.shape])
        inner = self.names.index(matrix.shape[1])
        inverse = single(Whole("inv", (), ((own, (yield matrix, own)),), (at[0], inner)))
        return over(times(inverse, (yield right, (inner, at[1])), entries=False), inner, self.names)

    def _cumsum(self, node: Node, at: At) -> Rule:
        return self._triangle(node.args[0], at, node.params["axis"] % len(at), False)

    def _slice(self, node: Node, at: At) -> Rule:
        """Part of an array; a cumulative sum from the end of an array on is a sum of its own."""
        (x,) = node.args
        axis = reversed_axis(node)
        if axis is not None and x.primitive is cumsum and x.params["axis"] % len(at) == axis:
            if reversed_axis(x.args[0]) == axis:
                return self._triangle(x.args[0].args[0], at, axis, True)
        parts = zip(node.params["start"], node.shape, x.shape, strict=True)
        if not is_diagonal(node) and not all(self.names.at_every_size(*part) for part in parts):
            return refused("it reads part of an array")
        return super()._slice(node, at)

    def _part(self, position: Position, start: int, step: int, count: int, whole: int) -> Position:
        """A position in a part of an axis, as one of the axis.

        Which of two parts begins first may depend on the size of the axis if one of them is a single entry.
        """
        if self.names.symbols and (start, step, count) != (0, 1, whole):
            self.parts.add(count == 1)
            if len(self.parts) > 1:
                raise NoFormula("it reads single entries and parts of arrays")
        return super()._part(position, start, step, count, whole)

    def _triangle(self, arg: Node, at: At, axis: int, from_end: bool) -> Rule:
        if arg.shape[axis] == 1:
            return (yield arg, at)
        index = self.names.index(arg.shape[axis])
        entry = yield arg, (*at[:axis], index, *at[axis + 1 :])
        place = (index, at[axis]) if from_end else (at[axis], index)
        return over(times(single(InputEntry(TRIANGLE, place)), entry), index, self.names)

    def _exponentials(self, entry: Sum, bound: At) -> Sum:
        return over_all(exponential(entry), bound, self.names)


def _labels_of(numbers: Sequence[Any], width: int) -> list[int]:
    """Where the one stands in each row of a matrix that is 0 elsewhere; empty for any other matrix."""
    rows = [numbers[i : i + width] for i in range(0, len(numbers), width)]
    return [row.index(1) for row in rows] if all(sorted(row) == [*[0] * (width - 1), 1] for row in rows) else []


def reversed_axis(node: Node) -> int | None:
    """The one axis along which a node reads its operand from the end, where it reads all of it."""
    if node.primitive is not slice_ or node.shape != node.args[0].shape:
        return None
    axes = [axis for axis, step in enumerate(node.params["step"]) if step == -1]
    return axes[0] if len(axes) == 1 else None


PLAIN = frozenset(
    ["named", "add", "sub", "neg", "mul", "div", "power", "pow", "sqrt", "rsqrt", "square", "matmul", "prod"]
    + ["permute", "broadcast", "data", "reshape", "unslice", "concat", "take_static", "put_static", "triu", "tril"]
)
REFUSED = frozenset(["detach", "ste", "frechet"])
# operands with bounds: 1 where it has to be positive, 0 where it must not be negative
LEAST = {"div": (1, 1), "mod": (1, 1), "sqrt": (0, 0)} | dict.fromkeys(("rsqrt", "log", "log2", "log10", "pow"), (0, 1))
# functions with poles, or defined for some matrices only
POLES = frozenset(
    ["tan", "reciprocal", "gamma", "lgamma", "digamma", "polygamma", "zeta", "beta", "betaln", "factorial"]
    + ["inv", "solve", "logdet", "logabsdet", "cholesky", "pinv"]
)
OWN: dict[str, Callable[[SymbolicReader, Node, At], Rule]] = {
    "cast": SymbolicReader._cast,
    "cumsum": SymbolicReader._cumsum,
    "slice": SymbolicReader._slice,
    "where": SymbolicReader._where,
    "norm": SymbolicReader._norm,
    "logsumexp": SymbolicReader._logsumexp,
    "softmax": SymbolicReader._softmax,
    "log_softmax": SymbolicReader._softmax,
    "solve": SymbolicReader._solve,
    **dict.fromkeys(COMPARISONS, SymbolicReader._comparison),
    **dict.fromkeys(("equal", "not_equal"), SymbolicReader._equal),
    **dict.fromkeys(("is_max", "is_min"), SymbolicReader._largest),
    "sort": SymbolicReader._sort,
    "sum": SymbolicReader._sum,
    **dict.fromkeys(("take_along", "put_along"), SymbolicReader._along),
    **dict.fromkeys(("max", "min"), SymbolicReader._extreme),
}


# --- the derivative -------------------------------------------------------------------------------------------------


class EntryDerivative:
    """Derivatives by one entry of a leaf, of sums that are multiplied out."""

    def __init__(self, leaf: str, at: At, names: FreshIndices) -> None:
        self.leaf = leaf
        self.at = at
        self.names = names

    def of(self, total: Sum) -> Sum:
        """The derivative of a sum, multiplied out."""
        parts = []
        for term in total:
            for place, (base, exponent) in enumerate(term.factors):
                rest = (*term.factors[:place], (base, exponent - 1), *term.factors[place + 1 :])
                left = (merged(term.coefficient * exponent, rest, term.bound),)
                parts.append(multiplied(left, self._base(base), self.names))
        return expanded(add(*parts), self.names)

    def _base(self, base: Any) -> Sum:
        if isinstance(base, InputEntry):
            return self._leaf(base)
        if isinstance(base, BracketedSum):
            return self.of(base.inside)
        if isinstance(base, EntrywiseCall):
            return self._call(base)
        return self._whole(base) if isinstance(base, Whole) else ZERO

    def _leaf(self, base: InputEntry) -> Sum:
        if base.name != self.leaf:
            return ZERO
        product = ONE
        for pair in zip(base.at, self.at, strict=True):
            product = times(product, equal_places(*pair), entries=False)
        return product

    def _call(self, base: EntrywiseCall) -> Sum:
        inner = [self.of(arg) for arg in base.args]
        if not any(inner) or is_truth(base):
            return ZERO
        if base.name == "pow":
            x, n = base.args
            by_base = multiplied(multiplied(n, power(x, -1), self.names), inner[0], self.names)
            by_exponent = multiplied(single(EntrywiseCall("log", (), (x,))), inner[1], self.names) if inner[1] else ZERO
            return multiplied(single(base), add(by_base, by_exponent), self.names)
        if base.name not in DERIVATIVES or base.params:
            raise NoFormula(f"it differentiates `{base.name}`")
        return multiplied(DERIVATIVES[base.name](*base.args), inner[0], self.names)

    def _whole(self, base: Whole) -> Sum:
        if lanes_of(base):
            return ZERO
        moved = []
        for own, arg in base.args:
            fresh = tuple([self.names.index(i.size) for i in own])
            moved.append((fresh, self.of(self.names.put(arg, dict(zip(own, fresh, strict=True))))))
        if not any(change for _, change in moved):
            return ZERO
        if base.name == "prod":
            return self._prod(base)
        if base.name not in ("inv", "det", "logdet", "logabsdet"):
            raise NoFormula(f"it differentiates `{base.name}`")
        (((row, column), change),) = moved
        if base.name == "inv":  # -inv(A) dA inv(A)
            above, below = base._replace(at=(base.at[0], row)), base._replace(at=(column, base.at[1]))
            slope = scaled(multiplied(single(above), multiplied(change, single(below), self.names), self.names), -1)
        else:  # sum(inv(A).T * dA), for a determinant times it
            slope = multiplied(single(Whole("inv", (), base.args, (column, row))), change, self.names)
            slope = multiplied(single(base), slope, self.names) if base.name == "det" else slope
        return over_all(slope, (row, column), self.names)

    def _prod(self, base: Whole) -> Sum:
        """The product times the sum of dx/x over its factors x."""
        ((own, arg),) = base.args
        ((_, axes),) = base.params
        left = iter(base.at)
        places = {i: self.names.index(i.size) if axis in axes else next(left) for axis, i in enumerate(own)}
        entry = self.names.put(arg, places)
        slope = multiplied(single(base), multiplied(power(entry, -1), self.of(entry), self.names), self.names)
        return over_all(slope, [places[own[axis]] for axis in axes], self.names)


DERIVATIVES: dict[str, Callable[[Sum], Sum]] = {  # of functions of one number that the forms below leave
    "exp": exponential,
    "log": lambda x: power(x, -1),
    "sin": function("cos"),
    "cos": lambda x: scaled(function("sin")(x), -1),
    "atan": lambda x: power(add(ONE, power(x, 2)), -1),
    "asin": lambda x: power(add(ONE, scaled(power(x, 2), -1)), -HALF),
    "acos": lambda x: scaled(power(add(ONE, scaled(power(x, 2), -1)), -HALF), -1),
    "lgamma": function("digamma"),
    "erf": lambda x: times(scaled(single(Irrational("pi"), -HALF), 2), exponential(scaled(power(x, 2), -1))),
}
