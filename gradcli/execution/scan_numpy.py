"""Loops on NumPy's arrays, one block of turns after the other: each stage of a `Split` for a block at once.

Carries that need one another run turn by turn. Single numbers run as Python code printed for them (`emit_python`), or
as machine code (`plans/emit_numba.py`, extra `fast`). Arrays run as the ufuncs that the operations' `impl`s are made
of, which write into memory that all turns share; the states go straight into the rows of their stacks. What cannot be
recorded runs one operation after the other.
"""

from __future__ import annotations

from typing import NamedTuple

from gradcli.execution.emit_python import printed_core
from gradcli.execution.namespaces import IEEE_DIFFERS, REFUSED, Unavailable
from gradcli.execution.plans import emit_numba
from gradcli.execution.plans.ir import live
from gradcli.execution.plans.tracing import Operations, Unrecordable
from gradcli.execution.scan_turns import ArrayTurns
from gradcli.graph.loop import readers_by_loop
from gradcli.graph.node import CONSTANT, LEAF, is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.execution.plans.ir import Value
    from gradcli.execution.scan import Scan
    from gradcli.graph.loop import Body

BLOCK_ENTRIES = 1 << 19  # of all steps that take a block of turns at once
MOST_TURNS = 1 << 13  # in a block
RUNNING_SUM = 1 << 12  # entries of a state, up to which all states of a sum are made by one call
TURN = 8  # steps of printed code that a turn costs by itself

# --- loop distribution ------------------------------------------------------------------------------------------
#
# The carries of a body depend on each other in groups. A group whose carries need one another runs turn by turn; a
# carry that only adds up is a running sum, and one that is made from other values is these, one turn later. All other
# steps take all turns at once: those that need no carry before the groups, those that read the states of all turns
# after them. Of a group only its states are stored; what others read of its steps is computed again, for all turns.
# (R. Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, 1987.)

SHIFTED, SUMMED, CORE = "shifted", "summed", "core"


class Group(NamedTuple):
    """Carries that need one another, and the positions of the steps between them.

    `reads` is what they read in each turn beside constants: the value that is shifted or added, or all that a core
    reads; nothing for a carry that is added to itself.
    """

    kind: str
    carries: tuple[int, ...]
    core: tuple[int, ...]
    reads: tuple[int, ...]
    constants: tuple[int, ...] = ()


class Stage(NamedTuple):
    """The positions of steps that take all turns at once, then a group that reads them."""

    steps: tuple[int, ...]
    group: Group | None


class Split:
    """The stages of the loop that computes the steps `order` of a body and reads `carries`.

    `varying` are the positions of what differs from turn to turn, `still` those of the other steps, `stored` the
    carries whose states before all turns are read. The last stage has no group and gives `outputs`.
    """

    def __init__(self, body: Body, order: Sequence[int], carries: Sequence[int], outputs: Iterable[int]) -> None:
        self.body, self.order, self.carries = body, order, carries
        self.states = len(body.carried)
        loops = readers_by_loop([body.steps[at] for at in order])
        self.members = {body.positions[node]: group for group in loops.values() for node in group}
        self.direct: dict[int, int] = {}  # the carries that each step reads within the turn, as bits
        self.varying: set[int] = set()
        self._follow()
        self.stored: set[int] = set()
        self.still: list[int] = []
        self._scheduled: set[int] = set()
        self.stages = [self._stage(*group) for group in self._groups()]
        self.stages.append(Stage(self._before(outputs), None))

    def _follow(self) -> None:
        body = self.body
        fixed = range(self.states + len(body.rows), len(body.inputs))
        for at in self.order:
            step = body.steps[at]
            if at < self.states:
                self.direct[at] = 1 << at
                self.varying.add(at)
                continue
            operands = [body.positions[arg] for arg in step.args]
            self.direct[at] = 0
            for place in operands:
                self.direct[at] |= self.direct[place]
            if (step.primitive is LEAF and at not in fixed) or not self.varying.isdisjoint(operands):
                self.varying.add(at)

    def _groups(self) -> list[tuple[list[int], list[int]]]:
        """Carries that need one another, with the positions of the steps between them, in an order that can run."""
        body = self.body
        ends = {k: body.positions[body.nexts[k]] for k in self.carries}
        reach = {k: self.direct[end] for k, end in ends.items()}
        changed = True
        while changed:
            changed = False
            for k, mask in reach.items():
                wider = mask
                for j in reach:
                    if mask >> j & 1:
                        wider |= reach[j]
                if wider != mask:
                    reach[k], changed = wider, True
        groups: dict[int, list[int]] = {}
        for k in reach:
            first = min([j for j in reach if j == k or (reach[j] >> k & 1 and reach[k] >> j & 1)])
            groups.setdefault(first, []).append(k)
        found = []
        for _, carries in sorted(groups.items(), key=lambda one: (reach[one[0]] | 1 << one[0]).bit_count()):
            mask = sum([1 << k for k in carries])
            core: set[int] = set()
            pending = [ends[k] for k in carries]
            while pending:
                at = pending.pop()
                if at not in core and at >= self.states and self.direct[at] & mask:
                    core.add(at)
                    pending += [body.positions[arg] for arg in body.steps[at].args]
            found.append((carries, sorted(core)))
        return found

    def _stage(self, carries: list[int], core: list[int]) -> Stage:
        body = self.body
        k = carries[0]
        if not core and len(carries) == 1:
            end = body.positions[body.nexts[k]]
            return Stage(self._before([end]), Group(SHIFTED, (k,), (), (end,)))
        outside = {body.positions[arg] for at in core for arg in body.steps[at].args} - {*carries, *core}
        constants = {at for at in outside if body.steps[at].primitive is CONSTANT}
        before = self._before(outside - constants)
        if len(core) == len(carries) == 1 and body.steps[core[0]].primitive.name == "add":
            return Stage(before, Group(SUMMED, (k,), tuple(core), tuple(outside)))
        reads = tuple(sorted(outside - constants))
        return Stage(before, Group(CORE, tuple(carries), tuple(core), reads, tuple(sorted(constants))))

    def _before(self, positions: Iterable[int]) -> tuple[int, ...]:
        """The steps that give these for all turns, in order, without those that earlier stages have given."""
        fresh: set[int] = set()
        pending = list(positions)
        while pending:
            at = pending.pop()
            if at in self._scheduled:
                continue
            self._scheduled.add(at)
            step = self.body.steps[at]
            if at < self.states:
                self.stored.add(at)
            elif step.args:
                fresh.add(at)
                pending += [self.body.positions[arg] for arg in step.args]
                if at in self.members:  # all readers of a loop at once
                    pending += [self.body.positions[reader] for reader in self.members[at]]
        self.still += sorted(fresh - self.varying)
        return tuple(sorted(fresh & self.varying))


# --- cores ----------------------------------------------------------------------------------------------------


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
        self._native: Any = None
        self._prepared = False

    @property
    def native(self) -> bool:
        """Whether the turns run as machine code."""
        return self._native is not None or self.compiled is not None

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
        if self._native is not None:
            return self._native.run(columns, fixed, before, turns)  # type: ignore[no-any-return]
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
        if self.done >= emit_numba.CORE_WORK and not self.tried:
            self.tried = True
            self.compiled = emit_numba.compiled_core(self.body, self.order, self.carries, self.columns, self.fixed)

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
        for turn in range(turns):
            for k, stack in zip(self.carries, stacks, strict=True) if store else ():
                stack[turn] = local[k]
            for place, column in zip(self.columns, columns, strict=True):
                local[place] = column[turn]
            work.take(steps, local)
            after = [local[end] for end in self.ends]
            for k, value in zip(self.carries, after, strict=True):
                local[k] = value
        return stacks if store else None, [local[k] for k in self.carries]

    # --- arrays --------------------------------------------------------------------------------------------------

    def _prepare(self, turns: int) -> None:
        """Decide in the first run, so that all runs give the same bits."""
        self._turns = self._record()
        if self._turns is not None and not self.exact and not self.once:
            self._native = emit_numba.compiled_turns(self._turns, turns)
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


# --- stages -----------------------------------------------------------------------------------------------------


class Staged:
    """The stages of a scan whose arguments have no batch axes, made once."""

    def __init__(self, scan: Scan, xp: Any) -> None:
        self.scan, self.xp = scan, xp
        body = self.body = scan.body
        self.work = scan.work(xp)
        self.index = -1 if body.index is None else body.positions[body.index]
        split = scan.split()
        self.varying, self.stored = split.varying, split.stored
        self.still = self.work.chosen(split.still)
        self.stages = [(self.work.chosen(stage.steps), self._group(stage.group)) for stage in split.stages]
        self.carry_of = [node.params.get("carry", -1) for node in scan.readers]
        weight = sum([self._weight(step[1]) for steps, _ in self.stages for step in steps])
        weight += sum([body.steps[at].type.size for at in self.stored])
        self.length = max(1, min(scan.count, MOST_TURNS, BLOCK_ENTRIES // max(weight, 1)))

    def _weight(self, at: int) -> int:
        """The entries that a step takes for each turn."""
        steps = self.body.steps
        if at < len(steps):
            return steps[at].type.size
        inner = self.work.leaders[at].params["body"]
        return sum([step.type.size for step in inner.steps])

    def _group(self, group: Group | None) -> Any:
        if group is None:
            return None
        if group.kind == CORE:
            return Turns(self, Core(self.xp, self.scan, group, self.varying))
        (k,), at = group.carries, group.reads[0] if group.reads else -1
        return Shifted(self, k, at) if group.kind == SHIFTED else Summed(self, k, at)

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The values of the readers."""
        scan, body, library = self.scan, self.body, self.xp.library
        values: list[Any] = self.work.start.copy()
        rows = range(len(body.carried), len(body.carried) + len(body.rows))
        values[rows.stop : len(args)] = args[rows.stop :]
        self.work.take(self.still, values)
        state = {k: args[k] for k in scan.carries}
        outputs = [at for at in dict.fromkeys(scan.stacked) if at >= 0]
        stacks = {
            at: library.empty((scan.count, *body.steps[at].shape), dtype=self.xp.kind_type(body.steps[at].type.kind))
            for at in outputs
        }
        for start in range(0, scan.count, self.length):
            stop = min(start + self.length, scan.count)
            low, high = (scan.count - stop, scan.count - start) if scan.reverse else (start, stop)
            turns = slice(low, high) if not scan.reverse else slice(high - 1, low - 1 if low else None, -1)
            for at in rows:
                values[at] = args[at][turns]
            if self.index >= 0:
                values[self.index] = library.arange(low, high, dtype=self.xp.float_type)[:: -1 if scan.reverse else 1]
            for steps, group in self.stages:
                self.work.take(steps, values)
                if group is not None:
                    group.run(values, state, stop - start)
            for at, stack in stacks.items():
                stack[turns] = values[at]
        found = []
        for at, end, k in zip(scan.stacked, scan.ends, self.carry_of, strict=True):
            if at >= 0:
                found.append(stacks[at])
            elif k in state:
                found.append(state[k])
            else:
                value = values[end]  # of an inner loop, some readers may be the same in all turns
                by_turn = end in self.varying and value.ndim > len(body.steps[end].shape)
                found.append(value[-1] if by_turn else value)
        return [one.copy() if getattr(one, "base", None) is not None else one for one in found]

    def column(self, values: Sequence[Any], at: int, turns: int) -> Any:
        """The values of a step in all turns of a block."""
        shape = (turns, *self.body.steps[at].shape)
        return values[at] if values[at].shape == shape else self.xp.library.broadcast_to(values[at], shape)


class Shifted:
    """A carry that its own value before the turn has no part in: it is a value of the turn before."""

    def __init__(self, owner: Staged, carry: int, end: int) -> None:
        self.owner, self.carry, self.end = owner, carry, end

    def run(self, values: list[Any], state: dict[int, Any], turns: int) -> None:
        """Give the states of a block of turns, and the one after it."""
        owner, k = self.owner, self.carry
        after = owner.column(values, self.end, turns)
        if k in owner.stored:
            states = owner.xp.library.empty(after.shape, dtype=after.dtype)
            states[0] = state[k]
            states[1:] = after[:-1]
            values[k] = states
        state[k] = after[-1]


class Summed:
    """A carry to which a value is added in each turn, in the order of the turns; twice itself for position -1."""

    def __init__(self, owner: Staged, carry: int, term: int) -> None:
        self.owner, self.carry, self.term = owner, carry, term
        self.short = owner.body.steps[carry].type.size <= RUNNING_SUM

    def run(self, values: list[Any], state: dict[int, Any], turns: int) -> None:
        """Give the states of a block of turns, and the one after it."""
        owner, k, library = self.owner, self.carry, self.owner.xp.library
        stored = k in owner.stored
        if self.term < 0 or not (stored or self.short):
            term = None if self.term < 0 else owner.column(values, self.term, turns)
            total = library.array(state[k])
            states = library.empty((turns, *total.shape), dtype=total.dtype) if stored else None
            for turn in range(turns):
                if states is not None:
                    states[turn] = total
                library.add(total, total if term is None else term[turn], out=total)
            values[k], state[k] = states, total[()]
            return
        term = owner.column(values, self.term, turns)
        states = library.empty((turns + 1, *term.shape[1:]), dtype=term.dtype)
        states[0], states[1:] = state[k], term
        library.add.accumulate(states, axis=0, out=states)
        values[k], state[k] = states[:-1], states[-1]


class Turns:
    """Carries that need one another, turn by turn."""

    def __init__(self, owner: Staged, core: Core) -> None:
        self.owner, self.core = owner, core
        self.store = not owner.stored.isdisjoint(core.carries)

    def run(self, values: list[Any], state: dict[int, Any], turns: int) -> None:
        """Give the states of a block of turns, and those after it."""
        owner, core = self.owner, self.core
        columns = [owner.column(values, at, turns) for at in core.columns]
        before = [state[k] for k in core.carries]
        stacks, after = core.run(columns, [values[at] for at in core.fixed], before, turns, self.store)
        state.update(zip(core.carries, after, strict=True))
        if stacks is not None:
            for k, stack in zip(core.carries, stacks, strict=True):
                values[k] = stack
