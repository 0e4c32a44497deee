"""Index notation as formulas in the script language: matrix products, transposes and sums in place of indices."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.formulas.index_positions import Index, affine, difference, indices_in, parts_of_position, span
from gradcli.formulas.index_terms import (
    COMPARISONS,
    EIGENVECTORS,
    ONE_HOT,
    BracketedSum,
    Delta,
    EntrywiseCall,
    InputEntry,
    Irrational,
    Less,
    Literal,
    NoFormula,
    Ordinal,
    Term,
    Whole,
    add,
    alike_in_order,
    content,
    denominators,
    free_of,
    free_of_term,
    is_symmetric,
    merged,
    term_key,
)
from gradcli.formulas.recognition import circles, multiplied_out
from gradcli.graph.exact import is_fraction
from gradcli.graph.node_text import SIGNS
from gradcli.language import syntax, trees
from gradcli.language.syntax import Binary, Name, NewAxis, Transpose, is_whole, whole_number
from gradcli.primitives import functions
from gradcli.primitives.size_arguments import named_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_reading import Reader
    from gradcli.formulas.index_terms import Factor, Sum
    from gradcli.language.syntax import Expression, Item, Keyword

    Axes = tuple[Index, ...]

FOR_FRACTION = 2  # characters that a line of a fraction counts as, beside its own
LONGER = 2  # characters that brackets may cost
FOR_COLUMN = 14  # characters that a column counts as, beside its own
MOST_TERMS = 12  # of a sum over one denominator
MOST_WRITTEN = 1000  # sums, for one formula
MOST_BOUND = 8  # indices that one product is summed over


class Text(NamedTuple):
    """A formula; `covers` are the axes that it has."""

    tree: Expression
    covers: tuple[Index, ...] = ()


class ArrayFactor(NamedTuple):
    """Part of a product: powers of bases with the same free indices, or a chain of matrix products.

    A chain holds matrices, each with its row and column index; `end` is the vector behind them, if there is one.
    """

    indices: frozenset[Index]
    factors: tuple[Factor, ...] = ()
    chain: tuple[tuple[tuple[ArrayFactor, ...], Index, Index], ...] = ()
    end: tuple[ArrayFactor, ...] = ()
    written: Expression | None = None
    size: int = 0  # of the axis that a sum was taken over


def common_factor(total: Sum) -> Term | None:
    """The terms with what all of them have in common before brackets."""
    common, left = content(total)
    sizes = {abs(term.coefficient) * _counted(term) for term in left}
    if len(sizes) == 1:  # x/2 - mean(x)/2
        (size,) = sizes
        left = tuple([term._replace(coefficient=term.coefficient / size) for term in left])
        common = common._replace(coefficient=common.coefficient * size)
    if common.coefficient == 1 and not common.factors:
        return None
    return Term(common.coefficient, (*common.factors, (BracketedSum(left), Fraction(1))), ())


def _counted(term: Term) -> int:
    """How many entries a sum has that a term may show as a mean."""
    shown = len(term.bound) == 1 and all(term.bound[0] in free_of(base) for base, _ in term.factors)
    shown = shown and (len(term.factors) == 1 or len(free_of_term(term)) == 0)
    return term.bound[0].size if shown else 1


class MatrixWriter:
    """Writes the sums that a reader made; `sizes` are names for sizes that are primes."""

    def __init__(self, reader: Reader, sizes: Mapping[int, str] | None = None) -> None:
        self.notation = trees.GradientNotation()
        self.names = reader.names
        self.data = reader.data
        self.decimals = reader.decimals
        self.shapes = reader.shapes
        self.sizes = sizes or {}
        self.written = 0  # sums, each as often as it is written to see which way is shorter
        self._texts: dict[tuple[int, Axes, bool], tuple[Sum, Text, int]] = {}  # each with the sums that it took

    def text(self, tree: Expression) -> str:
        return self.notation.text(tree)

    def length(self, tree: Expression) -> int:
        return len(self.text(tree))

    # --- sums -----------------------------------------------------------------------------------------------------

    def sum(self, total: Sum, axes: Axes, exact: bool = True) -> Text:
        """The text of a sum as an array with these axes; without `exact` it may only broadcast to that."""
        key = (id(total), axes, exact)
        if key in self._texts:
            _, text, count = self._texts[key]
            if self.written + count <= MOST_WRITTEN:
                self.written += count
                return text
        before = self.written
        text = self._sum(total, axes, exact)
        self._texts[key] = total, text, self.written - before
        return text

    def _sum(self, total: Sum, axes: Axes, exact: bool) -> Text:
        self.written += 1
        if self.written > MOST_WRITTEN:
            raise NoFormula("it is too long to be read")
        if not total:
            return Text(trees.call("zeros", self.shape(axes)), axes) if axes and exact else Text(trees.number(0))
        terms = self._paired(total) if len(total) > 2 else total
        ordered = sorted(terms, key=lambda term: (term.coefficient < 0, _is_transposed(term, axes)))
        text = self._factored(ordered, axes) or self._joined(ordered, axes)
        opened = multiplied_out(total[0], MOST_TERMS) if len(total) == 1 and not total[0].bound else None
        if opened is not None:  # u*(1/u - x/u**2) as (u - x)/u**2
            other = self._factored(opened, axes)
            text = other if other is not None and self._cost(other) < self._cost(text) else text
        return self._spread(text, axes) if exact and len(text.covers) < len(axes) else text

    def _joined(self, ordered: Sequence[Term], axes: Axes) -> Text:
        """The terms with their signs between them."""
        parts = [self.term(term._replace(coefficient=abs(term.coefficient)), axes) for term in ordered]
        whole: Expression | None = None
        for part, term in zip(parts, ordered, strict=True):
            if whole is None:
                whole = trees.negative(part.tree) if term.coefficient < 0 else part.tree
            else:
                whole = trees.operation("-" if term.coefficient < 0 else "+", whole, part.tree)
        assert whole is not None
        return Text(whole, tuple([i for i in axes if any(i in part.covers for part in parts)]))

    def _spread(self, text: Text, axes: Axes) -> Text:
        """An array that lacks some axes, repeated along them."""
        ones = trees.call("ones", self.shape(axes))
        if not text.covers:
            return Text(ones if whole_number(text.tree) == 1 else trees.repeated(text.tree, ones), axes)
        if len(axes) == 2 and text.covers == axes[1:]:
            return Text(trees.call("outer", [trees.call("ones", self.shape(axes[:1])), text.tree]), axes)
        if len(axes) == 2 and text.covers == axes[:1]:
            return Text(trees.repeated(text.tree, ones), axes)
        raise NoFormula("it repeats an array along several axes")

    def _factored(self, terms: Sequence[Term], axes: Axes) -> Text | None:
        """The sum with what its terms have in common before brackets, the shortest of some ways."""
        if len(terms) < 2:
            return None
        texts = []
        for way in (self._over_one_denominator, common_factor, self._common_matrix):
            term = way(tuple(terms))
            if term is None:
                continue
            positive = term._replace(coefficient=abs(term.coefficient))
            try:
                text = self.term(positive, axes)
            except NoFormula:
                continue
            texts.append(text._replace(tree=trees.negative(text.tree)) if term.coefficient < 0 else text)
        if not texts:
            return None
        plain = self._joined(terms, axes)
        best = min(texts, key=self._cost)
        columns = trees.count(best.tree, NewAxis) - trees.count(plain.tree, NewAxis)
        longest = self.length(plain.tree) + LONGER - max(columns, 0) * FOR_COLUMN
        return best if self.length(best.tree) <= longest else plain

    def _cost(self, text: Text) -> int:
        """How hard a formula is to read: one fraction is better than a fraction of fractions."""
        return self.length(text.tree) + FOR_FRACTION * trees.count(text.tree, Binary, "/")

    def _over_one_denominator(self, total: Sum) -> Term | None:
        """1/u - x/u**2 as (u - x)/u**2."""
        below = denominators(total)
        if not below or any(term.bound for term in total) or not alike_in_order(total):
            return None
        above: Sum = ()
        for term in total:
            raised = merged(term.coefficient, (*term.factors, *[(base, -exponent) for base, exponent in below]))
            product = multiplied_out(raised, MOST_TERMS)
            if product is None:
                return None
            above = circles(add(above, product))
        if not above:
            return None
        if len(above) == 1:
            return merged(above[0].coefficient, (*above[0].factors, *below))
        common, left = content(above)
        return merged(common.coefficient, (*common.factors, (BracketedSum(left), Fraction(1)), *below))

    def _paired(self, total: Sum) -> Sum:
        """b + A @ x + A.T @ x as b + (A + A.T) @ x."""
        for pair in combinations(total, 2):
            if all(term.bound for term in pair) and (both := self._common_matrix(pair)) is not None:
                rest = [both if term is pair[0] else term for term in total if term is not pair[1]]
                return self._paired(tuple(rest))
        return total

    def _common_matrix(self, total: Sum) -> Term | None:
        """A @ x + A.T @ x as (A + A.T) @ x: all terms but for one factor of each, under the sum over one index."""
        first = total[0]
        if any(len(term.bound) != 1 or term.bound[0].size != first.bound[0].size for term in total if first.bound):
            return None
        if not first.bound:
            return None
        index = first.bound[0]
        aligned = [first._replace(bound=())]
        for term in total[1:]:
            free_term = term._replace(bound=())
            aligned.append(self.names.put((free_term,), {term.bound[0]: index})[0])
        for chosen in range(len(first.factors)):
            if isinstance(first.factors[chosen][0], (Delta, Less)):  # a border of zeros, a triangle
                continue
            rest = first.factors[:chosen] + first.factors[chosen + 1 :]
            wanted = term_key(Term(Fraction(1), rest, ()), {})
            inside = [Term(first.coefficient, (first.factors[chosen],), ())]
            for term in aligned[1:]:
                for place in range(len(term.factors)):
                    others = term.factors[:place] + term.factors[place + 1 :]
                    if term_key(Term(Fraction(1), others, ()), {}) == wanted:
                        inside.append(Term(term.coefficient, (term.factors[place],), ()))
                        break
            if len(inside) == len(total):
                common, left = content(add(tuple(inside)))
                return Term(common.coefficient, (*common.factors, (BracketedSum(left), Fraction(1)), *rest), (index,))
        return None

    # --- terms ------------------------------------------------------------------------------------------------------

    def term(self, term: Term, axes: Axes) -> Text:
        """A term with a positive coefficient; the text has the axes that it reads, and broadcasts along the others."""
        if len(axes) > 2:
            return self._entrywise(term, axes)
        term = self._bordered(term, axes)
        bound = term.bound
        wide = next((base for base, _ in term.factors if len(free_of(base)) > 2), None)
        if wide is not None:
            return self._reduced(term, wide, axes)
        if len(bound) > MOST_BOUND:
            raise NoFormula("it sums over many indices")
        turned = [bound[i:] + bound[:i] for i in range(len(bound))]
        orders = permutations(bound) if len(bound) < 4 else [*turned, *(turn[::-1] for turn in turned)]
        factors = sorted(term.factors, key=_place_in_products)
        texts = []
        for order in orders:
            with suppress(NoFormula):
                texts.append(self._product(term.coefficient, self._contracted(factors, order), axes))
        if not texts:
            raise NoFormula("it is a product over more than two axes")
        return min(texts, key=lambda text: self.length(text.tree))

    def _reduced(self, term: Term, wide: Any, axes: Axes) -> Text:
        """A term with a base over three axes, of which one is summed over: sum((x[:, None] - c)**2, axis=-1)."""
        for index in [i for i in free_of(wide) if i in term.bound]:
            group = tuple([factor for factor in term.factors if index in free_of(factor[0])])
            left = {i for base, _ in group for i in free_of(base)} - {index}
            if len(left) > 2:
                continue
            inner = Term(Fraction(1), group, (index,))
            if term != inner or not left.issubset(axes):
                rest = [factor for factor in term.factors if factor not in group]
                bound = tuple([i for i in term.bound if i is not index])
                return self.term(merged(term.coefficient, (*rest, (BracketedSum((inner,)), Fraction(1))), bound), axes)
            own, texts = tuple([i for i in axes if i in left]), []
            for place in range(3):
                inside = self.term(term._replace(bound=()), (*own[:place], index, *own[place:])).tree
                axis = trees.keyword("axis", trees.number(place if place < 2 else -1))
                texts.append(trees.call("sum", [inside], [axis]))
            return Text(min(texts, key=self.length), own)
        raise NoFormula("it has more than two axes")

    def _entrywise(self, term: Term, axes: Axes) -> Text:
        """A product over three axes, entry by entry: what lacks some of them has new ones."""
        covers = tuple([i for i in axes if i in free_of_term(term)])
        if len(covers) < 3:
            start = axes.index(covers[0]) if covers else len(axes)
            places: list[Item] = [trees.part() if i in covers else NewAxis(trees.NOWHERE) for i in axes[start:]]
            while places and is_whole(places[-1]):
                places.pop()
            tree = self.sum((term,), covers).tree
            return Text(trees.subscript(tree, places) if places else tree, covers)
        if term.bound:
            raise NoFormula("it has more than three axes")
        wide = [factor for factor in term.factors if len(free_of(factor[0])) > 2]
        narrow = term._replace(factors=tuple([factor for factor in term.factors if factor not in wide]))
        parts = [narrow] if len(free_of_term(narrow)) < 3 else [narrow._replace(factors=(f,)) for f in narrow.factors]
        whole = trees.chain("*", [self._entrywise(part, axes).tree for part in parts])
        for base, exponent in wide:
            tree = self._power(base, abs(exponent), axes)
            alone = exponent > 0 and whole_number(whole) == 1
            whole = tree if alone else trees.operation("*" if exponent > 0 else "/", whole, tree)
        return Text(whole, covers)

    def _bordered(self, term: Term, axes: Axes) -> Term:
        """A term that is 0 outside part of its axes, with that part in a border of zeros."""
        inner, widths, rest, bound = list(axes), [(0, 0)] * len(axes), list(term.factors), list(term.bound)
        places: dict[Any, Position] = {}
        for base, _ in term.factors:
            gap = dict(parts_of_position(difference(*base)).parts) if isinstance(base, Delta) else {}
            axis, index = [next((i for i in gap if i in some), None) for some in (axes, bound)]
            if axis is None or index is None or len(gap) != 2:
                continue
            start, own = -gap[axis] * parts_of_position(difference(*base)).start, index
            if gap[axis] == gap[index]:  # from the end of the part to its start
                start, own = start - index.size + 1, self.names.index(index.size)
                places[index] = affine(index.size - 1, [(own, -1)])
            end = axis.size - index.size - start
            if abs(gap[axis]) != 1 or abs(gap[index]) != 1 or start < 0 or end < 0:
                raise NoFormula("it is part of an identity matrix")
            place = axes.index(axis)
            inner[place], widths[place], places[axis] = own, (start, end), affine(start, [(own, 1)])
            rest = [factor for factor in rest if factor[0] is not base]
            bound.remove(index)
        if len(rest) == len(term.factors):
            return term
        reads = [factor for factor in rest if free_of(factor[0])]
        inside = self.names.put((Term(Fraction(1), tuple(reads), ()),), places)
        part = tuple([entry._replace(bound=tuple(bound)) for entry in inside])
        padded = Whole("pad", (("pad_width", tuple(widths)),), ((tuple(inner), part),), axes)
        return Term(term.coefficient, (*[factor for factor in rest if factor not in reads], (padded, Fraction(1))), ())

    def _contracted(
        self, factors: Sequence[Factor], order: Sequence[Index]
    ) -> dict[frozenset[Index], list[ArrayFactor]]:
        """The arrays that are left when the indices have been summed over, by the indices that they have."""
        groups: dict[frozenset[Index], list[ArrayFactor]] = {}
        for base, exponent in factors:
            indices = frozenset(free_of(base))
            groups.setdefault(indices, []).append(ArrayFactor(indices, ((base, exponent),)))
        left = list(order)
        while left:
            array = self._contract(groups, left.pop(0), left)
            groups.setdefault(array.indices, []).append(array)
        return groups

    def _contract(
        self, groups: dict[frozenset[Index], list[ArrayFactor]], index: Index, left: list[Index]
    ) -> ArrayFactor:
        """The array that takes the place of those that are summed over an index."""
        vector = groups.pop(frozenset([index]), [])
        around = [indices for indices in groups if index in indices]
        if not around:
            return self._total(vector, index)
        if len(around) > 2:
            raise NoFormula("it multiplies three arrays over one index")
        if len(around) == 2:
            first, last = sorted(around, key=lambda indices: min((i.number for i in indices - {index}), default=0))
            (row,), (column,) = first - {index}, last - {index}
            links = _links([*groups.pop(first), *vector], row, index)
            return ArrayFactor(frozenset([row, column]), chain=(*links, *_links(groups.pop(last), index, column)))
        matrix = groups.pop(around[0])
        (other,) = around[0] - {index}
        if vector:
            chain, end = _links(matrix, other, index), tuple(vector)
            if len(vector) == 1 and vector[0].chain:  # A @ (B @ x)
                chain, end = (*chain, *vector[0].chain), vector[0].end
            return ArrayFactor(frozenset([other]), chain=chain, end=end)
        rows = self._entries(matrix, (other, index))
        if other in left and not any(other in indices for indices in groups):  # the sum of all entries
            left.remove(other)
            total = self._trace(matrix, other, index)
            if total is None or trees.count(total, Transpose) >= trees.count(rows, Transpose):
                total = trees.call("sum", [rows])
            return ArrayFactor(frozenset(), written=total, size=index.size * other.size)
        columns = self._entries(matrix, (index, other))
        short = self.length(columns) < self.length(rows)
        axis = trees.number(0 if short else -1)
        written = trees.call("sum", [columns if short else rows], [trees.keyword("axis", axis)])
        return ArrayFactor(frozenset([other]), written=written, size=index.size)

    def _trace(self, matrices: Sequence[ArrayFactor], row: Index, column: Index) -> Expression | None:
        """The sum of all entries of A.T*B as trace(A @ B)."""
        limited = any(part.factors and isinstance(part.factors[0][0], Less) for part in matrices)
        if limited or len(matrices) != 2 or not all(map(self._is_plain, matrices)):
            return None
        ways = []
        for first, second in (matrices, matrices[::-1]):
            left, right = self._entries([first], (row, column)), self._entries([second], (column, row))
            ways.append(trees.call("trace", [trees.operation("@", left, right)]))
        return min(ways, key=lambda tree: (trees.count(tree, Transpose), self.length(tree)))

    def _total(self, vector: Sequence[ArrayFactor], index: Index) -> ArrayFactor:
        """The sum over the only index of a product of vectors."""
        if len(vector) == 1 and len(vector[0].factors) == 1:
            base, exponent = vector[0].factors[0]
            if exponent == 1 and isinstance(base, (InputEntry, Whole)) and base.at == (index, index):
                diagonal = self._base(base, (index,))
                assert isinstance(diagonal, syntax.Call)
                return ArrayFactor(frozenset(), written=trees.call("trace", diagonal.args))
        if len(vector) == 2 and all(map(self._is_plain, vector)):
            first, last = sorted(vector, key=lambda part: bool(part.chain))
            left = self._entries([first], (index,))
            if last.chain and not first.chain:
                right = self._chain(last, (index,), flat=True)
                return ArrayFactor(frozenset(), written=trees.dot(left, right, flat=True))
            return ArrayFactor(frozenset(), written=trees.dot(left, self._entries([last], (index,))))
        written = trees.call("sum", [self._entries(vector, (index,))])
        return ArrayFactor(frozenset(), written=written, size=index.size)

    @staticmethod
    def _is_plain(array: ArrayFactor) -> bool:
        return bool(array.chain) or array.written is not None or (len(array.factors) == 1 and array.factors[0][1] == 1)

    def _product(self, coefficient: Fraction, groups: dict[frozenset[Index], list[ArrayFactor]], axes: Axes) -> Text:
        """The arrays that are left, multiplied: numbers first, denominators last."""
        numbers = groups.pop(frozenset(), [])
        rest = [part for parts in groups.values() for part in parts]
        means = [part for part in (*numbers, *rest) if part.size and part.written is not None]
        if len(means) == 1 and coefficient.denominator > 1 and coefficient.denominator % means[0].size == 0:
            assert means[0].written is not None
            mean = means[0]._replace(written=mean_of(means[0].written))
            numbers = [mean if part is means[0] else part for part in numbers]
            groups = {own: [mean if part is means[0] else part for part in parts] for own, parts in groups.items()}
            coefficient *= means[0].size
        tops, bottoms = _split(numbers)
        array, below = self._outer(groups, axes)
        covers = tuple(i for i in axes if any(i in part.indices for part in rest))
        above = [self._written(part, ()) for part in tops]
        chained = array is not None and len(rest) == 1 and bool(rest[0].chain)  # 2*A @ x is read as it is meant
        coefficient, front, under = self._counted_out(coefficient)
        dens = [self._written(part, ()) for part in bottoms] + below
        parts = above + ([array] if array is not None else [])
        scale = trees.chain("*", front) if front else None
        if under and (front or (chained and not dens)):
            scale = Binary("/", scale or trees.number(1), trees.chain("*", under), True, trees.NOWHERE)
        else:
            dens = [*under, *dens]
        whole = scale
        for part in parts:
            if whole is None:
                whole = part
            elif chained and part is parts[-1]:
                whole = trees.grafted(whole, part)
            else:
                whole = trees.scaled_by(whole, part)
        whole = whole or trees.number(1)
        return Text(trees.operation("/", whole, trees.chain("*", dens)) if dens else whole, covers)

    def size(self, size: int) -> Expression:
        """A size or a position by the names of sizes, where it is a sum of those."""
        parts = ([self.sizes[size]], 0) if size in self.sizes else named_parts(size, self.sizes)
        return trees.number(size) if parts is None else trees.total(*parts)

    def shape(self, axes: Axes) -> list[Expression]:
        """The sizes of axes as arguments of a call."""
        return [self.size(index.size) for index in axes]

    def _counted_out(self, value: Fraction) -> tuple[Fraction, list[Expression], list[Expression]]:
        """A number as factors above and below the line of a fraction, named sizes behind what is left.

        A size n less one is known by (n - 1)/2, which is prime as well, and n + m by its half.
        """
        above: list[Expression] = []
        below: list[Expression] = []
        names = {size: trees.name(name) for size, name in self.sizes.items()}
        known: list[tuple[int, int, Expression]] = [(size, size, name) for size, name in names.items()]
        known += [(n // 2, n - 1, trees.operation("-", name, trees.number(1))) for n, name in names.items()]
        for m, n in combinations(self.sizes, 2):
            known.append(((m + n) // 2, m + n, trees.operation("+", names[m], names[n])))
        for divisor, factor, tree in known:
            while value.numerator % divisor == 0:
                value /= factor
                above.append(tree)
            while value.denominator % divisor == 0:
                value *= factor
                below.append(tree)
        decimal = self._as_decimal(value)
        p, q = (decimal, 1) if decimal is not None else (trees.number(value.numerator), value.denominator)
        if decimal is not None or value.numerator != 1:
            above.insert(0, p)
        if q != 1:
            below.insert(0, trees.number(q))
        return value, above, below

    def _as_decimal(self, coefficient: Fraction) -> Expression | None:
        if not self.decimals or coefficient.denominator == 1:
            return None
        decimal = trees.constant(coefficient)
        return None if isinstance(decimal, Binary) or self.length(decimal) > 8 else decimal

    def _outer(
        self, groups: dict[frozenset[Index], list[ArrayFactor]], axes: Axes
    ) -> tuple[Expression | None, list[Expression]]:
        """The part of a product that has axes, and what it is divided by."""
        if not groups:
            return None, []
        if not all(indices <= set(axes) for indices in groups):
            raise NoFormula("it has more axes than its leaf")
        if len(axes) == 1:
            return self._quotient(groups[frozenset(axes)], axes)
        matrix = groups.get(frozenset(axes), [])
        rows, columns = groups.get(frozenset(axes[:1]), []), groups.get(frozenset(axes[1:]), [])
        if matrix and not rows and not columns:
            return self._quotient(matrix, axes)
        if columns and not matrix and not rows:
            return self._quotient(columns, axes[1:])
        unit = matrix[0].factors[0][0] if len(matrix) == 1 and matrix[0].factors else None
        if rows and not columns and isinstance(unit, Delta) and set(axes) == set(unit):
            return trees.call("diag", [self._entries(rows, axes[:1])]), []
        if matrix and bool(rows) != bool(columns) and not _split(rows or columns)[0]:
            top, below = self._quotient(matrix, axes)
            _, under = self._quotient(rows or columns, axes[:1] if rows else axes[1:])
            return top, below + ([trees.column(trees.chain("*", under))] if rows else under)
        factors = [self._entries(matrix, axes)] if matrix else []
        row, column = [self._entries(part, axis) for part, axis in ((rows, axes[:1]), (columns, axes[1:]))]
        if rows and columns:
            factors.append(trees.call("outer", [row, column]))
        else:
            factors.append(trees.column(row) if rows else column)
        return trees.chain("*", factors), []

    def _quotient(self, parts: Sequence[ArrayFactor], order: Axes) -> tuple[Expression | None, list[Expression]]:
        orders = [part for part in parts if part.factors and isinstance(part.factors[0][0], Less)]
        if orders:
            return self._limited(orders, [part for part in parts if part not in orders], order), []
        tops, bottoms = [[self._written(part, order) for part in some] for some in _split(parts)]
        return trees.chain("*", tops) if tops else None, bottoms

    def _limited(self, orders: Sequence[ArrayFactor], rest: Sequence[ArrayFactor], order: Axes) -> Expression:
        """A product that is 0 where positions are not in their order: triangles of a matrix, parts of a vector."""
        tree = self._entries(rest, order) if rest else trees.call("ones", self.shape(order))
        for part in orders:
            own = parts_of_position(difference(*part.factors[0][0]))
            steps = dict(own.parts)
            if not steps.keys() <= set(order) or not {abs(step) for step in steps.values()} <= {1}:
                raise NoFormula("it has a condition that no script can write")
            if len(steps) == 2:  # start + row - column < 0
                start = own.start if steps[order[0]] == 1 else -own.start
                name, k = ("triu", start + 1) if steps[order[0]] == 1 else ("tril", start - 1)
                tree = trees.call(name, [tree, *([trees.number(k)] if k else [])])
                continue
            ((index, step),) = steps.items()
            sign, bound = ("<", -own.start) if step == 1 else (">", own.start)
            condition: Expression = trees.operation(sign, self._counting(index), self.size(bound))
            condition = trees.column(condition) if index != order[-1] else condition
            tree = trees.call("where", [condition, tree, trees.number(0)])
        return tree

    def _counting(self, index: Index) -> Expression:
        return trees.call("arange", [self.size(index.size)])

    def _entries(self, parts: Sequence[ArrayFactor], order: Axes) -> Expression:
        """The product of arrays entry by entry."""
        vectors = [part for part in parts if len(part.indices) == 1]
        if vectors and len(parts) > 1 and len(order) == 2:  # a vector beside a matrix scales it along an axis
            (index,) = vectors[0].indices
            matrix = self._entries([part for part in parts if len(part.indices) == 2], order)
            scale = self._entries(vectors, (index,))
            return trees.chain("*", [matrix, trees.column(scale) if index == order[0] else scale])
        above, below = self._quotient(parts, order)
        above = above or trees.number(1)
        return trees.operation("/", above, trees.chain("*", below)) if below else above

    # --- arrays -------------------------------------------------------------------------------------------------------

    def _written(self, array: ArrayFactor, order: Axes) -> Expression:
        if array.written is not None:
            return array.written
        if array.chain:
            return self._chain(array, order)
        base, exponent = array.factors[0]
        return self._power(base, abs(exponent), order)

    def _chain(self, array: ArrayFactor, order: Axes, flat: bool = False) -> Expression:
        """A product of matrices, from left to right; what a vector ends is in brackets."""
        links = array.chain
        if not array.end and links[0][1] != order[0]:  # the transpose of a product
            links = tuple([(parts, column, row) for parts, row, column in reversed(links)])
        if array.end:
            tree, joined = self._entries(array.end, (links[-1][2],)), False
        else:
            parts, row, column = links[-1]
            links, tree, joined = links[:-1], self._entries(parts, (row, column)), False
        for parts, row, column in reversed(links):
            base, exponent = parts[0].factors[0] if len(parts) == 1 and parts[0].factors else (None, 0)
            if isinstance(base, Whole) and base.name == ONE_HOT and base.at == (row, column) and exponent == 1:
                labels = self._labels(base)
                sorts = self.text(labels) == self.text(trees.call("argsort", [tree]))
                tree = trees.call("sort", [tree]) if sorts else trees.subscript(tree, [labels])  # eye(n)[labels] @ x
            else:
                left = self._entries(parts, (row, column))
                tree, joined = trees.dot(left, tree, flat=joined and (flat or not array.end)), True
        return tree

    def _labels(self, base: Whole) -> Expression:
        """The positions of the ones in the rows of a matrix."""
        if base.args:
            ((own, labels),) = base.args
            return self.sum(labels, own).tree
        return trees.listed([trees.number(position) for position in dict(base.params)["positions"]])

    def _power(self, base: Any, exponent: Fraction, order: Axes) -> Expression:
        """A positive power of a base."""
        if isinstance(base, BracketedSum) and exponent.denominator == 2:
            length = self._length(base, order)
            if length is not None:
                return length if exponent == Fraction(1, 2) else trees.power(length, exponent.numerator)
        tree = self._base(base, order)
        if exponent == 1:
            return tree
        if exponent == Fraction(1, 2):
            match tree:
                case syntax.Call(function=Name(id="var"), args=(Name(),), keywords=()):
                    return trees.call("std", tree.args)
            return trees.call("sqrt", [tree])
        return trees.power(tree, exponent)

    def _length(self, base: BracketedSum, order: Axes) -> Expression | None:
        """The square root of a sum of squares."""
        if order or len(base.inside) != 1:
            return None
        term = base.inside[0]
        even = all(exponent.numerator % 2 == 0 and exponent.denominator == 1 for _, exponent in term.factors)
        if not even or term.coefficient != 1 or not 0 < len(term.bound) < 3:
            return None
        halves = tuple([(base, exponent / 2) for base, exponent in term.factors])
        root = self.sum((Term(Fraction(1), halves, ()),), term.bound, exact=False)
        return trees.call("norm", [root.tree]) if set(root.covers) == set(term.bound) else None

    def _base(self, base: Any, order: Axes) -> Expression:
        if isinstance(base, Irrational):
            return self.size(int(base.text)) if base.text.isdigit() else trees.name(base.text)
        if isinstance(base, InputEntry):
            return self._entry(trees.name(base.name), _in_order(base, order), self.shapes[base.name], order)
        if isinstance(base, Literal):
            return self._literal(base, order)
        if isinstance(base, Ordinal):
            (index,) = indices_in(base.at)
            return self._counting(index)
        if isinstance(base, Less):
            return self._limited([ArrayFactor(frozenset(order), ((base, Fraction(1)),))], [], order)
        if isinstance(base, Delta):
            if isinstance(base.left, int) or isinstance(base.right, int):
                raise NoFormula("it is part of an identity matrix")
            at = tuple(base if indices_in([base.left]) == order[:1] else base[::-1])
            count = 1 + max([span(position)[1] for position in at])
            return self._entry(trees.call("eye", [self.size(count)]), at, (count, count), order)
        if isinstance(base, BracketedSum):
            return self.sum(base.inside, order).tree
        if isinstance(base, Whole):
            return self._whole(base, order)
        assert isinstance(base, EntrywiseCall)
        return self._call(base, order)

    def _whole(self, base: Whole, order: Axes) -> Expression:
        if base.name == EIGENVECTORS:
            raise NoFormula("it reads eigenvectors one by one")
        params = dict(base.params)
        if base.name == ONE_HOT:
            size = params["size"]
            rows = [i.size for i in base.args[0][0]] if base.args else [len(params["positions"])]
            chosen = trees.subscript(trees.call("eye", [self.size(size)]), [self._labels(base)])
            return self._entry(chosen, base.at, (*rows, size), order)
        args = [self.sum(arg, own).tree for own, arg in base.args]
        own = [i.size for i in base.args[0][0]]  # the shape of its first argument
        axes = (axes,) if isinstance(axes := params.get("axis", ()), int) else axes  # argmax has one
        removed = {axis % len(own) for axis in axes} if len(own) > len(base.at) else set()
        shape = tuple([size for axis, size in enumerate(own) if axis not in removed][: len(base.at)])
        if base.name == "pad":
            widths = params.pop("pad_width")
            shape = tuple([size + sum(more) for size, more in zip(own, widths, strict=True)])
            sides = [trees.several(list(map(self.size, both))) for both in widths]
            args.append(trees.several(sides) if len(own) > 1 else sides[0])
        if len(base.args) == 1 and (len(own) == 1 or len(removed) == len(own)):
            params.pop("axis", None)
        keywords = [trees.keyword(name, trees.static(value)) for name, value in params.items()]
        return self._entry(trees.call(base.name, args, keywords), _in_order(base, order), shape, order)

    def _call(self, base: EntrywiseCall, order: Axes, truth: bool = False) -> Expression:
        name = base.name
        if name in ("and", "or"):
            condition = trees.chain(name, [self._truth(arg, order) for arg in base.args])
        elif name == "not":
            condition = trees.operation("not", self._truth(base.args[0], order))
        elif name == "where":
            return trees.call(name, [self._truth(base.args[0], order), *self._trees(base.args[1:], order)])
        elif name == "pow":
            return trees.operation(SIGNS[name], *self._trees(base.args, order))
        elif name in SIGNS:
            condition = trees.operation(SIGNS[name], *self._trees(base.args, order))
        else:
            args = self._trees(base.args, order, exact=len(base.args) == 1)
            match name, args:
                case "log", [syntax.Call(function=Name(id="sum"), args=(inner,)) as total]:
                    if isinstance(inner, syntax.Call) and inner.function.id == "exp":
                        return trees.call("logsumexp", inner.args, total.keywords)
            return trees.call(name, *_arguments(name, args, base.params))
        return condition if truth else trees.call("where", [condition, trees.number(1), trees.number(0)])

    def _trees(self, sums: Sequence[Sum], order: Axes, exact: bool = False) -> list[Expression]:
        return [self.sum(part, order, exact).tree for part in sums]

    def _truth(self, total: Sum, order: Axes) -> Expression:
        """A condition."""
        if len(total) == 1 and total[0].coefficient == 1 and len(total[0].factors) == 1 and not total[0].bound:
            base = total[0].factors[0][0]
            if isinstance(base, EntrywiseCall) and (base.name in COMPARISONS or base.name in ("and", "or", "not")):
                return self._call(base, order, truth=True)
        raise NoFormula("it has a condition that no script can write")

    def _entry(self, tree: Expression, at: tuple[Position, ...], shape: Sequence[int], order: Axes) -> Expression:
        """Entries of an array of this shape: all of them, part of them, its diagonal, or its transpose."""
        if len(shape) != len(at):
            raise NoFormula("it reads part of an array")
        indices = [i for position in at for i in indices_in([position])]
        if len(at) == 2 and at[0] == at[1] and indices and (indices[0].size,) * 2 == tuple(shape):
            return trees.call("diag", [tree])
        if len(set(indices)) != len(indices):
            raise NoFormula("it is a diagonal in several axes")
        places: list[Item] = [self._places(position, size) for position, size in zip(at, shape, strict=True)]
        while places and is_whole(places[-1]):
            places.pop()
        tree = trees.subscript(tree, places) if places else tree
        if tuple(indices) == order:
            return tree
        if tuple(indices) == order[::-1]:
            return trees.transposed(tree)
        raise NoFormula("it exchanges axes")

    def _places(self, at: Position, size: int) -> Item:
        """A position, or a slice, of an axis of this size."""
        if isinstance(at, int):
            return trees.number(at)
        own = parts_of_position(at)
        if len(own.parts) > 1:
            raise NoFormula("it mixes axes by a reshape")
        ((index, step),) = own.parts
        stop = own.start + step * index.size
        first = None if own.start == (0 if step > 0 else size - 1) else self._place(own.start, size)
        last = None if (stop >= size if step > 0 else stop < 0) else self._place(stop, size)
        return trees.part(first, last, None if step == 1 else trees.number(step))

    def _place(self, at: int, size: int) -> Expression:
        """A position, from the end where only that is the same for all sizes."""
        return trees.number(at - size) if size in self.sizes and 2 * at > size else self.size(at)

    def _literal(self, base: Literal, order: Axes) -> Expression:
        value = self.data[base.digest]
        flat, shape = getattr(value, "flat", None), tuple(value.shape)
        if flat is None or not all(isinstance(i, Index) for i in base.at) or len(set(base.at)) < len(base.at):
            raise NoFormula("it reads an entry of a constant array")
        if len(shape) > 2 or len(list(flat)) > 9:
            raise NoFormula("it contains a large constant array")
        exact = [entry if isinstance(entry, int) or is_fraction(entry) else None for entry in flat]
        entries = [trees.number(float(x)) if y is None else trees.constant(y) for x, y in zip(flat, exact, strict=True)]
        return self._entry(nested(entries, shape), base.at, shape, order)


def nested(entries: Sequence[Expression], shape: Sequence[int]) -> Expression:
    """The entries of a vector or a matrix as a list of the language."""
    if len(shape) < 2:
        return trees.listed(entries)
    rows, width = shape
    return trees.listed([trees.listed(entries[i * width : (i + 1) * width]) for i in range(rows)])


# --- trees --------------------------------------------------------------------------------------------------------


def mean_of(total: Expression) -> Expression:
    """The mean of what a sum adds; of the squares of x - mean(x) it is var(x)."""
    match total:
        case syntax.Call(args=(Binary(op="**", left=Binary() as gap, right=syntax.Number(text="2")),), keywords=()):
            match gap:
                case Binary(op="-", left=Name(id=x), right=syntax.Call(function=Name(id="mean"), args=(Name(id=y),))):
                    return trees.call("var" if x == y else "mean", [gap.left] if x == y else total.args)
    assert isinstance(total, syntax.Call)
    return trees.call("mean", total.args, total.keywords)


def _place_in_products(factor: Factor) -> Any:
    """Numbers first, then inputs, functions and brackets; entries of inputs by their names and positions."""
    base, _ = factor
    kinds: tuple[Any, ...] = (Irrational, (InputEntry, Literal, Delta), Whole, EntrywiseCall)
    kind = next((place for place, own in enumerate(kinds) if isinstance(base, own)), len(kinds))
    fixed = isinstance(base, InputEntry) and all(isinstance(i, int) for i in base.at)
    return kind, (base.name.casefold(), base.name, base.at) if fixed else ("",)


def _in_order(base: InputEntry | Whole, order: Axes) -> tuple[Position, ...]:
    """The positions of a base; those of a symmetric matrix in the order in which they are wanted."""
    return base.at[::-1] if indices_in(base.at) == order[::-1] and is_symmetric(base) else base.at


def _is_transposed(term: Term, axes: Axes) -> bool:
    """Whether a term is an input with its axes exchanged: A + A.T is how people write it."""
    base = term.factors[0][0] if len(term.factors) == 1 else None
    return isinstance(base, InputEntry) and len(axes) == 2 and base.at == axes[::-1]


def _links(parts: Sequence[ArrayFactor], row: Index, column: Index) -> tuple[Any, ...]:
    """Matrices that are multiplied entry by entry as a link of a chain; a chain alone gives its own links."""
    if len(parts) == 1 and parts[0].chain and not parts[0].end:
        links = parts[0].chain
        if links[0][1] != row:
            links = tuple([(inner, last, first) for inner, first, last in reversed(links)])
        return links
    return ((tuple(parts), row, column),)


def _split(parts: Sequence[ArrayFactor]) -> tuple[list[ArrayFactor], list[ArrayFactor]]:
    """What stands above the line of a fraction, and what below."""
    below = [part for part in parts if part.factors and part.factors[0][1] < 0]
    return [part for part in parts if part not in below], below


def _arguments(
    name: str, args: Sequence[Expression], params: Sequence[tuple[str, Any]]
) -> tuple[list[Expression], list[Keyword]]:
    """The operands of a call, and static parameters by name, or first where they are."""
    own = functions()[name].call if name in functions() else None
    names = () if own is None else own.__code__.co_varnames[: own.__code__.co_argcount]
    values = {key: trees.static(value) for key, value in params}
    first = [values.pop(key) for key in names[: len(params)] if key in values and key == names[0]]
    return [*first, *args], [trees.keyword(key, value) for key, value in values.items()]
