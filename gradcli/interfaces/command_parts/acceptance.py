"""How the reports of `check` count: baselines, expected results that are rewritten, and the exit code at the end."""

from __future__ import annotations

from gradcli.base.diagnostics import visible
from gradcli.interfaces.command_parts.check_inputs import permitted
from gradcli.interfaces.command_parts.written_expectations import refreshed
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli import batch
    from gradcli.batch import baseline as baselines
    from gradcli.batch import judged_content as contents
    from gradcli.batch.totals import Totals
    from gradcli.interfaces.options.check_options import Failing, Shown
    from gradcli.interfaces.options.shared_options import CommandOutput
else:
    baselines, batch, contents = room("baselines"), room("batch"), room("contents")

NOTHING = 5  # the exit code where nothing was checked


class Acceptance:
    """How reports count in one call of `check`.

    Raises GradcliError for a baseline that cannot be read, or written.
    """

    def __init__(
        self,
        output: CommandOutput,
        failing: Failing,
        shown: Shown,
        options: dict[str, Any],
        keyword: str | None,
    ) -> None:
        self.output = output
        self.options = options
        self.known = baselines.read(failing.baseline) if failing.baseline else None
        self.record = failing.write_baseline
        if self.record:
            output.expect(self.record)
        self.update = shown.update
        self.diff = shown.diff
        self.allow = permitted(failing.allow)
        self.keywords = None if keyword is None else batch.Keywords(keyword)
        self._failing: set[Any] = set()

    def adjust(self, report: Any, script: Any, python: tuple[str | None, ...] = ()) -> Any:
        """The report of the checks that -k selects, with the baseline applied; reports come in any order.

        `script` reads the text that is judged.
        """
        report = report if self.keywords is None else self.keywords.checks(report)
        if (not self.record and self.known is None) or all(check.passed for check in report.checks):
            return report
        digest = contents.digests(script(), python, self.options)
        if self.record:
            self._failing.update(baselines.entries(report, baselines.folder_of(self.record), digest))
        return report if self.known is None else baselines.applied(report, self.known, digest)

    def settle(self, report: Any) -> Any:
        """The report after its expected results were rewritten; reports come in the order of their paths."""
        return refreshed(self.output, report, self.diff) if self.update or self.diff else report

    def exit_code(self, totals: Totals, nothing: str = "") -> int:
        """The exit code of a run that has ended; the reason for any but 0 is printed on standard error."""
        if self.known is not None:
            self.output.note(*self.known.notes())
        if self.record:
            self.output.save(self.record, (baselines.text(self._failing),))
            count = counted(len(self._failing), "failing check")
            unjudged = totals.unreadable + totals.broken
            rest = f"; {counted(unjudged, 'script')} could not be checked and cannot be listed" if unjudged else ""
            self.output.say(f"gradcli check: {count} listed in {visible(self.record, 200)}{rest}")
            return 0
        code, reason = outcome(totals, "inconclusive" in self.allow)
        if code == NOTHING and self.keywords is not None:
            nothing = nothing or f"-k {visible(self.keywords.text, 200)} selects none of the checks"
        if code:
            self.output.say(f"gradcli check: {nothing or reason}")
        return 0 if code == NOTHING and "empty" in self.allow else code


def outcome(totals: Totals, lenient: bool) -> tuple[int, str]:
    """The exit code, which is the first that applies of 4, 2, 1, 3, 5, 0, and the reasons for it and the later ones."""
    failed = totals.summary["failed"] - totals.broken - totals.unreadable
    unreadable, done = ("function", "checked") if totals.functions else ("script", "read")
    reasons = (
        (4, totals.broken, "check", "could not be run"),
        (2, totals.unreadable, unreadable, f"could not be {done}"),
        (1, failed, "check", "failed"),
        (3, 0 if lenient else totals.summary["inconclusive"], "check", "could not be decided"),
    )
    apply = [(code, f"{counted(count, noun)} {what}") for code, count, noun, what in reasons if count]
    if apply:
        return apply[0][0], ", ".join(reason for _, reason in apply)
    return (0, "") if totals.checks else (NOTHING, "nothing to check")


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
