"""PyTorch's `torch.cuda`: whether CuPy finds a GPU, and what programs call before they choose a device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.eager._core.devices import cuda_is_available as is_available
from gradcli.eager._core.unsupported import room

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]
__getattr__, __dir__ = room("cuda", __all__)


def device_count() -> int:
    """How many GPUs there are."""
    return int(import_module("cupy").cuda.runtime.getDeviceCount()) if is_available() else 0


def synchronize(device: Any = None) -> None:
    """Wait until the GPU is done."""
    if is_available():
        import_module("cupy").cuda.Device().synchronize()


def empty_cache() -> None:
    """Give unused memory of the GPU back."""
    if is_available():
        import_module("cupy").get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """Does nothing: random numbers are those of the processor, which `torch.manual_seed` sets."""


manual_seed_all = manual_seed
