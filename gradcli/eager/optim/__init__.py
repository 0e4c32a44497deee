"""PyTorch's `torch.optim`: optimizers and schedules of their learning rates.

`optimizer.py` has the base class and all optimizers, `lr_scheduler.py` all schedulers.
"""

from __future__ import annotations

from gradcli.eager._core.unsupported import room
from gradcli.eager.optim import lr_scheduler
from gradcli.eager.optim.optimizer import SGD, Adadelta, Adagrad, Adam, AdamW, Optimizer, RMSprop

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]

__getattr__, __dir__ = room("optim", __all__)
