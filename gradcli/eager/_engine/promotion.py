"""Type promotion: the dtype that an operation computes in, by PyTorch's rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.tensor import Tensor

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

# operations that whole numbers go through as whole numbers; all others compute in floats
_WHOLE = """
add sub mul neg power abs sign maximum minimum clamp floor ceil trunc round mod where matmul sum prod cumsum max min
reshape broadcast permute slice unslice concat take_static put_static take_along put_along tril triu less less_equal
greater greater_equal equal not_equal and or not any all argmax argmin argsort sort is_max is_min cast relu
"""
WHOLE = frozenset(_WHOLE.split())
# operands that are data of their own format: conditions and positions
APART: dict[str, tuple[int, ...]] = {"where": (0,), "take_along": (1,), "put_along": (1,)}


def kind_of(xs: tuple[Any, ...], keep_dtype: tuple[int, ...], keep_integer: bool) -> np.dtype[Any]:
    """The format that an operation computes in."""
    first: Any = None
    for i, x in enumerate(xs):
        if i in keep_dtype:
            continue
        if isinstance(x, Tensor):
            kind = x._raw.dtype
            if first is None:
                first = kind
            elif kind is not first:
                return _joined(xs, keep_dtype, keep_integer)
        elif isinstance(x, complex):
            return _joined(xs, keep_dtype, keep_integer)
    if first is FLOATS[0] or first is FLOATS[1]:
        return first
    return _joined(xs, keep_dtype, keep_integer)


def _joined(xs: tuple[Any, ...], keep_dtype: tuple[int, ...], keep_integer: bool) -> np.dtype[Any]:
    with_axes: list[dtypes.dtype] = []
    without: list[dtypes.dtype] = []
    numbers: list[dtypes.dtype] = []
    for i, x in enumerate(xs):
        if i in keep_dtype:
            continue
        if isinstance(x, Tensor):
            (with_axes if x._raw.ndim else without).append(dtypes.of(x._raw.dtype))
        else:
            numbers.append(dtypes.of_number(x))
    found = dtypes.common(with_axes, without, numbers)
    return found.np if keep_integer or found.kind >= 2 else dtypes.get_default_dtype().np
