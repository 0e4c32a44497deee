"""Gradient descent: SGD.

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
    Hyperparameter,
    State,
    at_least_zero,
    by_blocks,
    decayed,
    learning_rate,
    switches,
    weight_decay,
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
        learning_rate(1e-3),
        at_least_zero("momentum", 0),
        Hyperparameter("dampening", 0),
        weight_decay(),
        Hyperparameter("nesterov", False),
        *switches("maximize", "foreach", "differentiable", "fused"),
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        if defaults["nesterov"] and (defaults["momentum"] <= 0 or defaults["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super()._start(params, **defaults)

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
