"""Reports as plain JSON data, and back, for transport between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.checks.report import Check, Report
from gradcli.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def report_to_json(report: Report) -> dict[str, Any]:
    """A report as plain data; the text of a source is sent once."""
    sources: list[dict[str, Any]] = []
    known: dict[int, int] = {}

    def packed(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
        return [_diagnostic_to_json(note, sources, known) for note in diagnostics]

    return {
        "expression": report.expression,
        "file": report.file,
        "block": report.block,
        "diagnostics": packed(report.diagnostics),
        "checks": [
            {
                "id": check.id,
                "file": check.file,
                "line": check.line,
                "kind": check.kind,
                "leaf": check.leaf,
                "verdict": check.verdict,
                "evidence": check.evidence,
                "message": check.message,
                "diagnostics": packed(check.diagnostics),
                "expected": check.expected,
                "passed": check.passed,
            }
            for check in report.checks
        ],
        "sources": sources,
    }


def report_from_json(data: dict[str, Any], seconds: Sequence[float | None]) -> Report:
    """The report of plain data, with the seconds that each of its checks took."""
    sources = [Source(source["text"], source["name"], source["path"]) for source in data["sources"]]

    def unpacked(diagnostics: Iterable[dict[str, Any]]) -> tuple[Diagnostic, ...]:
        return tuple(_diagnostic_from_json(fields, sources) for fields in diagnostics)

    checks = [
        Check(**{**fields, "diagnostics": unpacked(fields["diagnostics"]), "seconds": took})
        for fields, took in zip(data["checks"], seconds, strict=True)
    ]
    notes = unpacked(data["diagnostics"])
    return Report(data["expression"], tuple(checks), notes, data["file"], data["block"])


def _diagnostic_to_json(note: Diagnostic, sources: list[dict[str, Any]], known: dict[int, int]) -> dict[str, Any]:
    source: Any = note.source
    place = None
    if isinstance(source, Source):
        place = known.setdefault(id(source), len(sources))
        if place == len(sources):
            sources.append({"text": source.text, "name": source.name, "path": source.path})
    return {
        "code": note.code,
        "message": note.message,
        "span": None if note.span is None else list(note.span),
        "labels": [[list(span), text] for span, text in note.labels],
        "help": note.help,
        "severity": note.severity,
        "source": place,
    }


def _diagnostic_from_json(fields: dict[str, Any], sources: list[Source]) -> Diagnostic:
    return Diagnostic(
        fields["code"],
        fields["message"],
        None if fields["span"] is None else Span(*fields["span"]),
        tuple((Span(*span), text) for span, text in fields["labels"]),
        fields["help"],
        fields["severity"],
        None if fields["source"] is None else sources[fields["source"]],
    )
