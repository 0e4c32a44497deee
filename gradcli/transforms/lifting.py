"""A computation with one axis more in front: for all values of its inputs at once.

Axes count from the last, so most operations take another axis in front as they are; only those with whole shapes among
their parameters need a rule (`lift`).
"""

from __future__ import annotations

from gradcli.graph import vocabulary
from gradcli.graph.loop import repeated
from gradcli.graph.node import is_reader, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.graph.node import Builder, Node

MOST_ENTRIES = 1 << 22  # of an array over all values at once
PLAIN = ("elementwise", "linear", "bilinear", "nondifferentiable")  # kinds of operations that take one more axis


def lifted(
    builder: Builder, node: Node, values: Mapping[Node, Node], *, every: bool = False, most: int = MOST_ENTRIES
) -> Node | None:
    """The node for all values of some nodes, which are stacked along a new first axis: [count, *shape].

    None where an operation cannot be lifted, or an array would have more than `most` entries. With `every`, operations
    that work on whole arrays are lifted too.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, many = builder.leaf("x", (3,)), builder.leaf("many", (5, 3))
    >>> lifted(builder, 2 * x, {x: many}).shape
    (5, 3)
    """
    values_of = dict(values)
    copies: dict[Node, Node] = {}
    (count,) = {stack.shape[0] for stack in values.values()}
    span = builder.span
    for step in reachable([node], values_of):
        if step in values_of or values_of.keys().isdisjoint(step.args):
            continue
        primitive = step.primitive
        if builder.vocabulary.get(primitive.name) is not primitive:  # with a rule by hand
            return None
        if is_reader(step) or not (primitive.kind in PLAIN or every) or count * step.type.size > most:
            return None
        builder.span = step.span or span
        product = _product(builder, step, values_of) if primitive.name == "matmul" else None
        if product is not None:
            values_of[step] = product
            continue
        for arg in step.args:
            if arg not in values_of and arg not in copies:
                copies[arg] = _repeated(builder, arg, count)
        args = tuple([values_of[arg] if arg in values_of else copies[arg] for arg in step.args])
        params = step.params if primitive.lift is None else primitive.lift(count, **step.params)
        values_of[step] = builder.apply(primitive, args, params)
        if values_of[step].shape != (count, *step.shape):
            return None
    builder.span = span
    return values_of[node] if node in values_of else _repeated(builder, node, count)


def _product(builder: Builder, step: Node, values_of: Mapping[Node, Node]) -> Node | None:
    """One matrix product for all values, where one factor is the same for all and the other a row or a column."""
    left, right = step.args
    if len(step.shape) != 2 or (left in values_of) is (right in values_of):
        return None
    rows, columns = step.shape
    if left in values_of and rows == 1:
        stack = values_of[left]
        flat = vocabulary.reshape(stack, (stack.shape[0], stack.shape[-1]))
        return vocabulary.reshape(flat @ right, (stack.shape[0], 1, columns))
    if right in values_of and columns == 1:
        stack = values_of[right]
        flat = vocabulary.reshape(stack, stack.shape[:-1])
        product = flat @ left.mT
        return vocabulary.reshape(product, (stack.shape[0], rows, 1))
    return None


def _repeated(builder: Builder, node: Node, count: int) -> Node:
    """A node that depends on none of the values, once for each of them."""
    constant = node.constant
    if constant is not None and node.type.kind == "float":
        return builder.constant(constant, (count, *node.shape))
    return repeated(builder, node, count)
