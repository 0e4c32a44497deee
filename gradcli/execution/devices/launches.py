"""Compiles kernels where needed, and launches them on the arrays on the device with memory for results."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli.execution.devices.rows import THREADS
from gradcli.execution.devices.texts import Kernel
from gradcli.execution.devices.words import OPTIONS


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
            found = self.made[kernel.name] = self._compiled(kernel)
        return found

    def _compiled(self, kernel: Kernel) -> Any:
        if kernel.blocks is None:
            reads, writes = kernel.parameters()
            return self.library.ElementwiseKernel(
                reads, writes, kernel.text, kernel.name, preamble=kernel.before, options=OPTIONS
            )
        return self.library.RawModule(code=kernel.text, options=OPTIONS).get_function(kernel.name)

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
        function = self.function(kernel)
        if kernel.blocks is None:
            function(*arrays, *numbers, *values, size=kernel.entries if count is None else count)
        else:
            function((kernel.blocks,), (THREADS,), (*arrays, *numbers, *values, *(parts or sums)))
        if kernel.rest is not None:
            self.function(kernel.rest)((kernel.rest.blocks,), (THREADS,), (*parts, *sums))
        for value, found in zip((*kernel.values, *[op.out for op in kernel.sums]), (*room[0], *room[1]), strict=True):
            cells[value.serial] = found


def flat(array: Any) -> Any:
    """An array in C order as a line: kernels count entries, and CuPy compiles one kernel whatever the axes."""
    return array if array.ndim == 1 else array.reshape(-1)
