"""Log-Puiseux expansions: a function on one side of a point, where it may have poles and logarithms.

With tau > 0 the step, l = log(1/tau) and m = log(l), an `Expansion` is a sum of terms c * tau**k * l**d * m**e with
balls c and fractions k, d, e, and a remainder that is bounded by a multiple of a stated one of these. A term has the
key (k, -d, -e): the smaller the key, the larger the term near the point. Logarithms of m are not read, and of what
grows faster than every power only the sign and the logarithm.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

from flint import arb, arb_series, fmpq, fmpz

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import TooShort, Unbounded, UndefinedAt
from gradcli.checks.expansions.power_series import Series, capacity

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
LOCAL = frozenset(  # functions that are read only where their arguments have limits
    (
        *("erfinv", "erfcinv", "rgamma", "polygamma", "bessel_j", "bessel_i"),
        *("gamma_lower", "gamma_upper", "beta_lower"),
    )
)


NUMBERS = (int, fmpz, fmpq, arb)
MOST_TERMS = 40
MOST_POWER = 64  # that is written as a product


class Expansion:
    """An expansion: its terms by key, and the key of the remainder (None: there is none)."""

    __slots__ = ("rest", "terms")

    def __init__(self, terms: dict[Key, Any], rest: Key | None = None) -> None:
        kept = {key: c for key, c in terms.items() if not c.is_zero() and (rest is None or key < rest)}
        if len(kept) > MOST_TERMS:
            rest = sorted(kept)[MOST_TERMS]
            kept = {key: c for key, c in kept.items() if key < rest}
        self.terms = kept
        self.rest = rest

    @classmethod
    def along(cls, center: Any, speed: Any) -> Expansion:
        """center + speed * tau."""
        return cls({ONE: arb(center), STEP: arb(speed)})

    # --- what is known ----------------------------------------------------------------------------------------

    def first(self) -> Key:
        """A key that no term and no remainder is before."""
        keys = [*self.terms, *([] if self.rest is None else [self.rest])]
        return min(keys) if keys else FLAT

    def lead(self) -> tuple[Key, Any]:
        """The largest term; raises TooShort where none is known, Undecided where it may be 0."""
        if not self.terms:
            raise TooShort("a quantity below every known term of its expansion")
        key = min(self.terms)
        ball_numbers.sign(self.terms[key])
        return key, self.terms[key]

    def sign(self) -> int:
        """The sign right near the point."""
        if self.is_zero():
            return 0
        return ball_numbers.sign(self.lead()[1])

    def is_zero(self) -> bool:
        """Whether it is 0 all along."""
        return not self.terms and self.rest is None

    def is_integer(self) -> bool:
        """Whether it is one whole number all along: nothing that moves is."""
        return False

    def is_finite(self) -> bool:
        return all(c.is_finite() for c in self.terms.values())

    @property
    def constant(self) -> Any:
        """The limit; raises Unbounded where there is none."""
        grown, constant, _ = self.split()
        if grown.terms:
            raise Unbounded("an unbounded quantity")
        return constant

    def split(self) -> tuple[Expansion, Any, Expansion]:
        """What grows beyond all bounds, the constant, and what vanishes; raises Unbounded where that is not known."""
        if self.rest is not None and self.rest <= ONE:
            raise Unbounded("a term whose limit is not known")
        grown = {key: c for key, c in self.terms.items() if key < ONE}
        gone = {key: c for key, c in self.terms.items() if key > ONE}
        return Expansion(grown), self.terms.get(ONE, arb(0)), Expansion(gone, self.rest)

    # --- ring operations --------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            other = Expansion({ONE: arb(other)})
        if not isinstance(other, Expansion):
            return NotImplemented
        terms = dict(self.terms)
        for key, c in other.terms.items():
            terms[key] = terms[key] + c if key in terms else c
        return Expansion(terms, _nearer(self.rest, other.rest))

    __radd__ = __add__

    def __neg__(self) -> Expansion:
        return Expansion({key: -c for key, c in self.terms.items()}, self.rest)

    def __sub__(self, other: Any) -> Any:
        return (
            arb(0) if other is self else self + -other if isinstance(other, (Expansion, *NUMBERS)) else NotImplemented
        )

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, NUMBERS) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            return arb(0) if other == 0 else Expansion({key: c * other for key, c in self.terms.items()}, self.rest)
        if not isinstance(other, Expansion):
            return NotImplemented
        terms: dict[Key, Any] = {}
        for one, c in self.terms.items():
            for two, d in other.terms.items():
                key = _sum(one, two)
                terms[key] = terms[key] + c * d if key in terms else c * d
        rests = [_sum(a.first(), b.rest) for a, b in ((self, other), (other, self)) if b.rest is not None]
        return Expansion(terms, min(rests, default=None))

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Any:
        found: Any = arb(1)
        for _ in range(exponent):
            found = self * found
        return found if exponent >= 0 else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            if other == 0:
                raise UndefinedAt("division by 0")
            return Expansion({key: c / other for key, c in self.terms.items()}, self.rest)
        return self * other.inverse() if isinstance(other, (Expansion, Huge)) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other if isinstance(other, NUMBERS) else NotImplemented

    def inverse(self) -> Any:
        """1 over it."""
        if self.is_zero():
            raise UndefinedAt("division by 0")
        return self.raised(Fraction(-1))

    # --- powers, logarithms, exponentials ---------------------------------------------------------------------

    def relative(self) -> tuple[Key, Any, Expansion]:
        """The key and the coefficient of the largest term, and what it is multiplied by, less 1."""
        key, c = self.lead()
        back = _times(key, Fraction(-1))
        terms = {_sum(other, back): d / c for other, d in self.terms.items() if other != key}
        return key, c, Expansion(terms, None if self.rest is None else _sum(self.rest, back))

    def raised(self, exponent: Fraction) -> Any:
        """A power; a fractional one of what is positive near the point."""
        key, c, more = self.relative()
        if exponent.denominator != 1:
            if ball_numbers.sign(c) < 0:
                raise UndefinedAt("a root of a negative number on one side of the point")
            factor = (c.log() * fmpq(exponent.numerator, exponent.denominator)).exp()
        else:
            factor = c ** int(exponent) if exponent >= 0 else 1 / c ** int(-exponent)
        start = Expansion({_times(key, exponent): factor})
        with capacity(POWERS):
            around = arb_series([1, 1], POWERS).log() * fmpq(exponent.numerator, exponent.denominator)
            return start * more.composed(around.exp())

    def composed(self, around: Any) -> Any:
        """A series of python-flint in this one, which vanishes at the point."""
        if self.first() <= ONE:
            raise Unbounded("a term that does not vanish")
        found, power = Expansion({ONE: around[0]}), Expansion({ONE: arb(1)})
        for k in range(1, around.prec):
            power = power * self
            found = found + power * around[k]
        first = self.first()
        if first != FLAT or self.terms or self.rest is not None:
            found = Expansion(found.terms, _nearer(found.rest, _times(first, Fraction(around.prec))))
        return found

    def sqrt(self) -> Any:
        return self if self.is_zero() else self.raised(Fraction(1, 2))

    def log(self) -> Any:
        if self.sign() <= 0:
            raise UndefinedAt("the logarithm of a number that is not positive on one side of the point")
        key, c, more = self.relative()
        if key[2]:
            raise Unbounded("a logarithm nested three deep")
        with capacity(POWERS):
            around = arb_series([1, 1], POWERS).log()
        power, turned = (arb(fmpq(x.numerator, x.denominator)) for x in key[:2])
        grown = Expansion({LOGARITHM: -power, LOGLOG: -turned, ONE: c.log()})
        return grown + more.composed(around)

    def log1p(self) -> Any:
        return (self + 1).log()

    def exp(self) -> Any:
        grown, constant, gone = self.split()
        with capacity(POWERS):
            around = gone.composed(arb_series([0, 1], POWERS).exp()) * constant.exp()
        if not grown.terms:
            return around
        if grown.lead()[0] < LOGARITHM:  # it grows, or vanishes, faster than every power
            return Huge(self) if grown.sign() > 0 else flat()
        if not set(grown.terms) <= {LOGARITHM, LOGLOG}:
            raise Unbounded("the exponential of a term that is not a multiple of a logarithm")
        power, turned = (rational(grown.terms.get(key, arb(0))) for key in (LOGARITHM, LOGLOG))
        if power is None or turned is None:
            raise Unbounded("a power whose exponent is not a simple fraction")
        return around * Expansion({(-power, -turned, Fraction(0)): arb(1)})

    def expm1(self) -> Any:
        return self.exp() - 1

    def power(self, exponent: Any) -> Any:
        """A power that does not move, of what is not negative near the point."""
        if exponent.is_integer() and abs(whole := int(exponent.unique_fmpz())) <= MOST_POWER:
            return self**whole if whole >= 0 else (self**-whole).inverse()
        if self.sign() < 0:
            raise UndefinedAt("a fractional power of a negative number on one side of the point")
        found = rational(exponent)
        if found is not None:
            return self.raised(found)
        first = self.first()
        if first <= ONE or first[1:] != ONE[1:] or ball_numbers.sign(exponent) < 0:
            return (exponent * self.log()).exp()
        known = rational((exponent * arb(fmpq(first[0].numerator, first[0].denominator))).lower())
        assert known is not None
        return Expansion({}, (known, Fraction(0), Fraction(0)))  # as much as is certain

    # --- functions ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in LOCAL:
            raise AttributeError(name)
        return partial(self.local, name)

    def local(self, method: str, *args: Any) -> Any:
        """A function that is analytic at the limit, by its own series there."""
        grown, constant, gone = self.split()
        if grown.terms:
            raise Unbounded(f"{method} of an unbounded argument")
        with capacity(POWERS):
            found = getattr(Series(arb_series([constant, 1], POWERS)), method)(*args)
            return gone.composed(found.s)

    def grows(self) -> int:
        """1 or -1 where it grows beyond all bounds, else 0."""
        grown, _, _ = self.split()
        side: int = grown.sign() if grown.terms else 0
        return side

    def sin(self) -> Any:
        return Expansion({}, ONE) if self.grows() else self.local("sin")

    def cos(self) -> Any:
        return Expansion({}, ONE) if self.grows() else self.local("cos")

    def tan(self) -> Any:
        return self.sin() / self.cos()

    def atan(self) -> Any:
        side = self.grows()
        return side * (arb.pi() / 2) - self.inverse().local("atan") if side else self.local("atan")

    def asin(self) -> Any:
        return arb.pi() / 2 - self.acos()

    def acos(self) -> Any:
        return 2 * ((1 - self) / (1 + self)).sqrt().atan()

    def sinh(self) -> Any:
        return (self.exp() - (-self).exp()) / 2 if self.grows() else self.local("sinh")

    def cosh(self) -> Any:
        return (self.exp() + (-self).exp()) / 2 if self.grows() else self.local("cosh")

    def tanh(self) -> Any:
        side = self.grows()
        if not side:
            return self.local("tanh")
        shrunk = (self * (-2 * side)).exp()
        return side * ((1 - shrunk) / (1 + shrunk))

    def asinh(self) -> Any:
        side = self.grows()
        return side * (side * self + (self * self + 1).sqrt()).log() if side else self.local("asinh")

    def acosh(self) -> Any:
        return (self + (self * self - 1).sqrt()).log()

    def atanh(self) -> Any:
        return ((1 + self).log() - (1 - self).log()) / 2

    def erf(self) -> Any:
        side = self.grows()
        return side - side * self.gaussian_tail() if side else self.local("erf")

    def erfc(self) -> Any:
        side = self.grows()
        return (1 - side) + side * self.gaussian_tail() if side else self.local("erfc")

    def gaussian_tail(self) -> Any:
        """What is left of the error function far out: less than exp(-self**2)."""
        return Expansion({}, (-(self * self)).exp().first())

    def gamma(self) -> Any:
        return self.rgamma().inverse()

    def lgamma(self) -> Any:
        return self.gamma().log()

    def digamma(self) -> Any:
        """By the derivative of 1/gamma."""
        grown, constant, gone = self.split()
        if grown.terms:
            raise Unbounded("digamma of an unbounded argument")
        with capacity(POWERS + 1):
            around = arb_series([constant, 1], POWERS + 1).rgamma()
        return -gone.composed(around.derivative()) / gone.composed(around)

    def sinc_pi(self) -> Any:
        return (self * arb.pi()).sin() / (self * arb.pi()) if self.grows() else self.local("sinc_pi")

    def floor(self) -> Any:
        _, constant, gone = self.split()
        if self.grows():
            raise Unbounded("the integer part of an unbounded argument")
        whole = constant.floor()
        if not whole.is_exact():
            ball_numbers.sign(whole - whole.mid())
        if (constant - whole).is_zero():
            return whole if gone.sign() >= 0 else whole - 1
        return whole

    # --- as a power series ------------------------------------------------------------------------------------

    def in_powers(self, root: int, terms: int) -> Any:
        """A series of python-flint in the `root`-th root of the step; raises Unbounded where it is none."""
        coefficients = [arb(0)] * terms
        for (power, *logarithms), c in self.terms.items():
            place = power * root
            if place < 0 or any(logarithms):
                raise Unbounded("a matrix whose entries have no power series")
            if place < terms:
                coefficients[int(place)] = c
        return arb_series(coefficients, terms)

    @classmethod
    def of_series(cls, s: Any, root: int) -> Expansion:
        """A series of python-flint in the `root`-th root of the step; its remainder is of the next power."""
        terms = {(Fraction(k, root), Fraction(0), Fraction(0)): s[k] for k in range(s.length())}
        return cls(terms, (Fraction(s.prec, root), Fraction(0), Fraction(0)))


class Huge:
    """What grows faster than every power: about exp(g) for an expansion g that grows beyond all bounds, with a sign."""

    __slots__ = ("g", "side")

    def __init__(self, g: Expansion, side: int = 1) -> None:
        self.g = g
        self.side = side

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # python-flint asks any object for these
            raise AttributeError(name)
        raise Unbounded(f"{name} of an argument that grows faster than every power")

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Huge):
            raise Unbounded("a sum of terms that grow faster than every power")
        return self

    __radd__ = __sub__ = __add__

    def __neg__(self) -> Huge:
        return Huge(self.g, -self.side)

    def __rsub__(self, other: Any) -> Any:
        return -self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            return arb(0) if other == 0 else Huge(self.g, self.side * ball_numbers.sign(arb(other)))
        if not isinstance(other, Expansion):
            raise Unbounded("a product of factors that grow faster than every power")
        side = other.sign()
        return Huge(self.g + (side * other).log(), self.side * side)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (arb(1) / other) if isinstance(other, (Expansion, *NUMBERS)) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def inverse(self) -> Expansion:
        """1 over it: smaller than every power."""
        return flat()

    def log(self) -> Any:
        if self.side < 0:
            raise UndefinedAt("the logarithm of a negative number on one side of the point")
        return self.g + flat()

    def log1p(self) -> Any:
        return self.log()

    def sqrt(self) -> Any:
        return (self.log() / 2).exp()

    def sign(self) -> int:
        """The sign right near the point."""
        return self.side

    def is_integer(self) -> bool:
        return False

    def is_zero(self) -> bool:
        return False

    def is_finite(self) -> bool:
        return True


def flat() -> Expansion:
    """What is smaller than every power."""
    return Expansion({}, FLAT)


def rational(x: Any) -> Fraction | None:
    """A ball that is one number, as a fraction."""
    if not x.is_exact():
        return None
    found = x.fmpq()
    return Fraction(int(found.p), int(found.q))


def _sum(one: Key, two: Key) -> Key:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def _times(key: Key, factor: Fraction) -> Key:
    return key[0] * factor, key[1] * factor, key[2] * factor


def _nearer(one: Key | None, two: Key | None) -> Key | None:
    return two if one is None else one if two is None else min(one, two)
