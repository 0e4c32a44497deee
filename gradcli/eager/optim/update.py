"""What update rules are made of: remembered arrays, running means, counted steps.

Rules work entry by entry. On large arrays they are called block by block, so that temporaries stay in the cache and are
never as large as the parameter; the numbers are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

Array = Any
State = dict[str, Any]
_BLOCK = 32_768  # entries: a few arrays of so many stay in the cache


def kept(state: State, name: str, like: Array, start: float = 0) -> Array:
    """An array that is remembered, one number at first: of complex entries in both parts."""
    if name not in state:
        full = complex(start, start) if like.dtype.kind == "c" else start
        state[name] = Tensor(np.full_like(like, full) if start else np.zeros_like(like))
    return state[name]._array


def averages(state: State, like: Array) -> list[Array]:
    """The running means of gradients and of their squares."""
    return [kept(state, "exp_avg", like), kept(state, "exp_avg_sq", like)]


def number(state: State, name: str, start: float) -> Array:
    """A number that is remembered of a parameter, in single precision."""
    if name not in state:
        state[name] = Tensor(np.full((), start, np.float32))
    return state[name]._array


def counted(state: State) -> float:
    """Count one more step of a parameter; the number so far."""
    array = state["step"]._array if "step" in state else number(state, "step", 0)
    array += 1
    return float(array)


def by_blocks(rule: Callable[..., None], *arrays: Array) -> None:
    """Call a rule that works entry by entry on arrays of one shape, the first of which is a parameter's memory.

    It gets both parts of complex entries as numbers of their own.
    """
    if arrays[0].dtype.kind == "c":
        arrays = tuple([array[..., None].view(array.real.dtype) for array in arrays])
    size = arrays[0].size
    if size <= _BLOCK or not all(array.flags.c_contiguous for array in arrays):
        rule(*arrays)
        return
    rows = [array.reshape(-1) for array in arrays]
    for start in range(0, size, _BLOCK):
        rule(*[row[start : start + _BLOCK] for row in rows])


def decayed(grad: Array, x: Array, decay: float, apart: float | None = None) -> Array:
    """A gradient with that of a penalty on squares; with a rate `apart` the parameter itself shrinks instead."""
    if decay and apart is not None:
        x *= 1 - apart * decay
        return grad
    return grad + decay * x if decay else grad


def lerp(old: Array, new: Array, weight: float) -> None:
    """Move an array in place towards another one."""
    away = new - old
    away *= weight
    old += away


def average_squares(mean: Array, new: Array, weight: float) -> None:
    """Move a running mean of squares in place: `weight` is how much of it stays."""
    square = new * new
    square *= 1 - weight
    mean *= weight
    mean += square


def root(x: Array) -> Array:
    """The square roots in an array of their own, for numbers too."""
    return np.sqrt(x, out=np.empty_like(x))
