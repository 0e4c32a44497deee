"""Lowers the claims of a script, `assert a == b`, to pairs of nodes."""

from __future__ import annotations

from gradcli.diagnostics import GradcliError, error
from gradcli.graph.node import LEAF, Node
from gradcli.language import syntax as s
from gradcli.language.unparse import unparse
from gradcli.lowering.expressions import evaluate
from gradcli.lowering.lists import plain
from gradcli.lowering.lowered import Claim
from gradcli.lowering.operands import number
from gradcli.primitives.broadcasting import together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.lowering.lowerer import Lowerer


def asserted(lowerer: Lowerer, statement: s.Assert) -> None:
    """A claim, as far as it is needed. The limits do not apply to a claim that is only read."""
    sides = _sides(statement)
    lowerer.untraceable()
    if lowerer.claiming == "skipped":
        return
    if lowerer.claiming == "kept":
        lowerer.claims.append(_claim(lowerer, statement, *sides))
        return
    before = lowerer.builder.count
    try:
        _claim(lowerer, statement, *sides)
    except GradcliError as problem:
        if not all(diagnostic.code.startswith("GC5") for diagnostic in problem.diagnostics):
            raise
    finally:
        lowerer.builder.limit += lowerer.builder.count - before


def _sides(statement: s.Assert) -> tuple[s.Expression, s.Expression]:
    test = statement.test
    if not isinstance(test, s.Compare) or test.ops != ("==",):
        raise error(
            "GC314",
            "a claim is an equality",
            test.span,
            help="write assert grad(y, x) == 2*x; a tolerance goes into a remark: # rtol=1e-8",
        )
    left, right = test.operands
    return left, right


def _claim(lowerer: Lowerer, statement: s.Assert, left_syntax: s.Expression, right_syntax: s.Expression) -> Claim:
    test = statement.test
    left = number(lowerer, evaluate(lowerer, left_syntax), left_syntax)
    right = number(lowerer, evaluate(lowerer, right_syntax), right_syntax)
    derivative = _derivative(lowerer, left_syntax)
    if derivative is None and (derivative := _derivative(lowerer, right_syntax)) is not None:
        left, right = right, left
    lowerer.builder.span = statement.span
    if left.type.shape != right.type.shape:
        try:
            left, right = together(left, right, verb="compare")
        except GradcliError:
            raise error(
                "GC314",
                f"the sides of the claim are {left.type} and {right.type}",
                test.span,
                labels=((left_syntax.span, str(left.type)), (right_syntax.span, str(right.type))),
                help="a gradient has the shape of the name it belongs to",
            ) from None
    leaf = None
    if derivative is not None and derivative[1].primitive is LEAF:
        leaf = derivative[1].params["name"]
    return Claim(
        left,
        right,
        statement.span,
        unparse(test),
        lowerer.source,
        statement.rtol,
        statement.expect,
        leaf,
        derivative,
        lowerer.derived,
    )


def _derivative(lowerer: Lowerer, expression: s.Expression) -> tuple[Node, Node] | None:
    if not isinstance(expression, s.Call) or expression.function.id != "grad" or len(expression.args) != 2:
        return None
    output, target = (plain(lowerer, evaluate(lowerer, arg)) for arg in expression.args)
    return (number(lowerer, output), target) if isinstance(target, Node) else None
