"""A program at a point goes in, SymPy's derivative of it comes out, entry by entry, and what is judged beside it.

Branches are decided at the point before anything is differentiated. Large leaves and data stay constants. Runs in the
oracle's own process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from gradcli.checks.calculus import derivative, parts, substituted, symbols_of
from gradcli.checks.entries import Entries, Failure, Undecided, UndefinedAt, Unsupported
from gradcli.checks.reading import Reading
from gradcli.checks.shown import position
from gradcli.checks.symbolic import SymbolicField, Symbols, decide, text
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.balls import Point
    from gradcli.checks.symbolic import Place

MOST_SYMBOLS = 16
NOT_REAL = ("DiracDelta", "Derivative", "Subs", "Integral", "Piecewise", "ImaginaryUnit", "NaN",
            "ComplexInfinity", "Infinity", "NegativeInfinity", "Heaviside")  # fmt: skip


class Tie(Exception):
    """A branch is decided by an exact zero of something that moves: the point is on a kink, or beside no branch."""


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
    expression = sympy.Integer(found) if isinstance(found, int) else found
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
