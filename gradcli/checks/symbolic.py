"""A program at a point goes in, SymPy's derivative of it comes out, entry by entry; it reads `symbolic` rules only.

SymPy expressions are built node by node with constructors, never from text, and on scalar entries, never on matrices.
Branches are decided at the point, by balls, before anything is differentiated; the signs that were used are kept,
because they are the region on which the derivative holds. Runs in the oracle's own process, which may be killed.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from gradcli.checks import balls, expressions
from gradcli.checks.calculus import derivative, parts, substituted, symbols_of, tree_size
from gradcli.checks.entries import (
    Entries,
    Failure,
    Field,
    Reading,
    Undecided,
    UndefinedAt,
    Unsupported,
)
from gradcli.checks.shown import position
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.balls import Point
    from gradcli.graph.primitive import Primitive

MOST_SYMBOLS = 16
MOST_OPERATIONS = 5_000
MOST_SHOWN = 400  # operations of an expression that is written out
PREFIX = "g:"
LONG_NUMBER = re.compile(r"\d{10,}(/\d+)?|\d+/\d{10,}")
DECIDING_BITS = 1024
NOT_REAL = ("DiracDelta", "Derivative", "Subs", "Integral", "Piecewise", "ImaginaryUnit", "NaN",
            "ComplexInfinity", "Infinity", "NegativeInfinity", "Heaviside")  # fmt: skip


class Tie(Exception):
    """A branch is decided by an exact zero of something that moves: the point is on a kink, or beside no branch."""


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
        x = sympy.sympify(x) if isinstance(x, int) else x
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
            self.limit(sympy.sympify(entry) if isinstance(entry, int) else entry)
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
    shown = LONG_NUMBER.sub(_rounded, str(expression).replace(PREFIX, ""))
    return shown if len(shown) <= most else shown[: most - 4] + " ..."


def _rounded(found: re.Match[str]) -> str:
    """A fraction of many digits as a short decimal: for reading only."""
    top, _, bottom = found[0].partition("/")
    try:
        return f"{int(top) / int(bottom or 1):.6g}"
    except OverflowError:
        return "a long number"


# --- derivatives ---------------------------------------------------------------------------------------------


class Derivative:
    """The derivative of a scalar output by entries of a target: SymPy expressions, and where they hold."""

    def __init__(
        self,
        symbols: Symbols,
        field: SymbolicField,
        entries: dict[int, Any],
        frozen: Sequence[str],
        point: Point,
    ) -> None:
        self.symbols = symbols
        self.point = point
        self.field = field
        self.entries = entries  # flat position in the target -> expression
        self.frozen = tuple(frozen)  # leaves that are fixed at their values in here

    def holds_at(self, place: Place) -> bool:
        """Whether this is the derivative at another place too: what was taken as a constant has not moved, and every
        sign that decided a branch is the same."""
        moved = {
            (meaning[1].params["name"], meaning[2])
            for meaning in self.symbols.meaning.values()
            if meaning[0] == "node" and meaning[1].primitive is LEAF
        }
        for name, (flat, _) in place.point.items():
            for i, (here, there) in enumerate(zip(self.point[name][0], flat, strict=True)):
                if here != there and (name, i) not in moved:
                    return False
        try:
            return all(decide(self.symbols, x, place) == side for x, side in self.field.signs.items())
        except (Undecided, UndefinedAt, Unsupported):
            return False


def region(field: SymbolicField) -> list[str]:
    """The signs that decided branches, in words."""
    relation = {-1: "< 0", 0: "= 0", 1: "> 0"}
    return [f"{text(x, 60)} {relation[side]}" for x, side in field.signs.items() if symbols_of(x, field.free)]


def derive(
    output: Node, target: Node, moving: Sequence[str], place: Place, entries: Sequence[int] | None = None
) -> Derivative:
    """SymPy's derivative of a scalar node by entries of another (default: all of them), at a point.

    `moving` are leaves that may be symbols; the others are constants. Raises Unsupported over the budget or without
    a rule, Tie where a branch hangs on an exact zero, UndefinedAt and Undecided where the value itself fails.
    """
    order = reachable([output])
    count = target.type.size
    wanted = list(range(count)) if entries is None else list(entries)
    if len(wanted) > MOST_SYMBOLS:
        raise Unsupported(f"{count} entries, more than {MOST_SYMBOLS} symbols")
    symbols = Symbols()
    field = SymbolicField(symbols, place, hold=True)
    point: dict[str, Entries] = {}
    frozen: list[str] = []
    used = len(wanted)
    for node in order:
        if node.primitive is LEAF and node is not target:
            name = node.params["name"]
            free = name in moving and used + node.type.size <= MOST_SYMBOLS
            used += node.type.size if free else 0
            if name in moving and not free:
                frozen.append(name)
            point[name] = _leaf_entries(symbols, field, node, place, None if free else ())
    fixed = {target: _leaf_entries(symbols, field, target, place, wanted)}
    found = Reading(field, point, fixed)[output].flat[0]
    expression = accepted(found)
    targets = {i: fixed[target].flat[i] for i in wanted}
    movable = set(targets.values())
    for x, side in field.signs.items():
        if side == 0 and not movable.isdisjoint(symbols_of(x, field.free)):
            raise Tie(text(x))
    made = {}
    for i, symbol in targets.items():
        made[i] = accepted(derivative(expression, symbol, field.free))
    return Derivative(symbols, field, made, frozen, place.point)


def _leaf_entries(
    symbols: Symbols, field: SymbolicField, node: Node, place: Place, chosen: Sequence[int] | None
) -> Entries:
    """Symbols for the chosen entries of a node (None: all), exact constants for the others."""
    name = node.params["name"] if node.primitive is LEAF else f"value{node.serial}"
    values = place.point[name][0] if node.primitive is LEAF else None
    flat = []
    for i in range(node.type.size):
        if chosen is None or i in chosen:
            label = name + position(i, node.type.shape)
            flat.append(symbols.symbol(label, ("node", node, i)))
        elif values is None:
            raise Unsupported("part of an intermediate value")
        else:
            flat.append(field.fixed(values[i]))
    return Entries(flat, node.type.shape)


def accepted(found: Any) -> Any:
    """The expression of an entry; raises what is wrong with it."""
    if isinstance(found, Failure):
        raise (UndefinedAt if found.kind == "undefined" else Undecided)(found.reason)
    expression = sympy.sympify(found) if isinstance(found, int) else found
    for part in parts(expression):
        if type(part).__name__ in NOT_REAL:
            raise Unsupported(f"SymPy's {type(part).__name__}")
    return expression


# --- the thing judged, in symbols --------------------------------------------------------------------------------


class Judged:
    """Nodes in the same symbols as a derivative, so that their difference can be proved to vanish."""

    def __init__(self, derivative: Derivative, place: Place) -> None:
        self.derivative = derivative
        self.field = SymbolicField(derivative.symbols, place, hold=False)
        self.field.signs = dict(derivative.field.signs)
        known: dict[str, list[Any]] = {}
        for symbol, meaning in derivative.symbols.meaning.items():
            if meaning[0] == "node" and meaning[1].primitive is LEAF:
                node, i = meaning[1:]
                name = node.params["name"]
                known.setdefault(name, [self.field.fixed(value) for value in place.point[name][0]])[i] = symbol
        point = {}
        for name, (flat, shape) in place.point.items():
            point[name] = Entries(known.get(name) or [self.field.fixed(value) for value in flat], shape)
        self.reading = Reading(self.field, point)

    def entry(self, node: Node, i: int) -> Any:
        """An entry of a node; raises as `derive` does."""
        return accepted(self.reading[node].flat[i])

    def expected(self, i: int) -> Any:
        """SymPy's derivative, with the symbols of intermediate values written out."""
        expression = self.derivative.entries[i]
        meaning = self.derivative.symbols.meaning
        for _ in range(len(meaning)):
            inner = {
                symbol: self._written_out(meaning[symbol])
                for symbol in sorted(symbols_of(expression, self.field.free), key=str)
                if meaning[symbol][0] in ("gap", "held")
                or (meaning[symbol][0] == "node" and meaning[symbol][1].primitive is not LEAF)
            }
            if not inner:
                break
            expression = substituted(expression, inner)
        return expression

    def _written_out(self, meaning: tuple[Any, ...]) -> Any:
        if meaning[0] == "gap":
            value, surrogate, i = meaning[1:]
            return self.entry(value, i) - self.entry(surrogate, i)
        return self.entry(meaning[1], meaning[2])


class Both:
    """Two nodes in common symbols, for a claim that they are equal."""

    def __init__(self, nodes: Sequence[Node], moving: Sequence[str], place: Place) -> None:
        symbols = Symbols()
        self.field = SymbolicField(symbols, place, hold=False)
        self.frozen: list[str] = []
        point: dict[str, Entries] = {}
        used = 0
        for node in reachable(nodes):
            if node.primitive is LEAF:
                name = node.params["name"]
                free = name in moving and used + node.type.size <= MOST_SYMBOLS
                used += node.type.size if free else 0
                if name in moving and not free:
                    self.frozen.append(name)
                point[name] = _leaf_entries(symbols, self.field, node, place, None if free else ())
        self.reading = Reading(self.field, point)

    def entry(self, node: Node, i: int) -> Any:
        """An entry of a node; raises as `derive` does."""
        return accepted(self.reading[node].flat[i])
