"""Gradient descent and its variants: SGD, Adam, AdamW, Adagrad, RMSprop, Adadelta.

Every rule computes in the parameter's own format, with PyTorch's order of operations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager.optim.optimizer import (
    Array,
    DeclaredOptimizer,
    Group,
    State,
    average_squares,
    by_blocks,
    kept,
    lerp,
    number,
    root,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def _descend(rate: float, x: Array, grad: Array) -> None:
    x -= rate * grad


class SGD(DeclaredOptimizer):
    """Gradient descent: x - lr*g, with momentum (Nesterov's too), weight decay and dampening.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0., 0.], requires_grad=True)
    """

    hyperparameters = (
        "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None, "
        "differentiable=False, fused=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        if defaults["nesterov"] and (defaults["momentum"] <= 0 or defaults["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super()._start(params, **defaults)

    def _remembers(self, group: Group) -> bool:
        return bool(group["momentum"])

    def _update(self, x: Array, grad: Array, state: State, group: Group) -> None:
        rate, momentum, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
        if not momentum and not decay:
            by_blocks(partial(_descend, rate), x, grad)
            return
        first = bool(momentum) and state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = Tensor(np.empty_like(x))
        fresh = 1 - group["dampening"]

        def move(x: Array, grad: Array, *buffers: Array) -> None:
            if decay:
                grad = grad + decay * x
            for buffer in buffers:
                if first:
                    buffer[...] = grad
                else:
                    buffer *= momentum
                    buffer += fresh * grad
                grad = grad + momentum * buffer if group["nesterov"] else buffer
            x -= rate * grad

        by_blocks(move, x, grad, *([state["momentum_buffer"]._array] if momentum else []))


class Adam(DeclaredOptimizer):
    """Steps by the averages of gradients and of their squares (Kingma and Ba, 2015); `amsgrad` keeps the largest.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000], requires_grad=True)
    """

    hyperparameters = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, maximize=False, foreach=None, "
        "capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False"
    )

    def _memory(self, group: Group) -> dict[str, float]:
        return dict.fromkeys(("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])), 0.0)

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        mean, square, *largest = arrays
        one, two = group["betas"]
        lerp(mean, grad, 1 - one)
        average_squares(square, grad, two)
        for most in largest:
            square = np.maximum(most, square, out=most)
        away = root(square)
        away /= (1 - two**step) ** 0.5
        away += group["eps"]
        np.divide(mean, away, out=away)
        away *= rate / (1 - one**step)
        x -= away


class AdamW(Adam):
    """Adam whose weight decay does not pass through the averages (Loshchilov and Hutter, 2019)."""

    hyperparameters = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None, "
        "capturable=False, differentiable=False, fused=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults, decoupled_weight_decay=True)


class Adagrad(DeclaredOptimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011)."""

    hyperparameters = (
        "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False, "
        "differentiable=False, fused=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults)
        for group in self.param_groups:
            for x in group["params"]:
                number(self.state[x])
                kept(self.state[x], "sum", x._array, group["initial_accumulator_value"])

    def _memory(self, group: Group) -> dict[str, float]:
        return {"sum": 0.0}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        (total,) = arrays
        total += grad * grad
        x -= rate / (1 + (step - 1) * group["lr_decay"]) * (grad / (root(total) + group["eps"]))


class RMSprop(DeclaredOptimizer):
    """Steps divided by the root of a running mean of squared gradients (Hinton's lecture 6e)."""

    hyperparameters = (
        "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None, "
        "maximize=False, differentiable=False"
    )

    def _memory(self, group: Group) -> dict[str, float]:
        names = {"square_avg": True, "momentum_buffer": group["momentum"], "grad_avg": group["centered"]}
        return {name: 0.0 for name, there in names.items() if there}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        square, *more = arrays
        alpha, momentum = group["alpha"], group["momentum"]
        average_squares(square, grad, alpha)
        if group["centered"]:
            mean = more[-1]
            lerp(mean, grad, 1 - alpha)
            square = square - mean * mean
        away = grad / (root(square) + group["eps"])
        if momentum:
            buffer = more[0]
            buffer *= momentum
            buffer += away
            away = buffer
        x -= rate * away


class Adadelta(DeclaredOptimizer):
    """Steps in the ratio of two running means: of squared steps and of squared gradients (Zeiler, 2012)."""

    hyperparameters = (
        "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, maximize=False, capturable=False, "
        "differentiable=False"
    )

    def _memory(self, group: Group) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        square, moved = arrays
        rho, eps = group["rho"], group["eps"]
        average_squares(square, grad, rho)
        away = np.sqrt(moved + eps) / np.sqrt(square + eps) * grad
        average_squares(moved, away, rho)
        x -= rate * away
