"""Feeds the record of a run (`gradcli.observe`) from these tensors, whose operations and sweeps report to `events`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from gradcli.eager._core import events
from gradcli.eager._core.modes import Place, ours, state
from gradcli.eager._core.node import Node
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.observe.run_record import SCORES, Watch
from gradcli.observe.source_lines import line_in, line_of
from gradcli.observe.tensors import Entry, Facts, Size, Subject, Tensors, kept, size_of, spoken


class EagerWatch(Watch):
    """The record of a run on these tensors."""

    def __init__(self, folder: str, extents: bool = False) -> None:
        super().__init__(folder, EagerTensors(), extents)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, what tensors of this thread do is recorded."""
        before = events.own.current
        events.own.current = self
        state.refresh()
        try:
            yield
        finally:
            events.own.current = before
            state.refresh()

    def of_node(self, tensor: Any) -> Entry:
        """The entry of a result of an operation that nobody reported."""
        node = tensor._edge[0]
        reads = []
        for x in node.ins:
            number, at = end_of(x)
            mark = self.made.get(number, {}).get(at) if number else None if x is None else self.mark(x)
            reads += [] if mark is None else [mark]
        entry = self._enter(tensor, "operation", type(node).__name__, tuple(reads))
        entry.wanted = True
        return entry

    def operation(self, name: str, xs: Sequence[Any], result: Any) -> None:
        """An operation gave a result, with or without a node."""
        tensors, entries = self.tensors, self.entries
        inputs, wanted = [], False
        for x in xs:
            if tensors.is_tensor(x):
                entry = entries.get(x._mark) or self.unknown(x)
                if x._requires:
                    entry.requires = wanted = True
                inputs.append(entry.mark)
        entry = self._enter(result, "operation", name, tuple(inputs))
        entry.wanted = wanted
        if name in SCORES and not entry.finite:
            scores = xs[SCORES[name]] if len(xs) > SCORES[name] else None
            if tensors.is_tensor(scores):
                entry.masked = tensors.masked_rows(scores, result)

    def given_node(self, result: Any) -> None:
        """A result has another node, or another name for it, than when it was reported."""
        entry, (number, at) = self.entries[self.mark(result)], self.tensors.place(result) or (0, 0)
        entry.name, entry.seq = type(result._edge[0]).__name__, number
        self.made.setdefault(number, {})[at] = entry.mark

    def same(self, tensor: Any, other: Any) -> None:
        """Give a tensor the number of another one."""
        tensor._mark = self.mark(other)

    def changed(self, tensor: Any, result: Any, rewritten: bool) -> None:
        """A tensor was changed in place; `result` is what was computed for it, and may become its history."""
        before, after = self.mark(tensor), self.mark(result)
        self.changing(tensor, before, self.entries[after].name, rewritten)
        if rewritten and tensor._base is None:
            tensor._mark = after

    def grad_read(self, tensor: Any) -> None:
        """`.grad` was read; only reads by the file itself count."""
        module = sys._getframe(3).f_globals.get("__name__", "")
        if not self.tensors.inside(module):
            self.looked(tensor)

    def stopped(self, why: str, name: str, where: Place, changed: Place) -> None:
        """A backward cannot go through a node."""
        self.broken(why, name, line_of(where), line_of(changed))

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""
        sent = []
        for source, value in zip(node.ins, results, strict=False):
            if source is not None:
                number, _ = end_of(source)
                sent.append((("node", number) if number else ("leaf", self.mark(source)), value))
        line = None if node._code is None else line_in(node._code, node._at)
        self.step(node._seq, type(node).__name__, line, cts, sent)


def end_of(source: Any) -> tuple[int, int]:
    """Where an edge leads: the number of a node, and which of its results; (0, 0) for a leaf or for nowhere."""
    if source is None or source._seq >= 0:
        return (0 if source is None else source._seq, 0)
    return (source.node._seq, source.nr)


class EagerTensors(Tensors):
    """Reads these tensors; a gradient may be an array too."""

    recorders = (*Tensors.recorders, __name__)
    layer_call = ("gradcli.eager.nn._module", "__call__")
    kind = Tensor

    def is_tensor(self, value: Any) -> bool:  # a stand-in of a recording has no entries
        return issubclass(type(value), Tensor) and not issubclass(type(value), Traced)

    mark: Any = attrgetter("_mark")
    requires: Any = attrgetter("_requires")
    base: Any = attrgetter("_base")
    grad: Any = attrgetter("_grad")

    def set_mark(self, tensor: Any, mark: int) -> None:
        tensor._mark = mark

    def place(self, tensor: Any) -> tuple[int, int] | None:
        edge = tensor._edge
        return None if edge is None else (edge[0]._seq, edge[1])

    def added(self, tensor: Any) -> int:
        grad = tensor._grad
        return 0 if grad is None else grad._added

    def facts(self, tensor: Any, extents: bool) -> Facts:
        array = tensor._raw
        size, value = size_of(array, extents), kept(array, extents)
        return Facts(tensor._requires, self.seq(tensor), spoken(array.dtype), array.shape, size, value)

    def subject(self, tensor: Any, name: str, scope: str, size: Size | None) -> Subject:
        edge, grad = tensor._edge, tensor._grad
        return Subject(
            name,
            scope,
            edge is None,
            tensor.requires_grad,
            tensor._retains,
            tensor._raw.dtype.kind in "fc",
            spoken(tensor.dtype),
            "" if edge is None else type(edge[0]).__name__,
            tensor._raw.shape,
            type(tensor).__name__ == "Parameter",
            None if grad is None else size or self.size(grad),
        )

    def array(self, value: Any) -> Any:
        return value._raw if isinstance(value, Tensor) else value

    def mode(self) -> str:
        return "inference" if state._inference else "grad" if state._grad else "no_grad"

    def inside(self, module: Any) -> bool:
        return ours[module]
