"""PyTorch's `torch.testing`: `assert_close` raises an AssertionError where two results differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room

__all__ = ["assert_close"]

# relative and absolute differences that rounding explains, by format
_SINGLE, _DOUBLE = (1.3e-6, 1e-5), (1e-7, 1e-7)
_CLOSE = {"float16": (1e-3, 1e-5), "float32": _SINGLE, "complex64": _SINGLE, "float64": _DOUBLE, "complex128": _DOUBLE}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    msg: Any = None,
) -> None:
    """AssertionError unless shapes and formats are equal and entries are close; sequences are compared one by one.

    ValueError where only one of `rtol` and `atol` is given.

    >>> assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    if isinstance(expected, (tuple, list)) and not isinstance(actual, Tensor):
        if not isinstance(actual, (tuple, list)) or len(actual) != len(expected):
            raise AssertionError("The sequences have different lengths")
        for left, right in zip(actual, expected, strict=True):
            options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype, "msg": msg}
            assert_close(left, right, **options)
        return
    left, right = (_array(x) for x in (actual, expected))
    said = _difference(left, right, rtol, atol, equal_nan, check_dtype)
    if said:
        raise AssertionError(msg(said) if callable(msg) else msg or said)


def _array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach()._array
    if isinstance(x, (int, float, complex, np.ndarray, np.generic)):
        return np.asarray(x)
    raise TypeError(f"No comparison is known for inputs of type {type(x).__name__}")


def _difference(left: Any, right: Any, rtol: Any, atol: Any, equal_nan: bool, check_dtype: bool) -> str | None:
    """What is different, in words."""
    if left.shape != right.shape:
        return f"The values for attribute 'shape' do not match: {list(left.shape)} != {list(right.shape)}."
    if check_dtype and left.dtype != right.dtype:
        return f"The values for attribute 'dtype' do not match: torch.{left.dtype} != torch.{right.dtype}."
    names = (left.dtype.name, right.dtype.name)
    relative = max(_CLOSE.get(name, (0.0, 0.0))[0] for name in names) if rtol is None else rtol
    absolute = max(_CLOSE.get(name, (0.0, 0.0))[1] for name in names) if atol is None else atol
    close = np.isclose(left, right, relative, absolute, equal_nan)
    if close.all():
        return None
    count = int(close.size - close.sum())
    largest = np.abs(np.subtract(left, right, dtype=np.result_type(left, right, np.float32)))[~close].max()
    share = 100 * count / close.size
    return (
        f"Tensor-likes are not close!\n\nMismatched elements: {count} / {close.size} ({share:.1f}%)\n"
        f"Greatest absolute difference: {largest:.6g} (up to {absolute} allowed, relative {relative})"
    )


__getattr__, __dir__ = room("testing", __all__)
