"""Sizes go in, attention with several heads comes out: three products, averages head by head, one more product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.factory import empty
from gradcli.eager.joining import split
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.functional.attention import attention_mask, joined_masks, scaled_dot_product_attention
from gradcli.eager.nn.modules.layers import Linear
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter
from gradcli.eager.products import baddbmm

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` by the name that PyTorch prints inside attention."""


class MultiheadAttention(Module):
    """Attention of queries (L, N, E) to keys and values (S, N, E) in several heads; with `batch_first` (N, L, E).

    Gives the averages and, with `need_weights`, the weights. ValueError unless the heads divide `embed_dim`;
    RuntimeError for biases of keys, zero attention and other sizes of keys and values, which are not supported.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got {embed_dim} and {num_heads}")
        super().__init__()
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            raise RuntimeError("MultiheadAttention: add_bias_kv, add_zero_attn, kdim and vdim are not supported")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim = self.kdim = self.vdim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.bias_k = self.bias_v = None
        self.add_zero_attn = False
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, dtype=dtype))
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim, dtype=dtype)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The averages (L, N, E) and the weights (N, L, S). AssertionError for sizes that do not fit."""
        if query.ndim not in (2, 3):
            raise AssertionError(
                f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
            )
        single = query.ndim == 2
        if self.batch_first and not single:
            if key is value:
                query, key = (query, query) if query is key else (query, key)
                same = query is key
                query = query.transpose(1, 0)
                key = value = query if same else key.transpose(1, 0)
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        elif single:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        found, weights = self._attended(
            query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
        )
        if single:
            return found.squeeze(1), None if weights is None else weights.squeeze(0)
        return (found.transpose(1, 0) if self.batch_first else found), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        size = self.embed_dim
        if query is key and key is value:
            whole = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            parts = whole.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return parts[0], parts[1], parts[2]
        if key is value:
            first, rest = split(self.in_proj_weight, [size, 2 * size])
            biases = (None, None) if self.in_proj_bias is None else split(self.in_proj_bias, [size, 2 * size])
            q = functional.linear(query, first, biases[0])
            whole = functional.linear(key, rest, biases[1])
            parts = whole.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return q, parts[0], parts[1]
        weights = split(self.in_proj_weight, size)
        each = (None,) * 3 if self.in_proj_bias is None else split(self.in_proj_bias, size)
        rows = zip((query, key, value), weights, each, strict=True)
        return tuple([functional.linear(x, weight, bias) for x, weight, bias in rows])

    def _attended(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | None,
        need_weights: bool,
        attn_mask: Tensor | None,
        averaged: bool,
        is_causal: bool,
    ) -> tuple[Tensor, Tensor | None]:
        length, batch, size = query.shape
        if size != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {size}")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        heads, rows = self.num_heads, key.shape[0]
        kind = query.dtype.np
        mask = attention_mask(attn_mask, kind)
        if mask is not None and mask.ndim == 2:
            if tuple(mask.shape) != (length, rows):
                raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, rows)}.")
            mask = mask.unsqueeze(0)
        if padding is not None:
            wide = attention_mask(padding, kind)
            assert wide is not None
            wide = wide.view(batch, 1, 1, rows).expand(-1, heads, -1, -1).reshape(batch * heads, 1, rows)
            mask = joined_masks([mask, wide])
        q, k, v = self._projected(query, key, value)
        q = q.view(length, batch * heads, self.head_dim).transpose(0, 1)
        k = k.view(rows, batch * heads, self.head_dim).transpose(0, 1)
        v = v.view(rows, batch * heads, self.head_dim).transpose(0, 1)
        drop = self.dropout if self.training else 0.0
        if not need_weights:
            return self._quick(q, k, v, mask, drop, (length, batch, rows)), None
        q = q * math.sqrt(1.0 / self.head_dim)
        scores = q.bmm(k.transpose(-2, -1)) if mask is None else baddbmm(mask, q, k.transpose(-2, -1))
        weights = scores.softmax(-1)
        if drop:
            weights = functional.dropout(weights, drop)
        found = weights.bmm(v).transpose(0, 1).reshape(length * batch, size)
        found = functional.linear(found, self.out_proj.weight, self.out_proj.bias).view(length, batch, size)
        weights = weights.view(batch, heads, length, rows)
        return found, weights.mean(1) if averaged else weights

    def _quick(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, drop: float, sizes: tuple[int, int, int]
    ) -> Tensor:
        length, batch, rows = sizes
        heads, each = self.num_heads, self.head_dim
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, heads, -1, rows)
        q = q.view(batch, heads, length, each)
        k, v = k.view(batch, heads, rows, each), v.view(batch, heads, rows, each)
        found = scaled_dot_product_attention(q, k, v, mask, drop)
        found = found.permute(2, 0, 1, 3).contiguous().view(batch * length, self.embed_dim)
        found = functional.linear(found, self.out_proj.weight, self.out_proj.bias)
        result: Tensor = found.view(length, batch, self.embed_dim)
        return result
