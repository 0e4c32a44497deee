"""Gradients in index notation: the entry of a gradient with free indices k and l, as papers print it.

`[2*sum(A[i, k]*(...) for i in range(m)) for k in range(n)]`: a free index is the variable of a list, a bound one that
of a sum, and an order of positions is a condition. What needs whole arrays, an inverse or a softmax, is written as in
matrix notation, and one entry of it is taken.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from gradcli.formulas import matrix_of
from gradcli.formulas.index_positions import Index, affine, difference, parts_of_position
from gradcli.formulas.index_reading import Reader
from gradcli.formulas.index_terms import (
    ONE_HOT,
    BracketedSum,
    Delta,
    EntrywiseCall,
    Less,
    NoFormula,
    Ordinal,
    Term,
    Whole,
    free_of,
    ordinal,
    term_key,
)
from gradcli.formulas.matrix_rules import joined_triangles
from gradcli.formulas.matrix_text import MatrixWriter, Text
from gradcli.formulas.recognition import shortened
from gradcli.language import trees
from gradcli.language.syntax import Clause, Comprehension, Expression, Name
from gradcli.primitives.comparison import and_, not_equal
from gradcli.primitives.extremes import max_, min_
from gradcli.primitives.recurrence import prod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gradcli.formulas import JacobianRows
    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_terms import Factor, Sum
    from gradcli.formulas.matrix_text import Axes
    from gradcli.graph.node import Node

FREE, BOUND = "klpqijrstuvw", "ijrstuvwabcghmnpqxyz"  # letters of indices, in the order in which they are taken
APART = not_equal.name  # of two positions
REDUCED = (prod.name, max_.name, min_.name)  # functions of whole arrays that take a generator


def index_text(node: Node, sizes: Mapping[int, str], rows: JacobianRows | None, taken: Collection[str]) -> str:
    """The formula of a node in index notation; its builder must be open, and `taken` are no letters for indices."""
    reader = Reader()
    axes = tuple([reader.names.index(n) for n in node.shape])
    read = reader.entry(node, axes)
    if rows is not None:
        outer = tuple([reader.names.index(n) for n in rows.shape])
        read, axes = matrix_of(read, rows.name, outer, reader.names), (*outer, *axes)
        if len(axes) > 2:
            raise NoFormula("it has more than two axes")
    writer, texts = IndexWriter(reader, sizes, taken), []
    for total in (read, joined_triangles(read, reader.names)):
        texts.append(writer.text(writer.array(shortened(shortened(total, reader.names), reader.names), axes, FREE)))
    return min(texts, key=len)


class IndexWriter(MatrixWriter):
    """Writes an entry of a sum; `letters` are those of indices, also of sums beside it."""

    def __init__(self, reader: Reader, sizes: Mapping[int, str], taken: Collection[str]) -> None:
        super().__init__(reader, sizes)
        self.taken = frozenset(taken)
        self.letters: dict[Index, str] = {}
        self.whole = MatrixWriter(reader, sizes)

    def array(self, total: Sum, axes: Axes, letters: str) -> Expression:
        """All entries of a sum, as lists inside each other."""
        before = self.letters
        self._name(axes, letters)
        tree = self.sum(total, ()).tree
        for index in reversed(axes):
            tree = Comprehension(tree, (self._clause(index, []),), False, trees.NOWHERE)
        self.letters = before
        return tree

    def sum(self, total: Sum, axes: Axes, exact: bool = True) -> Text:
        """The entry of a sum; with axes it is an operand of a function of whole arrays."""
        if not axes:
            return self._sum(total, (), True)
        try:
            return self.whole.sum(total, axes)
        except NoFormula:
            return Text(self.array(total, axes, BOUND), axes)

    def _sum(self, total: Sum, axes: Axes, exact: bool) -> Text:
        return super()._sum(apart(total), axes, exact)

    def term(self, term: Term, axes: Axes) -> Text:
        bound = set(term.bound)
        conditions = [base for base, _ in term.factors if is_condition(base)]
        factors = [factor for factor in term.factors if factor[0] not in conditions]
        outside = [factor for factor in factors if bound.isdisjoint(free_of(factor[0]))]
        visible, parts = self.letters, []
        for group in groups(term):
            self._name(group, BOUND)
            parts.append(self._summed(group, visible, factors, conditions))
        self.letters = visible
        tree = self._multiplied(term.coefficient, outside, parts)
        fixed = [self._condition(base) for base in conditions if bound.isdisjoint(free_of(base))]
        if fixed:
            tree = trees.call("where", [trees.chain(and_.name, fixed), tree, trees.number(0)])
        return Text(tree)

    def _summed(
        self, group: Axes, visible: Iterable[Index], factors: Sequence[Factor], conditions: Sequence[Any]
    ) -> Expression:
        """The sum over bound indices that stand together."""
        body = self._multiplied(Fraction(1), [own for own in factors if not set(group).isdisjoint(free_of(own[0]))], [])
        clauses, seen = [], set(visible)
        left = [base for base in conditions if not set(group).isdisjoint(free_of(base))]
        for index in group:
            seen.add(index)
            tests = [base for base in left if seen.issuperset(free_of(base))]
            left = [base for base in left if base not in tests]
            clauses.append(self._clause(index, [self._condition(base) for base in tests]))
        return trees.call("sum", [Comprehension(body, tuple(clauses), True, trees.NOWHERE)])

    def _multiplied(self, coefficient: Fraction, factors: Iterable[Factor], parts: Sequence[Expression]) -> Expression:
        """A number times powers times sums: numbers first, denominators last."""
        _, front, under = self._counted_out(coefficient)
        ordered = sorted(factors, key=lambda factor: isinstance(factor[0], BracketedSum))
        above = [*front, *[self._power(base, exponent, ()) for base, exponent in ordered if exponent > 0], *parts]
        below = [*under, *[self._power(base, -exponent, ()) for base, exponent in ordered if exponent < 0]]
        whole = trees.chain("*", above or [trees.number(1)])
        return trees.operation("/", whole, trees.chain("*", below)) if below else whole

    def _name(self, axes: Iterable[Index], letters: str) -> None:
        """Letters for indices, which are new where they are visible."""
        self.letters = dict(self.letters)
        for index in axes:
            free = [own for own in letters if own not in self.taken and own not in self.letters.values()]
            if not free:
                raise NoFormula("it has more indices than letters")
            self.letters[index] = free[0]

    def _clause(self, index: Index, conditions: Sequence[Expression]) -> Clause:
        target = Name(self.letters[index], trees.NOWHERE)
        return Clause(target, (self.size(index.size),), None, tuple(conditions), trees.NOWHERE)

    def _condition(self, base: Any) -> Expression:
        if isinstance(base, Whole):  # the place of a label
            ((own, labels),) = base.args
            label = self.names.put(labels, dict(zip(own, base.at, strict=False)))
            return trees.operation("==", self.sum(label, ()).tree, self._position(base.at[-1]))
        if isinstance(base, EntrywiseCall):
            return trees.operation("!=", *[self.sum(side, ()).tree for side in base.args])
        start, parts = parts_of_position(difference(*base))
        low = affine(max(start, 0), [(index, step) for index, step in parts if step > 0])
        high = affine(max(-start, 0), [(index, -step) for index, step in parts if step < 0])
        return trees.operation("<" if isinstance(base, Less) else "==", self._position(low), self._position(high))

    def _position(self, at: Position) -> Expression:
        """A position as a number."""
        start, parts = parts_of_position(at)
        tree: Expression | None = None
        for index, step in parts:
            letter: Expression = trees.name(self.letters[index])
            part = letter if abs(step) == 1 else trees.operation("*", self.size(abs(step)), letter)
            if tree is None:
                tree = part if step > 0 else trees.negative(part)
            else:
                tree = trees.operation("+" if step > 0 else "-", tree, part)
        if tree is None:
            return self.size(start)
        return trees.operation("+" if start > 0 else "-", tree, self.size(abs(start))) if start else tree

    def _base(self, base: Any, order: Axes) -> Expression:
        if isinstance(base, Ordinal):
            return self._position(base.at[0])
        if isinstance(base, Whole) and base.name in REDUCED and not base.at and len(base.args) == 1:
            own, entry = base.args[0]
            before = self.letters
            self._name(own, BOUND)
            clauses = tuple([self._clause(index, []) for index in own])
            item = Comprehension(self.sum(entry, ()).tree, clauses, True, trees.NOWHERE)
            self.letters = before
            return trees.call(base.name, [item])
        return super()._base(base, ())

    def _length(self, base: BracketedSum, order: Axes) -> None:
        """A norm is the square root of its sum."""

    def _entry(self, tree: Expression, at: tuple[Position, ...], shape: Sequence[int], order: Axes) -> Expression:
        return trees.subscript(tree, [self._position(position) for position in at]) if at else tree


def is_condition(base: Any) -> bool:
    """Whether a factor only says where a term counts."""
    if isinstance(base, EntrywiseCall):
        return base.name == APART
    return isinstance(base, (Delta, Less)) or (isinstance(base, Whole) and base.name == ONE_HOT and bool(base.args))


def apart(total: Sum) -> Sum:
    """A sum in which terms over i < k, with the same over k < i, are one over i != k."""
    for pair in combinations(total, 2):
        orders = [[base for base, _ in term.factors if isinstance(base, Less)] for term in pair]
        if pair[0].coefficient != pair[1].coefficient or any(len(own) != 1 for own in orders):
            continue
        joined = []
        for term, (order,), way in zip(pair, orders, (1, -1), strict=True):
            start, parts = parts_of_position(difference(*order))
            sides = sorted(parts, key=lambda part: part[1] * way)
            if start or [step * way for _, step in sides] != [-1, 1]:
                break
            unit = EntrywiseCall(APART, (), tuple([ordinal(index) for index, _ in sides])), Fraction(1)
            joined.append(term._replace(factors=tuple([unit if own[0] is order else own for own in term.factors])))
        if len(joined) == 2 and term_key(joined[0], {}) == term_key(joined[1], {}):
            return apart(tuple([joined[0] if term is pair[0] else term for term in total if term is not pair[1]]))
    return total


def groups(term: Term) -> list[Axes]:
    """The bound indices of a term, those together that one factor reads."""
    together: list[list[Index]] = [[index] for index in term.bound]
    for base, _ in term.factors:
        read = [group for group in together if not set(group).isdisjoint(free_of(base))]
        together = [group for group in together if group not in read] + (
            [[index for group in read for index in group]] if read else []
        )
    return [tuple(group) for group in together]


__all__ = ["index_text"]
