"""Compares a derivative with a claim on a box: the box is cut until each piece is decided, or a budget is spent.

On a piece every quantity is a ball that holds its values at all points of the piece. A piece is settled where the
derivative exists at every point of it and the claim's ball meets the derivative's; it refutes where they do not meet.
What decided the branches of a piece is its region, so that a proof at one point of a region serves all pieces of it.

Where a node is 0 inside the box, pieces around the place stay open. The place is found as an exact number, and the
derivative and the claim are compared there as at a tie. Beside it every branch is decided by a slope: the node has a
sign of its own on each side, so that the regions of both sides reach up to the place.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, arb_series, fmpq

from gradcli.checks.derivatives.claim_comparison import DISJOINT, relation
from gradcli.checks.derivatives.derivative_query import PointEvaluation
from gradcli.checks.derivatives.jets import DirectionalJets
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.ball_numbers import START_BITS, precision
from gradcli.checks.evaluate.balls import BallField, ExactField
from gradcli.checks.evaluate.evaluation import FieldEvaluation
from gradcli.checks.evaluate.interpretation import Entries, Failure, Undecided, Undefined, Unsupported
from gradcli.checks.expansions.log_puiseux import ONE, Expansion, TracedExpansion
from gradcli.checks.expansions.power_series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.derivatives.claim_comparison import ClaimComparison
    from gradcli.checks.derivatives.derivative_query import DerivativeQuery
    from gradcli.checks.evaluate.balls import Point
    from gradcli.checks.expansions.exact_reals import ExactReal
    from gradcli.graph.node import Node

    Side = tuple[float, float]
    Answer = dict[str, Any]

BITS = 96
SMALLEST = 2.0**-44  # of the box: a piece that is not settled there never will be
MOST_WORK = 800_000  # operations on single entries over all pieces
LEAST = 400  # pieces of a box of one entry, whatever they cost; of more entries fewer, as cutting decides less there
GOLDEN = (5.0**0.5 - 1.0) / 2.0
SHOWN = 16  # open pieces that an answer lists


class Piece(NamedTuple):
    """A part of the box: an interval for each of its entries, and how often each was halved."""

    sides: tuple[Side, ...]
    cuts: tuple[int, ...]

    @property
    def share(self) -> float:
        return float(2.0 ** -sum(self.cuts))

    def middle(self) -> list[float]:
        return [(low + high) / 2 for low, high in self.sides]

    def inside(self) -> list[float]:
        """A point of it that is no special one: by chance a claim is right in the middle."""
        return [low + (high - low) * (GOLDEN * k % 1.0) for k, (low, high) in enumerate(self.sides, 1)]

    def halves(self) -> list[Piece]:
        """Both halves, cut along the entry that was halved least."""
        at = min(range(len(self.cuts)), key=self.cuts.__getitem__)
        low, high = self.sides[at]
        middle = (low + high) / 2
        cuts = (*self.cuts[:at], self.cuts[at] + 1, *self.cuts[at + 1 :])
        sides = ((*self.sides[:at], side, *self.sides[at + 1 :]) for side in ((low, middle), (middle, high)))
        return [Piece(half, cuts) for half in sides]


class Cover:
    """The pieces of a box, and what became of them; its `parts` have one interval for all entries of a leaf each."""

    def __init__(
        self, query: DerivativeQuery, judged: Node, field: BallField, point: Point, parts: Sequence[Mapping[str, Side]]
    ) -> None:
        self.query = query
        self.judged = judged
        self.field = field
        self.point = point
        self.parts = parts
        self.size = 0.0  # which the derivative reaches for certain on some piece
        self.bound = 0.0  # how far the claim is from the derivative on settled pieces
        self.regions: dict[Any, Answer] = {}  # by signs: how many pieces, and a point of one

    def run(self, tolerance: float | None, pieces: int) -> Answer:
        """Cut until all is settled, something is refuted or undefined, or `pieces` or MOST_WORK are used up.

        With a tolerance a piece is settled only where the claim is that close, relative to the largest derivative.
        """
        sides = [tuple([part[name] for name in part for _ in self.point[name][0]]) for part in self.parts]
        most = min(pieces, max(LEAST // len(sides[0]), MOST_WORK // max(1, self.query.work(self.judged))))
        queue, count = deque([Piece(part, (0,) * len(part)) for part in sides]), 0
        stuck: list[Piece] = []
        ended: Answer = {}
        while queue and count < most and not ended:
            piece = queue.popleft()
            count += 1
            with precision(BITS):
                state, reason = self._state(piece, tolerance)
            if state in ("refuted", "undefined"):
                ended = {"state": state, "at": piece.middle(), "reason": reason}
            elif state == "open":
                smallest = min(piece.cuts) > 0 and piece.share ** (1 / len(piece.cuts)) < SMALLEST
                (stuck if smallest else queue).extend([piece] if smallest else piece.halves())
        left = sorted([*stuck, *queue], key=lambda piece: (piece.share, piece.sides))
        return {
            "pieces": count,
            "settled": 1.0 - sum(piece.share for piece in left) / len(self.parts),
            "bound": self.bound / self.size if self.size else 0.0,
            "regions": list(self.regions.values()),
            "left": len(left),
            "open": [[list(side) for side in piece.sides] for piece in left[:SHOWN]],
            **(ended or {"state": "open" if left else "settled", "at": None, "reason": None}),
        }

    def _state(self, piece: Piece, tolerance: float | None) -> tuple[str, str | None]:
        self.field.signs = still = list[int]()  # of what moves on the piece, but not with the target
        lines = DirectionalJets(self.field, self.query.paths, self._balls(piece))
        claimed = lines.base.read([self.judged])[0].flat
        bound = 0.0
        for i in self.query.entries:
            exact, other = lines.partial(i), claimed[i]
            for ball in (exact, other):
                if isinstance(ball, Failure):
                    return ("undefined" if isinstance(ball, Undefined) else "open"), ball.reason
                if not ball.is_finite():
                    return "open", None
            if relation(exact, other, None) == DISJOINT:
                return "refuted", None
            bound = max(bound, float((exact - other).abs_upper()))
            self.size = max(self.size, float(exact.abs_lower()))
        if tolerance is not None and not bound <= tolerance * self.size:
            return "open", None
        self.bound = max(self.bound, bound)
        signs = tuple(still), tuple(lines.signs)
        region = self.regions.setdefault(signs, {"pieces": 0, "at": piece.inside()})
        region["pieces"] += 1
        return "settled", None

    def _balls(self, piece: Piece) -> Point:
        point: dict[str, Any] = dict(self.point)
        sides = iter(piece.sides)
        for name in self.parts[0]:
            flat, shape = self.point[name]
            point[name] = ([arb(low).union(arb(high)) for low, high in (next(sides) for _ in flat)], shape)
        return point


# --- zeros inside a box -----------------------------------------------------------------------------------------------

MOST_ORDER = 4  # of a zero at which a branch begins
MOST_NEWTON = 20
GUESSED = 256  # bits of a zero of which a closed form is guessed
LARGEST = 10**6  # denominator of a fraction in it
FORMS: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [  # of a number: what may be a fraction, and back
    (lambda x: x, lambda q: q),
    (lambda x: x * x, lambda q: q.sqrt()),
    (lambda x: x**3, lambda q: q.raised(Fraction(1, 3))),
    (lambda x: x / arb.pi(), lambda q: q * q.pi()),
    (lambda x: x.exp(), lambda q: q.log()),
    (lambda x: x.log(), lambda q: q.exp()),
]


class FollowedField(BallField):
    """Balls of one side of a place, whose branches are as `decided` in exact numbers close to it.

    Each decision is a sign, and the order of the zero that the number has at the place: a coefficient of its power
    series of that order has that sign on the whole side.
    """

    def __init__(self, decided: Sequence[tuple[int, Any]]) -> None:
        super().__init__()
        self.decided = iter(decided)
        self.lost = False  # whether a branch may be another one somewhere

    def sign(self, x: Any) -> int:
        expected, order = next(self.decided, (None, 0))
        series = order in range(1, MOST_ORDER + 1) and type(x) is Series
        try:
            if ball_numbers.sign(x.s[order] if series else x) == expected:
                return expected
        except Undecided:
            pass
        self.lost = True
        raise Undecided("a branch that changes beside the place")


class RecordingField(ExactField):
    """Exact numbers on one side of a place, with all that they decided; see `FollowedField`."""

    def __init__(self) -> None:
        super().__init__()
        self.decided: list[tuple[int, Any]] = []

    def sign(self, x: Any) -> int:
        side = super().sign(x)
        power, *logarithms = min(x.terms, default=ONE) if isinstance(x, Expansion) else ONE
        self.decided.append((side, None if any(logarithms) else power))
        return side


class Join:
    """A place at which an entry of a node is 0, between two neighbouring values of one entry of a leaf."""

    def __init__(self, judging: ClaimComparison, point: Point, leaf: str, position: int) -> None:
        self.judging, self.point, self.leaf, self.position = judging, point, leaf, position
        self.field = RecordingField()

    def entries(self, field: BallField, x: Any) -> dict[str, Entries]:
        """The point with a number, or what moves, as the entry of the leaf."""
        entries = balls.entries_of(field, self.point)
        entries[self.leaf].flat[self.position] = x
        return entries

    def answer(self, zero: Node, entry: int, ends: Side, reach: Side | None) -> Answer:
        """What is known of the place between two ends: the comparison there as at a tie, and how sure it is.

        With a `reach`, the ends of a part of the box, it is `sure` that nothing else happens up to there. Raises
        Undecided where the place is not found.
        """
        x, query = self.place(zero, entry, *ends), self.judging.query
        flat, shape = self.point[self.leaf]
        moved: list[Any] = [*flat[: self.position], x, *flat[self.position + 1 :]]
        exact = PointEvaluation(query, {**self.point, self.leaf: (moved, shape)}, field=self.field)
        own = query.target.params.get("name") == self.leaf  # else what moves with the leaf is no tie of the derivative
        answer = self.judging.examined(exact, query.entries, {"node": None, "iteration": ""}, together=own)
        whole = None if x.rational is None else Fraction(int(x.rational.p), int(x.rational.q))
        answer["place"] = str(x.ball.mid().str(17, radius=False) if whole is None else whole)
        if reach is not None and "given" in answer:
            sides = [self.side(x, end) for end in reach]
            answer["sure"] = all(known for _, known in sides)
            answer["followed"] = all(followed for followed, _ in sides)
        return answer

    def value(self, field: BallField, x: Any, zero: Node, entry: int) -> Any:
        """An entry of a node where the leaf has a number; raises the failure of one that has no value."""
        value = FieldEvaluation(field, self.entries(field, x)).read([zero])[0].flat[entry]
        if isinstance(value, Failure):
            raise value
        return value

    def place(self, zero: Node, entry: int, low: float, high: float) -> ExactReal:
        """Where an entry of a node is 0, or has a pole, between two numbers, in closed form where one is found.

        Raises Undecided.
        """
        value = partial(self.value, zero=zero, entry=entry)
        ends: list[ExactReal] = [self.field.datum(end) for end in (low, high)]
        first, last = ends
        if low == high:
            return first
        below, middle, above = [value(self.field, x) for x in (first, (first + last) / 2, last)]
        pole = all((middle * middle - end * end).sign() > 0 for end in (below, above))
        if pole:
            value, below, above = partial(self.reciprocal, zero=zero, entry=entry), 1 / below, 1 / above
        guesses: list[ExactReal] = [first - below * (last - first) / (above - below)]  # right if nothing is curved
        place: ExactReal = first.apply("computed", partial(self._newton, value, low, high))
        near = place.enclosed(GUESSED)
        for forward, back in FORMS:
            with precision(GUESSED), suppress(Undecided, Undefined):
                ball = forward(abs(near))
                number = ball.mid().fmpq()
                q = Fraction(int(number.p), int(number.q)).limit_denominator(LARGEST)
                if ball.overlaps(arb(fmpq(q.numerator, q.denominator))):
                    guesses.append(back(self.field.number(q)) * ball_numbers.sign(near))
        for guess in guesses:
            if guess.enclosed(GUESSED).overlaps(near):
                try:
                    vanishes = value(self.field, guess).is_zero()
                except Undefined:
                    vanishes = pole
                if vanishes:
                    return guess
        if pole:
            raise Undecided("a pole that has no closed form")
        value(self.field, place).become(fmpq(0))
        return place

    def reciprocal(self, field: BallField, x: Any, zero: Node, entry: int) -> Any:
        return 1 / self.value(field, x, zero, entry)

    @staticmethod
    def _newton(value: Callable[..., Any], low: float, high: float, bits: int) -> Any:
        """A ball of so many bits that surely contains a zero."""
        with precision(bits + START_BITS):
            x, radius = (arb(low) + arb(high)) / 2, arb(2) ** -bits
            for _ in range(MOST_NEWTON):
                with suppress(Undecided):  # too close to a pole to be told from it
                    series = value(BallField(), Series(arb_series([x, 1], 2)))
                    step = series.s[0] / series.s[1] if type(series) is Series else series
                    x = (x - step).mid()
            sides = [ball_numbers.sign(value(BallField(), x + side * radius)) for side in (-1, 1)]
            if sides[0] == sides[1] or not low <= x <= high:
                raise Undecided("a zero that cannot be enclosed")
            return arb(x, radius)

    def side(self, x: ExactReal, end: float) -> tuple[bool, bool]:
        """Whether all branches up to an end are as close to the place, and whether all values are surely finite."""
        nodes = [self.judging.query.output, self.judging.judged]
        try:
            side = 1 if (self.field.datum(end) - x).sign() > 0 else -1
            self.field.decided = []
            beside = FieldEvaluation(self.field, self.entries(self.field, TracedExpansion.along(x, side))).read(nodes)
            followed = FollowedField(self.field.decided)
            with precision(BITS):
                part = Series(arb_series([x.enclosed(BITS).union(arb(end)), side], MOST_ORDER + 1))
                far = FieldEvaluation(followed, self.entries(followed, part)).read(nodes)
        except (Failure, Unsupported):
            return False, False
        numbers = [x for entries in (*beside, *far) for x in entries.flat]
        return not followed.lost, not any(isinstance(x, Failure) or not x.is_finite() for x in numbers)
