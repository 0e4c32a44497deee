"""Losses: of numbers, of probabilities, of classes and of distances; the functions, then their layers.

`reduction` is "mean", "sum" or "none". A loss is one node where PyTorch's is one node, else the same several.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gradcli.eager._core.modes import no_grad, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import known
from gradcli.eager._engine.arguments import checked
from gradcli.eager._engine.numpy_kernels import in_range
from gradcli.eager._engine.record import declared
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops import tensor_reductions
from gradcli.eager._ops.elementwise import ROWS as POINTWISE
from gradcli.eager._ops.elementwise import where
from gradcli.eager._ops.table import LAYER, op
from gradcli.eager._ops.tensor_creation import from_numpy
from gradcli.eager._ops.tensor_reductions import norm
from gradcli.eager.nn._layer import Layer, combined, fused, layers, need_tensor, records, with_number
from gradcli.primitives.positions import take_along


def _refuse_grad(function: str, **weights: Tensor | None) -> None:
    """RuntimeError where a weight of a loss requires grad: nothing flows to it."""
    for name, x in weights.items():
        if x is not None and x.requires_grad:
            raise RuntimeError(f"{function} is not differentiable by its argument {name!r}, which requires grad")


def _check_reduction(reduction: str) -> None:
    """ValueError for what is not a way to reduce the losses of the entries."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: it is 'mean', 'sum' or 'none'")


def _reduced(loss: Tensor, reduction: str) -> Any:
    """The mean, the sum, or the losses as they are, each with its own node."""
    return loss if reduction == "none" else getattr(loss, reduction)()


def _reduced_in_graph(loss: Any, reduction: str) -> Any:
    """`_reduced` inside a formula."""
    return loss if reduction == "none" else declared(reduction, loss)


def _check(input: Tensor, target: Tensor, reduction: str) -> None:
    _check_reduction(reduction)
    if input.shape != target.shape:
        warn(f"target of size {target.shape} and input of {input.shape} are broadcast, likely to a wrong loss")


_mse, _huber = partial(declared, "mse_loss"), partial(declared, "huber_loss")


@op(node="MseLossBackward0", only=LAYER)
def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean of squared differences; UserWarning where the shapes differ.

    >>> mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _check(input, target, reduction)
    if input.dtype.kind < 2 and target.dtype.kind < 2:
        raise NotImplementedError(f"mse_loss is not implemented for {input.dtype}: it needs a floating-point dtype")
    return fused(_mse, (input, target), mse_loss.node, reduction=reduction)


@records(floating=True)
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean of absolute differences; UserWarning where the shapes differ."""
    _check(input, target, reduction)
    return _reduced((input - target).abs(), reduction)


def _smooth_l1(x: Any, y: Any, *, reduction: str, beta: float) -> Any:
    away = combined("sub", x, y)
    size = declared("abs", away)
    return _reduced_in_graph(declared("where", size < beta, away * away / (2 * beta), size - beta / 2), reduction)


@records("SmoothL1LossBackward0", floating=True)
def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squares near the target, absolute differences beyond beta."""
    _check(input, target, reduction)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return fused(_smooth_l1, (input, target), smooth_l1_loss.node, reduction=reduction, beta=beta)


@records("HuberLossBackward0", floating=True)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Squares near the target, straight lines beyond delta."""
    _check(input, target, reduction)
    return fused(_huber, (input, target), huber_loss.node, reduction=reduction, delta=delta)


def _bce(p: Any, y: Any, *weights: Any, reduction: str) -> Any:
    if not weights:
        return declared("binary_cross_entropy", p, y, reduction)
    return _reduced_in_graph(combined("mul", declared("binary_cross_entropy", p, y, "none"), weights[0]), reduction)


@records("BinaryCrossEntropyBackward0")
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of targets under probabilities; logarithms stop at -100.

    ValueError for different shapes, RuntimeError for an input outside [0, 1].
    """
    _check_reduction(reduction)
    if input.shape != target.shape:
        raise ValueError(f"the target has size {target.shape}, but the input {input.shape}: they must be the same")
    numbers = known(input)
    if numbers is not None and not ((numbers >= 0) & (numbers <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    _refuse_grad("binary_cross_entropy", weight=weight)
    weights = () if weight is None else (weight,)
    return fused(_bce, (input, target, *weights), binary_cross_entropy.node, edges=2, reduction=reduction)


def _bce_with_logits(z: Any, y: Any, *more: Any, reduction: str, present: tuple[bool, bool]) -> Any:
    waiting = iter(more)
    weight, positive = (next(waiting) if there else None for there in present)
    likelihood = declared("logsigmoid", z)
    if positive is not None:
        likelihood = likelihood * (combined("mul", y, positive - 1) + 1)
    loss = (1 - y) * z - likelihood
    return _reduced_in_graph(loss if weight is None else combined("mul", loss, weight), reduction)


@records("BinaryCrossEntropyWithLogitsBackward0")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow. ValueError for different shapes."""
    _check_reduction(reduction)
    if input.shape != target.shape:
        raise ValueError(f"the target size {target.shape} must be the same as the input size {input.shape}")
    _refuse_grad("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    more = tuple([x for x in (weight, pos_weight) if x is not None])
    present = (weight is not None, pos_weight is not None)
    node = binary_cross_entropy_with_logits.node
    return fused(_bce_with_logits, (input, target, *more), node, edges=2, reduction=reduction, present=present)


@checked
def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from a target distribution.

    UserWarning for reduction="mean", which also divides by the number of classes: "batchmean" does not.
    """
    if reduction == "mean":
        warn("reduction='mean' of kl_div divides by the number of classes too; 'batchmean' does not")
    if reduction != "batchmean":
        _check_reduction(reduction)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = POINTWISE["xlogy"](target, target) - target * input
    if reduction != "batchmean":
        return _reduced(loss, reduction)
    return loss.sum() / input.shape[0] if input.ndim else loss.sum()


def _nll(x: Any, target: Any, *weights: Any, ignore: int | None, reduction: str) -> Any:
    """Scores (N, C, ...) or (C,), numbers of classes (N, ...) or (), and perhaps a weight for each class."""
    original = tuple(target.shape)
    if len(x.shape) == 1:
        x, target = declared("reshape", x, shape=(1, *x.shape)), declared("reshape", target, shape=(1,))
    shape = tuple(target.shape)
    kept, at = None, target
    if ignore is not None:
        kept = declared("not_equal", target, ignore)
        at = target * declared("cast", kept, kind="int")
    picked = take_along(x, declared("reshape", at, shape=(*shape[:1], 1, *shape[1:])), axis=1 - len(x.shape))
    loss = -declared("reshape", picked, shape=shape)
    weight = None
    if weights:
        flat = declared("reshape", at, shape=(math.prod(shape),))
        weight = declared("reshape", take_along(weights[0], flat, axis=-1), shape=shape)
        loss = loss * weight
    if kept is not None:
        loss = declared("where", kept, loss, 0)
    if reduction == "none":
        return loss if shape == original else declared("reshape", loss, shape=original)
    total = declared("sum", loss)
    if reduction == "sum":
        return total
    if weight is None:
        if kept is None:
            return declared("mean", loss)
        weight = declared("cast", kept, kind="float")
    elif kept is not None:
        weight = declared("where", kept, weight, 0)
    return total / declared("sum", weight)


@records("NllLossBackward0 NllLoss2DBackward0")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """The mean of the negative log-probabilities of the classes, which stand in axis 1 (of a vector: in axis 0).

    `weight` has one entry for each class, and a mean is divided by the weights that count; targets that are
    `ignore_index` do not. IndexError for a class that does not exist, ValueError for sizes that do not fit.

    >>> nll_loss(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """
    return _of_classes(input, target, weight, ignore_index, reduction)


def _of_classes(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """`nll_loss` of tensors."""
    _check_reduction(reduction)
    ignore = ignore_index if _ignores(input, target, weight, ignore_index) else None
    _refuse_grad("nll_loss", weight=weight)
    weights = () if weight is None else (weight,)
    more: dict[str, Any] = {"ignore": ignore, "reduction": reduction, "edges": 1, "keep_dtype": (1,)}
    if input.ndim in (1, 2, 4):
        return fused(_nll, (input, target, *weights), nll_loss.row.nodes[input.ndim == 4], **more)
    planes = (input.shape[0], 1, -1) if 0 not in input.shape else (input.shape[0], 1, 0)
    scores = input.reshape(*input.shape[:2], *planes[1:])
    losses = fused(_nll, (scores, target.reshape(planes), *weights), nll_loss.row.nodes[1], **more)
    return losses.view(tuple(target.shape)) if reduction == "none" else losses


def _ignores(input: Tensor, target: Tensor, weight: Tensor | None, ignore: int) -> bool:
    """Whether a target is to be ignored. Raises the errors of `nll_loss` for dtypes, sizes and classes."""
    scores, labels = input._raw.shape, target._raw.shape
    if not scores:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"class numbers must have dtype torch.int64 or torch.uint8, but these have {target.dtype}")
    batch = scores[:1] if len(scores) > 1 else ()
    if labels != (*batch, *scores[2:]):
        error = RuntimeError if batch and labels[:1] == batch else ValueError
        raise error(f"a target of size {list(labels)} does not fit an input of size {list(scores)}")
    classes = scores[len(batch)]
    if weight is not None and weight._raw.shape != (classes,):
        raise RuntimeError(f"weight must have one entry for each of the {classes} classes, not {list(weight.shape)}")
    numbers = known(target)
    if numbers is None:
        return True
    if in_range(numbers, classes):
        return 0 <= ignore < classes and bool((numbers == ignore).any())
    wrong = numbers[((numbers < 0) | (numbers >= classes)) & (numbers != ignore)]
    if wrong.size:
        raise IndexError(f"Target {wrong.reshape(-1)[0]} is out of bounds: there are {classes} classes")
    return True


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of class numbers, or of class probabilities, under softmax of the scores.

    Built from the nodes that PyTorch builds it from: `NllLossBackward0` of `LogSoftmaxBackward0`. Errors as in
    `nll_loss`.

    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    need_tensor(input, "cross_entropy"), need_tensor(target, "cross_entropy")
    _check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0, but it is {label_smoothing}")
    axis = 0 if input.ndim == 1 else 1
    scores = tensor_reductions.log_softmax(input, axis)
    if target._raw.shape == input._raw.shape:
        return _of_probabilities(scores, target, axis, weight, reduction, label_smoothing)
    if not label_smoothing:
        return _of_classes(scores, target, weight, ignore_index, reduction)
    return _smoothed(scores, target, axis, weight, ignore_index, reduction, label_smoothing)


def _per_class(weight: Tensor, scores: Tensor, axis: int) -> Tensor:
    shape = [1] * scores.ndim
    shape[axis] = -1
    return weight.view(tuple(shape))


def _of_probabilities(
    scores: Tensor, target: Tensor, axis: int, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    if not target.dtype.is_floating_point:
        raise RuntimeError(f"class probabilities must be floats, but the target has dtype {target.dtype}")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / scores.shape[axis]
    loss = scores * target
    if weight is not None:
        loss = loss * _per_class(weight, scores, axis)
    total: Tensor = -loss.sum(axis) if reduction == "none" else -loss.sum()
    count = max(scores.numel() // scores.shape[axis], 1)
    return with_number("div", total, count) if reduction == "mean" else total


def _smoothed(
    scores: Tensor, target: Any, axis: int, weight: Any, ignore: int, reduction: str, smoothing: float
) -> Tensor:
    hard = nll_loss(scores, target, weight, ignore_index=ignore, reduction=reduction)
    spread = scores if weight is None else scores * _per_class(weight, scores, axis)
    ignored: Any = target == ignore
    soft = (-spread.sum(axis)).masked_fill(ignored, 0.0)
    if reduction != "none":
        soft = soft.sum()
    if reduction == "mean":
        kept = ignored.logical_not()
        if weight is None:
            count = kept.to(scores.dtype).sum()
        else:
            count = (weight.detach()[(target * kept).reshape(-1)] * kept.reshape(-1)).sum()
        soft = soft / count
    factors = ((hard, 1 - smoothing), (soft, smoothing / scores.shape[axis]))
    hard, soft = [with_number("mul", x, factor) for x, factor in factors]
    return hard + soft


@checked
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A row of zeros with a one at the class, for each whole number. RuntimeError for negative or large numbers."""
    numbers = known(tensor)
    if tensor.dtype.name != "int64":
        raise RuntimeError(f"one_hot is only applicable to index tensors of dtype torch.int64, not {tensor.dtype}")
    if num_classes < 0:
        if numbers is None:
            raise RuntimeError("one_hot of values that are not known yet needs num_classes")
        num_classes = int(numbers.max()) + 1 if numbers.size else 0
    if num_classes <= 0:
        raise RuntimeError("one_hot of no entries needs num_classes")
    if numbers is not None and numbers.size and not 0 <= numbers.min() <= numbers.max() < num_classes:
        raise RuntimeError(f"class values must be non-negative and smaller than num_classes, {num_classes}")
    return (tensor.unsqueeze(-1) == from_numpy(np.arange(num_classes))).long()


@records("NormBackward1")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norms of the differences of rows, each entry of a difference raised by eps."""
    away = with_number("add", x1 - x2, eps)
    return renamed(norm(away, p=p, dim=-1, keepdim=keepdim), pairwise_distance.node)


@checked
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """How much nearer than the margin the negative example is, compared with the positive one."""
    _check_reduction(reduction)
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    away = with_number("add", near, margin) - far
    return _reduced(away.clamp_min(0), reduction)


@checked
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, *, reduction: str = "mean"
) -> Tensor:
    """By how much less than the margin the first input is larger where the target is 1, the second where it is -1."""
    _check_reduction(reduction)
    away = with_number("add", -target * (input1 - input2), margin)
    return _reduced(away.clamp_min(0), reduction)


@checked
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, *, reduction: str = "mean"
) -> Tensor:
    """1 less the cosine of the angle between rows where the target is 1, its excess over the margin where it is -1."""
    _check_reduction(reduction)
    product, *squares = [(x * y).sum(-1) for x, y in ((input1, input2), (input1, input1), (input2, input2))]
    first, second = [with_number("add", x, 1e-12) for x in squares]
    cosine = product / (first * second).sqrt()
    labels: Any = target
    zeros, excess = cosine.new_zeros(cosine.shape), with_number("sub", cosine, margin).clamp_min(0)
    losses = where(labels == 1, cosine.new_ones(()) - cosine, zeros) + where(labels == -1, excess, zeros)
    return _reduced(losses, reduction)


@checked
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis divided by their p-norm, or by eps where it is smaller."""
    return input / norm(input, p, dim, True).clamp_min(eps).expand_as(input)


@checked
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis."""
    directions = []
    for x in (x1, x2):
        size = norm(x, 2, dim, True).clone()
        with no_grad():
            size.clamp_(min=eps)
        directions.append(x / size)
    return (directions[0] * directions[1]).sum(dim)


class _Loss(Layer):
    _shown = ""


_losses, _distances = partial(layers, base=_Loss), partial(layers, inputs=2, shown="")
globals().update(
    _losses({"MSELoss": mse_loss, "L1Loss": l1_loss, "SmoothL1Loss": smooth_l1_loss, "KLDivLoss": kl_div}, inputs=2),
    **_losses({"HuberLoss": huber_loss, "NLLLoss": nll_loss, "CrossEntropyLoss": cross_entropy}, inputs=2),
    **_losses({"BCELoss": binary_cross_entropy, "BCEWithLogitsLoss": binary_cross_entropy_with_logits}, inputs=2),
    **_losses({"TripletMarginLoss": triplet_margin_loss, "MarginRankingLoss": margin_ranking_loss}, inputs=3),
    **_losses({"CosineEmbeddingLoss": cosine_embedding_loss}, inputs=3),
    **_distances({"CosineSimilarity": cosine_similarity, "PairwiseDistance": pairwise_distance}),
)
