"""PyTorch's `torch.nn.functional`: the functions of the layers, which stand beside them in `modules/`."""

from __future__ import annotations

from types import FunctionType

from gradcli.eager._core.unsupported import room
from gradcli.eager.nn.modules import public

_FUNCTIONS = public(lambda x: isinstance(x, FunctionType))
globals().update(_FUNCTIONS)

__all__ = list(_FUNCTIONS)

__getattr__, __dir__ = room("nn.functional", __all__)
