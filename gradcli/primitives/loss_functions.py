"""Loss functions by PyTorch's definitions; `reduction` is "mean" (the default), "sum" or "none".

Class labels are data: whole numbers, checked when the program runs. All of these expand to simpler operations.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed, Interval
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import composite
from gradcli.graph.types import size_of
from gradcli.primitives.activations import logsigmoid
from gradcli.primitives.axes import described, filled, positions_of, require_entries, require_option, reshaped
from gradcli.primitives.broadcasting import together, unequal
from gradcli.primitives.comparison import where
from gradcli.primitives.composites import log_softmax, norm
from gradcli.primitives.exponential import exp, log, xlogy
from gradcli.primitives.movement import sum_
from gradcli.primitives.positions import take_along
from gradcli.primitives.reductions import average
from gradcli.primitives.size_arguments import normalize_axis
from gradcli.primitives.steps import abs_, maximum

REDUCTIONS = ("mean", "sum", "none")
_PAIR = [(Closed(-2, 2), (4,)), (Closed(-2, 2), (4,))]
_UNIT = Interval(0.0, 1.0)


def _reduced(loss: Any, reduction: str, function: str, count: int | None = None) -> Any:
    """All entries averaged, summed or left; `count` replaces their number in an average."""
    require_option(reduction, REDUCTIONS, "reduction", function)
    if reduction == "none":
        return loss
    axes = tuple(range(-len(loss.shape), 0))
    if reduction == "mean":
        return average(loss, axes) if count is None else _total(loss, axes) / count
    return _total(loss, axes)


def _total(loss: Any, axes: tuple[int, ...]) -> Any:
    return sum_(loss, axis=axes) if axes else loss


def _distances(input: Any, target: Any) -> tuple[Any, Any]:
    """The distances of complex numbers as an input, and as its target 0."""
    x, y = together(input, target, verb="compare")
    return abs_(x - y), filled(x, 0, x.shape)


# --- regression ---------------------------------------------------------------------------------------------------


def _mse(input: Any, target: Any, reduction: str = "mean") -> Any:
    x, y = together(input, target, verb="compare")
    away = x - y
    return _reduced(away * away, reduction, "mse_loss")


mse_loss = composite(
    "mse_loss",
    "The mean of squared differences.",
    definition=_mse,
    static=("reduction",),
    domain=[REAL, REAL],
    sample=_PAIR,
    formula="mean((input - target)**2)",
    examples=[("mse_loss([1, 2], [1, 4])", 2)],
    plane=lambda input, target, reduction="mean": _mse(*_distances(input, target), reduction),
    node="MseLossBackward0",
)


def _l1(input: Any, target: Any, reduction: str = "mean") -> Any:
    x, y = together(input, target, verb="compare")
    return _reduced(abs_(x - y), reduction, "l1_loss")


l1_loss = composite(
    "l1_loss",
    "The mean of absolute differences.",
    definition=_l1,
    static=("reduction",),
    domain=[REAL, REAL],
    sample=_PAIR,
    formula="mean(|input - target|)",
    examples=[("l1_loss([1, 2], [1, 4])", 1)],
    node="MeanBackward0",
)


def _huber(input: Any, target: Any, reduction: str = "mean", delta: Any = 1) -> Any:
    require_option(reduction, REDUCTIONS, "reduction", "huber_loss")
    if not isinstance(delta, (int, float, Fraction)) or not delta > 0:
        raise error("GC320", f"huber_loss needs a positive delta, not {number_text(delta)}")
    x, y = together(input, target, verb="compare")
    away = x - y
    size = abs_(away)
    loss = where(size <= delta, away * away / 2, (size - delta / 2) * delta)
    return _reduced(loss, reduction, "huber_loss")


huber_loss = composite(
    "huber_loss",
    "The mean of squared differences up to delta and absolute differences beyond, with a continuous slope.",
    definition=_huber,
    static=("reduction", "delta"),
    domain=[REAL, REAL],
    sample=_PAIR,
    formula="mean of d**2/2 where |d| <= delta, else delta*(|d| - delta/2)",
    examples=[("huber_loss([1, 2], [1, 4])", 0.75)],
    plane=lambda input, target, *options, **named: _huber(*_distances(input, target), *options, **named),
    node="HuberLossBackward0",
)

# --- probabilities --------------------------------------------------------------------------------------------------


def _bounded_log(x: Any) -> Any:
    """The logarithm, at least -100: PyTorch's way to keep a wrong certainty finite."""
    logarithm = log(x)
    return where(logarithm < -100, -100, logarithm)


def _bce(input: Any, target: Any, reduction: str = "mean") -> Any:
    p, y = together(input, target, verb="compare")
    loss = -(y * _bounded_log(p) + (1 - y) * _bounded_log(1 - p))
    return _reduced(loss, reduction, "binary_cross_entropy")


binary_cross_entropy = composite(
    "binary_cross_entropy",
    "The negative log-likelihood of targets between 0 and 1, given probabilities; logarithms are at least -100.",
    definition=_bce,
    static=("reduction",),
    domain=[_UNIT, REAL],
    sample=[(Closed(0.1, 0.9), (4,)), (Closed(0, 1), (4,))],
    formula="mean(-(y*log(p) + (1 - y)*log(1 - p)))",
    examples=[("binary_cross_entropy([0.5, 0.5], [1, 0])", 0.6931471805599453)],
    node="BinaryCrossEntropyBackward0",
)


def _bce_with_logits(input: Any, target: Any, reduction: str = "mean") -> Any:
    z, y = together(input, target, verb="compare")
    return _reduced((1 - y) * z - logsigmoid(z), reduction, "binary_cross_entropy_with_logits")


binary_cross_entropy_with_logits = composite(
    "binary_cross_entropy_with_logits",
    "Binary cross entropy of sigmoid(input), without overflow.",
    definition=_bce_with_logits,
    static=("reduction",),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (4,)), (Closed(0, 1), (4,))],
    formula="mean((1 - y)*z - log(sigmoid(z)))",
    examples=[("binary_cross_entropy_with_logits([0, 0], [1, 0])", 0.6931471805599453)],
    node="BinaryCrossEntropyWithLogitsBackward0",
)

# --- classes ----------------------------------------------------------------------------------------------------------


def _class_axis(x: Any, function: str) -> int:
    """The axis of the classes: the only one of a vector, else the second."""
    if not x.shape:
        raise error("GC321", f"{function} needs a score for each class, not {described(x)}")
    axis = -len(x.shape) + (1 if len(x.shape) > 1 else 0)
    require_entries(x, (axis,), function)
    return axis


def _chosen(scores: Any, labels: Any, axis: int, function: str) -> Any:
    """The score of each label."""
    position = len(scores.shape) + axis
    rest = (*scores.shape[:position], *scores.shape[position + 1 :])
    if labels.shape != rest:
        raise error(
            "GC301",
            f"{function}: labels of shape {described(labels)} do not fit scores {described(scores)}",
            help="labels have the shape of the scores without the axis of the classes",
            sizes=unequal(labels.shape, rest),
        )
    index = reshaped(positions_of(labels), (*rest[:position], 1, *rest[position:]))
    return reshaped(take_along(scores, index, axis=axis), rest)


def _nll(input: Any, target: Any, reduction: str = "mean") -> Any:
    axis = _class_axis(input, "nll_loss")
    return _reduced(-_chosen(input, target, axis, "nll_loss"), reduction, "nll_loss")


nll_loss = composite(
    "nll_loss",
    "The mean of the negative log-probabilities of the labels; the second axis counts the classes.",
    definition=_nll,
    static=("reduction",),
    domain=[REAL, REAL],
    formula="mean(-input[i, target[i]])",
    examples=[("nll_loss([[-1, -2], [-3, -4]], [0, 1])", 2.5)],
    node="NllLossBackward0",
)


def _cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Any:
    axis = _class_axis(input, "cross_entropy")
    scores = log_softmax(input, axis=(axis,))
    if target.shape != input.shape:
        return _reduced(-_chosen(scores, target, axis, "cross_entropy"), reduction, "cross_entropy")
    loss = -sum_(target * scores, axis=(axis,))
    return _reduced(loss, reduction, "cross_entropy", size_of(input.shape) // input.shape[axis])


cross_entropy = composite(
    "cross_entropy",
    "The negative log-likelihood of labels, or of class probabilities, given the softmax of the scores.",
    definition=_cross_entropy,
    static=("reduction",),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (3, 4)), (Closed(0, 1), (3, 4))],
    formula="mean(-log_softmax(input)[i, target[i]])",
    examples=[
        ("cross_entropy([[0, 0], [0, 0]], [0, 1])", 0.6931471805599453),
        ("cross_entropy([[0, 0]], [[0.5, 0.5]])", 0.6931471805599453),
    ],
    node="NllLossBackward0",
    traits="every_size",
)


def _kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    x, y = together(input, target, verb="compare")
    loss = exp(y) * (y - x) if log_target else xlogy(y, y) - y * x
    if reduction == "batchmean":
        return _total(loss, tuple(range(-len(loss.shape), 0))) / (input.shape[0] if input.shape else 1)
    require_option(reduction, (*REDUCTIONS, "batchmean"), "reduction", "kl_div")
    return _reduced(loss, reduction, "kl_div")


kl_div = composite(
    "kl_div",
    "The mean of target*(log(target) - input), a Kullback-Leibler divergence; input is a logarithm.",
    definition=_kl_div,
    static=("reduction", "log_target"),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 0), (4,)), (Closed(0.1, 0.9), (4,))],
    formula="mean(target*(log(target) - input))",
    examples=[("kl_div([0, 0], [1, 1])", 0)],
    node="KlDivBackward0",
)


def _cosine_similarity(x1: Any, x2: Any, axis: int | None = None, eps: Any = 1e-8) -> Any:
    x, y = together(x1, x2, verb="compare")
    rank = len(x.shape)
    if not isinstance(eps, (int, float, Fraction)):
        raise error("GC320", f"cosine_similarity needs a number as eps, not {number_text(eps)}")
    if not rank:
        raise error("GC321", "cosine_similarity needs vectors, not numbers")
    at = normalize_axis((1 if rank > 1 else 0) if axis is None else axis, rank)
    require_entries(x, (at,), "cosine_similarity")
    dots = sum_(x * y, axis=(at,))
    return dots / (maximum(norm(x, axis=(at,)), eps) * maximum(norm(y, axis=(at,)), eps))


cosine_similarity = composite(
    "cosine_similarity",
    "The cosine of the angle between vectors, along axis 1 by default; of two vectors, one number.",
    definition=_cosine_similarity,
    static=("axis", "eps"),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (3,)), (Closed(-2, 2), (3,))],
    formula="x·y/(|x|*|y|)",
    examples=[("cosine_similarity([1, 0], [1, 1])", 0.7071067811865475)],
    node="CosineSimilarityBackward0",
)
