"""What a function does on both sides of a tie: limits, slopes, and how they compare; rigorous.

Each side is a power series of its own, t = tau**m with tau > 0, so that roots of what vanishes are powers of tau. Where
these do not decide, at poles, logarithms and essential singularities, it is a log-Puiseux expansion. Three values are
compared: at the point, and the limits from below and from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb

from gradcli.checks.derivatives.jets import DirectionalReading
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.balls import BallField
from gradcli.checks.evaluate.interpretation import (
    Entries,
    Failed,
    Failure,
    Fractional,
    Unbounded,
    Undecided,
    UndefinedAt,
)
from gradcli.checks.expansions.log_puiseux import STEP, Expansion, Huge, rational
from gradcli.checks.expansions.power_series import Series
from gradcli.checks.expansions.series_fields import LARGEST_ROOT, SeriesField

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradcli.checks.derivatives.jets import Direction, DirectionalJets
    from gradcli.checks.evaluate.interpretation import Failure
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


class ExpansionField(SeriesField):
    """Arithmetic on expansions, beside balls that do not move."""

    def __init__(self, field: BallField, base: Mapping[Node, Entries]) -> None:
        self.__dict__.update({key: value for key, value in field.__dict__.items() if key != "series"})
        self.continuous = False
        self.signs = []
        self.base = base

    def sign(self, x: Any) -> int:
        if isinstance(x, (Expansion, Huge)):
            found = x.sign()
            self.signs.append(found)
            return found
        return super().sign(x)

    def index(self, x: Any) -> int:
        if isinstance(x, (Expansion, Huge)):
            raise UndefinedAt("a position that moves")
        return super().index(x)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        raise Unbounded("ste beside a point that is no smooth one")

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return OWN.get(primitive.name) or primitive.ball


def beside(lines: DirectionalJets, direction: Direction) -> Expansion | Huge | Any | Failure:
    """The output on the side that a direction leads to: an expansion, a ball where nothing moves, or a Failure."""
    base = lines.base.known
    field = ExpansionField(lines.field, base)
    moved = list(lines.center)
    for i, speed in direction.items():
        moved[i] = Expansion.along(moved[i], speed)
    walk = DirectionalReading(field, base, lines.paths.split(moved))
    walk.again(lines.paths.walk)
    return walk.known[lines.paths.outputs[0]].flat[0]


def _power(fl: Any, x: Any, y: Any) -> Any:
    if isinstance(y, (Expansion, Huge)) or not isinstance(x, Expansion):
        if fl.sign(x) <= 0:
            raise UndefinedAt("a power with a moving exponent of a number that is not positive")
        return (y * x.log()).exp()
    if y.is_integer() and abs(whole := int(y.unique_fmpz())) <= 64:
        return x**whole if whole >= 0 else (x**-whole).inverse()
    if fl.sign(x) < 0:
        raise UndefinedAt("a broken power of a negative number on this side")
    exponent = rational(y)
    return x.raised(exponent) if exponent is not None else (y * x.log()).exp()


def _cube_root(fl: Any, x: Any) -> Any:
    side = fl.sign(x)
    return side * (side * x).root_of(1, 3)


def _angle(fl: Any, y: Any, x: Any) -> Any:
    if not isinstance(y, Expansion) and y.is_zero():
        return arb(0) if fl.sign(x) > 0 else arb.pi()
    if fl.sign(x) > 0:
        return (y / x).atan()
    return fl.sign(y) * (arb.pi() / 2) - (x / y).atan()


def _polygamma(fl: Any, x: Any, *, n: int) -> Any:
    if not isinstance(x, Expansion):
        raise Failed(x)
    return x.polygamma(n)


OWN: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "cbrt": _cube_root,
    "atan2": _angle,
    "polygamma": _polygamma,
}


FIRST_TERMS = 4  # in powers of the step
MOST_TERMS = 16
OPEN = "a slope that no expansion gives"
SHORT = "both sides are equal as far as the digits go, which is not far enough"
SMOOTH, KINK, BOUNDARY, JUMP, UNKNOWN = "smooth", "KINK", "BOUNDARY", "DISCONTINUOUS", "unknown"


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
    """The limit and the slope as the step grows from 0: by power series, by an expansion where these do not decide."""
    found = _by_series(lines, direction)
    if found.slope is not None or not hasattr(lines, "base"):
        return found
    again = _by_expansion(lines, direction)
    return found if again is None else again


def _by_expansion(lines: DirectionalJets, direction: Direction) -> Side | None:
    """The side by an expansion; None where there is none."""
    found = beside(lines, direction)
    if isinstance(found, Failure) and found.kind != "undefined":
        return None
    try:
        return _read_expansion(found)
    except (Unbounded, Undecided) as reason:
        return Side(None, None, str(reason))


def _read_expansion(found: Any) -> Side:
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


def _by_series(lines: DirectionalJets, direction: Direction) -> Side:
    root, terms = 1, FIRST_TERMS
    while True:
        try:
            found = lines.beside(direction, root, root * terms)
        except Fractional as asked:
            root *= asked.root
            if root > LARGEST_ROOT:
                return Side(None, None, str(asked))
            continue
        if not _is_short(found, root):
            return _read(found, root)
        if terms >= MOST_TERMS:
            return Side(None, None, found.reason) if isinstance(found, Failure) else _read(found, root)
        terms *= 2


def mirrored(one: Side) -> Side:
    """A side seen along the opposite direction."""
    return one if one.slope is None else one._replace(slope=-one.slope)


def _is_short(found: Any, root: int) -> bool:
    return found.kind == "order" if isinstance(found, Failure) else isinstance(found, Series) and found.s.prec <= root


def _read(found: Any, root: int) -> Side:
    """The side that a series stands for."""
    if isinstance(found, Failure):
        return Side(None, None, found.reason, found.kind == "undefined")
    if not isinstance(found, Series):
        return Side(found, arb(0))
    limit = found.constant
    for k in range(1, min(root, found.s.prec)):
        early = found.s[k]
        if early.is_zero():
            continue
        try:
            return Side(limit, float("inf") * ball_numbers.sign(early), "the slope is not bounded", True)
        except Undecided:
            return Side(limit, None, "a slope that the digits do not decide")
    if found.s.prec <= root:
        return Side(limit, None, "a power between 0 and 1 of what vanishes")
    return Side(limit, found.s[root])


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


class Tied:
    """What happens at a tie: both sides along each axis, and along a further direction if only that one is rough."""

    def __init__(self, axes: Mapping[int, Sides], further: Sides | None) -> None:
        self.axes = dict(axes)
        self.further = further

    @property
    def worst(self) -> Sides | None:
        """The roughest of all that was seen; None where everything is smooth."""
        found = [*([self.further] if self.further is not None else []), *self.axes.values()]
        for kind in ("DISCONTINUOUS", "BOUNDARY", "KINK", "unknown"):
            for one in found:
                if one.kind == kind:
                    return one
        return None
