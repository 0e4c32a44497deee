"""Lowers derivative operators in a script, such as `grad(y, x)`, to the graph of the derivative."""

from __future__ import annotations

from gradcli.diagnostics import error
from gradcli.graph.node import LEAF, Node
from gradcli.graph.types import broadcast_shapes
from gradcli.lowering.lists import ScriptList
from gradcli.lowering.operands import number
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.language.syntax import Call
    from gradcli.lowering.lowerer import Lowerer

_FORMS = {
    "grad": "grad(y, x) or grad(y, x, n)",
    "jacobian": "jacobian(y, x)",
    "hessian": "hessian(y, x)",
    "laplacian": "laplacian(y, x)",
    "jvp": "jvp(y, x, v)",
    "vjp": "vjp(y, x, u)",
    "hvp": "hvp(y, x, v)",
}


def call_derivative(lowerer: Lowerer, syntax: Call, args: Sequence[Any], keywords: Mapping[str, Any]) -> Node:
    """The graph of grad, jacobian, hessian, laplacian, jvp, vjp or hvp."""
    name, span = syntax.function.id, syntax.span
    counts = (2, 3) if name == "grad" else (3,) if name in ("jvp", "vjp", "hvp") else (2,)
    if len(args) not in counts or keywords:
        raise error(
            "GC205",
            f"{name} takes {' or '.join(map(str, counts))} arguments",
            span,
            help=f"write {_FORMS[name]}",
        )
    output = number(lowerer, args[0], syntax.args[0])
    target = args[1]
    if type(target) is ScriptList:
        target = _list_target(lowerer, target, syntax)
    if not (isinstance(target, Node) and (target.primitive is LEAF or target.primitive.name == "name")):
        raise error(
            "GC207",
            f"{name} differentiates with respect to a leaf, or to a name that is assigned once",
            syntax.args[1].span,
            help="give the expression a name of its own, or make it a leaf",
        )
    for trace in lowerer.traces:
        trace.differentiate(lowerer, output, target)
    lowerer.differentiated(target, syntax.args[1].span)
    if name not in ("jacobian", "jvp", "vjp") and output.type.shape:
        raise error(
            "GC307",
            f"{name} needs a scalar, and this is {output.type}",
            syntax.args[0].span,
            help="take sum(...) of it, or use jacobian",
        )
    if len(args) == 2:
        found = _two(name, output, target)
        lowerer.derived[found] = (name, output, target)
        return found
    if name == "grad":
        order = lowerer.static(args[2], syntax.args[2].span)
        if type(order) is not int or order < 1:
            raise error("GC306", f"the order of a derivative is 1, 2, 3, ..., not {order}", syntax.args[2].span)
        if target.type.shape:
            message = f"grad(y, x, n) needs a scalar x, and this is {target.type}"
            raise error("GC307", message, syntax.args[1].span, help="use hessian for second derivatives")
        orders = [output, *derivatives.nth(output, target, order)]
        lowerer.derived[orders[-1]] = (name, orders[-2], target)
        return orders[-1]
    direction = _fill(number(lowerer, args[2], syntax.args[2]), output if name == "vjp" else target, syntax)
    if name == "jvp":
        return derivatives.jvp([output], [target], [direction])[0]
    if name == "vjp":
        return derivatives.vjp([output], [direction], [target])[0]
    return derivatives.hvp(output, target, direction)


def _list_target(lowerer: Lowerer, target: ScriptList, syntax: Call) -> Node:
    """A list as a variable: the array that the script has read after the loops that append to it."""
    size, read = target.size, target.tagged_size
    if target.tagged is not None and read != size:
        message = (
            f"{syntax.function.id} differentiates with respect to a list, which had {read} of its {size} "
            "entries when it was read"
        )
        raise error("GC207", message, syntax.args[1].span, help="read it only after the last append")
    return target.as_array(lowerer)


def _two(name: str, output: Node, target: Node) -> Node:
    if name == "grad":
        return derivatives.grad(output, [target])[0]
    if name == "jacobian":
        return derivatives.jacobian(output, target)
    if name == "hessian":
        return derivatives.hessian(output, target)
    return derivatives.laplacian(output, target)


def _fill(direction: Node, like: Node, syntax: Call) -> Node:
    if broadcast_shapes(direction.type.shape, like.type.shape) != like.type.shape:
        raise error("GC313", f"the direction is {direction.type}, but {like.type} is needed", syntax.args[2].span)
    filled: Node = stretch(direction, like.type.shape)
    return filled
