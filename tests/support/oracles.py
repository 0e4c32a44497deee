"""Nodes at a point go in, what SymPy and balls say of them comes out; they read `symbolic`, `ball` and `entries` only.

An oracle that has nothing to say raises `Silent` with the reason. Derivatives are `sympy.diff` of the value in symbols,
evaluated by SymPy at the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.evaluation import FieldEvaluation
from gradcli.checks.evaluate.interpretation import Entries, Failure, Undecided, Undefined, Unsupported
from gradcli.checks.oracle.sympy_witness import SympyField, tree_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.graph.node import Node

    Point = Mapping[str, np.ndarray]

BITS = 256
MOST_ENTRIES = 40  # symbols in one expression
MOST_OPERATIONS = 4000
DIGITS = (40, 80)  # what both agree on is believed


class Silent(Exception):
    """An oracle that cannot read a program, and why."""


def place_of(point: Point) -> dict[str, tuple[list[float], tuple[int, ...]]]:
    """A point as the readings of `checks` take it."""
    return {name: (np.ravel(value).tolist(), np.shape(value)) for name, value in point.items()}


class Symbolic:
    """Nodes as SymPy expressions in symbols for the entries of the leaves, with branches decided at the point."""

    def __init__(self, nodes: Sequence[Node], leaves: Mapping[str, Node], point: Point, *, hold: bool = False) -> None:
        if sum(leaf.type.size for leaf in leaves.values()) > MOST_ENTRIES:
            raise Silent("too many entries for symbols")
        self.field = SympyField(hold=hold)
        place = place_of(point)
        self.named = {
            name: [self.field.symbol(f"{name}[{i}]", float(place[name][0][i])) for i in range(leaf.type.size)]
            for name, leaf in leaves.items()
        }
        given = {name: Entries(flat, leaves[name].shape) for name, flat in self.named.items()}
        try:
            self.entries = FieldEvaluation(self.field, given).read(nodes)
        except (Unsupported, Undecided, Undefined) as reason:
            raise Silent(str(reason)) from None
        for entries in self.entries:
            for entry in entries.flat:
                if isinstance(entry, Failure):
                    raise Silent(repr(entry))
        self.known: dict[int, dict[Any, Any]] = {
            digits: {symbol: sympy.N(value, digits) for symbol, value in self.field.values.items()} for digits in DIGITS
        }

    def number(self, expression: Any) -> float:
        """An expression at the point."""
        if isinstance(expression, (bool, int)):
            return float(expression)
        if expression.has(sympy.Derivative, sympy.Subs):
            raise Silent("SymPy has no derivative by a parameter")
        coarse, fine = (self._rounded(sympy.sympify(expression), digits) for digits in DIGITS)
        if fine.is_Float and fine and abs(fine - coarse) < abs(fine) * sympy.Float(10) ** -20:
            return float(fine)
        try:
            return float(self.field.value_of(expression))
        except (Unsupported, Undecided, Undefined) as reason:
            raise Silent(str(reason)) from None

    def _rounded(self, expression: Any, digits: int) -> Any:
        """An expression at the point in floats of so many digits; `evalf` computes what is shared again each time."""
        known, stack = self.known[digits], [expression]
        while stack:
            top = stack[-1]
            missing = [arg for arg in top.args if arg not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if top not in known:
                made = top if top.is_Rational else top.func(*[known[arg] for arg in top.args]) if top.args else top
                exact = made.is_Rational or not isinstance(made, sympy.Expr)
                known[top] = made if exact else sympy.N(made, digits)
        return known[expression]

    def values(self) -> list[np.ndarray]:
        """The nodes at the point."""
        return [np.reshape([self.number(entry) for entry in one.flat], one.shape) for one in self.entries]

    def gradient(self, name: str) -> list[Any]:
        """`sympy.diff` of the first node, a scalar, by each entry of a leaf; Silent on a kink."""
        expression = self.entries[0].flat[0]
        if tree_size(expression) > MOST_OPERATIONS:
            raise Silent("too long an expression: sympy.diff copies what is shared")
        made = []
        for symbol in self.named[name]:
            for x in self.field.ties:
                if symbol in sympy.sympify(x).free_symbols:
                    raise Silent(f"a branch that hangs on {x} = 0")
            made.append(sympy.diff(expression, symbol))
        return made


def ball_values(nodes: Sequence[Node], point: Point) -> list[Entries]:
    """The nodes at the point as balls with 56 good bits."""
    try:
        found = balls.enclose(nodes, place_of(point))
    except Unsupported as reason:
        raise Silent(str(reason)) from None
    for entries in found:
        for entry in entries.flat:
            if isinstance(entry, Failure):
                raise Silent(repr(entry))
    return found


def middle(entries: Entries) -> np.ndarray:
    """The middles of balls, as floats."""
    return np.reshape([float(x.mid()) if hasattr(x, "mid") else float(x) for x in entries.flat], entries.shape)


def ball_slope(node: Node, point: Point, way: Point) -> float:
    """The derivative of a scalar along a direction: a central difference in balls, its step a power of 2, so exact."""
    step = 2.0**-36
    sides = []
    with ball_numbers.precision(BITS):
        for by in (-step, step):
            at = {**point, **{name: point[name] + by * way[name] for name in way}}
            try:
                entry = balls.read(balls.BallField(), [node], place_of(at))[0].flat[0]
            except Unsupported as reason:
                raise Silent(str(reason)) from None
            if isinstance(entry, Failure):
                raise Silent(repr(entry))
            sides.append(entry)
        return float(((sides[1] - sides[0]) / (2 * step)).mid())
