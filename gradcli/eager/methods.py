"""The functions of the modules beside this one go in, the methods and operators of the tensor come out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import dtypes, indexing, inplace, joining, movement, pointwise, reductions
from gradcli.eager.dispatch import cast
from gradcli.eager.tensor import Tensor

_NOT_METHODS = {"rsub", "where", "cat", "stack"}


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False) -> Tensor:
    """The tensor in another format; RuntimeError for a device other than the processor."""
    for one in args:
        if isinstance(one, dtypes.dtype):
            dtype = one
        elif isinstance(one, Tensor):
            dtype = one.dtype
        else:
            device = one
    if device is not None and str(device) != "cpu":
        raise RuntimeError(f"there is no device {device!r}: these tensors live on the cpu")
    if dtype is None or dtype is self.dtype:
        return movement.clone(self) if copy else self
    return cast(self, dtype)


def _number(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, np.generic))


def _operator(function: Any, swapped: bool = False) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not _number(other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return method


def _in_place(name: str) -> Any:
    function = inplace.TABLE[name]

    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if _number(other) else NotImplemented

    return method


def _equal(self: Tensor, other: Any) -> Any:
    return pointwise.TABLE["eq"](self, other) if _number(other) else False


def _not_equal(self: Tensor, other: Any) -> Any:
    return pointwise.TABLE["ne"](self, other) if _number(other) else True


def _invert(self: Tensor) -> Tensor:
    return Tensor(np.invert(self._array))


def _bits(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        right = other._array if isinstance(other, Tensor) else other
        return Tensor(np.asarray(getattr(np, f"bitwise_{name}")(self._array, right)))

    return method


def matrix_transpose(self: Tensor) -> Tensor:
    """`.mT`: the last two axes exchanged."""
    return movement.transpose(self, -2, -1)


def equip() -> None:
    """Give the tensor its methods and operators."""
    methods: dict[str, Any] = {}
    for table in (pointwise.TABLE, reductions.TABLE, movement.TABLE, joining.TABLE, indexing.TABLE, inplace.TABLE):
        methods.update({name: function for name, function in table.items() if name not in _NOT_METHODS})
    p, i = pointwise.TABLE, inplace.TABLE
    for name in ("add", "sub", "mul", "pow"):
        methods[f"__{name}__"] = _operator(p[name])
        methods[f"__i{name}__"] = _in_place(f"{name}_")
    methods["__truediv__"], methods["__itruediv__"] = _operator(p["div"]), _in_place("div_")
    for name in ("add", "mul"):
        methods[f"__r{name}__"] = _operator(p[name])
    methods["__rsub__"] = _operator(p["rsub"])
    methods["__rtruediv__"] = _operator(p["div"], swapped=True)
    methods["__rpow__"] = _operator(p["pow"], swapped=True)
    methods["__mod__"] = _operator(p["remainder"])
    for name in ("lt", "le", "gt", "ge"):
        methods[f"__{name}__"] = _operator(p[name])
    methods.update(__eq__=_equal, __ne__=_not_equal, __hash__=lambda self: id(self))
    methods.update(__neg__=p["neg"], __abs__=p["abs"], __pos__=lambda self: self, __invert__=_invert)
    methods.update(__and__=_bits("and"), __or__=_bits("or"), __xor__=_bits("xor"))
    methods["__matmul__"] = reductions.matmul
    methods["__getitem__"], methods["__setitem__"] = indexing.getitem, indexing.setitem
    methods["__iter__"] = _iterated
    methods["T"], methods["mT"] = property(movement.reversed_axes), property(matrix_transpose)
    methods.update(to=to, cpu=lambda self: self, is_floating_point=lambda self: self.dtype.is_floating_point)
    methods.update(numel=lambda self: int(self._array.size), nelement=lambda self: int(self._array.size))
    methods.update(dim=lambda self: self._array.ndim, size=_size, type_as=lambda self, other: to(self, other))
    methods.update(view_as=lambda self, other: movement.view(self, tuple(other.shape)))
    methods.update(is_contiguous=lambda self: bool(self._array.flags.c_contiguous), retain_grad=Tensor.retain_grad)
    for name in ("float", "double", "long", "int", "bool"):
        methods[name] = _format(getattr(dtypes, name))
    assert set(i) <= set(methods)
    for name, method in methods.items():
        setattr(Tensor, name, method)


def _iterated(self: Tensor) -> Any:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(joining.unbind(self))


def _size(self: Tensor, dim: int | None = None) -> Any:
    return self.shape if dim is None else self.shape[dim]


def _format(kind: dtypes.dtype) -> Any:
    def method(self: Tensor) -> Tensor:
        return cast(self, kind)

    return method
