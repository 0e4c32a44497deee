"""Joining, splitting and rearranging: `cat`, `stack`, `split`, `flip`, `roll`, `tril` and the like."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.eager._core import events
from gradcli.eager._core.modes import recording
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Dims, Shape, Sizes, Tensors, sizes
from gradcli.eager._engine.record import GradientNode, declared, noded, operation, record
from gradcli.eager._engine.rule_node import source_of
from gradcli.eager._ops.elementwise import sub
from gradcli.eager._ops.subscripts import fixed, flat, index_select, narrow, numbers, picked, select, selected, sliced
from gradcli.eager._ops.table import FUNCTION, METHOD, described, formula, op
from gradcli.eager._ops.views import axis_of, clone, expand, length_of, permute, reshape, unsqueeze, view, viewed
from gradcli.primitives import catalogue

_TOGETHER = 256  # joined at once: the gradient of each part needs the sizes of all parts before it


def _joined(*xs: Any, axis: int) -> Any:
    concat = catalogue()["concat"]
    while len(xs) > _TOGETHER:
        groups = [xs[i : i + _TOGETHER] for i in range(0, len(xs), _TOGETHER)]
        xs = tuple([group[0].bind(concat, group, {"axis": axis}) for group in groups])
    return xs[0].bind(concat, xs, {"axis": axis})


@op("concat concatenate", node="CatBackward0", only=FUNCTION)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along an axis that they have."""
    xs = _several(tensors, "cat")
    for i, x in enumerate(xs):
        if not x._raw.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated; stack joins numbers")
    return record(_joined, xs, {"axis": axis_of(dim, xs[0].ndim)}, cat.node, keep_integer=True)


def _stacked(*xs: Any, axis: int) -> Any:
    rank = len(xs[0].shape) + 1
    at = rank + axis
    shape = (*xs[0].shape[:at], 1, *xs[0].shape[at:])
    return _joined(*[catalogue()["reshape"](x, shape=tuple(shape)) for x in xs], axis=axis)


@op(node="StackBackward0", only=FUNCTION)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    xs = _several(tensors, "stack")
    if any(x._array.shape != xs[0]._array.shape for x in xs):
        raise RuntimeError("stack expects each tensor to be equal size")
    return record(_stacked, xs, {"axis": axis_of(dim, xs[0].ndim + 1)}, stack.node, keep_integer=True)


def _several(tensors: Sequence[Tensor], what: str) -> tuple[Tensor, ...]:
    xs = tuple(tensors)
    if not xs:
        raise (ValueError if what == "cat" else RuntimeError)(f"{what}() needs a non-empty list of tensors")
    if not all(isinstance(x, Tensor) for x in xs):
        raise TypeError(f"{what}() joins tensors only")
    return xs


@op(node="FlipBackward0")
def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The entries in the opposite order along some axes."""
    return record(operation("flip"), (input,), {"axis": sizes(axes, dims, "dims")}, flip.node, keep_integer=True)


@op("moveaxis")
def movedim(input: Tensor, source: Sizes, destination: Sizes) -> Tensor:
    """Some axes moved to other places."""
    rank = input.ndim
    places = [(d,) if isinstance(d, int) else tuple(d) for d in (source, destination)]
    old, new = ([axis_of(d, rank) + rank for d in dims] for dims in places)
    if len(old) != len(new) or len(set(old)) != len(old) or len(set(new)) != len(new):
        raise RuntimeError(
            f"movedim: source {places[0]} and destination {places[1]} must name as many distinct dimensions"
        )
    rest = iter([i for i in range(rank) if i not in old])
    goes = dict(zip(new, old, strict=True))
    return permute(input, tuple([goes[i] if i in goes else next(rest) for i in range(rank)]))


def _flipped(name: str, axis: int, which: str) -> Any:
    return op()(described(lambda input: flip(input, axis), name, f"The {which} axis in the opposite order."))


fliplr, flipud = _flipped("fliplr", 1, "second"), _flipped("flipud", 0, "first")


@formula(pointwise=False, whole=True)
def roll(input: Tensor, shifts: Sizes, dims: Dims = None) -> Any:
    """The entries moved along axes; what leaves at one end enters at the other."""
    return declared("roll", input, shift=shifts, axis=dims)


@op(node="RepeatBackward0", only=METHOD)
def repeat(input: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """The tensor repeated as a whole, so many times along each axis. RuntimeError for fewer numbers than axes."""
    times = sizes(counts, repeats, "repeats")
    if len(times) < input.ndim:
        raise RuntimeError(
            f"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: {len(times)} "
            f"against {input.ndim}"
        )
    if any(n < 0 for n in times):
        raise RuntimeError(f"a tensor cannot be repeated a negative number of times: {list(times)}")
    return record(operation("tile"), (input,), {"reps": times}, repeat.node, keep_integer=True)


@op()
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """The tensor repeated as a whole, so many times along each axis, once along the axes that are not named."""
    times = sizes(counts, dims, "dims")
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


def _triangle(name: str, kept: str, other: str) -> Any:
    def function(input: Tensor, diagonal: int = 0) -> Any:
        return declared(name, input, k=diagonal)

    row = formula(pointwise=False, whole=True, inplace=True)
    return row(described(function, name, f"The entries on and {kept} a diagonal, zeros {other}."))


tril, triu = _triangle("tril", "below", "above"), _triangle("triu", "above", "below")


@formula(pointwise=False, whole=True, least=1)
def trace(input: Tensor) -> Any:
    """The sum of the diagonal of a matrix."""
    return declared("trace", input)


def _parts(x: Tensor, axis: int, places: list[Any], name: str) -> tuple[Tensor, ...]:
    """The parts at some places of an axis, each of which is a position or a range, as views; one node for all."""
    watching, events.own.current = events.own.current, None  # a record of a run shows the operation alone
    try:
        parts = []
        for place in places:
            if isinstance(place, int):
                parts.append(viewed(x, selected, {"axis": axis, "at": place}, select.node))
            else:
                params = {"axis": axis, "start": place.start, "step": 1, "size": len(place)}
                parts.append(viewed(x, sliced, params, narrow.node))
    finally:
        events.own.current = watching
    if recording() and x.requires_grad:
        shapes, kind = [part._raw.shape for part in parts], x._raw.dtype
        join = stack if name == unbind.node else cat

        def gradient(*cts: Tensor | None) -> tuple[Tensor]:
            whole = [Tensor(np.zeros(shape, kind)) if ct is None else ct for ct, shape in zip(cts, shapes, strict=True)]
            return (join(whole, axis),)

        noded(tuple(parts), GradientNode, name, [source_of(x)], gradient=gradient)
    for part in parts:
        part._frozen_by = part._frozen_by or "several"
        events.report("operation", name, (x,), part)
    return tuple(parts)


@op(node="UnbindBackward0")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, one for each position; one node for all of them."""
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        input._current_edge()  # a view that may not be used says so first
        raise IndexError("a 0-d tensor cannot be unbound")
    return _parts(input, axis, list(range(input.shape[axis])), unbind.node)


@op(node="SplitBackward0 SplitWithSizesBackward0")
def split(tensor: Tensor, split_size_or_sections: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size along an axis, the last one may be smaller; or parts of given sizes."""
    node = split.node
    if not tensor.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = axis_of(dim, tensor.ndim)
    size = tensor.shape[axis]
    if isinstance(split_size_or_sections, int):
        each = split_size_or_sections
        if each < 0 or (not each and size):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
        each = max(each, 1)
        counts = [min(each, size - start) for start in range(0, size or 1, each)]
    else:
        counts, node = list(split_size_or_sections), split.row.nodes[1]
        if sum(counts) != size:
            raise RuntimeError(f"split_with_sizes expects sizes that sum to {size}, not {counts}")
    ends = list(itertools.accumulate(counts))
    places = [range(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return _parts(tensor, axis, places, node)


@op()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts of equal size along an axis."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = length_of(input, dim)
    return split(input, -(-size // chunks) if size else [0] * chunks, dim)


@op(only=FUNCTION)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second axis, vectors along their only one."""
    return cat([x if x.ndim else reshape(x, (1,)) for x in tensors], int(tensors[0].ndim > 1))


@op("row_stack", only=FUNCTION)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the first axis, vectors as rows."""
    return cat([reshape(x, (1, -1)) if x.ndim < 2 else x for x in tensors], 0)


def _at_least(rank: int) -> Any:
    def function(*tensors: Tensors) -> Any:
        if len(tensors) > 1 or isinstance(tensors[0], (list, tuple)):
            return tuple([function(x) for x in (tensors if len(tensors) > 1 else tensors[0])])
        x = tensors[0]
        while x.ndim < rank:
            x = unsqueeze(x, 0 if x.ndim == 1 else -1) if x.ndim else reshape(x, (1,) * rank)
        return x

    return op(only=FUNCTION)(
        described(function, f"atleast_{rank}d", f"Tensors with at least {rank} axes, new ones of size 1.")
    )


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


@op(only=FUNCTION)
def meshgrid(*tensors: Tensors, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Vectors repeated over the grid that they span; `xy` exchanges the first two axes."""
    xs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if any(x.ndim > 1 for x in xs):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = [1, 0]
    shape = tuple([xs[i].numel() for i in places])
    return tuple(
        [
            expand(view(x, tuple([-1 if j == place else 1 for j in range(len(xs))])), shape)
            for x, place in zip(xs, places, strict=True)
        ]
    )


@op()
def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """The differences of neighbours along an axis."""
    for _ in range(n):
        size = input.shape[axis_of(dim, input.ndim)]
        input = sub(narrow(input, dim, 1, size - 1), narrow(input, dim, 0, size - 1))
    return input


@op(node="DiagonalBackward0")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes, as the last axis: a view, or a copy that refuses writes."""
    rank = input.ndim
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    if first == second:
        raise RuntimeError("diagonal dimensions cannot be identical")
    axes = (*[i for i in range(-rank, 0) if i not in (first, second)], first, second)
    view = viewed(input, _diagonal, {"axes": axes, "offset": offset}, diagonal.node)
    return view if view._base is not None else _copied(view)


def _diagonal(x: Any, *, axes: Shape, offset: int) -> Any:
    x = catalogue()["permute"](x, axes=axes)
    *lead, rows, columns = x.shape
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = (max(offset, 0) + max(-offset, 0) * columns) if count else 0
    entries = catalogue()["reshape"](x, shape=(*lead, rows * columns))
    return sliced(entries, axis=-1, start=start, step=columns + 1, size=count)


def _copied(x: Tensor) -> Tensor:
    """A copy where PyTorch has a view, so writing to it is refused."""
    if isinstance(x._raw, np.ndarray):
        x._raw.flags.writeable = False
    return fixed(x)


@op(node="DiagonalBackward0_copy")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): expected 1-D or 2-D tensor, got {input.ndim}-D")
    return fixed(picked(input, np.diagonal(numbers(input), diagonal), diag.node))


@op(node="DiagEmbedBackward0")
def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    """Matrices with the last axis on their diagonal."""
    size = input.shape[-1] + abs(offset)
    shape = (*input.shape[:-1], size, size)
    positions = np.diagonal(np.arange(np.prod(shape, dtype=np.int64)).reshape(shape), offset, -2, -1)
    at = Tensor(np.ascontiguousarray(positions).reshape(-1))
    matrices = record(_embedded, (input, at), {"shape": shape}, diag_embed.node, keep_integer=True, keep_dtype=(1,))
    return fixed(matrices)


def _embedded(x: Any, at: Any, *, shape: Shape) -> Any:
    put = catalogue()["put_along"](flat(x), at, axis=-1, size=math.prod(shape))
    return catalogue()["reshape"](put, shape=shape)


@op(node="UnfoldBackward0", only=METHOD)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows along an axis, one after the other, with the entries of each as the last axis."""
    axis = axis_of(dimension, input.ndim) + input.ndim
    if size > input.shape[axis]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dimension} is {input.shape[axis]} but size is {size}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(numbers(input), size, axis=axis)
    return _copied(picked(input, windows[(slice(None),) * axis + (slice(None, None, step),)], unfold.node))


@op()
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each entry repeated, one after the other."""
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if isinstance(repeats, Tensor):
        if repeats.dtype.name not in ("int32", "int64"):
            raise NotImplementedError(f"repeat_interleave is not implemented for repeats of dtype {repeats.dtype}")
        return picked(input, np.repeat(numbers(input), repeats._array, axis=dim), index_select.node)
    axis = axis_of(dim, input.ndim) + input.ndim
    wide = unsqueeze(input, axis + 1)
    before, size, after = input.shape[:axis], input.shape[axis], input.shape[axis + 1 :]
    return reshape(clone(expand(wide, (*before, size, repeats, *after))), (*before, size * repeats, *after))


@op(only=FUNCTION)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix, beside matrices."""
    return cat([reshape(x, (-1, 1)) if x.ndim <= 1 else x for x in tensors], 1)


@op(only=FUNCTION)
def broadcast_tensors(*tensors: Tensors) -> tuple[Tensor, ...]:
    """Tensors repeated to the shape that they have in common."""
    xs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    try:
        shape = np.broadcast_shapes(*[x._raw.shape for x in xs])
    except ValueError as wrong:
        raise RuntimeError(f"tensors of these shapes cannot be repeated to a common one: {wrong}") from None
    return tuple([x if x.shape == shape else expand(x, shape) for x in xs])
