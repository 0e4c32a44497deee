"""Learning rates that change from epoch to epoch: PyTorch's `torch.optim.lr_scheduler`.

A scheduler sets the rates of the groups of an optimizer at each `step`. Its `get_lr` follows from the rates before, so
that several schedulers of one optimizer can be used together. `LambdaLR` takes any function of the epoch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import warn
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import ConstructorOptions, constructor, options
from gradcli.eager.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "StepLR"]


class LRScheduler:
    """Base of schedulers: `get_lr` of a subclass returns the rates of the groups at `last_epoch`.

    `last_epoch=-1` starts from the rates that the optimizer has, any other one continues a run. TypeError for what is
    not an optimizer.
    """

    _is_initial = False  # True during the first step, which leaves rates that follow from the ones before
    _get_lr_called_within_step = True  # subclasses of programs look at it
    _held: tuple[str, ...] = ("optimizer",)  # what is not part of the state

    def __init_subclass__(cls) -> None:
        """A subclass may declare the arguments of its constructor; `_start` takes them, without the optimizer."""
        if isinstance(arguments := vars(cls).get("_arguments"), ConstructorOptions):
            cls.__init__ = constructor(arguments, cls._set_up)  # type: ignore[method-assign]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self._set_up(optimizer, last_epoch=last_epoch)

    def _set_up(self, optimizer: Optimizer, **arguments: Any) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self._start(**arguments)

    def _start(self, last_epoch: int, **arguments: Any) -> None:
        vars(self).update(arguments)
        optimizer = self.optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not in param_groups[{i}]: load the optimizer's state first")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        if optimizer._watched is None:
            optimizer._watched = optimizer._steps
        self._step_count, self.last_epoch = 0, last_epoch
        self._is_initial = True
        try:
            self.step()  # which takes the rates as they are
        finally:
            self._is_initial = False

    if TYPE_CHECKING:  # the arguments are attributes

        def __getattr__(self, name: str) -> Any: ...

    def get_lr(self) -> list[float]:
        """The rates of all groups at this epoch."""
        raise NotImplementedError(f"{type(self).__name__} gives no rate")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next epoch. UserWarning where the optimizer has not made a step yet."""
        if self._step_count == 1 and self.optimizer._steps == self.optimizer._watched:
            warn("lr_scheduler.step() was called before optimizer.step(): swap them, or the first rate is skipped")
        self._step_count += 1
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._now()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in self._held}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        vars(self).update(state_dict)

    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


_LRScheduler = LRScheduler  # its old name, of which programs make subclasses


class LambdaLR(LRScheduler):
    """The initial rates times a function of the epoch, or one function for each group. The state has no functions.

    ValueError for another number of functions.
    """

    _arguments = options("optimizer, lr_lambda, last_epoch=-1")
    _held = ("optimizer", "lr_lambdas")

    def _start(self, last_epoch: int, lr_lambda: Any) -> None:  # type: ignore[override]
        count = len(self.optimizer.param_groups)
        rules = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(rules) != count:
            raise ValueError(f"expected {count} functions, one for each group of parameters, but got {len(rules)}")
        super()._start(last_epoch, lr_lambdas=rules)

    def get_lr(self) -> list[float]:
        return [base * rule(self.last_epoch) for base, rule in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class _ByFactor(LRScheduler):
    """A scheduler that multiplies all rates by `_ratio` at an epoch."""

    def get_lr(self) -> list[float]:
        ratio = self._ratio(self.last_epoch)
        return [rate * ratio for rate in self._now()]


class StepLR(_ByFactor):
    """The rates times gamma after every `step_size` epochs.

    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    _arguments = options("optimizer, step_size, gamma=0.1, last_epoch=-1")

    def _ratio(self, epoch: int) -> float:
        return 1.0 if epoch == 0 or epoch % self.step_size else self.gamma


class ExponentialLR(_ByFactor):
    """The rates times gamma after every epoch."""

    _arguments = options("optimizer, gamma, last_epoch=-1")

    def _ratio(self, epoch: int) -> float:
        return 1.0 if self._is_initial else self.gamma


class CosineAnnealingLR(LRScheduler):
    """The rates along half a cosine down to `eta_min` in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    _arguments = options("optimizer, T_max, eta_min=0.0, last_epoch=-1")

    def get_lr(self) -> list[float]:
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._now()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            lift = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - low) * lift for base, rate in zip(self.base_lrs, self._now(), strict=True)]
        share = 1 + math.cos(math.pi * epoch / self.T_max)
        before = 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [share / before * (rate - low) + low for rate in self._now()]


__getattr__, __dir__ = room("optim.lr_scheduler", __all__)
