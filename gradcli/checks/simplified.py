"""A claim that normal forms leave open goes in, whether SymPy simplifies it to an identity comes out: the last resort.

SymPy differentiates and simplifies, with every symbol of known sign. A simplification is believed only where balls find
both sides equal at points around the given one. Runs in the oracle's own process, which may be killed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from gradcli.checks import balls
from gradcli.checks.calculus import substituted, symbols_of, tree_size
from gradcli.checks.derived import Both, Judged, Tie, derive
from gradcli.checks.entries import Undecided, UndefinedAt, Unsupported
from gradcli.checks.symbolic import Place, decide, region, text
from gradcli.graph.node import LEAF

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.checks.balls import Point
    from gradcli.checks.symbolic import SymbolicField
    from gradcli.graph.node import Node

    Answer = dict[str, Any]

MOST_OPERATIONS = 300  # of a difference that is simplified
MOST_ENTRIES = 4
CHECK_BITS = 256
SMALL = 2.0**-160
FACTORS = (Fraction(17, 16), Fraction(29, 31), Fraction(101, 97))  # to points around the given one


def prove_derivative(
    output: Node,
    target: Node,
    right: Node,
    moving: Sequence[str],
    point: Point,
    entries: Sequence[int],
    decimal: bool = False,
) -> Answer:
    """Whether SymPy finds entries of the right node to be the derivatives of a scalar node by those of the target."""
    if len(entries) > MOST_ENTRIES:
        return _open("too many entries to simplify")
    place = Place(point, decimal=decimal)
    try:
        made = derive(output, target, moving, place, entries)
        judged = Judged(made, place)
        pairs = [(judged.expected(i), judged.entry(right, i)) for i in entries]
        return _proved(judged.field, pairs, made.frozen)
    except Tie as reason:
        return _open(f"a branch hangs on {reason}")
    except (Unsupported, Undecided, UndefinedAt) as reason:
        return _open(str(reason))


def prove_equal(left: Node, right: Node, moving: Sequence[str], point: Point, decimal: bool = False) -> Answer:
    """Whether SymPy finds two nodes equal, entry by entry."""
    if left.type.size > MOST_ENTRIES:
        return _open("too many entries to simplify")
    try:
        both = Both([left, right], moving, Place(point, decimal=decimal))
        pairs = [(both.entry(left, i), both.entry(right, i)) for i in range(left.type.size)]
        return _proved(both.field, pairs, both.frozen)
    except (Unsupported, Undecided, UndefinedAt) as reason:
        return _open(str(reason))


def _open(reason: str) -> Answer:
    return {"proved": False, "reason": reason}


def _proved(field: SymbolicField, pairs: Iterable[tuple[Any, Any]], frozen: Sequence[str]) -> Answer:
    signed: dict[Any, Any] = {}
    for exact, claimed in pairs:
        difference = exact - claimed
        if difference == 0:
            continue
        if tree_size(difference, {}) > MOST_OPERATIONS:
            return _open("a difference too long to simplify")
        if not _holds_nearby(field, exact, claimed):
            return _open("the two sides differ beside the point")
        signed.update(_signed_symbols(field, difference))
        if sympy.simplify(substituted(difference, {s: made for s, (made, _) in signed.items()})) != 0:
            return _open(f"the difference {text(difference)} does not simplify to zero")
    if any(side == 0 and symbols_of(x, field.free) for x, side in field.signs.items()):
        return _open("a branch hangs on an exact zero at this point")
    signs = [f"{text(symbol)} {'>' if side > 0 else '<'} 0" for symbol, (_, side) in signed.items()]
    told = list(dict.fromkeys([*region(field), *signs]))
    return {"proved": True, "how": "sympy", "region": told, "frozen": list(frozen)}


def _signed_symbols(field: SymbolicField, expression: Any) -> dict[Any, tuple[Any, int]]:
    """For each symbol that is not zero: what stands for it, a positive symbol or minus one, and its sign."""
    found = {}
    for symbol in sorted(symbols_of(expression, field.free), key=str):
        side = decide(field.symbols, symbol, field.place)
        if side:
            found[symbol] = (side * sympy.Symbol(f"p:{symbol}", positive=True), side)
    return found


def _holds_nearby(field: SymbolicField, one: Any, other: Any) -> bool:
    """Whether balls find two expressions equal at the point and at points around it, as far as they have values."""
    names = [
        meaning[1].params["name"]
        for meaning in field.symbols.meaning.values()
        if meaning[0] == "node" and meaning[1].primitive is LEAF
    ]
    for factor in (Fraction(1), *FACTORS):
        point = {
            name: ([float(x * factor) for x in flat] if name in names else flat, shape)
            for name, (flat, shape) in field.place.point.items()
        }
        place = Place(point, decimal=field.place.decimal)
        try:
            with balls.precision(CHECK_BITS):
                left, right = (field.symbols.value(x, place, CHECK_BITS) for x in (one, other))
                gap = abs(left - right)
                if not (gap.is_zero() or gap <= SMALL * (abs(left) + abs(right))):
                    return False
        except (Undecided, UndefinedAt):
            if factor == 1:
                return False
    return True
