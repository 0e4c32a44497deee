"""Entries put into a tensor, or added to it, at positions: a tensor goes in, another one comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.indexing import getitem, positions_of, refuse_old_mask
from gradcli.eager.movement import expand, reshape
from gradcli.eager.pointwise import need_mask
from gradcli.eager.selecting import LONG, along, flat, need_index, numbers
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Operand


def placed(x: Tensor, positions: Any, source: Any, name: str, edges: int = 2) -> Tensor:
    """x with the entries of `source` (a tensor of the shape of the positions, or a number) at some positions."""
    flat = positions.reshape(-1)
    last = np.full(x._raw.size, -1, np.int64)
    last[flat] = np.arange(flat.size)
    hit = Tensor((last >= 0).reshape(x._raw.shape))
    if not isinstance(source, Tensor):
        return record(_filled, (x, hit, source), {}, name, whole=True, apart=(1,), edges=1, pointwise=True)
    at = Tensor(np.maximum(last, 0))
    return record(_placed, (x, source, hit, at), {}, name, whole=True, apart=(2, 3), edges=edges, pointwise=False)


def _filled(x: Any, hit: Any, value: Any) -> Any:
    return catalogue()["where"](hit, value, x)


def _placed(x: Any, source: Any, hit: Any, at: Any) -> Any:
    moved = catalogue()["take_along"](flat(source), at, axis=-1)
    return catalogue()["where"](hit, catalogue()["reshape"](moved, shape=tuple(x.shape)), x)


def added_at(x: Tensor, positions: Any, source: Tensor, name: str, alpha: float = 1) -> Tensor:
    """x with the entries of `source` added at some positions; one that is named twice gets both."""
    at = Tensor(np.ascontiguousarray(positions, np.int64).reshape(-1))
    params = {"alpha": alpha}
    return record(_added_at, (x, source, at), params, name, whole=True, apart=(2,), edges=2, pointwise=False)


def _added_at(x: Any, source: Any, at: Any, *, alpha: float) -> Any:
    size = 1
    for n in x.shape:
        size *= n
    put = catalogue()["put_along"](flat(source), at, axis=-1, size=size)
    put = catalogue()["reshape"](put, shape=tuple(x.shape))
    return x + (put if alpha == 1 else put * alpha)


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None) -> Tensor:
    """The tensor with entries of `src`, or a number, put at positions along an axis."""
    source = value if src is None else src
    positions = along(input, dim, index)
    if isinstance(source, Tensor):
        return placed(input, positions, _part(source, index), "ScatterBackward0")
    return placed(input, positions, source, "ScatterBackward1")


def _part(source: Tensor, index: Tensor) -> Tensor:
    if source._raw.shape == index._raw.shape:
        return source
    return getitem(source, tuple(slice(n) for n in index._raw.shape))


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The tensor with entries of `src` added at positions along an axis."""
    return added_at(input, along(input, dim, index), _part(src, index), "ScatterAddBackward0")


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with entries of `src` joined to those at positions along an axis: by "sum" or by "mean"."""
    if reduce not in ("sum", "mean"):
        raise RuntimeError(
            f"scatter_reduce: reduce is 'sum' or 'mean' here, not {reduce!r}; group by a mask for others"
        )
    positions = np.asarray(along(input, dim, index))
    counts = np.bincount(positions.reshape(-1), minlength=input._raw.size).reshape(input._raw.shape)
    kept = np.ones(counts.shape) if include_self else counts == 0
    parts = np.maximum(counts + int(include_self), 1) if reduce == "mean" else np.ones(counts.shape)
    kind = input._raw.dtype
    at, factor, share = Tensor(positions.reshape(-1)), Tensor(kept.astype(kind)), Tensor(parts.astype(kind))
    xs = (input, _part(src, index), at, factor, share)
    return record(_reduced, xs, {}, "ScatterReduceBackward0", whole=True, apart=(2,), edges=2, pointwise=False)


def _reduced(x: Any, source: Any, at: Any, factor: Any, share: Any) -> Any:
    return _added_at(x * factor, source, at, alpha=1) / share


def _rows(x: Tensor, dim: int, index: Tensor) -> Any:
    if not x._raw.ndim:
        return np.zeros((), np.int64)
    count = x._raw.shape[dim]
    if ((index._array < -count) | (index._array >= count)).any():
        raise IndexError(f"index out of range in self: dimension {dim} has {count} entries")
    return np.take(numbers(x), index._array.reshape(-1), axis=dim)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """The tensor with parts of `source` added at positions of an axis."""
    need_index(index, "index_add")
    return added_at(input, _rows(input, dim, index), source, "IndexAddBackward0", alpha)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The tensor with parts of `source` put at positions of an axis."""
    need_index(index, "index_copy", LONG)
    return placed(input, _rows(input, dim, index), source, "IndexCopyBackward0")


def index_fill(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """The tensor with a number at positions of an axis."""
    need_index(index, "index_fill", LONG, IndexError)
    return placed(input, _rows(input, dim, index), value, "IndexFillBackward0")


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with the first entries of `source` where a mask holds; RuntimeError for a mask of another dtype."""
    need_mask(mask, "masked_scatter")
    positions = numbers(input)[np.broadcast_to(mask._array, input._raw.shape)]
    return placed(input, positions, getitem(reshape(source, (-1,)), slice(positions.size)), "MaskedScatterBackward0")


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with entries put, or added, where index tensors say."""
    if not accumulate:
        refuse_old_mask(indices, values)
    positions = numbers(input)[tuple([positions_of(one) for one in indices])]
    source = values if values._raw.shape == positions.shape else expand(values, positions.shape)
    if accumulate:
        return added_at(input, positions, source, "IndexPutBackward0")
    return placed(input, positions, source, "IndexPutBackward0")


TABLE: dict[str, Any] = {
    function.__name__: function
    for function in (scatter, scatter_add, scatter_reduce, index_add, index_copy, index_fill, masked_scatter, index_put)
}
