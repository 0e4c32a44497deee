"""Running error analysis of scalar programs: a first-order bound on the rounding error of every value, beside it.

Each operation adds half a unit in the last place of its result, and passes on the errors of its operands times its
slope, which is measured by a second call of the operation. So the bound costs a few calls for each step of a program.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.node import CONSTANT, LEAF, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

UNIT = 2.0**-53
TINIEST = 5e-324
APART = 2.0**-30  # relative step of a measured slope: far above a rounding, and far below most curvature
WHOLE = 2.0**53
HALF_OF_THE_DIGITS = 2.0**-26
NOTHING = 2.0**-1060  # an error below this is no loss, whatever the value


def running_errors(nodes: Sequence[Node], values: Mapping[Node, Any]) -> dict[Node, float]:
    """A bound on the error of each value, in the topological order of the nodes; inf beside what is not finite.

    Leaves are exact, and a literal is off by the rounding of its decimal.
    """
    errors: dict[Node, float] = {}
    for node in nodes:
        value = values[node]
        if node.primitive is LEAF:
            errors[node] = 0.0
        elif node.primitive is CONSTANT:
            literal = node.params["value"]
            exact = isinstance(literal, int | Fraction) and isfinite(value) and Fraction(value) == literal
            errors[node] = 0.0 if exact else UNIT * abs(value)
        else:
            operands = [(values[arg], errors[arg]) for arg in node.args]
            errors[node] = passed_on(node, value, operands) + rounding(node.primitive.name, value, operands)
    return errors


def digits_are_lost(value: float, error: float) -> bool:
    """Whether half of the digits of a value may be wrong."""
    return not (isfinite(value) and error <= max(HALF_OF_THE_DIGITS * abs(value), NOTHING))


def rounding(name: str, value: float, operands: Sequence[tuple[float, float]]) -> float:
    """What rounding the result adds: nothing where it is exact for certain."""
    if not isfinite(value):
        return float("inf")
    if name in ("neg", "abs"):
        return 0.0
    if name in ("add", "sub") and len(operands) == 2:  # the sum is exact where both operands can be read from it
        one, other = operands[0][0], operands[1][0] if name == "add" else -operands[1][0]
        share = value - one
        return 0.0 if (one - (value - share)) + (other - share) == 0 else UNIT * abs(value)
    if all(error == 0 and x.is_integer() for x, error in operands) and value.is_integer() and abs(value) < WHOLE:
        return 0.0 if name in ("mul", "maximum", "minimum") else UNIT * abs(value)
    return UNIT * abs(value) + (0.0 if value and abs(value) > 1e-300 else TINIEST)


def passed_on(node: Node, value: float, operands: Sequence[tuple[float, float]]) -> float:
    """The errors of the operands, times the slopes of the operation."""
    name = node.primitive.name
    if name in ("add", "sub", "neg", "abs"):
        return sum(error for _, error in operands)
    if name == "mul" and len(operands) == 2:
        (a, ea), (b, eb) = operands
        return (abs(a) * eb if eb else 0.0) + (abs(b) * ea if ea else 0.0)
    found = 0.0
    for position, (x, error) in enumerate(operands):
        if error:
            found += error * slope(node, value, [one for one, _ in operands], position, max(error, APART * abs(x)))
    return found


def slope(node: Node, value: float, xs: list[Any], position: int, step: float) -> float:
    """The size of the slope of an operation by one operand, from a step up or down; 0 where neither can be taken."""
    if not isfinite(step):
        return float("inf")
    params = node.params if node.primitive.pointwise else {**node.params, "ranks": (0,) * len(xs)}
    assert node.primitive.impl is not None
    for change in (step, -step):
        moved = [*xs[:position], xs[position] + change, *xs[position + 1 :]]
        try:
            there = float(node.primitive.impl(namespace("math"), *moved, **params))
        except (ValueError, OverflowError, ZeroDivisionError, Unavailable):
            continue
        if isfinite(there):
            return abs(there - value) / step
    return 0.0
