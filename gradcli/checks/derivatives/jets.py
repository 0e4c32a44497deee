"""Series of a program along straight lines through a point: enclosures of partials, slopes and second derivatives.

Every figure is a coefficient of a power series of the forward program; no derivative rule is read. What does not depend
on the target is read once and shared by all directions. At a tie each side has a log-Puiseux expansion of its own, and
three values are compared: at the point, and the limits from below and from above. What cannot be enclosed is a
`Failure`: more bits may help ("undecided"), only the two sides tell ("tie"), there is no value ("undefined").
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, arb_series, ctx

from gradcli.checks.evaluate import balls
from gradcli.checks.evaluate.evaluation import FieldEvaluation, steps_of, work_of
from gradcli.checks.evaluate.interpretation import Entries, Failure, Tie, Unclear, Undecided, Undefined
from gradcli.checks.expansions.exact_reals import apart, ball_of
from gradcli.checks.expansions.log_puiseux import STEP, Expansion, Huge
from gradcli.checks.expansions.power_series import Series, capacity
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.checks.evaluate.balls import BallField, Point

    Direction = Mapping[int, Any]  # position among the entries of the targets -> how fast it moves


class DependencyCone:
    """The nodes that lie between some targets and outputs, in order; comparisons are among them: they decide branches.

    The entries of all targets are counted one after the other.
    """

    __slots__ = ("all", "cost", "order", "outputs", "size", "still", "targets", "walk")

    def __init__(self, outputs: Sequence[Node], *targets: Node) -> None:
        self.outputs = tuple(outputs)
        self.targets = targets
        self.size = sum(target.type.size for target in targets)
        moved = set(targets)
        self.order: list[Node] = []
        self.all = reachable([*outputs, *targets])
        for node in self.all:
            if node not in moved and not moved.isdisjoint(node.args):
                moved.add(node)
                self.order.append(node)
        self.cost = work_of(self.order)  # of one walk, roughly
        self.still, self.walk = steps_of(self.all), steps_of(self.order)

    def split(self, entries: Iterable[Any]) -> dict[Node, Entries]:
        """The entries of all targets as those of each."""
        rest = iter(entries)
        return {target: Entries(islice(rest, target.type.size), target.type.shape) for target in self.targets}


class DirectionalJets:
    """A scalar node along straight lines through a point: its values, slopes and further coefficients.

    All of it is computed with the bits that are set when the object is made. `point` gives leaves their doubles, or
    balls for a box; `field` may be shared by many points with the same bits. A complex entry z has two directions, 1
    and i, so the gradient of the real part L is that of a real function with twice as many entries: 2k is dL/dx and
    2k + 1 is dL/dy of entry k. Nothing is assumed to be holomorphic.
    """

    def __init__(self, field: BallField, paths: DependencyCone, point: Point) -> None:
        self.field = field
        self.paths = paths
        self.bits: int = ctx.prec
        self.base = FieldEvaluation(field, balls.entries_of(field, point))
        self.base.follow(paths.still)
        self.entries = [entry for target in paths.targets for entry in self.base.known[target].flat]
        self.center = field.parts(self.entries)
        self.signs: list[int] = []  # of all that decided a branch, so far

    @property
    def value(self) -> Any:
        """The output at the point, or its real part."""
        return self.field.parts(self.base.known[self.paths.outputs[0]].flat)[0]

    def along(self, direction: Direction, order: int = 1) -> Sequence[Any]:
        """The parts of the output along a direction: each a series, a ball where it does not move, or a Failure."""
        with capacity(order + 1):
            return self._moved(direction, lambda x, speed: Series(arb_series([x, speed], order + 1)))

    def beside(self, direction: Direction) -> Any:
        """The output on the side that a direction leads to: an expansion, a ball where nothing moves, or a Failure."""
        return self.all_beside(direction)[0]

    def all_beside(self, direction: Direction) -> Sequence[Any]:
        """The parts of the output on the side that a direction leads to."""
        return self._moved(direction, self.field.along)

    def _moved(self, direction: Direction, move: Callable[[Any, Any], Any]) -> Sequence[Any]:
        """The parts of the output where some parts of the targets move."""
        center = list(self.center)
        for i, speed in direction.items():
            if isinstance(center[i], Failure):
                return [center[i], center[i]]
            center[i] = move(center[i], speed)
        field = self.field
        field.signs = self.signs
        walk = FieldEvaluation(field, {}, self.paths.split(field.joined(center, self.entries)), self.base.known)
        walk.follow(self.paths.walk)
        return field.parts(walk.known[self.paths.outputs[0]].flat)

    def partial(self, i: int) -> Any:
        """The partial derivative with respect to an entry of the target: a ball or a Failure."""
        return self.slope({i: 1})

    def slope(self, direction: Direction) -> Any:
        """The derivative along a direction: a ball or a Failure."""
        return coefficient(self.along(direction)[0], 1)


class ExactJets(DirectionalJets):
    """The same in exact numbers, with slopes that are read on both sides of the point: where it is a tie, or may be."""

    def __init__(self, field: BallField, paths: DependencyCone, point: Point) -> None:
        super().__init__(field, paths, point)
        self.seen: dict[Any, Sides] = {}

    def slope(self, direction: Direction) -> Any:
        seen = self.sides(direction)
        return seen.slope if seen.kind == SMOOTH else (Unclear if seen.kind == UNKNOWN else Tie)(seen.reason)

    def sides(self, direction: Direction) -> Sides:
        """Both sides of the point on the straight line of a direction."""
        key = tuple(direction.items())
        for terms in TERMS:
            if key not in self.seen or self.seen[key].kind == UNKNOWN:
                with capacity(terms):
                    self.seen[key] = self._sides(direction)
        return self.seen[key]

    def _sides(self, direction: Direction) -> Sides:
        """The same with as many terms of expansions as series may have now."""
        right = side(self, direction)
        left = side(self, {i: -speed for i, speed in direction.items()})
        if left.slope is not None:
            left = left._replace(slope=-left.slope)
        kind, reason = kind_of(self.value, left, right)
        return Sides(kind, self.value, left, right, reason)


def coefficient(output: Any, k: int) -> Any:
    """A coefficient of the output along a line: 0 for a ball, which does not move."""
    if not isinstance(output, Series):
        return output if isinstance(output, Failure) else arb(0)
    short = output.s.prec <= k
    return Unclear(f"coefficient {k} of a series of {output.s.prec}") if short else output.s[k]


# --- both sides of a tie ------------------------------------------------------------------------------------------


TERMS = (3, 10)  # of expansions: first as few as most ties take
OPEN = "a slope that the expansions do not determine"
SMOOTH, KINK, BOUNDARY, JUMP, UNKNOWN = "smooth", "KINK", "BOUNDARY", "DISCONTINUOUS", "unknown"
WORST_FIRST = (JUMP, BOUNDARY, KINK, UNKNOWN)


class Side(NamedTuple):
    """One side: the limit of the values (None: there is none), and the slope: a number, a float inf or -inf, or None.

    `reason` says why something is missing, `certain` whether it is missing for certain.
    """

    limit: Any
    slope: Any
    reason: str = ""
    certain: bool = False


class Sides(NamedTuple):
    """What happens along a direction, and both sides."""

    kind: str
    value: Any
    left: Side
    right: Side
    reason: str = ""

    @property
    def slope(self) -> Any:
        """The common slope at a smooth point: a ball that contains the slopes of both sides."""
        return ball_of(self.left.slope).union(ball_of(self.right.slope))


def side(lines: ExactJets, direction: Direction) -> Side:
    """The limit and the slope as the step grows from 0."""
    output = lines.beside(direction)
    if isinstance(output, Failure):
        return Side(None, None, output.reason, isinstance(output, Undefined))
    if not isinstance(output, (Expansion, Huge)):
        return Side(output, output * 0)
    try:
        grown, limit, gone = output.split()
        if not grown.is_zero():
            where = "inf" if grown.sign() > 0 else "-inf"
            return Side(None, float(where), f"the value has no finite limit: it tends to {where}", True)
        early = Expansion({key: c for key, c in gone.terms.items() if key < STEP})
        if not early.is_zero():
            return Side(limit, float("inf") * early.sign(), "the slope is not bounded", True)
    except (Unclear, Undecided) as problem:
        swings = isinstance(output, Expansion) and output.swings
        return Side(None, None, "the value has no limit" if swings else problem.reason, swings)
    if gone.rest is not None and gone.rest <= STEP:
        swings = isinstance(output, Expansion) and output.swings
        return Side(limit, None, "the slope has no limit" if swings else OPEN, swings)
    return Side(limit, gone.terms.get(STEP, lines.field.number(0)))


def kind_of(value: Any, left: Side, right: Side) -> tuple[str, str]:
    """The kind of a point, by its value and both sides, and the reason where there is one."""
    both = (left, right)
    if any(side.limit is not None and apart(value, side.limit) for side in both):
        return JUMP, ""
    missing = [side for side in both if side.limit is None]
    if missing:
        worst = max(missing, key=lambda side: side.certain)
        return BOUNDARY if worst.certain else UNKNOWN, worst.reason
    if any(isinstance(side.slope, float) for side in both):
        return BOUNDARY, "no finite slope"
    for side in both:
        if side.slope is None:
            return BOUNDARY if side.certain else UNKNOWN, side.reason
    return (KINK, "") if apart(left.slope, right.slope) else (SMOOTH, "")


class Tied(NamedTuple):
    """What happens at a tie: both sides along each axis, and along another direction if only that one is not smooth."""

    axes: Mapping[int, Sides]
    further: Sides | None

    @property
    def worst(self) -> Sides | None:
        """The least smooth direction; None where all are smooth."""
        rough = [line for line in (self.further, *self.axes.values()) if line is not None and line.kind != SMOOTH]
        return min(rough, key=lambda line: WORST_FIRST.index(line.kind), default=None)
