"""Truncated power series with balls as coefficients go in and come out; refuses to read what an exact zero hides.

A `Series` is a function along a direction, in powers of the step t. It wraps python-flint's `arb_series`, whose
division, roots and powers are unsound where a constant term vanishes exactly: here that is decided first. A `Sided`
series lives on one side of a point, t = tau**m with tau > 0: there a vanishing constant term is shifted away, and the
sign of a series is the sign of its first coefficient that is not zero. The remainder of a series with n
known coefficients is smaller than every multiple of t**(n - 1), and no more is claimed.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series, fmpz

from gradcli.checks import balls
from gradcli.checks.entries import UndefinedAt
from gradcli.checks.series.functions import Functions

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = (int, fmpz, arb)


class Tie(Exception):
    """At the point itself something vanishes exactly that decides a branch or lies on an edge: ask both sides."""


class TooShort(Exception):
    """More coefficients would be needed."""


class Unbounded(Exception):
    """Something in between has no finite limit; whether the result has one is not known."""


class Fractional(Exception):
    """A root of something that vanishes: the series has to be one in the `root`-th root of what it was in."""

    def __init__(self, root: int) -> None:
        super().__init__(f"a root of order {root}")
        self.root = root


class Series(Functions):
    """A function of the step along a direction, near the point."""

    __slots__ = ("s",)

    def __init__(self, s: Any) -> None:
        self.s = s

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def constant(self) -> Any:
        """The value at the point."""
        return self.s[0]

    def coefficient(self, k: int) -> Any:
        """The coefficient of t**k; raises TooShort where it is not known."""
        if self.s.prec <= k:
            raise TooShort(f"coefficient {k} of a series of {self.s.prec}")
        return self.s[k]

    def is_finite(self) -> bool:
        s = self.s
        length = s.length()
        if length > 2:
            return all(s[k].is_finite() for k in range(length))
        return bool((length < 1 or s[0].is_finite()) and (length < 2 or s[1].is_finite()))

    def sign(self) -> int:
        """The sign around the point; raises Tie where the value is exactly 0, Undecided where bits are missing."""
        constant = self.s[0]
        if constant.is_zero():
            raise Tie
        return balls.sign(constant)

    def is_integer(self) -> bool:
        """Whether it is one whole number all along: nothing that moves is."""
        return False

    def is_zero(self) -> bool:
        """Whether it is 0 all along: nothing that moves is."""
        return False

    # --- ring operations: sound as they are -------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return self.__class__(self.s + other.s)
        return self.__class__(self.s + other) if isinstance(other, NUMBERS) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if self is other:
            return arb(0)  # not only here: all along the direction
        if isinstance(other, Series):
            return self.__class__(self.s - other.s)
        return self.__class__(self.s - other) if isinstance(other, NUMBERS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return self.__class__(other - self.s) if isinstance(other, NUMBERS) else NotImplemented

    def __neg__(self) -> Series:
        return self.__class__(-self.s)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return self.__class__(self.s * other.s)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        if other == 0:
            return arb(0)  # 0 all along
        return self.__class__(self.s * other)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Any:
        if exponent < 0:
            return NotImplemented
        if exponent < 2:
            return self if exponent == 1 else arb(1)
        return self.__class__(self.s**exponent)

    # --- division: the divisor's constant term is decided first -----------------------------------------------

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return other.divide(self)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        if other == 0:
            raise UndefinedAt("division by 0")
        return self.__class__(self.s / other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.divide(other) if isinstance(other, NUMBERS) else NotImplemented

    def divide(self, above: Any) -> Any:
        """above / self."""
        if self.s[0].is_zero():
            raise UndefinedAt("division by 0")
        return self.__class__((above.s if isinstance(above, Series) else above) / self.s)

    # --- roots ------------------------------------------------------------------------------------------------

    def sqrt(self) -> Any:
        if self.s[0].is_zero():
            raise Tie
        return self.__class__(self.s.sqrt())

    def root_of(self, top: int, bottom: int) -> Any:
        """The power top/bottom of what vanishes at the point: only its sides tell."""
        raise Tie

    # --- a whole number beside it -----------------------------------------------------------------------------

    def floor(self) -> Any:
        """The whole number below, where it is one and the same around the point."""
        constant = self.s[0]
        whole = constant.floor()
        if whole.is_exact() and (constant - whole).is_zero():
            return whole if self._rises_from(whole) else whole - 1
        return whole

    def _rises_from(self, whole: Any) -> bool:
        raise Tie


class Sided(Series):
    """A function on one side of the point, in powers of tau > 0."""

    __slots__ = ()

    def sign(self) -> int:
        """The sign right beside the point; raises TooShort where every known coefficient is 0."""
        return balls.sign(self.s[self.valuation()])

    def valuation(self) -> int:
        """The first power whose coefficient is not exactly 0."""
        found: int = self.s.valuation()
        if found < 0:
            raise TooShort("a number that vanishes beside the point, as far as the series goes")
        return found

    def shifted(self, by: int) -> Any:
        """The series divided by tau**by (python-flint's series)."""
        return shifted(self.s, by, arb_series, balls.sign)

    def raised(self, s: Any, by: int) -> Sided:
        """A series of python-flint times tau**by."""
        return Sided(arb_series([0] * by + [s[k] for k in range(s.length())], s.prec + by))

    def divide(self, above: Any) -> Any:
        if not self.s[0].is_zero():
            return super().divide(above)
        by = self.valuation()
        balls.sign(self.s[by])  # decided, or not divisible
        if not isinstance(above, Series):
            if above == 0:
                return arb(0)
            raise Unbounded("a quotient without a finite limit")
        assert isinstance(above, Sided)
        return Sided(above.shifted(by) / self.shifted(by))

    def log(self) -> Any:
        if not self.s[0].is_zero():
            return super().log()
        if self.sign() < 0:
            raise UndefinedAt("the logarithm of a negative number on this side")
        raise Unbounded("the logarithm of what vanishes")

    def sqrt(self) -> Any:
        return super().sqrt() if not self.s[0].is_zero() else self.root_of(1, 2)

    def root_of(self, top: int, bottom: int) -> Any:
        by = self.valuation()
        if balls.sign(self.s[by]) < 0:
            raise UndefinedAt("a root of a negative number on this side")
        if top * by % bottom:
            raise Fractional(bottom // gcd(top * by, bottom))
        inner = self.shifted(by)
        root = inner.sqrt() if (top, bottom) == (1, 2) else (inner.log() * top / bottom).exp()
        return self.raised(root, top * by // bottom)

    def vanishing(self, exponent: Any) -> Sided:
        """A power with a positive exponent of what vanishes: as many zero coefficients as are certain."""
        by = self.valuation()
        if balls.sign(self.s[by]) < 0:
            raise UndefinedAt("a power of a negative number on this side")
        known = int((by * exponent).lower().ceil().unique_fmpz() or 1)
        return Sided(arb_series([0], max(1, min(known, self.s.prec))))

    def _rises_from(self, whole: Any) -> bool:
        side: int = (self - whole).sign()
        return side > 0


def shifted(s: Any, by: int, made: Callable[[list[Any], int], Any], decide: Callable[[Any], object]) -> Any:
    """A series of python-flint divided by the `by`-th power of what it runs in, where nothing is lost by that.

    `made` makes a series of coefficients, `decide` raises Undecided for a coefficient that may be 0. Raises TooShort
    where all that is known goes, Unbounded where the quotient has no limit.
    """
    if s.prec <= by:
        raise TooShort(f"a series of {s.prec} coefficients, divided by a power of {by}")
    for k in range(by):
        if not s[k].is_zero():
            decide(s[k])
            raise Unbounded("a quotient without a finite limit")
    return made([s[k] for k in range(by, s.length())], s.prec - by)
