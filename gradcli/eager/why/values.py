"""Gradients that arrived go in; why one is zero, NaN, vanishing or exploding comes out, and where that starts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.why.texts import flat_reason, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.running.entries import Entry, Step, Sweep
    from gradcli.eager.why.story import Story
    from gradcli.execution.findings import Finding

QUIET = {"flat", "times-zero", "not-selected"}  # ordinary zeros: told only to someone who asks
TINY, SMALL_BESIDE, HUGE = 1e-9, 1e-7, 1e6
MASKS = ("MaskedFill", "Where", "Add")  # how an infinity comes in on purpose
DEAD_SHARE = 0.5
STEPS_SHOWN = 12


def values(story: Story, wanted: set[int]) -> Iterator[tuple[int | None, Finding]]:
    """Findings about gradients that are there."""
    yield from not_finite(story)
    extremes: dict[tuple[str, int | None], list[tuple[int, Finding]]] = {}
    for mark, subject in story.latest.items():
        if subject.grad == "zero":
            looks = [event.kind for event in story.timeline(mark) if event.kind in ("none", "zero", "read")]
            for found in zero(story, mark):
                if mark in wanted or looks[-1:] == ["zero"] or found.reason not in QUIET:
                    yield mark, found
        elif subject.grad == "fine":
            faint = faded(story, mark) or blown_up(story, mark)
            if faint is not None and (faint.reason != "flat" or mark in wanted):  # near a minimum all is well
                extremes.setdefault((faint.reason, faint.line), []).append((mark, faint))
    for group in extremes.values():
        yield worst(story, [(mark, one) for mark, one in group if not wanted or mark in wanted] or group)
    for found in dead_units(story):
        yield None, found


# --- zero ---------------------------------------------------------------------------------------------------


def zero(story: Story, mark: int) -> Iterator[Finding]:
    """Why all entries of a gradient are zero."""
    name = story.called(mark)
    events = [event for event in story.timeline(mark) if event.kind in ("added", "zeroed", "dropped")]
    if events and events[-1].kind == "zeroed":
        looked = [event for event in story.timeline(mark) if event.kind in ("zero", "none", "read")]
        if any(event.kind == "added" for event in events) and looked and looked[-1].kind == "zero":
            line = events[-1].line
            yield story.find(
                "zeroed",
                name,
                line,
                f"$it.grad is zero: backward filled it, then it was set to zero at {story.at(line)}",
            )
        return
    sweep = story.last_sweep(mark)
    if sweep is None:
        return
    told: set[tuple[str, Any]] = set()
    for step in stoppers(story, sweep, mark):
        reason = flat_reason(step.name)
        if (reason, step.line) not in told:
            told.add((reason, step.line))
            yield story.find(
                reason,
                name,
                step.line,
                f"$it.grad is zero: {step.name} at {story.at(step.line)} sends nothing on",
                node=step.name,
            )
    if not told:
        yield story.find("flat", name, sweep.line, "$it.grad is zero: what came along the different paths cancels out")


def stoppers(story: Story, sweep: Sweep, mark: int) -> list[Step]:
    """The nodes that received something and sent only zeros towards a leaf."""
    found: list[Step] = []
    waiting: list[tuple[str, int]] = [("leaf", mark)]
    seen = set(waiting)
    while waiting:
        for step, norm in story.senders(sweep, waiting.pop()):
            if step.norm > 0 and norm == 0:
                found.append(step)
            elif step.norm == 0 and ("node", step.seq) not in seen:
                seen.add(("node", step.seq))
                waiting.append(("node", step.seq))
    return found


# --- NaN and infinity ---------------------------------------------------------------------------------------


def not_finite(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Where the first NaN or infinity comes from that reached a loss or a gradient."""
    for sweep in story.watch.sweeps:
        for root, _, finite in sweep.roots:
            if not finite:
                found = _forward_origin(story, root)
                if found is not None:
                    yield root, found
                    return
        bad = [one for one in sweep.reached if not one.finite]
        bad_step = next((step for step in sweep.steps if step.finite and any(not sent[2] for sent in step.sent)), None)
        if bad and bad_step is not None:
            for one in bad:
                yield one.leaf, _backward_origin(story, sweep, bad_step, story.called(one.leaf))
            return
    if not story.watch.sweeps:
        for mark, subject in story.latest.items():
            if subject.name and not story.entries[mark].finite and story.entries[mark].role != "leaf":
                found = _forward_origin(story, mark)
                if found is not None:
                    yield mark, found
                    return


def _forward_origin(story: Story, root: int) -> Finding | None:
    """The first operation above a value that made something not finite of finite operands.

    An infinity that became finite again counts too, unless it is a mask.
    """
    seen, waiting, origins = {root}, [(root, True)], []
    while waiting:
        mark, joined = waiting.pop()
        entry = story.entries[mark]
        if not entry.finite and (entry.calm or not entry.inputs):
            if joined or (entry.inputs and kind_of(entry.name) not in MASKS):
                origins.append(entry)
        for below in entry.inputs:
            if below not in seen:
                seen.add(below)
                waiting.append((below, joined and not story.entries[below].finite))
    if not origins:
        return None
    first = min(origins, key=lambda entry: entry.mark)
    what = word(first)
    if first.role == "leaf":
        name = story.called(first.mark)
        return story.find(
            "nan-data", name, first.line, f"$it holds {what} from the start; it is first used at {story.at(first.line)}"
        )
    return story.find(
        "nan-forward",
        story.called(root),
        first.line,
        f"$it is not finite: the first {what} appears in {first.name} at {story.at(first.line)}",
        node=first.name,
        operands=[story.called(mark) for mark in first.inputs],
    )


def word(entry: Entry) -> str:
    """NaN or inf."""
    if entry.value is None:
        return "NaN or inf"
    return "NaN" if bool((entry.value != entry.value).any()) else "inf"


def _backward_origin(story: Story, sweep: Sweep, step: Step, subject: str) -> Finding:
    branch = next((one for one in sweep.steps if kind_of(one.name) in ("Where", "MaskedFill") and one.norm), None)
    if step.stuck and branch is not None:
        return story.find(
            "nan-branch",
            subject,
            step.line,
            f"$it.grad is NaN: {step.name} at {story.at(step.line)} multiplies an infinite slope by the zero gradient "
            f"of a branch that was not taken at {story.at(branch.line)}",
            node=step.name,
            branch=None if branch.line is None else branch.line.number,
        )
    how = "an infinite slope times a gradient of zero" if step.stuck else "the slope is not finite there"
    return story.find(
        "nan-backward",
        subject,
        step.line,
        f"$it.grad is not finite: on the way back the first NaN or inf appears in {step.name} at {story.at(step.line)} "
        f"({how})",
        node=step.name,
    )


# --- vanishing and exploding --------------------------------------------------------------------------------


def faded(story: Story, mark: int) -> Finding | None:
    """A gradient that is next to nothing beside what the backward started with."""
    sweep, one = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or one is None or not sweep.steps or not one.norm > 0:
        return None
    largest = max((r.norm for r in sweep.reached if r.finite), default=0.0)
    if not (one.norm < TINY * sweep.steps[0].norm or (one.norm < SMALL_BESIDE * largest and one.norm < SMALL_BESIDE)):
        return None
    way = strongest_way(story, sweep, mark)
    start = next((i for i in range(len(way)) if all(way[i][2] > 2 * later[2] for later in way[i + 1 :])), 0)
    sharpest = max(range(len(way)), key=lambda i: way[i][0].norm / max(way[i][2], 1e-300))
    flat = flat_reason(way[sharpest][0].name) == "saturated" and way[sharpest][0].norm > 1e6 * way[sharpest][2]
    at = way[sharpest if flat else start][0]
    reason, how = ("saturated", "it is flat there") if flat else ("vanishing", f"{len(way)} operations on the way")
    if not flat and way[sharpest][0].norm > 1e6 * way[sharpest][2]:
        at, reason, how = way[sharpest][0], "flat", "almost all of it in this operation"
    return story.find(
        reason,
        story.called(mark),
        at.line,
        f"$it.grad has norm {one.norm:.3g}: it vanishes from {at.name} at {story.at(at.line)} on ({how})",
        norm=one.norm,
        norms=shown(way),
    )


def blown_up(story: Story, mark: int) -> Finding | None:
    """A gradient that grew without measure on its way."""
    sweep, one = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or one is None or not sweep.steps or one.norm <= HUGE * max(sweep.steps[0].norm, 1e-300):
        return None
    way = strongest_way(story, sweep, mark)
    start = next((i for i in range(len(way)) if way[i][2] > 2 * way[i][0].norm), 0)
    at = way[start][0]
    return story.find(
        "exploding",
        story.called(mark),
        at.line,
        f"$it.grad has norm {one.norm:.3g}: it grows from {at.name} at {story.at(at.line)} on",
        norm=one.norm,
        norms=shown(way),
    )


def worst(story: Story, group: list[tuple[int, Finding]]) -> tuple[int, Finding]:
    """Of tensors with the same trouble the one that has most of it; the others by their names."""
    at, one = max(group, key=lambda pair: abs(math.log(pair[1].evidence["norm"])))
    if len(group) == 1:
        return at, one
    others = [story.called(mark) for mark, _ in group if mark != at]
    told = f"{one.message}; so it is with {len(others)} other{'s' if len(others) > 1 else ''}"
    return at, one._replace(message=told, evidence={**one.evidence, "others": others})


def strongest_way(story: Story, sweep: Sweep, mark: int) -> list[tuple[Step, tuple[str, int], float]]:
    """The way from the loss to a leaf along which most arrived: node, where to, norm of what it sent."""
    way: list[tuple[Step, tuple[str, int], float]] = []
    target: tuple[str, int] = ("leaf", mark)
    while True:
        senders = story.senders(sweep, target)
        if not senders:
            return way[::-1]
        step, norm = max(senders, key=lambda pair: pair[1])
        way.append((step, target, norm))
        target = ("node", step.seq)


def shown(way: list[tuple[Step, tuple[str, int], float]]) -> list[dict[str, Any]]:
    """The norms on a way, at most a dozen of them."""
    rows = [
        {"node": s.name, "line": s.line.number if s.line else None, "arrived": s.norm, "sent": n} for s, _, n in way
    ]
    if len(rows) <= STEPS_SHOWN:
        return rows
    every = (len(rows) - 1) / (STEPS_SHOWN - 1)
    return [rows[round(i * every)] for i in range(STEPS_SHOWN)]


# --- dead units ---------------------------------------------------------------------------------------------


def dead_units(story: Story) -> Iterator[Finding]:
    """Activations of which most units are zero for every row of every batch."""
    layers: dict[tuple[Any, int, int], Any] = {}
    rows: dict[tuple[Any, int, int], int] = {}
    turn: dict[tuple[Any, int], int] = {}
    for entry in story.entries.values():
        if entry.zeros is None or entry.inside or entry.seq is None:
            continue
        at = turn.get((entry.line, entry.sweeps), 0)  # several layers may run in one line
        turn[entry.line, entry.sweeps] = at + 1
        key = (entry.line, at, len(entry.zeros))
        layers[key] = entry.zeros & layers[key] if key in layers else entry.zeros
        rows[key] = rows.get(key, 0) + (entry.shape[0] if len(entry.shape) > 1 else 1)
    for (line, at, _), zeros in layers.items():
        share = float(zeros.mean())
        if share >= DEAD_SHARE and rows[line, at, len(zeros)] > 1 and len(zeros) > 1:
            yield story.find(
                "dead-relu",
                None,
                line,
                f"{int(zeros.sum())} of {len(zeros)} units of the relu at {story.at(line)} are zero for every input: "
                "no gradient passes them",
                share=share,
                units=len(zeros),
            )
