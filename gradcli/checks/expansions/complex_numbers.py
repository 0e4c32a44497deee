"""Complex numbers of two real entries: balls that do not move, power series, or expansions on one side of a point.

The step is real, so what is not holomorphic (|z|) moves like anything else. Logarithms, roots and powers are principal
values. Where one of them meets its cut, the negative real axis, the sign of the imaginary part decides, and beside a
point on the cut only its sides tell. No rule is read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from flint import arb, fmpz

from gradcli.checks.evaluate.ball_numbers import sign
from gradcli.checks.evaluate.interpretation import Tie, Undecided, Undefined
from gradcli.checks.expansions.exact_reals import ExactReal
from gradcli.checks.expansions.log_puiseux import Expansion
from gradcli.checks.expansions.power_series import FORMULAS, Moving, Series

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = (int, fmpz, arb, ExactReal, Series, Expansion)
MOST_POWER = 64  # that is written as a product


def decided(x: Any, sign: Callable[[Any], int] = sign) -> int | None:
    """The sign of a real entry, 0 where it vanishes at the point, None where digits are missing."""
    try:
        return sign(x)
    except Undecided:
        return None
    except Tie:
        return 0


def pi_like(x: Any) -> Any:
    """Pi as a ball, or as an exact number if x is exact."""
    return x.pi() if isinstance(x, (ExactReal, Expansion)) else arb.pi()


def angle(y: Any, x: Any, sign: Callable[[Any], int] = sign) -> Any:
    """The angle of (x, y) by the signs of both, so that no quotient leaves its branch."""
    if type(x) is arb and type(y) is arb:
        return arb.atan2(y, x)
    if y.is_zero():
        return arb(0) if sign(x) > 0 else pi_like(x)
    if (decided(x, sign) or 0) > 0:
        return (y / x).atan()
    return sign(y) * (pi_like(x) / 2) - (x / y).atan()


class ComplexEntry(Moving):
    """A complex entry x + i*y. It is real all along, `pure`, where y is exactly 0."""

    __slots__ = ("x", "y")

    def __init__(self, x: Any, y: Any = None) -> None:
        self.x = x
        self.y = arb(0) if y is None else y

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def pure(self) -> bool:
        return bool(self.y.is_zero())

    def is_finite(self) -> bool:
        return bool(self.x.is_finite() and self.y.is_finite())

    def is_zero(self) -> bool:
        """Whether it is 0 for certain, and does not move."""
        return bool(self.x.is_zero() and self.y.is_zero())

    def is_exact(self) -> bool:
        """Whether it is one number."""
        return all(isinstance(part, (arb, ExactReal)) and part.is_exact() for part in (self.x, self.y))

    def is_integer(self) -> bool:
        """Whether it is a whole number that does not move."""
        return bool(self.pure and self.x.is_integer())

    def unique_fmpz(self) -> Any:
        return self.x.unique_fmpz()

    def differs_from_zero(self) -> bool:
        """Whether it is not 0; raises Tie where it vanishes at the point and moves, Undecided."""
        signs = [decided(part) for part in (self.x, self.y)]
        if any(signs):
            return True
        if None in signs:
            raise Undecided("a number that may be 0")
        if not self.is_zero():
            raise Tie
        return False

    # --- ring operations --------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, ComplexEntry):
            return ComplexEntry(self.x + other.x, self.y + other.y)
        return ComplexEntry(self.x + other, self.y) if isinstance(other, NUMBERS) else NotImplemented

    def __neg__(self) -> ComplexEntry:
        return ComplexEntry(-self.x, -self.y)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, ComplexEntry):
            x, y, u, v = self.x, self.y, other.x, other.y
            return ComplexEntry(x * u - y * v, x * v + y * u)
        return ComplexEntry(self.x * other, self.y * other) if isinstance(other, NUMBERS) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, ComplexEntry):
            return self * other.inverse()
        return ComplexEntry(self.x / other, self.y / other) if isinstance(other, NUMBERS) else NotImplemented

    def inverse(self) -> ComplexEntry:
        """1 over it."""
        if self.is_zero():
            raise Undefined("division by 0")
        if self.pure:
            return ComplexEntry(1 / self.x)
        square = self.square()
        return ComplexEntry(self.x / square, -self.y / square)

    def turned(self) -> ComplexEntry:
        """i times it."""
        return ComplexEntry(-self.y, self.x)

    def conjugate(self) -> ComplexEntry:
        return ComplexEntry(self.x, -self.y)

    # --- the size ---------------------------------------------------------------------------------------------

    def square(self) -> Any:
        """|z|**2, a real entry."""
        return self.x * self.x + self.y * self.y

    def size(self) -> Any:
        """|z|, a real entry."""
        square = self.square()
        return square if square.is_zero() else square.sqrt()

    # --- functions --------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[[], Any]:
        """A function that is entire, or whose cuts are off the real axis: of real numbers it is real."""
        formula = FUNCTIONS.get(name)
        if formula is None:
            raise AttributeError(name)
        if self.pure and name in REAL:
            return lambda: ComplexEntry(getattr(self.x, name)())
        return partial(formula, self)

    def log(self) -> ComplexEntry:
        if self.is_zero():
            raise Undefined("the logarithm of 0")
        if self.pure and decided(self.x) == 1:
            return ComplexEntry(self.x.log())
        return ComplexEntry(self.square().log() / 2, angle(self.y, self.x))

    def log1p(self) -> ComplexEntry:
        return ComplexEntry(self.x.log1p()) if self.pure and decided(self.x + 1) == 1 else (self + 1).log()

    def sqrt(self) -> ComplexEntry:
        if self.pure:
            return ComplexEntry(self.x.sqrt()) if sign(self.x) >= 0 else ComplexEntry(arb(0), (-self.x).sqrt())
        size = self.size()
        if (decided(self.x) or 0) >= 0:
            x = ((size + self.x) / 2).sqrt()
            return ComplexEntry(x, self.y / (2 * x))
        y = sign(self.y) * ((size - self.x) / 2).sqrt()
        return ComplexEntry(self.y / (2 * y), y)

    def power(self, exponent: ComplexEntry) -> Any:
        """The principal value of a power."""
        if exponent.is_integer() and abs(n := int(exponent.unique_fmpz())) <= MOST_POWER:
            return self**n if n >= 0 else (self**-n).inverse()
        if not self.differs_from_zero():
            if sign(exponent.x) <= 0:
                raise Undefined("a negative power of 0")
            return self
        return (exponent * self.log()).exp()

    def asin(self) -> Any:
        if self.pure and decided(1 - abs(at_point(self.x))) == 1:
            return ComplexEntry(self.x.asin())
        value = -(self.turned() + (1 - self * self).sqrt()).log().turned()
        return value.conjugate() if self.beyond_one() else value

    def atanh(self) -> Any:
        value = FORMULAS["atanh"](self)
        return value.conjugate() if self.beyond_one() else value

    def beyond_one(self) -> bool:
        """Whether it is real and above 1: a cut, where the value is the limit from above as in C, and 1 - z below 0."""
        return self.pure and decided(self.x - 1) == 1


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda z: z.x.exp() * ComplexEntry(z.y.cos(), z.y.sin()),
    "expm1": FORMULAS["expm1"],
    "sin": lambda z: ComplexEntry(z.x.sin() * z.y.cosh(), z.x.cos() * z.y.sinh()),
    "cos": lambda z: ComplexEntry(z.x.cos() * z.y.cosh(), -(z.x.sin() * z.y.sinh())),
    "tan": FORMULAS["tan"],
    "sinh": lambda z: -z.turned().sin().turned(),
    "cosh": lambda z: z.turned().cos(),
    "tanh": lambda z: -z.turned().tan().turned(),
    "asinh": lambda z: (z + (z * z + 1).sqrt()).log(),
    "acosh": lambda z: (z + (z + 1).sqrt() * (z - 1).sqrt()).log(),
    "acos": lambda z: pi_like(z.x) / 2 - z.asin(),
    "atan": lambda z: -z.turned().atanh().turned(),
}
REAL = FUNCTIONS.keys() - {"acosh", "acos"}  # of all real numbers


def at_point(x: Any) -> Any:
    """The value of a real entry at the point, or its limit there."""
    return x if type(x) is arb else x.constant
