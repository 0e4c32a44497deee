"""Lifts a node that depends on a leaf to many values of that leaf at once, stacked along a new first axis.

Every operation on the way gets an axis more in front: operands that do not depend on the leaf are repeated along it,
and axes count from the last, so only operations with whole shapes as parameters need a rule (`lift`). A loop
gets a lifted body; beside the vocabulary of every transform this module names permute, for stacked arrays.
"""

from __future__ import annotations

from gradcli.graph.loop import Opened, close, loop_of, repeated
from gradcli.graph.node import reachable
from gradcli.graph.types import Type
from gradcli.transforms.loops import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.builder import Builder
    from gradcli.graph.node import Node

MOST_ENTRIES = 1 << 22  # of an array over all values of the leaf
PLAIN = ("elementwise", "linear", "bilinear", "nondifferentiable")


def lifted(builder: Builder, node: Node, leaf: Node, values: Node) -> Node | None:
    """The node along all values of the leaf, [count, *shape]; None where an operation on the way cannot be lifted.

    None too where an array would have more entries than are worth it.

    >>> from gradcli.graph.builder import Builder
    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, many = builder.leaf("x", (3,)), builder.leaf("many", (5, 3))
    >>> lifted(builder, 2 * x, x, many).shape
    (5, 3)
    """
    made: dict[Node, Node] = {leaf: values}
    count = values.shape[0]
    if not _lift(builder, [node], made, count):
        return None
    return made[node] if node in made else _repeated(builder, node, count)


def _lift(builder: Builder, nodes: Sequence[Node], made: dict[Node, Node], count: int) -> bool:
    """Add to `made` what these nodes need that hangs on it; False where an operation cannot be lifted."""
    copies: dict[Node, Node] = {}
    order = reachable(nodes)
    loops = groups(order)
    for one in order:
        if one in made or made.keys().isdisjoint(one.args):
            continue
        if one in loops:
            if not _lift_loop(builder, loops[one].readers, made, count):
                return False
            continue
        primitive = one.primitive
        if primitive.kind not in PLAIN or count * one.type.size > MOST_ENTRIES:
            return False
        args = []
        for arg in one.args:
            if arg not in made and arg not in copies:
                copies[arg] = _repeated(builder, arg, count)
            args.append(made[arg] if arg in made else copies[arg])
        params = one.params if primitive.lift is None else primitive.lift(count, **one.params)
        made[one] = builder.apply(primitive, tuple(args), params)
        if made[one].shape != (count, *one.shape):
            return False
    return True


def _lift_loop(builder: Builder, readers: Sequence[Node], made: dict[Node, Node], count: int) -> bool:
    """The same for the readers of one loop: a loop whose body is lifted, with the carries that hang on the leaf."""
    loop = loop_of(readers[0])
    body, turn = loop.body, Opened(loop)
    if loop.count * count * max(step.type.size for step in body.steps) > MOST_ENTRIES:
        return False
    many = {leaf for leaf, arg in zip(body.inputs, loop.args, strict=True) if arg in made}
    before = -1
    while before != len(many):
        before = len(many)
        for step in body.steps:
            if not many.isdisjoint(step.args):
                many.add(step)
        many.update(leaf for leaf, after in zip(body.carried, body.nexts, strict=True) if after in many)
    inner = {arg: made[arg] for arg in loop.args if arg in made}
    for leaf in (*body.carried, *body.rows):
        if leaf in many:
            inner[turn.nodes[body.positions[leaf]]] = builder.fresh_leaf(Type(leaf.type.kind, (count, *leaf.shape)))
    places = {reader: reader.params["at"] for reader in readers if "at" in reader.params}
    outputs = [turn.nodes[at] for at in places.values()]
    if not _lift(builder, [*turn.nexts, *outputs], inner, count):
        return False
    carried, nexts, rows = [], [], []
    for leaf, init, after, known in zip(turn.carried, loop.args, turn.nexts, body.carried, strict=False):
        if known in many:
            carried.append((inner[leaf], made.get(init) or _repeated(builder, init, count)))
            nexts.append(inner.get(after) or _repeated(builder, after, count))
        else:
            carried.append((leaf, init))
            nexts.append(after)
    for leaf, stack in zip(turn.rows, loop.args[len(body.carried) :], strict=False):
        rows.append((inner[leaf], _swapped(builder, made[stack])) if leaf in inner else (leaf, stack))
    read = [inner.get(node, node) for node in outputs]
    closed = close(builder, loop.count, carried, nexts, rows=rows, index=turn.index, outputs=read, reverse=loop.reverse)
    for reader in readers:
        if reader in places:
            node = turn.nodes[places[reader]]
            if node in inner:
                made[reader] = _swapped(builder, closed.turns(inner[node]))
        elif body.carried[reader.params["carry"]] in many:
            made[reader] = closed.last(reader.params["carry"])
    return True


def _swapped(builder: Builder, node: Node) -> Node:
    """The axis of the turns and that of the values of the leaf in the other order."""
    rank = len(node.shape)
    return builder.call("permute", node, axes=(1 - rank, -rank, *range(2 - rank, 0)))


def _repeated(builder: Builder, node: Node, count: int) -> Node:
    """A node that does not hang on the leaf, once for each value."""
    constant = node.constant
    if constant is not None and node.type.kind == "float":
        return builder.constant(constant, (count, *node.shape))
    return repeated(builder, node, count)
