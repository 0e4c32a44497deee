"""The report of an audit as a document: a row for each gradient, cards for wrong ones, lines for the settings."""

from __future__ import annotations

from gradcli.rendering.document import GAP, Column, Document, Grid, Line, Style, document
from gradcli.rendering.documents.cards import card
from gradcli.rendering.documents.verdicts import READ
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


def findings(found: Sequence[Finding], processes: int, seconds: float, style: Style, show: str) -> Document:
    """`audit`: all gradients, the evidence for wrong ones, lines to paste into the settings, the summary."""
    blocks: list[Block] = []
    if found:
        blocks.append(Grid(COLUMNS, tuple(map(row, found))))
    for one in found:
        if one.verdict == "DISAGREES" or one.fails or show == "all":
            blocks += card(one.check(), style, whole=show == "all")
    blocks += [GAP, *to_paste(found)]
    blocks.append(Line(summary(found, processes, seconds), role(found)))
    return document(*blocks)


def row(one: Finding) -> tuple[str, ...]:
    """One gradient; `note` marks a wrong gradient in code of an installed package."""
    return (
        mark(one),
        one.verdict,
        visible(f"{one.name} ({one.role})"),
        visible(f"{one.file}:{one.line}"),
        visible(one.caller),
        f"{one.calls:,}",
        str(len({point["call"] for point in one.points})),
        reason(one),
    )


def mark(one: Finding) -> str:
    """How a finding counts."""
    if one.fails:
        return "FAIL"
    if one.undecided:
        return "?"
    return "note" if one.verdict == "DISAGREES" and not one.owned else "ok" if one.points else "-"


def reason(one: Finding) -> str:
    """The reason for the verdict, with the expected verdict and the calls that were not kept."""
    phrase = one.message
    if one.verdict == "DISAGREES":  # how it is wrong stands on the card below
        phrase = next((phrase.partition(mark)[0] for mark in READ if mark in phrase), phrase)
    parts = [phrase]
    if one.expected:
        parts.append(f"expected: {one.expected}")
    if one.skipped and one.skipped != one.message:
        parts.append(f"not kept: {one.skipped}")
    return visible("; ".join(part for part in parts if part))


def to_paste(found: Sequence[Finding]) -> Iterator[Block]:
    """The lines of settings that accept gradients which differ on purpose."""
    meant = {one.title: one.verdict for one in found if one.owned and not one.expected and one.verdict in EXPECTABLE}
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


def summary(found: Sequence[Finding], processes: int, seconds: float) -> str:
    """`5 gradients in 2 Python processes, judged in 3.1 s: 3 AGREES, 1 SURROGATE, 1 DISAGREES`."""
    counts: dict[str, int] = {}
    for one in found:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    phrase = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    noun = "gradient" if len(found) == 1 else "gradients"
    where = f"{processes} Python process{'' if processes == 1 else 'es'}"
    return f"{len(found)} {noun} in {where}, judged in {seconds:.1f} s" + (f": {phrase}" if phrase else "")


def role(found: Sequence[Finding]) -> str:
    if any(one.fails for one in found):
        return "bad"
    return "doubt" if any(one.undecided for one in found) else "good"


def tidy(found: Sequence[Finding]) -> Grid:
    """A row for each gradient, for CSV."""
    columns = (*COLUMNS[1:], Column("owned"), Column("expected"))
    rows = tuple((*row(one)[1:], str(one.owned).lower(), one.expected) for one in found)
    return Grid(columns, rows)


def payload(found: Sequence[Finding], processes: int, code: int, faults: Sequence[str]) -> dict[str, Any]:
    """The findings for programs."""
    return {
        **opening("audit"),
        "exit_code_of_command": code,
        "processes": processes,
        "gradients": [gradient_fields(one) for one in found],
        "summary": {
            "failed": sum(one.fails for one in found),
            "undecided": sum(one.undecided for one in found),
            "gradients": len(found),
        },
        "faults": list(faults),
    }


def gradient_fields(one: Finding) -> dict[str, Any]:
    """One gradient: its place and counts, its verdict, and its points with their evidence."""
    judged = check_fields(one.check())
    return {
        "name": one.name,
        "library": one.library,
        "role": one.role,
        "file": one.file,
        "line": one.line,
        "called_from": one.caller,
        "calls": one.calls,
        "calls_without_gradient": one.untracked,
        "owned": one.owned,
        "verdict": one.verdict,
        "passed": judged["passed"],
        "message": one.message,
        "expected": one.expected or None,
        "not_kept": one.skipped or None,
        "again": one.again or None,
        "notes": one.notes,
        "points": [
            {
                "call": point["call"],
                "argument": point["leaf"],
                "verdict": point["verdict"],
                "message": point["message"],
                "evidence": jsonable(point["evidence"]),
            }
            for point in one.points
        ],
    }
