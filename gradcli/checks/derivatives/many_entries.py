"""Compares a derivative of many entries with a claim, along a few random directions.

What is claimed is read once for all entries. Along a direction in which entry i moves by an odd random number of 81
bits, over the size of claim i, the claimed slope must be that of one series, which no derivative rule touched. A wrong
entry passes with a probability that is stated; a slope that differs is a refutation, and halving names an entry.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives import relations
from gradcli.checks.derivatives.one_sided import SMOOTH, Tied, sides
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.derivatives.derivative_query import PointEvaluation
    from gradcli.checks.derivatives.jets import DirectionalJets
    from gradcli.checks.derivatives.one_sided import Sides
    from gradcli.graph.node import Node

    Answer = dict[str, Any]

COUNT = 2  # directions at the given point; one beside it
RANDOM_BITS = 81
RELATIVE = 1e-12  # errors of this size, relative to the entry, must be seen
CHANCE = 1e-20  # with a failure probability below this
SINGLE = 64  # entries that may be requested one by one instead


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
        for bits in ball_numbers.doubling(work=2 * self.count * self.here.query.paths.cost):
            with ball_numbers.precision(bits):
                lines = self.here.lines(bits)
                lines.signs, self.signs = [], []
                claims = list(self.here.claimed(self.judged)(bits).values())
                code, chance, wrong, failure = self._at(lines, claims)
                self.here.signs = self.signs
            if code != relations.OPEN or (failure is not None and not relations.hopeful(failure)):
                break
        codes = [code] * len(claims)
        details = []
        exact = [relations.nearest(x) for x in claims]
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
            "region": True,
            "relations": "".join(codes),
            "entries": list(range(len(claims))),
            "exact": exact,
            "claimed": [relations.nearest(x) for x in claims],
            "beyond": relations.beyond(dict(enumerate(claims))) if code == relations.AGREE else [],
            "details": details,
            "reason": None if failure is None else failure.reason,
            "node": None if failure is None else failure.node,
            "turn": None if failure is None else failure.turn,
            "bits": bits,
            "agreed": ball_numbers.GOOD_BITS if code == relations.AGREE else 0,
            "chance": chance,
        }

    def _at(
        self, lines: DirectionalJets, claims: Sequence[Any]
    ) -> tuple[str, float, tuple[int, Any] | None, Failure | None]:
        failed = next((x for x in claims if isinstance(x, Failure)), None)
        if failed is not None:
            return (relations.NO_CLAIMED if failed.kind == "undefined" else relations.OPEN), 1.0, None, failed
        zeros = [i for i, x in enumerate(claims) if x.is_zero()]
        if lines.bits > ball_numbers.START_BITS and any(x.contains(0) and not x.is_zero() for x in claims):
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
                if group is zeros and not gap.is_zero() and not self._all_zero(lines, zeros):
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
        """An entry that lies on the tie that a direction meets, with its sides, found by halving."""
        inside = sorted(way)
        while len(inside) > 1:
            half = len(inside) // 2
            for part in (inside[:half], inside[half:]):
                slope = lines.slope({i: way[i] for i in part})
                if isinstance(slope, Failure) and slope.kind == "tie":
                    inside = part
                    break
            else:
                return {}
        return {inside[0]: sides(lines, {inside[0]: 1})}

    def _all_zero(self, lines: DirectionalJets, zeros: Sequence[int]) -> bool:
        """Whether some partials are 0 for certain, asked one by one."""
        if len(zeros) > SINGLE:
            return False
        found = [lines.partial(i) for i in zeros]
        return all(not isinstance(x, Failure) and ball_numbers.is_tiny(x) for x in found)

    def _named(self, lines: DirectionalJets, claims: Sequence[Any], way: Mapping[int, Any]) -> tuple[int, Any] | None:
        """An entry whose claim is wrong for certain, found by halving a direction along which the slopes differ."""
        inside = sorted(way)
        while len(inside) > 1:
            half = len(inside) // 2
            for part in (inside[:half], inside[half:]):
                gap = self._gap(lines, claims, {i: way[i] for i in part})
                if not isinstance(gap, Failure) and not gap.contains(0):
                    inside = part
                    break
            else:
                return None
        partial = lines.partial(inside[0])
        if isinstance(partial, Failure) or partial.overlaps(claims[inside[0]]):
            return None
        return inside[0], partial


def speed(generator: Random, claimed: Any) -> Any:
    """An odd random number of 41 bits over the power of 2 above what is claimed."""
    number = arb(generator.getrandbits(RANDOM_BITS) | 1)
    largest = claimed.abs_upper()
    if largest.is_zero():
        return number
    mantissa, exponent = largest.man_exp()
    return number * arb(2) ** -(int(exponent) + int(mantissa).bit_length())
