"""Graphs that are kept without need: retain_graph in a loop, lists of losses, outputs that no backward walks."""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Histories, Retained
from gradcli.why import edits
from gradcli.why.story import grouped, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_tree import SourceTree
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import Story

LOOP = 3  # backwards at one line that make a loop
OUTPUTS = 5  # graphs that no backward walks and a name keeps


def retained(story: Story) -> Iterator[tuple[None, Finding]]:
    """retain_graph=True in a loop, where nothing needs the graph again, or where it grows."""
    retaining = (each for each in story.watch.sweeps if each.retain and each.accumulate and not each.create)
    groups = grouped((sweep.line, sweep) for sweep in retaining)
    for line, sweeps in groups.items():
        sizes = [len(sweep.seqs) for sweep in sweeps]
        roots = {tuple(sweep.roots) for sweep in sweeps}
        if len(sweeps) < LOOP or len(roots) < LOOP:
            continue
        if all(before < after for before, after in pairwise(sizes)):
            message = f"the graph that backward walks grows from {sizes[0]} to {sizes[-1]} nodes"
        elif not any(story.watch.sweeps[story.walked[seq][-1]] is not s for s in sweeps for seq in s.seqs):
            message = "no later backward uses the graphs that it keeps"
        else:
            continue
        message = f"a loop passes retain_graph=True {len(sweeps)} times at {story.at(line)}: {message}, so memory grows"
        patch = edits.keyword_patch(story, line, "backward", "retain_graph", "False")
        evidence = Retained(times=len(sweeps), nodes=(sizes[0], sizes[-1]))
        yield None, story.find("retain-graph", None, line, message, evidence, patches=(patch,))


def histories(story: Story) -> Iterator[tuple[None, Finding]]:
    """Names that hold the graphs of several losses, or outputs whose graphs no backward walks."""
    roots = {mark for sweep in story.watch.sweeps if sweep.accumulate for mark, _, _ in sweep.roots}
    used = {mark for mark, uses in story.users.items() if any(use.role == "operation" for use in uses)}
    for name, holding in story.watch.holders.items():
        marks = set(holding)
        held = {mark for mark in ancestors(story, marks) if mark in roots}
        held = held or {mark for mark in marks if not story.entries[mark].shape and mark not in used}
        walked = {at for mark in marks for at in story.walked.get(story.entries[mark].seq, ())[:1]}
        graphs = len(held) if len(held) >= LOOP else len(walked)
        line = story.entries[max(marks)].line
        nodes = sum(1 for _ in ancestors(story, marks))
        if graphs >= LOOP:
            what = f"losses alive ({nodes} operations)" if graphs == len(held) else "backwards alive"
            kind, message = "history", f"$it keeps the graphs of {graphs} {what}"
        elif len(marks) == 1 and (carried := chain(story, max(marks))):
            message = f"$it keeps the graph of all {len(carried)} steps alive ({nodes} operations): each value is "
            message += f"made from the one before at {story.at(line)}, and no backward walks it"
            statement, tree, evidence, last = (
                story.statement(line),
                story.tree(line),
                Histories(len(carried), nodes),
                None,
            )
            if isinstance(statement, ast.Assign) and name.isidentifier():
                last = tree.patch(tree.inserted(statement, f"{name} = {name}.detach()", after=True))
            yield None, story.find("unused-graphs", name, line, message, evidence, patches=(last,))
            continue
        elif idle(story, marks):
            kind, graphs = "unused-graphs", len(marks)
            message = f"$it keeps {graphs} results and their graphs alive ({nodes} operations): no backward walks these"
        else:
            continue
        patch = detached(story, name, {story.called(mark) for mark in marks})
        message += f"; the newest was made at {story.at(line)}"
        if patch is not None and (line is None or patch.edits[0].first != line.number):
            message += f", and kept at line {patch.edits[0].first}"
        yield None, story.find(kind, name, line, message, Histories(graphs, nodes), patches=(patch,))


def chain(story: Story, mark: int) -> list[Entry]:
    """The values of one line, each made from the one before across several backwards, that end at a value."""
    entry = story.entries[mark]
    before = map(story.entries.__getitem__, ancestors(story, {mark}))
    same = [e for e in before if e.line == entry.line and e.name == entry.name]
    trained = len({e.sweeps for e in same}) >= OUTPUTS
    return same if trained and mark not in story.leading() and entry.seq not in story.walked else []


def idle(story: Story, marks: set[int]) -> bool:
    """Whether a name keeps many graphs of one line, each with nodes of its own, that no backward walks."""
    entries = [story.entries[mark] for mark in marks]
    lines = {entry.line for entry in entries}
    if len(marks) < OUTPUTS or len(lines) != 1 or any(mark in story.leading() for mark in marks):
        return False
    sets = [set(ancestors(story, {entry.mark})) for entry in entries]
    pairs = zip(entries, sets, strict=True)
    inside = any(entry.mark in others for entry, own in pairs for others in sets if others is not own)
    return not inside and not set.intersection(*sets)


def detached(story: Story, name: str, kept: set[str]) -> Patch | None:
    """A patch that detaches what is appended to a list, alone or beside others, or added to a total."""
    for file in sorted(story.files()):
        tree = story.tree(file)
        for call in tree.calls("append"):
            if isinstance(call.func, ast.Attribute) and names(tree, call.func.value, name) and len(call.args) == 1:
                item, text = call.args[0], tree.source(call.func.value)
                wanted: list[ast.expr] = [item]
                if isinstance(item, (ast.Tuple, ast.Dict)) or "[" in text:
                    wanted = [part for part in ast.walk(item) if isinstance(part, ast.Name) and part.id in kept]
                if wanted:
                    return tree.patch(*[tree.replaced(p, f"{tree.bracketed(p)}.detach()") for p in wanted])
        for statement in ast.walk(tree.root):
            if isinstance(statement, ast.AugAssign) and names(tree, statement.target, name):
                return tree.patch(tree.replaced(statement.value, f"{tree.bracketed(statement.value)}.detach()"))
    return None


def names(tree: SourceTree, node: ast.expr, name: str) -> bool:
    """Whether an expression has a name, or is the attribute of `self` that the name ends in."""
    return tree.source(node).partition("[")[0] in (name, f"self.{name.rpartition('.')[2]}" if "." in name else name)


def ancestors(story: Story, marks: set[int]) -> Iterator[int]:
    """The values with a node that some values were made from, and these themselves."""

    def onward(mark: int) -> tuple[int, ...]:
        return () if story.entries[mark].seq is None else story.entries[mark].inputs

    return (mark for mark in walk(marks, onward) if story.entries[mark].seq is not None)
