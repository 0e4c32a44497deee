"""PyTorch's `torch.cuda`: what programs ask about a GPU, and set on one; with CuPy installed there may be one."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from gradcli.eager import amp as _amp
from gradcli.eager._core.devices import cuda_is_available as is_available
from gradcli.eager._core.devices import device as _device
from gradcli.eager._core.devices import need_gpu
from gradcli.eager._core.unsupported import missing

__all__ = [
    *("amp", "current_device", "device_count", "empty_cache", "get_device_name", "is_available"),
    *("is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated"),
    *("max_memory_reserved", "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device"),
    "synchronize",
]


def _cupy() -> Any:
    need_gpu()
    return import_module("cupy")


def device_count() -> int:
    """How many GPUs there are."""
    return int(import_module("cupy").cuda.runtime.getDeviceCount()) if is_available() else 0


def current_device() -> int:
    """The number of the GPU that is used. AssertionError where there is none."""
    return int(_cupy().cuda.Device().id)


def set_device(where: Any) -> None:
    """Use another GPU. AssertionError where there is none."""
    _cupy().cuda.Device(where if isinstance(where, int) else _device(where).index or 0).use()


def get_device_name(where: Any = None) -> str:
    """The name of a GPU. AssertionError where there is none."""
    return str(_cupy().cuda.runtime.getDeviceProperties(where if isinstance(where, int) else 0)["name"].decode())


def synchronize(_: Any = None) -> None:
    """Wait for the GPU; there is nothing to wait for without one."""
    if is_available():
        import_module("cupy").cuda.Device().synchronize()


def empty_cache() -> None:
    """Give memory that is not used back to the GPU."""
    if is_available():
        import_module("cupy").get_default_memory_pool().free_all_blocks()


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there are tensors of bfloat16: there are none."""
    return False


def manual_seed(seed: int) -> None:
    """Seeds of GPUs; the streams here are the processor's."""


def memory_allocated(_: Any = None) -> int:
    """How many bytes of the GPU are used."""
    return int(import_module("cupy").get_default_memory_pool().used_bytes()) if is_available() else 0


def reset_peak_memory_stats(_: Any = None) -> None:
    """Peaks are not measured: nothing to reset."""


manual_seed_all = manual_seed
memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

amp = ModuleType(f"{__name__}.amp", "PyTorch's `torch.cuda.amp`: the deprecated names of `torch.amp`.")
vars(amp).update(_amp.deprecated("cuda"))


def __getattr__(name: str) -> Any:
    raise missing("cuda", name, __all__)
