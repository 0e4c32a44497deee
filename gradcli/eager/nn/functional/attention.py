"""Queries, keys and values go in, averages of the values by how well the keys fit come out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.dispatch import cast
from gradcli.eager.nn.functional.fusing import declared, fused, need_tensor
from gradcli.eager.nn.functional.layers import dropout
from gradcli.eager.pointwise import where
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Traced
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Sequence


def _attended(q: Any, k: Any, v: Any, *mask: Any, scale: float) -> Any:
    scores = declared("matmul", q, k.mT) * scale
    shape = tuple(scores.shape)
    for one in mask:
        wide = declared("reshape", one, shape=(1,) * (len(shape) - len(one.shape)) + tuple(one.shape))
        scores = scores + stretch(wide, shape)
    weights = declared("softmax", scores, axis=-1)
    return declared("matmul", weights, v)


def additive(mask: Tensor, kind: Any) -> Tensor:
    """A mask of truth values (True: may be looked at) as one that is added to scores."""
    return Tensor(np.where(mask._array, 0.0, -np.inf).astype(kind))


def _later(rows: int, columns: int, kind: Any) -> Tensor:
    """What is added to scores so that no query looks at a later key."""
    return Tensor(np.where(np.tri(rows, columns, dtype=bool), 0.0, -np.inf).astype(kind))


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + attn_mask) @ value; `scale` is 1 / sqrt(features) unless it is given.

    A mask of truth values says where to look, another one is added; `is_causal` forbids to look at later keys.
    RuntimeError for sizes that do not fit.
    """
    for x in (query, key, value):
        need_tensor(x, "scaled_dot_product_attention")
    if enable_gqa:
        raise RuntimeError("scaled_dot_product_attention: enable_gqa is not supported")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("scaled_dot_product_attention: all inputs need 2 dimensions at least")
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {query.dtype}, {key.dtype}, {value.dtype}"
        )
    by = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    kind = query.dtype.np
    if attn_mask is not None and attn_mask.dtype.kind == 1:
        raise RuntimeError(f"attn_mask must have dtype torch.bool, or a float format, but has {attn_mask.dtype}")
    if attn_mask is not None and attn_mask.dtype.kind == 0:
        attn_mask = additive(attn_mask, kind)
    if is_causal:
        attn_mask = joined_masks([attn_mask, _later(query.shape[-2], key.shape[-2], kind)])
    if dropout_p > 0.0:
        scores = (query @ key.mT) * by
        scores = scores if attn_mask is None else scores + attn_mask
        weights = dropout(scores.softmax(-1), dropout_p)
        found: Tensor = weights @ value
        return found
    mask = () if attn_mask is None else (cast(attn_mask, query.dtype),)
    name = "ScaledDotProductFlashAttentionForCpuBackward0"
    averages = fused(_attended, (query, key, value, *mask), name, edges=3, scale=by)
    if query.ndim == 4 and not isinstance(averages, Traced):
        averages._raw = _laid_out(averages._raw, query._raw)
    return averages


def _laid_out(array: Any, like: Any) -> Any:
    """The entries in memory in the order of another array's axes, as PyTorch allocates its results."""
    order = sorted(range(like.ndim), key=lambda i: -like.strides[i])
    if order == list(range(like.ndim)):
        return array
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def attention_mask(mask: Tensor | None, kind: Any) -> Tensor | None:
    """The mask of a module (True: may NOT be looked at) as one that is added to scores."""
    if mask is None or mask.dtype.kind > 1:
        return mask
    if mask.dtype.kind == 1:
        raise AssertionError(f"a mask must have dtype torch.bool, or a float format, but has {mask.dtype}")
    zeros = Tensor(np.zeros(mask._raw.shape, kind))
    found: Tensor = where(mask, float("-inf"), zeros)
    return found


def joined_masks(masks: Sequence[Tensor | None]) -> Tensor | None:
    """The sum of the masks that there are."""
    found: Tensor | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found + mask
    return found
