"""Queries of the record of a run (origins of tensors, ends of paths, names), the fix for each reason, kinds of nodes.

In `FIXES` `$it` stands for the tensor that a finding is about, `$use` for a class of torch.nn. All walks are loops: a
record may hold a million operations.
"""

from __future__ import annotations

import linecache
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gradcli.observe.source_lines import file_name, filename_of
from gradcli.results.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gradcli.observe.run_record import Watch
    from gradcli.observe.source_lines import Line
    from gradcli.observe.tensors import Entry, Event, Reached, Step, Subject, Sweep
    from gradcli.results.findings import Evidence


T = TypeVar("T")
FIXES: dict[str, str] = {
    "never-required": "make the leaf with requires_grad=True, or call requires_grad_() on it before it is used",
    "integer-dtype": "use a floating point dtype: torch.tensor([1., 2.]), or .float() before requires_grad_()",
    "detached": "use the tensor itself where a gradient is wanted; detach() only what is shown or stored",
    "as-number": "compute with the tensor itself; item(), tolist() and numpy() are for showing results",
    "rewrapped": "use torch.stack or torch.cat, which keep the history; torch.tensor() copies numbers only",
    "no-grad": "move the line out of the no_grad block, wrap it in torch.enable_grad(), or undo "
    "set_grad_enabled(False)",
    "inference": "compute it outside inference_mode, or clone() it there; what is made inside can never be "
    "differentiated",
    "not-leaf": "call retain_grad() on it before backward(), or look at the .grad of the leaf that it was "
    "computed from",
    "leaf-lost": "create the leaf last, with its dtype= and device=: `$it = (0.1 * torch.randn(3)).requires_grad_()`; "
    "a result of an operation is not a leaf",
    "partly": "nothing is wrong if this is meant; else use the tensor itself there",
    "replaced": "change the leaf in place under torch.no_grad(): `with torch.no_grad(): $it -= lr * $it.grad`",
    "no-path": "compute the loss from it; what does not enter the loss has no gradient",
    "never-ran": "call backward() on the loss, once, before looking at .grad",
    "returned": "use what torch.autograd.grad() returns, or call backward(), which fills .grad",
    "not-asked": "leave inputs= out, or name this tensor there too",
    "zeroed": "look at .grad, or let the optimizer step, before it is zeroed; zero it just before the next backward()",
    "accumulated": "call optimizer.zero_grad(), or set .grad = None, before each backward()",
    "not-optimised": "create the optimizer after the parameter, or call requires_grad_(False) on what is to stay fixed",
    "retain-graph": "leave retain_graph=True out; if backward then needs the graph of an earlier step, detach() what "
    "is carried from step to step",
    "history": "keep loss.item() or loss.detach(), not loss",
    "hook": "look at what the hook returns: it takes the place of the gradient",
    "dead-relu": "lower the learning rate, start the bias above zero, or use leaky_relu, gelu or softplus",
    "saturated": "scale the input down, or normalise it: far from zero this function is flat",
    "vanishing": "initialise larger, use relu-like activations, normalise, or add skip connections",
    "exploding": "clip the gradients (clip_grad_norm_), lower the learning rate, initialise smaller, or normalise",
    "diverged": "lower the learning rate, or clip the gradients (clip_grad_norm_)",
    "nan-forward": "keep the operand inside the domain: clamp it, add a small number, or use the stable form",
    "nan-backward": "keep the operand away from the point where the slope is infinite: clamp it, or add a small number",
    "overflow": "use bfloat16, which reaches as far as float32, or let torch.amp.GradScaler find a scale that fits",
    "nan-branch": "make the operand safe in the branch too: torch.where(c, f(torch.where(c, x, safe)), other); a "
    ".grad script needs no such care",
    "masked-row": "leave one entry of each row unmasked, or mask with torch.finfo(scores.dtype).min: a row masked "
    "throughout then has even weights",
    "nan-data": "clean the data first: torch.isfinite($it) shows which entries to drop",
    "changed-carried": "detach() what is carried from step to step, and leave out retain_graph=True: it keeps graphs "
    "whose weights have changed since",
    "changed-in-place": "write the change out of place (y = y + 1), or clone() the tensor before it is changed",
    "freed": "pass retain_graph=True to the first backward, add the losses and call backward once, or detach() what is "
    "carried over from an earlier step",
    "step-function": "use a smooth substitute (sigmoid, softmax), or a straight-through estimator: x + (round(x) - "
    "x).detach()",
    "flat": "nothing is wrong with the graph: here the slope itself is zero",
    "broadcast": "give both the same shape: .squeeze(1) on the column, or [:, None] on the other; nothing is wrong if "
    "all pairs are meant",
    "not-selected": "no entry of it was selected here; the gradient of what is not selected is zero",
    "times-zero": "the other factor is zero here, so the product does not depend on it",
    "unregistered": "use $use: a module does not find parameters in plain lists and dictionaries",
    "returned-none": "return a gradient for it from backward, at its place among forward's arguments",
    "stopped": "correct that line; the traceback is on standard error",
}


def kind_of(node: str) -> str:
    """The name of a node without its ending: `Relu` of `ReluBackward0`."""
    return node.partition("Backward")[0]


# how nodes of a kind are read: why one passes no gradient on although something arrived (a reason), and whether it
# spreads one gradient over entries, mixes entries by weights, branches, compares outputs with targets, or
# masks: an infinity comes in there on purpose
READINGS: dict[str, set[str]] = {
    word: set(kinds.split())
    for word, kinds in {
        "step-function": "Ceil Floor Round Sign Trunc",
        "dead-relu": "LeakyRelu Relu",
        "saturated": "Elu Erf Gelu LogSigmoid Sigmoid Softmax Softplus Tanh",
        "not-selected": "Amax Amin Clamp Index MaskedFill Max Maximum Min Minimum Select Slice Where",
        "times-zero": "Addmm Baddbmm Bmm Div Dot Mm Mul Mv",
        "spreads": "Expand Mean Permute Repeat Select Sum T Transpose Unsqueeze View",
        "mixes": "Addmm Baddbmm Bmm Convolution Mm Mv",
        "branches": "MaskedFill Where",
        "compares": "Expand MseLoss SmoothL1Loss Sub",
        "masks": "Add CopySlices Fill MaskedFill Where",
    }.items()
}


def reads(node: str, word: str) -> bool:
    """Whether a node is read so: it "spreads", "mixes", "masks" or "branches"."""
    return kind_of(node) in READINGS[word]


def flat_reason(node: str) -> str:
    """Why a node passes no gradient on although something arrived."""
    return next((word for word in READINGS if word in FIXES and reads(node, word)), "flat")


class End(NamedTuple):
    """Why a gradient does not pass a place."""

    reason: str
    line: Line | None
    what: str


def is_float(dtype: str) -> bool:
    """Whether tensors of a format can require grad."""
    return dtype.startswith(("float", "complex", "bfloat"))


def only_shows(line: Line | None) -> bool:
    """Whether a line only shows, stores or tests a number, judged by its first word."""
    if line is None:
        return False
    text = linecache.getline(line.file, line.number).strip()
    return text.startswith(("print", "assert", "if ", "while ", "log")) or ".append(" in text


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


class Story:
    """Questions about one record."""

    def __init__(self, watch: Watch, path: str) -> None:
        self.watch = watch
        self.path = filename_of(path)
        self.entries = watch.entries
        self._sent: dict[int, dict[tuple[str, int], list[tuple[Step, float]]]] = {}  # by the identity of a sweep

    # --- lines and names ------------------------------------------------------------------------------------------

    def at(self, line: Line | None) -> str:
        """A place as people read it: ``line 3: `x.detach()` ``."""
        if line is None:
            return "an unknown line"
        where = "" if line.file == self.path else f"{file_name(line.file)}, "
        where += f"line {line.number}"
        return f"{where}: `{line.text}`" if line.text else where

    def called(self, mark: int) -> str:
        """The name of a tensor, or the text that made it."""
        known = self.watch.subjects.get(mark)
        if known is not None and known.name:
            return known.name
        entry = self.entries[mark]
        return f"`{entry.line.text}`" if entry.line is not None and entry.line.text else "a tensor"

    def find(
        self, reason: str, subject: str | None, line: Line | None, message: str, evidence: Evidence | None = None
    ) -> Finding:
        """A finding with the fix for its reason."""
        return Finding(reason, subject, None if line is None else line.number, message, FIXES[reason], evidence)

    def none(self, reason: str, name: str, line: Line | None, why: str, evidence: Evidence | None = None) -> Finding:
        """A finding about a `.grad` that is None."""
        return self.find(reason, name, line, f"$it.grad is None: {why}", evidence)

    def timeline(self, mark: int) -> list[Event]:
        """What happened to a tensor and its `.grad`, in order."""
        return self._timelines.get(mark, [])

    @cached_property
    def _timelines(self) -> dict[int, list[Event]]:
        timelines: dict[int, list[Event]] = {}
        for event in self.watch.events:
            timelines.setdefault(event.mark, []).append(event)
        return timelines

    @cached_property
    def latest(self) -> dict[int, Subject]:
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
        users: dict[int, list[Entry]] = {}
        for entry in self.entries.values():
            if not entry.inside:
                for mark in entry.inputs:
                    users.setdefault(mark, []).append(entry)
        return users

    def roots(self, since: int = 0) -> set[int]:
        """The tensors that backward was, or could not be, called on."""
        roots = {mark for sweep in self.watch.sweeps[since:] for mark, _, _ in sweep.roots}
        return roots if self.watch.refusal is None else roots | {self.watch.refusal}

    def way_to_root(self, mark: int, since: int = 0) -> list[Entry]:
        """The entries on a shortest way from a value to a root, without the value itself; empty if there is none."""
        roots = self.roots(since)
        came: dict[int, tuple[int, Entry] | None] = {mark: None}
        waiting = deque([mark])
        while waiting:
            current = waiting.popleft()
            if current in roots and current != mark:
                way = []
                while (step := came[current]) is not None:
                    current = step[0]
                    way.append(step[1])
                return way[::-1]
            for entry in self.users.get(current, ()):
                if entry.mark not in came:
                    came[entry.mark] = (current, entry)
                    waiting.append(entry.mark)
        return []

    def end_at(self, entry: Entry) -> End | None:
        """Why no gradient passes an entry, or None where one does."""
        if entry.role == "cut":
            if not entry.wanted and not any(below in self._historic for below in entry.inputs):
                return None
            if entry.name in ("detach()", ".data"):
                return End("detached", entry.line, f"{entry.name} was taken")
            if entry.name == "torch.tensor()":
                return End("rewrapped", entry.line, "torch.tensor() copied the numbers and left the history behind")
            return End("as-number", entry.line, f"{entry.name} made a plain number or array of it")
        if entry.role != "operation" or entry.seq is not None:
            return None
        if not entry.wanted:
            return None
        if entry.mode == "inference":
            return End("inference", entry.line, "it was computed in inference_mode")
        if entry.mode == "no_grad":
            return End("no-grad", entry.line, "it was computed under no_grad")
        if not is_float(entry.dtype):
            return End("step-function", entry.line, f"the result is {entry.dtype}, a step function of its operand")
        return End("step-function", entry.line, "the operation has no derivative")

    def side_ends(self, mark: int) -> list[End]:
        """Where ways from a value to a root end, each place once: beside those on which a gradient came."""
        leading = set(walk(self.roots(), self.operands))  # what roots were made from

        def onward(value: int) -> list[int]:
            return [use.mark for use in self.users.get(value, ()) if use.mark in leading and self.end_at(use) is None]

        ends: dict[tuple[str, Line | None], End] = {}
        for value in walk([mark], onward):
            for entry in self.users.get(value, ()):
                end = self.end_at(entry) if entry.mark in leading else None
                if end is not None:
                    ends.setdefault((end.reason, end.line), end)
        return list(ends.values())

    def number_end(self, mark: int) -> End | None:
        """Where something made from a value left the graph, other than to be shown."""
        for value in walk([mark], lambda value: [use.mark for use in self.users.get(value, ())]):
            for end in map(self.end_at, self.users.get(value, ())):
                if end is not None and not only_shows(end.line):
                    return end
        return None

    def number_at(self, line: Line | None) -> End | None:
        """Where, in a line, a value with a history left the graph as a plain number."""
        for entry in reversed(self.entries.values()):
            if line is not None and entry.line is not None and entry.line.number == line.number:
                if entry.role == "cut" and any(below in self._historic for below in entry.inputs):
                    return self.end_at(entry)
        return None

    def left_before(self, mark: int) -> End | None:
        """Where something with a history last became a plain number before a value was made, other than to be shown."""
        for entry in reversed(self.entries.values()):
            if entry.mark < mark and entry.role == "cut" and entry.name in ("numpy()", "tolist()", "item()"):
                if any(below in self._historic for below in entry.inputs) and not only_shows(entry.line):
                    return self.end_at(entry)
        return None

    def end_above(self, mark: int) -> End | None:
        """Where the history of a value that requires no grad was lost."""
        for entry in map(self.entries.__getitem__, walk([mark], self.operands)):
            lost = self.end_at(entry)
            if lost is not None and any(below in self._historic for below in entry.inputs):
                return lost
        return None

    @cached_property
    def _historic(self) -> set[int]:
        """The values that require grad, or were made from one that does: an entry comes after its operands."""
        historic: set[int] = set()
        for entry in self.entries.values():
            above = any(below in historic and self.entries[below].role != "leaf" for below in entry.inputs)
            if entry.wanted or above or (entry.requires and not entry.inputs):
                historic.add(entry.mark)
        return historic

    def operands(self, mark: int) -> tuple[int, ...]:
        """What a value was made from at once."""
        return self.entries[mark].inputs

    def leaves_above(self, mark: int) -> list[int]:
        """The leaves that a value was made from."""
        return sorted(leaf for leaf in walk([mark], self.operands) if self.entries[leaf].role == "leaf")

    # --- backwards ----------------------------------------------------------------------------------------------

    @cached_property
    def arrivals(self) -> dict[int, list[tuple[Sweep, Reached]]]:
        """For each leaf the gradients that came to it, in order."""
        arrivals: dict[int, list[tuple[Sweep, Reached]]] = {}
        for sweep in self.watch.sweeps:
            for arrival in sweep.reached:
                arrivals.setdefault(arrival.leaf, []).append((sweep, arrival))
        return arrivals

    @cached_property
    def walked(self) -> dict[int | None, list[int]]:
        """For each node the backwards that went through it, by their position."""
        walked: dict[int | None, list[int]] = {}
        for at, sweep in enumerate(self.watch.sweeps):
            if sweep.accumulate:
                for seq in sweep.seqs:
                    walked.setdefault(seq, []).append(at)
        return walked

    @cached_property
    def zeroed(self) -> set[int]:
        """The tensors whose gradient was set to None or to zero at some time."""
        return {event.mark for event in self.watch.events if event.kind in ("dropped", "zeroed")}

    def senders(self, sweep: Sweep, target: tuple[str, int]) -> list[tuple[Step, float]]:
        """Which nodes sent something to a node or leaf, and the norms of it."""
        known = self._sent.get(id(sweep))
        if known is None:
            known = self._sent[id(sweep)] = {}
            for step in sweep.steps:
                for sent in step.sent:
                    known.setdefault(sent.to, []).append((step, sent.size.norm))
        return known.get(target, [])
