"""Explanations as documents: each reason with its line and fix, then the gradients that were examined."""

from __future__ import annotations

from gradcli.rendering.document import GAP, Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.machine import opening
from gradcli.rendering.values import jsonable, number
from gradcli.results.findings import GradientPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.rendering.document import Block
    from gradcli.results.findings import Explanation, Finding

WIDEST = 12  # gradients that are listed


def explanation(result: Explanation, style: Style) -> Document:
    """`why`: the findings, or a line that there are none."""
    blocks: list[Block] = [Line(f"on {result.on}", "note")] if result.on else []
    for finding in result.findings:
        if blocks:
            blocks.append(GAP)
        blocks += reason(finding, style)
    if not result.findings:
        blocks.append(Line("nothing to explain", "good"))
    listed = list(result.gradients.items())
    if listed and (result.findings or len(listed) == 1):
        rows = tuple((name, phrase) for name, phrase in listed[:WIDEST])
        blocks.append(Grid((Column("tensor", "code"), Column("gradient")), rows))
        if len(listed) > WIDEST:
            blocks.append(Line(f"and {len(listed) - WIDEST} more", "note"))
    return document(*blocks)


def reason(finding: Finding, style: Style) -> Iterator[Block]:
    """A reason, its line, a fix, and the numbers."""
    yield Line(headline(finding), "title")
    line = () if finding.line is None else (("line", str(finding.line), "text"),)
    yield Facts((("reason", finding.reason, "text"), *line, ("fix", finding.cure, "text")))
    if isinstance(finding.evidence, GradientPath):
        columns = (Column("node"), Column("line", "number"), Column("arrived", "number"), Column("sent", "number"))
        digits = style.digits or 4
        rows = tuple(
            (row.node, str(row.line or ""), number(row.arrived, digits), number(row.sent, digits))
            for row in finding.evidence.norms
        )
        yield Grid(columns, rows, title="Norm of the gradient on its way from the loss")


def headline(finding: Finding) -> str:
    """The finding as a sentence; names are not capitalised."""
    own = finding.subject is not None and finding.message.startswith(finding.subject)
    return finding.message if own else finding.message[:1].upper() + finding.message[1:]


def payload(result: Explanation) -> dict[str, Any]:
    """The findings for programs."""
    return {
        **opening("why"),
        "file": result.file,
        **({"on": result.on} if result.on else {}),
        "findings": [
            {
                "reason": finding.reason,
                "tensor": finding.subject,
                "line": finding.line,
                "message": finding.message,
                "cure": finding.cure,
                "evidence": jsonable(finding.numbers()),
            }
            for finding in result.findings
        ],
        "gradients": dict(result.gradients),
    }


def tidy(result: Explanation) -> Grid:
    """A row per finding, for CSV."""
    columns = tuple(map(Column, ("reason", "tensor", "line", "message", "cure")))
    rows = tuple(
        (
            finding.reason,
            finding.subject or "",
            "" if finding.line is None else str(finding.line),
            headline(finding),
            finding.cure,
        )
        for finding in result.findings
    )
    return Grid(columns, rows)
