"""Tensors go in, one or several at once; with as many axes as asked for they come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.movement import reshape, unsqueeze
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.signatures import Tensors


def each_of(function: Callable[[Tensor], Tensor]) -> Any:
    """The function for one tensor, or for several at once, which gives as many."""

    def called(*tensors: Tensors) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        xs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        return tuple([function(x) for x in xs])

    called.__name__, called.__qualname__, called.__doc__ = function.__name__, function.__qualname__, function.__doc__
    called.__module__ = function.__module__
    return called


@each_of
def atleast_1d(x: Tensor) -> Tensor:
    """The tensor with one axis at least."""
    return x if x.ndim else reshape(x, (1,))


@each_of
def atleast_2d(x: Tensor) -> Tensor:
    """The tensor with two axes at least; a vector becomes a row."""
    return unsqueeze(x, 0) if x.ndim == 1 else x if x.ndim else reshape(x, (1, 1))


@each_of
def atleast_3d(input: Tensor) -> Tensor:
    """The tensor with three axes at least: a vector becomes (1, n, 1), a matrix (n, m, 1)."""
    if input.ndim >= 3:
        return input
    if input.ndim == 1:
        return unsqueeze(unsqueeze(input, 0), -1)
    return unsqueeze(input, -1) if input.ndim == 2 else reshape(input, (1, 1, 1))
