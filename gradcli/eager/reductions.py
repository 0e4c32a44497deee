"""Functions over axes: a tensor goes in, sums, means, extremes and matrix products come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import dtypes
from gradcli.eager.dispatch import cast, record
from gradcli.eager.recorder import noted
from gradcli.eager.several import one_node
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Dims, Sizes, Spread

Axes = int | tuple[int, ...] | None


def axes_of(dim: Any) -> Axes:
    """The axes that `dim` names; None for all of them."""
    return (tuple(dim) or None) if isinstance(dim, (list, tuple)) else dim


def reduced(name: str, x: Tensor, dim: Any, keepdim: bool, node: str, whole: bool = False, **more: Any) -> Tensor:
    params = {"name": name, "axis": axes_of(dim), "keepdims": keepdim, **more}
    return record(called, (x,), params, node, whole=whole)


def called(x: Any, *, name: str, **params: Any) -> Any:
    """A declared function by its script name, in NumPy's signature."""
    primitive = catalogue()[name]
    return (primitive.call or primitive.definition)(x, **params)  # type: ignore[misc]


def as_asked(found: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    """A result in the format that was asked for: NumPy adds and multiplies short whole numbers as long ones."""
    return found if dtype is None or found.dtype is dtype else cast(found, dtype)


def converted(input: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    """The tensor in the format that a reduction was asked to compute in."""
    return input if dtype is None else cast(input, dtype)


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The sum of the entries, over all axes or some."""
    input = converted(input, dtype)
    if input.dtype.kind < 2 and dtype is None:
        input = cast(input, dtypes.int64)
    found = reduced("sum", input, dim, keepdim, "SumBackward0" if dim is None else "SumBackward1", whole=True)
    return found if dtype is None else as_asked(found, dtype)


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The average of the entries; RuntimeError for whole numbers."""
    input = converted(input, dtype)
    if input.dtype.kind < 2:
        raise RuntimeError(f"mean() needs a floating point dtype, and this is {input.dtype}")
    return reduced("mean", input, dim, keepdim, "MeanBackward0" if dim is None else "MeanBackward1")


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
    return reduced(name, x, dim, keepdim, node, ddof=ddof)


def _undefined(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return called((x - x) / (x - x), name="sum", axis=axis, keepdims=keepdims)


def var(
    input: Tensor, dim: Spread = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The variance, divided by the number of entries less `correction`."""
    return _spread("var", "VarBackward0", input, dim, keepdim, correction, unbiased)


def std(
    input: Tensor, dim: Spread = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The square root of the variance."""
    return _spread("std", "StdBackward0", input, dim, keepdim, correction, unbiased)


def var_mean(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    _need_point("var_mean", input)
    first = reduced("var", input, dim, keepdim, "VarMeanBackward0", ddof=correction)
    both = one_node("VarMeanBackward0", first, reduced("mean", input, dim, keepdim, "VarMeanBackward0"))
    return both[0], both[1]


def std_mean(input: Tensor, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    _need_point("std_mean", input)
    first = reduced("std", input, dim, keepdim, "StdMeanBackward0", ddof=correction)
    both = one_node("StdMeanBackward0", first, reduced("mean", input, dim, keepdim, "StdMeanBackward0"))
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


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """The product of the entries."""
    input = converted(input, dtype)
    if input.dtype.kind < 2 and dtype is None:
        input = cast(input, dtypes.int64)
    found = reduced("prod", input, dim, keepdim, "ProdBackward0" if dim is None else "ProdBackward1", whole=True)
    return as_asked(found, dtype)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every entry is not zero."""
    return _truth(np.all, input, dim, keepdim)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some entry is not zero."""
    return _truth(np.any, input, dim, keepdim)


def _truth(function: Any, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    found = np.asarray(function(x._array, axis=axes_of(dim), keepdims=keepdim))
    if x._raw.dtype == np.uint8:  # from before there was torch.bool
        found = found.astype(np.uint8)
    return noted(function.__name__, (x,), Tensor(found))


def logsumexp(input: Tensor, dim: Sizes, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return reduced("logsumexp", input, dim, keepdim, "LogsumexpBackward0")


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


def softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Tensor:
    """Exponentials divided by their sum along an axis."""
    return record(called, (converted(input, dtype),), {"name": "softmax", "axis": dim}, "SoftmaxBackward0")


def log_softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Tensor:
    """The logarithm of softmax."""
    return record(called, (converted(input, dtype),), {"name": "log_softmax", "axis": dim}, "LogSoftmaxBackward0")


def cumsum(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """Running sums along an axis."""
    found = record(called, (converted(input, dtype),), {"name": "cumsum", "axis": dim}, "CumsumBackward0", whole=True)
    return as_asked(found, dtype)


def cumprod(input: Tensor, dim: int, *, dtype: dtypes.dtype | None = None) -> Tensor:
    """Running products along an axis."""
    found = record(called, (converted(input, dtype),), {"name": "cumprod", "axis": dim}, "CumprodBackward0", whole=True)
    return as_asked(found, dtype)


TABLE = {
    function.__name__: function
    for function in (
        *(sum, mean, var, std, prod, all, any, logsumexp, softmax, log_softmax, cumsum, cumprod, var_mean, std_mean),
        *(nansum, logcumsumexp, count_nonzero),
    )
}
