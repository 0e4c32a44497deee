"""A recurrence goes in, one step comes out that runs it turn by turn, on rows of memory that all turns share.

What a turn writes lies in a row of its own, so that steps on all turns read it where it is. Rows are looked up once:
a run is one loop over tuples of rows that calls one function after the other. No rule of arithmetic is known here.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.lagging import Between
from gradcli.execution.plans.packing import ALL, NUMBER, OWN, ROW
from gradcli.execution.plans.turns import nothing, written
from gradcli.execution.plans.values import ENTRY, VIEW, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.kernels.rounds import Rounds
    from gradcli.execution.plans.bodies import Body
    from gradcli.execution.plans.layouts import Cell, Column, Group
    from gradcli.execution.plans.turns import Work


ALIGNED = 64  # bytes
CHUNK = 64  # rounds after which results leave the cache, at least


class Scan:
    """A body bound to memory.

    The rows that a round uses lie in a small ring, so that all that is called stays in cache. A row is copied into the
    ring before it is used and out of it when nothing uses it any more: two copies in a round. What comes from outside
    and what is read there passes through `rows` of some rounds at a time; each stored place has its turns one after the
    other in the result.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        window = body.layout.window
        self.late = max(body.delays.values())
        self.chunk = -(-max(CHUNK, self.late + window) // window) * window  # rounds for which `rows` has room
        if body.turns:  # each turn has kernels of its own
            self.chunk = body.count + self.late
        self.rounds = body.count + self.late + max(body.lags.values()) * self.chunk
        self._between: Between | None = None
        self._passed: list[tuple[Any, Any, int, int, int]] = []  # what comes from a chunk before
        self._out: Any = None
        self._copies: list[tuple[Any, int]] = []
        self._fed: list[tuple[Any, int, int]] = []
        self._kept: list[tuple[Any, Any, int]] = []
        self._initial: list[tuple[Any, Any, int, int, int]] = []
        self._later: list[tuple[Any, int, int]] = []  # what stands before the first turn of those with a lag
        self._frames: dict[Any, tuple[Any, Any]] = {}  # rows of a chunk, and those of the ring
        self._moved: dict[tuple[int, int], list[tuple[Any, Any]]] = {}  # by rounds: parts of the result, and where from
        self._fixed: dict[int, Any] = {}
        self._known: dict[Any, Any] = {}
        self._work: Work = ([], [], nothing, [])

    def __call__(self, *arrays: Any) -> None:
        out = arrays[-1]
        if out is not self._out:
            self._bind(out)
        body = self.body
        for target, position in self._copies:
            np.copyto(target, arrays[position])
        self._feed(arrays, 0, 0)
        for target, _, position, _, _ in self._initial:
            np.copyto(target, arrays[position])
        code = body.code()
        run = self._by_calls if code is None else self._fast(code)
        before = body.layout.window - 1
        if self._between is not None:
            self._between.begin(arrays)
        for start in range(0, self.rounds, self.chunk):
            count = min(self.chunk, self.rounds - start)
            last = start + count == self.rounds or self._between is not None
            if start:
                for rows, _ in self._frames.values() if code is not None else ():
                    rows[:before] = rows[self.chunk : self.chunk + before]
                self._feed(arrays, start, before)
                self._pass(arrays, start)
            run(arrays, start, count, last)
            self._keep(start, count + before if last else count)
            if self._between is not None:
                self._between.run(arrays, start, self.chunk)

    def _feed(self, arrays: Sequence[Any], start: int, first: int) -> None:
        """Put what comes from outside into the rows of a chunk, from the first one that has none yet."""
        end = self.chunk + self.body.layout.window - 1
        for target, position, row in self._fed:
            low, high = max(start + first - row, 0), min(start + end - row, self.body.count)
            if low < high:
                np.copyto(target[low + row - start : high + row - start], arrays[position][low:high])

    def _pass(self, arrays: Sequence[Any], start: int) -> None:
        """Put what a chunk before gave into the rows of a chunk and into the ring, which holds some of them already."""
        end = start + self.chunk + self.body.layout.window - 1
        between = self._between
        for target, ring, place, distance, row in self._passed if between is not None else ():
            low, high = max(start - row, 0), min(end - row, self.body.count)
            if low < high and between is not None:
                between.take(arrays, target[low + row - start : high + row - start], place, distance, low)
                ring[: len(ring) - 1] = target[: len(ring) - 1]
        for target, which, delay in self._later:
            if delay == start:
                np.copyto(target, arrays[which])

    def _keep(self, start: int, count: int) -> None:
        """Put what is read outside from the rows of a chunk into the result."""
        pairs = self._moved.get((start, count))
        if pairs is None:
            pairs = self._moved[start, count] = []
            for target, source, row in self._kept:
                low, high = max(start - row, 0), min(start + count - row, self.body.count)
                if low < high:
                    pairs.append((target[low:high], source[low + row - start : high + row - start]))
        for one, other in pairs:
            one[...] = other

    def _by_calls(self, arrays: Sequence[Any], start: int, count: int, last: bool) -> None:
        """The rounds of a chunk, one call after the other."""
        window, late = self.body.layout.window, self.late
        single, turns, several, chunks = self._work
        begin = 0
        if not start:
            for rows, ring in self._frames.values():
                ring[: window - 1] = rows[: window - 1]
            begin = min(-(-late // window) * window, count)
            for at in range(begin):  # places with a delay have no turn yet: what they leave is no result
                single[at % window](turns[at : at + 1])
                self._begin(arrays, at)
        whole = count // window
        several(chunks[begin // window : whole])
        for at in range(max(begin, whole * window), count):
            single[at % window](turns[at : at + 1])
        if last:
            for frame, (rows, ring) in self._frames.items():
                for row in range(count, count + window - 1) if frame.stored else ():
                    part = slice(*frame.stored)
                    rows[row, part] = ring[row % window, part]

    def _fast(self, code: Rounds) -> Callable[[Sequence[Any], int, int, bool], None]:
        """The rounds of a chunk in machine code, which works on the rows where they are."""
        fixed = [self._fixed[id(block)] for block in code.blocks]
        widths = [frame.width for frame in code.frames]
        memory = [self._frames[frame][0].reshape(-1) for frame in code.frames]
        late = self.late

        def run(arrays: Sequence[Any], start: int, count: int, last: bool) -> None:
            begin = 0 if start else min(late, count)
            for at in range(begin):
                code.run(1, *[one[at * width :] for one, width in zip(memory, widths, strict=True)], *fixed)
                for target, _, position, _, delay in self._initial:
                    if delay > at:
                        np.copyto(target, arrays[position])
            rest = [one[begin * width :] for one, width in zip(memory, widths, strict=True)]
            code.run(count - begin, *rest, *fixed)

        return run

    def _begin(self, arrays: Sequence[Any], at: int) -> None:
        """Put in place what stands before the first turn of those that are still to begin after a round."""
        for _, target, position, row, delay in self._initial:
            if delay > at and at < row < at + self.body.layout.window:
                np.copyto(target, arrays[position])

    def _bind(self, out: Any) -> None:
        body, layout = self.body, self.body.layout
        self._out = out
        self._known = {}
        self._moved = {}
        self._frames = {}
        count = self.chunk + layout.window - 1
        for frame in layout.frames.values():
            rows = aligned((count, frame.width), frame.dtype)
            self._frames[frame] = (rows, aligned((layout.window, frame.width), frame.dtype))
        self._fixed = {}
        for block in layout.blocks:
            if block.frame is None:
                self._fixed[id(block)] = aligned((len(block.cells) * block.entries,), block.dtype)
        self._copies, self._fed, self._kept = [], [], []
        stacks: dict[int, Any] = {}
        for place in body.stored:
            begin, shape = body.offsets[place], (body.count, *body.shapes[place])
            stacks[place] = out[begin : begin + prod(shape)].reshape(shape)
        self._between = Between(body, self.chunk, stacks) if body.passed else None
        self._passed, self._later = [], []
        for (kind, which, *_), cell in layout.cells.items():
            row = cell.row(0) + (body.lag_of.get(which, 0) * self.chunk if kind == ROW else 0)
            if kind == ROW and which < 0:
                place, _, distance = body.passed[-1 - which]
                ring = self._part(cell, 0, layout.window, 1)
                self._passed.append((self._part(cell, 0, count), ring, place, distance, row))
            elif kind == ROW:
                self._fed.append((self._part(cell, 0, count), which, row))
            elif kind == ALL:
                self._copies.append((self._part(cell, 0, count), which))
        for place in body.stored.intersection(body.places):
            cell = layout.cells[OWN, place]
            delay = body.delays[place] + body.lags[place] * self.chunk
            self._kept.append((stacks[place], self._part(cell, 0, count), cell.row(delay)))
        self._initial = []
        for (place, before), which in body.initial.items():
            cell, delay = layout.cells[OWN, place], body.delays[place]
            if body.lags[place]:
                delay = body.lags[place] * self.chunk
                self._later.append((self._rows(cell, before)[0], which, delay))
                continue
            row = cell.row(delay - before)
            target = self._part(cell, row, 1).reshape(cell.shape)
            ring = self._rows(cell, before - delay)[0]
            self._initial.append((target, ring, which, row, delay))
        calls: list[tuple[Any, list[Any]]] = []
        views: dict[int, Any] = {}
        last = layout.window - 1
        for frame, (rows, ring) in self._frames.items():
            if frame.given:
                part = slice(frame.given)
                calls.append((None, [list(rows[last:, part]), self._turned(ring[:, part], last)]))
        for group in layout.groups:
            calls += self._calls(group, views)
        for frame, (rows, ring) in self._frames.items():
            if frame.stored:
                part = slice(*frame.stored)
                calls.append((None, [self._turned(ring[:, part], 0), list(rows[: self.chunk, part])]))
        self._work = written(calls, self.chunk, layout.window)
        self._known = {}

    def _turned(self, ring: Any, first: int) -> tuple[Any, ...]:
        """The rows of a ring as the rounds go on, from one on."""
        return tuple([ring[(first + phase) % len(ring)] for phase in range(len(ring))])

    def _part(self, cell: Cell, first: int, count: int, which: int = 0) -> Any:
        """Some rows of a cell, each in its shape: those of a chunk, or of the ring."""
        end = cell.start + cell.block.entries
        if cell.block.frame is None:
            return self._fixed[id(cell.block)][cell.start : end].reshape((1, *cell.shape))
        return self._frames[cell.block.frame][which][first : first + count, cell.start : end].reshape((-1, *cell.shape))

    def _calls(self, group: Group, views: dict[int, Any]) -> list[tuple[Any, list[Any]]]:
        """A function, and for each operand: one array, a tuple of those in the ring, or a list for all rounds."""
        body = self.body
        place = group.places[0]
        op = body.ops[place]
        if group.flat:
            return [(op.function, [self._flat(column) for column in (*group.columns, group.out)])]
        refs = body.refs[place]
        operands = [self._shaped(op, position, ref, views) for position, ref in enumerate(refs)]
        ops = body.turns.get(place)
        if op.kind == VIEW:
            seen = self._seen(op, ops, operands[0])
            if place in body.shown:
                views[place] = seen
                return []
            return [(None, [seen, self._rows(body.layout.cells[OWN, place], 0)])]
        if ops is not None:
            made: Any = [kernel(one) for one in ops]
        else:
            made = op.function if op.kind == ENTRY else kernel(op)
        return [(made, [*operands, self._rows(body.layout.cells[OWN, place], 0)])]

    def _seen(self, op: Op, ops: list[Op] | None, rows: Any) -> Any:
        """A view of an operand."""
        shape = op.out.shape
        if ops is not None:
            every = rows if isinstance(rows, tuple) else (rows,)
            return [shown(one, every[at % len(every)], shape) for at, one in enumerate(ops)]
        if isinstance(rows, (tuple, list)):
            return type(rows)([shown(op, row, shape) for row in rows])
        return shown(op, rows, shape)

    def _shaped(self, op: Op, position: int, ref: Any, views: dict[int, Any]) -> Any:
        kind, which, distance = ref
        if kind == NUMBER:
            return operand(op, which)
        if kind == OWN and which in views:
            return views[which]
        return self._rows(self.body.layout.cells[kind, which], distance)

    def _rows(self, cell: Cell, distance: int) -> Any:
        """What a cell holds some rounds before, in its shape."""
        return self._side_by_side(cell, 1, distance, cell.shape)

    def _flat(self, column: Column) -> Any:
        """What a column of a group holds, side by side."""
        if column.number is not None:
            return column.number
        return self._side_by_side(column.cell, column.width, column.distance, (-1,))

    def _side_by_side(self, cell: Cell, width: int, distance: int, shape: tuple[int, ...]) -> Any:
        key = (cell, width, distance, shape)
        known = self._known.get(key)
        if known is None:
            part = slice(cell.start, cell.start + width * cell.block.entries)
            if cell.block.frame is None:
                known = self._fixed[id(cell.block)][part].reshape(shape)
            else:
                ring = self._frames[cell.block.frame][1]
                rows = [row[part].reshape(shape) for row in self._turned(ring, cell.row(-distance))]
                known = tuple(rows) if len(rows) > 1 else rows[0]
            self._known[key] = known
        return known


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros that begin where a line of the cache does."""
    size = prod(shape) * int(dtype.itemsize)
    memory = np.zeros(size + ALIGNED, np.uint8)
    first = -memory.ctypes.data % ALIGNED
    return memory[first : first + size].view(dtype).reshape(shape)
