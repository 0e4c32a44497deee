"""Where the operations of a program are not smooth: nodes that are zero there, from the declared kinks."""

from __future__ import annotations

from gradcli.graph.building import building
from gradcli.graph.node import Node
from gradcli.graph.primitive import Kink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EQUAL_SIDES = Kink(lambda x, y: x - y, "both sides are equal", "the branch of the comparison")


def kinks_of(node: Node) -> Sequence[Kink]:
    """The kinks of an operation; a comparison has one where its sides meet."""
    compared = bool(node.primitive.compares) and node.args[0].type.kind == "float"
    return (EQUAL_SIDES,) if compared else node.primitive.kinks


def surfaces(nodes: Sequence[Node]) -> Iterator[tuple[Node, Node, Kink]]:
    """Each node that is not smooth somewhere, the node that is zero there, and the kink; `nodes` are in order."""
    if any(map(kinks_of, nodes)):
        with building(nodes[0].builder, nodes):
            for node in nodes:
                for kink in kinks_of(node):
                    zero = kink.surface(*node.args, **node.params)
                    if isinstance(zero, Node) and zero.type.kind == "float":
                        yield node, zero, kink
