"""Report formats of `check` for build servers, editors and people: one file and one writer per format.

A writer takes one report at a time, in path order, and keeps only what its format needs at the end. Call `part` for
every report, then `head` and `tail` with the final totals; the file is head, parts and tail in this order. `issues.py`
has the fields of a check that did not pass (code, place, severity, fingerprint); begin there. Text of the user is
escaped, so that no name or expression can break a format.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from gradcli.batch.totals import Totals

    class Writer(Protocol):
        """The interface of every format; use one writer for one run."""

        def head(self, totals: Totals) -> str:
            """The text before all parts."""

        def part(self, report: Any) -> str:
            """The text of the next report, which may be empty."""

        def tail(self, totals: Totals) -> str:
            """The text after all parts; it says so if the run ended early."""


# format: the module and the class of its writer
WRITERS: dict[str, tuple[str, str]] = {
    "concise": ("gradcli.rendering.formats.concise", "Concise"),
    "csv": ("gradcli.rendering.formats.rows", "Csv"),
    "github": ("gradcli.rendering.formats.github", "Annotations"),
    "github-summary": ("gradcli.rendering.formats.github", "StepSummary"),
    "gitlab": ("gradcli.rendering.formats.gitlab", "CodeQuality"),
    "json": ("gradcli.rendering.formats.json_report", "JsonReport"),
    "jsonl": ("gradcli.rendering.formats.rows", "JsonLines"),
    "junit": ("gradcli.rendering.formats.junit", "JUnit"),
    "markdown": ("gradcli.rendering.formats.markdown", "Markdown"),
    "sarif": ("gradcli.rendering.formats.sarif", "Sarif"),
    "tap": ("gradcli.rendering.formats.tap", "Tap"),
}


def writer(name: str, **options: Any) -> Writer:
    """A new writer of the format `name`, a key of WRITERS.

    >>> from gradcli.batch.totals import Totals
    >>> written(writer("tap"), [], Totals())
    'TAP version 13\\n1..0 # SKIP nothing to check\\n'
    """
    module, kind = WRITERS[name]
    result: Writer = getattr(import_module(module), kind)(**options)
    return result


def written(writer: Writer, reports: Iterable[Any], totals: Totals) -> str:
    """The whole text of a format, for reports that fit into memory."""
    parts = [writer.part(report) for report in reports]
    return "".join((writer.head(totals), *parts, writer.tail(totals)))
