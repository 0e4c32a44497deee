"""Rigorous enclosures of the values of a program, and of how they move; only `ball` and `entries` rules are read.

Every entry is a ball of python-flint's arb, which surely contains the exact value, or a series with such coefficients.
Literals are exact decimals, leaves are the doubles that they are. What has no real value is a `Failure` in place of an
entry, so a branch that is not taken does no harm. The precision is global to the process: only the oracle's own process
imports this module.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import acb, arb, arb_mat, arb_series, ctx, fmpq, fmpz

from gradcli.checks.evaluate.ball_numbers import GOOD_BITS, SPARE, SPARE_BITS, WANTED, digits, settled, sign, with_bits
from gradcli.checks.evaluate.evaluation import FieldEvaluation, exact_number, work_of
from gradcli.checks.evaluate.interpretation import (
    Entries,
    Failure,
    Field,
    Tie,
    Unclear,
    Undecided,
    Undefined,
    Unsupported,
)
from gradcli.checks.expansions.complex_numbers import ComplexEntry, angle, at_point
from gradcli.checks.expansions.exact_reals import ExactReal, ExpressionPool, ball_of, fraction
from gradcli.checks.expansions.log_puiseux import EITHER, Expansion, Huge, TracedExpansion, either, rational
from gradcli.checks.expansions.power_series import Moving, Series, coefficients
from gradcli.checks.formatting import node_text
from gradcli.execution.namespaces.cauchy import inside, series_of
from gradcli.graph.exact import last_unit
from gradcli.graph.node import reachable
from gradcli.primitives.contraction import matmul
from gradcli.primitives.exact_matrices import matrices
from gradcli.primitives.matrix_functions import cholesky, qr_q
from gradcli.primitives.powers import pow_

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

    Point = Mapping[str, tuple[Sequence[float], tuple[int, ...]]]
    Function = Callable[..., Any]

SHOWN = 6  # digits of a number in a message
THIRD = Fraction(1, 3)
SMALL = 256  # products of so few entries are faster one by one


def product(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A faster rule for products of matrices of balls or series; `otherwise` is the declared rule, for all others."""

    def entries(f: Any, x: Entries, y: Entries) -> Any:
        rows, inner, columns = *x.shape[-2:], y.shape[-1]
        moving = [entry for operand in (x, y) for entry in operand.flat if type(entry) is not arb]
        small = rows * inner * columns < SMALL
        if small or not all(type(entry) is Series for entry in moving) or len({entry.s.prec for entry in moving}) > 1:
            return otherwise(f, x, y)
        order = moving[0].s.prec if moving else 1
        flat: list[Any] = []
        for left, right in zip(*[map(coefficients, matrices(operand)) for operand in (x, y)], strict=True):
            pairs = [[(i, k - i) for i in range(k + 1) if i < len(left) and k - i < len(right)] for k in range(order)]
            products = [sum((left[i] * right[j] for i, j in pair), arb_mat(rows, columns)).entries() for pair in pairs]
            flat += [Series(arb_series(list(own), order)) if moving else own[0] for own in zip(*products, strict=True)]
        return f.array(flat, (*x.shape[:-1], columns))

    return entries


MOST_EXACT = 100_000  # operations on single entries of one walk in exact numbers
MOST_ANALYTIC_BITS = 1024  # of a special function whose series is integrated: each doubling takes up to 8 times as long
FEW_DIGITS = 3  # a bare number of fewer digits is meant exactly
MOST_CONSTANTS = 4096  # that a field remembers, for it serves program after program
NOISE = 2.0**-24  # of the largest carry: a ball around 0 of this size is noise, and no number that has been lost


class Literals(NamedTuple):
    """How decimals are read: by default as the exact numbers that they are.

    `wide` gives literals of many digits a radius of one unit of the last digit, and of `rounding` times their size
    where that is more; `printed` gives every decimal of three digits or more a radius of half a unit. `decimal` reads
    leaves and data as the shortest decimals of their doubles, the way people write them.
    """

    wide: bool = False
    decimal: bool = False
    printed: bool = False
    rounding: float = 0.0


EXACT = Literals()
NAMED = {"pi": arb.pi, "e": arb.const_e, "inf": arb.pos_inf, "-inf": arb.neg_inf}


class InexactPower(Exception):
    """A power, on one side of a point, whose exponent is no number of so many bits: the graph may have its fraction."""


class BallField(Field):
    """Arithmetic on balls, and on entries that move along a direction: the `fl` of `ball` rules.

    An entry that does not depend on the direction stays a ball; one that does is a power series, or on one side of a
    point an expansion. `signs` collects what decided branches: the region that a result is true in.
    """

    plane = False  # whether entries are complex
    along = Expansion.along  # what an entry is that moves to one side

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__()
        self.literals = literals
        self.rounded = literals.wide or literals.printed
        self.zero = arb(0)
        self.signs: list[int] = []
        self._constants = lru_cache(MOST_CONSTANTS)(self._constant)

    # --- numbers ----------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        """A rational number, as narrow a ball as the precision allows."""
        if isinstance(value, int):
            return arb(fmpz(value))
        return arb(fmpq(value.numerator, value.denominator))

    integer = number

    def pi(self) -> Any:
        return arb.pi()

    def constant(self, value: Any) -> Any:
        return self._constants(value)

    def _constant(self, value: Any) -> Any:
        if isinstance(value, str):
            return NAMED[value]() if value in NAMED else Undefined(f"the constant {value}")
        exact = self.number(value)
        unit = last_unit(value) if self.literals.wide else None
        if unit is not None:
            unit = max(unit, abs(Fraction(value)) * Fraction(self.literals.rounding))
        elif self.literals.printed and (unit := last_unit(value, FEW_DIGITS)) is not None:
            unit = Fraction(unit) / 2
        return exact if unit is None else exact + arb(0, 1) * self.number(unit)

    def datum(self, value: Any) -> Any:
        if isinstance(value, float) and math.isfinite(value):
            return self.number(Fraction(repr(value))) if self.literals.decimal else arb(value)
        return value if type(value) is arb else super().datum(value)  # a ball: of a box

    # --- the real numbers that entries consist of -------------------------------------------------------

    def parts(self, flat: Sequence[Any]) -> Sequence[Any]:
        """The real numbers that entries consist of: of complex ones the real and the imaginary part of each."""
        return flat

    def slopes(self, flat: Sequence[Any]) -> Sequence[Any]:
        """The partials by real numbers in the entries of a gradient: dL/dx and dL/dy of dL/dx - i*dL/dy."""
        return flat

    def joined(self, parts: Sequence[Any], before: Sequence[Any]) -> Sequence[Any]:
        """Entries from their real parts; where no part has changed, the entry of `before` itself."""
        return parts

    # --- decisions --------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """-1, 0 or 1; raises Undecided where a ball holds numbers of several signs, Tie where a moving one is 0."""
        side = sign(x)
        if type(x) is not arb or not x.is_exact():
            self.signs.append(side)
        return side

    def vanishes(self, x: Any) -> bool:
        """Whether an entry is 0."""
        return self.sign(x) == 0

    def index(self, x: Any) -> int:
        if not x.is_integer():
            raise Undefined("an index that is not a whole number")
        return int(x.unique_fmpz())

    def undefined(self, reason: str) -> Any:
        raise Undefined(reason)

    # --- functions that differ by the kind of number ------------------------------------------------------

    def sqrt(self, x: Any) -> Any:
        return x.sqrt()

    at_point = staticmethod(at_point)

    def whole_power(self, x: Any, n: int) -> Any:
        """x**n; python-flint's own has no value on a ball with 0 in its middle."""
        if type(x) is not arb or n == 0 or x.is_exact() or not x.mid().is_zero():
            return x**n
        half = self.whole_power(x, n // 2) if n > 1 else arb(1)
        return half * half * x if n % 2 else half * half

    def positive_power(self, x: Any, y: Any) -> Any:
        """x**y for x > 0."""
        if not isinstance(x, Expansion) or type(y) is not arb:
            return (y * x.log()).exp()
        if not y.is_exact():
            raise InexactPower(x, y)
        return x.power(y)

    def cube_root(self, x: Any) -> Any:
        """Of x > 0."""
        return x.raised(THIRD) if isinstance(x, Expansion) else (x.log() / 3).exp()

    def angle(self, y: Any, x: Any) -> Any:
        """Of the point (x, y)."""
        return angle(y, x, self.sign)

    def zeta(self, s: int, x: Any) -> Any:
        """Hurwitz' zeta function, the sum of 1/(x + k)**s over k = 0, 1, 2, ..."""
        return arb(s).zeta(x) if type(x) is arb else x.hurwitz(s)

    def is_still(self, x: Any) -> bool:
        """Whether an entry does not move."""
        return not isinstance(x, Moving)

    def analytic(self, function: Function, domain: Sequence[Interval], *xs: Any, orders: Sequence[int] = ()) -> Any:
        """A function of complex balls, or a partial derivative of it, at arguments of which some may move.

        It is analytic where the real parts of its arguments are inside a domain.
        """
        moving: list[Any] = [x for x in xs if isinstance(x, Moving)]
        if not moving and not any(orders):
            value = function(*map(acb, xs))
            if not value.imag.contains(0):
                raise Undefined("a special function that is not real here")
            return value.real
        if ctx.prec > MOST_ANALYTIC_BITS:
            raise Undecided(f"a special function of more than {MOST_ANALYTIC_BITS:,} bits")
        sides = [x for x in moving if type(x) is not Series]
        if sides and len(moving) > 1:
            raise Unclear("a special function of several arguments that move to one side")
        parts = [x.split() for x in sides]
        if any(grown.terms for grown, _, _ in parts):
            raise Unclear("a special function of an unbounded argument")
        series = [x.s for x in moving] if not sides else [arb_series([parts[0][1], 1], ctx.cap)]
        terms = min([s.prec for s in series], default=1)
        along = [coefficients_along([x] if type(x) is arb else series[moving.index(x)].coeffs()) for x in xs]
        if not inside(domain, [acb(x(acb(0)).real.mid()) for x in along]):
            raise Unclear("a special function at the edge of its domain")
        known = [x.real for x in series_of(function, domain, along, terms, orders)]
        if not all(x.is_finite() for x in known):
            raise Undecided("a special function that is not known to be smooth here")
        if sides:
            return parts[0][2].composed(known)
        return Series(arb_series(known, terms)) if moving else known[0]

    def derivative(self, function: Function, orders: Sequence[int], domain: Sequence[Interval], *xs: Any) -> Any:
        """A partial derivative of such a function."""
        return self.analytic(function, domain, *xs, orders=orders)

    # --- loops ------------------------------------------------------------------------------------------

    def detached(self, node: Node, x: Entries) -> Entries:
        """The constant terms of series, for the iterations of a loop, whose values at the point are not kept."""
        return Entries([self.still(node, entry) for entry in x.flat], x.shape)

    def still(self, node: Node, x: Any) -> Any:
        """An entry as it is at the point."""
        if type(x) is Series:
            return x.constant
        return Unclear("a detached value in a loop", node) if isinstance(x, Moving) else x

    def is_lost(self, state: Sequence[Entries], done: int, count: int) -> bool:
        """Whether a carry has no digits left after so many iterations; the bits that all need are then `WANTED`.

        The digits that an iteration takes do not depend on how many there are.
        """
        bits: int = ctx.prec
        least, lost = bits, False
        entries = [x for carry in state for x in carry.flat]
        balls = [[x.s[k] for k in range(min(2, x.s.length()))] for x in entries if isinstance(x, Series)]
        for same_order in zip_longest(*balls, *([x] for x in entries if type(x) is arb)):  # values, then slopes
            known = [x for x in same_order if x is not None and not x.is_exact()]
            noise = NOISE * max([float(abs(x.mid())) for x in known], default=0.0)
            for x in known:
                good = x.rel_accuracy_bits()
                if good > 0:
                    least = min(least, good)
                lost = lost or (good <= 0 and bool(x.rad() > noise))
        gone = lost and done < count
        if gone or (done == count and least < GOOD_BITS + SPARE):
            used = bits if gone else bits - least
            wanted = int(SPARE_BITS + 1.1 * used * count / done)
            WANTED.append((1 << (wanted - 1).bit_length(), done / count))
        return gone

    # --- steps ------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.ball

    def array_rule(self, node: Node, closed: bool = True) -> Callable[..., Any] | None:
        from gradcli.checks.derivatives.matrices import rule_of

        rule = node.primitive.entries
        if rule is None:
            return rule_of(node, closed and not self.plane)
        return product(rule) if node.primitive is matmul else rule

    def failure_of(self, node: Node, reason: Exception) -> Any:
        if isinstance(reason, InexactPower):
            base, exponent = reason.args
            known = node.primitive is pow_ and not self.rounded
            exact = exact_number(node.args[1]) if known else None
            return self.apply(node, lambda *_, **__: base.power(exponent) if exact is None else base.raised(exact), ())
        if isinstance(reason, (ZeroDivisionError, OverflowError, ValueError)):
            return Undecided(str(reason), node)
        return super().failure_of(node, reason)

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        """A result; where it is not finite, why: outside the domain, a tie, too few bits, or too large."""
        kind, name = type(result), node.primitive.name
        if kind is not arb and kind is not Series:
            return result
        if result.is_finite():
            public = node.primitive.real_only and not node.primitive.internal
            return (public and self.outside(node, operands)) or result
        value, balls = at_point(result), [at_point(x) for x in operands if type(x) in (arb, Series)]
        exact = all(x.is_exact() for x in balls)
        few_bits = Undecided(f"{name} needs more digits", node)
        if value.is_finite():
            return Tie(f"{name} has no derivative here", node) if exact else few_bits
        if (failure := self.outside(node, operands)) is not None:
            return failure
        if not all(x.is_finite() for x in balls):
            return Unclear(f"{name} of an infinite value", node) if value.is_nan() else value
        if not exact:
            return few_bits
        if not value.is_nan():
            return Unclear(f"{name} is too large a number", node)
        at = f"is undefined at {', '.join(digits(x, SHOWN) for x in balls)}"
        return Undefined(f"{name} {at if node.primitive.pointwise else 'has no value here'}", node)

    def outside(self, node: Node, operands: Sequence[Any]) -> Undefined | None:
        """Why an operation has no value for some operands: one of them lies outside its domain."""
        for position, (x, domain) in enumerate(zip(operands, node.primitive.domain, strict=False)):
            if type(x) in (arb, Series) and is_outside(at_point(x), domain):
                from gradcli.graph.node_text import operand_texts  # the writer of formulas: seldom needed here

                texts = operand_texts([node_text(arg) for arg in node.args])
                which = f"{texts[position]} = " if len(texts) > 1 else ""
                return Undefined(f"{node.primitive.name} is undefined at {which}{digits(at_point(x), SHOWN)}", node)
        return None


def coefficients_along(coefficients: Sequence[Any]) -> Callable[[Any], Any]:
    """The polynomial with some coefficients."""
    return lambda t: reduce(lambda total, c: total * t + c, reversed(coefficients), acb(0))


# --- exact entries -----------------------------------------------------------------------------------------


class ExactField(BallField):
    """Arithmetic on exact real numbers, and on one side of a point on expansions of them: for what no ball decides."""

    along = TracedExpansion.along

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__(literals)
        self.pool = ExpressionPool()
        self.zero: Any = self.number(0)

    def number(self, value: int | Fraction) -> Any:
        return fraction(self.pool, fmpq(value.numerator, value.denominator))

    integer = number

    def pi(self) -> Any:
        return self.number(0).pi()

    def _constant(self, value: Any) -> Any:
        named = {"pi": self.pi, "e": self.number(1).exp}
        return named[value]() if value in named else super()._constant(value)

    def datum(self, value: Any) -> Any:
        number = value if isinstance(value, ExactReal) else super().datum(value)
        return self.number(0).lifted(number) if type(number) is arb else number

    def array_rule(self, node: Node, closed: bool = True) -> Callable[..., Any] | None:
        from gradcli.checks.derivatives.matrices import DEGREES, of_exact_numbers

        rule = super().array_rule(node, closed)
        if rule is None or node.primitive.entries is not None:
            return rule
        return of_exact_numbers(rule, BallField(), None if self.plane else DEGREES.get(node.primitive.name))

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        result = super().apply(node, rule, xs)
        choices = EITHER.get(node.primitive.name)
        if choices is not None and isinstance(result, Unclear) and result not in xs:
            result = self.hull(result, *choices(*xs, **node.params))
        return TracedExpansion(result, self.pool, "plain", object()) if type(result) is Expansion else result

    def either(self, condition: Failure, x: Any, y: Any) -> Any:
        return self.hull(condition, x, y) if isinstance(condition, Unclear) else condition

    def hull(self, reason: Failure, *xs: Any) -> Any:
        """What may be any of some entries; the reason why they are not told apart, where nothing is known of it."""
        try:
            return next((x for x in xs if isinstance(x, Failure)), None) or reduce(either, xs)
        except Unclear:
            return reason

    def positive_power(self, x: Any, y: Any) -> Any:
        general = not isinstance(y, ExactReal) or (y.rational is None and isinstance(x, ExactReal))
        if general or isinstance(x, Huge):
            return (y * x.log()).exp()
        return x.power(y) if y.rational is None else x.raised(rational(y))

    def cube_root(self, x: Any) -> Any:
        return x.raised(THIRD)

    def analytic(self, function: Function, domain: Sequence[Interval], *xs: Any, orders: Sequence[int] = ()) -> Any:
        raise Unclear("a special function of exact numbers")

    def zeta(self, s: int, x: Any) -> Any:
        return x.hurwitz(s)


# --- complex entries ---------------------------------------------------------------------------------------


class ComplexField(BallField):
    """Arithmetic on complex entries, at a point and along a direction; only real ones have an order.

    Rules that are written with an order have another one in `COMPLEX`. Functions of real numbers, and all that compares
    numbers, take complex entries only where these are real.
    """

    plane = True

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__(literals)
        self.zero = ComplexEntry(arb(0))

    # --- numbers ----------------------------------------------------------------------------------------------

    def _constant(self, value: Any) -> Any:
        return real(super()._constant(value))

    def datum(self, value: Any) -> Any:
        if not isinstance(value, complex):
            return real(super().datum(value))
        if not (math.isfinite(value.real) and math.isfinite(value.imag)):
            return Undefined(f"a value of {value}")
        return ComplexEntry(arb(value.real), arb(value.imag))

    def parts(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, x.y))]

    def slopes(self, flat: Iterable[Any]) -> list[Any]:
        return [part for x in flat for part in ((x, x) if isinstance(x, Failure) else (x.x, -x.y))]

    def joined(self, parts: Sequence[Any], before: Sequence[Any]) -> list[Any]:
        entries = []
        for x, y, old in zip(parts[::2], parts[1::2], before, strict=True):
            same = isinstance(old, Failure) or (x is old.x and y is old.y)
            entries.append(old if same else ComplexEntry(x, y))
        return entries

    # --- decisions --------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        if not isinstance(x, ComplexEntry):
            return super().sign(x)
        if x.pure:
            return super().sign(x.x)
        raise Unsupported("complex numbers have no order")

    def vanishes(self, x: Any) -> bool:
        return self.sign(x) == 0 if not isinstance(x, ComplexEntry) or x.pure else not x.differs_from_zero()

    # --- steps ------------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return COMPLEX.get(primitive.name) or primitive.ball

    def array_rule(self, node: Node, closed: bool = True) -> Callable[..., Any] | None:
        if node.primitive in (cholesky, qr_q):
            raise Unsupported(f"{node.primitive.name} of complex matrices")
        return super().array_rule(node, closed)

    def still(self, node: Node, x: Any) -> Any:
        if not isinstance(x, ComplexEntry):
            return x
        parts = [super(ComplexField, self).still(node, part) for part in (x.x, x.y)]
        return next((part for part in parts if isinstance(part, Failure)), ComplexEntry(*parts))

    def analytic(self, function: Function, domain: Sequence[Interval], *xs: Any, orders: Sequence[int] = ()) -> Any:
        return super().analytic(function, domain, *real_parts(xs, "a special function"), orders=orders)

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        return super().apply(node, rule, real_parts(xs, node.primitive.name) if node.primitive.real_only else xs)

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        result = real(result)
        if not isinstance(result, ComplexEntry) or result.is_finite():
            return result
        exact = all(x.is_exact() for x in operands if isinstance(x, ComplexEntry))
        smooth = at_point(result.x).is_finite() and at_point(result.y).is_finite()
        kind = Undefined if exact and not smooth else Undecided
        return kind(f"{node.primitive.name} has no value here", node)


class ExactComplexField(ComplexField, ExactField):
    """Arithmetic on complex entries of exact real numbers."""

    def datum(self, value: Any) -> Any:
        if not isinstance(value, complex):
            return real(ExactField.datum(self, value))
        ball = super().datum(value)
        return (
            ball
            if isinstance(ball, Failure)
            else ComplexEntry(self.number(0).lifted(ball.x), self.number(0).lifted(ball.y))
        )


def real_parts(xs: Sequence[Any], what: str) -> tuple[Any, ...]:
    """The operands of a real operation; raises Unsupported where one of them is complex."""
    if any(isinstance(x, ComplexEntry) and not x.pure for x in xs):
        raise Unsupported(f"{what} of complex numbers")
    return tuple([x.x if isinstance(x, ComplexEntry) else x for x in xs])


def real(x: Any) -> Any:
    """A real entry as a complex one."""
    return ComplexEntry(x) if isinstance(x, (arb, ExactReal, Series, Expansion, Huge)) else x


# operations that are written with an order
COMPLEX: dict[str, Callable[..., Any]] = {
    "equal": lambda fl, x, y: fl.vanishes(x - y),
    "not_equal": lambda fl, x, y: not fl.vanishes(x - y),
    "pow": lambda fl, x, y: x.power(y),
    "xlogy": lambda fl, x, y: fl.zero if x.is_zero() else x * y.log(),
}


# --- balls -------------------------------------------------------------------------------------------------


def is_outside(x: Any, domain: Interval) -> bool:
    """Whether a ball lies outside an interval for certain."""
    edges = ((domain.low, domain.low_open, 1), (domain.high, domain.high_open, -1))
    try:
        inside = [side * sign(x - arb(edge)) >= int(is_open) for edge, is_open, side in edges if math.isfinite(edge)]
    except Undecided:
        return False
    return not all(inside)


# --- values of programs --------------------------------------------------------------------------------------


def entries_of(field: BallField, point: Point) -> dict[str, Entries]:
    """A point as balls."""
    return {name: Entries([field.datum(value) for value in flat], shape) for name, (flat, shape) in point.items()}


def read(
    field: BallField, nodes: Sequence[Node], point: Point, fixed: Mapping[Node, Entries] | None = None
) -> list[Entries]:
    """The entries of some nodes at a point, with the bits that are set now; some may be `fixed`."""
    return FieldEvaluation(field, entries_of(field, point), fixed).read(nodes)


def enclose(
    nodes: Sequence[Node], point: Point, fixed: Callable[[BallField], Mapping[Node, Entries]] = lambda field: {}
) -> list[Entries]:
    """The entries of some nodes with 56 good bits, as far as 8,192 bits and the budget of `doubling` allow.

    Where that leaves a sign open, exact numbers may decide it. `fixed` gives the entries of some nodes in a field.
    Raises Unsupported for an operation without a rule.
    """
    work = work_of(reachable(nodes))

    def good(values: list[Entries]) -> bool:
        return all(settled(x) for entries in values for x in entries.flat)

    def reading(field: BallField) -> list[Entries]:
        return read(field, nodes, point, fixed(field))

    values: list[Entries] = with_bits(lambda bits: reading(BallField()), good, work)
    if work <= MOST_EXACT and any(isinstance(x, Undecided) for entries in values for x in entries.flat):
        exact = reading(ExactField())
        values = with_bits(lambda bits: [Entries(map(ball_of, row.flat), row.shape) for row in exact], good)
    return values
