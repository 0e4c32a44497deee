"""A layout goes in, the memory of a scan comes out: rows for a chunk of rounds, a ring of rows for rounds in turn.

The ring holds the rows of rounds that go together. Its first rows are those that these rounds share with the ones
before; behind the rounds they are moved there. What is called, and when, is not known here.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.execution.plans.layouts import Cell, Layout
    from gradcli.execution.plans.turns import Call


ALIGNED = 64  # bytes


class Rings:
    """For each frame rows of a chunk and a ring; for each block without a frame one row, `fixed`."""

    def __init__(self, layout: Layout, chunk: int, together: int) -> None:
        self.before = layout.window - 1  # rows that a round shares with those before it
        self.chunk = chunk
        self.together = together
        self.frames: dict[Any, tuple[Any, Any]] = {}
        for frame in layout.frames.values():
            sizes = chunk + self.before, together + self.before
            rows, ring = [aligned((size, frame.width), frame.dtype) for size in sizes]
            self.frames[frame] = (rows, ring)
        self.fixed: dict[int, Any] = {}
        for block in layout.blocks:
            if block.frame is None:
                self.fixed[id(block)] = aligned((len(block.cells) * block.entries,), block.dtype)
        self._known: dict[Any, Any] = {}

    def part(self, cell: Cell) -> Any:
        """The rows of a cell in a chunk, each in its shape."""
        return self._part(cell, 0)

    def ring(self, cell: Cell, row: int) -> Any:
        """One row of a cell in the ring, in its shape."""
        return self._part(cell, 1)[row : row + 1].reshape(cell.shape)

    def _part(self, cell: Cell, which: int) -> Any:
        end = cell.start + cell.block.entries
        if cell.block.frame is None:
            return self.fixed[id(cell.block)][cell.start : end].reshape((1, *cell.shape))
        return self.frames[cell.block.frame][which][:, cell.start : end].reshape((-1, *cell.shape))

    def turned(self, cell: Cell, width: int, distance: int, shape: tuple[int, ...]) -> Any:
        """What cells side by side hold some rounds before: one array, or one for each of the rounds together."""
        key = (cell, width, distance, shape)
        known = self._known.get(key)
        if known is None:
            part = slice(cell.start, cell.start + width * cell.block.entries)
            if cell.block.frame is None:
                known = self.fixed[id(cell.block)][part].reshape(shape)
            else:
                first = cell.row(-distance)
                ring = self.frames[cell.block.frame][1][first : first + self.together]
                known = tuple([row[part].reshape(shape) for row in ring])
            self._known[key] = known
        return known

    def copied_in(self, size: int) -> list[Call]:
        """The copies before so many rounds: of the rows that come from outside.

        In single rounds also of what stands before a first turn that is still to come.
        """
        found: list[Call] = []
        for frame, (rows, ring) in self.frames.items():
            first, end = (0, frame.given) if size == 1 else frame.fed
            if first < end:
                taken = rows[self.before :, first:end]
                found.append((None, [self._in_groups(taken, size), ring[self.before :][:size, first:end]]))
        return found

    def copied_out(self, size: int) -> list[Call]:
        """The copies behind so many rounds: of the rows that are read outside, and of those that are used again."""
        found: list[Call] = []
        for frame, (rows, ring) in self.frames.items():
            if frame.stored:
                part = slice(*frame.stored)
                found.append((None, [ring[:size, part], self._in_groups(rows[:, part], size)]))
            if self.before:
                found.append((None, [ring[size : size + self.before], ring[: self.before]]))
        return found

    def _in_groups(self, rows: Any, size: int) -> list[Any]:
        return [rows[at : at + size] for at in range(0, self.chunk - size + 1, size)]


def items(rows: Any) -> Any:
    """Rows that are one item each, whatever its type: a copy moves a row as a whole, not entry by entry."""
    size = prod(rows.shape[1:])
    if size < 2:
        return rows
    return rows.reshape((len(rows), size)).view(np.dtype((np.void, size * rows.itemsize)))


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros that begin where a line of the cache does."""
    size = prod(shape) * int(dtype.itemsize)
    memory = np.zeros(size + ALIGNED, np.uint8)
    first = -memory.ctypes.data % ALIGNED
    return memory[first : first + size].view(dtype).reshape(shape)
