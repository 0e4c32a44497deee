"""Records a run on gradcli's own tensors, whose operations and sweeps report to `eager/_core/events.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from gradcli import eager
from gradcli.eager._core import events
from gradcli.eager._core.grad_fn import Node
from gradcli.eager._core.modes import state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager.optim.optimizer import Optimizer
from gradcli.recording.runs.run_record import Watch
from gradcli.recording.runs.source_lines import OWN, PACKAGE, line_in, line_of
from gradcli.recording.runs.tensors import (
    ArrayNorm,
    Entry,
    SeenTensor,
    TensorFacts,
    TensorReader,
    kept,
    size_of,
    spoken,
)

MODES = os.path.join("_core", "modes.py")


class EagerWatch(Watch):
    """The record of a run on these tensors."""

    def __init__(self, folder: str, extents: bool = False, steps: bool = False) -> None:
        super().__init__(folder, EagerTensors(), extents, steps)

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
        self.wrong_rules += self.functions_applied.wrong(eager)

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
                entry = entries.get(x._mark)
                if entry is None or (0 if x._count is None else x._count.value) != entry.version:
                    entry = entries[self.mark(x)]
                if x._requires:
                    entry.requires = wanted = True
                inputs.append(entry.mark)
        entry = self._enter(result, "operation", name, tuple(inputs))
        entry.wanted = wanted
        entry.remark = self.remarks.on(entry, name, xs, result)

    def ruled(self, *args: Any) -> None:
        """A Function was applied; what is kept of it is no part of the run."""
        events.own.current = None
        state.refresh()
        try:
            super().ruled(*args)
        finally:
            events.own.current = self
            state.refresh()

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
        before, after = tensor._mark, self.mark(result)
        entry, before = self.entries[after], self.mark(tensor) if before < 0 else before
        sources = [mark for mark in entry.inputs if mark != before]
        self.changing(tensor, before, entry.name, rewritten, sources)
        if rewritten and tensor._base is None:
            tensor._mark = after
            self.entries[after].version = self.tensors.version(tensor)

    def grad_read(self, tensor: Any) -> None:
        """`.grad` was read; only reads by the file itself count."""
        if self.owner[sys._getframe(3).f_code.co_filename] == OWN:
            self.looked(tensor)

    def returned(self, gradients: Sequence[Any], roots: Sequence[Any]) -> None:
        """autograd.grad() gave gradients, which have no history."""
        for x in gradients:
            if x is not None:
                self.cut("torch.autograd.grad()", roots, x)

    def stopped(self, why: str, node: Node, counter: Any, version: int = 0) -> None:
        """A backward cannot go through a node; what it saved has been changed since a version."""
        changed = None
        if counter is not None:
            created = min(self.made.get(node._seq, {0: -1}).values())
            changed = self.writer(id(counter), created, version) or line_of(counter.place)
        self.broken(why, node.name(), node._seq, line_of(node.place), changed)

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""
        sent = []
        for source, value in zip(node.ins, results, strict=False):
            if source is not None:
                number, _ = end_of(source)
                sent.append((("node", number) if number else ("leaf", self.mark(source)), value))
        line = None if node._code is None else line_in(node._code, node._at)
        self.step(node._seq, type(node).__name__, line, cts, sent)

    def mode_set(self, context: Any, action: str) -> None:
        """A context turned recording on or off."""
        frame: Any = sys._getframe(2)
        function = None
        while frame is not None and frame.f_code.co_filename.endswith(MODES):
            function = frame.f_locals.get("function", function)
            frame = frame.f_back
        mode = "inference" if state._inference else "grad" if state._grad else "no_grad"
        self.switched(context, action, mode, frame, function)

    def counted(self, kind: str, module: Any, hook: Any) -> Any:
        """A hook on a module, whose calls are counted if it is the file's own."""
        if self.owner[sys._getframe(3).f_code.co_filename] != OWN:
            return hook
        calls = self.hooked_layer(module, kind).calls

        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(len(calls))
            return hook(*args, **kwargs)

        return call


def end_of(source: Any) -> tuple[int, int]:
    """Where an edge leads: the number of a node, and which of its results; (0, 0) for a leaf or for nowhere."""
    if source is None or source._seq >= 0:
        return (0 if source is None else source._seq, 0)
    return (source.node._seq, source.nr)


class EagerTensors(TensorReader):
    """Reads these tensors; a gradient may be an array too."""

    layer_call = ("gradcli.eager.nn._module", "__call__")
    library = PACKAGE
    kind = Tensor
    optimizer = Optimizer

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

    def version(self, tensor: Any) -> int:
        count = tensor._count
        return 0 if count is None else int(count.value)

    def memory(self, tensor: Any) -> int:
        return id(tensor._counter)

    def added(self, tensor: Any) -> int:
        grad = tensor._grad
        return 0 if grad is None else grad._added

    def facts(self, tensor: Any, extents: bool) -> TensorFacts:
        array = tensor._raw
        size, value = size_of(array, extents), kept(array, extents)
        return TensorFacts(tensor._requires, self.seq(tensor), spoken(array.dtype), array.shape, size, value)

    def subject(self, tensor: Any, name: str, scope: str, size: ArrayNorm | None) -> SeenTensor:
        edge, grad = tensor._edge, tensor._grad
        return SeenTensor(
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

    def copied(self, tensor: Any) -> Any:
        return tensor._array.copy()

    def ratio(self, tensor: Any, before: Any) -> float:
        return super().ratio(tensor._array, before)

    def mode(self) -> str:
        return "inference" if state._inference else "grad" if state._grad else "no_grad"
