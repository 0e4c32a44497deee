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
from gradcli.checks.evaluate.interpretation import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.derivatives.derivative_query import DerivativeQuery
    from gradcli.checks.evaluate.balls import BallField, Point
    from gradcli.graph.node import Node

    Side = tuple[float, float]
    Answer = dict[str, Any]

BITS = 96
SMALLEST = 2.0**-44  # of the box: a piece that is not settled there never will be
MOST_WORK = 1_000_000  # operations on single entries over all pieces
LEAST = 400  # pieces, whatever they cost
LOOKS = 4  # halvings of the box; the derivative is enclosed at the middles of the pieces
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
        """Cut where it was cut least."""
        at = min(range(len(self.cuts)), key=lambda i: self.cuts[i])
        low, high = self.sides[at]
        cuts = (*self.cuts[:at], self.cuts[at] + 1, *self.cuts[at + 1 :])
        middle = (low + high) / 2
        return [
            Piece((*self.sides[:at], side, *self.sides[at + 1 :]), cuts) for side in ((low, middle), (middle, high))
        ]


class Cover:
    """The pieces of a box, which has one interval for all entries of a leaf, and what became of them."""

    def __init__(
        self, query: DerivativeQuery, judged: Node, field: BallField, point: Point, box: Mapping[str, Side]
    ) -> None:
        self.query = query
        self.judged = judged
        self.field = field
        self.point = point
        self.box = box
        self.size = 0.0  # of the derivative, the largest that was seen
        self.bound = 0.0  # how far the claim is from the derivative, relative to that size, on settled pieces
        self.regions: dict[tuple[int, ...], tuple[int, list[float]]] = {}  # signs: how many pieces, a point of one

    def run(self, tolerance: float | None, pieces: int) -> Answer:
        """Cut until all is settled, something is refuted or undefined, or `pieces` or MOST_WORK are used up.

        With a tolerance a piece is settled only where the claim is that close, relative to the largest derivative
        that was seen at some points of the box.
        """
        most = min(pieces, max(LEAST, MOST_WORK // max(1, self.query.work(self.judged))))
        sides = tuple([self.box[name] for name in self.box for _ in self.point[name][0]])
        whole = Piece(sides, (0,) * len(sides))
        if tolerance is not None:
            self._look(whole)
        queue = deque([whole])
        stuck: list[Piece] = []
        count = 0
        while queue and count < most:
            piece = queue.popleft()
            count += 1
            with precision(BITS):
                state, reason = self._state(piece, tolerance)
            if state in ("refuted", "undefined"):
                return {**self._answer(count, [*queue, *stuck]), "state": state, "at": piece.middle(), "reason": reason}
            if state == "open":
                if min(piece.cuts) > 0 and piece.share ** (1 / len(piece.cuts)) < SMALLEST:
                    stuck.append(piece)
                else:
                    queue.extend(piece.halves())
        left = [*stuck, *queue]
        return {**self._answer(count, left), "state": "open" if left else "settled", "at": None, "reason": None}

    def _answer(self, count: int, left: Sequence[Piece]) -> Answer:
        order = sorted(left, key=lambda piece: (piece.share, piece.sides))
        return {
            "pieces": count,
            "settled": 1.0 - sum(piece.share for piece in left),
            "bound": self.bound,
            "regions": [{"pieces": n, "at": at} for n, at in self.regions.values()],
            "left": len(left),
            "open": [[list(side) for side in piece.sides] for piece in order[:SHOWN]],
        }

    def _state(self, piece: Piece, tolerance: float | None) -> tuple[str, str | None]:
        lines = DirectionalJets(self.field, self.query.paths, self._balls(piece))
        claimed = lines.base.read([self.judged])[0].flat
        bound = 0.0
        for i in self.query.entries:
            exact, other = lines.partial(i), claimed[i]
            for one in (exact, other):
                if isinstance(one, Failure):
                    return ("undefined" if one.kind == "undefined" else "open"), one.reason
                if not one.is_finite():
                    return "open", None
            if relation(exact, other, None) == DISJOINT:
                return "refuted", None
            bound = max(bound, float((exact - other).abs_upper()))
        if tolerance is not None and not bound <= tolerance * self.size:
            return "open", None
        self.bound = max(self.bound, bound / self.size if self.size else 0.0)
        signs = tuple(lines.signs)
        count, at = self.regions.get(signs, (0, piece.middle()))
        self.regions[signs] = (count + 1, at)
        return "settled", None

    def _look(self, whole: Piece) -> None:
        """The size of the derivative at the middles of some pieces."""
        pieces = [whole]
        for _ in range(LOOKS):
            pieces = [half for piece in pieces for half in piece.halves()]
        for piece in pieces:
            with precision(BITS):
                point = self._balls(Piece(tuple((x, x) for x in piece.middle()), piece.cuts))
                lines = DirectionalJets(self.field, self.query.paths, point)
                for i in self.query.entries:
                    exact = lines.partial(i)
                    if not isinstance(exact, Failure) and exact.is_finite():
                        self.size = max(self.size, float(exact.abs_lower()))

    def _balls(self, piece: Piece) -> Point:
        found: dict[str, Any] = dict(self.point)
        start = 0
        for name in self.box:
            flat, shape = self.point[name]
            sides = piece.sides[start : start + len(flat)]
            found[name] = ([arb(low).union(arb(high)) for low, high in sides], shape)
            start += len(flat)
        return found
