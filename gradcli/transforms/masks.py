"""Cotangents with the mask under which they count.

A branch that is not taken never touches the result: 0 times an infinite slope would be NaN. A cotangent that came
through `where(c, a, b)` therefore carries the mask c. It is left alone while it passes entry by entry, and cleaned
once, `where(mask, ct, 0)`, where it is added to a cotangent with another mask, enters an operation that mixes entries,
or arrives.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.graph.node import Builder, Node
    from gradcli.graph.primitive import Rule

    Cotangent = tuple[Node, Node | None]  # with the mask under which it counts (None: everywhere)


def clean(builder: Builder, cotangent: Cotangent) -> Node:
    """A cotangent with zeros where its mask says that it does not count."""
    value, mask = cotangent
    return value if mask is None else builder.call("where", mask, value, 0)


def added(builder: Builder, known: Cotangent, other: Cotangent) -> Cotangent:
    """The sum: cotangents with one mask add up under it; others are cleaned first and count where either does."""
    if known[1] is other[1]:
        return builder.apply(builder.vocabulary["add"], (known[0], other[0]), {}), other[1]
    total = builder.call("add", clean(builder, known), clean(builder, other))
    either = None
    if known[1] is not None and other[1] is not None:
        either = builder.call("or", known[1], other[1])
    return total, either


def both(builder: Builder, mask: Node | None, condition: Node) -> Node:
    """The mask of what counts under a mask and a condition."""
    return condition if mask is None else builder.call("and", mask, condition)


def below_linear(builder: Builder, node: Node, transpose: Rule, mask: Node | None) -> Node | None:
    """The mask of an argument of a linear operation: the entries that reach an entry that counts."""
    if mask is None or node.primitive.pointwise:
        return mask
    reach = transpose(builder.call("cast", mask, kind="float"), *node.args, **node.params)
    return builder.call("not_equal", reach, 0)


def below_bilinear(builder: Builder, node: Node, mask: Node | None) -> list[Node | None]:
    """The masks of both arguments of a bilinear operation: the entries that some entry that counts reads."""
    if mask is None:
        return [None, None]
    counts = builder.call("cast", mask, kind="float")
    ones = [builder.constant(1, arg.shape) for arg in node.args]
    rules = [node.primitive.linear_in(0), node.primitive.linear_in(1)]
    return [
        None if rule is None else builder.call("not_equal", rule(counts, *ones, **node.params), 0) for rule in rules
    ]


def whole(builder: Builder, mask: Node | None, arg: Node) -> Node | None:
    """The mask of an operand of a structured operation: it counts as a whole where any entry of the result counts."""
    if mask is None:
        return None
    total = builder.call("cast", mask, kind="float")
    if mask.shape:
        total = builder.call("sum", total, axis=tuple(range(-len(mask.shape), 0)))
    return builder.call("not_equal", spread(builder, total, arg.shape), 0)


def spread(builder: Builder, scalar: Node, shape: tuple[int, ...]) -> Node:
    """A scalar repeated over a shape."""
    if not shape:
        return scalar
    ones = builder.call("reshape", scalar, shape=(1,) * len(shape))
    return builder.call("broadcast", ones, shape=shape)
