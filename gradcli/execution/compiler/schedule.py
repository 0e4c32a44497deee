"""The order of work: steps on whole arrays, and loops over blocks of an axis.

Two axes belong to one class where a step reads entry i of one to make entry i of the other, or multiplies entry i of
one by entry i of the other and adds up: along such a class everything can be computed block by block. A loop takes
every step that can be cut along one class; what adds up along it is known when the loop ends, so steps that read a sum
of blocks come one level later. A view is no work of its own: each reader makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.execution.compiler.ir import ADDED, CALL, PRODUCT, REDUCE, VIEW, AxisMap, Op, PlanValue, base
from gradcli.execution.compiler.simplify import simplified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.compiler.ir import RecordedSteps

    Axis = tuple[int, int]  # the serial of a value, an axis counted from the front

SHARE = 16  # of the largest array, from which an array is large
PATIENCE = 64  # how many values are looked at for each axis, to see whether classes may be joined
WORTH = 1 << 19  # bytes that the steps of a loop write, or read of what others wrote, below which blocks gain nothing
ENTRIES = 1 << 15  # entries of the largest array in a block, at least; where all are lines, exactly
MOST_ENTRIES = 1 << 17  # at most, so that there are enough blocks for all threads
PIECES = 4  # blocks that an array is cut into before they grow
FEWEST_ROWS = 64  # of a matrix in a block


class Classes:
    """The classes of axes of a list of steps: each maps the serials of values to the axis that it cuts.

    No array has two axes of one class. Where a short step would make it so, such as the sum of a matrix's row sums and
    column sums, it links nothing, and is taken on whole arrays. Where a large one does, its axes are not cut.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self._of: dict[Axis, dict[int, int]] = {}
        links = []
        for op in ops:
            if op.kind == CALL:
                continue
            along, summed = op.links()
            pairs = [((op.args[p].serial, axis), (op.out.serial, target)) for p, axis, target in along]
            pairs += [((op.args[p].serial, axis), (op.args[q].serial, other)) for p, axis, q, other in summed]
            for place in [place for pair in pairs for place in pair]:
                self._of.setdefault(place, {place[0]: place[1]})
            links.append((max([op.out.size, *[arg.size for arg in op.args]]), pairs))
        self._left = PATIENCE * len(self._of)
        links.sort(key=lambda link: -link[0])
        mixed: list[Axis] = []
        for size, pairs in links:
            for pair in pairs:
                if not self._join(*pair) and size * SHARE >= links[0][0]:
                    mixed += pair
        gone = {id(self._of[place]) for place in mixed}
        self.values = list({id(members): members for members in self._of.values() if id(members) not in gone}.values())

    def _join(self, source: Axis, target: Axis) -> bool:
        """Make the classes of two axes one; False if an array would have two axes in it."""
        first, second = self._of[source], self._of[target]
        if first is second:
            return True
        if len(first) < len(second):
            first, second = second, first
        self._left -= len(second)
        if self._left < 0 or any(first.get(serial, axis) != axis for serial, axis in second.items()):
            return False
        first.update(second)
        for place in second.items():
            self._of[place] = first
        return True


def follows(op: Op, at: dict[int, int]) -> bool:
    """Whether a step can be taken block by block along a class of axes, which cuts value `serial` at `at[serial]`."""
    if op.kind == CALL or not (op.out.serial in at or any(arg.serial in at for arg in op.args)):
        return False
    along, summed = op.links()
    linked = {(position, axis) for position, axis, _ in along}
    linked.update((first, axis) for first, axis, _, _ in summed)
    linked.update((second, axis) for _, _, second, axis in summed)
    for position, arg in enumerate(op.args):
        axis = at.get(arg.serial)
        if axis is not None and (position, axis) not in linked:
            return False
    axis = at.get(op.out.serial)
    for position, own, target in along:  # not every step has linked its axes
        if (at.get(op.args[position].serial) == own) != (axis == target):
            return False
    if any((at.get(op.args[p].serial) == own) != (at.get(op.args[q].serial) == other) for p, own, q, other in summed):
        return False
    if axis is not None and op.kind == ADDED and not _filled(op, axis):
        return False
    if axis is not None and not any(target == axis and op.args[p].serial in at for p, _, target in along):
        return op.kind == VIEW and op.function == "broadcast" and op.args[0].shape[axis] == 1
    return True


def _filled(op: Op, axis: int) -> bool:
    """Whether what is added to a part, a number as well, is added along all of an axis."""
    return op.accesses()[0][1][axis] == AxisMap(axis) and op.args[1].shape[axis] == op.out.shape[axis]


def sums(op: Op, at: dict[int, int]) -> bool:
    """Whether a step that follows adds up along the class, so that its blocks give parts of the result."""
    return op.out.serial not in at and op.kind in (REDUCE, PRODUCT)


# --- loops ------------------------------------------------------------------------------------------------------


class BlockLoop:
    """Steps that are taken block by block: `at` maps serials of values to the axis that is cut, of length `count`."""

    __slots__ = ("at", "code", "count", "ops", "rows", "stored", "summed")

    def __init__(self, at: dict[int, int], count: int) -> None:
        self.at = at
        self.count = count
        self.ops: list[Op] = []
        self.summed: list[Op] = []  # those whose blocks give parts of the result
        self.stored: list[PlanValue] = []  # what others read when the loop has ended
        self.rows = count
        self.code: Any = None  # machine code (`emit_numba`) takes all steps of a block but its sums

    def shape(self, value: PlanValue, rows: int) -> tuple[int, ...]:
        """The shape of a block of a value."""
        axis = self.at.get(value.serial)
        if axis is None:
            return value.shape
        return (*value.shape[:axis], rows, *value.shape[axis + 1 :])


def steps_of(event: Op | BlockLoop) -> Sequence[Op]:
    """The steps of a loop, or the one step that an event is."""
    return event.ops if isinstance(event, BlockLoop) else (event,)


class Schedule:
    """`events` are steps on whole arrays and loops, in order; `constants` are the steps that are taken only once."""

    __slots__ = ("constants", "events", "inputs", "outputs")

    def __init__(self, recording: RecordedSteps) -> None:
        moving = [op for op in recording.ops if not op.out.constant]
        ops = simplified(moving, recording.outputs)
        self.constants = [op for op in recording.ops if op.out.constant]
        self.inputs = recording.inputs
        self.outputs = recording.outputs
        self.events: list[Op | BlockLoop] = _events(ops, recording.outputs)


def _events(ops: list[Op], outputs: Sequence[PlanValue]) -> list[Op | BlockLoop]:
    labels, classes = _labels(ops)
    if not labels:
        return [op for op in ops if op.kind != VIEW]
    levels: dict[int, int] = {}
    whole: set[int] = {base(value).serial for value in outputs}
    loops: dict[tuple[int, int], BlockLoop] = {}
    alone: dict[int, list[Op]] = {}
    made_in: dict[int, BlockLoop] = {}
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
                loop = loops[level, label] = BlockLoop(*classes[label])
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
    events: list[Op | BlockLoop] = []
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


def _pays(loop: BlockLoop) -> bool:
    """Whether blocks gain something: several steps that share a cache, or one long one for several threads."""
    if len(loop.ops) > 1:
        return loop.rows < loop.count
    op = loop.ops[0]
    return op.kind != PRODUCT and max([op.out.size, *[arg.size for arg in op.args]]) >= 8 * ENTRIES


def root(value: PlanValue, at: dict[int, int]) -> tuple[PlanValue, bool]:
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
        weight = sum([_written(op) for op in mine])
        if len(mine) > 1 and weight >= WORTH:
            candidates.append((weight, at, count, mine))
    candidates.sort(key=lambda candidate: -candidate[0])
    for _, at, count, mine in candidates:
        free = [op for op in mine if op.out.serial not in labels]
        if len(free) > 1 and sum([_written(op) for op in free]) >= WORTH:
            for op in free:
                labels[op.out.serial] = len(chosen)
            chosen.append((at, count))
    return labels, chosen


def _written(op: Op) -> int:
    """The bytes of the largest array that a step computes or that was computed for it: inputs are in no cache yet."""
    return max([op.out.nbytes, *[x.nbytes for x in op.args if base(x).op is not None and not x.constant]])


def _rows(loop: BlockLoop) -> int:
    """The length of a block: what one step makes of it stays in cache; all blocks are about equal."""
    widest = 1
    for op in loop.ops:
        for value in (op.out, *op.args):
            if value.serial in loop.at:
                widest = max(widest, value.size // loop.count)
    entries = max(ENTRIES, min(MOST_ENTRIES, widest * loop.count // PIECES)) if widest > 1 else ENTRIES
    rows = max(1, entries // widest)
    if any(op.kind == PRODUCT for op in loop.ops):
        rows = max(rows, FEWEST_ROWS)
    blocks = -(-loop.count // rows)
    return -(-loop.count // blocks)
