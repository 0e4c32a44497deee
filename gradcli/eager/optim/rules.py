"""A parameter, its gradient and what is remembered go in, its next value is written: gradient descent and Adam.

Every rule computes in the parameter's own format, with PyTorch's order of operations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.memory import (
    Array,
    State,
    average_squares,
    averages,
    by_blocks,
    counted,
    decayed,
    kept,
    lerp,
    root,
)
from gradcli.eager.optim.optimizer import Optimizer, need, need_betas, need_rate
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable


def _descend(rate: float, x: Array, grad: Array) -> None:
    x -= rate * grad


class SGD(Optimizer):
    """Gradient descent: x - lr*g, with momentum (Nesterov's too), weight decay and dampening.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        need_rate(lr)
        need(momentum >= 0, "momentum value", momentum)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _remembers(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"])

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        rate, momentum, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
        if not momentum and not decay:
            by_blocks(partial(_descend, rate), x, grad)
            return
        first = bool(momentum) and state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = Tensor(np.empty_like(x))
        fresh = 1 - group["dampening"]

        def move(x: Array, grad: Array, *buffers: Array) -> None:
            grad = decayed(grad, x, decay)
            for buffer in buffers:
                if first:
                    buffer[...] = grad
                else:
                    buffer *= momentum
                    buffer += fresh * grad
                grad = grad + momentum * buffer if group["nesterov"] else buffer
            x -= rate * grad

        by_blocks(move, x, grad, *([state["momentum_buffer"]._array] if momentum else []))


class Adam(Optimizer):
    """Steps by the averages of gradients and of their squares (Kingma and Ba, 2015); `amsgrad` keeps the largest.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
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
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step = counted(state)
        arrays = averages(state, x)
        if group["amsgrad"]:
            arrays.append(kept(state, "max_exp_avg_sq", x))
        rate, (one, two), decay, eps = float(group["lr"]), group["betas"], group["weight_decay"], group["eps"]
        apart = group["decoupled_weight_decay"]
        length, spread = rate / (1 - one**step), (1 - two**step) ** 0.5

        def move(x: Array, grad: Array, mean: Array, square: Array, *largest: Array) -> None:
            if decay:
                grad = decayed(grad, x, decay, rate if apart else None)
            lerp(mean, grad, 1 - one)
            average_squares(square, grad, two)
            for most in largest:
                square = np.maximum(most, square, out=most)
            away = root(square)
            away /= spread
            away += eps
            np.divide(mean, away, out=away)
            away *= length
            x -= away

        by_blocks(move, x, grad, *arrays)


class AdamW(Adam):
    """Adam whose weight decay does not pass through the averages (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **more, decoupled_weight_decay=True)
