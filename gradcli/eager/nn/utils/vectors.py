"""Parameters go in, one vector of their entries comes out, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.eager.joining import cat
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All entries in one row.

    >>> import gradcli.eager as torch
    >>> parameters_to_vector([torch.ones(2), torch.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    return cat([x.view(-1) for x in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """The entries of a row put back into parameters, without history. TypeError unless `vec` is a tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a tensor, but got {type(vec).__name__}")
    start = 0
    for x in parameters:
        count = x._array.size
        part = vec._array[start : start + count].reshape(x._array.shape)
        x._array = part.astype(x._array.dtype, copy=False)
        start += count
