"""The record of a run goes in, the graphs that it built come out: operations, then each backward, as rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.eager.running.places import filename_of

if TYPE_CHECKING:
    from gradcli.eager.running.entries import Entry, Rule
    from gradcli.eager.running.places import Line
    from gradcli.eager.running.watch import Watch


class Made(NamedTuple):
    """An operation that left a node, or a leaf that such an operation read."""

    number: int
    node: str
    reads: tuple[int, ...]
    value: Any
    type: str
    name: str
    line: int | None
    text: str
    file: str
    rule: str = ""  # the name of the Function that made it
    note: str = ""  # what that saved, and where its backward is


class Sent(NamedTuple):
    """What a node sent to one of its inputs, and how much of it the receiver holds then."""

    to: int | None
    value: Any
    norm: float


class Ran(NamedTuple):
    """A node that ran in a backward."""

    number: int | None
    node: str
    arrived: Any
    norm: float
    sent: tuple[Sent, ...]
    line: int | None


class Added(NamedTuple):
    """A gradient that came to a leaf: its place in the count since the last zero."""

    number: int
    name: str
    value: Any
    norm: float
    times: int


class Backward(NamedTuple):
    """One backward: where it was called, what ran, what was added up."""

    line: int | None
    text: str
    retain: bool
    create: bool
    ran: tuple[Ran, ...]
    added: tuple[Added, ...]


class Graphs(NamedTuple):
    """Everything that a run built."""

    file: str
    forward: tuple[Made, ...]
    backwards: tuple[Backward, ...]
    on: str = ""  # the PyTorch that built them; empty for our own tensors


def graphs_of(watch: Watch, path: str) -> Graphs:
    """The graphs of a run, numbered in the order in which they were built."""
    shown = {mark: entry for mark, entry in watch.entries.items() if entry.seq is not None}
    shown = {mark: entry for mark, entry in shown.items() if not entry.inside}
    leaves = {
        mark: watch.entries[mark]
        for entry in shown.values()
        for mark in entry.inputs
        if watch.entries[mark].seq is None and watch.entries[mark].requires
    }
    order = sorted([*leaves.values(), *shown.values()], key=lambda entry: entry.mark)
    index = {entry.mark: i for i, entry in enumerate(order)}
    by_seq = {entry.seq: index[entry.mark] for entry in order if entry.seq is not None}
    names = {mark: subject.name for mark, subject in watch.subjects.items()}
    made = [_made(entry, index, names, path) for entry in order]
    for mark, rule in watch.rules.items():
        if mark in index:
            made[index[mark]] = made[index[mark]]._replace(rule=rule.name, note=_note(watch, rule, names, path))
    return Graphs(path, tuple(made), tuple([_backward(one, index, by_seq, names) for one in watch.sweeps]))


def _made(entry: Entry, index: dict[int, int], names: dict[int, str], path: str) -> Made:
    leaf = entry.seq is None  # also what was computed before requires_grad_() made it one
    line = None if leaf else entry.line
    return Made(
        index[entry.mark],
        "leaf" if leaf else entry.name,
        tuple([index[mark] for mark in entry.inputs if mark in index]),
        entry.value,
        type_text(entry.dtype, entry.shape),
        names.get(entry.mark, ""),
        None if line is None else line.number,
        "" if line is None else line.text,
        elsewhere(line, path),
    )


def _note(watch: Watch, rule: Rule, names: dict[int, str], path: str) -> str:
    """What a Function saved, by names or by the text that made it, and where its backward is."""
    told = []
    for mark in rule.saved:
        line = None if mark is None else watch.entries[mark].line
        told.append("its result" if mark is None else names.get(mark) or (line.text if line else "") or "a tensor")
    saved = ", ".join(told) or "nothing"
    if rule.line is None:
        return f"saved {saved}"
    file = elsewhere(rule.line, path)
    return f"saved {saved}; backward in {f'{file}, ' if file else ''}line {rule.line.number}"


def _backward(sweep: Any, index: dict[int, int], by_seq: dict[Any, int], names: dict[int, str]) -> Backward:
    ran = []
    for step in sweep.steps:
        sent = []
        for one in step.sent:
            kind, key = one.to
            to = index.get(key) if kind == "leaf" else by_seq.get(key)
            sent.append(Sent(to, one.value, one.size.norm))
        line = step.line.number if step.line else None
        ran.append(Ran(by_seq.get(step.seq), step.name, step.arrived, step.norm, tuple(sent), line))
    added = [
        Added(index.get(one.leaf, -1), names.get(one.leaf, ""), one.value, one.norm, one.added) for one in sweep.reached
    ]
    line, text = (sweep.line.number, sweep.line.text) if sweep.line else (None, "")
    return Backward(line, text, sweep.retain, sweep.create, tuple(ran), tuple(added))


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """A format and a shape: `float32[3, 4]`."""
    return f"{dtype}[{', '.join(map(str, shape))}]" if shape else dtype


def elsewhere(line: Line | None, path: str) -> str:
    """The name of a line's file where that is not the one that was run."""
    if line is None or filename_of(path) == line.file:
        return ""
    return os.path.basename(line.file)
