"""Runs a schedule: binds memory and functions to its steps in a workspace, which runs any number of times.

Small inputs are copied to fixed places, so that most steps are bound to their arrays once. What changes from run to run
(large inputs, large outputs, blocks of arrays) is looked up in a table when a step is taken. In a loop every thread has
memory for one block, which stays in its cache. What adds up along the blocks is added in a fixed order: a fixed number
of stretches of blocks, each in order, then the stretches in order, whatever the threads are.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import ir
from gradcli.execution.compiler.allocate import lay_out, slot
from gradcli.execution.compiler.emit_numpy import entry, kernel, operand, show_view
from gradcli.execution.compiler.ir import Op, PlanValue, base, in_order, index_of
from gradcli.execution.compiler.schedule import BlockLoop, follows, root, steps_of
from gradcli.execution.compiler.thread_pool import one_thread, setters, together

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gradcli.execution.compiler.schedule import Schedule

    Cells = dict[int, Any]
    Work = Callable[[], Any]

SMALL = 1 << 16  # bytes of an input that is copied to a fixed place, and of an output that is copied from it
STRETCHES, FEWER = 16, 8  # of a loop; where the parts of sums would take much memory
LARGE = 1 << 16  # bytes of sums
WORTH_A_THREAD = 1 << 18  # entries times steps
OVERLAP = 8  # rows of a block, for each that is kept until the loop has ended
WIDEST = 256  # entries of a row, from which its beginning takes little of the time
ENTRYWISE = (ir.ENTRY, ir.CHOICE, ir.CAST, ir.COPY)
READERS = (*ENTRYWISE, ir.PRODUCT, ir.REDUCE)  # kinds of steps that read turned arrays as fast as others


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
            self.program.append(partial(_late, function, self.cells, serials))

    def find(self, op: Op, value: PlanValue) -> int:
        """The serial under which a step finds an operand; numbers get a cell for each kind of use."""
        if value.number is None:
            if value.serial not in self.cells:
                self.resolve(value)
            return value.serial
        alone = operand(op, value)
        serial: int = -2 * value.serial - int(alone.ndim > 0)
        self.cells.setdefault(serial, alone)
        return serial

    def shape(self, value: PlanValue) -> tuple[int, ...]:
        """The shape of the array in the cell of a value."""
        return value.shape

    def resolve(self, value: PlanValue) -> None:
        """Make sure that a value has its cell: it is a view of one that has."""
        views: list[Op] = []
        while value.serial not in self.cells and value.serial not in self.late and value.op is not None:
            if value.op.kind != ir.VIEW:
                break
            views.append(value.op)
            value = value.op.args[0]
        for op in reversed(views):
            self.show(op, self.shape(op.out))

    def show(self, op: Op, shape: tuple[int, ...]) -> None:
        """The cell of a view, from that of what it shows."""
        source, out = op.args[0].serial, op.out.serial
        if source in self.late:
            self.late.add(out)
            self.program.append(partial(_show, op, self.cells, source, out, shape))
        else:
            self.cells[out] = show_view(op, self.cells[source], shape)


def _late(function: Callable[..., Any], cells: Cells, serials: Sequence[int]) -> None:
    function(*[cells[serial] for serial in serials])


def _show(op: Op, cells: Cells, source: int, out: int, shape: tuple[int, ...]) -> None:
    cells[out] = show_view(op, cells[source], shape)


class Workspace(Arrays):
    """Memory for one run at a time, and the bound steps."""

    def __init__(self, schedule: Schedule, constants: Cells, threads: int) -> None:
        super().__init__()
        self.schedule = schedule
        self.cells.update(constants)
        self.loops: list[Any] = []
        self.outputs = [base(value) for value in schedule.outputs]
        computed = {op.out.serial for event in schedule.events for op in steps_of(event)}
        self.fresh: dict[int, PlanValue] = {}  # outputs that are made anew in each run
        for value, under in zip(schedule.outputs, self.outputs, strict=True):
            if in_order(value) and under.nbytes > SMALL and under.serial in computed:
                self.fresh[under.serial] = under
        self.overlaps = _overlaps(schedule, self.fresh)
        self.small: list[tuple[int, Any]] = []  # places of inputs, and where they are copied to
        self.large: list[tuple[int, int]] = []  # places of inputs, and their serials
        for place, (_, value) in enumerate(schedule.inputs):
            if value.nbytes <= SMALL:
                self.cells[value.serial] = np.empty(value.shape, value.dtype)
                self.small.append((place, self.cells[value.serial]))
            else:
                self.large.append((place, value.serial))
        self.late.update(self.fresh)
        replaced = [step for overlap in self.overlaps for step in overlap.steps]
        self.late.update([value.serial for step in replaced for value in (step.args[-1], step.out)])
        self.late.update(serial for _, serial in self.large)
        work = [_of_event(event) for event in schedule.events]
        placed, kept = computed - self.late, {value.serial for value in self.outputs}
        layout = lay_out(work, lambda value: value.nbytes if value.serial in placed else None, kept)
        self.nbytes = layout.size
        memory = np.empty(layout.size + 64, np.uint8)
        memory = memory[-memory.ctypes.data % 64 :]
        for _, writes, _ in work:
            for value in writes:
                if value.serial in layout.offsets:
                    self.cells[value.serial] = slot(memory, layout.offsets[value.serial], value.shape, value.dtype)
        for event in schedule.events:
            if isinstance(event, Op):
                if event not in replaced:
                    self.bind(event, kernel(event))
            else:
                blocks = BoundLoop(event, self, threads)
                self.loops.append(blocks)
                self.nbytes += blocks.nbytes
                self.program.append(blocks.run)
                for overlap in blocks.overlaps:
                    self.call(overlap.finish, [overlap.out])
        for value in schedule.outputs:
            if value.number is None:
                self.resolve(value)
        self.results = self._results()
        self.empty = dict.fromkeys(self.late)  # cells of one run, which keep nothing afterwards

    def _results(self) -> list[tuple[PlanValue, int, bool]]:
        """Each output, the cell that it comes from, and whether that is its own; else it is copied, or a number."""
        results = []
        taken = set()
        for value, under in zip(self.schedule.outputs, self.outputs, strict=True):
            own = under.serial in self.fresh and under.serial not in taken and in_order(value)
            results.append((value, under.serial if own else value.serial, own))
            if own:
                taken.add(under.serial)
        return results

    def run(self, inputs: Sequence[Any], room: Sequence[Any] | None = None) -> list[Any]:
        """The outputs, each in memory of its own, for the values of the inputs in their order.

        Arrays of `room` are filled and returned where they can hold an output.
        """
        cells = self.cells
        for place, cell in self.small:
            np.copyto(cell, inputs[place])
        for place, serial in self.large:
            cells[serial] = inputs[place]
        rooms = {} if room is None else self._rooms(room, inputs)
        cells.update(rooms)
        for serial, value in self.fresh.items():
            if serial not in rooms:
                cells[serial] = np.empty(value.shape, value.dtype)
        for step in self.program:
            step()
        outputs = []
        for value, serial, own in self.results:
            if own:
                outputs.append(cells[serial].reshape(value.shape))
            elif value.number is None:
                outputs.append(np.array(cells[serial], order="C"))
            else:
                outputs.append(np.full(value.shape, value.number))
        cells.update(self.empty)
        return outputs

    def _rooms(self, room: Sequence[Any], inputs: Sequence[Any]) -> dict[int, Any]:
        """The arrays of the caller in which outputs are computed."""
        rooms = {}
        for (value, serial, own), array in zip(self.results, room, strict=True):
            if own and _fits(array, value, inputs):
                rooms[serial] = array.reshape(self.fresh[serial].shape)
        return rooms


def _fits(room: Any, value: PlanValue, inputs: Sequence[Any]) -> bool:
    """Whether an array of the caller can hold a result while the inputs are still read."""
    if type(room) is not np.ndarray or room.shape != value.shape or room.dtype != value.dtype:
        return False
    if not (room.flags.c_contiguous and room.flags.writeable):
        return False
    return not any(np.may_share_memory(room, array) for array in inputs)


def _of_event(event: Op | BlockLoop) -> tuple[list[PlanValue], list[PlanValue], Op | None]:
    """What an event reads and writes of whole arrays."""
    if isinstance(event, Op):
        # a view of an operand must not be written over: only operands as they stand may be
        return [base(arg) for arg in event.args], [event.out], event if event.kind in (ir.ENTRY, ir.ADDED) else None
    computed = {op.out.serial for op in event.ops}
    reads = {base(arg).serial: base(arg) for op in event.ops for arg in op.args}
    writes = [*event.stored, *(op.out for op in event.summed)]
    return [value for serial, value in reads.items() if serial not in computed], writes, None


# --- loops over blocks ------------------------------------------------------------------------------------------


class BoundLoop:
    """A loop that is bound to a workspace."""

    def __init__(self, loop: BlockLoop, whole: Workspace, threads: int) -> None:
        self.loop = loop
        self.whole = whole
        blocks = -(-loop.count // loop.rows)
        large = sum([op.out.nbytes for op in loop.summed]) > LARGE
        self.stretches = min(FEWER if large else STRETCHES, blocks)
        ends = [loop.rows * (blocks * i // self.stretches) for i in range(self.stretches)] + [loop.count]
        self.within = [  # the blocks of each stretch
            [slice(start, min(start + loop.rows, loop.count)) for start in range(first, last, loop.rows)]
            for first, last in pairwise(ends)
        ]
        products = any(op.kind == ir.PRODUCT for op in loop.ops)
        work = sum(max([op.out.size, *[arg.size for arg in op.args]]) for op in loop.ops)
        alone = work < WORTH_A_THREAD * threads or (products and setters() is None)
        self.threads = 1 if alone else min(threads, self.stretches)
        self.products = products
        self.parts = {op.out.serial: np.empty((self.stretches, *op.out.shape), op.out.dtype) for op in loop.summed}
        self.overlaps = [overlap for overlap in whole.overlaps if overlap.loop is loop]
        parts = {serial for overlap in self.overlaps for serial in overlap.parts}
        self.stored = [value for value in loop.stored if value.serial not in parts]
        self.outside = _outside(loop)
        for value in self.outside.values():
            whole.resolve(value)
        self.workers = [ThreadWorkspace(self) for _ in range(self.threads)]
        self.left: deque[int] = deque()  # stretches that no thread has begun
        self.nbytes: int = sum([part.nbytes for part in self.parts.values()])
        self.nbytes += sum([worker.nbytes for worker in self.workers])

    def run(self) -> None:
        if self.products:  # a library's own threads gain nothing on blocks, and would stand in the way of ours
            with one_thread():
                self._work()
        else:
            self._work()
        for op in self.loop.summed:
            total = self.whole.cells[op.out.serial]
            parts = self.parts[op.out.serial]
            if len(parts) == 1:
                np.copyto(total, parts[0])
            else:
                combine(op).reduce(parts, 0, None, total)

    def _work(self) -> None:
        self.left = deque(range(self.stretches))
        together([worker.work for worker in self.workers])


def _outside(loop: BlockLoop) -> dict[int, PlanValue]:
    """The values of the workspace that the blocks of a loop are cut of."""
    at = loop.at
    computed = {op.out.serial for op in loop.ops if op.out.serial in at}
    outside: dict[int, PlanValue] = {}
    for op in loop.ops:
        for value in op.args:
            below = value.op
            while value.serial in at and below is not None and below.kind == ir.VIEW and value.serial not in computed:
                if value.constant or not follows(below, at):
                    break
                value = below.args[0]
                below = value.op
            if value.number is None and value.serial not in computed:
                outside[value.serial] = value
    return outside


def combine(op: Op) -> Any:
    """How parts of a result make the whole one."""
    return op.function if op.kind == ir.REDUCE else np.add


class ThreadWorkspace:
    """The memory of one thread, and the steps bound to it: for a full block and for the last one."""

    def __init__(self, blocks: BoundLoop) -> None:
        loop = blocks.loop
        self.blocks = blocks
        stored = {value.serial for value in blocks.stored}
        once = {op.out.serial: np.empty(op.out.shape, op.out.dtype) for op in loop.summed}
        computed = {op.out.serial for op in loop.ops}

        def placed(value: PlanValue) -> int | None:
            if value.serial not in computed or value.serial in stored or value.serial in once:
                return None
            return value.nbytes // loop.count * loop.rows

        layout = lay_out([*_work(loop), (loop.stored, [], None)], placed, set())
        columns = turned(loop)
        self.nbytes = layout.size + sum([array.nbytes for array in once.values()])
        memory = np.empty(layout.size + 64, np.uint8)
        memory = memory[-memory.ctypes.data % 64 :]
        self.frames: dict[int, BoundSteps] = {}
        last = loop.count - (loop.count - 1) // loop.rows * loop.rows
        for rows in {loop.rows, last}:
            cells = {}
            for op in loop.ops:
                serial, shape = op.out.serial, loop.shape(op.out, rows)
                if serial in columns:
                    cells[serial] = slot(memory, layout.offsets[serial], shape[::-1], op.out.dtype).T
                elif serial in layout.offsets:
                    cells[serial] = slot(memory, layout.offsets[serial], shape, op.out.dtype)
            self.frames[rows] = BoundSteps(blocks, rows, {**cells, **once})

    def work(self) -> None:
        """Take stretches of blocks until none is left."""
        blocks = self.blocks
        for frame in self.frames.values():
            frame.begin()
        while blocks.left:
            try:
                stretch = blocks.left.popleft()
            except IndexError:  # another thread has taken the last one
                break
            first = True
            for block in blocks.within[stretch]:
                self.frames[block.stop - block.start].run(block, stretch, first)
                first = False
        for frame in self.frames.values():
            frame.end()


def _work(loop: BlockLoop) -> list[tuple[list[PlanValue], list[PlanValue], Op | None]]:
    """What is read and written together, in order, and the step if it is one."""

    def reads(*ops: Op) -> list[PlanValue]:
        return [root(arg, loop.at)[0] for op in ops for arg in op.args]

    if loop.code is not None:
        own = [op for op in loop.ops if op not in loop.code.sums]
        return [(reads(*own), list(loop.code.outputs), None), *[(reads(op), [op.out], op) for op in loop.code.sums]]
    return [(reads(op), [op.out], op) for op in loop.ops]


class BoundSteps(Arrays):
    """The steps of a loop bound to blocks of one length."""

    def __init__(self, blocks: BoundLoop, rows: int, cells: dict[int, Any]) -> None:
        super().__init__()
        self.loop, self.whole = blocks.loop, blocks.whole
        self.rows = rows
        self.cells.update(cells)
        self.cut: list[tuple[int, tuple[slice, ...] | None]] = []  # what is cut into blocks, along what
        self.shared: list[int] = []  # whole arrays that change from run to run
        self.overlaps = blocks.overlaps
        for value in blocks.stored:
            self._cut(value.serial)
        for value in blocks.outside.values():
            if value.serial in self.loop.at:
                if value.serial not in self.late:
                    self._cut(value.serial)
            elif value.serial in self.whole.late:
                self.late.add(value.serial)
                self.shared.append(value.serial)
            else:
                self.cells[value.serial] = self.whole.cells[value.serial]
        code = self.loop.code
        if code is not None:
            self.call(code.run, [self.find(self.loop.ops[0], value) for value in (*code.inputs, *code.outputs)])
        for op in self.loop.ops if code is None else code.sums:
            self.bind(op, kernel(op))
        self.empty = dict.fromkeys(self.late)
        self.sums = [
            (self.cells[op.out.serial], blocks.parts[op.out.serial], entry(combine(op))) for op in self.loop.summed
        ]

    def _cut(self, serial: int) -> None:
        self.late.add(serial)
        axis = self.loop.at[serial]
        self.cut.append((serial, (slice(None),) * axis if axis else None))

    def shape(self, value: PlanValue) -> tuple[int, ...]:
        return self.loop.shape(value, self.rows)

    def begin(self) -> None:
        for serial in self.shared:
            self.cells[serial] = self.whole.cells[serial]

    def end(self) -> None:
        """Keep nothing of this run: what belongs to the caller may be used again."""
        self.cells.update(self.empty)

    def run(self, block: slice, stretch: int, first: bool) -> None:
        cells, whole = self.cells, self.whole.cells
        for serial, before in self.cut:
            cells[serial] = whole[serial][block if before is None else (*before, block)]
        for step in self.program:
            step()
        for overlap in self.overlaps:
            overlap.add(cells, whole[overlap.out], block)
        for part, parts, joined in self.sums:
            if first:
                parts[stretch] = part
            else:
                total = parts[stretch : stretch + 1]
                joined(total, part, total)


# --- parts that overlap ----------------------------------------------------------------------------------------


class Overlap:
    """A new output that consists of parts which one loop computes: each begins at a row, and all are added up.

    Such is the gradient of f(x[:-1], x[1:]). A block adds up the rows that it has of all parts; those around its ends
    are kept until the loop has ended. The first of the `steps` puts its part among zeros, the others add theirs.
    """

    def __init__(self, loop: BlockLoop, steps: Sequence[Op], starts: Sequence[int]) -> None:
        self.loop, self.steps, self.starts = loop, steps, starts
        self.parts = [step.args[-1].serial for step in steps]
        self.out, self.low, self.high = steps[-1].out.serial, min(starts), max(starts)
        self.edges = [*range(0, loop.count, loop.rows), loop.count]  # the rows of the loop around which rows are kept
        shape = (len(steps), len(self.edges), self.high - self.low, *steps[-1].out.shape[1:])
        self.kept = np.zeros(shape, steps[-1].out.dtype)

    def add(self, cells: Cells, out: Any, block: slice) -> None:
        """Add up the rows of a block, and keep those around its ends."""
        inner, edge = out[block.start + self.high : block.stop + self.low], block.start // self.loop.rows
        total: Any = None
        for serial, start, kept in zip(self.parts, self.starts, self.kept, strict=True):
            x, above, below = cells[serial], self.high - start, start - self.low
            if above:
                kept[edge, below:] = x[:above]
            if below:
                kept[edge + 1, :below] = x[-below:]
            part = x[above : len(x) - below]
            total = part if total is None else np.add(total, part, inner)
        if total is not inner:
            np.copyto(inner, total)

    def finish(self, out: Any) -> None:
        """Add up the rows that were kept; there are zeros before and after them."""
        out[: self.low] = 0
        out[self.loop.count + self.high :] = 0
        for place, edge in enumerate(self.edges):
            around = out[edge + self.low : edge + self.high]
            np.copyto(around, self.kept[0, place])
            for kept in self.kept[1:, place]:
                np.add(around, kept, around)


def _overlaps(schedule: Schedule, fresh: Collection[int]) -> list[Overlap]:
    loops = {value.serial: event for event in schedule.events if isinstance(event, BlockLoop) for value in event.stored}
    kept = {base(value).serial for value in schedule.outputs}
    readers: dict[int, list[Any]] = {}
    for event in schedule.events:
        for serial in {base(arg).serial for op in steps_of(event) for arg in op.args}:
            if loops.get(serial) is not event:
                readers.setdefault(serial, []).append(event)

    def begins(op: Op, loop: BlockLoop) -> int | None:
        """The row where a step puts what the loop computes; None for other steps."""
        x, (rows, *others) = op.args[-1], index_of(op.params[1])
        mine = loops.get(x.serial) is loop and loop.at[x.serial] == 0
        whole = x.shape[1:] == op.out.shape[1:] and all((part.step or 1) == 1 for part in (rows, *others))
        return rows.start if mine and whole and x.serial not in kept and x.dtype == op.out.dtype else None

    overlaps = []
    for event in schedule.events:
        if not isinstance(event, Op) or event.kind != ir.PLACE or event.args[0].serial not in loops:
            continue
        loop, steps, starts = loops[event.args[0].serial], [], []
        following: list[Any] = [event]
        while len(following) == 1 and (start := begins(following[0], loop)) is not None:
            out = following[0].out
            steps.append(following[0])
            starts.append(start)
            following = [] if out.serial in kept else readers[out.serial]
            if any(
                isinstance(step, BlockLoop) or step.kind != ir.ADDED or step.args[0] is not out for step in following
            ):
                break
        alone = all(reader in steps for step in steps for reader in readers[step.args[-1].serial])
        shortest = loop.count - (loop.count - 1) // loop.rows * loop.rows
        if steps and alone and steps[-1].out.serial in fresh and OVERLAP * (max(starts) - min(starts)) < shortest:
            overlaps.append(Overlap(loop, steps, starts))
    return overlaps


# --- matrices with short rows ----------------------------------------------------------------------------------


def turned(loop: BlockLoop) -> set[int]:
    """The serials of matrices that are made in a loop, read only there, and faster in memory that is turned.

    NumPy computes with a matrix and a column row by row, and finds the least entry of each row by itself:
    where rows are short, most of the time goes into beginning them. In memory with the axis that is cut last, such a
    step runs along the rows. Entry by entry steps on matrices of one shape have all of them turned, or none.
    """
    computed = {op.out.serial: op for op in loop.ops}
    fixed = {value.serial for value in loop.stored} | {op.out.serial for op in loop.summed}
    groups: dict[int, set[int]] = {}  # matrices that are turned together, by each of them
    gains: set[int] = set()
    for op in loop.ops:
        for arg in op.args:
            below = base(arg)
            if below.serial in computed and (op.kind not in READERS or not _movable(arg)):
                fixed.add(below.serial)
        out = op.out
        if not _is_matrix(out, loop):
            extreme = op.kind == ir.REDUCE and op.function is not np.add
            if extreme and op.params == (1,) and _is_matrix(op.args[0], loop):
                gains.add(op.args[0].serial)
            continue
        if op.kind not in (*ENTRYWISE, ir.PRODUCT):
            fixed.add(out.serial)
        for arg in op.args if op.kind in ENTRYWISE else ():
            if arg.number is None and arg.shape == out.shape:
                group, other = [groups.setdefault(serial, {serial}) for serial in (out.serial, arg.serial)]
                group |= other
                groups.update(dict.fromkeys(other, group))
                if arg.serial not in computed:
                    fixed.add(arg.serial)
            elif arg.number is None and arg.size > 1:
                gains.add(out.serial)
    serials = set()
    for serial, op in computed.items():
        together = groups.get(serial, {serial})
        if _is_matrix(op.out, loop) and fixed.isdisjoint(together) and not gains.isdisjoint(together):
            serials.add(serial)
    return serials


def _is_matrix(value: PlanValue, loop: BlockLoop) -> bool:
    """Whether a value has short rows, which the loop cuts."""
    shape = value.shape
    return len(shape) == 2 and loop.at.get(value.serial) == 0 and 1 < shape[1] <= WIDEST


def _movable(value: PlanValue) -> bool:
    """Whether a view shows turned memory as well as any other: axes are exchanged, or repeated."""
    while value.op is not None and value.op.kind == ir.VIEW:
        shown = value.op.args[0]
        if value.op.function not in ("permute", "broadcast") or len(shown.shape) != len(value.shape):
            return False
        value = shown
    return True
