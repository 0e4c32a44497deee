"""A tape goes in; out comes a kernel, which computes it block by block in cache and on threads, or None if none can.

That holds where every value is a number or a line of entries, each of which depends on its neighbours only (see
`lines.py`). The numbers are those of the evaluator, but for two things: sums are taken over grains of 4,096 entries, in
their order, whatever the blocks and the threads; and sine and cosine of one angle come together, at most 2.5 ulp wrong.
"""

from __future__ import annotations

from itertools import count as counted
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import error
from gradcli.execution.inputs import leaf_value
from gradcli.execution.kernels import frames, native
from gradcli.execution.kernels.benches import Bench, Native, pieces_of, work_through
from gradcli.execution.kernels.frames import Work
from gradcli.execution.kernels.lines import roles_of
from gradcli.execution.kernels.program import phases_of
from gradcli.execution.namespaces import BadIndex, NotReal, Unavailable, namespace
from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.libraries import pool, processors
from gradcli.execution.plans.recording import record
from gradcli.execution.plans.values import VIEW

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.kernels.benches import Piece
    from gradcli.execution.kernels.calls import Phase
    from gradcli.execution.kernels.lines import Roles
    from gradcli.execution.plans.recording import Recording
    from gradcli.execution.plans.values import Op, Value

__all__ = ["Kernel", "kernel_of"]

SHORTEST = 1 << 15  # entries, below which the few long calls of a plan are as good
ALONE, SHARED = 1 << 14, 1 << 15  # entries of a block: on one thread, and on several
NATIVE_WORK = 10**7  # calls times entries, from which machine code is worth the start of its compiler
LEAST_WORK = 1 << 20  # calls times entries, below which a second thread does not pay
BENCH_BYTES = 1 << 22  # of the buffers of one thread
MOST_HELD = 1 << 26  # bytes of constant arrays that are computed once
MOST_NODES = 10_000  # of a program that is looked at
REFUSED = (BadIndex, NotReal, Unavailable, MemoryError)  # what the evaluator reports with a place in the script


def kernel_of(
    tape: Tape, dtype: str = "float64", moving: Collection[str] | None = None, once: bool = False
) -> Kernel | None:
    """The kernel of a tape for float64 or float32; None for a program that is of another form.

    `moving` names the inputs whose first axis counts points; without it the arrays of the program are the lines, and
    None comes too where they are short. A kernel that is run `once` leaves the compiler of machine code alone unless
    the lines are very long.
    """
    if dtype not in ("float64", "float32") or len(tape.nodes) > MOST_NODES:
        return None
    if moving is None and max((node.type.size for node in tape.nodes), default=0) < SHORTEST:
        return None
    try:
        with namespace("numpy", dtype).arithmetic():
            recording = record(tape, dtype)
            roles = roles_of(recording, moving)
            if roles is None or not roles.lines:
                return None
            phases = phases_of(recording, roles)
            return None if phases is None else Kernel(tape, dtype, recording, roles, phases, once)
    except REFUSED:
        return None


class Kernel:
    """A program that is run in blocks. It may be used by several threads at once."""

    def __init__(
        self, tape: Tape, dtype: str, recording: Recording, roles: Roles, phases: Sequence[Phase], once: bool = False
    ) -> None:
        self.tape = tape
        self.once = once
        self.xp = namespace("numpy", dtype)
        self.recording = recording
        self.roles = roles
        self.phases = phases
        self.constants: dict[int, Any] = {}
        self._native: dict[Any, Native | None] = {}
        held = sum(op.out.nbytes for op in recording.ops if op.out.constant)
        self.held = held <= MOST_HELD
        self._steps: list[list[Op]] = [[] for _ in range(len(phases) + 1)]
        reduced = {one.value.serial for phase in phases for one in phase.reductions}
        for op in recording.ops:
            if op.out.constant:
                continue
            if op.out.serial not in roles.lines and op.out.serial not in reduced:
                self._steps[min(roles.phases[op.out.serial], len(phases))].append(op)
        self._constant = [op for op in recording.ops if op.out.constant]
        if self.held:
            self.constants = self._fixed()

    def run(self, given: Sequence[Any], count: int | None = None, out: Sequence[Any] | None = None) -> list[Any]:
        """The outputs: numbers as floats, lines as new arrays. `given` holds the inputs in the order of the tape.

        `count` is the number of points where inputs count them; those outputs that do not depend on a point are numbers
        then. `out` may hold an array for each output: a line is computed there and it is returned where it fits,
        else a new array is. Raises GradcliError as the evaluator does.
        """
        try:
            with self.xp.arithmetic():
                return self._run(given, count, out)
        except MemoryError as full:
            told = max(self.tape.outputs, key=lambda one: one.type.size)
            raise error("GC506", f"not enough memory for {told.type.text(self.xp.dtype)}", told.span) from full

    def answer(self, values: Mapping[str, Any]) -> list[Any] | None:
        """What `Tape.run` gives at one point. None where a value has batch axes."""
        arrays = []
        for (node, _), given in zip(self.tape.inputs, self.tape.given(values), strict=True):
            made = leaf_value(self.xp, node, given)
            if made.ndim != len(node.type.shape):
                return None
            arrays.append(made)
        return self.run(arrays)

    def _fixed(self) -> dict[int, Any]:
        """What does not depend on an input."""
        known: dict[int, Any] = {}
        for op in self._constant:
            known[op.out.serial] = _computed(op, known)
        return known

    def _run(self, given: Sequence[Any], count: int | None, out: Sequence[Any] | None) -> list[Any]:
        known = dict(self.constants) if self.held else self._fixed()
        for (node, value), one in zip(self.recording.inputs, given, strict=True):
            known[value.serial] = leaf_value(self.xp, node, one)
        results: list[Any] = [None] * len(self.recording.outputs)
        for number, phase in enumerate(self.phases):
            self._numbers(number, known)
            self._phase(phase, known, results, count, out)
        self._numbers(len(self.phases), known)
        return [self._result(place, value, results[place], known) for place, value in enumerate(self.recording.outputs)]

    def _numbers(self, phase: int, known: dict[int, Any]) -> None:
        """The numbers that can be had before a phase."""
        for op in self._steps[phase]:
            picked = self.roles.picked.get(op.out.serial)
            if picked is not None:
                base = _array(picked.value, known)
                known[op.out.serial] = np.array(base.reshape(-1)[picked.shift]).reshape(op.out.shape)
            else:
                known[op.out.serial] = _computed(op, known)

    def _phase(
        self,
        phase: Phase,
        known: dict[int, Any],
        results: list[Any],
        count: int | None,
        out: Sequence[Any] | None,
    ) -> None:
        if not phase.outputs and not phase.reductions:
            return
        ends = [slot.length for slot in phase.outputs] + [one.length for one in phase.reductions]
        longest = max(count or 0, *(end or 0 for end in ends))
        work = Work(phase, longest)
        work.numbers = known
        for slot in phase.inputs:
            base = _array(slot.place, known)
            work.bases[slot] = base if base.ndim == 1 else base.reshape(-1)
        inputs = list(work.bases.values())
        for slot in phase.outputs:
            mine = out[slot.place] if out is not None else None
            if mine is None or not _fits(mine, work.length(slot), slot.dtype, inputs):
                mine = np.empty(work.length(slot), slot.dtype)
            results[slot.place] = work.bases[slot] = mine
        for one in phase.reductions:
            work.partials.append(np.empty(-(-(one.length or longest) // frames.GRAIN), one.value.dtype))
        self._blocks(work, longest)
        for one, partials in zip(phase.reductions, work.partials, strict=True):
            known[one.value.serial] = np.array(one.by.reduce(partials)).reshape(one.value.shape)

    def _blocks(self, work: Work, longest: int) -> None:
        calls = len(work.phase.calls)
        threads = processors() if longest * max(calls, 1) >= LEAST_WORK else 1
        block = SHARED if threads > 1 else ALONE
        block = min(
            block, max(frames.GRAIN, BENCH_BYTES // 8 // max(len(work.phase.buffers), 1) // frames.GRAIN * frames.GRAIN)
        )
        threads = min(threads, -(-longest // block))
        pieces = self._pieces(work, block, longest * max(calls, 1))
        places = counted()

        def some() -> None:
            work_through(Bench(work, block), _dealt(pieces, places))

        others = [pool(threads - 1).submit(some) for _ in range(threads - 1)]
        try:
            some()
        finally:
            for other in others:
                other.result()

    def _pieces(self, work: Work, block: int, effort: int) -> Sequence[Piece]:
        """The blocks; by machine code where the extra `fast` is there and the work is worth its making."""
        little = effort < NATIVE_WORK or (self.once and work.count < NATIVE_WORK)
        if little or self.xp.dtype != "float64" or not native.is_there():
            return [(start, min(start + block, work.count), None) for start in range(0, work.count, block)]

        def native_for(stretch: native.Stretch) -> Native | None:
            key = (id(work.phase), stretch.key())
            if key not in self._native:
                loop = native.loop_of(work.phase, stretch)
                self._native[key] = None if loop is None else Native(loop, native.made(loop.text))
            made = self._native[key]
            if made is not None:
                made.warm(work)
            return made

        return pieces_of(work, block, native_for)

    def _result(self, place: int, value: Value, line: Any, known: Mapping[int, Any]) -> Any:
        node = self.tape.outputs[place]
        if line is None:
            found = np.asarray(value.number if value.number is not None else _array(value, known))
            if not node.type.shape:
                return float(found)
            return np.array(found, self.xp.kind_type("float") if node.type.kind == "float" else "float64")
        made = line if self.roles.counted or len(node.type.shape) == 1 else line.reshape(node.type.shape)
        return made if node.type.kind == "float" else made.astype("float64")


def _computed(op: Op, known: Mapping[int, Any]) -> Any:
    """The result of a step on whole arrays."""
    xs = [operand(op, arg) if arg.number is not None else _array(arg, known) for arg in op.args]
    if op.kind == VIEW:
        return shown(op, xs[0], op.out.shape)
    made = np.empty(op.out.shape, op.out.dtype)
    kernel(op)(*xs, made)
    return made


def _array(value: Value, known: Mapping[int, Any]) -> Any:
    return value.array if value.array is not None else known[value.serial]


def _fits(room: Any, length: int, dtype: Any, inputs: Iterable[Any]) -> bool:
    """Whether an array of the caller can hold a line while the inputs are still read."""
    if type(room) is not np.ndarray or room.shape != (length,) or room.dtype != dtype:
        return False
    if not (room.flags.c_contiguous and room.flags.writeable):
        return False
    return not any(np.may_share_memory(room, one) for one in inputs)


def _dealt(pieces: Sequence[Piece], places: Any) -> Iterator[Piece]:
    """The blocks that are left, one at a time: the counter is shared by all threads."""
    for place in places:
        if place >= len(pieces):
            return
        yield pieces[place]
