"""Reports as plain JSON data, and back, for transport between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.checks.report import Check, Report
from gradcli.diagnostics import Diagnostic, Span
from gradcli.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def report_to_json(report: Report) -> dict[str, Any]:
    """A report as plain data; the text of a source is sent once."""
    sources: list[dict[str, Any]] = []
    known: dict[int, int] = {}

    def packed(found: Iterable[Diagnostic]) -> list[dict[str, Any]]:
        return [_diagnostic_to_json(one, sources, known) for one in found]

    return {
        "expression": report.expression,
        "file": report.file,
        "block": report.block,
        "diagnostics": packed(report.diagnostics),
        "checks": [
            {
                "id": one.id,
                "file": one.file,
                "line": one.line,
                "kind": one.kind,
                "leaf": one.leaf,
                "verdict": one.verdict,
                "evidence": one.evidence,
                "message": one.message,
                "diagnostics": packed(one.diagnostics),
                "expected": one.expected,
                "passed": one.passed,
            }
            for one in report.checks
        ],
        "sources": sources,
    }


def report_from_json(data: dict[str, Any], seconds: Sequence[float | None]) -> Report:
    """The report of plain data, with the seconds that each of its checks took."""
    sources = [Source(one["text"], one["name"], one["path"]) for one in data["sources"]]

    def unpacked(found: Iterable[dict[str, Any]]) -> tuple[Diagnostic, ...]:
        return tuple(_diagnostic_from_json(one, sources) for one in found)

    checks = [
        Check(**{**one, "diagnostics": unpacked(one["diagnostics"]), "seconds": took})
        for one, took in zip(data["checks"], seconds, strict=True)
    ]
    notes = unpacked(data["diagnostics"])
    return Report(data["expression"], tuple(checks), notes, data["file"], data["block"])


def _diagnostic_to_json(one: Diagnostic, sources: list[dict[str, Any]], known: dict[int, int]) -> dict[str, Any]:
    source: Any = one.source
    place = None
    if isinstance(source, Source):
        place = known.setdefault(id(source), len(sources))
        if place == len(sources):
            sources.append({"text": source.text, "name": source.name, "path": source.path})
    return {
        "code": one.code,
        "message": one.message,
        "span": None if one.span is None else list(one.span),
        "labels": [[list(span), text] for span, text in one.labels],
        "help": one.help,
        "severity": one.severity,
        "source": place,
    }


def _diagnostic_from_json(one: dict[str, Any], sources: list[Source]) -> Diagnostic:
    return Diagnostic(
        one["code"],
        one["message"],
        None if one["span"] is None else Span(*one["span"]),
        tuple((Span(*span), text) for span, text in one["labels"]),
        one["help"],
        one["severity"],
        None if one["source"] is None else sources[one["source"]],
    )
