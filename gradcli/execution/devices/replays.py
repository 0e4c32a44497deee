"""A CUDA graph of the kernels of a plan, which launches all of them at once, on memory of its own.

A launch costs some microseconds, whatever it does. So a graph pays where many kernels do little: at least `FEWEST`
launches more than there are inputs to copy, at most `MOST_BYTES` in all arrays, no library call between them, and
no number that kernels take by value, since a graph would keep it. It is made at the third run, when all is compiled.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from gradcli.execution.devices.texts import Kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.devices.launches import Launcher
    from gradcli.execution.plans.values import Op, Value

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
