"""Diagonals and triangles of matrices: diag, tril, triu."""

from __future__ import annotations

from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, composite, linear
from gradcli.primitives.axes import described, diagonal, require_matrix
from gradcli.primitives.comparison import ste
from gradcli.primitives.movement import reshape, unslice
from gradcli.primitives.size_arguments import whole_number


def _diag(x: Any, k: int = 0) -> Any:
    whole_number(k, "k")
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise error("GC321", f"diag needs a vector or a matrix, not {described(x)}")
    size = x.shape[0] + abs(k)
    first = k if k >= 0 else -k * size
    if not x.shape[0]:
        return reshape(unslice(x, shape=(size * size,), start=(0,), step=(1,)), shape=(size, size))
    return reshape(unslice(x, shape=(size * size,), start=(first,), step=(size + 1,)), shape=(size, size))


diag = composite(
    "diag",
    "The diagonal of a matrix, or the matrix with a vector on its diagonal.",
    definition=_diag,
    static=("k",),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3))],
    formula="x[i, i]",
    examples=[("diag([[1, 2], [3, 4]])", [1, 4]), ("diag([1, 2])", [[1, 0], [0, 2]])],
    node="DiagonalBackward0",
    names="numpy. torch.",
    traits="every_size",
)


def in_pairs(x: Any) -> Any:
    """A symmetric matrix as a function of a leaf: the mean with its transpose, and a step of one entry moves two.

    So its derivative is G + G.T - diag(diag(G)), where G is the one by independent entries (Magnus and Neudecker 1980,
    The elimination matrix): every transform, oracle and formula has this convention without knowing it.
    """
    both = x + x.mT
    return ste(both / 2, both - diag(diag(x)))


def _triangle_entries(lower: bool) -> Any:
    def entries(f: Any, x: Any, *, k: int) -> Any:
        rows, columns = x.shape[-2:]
        flat = []
        for place, entry in enumerate(x.flat):
            i, j = divmod(place % (rows * columns), columns)
            flat.append(entry if (j - i <= k if lower else j - i >= k) else f.zero)
        return f.array(flat, x.shape)

    return entries


def _diagonal(x: Any, k: int) -> int:
    """The number of a diagonal; beyond the corners all of them are alike."""
    rows, columns = x.shape[-2:]
    return max(-int(rows), min(whole_number(k, "k"), int(columns)))


def _tril_call(x: Any, k: int = 0) -> Any:
    require_matrix(x, "tril")
    return tril(x, k=_diagonal(x, k))


def _triu_call(x: Any, k: int = 0) -> Any:
    require_matrix(x, "triu")
    return triu(x, k=_diagonal(x, k))


tril: Primitive = linear(
    "tril",
    "The lower triangle of a matrix: entries above the k-th diagonal are 0.",
    impl=lambda xp, x, *, ranks, k: xp.tril(x, k),
    entries=_triangle_entries(True),
    transpose={0: lambda ct, x, *, k: tril(ct, k=k)},
    arity=1,
    call=_tril_call,
    static=("k",),
    domain=[REAL],
    formula="x[i, j] where j <= i + k, else 0",
    examples=[("tril([[1, 2], [3, 4]])", [[1, 0], [3, 4]])],
    node="TrilBackward0",
    names="numpy. torch.",
    traits="every_size keeps_whole",
)

triu: Primitive = linear(
    "triu",
    "The upper triangle of a matrix: entries below the k-th diagonal are 0.",
    impl=lambda xp, x, *, ranks, k: xp.triu(x, k),
    entries=_triangle_entries(False),
    transpose={0: lambda ct, x, *, k: triu(ct, k=k)},
    arity=1,
    call=_triu_call,
    static=("k",),
    domain=[REAL],
    formula="x[i, j] where j >= i + k, else 0",
    examples=[("triu([[1, 2], [3, 4]])", [[1, 2], [0, 4]])],
    node="TriuBackward0",
    names="numpy. torch.",
    traits="every_size keeps_whole",
)
