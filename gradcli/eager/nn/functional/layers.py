"""A tensor and the options of a layer go in, its output comes out: look-ups and dropout. Knows no parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager.inplace import change
from gradcli.eager.nn.functional.fusing import declared, fused, need_tensor
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import known

if TYPE_CHECKING:
    pass


# --- look-ups ------------------------------------------------------------------------------------------------------


def _rows(weight: Any, at: Any, *, padding: int | None) -> Any:
    from gradcli.primitives.indexing import index

    found = index(weight, (at,))
    if padding is None:
        return found
    shape = tuple(at.shape)
    kept = declared("not_equal", at, padding)
    mask = declared("reshape", kept, shape=(*shape, *(1,) * (len(found.shape) - len(shape))))
    mask = declared("broadcast", mask, shape=tuple(found.shape)) if tuple(mask.shape) != tuple(found.shape) else mask
    return declared("where", mask, found, declared("detach", found))


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of a table, by their numbers; the row `padding_idx` gets no gradient.

    RuntimeError unless the numbers are whole, IndexError for one that does not exist.
    """
    if input.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"the indices of an embedding must be whole numbers (Long or Int), not {input.dtype}")
    numbers = known(input)
    if numbers is not None and numbers.size and (numbers.min() < 0 or numbers.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("padding_idx must be within num_embeddings")
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return fused(_rows, (weight, input), "EmbeddingBackward0", edges=1, apart=(1,), padding=padding)


# --- dropout -----------------------------------------------------------------------------------------------------


def _memory_order(raw: Any) -> list[int]:
    """The axes in the order in which memory goes through them: so PyTorch draws the numbers of a transposed tensor."""
    plain = list(range(raw.ndim))
    if not isinstance(raw, np.ndarray) or raw.flags.c_contiguous:
        return plain
    order = sorted(plain, key=lambda i: -raw.strides[i])
    return order if raw.transpose(order).flags.c_contiguous else plain


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros with probability p, the other entries divided by 1 - p; the tensor itself without training.

    The same entries as PyTorch's after the same `manual_seed`. ValueError for p outside [0, 1].

    >>> import gradcli.eager as torch
    >>> _ = torch.manual_seed(0)
    >>> dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0 or not need_tensor(input, "dropout").numel():
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


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, ...) set to zero with probability p, the others divided by 1 - p."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    factor = dropout(Tensor(np.ones(shape, input.dtype.np)), p)
    return change(input, lambda x: x * factor, (factor,)) if inplace else input * factor
