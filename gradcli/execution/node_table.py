"""A program as a table of its nodes, which the evaluator runs and the compilers read."""

from __future__ import annotations

from gradcli.execution.inputs import missing_values
from gradcli.graph.node import DATA, LEAF, Node, reachable
from gradcli.graph.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.execution.loops.scan import Scan

    Computation = Program | Node | Sequence[Node]


class NodeTable:
    """A program as its nodes in topological order, with their inputs, loops and outputs."""

    __slots__ = (
        "data", "defaults", "inputs", "loops", "nodes", "outputs", "scalar", "slots",
    )  # fmt: skip

    def __init__(
        self,
        program: Computation,
        data: Mapping[str, Any] | None,
        loops: Callable[[Sequence[Node]], dict[Node, Scan]],
    ) -> None:
        if isinstance(program, Program):
            self.outputs, self.nodes = program.outputs, program.nodes()
            self.defaults = {name: leaf.default for name, leaf in program.leaves.items()}
        else:
            self.outputs = (program,) if isinstance(program, Node) else tuple(program)
            self.nodes = reachable(self.outputs)
            self.defaults = {}
        self.slots = {node: slot for slot, node in enumerate(self.nodes)}
        self.data = self.outputs[0].builder.data if data is None and self.outputs else data or {}
        self.inputs = [(node, slot) for slot, node in enumerate(self.nodes) if node.primitive is LEAF]
        self.loops = loops(self.nodes)
        self.scalar = not any(node.type.shape or node.primitive is DATA for node in self.nodes) and all(
            scan.scalar for scan in self.loops.values()
        )

    def input_values(self, values: Mapping[str, Any]) -> list[Any]:
        """The value of each input: from `values`, else its default; GC202 for those that have neither."""
        result = []
        for node, _ in self.inputs:
            name = node.params["name"]
            value = values.get(name)
            if value is None:
                value = self.defaults.get(name)
                if value is None:
                    raise missing_values([node for node, _ in self.inputs], values, self.defaults)
            result.append(value)
        return result
