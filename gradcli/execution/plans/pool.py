"""Arrays for results; long ones reuse the memory of former results that are no longer referenced.

The system clears a fresh page when it is first written to, which for long rows takes longer than their computation.
What is kept is bounded, and what does not fit the next results is given back before they are made.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 1 << 22  # bytes of a result from which its memory is kept
MOST = 1 << 26  # bytes that are kept
LINE = 64  # bytes of a cache line, at which results begin
ALONE = 2  # references to memory that only its bytes in `_KEPT` have: theirs, and that of the question
_KEPT: list[Any] = []  # bytes of results; appending and popping are atomic, so what is taken out is its taker's
_references = getattr(sys, "getrefcount", lambda one: ALONE + 1)  # results refer to the memory, and so do their views


def held() -> int:
    """The bytes that nobody uses."""
    return sum([one.base.nbytes for one in tuple(_KEPT) if _references(one.base) <= ALONE])


def lines(lengths: Sequence[int], dtypes: Sequence[Any]) -> list[Any]:
    """A new array for each length and type, its entries not set.

    >>> [one.shape for one in lines([3, 5], [np.dtype("float64")] * 2)]
    [(3,), (5,)]
    """
    sizes = [length * dtype.itemsize for length, dtype in zip(lengths, dtypes, strict=True)]
    if max(sizes, default=0) < LEAST:
        return [np.empty(length, dtype) for length, dtype in zip(lengths, dtypes, strict=True)]
    free: dict[int, list[Any]] = {}
    used = []
    try:
        while True:
            one = _KEPT.pop()
            if _references(one.base) > ALONE:
                used.append(one)
            else:
                free.setdefault(one.nbytes, []).append(one)
    except IndexError:  # that was all
        pass
    found = [free[size].pop() if free.get(size) else None for size in sizes]
    free.clear()
    made, room = [], MOST
    for one, size, length, dtype in zip(found, sizes, lengths, dtypes, strict=True):
        if size < LEAST:
            made.append(np.empty(length, dtype))
            continue
        if one is None:
            one = _memory(size)
        made.append(one.view(dtype))
        room -= one.base.nbytes
        if room >= 0:
            _KEPT.append(one)
    for one in used:
        room -= one.base.nbytes
        if room >= 0:
            _KEPT.append(one)
    return made


def _memory(size: int) -> Any:
    """Bytes that begin at a cache line; their base is the memory."""
    memory = np.empty(size + LINE, np.uint8)
    begin = -memory.__array_interface__["data"][0] % LINE
    return memory[begin : begin + size]
