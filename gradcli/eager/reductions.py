"""Functions over axes: a tensor goes in, sums, means, extremes and matrix products come out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

Axes = int | tuple[int, ...] | None


def _axes(dim: Any) -> Axes:
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def _reduced(name: str, x: Tensor, dim: Any, keepdim: bool, node: str, whole: bool = False, **more: Any) -> Tensor:
    params = {"name": name, "axis": _axes(dim), "keepdims": keepdim, **more}
    return record(_call, (x,), params, node, whole=whole)


def _call(x: Any, *, name: str, **params: Any) -> Any:
    """A declared function by its script name, in NumPy's signature."""
    primitive = catalogue()[name]
    return (primitive.call or primitive.definition)(x, **params)  # type: ignore[misc]


def sum(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the entries, over all axes or some."""
    if input.dtype.kind == 0:
        input = Tensor(input._array.astype(np.int64))
    return _reduced("sum", input, dim, keepdim, "SumBackward0" if dim is None else "SumBackward1", whole=True)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The average of the entries; RuntimeError for whole numbers."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"mean() needs a floating point dtype, and this is {input.dtype}")
    return _reduced("mean", input, dim, keepdim, "MeanBackward0" if dim is None else "MeanBackward1")


def var(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The variance, divided by the number of entries less `correction`."""
    return _reduced("var", input, dim, keepdim, "VarBackward0", ddof=correction)


def std(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The square root of the variance."""
    return _reduced("std", input, dim, keepdim, "StdBackward0", ddof=correction)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The product of the entries."""
    return _reduced("prod", input, dim, keepdim, "ProdBackward0" if dim is None else "ProdBackward1", whole=True)


def amax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The largest entry; several share the gradient."""
    return _reduced("amax", input, dim, keepdim, "AmaxBackward0", whole=True)


def amin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The smallest entry; several share the gradient."""
    return _reduced("amin", input, dim, keepdim, "AminBackward0", whole=True)


class Found(NamedTuple):
    """Entries and their positions."""

    values: Tensor
    indices: Tensor


Found.__module__ = "torch.return_types"


def _chosen(x: Tensor, positions: Any, dim: int, node: str, keepdim: bool) -> Found:
    """The entries at positions along an axis, which keep their node's gradient to themselves."""
    axis = dim - x._array.ndim if dim >= 0 else dim
    found = record(
        _taken, (x, Tensor(positions)), {"axis": axis, "kept": keepdim}, node, whole=True, apart=(1,), edges=1
    )
    return Found(found, Tensor(positions if keepdim else np.asarray(positions.squeeze(axis))))


def _taken(x: Any, index: Any, *, axis: int, kept: bool) -> Any:
    found = catalogue()["take_along"](x, index, axis=axis)
    rank = len(found.shape)
    return (
        found
        if kept
        else catalogue()["reshape"](found, shape=tuple(n for i, n in enumerate(found.shape) if i != rank + axis))
    )


def _extreme(name: str, x: Tensor, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, Tensor):
        from gradcli.eager.pointwise import TABLE

        return TABLE[f"{name}imum"](x, dim)
    if dim is None:
        return record(_whole_extreme, (x,), {"name": name}, f"{name.capitalize()}Backward1", whole=True)
    at = np.expand_dims(getattr(np, f"arg{name}")(x._array, axis=dim), dim)
    return _chosen(x, at, dim, f"{name.capitalize()}Backward0", keepdim)


def _whole_extreme(x: Any, *, name: str) -> Any:
    call = catalogue()[name].call
    assert call is not None
    return call(x)


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest entry; along an axis also its position; of two tensors entry by entry."""
    return _extreme("max", input, dim, keepdim)


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest entry; along an axis also its position; of two tensors entry by entry."""
    return _extreme("min", input, dim, keepdim)


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> Found:
    """The entries in order along an axis, and where they stood."""
    array = -input._array if descending else input._array
    return _chosen(input, np.argsort(array, axis=dim, kind="stable"), dim, "SortBackward0", True)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the largest entry, the first of several."""
    return Tensor(np.asarray(np.argmax(input._array, axis=dim, keepdims=keepdim)))


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the smallest entry, the first of several."""
    return Tensor(np.asarray(np.argmin(input._array, axis=dim, keepdims=keepdim)))


def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether every entry is not zero."""
    return Tensor(np.asarray(np.all(input._array, axis=_axes(dim), keepdims=keepdim)))


def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether some entry is not zero."""
    return Tensor(np.asarray(np.any(input._array, axis=_axes(dim), keepdims=keepdim)))


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return _reduced("logsumexp", input, dim, keepdim, "LogsumexpBackward0")


def norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares."""
    return _reduced("norm", input, dim, keepdim, "LinalgVectorNormBackward0")


def softmax(input: Tensor, dim: int) -> Tensor:
    """Exponentials divided by their sum along an axis."""
    return record(_call, (input,), {"name": "softmax", "axis": dim}, "SoftmaxBackward0")


def log_softmax(input: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax."""
    return record(_call, (input,), {"name": "log_softmax", "axis": dim}, "LogSoftmaxBackward0")


def cumsum(input: Tensor, dim: int) -> Tensor:
    """Running sums along an axis."""
    return record(_call, (input,), {"name": "cumsum", "axis": dim}, "CumsumBackward0", whole=True)


def cumprod(input: Tensor, dim: int) -> Tensor:
    """Running products along an axis."""
    return record(_call, (input,), {"name": "cumprod", "axis": dim}, "CumprodBackward0")


# --- products of matrices --------------------------------------------------------------------------------


def _product(one: Tensor, other: Tensor, node: str) -> Tensor:
    if one.dtype is not other.dtype:
        raise RuntimeError(f"matrix products need one dtype, not {one.dtype} and {other.dtype}")
    return record(_multiplied, (one, other), {}, node, whole=True)


def _multiplied(x: Any, y: Any) -> Any:
    call = catalogue()["matmul"].call
    assert call is not None
    return call(x, y)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("mm() needs two matrices")
    return _product(input, mat2, "MmBackward0")


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("mv() needs a matrix and a vector")
    return _product(input, vec, "MvBackward0")


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    if input.ndim != 1 or other.ndim != 1:
        raise RuntimeError("dot() needs two vectors: 1D tensors expected")
    return _product(input, other, "DotBackward0")


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices."""
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("bmm() needs two stacks of matrices")
    return _product(input, mat2, "BmmBackward0")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, built from the same nodes as PyTorch builds it from."""
    from gradcli.eager.movement import expand, reshape, squeeze, unsqueeze, view

    if not isinstance(other, Tensor):
        raise TypeError(f"matmul() needs two tensors, not {type(other).__name__}")
    ranks = (input.ndim, other.ndim)
    if 0 in ranks:
        raise RuntimeError("both arguments of matmul need to be at least 1D")
    if ranks == (1, 1):
        return dot(input, other)
    if ranks == (2, 1):
        return mv(input, other)
    if ranks == (1, 2):
        return squeeze(mm(unsqueeze(input, 0), other), 0, node="SqueezeBackward4")
    if ranks == (2, 2):
        return mm(input, other)
    if ranks[1] <= 2 or ranks[0] == 1:
        if ranks[0] == 1:
            return squeeze(matmul(unsqueeze(input, 0), other), -2)
        if ranks[1] == 1:
            return squeeze(matmul(input, unsqueeze(other, 1)), -1)
        lead = tuple(input.shape[:-1])
        rows = reshape(input, (int(np.prod(lead)), input.shape[-1]))
        return view(mm(rows, other), (*lead, other.shape[-1]), node="UnsafeViewBackward0")
    stacks = np.broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    count = int(np.prod(stacks))
    left = reshape(expand(input, (*stacks, *input.shape[-2:])), (count, *input.shape[-2:]))
    right = reshape(expand(other, (*stacks, *other.shape[-2:])), (count, *other.shape[-2:]))
    return view(bmm(left, right), (*stacks, input.shape[-2], other.shape[-1]), node="UnsafeViewBackward0")


TABLE = {
    function.__name__: function
    for function in (
        *(sum, mean, var, std, prod, amax, amin, max, min, sort, argmax, argmin, all, any, logsumexp, norm, softmax),
        *(log_softmax, cumsum, cumprod, mm, mv, dot, bmm, matmul),
    )
}
