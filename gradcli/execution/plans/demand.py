"""Entries that no output reads are not computed: steps are made again on the ranges of entries that are needed.

For each axis of each value one range is found: where entries may differ from zero by construction (those of a slice's
cotangent stand among zeros), and within it where some output reads them. A range has a first entry and an end for each
axis; `EMPTY` holds no entry. A product with an entry that is zero by construction is left out: it is 0 then, also
beside an infinity.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.ir import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    COPY,
    ENTRY,
    JOIN,
    PLACE,
    PRODUCT,
    REDUCE,
    VIEW,
    Op,
    Recording,
    Value,
    index_of,
    live,
)
from gradcli.execution.plans.simplify import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Shape = tuple[int, ...]

Spans = tuple[tuple[int, int], ...]
Box = Spans | None
EMPTY: Box = None
ODD = {np.negative, np.square, np.absolute}  # zero at zero


def full(shape: Shape) -> Spans:
    """All entries."""
    return tuple([(0, n) for n in shape])


def within(one: Box, other: Box) -> Box:
    """What is in both."""
    if one is None or other is None:
        return EMPTY
    found = tuple([(max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)])
    return found if all(lo < hi for lo, hi in found) else EMPTY


def around(one: Box, other: Box) -> Box:
    """The range that holds both."""
    if one is None or other is None:
        return other if one is None else one
    return tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)])


def _spread(value: Value, box: Box, shape: Shape) -> Box:
    """A range of an operand as one of the result, which repeats axes of length 1."""
    if box is None:
        return EMPTY
    lead = len(shape) - len(value.shape)
    own = [(0, n) if m == 1 else span for span, m, n in zip(box, value.shape, shape[lead:], strict=True)]
    return (*[(0, n) for n in shape[:lead]], *own)


def _gathered(value: Value, box: Spans) -> Box:
    """What an operand gives for a range of the result."""
    lead = len(box) - len(value.shape)
    return tuple([(0, 1) if m == 1 else span for span, m in zip(box[lead:], value.shape, strict=True)])


def _squeezed(shape: Shape, out: Shape, box: Spans) -> Box:
    """A range of `shape` in `out`, which differ by axes of length 1; of other shapes nothing is known."""
    rest = iter([span for span, n in zip(box, shape, strict=True) if n != 1])
    return tuple([(0, 1) if n == 1 else next(rest) for n in out])


def _alike(one: Shape, other: Shape) -> bool:
    return [n for n in one if n != 1] == [n for n in other if n != 1]


def supported(op: Op, support: Callable[[Value], Box]) -> Box:
    """Where the result may differ from zero, from where the operands may."""
    kind, shape = op.kind, op.out.shape
    whole = full(shape)
    first = support(op.args[0]) if op.args else whole
    if kind == ENTRY:
        boxes = [_spread(arg, support(arg), shape) for arg in op.args]
        if op.function is np.multiply:
            return within(boxes[0], boxes[1])
        if op.function in (np.add, np.subtract):
            return around(boxes[0], boxes[1])
        return boxes[0] if op.function is np.true_divide or op.function in ODD else whole
    if kind == CHOICE:
        _, x, y = op.args
        return around(_spread(x, support(x), shape), _spread(y, support(y), shape))
    if kind in (CAST, COPY):
        return first
    if kind == VIEW:
        return _viewed(op, first)
    if kind == PLACE:
        return _placed(op, first)
    if kind == ADDED:
        return around(_spread(op.args[0], first, shape), _placed(op, support(op.args[1])))
    if kind == REDUCE and op.function is np.add:
        return EMPTY if first is None else tuple([span for i, span in enumerate(first) if i not in op.params])
    if kind == JOIN:
        return _joined(op, support)
    if kind == PRODUCT and (first is None or support(op.args[1]) is None):
        return EMPTY
    return whole


def _viewed(op: Op, box: Box) -> Box:
    shape = op.out.shape
    if box is None:
        return EMPTY
    if op.function == "permute":
        return tuple([box[axis] for axis in op.params])
    if op.function == "broadcast":
        return _spread(op.args[0], box, shape)
    if op.function == "reshape":
        return _squeezed(op.args[0].shape, shape, box) if _alike(op.args[0].shape, shape) else full(shape)
    found = []
    for (lo, hi), part, n in zip(box, index_of(op.params), shape, strict=True):
        step = part.step or 1
        if step < 0:
            return full(shape)
        found.append((max(0, -((part.start - lo) // step)), min(n, -((part.start - hi) // step))))
    return tuple(found) if all(lo < hi for lo, hi in found) else EMPTY


def _placed(op: Op, box: Box) -> Box:
    if box is None:
        return EMPTY
    if len(box) != len(op.out.shape):
        return full(op.out.shape)
    found = []
    for (lo, hi), part, n in zip(box, index_of(op.params[1]), op.out.shape, strict=True):
        start, _, step = part.indices(n)
        if step < 0:
            return full(op.out.shape)
        found.append((start + lo * step, start + (hi - 1) * step + 1))
    return tuple(found)


def moved_to_part(op: Op, box: Box) -> Spans:
    """Where a range of what is placed comes to stand in the result."""
    found = _placed(op, box)
    assert found is not None
    return found


def _joined(op: Op, support: Callable[[Value], Box]) -> Box:
    at, start, found = op.params, 0, EMPTY
    for arg in op.args:
        box = support(arg)
        if box is not None:
            lo, hi = box[at]
            found = around(found, (*box[:at], (lo + start, hi + start), *box[at + 1 :]))
        start += arg.shape[at]
    return found


def demands(op: Op, box: Spans) -> list[Box] | None:
    """What is read of each operand for a range of the result; None where that is everything for all of the result."""
    kind = op.kind
    if kind in (ENTRY, CHOICE, CAST, COPY):
        return [_gathered(arg, box) for arg in op.args]
    if kind == REDUCE:
        rest = iter(box)
        return [tuple([(0, n) if i in op.params else next(rest) for i, n in enumerate(op.args[0].shape)])]
    if kind == PRODUCT:
        inner = (0, op.args[0].shape[-1])
        return [(*box[:-2], box[-2], inner), (*box[:-2], inner, box[-1])]
    if kind == PLACE:
        asked = _asked(op, op.args[0], box)
        return None if asked is None else [asked[0]]
    if kind == ADDED:
        asked = _asked(op, op.args[1], box)
        return None if asked is None else [_gathered(op.args[0], box), asked[0]]
    if kind == JOIN:
        return _split(op, box)
    return _seen(op, box) if kind == VIEW else None


def _seen(op: Op, box: Spans) -> list[Box] | None:
    """What a view shows in a range of it."""
    shape = op.args[0].shape
    if op.function == "permute":
        return [tuple([box[op.params.index(axis)] for axis in range(len(shape))])]
    if op.function == "broadcast":
        return [_gathered(op.args[0], box)]
    if op.function == "reshape":
        return [_squeezed(op.out.shape, shape, box)] if _alike(shape, op.out.shape) else None
    found = []
    for (lo, hi), part in zip(box, index_of(op.params), strict=True):
        step = part.step or 1
        if step < 0:
            return None
        found.append((part.start + lo * step, part.start + (hi - 1) * step + 1))
    return [tuple(found)]


def _asked(op: Op, x: Value, box: Spans) -> tuple[Box] | None:
    """What is read of an array that is placed; None where it is not placed entry beside entry."""
    if len(x.shape) != len(box):
        return None
    found = []
    for (lo, hi), part, n, m in zip(box, index_of(op.params[1]), op.out.shape, x.shape, strict=True):
        start, _, step = part.indices(n)
        if step != 1:
            return None
        found.append((max(0, lo - start), min(m, hi - start)))
    return (tuple(found) if all(lo < hi for lo, hi in found) else EMPTY,)


def _split(op: Op, box: Spans) -> list[Box]:
    """What is read of each of some arrays that are joined."""
    at, start, found = op.params, 0, []
    for arg in op.args:
        n = arg.shape[at]
        lo, hi = max(box[at][0] - start, 0), min(box[at][1] - start, n)
        found.append((*box[:at], (lo, hi), *box[at + 1 :]) if lo < hi else EMPTY)
        start += n
    return found


WORTH = 1 << 12  # entries that are saved, at least
SHARE = 2  # how many times fewer they are, at least


def restricted(recording: Recording, float_type: Any) -> Recording:
    """The recording on ranges where that saves half of all entries; else the recording itself."""
    if max([op.out.size for op in recording.ops], default=0) < WORTH:
        return recording  # looking at many short steps costs more than it saves
    boxes = _boxes(recording)
    before = sum([op.out.size for op in recording.ops])
    after = sum([_count(boxes.get(op.out.serial, EMPTY)) for op in recording.ops])
    if before - after < WORTH or SHARE * after > before:
        return recording
    return _Cut(recording, boxes, Steps(float_type)).made()


def _count(box: Box) -> int:
    return prod([hi - lo for lo, hi in box]) if box is not None else 0


def _boxes(recording: Recording) -> dict[int, Box]:
    """The range of each value that is computed; none for those that are zero, or that nothing reads."""
    support: dict[int, Box] = {}
    for op in recording.ops:
        support[op.out.serial] = supported(op, lambda value: _given(support, value))
    wanted: dict[int, Box] = {}

    def want(value: Value, box: Box) -> None:
        wanted[value.serial] = around(wanted.get(value.serial, EMPTY), box)

    for value in recording.outputs:
        want(value, full(value.shape))
    found: dict[int, Box] = {}
    for op in reversed(recording.ops):
        box = within(wanted.get(op.out.serial, EMPTY), support[op.out.serial])
        if box is None:
            continue
        needs = demands(op, box)
        if needs is None:
            box, needs = full(op.out.shape), [full(arg.shape) for arg in op.args]
        found[op.out.serial] = box
        for arg, need in zip(op.args, needs, strict=True):
            if need is not EMPTY:
                want(arg, need)
    return found


def _given(support: dict[int, Box], value: Value) -> Box:
    """Where a value may differ from zero."""
    if value.number is not None and value.number == 0:
        return EMPTY
    return support.get(value.serial, full(value.shape))


class _Cut:
    """The steps while they are made again on ranges."""

    def __init__(self, recording: Recording, boxes: dict[int, Box], steps: Steps) -> None:
        self.recording = recording
        self.boxes = boxes
        self.steps = steps
        self.known: dict[int, Value] = {}
        self.makers: dict[str, Callable[[Op, Spans], Value]] = {
            ENTRY: self._entry, CHOICE: self._choice, CAST: self._cast, COPY: self._copy, REDUCE: self._reduce,
            PLACE: self._place, ADDED: self._added, JOIN: self._join, PRODUCT: self._product, CALL: self._call,
        }  # fmt: skip

    def made(self) -> Recording:
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
                known[op.out.serial] = self.makers.get(op.kind, self._view)(op, box)
        outputs = [self.part(value, full(value.shape)) for value in self.recording.outputs]
        return Recording(live(steps.ops, outputs), inputs, outputs)

    def part(self, value: Value, box: Box) -> Value:
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
        found = self.known[value.serial]
        if common != own:
            key = tuple([("slice", lo - a, hi - a, 1) for (lo, hi), (a, _) in zip(common, own, strict=True)])
            found = steps.view("slice", found, key, tuple([hi - lo for lo, hi in common]))
        if common == box:
            return found
        index = tuple([slice(lo - a, hi - a, 1) for (lo, hi), (a, _) in zip(common, box, strict=True)])
        return steps.place(found, shape, index)

    def _parts(self, op: Op, box: Spans) -> list[Value]:
        needs: Sequence[Box] = demands(op, box) or [full(arg.shape) for arg in op.args]
        return [self.part(arg, need) for arg, need in zip(op.args, needs, strict=True)]

    def _spread(self, value: Value, box: Spans) -> Value:
        """The value in the shape of its range, should a rule have found that all entries are equal."""
        shape = tuple([hi - lo for lo, hi in box])
        if value.shape == shape:
            return value
        return self.steps.view("broadcast", self.steps.raised(value, len(shape)), shape, shape)

    def _entry(self, op: Op, box: Spans) -> Value:
        return self._spread(self.steps.entry(op.function, *self._parts(op, box)), box)

    def _choice(self, op: Op, box: Spans) -> Value:
        condition, x, y = self._parts(op, box)
        return self._spread(self.steps.choice(condition, x, y), box)

    def _cast(self, op: Op, box: Spans) -> Value:
        return self.steps.cast(self._parts(op, box)[0], op.params)

    def _copy(self, op: Op, box: Spans) -> Value:
        (x,) = self._parts(op, box)
        return self.steps.make(COPY, None, (x,), None, x.shape, x.dtype)

    def _reduce(self, op: Op, box: Spans) -> Value:
        need = (demands(op, box) or [None])[0] or full(op.args[0].shape)
        own = self.boxes.get(op.args[0].serial)
        if op.function is np.add and own is not None:  # the zeros around need not be added
            need = tuple([b if i in op.params else a for i, (a, b) in enumerate(zip(need, own, strict=True))])
        return self.steps.reduce(op.function, self.part(op.args[0], need), op.params)

    def _product(self, op: Op, box: Spans) -> Value:
        x, y = self._parts(op, box)
        return self.steps.product(x, y)

    def _call(self, op: Op, box: Spans) -> Value:
        return self.steps.call(op.function, op.params, tuple(self._parts(op, box)), op.out.shape, op.out.dtype)

    def _place(self, op: Op, box: Spans) -> Value:
        needs = demands(op, box)
        if needs is None:
            return self.steps.place(self.part(op.args[0], full(op.args[0].shape)), op.params[0], index_of(op.params[1]))
        return (
            self.steps.number(op.out.dtype.type(0), op.out.shape)
            if needs[0] is None
            else self._among(op, box, 0, needs[0])
        )

    def _among(self, op: Op, box: Spans, position: int, need: Spans) -> Value:
        """What a step places, in the part of the result that a range shows."""
        found = self.part(op.args[position], need)
        target = moved_to_part(op, need)
        if target == box:
            return found
        index = tuple([slice(lo - a, hi - a, 1) for (lo, hi), (a, _) in zip(target, box, strict=True)])
        return self.steps.place(found, tuple([hi - lo for lo, hi in box]), index)

    def _added(self, op: Op, box: Spans) -> Value:
        needs = demands(op, box)
        if needs is None:
            total, x = [self.part(arg, full(arg.shape)) for arg in op.args]
            return self.steps.entry(np.add, total, self.steps.place(x, op.params[0], index_of(op.params[1])))
        total = self.part(op.args[0], needs[0])
        if needs[1] is None:
            return total
        return self.steps.entry(np.add, total, self._among(op, box, 1, needs[1]))

    def _join(self, op: Op, box: Spans) -> Value:
        needs: Sequence[Box] = demands(op, box) or [full(arg.shape) for arg in op.args]
        parts = [self.part(arg, need) for arg, need in zip(op.args, needs, strict=True) if need is not EMPTY]
        return parts[0] if len(parts) == 1 else self.steps.join(parts, op.params)

    def _view(self, op: Op, box: Spans) -> Value:
        needs = demands(op, box)
        if needs is None:
            x = self.part(op.args[0], full(op.args[0].shape))
            return self.steps.view(op.function, x, op.params, op.out.shape)
        x = self.part(op.args[0], needs[0])
        shape = tuple([hi - lo for lo, hi in box])
        if op.function == "slice":
            key = tuple([("slice", 0, n, part.step or 1) for n, part in zip(x.shape, index_of(op.params), strict=True)])
            return x if x.shape == shape else self.steps.view("slice", x, key, shape)
        params = op.params if op.function == "permute" else shape
        return self.steps.view(op.function, x, params, shape)
