"""Kernels on NumPy arrays that need fewer passes over memory than NumPy's own functions.

Generated functions call these in place of what a declaration says, where the result is the same to the last bit, or,
for the sigmoid, as good as the formula.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gradcli.execution.compiler.thread_pool import on_one_thread

_SHORT = 64  # an axis up to so long is searched across, not along
_BLOCK = 256  # rows that are added up one after the other
ROW = 1024  # a row up to so long is added up by a product with ones
_SHARED = 9216  # entries of a matrix from which OpenBLAS shares its product with a vector among threads
_sum: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def largest(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest entries along an axis: NumPy is slow along a short last axis, and fast across it."""
    if axis in (-1, (-1,)) and x.ndim > 1 and 0 < x.shape[-1] <= _SHORT and x.flags.c_contiguous:
        maxima = _maximum(np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T), axis=0)
        return maxima.reshape(*x.shape[:-1], 1) if keepdims else maxima.reshape(x.shape[:-1])
    return _maximum(x, axis=axis, keepdims=keepdims)


def repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """An array repeated to a shape: a number written so often where the entries are few, as a view takes longer."""
    return np.full(shape, x) if x.size == 1 and math.prod(shape) <= 4096 else np.broadcast_to(x, shape)


_WHOLE: dict[int, Any] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def passed(ct: Any, through: Any) -> Any:
    """A gradient where `through` holds, else zero, whatever it is: how relu goes back.

    Bits times 1 or 0: a product of numbers would make -0 of negative gradients, and no number of infinite ones.
    """
    if through.__class__ is np.bool_ and isinstance(ct, np.generic):
        return ct if through else ct.dtype.type(0)
    if not isinstance(through, np.ndarray) or through.shape != ct.shape:
        return np.where(through, ct, ct.dtype.type(0))
    bits = through.astype(_WHOLE[ct.itemsize])
    return np.multiply(ct.view(bits.dtype), bits, out=bits).view(ct.dtype)


def product(rows: int, inner: int, columns: int) -> Any:
    """The function that multiplies two matrices of these sizes; small ones on one thread.

    OpenBLAS wakes others for 64 x 64 x 64 (a vector: 96 x 96). On a busy machine it then waits for milliseconds, a
    thousand times as long as the product takes; from 200 x 200 x 200 on a second thread may gain more than that costs.
    """
    multiply = np.dot if inner == 1 else np.matmul  # matmul has a slow loop for one column
    small = (2**18 if rows > 1 < columns else _SHARED) < rows * inner * columns <= 2**23
    return partial(on_one_thread, multiply) if small else multiply


@lru_cache(64)
def _ones(count: int, kind: Any) -> Any:
    ones = np.ones(count, kind)
    ones.flags.writeable = False
    return ones


def column_sums(x: Any) -> Any:
    """The sums over the rows of a matrix, as a product, which is three times as fast.

    Many rows are added up in blocks, then the blocks: rounding errors grow with the length of a block only.
    """
    if not x.size or x.dtype.char not in "fd":
        return np.add.reduce(x, 0)
    count = x.shape[0]
    if count < 2 * _BLOCK:
        ones = _ones(count, x.dtype)
        return on_one_thread(ones.dot, x) if x.size > _SHARED else ones.dot(x)
    blocks = count // _BLOCK
    total = np.add.reduce(np.matmul(_ones(_BLOCK, x.dtype), x[: blocks * _BLOCK].reshape(blocks, _BLOCK, -1)), 0)
    rest = count - blocks * _BLOCK
    return total + _ones(rest, x.dtype).dot(x[-rest:]) if rest else total


@lru_cache(256)
def _rows_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    """How sums along the last axes and some others begin with the sums of rows, where these are of moderate length.

    The length of a row, the shape of the sums of rows, and the axes of these that are left.
    """
    rank = len(shape)
    reduced = {axis % rank for axis in axes}
    first = rank
    while first and first - 1 in reduced:
        first -= 1
    inner, rows = math.prod(shape[first:]), math.prod(shape[:first])
    if not 1 < inner <= ROW or rows < 2 or inner * rows < _BLOCK:
        return None
    return inner, shape[:first], tuple(sorted(axis for axis in reduced if axis < first))


def sums(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The sums along some axes; those of rows as a product with ones, which is two to four times as fast."""
    shape = x.shape
    if axis.__class__ is tuple and x.size >= _BLOCK and x.dtype.char in "fd" and x.flags.c_contiguous:
        split = _rows_of(shape, axis)
        if split is not None:
            inner, outer, left = split
            rows = x.reshape(-1, inner)
            ones = _ones(inner, x.dtype)
            result = (on_one_thread(rows.dot, ones) if x.size > _SHARED else rows.dot(ones)).reshape(outer)
            if left:
                result = np.add.reduce(result, left)
            if not keepdims:
                return result
            return result.reshape([1 if i in axis or i - len(shape) in axis else n for i, n in enumerate(shape)])
    return _sum(x, axis=axis, keepdims=keepdims)


@lru_cache(64)
def _rows(count: int) -> Any:
    """The numbers of the rows of a matrix, as a column."""
    numbers = np.arange(count).reshape(-1, 1)
    numbers.flags.writeable = False
    return numbers


def in_range(index: Any, size: int) -> bool:
    """Whether all positions lie from 0 to below a size: in one pass, as a negative one is huge without its sign."""
    if index.dtype != np.int64:
        return not index.size or bool(index.min() >= 0 and index.max() < size)
    return bool(_maximum(index.view(np.uint64), axis=None, initial=0) < size)


def _by_row(x: Any, index: Any, axis: int, size: int) -> bool:
    """Whether positions stand in the rows of a matrix, all of them plain."""
    if axis != -1 or x.ndim != 2 or index.ndim != 2 or index.shape[0] != x.shape[0] or index.dtype != np.int64:
        return False
    return in_range(index, size)


def _whole_rows(x: Any, index: Any, axis: int, size: int) -> Any:
    """The numbers of rows, where positions along the first axis of a matrix are one for each row; None elsewhere."""
    if axis != -2 or x.ndim != 2 or index.ndim != 2 or index.dtype != np.int64 or index.shape[1] != x.shape[1]:
        return None
    if index.strides[1] or not x.shape[1]:
        return None
    rows = index[:, 0]
    return rows if in_range(rows, size) else None


def _in_rows(x: Any, index: Any, axis: int) -> bool:
    """Whether positions stand in the last of more than two axes, so that a matrix of its rows does."""
    return axis == -1 and x.ndim > 2 and bool(x.size) and index.shape[:-1] == x.shape[:-1] and bool(index.size)


def taken_along(general: Any, x: Any, index: Any, axis: int) -> Any:
    """The entries at positions along an axis; `general` does what is not plain."""
    if _in_rows(x, index, axis):
        taken = taken_along(general, x.reshape(-1, x.shape[-1]), index.reshape(-1, index.shape[-1]), -1)
        return taken.reshape(index.shape)
    if _by_row(x, index, axis, x.shape[-1]):
        return x[_rows(x.shape[0]), index]
    rows = _whole_rows(x, index, axis, x.shape[0])
    return general(x, index, axis=axis) if rows is None else x.take(rows, axis=0)


def put_along(general: Any, x: Any, index: Any, axis: int, size: int) -> Any:
    """Zeros with the entries of x added at positions along an axis; `general` does what is not plain."""
    if _in_rows(x, index, axis):
        result = put_along(general, x.reshape(-1, x.shape[-1]), index.reshape(-1, index.shape[-1]), -1, size)
        return result.reshape(*x.shape[:-1], size)
    if index.shape[-1] == 1 and x.shape == index.shape and _by_row(x, index, axis, size):
        result = np.zeros((x.shape[0], size), x.dtype)
        result[_rows(x.shape[0]), index] = x
        return result
    rows = _whole_rows(x, index, axis, size)
    if rows is None:
        return general(x, index, axis, size)
    result, width = np.zeros((size, x.shape[1]), x.dtype), x.shape[1]
    np.add.at(result.reshape(-1), (rows[:, None] * width + np.arange(width)).reshape(-1), x.reshape(-1))
    return result


def sigmoid(x: Any) -> Any:
    """1/(1 + exp(-x)) in four passes; as steady as a formula with two branches until the result is not a normal
    number.
    """
    if not x.ndim:
        return x.dtype.type(1 / (1 + np.exp(-np.float64(x))))
    result = np.negative(x)
    np.exp(result, out=result)
    result += 1
    return np.reciprocal(result, out=result)
