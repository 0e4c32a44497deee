"""Functions that PyTorch builds from others: covariances, quantiles, integrals of samples, tables of columns.

The nodes are those of the same operations as PyTorch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._engine.record import record
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops.elementwise import add, mul, sub, true_divide
from gradcli.eager._ops.indexing import gather, narrow, select
from gradcli.eager._ops.joining import cat, diag_embed
from gradcli.eager._ops.matmul import lerp, mm
from gradcli.eager._ops.reductions import nansum, sort
from gradcli.eager._ops.reductions import sum as summed
from gradcli.eager._ops.table import CAST, EXACT, FUNCTION, op
from gradcli.eager._ops.views import expand, reshape, squeeze, unsqueeze
from gradcli.eager._ops.views import t as flipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager._engine.arguments import Dims, Operand, Tensors


@op(out=CAST)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The average of the entries that are numbers."""
    count = Tensor(np.asarray((~np.isnan(input._array)).sum(axis=_axes(dim), keepdims=keepdim), input._raw.dtype)[()])
    found: Tensor = true_divide(nansum(input, dim, keepdim), count)
    return found


def _axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


@op()
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariances of the rows, whose columns are samples; of one row its variance. RuntimeError beyond matrices."""
    if input.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got {input.ndim}")
    x = reshape(input, (1, -1)) if input.ndim < 2 else input
    count = x.shape[1]
    away = sub(x, unsqueeze(true_divide(summed(x, 1), float(count)), 1))
    return squeeze(true_divide(mm(away, flipped(away)), float(max(count - correction, 0))))


@op()
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows, whose columns are samples."""
    found = cov(input)
    if not found.ndim:
        result: Tensor = true_divide(found, found)
        return result
    spread = found.diagonal().sqrt()
    scaled = true_divide(true_divide(found, spread.view(-1, 1)), spread.view(1, -1))
    bounded: Tensor = scaled.clamp(-1, 1)
    return bounded


@op(out=EXACT)
def quantile(input: Tensor, q: Operand, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The value below which a share `q` of the entries lies, between two entries in proportion.

    RuntimeError for shares outside [0, 1], other formats than float, and empty tensors.
    """
    shares = np.asarray(q._array if isinstance(q, Tensor) else q, input._raw.dtype)
    if input.dtype.kind != 2:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not input._raw.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if shares.ndim > 1 or not ((shares >= 0) & (shares <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1], in at most one dimension")
    x = reshape(input, (-1,)) if dim is None else input.movedim(dim, -1)
    ordered = sort(x, -1)[0]
    size = ordered.shape[-1]
    ranks = np.atleast_1d(shares) * (size - 1)
    below, above = np.floor(ranks), np.ceil(ranks)
    lead = tuple(ordered.shape[:-1])

    def wide(row: Any, kind: Any) -> Tensor:
        return Tensor(np.broadcast_to(row, (*lead, row.size)).astype(kind))

    low, high = (gather(ordered, -1, wide(at, np.int64)) for at in (below, above))
    weight = wide(ranks - below, input._raw.dtype)
    found = lerp(low, high, weight)
    if shares.ndim:
        rows: Tensor = found.movedim(-1, 0)
        return unsqueeze(rows, dim % input.ndim + 1) if keepdim and dim is not None else rows
    found = renamed(squeeze(found, -1), "SqueezeBackward4")
    if not keepdim:
        return found
    return reshape(found, (1,) * input.ndim) if dim is None else unsqueeze(found, dim)


@op("trapz", only=FUNCTION)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral of samples along an axis by trapezia, `dx` apart or at the places `x`."""
    size = y.shape[dim]
    if x is not None:
        along = -1 if x.ndim == 1 else dim
        gaps = sub(narrow(x, along, 1, size - 1), narrow(x, along, 0, size - 1))
        pairs = add(narrow(y, dim, 1, size - 1), narrow(y, dim, 0, size - 1))
        if x.ndim == 1 and dim not in (-1, y.ndim - 1):
            gaps = reshape(gaps, (-1, *(1,) * (y.ndim - 1 - dim % y.ndim)))
        found: Tensor = true_divide(summed(mul(gaps, pairs), dim), 2.0)
        return found
    ends = _times(add(select(y, dim, 0), select(y, dim, -1)), 0.5)
    return _times(sub(summed(y, dim), ends), dx)


def _times(x: Tensor, factor: float) -> Tensor:
    """The entries times a number that is no operand."""
    return record(_multiplied, (x,), {"factor": factor}, "MulBackward1", pointwise=True)


def _multiplied(x: Any, *, factor: float) -> Any:
    return x * factor


@op(only=FUNCTION, out=CAST)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix, beside matrices."""
    return cat([reshape(x, (-1, 1)) if x.ndim <= 1 else x for x in tensors], 1)


@op(only=FUNCTION)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes are repeated to. RuntimeError where they do not fit."""
    if any(isinstance(one, Tensor) or not isinstance(one, (int, tuple, list)) for one in shapes):
        raise RuntimeError("Input shapes should be of type ints, a tuple of ints, or a list of ints")
    try:
        return Size(np.broadcast_shapes(*[(one,) if isinstance(one, int) else tuple(one) for one in shapes]))
    except ValueError as wrong:
        raise RuntimeError(f"Shape mismatch: objects cannot be broadcast to a single shape: {wrong}") from None


@op(only=FUNCTION)
def broadcast_tensors(*tensors: Tensors) -> tuple[Tensor, ...]:
    """Tensors repeated to the shape that they have in common."""
    xs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    shape = broadcast_shapes(*[tuple(x.shape) for x in xs])
    return tuple([x if x.shape == shape else expand(x, shape) for x in xs])


@op()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with the entries on a diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@op(out=EXACT)
def msort(input: Tensor) -> Tensor:
    """The entries in order along the first axis."""
    return sort(input, 0)[0]


@op(only=FUNCTION)
def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers from `low` (or 0) below `high`, in the shape and format of a tensor."""
    low, high = (0, low) if high is None else (low, high)
    drawn = random.default_generator.randint(low, high, input._raw.shape)
    return Tensor(np.asarray(drawn).astype((dtype or input.dtype).np))
