"""Factors a and summands b of all turns go in, the solution of x[t] = a[t] x[t-1] + b[t] comes out, for each entry.

It is found in two levels: in all blocks of turns at once, as if 0 stood before each of them; then from block to block.
So few calls do many turns (R. Brent, H. Kung, A regular layout for parallel adders, 1982; G. Blelloch, Prefix sums and
their applications, 1990). Where numbers are so large or small that a product of factors tells less than the turns do,
the steps of the program run turn by turn instead. Who asks for x is not known here.
"""

from __future__ import annotations

from math import inf, isqrt, prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.kernels import entry
from gradcli.execution.plans.sizes import about, in_order, largest, smallest, within
from gradcli.execution.plans.values import CHOICE, Op, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.execution.plans.nests import Nest

GIVEN = 2  # a and b stand before all other operands
BLOCKS, SUM, PRODUCT = "blocks", "sum", "product"
LARGE = 1 / 3  # the power of the largest number of a type up to which numbers are large, but not too large
SMALL = 1e-28  # factors below are small: from LEAST on, one of them leads to no number below the normal ones
LEAST = 1e-280  # of products of factors that are not 0
LOST = 1e4  # how far what is added up may be above what comes of it


class Recurrence:
    """What is known of a recurrence before any number is: its size, its form, and the steps of one turn.

    `turn` has (place, function, operands) with operands ("own", place, turns before) or ("given", operand of the step,
    whether it has a row for each turn).
    """

    def __init__(self, nest: Nest, places: Sequence[int], cut: int, a: Value, b: Value) -> None:
        out = nest.body[cut].out
        self.count = nest.count
        self.shape = out.shape
        self.dtype = out.dtype
        self.cut = cut
        self.nodes = [op.node for place in places for op in nest.all(place)]
        self.form = BLOCKS
        if b.number is not None and b.number == 0:
            self.form = PRODUCT
        elif a.number is not None and a.number == 1:
            self.form = SUM
        self.turn: list[tuple[int, Any, list[Any]]] = [
            (place, _choose if op.kind == CHOICE else entry(op.function), [None] * len(op.args))
            for place in places
            for op in [nest.body[place]]
        ]
        self.at = {place: at for at, (place, _, _) in enumerate(self.turn)}
        self.initial: dict[int, int] = {}  # which operand stands for a place before the first turn
        self.factors: list[int] = []
        self.divisors: list[int] = []
        self.summands: list[int] = []
        self.rest, self.length, self.blocks = cut_up(self.count - 1)

    def own(self, place: int, position: int, other: int, before: int) -> None:
        """An operand of a place is what another one, or itself, gives."""
        self.turn[self.at[place]][2][position] = ("own", other, before)

    def given(self, op: Op, place: int, position: int, which: int, stacked: bool) -> None:
        """An operand of a place comes from outside."""
        self.turn[self.at[place]][2][position] = ("given", which, stacked)
        if op.function is np.divide:
            self.divisors.append(which)
        elif op.function is np.multiply:
            self.factors.append(which)
        elif op.kind != CHOICE or position:
            self.summands.append(which)

    @property
    def calls(self) -> int:
        """About how many calls of functions a run takes."""
        own = 2 * (self.rest + self.blocks) + 3 * self.length if self.form == BLOCKS else 0
        return own + 8 + 2 * len(self.turn)

    def kernel(self) -> Callable[..., Any]:
        """A function of the operands and the result."""
        return Solver(self)

    def __repr__(self) -> str:
        if self.form != BLOCKS:
            return f"{'sums' if self.form == SUM else 'products'} of {self.count} turns"
        return f"{self.count} turns in {self.blocks} blocks"


def cut_up(rows: int) -> tuple[int, int, int]:
    """How many rows come before the blocks, the length of a block, and how many there are, for few calls.

    >>> cut_up(1021)
    (1, 30, 34)
    """
    root = isqrt(rows)
    lengths = range(max(1, root // 2), 2 * root + 1)
    length = min(lengths, key=lambda n: 3 * n + 2 * (rows // n) + 2 * (rows % n))
    return rows % length, length, rows // length


class Solver:
    """A recurrence and the memory that a run needs."""

    def __init__(self, recurrence: Recurrence) -> None:
        self.of = of = recurrence
        self.tiny = float(np.finfo(of.dtype).tiny)
        self.large = float(np.finfo(of.dtype).max) ** LARGE
        self.small = max(SMALL, 10 * self.tiny * self.large)
        self.blocks: Blocks | None = None
        self.given: list[tuple[int, bool]] = []  # the operands from outside, in the order in which steps read them
        self.steps: list[tuple[Any, Any]] = []  # functions, and what takes their operands and results from the cells
        inside, own = sum(kind == "given" for _, _, xs in of.turn for kind, _, _ in xs), len(of.turn)
        for at, (_, function, operands) in enumerate(of.turn):
            places = []
            for kind, which, how in operands:
                if kind == "own":
                    places.append(inside + of.at[which] + (own if how else 0))
                else:
                    places.append(len(self.given))
                    self.given.append((which, how))
            self.steps.append((function, itemgetter(*places, inside + at)))
        one, other = [[np.empty(of.shape, of.dtype) for _ in of.turn] for _ in range(2)]
        self.memory = [one + other, other + one]  # of turns with an even number, and with an odd one: now and before
        self.initial = [(other[of.at[place]], which) for place, which in of.initial.items()]

    def __call__(self, *arrays: Any) -> None:
        if not self.solved(arrays):
            self.by_turns(arrays, self.of.count)

    def solved(self, arrays: Sequence[Any]) -> bool:
        """Whether x could be found for all turns together."""
        of, out = self.of, arrays[-1]
        a, b = arrays[:GIVEN]
        lowest = float(in_order(a).min())
        if not self._fair(arrays, lowest):
            return False
        self.by_turns(arrays, 1)
        if of.form == BLOCKS:
            if self.blocks is None:
                self.blocks = Blocks(of.shape, of.count)
            if not self.blocks.solved(a, b, out, lowest):
                return False
        else:
            stack = np.empty_like(out)
            stack[0], stack[1:] = out[0], b if of.form == SUM else a
            (np.add if of.form == SUM else np.multiply).accumulate(stack, 0, None, out)
        return within(out, self.large)

    def _fair(self, arrays: Sequence[Any], lowest: float) -> bool:
        """Whether no number inside of a turn can leave the range, and no product of factors is 0 by itself.

        `lowest` is the least a, with its sign.
        """
        of = self.of
        if not self._grown(arrays, about) <= self.large and not self._grown(arrays, largest) <= self.large:
            return False
        if not all(within(arrays[which], self.large) for which in of.summands):
            return False
        if lowest >= self.small or smallest(arrays[0]) >= self.small:
            return True
        shrunk = 1.0
        for which in of.factors:
            shrunk *= min(1.0, smallest(arrays[which], nonzero=True))
        for which in of.divisors:
            shrunk *= min(1.0, 1 / largest(arrays[which]))
        return shrunk > self.tiny and smallest(arrays[0], nonzero=True) >= self.small

    def _grown(self, arrays: Sequence[Any], size: Callable[[Any], float]) -> float:
        """By how much the factors of one turn can grow a number."""
        grown = 1.0
        for which in self.of.factors:
            grown *= max(1.0, size(arrays[which]))
        for which in self.of.divisors:
            grown *= max(1.0, 1 / max(smallest(arrays[which]), 1 / self.large**2))
        return grown

    def by_turns(self, arrays: Sequence[Any], count: int) -> None:
        """The steps of the program, for some turns."""
        out, cut = arrays[-1], len(self.given) + self.of.at[self.of.cut]
        for before, which in self.initial:
            before[...] = arrays[which]
        for at in range(count):
            cells = [arrays[which][at] if stacked else arrays[which] for which, stacked in self.given]
            cells += self.memory[at % 2]
            for function, taken in self.steps:
                function(*taken(cells))
            out[at] = cells[cut]


class Blocks:
    """Turns cut into blocks that lie side by side, so that one call takes a turn of each."""

    def __init__(self, shape: tuple[int, ...], turns: int) -> None:
        self.shape = shape
        self.rest, self.length, self.count = cut_up(turns - 1)
        self.width = prod(self.shape)
        self.powers, self.sums = [np.empty((self.length, self.count, self.width)) for _ in range(2)]
        rows = [one.reshape(self.length, -1) for one in (self.powers, self.sums)]
        self.steps = list(zip(*[one[1:] for one in rows], *[one[:-1] for one in rows], strict=True))
        self.heads = np.empty((self.count + 1, self.width))
        last = zip(self.powers[-1], self.sums[-1], self.heads, self.heads[1:], strict=False)
        self.ends = list(last)
        self.passing = np.empty(self.count * self.width)
        turn = np.arange(self.length * self.count)
        self.across = turn.reshape(self.count, self.length).T.ravel()  # the turns as they stand in blocks
        self.along = turn.reshape(self.length, self.count).T.ravel()  # and the other way round

    def solved(self, a: Any, b: Any, out: Any, lowest: float = -inf) -> bool:
        """Put x behind its first turn; no factor is below `lowest`.

        False where a product of factors came to less than `LEAST`, but not by a 0, or where x comes of the difference
        of much larger numbers, as that of a recurrence does that grows unless its summands keep it.
        """
        a, b, rest = self._flat(a), self._flat(b), self.rest
        head = self.heads[0]
        np.copyto(head, out[0].reshape(self.width))
        for at in range(rest):
            np.add(np.multiply(a[at], head, head), b[at], head)
            out[at + 1] = head.reshape(self.shape)
        flat = [one.reshape(-1, self.width) for one in (self.powers, self.sums)]
        for x, laid in zip((a, b), flat, strict=True):
            np.asarray(x[rest:], float).take(self.across, 0, laid, "clip")
        multiply, add, passing = np.multiply, np.add, self.passing
        for factor, total, power_before, total_before in self.steps:
            multiply(factor, total_before, passing)
            add(passing, total, total)
            multiply(factor, power_before, factor)  # which is a product of factors from here on
        if not self._felt(a[rest:], lowest):
            return False
        for power, total, before, after in self.ends:
            add(multiply(power, before, after), total, after)
        heads = np.abs(self.heads)
        reach = self._reach(heads, np.maximum.reduce(self.powers, 0) if lowest > 0 else _sizes(self.powers))
        steady = (reach <= LOST * np.maximum.accumulate(heads[:-1])).all()
        multiply(self.powers, self.heads[:-1], self.powers)
        add(self.sums, self.powers, self.sums)
        if not steady:  # beside what blocks begin with; x inside of them is larger
            scale = np.maximum.accumulate(np.maximum(_sizes(self.sums), heads[:-1]))
            if not (reach <= LOST * scale).all():
                return False
        behind, solution = out[rest + 1 :], flat[1]
        if out.flags.c_contiguous and out.dtype == solution.dtype:
            solution.take(self.along, 0, behind.reshape(-1, self.width), "clip")
        else:
            np.copyto(behind, solution.take(self.along, 0).reshape(behind.shape), casting="same_kind")
        return True

    def _felt(self, a: Any, lowest: float) -> bool:
        """Whether no product of factors came to less than `LEAST`, but by a 0."""
        if lowest >= 1 or (lowest > 0 and lowest**self.length >= 2 * LEAST):
            return True
        if smallest(self.powers) >= LEAST:
            return True
        return smallest(a) == 0 and smallest(self.powers, nonzero=True) >= LEAST

    def _reach(self, heads: Any, powers: Any) -> Any:
        """How far what is added up can be from 0, roundings of earlier blocks included, in each entry of a block.

        It is to stay near x, so that what roundings can come to is small beside it.
        """
        sums, last_powers = _sizes(self.sums), np.abs(self.powers[-1])
        grown = np.empty_like(heads)
        grown[0] = heads[0]
        add, multiply = np.add, np.multiply
        add(multiply(last_powers, heads[:-1], grown[1:]), np.abs(self.sums[-1]), grown[1:])
        if powers.max() <= 1:
            add.accumulate(grown, 0, None, grown)
        else:
            for power, before, after in zip(last_powers, grown, grown[1:], strict=False):
                after += power * before
        return powers * (grown[:-1] + heads[:-1]) + sums

    def _flat(self, x: Any) -> Any:
        """An operand with all its entries side by side in each turn; what is the same in all turns takes no memory."""
        rows = self.rest + self.length * self.count
        if x.shape == (rows, *self.shape):
            return x.reshape(rows, self.width)
        if len(x.shape) <= len(self.shape):
            return np.broadcast_to(np.broadcast_to(x, self.shape).reshape(self.width), (rows, self.width))
        return np.broadcast_to(x, (rows, *self.shape)).reshape(rows, self.width)


def _sizes(x: Any) -> Any:
    """The largest size in each block, for each entry; nan where an entry is."""
    return np.maximum(np.maximum.reduce(x, 0), -np.minimum.reduce(x, 0))


def _choose(condition: Any, x: Any, y: Any, out: Any) -> None:
    np.copyto(out, np.where(condition, x, y))
