"""A recurrence goes in, one step comes out that runs it turn by turn, on rows of memory that all turns share.

What a turn writes lies in a row of its own, so that steps on all turns read it where it is. Rows are looked up once:
a run is one loop over tuples of rows that calls one function after the other. No rule of arithmetic is known here.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import kernel, operand, shown
from gradcli.execution.plans.packing import ALL, NUMBER, OWN, ROW
from gradcli.execution.plans.rings import Rings, items
from gradcli.execution.plans.turns import nothing, written
from gradcli.execution.plans.values import ENTRY, VIEW, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.kernels.rounds import Rounds
    from gradcli.execution.plans.bodies import Body
    from gradcli.execution.plans.layouts import Cell, Column, Group
    from gradcli.execution.plans.turns import Call, Work


CHUNK = 64  # rounds after which results leave the cache, at least


class Scan:
    """A body bound to memory.

    The rows that some rounds use lie in a small ring, so that all that is called stays in cache. Rows are copied into
    it before these rounds and out of it behind them; then those that the next rounds still read become its first ones.
    What comes from outside and what is read there passes through `rows` of a chunk of rounds; each stored place has its
    turns one after the other in the result.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        window = body.layout.window
        self.late = max(body.delays.values())
        least = max(CHUNK, self.late + window)
        self.together = min(body.layout.together, least)  # rounds that share their copies
        self.chunk = -(-least // self.together) * self.together  # rounds for which `rows` has room
        if body.turns:  # each turn has kernels of its own
            self.chunk = body.count + self.late
        self.rounds = body.count + self.late
        self._out: Any = None
        self._copies: list[tuple[Any, int]] = []
        self._fed: list[tuple[Any, int, int]] = []
        self._kept: list[tuple[Any, Any, int]] = []
        self._initial: list[tuple[Any, Cell, int, int, int]] = []
        self._rings: Rings  # bound with the first result
        self._moved: dict[tuple[int, int], list[tuple[Any, Any]]] = {}  # by rounds: parts of the result, and where from
        self._single: Work = (nothing, [])
        self._several: Work = (nothing, [])

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
        for start in range(0, self.rounds, self.chunk):
            count = min(self.chunk, self.rounds - start)
            last = start + count == self.rounds
            if start:
                for rows, _ in self._rings.frames.values() if code is not None else ():
                    rows[:before] = rows[self.chunk : self.chunk + before]
                self._feed(arrays, start, before)
            run(arrays, start, count, last)
            self._keep(start, count + before if last else count)

    def _feed(self, arrays: Sequence[Any], start: int, first: int) -> None:
        """Put what comes from outside into the rows of a chunk, from the first one that has none yet."""
        end = self.chunk + self.body.layout.window - 1
        for target, position, row in self._fed:
            low, high = max(start + first - row, 0), min(start + end - row, self.body.count)
            if low < high:
                np.copyto(target[low + row - start : high + row - start], arrays[position][low:high])

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
        before, together = self.body.layout.window - 1, self.together
        frames = self._rings.frames
        single, turns = self._single
        several, groups = self._several
        begin = 0
        if not start:
            for rows, ring in frames.values():
                ring[...] = rows[: len(ring)]
            begin = min(-(-self.late // together) * together, count)
            for at in range(begin):  # places with a delay have no turn yet: what they leave is no result
                single(turns[at : at + 1])
                self._begin(arrays, at)
        whole = count // together
        several(groups[begin // together : whole])
        single(turns[max(begin, whole * together) : count])
        if last:
            for frame, (rows, ring) in frames.items():
                if frame.stored:
                    part = slice(*frame.stored)
                    rows[count : count + before, part] = ring[:before, part]

    def _fast(self, code: Rounds) -> Callable[[Sequence[Any], int, int, bool], None]:
        """The rounds of a chunk in machine code, which works on the rows where they are."""
        fixed = [self._rings.fixed[id(block)] for block in code.blocks]
        widths = [frame.width for frame in code.frames]
        memory = [self._rings.frames[frame][0].reshape(-1) for frame in code.frames]
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
        for _, cell, position, row, delay in self._initial:
            if delay > at and at < row < at + self.body.layout.window:
                np.copyto(self._rings.ring(cell, row - at - 1), arrays[position])

    def _bind(self, out: Any) -> None:
        body, layout = self.body, self.body.layout
        self._out = out
        self._moved = {}
        rings = self._rings = Rings(layout, self.chunk, self.together)
        self._copies, self._fed, self._kept = [], [], []
        stacks: dict[int, Any] = {}
        for place in body.stored:
            begin, shape = body.offsets[place], (body.count, *body.shapes[place])
            stacks[place] = out[begin : begin + prod(shape)].reshape(shape)
        for (kind, which, *_), cell in layout.cells.items():
            if kind == ROW:
                self._fed.append((rings.part(cell), which, cell.row(0)))
            elif kind == ALL:
                self._copies.append((rings.part(cell), which))
        for place in body.stored.intersection(body.places):
            cell = layout.cells[OWN, place]
            self._kept.append((items(stacks[place]), items(rings.part(cell)), cell.row(body.delays[place])))
        self._initial = []
        for (place, before), which in body.initial.items():
            cell, delay = layout.cells[OWN, place], body.delays[place]
            row = cell.row(delay - before)
            self._initial.append((rings.part(cell)[row : row + 1].reshape(cell.shape), cell, which, row, delay))
        calls: list[Call] = []
        views: dict[int, Any] = {}
        for group in layout.groups:
            calls += self._calls(group, views)
        self._single, self._several = [
            written(rings.copied_in(size), calls, rings.copied_out(size), self.chunk // size, size)
            for size in (1, self.together)
        ]

    def _calls(self, group: Group, views: dict[int, Any]) -> list[Call]:
        """A function, and for each operand: one array, a tuple for rounds that go together, or a list for all."""
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
            every = rows if isinstance(rows, tuple) else (rows,) * self.together
            whole = self.chunk // self.together * self.together
            return [shown(one, every[at % self.together if at < whole else 0], shape) for at, one in enumerate(ops)]
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
        return self._rings.turned(cell, 1, distance, cell.shape)

    def _flat(self, column: Column) -> Any:
        """What a column of a group holds, side by side."""
        if column.number is not None:
            return column.number
        return self._rings.turned(column.cell, column.width, column.distance, (-1,))
