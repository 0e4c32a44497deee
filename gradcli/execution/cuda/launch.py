"""Compiles and launches kernels, one by one or as one CUDA graph; other steps are calls of CuPy.

A launch costs some microseconds, whatever it does. So a graph pays where many kernels do little: at least `FEWEST`
launches more than there are inputs to copy, at most `MOST_BYTES` in all arrays, no call of a library between them, and
no number that kernels take by value, since a graph would keep it. It is made at the third run: the first have compiled.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.cuda.emit import OPTIONS
from gradcli.execution.cuda.kernels import THREADS, Kernel
from gradcli.execution.plans.emit_numpy import put, take
from gradcli.execution.plans.ir import ENTRY, PRODUCT, REDUCE, VIEW, index_of
from gradcli.execution.plans.tracing import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.execution.plans.ir import Op, Value


class Room(NamedTuple):
    """Arrays that a kernel writes."""

    values: list[Any]
    sums: list[Any]
    parts: list[Any]


class Launcher:
    """The kernels of a plan on one library, each compiled when it is first launched."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.made: dict[str, Any] = {}

    def function(self, kernel: Kernel) -> Any:
        """What launches a kernel."""
        found = self.made.get(kernel.name)
        if found is None:
            module = self.library.RawModule(code=kernel.text, options=OPTIONS)
            found = self.made[kernel.name] = module.get_function(kernel.name)
        return found

    def rooms(self, kernel: Kernel, count: int | None = None) -> Room:
        """Memory for what a kernel writes: values, reductions, and what its pieces leave."""
        empty = self.library.empty
        return Room(
            [empty(value.shape if count is None else (count,), value.dtype) for value in kernel.values],
            [empty(op.out.shape, op.out.dtype) for op in kernel.sums],
            [empty((op.out.size * kernel.pieces,), op.out.dtype) for op in kernel.sums] if kernel.rest else [],
        )

    def launch(self, kernel: Kernel, cells: dict[int, Any], count: int | None = None, room: Room | None = None) -> None:
        """Run a kernel; its results are put into `cells`. `count` is the number of points, where there are any."""
        room = self.rooms(kernel, count) if room is None else room
        arrays = [flat(cells[value.serial]) for value in kernel.arrays]
        numbers = [value.dtype.type(cells[value.serial]) for value in kernel.numbers]  # taken by value
        values, sums, parts = (list(map(flat, part)) for part in room)
        last = parts or sums
        if kernel.rows is None:
            last = [kernel.whole(kernel.entries if count is None else count)]
        self.function(kernel)((kernel.blocks(count),), (THREADS,), (*arrays, *numbers, *values, *last))
        if kernel.rest is not None:
            self.function(kernel.rest)((kernel.rest.blocks(),), (THREADS,), (*parts, *sums))
        for value, found in zip((*kernel.values, *[op.out for op in kernel.sums]), (*room[0], *room[1]), strict=True):
            cells[value.serial] = found


def flat(array: Any) -> Any:
    """An array in C order as a line: kernels count entries, and CuPy compiles one kernel whatever the axes."""
    return array if array.ndim == 1 else array.reshape(-1)


FEWEST = 4
MOST_BYTES = 1 << 26
SETTLED = 3  # runs, the last of which is recorded


class Replay:
    """A graph of the launches of a plan, once it has settled; `pays` says whether there will be one."""

    def __init__(self, work: Sequence[Kernel | Op], inputs: Sequence[Value]) -> None:
        kernels = [item for item in work if isinstance(item, Kernel)]
        launches = sum([1 + (kernel.rest is not None) for kernel in kernels])
        written = [value.nbytes for kernel in kernels for value in kernel.values]
        written += [op.out.nbytes * kernel.pieces for kernel in kernels for op in kernel.sums]
        self.inputs = inputs
        self.pays = (
            len(kernels) == len(work)
            and launches >= FEWEST + len(inputs)
            and not any(kernel.numbers for kernel in kernels)
            and all(value.shape for value in inputs)
            and sum(written) + sum([value.nbytes for value in inputs]) <= MOST_BYTES
        )
        self.kernels = kernels
        self.runs = 0
        self._graph: Any = None
        self._cells: dict[int, Any] = {}
        self._lock = threading.Lock()

    def run(self, launcher: Launcher, given: dict[int, Any], constants: dict[int, Any]) -> dict[int, Any] | None:
        """The arrays that the kernels leave, as copies; None where the plan has to launch them one by one."""
        if not self.pays or not self._lock.acquire(blocking=False):
            return None
        try:
            self.runs += 1
            if self.runs < SETTLED:
                return None
            if self._graph is None:
                self._record(launcher, given, constants)
                if self._graph is None:
                    return None
            for value in self.inputs:
                launcher.library.copyto(self._cells[value.serial], given[value.serial])
            self._graph.launch()
            return {serial: array.copy() for serial, array in self._cells.items() if serial in self._results}
        finally:
            self._lock.release()

    def results(self, values: Sequence[Value]) -> None:
        """Say which arrays are wanted after a run."""
        self._results = {value.serial for value in values}

    def _record(self, launcher: Launcher, given: dict[int, Any], constants: dict[int, Any]) -> None:
        """Launch all kernels while the stream is recorded, into memory that stays where it is."""
        library = launcher.library
        cells = {**constants, **{serial: array.copy() for serial, array in given.items()}}
        rooms = [launcher.rooms(kernel) for kernel in self.kernels]
        stream = library.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                for kernel, room in zip(self.kernels, rooms, strict=True):
                    launcher.launch(kernel, cells, room=room)
                self._graph = stream.end_capture()
            self._rooms = rooms  # the graph writes there
            self._cells = cells
        except library.cuda.runtime.CUDARuntimeError:
            self.pays = False  # this driver cannot record them


def viewed(value: Value, cells: Mapping[int, Any], xp: Any) -> Any:
    """The array of a value, where it stands or as views show it."""
    views = []
    while value.serial not in cells and value.number is None and value.op is not None and value.op.kind == VIEW:
        views.append(value.op)
        value = value.op.args[0]
    if value.number is not None:
        found = xp.library.full(value.shape, value.number, value.dtype)
    else:
        found = xp.library.asarray(cells[value.serial], dtype=value.dtype)
    for op in reversed(views):
        if op.function == "reshape":
            found = found.reshape(op.out.shape)
        elif op.function == "broadcast":
            found = xp.library.broadcast_to(found, op.out.shape)
        elif op.function == "permute":
            found = found.transpose(op.params)
        else:
            found = found[index_of(op.params)]
    return found


def called(op: Op, cells: Mapping[int, Any], xp: Any) -> Any:
    """The result of a step by CuPy, in C order and in the type that the plan says."""
    library = xp.library
    xs = [viewed(arg, cells, xp) for arg in op.args]
    if op.kind == PRODUCT:
        found = library.matmul(*xs)
    elif op.kind == REDUCE:
        found = REDUCTIONS[op.function](library)(xs[0], axis=op.params)
    elif op.kind == ENTRY:
        found = getattr(xp, op.function.__name__)(*xs)
    elif type(op.function) is Whole:
        found = op.function.impl(xp, *xs, **op.function.params)
    elif op.function is take:
        found = library.take(xs[0], xs[1], axis=op.params)
    elif op.function is put:
        at, size = op.params
        found = xp.put_add(xs[0], xs[1], at - xs[0].ndim, size)
    else:
        found = _plain(op, xs, xp)
    return library.ascontiguousarray(library.asarray(found, dtype=op.out.dtype)).reshape(op.out.shape)


def _plain(op: Op, xs: list[Any], xp: Any) -> Any:
    """Steps that have no line because of the types of their operands, on whole arrays."""
    library = xp.library
    if op.kind == "choice":
        return library.where(*xs)
    if op.kind == "join":
        return library.concatenate(xs, axis=op.params)
    if op.kind in ("cast", "copy"):
        return xs[0]
    found = library.zeros(op.out.shape, op.out.dtype)
    if op.kind == "added":
        found = found + xs[0]
    found[index_of(op.params[1])] += xs[-1]
    return found


REDUCTIONS: dict[Any, Any] = {
    np.add: lambda library: library.sum,
    np.maximum: lambda library: library.max,
    np.minimum: lambda library: library.min,
}
