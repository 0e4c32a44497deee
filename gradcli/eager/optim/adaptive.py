"""A parameter, its gradient and what is remembered go in, its next value is written: rules that scale each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.memory import (
    Array,
    State,
    average_squares,
    by_blocks,
    counted,
    decayed,
    kept,
    lerp,
    number,
    root,
)
from gradcli.eager.optim.optimizer import Optimizer, need, need_betas, need_rate

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
        need_rate(lr)
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
                number(self.state[x], "step", 0)
                kept(self.state[x], "sum", x._array, group["initial_accumulator_value"])

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step = counted(state)
        rate, decay, eps = (
            float(group["lr"]) / (1 + (step - 1) * group["lr_decay"]),
            group["weight_decay"],
            group["eps"],
        )

        def move(x: Array, grad: Array, total: Array) -> None:
            grad = decayed(grad, x, decay)
            total += grad * grad
            x -= rate * (grad / (root(total) + eps))

        by_blocks(move, x, grad, kept(state, "sum", x))


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
        need_rate(lr)
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
        rate, decay, alpha, eps = float(group["lr"]), group["weight_decay"], group["alpha"], group["eps"]
        momentum, centered = group["momentum"], group["centered"]
        names = ["square_avg", *(["momentum_buffer"] if momentum else []), *(["grad_avg"] if centered else [])]

        def move(x: Array, grad: Array, square: Array, *more: Array) -> None:
            grad = decayed(grad, x, decay)
            average_squares(square, grad, alpha)
            if centered:
                mean = more[-1]
                lerp(mean, grad, 1 - alpha)
                square = square - mean * mean
            step = grad / (root(square) + eps)
            if momentum:
                buffer = more[0]
                buffer *= momentum
                buffer += step
                step = buffer
            x -= rate * step

        by_blocks(move, x, grad, *[kept(state, name, x) for name in names])


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
        need_rate(lr)
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
        rate, decay, rho, eps = float(group["lr"]), group["weight_decay"], group["rho"], group["eps"]

        def move(x: Array, grad: Array, square: Array, moved: Array) -> None:
            grad = decayed(grad, x, decay)
            average_squares(square, grad, rho)
            step = np.sqrt(moved + eps) / np.sqrt(square + eps) * grad
            average_squares(moved, step, rho)
            x -= rate * step

        by_blocks(move, x, grad, kept(state, "square_avg", x), kept(state, "acc_delta", x))


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
        need_rate(lr)
        need(eps >= 0, "epsilon value", eps)
        need_betas(betas)
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
        (one, two), decay, eps = group["betas"], group["weight_decay"], group["eps"]
        length = float(group["lr"]) / (1 - one**step)

        def move(x: Array, grad: Array, mean: Array, largest: Array) -> None:
            grad = decayed(grad, x, decay)
            lerp(mean, grad, 1 - one)
            np.maximum(largest * two, np.abs(grad) + eps, out=largest)
            x -= length * (mean / largest)

        by_blocks(move, x, grad, kept(state, "exp_avg", x), kept(state, "exp_inf", x))
