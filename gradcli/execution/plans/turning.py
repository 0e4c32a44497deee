"""A loop goes in, the values come out whose blocks stand in memory with the axis that is cut last; it knows no number.

NumPy takes an array with a column beside it row by row, and looks for the least of each row in that row alone: where
rows are short, most of the time goes into beginning them. In memory that is turned such a step runs along the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.execution.plans.groups import Groups
from gradcli.execution.plans.values import CAST, CHOICE, COPY, ENTRY, PRODUCT, REDUCE, VIEW, base

if TYPE_CHECKING:
    from gradcli.execution.plans.schedule import Loop
    from gradcli.execution.plans.values import Op, Value

WIDEST = 256  # entries of a row, from which its beginning takes little of the time
ENTRYWISE = (ENTRY, CHOICE, CAST, COPY)
READERS = (*ENTRYWISE, PRODUCT, REDUCE)  # kinds of steps that read turned arrays as fast as others


def turned(loop: Loop) -> set[int]:
    """The serials of matrices that are made in a loop, read only there, and faster in memory that is turned.

    Entry by entry steps on matrices of one shape have all of them turned, or none.
    """
    made = {op.out.serial: op for op in loop.ops}
    fixed = {value.serial for value in loop.stored} | {op.out.serial for op in loop.summed}
    groups: Groups[int] = Groups()
    gains: set[int] = set()
    for op in loop.ops:
        for arg in op.args:
            below = base(arg)
            if below.serial in made and (op.kind not in READERS or not _movable(arg)):
                fixed.add(below.serial)
        out = op.out
        if not _is_matrix(out, loop):
            if op.kind == REDUCE and op.function is not np.add and op.params == (1,) and _is_matrix(op.args[0], loop):
                gains.add(op.args[0].serial)
            continue
        if op.kind not in (*ENTRYWISE, PRODUCT):
            fixed.add(out.serial)
        for arg in op.args if op.kind in ENTRYWISE else ():
            if arg.number is None and arg.shape == out.shape:
                groups.join(out.serial, arg.serial)
                if arg.serial not in made:
                    fixed.add(arg.serial)
            elif arg.number is None and arg.size > 1:
                gains.add(out.serial)
    stopped = {groups.root(serial) for serial in fixed}
    faster = {groups.root(serial) for serial in gains} - stopped
    return {serial for serial, op in made.items() if groups.root(serial) in faster and _is_matrix(op.out, loop)}


def _is_matrix(value: Value, loop: Loop) -> bool:
    """Whether a value has short rows, which the loop cuts."""
    shape = value.shape
    return len(shape) == 2 and loop.at.get(value.serial) == 0 and 1 < shape[1] <= WIDEST


def _movable(value: Value) -> bool:
    """Whether a view shows turned memory as well as any other: axes are exchanged, or repeated."""
    while value.op is not None and value.op.kind == VIEW:
        if value.op.function != "permute" and not _repeats(value.op):
            return False
        value = value.op.args[0]
    return True


def _repeats(op: Op) -> bool:
    return op.function == "broadcast" and len(op.args[0].shape) == len(op.out.shape)
