"""Why `.grad` of a tensor is None or a backward stopped, with the line; also of parameters that a module does not find.

`parameters()` looks into modules and their lists, not into plain containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.observe.why.story import is_float
from gradcli.results.findings import AtNode, Saved, Unregistered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.observe.run_record import Loose
    from gradcli.observe.tensors import Event
    from gradcli.observe.why.story import End, Story
    from gradcli.results.findings import Finding


LAYERS = {"list": "ModuleList", "tuple": "ModuleList", "dict": "ModuleDict"}
PARAMETERS = {"list": "ParameterList", "tuple": "ParameterList", "dict": "ParameterDict", "tensor": "Parameter"}


def unregistered(story: Story, problem: BaseException | None) -> Iterator[tuple[set[int], Finding]]:
    """A finding for each plain container of a module with parameters that an update leaves out, and which they are."""
    nothing = isinstance(problem, ValueError) and "empty parameter list" in str(problem)
    for loose in story.watch.loose.values():
        marks = {mark for mark in loose.tensors if story.entries[mark].requires} - story.watch.optimised
        if marks and ((nothing and not loose.registered) or left_out(story, loose, marks)):
            yield marks, container_finding(story, loose, len(marks))


def left_out(story: Story, loose: Loose, marks: set[int]) -> bool:
    """Whether gradients came to parameters, and what updates the others of the module leaves them out."""
    if not any(story.arrivals.get(mark) for mark in marks):
        return False  # a target network, a part that is frozen or not used
    if story.watch.optimised:
        return not story.watch.optimised.isdisjoint(loose.registered)
    return any(moved(story, mark) for mark in loose.registered) and not any(moved(story, mark) for mark in marks)


def moved(story: Story, mark: int) -> bool:
    """Whether a tensor was changed in place after a gradient came to it."""
    kinds = [event.kind for event in story.timeline(mark)]
    return "added" in kinds and "changed" in kinds[kinds.index("added") :]


def container_finding(story: Story, loose: Loose, count: int) -> Finding:
    """The finding about one container."""
    line = loose.line or story.entries[loose.tensors[0]].line
    use = LAYERS[loose.kind] if loose.layers else PARAMETERS[loose.kind]
    root = loose.name.partition(".")[0]
    several = (loose.layers or count) > 1
    parameters = f"{count} parameter{'s' if count > 1 else ''}"
    place = f"in the {loose.kind} `{loose.attribute}` of {loose.module} {'are' if several else 'is'} not registered"
    if loose.kind == "tensor":
        what, which = f"the tensor `{loose.attribute}` of {loose.module} is no Parameter", "it"
    elif loose.layers:
        what = f"{loose.layers} layer{'s' if several else ''} {place}"
        which = f"{'their' if several else 'its'} {parameters}"
    else:
        what, which = f"{parameters} {place}", "them" if several else "it"
    user = "optimizer" if story.watch.optimised or not loose.registered else "update"
    message = f"{what}: {root}.parameters(), and so the {user}, leaves {which} out ({story.at(line)})"
    evidence = Unregistered(loose.module, loose.attribute, loose.kind, loose.layers, count, f"torch.nn.{use}")
    finding = story.find("unregistered", loose.name, line, message, evidence)
    return finding._replace(cure=finding.cure.replace("$use", f"torch.nn.{use}", 1))


def missing(story: Story, wanted: set[int]) -> Iterator[tuple[int, Finding]]:
    """A finding for each tensor without a gradient that someone misses: requested, looked at, or a leaf left out."""
    sweeps = story.watch.sweeps
    accumulating = any(sweep.accumulate for sweep in sweeps) and sweeps[-1].ended
    asked_by_grad = {mark for sweep in sweeps for mark in sweep.targets or ()}
    for mark, subject in story.latest.items():
        if subject.grad != "none":
            continue
        events = story.timeline(mark)
        looks = [event for event in events if event.kind in ("none", "read", "zero")]
        looked = bool(looks) and looks[-1].kind == "none"
        left_out = subject.leaf and subject.requires and accumulating and not any(e.kind == "added" for e in events)
        left_out = left_out and mark not in asked_by_grad
        if story.watch.optimised and mark not in story.watch.optimised:
            left_out = False  # a target network, a frozen part: nothing would move it anyway
        if mark in wanted or looked or left_out or thrown_away(events):
            finding = reason(story, mark)
            if finding is not None:
                yield mark, finding


def thrown_away(events: list[Event]) -> bool:
    """Whether zero_grad() removed a gradient that the file had not read and no step had used."""
    used = False
    for event in events:
        if event.kind == "added":
            used = False
        elif event.kind in ("changed", "read"):
            used = True
    last = events[-1] if events else None
    before = [event.kind for event in events if event.kind in ("added", "dropped", "zeroed")]
    return (
        not used
        and before[-2:] in (["added", "dropped"], ["added", "zeroed"])
        and last is not None
        and last.line is not None
        and "zero_grad" in last.line.text
    )


def reason(story: Story, mark: int) -> Finding | None:
    """Why a tensor has no gradient."""
    subject, entry, name = story.watch.subjects[mark], story.entries[mark], story.called(mark)
    if not subject.floating:
        return story.none("integer-dtype", name, entry.line, f"{subject.dtype} cannot require grad, only floats can")
    if not subject.requires:
        end = story.end_above(mark)
        if end is not None:
            return ended(story, name, end)
        leaves = ", ".join(dict.fromkeys(map(story.called, story.leaves_above(mark))))
        origin = f"nothing that it was made from requires grad ({leaves})"
        why = "it never required grad" if entry.role == "leaf" else origin
        return story.none("never-required", name, entry.line, why)
    if not subject.leaf and not subject.retains:
        return not_leaf(story, mark, name)
    dropped = [event for event in story.timeline(mark) if event.kind in ("added", "dropped")]
    if dropped and dropped[-1].kind == "dropped" and dropped[0].kind == "added":
        line, since = dropped[-1].line, dropped[-1].sweeps
        if any(sweep.accumulate for sweep in story.watch.sweeps[since:]):
            return unreached(story, mark, name, since)
        return story.none("zeroed", name, line, f"backward filled it, then it was set to None at {story.at(line)}")
    return unreached(story, mark, name)


def ended(story: Story, name: str, end: End) -> Finding:
    """The finding for a way that ends."""
    return story.none(end.reason, name, end.line, f"{end.what} at {story.at(end.line)}")


def not_leaf(story: Story, mark: int, name: str) -> Finding:
    """A tensor that was computed does not keep its gradient; and some once were leaves."""
    entry, subject = story.entries[mark], story.watch.subjects[mark]
    before = [
        leaf
        for leaf in story.leaves_above(mark)
        if leaf != mark and story.watch.subjects.get(leaf) is not None and _once(story, leaf, name)
    ]
    origin = f"{subject.node} made it at {story.at(entry.line)}"
    if before and not entry.sweeps:
        message = f"$it.grad is None: it is not a leaf, {origin}, and the leaf itself no longer has a name"
        return story.find("leaf-lost", name, entry.line, message)
    if before:
        return story.none("replaced", name, entry.line, f"it is no longer the leaf, {origin}")
    return story.none("not-leaf", name, entry.line, f"it is not a leaf, {origin}, and retain_grad() was not called")


def _once(story: Story, leaf: int, name: str) -> bool:
    """Whether a leaf got its gradient, and lost its name to a tensor made from it."""
    known = story.watch.subjects[leaf]
    return any(event.kind == "added" for event in story.timeline(leaf)) and known.name in ("", name)


def unreached(story: Story, mark: int, name: str, since: int = 0) -> Finding:
    """Why no backward came to a tensor that requires grad; those before the number `since` did."""
    watch, entry = story.watch, story.entries[mark]
    way = story.way_to_root(mark, since)
    end = next(filter(None, map(story.end_at, way)), None)
    if end is not None:
        return ended(story, name, end)
    if not watch.sweeps:
        users = story.users.get(mark, [])
        line = users[-1].line if users else entry.line
        return story.none("never-ran", name, line, "backward was never called")
    if not way:
        lost = story.number_end(mark)
        if lost is not None:
            return story.none(lost.reason, name, lost.line, f"{lost.what} at {story.at(lost.line)}")
        line = watch.sweeps[-1].line
        users = story.users.get(mark, [])
        used = f"it was last used at {story.at(users[-1].line)}" if users else "nothing was computed from it"
        return story.none("no-path", name, line, f"the loss at {story.at(line)} does not depend on it; {used}")
    withheld = next((s for sweep in watch.sweeps for s in sweep.steps if ("leaf", mark) in s.withheld), None)
    if withheld is not None:
        message = f"$it.grad is None: the backward of {withheld.name} at {story.at(withheld.line)} returned None for it"
        return story.find("returned-none", name, withheld.line, message, AtNode(withheld.name))
    if not any(sweep.accumulate for sweep in watch.sweeps):
        line = watch.sweeps[-1].line
        if watch.sweeps[-1].reached:
            return story.none("not-asked", name, line, f"inputs= at {story.at(line)} does not name it")
        return story.none("returned", name, line, f"{story.at(line)} returns gradients and does not fill .grad")
    return story.none("no-path", name, watch.sweeps[-1].line, "no gradient reached it")


def stops(story: Story, problem: BaseException | None) -> Iterator[Finding]:
    """Why the file could not go on."""
    if problem is None or isinstance(problem, SystemExit):
        return
    watch, at = story.watch, story.at(story.watch.last)
    ours = isinstance(problem, RuntimeError) and watch.fault == watch.last  # not one that the file caught before
    if ours and watch.refusal is not None:
        yield refused(story, watch.refusal)
    elif ours and watch.stop is not None:
        why, node, line, changed = watch.stop
        lost = f"what {node} at {story.at(line)}"
        reason, where = "freed", watch.last
        message = f"backward stopped at {at}: an earlier backward had freed {lost} saved"
        if why == "changed":
            reason, where = "changed-in-place", changed
            message = f"backward stopped: {story.at(changed)} changed in place {lost} had saved"
            if any(sweep.retain and not sweep.create for sweep in watch.sweeps[:-1]):
                reason = "changed-carried"
                message += " in an earlier step, whose graph is walked again"
        yield story.find(reason, None, where, message, Saved(node, None if line is None else line.number))
    elif isinstance(problem, RuntimeError) and "inference tensors cannot be saved" in str(problem).lower():
        message = f"the file stopped at {at}: a tensor made in inference_mode has to be saved for backward"
        yield story.find("inference", None, watch.last, message)
    else:
        message = f"the file stopped at {at}: {type(problem).__name__}: " + str(problem).partition("\n")[0]
        yield story.find("stopped", None, watch.last, message)


def refused(story: Story, root: int) -> Finding:
    """Why backward could not start."""
    entry, subject = story.entries[root], story.watch.subjects[root]
    name = story.called(root)
    above = story.leaves_above(root)
    numbers = (story.number_at(story.entries[leaf].line) for leaf in above)
    end = story.end_above(root) or next(filter(None, numbers), None)
    late = [leaf for leaf in above if story.entries[leaf].requires]
    if end is None and not late:
        end = next(filter(None, (story.left_before(leaf) for leaf in above)), None)
    name = "this tensor" if entry.role == "leaf" and not subject.name else name
    reason, line = "never-required", entry.line
    if not subject.floating:
        reason, why = "integer-dtype", f"it is {subject.dtype}"
    elif end is not None:
        reason, line, why = end.reason, end.line, f"{end.what} at {story.at(end.line)}"
    elif late:
        why = f"{story.called(late[0])} requires grad now, and did not when it was used"
    elif above and not any(is_float(story.entries[leaf].dtype) for leaf in above):
        kinds = ", ".join(dict.fromkeys(f"{story.called(leaf)} is {story.entries[leaf].dtype}" for leaf in above))
        reason, why = "integer-dtype", f"{kinds}, and only floats can require grad"
    else:
        leaves = ", ".join(dict.fromkeys(map(story.called, above)))
        why = f"nothing that it was computed from requires grad ({leaves})"
    return story.find(reason, name, line, f"cannot call backward on $it: {why}")
