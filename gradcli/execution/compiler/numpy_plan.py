"""Plans for arrays of NumPy: the computation of a tape, prepared to be run many times.

A plan has no node left. Equal steps are one, constants are computed once, sums and products over repeated entries are
multiplications, large arrays are computed block by block in cache, and memory is reused as soon as it is free.
"""

from __future__ import annotations

import threading
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler.demand import restricted
from gradcli.execution.compiler.emit_numba import compiled_loops
from gradcli.execution.compiler.emit_numpy import constants
from gradcli.execution.compiler.ir import SCAN, Op
from gradcli.execution.compiler.lower import record, record_iterations
from gradcli.execution.compiler.recording_namespace import Unrecordable
from gradcli.execution.compiler.schedule import Schedule, steps_of
from gradcli.execution.compiler.thread_pool import processors
from gradcli.execution.compiler.workspace import Workspace
from gradcli.execution.inputs import Unbatched, leaf_value, plain_result
from gradcli.execution.loops.cores import Core
from gradcli.execution.namespaces import REFUSED, namespace
from gradcli.graph.building import uncollected
from gradcli.graph.node import is_reader

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.base.results.calculations import Value as Result
    from gradcli.execution.compiler.ir import RecordedSteps
    from gradcli.execution.loops.scan import Scan
    from gradcli.execution.node_table import NodeTable
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

MOST_NODES = 300_000  # a plan takes 20 us and 2 KB for each
MOST_POINT_NODES = 10_000
KEPT = 1 << 26  # bytes of a workspace that is kept from run to run
MOST_ROOM = 1 << 28  # bytes of a workspace, where the tape can run in less memory
MOST_ITERATIONS = 1 << 13  # of a loop that runs alone, at once
BLOCK_ENTRIES = 1 << 19  # of all steps that take these iterations at once
MOST_FORMS = 8  # plans of one loop, for other numbers of iterations and batch axes


class ArrayPlan:
    """Recorded steps on arrays of fixed shapes. Several threads may run them at once; every run gives the same bits."""

    def __init__(self, recording: RecordedSteps, xp: Any, threads: int | None = None) -> None:
        self.xp = xp
        self.threads = processors() if threads is None else threads
        self.schedule = Schedule(recording)
        read = [arg for event in self.schedule.events for op in steps_of(event) for arg in op.args]
        self.constants = constants(self.schedule.constants, [*read, *self.schedule.outputs])
        self._spare: list[Workspace] = []
        self._lock = threading.Lock()
        self.nbytes = 0

    def run(self, inputs: Sequence[Any], room: Sequence[Any] | None = None) -> list[Any]:
        """The outputs for the values of the inputs: arrays of this dtype in their own shapes.

        Arrays of `room` are filled and returned where they can hold an output.
        """
        with self.xp.arithmetic():
            space = self.workspace()
            outputs = space.run(inputs, room)
        self.give(space)
        return outputs

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
            take_apart(space)

    def room(self) -> int:
        """The bytes that a run needs beside its inputs and its results."""
        if not self.nbytes:
            self.give(self.workspace())
        return self.nbytes


class Plan(ArrayPlan):
    """A tape as a plan.

    A plan that is run `once` leaves the compiler of machine code alone unless arrays are very long. `points` names the
    inputs whose first axis counts points, with the number of points.
    """

    def __init__(
        self,
        tape: NodeTable,
        dtype: str = "float64",
        threads: int | None = None,
        held: Mapping[str, Any] | None = None,
        once: bool = False,
        points: tuple[Collection[str], int] | None = None,
    ) -> None:
        self.tape = tape
        xp = namespace("numpy", dtype)
        with xp.arithmetic(), uncollected():
            recording = record(tape, dtype, held, points)
            if points is None:
                recording = restricted(recording, xp.float_type)
            super().__init__(recording, xp, threads)
            compiled_loops(self.schedule, once)
        for core in self.cores() if once else ():
            core.once = True
        self._arrays = Unbatched(xp, tape, held)

    def cores(self) -> list[Core]:
        """What runs iteration by iteration."""
        scans = [event.function for event in self.schedule.events if isinstance(event, Op) and event.kind == SCAN]
        return [scan for scan in scans if isinstance(scan, Core)]

    def at_points(self, values: Sequence[Any], room: Sequence[Any] | None = None) -> list[Any]:
        """The outputs at all points for the values of the tape's inputs, as they were given."""
        with self.xp.arithmetic():
            inputs = [leaf_value(self.xp, node, raw) for (node, _), raw in zip(self.tape.inputs, values, strict=True)]
        return [plain_result(result) for result in self.run(inputs, room)]

    def answer(self, values: Mapping[str, Any], exact: bool = False) -> list[Result] | None:
        """What `Tape.run` gives: numbers for scalars, else arrays. None where a value has batch axes.

        None too, where `exact` arrays are requested, if values are not arrays of the inputs' types already.
        """
        arrays = self._arrays(values, exact)
        return None if arrays is None else [plain_result(result) for result in self.run(arrays)]


class LoopPlan:
    """A loop alone, in blocks of iterations so that its memory is bounded, with the bits of the operations' `impl`s."""

    def __init__(self, scan: Scan, xp: Any) -> None:
        self.scan, self.xp = scan, xp
        steps, split = scan.body.steps, scan.split()
        taken = [at for stage in split.stages for at in stage.steps]
        weight = sum([_weight(steps[at]) for at in taken]) + sum([steps[at].type.size for at in split.stored])
        self.weight = max(weight, 1)  # entries of an iteration
        self._plans: dict[tuple[int, Shape], ArrayPlan] = {}  # by the number of iterations and the batch axes

    def _plan_for(self, iterations: int, lead: Shape) -> ArrayPlan:
        plan = self._plans.get((iterations, lead))
        if plan is None:
            if len(self._plans) >= MOST_FORMS:
                self._plans.clear()
            with self.xp.arithmetic(), uncollected():
                plan = ArrayPlan(record_iterations(self.scan, self.xp.dtype, iterations, lead), self.xp)
            self._plans[iterations, lead] = plan
        return plan

    def run(self, args: Sequence[Any], ranks: Sequence[int]) -> list[Any]:
        """The values of the readers, for the arguments of the loop; where one has batch axes, all have them."""
        scan, states = self.scan, len(self.scan.body.carried)
        count, fixed = scan.count, states + len(scan.body.rows)
        lead: Shape = ()
        if any(x.ndim > rank for x, rank in zip(args, ranks, strict=True)):
            lead = np.broadcast_shapes(*[x.shape[: x.ndim - rank] for x, rank in zip(args, ranks, strict=True)])
            args = [
                np.broadcast_to(self.xp.raised(x, rank, len(lead)), lead + x.shape[x.ndim - rank :])
                for x, rank in zip(args, ranks, strict=True)
            ]
            args = [np.moveaxis(x, len(lead), 0) if states <= at < fixed else x for at, x in enumerate(args)]
        before = list(args[:states])
        stacks: dict[int, Any] = {}
        length = max(1, min(count, MOST_ITERATIONS, BLOCK_ENTRIES // (self.weight * prod(lead) or 1)))
        for start in range(0, count, length):
            iterations = min(length, count - start)
            low = count - start - iterations if scan.reverse else start
            inputs = [*before, *(stack[low : low + iterations] for stack in args[states:fixed]), *args[fixed:]]
            if scan.body.index is not None:
                numbers = np.arange(low, low + iterations, dtype=self.xp.float_type)
                inputs.append(np.broadcast_to(numbers.reshape(iterations, *(1,) * len(lead)), (iterations, *lead)))
            outputs = self._plan_for(iterations, lead).run(inputs)
            for k, after in zip(scan.carries, outputs, strict=False):
                before[k] = after
            read = outputs[len(scan.carries) :]
            for place, part in enumerate(read):
                if scan.stacked[place] >= 0 and iterations < count:
                    if place not in stacks:
                        stacks[place] = np.empty((count, *part.shape[1:]), part.dtype)
                    stacks[place][low : low + iterations] = part
        read = [stacks.get(place, part)[()] for place, part in enumerate(read)]
        if lead:
            read = [np.moveaxis(x, 0, len(lead)) if at >= 0 else x for x, at in zip(read, scan.stacked, strict=True)]
        return read


def _weight(step: Node) -> int:
    """The entries that a step takes for each iteration."""
    inner = step.params["body"].steps if is_reader(step) else (step,)
    return sum([node.type.size for node in inner])


def take_apart(space: Workspace) -> None:
    """Free the memory of a workspace now: its loops refer to it, so only the collector of cycles would free it."""
    for blocks in space.loops:
        blocks.workers.clear()
    space.loops.clear()
    space.program.clear()
    space.cells.clear()


def planned(
    tape: NodeTable,
    dtype: str,
    held: Mapping[str, Any] | None = None,
    threads: int | None = None,
    once: bool = False,
) -> Plan | None:
    """The plan of a tape; None where it is very long, a loop in it cannot be split, or a constant of it is not a number
    that an operation takes.

    `held` gives leaves that stay as they are: arrays, which may have one batch axis in front. So have results then.
    One that is run `once` has no machine code.
    None too where the plan needs much memory and the tape has loops, which the evaluator runs in blocks of iterations.
    """
    if len(tape.nodes) > MOST_NODES:
        return None
    try:
        plan = Plan(tape, dtype, threads, held, once)
        return None if tape.loops and plan.room() > MOST_ROOM else plan
    except (*REFUSED, Unrecordable):
        return None


def points_plan(tape: NodeTable, dtype: str, moving: Collection[str], count: int) -> Plan | None:
    """The plan of numbers at many points, which the first axis of the inputs `moving` counts; None for arrays."""
    if len(tape.nodes) > MOST_POINT_NODES or any(node.type.shape for node in tape.nodes) or tape.loops:
        return None
    try:
        return Plan(tape, dtype, points=(moving, count))
    except (*REFUSED, Unrecordable):
        return None
