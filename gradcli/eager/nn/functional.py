"""PyTorch's `torch.nn.functional`: the functions of the layers, which stand beside them in `modules/`."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager.nn.modules import public

_FUNCTIONS = public(lambda one: isinstance(one, FunctionType))
globals().update(_FUNCTIONS)

__all__ = list(_FUNCTIONS)


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    raise missing("nn.functional", name, __all__)
