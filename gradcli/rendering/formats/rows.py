"""A row per check for programs that read line by line: CSV, and JSON Lines with the summary at the end."""

from __future__ import annotations

from gradcli.rendering.documents.verdicts import place, sentence
from gradcli.rendering.machine import check_fields, opening, text
from gradcli.rendering.tabular import csv_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.totals import Totals

COLUMNS = ("id", "file", "line", "kind", "leaf", "verdict", "passed", "message")


class JsonLines:
    """Writer of JSON Lines: an object per check, then the summary."""

    def head(self, totals: Totals) -> str:
        return ""

    def part(self, report: Any) -> str:
        return "".join(
            f"{text({**opening('check'), **check_fields(check, report.block)})}\n" for check in report.checks
        )

    def tail(self, totals: Totals) -> str:
        rest = {} if totals.complete else {"complete": False, "stopped": totals.stopped}
        return text({**opening("check"), "summary": dict(totals.summary), **rest}) + "\n"


class Csv:
    """Writer of CSV under a header line."""

    def head(self, totals: Totals) -> str:
        return csv_rows([COLUMNS]) + "\n"

    def part(self, report: Any) -> str:
        return "".join(f"{csv_rows([row(check)])}\n" for check in report.checks)

    def tail(self, totals: Totals) -> str:
        return ""


def row(check: Any) -> tuple[str, ...]:
    """The cells of a check."""
    file, leaf, passed = check.file or "", check.leaf or "", str(check.passed).lower()
    return check.id, file, place(check), check.kind, leaf, check.verdict, passed, sentence(check)
