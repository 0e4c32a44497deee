"""GitHub Actions: annotations on the lines of a pull request, and the step summary.

GitHub shows ten annotations of each level per step, so the worst ten are written and the others are counted. A summary
over 1 MiB is dropped as a whole, so rows that do not fit are counted too.
"""

from __future__ import annotations

from gradcli.rendering.formats.issues import RANKS, incomplete, issues
from gradcli.rendering.formats.markdown import Markdown
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.totals import Totals
    from gradcli.rendering.formats.issues import Issue

MOST_ANNOTATIONS = 10
MOST_BYTES = 2**20 - 2**14  # of the rows of a summary; its head and tail, and what a step wrote before, have the rest


class Annotations:
    """Workflow commands for standard output or standard error, all of them in the tail, worst first."""

    def __init__(self) -> None:
        self.worst: list[Issue] = []
        self.count = 0

    def head(self, totals: Totals) -> str:
        return ""

    def part(self, report: Any) -> str:
        reported = list(issues(report))
        self.count += len(reported)
        self.worst = sorted([*self.worst, *reported], key=lambda issue: RANKS[issue.rule.code])[:MOST_ANNOTATIONS]
        return ""

    def tail(self, totals: Totals) -> str:
        shown = self.worst[: MOST_ANNOTATIONS - (not totals.complete)]
        commands = list(map(annotation, shown))
        if not totals.complete:
            commands.insert(0, f"::warning title=gradcli::incomplete: {data(incomplete(totals))}\n")
        if self.count > len(shown):
            commands.append(f"::notice title=gradcli::and {self.count - len(shown)} more, which are in the log\n")
        return "".join(commands)


class StepSummary(Markdown):
    """Markdown to append to the file that GITHUB_STEP_SUMMARY names."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.left_out = 0

    def part(self, report: Any) -> str:
        kept = []
        for row in self.rows(report):
            size = len(row.encode())
            if self.left_out or self.bytes + size > MOST_BYTES:
                self.left_out += 1
            else:
                self.bytes += size
                kept.append(row)
        return "".join(kept)

    def tail(self, totals: Totals) -> str:
        return super().tail(totals) + (f"\nand {self.left_out} more\n" if self.left_out else "")


def annotation(issue: Issue) -> str:
    """One workflow command on a line."""
    properties = []
    if issue.path is not None:
        properties.append(f"file={property_value(issue.path)}")
        properties += [] if issue.line is None else [f"line={issue.line}"]
        properties += [] if issue.span is None else [f"col={issue.span.column}"]
    properties.append(f"title=gradcli {issue.rule.code} {issue.verdict}")
    commands = data(f"{issue.verdict} {issue.subject}: {issue.message}")
    return f"::{issue.rule.level} {','.join(properties)}::{commands}\n"


def data(text: str) -> str:
    """Text as the message of a workflow command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return visible(escaped).replace("::", ":%3A")


def property_value(text: str) -> str:
    return data(text).replace(":", "%3A").replace(",", "%2C")
