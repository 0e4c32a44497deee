"""A step of a loop and its operands for all turns go in, one step for all of them comes out: axis 0 counts the turns.

Operands that are the same in every turn stay as they are where that is possible. Nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import put, take
from gradcli.execution.plans.values import (
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
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.steps import Steps

    Operand = tuple[Value, bool]  # a value, and whether its axis 0 counts the turns

WIDEST = 16  # entries of windows that overlap, up to which they are copied by their entries


def liftable(op: Op, varies: bool, fixed: bool) -> bool:
    """Whether one step can do all turns; `varies` tells that its parameters do, `fixed` that its operand does not."""
    if op.kind == CALL:
        return op.function in (take, put) and not varies
    return not varies or (op.kind == VIEW and fixed)


def lifted(steps: Steps, op: Op, operands: Sequence[Operand], count: int) -> Value:
    """All turns of a step in one, shape (count, *shape)."""
    shape = op.out.shape
    if not any(stacked for _, stacked in operands):
        values = tuple([value for value, _ in operands])
        return repeated(steps, steps.make(op.kind, op.function, values, op.params, shape, op.out.dtype), count)
    kind, full = op.kind, (count, *shape)
    if kind in (ENTRY, CHOICE):
        led = tuple([_led(steps, value, len(shape)) if stacked else value for value, stacked in operands])
        return steps.make(kind, op.function, led, op.params, full, op.out.dtype)
    if kind == PRODUCT:
        return _product(steps, op, operands, count)
    if kind == CALL:
        at = op.params + 1 if op.function is take else (op.params[0] + 1, op.params[1])
        (x, _), (row, _) = operands
        return steps.make(kind, op.function, (x, row), at, full, op.out.dtype)
    xs = tuple([value if stacked else repeated(steps, value, count) for value, stacked in operands])
    if kind == VIEW:
        return _view(steps, op, xs[0], count)
    params = op.params
    if kind == REDUCE:
        params = tuple([axis + 1 for axis in params])
    elif kind == JOIN:
        params = params + 1
    elif kind in (PLACE, ADDED):
        params = (full, (("slice", 0, count, 1), *params[1]))
    else:
        assert kind in (CAST, COPY)
    return steps.make(kind, op.function, xs, params, full, op.out.dtype)


def repeated(steps: Steps, value: Value, count: int) -> Value:
    """A value once for every turn, without a copy."""
    full = (count, *value.shape)
    if value.number is not None:
        return steps.number(value.number, full)
    return steps.view("broadcast", steps.raised(value, len(full)), full, full)


def _led(steps: Steps, value: Value, rank: int) -> Value:
    """An operand with axes of size 1 behind the first one, to stand beside results of a rank."""
    count, *shape = value.shape
    full = (count, *(1,) * (rank - len(shape)), *shape)
    return steps.view("reshape", value, full, full)


def _view(steps: Steps, op: Op, x: Value, count: int) -> Value:
    full = (count, *op.out.shape)
    if op.function == "permute":
        return steps.view("permute", x, (0, *[axis + 1 for axis in op.params]), full)
    if op.function == "slice":
        return steps.view("slice", x, (("slice", 0, count, 1), *op.params), full)
    return steps.view(op.function, x, full, full)


def _product(steps: Steps, op: Op, operands: Sequence[Operand], count: int) -> Value:
    """Products of matrices; those with the same matrix are one product where the others are rows or columns."""
    (x, moving), (y, turning) = operands
    dtype, full = op.out.dtype, (count, *op.out.shape)
    if len(op.out.shape) == 2 and moving and not turning:
        rows = count * x.shape[1]
        flat = steps.view("reshape", x, (rows, x.shape[2]), (rows, x.shape[2]))
        made = steps.make(PRODUCT, None, (flat, y), None, (rows, y.shape[1]), dtype)
        return steps.view("reshape", made, full, full)
    if len(op.out.shape) == 2 and turning and not moving and y.shape[2] == 1:
        flat = steps.view("reshape", y, y.shape[:2], y.shape[:2])
        turned = steps.view("permute", x, (1, 0), x.shape[::-1])
        made = steps.make(PRODUCT, None, (flat, turned), None, (count, x.shape[0]), dtype)
        return steps.view("reshape", made, full, full)
    xs = tuple([value if stacked else repeated(steps, value, count) for value, stacked in operands])
    return steps.make(PRODUCT, None, xs, None, full, dtype)


def windows(steps: Steps, x: Value, parts: Sequence[Any], shape: tuple[int, ...]) -> Value:
    """Slices of one array, `parts` for each turn, shape (count, *shape)."""
    count = len(parts)
    found = affine(parts)
    if found is None:
        rows = [steps.view("slice", x, one, shape) for one in parts]
        return joined(steps, [raised(steps, row) for row in rows])
    axis, first, step = found
    n = shape[axis]
    if n == 1:
        return _column(steps, x, parts[0], axis, (first, step, count), shape)
    if step == n:
        index = (*parts[0][:axis], ("slice", first, first + count * n, 1), *parts[0][axis + 1 :])
        before, after = shape[:axis], shape[axis + 1 :]
        flat = steps.view("slice", x, index, (*before, count * n, *after))
        cut = steps.view("reshape", flat, (*before, count, n, *after), (*before, count, n, *after))
        order = (axis, *[i for i in range(len(shape) + 1) if i != axis])
        return steps.view("permute", cut, order, (count, *shape))
    if n > WIDEST:
        rows = [steps.view("slice", x, one, shape) for one in parts]
        return joined(steps, [raised(steps, row) for row in rows])
    thin = (*shape[:axis], 1, *shape[axis + 1 :])
    columns = [_column(steps, x, parts[0], axis, (first + i, step, count), thin) for i in range(n)]
    return steps.join(columns, axis + 1)


def _column(steps: Steps, x: Value, part: Any, axis: int, along: tuple[int, int, int], shape: tuple[int, ...]) -> Value:
    """Slices of length 1 along an axis, whose places are in arithmetic progression."""
    first, step, count = along
    end = first + count * step
    index = (*part[:axis], ("slice", first, end if end >= 0 else None, step), *part[axis + 1 :])
    before, after = shape[:axis], shape[axis + 1 :]
    if index == tuple([("slice", 0, m, 1) for m in x.shape]):
        flat = x
    else:
        flat = steps.view("slice", x, index, (*before, count, *after))
    order = (axis, *[i for i in range(len(shape)) if i != axis])
    turned = steps.view("permute", flat, order, (count, *before, *after))
    return steps.view("reshape", turned, (count, *shape), (count, *shape))


def affine(parts: Sequence[Any]) -> tuple[int, int, int] | None:
    """The axis, the first place and the step of slices that move along one axis as turns go on, else None."""
    one, other = parts[0], parts[1]
    moving = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(moving) != 1:
        return None
    (axis,) = moving
    (_, first, end, stride), step = one[axis], other[axis][1] - one[axis][1]
    if stride != 1 or not step:
        return None
    for turn, part in enumerate(parts):
        if part[axis] != ("slice", first + turn * step, end + turn * step, 1):
            return None
        if part[:axis] != one[:axis] or part[axis + 1 :] != one[axis + 1 :]:
            return None
    return axis, first, step


def raised(steps: Steps, value: Value) -> Value:
    """A value as the only turn of a stack."""
    return steps.view("reshape", value, (1, *value.shape), (1, *value.shape))


def joined(steps: Steps, pieces: Sequence[Value]) -> Value:
    """Stacks one after the other."""
    return pieces[0] if len(pieces) == 1 else steps.join(pieces, 0)


def turns(steps: Steps, stack: Value, first: int, step: int, count: int) -> Value:
    """Some turns of a stack, backwards where `step` is negative."""
    if (first, step, count) == (0, 1, stack.shape[0]):
        return stack
    end = first + count * step
    part = ("slice", first, end if end >= 0 else None, step)
    key = (part, *[("slice", 0, n, 1) for n in stack.shape[1:]])
    return steps.view("slice", stack, key, (count, *stack.shape[1:]))


def turn(steps: Steps, stack: Value, place: int) -> Value:
    """One turn of a stack."""
    shape = stack.shape[1:]
    return steps.view("reshape", turns(steps, stack, place, 1, 1), shape, shape)


def summed(steps: Steps, stack: Value) -> Value:
    """The sum of all turns."""
    return steps.make(REDUCE, np.add, (stack,), (0,), stack.shape[1:], stack.dtype)
