"""Shorter forms of a formula that SymPy proposes. None of them is known to be right: whoever shows one confirms it.

Runs in the oracle's own process, each proposal within a budget of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction
from sympy.printing.str import StrPrinter

from gradcli.checks.entries import Entries, Unsupported
from gradcli.checks.reading import Reading
from gradcli.checks.sympy_witness import SympyField, accepted, tree_size
from gradcli.graph.node import LEAF, reachable
from gradcli.primitives import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradcli.checks.call_budget import CallBudget
    from gradcli.graph.node import Node

LARGE = 60  # operations of an expression for which most ways take too long
MARK = 0xE000  # a private character
NAMES = {"Abs": "abs", "Max": "maximum", "Min": "minimum", "loggamma": "lgamma", "besselj": "jn", "besseli": "iv"}


class SmoothField(SympyField):
    """SymPy expressions of a formula that has no branches."""

    def sign(self, x: Any) -> int:
        raise Unsupported("a formula with branches")


class ScriptPrinter(StrPrinter):  # type: ignore[misc]  # SymPy has no types
    """SymPy expressions in the script language."""

    def _print_Exp1(self, expression: Any) -> str:
        return "e"

    def _print_Function(self, expression: Any) -> str:
        name = type(expression).__name__
        name = NAMES.get(name, name)
        declared = functions().get(name)
        if declared is None or not declared.pointwise or declared.static:
            raise Unsupported(f"{name} is no function of one value")
        return f"{name}({', '.join([self._print(arg) for arg in expression.args])})"

    _print_Abs = _print_loggamma = _print_Function  # noqa: N815  # the names that SymPy looks for


def proposals(node: Node, style: str, budget: CallBudget) -> list[str]:
    """Texts for a scalar node on scalar leaves; raises Unsupported where it has branches or no expression."""
    field = SmoothField(hold=False)
    names = sorted({leaf.params["name"] for leaf in reachable([node]) if leaf.primitive is LEAF}, key=str.casefold)
    marks = {name: chr(MARK + place) for place, name in enumerate(names)}  # SymPy sorts symbols by their texts
    leaves = {name: Entries([field.symbol(mark + name, 0)], ()) for name, mark in marks.items()}
    with budget.counted():
        expression = accepted(Reading(field, leaves)[node].flat[0])
    without_marks = dict.fromkeys(map(ord, marks.values()))
    found: list[str] = []
    for way in ways(expression, style):
        try:
            with budget.counted():
                text = ScriptPrinter().doprint(way(expression)).translate(without_marks)
        except (Unsupported, ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError):
            continue  # SymPy raises what it likes: one proposal fewer
        if text not in found:
            found.append(text)
    return found


def ways(expression: Any, style: str) -> Iterator[Callable[[Any], Any]]:
    """The functions of SymPy that may make an expression shorter."""
    if style == "simplified":
        yield lambda x: x
    yield sympy.factor
    yield sympy.together
    if tree_size(expression) > LARGE:
        return
    yield lambda x: sympy.factor(sympy.cancel(x))
    if style == "factored":
        return
    yield sympy.cancel
    if expression.has(sympy.exp) or any(not power.exp.is_Integer for power in expression.atoms(sympy.Pow)):
        yield lambda x: sympy.powsimp(sympy.powdenest(x))
        yield sympy.radsimp
    if expression.has(TrigonometricFunction, HyperbolicFunction):
        yield sympy.trigsimp
    yield sympy.simplify
