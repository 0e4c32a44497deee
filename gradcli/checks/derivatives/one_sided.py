"""What a function does on both sides of a tie: limits, slopes, and how they compare; rigorous.

Each side is a log-Puiseux expansion of its own: roots, poles and logarithms of what vanishes are terms of it. Three
values are compared: at the point, and the limits from below and from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure, Unbounded, Undecided
from gradcli.checks.expansions.log_puiseux import STEP, Expansion, Huge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.derivatives.jets import Direction, DirectionalJets

OPEN = "a slope that the expansions do not determine"
SHORT = "the one-sided slopes agree to the precision used, which does not prove them equal"
SMOOTH, KINK, BOUNDARY, JUMP, UNKNOWN = "smooth", "KINK", "BOUNDARY", "DISCONTINUOUS", "unknown"
WORST_FIRST = (JUMP, BOUNDARY, KINK, UNKNOWN)


class Side(NamedTuple):
    """One side: the limit of the values (None: there is none), and the slope: a ball, a float inf or -inf, or None.

    `reason` says why something is missing, `certain` whether it is missing for certain.
    """

    limit: Any
    slope: Any
    reason: str = ""
    certain: bool = False


class Sides(NamedTuple):
    """What happens along a direction: "smooth", "KINK", "BOUNDARY", "DISCONTINUOUS" or "unknown", and both sides."""

    kind: str
    value: Any
    left: Side
    right: Side
    reason: str = ""

    @property
    def lacks_digits(self) -> bool:
        """Whether more bits may decide what these leave open."""
        return self.kind == UNKNOWN and self.reason == SHORT

    @property
    def slope(self) -> Any:
        """The common slope of a smooth point: a ball that both sides' slopes lie in."""
        return self.left.slope.union(self.right.slope)


def sides(lines: DirectionalJets, direction: Direction) -> Sides:
    """Both sides of the point along a direction, where it is going up and down the same straight line."""
    right = side(lines, direction)
    left = mirrored(side(lines, {i: -speed for i, speed in direction.items()}))
    kind, reason = _compared(lines.value, left, right)
    return Sides(kind, lines.value, left, right, reason)


def side(lines: DirectionalJets, direction: Direction) -> Side:
    """The limit and the slope as the step grows from 0."""
    found = lines.beside(direction)
    try:
        return _read(found)
    except (Unbounded, Undecided) as reason:
        return Side(None, None, str(reason))


def _read(found: Any) -> Side:
    """The side that an expansion stands for."""
    if isinstance(found, Failure):
        return Side(None, None, found.reason, found.kind == "undefined")
    if isinstance(found, Huge):
        return _far(found.side)
    if not isinstance(found, Expansion):
        return Side(found, arb(0))
    grown, limit, gone = found.split()
    if grown.terms:
        return _far(grown.sign())
    early = Expansion({key: c for key, c in gone.terms.items() if key < STEP})
    if early.terms:
        return Side(limit, float("inf") * early.sign(), "the slope is not bounded", True)
    if gone.rest is not None and gone.rest <= STEP:
        return Side(limit, None, OPEN)
    return Side(limit, gone.terms.get(STEP, arb(0)))


def _far(side: int) -> Side:
    where = "inf" if side > 0 else "-inf"
    return Side(None, float(where), f"the value has no finite limit: it tends to {where}", True)


def mirrored(one: Side) -> Side:
    """A side seen along the opposite direction."""
    return one if one.slope is None else one._replace(slope=-one.slope)


def _compared(value: Any, left: Side, right: Side) -> tuple[str, str]:
    for one in (left, right):
        if one.limit is not None and _apart(value, one.limit):
            return JUMP, ""
    missing = [one for one in (left, right) if one.limit is None]
    if missing:
        certain = next((one for one in missing if one.certain), None)
        return (BOUNDARY, certain.reason) if certain is not None else (UNKNOWN, missing[0].reason)
    if any(isinstance(one.slope, float) for one in (left, right)):
        return BOUNDARY, "no finite slope"
    unknown = next((one for one in (left, right) if one.slope is None), None)
    if unknown is not None:
        return UNKNOWN, unknown.reason
    if _apart(left.slope, right.slope):
        return KINK, ""
    if all(_agree(x, y) for x, y in ((left.slope, right.slope), (value, left.limit), (value, right.limit))):
        return SMOOTH, ""
    return UNKNOWN, SHORT


def _apart(one: Any, other: Any) -> bool:
    return not one.overlaps(other)


def _agree(one: Any, other: Any) -> bool:
    """Whether two numbers that may be equal are so to 56 bits."""
    if not one.overlaps(other):
        return False
    gap = one - other
    return bool(ball_numbers.is_tiny(gap)) or bool(
        abs(gap) < abs(one).max(abs(other)) * arb(2) ** -ball_numbers.GOOD_BITS
    )


class Tied(NamedTuple):
    """What happens at a tie: both sides along each axis, and along another direction if only that one is not smooth."""

    axes: Mapping[int, Sides]
    further: Sides | None

    @property
    def worst(self) -> Sides | None:
        """The least smooth direction; None where all are smooth."""
        directions = [*([] if self.further is None else [self.further]), *self.axes.values()]
        rough = [one for one in directions if one.kind != SMOOTH]
        return min(rough, key=lambda one: WORST_FIRST.index(one.kind), default=None)
