"""PyTorch's `torch.nn.utils`: clipping of gradients, and parameters as one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.eager._core import events
from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.tensor_creation import tensor
from gradcli.eager._ops.tensor_joining import cat, stack
from gradcli.eager._ops.tensor_reductions import norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]
__getattr__, __dir__ = room("nn.utils", __all__)


def _gradients(parameters: Any) -> list[Tensor]:
    xs = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    events.report("clipping", xs)
    return [x._grad for x in xs if x._grad is not None]


@no_grad()
def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale gradients in place so that their norm together is at most `max_norm`; returns the norm before.

    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> clip_grad_norm_([x], 1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    grads = _gradients(parameters)
    total = norm(stack([norm(x, norm_type) for x in grads]), norm_type) if grads else tensor(0.0)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor.to(grad.dtype))
    return total


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Hold each entry of the gradients between -clip_value and clip_value, in place."""
    limit = float(clip_value)
    for grad in _gradients(parameters):
        grad.clamp_(min=-limit, max=limit)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All entries in one row.

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
        x._raw = part.astype(x._array.dtype, copy=False)
        start += count
