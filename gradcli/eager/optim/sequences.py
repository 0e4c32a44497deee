"""Schedulers of one optimizer go in; they take turns, or all of them change the rates at every step."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.plateaus import ReduceLROnPlateau
from gradcli.eager.optim.schedules import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.optim.optimizer import Optimizer


class _Several(LRScheduler):
    """Schedulers of one optimizer, and a state of all of them."""

    _held = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Keep them. ValueError for none, for one on plateaus and for several optimizers, TypeError for others."""
        title = type(self).__name__
        if len(schedulers) < 1:
            to_do = " to be chained" if isinstance(self, ChainedScheduler) else ""
            raise ValueError(f"{title} expects at least one scheduler{to_do}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, one in enumerate(schedulers):
            if not hasattr(one, "optimizer"):
                raise TypeError(f"{title} at index {i} should have `optimizer` as its attribute.")
            if isinstance(one, ReduceLROnPlateau):
                raise ValueError(
                    f"{title} does not support `ReduceLROnPlateau` scheduler, which needs a metric at every step, but "
                    f"got one at index {i}"
                )
            if optimizer is not one.optimizer:
                raise ValueError(
                    f"{title} expects all schedulers to belong to the same optimizer, but {type(one).__name__} at "
                    f"index {i} belongs to another one"
                )
        self._schedulers, self.optimizer = schedulers, optimizer

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            one.load_state_dict(state)


class SequentialLR(_Several):
    """Schedulers that take turns: each one from its milestone on, from the first rates.

    ValueError unless there is one milestone fewer than schedulers, all of them of this optimizer.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import optim
    >>> optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> warm = optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2)
    >>> falling = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule, rates = SequentialLR(optimizer, [warm, falling], [2]), []
    >>> for epoch in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._take(schedulers, optimizer)
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


class ChainedScheduler(_Several):
    """Schedulers that all change the rates at every step, one after the other.

    ValueError for none of them, and for those of several optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._now()

    def step(self) -> None:  # type: ignore[override]
        """A step of every scheduler."""
        for one in self._schedulers:
            one.step()
        self._last_lr = self._now()
