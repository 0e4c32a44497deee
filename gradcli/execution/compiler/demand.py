"""Entries that no output reads are not computed: steps are made again on the ranges of entries that are needed.

For each axis of each value one range is found: where entries may differ from zero by construction (those of a slice's
cotangent stand among zeros), and within it where some output reads them. A range has a first entry and an end for each
axis; `EMPTY` holds no entry. A product with an entry that is zero by construction is left out: it is 0 then, also
beside an infinity.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import ir
from gradcli.execution.compiler.ir import (
    BROADCAST,
    PERMUTE,
    SLICE,
    Access,
    Op,
    PlanValue,
    RecordedSteps,
    index_of,
    live,
)
from gradcli.execution.compiler.simplify import StepTable

if TYPE_CHECKING:
    from collections.abc import Callable

    Shape = tuple[int, ...]

Spans = tuple[tuple[int, int], ...]
Box = Spans | None
EMPTY: Box = None
ODD = {np.negative, np.square, np.absolute}  # zero at zero


def full(shape: Shape) -> Spans:
    """All entries."""
    return tuple([(0, n) for n in shape])


def within(box: Box, other: Box) -> Box:
    """What is in both."""
    if box is None or other is None:
        return EMPTY
    spans = tuple([(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, other, strict=True)])
    return spans if all(lo < hi for lo, hi in spans) else EMPTY


def around(box: Box, other: Box) -> Box:
    """The range that holds both."""
    if box is None or other is None:
        return other if box is None else box
    return tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(box, other, strict=True)])


def image(axes: Access, box: Box, shape: Shape) -> Box:
    """The range of a result of this shape for which a range of an operand is read."""
    if box is None:
        return EMPTY
    spans = [*full(shape)]
    for (lo, hi), axis in zip(box, axes, strict=True):
        if axis is not None:
            j, start, step, spread = axis
            first, end = -((start - lo * spread) // step), ((hi - 1) * spread - start) // step + 1
            spans[j] = (max(0, first), min(shape[j], end))
    return tuple(spans) if all(lo < hi for lo, hi in spans) else EMPTY


def preimage(axes: Access, box: Spans, shape: Shape) -> Box:
    """The range of an operand of this shape that is read for a range of the result."""
    spans = [*full(shape)]
    for i, axis in enumerate(axes):
        if axis is not None:
            j, start, step, spread = axis
            lo, hi = box[j]
            spans[i] = (max(0, (start + lo * step) // spread), min(shape[i], (start + (hi - 1) * step) // spread + 1))
    return tuple(spans) if all(lo < hi or not n for (lo, hi), n in zip(spans, shape, strict=True)) else EMPTY


def needed(op: Op, box: Spans) -> list[Box]:
    """What is read of each operand for a range of the result."""
    return [preimage(axes, box, arg.shape) for arg, axes in zip(op.args, op.accesses()[0], strict=True)]


def supported(op: Op, support: Callable[[PlanValue], Box]) -> Box:
    """Where the result may differ from zero, from where the operands may."""
    whole = full(op.out.shape)
    if not op.args or op.kind in (ir.CALL, ir.SCAN) or (op.kind == ir.REDUCE and op.function is not np.add):
        return whole
    boxes = [image(axes, support(arg), op.out.shape) for arg, axes in zip(op.args, op.accesses()[0], strict=True)]
    if op.kind == ir.PRODUCT or (op.kind == ir.ENTRY and op.function is np.multiply):
        return within(boxes[0], boxes[1])
    if op.kind in (ir.ADDED, ir.JOIN) or (op.kind == ir.ENTRY and op.function in (np.add, np.subtract)):
        return reduce(around, boxes)
    if op.kind == ir.CHOICE:
        return around(boxes[1], boxes[2])
    zero_at_zero = op.kind != ir.ENTRY or op.function is np.true_divide or op.function in ODD
    return boxes[0] if zero_at_zero else whole


WORTH = 1 << 12  # entries that are saved, at least
SHARE = 2  # how many times fewer they are, at least


def restricted(recording: RecordedSteps, float_type: Any) -> RecordedSteps:
    """The recording on ranges where that saves half of all entries; else the recording itself."""
    if max([op.out.size for op in recording.ops], default=0) < WORTH:
        return recording  # looking at many short steps costs more than it saves
    boxes = _boxes(recording)
    before = sum([op.out.size for op in recording.ops])
    after = sum([_count(boxes.get(op.out.serial, EMPTY)) for op in recording.ops])
    if before - after < WORTH or SHARE * after > before:
        return recording
    return _Cut(recording, boxes, StepTable(float_type)).restrict()


def _count(box: Box) -> int:
    return prod([hi - lo for lo, hi in box]) if box is not None else 0


def _boxes(recording: RecordedSteps) -> dict[int, Box]:
    """The range of each value that is computed; none for those that are zero, or that nothing reads."""
    support: dict[int, Box] = {}  # of values that may not differ from zero everywhere
    for op in recording.ops:
        zeros = op.kind == ir.PLACE or any(arg.serial in support or ir.is_zero(arg) for arg in op.args)
        box = supported(op, lambda value: _support_of(support, value)) if zeros else None
        if zeros and box != full(op.out.shape):
            support[op.out.serial] = box
    wanted: dict[int, Box] = {}

    def want(value: PlanValue, box: Box) -> None:
        wanted[value.serial] = around(wanted.get(value.serial, EMPTY), box)

    for value in recording.outputs:
        want(value, full(value.shape))
    boxes: dict[int, Box] = {}
    for op in reversed(recording.ops):
        all_of_it, box = full(op.out.shape), wanted.get(op.out.serial, EMPTY)
        if op.out.serial in support:
            box = within(box, support[op.out.serial])
        if box is None or not op.out.size:
            continue
        if box != all_of_it:
            box = tuple([n if j in op.accesses()[1] else box[j] for j, n in enumerate(all_of_it)])
        boxes[op.out.serial] = box
        narrows = box != all_of_it or op.function == SLICE
        needs = needed(op, box) if narrows else [full(arg.shape) for arg in op.args]
        for arg, need in zip(op.args, needs, strict=True):
            want(arg, need)
    return boxes


def _support_of(support: dict[int, Box], value: PlanValue) -> Box:
    """Where a value may differ from zero."""
    if ir.is_zero(value):
        return EMPTY
    return support.get(value.serial, full(value.shape))


class _Cut:
    """The steps while they are made again on ranges."""

    def __init__(self, recording: RecordedSteps, boxes: dict[int, Box], steps: StepTable) -> None:
        self.recording = recording
        self.boxes = boxes
        self.steps = steps
        self.known: dict[int, PlanValue] = {}

    def restrict(self) -> RecordedSteps:
        steps, known = self.steps, self.known
        inputs = []
        for node, value in self.recording.inputs:
            steps.node = node
            fresh = known[value.serial] = steps.leaf(node, value.dtype)
            inputs.append((node, fresh))
        for op in self.recording.ops:
            box = self.boxes.get(op.out.serial, EMPTY)
            if box is not None:
                steps.node = op.node
                known[op.out.serial] = self._step(op, box)
        outputs = [self.part(value, full(value.shape)) for value in self.recording.outputs]
        return RecordedSteps(live(steps.ops, outputs), inputs, outputs)

    def part(self, value: PlanValue, box: Box) -> PlanValue:
        """The entries of a value in a range: some of those that are there, or with zeros around them."""
        steps = self.steps
        assert box is not None
        shape = tuple([hi - lo for lo, hi in box])
        if value.number is not None:
            return steps.number(value.number, shape)
        own = self.boxes.get(value.serial, EMPTY)
        if value.array is not None or value.leaf is not None:
            own = full(value.shape)
            if value.serial not in self.known:
                self.known[value.serial] = steps.array(value.array)
        common = within(own, box)
        if own is None or common is None:
            return steps.number(value.dtype.type(0), shape)
        entries = self.known[value.serial]
        if common != own:
            key = tuple([(SLICE, lo - a, hi - a, 1) for (lo, hi), (a, _) in zip(common, own, strict=True)])
            entries = steps.view(SLICE, entries, key, tuple([hi - lo for lo, hi in common]))
        if common == box:
            return entries
        index = tuple([slice(lo - a, hi - a, 1) for (lo, hi), (a, _) in zip(common, box, strict=True)])
        return steps.place(entries, shape, index)

    def _step(self, op: Op, box: Spans) -> PlanValue:
        """A range of what a step gives."""
        special = {
            ir.REDUCE: self._reduce, ir.PLACE: self._place, ir.ADDED: self._added, ir.JOIN: self._join,
            ir.VIEW: self._view,
        }  # fmt: skip
        if op.kind in special:
            return special[op.kind](op, box)
        parts = [self.part(arg, need) for arg, need in zip(op.args, needed(op, box), strict=True)]
        if op.kind == ir.ENTRY:
            return self._spread(self.steps.entry(op.function, *parts), box)
        if op.kind == ir.CHOICE:
            return self._spread(self.steps.choice(*parts), box)
        if op.kind == ir.CAST:
            return self.steps.cast(parts[0], op.params)
        if op.kind == ir.PRODUCT:
            return self.steps.product(*parts)
        shape = tuple([hi - lo for lo, hi in box])
        return self.steps.make(op.kind, op.function, tuple(parts), op.params, shape, op.out.dtype)

    def _spread(self, value: PlanValue, box: Spans) -> PlanValue:
        """The value in the shape of its range, should a rule have found that all entries are equal."""
        shape = tuple([hi - lo for lo, hi in box])
        if value.shape == shape:
            return value
        return self.steps.view(BROADCAST, self.steps.raised(value, len(shape)), shape, shape)

    def _reduce(self, op: Op, box: Spans) -> PlanValue:
        (need,) = needed(op, box)
        own = self.boxes.get(op.args[0].serial)
        if op.function is np.add and own is not None and need is not None:  # the zeros around need not be added
            need = tuple([b if i in op.params else a for i, (a, b) in enumerate(zip(need, own, strict=True))])
        return self.steps.reduce(op.function, self.part(op.args[0], need), op.params)

    def _place(self, op: Op, box: Spans) -> PlanValue:
        (need,) = needed(op, box)
        if need is None:
            return self.steps.number(op.out.dtype.type(0), tuple([hi - lo for lo, hi in box]))
        return self._among(op, box, 0, need)

    def _added(self, op: Op, box: Spans) -> PlanValue:
        first, need = needed(op, box)
        total = self.part(op.args[0], first)
        return total if need is None else self.steps.entry(np.add, total, self._among(op, box, 1, need))

    def _among(self, op: Op, box: Spans, position: int, need: Spans) -> PlanValue:
        """What a step places, in the part of the result that a range shows."""
        entries = self.part(op.args[position], need)
        index = list(index_of(op.params[1]))
        for (lo, hi), axis in zip(need, op.accesses()[0][position], strict=True):
            if axis is not None and axis.spread == 1:
                shift = axis.start + box[axis.axis][0]
                index[axis.axis] = slice(lo - shift, hi - shift, 1)
        shape = tuple([hi - lo for lo, hi in box])
        if all((part.start, part.stop, part.step) == (0, n, 1) for part, n in zip(index, shape, strict=True)):
            return entries
        return self.steps.place(entries, shape, tuple(index))

    def _join(self, op: Op, box: Spans) -> PlanValue:
        parts = [self.part(arg, need) for arg, need in zip(op.args, needed(op, box), strict=True) if need is not EMPTY]
        return parts[0] if len(parts) == 1 else self.steps.join(parts, op.params)

    def _view(self, op: Op, box: Spans) -> PlanValue:
        (need,) = needed(op, box)
        x = self.part(op.args[0], need)
        shape = tuple([hi - lo for lo, hi in box])
        if op.function == SLICE:
            rows = zip(op.params, op.accesses()[0][0], x.shape, strict=True)
            key = tuple([part if axis is None else (SLICE, 0, n, axis.step) for part, axis, n in rows])
            return x if x.shape == shape and not op.accesses()[1] else self.steps.view(SLICE, x, key, shape)
        return self.steps.view(op.function, x, op.params if op.function == PERMUTE else shape, shape)
