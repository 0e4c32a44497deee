"""What a run reports goes in; a record of operations, backwards and names comes out, which outlives all tensors.

`record` keeps values and changes; here are the backwards, and the names that tensors have in the file.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.eager._core import events
from gradcli.eager._core.modes import state
from gradcli.eager.running.entries import Event, Reached, Sent, Step, Sweep
from gradcli.eager.running.functions import names_at_end
from gradcli.eager.running.loose import loose_in
from gradcli.eager.running.places import line_in, line_of
from gradcli.eager.running.record import Record
from gradcli.eager.running.subjects import subjects_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from gradcli.eager._core.modes import Place
    from gradcli.eager._core.node import Node
    from gradcli.eager.running.places import Line


class Watch(Record):
    """The record of one run; with `extents`, large arrays leave their smallest and largest entry."""

    # --- backwards ------------------------------------------------------------------------------------------------

    def refused(self, root: Any) -> None:
        """A backward was wanted of a tensor that does not require grad."""
        self.refusal, self.stop, self.fault = self.mark(root), None, self._line()
        self.meet(root)

    def stopped(self, why: str, name: str, where: Place, changed: Place) -> None:
        """A backward cannot go through a node."""
        self.broken(why, name, line_of(where), line_of(changed))

    def broken(self, why: str, name: str, line: Line | None, changed: Line | None) -> None:
        """A backward cannot go through a node that was made at one line; what it saved was `changed` at another."""
        self.stop, self.refusal = (why, name, line, changed), None
        self.fault = self.open[-1].line if self.open else self._line()

    def sweep(
        self, roots: Sequence[Any], targets: Sequence[Any] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""
        known = [(self.mark(root), self.tensors.seq(root), self.tensors.size(root).finite) for root in roots]
        made = Sweep(self._line(), known, retain)
        made.create, made.accumulate = create, accumulate
        made.targets = None if targets is None else tuple([self.mark(x) for x in targets])
        self.sweeps.append(made)
        self.open.append(made)

    def ran(self, node: Node, cts: Sequence[Any], results: Sequence[Any]) -> None:
        """A node ran in a backward."""
        sent = []
        for source, value in zip(node.ins, results, strict=False):
            if source is not None:
                seq = source._seq
                to = ("node", seq if seq > 0 else source.node._seq) if seq else ("leaf", self.mark(source))
                sent.append((to, value))
        line = None if node._code is None else line_in(node._code, node._at)
        self.step(node._seq, type(node).__name__, line, cts, sent)

    def step(
        self,
        seq: int,
        name: str,
        line: Line | None,
        cts: Sequence[Any],
        results: Sequence[tuple[tuple[str, int], Any]],
    ) -> None:
        """A node of a number ran: what arrived, and for each input where it goes to and what it gets, or None."""
        tensors, extents = self.tensors, self.extents
        arrived = [ct for ct in cts if ct is not None]
        step = Step(
            seq,
            name,
            line,
            [tensors.arrived(ct, extents) for ct in arrived],
            tensors.kept(arrived[0], extents) if len(arrived) == 1 else None,
        )
        for to, value in results:
            if value is None:
                step.withheld.append(to)
                continue
            size = tensors.sent(value, extents) if to[0] == "node" else tensors.size(value, extents)
            step.sent.append(Sent(to, size, tensors.kept(value, extents)))
            if arrived:
                tensors.note_stuck(step, arrived[0], value, size)
        sweep = self.open[-1]
        sweep.steps.append(step)
        sweep.seqs.add(seq)

    def accumulated(self, leaf: Any, value: Any) -> None:
        """A backward added a gradient into `.grad`."""
        tensors = self.tensors
        mark = self.mark(leaf)
        self.grads[self.mark(tensors.grad(leaf))] = mark
        sweep = self.open[-1] if self.open else self.sweeps[-1]
        size = tensors.size(value, self.extents)
        kept, probe = tensors.kept(value, self.extents), tensors.probe(value)
        total = tensors.kept(tensors.grad(leaf), True) if self.extents else None
        sweep.reached.append(Reached(mark, tensors.added(leaf), size, kept, total, probe))
        self.events.append(Event("added", mark, self.open[-1].line if self.open else self._line(), len(self.sweeps)))
        self.meet(leaf, size if tensors.added(leaf) == 1 else None)

    def swept(self, ended: bool = True) -> None:
        """A backward ended, or broke off."""
        self.open.pop().ended = ended
        self.tensors.swept()

    # --- names ------------------------------------------------------------------------------------------------------

    def look(self, names: dict[str, Any], scope: str = "") -> None:
        """Note the names that tensors have, in the file or in one of its functions."""
        held: dict[str, list[int]] = {}
        named: set[int] = set()
        for name, tensor in subjects_of(self.tensors, names):
            mark = self.mark(tensor)
            if self.tensors.seq(tensor) is not None:
                held.setdefault(name.partition("[")[0], []).append(mark)
            if mark in named:
                continue
            named.add(mark)
            known = self.subjects.get(mark)
            if known is None or not scope or not known.name or known.name.startswith("self."):
                self.named(mark, tensor, name, scope)
            else:
                self.named(mark, tensor, known.name, known.scope)
        for name, marks in held.items():
            self.holders[name] = tuple(marks)
        self.note_loose(names)

    def note_loose(self, names: dict[str, Any]) -> None:
        """Note the parameters that modules among some names do not register."""
        for loose in loose_in(self.tensors, names, self.mark):
            self.loose[loose.tensors] = loose

    @contextmanager
    def watching(self, names: dict[str, Any]) -> Iterator[None]:
        """While it lasts everything is recorded; at its end, the names of the file and of where it broke off."""
        try:
            with self.attached():
                yield
        except BaseException as problem:
            self.ended(self.functions.left())
            self.forget()
            self._broken_off(problem)
            raise
        finally:
            self.ended(self.functions.left())
            self.forget()
            self.look(names)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, what tensors of this thread do is recorded."""
        before = events.current
        events.current = self
        state.refresh()
        try:
            yield
        finally:
            events.current = before
            state.refresh()

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
