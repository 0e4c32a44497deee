"""Installs the functions of `torch`, and the methods and operators of the tensor, from the rows of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import linalg
from gradcli.eager._core import devices, dtypes
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import backward as sweep
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.arguments import Operand, checked
from gradcli.eager._engine.record import TO_COPY, apply, cast, fitted, with_gradient
from gradcli.eager._engine.rule_node import OPERANDS
from gradcli.eager._ops import (
    complex_tensors,
    elementwise,
    inplace,
    matmul,
    subscripts,
    tensor_creation,
    tensor_joining,
    tensor_reductions,
    views,
)
from gradcli.eager._ops.table import FUNCTION, LINALG, METHOD, OperationEntry, functions_of, saved_by
from gradcli.primitives import catalogue


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
    for wanted in map(dtypes.meant, args):
        if isinstance(wanted, dtypes.dtype):
            dtype = wanted
        elif isinstance(wanted, Tensor):
            dtype = wanted.dtype
            device = wanted.device
        elif not isinstance(wanted, bool):
            device = wanted
    if device is not None and devices.device(device) != self.device:
        self = _carried(self, device)
    if dtype is None or dtype is self.dtype:
        return views.clone(self) if copy else self
    return cast(self, dtype)


def _carried(x: Tensor, to: Any) -> Tensor:
    """A copy on another device; the gradient is carried back."""
    home = x.device
    return with_gradient(Tensor(devices.moved(x._array, to)), (x,), TO_COPY, lambda ct: (_carried(ct, home),))


def where(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """The entries where the condition holds, else those of `other`."""
    return elementwise.where(condition, self, other)  # type: ignore[no-any-return]


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor type, or the tensor in another format."""
    if dtype is not None:
        kind = getattr(dtype, "dtype", dtype)  # torch.FloatTensor and the like
        if isinstance(dtype, Tensor) or not isinstance(kind, (str, dtypes.dtype)):
            raise TypeError("dtype must be a type, str, or dtype object")
        if isinstance(kind, str):
            word = kind.rpartition(".")[2]
            known = {text: x for x, name in dtypes.TENSOR_NAMES.items() for text in (name, x.name)}
            if word not in known:
                raise ValueError(f"invalid type: {kind!r}")
            kind = known[word]
        return to(self, kind)
    return f"torch.{dtypes.TENSOR_NAMES[self.dtype]}"


def storage_offset(self: Tensor) -> int:
    """Where in the memory of its base a view begins, counted in entries."""
    base = self if self._base is None else self._base
    start = [x._array.__array_interface__["data"][0] for x in (self, base)]
    return int((start[0] - start[1]) // self._array.itemsize)


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


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the format of another one."""
    return to(self, other)


def iterated(self: Tensor) -> Any:
    """The parts along the first axis."""
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(tensor_joining.unbind(self))


def _formatted(kind: dtypes.dtype) -> Any:
    return lambda self: cast(self, kind)


def _steps(self: Tensor) -> tuple[int, ...]:
    return tuple([step // self._array.itemsize for step in self._array.strides])


# methods and properties that are one expression
_SHORT: dict[str, Any] = {
    "__hash__": lambda self: id(self),
    "is_nonzero": lambda self: bool(self),
    "__pos__": lambda self: self,
    "__complex__": lambda self: complex(self.item()),
    "__reversed__": lambda self: tensor_joining.flip(self, 0) if self.ndim else self,
    "stride": lambda self, dim=None: _steps(self) if dim is None else _steps(self)[dim],
    "size": lambda self, dim=None: self.shape if dim is None else self.shape[dim],
    **dict.fromkeys(("dim", "ndimension"), lambda self: int(self._raw.ndim)),
    "nelement": views.ROWS["numel"],
    "element_size": lambda self: self.dtype.itemsize,
    "is_signed": lambda self: self._raw.dtype.kind not in "ub",
    "is_contiguous": lambda self: bool(self._array.flags.c_contiguous),
    "_is_view": lambda self: self._base is not None,
    "cpu": lambda self: to(self, "cpu"),
    "cuda": lambda self, device=None, non_blocking=False: to(self, "cuda" if device is None else device),
    "__contains__": lambda self, value: bool((self._raw == (value._raw if isinstance(value, Tensor) else value)).any()),
}
_PROPERTIES: dict[str, Any] = {
    "T": views.reversed_axes,
    "mT": matrix_transpose,
    **dict.fromkeys(("H", "mH"), lambda self: matrix_transpose(complex_tensors.conj(self))),
    "real": complex_tensors.real,
    "imag": complex_tensors.imag,
    "is_cuda": lambda self: self.device.type == "cuda",
    **dict.fromkeys(("is_sparse", "is_meta"), lambda self: False),
    "itemsize": lambda self: self.dtype.itemsize,
    "nbytes": lambda self: self._raw.size * self.dtype.itemsize,
}


def _operator(function: Any, swapped: bool = False, other_kinds: Any = NotImplemented) -> Any:
    """An operator of a tensor and a tensor or number; `other_kinds` is its answer to anything else."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float, complex, np.generic)):
            return other_kinds
        return function(other, self) if swapped else function(self, other)

    return method


OPERATIONS = functions_of(
    *(linalg, elementwise, tensor_reductions, views, tensor_joining, subscripts),
    *(matmul, complex_tensors, tensor_creation, inplace),
)
IN_PLACE = {f"{name}_": inplace.form_of(function) for name, function in OPERATIONS.items() if function.row.inplace}


def functions() -> dict[str, Any]:
    """The functions of `torch` by name: operations, and the `_` forms of those of one number."""
    named = {name: function for name, function in OPERATIONS.items() if _belongs(name, function.row, FUNCTION)}
    rules = {form: getattr(OPERATIONS[form[:-1]], "rule", OPERATIONS[form[:-1]]) for form in IN_PLACE}
    forms = {
        form: IN_PLACE[form]
        for form, rule in rules.items()
        if rule.__code__.co_argcount - len(rule.__defaults__ or ()) == 1
    }
    return {name: checked(function) for name, function in {**named, **forms}.items()}


def _belongs(name: str, row: OperationEntry, place: str) -> bool:
    return row.only in ("", place) or (row.only == LINALG and name != row.name)


def equip() -> None:
    """Give the tensor its methods and operators, and nodes the names of what they save."""
    OPERANDS.update({node: saved_by(function) for function in OPERATIONS.values() for node in function.row.nodes})
    methods: dict[str, Any] = {
        name: function for name, function in OPERATIONS.items() if _belongs(name, function.row, METHOD)
    }
    methods.update(IN_PLACE)
    methods.update(tensor_creation.METHODS)
    methods = {
        name: function if getattr(function, "row", None) and function.row.fast else checked(function, method=True)
        for name, function in methods.items()
    }
    p = OPERATIONS
    for name in ("add", "sub", "mul", "div"):
        sign, primitive = "truediv" if name == "div" else name, catalogue()[name]
        short = fastpath.binary(f"__{sign}__", primitive, primitive.node_name({}), _operator(p[name]))
        methods.update({f"__{sign}__": short, f"__i{sign}__": _operator(IN_PLACE[f"{name}_"])})
        if name in ("add", "mul"):
            methods[f"__r{sign}__"] = short
    for name in ("pow", "mod", "floordiv", "lt", "le", "gt", "ge"):
        function = p[{"mod": "remainder", "floordiv": "floor_divide"}.get(name, name)]
        methods[f"__{name}__"] = _operator(function)
        if name in ("pow", "floordiv"):
            methods[f"__r{name}__"] = _operator(function, swapped=True)
    methods.update(__ipow__=_operator(IN_PLACE["pow_"]), __imod__=_operator(IN_PLACE["remainder_"]))
    methods.update(__rsub__=_operator(p["rsub"]), __rtruediv__=_operator(elementwise.true_divide, swapped=True))
    methods.update(__eq__=_operator(p["eq"], other_kinds=False), __ne__=_operator(p["ne"], other_kinds=True))
    methods.update({f"__{name}__": p[f"bitwise_{name}"] for name in ("and", "or", "xor")})
    methods.update(__neg__=p["neg"], __abs__=p["abs"], __invert__=p["bitwise_not"], __matmul__=matmul.matmul)
    methods.update(__iter__=iterated)
    methods.update(backward=backward, register_hook=sweep.hook_on, retain_grad=sweep.retain, __reduce_ex__=reduce)
    methods.update(bind=staticmethod(apply), _entries=staticmethod(tensor_creation.entries_of))
    methods.update(_take_over=inplace.renew, _fitted=fitted, to=to, type=type_)
    methods.update({f.__name__: checked(f, method=True) for f in (where, type_as)})
    methods.update(bernoulli=tensor_creation.bernoulli, multinomial=checked(tensor_creation.multinomial, method=True))
    methods.update(requires_grad_=Tensor.requires_grad_, storage_offset=storage_offset, **_SHORT)
    for name in ("float", "double", "half", "long", "int", "short", "bool", "cfloat", "cdouble", "uint8", "int8"):
        methods[{"uint8": "byte", "int8": "char"}.get(name, name)] = _formatted(getattr(dtypes, name))
    methods.update({name: property(function) for name, function in _PROPERTIES.items()})
    for name, method in methods.items():
        setattr(Tensor, name, method)
