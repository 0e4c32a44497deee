"""Why a file could not go on: a backward that was refused or broke off, or an error with one known answer."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.recording.runs.source_tree import dotted, targets
from gradcli.why import edits
from gradcli.why.errors.changed_in_place import changed
from gradcli.why.errors.known_errors import known_answer
from gradcli.why.errors.second_backward import freed
from gradcli.why.readings import is_float

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import End, Story


def stops(story: Story, problem: BaseException | None) -> Iterator[Finding]:
    """Why the file could not go on."""
    if problem is None or isinstance(problem, SystemExit):
        return
    watch = story.watch
    ours = isinstance(problem, RuntimeError) and watch.fault is not None and watch.fault == watch.last
    if ours and watch.refusal is not None:  # not one that the file caught before
        yield refused(story, watch.refusal)
    elif ours and watch.stop is not None:
        yield changed(story) if watch.stop[0] == "changed" else freed(story)
    else:
        yield known_answer(story, problem) or plain(story, problem)


def plain(story: Story, problem: BaseException) -> Finding:
    """A stop of which nothing more is known."""
    message = f"the file stopped at {story.at(story.watch.last)}: {type(problem).__name__}: "
    return story.find("stopped", None, story.watch.last, message + str(problem).partition("\n")[0])


def refused(story: Story, root: int) -> Finding:
    """Why backward could not start."""
    entry, subject = story.entries[root], story.watch.subjects[root]
    name = "this tensor" if entry.role == "leaf" and not subject.name else story.called(root)
    above = story.leaves_above(root)
    numbers = (story.number_at(story.entries[leaf].line) for leaf in above)
    end = story.end_above(root) or next(filter(None, numbers), None)
    late = [leaf for leaf in above if any(e.kind == "unfrozen" and e.time > entry.mark for e in story.timeline(leaf))]
    if end is None and not late:
        end = next(filter(None, (number_before(story, leaf) for leaf in above)), None)
    reason, line, lead = "never-required", entry.line, "cannot call backward on $it: "
    fix, patches = edits.Fix()
    if not subject.floating:
        reason, why = "integer-dtype", f"it is {subject.dtype}"
    elif end is not None:
        update = rebinding(story, end.entry)
        if update is not None:
            fix, patches = edits.in_place(story, update)
            manner = "under no_grad " if update.mode != "grad" else ""
            why = f"{story.at(update.line)} gave its name to a new tensor, made {manner}which is no longer the leaf"
            return story.find("replaced", name, update.line, lead + why, fix=fix, patches=patches)
        fix, patches = edits.of_end(story, end)
        reason, line = end.reason, end.line
        why = f"{end.what} at {story.at(line)}"
        if reason == "mode-left":
            why = f"{end.what} when {story.at(end.entry.line)} was computed"
    elif (grad := next((leaf for leaf in above if leaf in story.watch.grads), None)) is not None:
        reason = "no-create-graph"
        why = f"it was computed from {story.called(grad)}, and what backward() left in .grad has no history"
        fix = "pass create_graph=True to that backward(), or take the gradient with torch.autograd.grad(..., "
        fix += "create_graph=True)"
    elif late:
        event = next(e for e in story.timeline(late[0]) if e.kind == "unfrozen" and e.time > entry.mark)
        why = f"{story.called(late[0])} requires grad now, and did not when it was used: that is set at "
        why += f"{story.at(event.line)} only"
        patches = (edits.before(story, event.line, line),)
    elif (outside := unrecorded(story, above)) is not None:
        why = f"it was computed inside a transform of torch.func at {story.at(outside)}, where nothing is recorded, "
        why += "and what came out requires no grad"
        line, fix = outside, "look for detach(), item(), or no_grad in the function that is transformed"
        if (number := cut_within(story, outside)) is not None:
            fix += f", such as that of line {number}"
    elif above and not any(is_float(story.entries[leaf].dtype) for leaf in above):
        kinds = ", ".join(dict.fromkeys(f"{story.called(leaf)} is {story.entries[leaf].dtype}" for leaf in above))
        reason, why = "integer-dtype", f"{kinds}, and only floats can require grad"
        line = story.entries[above[0]].line
    else:
        frozen = next((event for leaf in above for event in story.timeline(leaf) if event.kind == "frozen"), None)
        if frozen is not None:
            why = f"requires_grad was set to False at {story.at(frozen.line)}, and nothing else requires grad"
            line, fix = frozen.line, "leave what is to be trained with requires_grad=True"
        else:
            places = (f"{story.called(leaf)} of {story.place(story.entries[leaf].line)}" for leaf in above)
            leaves = ", ".join(dict.fromkeys(places))
            why = f"nothing that it was computed from requires grad ({leaves})"
            line = story.entries[above[0]].line if len(above) == 1 else line
            patches = (edits.require(story, story.entries[above[0]]),) if len(above) == 1 else ()
    return story.find(reason, name, line, lead + why, fix=fix, patches=patches)


def unrecorded(story: Story, leaves: list[int]) -> SourceLine | None:
    """The line of a leaf without a name that a transform of torch.func may have given."""
    if not any("torch.func" in note for note in story.watch.notes):
        return None
    return next((story.entries[leaf].line for leaf in leaves if not story.is_named(leaf)), None)


def cut_within(story: Story, line: SourceLine) -> int | None:
    """The number of the line with detach() or the like in a function that the statement of a line names."""
    tree, statement = story.tree(line.file), story.statement(line)
    named = {dotted(node) for node in ast.walk(statement)} if statement is not None else set()
    functions = [n for n in ast.walk(tree.root) if isinstance(n, ast.FunctionDef) and n.name in named]
    calls = tree.calls("detach", "item", "tolist", "numpy", "no_grad")
    return next((c.lineno for c in calls if any(tree.within(c.lineno, f) for f in functions)), None)


def number_before(story: Story, mark: int) -> End | None:
    """Where something with a history became a plain number that a value was made of."""
    line = story.entries[mark].line
    statement = story.statement(line)
    if line is None or statement is None:
        return None
    for entry in reversed(story.entries.values()):
        end = story.end_at(entry) if entry.mark < mark and entry.role == "cut" else None
        if end is None or entry.line is None or entry.line.file != line.file or end.reason != "as-number":
            continue
        start = story.statement(entry.line)
        numbers = set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        if start is not None and not story.is_check(entry) and story.tree(line.file).carries(start, numbers):
            return end
    return None


def rebinding(story: Story, entry: Entry) -> Entry | None:
    """The operation `w - lr * w.grad` under no_grad, if its statement gives the name of the leaf to the result."""
    statement = story.statement(entry.line)
    if entry.role != "operation" or not isinstance(statement, ast.Assign):
        return None
    names = targets(statement)
    read = {dotted(node) for node in ast.walk(statement.value)}
    updated = any(story.arrivals.get(leaf) for leaf in entry.inputs) or {f"{name}.grad" for name in names} & read
    return entry if read & names and updated else None
