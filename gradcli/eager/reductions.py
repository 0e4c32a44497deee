"""Functions over axes: a tensor goes in, sums, means, extremes and matrix products come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager import dtypes, tracing
from gradcli.eager.dispatch import cast, record
from gradcli.eager.recorder import noted
from gradcli.eager.returned import named, of_node
from gradcli.eager.several import one_node
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Dims

Axes = int | tuple[int, ...] | None


def axes_of(dim: Any) -> Axes:
    """The axes that `dim` names; None for all of them."""
    return (tuple(dim) or None) if isinstance(dim, (list, tuple)) else dim


def _reduced(name: str, x: Tensor, dim: Any, keepdim: bool, node: str, whole: bool = False, **more: Any) -> Tensor:
    params = {"name": name, "axis": axes_of(dim), "keepdims": keepdim, **more}
    return record(called, (x,), params, node, whole=whole)


def called(x: Any, *, name: str, **params: Any) -> Any:
    """A declared function by its script name, in NumPy's signature."""
    primitive = catalogue()[name]
    return (primitive.call or primitive.definition)(x, **params)  # type: ignore[misc]


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The sum of the entries, over all axes or some."""
    if input.dtype.kind < 2:
        input = cast(input, dtypes.int64)
    return _reduced("sum", input, dim, keepdim, "SumBackward0" if dim is None else "SumBackward1", whole=True)


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The average of the entries; RuntimeError for whole numbers."""
    if input.dtype.kind < 2:
        raise RuntimeError(f"mean() needs a floating point dtype, and this is {input.dtype}")
    return _reduced("mean", input, dim, keepdim, "MeanBackward0" if dim is None else "MeanBackward1")


def _need_point(name: str, x: Tensor) -> None:
    if x.dtype.kind < 2:
        raise RuntimeError(f"{name} only supports floating point and complex dtypes, and this is {x.dtype}")


def _ddof(correction: Any, unbiased: Any, dim: Any) -> tuple[int, Any]:
    """PyTorch's two ways to say what the number of entries is lowered by."""
    if isinstance(dim, bool):  # var(False): the old signature
        unbiased, dim = dim, None
    if unbiased is not None:
        return int(unbiased), dim
    return 1 if correction is None else correction, dim


def _count(x: Tensor, dim: Any) -> int:
    axes = axes_of(dim)
    if axes is None:
        return int(x._raw.size)
    return int(np.prod([x.shape[i] for i in (axes if isinstance(axes, tuple) else (axes,))]))


def _spread(name: str, node: str, x: Tensor, dim: Any, keepdim: bool, correction: Any, unbiased: Any) -> Tensor:
    ddof, dim = _ddof(correction, unbiased, dim)
    _need_point(name, x)
    if _count(x, dim) <= ddof:
        warn(f"{name}(): degrees of freedom is <= 0: fewer entries than the correction asks for", UserWarning)
        params = {"axis": axes_of(dim), "keepdims": keepdim}
        return record(_undefined, (x,), params, node, pointwise=False)
    return _reduced(name, x, dim, keepdim, node, ddof=ddof)


def _undefined(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return called((x - x) / (x - x), name="sum", axis=axis, keepdims=keepdims)


def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The variance, divided by the number of entries less `correction`."""
    return _spread("var", "VarBackward0", input, dim, keepdim, correction, unbiased)


def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The square root of the variance."""
    return _spread("std", "StdBackward0", input, dim, keepdim, correction, unbiased)


def var_mean(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    _need_point("var_mean", input)
    first = _reduced("var", input, dim, keepdim, "VarMeanBackward0", ddof=correction)
    both = one_node("VarMeanBackward0", first, _reduced("mean", input, dim, keepdim, "VarMeanBackward0"))
    return both[0], both[1]


def std_mean(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    _need_point("std_mean", input)
    first = _reduced("std", input, dim, keepdim, "StdMeanBackward0", ddof=correction)
    both = one_node("StdMeanBackward0", first, _reduced("mean", input, dim, keepdim, "StdMeanBackward0"))
    return both[0], both[1]


def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The sum of the entries that are numbers."""
    if input.dtype.kind < 2:
        return sum(input, dim, keepdim)
    missing = Tensor(np.isnan(input._raw))
    params = {"axis": axes_of(dim), "keepdims": keepdim}
    return record(_nansum, (input, missing), params, "NansumBackward0", apart=(1,), edges=1, pointwise=False)


def _nansum(x: Any, missing: Any, *, axis: Any, keepdims: bool) -> Any:
    return called(
        catalogue()["where"](missing, x.builder.constant(0, x.shape), x), name="sum", axis=axis, keepdims=keepdims
    )


class Extremes(NamedTuple):
    """The smallest and the largest entry."""

    min: Tensor
    max: Tensor


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest entry."""
    low = _reduced("amin", input, dim, keepdim, "AminmaxBackward0", whole=True)
    high = _reduced("amax", input, dim, keepdim, "AminmaxBackward0", whole=True)
    return named(Extremes, "aminmax")(*one_node("AminmaxBackward0", low, high))


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The product of the entries."""
    if input.dtype.kind < 2:
        input = cast(input, dtypes.int64)
    return _reduced("prod", input, dim, keepdim, "ProdBackward0" if dim is None else "ProdBackward1", whole=True)


def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest entry; several share the gradient."""
    return _reduced("amax", input, dim, keepdim, "AmaxBackward0", whole=True)


def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest entry; several share the gradient."""
    return _reduced("amin", input, dim, keepdim, "AminBackward0", whole=True)


class Found(NamedTuple):
    """Entries and their positions."""

    values: Tensor
    indices: Tensor


def _chosen(x: Tensor, positions: Any, dim: int, node: str, keepdim: bool) -> Found:
    """The entries at positions along an axis, which keep their node's gradient to themselves."""
    axis = dim - x._array.ndim if dim >= 0 else dim
    found = record(
        _taken, (x, Tensor(positions)), {"axis": axis, "kept": keepdim}, node, whole=True, apart=(1,), edges=1
    )
    at = Tensor(positions if keepdim else np.asarray(positions.squeeze(axis)))
    return of_node(Found, node)(found, noted("indices", (x,), at))


def _taken(x: Any, index: Any, *, axis: int, kept: bool) -> Any:
    found = catalogue()["take_along"](x, index, axis=axis)
    rank = len(found.shape)
    return (
        found
        if kept
        else catalogue()["reshape"](found, shape=tuple(n for i, n in enumerate(found.shape) if i != rank + axis))
    )


def _extreme(name: str, x: Tensor, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, Tensor):
        from gradcli.eager.pointwise import TABLE

        return TABLE[f"{name}imum"](x, dim)
    if dim is None:
        return record(_whole_extreme, (x,), {"name": name}, f"{name.capitalize()}Backward1", whole=True)
    if tracing.current is not None and tracing.traced((x,)):
        place = _place_of(f"arg{name}", x, dim, True)
        params = {"axis": dim - x.ndim if dim >= 0 else dim, "kept": keepdim}
        node = f"{name.capitalize()}Backward0"
        found = record(_taken, (x, place), params, node, whole=True, apart=(1,), edges=1)
        shown: Tensor = place if keepdim else place.reshape(tuple(found.shape))
        return named(Found, name)(found, shown)
    at = np.expand_dims(getattr(np, f"arg{name}")(x._array, axis=dim), dim)
    return _chosen(x, at, dim, f"{name.capitalize()}Backward0", keepdim)


def _whole_extreme(x: Any, *, name: str) -> Any:
    call = catalogue()[name].call
    assert call is not None
    return call(x)


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest entry; along an axis also its position; of two tensors entry by entry."""
    return _extreme("max", input, dim, keepdim)


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest entry; along an axis also its position; of two tensors entry by entry."""
    return _extreme("min", input, dim, keepdim)


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> Found:
    """The entries in order along an axis, and where they stood."""
    if tracing.current is not None and tracing.traced((input,)):
        axis = dim - input._raw.ndim if dim >= 0 else dim
        keys = record(catalogue()["neg"], (input,), {}, "NegBackward0") if descending else input
        at = record(catalogue()["argsort"], (keys,), {"axis": axis}, "argsort", pointwise=False)
        params = {"axis": axis, "kept": True}
        found = record(_taken, (input, at), params, "SortBackward0", whole=True, apart=(1,), edges=1)
        return named(Found, "sort")(found, at)
    array = -input._array if descending else input._array
    return _chosen(input, np.argsort(array, axis=dim, kind="stable"), dim, "SortBackward0", True)


def _place_of(name: str, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The position of the largest or smallest entry: an operation of its own while a function is recorded."""
    if tracing.current is not None and tracing.traced((x,)):
        params = {"name": name, "axis": dim, "keepdims": keepdim}
        return record(called, (x,), params, name, whole=True, pointwise=False)
    if not x._raw.size and dim is None:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0")
    return noted(name, (x,), Tensor(np.asarray(getattr(np, name)(x._array, axis=dim, keepdims=keepdim))))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the largest entry, the first of several."""
    return _place_of("argmax", input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the smallest entry, the first of several."""
    return _place_of("argmin", input, dim, keepdim)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every entry is not zero."""
    return noted("all", (input,), Tensor(np.asarray(np.all(input._array, axis=axes_of(dim), keepdims=keepdim))))


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some entry is not zero."""
    return noted("any", (input,), Tensor(np.asarray(np.any(input._array, axis=axes_of(dim), keepdims=keepdim))))


def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return _reduced("logsumexp", input, dim, keepdim, "LogsumexpBackward0")


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sums of exponentials."""
    return record(_logcumsumexp, (input,), {"axis": dim}, "LogcumsumexpBackward0", pointwise=False)


def _logcumsumexp(x: Any, *, axis: int) -> Any:
    known = catalogue()
    shift = known["detach"](called(x, name="amax", axis=axis, keepdims=True))
    shift = known["broadcast"](shift, shape=tuple(x.shape))
    return shift + known["log"](called(known["exp"](x - shift), name="cumsum", axis=axis))


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many entries are not zero."""
    return Tensor(np.asarray(np.count_nonzero(input._array, axis=axes_of(dim))))


def softmax(input: Tensor, dim: int) -> Tensor:
    """Exponentials divided by their sum along an axis."""
    return record(called, (input,), {"name": "softmax", "axis": dim}, "SoftmaxBackward0")


def log_softmax(input: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax."""
    return record(called, (input,), {"name": "log_softmax", "axis": dim}, "LogSoftmaxBackward0")


def cumsum(input: Tensor, dim: int) -> Tensor:
    """Running sums along an axis."""
    return record(called, (input,), {"name": "cumsum", "axis": dim}, "CumsumBackward0", whole=True)


def cumprod(input: Tensor, dim: int) -> Tensor:
    """Running products along an axis."""
    return record(called, (input,), {"name": "cumprod", "axis": dim}, "CumprodBackward0")


TABLE = {
    function.__name__: function
    for function in (
        *(sum, mean, var, std, prod, amax, amin, max, min, sort, argmax, argmin, all, any, logsumexp, softmax),
        *(log_softmax, cumsum, cumprod, var_mean, std_mean, nansum, aminmax, logcumsumexp),
        *(count_nonzero,),
    )
}
