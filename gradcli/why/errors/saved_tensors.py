"""A backward that cannot have what its nodes saved: it was changed in place since, or an earlier backward freed it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Saved
from gradcli.recording.runs.source_tree import called, dotted, target_of
from gradcli.why import edits
from gradcli.why.gradients.missing import assigned_name
from gradcli.why.story import walk

if TYPE_CHECKING:
    from gradcli.base.results.findings import Edit, Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Entry
    from gradcli.why.story import Story


def cloned_read(story: Story, line: SourceLine | None, writer: SourceLine | None) -> list[Edit]:
    """Edits that clone what was saved where it is read, if that is a part of what is written to later."""
    node, statement, tree = story.node(line), story.statement(writer), story.tree(line)
    target = None if statement is None else target_of(statement)
    if node is None or not isinstance(target, ast.Subscript):
        return []
    parts = [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and n is not target]
    reads = [n for n in parts if dotted(n) == dotted(target)]
    return [tree.replaced(n, f"{tree.source(n)}.clone()") for n in reads]


def changed(story: Story) -> Finding:
    """What a node had saved was changed in place."""
    assert story.watch.stop is not None
    _, name, seq, line, writer = story.watch.stop
    evidence = Saved(name, None if line is None else line.number)
    node = story.result(seq)
    lost = f"what {story.doing(node, name, line)} had saved"
    created = -1 if node is None else node.mark
    sweeps, last = story.watch.sweeps, story.watch.last
    step = next((u for _, u in story.updates() if u.line == writer and u.time > created), None)
    if step is not None:
        again = any(sweep.line == last and sweep.time > created for sweep in sweeps[:-1])
        moved = [story.called(mark) for mark in step.moved if story.is_named(mark)]
        names = f" ({', '.join(moved[:3])}{', ...' if len(moved) > 3 else ''})" if moved else ""
        if again:
            message = f"backward stopped: the step at {story.at(writer)} changed in place {lost} in an earlier step, "
            message += "whose graph is walked again"
            return story.find("changed-carried", None, writer, message, evidence)
        message = f"backward stopped: {story.at(writer)} changed the weights{names} in place, {lost}, before "
        message += f"{story.at(last)}"
        fix = f"compute anew after the step what the loss of {story.place(last)} needs, or call step() after both "
        fix += "backwards"
        patch = edits.moved(story, writer, last)
        return story.find("changed-by-step", None, writer, message, evidence, fix=fix, patches=(patch,))
    message = f"backward stopped: {story.at(writer)} changed in place {lost}"
    copied = cloned_read(story, line, writer)
    cure = out_of_place(story, writer)
    if copied and cure.patches[0] is not None:
        text = f"save a copy: `{copied[0].text}` at {story.place(line)}, or collect the rows in a list and stack them"
        tree = story.tree(cure.patches[0].file)
        loop = None if writer is None else tree.loop(writer)
        first = [tree.inserted(loop, edit.text.strip()) for edit in cure.patches[0].edits] if loop is not None else []
        patches = [tree.patch(*edits) for edits in (copied, [*first, *copied])]
        return story.find("changed-in-place", None, writer, message, evidence, fix=text, patches=patches)
    return story.find("changed-in-place", None, writer, message, evidence, fix=cure.text, patches=cure.patches)


def out_of_place(story: Story, line: SourceLine | None) -> edits.Fix:
    """The change of a line written out of place."""
    statement, tree = story.statement(line), story.tree(line)
    if statement is None:
        return edits.Fix()
    target_node = target_of(statement)
    if isinstance(target_node, ast.Subscript):
        whole = tree.source(target_node.value)
        text = f"{whole} = {whole}.clone()"
        return edits.Fix(f"change a copy: `{text}` first", (tree.patch(tree.inserted(statement, text)),))
    operators = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
    if isinstance(statement, ast.AugAssign) and type(statement.op) in operators:
        target, value = tree.source(statement.target), tree.bracketed(statement.value)
        text = f"{target} = {target} {operators[type(statement.op)]} {value}"
        return edits.Fix(f"write the change out of place: `{text}`", (tree.patch(tree.replaced(statement, text)),))
    nodes = (story.node(line), statement.value if isinstance(statement, ast.Expr) else None)
    call = next((node for node in nodes if isinstance(node, ast.Call)), None)
    if call is not None:
        flag = next((k for k in call.keywords if k.arg == "inplace"), None)
        if flag is not None:
            return edits.Fix("leave inplace=True out", (tree.patch(tree.replaced(flag.value, "False")),))
        name = called(call)
        if name.endswith("_") and isinstance(call.func, ast.Attribute):
            whole = tree.source(call.func.value)
            arguments = tree.source(call)[len(tree.source(call.func)) :]
            text = f"{whole}.{name.rstrip('_')}{arguments}"
            place: ast.stmt | ast.expr = call
            if isinstance(statement, ast.Expr) and statement.value is call:
                place, text = statement, f"{whole} = {text}"
            return edits.Fix(f"write the change out of place: `{text}`", (tree.patch(tree.replaced(place, text)),))
        for layer in tree.calls("ReLU", "LeakyReLU", "Dropout", "ELU", "SiLU", "ReLU6", "Hardtanh", "Threshold"):
            flag = next((k for k in layer.keywords if k.arg == "inplace"), None)
            if flag is not None:
                patch = tree.patch(tree.replaced(flag.value, "False"))
                return edits.Fix(f"leave inplace=True out at line {layer.lineno}", (patch,))
    return edits.Fix()


def boundary(story: Story, seq: int, walked: BackwardRecord | None) -> tuple[Entry, Entry] | None:
    """The value from which the part begins that an earlier backward walked, and where this one's part reads it."""
    roots = story.watch.sweeps[-1].roots if story.watch.sweeps else []
    seqs = walked.seqs if walked is not None else set()
    for mark in walk([root for root, _, _ in roots], story.operands):
        entry = story.entries[mark]
        if entry.seq in seqs:
            continue
        for below in entry.inputs:
            if story.entries[below].seq in seqs:
                return (story.entries[below], entry)
    node = story.result(seq)
    return None if node is None else (node, node)


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
    above = map(story.entries.__getitem__, walk([root for root, _, _ in sweeps[-1].roots], story.operands))
    cuts = (e for e in above if e.role == "cut" and e.name == "torch.autograd.grad()" and e.line == earlier.line)
    derivative = next(cuts, None)
    if derivative is not None and not (earlier.create or earlier.accumulate):
        message += f"; the derivative at {story.at(derivative.line)} freed it, and is a constant without create_graph"
        patch = edits.keyword_patch(story, derivative.line, "grad", "create_graph", "True")
        return story.find("no-create-graph", None, derivative.line, message, evidence, patches=(patch,))
    shared = boundary(story, seq, earlier)
    same_root = {mark for mark, _, _ in earlier.roots} & {mark for mark, _, _ in sweeps[-1].roots}
    shared = (story.entries[min(same_root)],) * 2 if same_root else shared
    if shared is not None:
        looped = once_or_carried(story, shared, earlier, message, evidence)
        if looped is not None:
            return looped
        other = None if same_root else trains_other(story, shared, earlier)
        if other is not None:
            message += f": both losses go through {story.called(shared[0].mark)}"
            return story.find("shared-part", None, last, message, evidence, fix=other.text, patches=other.patches)
    fix = f"pass retain_graph=True to the backward at {story.place(earlier.line)}"
    fix += "" if same_root else ", or add the losses and call backward once"
    patch = edits.keyword_patch(story, earlier.line, "backward", "retain_graph", "True")
    return story.find("freed", None, last, message, evidence, fix=fix, patches=(patch,))


def once_or_carried(
    story: Story, shared: tuple[Entry, Entry], earlier: BackwardRecord, message: str, evidence: Saved
) -> Finding | None:
    """A part of the graph that was made before the loop, or in an earlier iteration of it."""
    last, entry = story.watch.last, shared[0]
    turned = any(sweep.line == last and sweep.time > entry.mark for sweep in story.watch.sweeps[:-1])
    if last is None or not turned:
        return None
    name = story.called(entry.mark)
    tree = story.tree(last.file)
    loop = tree.calling_loop(last)
    if loop is None:
        return None
    place = made_in(story, entry, last, loop)
    if place is not None and tree.scope(place) is tree.scope(loop) and not tree.within(place.lineno, loop):
        where = f"line {place.lineno}: `{' '.join(tree.source(place).split())}`"
        what = f"{message}; {name} is computed once, before the loop of line {loop.lineno}, at {where}"
        fix = f"move `{' '.join(tree.source(place).split())}` inside the loop: it is then computed anew in each step"
        line, patch = last._replace(number=place.lineno, text="", span=None), None
        if isinstance(loop, (ast.For, ast.While)):
            patch = tree.patch(tree.removed(place), tree.inserted(loop.body[0], tree.source(place)))
        return story.find("computed-once", None, line, what, evidence, fix=fix, patches=(patch,))
    variable = assigned_name(story, entry) or carried_part(story, shared) or name
    what = f"{message} in an earlier iteration of the loop; {variable} of {story.at(entry.line)} carries its history on"
    fix, patch = carried(story, shared, variable, loop)
    return story.find("carried-state", None, last, what, evidence, fix=fix, patches=(patch,))


def carried_part(story: Story, shared: tuple[Entry, Entry]) -> str:
    """Which of several names that one statement assigns is read again."""
    statement, reader = story.statement(shared[0].line), story.statement(shared[1].line)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple) or reader is None:
        return ""
    read = {dotted(node) for node in ast.walk(reader) if isinstance(getattr(node, "ctx", None), ast.Load)}
    return next((name for name in map(dotted, statement.targets[0].elts) if name and name in read), "")


def carried(story: Story, shared: tuple[Entry, Entry], name: str, loop: ast.stmt) -> tuple[str, Patch | None]:
    """The detach() of what is carried between iterations: at the beginning of one, or where it is read again."""
    layer, place = shared[0].layer, shared[0].line
    pair = layer is not None and layer.kind == "LSTM" and name == carried_part(story, shared)
    value = f"tuple(x.detach() for x in {name})" if pair else f"{name}.detach()"
    fix = f"detach what is carried over: `{name} = {value}` before it is used again"
    statement = story.statement(place)
    if "." in name and place is not None and statement is not None and name == carried_part(story, shared):
        text = f"{name} = None if {name} is None else {value}"
        return fix, story.tree(place).patch(story.tree(place).inserted(statement, text))
    tree = next((t for t in map(story.tree, story.files()) if any(node is loop for node in ast.walk(t.root))), None)
    if tree is None or not isinstance(loop, (ast.For, ast.While)):
        return fix, None
    if name.isidentifier() and tree.assignments(name, tree.scope(loop)):
        first = tree.assignments(name, tree.scope(loop))[0]
        ready = not tree.within(first.lineno, loop) and not isinstance(getattr(first, "value", None), ast.Constant)
        text = f"{name} = {value}"
        return fix, tree.patch(tree.inserted(loop.body[0] if ready else loop.body[-1], text, after=not ready))
    statement, own = story.statement(shared[1].line), story.tree(shared[1].line)
    if statement is None:
        return fix, None
    changes, text = [own.replaced(node, f"{name}.detach()") for node in own.reads(statement, name)], f"{name}.detach()"
    fix = f"detach what is carried over: `{text}` where it is read again"
    return fix, own.patch(*changes) if changes else None


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


def trains_other(story: Story, shared: tuple[Entry, Entry], earlier: BackwardRecord) -> edits.Fix | None:
    """The detach() for a loss whose optimizer does not move what is behind the shared value."""
    name, first = story.called(shared[0].mark), earlier
    behind = set(story.leaves_above(shared[0].mark))
    count = story.watch.sweeps.index(first) + 1
    steps = [o for o, update in story.updates() if update.time > first.time and update.sweeps == count]
    if not steps or any(behind & set(optimizer.held) for optimizer in steps) or not behind & story.held:
        return None
    leading = set(walk([root for root, _, _ in first.roots], story.operands))
    uses = (use for use in story.users.get(shared[0].mark, ()) if use.mark in leading and use.mark < first.time)
    line = next((use.line for use in uses), None)
    text = f"use `{name}.detach()` for the loss of {story.place(first.line)}, which does not train what made `{name}`"
    if line is None or not name.isidentifier():
        return edits.Fix(text)
    tree, statement = story.tree(line), story.statement(line)
    reads = [] if statement is None else tree.reads(statement, name)
    patch = tree.patch(*[tree.replaced(read, f"{name}.detach()") for read in reads]) if reads else None
    return edits.Fix(f"{text} (line {line.number})", (patch,))
