"""`import gradcli.eager as torch`: define-by-run tensors with PyTorch's semantics, over gradcli's own rules.

Examples in the documentation of functions and classes begin after this import.

NumPy's floating-point warnings are off in every thread that uses tensors, the importing one included: overflow and
division by zero give inf and NaN in silence, as they do in PyTorch. (Switching them per operation would cost more than
the operation.)

Threads follow PyTorch's rules. Modes such as `no_grad` and `inference_mode`, forward-mode levels, saved-tensor hooks
and the transforms of `func` belong to the thread that enters them; a new thread starts with none. The default
generator is shared: each number is drawn once, by whichever thread comes first, so give each thread a `Generator` of
its own where the order matters. Tensors that several threads only read need no lock; a tensor that one of them changes
in place does.

While a function is recorded (`vmap`, `record`), tensors are stand-ins without entries: whatever reads entries is
refused, so nothing is frozen into a constant in silence, and a branch on data is recorded on both sides. What an
operation saves for its gradient is what PyTorch saves, so the same code may change the same tensors in place.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

import numpy as _np

from gradcli.eager import accelerator, autograd, cuda, linalg, special
from gradcli.eager._core import dtypes as _dtypes
from gradcli.eager._core import modes as _modes
from gradcli.eager._core.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from gradcli.eager._core.devices import device, set_default_device
from gradcli.eager._core.dtypes import dtype, get_default_dtype, set_default_dtype
from gradcli.eager._core.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from gradcli.eager._core.printing import set_printoptions
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._core.unsupported import VERSION as _VERSION
from gradcli.eager._core.unsupported import missing as _missing
from gradcli.eager._ops import install as _install
from gradcli.eager._ops.tensor_creation import TYPED as _TYPED
from gradcli.eager._ops.tensor_reductions import finfo, iinfo
from gradcli.eager.random import Generator, default_generator

__version__ = _VERSION
_install.equip()
is_inference_mode_enabled = _modes.is_inference_mode_enabled

__all__ = ["Generator", "Size", "Tensor", "accelerator", "autograd", "cuda", "default_generator", "device", "dtype"]
__all__ += ["enable_grad", "finfo", "get_default_dtype", "iinfo", "inference_mode", "is_anomaly_check_nan_enabled"]
__all__ += ["is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "is_tensor", "is_warn_always_enabled"]
__all__ += ["linalg", "no_grad", "set_default_device", "set_default_dtype", "set_grad_enabled", "set_printoptions"]
__all__ += ["set_warn_always", "special"]


def set_warn_always(mode: Any) -> None:
    """Whether warnings that come once in a process come each time."""
    _modes.always[0] = mode is not False and mode != 0


def is_warn_always_enabled() -> Any:
    """Whether warnings that come once in a process come each time."""
    return _modes.always[0]


def is_tensor(obj: Any) -> Any:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


_FUNCTIONS: dict[str, Any] = _install.functions()
_FUNCTIONS.update(inf=_np.inf, nan=_np.nan, pi=_np.pi, e=_np.e, newaxis=None, strided="torch.strided")
_DTYPES = {name: kind for name, kind in vars(_dtypes).items() if isinstance(kind, dtype)}
globals().update(_FUNCTIONS)
globals().update(_TYPED)
globals().update(_DTYPES)

_ROOMS = ("func", "nn", "optim", "testing", "utils")
_LATER = {"record": "gradcli.eager._trace", "vmap": "gradcli.eager.func"}  # functions that few programs need


def __dir__() -> list[str]:
    return sorted({*__all__, *_FUNCTIONS, *_TYPED, *_DTYPES, *_ROOMS, *_LATER})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:  # loaded when they are requested
        return _import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(_import_module(_LATER[name]), name)
    raise _missing("", name, __dir__())
