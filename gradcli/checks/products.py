"""Matrix products of balls and of series of balls, by python-flint's matrices: the same numbers as sums of products.

A product of series is, coefficient by coefficient, a sum of products of matrices of balls. Entries that are no numbers
leave the product to the declaration's own rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import arb, arb_mat, arb_series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.entries import Entries

    Matrix = Any  # python-flint's

SMALL = 64  # products of so few entries are as fast one by one


def product(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a matrix product; `otherwise` is the declaration's, for what is no matrix of numbers."""

    def entries(f: Any, x: Entries, y: Entries) -> Any:
        rows, inner, columns = x.shape[-2], x.shape[-1], y.shape[-1]
        kinds = {type(entry) for one in (x, y) for entry in one.flat}
        moving = kinds - {arb}
        if rows * inner * columns < SMALL or not all(hasattr(kind, "made") for kind in moving) or len(moving) > 1:
            return otherwise(f, x, y)
        lengths = {entry.s.prec for one in (x, y) for entry in one.flat if type(entry) is not arb}
        if len(lengths) > 1:
            return otherwise(f, x, y)
        terms = lengths.pop() if lengths else 1
        flat: list[Any] = []
        for block in range(len(x.flat) // (rows * inner)):
            left = coefficients(x.flat[block * rows * inner : (block + 1) * rows * inner], rows, inner, terms)
            right = coefficients(y.flat[block * inner * columns : (block + 1) * inner * columns], inner, columns, terms)
            found = [whole(left, right, k) for k in range(terms)]
            if moving:
                kind = next(iter(moving))
                lists = [made.entries() if made is not None else None for made in found]
                for i in range(rows * columns):
                    own = [arb(0) if one is None else one[i] for one in lists]
                    flat.append(kind(arb_series(own, terms)))
            else:
                assert found[0] is not None
                flat += found[0].entries()
        return f.array(flat, (*x.shape[:-1], columns))

    return entries


def coefficients(flat: Sequence[Any], rows: int, columns: int, terms: int) -> list[Matrix | None]:
    """The matrices of the coefficients of each power; None for one that is 0."""
    found: list[Matrix | None] = []
    for k in range(terms):
        if k and all(type(x) is arb for x in flat):
            found.append(None)
            continue
        own = [(x if k == 0 else 0) if type(x) is arb else x.s[k] for x in flat]
        found.append(arb_mat(rows, columns, own))
    return found


def whole(left: Sequence[Matrix | None], right: Sequence[Matrix | None], k: int) -> Matrix | None:
    """The coefficient of power k of a product."""
    total: Matrix | None = None
    for i in range(k + 1):
        one, other = left[i], right[k - i]
        if one is not None and other is not None:
            total = one * other if total is None else total + one * other
    return total
