"""Views and reshapes: the same entries in another shape or order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager._core.modes import PLAIN, once, recording, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Dims, Shape, Sizes, sizes
from gradcli.eager._engine.record import copied, record
from gradcli.eager._ops.table import FUNCTION, METHOD, op, rows
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch


def viewed(x: Tensor, function: Callable[..., Any], params: dict[str, Any], node: str) -> Tensor:
    """The result of a movement that shares the memory of x where NumPy can share it."""
    result = record(function, (x,), params, node, view=True, keep_integer=True)
    out, memory = result._array, x._raw
    if out.base is not memory and (out.base is None or out.base is not memory.base):
        if out.size and not np.may_share_memory(out, memory):
            if state.dual is not None and x._tangent is not None:
                state.dual.give(result, viewed(x._tangent, function, params, node))
            return result
    return shared(x, result, function, params)


def shared(x: Tensor, result: Tensor, function: Callable[..., Any], params: dict[str, Any]) -> Tensor:
    """A tensor on the memory of x, which a movement made, as a view of x or of its base."""
    counter = result._count = x._count or x._counter
    result._special = True
    if x._base is None:
        result._base = x
        result._path = ((function, tuple(params.items())),)
    else:
        result._base = x._base
        result._path = (*x._path, (function, tuple(params.items())))
        if x._frozen_by:
            result._frozen_by = x._frozen_by
        if state.dual is not None:
            result._dual_base = x if x._dual_root else x._dual_base
    if counter.value:
        result._seen = counter.value
    if x._inference is not result._inference:
        result._inference = x._inference
    if state.mode != PLAIN and not recording():
        result._requires = x.requires_grad  # as PyTorch: it looks like a leaf, and refuses to be changed in place
        result._frozen_by = "no_grad"
    return result


AS_STRIDED = "AsStridedBackward0"  # the node of `follow`


def follow(x: Any, *, path: tuple[Any, ...]) -> Any:
    """The movements of a view, one after the other, in graph operations."""
    for function, items in path:
        x = function(x, **dict(items))
    return x


def axis_of(dim: int, rank: int) -> int:
    """An axis counted from the end; IndexError outside the rank."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(f"dimension {dim} is out of range for a tensor with {rank} of them")
    return dim - rank if dim >= 0 and rank else dim


def length_of(x: Tensor, dim: int) -> int:
    """The size of an axis; a number has one axis of one entry here, as PyTorch's 0-d tensors have."""
    axis = axis_of(dim, x.ndim)
    return int(x._raw.shape[axis]) if x.ndim else 1


def _complete(size: int, shape: Shape) -> Shape:
    """A shape for so many entries, in which one size may be -1: what is left."""
    if shape.count(-1) == 1:
        rest = -math.prod(shape)
        shape = tuple([size // rest if n == -1 and rest else n for n in shape])
    if math.prod(shape) != size or any(n < 0 for n in shape):
        raise RuntimeError(f"shape {list(shape)} is invalid for input of size {size}")
    return shape


def _reshaped(x: Any, *, shape: Shape) -> Any:
    return catalogue()["reshape"](x, shape=shape)


@op(node="ViewBackward0 UnsafeViewBackward0", only=METHOD, fast=True)
def view(input: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape; RuntimeError where only a copy could have it."""
    return _shared(input, sizes(shape), view.node)


def _shared(x: Tensor, shape: Shape, node: str) -> Tensor:
    wanted = _complete(x._raw.size, shape)
    array = x._array
    if not array.flags.c_contiguous and array.size and not np.may_share_memory(array.reshape(wanted), array):
        raise RuntimeError("view() cannot give this shape to the memory of a non-contiguous tensor: use reshape()")
    return viewed(x, _reshaped, {"shape": wanted}, node)


def unsafe_view(x: Tensor, shape: Shape) -> Tensor:
    """A temporary result in another shape, without the bookkeeping of a view."""
    result = _shared(x, shape, view.row.nodes[1])
    if state.dual is not None:
        state.dual.look_up(result)
    result._base, result._path, result._special = None, (), result._own_tangent is not None
    return result


@op(node="ReshapeAliasBackward0 ViewBackward0", fast=True)
def reshape(input: Tensor, *counts: Any, shape: Any = None) -> Tensor:
    """The entries in another shape: a view where possible, else a copy."""
    wanted = _complete(input._raw.size, sizes(counts, shape, "shape"))
    if np.may_share_memory(input._array.reshape(wanted), input._array) or not input._array.size:
        node = reshape.row.nodes[input._array.flags.c_contiguous]
        return viewed(input, _reshaped, {"shape": wanted}, node)
    return unsafe_view(clone(input), wanted)


@op()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Some neighbouring axes made one."""
    rank = input.ndim
    if not rank:
        return reshape(input, (1,))
    first, last = axis_of(start_dim, rank) + rank, axis_of(end_dim, rank) + rank
    if first == last:
        return input
    return reshape(input, (*input.shape[:first], -1, *input.shape[last + 1 :]))


@op(node="SqueezeBackward0 SqueezeBackward1 SqueezeBackward2")
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """Axes of size 1 removed: all of them, or one, or some."""
    rank, several = input.ndim, isinstance(dim, (tuple, list))
    gone = range(rank) if dim is None else [axis_of(d, rank) + rank for d in (dim if several else (dim,))]
    shape = tuple(n for i, n in enumerate(input.shape) if i not in gone or n != 1)
    return viewed(input, _reshaped, {"shape": shape}, squeeze.row.nodes[(dim is not None) + several])


@op(node="UnsqueezeBackward0")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new axis of size 1."""
    at = axis_of(dim, input.ndim + 1) + input.ndim + 1
    shape = (*input.shape[:at], 1, *input.shape[at:])
    return viewed(input, _reshaped, {"shape": tuple(shape)}, unsqueeze.node)


def _permuted(x: Any, *, axes: Shape) -> Any:
    return catalogue()["permute"](x, axes=axes) if axes else x


@op(node="PermuteBackward0")
def permute(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The axes in another order."""
    wanted = sizes(axes, dims, "dims")
    order = tuple([axis_of(dim, input.ndim) for dim in wanted])
    if sorted(order) != list(range(-input.ndim, 0)):
        raise RuntimeError(f"permute() needs each of the {input.ndim} axes once, not {wanted}")
    return viewed(input, _permuted, {"axes": order}, permute.node)


@op("swapaxes swapdims", node="TransposeBackward0 TransposeBackward1")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    order = list(range(-input.ndim, 0))
    first, second = axis_of(dim0, input.ndim), axis_of(dim1, input.ndim)
    if order:
        order[first], order[second] = order[second], order[first]
    return viewed(input, _permuted, {"axes": tuple(order)}, transpose.node)


_TURNED = {"axes": (-1, -2)}


@op(node="TBackward0", fast=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and numbers as they are."""
    rank = input._raw.ndim
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but this has {rank}")
    return viewed(input, _permuted, _TURNED if rank == 2 else {"axes": (-1,) * rank}, t.node)


def reversed_axes(x: Tensor) -> Tensor:
    """`.T`: all axes in the opposite order; UserWarning unless it is a matrix."""
    if x.ndim not in (0, 2):
        once("T", ".T of a tensor that is not a matrix is deprecated: use .mT, or permute() for all axes")
    return viewed(x, _permuted, {"axes": tuple(range(-1, -x.ndim - 1, -1))}, permute.node)


@op(node="ExpandBackward0", only=METHOD, fast=True)
def expand(input: Tensor, *shape: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Axes of size 1 repeated without memory of their own; -1 keeps a size."""
    wanted = list(sizes(shape, size))
    extra = len(wanted) - input.ndim
    if extra < 0:
        raise RuntimeError(f"expand() to {wanted}: the tensor has more dimensions, {input.ndim}")
    for i, n in enumerate(input.shape):
        if wanted[i + extra] == -1:
            wanted[i + extra] = n
        elif n not in (1, wanted[i + extra]):
            raise RuntimeError(f"expand() from {list(input.shape)} to {wanted}: the existing size must match, or be 1")
    return viewed(input, stretch, {"shape": tuple(wanted)}, expand.node)


@op(node="CloneBackward0", fast=True)
def clone(input: Tensor) -> Tensor:
    """The entries in memory of their own."""
    return copied(input, clone.node)


@op(only=METHOD, fast=True)
def contiguous(input: Tensor) -> Tensor:
    """The tensor itself where its entries lie in order, else a clone."""
    if input._array.flags.c_contiguous:
        return input
    copy = clone(input)
    copy._raw = np.ascontiguousarray(copy._array)
    return copy


@op()
def unflatten(input: Tensor, dim: int, sizes: Sizes) -> Tensor:
    """One axis made several."""
    at = axis_of(dim, input.ndim) + input.ndim
    return view(input, (*input.shape[:at], *_complete(input.shape[at], tuple(sizes)), *input.shape[at + 1 :]))


ROWS: dict[str, Any] = {
    **rows(
        op,
        {
            "numel": ("How many entries a tensor has.", lambda input: int(input._raw.size)),
            "ravel": ("All axes made one.", lambda input: reshape(input, (-1,))),
            "broadcast_to": ("Repeated to a shape.", lambda input, size: expand(input, tuple(size))),
            "is_complex": ("Whether the format is one of complex numbers.", lambda input: input.dtype.kind == 3),
            "is_floating_point": ("Whether it is one of real floats.", lambda input: input.dtype.is_floating_point),
        },
    ),
    **rows(op, {"detach": ("The tensor without its history.", lambda input: input.detach())}, only=FUNCTION),
    **rows(
        op,
        {
            "view_as": ("The same memory in another tensor's shape.", lambda self, other: view(self, other.shape)),
            "reshape_as": ("The entries in another tensor's shape.", lambda self, other: reshape(self, other.shape)),
            "expand_as": ("Repeated to another tensor's shape.", lambda self, other: expand(self, other.shape)),
        },
        kinds={"other": "Tensor"},
        only=METHOD,
    ),
}
