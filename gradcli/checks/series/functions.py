"""The functions that `ball` rules call on a ball, for a series: compositions of python-flint's own, no rule of ours.

Where a composition would lose digits the constant term is taken from the function on balls, which is exact to the last
bit. An inverse is the reversion of its forward function, digamma the derivative of the series of lgamma.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series, ctx

from gradcli.checks.entries import Undecided, UndefinedAt

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
    """A series of python-flint with another constant term: a narrower ball of the same number."""
    coefficients = s.coeffs() or [arb(0)]
    coefficients[0] = constant
    return arb_series(coefficients, s.prec)


def step_of(s: Any) -> Any:
    """A series without its constant term."""
    return replaced(s, arb(0))


def is_left(s: Any) -> bool:
    """Whether a series starts left of 0, as far as its middle tells: it chooses between two true formulas."""
    return bool(s[0].mid() < 0)


class Functions:
    """Methods of a series with its coefficients in `s`."""

    __slots__ = ()

    s: Any

    if TYPE_CHECKING:

        def __init__(self, s: Any) -> None: ...

    def made(self, s: Any) -> Any:
        """A series of the same kind."""
        return self.__class__(s)

    # --- exponentials and logarithms --------------------------------------------------------------------------

    def exp(self) -> Any:
        return self.made(self.s.exp())

    def expm1(self) -> Any:
        return self.made(replaced(self.s.exp() - 1, self.s[0].expm1()))

    def log(self) -> Any:
        if self.s[0].is_zero():
            raise UndefinedAt("the logarithm of 0")
        return self.made(self.s.log())

    def log1p(self) -> Any:
        return self.made(replaced((self.s + 1).log(), self.s[0].log1p()))

    # --- circular functions -----------------------------------------------------------------------------------

    def sin(self) -> Any:
        return self.made(self.s.sin())

    def cos(self) -> Any:
        return self.made(self.s.cos())

    def tan(self) -> Any:
        return self.made(self.s.tan())

    def atan(self) -> Any:
        return self.made(self.s.atan())

    def asin(self: Any) -> Any:
        edge = self._edge()
        return edge * (arb.pi() / 2 - (edge * self)._acos_at_one()) if edge else self.made(self.s.asin())

    def acos(self: Any) -> Any:
        edge = self._edge()
        if edge < 0:
            return arb.pi() - (-self)._acos_at_one()
        return self._acos_at_one() if edge else self.made(self.s.acos())

    def _edge(self) -> int:
        """1 or -1 where the value is exactly that, else 0."""
        constant = self.s[0]
        return 1 if constant == 1 else -1 if constant == -1 else 0

    def _acos_at_one(self: Any) -> Any:
        return 2 * ((1 - self) / (1 + self)).sqrt().atan()

    def sinc_pi(self) -> Any:
        constant = self.s[0]
        if constant.is_zero():
            z = self.s * arb.pi()
            total = term = arb_series([1], z.prec)
            for k in range(1, (z.prec + 1) // 2):
                term = term * z * z / -(2 * k * (2 * k + 1))
                total = total + term
            return self.made(total)
        if constant.contains(0):
            raise Undecided("sinc beside 0 needs more digits")
        return self.made(replaced(self.s.sin_pi() / (self.s * arb.pi()), constant.sinc_pi()))

    # --- hyperbolic functions ---------------------------------------------------------------------------------

    def sinh(self) -> Any:
        grown = self.s.exp()
        return self.made(replaced((grown - 1 / grown) / 2, self.s[0].sinh()))

    def cosh(self: Any) -> Any:
        half = (self / 2).sinh().s
        return self.made(replaced(2 * half * half + 1, self.s[0].cosh()))

    def tanh(self) -> Any:
        s = -self.s if is_left(self.s) else self.s
        shrunk = (-2 * s).exp()
        value = (1 - shrunk) / (1 + shrunk)
        return self.made(replaced(-value if is_left(self.s) else value, self.s[0].tanh()))

    def asinh(self) -> Any:
        s = -self.s if is_left(self.s) else self.s
        value = (s + (s * s + 1).sqrt()).log()
        return self.made(replaced(-value if is_left(self.s) else value, self.s[0].asinh()))

    def acosh(self: Any) -> Any:
        found = (self + ((self - 1) * (self + 1)).sqrt()).log()
        return self.made(replaced(found.s, self.s[0].acosh()))

    def atanh(self) -> Any:
        s = self.s
        if self._edge():
            raise UndefinedAt("atanh of 1 or -1")
        return self.made(replaced(((1 + s).log() - (1 - s).log()) / 2, s[0].atanh()))

    # --- the error and the gamma function ---------------------------------------------------------------------

    def erf(self) -> Any:
        return self.made(self.s.erf())

    def erfi(self) -> Any:
        return self.made(self.s.erfi())

    def erfc(self) -> Any:
        return self.made(self.s.erfc())

    def erfinv(self) -> Any:
        value = self.s[0].erfinv()
        return self.made(inverse(lambda y: y.erf(), value, self.s))

    def erfcinv(self) -> Any:
        value = self.s[0].erfcinv()
        return self.made(inverse(lambda y: y.erfc(), value, self.s))

    def gamma(self) -> Any:
        return self.made(self.s.gamma())

    def rgamma(self) -> Any:
        return self.made(self.s.rgamma())

    def lgamma(self) -> Any:
        return self.made(self.s.lgamma())

    def digamma(self) -> Any:
        constant = self.s[0]
        if constant > 0:
            return self.made(composed(lambda x: x.lgamma().derivative(), self.s, 1))
        found = composed(lambda x: -x.rgamma().derivative() / x.rgamma(), self.s, 1)
        return self.made(replaced(found, constant.digamma()))

    def bessel_j(self, n: int) -> Any:
        constant = self.s[0]
        return self.made(from_derivatives(lambda k: bessel_derivative(constant.bessel_j, n, k, -1), self.s))

    def bessel_i(self, n: int) -> Any:
        constant = self.s[0]
        return self.made(from_derivatives(lambda k: bessel_derivative(constant.bessel_i, n, k, 1), self.s))

    def gamma_lower(self, a: Any, regularized: int) -> Any:
        return self.made(
            replaced(arb_series.gamma_lower(a, self.s, regularized), self.s[0].gamma_lower(a, regularized))
        )

    def gamma_upper(self, a: Any, regularized: int) -> Any:
        return self.made(
            replaced(arb_series.gamma_upper(a, self.s, regularized), self.s[0].gamma_upper(a, regularized))
        )

    def beta_lower(self, a: Any, b: Any, regularized: int) -> Any:
        found = arb_series.beta_lower(a, b, self.s, regularized)
        return self.made(replaced(found, self.s[0].beta_lower(a, b, regularized)))

    def polygamma(self, n: int) -> Any:
        """The n-th derivative of digamma, right of 0."""

        def derivative(x: Any) -> Any:
            found = x.lgamma()
            for _ in range(n + 1):
                found = found.derivative()
            return found

        return self.made(composed(derivative, self.s, n + 1))


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


__all__ = ["Functions", "capacity", "composed", "inverse", "replaced", "step_of"]
