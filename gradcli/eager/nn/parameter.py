"""Parameters: tensors that a module lists when they are assigned to its attributes."""

from __future__ import annotations

from gradcli.eager._core import events
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.tensor_creation import empty


class Parameter(Tensor):
    """A tensor that a module lists among its parameters when it is assigned to an attribute.

    RuntimeError for formats that cannot require grad.

    >>> Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    _is_param = True

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        data = empty(0) if data is None else data
        super().__init__(data._array, False, data._counter)
        events.report("born", self, data)
        if requires_grad:
            self.requires_grad = True


def clear(x: Tensor, set_to_none: bool) -> None:
    """Forget a gradient, or fill it with zeros, without its history."""
    if x._grad is None:
        return
    if set_to_none:
        x.grad = None
    else:
        if x._grad.requires_grad:
            x._grad.detach_()
        x._grad.zero_()


Parameter.__module__ = "torch.nn.parameter"
