"""Determinants and inverses of products of square matrices, and what cancels then.

det(A @ B) is det(A)*det(B), inv(A @ B) is inv(B) @ inv(A), X @ inv(X) is the identity, and the inverse of a matrix that
is symmetric as it is written, such as X.T @ X, is its own transpose.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import Index
from gradcli.formulas.index_terms import (
    Call,
    Delta,
    Group,
    Leaf,
    Term,
    Whole,
    add,
    free_of,
    key,
    merged,
    number,
    power,
    single,
    solved,
    times,
)

if TYPE_CHECKING:
    from gradcli.formulas.index_terms import Names, Sum

    Link = tuple[Any, Index, Index]  # a matrix with its row and column


def split_products(total: Sum, names: Names) -> Sum:
    """The same sum with determinants and inverses of products written as those of the factors."""
    return add(*[_term(term, names) for term in total])


def _term(term: Term, names: Names) -> Sum:
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


def _base(base: Any, names: Names) -> Sum:
    if isinstance(base, Group):
        inside = split_products(base.inside, names)
        cancels = len(inside) == 1 and any(getattr(factor, "name", "") == "inv" for factor, _ in inside[0].factors)
        return inside if cancels else single(Group(inside))
    if isinstance(base, Call):
        return single(base._replace(args=tuple([split_products(arg, names) for arg in base.args])))
    if isinstance(base, Whole):
        inner = base._replace(args=tuple([(own, split_products(arg, names)) for own, arg in base.args]))
        if base.name in ("det", "inv") and not base.params:
            own, arg = inner.args[0]
            links = _links(own, arg)
            if links is not None and (base.name == "inv" or arg[0].coefficient == 1):  # det(2*A) is 2**n*det(A)
                coefficient = arg[0].coefficient
                return _det(links) if base.name == "det" else _inv(links, coefficient, inner, names)
            plain = all(isinstance(i, (Index, int)) for i in inner.at)
            if base.name == "inv" and plain and key(names.put(arg, dict(zip(own, own[::-1], strict=True)))) == key(arg):
                at = sorted(inner.at, key=lambda i: -i.number if isinstance(i, Index) else i)  # a symmetric matrix
                return single(inner._replace(at=tuple(at)))
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
        if isinstance(base, Leaf) and base.at == (column, row):  # of a transpose
            row, column = column, row
        product = times(product, single(Whole("det", (), (((row, column), single(base)),), ())))
    return product


def _inv(links: list[Link], coefficient: Fraction, whole: Whole, names: Names) -> Sum:
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
            factors += inside[0].factors if alone else [(Group(inside), Fraction(1))]
        elif isinstance(base, Leaf) and base.at == (second, first):
            factors.append((Whole("inv", (), (((second, first), single(base)),), (column, row)), Fraction(1)))
        else:
            factors.append((Whole("inv", (), (((first, second), single(base)),), (row, column)), Fraction(1)))
        row = column
    return (merged(1 / coefficient, factors, tuple(bound)),)


def _cancelled(term: Term, names: Names) -> Sum:
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
