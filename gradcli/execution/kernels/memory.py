"""Lengths go in, arrays for results come out; long ones in memory of former results to which nobody refers any more.

The system clears a fresh page when it is first written to, which for long lines takes longer than their computation.
What is kept while nobody uses it is bounded, and what does not fit the next results is given back before they are made.
It knows no program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 1 << 22  # bytes of a result from which its memory is kept
MOST = 1 << 26  # bytes that are kept while nobody uses them
LINE = 64  # bytes of a cache line, at which results begin
_IDLE: list[Any] = []  # appending and popping are atomic, so what is in here belongs to whoever pops it


class _Lease:
    """Memory that is in use: arrays made of it, and views of these, hold this object; nothing else does."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: Any, length: int, dtype: Any) -> None:
        self.memory = memory
        begin = memory.ctypes.data
        self.__array_interface__ = {
            "version": 3, "shape": (length,), "typestr": dtype.str, "data": (begin + -begin % LINE, False),
        }  # fmt: skip

    def __del__(self) -> None:
        if held() + self.memory.nbytes <= MOST:
            _IDLE.append(self.memory)


def held() -> int:
    """The bytes that nobody uses."""
    return sum([one.nbytes for one in tuple(_IDLE)])


def lines(lengths: Sequence[int], dtypes: Sequence[Any]) -> list[Any]:
    """A new array for each length and type, its entries not set.

    >>> [one.shape for one in lines([3, 5], [np.dtype("float64")] * 2)]
    [(3,), (5,)]
    """
    idle = []
    while True:
        try:
            idle.append(_IDLE.pop())
        except IndexError:
            break
    made = []
    for length, dtype in zip(lengths, dtypes, strict=True):
        size = length * dtype.itemsize
        if size < LEAST:
            made.append(np.empty(length, dtype))
            continue
        at = next((at for at, memory in enumerate(idle) if memory.nbytes == size + LINE), None)
        memory = np.empty(size + LINE, np.uint8) if at is None else idle.pop(at)
        made.append(np.asarray(_Lease(memory, length, dtype)))
    return made
