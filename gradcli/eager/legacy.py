"""The constructors of old programs: `torch.FloatTensor` and its kin, and `torch.autograd.Variable`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import dtypes
from gradcli.eager.factory import empty, tensor
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor

FORMATS = {
    "HalfTensor": dtypes.float16,
    "FloatTensor": dtypes.float32,
    "DoubleTensor": dtypes.float64,
    "ByteTensor": dtypes.uint8,
    "CharTensor": dtypes.int8,
    "ShortTensor": dtypes.int16,
    "IntTensor": dtypes.int32,
    "LongTensor": dtypes.int64,
    "BoolTensor": dtypes.bool,
}


def entries_of(first: Any, *rest: Any) -> Any:
    """The entries of `torch.Tensor(...)`: a list in the default format, or zeros of given sizes.

    TypeError for a number with a point, as in PyTorch.
    """
    kind = dtypes.get_default_dtype().np
    sizes = [size for size in (first, *rest) if type(size) is int]
    if type(first) is int:
        return np.zeros(sizes, kind)
    if isinstance(first, float):
        raise TypeError("torch.Tensor takes sizes or a sequence: torch.tensor(3.5) makes a tensor of a number")
    if isinstance(first, (list, tuple)):
        return tensor(first, dtype=dtypes.get_default_dtype())._array
    return np.asarray(first)


class _Typed(type):
    """The type of such a constructor: a tensor of the format is an instance of it."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype

    def __call__(cls, *sizes: Any) -> Tensor:
        """A tensor of given entries, or of given sizes (then with zeros)."""
        if len(sizes) == 1 and not isinstance(sizes[0], int):
            return tensor(sizes[0], dtype=cls.dtype)
        return Tensor(np.zeros(sizes or (0,), cls.dtype.np))


TABLE: dict[str, Any] = {
    name: _Typed(name, (), {"dtype": kind, "__module__": "torch"}) for name, kind in FORMATS.items()
}


class _Variable(type):
    """The type of `Variable`: every tensor is an instance of it."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)

    def __call__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        """A leaf that shares the memory and the version of a tensor. TypeError for what is no tensor."""
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warn("volatile was removed and has no effect: use no_grad() instead")
        return data.detach().requires_grad_(bool(requires_grad))


class Variable(metaclass=_Variable):
    """The old name of tensors.

    >>> import gradcli.eager as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """


Variable.__module__ = "torch.autograd.variable"
