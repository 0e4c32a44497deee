"""Finds the nodes of a trace that the user did not write, and where a cotangent sent to one of them arrives.

Lowering inserts nodes that only move or repeat entries: the operands of `A @ x` become matrices, `x + b` repeats b.
"""

from __future__ import annotations

from gradcli.primitives.comparison import cast, named
from gradcli.primitives.movement import broadcast, permute, reshape
from gradcli.transforms.masks import clean
from gradcli.transforms.reverse import sweep
from gradcli.transforms.rules import contributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Builder, Node
    from gradcli.transforms.masks import Cotangent

    # an operand, the node that receives what is sent to it, what arrives there, and what becomes of a local partial on
    # the way: the partial as the receiver sees it, and whether its products with the cotangent are added up
    Route = tuple[Node, Node, Cotangent, Callable[[Node], tuple[Node, bool]]]

MOVING = frozenset([reshape, broadcast, permute, cast, named])


class Folding:
    """The nodes of a topological order that the script did not write (`inserted`).

    A moving node was inserted where an operation beside it comes from the same stretch of the script. What such nodes
    do to a result belongs to its operation: `A @ x` is a vector again (`ends`: the last of them, by the operation).
    """

    def __init__(self, order: Sequence[Node], output: Node | None = None) -> None:
        users: dict[Node, list[Node]] = {}
        for node in order:
            for arg in node.args:
                users.setdefault(arg, []).append(node)
        self.inserted: set[Node] = set()
        self.ends: dict[Node, Node] = {}
        behind: dict[Node, Node] = {}  # the operation whose result a node changes
        for node in order:
            if node.primitive not in MOVING:
                continue
            core = behind.get(node.args[0], node.args[0])
            later = [user for user in users.get(node, ()) if user.span == node.span]
            if core.args and core.primitive not in MOVING and core.span == node.span:
                behind[node] = core
                self.inserted.add(node)
                if not later and self._alone(node, core, users):
                    self.ends[core] = node
            elif later or node.span is None:
                self.inserted.add(node)
        self.cores = {end: core for core, end in self.ends.items()}
        if output is not None and output not in self.cores:
            self.inserted.discard(output)

    @staticmethod
    def _alone(node: Node, core: Node, users: dict[Node, list[Node]]) -> bool:
        """Whether all nodes from an operation to this one keep every entry, and nothing else reads what is between."""
        while node is not core:
            if node.primitive is broadcast or len(users[node.args[0]]) > 1:
                return False
            node = node.args[0]
        return True

    def stands_for(self, node: Node) -> Node:
        """The node that is shown where this one is read."""
        while node in self.inserted:
            node = node.args[0]
        return node

    def operand(self, node: Node) -> Node:
        """The node whose value the script has where this one is read."""
        while node in self.inserted and node not in self.cores:
            node = node.args[0]
        return node

    def route(self, builder: Builder, arg: Node, flow: Cotangent, active: set[Node]) -> Route | None:
        """Where something that is sent to an operand arrives, through inserted nodes; None for nowhere."""
        to, way = arg, []
        while to in self.inserted and to not in self.cores:
            sent = contributions(builder, {to: flow}, active, sweep)
            if not sent:
                return None
            way.append(to)
            ((to, flow),) = sent

        def carry(partial: Node) -> tuple[Node, bool]:
            if any(node.primitive is broadcast for node in way):
                return partial, True
            for node in way:
                ((_, moved),) = contributions(builder, {node: (partial, None)}, active, sweep)
                partial = clean(builder, moved)
            return partial, False

        return arg, self.cores.get(to, to), flow, carry
