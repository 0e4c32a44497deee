"""Exact values for floats that may have lost their digits, found by a running error analysis of a scalar program.

In that analysis each operation adds half a unit in the last place of its result to a first-order bound on the error of
its value, and passes on the errors of its operands times its slope, which is measured by a second call of the
operation. So the bounds cost a few calls for each step of a program.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from gradcli.base.diagnostics import Diagnostic
from gradcli.calculator.along import all_finite
from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.node import CONSTANT, LEAF, Node
from gradcli.primitives.arithmetic import add, mul, neg, sub
from gradcli.primitives.steps import abs_, maximum, minimum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.execution.evaluate import Tape
    from gradcli.graph.primitive import Primitive

MOST_DOUBTED = 2000  # nodes of a program whose digits are doubted, with the iterations of its loops
UNIT = 2.0**-53
TINIEST = 5e-324
APART = 2.0**-30  # relative step of a measured slope: far above a rounding, and far below most curvature
WHOLE = 2.0**53
HALF_OF_THE_DIGITS = 2.0**-26
NOTHING = 2.0**-1060  # an error below this is no loss, whatever the value


def lost_digits(
    question: PreparedScript, values: Mapping[str, Any], results: Sequence[Any], backend: str, dtype: str
) -> tuple[dict[str, Any] | None, tuple[Diagnostic, ...]]:
    """The exact values for floats that lost their digits, and a warning that names the operation.

    Exact arithmetic is used only if a result is not finite, or if the running error bound of a scalar program is large.
    """
    tape, names = question.tape, question.names
    if dtype != "float64" or backend not in ("auto", "numpy") or _steps(tape) > MOST_DOUBTED:
        return None, ()
    outputs = tape.outputs[: 1 + len(names)] if names else tape.outputs
    finite = all(map(is_finite, results[: len(outputs)]))
    if finite and not tape.scalar:
        return None, ()
    floats = tape.run_all(values, backend=backend)
    if finite:
        errors = running_errors(tape.nodes, floats)
        if not any(digits_are_lost(result, errors[node]) for result, node in zip(results, outputs, strict=False)):
            return None, ()
    from gradcli.checks.decide.precision import lost_digits as compared  # exact arithmetic, rarely needed

    lost = compared(outputs, floats, values)
    if lost is None:
        return None, ()
    count = len(outputs) - len(names)
    shown: dict[str, Any] = {}
    if any(position < count for position in lost.exact):
        shown["value"] = [lost.exact.get(i) for i in range(count)] if count > 1 else lost.exact[0]
    gradient = {name: lost.exact[count + i] for i, name in enumerate(names) if count + i in lost.exact}
    shown |= {"gradient": gradient} if gradient else {}
    whose = [
        *(["the value"] if "value" in shown else []),
        *(f"the gradient with respect to {name}" for name in gradient),
    ]
    message = f"{' and '.join(whose)} lost its digits" if len(whose) == 1 else f"{', '.join(whose)} lost their digits"
    where = f" in {lost.text}" if lost.text else ""
    span = None if lost.node is None else lost.node.span
    warning = Diagnostic("GC409", message + where, span, severity="warning").with_source(question.lowered.source)
    return {**shown, "lost_in": lost.text or None}, (warning,)


def _steps(tape: Tape) -> int:
    """Roughly the number of steps in a run of a tape, including those in the iterations of its loops."""
    return len(tape.nodes) + sum(scan.count * len(scan.order) for scan in tape.loops.values())


def is_finite(value: Any) -> bool:
    """Whether every entry of a value is a finite number."""
    if type(value) is float:
        return value - value == 0.0
    if not hasattr(value, "shape"):
        return False  # complex values are left to `undefined_values`
    return all_finite(value)


def running_errors(nodes: Sequence[Node], values: Mapping[Node, Any]) -> dict[Node, float]:
    """A bound on the error of each value, in the topological order of the nodes; inf for values that are not finite.

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
            errors[node] = passed_on(node, value, operands) + rounding(node.primitive, value, operands)
    return errors


def digits_are_lost(value: float, error: float) -> bool:
    """Whether half of the digits of a value may be wrong."""
    return not (isfinite(value) and error <= max(HALF_OF_THE_DIGITS * abs(value), NOTHING))


def rounding(operation: Primitive, value: float, operands: Sequence[tuple[float, float]]) -> float:
    """The rounding error of the result: 0 if it is certainly exact."""
    if not isfinite(value):
        return float("inf")
    if operation in (neg, abs_):
        return 0.0
    if operation in (add, sub) and len(operands) == 2:  # the sum is exact where both operands can be read from it
        x, y = operands[0][0], operands[1][0] if operation is add else -operands[1][0]
        share = value - x
        return 0.0 if (x - (value - share)) + (y - share) == 0 else UNIT * abs(value)
    if all(error == 0 and x.is_integer() for x, error in operands) and value.is_integer() and abs(value) < WHOLE:
        return 0.0 if operation in (mul, maximum, minimum) else UNIT * abs(value)
    return UNIT * abs(value) + (0.0 if value and abs(value) > 1e-300 else TINIEST)


def passed_on(node: Node, value: float, operands: Sequence[tuple[float, float]]) -> float:
    """The errors of the operands, times the slopes of the operation."""
    operation = node.primitive
    if operation in (add, sub, neg, abs_):
        return sum(error for _, error in operands)
    if operation is mul and len(operands) == 2:
        (a, ea), (b, eb) = operands
        return (abs(a) * eb if eb else 0.0) + (abs(b) * ea if ea else 0.0)
    total = 0.0
    for position, (x, error) in enumerate(operands):
        if error:
            total += error * slope(node, value, [a for a, _ in operands], position, max(error, APART * abs(x)))
    return total


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
