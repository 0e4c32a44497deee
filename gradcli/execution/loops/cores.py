"""Carries that need one another, which run iteration by iteration: single numbers and arrays.

Single numbers run as Python code printed for them (`emit_python`), or as machine code (`emit_numba`, extra `fast`).
Arrays run as the ufuncs that the operations' `impl`s are made of (`array_iterations.py`).
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import emit_numba
from gradcli.execution.compiler.ir import live
from gradcli.execution.compiler.recording_namespace import OperationRecorder
from gradcli.execution.emit_python import printed_core
from gradcli.execution.generated import in_background
from gradcli.execution.loops.array_iterations import ArrayIterations
from gradcli.execution.namespaces import IEEE_DIFFERS, Unavailable
from gradcli.graph.node import is_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.compiler.ir import PlanValue
    from gradcli.execution.loops.scan import CarryGroup, Scan
    from gradcli.graph.types import Shape

ITERATION = 8  # steps of printed code that an iteration costs by itself


class Core:
    """A group of carries, and what it reads in each iteration: `columns`, which differ between iterations, and `fixed`.

    It is the function of a step: called with the columns, the fixed values, the carries before the first of `count`
    iterations, and a line, which it fills with the states of one carry after the other. These are all states, one more
    than iterations, if it is to `store` them, else those after the last iteration. An `exact` core gives the bits of
    the operations' `impl`s; any other one may replace reductions and products.
    """

    def __init__(
        self, xp: Any, scan: Scan, group: CarryGroup, count: int, store: bool, exact: bool = False, lead: Shape = ()
    ) -> None:
        self.xp, self.scan, self.count, self.store, self.exact = xp, scan, count, store, exact
        self.lead = lead  # batch axes of all values
        body = self.body = scan.body
        self.carries, self.core = group.carries, group.core
        varying = scan.split().varying
        self.columns = [at for at in group.reads if at in varying]
        self.fixed = [at for at in group.reads if at not in varying]
        self.order = sorted({*group.core, *group.constants})
        self.done = 0  # steps of all iterations so far
        inside = [body.steps[at] for at in (*self.carries, *self.core, *group.reads)]
        self.printed: Any = None
        if xp.dtype == "float64" and not lead and not any(step.shape or is_reader(step) for step in inside):
            with suppress(Unavailable):
                self.printed = printed_core(body, self.order, self.carries, self.columns, self.fixed)
        self.compiled: emit_numba.CompiledLoop | None = None
        self.tried = False  # to compile it
        self.once = False  # then no machine code is made of arrays
        self._iterations: ArrayIterations | None = None
        self._native: emit_numba.CompiledLoop | None = None

    def __repr__(self) -> str:
        return f"{self.count} iterations of {len(self.core)} steps"

    @property
    def native(self) -> bool:
        """Whether the iterations run as machine code."""
        return self._native is not None or self.compiled is not None

    @property
    def rows(self) -> int:
        """How many states of each carry there are."""
        return self.count + 1 if self.store else 1

    def __call__(self, *arrays: Any) -> None:
        ends, back = (len(self.columns), len(self.columns) + len(self.fixed)), -1 if self.scan.reverse else 1
        columns = [column[::back] for column in arrays[: ends[0]]]
        states, stop = [], 0
        for k in self.carries:
            type_ = self.body.steps[k].type
            shape = (self.rows, *self.lead, *type_.shape)
            start, stop = stop, stop + prod(shape)
            line = arrays[-1][start:stop].reshape(shape)[::back]
            dtype = self.xp.kind_type(type_.kind)
            states.append((line, line if line.dtype == dtype else np.empty(line.shape, dtype)))
        self.run(columns, arrays[ends[0] : ends[1]], arrays[ends[1] : -1], [own for _, own in states])
        for line, own in states:
            if own is not line:
                line[...] = own

    def run(self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], states: Sequence[Any]) -> None:
        """Fill the states of each carry, those behind the last iteration at the end; all in the order of running."""
        if self.printed is not None:
            self._count()
            if self.compiled is not None:
                return _fill(states, *self.compiled.run(columns, fixed, before, self.count))
            try:
                results = self.printed(columns, fixed, before, self.count, self.store)
            except IEEE_DIFFERS:
                pass  # NumPy says what IEEE arithmetic gives
            else:
                return _fill(states, *results)
        if self._iterations is None:  # decided in the first run, so that all runs give the same bits
            self._iterations = self._record()
            if not self.exact and not self.once:
                self._native = emit_numba.compiled_iterations(self._iterations, self.count)
        if self._native is not None:
            return _fill(states, *self._native.run(columns, fixed, before, self.count))
        return self._iterations.run(columns, fixed, before, self.count, states)

    def _count(self) -> None:
        """Compile the iterations in a thread, from a second run on in which enough have run, or before a long run.

        One costs as much as some steps, and so does a column. The machine code gives the same bits.
        """
        work = self.count * (len(self.core) + len(self.columns) + ITERATION)
        long, again = work >= emit_numba.LONG_WORK, self.done > 0 and self.done + work >= emit_numba.CORE_WORK
        self.done += work
        if (long or again) and not self.tried:
            self.tried = True
            compiling = in_background(self._compile)
            if long:
                compiling.join()

    def _compile(self) -> None:
        self.compiled = emit_numba.compiled_core(self.body, self.order, self.carries, self.columns, self.fixed)

    def _record(self) -> ArrayIterations:
        """The iterations as ufuncs."""
        body, xp = self.body, self.xp
        operations = OperationRecorder(xp.dtype, faithful=self.exact, exact=self.exact)
        values: dict[int, PlanValue] = {}
        for at in (*self.carries, *self.columns, *self.fixed):
            step = body.steps[at]
            values[at] = operations.steps.leaf(step, xp.kind_type(step.type.kind), self.lead)
        leaves = list(values.values())
        operations.body(self.scan, self.order, values, lead=self.lead)
        count = len(self.carries), len(self.columns)
        moving = leaves[: sum(count)]
        nexts = [values[body.positions[body.nexts[k]]] for k in self.carries]
        return ArrayIterations(
            live(operations.steps.ops, nexts), moving[: count[0]], moving[count[0] :], leaves[sum(count) :], nexts
        )


def _fill(states: Sequence[Any], before: Any, after: Sequence[Any]) -> None:
    """Fill in the states before each iteration, if there is room for all, and those after the last iteration."""
    for place, own in enumerate(states):
        if len(own) > 1:
            own[:-1] = before[place]
        own[-1] = after[place]
