"""Cotangents with the mask under which they count.

A branch that is not taken never touches the result: 0 times an infinite slope would be NaN. A cotangent that came
through `where(c, a, b)` therefore carries the mask c. It is left alone while it passes entry by entry, and cleaned
once, `where(mask, ct, 0)`, where it is added to a cotangent with another mask, enters an operation that mixes entries,
or arrives.
"""

from __future__ import annotations

from gradcli.graph import vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.graph.node import Builder, Node
    from gradcli.graph.primitive import Rule

    Cotangent = tuple[Node, Node | None]  # with the mask under which it counts (None: everywhere)


def clean(builder: Builder, cotangent: Cotangent) -> Node:
    """A cotangent with zeros where its mask says that it does not count."""
    value, mask = cotangent
    return value if mask is None else vocabulary.where(mask, value, 0)


def added(builder: Builder, known: Cotangent, other: Cotangent) -> Cotangent:
    """The sum: cotangents with one mask add up under it; others are cleaned first and count where either does."""
    if known[1] is other[1]:
        return known[0] + other[0], other[1]
    total = clean(builder, known) + clean(builder, other)
    either = None
    if known[1] is not None and other[1] is not None:
        either = vocabulary.either(known[1], other[1])
    return total, either


def both(builder: Builder, mask: Node | None, condition: Node) -> Node:
    """The mask of what counts under a mask and a condition."""
    return condition if mask is None else vocabulary.both(mask, condition)


def below_linear(builder: Builder, node: Node, transpose: Rule, mask: Node | None) -> Node | None:
    """The mask of an argument of a linear operation: the entries that reach an entry that counts."""
    if mask is None or node.primitive.pointwise:
        return mask
    reach = transpose(vocabulary.as_float(mask), *node.args, **node.params)
    return vocabulary.nonzero(reach)


def below_bilinear(builder: Builder, node: Node, mask: Node | None) -> list[Node | None]:
    """The masks of both arguments of a bilinear operation: the entries that some entry that counts reads."""
    if mask is None:
        return [None, None]
    counts = vocabulary.as_float(mask)
    ones = [builder.constant(1, arg.shape) for arg in node.args]
    rules = [node.primitive.linear_in(0), node.primitive.linear_in(1)]
    return [None if rule is None else vocabulary.nonzero(rule(counts, *ones, **node.params)) for rule in rules]


def whole(builder: Builder, mask: Node | None, arg: Node) -> Node | None:
    """The mask of an operand of a structured operation: it counts as a whole where any entry of the result counts."""
    if mask is None:
        return None
    total = vocabulary.as_float(mask)
    if mask.shape:
        total = vocabulary.total(total)
    return vocabulary.nonzero(spread(builder, total, arg.shape))


def spread(builder: Builder, scalar: Node, shape: tuple[int, ...]) -> Node:
    """A scalar repeated over a shape."""
    if not shape:
        return scalar
    ones = vocabulary.reshape(scalar, (1,) * len(shape))
    return vocabulary.broadcast(ones, shape)
