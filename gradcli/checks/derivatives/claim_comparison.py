"""Compares a claim with the enclosed derivative, entry by entry; the answers are plain data.

Disjoint balls are unequal for certain; balls that overlap are equal as far as their bits go, and only 56 of them, or a
size below the smallest double, make that an agreement. At the given point there are also the value, and what happens at
a tie. Then as many points beside it as are wanted, of those that lie in its region.

The claims about many entries are read at once. Along a direction in which entry i moves by an odd random number of 81
bits, over the size of claim i, the claimed slope must be that of one series, which no derivative rule touched. A wrong
entry passes with a probability that is stated; a slope that differs is a refutation, and halving names an entry.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb

from gradcli.checks.derivatives.derivative_query import (
    DerivativeQuery,
    PointEvaluation,
    entries_of,
    exact_field,
    field_of,
)
from gradcli.checks.derivatives.jets import JUMP, KINK, UNKNOWN, ExactJets, Tied
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.ball_numbers import GOOD_BITS, START_BITS
from gradcli.checks.evaluate.balls import EXACT, MOST_EXACT, Literals
from gradcli.checks.evaluate.evaluation import steps_of, work_of
from gradcli.checks.evaluate.interpretation import (
    LOST,
    SIGN_OPEN,
    SIGN_UNDECIDED,
    Failure,
    Tie,
    Undecided,
    Undefined,
    Unsupported,
)
from gradcli.checks.expansions.exact_reals import ExactReal, ball_of
from gradcli.graph.node import is_reader, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from gradcli.checks.derivatives.derivative_query import Balls
    from gradcli.checks.derivatives.jets import Sides
    from gradcli.checks.evaluate.balls import Point
    from gradcli.graph.node import Node

    Answer = dict[str, Any]
    Direction = Mapping[int, Any]


AGREE, DISJOINT, OPEN, CLOSE, NO_EXACT, NO_CLAIMED, TIE = "=", "!", "?", "~", "E", "R", "T"
UNDERFLOW = "0"  # a claim of 0 for a number that no double tells from it
WORST_FIRST = "!TER?0~="
WITHOUT: dict[type, str] = {Undefined: NO_EXACT, Tie: TIE}  # the relation where there is no exact entry, or OPEN
FAINT = 1e-9  # relative: smaller errors may come of rounded constants
DETAILS = 8  # entries whose digits are written out
DIGITS = 25
MOST_DIGITS = 2000
CLOSE_WORK = 5_000  # operations on single entries of a comparison that goes on where both sides agree
FEWEST_TIES = 64  # entries whose sides are looked at, whatever they cost
MOST_TIE_STEPS = 200_000  # and as many more as take so many steps
MOST_IN_LOOPS = 1_000  # operations of one walk in exact numbers where balls lose all digits
RANDOM_BITS = 81
RELATIVE = 1e-12  # errors of this size, relative to the entry, must be seen
CHANCE = 1e-20  # with a failure probability below this


# --- entries ------------------------------------------------------------------------------------------------------


def relation(exact: Any, claimed: Any, rtol: float | None) -> str:
    """The relation of an exact entry to a claimed one."""
    if isinstance(exact, Failure):
        return WITHOUT.get(type(exact), OPEN)
    if isinstance(claimed, Failure):
        return NO_CLAIMED if isinstance(claimed, Undefined) else WITHOUT.get(type(claimed), OPEN)
    tiny = ball_numbers.is_tiny(exact) and ball_numbers.is_tiny(claimed)
    if not exact.overlaps(claimed):
        close = rtol is not None and abs(exact - claimed) <= rtol * abs(exact).max(abs(claimed))
        return CLOSE if close else UNDERFLOW if tiny and claimed.is_zero() else DISJOINT
    settled = ball_numbers.settled(exact) and ball_numbers.settled(claimed) and not exact.contains(0)
    return AGREE if settled or tiny else OPEN


def speaks(relations: str, across: bool) -> bool:
    """Whether a point near the given one is evidence: both sides agree there, or differ for certain.

    Of points `across` ties only the first are, since other branches may be taken there.
    """
    if across:
        return set(relations) <= {AGREE, CLOSE}
    return DISJOINT in relations or not set(relations) & {NO_EXACT, NO_CLAIMED, TIE, OPEN}


def agreed(exact: Any, claimed: Any, bits: int) -> int:
    """How many leading bits two entries share for certain; as many as there are where both are one number."""
    if isinstance(exact, Failure) or isinstance(claimed, Failure):
        return 0
    gap = abs(exact - claimed)
    if gap < ball_numbers.TINY:
        return bits
    if exact.contains(0) or not gap.is_finite():
        return 0
    mantissa, exponent = (gap / abs(exact)).upper().man_exp()
    return max(0, min(bits, -int(exponent) - int(mantissa.bit_length())))


def nearest(x: Any) -> float | None:
    """The nearest double; None for a failure, and for a number too large for a double."""
    value = float("nan") if isinstance(x, Failure) else float(x)
    return value if isfinite(value) else None


def digits(x: Any, count: int = DIGITS) -> str:
    return x.reason if isinstance(x, Failure) else ball_numbers.digits(x, count)


def written(exact: Any, claimed: Any, code: str) -> dict[str, str]:
    """The relation and the digits of a pair, of an unequal one as many as tell its numbers apart."""
    count = DIGITS
    while (texts := (digits(exact, count), digits(claimed, count)))[0] == texts[1]:
        if code != DISJOINT or count >= MOST_DIGITS:
            break
        count *= 2
    return {"relation": code, "exact": texts[0], "claimed": texts[1]}


def answered(codes: Mapping[int, str], exact: Balls, claimed: Balls, failure: Any = None, **more: Any) -> Answer:
    """The answer about some entries: the relation of each, both sides, the worst ones in digits, and what failed.

    `beyond` has the exact entries that are too large for every double.
    """

    def badness(i: int) -> tuple[int, bool]:
        faint = codes[i] == DISJOINT and bool(abs(exact[i] - claimed[i]) <= FAINT * abs(exact[i]))
        return WORST_FIRST.index(codes[i]), faint

    order = sorted(codes, key=badness)
    failed = (x for i in order for x in (exact[i], claimed[i]) if isinstance(x, Failure))
    failure = failure or next(failed, None)
    nearest_exact = {i: nearest(exact[i]) for i in codes}
    large = [i for i, value in nearest_exact.items() if value is None and not isinstance(exact[i], Failure)]
    known = [i for i in large if ball_numbers.settled(exact[i]) and exact[i].is_finite()]
    return {
        "region": True,
        "relations": "".join(codes.values()),
        "entries": list(codes),
        "exact": list(nearest_exact.values()),
        "claimed": [nearest(claimed[i]) for i in codes],
        **{part: getattr(failure, part, None) for part in ("reason", "node", "iteration")},
        "beyond": [(i, digits(exact[i])) for i in known],
        "details": [{"entry": i, **written(exact[i], claimed[i], codes[i])} for i in order[:DETAILS]],
        "closely": False,
        **more,
    }


def compared(
    exact: Callable[[int], Balls],
    claimed: Callable[[int], Balls],
    entries: Sequence[int],
    rtol: float | None,
    work: int,
    start: int = START_BITS,
    closely: bool = False,
) -> Answer:
    """The relation of each entry, decided with as few bits as will do; `agreed` are the bits that all pairs share.

    `work` counts the operations on single entries that both sides take with any number of bits. A close comparison
    goes on where both sides agree, with as many bits as a smaller budget allows.
    """
    known: list[int] = []
    for bits in ball_numbers.doubling(start, work):
        with ball_numbers.precision(bits):
            derivative, claim = exact(bits), claimed(bits)
            codes = {i: relation(derivative[i], claim[i], rtol) for i in entries}
        if closely and DISJOINT not in codes.values() and work * bits <= CLOSE_WORK * ball_numbers.FEW_BITS:
            continue
        pairs = [(derivative[i], claim[i]) for i, code in codes.items() if code == OPEN]
        if not any(all(isinstance(x, Undecided) or not isinstance(x, Failure) for x in pair) for pair in pairs):
            break
        before, known = known, [min([0 if isinstance(x, Failure) else x.rel_accuracy_bits() for x in p]) for p in pairs]
        if before == known and min(known) > 0:  # the worse of each pair, as a rounded number is no better for more bits
            break
    least = min([bits, *(agreed(derivative[i], claim[i], bits) for i in entries)])
    return answered(codes, derivative, claim, bits=bits, agreed=least, closely=closely)


def compared_sides(
    left: Node,
    right: Node,
    point: Point,
    literals: Literals,
    plane: bool,
    rtol: float | None,
    derived: Sequence[Sequence[Any]],
    closely: bool = False,
) -> Answer:
    """The relation of each entry of two nodes at a point, from exact numbers where balls leave a sign open."""
    work, entries = work_of(reachable([left, right])), range((2 if plane else 1) * right.type.size)

    def at_bits(node: Node, bits: int) -> Balls:
        return dict(enumerate(entries_of(node, point, field_of(bits, literals, plane), derived)))

    answer = compared(partial(at_bits, left), partial(at_bits, right), entries, rtol, work, closely=closely)
    field = exact_field(literals, plane)
    if OPEN not in answer["relations"] or answer["reason"] is None or work > MOST_EXACT or field.rounded:
        return answer
    exact = {node: entries_of(node, point, field, derived) for node in (left, right)}

    def of_exact(node: Node, _: int) -> Balls:
        return dict(enumerate(map(ball_of, exact[node])))

    return compared(partial(of_exact, left), partial(of_exact, right), entries, rtol, work)


# --- points -------------------------------------------------------------------------------------------------------


class ClaimComparison:
    """The comparison of a claim with a derivative at any number of points, within budgets of operations."""

    def __init__(
        self,
        query: DerivativeQuery,
        judged: Node,
        rtol: float | None = None,
        literals: Literals = EXACT,
        closely: bool = False,
    ) -> None:
        self.query = query
        self.judged = judged
        self.rtol = rtol
        self.literals = literals
        self.closely = closely
        self.work = query.work(judged)
        known = set(query.paths.all)
        self.steps = steps_of([node for node in reachable([judged], known) if node not in known])
        self.loops = any(map(is_reader, query.paths.all))
        self.start = START_BITS  # of a comparison; with loops, what the last one took

    def compared(self, evaluation: PointEvaluation) -> Answer:
        """The relation of each entry; of many entries along a random direction."""
        claimed = partial(evaluation.claimed, self.judged, steps=self.steps)
        if self.query.wholesale:
            about = (self.judged, self.rtol, evaluation.literals, evaluation.place)
            known, key = self.query.answers, (*about, evaluation.field)
            if key not in known or TIE in known[key][1]["relations"]:
                answer = Wholesale(evaluation, claimed, self.rtol).compared()
                known[key] = evaluation.signs, answer
            evaluation.signs, answer = known[key]
            return answer
        entries, rtol, closely = self.query.entries, self.rtol, self.closely
        answer = compared(evaluation.exact, claimed, entries, rtol, self.work, self.start, closely)
        if self.loops:
            self.start = answer["bits"]
        return answer

    def region(self, point: Point) -> list[int]:
        """The signs that decide branches at a point."""
        evaluation = PointEvaluation(self.query, point, Literals(decimal=self.literals.decimal))
        if self.query.wholesale:
            self.compared(evaluation)
        else:
            ball_numbers.with_bits(evaluation.exact, lambda row: Undecided not in map(type, row.values()), self.work)
        return evaluation.signs

    def at_given_point(self, point: Point) -> tuple[PointEvaluation, Answer]:
        """The value at the given point as `ball`, the comparison there as `given`, and what is known of a tie."""
        evaluation = PointEvaluation(self.query, point, self.literals)
        value = evaluation.value()
        if self.loops:
            self.start = evaluation.bits
        answer: Answer = {"ball": value, "given": None, "tie": None}
        if isinstance(value, Undefined):
            return evaluation, answer
        comparison = answer["given"] = self.compared(evaluation)
        if comparison["reason"] is not None and set(comparison["relations"]) & {TIE, OPEN}:
            with suppress(Unsupported):
                answer |= self.decided(evaluation, comparison, value)
        return evaluation, answer

    def decided(self, evaluation: PointEvaluation, comparison: Answer, ball: Any) -> Answer:
        """What exact numbers change in an answer, where the point is a tie, or balls do not tell whether it is one."""
        if self.query.paths.cost > (MOST_IN_LOOPS if comparison["reason"].startswith(LOST) else MOST_EXACT):
            return {}
        codes = dict(zip(comparison["entries"], comparison["relations"], strict=True))
        doubtful = [i for i, code in codes.items() if code in (TIE, OPEN)]
        with ball_numbers.precision(evaluation.bits):
            failed: Any = evaluation.lines(evaluation.bits).slope(dict.fromkeys(doubtful, 1))
        place = {name: getattr(failed, name, comparison[name]) for name in ("node", "iteration")}
        most = max(FEWEST_TIES, MOST_TIE_STEPS // self.query.paths.cost)
        answer = self.examined(evaluation.exactly(), doubtful[:most], place)
        value, tie = answer["ball"], answer.get("tie")
        if isinstance(value, Failure) and not isinstance(value, Undefined):
            if isinstance(ball, Undecided) and ball.reason == SIGN_UNDECIDED:
                return {"tie": {"kind": UNKNOWN, "reason": SIGN_OPEN, **place, "node": ball.node}}
            return open_tie(value.reason, comparison, place)
        if tie is not None and tie["kind"] == UNKNOWN and TIE not in codes.values():
            return open_tie(tie["reason"], comparison, place)
        return answer

    def examined(self, exact: PointEvaluation, entries: Sequence[int], place: Answer, together: bool = True) -> Answer:
        """What exact numbers say of a point: the value, what a tie does, and the comparison where it is smooth."""
        value = exact.value()
        if isinstance(value, Failure):
            return {"ball": value}
        if self.query.wholesale:
            answer = self.compared(exact)
            if exact.rough is None:
                return {"ball": value, "given": {**answer, "tied": True}}
            return {"ball": value, "tie": tie_answer(exact.rough, place)}
        seen = exact.ties(entries, together)
        known = {"ball": value, "tie": tie_answer(seen, place)}
        return known if seen.worst else {**known, "given": self.compared(exact)}

    def beside(self, signs: Sequence[int] | None, point: Point) -> Answer:
        """The comparison at another point: `region` is false where other branches than these signs are taken there."""
        evaluation = PointEvaluation(self.query, point, self.literals)
        answer = self.compared(evaluation)
        return answer if signs is None or evaluation.signs == signs else {"region": False}


def open_tie(reason: str, comparison: Answer, place: Answer) -> Answer:
    """That a point may be a tie, where a sign was left undecided; nothing where other digits are missing."""
    open_sign = SIGN_OPEN in reason or comparison["reason"].startswith(SIGN_UNDECIDED)
    return {"tie": {"kind": UNKNOWN, "reason": reason, **place}} if open_sign else {}


def tie_answer(seen: Tied, place: Answer) -> Answer:
    """What happens at a tie, as plain data: the slopes along each axis, and the values of the roughest direction.

    A slope without a bound is inf or -inf, and what is not known is None; `least` is the position of the least smooth
    axis, if it is one; `place` is the node, and the iteration of a loop.
    """

    def plain(x: Any) -> float | None:
        return x if x is None or isinstance(x, float) else nearest(x)

    worst, axes = seen.worst, list(seen.axes.values())
    shown: Sides = worst or axes[0]
    pairs = [(shown.value, side.limit) for side in (shown.left, shown.right)] if shown.kind == JUMP else []
    pairs += [(shown.right.slope, shown.left.slope)] if shown.kind == KINK else []
    gaps = [abs(float(x - y)) for x, y in pairs if type(x) is type(y) is ExactReal]
    return {
        "kind": "smooth" if worst is None else worst.kind,
        "reason": shown.reason,
        "axes": list(seen.axes),
        "left": [plain(axis.left.slope) for axis in axes],
        "right": [plain(axis.right.slope) for axis in axes],
        "value": plain(shown.value),
        "limits": [plain(side.limit) for side in (shown.left, shown.right)],
        "gap": max(gaps, default=None),
        "least": next((i for i, axis in enumerate(axes) if axis is shown), None),
        **place,
    }


# --- many entries ------------------------------------------------------------------------------------------------


class Joint(NamedTuple):
    """The relation of all entries at once; `wrong` is an entry that is wrong for certain, and its partial."""

    code: str
    chance: float = 1.0  # that an error of one part in 10**12 goes unseen
    wrong: tuple[int, Any] | None = None
    failure: Failure | None = None


class Wholesale:
    """The comparison of all entries at once along a random direction; claims of 0 have a direction of their own."""

    def __init__(self, evaluation: PointEvaluation, claimed: Callable[[int], Balls], rtol: float | None) -> None:
        self.evaluation = evaluation
        self.claimed = claimed
        self.rtol = rtol

    def compared(self) -> Answer:
        """The answer of the function `compared`, and the chance that an error went unseen."""
        for bits in ball_numbers.doubling(work=2 * self.evaluation.query.paths.cost):
            with ball_numbers.precision(bits):
                self.lines, self.claims = self.evaluation.lines(bits), self.claimed(bits)
                self.lines.signs, self.evaluation.signs = [], []
                joint = self._joint()
            if joint.code != OPEN or not (joint.failure is None or isinstance(joint.failure, Undecided)):
                break
        exact, codes = dict(self.claims), dict.fromkeys(self.claims, joint.code)
        if joint.wrong is not None:
            at, exact[at] = joint.wrong
            codes = {i: DISJOINT if i == at else OPEN for i in codes}
        agreed = GOOD_BITS if joint.code == AGREE else 0
        seen = {"bits": bits, "agreed": agreed, "chance": joint.chance}
        return answered(codes, exact, self.claims, joint.failure, **seen)

    def _joint(self) -> Joint:
        failed = next((x for x in self.claims.values() if isinstance(x, Failure)), None)
        if failed is not None:
            return Joint(NO_CLAIMED if isinstance(failed, Undefined) else OPEN, failure=failed)
        zeros = [i for i, x in self.claims.items() if x.is_zero()]
        others = [i for i, x in self.claims.items() if not x.is_zero()]
        from random import Random  # start-up time: most checks are of few entries

        generator = Random(self.evaluation.query.seed)
        chance = 0.0
        for group in filter(None, (others, zeros)):
            way = {i: speed(generator, self.claims[i]) for i in group}
            gap = self._gap(way)
            self.evaluation.signs = self.evaluation.signs or list(self.lines.signs)
            if isinstance(gap, Failure):
                return Joint(WITHOUT.get(type(gap), OPEN), failure=gap)
            if not gap.contains(0):
                wrong = None if self.rtol is not None else self._wrong(way)
                return Joint(OPEN if wrong is None else DISJOINT, wrong=wrong)
            if group is zeros and not ball_numbers.is_tiny(gap):
                return Joint(OPEN)
            chance = max(chance, (2 * float(abs(gap).upper()) / RELATIVE + 1) / 2.0 ** (RANDOM_BITS - 1))
        return Joint(AGREE if chance < CHANCE else OPEN, chance)

    def _gap(self, way: Direction) -> Any:
        """The exact slope along a direction minus the claimed one."""
        slope = self.lines.slope(way)
        if isinstance(slope, Tie) and isinstance(self.lines, ExactJets):
            at = halved(way, lambda part: isinstance(self.lines.slope(part), Tie))
            axes = {} if at is None else {at: self.lines.sides({at: 1})}
            self.evaluation.rough = Tied(axes, self.lines.sides(way))
        if isinstance(slope, Failure):
            return slope
        return slope - self.lines.field.total(self.claims[i] * speed for i, speed in way.items())

    def _wrong(self, way: Direction) -> tuple[int, Any] | None:
        """An entry whose claim is wrong for certain, and its partial, where the slopes along a direction differ."""

        def differs(part: Direction) -> bool:
            gap = self._gap(part)
            return not isinstance(gap, Failure) and not gap.contains(0)

        at = halved(way, differs)
        if at is None:
            return None
        exact = self.lines.partial(at)
        return (at, exact) if relation(exact, self.claims[at], None) == DISJOINT else None


def halved(way: Direction, holds: Callable[[Direction], bool]) -> int | None:
    """An entry for which something holds by itself that holds for a direction; None where neither half has it."""
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
