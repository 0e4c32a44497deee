"""The arithmetic of series and expansions: the primitives' `ball` and `entries` rules run on it, entry by entry.

An entry that does not depend on the direction stays a ball; one that does is a power series, or on one side of a point
an expansion. Operations whose `ball` rule needs a method that these lack have a rule here. Functions of real numbers,
and all that compares numbers, take complex entries only where these are real. No derivative rule is read.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from math import factorial
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives.matrices import rule_of
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.balls import EXACT, BallField, Literals
from gradcli.checks.evaluate.interpretation import Entries, Failed, Failure, Tie, UndefinedAt, Unsupported
from gradcli.checks.expansions.complex_numbers import Complex, angle, middle
from gradcli.checks.expansions.log_puiseux import Expansion, Huge
from gradcli.checks.expansions.power_series import Series, replaced
from gradcli.graph.builder import written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.graph.builder import Definition
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive


CLOSED = frozenset(("add", "sub", "mul", "neg"))  # what is finite stays finite
MOVING = (Series, Expansion, Huge)


class SeriesField(BallField):
    """Arithmetic on series around a point, and on expansions on one side of it.

    `signs` collects what decided branches: the region that a result is true in. `base` gives the values of all nodes at
    the point, for what is held there.
    """

    holding = True
    plain = frozenset((arb, Series))
    base: Mapping[Node, Entries]
    signs: list[int]
    finite = False  # whether entries move by a finite step: then the signs of balls decide branches too

    @classmethod
    def beside(cls, field: BallField, base: Mapping[Node, Entries]) -> SeriesField:
        """A field for what moves, with the numbers and positions that a field of balls already knows."""
        made: SeriesField | None = field.__dict__.get("series")
        if made is None:
            made = cls.__new__(ComplexField if isinstance(field, ComplexField) else cls)
            made.__dict__.update(field.__dict__)
            field.__dict__["series"] = made
        made.base = base
        made.signs = []
        return made

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if isinstance(x, MOVING):
            side: int = x.sign()
            self.signs.append(side)
            return side
        if isinstance(x, Failure):
            raise Failed(x)
        found = super().sign(x)
        if self.finite:
            self.signs.append(found)
        return found

    def index(self, x: Any) -> int:
        if isinstance(x, Failure):
            raise Failed(x)
        if isinstance(x, MOVING):
            raise UndefinedAt("an index that varies")
        return super().index(x)

    def digits_of(self, x: Any) -> Sequence[Any]:
        if isinstance(x, Series):
            return [x.s[k] for k in range(min(2, x.s.length()))]
        return super().digits_of(x)

    # --- what is held at its value -----------------------------------------------------------------------------

    def detached(self, node: Node, x: Entries) -> Entries:
        return self.base.get(node.args[0], x)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        at, before = (self.base.get(arg, now) for arg, now in zip(node.args, (value, surrogate), strict=True))
        flat = []
        for here, then, now in zip(at.flat, before.flat, surrogate.flat, strict=True):
            if isinstance(now, Series) and type(here) is arb:
                flat.append(Series(replaced(now.s, here)))
            else:
                flat.append(here if now is then else here + (now - then))
        return Entries(flat, value.shape)

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return OWN.get(primitive.name) or primitive.ball

    def finite_or_failure(self, node: Node, made: Any, xs: tuple[Any, ...]) -> Any:
        if isinstance(made, Series):
            smooth = node.primitive.name in CLOSED or made.is_finite()
            return made if smooth else self._not_smooth(node, made, xs)
        return super().finite_or_failure(node, made, xs)

    def _not_finite(self, node: Node, made: Any, xs: Sequence[Any]) -> Any:
        return super()._not_finite(node, made, constants(xs))

    def _not_smooth(self, node: Node, made: Series, xs: Sequence[Any]) -> Any:
        """What it means that a series is not finite: no value, or a value without a derivative."""
        value = made.constant
        if not value.is_finite():
            return self._not_finite(node, value, xs)
        if all(x.is_exact() for x in constants(xs) if type(x) is arb):
            return Failure("tie", node, f"{node.primitive.name} has no derivative here")
        return Failure("undecided", node, f"{node.primitive.name} needs more digits")

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if isinstance(entry, Series):
            return entry if entry.is_finite() else self._not_smooth(node, entry, [one for x in xs for one in x.flat])
        return super().checked(node, entry, xs)


def constants(xs: Sequence[Any]) -> tuple[Any, ...]:
    """Entries with every series replaced by its value at the point."""
    return tuple(x.constant if isinstance(x, Series) else x for x in xs)


# --- operations that a series has no method for -----------------------------------------------------------------


def _power(fl: Any, x: Any, y: Any) -> Any:
    """x**y as the ball rule has it; of what vanishes at the point, or moves with its exponent, on one side only."""
    if isinstance(x, Expansion) and type(y) is arb:
        return x.power(y)
    if isinstance(x, (Expansion, Huge)) or isinstance(y, (Expansion, Huge)):
        if fl.sign(x) <= 0:
            raise UndefinedAt("a power with a variable exponent and a base that is not positive")
        return (y * x.log()).exp()
    if not isinstance(x, Series) or not x.constant.is_zero() or isinstance(y, Series):
        return _declared("pow")(fl, x, y)
    if y.is_integer() and 0 <= (whole := int(y.unique_fmpz())) <= 64:
        return x**whole
    raise Tie


def _cube_root(fl: Any, x: Any) -> Any:
    if isinstance(x, Expansion):
        side = fl.sign(x)
        return side * (side * x).raised(THIRD)
    return _declared("cbrt")(fl, x)


def _polygamma(fl: Any, x: Any, *, n: int) -> Any:
    """Of what moves by the recurrence psi_n(x) = psi_n(x + 1) - (-1)**n n!/x**(n + 1), and right of 0 by its series."""
    if isinstance(x, Failure):
        raise Failed(x)
    if not isinstance(x, (Series, Expansion)):
        return _declared("polygamma")(fl, x, n=n)
    total: Any = arb(0)
    while ball_numbers.sign(x.constant) <= 0:
        total = total - (-1) ** n * factorial(n) * (1 / x) ** (n + 1)
        x = x + 1
    return total + x.polygamma(n)


@cache
def _declared(name: str) -> Callable[..., Any]:
    from gradcli.primitives import catalogue

    rule = catalogue()[name].ball
    assert rule is not None
    return rule


THIRD = Fraction(1, 3)
OWN: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "cbrt": _cube_root,
    "atan2": lambda fl, y, x: angle(y, x, fl.sign),
    "polygamma": _polygamma,
}


REAL_ONLY = frozenset(
    (
        *("j0", "j1", "jn", "i0", "i1", "iv", "gammainc", "gammaincc", "betainc"),
        *("gamma", "lgamma", "digamma", "polygamma", "erf", "erfc", "erfinv", "erfcinv", "sinc", "sinc_derivative"),
        *("cbrt", "atan2", "mod", "floor", "ceil", "round", "trunc"),
    )
)


class ComplexField(SeriesField):
    """Arithmetic on complex entries, at a point and along a direction; only real ones have an order."""

    plain = frozenset((Complex,))
    plane = True

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__(literals)
        self.signs = []
        self.base = {}
        self.zero = Complex(arb(0))
        self.one = Complex(arb(1))

    # --- numbers ----------------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> Any:
        return real(super()._constant(value))

    def datum(self, value: Any) -> Any:
        return self.leaf(value) if isinstance(value, (float, complex)) else self.constant(value)

    def leaf(self, value: Any) -> Any:
        if not isinstance(value, complex):
            return real(super().leaf(value))
        if not (math.isfinite(value.real) and math.isfinite(value.imag)):
            return Failure("undefined", None, f"a value of {value}")
        return Complex(arb(value.real), arb(value.imag))

    def parts(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, x.y))]

    def slopes(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, -x.y))]

    def joined(self, parts: Sequence[Any], before: Sequence[Any]) -> list[Any]:
        found = []
        for x, y, old in zip(parts[::2], parts[1::2], before, strict=True):
            same = isinstance(old, Failure) or (x is old.x and y is old.y)
            found.append(old if same else Complex(x, y))
        return found

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if not isinstance(x, Complex):
            return super().sign(x)
        if x.pure:
            return super().sign(x.x)
        raise Unsupported("complex numbers have no order")

    def index(self, x: Any) -> int:
        if isinstance(x, Complex) and not x.is_integer():
            raise UndefinedAt("an index that is not a whole number")
        return super().index(x.x if isinstance(x, Complex) else x)

    @property
    def holding(self) -> bool:  # type: ignore[override]
        return bool(self.base)

    def digits_of(self, x: Any) -> Sequence[Any]:
        return []  # how many digits a loop of complex numbers takes is not predicted

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

    def computed(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        name = node.primitive.name
        if name in REAL_ONLY:
            if not all(isinstance(x, Complex) and x.pure for x in xs):
                raise Unsupported(f"{name} of complex numbers")
            xs = tuple([x.x for x in xs])
        return super().computed(node, rule, xs)

    def finite_or_failure(self, node: Node, made: Any, xs: tuple[Any, ...]) -> Any:
        made = real(made)
        if isinstance(made, Complex) and not made.is_finite():
            exact = all(x.is_exact() for x in xs if isinstance(x, Complex))
            exact = exact and not (middle(made.x).is_finite() and middle(made.y).is_finite())
            return Failure("undefined" if exact else "undecided", node, f"{node.primitive.name} has no value here")
        return made

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        made = real(entry)
        if isinstance(made, Complex) and not made.is_finite():
            return Failure("undecided", node, f"{node.primitive.name} needs more digits")
        return made


def real(x: Any) -> Any:
    """A real entry as a complex one."""
    return Complex(x) if type(x) is arb or isinstance(x, MOVING) else x


# --- operations that are written with an order ------------------------------------------------------------------


def _equal(fl: Any, x: Any, y: Any) -> bool:
    gap = x - y
    return fl.sign(gap) == 0 if gap.pure else not gap.differs_from_zero()


def _power_derivative(fl: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    """From x*D(k+1, m) = (y - k)*D(k, m) + m*D(k, m-1), which is x*d/dx(x**y) = y*x**y differentiated."""
    if m == 0 and any((y - i).is_zero() for i in range(k)):
        return fl.zero
    if vanishes(x):
        if m == 0 and y.is_integer():
            factor = fl.one
            for i in range(k):
                factor = factor * (y - i)
            return factor * x.power(y - k)
        if fl.sign((y - k).x) > 0:
            return fl.zero
        raise UndefinedAt("an infinite derivative of x**y at x = 0")
    row = [x.power(y)]
    if m:
        row += [row[0] * x.log() ** j for j in range(1, m + 1)]
    for i in range(k):
        row = [((y - i) * row[j] + (j * row[j - 1] if j else 0)) / x for j in range(m + 1)]
    return row[m]


def vanishes(x: Complex) -> bool:
    """Whether the value at the point is exactly 0."""
    return bool(middle(x.x).is_zero() and middle(x.y).is_zero())


COMPLEX: dict[str, Callable[..., Any]] = {
    "abs": lambda fl, x: x.size(),
    "abs_slope": lambda fl, x: x.direction().conjugate(),
    "sign": lambda fl, x: x.direction(),
    "equal": _equal,
    "not_equal": lambda fl, x, y: not _equal(fl, x, y),
    "pow": lambda fl, x, y: x.power(y),
    "pow_derivative": _power_derivative,
    "xlogy": lambda fl, x, y: fl.zero if x.is_zero() else x * y.log(),
    "div_no_nan": lambda fl, x, y: fl.zero if y.is_zero() else x / y,
}
