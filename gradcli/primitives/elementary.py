"""An operation in simpler ones, as `elementary` of its declaration writes it, computed in any arithmetic.

The text is written apart from values, partials and SymPy, and this module imports none of them, so that proofs that use
it are independent of what they judge.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from gradcli.graph.primitive import OPERATORS
from gradcli.language.substitution import expression_of
from gradcli.language.syntax import Binary, Call, Compare, Name, Number, Unary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gradcli.graph.primitive import Primitive
    from gradcli.language.syntax import Syntax

expression = cache(expression_of)


def expand(
    primitive: Primitive, args: tuple[Any, ...], number: Callable[[Fraction], Any], apply: Callable[..., Any]
) -> Any:
    """The operation on some arguments; `number` makes a number of the arithmetic, `apply(name, *xs)` computes.

    >>> from gradcli.primitives import functions
    >>> expand(functions()["logit"], ("p",), str, lambda name, *xs: f"{name}({', '.join(xs)})")
    'sub(log(p), log(sub(1, p)))'
    """
    known = dict(zip(primitive.argument_names(), args, strict=True))

    def value(node: Syntax) -> Any:
        if isinstance(node, Number):
            return number(node.value)
        if isinstance(node, Name):
            return known[node.id] if node.id in known else apply(node.id)
        if isinstance(node, Unary):
            return apply("not" if node.op == "not" else "neg", value(node.operand))
        if isinstance(node, Binary) and node.op == "**" and isinstance(node.right, Number):
            return apply("power", value(node.left), node.right.value)
        if isinstance(node, Binary):
            return apply(OPERATORS[node.op], value(node.left), value(node.right))
        if isinstance(node, Compare):
            return apply(OPERATORS[node.ops[0]], *map(value, node.operands))
        assert isinstance(node, Call), "elementary texts hold numbers, arguments, operators and calls"
        return apply(node.function.id, *map(value, node.args))

    return value(expression(primitive.elementary))
