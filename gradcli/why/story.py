"""Queries of the record of a run: origins of values, ends of paths, names, places, and what happened to a tensor.

All walks are loops: a record may hold a million operations.
"""

from __future__ import annotations

import ast
import math
import re
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gradcli.base.results.findings import Finding
from gradcli.recording.runs.source_lines import SourceLine, file_name, filename_of
from gradcli.recording.runs.source_tree import SourceTree
from gradcli.why.fixes import Dialect, JaxDialect
from gradcli.why.readings import is_float, reads

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Iterator

    from gradcli.base.results.findings import Evidence, Patch
    from gradcli.recording.runs.run_record import Watch
    from gradcli.recording.runs.tensors import (
        BackwardRecord,
        Entry,
        Event,
        OptimizerRecord,
        Reached,
        SeenTensor,
        Step,
        Update,
    )


T = TypeVar("T")
V = TypeVar("V")
TARGETS = re.compile(r"\b(target|tgt|goal|teacher|label|true|truth|gt|next|nxt|best|expected|y\b)|_(target|next)")
NUMBERS = ("numpy", "item", "tolist")
ONLY_COPIES = ("detach()", ".data", "stop_gradient()")
CHECKS = ("__bool__", "all", "any", "equal", "allclose", "isclose", "isnan", "isfinite")


class End(NamedTuple):
    """Why a gradient does not pass a value."""

    reason: str
    line: SourceLine | None
    what: str
    entry: Entry


def walk(starts: Iterable[T], onward: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Breadth-first search: what can be reached from some places, each once, the nearest first.

    >>> list(walk([6], lambda n: [n // 2, n // 3] if n > 1 else []))
    [6, 3, 2, 1, 0]
    """
    waiting = deque(starts)
    seen = set(waiting)
    while waiting:
        node = waiting.popleft()
        yield node
        for other in onward(node):
            if other not in seen:
                seen.add(other)
                waiting.append(other)


def grouped(pairs: Iterable[tuple[T, V]]) -> dict[T, list[V]]:
    """The second of each pair under the first."""
    groups: dict[T, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


class Story:
    """Questions about one record."""

    def __init__(self, watch: Watch, path: str) -> None:
        self.watch = watch
        self.path = filename_of(path)
        self.entries = watch.entries
        self.held = watch.optimised
        self._leading: dict[int, set[int]] = {}
        self._trees: dict[str, SourceTree] = {}
        self._dialects: dict[str, Dialect] = {}
        self._sent: dict[int, dict[tuple[str, int], list[tuple[Step, float]]]] = {}  # by the identity of a sweep

    # --- lines and names ------------------------------------------------------------------------------------------

    def tree(self, place: str | SourceLine | None) -> SourceTree:
        """The syntax of a file, or of that of a line; of the file that ran, if there is no line."""
        file = self.path if place is None else place if isinstance(place, str) else place.file
        if file not in self._trees:
            self._trees[file] = SourceTree(file)
        return self._trees[file]

    def dialect(self, line: SourceLine | None = None) -> Dialect:
        """In which words fixes of a file are written; of the file that ran, if no line is given."""
        tree = self.tree(line)
        if tree.file not in self._dialects:
            jax = self.watch.tensors.dialect == "jax"
            self._dialects[tree.file] = JaxDialect(tree) if jax else Dialect()
        return self._dialects[tree.file]

    @cached_property
    def main(self) -> SourceTree:
        """The syntax of the file that ran."""
        return self.tree(self.path)

    def files(self) -> set[str]:
        """The user's files that the record saw."""
        return {self.path, *(entry.line.file for entry in self.entries.values() if entry.line is not None)}

    def at(self, line: SourceLine | None) -> str:
        """A place as people read it: ``line 3: `x.detach()` ``."""
        if line is None:
            return "an unknown line"
        where = f"{'' if line.file == self.path else f'{file_name(line.file)}, '}line {line.number}"
        return f"{where}: `{line.text}`" if line.text else where

    def place(self, line: SourceLine | None) -> str:
        """A place without its text."""
        return self.at(None if line is None else line._replace(text=""))

    def called(self, mark: int) -> str:
        """The name of a tensor, or the text that made it."""
        known = self.watch.subjects.get(mark)
        if known is not None and known.name:
            return known.name
        entry = self.entries.get(mark)
        return f"`{entry.line.text}`" if entry and entry.line and entry.line.text else "a tensor"

    def is_named(self, mark: int) -> bool:
        """Whether the file has a name for a tensor."""
        known = self.watch.subjects.get(mark)
        return known is not None and bool(known.name)

    def doing(self, entry: Entry | None, name: str = "", line: SourceLine | None = None) -> str:
        """An operation with its line: by the layer that it belongs to, else by its node."""
        if entry is None:
            return f"{self.watch.tensors.shown(name)} at {self.at(line)}"
        what = str(entry.layer) if entry.layer is not None else self.watch.tensors.shown(entry.name)
        return f"{what} at {self.at(entry.line)}"

    def doing_step(self, step: Step) -> str:
        """A node of a backward with its line."""
        return self.doing(self.result(step.seq), step.name, step.line)

    def node(self, line: SourceLine | None) -> ast.expr | None:
        """The expression that ran at a line."""
        return None if line is None else self.tree(line.file).node(line)

    def statement(self, line: SourceLine | None) -> ast.stmt | None:
        """The statement that ran at a line."""
        return None if line is None else self.tree(line.file).statement(line)

    def find(
        self,
        reason: str,
        subject: str | None,
        line: SourceLine | None,
        message: str,
        evidence: Evidence | None = None,
        *,
        fix: str = "",
        patches: Iterable[Patch | None] = (),
    ) -> Finding:
        """A finding, with a fix of its own or that for its reason."""
        file = None if line is None or line.file == self.path else line.file
        kept = tuple([patch for patch in patches if patch is not None])
        number = None if line is None else line.number
        cure = fix or self.dialect().fixes[reason]
        return Finding(reason, subject, number, message, cure, evidence, file=file, patches=kept)

    def timeline(self, mark: int) -> list[Event]:
        """What happened to a tensor and its `.grad`, in order."""
        return self.timelines.get(mark, [])

    @cached_property
    def timelines(self) -> dict[int, list[Event]]:
        """For each tensor what happened to it and its `.grad`, in order."""
        return grouped((event.mark, event) for event in self.watch.events)

    @cached_property
    def latest(self) -> dict[int, SeenTensor]:
        """The tensors with a name, only the newest of each; and those without one that someone looked at."""
        newest: dict[tuple[str, str], int] = {}
        for mark, subject in self.watch.subjects.items():
            if subject.name:
                key = (subject.scope, subject.name)
                newest[key] = max(mark, newest.get(key, mark))
        kept = set(newest.values())
        return {m: s for m, s in self.watch.subjects.items() if m in kept or not s.name}

    # --- the graph that would have been -----------------------------------------------------------------------------

    @cached_property
    def users(self) -> dict[int, list[Entry]]:
        """For each value what was computed from it."""
        return grouped((mark, entry) for entry in self.entries.values() if not entry.inside for mark in entry.inputs)

    def result(self, seq: int | None) -> Entry | None:
        """A value that a node made."""
        marks = self.watch.made.get(-1 if seq is None else seq)
        return self.entries.get(min(marks.values())) if marks else None

    def roots(self, since: int = 0) -> set[int]:
        """The tensors that backward was, or could not be, called on."""
        roots = {mark for sweep in self.watch.sweeps[since:] for mark, _, _ in sweep.roots}
        return roots if self.watch.refusal is None else roots | {self.watch.refusal}

    def leading(self, since: int = 0) -> set[int]:
        """The values that roots were made from, with or without a history."""
        if since not in self._leading:
            self._leading[since] = set(walk(self.roots(since), self.operands))
        return self._leading[since]

    def end_at(self, entry: Entry) -> End | None:
        """Why no gradient passes an entry, or None where one does."""
        if entry.role == "cut":
            if entry.via is not None and entry.via.co_name == "__deepcopy__":
                return None  # a copy with parameters of its own
            if not entry.wanted and not any(below in self.historic for below in entry.inputs):
                return None
            if entry.name in ONLY_COPIES:
                number = self.made_number(entry)
                if number:
                    return End("as-number", entry.line, f"{number}() made a plain number or array of it", entry)
                return End("detached", entry.line, f"{entry.name} was taken", entry)
            if entry.name == "torch.autograd.grad()":
                what = "torch.autograd.grad() without create_graph=True gave a gradient without a history"
                return End("no-create-graph", entry.line, what, entry)
            if entry.name in ("torch.tensor()", "nn.Parameter()"):
                what = f"{entry.name} copied the numbers and left the history behind"
                return End("rewrapped", entry.line, what, entry)
            return End("as-number", entry.line, f"{entry.name} made a plain number or array of it", entry)
        if entry.role != "operation" or entry.seq is not None or not entry.wanted:
            return None
        if entry.mode != "grad":
            return self._unrecorded(entry)
        if entry.name.startswith("Multinomial"):
            return End("sampled", entry.line, "a draw of whole numbers", entry)
        if not is_float(entry.dtype):
            what = f"the result is {entry.dtype}, a step function of its operand"
            return End("step-function", entry.line, what, entry)
        return End("step-function", entry.line, "the operation has no derivative", entry)

    def made_number(self, entry: Entry) -> str:
        """The method that makes a number or an array of a value in the expression that detached it, if there is one."""
        outer: ast.AST | None = self.node(entry.line)
        while isinstance(outer, (ast.Attribute, ast.Call)):
            outer = self.tree(entry.line).parents.get(outer)
            if isinstance(outer, ast.Attribute) and outer.attr in NUMBERS:
                return outer.attr
        return ""

    def _unrecorded(self, entry: Entry) -> End:
        """The end at an operation that ran while nothing was recorded."""
        switch, via = entry.switch, entry.via
        if (rule := self.rule(entry)) is not None:
            what = f"it was computed in the `{rule.name}` of a Function, where nothing is recorded,"
            return End("no-grad", entry.line, what, entry)
        if via is not None and via.co_name == "sample":
            return End("sampled", entry.line, "sample() draws under no_grad", entry)
        if entry.mode == "inference":
            where = f" (entered at {self.place(switch.line)})" if switch is not None else ""
            return End("inference", entry.line, f"it was computed in inference_mode{where}", entry)
        if switch is not None and switch.how == "call":
            what = f"set_grad_enabled(False) at {self.place(switch.line)} was still in force"
            return End("mode-left", switch.line, what, entry)
        by = f", by the decorator at {self.place(switch.line)}" if switch and switch.how == "decorator" else ""
        return End("no-grad", entry.line, f"it was computed under no_grad{by}", entry)

    def rule(self, entry: Entry) -> ast.FunctionDef | None:
        """The forward or backward of a Function that computed a value without recording it."""
        unswitched = entry.line is not None and (entry.switch is None or entry.switch.how == "library")
        return self.tree(entry.line).rule(entry.line) if entry.line is not None and unswitched else None

    def ends(self, mark: int, since: int = 0) -> list[End]:
        """Where the ways from a value to a root end, each place once; first those behind which none ends again."""
        leading = self.leading(since)

        def onward(value: int) -> list[int]:
            return [use.mark for use in self.users.get(value, ()) if use.mark in leading and self.end_at(use) is None]

        ends: dict[tuple[str, SourceLine | None], End] = {}
        roots = self.roots(since)
        for value in walk([mark], onward):
            for entry in self.users.get(value, ()):
                end = self.end_at(entry) if entry.mark in leading else None
                if end is not None:
                    ends.setdefault((end.reason, end.line), end)
        last = [end for end in ends.values() if any(mark in roots for mark in walk([end.entry.mark], onward))]
        return [*last, *[end for end in ends.values() if end not in last]]

    def number_end(self, mark: int) -> End | None:
        """Where something made from a value left the graph and reaches a loss through names: as a number, if it can."""
        lines: dict[str, set[int]] = {}
        for value in self.leading():
            line = self.entries[value].line
            if line is not None:
                lines.setdefault(line.file, set()).add(line.number)
        ends: list[End] = []
        for value in walk([mark], lambda value: [use.mark for use in self.users.get(value, ())]):
            for end in filter(None, map(self.end_at, self.users.get(value, ()))):
                statement = self.statement(end.line)
                if statement is None or end.line is None or self.is_check(end.entry):
                    continue
                tree = self.tree(end.line.file)
                reached = lines.get(end.line.file, set())
                if any(tree.within(number, statement) for number in reached) or tree.carries(statement, reached):
                    ends.append(end)
        return min(ends, key=lambda end: not (end.reason == "as-number" and end.entry.wanted), default=None)

    def is_check(self, entry: Entry) -> bool:
        """Whether a library looked at a value only to decide something."""
        return entry.via is not None and entry.name.startswith("item") and entry.via.co_name in CHECKS

    def number_at(self, line: SourceLine | None, time: float = math.inf) -> End | None:
        """Where a value left the graph in the statement of a line, or became, before a time, a number that it reads."""
        statement, tree = self.statement(line), self.tree(line)
        lost: End | None = None
        for entry in reversed(self.entries.values()) if statement is not None else ():
            end, start = (self.end_at(entry), self.statement(entry.line)) if entry.role == "cut" else (None, None)
            if end is None or start is None or statement is None or entry.line is None or entry.line.file != tree.file:
                continue
            if tree.within(entry.line.number, statement) and any(below in self.historic for below in entry.inputs):
                return end
            if end.reason != "as-number" or entry.mark > time or self.is_check(entry) or (lost and not entry.wanted):
                continue
            if tree.carries(start, set(range(statement.lineno, (statement.end_lineno or 0) + 1))):
                lost = end
                if entry.wanted:
                    break
        return lost

    def end_above(self, mark: int) -> End | None:
        """Where the history of a value that requires no grad was lost: of a prediction rather than of its target."""
        ends = filter(None, (self.end_at(self.entries[above]) for above in walk([mark], self.operands)))
        lost = [end for end in ends if any(below in self.historic for below in end.entry.inputs)]

        def aside(end: End) -> tuple[bool, bool]:
            trained = self.held & self.ancestors_of(end.entry.mark)
            return not trained, end.line is not None and TARGETS.search(end.line.text) is not None

        beside = [end for end in lost if end.line and lost[0].line and end.line[:2] == lost[0].line[:2]]
        return min(beside or lost[:1], key=aside, default=None)

    @cached_property
    def historic(self) -> set[int]:
        """The values that require grad, or were made from one that does: an entry comes after its operands."""
        historic: set[int] = set()
        for entry in self.entries.values():
            above = any(below in historic and self.entries[below].role != "leaf" for below in entry.inputs)
            if entry.wanted or above or (entry.requires and entry.seq is None):
                historic.add(entry.mark)
        return historic

    def operands(self, mark: int) -> tuple[int, ...]:
        """What a value was made from at once."""
        return self.entries[mark].inputs

    def ancestors_of(self, mark: int) -> set[int]:
        """The values that a value was made from, and itself."""
        return set(walk([mark], self.operands))

    def leaves_above(self, mark: int) -> list[int]:
        """The leaves that a value was made from."""
        return sorted(leaf for leaf in walk([mark], self.operands) if self.entries[leaf].role == "leaf")

    def through(self, mark: int, word: str) -> Entry:
        """The nearest value above that more was done to than a kind of operation, such as one that only views."""
        entry = self.entries[mark]
        while reads(entry.name, word) and entry.inputs:
            entry = self.entries[entry.inputs[0]]
        return entry

    # --- backwards ------------------------------------------------------------------------------------------------

    @cached_property
    def arrivals(self) -> dict[int, list[tuple[BackwardRecord, Reached]]]:
        """For each leaf the gradients that came to it, in order."""
        return grouped((arrival.leaf, (sweep, arrival)) for sweep in self.watch.sweeps for arrival in sweep.reached)

    @cached_property
    def walked(self) -> dict[int | None, list[int]]:
        """For each node the backwards that went through it, by their position."""
        return grouped((seq, at) for at, sweep in enumerate(self.watch.sweeps) for seq in sweep.seqs)

    def scaling(self, sweep: BackwardRecord) -> Entry | None:
        """The loss times the scale of a GradScaler that a backward began with."""
        entry = self.entries[sweep.roots[0][0]] if sweep.roots else None
        scaled = entry is not None and entry.via is not None and "grad_scaler" in entry.via.co_filename
        return entry if scaled else None

    def updates(self, mark: int | None = None) -> list[tuple[OptimizerRecord, Update]]:
        """The steps of all optimizers in order, or of those that hold a tensor."""
        pairs = [
            (optimizer, update)
            for optimizer in self.watch.optimizers
            if mark is None or mark in optimizer.held
            for update in optimizer.updates
        ]
        return sorted(pairs, key=lambda pair: pair[1].time)

    def senders(self, sweep: BackwardRecord, target: tuple[str, int]) -> list[tuple[Step, float]]:
        """Which nodes sent something to a node or leaf, and the norms of it."""
        known = self._sent.get(id(sweep))
        if known is None:
            pairs = ((sent.to, (step, sent.size.norm)) for step in sweep.steps for sent in step.sent)
            known = self._sent[id(sweep)] = grouped(pairs)
        return known.get(target, [])
