"""Places of a loop that need each other go in; where they carry one number on by a factor and a summand, both come out.

What reverse mode carries from turn to turn always enters a turn linearly. If all of it passes through one place, then
x[t] = a[t] x[t-1] + b[t] there, entry by entry; a and b need no turn before, so one step takes them for all turns, and
the other places follow from x in the same way. `recurrences.py` solves for x. Nothing is computed here.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.lifting import turns
from gradcli.execution.plans.nests import OWN
from gradcli.execution.plans.recurrences import Recurrence
from gradcli.execution.plans.values import CHOICE, ENTRY, LINEAR, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.lifting import Operand
    from gradcli.execution.plans.nests import Nest, Read
    from gradcli.execution.plans.steps import Steps

FEWEST = 64  # turns of a loop in which this is worth it
WIDEST = 48  # entries of a turn up to which it is: from there on its stacks cost more than the calls of a scan
MOST = 200  # places that are looked at
SUMS = (np.add, np.subtract)


class Linear:
    """Places that carry one number: `cut` is the place of x, `order` are the others as they follow from it.

    `late` are the places that read x of the turn before, and not of their own.
    """

    def __init__(self, nest: Nest, places: Sequence[int], cut: int, order: list[int], late: set[int]) -> None:
        self.nest = nest
        self.places = list(places)
        self.cut = cut
        self.order = order
        self.late = late
        self.inside = set(places)
        self.shape = nest.body[cut].out.shape
        self.rows = nest.count - 1

    @classmethod
    def fitted(cls, nest: Nest, places: Sequence[int]) -> Linear | None:
        """The recurrence of some places that need each other, in order; None where it is of another form."""
        if nest.count < FEWEST or len(places) > MOST or nest.body[places[0]].out.size > WIDEST:
            return None
        inside = set(places)
        if not all(_carries_on(nest, place, inside) for place in places):
            return None
        found = []
        for cut in _cycle(nest, inside):
            order = _behind(nest, places, inside, cut)
            late = None if order is None else _late(nest, order, inside, cut)
            if order is not None and late is not None:
                found.append(cls(nest, places, cut, order, late))
        return min(found, key=lambda one: one._work(), default=None)

    def made(self, spreading: Any) -> None:
        """Make the steps of all places; `spreading` knows where values are."""
        steps, stacks, nest = spreading.steps, spreading.stacks, self.nest
        operands = {
            (place, position): spreading.operand(nest, read)
            for place in self.places
            for position, read in enumerate(nest.reads[place])
            if not _own(read, self.inside)
        }
        a, b = self._coefficients(steps, operands)
        recurrence = Recurrence(nest, self.places, self.cut, a, b)
        given = [a, b]
        known: dict[int, int] = {}

        def index(value: Value) -> int:
            if value.serial not in known:
                known[value.serial] = len(given)
                given.append(value)
            return known[value.serial]

        for place in self.places:
            for position, read in enumerate(nest.reads[place]):
                if _own(read, self.inside):
                    recurrence.own(place, position, read.place, read.distance)
                    if read.distance:
                        recurrence.initial[read.place] = index(spreading.single(read.values[0]))
                else:
                    value, stacked = operands[place, position]
                    recurrence.given(nest.body[place], place, position, index(value), stacked)
        out = nest.body[self.cut].out
        full = (nest.count, *self.shape)
        stacks[nest.start, self.cut] = steps.make(LINEAR, recurrence, tuple(given), None, full, out.dtype)
        for place in self.order:
            stacks[nest.start, place] = spreading.all(nest, place)

    def _work(self) -> int:
        """How many places have a summand to carry along."""
        summed: set[int] = set()
        for place in [*self.order, self.cut]:
            reads = self.nest.reads[place]
            op = self.nest.body[place]
            fresh = op.function in SUMS or op.kind == CHOICE
            own = [read.place for read in reads if _own(read, self.inside)]
            if not summed.isdisjoint(own) or (fresh and len(own) < len(reads) - (op.kind == CHOICE)):
                summed.add(place)
        return len(summed)

    def _coefficients(self, steps: Steps, operands: dict[tuple[int, int], Operand]) -> tuple[Value, Value]:
        """a and b of all turns but the first, with an axis in front where they differ from turn to turn."""
        dtype = self.nest.body[self.cut].out.dtype
        one, nothing = steps.number(dtype.type(1)), steps.number(dtype.type(0))
        known = {self.cut: (one, nothing)}
        for place in [*self.order, self.cut]:
            op, reads = self.nest.body[place], self.nest.reads[place]
            late = place in self.late or place == self.cut
            parts: list[tuple[Value, Value]] = []
            for position, read in enumerate(reads):
                if _own(read, self.inside):
                    parts.append(known[read.place])
                else:
                    value, stacked = operands[place, position]
                    parts.append((nothing, self._turns(steps, value, late) if stacked else value))
            if op.kind == CHOICE:
                made = [_choice(steps, parts[0][1], parts[1][at], parts[2][at]) for at in (0, 1)]
            else:
                own = [_own(read, self.inside) for read in reads]
                made = [RULES[op.function](steps, own, [part[at] for part in parts], parts) for at in (0, 1)]
            known[place] = (made[0], made[1])
        return known[self.cut]

    def _turns(self, steps: Steps, value: Value, late: bool) -> Value:
        """The turns of an operand that stand beside x, with axes of size 1 up to the rank of x."""
        count, *shape = value.shape
        full = (count, *(1,) * (len(self.shape) - len(shape)), *shape)
        return turns(steps, steps.view("reshape", value, full, full), int(late), 1, self.rows)


def _own(read: Read, inside: set[int]) -> bool:
    """Whether an operand is what a place of the group gives."""
    return read.kind == OWN and read.place in inside


def _carries_on(nest: Nest, place: int, inside: set[int]) -> bool:
    """Whether a place is linear in what others of its group give, entry by entry."""
    op, reads = nest.body[place], nest.reads[place]
    own = [at for at, read in enumerate(reads) if _own(read, inside)]
    out = op.out
    alike = all(op.args[at].shape == out.shape and op.args[at].dtype == out.dtype for at in own)
    if out.dtype.kind != "f" or not alike or any(reads[at].distance > 1 for at in own):
        return False
    if op.kind == CHOICE:
        return 0 not in own and all(arg.dtype == out.dtype for arg in op.args[1:])
    if op.kind != ENTRY or any(arg.dtype != out.dtype for arg in op.args):
        return False
    if op.function is np.multiply:
        return len(own) == 1
    return own == [0] if op.function is np.divide else op.function in (*SUMS, np.negative)


def _cycle(nest: Nest, inside: set[int]) -> list[int]:
    """Some way from a place back to it."""
    way = [min(inside)]
    seen = {way[0]: 0}
    while True:
        place = next(read.place for read in nest.reads[way[-1]] if _own(read, inside))
        if place in seen:
            return way[seen[place] :]
        seen[place] = len(way)
        way.append(place)


def _behind(nest: Nest, places: Sequence[int], inside: set[int], cut: int) -> list[int] | None:
    """The other places in an order in which they follow from one; None where they need each other without it."""
    others = [place for place in places if place != cut]
    needs = {place: {read.place for read in nest.reads[place] if _own(read, inside)} - {cut} for place in others}
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError:
        return None


def _late(nest: Nest, order: Sequence[int], inside: set[int], cut: int) -> set[int] | None:
    """The places that read x of the turn before; None where one reads x of two turns, or x one of another turn."""
    lags = {cut: 0}
    for place in (*order, cut):
        own = [read for read in nest.reads[place] if _own(read, inside)]
        found = {lags[read.place] + read.distance for read in own}
        if len(found) != 1 or max(found) > 1:
            return None
        lags[place] = found.pop()
    return {place for place, lag in lags.items() if lag} if lags.pop(cut) == 1 else None


# --- factors and summands: what a place gives of those of its operands -------------------------------------


def _is(value: Value, number: int) -> bool:
    return bool(value.number is not None and value.number == number)


def _times(steps: Steps, own: list[bool], xs: list[Value], parts: list[tuple[Value, Value]]) -> Value:
    x, factor = (xs[0], parts[1][1]) if own[0] else (xs[1], parts[0][1])
    if _is(x, 0):
        return x
    return factor if _is(x, 1) else steps.entry(np.multiply, factor, x)


def _over(steps: Steps, own: list[bool], xs: list[Value], parts: list[tuple[Value, Value]]) -> Value:
    return xs[0] if _is(xs[0], 0) else steps.entry(np.divide, xs[0], parts[1][1])


def _plus(steps: Steps, own: list[bool], xs: list[Value], parts: list[tuple[Value, Value]]) -> Value:
    x, y = xs
    if _is(x, 0):
        return y
    return x if _is(y, 0) else steps.entry(np.add, x, y)


def _minus(steps: Steps, own: list[bool], xs: list[Value], parts: list[tuple[Value, Value]]) -> Value:
    x, y = xs
    if _is(y, 0):
        return x
    return steps.entry(np.negative, y) if _is(x, 0) else steps.entry(np.subtract, x, y)


def _turned(steps: Steps, own: list[bool], xs: list[Value], parts: list[tuple[Value, Value]]) -> Value:
    return xs[0] if _is(xs[0], 0) else steps.entry(np.negative, xs[0])


def _choice(steps: Steps, condition: Value, x: Value, y: Value) -> Value:
    return x if _is(x, 0) and _is(y, 0) else steps.choice(condition, x, y)


RULES: dict[Any, Callable[[Any, list[bool], list[Value], list[tuple[Value, Value]]], Value]] = {
    np.multiply: _times, np.divide: _over, np.add: _plus, np.subtract: _minus, np.negative: _turned,
}  # fmt: skip
