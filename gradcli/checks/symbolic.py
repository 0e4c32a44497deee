"""A program at a point goes in, SymPy's derivative of it comes out, entry by entry; it reads `symbolic` rules only.

SymPy expressions are built node by node with constructors, never from text, and on scalar entries, never on matrices.
Branches are decided at the point, by balls, before anything is differentiated; the signs that were used are kept,
because they are the region on which the derivative holds. Runs in the oracle's own process, which may be killed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from gradcli.checks import balls, expressions
from gradcli.checks.calculus import parts, substituted, symbols_of, tree_size
from gradcli.checks.entries import (
    MOST_TURNS,
    Entries,
    Failure,
    Field,
    Undecided,
    UndefinedAt,
    Unsupported,
)
from gradcli.checks.reading import Reading
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.balls import Point
    from gradcli.graph.primitive import Primitive

MOST_OPERATIONS = 5_000
MOST_SHOWN = 400  # operations of an expression that is written out
PREFIX = "g:"
LONG_NUMBER = 10**9  # a fraction of larger numbers is shown rounded
DECIDING_BITS = 1024


class Place:
    """A point, and the balls of a program's nodes and of symbols there; several precisions share nothing."""

    def __init__(self, point: Point, *, wide: bool = False, decimal: bool = False) -> None:
        self.point = point
        self.wide = wide
        self.decimal = decimal
        self._levels: dict[int, tuple[Reading, dict[Any, Any]]] = {}

    def level(self, bits: int) -> tuple[Reading, dict[Any, Any]]:
        """The reading of nodes and the known subexpressions at so many bits; use it under `balls.precision`."""
        known = self._levels.get(bits)
        if known is None:
            field = balls.BallField(wide=self.wide, decimal=self.decimal)
            known = self._levels[bits] = (Reading(field, balls.entries_of(field, self.point)), {})
        return known


class Symbols:
    """The symbols of an expression, and what each of them stands for."""

    def __init__(self) -> None:
        self.meaning: dict[Any, tuple[Any, ...]] = {}
        self._made: dict[tuple[Any, ...], Any] = {}

    def symbol(self, text: str, meaning: tuple[Any, ...]) -> Any:
        """The symbol with this meaning: ("node", node, i), ("held", node, i), ("gap", value, surrogate, i)
        or ("literal", value)."""
        known = self._made.get(meaning)
        if known is None:
            known = self._made[meaning] = sympy.Symbol(PREFIX + text, real=True)
            self.meaning[known] = meaning
        return known

    def ball(self, symbol: Any, reading: Reading) -> Any:
        """The ball of a symbol; raises Undecided or UndefinedAt where it has none."""
        kind, *what = self.meaning[symbol]
        if kind == "literal":
            return reading.field.constant(what[0])
        if kind == "gap":
            value, surrogate, i = what
            found = reading[value].flat[i] - reading[surrogate].flat[i]
        else:
            node, i = what
            found = reading[node].flat[i]
        if isinstance(found, Failure):
            raise (UndefinedAt if found.kind == "undefined" else Undecided)(found.reason)
        return found

    def value(self, expression: Any, place: Place, bits: int) -> Any:
        """The ball of an expression at a place."""
        with balls.precision(bits):
            reading, memo = place.level(bits)
            return expressions.value(expression, lambda symbol: self.ball(symbol, reading), memo)


class Namespace:
    """What `symbolic` rules call `sp`: SymPy's names, and the sign of an expression at the point of the check."""

    def __init__(self, sign: Callable[[Any], int]) -> None:
        self.sign_at_point = sign

    def __getattr__(self, name: str) -> Any:
        return getattr(sympy, name)


class SymbolicField(Field):
    """Arithmetic on SymPy expressions; `place` is the point that decides branches."""

    most_turns = MOST_TURNS

    def __init__(self, symbols: Symbols, place: Place, *, hold: bool) -> None:
        super().__init__()
        self.symbols = symbols
        self.place = place
        self.hold = hold  # whether a script's detach is a symbol of its own
        self.zero = sympy.Integer(0)
        self.one = sympy.Integer(1)
        self.signs: dict[Any, int] = {}
        self.free: dict[Any, Any] = {}  # the symbols of each expression
        self.operations: set[Any] = set()
        self.sp = Namespace(self.sign)

    # --- entries ------------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        return sympy.Rational(value.numerator, value.denominator)

    def constant(self, value: Any) -> Any:
        if isinstance(value, str):
            named = {"pi": sympy.pi, "e": sympy.E, "inf": sympy.oo, "-inf": -sympy.oo, "nan": sympy.nan}
            return named[value]
        if balls.last_unit(value) is not None:
            return self.symbols.symbol(f"<{float(value)!r}>", ("literal", value))
        return self.number(value)

    def datum(self, value: Any) -> Any:
        return self.fixed(value) if isinstance(value, float) else self.constant(value)

    def fixed(self, value: float) -> Any:
        """A double as an exact constant."""
        if not math.isfinite(value):
            return sympy.nan
        return self.number(Fraction(repr(value)) if self.place.decimal else Fraction(value))

    def total(self, xs: Any) -> Any:
        parts = list(xs)
        failed = next((x for x in parts if isinstance(x, Failure)), None)
        return sympy.Add(*parts) if failed is None else failed

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else sympy.sqrt(x)

    def log(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else sympy.log(x)

    def detached(self, node: Node, x: Entries) -> Entries:
        if not self.hold:
            return x
        inner = node.args[0]
        held = [self.symbols.symbol(f"detach{node.serial}[{i}]", ("held", inner, i)) for i in range(len(x.flat))]
        return Entries(held, x.shape)

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        if not self.hold:
            return value
        first, second = node.args
        flat = [
            self.symbols.symbol(f"ste{node.serial}[{i}]", ("gap", first, second, i)) + x
            for i, x in enumerate(surrogate.flat)
        ]
        return Entries(flat, surrogate.shape)

    # --- decisions ------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """The sign of an expression at the point; raises Undecided where 1,024 bits do not tell."""
        if isinstance(x, Failure):
            raise Undecided(x.reason)
        x = sympy.Integer(x) if isinstance(x, int) else x
        if x.is_Rational:
            return int(x.p > 0) - int(x.p < 0)
        known = self.signs.get(x)
        if known is None:
            known = self.signs[x] = decide(self.symbols, x, self.place)
        return known

    # --- steps ------------------------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.symbolic

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        if node.primitive.name == "where":
            chosen = xs[0]
            return chosen if isinstance(chosen, Failure) else xs[1] if chosen else xs[2]
        for x in xs:
            if type(x) is Failure:
                return x
        try:
            made = rule(self.sp, *xs, **node.params)
        except Undecided as reason:
            return Failure("undecided", node, str(reason))
        except UndefinedAt as reason:
            return Failure("undefined", node, str(reason))
        if isinstance(made, bool):
            return made
        self.limit(made)
        return made

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        if not isinstance(entry, (bool, Failure)):
            self.limit(sympy.Integer(entry) if isinstance(entry, int) else entry)
        return entry

    def limit(self, expression: Any) -> None:
        """Raise Unsupported once there are more operations on symbols than the budget allows."""
        if symbols_of(expression, self.free):
            self.operations.add(expression)
            if len(self.operations) > MOST_OPERATIONS:
                raise Unsupported(f"more than {MOST_OPERATIONS:,} operations in symbols")


def decide(symbols: Symbols, expression: Any, place: Place) -> int:
    """The sign of an expression at a place."""
    reason = "a sign that the digits do not decide"
    for bits in balls.doubling():
        if bits > DECIDING_BITS:
            break
        try:
            return balls.sign(symbols.value(expression, place, bits))
        except Undecided as problem:
            reason = str(problem)
    raise Undecided(f"the sign of {text(expression)}: {reason}")


def text(expression: Any, most: int = 100) -> str:
    """An expression as people read it, cut where it is long."""
    if tree_size(expression, {}) > MOST_SHOWN:
        return "a long expression"
    long = [part for part in parts(expression) if part.is_Rational and max(abs(part.p), part.q) > LONG_NUMBER]
    rounded = substituted(expression, {part: sympy.Float(part, 6) for part in long})
    shown = str(rounded).replace(PREFIX, "")
    return shown if len(shown) <= most else shown[: most - 4] + " ..."


def region(field: SymbolicField) -> list[str]:
    """The signs that decided branches, in words."""
    relation = {-1: "< 0", 0: "= 0", 1: "> 0"}
    return [f"{text(x, 60)} {relation[side]}" for x, side in field.signs.items() if symbols_of(x, field.free)]
