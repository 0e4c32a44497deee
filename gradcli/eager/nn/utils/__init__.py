"""PyTorch's `torch.nn.utils`: clipping of gradients, parameters as one vector; sequences as one tensor in `rnn.py`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import tensor
from gradcli.eager._ops.joining import cat, stack
from gradcli.eager.nn.utils import rnn

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector"]
__all__ += ["rnn", "vector_to_parameters"]


def _gradients(parameters: Any) -> list[Tensor]:
    xs = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [x._grad for x in xs if x._grad is not None]


@no_grad()
def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """The norm of the norms of some tensors: of all entries together.

    RuntimeError for a norm that is not finite, if that is wanted.
    """
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not found:
        return tensor(0.0)
    total = _norm(stack([_norm(x, norm_type) for x in found]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"the total norm of order {norm_type} of the gradients is not finite, so it cannot be clipped; pass "
            "error_if_nonfinite=False to scale by it anyway"
        )
    return total


def _norm(x: Tensor, order: float) -> Tensor:
    if order == 2:
        found: Any = (x * x).sum().sqrt()
    elif order == math.inf:
        found = x.abs().max()
    elif order == 1:
        found = x.abs().sum()
    else:
        found = (x.abs() ** order).sum() ** (1 / order)
    result: Tensor = found
    return result


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: Any = None) -> None:
    """Scale gradients in place by max_norm/total_norm where that is below 1."""
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _gradients(parameters):
        grad.mul_(factor.to(grad.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scale gradients in place so that their norm together is at most `max_norm`; the norm before comes back.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> clip_grad_norm_([x], 1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    xs = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(xs), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(xs, max_norm, total)
    result: Tensor = total
    return result


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Hold each entry of the gradients between -clip_value and clip_value, in place."""
    limit = float(clip_value)
    for grad in _gradients(parameters):
        grad.clamp_(min=-limit, max=limit)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All entries in one row.

    >>> import gradcli.eager as torch
    >>> parameters_to_vector([torch.ones(2), torch.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    return cat([x.view(-1) for x in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """The entries of a row put back into parameters, without history. TypeError unless `vec` is a tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a tensor, but got {type(vec).__name__}")
    start = 0
    for x in parameters:
        count = x._array.size
        part = vec._array[start : start + count].reshape(x._array.shape)
        x._array = part.astype(x._array.dtype, copy=False)
        start += count
