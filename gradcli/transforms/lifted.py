"""A node that hangs on a leaf, and many values of the leaf as one array, go in; the node for all of them comes out.

Every operation on the way gets an axis more in front: operands that do not hang on the leaf are repeated along it, and
axes count from the last, so that only operations that are given whole shapes say what becomes of them (`lift`).
"""

from __future__ import annotations

from gradcli.graph.node import reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    count = values.shape[0]
    made: dict[Node, Node] = {leaf: values}
    repeated: dict[Node, Node] = {}
    for one in reachable([node]):
        if one in made or made.keys().isdisjoint(one.args):
            continue
        primitive = one.primitive
        if primitive.kind not in PLAIN or count * one.type.size > MOST_ENTRIES:
            return None
        args = []
        for arg in one.args:
            if arg not in made and arg not in repeated:
                repeated[arg] = _repeated(builder, arg, count)
            args.append(made[arg] if arg in made else repeated[arg])
        params = one.params if primitive.lift is None else primitive.lift(count, **one.params)
        made[one] = builder.apply(primitive, tuple(args), params)
        if made[one].shape != (count, *one.shape):
            return None
    return made[node] if node in made else _repeated(builder, node, count)


def _repeated(builder: Builder, node: Node, count: int) -> Node:
    """A node that does not hang on the leaf, once for each value."""
    shape = (count, *node.shape)
    constant = node.constant
    if constant is not None and node.type.kind == "float":
        return builder.constant(constant, shape)
    raised = builder.call("reshape", node, shape=(1, *node.shape))
    return builder.call("broadcast", raised, shape=shape)
