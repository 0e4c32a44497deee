"""Counts truth values directly where a program adds them up as numbers.

The gradient of a largest or smallest entry needs how many entries of a lane are that, mostly one; masks of branches
need whether any entry of a lane counts. Neither needs an array of zeros and ones, which takes eight times the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.values import CAST, ENTRY, REDUCE, VIEW, Op, Value, base, made_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Readers = dict[int, list[Op]]


def ties(x: Any, best: Any, out: Any) -> None:
    """Which entries equal the extreme of their lane; NaN does, and makes that extreme NaN. So each lane has one."""
    np.equal(x, best, out)
    if np.isnan(best).any():
        np.bitwise_or(out, np.not_equal(x, x), out)


def tied(op: Op, uses: dict[int, int]) -> Op | None:
    """The step that marks what equals the extreme of its lane, and NaN: NaN is where that extreme is NaN too."""
    if op.kind != ENTRY or op.function is not np.bitwise_or or any(uses[arg.serial] != 1 for arg in op.args):
        return None
    equal, odd = [arg.op for arg in op.args]
    if equal is None or odd is None or equal.kind != ENTRY or odd.kind != ENTRY:
        return None
    if equal.function is not np.equal or odd.function is not np.not_equal or odd.args[0] is not odd.args[1]:
        return None
    x, best = odd.args[0], equal.args[1]
    made = base(best).op
    if equal.args[0] is not x or made is None or made.kind != REDUCE or made.args[0] is not x:
        return None
    if made.function not in (np.minimum, np.maximum) or x.shape != op.out.shape:
        return None
    tied = Op(ENTRY, ties, (x, best), None, op.out, op.node)
    op.out.op = tied
    return tied


def counted(op: Op) -> Callable[[Any, Any], None]:
    """How many entries of a lane equal its extreme; the block that is requested may hold parts of lanes."""
    axes, lengths = op.params, [op.args[0].shape[axis] for axis in op.params]

    def count(x: Any, out: Any) -> None:
        whole = [x.shape[axis] for axis in axes] == lengths
        if whole and np.count_nonzero(x) == out.size:  # as many as lanes, each of which has one at least
            out.fill(1)
        else:
            np.add.reduce(x, axes, out.dtype, out)

    return count


def simplified(ops: Sequence[Op], outputs: Sequence[Value], serials: Iterator[int]) -> list[Op]:
    """The steps without sums of truth values as numbers, where it matters only whether there are any, or how many tie.

    `serials` gives numbers for new values.
    """
    readers: Readers = {}
    for op in ops:
        for arg in op.args:
            readers.setdefault(arg.serial, []).append(op)
    kept = {value.serial for value in outputs}
    instead: dict[int, Op | None] = {}  # by the result of a step; None for those that nothing needs
    for op in ops:
        if not _is_of_marks(op):
            continue
        marks = made_by(op.args[0]).args[0]
        views, questions = _asked(op.out, readers, kept)
        if questions:
            any_ = Value(next(serials), op.out.shape, marks.dtype)
            any_.op = Op(REDUCE, np.logical_or, (marks,), op.params, any_, op.node)
            instead.update({one.out.serial: None for one in views})
            instead[op.out.serial] = any_.op
            for one in questions:
                instead[one.out.serial] = Op(VIEW, "reshape", (any_,), one.out.shape, one.out, one.node)
        elif _counts_ties(op):
            instead[op.out.serial] = Op(REDUCE, np.add, (marks,), op.params, op.out, op.node)
    if not instead:
        return list(ops)
    found = []
    for op in ops:
        now = instead.get(op.out.serial, op)
        if now is not None:
            now.out.op = now
            found.append(now)
    read = {arg.serial for op in found for arg in op.args} | kept
    return [op for op in found if op.kind != CAST or op.out.serial in read]


def _is_of_marks(op: Op) -> bool:
    """Whether a step adds up truth values."""
    below = op.args[0].op if op.kind == REDUCE and op.function is np.add else None
    return below is not None and below.kind == CAST and below.args[0].dtype.kind == "b" and below.args[0].number is None


def _counts_ties(op: Op) -> bool:
    """Whether a sum of truth values counts the ties of lanes in each of them."""
    made = made_by(op.args[0]).args[0].op
    if made is None or made.kind != ENTRY or made.function is not ties:
        return False
    x, best = made.args
    lanes = base(best).op
    return lanes is not None and lanes.kind == REDUCE and lanes.args[0] is x and lanes.params == op.params


def _asked(total: Value, readers: Readers, kept: set[int]) -> tuple[list[Op], list[Op]]:
    """The steps that ask whether a sum is 0, and the views between, if nobody asks for anything else."""
    views: list[Op] = []
    questions: list[Op] = []
    left = [total]
    while left:
        value = left.pop()
        if value.serial in kept:
            return [], []
        for reader in readers.get(value.serial, ()):
            if reader.kind == VIEW and reader.function == "reshape":
                views.append(reader)
                left.append(reader.out)
            elif _is_question(reader, value):
                questions.append(reader)
            else:
                return [], []
    return views, questions


def _is_question(op: Op, value: Value) -> bool:
    if op.kind != ENTRY or op.function is not np.not_equal or op.args[0] is not value or op.out.shape != value.shape:
        return False
    return op.args[1].number is not None and bool(op.args[1].number == 0)
