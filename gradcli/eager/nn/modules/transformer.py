"""Attention and transformer encoders: averages of values by how well keys fit queries, in several heads."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._engine.arguments import options
from gradcli.eager._engine.record import cast, declared
from gradcli.eager._ops.joining import split
from gradcli.eager._ops.matmul import baddbmm
from gradcli.eager.nn import init
from gradcli.eager.nn._layer import Layer, fused, records, weighted
from gradcli.eager.nn._module import Module, ModuleList
from gradcli.eager.nn.modules.activation import Dropout, dropout, gelu, relu
from gradcli.eager.nn.modules.linear import Linear, linear
from gradcli.eager.nn.modules.normalization import LayerNorm
from gradcli.primitives.broadcasting import stretch

Mask = Tensor | None


def _attended(q: Any, k: Any, v: Any, *masks: Any, scale: float) -> Any:
    """With a mask that is added to the scores, and a column of factors of the weights: 0 where a query sees no key."""
    scores = declared("matmul", q, k.mT) * scale
    shape = tuple(scores.shape)
    wide = [
        stretch(declared("reshape", mask, shape=(1,) * (len(shape) - len(mask.shape)) + tuple(mask.shape)), shape)
        for mask in masks
    ]
    weights = declared("softmax", scores + wide[0] if wide else scores, axis=-1)
    return declared("matmul", weights * wide[1] if wide[1:] else weights, v)


def _additive(mask: Mask, kind: Any, looks: bool, error: type[Exception]) -> Mask:
    """A mask that is added to scores; of truth values, those that are `looks` say where a query looks.

    `error` for a mask of whole numbers.
    """
    if mask is None or mask.dtype.kind > 1:
        return mask
    if mask.dtype.kind == 1:
        raise error(f"a mask must have dtype torch.bool, or a float format, but has {mask.dtype}")
    return Tensor(np.where(mask._array == looks, 0.0, -np.inf).astype(kind))


def _blind(mask: Tensor) -> Tensor | None:
    """Which queries may look at no key, as a column; None where each may look at one."""
    rows = None if isinstance(mask, Traced) else np.isneginf(mask._array).all(-1, keepdims=True)
    return None if rows is None or not rows.any() else Tensor(rows)


@records("ScaledDotProductFlashAttentionForCpuBackward0")
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
    A query that may look at no key gets zeros. RuntimeError for sizes that do not fit.
    """
    if enable_gqa:
        raise RuntimeError("scaled_dot_product_attention: enable_gqa is not supported")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("scaled_dot_product_attention: all inputs need 2 dimensions at least")
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(f"query, key, value need the same dtype, but have {query.dtype}, {key.dtype}, {value.dtype}")
    by = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    kind = query.dtype.np
    attn_mask = _additive(attn_mask, kind, True, RuntimeError)
    if is_causal:
        later: Any = _additive(Tensor(np.tri(query.shape[-2], key.shape[-2], dtype=bool)), kind, True, RuntimeError)
        attn_mask = later if attn_mask is None else attn_mask + later
    blind = None
    if attn_mask is not None and (blind := _blind(attn_mask)) is not None:
        attn_mask = attn_mask.masked_fill(blind, 0.0)  # its weights are masked instead
    if dropout_p > 0.0:
        scores = (query @ key.mT) * by
        scores = scores if attn_mask is None else scores + attn_mask
        weights = scores.softmax(-1) if blind is None else scores.softmax(-1).masked_fill(blind, 0.0)
        return dropout(weights, dropout_p) @ value
    masks = [] if attn_mask is None else [cast(attn_mask, query.dtype)]
    masks += [] if blind is None else [cast(blind.logical_not(), query.dtype)]
    averages = fused(_attended, (query, key, value, *masks), scaled_dot_product_attention.node, edges=3, scale=by)
    if query.ndim == 4 and not isinstance(averages, Traced):
        entries = averages._raw  # in memory in the order of the query's axes, as PyTorch allocates its results
        averages._raw = np.empty_like(query._raw, entries.dtype, shape=entries.shape)
        averages._raw[...] = entries
    return averages


class _OutProjection(Linear):
    """A `Linear` by the name that PyTorch prints inside attention."""


_OutProjection.__name__ = "NonDynamicallyQuantizableLinear"


class MultiheadAttention(Layer):
    """Attention of queries (L, N, E) to keys and values (S, N, E) in several heads; with `batch_first` (N, L, E).

    Gives the averages and, with `need_weights`, the weights. ValueError unless the heads divide `embed_dim`;
    RuntimeError for biases of keys, zero attention and other sizes of keys and values, which are not supported.
    """

    _options = weighted(
        "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, "
        "batch_first=False"
    )
    _shown = ""

    def _build(self, embed_dim: int, num_heads: int, bias: bool, dtype: Any, **options: Any) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got {embed_dim} and {num_heads}")
        wide = any(options.pop(name) not in (None, embed_dim) for name in ("kdim", "vdim"))
        if options.pop("add_bias_kv") or options["add_zero_attn"] or wide:
            raise RuntimeError("MultiheadAttention: add_bias_kv, add_zero_attn, kdim and vdim are not supported")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        super()._build(embed_dim=embed_dim, num_heads=num_heads, **options)
        self.kdim = self.vdim = embed_dim
        self.head_dim = embed_dim // num_heads
        self.bias_k = self.bias_v = None
        size = 3 * embed_dim
        self._weights(dtype, in_proj_weight=(size, embed_dim), in_proj_bias=(size,) if bias else None)
        self.out_proj = _OutProjection(embed_dim, embed_dim, bias=bias, dtype=dtype)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Mask = None,
        need_weights: bool = True,
        attn_mask: Mask = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The averages (L, N, E) and the weights (N, L, S). AssertionError for sizes that do not fit."""
        if query.ndim not in (2, 3):
            raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but is {query.ndim}-D")
        single = query.ndim == 2
        query, key, value = self._steps_first(query, key, value)
        length, batch, size = query.shape
        if size != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {size}")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        heads, rows = self.num_heads, key.shape[0]
        mask = self._mask(attn_mask, key_padding_mask, (batch, heads, length, rows), query.dtype.np)
        q, k, v = (
            x.view(x.shape[0], batch * heads, self.head_dim).transpose(0, 1) for x in self._projected(query, key, value)
        )
        drop = self.dropout if self.training else 0.0
        weights: Tensor | None = None
        if need_weights:
            q = q * math.sqrt(1.0 / self.head_dim)
            scores = q.bmm(k.transpose(-2, -1)) if mask is None else baddbmm(mask, q, k.transpose(-2, -1))
            chances = dropout(scores.softmax(-1), drop)
            averages = chances.bmm(v).transpose(0, 1).reshape(length * batch, size)
        else:
            if mask is not None:
                mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, heads, -1, rows)
            q, k, v = (x.view(batch, heads, -1, self.head_dim) for x in (q, k, v))
            averages = scaled_dot_product_attention(q, k, v, mask, drop)
            averages = averages.permute(2, 0, 1, 3).contiguous().view(batch * length, size)
        averages = linear(averages, self.out_proj.weight, self.out_proj.bias).view(length, batch, size)
        if need_weights:
            weights = chances.view(batch, heads, length, rows)
            weights = weights.mean(1) if average_attn_weights else weights
        if single:
            return averages.squeeze(1), None if weights is None else weights.squeeze(0)
        return (averages.transpose(1, 0) if self.batch_first else averages), weights

    def _steps_first(self, *xs: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values as (L, N, E); those that are one tensor stay one."""
        if xs[0].ndim == 2:
            return tuple([x.unsqueeze(1) for x in xs])
        if not self.batch_first:
            return xs
        once = {id(x): x.transpose(1, 0) for x in (xs if xs[1] is xs[2] else ())}
        return tuple([once[id(x)] if once else x.transpose(1, 0) for x in xs])

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        size, weight, bias = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        if query is key and key is value:
            whole = linear(query, weight, bias).unflatten(-1, (3, size))  # one product for all three
            parts = whole.unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return parts[0], parts[1], parts[2]
        biases = [None] * 3 if bias is None else split(bias, size)
        rows = zip((query, key, value), split(weight, size), biases, strict=True)
        return tuple([linear(x, w, b) for x, w, b in rows])

    def _mask(self, mask: Mask, padding: Mask, sizes: tuple[int, int, int, int], kind: Any) -> Mask:
        """What is added to the scores (N * heads, L, S): a mask of the steps, and one of keys that are padding."""
        batch, heads, length, rows = sizes
        mask = _additive(mask, kind, False, AssertionError)
        if mask is not None and mask.ndim == 2:
            if tuple(mask.shape) != (length, rows):
                raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, rows)}.")
            mask = mask.unsqueeze(0)
        wide: Any = _additive(padding, kind, False, AssertionError)
        if wide is not None:
            wide = wide.view(batch, 1, 1, rows).expand(-1, heads, -1, -1).reshape(batch * heads, 1, rows)
        return mask if wide is None else wide if mask is None else mask + wide


_ACTIVATIONS = {"relu": relu, "gelu": gelu}


class TransformerEncoderLayer(Layer):
    """Self-attention of (L, N, E) and a network of two layers, each with a residual connection and layer normalization:
    after the sum, or with `norm_first` before it (Vaswani and others, 2017). With `batch_first` (N, L, E).

    RuntimeError for an activation by another name than relu or gelu; any function will do. Errors of the sizes as in
    `MultiheadAttention`.

    >>> layer = TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, batch_first=True)
    >>> layer(torch.ones(3, 5, 4)).shape
    torch.Size([3, 5, 4])
    """

    _options = weighted(
        "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=..., layer_norm_eps=1e-5, batch_first=False, "
        "norm_first=False, bias=True",
        activation=relu,
    )
    _shown = ""

    def _build(
        self, d_model: int, nhead: int, dim_feedforward: int, activation: Any, bias: bool, dtype: Any, **options: Any
    ) -> None:
        same: dict[str, Any] = {"bias": bias, "dtype": dtype}
        dropout, eps = options["dropout"], options["layer_norm_eps"]
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=options["batch_first"], **same)
        self.linear1 = Linear(d_model, dim_feedforward, **same)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **same)
        self.norm_first = options["norm_first"]
        self.norm1, self.norm2 = LayerNorm(d_model, eps, **same), LayerNorm(d_model, eps, **same)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        """The sequence after attention and network."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        if not self.norm_first:
            x = self.norm1(src + self._attended(src, *masks))
            return self.norm2(x + self._fed(x))
        x = src + self._attended(self.norm1(src), *masks)
        return x + self._fed(self.norm2(x))

    def _attended(self, x: Tensor, mask: Mask, padding: Mask, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _fed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Layer):
    """Copies of a layer, one after the other, and a normalization at the end if one is given."""

    _options = options("encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True")
    _shown = ""

    def _build(self, encoder_layer: Module, num_layers: int, norm: Module | None, **switches: Any) -> None:
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        super()._build(num_layers=num_layers, norm=norm, **switches)

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        """The sequence after all layers."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal) and mask is not None)
        return src if self.norm is None else self.norm(src)
