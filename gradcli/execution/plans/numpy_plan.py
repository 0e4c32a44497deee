"""A tape goes in, a plan comes out: the same computation prepared for arrays of NumPy, to be run again and again.

A plan has no node left. Equal steps are one, constants are computed once, sums and products over repeated entries are
multiplications, large arrays are computed block by block in cache, memory is used again as soon as nobody reads it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution import checkpoints
from gradcli.execution.inputs import Unbatched
from gradcli.execution.namespaces import REFUSED, namespace
from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.libraries import processors
from gradcli.execution.plans.ranges import restricted
from gradcli.execution.plans.recording import record
from gradcli.execution.plans.running import Workspace
from gradcli.execution.plans.schedule import Loop, Schedule
from gradcli.execution.plans.tracing import Unrecordable
from gradcli.execution.plans.values import SCAN, VIEW, Op, Value
from gradcli.graph.collector import uncollected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.results import Value as Result

MOST_NODES = 300_000  # a plan takes 20 us and 2 KB for each
SHORT = 1 << 16  # bytes of a constant that is worth a copy without gaps
KEPT = 1 << 26  # bytes of a workspace that is kept from run to run


class Plan:
    """A computation on arrays of fixed shapes. Several threads may run it at once, and every run gives the same bits.

    A plan that is run `once` leaves the compiler of machine code alone.
    """

    def __init__(
        self,
        tape: Tape,
        dtype: str = "float64",
        threads: int | None = None,
        held: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> None:
        self.tape = tape
        self.xp = namespace("numpy", dtype)
        self.threads = processors() if threads is None else threads
        with self.xp.arithmetic(), uncollected():
            recording = restricted(record(tape, dtype, held), self.xp.float_type)
            self.schedule = Schedule(recording)
            self.constants = constants(self.schedule)
        for event in self.schedule.events if once else ():
            if isinstance(event, Op) and event.kind == SCAN:
                event.function.core.once = True
        self._arrays = Unbatched(self.xp, tape, held)
        self._spare: list[Workspace] = []
        self._lock = threading.Lock()
        self.nbytes = 0

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for the values of the tape's inputs: arrays of this dtype in their own shapes."""
        with self.xp.arithmetic():
            space = self.workspace()
            found = space.run(inputs)
        self.give(space)
        return found

    def workspace(self) -> Workspace:
        """The memory of a run with the steps bound to it: a spare one, else a new one. `give` it back."""
        with self._lock:
            if self._spare:
                return self._spare.pop()
        with uncollected():
            space = Workspace(self.schedule, dict(self.constants), self.threads)
        self.nbytes = space.nbytes
        return space

    def give(self, space: Workspace) -> None:
        """Keep a workspace for the next run; a large one is freed at once."""
        if space.nbytes <= KEPT:
            with self._lock:
                self._spare.append(space)
        else:
            taken_apart(space)

    def room(self) -> int:
        """The bytes that a run needs beside its inputs and its results."""
        if not self.nbytes:
            self.give(self.workspace())
        return self.nbytes

    def answer(self, values: Mapping[str, Any], exact: bool = False) -> list[Result] | None:
        """What `Tape.run` gives: numbers for scalars, else arrays. None where a value has batch axes.

        None too, where `exact` arrays are asked for, if values are not arrays of the inputs' types already.
        """
        arrays = self._arrays.exact(values) if exact else self._arrays(values)
        return None if arrays is None else [_plain(found) for found in self.run(arrays)]


def taken_apart(space: Workspace) -> None:
    """Free the memory of a workspace now: its loops refer to it, so it would wait for the collector of cycles."""
    for blocks in space.loops:
        blocks.workers.clear()
        blocks.works.clear()
    space.loops.clear()
    space.program.clear()
    space.cells.clear()


def _plain(found: Any) -> Result:
    """A result as the evaluator gives it: truth values as numbers, single numbers as Python's."""
    if not found.shape:
        return float(found)
    return found if found.dtype.kind == "f" else found.astype("float64")  # type: ignore[no-any-return]


def planned(
    tape: Tape,
    dtype: str,
    held: Mapping[str, Any] | None = None,
    threads: int | None = None,
    once: bool = False,
) -> Plan | None:
    """The plan of a tape; None where it is very long, a loop in it cannot be split, or a constant of it is no number
    that an operation takes.

    `held` gives leaves that stay as they are: arrays, which may have one batch axis in front. So have results then.
    One that is run `once` has no machine code.
    None too where the plan would fill the memory, and the tape has loops or checkpoints, with which it does not.
    """
    if len(tape.nodes) > MOST_NODES:
        return None
    try:
        plan = Plan(tape, dtype, threads, held, once)
        other = tape.loops or (not held and tape.checkpoints() is not None)  # the tape runs these in less memory
        return None if other and plan.room() > checkpoints.LIVE else plan
    except (*REFUSED, Unrecordable):
        return None


def constants(schedule: Schedule) -> dict[int, Any]:
    """The arrays that do not depend on any input and that a step or an output reads."""
    wanted: set[int] = set()
    for event in schedule.events:
        for op in event.ops if isinstance(event, Loop) else (event,):
            for arg in op.args:
                _wanted(arg, wanted)
    for value in schedule.outputs:
        _wanted(value, wanted)
    cells: dict[int, Any] = {}
    last: dict[int, int] = {}
    for place, op in enumerate(schedule.constants):
        for arg in op.args:
            last[arg.serial] = place
    for place, op in enumerate(schedule.constants):
        xs = []
        for arg in op.args:
            if arg.array is not None:
                cells[arg.serial] = arg.array
            xs.append(operand(op, arg) if arg.number is not None else cells[arg.serial])
        if op.kind == VIEW:
            view = shown(op, xs[0], op.out.shape)
            short = view.nbytes <= SHORT and op.function == "slice"
            cells[op.out.serial] = np.ascontiguousarray(view) if short else view
        else:
            out = cells[op.out.serial] = np.empty(op.out.shape, op.out.dtype)
            kernel(op)(*xs, out)
        for arg in op.args:
            if last[arg.serial] == place and arg.serial not in wanted:
                cells.pop(arg.serial, None)
    for serial, value in list(_given(schedule).items()):
        cells[serial] = value.array
    return {serial: cells[serial] for serial in wanted if serial in cells}


def _wanted(value: Value, wanted: set[int]) -> None:
    while not value.constant and value.op is not None and value.op.kind == VIEW:
        value = value.op.args[0]
    if value.constant and value.number is None:
        wanted.add(value.serial)


def _given(schedule: Schedule) -> dict[int, Value]:
    """The constant arrays that steps read as they were given."""
    found: dict[int, Value] = {}
    values = list(schedule.outputs)
    for event in schedule.events:
        for op in event.ops if isinstance(event, Loop) else (event,):
            values += op.args
    for value in values:
        while value.array is None and value.op is not None and value.op.kind == VIEW:
            value = value.op.args[0]
        if value.array is not None:
            found[value.serial] = value
    return found
