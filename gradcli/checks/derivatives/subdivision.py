"""Compares a derivative with a claim on a box: the box is cut until each piece is decided, or a budget is spent.

On a piece every quantity is a ball that holds its values at all points of the piece. A piece is settled where the
derivative exists at every point of it and the claim's ball meets the derivative's; it refutes where they do not meet.
What decided the branches of a piece is its region, so that a proof at one point of a region serves all pieces of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb

from gradcli.checks.derivatives.claim_comparison import DISJOINT, relation
from gradcli.checks.derivatives.jets import DirectionalJets
from gradcli.checks.evaluate.ball_numbers import precision
from gradcli.checks.evaluate.interpretation import Failure, Undefined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.derivatives.derivative_query import DerivativeQuery
    from gradcli.checks.evaluate.balls import BallField, Point
    from gradcli.graph.node import Node

    Side = tuple[float, float]
    Answer = dict[str, Any]

BITS = 96
SMALLEST = 2.0**-44  # of the box: a piece that is not settled there never will be
MOST_WORK = 800_000  # operations on single entries over all pieces
LEAST = 400  # pieces of a box of one entry, whatever they cost; of more entries fewer, as cutting decides less there
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
        self.regions: dict[tuple[int, ...], Answer] = {}  # by signs: how many pieces, and a point of one

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
        region = self.regions.setdefault(tuple(lines.signs), {"pieces": 0, "at": piece.middle()})
        region["pieces"] += 1
        return "settled", None

    def _balls(self, piece: Piece) -> Point:
        point: dict[str, Any] = dict(self.point)
        sides = iter(piece.sides)
        for name in self.parts[0]:
            flat, shape = self.point[name]
            point[name] = ([arb(low).union(arb(high)) for low, high in (next(sides) for _ in flat)], shape)
        return point
