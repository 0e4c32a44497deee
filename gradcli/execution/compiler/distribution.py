"""Loop distribution: what of a loop runs turn by turn, and what takes all turns at once.

The carries of a body depend on each other in groups. A group whose carries need one another runs turn by turn; a carry
that only adds up is a running sum. All other steps take all turns at once: those that need no carry before the groups,
those that read the states of all turns after them. Of a group only its states are stored; what others read of its steps
is computed again, for all turns (R. Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, 1987).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gradcli.graph.node import CONSTANT, LEAF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gradcli.execution.scan import Scan

SUMMED, CORE = "summed", "core"


class Group(NamedTuple):
    """Carries that need one another, and the positions of the steps between them.

    `reads` are the positions that they read in each turn besides constants: the value that is added, or all of a core.
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
    """The stages of a scan: what a turn of it computes, in groups of carries.

    `varying` are the positions of what differs from turn to turn, `still` those of the other steps, `stored` the
    carries whose states before all turns are read. The last stage has no group and gives `outputs`.
    """

    def __init__(self, scan: Scan) -> None:
        body = self.body = scan.body
        self.order, self.carries, self.inner = scan.order, scan.carries, scan.inner
        self.states = len(body.carried)
        self.direct: dict[int, int] = {}  # the carries that each step reads within the turn, as bits
        self.varying: set[int] = set()
        self._follow()
        self.stored: set[int] = set()
        self.still: list[int] = []
        self._scheduled: set[int] = set()
        self.stages = [self._stage(*group) for group in self._groups()]
        last = {node.params["carry"] for node in scan.readers if "carry" in node.params}
        ends = [body.positions[body.nexts[k]] for k in last.difference(self.carries)]
        self.stages.append(Stage(self._before([*ends, *(at for at in scan.stacked if at >= 0)]), None))

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
        read = {body.positions[arg] for at in core for arg in body.steps[at].args}
        read.update([body.positions[body.nexts[k]] for k in carries])
        outside = read - {*carries, *core}
        constants = {at for at in outside if body.steps[at].primitive is CONSTANT}
        before = self._before(outside - constants)
        if len(core) == len(carries) == len(outside) == 1 and body.steps[core[0]].primitive.name == "add":
            return Stage(before, Group(SUMMED, tuple(carries), tuple(core), tuple(outside)))
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
                if at in self.inner:  # all readers of a loop at once
                    pending += [self.body.positions[reader] for reader in self.inner[at].readers]
        self.still += sorted(fresh - self.varying)
        return tuple(sorted(fresh & self.varying))
