"""A stretch of steps that repeats itself goes in, what its turns read of each other and from outside comes out.

Each operand of a step is the same in all turns, or made in the same or an earlier turn by the same step each time, or a
list of values from outside. A stretch with any other operand is no loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.lifting import affine, liftable
from gradcli.execution.plans.periods import FEWEST
from gradcli.execution.plans.values import ADDED, CALL, ENTRY, Op, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.recording import Recording

ENTRIES = 1 << 9  # of the largest result of a step: larger ones take longer than the call of the step
ROOM = 1 << 27  # bytes of all results together
WRITTEN = 1 << 11  # steps of the turns that a recurrence holds at once: the text of its rounds has a line for each
PEELED = 3  # turns that may be left out at the beginning

SAME, LIST, OWN = "same", "list", "own"


class Read:
    """What an operand is: the `SAME` value, a `LIST` of them, or `OWN`, made `distance` turns before at a place.

    `values` are the one, all of them, or those of the first turns, which no turn has made.
    """

    __slots__ = ("distance", "kind", "place", "values")

    def __init__(self, kind: str, values: list[Value], place: int = -1, distance: int = 0) -> None:
        self.kind = kind
        self.values = values
        self.place = place
        self.distance = distance


class Nest:
    """A loop of `count` turns of `period` steps."""

    def __init__(self, ops: Sequence[Op], makers: Any, start: int, period: int, count: int) -> None:
        self.start = start
        self.period = period
        self.count = count
        self.end = start + period * count
        self.body = ops[start : start + period]  # the first turn
        self._ops = ops
        args = [[arg.serial for arg in op.args] for op in ops[start : self.end]]
        self.serials = np.array([serial for one in args for serial in one]).reshape(count, -1)
        self.makers = makers[self.serials]
        self.reads: list[list[Read]] = []
        self._readers: list[int] = []
        self.varying: set[int] = set()  # places whose parameters differ from turn to turn
        self.beyond: dict[int, list[int]] = {}  # places whose results steps outside read, and in which turns

    @classmethod
    def fitted(cls, ops: Sequence[Op], makers: Any, start: int, period: int, count: int, dtype: Any) -> Nest | None:
        """The loop of a stretch, perhaps without its first turns; None where there is none."""
        body = ops[start : start + period]
        sizes = [op.out.size for op in body]
        if not min(sizes) or max(sizes) > ENTRIES or sum([op.out.nbytes for op in body]) * count > ROOM:
            return None
        for _ in range(PEELED + 1):
            if count < FEWEST:
                return None
            nest = cls(ops, makers, start, period, count)
            if nest._regular() and nest._held(dtype):
                return nest if nest._gathers_little() and not nest._goes_far_back() else None
            start, count = start + period, count - 1
        return None

    def op(self, place: int, turn: int) -> Op:
        """A step of one turn."""
        return self._ops[self.start + turn * self.period + place]

    def all(self, place: int) -> Sequence[Op]:
        """A step in all turns."""
        return self._ops[self.start + place : self.end : self.period]

    def _regular(self) -> bool:
        """Find what every operand is; False where one is not of the three kinds."""
        inside = self.makers >= self.start  # nothing reads what is made later
        turns = np.arange(self.count)[:, None]
        offsets = self.makers - self.start
        places = offsets % self.period
        distances = turns - offsets // self.period
        first = np.where(inside.any(0), inside.argmax(0), self.count)
        settled = turns >= first
        last = self.count - 1
        fine = (inside == settled).all(0)
        fine &= ((places == places[last]) & (distances == distances[last]) | ~settled).all(0)
        fine &= (first == self.count) | (first == distances[last])
        if not fine.all():
            return False
        same = (self.serials == self.serials[0]).all(0)
        column = 0
        for place, op in enumerate(self.body):
            found = []
            every = self.all(place)
            for position, arg in enumerate(op.args):
                if first[column] < self.count:
                    distance = int(distances[last, column])
                    initial = [one.args[position] for one in every[:distance]]
                    found.append(Read(OWN, initial, int(places[last, column]), distance))
                elif same[column]:
                    found.append(Read(SAME, [arg]))
                else:
                    found.append(Read(LIST, [one.args[position] for one in every]))
                column += 1
            self.reads.append(found)
            if op.params is not None and op.kind != CALL and any(one.params != op.params for one in every):
                self.varying.add(place)
        return True

    def _held(self, dtype: Any) -> bool:
        """Whether a scan can hold what a step in a recurrence gives, and the turns before the first one agree."""
        for place, op in enumerate(self.body):
            if op.out.dtype != dtype and not self.liftable(place):
                return False
        known: dict[tuple[int, int], int] = {}
        for read in (read for reads in self.reads for read in reads if read.kind == OWN):
            if read.distance and self.body[read.place].out.dtype != dtype:
                return False
            for turn, value in enumerate(read.values):
                if known.setdefault((read.place, read.distance - turn), value.serial) != value.serial:
                    return False
                if value.dtype != self.body[read.place].out.dtype or value.shape != self.body[read.place].out.shape:
                    return False
        return True

    def _gathers_little(self) -> bool:
        """Whether lists of values from outside, which are copied, are as small as what turns make."""
        lists = {
            (id(read.values[0]), id(read.values[-1])): read.values[0]
            for reads in self.reads
            for read in reads
            if read.kind == LIST
        }
        return max([one.size for one in lists.values()], default=0) <= ENTRIES and (
            sum([one.nbytes for one in lists.values()]) * self.count <= ROOM
        )

    def _goes_far_back(self) -> bool:
        """Whether a recurrence needs so many turns at once that writing out its rounds takes long."""
        reads = [read for one in self.reads for read in one if read.kind == OWN]
        if max([read.distance for read in reads], default=0) * self.period <= WRITTEN:
            return False
        for group in self.components():
            inside = set(group)
            back = [read.distance for place in group for read in self.reads[place] if read.place in inside]
            if max(back, default=0) * len(group) > WRITTEN:
                return True
        return False

    def liftable(self, place: int) -> bool:
        """Whether one step can take all turns, if they do not need each other."""
        reads = self.reads[place]
        fixed = all(read.kind == SAME for read in reads)
        if self.body[place].kind == CALL and any(read.kind != SAME for read in reads[1:]):
            return False  # positions that differ from turn to turn
        return liftable(self.body[place], place in self.varying, fixed)

    def readers(self, place: int) -> int:
        """How many operands in a turn a place is."""
        if not self._readers:
            self._readers = [0] * self.period
            for read in (read for reads in self.reads for read in reads if read.kind == OWN):
                self._readers[read.place] += 1
        return self._readers[place]

    def components(self) -> list[list[int]]:
        """The places in groups that need each other from turn to turn, those that others read first (R. Tarjan)."""
        below = [[read.place for read in reads if read.kind == OWN] for reads in self.reads]
        order: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        waiting: set[int] = set()
        found: list[list[int]] = []
        for root in range(self.period):
            work = [(root, iter(below[root]))] if root not in order else []
            while work:
                place, rest = work[-1]
                if place not in order:
                    order[place] = low[place] = len(order)
                    stack.append(place)
                    waiting.add(place)
                for other in rest:
                    if other not in order:
                        work.append((other, iter(below[other])))
                        break
                    if other in waiting:
                        low[place] = min(low[place], order[other])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[place])
                    if low[place] == order[place]:
                        at = stack.index(place)
                        waiting.difference_update(stack[at:])
                        found.append(sorted(stack[at:]))
                        del stack[at:]
        return found

    def recurs(self, component: Sequence[int]) -> bool:
        """Whether its places need what they gave in turns before."""
        return len(component) > 1 or any(read.place == component[0] for read in self.reads[component[0]])

    def sum(self, component: Sequence[int]) -> list[tuple[int, str]] | None:
        """The places of a sum over all turns, as they follow each other, and how each adds; None if it is no sum.

        "add" adds a value, "part" adds one to the same part each time, "parts" to a part of its own in each turn.
        Nobody else may read what they give before the last turn has ended.
        """
        inside = set(component)
        after: dict[int, int] = {}  # by the place that is read
        first = -1
        for place in component:
            own = [read for read in self.reads[place] if read.kind == OWN and read.place in inside]
            if len(own) != 1 or self.readers(place) != 1 or self._way(place, own[0]) is None:
                return None
            if own[0].distance:
                if first >= 0 or own[0].distance > 1:
                    return None
                first = place
            after[own[0].place] = place
        if first < 0:
            return None
        chain = [first]
        while after[chain[-1]] != first:
            chain.append(after[chain[-1]])
        for place in chain:
            last = self.count - 1 if place == chain[-1] else self.count
            if any(turn < last for turn in self.beyond.get(place, ())):
                return None
        return [(place, str(self._way(place, self.summand(place, inside)))) for place in chain]

    def summand(self, place: int, inside: set[int]) -> Read:
        """What a place of a sum reads of the sum so far."""
        return next(read for read in self.reads[place] if read.kind == OWN and read.place in inside)

    def _way(self, place: int, own: Read) -> str | None:
        op, at = self.body[place], self.reads[place].index(own)
        if op.kind == ENTRY and op.function is np.add:
            other = op.args[1 - at]
            alike = other.number is None and other.shape == op.out.shape == op.args[at].shape
            return "add" if alike and other.dtype == op.out.dtype and op.out.dtype.kind == "f" else None
        if op.kind != ADDED or at or op.args[1].number is not None:
            return None
        if place not in self.varying:
            return "part"
        along = affine([one.params[1] for one in self.all(place)])
        return "parts" if along is not None and op.args[1].shape[along[0]] == 1 else None


def read_beyond(recording: Recording, nests: Sequence[Nest], makers: Any) -> None:
    """Note in each loop what is read of it outside."""
    ops = recording.ops
    serials = [value.serial for value in recording.outputs]
    at = 0
    for nest in nests:
        serials += [arg.serial for op in ops[at : nest.start] for arg in op.args]
        at = nest.end
    serials += [arg.serial for op in ops[at:] for arg in op.args]
    read = np.zeros(len(ops) + 1, bool)  # the last one stands for what no step makes
    read[makers[np.array(serials, np.int64)]] = True
    for nest in nests:
        makers_of = nest.makers
        read[np.where((makers_of >= nest.start) & (makers_of < nest.end), -1, makers_of)] = True
    for nest in nests:
        for place in np.flatnonzero(read[nest.start : nest.end]).tolist():
            turn, own = divmod(place, nest.period)
            nest.beyond.setdefault(own, []).append(turn)
