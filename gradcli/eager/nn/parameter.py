"""A tensor goes in, the same memory as a parameter of a module comes out: a leaf that requires grad."""

from __future__ import annotations

from typing import Any

from gradcli.eager.factory import empty
from gradcli.eager.tensor import Tensor


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
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = Parameter(Tensor(self._array.copy()), self.requires_grad)
            if self._grad is not None:
                found._grad = self._grad.__deepcopy__(memo)
        return found


class Buffer(Tensor):
    """A tensor that a module lists among its buffers when it is assigned to an attribute."""

    persistent: bool

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        if data is None:
            data = empty(0)
        super().__init__(data._array, data.requires_grad, data._counter)
        self.persistent = persistent


Parameter.__module__ = Buffer.__module__ = "torch.nn.parameter"
