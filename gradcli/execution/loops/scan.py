"""Loops while a program runs: all readers of one loop are computed by one walk through its iterations.

A `Scan` computes in each iteration only what its readers need, directly or through later iterations, and holds one
iteration and the stacks of its `iterations` readers. It runs one operation after the other; `compiled_scan.py` is
faster.
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.execution.inputs import constant_value, impl_params
from gradcli.execution.namespaces import REFUSED, namespace
from gradcli.graph.loop import order_of_iterations, readers_by_loop, single_numbers
from gradcli.graph.node import CONSTANT, LEAF, Node, is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from gradcli.graph.loop import Body

    # impl, position of the result, of the operands, parameters, aligned
    Step = tuple[Any, int, tuple[int, ...], Any, bool]


class Scan:
    """The readers of one loop: called with the values of their arguments, it gives the values of all of them.

    `order` are the positions of the steps that an iteration computes, in order; `carries` the carries that it reads;
    `inner` the scans of the loops in its body, by the positions of their readers.
    """

    __slots__ = (
        "_split", "_steps",
        "body", "carries", "count", "ends", "inner", "order", "readers", "reverse", "scalar", "stacked",
    )  # fmt: skip

    def __init__(self, readers: Sequence[Node]) -> None:
        params = readers[0].params
        self.readers = tuple(readers)
        self.body: Body = params["body"]
        self.count: int = params["count"]
        self.reverse: bool = params["reverse"]
        body = self.body
        # for each reader: the position of the step that it shows
        self.ends = [body.positions[body.nexts[n.params["carry"]]] if "carry" in n.params else -1 for n in readers]
        self.stacked = [node.params.get("at", -1) for node in readers]
        wanted = [end if at < 0 else at for end, at in zip(self.ends, self.stacked, strict=True)]
        self.order = body.demanded(wanted)
        there = set(self.order)
        self.carries = [k for k, leaf in enumerate(body.carried) if body.positions[leaf] in there]
        self.scalar = single_numbers(readers[0])  # every value of an iteration
        loops = readers_by_loop([body.steps[at] for at in self.order])
        inner = map(type(self), loops.values())
        self.inner = {body.positions[reader]: scan for scan in inner for reader in scan.readers}
        self._steps: dict[Any, tuple[list[Any], list[Step]]] = {}
        self._split: Split | None = None

    def __call__(self, xp: Any, *args: Any, ranks: Sequence[int]) -> list[Any]:
        """The values of the readers, in their order: one iteration after the other, one operation after the other."""
        parts: dict[int, list[Any]] = {at: [None] * self.count for at in self.stacked if at >= 0}
        values: list[Any] = []
        for iteration, values in self.iterations(xp, args, ranks):
            for at, part in parts.items():
                part[iteration] = values[at]
        steps = self.body.steps
        stacks = {
            at: xp.stack(xp.broadcast_arrays(*part), axis=-len(steps[at].shape) - 1) for at, part in parts.items()
        }
        return [values[end] if at < 0 else stacks[at] for end, at in zip(self.ends, self.stacked, strict=True)]

    @staticmethod
    def picked(_: Any, results: Sequence[Any], place: int) -> Any:
        """The `impl` of one reader: its part of what the scan gave."""
        return results[place]

    def picks(self) -> list[tuple[int, Node]]:
        """The readers with their places, the first of them last: until then it holds what the scan gave."""
        return [*enumerate(self.readers)][::-1]

    def on_floats(self, *args: float) -> list[Any]:
        """The values of the readers on Python floats alone; raises IEEE_DIFFERS and Unavailable as `math` does."""
        return self(namespace("math"), *args, ranks=(0,) * len(args))

    def split(self) -> Split:
        """What runs iteration by iteration, and what for many iterations at once."""
        if self._split is None:
            self._split = Split(self)
        return self._split

    def _steps_on(self, xp: Any) -> tuple[list[Any], list[Step]]:
        """Values of all steps with the constants in place, and the operations of an iteration, for a namespace."""
        if xp in self._steps:
            return self._steps[xp]
        body = self.body
        start: list[Any] = [None] * len(body.steps)
        work: list[Step] = []
        for at in self.order:
            step = body.steps[at]
            primitive = step.primitive
            operands = tuple([body.positions[arg] for arg in step.args])
            params = impl_params(step)
            if primitive is CONSTANT:
                start[at] = constant_value(xp, step)
            elif is_reader(step):
                scan = self.inner[at]
                if scan.readers[0] is step:
                    work.append((scan, at, operands, {"ranks": params["ranks"]}, False))
                    work += [
                        (scan.picked, body.positions[read], (at,), {"place": k}, False) for k, read in scan.picks()
                    ]
            elif primitive is not LEAF:
                work.append((primitive.impl, at, operands, params, primitive.aligned and xp.name != "math"))
        self._steps[xp] = start, work
        return start, work

    def iterations(self, xp: Any, args: Sequence[Any], ranks: Sequence[int]) -> Iterator[tuple[int, list[Any]]]:
        """Each iteration with the values of its steps by position, in the order in which the iterations run.

        It is the same list each time. What no reader needs is None. An operation that refuses its operands raises one
        of REFUSED, with its step as the attribute `node`.
        """
        body, carries = self.body, self.carries
        start, work = self._steps_on(xp)
        values = start.copy()
        states, stacks = len(body.carried), len(body.rows)
        values[states + stacks : len(args)] = args[states + stacks :]
        nexts = [body.positions[body.nexts[k]] for k in carries]
        read = [at for at in self.order if states <= at < states + stacks]
        rows = [(at, args[at], (slice(None),) * (ranks[at] - 1)) for at in read]
        index = None if body.index is None else body.positions[body.index]
        state, at = [args[k] for k in carries], 0
        for iteration in order_of_iterations(self.count, self.reverse):
            for k, value in zip(carries, state, strict=True):
                values[k] = value
            for at, array, rest in rows:
                values[at] = array[(..., iteration, *rest)]
            if index is not None:
                values[index] = float(iteration) if xp.name == "math" else xp.array(float(iteration))
            try:
                for impl, at, operands, params, aligned in work:
                    xs: Any = [values[place] for place in operands]
                    if aligned:
                        xs = xp.aligned(xs, params["ranks"])
                    values[at] = impl(xp, *xs, **params)
            except REFUSED as reason:
                vars(reason).setdefault("node", body.steps[at])
                raise
            state = [values[place] for place in nexts]
            yield iteration, values


# --- loop distribution -----------------------------------------------------------------------------------------
#
# The carries of a body depend on each other in groups. A group whose carries need one another runs iteration by
# iteration; a carry that only adds up is a running sum, and masks are gathered likewise. All other steps take all
# iterations at once: those that need no carry before the groups, those that read the states of all iterations after
# them. Of a group only its states are stored; what others read of its steps is computed again, for all iterations (R.
# Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, 1987).

ACCUMULATING = ("add", "and", "or")


class CarryGroup(NamedTuple):
    """Carries that need one another, and the positions of the steps between them, or one that only accumulates.

    The latter names its operation, one of ACCUMULATING. `reads` are the positions that they read in each iteration
    besides constants: the value that is added, or all of a core.
    """

    accumulates: str | None
    carries: tuple[int, ...]
    core: tuple[int, ...]
    reads: tuple[int, ...]
    constants: tuple[int, ...] = ()


class Stage(NamedTuple):
    """The positions of steps that take all iterations at once, then a group that reads them."""

    steps: tuple[int, ...]
    group: CarryGroup | None


class Split:
    """The stages of a scan: what an iteration of it computes, in groups of carries.

    `varying` are the positions of what differs from iteration to iteration, `still` those of the other steps, `stored`
    the carries whose states before all iterations are read. The last stage has no group and gives `outputs`.
    """

    def __init__(self, scan: Scan) -> None:
        body = self.body = scan.body
        self.order, self.carries, self.inner = scan.order, scan.carries, scan.inner
        self.states = len(body.carried)
        self.direct: dict[int, int] = {}  # the carries that each step reads within the iteration, as bits
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
        ordered = []
        for _, carries in sorted(groups.items(), key=lambda group: (reach[group[0]] | 1 << group[0]).bit_count()):
            mask = sum([1 << k for k in carries])
            core: set[int] = set()
            pending = [ends[k] for k in carries]
            while pending:
                at = pending.pop()
                if at not in core and at >= self.states and self.direct[at] & mask:
                    core.add(at)
                    pending += [body.positions[arg] for arg in body.steps[at].args]
            ordered.append((carries, sorted(core)))
        return ordered

    def _stage(self, carries: list[int], core: list[int]) -> Stage:
        body = self.body
        read = {body.positions[arg] for at in core for arg in body.steps[at].args}
        read.update([body.positions[body.nexts[k]] for k in carries])
        outside = read - {*carries, *core}
        constants = {at for at in outside if body.steps[at].primitive is CONSTANT}
        before = self._before(outside - constants)
        if len(core) == len(carries) == len(outside) == 1 and body.steps[core[0]].primitive.name in ACCUMULATING:
            name = body.steps[core[0]].primitive.name
            return Stage(before, CarryGroup(name, tuple(carries), tuple(core), tuple(outside)))
        reads = tuple(sorted(outside - constants))
        return Stage(before, CarryGroup(None, tuple(carries), tuple(core), reads, tuple(sorted(constants))))

    def _before(self, positions: Iterable[int]) -> tuple[int, ...]:
        """The steps that give these for all iterations, in order, without those that earlier stages have given."""
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
