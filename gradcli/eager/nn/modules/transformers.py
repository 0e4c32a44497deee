"""Sizes go in, layers of encoders come out: attention of a sequence to itself, then two products for each entry."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from gradcli.eager.nn import functional
from gradcli.eager.nn.modules.attention import MultiheadAttention
from gradcli.eager.nn.modules.containers import ModuleList
from gradcli.eager.nn.modules.layers import Dropout, Linear
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.modules.norms import LayerNorm
from gradcli.eager.state import warn

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor

_ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu}


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
        activation: Any = functional.relu,
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
