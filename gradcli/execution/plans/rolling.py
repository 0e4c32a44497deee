"""A recording goes in, the same outputs by fewer steps come out: the loops of the program are found again and split.

A loop that has been written out turn by turn repeats itself in the list of steps. What the turns do without each other
becomes one step on arrays whose axis 0 counts the turns, what they only add up becomes a sum, and what is left, the
recurrence, becomes a scan (R. Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, 1987).
Nothing is computed here; what fits no form stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.nests import Nest, read_beyond
from gradcli.execution.plans.periods import stretches
from gradcli.execution.plans.recording import Recording
from gradcli.execution.plans.spreading import Spreading
from gradcli.execution.plans.values import ADDED, JOIN, LINEAR, PLACE, SCAN, VIEW, live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.values import Op, Value

FEWEST_STEPS = 64  # of a recording that is looked at
SHARE = 0.8  # of the calls, at most, that may be left
CALL_OF_SCAN = 0.6  # what a call in a scan takes of the time that one of a step takes


def rolled(recording: Recording, float_type: Any) -> Recording:
    """The recording with its loops as stacked steps, sums and scans; the recording itself where there are none."""
    ops = recording.ops
    found = stretches(codes(ops)) if len(ops) >= FEWEST_STEPS else []
    if not found:
        return recording
    makers = made_at(recording)
    nests = [nest for one in found if (nest := Nest.fitted(ops, makers, *one, float_type)) is not None]
    if not nests:
        return recording
    read_beyond(recording, nests, makers)
    spreading = Spreading(recording, nests, makers, float_type)
    outputs = spreading.run()
    steps = live(spreading.steps.ops, outputs)
    if cost(steps) > SHARE * cost(ops):
        for op in ops:
            op.out.op = op
        return recording
    return Recording(steps, recording.inputs, outputs)


def cost(ops: Sequence[Op]) -> float:
    """About how many calls of functions steps on small arrays take."""
    found = 0.0
    for op in ops:
        if op.kind == SCAN:
            found += len(op.args) + CALL_OF_SCAN * op.function.calls
        elif op.kind == LINEAR:
            found += op.function.calls
        elif op.kind == JOIN:
            found += len(op.args)
        elif op.kind != VIEW:
            found += 1
    return found


def made_at(recording: Recording) -> Any:
    """The place of the step that makes a value, by its serial; -1 for those that no step makes."""
    serials = [op.out.serial for op in recording.ops]
    others = [value.serial for value in (*recording.outputs, *[value for _, value in recording.inputs])]
    found = np.full(max(*serials, *others) + 1, -1, np.int64)
    found[serials] = np.arange(len(serials))
    return found


def codes(ops: Sequence[Op]) -> Any:
    """A whole number for each step, the same for steps that differ by the entries they read at most."""
    forms: dict[Any, int] = {}
    known: dict[int, int] = {}
    table: dict[Any, tuple[int, int, Any]] = {}
    found: list[Any] = []

    def form(value: Value) -> int:
        key = (value.shape, value.dtype.char, value.constant, value.number is None)
        one = known[value.serial] = forms.setdefault(key, len(forms))
        return one

    for op in ops:
        params, out = op.params, op.out
        if params is not None:
            if op.kind == VIEW and op.function == "slice":
                params = _lengths(params)
            elif op.kind in (PLACE, ADDED):
                params = (params[0], _lengths(params[1]))
        parts = [known[arg.serial] if arg.serial in known else form(arg) for arg in op.args]
        key = (op.kind, op.function, params, *parts)
        entry = table.get(key)
        if entry is None or entry[2] != out.shape:
            entry = table[key] = (len(found), form(out), out.shape)
        known[out.serial] = entry[1]
        found.append(entry[0])
    return np.array(found)


def _lengths(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of an index without the places where they begin."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part[3] == 1 and part[2] is not None:
            part = part[2] - part[1]
        found.append(part)
    return tuple(found)
