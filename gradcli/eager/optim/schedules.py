"""An optimizer goes in, its learning rates are set epoch by epoch; which rates these are is said by subclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.state import warn

if TYPE_CHECKING:
    from gradcli.eager.optim.optimizer import Optimizer


class LRScheduler:
    """Base of schedulers: `get_lr` of a subclass says the rates of the groups at `last_epoch`.

    `last_epoch=-1` starts from the rates that the optimizer has, any other one continues a run.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group["initial_lr"] = group["lr"]
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in a group of the optimizer that is to be resumed")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._steps_before = optimizer._steps
        self._advance(None)

    def get_lr(self) -> list[float]:
        """The rates of all groups at this epoch."""
        raise NotImplementedError(f"{type(self).__name__} says no rate")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch. UserWarning where the optimizer has not made a step yet."""
        if self._step_count == 1 and self.optimizer._steps == self._steps_before:
            warn(
                "lr_scheduler.step() was called before optimizer.step(): the first learning rate is skipped. Call "
                "optimizer.step() first",
                UserWarning,
            )
        self._advance(epoch)

    def _advance(self, epoch: int | None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        vars(self).update(state_dict)

    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]
