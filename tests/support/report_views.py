"""Reports of `check` in every format, as a view: what tests of formats render."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gradcli.batch.totals import Totals
from gradcli.interfaces.command_parts.result_views import View
from gradcli.rendering.document import Column, Grid
from gradcli.rendering.documents import verdicts
from gradcli.rendering.formats import rows, writer, written


def text(form: str, reports: Sequence[Any], **options: Any) -> str:
    """The whole text of a report file."""
    return written(writer(form, **options), reports, Totals.of(reports))


def report_view(reports: Sequence[Any], show: str) -> View:
    return View(
        document=lambda style: verdicts.reports(reports, style, show),
        payload=lambda: json.loads(text("json", reports)),
        lines=lambda: map(json.loads, text("jsonl", reports).splitlines()),
        tidy=lambda: Grid(
            tuple(map(Column, rows.COLUMNS)), tuple(rows.row(one) for report in reports for one in report.checks)
        ),
    )


def commands_in(text: str) -> list[str]:
    """The lines of a log that GitHub, Azure or TeamCity obey."""
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or re.search(r"##\w*\[", line)]
