"""Carries of a loop that need one another, turn by turn on arrays of NumPy.

Single numbers run as Python code printed for them (`scan_python`), or as machine code (`scan_numba`, extra `fast`).
Arrays run as the ufuncs that the operations' `impl`s are made of, which write into memory that all turns share; the
states go straight into the rows of their stacks. What cannot be recorded runs one operation after the other.
"""

from __future__ import annotations

from gradcli.execution import scan_numba
from gradcli.execution.namespaces import IEEE_DIFFERS, REFUSED, Unavailable
from gradcli.execution.plans.tracing import Operations, Unrecordable
from gradcli.execution.plans.values import live
from gradcli.execution.scan_linear import blocks_of
from gradcli.execution.scan_python import printed_core
from gradcli.execution.scan_turns import ArrayTurns
from gradcli.graph.node import CONSTANT, is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.execution.plans.values import Value
    from gradcli.execution.scan import Scan
    from gradcli.execution.scan_linear import Blocks
    from gradcli.execution.scan_split import Group

TURN = 8  # steps of printed code that a turn costs by itself


class Core:
    """A group of carries, and what it reads in each turn: `columns`, which differ from turn to turn, and `fixed`.

    An `exact` core gives the bits of the operations' `impl`s; any other one may replace reductions and products.
    """

    def __init__(self, xp: Any, scan: Scan, group: Group, varying: set[int], exact: bool = True) -> None:
        self.xp, self.scan, self.body, self.exact = xp, scan, scan.body, exact
        body = self.body
        self.carries, self.core = group.carries, group.core
        self.columns = [at for at in group.reads if at in varying]
        self.fixed = [at for at in group.reads if at not in varying]
        self.ends = [body.positions[body.nexts[k]] for k in self.carries]
        self.order = sorted({*group.core, *group.constants})
        self.done = 0  # steps of all turns so far
        inside = [body.steps[at] for at in (*self.carries, *self.core, *group.reads)]
        self.printed: Any = None
        if xp.dtype == "float64" and not any(step.shape or is_reader(step) for step in inside):
            try:
                self.printed = printed_core(body, self.order, self.carries, self.columns, self.fixed)
            except Unavailable:
                self.printed = None
        self.compiled: Any = None
        self.tried = False  # to compile it
        self.once = False  # then no machine code is made of arrays
        self._turns: ArrayTurns | None = None
        self._blocks: Blocks | None = None
        self._lanes: Any = None
        self._prepared = False

    @property
    def linear(self) -> bool:
        """Whether the turns run in blocks side by side."""
        return self._blocks is not None

    @property
    def native(self) -> bool:
        """Whether the turns run as machine code."""
        return self._lanes is not None or self.compiled is not None

    def run(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int, store: bool
    ) -> tuple[Sequence[Any] | None, Sequence[Any]]:
        """The states before each turn, by carry, if they are to be stored; and those after the last turn."""
        if self.printed is not None:
            self._count(turns)
            if self.compiled is not None:
                return self._on_machine(columns, fixed, before, turns)
            try:
                stacks, after = self.printed.run(self.xp, columns, fixed, before, turns, store)
            except IEEE_DIFFERS:
                pass  # NumPy says what IEEE arithmetic gives
            else:
                return self._typed(stacks, after)
        if not self._prepared:
            self._prepare(turns)
        if self._lanes is not None:
            return self._lanes.run(columns, fixed, before, turns)  # type: ignore[no-any-return]
        if self._blocks is not None:
            solved = self._blocks.run(columns, fixed, before, turns)
            if solved is not None:
                return solved
        if self._turns is not None:
            try:
                return self._turns.run(columns, fixed, before, turns, store)
            except REFUSED:
                pass  # step by step, to say which of them it was
        return self._walked(columns, fixed, before, turns, store)

    def _typed(self, stacks: Any, after: Sequence[Any]) -> tuple[Sequence[Any] | None, Sequence[Any]]:
        """States of single numbers in the types of their carries."""
        kinds = [self.xp.kind_type(self.body.steps[k].type.kind) for k in self.carries]
        last = [kind(value) for kind, value in zip(kinds, after, strict=True)]
        if stacks is None:
            return None, last
        return [one.astype(kind, copy=False) for one, kind in zip(stacks, kinds, strict=True)], last

    def _count(self, turns: int) -> None:
        """Compile the turns once enough of them have run; a turn costs as much as some steps, and so does a column."""
        self.done += turns * (len(self.core) + len(self.columns) + TURN)
        if self.done >= scan_numba.WORK and not self.tried:
            self.tried = True
            self.compiled = scan_numba.compiled_core(self.body, self.order, self.carries, self.columns, self.fixed)

    def _on_machine(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int
    ) -> tuple[Sequence[Any] | None, Sequence[Any]]:
        library = self.xp.library
        states = library.empty((turns + 1, len(before)))
        states[0] = before
        table = library.empty((len(columns), turns))
        for place, column in enumerate(columns):
            table[place] = column
        self.compiled(turns, states, table, library.array(fixed, dtype=library.float64))
        return self._typed(states[:-1].T, states[-1])

    def _walked(
        self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int, store: bool
    ) -> tuple[Sequence[Any] | None, Sequence[Any]]:
        """One operation after the other."""
        body, xp, work = self.body, self.xp, self.scan.work(self.xp)
        library = xp.library
        steps = work.chosen(self.core)
        local = work.start.copy()
        for places, values in ((self.fixed, fixed), (self.carries, before)):
            for place, value in zip(places, values, strict=True):
                local[place] = value
        stacks = [
            library.empty((turns if store else 0, *body.steps[k].shape), dtype=xp.kind_type(body.steps[k].type.kind))
            for k in self.carries
        ]
        at = 0
        try:
            for turn in range(turns):
                for k, stack in zip(self.carries, stacks, strict=True) if store else ():
                    stack[turn] = local[k]
                for place, column in zip(self.columns, columns, strict=True):
                    local[place] = column[turn]
                for impl, at, operands, params, aligned in steps:
                    xs: Any = [local[place] for place in operands]
                    if aligned:
                        xs = xp.aligned(xs, params["ranks"])
                    local[at] = impl(xp, *xs, **params)
                after = [local[end] for end in self.ends]
                for k, value in zip(self.carries, after, strict=True):
                    local[k] = value
        except REFUSED as reason:
            vars(reason).setdefault("node", work.node_at(at))
            raise
        return stacks if store else None, [local[k] for k in self.carries]

    # --- arrays --------------------------------------------------------------------------------------------------

    def _prepare(self, turns: int) -> None:
        """Decide in the first run, so that all runs give the same bits."""
        self._turns = self._record()
        if self._turns is not None and not self.exact:
            self._lanes = None if self.once else scan_numba.compiled_lanes(self._turns, turns)
            self._blocks = blocks_of(self._turns, turns) if self._lanes is None else None
        self._prepared = True

    def _record(self) -> ArrayTurns | None:
        """The turns as ufuncs; None where something in them cannot be recorded."""
        body, xp = self.body, self.xp
        if xp.dtype not in ("float64", "float32") or any(is_reader(body.steps[at]) for at in self.core):
            return None
        operations = Operations(xp.dtype, faithful=self.exact)
        found: dict[int, Value] = {}
        for at in (*self.carries, *self.columns, *self.fixed):
            step = body.steps[at]
            found[at] = operations.steps.leaf(step, xp.kind_type(step.type.kind))
        leaves = list(found.values())
        for at in self.order:
            step = body.steps[at]
            if step.primitive is CONSTANT:
                found[at] = operations.constant(step)
                continue
            args = [found[body.positions[arg]] for arg in step.args]
            make = operations.value if step.primitive.pointwise or not self.exact else operations.call
            try:
                found[at] = make(step, args)
            except (Unrecordable, Unavailable):
                return None
        count = len(self.carries), len(self.columns)
        moving = leaves[: sum(count)]
        nexts = [found[end] for end in self.ends]
        return ArrayTurns(
            live(operations.steps.ops, nexts), moving[: count[0]], moving[count[0] :], leaves[sum(count) :], nexts
        )
