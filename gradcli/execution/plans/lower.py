"""A tape as steps: operations one by one, loops by the stages of `scan_numpy` on arrays whose first axis counts turns.

What takes all turns at once is recorded as any other operation is, and goes through the same passes. A group of carries
that need one another is one step, which gives the states before all turns. Arrays of turns stand in the order of the
turns' numbers, also where a loop runs backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.ir import SCAN, VIEW, Recording, live
from gradcli.execution.plans.tracing import Operations, Unrecordable, lead_of, led
from gradcli.execution.scan_numpy import CORE, SHIFTED, Core
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans.ir import Value
    from gradcli.execution.scan import Scan
    from gradcli.execution.scan_numpy import Group
    from gradcli.graph.node import Node

    Shape = tuple[int, ...]


def record(
    tape: Tape,
    dtype: str,
    held: Mapping[str, Any] | None = None,
    points: tuple[Collection[str], int] | None = None,
) -> Recording:
    """The steps of a tape, in the order of its nodes, without those that no output needs.

    `held` gives leaves that stay as they are: arrays of constants, which may have one batch axis in front.
    `points` names the inputs whose first axis counts points, and says how many there are; the steps then give the
    evaluator's zeros with their signs.
    """
    operations = Operations(dtype, faithful=points is not None)
    steps, xp = operations.steps, operations.xp
    found: dict[Node, Value] = {}
    inputs = []
    for node in tape.nodes:
        primitive = node.primitive
        steps.node = node
        if primitive is CONSTANT:
            found[node] = operations.constant(node)
        elif primitive is DATA:
            found[node] = steps.array(xp.numbers(tape.data[node.params["digest"]], node.type.kind))
        elif primitive is LEAF and held and node.params["name"] in held:
            found[node] = steps.array(xp.numbers(held[node.params["name"]], node.type.kind))
        elif primitive is LEAF:
            lead = (points[1],) if points is not None and node.params["name"] in points[0] else ()
            value = found[node] = steps.leaf(node, xp.kind_type(node.type.kind), lead)
            inputs.append((node, value))
        elif node in tape.loops:
            scan, _ = tape.loops[node]
            args = [found[arg] for arg in node.args]
            if held and lead_of(node, args):
                raise Unrecordable("a batch axis in front of a loop")
            read = loop_steps(operations, scan, args)
            found.update(zip(scan.readers, read, strict=True))
        elif not is_reader(node):
            args = [found[arg] for arg in node.args]
            found[node] = operations.value(node, args, lead_of(node, args) if held or points else ())
    outputs = [found[node] for node in tape.outputs]
    return Recording(live(steps.ops, outputs), inputs, outputs)


# --- loops ------------------------------------------------------------------------------------------------------


def loop_steps(operations: Operations, scan: Scan, args: Sequence[Value]) -> list[Value]:
    """The values of the readers of a loop; raises Unrecordable for what no step is."""
    return _Stages(operations, scan, args).values()


class _Stages:
    """The stages of one loop while they are recorded; `found` has the value of each position, turns in front."""

    def __init__(self, operations: Operations, scan: Scan, args: Sequence[Value]) -> None:
        self.operations, self.steps = operations, operations.steps
        self.scan, self.body, self.split = scan, scan.body, scan.split()
        self.initial = {k: args[k] for k in scan.carries}
        self.found = dict(enumerate(args))
        for k in range(len(self.body.carried)):
            del self.found[k]
        if self.body.index is not None:
            turns = np.arange(scan.count, dtype=operations.xp.float_type)
            self.found[self.body.positions[self.body.index]] = self.steps.array(turns)
        self.after: dict[int, Value] = {}  # carries after the last turn

    def values(self) -> list[Value]:
        """The values of the readers."""
        for at in self.split.order:
            if self.body.steps[at].primitive is CONSTANT:
                self.found[at] = self.operations.constant(self.body.steps[at])
        self._take(self.split.still)
        for steps, group in self.split.stages:
            self._take(steps)
            if group is not None:
                self._group(group)
        given = []
        for node, at, end in zip(self.scan.readers, self.scan.stacked, self.scan.ends, strict=True):
            if at >= 0:
                given.append(self._column(at))
            elif node.params["carry"] in self.after:
                given.append(self.after[node.params["carry"]])
            else:
                given.append(self._last(self._column(end)) if end in self.split.varying else self.found[end])
        return given

    def _take(self, positions: Sequence[int]) -> None:
        body = self.body
        for at in positions:
            node = body.steps[at]
            if is_reader(node):
                raise Unrecordable("a loop inside of a loop")
            lead = (self.scan.count,) if at in self.split.varying else ()
            args = [self.found[body.positions[arg]] for arg in node.args]
            self.found[at] = self.operations.value(node, args, lead)

    def _group(self, group: Group) -> None:
        if group.kind == CORE:
            self._core(group)
            return
        (k,) = group.carries
        first = self.initial[k]
        if group.kind == SHIFTED:
            after = self._column(group.reads[0])
            self.after[k] = self._last(after)
            if k in self.split.stored:
                self.found[k] = self._before(first, after)
            return
        if not group.reads:
            raise Unrecordable("a carry that is doubled in each turn")
        terms = self._column(group.reads[0])
        if k not in self.split.stored:
            self.after[k] = self.steps.entry(np.add, first, self.steps.reduce(np.add, terms, (0,)))
            return
        sums = accumulated_back if self.scan.reverse else accumulated
        states = self.found[k] = self.steps.call(sums, None, (self._before(first, terms),), terms.shape, terms.dtype)
        self.after[k] = self.steps.entry(np.add, self._last(states), self._last(terms))

    def _core(self, group: Group) -> None:
        """One step: what the core reads, then the carries; it gives the states of each carry one after the other."""
        body, scan, split = self.body, self.scan, self.split
        core = Core(self.operations.xp, scan, group, split.varying, exact=False)
        store = not split.stored.isdisjoint(core.carries)
        kinds = {body.steps[k].type.kind for k in core.carries}
        if len(kinds) > 1:
            raise Unrecordable("carries of several types")
        dtype = self.operations.xp.kind_type(kinds.pop())
        given = [self._column(at) for at in core.columns] + [self.found[at] for at in core.fixed]
        given += [self.initial[k] for k in core.carries]
        # a step reads arrays: numbers among the operands are filled in
        args = [one if one.number is None else self.steps.array(np.full(one.shape, one.number)) for one in given]
        rows = scan.count + 1 if store else 1
        recurrence = Recurrence(core, scan.count, scan.reverse, store)
        out = self.steps.make(SCAN, recurrence, tuple(args), None, (rows * recurrence.size,), dtype)
        start = 0
        for k in core.carries:
            shape = body.steps[k].shape
            entries = rows * body.steps[k].type.size
            line = self.steps.make(
                VIEW, "slice", (out,), (("slice", start, start + entries, 1),), (entries,), out.dtype
            )
            states = self.steps.make(VIEW, "reshape", (line,), (rows, *shape), (rows, *shape), out.dtype)
            start += entries
            self.after[k] = self._last(states)
            if store:
                self.found[k] = self._part(states, 1, rows) if scan.reverse else self._part(states, 0, rows - 1)

    def _column(self, at: int) -> Value:
        """The values of a step in all turns."""
        return led(self.steps, self.found[at], (self.scan.count,), self.body.steps[at].shape)

    def _part(self, x: Value, start: int, stop: int) -> Value:
        index = (("slice", start, stop, 1), *(("slice", 0, n, 1) for n in x.shape[1:]))
        return self.steps.view("slice", x, index, (stop - start, *x.shape[1:]))

    def _last(self, x: Value) -> Value:
        """What the last turn gives."""
        at = 0 if self.scan.reverse else x.shape[0] - 1
        return self.steps.view("reshape", self._part(x, at, at + 1), x.shape[1:], x.shape[1:])

    def _before(self, first: Value, after: Value) -> Value:
        """The states before all turns, from the first one and those after them."""
        shape = (1, *first.shape)
        row = self.steps.view("reshape", first, shape, shape)
        count = self.scan.count
        if self.scan.reverse:
            return self.steps.join([self._part(after, 1, count), row], 0)
        return self.steps.join([row, self._part(after, 0, count - 1)], 0)


def accumulated(x: Any) -> Any:
    """The sums of the rows of an array up to each of them."""
    return np.add.accumulate(x, axis=0)


def accumulated_back(x: Any) -> Any:
    """The same from the last row on."""
    return np.add.accumulate(x[::-1], axis=0)[::-1]


class Recurrence:
    """The function of a step that runs a core through all turns."""

    def __init__(self, core: Core, count: int, reverse: bool, store: bool) -> None:
        self.core, self.count, self.reverse, self.store = core, count, reverse, store
        self.shapes = [core.body.steps[k].shape for k in core.carries]
        self.sizes = [core.body.steps[k].type.size for k in core.carries]
        self.size = sum(self.sizes)  # entries of a state

    def kernel(self) -> Any:
        """A function of what is read, the carries before the first turn, and the result."""
        return self

    def __call__(self, *arrays: Any) -> None:
        core, out = self.core, arrays[-1]
        ends = len(core.columns), len(core.columns) + len(core.fixed)
        columns, fixed, before = arrays[: ends[0]], arrays[ends[0] : ends[1]], arrays[ends[1] : -1]
        if self.reverse:
            columns = tuple([column[::-1] for column in columns])
        stacks, after = core.run(columns, fixed, before, self.count, self.store)
        if not self.store:
            stacks = None
        start = 0
        for place, (shape, size) in enumerate(zip(self.shapes, self.sizes, strict=True)):
            rows = self.count + 1 if stacks is not None else 1
            states = out[start : start + rows * size].reshape(rows, *shape)
            start += rows * size
            if stacks is not None:
                states[1 if self.reverse else 0 :][: self.count] = stacks[place][:: -1 if self.reverse else 1]
            states[0 if self.reverse else -1] = after[place]

    def __repr__(self) -> str:
        return f"{self.count} turns of {len(self.core.core)} steps"
