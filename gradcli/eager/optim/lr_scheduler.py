"""An optimizer goes in, its learning rates are changed from epoch to epoch; the steps are the optimizer's."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.cycles import CosineAnnealingWarmRestarts, OneCycleLR
from gradcli.eager.optim.schedules import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.eager.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "StepLR",
]


class LambdaLR(LRScheduler):
    """The first rates times a function of the epoch, or one function for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        )
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * rule(self.last_epoch) for base, rule in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """The rates times gamma after every `step_size` epochs.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._now()
        return [rate * self.gamma for rate in self._now()]


class MultiStepLR(LRScheduler):
    """The rates times gamma at each of some epochs."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = self.milestones[self.last_epoch]
        return [rate * self.gamma**times for rate in self._now()]


class ConstantLR(LRScheduler):
    """The rates times a factor until an epoch."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("the factor of ConstantLR lies between 0 and 1")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._now()]
        if self.last_epoch != self.total_iters:
            return self._now()
        return [rate * (1.0 / self.factor) for rate in self._now()]


class LinearLR(LRScheduler):
    """The rates times a factor that moves in a straight line from `start_factor` to `end_factor`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError("the factors of LinearLR lie between 0 and 1")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._now()]
        if self.last_epoch > self.total_iters:
            return self._now()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._now()]


class ExponentialLR(LRScheduler):
    """The rates times gamma after every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._now() if self.last_epoch == 0 else [rate * self.gamma for rate in self._now()]


class CosineAnnealingLR(LRScheduler):
    """The rates along half a cosine down to `eta_min` in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, low = self.last_epoch, self.eta_min
        if epoch == 0:
            return self._now()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            lift = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - low) * lift for base, rate in zip(self.base_lrs, self._now(), strict=True)]
        share = 1 + math.cos(math.pi * epoch / self.T_max)
        before = 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [share / before * (rate - low) + low for rate in self._now()]


class ReduceLROnPlateau:
    """The rates times a factor where a metric has not become better for some epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self, metrics: Any) -> None:
        """Look at the metric of one more epoch."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                lower = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return (
                sign * value > sign * self.best * (1 + sign * self.threshold)
                if math.isfinite(self.best)
                else (sign * value > sign * self.best)
            )
        return sign * value > sign * self.best + self.threshold

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr
