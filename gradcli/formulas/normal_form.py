"""Decides whether two computations are one formula: their difference in index notation, multiplied out, is zero."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gradcli.formulas.index_reading import Reader
from gradcli.formulas.index_terms import ONE, Call, Group, NoFormula, add, base_key, key, merged, scaled, single
from gradcli.formulas.matrix_rules import split_products
from gradcli.formulas.recognition import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.formulas.index_reading import At
    from gradcli.formulas.index_terms import Factor, Names, Sum
    from gradcli.graph.node import Node

MOST_TERMS = 400  # of a difference that is multiplied out
MOST_ENTRIES = 9  # of an array that is compared entry by entry
MOST_POWER = 9  # of a bracket that is multiplied out


def same_form(one: Node, other: Node, called: Mapping[Node, str] | None = None) -> bool:
    """Whether two nodes have the same normal form, and so are equal wherever both are smooth; builders must be open.

    `called` are nodes with names of their own, beside the leaves. `other` may be an array that broadcasts to `one`.
    False proves nothing.
    """
    reader = Reader(called)
    rank = len(other.shape)
    if rank > len(one.shape) or any(n not in (1, m) for n, m in zip(other.shape[::-1], one.shape[::-1], strict=False)):
        return False

    def alike(axes: At) -> bool:
        last = axes[len(axes) - rank :]
        left = reader.entry(one, axes)
        right = reader.entry(other, tuple([0 if n == 1 else i for n, i in zip(other.shape, last, strict=True)]))
        if key(left) == key(right):
            return True
        left, right = (shortened(split_products(part, reader.names), reader.names) for part in (left, right))
        return vanishes(add(left, scaled(right, -1)), reader.names)

    try:
        return alike(tuple([reader.names.index(n) for n in one.shape]))
    except NoFormula:
        if not 0 < one.type.size <= MOST_ENTRIES:
            return False
    try:
        return all(map(alike, product(*map(range, one.shape))))
    except NoFormula:
        return False


def vanishes(found: Sum, names: Names) -> bool:
    """Whether a sum is 0 once its brackets are multiplied out over one denominator."""
    below: dict[str, Factor] = {}
    for term in found:
        for base, exponent in term.factors:
            own = base_key(base, {})
            if exponent < 0 and (own not in below or exponent < below[own][1]):
                below[own] = (base, exponent)
    inverse = [(base, -exponent) for base, exponent in below.values()]
    whole = tuple([merged(term.coefficient, (*term.factors, *inverse), term.bound) for term in found])
    return not shortened(multiplied_out(whole, names), names)


def multiplied_out(found: Sum, names: Names) -> Sum:
    """A sum without brackets that are factors; raises NoFormula where it has too many terms."""
    parts: list[Sum] = []
    count = 0
    for term in found:
        terms: Sum = (merged(term.coefficient, [factor for factor in term.factors if not opens(factor)], term.bound),)
        for base, exponent in filter(opens, term.factors):
            for _ in range(int(exponent)):
                made = []
                for x in terms:
                    for y in names.put(multiplied_out(inside(base), names), {}):
                        made.append(
                            merged(x.coefficient * y.coefficient, (*x.factors, *y.factors), (*x.bound, *y.bound))
                        )
                count += len(made)
                if count > MOST_TERMS:
                    raise NoFormula("it has too many terms")
                terms = add(tuple(made))
        parts.append(terms)
    return add(*parts)


def opens(factor: Factor) -> bool:
    """Whether a factor is a bracket to a whole power, or stands for one."""
    base, exponent = factor
    return inside(base) != () and 0 < exponent <= MOST_POWER and exponent.denominator == 1


def inside(base: Any) -> Sum:
    """What is in a bracket; sigmoid(-u) is 1 - sigmoid(u). Nothing for another base."""
    if isinstance(base, Group):
        return base.inside
    if isinstance(base, Call) and base.name == "sigmoid":
        opposite = scaled(base.args[0], -1)
        if key(opposite) < key(base.args[0]):
            return add(ONE, scaled(single(base._replace(args=(opposite,))), -1))
    return ()


__all__ = ["same_form"]
