"""Carries that need one another, which run iteration by iteration: single numbers and arrays.

Single numbers run as Python code printed for them (`emit_python`), or as machine code (`emit_numba`, extra `fast`).
Arrays run as the ufuncs that the operations' `impl`s are made of, in one generated function over all iterations: each
step writes into memory that all iterations share, and the last step of a carry into the row of its stack, where the
next iteration reads it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import emit_numba
from gradcli.execution.compiler.allocate import lay_out, slot
from gradcli.execution.compiler.emit_numpy import kernel, operand, show_view
from gradcli.execution.compiler.ir import CALL, VIEW, live
from gradcli.execution.compiler.tracing import Operations
from gradcli.execution.emit_python import printed_core
from gradcli.execution.generated import function
from gradcli.execution.namespaces import IEEE_DIFFERS, Unavailable
from gradcli.graph.node import is_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.compiler.ir import Op, Value
    from gradcli.execution.scan import Group, Scan
    from gradcli.graph.types import Shape

ITERATION = 8  # steps of printed code that an iteration costs by itself
CHUNK = 64  # iterations whose states have memory where nobody reads them all
CHUNK_ENTRIES = 1 << 16  # of such a state in all these iterations


class Core:
    """A group of carries, and what it reads in each iteration: `columns`, which differ between iterations, and `fixed`.

    It is the function of a step: called with the columns, the fixed values, the carries before the first of `count`
    iterations, and a line, which it fills with the states of one carry after the other. These are all states, one more
    than iterations, if it is to `store` them, else those after the last iteration. An `exact` core gives the bits of
    the operations' `impl`s; any other one may replace reductions and products.
    """

    def __init__(
        self, xp: Any, scan: Scan, group: Group, count: int, store: bool, exact: bool = False, lead: Shape = ()
    ) -> None:
        self.xp, self.scan, self.count, self.store, self.exact = xp, scan, count, store, exact
        self.lead = lead  # batch axes of all values
        body = self.body = scan.body
        self.carries, self.core = group.carries, group.core
        varying = scan.split().varying
        self.columns = [at for at in group.reads if at in varying]
        self.fixed = [at for at in group.reads if at not in varying]
        self.order = sorted({*group.core, *group.constants})
        self.done = 0  # steps of all iterations so far
        inside = [body.steps[at] for at in (*self.carries, *self.core, *group.reads)]
        self.printed: Any = None
        if xp.dtype == "float64" and not lead and not any(step.shape or is_reader(step) for step in inside):
            with suppress(Unavailable):
                self.printed = printed_core(body, self.order, self.carries, self.columns, self.fixed)
        self.compiled: emit_numba.CompiledTurns | None = None
        self.tried = False  # to compile it
        self.once = False  # then no machine code is made of arrays
        self._iterations: ArrayTurns | None = None
        self._native: emit_numba.CompiledTurns | None = None

    def __repr__(self) -> str:
        return f"{self.count} iterations of {len(self.core)} steps"

    @property
    def native(self) -> bool:
        """Whether the iterations run as machine code."""
        return self._native is not None or self.compiled is not None

    @property
    def rows(self) -> int:
        """How many states of each carry there are."""
        return self.count + 1 if self.store else 1

    def __call__(self, *arrays: Any) -> None:
        ends, back = (len(self.columns), len(self.columns) + len(self.fixed)), -1 if self.scan.reverse else 1
        columns = [column[::back] for column in arrays[: ends[0]]]
        states, stop = [], 0
        for k in self.carries:
            type_ = self.body.steps[k].type
            shape = (self.rows, *self.lead, *type_.shape)
            start, stop = stop, stop + prod(shape)
            line = arrays[-1][start:stop].reshape(shape)[::back]
            dtype = self.xp.kind_type(type_.kind)
            states.append((line, line if line.dtype == dtype else np.empty(line.shape, dtype)))
        self.run(columns, arrays[ends[0] : ends[1]], arrays[ends[1] : -1], [own for _, own in states])
        for line, own in states:
            if own is not line:
                line[...] = own

    def run(self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], states: Sequence[Any]) -> None:
        """Fill the states of each carry, those behind the last iteration at the end; all in the order of running."""
        if self.printed is not None:
            self._count()
            if self.compiled is not None:
                return _fill(states, *self.compiled.run(columns, fixed, before, self.count))
            try:
                results = self.printed(columns, fixed, before, self.count, self.store)
            except IEEE_DIFFERS:
                pass  # NumPy says what IEEE arithmetic gives
            else:
                return _fill(states, *results)
        if self._iterations is None:  # decided in the first run, so that all runs give the same bits
            self._iterations = self._record()
            if not self.exact and not self.once:
                self._native = emit_numba.compiled_iterations(self._iterations, self.count)
        if self._native is not None:
            return _fill(states, *self._native.run(columns, fixed, before, self.count))
        return self._iterations.run(columns, fixed, before, self.count, states)

    def _count(self) -> None:
        """Compile the iterations once enough have run; one costs as much as some steps, and so does a column."""
        self.done += self.count * (len(self.core) + len(self.columns) + ITERATION)
        if self.done >= emit_numba.CORE_WORK and not self.tried:
            self.tried = True
            self.compiled = emit_numba.compiled_core(self.body, self.order, self.carries, self.columns, self.fixed)

    def _record(self) -> ArrayTurns:
        """The iterations as ufuncs."""
        body, xp = self.body, self.xp
        operations = Operations(xp.dtype, faithful=self.exact, exact=self.exact)
        values: dict[int, Value] = {}
        for at in (*self.carries, *self.columns, *self.fixed):
            step = body.steps[at]
            values[at] = operations.steps.leaf(step, xp.kind_type(step.type.kind), self.lead)
        leaves = list(values.values())
        operations.body(self.scan, self.order, values, lead=self.lead)
        count = len(self.carries), len(self.columns)
        moving = leaves[: sum(count)]
        nexts = [values[body.positions[body.nexts[k]]] for k in self.carries]
        return ArrayTurns(
            live(operations.steps.ops, nexts), moving[: count[0]], moving[count[0] :], leaves[sum(count) :], nexts
        )


def _fill(states: Sequence[Any], before: Any, after: Sequence[Any]) -> None:
    """Fill in the states before each iteration, if there is room for all, and those after the last iteration."""
    for place, own in enumerate(states):
        if len(own) > 1:
            own[:-1] = before[place]
        own[-1] = after[place]


def has_memory(op: Op) -> bool:
    """Whether a step writes into an array that it is given; a view shows one, and a call makes one."""
    return op.kind not in (VIEW, CALL)


class ArrayTurns:
    """Recorded steps of an iteration as one generated function over all iterations."""

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

    def _roots(self, values: Sequence[Value]) -> list[Value]:
        """The values whose memory these may show: what a call gives may be a view of its operands."""
        roots: dict[int, Value] = {}
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
        shared = {
            value.serial for value in (*self._buffers, *self._owned, *self.fixed)
        }  # the same arrays in all iterations
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

    def _word(self, value: Value, op: Op | None = None) -> str:
        """The name of a value, or of a number as a step reads it."""
        if value.number is not None:
            name = f"_c{value.serial}_{op.kind if op else ''}"
            self._functions[name] = operand(op, value) if op else value.number
            return name
        place = self._rows.get(value.serial)
        return f"x{value.serial}" if place is None else f"n{place}"
