"""PyTorch's `torch.optim`: rules that change parameters by their gradients, and schedules of learning rates."""

from __future__ import annotations

from typing import Any

from gradcli.eager.optim import lr_scheduler
from gradcli.eager.optim.adaptive import Adadelta, Adagrad, Adamax, RMSprop
from gradcli.eager.optim.lbfgs import LBFGS
from gradcli.eager.optim.moments import NAdam, RAdam
from gradcli.eager.optim.optimizer import Optimizer
from gradcli.eager.optim.paces import ASGD, Rprop
from gradcli.eager.optim.rules import SGD, Adam, AdamW
from gradcli.eager.unsupported import missing

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]


def __getattr__(name: str) -> Any:
    raise missing("optim", name, __all__)
