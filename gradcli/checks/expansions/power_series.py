"""Truncated power series with balls as coefficients.

A `Series` is a function along a direction, in powers of the step t. It wraps python-flint's `arb_series`, whose
division, roots and powers are unsound where a constant term vanishes exactly: here that is decided first. Where it
does, only both sides of the point tell (`Tie`), in expansions. Functions are compositions of python-flint's own; where
that would lose digits the constant term is taken from the function on balls.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series, ctx, fmpz

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Tie, Undecided, UndefinedAt

if TYPE_CHECKING:
    from collections.abc import Callable


class capacity:
    """Compute series to so many coefficients, then to as many as before."""

    __slots__ = ("before", "coefficients")

    def __init__(self, coefficients: int) -> None:
        self.coefficients = coefficients

    def __enter__(self) -> None:
        self.before = ctx.cap
        ctx.cap = self.coefficients

    def __exit__(self, *_: object) -> None:
        ctx.cap = self.before


def replaced(s: Any, constant: Any) -> Any:
    """A series with another constant term, a narrower ball of the same number."""
    coefficients = s.coeffs() or [constant]
    coefficients[0] = constant
    return s.__class__(coefficients, s.prec)


def step_of(s: Any) -> Any:
    """A series without its constant term."""
    return replaced(s, arb(0))


def is_left(s: Any) -> bool:
    """Whether a series starts left of 0, as far as its middle tells: it chooses between two true formulas."""
    return bool(s[0].mid() < 0)


NUMBERS = (int, fmpz, arb)
LIKE_FLINT = frozenset(("exp", "sin", "cos", "tan", "atan", "erf", "erfi", "erfc", "gamma", "rgamma", "lgamma"))


class Series:
    """A function of the step along a direction, near the point: a truncated power series of python-flint in `s`."""

    __slots__ = ("s",)

    def __init__(self, s: Any) -> None:
        self.s = s

    def __getattr__(self, name: str) -> Any:
        """A method that python-flint's own does well, digits included."""
        if name not in LIKE_FLINT:
            raise AttributeError(name)
        return lambda: Series(getattr(self.s, name)())

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def constant(self) -> Any:
        """The value at the point."""
        return self.s[0]

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
        return ball_numbers.sign(constant)

    def is_integer(self) -> bool:
        """Whether it is one whole number all along: nothing that moves is."""
        return False

    def is_zero(self) -> bool:
        """Whether it is 0 all along: nothing that moves is."""
        return False

    # --- ring operations: sound as they are -------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return Series(self.s + other.s)
        return Series(self.s + other) if isinstance(other, NUMBERS) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if self is other:
            return arb(0)
        if isinstance(other, Series):
            return Series(self.s - other.s)
        return Series(self.s - other) if isinstance(other, NUMBERS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return Series(other - self.s) if isinstance(other, NUMBERS) else NotImplemented

    def __neg__(self) -> Series:
        return Series(-self.s)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return Series(self.s * other.s)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return arb(0) if other == 0 else Series(self.s * other)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Any:
        if 0 <= exponent < 2:
            return self if exponent else arb(1)
        return Series(self.s**exponent) if exponent >= 0 else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return Series(self.s / other.divisor())
        if not isinstance(other, NUMBERS):
            return NotImplemented
        if other == 0:
            raise UndefinedAt("division by 0")
        return Series(self.s / other)

    def __rtruediv__(self, other: Any) -> Any:
        return Series(other / self.divisor()) if isinstance(other, NUMBERS) else NotImplemented

    def divisor(self) -> Any:
        """The series as something to divide by: its constant term is decided first."""
        if self.s[0].is_zero():
            raise UndefinedAt("division by 0")
        return self.s

    # --- roots and whole numbers ------------------------------------------------------------------------------

    def sqrt(self) -> Series:
        if self.s[0].is_zero():
            raise Tie
        return Series(self.s.sqrt())

    def floor(self) -> Any:
        """The whole number below, where it is one and the same around the point."""
        constant = self.s[0]
        whole = constant.floor()
        if whole.is_exact() and (constant - whole).is_zero():
            raise Tie
        return whole

    # --- exponentials and logarithms --------------------------------------------------------------------------

    def expm1(self) -> Any:
        return Series(replaced(self.s.exp() - 1, self.s[0].expm1()))

    def log(self) -> Any:
        if self.s[0].is_zero():
            raise UndefinedAt("the logarithm of 0")
        return Series(self.s.log())

    def log1p(self) -> Any:
        return Series(replaced((self.s + 1).log(), self.s[0].log1p()))

    # --- circular functions -----------------------------------------------------------------------------------

    def asin(self) -> Series:
        self._off_the_edges()
        return Series(self.s.asin())

    def acos(self) -> Series:
        self._off_the_edges()
        return Series(self.s.acos())

    def _off_the_edges(self) -> None:
        if abs(self.s[0]) == 1:
            raise Tie

    def sinc_pi(self) -> Any:
        if self.s[0].is_zero():
            return Series(sine_quotient(self.s * arb.pi()))
        if self.s[0].contains(0):
            raise Undecided("a number that may be 0")
        return Series(replaced(self.s.sin_pi() / (self.s * arb.pi()), self.s[0].sinc_pi()))

    # --- hyperbolic functions ---------------------------------------------------------------------------------

    def sinh(self) -> Any:
        grown = self.s.exp()
        return Series(replaced((grown - 1 / grown) / 2, self.s[0].sinh()))

    def cosh(self: Any) -> Any:
        half = (self / 2).sinh().s
        return Series(replaced(2 * half * half + 1, self.s[0].cosh()))

    def tanh(self) -> Any:
        s = -self.s if is_left(self.s) else self.s
        shrunk = (-2 * s).exp()
        value = (1 - shrunk) / (1 + shrunk)
        return Series(replaced(-value if is_left(self.s) else value, self.s[0].tanh()))

    def asinh(self) -> Any:
        s = -self.s if is_left(self.s) else self.s
        value = (s + (s * s + 1).sqrt()).log()
        return Series(replaced(-value if is_left(self.s) else value, self.s[0].asinh()))

    def acosh(self: Any) -> Any:
        found = (self + ((self - 1) * (self + 1)).sqrt()).log()
        return Series(replaced(found.s, self.s[0].acosh()))

    def atanh(self) -> Any:
        s = self.s
        if abs(s[0]) == 1:
            raise UndefinedAt("atanh of 1 or -1")
        return Series(replaced(((1 + s).log() - (1 - s).log()) / 2, s[0].atanh()))

    # --- the error and the gamma function ---------------------------------------------------------------------

    def erfinv(self) -> Any:
        value = self.s[0].erfinv()
        return Series(inverse(lambda y: y.erf(), value, self.s))

    def erfcinv(self) -> Any:
        value = self.s[0].erfcinv()
        return Series(inverse(lambda y: y.erfc(), value, self.s))

    def digamma(self) -> Any:
        constant = self.s[0]
        if constant > 0:
            return Series(composed(lambda x: x.lgamma().derivative(), self.s, 1))
        found = composed(lambda x: -x.rgamma().derivative() / x.rgamma(), self.s, 1)
        return Series(replaced(found, constant.digamma()))

    def bessel_j(self, n: int) -> Any:
        constant = self.s[0]
        return Series(from_derivatives(lambda k: bessel_derivative(constant.bessel_j, n, k, -1), self.s))

    def bessel_i(self, n: int) -> Any:
        constant = self.s[0]
        return Series(from_derivatives(lambda k: bessel_derivative(constant.bessel_i, n, k, 1), self.s))

    def gamma_lower(self, a: Any, regularized: int) -> Any:
        return Series(replaced(arb_series.gamma_lower(a, self.s, regularized), self.s[0].gamma_lower(a, regularized)))

    def gamma_upper(self, a: Any, regularized: int) -> Any:
        return Series(replaced(arb_series.gamma_upper(a, self.s, regularized), self.s[0].gamma_upper(a, regularized)))

    def beta_lower(self, a: Any, b: Any, regularized: int) -> Any:
        found = arb_series.beta_lower(a, b, self.s, regularized)
        return Series(replaced(found, self.s[0].beta_lower(a, b, regularized)))

    def polygamma(self, n: int) -> Any:
        """The n-th derivative of digamma, right of 0."""

        def derivative(x: Any) -> Any:
            found = x.lgamma()
            for _ in range(n + 1):
                found = found.derivative()
            return found

        return Series(composed(derivative, self.s, n + 1))


def sine_quotient(z: Any) -> Any:
    """sin(z)/z of a series of python-flint that vanishes at the point."""
    total = term = z.__class__([1], z.prec)
    for k in range(1, (z.prec + 1) // 2):
        term = term * z * z / -(2 * k * (2 * k + 1))
        total = total + term
    return total


def from_derivatives(orders: Callable[[int], Any], s: Any) -> Any:
    """f(s) by Taylor's formula, where `orders(k)` is the k-th derivative of f at the constant term of s."""
    coefficients = [orders(k) / arb.fac_ui(k) for k in range(s.prec)]
    return arb_series(coefficients, s.prec)(step_of(s))


def bessel_derivative(function: Callable[[int], Any], n: int, k: int, side: int) -> Any:
    """The k-th derivative of J_n or I_n from values of other orders: 2*f_n' = f_(n-1) + side*f_(n+1)."""
    total = arb(0)
    for j in range(k + 1):
        order = n - k + 2 * j
        value = function(abs(order))
        if order < 0 and order % 2 and side < 0:  # J_(-n) is (-1)**n J_n, I_(-n) is I_n
            value = -value
        total = total + comb(k, j) * side**j * value
    return total / arb(2) ** k


def composed(f: Callable[[Any], Any], s: Any, extra: int) -> Any:
    """f(s), from f's own series around the constant term; f loses `extra` coefficients."""
    with capacity(s.prec + extra):
        local = f(arb_series([s[0], 1], s.prec + extra))
    return local(step_of(s))


def inverse(forward: Callable[[Any], Any], value: Any, s: Any) -> Any:
    """The inverse function of `forward` on a series, given its value at the constant term."""
    if s.prec < 2:
        return arb_series([value], s.prec)
    with capacity(s.prec):
        around = forward(arb_series([value, 1], s.prec))
        back = step_of(around).reversion()
    return replaced(back(step_of(s)), value)
