"""Sums of products in index notation: the normal form in which gradients become formulas.

In `A[i,k]*x[k]` with k summed a transpose is another order of indices, a sum is a bound index, and what broadcasts
has no such index; so reshapes and transposes need no rules of their own. A `Sum` is a tuple of `Term`s, a term a
coefficient, factors with exponents, and bound indices. A sum of several terms that is multiplied stays in brackets
(`BracketedSum`).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gradcli.formulas.index_positions import (
    Index,
    IndexPosition,
    difference,
    indices_in,
    moved,
    parts_of_position,
    sides_of,
    solution,
)
from gradcli.primitives import comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradcli.base.diagnostics import Span
    from gradcli.formulas.index_positions import Position

DEEPEST = 24  # levels of functions and brackets inside each other
MOST_FACTORS = 600  # of one sum, those inside brackets counted too


class NoFormula(Exception):
    """A computation that index notation does not write; `span` is where it comes from."""

    span: Span | None = None


class TooLong(NoFormula):
    """A computation that index notation does not write in a few lines, neither as one array nor entry by entry."""


class NoValue(NoFormula):
    """A computation that divides by 0."""


class InputEntry(NamedTuple):
    """An entry of an input: `A[i, 0]`; of a symmetric matrix it is the entry [0, i] as well."""

    name: str
    at: tuple[Position, ...]
    symmetric: bool = False


class Delta(NamedTuple):
    """1 where two positions are equal, else 0."""

    left: Position
    right: Position


class Less(NamedTuple):
    """1 where a position is in front of another one, else 0. What it multiplies counts only where it is 1."""

    left: Position
    right: Position


class Ordinal(NamedTuple):
    """A position as a number."""

    at: tuple[Position, ...]


class Irrational(NamedTuple):
    """A number that is not a fraction: pi, or the 2 of the square root of 2."""

    text: str


class Literal(NamedTuple):
    """An entry of an array that is written out."""

    digest: str
    at: tuple[Position, ...]


class EntrywiseCall(NamedTuple):
    """A function of numbers, applied entry by entry; comparisons are 1 or 0."""

    name: str
    params: tuple[tuple[str, Any], ...]
    args: tuple[Sum, ...]


class Whole(NamedTuple):
    """An entry of what a function makes of whole arrays; each array has indices of its own."""

    name: str
    params: tuple[tuple[str, Any], ...]
    args: tuple[tuple[tuple[Index, ...], Sum], ...]
    at: tuple[Position, ...]


class BracketedSum(NamedTuple):
    """A sum in brackets."""

    inside: Sum


Factor = tuple[Any, Fraction]  # a base (one of the classes above) and its exponent


class Term(NamedTuple):
    """A coefficient times powers, summed over the bound indices."""

    coefficient: Fraction
    factors: tuple[Factor, ...]
    bound: tuple[Index, ...]


Sum = tuple[Term, ...]
ZERO: Sum = ()
ONE: Sum = (Term(Fraction(1), (), ()),)
COMPARISONS = tuple([primitive.name for primitive in comparison.COMPARISONS.values()])
TRUTHS = (*COMPARISONS, "and", "or", "not")
SHALLOW = (InputEntry, Delta, Less, Ordinal, Irrational, Literal)
EIGENVECTORS, EIGENVALUES = "eigvecs", "eigvalsh"  # of a symmetric matrix
ONE_HOT = "one_hot"  # of labels: 1 where the last index is the label, else 0
ABOVE = "above 0"  # a function: 1 where a number is positive, else 0
MOST_KEPT = 2000  # bases whose keys and free indices are kept

Kept = TypeVar("Kept")

_KEYS: dict[int, tuple[Any, str]] = {}  # of bases, by their identity: a base stands in many sums, one after the other
_FREE: dict[int, tuple[Any, tuple[Index, ...]]] = {}
_SYMMETRIC: dict[int, tuple[Any, bool]] = {}  # of the arguments of inverses


def _kept(table: dict[int, tuple[Any, Kept]], base: Any, make: Callable[[Any], Kept]) -> Kept:
    """What was made of a base; the table also holds the base, so that no other object gets its identity."""
    known = table.get(id(base))
    if known is None:
        if len(table) >= MOST_KEPT:
            table.clear()
        known = table[id(base)] = base, make(base)
    return known[1]


def number(value: Fraction | int) -> Sum:
    """A fraction as a sum."""
    return (Term(Fraction(value), (), ()),) if value else ZERO


def single(base: Any, exponent: Fraction | int = 1) -> Sum:
    """A power as a sum."""
    return (Term(Fraction(1), ((base, Fraction(exponent)),), ()),)


def ordinal(position: Position) -> Sum:
    """A position as a number."""
    own = parts_of_position(position)
    return add(number(own.start), *[scaled(single(Ordinal((index,))), step) for index, step in own.parts])


def _decided(base: Delta | Less, gap: Position) -> bool | None:
    """Whether positions are equal, or one is in front of the other, if their difference shows that for all sizes."""
    start, parts = parts_of_position(gap)
    if isinstance(base, Less) and parts:
        downward, upward = all(step < 0 for _, step in parts), all(step > 0 for _, step in parts)
        return True if downward and start < 0 else False if upward and start >= 0 else None
    return (start < 0 if isinstance(base, Less) else start == 0) if not parts else None


def before(left: Position, right: Position) -> Sum:
    """1 where a position is in front of another one, else 0."""
    base = Less(left, right)
    value = _decided(base, difference(left, right))
    return single(base) if value is None else ONE if value else ZERO


def value_of(total: Sum) -> Fraction | None:
    """The number that a sum is; None where it has factors."""
    if not total:
        return Fraction(0)
    return total[0].coefficient if len(total) == 1 and not total[0].factors else None


# --- indices ----------------------------------------------------------------------------------------------------


def free_of(base: Any) -> tuple[Index, ...]:
    """The free indices of a base, in the order in which they stand there."""
    return _free(base) if type(base) in SHALLOW else _kept(_FREE, base, _free)


def _free(base: Any) -> tuple[Index, ...]:
    if isinstance(base, (InputEntry, Literal, Whole, Delta, Less, Ordinal)):
        return indices_in(base if isinstance(base, (Delta, Less)) else base.at)
    if isinstance(base, EntrywiseCall):
        return tuple(dict.fromkeys(i for arg in base.args for i in free(arg)))
    return free(base.inside) if isinstance(base, BracketedSum) else ()


def free_of_term(term: Term) -> tuple[Index, ...]:
    """The free indices of a term."""
    return tuple(i for i in dict.fromkeys(i for base, _ in term.factors for i in free_of(base)) if i not in term.bound)


def free(total: Sum) -> tuple[Index, ...]:
    """The free indices of a sum."""
    return tuple(dict.fromkeys(i for term in total for i in free_of_term(term)))


class FreshIndices:
    """New indices: numbers in the order in which they are made, so that formulas do not vary from run to run."""

    def __init__(self, symbols: Mapping[int, str] | None = None) -> None:
        self.count = 0
        self.symbols = symbols or {}  # names of sizes, which are primes then

    def index(self, size: int) -> Index:
        """An index that no term has."""
        self.count += 1
        return Index(self.count, size)

    def repeated(self, term: Term, index: Index) -> Term:
        """The sum over all values of an index that a term does not read."""
        return term._replace(coefficient=term.coefficient * index.size)

    def put(self, total: Sum, changes: Mapping[Any, Position]) -> Sum:
        """A sum with other free indices; its bound indices are new ones. What stays as it is stays the same object."""
        terms = tuple([new for term in total for new in self._term(term, changes)])
        return total if len(terms) == len(total) and all(map(is_, terms, total)) else terms

    def _term(self, term: Term, changes: Mapping[Any, Position]) -> Iterator[Term]:
        inner = {**changes, **{i: self.index(i.size) for i in term.bound}}
        factors, positions = [], []
        for base, exponent in term.factors:
            new = self._base(base, inner)
            gap = difference(*new) if isinstance(new, (Delta, Less)) and new is not base else None
            if isinstance(new, Ordinal) and not isinstance(new.at[0], Index):
                positions.append(power(ordinal(new.at[0]), exponent))
            elif gap is None or (value := _decided(new, gap)) is None:
                factors.append((new, exponent))
            elif not value:
                return
        if not term.bound and len(factors) == len(term.factors):
            if all(new is base for (new, _), (base, _) in zip(factors, term.factors, strict=True)):
                yield term
                return
        bound = tuple([i for i in (inner[i] for i in term.bound) if isinstance(i, Index)])
        results: Sum = (Term(term.coefficient, tuple(factors), ()),)
        for position in positions:
            results = multiplied(results, position, self)
        for result in [own._replace(bound=bound) for own in results]:
            for place, (base, _) in enumerate(factors if bound else ()):
                if isinstance(base, Delta) and (fewer := solved(result, place, self)) is not None:
                    yield from fewer
                    break
            else:
                yield result

    def _base(self, base: Any, changes: Mapping[Any, Position]) -> Any:
        def new(at: Iterable[Position]) -> tuple[Position, ...]:
            return tuple([moved(i, changes) for i in at])

        if isinstance(base, (InputEntry, Literal, Whole, Ordinal)):  # the arrays of a whole have no free indices
            at = new(base.at)
            return base if at == base.at else base._replace(at=at)
        if isinstance(base, (Delta, Less)):
            at = new(base)
            return base if at == base else type(base)(*at)
        if isinstance(base, EntrywiseCall):
            args = tuple([self.put(arg, changes) for arg in base.args])
            return base if all(map(is_, args, base.args)) else base._replace(args=args)
        if isinstance(base, BracketedSum):
            inside = self.put(base.inside, changes)
            return base if inside is base.inside else BracketedSum(inside)
        return base


# --- keys: equal for what differs in the names of bound indices only ----------------------------------------------


def key(total: Sum, names: Mapping[Index, str] | None = None) -> str:
    """A text that is the same for sums that are equal up to the order of terms and the names of bound indices."""
    return " + ".join(sorted([f"{term.coefficient}*{term_key(term, names or {})}" for term in total]))


def term_key(term: Term, names: Mapping[Index, str]) -> str:
    """The key of a term without its coefficient."""
    if not term.bound:
        return "*".join(sorted([_power_key(factor, names) for factor in term.factors]))
    colours = {i: f"<{i.size}>" for i in term.bound}
    for _ in range(2 if len(term.bound) > 1 else 0):  # an index is known by the factors that it stands in
        known = {**names, **colours}
        finer = {}
        for i in term.bound:
            marked = {**known, i: "<*>"}
            finer[i] = "&".join(sorted([_power_key(f, marked) for f in term.factors if i in free_of(f[0])]))
        ranks = {colour: rank for rank, colour in enumerate(sorted(set(finer.values())))}
        colours = {i: f"<{i.size}.{ranks[finer[i]]}>" for i in term.bound}
    ordered = sorted(term.bound, key=lambda i: (colours[i], i.number))
    known = {**names, **{i: f"<{len(names)}.{place}:{i.size}>" for place, i in enumerate(ordered)}}
    return "*".join(sorted([_power_key(factor, known) for factor in term.factors]))


def _power_key(factor: Factor, names: Mapping[Index, str]) -> str:
    base, exponent = factor
    return f"{base_key(base, names)}^{exponent}"


def base_key(base: Any, names: Mapping[Index, str]) -> str:
    """The key of a base."""
    return _base_key(base, names) if names else _kept(_KEYS, base, lambda own: _base_key(own, {}))


def _base_key(base: Any, names: Mapping[Index, str]) -> str:

    def text(position: Position, sign: int = 1) -> str:
        if isinstance(position, Index):
            return names.get(position, f"#{position.number}")
        own = parts_of_position(position)
        parts = [(names.get(i, f"#{i.number}"), sign * step) for i, step in own.parts]
        shown = sorted([name if step == 1 else f"{step}*{name}" for name, step in parts])
        return "+".join(shown + [str(sign * own.start)] * (own.start != 0 or not shown))

    def at(positions: Iterable[Position], either: bool = False) -> str:
        return ",".join(sorted(map(text, positions)) if either else map(text, positions))

    if isinstance(base, InputEntry):
        return f"{base.name}[{at(base.at, is_symmetric(base))}]"
    if isinstance(base, Literal):
        return f"data {base.digest}[{at(base.at)}]"
    if isinstance(base, Delta):
        sides = tuple(base)
        if isinstance(base.left, IndexPosition) or isinstance(base.right, IndexPosition):
            gap = parts_of_position(difference(*base))
            if gap.start or sorted([step for _, step in gap.parts]) != [-1, 1]:
                return f"delta[{min(text(gap), text(gap, -1))}]"
            sides = tuple([index for index, _ in gap.parts])
        return f"delta[{','.join(sorted(map(text, sides)))}]"
    if isinstance(base, Less):
        return f"less[{text(difference(*base))}]"
    if isinstance(base, Ordinal):
        return f"ordinal[{at(base.at)}]"
    if isinstance(base, Irrational):
        return base.text
    if isinstance(base, EntrywiseCall):
        return f"{base.name}{base.params}({'; '.join([key(arg, names) for arg in base.args])})"
    if isinstance(base, Whole):
        inner = [key(arg, {i: f"<arg {place}:{i.size}>" for place, i in enumerate(own)}) for own, arg in base.args]
        return f"whole {base.name}{base.params}({'; '.join(inner)})[{at(base.at, is_symmetric(base))}]"
    return f"({key(base.inside, names)})"


def is_symmetric(base: InputEntry | Whole) -> bool:
    """Whether a base is an entry of a symmetric matrix: of a symmetric input, or the inverse of such a matrix."""
    if isinstance(base, InputEntry):
        return base.symmetric
    return base.name == "inv" and len(base.args[0][0]) == 2 and _kept(_SYMMETRIC, base.args, _equals_its_transpose)


def _equals_its_transpose(args: tuple[tuple[tuple[Index, ...], Sum], ...]) -> bool:
    (row, column), matrix = args[0]
    return key(matrix, {row: "<row>", column: "<column>"}) == key(matrix, {row: "<column>", column: "<row>"})


# --- arithmetic ---------------------------------------------------------------------------------------------------


def add(*parts: Sum) -> Sum:
    """The sum of sums: equal terms are collected, brackets that nothing multiplies go."""
    terms: dict[str, Term] = {}
    for part in parts:
        for term in _unbracketed(part):
            own = term_key(term, {})
            known = terms.get(own)
            total = term.coefficient + (known.coefficient if known is not None else 0)
            terms[own] = (known or term)._replace(coefficient=total)
    kept = tuple([term for term in terms.values() if term.coefficient])
    within_limits(kept)
    return kept


def _unbracketed(total: Sum) -> Iterator[Term]:
    for term in total:
        if not term.bound and len(term.factors) == 1:
            base, exponent = term.factors[0]
            if isinstance(base, BracketedSum) and exponent == 1:
                for inner in _unbracketed(base.inside):
                    yield inner._replace(coefficient=inner.coefficient * term.coefficient)
                continue
        yield term


def scaled(total: Sum, by: Fraction | int) -> Sum:
    """A sum times a number."""
    return tuple([term._replace(coefficient=term.coefficient * by) for term in total]) if by else ZERO


def times(left: Sum, right: Sum, *, entries: bool = True) -> Sum:
    """The product of two sums; with `entries` a product entry by entry, in which sums over an index keep together."""
    if not left or not right:
        return ZERO
    for factor, rest in ((left, right), (right, left)):
        constant = value_of(factor)
        if constant is not None:
            return scaled(rest, constant)
    shared = entries and not set(free(left)).isdisjoint(free(right))
    x, y = (_as_term(part, shared) for part in (left, right))
    return (merged(x.coefficient * y.coefficient, (*x.factors, *y.factors), (*x.bound, *y.bound)),)


def _as_term(total: Sum, together: bool) -> Term:
    """A sum as one term: in brackets where it has several terms, or sums over an index and must keep together."""
    if len(total) == 1:
        term = total[0]
        if not term.bound or (free_of_term(term) and not together):
            return term
        outside = [factor for factor in term.factors if set(free_of(factor[0])).isdisjoint(term.bound)]
        inside = tuple([factor for factor in term.factors if factor not in outside])
        group = BracketedSum((Term(Fraction(1), inside, term.bound),))
        return Term(term.coefficient, (*outside, (group, Fraction(1))), ())
    return bracketed(total)


def merged(coefficient: Fraction, factors: Sequence[Factor], bound: tuple[Index, ...] = ()) -> Term:
    """A term whose equal bases are one power each."""
    powers: dict[str, Factor] = {}
    for base, exponent in factors:
        own = base_key(base, {})
        known = powers.get(own)
        powers[own] = (base, exponent + (known[1] if known is not None else 0))
    kept = []
    for base, exponent in powers.values():
        if isinstance(base, Irrational) and base.text.isdigit():  # whole powers are part of the coefficient
            value = int(base.text)
            whole = exponent.numerator // exponent.denominator
            if whole < 0 and coefficient.numerator % value and exponent != whole:
                whole += 1  # 1/sqrt(2) stays as it is
            coefficient *= Fraction(value) ** whole
            exponent -= whole
        if exponent:
            kept.append((base, Fraction(1) if isinstance(base, Less) else exponent))
    return Term(coefficient, tuple(kept), bound)


def bracketed(total: Sum) -> Term:
    """A sum of several terms as one term: what all of them have in common stands before the brackets."""
    common, rest = content(total)
    return Term(common.coefficient, (*common.factors, (BracketedSum(rest), Fraction(1))), ())


def content(total: Sum) -> tuple[Term, Sum]:
    """What all terms have in common, and what is left of each."""
    sizes = [abs(term.coefficient) for term in total]
    factor = Fraction(1)
    if len(set(sizes)) == 1:
        factor = sizes[0]
    elif all(size.denominator == 1 for size in sizes):
        factor = Fraction(gcd(*[size.numerator for size in sizes]))
    if all(term.coefficient < 0 for term in total):
        factor = -factor
    common: list[Factor] = []
    tables = [{base_key(base, {}): exponent for base, exponent in term.factors} for term in total]
    limited = not alike_in_order(total)
    for base, _ in total[0].factors:
        own = base_key(base, {})
        if limited and len(free_of(base)) > 1:  # it may have no value outside of that order
            continue
        if all(own in table for table in tables) and not set(free_of(base)) & set(total[0].bound):
            exponents = [table[own] for table in tables]
            if all(e > 0 for e in exponents):
                common.append((base, min(exponents)))
            elif all(e < 0 for e in exponents):
                common.append((base, max(exponents)))
    inverse = [(base, -exponent) for base, exponent in common]
    rest = [merged(term.coefficient / factor, (*term.factors, *inverse), term.bound) for term in total]
    return Term(factor, tuple(common), ()), tuple(rest)


def alike_in_order(total: Sum) -> bool:
    """Whether the order of positions is the same in all terms, so that what they have in common may stand outside."""
    orders = [sorted([base_key(base, {}) for base, _ in term.factors if isinstance(base, Less)]) for term in total]
    return all(own == orders[0] for own in orders)


def multiplied(left: Sum, right: Sum, names: FreshIndices) -> Sum:
    """The product of two sums, term by term."""
    products = []
    for x in left:
        for y in names.put(right, {}):
            products.append(merged(x.coefficient * y.coefficient, (*x.factors, *y.factors), (*x.bound, *y.bound)))
    return tuple(products)


def denominators(total: Sum) -> list[Factor]:
    """The lowest negative powers of what a sum divides by.

    A denominator that reads a bound index belongs to the terms of that sum alone.
    """
    below: dict[str, Factor] = {}
    for term in total:
        for base, exponent in term.factors:
            if exponent < 0 and set(free_of(base)).isdisjoint(term.bound):
                own = base_key(base, {})
                below[own] = min(below.get(own, (base, exponent)), (base, exponent), key=lambda factor: factor[1])
    return list(below.values())


def power(total: Sum, exponent: Fraction | int) -> Sum:
    """A power of a sum; equal to it wherever both are defined."""
    exponent = Fraction(exponent)
    if exponent == 1:
        return total
    if exponent == 0:
        return ONE
    if not total:
        if exponent > 0:
            return ZERO
        raise NoValue("it divides by 0")
    whole = exponent.denominator == 1
    if len(total) == 1 and not total[0].bound:
        term = total[0]
        if whole:
            factors = [(base, e if is_truth(base) else e * exponent) for base, e in term.factors]
            return (merged(term.coefficient ** int(exponent), factors),)
        root = _root(term.coefficient, exponent)
        signs = [base for base, e in term.factors if not _is_positive(base, e)]
        if root is not None and len(signs) <= 1:
            coefficient, number_factors = root
            if all(e.numerator % 2 or _is_positive(base, Fraction(1)) for base, e in term.factors):
                factors = [(base, e if is_truth(base) else e * exponent) for base, e in term.factors]
                return (merged(coefficient, (*number_factors, *factors)),)
        return single(BracketedSum(total), exponent)
    if not whole or len(total) == 1:
        if len(total) == 1 and whole:
            term = total[0]
            group = BracketedSum((term._replace(coefficient=Fraction(1)),))
            return (Term(term.coefficient ** int(exponent), ((group, exponent),), ()),)
        return single(BracketedSum(total), exponent)
    return power((bracketed(total),), exponent)


def _is_positive(base: Any, exponent: Fraction) -> bool:
    """Whether a power is never negative on the reals."""
    positive = isinstance(base, Irrational) or (
        isinstance(base, EntrywiseCall) and base.name in ("exp", "sigmoid", "cosh")
    )
    return positive or is_truth(base) or exponent.numerator % 2 == 0 or exponent.denominator % 2 == 0


def is_truth(base: Any) -> bool:
    """Whether a base is 1 or 0: a side of 0, or what chooses entries. Its reciprocal is itself where it is defined."""
    return isinstance(base, Less) or (isinstance(base, EntrywiseCall) and base.name == ABOVE) or bool(lanes_of(base))


def lanes_of(base: Any) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The groups of axes, with their sizes, along which an array is 1 at one place and 0 at the others.

    A permutation matrix has two.
    """
    if isinstance(base, Whole) and base.name == ONE_HOT:
        return (((len(base.at) - 1, dict(base.params)["size"]),),)
    return dict(base.params).get("lanes", ()) if isinstance(base, Whole) else ()


def _root(coefficient: Fraction, exponent: Fraction) -> tuple[Fraction, list[Factor]] | None:
    """A root of a positive number: the part that is a fraction, and powers of whole numbers."""
    if coefficient < 0:
        return None
    whole, left = Fraction(1), []
    for value, sign in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
        root = isqrt(value)
        if value == 1:
            continue
        if root * root == value and exponent.denominator == 2:
            whole *= Fraction(root) ** (sign * exponent.numerator)
        else:
            left.append((Irrational(str(value)), sign * exponent))
    return whole, left


def over_all(total: Sum, at: Iterable[Position], names: FreshIndices) -> Sum:
    """The sum over all values of some indices; a number among them has one."""
    for index in at:
        total = over(total, index, names) if isinstance(index, Index) else total
    return total


def over(total: Sum, index: Index, names: FreshIndices) -> Sum:
    """The sum over all values of an index."""
    return add(*[_over_term(term, index, names) for term in total])


def _over_term(term: Term, index: Index, names: FreshIndices) -> Sum:
    readers = [place for place, (base, _) in enumerate(term.factors) if index in free_of(base)]
    if not readers:
        return (names.repeated(term, index),)
    for place in readers:
        base, exponent = term.factors[place]
        if isinstance(base, Delta) and exponent > 0:
            fewer = solved(term._replace(bound=(*term.bound, index)), place, names)
            if fewer is not None:
                return fewer
    product = _spectral([term.factors[place] for place in readers], index, names)
    if product is not None:
        return times((term._replace(factors=tuple([f for f in term.factors if index not in free_of(f[0])])),), product)
    if len(readers) == 1:
        base, exponent = term.factors[readers[0]]
        rest = (*term.factors[: readers[0]], *term.factors[readers[0] + 1 :])
        if isinstance(base, BracketedSum) and exponent == 1:
            parts = [
                merged(term.coefficient * inner.coefficient, (*rest, *inner.factors), (*term.bound, *inner.bound))
                for inner in base.inside
            ]
            return add(*[over((part,), index, names) for part in parts])
        if isinstance(base, Whole) and base.name == ONE_HOT and base.at[-1] == index:
            if base.params[-1] == ("size", index.size) and index not in indices_in(base.at[:-1]):
                return (Term(term.coefficient, rest, term.bound),)
        if isinstance(base, EntrywiseCall) and base.name == "equal":  # the one place where an entry is the largest
            return (Term(term.coefficient, rest, term.bound),)
    return (term._replace(bound=(*term.bound, index)),)


def solved(term: Term, place: int, names: FreshIndices) -> Sum | None:
    """A term with a factor delta, without the bound indices that this fixes; None where it fixes none."""
    delta, _ = term.factors[place]
    zero = difference(*delta)
    result = solution(zero, term.bound, names.index)
    if result is None:
        return ZERO
    if not result.changes and result.zeros == (zero,):
        return None
    rest = Term(term.coefficient, (*term.factors[:place], *term.factors[place + 1 :]), ())
    units = tuple([(Delta(*sides_of(equation, term.bound)), Fraction(1)) for equation in result.zeros])
    again = indices_in((*result.changes.values(), *result.zeros))
    bound = (*[i for i in term.bound if i not in result.changes], *result.fresh)
    kept = tuple([i for i in bound if i not in again])
    fixed = names.put((rest,), result.changes)
    parts = tuple([part._replace(factors=(*part.factors, *units), bound=kept) for part in fixed])
    return over_all(parts, [index for index in bound if index not in kept], names)


def _spectral(factors: Sequence[Factor], index: Index, names: FreshIndices) -> Sum | None:
    """V @ diag(w**n) @ V.T of eigenvectors V and eigenvalues w: the identity, the matrix, or its inverse."""
    vectors = [
        base for base, exponent in factors if isinstance(base, Whole) and base.name == EIGENVECTORS and exponent == 1
    ]
    values = [(base, exponent) for base, exponent in factors if isinstance(base, Whole) and base.name == EIGENVALUES]
    if len(vectors) != 2 or len(values) > 1 or len(vectors) + len(values) < len(factors):
        return None
    first, second = vectors
    arrays = {key(arg, {i: str(place) for place, i in enumerate(own)}) for base, _ in factors for own, arg in base.args}
    if len(arrays) > 1 or first.at[-1] != index or second.at[-1] != index or index in (first.at[0], second.at[0]):
        return None
    exponent = values[0][1] if values else 0
    if exponent == 0:
        return single(Delta(first.at[0], second.at[0]))
    own, matrix = first.args[0]
    at = (first.at[0], second.at[0])
    if exponent == 1:
        return names.put(matrix, dict(zip(own, at, strict=True)))
    return single(Whole("inv", (), first.args, at)) if exponent == -1 else None


# --- limits -------------------------------------------------------------------------------------------------------


def within_limits(total: Sum) -> None:
    count, deepest = 0, 0
    pending: list[tuple[Sum, int]] = [(total, 0)]
    while pending:
        part, depth = pending.pop()
        deepest = max(deepest, depth)
        for term in part:
            count += 1 + len(term.factors)
            for base, _ in term.factors:
                pending.extend((inner, depth + 1) for inner in parts_of(base))
        if count > MOST_FACTORS or deepest > DEEPEST:
            raise TooLong("it is too long to be read")


def parts_of(base: Any) -> Iterator[Sum]:
    """The sums inside a base."""
    if isinstance(base, EntrywiseCall):
        yield from base.args
    elif isinstance(base, Whole):
        yield from (arg for _, arg in base.args)
    elif isinstance(base, BracketedSum):
        yield base.inside


def bases_in(total: Sum) -> Iterator[Any]:
    """The bases of a sum, those inside functions and brackets too."""
    for term in total:
        for base, _ in term.factors:
            yield base
            for part in parts_of(base):
                yield from bases_in(part)


def leaves_in(total: Sum) -> set[str]:
    """The names of the inputs that a sum reads."""
    return {base.name for base in bases_in(total) if isinstance(base, InputEntry)}
