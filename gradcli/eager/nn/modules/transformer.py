"""Attention and transformer encoders: averages of values by how well keys fit queries, in several heads."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._engine.record import cast, declared
from gradcli.eager._ops.creation import empty
from gradcli.eager._ops.elementwise import where
from gradcli.eager._ops.joining import split
from gradcli.eager._ops.matmul import baddbmm
from gradcli.eager.nn import init
from gradcli.eager.nn.container import ModuleList
from gradcli.eager.nn.layer import checks, fused, need_tensor
from gradcli.eager.nn.module import Module
from gradcli.eager.nn.modules.activation import gelu, relu
from gradcli.eager.nn.modules.dropout import Dropout, dropout
from gradcli.eager.nn.modules.linear import Linear, linear
from gradcli.eager.nn.modules.normalization import LayerNorm
from gradcli.eager.nn.parameter import Parameter
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Sequence


def _attended(q: Any, k: Any, v: Any, *masks: Any, scale: float) -> Any:
    """With a mask that is added to the scores, and a column of factors of the weights: 0 where a query sees no key."""
    scores = declared("matmul", q, k.mT) * scale
    shape = tuple(scores.shape)
    wide = [
        stretch(declared("reshape", one, shape=(1,) * (len(shape) - len(one.shape)) + tuple(one.shape)), shape)
        for one in masks
    ]
    weights = declared("softmax", scores + wide[0] if wide else scores, axis=-1)
    return declared("matmul", weights * wide[1] if wide[1:] else weights, v)


def _additive(mask: Tensor, kind: Any) -> Tensor:
    """A mask of truth values (True: may be looked at) as one that is added to scores."""
    return Tensor(np.where(mask._array, 0.0, -np.inf).astype(kind))


def _later(rows: int, columns: int, kind: Any) -> Tensor:
    """What is added to scores so that no query looks at a later key."""
    return Tensor(np.where(np.tri(rows, columns, dtype=bool), 0.0, -np.inf).astype(kind))


def _blind(mask: Tensor) -> Tensor | None:
    """Which queries an added mask lets look at no key, as a column; None where each may look at one."""
    if isinstance(mask, Traced):
        return None
    rows = np.isneginf(mask._array).all(-1, keepdims=True)
    return Tensor(rows) if rows.any() else None


@checks
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
        attn_mask = _additive(attn_mask, kind)
    if is_causal:
        attn_mask = _joined_masks([attn_mask, _later(query.shape[-2], key.shape[-2], kind)])
    blind = None
    if attn_mask is not None and (blind := _blind(attn_mask)) is not None:
        attn_mask = attn_mask.masked_fill(blind, 0.0)  # its weights are masked instead
    if dropout_p > 0.0:
        scores = (query @ key.mT) * by
        scores = scores if attn_mask is None else scores + attn_mask
        weights = scores.softmax(-1) if blind is None else scores.softmax(-1).masked_fill(blind, 0.0)
        found: Tensor = dropout(weights, dropout_p) @ value
        return found
    masks = [] if attn_mask is None else [cast(attn_mask, query.dtype)]
    masks += [] if blind is None else [cast(blind.logical_not(), query.dtype)]
    name = "ScaledDotProductFlashAttentionForCpuBackward0"
    averages = fused(_attended, (query, key, value, *masks), name, edges=3, scale=by)
    if query.ndim == 4 and not isinstance(averages, Traced):
        averages._raw = _laid_out(averages._raw, query._raw)
    return averages


def _laid_out(array: Any, like: Any) -> Any:
    """The entries in memory in the order of another array's axes, as PyTorch allocates its results."""
    order = sorted(range(like.ndim), key=lambda i: -like.strides[i])
    if order == list(range(like.ndim)):
        return array
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def _attention_mask(mask: Tensor | None, kind: Any) -> Tensor | None:
    """The mask of a module (True: may NOT be looked at) as one that is added to scores."""
    if mask is None or mask.dtype.kind > 1:
        return mask
    if mask.dtype.kind == 1:
        raise AssertionError(f"a mask must have dtype torch.bool, or a float format, but has {mask.dtype}")
    zeros = Tensor(np.zeros(mask._raw.shape, kind))
    found: Tensor = where(mask, float("-inf"), zeros)
    return found


def _joined_masks(masks: Sequence[Tensor | None]) -> Tensor | None:
    """The sum of the masks that there are."""
    found: Tensor | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found + mask
    return found


# --- attention in several heads ---------------------------------------------------------------------------------------


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
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
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
            whole = linear(query, self.in_proj_weight, self.in_proj_bias)
            parts = whole.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return parts[0], parts[1], parts[2]
        if key is value:
            first, rest = split(self.in_proj_weight, [size, 2 * size])
            biases = (None, None) if self.in_proj_bias is None else split(self.in_proj_bias, [size, 2 * size])
            q = linear(query, first, biases[0])
            whole = linear(key, rest, biases[1])
            parts = whole.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return q, parts[0], parts[1]
        weights = split(self.in_proj_weight, size)
        each = (None,) * 3 if self.in_proj_bias is None else split(self.in_proj_bias, size)
        rows = zip((query, key, value), weights, each, strict=True)
        return tuple([linear(x, weight, bias) for x, weight, bias in rows])

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
        mask = _attention_mask(attn_mask, kind)
        if mask is not None and mask.ndim == 2:
            if tuple(mask.shape) != (length, rows):
                raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, rows)}.")
            mask = mask.unsqueeze(0)
        if padding is not None:
            wide = _attention_mask(padding, kind)
            assert wide is not None
            wide = wide.view(batch, 1, 1, rows).expand(-1, heads, -1, -1).reshape(batch * heads, 1, rows)
            mask = _joined_masks([mask, wide])
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
            weights = dropout(weights, drop)
        found = weights.bmm(v).transpose(0, 1).reshape(length * batch, size)
        found = linear(found, self.out_proj.weight, self.out_proj.bias).view(length, batch, size)
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
        found = linear(found, self.out_proj.weight, self.out_proj.bias)
        result: Tensor = found.view(length, batch, self.embed_dim)
        return result


# --- encoders ---------------------------------------------------------------------------------------------------------

_ACTIVATIONS = {"relu": relu, "gelu": gelu}


class TransformerEncoderLayer(Module):
    """Attention of (L, N, E) to itself and a network of two layers, each added to what went in and brought into normal
    form: after the sum, or with `norm_first` before it (Vaswani and others, 2017). With `batch_first` (N, L, E).

    RuntimeError for an activation by another name than relu or gelu; any function will do. Errors of the sizes as in
    `MultiheadAttention`.

    >>> import gradcli.eager as torch
    >>> layer = TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, batch_first=True)
    >>> layer(torch.ones(3, 5, 4)).shape
    torch.Size([3, 5, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = _ACTIVATIONS[activation]
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The sequence after attention and network."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attended(self.norm1(src), *masks)
            result: Tensor = x + self._fed(self.norm2(x))
        else:
            x = self.norm1(src + self._attended(src, *masks))
            result = self.norm2(x + self._fed(x))
        return result

    def _attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        found, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        result: Tensor = self.dropout1(found)
        return result

    def _fed(self, x: Tensor) -> Tensor:
        result: Tensor = self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return result


class TransformerEncoder(Module):
    """A layer copied so many times, one after the other, and a layer of normal form at the end if one is given.

    UserWarning where PyTorch could not leave out padded entries, which is never done here.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why = _why_whole(encoder_layer)
        if enable_nested_tensor and why:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}", UserWarning)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The sequence after all layers."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal) and mask is not None,
            )
        result: Tensor = src if self.norm is None else self.norm(src)
        return result


def _why_whole(layer: Module) -> str:
    """Why sequences of several lengths cannot be joined without their padding; nothing if they could."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not a TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return "encoder_layer.self_attn.batch_first was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if layer.activation not in _ACTIVATIONS.values():
        return "encoder_layer.activation was not relu or gelu"
    if layer.norm1.eps != layer.norm2.eps:
        return "norm1 and norm2 of the encoder layer have different eps"
    return "encoder_layer.self_attn.num_heads is odd" if attention.num_heads % 2 else ""
