"""Functions of one number, for an expansion beside a point: by series at its limit, or by what they tend to far out.

An expansion that grows beyond all bounds has a sine that is only known to be bounded, and an arc tangent near pi/2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series

from gradcli.checks import balls
from gradcli.checks.series.functions import capacity
from gradcli.checks.series.numbers import Series, Unbounded

Key = tuple[Fraction, Fraction, Fraction]


def key(step: int, logarithm: int = 0, loglog: int = 0) -> Key:
    """The key of a term: the exponent of the step, and those of the logarithms with the sign turned."""
    return Fraction(step), Fraction(-logarithm), Fraction(-loglog)


ONE = key(0)
STEP = key(1)
LOGARITHM = key(0, 1)
LOGLOG = key(0, 0, 1)
FLAT = key(10**6)  # of what is smaller than every power
POWERS = 10  # of what vanishes, in a composition


def faster_than_powers(grown: Key) -> bool:
    """Whether the exponential of a term grows faster than every power of 1/step (or vanishes so, with a minus)."""
    return grown < LOGARITHM


class GermFunctions:
    """Methods of a germ."""

    __slots__ = ()

    if TYPE_CHECKING:

        def made(self, terms: dict[Key, Any], rest: Key | None = None) -> Any: ...

    def local(self: Any, method: str, *args: Any) -> Any:
        """A function that is analytic at the limit, by its own series there."""
        grown, constant, gone = self.split()
        if grown.terms:
            raise Unbounded(f"{method} of what grows beyond all bounds")
        with capacity(POWERS):
            found = getattr(Series(arb_series([constant, 1], POWERS)), method)(*args)
            return gone.composed(found.s)

    def grows(self: Any) -> int:
        """1 or -1 where it grows beyond all bounds, else 0."""
        grown, _, _ = self.split()
        side: int = grown.sign() if grown.terms else 0
        return side

    def sin(self: Any) -> Any:
        return self.made({}, ONE) if self.grows() else self.local("sin")

    def cos(self: Any) -> Any:
        return self.made({}, ONE) if self.grows() else self.local("cos")

    def tan(self: Any) -> Any:
        return self.sin() / self.cos()

    def atan(self: Any) -> Any:
        side = self.grows()
        return side * (arb.pi() / 2) - self.inverse().local("atan") if side else self.local("atan")

    def asin(self: Any) -> Any:
        return arb.pi() / 2 - self.acos()

    def acos(self: Any) -> Any:
        return 2 * ((1 - self) / (1 + self)).sqrt().atan()

    def sinh(self: Any) -> Any:
        return (self.exp() - (-self).exp()) / 2 if self.grows() else self.local("sinh")

    def cosh(self: Any) -> Any:
        return (self.exp() + (-self).exp()) / 2 if self.grows() else self.local("cosh")

    def tanh(self: Any) -> Any:
        side = self.grows()
        if not side:
            return self.local("tanh")
        shrunk = (self * (-2 * side)).exp()
        return side * ((1 - shrunk) / (1 + shrunk))

    def asinh(self: Any) -> Any:
        side = self.grows()
        return side * (side * self + (self * self + 1).sqrt()).log() if side else self.local("asinh")

    def acosh(self: Any) -> Any:
        return (self + (self * self - 1).sqrt()).log()

    def atanh(self: Any) -> Any:
        return ((1 + self).log() - (1 - self).log()) / 2

    def erf(self: Any) -> Any:
        side = self.grows()
        return side - side * self.gaussian_tail() if side else self.local("erf")

    def erfc(self: Any) -> Any:
        side = self.grows()
        return (1 - side) + side * self.gaussian_tail() if side else self.local("erfc")

    def gaussian_tail(self: Any) -> Any:
        """What is left of the error function far out: less than exp(-self**2)."""
        return self.made({}, (-(self * self)).exp().first())

    def erfinv(self: Any) -> Any:
        return self.local("erfinv")

    def erfcinv(self: Any) -> Any:
        return self.local("erfcinv")

    def rgamma(self: Any) -> Any:
        return self.local("rgamma")

    def gamma(self: Any) -> Any:
        return self.rgamma().inverse()

    def lgamma(self: Any) -> Any:
        return self.gamma().log()

    def digamma(self: Any) -> Any:
        """By the derivative of 1/gamma."""
        grown, constant, gone = self.split()
        if grown.terms:
            raise Unbounded("digamma of what grows beyond all bounds")
        with capacity(POWERS + 1):
            around = arb_series([constant, 1], POWERS + 1).rgamma()
        return -gone.composed(around.derivative()) / gone.composed(around)

    def polygamma(self: Any, n: int) -> Any:
        return self.local("polygamma", n)

    def bessel_j(self: Any, n: int) -> Any:
        return self.local("bessel_j", n)

    def bessel_i(self: Any, n: int) -> Any:
        return self.local("bessel_i", n)

    def gamma_lower(self: Any, a: Any, regularized: int) -> Any:
        return self.local("gamma_lower", a, regularized)

    def gamma_upper(self: Any, a: Any, regularized: int) -> Any:
        return self.local("gamma_upper", a, regularized)

    def beta_lower(self: Any, a: Any, b: Any, regularized: int) -> Any:
        return self.local("beta_lower", a, b, regularized)

    def sinc_pi(self: Any) -> Any:
        return (self * arb.pi()).sin() / (self * arb.pi()) if self.grows() else self.local("sinc_pi")

    def floor(self: Any) -> Any:
        _, constant, gone = self.split()
        if self.grows():
            raise Unbounded("the whole part of what grows beyond all bounds")
        whole = constant.floor()
        if not whole.is_exact():
            balls.sign(whole - whole.mid())
        if (constant - whole).is_zero():
            return whole if gone.sign() >= 0 else whole - 1
        return whole
