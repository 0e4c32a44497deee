"""A parameter, its gradient and two running means go in, its next value is written: variants of Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.optim.memory import (
    Array,
    State,
    average_squares,
    averages,
    by_blocks,
    counted,
    decayed,
    lerp,
    number,
    root,
)
from gradcli.eager.optim.optimizer import Optimizer, need, need_betas, need_rate

if TYPE_CHECKING:
    from collections.abc import Iterable


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, which grows with the steps (Dozat, 2016).

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        need_rate(lr)
        need(eps >= 0, "epsilon value", eps)
        need_betas(betas)
        need(weight_decay >= 0, "weight_decay value", weight_decay)
        need(momentum_decay >= 0, "momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

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


class RAdam(Optimizer):
    """Adam that trusts its mean of squares only once it knows enough of them (Liu et al., 2020)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

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
