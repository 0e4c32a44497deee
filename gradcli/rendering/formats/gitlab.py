"""GitLab's code quality report: a JSON array with an issue per check that did not pass.

GitLab merges issues with equal fingerprints. An expression has no file; its place is called `<expression>`.
"""

from __future__ import annotations

from gradcli.rendering.formats.issues import EXPRESSION, incomplete, issues
from gradcli.rendering.machine import text
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.totals import Totals


class CodeQuality:
    """Writer of the format."""

    def __init__(self) -> None:
        self.separator = "\n"

    def head(self, totals: Totals) -> str:
        return "["

    def part(self, report: Any) -> str:
        return "".join(
            self.entry(
                f"{issue.verdict} {issue.subject}: {issue.message}",
                issue.rule.code,
                issue.fingerprint,
                issue.rule.severity,
                issue.path or EXPRESSION,
                issue.line or 1,
            )
            for issue in issues(report)
        )

    def tail(self, totals: Totals) -> str:
        why = f"The run is incomplete; {incomplete(totals)}"
        last = "" if totals.complete else self.entry(why, "incomplete", "incomplete", "major", ".", 1)
        return f"{last}\n]\n"

    def entry(self, description: str, check_name: str, fingerprint: str, severity: str, path: str, line: int) -> str:
        """One issue, preceded by a comma unless it is the first."""
        fields = {
            "description": visible(description),
            "check_name": check_name,
            "fingerprint": fingerprint,
            "severity": severity,
            "location": {"path": visible(path), "lines": {"begin": line}},
        }
        separator, self.separator = self.separator, ",\n"
        return separator + text(fields)
