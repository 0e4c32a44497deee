"""What a run reports goes in; a record of operations, backwards and names comes out, which outlives all tensors.

Each tensor carries its number in the record. An operation that leaves no node (under `no_grad`, after `detach`) has an
entry as any other: together they are the graph that would have been, and where a gradient is missing, the place where
it ended can be named.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.running.entries import (
    Entry,
    Event,
    Reached,
    Step,
    Sweep,
    array_of,
    flat,
    kept,
    name_of,
    size_of,
)
from gradcli.eager.running.places import Line, line_of
from gradcli.eager.running.subjects import Subject, subjects_of
from gradcli.eager.state import place, recording, state
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from gradcli.eager.nodes import Node
    from gradcli.eager.state import Place

_numbers = itertools.count()  # never reset: a number belongs to one record


class Watch(recorder.Recorder):
    """The record of one run; with `extents`, large arrays leave their smallest and largest entry."""

    def __init__(self, folder: str, extents: bool = False) -> None:
        self.extents = extents
        self.folder = (folder, os.path.realpath(folder) + os.sep)  # the files in it are the user's own
        self.entries: dict[int, Entry] = {}
        self.sweeps: list[Sweep] = []
        self.events: list[Event] = []
        self.grads: dict[int, int] = {}  # number of a .grad: number of its tensor
        self.shared: dict[int, int] = {}  # number of a detach() or .data: number of the tensor whose memory it is
        self.subjects: dict[int, Subject] = {}
        self.holders: dict[str, tuple[int, ...]] = {}  # name of a container: numbers of the tensors with history in it
        self.optimised: set[int] = set()  # what an optimizer was given
        self.refusal: int | None = None
        self.stop: tuple[str, str, Line | None, Line | None] | None = None
        self.fault: Line | None = None  # where a backward was refused or stopped last
        self.owners: set[int] = set()  # the objects whose attributes were looked at
        self.open: list[Sweep] = []
        self.tracing = False  # whether functions of the file are followed, for their names
        self.last: Line | None = None  # where an exception ended the file

    # --- values -----------------------------------------------------------------------------------------------

    def mark(self, tensor: Tensor) -> int:
        """The number of a tensor; one that is new is a leaf."""
        if tensor._mark not in self.entries:
            self._enter(tensor, "leaf", "", (), True)
        elif tensor._requires:
            self.entries[tensor._mark].requires = True
        return tensor._mark

    def operation(self, name: str, xs: Sequence[Any], result: Tensor) -> None:
        """An operation gave a result, with or without a node."""
        tensors = [x for x in xs if isinstance(x, Tensor)]
        inputs = tuple([self.mark(x) for x in tensors])
        entry = self._enter(result, "operation", name, inputs, self._calm(inputs))
        entry.wanted = any(x._requires for x in tensors)

    def cut(self, how: str, xs: Sequence[Any], result: Tensor | None) -> None:
        """Values left the graph: by detach(), item(), numpy() and the like."""
        tensors = [x for x in flat(xs) if isinstance(x, Tensor)]
        inputs = tuple([self.mark(x) for x in tensors])
        if inputs:
            entry = self._enter(result, "cut", how, inputs, self._calm(inputs))
            entry.wanted = any(x._requires for x in tensors)
            if result is not None and how in ("detach()", ".data"):
                self.shared[result._mark] = inputs[0]

    def _calm(self, inputs: Sequence[int]) -> bool:
        entries = self.entries
        return all(entries[mark].finite for mark in inputs)

    def _enter(self, tensor: Tensor | None, role: str, name: str, inputs: tuple[int, ...], calm: bool) -> Entry:
        entry = Entry()
        entry.mark, entry.role, entry.name, entry.inputs, entry.calm = next(_numbers), role, name, inputs, calm
        entry.line = line_of(place())
        entry.mode = "grad" if recording() else "inference" if state.inference else "no_grad"
        entry.inside, entry.sweeps = bool(self.open), len(self.sweeps)
        entry.requires, entry.wanted, entry.seq, entry.dtype, entry.shape = False, False, None, "", ()
        entry.finite, entry.value, entry.zeros, entry.spoilt = True, None, None, None
        if tensor is not None:
            array = tensor._raw
            edge = tensor._edge
            entry.requires = tensor._requires
            entry.seq = edge[0].seq if edge is not None else None
            entry.dtype, entry.shape = name_of(array.dtype), array.shape
            entry.finite = size_of(array)[1]
            entry.value = kept(array, self.extents)
            if name == "ReluBackward0" and array.size:
                entry.zeros = np.asarray((array == 0).reshape(-1, array.shape[-1] if array.ndim > 1 else array.size))
                entry.zeros = entry.zeros.all(axis=0)
            tensor._mark = entry.mark
        self.entries[entry.mark] = entry
        return entry

    # --- changes ------------------------------------------------------------------------------------------------

    def same(self, tensor: Tensor, other: Tensor) -> None:
        """From now on a tensor stands for what another one stands for."""
        tensor._mark = self.mark(other)

    def changed(self, tensor: Tensor, result: Tensor) -> None:
        """A tensor was changed in place; `result` is what was computed for it."""
        before, made = self.mark(tensor), self.mark(result)
        name = self.entries[made].name
        changed = before
        while changed in self.shared:
            changed = self.shared[changed]
        owner = self.grads.get(changed)
        if owner is None:
            self._event("changed", changed, name)
        else:
            self._event("altered" if tensor._array.any() else "zeroed", owner, name)
        if not recording() or tensor._edge is None:
            self._spoilt(tensor, changed)
            if tensor._base is not None:
                self._spoilt(tensor._base, self.mark(tensor._base))
            return  # no new history: a leaf that an optimizer moves stays the same leaf
        tensor._mark = made
        base = tensor._base
        if base is not None:
            held = self.mark(base)
            self._enter(base, "operation", "CopySlices", (held, made), True)

    def moved(self, tensor: Tensor) -> None:
        """A tensor was given new values, by an optimizer or through .data."""
        self._event("changed", self.mark(tensor), "step")
        self._spoilt(tensor, tensor._mark)

    def _spoilt(self, tensor: Tensor, mark: int) -> None:
        """Note that NaN or infinity was written into a tensor that keeps its place in the record."""
        entry = self.entries[mark]
        if entry.finite and not size_of(tensor._raw)[1]:
            entry.finite, entry.calm, entry.spoilt, entry.value = False, True, line_of(place()), None

    def adopted(self, tensors: Sequence[Tensor]) -> None:
        """An optimizer was given tensors to move."""
        self.optimised.update(map(self.mark, tensors))

    def grad_read(self, tensor: Tensor) -> None:
        """Someone looked at `.grad`; only the file's own looks count."""
        module = sys._getframe(2).f_globals.get("__name__", "")
        if not module.startswith("gradcli."):
            found = tensor._grad
            kind = "none" if found is None else "zero" if not found._array.any() else "read"
            self._event(kind, self.mark(tensor))
            self.meet(tensor)

    def grad_set(self, tensor: Tensor, value: Tensor | None) -> None:
        """Someone assigned to `.grad`."""
        self._event("dropped" if value is None else "set", self.mark(tensor))
        if value is not None:
            self.grads[self.mark(value)] = tensor._mark

    def _event(self, kind: str, mark: int, name: str = "") -> None:
        self.events.append(Event(kind, mark, line_of(place()), len(self.sweeps), name))

    # --- backwards ------------------------------------------------------------------------------------------------

    def refused(self, root: Tensor) -> None:
        """A backward was wanted of a tensor that does not require grad."""
        self.refusal, self.stop, self.fault = self.mark(root), None, line_of(place())
        self.meet(root)

    def stopped(self, why: str, name: str, where: Place, changed: Place) -> None:
        """A backward cannot go through a node."""
        self.stop, self.refusal = (why, name, line_of(where), line_of(changed)), None
        self.fault = self.open[-1].line if self.open else line_of(place())

    def sweep(
        self, roots: Sequence[Tensor], targets: Sequence[Tensor] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""
        known = [
            (self.mark(root), root._edge[0].seq if root._edge is not None else None, size_of(root._raw)[1])
            for root in roots
        ]
        made = Sweep(line_of(place()), known, retain)
        made.create, made.accumulate = create, accumulate
        made.targets = None if targets is None else tuple([self.mark(x) for x in targets])
        self.sweeps.append(made)
        self.open.append(made)
        if self.tracing:
            sys.settrace(None)  # a backward calls much, and nothing that has names of the file

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""
        step = Step()
        arrays = [array_of(ct) for ct in cts if ct is not None]
        sizes = [size_of(array) for array in arrays]
        step.seq, step.name, step.line = node.seq, type(node).__name__, line_of(node.place)
        step.norm = max((norm for norm, _ in sizes), default=0.0)
        step.finite = all(finite for _, finite in sizes)
        step.arrived = kept(arrays[0], self.extents) if len(arrays) == 1 else None
        step.sent, step.withheld, step.stuck = [], [], 0.0
        for source, value in zip(node.inputs, results, strict=False):
            if source is None:
                continue
            to = ("leaf", self.mark(source)) if isinstance(source, Tensor) else ("node", source[0].seq)
            if value is None:
                step.withheld.append(to)
                continue
            array = array_of(value)
            norm, finite = size_of(array)
            step.sent.append((to, norm, finite, kept(array, self.extents)))
            if not finite and step.finite and arrays and arrays[0].shape == array.shape:
                step.stuck = max(step.stuck, float((~np.isfinite(array) & (arrays[0] == 0)).mean()))
        sweep = self.open[-1]
        sweep.steps.append(step)
        sweep.seqs.add(node.seq)

    def accumulated(self, leaf: Tensor, value: Tensor) -> None:
        """A backward added a gradient into `.grad`."""
        found = leaf._grad
        assert found is not None
        mark = self.mark(leaf)
        self.grads[self.mark(found)] = mark
        sweep = self.open[-1] if self.open else self.sweeps[-1]
        sweep.reached.append(Reached(mark, value._raw, found._added, self.extents))
        self._event("added", mark)
        self.meet(leaf)

    def swept(self, ended: bool = True) -> None:
        """A backward ended, or broke off."""
        self.open.pop().ended = ended
        if self.tracing and not self.open:
            sys.settrace(self.trace)

    # --- names ------------------------------------------------------------------------------------------------------

    def meet(self, tensor: Tensor) -> None:
        """Note the state that a tensor is in now; its name may come later."""
        known = self.subjects.get(tensor._mark)
        self.subjects[tensor._mark] = Subject.of(tensor, known.name if known else "", known.scope if known else "")

    def look(self, names: dict[str, Any], scope: str = "") -> None:
        """Note the names that tensors have, in the file or in one of its functions."""
        held: dict[str, list[int]] = {}
        named: set[int] = set()
        for name, tensor in subjects_of(names):
            mark = self.mark(tensor)
            if tensor._edge is not None:
                held.setdefault(name.partition("[")[0], []).append(mark)
            if mark in named:
                continue
            named.add(mark)
            known = self.subjects.get(mark)
            if known is None or not scope or not known.name or known.name.startswith("self."):
                self.subjects[mark] = Subject.of(tensor, name, scope)
            else:
                self.subjects[mark] = Subject.of(tensor, known.name, known.scope)
        for name, marks in held.items():
            self.holders[name] = tuple(marks)

    @contextmanager
    def watching(self, names: dict[str, Any]) -> Iterator[None]:
        """While it lasts everything is recorded; at its end, the names of the file and of where it broke off."""
        before, traced = recorder.current, sys.gettrace()
        recorder.current = self
        state.refresh()
        sys.settrace(self.trace)
        self.tracing = True
        try:
            yield
        except BaseException as problem:
            self._broken_off(problem)
            raise
        finally:
            self.tracing = False
            sys.settrace(traced)
            recorder.current = before
            state.refresh()
            self.look(names)

    def _broken_off(self, problem: BaseException) -> None:
        """The names in the functions that an exception left, and its line."""
        step = problem.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            if self._own(code.co_filename):
                self.last = line_of((code, step.tb_lasti))
                if code.co_name != "<module>":
                    self.look(dict(step.tb_frame.f_locals), code.co_name)
            step = step.tb_next

    def trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        """For `sys.settrace`: at the end of each function of the file its names are noted."""
        if not self._own(frame.f_code.co_filename) or frame.f_code.co_name == "<module>":
            return None
        frame.f_trace_lines = False
        return self._leaving

    def _own(self, filename: str) -> bool:
        return filename == "<stdin>" or (filename.startswith(self.folder) and "site-packages" not in filename)

    def _leaving(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "return":
            names = dict(frame.f_locals)
            owner = names.get("self")
            if owner is not None and id(owner) in self.owners:  # a method called again and again
                del names["self"]
            self.owners.add(id(owner))
            self.look(names, frame.f_code.co_name)
        return self._leaving
