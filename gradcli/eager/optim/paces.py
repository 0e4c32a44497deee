"""A parameter and its gradient go in, its next value is written: rules whose step has a length of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.memory import Array, State, by_blocks, counted, decayed, kept, number
from gradcli.eager.optim.optimizer import Optimizer, need, need_rate

if TYPE_CHECKING:
    from collections.abc import Iterable


class Rprop(Optimizer):
    """Steps by the sign of the gradient: longer while an entry keeps it, shorter where it changes, and none in the
    step after (Riedmiller and Braun, 1993).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        need_rate(lr)
        need(0 < etas[0] < 1 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        counted(state)
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]

        def move(x: Array, grad: Array, before: Array, length: Array) -> None:
            agreed = grad * before
            length *= np.where(agreed > 0, longer, np.where(agreed < 0, shorter, 1)).astype(length.dtype)
            np.clip(length, least, most, out=length)
            grad = np.where(agreed < 0, grad.dtype.type(0), grad)
            x -= np.sign(grad) * length
            before[...] = grad

        by_blocks(move, x, grad, kept(state, "prev", x), kept(state, "step_size", x, float(group["lr"])))


class ASGD(Optimizer):
    """Gradient descent in steps that become shorter; `ax` holds the average of the parameters on the way (Polyak and
    Juditsky, 1992).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        need_rate(lr)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step, rate, decay, shrink = counted(state), float(group["lr"]), group["weight_decay"], group["lambd"]
        pace, weight = number(state, "eta", rate), number(state, "mu", 1.0)
        length, share = float(pace), float(weight)

        def move(x: Array, grad: Array, mean: Array) -> None:
            grad = decayed(grad, x, decay)
            x *= 1 - shrink * length
            x -= length * grad
            if share == 1:
                mean[...] = x
            else:
                mean += (x - mean) * share

        by_blocks(move, x, grad, kept(state, "ax", x))
        pace[...] = rate / (1 + shrink * rate * step) ** group["alpha"]
        weight[...] = 1 / max(1, step - group["t0"])
