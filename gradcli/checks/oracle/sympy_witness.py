"""SymPy's derivative of one entry of a program's gradient, a witness that decides nothing; and factored formulas.

SymPy expressions are built entry by entry from the `symbolic` rules of the primitives, with constructors, never from
text. Branches are decided at the point before SymPy differentiates; it evaluates its derivative with its own numbers.
Runs in the oracle's own process. What limits it is a number of calls of Python functions, which does not depend on the
machine as time does.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from fractions import Fraction
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import sympy
from flint import arb
from sympy.core.cache import clear_cache
from sympy.core.random import seed
from sympy.core.symbol import Dummy
from sympy.printing.str import StrPrinter

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.evaluation import FieldEvaluation, work_of
from gradcli.checks.evaluate.interpretation import Entries, Failure, SymbolicField, Undecided, Unsupported
from gradcli.graph.arrays import subscript
from gradcli.graph.node import LEAF, reachable
from gradcli.primitives import addresses, functions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from gradcli.checks.evaluate.balls import Point
    from gradcli.graph.node import Node

    Answer = dict[str, Any]

MOST_CALLS = 1_000_000  # of Python functions for a derivative
MOST_FOR_A_TEXT = 200_000  # for one factored formula
MOST_SYMBOLS = 16  # entries of leaves; others are constants
MOST_WORK = 4_000  # operations on single entries of a program
MOST_OPERATIONS = 2_000  # of an expression written out; SymPy copies what is shared
MOST_SHOWN = 72  # characters of a formula
LONG_NUMBER = 10**6  # a fraction of larger numbers is shown rounded
DIGITS = 25  # of the derivative
GUARD = 25  # further ones, by which the first are tested
NOT_REAL = (
    "DiracDelta", "Derivative", "Subs", "Integral", "Piecewise", "ImaginaryUnit", "NaN", "ComplexInfinity", "Infinity",
    "NegativeInfinity", "Heaviside",
)  # fmt: skip
FIRST_DUMMY = 10**7  # beyond the random numbers that SymPy begins with
IMPORTING = "<frozen importlib._bootstrap>"


class _Ended(BaseException):
    """The limit is reached; no handler of SymPy's for errors may stop it."""


@contextmanager
def limited(most: int) -> Iterator[list[int]]:
    """Run what is inside with at most so many calls of Python functions; raises Unsupported over it.

    Yields their count. Imports do not count, and SymPy's caches are emptied first, so that a question takes the same
    calls whatever was asked before, but for a few tables that SymPy keeps.
    """
    clear_cache()
    Dummy._base_dummy_index, Dummy._count = FIRST_DUMMY, 0
    seed(0)  # SymPy asks its assumptions in a shuffled order
    count, depth = [0], 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal depth
        if event == "call" or (depth and event == "return"):
            code = frame.f_code
            if code.co_filename == IMPORTING:
                depth += (code.co_name == "_find_and_load") * (1 if event == "call" else -1)
            elif not depth:
                count[0] += 1
                if count[0] > most:
                    raise _Ended

    before = sys.getprofile()
    try:
        sys.setprofile(profile)
        yield count
    except _Ended:
        pass
    finally:
        sys.setprofile(before)
        if count[0] > most:
            raise Unsupported(f"SymPy needs more than {most:,} calls") from None


# --- derivatives --------------------------------------------------------------------------------------------------


class SympyField(SymbolicField):
    """Arithmetic on SymPy expressions; the `values` of their symbols decide branches."""

    def __init__(self, *, hold: bool) -> None:
        super().__init__()
        self.hold = hold
        self.zero = sympy.Integer(0)
        self.values: dict[Any, Any] = {}
        self.ties: list[Any] = []  # expressions that decided a branch and are 0 at the point
        self.namespace = SimpleNamespace(**vars(sympy), sign_at_point=self.sign)

    def symbol(self, name: str, value: Any = None) -> Any:
        """The symbol of a name, and its value at the point if it has one: a float or a number of SymPy."""
        symbol = sympy.Symbol(name, real=True)
        if value is not None:
            self.values[symbol] = self.datum(value) if isinstance(value, float) else value
        return symbol

    def value_of(self, expression: Any, digits: int = DIGITS) -> Any:
        """The value of an expression at the point as a SymPy number; raises Undecided where no digits are known."""
        exact = exactly(expression)
        coarse, fine = (exact.evalf(n, subs=self.values) for n in (digits, digits + GUARD))
        if not (fine.is_Number and coarse.is_Number and fine.is_finite):
            raise Undecided("SymPy finds no real number")
        if abs(fine - coarse) > abs(fine) * sympy.Float(10) ** (5 - digits):
            raise Undecided("SymPy's digits are not certain")
        return fine

    def sign(self, x: Any) -> int:
        """The sign of an expression at the point; raises Undecided where its digits do not decide."""
        exact = exactly(x).xreplace(self.values)
        value = exact if exact.is_Rational else self.value_of(x)
        if value == 0:
            self.ties.append(x)
        return int(bool(value > 0)) - int(bool(value < 0))

    def held(self, name: str, x: Any) -> Any:
        return self.symbol(name, self.value_of(x, 2 * DIGITS))

    def constant(self, value: Any) -> Any:
        if isinstance(value, str):
            named = {"pi": sympy.pi, "e": sympy.E, "inf": sympy.oo, "-inf": -sympy.oo, "nan": sympy.nan}
            return named[value]
        return self.number(value)

    def number(self, value: int | Fraction) -> Any:
        return sympy.Rational(value.numerator, value.denominator)

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else sympy.sqrt(x)

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        if not isinstance(result, (bool, int, Failure, NoneType)) and tree_size(result) > MOST_OPERATIONS:
            raise Unsupported(f"more than {MOST_OPERATIONS:,} operations in SymPy")
        return super().accepted(node, result, operands)


def derivative(output: Node, target: Node, entry: int, point: Point) -> Answer:
    """SymPy's derivative of a scalar node by one entry of another: the digits of its `value`, and a short `formula`.

    Raises Unsupported where SymPy has no rule or is over the limit; Undecided or Undefined where there is no number.
    """
    order = reachable([output])
    if target not in order:
        return {"value": "0", "formula": "0"}
    if (work := work_of(order)) > MOST_WORK:
        raise Unsupported(f"about {work:,} operations on entries, more than {MOST_WORK:,}")
    with limited(MOST_CALLS):
        field = SympyField(hold=True)
        leaves: dict[str, Entries] = {}
        for node in [leaf for leaf in order if leaf.primitive is LEAF]:
            name, (values, shape) = node.params["name"], point[node.params["name"]]
            free = len(field.values) + len(values) < MOST_SYMBOLS
            flat = [
                field.symbol(name + subscript(i, shape), float(x))
                if free or (node is target and i == entry)
                else field.datum(float(x))
                for i, x in enumerate(values)
            ]
            leaves[name] = Entries(flat, shape)
        inputs = leaves.get(target.params["name"]) if target.primitive is LEAF else None
        if inputs is None:
            entries = enumerate(FieldEvaluation(field, leaves)[target].flat)
            flat = [field.symbol(f"value{subscript(i, target.shape)}", field.value_of(x)) for i, x in entries]
            inputs = Entries(flat, target.shape)
        symbol = inputs.flat[entry]
        value = accepted(FieldEvaluation(field, leaves, {target: inputs})[output].flat[0])
        field.value_of(value)  # where there is no real value, a formula of its derivative means nothing
        formula = sympy.diff(value, symbol)
        if any(symbol in exactly(tie).free_symbols for tie in field.ties):
            raise Undecided("branches meet at the point")
        slope = field.value_of(accepted(formula))
        with ball_numbers.precision(ball_numbers.START_BITS):
            digits, shown = ball_numbers.digits(arb(str(slope))), text(formula)
        return {"value": digits, "formula": shown} if shown else {"value": digits}


def exactly(x: Any) -> Any:
    """A number of Python, or an expression, as an expression of SymPy; raises why an entry has no value."""
    if isinstance(x, Failure):
        raise x
    return sympy.sympify(x, strict=True)  # allowed: strict refuses text, so nothing is evaluated


def accepted(entry: Any) -> Any:
    """The expression of an entry; raises what is wrong with it."""
    expression = exactly(entry)
    for part in sympy.preorder_traversal(expression):
        if type(part).__name__ in NOT_REAL:
            raise Unsupported(f"SymPy's {type(part).__name__}")
    return expression


def tree_size(expression: Any) -> int:
    """The number of operations of an expression written out, where shared parts count as often as they are read."""
    known: dict[Any, int] = {}
    stack = [expression]
    while stack:
        missing = [arg for arg in stack[-1].args if arg not in known]
        if missing:
            stack.extend(missing)
        else:
            top = stack.pop()
            known[top] = 1 + sum([known[arg] for arg in top.args])
    return known[expression]


def text(expression: Any) -> str:
    """A formula as people read it; empty where it is long."""
    if tree_size(expression) > MOST_SHOWN:
        return ""
    numbers: Mapping[Any, Any] = {
        x: sympy.Float(x, 6) for x in expression.atoms(sympy.Rational) if max(abs(x.p), x.q) > LONG_NUMBER
    }
    shown = str(expression.xreplace(numbers))
    return shown if len(shown) <= MOST_SHOWN else ""


# --- factored formulas --------------------------------------------------------------------------------------------

LARGE = 60  # operations of an expression for which `cancel` takes too long
MARK = 0xE000  # a private character


class ScriptPrinter(StrPrinter):  # type: ignore[misc]  # SymPy has no types
    """SymPy expressions in the script language."""

    def _print_Exp1(self, expression: Any) -> str:
        return "e"

    def _print_Function(self, expression: Any) -> str:
        name = type(expression).__name__
        own = addresses().get(f"sympy.{name}")
        name = name if own is None else own.name
        declared = functions().get(name)
        if declared is None or not declared.pointwise or declared.static:
            raise Unsupported(f"{name} is not a function of one value")
        return f"{name}({', '.join([self._print(arg) for arg in expression.args])})"

    _print_Abs = _print_loggamma = _print_Function  # noqa: N815  # the names that SymPy looks for


def factored(node: Node) -> list[str]:
    """Texts for a scalar node on scalar leaves; raises Unsupported or Undecided where it has none, or has branches."""
    field = SympyField(hold=False)
    names = sorted({leaf.params["name"] for leaf in reachable([node]) if leaf.primitive is LEAF}, key=str.casefold)
    marks = {name: chr(MARK + place) for place, name in enumerate(names)}  # SymPy sorts symbols by their texts
    leaves = {name: Entries([field.symbol(mark + name)], ()) for name, mark in marks.items()}
    with limited(MOST_FOR_A_TEXT):
        expression = accepted(FieldEvaluation(field, leaves)[node].flat[0])
    without_marks = dict.fromkeys(map(ord, marks.values()))
    texts: list[str] = []
    cancelled = [lambda x: sympy.factor(sympy.cancel(x))] if tree_size(expression) <= LARGE else []
    for way in (sympy.factor, sympy.together, *cancelled):
        try:
            with limited(MOST_FOR_A_TEXT):
                texts.append(ScriptPrinter().doprint(way(expression)).translate(without_marks))
        except (Unsupported, ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError):
            continue  # SymPy raises what it likes: one proposal fewer
    return list(dict.fromkeys(texts))
