"""Records a tape as ufuncs, views, reductions and matrix products, without computing anything.

Each operation's own `impl` is called with a namespace that records, so there is no second table of formulas. What an
`impl` does that cannot be recorded (a library's routine, a branch on values) stays one call of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.execution.plans.tracing import Operations, Unrecordable, lead_of
from gradcli.execution.plans.values import live
from gradcli.execution.scan_plan import loop_steps
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans.values import Value
    from gradcli.graph.node import Node


class Recording:
    """Steps in order, the inputs among their operands, and what the outputs are."""

    __slots__ = ("inputs", "ops", "outputs")

    def __init__(self, ops: list[Any], inputs: list[tuple[Node, Value]], outputs: list[Value]) -> None:
        self.ops = ops
        self.inputs = inputs
        self.outputs = outputs


def record(
    tape: Tape,
    dtype: str,
    held: Mapping[str, Any] | None = None,
    points: tuple[Collection[str], int] | None = None,
) -> Recording:
    """The steps of a tape, in the order of its nodes, without those that no output needs.

    `held` gives leaves that stay as they are: arrays of constants, which may have one batch axis in front.
    `points` names the inputs whose first axis counts points, and says how many there are; the steps then give the
    evaluator's zeros with their signs.
    """
    operations = Operations(dtype, faithful=points is not None)
    steps, xp = operations.steps, operations.xp
    found: dict[Node, Value] = {}
    inputs = []
    for node in tape.nodes:
        primitive = node.primitive
        steps.node = node
        if primitive is CONSTANT:
            found[node] = operations.constant(node)
        elif primitive is DATA:
            found[node] = steps.array(xp.numbers(tape.data[node.params["digest"]], node.type.kind))
        elif primitive is LEAF and held and node.params["name"] in held:
            found[node] = steps.array(xp.numbers(held[node.params["name"]], node.type.kind))
        elif primitive is LEAF:
            lead = (points[1],) if points is not None and node.params["name"] in points[0] else ()
            value = found[node] = steps.leaf(node, xp.kind_type(node.type.kind), lead)
            inputs.append((node, value))
        elif node in tape.loops:
            scan, _ = tape.loops[node]
            args = [found[arg] for arg in node.args]
            if held and lead_of(node, args):
                raise Unrecordable("a batch axis in front of a loop")
            read = loop_steps(operations, scan, args)
            found.update(zip(scan.readers, read, strict=True))
        elif not is_reader(node):
            args = [found[arg] for arg in node.args]
            found[node] = operations.value(node, args, lead_of(node, args) if held or points else ())
    outputs = [found[node] for node in tape.outputs]
    return Recording(live(steps.ops, outputs), inputs, outputs)
