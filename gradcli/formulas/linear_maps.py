"""Jacobians in index notation: the matrix of a linear map, from what the map makes of a vector.

The backward pass of `y . u` is linear in the cotangent u, so its entries are sums of terms that each have one factor
`u[k]`. In row i of the Jacobian that factor is 1 where k is i, else 0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import Index
from gradcli.formulas.index_terms import Call, Delta, Group, Leaf, NoFormula, Term, Whole, add, merged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.formulas.index_terms import Names, Sum


def matrix_of(found: Sum, name: str, rows: tuple[Index, ...], names: Names) -> Sum:
    """The sum with entry `rows` of the unit matrix in place of the input `name`, in which the sum is linear."""
    return add(*[_substituted(term, name, rows, names) for term in _linear(found, name, names)])


def _linear(found: Sum, name: str, names: Names) -> Iterator[Term]:
    """The terms of a sum, with brackets multiplied out as far as they read the input."""
    for term in found:
        carriers = [factor for factor in term.factors if reads(factor[0], name)]
        if len(carriers) != 1 or carriers[0][1] != 1:
            raise NoFormula("it is not a linear map")
        base = carriers[0][0]
        if isinstance(base, Leaf):
            yield term
        elif isinstance(base, Group):
            rest = [factor for factor in term.factors if factor is not carriers[0]]
            for inner in _linear(names.put(base.inside, {}), name, names):
                factors = (*rest, *inner.factors)
                yield merged(term.coefficient * inner.coefficient, factors, (*term.bound, *inner.bound))
        else:
            raise NoFormula("it is a linear map whose matrix has no formula")


def _substituted(term: Term, name: str, rows: tuple[Index, ...], names: Names) -> Sum:
    """A term with the input replaced; sums over its indices have one entry left."""
    (leaf,) = (base for base, _ in term.factors if isinstance(base, Leaf) and base.name == name)
    factors = [factor for factor in term.factors if factor[0] is not leaf]
    bound = list(term.bound)
    changes: dict[Index, Index | int] = {}
    for own, row in zip(leaf.at, rows, strict=True):
        if isinstance(own, Index) and own in bound:
            bound.remove(own)
            changes[own] = row
        else:  # an axis of the result: both are the same entry, so everything else reads one of them
            factors.append((Delta(row, own), Fraction(1)))
            if isinstance(own, Index):
                changes[own] = row
    left = [factor for factor in factors if not isinstance(factor[0], Delta)]
    units = [factor for factor in factors if isinstance(factor[0], Delta)]
    found = names.put((Term(term.coefficient, tuple(left), ()),), changes)
    return tuple([merged(one.coefficient, (*one.factors, *units), tuple(bound)) for one in found])


def reads(base: Any, name: str) -> bool:
    """Whether a base reads an input."""
    if isinstance(base, Leaf):
        return base.name == name
    if isinstance(base, Group):
        return _sum_reads(base.inside, name)
    if isinstance(base, Call):
        return any(_sum_reads(arg, name) for arg in base.args)
    return isinstance(base, Whole) and any(_sum_reads(arg, name) for _, arg in base.args)


def _sum_reads(found: Sum, name: str) -> bool:
    return any(reads(base, name) for term in found for base, _ in term.factors)
