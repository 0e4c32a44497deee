"""Groups the steps of a recording into fused kernels and library calls, in order.

A step entry by entry is a line of every kernel that needs it. Memory is given to outputs, to what a library reads, to
sums, and to what would be computed too often. A level is what may run at once: it needs only what the
levels below it have left in memory. Values of one level that run over the same entries are one kernel, sums among them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.compiler.ir import ENTRY, PERMUTE, REDUCE, SLICE, VIEW, base
from gradcli.execution.cuda import emit
from gradcli.execution.cuda.emit import PAIR, is_written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue, RecordedSteps

REDUCTIONS = (np.add, np.maximum, np.minimum)
MOST_LINES = 400  # of one value in a kernel
MOST_IN_GROUP = 8  # values that one kernel computes
REPEATED, COSTLY, MOST_WORK = 8, 12, 1 << 22  # times, cost of an entry, cost of all: from there on memory pays
NEAR = 8  # lengths that differ by less than one in so many run together


class Runs(NamedTuple):
    """How a reduction goes through its operand: lengths of axes that are kept and reduced, in turn."""

    lengths: tuple[int, ...]
    reduced: tuple[bool, ...]

    @property
    def rows(self) -> int:
        return prod([n for n, gone in zip(self.lengths, self.reduced, strict=True) if not gone])

    @property
    def columns(self) -> int:
        return prod([n for n, gone in zip(self.lengths, self.reduced, strict=True) if gone])


class FusionGroup(NamedTuple):
    """Values that one kernel leaves in memory, and reductions that it takes over the same entries."""

    level: int
    entries: int
    runs: Runs | None
    values: tuple[PlanValue, ...]
    sums: tuple[Op, ...]


class Groups:
    """What is stored at which level; `work` holds groups and steps for the library, in order."""

    def __init__(self, recording: RecordedSteps, dtype: Any) -> None:
        self.dtype = dtype  # of the program's numbers
        self.ops = [op for op in recording.ops if not op.out.constant]
        self.outputs = recording.outputs
        self.levels: dict[int, int] = {}
        self.stored: dict[int, PlanValue] = {}
        self.cut: set[int] = set()
        angles = [{op.args[0].serial for op in self.ops if op.kind == ENTRY and op.function is ufunc} for ufunc in PAIR]
        self.pairs = angles[0] & angles[1]
        self._mark()
        self._cut()
        self._level()
        self.work = self._grouped()

    def loaded(self, value: PlanValue, level: int) -> bool:
        """Whether a kernel of some level finds a value in memory."""
        if value.op is None or (value.constant and value.op.kind != VIEW):
            return True
        return value.serial in self.stored and (not is_line(value.op) or self.levels[value.serial] < level)

    # --- what is stored ---------------------------------------------------------------------------------------

    def _mark(self) -> None:
        """Memory for outputs, for what the library reads and makes, and for reductions."""
        for value in self.outputs:
            self._store(value)
        for op in self.ops:
            if not is_line(op):
                self.stored[op.out.serial] = op.out
                if not is_sum(op):
                    for arg in op.args:
                        self._store(arg)

    def _store(self, value: PlanValue) -> None:
        value = base(value)
        if value.op is not None and not value.constant:
            self.stored[value.serial] = value

    def _cut(self) -> None:
        """Memory for what would take many lines, or much work many times over."""
        lines: dict[int, frozenset[int]] = {}  # the steps of a value at one place
        beside: dict[int, int] = {}  # lines for entries at other places
        cost: dict[int, int] = {}
        for op in self.ops:
            if not is_line(op) or op.kind == VIEW:
                continue
            mine, others, total = {op.out.serial}, 0, costs(op)
            for arg in op.args:
                source, moved = behind(arg, op)
                if source.serial in self.cut or source.serial not in lines:
                    continue
                repeated = op.out.size >= REPEATED * source.size
                if repeated and cost[source.serial] > COSTLY and op.out.size * cost[source.serial] > MOST_WORK:
                    self._cut_at(source)
                    continue
                total += cost[source.serial]
                if moved:
                    others += len(lines[source.serial]) + beside[source.serial]
                else:
                    mine |= lines[source.serial]
                    others = max(others, beside[source.serial])
            if len(mine) + others > MOST_LINES:
                mine, others, total = {op.out.serial}, 0, costs(op)
                for arg in op.args:
                    source, _ = behind(arg, op)
                    if source.serial in lines and len(lines[source.serial]) + beside[source.serial] > 1:
                        self._cut_at(source)
            lines[op.out.serial], beside[op.out.serial], cost[op.out.serial] = frozenset(mine), others, total

    def _cut_at(self, value: PlanValue) -> None:
        self.cut.add(value.serial)
        self.stored[value.serial] = value

    # --- when ------------------------------------------------------------------------------------------------------

    def _level(self) -> None:
        for op in self.ops:
            level = 0
            for arg in op.args:
                if arg.serial in self.levels:
                    level = max(level, self.levels[arg.serial] + (arg.serial in self.cut))
            self.levels[op.out.serial] = level + (not is_line(op))

    def _grouped(self) -> list[FusionGroup | Op]:
        values: dict[int, list[PlanValue]] = {}
        sums: dict[int, list[Op]] = {}
        calls: dict[int, list[Op]] = {}
        for op in self.ops:
            level = self.levels[op.out.serial]
            if is_sum(op):
                sums.setdefault(level - 1, []).append(op)
            elif not is_line(op):
                calls.setdefault(level - 1, []).append(op)
            elif op.out.serial in self.stored:
                values.setdefault(level, []).append(op.out)
        work: list[FusionGroup | Op] = []
        for level in sorted({*values, *sums, *calls}):
            work += groups_of(level, values.get(level, []), sums.get(level, []))
            work += calls.get(level, [])
        return work


def groups_of(level: int, values: Sequence[PlanValue], sums: Sequence[Op]) -> list[FusionGroup]:
    """Reductions over the same axes together, with values that have as many entries; other values by their number."""
    by_runs: dict[Runs, list[Op]] = {}
    for op in sums:
        by_runs.setdefault(runs_of(op), []).append(op)
    rest = sorted(values, key=lambda value: -value.size)
    groups = []
    for runs, ops in sorted(by_runs.items(), key=lambda item: -prod(item[0].lengths)):
        for first in range(0, len(ops), MOST_IN_GROUP):
            count = prod(runs.lengths)
            whole = runs.reduced == (True,)
            mine = [value for value in rest if near(count, value.size, whole)][:MOST_IN_GROUP]
            rest = [value for value in rest if value not in mine]
            count = max([count, *[value.size for value in mine]])
            groups.append(FusionGroup(level, count, runs, tuple(mine), tuple(ops[first : first + MOST_IN_GROUP])))
    while rest:
        count = rest[0].size
        mine = [value for value in rest if near(count, value.size, loose=True)][:MOST_IN_GROUP]
        rest = [value for value in rest if value not in mine]
        groups.append(FusionGroup(level, count, None, tuple(mine), ()))
    return groups


def near(count: int, size: int, loose: bool) -> bool:
    """Whether as many entries can run together with others: equal, or nearly where that does no harm."""
    return size == count or (loose and min(count, size) > NEAR and abs(count - size) * NEAR < count)


def runs_of(op: Op) -> Runs:
    """The axes of a reduction, those of length 1 left out and neighbours joined."""
    lengths: list[int] = []
    reduced: list[bool] = []
    for axis, n in enumerate(op.args[0].shape):
        if n > 1:
            gone = axis in op.params
            if reduced and reduced[-1] == gone:
                lengths[-1] *= n
            else:
                lengths.append(n)
                reduced.append(gone)
    if not lengths:
        return Runs((1,), (True,))
    return Runs(tuple(lengths), tuple(reduced))


def is_sum(op: Op) -> bool:
    """Whether a step is a reduction that a kernel takes."""
    if op.kind != REDUCE or op.function not in REDUCTIONS:
        return False
    return bool(op.out.dtype.kind == "f" and op.args[0].dtype == op.out.dtype)


def is_line(op: Op) -> bool:
    """Whether a step makes entries of entries."""
    return op.kind == VIEW or is_written(op)


def behind(value: PlanValue, reader: Op) -> tuple[PlanValue, bool]:
    """The value behind views, and whether a reader takes its entries from other places than its own."""
    moved = reader.kind not in ("entry", "choice", "cast", "copy", "view") or value.size != reader.out.size
    while value.op is not None and value.op.kind == VIEW:
        moved = moved or value.op.function in (SLICE, PERMUTE) or value.op.args[0].size != value.size
        value = value.op.args[0]
    return value, moved


def costs(op: Op) -> int:
    """The cost of an entry, an addition being 1."""
    if op.function in (np.divide, np.sqrt, np.reciprocal):
        return emit.MEDIUM
    return emit.LIGHT if op.kind != ENTRY or op.function in emit.CHEAP else emit.HEAVY
