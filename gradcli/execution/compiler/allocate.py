"""Allocates memory: a place in one block for each result of the steps, and a pool for the memory of long results.

Memory is used again as soon as its value has no further reader. The system clears a fresh page when it is first written
to, which for long arrays takes longer than their computation: so the pool gives memory of former results, to which
nothing refers anymore. What is kept is bounded, and what does not fit the next results is given back before they are
made.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler.ir import ADDED, ENTRY, base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue

ALIGNED = 64  # bytes
IN_PLACE = (ENTRY, ADDED)  # kinds of steps that may write over an operand which is not read again
LEAST = 1 << 22  # bytes of a result from which its memory is kept
MOST = 1 << 26  # bytes that are kept
ALONE = 2  # references to memory that only its bytes in `_KEPT` have: theirs, and that of the question
_KEPT: list[Any] = []  # bytes of results; appending and popping are atomic, so what is taken out is its taker's
_references = getattr(sys, "getrefcount", lambda _: ALONE + 1)  # results refer to the memory, and so do their views


class MemoryLayout:
    """Offsets in bytes of values in one piece of memory of `size` bytes."""

    __slots__ = ("_free", "offsets", "size")

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.size = 0
        self._free: dict[int, list[int]] = {}  # places by their length, the last one freed first

    def take(self, value: PlanValue, nbytes: int) -> None:
        """A place for a value."""
        length = _rounded(nbytes)
        known = self._free.get(length)
        if known:
            self.offsets[value.serial] = known.pop()
            return
        fitting = [n for n in self._free if length < n <= 2 * length and self._free[n]]
        if fitting:
            best = min(fitting)
            offset = self._free[best].pop()
            self._free.setdefault(best - length, []).append(offset + length)
        else:
            offset, self.size = self.size, self.size + length
        self.offsets[value.serial] = offset

    def leave(self, value: PlanValue, nbytes: int) -> None:
        """The place of a value that is not read again."""
        self._free.setdefault(_rounded(nbytes), []).append(self.offsets[value.serial])


def _rounded(nbytes: int) -> int:
    return max(ALIGNED, -(-nbytes // ALIGNED) * ALIGNED)


def lay_out(
    work: Sequence[tuple[Sequence[PlanValue], Sequence[PlanValue], Op | None]],
    placed: Callable[[PlanValue], int | None],
    kept: set[int],
) -> MemoryLayout:
    """Places for what is written, in order of work: each item reads some values, writes others, and may be one step.

    `placed` gives the bytes of a value, None where it has no place here; `kept` are never overwritten.
    """
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for position, (reads, writes, _) in enumerate(work):
        for value in (*reads, *writes):
            last[value.serial] = position
        for value in writes:
            nbytes = placed(value)
            if nbytes is not None:
                sizes[value.serial] = nbytes
    layout = MemoryLayout()
    for position, (reads, writes, op) in enumerate(work):
        dying: dict[int, PlanValue] = {}
        for value in (*reads, *writes):
            serial = value.serial
            if last[serial] == position and serial in sizes and serial not in kept:
                dying[serial] = value
        over = _overwritten(op, dying) if op is not None and dying else None
        if over is not None and op is not None and sizes.get(op.out.serial) == sizes[over.serial]:
            del dying[over.serial]
            layout.offsets[op.out.serial] = layout.offsets[over.serial]
            dying.pop(op.out.serial, None)
        else:
            for value in writes:
                if value.serial in sizes and value.serial not in layout.offsets:
                    layout.take(value, sizes[value.serial])
        for serial, value in dying.items():
            layout.leave(value, sizes[serial])
    return layout


def _overwritten(op: Op, dying: dict[int, PlanValue]) -> PlanValue | None:
    """An operand, itself and not a view of it, that the result may take the place of."""
    if op.kind not in IN_PLACE:
        return None
    for arg in op.args[:1] if op.kind == ADDED else op.args:
        if arg.serial in dying and arg.shape == op.out.shape and arg.dtype == op.out.dtype:
            if not any(other is not arg and base(other) is arg for other in op.args):
                return arg
    return None


def slot(memory: Any, offset: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array in a piece of memory."""
    size = int(dtype.itemsize)
    for n in shape:
        size *= n
    return memory[offset : offset + size].view(dtype).reshape(shape)


# --- the pool ---------------------------------------------------------------------------------------------------


def new_arrays(lengths: Sequence[int], dtypes: Sequence[Any]) -> list[Any]:
    """A new array for each length and type, its entries not set.

    >>> [array.shape for array in new_arrays([3, 5], [np.dtype("float64")] * 2)]
    [(3,), (5,)]
    """
    sizes = [length * dtype.itemsize for length, dtype in zip(lengths, dtypes, strict=True)]
    if max(sizes, default=0) < LEAST:
        return [np.empty(length, dtype) for length, dtype in zip(lengths, dtypes, strict=True)]
    free: dict[int, list[Any]] = {}
    used = []
    try:
        while True:
            block = _KEPT.pop()
            if _references(block.base) > ALONE:
                used.append(block)
            else:
                free.setdefault(block.nbytes, []).append(block)
    except IndexError:  # that was all
        pass
    reused = [free[size].pop() if free.get(size) else None for size in sizes]
    free.clear()
    arrays, room = [], MOST
    for block, size, length, dtype in zip(reused, sizes, lengths, dtypes, strict=True):
        if size < LEAST:
            arrays.append(np.empty(length, dtype))
            continue
        if block is None:
            block = np.empty(size, np.uint8)[:]
        arrays.append(block.view(dtype))
        room -= block.base.nbytes
        if room >= 0:
            _KEPT.append(block)
    for block in used:
        room -= block.base.nbytes
        if room >= 0:
            _KEPT.append(block)
    return arrays
