"""Names of PyTorch that choose libraries, devices and compilers; they are accepted, and change nothing.

gradcli computes in one way, so a flag keeps what is assigned to it, a decorator returns its function, and a question
about hardware is answered with no. `torch.backends` is this module; the other modules and functions are made from the
tables below.

>>> import gradcli.eager as torch
>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.cudnn.benchmark, torch.backends.mps.is_available()
(True, False)
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from gradcli.eager._core.devices import CPU, device
from gradcli.eager._core.modes import warn
from gradcli.eager._core.unsupported import VERSION, missing

HOME = "gradcli.eager"


def _always(value: Any) -> Any:
    """A function that ignores its arguments and returns one value."""
    return lambda *args, **kwargs: value


def _unchanged(function: Any = None, **options: Any) -> Any:
    """The function itself; as a decorator with arguments too."""
    return function if callable(function) else _unchanged


_NO, _NONE, _ZERO, _CONTEXT = _always(False), _always(None), _always(0), lambda *args, **kwargs: nullcontext()
_ABSENT = {"is_available": _NO, "device_count": _ZERO, "synchronize": _NONE, "empty_cache": _NONE, "manual_seed": _NONE}

# the names of each module below `torch`: flags and functions
MODULES: dict[str, dict[str, Any]] = {
    "accelerator": {**_ABSENT, "current_accelerator": _NONE, "current_device_index": _NONE},
    "backends.cuda": {
        **dict.fromkeys(("is_built", "flash_sdp_enabled", "mem_efficient_sdp_enabled", "cudnn_sdp_enabled"), _NO),
        **dict.fromkeys(("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_math_sdp", "enable_cudnn_sdp"), _NONE),
        "math_sdp_enabled": _always(True),
        "sdp_kernel": _CONTEXT,
    },
    "backends.cuda.matmul": {
        "allow_tf32": False,
        "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True,
        "fp32_precision": "none",
    },
    "backends.cudnn": {
        "enabled": True,
        "benchmark": False,
        "benchmark_limit": 10,
        "deterministic": False,
        "allow_tf32": True,
        "fp32_precision": "none",
        "is_available": _NO,
        "version": _NONE,
        "flags": _CONTEXT,
    },
    "backends.mkl": {"is_available": _NO},
    "backends.mkldnn": {"enabled": True, "is_available": _NO, "flags": _CONTEXT},
    "backends.mps": {"is_available": _NO, "is_built": _NO},
    "backends.openmp": {"is_available": _NO},
    "backends.opt_einsum": {"enabled": False, "strategy": None, "is_available": _NO},
    "compiler": {
        "disable": _unchanged,
        "allow_in_graph": _unchanged,
        "is_compiling": _NO,
        "is_exporting": _NO,
        "reset": _NONE,
        "cudagraph_mark_step_begin": _NONE,
    },
    "mps": _ABSENT,
    "version": {"__version__": VERSION, "cuda": None, "hip": None, "git_version": None, "debug": False},
    "xpu": _ABSENT,
}
# settings that a pair of functions sets and gets, with their value at first
SETTINGS: dict[str, Any] = {
    "float32_matmul_precision": "highest",
    "num_threads": os.cpu_count() or 1,
    "num_interop_threads": os.cpu_count() or 1,
    "deterministic_debug_mode": 0,
}
PRECISIONS = ("highest", "high", "medium")
FUNCTIONS: dict[str, Any] = {"set_flush_denormal": _NO}
_values = dict(SETTINGS)
_deterministic = [False]


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    """A module of the names; an unknown one is an AttributeError that proposes the nearest."""
    found = ModuleType(f"{HOME}.{name}", f"PyTorch's `torch.{name}`: accepted, and without effect.")

    def unknown(wanted: str) -> Any:
        raise missing(name, wanted, [one for one in vars(found) if not one.startswith("_")])

    vars(found).update(names, __getattr__=unknown)
    return found


def _pair(name: str) -> dict[str, Any]:
    def setter(value: Any) -> None:
        if name.endswith("threads") and (not isinstance(value, int) or value <= 0):
            raise RuntimeError(f"set_{name} expects a positive integer, not {value!r}")
        if name == "float32_matmul_precision" and value not in PRECISIONS:
            warn(f"{value!r} is none of {', '.join(PRECISIONS)}: the call has no effect", UserWarning)
            return
        _values[name] = value

    def getter() -> Any:
        return _values[name]

    setter.__doc__ = f"Set `{name}`, which changes no result here."
    getter.__doc__ = f"The `{name}` that was set last."
    setter.__name__, getter.__name__ = f"set_{name}", f"get_{name}"
    return {f"set_{name}": setter, f"get_{name}": getter}


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """The function or module itself; without one, a decorator that returns it.

    >>> @compile(mode="max-autotune")
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    if model is not None and not callable(model):
        raise AssertionError(f"a callable function is expected, but {type(model)} is provided")
    return _unchanged if model is None else model


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that always give the same numbers; all of gradcli's do."""
    _deterministic[0] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` requested them."""
    return _deterministic[0]


def set_default_device(where: Any) -> None:
    """Choose the processor for new tensors, as it is anyway. AssertionError for a GPU that is not there."""
    if where is not None:
        device(where).__enter__()


def get_default_device() -> device:
    """Where new tensors are made: the processor."""
    return CPU


for _name in SETTINGS:
    FUNCTIONS.update(_pair(_name))
for _function in (
    *(compile, use_deterministic_algorithms, are_deterministic_algorithms_enabled),
    *(set_default_device, get_default_device),
):
    FUNCTIONS[_function.__name__] = _function

TOP: dict[str, ModuleType] = {}  # the modules that stand directly below `torch`
for _name, _names in MODULES.items():
    _room, _, _own = _name.rpartition(".")
    _made = _module(_name, _names)
    if not _room:
        TOP[_name] = _made
    elif _room == "backends":
        globals()[_own] = _made
    else:
        vars(globals()[_room.removeprefix("backends.")])[_own] = _made


def __getattr__(name: str) -> Any:
    raise missing("backends", name, [one.split(".")[1] for one in MODULES if one.startswith("backends.")])
