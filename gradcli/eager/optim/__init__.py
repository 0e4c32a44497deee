"""PyTorch's `torch.optim`: optimizers and schedules of their learning rates.

Begin with `sgd.py`. `optimizer.py` has the base class, the declaration of hyperparameters and the arithmetic of
rules; `adam.py`, `adagrad.py` and `lbfgs.py` have the other optimizers, `lr_scheduler.py` all schedulers.
"""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager.optim import lr_scheduler
from gradcli.eager.optim.adagrad import Adadelta, Adagrad, RMSprop
from gradcli.eager.optim.adam import Adam, AdamW
from gradcli.eager.optim.lbfgs import LBFGS
from gradcli.eager.optim.optimizer import Optimizer
from gradcli.eager.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]


def __getattr__(name: str) -> Any:
    raise missing("optim", name, __all__)
