"""The graphs that a run built, as rows: operations, then each backward; and the one to look at, for a drawing."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import error, visible
from gradcli.base.results.graph_vertices import Graph, Vertex
from gradcli.recording.runs.source_lines import file_name, filename_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.recording.runs.run_record import Watch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry, FunctionRule


class Sent(NamedTuple):
    """What a node sent to one of its inputs, and how much of it the receiver holds then."""

    to: int | None
    value: Any
    norm: float


class RanNode(NamedTuple):
    """A node that ran in a backward."""

    number: int | None
    node: str
    arrived: Any
    norm: float
    sent: tuple[Sent, ...]
    line: int | None


class Added(NamedTuple):
    """A gradient that came to a leaf, its place in the count since the last zero, and `.grad` after it was added."""

    number: int
    name: str
    value: Any
    norm: float
    times: int
    total: Any = None


class Backward(NamedTuple):
    """One backward: its number from 1, where it was called, what ran, what was added up."""

    number: int
    line: int | None
    text: str
    retain: bool
    create: bool
    ran: tuple[RanNode, ...]
    added: tuple[Added, ...]


class Graphs(NamedTuple):
    """Everything that a run built, or of the backwards that `ran` a single one."""

    file: str
    forward: tuple[Vertex, ...]  # operations that left a node, and the leaves that they read
    backwards: tuple[Backward, ...]
    on: str = ""  # the PyTorch that built them; empty for our own tensors
    ran: int = 0

    def only(self, number: int) -> Graphs:
        """Backward `number`, the last for -1, and the operations that it went through, under their own numbers.

        Raises GradcliError (GC721) where fewer backwards ran.
        """
        if not 0 < number <= self.ran and not (number == -1 and self.ran):
            phrase = f"{self.ran} backward{'s' * (self.ran != 1)} ran"
            raise error("GC721", f"backward {abs(number)} does not exist: {phrase}" if self.ran else "no backward ran")
        back = self.backwards[number - 1 if number > 0 else -1]
        reached = beneath(self.forward, back)
        return self._replace(forward=tuple([step for step in self.forward if step.index in reached]), backwards=(back,))


def graphs_of(watch: Watch, path: str) -> Graphs:
    """The graphs of a run, numbered in the order in which they were built, a leaf before what first reads it."""
    built: dict[int, Entry] = {}
    for mark, entry in watch.entries.items():
        if entry.seq is None or entry.inside:
            continue
        for operand in map(watch.entries.__getitem__, entry.inputs):
            if operand.seq is None and operand.requires:
                built.setdefault(operand.mark, operand)
        built[mark] = entry
    order = list(built.values())
    index = {entry.mark: i for i, entry in enumerate(order)}
    results: dict[Any, list[int]] = {}  # of each node
    for entry in order:
        results.setdefault(entry.seq, []).append(index[entry.mark])
    names = {mark: subject.name for mark, subject in watch.subjects.items()}
    nodes = [_vertex_of(entry, index, names, path) for entry in order]
    for mark, rule in watch.rules.items():
        if mark in index:
            nodes[index[mark]] = replace(nodes[index[mark]], name=rule.name, note=_note(watch, rule, names, path))
    backwards = [_backward(number, sweep, index, results, names, nodes) for number, sweep in enumerate(watch.sweeps, 1)]
    return Graphs(path, tuple(nodes), tuple(backwards), ran=len(backwards))


def beneath(forward: Sequence[Vertex], back: Backward) -> set[int]:
    """The numbers of all that a backward reached: its nodes and the leaves that they read."""
    ran = {step.number for step in back.ran if step.number is not None}
    reached = {sent.to for step in back.ran for sent in step.sent if sent.to is not None}
    leaves = {vertex.index for vertex in forward if vertex.role == "leaf"}
    read = {number for vertex in forward if vertex.index in ran for number in vertex.inputs}
    return ran | reached | (leaves & read) | {added.number for added in back.added}


def _vertex_of(entry: Entry, index: dict[int, int], names: dict[int, str], path: str) -> Vertex:
    leaf = entry.seq is None  # also what was computed before requires_grad_() made it one
    line, label = None if leaf else entry.line, names.get(entry.mark, "")
    return Vertex(
        index[entry.mark],
        label or "leaf" if leaf else operation(entry.name),
        "AccumulateGrad" if leaf else entry.name,
        "leaf" if leaf else "operation",
        tuple([index[mark] for mark in entry.inputs if mark in index]),
        f"{entry.dtype}[{', '.join(map(str, entry.shape))}]" if entry.shape else entry.dtype,
        "" if line is None else line.text,
        line=None if line is None else line.number,
        file=elsewhere(line, path),
        value=entry.value,
        label=label,
        groups=entry.groups,
    )


def _note(watch: Watch, rule: FunctionRule, names: dict[int, str], path: str) -> str:
    """What a Function saved, by names or by the text that made it, and where its backward is."""
    parts = []
    for mark in rule.saved:
        line = None if mark is None else watch.entries[mark].line
        parts.append("its result" if mark is None else names.get(mark) or (line.text if line else "") or "a tensor")
    saved = ", ".join(parts) or "nothing"
    if rule.line is None:
        return f"saved {saved}"
    file = elsewhere(rule.line, path)
    return f"saved {saved}; backward in {f'{file}, ' if file else ''}line {rule.line.number}"


def _backward(
    number: int,
    sweep: Any,
    index: dict[int, int],
    results: dict[Any, list[int]],
    names: dict[int, str],
    nodes: Sequence[Vertex],
) -> Backward:
    ran = []
    for step in sweep.steps:
        *_, row = results.get(step.seq, [None])
        reads = [] if row is None else list(nodes[row].inputs)
        sent = []
        for contribution in step.sent:
            kind, key = contribution.to
            ends = [index.get(key)] if kind == "leaf" else results.get(key, [None])
            to = next((read for read in reads if read in ends), ends[-1])  # of several results the one that was read
            if to in reads:
                reads.remove(to)
            sent.append(Sent(to, contribution.value, contribution.size.norm))
        line = step.line.number if step.line else None
        ran.append(RanNode(row, step.name, step.arrived, step.norm, tuple(sent), line))
    added = [
        Added(index.get(grad.leaf, -1), names.get(grad.leaf, ""), grad.value, grad.norm, grad.added, grad.total)
        for grad in sweep.reached
    ]
    line, text = (sweep.line.number, sweep.line.text) if sweep.line else (None, "")
    return Backward(number, line, text, sweep.retain, sweep.create, tuple(ran), tuple(added))


def elsewhere(line: SourceLine | None, path: str) -> str:
    """The name of a line's file where that is not the one that was run."""
    if line is None or filename_of(path) == line.file:
        return ""
    return file_name(line.file)


def drawing(graphs: Graphs, lines: Sequence[str]) -> Graph:
    """The graph with the values of the forward pass and what the last backward sent along it.

    `lines` are those of the file. Raises GradcliError (GC721) where the file built no graph.
    """
    if not graphs.forward:
        hint = "an operation leaves a node where one of its operands requires a gradient"
        raise error("GC721", f"{visible(graphs.file, 200)} built no graph", help=hint)
    back = graphs.backwards[-1] if graphs.backwards else None
    reached = None if back is None else beneath(graphs.forward, back)
    kept = [step for step in graphs.forward if reached is None or step.index in reached]
    index = {step.index: place for place, step in enumerate(kept)}
    sent, cotangents = returned(back, {step.index: step for step in kept})
    vertices = tuple(vertex(step, index, sent, cotangents) for step in kept)
    read = {place for step in vertices for place in step.inputs}
    ends = tuple(step.index for step in vertices if step.index not in read)
    name = os.path.basename(graphs.file)
    title = name if back is None or not back.text else f"{name}: {back.text}"
    title += f", on {graphs.on}" if graphs.on else ""
    return Graph(title, {}, vertices, ends, {}, tuple(lines))


def returned(back: Backward | None, nodes: Mapping[int, Vertex]) -> tuple[dict[tuple[int, int], Any], dict[int, Any]]:
    """What each node sent to each of its inputs (number of the node, position), and what arrived at each."""
    sent: dict[tuple[int, int], Any] = {}
    arrived: dict[int, Any] = {}
    for step in back.ran if back is not None else ():
        number = step.number
        if number is None or number not in nodes:
            continue
        arrived[number] = step.arrived
        free = list(enumerate(nodes[number].inputs))
        for contribution in step.sent:
            place = next((place for place, read in free if read == contribution.to), None)
            if place is not None and contribution.to is not None:
                free = [(at, read) for at, read in free if at != place]
                sent[number, place] = contribution.value
    for added in back.added if back is not None else ():
        arrived[added.number] = added.value
    return sent, arrived


def vertex(
    step: Vertex, index: Mapping[int, int], sent: Mapping[tuple[int, int], Any], arrived: Mapping[int, Any]
) -> Vertex:
    """An operation or a leaf as a picture shows it, with what went back through it."""
    leaf = step.role == "leaf"
    places = [(at, index[read]) for at, read in enumerate(step.inputs) if read in index]
    return replace(
        step,
        index=index[step.index],
        inputs=tuple([place for _, place in places]),
        text=step.name if leaf else step.text or step.torch,
        cotangent=arrived.get(step.index),
        sent=tuple([sent.get((step.index, at)) for at, _ in places]),
        label="" if leaf else step.label,
    )


def operation(node: str) -> str:
    """The operation of a node of PyTorch's name: `MulBackward0` is `mul`, `LogSoftmaxBackward0` is `log_softmax`."""
    plain = re.sub(r"Backward\d*$", "", node)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()
