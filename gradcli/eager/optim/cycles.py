"""An optimizer goes in, its learning rates rise and fall in cycles: one for a whole run, or restart after restart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.schedules import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.optim.optimizer import Optimizer


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))


def _along_line(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


_SHAPES: dict[str, Callable[[float, float, float], float]] = {"cos": _along_cosine, "linear": _along_line}


class OneCycleLR(LRScheduler):
    """One cycle over a run: the rates rise to `max_lr` and fall far below where they began, momentum the other way
    round (Smith and Topin, 2019). One call of `step` for each batch.

    ValueError for a length that is not given or is passed, for options outside their range, and with `cycle_momentum`
    for an optimizer without momentum.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> round(schedule.get_last_lr()[0], 6)
    0.02
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        if pct_start.__class__ is not float or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _SHAPES:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._shape = anneal_strategy
        rise = float(pct_start * self.total_steps) - 1
        last = self.total_steps - 1
        # of each phase the end, and the names of the rates and momenta that it leads from and to
        self._phases = [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            fall = float(2 * pct_start * self.total_steps) - 2
            self._phases.append((fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            self._phases.append((last, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            self._phases.append((last, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, most in zip(groups, _each("max_lr", max_lr, len(groups)), strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            if not self.use_beta1 and "momentum" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            if last_epoch == -1:
                high = _each("max_momentum", max_momentum, len(groups))
                low = _each("base_momentum", base_momentum, len(groups))
                for group, top, bottom in zip(groups, high, low, strict=True):
                    self._set_momentum(group, top)
                    group["max_momentum"], group["base_momentum"] = top, bottom
        starts = [group["initial_lr"] for group in groups] if last_epoch == -1 else []
        for group, start in zip(groups, starts, strict=False):
            group["lr"] = start  # the base class takes the first rates from here
        super().__init__(optimizer, last_epoch)

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def get_lr(self) -> list[float]:
        at, between = self.last_epoch, _SHAPES[self._shape]
        if at > self.total_steps:
            raise ValueError(
                f"Tried to step {at} times. The specified number of total steps is {self.total_steps}, where it ends"
            )
        rates, start = [], 0.0
        phase = self._phases[-1]
        for one in self._phases:
            if at <= one[0]:
                phase = one
                break
            if one is not phase:
                start = one[0]
        share = (at - start) / (phase[0] - start)
        for group in self.optimizer.param_groups:
            rates.append(between(group[phase[1]], group[phase[2]], share))
            if self.cycle_momentum:
                self._set_momentum(group, between(group[phase[3]], group[phase[4]], share))
        return rates


def _length(total: Any, epochs: Any, each: Any) -> int:
    """The number of steps of a cycle."""
    if total is not None:
        if not isinstance(total, int) or total <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or each is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for value, what in ((epochs, "epochs"), (each, "steps_per_epoch")):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {what}, but got {value}")
    return int(epochs * each)


def _each(name: str, value: Any, count: int) -> list[float]:
    """One number for each group."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups: {count}, but got {len(value)}")
    return list(value)


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rates along half a cosine down to `eta_min`, again and again, each time over `T_mult` times as many epochs
    (Loshchilov and Hutter, 2017). ValueError unless `T_0` is positive and `T_mult` at least 1.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or T_0.__class__ is not int:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or T_mult.__class__ is not int:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        lift = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * lift for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to one that need not be whole. ValueError for a negative one."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self._advance(epoch)

    def _advance(self, epoch: float | None) -> None:
        if epoch is None:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            super()._advance(None)
            return
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch >= self.T_0:
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                n = int(math.log((epoch / self.T_0 * (self.T_mult - 1) + 1), self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        super()._advance(math.floor(epoch))
