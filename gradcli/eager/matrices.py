"""Products of matrices and vectors: tensors go in, one comes out, built from the nodes that PyTorch builds it from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.movement import expand, reshape, squeeze, unsqueeze, view
from gradcli.eager.recipes import again
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue


def _product(one: Tensor, other: Tensor, node: str) -> Tensor:
    if one.dtype is not other.dtype:
        raise RuntimeError(f"matrix products need one dtype, not {one.dtype} and {other.dtype}")
    return record(_multiplied, (one, other), {}, node, whole=True)


def _multiplied(x: Any, y: Any) -> Any:
    call = catalogue()["matmul"].call
    assert call is not None
    return call(x, y)


def _tensors(name: str, one: Any, other: Any) -> None:
    for x in (one, other):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() needs two tensors, not {type(x).__name__}")


_MM = (_multiplied, "MmBackward0", None, False)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    known = again(_MM, input, mat2)
    if known is not None:
        return known
    _tensors("mm", input, mat2)
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("mm() needs two matrices")
    return _product(input, mat2, "MmBackward0")


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    _tensors("mv", input, vec)
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("mv() needs a matrix and a vector")
    return _product(input, vec, "MvBackward0")


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    _tensors("dot", input, other)
    if input.ndim != 1 or other.ndim != 1:
        raise RuntimeError("dot() needs two vectors: 1D tensors expected")
    return _product(input, other, "DotBackward0")


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices."""
    _tensors("bmm", input, mat2)
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("bmm() needs two stacks of matrices")
    return _product(input, mat2, "BmmBackward0")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, built from the same nodes as PyTorch builds it from."""
    known = again(_MM, input, other)
    if known is not None:
        return known
    _tensors("matmul", input, other)
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


TABLE = {function.__name__: function for function in (mm, mv, dot, bmm, matmul)}
