"""The report of an audit as a document: a row for each gradient, cards for wrong ones, lines for the settings."""

from __future__ import annotations

from gradcli.rendering.document import GAP, Column, Document, Grid, Line, Style, document
from gradcli.rendering.documents.cards import card
from gradcli.rendering.documents.verdicts import without_diagnosis
from gradcli.rendering.machine import check_fields, opening
from gradcli.rendering.text import visible
from gradcli.rendering.values import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.audit.audit_report import Finding
    from gradcli.rendering.document import Block

COLUMNS = (
    Column("", "verdict"),
    Column("verdict", "verdict"),
    Column("gradient", "code"),
    Column("stands at"),
    Column("called from", drop=1),
    Column("calls", "number"),
    Column("points", "number", 2),
    Column("reason"),
)


def findings(findings: Sequence[Finding], processes: int, seconds: float, style: Style, show: str) -> Document:
    """`audit`: all gradients, the evidence for wrong ones, lines to paste into the settings, the summary."""
    blocks: list[Block] = []
    if findings:
        blocks.append(Grid(COLUMNS, tuple(map(row, findings))))
    for finding in findings:
        if finding.verdict == "DISAGREES" or finding.fails or show == "all":
            blocks += card(finding.check(), style, whole=show == "all")
    blocks += [GAP, *to_paste(findings)]
    blocks.append(Line(summary(findings, processes, seconds), role(findings)))
    return document(*blocks)


def row(finding: Finding) -> tuple[str, ...]:
    """One gradient; `note` marks a wrong gradient in code of an installed package."""
    return (
        mark(finding),
        finding.verdict,
        visible(f"{finding.name} ({finding.role})"),
        visible(f"{finding.file}:{finding.line}"),
        visible(finding.caller),
        f"{finding.calls:,}",
        str(len({point["call"] for point in finding.points})),
        reason(finding),
    )


def mark(finding: Finding) -> str:
    """How a finding counts."""
    if finding.fails:
        return "FAIL"
    if finding.undecided:
        return "?"
    return "note" if finding.verdict == "DISAGREES" and not finding.owned else "ok" if finding.points else "-"


def reason(finding: Finding) -> str:
    """The reason for the verdict, with the expected verdict and the calls that were not kept."""
    phrase = finding.message
    if finding.verdict == "DISAGREES":  # how it is wrong stands on the card below
        phrase = without_diagnosis(phrase)
    parts = [phrase]
    if finding.expected:
        parts.append(f"expected: {finding.expected}")
    if finding.skipped and finding.skipped != finding.message:
        parts.append(f"not kept: {finding.skipped}")
    return visible("; ".join(part for part in parts if part))


def to_paste(findings: Sequence[Finding]) -> Iterator[Block]:
    """The lines of settings that accept gradients which differ on purpose."""
    meant = {
        finding.title: finding.verdict
        for finding in findings
        if finding.owned and not finding.expected and finding.verdict in EXPECTABLE
    }
    if meant:
        yield Line("If these are intended, add to pyproject.toml:", "note")
        yield Line("[tool.gradcli.audit.expect]", "code")
        for name, verdict in meant.items():
            yield Line(f'"{visible(name)}" = "{verdict}"', "code")
        yield GAP


# verdicts that a user may have meant
EXPECTABLE = frozenset(
    {"DISAGREES", "SURROGATE", "SYMMETRIC", "ON THE SPHERE", "ON THE SIMPLEX", "APPROXIMATE", "STOCHASTIC",
     "STATE CHANGED", "KINK", "INCONCLUSIVE"}
)  # fmt: skip


def summary(findings: Sequence[Finding], processes: int, seconds: float) -> str:
    """`5 gradients in 2 Python processes, judged in 3.1 s: 3 AGREES, 1 SURROGATE, 1 DISAGREES`."""
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.verdict] = counts.get(finding.verdict, 0) + 1
    phrase = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    noun = "gradient" if len(findings) == 1 else "gradients"
    where = f"{processes} Python process{'' if processes == 1 else 'es'}"
    return f"{len(findings)} {noun} in {where}, judged in {seconds:.1f} s" + (f": {phrase}" if phrase else "")


def role(findings: Sequence[Finding]) -> str:
    if any(finding.fails for finding in findings):
        return "bad"
    return "doubt" if any(finding.undecided for finding in findings) else "good"


def tidy(findings: Sequence[Finding]) -> Grid:
    """A row for each gradient, for CSV."""
    columns = (*COLUMNS[1:], Column("owned"), Column("expected"))
    rows = tuple((*row(finding)[1:], str(finding.owned).lower(), finding.expected) for finding in findings)
    return Grid(columns, rows)


def payload(findings: Sequence[Finding], processes: int, code: int, faults: Sequence[str]) -> dict[str, Any]:
    """The findings for programs."""
    return {
        **opening("audit"),
        "exit_code_of_command": code,
        "processes": processes,
        "gradients": [gradient_fields(finding) for finding in findings],
        "summary": {
            "failed": sum(finding.fails for finding in findings),
            "undecided": sum(finding.undecided for finding in findings),
            "gradients": len(findings),
        },
        "faults": list(faults),
    }


def gradient_fields(finding: Finding) -> dict[str, Any]:
    """One gradient: its place and counts, its verdict, and its points with their evidence."""
    judged = check_fields(finding.check())
    return {
        "name": finding.name,
        "library": finding.library,
        "role": finding.role,
        "file": finding.file,
        "line": finding.line,
        "called_from": finding.caller,
        "calls": finding.calls,
        "calls_without_gradient": finding.untracked,
        "owned": finding.owned,
        "verdict": finding.verdict,
        "passed": judged["passed"],
        "message": finding.message,
        "expected": finding.expected or None,
        "not_kept": finding.skipped or None,
        "again": finding.again or None,
        "notes": finding.notes,
        "points": [
            {
                "call": point["call"],
                "argument": point["leaf"],
                "verdict": point["verdict"],
                "message": point["message"],
                "evidence": jsonable(point["evidence"]),
            }
            for point in finding.points
        ],
    }
