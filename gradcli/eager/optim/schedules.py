"""An optimizer goes in, its learning rates are set epoch by epoch; which rates these are is said by subclasses."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.optimizer import Optimizer
from gradcli.eager.state import warn

if TYPE_CHECKING:
    from collections.abc import Callable


class LRScheduler:
    """Base of schedulers: `get_lr` of a subclass says the rates of the groups at `last_epoch`.

    Where a subclass has `_get_closed_form_lr`, it says the rates of an epoch that is jumped to. `last_epoch=-1` starts
    from the rates that the optimizer has, any other one continues a run. TypeError for what is no optimizer.
    """

    _is_initial = False  # True while the scheduler is made: rates that follow from the ones before stay
    _get_lr_called_within_step = False
    _held: tuple[str, ...] = ("optimizer",)  # what is no state

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = needed(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0: load the optimizer's state first, or begin with last_epoch=-1"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        if optimizer._watched is None:
            optimizer._watched = optimizer._steps
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of all groups at this epoch."""
        raise NotImplementedError(f"{type(self).__name__} says no rate")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one, which is going out of use.

        UserWarning where the optimizer has not made a step yet, and for a given epoch.
        """
        if self._step_count == 1 and self.optimizer._steps == self.optimizer._watched:
            warn(
                "lr_scheduler.step() was called before optimizer.step(): the first learning rate is skipped. Call "
                "optimizer.step() first",
                UserWarning,
            )
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        rule: Callable[[], list[float]] = self.get_lr
        if epoch is None:
            self.last_epoch += 1
        else:
            self.last_epoch = epoch
            rule = getattr(self, "_get_closed_form_lr", rule)
        self._set(rule)

    def _set(self, rule: Callable[[], list[float]]) -> None:
        """Give the groups the rates that a rule says."""
        self._get_lr_called_within_step = True
        try:
            rates = rule()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self._now()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {name: value for name, value in vars(self).items() if name not in self._held}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        vars(self).update(state_dict)

    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _asked(self) -> None:
        """UserWarning where somebody else than a step asks for the next rates."""
        if not self._get_lr_called_within_step:
            warn("get_lr() computes the rates of the next step: get_last_lr() tells those that are set", UserWarning)


class ByFunctions(LRScheduler):
    """A scheduler with a function of the epoch, or one for each group; the state of objects that are called is kept."""

    _held = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(needed(optimizer).param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        )
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        for one in self.lr_lambdas:
            if not callable(one):
                raise TypeError(f"lr_lambda should be a function, but got {type(one).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {**super().state_dict(), "lr_lambdas": [kept_of(one) for one in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for rule, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                vars(rule).update(kept)


def kept_of(rule: Any) -> dict[str, Any] | None:
    """What an object that is called remembers; None for a function."""
    return None if rule is None or isinstance(rule, FunctionType) else dict(vars(rule))


def needed(optimizer: Any) -> Optimizer:
    """The optimizer of a scheduler. TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def warn_of_epoch() -> None:
    """UserWarning for an epoch that is given to a step."""
    warn("the epoch parameter of scheduler.step() is going out of use: call scheduler.step() alone", UserWarning)


def for_each(name: str, value: Any, count: int) -> list[Any]:
    """One value for each group: the one that is given, or those in a list. ValueError for another number of them."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return list(value)


def set_momentum(group: dict[str, Any], value: float, beta: bool) -> None:
    """Give a group its momentum, which is the first of its betas for rules that have them."""
    if beta:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def uses_beta(optimizer: Optimizer) -> bool:
    """Whether the momentum of a rule is the first of its betas. ValueError for rules without any."""
    beta = "betas" in optimizer.defaults
    if not beta and "momentum" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return beta
