"""Steps on rows that are read backwards go in; the same steps on the rows as they lie come out, and are read backwards.

Reverse mode goes through the turns of a loop from the last to the first, so it reads backwards what the turns gave. A
step takes two to three times as long where some of its arrays run backwards and others forwards. Rows are added up in
another order then; nothing else about what is computed is known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.making import Making
from gradcli.execution.plans.values import CAST, CHOICE, COPY, ENTRY, JOIN, LINEAR, REDUCE, VIEW, Op, Value, made_by

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRYWISE = (ENTRY, CHOICE, CAST)
FOLDS = (np.add, np.maximum, np.minimum)


def unreversed(ops: Sequence[Op], float_type: Any) -> list[Op]:
    """The steps, with those whose arrays all run backwards along axis 0 taken forwards: their results are views now."""
    if not any(op.kind == VIEW and _turns_rows(op) for op in ops):
        return list(ops)
    return _Forwards(ops, float_type).run(ops)


class _Forwards:
    """The steps that are made; what runs backwards now is `turned`; solutions have `copies` in the opposite order."""

    def __init__(self, ops: Sequence[Op], float_type: Any) -> None:
        self.making = Making(float_type)
        self.making.after(max([value.serial for op in ops for value in (op.out, *op.args)]))
        self.turned: set[int] = set()
        self.copies: dict[int, Value] = {}

    def run(self, ops: Sequence[Op]) -> list[Op]:
        for op in ops:
            self.making.node = op.node
            args = self._turned(op)
            if args is None:
                self.making.keep(op if op.kind != VIEW else self._seen(op))
                continue
            function, params, out = op.function, op.params, op.out
            if op.kind == REDUCE and 0 in params:
                out.op = Op(REDUCE, function, args, params, out, op.node)
            else:
                made = self.making.make(op.kind, function, args, params, out.shape, out.dtype)
                out.op = Op(VIEW, "slice", (made,), _backwards(made), out, op.node)
                self.turned.add(out.serial)
            self.making.keep(out.op)
        return self.making.ops

    def _seen(self, view: Op) -> Op:
        """A view; of a copy where what it shows runs backwards now, and has rows that it breaks up."""
        (x,) = view.args
        if view.function == "reshape" and self._shows_turned(x) and not self.making.reshapable(x, view.out.shape):
            copied = self.making.make(COPY, None, (x,), None, x.shape, x.dtype)
            view.out.op = Op(VIEW, "reshape", (copied,), view.params, view.out, view.node)
        return made_by(view.out)

    def _shows_turned(self, value: Value) -> bool:
        while value.serial not in self.turned:
            if value.op is None or value.op.kind != VIEW:
                return False
            value = value.op.args[0]
        return True

    def _turned(self, op: Op) -> tuple[Value, ...] | None:
        """The operands of a step with their rows in the opposite order, where some run backwards now and all can."""
        if op.kind in ENTRYWISE and op.out.shape:
            form = len(op.out.shape), op.out.shape[0]
            rows = [(len(arg.shape), *arg.shape[:1]) == form for arg in op.args]
        elif op.kind == REDUCE and (0 not in op.params or op.function in FOLDS):
            rows = [True]
        elif op.kind == JOIN and op.params == 0:
            rows = [arg.shape[0] > 1 for arg in op.args]
        else:
            return None
        rows = [one and arg.number is None for arg, one in zip(op.args, rows, strict=True)]
        turned = [self._twin(arg) if one else arg for arg, one in zip(op.args, rows, strict=True)]
        if not any(one is not arg for arg, one in zip(op.args, turned, strict=True) if one is not None):
            return None
        if op.kind in ENTRYWISE:
            turned = [self._copied(arg) if one is None else one for arg, one in zip(op.args, turned, strict=True)]
        found = tuple([one for one in turned if one is not None])
        if len(found) < len(turned):
            return None
        return found[::-1] if op.kind == JOIN else found

    def _twin(self, value: Value) -> Value | None:
        """The rows of a value in the opposite order, if they stand somewhere in that order."""
        ways, found = _ways(value)
        turned = found.serial in self.copies
        if turned:
            found = self.copies[found.serial]
        elif not any(map(_turns_rows, ways)):
            return None
        for way in ways:
            if way.function != "slice":
                found = self.making.view(way.function, found, way.params, (found.shape[0], *way.out.shape[1:]))
                continue
            rows, last = range(found.shape[0])[slice(*way.params[0][1:])], found.shape[0] - 1
            if turned:  # row i stands at last - i
                rows = range(last - rows.start, last - rows.start - len(rows) * rows.step, -rows.step)
            turned = rows.step < 0
            found = self._sliced(found, rows[::-1] if turned else rows, way.params[1:])
        return found if turned else None

    def _sliced(self, x: Value, rows: range, others: tuple[Any, ...]) -> Value:
        """Rows of an array, forwards, and parts of them."""
        shape = (len(rows), *[len(range(n)[slice(*part[1:])]) for part, n in zip(others, x.shape[1:], strict=True)])
        whole = shape == x.shape and all(part[3] == 1 for part in others)
        return (
            x if whole else self.making.view("slice", x, (("slice", rows.start, rows.stop, rows.step), *others), shape)
        )

    def _copied(self, value: Value) -> Value | None:
        """The same by a copy: of the solution of a recurrence, which many steps read."""
        _, root = _ways(value)
        if root.op is None or root.op.kind != LINEAR:
            return None
        view = self.making.view("slice", root, _backwards(root), root.shape)
        self.copies[root.serial] = self.making.make(COPY, None, (view,), None, root.shape, root.dtype)
        return self._twin(value)


def _backwards(x: Value) -> tuple[Any, ...]:
    """The index of all rows, the last one first."""
    return (("slice", x.shape[0] - 1, None, -1), *[("slice", 0, n, 1) for n in x.shape[1:]])


def _turns_rows(view: Op) -> bool:
    """Whether a view has the rows of what it shows in the opposite order."""
    return view.function == "slice" and _keeps_rows(view) and view.params[0][3] < 0


def _ways(value: Value) -> tuple[list[Op], Value]:
    """What a value shows, and the views up to it, of which each has its rows from one axis."""
    ways: list[Op] = []
    while value.op is not None and value.op.kind == VIEW and _keeps_rows(value.op):
        ways.append(value.op)
        value = value.op.args[0]
    return ways[::-1], value


def _keeps_rows(view: Op) -> bool:
    """Whether the rows of a view are rows, or parts of them, of what it shows."""
    (x,), shape, params = view.args, view.out.shape, view.params
    if view.function == "slice":
        return bool(shape) and all(isinstance(part, tuple) for part in params)
    if not shape or not x.shape or shape[0] != x.shape[0]:
        return False
    if view.function == "permute":
        return bool(params[0] == 0)
    if view.function == "broadcast":
        return len(shape) == len(x.shape)
    return [n for n in x.shape[1:] if n != 1] == [n for n in shape[1:] if n != 1]  # no copy is needed
