"""A tape goes in; out comes a kernel, which computes it block by block in cache and on threads, or None if none can.

That holds where every value is a number or a line of entries, each of which depends on its neighbours only (see
`lines.py`). The numbers are those of the evaluator, but for two things: sums are taken over grains of 4,096 entries, in
their order, whatever the blocks and the threads; and sine and cosine of one angle come together, at most 2.5 ulp wrong.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import error
from gradcli.execution.inputs import Unbatched, leaf_value
from gradcli.execution.kernels import frames, native
from gradcli.execution.kernels.benches import Bench, Native, pieces_of, work_through
from gradcli.execution.kernels.frames import Work
from gradcli.execution.kernels.gathered import Gathered, fits
from gradcli.execution.kernels.lines import roles_of
from gradcli.execution.kernels.memory import lines
from gradcli.execution.kernels.program import phases_of
from gradcli.execution.kernels.unrolled import MOST_ENTRIES, by_entries, scalar
from gradcli.execution.namespaces import REFUSED, namespace
from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.libraries import dealt, processors, shared, together
from gradcli.execution.plans.ranges import restricted
from gradcli.execution.plans.recording import record
from gradcli.execution.plans.values import VIEW

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.kernels.benches import Piece
    from gradcli.execution.kernels.calls import Phase
    from gradcli.execution.kernels.lines import Roles
    from gradcli.execution.plans.recording import Recording
    from gradcli.execution.plans.values import Op, Value

__all__ = ["Kernel", "kernel_at_points", "kernel_of"]

SHORTEST = 1 << 15  # entries, below which the few long calls of a plan are as good
ALONE, SHARED = 1 << 14, 1 << 15  # entries of a block: on one thread, and on several
NATIVE_WORK = 10**7  # calls times entries, from which machine code is worth the start of its compiler
LEAST_WORK = 1 << 20  # calls times entries, below which a second thread does not pay
BENCH_BYTES = 1 << 22  # of the buffers of one thread
MOST_HELD = 1 << 26  # bytes of constant arrays that are computed once
MOST_NODES = 10_000  # of a program that is looked at
DEAR = {np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.power, np.sqrt, np.expm1, np.log1p}


def kernel_of(tape: Tape, dtype: str = "float64", once: bool = False) -> Kernel | None:
    """The kernel of a tape whose arrays are the lines; None for a program of another form, or where they are short.

    A kernel that is run `once` leaves the compiler of machine code alone unless the lines are very long.
    """
    if max((node.type.size for node in tape.nodes), default=0) < SHORTEST:
        return None
    return _made(tape, dtype, None, once)


def kernel_at_points(tape: Tape, dtype: str, moving: Collection[str]) -> Kernel | Gathered | None:
    """The kernel of a tape at many points, which the first axis of the inputs `moving` counts; None for another form.

    Entries of arrays are lines of their own there, so arrays have to be short.
    """
    made = _made(tape, dtype, moving, False)
    return Gathered(made, tape, moving) if made is not None and made.unrolled else made


def _made(tape: Tape, dtype: str, moving: Collection[str] | None, once: bool) -> Kernel | None:
    if dtype not in ("float64", "float32") or len(tape.nodes) > MOST_NODES or tape.loops:
        return None
    arrays = moving is not None and any(node.type.shape for node in tape.nodes)
    if arrays and max((n.type.size for n, _ in tape.inputs if n.name in (moving or ())), default=0) > MOST_ENTRIES:
        return None
    try:
        xp = namespace("numpy", dtype)
        with xp.arithmetic():
            found: Recording | None = record(tape, dtype, faithful=moving is not None)
            if found is not None and moving is None and restricted(found, xp.float_type) is not found:
                return None  # most entries are not needed: a plan leaves them out
            if found is not None and arrays:
                found = by_entries(found, xp.float_type)
            roles = None if found is None else roles_of(found, moving)
            if found is None or roles is None or not roles.lines:
                return None
            phases = phases_of(found, roles)
            return None if phases is None else Kernel(tape, dtype, found, roles, phases, once, arrays)
    except REFUSED:
        return None


def _repeats(phases: Sequence[Phase]) -> bool:
    """Whether phases compute exponentials and the like which an earlier one had: a plan keeps them, which is faster."""
    slow = [call.what for phase in phases for call in phase.calls if call.what in DEAR]
    return len(phases) > 2 and len(slow) > len(set(slow))


class Kernel:
    """A program that is run in blocks. It may be used by several threads at once."""

    def __init__(
        self,
        tape: Tape,
        dtype: str,
        recording: Recording,
        roles: Roles,
        phases: Sequence[Phase],
        once: bool = False,
        by_entry: bool = False,
    ) -> None:
        self.tape = tape
        self.unrolled = by_entry  # its inputs and outputs are the entries of those of the tape
        self.outputs = (
            [scalar(node) for node in tape.outputs for _ in range(node.type.size)] if by_entry else tape.outputs
        )
        self.once = once
        self.xp = namespace("numpy", dtype)
        self._arrays = Unbatched(self.xp, tape)
        self.recording = recording
        self.roles = roles
        self.phases = phases
        self.repeats = _repeats(phases)
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

    def answer(self, values: Mapping[str, Any], exact: bool = False) -> list[Any] | None:
        """What `Tape.run` gives at one point. None where a value has batch axes.

        None too, where `exact` arrays are asked for, if values are not arrays of the inputs' types already.
        """
        arrays = self._arrays.exact(values) if exact else self._arrays(values)
        return None if arrays is None else self.run(arrays)

    def steps_before(self, phase: int) -> Sequence[Op]:
        """The steps on numbers that are taken before a phase."""
        return self._steps[phase]

    def made_native(self) -> list[Native | None]:
        """The machine code that runs so far have made; None for what it cannot do."""
        return list(self._native.values())

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
            if mine is not None and (self.unrolled or fits(mine, (work.length(slot),), slot.dtype, inputs)):
                results[slot.place] = work.bases[slot] = mine
        new = [slot for slot in phase.outputs if slot not in work.bases]
        for slot, made in zip(new, lines([work.length(one) for one in new], [one.dtype for one in new]), strict=True):
            results[slot.place] = work.bases[slot] = made
        for one in phase.reductions:
            work.partials.append(np.empty(-(-(one.length or longest) // frames.GRAIN), one.value.dtype))
        self._blocks(work, longest)
        for one, partials in zip(phase.reductions, work.partials, strict=True):
            known[one.value.serial] = np.array(one.by.reduce(partials)).reshape(one.value.shape)

    def _blocks(self, work: Work, longest: int) -> None:
        calls = len(work.phase.calls)
        block, threads = division(work.phase, longest)
        pieces = self._pieces(work, block, longest * max(calls, 1))
        shares = shared(pieces, threads)

        def some(at: int) -> None:
            work_through(Bench(work, block), dealt(shares, at))

        together([partial(some, at) for at in range(threads)])

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
        node = self.outputs[place]
        if line is None:
            found = np.asarray(value.number if value.number is not None else _array(value, known))
            if self.roles.counted:
                return found if node.type.kind == "float" else found.astype("float64")
            if not node.type.shape:
                return float(found)
            kind = self.xp.kind_type("float") if node.type.kind == "float" else "float64"
            return np.array(np.broadcast_to(found, node.type.shape), kind)
        made = line if self.roles.counted or len(node.type.shape) == 1 else line.reshape(node.type.shape)
        return made if node.type.kind == "float" else made.astype("float64")


def division(phase: Phase, longest: int) -> tuple[int, int]:
    """The entries of a block of a phase over so many entries, and how many threads share the blocks."""
    threads = processors() if longest * max(len(phase.calls), 1) >= LEAST_WORK else 1
    block = SHARED if threads > 1 else ALONE
    grains = BENCH_BYTES // 8 // max(len(phase.buffers), 1) // frames.GRAIN
    block = min(block, max(frames.GRAIN, grains * frames.GRAIN))
    return block, min(threads, -(-longest // block))


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
