"""Installs the functions of `torch`, and the methods and operators of the tensor, from the rows of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import linalg
from gradcli.eager._core import devices, dtypes
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import backward as sweep
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.arguments import checked, grouped
from gradcli.eager._engine.record import apply, cast, fitted, with_gradient
from gradcli.eager._ops import (
    complex_numbers,
    creation,
    elementwise,
    indexing,
    inplace,
    joining,
    matmul,
    reductions,
    views,
)
from gradcli.eager._ops.table import ENTRIES, FUNCTION, LINALG, METHOD, Op, functions_of
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager._engine.arguments import Operand


def backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the gradient of this tensor into the `.grad` of the leaves."""
    sweep.backward(self, gradient, retain_graph, create_graph, inputs)


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
        return views.clone(self) if copy else self
    return cast(self, dtype)


def _carried(x: Tensor, to: Any) -> Tensor:
    """A copy on another device; the gradient is carried back."""
    home = x.device
    return with_gradient(Tensor(devices.moved(x._array, to)), (x,), "ToCopyBackward0", lambda ct: (_carried(ct, home),))


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a GPU; AssertionError where there is none."""
    return to(self, "cuda" if device is None else device)


def where(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """The entries where the condition holds, else those of `other`."""
    found: Tensor = elementwise.where(condition, self, other)
    return found


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the format of another one."""
    return to(self, other)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return views.view(self, tuple(other.shape))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The entries in the shape of another tensor."""
    return views.reshape(self, tuple(other.shape))


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


def matrix_transpose(self: Tensor) -> Tensor:
    """`.mT`: the last two axes exchanged."""
    if self.ndim == 1:
        raise RuntimeError(".mT needs a matrix, or a stack of them")
    return views.transpose(self, -2 if self.ndim else -1, -1)


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
    return views.view(self, *given) if size is None else views.view(self, size)


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


def _number(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex, np.generic))


def _operator(function: Any, swapped: bool = False) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not _number(other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return method


def _in_place(name: str) -> Any:
    function = IN_PLACE[name]

    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if _number(other) else NotImplemented

    return method


def _equal(self: Tensor, other: Any) -> Any:
    return OPERATIONS["eq"](self, other) if _number(other) else False


def _not_equal(self: Tensor, other: Any) -> Any:
    return OPERATIONS["ne"](self, other) if _number(other) else True


OPERATIONS = functions_of(
    *(linalg, elementwise, reductions, views, joining, indexing, matmul),
    *(complex_numbers, creation),
)
IN_PLACE = {f"{name}_": inplace.form_of(function) for name, function in OPERATIONS.items() if function.row.inplace}
IN_PLACE.update(inplace.FORMS)
_MORE_FORMS = (
    "zero_",
    "fill_",
    "detach_",
    "clamp_min_",
    "clamp_max_",
    "index_put_",
    "xlogy_",
    "threshold_",
    "addmv_",
)


def functions() -> dict[str, Any]:
    """The functions of `torch` by name: operations, and the `_` forms of those of one number."""
    found = {name: function for name, function in OPERATIONS.items() if _is_found(name, function.row, FUNCTION)}
    forms = {name: form for name, form in IN_PLACE.items() if _is_of_one(name) or name in _MORE_FORMS}
    grouped_by = {"reshape": "shape", "permute": "dims", "flip": "dims", "tile": "dims"}
    found.update({name: grouped(found[name], word) for name, word in grouped_by.items()})
    return {name: checked(function) for name, function in {**found, **forms}.items()}


def _is_of_one(form: str) -> bool:
    """Whether a `_` form needs no argument but the tensor."""
    function = OPERATIONS.get(form[:-1])
    if function is None or function.row.inplace != ENTRIES:
        return False
    return bool(function.__code__.co_argcount - len(function.__defaults__ or ()) == 1)


def _is_found(name: str, row: Op, place: str) -> bool:
    return row.only in ("", place) or (row.only == LINALG and name != row.name)


def equip() -> None:
    """Give the tensor its methods and operators."""
    methods: dict[str, Any] = {
        name: function for name, function in OPERATIONS.items() if _is_found(name, function.row, METHOD)
    }
    methods.update(IN_PLACE)
    methods.update(creation.METHODS)
    methods = {
        name: function if getattr(function, "row", None) and function.row.fast else checked(function, method=True)
        for name, function in methods.items()
    }
    p = OPERATIONS
    for name, sign in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv")):
        primitive = catalogue()[name]
        short = fastpath.binary(f"__{sign}__", primitive, primitive.node_name({}), _operator(p[name]))
        methods[f"__{sign}__"] = short
        if name in ("add", "mul"):
            methods[f"__r{sign}__"] = short
        methods[f"__i{sign}__"] = _in_place(f"{name}_")
    methods["__pow__"], methods["__ipow__"] = _operator(p["pow"]), _in_place("pow_")
    methods["__rsub__"] = _operator(p["rsub"])
    methods["__rtruediv__"] = _operator(elementwise.true_divide, swapped=True)
    methods["__rpow__"] = _operator(p["pow"], swapped=True)
    methods["__mod__"] = _operator(p["remainder"])
    methods["__imod__"] = _in_place("remainder_")
    methods["__floordiv__"] = _operator(OPERATIONS["floor_divide"])
    methods["__rfloordiv__"] = _operator(OPERATIONS["floor_divide"], swapped=True)
    for name in ("lt", "le", "gt", "ge"):
        methods[f"__{name}__"] = _operator(p[name])
    methods.update(__eq__=_equal, __ne__=_not_equal, __hash__=lambda self: id(self))
    methods.update(__neg__=p["neg"], __abs__=p["abs"], __pos__=lambda self: self, __invert__=elementwise.inverted)
    methods.update({f"__{name}__": p[f"bitwise_{name}"] for name in ("and", "or", "xor")})
    methods["__matmul__"] = matmul.matmul
    methods["__getitem__"], methods["__setitem__"] = indexing.getitem, inplace.setitem
    methods.update(backward=backward, register_hook=sweep.hook_on, retain_grad=sweep.retain)
    methods.update(bind=staticmethod(apply), _entries=staticmethod(creation.entries_of))
    methods.update(_take_over=inplace.renew, _fitted=fitted)
    methods["__iter__"] = iterated
    methods["__reversed__"] = reversed
    methods["T"], methods["mT"] = property(views.reversed_axes), property(matrix_transpose)
    methods["H"] = methods["mH"] = property(views.adjoint)
    methods["real"], methods["imag"] = property(complex_numbers.real, set_real), property(complex_numbers.imag)
    methods["is_cuda"] = property(lambda self: self.device.type == "cuda")
    methods["itemsize"] = property(lambda self: self.dtype.itemsize)
    methods["is_sparse"] = methods["is_meta"] = property(lambda self: False)
    methods["nbytes"] = property(lambda self: self._raw.size * self.dtype.itemsize)
    methods.update(
        to=to,
        cuda=cuda,
        where=checked(where, method=True),
        type=type_,
        stride=stride,
        storage_offset=storage_offset,
    )
    methods.update(cpu=lambda self: to(self, "cpu"), is_floating_point=lambda self: self.dtype.is_floating_point)
    methods.update(numel=lambda self: int(self._raw.size), nelement=lambda self: int(self._raw.size))
    methods.update(
        dim=rank,
        ndimension=rank,
        size=size,
        type_as=checked(type_as, method=True),
        view_as=checked(view_as, method=True),
        reshape_as=checked(reshape_as, method=True),
    )
    methods.update(element_size=lambda self: self.dtype.itemsize, _is_view=lambda self: self._base is not None)
    methods.update(__contains__=contains, __reduce_ex__=reduce, is_signed=is_signed)
    methods.update(bernoulli=creation.bernoulli, multinomial=checked(creation.multinomial, method=True))
    methods.update(view=view, requires_grad_=Tensor.requires_grad_, __complex__=lambda self: complex(self.item()))
    methods.update(is_nonzero=bool)
    # tensors of one process: memory is shared as it is, and never pinned
    methods.update(share_memory_=lambda self: self, is_shared=lambda self: True, is_pinned=lambda self: False)
    methods.update(is_contiguous=lambda self: bool(self._array.flags.c_contiguous))
    for name in ("float", "double", "half", "long", "int", "short", "bool", "cfloat", "cdouble"):
        methods[name] = formatted(getattr(dtypes, name))
    methods["byte"], methods["char"] = formatted(dtypes.uint8), formatted(dtypes.int8)
    for name, method in methods.items():
        setattr(Tensor, name, method)
