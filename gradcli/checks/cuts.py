"""A graph goes in, the same graph with some nodes held still comes out: what a derivative does not see is an input.

A check of a gradient moves leaves. A script's `detach(x)` then stays at its value, `ste(value, surrogate)` moves as its
surrogate does, and an intermediate value that is differentiated by becomes an input of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.graph.primitive import Primitive


class Held:
    """An output in which some nodes became inputs.

    `inputs` gives for each new input the node whose value it holds, or two nodes whose difference it holds; `targets`
    are the inputs that move.
    """

    __slots__ = ("inputs", "output", "targets")

    def __init__(self, output: Node, targets: Sequence[Node], inputs: Mapping[str, tuple[Node, ...]]) -> None:
        self.output = output
        self.targets = tuple(targets)
        self.inputs = dict(inputs)


def hold(output: Node, targets: Sequence[Node]) -> Held:
    """The output as a function of some nodes: detached values are inputs, and so is every target."""
    replaced: dict[Node, Node] = {
        target: input_like(target, f"~target{target.serial}", target.serial)
        for target in targets
        if target.primitive is not LEAF
    }
    inputs: dict[str, tuple[Node, ...]] = {}
    for node in reachable([output]):
        if node in replaced:
            continue
        name = f"~held{node.serial}"
        if node.primitive.name == "detach":
            inputs[name] = (node.args[0],)
            replaced[node] = input_like(node, name, node.serial)
        elif node.primitive.name == "ste":
            value, surrogate = node.args
            inputs[name] = (value, surrogate)
            gap = input_like(node, name, value.serial)
            moved = replaced.get(surrogate, surrogate)
            replaced[node] = step_like(node, node.builder.vocabulary["add"], (moved, gap), {})
        elif any(arg in replaced for arg in node.args):
            args = tuple(replaced.get(arg, arg) for arg in node.args)
            replaced[node] = step_like(node, node.primitive, args, node.params)
    return Held(replaced.get(output, output), [replaced.get(target, target) for target in targets], inputs)


def input_like(like: Node, name: str, serial: int) -> Node:
    """An input for the values of a node, in its place in the order."""
    return Node(LEAF, (), {"name": name}, like.type, serial, like.span, like.builder)


def step_like(like: Node, primitive: Primitive, args: tuple[Node, ...], params: dict[str, object]) -> Node:
    """A step on other arguments, in the place of a node in the order."""
    return Node(primitive, args, params, like.type, like.serial, like.span, like.builder)
