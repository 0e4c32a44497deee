"""Functions that PyTorch builds from others: quantiles, means of numbers that are not missing, tables of columns.

The nodes are those of the same operations as PyTorch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops.elementwise import true_divide
from gradcli.eager._ops.indexing import gather
from gradcli.eager._ops.joining import cat, diag_embed
from gradcli.eager._ops.matmul import lerp
from gradcli.eager._ops.reductions import nansum, sort
from gradcli.eager._ops.table import CAST, EXACT, FUNCTION, op
from gradcli.eager._ops.views import expand, reshape, squeeze, unsqueeze

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
