"""Index notation as text in the script language: matrix products, transposes and sums in place of indices."""

from __future__ import annotations

import re
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.formulas.index_positions import Index, affine, difference, indices_in, parts_of_position, span
from gradcli.formulas.index_terms import (
    COMPARISONS,
    EIGENVECTORS,
    ONE_HOT,
    Call,
    Delta,
    Group,
    Leaf,
    Less,
    Literal,
    NoFormula,
    Number,
    Ordinal,
    Term,
    Whole,
    add,
    alike_in_order,
    content,
    denominators,
    free_of,
    free_of_term,
    merged,
    multiplied,
    single,
    term_key,
)
from gradcli.graph.exact import is_fraction
from gradcli.graph.text import constant_text
from gradcli.primitives import functions
from gradcli.primitives.sizes import named_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_reading import Reader
    from gradcli.formulas.index_terms import Factor, Sum

    Axes = tuple[Index, ...]

OR, AND, NOT, COMPARED, SUM, PRODUCT, FACTORS, SIGN, POWER, ATOM = range(-3, 7)  # x/y, A @ x or -x; x*y; (-x)
SIGNS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}
FOR_FRACTION = 2  # characters that a line of a fraction counts as, beside its own
LONGER = 2  # characters that brackets may cost
COLUMN = "[:, None]"  # makes a vector a column
FOR_COLUMN = 14  # characters that a column counts as, beside its own
MOST_TERMS = 12  # of a sum over one denominator
MOST_WRITTEN = 1000  # sums, for one formula
MOST_BOUND = 8  # indices that one product is summed over
SQUARES = re.compile(r"mean\(\(([\w.]+) - mean\(\1\)\)\*\*2\)")
VARIANCE = re.compile(r"var\(([\w.]+)\)")
SUM_OF_EXPONENTIALS = re.compile(r"sum\(exp\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)(, axis=-?\d)?\)")


class Text(NamedTuple):
    """A formula and how tightly its outermost operation binds; `covers` are the axes that it has."""

    text: str
    rank: int
    covers: tuple[Index, ...] = ()

    def inside(self, rank: int) -> str:
        """The text as an operand of an operation of this rank."""
        return self.text if self.rank >= rank else f"({self.text})"


class Array(NamedTuple):
    """Part of a product: powers of bases with the same free indices, or a chain of matrix products.

    A chain holds matrices, each with its row and column index; `end` is the vector behind them, if there is one.
    """

    indices: frozenset[Index]
    factors: tuple[Factor, ...] = ()
    chain: tuple[tuple[tuple[Array, ...], Index, Index], ...] = ()
    end: tuple[Array, ...] = ()
    written: Text | None = None
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
    return Term(common.coefficient, (*common.factors, (Group(left), Fraction(1))), ())


def _counted(term: Term) -> int:
    """How many entries a sum has that a term may show as a mean."""
    shown = len(term.bound) == 1 and all(term.bound[0] in free_of(base) for base, _ in term.factors)
    shown = shown and (len(term.factors) == 1 or len(free_of_term(term)) == 0)
    return term.bound[0].size if shown else 1


class Writer:
    """Writes the sums that a reader made; `sizes` are names for sizes that are primes."""

    def __init__(self, reader: Reader, sizes: Mapping[int, str] | None = None) -> None:
        self.names = reader.names
        self.data = reader.data
        self.decimals = reader.decimals
        self.shapes = reader.shapes
        self.sizes = sizes or {}
        self._pairs = tuple(combinations(self.sizes.items(), 2))
        self.written = 0  # sums, each as often as it is written to see which way is shorter
        self._texts: dict[tuple[int, Axes, bool], tuple[Sum, Text, int]] = {}  # each with the sums that it took

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
            return Text(f"zeros({self.shape(axes)})", ATOM, axes) if axes and exact else Text("0", ATOM)
        terms = self._paired(total) if len(total) > 2 else total
        ordered = sorted(terms, key=lambda term: (term.coefficient < 0, _is_transposed(term, axes)))
        text = self._factored(ordered, axes) or self._joined(ordered, axes)
        opened = self._opened(total[0]) if len(total) == 1 else None
        if opened is not None:  # u*(1/u - x/u**2) as (u - x)/u**2
            other = self._factored(opened, axes)
            text = other if other is not None and _cost(other) < _cost(text) else text
        return self._spread(text, axes) if exact and len(text.covers) < len(axes) else text

    def _joined(self, ordered: Sequence[Term], axes: Axes) -> Text:
        """The terms with their signs between them."""
        parts = [self.term(term._replace(coefficient=abs(term.coefficient)), axes) for term in ordered]
        covers = tuple(i for i in axes if any(i in part.covers for part in parts))
        lead = [part for part, term in zip(parts, ordered, strict=True) if term.coefficient < 0]
        if len(parts) == 1:
            text = parts[0]
            if lead:
                text = Text(f"-{text.inside(PRODUCT)}", SIGN if text.rank > PRODUCT else PRODUCT, text.covers)
        else:
            joined = ""
            for part, term in zip(parts, ordered, strict=True):
                negative = term.coefficient < 0
                if not joined:
                    joined = f"-{part.inside(PRODUCT)}" if negative else part.inside(SUM)
                else:
                    joined += f" {'-' if negative else '+'} {part.inside(PRODUCT)}"
            text = Text(joined, SUM)
        return text._replace(covers=covers)

    def _spread(self, text: Text, axes: Axes) -> Text:
        """An array that lacks some axes, repeated along them."""
        if not text.covers:
            ones = f"ones({self.shape(axes)})"
            return Text(ones if text.text == "1" else f"{text.inside(PRODUCT)}*{ones}", PRODUCT, axes)
        if len(axes) == 2 and text.covers == axes[1:]:
            return Text(f"outer(ones({self.size_text(axes[0].size)}), {text.text})", ATOM, axes)
        if len(axes) == 2 and text.covers == axes[:1]:
            return Text(f"{text.inside(PRODUCT)}*ones({self.shape(axes)})", PRODUCT, axes)
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
            if term.coefficient < 0:
                text = Text(f"-{text.inside(PRODUCT)}", PRODUCT, text.covers)
            texts.append(text)
        if not texts:
            return None
        plain = self._joined(terms, axes)
        best = min(texts, key=lambda text: len(text.text))
        spread = best.text.count(COLUMN) - plain.text.count(COLUMN)
        return best if len(best.text) + max(spread, 0) * FOR_COLUMN <= len(plain.text) + LONGER else plain

    def _opened(self, term: Term) -> Sum | None:
        """The terms of a product with one bracket, multiplied out."""
        groups = [base for base, exponent in term.factors if isinstance(base, Group) and exponent == 1]
        if len(groups) != 1 or term.bound or any(inner.bound for inner in groups[0].inside):
            return None
        rest = tuple([factor for factor in term.factors if factor[0] is not groups[0]])
        return add(multiplied((term._replace(factors=rest),), groups[0].inside, self.names))

    def _over_one_denominator(self, total: Sum) -> Term | None:
        """1/u - x/u**2 as (u - x)/u**2."""
        below = denominators(total)
        if not below or any(term.bound for term in total) or not alike_in_order(total):
            return None
        above: Sum = ()
        for term in total:
            raised = merged(term.coefficient, (*term.factors, *[(base, -exponent) for base, exponent in below]))
            product: Sum = (Term(raised.coefficient, (), ()),)
            for base, exponent in raised.factors:
                opens = isinstance(base, Group) and exponent == 1 and not any(inner.bound for inner in base.inside)
                product = multiplied(product, base.inside if opens else single(base, exponent), self.names)
                if len(product) > MOST_TERMS:
                    return None
            above = add(above, product)
        if not above:
            return None
        if len(above) == 1:
            return merged(above[0].coefficient, (*above[0].factors, *below))
        common, left = content(above)
        return merged(common.coefficient, (*common.factors, (Group(left), Fraction(1)), *below))

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
                return Term(common.coefficient, (*common.factors, (Group(left), Fraction(1)), *rest), (index,))
        return None

    # --- terms ------------------------------------------------------------------------------------------------------

    def term(self, term: Term, axes: Axes) -> Text:
        """A term with a positive coefficient; the text has the axes that it reads, and broadcasts along the others."""
        term = self._bordered(term, axes)
        bound = term.bound
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
        return min(texts, key=lambda text: len(text.text))

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

    def _contracted(self, factors: Sequence[Factor], order: Sequence[Index]) -> dict[frozenset[Index], list[Array]]:
        """The arrays that are left when the indices have been summed over, by the indices that they have."""
        groups: dict[frozenset[Index], list[Array]] = {}
        for base, exponent in factors:
            indices = frozenset(free_of(base))
            if len(indices) > 2:
                raise NoFormula("it has more than two axes")
            groups.setdefault(indices, []).append(Array(indices, ((base, exponent),)))
        left = list(order)
        while left:
            array = self._contract(groups, left.pop(0), left)
            groups.setdefault(array.indices, []).append(array)
        return groups

    def _contract(self, groups: dict[frozenset[Index], list[Array]], index: Index, left: list[Index]) -> Array:
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
            return Array(frozenset([row, column]), chain=(*links, *_links(groups.pop(last), index, column)))
        matrix = groups.pop(around[0])
        (other,) = around[0] - {index}
        if vector:
            chain, end = _links(matrix, other, index), tuple(vector)
            if len(vector) == 1 and vector[0].chain:  # A @ (B @ x)
                chain, end = (*chain, *vector[0].chain), vector[0].end
            return Array(frozenset([other]), chain=chain, end=end)
        rows = self._entries(matrix, (other, index))
        if other in left and not any(other in indices for indices in groups):  # the sum of all entries
            left.remove(other)
            total = self._trace(matrix, other, index)
            if total is None or total.text.count(".T") >= rows.text.count(".T"):
                total = Text(f"sum({rows.text})", ATOM)
            return Array(frozenset(), written=total, size=index.size * other.size)
        columns = self._entries(matrix, (index, other))
        short = len(columns.text) < len(rows.text)
        written = Text(f"sum({columns.text}, axis=0)" if short else f"sum({rows.text}, axis=-1)", ATOM)
        return Array(frozenset([other]), written=written, size=index.size)

    def _trace(self, matrices: Sequence[Array], row: Index, column: Index) -> Text | None:
        """The sum of all entries of A.T*B as trace(A @ B)."""
        limited = any(part.factors and isinstance(part.factors[0][0], Less) for part in matrices)
        if limited or len(matrices) != 2 or not all(map(self._is_plain, matrices)):
            return None
        ways = []
        for first, second in (matrices, matrices[::-1]):
            left = self._entries([first], (row, column)).inside(POWER)
            right = self._entries([second], (column, row)).inside(POWER)
            ways.append(f"trace({left} @ {right})")
        return Text(min(ways, key=lambda text: (text.count(".T"), len(text))), ATOM)

    def _total(self, vector: Sequence[Array], index: Index) -> Array:
        """The sum over the only index of a product of vectors."""
        if len(vector) == 1 and len(vector[0].factors) == 1:
            base, exponent = vector[0].factors[0]
            if exponent == 1 and isinstance(base, (Leaf, Whole)) and base.at == (index, index):
                diagonal = self._base(base, (index,))
                return Array(frozenset(), written=Text(diagonal.text.replace("diag(", "trace(", 1), ATOM))
        if len(vector) == 2 and all(map(self._is_plain, vector)):
            first, last = sorted(vector, key=lambda part: bool(part.chain))
            left = self._entries([first], (index,)).inside(POWER)
            if last.chain and not first.chain:
                right = self._chain(last, (index,), flat=True).text
            else:
                right = self._entries([last], (index,)).inside(POWER)
            return Array(frozenset(), written=Text(f"{left} @ {right}", PRODUCT))
        return Array(frozenset(), written=Text(f"sum({self._entries(vector, (index,)).text})", ATOM), size=index.size)

    @staticmethod
    def _is_plain(array: Array) -> bool:
        return bool(array.chain) or array.written is not None or (len(array.factors) == 1 and array.factors[0][1] == 1)

    def _product(self, coefficient: Fraction, groups: dict[frozenset[Index], list[Array]], axes: Axes) -> Text:
        """The arrays that are left, multiplied: numbers first, denominators last."""
        numbers = groups.pop(frozenset(), [])
        rest = [part for parts in groups.values() for part in parts]
        means = [part for part in (*numbers, *rest) if part.size and part.written is not None]
        if len(means) == 1 and coefficient.denominator > 1 and coefficient.denominator % means[0].size == 0:
            assert means[0].written is not None
            mean = means[0]._replace(written=Text(_variance(f"mean({means[0].written.text[4:]}"), ATOM))
            numbers = [mean if part is means[0] else part for part in numbers]
            groups = {own: [mean if part is means[0] else part for part in parts] for own, parts in groups.items()}
            coefficient *= means[0].size
        tops, bottoms = _split(numbers)
        array, below = self._outer(groups, axes)
        covers = tuple(i for i in axes if any(i in part.indices for part in rest))
        above = [self._written(part, ()) for part in tops]
        chained = array is not None and len(rest) == 1 and bool(rest[0].chain)  # 2*A @ x is read as it is meant
        coefficient, sizes_above, sizes_below = self._counted_out(coefficient)
        decimal = self._as_decimal(coefficient)
        p, q = (decimal, "1") if decimal is not None else (str(coefficient.numerator), str(coefficient.denominator))
        front = "*".join([text for text in (p, *sizes_above) if text != "1"])
        under = [text for text in (q, *sizes_below) if text != "1"]
        dens = [self._written(part, ()) for part in bottoms] + below
        if under and (front or (chained and not dens)):
            front = f"{front or 1}/{_bracketed([Text(part, ATOM) for part in under])}"
        else:
            dens = [*(Text(part, ATOM) for part in under), *dens]
        parts = above + ([array] if array is not None else [])
        if len(parts) == 1 and not front:
            text, rank = parts[0].text, parts[0].rank
        else:
            ranks = [FACTORS] * (len(parts) - 1) + [PRODUCT if chained else FACTORS]
            pairs = zip(parts, ranks, strict=False)
            texts = [f"({part.text})" if part.rank == SIGN else part.inside(rank) for part, rank in pairs]
            text = "*".join([front, *texts] if front else texts) or "1"
            rank = PRODUCT if parts or "*" in front or "/" in front else ATOM
        if dens:
            above_line = text if rank >= PRODUCT else f"({text})"
            text, rank = f"{above_line}/{_bracketed(dens)}", PRODUCT
        return Text(text, rank, covers)

    def size_text(self, size: int) -> str:
        """A size or a position by the names of sizes, where it is a sum of those."""
        return self.sizes.get(size) or named_size(size, self.sizes) or str(size)

    def shape(self, axes: Axes) -> str:
        """The sizes of axes as arguments of a call."""
        return ", ".join([self.size_text(index.size) for index in axes])

    def _counted_out(self, value: Fraction) -> tuple[Fraction, list[str], list[str]]:
        """A number without the named sizes in it, and those that stand above and below the line of a fraction.

        A size n less one is known by (n - 1)/2, which is prime as well, and n + m by its half.
        """
        above: list[str] = []
        below: list[str] = []
        known = [(size, size, name) for size, name in self.sizes.items()]
        known += [(size // 2, size - 1, f"({name} - 1)") for size, name in self.sizes.items()]
        known += [((m + n) // 2, m + n, f"({first} + {second})") for (m, first), (n, second) in self._pairs]
        for divisor, factor, text in known:
            while value.numerator % divisor == 0:
                value /= factor
                above.append(text)
            while value.denominator % divisor == 0:
                value *= factor
                below.append(text)
        return value, above, below

    def _as_decimal(self, coefficient: Fraction) -> str | None:
        if not self.decimals or coefficient.denominator == 1:
            return None
        text, _ = constant_text(coefficient)
        return None if "/" in text or len(text) > 8 else text

    def _outer(self, groups: dict[frozenset[Index], list[Array]], axes: Axes) -> tuple[Text | None, list[Text]]:
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
            return Text(f"diag({self._entries(rows, axes[:1]).text})", ATOM), []
        if matrix and bool(rows) != bool(columns) and not _split(rows or columns)[0]:
            top, below = self._quotient(matrix, axes)
            _, under = self._quotient(rows or columns, axes[:1] if rows else axes[1:])
            return top, below + ([_column(_times(under))] if rows else under)
        texts = [self._entries(matrix, axes)] if matrix else []
        row, column = [self._entries(part, axis) for part, axis in ((rows, axes[:1]), (columns, axes[1:]))]
        if rows and columns:
            texts.append(Text(f"outer({row.text}, {column.text})", ATOM))
        else:
            texts.append(_column(row) if rows else column)
        return _times(texts), []

    def _quotient(self, parts: Sequence[Array], order: Axes) -> tuple[Text | None, list[Text]]:
        orders = [part for part in parts if part.factors and isinstance(part.factors[0][0], Less)]
        if orders:
            return self._limited(orders, [part for part in parts if part not in orders], order), []
        tops, bottoms = [[self._written(part, order) for part in some] for some in _split(parts)]
        return _times(tops) if tops else None, bottoms

    def _limited(self, orders: Sequence[Array], rest: Sequence[Array], order: Axes) -> Text:
        """A product that is 0 where positions are not in their order: triangles of a matrix, parts of a vector."""
        text = self._entries(rest, order) if rest else Text(f"ones({self.shape(order)})", ATOM)
        for part in orders:
            own = parts_of_position(difference(*part.factors[0][0]))
            steps = dict(own.parts)
            if not steps.keys() <= set(order) or not {abs(step) for step in steps.values()} <= {1}:
                raise NoFormula("it has a condition that no script can write")
            if len(steps) == 2:  # start + row - column < 0
                start = own.start if steps[order[0]] == 1 else -own.start
                name, k = ("triu", start + 1) if steps[order[0]] == 1 else ("tril", start - 1)
                text = Text(f"{name}({text.text}{f', {k}' if k else ''})", ATOM)
                continue
            ((index, step),) = steps.items()
            sign, bound = ("<", -own.start) if step == 1 else (">", own.start)
            condition = f"arange({self.size_text(index.size)}) {sign} {self.size_text(bound)}"
            condition = f"({condition}){COLUMN}" if index != order[-1] else condition
            text = Text(f"where({condition}, {text.text}, 0)", ATOM)
        return text

    def _entries(self, parts: Sequence[Array], order: Axes) -> Text:
        """The product of arrays entry by entry."""
        vectors = [part for part in parts if len(part.indices) == 1]
        if vectors and len(parts) > 1 and len(order) == 2:  # a vector beside a matrix scales it along an axis
            (index,) = vectors[0].indices
            matrix = self._entries([part for part in parts if len(part.indices) == 2], order)
            scale = self._entries(vectors, (index,))
            return _times([matrix, _column(scale) if index == order[0] else scale])
        text, below = self._quotient(parts, order)
        text = text or Text("1", ATOM)
        return Text(f"{text.inside(PRODUCT)}/{_bracketed(below)}", PRODUCT) if below else text

    # --- arrays -------------------------------------------------------------------------------------------------------

    def _written(self, array: Array, order: Axes) -> Text:
        if array.written is not None:
            return array.written
        if array.chain:
            return self._chain(array, order)
        base, exponent = array.factors[0]
        return self._power(base, abs(exponent), order)

    def _chain(self, array: Array, order: Axes, flat: bool = False) -> Text:
        """A product of matrices, from left to right; what a vector ends is in brackets."""
        links = array.chain
        if not array.end and links[0][1] != order[0]:  # the transpose of a product
            links = tuple([(parts, column, row) for parts, row, column in reversed(links)])
        if array.end:
            text, joined = self._entries(array.end, (links[-1][2],)), False
        else:
            parts, row, column = links[-1]
            links, text, joined = links[:-1], self._entries(parts, (row, column)), False
        for parts, row, column in reversed(links):
            base, exponent = parts[0].factors[0] if len(parts) == 1 and parts[0].factors else (None, 0)
            if isinstance(base, Whole) and base.name == ONE_HOT and base.at == (row, column) and exponent == 1:
                labels = self._labels(base)
                chosen = f"{text.inside(ATOM)}[{labels}]"  # eye(n)[labels] @ x
                text = Text(f"sort({text.text})" if labels == f"argsort({text.text})" else chosen, ATOM)
            else:
                right = text.text if joined and (flat or not array.end) else text.inside(POWER)
                left = self._entries(parts, (row, column)).inside(POWER)
                text, joined = Text(f"{left} @ {right}", PRODUCT), True
        return text

    def _labels(self, base: Whole) -> str:
        """The positions of the ones in the rows of a matrix."""
        if base.args:
            ((own, labels),) = base.args
            return self.sum(labels, own).text
        return str(list(dict(base.params)["positions"]))

    def _power(self, base: Any, exponent: Fraction, order: Axes) -> Text:
        """A positive power of a base."""
        if isinstance(base, Group) and exponent.denominator == 2:
            length = self._length(base, order)
            if length is not None:
                return length if exponent == Fraction(1, 2) else Text(f"{length.text}**{exponent.numerator}", POWER)
        text = self._base(base, order)
        if exponent == 1:
            return text
        if exponent == Fraction(1, 2):
            deviation = VARIANCE.fullmatch(text.text)
            return Text(f"std({deviation[1]})" if deviation else f"sqrt({text.text})", ATOM)
        if exponent.denominator == 1:
            return Text(f"{text.inside(ATOM)}**{exponent.numerator}", POWER)
        return Text(f"{text.inside(ATOM)}**({exponent})", POWER)

    def _length(self, base: Group, order: Axes) -> Text | None:
        """The square root of a sum of squares."""
        if order or len(base.inside) != 1:
            return None
        term = base.inside[0]
        even = all(exponent.numerator % 2 == 0 and exponent.denominator == 1 for _, exponent in term.factors)
        if not even or term.coefficient != 1 or not 0 < len(term.bound) < 3:
            return None
        halves = tuple([(base, exponent / 2) for base, exponent in term.factors])
        root = self.sum((Term(Fraction(1), halves, ()),), term.bound, exact=False)
        if set(root.covers) != set(term.bound):
            return None
        return Text(f"norm({root.text})", ATOM)

    def _base(self, base: Any, order: Axes) -> Text:
        if isinstance(base, Number):
            return Text(self.size_text(int(base.text)) if base.text.isdigit() else base.text, ATOM)
        if isinstance(base, Leaf):
            return self._entry(base.name, base.at, self.shapes[base.name], order)
        if isinstance(base, Literal):
            return self._literal(base, order)
        if isinstance(base, Ordinal):
            (index,) = indices_in(base.at)
            return Text(f"arange({self.size_text(index.size)})", ATOM)
        if isinstance(base, Less):
            return self._limited([Array(frozenset(order), ((base, Fraction(1)),))], [], order)
        if isinstance(base, Delta):
            if isinstance(base.left, int) or isinstance(base.right, int):
                raise NoFormula("it is part of an identity matrix")
            at = tuple(base if indices_in([base.left]) == order[:1] else base[::-1])
            count = 1 + max([span(position)[1] for position in at])
            return self._entry(f"eye({self.size_text(count)})", at, (count, count), order)
        if isinstance(base, Group):
            return self.sum(base.inside, order)
        if isinstance(base, Whole):
            return self._whole(base, order)
        assert isinstance(base, Call)
        return self._call(base, order)

    def _whole(self, base: Whole, order: Axes) -> Text:
        if base.name == EIGENVECTORS:
            raise NoFormula("it reads eigenvectors one by one")
        params = dict(base.params)
        if base.name == ONE_HOT:
            size = params["size"]
            rows = [i.size for i in base.args[0][0]] if base.args else [len(params["positions"])]
            return self._entry(f"eye({self.size_text(size)})[{self._labels(base)}]", base.at, (*rows, size), order)
        texts = [self.sum(arg, own).text for own, arg in base.args]
        own = [i.size for i in base.args[0][0]]  # the shape of its first argument
        axes = (axes,) if isinstance(axes := params.get("axis", ()), int) else axes  # argmax has one
        removed = {axis % len(own) for axis in axes} if len(own) > len(base.at) else set()
        shape = tuple([size for axis, size in enumerate(own) if axis not in removed][: len(base.at)])
        if base.name == "pad":
            widths = params.pop("pad_width")
            shape = tuple([size + sum(more) for size, more in zip(own, widths, strict=True)])
            sides = [f"({self.size_text(before)}, {self.size_text(after)})" for before, after in widths]
            texts.append(f"({', '.join(sides)})" if len(own) > 1 else sides[0])
        if len(own) == 1 and len(base.args) == 1:
            params.pop("axis", None)
        texts += [f"{name}={_static(value)}" for name, value in params.items()]
        return self._entry(f"{base.name}({', '.join(texts)})", base.at, shape, order)

    def _call(self, base: Call, order: Axes, truth: bool = False) -> Text:
        name = base.name
        if name in SIGNS:
            args = [self.sum(arg, order, exact=False) for arg in base.args]
            text = Text(f"{args[0].inside(SUM)} {SIGNS[name]} {args[1].inside(SUM)}", COMPARED)
        elif name in ("and", "or"):
            rank = AND if name == "and" else OR
            text = Text(f" {name} ".join(self._truth(arg, order).inside(rank + 1) for arg in base.args), rank)
        elif name == "not":
            text = Text(f"not {self._truth(base.args[0], order).inside(COMPARED)}", NOT)
        elif name == "where":
            condition = self._truth(base.args[0], order)
            args = [self.sum(arg, order, exact=False) for arg in base.args[1:]]
            return Text(f"where({', '.join([condition.text, *(arg.text for arg in args)])})", ATOM)
        elif name == "pow":
            args = [self.sum(arg, order, exact=False) for arg in base.args]
            return Text(f"{args[0].inside(ATOM)}**{args[1].inside(POWER)}", POWER)
        else:
            texts = [self.sum(arg, order, exact=len(base.args) == 1).text for arg in base.args]
            if name == "log" and (exponentials := SUM_OF_EXPONENTIALS.fullmatch(texts[0])):
                return Text(f"logsumexp({exponentials[1]}{exponentials[2] or ''})", ATOM)
            return Text(f"{name}({', '.join(_arguments(name, texts, base.params))})", ATOM)
        return text if truth else Text(f"where({text.text}, 1, 0)", ATOM)

    def _truth(self, total: Sum, order: Axes) -> Text:
        """A condition."""
        if len(total) == 1 and total[0].coefficient == 1 and len(total[0].factors) == 1 and not total[0].bound:
            base = total[0].factors[0][0]
            if isinstance(base, Call) and (base.name in COMPARISONS or base.name in ("and", "or", "not")):
                return self._call(base, order, truth=True)
        raise NoFormula("it has a condition that no script can write")

    def _entry(self, text: str, at: tuple[Position, ...], shape: Sequence[int], order: Axes) -> Text:
        """Entries of an array of this shape: all of them, part of them, its diagonal, or its transpose."""
        if len(shape) != len(at):
            raise NoFormula("it reads part of an array")
        indices = [i for position in at for i in indices_in([position])]
        if len(at) == 2 and at[0] == at[1] and indices and (indices[0].size,) * 2 == tuple(shape):
            return Text(f"diag({text})", ATOM)
        if len(set(indices)) != len(indices):
            raise NoFormula("it is a diagonal in several axes")
        places = [self._places(position, size) for position, size in zip(at, shape, strict=True)]
        while places and places[-1] == ":":
            places.pop()
        text += f"[{', '.join(places)}]" if places else ""
        if tuple(indices) == order:
            return Text(text, ATOM)
        if tuple(indices) == order[::-1]:
            return Text(f"{text}.T", ATOM)
        raise NoFormula("it exchanges axes")

    def _places(self, at: Position, size: int) -> str:
        """A position, or a slice, of an axis of this size."""
        if isinstance(at, int):
            return str(at)
        own = parts_of_position(at)
        if len(own.parts) > 1:
            raise NoFormula("it mixes axes by a reshape")
        ((index, step),) = own.parts
        stop = own.start + step * index.size
        first = "" if own.start == (0 if step > 0 else size - 1) else self._place(own.start, size)
        last = "" if (stop >= size if step > 0 else stop < 0) else self._place(stop, size)
        return f"{first}:{last}{'' if step == 1 else f':{step}'}"

    def _place(self, at: int, size: int) -> str:
        """A position, from the end where only that is the same for all sizes."""
        return str(at - size) if size in self.sizes and 2 * at > size else self.size_text(at)

    def _literal(self, base: Literal, order: Axes) -> Text:
        value = self.data[base.digest]
        flat, shape = getattr(value, "flat", None), tuple(value.shape)
        if flat is None or not all(isinstance(i, Index) for i in base.at) or len(set(base.at)) < len(base.at):
            raise NoFormula("it reads an entry of a constant array")
        if len(shape) > 2 or len(list(flat)) > 9:
            raise NoFormula("it contains a large constant array")
        entries = [
            constant_text(entry)[0] if isinstance(entry, int) or is_fraction(entry) else repr(float(entry))
            for entry in flat
        ]
        return self._entry(list_text(entries, shape), base.at, shape, order)


def list_text(entries: Sequence[str], shape: Sequence[int]) -> str:
    """The entries of a vector or a matrix as a list of the language."""
    rows, width = shape if len(shape) == 2 else (1, len(entries))
    lists = [f"[{', '.join(entries[i * width : (i + 1) * width])}]" for i in range(rows)]
    return f"[{', '.join(lists)}]" if len(shape) == 2 else lists[0]


def _column(vector: Text) -> Text:
    """A vector as a column, which scales rows."""
    return Text(f"{vector.inside(ATOM)}{COLUMN}", ATOM)


def _cost(text: Text) -> int:
    """How hard a text is to read: one fraction is better than a fraction of fractions."""
    return len(text.text) + FOR_FRACTION * text.text.count("/")


def _variance(mean: str) -> str:
    """The mean of the squares of x - mean(x) as var(x)."""
    squares = SQUARES.fullmatch(mean)
    return f"var({squares[1]})" if squares else mean


def _place_in_products(factor: Factor) -> Any:
    """Numbers first, then inputs, functions and brackets; entries of inputs by their names and positions."""
    base, _ = factor
    kinds: tuple[Any, ...] = (Number, (Leaf, Literal, Delta), Whole, Call)
    kind = next((place for place, own in enumerate(kinds) if isinstance(base, own)), len(kinds))
    fixed = isinstance(base, Leaf) and all(isinstance(i, int) for i in base.at)
    return kind, (base.name.casefold(), base.name, base.at) if fixed else ("",)


def _is_transposed(term: Term, axes: Axes) -> bool:
    """Whether a term is an input with its axes exchanged: A + A.T is how people write it."""
    base = term.factors[0][0] if len(term.factors) == 1 else None
    return isinstance(base, Leaf) and len(axes) == 2 and base.at == axes[::-1]


def _links(parts: Sequence[Array], row: Index, column: Index) -> tuple[Any, ...]:
    """Matrices that are multiplied entry by entry as a link of a chain; a chain alone gives its own links."""
    if len(parts) == 1 and parts[0].chain and not parts[0].end:
        links = parts[0].chain
        if links[0][1] != row:
            links = tuple([(inner, last, first) for inner, first, last in reversed(links)])
        return links
    return ((tuple(parts), row, column),)


def _split(parts: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """What stands above the line of a fraction, and what below."""
    below = [part for part in parts if part.factors and part.factors[0][1] < 0]
    return [part for part in parts if part not in below], below


def _times(texts: Sequence[Text]) -> Text:
    """A product entry by entry."""
    return texts[0] if len(texts) == 1 else Text("*".join([part.inside(FACTORS) for part in texts]), FACTORS)


def _bracketed(factors: Sequence[Text]) -> str:
    """What stands below the line of a fraction."""
    texts = [factor.inside(SIGN) for factor in factors]
    return texts[0] if len(texts) == 1 else f"({'*'.join(texts)})"


def _arguments(name: str, texts: list[str], params: Sequence[tuple[str, Any]]) -> list[str]:
    """What stands between the brackets of a call: operands, and static parameters by name, or first where they are."""
    call = functions()[name].call if name in functions() else None
    names = () if call is None else call.__code__.co_varnames[: call.__code__.co_argcount]
    values = {key: _static(value) for key, value in params}
    first = [values.pop(key) for key in names[: len(params)] if key in values and key == names[0]]
    return [*first, *texts, *(f"{key}={value}" for key, value in values.items())]


def _static(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_static, value))
        return inner if len(value) == 1 else f"({inner})"
    if is_fraction(value):
        return constant_text(value)[0]
    return repr(value)
