"""Adam, and AdamW, whose weight decay stands apart from the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.optimizer import (
    BETAS,
    Array,
    DeclaredOptimizer,
    Hyperparameter,
    State,
    average_squares,
    averages,
    by_blocks,
    counted,
    decayed,
    kept,
    learning_rate,
    lerp,
    root,
    small,
    switches,
    weight_decay,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


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
        learning_rate(1e-3),
        BETAS,
        small(1e-8),
        weight_decay(),
        Hyperparameter("amsgrad", False),
        *switches("maximize", "foreach", "capturable", "differentiable", "fused"),
        Hyperparameter("decoupled_weight_decay", False, keyword_only=True),
    )

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

    hyperparameters = (*Adam.hyperparameters[:3], weight_decay(1e-2), *Adam.hyperparameters[4:-1])

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults, decoupled_weight_decay=True)
