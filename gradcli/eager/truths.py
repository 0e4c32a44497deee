"""Tensors go in, whether something holds of their entries comes out; truth values have no derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.recorder import noted
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _truth(name: str) -> Callable[[Tensor], Tensor]:
    def function(input: Tensor) -> Tensor:
        return noted(name, (input,), Tensor(np.asarray(getattr(np, name)(input._array))))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Where entries are {name[2:]}."
    return function


def logical_not(input: Tensor) -> Tensor:
    """Where entries are zero."""
    return noted("logical_not", (input,), Tensor(np.logical_not(input._array)))


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Where both are not zero."""
    return noted("logical_and", (input, other), Tensor(np.logical_and(input._array, other._array)))


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Where one is not zero."""
    return noted("logical_or", (input, other), Tensor(np.logical_or(input._array, other._array)))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where two tensors agree within a tolerance."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}: isclose compares tensors of one dtype")
    close = np.asarray(np.isclose(input._array, other._array, rtol, atol, equal_nan))
    return noted("isclose", (input, other), Tensor(close))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two tensors agree within a tolerance everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and entries."""
    return bool(np.array_equal(input._array, other._array))


TABLE: dict[str, Any] = {name: _truth(name) for name in ("isnan", "isinf", "isfinite")}
TABLE.update(
    {function.__name__: function for function in (logical_not, logical_and, logical_or, isclose, allclose, equal)}
)
