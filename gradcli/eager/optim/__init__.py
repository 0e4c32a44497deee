"""PyTorch's `torch.optim`: optimizers and schedules of their learning rates.

Begin with `_gradient_descent.py`, which has the optimizers but LBFGS. `optimizer.py` has their base class and the
arithmetic of rules, `lr_scheduler.py` all schedulers.
"""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager.optim import lr_scheduler
from gradcli.eager.optim._gradient_descent import SGD, Adadelta, Adagrad, Adam, AdamW, RMSprop
from gradcli.eager.optim.lbfgs import LBFGS
from gradcli.eager.optim.optimizer import Optimizer

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "LBFGS", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]


def __getattr__(name: str) -> Any:
    raise missing("optim", name, __all__)
