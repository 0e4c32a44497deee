"""Rigorous enclosures of the values of a program; only `ball` and `entries` rules are read.

Every entry is a ball of python-flint's arb: it surely contains the exact value. Literals are exact decimals, leaves are
the doubles that they are. What has no real value is a `Failure` in place of an entry, so a branch that is not
taken does no harm. The precision is global to the process: only the oracle's own process imports this module.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, arb_mat, arb_series, ctx, fmpq, fmpz

from gradcli.checks.evaluate.ball_numbers import (
    GOOD_BITS,
    SPARE,
    SPARE_BITS,
    WANTED,
    digits,
    settled,
    sign,
    with_bits,
)
from gradcli.checks.evaluate.evaluation import Reading, work_of
from gradcli.checks.evaluate.interpretation import (
    FEW_DIGITS,
    Entries,
    Failure,
    Field,
    Undecided,
    UndefinedAt,
    last_unit,
)
from gradcli.checks.formatting import node_text
from gradcli.graph.node import reachable
from gradcli.graph.text import operand_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.evaluate.interpretation import Entries
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

    Matrix = Any  # python-flint's
    Point = Mapping[str, tuple[Sequence[float], tuple[int, ...]]]

SHOWN = 6  # digits of a number in a message
SMALL = 64  # products of so few entries are as fast one by one


def product(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a matrix product; `otherwise` is the declaration's, for what is not a matrix of numbers."""

    def entries(f: Any, x: Entries, y: Entries) -> Any:
        rows, inner, columns = x.shape[-2], x.shape[-1], y.shape[-1]
        kinds = {type(entry) for one in (x, y) for entry in one.flat}
        moving = kinds - {arb}
        if rows * inner * columns < SMALL or not all(hasattr(kind, "s") for kind in moving) or len(moving) > 1:
            return otherwise(f, x, y)
        lengths = {entry.s.prec for one in (x, y) for entry in one.flat if type(entry) is not arb}
        if len(lengths) > 1:
            return otherwise(f, x, y)
        terms = lengths.pop() if lengths else 1
        flat: list[Any] = []
        for block in range(len(x.flat) // (rows * inner)):
            left = coefficients(x.flat[block * rows * inner : (block + 1) * rows * inner], rows, inner, terms)
            right = coefficients(y.flat[block * inner * columns : (block + 1) * inner * columns], inner, columns, terms)
            found = [whole(left, right, k) for k in range(terms)]
            if moving:
                kind = next(iter(moving))
                lists = [made.entries() if made is not None else None for made in found]
                for i in range(rows * columns):
                    own = [arb(0) if one is None else one[i] for one in lists]
                    flat.append(kind(arb_series(own, terms)))
            else:
                assert found[0] is not None
                flat += found[0].entries()
        return f.array(flat, (*x.shape[:-1], columns))

    return entries


def coefficients(flat: Sequence[Any], rows: int, columns: int, terms: int) -> list[Matrix | None]:
    """The matrices of the coefficients of each power; None for one that is 0."""
    found: list[Matrix | None] = []
    for k in range(terms):
        if k and all(type(x) is arb for x in flat):
            found.append(None)
            continue
        own = [(x if k == 0 else 0) if type(x) is arb else x.s[k] for x in flat]
        found.append(arb_mat(rows, columns, own))
    return found


def whole(left: Sequence[Matrix | None], right: Sequence[Matrix | None], k: int) -> Matrix | None:
    """The coefficient of power k of a product."""
    total: Matrix | None = None
    for i in range(k + 1):
        one, other = left[i], right[k - i]
        if one is not None and other is not None:
            total = one * other if total is None else total + one * other
    return total


MOST_CONSTANTS = 4096  # of a field
NOISE = 2.0**-24  # of the largest carry: a ball around 0 of this size is noise, and no number that has been lost


class Literals(NamedTuple):
    """How decimals are read: as what they are, if nothing else is said.

    `wide` gives literals of many digits a radius of one unit of the last digit, and of `rounding` times their size
    where that is more; `printed` gives every decimal of three digits or more a radius of half a unit. `decimal` reads
    leaves and data as the shortest decimals of their doubles, the way people write them.
    """

    wide: bool = False
    decimal: bool = False
    printed: bool = False
    rounding: float = 0.0


EXACT = Literals()


class BallField(Field):
    """Arithmetic on balls, and what `ball` rules call `fl`: numbers, signs, and a way to say "undefined"."""

    plain = frozenset((arb,))
    plane = False  # whether entries are complex

    def __init__(self, literals: Literals = EXACT) -> None:
        super().__init__()
        self.literals = literals
        self.rounded = literals.wide or literals.printed
        self.zero = arb(0)
        self.one = arb(1)
        self._constants: dict[Any, Any] = {}

    # --- numbers ----------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        """A rational number, as narrow a ball as the precision allows."""
        if isinstance(value, int):
            return arb(fmpz(value))
        return arb(fmpq(value.numerator, value.denominator))

    def integer(self, value: int) -> Any:
        return arb(fmpz(value))

    def pi(self) -> Any:
        return arb.pi()

    def constant(self, value: Any) -> Any:
        known = self._constants.get(value)
        if known is None:
            if len(self._constants) >= MOST_CONSTANTS:  # a field serves program after program
                self._constants.clear()
            known = self._constants[value] = self._constant(value)
        return known

    def _constant(self, value: Any) -> Any:
        if isinstance(value, str):
            named: dict[str, Callable[[], Any]] = {
                "pi": arb.pi,
                "e": arb.const_e,
                "inf": arb.pos_inf,
                "-inf": arb.neg_inf,
            }
            return named[value]() if value in named else Failure("undefined", None, f"the constant {value}")
        exact = self.number(value)
        unit = last_unit(value) if self.literals.wide else None
        if unit is not None:
            unit = max(unit, abs(Fraction(value)) * Fraction(self.literals.rounding))
        if unit is None and self.literals.printed:
            unit = last_unit(value, FEW_DIGITS)
            unit = None if unit is None else unit / 2
        return exact if unit is None else exact + arb(0, 1) * self.number(unit)

    def datum(self, value: Any) -> Any:
        return self.leaf(value) if isinstance(value, float) else self.constant(value)

    def leaf(self, value: Any) -> Any:
        """An entry of a leaf: a finite double, or a ball of a box."""
        if type(value) is arb:
            return value
        if not math.isfinite(value):
            return Failure("undefined", None, f"a value of {value}")
        return self.number(Fraction(repr(value))) if self.literals.decimal else arb(value)

    # --- the real numbers that entries consist of -------------------------------------------------------

    def parts(self, flat: Sequence[Any]) -> Sequence[Any]:
        """Entries as real ones: of complex entries the real and the imaginary part of each."""
        return flat

    def slopes(self, flat: Sequence[Any]) -> Sequence[Any]:
        """The slopes by real parts in the entries of a gradient: of dL/dx - i*dL/dy both."""
        return flat

    def joined(self, parts: Sequence[Any], before: Sequence[Any]) -> Sequence[Any]:
        """Entries from their real parts; where no part has changed, the entry of `before` itself."""
        return parts

    # --- decisions --------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """-1, 0 or 1; raises Undecided where the ball holds numbers of several signs. The only comparison of balls."""
        if isinstance(x, Failure):
            raise Undecided(x.reason)
        return sign(x)

    def undefined(self, reason: str) -> Any:
        raise UndefinedAt(reason)

    def whole_power(self, x: Any, n: int) -> Any:
        """x**n; python-flint's own has no value on a ball with 0 in its middle."""
        if type(x) is not arb or n == 0 or x.is_exact() or not x.mid().is_zero():
            return x**n
        half = self.whole_power(x, n // 2) if n > 1 else arb(1)
        return half * half * x if n % 2 else half * half

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.sqrt()

    def log(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.log()

    def index(self, x: Any) -> int:
        if isinstance(x, Failure) or not x.is_integer():
            raise UndefinedAt("an index that is not a whole number")
        return int(x.unique_fmpz())

    # --- loops ------------------------------------------------------------------------------------------

    def is_lost(self, state: Sequence[Entries], done: int, count: int) -> bool:
        """Whether a carry has no digits left after so many turns; the bits that all turns need are then `WANTED`.

        The digits that a turn takes do not depend on how many there are.
        """
        bits: int = ctx.prec
        found = list(zip_longest(*[self.digits_of(x) for one in state for x in one.flat]))
        lost = least = bits
        for same_order in found:  # values, then slopes
            known = [x for x in same_order if x is not None and not x.is_exact()]
            good = [x.rel_accuracy_bits() for x in known]
            if min(good, default=1) <= 0:
                noise = NOISE * max(float(abs(x.mid())) for x in known)
                if any(g <= 0 and x.rad() > noise for x, g in zip(known, good, strict=True)):
                    lost = 0
            least = min([least, *(g for g in good if g > 0)])
        gone = lost == 0 and done < count
        if gone or (done == count and least < GOOD_BITS + SPARE):
            used = bits if gone else bits - least
            wanted = int(SPARE_BITS + 1.1 * used * count / done)
            WANTED.append((1 << (wanted - 1).bit_length(), done / count))
        return gone

    def digits_of(self, x: Any) -> Sequence[Any]:
        """The balls that an entry is made of."""
        return [x] if type(x) is arb else []

    # --- steps ------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.ball

    def array_rule(self, primitive: Primitive) -> Callable[..., Any]:
        rule = super().array_rule(primitive)
        return product(rule) if primitive.name == "matmul" else rule

    def matrix_rule(self, node: Node) -> Callable[..., Any] | None:
        from gradcli.checks.derivatives.matrices import rule_of

        return rule_of(node)

    def computed(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        try:
            made = rule(self, *xs, **node.params)
        except Exception as reason:
            return self.failure_of(node, reason)
        return self.finite_or_failure(node, made, xs)

    def finite_or_failure(self, node: Node, made: Any, xs: tuple[Any, ...]) -> Any:
        """A result for single entries, or a Failure where it is not finite."""
        return made if type(made) is not arb or made.is_finite() else self._not_finite(node, made, xs)

    def failure_of(self, node: Node, reason: Exception) -> Failure:
        if isinstance(reason, (ZeroDivisionError, OverflowError, ValueError)):
            return Failure("undecided", node, str(reason))
        return super().failure_of(node, reason)

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if type(entry) is not arb or entry.is_finite():
            return entry
        if entry.is_nan() and all(type(x) is arb and x.is_exact() for one in xs for x in one.flat):
            return Failure("undefined", node, f"{node.primitive.name} has no value here")
        return Failure("undecided", node, f"{node.primitive.name} needs more digits")

    def _not_finite(self, node: Node, made: Any, xs: Sequence[Any]) -> Any:
        """Why a result is not a finite ball: an operand outside the domain, too few bits, or a number too large."""
        name = node.primitive.name
        balls = [x for x in xs if type(x) is arb]
        for position, (x, domain) in enumerate(zip(balls, node.primitive.domain, strict=False)):
            if is_outside(x, domain):
                which = f"{operand_texts([node_text(arg) for arg in node.args])[position]} = " if len(balls) > 1 else ""
                return Failure("undefined", node, f"{name} is undefined at {which}{digits(x, SHOWN)}")
        infinite = [x for x in balls if not x.is_finite()]
        if infinite:
            return Failure("range", node, f"{name} of an infinite value") if made.is_nan() else made
        if not all(x.is_exact() for x in balls):
            return Failure("undecided", node, f"{name} needs more digits")
        if made.is_nan():
            at = ", ".join(digits(x, SHOWN) for x in balls)
            return Failure("undefined", node, f"{name} is undefined at {at}")
        return Failure("range", node, f"{name} is too large a number")


# --- balls -------------------------------------------------------------------------------------------------


def is_outside(x: Any, domain: Interval) -> bool:
    """Whether a ball lies outside an interval for certain."""
    try:
        if math.isfinite(domain.low):
            below = sign(x - arb(domain.low))
            if below < 0 or (below == 0 and domain.low_open):
                return True
        if math.isfinite(domain.high):
            above = sign(x - arb(domain.high))
            return above > 0 or (above == 0 and domain.high_open)
    except Undecided:
        return False
    return False


# --- values of programs --------------------------------------------------------------------------------------


def entries_of(field: BallField, point: Point) -> dict[str, Entries]:
    """A point as balls."""
    return {name: Entries([field.leaf(value) for value in flat], shape) for name, (flat, shape) in point.items()}


def read(field: BallField, nodes: Sequence[Node], point: Point) -> list[Entries]:
    """The entries of some nodes at a point, with the bits that are set now."""
    return Reading(field, entries_of(field, point)).read(nodes)


def enclose(nodes: Sequence[Node], point: Point) -> list[Entries]:
    """The entries of some nodes with 56 good bits, as far as 8,192 bits and the budget of `doubling` allow.

    Raises Unsupported for an operation without a `ball` rule.
    """
    found: list[Entries] = with_bits(
        lambda bits: read(BallField(), nodes, point),
        lambda found: all(settled(x) for one in found for x in one.flat),
        work_of(reachable(nodes)),
    )
    return found
