"""A workspace: the memory of a schedule, and functions bound to it, to be run many times.

Small inputs are copied to fixed places, so that most steps are bound to their arrays once. What changes from run to run
(large inputs, large outputs, blocks of arrays) is looked up in a table when a step is taken.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.memory import laid_out, slot
from gradcli.execution.plans.pool import lines
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.values import ADDED, ENTRY, VIEW, Op, Value, base, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.schedule import Schedule

    Cells = dict[int, Any]
    Work = Callable[[], Any]

FREED = 1 << 24  # bytes of outputs that the C library gives back to the system when they are freed
SMALL = 1 << 16  # bytes of an input that is copied to a fixed place, and of an output that is copied from it


class Arrays:
    """Where the arrays of a frame are: `cells` by the serial of a value; those in `late` change from run to run."""

    def __init__(self) -> None:
        self.cells: Cells = {}
        self.late: set[int] = set()
        self.program: list[Work] = []

    def bind(self, op: Op, function: Callable[..., Any]) -> None:
        """Append a step: bound to its arrays, or looking them up."""
        self.call(function, [self.find(op, arg) for arg in (*op.args, op.out)])

    def call(self, function: Callable[..., Any], serials: Sequence[int]) -> None:
        """Append a call of what stands in some cells."""
        if self.late.isdisjoint(serials):
            self.program.append(partial(function, *[self.cells[serial] for serial in serials]))
        else:
            self.program.append(partial(LATE.get(len(serials), _late), function, self.cells, *serials))

    def find(self, op: Op, value: Value) -> int:
        """The serial under which a step finds an operand; numbers get a cell for each kind of use."""
        if value.number is None:
            if value.serial not in self.cells:
                self.resolve(value)
            return value.serial
        alone = operand(op, value)
        serial: int = -2 * value.serial - int(alone.ndim > 0)
        self.cells.setdefault(serial, alone)
        return serial

    def resolve(self, value: Value) -> None:
        """Make sure that a value has its cell."""
        raise TypeError("a frame knows where its arrays are")

    def show(self, op: Op, shape: tuple[int, ...]) -> None:
        """The cell of a view, from that of what it shows."""
        source, out = op.args[0].serial, op.out.serial
        if source in self.late:
            self.late.add(out)
            self.program.append(partial(_show, op, self.cells, source, out, shape))
        else:
            self.cells[out] = shown(op, self.cells[source], shape)


def _late(function: Callable[..., Any], cells: Cells, *serials: int) -> None:
    function(*[cells[serial] for serial in serials])


def _late_2(function: Callable[..., Any], cells: Cells, x: int, out: int) -> None:
    function(cells[x], cells[out])


def _late_3(function: Callable[..., Any], cells: Cells, x: int, y: int, out: int) -> None:
    function(cells[x], cells[y], cells[out])


LATE: dict[int, Callable[..., None]] = {2: _late_2, 3: _late_3}


def _show(op: Op, cells: Cells, source: int, out: int, shape: tuple[int, ...]) -> None:
    cells[out] = shown(op, cells[source], shape)


def chain(value: Value, known: Callable[[Value], bool]) -> list[Value]:
    """The views from the first one that is not known up to a value."""
    found = []
    while not known(value) and value.op is not None and value.op.kind == VIEW:
        found.append(value)
        value = value.op.args[0]
    found.reverse()
    return found


class Workspace(Arrays):
    """Memory for one run at a time, and the bound steps."""

    def __init__(self, schedule: Schedule, constants: Cells, threads: int) -> None:
        super().__init__()
        self.schedule = schedule
        self.cells.update(constants)
        self.loops: list[Any] = []
        self.outputs = [base(value) for value in schedule.outputs]
        computed = {
            op.out.serial for event in schedule.events for op in ([event] if isinstance(event, Op) else event.ops)
        }
        self.fresh: dict[int, Value] = {}  # outputs that are made anew in each run
        for value, under in zip(schedule.outputs, self.outputs, strict=True):
            if in_order(value) and under.nbytes > SMALL and under.serial in computed:
                self.fresh[under.serial] = under
        self.shared = _shared(schedule, self.fresh)
        self.small: list[tuple[int, Any]] = []  # places of inputs, and where they are copied to
        self.large: list[tuple[int, int]] = []  # places of inputs, and their serials
        for place, (_, value) in enumerate(schedule.inputs):
            if value.nbytes <= SMALL:
                self.cells[value.serial] = np.empty(value.shape, value.dtype)
                self.small.append((place, self.cells[value.serial]))
            else:
                self.large.append((place, value.serial))
        self.late.update(self.fresh)
        self.late.update(self.shared)
        self.late.update(serial for _, serial in self.large)
        self.long = sum([value.nbytes for value in self.fresh.values()]) > FREED
        work = [_of_event(event) for event in schedule.events]
        layout = laid_out(work, self._placed(computed), {value.serial for value in self.outputs})
        self.nbytes = layout.size
        memory = np.empty(layout.size + 64, np.uint8)
        memory = memory[-memory.ctypes.data % 64 :]
        for _, writes, _ in work:
            for value in writes:
                if value.serial in layout.offsets:
                    self.cells[value.serial] = slot(memory, layout.offsets[value.serial], value.shape, value.dtype)
        for event in schedule.events:
            if isinstance(event, Op):
                self.bind(event, kernel(event))
            else:
                from gradcli.execution.plans.blocks import Blocks

                blocks = Blocks(event, self, threads)
                self.loops.append(blocks)
                self.nbytes += blocks.nbytes
                self.program.append(blocks.run)
        for value in schedule.outputs:
            if value.number is None:
                self.resolve(value)
        self.results = self._results()
        self.empty = dict.fromkeys(self.late)  # cells of one run, which keep nothing afterwards

    def _results(self) -> list[tuple[Value, int, bool]]:
        """Each output, the cell that it comes from, and whether that is its own; else it is copied, or a number."""
        found = []
        given = set()
        for value, under in zip(self.schedule.outputs, self.outputs, strict=True):
            own = under.serial in self.fresh and under.serial not in given and in_order(value)
            found.append((value, under.serial if own else value.serial, own))
            if own:
                given.add(under.serial)
        return found

    def _placed(self, computed: set[int]) -> Callable[[Value], int | None]:
        return lambda value: value.nbytes if value.serial in computed and value.serial not in self.late else None

    def resolve(self, value: Value) -> None:
        for view in chain(value, lambda one: one.serial in self.cells or one.serial in self.late):
            assert view.op is not None
            self.show(view.op, view.shape)

    def run(self, inputs: Sequence[Any], room: Sequence[Any] | None = None) -> list[Any]:
        """The outputs, each in memory of its own, for the values of the inputs in their order.

        Arrays of `room` are filled and returned where they can hold an output.
        """
        cells = self.cells
        for place, cell in self.small:
            np.copyto(cell, inputs[place])
        for place, serial in self.large:
            cells[serial] = inputs[place]
        given = {} if room is None else self._rooms(room, inputs)
        cells.update(given)
        fresh = [value for serial, value in self.fresh.items() if serial not in given]
        if self.long:
            made = lines([value.size for value in fresh], [value.dtype for value in fresh])
            for value, line in zip(fresh, made, strict=True):
                cells[value.serial] = line.reshape(value.shape)
        else:
            for value in fresh:
                cells[value.serial] = np.empty(value.shape, value.dtype)
        for serial, source in self.shared.items():
            cells[serial] = cells[source]
        for step in self.program:
            step()
        found = []
        for value, serial, own in self.results:
            if own:
                found.append(cells[serial].reshape(value.shape))
            elif value.number is None:
                found.append(np.array(cells[serial], order="C"))
            else:
                found.append(np.full(value.shape, value.number))
        cells.update(self.empty)
        return found

    def _rooms(self, room: Sequence[Any], inputs: Sequence[Any]) -> dict[int, Any]:
        """The arrays of the caller in which outputs are computed."""
        found = {}
        for (value, serial, own), one in zip(self.results, room, strict=True):
            if own and _fits(one, value, inputs):
                found[serial] = one.reshape(self.fresh[serial].shape)
        return found


def _fits(room: Any, value: Value, inputs: Sequence[Any]) -> bool:
    """Whether an array of the caller can hold a result while the inputs are still read."""
    if type(room) is not np.ndarray or room.shape != value.shape or room.dtype != value.dtype:
        return False
    if not (room.flags.c_contiguous and room.flags.writeable):
        return False
    return not any(np.may_share_memory(room, one) for one in inputs)


def _shared(schedule: Schedule, fresh: dict[int, Value]) -> dict[int, int]:
    """What is read for the last time where a new output is made of it, and may be written in the output's memory."""
    if not fresh:
        return {}
    readers: dict[int, list[tuple[int, Op]]] = {}
    stored: dict[int, int] = {}
    alone: set[int] = set()
    for place, event in enumerate(schedule.events):
        for op in [event] if isinstance(event, Op) else event.ops:
            if isinstance(event, Op) or event.code is None:  # machine code may read its operands twice
                alone.add(op.out.serial)
            stored[op.out.serial] = place
            for arg in op.args:
                readers.setdefault(base(arg).serial, []).append((place, op))
    kept = {base(value).serial for value in schedule.outputs}
    found: dict[int, int] = {}
    for serial, value in fresh.items():
        made, place = value.op, stored[serial]
        assert made is not None
        over = {ENTRY: made.args, ADDED: made.args[:1]}.get(made.kind, ()) if serial in alone else ()
        for arg in over:
            alike = arg.shape == value.shape and arg.dtype == value.dtype and stored.get(arg.serial, place) < place
            last = [one for at, one in readers[base(arg).serial] if at >= place]
            if alike and arg.serial not in kept and last == [made] and sum(other is arg for other in made.args) == 1:
                found[arg.serial] = serial
                break
    return found


def _of_event(event: Op | Loop) -> tuple[list[Value], list[Value], Op | None]:
    """What an event reads and writes of whole arrays."""
    if isinstance(event, Op):
        # a view of an operand must not be written over: only operands as they stand may be
        return [base(arg) for arg in event.args], [event.out], event if event.kind in (ENTRY, "added") else None
    made = {op.out.serial for op in event.ops}
    reads = {base(arg).serial: base(arg) for op in event.ops for arg in op.args}
    writes = [*event.stored, *(op.out for op in event.summed)]
    return [value for serial, value in reads.items() if serial not in made], writes, None
