"""Loops in a list of steps go in, the steps that do all their turns come out, in an order in which they can be taken.

What is read of a single turn is a view of a stack. Steps outside of loops stay as they are, but for what they read.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.bodies import Body
from gradcli.execution.plans.lifting import joined, lifted, raised, repeated, summed, turn, turns, windows
from gradcli.execution.plans.linear import Linear
from gradcli.execution.plans.nests import LIST, OWN, SAME, Nest, Read
from gradcli.execution.plans.packing import ALL
from gradcli.execution.plans.periods import FEWEST
from gradcli.execution.plans.steps import Steps
from gradcli.execution.plans.values import ADDED, ENTRY, JOIN, SCAN, VIEW, Op, Value
from gradcli.execution.plans.waves import woven

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.lifting import Operand
    from gradcli.execution.plans.recording import Recording


class Spreading:
    """The steps that are made, and where the results of loops are found."""

    def __init__(self, recording: Recording, nests: Sequence[Nest], makers: Any, float_type: Any) -> None:
        self.recording = recording
        self.nests = nests
        self.makers = makers
        self.steps = Steps(float_type)
        self.steps.after(len(makers))
        self.stacks: dict[tuple[int, int], Value] = {}  # by the start of a loop and the place in it
        self.totals: dict[tuple[int, int], Value] = {}  # what sums give in the last turn
        self.starts = np.array([nest.start for nest in nests])
        self.ends = np.array([nest.end for nest in nests])
        self.periods = np.array([nest.period for nest in nests])
        self.singles: dict[int, Value] = {}
        self.below: dict[int, Value] = {}  # what a step outside of loops shows in another shape

    def run(self) -> list[Value]:
        """Make all steps; the outputs."""
        at = 0
        for nest in self.nests:
            self._plain(self.recording.ops[at : nest.start])
            for group in woven(nest):
                if isinstance(group, Body):
                    self._scan(nest, group)
                elif isinstance(group, Linear):
                    self.steps.node = nest.body[group.cut].node
                    group.made(self)
                else:
                    self._component(nest, group)
            at = nest.end
        self._plain(self.recording.ops[at:])
        return [self.single(value) for value in self.recording.outputs]

    def _plain(self, ops: Sequence[Op]) -> None:
        """Steps outside of loops."""
        for op in ops:
            self.steps.node = op.node
            strung = op.kind == JOIN and len(op.args) >= FEWEST
            args = tuple(self._strung(op) if strung else [self.single(arg) for arg in op.args])
            if len(args) != len(op.args) or any(new is not old for new, old in zip(args, op.args, strict=True)):
                if op.kind == VIEW and op.function == "reshape":
                    self.below[op.out.serial] = op.args[0]
                op.out.op = op = Op(op.kind, op.function, args, op.params, op.out, op.node)
            self.steps.ops.append(op)

    # --- where values are -----------------------------------------------------------------------------

    def _home(self, value: Value) -> tuple[Nest, int, int] | None:
        """The loop, the place and the turn that make a value."""
        at = int(self.makers[value.serial]) if value.serial < len(self.makers) else -1
        which = int(np.searchsorted(self.starts, at, "right")) - 1
        if which < 0 or at >= self.nests[which].end:
            return None
        nest = self.nests[which]
        count, place = divmod(at - nest.start, nest.period)
        return nest, place, count

    def single(self, value: Value) -> Value:
        """A value of the recording as it is found now."""
        if value.op is None:
            return value
        known = self.singles.get(value.serial)
        if known is None:
            home = self._home(value)
            known = value
            if home is not None:
                nest, place, count = home
                key = (nest.start, place)
                known = self.totals[key] if key in self.totals else turn(self.steps, self.stacks[key], count)
            self.singles[value.serial] = known
        return known

    def gathered(self, values: Sequence[Value]) -> Value:
        """Values one for each turn as a stack: turns of other stacks as they lie there, the others copied."""
        if all(value.number is not None for value in values):
            return self.steps.array(np.array([np.full(value.shape, value.number) for value in values]))
        pieces: list[Value] = []
        for begin, end, run in self._runs(values):
            pieces.append(
                raised(self.steps, self.single(values[begin])) if run is None else turns(self.steps, *run, end - begin)
            )
        return joined(self.steps, pieces)

    def _runs(self, values: Sequence[Value]) -> list[tuple[int, int, tuple[Value, int, int] | None]]:
        """Values in pieces: turns of one stack, the first of them and the step, or else a single value."""
        at = self.makers[[value.serial for value in values]]
        which = np.searchsorted(self.starts, at, "right") - 1
        inside = (which >= 0) & (at < self.ends[which])
        place = (at - self.starts[which]) % self.periods[which]
        count = (at - self.starts[which]) // self.periods[which]
        moved = np.diff(count)
        along = inside[1:] & inside[:-1] & (np.diff(which) == 0) & (np.diff(place) == 0) & (moved != 0)
        found: list[tuple[int, int, tuple[Value, int, int] | None]] = []
        begin = 0
        while begin < len(values):
            key = (int(self.starts[which[begin]]), int(place[begin]))
            end, step = begin + 1, 1
            if not inside[begin] or key not in self.stacks:
                found.append((begin, end, None))
            else:
                if end < len(values) and along[begin]:
                    step = int(moved[begin])
                    steady = along[begin:] & (moved[begin:] == step)
                    end = begin + 1 + (len(steady) if steady.all() else int(steady.argmin()))
                found.append((begin, end, (self.stacks[key], int(count[begin]), step)))
            begin = end
        return found

    def _strung(self, op: Op) -> list[Value]:
        """What is joined, the turns of a stack that follow each other in one piece."""
        below = [self.below.get(arg.serial, arg) for arg in op.args]
        found: list[Value] = []
        for begin, end, run in self._runs(below):
            shapes = {arg.shape for arg in op.args[begin:end]}
            if run is None or len(shapes) > 1 or end - begin < FEWEST:
                found += [self.single(arg) for arg in op.args[begin:end]]
                continue
            (shape,), count, axis = shapes, end - begin, op.params
            cut = (count, *shape)
            stack = self.steps.view("reshape", turns(self.steps, *run, count), cut, cut)
            order = (*range(1, axis + 1), 0, *range(axis + 1, len(cut)))
            turned = self.steps.view("permute", stack, order, tuple([cut[one] for one in order]))
            whole = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
            found.append(self.steps.view("reshape", turned, whole, whole))
        return found

    # --- loops ------------------------------------------------------------------------------------------

    def _component(self, nest: Nest, group: Sequence[int]) -> None:
        """A step that all turns take without each other, or what they add up."""
        self.steps.node = nest.body[group[0]].node
        chain = nest.sum(group)
        if chain is None:
            (place,) = group
            self.stacks[nest.start, place] = self.all(nest, place)
            return
        total = self.single(nest.summand(chain[0][0], set(group)).values[0])
        for place, how in chain:
            total = self._total(nest, place, how, total, set(group))
        self.totals[nest.start, chain[-1][0]] = total

    def all(self, nest: Nest, place: int) -> Value:
        """A step of all turns at once."""
        op, reads = nest.body[place], nest.reads[place]
        if op.kind == VIEW and place in nest.varying:
            return windows(self.steps, self.single(op.args[0]), [one.params for one in nest.all(place)], op.out.shape)
        return lifted(self.steps, op, [self.operand(nest, read) for read in reads], nest.count)

    def operand(self, nest: Nest, read: Read) -> Operand:
        """What a step of all turns reads."""
        if read.kind == SAME:
            return self.single(read.values[0]), False
        if read.kind == LIST:
            return self.gathered(read.values), True
        stack = self.stacks[nest.start, read.place]
        if not read.distance:
            return stack, True
        initial = [] if not read.values else [self.gathered(read.values)]
        return joined(self.steps, [*initial, turns(self.steps, stack, 0, 1, nest.count - read.distance)]), True

    def _total(self, nest: Nest, place: int, how: str, first: Value, group: set[int]) -> Value:
        """What a sum over all turns gives, from where it begins."""
        op, reads = nest.body[place], nest.reads[place]
        own = reads.index(nest.summand(place, group))
        other, stacked = self.operand(nest, reads[1 - own])
        stack = other if stacked else repeated(self.steps, other, nest.count)
        if how == "parts":
            return self._parts(nest, place, first, stack)
        total = summed(self.steps, stack)
        if how == "part":
            return self.steps.make(ADDED, None, (first, total), op.params, op.out.shape, op.out.dtype)
        return self.steps.make(ENTRY, np.add, (first, total), None, op.out.shape, op.out.dtype)

    def _parts(self, nest: Nest, place: int, first: Value, stack: Value) -> Value:
        """Rows that are added to others in each turn, all at once."""
        op = nest.body[place]
        parts = [one.params[1] for one in nest.all(place)]
        (axis,) = [axis for axis, (one, other) in enumerate(zip(parts[0], parts[1], strict=True)) if one != other]
        start, step = parts[0][axis][1], parts[1][axis][1] - parts[0][axis][1]
        if step < 0:
            stack = turns(self.steps, stack, nest.count - 1, -1, nest.count)
            start, step = start + (nest.count - 1) * step, -step
        shape = op.args[1].shape
        thin = (nest.count, *shape[:axis], *shape[axis + 1 :])
        flat = self.steps.view("reshape", stack, thin, thin)
        order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
        rows = self.steps.view("permute", flat, order, (*shape[:axis], nest.count, *shape[axis + 1 :]))
        end = start + (nest.count - 1) * step + 1
        index = (*parts[0][:axis], ("slice", start, end, step), *parts[0][axis + 1 :])
        return self.steps.make(ADDED, None, (first, rows), (op.out.shape, index), op.out.shape, op.out.dtype)

    def _scan(self, nest: Nest, body: Body) -> None:
        """A recurrence, turn by turn; what it gives is found in a stack for each place."""
        self.steps.node = nest.body[body.places[0]].node
        inside = set(body.ops)
        others = [read for at, reads in enumerate(nest.reads) if at not in inside for read in reads]
        read_there = {read.place for read in others if read.kind == OWN}
        body.arrange(inside & (read_there | nest.beyond.keys()), self.steps.float_type)
        args: list[Value] = []
        for kind, given in body.given:
            value = self.single(given) if kind == ALL else self.operand(nest, given)[0]
            if value.number is not None:  # a step reads arrays: numbers among the operands are filled in
                value = self.steps.array(np.full(value.shape, value.number))
            args.append(value)
        body.given.clear()  # it holds the whole recording
        out = self.steps.make(SCAN, body, tuple(args), None, (body.size,), body.dtype)
        for place in body.places:
            if place in body.stored:
                self.stacks[nest.start, place] = self._stored(body, out, place)
        for place in body.places:
            if place in body.visible and place not in body.stored:
                self.stacks[nest.start, place] = self.all(nest, place)

    def _stored(self, body: Body, out: Value, place: int) -> Value:
        """The stack of a place in the result of a scan."""
        full = (body.count, *body.shapes[place])
        start, entries = body.offsets[place], prod(full)
        flat = self.steps.make(VIEW, "slice", (out,), (("slice", start, start + entries, 1),), (entries,), out.dtype)
        return self.steps.make(VIEW, "reshape", (flat,), full, full, out.dtype)
