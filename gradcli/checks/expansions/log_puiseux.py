"""Log-Puiseux expansions: a function on one side of a point, where it may have poles and logarithms.

With tau > 0 the step, l = log(1/tau) and m = log(l), an `Expansion` is a sum of terms c * tau**k * l**d * m**e with
exact numbers c and fractions k, d, e, and a remainder that is bounded by a multiple of a stated one of these. A term
has the key (k, -d, -e): the smaller the key, the larger the term near the point. Logarithms of m are not read, and of
what grows faster than every power only the sign and the logarithm.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial, partialmethod, reduce
from itertools import accumulate
from math import factorial
from operator import add, methodcaller, mul
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series, ctx, fmpq, fmpz

from gradcli.checks.algebra.zero_test import vanishes
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure, Tie, Unclear, Undecided, Undefined
from gradcli.checks.expansions.exact_reals import SERIALS, ExactReal, ExpressionPool, ball_of, fraction
from gradcli.checks.expansions.power_series import FORMULAS, Moving, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Key = tuple[int | Fraction, int | Fraction, int | Fraction]  # whole numbers as int: their hashes are fast


def key(step: int, logarithm: int = 0, loglog: int = 0) -> Key:
    """The key of a term: the exponent of the step, and those of the logarithms with the sign turned."""
    return step, -logarithm, -loglog


ONE = key(0)
STEP = key(1)
LOGARITHM = key(0, 1)
LOGLOG = key(0, 0, 1)
FLAT = key(10**6)  # of what is smaller than every power
NUMBERS = (int, fmpz, fmpq, arb, ExactReal)
HALF = Fraction(1, 2)
WAVES = ("sin", "cos")  # of which every value is between -1 and 1
RING = ("add", "mul", "neg")  # operations that take a few terms only
CLOSE = 2.0**-20  # by how much what has a limit may be off, close enough to the point
MOST_TERMS = 4  # for each of a power series
ROOT = "a root of a negative number on one side of the point"


class Expansion(Moving):
    """An expansion: its terms by key, and the key of the remainder (None: there is none).

    A remainder that `swings`, over the function that its key states, has no limit for certain: sin(1/tau). A remainder
    that is bounded without a limit may have a `range`, a ball that holds all its values near the point.
    """

    __slots__ = ("range", "rest", "swings", "terms")
    range: Any

    def __init__(
        self, terms: dict[Key, Any], rest: Key | None = None, swings: bool = False, values: Any = None
    ) -> None:
        kept = {key: c for key, c in terms.items() if not c.is_zero() and (rest is None or key < rest)}
        if len(kept) > MOST_TERMS * ctx.cap:
            rest = sorted(kept)[MOST_TERMS * ctx.cap]
            kept, swings = {key: c for key, c in kept.items() if key < rest}, False
        self.terms = kept
        self.rest = rest
        self.swings = swings
        self.range = values if rest == ONE and values is not None and values.is_finite() else None

    @classmethod
    def along(cls, center: Any, speed: Any) -> Expansion:
        """center + speed * tau."""
        return cls({ONE: center, STEP: like(center, speed)})

    # --- what is known ----------------------------------------------------------------------------------------

    def first(self) -> Key:
        """The smallest key of a term or of the remainder."""
        return min([*self.terms, FLAT if self.rest is None else self.rest])

    def lead(self) -> tuple[Key, Any]:
        """The largest term; raises Unclear where none is known, Undecided where it may be 0."""
        if not self.terms:
            raise Unclear("a quantity below every known term of its expansion")
        key = min(self.terms)
        ball_numbers.sign(self.terms[key])
        return key, self.terms[key]

    def leads(self) -> bool:
        """Whether the largest term is known."""
        try:
            return self.lead()[0] == self.first()
        except (Unclear, Undecided):
            return False

    def sign(self) -> int:
        """The sign close to the point."""
        if self.is_bounded() and not self.range.contains(0):
            return ball_numbers.sign(self.range)
        return 0 if self.is_zero() else ball_numbers.sign(self.lead()[1])

    def is_bounded(self) -> bool:
        """Whether it is known to be bounded, but not to have a limit."""
        return self.range is not None and not self.terms

    def near(self) -> Any:
        """A ball that holds all values close to the point, without the terms that grow; None where none is known."""
        if self.range is not None or (self.rest is not None and self.rest <= ONE):
            return self.range
        return ball_of(self.terms.get(ONE, arb(0))) + arb(0, CLOSE)

    def is_zero(self) -> bool:
        """Whether it is 0 all along."""
        return not self.terms and self.rest is None

    @property
    def kind(self) -> Any:
        """A coefficient, or a ball: other numbers are to be `like` it."""
        return next(iter(self.terms.values()), arb(0))

    def pi(self) -> Any:
        return arb.pi() if type(self.kind) is arb else self.kind.pi()

    def is_finite(self) -> bool:
        return all(c.is_finite() for c in self.terms.values())

    def mid(self) -> Expansion:
        return self

    @property
    def constant(self) -> Any:
        """The limit; raises Unclear where there is none."""
        grown, constant, _ = self.split()
        if grown.terms:
            raise Unclear("an unbounded quantity")
        return constant

    def split(self) -> tuple[Expansion, Any, Expansion]:
        """What grows beyond all bounds, the constant, and what vanishes; raises Unclear where that is not known."""
        if self.rest is not None and self.rest <= ONE:
            raise Unclear("a term whose limit is not known")
        grown = {key: c for key, c in self.terms.items() if key < ONE}
        gone = {key: c for key, c in self.terms.items() if key > ONE}
        return Expansion(grown), self.terms.get(ONE, like(self.kind, 0)), Expansion(gone, self.rest)

    # --- ring operations --------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            other = Expansion({ONE: like(self.kind, other)})
        if not isinstance(other, Expansion):
            return NotImplemented
        terms = dict(self.terms)
        for key, c in other.terms.items():
            terms[key] = terms[key] + c if key in terms else c
        rest = _nearer(self.rest, other.rest)
        swings = self.rest != other.rest and any(x.swings and x.rest == rest for x in (self, other))
        return Expansion(terms, rest, swings, self.combined(other, add))

    def combined(self, other: Expansion, operation: Callable[[Any, Any], Any]) -> Any:
        """The range of a sum, or of what is either; None where none is known."""
        both = [] if self.range is None and other.range is None else [self.near(), other.near()]
        return None if not both or None in both else operation(*both)

    def __neg__(self) -> Expansion:
        values = None if self.range is None else -self.range
        return Expansion({key: -c for key, c in self.terms.items()}, self.rest, self.swings, values)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            terms = {key: c * other for key, c in self.terms.items()}
            swings = self.swings and like(self.kind, other).sign() != 0
            values = None if self.range is None else self.range * ball_of(like(self.kind, other))
            return arb(0) if other == 0 else Expansion(terms, self.rest, swings, values)
        if not isinstance(other, Expansion):
            return NotImplemented
        pairs = [(_sum(a.first(), b.rest), b.swings and a.leads()) for a, b in ((self, other), (other, self)) if b.rest]
        rests = sorted(rest for rest, _ in pairs)
        swings = len(set(rests)) == len(rests) and any(swings for rest, swings in pairs if rest == rests[0])
        terms = dict[Key, Any]()
        for left, c in self.terms.items():
            for right, d in other.terms.items():
                key = _sum(left, right)
                if not rests or key < rests[0]:
                    terms[key] = terms[key] + c * d if key in terms else c * d
        bounded = min(self.first(), other.first()) >= ONE
        values = self.combined(other, square if self is other else product) if bounded else None
        return Expansion(terms, rests[0] if rests else None, swings, values)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            if other == 0:
                raise Undefined("division by 0")
            values = None if self.range is None else self.range / ball_of(like(self.kind, other))
            return Expansion({key: c / other for key, c in self.terms.items()}, self.rest, values=values)
        return self * other.inverse() if isinstance(other, (Expansion, Huge)) else NotImplemented

    def inverse(self) -> Any:
        """1 over it."""
        if self.is_zero():
            raise Undefined("division by 0")
        return self.raised(Fraction(-1))

    # --- powers, logarithms, exponentials ---------------------------------------------------------------------

    def relative(self) -> tuple[Key, Any, Expansion]:
        """The key and the coefficient of the largest term, and r where the expansion is that term times 1 + r."""
        key, c = self.lead()
        back = _times(key, -1)
        terms = {_sum(other, back): d / c for other, d in self.terms.items() if other != key}
        return key, c, Expansion(terms, None if self.rest is None else _sum(self.rest, back))

    def raised(self, exponent: Fraction) -> Any:
        """A power; a fractional one of a function that is positive near the point."""
        if self.is_bounded() and not self.range.contains(0):
            exact = fmpq(exponent.numerator, exponent.denominator)
            return self.squeezed(lambda x: x ** arb(exact), monotone=True)
        key, c, more = self.relative()
        if exponent.denominator != 1:
            if ball_numbers.sign(c) < 0:
                raise Undefined(ROOT)
            exact = fmpq(exponent.numerator, exponent.denominator)
            factor = (c.log() * exact).exp() if type(c) is arb else c.raised(exponent)
        else:
            factor = c ** int(exponent) if exponent >= 0 else 1 / c ** int(-exponent)
        return Expansion({_times(key, exponent): factor}) * more.composed([like(c, x) for x in binomials(exponent)])

    def composed(self, around: Sequence[Any]) -> Any:
        """A power series, by its coefficients, composed with this expansion, which vanishes at the point."""
        if self.first() <= ONE:
            raise Unclear("a term that does not vanish")
        total, power = Expansion({ONE: around[0]}), Expansion({ONE: like(around[0], 1)})
        for coefficient in around[1:]:
            power = power * self
            total = total + power * coefficient
        if self.is_zero():
            return total
        return Expansion(total.terms, _nearer(total.rest, _times(self.first(), len(around))))

    def sqrt(self) -> Any:
        return self if self.is_zero() else self.raised(Fraction(1, 2))

    def squeezed(self, function: Callable[[Any], Any], monotone: bool = False) -> Expansion:
        """A function of what is bounded without a limit; raises Unclear where it is not known to be bounded."""
        values = function(self.range)
        if not values.is_finite():
            raise Unclear("a term whose limit is not known")
        return Expansion({}, ONE, self.swings and monotone, values)

    def log(self) -> Any:
        if self.sign() <= 0:
            raise Undefined("the logarithm of a number that is not positive on one side of the point")
        if self.is_bounded():
            return self.squeezed(arb.log, monotone=True)
        key, c, more = self.relative()
        if key[2]:
            raise Unclear("a logarithm nested three deep")
        power, turned = (like(c, x) for x in key[:2])
        grown = Expansion({LOGARITHM: -power, LOGLOG: -turned, ONE: c.log()})
        return grown + more.composed([like(c, Fraction(-((-1) ** k), k) if k else 0) for k in range(ctx.cap)])

    def exp(self) -> Any:
        if self.is_bounded():
            return self.squeezed(arb.exp, monotone=True)
        grown, constant, gone = self.split()
        around = gone.composed([like(constant, Fraction(1, factorial(k))) for k in range(ctx.cap)]) * constant.exp()
        if not grown.terms:
            return around
        if grown.lead()[0] < LOGARITHM:  # it grows, or vanishes, faster than every power
            return Huge(self) if grown.sign() > 0 else Expansion({}, FLAT)
        if not set(grown.terms) <= {LOGARITHM, LOGLOG}:
            raise Unclear("the exponential of a term that is not a multiple of a logarithm")
        power, turned = (rational(grown.terms.get(key, arb(0))) for key in (LOGARITHM, LOGLOG))
        if power is None or turned is None:
            raise Unclear("a power whose exponent is not a simple fraction")
        return around * Expansion({(-power, -turned, 0): arb(1)})

    def power(self, exponent: Any) -> Any:
        """A power with an exponent that does not move, of a function that is positive near the point."""
        fraction = rational(exponent)
        if fraction is not None:
            return self.raised(fraction)
        if self.sign() < 0:
            raise Undefined(ROOT)
        first = self.first()
        if first <= ONE or first[1:] != ONE[1:] or ball_numbers.sign(exponent) < 0:
            return (exponent * self.log()).exp()
        ball = exponent if type(exponent) is arb else exponent.enclosed(ball_numbers.START_BITS)
        known = rational((ball * fmpq(first[0].numerator, first[0].denominator)).lower())
        assert known is not None
        return Expansion({}, (known, 0, 0))  # as much as is certain

    # --- functions ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        formula = ANYWHERE.get(name)
        if formula is not None:
            return partial(formula, self)
        if name.startswith("_"):  # python-flint asks any object for these
            raise AttributeError(name)
        return partial(self.local, name)

    def local(self, name: str, *args: Any) -> Any:
        """A function that is analytic at the limit, by its series there; at infinity by a formula, if there is one."""
        if self.is_bounded():
            return self.squeezed(methodcaller(name, *args))
        if name in WAVES and self.rest is not None and self.rest <= ONE:
            return Expansion({}, ONE, values=arb(0, 1))
        grown, constant, gone = self.split()
        if grown.terms:
            if name not in FAR:
                raise Unclear(f"{name} of an unbounded argument")
            return FAR[name](self)
        return gone.composed(derivatives_of(constant, name, *args))

    def gamma_lower(self, a: Any, regularized: int) -> Any:
        """At 0 by the series of its integral, x**a times a sum of (-x)**k/(k!*(a + k))."""
        _, constant, gone = self.split()
        if not constant.is_zero():
            return self.local("gamma_lower", a, regularized)
        _inside(gone)
        terms = [(-1) ** k * a.rgamma() / (arb.fac_ui(k) * (a + k)) for k in range(ctx.cap)]
        return self.power(a) * gone.composed(terms)

    def beta_lower(self, a: Any, b: Any, regularized: int) -> Any:
        """At 0 likewise, x**a times a sum of (1 - b)*(2 - b)*...*(k - b)*x**k/(k!*(a + k)); at 1 by its symmetry."""
        _, constant, gone = self.split()
        if constant == 1:
            return 1 - (1 - self).beta_lower(b, a, regularized)
        if not constant.is_zero():
            return self.local("beta_lower", a, b, regularized)
        _inside(gone)
        scale = (a + b).gamma() * a.rgamma() * b.rgamma()
        terms = [scale * (1 - b).rising(k) / (arb.fac_ui(k) * (a + k)) for k in range(ctx.cap)]
        return self.power(a) * gone.composed(terms)

    side = sign  # which formulas read where it grows beyond all bounds

    def digamma(self) -> Any:
        """At a pole by psi(x) = psi(x + 1) - 1/x."""
        pole = self.constant <= 0 and self.constant.is_integer()
        return (self + 1).digamma() - self.inverse() if pole else self.local("digamma")

    def floor(self) -> Any:
        if self.is_bounded():
            return self.squeezed(lambda x: x.lower().floor().union(x.upper().floor()))
        if self.range is not None:
            return self + Expansion({}, ONE, values=arb(-0.5, 0.5))
        grown, constant, gone = self.split()
        if grown.terms:  # what is cut off takes all values between 0 and 1 again and again
            return self + Expansion({}, ONE, swings=True, values=arb(-0.5, 0.5))
        whole = constant.floor()
        if not whole.is_exact():
            ball_numbers.sign(whole - whole.mid())
        if (constant - whole).is_zero():
            return whole if gone.sign() >= 0 else whole - 1
        return whole

    # --- as a power series ------------------------------------------------------------------------------------

    def in_powers(self, root: int, terms: int) -> Any:
        """A series of python-flint in the `root`-th root of the step; raises Unclear where it is none."""
        coefficients = [arb(0)] * terms
        for (power, *logarithms), c in self.terms.items():
            place = power * root
            if place < 0 or any(logarithms):
                raise Unclear("a matrix whose entries have no power series")
            if place < terms:
                coefficients[int(place)] = c
        return arb_series(coefficients, terms)

    @classmethod
    def of_series(cls, s: Any, root: int) -> Expansion:
        """A series of python-flint in the `root`-th root of the step; its remainder is of the next power."""
        terms = {_times((k, 0, 0), Fraction(1, root)): s[k] for k in range(s.length())}
        return cls(terms, _times((s.prec, 0, 0), Fraction(1, root)))


class TracedExpansion(Expansion):
    """An expansion of exact numbers with the expression that it was computed by, which a `pool` holds once.

    Where no term of it is known, the expression may show that the function is 0 all along.
    """

    __slots__ = ("args", "name", "pool", "serial")
    rational = None

    def __init__(self, plain: Expansion, pool: ExpressionPool, name: str, *args: Any) -> None:
        self.terms, self.rest, self.swings, self.range = plain.terms, plain.rest, plain.swings, plain.range
        self.pool, self.name, self.args = pool, name, args
        pool.unsettled += plain.swings or plain.range is not None
        self.serial = next(SERIALS)  # above those of its operands

    @classmethod
    def along(cls, center: Any, speed: Any) -> TracedExpansion:
        speed = center.lifted(speed)
        return cls(Expansion.along(center, speed), center.pool, "along", center, speed)

    @property
    def kind(self) -> Any:
        return next(iter(self.terms.values()), fraction(self.pool, fmpq(0)))

    def traced(self, name: str, compute: Callable[..., Any], *args: Any) -> Any:
        """The expansion of an expression, computed once."""
        key = (name, self, *args)
        if key not in self.pool:
            self.pool.left -= 0 if name in RING else ctx.cap**3
            if self.pool.left < 0:
                raise Unclear("a computation with too many terms")
            result = compute(*key[1:])
            if type(result) is Expansion:
                result = TracedExpansion(result, self.pool, *key)
                if not result.terms and self.pool.left > 0 and vanishes(result):
                    result = fraction(self.pool, fmpq(0))
            self.pool[key] = result
        return self.pool[key]

    def lifted(self, other: Any) -> Any:
        """A number as an exact one; anything else as it is."""
        number = fraction(self.pool, fmpq(0)).lifted(other)
        return other if number is None else number

    def __add__(self, other: Any) -> Any:
        return self.traced("add", Expansion.__add__, self.lifted(other))

    def __mul__(self, other: Any) -> Any:
        number = self.lifted(other)
        return number if number == 0 else self.traced("mul", Expansion.__mul__, number)

    def __truediv__(self, other: Any) -> Any:
        return self.traced("div", Expansion.__truediv__, self.lifted(other))

    def __neg__(self) -> Any:
        return self.traced("neg", Expansion.__neg__)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        Expansion.__getattr__(self, name)  # raises for what is no function
        return partial(self.traced, name, lambda x, *args: Expansion.__getattr__(x, name)(*args))


for _name in ("inverse", "raised", "log", "exp", "power", "digamma", "gamma_lower", "beta_lower", "floor"):
    setattr(TracedExpansion, _name, partialmethod(TracedExpansion.traced, _name, getattr(Expansion, _name)))


class Huge(Moving):
    """What grows faster than every power: about exp(g) for an expansion g that grows beyond all bounds, with a sign."""

    __slots__ = ("g", "signed")

    def __init__(self, g: Expansion, signed: int = 1) -> None:
        self.g = g
        self.signed = signed

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # python-flint asks any object for these
            raise AttributeError(name)
        raise Unclear(f"{name} of an argument that grows faster than every power")

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Huge):
            raise Unclear("a sum of terms that grow faster than every power")
        return self

    def __neg__(self) -> Huge:
        return Huge(self.g, -self.signed)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            return arb(0) if other == 0 else Huge(self.g, self.signed * ball_numbers.sign(like(self.g.kind, other)))
        if isinstance(other, Huge):
            return Huge(self.g + other.g, self.signed * other.signed)
        if not isinstance(other, Expansion):
            return NotImplemented
        sign = other.sign()
        return Huge(self.g + (sign * other).log(), self.signed * sign)

    def __truediv__(self, other: Any) -> Any:
        return self * (arb(1) / other)

    def split(self) -> tuple[Huge, Any, Expansion]:
        """As of an expansion: it is all that grows."""
        return self, arb(0), Expansion({})

    def inverse(self) -> Expansion:
        """1 over it: smaller than every power."""
        return Expansion({}, FLAT)

    def sin(self) -> Expansion:
        return Expansion({}, ONE, swings=True, values=arb(0, 1))

    cos = sin

    def log(self) -> Any:
        if self.signed < 0:
            raise Undefined("the logarithm of a negative number on one side of the point")
        return self.g + Expansion({}, FLAT)

    log1p = log

    def sqrt(self) -> Any:
        return (self.log() / 2).exp()

    def sign(self) -> int:
        """The sign close to the point."""
        return self.signed


FAR: dict[str, Callable[[Any], Any]] = {  # functions of what grows beyond all bounds; else they are read as the others
    **{name: FORMULAS[name] for name in ("sinh", "cosh", "tanh", "asinh")},
    "sin": lambda x: Expansion({}, ONE, swings=True, values=arb(0, 1)),
    "cos": lambda x: Expansion({}, ONE, swings=True, values=arb(0, 1)),
    "atan": lambda x: x.side() * (x.pi() / 2) - x.inverse().atan(),
    "erf": lambda x: Expansion({}, (-(x * x)).exp().first()) + x.side(),  # its tail is less than exp(-x**2)
    "erfc": lambda x: 1 - x.erf(),
    "sinc_pi": lambda x: (x * x.pi()).sin() / (x * x.pi()),
}
ANYWHERE: dict[str, Callable[..., Any]] = {  # formulas that hold at edges and at infinity too
    **{name: FORMULAS[name] for name in ("tan", "expm1", "log1p", "acosh", "atanh")},
    "asin": lambda x: x.pi() / 2 - x.acos(),
    "acos": lambda x: 2 * ((1 - x) / (1 + x)).sqrt().atan(),
    "gamma": lambda x: x.rgamma().inverse(),
    "lgamma": lambda x: x.gamma().log(),
    "gamma_upper": lambda x, a, regularized: 1 - x.gamma_lower(a, regularized),
}


def like(c: Any, value: Any) -> Any:
    """A number as a ball, or as an exact one if c is exact."""
    if isinstance(value, ExactReal):
        return value
    if type(c) is arb:
        return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else arb(value)
    return c.lifted(value)


def taylor(x: Any, order: int) -> Any:
    """The coefficients 0 to `order` of what moves on one side, as a list; a failure where it has no such expansion."""
    if isinstance(x, Failure):
        return x
    if not isinstance(x, (Expansion, Huge)):
        return [x] + [x * 0] * order
    powers = [key(j) for j in range(order + 1)]
    if isinstance(x, Huge) or (x.rest is not None and x.rest <= powers[-1]):
        return Unclear(f"a derivative of order {order} that the expansions do not determine")
    try:
        if any(ball_numbers.sign(c) for k, c in x.terms.items() if k < powers[-1] and k not in powers):
            return Tie(f"has no bounded derivative of order {order} here")
    except Undecided as problem:
        return problem
    return [x.terms.get(k, like(x.kind, 0)) for k in powers]


def either(x: Any, y: Any) -> Any:
    """What may be one exact number or expansion or the other: as much as they have in common."""
    gap = x - y
    if gap.is_zero():
        return x
    if isinstance(gap, Huge):
        raise Unclear("a choice between functions that grow apart")
    first = gap.first() if isinstance(gap, Expansion) else ONE
    left, right = (z if isinstance(z, Expansion) else Expansion({ONE: z}) for z in (x, y))
    values = left.combined(right, arb.union)
    common = Expansion(right.terms, _nearer(right.rest, first), values=values)
    x.pool.unsettled += 1
    return TracedExpansion(common, x.pool, "either", x, y, object())


def product(x: Any, y: Any) -> Any:
    """The product of two balls, by the ends of both."""
    return reduce(arb.union, [a * b for a in (x.lower(), x.upper()) for b in (y.lower(), y.upper())])


def square(x: Any, _: Any) -> Any:
    """The square of a ball, by its ends."""
    return (x.abs_lower() ** 2).union(x.abs_upper() ** 2)


EITHER: dict[str, Callable[..., Sequence[Any]]] = {  # what an operation chooses from, by its operands
    "abs": lambda x: (x, -x),
    "relu": lambda x: (x, x * 0),
    "leaky_relu": lambda x, slope: (x, x * slope),
    "maximum": lambda x, y: (x, y),
    "minimum": lambda x, y: (x, y),
    "clamp": lambda x, low, high: (x, low, high),
    "sign": lambda x: (fraction(x.pool, fmpq(-1)), fraction(x.pool, fmpq(1))),
    "round": lambda x: ((x + HALF).floor(), (x + HALF).floor() - 1),
    "trunc": lambda x: (x.floor(), -(-x).floor()),
}


def rational(x: Any) -> Fraction | None:
    """The fraction that a number is; None where it is not known to be one."""
    fraction = (x.fmpq() if x.is_exact() else None) if type(x) is arb else x.rational
    return None if fraction is None else Fraction(int(fraction.p), int(fraction.q))


def binomials(exponent: Fraction) -> list[Fraction]:
    """The coefficients of (1 + x)**exponent."""
    factors = [(exponent - k) / (k + 1) for k in range(ctx.cap - 1)]
    return [*accumulate(factors, mul, initial=Fraction(1))]


def derivatives_of(c: Any, name: str, *args: Any) -> list[Any]:
    """The coefficients of the power series of a function around a number."""
    if type(c) is not arb and name in ("sin", "cos"):
        cycle = [c.sin(), c.cos(), -c.sin(), -c.cos()]
        return [cycle[(k + (name == "cos")) % 4] / factorial(k) for k in range(ctx.cap)]
    if type(c) is not arb and name in SLOPES:
        slope = SLOPES[name](Expansion.along(c, 1))
        parts = [slope.terms.get(key(k), like(c, 0)) / (k + 1) for k in range(ctx.cap - 1)]
        return [getattr(c, name)(), *parts]
    if type(c) is not arb:
        return [getattr(c, name)(*args), *(c.apply("taylor", c, name, k, *args) for k in range(1, ctx.cap))]
    around = getattr(Series(arb_series([c, 1], ctx.cap)), name)(*args).s
    return [around[k] for k in range(around.prec)]


SLOPES: dict[str, Callable[[Any], Any]] = {
    "atan": lambda u: (u * u + 1).inverse(),
    "erf": lambda u: (-(u * u)).exp() * 2 / u.pi().sqrt(),
}


def _inside(gone: Any) -> None:
    if gone.sign() < 0:
        raise Undefined("an incomplete gamma or beta function outside its domain on one side of the point")


def _sum(a: Key, b: Key) -> Key:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _times(key: Key, factor: int | Fraction) -> Key:
    step, logarithm, loglog = (x * factor if x else 0 for x in key)
    return (step.numerator if step.denominator == 1 else step), logarithm, loglog


def _nearer(a: Key | None, b: Key | None) -> Key | None:
    return b if a is None else a if b is None else min(a, b)
