"""Shapes go in, tensors of random numbers come out: PyTorch's own numbers after the same `manual_seed`."""

from __future__ import annotations

from typing import Any

from gradcli.eager import dtypes
from gradcli.eager import random as streams
from gradcli.eager.factory import _leaf, _shape, placed_on_device
from gradcli.eager.tensor import Tensor


def _name(dtype: dtypes.dtype | None) -> str:
    return (dtype or dtypes.get_default_dtype()).name


def manual_seed(seed: int) -> streams.Generator:
    """Start the stream of random numbers that belongs to a seed."""
    return streams.manual_seed(seed)


def rand(*size: Any, generator: Any = None, dtype: dtypes.dtype | None = None, requires_grad: bool = False) -> Tensor:
    """Numbers between 0 and 1, all equally likely."""
    return _leaf((generator or streams.default_generator).rand(_shape(size), _name(dtype)), requires_grad)


def randn(*size: Any, generator: Any = None, dtype: dtypes.dtype | None = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers."""
    return _leaf((generator or streams.default_generator).randn(_shape(size), _name(dtype)), requires_grad)


def randint(low: int, high: Any, size: Any = None, *, generator: Any = None) -> Tensor:
    """Whole numbers from `low` (0 where only one bound is given) below `high`."""
    if size is None:
        low, high, size = 0, low, high
    return _leaf((generator or streams.default_generator).randint(low, high, _shape((size,))), False)


def randperm(n: int, *, generator: Any = None) -> Tensor:
    """The numbers below n in random order."""
    return _leaf((generator or streams.default_generator).randperm(n), False)


def rand_like(input: Tensor, *, requires_grad: bool = False) -> Tensor:
    """`rand` in the shape and format of a tensor."""
    return rand(tuple(input.shape), dtype=input.dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, *, requires_grad: bool = False) -> Tensor:
    """`randn` in the shape and format of a tensor."""
    return randn(tuple(input.shape), dtype=input.dtype, requires_grad=requires_grad)


TABLE: dict[str, Any] = {
    function.__name__: placed_on_device(function)
    for function in (rand, randn, randint, randperm, rand_like, randn_like)
}
TABLE["manual_seed"] = manual_seed
TABLE["Generator"] = streams.Generator
