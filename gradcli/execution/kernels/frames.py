"""A phase, its arrays and one block go in; out comes a list of calls on views, which serves all blocks that are alike.

Buffers keep their place from block to block, so only the views of inputs and outputs are made anew for the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels.calls import (
    BUFFER,
    COPY,
    IMPL,
    INPUT,
    PAD,
    SINCOS,
    WHERE,
    Call,
    Number,
    Phase,
    Read,
    Slot,
)  # fmt: skip
from gradcli.execution.kernels.native import Stretch
from gradcli.execution.kernels.sincos import sincos

if TYPE_CHECKING:
    from collections.abc import Mapping


GRAIN = 1 << 12  # entries of one partial sum; blocks begin at its multiples, so that no sum depends on them
_ZERO = np.array(0.0)


class Work:
    """What all blocks of a phase share: the arrays of inputs and outputs, numbers, partial results, the length."""

    def __init__(self, phase: Phase, count: int) -> None:
        self.phase = phase
        self.count = count
        self.bases: dict[Slot, Any] = {}
        self.numbers: Mapping[int, Any] = {}
        self.partials: list[Any] = []
        slots = [one for one in phase.corners if isinstance(one, Slot)]
        pads = [one for one in phase.corners if not isinstance(one, Slot)]
        self.low = min((slot.low for slot in slots), default=0)
        self.high = max((slot.high for slot in slots), default=0)
        places = {0, *(self.length(slot) for slot in slots)}
        for pad in pads:
            first, size = pad.more
            places |= {first, first + size}
        places |= {count if one.length is None else one.length for one in phase.reductions}
        self.corners = sorted(places)

    def length(self, slot: Slot) -> int:
        """The entries of a line."""
        return self.count if slot.length is None else slot.length

    def likeness(self, start: int, stop: int) -> tuple[int, int] | None:
        """Equal for blocks that one list of calls serves; None for a block like no other."""
        place = bisect_right(self.corners, start + self.low)
        if place < len(self.corners) and self.corners[place] < stop + self.high:
            return None
        return place, stop - start

    def stretch(self, start: int, stop: int) -> Stretch:
        """What holds in a block that is like others."""
        found: dict[Slot, Read | None] = {}
        for call in self.phase.calls:
            if call.what == PAD:
                slot, source = call.results[0], call.operands[0]
                begin, size = call.more
                first, last = max(0, start + slot.low), min(self.length(slot), stop + slot.high)
                if last <= begin or first >= begin + size:
                    found[slot] = None
                elif first >= begin and last <= begin + size and isinstance(source, Read):
                    found[slot] = source
        outputs = tuple(slot for slot in self.phase.outputs if start < self.length(slot))
        lengths = [self.count if one.length is None else one.length for one in self.phase.reductions]
        return Stretch(found, outputs, tuple(at for at, length in enumerate(lengths) if start < length))


class Frame:
    """The calls of a block."""

    def __init__(self, work: Work, buffers: list[Any], start: int, stop: int) -> None:
        self.work = work
        self.buffers = buffers
        self.start, self.stop = start, stop
        self.arrays: list[Any] = []
        self.moving: list[tuple[int, Any, int, int]] = []
        self.steps: list[tuple[Any, Any]] = []
        self.reductions: list[tuple[Any, int, Any]] = []
        self.known: dict[Any, int] = {}
        self.instead: dict[Slot, Read | None] = {}  # a pad that is its source here, or nothing but zeros
        self.copies: dict[Slot, Any] = {}
        for call in self.work.phase.calls:
            self._bind(call)
        for at, reduction in enumerate(self.work.phase.reductions):
            length = self.work.count if reduction.length is None else reduction.length
            last = min(length, self.stop)
            if self.start < last:
                place = self._array(reduction.read, self.start, last, solid=True)
                self.reductions.append((reduction.by, place, self.work.partials[at]))

    def run(self, start: int) -> None:
        """Compute the block that begins there."""
        arrays = self.arrays
        for place, base, offset, size in self.moving:
            first = start + offset
            arrays[place] = base[first : first + size]
        for function, chosen in self.steps:
            function(*chosen(arrays))
        for by, place, partials in self.reductions:
            reduce(by, arrays[place], partials, start // GRAIN)

    # --- binding -----------------------------------------------------------------------------------------

    def _range(self, slot: Slot, low: int, high: int) -> tuple[int, int]:
        return max(0, self.start + low), min(self.work.length(slot), self.stop + high)

    def _bind(self, call: Call) -> None:
        slot = call.results[0]
        first, last = self._range(slot, slot.low, slot.high)
        if first >= last:
            return
        if call.what == PAD:
            self._pad(call, first, last)
            return
        solid = call.what in (SINCOS, IMPL)
        operands = [self._operand(one, first, last, solid) for one in call.operands]
        more = [self._array(Read(one, 0), first, last) for one in (*call.results, *call.scratch)]
        self._step(_function(call), *operands, *more)

    def _step(self, function: Any, *places: int) -> None:
        self.steps.append((function, itemgetter(*places)))

    def _operand(self, one: Any, first: int, last: int, solid: bool) -> int:
        if isinstance(one, Read):
            return self._array(one, first, last, solid)
        if isinstance(one, Number):
            return self._fixed(
                np.asarray(self.work.numbers[one.value.serial]).reshape(()), ("number", one.value.serial)
            )
        return self._fixed(one, id(one))

    def _fixed(self, array: Any, key: Any) -> int:
        place = self.known.get(key)
        if place is None:
            place = self.known[key] = len(self.arrays)
            self.arrays.append(array)
        return place

    def _array(self, read: Read, first: int, last: int, solid: bool = False) -> int:
        """Where the entries of a slot stand, those for the entries from `first` to `last` of the reader."""
        slot, shift = read
        while slot in self.instead:
            other = self.instead[slot]
            if other is None:
                zeros = np.zeros(last - first, slot.dtype) if solid else _ZERO.astype(slot.dtype)
                return self._fixed(zeros, (slot, "zeros", last - first if solid else 0))
            slot, shift = other.slot, other.shift + shift
        key = (slot, first + shift, last + shift)
        place = self.known.get(key)
        if place is not None:
            return place
        if slot.kind == BUFFER or slot in self.copies or self._is_strided(slot):
            begin, _ = self._range(slot, slot.low, slot.high)
            buffer = self.buffers[slot.place] if slot.kind == BUFFER else self.copies[slot]
            return self._fixed(buffer[first + shift - begin : last + shift - begin], key)
        place = self.known[key] = len(self.arrays)
        self.arrays.append(None)
        self.moving.append((place, self.work.bases[slot], first + shift - self.start, last - first))
        return place

    def _is_strided(self, slot: Slot) -> bool:
        """Whether an input has gaps; then its entries are copied once for the block."""
        base = self.work.bases[slot]
        if slot.kind != INPUT or base.strides[0] == base.itemsize:
            return False
        first, last = self._range(slot, slot.low, slot.high)
        place = len(self.arrays)
        self.arrays.append(None)
        self.moving.append((place, base, first - self.start, last - first))
        copy = self.copies[slot] = np.empty(last - first, slot.dtype)
        self._step(_copy, place, self._fixed(copy, (slot, "copy")))
        return True

    def _pad(self, call: Call, first: int, last: int) -> None:
        slot, source = call.results[0], call.operands[0]
        begin, size = call.more
        if last <= begin or first >= begin + size:
            self.instead[slot] = None
            return
        if first >= begin and last <= begin + size and isinstance(source, Read):
            self.instead[slot] = source
            return
        whole = self._array(Read(slot, 0), first, last)
        self._step(_copy, self._fixed(_ZERO.astype(slot.dtype), (slot, "zero")), whole)
        first, last = max(first, begin), min(last, begin + size)
        inner = self._array(Read(slot, 0), first, last)
        self._step(_copy, self._operand(source, first, last, solid=False), inner)


def reduce(by: Any, x: Any, partials: Any, first: int) -> None:
    """Reduce the entries of a block grain by grain, into `partials` from `first` on."""
    count = len(x) // GRAIN
    if count:
        by.reduce(x[: count * GRAIN].reshape(count, GRAIN), axis=1, out=partials[first : first + count])
    if count * GRAIN < len(x):
        partials[first + count] = by.reduce(x[count * GRAIN :])


def _copy(x: Any, out: Any) -> None:
    np.copyto(out, x, casting="unsafe")


def _where(condition: Any, x: Any, y: Any, out: Any) -> None:
    np.copyto(out, y)
    np.copyto(out, x, where=condition)


def _function(call: Call) -> Any:
    """What a step calls, with the operands first and then the results."""
    if call.what == IMPL:
        function = call.more

        def impl(*arrays: Any) -> None:
            arrays[-1][...] = function(*arrays[:-1])

        return impl
    return _WORDS.get(call.what, call.what)


def _maximum(x: Any, y: Any, out: Any) -> None:
    np.maximum(x, y, out=out)  # NumPy wants it named, for these two


def _minimum(x: Any, y: Any, out: Any) -> None:
    np.minimum(x, y, out=out)


_WORDS: dict[Any, Any] = {
    COPY: _copy, WHERE: _where, SINCOS: sincos, np.maximum: _maximum, np.minimum: _minimum,
}  # fmt: skip
