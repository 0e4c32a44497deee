"""PyTorch's `torch.nn`: modules, parameters, losses, and how they start; the functions stand in `functional`."""

from __future__ import annotations

from typing import Any

from gradcli.diagnostics import did_you_mean
from gradcli.eager.nn import functional, init, modules, parameter, utils
from gradcli.eager.nn.parameter import Buffer, Parameter

globals().update(modules.TABLE)

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils", *modules.TABLE]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    meant = None if name.startswith("__") else did_you_mean(name, __all__)
    hint = f"; the nearest that exists is {meant}" if meant else ""
    raise AttributeError(f"gradcli.eager.nn has no {name!r}{hint}")
