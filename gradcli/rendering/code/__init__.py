"""A value and its gradient as a function in another language, in a file of its own with a test of its values.

`python_code` writes NumPy, PyTorch and JAX, `c_code` C, both from the syntax trees of formulas. Before that, names that
mean something else in the language are replaced, and operations on constants are done.
"""

from __future__ import annotations

import dataclasses
import math

from gradcli.language.substitution import expression_of, replaced
from gradcli.language.syntax import Binary, Call, Name, Number, Syntax, Unary, children
from gradcli.language.unparse import unparse
from gradcli.rendering.code.c_code import SAME, c_file, is_c_word
from gradcli.rendering.code.python_code import PYTHON_WORDS, python_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from gradcli.results.calculations import SelfContained

TARGETS = ("numpy", "torch", "jax", "c")
OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}
CONSTANTS = {"pi": math.pi, "e": math.e}


def source_file(function: SelfContained, target: str) -> str:
    """The text of a file for one of TARGETS; raises GradcliError GC512 if the target lacks a function."""
    names = own_names([*function.leaves, *function.sizes, *function.parts], target)
    prepared = dataclasses.replace(
        function,
        leaves={names[leaf]: axes for leaf, axes in function.leaves.items()},
        sizes={names[size]: (names[leaf], axis) for size, (leaf, axis) in function.sizes.items()},
        parts={names[part]: written(text, names) for part, text in function.parts.items()},
        value=written(function.value, names),
        gradient={names[leaf]: written(text, names) for leaf, text in function.gradient.items()},
        at={names[leaf]: value for leaf, value in function.at.items()},
        numbers={names[leaf]: value for leaf, value in function.numbers.items()},
    )
    labels = {new: name for name, new in names.items()}
    return c_file(prepared) if target == "c" else python_file(prepared, target, labels)


def own_names(names: Sequence[str], target: str) -> dict[str, str]:
    """What to call names in a language: a word of it, or what may be a macro, gets a `_` behind it."""
    is_word = is_c_word if target == "c" else PYTHON_WORDS.__contains__
    chosen = {name: name for name in names if not is_word(name)}
    for name in names:
        other = name
        while is_word(other) or other in {*names, *chosen.values()} - {name}:
            other = f"{other.lstrip('_') or 'x'}_"
        chosen.setdefault(name, other)
    return chosen


def written(text: str, names: Mapping[str, str]) -> str:
    """A formula with names replaced, and operations on constants done."""

    def renamed(node: Syntax) -> Syntax | None:
        return Name(names[node.id], node.span) if isinstance(node, Name) and node.id in names else None

    return unparse(folded(replaced(expression_of(text), renamed), {*names.values()}))


def folded(node: Syntax, own: Set[str]) -> Syntax:
    """A tree in which every operation on constants is its value; `own` are names that are no constants.

    >>> from gradcli.language.substitution import expression_of
    >>> unparse(folded(expression_of("2**3*x + 4/2*sqrt(2*e)*e - --x"), {"e"}))
    '8*x + 2*sqrt(2*e)*e - x'
    """
    if isinstance(node, Unary) and node.op == "-" and isinstance(node.operand, Unary) and node.operand.op == "-":
        return folded(node.operand.operand, own)
    value = constant(node, own) if isinstance(node, (Binary, Call)) else None
    if value is not None:
        return expression_of(str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value))
    return replaced(node, lambda inner: folded(inner, own) if inner is not node else None) if children(node) else node


def constant(node: Syntax, own: Set[str]) -> float | None:
    """The value of a tree without names; None where it has names, is no finite number, or calls what `math` lacks."""
    if isinstance(node, Number):
        return node.ratio[0] / node.ratio[1]
    if isinstance(node, Name):
        return CONSTANTS.get(node.id) if node.id not in own else None
    parts = [constant(child, own) for child in (node.args if isinstance(node, Call) else children(node))]
    values = [value for value in parts if value is not None]
    try:
        if len(values) < len(parts):
            return None
        if isinstance(node, Unary) and node.op == "-":
            return -values[0]
        if isinstance(node, Binary) and node.op in OPERATORS:
            value = OPERATORS[node.op](*values)
        elif (
            isinstance(node, Call)
            and not node.keywords
            and node.function.id in SAME
            and hasattr(math, node.function.id)
        ):
            value = getattr(math, node.function.id)(*values)
        else:
            return None
        return float(value) if not isinstance(value, complex) and math.isfinite(value) else None
    except (ArithmeticError, ValueError, TypeError):
        return None


__all__ = ["TARGETS", "source_file"]
