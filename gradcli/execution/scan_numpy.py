"""Loops on NumPy's arrays, one block of turns after the other: each stage of `scan_split` for a block at once."""

from __future__ import annotations

from gradcli.execution.namespaces import REFUSED
from gradcli.execution.scan_core import Core
from gradcli.execution.scan_split import CORE, SHIFTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.execution.scan import Scan, Step
    from gradcli.execution.scan_split import Group

BLOCK_ENTRIES = 1 << 19  # of all steps that take a block of turns at once
MOST_TURNS = 1 << 13  # in a block
RUNNING_SUM = 1 << 12  # entries of a state, up to which all states of a sum are made by one call


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
            vars(reason).setdefault("node", self.work.node_at(at))
            raise

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
