"""SymPy expressions go in; their derivatives, sizes, symbols and substitutions come out, each shared part handled once.

Sums, products and powers are differentiated here, every other function by SymPy's own `fdiff`, over the graph of
distinct subexpressions: a loop written out in symbols stays as long as it is, where a tree would double at each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
from sympy.core.function import ArgumentIndexError

from gradcli.checks.entries import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Known = dict[Any, Any]

ZERO = sympy.Integer(0)


def walk(expressions: Iterable[Any], known: Known, step: Callable[[Any], Any]) -> None:
    """Fill `known` with the value of `step` for every subexpression, arguments first."""
    stack = list(expressions)
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        missing = [arg for arg in top.args if arg not in known]
        if missing:
            stack.extend(missing)
        else:
            known[top] = step(top)
            stack.pop()


def tree_size(expression: Any, known: Known) -> int:
    """The number of operations of an expression written out."""
    walk([expression], known, lambda top: 1 + sum([known[arg] for arg in top.args]))
    return int(known[expression])


def symbols_of(expression: Any, known: Known) -> frozenset[Any]:
    """The symbols of an expression."""

    def step(top: Any) -> frozenset[Any]:
        if top.is_Symbol:
            return frozenset((top,))
        args = [known[arg] for arg in top.args]
        return args[0].union(*args[1:]) if args else frozenset()

    walk([expression], known, step)
    found: frozenset[Any] = known[expression]
    return found


def parts(expression: Any) -> dict[Any, None]:
    """Every distinct subexpression."""
    known: dict[Any, None] = {}
    walk([expression], known, lambda top: None)
    return known


def substituted(expression: Any, values: Mapping[Any, Any]) -> Any:
    """The expression with some symbols replaced."""
    known: Known = dict(values)

    def step(top: Any) -> Any:
        args = [known[arg] for arg in top.args]
        return top if all(map(_same, args, top.args)) else top.func(*args)

    walk([expression], known, step)
    return known[expression]


def _same(one: Any, other: Any) -> bool:
    return one is other


def derivative(expression: Any, symbol: Any, symbols: Known) -> Any:
    """The derivative of an expression by a symbol; `symbols` keeps which symbols each part has.

    Raises Unsupported for a function whose derivative SymPy does not know.
    """
    known: Known = {}

    def step(top: Any) -> Any:
        if top is symbol or top == symbol:
            return sympy.Integer(1)
        if symbol not in symbols[top]:
            return ZERO
        if top.is_Add:
            return sympy.Add(*[known[arg] for arg in top.args])
        if top.is_Mul:
            return _product(top.args, known)
        if top.is_Pow:
            return _power(top, known)
        return _function(top, known)

    symbols_of(expression, symbols)
    walk([expression], known, step)
    return known[expression]


def _product(args: tuple[Any, ...], known: Known) -> Any:
    terms = []
    for i, arg in enumerate(args):
        moved = known[arg]
        if moved is not ZERO and moved != 0:
            terms.append(sympy.Mul(*args[:i], moved, *args[i + 1 :]))
    return sympy.Add(*terms)


def _power(top: Any, known: Known) -> Any:
    base, exponent = top.args
    moved, grown = known[base], known[exponent]
    terms = []
    if moved != 0:
        terms.append(sympy.Mul(exponent, sympy.Pow(base, sympy.Add(exponent, -1)), moved))
    if grown != 0:
        terms.append(sympy.Mul(top, sympy.log(base), grown))
    return sympy.Add(*terms)


def _function(top: Any, known: Known) -> Any:
    terms = []
    for i, arg in enumerate(top.args, 1):
        if known[arg] == 0:
            continue
        try:
            terms.append(sympy.Mul(top.fdiff(i), known[arg]))
        except (ArgumentIndexError, AttributeError) as reason:
            raise Unsupported(f"SymPy has no derivative of {type(top).__name__}") from reason
    return sympy.Add(*terms)
