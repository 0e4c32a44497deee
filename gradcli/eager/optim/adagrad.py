"""Steps scaled entry by entry by squared gradients, without their mean: Adagrad, RMSprop, Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.optimizer import (
    Array,
    DeclaredOptimizer,
    Hyperparameter,
    State,
    at_least_zero,
    average_squares,
    by_blocks,
    counted,
    decayed,
    kept,
    learning_rate,
    lerp,
    number,
    root,
    small,
    switches,
    weight_decay,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Adagrad(DeclaredOptimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011)."""

    hyperparameters = (
        learning_rate(1e-2),
        at_least_zero("lr_decay", 0),
        weight_decay(),
        at_least_zero("initial_accumulator_value", 0),
        small(1e-10),
        *switches("foreach", keyword_only=False),
        *switches("maximize", "differentiable", "fused"),
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults)
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


class RMSprop(DeclaredOptimizer):
    """Steps divided by the root of a running mean of squared gradients (Hinton's lecture 6e)."""

    hyperparameters = (
        learning_rate(1e-2),
        at_least_zero("alpha", 0.99),
        small(1e-8),
        weight_decay(),
        at_least_zero("momentum", 0),
        Hyperparameter("centered", False),
        *switches("capturable", "foreach", "maximize", "differentiable", keyword_only=False),
    )

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


class Adadelta(DeclaredOptimizer):
    """Steps in the ratio of two running means: of squared steps and of squared gradients (Zeiler, 2012)."""

    hyperparameters = (
        learning_rate(1.0),
        Hyperparameter("rho", 0.9, lambda rho: 0 <= rho <= 1),
        small(1e-6),
        weight_decay(),
        *switches("foreach", keyword_only=False),
        *switches("maximize", "capturable", "differentiable"),
    )

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
