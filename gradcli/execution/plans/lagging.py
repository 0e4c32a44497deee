"""What stands between recurrences that share rounds goes in, the calls that take it for a chunk of turns come out.

A recurrence that reads another one may be some chunks of rounds behind it. Then what it reads is known for all turns of
a chunk before the first of them, and a step between takes one call for a chunk in place of one for each turn. What is
called, and where the recurrences keep their results, is not known here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import kernel, operand
from gradcli.execution.plans.packing import ALL, NUMBER, OWN, ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.bodies import Body

    Calls = list[Callable[[], Any] | tuple[Any, int, int, int]]

REPEATED = 64  # entries of a turn up to which what is the same in all turns is written out for each of a chunk


class Between:
    """The steps between recurrences, bound to memory: `stacks` has all turns of what a place gives."""

    def __init__(self, body: Body, chunk: int, stacks: dict[int, Any]) -> None:
        self.body = body
        self.chunk = min(chunk, body.count)
        self.stacks = stacks
        self._buffers: dict[Any, Any] = {}  # for a chunk: what nobody else reads, and what comes from outside
        self._same: list[tuple[Any, int]] = []
        self._rows: list[tuple[Any, int, int]] = []
        for place in body.middle:
            op = body.ops[place]
            if place not in stacks:
                self._buffers[place] = np.empty((self.chunk, *op.out.shape), op.out.dtype)
            for position, (kind, which, distance) in enumerate(body.refs[place]):
                arg = op.args[position]
                if kind == OWN and distance:
                    rows = np.empty((self.chunk, *arg.shape), arg.dtype)
                    self._buffers[place, position] = rows
                elif kind == ALL:
                    full = np.empty((self.chunk, *op.out.shape) if op.out.size <= REPEATED else arg.shape, arg.dtype)
                    self._buffers[place, position] = full
                    self._same.append((full, which))
                elif kind == ROW:
                    rows = np.empty((self.chunk, *arg.shape), arg.dtype)
                    self._buffers[place, position] = rows
                    self._rows.append((rows, which, body.lags[place]))
        self._calls: dict[int, Calls] = {}

    def begin(self, arrays: Sequence[Any]) -> None:
        """Take what is the same in all turns."""
        for full, which in self._same:
            np.copyto(full, arrays[which])

    def run(self, arrays: Sequence[Any], start: int, chunk: int) -> None:
        """Behind the rounds of the chunk that begins at `start`."""
        for rows, which, lag in self._rows:
            first, end = self._turns(start, lag, chunk)
            if first < end:
                np.copyto(rows[: end - first], arrays[which][first:end])
        calls = self._calls.get(start)
        if calls is None:
            calls = self._calls[start] = self._bound(start, chunk)
        for call in calls:
            if isinstance(call, tuple):
                self.take(arrays, *call)
            else:
                call()

    def take(self, arrays: Sequence[Any], target: Any, place: int, distance: int, first: int) -> None:
        """Turns of a place, some turns before those from one on; before its first turn what stands for them."""
        missing = min(max(distance - first, 0), len(target))
        for at in range(missing):
            np.copyto(target[at], arrays[self.body.before[place, distance - first - at]])
        if missing < len(target):
            begin = first + missing - distance
            np.copyto(target[missing:], self.stacks[place][begin : begin + len(target) - missing])

    def _turns(self, start: int, lag: int, chunk: int) -> tuple[int, int]:
        """The turns of which those with a lag read what is between, behind the rounds of a chunk."""
        first = start - (lag - 1) * chunk
        return max(first, 0), min(first + chunk, self.body.count)

    def _bound(self, start: int, chunk: int) -> Calls:
        found: Calls = []
        for place in self.body.middle:
            first, end = self._turns(start, self.body.lags[place], chunk)
            if first >= end:
                continue
            op = self.body.ops[place]
            rank = len(op.out.shape)
            operands = []
            for position, (kind, which, distance) in enumerate(self.body.refs[place]):
                if kind == OWN and distance:
                    found.append((self._buffers[place, position][: end - first], which, distance, first))
                if kind == NUMBER:
                    operands.append(operand(op, which))
                    continue
                if kind == ALL and op.out.size > REPEATED:
                    operands.append(self._buffers[place, position])
                    continue
                rows = self._part(which if kind == OWN and not distance else (place, position), first, end)
                operands.append(rows.reshape((end - first, *(1,) * (rank + 1 - rows.ndim), *rows.shape[1:])))
            found.append(partial(kernel(op), *operands, self._part(place, first, end)))
        return found

    def _part(self, key: Any, first: int, end: int) -> Any:
        """Some turns of what a place gives or reads."""
        stack = self.stacks.get(key)
        return self._buffers[key][: end - first] if stack is None else stack[first:end]
