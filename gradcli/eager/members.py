"""What a tensor can do beside operations: change format or device, tell of its memory, be a mask; methods, no table.

`methods` gives them to the class of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import devices, dtypes, joining, movement, pointwise, tracing
from gradcli.eager.dispatch import cast, record
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.recorder import noted
from gradcli.eager.rules import source_of
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Operand


def to(
    self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False
) -> Tensor:
    """The tensor in another format, or on another device."""
    dtype = dtypes.meant(dtype)
    for one in map(dtypes.meant, args):
        if isinstance(one, dtypes.dtype):
            dtype = one
        elif isinstance(one, Tensor):
            dtype = one.dtype
            device = one.device
        elif not isinstance(one, bool):
            device = one
    if device is not None and devices.device(device) != self.device:
        self = _carried(self, device)
    if dtype is None or dtype is self.dtype:
        return movement.clone(self) if copy else self
    return cast(self, dtype)


def _carried(x: Tensor, to: Any) -> Tensor:
    """A copy on another device, with a node that carries the gradient back."""
    raw = devices.moved(x._array, to)
    result = Tensor(raw)
    if recording() and x.requires_grad:
        node = class_named(CarryNode, "ToCopyBackward0")((source_of(x),), (), place())
        node.device = x.device
        result._requires, result._edge = True, (node, 0)
    return noted("ToCopyBackward0", (x,), result)


class CarryNode(Node):
    """A copy to another device; its gradient is carried back."""

    __slots__ = ("device",)
    device: Any

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradient on the device of the input."""
        ct = cts[0]
        if ct is None:
            return [None]
        return [_carried(ct, self.device) if create_graph else devices.moved(ct, self.device)]


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a GPU; AssertionError where there is none."""
    return to(self, "cuda" if device is None else device)


def where(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """The entries where the condition holds, else those of `other`."""
    found: Tensor = pointwise.where(condition, self, other)
    return found


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the format of another one."""
    return to(self, other)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return movement.view(self, tuple(other.shape))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The entries in the shape of another tensor."""
    return movement.reshape(self, tuple(other.shape))


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor type, or the tensor in another format."""
    if dtype is not None:
        kind = getattr(dtype, "dtype", dtype)  # torch.FloatTensor and the like
        if isinstance(dtype, Tensor) or not isinstance(kind, (str, dtypes.dtype)):
            raise TypeError("dtype must be a type, str, or dtype object")
        if isinstance(kind, str):
            word = kind.rpartition(".")[2]
            named = {f"{spoken}Tensor": name for name, spoken in _TYPES.items()}.get(word, word)
            if named not in _TYPES:
                raise ValueError(f"invalid type: {kind!r}")
            kind = getattr(dtypes, named)
        return to(self, kind)
    return f"torch.{_TYPES[self.dtype.name]}Tensor"


_TYPES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def stride(self: Tensor, dim: int | None = None) -> Any:
    """How many entries lie between neighbours along each axis, or along one."""
    array = self._array
    steps = tuple([step // array.itemsize for step in array.strides])
    return steps if dim is None else steps[dim]


def storage_offset(self: Tensor) -> int:
    """Where in the memory of its base a view begins, counted in entries."""
    base = self if self._base is None else self._base
    start = [x._array.__array_interface__["data"][0] for x in (self, base)]
    return int((start[0] - start[1]) // self._array.itemsize)


def contains(self: Tensor, value: Any) -> bool:
    """Whether some entry equals a number."""
    return bool((self._raw == (value._raw if isinstance(value, Tensor) else value)).any())


def reduce(self: Tensor, protocol: int) -> Any:
    """For pickle and copy: a tensor is made of its array; RuntimeError for one that is not a leaf."""
    if not self.is_leaf:
        raise RuntimeError("only leaf tensors can be pickled; use detach() for others")  # allowed: a message
    return (rebuilt, (self._array, self._requires))


def rebuilt(array: Any, requires_grad: bool) -> Tensor:
    """A tensor of its parts."""
    return Tensor(array, requires_grad)


def inverted(self: Tensor) -> Tensor:
    if tracing.current is not None and tracing.traced((self,)) and self.dtype is dtypes.bool:
        return record(catalogue()["not"], (self,), {}, "invert")
    return noted("invert", (self,), Tensor(np.invert(self._array)))


def truths(*xs: Any) -> bool:
    """Whether all are tensors of truth values."""
    return all(isinstance(x, Tensor) and x.dtype is dtypes.bool for x in xs)


def need_bits(name: str, *xs: Any) -> None:
    """NotImplementedError for tensors of numbers with a point."""
    for x in xs:
        if isinstance(x, Tensor) and x.dtype.kind >= 2:
            raise NotImplementedError(
                f"{name} is not implemented for {x.dtype}: it needs whole numbers or truth values"
            )


def bits(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        if tracing.current is not None and tracing.traced((self, other)) and truths(self, other):
            both, only = (record(catalogue()[one], (self, other), {}, one) for one in ("or", "and"))
            if name == "xor":
                return record(catalogue()["and"], (both, inverted(only)), {}, "xor")
            return both if name == "or" else only
        need_bits(f"bitwise_{name}", self, other)
        right = other._array if isinstance(other, Tensor) else other
        found = Tensor(np.asarray(getattr(np, f"bitwise_{name}")(self._array, right)))
        return noted(f"bitwise_{name}", (self, other), found)

    return method


def matrix_transpose(self: Tensor) -> Tensor:
    """`.mT`: the last two axes exchanged."""
    return movement.transpose(self, -2, -1)


def rank(self: Tensor) -> int:
    return int(self._raw.ndim)


def is_signed(self: Tensor) -> bool:
    return self._raw.dtype.kind not in "ub"


def set_real(self: Tensor, value: Any) -> None:
    """Write the real parts."""
    raise RuntimeError("writing to .real is not supported: make the tensor with torch.complex(real, imag)")


def view(self: Tensor, *given: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape; with a format, its entries as that format where the sizes are equal."""
    if dtype is not None:
        given = (dtype,)
    if len(given) == 1 and isinstance(given[0], dtypes.dtype):
        kind = given[0]
        if kind.itemsize != self.dtype.itemsize:
            raise RuntimeError("view(dtype) needs a format of the same size")
        return Tensor(self._array.view(kind.np), False, self._counter)
    return movement.view(self, *given) if size is None else movement.view(self, size)


def iterated(self: Tensor) -> Any:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(joining.unbind(self))


def reversed(self: Tensor) -> Tensor:
    return joining.flip(self, 0) if self.ndim else self


def size(self: Tensor, dim: int | None = None) -> Any:
    return self.shape if dim is None else self.shape[dim]


def formatted(kind: dtypes.dtype) -> Any:
    def method(self: Tensor) -> Tensor:
        return cast(self, kind)

    return method
