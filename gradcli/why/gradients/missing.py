"""Why `.grad` of a tensor is None, with the line where its way to the loss ends."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.base.results.findings import AtNode
from gradcli.recording.runs.source_tree import dotted, target_of
from gradcli.why import edits
from gradcli.why.gradients.hooks import earlier, rule_line
from gradcli.why.story import End, Story, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry, Event


NOTHING = "no gradient reached it"


def without_gradient(story: Story, wanted: set[int]) -> Iterator[tuple[int, Finding]]:
    """A finding for each tensor without a gradient that someone misses: requested, looked at, or a leaf left out."""
    sweeps = story.watch.sweeps
    accumulating = any(sweep.accumulate for sweep in sweeps) and sweeps[-1].ended
    asked_by_grad = {mark for sweep in sweeps for mark in sweep.targets or ()}
    for mark, subject in story.latest.items():
        if subject.grad != "none":
            continue
        events = story.timeline(mark)
        looks = [event for event in events if event.kind in ("none", "read", "zero")]
        looked = bool(looks) and looks[-1].kind == "none" and not is_guard(story, looks[-1])
        left_out = subject.leaf and subject.requires and accumulating and not any(e.kind == "added" for e in events)
        left_out = left_out and mark not in asked_by_grad
        if story.held and mark not in story.held:
            left_out = False  # a target network, a frozen part: nothing would move it anyway
        if mark in wanted or looked or left_out:
            finding = reason(story, mark)
            if finding is not None and (mark in wanted or looked or finding.message != f"$it.grad is None: {NOTHING}"):
                yield mark, finding


def is_guard(story: Story, look: Event) -> bool:
    """Whether `.grad` was looked at only to know whether it is there."""
    statement, node, tree = story.statement(look.line), story.node(look.line), story.tree(look.line)
    outer = None if node is None else tree.parents.get(node)
    if not isinstance(outer, ast.Compare) or not any(isinstance(op, (ast.Is, ast.IsNot)) for op in outer.ops):
        return False
    return isinstance(statement, (ast.If, ast.While)) or isinstance(tree.parents.get(outer), ast.comprehension)


def reason(story: Story, mark: int) -> Finding | None:
    """Why a tensor has no gradient."""
    subject, entry, name = story.watch.subjects[mark], story.entries[mark], story.called(mark)
    if not subject.floating:
        return none(story, "integer-dtype", name, entry.line, f"{subject.dtype} cannot require grad, only floats can")
    if not subject.requires:
        end = story.end_above(mark)
        if end is not None:
            return ended(story, name, end)
        leaves = ", ".join(dict.fromkeys(map(story.called, story.leaves_above(mark))))
        origin = f"nothing that it was made from requires grad ({leaves})"
        why = "it never required grad" if entry.role == "leaf" else origin
        return none(story, "never-required", name, entry.line, why, edits.require(story, entry))
    if not subject.leaf and not subject.retains:
        return not_leaf(story, mark, name)
    dropped = [event for event in story.timeline(mark) if event.kind in ("added", "dropped")]
    if dropped and dropped[-1].kind == "dropped" and dropped[0].kind == "added":
        line, since = dropped[-1].line, dropped[-1].sweeps
        if any(sweep.accumulate for sweep in story.watch.sweeps[since:]):
            return unreached(story, mark, name, since)
        why = f"backward filled it, then it was set to None at {story.at(line)}"
        return none(story, "zeroed", name, line, why)
    return unreached(story, mark, name)


def none(
    story: Story, reason: str, name: str, line: SourceLine | None, why: str, *patches: Patch | None, fix: str = ""
) -> Finding:
    """A finding about a `.grad` that is None."""
    return story.find(reason, name, line, f"$it.grad is None: {why}", fix=fix, patches=patches)


def ended(story: Story, name: str, end: End) -> Finding:
    """The finding for a way that ends."""
    fix, patches = edits.of_end(story, end)
    where = f", {story.at(end.entry.line)}" if end.reason == "mode-left" else f" at {story.at(end.line)}"
    return none(story, end.reason, name, end.line, f"{end.what}{where}", *patches, fix=fix)


def not_leaf(story: Story, mark: int, name: str) -> Finding:
    """A tensor that was computed does not keep its gradient; and some once were leaves."""
    entry, subject = story.entries[mark], story.watch.subjects[mark]
    known = [leaf for leaf in story.leaves_above(mark) if leaf != mark and leaf in story.watch.subjects]
    lost = [leaf for leaf in known if story.watch.subjects[leaf].name in ("", name)]  # to a tensor made from it
    before = [leaf for leaf in lost if any(event.kind == "added" for event in story.timeline(leaf))]
    origin = f"{subject.node} made it at {story.at(entry.line)}"
    if before and not entry.sweeps:
        message = f"$it.grad is None: it is not a leaf, {origin}, and the leaf itself no longer has a name"
        fix, patches = edits.leaf_last(story, entry, name)
        return story.find("leaf-lost", name, entry.line, message, fix=fix, patches=patches)
    if before:
        fix, patches = edits.in_place(story, entry)
        return none(story, "replaced", name, entry.line, f"it is no longer the leaf, {origin}", *patches, fix=fix)
    why = f"it is not a leaf, {origin}, and retain_grad() was not called before backward"
    statement, tree = story.statement(entry.line), story.tree(entry.line)
    kept = tree.inserted(statement, f"{name}.retain_grad()", after=True) if statement else None
    patch = tree.patch(kept) if kept and assigned_name(story, entry) == name else None
    return none(story, "not-leaf", name, entry.line, why, patch)


def unreached(story: Story, mark: int, name: str, since: int = 0) -> Finding:
    """Why no backward came to a tensor that requires grad; those before the number `since` did."""
    watch, entry = story.watch, story.entries[mark]
    retained = [event for event in story.timeline(mark) if event.kind == "retained"]
    if retained and watch.sweeps and retained[-1].time > watch.sweeps[-1].time:
        late, line = story.place(watch.sweeps[-1].line), retained[-1].line
        why = f"retain_grad() was called at {story.at(line)}, after the backward of {late}"
        patch = earlier(story, line, watch.sweeps[-1].line)
        return none(story, "not-leaf", name, line, why, patch, fix=f"call retain_grad() before the backward of {late}")
    ends = story.ends(mark, since)
    if ends:
        return ended(story, name, ends[0])
    if not watch.sweeps:
        users = story.users.get(mark, [])
        line = users[-1].line if users else entry.line
        bare = next(story.main.bare("backward"), None)
        why = "backward was never called"
        if bare is not None:
            fix, why = f"call it: `{story.main.source(bare)}()`", f"{why}; line {bare.lineno} only names it"
            return none(story, "never-ran", name, line, why, story.main.with_brackets(bare), fix=fix)
        return none(story, "never-ran", name, line, why)
    if mark not in story.leading(since) or mark in story.roots(since):
        onto = walk([mark], lambda mark: [use.mark for use in story.users.get(mark, ())])
        shown = [m for value in onto for m in story.entries[value].inputs if m in watch.shared]
        written = next((m for m in shown if watch.owner_of(m) in story.leading(since)), None)
        lost = story.number_end(mark)
        if written is not None:  # into what the loss reads, past its history
            cut = story.entries[written]
            lost = End("detached", cut.line, f"{cut.name} was taken", cut)
        if lost is not None:
            return ended(story, name, lost)
        line = watch.sweeps[-1].line
        users = [use for use in story.users.get(mark, []) if use.role == "operation"]
        used = f"it was last used at {story.at(users[-1].line)}" if users else "nothing was computed from it"
        return none(story, "no-path", name, line, f"the loss at {story.at(line)} does not depend on it; {used}")
    withheld = next((s for sweep in watch.sweeps for s in sweep.steps if ("leaf", mark) in s.withheld), None)
    if withheld is not None:
        steps = [step for sweep in watch.sweeps for step in sweep.steps]
        while (above := next((s for s in steps if ("node", withheld.seq) in s.withheld), None)) is not None:
            withheld = above  # what gets None passes it on
        rule, _ = rule_line(story, withheld.name.removesuffix("Backward"))
        message = f"$it.grad is None: the backward of {withheld.name} at {story.at(withheld.line)} returned None for it"
        message += f", at {story.at(rule)}" if rule is not None else ""
        return story.find("returned-none", name, rule or withheld.line, message, AtNode(withheld.name))
    if not any(sweep.accumulate for sweep in watch.sweeps):
        line = watch.sweeps[-1].line
        if watch.sweeps[-1].reached:
            return none(story, "not-asked", name, line, f"inputs= at {story.at(line)} does not name it")
        return none(story, "returned", name, line, f"{story.at(line)} returns gradients and does not fill .grad")
    return none(story, "no-path", name, watch.sweeps[-1].line, NOTHING)


def partly(story: Story, mark: int) -> Iterator[Finding]:
    """The ways from a tensor with a gradient that end beside those on which it came."""
    for end in story.ends(mark):
        message = f"$it.grad misses a part of the loss: {end.what} at {story.at(end.line)}"
        yield story.find("partly", story.called(mark), end.line, message)


def assigned_name(story: Story, entry: Entry) -> str:
    """The name that the statement of a value assigns to."""
    statement = story.statement(entry.line)
    target = target_of(statement) if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
    return "" if target is None else dotted(target)


def rebound(story: Story) -> Iterator[tuple[int, Finding]]:
    """Updates by hand that only give a name to a new tensor: `p = p - lr * p.grad`."""
    seen: set[SourceLine] = set()
    for entry in story.entries.values():
        if entry.role != "operation" or entry.inside or entry.line is None or entry.line in seen or not entry.sweeps:
            continue
        leaf = next((mark for mark in entry.inputs if story.arrivals.get(mark)), None)
        if leaf is None or not entry.name.startswith(("Sub", "Add")):
            continue
        if not any(mark in story.watch.grads for mark in walk(entry.inputs, story.operands)):
            continue
        statement = story.statement(entry.line)
        name = assigned_name(story, entry)
        if not isinstance(statement, ast.Assign) or not name:
            continue
        value = statement.value
        if isinstance(value, ast.BinOp) and dotted(value.left) == name and story.node(entry.line) is value:
            seen.add(entry.line)
            if any(event.kind == "changed" for event in story.timeline(leaf)):
                continue
            fix, patches = edits.in_place(story, entry)
            message = f"{story.at(entry.line)} only gives the name `{name}` to a new tensor: "
            message += f"{story.called(leaf)} is not changed in place"
            yield leaf, story.find("replaced", None, entry.line, message, fix=fix, patches=patches)
