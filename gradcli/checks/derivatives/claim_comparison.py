"""Compares a derivative with a claim at all points of a check, and returns plain data.

At the given point: the value, how each exact entry stands to the claimed one, and what happens at a tie. Then as many
points beside it as are wanted, of those that lie in its region. Beside the series stand differences of the value to
some 60 digits, with an error that a second pair of steps estimates: a series that they contradict certifies nothing.

The claims about many entries are read once. Along a direction in which entry i moves by an odd random number
of 81 bits, over the size of claim i, the claimed slope must be that of one series, which no derivative rule touched. A
wrong entry passes with a probability that is stated; a slope that differs is a refutation, and halving names an entry.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives import relations
from gradcli.checks.derivatives.derivative_query import FEW, DerivativeQuery, PointEvaluation
from gradcli.checks.derivatives.jets import SMOOTH, Tied, sides
from gradcli.checks.evaluate.ball_numbers import GOOD_BITS, START_BITS, doubling, is_tiny, precision, with_bits
from gradcli.checks.evaluate.balls import EXACT
from gradcli.checks.evaluate.interpretation import Failure
from gradcli.graph.node import is_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.derivatives.jets import DirectionalJets, Side, Sides
    from gradcli.checks.evaluate.balls import Literals, Point
    from gradcli.graph.node import Node

    Answer = dict[str, Any]


MOST_DIFFERENCED = 50_000  # operations of one walk, of which some differences are looked at as well
FEWEST_TIES = 64  # entries whose sides are looked at, whatever they cost
MOST_TIE_STEPS = 200_000  # and as many more as take so many steps
COUNT = 2  # directions at the given point; one beside it
RANDOM_BITS = 81
RELATIVE = 1e-12  # errors of this size, relative to the entry, must be seen
CHANCE = 1e-20  # with a failure probability below this
SINGLE = 64  # entries that may be requested one by one instead


class ClaimComparison:
    """How a claim stands to a derivative, at one point after the other, within budgets of operations."""

    def __init__(
        self,
        query: DerivativeQuery,
        judged: Node,
        rtol: float | None = None,
        literals: Literals = EXACT,
    ) -> None:
        self.query = query
        self.judged = judged
        self.rtol = rtol
        self.literals = literals
        self.work = query.work(judged)
        self.loops = any(map(is_reader, query.paths.all))
        self.start = START_BITS  # of a comparison; with loops, what the last one took

    def here(self, point: Point) -> PointEvaluation:
        """The derivative at a point."""
        return PointEvaluation(self.query, point, self.literals)

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
        with_bits(here.exact, lambda found: not any(map(relations.is_hopeful, found.values())), self.work)
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
            known = self.query.digits
            if here.key not in known:
                known[here.key] = agrees(here, here.partials)
            answer["digits"] = known[here.key]
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
    """Whether partial derivatives and differences give the same slope along a line; None where one of them is missing.

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


# --- many entries ------------------------------------------------------------------------------------------------


class Wholesale:
    """The comparison of all entries at once; `rough` is a direction without a derivative, where there is one."""

    def __init__(self, here: PointEvaluation, judged: Node, seed: int, rtol: float | None, count: int = COUNT) -> None:
        self.count = count
        self.here = here
        self.judged = judged
        self.seed = seed
        self.rtol = rtol
        self.rough: Tied | None = None
        self.signs: list[int] = []  # that decided branches along the first direction

    def compared(self) -> Answer:
        """As `relations.compared`; `chance` is the probability that an error of one part in 10**12 goes unseen."""
        code, chance, wrong, claims, bits = relations.OPEN, 1.0, None, [], 0
        failure: Failure | None = None
        for bits in doubling(work=2 * self.count * self.here.query.paths.cost):
            with precision(bits):
                lines = self.here.lines(bits)
                lines.signs, self.signs = [], []
                claims = list(self.here.claimed(self.judged)(bits).values())
                code, chance, wrong, failure = self._at(lines, claims)
                self.here.signs = self.signs
            if code != relations.OPEN or (failure is not None and not relations.is_hopeful(failure)):
                break
        codes = [code] * len(claims)
        details = []
        claimed = [relations.nearest(x) for x in claims]
        exact = list(claimed)
        if wrong is not None:
            at, partial = wrong
            codes = [relations.OPEN] * len(claims)
            codes[at] = relations.DISJOINT
            exact[at] = relations.nearest(partial)
            digits = {"exact": relations.digits(partial), "claimed": relations.digits(claims[at])}
            details.append({"entry": at, "relation": relations.DISJOINT, **digits})
        order = [i for i in range(len(claims)) if wrong is None or i != wrong[0]][: relations.DETAILS - len(details)]
        for i in order:
            text = relations.digits(claims[i])
            details.append({"entry": i, "relation": codes[i], "exact": text, "claimed": text})
        return {
            **relations.entries_answer("".join(codes), range(len(claims)), exact, claimed, failure),
            "beyond": relations.beyond(dict(enumerate(claims))) if code == relations.AGREE else [],
            "details": details,
            "bits": bits,
            "agreed": GOOD_BITS if code == relations.AGREE else 0,
            "chance": chance,
        }

    def _at(
        self, lines: DirectionalJets, claims: Sequence[Any]
    ) -> tuple[str, float, tuple[int, Any] | None, Failure | None]:
        failed = next((x for x in claims if isinstance(x, Failure)), None)
        if failed is not None:
            return (relations.NO_CLAIMED if failed.kind == "undefined" else relations.OPEN), 1.0, None, failed
        zeros = [i for i, x in enumerate(claims) if x.is_zero()]
        if lines.bits > START_BITS and any(x.contains(0) and not x.is_zero() for x in claims):
            return relations.OPEN, 1.0, None, Failure("unclear", None, "a claim that may be 0")
        others = [i for i, x in enumerate(claims) if not x.is_zero()]
        chance = 1.0
        generator = Random(self.seed)
        for group in (others, zeros):
            odds = 1.0
            for _ in range(self.count if group else 0):
                way = {i: speed(generator, claims[i]) for i in group}
                gap = self._gap(lines, claims, way)
                self.signs = self.signs or list(lines.signs)
                if isinstance(gap, Failure):
                    code = {"undefined": relations.NO_EXACT, "tie": relations.TIE}.get(gap.kind, relations.OPEN)
                    return code, 1.0, None, gap
                if not gap.contains(0):
                    found = None if self.rtol is not None else self._named(lines, claims, way)
                    return (relations.OPEN if found is None else relations.DISJOINT), 1.0, found, None
                width = float(abs(gap).upper())
                odds *= (2 * width / RELATIVE + 1) / 2.0 ** (RANDOM_BITS - 1)
                if group is zeros and not gap.is_zero() and not all_zero(lines, zeros):
                    return relations.OPEN, 1.0, None, None
            chance = max(chance if chance < 1 else 0.0, odds) if group else chance
        return (relations.AGREE if chance < CHANCE else relations.OPEN), chance, None, None

    def _gap(self, lines: DirectionalJets, claims: Sequence[Any], way: Mapping[int, Any]) -> Any:
        """The exact slope along a direction less the claimed one."""
        slope = lines.slope(way)
        if isinstance(slope, Failure):
            if slope.kind != "tie":
                return slope
            seen = sides(lines, way)
            if seen.kind != SMOOTH:
                self.rough = Tied(self._tied(lines, way), seen)
                return slope
            slope = seen.slope
        return slope - lines.field.total(claims[i] * speed for i, speed in way.items())

    def _tied(self, lines: DirectionalJets, way: Mapping[int, Any]) -> dict[int, Sides]:
        """An entry that lies on the tie that a direction meets, with its sides."""

        def meets(part: Mapping[int, Any]) -> bool:
            slope = lines.slope(part)
            return isinstance(slope, Failure) and slope.kind == "tie"

        at = halved(way, meets)
        return {} if at is None else {at: sides(lines, {at: 1})}

    def _named(self, lines: DirectionalJets, claims: Sequence[Any], way: Mapping[int, Any]) -> tuple[int, Any] | None:
        """An entry whose claim is wrong for certain, and its partial, where the slopes along a direction differ."""

        def differ(part: Mapping[int, Any]) -> bool:
            gap = self._gap(lines, claims, part)
            return not isinstance(gap, Failure) and not gap.contains(0)

        at = halved(way, differ)
        if at is None:
            return None
        partial = lines.partial(at)
        return None if isinstance(partial, Failure) or partial.overlaps(claims[at]) else (at, partial)


def all_zero(lines: DirectionalJets, zeros: Sequence[int]) -> bool:
    """Whether some partials are 0 for certain, each enclosed by itself."""
    found = [lines.partial(i) for i in zeros] if len(zeros) <= SINGLE else [None]
    return all(type(x) is arb and is_tiny(x) for x in found)


def halved(way: Mapping[int, Any], holds: Callable[[Mapping[int, Any]], bool]) -> int | None:
    """An entry of a direction for which something holds that holds for the whole; None where no half has it."""
    inside = sorted(way)
    while len(inside) > 1:
        half = len(inside) // 2
        parts = (inside[:half], inside[half:])
        inside = next((part for part in parts if holds({i: way[i] for i in part})), [])
    return inside[0] if inside else None


def speed(generator: Random, claimed: Any) -> Any:
    """An odd random number of 81 bits over the power of 2 above what is claimed."""
    number = arb(generator.getrandbits(RANDOM_BITS) | 1)
    largest = claimed.abs_upper()
    if largest.is_zero():
        return number
    mantissa, exponent = largest.man_exp()
    return number * arb(2) ** -(int(exponent) + int(mantissa).bit_length())
