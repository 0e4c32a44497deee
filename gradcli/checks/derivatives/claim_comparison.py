"""Compares a derivative with a claim at all points of a check, and returns plain data.

At the given point: the value, how each exact entry stands to the claimed one, and what happens at a tie. Then as many
points beside it as are wanted, of those that lie in its region. Beside the series stand differences of the value to
some 60 digits: their error is estimated by a second pair of steps, so a series that they contradict is not believed.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives import relations
from gradcli.checks.derivatives.derivative_query import FEW, DerivativeQuery, Fields, PointEvaluation
from gradcli.checks.derivatives.many_entries import COUNT, Wholesale
from gradcli.checks.derivatives.one_sided import Tied
from gradcli.checks.evaluate.ball_numbers import START_BITS, doubling, precision
from gradcli.checks.evaluate.balls import EXACT
from gradcli.checks.evaluate.interpretation import Failure
from gradcli.graph.node import is_reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.derivatives.one_sided import Side
    from gradcli.checks.evaluate.balls import Literals, Point
    from gradcli.graph.node import Node

    Answer = dict[str, Any]

MOST_DIFFERENCED = 50_000  # operations of one walk, of which some differences are looked at as well
FEWEST_TIES = 64  # entries whose sides are looked at, whatever they cost
MOST_TIE_STEPS = 200_000  # and as many more as take so many steps


class ClaimComparison:
    """How a claim stands to a derivative, at one point after the other, within budgets of operations."""

    def __init__(
        self,
        query: DerivativeQuery,
        judged: Node,
        fields: Fields,
        rtol: float | None = None,
        literals: Literals = EXACT,
    ) -> None:
        self.query = query
        self.judged = judged
        self.fields = fields
        self.rtol = rtol
        self.literals = literals
        self.work = query.work(judged)
        self.loops = any(map(is_reader, query.paths.all))
        self.start = START_BITS  # of a comparison; with loops, what the last one took

    def here(self, point: Point) -> PointEvaluation:
        """The derivative at a point."""
        return PointEvaluation(self.query, self.fields, point, self.literals)

    def compared(self, here: PointEvaluation, directions: int = COUNT) -> Answer:
        """The relation of each entry; of many entries along so many random directions."""
        if self.query.wholesale:
            all_at_once = Wholesale(here, self.judged, self.query.seed, self.rtol, directions)
            found = all_at_once.compared()
            here.rough = all_at_once.rough
            return found
        found = relations.compared(
            here.exact, here.claimed(self.judged), self.query.entries, self.rtol, self.work, self.start
        )
        if self.loops:
            self.start = found["bits"]
        return found

    def region(self, point: Point) -> list[int]:
        """The signs that decide branches at a point."""
        here = self.here(point)
        for bits in doubling(work=self.work):
            with precision(bits):
                found = here.exact(bits)
            if not any(isinstance(x, Failure) and x.kind == relations.HOPEFUL for x in found.values()):
                break
        return here.signs

    def given(self, point: Point, directions: Sequence[Mapping[int, Any]]) -> tuple[PointEvaluation, Answer]:
        """The value at the given point as `ball`, the comparison there as `given`, and what is known of a tie."""
        here = self.here(point)
        value = here.value()
        if self.loops:
            self.start = here.lines_bits
        answer: Answer = {"ball": value, "given": None, "tie": None, "digits": None}
        if isinstance(value, Failure) and value.kind == "undefined":
            return here, answer
        found = self.compared(here)
        tied = [i for i, code in zip(found["entries"], found["relations"], strict=True) if code == relations.TIE]
        if tied:
            most = max(FEWEST_TIES, MOST_TIE_STEPS // self.query.paths.cost)
            seen = here.rough or here.ties(tied[:most], directions)
            answer["tie"] = {**tie_answer(seen), "node": found["node"], "turn": found["turn"]}
            if seen.worst is None:
                found = self.compared(here)
        answer["given"] = found
        affordable = not self.loops or self.query.paths.cost <= MOST_DIFFERENCED
        if not tied and not self.query.wholesale and self.query.second is None and affordable:
            answer["digits"] = agrees(here, here.partials)
        if self.query.plane and not tied:
            with precision(START_BITS):
                found_so = [here.lines(START_BITS).holomorphic(k) for k in range(min(self.query.target.type.size, FEW))]
            answer["holomorphic"] = False if False in found_so else None if None in found_so else True
        return here, answer

    def beside(self, signs: Sequence[int] | None, point: Point) -> Answer:
        """The comparison at another point: `region` is false where other branches are taken there.

        Without signs there is no region, and only a point at which both sides agree counts.
        """
        here = self.here(point)
        found = self.compared(here, 1)
        inside = here.signs == signs if signs is not None else set(found["relations"]) <= set("=~")
        return found if inside else {"region": False}


def tie_answer(seen: Tied) -> Answer:
    """What happens at a tie, as plain data: the slopes along each axis, and the values of the roughest direction."""
    worst = seen.worst
    kind = "smooth" if worst is None else worst.kind
    shown = worst or next(iter(seen.axes.values()))
    axes = list(seen.axes.values())
    return {
        "kind": kind,
        "reason": shown.reason,
        "axes": list(seen.axes),
        "left": [slope(one.left) for one in axes],
        "right": [slope(one.right) for one in axes],
        "digits": [written(shown.left), written(shown.right)],
        "value": relations.nearest(shown.value),
        "limits": [limit(shown.left), limit(shown.right)],
    }


def slope(one: Side) -> float | str | None:
    """A slope as the nearest double, "inf" or "-inf" where it has no bound, None where it is not known."""
    if isinstance(one.slope, float):
        return "inf" if one.slope > 0 else "-inf"
    return None if one.slope is None else relations.nearest(one.slope)


def written(one: Side) -> str | None:
    """The digits of a slope."""
    if one.slope is None:
        return None
    return str(slope(one)) if isinstance(one.slope, float) else relations.digits(one.slope)


def limit(one: Side) -> float | None:
    return None if one.limit is None else relations.nearest(one.limit)


# --- differences of the value ------------------------------------------------------------------------------------

DIFFERENCE_BITS = 512
STEP = 110  # a step is 2**-110 of each entry's size: its square is below 60 digits


def difference(here: PointEvaluation, direction: Mapping[int, Any]) -> Any:
    """The derivative along a direction, with its estimated error as a radius; a Failure where values are missing."""
    with precision(DIFFERENCE_BITS):
        lines = here.lines(DIFFERENCE_BITS)
        found: list[Any] = []
        signs: list[list[int]] = []  # that decided branches, at each place
        for times in (1, 2):
            h = arb(2) ** -STEP * times
            ends = []
            for side in (1, -1):
                moves = {i: side * h * speed for i, speed in direction.items()}
                value, decided = lines.moved_value(moves)
                ends.append(value)
                signs.append(decided)
            failed = next((end for end in ends if type(end) is not arb), None)
            if failed is not None:
                return failed if isinstance(failed, Failure) else Failure("undecided", None, "no number")
            found.append((ends[0] - ends[1]) / (2 * h))
        if any(decided != signs[0] for decided in signs):
            return Failure("tie", None, "a branch changes within a step")
        fine, coarse = found
        return fine + arb(0, 1) * abs(fine - coarse).abs_upper()


def agrees(here: PointEvaluation, partials: Mapping[int, Any]) -> bool | None:
    """Whether partial derivatives and differences give the same slope along a line; None where one has nothing to say.

    All entries move at once, each at a speed of its own.
    """
    generator = Random(here.query.seed)
    if any(isinstance(x, Failure) for x in partials.values()):
        return None
    with precision(DIFFERENCE_BITS):
        center = here.lines(DIFFERENCE_BITS).center
        if any(isinstance(center[i], Failure) for i in partials):
            return None
        way = {i: arb(generator.randrange(1025, 4096, 2)) / 1024 * size(center[i]) for i in partials}
        found = difference(here, way)
        if isinstance(found, Failure):
            return None
        expected = sum((partials[i] * speed for i, speed in way.items()), arb(0))
        return bool(found.overlaps(expected))


def size(x: Any) -> Any:
    """A power of 2 near a number that is below 1; 1 for a larger one, and for 0."""
    middle = x.mid()
    if middle.is_zero() or abs(middle) >= 1:
        return arb(1)
    mantissa, exponent = middle.man_exp()
    return arb(2) ** (int(exponent) + int(abs(mantissa)).bit_length())
