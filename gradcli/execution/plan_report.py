"""How a plan or a kernel computes: its order of work, its memory, and what its passes did, as records.

Places are numbers in the order of work: 3 is a step on whole arrays or a loop, 3.2 the second step of that loop. Other
steps read their results as #3 and #3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels import Kernel, division
from gradcli.execution.kernels.calls import BUFFER, IMPL, INPUT, SINCOS, Number, Read
from gradcli.execution.namespaces import namespace
from gradcli.execution.plans import ranges, recording
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.values import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    ENTRY,
    ONLINE,
    PRODUCT,
    REDUCE,
    RESCALED,
    SCAN,
    VIEW,
    Op,
    Value,
    base,
    index_of,
)
from gradcli.execution.reports import PlanLoop, PlanPass, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.kernels.calls import Call, Phase, Slot
    from gradcli.execution.plans.numpy_plan import Plan

    Order = tuple[PlanStep | PlanLoop, ...]

OPERATIONS = {
    "place": "put among zeros", "added": "add to a part", "join": "join", "copy": "copy", CHOICE: "where",
    PRODUCT: "matrix product", ONLINE: "exp beside the largest entry of the block",
}  # fmt: skip
REDUCTIONS = {"add": "sum", "logical_or": "any", "maximum": "max", "minimum": "min", "multiply": "product"}


def order_of(made: Plan | Kernel) -> Order:
    """The steps and loops of a plan or a kernel."""
    return tuple(_KernelRows(made).rows() if isinstance(made, Kernel) else _plan_rows(made))


# --- what steps and values are called ---------------------------------------------------------------------------


class Names:
    """How steps refer to values."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}

    def of(self, value: Value) -> str:
        """A number, the name of a leaf, the place of a step; with the part of it that a view shows."""
        if value.number is not None:
            return f"{value.number.item():g}" if value.dtype.kind == "f" else str(value.number)
        if value.leaf is not None:
            return str(value.leaf.params["name"])
        if value.serial in self.places:
            return f"#{self.places[value.serial]}"
        op = value.op
        if op is None or op.kind != VIEW:
            return "constant"
        source = self.of(op.args[0])
        if op.function == "permute":
            return f"{source}.T"
        return source + _index(op) if op.function == "slice" else source


def _index(op: Op) -> str:
    """The index of a slice as Python writes it."""
    parts = []
    for part, n in zip(index_of(op.params), op.args[0].shape, strict=True):
        start, stop, step = part.start, part.stop, part.step or 1
        low = "" if start in (None, 0) and step > 0 else str(start)
        high = "" if stop is None or (step > 0 and stop >= n) else str(stop)
        parts.append(f"{low}:{high}" + (f":{step}" if step != 1 else ""))
    return f"[{', '.join(parts)}]"


def _type(dtype: Any, shape: Sequence[int]) -> str:
    """`f64`, `bool[3,4]`."""
    kind = f"{dtype.kind}{8 * dtype.itemsize}" if dtype.kind in "fi" else "bool"
    return f"{kind}[{','.join(map(str, shape))}]" if shape else kind


def operation(op: Op) -> str:
    """What a step does, in words."""
    if op.kind == ENTRY:
        return str(op.function.__name__)
    if op.kind == REDUCE:
        word = REDUCTIONS.get(op.function.__name__, op.function.__name__)
        axes = ", ".join(map(str, op.params))
        return f"{word} over axis {axes}" if len(op.params) == 1 else f"{word} over axes {axes}"
    if op.kind == RESCALED:
        return "factor of the block" + ("" if op.function is None else f", {op.function.__name__}")
    if op.kind == CAST:
        return f"to {op.out.dtype}"
    if op.kind == SCAN:
        return f"scan: {op.function}"
    if op.kind == CALL:
        return str(op.node.primitive.name) if op.node is not None else "call"
    return OPERATIONS.get(op.kind, op.kind)


def _operations(op: Op) -> int | None:
    """Additions, multiplications and functions of one number; None for what a library does as a whole."""
    if op.kind in (CALL, SCAN):
        return None
    if op.kind in (ENTRY, CHOICE, RESCALED, ONLINE):
        return op.out.size * (2 if op.kind == ONLINE else 1)
    if op.kind == REDUCE:
        return op.args[0].size
    if op.kind == ADDED:
        return op.args[1].size
    return 2 * op.out.size * op.args[0].shape[-1] if op.kind == PRODUCT else 0


def _step(op: Op, place: str, names: Names, memory: str = "") -> PlanStep:
    reads = tuple([names.of(arg) for arg in op.args])
    names.places[op.out.serial] = place
    span = op.node.span if op.node is not None else None
    out = op.out
    return PlanStep(place, operation(op), reads, _type(out.dtype, out.shape), _operations(op), out.nbytes, memory, span)


# --- plans ------------------------------------------------------------------------------------------------------


def _plan_rows(plan: Plan) -> Iterator[PlanStep | PlanLoop]:
    space = plan.workspace()
    names = Names()
    results = {base(value).serial for value in plan.schedule.outputs}
    loops = iter(space.loops)
    before: dict[int, str] = {}
    for number, event in enumerate(plan.schedule.events, 1):
        if not isinstance(event, Loop):
            memory = "result" if event.out.serial in results else _again(event, str(number), space.cells, before)
            yield _step(event, str(number), names, memory)
            continue
        blocks = next(loops)
        inside: dict[int, str] = {}
        cells = blocks.workers[0].frames[event.rows].cells
        summed = {op.out.serial for op in (*event.summed, *[op for op, _ in event.apart])}
        rows, known = [], dict(names.places)
        for position, op in enumerate(event.ops, 1):
            place, serial = f"{number}.{position}", op.out.serial
            memory = "" if serial in summed | results else _again(op, place, cells, inside)
            rows.append(
                _step(op, place, names, "sum" if serial in summed else "result" if serial in results else memory)
            )
        when = ""
        if event.settles is not None:
            names.places.update(known)
            names.places[event.settles.factors.serial] = str(number)
            when = f"only where {names.of(event.settles.largest)} is not finite"
        yield PlanLoop(str(number), event.count, event.rows, blocks.threads, tuple(rows), when)
    plan.give(space)


def _again(op: Op, place: str, cells: Mapping[int, Any], before: dict[int, str]) -> str:
    """The step whose memory the result of a step takes; `before` has the step that wrote last to an address."""
    cell = cells.get(op.out.serial)
    if cell is None:
        return ""
    address = cell.__array_interface__["data"][0]
    found = f"again #{before[address]}" if address in before else ""
    before[address] = place
    return found


# --- kernels ----------------------------------------------------------------------------------------------------


class _KernelRows:
    """The phases of a kernel as loops, and the steps on numbers between them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names()
        self.slots: dict[int, str] = {}  # by the call that wrote a slot

    def rows(self) -> Iterator[PlanStep | PlanLoop]:
        number = 0
        for position, phase in enumerate([*self.kernel.phases, None]):
            for op in self.kernel.steps_before(position):
                if op.kind != VIEW:
                    number += 1
                    yield _step(op, str(number), self.names)
            if phase is not None and (phase.outputs or phase.reductions):
                number += 1
                yield self._loop(phase, str(number))

    def _loop(self, phase: Phase, place: str) -> PlanLoop:
        longest = _longest(phase)
        block, threads = division(phase, longest)
        self.slots = {}
        before: dict[Any, str] = {}
        rows = [self._call(call, f"{place}.{position}", before) for position, call in enumerate(phase.calls, 1)]
        for position, one in enumerate(phase.reductions, len(rows) + 1):
            own = f"{place}.{position}"
            word = REDUCTIONS.get(one.by.__name__, one.by.__name__)
            kind = _type(one.value.dtype, one.value.shape)
            rows.append(PlanStep(own, word, (self._read(one.read),), kind, one.length or longest, 0, "sum", None))
            self.names.places[one.value.serial] = own
        return PlanLoop(place, longest, min(block, longest), threads, tuple(rows))

    def _call(self, call: Call, place: str, before: dict[Any, str]) -> PlanStep:
        reads = tuple([self._read(one) for one in call.operands])
        slot = call.results[0]
        memory = "result"
        if slot.kind == BUFFER:
            memory = f"again #{before[slot.place]}" if slot.place in before else ""
            before[slot.place] = place
        for one in call.results:
            self.slots[id(one)] = f"#{place}"
        word = "sin and cos" if call.what == SINCOS else "call" if call.what == IMPL else call.what
        name, length = str(getattr(word, "__name__", word)), slot.length or 0
        count = None if call.what == IMPL else length * len(call.results)
        return PlanStep(
            place, name, reads, _type(slot.dtype, (length,)), count, length * slot.dtype.itemsize, memory, None
        )

    def _read(self, one: Any) -> str:
        if isinstance(one, Read):
            slot, shift = one
            name = self._slot(slot)
            return f"{name}[{shift}:]" if shift > 0 else f"{name}[:{shift}]" if shift < 0 else name
        return self.names.of(one.value) if isinstance(one, Number) else f"{np.asarray(one).item():g}"

    def _slot(self, slot: Slot) -> str:
        return self.names.of(slot.place) if slot.kind == INPUT else self.slots.get(id(slot), "?")


def _longest(phase: Phase) -> int:
    ends = [slot.length for slot in phase.outputs] + [one.length for one in phase.reductions]
    return max([end or 0 for end in ends], default=0)


# --- memory -----------------------------------------------------------------------------------------------------


def temporaries(made: Plan | Kernel) -> int:
    """The bytes that a run takes beside inputs, results and constants, without those inside of a library."""
    if isinstance(made, Kernel):
        return max([_buffers(phase) for phase in made.phases], default=0)
    alone = [event for event in made.schedule.events if isinstance(event, Op)]
    own = [op.out.nbytes * (2 if op.kind == CALL else 1) for op in alone if op.kind in (CALL, CHOICE, REDUCE)]
    return made.room() + max(own, default=0)


def _buffers(phase: Phase) -> int:
    block, threads = division(phase, _longest(phase))
    found: int = threads * sum([(block + more) * dtype.itemsize for dtype, more in phase.buffers])
    return found


def constant_bytes(made: Plan | Kernel) -> int:
    """The bytes of the arrays that do not depend on any input."""
    owners = {}
    for array in made.constants.values():
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners[id(array)] = array.nbytes
    return sum(owners.values())


def bytes_of(nodes: Sequence[Any], dtype: str) -> int:
    """The bytes of arrays of these types."""
    width = np.dtype(dtype).itemsize
    return sum([int(node.type.size) * width for node in nodes])


def evaluator_bytes(tape: Tape, dtype: str) -> int:
    """The most bytes that results of the evaluator take at once, views counted as arrays."""
    width = np.dtype(dtype).itemsize
    last = {arg: place for place, node in enumerate(tape.nodes) for arg in node.args}
    kept = {*tape.outputs, *[node for node, _ in tape.inputs]}
    alive = most = 0
    for place, node in enumerate(tape.nodes):
        alive += node.type.size * width if node.args else 0
        most = max(most, alive)
        for arg in set(node.args):
            if last[arg] == place and arg not in kept and arg.args:
                alive -= arg.type.size * width
    return most


# --- passes -----------------------------------------------------------------------------------------------------


def _counted(count: int, word: str) -> str:
    """`1 step`, `2,000 steps`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def passes_of(made: Plan | Kernel, order: Order) -> Iterator[PlanPass]:
    """What recording and each pass did, where that changed anything; the names are those of `passes.py`."""
    tape, xp = made.tape, namespace("numpy", made.xp.dtype)
    with xp.arithmetic():
        before = recording.record(tape, xp.dtype)
        cut = ranges.restricted(before, xp.float_type)
    asked, ops = len([node for node in tape.nodes if node.args]), [op for op in before.ops if op.kind != VIEW]
    yield PlanPass("record", f"{_counted(asked, 'operation')} become {_counted(len(ops), 'step')}: equal ones are one")
    if held := len([op for op in before.ops if op.out.constant]):
        yield PlanPass("constants", f"computed once, because no input is read: {_counted(held, 'step')}")
    if cut is not before:
        one, other = [sum([op.out.size for op in found.ops]) for found in (before, cut)]
        yield PlanPass("ranges", f"entries that no result reads are left out: {one:,} become {other:,}")
    steps = [step for row in order for step in (row.steps if isinstance(row, PlanLoop) else (row,))]
    if isinstance(made, Kernel):
        yield from _passes_of_kernel(made)
    else:
        yield from _passes_of_plan(made)
    if again := sum([step.memory.startswith("again") for step in steps]):
        yield PlanPass("memory", f"memory that is not needed again is used by {_counted(again, 'step')}")


def _passes_of_kernel(kernel: Kernel) -> Iterator[PlanPass]:
    yield PlanPass("kernels", f"all arrays lie along one line: {_counted(len(kernel.phases), 'loop')} over its blocks")
    if any(call.what == SINCOS for phase in kernel.phases for call in phase.calls):
        yield PlanPass("sincos", "sine and cosine of one angle come together")
    if any(one is not None for one in kernel.made_native()):
        yield PlanPass("native", "loops run as machine code")


def _passes_of_plan(plan: Plan) -> Iterator[PlanPass]:
    events = plan.schedule.events
    loops = [one for one in events if isinstance(one, Loop)]
    recurrences = [op.function.core for op in events if isinstance(op, Op) and op.kind == SCAN]
    if linear := sum([core.linear for core in recurrences]):
        yield PlanPass("linear", f"{_counted(linear, 'recurrence')} a*x + b: blocks of turns side by side")
    if loops:
        yield PlanPass("blocks", f"{_counted(len(loops), 'loop')} over blocks of arrays that stay in cache")
    if any(loop.settles is not None for loop in loops):
        yield PlanPass("online", "exponentials are taken beside the largest entry of their block; factors follow")
    if any(core.native for core in recurrences):
        yield PlanPass("native", "scans run as machine code")
