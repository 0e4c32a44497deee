"""Number formats: `torch.float32` and the others, and the common one of several operands.

The rules of promotion are PyTorch's: operands with axes decide before operands without, these before plain numbers, and
a later group counts only where its category (truth, whole, real) is higher.
"""

from __future__ import annotations

import builtins
import functools
from typing import Any

import numpy as np


class dtype:
    """The format of a tensor's entries; printed as PyTorch prints it."""

    __slots__ = ("is_complex", "is_floating_point", "itemsize", "kind", "name", "np")

    def __init__(self, name: str, numpy_type: Any) -> None:
        self.name = name
        self.np: np.dtype[Any] = np.dtype(numpy_type)
        self.kind = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[self.np.kind]
        self.is_floating_point = self.kind == 2
        self.is_complex = self.kind == 3
        self.itemsize = self.np.itemsize
        _BY_NUMPY[self.np] = self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


_BY_NUMPY: dict[np.dtype[Any], dtype] = {}

float32 = float = dtype("float32", np.float32)
float64 = double = dtype("float64", np.float64)
float16 = half = dtype("float16", np.float16)
complex64 = cfloat = dtype("complex64", np.complex64)
complex128 = cdouble = dtype("complex128", np.complex128)
int64 = long = dtype("int64", np.int64)
int32 = int = dtype("int32", np.int32)
int16 = short = dtype("int16", np.int16)
int8 = dtype("int8", np.int8)
uint8 = dtype("uint8", np.uint8)
bool = dtype("bool", np.bool_)

# how old programs call tensors of a format
_KINDS = (float16, float32, float64, uint8, int8, int16, int32, int64, bool, complex64, complex128)
_PREFIXES = ("Half", "Float", "Double", "Byte", "Char", "Short", "Int", "Long", "Bool", "ComplexFloat", "ComplexDouble")
TENSOR_NAMES = {kind: f"{prefix}Tensor" for kind, prefix in zip(_KINDS, _PREFIXES, strict=True)}
_default = [float32]
FLOATS = (float32.np, float64.np)


def of(array_type: Any) -> dtype:
    """The format of a NumPy array; TypeError for one that tensors do not have."""
    result = _BY_NUMPY.get(array_type) or _BY_NUMPY.get(np.dtype(array_type))
    if result is None:
        names = ", ".join(kind.name for kind in _BY_NUMPY.values())
        raise TypeError(f"there are no tensors of {array_type}, only of {names}")
    return result


_WORDS: dict[type, dtype] = {builtins.bool: bool, builtins.int: int64, builtins.float: float64, complex: complex128}


def meant(kind: Any) -> Any:
    """The format that one of Python's own types stands for; anything else as it is."""
    return _WORDS.get(kind, kind) if isinstance(kind, type) else kind


def get_default_dtype() -> dtype:
    """The format of float data that names none: float32 unless it was changed."""
    return _default[0]


def set_default_dtype(kind: Any) -> None:
    """Change the format of float data that names none; TypeError unless it is a float format of tensors."""
    if not isinstance(kind, dtype) or not kind.is_floating_point or kind.np.kind != "f":
        raise TypeError("only floating-point types can be the default")
    _default[0] = kind


def of_number(value: Any) -> dtype:
    """The format of a plain number by itself."""
    kind = np.asarray(value).dtype.kind
    if kind == "c":
        return complex128 if _default[0] is float64 else complex64
    return bool if kind == "b" else int64 if kind in "iu" else _default[0]


def common(with_axes: list[dtype], without: list[dtype], numbers: list[dtype]) -> dtype:
    """PyTorch's result type of operands with axes, operands without, and plain numbers."""
    result: dtype | None = None
    for group in (with_axes, without, numbers):
        if not group:
            continue
        best = functools.reduce(_joined, group)
        if result is None or best.kind > result.kind:
            result = complex128 if best is complex64 and result is float64 else best
    assert result is not None
    return result


def _joined(left: dtype, right: dtype) -> dtype:
    if left is right:
        return left
    if left.kind != right.kind:
        return left if left.kind > right.kind else right
    return of(np.promote_types(left.np, right.np))
