"""Results of one computation go in, each with a node of its own; the same results come out with one node for all.

PyTorch's `eigh`, `qr`, `svd`, `slogdet` or `var_mean` are one node with several outputs. Here each output has its own
rule, and the node adds up what they send back.
"""

from __future__ import annotations

from typing import Any

from gradcli.eager import tracing
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.saving import versions
from gradcli.eager.tensor import Tensor


class SeveralNode(Node):
    """The node of several results: for each output the node that knows its rule, or None where nothing flows."""

    __slots__ = ("outputs", "parts")
    outputs: int
    parts: tuple[Any, ...]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs: the sum over the outputs."""
        self.check_not_freed()
        total: list[Any] = [None] * len(self.ins)
        for ct, part in zip(cts, self.parts, strict=True):
            if ct is None or part is None:  # nothing flows through a step, as in PyTorch's
                continue
            for i, found in enumerate(part.run([ct], create_graph)):
                if found is not None:
                    total[i] = found if total[i] is None else total[i] + found
        return total

    def release(self) -> None:
        """Free what the parts saved."""
        super().release()
        for part in self.parts:
            if part is not None:
                part.release()


def one_node(name: str, *results: Tensor | None) -> tuple[Tensor, ...]:
    """The results as outputs of one node in this order; None stands for an output that nobody asked."""
    found = [x for x in results if x is not None]
    nodes = [None if x is None else x._node for x in results]
    made = [node for node in nodes if node is not None]
    if not made or any(isinstance(x, tracing.Traced) for x in found):
        return tuple(found)
    saved = tuple([one for node in made for one in node.saved or ()])
    node = class_named(SeveralNode, name)(made[0].ins, saved, made[-1].place)
    node._seq, node.vers = made[-1]._seq, versions(saved)
    node.outputs, node.parts = len(results), tuple(nodes)
    for i, x in enumerate(results):
        if x is not None:
            x._requires, x._edge = True, (node, i)
    return tuple(found)
