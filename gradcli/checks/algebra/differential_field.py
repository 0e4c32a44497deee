"""The elements of a differential field: fractions of polynomials in generators, with relations applied.

A generator is a symbol or a function of forms; `elementary_functions` makes those of functions. A relation is a power
of a generator that equals a form of others, as i*i = -1 or a root's power. Everything has a budget; over it an
operation raises `Undecided`, which counts only where something reads the form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

from flint import Ordering, fmpq, fmpz, fmpz_mpoly_ctx

from gradcli.checks.evaluate.interpretation import Undecided, Undefined, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MOST_TERMS = 4_000
MOST_PAIRS = 200_000  # of terms in one product
MOST_POWER = 512
MOST_BITS = 20_000  # of a coefficient
EXPANDED = 100  # terms of a power; a longer one is a power of a generator
GCD_PAIRS = 60_000  # beyond that a fraction is not reduced to lowest terms


class Full(Unsupported):
    """There are more generators than the ring has; a larger ring may do."""


class Spent(Unsupported):
    """The budget of an attempt is spent."""


def as_number(value: Any) -> fmpq | None:
    """A whole number or a fraction as flint has it; None for anything else."""
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    return fmpq(value) if isinstance(value, (int, fmpz, fmpq)) else None


def product(a: Any, b: Any) -> Any:
    """The product of two polynomials, within the budget."""
    if b.is_one():
        return a
    if len(a) * len(b) > MOST_PAIRS:
        raise Undecided("a product of too many terms")
    return b if a.is_one() else a * b


def exact_quotient(a: Any, b: Any) -> Any:
    return a if b.is_one() else a // b


def leading(poly: Any) -> fmpz:
    """The first coefficient; 0 of the polynomial 0."""
    return fmpz(0) if poly.is_zero() else poly.leading_coefficient()


def substituted(poly: Any, values: Mapping[int, Any], lift: Callable[[Any], Any]) -> Any:
    """A polynomial with values in place of some variables; `lift` makes a value of a polynomial in the others."""
    ring = poly.context()
    parts: dict[tuple[int, ...], dict[Any, Any]] = {}
    for powers, coefficient in poly.terms():
        rest = tuple([0 if i in values else n for i, n in enumerate(powers)])
        parts.setdefault(tuple([int(powers[i]) for i in values]), {})[rest] = coefficient
    total = lift(ring.constant(0))
    for exponents, part in parts.items():
        term = lift(ring.from_dict(part))
        for value, n in zip(values.values(), exponents, strict=True):
            if n:
                term = value**n * term
        total = term + total
    return total


class Key:
    """A polynomial as a key of tables; `str` would do, but leaks memory in python-flint 0.9."""

    __slots__ = ("hash", "poly")

    def __init__(self, poly: Any) -> None:
        self.poly = poly
        self.hash = hash((tuple(poly.degrees()), tuple(poly.coeffs())))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.hash == other.hash and bool(self.poly == other.poly)


def is_number(poly: Any) -> bool:
    """Whether a polynomial is a number; flint looks at every variable for that, so longer ones never get there."""
    return len(poly) < 2 and bool(poly.is_constant())


@dataclass(slots=True, eq=False)
class FieldGenerator:
    """What a generator is: its kind and, for a function, its arguments as forms.

    symbol and literal (with a `value`, a rational), unknown (a symbol without a value), pi, i, exp (of `unit` times the
    argument), root (the argument to the power `unit`, a fraction 1/n), log, angle (of the point x, y, from arguments
    y, x), other functions by their names, held (a form that counts as a constant), named (one that is not written
    out), inverse (one over a form, likewise).
    """

    kind: str
    args: Sequence[Form] = ()
    name: str = field(default="", kw_only=True)
    value: fmpq | None = field(default=None, kw_only=True)
    unit: fmpq = field(default=fmpq(1), kw_only=True)

    def key(self) -> tuple[Any, ...]:
        """What distinguishes generators: not their unit."""
        return (self.kind, self.name, *[arg.key() for arg in self.args])


@dataclass(slots=True, eq=False)
class Form:
    """A fraction of two polynomials of a tower, in lowest terms; with the operators of a number."""

    tower: Tower
    num: Any
    den: Any

    def key(self) -> tuple[Any, ...]:
        """What distinguishes forms of one tower."""
        return (Key(self.num),) if self.den.is_one() else (Key(self.num), Key(self.den))

    @property
    def is_zero(self) -> bool:
        return bool(self.num.is_zero())

    def rational(self) -> fmpq | None:
        """The form as a number, where it is one."""
        if not (is_number(self.num) and is_number(self.den)):
            return None
        return fmpq(leading(self.num), leading(self.den))

    def same(self, other: Form) -> bool:
        """Whether two forms are written alike."""
        return bool(self.num == other.num and self.den == other.den)

    def __add__(self, other: Any) -> Form:
        tower, other = self.tower, self.tower.lift(other)
        if other is None:
            return NotImplemented
        if self.den == other.den:
            return tower.fraction(self.num + other.num, self.den)
        large = len(self.den) * len(other.den) > GCD_PAIRS
        common = tower.one.num if large else self.den.gcd(other.den)
        left, right = exact_quotient(other.den, common), exact_quotient(self.den, common)
        return tower.fraction(product(self.num, left) + product(other.num, right), product(self.den, left))

    def __mul__(self, other: Any) -> Form:
        other = self.tower.lift(other)
        if other is None:
            return NotImplemented
        return self.tower.fraction(product(self.num, other.num), product(self.den, other.den))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return Form(self.tower, -self.num, self.den)

    def __sub__(self, other: Any) -> Form:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Form:
        return (-self).__add__(other)

    def inverse(self) -> Form:
        """One over it; raises Vanishing."""
        tower = self.tower
        if tower.inverting and len(self.num) > 1:
            return tower.poly(self.den) * tower.auxiliary("inverse", self.num)
        return tower.fraction(self.den, self.num)

    def __truediv__(self, other: Any) -> Form:
        other = self.tower.lift(other)
        return NotImplemented if other is None else self * other.inverse()

    def __rtruediv__(self, other: Any) -> Form:
        return self.inverse().__mul__(other)

    def __pow__(self, n: int) -> Form:
        if n < 0:
            return self.inverse() ** -n
        if n > MOST_POWER:
            raise Undecided(f"a power of {n}")
        tower = self.tower
        terms = max(comb(n + max(1, len(poly)) - 1, n) for poly in (self.num, self.den))  # at most
        if terms > MOST_TERMS and not tower.naming:
            raise Undecided(f"more than {MOST_TERMS:,} terms in a power")
        if terms > EXPANDED and tower.naming:
            return tower.auxiliary("named", self.num) ** n / tower.auxiliary("named", self.den) ** n
        return tower.fraction(self.num**n, self.den**n)


SIZES = (16, 48, 128)  # generators; a small ring is the faster one
OVERHEAD = 8  # terms that an operation counts for, whatever its length
MOST_WORK = 1_000_000  # terms; those of a large ring count more
MOST_APART = 400_000  # terms, where denominators are generators


class Tower:
    """Generators, each of them over those before it, and the relations between them."""

    def __init__(self, size: int = SIZES[0], most: int = MOST_WORK) -> None:
        self.ring = fmpz_mpoly_ctx.get([f"g{i}" for i in range(size)], Ordering.lex)
        self.size = size
        self.gens = self.ring.gens()
        self.most = most
        self.work = 0
        self.generators: list[FieldGenerator] = []
        self.known: dict[tuple[Any, ...], int] = {}
        self.relations: dict[int, tuple[int, Form]] = {}  # generator -> (power, the form that it equals)
        self.complex: set[int] = set()
        self.balls: dict[int, dict[int, Any]] = {}  # of generators, by the bits that they were computed with
        self.region: dict[Any, tuple[Form, int]] = {}  # what was decided by its sign, and the sign
        self.naming = True  # whether long powers are powers of generators
        self.inverting = False  # whether denominators of several terms are generators
        self.refined = 0  # how often a generator was replaced by a finer one: forms made before are to be made again
        self.zero = Form(self, self.ring.constant(0), self.ring.constant(1))
        self.one = Form(self, self.ring.constant(1), self.ring.constant(1))

    # --- generators -------------------------------------------------------------------------------------

    def index(self, generator: FieldGenerator, key: tuple[Any, ...] | None = None) -> int:
        """The number of a generator, new unless its key is known."""
        key = key or generator.key()
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self.added(generator)
        return known

    def added(self, generator: FieldGenerator) -> int:
        index = len(self.generators)
        if index >= self.size:
            raise Full(f"more than {self.size} generators")
        self.generators.append(generator)
        inherits = generator.kind in ("exp", "named", "inverse")  # other functions are of real values
        if generator.kind == "i" or (inherits and self.is_complex(generator.args[0])):
            self.complex.add(index)
        return index

    def gen(self, index: int, n: int = 1) -> Form:
        """A generator to a whole power."""
        form = self.poly(self.gens[index])
        return form if n == 1 else form**n

    def refine(self, index: int, generator: FieldGenerator, times: int) -> int:
        """A finer generator in place of one that is its power: from now on only the finer one occurs."""
        finer = self.added(generator)
        self.refined += 1
        self.relations.pop(index, None)
        self.relations[index] = (1, Form(self, self.gens[finer] ** times, self.one.num))
        self.renew()
        self.known[generator.key()] = finer
        return finer

    def renew(self) -> None:
        """Write every argument and relation in the generators that are in use."""
        for i, (power, base) in list(self.relations.items()):
            self.relations[i] = (power, self.renewed(base))
        for generator in self.generators:
            generator.args = [self.renewed(arg) for arg in generator.args]
        retired = {i for i, (power, _) in self.relations.items() if power == 1}
        current = {i for i in self.known.values() if i not in retired}
        self.known = {self.generators[i].key(): i for i in sorted(current)}

    def used(self, form: Form) -> list[int]:
        """The generators that a form is written in."""
        tops, bottoms = form.num.degrees(), form.den.degrees()
        return [i for i in range(len(self.generators)) if tops[i] > 0 or bottoms[i] > 0]

    def auxiliary(self, kind: str, poly: Any) -> Form:
        """A polynomial ("named"), or one over it ("inverse"), as a number times a generator.

        The powers of what is named are not expanded; sums keep denominators that are generators apart.
        """
        if len(poly) == 1:
            return self.poly(poly)
        content = poly.content() * (-1 if leading(poly) < 0 else 1)
        primitive = self.poly(exact_quotient(poly, self.ring.constant(content)))
        unit = 1 if kind == "named" else -1
        return self.gen(self.index(FieldGenerator(kind, [primitive], unit=fmpq(unit)))) * self.number(content) ** unit

    def moves(self, form: Form) -> bool:
        """Whether a form depends on a symbol, or on what is held."""
        pending, seen = self.used(form), set[int]()
        while pending:
            index = pending.pop()
            if index not in seen:
                seen.add(index)
                generator = self.generators[index]
                if generator.kind in ("symbol", "held"):
                    return True
                pending += [i for arg in generator.args for i in self.used(arg)]
        return False

    def note(self, form: Form, side: int) -> None:
        """A form whose sign at the point was used: the proof holds where it is the same."""
        if form.rational() is None:
            self.region.setdefault(form.key(), (form, side))

    def is_complex(self, form: Form) -> bool:
        """Whether a form is written with complex generators, although its value may be real."""
        return bool(self.complex) and not self.complex.isdisjoint(self.used(form))

    @property
    def i(self) -> Form:
        index = self.index(FieldGenerator("i"))
        self.relations.setdefault(index, (2, -self.one))
        return self.gen(index)

    @property
    def pi(self) -> Form:
        return self.gen(self.index(FieldGenerator("pi")))

    # --- fractions ------------------------------------------------------------------------------------------

    def number(self, value: Any) -> Form:
        """A rational number as a form."""
        value = fmpq(value)
        return Form(self, self.ring.constant(value.p), self.ring.constant(value.q))

    def lift(self, value: Any) -> Any:
        """A form from a form or a number; None for anything else."""
        if isinstance(value, Form):
            return value
        number = as_number(value)
        return None if number is None else self.number(number)

    def poly(self, num: Any) -> Form:
        """A polynomial as a form."""
        return self.fraction(num, self.one.num)

    def renewed(self, form: Form) -> Form:
        """A form in the generators that are in use now."""
        return self.fraction(form.num, form.den)

    def fraction(self, num: Any, den: Any) -> Form:
        """A fraction with the relations applied and common factors removed."""
        self.spend(len(num) + len(den))
        if self.relations:
            (num, below), (den, above) = self.reduced(num), self.reduced(den)
            num, den = product(num, above), product(den, below)
        if den.is_zero():
            raise Undefined("division by an expression that vanishes")
        if num.is_zero():
            return self.zero
        if len(num) > MOST_TERMS or len(den) > MOST_TERMS:
            raise Undecided(f"more than {MOST_TERMS:,} terms")
        if not den.is_one():
            if len(num) * len(den) <= GCD_PAIRS:
                num, den = self._lowest(num, den)
            if self.relations and not is_number(den):
                num, den, again = self.rationalised(num, den)
                if again:
                    return self.fraction(num, den)
            if den.leading_coefficient() < 0:
                num, den = -num, -den
        if max(num.leading_coefficient().bit_length(), den.leading_coefficient().bit_length()) > MOST_BITS:
            raise Undecided("a number with too many digits")
        return Form(self, num, den)

    def _lowest(self, num: Any, den: Any) -> tuple[Any, Any]:
        """A fraction without its common factors."""
        if is_number(den):
            self.spend(0)
            content = num.content().gcd(den.leading_coefficient())
            if content == 1:
                return num, den
            common = self.ring.constant(content)
        else:
            self.spend(len(num) * len(den) // 16)
            common = num.gcd(den)
            if common.is_one():
                return num, den
        return exact_quotient(num, common), exact_quotient(den, common)

    def spend(self, work: int) -> None:
        """Count some work, in terms; raise Spent where the budget is over."""
        self.work += (OVERHEAD + work) * (self.size + 16) // 32
        if self.work > self.most:
            raise Spent("a proof that is too long")

    def rationalised(self, num: Any, den: Any) -> tuple[Any, Any, bool]:
        """A fraction whose denominator is free of i, and has no root as a factor."""
        degrees = den.degrees()
        for index, (power, _) in self.relations.items():
            n = degrees[index]
            if not n or power == 1:
                continue
            monomial = self.gens[index] ** n
            if divmod(den, monomial)[1].is_zero():
                lift = self.gens[index] ** (power - n)
                return product(num, lift), product(den, lift), True
            if self.generators[index].kind == "i":
                other = den - 2 * product(den // self.gens[index], self.gens[index])
                return product(num, other), product(den, other), True
        return num, den, False

    def reduced(self, poly: Any) -> tuple[Any, Any]:
        """A polynomial with every power below the one that a relation replaces, and what that is over."""
        below = self.one.num
        if is_number(poly):
            return poly, below
        degrees = poly.degrees()
        again = True
        while again:
            again = False
            for index, (power, base) in self.relations.items():
                if degrees[index] < power:
                    continue
                again = True
                poly, factor = self._replaced(poly, index, power, base)
                below = product(below, factor)
                degrees = poly.degrees()
        return poly, below

    def _replaced(self, poly: Any, index: int, power: int, base: Form) -> tuple[Any, Any]:
        """A polynomial with every whole `power` of a generator replaced, by Horner's rule, and what that is over."""
        self.spend(len(poly))
        gen = self.gens[index] ** power
        parts = []  # by how often the power is a factor
        while not poly.is_zero():
            poly, rest = divmod(poly, gen)
            parts.append(rest)
        num, den = parts.pop(), self.one.num
        while parts:
            den = product(den, base.den)
            num = product(num, base.num) + product(parts.pop(), den)
            self.spend(len(num))
        return num, den
