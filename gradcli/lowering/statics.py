"""Exact values of nodes while a script is lowered: range bounds, shapes, axes, indices, conditions.

Arithmetic on static values is done with exact fractions, through names and functions. Every leaf that a static value
reads is reported to the caller, because such a leaf can no longer be differentiated.
"""

from __future__ import annotations

import math

from gradcli.base.diagnostics import GradcliError, error
from gradcli.graph.exact import is_fraction, number_text, rational
from gradcli.graph.node import CONSTANT, DATA, LEAF, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.node import Node

    Exact = int | Fraction | float

INEXACT = object()  # stands for the value of a node that was computed in floats
MOST_BITS = 4096  # of an exact number: squaring a number again and again would otherwise never end


def _power(x: Any, n: int) -> Any:
    if type(x) is not int and not is_fraction(x):
        return x**n
    if abs(n) * (max(abs(x.numerator), x.denominator).bit_length() - 1) > MOST_BITS:
        raise ValueError(f"it has more than {MOST_BITS:,} binary digits")
    return rational(x**n) if n >= 0 else rational(1, x**-n)


# What stays exact. Anything else is computed in floats by the evaluator.
_EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": rational,
    "power": _power,
    "neg": lambda x: -x,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "abs": abs,
    "mod": lambda x, y: x - y * math.floor(rational(x, y)),
    "maximum": max,
    "minimum": min,
    "and": lambda x, y: bool(x and y),
    "or": lambda x, y: bool(x or y),
    "not": lambda x: not x,
    "where": lambda condition, x, y: x if condition else y,
    "cast": lambda x, kind: int(x) if isinstance(x, bool) else x,
    "named": lambda x, id: x,
    "detach": lambda x: x,
}


def sign_of(x: Any) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


class Untraceable(Exception):
    """Raised when a traced iteration of a loop may differ from others: all are then written out."""


def read_leaves(node: Node) -> list[Node]:
    """The leaves that a node's value depends on."""
    if node.primitive is CONSTANT:
        return []
    return [inner for inner in reachable([node]) if inner.primitive is LEAF]


class Settled:
    """Finds out which nodes read accepted leaves only. Results are kept, so a long chain is searched only once.

    An accepted leaf remains accepted; another one may be accepted later. The function that accepts leaves is passed at
    each call and not stored: a bound method would make a reference cycle.
    """

    __slots__ = ("_others", "_settled")

    def __init__(self) -> None:
        self._settled: set[Node] = set()
        self._others: dict[Node, Node] = {}

    def other(self, node: Node, accepted: Callable[[Node], bool]) -> Node | None:
        """A leaf that the node's value depends on and that is not accepted, if there is one."""
        if node.primitive is CONSTANT:
            return None
        settled = self._settled
        pending = [(node, False)]
        while pending:
            current, finished = pending.pop()
            if finished:
                settled.add(current)
            elif current not in settled and current.primitive is not CONSTANT:
                known = current if current.primitive is LEAF else self._others.get(current)
                if known is not None and not accepted(known):
                    self._others[node] = known
                    return known
                pending.append((current, True))
                pending.extend([(arg, False) for arg in reversed(current.args)])
        return None


def exact_value(
    node: Node,
    leaf_value: Callable[[Node], Any],
    evaluate: Callable[[Node], Any],
    span: Span | None,
    known: dict[Node, Any] | None = None,
) -> Any:
    """The exact value of a node: a number for a scalar, nested tuples for an array.

    `leaf_value` returns the value of a leaf (and records it); `evaluate` computes a node in floats; `known` keeps exact
    values between calls, so that a growing chain is computed only once. Raises GradcliError GC306 if the value is not a
    finite number.
    """
    if node.primitive is CONSTANT and not node.type.shape:
        return _finite(node.params["value"], span)
    known = {} if known is None else known
    order = reachable([node], known)  # what is known is not walked again
    exact = all(_stays_exact(step, known) for step in order)
    for step in order:
        if step in known:
            continue
        if step.primitive is LEAF:
            value = leaf_value(step)
            known[step] = INEXACT if step.type.shape else _number(value)
        elif step.primitive is CONSTANT:
            known[step] = INEXACT if step.type.shape else _number(step.params["value"])
        else:
            operands = [known[arg] for arg in step.args]
            try:
                inexact = not _stays_exact(step, known) or INEXACT in operands
                known[step] = INEXACT if inexact else _apply(step, operands, span)
            except (GradcliError, TypeError):  # a complex number has no order
                if exact:
                    raise
                known[step] = INEXACT
    return _finite(known[node], span) if exact else _frozen(evaluate(node), span)


def _stays_exact(step: Node, known: Mapping[Node, Any]) -> bool:
    if step in known:
        return known[step] is not INEXACT
    primitive = step.primitive
    if step.type.shape or primitive is DATA:
        return False
    return primitive in (CONSTANT, LEAF) or primitive.name in _EXACT or bool(primitive.compares)


def whole(value: Any) -> Any:
    """An int where a number is one, else the number itself."""
    if isinstance(value, bool) or type(value) is int:
        return int(value)
    if (isinstance(value, float) or is_fraction(value)) and value == int(value):
        return int(value)
    return value


def _apply(step: Node, operands: list[Any], span: Span | None) -> Any:
    try:
        if step.primitive.holds is not None:
            result = step.primitive.holds(sign_of(operands[0] - operands[1]))
        else:
            result = _EXACT[step.primitive.name](*operands, **step.params)
        if is_fraction(result) or type(result) is int:
            if max(result.numerator.bit_length(), result.denominator.bit_length()) > MOST_BITS:
                raise ValueError(f"it has more than {MOST_BITS:,} binary digits")
        return result
    except ZeroDivisionError:
        raise error("GC306", "this value cannot be computed: it divides by zero", step.span or span) from None
    except (OverflowError, ValueError) as problem:
        raise error("GC306", f"this value cannot be computed: {problem}", step.span or span) from None


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return {"pi": math.pi, "e": math.e, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value]
    if isinstance(value, float) and math.isfinite(value):
        return rational(*value.as_integer_ratio())
    return value


def _finite(value: Any, span: Span | None) -> Any:
    value = _number(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise error("GC306", f"a size, index or bound must be a finite number, not {number_text(value)}", span)
    return whole(value)


def _frozen(value: Any, span: Span | None) -> Any:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, list):
        return tuple(_frozen(item, span) for item in listed)
    return _finite(float(listed), span)
