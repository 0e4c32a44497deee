"""Indexing: `x[...]`, `select`, `gather`, `index_select`, `scatter` and the like."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager._core import dtypes, tracer
from gradcli.eager._core.events import noted
from gradcli.eager._core.grad_fn import class_named
from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._engine.arguments import Shape
from gradcli.eager._engine.record import cast, declared, record, with_gradient
from gradcli.eager._engine.rule_node import FixedNode, RuleNode, fitted_tensor
from gradcli.eager._ops.elementwise import need_mask, where
from gradcli.eager._ops.table import METHOD, op
from gradcli.eager._ops.tensor_reductions import chosen, entries_at, itself, order_along, sort
from gradcli.eager._ops.views import axis_of, expand, length_of, reshape, unsqueeze, viewed
from gradcli.primitives import catalogue
from gradcli.primitives.indexing import index as graph_index

_INDEX_KINDS = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_))


def sliced(x: Any, *, axis: int, start: int, step: int, size: int) -> Any:
    """Part of an axis of a graph operand."""
    rank = len(x.shape)
    starts, steps, counts = [0] * rank, [1] * rank, list(x.shape)
    starts[axis], steps[axis], counts[axis] = start, step, size
    return catalogue()["slice"](x, start=tuple(starts), step=tuple(steps), size=tuple(counts))


def selected(x: Any, *, axis: int, at: int) -> Any:
    """One position of an axis of a graph operand."""
    shape = tuple(n for i, n in enumerate(x.shape) if i != len(x.shape) + axis)
    return catalogue()["reshape"](sliced(x, axis=axis, start=at, step=1, size=1), shape=shape)


@op(node="SelectBackward0")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The part at one position of an axis."""
    axis = axis_of(dim, input.ndim)
    size = input.shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return viewed(input, selected, {"axis": axis, "at": index % size}, select.node)


@op(node="SliceBackward0")
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The part of an axis from a position on."""
    size = input.shape[axis_of(dim, input.ndim)]
    if start + length > size:
        raise RuntimeError(f"narrow(): start {start} and length {length} exceed size {size}")
    return narrow_by(input, dim, start, 1, length)


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_plain(item: Any) -> bool:
    if isinstance(item, Tensor):
        return item.ndim == 0 and item.dtype.kind == 1 and not isinstance(item, Traced)
    return (
        item is None or item is Ellipsis or (isinstance(item, (int, slice, np.integer)) and not isinstance(item, bool))
    )


def _expanded(x: Tensor, items: tuple[Any, ...]) -> list[Any]:
    used = 0
    for item in items:
        if item is None or item is Ellipsis:
            continue
        is_mask = not _is_plain(item) and positions_of(item).dtype == np.bool_
        used += positions_of(item).ndim if is_mask else 1
    if used > x.ndim:
        raise IndexError(f"too many indices for a tensor of dimension {x.ndim}")
    rest = [slice(None)] * (x.ndim - used)
    for at, item in enumerate(items):
        if item is Ellipsis:
            return [*items[:at], *rest, *items[at + 1 :]]
    return [*items, *rest]


def positions_of(item: Any) -> Any:
    """The array of an index: truth values, or whole numbers. IndexError for other formats."""
    if isinstance(item, str):
        raise TypeError(f"a tensor cannot be indexed by a string such as {item!r}")
    array = item._array if isinstance(item, Tensor) else np.asarray(item)
    if array.dtype not in _INDEX_KINDS and (array.size or isinstance(item, Tensor)):
        raise IndexError("tensors used as indices must be long, int or bool tensors")
    return array


def part(x: Tensor, index: Any) -> Tensor:
    """x[index] for plain indices: a view through Select, Slice and Unsqueeze."""
    items = _items(index)
    result, dim = x, 0
    for item in _expanded(x, items):
        if item is None:
            result = unsqueeze(result, dim)
            dim += 1
        elif isinstance(item, slice):
            size = result.shape[dim]
            start, stop, step = item.indices(size)
            if step < 0:
                raise ValueError("a slice of a tensor needs a step greater than zero")
            count = len(range(start, stop, step))
            if count != size or step != 1:
                result = narrow_by(result, dim, start if count else 0, step, count)
            dim += 1
        else:
            result = select(result, dim, int(item))
    if result is x:
        if not x.ndim or items == (Ellipsis,):
            return viewed(x, itself, {}, getitem.row.nodes[1])
        return narrow_by(x, 0, 0, 1, x.shape[0])
    return result


def narrow_by(x: Tensor, dim: int, start: int, step: int, size: int) -> Tensor:
    """A slice along one axis."""
    params = {"axis": axis_of(dim, x.ndim), "start": start, "step": step, "size": size}
    return viewed(x, sliced, params, narrow.node)


@op(name="__getitem__", only=METHOD, fast=True, node="IndexBackward0 AliasBackward0", saves="self indices")
def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index], for every index of PyTorch's."""
    items = _items(index)
    if all(_is_plain(item) for item in items):
        return part(x, index)
    layout: list[Any] = []
    arrays: list[Tensor] = []
    axis = 0
    for item in _expanded(x, items):
        if item is None:
            layout.append("new")
        elif isinstance(item, slice):
            layout.append((item.start, item.stop, item.step))
            axis += 1
        else:
            array = positions_of(item)
            if not array.ndim and array.dtype == np.bool_:  # an axis of one entry, or of none
                x, array = unsqueeze(x, axis), array.reshape(1)
            if array.dtype == np.bool_ and array.shape != x._raw.shape[axis : axis + array.ndim]:
                raise IndexError(
                    f"the shape of the mask {list(array.shape)} at index {axis} does not match the shape of the "
                    f"indexed tensor {list(x.shape)}"
                )
            if array.dtype != np.bool_ and not isinstance(item, Traced):
                _need_bounds(array, axis, x.shape[axis], -x.shape[axis], IndexError)
            axis += array.ndim if array.dtype == np.bool_ else 1
            for places in np.nonzero(array) if array.dtype == np.bool_ else (array,):
                layout.append("at")
                if isinstance(item, Traced):
                    arrays.append(cast(item, dtypes.int64))
                    continue
                arrays.append(Tensor(np.asarray(places).astype(np.int64)))
    apart = tuple(range(1, len(arrays) + 1))
    params = {"layout": tuple(layout)}
    return record(_gathered, (x, *arrays), params, getitem.node, keep_integer=True, keep_dtype=apart)


def _need_bounds(array: Any, dim: int, size: int, least: int, error: type[Exception]) -> None:
    if array.size and (array.min() < least or array.max() >= size):
        raise error(f"an index is out of bounds for dimension {dim} with size {size}")


def _gathered(x: Any, *arrays: Any, layout: tuple[Any, ...]) -> Any:
    waiting = iter(arrays)
    items = [None if kind == "new" else next(waiting) if kind == "at" else slice(*kind) for kind in layout]
    return graph_index(x, tuple(items))


def assignment(x: Tensor, index: Any, value: Any, node: str) -> tuple[Tensor, Any, Callable[[Tensor], Tensor] | None]:
    """What `x[index] = value` changes, and how: plain indices copy a value into a view, others put entries.

    The view, the value and None; or the tensor, the value and the function that puts its entries, by a node.
    """
    items = _items(index)
    recording = tracer.traced((x, value))
    if not recording and all(_is_plain(item) for item in items):
        target = part(x, index)
        return target, _without_leading_ones(value, target.ndim) if isinstance(value, Tensor) else value, None
    value = value if isinstance(value, Tensor) else Tensor(np.asarray(value, dtype=x._raw.dtype))
    plain = [positions_of(item) if not (_is_plain(item) and not isinstance(item, Tensor)) else item for item in items]
    positions = numbers(x)[tuple(plain)]
    value = _without_leading_ones(value, positions.ndim)
    return x, value, lambda old: placed(old, positions, value, node)


def _without_leading_ones(value: Tensor, rank: int) -> Tensor:
    """A value without the axes of size 1 in front that are too many for a place of some rank."""
    extra = 0
    while extra < value.ndim - rank and value.shape[extra] == 1:
        extra += 1
    return reshape(value, tuple(value.shape[extra:])) if extra else value


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
    return record(_picked, (x, at), params, name, keep_integer=True, keep_dtype=(1,))


def flat(x: Any) -> Any:
    return catalogue()["reshape"](x, shape=(math.prod(x.shape),))


def _picked(x: Any, at: Any, *, shape: Shape) -> Any:
    return catalogue()["reshape"](catalogue()["take_along"](flat(x), at, axis=-1), shape=shape)


def need_index(index: Tensor, name: str) -> None:
    """RuntimeError for positions in another format."""
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index, but got {index.dtype}")


def along(x: Tensor, dim: int, index: Tensor, name: str = "scatter") -> Any:
    """Positions that `index` names along an axis, for each of its entries; RuntimeError or IndexError outside."""
    axis = axis_of(dim, x.ndim)
    need_index(index, name)
    array, size = index._array, length_of(x, dim)
    if array.ndim != x.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as the tensor")
    _need_bounds(array, dim, size, 0, RuntimeError)
    if not x.ndim:
        return numbers(x)
    places = list(np.indices(array.shape, sparse=True))
    places[axis] = array
    return numbers(x)[tuple(places)]


@op(node="GatherBackward0")
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """For each position in an index tensor, the entry there along an axis."""
    return picked(input, along(input, dim, index, "gather"), gather.node)


@op()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The entries at positions along an axis, both repeated to one shape along the others; without `dim` of all."""
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    axis = axis_of(dim, input.ndim) + input.ndim
    shape = np.broadcast_shapes(*[(*x.shape[:axis], 1, *x.shape[axis + 1 :]) for x in (input, indices)])
    input, indices = (expand(x, (*shape[:axis], x.shape[axis], *shape[axis + 1 :])) for x in (input, indices))
    return gather(input, dim, indices)


@op(node="IndexSelectBackward0")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of an axis at some positions."""
    need_index(index, "index_select")
    return picked(input, _rows(input, dim, index), index_select.node)


@op(node="MaskedSelectBackward0")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The entries where a mask holds, as a vector."""
    need_mask(mask, "masked_select")
    shape = np.broadcast_shapes(input._raw.shape, mask._raw.shape)
    positions = np.broadcast_to(numbers(input), shape)[np.broadcast_to(mask._array, shape)]
    return picked(input, positions, masked_select.node)


@op(node="TopkBackward0", least=1)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) entries along an axis, and where they stood."""
    if not 0 <= k <= length_of(input, dim):
        raise RuntimeError("selected index k out of range")
    if isinstance(input, Traced):
        values, at = sort(input, dim, largest)
        axis = dim % input.ndim
        kept = tuple([slice(k) if i == axis else slice(None) for i in range(input.ndim)])
        return entries_at(topk.node, part(values, kept), part(at, kept))
    order = np.atleast_1d(order_along(input, dim, largest)._array)
    return chosen(input, Tensor(np.take(order, range(k), axis=dim)), dim, topk.node)


@op(node="MedianBackward0 MedianBackward1", least=1)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle entry, the lower one of two, or NaN if there is one; along an axis also where it stood.

    Without `dim`, entries that are equal to it share its gradient.
    """
    if dim is not None:
        return chosen(input, Tensor(_middle(np.atleast_1d(input._array), dim)), dim, median.row.nodes[1], keepdim)
    array = input._array.reshape(-1)
    if not array.size:
        return noted("median", (input,), Tensor(np.array(np.nan, array.dtype)))
    (at,) = _middle(array, 0)
    equal = np.flatnonzero((array == array[at]) | (array != array) & (array[at] != array[at]))
    if len(equal) == 1:
        return picked(input, at, median.node)
    xs = (input, Tensor(np.array([at])), Tensor(equal))
    return record(_shared, xs, {}, median.node, keep_integer=True, keep_dtype=(1, 2))


def _middle(array: Any, axis: int) -> Any:
    order = np.argsort(array, axis=axis, kind="stable")
    at = np.take(order, [(array.shape[axis] - 1) // 2], axis=axis)
    if array.dtype.kind != "f":
        return at
    undefined = np.isnan(array)
    return np.where(undefined.any(axis, keepdims=True), undefined.argmax(axis, keepdims=True), at)


def _shared(x: Any, at: Any, equal: Any) -> Any:
    take, reshape = catalogue()["take_along"], catalogue()["reshape"]
    value = reshape(take(flat(x), at, axis=-1), shape=())
    return catalogue()["ste"](value, declared("mean", take(flat(x), equal, axis=-1)))


def placed(x: Tensor, positions: Any, source: Any, name: str, edges: int = 2) -> Tensor:
    """x with the entries of `source`, a number or a tensor that is repeated to their shape, at some positions."""
    last = np.full(x._raw.size, -1, np.int64)
    wanted, size = positions.shape, source._raw.shape if isinstance(source, Tensor) else ()
    try:
        last[positions] = np.broadcast_to(np.arange(math.prod(size)).reshape(size), wanted)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: {list(size)} cannot be assigned to a selection of shape {list(wanted)}"
        ) from None
    hit = Tensor((last >= 0).reshape(x._raw.shape))
    if not isinstance(source, Tensor):
        return record(catalogue()["where"], (hit, source, x), {}, name, edges=(2,))
    xs = (x, source, hit, Tensor(np.maximum(last, 0)))
    if tracer.own.current is None and np.count_nonzero(hit._raw) < positions.size:  # all of one place get its gradient
        with no_grad():
            result = record(_placed, xs, {}, name, keep_integer=True, keep_dtype=(2, 3), edges=edges)

        def gradient(ct: Tensor) -> tuple[Tensor, Tensor]:
            taken = picked(ct, positions, getitem.node)
            return where(hit, 0.0, ct), fitted_tensor(taken, size, source._raw.dtype)

        return with_gradient(result, (x, source), name, gradient)
    return record(_placed, xs, {}, name, keep_integer=True, keep_dtype=(2, 3), edges=edges)


def _placed(x: Any, source: Any, hit: Any, at: Any) -> Any:
    moved = catalogue()["take_along"](flat(source), at, axis=-1)
    return catalogue()["where"](hit, catalogue()["reshape"](moved, shape=tuple(x.shape)), x)


def added_at(x: Tensor, positions: Any, source: Tensor, name: str, alpha: float = 1) -> Tensor:
    """x with the entries of `source` added at some positions; one that is named twice gets both."""
    at = Tensor(np.ascontiguousarray(positions, np.int64).reshape(-1))
    params = {"alpha": alpha}
    return record(_added_at, (x, source, at), params, name, keep_integer=True, keep_dtype=(2,))


def _added_at(x: Any, source: Any, at: Any, *, alpha: float) -> Any:
    put = catalogue()["put_along"](flat(source), at, axis=-1, size=math.prod(x.shape))
    put = catalogue()["reshape"](put, shape=tuple(x.shape))
    return x + (put if alpha == 1 else put * alpha)


@op(node="ScatterBackward0 ScatterBackward1", inplace=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None) -> Tensor:
    """The tensor with entries of `src`, or a number, put at positions along an axis."""
    source = value if src is None else src
    positions = along(input, dim, index)
    if isinstance(source, Tensor):
        return placed(input, positions, _part(source, index), scatter.node)
    return placed(input, positions, source, scatter.row.nodes[1])


def _part(source: Tensor, index: Tensor) -> Tensor:
    if source._raw.shape == index._raw.shape:
        return source
    return getitem(source, tuple(slice(n) for n in index._raw.shape))


@op(node="ScatterAddBackward0", inplace=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The tensor with entries of `src` added at positions along an axis."""
    return added_at(input, along(input, dim, index), _part(src, index), scatter_add.node)


_UFUNCS = {"sum": np.add, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


@op(node="ScatterReduceBackward0", inplace=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """The tensor with the "sum", "mean", "amax" or "amin" of the entries of `src` that come to one position of an axis.

    With `include_self` the entry that is there counts too. Equal extremes share the gradient. RuntimeError for "prod".
    """
    if reduce not in _UFUNCS:
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    positions, source = along(input, dim, index), _part(src, index)
    at, entries, result = positions.reshape(-1), source._array.reshape(-1), input._array.copy()
    row, is_extreme = result.reshape(-1), reduce in ("amax", "amin")
    kept = np.ones(row.size, np.bool_)  # whether the entries of `input` count
    if not include_self:
        kept[at] = False
        row[at] = entries if is_extreme else 0
    _UFUNCS[reduce].at(row, at, entries)
    counted, used = kept, np.ones(at.size, np.bool_)
    if is_extreme:  # an equal entry of `input` has its share of the gradient although it does not count, as in PyTorch
        counted, used = row == input._array.reshape(-1), entries == row[at]
    counts = np.maximum(np.bincount(at[used], minlength=row.size) + counted, 1).reshape(result.shape)
    shares = np.ones_like(result) if reduce == "sum" else counts.astype(result.dtype)
    if result.dtype.kind in "iu":
        return Tensor(result // shares if reduce == "mean" else result)
    masks = Tensor((kept & counted).reshape(result.shape)), Tensor(used.reshape(positions.shape))
    xs = (input, source, Tensor(result / shares if reduce == "mean" else result), Tensor(shares), *masks, Tensor(at))
    return record(_reduced_at, xs, {}, scatter_reduce.node, keep_dtype=(2, 3, 4, 5, 6), edges=2)


def _reduced_at(x: Any, source: Any, value: Any, shares: Any, kept: Any, used: Any, at: Any) -> Any:
    """The value, with the derivative of the mean of the entries that count."""
    put = catalogue()["put_along"](flat(declared("where", used, source, 0)), at, axis=-1, size=math.prod(x.shape))
    total = declared("where", kept, x, 0) + catalogue()["reshape"](put, shape=tuple(x.shape))
    return catalogue()["ste"](value, total / shares)


def _rows(x: Tensor, dim: int, index: Tensor) -> Any:
    """The positions of some parts along an axis; IndexError outside."""
    array, count = index._array, length_of(x, dim)
    _need_bounds(array, dim, count, 0, IndexError)
    return np.take(numbers(x), array.reshape(-1), axis=dim) if x.ndim else numbers(x)


@op(node="IndexAddBackward0", inplace=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """The tensor with parts of `source` added at positions of an axis."""
    need_index(index, "index_add")
    return added_at(input, _rows(input, dim, index), source, index_add.node, alpha)
