"""`gradcli why --fix`: tries patches, each as a patched text of the file that runs in a process of its own.

No file is written. The process gets the texts, and answers with its findings; it has one thread for linear algebra.
"""

from __future__ import annotations

import ast
import os
import sys
from difflib import unified_diff
from json import dumps, loads

from gradcli.interfaces.command_parts.python_file import FileRun, recorded
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli import why as watching
    from gradcli.base import child_process
    from gradcli.base.results.findings import Explanation, Finding, Patch
    from gradcli.recording import runs
else:
    child_process, runs, watching = room("child_process"), room("runs"), room("watching")

LEAST, TIMES = 60.0, 5.0  # seconds that a trial may take, and times as long as the run before
BENIGN = {"flat", "partly"}  # reasons that say themselves that nothing is wrong


class Trials:
    """Runs a file with patched texts, as it was run before."""

    def __init__(self, file: str, args: Sequence[str], how: FileRun, outcome: runs.RunOutcome, took: float) -> None:
        self.task = {"file": file, "args": list(args), "how": [how.library, how.dtype, how.every]}
        self.stopped, self.limit = outcome.error is not None, max(LEAST, TIMES * took)

    def tried(self, explanation: Explanation) -> Explanation:
        """The same explanation, each finding with the patch that helps, or the last that does not."""
        return explanation._replace(findings=tuple([self._finding(f, explanation) for f in explanation.findings]))

    def _finding(self, finding: Finding, explanation: Explanation) -> Finding:
        patches: list[Patch] = []
        for patch in finding.patches:
            patches.append(self.run(patch, finding, explanation))
            if patches[-1].helps:
                break
        return finding._replace(
            patches=tuple([patch._replace(diff=tuple(difference(patch))) for patch in patches[-1:]])
        )

    def run(self, patch: Patch, finding: Finding, explanation: Explanation) -> Patch:
        """A patch with what a run of the patched file showed."""
        text = applied(patch)
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return patch._replace(tried="the patched text is no Python")
        answer = self._answer({patch.file: text})
        if answer is None:
            return patch._replace(tried="the patched file did not come to its end")
        left = [each for each in answer["findings"] if each["reason"] not in BENIGN]
        same = [each for each in left if each["reason"] == finding.reason and shared(each, finding)]
        before = {each.reason for each in explanation.findings}
        new = [each for each in left if each["reason"] not in before]
        if same or (answer["error"] and (not self.stopped or new)):
            what = (same or new or [{"message": answer["error"]}])[0]["message"]
            return patch._replace(tried=f"it does not help: {what}")
        phrase = change(finding, explanation, answer["gradients"], self.stopped)
        phrase += f"; what is left: {new[0]['message']}" if new else ""
        return patch._replace(tried=phrase, helps=True)

    def _answer(self, texts: dict[str, str]) -> Any:
        import subprocess

        process = child_process.start(__name__, own_session=True)
        try:
            out, _ = process.communicate(dumps({**self.task, "texts": texts}) + "\n", timeout=self.limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            child_process.kill_group(process)
        lines = [line for line in out.splitlines() if line.startswith('{"findings"')]
        return loads(lines[-1]) if lines else None


def shared(answer: dict[str, Any], finding: Finding) -> bool:
    """Whether a finding of a patched run is about a tensor of one before, or about none."""
    tensors = {*finding.tensors, finding.subject}
    return not tensors.isdisjoint(answer["tensors"]) or finding.subject is None


def change(finding: Finding, explanation: Explanation, after: dict[str, str], stopped: bool) -> str:
    """What a patch has changed, in a few words."""
    for name in (*finding.tensors, finding.subject):
        before = explanation.gradients.get(name or "")
        if before in ("None", "zero", "NaN", "inf") and after.get(name or "", before) != before:
            what = f"the gradient of {name}" if explanation.on.startswith("JAX") else f"{name}.grad"
            return f"{what} is no longer {before}: {after[name or '']}"
    return "the file runs to its end" if stopped else "`why` does not find this any more"


def applied(patch: Patch) -> str:
    """The patched text of a file."""
    with open(patch.file, encoding="utf-8", newline="") as file:
        return patch.applied(file.read())


def difference(patch: Patch) -> list[str]:
    """A patch as the lines of a unified diff, each change without the lines around it."""
    with open(patch.file, encoding="utf-8", newline="") as file:
        before = file.read()
    old, new = (text.replace("\r\n", "\n").split("\n") for text in (before, patch.applied(before)))
    name = os.path.relpath(patch.file)
    name = patch.file if name.startswith("..") else name
    return [line.rstrip() for line in unified_diff(old, new, name, name, n=0, lineterm="")]


def combined(findings: Sequence[Finding]) -> list[Patch]:
    """The patches that help, one a file; of two that change the same place the first."""
    chosen: dict[str, list[Any]] = {}
    for patch in (patch for finding in findings for patch in finding.patches if patch.helps):
        edits = chosen.setdefault(patch.file, [])
        fresh = [edit for edit in patch.edits if edit not in edits]
        if not any(overlap(edit, other) for edit in fresh for other in edits):
            edits += fresh
    patches = {patch.file: patch for finding in findings for patch in finding.patches}
    return [patches[file]._replace(edits=tuple(edits)) for file, edits in chosen.items()]


def overlap(first: Any, second: Any) -> bool:
    """Whether two edits replace a common part of a text."""
    return (first.first, first.start) < (second.last, second.stop) and (second.first, second.start) < (
        first.last,
        first.stop,
    )


class Quiet:
    """An output that shows nothing."""

    def say(self, text: str) -> None:
        """Drop a line."""


def main() -> None:
    """Run the file that standard input names, with the texts that it gives, and answer with what `why` finds."""
    child_process.end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    task = loads(sys.stdin.readline())
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - until the process ends
    output: Any = Quiet()
    outcome, watch, _ = recorded(output, task["file"], task["args"], FileRun(*task["how"]), task["texts"])
    result = watching.explain(watch, task["file"], outcome.error)
    findings = [
        {"reason": each.reason, "tensors": [*each.tensors, each.subject], "message": each.message}
        for each in result.findings
    ]
    error = None if outcome.error is None else runs.one_line(outcome.error)
    answers.write(dumps({"findings": findings, "gradients": result.gradients, "error": error}) + "\n")
    answers.flush()
    os._exit(0)
