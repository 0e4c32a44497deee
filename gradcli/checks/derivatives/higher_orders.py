"""Derivatives that a script writes, such as `hessian(f, y)`, read from the values of the function that they are of.

No rule is read: a derivative along k directions is a sum of Taylor coefficients of order k along sums of these
(polarisation). At a tie the coefficients of both sides are exact numbers: they have to be equal up to order k, and the
derivative along one more direction has to be the sum of the partials that it consists of.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations, product
from math import factorial, prod
from typing import TYPE_CHECKING, Any

from gradcli.checks.derivatives.jets import DependencyCone, DirectionalJets, ExactJets, coefficient
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Entries, Failure, Tie, Unclear, Undecided
from gradcli.checks.expansions.exact_reals import apart, ball_of
from gradcli.checks.expansions.log_puiseux import Expansion, taylor
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.evaluate.balls import BallField, Point
    from gradcli.lowering.derived import Slot

    Place = tuple[int, ...]  # numbers of single directions
    Table = dict[Place, list[Any]]  # for each place, a number or a Failure for each entry of the base

MOST_STEPS = 400_000  # operations on single entries of all walks
CROSS = (3, -2, 5, -7)  # the speeds of the entries along one more direction, in turn
ORDERS = ("values", "slopes", "second derivatives", "third derivatives")


class HigherDerivative:
    """The derivative of `base` by the targets of some slots at a point, with the bits that are set or exact.

    `written_derivative` explains the slots.
    """

    def __init__(self, field: BallField, point: Point, base: Node, slots: Sequence[Slot]) -> None:
        targets = list(dict.fromkeys(target for _, target, _ in slots))
        self.cone, self.point, self.base = DependencyCone([base], *targets), point, base
        self.tied: Failure | None = None  # at the first tie
        self.exact = isinstance(field, balls.ExactField)
        self.lines = (ExactJets if self.exact else DirectionalJets)(field, self.cone, point)
        # single directions: positions with their speeds, or with the entries of a node as such
        self.moves: list[tuple[Sequence[int], Sequence[int] | Node]] = [([at], [1]) for at in range(self.cone.size)]
        self.known: Table = {}
        self.slots: list[list[Place]] = []
        self.kinds = [kind for kind, _, _ in slots]
        for kind, target, direction in slots:
            start = sum(earlier.type.size for earlier in targets[: targets.index(target)])
            places = range(start, start + target.type.size)
            if kind == "along":
                self.slots.append([(len(self.moves),)])
                self.moves.append((places, direction))
            else:
                self.slots.append([(at,) if kind == "axis" else (at, at) for at in places])
        self.order = sum(len(slot[0]) for slot in self.slots)
        self.cost = 2**self.order * prod(map(len, self.slots)) * self.cone.cost
        shapes = [target.type.shape for kind, target, _ in slots if kind == "axis"]
        self.shape = sum(shapes, base.type.shape)

    @cached_property
    def exactly(self) -> DirectionalJets:
        """The lines in exact numbers."""
        return self.lines if self.exact else ExactJets(balls.ExactField(), self.cone, self.point)

    def entries(self) -> Entries | None:
        """The entries: numbers, or what failed; None where they are too many, and no tie decides any of them."""
        if self.cost > MOST_STEPS:
            way = {at: CROSS[at % len(CROSS)] for at in range(self.cone.size)}
            if any(isinstance(coefficient(x, self.order), Tie) for x in self.lines.along(way, self.order)):
                raise Unclear(f"a tie, and about {self.cost:,} operations on entries, more than {MOST_STEPS:,}")
            return None
        table = self._table(self.slots)
        if self.tied is not None:
            failed = next((x for row in table.values() for x in row if isinstance(x, Failure)), None)
            if rough := failed or self._rough(table, self.tied):
                table = {place: [rough] * self.base.type.size for place in table}
        return Entries([row[at] for at in range(self.base.type.size) for row in table.values()], self.shape)

    def _table(self, slots: Sequence[Sequence[Place]]) -> Table:
        """The derivatives along all combinations of directions; those of a trace are summed up."""
        table: Table = {}
        for parts in product(*slots):
            place: Place = sum([part for part, kind in zip(parts, self.kinds, strict=True) if kind != "trace"], ())
            row = self._partial(tuple(sorted(sum(parts, ()))))
            table[place] = [x + y for x, y in zip(table[place], row, strict=True)] if place in table else row
        return table

    def _partial(self, place: Place) -> list[Any]:
        """The derivative of each entry of the base along some directions, by polarisation."""
        if len(set(place)) == 1:
            return [factorial(self.order) * c for c in self._coefficients(place[:1])]
        terms = [
            [c if (self.order - count) % 2 == 0 else -c for c in self._coefficients(chosen)]
            for count in range(1, self.order + 1)
            for chosen in combinations(place, count)
        ]
        return [sum(column[1:], column[0]) for column in zip(*terms, strict=True)]

    def _coefficients(self, chosen: Place) -> list[Any]:
        """The Taylor coefficients along a sum of directions; at a tie those of both sides, if they are equal."""
        if chosen not in self.known:
            rows: list[Any] = [Tie()]
            if not self.exact:
                along = self.lines.along(self._way(chosen, self.lines.field), self.order)
                rows = [coefficient(x, self.order) for x in along]
            if doubt := next((row for row in rows if isinstance(row, (Tie, Undecided))), None):
                field = self.exactly.field
                assert isinstance(field, balls.ExactField)
                self.tied, way = self.tied or doubt, self._way(chosen, field)
                before = field.pool.unsettled
                right, left = (self.exactly.all_beside({at: side * way[at] for at in way}) for side in (1, -1))
                if self.order > 1 and field.pool.unsettled > before:  # a bound on a function is none on its slopes
                    right, left = ([bounded_only(x, self.order) for x in side] for side in (right, left))
                center = self.exactly.base.known[self.base].flat
                rows = [self._joined(*ends, doubt.node) for ends in zip(center, right, left, strict=True)]
            self.known[chosen] = rows
        return self.known[chosen]

    def _way(self, chosen: Place, field: BallField) -> dict[int, Any]:
        way: dict[int, Any] = {}
        for places, speeds in (self.moves[label] for label in chosen):
            row = balls.read(field, [speeds], self.point)[0].flat if isinstance(speeds, Node) else speeds
            for at, speed in zip(places, row, strict=True):
                way[at] = way[at] + speed if at in way else speed
        return way

    def _joined(self, value: Any, right: Any, left: Any, node: Node | None) -> Any:
        """The common coefficient of both sides, or why there is none."""
        high, low = taylor(right, self.order), taylor(left, self.order)
        for side in (value, high, low):
            if isinstance(side, Failure):
                return side if node is None else side.at(node)
        low = [-c if j % 2 else c for j, c in enumerate(low)]
        for order, (x, y) in enumerate(zip(low, high, strict=True)):
            if apart(x, y) or (order == 0 and apart(x, value)):
                what = ORDERS[order] if order < len(ORDERS) else f"derivatives of order {order}"
                below, above = (ball_numbers.digits(factorial(order) * ball_of(c), 6) for c in (x, y))
                fault = "has a kink" if order else "jumps"
                return Tie(f"{fault} here: {what} {below} from below, {above} from above", node)
        return high[-1] if self.exact else ball_of(high[-1])

    def _rough(self, table: Table, tie: Failure) -> Failure | None:
        """What shows at a tie that partials exist and are no derivative; None where nothing does."""
        slot = next((at for at, kind in enumerate(self.kinds) if kind == "axis" and len(self.slots[at]) > 1), None)
        if slot is None:
            return None
        speeds = {label: CROSS[i % len(CROSS)] for i, (label,) in enumerate(self.slots[slot])}
        cross, at = len(self.moves), self.kinds[:slot].count("axis") + self.kinds[:slot].count("along")
        self.moves.append((list(speeds), list(speeds.values())))
        for place, row in self._table([*self.slots[:slot], [(cross,)], *self.slots[slot + 1 :]]).items():
            columns = [[c * s for c in table[*place[:at], label, *place[at + 1 :]]] for label, s in speeds.items()]
            for across, *parts in zip(row, *columns, strict=True):
                total = sum(parts[1:], parts[0])
                if isinstance(across, Failure):
                    return across
                if not ball_of(across).overlaps(ball_of(total)):
                    return Tie("has a kink here: slopes in a direction are no sum of partials", tie.node)
        return None


def bounded_only(x: Any, order: int) -> Any:
    """An expansion from which no derivative of higher order follows where its remainder is bounded, not expanded."""
    known = not isinstance(x, Expansion) or x.rest is None
    return x if known else Unclear(f"a derivative of order {order} that the expansions do not determine")


def written_out(field: BallField, nodes: Sequence[Node], point: Point, derived: Sequence[Any]) -> dict[Node, Entries]:
    """The entries of the derivatives that some nodes depend on; of each the node, its base and its slots are given."""
    inside = set(reachable(nodes)) if derived else set()
    read = {node: HigherDerivative(field, point, *about).entries() for node, *about in derived if node in inside}
    return {node: entries for node, entries in read.items() if entries is not None}
