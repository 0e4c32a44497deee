"""Recorded steps of one turn of a loop, as one generated function that runs all turns on arrays of NumPy.

Each step is a ufunc that writes into memory which all turns share; the last step of a carry writes into the row of its
stack, where the next turn reads it. Linear recurrences run in blocks of turns side by side.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.generated import function
from gradcli.execution.plans.allocate import laid_out, slot
from gradcli.execution.plans.emit_numpy import kernel, operand, put, shown, take
from gradcli.execution.plans.ir import CALL, ENTRY, VIEW
from gradcli.execution.plans.simplify import Steps

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


# --- linear recurrences -----------------------------------------------------------------------------------------
#
# Each turn multiplies the carries by a matrix for each entry, and adds a vector: reverse mode makes such loops. The
# turns are cut into blocks, all of which run side by side: once from zeros, and once from each unit vector without what
# is added. Then the states before the blocks follow from block to block, and those of all turns from these (R. Brent,
# H. Kung, A regular layout for parallel adders, 1982; G. Blelloch, Prefix sums and their applications, 1990). Where
# what is added up is much larger than what comes of it, or a product of factors leaves the range of normal numbers, the
# turns run one by one.

FEWEST = 64  # turns in which this is worth it
WIDEST = 48  # entries of a carry: on more, calls are not what a turn costs
MOST_CARRIES = 4  # so many runs are needed beside the first one
LOST = 32.0  # how far what is added up may be above what comes of it, and how far blocks may make an error grow
LINEAR = {np.add, np.subtract, np.multiply, np.true_divide, np.negative}


class Blocks:
    """The turns of a linear recurrence in blocks.

    `parts` run from zeros, `units` from unit vectors, and `sizes` from the states, where nothing cancels.
    """

    def __init__(self, turns: ArrayTurns, count: int) -> None:
        self.turns = turns
        self.length = isqrt(count) // 2
        self.blocks = count // self.length
        self.parts = _in_blocks(turns, (self.blocks,))
        self.units = _in_blocks(turns, (len(turns.carries), self.blocks), summands=False)
        self.sizes = _in_blocks(turns, (self.blocks,), sizes=True)

    def run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int
    ) -> tuple[Sequence[Any], Sequence[Any]] | None:
        """The states before each turn and those after the last one; None where that would lose digits."""
        try:
            with np.errstate(all="raise"):  # also where a product of factors has fewer digits than each of its turns
                return self._run(columns, fixed, before, turns)
        except FloatingPointError:
            return None

    def _run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int
    ) -> tuple[Sequence[Any], Sequence[Any]] | None:
        carries, length, blocks = self.turns.carries, self.length, self.blocks
        width, shape, dtype = len(carries), carries[0].shape, carries[0].dtype
        rest = turns - length * blocks
        first: Sequence[Any] | None = None
        if rest:
            first, before = self.turns.run([column[:rest] for column in columns], fixed, before, rest, True)
        rows = []
        for column in columns:
            one = column[rest:].reshape(blocks, length, *([1] * (1 + len(shape) - column.ndim)), *column.shape[1:])
            rows.append(np.ascontiguousarray(one.swapaxes(0, 1)))
        zeros = np.zeros((blocks, *shape), dtype)
        parts, part_ends = self.parts.run(rows, fixed, [zeros] * width, length, True)
        eye = np.eye(width, dtype=dtype).reshape(width, width, *[1] * zeros.ndim)
        start = [np.broadcast_to(one, (width, *zeros.shape)) for one in eye]
        units, unit_ends = self.units.run([row[:, None] for row in rows], fixed, start, length, True)
        assert parts is not None
        assert units is not None
        matrices = np.stack(unit_ends).swapaxes(0, 2)  # [block, unit, carry, ...]
        vectors = np.stack(part_ends, 1)  # [block, carry, ...]
        starts = np.empty((blocks + 1, width, *shape), dtype)
        starts[0] = before
        for block in range(blocks):
            np.add(vectors[block], (matrices[block] * starts[block, :, None]).sum(0), starts[block + 1])
        growth = 1.0
        for factor in np.abs(matrices).sum(1).reshape(blocks, -1).max(1).tolist():
            growth = max(1.0, growth * factor)
            if not growth <= LOST:
                return None
        first_sizes = list(np.abs(starts[:-1]).swapaxes(0, 1))
        absolute = [np.abs(row) for row in rows], [np.abs(one) for one in fixed]
        sizes, _ = self.sizes.run(*absolute, first_sizes, length, True)
        assert sizes is not None
        found = []
        for place in range(width):
            states = parts[place] + sum([units[place][:, unit] * starts[:-1, unit] for unit in range(width)])
            size = sizes[place].max(0)
            if not (np.isfinite(size) & (size <= LOST * np.abs(states).max(0))).all():
                return None
            stack = np.empty((turns, *shape), dtype)
            stack[rest:] = states.swapaxes(0, 1).reshape(-1, *shape)
            if first is not None:
                stack[:rest] = first[place]
            found.append(stack)
        return (found, starts[-1]) if np.isfinite(starts).all() else None


def blocks_of(turns: ArrayTurns, count: int) -> Blocks | None:
    """The blocks of turns that are linear in their carries, entry by entry; else None, and where blocks cost more."""
    carries = turns.carries
    shape = carries[0].shape
    if count < FEWEST or len(carries) > MOST_CARRIES or not shape or carries[0].size > WIDEST:
        return None
    if any(one.shape != shape or one.dtype != carries[0].dtype for one in carries) or carries[0].dtype.kind != "f":
        return None
    moving = {one.serial for one in carries}
    for op in turns.ops:
        if op.kind != ENTRY or op.out.shape != shape or op.function not in LINEAR:
            return None
        held = [arg.serial in moving for arg in op.args]
        if (op.function is np.multiply and all(held)) or (op.function is np.true_divide and held[1]):
            return None
        if any(held):
            moving.add(op.out.serial)
    return Blocks(turns, count) if all(one.serial in moving for one in turns.nexts) else None


def _in_blocks(turns: ArrayTurns, lead: tuple[int, ...], summands: bool = True, sizes: bool = False) -> ArrayTurns:
    """The same steps with blocks in front; without `summands` what does not come from a carry is not added.

    `sizes` are bounds of what is added up: operands are not negative, and nothing is subtracted.
    """
    steps = Steps(turns.carries[0].dtype)
    rank = len(turns.carries[0].shape)
    found: dict[int, Value] = {}
    moving = {one.serial for one in turns.carries}

    def leaves(values: Sequence[Value], front: tuple[int, ...]) -> list[Value]:
        for value in values:
            ones = (1,) * (rank - len(value.shape)) if front else ()
            found[value.serial] = steps.free((*front, *ones, *value.shape), value.dtype)
        return [found[value.serial] for value in values]

    carries = leaves(turns.carries, lead)
    columns = leaves(turns.columns, (*([1] * (len(lead) - 1)), lead[-1]))
    fixed = leaves(turns.fixed, ())
    for op in turns.ops:
        numbers = [abs(arg.number) if sizes and arg.number is not None else arg.number for arg in op.args]
        args = [found[arg.serial] if x is None else steps.number(x) for arg, x in zip(op.args, numbers, strict=True)]
        held = [arg.serial in moving for arg in op.args]
        if any(held):
            moving.add(op.out.serial)
        if not summands and any(held) and not all(held) and op.function in (np.add, np.subtract):
            alone = args[held.index(True)]
            made = steps.entry(np.negative, alone) if op.function is np.subtract and held[1] else alone
        elif sizes and op.function in (np.subtract, np.negative):
            made = steps.entry(np.add, *args) if op.function is np.subtract else args[0]
        else:
            made = steps.entry(op.function, *args)
        found[op.out.serial] = made
    return ArrayTurns(steps.ops, carries, columns, fixed, [found[value.serial] for value in turns.nexts])
