"""Gradients that are the sum of several backwards, and those that nobody used before they were zeroed."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Accumulated
from gradcli.recording.runs.source_tree import dotted
from gradcli.why import edits
from gradcli.why.training.optimizers import used_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Clip, Event
    from gradcli.why.story import Story

LEAST = 2  # backwards whose gradients were lost


def sums(story: Story, wanted: set[int]) -> Iterator[tuple[int, Finding]]:
    """Leaves whose gradient is a sum that a step or the file took for the gradient of one backward."""
    for mark, subject in story.latest.items():
        if subject.leaf and subject.grad != "none":
            finding = added_up(story, mark, mark in wanted)
            if finding is not None:
                yield mark, finding


def added_up(story: Story, mark: int, asked: bool) -> Finding | None:
    """A leaf whose gradient is the sum of several backwards, where that looks unintended."""
    count = most = 0
    changed = mixed = stale = False  # mixed: a gradient from before a change lies in the sum
    read, reread = 0, False  # how many there were when the file looked; whether it looked again when there were more
    lines: list[SourceLine | None] = []
    for event in story.timeline(mark):
        if event.kind == "added":
            mixed = mixed or (changed and count > 0)
            count, changed = count + 1, False
            lines.append(event.line)
            most = max(most, count)
        elif event.kind == "changed" and (event.name == "step" if mark in story.held else read >= count):
            changed, stale = True, stale or mixed
        elif event.kind in ("read", "altered"):
            reread, read = reread or 0 < read < count, count
        elif event.kind in ("dropped", "zeroed", "set"):
            count, changed, mixed, read, lines = 0, False, False, 0, []
    if not stale and count < 2:
        return None
    parts = [grad for _, grad in story.arrivals.get(mark, [])][-count:] if count else []
    seen = [(p.norm, p.probe) if p.value is None else (p.value.shape, p.value.tolist()) for p in parts]
    equal = len(seen) > 1 and all(each == seen[0] for each in seen)
    used = reread or (equal and any(event.kind == "read" for event in story.timeline(mark)))
    if not (stale or used or asked):
        return None
    line, total = lines[-1] if lines else None, most if stale else count
    evidence = Accumulated(backwards=total, factor=count)
    times = f"{count} times the gradient of one backward: {count} of them added up"
    message = f"$it.grad is {times if equal else f'the sum of {total} backwards'}, never zeroed in between"
    message += " although the tensor changed in between" if stale and not equal else ""
    message += f"; the last is {story.at(line)}"
    fix, patch = zeroing(story, mark, line)
    return story.find("accumulated", story.called(mark), line, message, evidence, fix=fix, patches=(patch,))


def zeroing(story: Story, mark: int, line: SourceLine | None) -> tuple[str, Patch | None]:
    """A statement that zeroes the gradient before a backward, with the file's own names."""
    optimizer = next((o for o in story.watch.optimizers if mark in o.held and o.name), None)
    bare = next(story.main.bare("zero_grad", "zero_"), None)
    if bare is not None:
        return f"call it: `{story.main.source(bare)}()` at line {bare.lineno}", story.main.with_brackets(bare)
    name = story.called(mark)
    text = f"{optimizer.name}.zero_grad()" if optimizer is not None else f"{name}.grad = None"
    statement, tree = story.statement(line), story.tree(line)
    if statement is None or (optimizer is None and not name.isidentifier()):
        return "", None
    patch = tree.patch(tree.inserted(statement, text))
    return f"{'call' if optimizer else 'set'} `{text}` before each backward()", patch


# --- gradients that were thrown away --------------------------------------------------------------------------


def discarded(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Backwards all of whose gradients were zeroed before a step or the file used them."""
    sweeps = [s for s in story.watch.sweeps if s.accumulate and s.ended and s.reached and not s.closure]
    held = [s for s in sweeps if any(grad.leaf in story.held for grad in s.reached)]
    wasted = [sweep for sweep in held if all(grad.finite for grad in sweep.reached) and lost(sweep, story.timelines)]
    if len(wasted) < LEAST or 4 * len(wasted) < len(held):
        return
    last = lost(wasted[-1], story.timelines)
    assert last is not None
    used = len(held) - len(wasted)
    when = "before any step uses them" if not used else "before the step that comes later"
    message = f"the gradients of {len(wasted)} of {len(held)} backwards are thrown away unread: "
    message += f"{story.at(last.line)} zeroes them {when}"
    fix, patch = reordered(story, last.line, used)
    yield None, story.find("discarded", None, last.line, message, fix=fix, patches=(patch,))


def lost(sweep: BackwardRecord, owner: dict[int, list[Event]]) -> Event | None:
    """The event that zeroed all gradients of a backward before they were used; None if one was used or kept."""
    end = None
    for grad in sweep.reached:
        uses = [e for e in owner[grad.leaf] if e.time > sweep.time and e.kind in USES]
        if len(uses) > 1 and uses[0].kind == "read" and uses[0].line and uses[1].line and uses[1].kind == "zeroed":
            uses = uses[uses[0].line.number == uses[1].line.number :]  # `p.grad.zero_()` reads what it zeroes
        after = uses[0] if uses else None
        if after is None or after.kind not in ("dropped", "zeroed"):
            return None
        end = after
    return end


def late_changes(story: Story) -> Iterator[tuple[None, Finding]]:
    """Gradients that are changed after the step that used them, and zeroed before the next one: clipped too late."""
    counts: dict[tuple[SourceLine | None, SourceLine | None], int] = {}
    useful: set[SourceLine | None] = set()
    for mark in story.held:
        events = [e for e in story.timeline(mark) if e.kind in (*USES, "added")]
        for before, event, after in zip(events, events[1:], [*events[2:], None], strict=False):
            if event.kind != "altered":
                continue
            late = before.kind == "changed" and before.name == "step"
            if late and (after is None or after.kind in ("dropped", "zeroed")):
                counts[before.line, event.line] = counts.get((before.line, event.line), 0) + 1
            else:
                useful.add(event.line)
    for step, line in counts:
        if line in useful or counts[step, line] < LEAST:
            continue
        fix, patch = f"move it before {story.place(step)}", edits.moved(story, line, step, after=False)
        message = f"{story.at(line)} changes gradients that nothing uses: {story.at(step)} has used them before"
        yield None, story.find("discarded", None, line, message, fix=fix, patches=(patch,))


# --- clipped at the wrong time, or used while a GradScaler's factor is in them --------------------------------


def clips(story: Story) -> Iterator[tuple[None, Finding]]:
    """Lines that clip gradients before there are any, or while they are still scaled."""
    lines: dict[SourceLine, list[Clip]] = {}
    for clip in story.watch.clips:
        if not clip.marks and story.held and (finding := used_up(story, clip.line, "the clipping")) is not None:
            yield None, finding
            return
        if clip.line is not None and not story.held.isdisjoint(clip.marks):
            lines.setdefault(clip.line, []).append(clip)
    for line, same in lines.items():
        backward = next((s.line for s in story.watch.sweeps if s.accumulate and s.time > same[0].time), None)
        scaled = [name_and_text for clip in same if (name_and_text := still_scaled(story, clip.time)) is not None]
        if len(same) >= LEAST and all(clip.empty for clip in same) and backward is not None:
            message = f"{story.at(line)} clips nothing: before {story.at(backward)} there are no gradients"
            fix, patch = f"move it behind {story.place(backward)}", edits.moved(story, line, backward)
            yield None, story.find("clips-nothing", None, line, message, fix=fix, patches=(patch,))
        elif len(scaled) == len(same):
            held = (o.name for o in story.watch.optimizers if o.name and not set(o.held).isdisjoint(same[0].marks))
            text, tree = f"{scaled[0][0]}.unscale_({next(held, 'optimizer')})", story.tree(line)
            changes = [tree.inserted(statement, text) for statement in tree.statements(line.number)[:1]]
            message, fix = f"{story.at(line)} clips {scaled[-1][1]}", f"call `{text}` before"
            yield None, story.find("still-scaled", None, line, message, fix=fix, patches=(tree.patch(*changes),))


def scaled_steps(story: Story) -> Iterator[tuple[None, Finding]]:
    """The first step of an optimizer that a GradScaler should have made: with the scaled gradients."""
    for optimizer, update in story.updates():
        scaled, line, statement = still_scaled(story, update.time), update.line, story.statement(update.line)
        call = None if scaled is None else edits.found(story, line, "step")
        if scaled is None or line is None or statement is None or call is None:
            continue
        (name, what), tree = scaled, story.tree(line)
        if dotted(call.func) == f"{optimizer.name}.step":
            text = f"{name}.step({optimizer.name})"
            fix, changes = f"let the scaler step: `{text}`", [tree.replaced(call, text)]
            if not any(dotted(each.func) == f"{name}.update" for each in tree.calls("update")):
                fix += f", then `{name}.update()`"
                changes.append(tree.inserted(statement, f"{name}.update()", after=True))
            message, patch = f"{story.at(line)} moves by {what}", tree.patch(*changes)
            yield None, story.find("still-scaled", None, line, message, fix=fix, patches=(patch,))
            return


def still_scaled(story: Story, time: int) -> tuple[str, str] | None:
    """The name of the GradScaler whose factor is in the gradients at a time, and in words what these are."""
    sweeps, events = story.watch.sweeps, story.watch.events
    sweep = sweeps[max(0, bisect_left(sweeps, time, key=lambda s: s.time) - 1)] if sweeps else None
    scaling = None if sweep is None else story.scaling(sweep)
    if sweep is None or scaling is None or not sweep.accumulate or not sweep.steps or not sweep.steps[0].sent:
        return None
    first, last = (bisect_left(events, each, key=lambda e: e.time) for each in (sweep.time, time))
    if any("unscale" in event.name for event in events[first:last]):
        return None
    call, factor = edits.found(story, scaling.line, "scale"), sweep.steps[0].sent[0].size.norm
    what = f"gradients that are still {factor:.6g} times too large: {story.at(sweep.line)} began with a scaled loss"
    return "scaler" if call is None else dotted(call.func).removesuffix(".scale"), what


USES = ("dropped", "zeroed", "changed", "read", "zero", "set", "altered")


def reordered(story: Story, zero: SourceLine | None, used: int) -> tuple[str, Patch | None]:
    """Where to zero the gradients instead."""
    steps = [update.line for _, update in story.updates() if update.line is not None]
    step, statement = story.statement(steps[-1]) if steps else None, story.statement(zero)
    if zero is None or statement is None or step is None:
        return "", None
    tree = story.tree(zero)
    text = " ".join(tree.source(statement).split())
    if used:
        fix = f"zero them once after each step: move `{text}` behind {story.place(steps[-1])}"
        return fix, tree.moved(statement, step)
    fix = f"zero them just before backward(): move `{text}` to the beginning of the step"
    loop = tree.loop(zero)
    body = getattr(loop, "body", None)
    if not body or statement not in body or statement is body[0]:
        return fix, None
    return fix, tree.patch(tree.removed(statement), tree.inserted(body[0], tree.source(statement)))
