"""The operations of which derivatives and loops are assembled, as functions of nodes; every vocabulary has them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape


def reshape(x: Node, shape: Shape) -> Node:
    """The entries in another shape."""
    return x.builder.call("reshape", x, shape=shape)


def broadcast(x: Node, shape: Shape) -> Node:
    """Axes of size 1 repeated."""
    return x.builder.call("broadcast", x, shape=shape)


def permute(x: Node, axes: Sequence[int]) -> Node:
    """The axes in another order."""
    return x.builder.call("permute", x, axes=tuple(axes))


def total(x: Node) -> Node:
    """The sum of all entries."""
    return x.builder.call("sum", x, axis=tuple(range(-len(x.shape), 0)))


def concat(parts: Sequence[Node], axis: int) -> Node:
    """Arrays one after the other along an axis."""
    return parts[0].builder.bind(parts[0].builder.vocabulary["concat"], tuple(parts), {"axis": axis})


def part(x: Node, start: Sequence[int], step: Sequence[int], size: Sequence[int]) -> Node:
    """A slice."""
    return x.builder.call("slice", x, start=tuple(start), step=tuple(step), size=tuple(size))


def unslice(x: Node, shape: Shape, start: Sequence[int], step: Sequence[int]) -> Node:
    """Zeros of a shape, with an array in a slice of them."""
    return x.builder.call("unslice", x, shape=shape, start=tuple(start), step=tuple(step))


def where(condition: Node, x: Node, y: Node | int) -> Node:
    """One of two values."""
    return x.builder.call("where", condition, x, y)


def as_float(truth: Node) -> Node:
    """1 where a condition holds, else 0."""
    return truth.builder.call("cast", truth, kind="float")


def nonzero(x: Node) -> Node:
    """Whether entries are not 0."""
    return x.builder.call("not_equal", x, 0)


def both(x: Node, y: Node) -> Node:
    """Whether both conditions hold."""
    return x.builder.call("and", x, y)


def either(x: Node, y: Node) -> Node:
    """Whether one of two conditions holds."""
    return x.builder.call("or", x, y)


def opposite(x: Node) -> Node:
    """Whether a condition does not hold."""
    return x.builder.call("not", x)
