"""Why all entries of a gradient are zero, or all rows alike: what passes nothing on, dead units, equal weights."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.results.findings import AtNode, DeadUnits
from gradcli.recording.runs.operand_notes import Units
from gradcli.recording.runs.source_tree import called, dotted
from gradcli.why import edits
from gradcli.why.gradients.hooks import changed_between
from gradcli.why.readings import flat_reason, kind_of, reads
from gradcli.why.story import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Entry, Event, Step
    from gradcli.why.story import Story


ORDINARY = {"flat", "times-zero", "not-selected", "outside-bounds", "no-path"}  # zeros that may be meant
CLAMPS = ("Clamp", "ClampMax", "ClampMin", "Hardtanh")
NEAR = 1e3  # times the smallest number
SMALLEST = {"float16": 6e-8, "bfloat16": 1e-40, "float32": 1.4e-45, "float64": 5e-324}


def zero_gradients(story: Story, wanted: set[int]) -> Iterator[tuple[int, Finding]]:
    """Findings about gradients whose entries are all zero."""
    stuck: set[int] = set()  # held by an optimizer all of whose gradients were zero in every one of several backwards
    for optimizer in story.watch.optimizers:
        arrivals = [story.arrivals.get(mark, []) for mark in optimizer.held]
        if all(len(each) > 1 and not any(grad.norm for _, grad in each) for each in arrivals):
            stuck |= set(optimizer.held)
    for mark, subject in story.latest.items():
        if subject.grad != "zero":
            continue
        looks = [event.kind for event in story.timeline(mark) if event.kind in ("none", "zero", "read")]
        for finding in zero(story, mark):
            if finding.reason == "dead-relu" and mark not in wanted:
                learned = any(grad.norm != 0 for _, grad in story.arrivals[mark])
                sweep = story.arrivals[mark][-1][0]  # a hinge is 0 where nothing is left to learn
                if learned and all(story.entries[root].size.norm == 0 for root, _, _ in sweep.roots):
                    continue
            missed, came = mark in stuck, story.arrivals.get(mark, [])
            if finding.reason == "times-zero" and len(came) > 1 and not any(grad.norm for _, grad in came):
                steps = stoppers(story, came[-1][0], mark)  # of factors that are zero, and that no step can change
                factors = {leaf for step in steps for leaf in zero_leaves(story, step)}
                still = [not any(grad.norm for _, grad in story.arrivals.get(leaf, [])) for leaf in factors]
                missed = missed or (bool(factors) and factors <= story.held and all(still))
            if mark in wanted or looks[-1:] == ["zero"] or missed or finding.reason not in ORDINARY:
                yield mark, finding


def zero(story: Story, mark: int) -> Iterator[Finding]:
    """Why all entries of a gradient are zero."""
    name = story.called(mark)
    events = [event for event in story.timeline(mark) if event.kind in ("added", "zeroed", "dropped")]
    if events and events[-1].kind == "zeroed":
        yield from zeroed(story, mark, events)
        return
    if mark not in story.arrivals:
        yield from unreached(story, mark)
        return
    sweep = story.arrivals[mark][-1][0]
    seen: set[tuple[str, Any]] = set()
    for step in stoppers(story, sweep, mark):
        finding = at_node(story, name, step, sweep)
        if (finding.reason, finding.line) not in seen:
            seen.add((finding.reason, finding.line))
            yield finding
    if not seen and not any(step.overwritten for step in sweep.steps):
        if next(changed_between(story, sweep, mark, True), None) is None:
            message = "$it.grad is zero: the gradients along its different paths cancel"
            yield story.find("flat", name, sweep.line, message)


def unreached(story: Story, mark: int) -> Iterator[Finding]:
    """Why nothing came to what JAX gives a gradient of zero for."""
    name, looks = story.called(mark), [event.kind for event in story.timeline(mark)]
    if not any(mark in (sweep.targets or ()) for sweep in story.watch.sweeps):
        return
    ends = story.ends(mark)
    if ends and ends[0].reason == "detached" and ends[0].entry.inputs == (mark,) and "zero" not in looks:
        return  # what is frozen so beside others is meant
    lost = ends[0] if ends else story.number_end(mark)
    if lost is not None:
        fix, patches = edits.of_end(story, lost)
        message = f"$it.grad is zero: {lost.what} at {story.at(lost.line)}"
        yield story.find(lost.reason, name, lost.line, message, fix=fix, patches=patches)
        return
    line = story.watch.sweeps[-1].line
    message = f"$it.grad is zero: what is differentiated at {story.at(line)} does not depend on it"
    yield story.find("no-path", name, line, message)


def zeroed(story: Story, mark: int, events: list[Event]) -> Iterator[Finding]:
    """A gradient that was filled, then set to zero before the file looked at it."""
    looked = [event for event in story.timeline(mark) if event.kind in ("zero", "none", "read")]
    lines = {event.line.number for event in events if event.kind == "zeroed" and event.line is not None}
    if any(event.kind == "added" for event in events) and looked and looked[-1].kind == "zero":
        line = events[-1].line
        if looked[-1].line is not None and looked[-1].line.number in lines:
            return  # only what zeroes it has looked
        message = f"$it.grad is zero: backward filled it, then it was set to zero at {story.at(line)}"
        yield story.find("zeroed", story.called(mark), line, message)


def at_node(story: Story, name: str, step: Step, sweep: BackwardRecord) -> Finding:
    """Why a node passed nothing on."""
    entry = story.result(step.seq)
    reason, evidence, line = flat_reason(step.name), AtNode(step.name), step.line
    passes = f"$it.grad is zero: {story.doing_step(step)} passes no gradient on"
    if reason in ("times-zero", "flat", "saturated") and too_small(story, step, entry):
        kind = "" if entry is None else entry.dtype
        message = f"$it.grad is zero: in the backward of {story.doing_step(step)} {kind} underflows: it is too small"
        return story.find("underflow", name, line, message, evidence)
    if entry is None:
        return story.find(reason, name, line, passes, evidence)
    hook = next((h for h in story.watch.hooks if h.layer is not None and h.layer is entry.layer), None)
    if step.name.startswith("BackwardHookFunction") and hook is not None:
        message = f"$it.grad is zero: the hook on {hook.layer} registered at {story.at(hook.line)} set it to zero"
        return story.find("hook", name, hook.line, message)
    if kind_of(step.name) in ("Softmax", "LogSoftmax") and single(entry):
        message = f"$it.grad is zero: {story.doing(entry)} is a softmax of one entry (shape {entry.shape}), always 1"
        return story.find("one-entry", name, line, message, evidence)
    if reason == "sampled":
        fix, patches = edits.sampled(story, entry)
        message = f"$it.grad is zero: {story.doing(entry)} draws a sample, which has no derivative for its parameters"
        return story.find("sampled", name, line, message, evidence, fix=fix, patches=patches)
    if reason == "step-function":
        fix, patches = edits.step_function(story, entry)
        return story.find(reason, name, line, f"{passes}: it is a step function", evidence, fix=fix, patches=patches)
    node = story.node(line)
    clips = isinstance(node, ast.Call) and called(node) == "clip"  # in JAX a minimum of a maximum
    if reason == "not-selected" and (clips or kind_of(step.name) in CLAMPS):
        size = math.prod(entry.shape)
        message = f"$it.grad is zero: all {size} entries lie outside the bounds of {story.doing(entry)}"
        return story.find("outside-bounds", name, line, message, evidence)
    if kind_of(step.name) == "Embedding":
        return story.find("padding", name, line, f"{passes}: every index is padding_idx", evidence)
    if reason == "dead-relu" and all(story.entries[root].size.norm == 0 for root, _, _ in sweep.roots):
        fix = "the loss itself is 0: no term is above the hinge; raise the margin, or choose harder examples"
        return story.find(reason, name, line, passes, evidence, fix=fix)
    if reason == "times-zero":
        return by_zero(story, name, step, entry)
    return story.find(reason, name, line, passes, evidence)


def too_small(story: Story, step: Step, entry: Entry | None) -> bool:
    """Whether a product vanished although no factor of it is zero."""
    if entry is None or entry.dtype not in SMALLEST or not entry.below:
        return False
    known = zip(entry.inputs, entry.below, strict=True)
    norms = [story.through(mark, "views").now.norm if size.norm != size.norm else size.norm for mark, size in known]
    least = min(norms, default=1.0)
    if least == 0 or not step.norm > 0:
        return False
    return step.norm * least < NEAR * SMALLEST[entry.dtype] or step.norm < NEAR * SMALLEST[entry.dtype]


def single(entry: Entry) -> bool:
    """Whether a softmax had one entry to choose from: all of its results are 1, or their logarithms 0."""
    norm, whole = entry.size.norm, 0.0 if "Log" in entry.name else math.sqrt(math.prod(entry.shape))
    return 1 in entry.shape[1:] and (norm != norm or math.isclose(norm, whole, rel_tol=1e-5, abs_tol=1e-6))


def by_zero(story: Story, name: str, step: Step, entry: Entry) -> Finding:
    """A product with a factor that is zero: which one, and where it became zero."""
    message = f"$it.grad is zero: {story.doing(entry)} passes no gradient on"
    leaves = zero_leaves(story, step)
    if not leaves:
        return story.find("times-zero", name, step.line, message, AtNode(step.name))
    leaf = leaves[0]
    other = story.called(leaf)
    line = filled_at(story, leaf)
    message = f"$it.grad is zero: {story.doing(entry)} multiplies by {other}, which is all zeros since {story.at(line)}"
    fix = "initialise at random, as nn.Linear does by itself: of two layers that are both zero neither can move"
    grads = [grad.norm for _, grad in story.arrivals.get(leaf, ())]
    fix = fix if grads and not any(grads) else ""
    return story.find("times-zero", name, line, message, AtNode(step.name), fix=fix)


def filled_at(story: Story, leaf: int) -> SourceLine | None:
    """The line that gave a leaf its values, other than by a step."""
    fills = [event for event in story.timeline(leaf) if event.kind in ("filled", "changed") and event.name != "step"]
    return fills[-1].line if fills else story.entries[leaf].line


def zero_leaves(story: Story, step: Step) -> list[int]:
    """The leaves that make a factor of a product zero."""
    entry = story.result(step.seq)
    if entry is None:
        return []
    factors = [mark for mark, size in zip(entry.inputs, entry.below, strict=True) if not size.norm > 0]

    def onward(mark: int) -> tuple[int, ...]:
        entry = story.entries[mark]
        unknown = entry.size.norm != entry.size.norm and reads(entry.name, "views")
        return entry.inputs if entry.size.norm == 0 or unknown else ()

    reached = [story.entries[mark] for mark in walk(factors, onward)]
    leaves = [leaf for leaf in reached if leaf.role == "leaf" and leaf.size.norm == 0 and leaf.requires]
    return [leaf.mark for leaf in sorted(leaves, key=lambda leaf: -len(leaf.shape))]  # weights before biases


def stoppers(story: Story, sweep: BackwardRecord, mark: int) -> list[Step]:
    """The nodes that received something and sent only zeros towards a leaf."""

    def onward(target: tuple[str, int]) -> list[tuple[str, int]]:
        return [("node", step.seq) for step, _ in story.senders(sweep, target) if step.norm == 0]

    targets = walk([("leaf", mark)], onward)
    return [step for target in targets for step, norm in story.senders(sweep, target) if step.norm > 0 and norm == 0]


CHANCE, LEAST_ROWS = 0.02, 3
PIECEWISE = ("ThresholdBackwardBackward", "LeakyReluBackwardBackward", "HardtanhBackwardBackward")


def dead_units(story: Story) -> Iterator[tuple[None, Finding]]:
    """Activations of which more units are zero for every row of every batch than chance explains.

    Where rows resemble each other each unit keeps its sign: about half of them are then zero throughout, and as many
    positive throughout.
    """
    layers: dict[tuple[Any, int, int], Any] = {}
    rows: dict[tuple[Any, int, int], int] = {}
    turn: dict[tuple[Any, int], int] = {}
    first: dict[tuple[Any, int, int], Entry] = {}
    for entry in story.entries.values():
        if not isinstance(entry.remark, Units) or entry.inside or entry.seq is None:
            continue
        at = turn.get((entry.line, entry.sweeps), 0)  # several layers may run in one line
        turn[entry.line, entry.sweeps] = at + 1
        signs = np.asarray(entry.remark.signs, dtype=bool).reshape(2, -1)
        key = (entry.line, at, signs.shape[1])
        layers[key] = signs & layers[key] if key in layers else signs
        rows[key] = rows.get(key, 0) + entry.remark.rows
        first.setdefault(key, entry)
    for key, (zeros, positive) in layers.items():
        dead, count = int(zeros.sum()), len(zeros)
        of = dead + int(positive.sum())  # how likely so many of these coins show heads
        by_chance = sum(math.comb(of, k) for k in range(dead, of + 1)) / 2**of
        if count > 1 and rows[key] >= LEAST_ROWS and 2 * dead >= count and (dead == count or by_chance < CHANCE):
            message = f"{dead} of {count} units of {story.doing(first[key])} are zero for every input: "
            message += "no gradient passes them"
            yield None, story.find("dead-relu", None, key[0], message, DeadUnits(share=dead / count, units=count))


def second_slopes(story: Story) -> Iterator[tuple[None, Finding]]:
    """Second derivatives that are zero everywhere because what is differentiated is piecewise linear."""
    results = [e for e in story.entries.values() if e.inside and e.size.norm == 0 and e.seq is not None]
    zeros = {e.sweeps for e in results if e.mark in story.leading() and story.users.get(e.mark)}
    for number, sweep in enumerate(story.watch.sweeps, 1):
        bends = [s for s in sweep.steps if s.name.startswith(PIECEWISE) and s.norm > 0]
        if sweep.accumulate or number not in zeros or not bends or any(sent.size.norm for sent in bends[0].sent):
            continue
        message = f"the derivative at {story.at(sweep.line)} is 0 everywhere: it is a second one, through ReLU or the "
        message += "like, whose slope is constant on both sides of 0"
        calls = [call for call in story.main.calls("ReLU", "LeakyReLU") if dotted(call.func)]
        texts = [f"{dotted(call.func).removesuffix(called(call))}Softplus()" for call in calls]
        patch = story.main.patch(*map(story.main.replaced, calls, texts)) if calls else None
        fix = "use a smooth activation where second derivatives are wanted: tanh, softplus, gelu, sin"
        yield None, story.find("constant-term", None, sweep.line, message, fix=fix, patches=(patch,))
        return


def alike(story: Story) -> Iterator[tuple[int, Finding]]:
    """Layers whose units have all the same weights after several steps."""
    for optimizer in story.watch.optimizers:
        for mark in optimizer.alike:
            grads = [grad.norm for _, grad in story.arrivals.get(mark, ())]
            if not any(norm > 0 for norm in grads):
                continue
            line = filled_at(story, mark)
            count = story.entries[mark].shape[0]
            message = f"all {count} units of $it are alike: they begin with equal weights ({story.at(line)}), "
            message += "get equal gradients, and stay equal"
            yield mark, story.find("all-alike", story.called(mark), line, message)
