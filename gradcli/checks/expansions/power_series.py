"""Truncated power series with balls as coefficients; what an exact zero hides is never read.

A `Series` is a function along a direction, in powers of the step t. It wraps python-flint's `arb_series`, whose
division, roots and powers are unsound where a constant term vanishes exactly: here that is decided first. A
`OneSidedSeries` lives on one side of a point, t = tau**m with tau > 0: there a vanishing constant term is shifted away,
and the sign of a series is the sign of its first coefficient that is not zero. The remainder of a series with n known
coefficients is smaller than every multiple of t**(n - 1), and no more is claimed. Functions are compositions of
python-flint's own; where that would lose digits the constant term is taken from the function on balls.
"""

from __future__ import annotations

from math import comb, gcd
from typing import TYPE_CHECKING, Any, ClassVar

from flint import acb_series, arb, arb_series, ctx, fmpz

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Fractional, Tie, TooShort, Unbounded, Undecided, UndefinedAt

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
    """A series with another constant term, a narrower ball of the same number; of a complex one, if it is finite."""
    if isinstance(s, acb_series) and not constant.is_finite():
        return s
    coefficients = s.coeffs() or [constant]
    coefficients[0] = constant
    return s.__class__(coefficients, s.prec)


def step_of(s: Any) -> Any:
    """A series without its constant term."""
    return replaced(s, arb(0))


def is_left(s: Any) -> bool:
    """Whether a series starts left of 0, as far as its middle tells: it chooses between two true formulas."""
    return bool(s[0].mid() < 0)


class Taylor:
    """A truncated power series of python-flint in `s`: its ring operations, and functions of it.

    The ring is that of real balls in a `Series`, of complex ones in a `ComplexSeries`; `numbers` are the types of
    what does not move.
    """

    __slots__ = ("s",)

    numbers: ClassVar[tuple[type, ...]]
    s: Any

    if TYPE_CHECKING:

        def __init__(self, s: Any) -> None: ...

    def made(self, s: Any) -> Any:
        """A function of this one alone."""
        return self.__class__(s)

    def mixed(self, s: Any, other: Any) -> Any:
        """A rational function of this one and another one, or a number."""
        return self.__class__(s)

    def nothing(self) -> Any:
        """0, not only here: all along the direction."""
        raise NotImplementedError

    def divide(self, above: Any) -> Any:
        """above / self; the constant term of what it is divided by is decided first."""
        raise NotImplementedError

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def constant(self) -> Any:
        """The value at the point."""
        return self.s[0]

    def vanishes(self) -> bool:
        """Whether the value at the point is exactly 0; raises Undecided where the digits do not decide."""
        constant = self.s[0]
        if constant.is_zero():
            return True
        if constant.contains(0):
            raise Undecided("whether a number is 0")
        return False

    # --- ring operations: sound as they are -------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Taylor):
            return self.mixed(self.s + other.s, other)
        return self.mixed(self.s + other, other) if isinstance(other, self.numbers) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if self is other:
            return self.nothing()
        if isinstance(other, Taylor):
            return self.mixed(self.s - other.s, other)
        return self.mixed(self.s - other, other) if isinstance(other, self.numbers) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return self.mixed(other - self.s, other) if isinstance(other, self.numbers) else NotImplemented

    def __neg__(self) -> Any:
        return self.made(-self.s)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Taylor):
            return self.mixed(self.s * other.s, other)
        if not isinstance(other, self.numbers):
            return NotImplemented
        return self.nothing() if other == 0 else self.mixed(self.s * other, other)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Any:
        return self.made(self.s**exponent) if exponent >= 0 else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Taylor):
            return other.divide(self)
        if not isinstance(other, self.numbers):
            return NotImplemented
        if other == 0:
            raise UndefinedAt("division by 0")
        return self.mixed(self.s / other, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.divide(other) if isinstance(other, self.numbers) else NotImplemented

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
        if self.vanishes():
            z = self.s * arb.pi()
            total = term = z.__class__([1], z.prec)
            for k in range(1, (z.prec + 1) // 2):
                term = term * z * z / -(2 * k * (2 * k + 1))
                total = total + term
            return self.made(total)
        return self.made(replaced(self.s.sin_pi() / (self.s * arb.pi()), self.s[0].sinc_pi()))

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


NUMBERS = (int, fmpz, arb)


class Series(Taylor):
    """A function of the step along a direction, near the point."""

    __slots__ = ()

    numbers = NUMBERS

    def __init__(self, s: Any) -> None:
        self.s = s

    # --- what is known ----------------------------------------------------------------------------------------

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
        return ball_numbers.sign(constant)

    def is_integer(self) -> bool:
        """Whether it is one whole number all along: nothing that moves is."""
        return False

    def is_zero(self) -> bool:
        """Whether it is 0 all along: nothing that moves is."""
        return False

    def nothing(self) -> Any:
        return arb(0)

    def __pow__(self, exponent: int) -> Any:
        if 0 <= exponent < 2:
            return self if exponent else arb(1)
        return super().__pow__(exponent)

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


class OneSidedSeries(Series):
    """A function on one side of the point, in powers of tau > 0."""

    __slots__ = ()

    def sign(self) -> int:
        """The sign right beside the point; raises TooShort where every known coefficient is 0."""
        return ball_numbers.sign(self.s[self.valuation()])

    def valuation(self) -> int:
        """The first power whose coefficient is not exactly 0."""
        found: int = self.s.valuation()
        if found < 0:
            raise TooShort("a number that vanishes beside the point, as far as the series goes")
        return found

    def shifted(self, by: int) -> Any:
        """The series divided by tau**by (python-flint's series)."""
        return shifted(self.s, by, arb_series, ball_numbers.sign)

    def raised(self, s: Any, by: int) -> OneSidedSeries:
        """A series of python-flint times tau**by."""
        return OneSidedSeries(arb_series([0] * by + [s[k] for k in range(s.length())], s.prec + by))

    def divide(self, above: Any) -> Any:
        if not self.s[0].is_zero():
            return super().divide(above)
        by = self.valuation()
        ball_numbers.sign(self.s[by])  # decided, or not divisible
        if not isinstance(above, Series):
            if above == 0:
                return arb(0)
            raise Unbounded("a quotient without a finite limit")
        assert isinstance(above, OneSidedSeries)
        return OneSidedSeries(above.shifted(by) / self.shifted(by))

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
        if ball_numbers.sign(self.s[by]) < 0:
            raise UndefinedAt("a root of a negative number on this side")
        if top * by % bottom:
            raise Fractional(bottom // gcd(top * by, bottom))
        inner = self.shifted(by)
        root = inner.sqrt() if (top, bottom) == (1, 2) else (inner.log() * top / bottom).exp()
        return self.raised(root, top * by // bottom)

    def vanishing(self, exponent: Any) -> OneSidedSeries:
        """A power with a positive exponent of what vanishes: as many zero coefficients as are certain."""
        by = self.valuation()
        if ball_numbers.sign(self.s[by]) < 0:
            raise UndefinedAt("a power of a negative number on this side")
        known = int((by * exponent).lower().ceil().unique_fmpz() or 1)
        return OneSidedSeries(arb_series([0], max(1, min(known, self.s.prec))))

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
