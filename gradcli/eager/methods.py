"""The functions of the modules beside this one go in, the methods and operators of the tensor come out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import (
    changes,
    complexes,
    counting,
    devices,
    dtypes,
    einsum,
    entrywise,
    factory,
    indexing,
    joining,
    lengths,
    linalg,
    matrices,
    movement,
    operators,
    placing,
    pointwise,
    products,
    random,
    reductions,
    selecting,
    statistics,
    tracing,
)
from gradcli.eager.dispatch import cast, record
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.recorder import noted
from gradcli.eager.rules import source_of
from gradcli.eager.signatures import checked
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

_NOT_METHODS = {
    *("rsub", "where", "cat", "stack", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "meshgrid"),
    *("block_diag", "einsum", "tensordot", "real", "imag", "complex", "polar", "view_as_complex", "cdist", "threshold"),
    *("atleast_1d", "atleast_2d", "var_mean", "std_mean", "trapezoid"),
}


def to(
    self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False
) -> Tensor:
    """The tensor in another format, or on another device."""
    for one in args:
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


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The entries where the condition holds, else those of `other`."""
    found: Tensor = pointwise.where(condition, self, other)
    return found


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor type, or the tensor in another format."""
    if dtype is not None:
        return to(self, getattr(dtypes, dtype.rpartition(".")[2]) if isinstance(dtype, str) else dtype)
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
        raise RuntimeError("only leaf tensors can be pickled; use detach() for others")
    return (rebuilt, (self._array, self._requires))


def rebuilt(array: Any, requires_grad: bool) -> Tensor:
    """A tensor of its parts."""
    return Tensor(array, requires_grad)


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities in the tensor, or with one probability, else zeros."""
    source = generator or random.default_generator
    bound = input._raw if p is None else p
    drawn = np.asarray(source.rand(input._raw.shape, "float64") < bound).astype(input._raw.dtype)
    return entrywise.refused(Tensor(drawn), (input,), "bernoulli") if input.requires_grad else Tensor(drawn)


def _number(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex, np.generic))


def _operator(function: Any, swapped: bool = False) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not _number(other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return method


def _in_place(name: str) -> Any:
    function = changes.TABLE[name]

    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if _number(other) else NotImplemented

    return method


def _equal(self: Tensor, other: Any) -> Any:
    return pointwise.TABLE["eq"](self, other) if _number(other) else False


def _not_equal(self: Tensor, other: Any) -> Any:
    return pointwise.TABLE["ne"](self, other) if _number(other) else True


def _invert(self: Tensor) -> Tensor:
    if tracing.current is not None and tracing.traced((self,)) and self.dtype is dtypes.bool:
        return record(catalogue()["not"], (self,), {}, "invert")
    return noted("invert", (self,), Tensor(np.invert(self._array)))


def truths(*xs: Any) -> bool:
    """Whether all are tensors of truth values."""
    return all(isinstance(x, Tensor) and x.dtype is dtypes.bool for x in xs)


def _bits(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        if tracing.current is not None and tracing.traced((self, other)) and truths(self, other):
            both, only = (record(catalogue()[one], (self, other), {}, one) for one in ("or", "and"))
            if name == "xor":
                return record(catalogue()["and"], (both, _invert(only)), {}, "xor")
            return both if name == "or" else only
        right = other._array if isinstance(other, Tensor) else other
        found = Tensor(np.asarray(getattr(np, f"bitwise_{name}")(self._array, right)))
        return noted(f"bitwise_{name}", (self, other), found)

    return method


def matrix_transpose(self: Tensor) -> Tensor:
    """`.mT`: the last two axes exchanged."""
    return movement.transpose(self, -2, -1)


METHODS_ONLY = (
    *("view", "expand", "expand_as", "repeat", "contiguous", "fill_diagonal_", "copy_", "zero_", "masked_fill_"),
    *("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "unfold"),
)
# methods that small steps are made of; they take tensors and sizes, and speak up themselves
HOT = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "t", "view", "reshape", "clone", "detach", "contiguous", "expand", "zero_"}
)
TABLES = (
    *(pointwise.TABLE, reductions.TABLE, lengths.TABLE, movement.TABLE, joining.TABLE, indexing.TABLE, entrywise.TABLE),
    *(matrices.TABLE, products.TABLE, einsum.TABLE, selecting.TABLE, placing.TABLE),
    *(linalg.TABLE, complexes.TABLE, counting.TABLE, changes.TABLE, factory.METHODS, statistics.TABLE),
)


def equip() -> None:
    """Give the tensor its methods and operators."""
    methods: dict[str, Any] = {}
    for table in TABLES:
        methods.update({name: function for name, function in table.items() if name not in _NOT_METHODS})
    methods = {
        name: checked(function, method=True) if name not in HOT else function
        for name, function in methods.items()
        if callable(function)
    }
    p, i = pointwise.TABLE, changes.TABLE
    for name, sign in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv")):
        primitive = catalogue()[name]
        short = operators.binary(f"__{sign}__", primitive, primitive.node_name({}), _operator(p[name]))
        methods[f"__{sign}__"] = short
        if name in ("add", "mul"):
            methods[f"__r{sign}__"] = short
        methods[f"__i{sign}__"] = _in_place(f"{name}_")
    methods["__pow__"], methods["__ipow__"] = _operator(p["pow"]), _in_place("pow_")
    methods["__rsub__"] = _operator(p["rsub"])
    methods["__rtruediv__"] = _operator(p["div"], swapped=True)
    methods["__rpow__"] = _operator(p["pow"], swapped=True)
    methods["__mod__"] = _operator(p["remainder"])
    methods["__imod__"] = _in_place("remainder_")
    methods["__floordiv__"] = _operator(entrywise.TABLE["floor_divide"])
    methods["__rfloordiv__"] = _operator(entrywise.TABLE["floor_divide"], swapped=True)
    for name in ("lt", "le", "gt", "ge"):
        methods[f"__{name}__"] = _operator(p[name])
    methods.update(__eq__=_equal, __ne__=_not_equal, __hash__=lambda self: id(self))
    methods.update(__neg__=p["neg"], __abs__=p["abs"], __pos__=lambda self: self, __invert__=_invert)
    methods.update(__and__=_bits("and"), __or__=_bits("or"), __xor__=_bits("xor"))
    methods["__matmul__"] = matrices.matmul
    methods["__getitem__"], methods["__setitem__"] = indexing.getitem, indexing.setitem
    methods["__iter__"] = _iterated
    methods["__reversed__"] = _reversed
    methods["T"], methods["mT"] = property(movement.reversed_axes), property(matrix_transpose)
    methods["H"] = methods["mH"] = property(movement.adjoint)
    methods["real"], methods["imag"] = property(complexes.real, set_real), property(complexes.imag)
    methods["is_cuda"] = property(lambda self: self.device.type == "cuda")
    methods["itemsize"] = property(lambda self: self.dtype.itemsize)
    methods["is_sparse"] = methods["is_meta"] = property(lambda self: False)
    methods["nbytes"] = property(lambda self: self._raw.size * self.dtype.itemsize)
    methods.update(to=to, cuda=cuda, where=where, type=type_, stride=stride, storage_offset=storage_offset)
    methods.update(cpu=lambda self: to(self, "cpu"), is_floating_point=lambda self: self.dtype.is_floating_point)
    methods.update(numel=lambda self: int(self._raw.size), nelement=lambda self: int(self._raw.size))
    methods.update(dim=_rank, ndimension=_rank, size=_size, type_as=lambda self, other: to(self, other))
    methods.update(element_size=lambda self: self.dtype.itemsize, _is_view=lambda self: self._base is not None)
    methods.update(__contains__=contains, __reduce_ex__=reduce, bernoulli=bernoulli, is_signed=_is_signed)
    methods.update(view=view, requires_grad_=Tensor.requires_grad_, __complex__=lambda self: complex(self.item()))
    methods.update(reshape_as=lambda self, other: movement.reshape(self, tuple(other.shape)), is_nonzero=bool)
    methods.update(view_as=lambda self, other: movement.view(self, tuple(other.shape)))
    methods.update(is_contiguous=lambda self: bool(self._array.flags.c_contiguous), retain_grad=Tensor.retain_grad)
    for name in ("float", "double", "half", "long", "int", "short", "bool", "cfloat", "cdouble"):
        methods[name] = _format(getattr(dtypes, name))
    methods["byte"], methods["char"] = _format(dtypes.uint8), _format(dtypes.int8)
    assert set(i) <= set(methods)
    for name, method in methods.items():
        setattr(Tensor, name, method)


def _rank(self: Tensor) -> int:
    return int(self._raw.ndim)


def _is_signed(self: Tensor) -> bool:
    return self._raw.dtype.kind not in "ub"


def set_real(self: Tensor, value: Any) -> None:
    """Write the real parts."""
    raise RuntimeError("writing to .real is not supported: make the tensor with torch.complex(real, imag)")


def view(self: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape; with a format, its entries as that format where the sizes are equal."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        if shape[0].itemsize != self.dtype.itemsize:
            raise RuntimeError("view(dtype) needs a format of the same size")
        return Tensor(self._array.view(shape[0].np), False, self._counter)
    return movement.view(self, *shape)


def _iterated(self: Tensor) -> Any:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(joining.unbind(self))


def _reversed(self: Tensor) -> Tensor:
    return joining.flip(self, 0) if self.ndim else self


def _size(self: Tensor, dim: int | None = None) -> Any:
    return self.shape if dim is None else self.shape[dim]


def _format(kind: dtypes.dtype) -> Any:
    def method(self: Tensor) -> Tensor:
        return cast(self, kind)

    return method
