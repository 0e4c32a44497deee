"""Products and sums of products: tensors go in, one comes out, built from the nodes that PyTorch builds it from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.lengths import graph_norm
from gradcli.eager.matrices import dot, mm
from gradcli.eager.movement import axis_of, permute, reshape, view
from gradcli.eager.pointwise import as_tensor_or_number, mul
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.eager.signatures import Operand

Shape = tuple[int, ...]


def _raised(x: Any, shape: Shape) -> Any:
    """A graph operand repeated to a shape."""
    if tuple(x.shape) == shape:
        return x
    raised = (1,) * (len(shape) - len(x.shape)) + tuple(x.shape)
    if raised != tuple(x.shape):
        x = catalogue()["reshape"](x, shape=raised)
    return catalogue()["broadcast"](x, shape=shape)


def _times(x: Any, factor: float) -> Any:
    return x if factor == 1 else x * factor


def _added_product(x: Any, one: Any, other: Any, *, beta: float, alpha: float) -> Any:
    call = catalogue()["matmul"].call
    assert call is not None
    product = _times(call(one, other), alpha)
    return product if beta == 0 else _times(_raised(x, tuple(product.shape)), beta) + product


def _added(name: str, node: str, ranks: tuple[int, int]) -> Callable[..., Tensor]:
    def function(input: Tensor, one: Tensor, other: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        if (one.ndim, other.ndim) != ranks:
            raise RuntimeError(f"{name}() needs tensors of {ranks[0]} and {ranks[1]} dimensions after the first")
        if one.dtype is not other.dtype or input.dtype is not one.dtype:
            raise RuntimeError(f"{name}() needs one dtype, not {input.dtype}, {one.dtype} and {other.dtype}")
        params = {"beta": beta, "alpha": alpha}
        return record(_added_product, (input, one, other), params, node, whole=True, pointwise=False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "beta * input + alpha * (the product of the other two)."
    return function


addmm = _added("addmm", "AddmmBackward0", (2, 2))
addmv = _added("addmv", "AddmvBackward0", (2, 1))
baddbmm = _added("baddbmm", "BaddbmmBackward0", (3, 3))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value * tensor1 * tensor2, entry by entry."""
    xs = (input, tensor1, tensor2)
    return record(_addcmul, xs, {"value": value}, "AddcmulBackward0", pointwise=True, whole=True)


def _addcmul(x: Any, one: Any, other: Any, *, value: float) -> Any:
    return x + _times(one * other, value)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """input + value * tensor1 / tensor2, entry by entry."""
    return record(_addcdiv, (input, tensor1, tensor2), {"value": value}, "AddcdivBackward0", pointwise=True)


def _addcdiv(x: Any, one: Any, other: Any, *, value: float) -> Any:
    return x + _times(one / other, value)


def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """input + weight * (end - input): between the two."""
    several = isinstance(weight, Tensor)
    xs = (input, end, as_tensor_or_number(weight))
    return record(_lerp, xs, {}, f"LerpBackward{int(several)}", pointwise=True, edges=3 if several else 2)


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    return x + weight * (end - x)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The product of every entry of one vector with every entry of another."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError("outer() needs two vectors: 1D tensors expected")
    return mul(view(input, (input.shape[0], 1)), vec2)  # type: ignore[no-any-return]


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors, the first of them conjugated."""
    if input.dtype.kind == 3:
        from gradcli.eager.complexes import conj

        return dot(conj(input), other)
    return _renamed(dot(input, other), "VdotBackward0")


def _renamed(x: Tensor, name: str) -> Tensor:
    from gradcli.eager.indexing import renamed

    return renamed(x, name)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of the products along the last axes."""
    if not input.ndim or not other.ndim:
        return mul(input, other)  # type: ignore[no-any-return]
    return tensordot(input, other, ([-1], [-1]))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sums of products over some axes of each."""
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = ([axis_of(d, x.ndim) + x.ndim for d in ds] for x, ds in zip((a, b), dims, strict=True))
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise RuntimeError("tensordot() needs equal sizes in the contracted dimensions")
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [i for i in range(b.ndim) if i not in right]
    shape = (*[a.shape[i] for i in free_a], *[b.shape[i] for i in free_b])
    count = math.prod(a.shape[i] for i in left)
    one, other = permute(a, (*free_a, *left)), permute(b, (*right, *free_b))
    if not free_a and not free_b:
        return reshape(dot(reshape(one, (count,)), reshape(other, (count,))) if one.ndim > 1 else dot(one, other), ())
    return reshape(mm(reshape(one, (-1, count)), reshape(other, (count, -1))), shape)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product."""
    rank = max(input.ndim, other.ndim)
    one = (1,) * (rank - input.ndim) + tuple(input.shape)
    two = (1,) * (rank - other.ndim) + tuple(other.shape)
    left = view(input, tuple(n for i in one for n in (i, 1)), node="UnsafeViewBackward0")
    right = view(other, tuple(n for j in two for n in (1, j)), node="UnsafeViewBackward0")
    shape = tuple(i * j for i, j in zip(one, two, strict=True))
    return view(mul(left, right), shape, node="UnsafeViewBackward0")


def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross product of vectors of three entries."""
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3")
    axis = axis_of(dim, input.ndim)
    return record(_cross, (input, other), {"axis": axis}, "LinalgCrossBackward0", whole=True, pointwise=False)


def _cross(x: Any, y: Any, *, axis: int) -> Any:
    def turned(v: Any, by: int) -> Any:
        call = catalogue()["roll"].call or catalogue()["roll"].definition
        assert call is not None
        return call(v, shift=-by, axis=axis)

    return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of a difference."""
    return record(_dist, (input, other), {"p": float(p)}, "DistBackward0", pointwise=False)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The distances between the rows of two matrices."""
    return record(_cdist, (x1, x2), {"p": float(p)}, "CdistBackward0", pointwise=False)


def _dist(x: Any, y: Any, *, p: float) -> Any:
    shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    return graph_norm(_raised(x, shape) - _raised(y, shape), ord=p, axis=None, keepdims=False)


def _cdist(x: Any, y: Any, *, p: float) -> Any:
    reshape = catalogue()["reshape"]
    *lead, rows, size = x.shape
    *other, columns, _ = y.shape
    shape = (*np.broadcast_shapes(tuple(lead), tuple(other)), rows, columns, size)
    one, two = reshape(x, shape=(*lead, rows, 1, size)), reshape(y, shape=(*other, 1, columns, size))
    return graph_norm(_raised(one, shape) - _raised(two, shape), ord=p, axis=-1, keepdims=False)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications."""
    xs = list(tensors)
    if len(xs) < 2:
        raise RuntimeError("multi_dot() needs at least 2 tensors")
    found = _chain(xs)
    return view(found, tuple(found.shape))


def _chain(xs: list[Tensor]) -> Tensor:
    count = len(xs)
    sizes = [xs[0].shape[0], *[x.shape[1] for x in xs]]
    cost = [[0] * count for _ in xs]
    cut = [[0] * count for _ in xs]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], -k) for k in range(i, j)]
            cost[i][j], last = min(options)
            cut[i][j] = -last
    done: dict[tuple[int, int], Tensor] = {(i, i): x for i, x in enumerate(xs)}
    stack = [(0, count - 1)]
    while stack:
        i, j = stack[-1]
        left, right = (i, cut[i][j]), (cut[i][j] + 1, j)
        waiting = [part for part in (left, right) if part not in done]
        if waiting:
            stack.extend(waiting)
            continue
        done[stack.pop()] = mm(done[left], done[right])
    return done[0, count - 1]


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products along an axis."""
    from gradcli.eager.pointwise import mul
    from gradcli.eager.reductions import sum as summed

    return summed(mul(x, y), dim)


TABLE: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(addmm, addmv, baddbmm, addcmul, addcdiv, lerp, outer, vdot, inner, tensordot, kron, cross, dist, cdist),
    )
}
TABLE["ger"] = outer
