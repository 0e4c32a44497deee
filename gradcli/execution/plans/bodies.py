"""Places of a loop that need each other from turn to turn go in, what a turn of them does comes out.

It says what every operand is, what stands before the first turn and where everything lies. Nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans import scans
from gradcli.execution.plans.layouts import ALIGNED, Layout
from gradcli.execution.plans.nests import SAME
from gradcli.execution.plans.packing import ALL, NUMBER, OWN, ROW, Packing
from gradcli.execution.plans.values import ENTRY, VIEW, Op, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.nests import Nest, Read


class Body:
    """The steps of a turn, in order.

    A place with a delay takes its turns that many rounds later than the others: so two recurrences, of which one reads
    the other, share their rounds (a wavefront). `refs` tells of each operand: ("own", place, rounds before),
    ("row", given, rounds before) with a row for each turn, ("all", given, 0), the same in all turns, or
    ("number", value, 0). `given` are what is read from outside, `initial` stand for places some turns before the first.
    """

    def __init__(self, nest: Nest, places: Sequence[int], delays: dict[int, int]) -> None:
        self.count = nest.count
        self.delays = delays
        self.places = sorted(delays)
        self.ops = {place: _detached(nest.body[place]) for place in places}
        self.turns = {place: [_detached(op) for op in nest.all(place)] for place in places if place in nest.varying}
        self.shapes = {place: nest.body[place].out.shape for place in places}
        self.liftable = {place for place in places if nest.liftable(place)}
        self.given: list[tuple[str, Any]] = []  # an operand's `Read`, or the value that it is
        self.forms: dict[Any, Any] = {}  # the shape and the type of what is given, in one turn
        self.refs: dict[int, list[Any]] = {}
        self.initial: dict[tuple[int, int], int] = {}
        known: dict[Any, Any] = {}
        for place in places:
            pairs = zip(nest.reads[place], nest.body[place].args, strict=True)
            self.refs[place] = [self._ref(place, read, arg, known) for read, arg in pairs]
        carried = {place for place, _ in self.initial}
        self.shown = {  # views of what other places give, which take no memory
            place
            for place in places
            if self.ops[place].kind == VIEW and place in self.liftable and place not in carried
        }
        self._sign(nest)
        self.packing = Packing(self)
        self.visible: set[int] = set()
        self.stored: set[int] = set()
        self.offsets: dict[int, int] = {}  # where the turns of a stored place begin in the result
        self.size = 0  # entries of the result
        self.dtype: Any = None
        self.layout: Any = None
        self.once = False  # then NumPy takes the rounds: a compiler would take longer
        self.decided = False
        self.machine: Any = None  # the rounds in machine code, if they were made

    def _ref(self, place: int, read: Read, arg: Value, known: dict[Any, Any]) -> Any:
        """What an operand is, and what stands for it before the first turn."""
        delay = self.delays[place]
        if read.kind == OWN and read.place in self.ops:
            for at, value in enumerate(read.values):
                before = (read.place, read.distance - at)
                if before not in self.initial:
                    self.initial[before] = len(self.given)
                    self.given.append((ALL, value))
            return OWN, read.place, read.distance + delay - self.delays[read.place]
        if read.kind == SAME and arg.number is not None:
            return NUMBER, arg, 0
        kind = ALL if read.kind == SAME else ROW
        rows = tuple([value.serial for value in read.values])  # two lists may begin with the same value
        key: Any = (kind, arg.serial) if kind == ALL else (kind, read.place, read.distance, rows)
        if key not in known:
            known[key] = len(self.given)
            self.forms[kind, known[key]] = (arg.shape, arg.dtype)
            self.given.append((kind, arg if kind == ALL else read))
        return kind, known[key], delay if kind == ROW else 0

    def _sign(self, nest: Nest) -> None:
        """-|x| is x with the sign of -1: one call."""
        for place in list(self.places):
            (kind, below, rounds), *_ = self.refs[place] or [(None, 0, 0)]
            inner = self.ops.get(below) if kind == OWN and not rounds else None
            if inner is None or self.ops[place].function is not np.negative or inner.function is not np.absolute:
                continue
            if nest.readers(below) == 1 and below not in nest.beyond and inner.out.dtype.kind == "f":
                minus = Value(-1, (), inner.out.dtype)
                minus.number = inner.out.dtype.type(-1)
                op = self.ops[place]
                self.ops[place] = Op(ENTRY, np.copysign, (*inner.args, minus), None, op.out, op.node)
                self.refs[place] = [*self.refs.pop(below), (NUMBER, minus, 0)]
                self.places.remove(below)

    def arrange(self, visible: set[int], dtype: Any) -> None:
        """Decide where everything lies; `visible` places are read by steps outside."""
        self.dtype, self.visible = dtype, visible
        again = {place for place in self.places if place in self.shown or self.ops[place].out.dtype != dtype}
        for place in reversed(self.places):
            if place in visible and place in again:  # made anew of what it reads, which may stand behind it in a turn
                visible.update(ref[1] for ref in self.refs[place] if ref[0] == OWN)
        self.stored = visible.intersection(self.places) - again
        self.layout = Layout(self)
        for place in sorted(self.stored):
            self.offsets[place] = self.size
            self.size += -(-self.count * self.ops[place].out.size // ALIGNED) * ALIGNED
        self.size = max(self.size, 1)

    @property
    def rounds(self) -> int:
        """How often the calls of a round are made."""
        return self.count + max(self.delays.values())

    @property
    def calls(self) -> int:
        """About how many calls of functions a run takes."""
        return self.rounds * self.packing.calls

    @property
    def room(self) -> int:
        """About the bytes that a run needs beside its operands and its result: rows of a chunk."""
        row = sum([frame.width * frame.dtype.itemsize for frame in self.layout.frames.values()])
        chunk = self.count if self.turns else min(scans.CHUNK, self.count)
        return int((chunk + 2 * self.layout.window + self.layout.together) * row)

    def kernel(self) -> Callable[..., Any]:
        """A function of what is given and the memory."""
        return scans.Scan(self)

    def code(self) -> Any:
        """The rounds in machine code, made in the first run, so that all runs give the same bits; None for NumPy."""
        if not self.decided:  # several threads may run a plan: then each of them makes the same
            if not self.once:
                from gradcli.execution.kernels import rounds

                self.machine = rounds.made(self)
            self.decided = True
        return self.machine

    def __repr__(self) -> str:
        how = f"of {len(self.packing.packs)} calls" if self.machine is None else "in machine code"
        return f"{self.rounds} rounds {how}"


def _detached(op: Op) -> Op:
    """A step whose operands know their form, but not where they come from."""

    def bare(value: Value) -> Value:
        found = Value(value.serial, value.shape, value.dtype)
        found.number = value.number
        return found

    return Op(op.kind, op.function, tuple([bare(arg) for arg in op.args]), op.params, bare(op.out), op.node)
