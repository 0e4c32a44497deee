"""A program, targets and a direction go in, its entries as series along that direction come out.

What does not depend on the target is read once and shared by all directions. Entries that the direction does not reach
are not computed again: they are the very balls of the reading at the point.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, cast

from gradcli.checks.entries import Entries, Unsupported
from gradcli.checks.reading import MOST_ENTRIES, Reading, prepared, work_of
from gradcli.checks.series.field import CONTINUOUS
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.reading import Steps
    from gradcli.checks.series.field import SeriesField


class Paths:
    """The nodes that lie between some targets and outputs, in order; comparisons count, for they decide.

    The entries of all targets are counted one after the other.
    """

    __slots__ = ("all", "cost", "order", "outputs", "size", "sizes", "still", "targets", "walk")

    def __init__(self, outputs: Sequence[Node], *targets: Node) -> None:
        self.outputs = tuple(outputs)
        self.targets = targets
        self.sizes = [target.type.size for target in targets]
        self.size = sum(self.sizes)
        moved = set(targets)
        self.order: list[Node] = []
        self.all = reachable([*outputs, *targets])
        for node in self.all:
            if node not in moved and not moved.isdisjoint(node.args):
                moved.add(node)
                self.order.append(node)
        self.cost = work_of(self.order)  # of one walk, roughly
        self.still, self.walk = prepared(self.all), prepared(self.order)

    def split(self, entries: Sequence[Any]) -> dict[Node, Entries]:
        """The entries of all targets, as those of each."""
        found, start = {}, 0
        for target, size in zip(self.targets, self.sizes, strict=True):
            stop = start + size
            found[target] = Entries(entries[start:stop], target.type.shape)
            start = stop
        return found


class Along(Reading):
    """The entries of a program along a direction, beside those at the point."""

    def __init__(self, field: SeriesField, base: Mapping[Node, Entries], moved: Mapping[Node, Entries]) -> None:
        super().__init__(field, {}, base)
        self.known.update(moved)
        self.base = base

    def again(self, steps: Steps) -> None:
        """Read nodes in order; those that nothing moves into are what they are at the point."""
        known, base = self.known, self.base
        for node, count, step in steps:
            self.entries += count
            if self.entries > MOST_ENTRIES:
                raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
            still = base.get(node)
            if still is None:
                known[node] = step(self, node)
            elif all(known[arg] is base[arg] for arg in node.args):
                known[node] = still
            else:
                found = step(self, node)
                known[node] = still if all(map(is_, found.flat, still.flat)) else found

    def turn(self) -> Along:
        return Along(cast("SeriesField", self.field), {}, {})

    def by_rule(self, node: Node, xs: list[Entries], rule: Callable[..., Any]) -> Entries:
        field: Any = self.field
        field.continuous = node.primitive.name in CONTINUOUS
        try:
            return super().by_rule(node, xs, rule)
        finally:
            field.continuous = False

    def each(self, node: Node, rule: Callable[..., Any], xs: list[Entries]) -> list[Any]:
        apply = self.field.apply
        before = self.base.get(node)
        if before is None:
            return super().each(node, rule, xs)
        still = [self.base[arg].flat for arg in node.args]
        found = []
        rows = zip(*(x.flat for x in xs), strict=True)
        for old, row, here in zip(before.flat, rows, zip(*still, strict=True), strict=True):
            same = all(map(is_, row, here))
            found.append(old if same else apply(node, rule, row))
        return found


__all__ = ["Along", "Paths"]
