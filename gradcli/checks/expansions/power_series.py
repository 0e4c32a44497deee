"""Truncated power series with balls as coefficients, and what they have in common with other numbers that move.

A `Series` is a function along a direction, in powers of the step t. It wraps python-flint's `arb_series`, whose
division, roots and powers are unsound where a constant term vanishes exactly: here that is decided first. Where it
does, only both sides of the point tell (`Tie`), in expansions. Functions are compositions of python-flint's own; where
that would lose digits the constant term is taken from the function on balls.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from math import comb, perm
from typing import TYPE_CHECKING, Any

from flint import arb, arb_mat, arb_series, ctx, fmpz

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Tie, Undecided, Undefined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Moving:
    """A number that moves with a step; its class has +, *, -x and `inverse`. Nothing that moves is one number."""

    __slots__ = ()

    def __radd__(self: Any, other: Any) -> Any:
        return self + other

    def __sub__(self: Any, other: Any) -> Any:
        return self * 0 if other is self else self + -other

    def __rsub__(self: Any, other: Any) -> Any:
        return -self + other

    def __rmul__(self: Any, other: Any) -> Any:
        return self * other

    def __rtruediv__(self: Any, other: Any) -> Any:
        return self.inverse() * other

    def __pow__(self: Any, exponent: int) -> Any:
        power: Any = arb(1)
        for _ in range(exponent):
            power = self * power
        return power if exponent >= 0 else NotImplemented

    def is_integer(self) -> bool:
        """Whether it is one whole number all along."""
        return False

    def is_zero(self) -> bool:
        """Whether it is 0 all along."""
        return False

    def is_finite(self) -> bool:
        return True


FORMULAS: dict[str, Callable[[Any], Any]] = {  # `side` is the sign of a number, or either one near 0
    "tan": lambda x: x.sin() / x.cos(),
    "expm1": lambda x: x.exp() - 1,
    "log1p": lambda x: (x + 1).log(),
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "cosh": lambda x: 2 * (x / 2).sinh() ** 2 + 1,
    "tanh": lambda x: x.side() * (2 / (1 + (-2 * x.side() * x).exp()) - 1),
    "asinh": lambda x: x.side() * (x.side() * x + (x * x + 1).sqrt()).log(),
    "acosh": lambda x: (x + ((x - 1) * (x + 1)).sqrt()).log(),
    "atanh": lambda x: ((1 + x).log() - (1 - x).log()) / 2,
}


# --- truncated power series ---------------------------------------------------------------------------------------


@contextmanager
def capacity(coefficients: int) -> Iterator[None]:
    """Compute series to so many coefficients, then to as many as before."""
    before, ctx.cap = ctx.cap, coefficients
    try:
        yield
    finally:
        ctx.cap = before


def replaced(s: Any, constant: Any) -> Any:
    """A series with another constant term, a narrower ball of the same number."""
    coefficients = s.coeffs() or [constant]
    coefficients[0] = constant
    return s.__class__(coefficients, s.prec)


def step_of(s: Any) -> Any:
    """A series without its constant term."""
    return replaced(s, arb(0))


NUMBERS = (int, fmpz, arb)
# functions of python-flint's series that are sound as they are, digits included
FLINT = {
    "exp", "sin", "cos", "tan", "atan", "erf", "erfi", "erfc", "gamma", "rgamma", "lgamma", "sqrt", "asin", "acos",
    "ei", "fresnel_s", "fresnel_c", "lambertw",
}  # fmt: skip
EDGES = {"sqrt": 0, "asin": 1, "acos": 1}  # sizes of constant terms for which only the sides tell
BESSEL = {"bessel_j": -1, "bessel_i": 1}  # of whole orders; 2*f_n' = f_(n-1) + side*f_(n+1)
INCOMPLETE = ("gamma_lower", "gamma_upper", "beta_lower")  # the last but one argument is the series


class Series(Moving):
    """A function of the step along a direction, near the point: a truncated power series of python-flint in `s`."""

    __slots__ = ("s",)

    def __init__(self, s: Any) -> None:
        self.s = s

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

    def side(self) -> int:
        """The sign of the midpoint of the value, which chooses between two formulas that are both right."""
        return -1 if self.s[0].mid() < 0 else 1

    # --- ring operations: sound as they are -------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return Series(self.s + other.s)
        return Series(self.s + other) if isinstance(other, NUMBERS) else NotImplemented

    def __neg__(self) -> Series:
        return Series(-self.s)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return Series(self.s * other.s)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return arb(0) if other == 0 else Series(self.s * other)

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
            raise Undefined("division by 0")
        return Series(self.s / other)

    def __rtruediv__(self, other: Any) -> Any:
        return Series(other / self.divisor()) if isinstance(other, NUMBERS) else NotImplemented

    def divisor(self) -> Any:
        """The series of python-flint to divide by; raises Undefined where its constant term is 0."""
        if self.s[0].is_zero():
            raise Undefined("division by 0")
        return self.s

    # --- functions --------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A function by python-flint's own, or by a formula that loses no digits but those of the value."""
        if name in FLINT:
            return partial(self._own, name)
        if name in FORMULAS:
            return lambda: Series(replaced(FORMULAS[name](self).s, getattr(self.s[0], name)()))
        if name in INCOMPLETE:
            return partial(self._incomplete, name)
        if name in ("erfinv", "erfcinv"):
            return lambda: self.by_inverse(name.removesuffix("inv"), getattr(self.s[0], name)())
        if name in BESSEL:
            f = getattr(self.s[0], name)
            return lambda n: self.by_derivatives(lambda k: bessel_derivative(f, n, k, BESSEL[name]))
        raise AttributeError(name)

    def _own(self, name: str, *args: int) -> Series:
        if name in EDGES and abs(self.s[0]) == EDGES[name]:
            raise Tie
        return Series(getattr(self.s, name)(*args))

    def _incomplete(self, name: str, *args: Any) -> Series:
        """An incomplete function; Tie at 0, or 1, where its domain ends."""
        if self.s[0] in range(len(args) - 1):
            raise Tie
        value = getattr(self.s[0], name)(*args)
        return Series(replaced(getattr(arb_series, name)(*args[:-1], self.s, args[-1]), value))

    def floor(self) -> Any:
        """The whole number below, where it is one and the same around the point."""
        constant = self.s[0]
        whole = constant.floor()
        if whole.is_exact() and (constant - whole).is_zero():
            raise Tie
        return whole

    def log(self) -> Any:
        if self.s[0].is_zero():
            raise Undefined("the logarithm of 0")
        return Series(self.s.log())

    def sinc_pi(self) -> Any:
        if self.s[0].is_zero():
            with capacity(self.s.prec + 1):
                quotient = arb_series([0, 1], self.s.prec + 1).sin_pi().coeffs()[1:]
            return Series((arb_series(quotient, self.s.prec) / arb.pi())(self.s))
        if self.s[0].contains(0):
            raise Undecided("a number that may be 0")
        return Series(replaced(self.s.sin_pi() / (self.s * arb.pi()), self.s[0].sinc_pi()))

    def by_inverse(self, forward: str, value: Any) -> Series:
        """The inverse of a function of python-flint's series, given its value at the constant term."""
        terms = self.s.prec
        if terms < 2:
            return Series(arb_series([value], terms))
        with capacity(terms):
            back = step_of(getattr(arb_series([value, 1], terms), forward)()).reversion()
        return Series(replaced(back(step_of(self.s)), value))

    def digamma(self) -> Any:
        constant, terms = self.s[0], self.s.prec
        with capacity(terms + 1):
            around = arb_series([constant, 1], terms + 1)
            if constant > 0:
                local = around.lgamma().derivative()
            else:
                local = -around.rgamma().derivative() / around.rgamma()
        return Series(replaced(local(step_of(self.s)), constant.digamma()))

    def hurwitz(self, order: int) -> Any:
        """Hurwitz' zeta function of a whole order above 1, right of 0."""
        value = self.s[0]
        return self.by_derivatives(lambda k: (-1) ** k * perm(order + k - 1, k) * arb(order + k).zeta(value))

    def by_derivatives(self, derivative: Callable[[int], Any]) -> Series:
        """A function by Taylor's formula, from its k-th derivative at the constant term."""
        coefficients = [derivative(k) / arb.fac_ui(k) for k in range(self.s.prec)]
        return Series(arb_series(coefficients, self.s.prec)(step_of(self.s)))


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


def coefficients(a: Sequence[Sequence[Any]]) -> list[Any]:
    """The coefficients of a matrix of series and balls, each a matrix of python-flint: one where nothing moves."""
    terms = min((x.s.prec for row in a for x in row if isinstance(x, Series)), default=1)
    still = [[x if type(x) is arb else x.constant for x in row] for row in a]
    moved = ([[0 if type(x) is arb else x.s[k] for x in row] for row in a] for k in range(1, terms))
    return [arb_mat(rows) for rows in (still, *moved)]
