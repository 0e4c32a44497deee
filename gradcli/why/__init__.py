"""Explains from the record of a run why gradients are missing, zero, NaN or huge, with lines and fixes.

Each module has reasons of one kind, as functions that go through the record (`story.py`) and give findings: what went
wrong, the line, what to do, and where the file's own text says how, patches (`edits.py`). `explain` calls all of them,
and leaves out what only follows from something else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.base.results.findings import Explanation, Finding, Looked
from gradcli.why.errors.stopped import stops
from gradcli.why.gradients.hooks import of_hooks
from gradcli.why.gradients.missing import partly, reason, rebound, without_gradient
from gradcli.why.gradients.not_finite import first_nan
from gradcli.why.gradients.sizes import constant, extremes
from gradcli.why.gradients.zeros import alike, dead_units, second_slopes, zero_gradients
from gradcli.why.jax_programs import of_jax
from gradcli.why.story import Story
from gradcli.why.training import optimizers
from gradcli.why.training.accumulated import clips, discarded, late_changes, scaled_steps, sums
from gradcli.why.training.graphs_kept import histories, retained
from gradcli.why.training.losses import along_the_batch, broadcast, constants, lost_on_the_way, twice

if TYPE_CHECKING:
    from gradcli.recording.runs.run_record import Watch
    from gradcli.why.fixes import Dialect

    Pairs = list[tuple[int | None, Finding]]

__all__ = ["explain", "reason"]

STATES = {"none": "None", "nan": "NaN"}
OF_OPTIMIZERS = (optimizers.decayed, optimizers.uphill, optimizers.remade, optimizers.no_copies)
SHOWN = 4  # names that one finding lists
NAME = re.compile(r"[\w.]+(\[[^\]]*\])*[\w.]*")  # what code can say: w, net.0.weight, ws[2]


def explain(watch: Watch, path: str, problem: BaseException | None = None, tensor: str | None = None) -> Explanation:
    """Why gradients of a run are as they are: all that look wrong, or those of one tensor by its name.

    Raises GradcliError (GC206) for a name that the file does not have.
    """
    story = Story(watch, path)
    wanted = set() if tensor is None else named(story, tensor)
    pairs = all_findings(story, problem, wanted)
    if wanted:
        pairs = [(mark, finding) for mark, finding in pairs if mark in wanted or finding.subject == tensor]
    findings = tuple(together([finding for _, finding in pairs], story.dialect()))
    shown = {mark: subject for mark, subject in story.latest.items() if subject.name and (mark in wanted or not wanted)}
    gradients = {
        subject.name: f"norm {subject.norm:.4g}" if subject.grad == "fine" else STATES.get(subject.grad, subject.grad)
        for _, subject in sorted(shown.items())
        if wanted or subject.grad != "none" or (findings and subject.leaf and subject.requires)
    }
    operations = sum(entry.role == "operation" and not entry.inside for entry in watch.entries.values())
    kinds, steps = tuple(o.kind for o in watch.optimizers), sum(len(o.updates) for o in watch.optimizers)
    names = sum(bool(subject.name) for subject in watch.subjects.values())
    return Explanation(path, findings, gradients, looked=Looked(operations, names, len(watch.sweeps), steps, kinds))


def all_findings(story: Story, problem: BaseException | None, wanted: set[int]) -> Pairs:
    """The findings of all kinds, without those that only follow from others."""
    loose = list(optimizers.unregistered(story, problem))
    outside = {mark for marks, _ in loose for mark in marks}
    pairs: Pairs = [(min(marks & (wanted or marks), default=None), finding) for marks, finding in loose]
    misspelt, stopped, scaled = list(optimizers.misspelt(story)), list(stops(story, problem)), list(scaled_steps(story))
    if misspelt or (stopped and scaled):
        return [*pairs, *(misspelt or scaled)]
    pairs += [(None, finding) for finding in stopped]
    if any(finding.reason != "stopped" or finding.patches for finding in stopped):
        return pairs
    without = list(without_gradient(story, wanted))
    spoilt: Pairs = [*scaled] or list(first_nan(story))
    pairs += [*without, *spoilt, *of_hooks(story)]
    if wanted:
        pairs += [
            (mark, finding)
            for mark in wanted
            if story.watch.subjects[mark].grad == "fine"
            for finding in partly(story, mark)
        ]
    known = {finding.line for _, finding in without}
    updates = [*[pair for pair in rebound(story) if pair[1].line not in known], *optimizers.idle(story)]
    still = list(second_slopes(story)) or list(constant(story))
    pairs += still
    if not spoilt and not still:
        empty = list(zero_gradients(story, wanted))
        flat = {finding.line for _, finding in empty}
        dead = [] if any(finding.reason == "times-zero" for _, finding in empty) else dead_units(story)
        pairs += [*empty, *extremes(story, wanted), *alike(story), *updates]
        pairs += [(mark, finding) for mark, finding in dead if finding.line not in flat]
        pairs += [] if updates or without else discarded(story)
    ends = {finding.line for _, finding in without}
    kinds = (optimizers.frozen, broadcast, twice, along_the_batch, late_changes, clips, *OF_OPTIMIZERS)
    pairs += [pair for kind in kinds for pair in kind(story)]
    terms = list(constants(story))
    pairs += [pair for pair in terms or lost_on_the_way(story) if pair[1].line not in ends]
    left = list(optimizers.not_optimised(story, outside))
    if left:  # what an optimizer holds in their place has no gradient because nothing uses it
        replaced = set(optimizers.unused(story, story.watch.optimizers)) - wanted
        pairs = [pair for pair in pairs if pair[0] not in replaced]
    pairs += left
    outside |= {mark for mark, _ in left}
    pairs += [(mark, finding) for mark, finding in sums(story, wanted) if mark not in outside - wanted]
    pairs += [pair for pair in optimizers.made_anew(story) if pair[1].line not in ends]
    return [*pairs, *([] if without else [*retained(story), *histories(story)]), *of_jax(story)]


def named(story: Story, name: str) -> set[int]:
    """The newest tensor of a name."""
    marks = [mark for mark, subject in story.latest.items() if subject.name == name]
    if not marks:
        known = sorted({subject.name for subject in story.latest.values() if subject.name})
        near = did_you_mean(name, known)
        raise error(
            "GC206",
            f"the file has no tensor {visible(name, 100)}",
            help=f"did you mean {near}?" if near else f"it has {', '.join(known[:12]) or 'none'}",
        )
    return {max(marks)}


def together(findings: list[Finding], dialect: Dialect) -> list[Finding]:
    """Findings that differ in the tensor only, as one."""
    groups: dict[tuple[str, int | None, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.reason, finding.line, finding.message), []).append(finding)
    joined = []
    for same in groups.values():
        names = list(dict.fromkeys(finding.subject for finding in same if finding.subject))
        shown = names if len(names) <= SHOWN else [*names[:SHOWN], f"{len(names) - SHOWN} more"]
        text = " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
        tensors = tuple(names) if len(names) > 1 else ()
        message = same[0].message.replace("$it.grad", dialect.gradient(text, len(names) > 1), 1)
        message = message.replace("$it is", "$it are" if tensors else "$it is", 1).replace("$it", text, 1)
        patches = [finding.patches[0] for finding in same if finding.patches]
        if len({patch.file for patch in patches}) == 1 and len(set(patches)) > 1:  # an edit for each tensor
            every = tuple(dict.fromkeys(edit for patch in patches for edit in patch.edits))
            same[0] = same[0]._replace(patches=(patches[0]._replace(edits=every), *same[0].patches))
        cure = same[0].cure.replace("$it", names[0] if len(names) == 1 and NAME.fullmatch(names[0]) else "x")
        joined.append(same[0]._replace(subject=text or None, message=message, cure=cure, tensors=tensors))
    return joined
