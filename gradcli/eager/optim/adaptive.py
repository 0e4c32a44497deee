"""A parameter, its gradient and what is remembered go in, its next value is written: rules that scale each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.memory import Array, State, counted, decayed, kept, lerp
from gradcli.eager.optim.optimizer import Optimizer, need
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        need(lr >= 0, "learning rate", lr)
        need(lr_decay >= 0, "lr_decay value", lr_decay)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        need(initial_accumulator_value >= 0, "initial_accumulator_value value", initial_accumulator_value)
        need(eps >= 0, "epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for x in group["params"]:
                start = np.full_like(x._array, group["initial_accumulator_value"])
                self.state[x] = {"step": Tensor(np.zeros((), np.float32)), "sum": Tensor(start)}

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step = counted(state)
        grad = decayed(grad, x, group["weight_decay"])
        total = kept(state, "sum", x)
        total += grad * grad
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        x -= rate * (grad / (np.sqrt(total) + group["eps"]))


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients (Hinton's lecture 6e)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        need(lr >= 0, "learning rate", lr)
        need(eps >= 0, "epsilon value", eps)
        need(momentum >= 0, "momentum value", momentum)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        need(alpha >= 0, "alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        counted(state)
        grad = decayed(grad, x, group["weight_decay"])
        square, alpha = kept(state, "square_avg", x), group["alpha"]
        buffer = kept(state, "momentum_buffer", x) if group["momentum"] else None
        square *= alpha
        square += (1 - alpha) * (grad * grad)
        spread = square
        if group["centered"]:
            mean = kept(state, "grad_avg", x)
            lerp(mean, grad, 1 - alpha)
            spread = square - mean * mean
        step = grad / (np.sqrt(spread) + group["eps"])
        if buffer is not None:
            buffer *= group["momentum"]
            buffer += step
            step = buffer
        x -= float(group["lr"]) * step


class Adadelta(Optimizer):
    """Steps in the ratio of two running means: of squared steps and of squared gradients (Zeiler, 2012)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        need(lr >= 0, "learning rate", lr)
        need(0 <= rho <= 1, "rho value", rho)
        need(eps >= 0, "epsilon value", eps)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        counted(state)
        grad = decayed(grad, x, group["weight_decay"])
        square, moved = kept(state, "square_avg", x), kept(state, "acc_delta", x)
        rho, eps = group["rho"], group["eps"]
        square *= rho
        square += (1 - rho) * (grad * grad)
        step = np.sqrt(moved + eps) / np.sqrt(square + eps) * grad
        moved *= rho
        moved += (1 - rho) * (step * step)
        x -= float(group["lr"]) * step


class Adamax(Optimizer):
    """Adam with the largest gradient so far in place of squares (Kingma and Ba, 2015, section 7)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        need(lr >= 0, "learning rate", lr)
        need(eps >= 0, "epsilon value", eps)
        for i, beta in enumerate(betas):
            need(0 <= beta < 1, f"beta parameter at index {i}", beta)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step = counted(state)
        grad = decayed(grad, x, group["weight_decay"])
        mean, largest = kept(state, "exp_avg", x), kept(state, "exp_inf", x)
        one, two = group["betas"]
        lerp(mean, grad, 1 - one)
        np.maximum(largest * two, np.abs(grad) + group["eps"], out=largest)
        x -= (float(group["lr"]) / (1 - one**step)) * (mean / largest)
