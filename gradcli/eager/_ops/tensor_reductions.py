"""Reductions: sums, means, extremes, norms, counts and everything else along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core import dtypes, tracer
from gradcli.eager._core.events import noted
from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Dims, Number, Operand, Order, Sizes, Spread
from gradcli.eager._engine.record import apply, cast, declared, fields, one_node, operation, record
from gradcli.eager._ops.complex_tensors import abs_
from gradcli.eager._ops.elementwise import ROWS
from gradcli.eager._ops.table import FUNCTION, LINALG, described, formula, op
from gradcli.eager._ops.views import axis_of, length_of
from gradcli.primitives import catalogue

Axes = int | tuple[int, ...] | None


def axes_of(dim: Any) -> Axes:
    """The axes that `dim` names; None for all of them."""
    return (tuple(dim) or None) if isinstance(dim, (list, tuple)) else dim


def reduced(
    name: str, x: Tensor, dim: Any, keepdim: bool, node: str, keep_integer: bool = False, **more: Any
) -> Tensor:
    params = {"axis": axes_of(dim), "keepdims": keepdim, **more}
    return record(operation(name), (x,), params, node, keep_integer=keep_integer)


def converted(input: Tensor, dtype: dtypes.dtype | None, whole: bool = False) -> Tensor:
    """The tensor in the format that a reduction computes in; `whole`: all whole numbers are added up as long ones."""
    if dtype is None:
        return cast(input, dtypes.int64) if whole and input.dtype.kind < 2 else input
    return cast(input, dtype)


@op(node="SumBackward0 SumBackward1")
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The sum of the entries, over all axes or some."""
    input = converted(input, dtype, True)
    total = reduced("sum", input, dim, keepdim, sum.row.nodes[dim is not None], keep_integer=True)
    return total if dtype is None else cast(total, dtype)


@op(node="MeanBackward0 MeanBackward1")
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The average of the entries; RuntimeError for whole numbers."""
    input = converted(input, dtype)
    if input.dtype.kind < 2:
        raise RuntimeError(f"mean() needs a floating point dtype, and this is {input.dtype}")
    return reduced("mean", input, dim, keepdim, mean.row.nodes[dim is not None])


def _spread_of(name: str, summary: str) -> Any:
    """`var` or `std`, divided by the number of entries less `correction`."""

    @op(name=name, node=f"{name.capitalize()}Backward0")
    def function(
        input: Tensor, dim: Spread = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Tensor:
        if isinstance(dim, bool):  # var(False): the old signature
            unbiased, dim = dim, None
        ddof = int(unbiased) if unbiased is not None else 1 if correction is None else correction
        if input.dtype.kind < 2:
            raise RuntimeError(f"{name} only supports floating point and complex dtypes, and this is {input.dtype}")
        axes = axes_of(dim)
        along: Any = axes if isinstance(axes, tuple) else (axes,)
        if (input._raw.size if axes is None else np.prod([length_of(input, i) for i in along])) <= ddof:
            warn(f"{name}(): degrees of freedom is <= 0: no more entries than the correction", UserWarning)
            return record(_undefined, (input,), {"axis": axes, "keepdims": keepdim}, function.node)
        return reduced(name, input, dim, keepdim, function.node, ddof=ddof)

    return described(function, name, summary)


def _with_mean(spread: Any) -> Any:
    name = f"{spread.__name__}_mean"

    @op(name=name, node=f"{spread.__name__.capitalize()}MeanBackward0", only=FUNCTION)
    def function(input: Tensor, dim: Spread = None, *args: Any, keepdim: bool = False, **options: Any) -> Any:
        middle = mean(input, None if isinstance(dim, bool) else dim, keepdim)
        return one_node(function.node, spread(input, dim, *args, keepdim=keepdim, **options), middle)

    return described(function, name, f"`{spread.__name__}` and the mean.")


var = _spread_of("var", "The variance, divided by the number of entries less `correction`.")
std = _spread_of("std", "The square root of the variance.")
var_mean, std_mean = _with_mean(var), _with_mean(std)


def _undefined(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return declared("mean", (x - x) / (x - x), axis=axis, keepdims=keepdims)


@op(node="ProdBackward0 ProdBackward1")
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The product of the entries."""
    input = converted(input, dtype, True)
    product = reduced("prod", input, dim, keepdim, prod.row.nodes[dim is not None], keep_integer=True)
    return product if dtype is None else cast(product, dtype)


def _truth(name: str, summary: str) -> Any:
    def function(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        truth = np.asarray(getattr(np, name)(input._array, axis=axes_of(dim), keepdims=keepdim))
        return noted(name, (input,), Tensor(truth))

    return op()(described(function, name, summary))


all, any = _truth("all", "Whether every entry is not zero."), _truth("any", "Whether some entry is not zero.")


@formula(pointwise=False)
def logsumexp(input: Tensor, dim: Sizes, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials."""
    return declared("logsumexp", input, axis=axes_of(dim), keepdims=keepdim)


@op()
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many entries are not zero."""
    return Tensor(np.asarray(np.count_nonzero(input._array, axis=axes_of(dim))))


def _shares(name: str, summary: str) -> Any:
    def function(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Any:
        return declared(name, input, axis=dim)

    return formula(pointwise=False, least=2)(described(function, name, summary))


softmax = _shares("softmax", "Exponentials divided by their sum along an axis.")
log_softmax = _shares("log_softmax", "The logarithm of softmax.")


def _running(name: str, summary: str) -> Any:
    def function(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None) -> Any:
        axis = axis_of(dim, len(input.shape))
        return declared(name, input, axis=axis) if input.shape else input

    return formula(pointwise=False, whole=True, inplace=True)(described(function, name, summary))


cumsum = _running("cumsum", "Running sums along an axis.")
cumprod = _running("cumprod", "Running products along an axis.")


def _shared(name: str, which: str) -> Any:
    def function(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Any:
        return declared(name, input, axis=axes_of(dim), keepdims=keepdim)

    row = formula(pointwise=False, whole=True)
    return row(described(function, name, f"The {which} entry; several share the gradient."))


amax, amin = _shared("amax", "largest"), _shared("amin", "smallest")


def chosen(x: Tensor, at: Tensor, dim: int, node: str, keepdim: bool = True) -> Any:
    """The entries at positions along an axis, which has size 1 or more in `at`; the gradient goes to them alone."""
    if not x.ndim:
        values = record(itself, (x,), {}, node, keep_integer=True)
        return entries_at(node, values, noted("indices", (x,), Tensor(np.int64(0))))
    params = {"axis": axis_of(dim, x.ndim), "kept": keepdim}
    values = record(_taken, (x, at), params, node, keep_integer=True, keep_dtype=(1,))
    if not keepdim:
        at = at.reshape(tuple(values.shape)) if tracer.traced((at,)) else Tensor(at._array.reshape(values._raw.shape))
    return entries_at(node, values, noted("indices", (x,), at))


def entries_at(node: str, values: Tensor, indices: Tensor) -> Any:
    """Entries and their positions, in the type of the operation of a node: `SortBackward0` gives that of `sort`."""
    return fields(node.partition("Backward")[0].lower(), "values indices")(values, indices)


def itself(x: Any) -> Any:
    """A graph operand as it is."""
    return x


def _taken(x: Any, index: Any, *, axis: int, kept: bool) -> Any:
    taken = catalogue()["take_along"](x, index, axis=axis)
    if kept:
        return taken
    rank = len(taken.shape)
    return catalogue()["reshape"](taken, shape=tuple(n for i, n in enumerate(taken.shape) if i != rank + axis))


def _extreme(name: str, which: str) -> tuple[Any, Any]:
    """`max` and `argmax`, or `min` and `argmin`."""

    @op(name=name, node=f"{name.capitalize()}Backward0 {name.capitalize()}Backward1")
    def function(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return ROWS[f"{name}imum"](input, dim)
        if dim is None:
            return record(operation(name), (input,), {}, function.row.nodes[1], keep_integer=True)
        at = _positions(f"arg{name}", input, dim, keepdims=True)
        return chosen(input, at, dim, function.node, keepdim)

    def position(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return noted(f"arg{name}", (input,), _positions(f"arg{name}", input, dim, keepdim))

    summary = f"The {which} entry; along an axis also its position; of two tensors entry by entry."
    return described(function, name, summary), op(least=1)(
        described(position, f"arg{name}", f"The position of the {which} entry, the first of several.")
    )


(max, argmax), (min, argmin) = _extreme("max", "largest"), _extreme("min", "smallest")


@op(node="SortBackward0")
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """The entries in order along an axis, and where they stood."""
    return chosen(input, order_along(input, dim, descending), dim, sort.node)


def order_along(x: Tensor, dim: int, descending: bool) -> Tensor:
    """Where the entries of an ordered axis stood."""
    if tracer.traced((x,)):
        keys = apply(catalogue()["neg"], (x,), {}) if descending else x
        axis = dim - x._raw.ndim if dim >= 0 else dim
        return record(catalogue()["argsort"], (keys,), {"axis": axis}, "argsort")
    array = np.atleast_1d(x._array)
    if descending:  # NaN first, and equal entries as they stood
        order = np.argsort(np.flip(array, dim), axis=dim, kind="stable")
        order = np.flip(array.shape[dim] - 1 - order, dim)
    else:
        order = np.argsort(array, axis=dim, kind="stable")
    return Tensor(order.reshape(x._raw.shape))


def _positions(name: str, x: Tensor, dim: int | None, keepdims: bool) -> Tensor:
    """The position of the largest or smallest entry: an operation of its own while a function is recorded."""
    if tracer.traced((x,)):
        params = {"axis": dim, "keepdims": keepdims}
        return record(operation(name), (x,), params, name, keep_integer=True)
    if not x._raw.size and dim is None:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0")
    return Tensor(np.asarray(getattr(np, name)(x._array, axis=dim, keepdims=keepdims)))


@op(only=LINALG, node="LinalgVectorNormBackward0", saves="self")
def vector_norm(x: Tensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The p-norm of the entries: the p-th root of the sum of p-th powers; the largest for inf, the count for 0."""
    x = converted(x, dtype)
    if x.dtype.kind < 2:
        raise RuntimeError(f"norm() expected a floating point or complex tensor as input, got {x.dtype}")
    if x.dtype.kind == 3:
        x = abs_(x)
    params = {"ord": float(ord), "axis": axes_of(dim), "keepdims": keepdim}
    return record(graph_norm, (x,), params, vector_norm.node)


def graph_norm(x: Any, *, ord: float, axis: Any, keepdims: bool) -> Any:
    """The p-norm in graph operations."""
    known, how = catalogue(), {"axis": axis, "keepdims": keepdims}
    if ord == 2:
        return declared("norm", x, **how)
    size = known["abs"](x)
    if ord in (float("inf"), float("-inf")):
        return declared("amax" if ord > 0 else "amin", size, **how)
    if ord == 1:
        return declared("sum", size, **how)
    if ord == 0:
        return declared("sum", known["abs"](known["sign"](x)), **how)
    total = declared("sum", size ** int(ord) if ord == int(ord) else known["pow"](size, ord), **how)
    return known["pow"](total, 1 / ord)


@op()
def norm(
    input: Tensor, p: Order = "fro", dim: Dims = None, keepdim: bool = False, dtype: dtypes.dtype | None = None
) -> Tensor:
    """The p-norm of the entries, over all axes or some."""
    if p is None or p == "fro":
        p = 2
    elif isinstance(p, str):
        raise RuntimeError(f"norm() takes 'fro' and numbers, not {p!r}; torch.linalg.matrix_norm has 'nuc'")
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


@op()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different entries in ascending order; with where they stood, and how often."""
    entries, inverse, counts = np.unique(input._array, return_inverse=True, return_counts=True, axis=dim)
    values = noted("unique", (input,), Tensor(entries))
    if not return_inverse and not return_counts:
        return values
    shape = input._raw.shape if dim is None else (input.shape[dim],)
    more = [Tensor(inverse.reshape(shape).astype(np.int64))] if return_inverse else []
    return (values, *more, *([Tensor(counts.astype(np.int64))] if return_counts else []))


@op()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number occurs, or the sum of its weights."""
    if input.dtype.kind != 1:
        raise NotImplementedError(f"bincount is not implemented for {input.dtype}: it needs whole numbers")
    if input.ndim != 1:
        raise RuntimeError("bincount() needs a vector of whole numbers that are not negative")
    counted = np.bincount(input._array, None if weights is None else weights._array, minlength)
    single = weights is not None and weights._raw.dtype == np.float32
    return noted("bincount", (input,), Tensor(counted.astype(np.float32) if single else counted))


@op("argwhere")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where entries are not zero: a row for each of them, or a vector for each axis."""
    if as_tuple:
        return tuple([noted("nonzero", (input,), Tensor(at)) for at in np.nonzero(np.atleast_1d(input._array))])
    return noted("nonzero", (input,), Tensor(np.argwhere(input._array)))


@op()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the entries of an ordered axis stood."""
    return noted("argsort", (input,), order_along(input, dim, descending))


@op(only=FUNCTION)
def searchsorted(sorted_sequence: Tensor, input: Operand, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """Where values would have to be put into an ordered vector."""
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    return Tensor(np.asarray(np.searchsorted(sorted_sequence._array, values, "right" if right else "left")))


class iinfo:
    """The limits of a format of whole numbers."""

    def __init__(self, type: dtypes.dtype) -> None:
        if getattr(type, "kind", 2) != 1:
            raise TypeError(f"iinfo() needs a dtype of whole numbers, not {type}")
        known = np.iinfo(type.np)
        self.bits, self.min, self.max, self.dtype = int(known.bits), int(known.min), int(known.max), type.name


class finfo:
    """The limits of a float format."""

    def __init__(self, type: dtypes.dtype | None = None) -> None:
        kind = type or dtypes.get_default_dtype()
        if getattr(kind, "kind", 0) < 2:
            raise TypeError(f"finfo() needs a floating point dtype, not {kind}")
        known = np.finfo(kind.np)
        self.bits, self.dtype = int(known.bits), kind.name
        self.eps, self.max, self.min = float(known.eps), float(known.max), float(known.min)
        self.tiny = self.smallest_normal = float(known.tiny)
        self.resolution = float(known.resolution)
