"""Dropout: zeros drawn at random in training, of entries or of whole channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.inplace import change
from gradcli.eager.nn._layer import Layer, checks, layer


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _memory_order(raw: Any) -> list[int]:
    """The axes in the order in which memory goes through them: so PyTorch draws the numbers of a transposed tensor."""
    plain = list(range(raw.ndim))
    if not isinstance(raw, np.ndarray) or raw.flags.c_contiguous:
        return plain
    order = sorted(plain, key=lambda i: -raw.strides[i])
    return order if raw.transpose(order).flags.c_contiguous else plain


@checks
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros with probability p, the other entries divided by 1 - p; the tensor itself without training.

    The same entries as PyTorch's after the same `manual_seed`. ValueError for p outside [0, 1].

    >>> import gradcli.eager as torch
    >>> _ = torch.manual_seed(0)
    >>> dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    _check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    kind = input.dtype.np
    if p == 1:
        noise = np.zeros(tuple(input.shape), kind)
    else:
        order = _memory_order(input._raw)
        kept = streams.default_generator.bernoulli(tuple([input.shape[i] for i in order]), 1 - p)
        noise = kept.astype(kind).transpose(np.argsort(order)) / kind.type(1 - p)
    factor = Tensor(noise)
    return change(input, lambda x: x * factor, (factor,)) if inplace else input * factor


@checks
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, ...) set to zero with probability p, the others divided by 1 - p."""
    _check_probability(p)
    if not training or p == 0:
        return input
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    factor = dropout(Tensor(np.ones(shape, input.dtype.np)), p)
    return change(input, lambda x: x * factor, (factor,)) if inplace else input * factor


class _Dropout(Layer):
    _shown = "p={self.p}, inplace={self.inplace}"

    def _build(self, **options: Any) -> None:
        _check_probability(options["p"])
        super()._build(**options)


Dropout = layer("Dropout", dropout, base=_Dropout)
Dropout2d = layer("Dropout2d", dropout2d, base=_Dropout)
