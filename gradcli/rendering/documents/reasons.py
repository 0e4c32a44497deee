"""Explanations as documents: each reason with its line and fix, then the gradients that were examined."""

from __future__ import annotations

from gradcli.rendering.document import GAP, Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.machine import SCHEMA_VERSION
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
    for one in result.findings:
        if blocks:
            blocks.append(GAP)
        blocks += finding(one, style)
    if not result.findings:
        blocks.append(Line("nothing to explain", "good"))
    listed = list(result.gradients.items())
    if listed and (result.findings or len(listed) == 1):
        rows = tuple((name, phrase) for name, phrase in listed[:WIDEST])
        blocks.append(Grid((Column("tensor", "code"), Column("gradient")), rows))
        if len(listed) > WIDEST:
            blocks.append(Line(f"and {len(listed) - WIDEST} more", "note"))
    return document(*blocks)


def finding(one: Finding, style: Style) -> Iterator[Block]:
    """A reason, its line, a fix, and the numbers."""
    yield Line(headline(one), "title")
    line = () if one.line is None else (("line", str(one.line), "text"),)
    yield Facts((("reason", one.reason, "text"), *line, ("fix", one.cure, "text")))
    if isinstance(one.evidence, GradientPath):
        columns = (Column("node"), Column("line", "number"), Column("arrived", "number"), Column("sent", "number"))
        digits = style.digits or 4
        rows = tuple(
            (row.node, str(row.line or ""), number(row.arrived, digits), number(row.sent, digits))
            for row in one.evidence.norms
        )
        yield Grid(columns, rows, title="Norm of the gradient on its way from the loss")


def headline(one: Finding) -> str:
    """The finding as a sentence; names are not capitalised."""
    own = one.subject is not None and one.message.startswith(one.subject)
    return one.message if own else one.message[:1].upper() + one.message[1:]


def payload(result: Explanation) -> dict[str, Any]:
    """The findings for programs."""
    return {
        "schema_version": SCHEMA_VERSION,
        "command": "why",
        "file": result.file,
        **({"on": result.on} if result.on else {}),
        "findings": [
            {
                "reason": one.reason,
                "tensor": one.subject,
                "line": one.line,
                "message": one.message,
                "cure": one.cure,
                "evidence": jsonable(one.numbers()),
            }
            for one in result.findings
        ],
        "gradients": dict(result.gradients),
    }


def tidy(result: Explanation) -> Grid:
    """A row per finding, for CSV."""
    columns = tuple(map(Column, ("reason", "tensor", "line", "message", "cure")))
    rows = tuple(
        (one.reason, one.subject or "", "" if one.line is None else str(one.line), headline(one), one.cure)
        for one in result.findings
    )
    return Grid(columns, rows)
