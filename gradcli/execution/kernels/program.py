"""Steps whose values are lines go in; out come their phases: calls of NumPy on slots, and which slots share a buffer.

A phase ends where a reduction has to be finished before the next calls; lines that both need are computed in both. The
window of a slot says which entries beside the block itself are wanted of it. It runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels.buffers import buffers_of, slots_of
from gradcli.execution.kernels.calls import (
    BUFFER,
    COPY,
    IMPL,
    INPUT,
    OUTPUT,
    PAD,
    SINCOS,
    WHERE,
    Call,
    Number,
    Phase,
    Read,
    Reduction,
    Slot,
)  # fmt: skip
from gradcli.execution.kernels.lines import Line, flat_start
from gradcli.execution.kernels.sincos import SCRATCH
from gradcli.execution.plans.values import ADDED, CALL, CHOICE, ENTRY, PLACE, REDUCE, index_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.kernels.lines import Roles
    from gradcli.execution.plans.recording import Recording
    from gradcli.execution.plans.values import Op, Value

WIDEST = 2048  # entries beside its own that an entry may read: they are computed again in each block
LARGEST_POWER = 1024


def phases_of(recording: Recording, roles: Roles) -> list[Phase] | None:
    """The phases of a program; None where an entry reads too far beside itself."""
    sums = [op for op in recording.ops if op.kind == REDUCE and op.args[0].serial in roles.lines]
    sums = [op for op in sums if op.out.serial not in roles.lines and not op.out.constant]
    lines = [(place, value) for place, value in enumerate(recording.outputs) if value.serial in roles.lines]
    last = max(
        [roles.phases[value.serial] for _, value in lines] + [roles.phases[op.out.serial] - 1 for op in sums],
        default=-1,
    )
    found = []
    for number in range(last + 1):
        maker = _Maker(roles)
        maker.lower(
            recording.ops,
            [(place, value) for place, value in lines if roles.phases[value.serial] == number],
            [op for op in sums if roles.phases[op.out.serial] == number + 1],
        )
        phase = maker.finished()
        if phase is None:
            return None
        found.append(phase)
    return found


class _Maker:
    """The calls of one phase while they are collected."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.calls: list[Call] = []
        self.reductions: list[Reduction] = []
        self.reads: dict[int, Any] = {}
        self.inputs: dict[int, Slot] = {}
        self.outputs: list[Slot] = []
        self.known: dict[Any, Slot] = {}

    # --- steps to calls ---------------------------------------------------------------------------------

    def lower(self, ops: Sequence[Op], outputs: Sequence[tuple[int, Value]], sums: Sequence[Op]) -> None:
        """All calls that these outputs and reductions need."""
        wanted = {value.serial for _, value in outputs} | {op.args[0].serial for op in sums}
        needed = []
        for op in reversed(ops):
            if op.out.serial in wanted and op.out.serial in self.roles.lines and not op.out.constant:
                needed.append(op)
                wanted.update(arg.serial for arg in op.args if arg.serial in self.roles.lines)
        for op in reversed(needed):
            self.reads[op.out.serial] = self._read(op)
        for op in sums:
            arg = op.args[0]
            read = self._operand(arg)
            if not isinstance(read, Read):
                read = Read(self._call(COPY, (read,), arg.dtype, self.roles.length(arg)), 0)
            self.reductions.append(Reduction(op.out, read, op.function, self.roles.length(arg)))
        for place, value in outputs:
            slot = Slot(OUTPUT, value.dtype, self.roles.length(value), place)
            self.outputs.append(slot)
            self.calls.append(Call(COPY, (self._operand(value),), (slot,)))

    def _operand(self, value: Value) -> Any:
        """What a call reads for a value: a slot, a number of the program, or one that is known by now."""
        known = self.reads.get(value.serial)
        if known is not None:
            return known
        if value.number is not None:
            return np.asarray(value.number)
        line = self.roles.lines.get(value.serial)
        if line is None:
            return Number(value)
        if not isinstance(line, Line):  # a number, repeated
            return self._operand(line)
        slot = self.inputs.get(line.value.serial)
        if slot is None:
            slot = Slot(INPUT, line.value.dtype, self.roles.length(line.value), line.value)
            self.inputs[line.value.serial] = slot
        return Read(slot, line.shift)

    def _read(self, op: Op) -> Any:
        line = self.roles.lines[op.out.serial]
        if not isinstance(line, Line):  # a number, repeated
            return self._operand(line)
        if line.value is not op.out:
            known = self._operand(line.value)
            return Read(known.slot, known.shift + line.shift) if isinstance(known, Read) else known
        length = self.roles.length(op.out)
        if op.kind == PLACE:
            return self._pad(op, op.args[0], length)
        operands = tuple(map(self._operand, op.args))
        if op.kind == ADDED:
            padded = self._pad(op, op.args[1], length)
            return Read(self._call(np.add, (operands[0], padded), op.out.dtype, length), 0)
        if op.kind == ENTRY:
            return self._function(op.function, operands, op.out.dtype, length)
        if op.kind == CALL:
            return Read(self._call(IMPL, operands, op.out.dtype, length, op.function), 0)
        return Read(self._call(WHERE if op.kind == CHOICE else COPY, operands, op.out.dtype, length), 0)

    def _pad(self, op: Op, source: Value, length: int | None) -> Read:
        first = flat_start(op.out.shape, index_of(op.params[1]), source.shape)
        operand = self._operand(source)
        if isinstance(operand, Read):
            operand = Read(operand.slot, operand.shift - first)
        slot = Slot(BUFFER, op.out.dtype, length)
        self.calls.append(Call(PAD, (operand,), (slot,), more=(first, source.size)))
        return Read(slot, 0)

    def _function(self, function: Any, given: tuple[Any, ...], dtype: Any, length: int | None) -> Read:
        if function is np.power and isinstance(given[1], np.ndarray) and whole(given[1]):
            return self._whole_power(given[0], given[1], dtype, length)
        return Read(self._call(function, given, dtype, length), 0)

    def _whole_power(self, base: Any, exponent: Any, dtype: Any, length: int | None) -> Read:
        """A whole power by way of the positive one: NumPy takes twenty times as long for a negative base."""
        size = Read(self._call(np.absolute, (base,), dtype, length), 0)
        found = Read(self._call(np.power, (size, exponent), dtype, length), 0)
        if int(exponent) % 2:
            found = Read(self._call(np.copysign, (found, base), dtype, length), 0)
        return found

    def _call(self, what: Any, operands: tuple[Any, ...], dtype: Any, length: int | None, more: Any = None) -> Slot:
        """The slot of a call; the one that is there where it was made before."""
        key = (what, tuple(map(_key, operands)), dtype, length) if more is None else None
        slot = self.known.get(key) if key is not None else None
        if slot is None:
            slot = Slot(BUFFER, np.dtype(dtype), length)
            self.calls.append(Call(what, operands, (slot,), more=more))
            if key is not None:
                self.known[key] = slot
        return slot

    # --- calls to a phase -------------------------------------------------------------------------------

    def finished(self) -> Phase | None:
        """The phase, with windows and buffers."""
        self._pair_sines()
        self._windows()
        self._write_through()
        slots = {slot for call in self.calls for slot in (*call.results, *slots_of(call))}
        if any(slot.high - slot.low > WIDEST for slot in slots):
            return None
        buffers = buffers_of(self.calls, self.reductions)
        pads = [call for call in self.calls if call.what == PAD]
        inputs = tuple(self.inputs.values())
        return Phase(tuple(self.calls), tuple(self.reductions), buffers, inputs, tuple(self.outputs), (*slots, *pads))

    def _pair_sines(self) -> None:
        """Sine and cosine of one line become one call."""
        found: dict[Any, dict[Any, int]] = {}
        for place, call in enumerate(self.calls):
            if call.what in (np.sin, np.cos) and isinstance(call.operands[0], Read):
                if call.results[0].dtype == np.float64 == call.operands[0].slot.dtype:
                    key = (_key(call.operands[0]), call.results[0].length)
                    found.setdefault(key, {})[call.what] = place
        for pair in found.values():
            if len(pair) == 2:
                sine, cosine = self.calls[pair[np.sin]], self.calls[pair[np.cos]]
                slot = sine.results[0]
                scratch = tuple(Slot(BUFFER, slot.dtype, slot.length) for _ in range(SCRATCH))
                both = Call(SINCOS, sine.operands, (slot, cosine.results[0]), scratch)
                self.calls[min(pair.values())] = both
                self.calls[max(pair.values())] = both
        self.calls = list({id(call): call for call in self.calls}.values())

    def _windows(self) -> None:
        for slot, shift in (one.read for one in self.reductions):
            slot.low, slot.high = min(slot.low, shift), max(slot.high, shift)
        for call in reversed(self.calls):
            low = min(slot.low for slot in call.results)
            high = max(slot.high for slot in call.results)
            for slot in (*call.results, *call.scratch):
                slot.low, slot.high = low, high
            for one in call.operands:
                if isinstance(one, Read):
                    one.slot.low = min(one.slot.low, low + one.shift)
                    one.slot.high = max(one.slot.high, high + one.shift)

    def _write_through(self) -> None:
        """What is only copied to an output is computed there."""
        made = {slot: call for call in self.calls for slot in call.results}
        taken: dict[Slot, Slot] = {}
        for call in self.calls:
            if call.what != COPY or call.results[0].kind != OUTPUT:
                continue
            one, out = call.operands[0], call.results[0]
            if isinstance(one, Read) and one.shift == 0 and one.slot.kind == BUFFER and one.slot not in taken:
                slot = one.slot
                plain = slot.low == slot.high == 0 and slot.length == out.length and slot.dtype == out.dtype
                if plain and made[slot].what != PAD:
                    taken[slot] = out
        if not taken:
            return

        def read(one: Any) -> Any:
            return Read(taken.get(one.slot, one.slot), one.shift) if isinstance(one, Read) else one

        kept = []
        for call in self.calls:
            operands = tuple(map(read, call.operands))
            results = tuple(taken.get(slot, slot) for slot in call.results)
            if call.what == COPY and isinstance(operands[0], Read) and operands[0].slot is results[0]:
                continue
            kept.append(call._replace(operands=operands, results=results))
        self.calls = kept
        self.reductions = [one._replace(read=read(one.read)) for one in self.reductions]


def whole(exponent: Any) -> bool:
    """Whether a power is a whole number, and of a size for which it is known to be even or odd."""
    return bool(np.isfinite(exponent) and np.rint(exponent) == exponent and abs(exponent) <= LARGEST_POWER)


def _key(operand: Any) -> Any:
    if isinstance(operand, Read):
        return (id(operand.slot), operand.shift)
    return (operand.dtype.str, operand.tobytes()) if isinstance(operand, np.ndarray) else operand.value.serial
