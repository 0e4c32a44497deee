"""Parameters: tensors that a module lists when they are assigned to its attributes."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import empty


class Parameter(Tensor):
    """A tensor that a module lists among its parameters when it is assigned to an attribute.

    RuntimeError for formats that cannot require grad.

    >>> import gradcli.eager as torch
    >>> Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    _is_param = True

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            data = empty(0)
        super().__init__(data._array, False, data._counter)
        if requires_grad:
            self.requires_grad = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = Parameter(Tensor(self._array.copy()), self.requires_grad)
            if self._grad is not None:
                copied._grad = self._grad.__deepcopy__(memo)
        return copied


def clear(x: Tensor, set_to_none: bool) -> None:
    """Forget a gradient, or fill it with zeros, without its history."""
    if x._grad is None:
        return
    if set_to_none:
        x.grad = None
    else:
        if x._grad.grad_fn is not None:
            x._grad.detach_()
        else:
            x._grad.requires_grad_(False)
        x._grad.zero_()


Parameter.__module__ = "torch.nn.parameter"
