"""The blocks of a line go in and are computed, by calls of NumPy or by machine code; every thread has its bench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.kernels import frames
from gradcli.execution.kernels.calls import OUTPUT
from gradcli.execution.kernels.frames import Frame, reduce
from gradcli.execution.kernels.native import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gradcli.execution.kernels.calls import Number
    from gradcli.execution.kernels.frames import Work
    from gradcli.execution.kernels.native import Stretch

LINE = 64  # bytes of a cache line
LEAST_SHARE = 4  # machine code is made for a quarter of the entries, or more


class Native(NamedTuple):
    """A loop of machine code, and its function."""

    loop: Loop
    function: Any

    def warm(self, work: Work) -> None:
        """Compile for these types, before several threads ask for it."""
        nothing = np.empty(0)
        count = len(self.loop.arrays) + len(self.loop.sums)
        self.function(0, *[_number(work, one) for one in self.loop.numbers], *[nothing] * count)


def _number(work: Work, number: Number) -> Any:
    return np.asarray(work.numbers[number.value.serial]).reshape(()).item()


class Bench:
    """What one thread works with: its buffers, and the frames that it has made."""

    def __init__(self, work: Work, block: int) -> None:
        self.work = work
        self.block = block
        self.sums: dict[int, Any] = {}
        self.buffers = [_aligned(block + width, dtype, at) for at, (dtype, width) in enumerate(work.phase.buffers)]
        self.frames: dict[Any, Frame] = {}

    def run(self, start: int, stop: int) -> None:
        """Compute one block."""
        like = self.work.likeness(start, stop)
        frame = self.frames.get(like)
        if frame is None:
            frame = Frame(self.work, self.buffers, start, stop)
            if like is not None:
                self.frames[like] = frame
        frame.run(start)

    def run_native(self, native: Native, start: int, stop: int) -> None:
        """Compute one block by machine code."""
        work, loop, count = self.work, native.loop, stop - start
        arrays, copies = [], []
        for slot, shift in loop.arrays:
            part = work.bases[slot][start + shift : min(stop + max(slot.high, 0), work.length(slot))]
            solid = part if part.flags.c_contiguous else np.ascontiguousarray(part)
            if solid is not part and slot.kind == OUTPUT:
                copies.append((part, solid))
            arrays.append(solid)
        for at in loop.sums:
            if at not in self.sums:
                self.sums[at] = np.empty(self.block)
        numbers = [_number(work, one) for one in loop.numbers]
        native.function(count, *numbers, *arrays, *[self.sums[at] for at in loop.sums])
        for part, solid in copies:
            part[:] = solid
        lines = [(at, self.sums[at][:count]) for at in loop.sums]
        lines += [(at, work.bases[slot][start + shift : stop + shift]) for at, (slot, shift) in loop.reads]
        for at, line in lines:
            reduce(work.phase.reductions[at].by, line, work.partials[at], start // frames.GRAIN)


def _aligned(size: int, dtype: Any, at: int) -> Any:
    """An array that begins at a cache line, and at another one than its fellows: equal addresses in it are slow."""
    room = np.empty(size * dtype.itemsize + (at % 32 + 2) * LINE, np.uint8)
    begin = -room.ctypes.data % LINE + at % 32 * LINE
    return room[begin : begin + size * dtype.itemsize].view(dtype)


Piece = tuple[int, int, "Native | None"]  # where a block begins and ends, and the machine code for it


def work_through(bench: Bench, pieces: Iterable[Piece]) -> None:
    """Compute some blocks."""
    with np.errstate(all="ignore"):
        for start, stop, native in pieces:
            if native is None:
                bench.run(start, stop)
            else:
                bench.run_native(native, start, stop)


def pieces_of(work: Work, block: int, native_for: Callable[[Stretch], Native | None]) -> list[Piece]:
    """All blocks, where some have machine code: whole grains beside which nothing ends.

    Which entries these are hangs on the program and its length alone, not on blocks and threads.
    """
    count = work.count
    odd = set()
    for corner in work.corners:
        first, last = corner - work.high, corner - work.low
        for grain in range(
            max(first // frames.GRAIN - 1, 0), min(last // frames.GRAIN + 1, (count - 1) // frames.GRAIN) + 1
        ):
            if work.likeness(grain * frames.GRAIN, min((grain + 1) * frames.GRAIN, count)) is None:
                odd.add(grain)
    found: list[Piece] = []
    known: dict[Any, Native | None] = {}
    begin = 0
    for end in [*sorted(odd), -(-count // frames.GRAIN)]:  # runs of grains that are like each other lie between these
        start, stop = begin * frames.GRAIN, min(end * frames.GRAIN, count)
        while start < stop:
            like = work.likeness(start, min(start + frames.GRAIN, count))
            assert like is not None, "odd grains lie between runs"
            border = work.corners[like[0]] - work.high if like[0] < len(work.corners) else count
            last = min(
                stop, max(border // frames.GRAIN * frames.GRAIN, start + frames.GRAIN) if border < count else stop
            )
            if like[0] not in known:
                large = (last - start) * LEAST_SHARE >= count
                known[like[0]] = native_for(work.stretch(start, min(start + frames.GRAIN, count))) if large else None
            found += [(at, min(at + block, last), known[like[0]]) for at in range(start, last, block)]
            start = last
        if stop < count:
            found.append((stop, min(stop + frames.GRAIN, count), None))
        begin = end + 1
    return found
