"""Writes the reports of `check` one at a time: to standard output in its format, and to report files.

A report file is collected in a temporary file and written as a whole at the end, so a reader finds either the earlier
report or the new one. On standard output, failures among several cases are printed after the progress line has ended;
until then their reports are kept compressed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from gradcli import batch
    from gradcli.base.diagnostics import Diagnostic
    from gradcli.batch.totals import Totals
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.rendering import formats
    from gradcli.rendering.documents import verdicts
    from gradcli.rendering.documents.cards import Replay

    class ReportSink(Protocol):
        """Takes every report, and the totals at the end."""

        def take(self, report: Any) -> None: ...

        def finish(self, totals: Totals) -> None: ...

else:
    batch, formats = room("batch"), room("report_formats")
    verdicts = room("verdicts")

STREAMED = ("jsonl", "csv", "concise", "tap")
IN_MEMORY = 2**20  # bytes of a report that are collected in memory


class Spooled:
    """A report in one format, collected part by part; `save` takes its pieces when it is finished."""

    def __init__(self, writer: Any, save: Callable[[Iterator[str]], None], resources: ExitStack) -> None:
        from tempfile import SpooledTemporaryFile

        self.writer = writer
        self.save = save
        spool = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="")  # noqa: SIM115
        self.parts = resources.enter_context(spool)

    def take(self, report: Any) -> None:
        self.parts.write(self.writer.part(report))

    def finish(self, totals: Totals) -> None:
        self.save(self.pieces(totals))

    def pieces(self, totals: Totals) -> Iterator[str]:
        """The whole report."""
        yield self.writer.head(totals)
        self.parts.seek(0)
        while text := self.parts.read(2**16):
            yield text
        yield self.writer.tail(totals)


class Streamed:
    """A report whose parts are written as they come; its head does not depend on the totals."""

    def __init__(self, writer: Any, write: Callable[[Iterable[str]], None]) -> None:
        self.writer = writer
        self.write = write
        self.started = False

    def take(self, report: Any) -> None:
        self._start()
        self.write((self.writer.part(report),))

    def finish(self, totals: Totals) -> None:
        self._start()
        self.write((self.writer.tail(totals),))

    def _start(self) -> None:
        if not self.started:
            self.write((self.writer.head(batch.Totals()),))
            self.started = True


class Cards:
    """Documents on standard output. `show` says which (`_check_inputs.SHOWN`).

    For `several` cases, what is failing is shown at the end; lines for files and all reports as soon as they are there.
    """

    def __init__(
        self,
        output: CommandOutput,
        show: str,
        several: Callable[[], bool],
        replay: Callable[[Any, Any], Replay] | None,
    ) -> None:
        self.output = output
        self.show = show
        self.several = several
        self.replay = replay
        self._later: list[bytes] = []
        self._gap = output.format == "table"  # whether a blank line has to come before the next card
        self._line = False  # whether the last report was shown as a line

    def take(self, report: Any) -> None:
        if self.show == "summary":
            self.output.note(*notes_of(report))
        elif self.show in ("files", "all") or not self.several():
            self._show(report)
        elif not verdicts.unremarkable(report):
            self._later.append(batch.packed(report))

    def finish(self, totals: Totals) -> None:
        for data in self._later:
            self._show(batch.unpacked(data))
        self._emit(lambda style: verdicts.closing(totals))
        if self.output.format == "table":
            self.output.line("")

    def _show(self, report: Any) -> None:
        line = self.several() and self.show != "all" and verdicts.unremarkable(report)
        notes = tuple(notes_of(report))
        self._emit(lambda style: verdicts.part(report, style, self.show, self.replay, line), line, notes)

    def _emit(self, document: Callable[[Any], Any], line: bool = False, notes: Sequence[Diagnostic] = ()) -> None:
        if self._gap and not (line and self._line):
            self.output.line("")
        self._gap, self._line = True, line
        self.output.emit(View(document=document, payload=dict, diagnostics=tuple(notes)), framed=False)


class Reporting:
    """The destinations of the reports of a run: `files` and standard output. `only` selects verdicts to show.

    Raises GradcliError GC690 at once if a file of `paths` (by format) cannot be written.
    """

    def __init__(
        self,
        output: CommandOutput,
        paths: Mapping[str, str | None],
        github: bool,
        only: frozenset[str],
        cards: Callable[[], ReportSink | None],
    ) -> None:
        def writer(form: str) -> Any:
            """A writer; the notes on the settings belong to a JSON report."""
            notes = {"notes": output.settings["notes"]} if form == "json" else {}
            return formats.writer(form, **notes)

        self.only = only
        self.lost: OSError | None = None  # why standard output takes no more
        self.resources = ExitStack()
        self.files: list[ReportSink] = []
        for form, path in paths.items():
            if path:
                if [*paths.values()].count(path) > 1 and not path.startswith("/dev/"):
                    raise error(
                        "GC690", f"two reports cannot be written to {visible(path, 200)}", help="name two files"
                    )
                output.expect(path)
                self.files.append(Spooled(writer(form), partial(output.save, path), self.resources))
        if github:
            self.files.append(Spooled(writer("github"), partial(annotated, output), self.resources))
            if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
                self.files.append(Spooled(writer("github-summary"), partial(summarised, summary), self.resources))
        self.main: ReportSink | None
        if output.format == "json":
            self.main = Spooled(writer("json"), output.write, self.resources)
        elif output.format in STREAMED:
            self.main = Streamed(writer(output.format), output.write)
        else:
            self.main = cards()

    def __enter__(self) -> Reporting:
        return self

    def __exit__(self, *exc: object) -> None:
        self.resources.close()

    def take(self, report: Any) -> None:
        """Pass a report to every sink."""
        if self.only:
            from dataclasses import replace

            report = replace(report, checks=tuple([check for check in report.checks if check.verdict in self.only]))
            if not report.checks:
                return
        for sink in self.files:
            sink.take(report)
        self._print(lambda sink: sink.take(report))

    def finish(self, totals: Totals) -> None:
        """Write what is written at the end: first the report files, even if standard output fails.

        Raises GradcliError GC690 or GC692 for a file that could not be written, after writing all others.
        """
        problems: list[Diagnostic] = []
        for sink in self.files:
            try:
                sink.finish(totals)
            except GradcliError as problem:
                problems += problem.diagnostics
        self._print(lambda sink: sink.finish(totals))
        if problems:
            raise GradcliError(*problems)
        if self.lost is not None:
            raise self.lost

    def _print(self, write: Callable[[ReportSink], None]) -> None:
        """Write to standard output; a failure is reported after the report files are complete."""
        if self.lost is None and self.main is not None:
            try:
                write(self.main)
            except OSError as problem:
                if not self.files:
                    raise
                self.lost = problem

    def refuse(self, report: Any) -> None:
        """Write the report of a script that cannot be read to the files, because build servers show only these."""
        for sink in self.files:
            sink.take(report)
            sink.finish(batch.Totals.of([report]))


def notes_of(report: Any) -> Iterator[Diagnostic]:
    """Diagnostics in addition to the verdicts: notes, and the reasons why a script could not be run."""
    yield from report.diagnostics
    for check in report.checks:
        if check.verdict == "ERROR" and not check.passed:
            yield from check.diagnostics


def annotated(output: CommandOutput, pieces: Iterable[str]) -> None:
    """Workflow commands on standard error, where GitHub reads them."""
    for line in "".join(pieces).splitlines():
        output.say(line)


def summarised(path: str, pieces: Iterable[str]) -> None:
    """Append to the summary of a GitHub step."""
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(pieces)
