"""A tape as steps: operations one by one, loops by the stages of `scan` on arrays whose first axis counts iterations.

What takes all iterations at once is recorded as any other operation is, and goes through the same passes. A group of
carries that need one another is one step, which gives the states before all iterations. Arrays of iterations stand in
the order of the iterations' numbers, also where a loop runs backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler.ir import CALL, RESHAPE, SLICE, RecordedSteps, live
from gradcli.execution.compiler.recording_namespace import OperationRecorder, batched, lead_of
from gradcli.execution.loops.cores import Core
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader
from gradcli.graph.types import Type

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gradcli.execution.compiler.ir import PlanValue
    from gradcli.execution.loops.scan import CarryGroup, Scan
    from gradcli.execution.node_table import NodeTable
    from gradcli.graph.node import Node

    Shape = tuple[int, ...]

UFUNCS = {"add": np.add, "and": np.logical_and, "or": np.logical_or}  # of carries that only accumulate


def record(
    tape: NodeTable,
    dtype: str,
    held: Mapping[str, Any] | None = None,
    points: tuple[Collection[str], int] | None = None,
) -> RecordedSteps:
    """The steps of a tape, in the order of its nodes, without those that no output needs.

    `held` gives leaves that stay as they are: arrays of constants, which may have one batch axis in front.
    `points` are the inputs whose first axis counts points, and their number; the steps then give the
    evaluator's zeros with their signs.
    """
    operations = OperationRecorder(dtype, faithful=points is not None)
    steps, xp = operations.steps, operations.xp
    values: dict[Node, PlanValue] = {}
    inputs = []
    for node in tape.nodes:
        primitive = node.primitive
        steps.node = node
        if primitive is CONSTANT:
            values[node] = operations.constant(node)
        elif primitive is DATA:
            values[node] = steps.array(xp.numbers(tape.data[node.params["digest"]], node.type.kind))
        elif primitive is LEAF and held and node.params["name"] in held:
            values[node] = steps.array(xp.numbers(held[node.params["name"]], node.type.kind))
        elif primitive is LEAF:
            own: Shape = (points[1],) if points is not None and node.params["name"] in points[0] else ()
            value = values[node] = steps.leaf(node, xp.kind_type(node.type.kind), own)
            inputs.append((node, value))
        elif node in tape.loops:
            scan = tape.loops[node]
            args = [values[arg] for arg in node.args]
            lead = lead_of(node, args) if held else ()
            if lead:
                read = operations.scanned(scan, args, lead)
            else:
                index = steps.array(np.arange(scan.count, dtype=xp.float_type))
                read = IterationStages(operations, scan, args, scan.count, index).record()
            values.update(zip(scan.readers, read, strict=True))
        elif not is_reader(node):
            args = [values[arg] for arg in node.args]
            values[node] = operations.value(node, args, lead_of(node, args) if held or points else ())
    outputs = [values[node] for node in tape.outputs]
    return RecordedSteps(live(steps.ops, outputs), inputs, outputs)


def record_iterations(scan: Scan, dtype: str, count: int, lead: Shape = ()) -> RecordedSteps:
    """The steps of some iterations of a loop alone, with the bits of the operations' `impl`s; all have batch axes.

    Inputs are the arguments of the loop, with the rows of these iterations, then the numbers of the iterations; outputs
    the carries that it reads, behind the iterations, and the values of its readers.
    """
    operations = OperationRecorder(dtype, exact=True)
    body, kind_type = scan.body, operations.xp.kind_type
    rows = range(len(body.carried), len(body.carried) + len(body.rows))
    args = [
        operations.steps.leaf(leaf, kind_type(leaf.type.kind), (count, *lead) if at in rows else lead)
        for at, leaf in enumerate(body.inputs)
    ]
    inputs = list(zip(body.inputs, args, strict=True))
    if body.index is not None:
        inputs.append((body.index, operations.steps.leaf(body.index, operations.xp.float_type, (count, *lead))))
    stages = IterationStages(operations, scan, args, count, inputs[-1][1], lead)
    read = stages.record()
    outputs = [*(stages.after[k] for k in scan.carries), *read]
    return RecordedSteps(live(operations.steps.ops, outputs), inputs, outputs)


# --- loops ------------------------------------------------------------------------------------------------------


class IterationStages:
    """The stages of some iterations of a loop in recording: `values` has the values by position, iterations in front.

    `args` are those of the loop, with the rows of these iterations; `index` are the numbers of the iterations, where
    the body reads them. All have the batch axes `lead`, behind the iterations. Iterations stand in the order of their
    numbers, also where the loop runs backwards. When they are recorded, `after` has the carries behind them.
    """

    def __init__(
        self,
        operations: OperationRecorder,
        scan: Scan,
        args: Sequence[PlanValue],
        count: int,
        index: PlanValue,
        lead: Shape = (),
    ) -> None:
        self.operations, self.steps = operations, operations.steps
        self.scan, self.body, self.split = scan, scan.body, scan.split()
        self.count, self.lead = count, lead
        states = len(self.body.carried)
        self.initial = {k: args[k] for k in scan.carries}
        self.values = dict(enumerate(args[states:], states))
        if self.body.index is not None:
            self.values[self.body.positions[self.body.index]] = index
        self.after: dict[int, PlanValue] = {}

    def record(self) -> list[PlanValue]:
        """The values of the readers."""
        constants = [at for at in self.scan.order if self.body.steps[at].primitive is CONSTANT]
        self._take([*constants, *self.split.still])
        for steps, group in self.split.stages:
            self._take(steps)
            if group is not None:
                self._group(group)
        results = []
        for node, at, end in zip(self.scan.readers, self.scan.stacked, self.scan.ends, strict=True):
            if at >= 0:
                results.append(self._column(at))
            elif node.params["carry"] in self.after:
                results.append(self.after[node.params["carry"]])
            else:
                results.append(self._last(self._column(end)) if end in self.split.varying else self.values[end])
        return results

    def _take(self, positions: Sequence[int]) -> None:
        self.operations.body(self.scan, positions, self.values, (self.count,), self.lead)

    def _group(self, group: CarryGroup) -> None:
        if group.accumulates is None:
            self._core(group)
            return
        ufunc, (k,) = UFUNCS[group.accumulates], group.carries
        first = self.initial[k]
        terms = self._column(group.reads[0])
        if k in self.split.stored or self.operations.exact:
            row = self.steps.view(RESHAPE, first, (1, *first.shape), (1, *first.shape))
            before = self.steps.join([row, self._part(self._ordered(terms), 0, self.count - 1)], 0)
            states = self.steps.make(CALL, ufunc.accumulate, (before,), None, terms.shape, terms.dtype)
            self.values[k] = self._ordered(states)
            self.after[k] = self.steps.entry(ufunc, self._last(self.values[k]), self._last(terms))
        else:
            self.after[k] = self.steps.entry(ufunc, first, self.steps.reduce(ufunc, terms, (0,)))

    def _core(self, group: CarryGroup) -> None:
        """One step: what the core reads, then the carries; it gives the states of each carry one after the other."""
        body, scan, split = self.body, self.scan, self.split
        store = not split.stored.isdisjoint(group.carries)
        core = Core(self.operations.xp, scan, group, self.count, store, self.operations.exact, self.lead)
        args = [self._column(at) for at in core.columns] + [self.values[at] for at in core.fixed]
        args += [self.initial[k] for k in core.carries]
        types = [body.steps[k].type for k in core.carries]
        before = (core.rows, *self.lead)
        lines = self.operations.line(core, args, [Type(type_.kind, before + type_.shape) for type_ in types])
        for k, states in zip(core.carries, lines, strict=True):
            self.after[k] = self._last(states)
            if store:
                self.values[k] = self._part(states, 1, core.rows) if scan.reverse else self._part(states, 0, self.count)

    def _column(self, at: int) -> PlanValue:
        """The values of a step in all iterations."""
        return batched(self.steps, self.values[at], (self.count, *self.lead), self.body.steps[at].shape)

    def _part(self, x: PlanValue, start: int, stop: int) -> PlanValue:
        index = ((SLICE, start, stop, 1), *((SLICE, 0, n, 1) for n in x.shape[1:]))
        return self.steps.view(SLICE, x, index, (stop - start, *x.shape[1:]))

    def _last(self, x: PlanValue) -> PlanValue:
        """What the last iteration gives."""
        at = 0 if self.scan.reverse else x.shape[0] - 1
        return self.steps.view(RESHAPE, self._part(x, at, at + 1), x.shape[1:], x.shape[1:])

    def _ordered(self, x: PlanValue) -> PlanValue:
        """The values of all iterations in the order in which they run; from that order, in the order of numbers."""
        if not self.scan.reverse:
            return x
        index = ((SLICE, None, None, -1), *((SLICE, 0, n, 1) for n in x.shape[1:]))
        return self.steps.view(SLICE, x, index, x.shape)
