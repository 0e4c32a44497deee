"""The arithmetic of series: the `ball` and `entries` rules of the primitives run on it unchanged, entry by entry.

An entry that does not depend on the direction stays a ball. A few operations read a ball in a way that a series has no
method for; they are composed here. Of complex series what asks for the order of numbers is answered for real ones only.
No derivative rule is read.
"""

from __future__ import annotations

import math
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

from flint import acb, arb, ctx

from gradcli.checks.derivatives.matrices import rule_of
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.balls import BallField
from gradcli.checks.evaluate.interpretation import (
    Entries,
    Failed,
    Failure,
    Fractional,
    Tie,
    Unbounded,
    Undecided,
    UndefinedAt,
    Unsupported,
)
from gradcli.checks.expansions.complex_series import ComplexSeries, OneSidedComplexSeries, is_positive
from gradcli.checks.expansions.power_series import OneSidedSeries, Series, replaced
from gradcli.graph.definition import written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.graph.definition import Definition
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


CLOSED = frozenset(("add", "sub", "mul", "neg"))  # what is finite stays finite
CONTINUOUS = frozenset(
    ("abs", "relu", "leaky_relu", "elu", "hardtanh", "hardsigmoid", "maximum", "minimum", "clamp", "max", "min")
)
LARGEST_ROOT = 12  # roots of what vanishes are followed up to this order


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
            return self.failure_of(node, reason)
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

    def failure_of(self, node: Node, reason: Exception) -> Failure:
        if isinstance(reason, Fractional) and reason.root <= LARGEST_ROOT:
            raise reason
        return super().failure_of(node, reason)

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if isinstance(entry, Series):
            return entry if entry.is_finite() else self._not_smooth(node, entry, [one for x in xs for one in x.flat])
        return super().checked(node, entry, xs)


def constants(xs: Sequence[Any]) -> tuple[Any, ...]:
    """Entries with every series replaced by its value at the point."""
    return tuple(x.constant if isinstance(x, Series) else x for x in xs)


# --- operations that a series has no method for -----------------------------------------------------------------


def _power(fl: Any, x: Any, y: Any) -> Any:
    """x**y as the ball rule has it, and where a moving base vanishes, on the side that is requested."""
    if not isinstance(x, Series) or not x.constant.is_zero() or isinstance(y, Series):
        return _declared("pow")(fl, x, y)
    if y.is_integer() and 0 <= (whole := int(y.unique_fmpz())) <= 64:
        return x**whole
    if not isinstance(x, OneSidedSeries):
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
    if not isinstance(x, OneSidedSeries) or not x.constant.is_zero():
        return False
    return not isinstance(y, OneSidedSeries) or y.valuation() < x.valuation()


def _polygamma(fl: Any, x: Any, *, n: int) -> Any:
    """By the series of lgamma; from the left by the recurrence psi_n(x) = psi_n(x + 1) - (-1)**n n!/x**(n + 1)."""
    if not isinstance(x, Series):
        return _declared("polygamma")(fl, x, n=n)
    total: Any = arb(0)
    while ball_numbers.sign(x.constant) <= 0:
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


ZERO_TESTED = frozenset(("sinc_derivative",))
REAL_ONLY = frozenset(
    (
        *("j0", "j1", "jn", "i0", "i1", "iv", "gammainc", "gammaincc", "betainc"),
        "lgamma",
        "polygamma",
        "erfinv",
        "erfcinv",
        "cbrt",
        "atan2",
        "mod",
        "floor",
        "ceil",
        "round",
        "trunc",
    )
)


class ComplexSeriesField(SeriesField):
    """Arithmetic on complex functions of a step; what the order of real numbers decides is asked of real ones only."""

    kind: type[ComplexSeries] = ComplexSeries
    testing_zero = False  # whether a sign is requested only to tell 0 from other numbers

    def __init__(self, *, wide: bool = False, printed: bool = False) -> None:
        BallField.__init__(self, wide=wide, printed=printed)
        self.continuous = False
        self.signs = []
        self.base = {}
        self.zero = self.kind.constantly(0)
        self.one = self.kind.constantly(1)

    # --- numbers ----------------------------------------------------------------------------------------------

    def constant(self, value: Any) -> Any:
        key = (value, ctx.cap)
        if key not in self._constants:
            found = self._constant(value)
            self._constants[key] = found if isinstance(found, Failure) else self.kind.constantly(found)
        return self._constants[key]

    def datum(self, value: Any) -> Any:
        return self.leaf(value) if isinstance(value, (float, complex)) else self.constant(value)

    def leaf(self, value: Any) -> Any:
        if isinstance(value, complex):
            if not (math.isfinite(value.real) and math.isfinite(value.imag)):
                return Failure("undefined", None, f"a value of {value}")
            return self.kind.constantly(acb(value.real, value.imag))
        found = super().leaf(value)
        return found if isinstance(found, Failure) else self.kind.constantly(found)

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.sqrt()

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if not isinstance(x, ComplexSeries):
            return super().sign(x)
        if not x.pure and self.testing_zero:
            if x.vanishes() and not x.fixed:
                raise Tie
            return 0 if x.vanishes() else 1
        if not x.pure:
            raise Unsupported("complex numbers have no order")
        if self.continuous and not x.still and x.s.length() == 0:
            return 1
        found = x.sign()
        if not x.still:
            self.signs.append(found)
        return found

    def index(self, x: Any) -> int:
        if isinstance(x, ComplexSeries) and not x.is_integer():
            raise UndefinedAt("a position that is not a whole number")
        return int(x.unique_fmpz()) if isinstance(x, ComplexSeries) else super().index(x)

    @property
    def holding(self) -> bool:  # type: ignore[override]
        return bool(self.base)

    def digits_of(self, x: Any) -> Sequence[Any]:
        return []  # of loops in the plane nothing is foretold

    def detached(self, node: Node, x: Entries) -> Entries:
        if node.args[0] in self.base:
            return self.base[node.args[0]]
        return Entries([one if isinstance(one, Failure) else one.held() for one in x.flat], x.shape)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        at, before = (self.base.get(arg, now) for arg, now in zip(node.args, (value, surrogate), strict=True))
        flat = []
        for here, then, now in zip(at.flat, before.flat, surrogate.flat, strict=True):
            failed = next((x for x in (here, then, now) if isinstance(x, Failure)), None)
            flat.append(here.held() + (now - then.held()) if failed is None else failed)
        return Entries(flat, value.shape)

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return COMPLEX.get(primitive.name) or primitive.ball

    def array_rule(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.name in ("cholesky", "qr_q"):
            raise Unsupported(f"{primitive.name} of complex matrices")
        assert primitive.entries is not None
        return primitive.entries

    def matrix_rule(self, node: Node) -> Callable[..., Any] | None:
        return rule_of(node, closed=False)

    def written_out(self, node: Node) -> Definition:
        if node.primitive.name == "norm":  # that of complex entries is the norm of their sizes
            return written_out(node, lambda x: x.builder.call("abs", x))
        return super().written_out(node)

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        name = node.primitive.name
        if name in REAL_ONLY:
            raise Unsupported(f"{name} of complex numbers")
        self.testing_zero = name in ZERO_TESTED
        made = super().apply(node, rule, xs)
        if type(made) is arb:
            return self.kind.constantly(made)
        if isinstance(made, ComplexSeries) and not made.is_finite():
            exact = all(x.is_exact() for x in xs if isinstance(x, ComplexSeries)) and not made.constant.is_finite()
            return Failure("undefined" if exact else "undecided", node, f"{name} has no value here")
        return made

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if type(entry) is arb:
            return self.kind.constantly(entry)
        if isinstance(entry, ComplexSeries) and not entry.is_finite():
            return Failure("undecided", node, f"{node.primitive.name} needs more digits")
        return entry


class OneSidedComplexSeriesField(ComplexSeriesField):
    """The same on one side of a point."""

    kind = OneSidedComplexSeries


# --- operations that are written with an order ------------------------------------------------------------------


def _equal(fl: Any, x: Any, y: Any) -> bool:
    gap = x - y
    return fl.sign(gap) == 0 if gap.pure else bool(gap.vanishes())


def _complex_power(fl: Any, x: Any, y: Any) -> Any:
    return x.power(y)


def _power_derivative(fl: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    """From x*D(k+1, m) = (y - k)*D(k, m) + m*D(k, m-1), which is x*d/dx(x**y) = y*x**y differentiated."""
    if m == 0 and any((y - i).is_zero() for i in range(k)):
        return fl.zero
    if x.vanishes():
        if m == 0 and y.is_integer():
            factor = fl.one
            for i in range(k):
                factor = factor * (y - i)
            return factor * x.power(y - k)
        if is_positive((y - k).constant.real):
            return fl.zero
        raise UndefinedAt("an infinite derivative of x**y at x = 0")
    row = [x.power(y)]
    if m:
        row += [row[0] * x.log() ** j for j in range(1, m + 1)]
    for i in range(k):
        row = [((y - i) * row[j] + (j * row[j - 1] if j else 0)) / x for j in range(m + 1)]
    return row[m]


def _absent(fl: Any, x: Any, y: Any) -> Any:
    """x*log(y), and 0 where x is 0."""
    return fl.zero if x.fixed and x.vanishes() else x * y.log()


def _divided(fl: Any, x: Any, y: Any) -> Any:
    return fl.zero if y.fixed and y.vanishes() else x / y


COMPLEX: dict[str, Callable[..., Any]] = {
    "abs": lambda fl, x: x.size(),
    "abs_slope": lambda fl, x: x.direction().conjugate(),
    "sign": lambda fl, x: x.direction(),
    "equal": _equal,
    "not_equal": lambda fl, x, y: not _equal(fl, x, y),
    "pow": _complex_power,
    "pow_derivative": _power_derivative,
    "xlogy": _absent,
    "div_no_nan": _divided,
}
