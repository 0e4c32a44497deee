"""A format goes in, the constructor that old programs have for it comes out: `torch.FloatTensor` and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import dtypes
from gradcli.eager.factory import tensor
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
