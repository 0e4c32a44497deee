"""Operations and changes of tensors go in, entries and events with their lines come out; knows no backward.

Each tensor carries its number in the record. An operation that leaves no node (under `no_grad`, after `detach`) has an
entry as any other: together they are the graph that would have been, and where a gradient is missing, the place where
it ended can be named.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.eager import recorder
from gradcli.eager.running.entries import (
    Entry,
    Event,
    Rule,
    Sweep,
    finite,
    flat,
    kept,
    masked_rows,
    name_of,
)
from gradcli.eager.running.functions import Functions
from gradcli.eager.running.loose import Loose
from gradcli.eager.running.places import Line, line_in
from gradcli.eager.running.subjects import Subject
from gradcli.eager.state import ours, recording, state
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


SCORES = {  # which operand of a softmax holds the scores, or of attention the mask that is added to them
    "SoftmaxBackward0": 0,
    "LogSoftmaxBackward0": 0,
    "ScaledDotProductFlashAttentionForCpuBackward0": 3,
}
_numbers = itertools.count()  # never reset: a number belongs to one record


class Record(recorder.Recorder):
    """The record of one run, as far as values and their changes go."""

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
        self.loose: dict[tuple[int, ...], Loose] = {}  # parameters in plain containers of modules
        self.optimised: set[int] = set()  # what an optimizer was given
        self.refusal: int | None = None
        self.stop: tuple[str, str, Line | None, Line | None] | None = None
        self.fault: Line | None = None  # where a backward was refused or stopped last
        self.rules: dict[int, Rule] = {}  # of results that a Function gave
        self.open: list[Sweep] = []
        self.sizes: dict[int, tuple[Any, float, bool]] = {}  # of what a backward sends, until it has arrived
        self.owners: set[int] = set()  # the objects whose attributes were looked at
        self.functions = Functions(self._own)
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
        inputs = []
        wanted, calm, entries = False, True, self.entries
        for x in xs:
            if isinstance(x, Tensor):
                entry = entries.get(x._mark)
                if entry is None:
                    entry = self._enter(x, "leaf", "", (), True)
                if x._requires:
                    entry.requires = wanted = True
                inputs.append(entry.mark)
                calm = calm and entry.finite
        made = self._enter(result, "operation", name, tuple(inputs), calm)
        made.wanted = wanted
        if not made.finite and name in SCORES:
            scores = xs[SCORES[name]] if len(xs) > SCORES[name] else None
            if isinstance(scores, Tensor):
                made.masked = masked_rows(scores._raw, result._raw)

    def ruled(self, result: Tensor, function: Any, saved: Sequence[Any]) -> None:
        """A result has a rule of its own, of a class with forward and backward, which saved these values."""
        code = getattr(function.way(), "__code__", None)
        line = None if code is None else Line(code.co_filename, code.co_firstlineno, "")
        marks = [self.mark(x) if isinstance(x, Tensor) else None for x in saved if x is not None]
        self.rules[result._mark] = Rule(function.__name__, line, tuple(marks))

    def cut(self, how: str, xs: Sequence[Any], result: Tensor | None) -> None:
        """Values left the graph: by detach(), item(), numpy() and the like."""
        tensors = [x for x in flat(xs) if isinstance(x, Tensor)]
        inputs = tuple([self.mark(x) for x in tensors])
        if inputs:
            entry = self._enter(result, "cut", how, inputs, self._calm(inputs))
            entry.wanted = any(x._requires for x in tensors)
            if result is not None and how in ("detach()", ".data"):
                self.shared[result._mark] = inputs[0]

    def _line(self) -> Line | None:
        """The line of the file that runs now; functions of it that have ended tell their names."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and ours[frame.f_globals.get("__name__")]:
            frame = frame.f_back
        if frame is not self.functions.innermost and not self.open:  # a backward calls nothing that has names
            self.ended(self.functions.turned(frame))
        return None if frame is None else line_in(frame.f_code, frame.f_lasti)

    def ended(self, functions: Sequence[FrameType]) -> None:
        """Functions of the file have come to their end, with these frames."""

    def _calm(self, inputs: Sequence[int]) -> bool:
        entries = self.entries
        return all(entries[mark].finite for mark in inputs)

    def _enter(self, tensor: Tensor | None, role: str, name: str, inputs: tuple[int, ...], calm: bool) -> Entry:
        entry = Entry()
        entry.mark, entry.role, entry.name, entry.inputs, entry.calm = next(_numbers), role, name, inputs, calm
        entry.line = self._line()
        entry.mode = "inference" if state._inference else "grad" if state._grad else "no_grad"
        entry.inside, entry.sweeps = bool(self.open), len(self.sweeps)
        entry.requires, entry.wanted, entry.seq, entry.dtype, entry.shape = False, False, None, "", ()
        entry.finite, entry.value, entry.zeros, entry.spoilt, entry.masked = True, None, None, None, None
        if tensor is not None:
            array = tensor._raw
            edge = tensor._edge
            entry.requires = tensor._requires
            entry.seq = edge[0]._seq if edge is not None else None
            entry.dtype, entry.shape = name_of(array.dtype), array.shape
            entry.finite = finite(array)
            entry.value = kept(array, self.extents)
            if name == "ReluBackward0" and array.size:
                rows = array.reshape(-1, array.shape[-1] if array.ndim > 1 else array.size)
                entry.zeros = ~rows.any(axis=0)
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
        if entry.finite and not finite(tensor._raw):
            entry.finite, entry.calm, entry.spoilt, entry.value = False, True, self._line(), None

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
        self.events.append(Event(kind, mark, self._line(), len(self.sweeps), name))

    def meet(self, tensor: Tensor) -> None:
        """Note the state that a tensor is in now; its name may come later."""
        known = self.subjects.get(tensor._mark)
        self.subjects[tensor._mark] = Subject.of(tensor, known.name if known else "", known.scope if known else "")

    def _own(self, filename: str) -> bool:
        return filename == "<stdin>" or (filename.startswith(self.folder) and "site-packages" not in filename)
