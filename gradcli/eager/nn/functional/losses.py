"""Predictions and targets go in, how far they are apart comes out: numbers, probabilities; classes stand beside this.

`reduction` is "mean", "sum" or "none". A loss is one node where PyTorch's is one node, else the same several.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.eager.nn.functional.fusing import declared, fused, reduced, reduction_of, refuse_grad, shifted
from gradcli.eager.pointwise import TABLE as POINTWISE
from gradcli.eager.recipes import again
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import known
from gradcli.primitives.broadcasting import together


def _all(loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return declared("mean" if reduction == "mean" else "sum", loss)


def _compared(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warn(
            f"the target has size {target.shape} and the input {input.shape}: they are broadcast, which likely gives "
            "a wrong loss",
            UserWarning,
        )


def _mse(x: Any, y: Any, *, reduction: str) -> Any:
    one, other = together(x, y, verb="compare")
    away = one - other
    return _all(away * away, reduction)


def _mse_again(input: Any, target: Any, reduction: str) -> Tensor | None:
    """The loss of tensors of one shape and format, where it was taken of such before."""
    if not isinstance(input, Tensor) or not isinstance(target, Tensor) or input._raw.shape != target._raw.shape:
        return None
    return again((_mse, "MseLossBackward0", None, False, reduction), input, target)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of squared differences; UserWarning where the shapes differ.

    >>> import gradcli.eager as torch
    >>> mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    if size_average is None and reduce is None and weight is None and reduction != "none":
        done = _mse_again(input, target, reduction)
        if done is not None:
            return done
    reduction = reduction_of(reduction, size_average, reduce)
    _compared(input, target)
    if weight is not None:
        return _weighted((input - target) ** 2, weight, reduction)
    if input.dtype.kind < 2 and target.dtype.kind < 2:
        raise NotImplementedError(f"mse_loss is not implemented for {input.dtype}: it needs numbers with a point")
    return fused(_mse, (input, target), "MseLossBackward0", reduction=reduction)


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    found: Tensor = loss * weight
    if reduction == "none":
        return found
    total: Tensor = found.sum()
    return total if reduction == "sum" else total / weight.sum()


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of absolute differences; UserWarning where the shapes differ."""
    reduction = reduction_of(reduction, size_average, reduce)
    _compared(input, target)
    loss = (input - target).abs()
    return reduced(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


def _smooth_l1(x: Any, y: Any, *, reduction: str, beta: float) -> Any:
    one, other = together(x, y, verb="compare")
    away = one - other
    size = declared("abs", away)
    return _all(declared("where", size < beta, away * away / (2 * beta), size - beta / 2), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squares near the target, absolute differences beyond beta. RuntimeError for a negative beta."""
    reduction = reduction_of(reduction, size_average, reduce)
    _compared(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return fused(_smooth_l1, (input, target), "SmoothL1LossBackward0", reduction=reduction, beta=beta)


def _huber(x: Any, y: Any, *, reduction: str, delta: float) -> Any:
    return declared("huber_loss", x, y, reduction, delta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squares near the target, straight lines beyond delta. RuntimeError unless delta is positive."""
    reduction = reduction_of(reduction)
    _compared(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta")
    if weight is not None:
        loss = fused(_huber, (input, target), "HuberLossBackward0", reduction="none", delta=delta)
        return _weighted(loss, weight, reduction)
    return fused(_huber, (input, target), "HuberLossBackward0", reduction=reduction, delta=delta)


# --- probabilities -----------------------------------------------------------------------------------------------


def _bce(p: Any, y: Any, weight: Any, *, reduction: str) -> Any:
    loss = declared("binary_cross_entropy", p, y, "none")
    return _all(_times(loss, weight), reduction)


def _times(x: Any, weight: Any) -> Any:
    one, other = together(x, weight, verb="multiply")
    return one * other


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of targets under probabilities; logarithms stop at -100.

    ValueError for different shapes, RuntimeError for an input outside [0, 1].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(f"the target has size {target.shape}, but the input {input.shape}: they must be the same")
    if not _in_unit(known(input)):
        raise RuntimeError("all elements of input should be between 0 and 1")
    refuse_grad("binary_cross_entropy", weight=weight)
    if weight is None:
        return fused(_plain_bce, (input, target), "BinaryCrossEntropyBackward0", reduction=reduction)
    return fused(_bce, (input, target, weight), "BinaryCrossEntropyBackward0", edges=2, reduction=reduction)


def _in_unit(p: Any) -> bool:
    return p is None or bool(((p >= 0) & (p <= 1)).all())


def _plain_bce(p: Any, y: Any, *, reduction: str) -> Any:
    return declared("binary_cross_entropy", p, y, reduction)


def _bce_with_logits(z: Any, y: Any, *more: Any, reduction: str, given: tuple[bool, bool]) -> Any:
    waiting = list(more)
    weight = waiting.pop(0) if given[0] else None
    positive = waiting.pop(0) if given[1] else None
    likelihood = declared("logsigmoid", z)
    if positive is not None:
        likelihood = likelihood * (_times(y, positive - 1) + 1)
    loss = (1 - y) * z - likelihood
    return _all(loss if weight is None else _times(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow. ValueError for different shapes."""
    reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(f"the target size {target.shape} must be the same as the input size {input.shape}")
    refuse_grad("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    more = tuple([x for x in (weight, pos_weight) if x is not None])
    given = (weight is not None, pos_weight is not None)
    name = "BinaryCrossEntropyWithLogitsBackward0"
    return fused(_bce_with_logits, (input, target, *more), name, edges=2, reduction=reduction, given=given)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from a target distribution.

    UserWarning for reduction="mean", which also divides by the number of classes: "batchmean" does not.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warn(
            "reduction='mean' of kl_div divides by the number of classes too; 'batchmean' is the divergence",
            UserWarning,
        )
    if reduction != "batchmean":
        reduction = reduction_of(reduction, size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = POINTWISE["xlogy"](target, target) - target * input
    if reduction == "batchmean":
        total: Tensor = loss.sum()
        return total / input.shape[0] if input.ndim else total
    return reduced(loss, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """How far the order of two scores is from the one that the target (1 or -1) wants."""
    away = -target * (input1 - input2)
    if margin:
        away = shifted(away, margin)
    return reduced(away.clamp_min(0), reduction_of(reduction))


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of counts under a Poisson distribution, without the constant term."""
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    return reduced(loss, reduction_of(reduction))


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of targets under normal distributions; `full` adds the constant term."""
    from gradcli.eager.factory import full_like
    from gradcli.eager.modes import no_grad

    var = var if hasattr(var, "requires_grad") else full_like(input, var)
    if bool(np.any(var.detach()._array < 0)):
        raise ValueError("var has a negative entry")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction_of(reduction))
