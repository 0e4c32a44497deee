"""Einstein's summation: subscripts become diagonals, sums of private axes, permutes, reshapes and matrix products.

Operands are contracted from left to right. A letter that no later operand and no output needs is summed as soon
as it can be; a letter of one operand alone is summed before anything is multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL
from gradcli.graph.primitive import composite
from gradcli.graph.types import size_of
from gradcli.primitives.axes import described, diagonal, permuted, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import sum_
from gradcli.primitives.size_arguments import bounded

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def parse_subscripts(subscripts: str, count: int) -> tuple[list[str], str]:
    """The letters of each operand and of the output; without "->", the letters that occur once, in order.

    Raises GradcliError GC323 for anything else than letters, commas and one arrow.

    >>> parse_subscripts("ij,jk", 2)
    (['ij', 'jk'], 'ik')
    """
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    bad = sorted({c for c in inputs.replace(",", "") + output if not (c.isascii() and c.isalpha())})
    if bad:
        raise error("GC323", f"einsum cannot read {bad[0]!r} in {subscripts!r}", help='write it as "ij,jk->ik"')
    if len(terms) != count:
        raise error(
            "GC323",
            f"{subscripts!r} describes {len(terms)} operands, but {count} {'is' if count == 1 else 'are'} given",
        )
    letters = "".join(terms)
    if not arrow:
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    for c in output:
        if c not in letters:
            raise error("GC323", f"the output letter {c!r} of {subscripts!r} appears in no operand")
        if output.count(c) > 1:
            raise error("GC323", f"the output letter {c!r} of {subscripts!r} appears there twice")
    return terms, output


def _sizes(terms: Sequence[str], operands: Sequence[Any], subscripts: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        if len(term) != len(x.shape):
            raise error("GC323", f"{term!r} in {subscripts!r} names {len(term)} axes of {described(x)}")
        for c, size in zip(term, x.shape, strict=True):
            known = sizes.get(c, 1)
            if known != size and 1 not in (known, size):
                message = f"the letter {c!r} of {subscripts!r} has the sizes {known} and {size}"
                raise error("GC323", message, sizes=(known, size))
            sizes[c] = max(known, size) if size else 0
    return sizes


def _without_repeats(x: Any, term: str) -> tuple[Any, str]:
    """Diagonals of the axes that share a letter."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            first = term.index(c)
            second = term.index(c, first + 1)
            rank = len(term)
            order = [i for i in range(rank) if i not in (first, second)]
            x = diagonal(permuted(x, tuple(i - rank for i in (*order, first, second))))
            term = "".join(term[i] for i in order) + c
    return x, term


def _summed(x: Any, term: str, needed: Collection[str]) -> tuple[Any, str]:
    """Sums over the axes whose letters are not needed elsewhere."""
    axes = tuple(i - len(term) for i, c in enumerate(term) if c not in needed)
    return (sum_(x, axis=axes) if axes else x), "".join(c for c in term if c in needed)


def _ordered(x: Any, term: str, wanted: str) -> Any:
    return permuted(x, tuple(term.index(c) - len(term) for c in wanted))


def contracted(x: Any, y: Any, first: str, second: str, needed: Collection[str]) -> tuple[Any, str]:
    """Two operands multiplied and summed over the letters that they share and that are not needed elsewhere."""
    shared = [c for c in first if c in second]
    batch = "".join(c for c in shared if c in needed)
    inner = "".join(c for c in shared if c not in needed)
    rows = "".join(c for c in first if c not in second)
    columns = "".join(c for c in second if c not in first)
    sizes = dict(zip(first + second, (*x.shape, *y.shape), strict=True))

    def size(letters: str) -> tuple[int, ...]:
        return tuple(sizes[c] for c in letters)

    left = _ordered(x, first, batch + rows + inner)
    result = batch + rows + columns
    if not inner:
        right = _ordered(y, second, batch + columns)
        shape = bounded(size(result))
        left = reshaped(left, (*size(batch + rows), *(1 for _ in columns)))
        right = reshaped(right, (*size(batch), *(1 for _ in rows), *size(columns)))
        return stretch(left, shape) * stretch(right, shape), result
    right = _ordered(y, second, batch + inner + columns)
    lead = (size_of(size(batch)),) if batch else ()
    product = reshaped(left, (*lead, size_of(size(rows)), size_of(size(inner)))) @ reshaped(
        right, (*lead, size_of(size(inner)), size_of(size(columns)))
    )
    return reshaped(product, size(result)), result


def _einsum(subscripts: Any, *operands: Any) -> Any:
    if not isinstance(subscripts, str) or not operands:
        raise error("GC323", "einsum needs its subscripts first", help='write einsum("ij,jk->ik", A, B)')
    terms, output = parse_subscripts(subscripts, len(operands))
    sizes = _sizes(terms, operands, subscripts)
    result: Any = None
    term = ""
    for i, (x, letters) in enumerate(zip(operands, terms, strict=True)):
        others = set(output).union(*terms[i + 1 :])
        full = tuple(sizes[c] for c in letters)
        x, letters = _without_repeats(stretch(x, full), letters)
        if result is None:
            result, term = _summed(x, letters, others)
            continue
        x, letters = _summed(x, letters, others.union(term))
        result, term = contracted(result, x, term, letters, others)
        result, term = _summed(result, term, others)
    return _ordered(result, term, output)


einsum = composite(
    "einsum",
    "Sums of products over the letters that do not appear in the output.",
    definition=_einsum,
    static=("subscripts",),
    domain=[REAL],
    formula="sum over letters of x[i, j]*y[j, k]",
    examples=[
        ('einsum("ij,jk->ik", [[1, 2], [3, 4]], [[1, 0], [1, 1]])', [[3, 2], [7, 4]]),
        ('einsum("ii", [[1, 2], [3, 4]])', 5),
    ],
    node="EinsumBackward0",
    traits="every_size",
)
