"""Learning rates that change from epoch to epoch: PyTorch's `torch.optim.lr_scheduler`.

A scheduler sets the rates of the groups of an optimizer at each `step`. Its `get_lr` follows from the rates before, so
that schedulers of one optimizer can be chained; `_get_closed_form_lr` says the rates of any epoch where a formula does.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import warn
from gradcli.eager._core.unsupported import missing
from gradcli.eager.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Base of schedulers: `get_lr` of a subclass says the rates of the groups at `last_epoch`.

    Where a subclass has `_get_closed_form_lr`, it says the rates of an epoch that is jumped to. `last_epoch=-1` starts
    from the rates that the optimizer has, any other one continues a run. TypeError for what is no optimizer.
    """

    _is_initial = False  # True while the scheduler is made: rates that follow from the ones before stay
    _get_lr_called_within_step = False
    _held: tuple[str, ...] = ("optimizer",)  # what is no state

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _need_optimizer(optimizer)
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
        raise NotImplementedError(f"{type(self).__name__} gives no rate")

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
            _warn_of_epoch()
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
            warn("get_lr() computes the rates of the next step: get_last_lr() returns those that are set", UserWarning)


class _LRScheduler(LRScheduler):
    """Its old name, of which programs make subclasses."""


def _attributes_of(rule: Any) -> dict[str, Any] | None:
    """What an object that is called remembers; None for a function."""
    return None if rule is None or isinstance(rule, FunctionType) else dict(vars(rule))


def _need_optimizer(optimizer: Any) -> Optimizer:
    """The optimizer of a scheduler. TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def _warn_of_epoch() -> None:
    """UserWarning for an epoch that is given to a step."""
    warn("the epoch parameter of scheduler.step() is going out of use: call scheduler.step() alone", UserWarning)


# --- factors of the rate -------------------------------------------------------------------------------------------


class _ByFunctions(LRScheduler):
    """A scheduler with a function of the epoch, or one for each group; the state of objects that are called is kept."""

    _held = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(_need_optimizer(optimizer).param_groups)
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
        return {**super().state_dict(), "lr_lambdas": [_attributes_of(one) for one in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for rule, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                vars(rule).update(kept)


class LambdaLR(_ByFunctions):
    """The first rates times a function of the epoch, or one function for each group."""

    def get_lr(self) -> list[float]:
        self._asked()
        return [base * rule(self.last_epoch) for base, rule in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class _ByFactor(LRScheduler):
    """A scheduler that multiplies all rates: by `_ratio` at an epoch, by `_factor` from the first rates on."""

    def _ratio(self, epoch: int) -> float:
        raise NotImplementedError

    def _factor(self, epoch: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        self._asked()
        ratio = self._ratio(self.last_epoch)
        return [rate * ratio for rate in self._now()]

    def _get_closed_form_lr(self) -> list[float]:
        factor = self._factor(self.last_epoch)
        return [base * factor for base in self.base_lrs]


class StepLR(_ByFactor):
    """The rates times gamma after every `step_size` epochs.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, epoch: int) -> float:
        return 1.0 if epoch == 0 or epoch % self.step_size else self.gamma

    def _factor(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(_ByFactor):
    """The rates times gamma at each of some epochs."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, epoch: int) -> float:
        return float(self.gamma ** self.milestones[epoch])

    def _factor(self, epoch: int) -> float:
        return float(self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch))


class LinearLR(_ByFactor):
    """The rates times a factor that moves in a straight line from `start_factor` to `end_factor`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)

    def _factor(self, epoch: int) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, epoch) / self.total_iters


class ExponentialLR(_ByFactor):
    """The rates times gamma after every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, epoch: int) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _factor(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class CosineAnnealingLR(LRScheduler):
    """The rates along half a cosine down to `eta_min` in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._asked()
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._now()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            lift = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - low) * lift for base, rate in zip(self.base_lrs, self._now(), strict=True)]
        share = 1 + math.cos(math.pi * epoch / self.T_max)
        before = 1 + math.cos(math.pi * (epoch - 1) / self.T_max)
        return [share / before * (rate - low) + low for rate in self._now()]

    def _get_closed_form_lr(self) -> list[float]:
        share = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]


# --- a metric that no longer improves ------------------------------------------------------------------------------


class ReduceLROnPlateau(LRScheduler):
    """The rates times a factor where a metric has not become better for some epochs.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (3.0, 2.0, 2.0): schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        count = len(_need_optimizer(optimizer).param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = self._now()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of one more epoch."""
        value = float(metrics)
        if epoch is not None:
            _warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"the optimizer has {len(groups)} param groups and `min_lrs` {len(self.min_lrs)} entries: add one "
                    "for each group that came later"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            lower = max(float(group["lr"]) * self.factor, least)
            if float(group["lr"]) - lower > self.eps:
                group["lr"] = lower

    def _better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * value > sign * self.best * (1 + sign * self.threshold)
        return sign * value > sign * self.best + self.threshold


# --- cycles --------------------------------------------------------------------------------------------------------


def _for_each(name: str, value: Any, count: int) -> list[Any]:
    """One value for each group: the one that is given, or those in a list. ValueError for another number of them."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return list(value)


def _set_momentum(group: dict[str, Any], value: float, beta: bool) -> None:
    """Give a group its momentum, which is the first of its betas for rules that have them."""
    if beta:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _uses_beta(optimizer: Optimizer) -> bool:
    """Whether the momentum of a rule is the first of its betas. ValueError for rules without any."""
    beta = "betas" in optimizer.defaults
    if not beta and "momentum" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return beta


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
        self.optimizer = _need_optimizer(optimizer)
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        if pct_start.__class__ is not float or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _SHAPES:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, most in zip(groups, _for_each("max_lr", max_lr, len(groups)), strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta(optimizer)
            if last_epoch == -1:
                high = _for_each("max_momentum", max_momentum, len(groups))
                low = _for_each("base_momentum", base_momentum, len(groups))
                for group, top, bottom in zip(groups, high, low, strict=True):
                    _set_momentum(group, top, self.use_beta1)
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
                _set_momentum(group, momentum, self.use_beta1)
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


# --- several schedulers --------------------------------------------------------------------------------------------


class SequentialLR(LRScheduler):
    """Schedulers that take turns: each one from its milestone on, from the first rates.

    ValueError unless there is one milestone fewer than schedulers, all of them of this optimizer.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> warm = optim.lr_scheduler.LinearLR(optimizer, 0.5, 0.5, 2)
    >>> falling = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule, rates = SequentialLR(optimizer, [warm, falling], [2]), []
    >>> for epoch in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    _held = ("optimizer", "_schedulers")

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        for i, one in enumerate(schedulers):
            if not hasattr(one, "optimizer"):
                raise TypeError(f"SequentialLR at index {i} should have `optimizer` as its attribute.")
            if isinstance(one, ReduceLROnPlateau):
                raise ValueError(
                    "SequentialLR does not support `ReduceLROnPlateau` scheduler, which needs a metric at every step, "
                    f"but got one at index {i}"
                )
            if optimizer is not one.optimizer:
                raise ValueError(
                    f"SequentialLR expects all schedulers to belong to the same optimizer, but {type(one).__name__} at "
                    f"index {i} belongs to another one"
                )
        self._schedulers, self.optimizer = schedulers, optimizer
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR takes one scheduler more than milestone points, but got {len(schedulers)} schedulers "
                f"and {len(milestones)} milestones"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            one.load_state_dict(state)

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the step that every scheduler made when it was made."""
        stack = [self if sched is None else sched]
        while stack:
            one = stack.pop()
            if hasattr(one, "_schedulers"):
                stack.extend(one._schedulers)
            elif hasattr(one, "last_epoch"):
                one.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """A step of the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def __getattr__(name: str) -> Any:
    raise missing("optim.lr_scheduler", name, __all__)
