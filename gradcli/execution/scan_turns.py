"""Recorded steps of one turn of a loop, as one generated function that runs all turns on arrays of NumPy.

Each step is a ufunc that writes into memory which all turns share; the last step of a carry writes into the row of its
stack, where the next turn reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.generated import function
from gradcli.execution.plans.allocate import laid_out, slot
from gradcli.execution.plans.emit_numpy import kernel, operand, put, shown, take
from gradcli.execution.plans.ir import CALL, VIEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.ir import Op, Value

CHUNK = 64  # turns whose states have memory where nobody reads them all
CHUNK_ENTRIES = 1 << 16  # of such a state in all these turns


class ArrayTurns:
    """Recorded steps of a turn as one generated function over all turns."""

    def __init__(
        self,
        ops: Sequence[Op],
        carries: Sequence[Value],
        columns: Sequence[Value],
        fixed: Sequence[Value],
        nexts: Sequence[Value],
    ) -> None:
        self.ops, self.carries, self.columns, self.fixed, self.nexts = ops, carries, columns, fixed, nexts
        self._functions: dict[str, Any] = {"zip": zip}
        self._moving = {value.serial for value in (*carries, *columns)}
        for op in ops:
            if any(arg.serial in self._moving for arg in op.args):
                self._moving.add(op.out.serial)
        made = {op.out.serial for op in ops if op.kind not in (VIEW, CALL)}
        self._rows: dict[int, int] = {}  # steps that write straight into the row of a carry
        for place, (value, carry) in enumerate(zip(nexts, carries, strict=True)):
            if value.serial in made and value.serial in self._moving and value.dtype == carry.dtype:
                self._rows.setdefault(value.serial, place)
        self._owned = [op.out for op in ops if self._has_memory(op) and op.out.serial not in self._moving]
        work = [
            (self._roots(op.args), [op.out], None)  # NumPy takes longer where a short result lies over an operand
            for op in ops
            if op.kind != VIEW and op.out.serial in self._moving
        ]
        self._layout = laid_out([*work, (self._roots(nexts), [], None)], self._placed(), set())
        self._buffers = [op.out for op in ops if op.out.serial in self._layout.offsets]
        self._run = function(self._text(), {"__builtins__": {}, **self._functions}, "loop")

    def run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int, store: bool
    ) -> tuple[Sequence[Any] | None, Sequence[Any]]:
        """The states before each turn, if they are to be stored, and those after the last turn."""
        memory = np.empty(self._layout.size, np.uint8)
        buffers = [slot(memory, self._layout.offsets[one.serial], one.shape, one.dtype) for one in self._buffers]
        buffers += [np.empty(one.shape, one.dtype) for one in self._owned]
        widest = max([carry.size for carry in self.carries])
        chunk = turns if store else min(turns, max(1, min(CHUNK, CHUNK_ENTRIES // max(widest, 1))))
        states = [np.empty((chunk + 1, *carry.shape), carry.dtype) for carry in self.carries]
        rows = [
            list(state) if carry.shape else [state[at : at + 1].reshape(()) for at in range(chunk + 1)]
            for state, carry in zip(states, self.carries, strict=True)
        ]
        for state, value in zip(states, before, strict=True):
            state[0] = value
        for start in range(0, turns, chunk):
            count = min(chunk, turns - start)
            if start:
                for state in states:
                    state[0] = state[chunk]
            self._run(
                [column[start : start + count] for column in columns],
                fixed,
                [one[: count + 1] for one in rows],
                buffers,
            )
            last = [state[count] for state in states]
        return [state[:-1] for state in states] if store else None, last

    def _has_memory(self, op: Op) -> bool:
        return op.kind != VIEW and (op.kind != CALL or op.function in (take, put))

    def _placed(self) -> Any:
        made = {op.out.serial for op in self.ops if self._has_memory(op)}
        return lambda value: value.nbytes if value.serial in made and value.serial not in self._rows else None

    def _roots(self, values: Sequence[Value]) -> list[Value]:
        """The values whose memory these may show: what a call gives may be a view of its operands."""
        found: dict[int, Value] = {}
        pending = list(values)
        while pending:
            value = pending.pop()
            if value.serial not in found:
                found[value.serial] = value
                if value.op is not None and not self._has_memory(value.op):
                    pending += value.op.args
        return list(found.values())

    def _text(self) -> str:
        before: list[str] = []  # the turns
        inside: list[str] = []
        shared = {value.serial for value in (*self._buffers, *self._owned, *self.fixed)}  # the same arrays in all turns
        for op in self.ops:
            moves = op.out.serial in self._moving
            called = f"_k{op.out.serial}({', '.join([self._word(op, arg) for arg in op.args])}"
            if op.kind == VIEW:
                if op.args[0].serial in shared:
                    shared.add(op.out.serial)
                    moves = False
                self._functions[f"_k{op.out.serial}"] = _view_of(op)
            elif self._has_memory(op):
                self._functions[f"_k{op.out.serial}"] = kernel(op)
                called += f", {self._name(op.out)}"
            else:
                self._functions[f"_k{op.out.serial}"] = op.function
            line = f"{called})" if self._has_memory(op) else f"{self._name(op.out)} = {called})"
            (inside if moves else before).append(line)
        carried = [f"x{carry.serial}" for carry in self.carries]
        nexts = [f"n{place}" for place in range(len(carried))]
        for place, value in enumerate(self.nexts):
            if self._rows.get(value.serial) != place:
                word = self._name(value) if value.number is None else self._number(value)
                self._functions["_copy"] = _copy
                inside.append(f"_copy({nexts[place]}, {word})")
        buffers = [f"x{value.serial}" for value in (*self._buffers, *self._owned)]
        given = [f"x{value.serial}" for value in self.columns]
        lines = [
            "def run(columns, fixed, rows, buffers):",
            *([f"    {', '.join(buffers)}, = buffers"] if buffers else []),
            *([f"    {', '.join([f'x{value.serial}' for value in self.fixed])}, = fixed"] if self.fixed else []),
            *[f"    {line}" for line in before],
            f"    {', '.join(carried)}, = [one[0] for one in rows]",
            f"    for {', '.join([*given, *nexts])}, in zip(*columns, *[one[1:] for one in rows]):",
            *[f"        {line}" for line in inside],
            f"        {', '.join(carried)}, = {', '.join(nexts)},",
            "",
        ]
        return "\n".join(lines)

    def _name(self, value: Value) -> str:
        place = self._rows.get(value.serial)
        return f"x{value.serial}" if place is None else f"n{place}"

    def _word(self, op: Op, value: Value) -> str:
        return self._name(value) if value.number is None else self._number(value, op)

    def _number(self, value: Value, op: Op | None = None) -> str:
        name = f"_c{value.serial}" if op is None else f"_c{value.serial}_{op.kind}"
        self._functions[name] = value.number if op is None else operand(op, value)
        return name


def _view_of(op: Op) -> Any:
    return lambda x: shown(op, x, op.out.shape)


def _copy(row: Any, value: Any) -> None:
    row[...] = value
