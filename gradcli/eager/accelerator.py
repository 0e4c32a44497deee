"""PyTorch's `torch.accelerator`: the GPU that programs choose, if CuPy finds one."""

from __future__ import annotations

from gradcli.eager._core.devices import device
from gradcli.eager._core.unsupported import room
from gradcli.eager.cuda import device_count, is_available

__all__ = ["current_accelerator", "device_count", "is_available"]
__getattr__, __dir__ = room("accelerator", __all__)


def current_accelerator() -> device | None:
    """The device, None without a GPU."""
    return device("cuda") if is_available() else None
