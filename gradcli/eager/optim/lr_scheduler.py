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
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import Options, constructor, options
from gradcli.eager.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    *("CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR"),
    *("ReduceLROnPlateau", "SequentialLR", "StepLR"),
]


class LRScheduler:
    """Base of schedulers: `get_lr` of a subclass says the rates of the groups at `last_epoch`.

    Where a subclass has `_get_closed_form_lr`, it says the rates of an epoch that is jumped to. `last_epoch=-1` starts
    from the rates that the optimizer has, any other one continues a run. TypeError for what is not an optimizer.
    """

    _is_initial = False  # True while the scheduler is made: rates that follow from the ones before stay
    _get_lr_called_within_step = False
    _held: tuple[str, ...] = ("optimizer",)  # what is not a state

    def __init_subclass__(cls) -> None:
        """A subclass may declare the arguments of its constructor, which `_start` takes."""
        if isinstance(arguments := vars(cls).get("_arguments"), Options):
            cls.__init__ = constructor(arguments, cls._start)  # type: ignore[method-assign]

    def _start(self, optimizer: Optimizer, last_epoch: int, **given: Any) -> None:
        vars(self).update(given)
        LRScheduler.__init__(self, optimizer, last_epoch)

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

    if TYPE_CHECKING:  # the arguments are attributes

        def __getattr__(self, name: str) -> Any: ...

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


def _need_optimizer(optimizer: Any) -> Optimizer:
    """The optimizer of a scheduler. TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def _warn_of_epoch() -> None:
    """UserWarning for an epoch that is given to a step."""
    warn("the epoch parameter of scheduler.step() is deprecated: call scheduler.step() alone", UserWarning)


# --- factors of the rate -------------------------------------------------------------------------------------------


class LambdaLR(LRScheduler):
    """The first rates times a function of the epoch, or one function for each group.

    The state of objects that are called is kept, that of functions is not.
    """

    _arguments = options("optimizer, lr_lambda, last_epoch=-1")
    _held = ("optimizer", "lr_lambdas")
    lr_lambdas: list[Callable[[int], float]]

    def _start(self, optimizer: Optimizer, last_epoch: int, **given: Any) -> None:
        rule, count = given["lr_lambda"], len(_need_optimizer(optimizer).param_groups)
        rules = list(rule) if isinstance(rule, (list, tuple)) else [rule] * count
        if len(rules) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(rules)}")
        for one in rules:
            if not callable(one):
                raise TypeError(f"lr_lambda should be a function, but got {type(one).__name__}")
        super()._start(optimizer, last_epoch, lr_lambdas=rules)

    def get_lr(self) -> list[float]:
        self._asked()
        return [base * rule(self.last_epoch) for base, rule in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        objects = [None if isinstance(one, FunctionType) else dict(vars(one)) for one in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": objects}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for rule, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                vars(rule).update(kept)


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

    _arguments = options("optimizer, step_size, gamma=0.1, last_epoch=-1")

    def _ratio(self, epoch: int) -> float:
        return 1.0 if epoch == 0 or epoch % self.step_size else self.gamma

    def _factor(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(_ByFactor):
    """The rates times gamma at each of some epochs."""

    _arguments = options("optimizer, milestones, gamma=0.1, last_epoch=-1")

    def _start(self, optimizer: Optimizer, last_epoch: int, **given: Any) -> None:
        super()._start(optimizer, last_epoch, **{**given, "milestones": Counter(given["milestones"])})

    def _ratio(self, epoch: int) -> float:
        return float(self.gamma ** self.milestones[epoch])

    def _factor(self, epoch: int) -> float:
        return float(self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch))


class LinearLR(_ByFactor):
    """The rates times a factor that moves in a straight line from `start_factor` to `end_factor`."""

    _arguments = options(
        "optimizer, start_factor=..., end_factor=1.0, total_iters=5, last_epoch=-1", start_factor=1.0 / 3
    )

    def _start(self, optimizer: Optimizer, last_epoch: int, **given: Any) -> None:
        if not 0 < given["start_factor"] <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= given["end_factor"] <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        super()._start(optimizer, last_epoch, **given)

    def _ratio(self, epoch: int) -> float:
        if epoch == 0:
            return float(self.start_factor)
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + float(rise / (self.total_iters * self.start_factor + (epoch - 1) * rise))

    def _factor(self, epoch: int) -> float:
        rise = self.end_factor - self.start_factor
        return float(self.start_factor + rise * min(self.total_iters, epoch) / self.total_iters)


class ExponentialLR(_ByFactor):
    """The rates times gamma after every epoch."""

    _arguments = options("optimizer, gamma, last_epoch=-1")

    def _ratio(self, epoch: int) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _factor(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class CosineAnnealingLR(LRScheduler):
    """The rates along half a cosine down to `eta_min` in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    _arguments = options("optimizer, T_max, eta_min=0.0, last_epoch=-1")

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

    _arguments = options(
        "optimizer, mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel', cooldown=0, min_lr=0, "
        "eps=1e-8"
    )

    def _start(self, optimizer: Optimizer, min_lr: Any, **given: Any) -> None:  # type: ignore[override]
        if given["factor"] >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        count = len(_need_optimizer(optimizer).param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        if given["mode"] not in ("min", "max"):
            raise ValueError(f"mode {given['mode']} is unknown!")
        if given["threshold_mode"] not in ("rel", "abs"):
            raise ValueError(f"threshold mode {given['threshold_mode']} is unknown!")
        vars(self).update(given, optimizer=optimizer, last_epoch=0)
        self.cooldown_counter = self.num_bad_epochs = 0
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self._last_lr = self._now()
        self.best = self.mode_worse = math.inf if given["mode"] == "min" else -math.inf

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return bool(self.cooldown_counter > 0)

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
                    "for each group that was added later"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            lower = max(float(group["lr"]) * self.factor, least)
            if float(group["lr"]) - lower > self.eps:
                group["lr"] = lower

    def _better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        relative = self.threshold_mode == "rel"
        least = sign * self.best * (1 + sign * self.threshold) if relative else sign * self.best + self.threshold
        return bool(sign * value > least)


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
    _arguments = options("optimizer, schedulers, milestones, last_epoch=-1")

    def _start(  # type: ignore[override]
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int
    ) -> None:
        for i, one in enumerate(schedulers):
            if not hasattr(one, "optimizer"):
                raise TypeError(f"SequentialLR at index {i} should have `optimizer` as its attribute.")
            if isinstance(one, ReduceLROnPlateau) or optimizer is not one.optimizer:
                raise ValueError(
                    "SequentialLR takes schedulers of its own optimizer that need no metric, which "
                    f"{type(one).__name__} at index {i} is not"
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


__getattr__, __dir__ = room("optim.lr_scheduler", __all__)
