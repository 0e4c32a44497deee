"""An operation's `impl` goes in once, its steps come out for any operands that look alike; it knows no formula.

A loop that is written out has the same few operations thousands of times. Their `impl`s are recorded on stand-ins; for
the operands themselves only the steps are made, which are those that a recording would have made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.namespaces import Unavailable
from gradcli.execution.plans.tracing import Recorder, Trace, Unrecordable
from gradcli.execution.plans.values import ENTRY, PRODUCT, REDUCE

if TYPE_CHECKING:
    from gradcli.execution.plans.steps import Steps
    from gradcli.execution.plans.values import Value
    from gradcli.graph.node import Node

ORDERED = (np.add, np.multiply)  # their operands stand in the order in which they came to be
UNREAD = {np.add, np.subtract, np.tanh, np.sin, np.cos, np.sqrt, np.log, np.log1p, np.square}  # no rule looks at these


class Templates:
    """The steps of operations, by operation, parameters, and how their operands look."""

    __slots__ = ("known", "met", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.known: dict[Any, Template | None] = {}
        self.met: set[Any] = set()

    def value(self, node: Node, args: list[Value]) -> Value | None:
        """What an operation entry by entry gives; None where a rule may look at the operands."""
        given: list[Value] = []
        looks: list[Any] = []
        for arg in args:
            inner = _inner(arg)
            bottom = arg if inner is None else inner
            op = bottom.op
            if bottom.number is not None or bottom.shape != arg.shape:
                return None
            if op is not None and op.function not in UNREAD and op.kind not in (REDUCE, PRODUCT):
                return None
            given.append(arg)
            looks += (arg.shape, arg.dtype, inner is None)
            if inner is not None:
                given.append(inner)
        if len(given) > 1:
            serials = [one.serial for one in given]
            looks += [serials.index(serial) for serial in serials]
        key = (node.primitive, tuple(node.params.items()), *looks)
        if key not in self.known:
            if key not in self.met:
                self.met.add(key)
                return None  # it may be the only one
            self.known[key] = self._recorded(node, args)
        found = self.known[key]
        return None if found is None else found.filled(self.recorder.steps, given)

    def _recorded(self, node: Node, args: list[Value]) -> Template | None:
        """The steps of an operation on stand-ins for its operands, which are inputs or the negatives of inputs."""
        recorder = Recorder(self.recorder.dtype)
        steps = recorder.steps
        steps.faithful = self.recorder.steps.faithful
        stand: dict[int, Value] = {}

        given = []
        for arg in args:
            inner = _inner(arg)
            for value in (inner, arg) if inner is not None else (arg,):
                if value.serial not in stand:
                    below = None if value is inner or inner is None else stand[inner.serial]
                    stand[value.serial] = steps.stand_in(value) if below is None else steps.entry(np.negative, below)
            given.append(stand[arg.serial])
            if inner is not None:
                given.append(stand[inner.serial])
        before = len(steps.ops)
        assert node.primitive.impl is not None
        try:
            made = node.primitive.impl(recorder, *[Trace(recorder, stand[arg.serial]) for arg in args], **node.params)
        except (Unrecordable, Unavailable, TypeError, AttributeError):
            return None
        if type(made) is not Trace or made.value.number is not None:
            return None
        return Template(given, steps.numbers(), steps.ops[before:], made.value)


def _inner(value: Value) -> Value | None:
    """What a value is the negative of, if it is a negative."""
    op = value.op
    return op.args[0] if op is not None and op.kind == ENTRY and op.function is np.negative else None


class Template:
    """Steps on places: those of what is given come first, then those of numbers and results, in the order of making."""

    __slots__ = ("made", "result")

    def __init__(self, given: list[Value], numbers: list[Value], ops: list[Any], result: Value) -> None:
        places = {value.serial: place for place, value in enumerate(given)}
        self.made: list[Any] = []
        outs = {op.out.serial: op for op in ops}
        for value in sorted([*numbers, *[op.out for op in ops]], key=lambda value: value.serial):
            places[value.serial] = len(given) + len(self.made)
            op = outs.get(value.serial)
            if op is None:
                self.made.append(value)
            else:
                ordered = op.kind == ENTRY and op.function in ORDERED
                at = tuple([places[arg.serial] for arg in op.args])
                self.made.append((op.kind, op.function, at, op.params, value.shape, value.dtype, ordered))
        self.result = places[result.serial]

    def filled(self, steps: Steps, given: list[Value]) -> Value:
        """The result of these steps for what is given."""
        values = given
        for one in self.made:
            if type(one) is not tuple:
                values.append(steps.number(one.number, one.shape))
                continue
            kind, function, at, params, shape, dtype, ordered = one
            args = tuple([values[place] for place in at])
            if ordered and args[0].serial > args[1].serial:
                args = args[::-1]
            values.append(steps.make(kind, function, args, params, shape, dtype))
        return values[self.result]
