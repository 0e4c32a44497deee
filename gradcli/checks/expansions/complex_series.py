"""Complex functions of a real step, as truncated power series of complex balls; no rule is read.

The step is real, so a conjugate is the series with conjugate coefficients, and what is not holomorphic (|z|) has a
series too. Logarithms, roots and powers are principal values. Where one of them meets its cut, the negative real axis,
only the two sides of the point tell; a `OneSidedComplexSeries` is a function on one side, in powers of tau > 0.
"""

from __future__ import annotations

from typing import Any

from flint import acb, acb_series, arb, arb_series, ctx, fmpq, fmpz

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Fractional, Tie, TooShort, Unbounded, Undecided, UndefinedAt
from gradcli.checks.expansions.power_series import OneSidedSeries, Series, Taylor, capacity, replaced, shifted


class ComplexFunctions(Taylor):
    """Methods of a complex series with its coefficients in `s`."""

    __slots__ = ()

    def tan(self) -> Any:
        return self.made(replaced(self.s.tan(), self.s[0].tan()))

    def sinh(self) -> Any:
        return self.made(replaced((self.s * acb(0, 1)).sin() * acb(0, -1), self.s[0].sinh()))

    def cosh(self) -> Any:
        return self.made(replaced((self.s * acb(0, 1)).cos(), self.s[0].cosh()))

    def tanh(self) -> Any:
        return self.made(replaced((self.s * acb(0, 1)).tan() * acb(0, -1), self.s[0].tanh()))

    def asinh(self: Any) -> Any:
        return (self + (self * self + 1).sqrt()).log()

    def asin(self: Any) -> Any:
        found = (self * acb(0, 1) + (1 - self * self).sqrt()).log() * acb(0, -1)
        return found.conjugate() if self.beyond_one() else found

    def acos(self: Any) -> Any:
        return arb.pi() / 2 - self.asin()

    def acosh(self: Any) -> Any:
        return (self + (self + 1).sqrt() * (self - 1).sqrt()).log()

    def atanh(self: Any) -> Any:
        found = ((1 + self).log() - (1 - self).log()) / 2
        return found.conjugate() if self.beyond_one() else found

    def beyond_one(self: Any) -> bool:
        """Whether it is real and above 1: a cut, where the value is the limit from above as in C, and 1 - z below 0."""
        return bool(self.pure and is_positive(self.s[0].real - 1))

    def atan(self: Any) -> Any:
        return (self * acb(0, 1)).atanh() * acb(0, -1)

    def erfi(self) -> Any:
        return self.made(self.s.erfi())

    def gamma(self) -> Any:
        self._off_the_poles()
        return self.made(self.s.gamma())

    def digamma(self) -> Any:
        """By the derivative of 1/gamma, whose series has no poles."""
        self._off_the_poles()
        s = self.s
        with capacity(s.prec + 1):
            around = acb_series([s[0], 1], s.prec + 1).rgamma()
        found = -around.derivative() / around
        return self.made(replaced(found(replaced(s, acb(0))) if s.prec > 1 else s, s[0].digamma()))

    def _off_the_poles(self) -> None:
        constant = self.s[0]
        if constant.imag.is_zero() and constant.real.is_integer() and constant.real <= 0:
            raise UndefinedAt("the gamma function has a pole at 0, -1, -2, ...")


def is_positive(x: Any) -> bool:
    """Whether every number in a ball is positive."""
    return bool(x.is_finite() and not x.contains(0) and x.mid() > 0)


NUMBERS = (int, fmpz, fmpq, arb, acb)


class ComplexSeries(ComplexFunctions):
    """A complex function of the step near the point.

    `still` says that it is one number all along, `pure` that it is real all along; neither can be read off a few
    coefficients.
    """

    __slots__ = ("pure", "still")

    numbers = NUMBERS

    def __init__(self, s: Any, pure: bool = False, still: bool = False) -> None:
        self.s = s
        self.pure = pure
        self.still = still

    @classmethod
    def constantly(cls, value: Any) -> ComplexSeries:
        """A number that does not move, with as many coefficients as are set."""
        value = acb(value)
        return cls(acb_series([value], ctx.cap), value.imag.is_zero(), True)

    def made(self, s: Any) -> Any:
        """A function of this one alone that is real where this one is."""
        return self.__class__(s, self.pure, self.still)

    def mixed(self, s: Any, other: Any) -> Any:
        """A rational function of this one and another one."""
        if isinstance(other, ComplexSeries):
            return self.__class__(s, self.pure and other.pure, self.still and other.still)
        return self.__class__(s, self.pure and (type(other) is not acb or other.imag.is_zero()), self.still)

    # --- what is known ----------------------------------------------------------------------------------------

    def is_finite(self) -> bool:
        s = self.s
        return all(s[k].is_finite() for k in range(s.length()))

    def is_zero(self) -> bool:
        """Whether it is 0 all along, for certain."""
        return bool(self.still and self.s[0].is_zero())

    def is_exact(self) -> bool:
        """Whether the value at the point is one number."""
        return bool(self.s[0].is_exact())

    @property
    def fixed(self) -> bool:
        """Whether only its value counts: it does not move, or nothing else is kept."""
        return self.still or self.s.prec < 2

    def is_integer(self) -> bool:
        """Whether it is one whole number all along."""
        constant = self.s[0]
        return bool(self.still and constant.imag.is_zero() and constant.real.is_integer())

    def unique_fmpz(self) -> Any:
        return self.s[0].real.unique_fmpz()

    @property
    def real(self) -> Any:
        """The real part, as a real series."""
        return self._real_series(self._part(True))

    def _part(self, real: bool) -> Any:
        s = self.s
        return arb_series([s[k].real if real else s[k].imag for k in range(s.length())], s.prec)

    def conjugate(self) -> Any:
        s = self.s
        return self.made(acb_series([s[k].conjugate() for k in range(s.length())], s.prec))

    def held(self) -> ComplexSeries:
        """The value at the point, which does not move."""
        return self.__class__(acb_series([self.s[0]], self.s.prec), self.s[0].imag.is_zero(), True)

    def nothing(self) -> Any:
        return self.__class__(acb_series([0], self.s.prec), True, True)

    def divide(self, above: Any) -> Any:
        if self.vanishes():
            raise UndefinedAt("division by 0")
        top = above.s if isinstance(above, ComplexSeries) else acb_series([above], self.s.prec)
        return self.mixed(top / self.s, above)

    # --- exponentials, logarithms, powers ---------------------------------------------------------------------

    def log(self) -> Any:
        if self.vanishes():
            raise UndefinedAt("the logarithm of 0")
        if self.runs_below():
            return self.principal(self.conjugate().s.log()).conjugate()
        return self.principal(self.s.log())

    def log1p(self) -> Any:
        found = (self + 1).log()
        return found.made(replaced(found.s, self.s[0].log1p())) if is_positive((self.s[0] + 1).real) else found

    def sqrt(self) -> Any:
        if self.vanishes():
            return self if self.fixed else self.vanishing_root()
        if self.runs_below():
            return self.principal(self.conjugate().s.sqrt()).conjugate()
        return self.principal(self.s.sqrt())

    def principal(self, s: Any) -> Any:
        """A function of this one that is real right of 0."""
        return self.__class__(s, self.pure and is_positive(self.s[0].real), self.still)

    def vanishing_root(self) -> Any:
        """The square root of what is 0 at the point."""
        raise Tie

    def power(self, exponent: ComplexSeries) -> Any:
        """The principal value of a power."""
        if exponent.is_integer() and abs(n := int(exponent.unique_fmpz())) <= 64:
            return self**n if n >= 0 else 1 / self**-n
        if self.vanishes():
            if not self.fixed or not exponent.fixed:
                raise Tie
            if not is_positive(exponent.s[0].real):
                raise UndefinedAt("a negative power of 0")
            return self
        return (exponent * self.log()).exp()

    def runs_below(self) -> bool:
        """Whether it runs below the cut, the negative real axis, from a point on it; raises Tie where both happen."""
        constant = self.s[0]
        if not constant.imag.contains(0) or is_positive(constant.real):
            return False
        if not constant.imag.is_zero() or constant.real.contains(0):
            raise Undecided("on which side of a branch cut a complex number lies")
        return False if self.pure or self.fixed else self.leaves_below()

    def leaves_below(self) -> bool:
        """Whether it lies below the real axis right beside the point."""
        raise Tie

    # --- the size ---------------------------------------------------------------------------------------------

    def size(self) -> Any:
        """|z|."""
        if self.fixed:
            return self.__class__(acb_series([acb(abs(self.s[0]))], self.s.prec), True, self.still)
        up, across = self._part(True), self._part(False)
        found = self._real_series(up * up + across * across).sqrt().s
        return self.__class__(acb_series([acb(found[k]) for k in range(found.length())], found.prec), True, self.still)

    def direction(self) -> Any:
        """z/|z|, and 0 where z is exactly 0."""
        if self.fixed and self.vanishes():
            return self
        return self / self.size()

    def sign(self) -> int:
        """The sign of what is real."""
        found = self._real_series(self._part(True))
        if self.fixed:
            return ball_numbers.sign(found.constant)
        side: int = found.sign()
        return side

    def _real_series(self, s: Any) -> Any:
        return Series(s)


class OneSidedComplexSeries(ComplexSeries):
    """A complex function on one side of the point, in powers of tau > 0."""

    __slots__ = ()

    def valuation(self) -> int:
        """The first power whose coefficient is not exactly 0."""
        s = self.s
        for k in range(s.length()):
            if not s[k].is_zero():
                if s[k].contains(0):
                    raise Undecided("a coefficient that may be 0")
                return k
        raise TooShort("a number that vanishes beside the point, as far as the series goes")

    def shifted(self, by: int) -> Any:
        """The series divided by tau**by (python-flint's series)."""
        return shifted(self.s, by, acb_series, _not_zero)

    def divide(self, above: Any) -> Any:
        if self.fixed or not self.vanishes():
            return super().divide(above)
        if not isinstance(above, OneSidedComplexSeries):
            raise Unbounded("a quotient without a finite limit")
        by = self.valuation()
        return self.mixed(above.shifted(by) / self.shifted(by), above)

    def vanishing_root(self) -> Any:
        by = self.valuation()
        if by % 2:
            raise Fractional(2)
        inner = OneSidedComplexSeries(self.shifted(by), self.pure).sqrt()
        s = inner.s
        found = acb_series([0] * (by // 2) + [s[k] for k in range(s.length())], s.prec + by // 2)
        return OneSidedComplexSeries(found, inner.pure)

    def leaves_below(self) -> bool:
        s = self.s
        for k in range(1, s.length()):
            if not s[k].imag.is_zero():
                return ball_numbers.sign(s[k].imag) < 0
        raise TooShort("a number that runs along a branch cut, as far as the series goes")

    def _real_series(self, s: Any) -> Any:
        return OneSidedSeries(s)


def _not_zero(x: Any) -> None:
    if x.contains(0):
        raise Undecided("a coefficient that may be 0")
