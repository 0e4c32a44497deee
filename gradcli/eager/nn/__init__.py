"""PyTorch's `torch.nn`: modules, parameters, losses, and how they start; the functions stand in `functional`."""

from __future__ import annotations

from typing import Any

from gradcli.eager.nn import functional, init, modules, parameter, utils
from gradcli.eager.nn.parameter import Buffer, Parameter
from gradcli.eager.unsupported import missing

globals().update(modules.TABLE)

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils", *modules.TABLE]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    raise missing("nn", name, __all__)
