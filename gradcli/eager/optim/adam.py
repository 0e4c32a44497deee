"""Adam and its variants: AdamW, NAdam, RAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.optim.optimizer import (
    BETAS,
    Array,
    DeclaredOptimizer,
    Hyperparameter,
    State,
    at_least_zero,
    average_squares,
    averages,
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


class NAdam(DeclaredOptimizer):
    """Adam with Nesterov's momentum, which grows with the steps (Dozat, 2016).

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944], requires_grad=True)
    """

    hyperparameters = (
        learning_rate(2e-3),
        BETAS,
        small(1e-8),
        weight_decay(),
        at_least_zero("momentum_decay", 4e-3),
        Hyperparameter("decoupled_weight_decay", False),
        *switches("maximize", "foreach", "capturable", "differentiable"),
    )

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step, product = counted(state), number(state, "mu_product", 1.0)
        rate, (one, two), decay, eps = float(group["lr"]), group["betas"], group["weight_decay"], group["eps"]
        apart, slower = group["decoupled_weight_decay"], group["momentum_decay"]
        now, after = (one * (1.0 - 0.5 * 0.96 ** (at * slower)) for at in (step, step + 1))
        product *= now
        fresh = rate * (1.0 - now) / (1.0 - float(product))
        onward = rate * after / (1.0 - float(product) * after)
        spread = 1 - two**step

        def move(x: Array, grad: Array, mean: Array, square: Array) -> None:
            grad = decayed(grad, x, decay, rate if apart else None)
            lerp(mean, grad, 1 - one)
            average_squares(square, grad, two)
            away = root(square / spread)
            away += eps
            x -= fresh * (grad / away)
            x -= onward * (mean / away)

        by_blocks(move, x, grad, *averages(state, x))


class RAdam(DeclaredOptimizer):
    """Adam that trusts its mean of squares only once it knows enough of them (Liu et al., 2020)."""

    hyperparameters = (
        learning_rate(1e-3),
        BETAS,
        small(1e-8),
        weight_decay(),
        Hyperparameter("decoupled_weight_decay", False),
        *switches("maximize", "foreach", "capturable", "differentiable"),
    )

    def _update(self, x: Array, grad: Array, state: State, group: dict[str, Any]) -> None:
        step = counted(state)
        rate, (one, two), decay, eps = float(group["lr"]), group["betas"], group["weight_decay"], group["eps"]
        apart = group["decoupled_weight_decay"]
        known = 1 - two**step
        most = 2 / (1 - two) - 1  # how many gradients the mean of squares is worth in the end
        worth = most - 2 * step * two**step / known
        length = rate / (1 - one**step)
        trusted = worth > 5.0
        if trusted:
            length *= ((worth - 4) * (worth - 2) * most / ((most - 4) * (most - 2) * worth)) ** 0.5 * known**0.5

        def move(x: Array, grad: Array, mean: Array, square: Array) -> None:
            grad = decayed(grad, x, decay, rate if apart else None)
            lerp(mean, grad, 1 - one)
            average_squares(square, grad, two)
            x -= length * (mean / (root(square) + eps) if trusted else mean)

        by_blocks(move, x, grad, *averages(state, x))
