"""Recorded steps go in; out comes what each value is along one flattened axis: a line, a number, another's entries.

Steps can be taken block by block where every value is one number or a line of entries, each of which depends on the
entries beside it only: entry-by-entry steps, slices that are contiguous in memory (offset reads), entries put among
zeros, numbers repeated, and reductions over all entries. Anything else is refused. It computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.execution.plans.values import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    COPY,
    ENTRY,
    PLACE,
    REDUCE,
    VIEW,
    index_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gradcli.execution.plans.recording import Recording
    from gradcli.execution.plans.values import Op, Value

ENTRYWISE = (ENTRY, CHOICE, CAST, COPY)


class Line(NamedTuple):
    """The entries of a line, counted from `shift` on: what a step that only moves entries stands for."""

    value: Value
    shift: int


class Roles(NamedTuple):
    """What each value is, by its serial: a line by what computes it or by the number that it repeats; else a number."""

    lines: dict[int, Line | Value]
    counted: bool  # whether lines are as long as there are points
    picked: dict[int, Line]  # numbers that are one entry of an input
    phases: dict[int, int]  # how many reductions have to be finished before

    def length(self, value: Value) -> int | None:
        """The entries of a line; None for as many as there are points."""
        return None if self.counted else value.size


class Refused(Exception):
    """The program is of another form."""


def roles_of(recording: Recording, moving: Collection[str] | None) -> Roles | None:
    """The roles of all values; None where a program cannot be run in blocks.

    `moving` names the inputs whose first axis counts points, and then every value is one number at a point; without it
    the arrays of the program are the lines.
    """
    made = Roles({}, moving is not None, {}, {})
    try:
        for node, value in recording.inputs:
            _input(made, value, node.params["name"] in moving if moving is not None else value.size > 1)
        for op in recording.ops:
            for arg in op.args:
                if arg.serial not in made.phases:
                    _input(made, arg, arg.size > 1)
            made.phases[op.out.serial] = max((made.phases[arg.serial] for arg in op.args), default=0)
            if op.out.constant:
                _input(made, op.out, op.out.size > 1)
            elif made.counted:
                _of_points(made, op)
            else:
                _of_arrays(made, op)
        for value in recording.outputs:
            if value.serial not in made.phases:
                _input(made, value, value.size > 1)
    except Refused:
        return None
    return made


def _input(made: Roles, value: Value, line: bool) -> None:
    made.phases[value.serial] = 0
    if made.counted and value.shape:
        raise Refused
    if line:
        if value.dtype.kind not in "fb" or not value.size:
            raise Refused
        made.lines[value.serial] = value if value.number is not None else Line(value, 0)


def _computed(made: Roles, op: Op) -> None:
    if op.out.dtype.kind not in "fb":
        raise Refused
    made.lines[op.out.serial] = Line(op.out, 0)


def _of_points(made: Roles, op: Op) -> None:
    if op.out.shape:
        raise Refused
    if any(arg.serial in made.lines for arg in op.args):
        if op.kind not in ENTRYWISE and not (op.kind == CALL and op.node.primitive.pointwise):
            raise Refused
        _computed(made, op)


def _of_arrays(made: Roles, op: Op) -> None:
    long = op.out.size > 1
    if not op.out.size:
        raise Refused
    if op.kind in ENTRYWISE or (op.kind == CALL and op.node.primitive.pointwise):
        if long:
            if any(arg.size != 1 and arg.number is None and arg.size != op.out.size for arg in op.args):
                raise Refused
            _computed(made, op)
    elif op.kind == VIEW and (long or op.args[0].serial in made.lines):
        _VIEWS[op.function](made, op)
    elif op.kind == PLACE and long:
        flat_start(op.out.shape, index_of(op.params[1]), op.args[0].shape)
        _computed(made, op)
    elif op.kind == ADDED and long:
        flat_start(op.out.shape, index_of(op.params[1]), op.args[1].shape)
        _computed(made, op)
    elif op.kind == REDUCE and op.args[0].serial in made.lines:
        if long:
            raise Refused
        made.phases[op.out.serial] += 1
    elif long or any(arg.serial in made.lines for arg in op.args):
        raise Refused


def _broadcast(made: Roles, op: Op) -> None:
    arg = op.args[0]
    if arg.size == 1:
        made.lines[op.out.serial] = arg
    elif arg.size == op.out.size:
        made.lines[op.out.serial] = made.lines[arg.serial]
    else:
        raise Refused


def _reshape(made: Roles, op: Op) -> None:
    made.lines[op.out.serial] = made.lines[op.args[0].serial]


def _permute(made: Roles, op: Op) -> None:
    order = [axis for axis in op.params if op.args[0].shape[axis] > 1]
    if order != sorted(order):
        raise Refused
    _reshape(made, op)


def _slice(made: Roles, op: Op) -> None:
    arg = op.args[0]
    known = made.lines[arg.serial]
    first = flat_start(arg.shape, index_of(op.params), op.out.shape)
    if op.out.size == 1:
        if not isinstance(known, Line) or (known.value.op is not None and not known.value.constant):
            raise Refused
        made.picked[op.out.serial] = Line(known.value, known.shift + first)
        return
    made.lines[op.out.serial] = Line(known.value, known.shift + first) if isinstance(known, Line) else known


_VIEWS: dict[str, Any] = {"broadcast": _broadcast, "reshape": _reshape, "permute": _permute, "slice": _slice}


def flat_start(shape: tuple[int, ...], index: tuple[Any, ...], size: tuple[int, ...]) -> int:
    """Where the entries of a slice begin in C order; Refused where they are not neighbours there.

    >>> flat_start((4, 3), (slice(1, 3, 1), slice(0, 3, 1)), (2, 3))
    3
    """
    first, stride, whole = 0, 1, True
    for n, part, count in zip(reversed(shape), reversed(index), reversed(size), strict=True):
        begin = range(n)[part][0] if isinstance(part, slice) else part
        if count > 1 and ((part.step or 1) != 1 or not whole):
            raise Refused
        first += begin * stride
        stride *= n
        whole = whole and count == n
    return first
