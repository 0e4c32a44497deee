"""Devices: `torch.device`, and arrays moved between them.

Tensors live on the processor, or with CuPy installed on a GPU.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np


class device:
    """Where a tensor lives: a type, and a number where there are several."""

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, int):
            if not cuda_is_available():
                raise RuntimeError(f"the number {type} names a GPU, and no GPU was found")
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"a device is named by a string, not {type.__class__.__name__}")
        name, _, number = type.partition(":")
        if name not in ("cpu", "cuda") or (number and not number.isdigit()):
            raise RuntimeError(f"unknown device {type!r}: tensors live on cpu, or on cuda where CuPy is installed")
        self.type = name
        self.index = int(number) if number else index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{number})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        """The processor is where tensors are made anyway; a GPU is refused."""
        if self.type != "cpu":
            need_gpu()
            raise RuntimeError(f"new tensors are created on the CPU: move them with .to({str(self)!r})")
        return self

    def __exit__(self, *exc: object) -> None:
        pass


CPU = device("cpu")


def set_default_device(where: Any) -> None:
    """Choose the processor for new tensors, as it is anyway. AssertionError for a GPU that is not there."""
    if where is not None:
        device(where).__enter__()


def of(raw: Any) -> device:
    """The device that a payload lives on."""
    if isinstance(raw, (np.ndarray, np.generic)):
        return CPU
    return device("cuda", int(raw.device.id))


def cuda_is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    if find_spec("cupy") is None:
        return False
    cupy = import_module("cupy")
    try:
        return int(cupy.cuda.runtime.getDeviceCount()) > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def need_gpu() -> None:
    """AssertionError where there is no GPU."""
    if not cuda_is_available():
        raise AssertionError("gradcli uses a GPU through CuPy, and none was found: pip install 'gradcli[cuda]'")


def moved(raw: Any, to: Any) -> Any:
    """A payload on a device; AssertionError where there is no GPU."""
    wanted = device(to)
    if wanted.type == "cpu":
        return raw if isinstance(raw, (np.ndarray, np.generic)) else raw.get()
    need_gpu()
    cupy = import_module("cupy")
    with cupy.cuda.Device(wanted.index or 0):
        return cupy.asarray(raw)


def same(raws: list[Any]) -> None:
    """RuntimeError where payloads live on different devices; numbers without axes go anywhere."""
    places = [of(raw) for raw in raws]
    for where in places:
        if where != places[0]:
            raise RuntimeError(f"expected all tensors to be on the same device, but found {places[0]} and {where}")
