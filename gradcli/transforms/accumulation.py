"""Adds up the cotangents that arrive at nodes; those of many parts of one array become one node.

A loop that reads `x[i]` sends back one entry of x at a time. Each of them put into zeros and added up would take as
many arrays as x has entries. Parts that lie one after the other are joined instead, with zeros in the gaps; parts that
share entries, or lie apart from each other, are added up at their places, in the order in which they came. Beside the
vocabulary of every transform this module names unslice, concat and put_static.
"""

from __future__ import annotations

from itertools import pairwise

from gradcli.graph import vocabulary
from gradcli.graph.types import size_of
from gradcli.transforms.masks import added

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Builder, Node
    from gradcli.graph.types import Shape
    from gradcli.transforms.masks import Cotangent

    Place = tuple[Node, Shape, Shape, Shape]

FEW = 8  # parts that are added up as arrays
SPARSE = 4  # parts that are gathered hold fewer than one in so many entries, on average
MOST_JOINED = 256  # what a rule does for one operand may read all that are joined
MOST_PLACES = 1 << 18  # entries whose places are listed one by one


class Accumulator:
    """What has arrived at nodes so far."""

    __slots__ = ("arrived", "builder", "parts")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.arrived: dict[Node, Cotangent] = {}
        self.parts: dict[Node, Parts | None] = {}  # of an array of which many small parts arrive; None: too large ones

    def add(self, node: Node, cotangent: Cotangent) -> None:
        """Accumulate. Many small parts of an array are kept until `get`; `arrived` lacks them until then."""
        arrived = self.arrived
        known = arrived.get(node)
        if known is None:
            arrived[node] = cotangent
            return
        if node.type.shape:
            if is_part(cotangent):
                if node not in self.parts:
                    self.parts[node] = Parts(None, [known]) if is_part(known) else Parts(known, [])
                kept = self.parts[node]
                if kept is not None and kept.take(cotangent):
                    return
                if kept is not None and len(kept.parts) > FEW:
                    self.parts[node] = None  # parts as large as these are added up as arrays
            elif node in self.parts:
                self._gather(node)
                known = arrived[node]
        arrived[node] = added(self.builder, known, cotangent)

    def get(self, node: Node) -> Cotangent | None:
        """The cotangent of a node, None where nothing has arrived."""
        if node in self.parts:
            self._gather(node)
        return self.arrived.get(node)

    def pop(self, node: Node) -> Cotangent | None:
        """The cotangent of a node, which is forgotten."""
        if node in self.parts:
            self._gather(node)
        return self.arrived.pop(node, None)

    def _gather(self, node: Node) -> None:
        kept = self.parts.pop(node)
        if kept is None or len(kept.parts) <= FEW:
            return  # they are in there
        total, *others = kept.gathered(self.builder)
        for other in others:
            total = added(self.builder, total, other)
        self.arrived[node] = total


class Parts:
    """What has arrived at one array since the last that was no part of it; `before` is the sum up to there."""

    __slots__ = ("before", "parts")

    def __init__(self, before: Cotangent | None, parts: list[Cotangent]) -> None:
        self.before = before
        self.parts = parts

    def take(self, part: Cotangent) -> bool:
        """Keep one more part; whether there are so many small ones that they are gathered in the end."""
        parts = self.parts
        parts.append(part)
        if len(parts) > FEW + 1:
            return True
        return len(parts) > FEW and sparse(parts)

    def gathered(self, builder: Builder) -> list[Cotangent]:
        """Cotangents that add up to all of it: one for all parts, if that is less work than a sum of arrays."""
        before = [] if self.before is None else [self.before]
        if not sparse(self.parts):
            return before + self.parts
        outer, builder.span = builder.span, self.parts[-1][0].span
        total = gathered(builder, [_cleaned(builder, part) for part in self.parts])
        mask = None
        reached = [None if mask is None else mask.args[0] for _, mask in self.parts]
        if total is not None and None not in reached:
            mask = gathered(builder, [_place(value) for value in reached if value is not None])
            mask = None if mask is None else vocabulary.nonzero(mask)
        builder.span = outer
        return before + (self.parts if total is None else [(total, mask)])


def is_part(cotangent: Cotangent) -> bool:
    """Whether a cotangent is a part of an array among zeros, and counts at entries of that part."""
    ct, mask = cotangent
    if ct.primitive.name != "unslice":
        return False
    if mask is None:
        return True
    if mask.primitive.name != "not_equal" or mask.args[1].constant != 0:
        return False
    reached = mask.args[0]
    alike = reached.primitive is ct.primitive and reached.params == ct.params
    return alike and reached.args[0].type.shape == ct.args[0].type.shape


def sparse(parts: Sequence[Cotangent]) -> bool:
    """Whether the entries of all parts are few beside the arrays that they stand in."""
    return SPARSE * sum([part.args[0].type.size for part, _ in parts]) <= len(parts) * parts[0][0].type.size


def _place(part: Node, value: Node | None = None) -> Place:
    return (part.args[0] if value is None else value, part.params["start"], part.params["step"], part.type.shape)


def _cleaned(builder: Builder, cotangent: Cotangent) -> Place:
    """A part with zeros where its mask says that it does not count."""
    part, mask = cotangent
    if mask is None:
        return _place(part)
    counts = vocabulary.nonzero(mask.args[0].args[0])
    return _place(part, vocabulary.where(counts, part.args[0], 0))


def gathered(builder: Builder, parts: Sequence[Place]) -> Node | None:
    """The sum of parts of one array as one node; None where their places would take too much room.

    A part is its entries, the start and the step along each axis, and the shape of the array.

    >>> from gradcli.graph.building import Builder
    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x, y = builder.leaf("x", (1,)), builder.leaf("y", (1,))
    >>> builder.simplifying = True
    >>> gathered(builder, [(x, (3,), (1,), (5,)), (y, (0,), (1,), (5,))])
    <#5 concat(#2, #3, #1, #4, axis=-1) f64[5]>
    """
    shape = parts[0][3]
    lines = [_line(part) for part in parts]
    known = [line for line in lines if line is not None]
    if len(known) == len(parts):
        order = sorted(zip(known, parts, strict=True), key=lambda pair: pair[0])
        if all(left[0][1] <= right[0][0] for left, right in pairwise(order)):
            return vocabulary.reshape(_joined(builder, order, size_of(shape)), shape)
    if sum([part[0].type.size for part in parts]) > MOST_PLACES:
        return None
    indices: list[int] = []
    for part in parts:
        indices += _places(part)
    flat = _concat(builder, [_flat(builder, part[0]) for part in parts])
    put = builder.call("put_static", flat, indices=tuple(indices), axis=-1, size=size_of(shape))
    return vocabulary.reshape(put, shape)


def _line(part: Place) -> tuple[int, int] | None:
    """From where to where the entries of a part lie, if they lie one after the other in C order."""
    value, start, step, shape = part
    size = value.type.shape
    begin, open_axes = 0, True
    for first, stride, count, whole in zip(start, step, size, shape, strict=True):
        begin = begin * whole + first
        if stride != 1 and count > 1:
            return None
        if count != 1 and open_axes:
            open_axes = False
        elif not open_axes and count != whole:
            return None
    return begin, begin + size_of(size)


def _places(part: Place) -> list[int]:
    """Where the entries of a part stand in the array, in C order."""
    value, start, step, shape = part
    places = [0]
    for first, stride, count, whole in zip(start, step, value.type.shape, shape, strict=True):
        places = [place * whole + first + stride * i for place in places for i in range(count)]
    return places


def _flat(builder: Builder, value: Node) -> Node:
    return vocabulary.reshape(value, (value.type.size,))


def _joined(builder: Builder, order: Sequence[tuple[tuple[int, int], Place]], size: int) -> Node:
    """Parts in the order of their places, with zeros in the gaps."""
    pieces, at = [], 0
    for (begin, end), part in order:
        if begin > at:
            pieces.append(builder.constant(0, (begin - at,)))
        pieces.append(_flat(builder, part[0]))
        at = end
    if at < size:
        pieces.append(builder.constant(0, (size - at,)))
    return _concat(builder, pieces)


def _concat(builder: Builder, pieces: list[Node]) -> Node:
    """Lines one after the other, joined in groups."""
    concat = builder.vocabulary["concat"]
    while len(pieces) > 1:
        groups = [pieces[at : at + MOST_JOINED] for at in range(0, len(pieces), MOST_JOINED)]
        pieces = [builder.apply(concat, tuple(group), {"axis": -1}) if len(group) > 1 else group[0] for group in groups]
    return pieces[0]
