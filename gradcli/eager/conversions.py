"""A tensor goes in, Python numbers, lists, NumPy arrays, texts and detached tensors come out; records nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.state import once
from gradcli.graph.operand import Operand

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class Conversions(Operand):
    """What leads out of tensors; the tensor itself adds payload, flags and history."""

    __slots__ = ()

    def item(self: Any) -> Any:
        """The only entry as a Python number; RuntimeError for several."""
        if self._raw.size != 1:
            raise RuntimeError(f"a tensor with {self._raw.size} elements cannot be converted to a Scalar")
        if recorder.current is not None:
            recorder.current.cut("item()", (self,), None)
        return self._raw.item()

    def tolist(self: Any) -> Any:
        """The entries as nested lists, or a number."""
        if recorder.current is not None:
            recorder.current.cut("tolist()", (self,), None)
        return self._raw.tolist()

    def numpy(self: Any, *, force: bool = False) -> Any:
        """The array itself; RuntimeError for a tensor that requires grad: `.detach().numpy()`."""
        if self.requires_grad and not force:
            raise RuntimeError("numpy() on a tensor that requires grad would lose its history; use detach().numpy()")
        if recorder.current is not None:
            recorder.current.cut("numpy()", (self,), None)
        return self._array

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def detach(self: Any) -> Tensor:
        """The same memory and version without the history."""
        from gradcli.eager.tensor import Tensor

        found = Tensor(self._array, False, self._counter)
        found._inference = self._inference
        if recorder.current is not None:
            recorder.current.cut("detach()", (self,), found)
        return found

    @property
    def data(self: Any) -> Tensor:
        """The same memory without the history and with a version of its own: changes are not noticed."""
        from gradcli.eager.tensor import Tensor

        found = Tensor(self._array)
        if recorder.current is not None:
            recorder.current.cut(".data", (self,), found)
        return found

    @data.setter
    def data(self: Any, value: Tensor) -> None:
        if not isinstance(value, Conversions):
            raise TypeError(f".data is a tensor, not {type(value).__name__}")
        if self.requires_grad and value._raw.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._raw = value._array
        if recorder.current is not None:
            recorder.current.moved(self)

    def data_ptr(self: Any) -> int:
        """The address of the first entry."""
        return int(self._array.__array_interface__["data"][0])

    def __float__(self: Any) -> float:
        return float(self._one("float"))

    def __int__(self: Any) -> int:
        return int(self._one("int"))

    def __index__(self: Any) -> int:
        if self.dtype.is_floating_point or self._raw.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _one(self: Any, what: str) -> Any:
        if self._raw.size != 1:
            raise ValueError(f"only one element tensors can be converted to {what}, and this has {self._raw.size}")
        if self.requires_grad:
            once(
                "number",
                f"{what}() of a tensor that requires grad leaves the graph: say so with detach() or item()",
            )
        return self.item()

    def __bool__(self: Any) -> bool:
        if self._raw.size != 1:
            raise RuntimeError("the truth value of a tensor with several elements is ambiguous: use any() or all()")
        return bool(self.item())

    def __len__(self: Any) -> int:
        if not self._raw.ndim:
            raise TypeError("a 0-d tensor has no len()")
        return len(self._array)

    def __hash__(self: Any) -> int:
        return id(self)

    def __repr__(self: Any) -> str:
        from gradcli.eager.text import shown

        return shown(self)

    def __format__(self: Any, how: str) -> str:
        if not self._raw.ndim:
            return format(self.item(), how)
        if how:
            raise TypeError("only a 0-d tensor can be formatted with a format specification")
        return repr(self)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only leaf tensors can be deep-copied; use clone() or detach() for others")
        from gradcli.eager.tensor import Tensor

        found = Tensor(self._array.copy(), self._requires)
        memo[id(self)] = found
        if self._grad is not None:
            found._grad = self._grad.__deepcopy__(memo)
        return found
