"""An optimizer goes in, its learning rates rise and fall in cycles: one for a whole run, or restart after restart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.schedules import LRScheduler, for_each, kept_of, needed, set_momentum, uses_beta

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.optim.optimizer import Optimizer


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))


def _along_line(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


_SCALES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}
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
        self.optimizer = needed(optimizer)
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        if pct_start.__class__ is not float or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _SHAPES:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, most in zip(groups, for_each("max_lr", max_lr, len(groups)), strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta(optimizer)
            if last_epoch == -1:
                high = for_each("max_momentum", max_momentum, len(groups))
                low = for_each("base_momentum", base_momentum, len(groups))
                for group, top, bottom in zip(groups, high, low, strict=True):
                    set_momentum(group, top, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = top, bottom
        starts = [group["initial_lr"] for group in groups] if last_epoch == -1 else []
        for group, start in zip(groups, starts, strict=False):
            group["lr"] = start  # the base class takes the first rates from here
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._asked()
        at, between = self.last_epoch, _SHAPES[self._anneal_func_type]
        if at > self.total_steps:
            raise ValueError(
                f"Tried to step {at} times. The specified number of total steps is {self.total_steps}, where it ends"
            )
        rates, start = [], 0.0
        phase = self._schedule_phases[-1]
        for one in self._schedule_phases:
            if at <= one["end_step"]:
                phase = one
                break
            if one is not phase:
                start = one["end_step"]
        share = (at - start) / (phase["end_step"] - start)
        for group in self.optimizer.param_groups:
            rates.append(between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = between(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                set_momentum(group, momentum, self.use_beta1)
        return rates


def _phases(total: int, rising: float, three: bool) -> list[dict[str, Any]]:
    """Of each phase the end, and the names of the rates and momenta that it leads from and to."""
    rise, low, high = float(rising * total) - 1, "base_momentum", "max_momentum"
    rows: list[tuple[Any, ...]] = [(rise, "initial_lr", "max_lr", high, low)]
    if three:
        rows.append((float(2 * rising * total) - 2, "max_lr", "initial_lr", low, high))
        rows.append((total - 1, "initial_lr", "min_lr", high, high))
    else:
        rows.append((total - 1, "max_lr", "min_lr", low, high))
    return [
        dict(zip(("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"), row, strict=True))
        for row in rows
    ]


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
        self._asked()
        lift = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * lift for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to one that need not be whole. ValueError for a negative one."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log((epoch / self.T_0 * (self.T_mult - 1) + 1), self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr)


class CyclicLR(LRScheduler):
    """The rates from `base_lr` to `max_lr` and back in straight lines, momentum the other way round (Smith, 2017).
    One call of `step` for each batch.

    What a cycle adds is scaled by `mode`, or by `scale_fn` of the cycle or of the step. ValueError for an unknown
    mode, and with `cycle_momentum` for an optimizer without momentum.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = CyclicLR(optimizer, base_lr=0.5, max_lr=1.0, step_size_up=2)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = needed(optimizer).param_groups
        base_lrs = for_each("base_lr", base_lr, len(groups))
        if last_epoch == -1:
            for group, rate in zip(groups, base_lrs, strict=True):
                group["lr"] = rate
        self.optimizer = optimizer
        self.max_lrs = for_each("max_lr", max_lr, len(groups))
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta(optimizer)
            self.base_momentums = for_each("base_momentum", base_momentum, len(groups))
            self.max_momentums = for_each("max_momentum", max_momentum, len(groups))
            if last_epoch == -1:
                for group, low, high in zip(groups, self.base_momentums, self.max_momentums, strict=True):
                    set_momentum(group, high, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of a cycle, or of a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1)}.get(self.mode) or float(self.gamma**x)

    def get_lr(self) -> list[float]:
        self._asked()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in ends:
                set_momentum(group, high - (high - low) * share * scale, self.use_beta1)
        return [low + (high - low) * share * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {**super().state_dict(), "_scale_fn_custom": kept_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])
