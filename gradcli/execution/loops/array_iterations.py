"""The iterations of a loop on arrays as one generated function of ufuncs.

Each step writes into memory that all iterations share, and the last step of a carry into the row of its stack, where
the next iteration reads it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler.allocate import lay_out, slot
from gradcli.execution.compiler.emit_numpy import kernel, operand, show_view
from gradcli.execution.compiler.ir import CALL, VIEW
from gradcli.execution.generated import function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue

CHUNK = 64  # iterations whose states have memory where nobody reads them all
CHUNK_ENTRIES = 1 << 16  # of such a state in all these iterations


def has_memory(op: Op) -> bool:
    """Whether a step writes into an array that it is given; a view shows one, and a call makes one."""
    return op.kind not in (VIEW, CALL)


class ArrayIterations:
    """Recorded steps of an iteration as one generated function over all iterations."""

    def __init__(
        self,
        ops: Sequence[Op],
        carries: Sequence[PlanValue],
        columns: Sequence[PlanValue],
        fixed: Sequence[PlanValue],
        nexts: Sequence[PlanValue],
    ) -> None:
        self.ops, self.carries, self.columns, self.fixed, self.nexts = ops, carries, columns, fixed, nexts
        self._functions: dict[str, Any] = {"zip": zip}
        self._moving = {value.serial for value in (*carries, *columns)}
        for op in ops:
            if any(arg.serial in self._moving for arg in op.args):
                self._moving.add(op.out.serial)
        written = {op.out.serial for op in ops if has_memory(op)}
        self._rows: dict[int, int] = {}  # steps that write straight into the row of a carry
        for place, (value, carry) in enumerate(zip(nexts, carries, strict=True)):
            if value.serial in written and value.serial in self._moving and value.dtype == carry.dtype:
                self._rows.setdefault(value.serial, place)
        self._owned = [op.out for op in ops if has_memory(op) and op.out.serial not in self._moving]
        work = [
            (self._roots(op.args), [op.out], None)  # NumPy takes longer where a short result lies over an operand
            for op in ops
            if op.kind != VIEW and op.out.serial in self._moving
        ]
        shared = written - self._rows.keys()  # what is written into memory that all iterations share
        sizes = {op.out.serial: op.out.nbytes for op in ops if op.out.serial in shared}
        self._layout = lay_out([*work, (self._roots(nexts), [], None)], lambda value: sizes.get(value.serial), set())
        self._buffers = [op.out for op in ops if op.out.serial in self._layout.offsets]
        self._run = function(self._text(), {"__builtins__": {}, **self._functions}, "loop")

    def run(
        self,
        columns: Sequence[Any],
        fixed: Sequence[Any],
        before: Sequence[Any],
        iterations: int,
        filled: Sequence[Any],
    ) -> None:
        """Fill the states of each carry: before each iteration and after the last one, or the latter alone."""
        memory = np.empty(self._layout.size, np.uint8)
        buffers = [slot(memory, self._layout.offsets[out.serial], out.shape, out.dtype) for out in self._buffers]
        buffers += [np.empty(out.shape, out.dtype) for out in self._owned]
        store = len(filled[0]) > 1
        widest = max([carry.size for carry in self.carries])
        chunk = iterations if store else min(iterations, max(1, min(CHUNK, CHUNK_ENTRIES // max(widest, 1))))
        states = filled if store else [np.empty((chunk + 1, *carry.shape), carry.dtype) for carry in self.carries]
        rows = [
            list(state) if carry.shape else [state[at : at + 1].reshape(()) for at in range(chunk + 1)]
            for state, carry in zip(states, self.carries, strict=True)
        ]
        for state, value in zip(states, before, strict=True):
            state[0] = value
        for start in range(0, iterations, chunk):
            count = min(chunk, iterations - start)
            if start:
                for state in states:
                    state[0] = state[chunk]
            self._run(
                [column[start : start + count] for column in columns],
                fixed,
                [stack[: count + 1] for stack in rows],
                buffers,
            )
            if not store:
                for last, state in zip(filled, states, strict=True):
                    last[0] = state[count]

    def _roots(self, values: Sequence[PlanValue]) -> list[PlanValue]:
        """The values whose memory these may show: what a call gives may be a view of its operands."""
        roots: dict[int, PlanValue] = {}
        pending = list(values)
        while pending:
            value = pending.pop()
            if value.serial not in roots:
                roots[value.serial] = value
                if value.op is not None and not has_memory(value.op):
                    pending += value.op.args
        return list(roots.values())

    def _text(self) -> str:
        before: list[str] = []  # the iterations
        inside: list[str] = []
        # the same arrays in all iterations
        shared = {value.serial for value in (*self._buffers, *self._owned, *self.fixed)}
        for op in self.ops:
            moves = op.out.serial in self._moving
            called = f"_k{op.out.serial}({', '.join([self._word(arg, op) for arg in op.args])}"
            if op.kind == VIEW:
                if op.args[0].serial in shared:
                    shared.add(op.out.serial)
                    moves = False
                self._functions[f"_k{op.out.serial}"] = partial(show_view, op, shape=op.out.shape)
            elif has_memory(op):
                self._functions[f"_k{op.out.serial}"] = kernel(op)
                called += f", {self._word(op.out)}"
            else:
                self._functions[f"_k{op.out.serial}"] = op.function
            line = f"{called})" if has_memory(op) else f"{self._word(op.out)} = {called})"
            (inside if moves else before).append(line)
        carried = [f"x{carry.serial}" for carry in self.carries]
        nexts = [f"n{place}" for place in range(len(carried))]
        for place, value in enumerate(self.nexts):
            if self._rows.get(value.serial) != place:
                self._functions["_copy"] = np.copyto
                inside.append(f"_copy({nexts[place]}, {self._word(value)}, 'unsafe')")
        buffers = [f"x{value.serial}" for value in (*self._buffers, *self._owned)]
        columns = [f"x{value.serial}" for value in self.columns]
        lines = [
            "def run(columns, fixed, rows, buffers):",
            *([f"    {', '.join(buffers)}, = buffers"] if buffers else []),
            *([f"    {', '.join([f'x{value.serial}' for value in self.fixed])}, = fixed"] if self.fixed else []),
            *[f"    {line}" for line in before],
            f"    {', '.join(carried)}, = [row[0] for row in rows]",
            f"    for {', '.join([*columns, *nexts])}, in zip(*columns, *[row[1:] for row in rows]):",
            *[f"        {line}" for line in inside],
            f"        {', '.join(carried)}, = {', '.join(nexts)},",
            "",
        ]
        return "\n".join(lines)

    def _word(self, value: PlanValue, op: Op | None = None) -> str:
        """The name of a value, or of a number as a step reads it."""
        if value.number is not None:
            name = f"_c{value.serial}_{op.kind if op else ''}"
            self._functions[name] = operand(op, value) if op else value.number
            return name
        place = self._rows.get(value.serial)
        return f"x{value.serial}" if place is None else f"n{place}"
