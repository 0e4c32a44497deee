"""`import gradcli.eager as torch`: define-by-run tensors with PyTorch's semantics, over gradcli's own rules.

Importing this package switches NumPy's floating-point warnings off: overflow and division by zero give inf and NaN
in silence, as they do in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from gradcli.diagnostics import did_you_mean as _did_you_mean
from gradcli.eager import autograd, factory, indexing, joining, movement, pointwise, reductions, sampling
from gradcli.eager import methods as _methods
from gradcli.eager.dtypes import (
    bool,  # noqa: A004 - PyTorch's names
    double,
    dtype,
    float,  # noqa: A004
    float32,
    float64,
    get_default_dtype,
    int,  # noqa: A004
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
)
from gradcli.eager.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from gradcli.eager.tensor import Size, Tensor

_np.seterr(all="ignore")
_methods.equip()

__all__ = [
    "Size",
    "Tensor",
    "autograd",
    "bool",
    "double",
    "dtype",
    "enable_grad",
    "float",
    "float32",
    "float64",
    "get_default_dtype",
    "inference_mode",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_tensor",
    "long",
    "no_grad",
    "set_default_dtype",
    "set_grad_enabled",
    "short",
    "uint8",
]


def is_tensor(obj: Any) -> Any:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


_FUNCTIONS: dict[str, Any] = {}
for _table in (
    factory.TABLE,
    pointwise.TABLE,
    reductions.TABLE,
    movement.TABLE,
    joining.TABLE,
    indexing.TABLE,
    sampling.TABLE,
):
    _FUNCTIONS.update(_table)
for _name in ("view", "expand", "expand_as", "repeat", "contiguous"):  # PyTorch has these as methods only
    del _FUNCTIONS[_name]
_FUNCTIONS.update(concat=joining.cat)
_FUNCTIONS.update(numel=lambda input: input.numel(), inf=_np.inf, nan=_np.nan, pi=_np.pi, e=_np.e)
globals().update(_FUNCTIONS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_FUNCTIONS})


def __getattr__(name: str) -> Any:
    meant = None if name.startswith("__") else _did_you_mean(name, __dir__())
    hint = f"; the nearest that exists is {meant}" if meant else ""
    raise AttributeError(f"gradcli.eager has no {name!r}{hint}")
