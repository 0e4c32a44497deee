"""Runs the `entries` rule of an operation on sets of positions instead of values.

A rule that only moves or adds up entries describes the pattern completely. A rule that computes with entries is
refused, and the walk then reads the operation in another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.graph.types import size_of
from gradcli.structure.flows import empty, gathered, scattered, stacked, united

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape
    from gradcli.structure.flows import Flow
    from gradcli.structure.patterns import Walk

    Places = NDArray[np.int64]
    Found = Flow | None


class NeedsEntries(Exception):
    """A rule computes with the entries themselves: positions do not show what it mixes."""


class Rows:
    """An operand as `entries` rules see it: a shape, and a flow in place of entries."""

    __slots__ = ("flow", "node", "shape")

    def __init__(self, node: Node, flow: Found) -> None:
        self.node = node
        self.shape = node.shape
        self.flow = flow

    @property
    def flat(self) -> Any:
        raise NeedsEntries


class Moves:
    """What an `entries` rule is given for a field: it says where entries go, and the flow follows; no more."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def __getattr__(self, name: str) -> Any:
        raise NeedsEntries

    def positions(self, primitive: Primitive, shape: Shape, /, **params: Any) -> Places:
        """For each entry of a result that only moves entries, where it comes from."""
        assert primitive.impl is not None
        moved = primitive.impl(self.walk.xp, places(shape), ranks=(len(shape),), **params)
        return np.asarray(moved, dtype=np.int64).reshape(-1)

    def scatter(self, x: Rows, positions: Any, shape: Shape) -> Found:
        """Entries added up at positions."""
        if x.flow is None:
            return None
        return scattered(x.flow, np.asarray(positions, dtype=np.int64), size_of(shape), self.walk.most)

    def take_along(self, x: Rows, index: Rows, axis: int) -> Found:
        """Entries at positions along an axis; where these are not known, from anywhere along it."""
        flows = []
        if x.flow is not None:
            places = self.along(x.shape, index.node, axis)
            if places is not None:
                flows.append(gathered(x.flow, places, self.walk.most))
            else:
                flows.append(self.walk.mixed(x.flow, x.shape, index.shape, axis))
        if index.flow is not None:
            flows.append(index.flow)
        return united(flows, self.walk.most) if flows else None

    def put_along(self, x: Rows, index: Rows, axis: int, size: int) -> Found:
        """The transpose of `take_along`."""
        at = len(x.shape) + axis
        shape = (*x.shape[:at], size, *x.shape[at + 1 :])
        flows = []
        if x.flow is not None:
            places = self.along(shape, index.node, axis)
            if places is not None:
                flows.append(scattered(x.flow, places, size_of(shape), self.walk.most))
            else:
                flows.append(self.walk.mixed(x.flow, x.shape, shape, axis))
        if index.flow is not None:
            flows.append(self.walk.mixed(index.flow, index.shape, shape, axis))
        return united(flows, self.walk.most) if flows else None

    def along(self, shape: Shape, index: Node, axis: int) -> Places | None:
        """The flat place in `shape` of each entry that the positions name; None where they are not known."""
        chosen = self.walk.value(index)
        if chosen is None or chosen.shape != index.shape:
            return None
        size = shape[axis]
        wanted = chosen.astype(np.int64)
        if wanted.size and not (wanted.min() >= -size and wanted.max() < size):
            return None
        grid = list(np.indices(index.shape))
        grid[len(shape) + axis] = wanted % max(size, 1)
        flat: Places = np.ravel_multi_index(tuple(grid), shape).reshape(-1).astype(np.int64)
        return flat


def moved(xp: Any, node: Node, flows: Sequence[Found]) -> tuple[Flow, Places]:
    """Of an operation that only moves entries: the flows of its operands as one, and where each result comes from."""
    positions, parts, start = [], [], 0
    for arg, flow in zip(node.args, flows, strict=True):
        size = arg.type.size
        positions.append(np.arange(start, start + size).reshape(arg.shape))
        parts.append(empty(size) if flow is None else flow)
        start += size
    assert node.primitive.impl is not None
    ranks = tuple(len(arg.shape) for arg in node.args)
    found = node.primitive.impl(xp, *positions, ranks=ranks, **node.params)
    return stacked(parts), np.asarray(found, dtype=np.int64).reshape(-1)


def places(shape: Shape) -> Places:
    return np.arange(size_of(shape)).reshape(shape)


def lanes_along(shape: Shape, axis: int) -> Places:
    """For each entry of an array, the number of its lane along an axis."""
    kept = list(shape)
    kept[len(shape) + axis] = 1
    return np.broadcast_to(places(tuple(kept)), shape).reshape(-1)
