"""Learning rates that change from epoch to epoch: PyTorch's `torch.optim.lr_scheduler`.

A scheduler sets the rates of the groups of an optimizer at each `step`. Its `get_lr` follows from the rates before, so
that several schedulers of one optimizer can be used together.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import warn
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import Options, constructor, options
from gradcli.eager.optim.optimizer import Optimizer

__all__ = [
    *("CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR"),
    *("OneCycleLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"),
]


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
        if isinstance(arguments := vars(cls).get("_arguments"), Options):
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
        self._begin(last_epoch)

    def _begin(self, last_epoch: int) -> None:
        """Make the first step, which takes the rates as they are."""
        self._step_count, self.last_epoch = 0, last_epoch
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

    def _for_each(self, name: str, value: Any) -> list[Any]:
        """A value for each group: the same one, or those in a list. ValueError for another number of them."""
        count = len(self.optimizer.param_groups)
        values = list(value) if isinstance(value, (list, tuple)) else [value] * count
        if len(values) != count:
            raise ValueError(f"expected {count} values of {name}, one for each group of parameters, got {len(values)}")
        return values


_LRScheduler = LRScheduler  # its old name, of which programs make subclasses


class LambdaLR(LRScheduler):
    """The initial rates times a function of the epoch, or one function for each group. The state has no functions."""

    _arguments = options("optimizer, lr_lambda, last_epoch=-1")
    _held = ("optimizer", "lr_lambdas")

    def _start(self, last_epoch: int, **arguments: Any) -> None:
        super()._start(last_epoch, lr_lambdas=self._for_each("lr_lambda", arguments["lr_lambda"]))

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


class MultiStepLR(_ByFactor):
    """The rates times gamma at each of some epochs."""

    _arguments = options("optimizer, milestones, gamma=0.1, last_epoch=-1")

    def _start(self, last_epoch: int, **arguments: Any) -> None:
        super()._start(last_epoch, **{**arguments, "milestones": Counter(arguments["milestones"])})

    def _ratio(self, epoch: int) -> float:
        return float(self.gamma ** self.milestones[epoch])


class LinearLR(_ByFactor):
    """The rates times a factor that moves in a straight line from `start_factor` to `end_factor`."""

    _arguments = options("optimizer, start_factor=0.3333333333333333, end_factor=1.0, total_iters=5, last_epoch=-1")

    def _start(self, last_epoch: int, **arguments: Any) -> None:
        if not 0 < arguments["start_factor"] <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= arguments["end_factor"] <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        super()._start(last_epoch, **arguments)

    def _ratio(self, epoch: int) -> float:
        if epoch == 0:
            return float(self.start_factor)
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + float(rise / (self.total_iters * self.start_factor + (epoch - 1) * rise))


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


class OneCycleLR(LRScheduler):
    """Rates that rise to `max_lr` and fall far below the initial ones, with momentum that moves the opposite way (Smith
    and Topin, 2019). Call `step` once for each batch.

    ValueError for options outside their range, for a run longer than `total_steps` (or `epochs * steps_per_epoch`),
    and with `cycle_momentum` for an optimizer without momentum.

    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> round(schedule.get_last_lr()[0], 6), optimizer.param_groups[0]["momentum"]
    (0.02, 0.95)
    """

    _arguments = options(
        "optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy='cos', "
        "cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, "
        "three_phase=False, last_epoch=-1"
    )

    def _start(self, last_epoch: int, **arguments: Any) -> None:
        groups = self.optimizer.param_groups
        lengths = {name: arguments.pop(name) for name in ("total_steps", "epochs", "steps_per_epoch")}
        if (total := lengths.pop("total_steps")) is not None:
            lengths = {"total_steps": total}
        elif None in lengths.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in lengths.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        rising, strategy = arguments["pct_start"], arguments["anneal_strategy"]
        if not isinstance(rising, float) or not 0 <= rising <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {rising}")
        if strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {strategy}")
        if arguments["cycle_momentum"] and not {"momentum", "betas"} & self.optimizer.defaults.keys():
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        names = ("max_lr", "max_momentum", "base_momentum")[: 3 if arguments["cycle_momentum"] else 1]
        columns = {name: self._for_each(name, arguments[name]) for name in names}
        for i, group in enumerate(groups if last_epoch == -1 else ()):
            group.update({name: values[i] for name, values in columns.items()})
            group["initial_lr"] = group["max_lr"] / arguments["div_factor"]
            group["min_lr"] = group["initial_lr"] / arguments["final_div_factor"]
        self.total_steps = total = math.prod(lengths.values())
        rise = rising * total - 1
        # the steps where the direction changes, with the names of the rate and the momentum there
        first, top, end = ("initial_lr", "max_momentum"), ("max_lr", "base_momentum"), ("min_lr", "max_momentum")
        back = [(2 * rise, *first)] if arguments["three_phase"] else []
        self._turns = [(0.0, *first), (rise, *top), *back, (total - 1, *end)]
        super()._start(last_epoch, **arguments)

    def get_lr(self) -> list[float]:
        at, turns = self.last_epoch, self._turns
        if at > self.total_steps:
            raise ValueError(f"Tried to step {at} times. The specified number of total steps is {self.total_steps}")
        i = next((i for i in range(1, len(turns)) if at <= turns[i][0]), len(turns) - 1)
        (start, *first), (end, *last) = turns[i - 1 : i + 1]
        share = (at - start) / (end - start)
        left = (1 + math.cos(math.pi * share)) / 2 if self.anneal_strategy == "cos" else 1 - share
        pairs, rates = list(zip(first, last, strict=True))[: 1 + self.cycle_momentum], []
        for group in self.optimizer.param_groups:
            rate, *momentum = [group[y] + (group[x] - group[y]) * left for x, y in pairs]
            rates.append(rate)
            if momentum and "betas" in group:
                group["betas"] = (*momentum, *group["betas"][1:])
            elif momentum:
                group["momentum"] = momentum[0]
        return rates


class ReduceLROnPlateau(LRScheduler):
    """The rates times a factor where a metric has not become better for some epochs.

    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (3.0, 2.0, 2.0): schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    _arguments = options(
        "optimizer, mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel', cooldown=0, min_lr=0, "
        "eps=1e-8"
    )

    def _start(self, min_lr: Any, **arguments: Any) -> None:  # type: ignore[override]
        if arguments["factor"] >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.min_lrs = self._for_each("min_lr", min_lr)
        if arguments["mode"] not in ("min", "max"):
            raise ValueError(f"mode {arguments['mode']} is unknown!")
        if arguments["threshold_mode"] not in ("rel", "abs"):
            raise ValueError(f"threshold mode {arguments['threshold_mode']} is unknown!")
        vars(self).update(arguments)
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = self._now()
        self.best = math.inf if arguments["mode"] == "min" else -math.inf

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Compare the metric of one more epoch with the best one."""
        value = float(metrics)
        self.last_epoch += 1
        self.best, self.num_bad_epochs = (value, 0) if self._better(value) else (self.best, self.num_bad_epochs + 1)
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for i, group in enumerate(self.optimizer.param_groups):
                least = self.min_lrs[min(i, len(self.min_lrs) - 1)]  # of a group that was added later, the last one
                lower = max(float(group["lr"]) * self.factor, least)
                if float(group["lr"]) - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()

    def _better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        relative = self.threshold_mode == "rel"
        least = sign * self.best * (1 + sign * self.threshold) if relative else sign * self.best + self.threshold
        return bool(sign * value > least)


class SequentialLR(LRScheduler):
    """Schedulers one after another: each starts at its milestone, from the initial rates.

    ValueError unless there is one milestone fewer than schedulers, all of them of this optimizer.

    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, 0.5, 2)
    >>> falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule, rates = SequentialLR(optimizer, [warm, falling], [2]), []
    >>> for epoch in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    _held = ("optimizer", "_schedulers")
    _arguments = options("optimizer, schedulers, milestones, last_epoch=-1")

    def _start(self, last_epoch: int, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:  # type: ignore[override]
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"SequentialLR at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau) or self.optimizer is not scheduler.optimizer:
                raise ValueError(f"{type(scheduler).__name__} at index {i} is of another optimizer, or needs a metric")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(schedulers)} schedulers need one of milestones fewer, but got {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self._begin(last_epoch)

    def step(self) -> None:
        """A step of the scheduler of this epoch."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if self.last_epoch == (self._milestones[turn - 1] if turn else 0):
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"]
            scheduler._begin(-1)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


__getattr__, __dir__ = room("optim.lr_scheduler", __all__)
