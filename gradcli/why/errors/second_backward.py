"""A backward that needs what an earlier one has freed: the same loss again, a shared part, or what is carried on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gradcli.base.results.findings import Saved
from gradcli.recording.runs.source_tree import LOOPS, dotted
from gradcli.why import edits
from gradcli.why.gradients.missing import assigned_name
from gradcli.why.story import walk

if TYPE_CHECKING:
    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.source_tree import SourceTree
    from gradcli.recording.runs.tensors import BackwardRecord, Entry
    from gradcli.why.story import Story


class Boundary(NamedTuple):
    """A value from which the part of the graph begins that an earlier backward walked; where it is read again."""

    entry: Entry
    reader: Entry


def boundary(story: Story, seq: int, walked: BackwardRecord | None) -> Boundary | None:
    """Where what was computed for this backward reads what the earlier one had gone through."""
    roots = story.watch.sweeps[-1].roots if story.watch.sweeps else []
    seqs = walked.seqs if walked is not None else set()
    for mark in walk([root for root, _, _ in roots], story.operands):
        entry = story.entries[mark]
        if entry.seq in seqs:
            continue
        for below in entry.inputs:
            if story.entries[below].seq in seqs:
                return Boundary(story.entries[below], entry)
    node = story.result(seq)
    return None if node is None else Boundary(node, node)


def freed(story: Story) -> Finding:
    """An earlier backward has freed what this one needs."""
    assert story.watch.stop is not None
    _, name, seq, line, _ = story.watch.stop
    sweeps, last = story.watch.sweeps, story.watch.last
    earlier = next((sweep for sweep in reversed(sweeps[:-1]) if seq in sweep.seqs), None)
    evidence = Saved(name, None if line is None else line.number)
    node = story.result(seq)
    message = f"backward stopped at {story.at(last)}: an earlier backward had freed what "
    message += f"{story.doing(node, name, line)} saved"
    if earlier is None or not sweeps:
        return story.find("freed", None, last, message, evidence)
    derivative = derivative_in(story, earlier)
    if derivative is not None:
        message += (
            f"; the derivative at {story.at(derivative.line)} freed it, and without create_graph=True is a constant"
        )
        patch = edits.keyword_patch(story, derivative.line, "grad", "create_graph", "True")
        return story.find("no-create-graph", None, derivative.line, message, evidence, patches=(patch,))
    shared = boundary(story, seq, earlier)
    same_root = {mark for mark, _, _ in earlier.roots} & {mark for mark, _, _ in sweeps[-1].roots}
    if same_root:
        root = story.entries[min(same_root)]
        shared = Boundary(root, root)
    if shared is not None:
        looped = once_or_carried(story, shared, earlier, message, evidence)
        if looped is not None:
            return looped
        other = None if same_root else trains_other(story, shared, earlier)
        if other is not None:
            message += f": both losses go through {story.called(shared.entry.mark)}"
            return story.find("shared-part", None, last, message, evidence, fix=other.text, patches=other.patches)
    fix = f"pass retain_graph=True to the backward at {story.place(earlier.line)}"
    fix += "" if same_root else ", or add the losses and call backward once"
    patch = edits.keyword_patch(story, earlier.line, "backward", "retain_graph", "True")
    return story.find("freed", None, last, message, evidence, fix=fix, patches=(patch,))


def derivative_in(story: Story, earlier: BackwardRecord) -> Entry | None:
    """What an earlier torch.autograd.grad() gave, where the loss of the last backward was made from it."""
    above = [
        story.entries[mark] for mark in walk([root for root, _, _ in story.watch.sweeps[-1].roots], story.operands)
    ]
    derivatives = [e for e in above if e.role == "cut" and e.name == "torch.autograd.grad()" and e.line == earlier.line]
    return None if earlier.create or earlier.accumulate or not derivatives else derivatives[0]


def once_or_carried(
    story: Story, shared: Boundary, earlier: BackwardRecord, message: str, evidence: Saved
) -> Finding | None:
    """A part of the graph that was made before the loop, or in an earlier iteration of it."""
    last, entry = story.watch.last, shared.entry
    turned = any(sweep.line == last and sweep.time > entry.mark for sweep in story.watch.sweeps[:-1])
    if last is None or not turned:
        return None
    name = story.called(entry.mark)
    tree = story.tree(last.file)
    loop = calling_loop(tree, last)
    if loop is None:
        return None
    place = made_in(story, entry, last, loop)
    if place is not None and tree.scope(place) is tree.scope(loop) and not tree.within(place.lineno, loop):
        where = f"line {place.lineno}: `{' '.join(tree.source(place).split())}`"
        what = f"{message}; {name} is computed once, before the loop of line {loop.lineno}, at {where}"
        fix = f"move `{' '.join(tree.source(place).split())}` inside the loop: it is then computed anew in each step"
        line = last._replace(number=place.lineno, text="", span=None)
        return story.find("computed-once", None, line, what, evidence, fix=fix, patches=(into_loop(tree, place, loop),))
    variable = assigned_name(story, entry) or carried_part(story, shared) or name
    what = f"{message} in an earlier iteration of the loop; {variable} of {story.at(entry.line)} carries its history on"
    fix, patch = carried(story, shared, variable, loop)
    return story.find("carried-state", None, last, what, evidence, fix=fix, patches=(patch,))


def carried_part(story: Story, shared: Boundary) -> str:
    """Which of several names that one statement assigns is read again."""
    statement, reader = story.statement(shared.entry.line), story.statement(shared.reader.line)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple) or reader is None:
        return ""
    read = {dotted(node) for node in ast.walk(reader) if isinstance(getattr(node, "ctx", None), ast.Load)}
    return next((name for name in map(dotted, statement.targets[0].elts) if name and name in read), "")


def carried(story: Story, shared: Boundary, name: str, loop: ast.stmt) -> tuple[str, Patch | None]:
    """The detach() of what is carried between iterations: at the beginning of one, or where it is read again."""
    layer, place = shared.entry.layer, shared.entry.line
    pair = layer is not None and layer.kind == "LSTM" and name == carried_part(story, shared)
    value = f"tuple(x.detach() for x in {name})" if pair else f"{name}.detach()"
    fix = f"detach what is carried over: `{name} = {value}` before it is used again"
    statement = story.statement(place)
    if "." in name and place is not None and statement is not None and name == carried_part(story, shared):
        text = f"{name} = None if {name} is None else {value}"
        return fix, story.tree(place.file).patch(story.tree(place.file).inserted(statement, text))
    tree = next((t for t in map(story.tree, story.files()) if any(node is loop for node in ast.walk(t.root))), None)
    if tree is None or not isinstance(loop, (ast.For, ast.While)):
        return fix, None
    if name.isidentifier() and tree.assignments(name, tree.scope(loop)):
        first = tree.assignments(name, tree.scope(loop))[0]
        ready = not tree.within(first.lineno, loop) and not isinstance(getattr(first, "value", None), ast.Constant)
        text = f"{name} = {value}"
        return fix, tree.patch(tree.inserted(loop.body[0] if ready else loop.body[-1], text, after=not ready))
    line = shared.reader.line
    statement, own = story.statement(line), None if line is None else story.tree(line.file)
    if statement is None or own is None:
        return fix, None
    reads, text = own.reads(statement, name), f"{name}.detach()"
    return f"detach what is carried over: `{text}` where it is read again", own.patch(
        *[own.replaced(node, text) for node in reads]
    ) if reads else None


def calling_loop(tree: SourceTree, last: SourceLine) -> ast.stmt | None:
    """The loop around a line, or around the only call of the function that it stands in."""
    loop, statement = tree.loop(last), tree.statement(last)
    function = None if statement is None else tree.scope(statement)
    if loop is not None or not isinstance(function, ast.FunctionDef):
        return loop
    kind = ast.Attribute if isinstance(tree.scope(function), ast.ClassDef) else ast.Name
    calls = [call for call in tree.calls(function.name) if isinstance(call.func, kind)]
    innermost = [next(tree.around(call, *LOOPS), None) for call in calls if not tree.within(call.lineno, function)]
    return innermost[0] if len(set(innermost)) == 1 else None


def made_in(story: Story, entry: Entry, last: SourceLine, loop: ast.stmt) -> ast.stmt | None:
    """The statement beside a line or its loop that made a value: by the value's name, else by its own line."""
    tree = story.tree(last.file)
    stopped = tree.statement(last)
    if stopped is None:
        return None
    scopes = [tree.scope(stopped), tree.scope(loop)]
    if entry.line is not None and entry.line.file == last.file:
        statement = tree.statement(entry.line)
        if statement is not None and any(tree.scope(statement) is scope for scope in scopes):
            return statement
    known = story.watch.subjects.get(entry.mark)
    name = known.name.partition("[")[0] if known is not None else ""
    assigned = [each for scope in scopes if name for each in tree.assignments(name, scope)]
    return assigned[-1] if assigned else None


def into_loop(tree: SourceTree, statement: ast.stmt, loop: ast.stmt) -> Patch | None:
    """A patch that moves a statement to the beginning of a loop."""
    if not isinstance(loop, (ast.For, ast.While)):
        return None
    return tree.patch(tree.removed(statement), tree.inserted(loop.body[0], tree.source(statement)))


def trains_other(story: Story, shared: Boundary, earlier: BackwardRecord) -> edits.Fix | None:
    """The detach() for a loss whose optimizer does not move what is behind the shared value."""
    name, first = story.called(shared.entry.mark), earlier
    behind = set(story.leaves_above(shared.entry.mark))
    steps = [
        (o, u) for o, u in story.updates() if u.time > first.time and u.sweeps == story.watch.sweeps.index(first) + 1
    ]
    if not steps or any(behind & set(optimizer.held) for optimizer, _ in steps) or not behind & story.held:
        return None
    leading = set(walk([root for root, _, _ in first.roots], story.operands))
    reader = next(
        (use for use in story.users.get(shared.entry.mark, ()) if use.mark in leading and use.mark < first.time), None
    )
    line = None if reader is None else reader.line
    text = f"use `{name}.detach()` for the loss of {story.place(first.line)}, which does not train what made `{name}`"
    if line is None or not name.isidentifier():
        return edits.Fix(text)
    tree, statement = story.tree(line.file), story.statement(line)
    uses = [] if statement is None else tree.reads(statement, name)
    patch = tree.patch(*[tree.replaced(use, f"{name}.detach()") for use in uses]) if uses else None
    return edits.Fix(f"{text} (line {line.number})", (patch,))
