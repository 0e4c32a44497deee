"""Real numbers that are known exactly, as expressions, so that their signs can be decided where balls cannot.

Such a number is a fraction, or a function of such numbers, whose ball is computed to as many bits as a question takes.
Equal expressions are one object. Where a ball keeps containing 0 the zero test decides whether the number is 0; what it
leaves open raises Undecided. Expansions have such numbers as coefficients where a point may be a tie.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from flint import arb, arb_series, ctx, fmpq, fmpz

from gradcli.checks.algebra.zero_test import vanishes
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.ball_numbers import START_BITS, precision
from gradcli.checks.evaluate.interpretation import MOST_BITS, SIGN_OPEN, Unclear, Undecided, Undefined
from gradcli.checks.expansions.power_series import FORMULAS, Series, capacity

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WORK = 400_000  # operations with START_BITS more bits than the first time, of all signs together
MOST_RATIONAL = 4096  # bits of a fraction that is kept as one
SERIALS = count()
LADDER = (START_BITS, 4 * START_BITS, 16 * START_BITS, MOST_BITS)
BALLS: dict[str, Callable[..., Any]] = {  # of an operation, from the balls of its operands; else a method of arb
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "power": lambda x, n: x**n,
    "root": lambda x, n: x.sqrt() if n == 2 else x.root(n),
    "pi": arb.pi,
    "hurwitz": lambda x, s: arb(s).zeta(x),
    "taylor": lambda x, name, k, *args: taylor(x, name, k, args),
    "computed": lambda compute: compute(ctx.prec),
}


def taylor(x: Any, name: str, k: int, args: tuple[Any, ...]) -> Any:
    """A coefficient of the power series of a function around a ball."""
    with capacity(k + 1):
        return getattr(Series(arb_series([x, 1], k + 1)), name)(*args).s[k]


class ExpressionPool(dict[Any, Any]):
    """The expressions of one reading of a program, and how much work their signs may still take.

    `unsettled` counts expansions without a limit, or with one of several.
    """

    left, unsettled = MOST_WORK, 0


class ExactReal:
    """A number of a `pool`, which holds each expression once; `rational` is its value, where that is a fraction."""

    __slots__ = ("args", "ball", "bits", "name", "open", "pool", "rational", "serial")

    def __init__(self, pool: ExpressionPool, name: str, args: tuple[Any, ...], rational: Any = None) -> None:
        self.pool, self.name, self.args, self.rational = pool, name, args, rational
        self.open = False  # whether its sign was left undecided
        self.serial = next(SERIALS)  # above those of its operands
        self.bits = 0  # that its ball was computed with
        self.ball: Any = None

    def lifted(self, value: Any) -> Any:
        """A number of this pool; None for what is none."""
        if type(value) is ExactReal:
            return value
        if type(value) is Fraction:
            value = fmpq(value.numerator, value.denominator)
        elif type(value) is arb:
            if not value.is_exact() or not value.is_finite():
                raise Unclear("a number that is known to some digits only")
            value = value.fmpq()
        return fraction(self.pool, fmpq(value)) if isinstance(value, (int, fmpz, fmpq)) else None

    def apply(self, name: str, *args: Any) -> ExactReal:
        """The number of an expression; where its ball is a single number, that fraction."""
        key = (name, *args)
        number = self.pool.get(key)
        if number is None:
            number = ExactReal(self.pool, name, args)
            ball = number.enclosed(START_BITS)
            if not ball.is_finite():
                number, ball = number.beyond_edges()
            operands = [arg for arg in args if isinstance(arg, ExactReal)]
            if ball.is_exact() and all(arg.rational is not None for arg in operands) and operands:
                number = fraction(self.pool, ball.fmpq())
            self.pool[key] = number
        return number

    # --- its value ------------------------------------------------------------------------------------------

    def enclosed(self, bits: int) -> Any:
        """A ball, computed with so many bits."""
        pending = [self]
        with precision(bits):
            while pending:
                number = pending[-1]
                missing = [arg for arg in number.args if isinstance(arg, ExactReal) and arg.bits < bits]
                if number.bits >= bits or number.rational is not None or not missing:
                    pending.pop()
                    if number.bits < bits:
                        number.ball, number.bits = number._computed(), bits
                        self.pool.left -= bits // START_BITS - 1
                else:
                    pending += missing
        return self.ball

    def _computed(self) -> Any:
        if self.rational is not None:
            return arb(self.rational)
        args = [arg.ball if isinstance(arg, ExactReal) else arg for arg in self.args]
        compute = BALLS.get(self.name)
        return compute(*args) if compute else getattr(args[0], self.name)(*args[1:])

    def beyond_edges(self) -> tuple[ExactReal, Any]:
        """The number, once its operands are known well enough, and its ball; raises Undefined, Undecided."""
        operands = [arg for arg in self.args if isinstance(arg, ExactReal)]
        for bits in LADDER:
            for arg in operands:
                arg.is_integer()
            self.bits = 0
            ball = self.enclosed(bits)
            if ball.is_finite():
                return self, ball
            if all(arg.rational is not None for arg in operands):
                at = ", ".join(ball_numbers.digits(arg.ball, 6) for arg in operands)
                raise Undefined(f"{self.name} is undefined at {at}" if at else "an entry of a matrix has no value")
        if self.name in FORMULAS:
            number = FORMULAS[self.name](self.args[0])
            return number, number.enclosed(START_BITS)
        raise Undecided(f"{self.name} needs more digits")

    def sign(self) -> int:
        """-1, 0 or 1; raises Undecided."""
        for bits in () if self.open or self.rational is not None else LADDER:
            if bits > START_BITS and self.pool.left < 0:
                break
            ball = self.enclosed(bits)
            if not ball.contains(0):
                return 1 if ball.mid() > 0 else -1
            if bits == START_BITS and self.pool.left > 0 and vanishes(self):
                self.become(fmpq(0))
                break
        if self.rational is None:
            self.open = True
            raise Undecided(SIGN_OPEN)
        return int(self.rational > 0) - int(self.rational < 0)

    def become(self, value: Any) -> None:
        """Hold a fraction from now on, to which it was proved equal."""
        self.rational, self.ball, self.bits = value, arb(value), MOST_BITS

    def is_zero(self) -> bool:
        """Whether it is 0 for certain."""
        if self.rational is not None:
            return not self.rational
        try:
            return self.sign() == 0
        except Undecided:
            return False

    def is_integer(self) -> bool:
        """Whether it is a whole number for certain."""
        near = None if self.rational is not None else self.enclosed(START_BITS).unique_fmpz()
        if near is not None and (self - near).is_zero():
            self.become(fmpq(near))
        return self.rational is not None and bool(self.rational.q == 1)

    def unique_fmpz(self) -> Any:
        return self.rational.p if self.is_integer() else None

    def floor(self) -> Any:
        """The whole number below; raises Undecided."""
        if not self.is_integer():
            for bits in LADDER:
                whole = self.enclosed(bits).floor()
                if whole.is_exact():
                    return self.lifted(whole)
            raise Undecided(SIGN_OPEN)
        return self

    def is_exact(self) -> bool:
        return True

    is_finite = is_exact

    def mid(self) -> ExactReal:
        return self

    @property
    def constant(self) -> ExactReal:
        """The value at the point."""
        return self

    def __float__(self) -> float:
        return float(ball_numbers.with_bits(self.enclosed))

    # --- operations -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        other = self.lifted(other)
        if other is None:
            return NotImplemented
        if self.rational is not None and other.rational is not None:
            total = self.rational + other.rational
            return fraction(self.pool, total) if is_short(total) else self.apply("add", *in_order(self, other))
        if self.rational == 0 or other.rational == 0:
            return other if self.rational == 0 else self
        return fraction(self.pool, fmpq(0)) if -self is other else self.apply("add", *in_order(self, other))

    def __mul__(self, other: Any) -> Any:
        other = self.lifted(other)
        if other is None:
            return NotImplemented
        x, y = in_order(self, other)
        if x.rational is not None:
            if x.rational in (0, 1):
                return y if x.rational == 1 else x
            if y.rational is not None and is_short(product := x.rational * y.rational):
                return fraction(self.pool, product)
            if y.rational is None and y.name == "mul" and y.args[0].rational is not None:
                return x * y.args[0] * y.args[1]
        return self.apply("mul", x, y)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> ExactReal:
        return self

    def __sub__(self, other: Any) -> Any:
        other = self.lifted(other)
        return NotImplemented if other is None else self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __abs__(self) -> ExactReal:
        return self if self.sign() >= 0 else -self

    def __truediv__(self, other: Any) -> Any:
        other = self.lifted(other)
        if other is None:
            return NotImplemented
        if other.is_zero():
            raise Undefined(f"div is undefined at {ball_numbers.digits(self.ball, 6)}, 0")
        if self is other:
            return fraction(self.pool, fmpq(1))
        return self * (1 / other.rational) if other.rational is not None else self.apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.lifted(other) / self

    def __pow__(self, n: int) -> Any:
        if n < 0:
            return 1 / self**-n
        if n == 0 or (self.rational is not None and is_short(self.rational, n)):
            return fraction(self.pool, fmpq(1) if n == 0 else self.rational**n)
        return self if n == 1 else self.apply("power", self, n)

    def __le__(self, other: Any) -> bool:
        return bool((self - other).sign() <= 0)

    def __eq__(self, other: object) -> bool:
        number = self.lifted(other)
        return number is self or (number is not None and (self - number).is_zero())

    def __hash__(self) -> int:
        return id(self)

    def raised(self, exponent: Fraction) -> Any:
        """A rational power of a number that is positive, or 0."""
        p, q = exponent.numerator, exponent.denominator
        if q == 1:
            return self**p
        side = self.sign()
        if side < 0:
            raise Undefined("a root of a negative number")
        return self if side == 0 and p > 0 else self.apply("root", self, q) ** p

    def sqrt(self) -> Any:
        return self.raised(Fraction(1, 2))

    def __getattr__(self, name: str) -> Callable[..., ExactReal]:
        if name.startswith("_") or not hasattr(arb, name):
            raise AttributeError(name)
        return partial(self._function, name)

    def _function(self, name: str, *args: Any) -> ExactReal:
        return self.apply(name, self, *[arg if isinstance(arg, int) else self.lifted(arg) for arg in args])

    def pi(self) -> ExactReal:
        return self.apply("pi")

    def hurwitz(self, order: int) -> ExactReal:
        """Hurwitz' zeta function."""
        return self.apply("hurwitz", self, order)


def ball_of(x: Any) -> Any:
    """A number as a ball with the bits that are set now; anything else as it is."""
    return x.enclosed(ctx.prec) if isinstance(x, ExactReal) else x


def apart(x: Any, y: Any) -> bool:
    """Whether two numbers, of which one may be infinite, differ for certain."""
    try:
        return ball_numbers.sign(x - y) != 0 if x.is_finite() and y.is_finite() else x is not y
    except Undecided:
        return False


def fraction(pool: ExpressionPool, value: Any) -> ExactReal:
    """The number of a pool that a fraction is."""
    key = (int(value.p), int(value.q))
    number = pool.get(key)
    if number is None:
        pool[key] = number = ExactReal(pool, "fraction", (), value)
        number.enclosed(START_BITS)
    return number


def is_short(value: Any, times: int = 1) -> bool:
    """Whether a fraction, or a power of it, is kept as one: those of a long recurrence grow without a bound."""
    return bool(max(value.p.bit_length(), value.q.bit_length()) * times <= MOST_RATIONAL)


def in_order(x: ExactReal, y: ExactReal) -> tuple[ExactReal, ExactReal]:
    """Two operands of a sum or a product in an order of their own, fractions first."""
    first, last = sorted((x, y), key=lambda number: (number.rational is None, number.serial))
    return first, last
