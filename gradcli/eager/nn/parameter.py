"""Parameters: tensors that a module lists when they are assigned to its attributes; lazy ones have no shape yet."""

from __future__ import annotations

from typing import Any, Self

from gradcli.eager._core import dtypes, events
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import empty


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


class UninitializedTensor(Tensor):
    """What a parameter or buffer is before its shape is known: it has a dtype, and ValueError for every operation."""

    _becomes: type[Tensor]

    def __init__(self, dtype: dtypes.dtype, requires_grad: bool = False) -> None:
        self._node, self._count, self._requires, self._dtype = None, None, requires_grad, dtype

    @property
    def _raw(self) -> Any:
        raise ValueError("an uninitialized parameter or buffer has no entries: call its lazy module once with an input")

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype that the entries will have."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """RuntimeError: it is not known."""
        raise RuntimeError("the shape of an uninitialized parameter or buffer is not known: call its module once")

    def detach(self) -> Self:
        """This tensor, which a state holds in place of one with entries."""
        return self

    def _fill(self, array: Any) -> None:
        self.__class__ = self._becomes  # type: ignore[assignment]
        self._raw = array  # type: ignore[misc]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = type(self)(self._dtype, self._requires)
        return copied

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensor, Parameter):
    """A parameter of a lazy module, before the module is called."""

    _becomes = Parameter


class UninitializedBuffer(UninitializedTensor):
    """A buffer of a lazy module, before the module is called."""

    _becomes = Tensor


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensor)


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


for _class in (Parameter, UninitializedParameter, UninitializedBuffer):
    _class.__module__ = "torch.nn.parameter"
