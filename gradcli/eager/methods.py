"""The functions of the modules beside this one go in, the methods and operators of the tensor come out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import (
    arranging,
    changes,
    complexes,
    counting,
    dtypes,
    einsum,
    entrywise,
    extremes,
    factory,
    indexing,
    joining,
    lengths,
    linalg,
    matrices,
    members,
    movement,
    operators,
    placing,
    pointwise,
    products,
    reductions,
    sampling,
    selecting,
    statistics,
)
from gradcli.eager.signatures import checked
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

_NOT_METHODS = {
    *("rsub", "where", "cat", "stack", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "meshgrid"),
    *("block_diag", "einsum", "tensordot", "real", "imag", "complex", "polar", "view_as_complex", "cdist", "threshold"),
    *("atleast_1d", "atleast_2d", "atleast_3d", "var_mean", "std_mean", "trapezoid"),
}


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


METHODS_ONLY = (
    *("view", "expand", "expand_as", "repeat", "contiguous", "fill_diagonal_", "copy_", "zero_", "masked_fill_"),
    *("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "unfold"),
)
# methods that small steps are made of; they take tensors and sizes, and speak up themselves
HOT = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "t", "view", "reshape", "clone", "detach", "contiguous", "expand", "zero_"}
)
TABLES = (
    *(
        pointwise.TABLE,
        reductions.TABLE,
        extremes.TABLE,
        lengths.TABLE,
        movement.TABLE,
        joining.TABLE,
        indexing.TABLE,
        entrywise.TABLE,
    ),
    *(matrices.TABLE, products.TABLE, einsum.TABLE, selecting.TABLE, arranging.TABLE, placing.TABLE),
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
    methods.update(__neg__=p["neg"], __abs__=p["abs"], __pos__=lambda self: self, __invert__=members.inverted)
    methods.update(__and__=members.bits("and"), __or__=members.bits("or"), __xor__=members.bits("xor"))
    methods["__matmul__"] = matrices.matmul
    methods["__getitem__"], methods["__setitem__"] = indexing.getitem, indexing.setitem
    methods["__iter__"] = members.iterated
    methods["__reversed__"] = members.reversed
    methods["T"], methods["mT"] = property(movement.reversed_axes), property(members.matrix_transpose)
    methods["H"] = methods["mH"] = property(movement.adjoint)
    methods["real"], methods["imag"] = property(complexes.real, members.set_real), property(complexes.imag)
    methods["is_cuda"] = property(lambda self: self.device.type == "cuda")
    methods["itemsize"] = property(lambda self: self.dtype.itemsize)
    methods["is_sparse"] = methods["is_meta"] = property(lambda self: False)
    methods["nbytes"] = property(lambda self: self._raw.size * self.dtype.itemsize)
    methods.update(
        to=members.to,
        cuda=members.cuda,
        where=checked(members.where, method=True),
        type=members.type_,
        stride=members.stride,
        storage_offset=members.storage_offset,
    )
    methods.update(
        cpu=lambda self: members.to(self, "cpu"), is_floating_point=lambda self: self.dtype.is_floating_point
    )
    methods.update(numel=lambda self: int(self._raw.size), nelement=lambda self: int(self._raw.size))
    methods.update(
        dim=members.rank,
        ndimension=members.rank,
        size=members.size,
        type_as=checked(members.type_as, method=True),
        view_as=checked(members.view_as, method=True),
        reshape_as=checked(members.reshape_as, method=True),
    )
    methods.update(element_size=lambda self: self.dtype.itemsize, _is_view=lambda self: self._base is not None)
    methods.update(__contains__=members.contains, __reduce_ex__=members.reduce, is_signed=members.is_signed)
    methods.update(bernoulli=sampling.bernoulli, multinomial=checked(sampling.multinomial, method=True))
    methods.update(
        view=members.view, requires_grad_=Tensor.requires_grad_, __complex__=lambda self: complex(self.item())
    )
    methods.update(is_nonzero=bool)
    # tensors of one process: memory is shared as it is, and never pinned
    methods.update(share_memory_=lambda self: self, is_shared=lambda self: True, is_pinned=lambda self: False)
    methods.update(is_contiguous=lambda self: bool(self._array.flags.c_contiguous), retain_grad=Tensor.retain_grad)
    for name in ("float", "double", "half", "long", "int", "short", "bool", "cfloat", "cdouble"):
        methods[name] = members.formatted(getattr(dtypes, name))
    methods["byte"], methods["char"] = members.formatted(dtypes.uint8), members.formatted(dtypes.int8)
    assert set(i) <= set(methods)
    for name, method in methods.items():
        setattr(Tensor, name, method)
