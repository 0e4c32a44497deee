"""The gradients of an operation as a graph go in, the same gradients from what PyTorch saves come out; knows no rule.

Only identities of values stand here: `sigmoid(-x)` is one minus the result, so that the input need not be kept. Then an
operand that is changed in place, and memory that is held, are those of PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.primitives import catalogue
from gradcli.transforms.reverse import between

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.builder import Builder
    from gradcli.graph.node import Node

# by operation what its gradients read, and what they read in its place, from the operand and the result
_FROM_RESULT: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "sigmoid": lambda x, out: (catalogue()["sigmoid"](-x), 1 - out),
}
_FROM_OPERANDS = ("div",)  # the result is computed again where it is read


def saves_result(out: Node, leaves: Sequence[Node]) -> bool:
    """Whether the result of an operation may be saved for its gradients."""
    return out.primitive.name not in _FROM_OPERANDS or out.args != tuple(leaves)


def from_result(builder: Builder, out: Node, leaves: Sequence[Node], found: list[Node | None]) -> list[Node | None]:
    """The gradients with the result in place of the operand, where an identity says so; in an open builder."""
    rule = _FROM_RESULT.get(out.primitive.name)
    if rule is None or out.args != tuple(leaves):
        return found
    old, new = rule(leaves[0], out)
    known: dict[Node, Node] = {old: new}
    for node in between([node for node in found if node is not None], (*leaves, out, old)):
        if node.args and node not in known and node is not out:
            args = tuple([known.get(arg, arg) for arg in node.args])
            known[node] = node if args == node.args else builder.apply(node.primitive, args, node.params)
    return [None if node is None else known.get(node, node) for node in found]
