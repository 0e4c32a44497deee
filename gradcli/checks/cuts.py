"""A graph goes in, the same graph with some nodes held still comes out: what a derivative does not see is an input.

A check of a gradient moves leaves. A script's `detach(x)` then stays at its value, `ste(value, surrogate)` moves as its
surrogate does, and an intermediate value that is differentiated by becomes an input of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Held:
    """A scalar output in which some nodes became inputs. `inputs` gives for each new input the node that it holds,
    or a pair of nodes whose difference it holds."""

    __slots__ = ("inputs", "output", "target")

    def __init__(self, output: Node, target: Node, inputs: Mapping[str, tuple[Node, ...]]) -> None:
        self.output = output
        self.target = target
        self.inputs = dict(inputs)


def hold(output: Node, target: Node) -> Held:
    """The output as a function of the target alone: detached values are inputs, and the target is a leaf."""
    replaced: dict[Node, Node] = {}
    inputs: dict[str, tuple[Node, ...]] = {}
    order = reachable([output])
    if target.primitive is not LEAF:
        replaced[target] = _leaf(f"~target{target.serial}", target, target.serial)
    for node in order:
        if node in replaced:
            continue
        name = f"~held{node.serial}"
        if node.primitive.name == "detach":
            inputs[name] = (node.args[0],)
            replaced[node] = _leaf(name, node, node.serial)
        elif node.primitive.name == "ste":
            value, surrogate = node.args
            inputs[name] = (value, surrogate)
            gap = _leaf(name, node, value.serial)
            moved = replaced.get(surrogate, surrogate)
            replaced[node] = _node(node, node.builder.vocabulary["add"], (moved, gap))
        elif any(arg in replaced for arg in node.args):
            args = tuple(replaced.get(arg, arg) for arg in node.args)
            replaced[node] = Node(
                node.primitive, args, node.params, node.type, node.serial, node.span, node.builder
            )
    return Held(replaced.get(output, output), replaced.get(target, target), inputs)


def _leaf(name: str, like: Node, serial: int) -> Node:
    return Node(LEAF, (), {"name": name}, like.type, serial, like.span, like.builder)


def _node(like: Node, primitive: object, args: Sequence[Node]) -> Node:
    return Node(primitive, tuple(args), {}, like.type, like.serial, like.span, like.builder)  # type: ignore[arg-type]
