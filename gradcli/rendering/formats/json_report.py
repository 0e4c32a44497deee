"""The JSON report of `check`: the same payload as `--format json`, written check by check.

`complete` and `stopped` appear only where the run ended early.
"""

from __future__ import annotations

from gradcli.rendering.machine import check_fields, diagnostics, opening, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.batch.totals import Totals


class JsonReport:
    """Writer of the format; `notes` are diagnostics that concern all reports."""

    def __init__(self, notes: Sequence[Diagnostic] = ()) -> None:
        self.diagnostics = [text(note.as_json()) for note in notes]
        self.expression = ""
        self.separator = ""

    def head(self, totals: Totals) -> str:
        fields = opening("check")
        if totals.files == 1 and self.expression:
            fields["expression"] = self.expression
        return text(fields)[:-1] + ', "checks": ['

    def part(self, report: Any) -> str:
        self.expression = report.expression
        self.diagnostics += [text(note) for note in diagnostics(report.diagnostics).get("diagnostics", ())]
        parts = []
        for check in report.checks:
            parts.append(self.separator + text(check_fields(check, report.block)))
            self.separator = ", "
        return "".join(parts)

    def tail(self, totals: Totals) -> str:
        phrase = f'], "summary": {text(dict(totals.summary))}'
        if self.diagnostics:
            phrase += f', "diagnostics": [{", ".join(self.diagnostics)}]'
        if not totals.complete:
            phrase += ", " + text({"complete": False, "stopped": totals.stopped})[1:-1]
        return phrase + "}\n"
