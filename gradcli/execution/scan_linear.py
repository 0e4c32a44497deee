"""Linear recurrences in few calls: each turn multiplies the carries by a matrix for each entry, and adds a vector.

Reverse mode makes such loops. The turns are cut into blocks, all of which run side by side: once from zeros, and once
from each unit vector without what is added. Then the states before the blocks follow from block to block, and those of
all turns from these (R. Brent, H. Kung, A regular layout for parallel adders, 1982; G. Blelloch, Prefix sums and their
applications, 1990). Where what is added up is much larger than what comes of it, or a product of factors leaves the
range of normal numbers, the turns run one by one.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.steps import Steps
from gradcli.execution.plans.values import ENTRY
from gradcli.execution.scan_turns import ArrayTurns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.values import Value

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
