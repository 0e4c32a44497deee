"""Pairs of rows go in, distances and the losses made of them come out; also choices by noise that have a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.indexing import renamed
from gradcli.eager.lengths import norm
from gradcli.eager.nn.functional.activations import softmax
from gradcli.eager.nn.functional.fusing import declared, fused, need_tensor, reduced, reduction_of, shifted
from gradcli.eager.pointwise import TABLE, where
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor

EQUAL, DIFFERENT = TABLE["eq"], TABLE["ne"]


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norms of the differences of rows, each entry of a difference raised by eps."""
    away = shifted(x1 - x2, eps)
    return renamed(norm(away, p=p, dim=-1, keepdim=keepdim), "NormBackward1")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """How much nearer than the margin the negative example is, compared with the positive one."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    away = shifted(near, margin) - far
    return reduced(away.clamp_min(0), reduction_of(reduction))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos for pairs that belong together (target 1), what cos exceeds the margin by for others (-1)."""
    if input1.ndim - 1 != target.ndim or input1.ndim not in (1, 2):
        raise RuntimeError(f"{target.ndim}D target tensor does not match {input1.ndim}D input tensors")
    tiny = 1e-12
    product = (input1 * input2).sum(-1)
    one = shifted((input1 * input1).sum(-1), tiny)
    two = shifted((input2 * input2).sum(-1), tiny)
    cosine = product / (one * two).sqrt()
    together_ = where(EQUAL(target, 1), cosine.new_ones(()) - cosine, 0.0)
    apart = where(EQUAL(target, -1), shifted(cosine, -margin, "SubBackward1").clamp_min(0), 0.0)
    return reduced(together_ + apart, reduction_of(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The entry itself where the target is 1, what it lacks to the margin where the target is -1."""
    beyond = where(DIFFERENT(target, 1), (input.new_full((), margin) - input).clamp_min(0), 0.0)
    return reduced(beyond + where(DIFFERENT(target, -1), input, 0.0), reduction_of(reduction))


def _soft_margin(x: Any, y: Any, *, reduction: str) -> Any:
    one, other = together(x, y, verb="compare")
    loss = declared("softplus", -one * other)
    return loss if reduction == "none" else declared(reduction, loss)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    return fused(_soft_margin, (input, target), "SoftMarginLossBackward0", edges=1, reduction=reduction_of(reduction))


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random choice by softmax of noisy scores; `hard` gives a one-hot choice with the gradient of the soft one."""
    noise = -need_tensor(logits, "gumbel_softmax").detach().clone().exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    at = soft.detach().max(dim, keepdim=True)[1]
    chosen = logits.new_zeros(tuple(logits.shape)).scatter(dim, at, 1.0)
    found: Tensor = chosen - soft.detach() + soft
    return found


def _length(x: Any, *, dim: int) -> Any:
    return declared("norm", x, axis=dim, keepdims=True)


def _lengths(x: Tensor, dim: int) -> Tensor:
    return fused(_length, (x,), "LinalgVectorNormBackward0", dim=dim)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis divided by their length, or by eps where they are shorter."""
    if p != 2:
        raise RuntimeError(f"normalize divides by the length (p=2); p={p} is not supported: divide by norm(p, dim)")
    result: Tensor = input / _lengths(input, dim).clamp_min(eps).expand_as(input)
    return result


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis."""
    from gradcli.eager.modes import no_grad

    directions = []
    for x in (x1, x2):
        size = _lengths(x, dim).clone()
        with no_grad():
            size.clamp_(min=eps)
        directions.append(x / size)
    result: Tensor = (directions[0] * directions[1]).sum(dim)
    return result
