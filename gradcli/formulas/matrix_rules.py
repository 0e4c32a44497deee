"""Determinants and inverses of products of square matrices, and what cancels then.

det(A @ B) is det(A)*det(B), inv(A @ B) is inv(B) @ inv(A), X @ inv(X) is the identity, and the inverse of a matrix that
is symmetric as it is written, such as X.T @ X, is its own transpose.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import Index, difference, parts_of_position
from gradcli.formulas.index_terms import (
    ONE,
    ZERO,
    BracketedSum,
    Delta,
    EntrywiseCall,
    InputEntry,
    Irrational,
    Less,
    Ordinal,
    Term,
    Whole,
    add,
    free_of,
    key,
    merged,
    number,
    parts_of,
    power,
    scaled,
    single,
    solved,
    term_key,
    times,
)

if TYPE_CHECKING:
    from gradcli.formulas.index_terms import FreshIndices, Sum

    Link = tuple[Any, Index, Index]  # a matrix with its row and column

# functions that have a value everywhere, and that at 0
AT_ZERO = dict.fromkeys(("exp", "cos"), ONE) | dict.fromkeys(("sin", "tanh", "abs"), ZERO)
AT_ZERO["sigmoid"] = number(Fraction(1, 2))


def joined_triangles(total: Sum, names: FreshIndices) -> Sum:
    """Terms over i < j, and the same over j < i, as the sum over all pairs without those where i is j."""
    for pair in combinations(total, 2):
        orders = [[base for base, _ in term.factors if isinstance(base, Less)] for term in pair]
        if pair[0].coefficient != pair[1].coefficient or any(len(own) != 1 for own in orders):
            continue
        gaps = [parts_of_position(difference(*own[0])) for own in orders]
        steps, others = (dict(gap.parts) for gap in gaps)
        outer = [index for index in steps if index not in pair[0].bound]
        if gaps[0].start not in (0, -1) or gaps[1].start != gaps[0].start or not outer:
            continue
        if sorted(steps.values()) != [-1, 1] or any(others.get(index) != -steps[index] for index in outer):
            continue
        wholes = [term._replace(factors=tuple([f for f in term.factors if type(f[0]) is not Less])) for term in pair]
        units = [(Delta(*own), Fraction(1)) for own in (steps, others)]
        equal = [term._replace(factors=(*term.factors, unit)) for term, unit in zip(wholes, units, strict=True)]
        if term_key(equal[0], {}) != term_key(equal[1], {}) or not _is_defined((wholes[0],), set(steps)):
            continue
        diagonal = solved(equal[0], len(equal[0].factors) - 1, names)
        diagonal = scaled(_at_zero((equal[0],) if diagonal is None else diagonal), -1 if gaps[0].start == 0 else 1)
        rest = tuple([term for term in total if term not in pair])
        return joined_triangles(add(rest, (wholes[0],), diagonal), names)
    return total


def _at_zero(total: Sum) -> Sum:
    """A sum with the values of functions at 0."""
    parts = []
    for term in total:
        values, kept = number(term.coefficient), []
        for base, exponent in term.factors:
            inside = _at_zero(base.args[0]) if isinstance(base, EntrywiseCall) and base.name in AT_ZERO else ONE
            if inside:
                kept.append((base, exponent))
            else:
                values = times(values, power(AT_ZERO[base.name], exponent))
        parts.append(times(values, (Term(Fraction(1), tuple(kept), term.bound),)))
    return add(*parts)


def _is_defined(total: Sum, indices: set[Index]) -> bool:
    """Whether a sum has a value where some indices are equal, as far as its form shows."""
    for base, exponent in [factor for term in total for factor in term.factors]:
        if isinstance(base, (InputEntry, Delta, Less, Ordinal, Irrational)):
            known = exponent > 0 or not indices <= set(free_of(base))
        else:
            smooth = isinstance(base, BracketedSum) or (isinstance(base, EntrywiseCall) and base.name in AT_ZERO)
            whole = exponent.denominator == 1 and exponent > 0
            known = whole and smooth and all(_is_defined(x, indices) for x in parts_of(base))
        if not known:
            return False
    return True


def split_products(total: Sum, names: FreshIndices) -> Sum:
    """The same sum with determinants and inverses of products written as those of the factors."""
    return add(*[_term(term, names) for term in total])


def _term(term: Term, names: FreshIndices) -> Sum:
    whole: Sum = number(term.coefficient)
    bound = list(term.bound)
    for base, exponent in term.factors:
        inner = power(_base(base, names), exponent)
        if len(inner) == 1 and inner[0].bound and exponent == 1:  # an inverse of a product: its indices join the others
            bound += inner[0].bound
            inner = (inner[0]._replace(bound=()),)
        whole = times(whole, inner, entries=False)
        if not whole:
            return ()
    (product,) = whole
    return _cancelled(product._replace(bound=(*product.bound, *bound)), names)


def _base(base: Any, names: FreshIndices) -> Sum:
    if isinstance(base, BracketedSum):
        inside = split_products(base.inside, names)
        cancels = len(inside) == 1 and any(getattr(factor, "name", "") == "inv" for factor, _ in inside[0].factors)
        return inside if cancels else single(BracketedSum(inside))
    if isinstance(base, EntrywiseCall):
        return single(base._replace(args=tuple([split_products(arg, names) for arg in base.args])))
    if isinstance(base, Whole):
        inner = base._replace(args=tuple([(own, split_products(arg, names)) for own, arg in base.args]))
        if base.name in ("det", "inv") and not base.params:
            own, arg = inner.args[0]
            links = _links(own, arg)
            if links is not None and (base.name == "inv" or arg[0].coefficient == 1):  # det(2*A) is 2**n*det(A)
                coefficient = arg[0].coefficient
                return _det(links) if base.name == "det" else _inv(links, coefficient, inner, names)
        return single(inner)
    return single(base)


def _links(own: tuple[Index, ...], arg: Sum) -> list[Link] | None:
    """The matrices of a product of square matrices from left to right; None for anything else."""
    if len(own) != 2 or len(arg) != 1:
        return None
    (term,) = arg
    if any(exponent != 1 or len(free_of(base)) != 2 for base, exponent in term.factors):
        return None
    row, last = own
    left = [base for base, _ in term.factors]
    links: list[Link] = []
    while left:
        base = next((matrix for matrix in left if row in free_of(matrix)), None)
        if base is None:
            return None
        left.remove(base)
        (column,) = (i for i in free_of(base) if i != row)
        if column.size != row.size or (isinstance(base, Whole) and not _is_whole_matrix(base)):
            return None
        links.append((base, row, column))
        row = column
    return links if row == last and len(term.bound) == len(links) - 1 else None


def _is_whole_matrix(base: Whole) -> bool:
    """Whether the entries of a matrix that is made of another one are read as far as it goes."""
    return len(base.args) == 1 and {i.size for i in base.args[0][0]} == {
        i.size for i in base.at if isinstance(i, Index)
    }


def _det(links: list[Link]) -> Sum:
    """The product of the determinants."""
    product = number(1)
    for base, row, column in links:
        if isinstance(base, Whole) and base.name == "inv":
            product = times(product, power(single(Whole("det", (), base.args, ())), -1))
            continue
        if isinstance(base, InputEntry) and base.at == (column, row):  # of a transpose
            row, column = column, row
        product = times(product, single(Whole("det", (), (((row, column), single(base)),), ())))
    return product


def _inv(links: list[Link], coefficient: Fraction, whole: Whole, names: FreshIndices) -> Sum:
    """The product of the inverses in the opposite order."""
    row, last = whole.at
    if not (isinstance(row, Index) and isinstance(last, Index)):
        return single(whole)
    factors: list[Any] = []
    bound: list[Index] = []
    for place, (base, first, second) in enumerate(reversed(links)):
        column = last if place == len(links) - 1 else names.index(first.size)
        if column is not last:
            bound.append(column)
        if isinstance(base, Whole) and base.name == "inv":  # the matrix itself
            (own, arg) = base.args[0]
            at = dict(zip(own, (row, column) if base.at == (first, second) else (column, row), strict=True))
            inside = names.put(arg, at)
            alone = len(inside) == 1 and inside[0].coefficient == 1 and not inside[0].bound
            factors += inside[0].factors if alone else [(BracketedSum(inside), Fraction(1))]
        elif isinstance(base, InputEntry) and base.at == (second, first):
            factors.append((Whole("inv", (), (((second, first), single(base)),), (column, row)), Fraction(1)))
        else:
            factors.append((Whole("inv", (), (((first, second), single(base)),), (row, column)), Fraction(1)))
        row = column
    return (merged(1 / coefficient, factors, tuple(bound)),)


def _cancelled(term: Term, names: FreshIndices) -> Sum:
    """A term without products of a matrix and its inverse."""
    for place, (base, exponent) in enumerate(term.factors):
        if not (isinstance(base, Whole) and base.name == "inv" and exponent == 1 and len(set(base.at)) == 2):
            continue
        own, arg = base.args[0]
        for other_place, (matrix, raised) in enumerate(term.factors):
            if other_place == place or raised != 1 or len(free_of(matrix)) != 2:
                continue
            for inner, outer, turned in ((base.at[1], base.at[0], False), (base.at[0], base.at[1], True)):
                rest = [factor for at, factor in enumerate(term.factors) if at not in (place, other_place)]
                if inner not in term.bound or inner not in free_of(matrix) or inner.size != own[0].size:
                    continue
                if any(inner in free_of(factor) for factor, _ in rest):
                    continue
                (end,) = (i for i in free_of(matrix) if i != inner)
                at = (end, inner) if turned else (inner, end)
                if key(names.put(arg, dict(zip(own, at, strict=True)))) == key(single(matrix)):
                    bound = tuple([i for i in term.bound if i != inner])
                    unit = Term(term.coefficient, (*rest, (Delta(outer, end), Fraction(1))), bound)
                    parts = solved(unit, len(unit.factors) - 1, names)
                    return add(*[_cancelled(part, names) for part in ((unit,) if parts is None else parts)])
    return (term,)
