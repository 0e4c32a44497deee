"""Steps on short arrays go in, steps on their entries come out, one number each: then many points are lines of numbers.

At many points an array of three entries is three lines. A line is long, so it is computed at the speed of memory, while
calls on rows of three entries spend their time on the rows. Sums along the last axes take NumPy's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.recording import Recording
from gradcli.execution.plans.steps import Steps
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
    index_of,
    live,
)
from gradcli.graph.node import Node
from gradcli.graph.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.values import Op, Value

MOST_CALLS = 128  # steps on numbers
MOST_ENTRIES = 8  # of an input at a point: rows that are longer are fast enough as rows
LANES, LONGEST = 8, 128  # NumPy adds in so many sums side by side, up to so many entries at a time


class Unrollable(Exception):
    """A step that is no arithmetic on entries, or too long."""


def by_entries(recording: Recording, dtype: Any) -> Recording | None:
    """The steps on entries; None for a program of another form.

    The inputs of the new recording are all entries of all inputs in order, its outputs those of all outputs.
    """
    try:
        return _Unroller(recording, dtype).run()
    except Unrollable:
        return None


class _Unroller:
    """The entries of all values so far: arrays of values of one entry, in which None is a zero that nobody computed."""

    def __init__(self, recording: Recording, dtype: Any) -> None:
        self.recording = recording
        self.steps = Steps(dtype)
        self.steps.faithful = True
        self.known: dict[int, Any] = {}

    def run(self) -> Recording:
        recording, steps = self.recording, self.steps
        given = max((value.size for _, value in recording.inputs), default=0)
        if max(given, sum(_work(op) for op in recording.ops)) > 8 * MOST_CALLS:
            raise Unrollable
        inputs: list[tuple[Node, Value]] = []
        for node, value in recording.inputs:
            one = scalar(node)
            entries = [(one, steps.leaf(one, value.dtype)) for _ in range(value.size)]
            inputs += entries
            self.known[value.serial] = _array([entry for _, entry in entries], value.shape)
        for op in recording.ops:
            steps.node = op.node
            self.known[op.out.serial] = _FORMS.get(op.kind, _refused)(self, op)
            if len(steps.ops) > MOST_CALLS:
                raise Unrollable
        outputs = [self.plain(one, value) for value in recording.outputs for one in self.entries(value).reshape(-1)]
        return Recording(live(steps.ops, outputs), inputs, outputs)

    def entries(self, value: Value) -> Any:
        """The entries of a value in its shape."""
        found = self.known.get(value.serial)
        if found is None:
            if value.number is not None:
                found = np.broadcast_to(_array([self.steps.number(value.number)], ()), value.shape)
            elif value.array is not None and value.size <= MOST_CALLS:
                found = _array([self.steps.number(one) for one in value.array.reshape(-1)], value.shape)
            else:
                raise Unrollable
            self.known[value.serial] = found
        return found

    def plain(self, one: Value | None, like: Value) -> Value:
        """An entry, also where it is a zero."""
        return self.steps.number(like.dtype.type(0)) if one is None else one

    def each(self, function: Callable[..., Any], op: Op) -> Any:
        """A function of one entry of each operand, for all entries."""
        operands = [np.broadcast_to(self.entries(arg), op.out.shape).reshape(-1) for arg in op.args]
        rows = [[self.plain(one, arg) for one in entries] for entries, arg in zip(operands, op.args, strict=True)]
        return _array([function(*row) for row in zip(*rows, strict=True)], op.out.shape)

    def total(self, values: Sequence[Any]) -> Any:
        """The sum in the order in which NumPy adds neighbours."""
        count = len(values)
        if count > LONGEST:
            half = count // 2 - count // 2 % LANES
            return self.sum_of(self.total(values[:half]), self.total(values[half:]))
        whole = count - count % LANES
        found = list(values[:LANES]) if whole else []
        for at in range(LANES, whole, LANES):
            found = [self.sum_of(one, other) for one, other in zip(found, values[at : at + LANES], strict=True)]
        while len(found) > 1:
            found = [self.sum_of(found[at], found[at + 1]) for at in range(0, len(found), 2)]
        for one in values[whole:] if whole else values:
            found = [one] if not found else [self.sum_of(found[0], one)]
        return found[0]

    def sum_of(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return self.steps.entry(np.add, one, other)


def scalar(node: Node) -> Node:
    """A node that stands for one entry of another."""
    return Node(node.primitive, node.args, node.params, Type(node.type.kind, ()), node.serial, node.span, node.builder)


def _work(op: Op) -> int:
    """How many steps on numbers a step is, about."""
    if op.kind == VIEW:
        return 0
    return op.out.size * (2 * op.args[0].shape[-1]) if op.kind == PRODUCT else max(op.out.size, op.args[0].size)


def _array(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


def _refused(made: _Unroller, op: Op) -> Any:
    raise Unrollable


def _entry(made: _Unroller, op: Op) -> Any:
    if op.function is np.add:  # what stands among zeros need not be added to them
        operands = [np.broadcast_to(made.entries(arg), op.out.shape).reshape(-1) for arg in op.args]
        if all(arg.dtype == op.out.dtype for arg in op.args):
            return _array([made.sum_of(*pair) for pair in zip(*operands, strict=True)], op.out.shape)
    return made.each(lambda *xs: made.steps.entry(op.function, *xs), op)


def _choice(made: _Unroller, op: Op) -> Any:
    return made.each(made.steps.choice, op)


def _cast(made: _Unroller, op: Op) -> Any:
    return made.each(lambda x: made.steps.cast(x, op.out.dtype), op)


def _copy(made: _Unroller, op: Op) -> Any:
    return made.entries(op.args[0])


def _view(made: _Unroller, op: Op) -> Any:
    x = made.entries(op.args[0])
    if op.function == "broadcast":
        return np.broadcast_to(x, op.out.shape)
    if op.function == "permute":
        return x.transpose(op.params)
    return (x[index_of(op.params)] if op.function == "slice" else x).reshape(op.out.shape)


def _reduce(made: _Unroller, op: Op) -> Any:
    x = op.args[0]
    entries = made.entries(x)
    if x.dtype != op.out.dtype:
        if op.out.dtype.kind != "f":
            raise Unrollable
        entries = _array([made.steps.cast(made.plain(one, x), op.out.dtype) for one in entries.reshape(-1)], x.shape)
    kept = [axis for axis in range(len(x.shape)) if axis not in op.params]
    rows = entries.transpose([*kept, *sorted(op.params)]).reshape(op.out.size, -1)
    if not rows.shape[1]:
        raise Unrollable
    neighbours = sorted(op.params) == list(range(len(kept), len(x.shape)))
    found = []
    for row in rows:
        if op.function is np.add and neighbours:
            found.append(made.total(list(row)))
            continue
        total = row[0] if op.function is np.add else made.plain(row[0], x)
        for one in row[1:]:
            if op.function is np.add:
                total = made.sum_of(total, one)
            else:
                total = made.steps.entry(op.function, total, made.plain(one, x))
        found.append(total)
    return _array(found, op.out.shape)


def _product(made: _Unroller, op: Op) -> Any:
    x, y = (made.entries(arg) for arg in op.args)
    stack = op.out.shape[:-2]
    x = np.broadcast_to(x, (*stack, *x.shape[-2:])).reshape(-1, *x.shape[-2:])
    y = np.broadcast_to(y, (*stack, *y.shape[-2:])).reshape(-1, *y.shape[-2:])
    if not x.shape[-1]:
        raise Unrollable
    found = []
    for left, right in zip(x, y, strict=True):
        for row in left:
            for column in right.T:
                pairs = zip(row, column, strict=True)
                products = [
                    made.steps.entry(np.multiply, made.plain(a, op.out), made.plain(b, op.out)) for a, b in pairs
                ]
                total = products[0]
                for one in products[1:]:
                    total = made.sum_of(total, one)
                found.append(total)
    return _array(found, op.out.shape)


def _place(made: _Unroller, op: Op) -> Any:
    found = np.full(op.out.shape, None, object)
    found[index_of(op.params[1])] = made.entries(op.args[0])
    return found


def _added(made: _Unroller, op: Op) -> Any:
    found = made.entries(op.args[0]).copy()
    index = index_of(op.params[1])
    before, more = found[index], made.entries(op.args[1])
    pairs = zip(before.reshape(-1), more.reshape(-1), strict=True)
    found[index] = _array([made.sum_of(*pair) for pair in pairs], before.shape)
    return found


def _join(made: _Unroller, op: Op) -> Any:
    return np.concatenate([made.entries(arg) for arg in op.args], axis=op.params)


def _call(made: _Unroller, op: Op) -> Any:
    if not op.node.primitive.pointwise:
        raise Unrollable
    return made.each(lambda *xs: made.steps.call(op.function, op.params, xs, (), op.out.dtype), op)


_FORMS: dict[str, Callable[[_Unroller, Op], Any]] = {
    ENTRY: _entry, CHOICE: _choice, CAST: _cast, COPY: _copy, VIEW: _view, REDUCE: _reduce, PRODUCT: _product,
    PLACE: _place, ADDED: _added, JOIN: _join, CALL: _call,
}  # fmt: skip
