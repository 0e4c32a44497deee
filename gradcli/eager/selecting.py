"""A tensor and positions go in, or a question that is answered by positions; the entries that stand there come out.

What a function picks is found by letting NumPy do it to the numbers of the entries; so `median` and `take` need no rule
of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.extremes import Found
from gradcli.eager.indexing import part
from gradcli.eager.movement import axis_of
from gradcli.eager.nodes import class_named
from gradcli.eager.recorder import noted
from gradcli.eager.returned import of_node
from gradcli.eager.rules import FixedNode, RuleNode
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Traced
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    pass

Shape = tuple[int, ...]


def numbers(x: Tensor) -> Any:
    """The position of each entry in the flattened tensor, in its shape."""
    return np.arange(x._raw.size).reshape(x._raw.shape)


def fixed(x: Tensor) -> Tensor:
    """A tensor whose entries were moved to places that follow from shapes: backward may run twice."""
    if isinstance(x._node, RuleNode):
        x._node.__class__ = class_named(FixedNode, type(x._node).__name__)
    return x


def picked(x: Tensor, positions: Any, name: str) -> Tensor:
    """The entries at positions of the flattened tensor, in the shape of the positions."""
    at = Tensor(np.ascontiguousarray(positions, np.int64).reshape(-1))
    params = {"shape": tuple(positions.shape)}
    return record(_picked, (x, at), params, name, whole=True, apart=(1,), edges=1, pointwise=False)


def flat(x: Any) -> Any:
    size = 1
    for n in x.shape:
        size *= n
    return catalogue()["reshape"](x, shape=(size,))


def _picked(x: Any, at: Any, *, shape: Shape) -> Any:
    return catalogue()["reshape"](catalogue()["take_along"](flat(x), at, axis=-1), shape=shape)


# --- along an axis -------------------------------------------------------------------------------------------


LONG = ("int64",)


def need_index(
    index: Tensor,
    name: str,
    formats: tuple[str, ...] = ("int32", "int64"),
    error: type[Exception] = RuntimeError,
) -> None:
    """An error for positions in another format."""
    if index.dtype.name not in formats:
        raise error(f"{name}(): Expected dtype {' or '.join(formats)} for index, but got {index.dtype}")


def along(x: Tensor, dim: int, index: Tensor, name: str = "scatter") -> Any:
    """Positions that `index` names along an axis, for each of its entries; RuntimeError or IndexError outside."""
    axis = axis_of(dim, x.ndim)
    need_index(index, name)
    array = index._array
    if array.ndim != x.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as the tensor")
    if array.size and (array.min() < 0 or array.max() >= x.shape[axis]):
        raise RuntimeError(f"an index is out of bounds for dimension {dim} with size {x.shape[axis]}")
    places = list(np.indices(array.shape, sparse=True))
    places[axis] = array
    return numbers(x)[tuple(places)]


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """For each position in an index tensor, the entry there along an axis."""
    return picked(input, along(input, dim, index, "gather"), "GatherBackward0")


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather`, with the other axes repeated to fit."""
    need_index(indices, "take_along_dim", LONG)
    if dim is None:
        return take(input, indices)
    from gradcli.eager.movement import expand

    axis = axis_of(dim, input.ndim)
    ones = [[1 if i == input.ndim + axis else n for i, n in enumerate(t.shape)] for t in (input, indices)]
    sizes = np.broadcast_shapes(*[tuple(one) for one in ones])
    whole, index = list(sizes), list(sizes)
    whole[axis], index[axis] = input.shape[axis], indices.shape[axis]
    return gather(expand(input, tuple(whole)), dim, expand(indices, tuple(index)))


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of an axis at some positions."""
    need_index(index, "index_select")
    array = index._array
    size = input.shape[dim]
    if array.size and (array.min() < 0 or array.max() >= size):
        raise IndexError(f"an index is out of bounds for dimension {dim} with size {size}")
    return picked(input, np.take(numbers(input), array.reshape(-1), axis=dim), "IndexSelectBackward0")


def take(input: Tensor, index: Tensor) -> Tensor:
    """The entries at positions of the flattened tensor."""
    array, size = index._array, input._raw.size
    if array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    if array.size and (array.min() < -size or array.max() >= size):
        raise IndexError(f"an index is out of range for a tensor of {size} entries")
    return picked(input, array % max(size, 1), "TakeBackward0")


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The entries where a mask holds, as a vector."""
    if mask._raw.dtype != np.bool_:
        raise RuntimeError("masked_select: expected a mask of dtype torch.bool")
    shape = np.broadcast_shapes(input._raw.shape, mask._raw.shape)
    positions = np.broadcast_to(numbers(input), shape)[np.broadcast_to(mask._array, shape)]
    return picked(input, positions, "MaskedSelectBackward0")


# --- in order ------------------------------------------------------------------------------------------------


def _found(x: Tensor, at: Any, dim: int, name: str, keepdim: bool = True) -> Found:
    places = list(np.indices(at.shape, sparse=True))
    places[dim] = at
    positions = numbers(x)[tuple(places)]
    if not keepdim:
        positions, at = positions.squeeze(dim), at.squeeze(dim)
    return of_node(Found, name)(picked(x, positions, name), noted("indices", (x,), Tensor(at.astype(np.int64))))


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Found:
    """The k largest (or smallest) entries along an axis, and where they stood."""
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if isinstance(input, Traced):
        from gradcli.eager.extremes import sort

        values, at = sort(input, dim, largest)
        axis = dim % input.ndim
        kept = tuple([slice(k) if i == axis else slice(None) for i in range(input.ndim)])
        return of_node(Found, "TopkBackward0")(part(values, kept), part(at, kept))
    array = input._array
    order = np.argsort(-array if largest and array.dtype.kind != "b" else array, axis=dim, kind="stable")
    return _found(input, np.take(order, range(k), axis=dim), dim, "TopkBackward0")


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Found:
    """The k-th smallest entry along an axis, and where it stood."""
    if not 1 <= k <= input.shape[dim]:
        raise RuntimeError("kthvalue(): selected number k out of range")
    order = np.argsort(input._array, axis=dim, kind="stable")
    return _found(input, np.take(order, [k - 1], axis=dim), dim, "KthvalueBackward0", keepdim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle entry, the lower one of two; along an axis also where it stood."""
    if dim is None:
        order = np.argsort(input._array.reshape(-1), kind="stable")
        return picked(input, order[(input._raw.size - 1) // 2], "MedianBackward0")
    order = np.argsort(input._array, axis=dim, kind="stable")
    return _found(input, np.take(order, [(input.shape[dim] - 1) // 2], axis=dim), dim, "MedianBackward1", keepdim)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Found:
    """The most frequent entry along an axis, the smallest of several, and where it stood last."""
    rows = np.moveaxis(input._array, dim, -1)
    places = np.empty(rows.shape[:-1], np.int64)
    for at in np.ndindex(places.shape):
        known, counts = np.unique(rows[at], return_counts=True)
        places[at] = np.flatnonzero(rows[at] == known[counts.argmax()])[-1]
    return _found(input, np.expand_dims(places, dim), dim, "ModeBackward0", keepdim)


def _extreme_so_far(input: Tensor, dim: int, largest: bool) -> Found:
    array = np.moveaxis(input._array, dim, 0)
    at = np.zeros(array.shape, np.int64)
    for i in range(1, array.shape[0]):
        before = np.take_along_axis(array, at[i - 1][None], axis=0)[0]
        taken = array[i] >= before if largest else array[i] <= before
        at[i] = np.where(taken, i, at[i - 1])
    return _found(input, np.moveaxis(at, 0, dim), dim, f"Cum{'max' if largest else 'min'}Backward0")


def cummax(input: Tensor, dim: int) -> Found:
    """The largest entry so far along an axis, and where it stood."""
    return _extreme_so_far(input, dim, True)


def cummin(input: Tensor, dim: int) -> Found:
    """The smallest entry so far along an axis, and where it stood."""
    return _extreme_so_far(input, dim, False)


# --- diagonals, windows, repetitions ---------------------------------------------------------------------------


TABLE: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(gather, take_along_dim, index_select, take, masked_select),
        *(topk, kthvalue, median, mode, cummax, cummin),
    )
}
