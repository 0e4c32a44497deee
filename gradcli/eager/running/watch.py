"""What a run reports goes in; a record of operations, backwards and names comes out, which outlives all tensors.

`record` keeps values and changes; here are the backwards, and the names that tensors have in the file.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.running.entries import Event, Reached, Step, Sweep, array_of, kept, size_of
from gradcli.eager.running.functions import names_at_end
from gradcli.eager.running.loose import loose_in
from gradcli.eager.running.places import line_in, line_of
from gradcli.eager.running.record import Record
from gradcli.eager.running.subjects import Subject, subjects_of
from gradcli.eager.state import state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from gradcli.eager.nodes import Node
    from gradcli.eager.state import Place
    from gradcli.eager.tensor import Tensor

MOST_SIZES = 64


class Watch(Record):
    """The record of one run; with `extents`, large arrays leave their smallest and largest entry."""

    # --- backwards ------------------------------------------------------------------------------------------------

    def refused(self, root: Tensor) -> None:
        """A backward was wanted of a tensor that does not require grad."""
        self.refusal, self.stop, self.fault = self.mark(root), None, self._line()
        self.meet(root)

    def stopped(self, why: str, name: str, where: Place, changed: Place) -> None:
        """A backward cannot go through a node."""
        self.stop, self.refusal = (why, name, line_of(where), line_of(changed)), None
        self.fault = self.open[-1].line if self.open else self._line()

    def sweep(
        self, roots: Sequence[Tensor], targets: Sequence[Tensor] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""
        known = [
            (self.mark(root), root._edge[0].seq if root._edge is not None else None, size_of(root._raw)[1])
            for root in roots
        ]
        made = Sweep(self._line(), known, retain)
        made.create, made.accumulate = create, accumulate
        made.targets = None if targets is None else tuple([self.mark(x) for x in targets])
        self.sweeps.append(made)
        self.open.append(made)

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""
        step = Step()
        arrays = [array_of(ct) for ct in cts if ct is not None]
        step.seq, step.name = node._seq, type(node).__name__
        step.line = None if node._code is None else line_in(node._code, node._at)
        step.norm, step.finite = 0.0, True
        known, extents = self.sizes, self.extents
        for array in arrays:
            found = known.pop(id(array), None)
            norm, sound = size_of(array, extents) if found is None or found[0] is not array else found[1:]
            step.norm = step.norm if norm <= step.norm else norm  # NaN too
            step.finite = step.finite and sound
        step.arrived = kept(arrays[0], extents) if len(arrays) == 1 else None
        step.sent, step.withheld, step.stuck = [], [], 0.0
        for source, value in zip(node.ins, results, strict=False):
            if source is None:
                continue
            seq = source._seq
            to = ("node", seq if seq > 0 else source.node._seq) if seq else ("leaf", self.mark(source))
            if value is None:
                step.withheld.append(to)
                continue
            array = array_of(value)
            norm, sound = size_of(array, extents)
            if array.ndim:
                known[id(array)] = (array, norm, sound)  # as what it may arrive as
            step.sent.append((to, norm, sound, kept(array, extents)))
            if not sound and step.finite and arrays and arrays[0].shape == array.shape:
                step.stuck = max(step.stuck, float((~np.isfinite(array) & (arrays[0] == 0)).mean()))
        if len(known) > MOST_SIZES:
            known.clear()
        sweep = self.open[-1]
        sweep.steps.append(step)
        sweep.seqs.add(step.seq)

    def accumulated(self, leaf: Tensor, value: Tensor) -> None:
        """A backward added a gradient into `.grad`."""
        found = leaf._grad
        assert found is not None
        mark = self.mark(leaf)
        self.grads[self.mark(found)] = mark
        sweep = self.open[-1] if self.open else self.sweeps[-1]
        sweep.reached.append(Reached(mark, value._raw, found._added, self.extents))
        self.events.append(Event("added", mark, self.open[-1].line if self.open else self._line(), len(self.sweeps)))
        self.meet(leaf)

    def swept(self, ended: bool = True) -> None:
        """A backward ended, or broke off."""
        self.open.pop().ended = ended
        self.sizes.clear()

    # --- names ------------------------------------------------------------------------------------------------------

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
        for loose in loose_in(names, self.mark):
            self.loose[loose.tensors] = loose

    @contextmanager
    def watching(self, names: dict[str, Any]) -> Iterator[None]:
        """While it lasts everything is recorded; at its end, the names of the file and of where it broke off."""
        before = recorder.current
        recorder.current = self
        state.refresh()
        try:
            yield
        except BaseException as problem:
            self.ended(self.functions.left())
            self._broken_off(problem)
            raise
        finally:
            self.ended(self.functions.left())
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

    def ended(self, functions: Sequence[FrameType]) -> None:
        """Functions of the file have come to their end: their names are noted."""
        for frame in functions:
            self.look(names_at_end(frame, self.owners), frame.f_code.co_name)
