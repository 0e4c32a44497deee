"""A tensor goes in, its largest and smallest entries, their places, or all entries in order come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager import tracing
from gradcli.eager.dispatch import record
from gradcli.eager.recorder import noted
from gradcli.eager.reductions import called, reduced
from gradcli.eager.returned import named, of_node
from gradcli.eager.several import one_node
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Dims


class Extremes(NamedTuple):
    """The smallest and the largest entry."""

    min: Tensor
    max: Tensor


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest entry."""
    low = reduced("amin", input, dim, keepdim, "AminmaxBackward0", whole=True)
    high = reduced("amax", input, dim, keepdim, "AminmaxBackward0", whole=True)
    return named(Extremes, "aminmax")(*one_node("AminmaxBackward0", low, high))


def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest entry; several share the gradient."""
    return reduced("amax", input, dim, keepdim, "AmaxBackward0", whole=True)


def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest entry; several share the gradient."""
    return reduced("amin", input, dim, keepdim, "AminBackward0", whole=True)


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


TABLE = {function.__name__: function for function in (amax, amin, max, min, sort, argmax, argmin, aminmax)}
