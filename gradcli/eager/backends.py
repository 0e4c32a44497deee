"""Names of PyTorch that choose libraries, devices and compilers; those of `torch.cuda` use a GPU that CuPy finds.

gradcli computes in one way, so a flag keeps what is assigned to it, a decorator returns its function, and questions
about other hardware have the answer no. `torch.backends` is this module; the other modules and functions are made from
the tables below.

>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.cudnn.benchmark, torch.backends.mps.is_available()
(True, False)
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

from gradcli.eager._core.devices import CPU, cuda_is_available, device, need_gpu
from gradcli.eager._core.modes import warn
from gradcli.eager._core.unsupported import VERSION, missing
from gradcli.eager.amp import deprecated

HOME = "gradcli.eager"


def _always(value: Any) -> Any:
    """A function that ignores its arguments and returns one value."""
    return lambda *args, **kwargs: value


def _unchanged(function: Any = None, **options: Any) -> Any:
    """The function itself; as a decorator with arguments too."""
    return function if callable(function) else _unchanged


_NO, _NONE, _ZERO = _always(False), _always(None), _always(0)
_ABSENT = {"is_available": _NO, "device_count": _ZERO, "synchronize": _NONE, "empty_cache": _NONE, "manual_seed": _NONE}


def _on_gpu(function: Any, without: Any = need_gpu) -> Any:
    """A function of CuPy and of its own arguments; `without` is called in its place where there is no GPU."""
    return lambda *args, **kwargs: function(import_module("cupy"), *args) if cuda_is_available() else without()


def _number(where: Any) -> int:
    return where if isinstance(where, int) else device(where or "cuda").index or 0


_used = _on_gpu(lambda cupy, _=None: int(cupy.get_default_memory_pool().used_bytes()), int)
_CUDA = {
    "is_available": cuda_is_available,
    "is_initialized": cuda_is_available,
    "is_bf16_supported": _NO,
    "device_count": _on_gpu(lambda cupy: int(cupy.cuda.runtime.getDeviceCount()), int),
    "current_device": _on_gpu(lambda cupy: int(cupy.cuda.Device().id)),
    "set_device": _on_gpu(lambda cupy, where: cupy.cuda.Device(_number(where)).use()),
    "get_device_name": _on_gpu(
        lambda cupy, where=None: cupy.cuda.runtime.getDeviceProperties(_number(where))["name"].decode()
    ),
    "synchronize": _on_gpu(lambda cupy, _=None: cupy.cuda.Device().synchronize(), _NONE),
    "empty_cache": _on_gpu(lambda cupy: cupy.get_default_memory_pool().free_all_blocks(), _NONE),
    **dict.fromkeys(
        ("manual_seed", "manual_seed_all", "reset_peak_memory_stats"), _NONE
    ),  # streams are the processor's
    **dict.fromkeys(("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"), _used),
}
# the names of each module below `torch`: flags and functions
MODULES: dict[str, dict[str, Any]] = {
    "accelerator": {**_ABSENT, "current_accelerator": _NONE, "current_device_index": _NONE},
    "backends.cuda": {
        "is_built": _NO,
        **dict.fromkeys(("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_math_sdp"), _NONE),
    },
    "backends.cuda.matmul": {f"allow_{kind}_reduced_precision_reduction": True for kind in ("fp16", "bf16")}
    | {"allow_tf32": False},
    "backends.cudnn": {"enabled": True, "benchmark": False, "deterministic": False, "allow_tf32": True}
    | {"is_available": _NO, "version": _NONE, "flags": _always(nullcontext())},
    "backends.mps": {"is_available": _NO, "is_built": _NO},
    "compiler": {"disable": _unchanged, "is_compiling": _NO, "reset": _NONE},
    "cuda": _CUDA,
    "cuda.amp": deprecated("cuda"),
    "mps": _ABSENT,
    "version": {"__version__": VERSION, "cuda": None, "hip": None, "git_version": None, "debug": False},
    "xpu": _ABSENT,
}
# settings that a pair of functions sets and gets, with their value at first
SETTINGS: dict[str, Any] = {"float32_matmul_precision": "highest", "num_threads": os.cpu_count() or 1}
PRECISIONS = ("highest", "high", "medium")
_values = dict(SETTINGS)
_deterministic = [False]


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    """A module of the names; an unknown one is an AttributeError that proposes the nearest."""
    module = ModuleType(f"{HOME}.{name}", f"PyTorch's `torch.{name}`.")

    def unknown(wanted: str) -> Any:
        raise missing(name, wanted, [known for known in vars(module) if not known.startswith("_")])

    vars(module).update(names, __getattr__=unknown)
    return module


def _pair(name: str) -> dict[str, Any]:
    def setter(value: Any) -> None:
        if name.endswith("threads") and (not isinstance(value, int) or value <= 0):
            raise RuntimeError(f"set_{name} expects a positive integer, not {value!r}")
        if name == "float32_matmul_precision" and value not in PRECISIONS:
            warn(f"{value!r} is not one of {', '.join(PRECISIONS)}: the call has no effect", UserWarning)
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


_functions = (compile, use_deterministic_algorithms, are_deterministic_algorithms_enabled)
FUNCTIONS: dict[str, Any] = {f.__name__: f for f in (*_functions, set_default_device, get_default_device)}
for _name in SETTINGS:
    FUNCTIONS |= _pair(_name)

ROOMS = {name: _module(name, names) for name, names in MODULES.items()}
TOP = {name: module for name, module in ROOMS.items() if "." not in name}  # those directly below `torch`
for _name, _part in ROOMS.items():
    _room, _, _own = _name.rpartition(".")
    if _room:
        (globals() if _room == "backends" else vars(ROOMS[_room]))[_own] = _part


def __getattr__(name: str) -> Any:
    raise missing("backends", name, [path.split(".")[1] for path in MODULES if path.startswith("backends.")])
