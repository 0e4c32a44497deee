"""Gradient descent and its variants whose steps have a length of their own: SGD, ASGD, Rprop.

Every rule computes in the parameter's own format, with PyTorch's order of operations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager.optim.optimizer import (
    DeclaredOptimizer,
    Hyperparameter,
    at_least_zero,
    learning_rate,
    switches,
    weight_decay,
)
from gradcli.eager.optim.update import (
    Array,
    State,
    by_blocks,
    counted,
    decayed,
    kept,
    number,
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


class ASGD(DeclaredOptimizer):
    """Gradient descent in steps that become shorter; `ax` holds the average of the parameters on the way (Polyak and
    Juditsky, 1992).
    """

    hyperparameters = (
        learning_rate(1e-2),
        Hyperparameter("lambd", 1e-4),
        Hyperparameter("alpha", 0.75),
        Hyperparameter("t0", 1e6),
        weight_decay(),
        *switches("foreach", "maximize", "differentiable", "capturable", keyword_only=False),
    )

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


class Rprop(DeclaredOptimizer):
    """Steps by the sign of the gradient: longer while an entry keeps it, shorter where it changes, and none in the
    step after (Riedmiller and Braun, 1993).
    """

    hyperparameters = (
        learning_rate(1e-2),
        Hyperparameter("etas", (0.5, 1.2), lambda etas: 0 < etas[0] < 1 < etas[1], "eta values"),
        Hyperparameter("step_sizes", (1e-6, 50)),
        *switches("capturable", "foreach", "maximize", "differentiable"),
    )

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
