"""Scores of classes and targets go in, what the scores lack to a margin comes out: hinge losses of several classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager.nn.functional.activations import logsigmoid
from gradcli.eager.nn.functional.fusing import declared, fused, reduced, reduction_of, refuse_grad
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import known


def _multi_margin(x: Any, weights: Any, at: Any, other: Any, *, p: int, margin: float, reduction: str) -> Any:
    """Rows of scores, for each row the weight of its class, the class itself, and which classes are others."""
    from gradcli.primitives.positions import take_along

    shape = tuple(x.shape)
    right = declared("broadcast", take_along(x, at, axis=-1), shape=shape)
    lack = declared("relu", margin - right + x)
    lack = lack * lack if p == 2 else lack
    lack = declared("where", other, lack * declared("broadcast", weights, shape=shape), 0)
    loss = declared("sum", lack, axis=-1) / shape[-1]
    if reduction == "row":
        return declared("reshape", loss, shape=(1,))
    return loss if reduction == "none" else declared(reduction, loss)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of max(0, margin - score of the right one + score of the other one)**p.

    `weight` has one entry for each class. ValueError for p other than 1 and 2, RuntimeError for sizes that do not fit
    and for classes that do not exist.

    >>> import gradcli.eager as torch
    >>> multi_margin_loss(torch.tensor([[0.5, 1.0, 0.0, 2.5]]), torch.tensor([1]))
    tensor(0.7500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    refuse_grad("multi_margin_loss", weight=weight)
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    rows = input.shape[0] if input.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError(f"inconsistent target size, expected [{rows}] but got {list(target.shape)}")
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long of the target, but found {target.dtype}")
    classes = input.shape[-1]
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    numbers = known(target)
    if numbers is not None and numbers.size and (numbers.min() < 0 or numbers.max() >= classes):
        raise RuntimeError("target out of range")
    at = target._array.reshape(rows, 1)
    scales = np.ones((rows, 1), input.dtype.np) if weight is None else weight._array[at]
    other = np.arange(classes) != at
    fixed = [scales, at, other]
    if input.ndim == 1:
        fixed = [one[0] for one in fixed]
        reduction = "row" if target.ndim and reduction == "none" else "none"
    return fused(
        _multi_margin,
        (input, *map(Tensor, fixed)),
        "MultiMarginLossBackward0",
        edges=1,
        apart=(2, 3),
        p=p,
        margin=margin,
        reduction=reduction,
    )


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the last axis of the cross entropy of each class, for targets 0 and 1."""
    reduction = reduction_of(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)
