"""The Test Anything Protocol: a line per check, with a YAML block if it did not pass, and the plan at the end.

The text is valid in versions 13 and 14; it names 13, because older readers refuse an unknown number.
Inconclusive checks are skipped, and failures that a baseline accepts are marked TODO. A run that ended early
bails out and has no plan.
"""

from __future__ import annotations

import json

from gradcli.rendering.documents.cards import subject
from gradcli.rendering.documents.verdicts import title
from gradcli.rendering.formats.issues import incomplete, issues, suppression
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.batch.totals import Totals


class Tap:
    """Writer of the format."""

    def __init__(self) -> None:
        self.number = 0

    def head(self, totals: Totals) -> str:
        return "TAP version 13\n"

    def part(self, report: Any) -> str:
        return "".join(f"{line}\n" for line in self.lines(report))

    def tail(self, totals: Totals) -> str:
        if not totals.complete:
            return f"Bail out! {escaped(incomplete(totals))}\n"
        return f"1..{self.number}\n" if self.number else "1..0 # SKIP nothing to check\n"

    def lines(self, report: Any) -> Iterator[str]:
        """The lines of a report; the numbers of its checks continue those of earlier reports."""
        remaining = issues(report)
        for check in report.checks:
            self.number += 1
            what = escaped(f"{title(report)}: {subject(check)}" + (f" line {check.line}" if check.line else ""))
            reason, accepted = suppression(check)
            if accepted:
                yield f"not ok {self.number} - {what} # TODO {escaped(str(reason))}"
                continue
            if check.passed:
                yield f"ok {self.number} - {what}"
                continue
            issue = next(remaining)
            if check.verdict == "INCONCLUSIVE":
                yield f"ok {self.number} - {what} # SKIP {escaped(issue.message)}"
                continue
            yield f"not ok {self.number} - {what}"
            yield "  ---"
            yield f"  message: {quoted(issue.message)}"
            yield f"  verdict: {quoted(issue.verdict)}"
            yield f"  code: {issue.rule.code}"
            if issue.path is not None:
                yield f"  file: {quoted(issue.path)}"
            if issue.line is not None:
                yield f"  line: {issue.line}"
            yield "  ..."


def escaped(text: str) -> str:
    """Text of a line: `#` would begin a directive."""
    return visible(text).replace("\\", "\\\\").replace("#", "\\#")


def quoted(text: str) -> str:
    """Text as a JSON string, which YAML reads too."""
    return json.dumps(visible(text), ensure_ascii=False)
