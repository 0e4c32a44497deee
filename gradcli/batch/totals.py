"""Counts over all reports of a run, for its summary, its report files and its exit code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.report import Report


@dataclass
class Totals:
    """Counts of verdicts, of "passed", "accepted", "failed" and "inconclusive" checks, and of what was not checked.

    `files` counts reports, `selected` the cases of the run. `stopped` is the reason why the run ended before all of
    them were checked ("interrupted", "first failure"); it is empty for a complete run.
    """

    summary: Counter[str] = field(default_factory=lambda: Counter({"passed": 0, "failed": 0, "inconclusive": 0}))
    files: int = 0
    selected: int = 0
    checks: int = 0
    unreadable: int = 0  # scripts, or functions, that cannot be read or lowered
    functions: bool = False  # whether Python functions are judged
    broken: int = 0  # checks that crashed, or ended in an error of gradcli's own
    seconds: float = 0.0  # of all checks together
    stopped: str = ""
    baseline: str = ""  # the file that accepts failures

    @classmethod
    def of(cls, reports: Sequence[Report]) -> Totals:
        """The counts over some reports."""
        totals = cls(selected=len(reports))
        for report in reports:
            totals.add(report)
        return totals

    @property
    def complete(self) -> bool:
        """Whether every case has a report."""
        return not self.stopped

    def add(self, report: Report) -> None:
        """Count one more report."""
        self.summary.update(report.summary)
        self.files += 1
        self.checks += len(report.checks)
        self.seconds += sum(check.seconds or 0.0 for check in report.checks)
        for check in report.checks:
            self.baseline = str(check.evidence.get("baseline", self.baseline))
            if not check.passed and check.verdict in ("ERROR", "CRASHED"):
                if check.diagnostics:
                    self.unreadable += 1
                    self.functions = self.functions or check.kind == "callable"
                else:
                    self.broken += 1
