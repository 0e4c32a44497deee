"""Where a derivative is a convention, because an operation has a kink at the point; and its true value, if it has one.

The declared kinks of a program are looked at in floats. Only where one may be met are exact numbers asked for: the
derivative may exist in spite of it, as those of abs(x)**2 at 0 do.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic
from gradcli.graph.node import reachable
from gradcli.graph.types import Type
from gradcli.lowering.derived import written_derivative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.graph.node import Node
    from gradcli.lowering import Lowered
    from gradcli.lowering.derived import Derived

MOST_ENTRIES = 1 << 16  # of all arrays of a program whose kinks are looked at
NEAR = 1e-9  # how far floats may be from exact values, relative to these


def to_ask(question: PreparedScript, values: Mapping[str, Any], dtype: str, backend: str) -> bool:
    """Whether an operation may be at a kink, in a program that exact numbers are affordable for."""
    few = backend in ("auto", "numpy") and question.entries() <= MOST_ENTRIES
    return few and dtype != "complex128" and question.at_a_kink(values, dtype)


def of_gradient(
    question: PreparedScript, results: Mapping[str, Any], values: Mapping[str, Any], dtype: str, backend: str
) -> list[Diagnostic]:
    """A note on the leaves whose gradient is a convention."""
    lowered = question.lowered
    if not to_ask(question, values, dtype, backend):
        return []
    derived, leaves = first_derivatives(question)
    known, reasons = true_values(list(leaves), derived, values)
    for node, value in known.items():
        difference: Any = abs(value - results[leaves[node]])
        if not (difference <= NEAR * abs(value)).all():
            reasons[node] = f"the derivative is {value.tolist()}"
    return notes(lowered, "the gradient by", {leaves[node]: reason for node, reason in reasons.items()})


def of_second_order(
    question: PreparedScript, finite: bool, values: Mapping[str, Any], dtype: str, backend: str
) -> tuple[dict[tuple[str, str], Any], list[Diagnostic]]:
    """The true blocks of a Hessian at a kink, by the names of rows and columns, as far as they exist, and notes."""
    lowered = question.lowered
    if dtype != "float64" or (finite and not to_ask(question, values, dtype, backend)):
        return {}, []
    derived, leaves = first_derivatives(question)
    blocks: dict[Node, tuple[str, str]] = {}
    for gradient, row in leaves.items():
        for column in question.names:
            target = lowered.program.leaves[column].node
            block = target.builder.fresh_leaf(Type("float", gradient.type.shape + target.type.shape))
            derived[block], blocks[block] = ("jacobian", gradient, target), (row, column)
    known, reasons = true_values(list(blocks), derived, values)
    named = {" and ".join(sorted({*blocks[block]})): reason for block, reason in reasons.items()}
    return {blocks[block]: plain(value) for block, value in known.items()}, notes(
        lowered, "the second derivative by", named
    )


def of_value(
    question: PreparedScript, finite: bool, values: Mapping[str, Any], dtype: str, backend: str
) -> tuple[dict[Node, Any], list[Diagnostic]]:
    """The true values of outputs that are made of derivatives at a kink, as far as they have one, and a note."""
    lowered = question.lowered
    outputs, derived = lowered.program.outputs, lowered.derived
    if dtype != "float64" or (finite and not to_ask(question, values, dtype, backend)):
        return {}, []
    known, reasons = true_values(outputs, derived, values)
    return {node: plain(value) for node, value in known.items()}, notes(
        lowered, "the", dict.fromkeys(["value"] if reasons else [], next(iter(reasons.values()), ""))
    )


def first_derivatives(question: PreparedScript) -> tuple[dict[Node, tuple[Any, ...]], dict[Node, str]]:
    """Nodes that stand for the gradients of a scalar output, and their names."""
    (output,), leaves = question.lowered.program.outputs, question.lowered.program.leaves
    gradients = {output.builder.fresh_leaf(leaves[name].node.type): name for name in question.names}
    return {node: ("grad", output, leaves[name].node) for node, name in gradients.items()}, gradients


def true_values(
    nodes: Sequence[Node], derived: Derived, values: Mapping[str, Any]
) -> tuple[dict[Node, Any], dict[Node, str]]:
    """The exact values of nodes, with the derivatives in them, as arrays; and why some have none."""
    from gradcli.checks.decide.precision import exact_derivatives  # exact arithmetic, rarely needed

    about = [(node, *of) for node in reachable(nodes) if (of := written_derivative(node, derived)) is not None]
    answers = exact_derivatives(nodes, about, values)
    reasons = {node: answer for node, answer in answers.items() if isinstance(answer, str)}
    return {node: answer for node, answer in answers.items() if node not in reasons}, reasons


def plain(value: Any) -> Any:
    return value if value.shape else float(value)


def notes(lowered: Lowered, what: str, reasons: Mapping[str, str]) -> list[Diagnostic]:
    """A note for each reason, with the names that it holds for."""
    named = {reason: [name for name in reasons if reasons[name] == reason] for reason in reasons.values()}
    place, source = lowered.program.outputs[0].span, lowered.source
    texts = [f"{what} {'; by '.join(names)} is a convention: {reason}" for reason, names in named.items()]
    return [Diagnostic("GC410", text, place, severity="note", source=source) for text in texts]
