"""The field of series: the `ball` and `entries` rules of the primitives run on it unchanged, entry by entry.

An entry that does not depend on the direction stays a ball. A few operations read a ball in a way that a series has
no method for (two arguments, or an order of differentiation); they are composed here. No derivative rule is read.
"""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks import balls
from gradcli.checks.balls import BallField
from gradcli.checks.entries import Entries, Failure, Undecided, UndefinedAt
from gradcli.checks.series.functions import replaced
from gradcli.checks.series.numbers import Fractional, Series, Sided, Tie, TooShort, Unbounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

CLOSED = frozenset(("add", "sub", "mul", "neg"))  # what is finite stays finite
CONTINUOUS = frozenset(
    ("abs", "relu", "leaky_relu", "elu", "hardtanh", "hardsigmoid", "maximum", "minimum", "clamp", "max", "min")
)
LARGEST_ROOT = 12  # roots of what vanishes are followed up to this order


class Failed(Exception):
    """An operand that has no value is asked for a sign or a position: the result is the same failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class SeriesField(BallField):
    """Arithmetic on series around a point. `signs` collects what decided branches: the region that a result is true in.

    `base` gives the values of all nodes at the point, for what is held there.
    """

    holding = True
    plain = frozenset((arb, Series))
    base: Mapping[Node, Entries]
    signs: list[int]
    continuous: bool  # whether the operation at hand has no jump where a sign changes

    @classmethod
    def beside(cls, field: BallField, base: Mapping[Node, Entries]) -> SeriesField:
        """A field for series with the numbers and positions that a field of balls already knows."""
        made: SeriesField | None = field.__dict__.get("series")
        if made is None:
            made = cls.__new__(cls)
            made.__dict__.update(field.__dict__)
            made.continuous = False
            field.__dict__["series"] = made
        made.base = base
        made.signs = []
        return made

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if isinstance(x, Series):
            if self.continuous and x.s.length() == 0:
                return 1  # whichever way it goes, the result is the same as far as the series go
            found = x.sign()
            self.signs.append(found)
            return found
        if isinstance(x, Failure):
            raise Failed(x)
        return super().sign(x)

    def index(self, x: Any) -> int:
        if isinstance(x, Failure):
            raise Failed(x)
        if isinstance(x, Series):
            raise UndefinedAt("a position that moves")
        return super().index(x)

    def digits_of(self, x: Any) -> Sequence[Any]:
        if isinstance(x, Series):
            return [x.s[k] for k in range(min(2, x.s.length()))]
        return super().digits_of(x)

    # --- what is held at its value -----------------------------------------------------------------------------

    def detached(self, node: Node, x: Entries) -> Entries:
        return self.base.get(node.args[0], x)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        values = self.base.get(node.args[0], value)
        flat = [
            moved.made(replaced(moved.s, at)) if isinstance(moved, Series) and type(at) is arb else at
            for at, moved in zip(values.flat, surrogate.flat, strict=True)
        ]
        return Entries(flat, value.shape)

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return OWN.get(primitive.name) or primitive.ball

    def computed(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        name = node.primitive.name
        try:
            made = self._made(node, rule, xs) if name in CONTINUOUS else rule(self, *xs, **node.params)
        except Exception as reason:
            return self.told(node, reason)
        if isinstance(made, Series):
            return made if name in CLOSED or made.is_finite() else self._not_smooth(node, made, xs)
        if type(made) is not arb or made.is_finite():
            return made
        return self._not_finite(node, made, constants(xs))

    def _made(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        """An operation without a jump where a sign changes."""
        self.continuous = True
        try:
            return rule(self, *xs, **node.params)
        finally:
            self.continuous = False

    def _not_smooth(self, node: Node, made: Series, xs: Sequence[Any]) -> Any:
        """What it means that a series is not finite: no value, or a value without a derivative."""
        value = made.constant
        if not value.is_finite():
            return self._not_finite(node, value, constants(xs))
        if all(x.is_exact() for x in constants(xs) if type(x) is arb):
            return Failure("tie", node, f"{node.primitive.name} has no derivative here")
        return Failure("undecided", node, f"{node.primitive.name} needs more digits")

    def told(self, node: Node, reason: Exception) -> Failure:
        name = node.primitive.name
        if isinstance(reason, Tie):
            return Failure("tie", node, name)
        if isinstance(reason, TooShort):
            return Failure("order", node, str(reason))
        if isinstance(reason, Unbounded) or (isinstance(reason, Fractional) and reason.root > LARGEST_ROOT):
            return Failure("unclear", node, str(reason))
        if isinstance(reason, Failed):
            return reason.failure
        if isinstance(reason, (ZeroDivisionError, OverflowError, ValueError)):
            return Failure("undecided", node, str(reason))
        return super().told(node, reason)

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if isinstance(entry, Series):
            return entry if entry.is_finite() else self._not_smooth(node, entry, [one for x in xs for one in x.flat])
        return super().checked(node, entry, xs)


def constants(xs: Sequence[Any]) -> tuple[Any, ...]:
    """Entries with every series replaced by its value at the point."""
    return tuple(x.constant if isinstance(x, Series) else x for x in xs)


# --- operations that a series has no method for -----------------------------------------------------------------


def _power(fl: Any, x: Any, y: Any) -> Any:
    """x**y as the ball rule has it, and where a moving base vanishes, on the side that is asked for."""
    if not isinstance(x, Series) or not x.constant.is_zero() or isinstance(y, Series):
        return _declared("pow")(fl, x, y)
    if y.is_integer() and 0 <= (whole := int(y.unique_fmpz())) <= 64:
        return x**whole
    if not isinstance(x, Sided):
        raise Tie
    if fl.sign(y) < 0:
        raise Unbounded("a power without a finite limit")
    if y.is_exact():
        ratio = y.fmpq()
        top, bottom = int(ratio.p), int(ratio.q)
        if bottom <= LARGEST_ROOT and top <= 64:
            return x.root_of(top, bottom)
    return x.vanishing(y)


def _cube_root(fl: Any, x: Any) -> Any:
    if not isinstance(x, Series) or not x.constant.is_zero():
        return _declared("cbrt")(fl, x)
    side = fl.sign(x)
    return side * (side * x).root_of(1, 3)


def _angle(fl: Any, y: Any, x: Any) -> Any:
    """The angle of (x, y) by the signs of both, so that no quotient leaves its branch."""
    if not isinstance(x, Series) and not isinstance(y, Series):
        return arb.atan2(y, x)
    if not isinstance(y, Series) and y.is_zero() and fl.sign(x):
        return arb.atan2(y, x.constant) if not x.constant.is_zero() else _flat_angle(fl, x)
    right = _decided(fl, x)
    if right and right > 0 and not _steeper(y, x):
        return _atan(y / x)
    above = _decided(fl, y)
    if above and (not right or _steeper(y, x)):
        quarter = arb.pi() / 2
        return (quarter if above > 0 else -quarter) - _atan(x / y)
    if right is None:
        raise Undecided("the angle of a point near the origin or the cut")
    above = fl.sign(y)
    if right < 0 and above:
        return _atan(y / x) + (arb.pi() if above > 0 else -arb.pi())
    raise Tie


def _flat_angle(fl: Any, x: Any) -> Any:
    return arb(0) if fl.sign(x) > 0 else arb.pi()


def _atan(x: Any) -> Any:
    return x.atan()


def _decided(fl: Any, x: Any) -> int | None:
    """The sign of the value beside the point, 0 where it is 0, None where it is not decided."""
    try:
        side: int = fl.sign(x)
    except Undecided:
        return None
    except Tie:
        return 0
    return side


def _steeper(y: Any, x: Any) -> bool:
    """Whether x vanishes beside the point, and faster than y."""
    if not isinstance(x, Sided) or not x.constant.is_zero():
        return False
    return not isinstance(y, Sided) or y.valuation() < x.valuation()


def _polygamma(fl: Any, x: Any, *, n: int) -> Any:
    """By the series of lgamma; from the left by the recurrence psi_n(x) = psi_n(x + 1) - (-1)**n n!/x**(n + 1)."""
    if not isinstance(x, Series):
        return _declared("polygamma")(fl, x, n=n)
    total: Any = arb(0)
    while balls.sign(x.constant) <= 0:
        total = total - (-1) ** n * factorial(n) / x ** (n + 1)
        x = x + 1
    return total + x.polygamma(n)


@cache
def _declared(name: str) -> Callable[..., Any]:
    from gradcli.primitives import catalogue

    rule = catalogue()[name].ball
    assert rule is not None
    return rule


OWN: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "cbrt": _cube_root,
    "atan2": _angle,
    "polygamma": _polygamma,
}
