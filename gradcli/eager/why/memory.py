"""Finds gradients that add up unintended, and graphs that stay in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.results.findings import Accumulated, Histories, Retained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.running.entries import Reached, Sweep
    from gradcli.eager.why.story import Story
    from gradcli.results.findings import Finding

LOOP = 3  # backwards at one line that make a loop


def memory(story: Story, wanted: set[int]) -> Iterator[tuple[int | None, Finding]]:
    """Findings about what adds up."""
    for mark, subject in story.latest.items():
        if subject.leaf and subject.grad != "none":
            found = added_up(story, mark, mark in wanted)
            if found is not None:
                yield mark, found
    for found in [*kept_graphs(story), *histories(story)]:
        yield None, found


def added_up(story: Story, mark: int, asked: bool) -> Finding | None:
    """A leaf whose gradient is the sum of several backwards, where that looks unintended."""
    count = most = 0
    changed = mixed = stale = False  # mixed: a gradient from before a change lies in the sum
    lines: list[Any] = []
    for event in story.timeline(mark):
        if event.kind == "added":
            mixed = mixed or (changed and count > 0)
            count, changed = count + 1, False
            lines.append(event.line)
            most = max(most, count)
        elif event.kind == "changed":
            changed, stale = True, stale or mixed
        elif event.kind in ("dropped", "zeroed", "set"):
            count, changed, mixed, lines = 0, False, False, []
    if not stale and count < 2:
        return None
    parts = [one for _, one in story.arrivals.get(mark, [])][-count:] if count else []
    equal = len(parts) > 1 and all(same(part, parts[0]) for part in parts)
    left_out = (
        count >= LOOP and story.watch.subjects[mark].parameter and mark not in story.zeroed and bool(story.zeroed)
    )
    if not (stale or equal or asked or left_out):
        return None
    line = lines[-1] if lines else None
    total = most if stale else count
    if equal:
        told = (
            f"$it.grad is {count} times the gradient of one backward: {count} of them added up, never zeroed in between"
        )
    else:
        told = f"$it.grad is the sum of {total} backwards, never zeroed in between"
        told += " although the tensor changed in between" if stale else ""
        told += ", while others were" if left_out and not stale else ""
    return story.find(
        "accumulated",
        story.called(mark),
        line,
        f"{told}; the last is {story.at(line)}",
        Accumulated(backwards=total, factor=count),
    )


def same(one: Reached, other: Reached) -> bool:
    """Whether two gradients are equal, as far as the record can tell."""
    if one.value is not None and other.value is not None:
        return one.value.shape == other.value.shape and bool(np.array_equal(one.value, other.value))
    return one.norm == other.norm and one.probe == other.probe


def kept_graphs(story: Story) -> Iterator[Finding]:
    """retain_graph=True in a loop, where nothing needs the graph again, or where it grows."""
    groups: dict[Any, list[Sweep]] = {}
    for sweep in story.watch.sweeps:
        if sweep.retain and sweep.accumulate and not sweep.create:
            groups.setdefault(sweep.line, []).append(sweep)
    for line, sweeps in groups.items():
        sizes = [len(sweep.seqs) for sweep in sweeps]
        roots = {tuple(sweep.roots) for sweep in sweeps}
        if len(sweeps) < LOOP or len(roots) < LOOP:
            continue
        grows = all(one < other for one, other in pairwise(sizes))
        if grows:
            told = f"the graph that backward walks grows from {sizes[0]} to {sizes[-1]} nodes"
        elif not any(_again(story, sweep) for sweep in sweeps):
            told = "no later backward uses the graphs that it keeps"
        else:
            continue
        yield story.find(
            "retain-graph",
            None,
            line,
            f"a loop passes retain_graph=True {len(sweeps)} times at {story.at(line)}: {told}, so memory grows",
            Retained(times=len(sweeps), nodes=(sizes[0], sizes[-1])),
        )


def _again(story: Story, sweep: Sweep) -> bool:
    """Whether a later backward walked nodes of this one."""
    at = story.watch.sweeps.index(sweep)
    return any(not sweep.seqs.isdisjoint(later.seqs) for later in story.watch.sweeps[at + 1 :])


def histories(story: Story) -> Iterator[Finding]:
    """Names that hold the graphs of several losses."""
    roots = {mark for sweep in story.watch.sweeps if sweep.accumulate for mark, _, _ in sweep.roots}
    holders: dict[str, set[int]] = {name: set(marks) for name, marks in story.watch.holders.items()}
    for name, marks in holders.items():
        held = {mark for mark in ancestors(story, marks) if mark in roots}
        held = held or {mark for mark in marks if not story.entries[mark].shape and not used(story, mark)}
        walked = {at for mark in marks for at in story.walked.get(story.entries[mark].seq, ())[:1]}
        if len(held) < LOOP <= len(walked):
            line = story.entries[max(marks)].line
            told = f"$it keeps the graphs of {len(walked)} backwards alive; the newest was made at {story.at(line)}"
            operations = sum(1 for _ in ancestors(story, marks))
            yield story.find("history", name, line, told, Histories(graphs=len(walked), operations=operations))
        if len(held) >= LOOP:
            line = next(
                (use.line for mark in sorted(marks, reverse=True) for use in [story.entries[mark]] if use.line), None
            )
            nodes = sum(1 for _ in ancestors(story, marks))
            yield story.find(
                "history",
                name,
                line,
                f"$it keeps the graphs of {len(held)} losses alive ({nodes} operations); the newest was made at "
                f"{story.at(line)}",
                Histories(graphs=len(held), operations=nodes),
            )


def used(story: Story, mark: int) -> bool:
    """Whether something was computed from a value; to show it or to copy it is no use."""
    return any(entry.role == "operation" for entry in story.users.get(mark, ()))


def ancestors(story: Story, marks: set[int]) -> Iterator[int]:
    """The values with a node that some values were made from, and these themselves."""
    seen, waiting = set(marks), list(marks)
    while waiting:
        mark = waiting.pop()
        if story.entries[mark].seq is None:
            continue
        yield mark
        for below in story.entries[mark].inputs:
            if below not in seen:
                seen.add(below)
                waiting.append(below)
