"""Markdown for pull requests and wikis: a table of counts, then a row per check that did not pass.

Text of the user is in code spans or escaped, so that it makes no cell, no link and no HTML, and mentions nobody.
"""

from __future__ import annotations

import re

from gradcli.rendering.documents import verdicts
from gradcli.rendering.formats.issues import incomplete, issues
from gradcli.rendering.safe_text import visible
from gradcli.rendering.tabular import code_cell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.batch.totals import Totals


class Markdown:
    """Writer of the format."""

    def head(self, totals: Totals) -> str:
        lines = [f"## gradcli check: {escaped(verdicts.totals(totals))}", ""]
        if not totals.complete:
            lines += [f"**Incomplete:** {escaped(incomplete(totals))}", ""]
        lines += ["| result | checks |", "| --- | ---: |"]
        lines += [f"| {name} | {count} |" for name, count in totals.summary.items()]
        if totals.summary["failed"] or totals.summary["inconclusive"]:
            lines += ["", "| where | check | verdict | message |", "| --- | --- | --- | --- |"]
        return "\n".join(lines) + "\n"

    def part(self, report: Any) -> str:
        return "".join(self.rows(report))

    def tail(self, totals: Totals) -> str:
        return ""

    def rows(self, report: Any) -> Iterator[str]:
        """The rows of the checks of a report that did not pass."""
        for issue in issues(report):
            where, verdict = code_cell(issue.place()), f"{issue.verdict} ({issue.rule.code})"
            yield f"| {where} | {code_cell(issue.subject)} | {verdict} | {escaped(issue.message)} |\n"


def escaped(text: str) -> str:
    """Text in a cell of a table, without any mark-up of its own."""
    plain = re.sub(r"([\\`*_\[\]<>&|~#!$])", r"\\\1", visible(text))
    return re.sub(r"@(?=\w)", "`@`", plain)
