"""A program and a point go in, rigorous enclosures of its values come out; it reads `ball` and `entries` rules only.

Every entry is a ball of python-flint's arb: it surely contains the exact value. Literals are exact decimals, leaves are
the doubles that they are. What has no real value is a `Failure` in place of an entry, so a branch that is not
taken does no harm. The precision is global to the process: only the oracle's own process imports this module.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from flint import arb, ctx, fmpq, fmpz

from gradcli.checks.entries import Entries, Failure, Field, Undecided, UndefinedAt, Unsupported
from gradcli.checks.formatting import node_text
from gradcli.checks.literals import FEW_DIGITS, last_unit
from gradcli.checks.products import product
from gradcli.checks.reading import Reading, work_of
from gradcli.graph.node import reachable
from gradcli.graph.text import operand_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

    Point = Mapping[str, tuple[Sequence[float], tuple[int, ...]]]

START_BITS = 128
MOST_BITS = 8192
GOOD_BITS = 56
MOST_CONSTANTS = 4096  # of a field
MOST_WORK = 1_200_000  # operations on single entries with few bits, before a round with more
MOST_LOOP_WORK = 16_000_000  # the same where a loop has told how many bits it needs
FEW_BITS = 512  # up to which the calls take longer than the numbers
DIGITS_A_BIT = 0.30103
SPARE, SPARE_BITS = 4, 64  # at the end of a loop
ASKED: list[tuple[int, float]] = []  # by loops since the last round: bits, and the share of the turns; global as `ctx`
NOISE = 2.0**-24  # of the largest carry: a ball around 0 of this size is noise, and no number that has been lost
TINY = fmpq(1, 2) * arb(2) ** -1074  # half of the smallest double


class precision:
    """Work with so many bits, then with as many as before."""

    __slots__ = ("before", "bits")

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self.before = ctx.prec
        ctx.prec = self.bits

    def __exit__(self, *_: object) -> None:
        ctx.prec = self.before


class BallField(Field):
    """Arithmetic on balls, and what `ball` rules call `fl`: numbers, signs, and a way to say "undefined".

    `wide` gives literals of many digits a radius of one unit of the last digit, `printed` gives every decimal of
    three digits or more a radius of half a unit. `decimal` reads leaves and data as the shortest decimals of their
    doubles, the way people write them.
    """

    def __init__(self, *, wide: bool = False, decimal: bool = False, printed: bool = False) -> None:
        super().__init__()
        self.wide = wide
        self.printed = printed
        self.decimal = decimal
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
        unit = last_unit(value) if self.wide else None
        if unit is None and self.printed:
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
        return self.number(Fraction(repr(value))) if self.decimal else arb(value)

    # --- decisions --------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """-1, 0 or 1; raises Undecided where the ball holds numbers of several signs. The only comparison of balls."""
        if isinstance(x, Failure):
            raise Undecided(x.reason)
        return sign(x)

    def undefined(self, reason: str) -> Any:
        raise UndefinedAt(reason)

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.sqrt()

    def log(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else x.log()

    def index(self, x: Any) -> int:
        if isinstance(x, Failure) or not x.is_integer():
            raise UndefinedAt("a position that is not a whole number")
        return int(x.unique_fmpz())

    # --- loops ------------------------------------------------------------------------------------------

    def is_lost(self, state: Sequence[Entries], done: int, count: int) -> bool:
        """Whether a carry has no digits left after so many turns; the bits that all turns need are `ASKED` for.

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
            ASKED.append((1 << (wanted - 1).bit_length(), done / count))
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
        from gradcli.checks.series.matrices import rule_of  # which knows balls

        return rule_of(node)

    def computed(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        try:
            made = rule(self, *xs, **node.params)
        except Undecided as reason:
            return Failure("undecided", node, str(reason) or f"a sign in {node.primitive.name}")
        except UndefinedAt as reason:
            return Failure("undefined", node, str(reason))
        except (ZeroDivisionError, OverflowError, ValueError) as reason:
            return Failure("undecided", node, str(reason))
        if type(made) is not arb or made.is_finite():
            return made
        return self._not_finite(node, made, xs)

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if type(entry) is not arb or entry.is_finite():
            return entry
        if entry.is_nan() and all(type(x) is arb and x.is_exact() for one in xs for x in one.flat):
            return Failure("undefined", node, f"{node.primitive.name} has no value here")
        return Failure("undecided", node, f"{node.primitive.name} needs more digits")

    def _not_finite(self, node: Node, made: Any, xs: tuple[Any, ...]) -> Any:
        """What a result that is no finite ball means: an operand outside the domain, too few bits, or too large."""
        name = node.primitive.name
        balls = [x for x in xs if type(x) is arb]
        for position, (x, domain) in enumerate(zip(balls, node.primitive.domain, strict=False)):
            if is_outside(x, domain):
                which = f"{operand_texts([node_text(arg) for arg in node.args])[position]} = " if len(balls) > 1 else ""
                return Failure("undefined", node, f"{name} is undefined at {which}{shown(x)}")
        infinite = [x for x in balls if not x.is_finite()]
        if infinite:
            return Failure("range", node, f"{name} of an infinite value") if made.is_nan() else made
        if not all(x.is_exact() for x in balls):
            return Failure("undecided", node, f"{name} needs more digits")
        if made.is_nan():
            at = ", ".join(shown(x) for x in balls)
            return Failure("undefined", node, f"{name} is undefined at {at}")
        return Failure("range", node, f"{name} is too large a number")


# --- balls -------------------------------------------------------------------------------------------------


def sign(x: Any) -> int:
    """The sign of every number in a ball; raises Undecided where they differ."""
    if x.is_zero():
        return 0
    if x.is_finite() and not x.contains(0):
        return 1 if x.mid() > 0 else -1
    if not x.is_finite() and not x.is_nan() and x.is_exact():
        return 1 if x > 0 else -1
    raise Undecided("a sign that the digits do not decide")


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


def is_tiny(x: Any) -> bool:
    """Whether every number in a ball rounds to zero in float64."""
    return bool(x.is_finite() and abs(x) < TINY)


def shown(x: Any, digits: int = 6) -> str:
    """A ball as a short decimal."""
    if x.is_zero():
        return "0"
    if x.is_integer() and abs(x) < 10**15:
        return str(x.unique_fmpz())
    text: str = x.mid().str(digits, radius=False)
    return text


def digits(x: Any, count: int = 25) -> str:
    """The digits of a ball's middle, as evidence; an exact zero is "0"."""
    if x.is_zero():
        return "0"
    if x.is_integer() and abs(x) < 10**15:
        return str(x.unique_fmpz())
    good = x.rel_accuracy_bits() * DIGITS_A_BIT
    text: str = x.mid().str(count if good >= count else max(2, int(good)), radius=False)
    if "e" not in text and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


# --- values of programs --------------------------------------------------------------------------------------


def entries_of(field: BallField, point: Point) -> dict[str, Entries]:
    """A point as balls."""
    return {name: Entries([field.leaf(value) for value in flat], shape) for name, (flat, shape) in point.items()}


def read(field: BallField, nodes: Sequence[Node], point: Point) -> list[Entries]:
    """The entries of some nodes at a point, with the bits that are set now."""
    return Reading(field, entries_of(field, point)).read(nodes)


def settled(x: Any, good_bits: int = GOOD_BITS) -> bool:
    """Whether more bits would tell nothing that matters about an entry."""
    if isinstance(x, Failure):
        return x.kind != "undecided"
    if type(x) is not arb:
        return True
    return bool(x.rel_accuracy_bits() >= good_bits) or is_tiny(x)


def enclose(
    nodes: Sequence[Node],
    point: Point,
    *,
    good_bits: int = GOOD_BITS,
    wide: bool = False,
    decimal: bool = False,
) -> list[Entries]:
    """The entries of some nodes with so many good bits, as far as 8,192 bits and the budget of `doubling` allow.

    Raises Unsupported for an operation without a `ball` rule.
    """
    found: list[Entries] = []
    for bits in doubling(work=work_of(reachable(nodes))):
        with precision(bits):
            found = read(BallField(wide=wide, decimal=decimal), nodes, point)
            if all(settled(x, good_bits) for one in found for x in one.flat):
                break
    return found


def doubling(start: int = START_BITS, work: int = 0) -> Iterator[int]:
    """128, 256, ... 8192, as far as the budget goes for rounds of so many operations on single entries.

    The first round is free, and an operation with many bits counts more than once. The next round has the bits that a
    loop `ASKED` for.

    >>> list(doubling(work=400_000))
    [128, 256, 512]
    """
    bits, spent, most = start, 0.0, MOST_WORK
    while bits <= MOST_BITS and spent <= most:
        ASKED.clear()
        yield bits
        share = max([done for _, done in ASKED], default=1.0)
        spent += share * work * (FEW_BITS + bits) / FEW_BITS
        bits *= 2
        if ASKED:
            most = MOST_LOOP_WORK
            bits = max(bits, *(wanted for wanted, _ in ASKED))


__all__ = [
    "BallField",
    "Unsupported",
    "digits",
    "doubling",
    "enclose",
    "entries_of",
    "is_tiny",
    "last_unit",
    "precision",
    "read",
    "settled",
    "shown",
    "sign",
]
