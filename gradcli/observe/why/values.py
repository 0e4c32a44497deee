"""Why a gradient is zero, not finite, vanishing or exploding, or a sum of several; units that are dead, graphs kept."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.observe.why.story import flat_reason, kind_of, reads, walk
from gradcli.results.findings import (
    Accumulated,
    AtNode,
    Branch,
    DeadUnits,
    GradientPath,
    Growth,
    Histories,
    Masked,
    NodeNorm,
    Operands,
    Retained,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.observe.source_lines import Line
    from gradcli.observe.tensors import Entry, Reached, Step, Sweep
    from gradcli.observe.why.story import Story
    from gradcli.results.findings import Finding

    Way = list[tuple[Step, tuple[str, int], float]]


TINY, SMALL_BESIDE, HUGE = 1e-9, 1e-7, 1e6
STEPS_SHOWN = 12


def faded(story: Story, mark: int) -> Finding | None:
    """A gradient that is next to nothing beside what the backward started with."""
    sweep, grad = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or grad is None or not sweep.steps or not grad.norm > 0:
        return None
    largest = max((r.norm for r in sweep.reached if r.finite), default=0.0)
    if not grad.norm < max(SMALL_BESIDE * min(largest, 1.0), TINY * sweep.steps[0].norm):
        return None
    way = strongest_way(story, sweep, mark)
    first = next((i for i in range(len(way)) if not reads(way[i][0].name, "spreads")), 0)
    start = next((i for i in range(first, len(way)) if all(way[i][2] > 2 * later[2] for later in way[i + 1 :])), first)
    sharpest = max(range(len(way)), key=lambda i: way[i][0].norm / max(way[i][2], 1e-300))
    flat = flat_reason(way[sharpest][0].name) == "saturated" and way[sharpest][0].norm > 1e6 * way[sharpest][2]
    at = way[sharpest if flat else start][0]
    reason, how = ("saturated", "it is flat there") if flat else ("vanishing", f"{len(way)} operations on the way")
    if not flat and way[sharpest][0].norm > 1e6 * way[sharpest][2]:
        at, reason, how = way[sharpest][0], "flat", "almost all of it in this operation"
        onwards = way[sharpest][1][0] == "node"  # to a bias, sums may cancel out; that is no trouble
        if onwards and reads(at.name, "mixes") and len({sent.to for sent in at.sent}) == len(at.sent):
            reason, how = "vanishing", f"{how}: the matrix that it multiplies by is nearly zero"
    elif not flat:
        how += mostly(way, -1)
    message = f"$it.grad has norm {grad.norm:.3g}: it vanishes from {at.name} at {story.at(at.line)} onwards ({how})"
    return story.find(reason, story.called(mark), at.line, message, GradientPath(norm=grad.norm, norms=norms_on(way)))


def blown_up(story: Story, mark: int) -> Finding | None:
    """A gradient that grew without measure on its way."""
    sweep, grad = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or grad is None or not sweep.steps or grad.norm <= HUGE * max(sweep.steps[0].norm, 1e-300):
        return None
    way = strongest_way(story, sweep, mark)
    growing = [i for i in range(len(way)) if way[i][2] > 2 * way[i][0].norm]
    start = next((i for i in growing if not reads(way[i][0].name, "spreads")), growing[0] if growing else 0)
    at = way[start][0]
    message = (
        f"$it.grad has norm {grad.norm:.3g}: it grows from {at.name} at {story.at(at.line)} onwards "
        f"({len(way)} operations on the way{mostly(way, 1)})"
    )
    return story.find(
        "exploding", story.called(mark), at.line, message, GradientPath(norm=grad.norm, norms=norms_on(way))
    )


def mostly(way: Way, sign: int) -> str:
    """Which operation did most of the growing (1) or shrinking (-1), where it did so several times."""
    parts: dict[tuple[str, Any], list[float]] = {}
    for step, _, sent in way:
        if step.norm > 0 and sent > 0:
            line = step.line.number if step.line else None
            parts.setdefault((step.name, line), []).append(sign * math.log(sent / step.norm))
    if not parts:
        return ""
    (name, line), logs = max(parts.items(), key=lambda pair: sum(pair[1]))
    if len(logs) < 2 or max(logs) > sum(logs) / 2 or line is None:
        return ""
    each = math.exp(sign * sum(logs) / len(logs))
    return f", most of it in {name} at line {line}: {len(logs)} times, each by about {each:.2g}"


def worst(story: Story, group: list[tuple[int, Finding]]) -> tuple[int, Finding]:
    """Of tensors with the same trouble the one that has most of it; the others by their names."""
    at, finding = max(group, key=lambda pair: abs(math.log(path_of(pair[1]).norm)))
    if len(group) == 1:
        return at, finding
    others = tuple(story.called(mark) for mark, _ in group if mark != at)
    message = f"{finding.message}; the same holds for {len(others)} other{'s' if len(others) > 1 else ''}"
    return at, finding._replace(message=message, evidence=path_of(finding)._replace(others=others))


def path_of(finding: Finding) -> GradientPath:
    """The path of a gradient that vanished or exploded."""
    assert isinstance(finding.evidence, GradientPath)
    return finding.evidence


def strongest_way(story: Story, sweep: Sweep, mark: int) -> Way:
    """The way from the loss to a leaf along which most arrived: node, where to, norm of what it sent."""
    way: Way = []
    target: tuple[str, int] = ("leaf", mark)
    while True:
        senders = story.senders(sweep, target)
        if not senders:
            return way[::-1]
        step, norm = max(senders, key=lambda pair: pair[1])
        way.append((step, target, norm))
        target = ("node", step.seq)


def norms_on(way: Way) -> tuple[NodeNorm, ...]:
    """The norms on a way, at most a dozen of them."""
    rows = tuple(NodeNorm(s.name, s.line.number if s.line else None, s.norm, n) for s, _, n in way)
    if len(rows) <= STEPS_SHOWN:
        return rows
    every = (len(rows) - 1) / (STEPS_SHOWN - 1)
    return tuple(rows[round(i * every)] for i in range(STEPS_SHOWN))


QUIET = {"flat", "times-zero", "not-selected"}  # ordinary zeros: reported only for a tensor that you name
DEAD_SHARE = 0.5
GROWN = 1e3  # times: gradients that grew so much from update to update diverge


def values(story: Story, wanted: set[int]) -> Iterator[tuple[int | None, Finding]]:
    """Findings about gradients that are there."""
    yield from not_finite(story)
    extremes: dict[tuple[str, int | None], list[tuple[int, Finding]]] = {}
    for mark, subject in story.latest.items():
        if subject.grad == "zero":
            looks = [event.kind for event in story.timeline(mark) if event.kind in ("none", "zero", "read")]
            for finding in zero(story, mark):
                if mark in wanted or looks[-1:] == ["zero"] or finding.reason not in QUIET:
                    yield mark, finding
        elif subject.grad == "fine":
            for end in story.side_ends(mark) if mark in wanted else ():
                message = f"$it.grad misses a part of the loss: {end.what} at {story.at(end.line)}"
                yield mark, story.find("partly", story.called(mark), end.line, message)
            faint = faded(story, mark) or blown_up(story, mark)
            if faint is not None and (faint.reason != "flat" or mark in wanted):  # near a minimum all is well
                extremes.setdefault((faint.reason, faint.line), []).append((mark, faint))
    for group in extremes.values():
        yield worst(story, [(mark, finding) for mark, finding in group if not wanted or mark in wanted] or group)
    for finding in [*dead_units(story), *pairs(story)]:
        yield None, finding


# --- zero ---------------------------------------------------------------------------------------------------


def zero(story: Story, mark: int) -> Iterator[Finding]:
    """Why all entries of a gradient are zero."""
    name = story.called(mark)
    events = [event for event in story.timeline(mark) if event.kind in ("added", "zeroed", "dropped")]
    if events and events[-1].kind == "zeroed":
        looked = [event for event in story.timeline(mark) if event.kind in ("zero", "none", "read")]
        if any(event.kind == "added" for event in events) and looked and looked[-1].kind == "zero":
            line = events[-1].line
            message = f"$it.grad is zero: backward filled it, then it was set to zero at {story.at(line)}"
            yield story.find("zeroed", name, line, message)
        return
    if mark not in story.arrivals:
        return
    sweep = story.arrivals[mark][-1][0]
    seen: set[tuple[str, Any]] = set()
    for step in stoppers(story, sweep, mark):
        reason = flat_reason(step.name)
        if (reason, step.line) not in seen:
            seen.add((reason, step.line))
            message = f"$it.grad is zero: {step.name} at {story.at(step.line)} passes no gradient on"
            yield story.find(reason, name, step.line, message, AtNode(step.name))
    for node, at in () if seen else hooked(story, sweep, mark):
        seen.add(("hook", at))
        yield story.find("hook", name, at, f"$it.grad is zero: a hook set it to zero, before {node} at {story.at(at)}")
    if not seen:
        yield story.find("flat", name, sweep.line, "$it.grad is zero: the gradients along its different paths cancel")


def stoppers(story: Story, sweep: Sweep, mark: int) -> list[Step]:
    """The nodes that received something and sent only zeros towards a leaf."""

    def onward(target: tuple[str, int]) -> list[tuple[str, int]]:
        return [("node", step.seq) for step, _ in story.senders(sweep, target) if step.norm == 0]

    targets = walk([("leaf", mark)], onward)
    return [step for target in targets for step, norm in story.senders(sweep, target) if step.norm > 0 and norm == 0]


def hooked(story: Story, sweep: Sweep, mark: int) -> Iterator[tuple[str, Line | None]]:
    """The nodes above a leaf at which only zeros arrived although something was sent to them."""
    steps = {step.seq: step for step in sweep.steps}

    def onward(target: tuple[str, int]) -> list[tuple[str, int]]:
        return [("node", step.seq) for step, _ in story.senders(sweep, target)]

    for target in walk([("leaf", mark)], onward):
        senders = story.senders(sweep, target)
        if target[0] == "node" and steps[target[1]].norm == 0 and any(norm > 0 for _, norm in senders):
            yield steps[target[1]].name, steps[target[1]].line
        elif target[0] == "leaf" and len(senders) == 1 and senders[0][1] > 0:
            yield "the leaf", senders[0][0].line


# --- NaN and infinity ---------------------------------------------------------------------------------------


def not_finite(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Where the first NaN or infinity comes from that reached a loss or a gradient."""
    for number, sweep in enumerate(story.watch.sweeps, 1):
        for root, _, finite in sweep.roots:
            if not finite:
                finding = _forward_origin(story, root)
                if finding is not None:
                    yield root, finding
                    return
        bad = [grad for grad in sweep.reached if not grad.finite]
        if bad and all(_skipped(story, number, grad.leaf) for grad in bad):
            continue
        bad_step = next(
            (step for step in sweep.steps if step.finite and any(not sent.size.finite for sent in step.sent)), None
        )
        if bad and bad_step is None:
            spoilt = next(
                (s for s in sweep.steps if not s.finite and _sent_finite(story, sweep, ("node", s.seq))), None
            )
            for grad in bad:
                at, node = (spoilt.line, spoilt.name) if spoilt is not None else (sweep.line, "the leaf")
                message = f"$it.grad is not finite: a hook made it non-finite, before {node} at {story.at(at)}"
                yield grad.leaf, story.find("hook", story.called(grad.leaf), at, message)
            return
        if bad and bad_step is not None:
            for grad in bad:
                yield grad.leaf, _backward_origin(story, sweep, bad_step, story.called(grad.leaf))
            return
    if not story.watch.sweeps:
        for mark, subject in story.latest.items():
            if subject.name and not story.entries[mark].finite and story.entries[mark].role != "leaf":
                finding = _forward_origin(story, mark)
                if finding is not None:
                    yield mark, finding
                    return


def _skipped(story: Story, number: int, leaf: int) -> bool:
    """Whether an optimizer left out the step after a backward and made later ones, as under a GradScaler."""
    steps = [event.sweeps for event in story.timeline(leaf) if event.kind == "changed" and event.name == "step"]
    return number not in steps and any(at > number for at in steps)


def _sent_finite(story: Story, sweep: Sweep, target: tuple[str, int]) -> bool:
    """Whether something was sent to a node, and all of it was finite."""
    senders = story.senders(sweep, target)
    return bool(senders) and all(norm - norm == 0 for _, norm in senders)


def _forward_origin(story: Story, root: int) -> Finding | None:
    """The first operation above a value that made something not finite of finite operands.

    An infinity that became finite again counts too, unless it is a mask.
    """
    masked = _masked_above(story, root)
    if masked is not None:
        return _masked_rows(story, masked, story.called(root), "$it is not finite")
    seen, waiting, origins = {root}, [(root, True)], []
    while waiting:
        mark, joined = waiting.pop()
        entry = story.entries[mark]
        if not entry.finite and (entry.calm or not entry.inputs):
            if joined or (entry.inputs and not reads(entry.name, "masks")):
                origins.append(entry)
        for below in entry.inputs:
            if below not in seen:
                seen.add(below)
                waiting.append((below, joined and not story.entries[below].finite))
    if not origins:
        return None
    first = min(origins, key=lambda entry: entry.mark)
    what = word(first)
    if first.spoilt is not None:
        name, line = story.called(first.mark), first.spoilt
        if first.mark in story.watch.optimised or (first.requires and story.arrivals.get(first.mark)):
            message = f"$it became NaN or inf in the update at {story.at(line)}: the preceding steps were too large"
            return story.find("diverged", name, line, message)
        return story.find("nan-data", name, line, f"NaN or inf was written into $it at {story.at(line)}")
    grown = _grown(story, root)
    if grown is not None and first.role != "leaf":
        leaf, before, after, count = grown
        message = f"$it is not finite after {count} updates: the gradient of {story.called(leaf)} had grown from norm "
        message += f"{before:.3g} to {after:.3g}; the first {what} appears in {first.name} at {story.at(first.line)}"
        return story.find("diverged", story.called(root), first.line, message, Growth(first.name, (before, after)))
    if first.role == "leaf":
        name = story.called(first.mark)
        return story.find(
            "nan-data", name, first.line, f"$it holds {what} from the start; it is first used at {story.at(first.line)}"
        )
    message = f"$it is not finite: the first {what} appears in {first.name} at {story.at(first.line)}"
    if first.dtype == "float16" and what != "NaN" and _linear(first.name):
        message += ", whose result is too large for float16"
        return story.find("overflow", story.called(root), first.line, message, AtNode(first.name))
    operands = Operands(first.name, tuple([story.called(mark) for mark in first.inputs]))
    return story.find("nan-forward", story.called(root), first.line, message, operands)


def _masked_above(story: Story, root: int) -> Entry | None:
    """The first softmax with rows that are masked throughout above a value, along NaN only."""
    entries = story.entries

    def onward(mark: int) -> tuple[int, ...]:
        return () if entries[mark].finite or word(entries[mark]) == "inf" else entries[mark].inputs

    reached = [entries[mark] for mark in walk([root], onward)]
    softmaxes = [entry for entry in reached if entry.masked is not None and not entry.finite and word(entry) != "inf"]
    return min(softmaxes, key=lambda entry: entry.mark, default=None)


def _masked_rows(story: Story, entry: Entry, subject: str, lead: str) -> Finding:
    """A softmax that has nothing to choose from in some rows, and where they were masked."""
    assert entry.masked is not None
    rows, of = entry.masked
    mask = _mask_of(story, entry)
    by = f", masked at {story.at(mask)}" if mask is not None and mask != entry.line else ""
    where = f"{rows} of the {of} rows" if of > 1 else "the only row"
    message = (
        f"{lead}: {where} of {entry.name} at {story.at(entry.line)} {'is' if rows == 1 else 'are'} -inf throughout"
        f"{by}; the softmax of such a row is NaN"
    )
    evidence = Masked(entry.name, rows, of, None if mask is None else mask.number)
    return story.find("masked-row", subject, entry.line, message, evidence)


def _mask_of(story: Story, softmax: Entry) -> Line | None:
    """The line on which scores became -inf: the nearest operation above with operands that were finite."""
    seen, waiting = {softmax.mark}, [softmax]
    while waiting:
        following = []
        for entry in waiting:
            below = [story.entries[mark] for mark in entry.inputs]
            if entry is not softmax and any(operand.finite for operand in below):
                return entry.line
            fresh = [operand for operand in below if not operand.finite and operand.mark not in seen]
            seen.update(operand.mark for operand in fresh)
            following += fresh
        if not following:
            return waiting[0].line
        waiting = following
    return None


def _grown(story: Story, root: int) -> tuple[int, float, float, int] | None:
    """The leaf whose gradient grew most from update to update before a loss, and by how much, if that is a lot."""
    largest = None
    for leaf in story.leaves_above(root):
        norms = [grad.norm for _, grad in story.arrivals.get(leaf, []) if grad.finite and grad.norm > 0]
        sweeps = story.entries[root].sweeps
        moved = sum(event.kind == "changed" and event.sweeps <= sweeps for event in story.timeline(leaf))
        if len(norms) >= 2 and moved and norms[-1] > GROWN * norms[0]:
            if largest is None or norms[-1] > largest[2]:
                largest = (leaf, norms[0], norms[-1], moved)
    return largest


def _linear(node: str) -> bool:
    """Whether the result and the slope of a node are finite for finite operands, unless they are too large."""
    words = ("mixes", "spreads", "times-zero")
    return node.startswith("ToCopy") or (not node.startswith("Div") and any(reads(node, word) for word in words))


def word(entry: Entry) -> str:
    """NaN or inf."""
    if entry.value is None:
        return "NaN or inf"
    return "NaN" if bool((entry.value != entry.value).any()) else "inf"


def _backward_origin(story: Story, sweep: Sweep, step: Step, subject: str) -> Finding:
    results = [entry for entry in story.entries.values() if entry.seq == step.seq]
    masked = next((entry for entry in results if entry.masked is not None), None)
    if masked is not None:
        return _masked_rows(story, masked, subject, "$it.grad is NaN")
    branch = next((other for other in sweep.steps if reads(other.name, "branches") and other.norm), None)
    if step.stuck and branch is not None:
        message = (
            f"$it.grad is NaN: {step.name} at {story.at(step.line)} multiplies an infinite slope by the zero gradient "
            f"of a branch that was not taken at {story.at(branch.line)}"
        )
        evidence = Branch(step.name, None if branch.line is None else branch.line.number)
        return story.find("nan-branch", subject, step.line, message, evidence)
    formats = [story.entries[mark].dtype for entry in results[:1] for mark in entry.inputs]
    if formats and _linear(step.name) and ("float16" in formats or step.name.startswith("ToCopy")):
        small = "float16" if "float16" in formats else formats[0]
        message = f"$it.grad is not finite: the gradient of {story.at(step.line)} is too large for {small}"
        return story.find("overflow", subject, step.line, message, AtNode(step.name))
    how = "an infinite slope times a gradient of zero" if step.stuck else "the slope is not finite there"
    message = (
        f"$it.grad is not finite: in backward the first NaN or inf appears in {step.name} at {story.at(step.line)} "
        f"({how})"
    )
    return story.find("nan-backward", subject, step.line, message, AtNode(step.name))


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
        zeros = np.asarray(entry.zeros, dtype=bool)
        key = (entry.line, at, len(zeros))
        layers[key] = zeros & layers[key] if key in layers else zeros
        rows[key] = rows.get(key, 0) + (entry.shape[0] if len(entry.shape) > 1 else 1)
    for (line, at, _), zeros in layers.items():
        share = float(zeros.mean())
        if share >= DEAD_SHARE and rows[line, at, len(zeros)] > 1 and len(zeros) > 1:
            message = (
                f"{int(zeros.sum())} of {len(zeros)} units of the relu at {story.at(line)} are zero for every input: "
                "no gradient passes them"
            )
            yield story.find("dead-relu", None, line, message, DeadUnits(share=share, units=len(zeros)))


# --- pairs --------------------------------------------------------------------------------------------------


def pairs(story: Story) -> Iterator[Finding]:
    """Differences of N outputs and N targets that broadcasting made N * N, as for shapes (N, 1) and (N,)."""
    seen: set[Line | None] = set()
    for mark in walk(story.roots(), story.operands):
        entry = story.entries[mark]
        if not reads(entry.name, "compares") or len(entry.inputs) != 2 or entry.line in seen:
            continue
        column, row = sorted((story.entries[read] for read in entry.inputs), key=lambda operand: -len(operand.shape))
        count = math.prod(row.shape)
        if column.shape != (count, 1) or row.shape != (count,) or count < 2 or column.requires == row.requires:
            continue
        if kind_of(column.name) == "Unsqueeze":  # x[:, None] - y: every pair is meant
            continue
        seen.add(entry.line)
        message = (
            f"{story.at(entry.line)} compares each of {count} entries with all {count}: "
            f"{entry.name} broadcasts shapes ({count}, 1) and ({count},) to ({count}, {count})"
        )
        yield story.find("broadcast", None, entry.line, message, AtNode(entry.name))


LOOP = 3  # backwards at one line that make a loop


def memory(story: Story, wanted: set[int]) -> Iterator[tuple[int | None, Finding]]:
    """Findings about what adds up."""
    for mark, subject in story.latest.items():
        if subject.leaf and subject.grad != "none":
            finding = added_up(story, mark, mark in wanted)
            if finding is not None:
                yield mark, finding
    for finding in [*kept_graphs(story), *histories(story)]:
        yield None, finding


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
    parts = [grad for _, grad in story.arrivals.get(mark, [])][-count:] if count else []
    equal = len(parts) > 1 and all(same(part, parts[0]) for part in parts)
    left_out = (
        count >= LOOP and story.watch.subjects[mark].parameter and mark not in story.zeroed and bool(story.zeroed)
    )
    if not (stale or equal or asked or left_out):
        return None
    line = lines[-1] if lines else None
    total = most if stale else count
    evidence = Accumulated(backwards=total, factor=count)
    steps = [event.line for event in story.watch.events if (event.kind, event.name) == ("changed", "step")]
    if left_out and not stale and steps and mark not in story.watch.optimised:
        line = steps[-1]
        message = f"$it is not among the parameters that the optimizer moves at {story.at(line)}: "
        message += f"its .grad is the sum of {total} backwards"
        return story.find("not-optimised", story.called(mark), line, message, evidence)
    if equal:
        message = (
            f"$it.grad is {count} times the gradient of one backward: {count} of them added up, never zeroed in between"
        )
    else:
        message = f"$it.grad is the sum of {total} backwards, never zeroed in between"
        message += " although the tensor changed in between" if stale else ""
        message += ", while others were" if left_out and not stale else ""
    message = f"{message}; the last is {story.at(line)}"
    return story.find("accumulated", story.called(mark), line, message, evidence)


def same(first: Reached, second: Reached) -> bool:
    """Whether two gradients are equal, as far as the record shows."""
    if first.value is not None and second.value is not None:
        return first.value.shape == second.value.shape and bool(np.array_equal(first.value, second.value))
    return first.norm == second.norm and first.probe == second.probe


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
        grows = all(before < after for before, after in pairwise(sizes))
        if grows:
            message = f"the graph that backward walks grows from {sizes[0]} to {sizes[-1]} nodes"
        elif not any(_again(story, sweep) for sweep in sweeps):
            message = "no later backward uses the graphs that it keeps"
        else:
            continue
        message = f"a loop passes retain_graph=True {len(sweeps)} times at {story.at(line)}: {message}, so memory grows"
        yield story.find("retain-graph", None, line, message, Retained(times=len(sweeps), nodes=(sizes[0], sizes[-1])))


def _again(story: Story, sweep: Sweep) -> bool:
    """Whether a later backward walked nodes of this one."""
    at = story.watch.sweeps.index(sweep)
    return any(not sweep.seqs.isdisjoint(later.seqs) for later in story.watch.sweeps[at + 1 :])


def histories(story: Story) -> Iterator[Finding]:
    """Names that hold the graphs of several losses."""
    roots = {mark for sweep in story.watch.sweeps if sweep.accumulate for mark, _, _ in sweep.roots}
    for name, holding in story.watch.holders.items():
        marks = set(holding)
        held = {mark for mark in ancestors(story, marks) if mark in roots}
        held = held or {mark for mark in marks if not story.entries[mark].shape and not used(story, mark)}
        walked = {at for mark in marks for at in story.walked.get(story.entries[mark].seq, ())[:1]}
        graphs = len(held) if len(held) >= LOOP else len(walked)
        if graphs < LOOP:
            continue
        line = story.entries[max(marks)].line
        operations = sum(1 for _ in ancestors(story, marks))
        what = (
            f"{graphs} losses alive ({operations} operations)" if graphs == len(held) else f"{graphs} backwards alive"
        )
        message = f"$it keeps the graphs of {what}; the newest was made at {story.at(line)}"
        yield story.find("history", name, line, message, Histories(graphs=graphs, operations=operations))


def used(story: Story, mark: int) -> bool:
    """Whether something was computed from a value; to show it or to copy it is no use."""
    return any(entry.role == "operation" for entry in story.users.get(mark, ()))


def ancestors(story: Story, marks: set[int]) -> Iterator[int]:
    """The values with a node that some values were made from, and these themselves."""

    def onward(mark: int) -> tuple[int, ...]:
        return () if story.entries[mark].seq is None else story.entries[mark].inputs

    return (mark for mark in walk(marks, onward) if story.entries[mark].seq is not None)
