"""Encloses a requested derivative at a point, with any number of bits.

The claim is read from the same values, so that both sides of a comparison are at the same point. The signs that decided
branches are kept: another point lies in the same region if they are the same there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from gradcli.checks.derivatives.higher_orders import HigherDerivative, written_out
from gradcli.checks.derivatives.jets import KINK, SMOOTH, DependencyCone, DirectionalJets, ExactJets, Sides, Tied
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.balls import EXACT
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.evaluate.interpretation import Unsupported
from gradcli.checks.expansions.exact_reals import apart, ball_of
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from gradcli.checks.evaluate.balls import BallField, Literals, Point
    from gradcli.checks.evaluate.evaluation import Steps
    from gradcli.graph.node import Node
    from gradcli.lowering.derived import Slot

    Balls = Mapping[int, Any]  # entry -> a ball or a Failure


FEW = 16  # entries that always have a series each
MOST_STEPS = 100_000  # operations of the series of all entries; beyond that, they are along random directions
WHOLESALE = 8  # walks that these directions take, roughly
MOST_TOTAL = 8_000_000  # operations on single entries for one enclosure
MOST_KNOWN = 32  # points and precisions whose partials are kept
JOINT = 4  # directions in which everything moves, at a tie
MOST_JOINT = 64  # entries that may move together
ROUGH = "the partial derivatives exist, but the function is not differentiable"


@cache
def field_of(bits: int, literals: Literals = EXACT, plane: bool = False) -> BallField:
    """The field for numbers of so many bits, complex ones in the `plane`; it is shared by all points."""
    return (balls.ComplexField if plane else balls.BallField)(literals)


def exact_field(literals: Literals, plane: bool) -> BallField:
    """A field of exact numbers, for one point."""
    return (balls.ExactComplexField if plane else balls.ExactField)(literals)


def entries_of(node: Node, point: Point, field: BallField, derived: Sequence[Sequence[Any]] = ()) -> list[Any]:
    """The entries of a node at a point: real numbers, with the bits that are set now or exact.

    What is `derived` is read from the values of what it is derived from.
    """
    return list(field.slopes(balls.read(field, [node], point, written_out(field, [node], point, derived))[0].flat))


class DerivativeQuery:
    """The derivative of a scalar node by entries of a target; `moving` names the leaves that may move together.

    Where the node is itself a derivative, `inner` says of what (see `HigherDerivative`): then it is read from that, and
    no rule takes part. In the complex `plane` every entry counts twice, for its real and its imaginary part. Raises
    Unsupported for too large a program.
    """

    def __init__(
        self,
        output: Node,
        target: Node,
        moving: Sequence[str],
        entries: Sequence[int] | None = None,
        seed: int = 0,
        inner: tuple[Node, Sequence[Slot]] | None = None,
        plane: bool = False,
    ) -> None:
        self.output = output
        self.target = target
        self.moving = moving
        self.seed = seed
        self.plane = plane
        self.parts = 2 if plane else 1  # of an entry
        self.entries = list(range(self.parts * target.type.size)) if entries is None else list(entries)
        self.paths = DependencyCone([output], target)
        count = len(self.entries)
        self.higher = None if inner is None or plane else (inner[0], [*inner[1], ("axis", target, target)])
        self.wholesale = count > FEW and count * self.paths.cost > MOST_STEPS
        if self.wholesale and plane:
            raise Unsupported(f"the {count:,} partials of {count // 2:,} complex entries")
        total = self.paths.cost * (WHOLESALE if self.wholesale else count)
        if total > MOST_TOTAL:
            raise Unsupported(f"about {total:,} operations on entries, more than {MOST_TOTAL:,}")
        # what one claim has read, for the next: signs and partials; of many entries at once, signs and the comparison
        self.known: dict[Hashable, tuple[list[int], Balls]] = {}
        self.answers: dict[Hashable, tuple[list[int], dict[str, Any]]] = {}

    def work(self, judged: Node) -> int:
        """How many operations on single entries a comparison takes, roughly, with any number of bits."""
        walks = len(self.entries) * self.paths.cost
        if self.higher is not None:
            walks *= 1 + len(self.entries)
        return walks + work_of(reachable([self.output, judged]))

    @cached_property
    def together(self) -> DependencyCone:
        """The paths from the target and all other leaves that may move; from an inner value, from it alone."""
        leaves = [node for node in reachable([self.output]) if node.primitive is LEAF and node is not self.target]
        moving = [node for node in leaves if node.params["name"] in self.moving and self.target.primitive is LEAF]
        return DependencyCone([self.output], self.target, *moving)


class PointEvaluation:
    """A derivative at one point."""

    def __init__(
        self, query: DerivativeQuery, point: Point, literals: Literals = EXACT, field: BallField | None = None
    ) -> None:
        self.query = query
        self.point = point
        self.literals = literals
        self.field = field  # of exact numbers
        self.bits = ball_numbers.START_BITS  # of the last lines
        self.signs: list[int] = []  # that decided branches
        self.rough: Tied | None = None  # where a direction in which many entries move has no derivative
        self.place = repr(point)
        self._lines: DirectionalJets | None = None

    def lines(self, bits: int) -> DirectionalJets:
        """The lines through the point; to be used with so many bits set."""
        if self._lines is None or (self.bits != bits and self.field is None):
            self._lines = self._through(self.query.paths, bits)
        self.bits = bits
        return self._lines

    def exactly(self) -> PointEvaluation:
        """The same evaluation in exact numbers, which decide ties."""
        field = exact_field(self.literals, self.query.plane)
        return PointEvaluation(self.query, self.point, self.literals, field)

    def _through(self, paths: DependencyCone, bits: int) -> DirectionalJets:
        if self.field is not None:
            return ExactJets(self.field, paths, self.point)
        field = field_of(bits, self.literals._replace(printed=False), self.query.plane)
        return DirectionalJets(field, paths, self.point)

    def value(self) -> Any:
        """The output with 56 good bits, as far as the budget goes: a ball or a Failure."""
        return ball_numbers.with_bits(lambda bits: ball_of(self.lines(bits).value), work=self.query.paths.cost)

    def exact(self, bits: int) -> Balls:
        """The partial derivatives with respect to the requested entries, read once for all claims about them."""
        known = self.query.known
        key = (bits, self.literals, self.field, self.place)
        if key not in known:
            if len(known) == MOST_KNOWN:
                del known[next(iter(known))]
            known[key] = self._exact(bits)
        self.signs, partials = known[key]
        return partials

    def _exact(self, bits: int) -> tuple[list[int], Balls]:
        """The signs that decide branches, and the partials."""
        query = self.query
        if query.higher is not None and self.field is None:
            higher = HigherDerivative(field_of(bits, self.literals._replace(printed=False)), self.point, *query.higher)
            entries = higher.entries()
            if entries is not None:
                return list(higher.lines.signs), {i: entries.flat[i] for i in query.entries}
        lines = self.lines(bits)
        lines.signs = []
        partials = {i: lines.partial(i) for i in query.entries}
        return list(lines.signs), partials

    def claimed(self, node: Node, bits: int, steps: Steps = ()) -> Balls:
        """The entries of a node at this point; the decimals of this node alone may count to their digits.

        `steps` are those that the node needs beside the derivative, where they are known.
        """
        if self.literals.printed:
            return dict(enumerate(entries_of(node, self.point, field_of(bits, self.literals, self.query.plane))))
        lines = self.lines(bits)
        lines.base.follow(steps)
        return dict(enumerate(map(ball_of, lines.field.slopes(lines.base[node].flat))))

    # --- at a tie ---------------------------------------------------------------------------------------------

    def ties(self, entries: Sequence[int], together: bool = True) -> Tied:
        """What happens along the axes of some entries, and along directions in which everything moves `together`."""
        lines = self.lines(ball_numbers.START_BITS)
        assert isinstance(lines, ExactJets)
        seen = {i: lines.sides({i: 1}) for i in entries}
        smooth = all(axis.kind == SMOOTH for axis in seen.values())
        return Tied(seen, self._together(seen) if smooth and together else None)

    def _together(self, seen: Mapping[int, Sides]) -> Sides | None:
        """The first direction along which the output is not smooth, or has another slope than the partials give."""
        together = self.query.together
        count = together.size * self.query.parts
        if not 1 < count <= MOST_JOINT:
            return None
        lines = self._through(together, self.bits)
        assert isinstance(lines, ExactJets)
        axes = {i: seen[i] if i in seen else lines.sides({i: 1}) for i in range(count)}
        rough = next((axis for axis in axes.values() if axis.kind != SMOOTH), None)
        if rough is not None:
            return rough._replace(reason=rough.reason or ROUGH)
        from random import Random  # start-up time: few points are a tie

        generator = Random(self.query.seed)
        for _ in range(JOINT):
            direction = {i: generator.choice((-1, 1)) * Fraction(generator.randrange(26, 65), 64) for i in range(count)}
            both = lines.sides(direction)
            slope = sum(axes[i].left.slope * speed for i, speed in direction.items())
            if both.kind == SMOOTH and apart(both.left.slope, slope):
                both = both._replace(kind=KINK)
            if both.kind != SMOOTH:
                return both._replace(reason=both.reason or ROUGH)
        return None
