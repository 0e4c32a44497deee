"""Gradients that vanish or explode on their way: where it begins, and which operation does most of it."""

from __future__ import annotations

import ast
import math
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from gradcli.base.results.findings import AtNode, GradientPath, NodeNorm
from gradcli.recording.runs.source_lines import whole_line
from gradcli.recording.runs.source_tree import dotted
from gradcli.why import edits
from gradcli.why.gradients.not_finite import operation
from gradcli.why.gradients.zeros import single
from gradcli.why.readings import flat_reason, kind_of, reads
from gradcli.why.story import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding
    from gradcli.recording.runs.tensors import BackwardRecord, Entry, Reached, Step
    from gradcli.why.story import Story

    Way = list[tuple[Step, tuple[str, int], float]]

TINY, SMALL_BESIDE, HUGE = 1e-9, 1e-7, 1e6
STEPS_SHOWN = 12
LEAST, ROUNDING = 3, 1e-5  # steps with the same loss; how much of a gradient may be left of what cancels
NORMALISED = 1e-2  # the same behind a normalisation, which adds eps to the variance


def extremes(story: Story, wanted: set[int]) -> Iterator[tuple[int, Finding]]:
    """Gradients that are next to nothing, or much too large; tensors with the same trouble as one finding."""
    extremes: dict[tuple[str, int | None], list[tuple[int, Finding]]] = {}
    for mark, subject in story.latest.items():
        if subject.grad == "fine":
            sweep, grad = story.arrivals.get(mark, [(None, None)])[-1]
            if sweep is None or grad is None or not sweep.steps or not grad.norm > 0:
                continue
            faint = faded(story, mark, sweep, grad) or blown_up(story, mark, sweep, grad)
            if faint is not None and (faint.reason != "flat" or mark in wanted):  # near a minimum all is well
                extremes.setdefault((faint.reason, faint.line), []).append((mark, faint))
    for group in extremes.values():
        yield worst(story, [(mark, finding) for mark, finding in group if not wanted or mark in wanted] or group)


def constant(story: Story) -> Iterator[tuple[None, Finding]]:
    """A loss that is the same whatever the weights are: on the way back the gradients cancel up to rounding."""
    sweeps = [s for s in story.watch.sweeps if s.accumulate and s.steps and len(s.roots) == 1]
    norms = [[grad.norm for grad in s.reached if grad.leaf in story.held] for s in sweeps]
    if len(sweeps) < LEAST or not all(norms):
        return
    values = [story.entries[sweep.roots[0][0]].value for sweep in sweeps]
    equal = [pair for pair in takewhile(bool, (same_operands(story, sweep.roots[0][0]) for sweep in sweeps)) if pair]
    if len(equal) == len(sweeps) and max(map(max, norms)) <= ROUNDING:
        yield None, of_equal(story, *equal[-1], len(sweeps))
        return
    places = [place for place in takewhile(bool, (cancelling(story, sweep) for sweep in sweeps)) if place]
    entry = story.result(places[-1].seq) if places else None
    if len(places) < len(sweeps) or any(value is None for value in values) or (entry is not None and single(entry)):
        return
    if max(values) - min(values) <= ROUNDING * max(map(abs, [*values, 1.0])):
        root, largest = story.entries[sweeps[-1].roots[0][0]], max(map(max, norms))
        line, above = root.line, map(story.entries.__getitem__, sorted(story.ancestors_of(root.mark)))
        lost = (e for e in above if e.dtype == "float16" and e.calm and e.inputs and not e.finite)
        if (first := next((e for e in lost if not reads(e.name, "masks")), None)) is not None:
            yield None, operation(story, first, root.mark, f"$it is {float(values[-1]):.4g} in each step")
            return
        message = f"the loss of {story.at(line)} is {float(values[-1]):.4g} in each of {len(sweeps)} steps: "
        message += f"the gradients of all weights cancel (norm {largest:.1g}) in {story.doing_step(places[-1])}"
        yield None, story.find("constant-loss", None, line, message, AtNode(places[-1].name))


def same_operands(story: Story, root: int) -> tuple[Entry, list[Entry]] | None:
    """A difference of two equal values that were computed from the same parameters, on the way to a root."""
    for mark in walk([root], story.operands):
        entry = story.entries[mark]
        below = [story.entries[each] for each in entry.inputs]
        if len(below) != 2 or entry.size.norm != 0 or not reads(entry.name, "compares") or entry.inside:
            continue
        norms, trained = {each.size.norm for each in below}, [story.held & story.ancestors_of(e.mark) for e in below]
        if len(norms) == 1 and 0 not in norms and trained[0] and trained[0] == trained[1]:
            return entry, below
    return None


def of_equal(story: Story, entry: Entry, below: list[Entry], count: int) -> Finding:
    """The finding about a difference that is always zero."""
    first, second = (story.called(each.mark) for each in below)
    message = f"{story.doing(entry)} compares {first} with {second}: both come from the same parameters and are equal "
    message += f"in each of {count} steps, so no gradient is left"
    fix, patch, line = "give one of them parameters of its own: copy.deepcopy(model)", None, entry.line
    models = {story.called(mark).partition(".")[0] for mark in story.held}
    names = [n for n in ast.walk(story.main.root) if isinstance(n, ast.Assign) and dotted(n.value) in models]
    if below[0] is below[1]:
        fix = "compare the output with its target: give them different names"
    elif all(each.requires for each in below):
        fix = f"detach() the one that is to stay as it was: `{second.strip('`')}.detach()`"
        patch = edits.operand_patch(story, line, second, ".detach()")
    elif names:
        line = whole_line(story.path, names[0].lineno)
        fix += f"; `{story.main.source(names[0])}` at line {names[0].lineno} only gives the model a second name"
    return story.find("constant-loss", None, line, message, AtNode(entry.name), fix=fix, patches=(patch,))


def cancelling(story: Story, sweep: BackwardRecord) -> Step | None:
    """The node that turned what arrived, or what several others sent to it, into rounding errors for all parameters."""
    largest = max(step.norm for step in sweep.steps)
    left = max(grad.norm for grad in sweep.reached if grad.leaf in story.held)
    for step in sweep.steps:
        rest = NORMALISED if reads(step.name, "normalises") else ROUNDING
        if left > rest * largest:
            continue
        sent = max((each.size.norm for each in step.sent), default=0.0)
        keeps = (rest == NORMALISED or kind_of(step.name) == "Softmax") and sent <= rest * step.norm
        came = [norm for _, norm in story.senders(sweep, ("node", step.seq))]
        if (keeps and step.norm > ROUNDING * largest) or (len(came) > 1 and step.norm <= ROUNDING * max(came)):
            return step
    return None


def faded(story: Story, mark: int, sweep: BackwardRecord, grad: Reached) -> Finding | None:
    """A gradient that is next to nothing beside what the backward started with."""
    largest = max((r.norm for r in sweep.reached if r.finite), default=0.0)
    sent = [norm for _, norm in story.senders(sweep, ("leaf", mark))]
    if len(sent) > 1 and grad.norm < ROUNDING * max(sent):  # what its several uses send cancels, as it should
        return None
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
    message = f"$it.grad has norm {grad.norm:.3g}: it vanishes from {story.doing_step(at)} onwards ({how})"
    return story.find(reason, story.called(mark), at.line, message, GradientPath(norm=grad.norm, norms=norms_on(way)))


def blown_up(story: Story, mark: int, sweep: BackwardRecord, grad: Reached) -> Finding | None:
    """A gradient that grew without measure on its way."""
    begun = sweep.steps[0]
    scaled = max((sent.size.norm for sent in begun.sent), default=0.0) if story.scaling(sweep) is not None else 0.0
    if grad.norm <= HUGE * max(begun.norm, scaled, 1e-300):
        return None
    way = strongest_way(story, sweep, mark)
    growing = [i for i in range(len(way)) if way[i][2] > 2 * way[i][0].norm]
    start = next((i for i in growing if not reads(way[i][0].name, "spreads")), growing[0] if growing else 0)
    at = way[start][0]
    message = f"$it.grad has norm {grad.norm:.3g}: it grows from {story.doing_step(at)} onwards "
    message += f"({len(way)} operations on the way{mostly(way, 1)})"
    evidence = GradientPath(norm=grad.norm, norms=norms_on(way))
    return story.find("exploding", story.called(mark), at.line, message, evidence)


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


def strongest_way(story: Story, sweep: BackwardRecord, mark: int) -> Way:
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
