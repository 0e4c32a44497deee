"""Tensors go in, what is counted, compared and searched in them comes out; nothing here has a derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import dtypes
from gradcli.eager.recorder import noted
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from gradcli.eager.signatures import Operand


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different entries in ascending order; with where they stood, and how often."""
    found, inverse, counts = np.unique(input._array, return_inverse=True, return_counts=True, axis=dim)
    values = noted("unique", (input,), Tensor(found))
    if not return_inverse and not return_counts:
        return values
    shape = input._raw.shape if dim is None else (input.shape[dim],)
    more = [Tensor(inverse.reshape(shape).astype(np.int64))] if return_inverse else []
    return (values, *more, *([Tensor(counts.astype(np.int64))] if return_counts else []))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number occurs, or the sum of its weights."""
    if input.dtype.kind != 1:
        raise NotImplementedError(f"bincount is not implemented for {input.dtype}: it needs whole numbers")
    if input.ndim != 1:
        raise RuntimeError("bincount() needs a vector of whole numbers that are not negative")
    counted = np.bincount(input._array, None if weights is None else weights._array, minlength)
    return noted("bincount", (input,), Tensor(counted if weights is None else counted.astype(weights._raw.dtype)))


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where entries are not zero: a row for each of them, or a vector for each axis."""
    found = np.nonzero(input._array)
    if as_tuple:
        return tuple([noted("nonzero", (input,), Tensor(one)) for one in found])
    return noted("nonzero", (input,), Tensor(np.stack(found, axis=1) if found else np.zeros((0, 0), np.int64)))


def argwhere(input: Tensor) -> Tensor:
    """Where entries are not zero, a row for each of them."""
    return nonzero(input)  # type: ignore[no-any-return]


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the entries of an ordered axis stood."""
    array = -input._array if descending else input._array
    return noted("argsort", (input,), Tensor(np.argsort(array, axis=dim, kind="stable")))


def searchsorted(sorted_sequence: Tensor, input: Operand, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """Where values would have to be put into an ordered vector."""
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    return Tensor(np.asarray(np.searchsorted(sorted_sequence._array, values, "right" if right else "left")))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Between which boundaries values lie."""
    return searchsorted(boundaries, input, right=right)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many entries lie in each of some bins of equal width."""
    low, high = (min, max) if min != max else (float(input._raw.min()), float(input._raw.max()))
    counts, _ = np.histogram(input._array, bins, (low, high))
    return Tensor(counts.astype(input._raw.dtype))


def isin(elements: Operand, test_elements: Operand) -> Tensor:
    """Which entries occur in another tensor."""
    return Tensor(np.isin(*[x._array if isinstance(x, Tensor) else x for x in (elements, test_elements)]))


def result_type(one: Operand, other: Operand) -> dtypes.dtype:
    """The format in which two operands meet."""
    from gradcli.eager.promotion import kind_of

    return dtypes.of(kind_of((one, other), (), True))


def promote_types(type1: dtypes.dtype, type2: dtypes.dtype) -> dtypes.dtype:
    """The smallest format that holds both."""
    return dtypes.common([type1, type2], [], [])


def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Whether results of a format may be written into another one: not from a higher category into a lower one."""
    return from_.kind <= to.kind


def _need_format(name: str, kind: Any) -> None:
    if kind is not None and not isinstance(kind, dtypes.dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {kind.__class__.__name__}")


class finfo:
    """The limits of a float format."""

    def __init__(self, type: dtypes.dtype | None = None) -> None:
        _need_format("finfo", type)
        kind = type or dtypes.get_default_dtype()
        if kind.kind < 2:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo for {kind}")
        known = np.finfo(kind.np)
        self.bits, self.dtype = int(known.bits), kind.name
        self.eps, self.max, self.min = float(known.eps), float(known.max), float(known.min)
        self.tiny = self.smallest_normal = float(known.tiny)
        self.resolution = float(known.resolution)


class iinfo:
    """The limits of a format of whole numbers."""

    def __init__(self, type: dtypes.dtype) -> None:
        _need_format("iinfo", type)
        if type.kind != 1:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo for {type}")
        known = np.iinfo(type.np)
        self.bits, self.dtype, self.max, self.min = int(known.bits), type.name, int(known.max), int(known.min)


TABLE: dict[str, Any] = {
    function.__name__: function for function in (unique, bincount, nonzero, argwhere, argsort, histc, isin)
}
FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (searchsorted, bucketize, result_type, promote_types, can_cast, finfo, iinfo)
}
