"""Ranges of entries of a step: where its result may differ from zero, and what it reads for a part of it.

A range has a first entry and an end for each axis; `EMPTY` holds no entry. Nothing here makes steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.execution.plans.values import (
    ADDED,
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
    Value,
    index_of,
)

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
