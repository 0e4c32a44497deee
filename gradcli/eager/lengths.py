"""Tensors go in, the p-norms of their entries come out, over all axes or some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.dispatch import cast, record
from gradcli.eager.reductions import axes_of, called
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager import dtypes
    from gradcli.eager.signatures import Dims, Number, Order
    from gradcli.eager.tensor import Tensor


def vector_norm(x: Tensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The p-norm of the entries: the p-th root of the sum of p-th powers; the largest for inf, the count for 0."""
    if dtype is not None:
        x = cast(x, dtype)
    if x.dtype.kind < 2:
        raise RuntimeError(f"norm() expected a floating point or complex tensor as input, got {x.dtype}")
    if x.dtype.kind == 3:
        from gradcli.eager.complexes import abs_

        x = abs_(x)
    params = {"ord": float(ord), "axis": axes_of(dim), "keepdims": keepdim}
    return record(graph_norm, (x,), params, "LinalgVectorNormBackward0", pointwise=False)


def graph_norm(x: Any, *, ord: float, axis: Any, keepdims: bool) -> Any:
    """The p-norm in graph operations."""
    known, how = catalogue(), {"axis": axis, "keepdims": keepdims}
    if ord == 2:
        return called(x, name="norm", **how)
    size = known["abs"](x)
    if ord in (float("inf"), float("-inf")):
        return called(size, name="amax" if ord > 0 else "amin", **how)
    if ord == 1:
        return called(size, name="sum", **how)
    if ord == 0:
        return called(known["abs"](known["sign"](x)), name="sum", **how)
    total = called(size ** int(ord) if ord == int(ord) else known["pow"](size, ord), name="sum", **how)
    return known["pow"](total, 1 / ord)


def norm(
    input: Tensor, p: Order = "fro", dim: Dims = None, keepdim: bool = False, dtype: dtypes.dtype | None = None
) -> Tensor:
    """The p-norm of the entries, over all axes or some."""
    if p is None or p == "fro":
        p = 2
    elif isinstance(p, str):
        raise RuntimeError(f"norm() knows 'fro' and numbers, not {p!r}; torch.linalg.matrix_norm has 'nuc'")
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


TABLE = {"norm": norm}
