"""`x[...]` read and written: an index goes in, the nodes that PyTorch makes of it come out, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import dtypes, tracing
from gradcli.eager.dispatch import cast, record
from gradcli.eager.movement import axis_of, reshape, unsqueeze, viewed
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Traced, known
from gradcli.primitives import catalogue
from gradcli.primitives.indexing import index as graph_index

if TYPE_CHECKING:
    from collections.abc import Sequence


_INDEX_KINDS = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_))


def _sliced(x: Any, *, axis: int, start: int, step: int, size: int) -> Any:
    rank = len(x.shape)
    starts, steps, counts = [0] * rank, [1] * rank, list(x.shape)
    starts[axis], steps[axis], counts[axis] = start, step, size
    return catalogue()["slice"](x, start=tuple(starts), step=tuple(steps), size=tuple(counts))


def _selected(x: Any, *, axis: int, at: int) -> Any:
    shape = tuple(n for i, n in enumerate(x.shape) if i != len(x.shape) + axis)
    return catalogue()["reshape"](_sliced(x, axis=axis, start=at, step=1, size=1), shape=shape)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The part at one position of an axis."""
    axis = axis_of(dim, input.ndim)
    size = input.shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return viewed(input, _selected, {"axis": axis, "at": index % size}, "SelectBackward0")


def narrow(input: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """The part of an axis from a position on."""
    axis = axis_of(dim, input.ndim)
    if start + length > input.shape[axis]:
        raise RuntimeError(f"narrow(): start {start} and length {length} exceed size {input.shape[axis]}")
    return viewed(input, _sliced, {"axis": axis, "start": start, "step": step, "size": length}, "SliceBackward0")


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_plain(item: Any) -> bool:
    if isinstance(item, Tensor):
        return item.ndim == 0 and item.dtype.kind == 1 and not is_old_mask(item) and not isinstance(item, Traced)
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


def is_old_mask(item: Any) -> bool:
    """Whether an index is a tensor or array of dtype uint8, which is a mask as it was before there was torch.bool."""
    array = item._raw if isinstance(item, Tensor) else item
    return isinstance(item, (Tensor, np.ndarray)) and bool(array.dtype == np.uint8)


def positions_of(item: Any) -> Any:
    """The array of an index: truth values, or whole numbers. IndexError for other formats."""
    if isinstance(item, str):
        raise TypeError(f"a tensor is not indexed by text, as {item!r}")
    array = item._array if isinstance(item, Tensor) else np.asarray(item)
    if is_old_mask(item):
        return array.astype(np.bool_)
    if array.dtype not in _INDEX_KINDS and (array.size or isinstance(item, Tensor)):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return array


def refuse_old_mask(items: Sequence[Any], value: Any) -> None:
    """RuntimeError for one number put where a mask of dtype uint8 holds."""
    masks = [one for one in items if isinstance(one, (Tensor, np.ndarray)) and one.ndim]
    if len(masks) == 1 and is_old_mask(masks[0]) and (value._raw.size if isinstance(value, Tensor) else 1) == 1:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got a mask of dtype torch.uint8: use .bool()")


def part(x: Tensor, index: Any) -> Tensor:
    """x[index] for plain indices: a view through Select, Slice and Unsqueeze."""
    items = _items(index)
    found, dim = x, 0
    for item in _expanded(x, items):
        if item is None:
            found = unsqueeze(found, dim)
            dim += 1
        elif isinstance(item, slice):
            size = found.shape[dim]
            start, stop, step = item.indices(size)
            if step < 0:
                raise ValueError("a slice of a tensor needs a step greater than zero")
            count = len(range(start, stop, step))
            if count != size or step != 1:
                found = narrow_by(found, dim, start if count else 0, step, count)
            dim += 1
        else:
            found = select(found, dim, int(item))
    if found is x:
        if not x.ndim or items == (Ellipsis,):
            return viewed(x, _same, {}, "AliasBackward0")
        return narrow_by(x, 0, 0, 1, x.shape[0])
    return found


def _same(x: Any) -> Any:
    return x


def narrow_by(x: Tensor, dim: int, start: int, step: int, size: int) -> Tensor:
    """A slice along one axis."""
    params = {"axis": axis_of(dim, x.ndim), "start": start, "step": step, "size": size}
    return viewed(x, _sliced, params, "SliceBackward0")


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
            axis += array.ndim if array.dtype == np.bool_ else 1
            for one in np.nonzero(array) if array.dtype == np.bool_ else (array,):
                layout.append("at")
                if isinstance(item, Traced):
                    arrays.append(cast(item, dtypes.int64))
                    continue
                arrays.append(Tensor(np.asarray(one).astype(np.int64)))
    _check_bounds(x, layout, arrays)
    apart = tuple(range(1, len(arrays) + 1))
    params = {"layout": tuple(layout)}
    return record(_gathered, (x, *arrays), params, "IndexBackward0", whole=True, apart=apart, edges=1, pointwise=False)


def _check_bounds(x: Tensor, layout: list[Any], arrays: list[Tensor]) -> None:
    axis, waiting = 0, iter(arrays)
    for kind in layout:
        if kind == "new":
            continue
        if kind == "at":
            array, size = known(next(waiting)), x.shape[axis]
            if array is not None and array.size and (array.min() < -size or array.max() >= size):
                raise IndexError(f"an index is out of bounds for dimension {axis} with size {size}")
        axis += 1


def _gathered(x: Any, *arrays: Any, layout: tuple[Any, ...]) -> Any:
    waiting = iter(arrays)
    items = [None if kind == "new" else next(waiting) if kind == "at" else slice(*kind) for kind in layout]
    return graph_index(x, tuple(items))


def renamed(x: Tensor, name: str) -> Tensor:
    """The same tensor, whose node has another name."""
    from gradcli.eager.nodes import class_named
    from gradcli.eager.rules import RuleNode

    if isinstance(x._node, RuleNode):
        x._node.__class__ = class_named(RuleNode, name)
    return x


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value: plain indices copy into a view, others put entries."""
    from gradcli.eager.changes import copy_
    from gradcli.eager.inplace import change

    items = _items(index)
    recording = tracing.current is not None and tracing.traced((x, value))
    if not recording and all(_is_plain(item) for item in items):
        target = part(x, index)
        copy_(target, _without_leading_ones(value, target.ndim) if isinstance(value, Tensor) else value)
        return
    value = value if isinstance(value, Tensor) else Tensor(np.asarray(value, dtype=x._raw.dtype))
    refuse_old_mask(items, value)
    plain = tuple(
        positions_of(item) if not (_is_plain(item) and not isinstance(item, Tensor)) else item for item in items
    )
    numbers = np.full(x._raw.shape, -1, np.int64)
    wanted = numbers[plain].shape
    value = _without_leading_ones(value, len(wanted))
    try:
        source = np.broadcast_to(np.arange(value._raw.size).reshape(value._raw.shape), wanted)
    except ValueError:
        raise RuntimeError(f"shape mismatch: {list(value.shape)} cannot be put where {list(wanted)} is") from None
    numbers[plain] = source
    hit, at = Tensor(numbers >= 0), Tensor(np.maximum(numbers, 0).reshape(-1))
    change(
        x,
        lambda old: record(_put, (old, value, hit, at), {}, "IndexPutBackward0", whole=True, apart=(2, 3), edges=2),
        (value,),
    )


def _without_leading_ones(value: Tensor, rank: int) -> Tensor:
    """A value without the axes of size 1 in front that are too many for a place of some rank."""
    extra = 0
    while extra < value.ndim - rank and value.shape[extra] == 1:
        extra += 1
    return reshape(value, tuple(value.shape[extra:])) if extra else value


def _put(x: Any, value: Any, hit: Any, at: Any) -> Any:
    reshape = catalogue()["reshape"]
    size = 1
    for n in value.shape:
        size *= n
    moved = catalogue()["take_along"](reshape(value, shape=(size,)), at, axis=-1)
    return catalogue()["where"](hit, reshape(moved, shape=x.shape), x)


TABLE = {function.__name__: function for function in (select, narrow)}
