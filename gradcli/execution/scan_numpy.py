"""Loops on NumPy's arrays: what does not have to wait for the turn before is computed for many turns at once.

The carries of a body depend on each other in groups. A group whose carries need one another runs turn by turn; a carry
that only adds up becomes a running sum, and one that is made from other values is these, one turn later. All other
steps take a block of turns at once, with the turns as their first axis: those that need no carry before the groups,
those that read the states of all turns after them. Of a group only its states are stored; what others read of its steps
is computed again, for a block of turns at once.
"""

from __future__ import annotations

from gradcli.execution import scan_numba
from gradcli.execution.namespaces import IEEE_DIFFERS, REFUSED, Unavailable
from gradcli.execution.scan_python import printed_core
from gradcli.graph.node import CONSTANT, LEAF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.execution.scan import Scan, Step
    from gradcli.graph.node import Node

BLOCK_ENTRIES = 1 << 19  # of all steps that take a block of turns at once
MOST_TURNS = 1 << 13  # in a block
TURN = 8  # steps of printed code that a turn costs by itself
RUNNING_SUM = 1 << 12  # entries of a state, up to which all states of a sum are made by one call


class Staged:
    """The stages of a scan whose arguments have no batch axes, made once."""

    def __init__(self, scan: Scan, xp: Any) -> None:
        self.scan, self.xp = scan, xp
        body = self.body = scan.body
        self.states, self.inputs = len(body.carried), len(body.inputs)
        self.index = -1 if body.index is None else body.positions[body.index]
        self.work = scan.work(xp)
        self.by_position = {step[1]: step for step in self.work.steps}
        loops = self.work.loops
        self.leader = {body.positions[node]: first for first, group in loops.items() for node in group}
        self.group = {first: self.work.group_steps(first) for first in loops}
        self.direct, self.varying = self._dependence()
        self.done = 0  # steps of all turns so far, of groups that run as printed code
        self.stored: set[int] = set()  # carries whose states of all turns are read
        self.scheduled: set[int] = set()
        self.still: list[Step] = []
        self.stages: list[tuple[list[Step], Any]] = []
        for carries, core in self._groups():
            self.stages.append(self._stage(carries, core))
        outputs = [at for at in scan.stacked if at >= 0]
        self.carry_of = [node.params.get("carry", -1) for node in scan.readers]
        moved = {*scan.carries}
        outputs += [end for end, k in zip(scan.ends, self.carry_of, strict=True) if k >= 0 and k not in moved]
        self.stages.append((self._schedule(outputs), None))
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

    def _dependence(self) -> tuple[dict[int, int], set[int]]:
        """The carries that each step reads within the turn, as bits; and the steps that differ from turn to turn."""
        direct: dict[int, int] = {}
        varying: set[int] = set()
        fixed = range(self.states + len(self.body.rows), self.inputs)
        for at in self.scan.order:
            step = self.body.steps[at]
            if at < self.states:
                direct[at] = 1 << at
                varying.add(at)
                continue
            operands = [self.body.positions[arg] for arg in step.args]
            direct[at] = 0
            for place in operands:
                direct[at] |= direct[place]
            if (step.primitive is LEAF and at not in fixed) or not varying.isdisjoint(operands):
                varying.add(at)
        return direct, varying

    def _groups(self) -> list[tuple[list[int], list[int]]]:
        """Carries that need one another, with the positions of the steps between them, in an order that can run."""
        body = self.body
        ends = {k: body.positions[body.nexts[k]] for k in self.scan.carries}
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

    def _schedule(self, positions: Iterable[int]) -> list[Step]:
        """The steps that give these for a block of turns, without those that earlier stages have given."""
        fresh: set[int] = set()
        pending = list(positions)
        while pending:
            at = pending.pop()
            if at in self.scheduled:
                continue
            self.scheduled.add(at)
            step = self.body.steps[at]
            if at < self.states:
                self.stored.add(at)
            elif step.args:
                fresh.add(at)
                if at in self.leader:  # all readers of a loop at once
                    self.scheduled.update([one for one, first in self.leader.items() if first is self.leader[at]])
                pending += [self.body.positions[arg] for arg in step.args]
        found: list[Step] = []
        # all readers of a loop come where the first of them stands
        for at in sorted(fresh, key=lambda at: self.body.positions[self.leader[at]] if at in self.leader else at):
            steps = self.group[self.leader[at]] if at in self.leader else [self.by_position[at]]
            (found if at in self.varying else self.still).extend(steps)
        return found

    def _stage(self, carries: list[int], core: list[int]) -> tuple[list[Step], Any]:
        body = self.body
        k = carries[0]
        if not core and len(carries) == 1:
            end = body.positions[body.nexts[k]]
            return self._schedule([end]), Shifted(self, k, end)
        inside = {*carries, *core}
        outside = {body.positions[arg] for at in core for arg in body.steps[at].args} - inside
        before = self._schedule([at for at in outside if body.steps[at].primitive is not CONSTANT])
        if len(core) == len(carries) == 1 and body.steps[core[0]].primitive.name == "add":
            return before, Summed(self, k, outside.pop() if outside else -1)
        return before, Core(self, carries, core, sorted(outside))

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The values of the readers."""
        scan, body, library = self.scan, self.body, self.xp.library
        values: list[Any] = self.work.start.copy()
        rows = range(self.states, self.states + len(body.rows))
        values[rows.stop : self.inputs] = args[rows.stop : self.inputs]
        self._compute(self.still, values)
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
                self._compute(steps, values)
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
                found.append(values[end][-1] if end in self.varying else values[end])
        return [one.copy() if getattr(one, "base", None) is not None else one for one in found]

    def _compute(self, steps: Iterable[Step], values: list[Any]) -> None:
        xp, at = self.xp, 0
        try:
            for impl, at, operands, params, aligned in steps:
                xs: Any = [values[place] for place in operands]
                if aligned:
                    xs = xp.aligned(xs, params["ranks"])
                values[at] = impl(xp, *xs, **params)
        except REFUSED as reason:
            vars(reason).setdefault("node", self.node_at(at))
            raise

    def node_at(self, at: int) -> Node:
        """The node of a step, or of the first reader of an inner loop."""
        return self.body.steps[at] if at < len(self.body.steps) else self.work.leaders[at]

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


class Core:
    """Carries that need one another, and the steps between them: one turn after the other."""

    def __init__(self, owner: Staged, carries: list[int], core: list[int], outside: list[int]) -> None:
        self.owner, self.carries, self.core = owner, carries, core
        body = owner.body
        constants = {at for at in outside if body.steps[at].primitive is CONSTANT}
        self.columns = [at for at in outside if at in owner.varying]
        self.fixed = [at for at in outside if at not in owner.varying and at not in constants]
        self.ends = [body.positions[body.nexts[k]] for k in carries]
        loops = {owner.leader[at]: None for at in core if at in owner.leader}
        grouped = {step[1]: step for first in loops for step in owner.group[first]}
        own = {at: owner.by_position[at] for at in core if at not in owner.leader}
        self.steps = owner.work.in_order([*own.values(), *grouped.values()])
        self.order = sorted({*core, *constants})
        scalar = all(not body.steps[at].shape for at in (*carries, *core, *outside))
        self.printed: Any = None
        if scalar and not loops and owner.xp.dtype == "float64":
            try:
                self.printed = printed_core(body, self.order, carries, self.columns, self.fixed)
            except Unavailable:
                self.printed = None
        self.compiled: Any = None
        self.tried = False  # to compile it

    def run(self, values: list[Any], state: dict[int, Any], turns: int) -> None:
        """Give the states of a block of turns, and the one after it."""
        owner = self.owner
        stored = [k for k in self.carries if k in owner.stored]
        if self.printed is not None:
            columns = [owner.column(values, at, turns) for at in self.columns]
            fixed = [values[at] for at in self.fixed]
            before = [state[k] for k in self.carries]
            self._count(turns)
            if self.compiled is not None:
                states = self._on_machine(columns, fixed, before, turns)
                self._keep(values, state, states[:-1].T, states[-1])
                return
            try:
                states, after = self.printed.run(owner.xp, columns, fixed, before, turns, bool(stored))
            except IEEE_DIFFERS:
                pass  # NumPy says what IEEE arithmetic gives
            else:
                self._keep(values, state, states, after)
                return
        self._walked(values, state, turns, stored)

    def _keep(self, values: list[Any], state: dict[int, Any], states: Any, after: Any) -> None:
        """The states of a block, by carry, and those after it."""
        owner = self.owner
        for place, k in enumerate(self.carries):
            kind = owner.xp.kind_type(owner.body.steps[k].type.kind)
            state[k] = kind(after[place])
            if k in owner.stored:
                values[k] = states[place].astype(kind, copy=False)

    def _count(self, turns: int) -> None:
        """Compile the turns once enough of them have run; a turn costs as much as some steps, and so does a column."""
        owner = self.owner
        owner.done += turns * (len(self.core) + len(self.columns) + TURN)
        if owner.done >= scan_numba.WORK and not self.tried:
            self.tried = True
            self.compiled = scan_numba.compiled_core(owner.body, self.order, self.carries, self.columns, self.fixed)

    def _on_machine(self, columns: Sequence[Any], fixed: Sequence[Any], before: Sequence[Any], turns: int) -> Any:
        """The states before each turn and after the last one, as rows."""
        library = self.owner.xp.library
        states = library.empty((turns + 1, len(before)))
        states[0] = before
        table = library.empty((len(columns), turns))
        for place, column in enumerate(columns):
            table[place] = column
        self.compiled(turns, states, table, library.array(fixed, dtype=library.float64))
        return states

    def _walked(self, values: list[Any], state: dict[int, Any], turns: int, stored: Sequence[int]) -> None:
        owner, body, xp = self.owner, self.owner.body, self.owner.xp
        local = values.copy()
        stacks = {
            k: xp.library.empty((turns, *body.steps[k].shape), dtype=xp.kind_type(body.steps[k].type.kind))
            for k in stored
        }
        columns = [(at, owner.column(values, at, turns)) for at in self.columns]
        for k in self.carries:
            local[k] = state[k]
        at = 0
        try:
            for turn in range(turns):
                for k, stack in stacks.items():
                    stack[turn] = local[k]
                for place, column in columns:
                    local[place] = column[turn]
                for impl, at, operands, params, aligned in self.steps:
                    xs: Any = [local[place] for place in operands]
                    if aligned:
                        xs = xp.aligned(xs, params["ranks"])
                    local[at] = impl(xp, *xs, **params)
                after = [local[end] for end in self.ends]
                for k, value in zip(self.carries, after, strict=True):
                    local[k] = value
        except REFUSED as reason:
            vars(reason).setdefault("node", owner.node_at(at))
            raise
        for k in self.carries:
            state[k] = local[k]
        for k, stack in stacks.items():
            values[k] = stack
