"""Explains from the record of a run why gradients are missing, zero, NaN or huge, with lines and fixes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradcli.diagnostics import did_you_mean, error, visible
from gradcli.observe.why.missing import missing, reason, stops, unregistered
from gradcli.observe.why.story import Story
from gradcli.observe.why.values import memory, values
from gradcli.results.findings import Explanation, Finding

if TYPE_CHECKING:
    from gradcli.observe.run_record import Watch
    from gradcli.observe.tensors import Subject

__all__ = ["explain", "reason"]

SHOWN = 4  # names that one finding lists
NAME = re.compile(r"[\w.]+(\[[^\]]*\])*[\w.]*")  # what code can say: w, net.0.weight, ws[2]


def explain(watch: Watch, path: str, problem: BaseException | None = None, tensor: str | None = None) -> Explanation:
    """Why gradients of a run are as they are: all that look wrong, or those of one tensor by its name.

    Raises GradcliError (GC206) for a name that the file does not have.
    """
    story = Story(watch, path)
    wanted = set() if tensor is None else named(story, tensor)
    loose = list(unregistered(story, problem))
    outside = {mark for marks, _ in loose for mark in marks}
    pairs: list[tuple[int | None, Finding]] = [
        (min(marks & (wanted or marks), default=None), finding) for marks, finding in loose
    ]
    pairs += [(None, finding) for finding in stops(story, problem)]
    pairs += [*missing(story, wanted), *values(story, wanted)]
    pairs += [(mark, finding) for mark, finding in memory(story, wanted) if mark not in outside - wanted]
    if wanted:
        pairs = [(mark, finding) for mark, finding in pairs if mark in wanted or finding.subject == tensor]
    findings = tuple(together([finding for _, finding in pairs]))
    shown = {mark: subject for mark, subject in story.latest.items() if subject.name and (mark in wanted or not wanted)}
    gradients = {
        subject.name: state(subject)
        for _, subject in sorted(shown.items())
        if wanted or subject.grad != "none" or (findings and subject.leaf and subject.requires)
    }
    return Explanation(path, findings, gradients)


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


def together(findings: list[Finding]) -> list[Finding]:
    """Findings that differ in the tensor only, as one."""
    groups: dict[tuple[str, int | None, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.reason, finding.line, finding.message), []).append(finding)
    joined = []
    for same in groups.values():
        names = list(dict.fromkeys(finding.subject for finding in same if finding.subject))
        text = listed(names)
        tensors = tuple(names) if len(names) > 1 else ()
        message = same[0].message.replace("$it.grad", f"the .grad of {text}" if len(names) > 1 else f"{text}.grad", 1)
        message = message.replace("$it", text, 1)
        cure = same[0].cure.replace("$it", names[0] if len(names) == 1 and NAME.fullmatch(names[0]) else "x")
        joined.append(same[0]._replace(subject=text or None, message=message, cure=cure, tensors=tensors))
    return joined


def listed(names: list[str]) -> str:
    """`a, b and c`, or `a, b, c, d and 3 more`."""
    shown = names[:SHOWN] if len(names) <= SHOWN else [*names[:SHOWN], f"{len(names) - SHOWN} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def state(subject: Subject) -> str:
    """A gradient in a few words."""
    if subject.grad == "fine":
        return f"norm {subject.norm:.4g}"
    return {"none": "None", "nan": "NaN", "inf": "inf", "zero": "zero"}[subject.grad]
