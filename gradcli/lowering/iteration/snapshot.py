"""The state of a lowering before an attempt, which may be undone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.lowering.lowerer import Lowerer


class Snapshot:
    """What an attempt may change, as it was before."""

    DICTS = (
        *("leaves", "values", "uses", "statics", "sizes", "_static_spans", "_gradient_spans"),
        *("scope", "numbers", "derived", "ruled"),
    )
    VALUES = (
        "random_arrays",
        "fixed_leaves",
        "reads_positions",
        "idle",
        "repetitions",
        "last_names",
        "last_expression",
    )

    def __init__(self, lowerer: Lowerer) -> None:
        builder = lowerer.builder
        self.dicts = {name: dict(getattr(lowerer, name)) for name in self.DICTS}
        self.values = {name: getattr(lowerer, name) for name in self.VALUES}
        self.local = None if lowerer.local is None else dict(lowerer.local)
        self.exponents = set(lowerer._exponents)
        self.const = {leaf: leaf.const for leaf in lowerer.leaves.values()}
        self.notes, self.blocks = len(lowerer.notes), len(lowerer.blocks)
        self.known = dict(lowerer.known_calls)
        self.count, self.span, self.data = builder.count, builder.span, len(builder.data)
        self.other_spans = {node: list(spans) for node, spans in builder.other_spans.items()}
        self.traces = [(trace.count, dict(trace.rows), list(trace.exponents), trace.work) for trace in lowerer.traces]

    def restore(self, lowerer: Lowerer) -> None:
        """Undo everything since."""
        builder = lowerer.builder
        for name, kept in self.dicts.items():
            _refill(getattr(lowerer, name), kept)
        if self.local is not None and lowerer.local is not None:
            _refill(lowerer.local, self.local)
        for name, value in self.values.items():
            setattr(lowerer, name, value)
        _refill(lowerer.known_calls, self.known)
        lowerer._exponents.intersection_update(self.exponents)
        for leaf, const in self.const.items():
            leaf.const = const
        del lowerer.notes[self.notes :]
        del lowerer.blocks[self.blocks :]
        assert builder.table is not None
        for table in builder.table.values():  # a table keeps its nodes in the order in which they were made
            while table:
                key, node = table.popitem()
                if node.serial <= self.count:
                    table[key] = node
                    break
        while len(builder.data) > self.data:
            builder.data.popitem()
        builder.count, builder.span, builder.other_spans = self.count, self.span, self.other_spans
        for trace, (_, rows, exponents, work) in zip(lowerer.traces, self.traces, strict=True):
            trace.rows, trace.exponents, trace.work = rows, exponents, work


def _refill(kept: dict[Any, Any], before: dict[Any, Any]) -> None:
    kept.clear()
    kept.update(before)
