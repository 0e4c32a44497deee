"""One line per check that did not pass, as editors and compilers have it: `file:line:column: CODE message`."""

from __future__ import annotations

from gradcli.rendering.formats.issues import EXPRESSION, incomplete, issues
from gradcli.rendering.safe_text import path_text, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.totals import Totals
    from gradcli.rendering.formats.issues import Issue


class Concise:
    """Writer of the format."""

    def head(self, totals: Totals) -> str:
        return ""

    def part(self, report: Any) -> str:
        return "".join(f"{line(issue)}\n" for issue in issues(report))

    def tail(self, totals: Totals) -> str:
        return "" if totals.complete else f"incomplete: {incomplete(totals)}\n"


def line(issue: Issue) -> str:
    """One issue on a line; an unknown place is line 1, column 1."""
    path = EXPRESSION if issue.path is None else path_text(issue.path)
    column = issue.span.column if issue.span else 1
    return visible(
        f"{path}:{issue.line or 1}:{column}: {issue.rule.code} {issue.verdict} {issue.subject}: {issue.message}"
    )
