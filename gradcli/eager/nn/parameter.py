"""Parameters and buffers of modules, and those of lazy modules, whose shape is not known yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core import dtypes, events
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


class _Uninitialized:
    """What a parameter or buffer is before its shape is known: it has a dtype, and ValueError for every operation."""

    _becomes: type[Tensor]

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> None:
        self._node, self._count, self._requires = None, None, requires_grad
        self._kind: dtypes.dtype = dtype or dtypes.get_default_dtype()

    @property
    def _raw(self) -> Any:
        raise ValueError(
            "an uninitialized parameter or buffer of a lazy module was used: call the module once with an input, so "
            "that its shape is known"
        )

    @_raw.setter
    def _raw(self, raw: Any) -> None:
        raise AttributeError("an uninitialized parameter is filled by materialize()")

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype that the entries will have."""
        return self._kind

    @property
    def shape(self) -> Any:
        """RuntimeError: it is not known."""
        raise RuntimeError("the shape of an uninitialized parameter or buffer is not known: call its module once")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """ValueError, as for every operation."""
        return self._raw

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of a shape; the entries are zeros."""
        self._fill(np.zeros(tuple(shape), (dtype or self._kind).np))

    def _fill(self, array: Any) -> None:
        """Become a tensor with the entries of an array."""
        self.__class__ = self._becomes  # type: ignore[assignment]
        self._raw = array
        if self.__dict__.pop("_in_optimizer", False) and events.current is not None:
            events.current.adopted([self])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = memo[id(self)] = type(self)(self._requires, dtype=self._kind)
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):  # type: ignore[misc]
    """A parameter of a lazy module, before the module is called."""

    _becomes = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(requires_grad, device, dtype)


class UninitializedBuffer(_Uninitialized, Tensor):  # type: ignore[misc]
    """A buffer of a lazy module, before the module is called."""

    _becomes = Tensor


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet.

    >>> is_lazy(UninitializedParameter())
    True
    """
    return isinstance(param, _Uninitialized)


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


for _class in (Parameter, Buffer, UninitializedParameter, UninitializedBuffer):
    _class.__module__ = "torch.nn.parameter"
