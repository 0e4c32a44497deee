"""Functions of one complex number, for a series along a real step: compositions of python-flint's own, no rule of ours.

The constant term is taken from the function on balls where a composition would lose digits. Inverse functions are
logarithms and roots, so that their cuts are decided where those of these two are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import acb, acb_series, arb

from gradcli.checks.entries import UndefinedAt
from gradcli.checks.series.functions import capacity


class CurveFunctions:
    """Methods of a complex series with its coefficients in `s`."""

    __slots__ = ()

    s: Any

    if TYPE_CHECKING:

        def made(self, s: Any) -> Any: ...

    def sin(self) -> Any:
        return self.made(self.s.sin())

    def cos(self) -> Any:
        return self.made(self.s.cos())

    def tan(self) -> Any:
        return self.made(patched(self.s.tan(), self.s[0].tan()))

    def sinh(self) -> Any:
        return self.made(patched((self.s * acb(0, 1)).sin() * acb(0, -1), self.s[0].sinh()))

    def cosh(self) -> Any:
        return self.made(patched((self.s * acb(0, 1)).cos(), self.s[0].cosh()))

    def tanh(self) -> Any:
        return self.made(patched((self.s * acb(0, 1)).tan() * acb(0, -1), self.s[0].tanh()))

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

    def erf(self) -> Any:
        return self.made(self.s.erf())

    def erfi(self) -> Any:
        return self.made(self.s.erfi())

    def erfc(self) -> Any:
        return self.made(self.s.erfc())

    def gamma(self) -> Any:
        self._off_the_poles()
        return self.made(self.s.gamma())

    def rgamma(self) -> Any:
        return self.made(self.s.rgamma())

    def digamma(self) -> Any:
        """By the derivative of 1/gamma, whose series has no poles."""
        self._off_the_poles()
        s = self.s
        with capacity(s.prec + 1):
            around = acb_series([s[0], 1], s.prec + 1).rgamma()
        found = -around.derivative() / around
        return self.made(patched(found(patched(s, acb(0))) if s.prec > 1 else s, s[0].digamma()))

    def _off_the_poles(self) -> None:
        constant = self.s[0]
        if constant.imag.is_zero() and constant.real.is_integer() and constant.real <= 0:
            raise UndefinedAt("the gamma function has a pole at 0, -1, -2, ...")

    def sinc_pi(self: Any) -> Any:
        if self.vanishes():
            z = self.s * arb.pi()
            total = term = acb_series([1], z.prec)
            for k in range(1, (z.prec + 1) // 2):
                term = term * z * z / -(2 * k * (2 * k + 1))
                total = total + term
            return self.made(total)
        return self.made(patched(self.s.sin_pi() / (self.s * arb.pi()), self.s[0].sinc_pi()))


def patched(s: Any, constant: Any) -> Any:
    """A series with another enclosure of its constant term, where that is finite."""
    if not constant.is_finite():
        return s
    coefficients = s.coeffs() or [acb(0)]
    coefficients[0] = constant
    return acb_series(coefficients, s.prec)


def is_positive(x: Any) -> bool:
    """Whether every number in a ball is positive."""
    return bool(x.is_finite() and not x.contains(0) and x.mid() > 0)


__all__ = ["CurveFunctions", "is_positive", "patched"]
