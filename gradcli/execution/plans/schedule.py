"""Schedules a recording: steps on whole arrays, and loops over blocks of an axis.

A loop takes every step that can be cut along one class of axes; sums along that axis are complete when the loop ends,
so steps that read them come one level later. A view has no place in the schedule: the step that reads it makes it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.axes import Classes, follows, sums
from gradcli.execution.plans.marks import simplified, tied
from gradcli.execution.plans.sincos import SHORTEST
from gradcli.execution.plans.values import CALL, ENTRY, PRODUCT, VIEW, Op, Value, base

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.execution.plans.recording import Recording

WORTH = 1 << 19  # bytes that the steps of a loop write, below which blocks gain nothing
MOST_HELD = 1 << 28  # bytes of constants that are computed once
ENTRIES = 1 << 15  # entries of the largest array in a block, at least
MOST_ENTRIES = 1 << 17  # at most: in short blocks threads wait for each other
PIECES = 4  # blocks that an array is cut into before they grow
FEWEST_ROWS = 64  # of a matrix in a block


class Loop:
    """Steps that are taken block by block: `at` says which axis of a value is cut, `count` is its length."""

    __slots__ = ("at", "code", "count", "ops", "pairs", "rows", "stored", "summed")

    def __init__(self, at: dict[int, int], count: int) -> None:
        self.at = at
        self.count = count
        self.ops: list[Op] = []
        self.summed: list[Op] = []  # those whose blocks give parts of the result
        self.stored: list[Value] = []  # what others read when the loop has ended
        self.rows = count
        self.pairs: dict[int, Op] = {}  # the steps that are taken together with the one before them, by its result
        self.code: Any = None  # machine code (`emit_numba`) takes all steps of a block but its sums

    def shape(self, value: Value, rows: int) -> tuple[int, ...]:
        """The shape of a block of a value."""
        axis = self.at.get(value.serial)
        if axis is None:
            return value.shape
        return (*value.shape[:axis], rows, *value.shape[axis + 1 :])


class Schedule:
    """`events` are steps on whole arrays and loops, in order; `constants` are the steps that are taken only once."""

    __slots__ = ("constants", "events", "inputs", "outputs")

    def __init__(self, recording: Recording, points: int = 0) -> None:
        """`points`: how many there are, where the first axis of all arrays counts them."""
        _unhoisted(recording.ops)
        ops = fused([op for op in recording.ops if not op.out.constant], recording.outputs)
        ops = simplified(ops, recording.outputs, _serials(recording))
        self.constants = [op for op in recording.ops if op.out.constant]
        self.inputs = recording.inputs
        self.outputs = recording.outputs
        self.events: list[Op | Loop] = (
            _point_events(ops, recording.outputs, points) if points else _events(ops, recording.outputs)
        )
        for event in self.events:
            if isinstance(event, Loop) and (points or event.count >= SHORTEST):
                pair_sines(event)


def pair_sines(loop: Loop) -> None:
    """Let a sine and a cosine of one line of angles be computed together; they follow each other then."""
    angles: dict[int, Op] = {}
    for op in [*loop.ops]:
        if op.kind == ENTRY and op.function in (np.sin, np.cos) and op.out.size == loop.count and op.out.dtype == "f8":
            first = angles.setdefault(op.args[0].serial, op)
            if first.function is not op.function:
                loop.pairs[first.out.serial] = op
                loop.ops.remove(op)
                loop.ops.insert(loop.ops.index(first) + 1, op)


def _serials(recording: Recording) -> Iterator[int]:
    """Numbers that no value has."""
    values = [*recording.outputs, *[value for _, value in recording.inputs]]
    values += [value for op in recording.ops for value in (op.out, *op.args)]
    return itertools.count(1 + max([value.serial for value in values], default=0))


def _unhoisted(ops: Sequence[Op]) -> None:
    """Constants that would fill the memory are computed in each run after all."""
    held = {
        arg.serial: arg.nbytes
        for op in ops
        if not op.out.constant
        for arg in op.args
        if arg.constant and arg.op is not None
    }
    if sum(held.values()) > MOST_HELD:
        for op in ops:
            op.out.constant = False


def fused(ops: Sequence[Op], outputs: Sequence[Value]) -> list[Op]:
    """The same steps; ties are found in one step."""
    uses: dict[int, int] = {value.serial: 1 for value in outputs}
    for op in ops:
        for arg in op.args:
            uses[arg.serial] = uses.get(arg.serial, 0) + 1
    found: list[Op] = []
    gone: set[int] = set()
    for op in ops:
        one = tied(op, uses)
        if one is not None:
            gone.update([arg.serial for arg in op.args])
            op = one
        found.append(op)
    return [op for op in found if op.out.serial not in gone]


def _events(ops: list[Op], outputs: Sequence[Value]) -> list[Op | Loop]:
    labels, classes = _labels(ops)
    if not labels:
        return [op for op in ops if op.kind != VIEW]
    levels: dict[int, int] = {}
    whole: set[int] = {base(value).serial for value in outputs}
    loops: dict[tuple[int, int], Loop] = {}
    alone: dict[int, list[Op]] = {}
    made_in: dict[int, Loop] = {}
    deepest = 0
    for op in ops:
        if op.kind == VIEW:
            continue
        label = labels.get(op.out.serial)
        at = classes[label][0] if label is not None else {}
        level = 0
        for arg in op.args:
            source, local = root(arg, at)
            if source.op is None or source.constant:
                continue
            before = labels.get(source.serial)
            own = levels[source.serial]
            if before is None or (before == label and local):
                level = max(level, own)
            else:
                level = max(level, own + 1)
        levels[op.out.serial] = level
        deepest = max(deepest, level)
        if label is None:
            alone.setdefault(level, []).append(op)
        else:
            loop = loops.get((level, label))
            if loop is None:
                loop = loops[level, label] = Loop(*classes[label])
            loop.ops.append(op)
            made_in[op.out.serial] = loop
            if sums(op, loop.at):
                loop.summed.append(op)
    for op in ops:
        loop = made_in.get(op.out.serial) if op.kind != VIEW else None
        for arg in op.args if op.kind != VIEW else ():
            source, local = root(arg, loop.at if loop is not None else {})
            if made_in.get(source.serial) is not loop or not local:
                whole.add(source.serial)
    events: list[Op | Loop] = []
    for level in range(deepest + 1):
        events += alone.get(level, [])
        for (own, _), loop in loops.items():
            if own == level:
                loop.stored = [op.out for op in loop.ops if op.out.serial in whole and op.out.serial in loop.at]
                loop.rows = _rows(loop)
                if _pays(loop):
                    events.append(loop)
                else:
                    events += loop.ops
    return events


def _point_events(ops: list[Op], outputs: Sequence[Value], count: int) -> list[Op | Loop]:
    """Steps on numbers that all points share, then one loop over the points."""
    loop = Loop({value.serial: 0 for op in ops for value in (op.out, *op.args) if value.shape[:1] == (count,)}, count)
    loop.ops = [op for op in ops if op.out.serial in loop.at and op.kind != VIEW]
    whole = {base(value).serial for value in outputs}
    loop.stored = [op.out for op in loop.ops if op.out.serial in whole]
    loop.rows = _rows(loop)
    alone: list[Op | Loop] = [op for op in ops if op.out.serial not in loop.at and op.kind != VIEW]
    return [*alone, loop] if loop.ops else alone


def _pays(loop: Loop) -> bool:
    """Whether blocks gain something: several steps that share a cache, or one long one for several threads."""
    if len(loop.ops) > 1:
        return loop.rows < loop.count
    op = loop.ops[0]
    return op.kind != PRODUCT and max([op.out.size, *[arg.size for arg in op.args]]) >= 8 * ENTRIES


def root(value: Value, at: dict[int, int]) -> tuple[Value, bool]:
    """What a view shows, and whether its blocks show blocks of it (or all of it, the same in each block)."""
    local = True
    inside = value.serial in at
    while value.op is not None and value.op.kind == VIEW:
        below = value.op.args[0]
        if (below.serial in at) != inside:
            local = local and inside and value.op.function == "broadcast"
            inside = below.serial in at
        elif inside and not follows(value.op, at):
            local = False
        value = below
    return value, local and inside


def _labels(ops: list[Op]) -> tuple[dict[int, int], list[tuple[dict[int, int], int]]]:
    """Which class of axes each step is cut along, if any: the heaviest first."""
    labels: dict[int, int] = {}
    chosen: list[tuple[dict[int, int], int]] = []
    heavy = [
        op
        for op in ops
        if op.kind != VIEW and op.kind != CALL and max([op.out.nbytes, *[a.nbytes for a in op.args]]) >= WORTH // 8
    ]
    if len(heavy) < 2:
        return labels, chosen
    shapes = {value.serial: value for op in ops for value in (op.out, *op.args)}
    candidates = []
    for at in Classes(ops).values:
        serial, axis = next(iter(at.items()))
        count = shapes[serial].shape[axis]
        if count < 2 * FEWEST_ROWS or max(shapes[serial].size for serial in at) < 2 * ENTRIES:
            continue
        mine = [op for op in ops if op.kind != VIEW and follows(op, at)]
        weight = sum(max([op.out.nbytes, *[a.nbytes for a in op.args if a.serial in at]]) for op in mine)
        if len(mine) > 1 and weight >= WORTH:
            candidates.append((weight, at, count, mine))
    candidates.sort(key=lambda one: -one[0])
    for _, at, count, mine in candidates:
        free = [op for op in mine if op.out.serial not in labels]
        if len(free) > 1 and sum(max([op.out.nbytes, *[a.nbytes for a in op.args]]) for op in free) >= WORTH:
            for op in free:
                labels[op.out.serial] = len(chosen)
            chosen.append((at, count))
    return labels, chosen


def _rows(loop: Loop) -> int:
    """The length of a block: what one step makes of it stays in cache; all blocks are about equal."""
    widest = 1
    for op in loop.ops:
        for value in (op.out, *op.args):
            if value.serial in loop.at:
                widest = max(widest, value.size // loop.count)
    entries = max(ENTRIES, min(MOST_ENTRIES, widest * loop.count // PIECES))
    rows = max(1, entries // widest)
    if any(op.kind == PRODUCT for op in loop.ops):
        rows = max(rows, FEWEST_ROWS)
    blocks = -(-loop.count // rows)
    return -(-loop.count // blocks)
