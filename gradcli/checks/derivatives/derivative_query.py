"""Encloses a requested derivative at a point, with any number of bits.

The claim is read from the same values, so that both sides of a comparison are at the same point. The signs that decided
branches are kept: another point lies in the same region if they are the same there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives.jets import SMOOTH, DependencyCone, DirectionalJets, Sides, Tied, sides
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.balls import EXACT
from gradcli.checks.evaluate.evaluation import steps_of, work_of
from gradcli.checks.evaluate.interpretation import Failure, Unsupported
from gradcli.checks.expansions.series_fields import ComplexField
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from gradcli.checks.evaluate.balls import BallField, Literals, Point
    from gradcli.checks.evaluate.evaluation import Steps
    from gradcli.graph.node import Node


FEW = 16  # entries that always have a series each
MOST_SINGLE = 1000  # more are looked at along random directions
TIE_BITS = (ball_numbers.START_BITS, 512, 2048)  # at a tie: the last ones tell a slope of 0 from the smallest double
WHOLESALE = 8  # walks that they take, roughly
MOST_TOTAL = 8_000_000  # operations on single entries for one enclosure
MOST_STEPS = 400_000  # or where the series of all entries would take so many steps
MOST_KNOWN = 32  # points and precisions whose partials are kept


@cache
def field_of(bits: int, literals: Literals = EXACT, plane: bool = False) -> BallField:
    """The field for numbers of so many bits, complex ones in the `plane`: what it knows serves every point."""
    return (ComplexField if plane else balls.BallField)(literals)


class DerivativeQuery:
    """The derivative of a scalar node by entries of a target; `moving` names the leaves that may move together.

    Where the node is itself the derivative of a scalar y by a scalar z, given as `inner`, its derivatives are second
    ones of y: then they are read from y, and the rule that made the first derivative takes no part. In the complex
    `plane` every entry counts twice, for its real and its imaginary part.
    """

    def __init__(
        self,
        output: Node,
        target: Node,
        moving: Sequence[str],
        entries: Sequence[int] | None = None,
        seed: int = 0,
        inner: tuple[Node, Node] | None = None,
        plane: bool = False,
    ) -> None:
        self.output = output
        self.target = target
        self.plane = plane
        self.parts = 2 if plane else 1  # of an entry
        self.entries = list(range(self.parts * target.type.size)) if entries is None else list(entries)
        self.paths = DependencyCone([output], target)
        self.moving = tuple(moving)
        self.seed = seed
        count = len(self.entries)
        self.second: DependencyCone | None = None
        if inner is not None and count <= FEW and not plane:
            y, z = inner
            self.second = DependencyCone([y], *dict.fromkeys((z, target)))
        many = count > MOST_SINGLE or (count > FEW and count * self.paths.cost > MOST_STEPS)
        if many and plane:
            raise Unsupported(f"the {count:,} partials of {count // 2:,} complex entries")
        self.wholesale = many
        total = self.paths.cost * (WHOLESALE if many else count)
        if total > MOST_TOTAL:
            raise Unsupported(f"about {total:,} operations on entries, more than {MOST_TOTAL:,}")
        # What one claim has read, for the next: signs and partials, whether differences agree with these.
        self.known: dict[Hashable, tuple[list[int], Mapping[int, Any]]] = {}
        self.digits: dict[Hashable, bool | None] = {}
        self._together: DependencyCone | None = None
        self._beyond: dict[Node, Steps] = {}

    def work(self, judged: Node) -> int:
        """How many operations on single entries a comparison takes, roughly, with any number of bits."""
        walks = len(self.entries) * self.paths.cost
        if self.second is not None:
            walks *= 1 + len(self.entries)
        return walks + work_of(reachable([self.output, judged]))

    def beyond(self, node: Node) -> Steps:
        """The steps that another node needs, beside those of the derivative."""
        if node not in self._beyond:
            have = set(self.paths.all)
            self._beyond[node] = steps_of([one for one in reachable([node]) if one not in have])
        return self._beyond[node]

    @property
    def together(self) -> DependencyCone:
        """The paths from the target and all other leaves that may move; from an inner value, from it alone."""
        if self._together is None:
            others = []
            if self.target.primitive is LEAF:
                others = [
                    node
                    for node in reachable([self.output])
                    if node.primitive is LEAF and node.params["name"] in self.moving and node is not self.target
                ]
            self._together = DependencyCone([self.output], self.target, *others)
        return self._together


class PointEvaluation:
    """A derivative at one point. `joined` are entries whose partials are read on both sides of a tie."""

    def __init__(self, query: DerivativeQuery, point: Point, literals: Literals = EXACT) -> None:
        self.query = query
        self.point = point
        self.signs: list[int] = []
        self.partials: Mapping[int, Any] = {}  # the last ones
        self.joined: set[int] = set()
        self.rough: Tied | None = None  # along a direction in which many entries move
        self.literals = literals
        self.place = repr(point)
        self.key: Hashable = None  # of the last partials
        self._lines: tuple[int, DirectionalJets] | None = None

    def _field(self, bits: int, printed: bool = False) -> BallField:
        return field_of(bits, self.literals._replace(printed=printed), self.query.plane)

    def lines(self, bits: int) -> DirectionalJets:
        """The lines through the point; to be used with so many bits set."""
        if self._lines is None or self._lines[0] != bits:
            self._lines = (bits, self._through(self.query.paths, bits))
        return self._lines[1]

    @property
    def lines_bits(self) -> int:
        """The bits of the last lines, 128 before there are any."""
        return ball_numbers.START_BITS if self._lines is None else self._lines[0]

    def _through(self, paths: DependencyCone, bits: int) -> DirectionalJets:
        return DirectionalJets(self._field(bits), paths, self.point)

    def value(self) -> Any:
        """The output with 56 good bits, as far as the budget goes: a ball or a Failure."""
        return ball_numbers.with_bits(lambda bits: self.lines(bits).value, work=self.query.paths.cost)

    def exact(self, bits: int) -> Mapping[int, Any]:
        """The partial derivatives with respect to the requested entries: balls or Failures; read once for all claims
        about them.
        """
        known = self.query.known
        self.key = (bits, self.literals, tuple(sorted(self.joined)), self.place)
        if self.key not in known:
            found = self._exact(bits)
            if len(known) == MOST_KNOWN:
                del known[next(iter(known))]
            known[self.key] = found
        self.signs, self.partials = known[self.key]
        return self.partials

    def _exact(self, bits: int) -> tuple[list[int], Mapping[int, Any]]:
        """The signs that decide branches, and the partials."""
        if self.query.second is not None and not self.joined:
            paths = self.query.second
            lines = DirectionalJets(self._field(bits), paths, self.point)
            start = paths.size - self.query.target.type.size
            return lines.signs, {i: lines.second(0, start + i) for i in self.query.entries}
        lines = self.lines(bits)
        lines.signs = []
        found = {i: self._joined(lines, i) if i in self.joined else lines.partial(i) for i in self.query.entries}
        return lines.signs, found

    def claimed(self, node: Node) -> Callable[[int], Mapping[int, Any]]:
        """The entries of a node at this point, for so many bits; the decimals of this one may count to their digits."""
        order = self.query.beyond(node)

        def at(bits: int) -> Mapping[int, Any]:
            field = self._field(bits, self.literals.printed)
            if self.literals.printed:
                flat = balls.read(field, [node], self.point)[0].flat
            else:
                base = self.lines(bits).base
                base.follow(order)
                flat = base.known[node].flat
            return dict(enumerate(field.slopes(flat)))

        return at

    def _joined(self, lines: DirectionalJets, i: int) -> Any:
        seen = sides(lines, {i: 1})
        if seen.lacks_digits:
            return Failure("undecided", None, seen.reason)
        return seen.slope if seen.kind == SMOOTH else Failure("tie", None, "a tie")

    # --- at a tie ---------------------------------------------------------------------------------------------

    def ties(self, entries: Sequence[int], directions: Sequence[Mapping[int, Any]]) -> Tied:
        """What happens at the point along the axes of some entries, and along directions in which everything moves.

        Where all of it is smooth, these entries are `joined` from now on.
        """
        for bits in TIE_BITS:
            found = self._tied(entries, directions, bits)
            if found.worst is None or not found.worst.lacks_digits:
                break
        return found

    def _tied(self, entries: Sequence[int], directions: Sequence[Mapping[int, Any]], bits: int) -> Tied:
        with ball_numbers.precision(bits):
            lines = self.lines(bits)
            seen = {i: sides(lines, {i: 1}) for i in entries}
            rough = {i: one for i, one in seen.items() if one.kind != SMOOTH}
            if rough:
                return Tied(seen, None)
            wrong = self._along(directions, seen, bits)
        if wrong is None:
            self.joined |= set(entries)
        return Tied(seen, wrong)

    def _along(self, directions: Sequence[Mapping[int, Any]], seen: Mapping[int, Sides], bits: int) -> Sides | None:
        together = self.query.together
        count = together.size * self.query.parts
        if not directions or count < 2:
            return None
        lines = self._through(together, bits)
        slopes: dict[int, Any] = {}
        for i in range(count):
            slope = seen[i].slope if i in seen else lines.partial(i)
            if isinstance(slope, Failure):
                one = sides(lines, {i: 1})
                if one.kind != SMOOTH:
                    return one
                slope = one.slope
            slopes[i] = slope
        for direction in directions:
            one = sides(lines, direction)
            if one.kind != SMOOTH:
                return one
            expected: Any = sum((slopes[i] * speed for i, speed in direction.items()), arb(0))
            if not one.slope.overlaps(expected):
                return one._replace(
                    kind="KINK", reason="the partial derivatives exist, but the function is not differentiable"
                )
        return None
