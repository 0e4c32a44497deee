"""The report of an audit as a document: rows and reasons, cards for wrong gradients, lines for the settings."""

from __future__ import annotations

from textwrap import wrap

from gradcli.audit.guesses import LOOK, UNPAIRED
from gradcli.rendering.document import GAP, Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.documents.cards import card
from gradcli.rendering.documents.verdicts import without_diagnosis
from gradcli.rendering.machine import check_fields, opening
from gradcli.rendering.safe_text import visible
from gradcli.rendering.value_text import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.audit.audit_report import AuditedGradient
    from gradcli.audit.command import CommandOutcome
    from gradcli.audit.pairs import Pair
    from gradcli.rendering.document import Block

COLUMNS = (
    Column("", "verdict"),
    Column("verdict", "verdict"),
    Column("gradient", "code"),
    Column("stands at"),
    Column("calls", "number"),
)
MORE = (Column("called from"), Column("points", "number"), Column("reason"), Column("owned"), Column("expected"))
WIDTH = 100  # cells of a line
LABEL = 20  # cells in front of what a card says
NAME, PLACE = 40, 32  # cells of a gradient's name, and of where it stands
MANY = 24  # rows; of more, those that pass are counted only


def findings(
    findings: Sequence[AuditedGradient], outcome: CommandOutcome, pairs: int, style: Style, show: str
) -> Document:
    """`audit`: the gradients, the evidence for wrong ones, lines to paste into the settings, the summary."""
    blocks: list[Block] = []
    listed = [x for x in findings if show == "all" or len(findings) <= MANY or mark(x) not in ("ok", "-")]
    if listed:
        rows = [(*row(x)[:2], shortened(label(x), NAME), shortened_path(place(x), PLACE), row(x)[4]) for x in listed]
        blocks.append(Grid(COLUMNS, tuple(rows)))
    if len(listed) < len(findings):
        blocks.append(Line(f"{len(findings) - len(listed)} others agree or were not judged (--show all)", "note"))
    blocks.append(GAP)
    for finding in listed:
        if finding.verdict not in PLAIN:
            phrase = f"{shortened(finding.name, NAME)}: {reason(finding)}"
            blocks += [Line(line) for line in wrap(phrase, WIDTH, subsequent_indent="  ")]
    for finding in listed:
        if finding.verdict == "DISAGREES" or finding.fails or show == "all":
            blocks += map(narrow, card(finding.check(), style, whole=show == "all"))
    blocks += [GAP, *to_paste(findings)]
    blocks += [Line(line, role(findings)) for line in wrap(summary(findings, outcome, pairs), WIDTH)]
    return document(*blocks)


def narrow(block: Block) -> Block:
    """A block whose sentences are wrapped; commands and numbers stay as they are."""
    if not isinstance(block, Facts):
        return block
    rows = []
    for name, text, role in block.rows:
        lines = wrap(text, WIDTH - LABEL) if name == "diagnosis" else [text]
        rows += [(name if not place else "", line, role) for place, line in enumerate(lines)]
    return Facts(tuple(rows))


def row(finding: AuditedGradient) -> tuple[str, ...]:
    """One gradient; `note` marks a wrong gradient in code of an installed package."""
    return (
        mark(finding),
        finding.verdict,
        label(finding),
        place(finding),
        f"{finding.calls:,}",
        visible(finding.caller),
        str(len({point["call"] for point in finding.points})),
        reason(finding),
        str(finding.owned).lower(),
        finding.expected,
    )


def label(finding: AuditedGradient) -> str:
    """What a gradient is called, and its role."""
    return visible(f"{finding.name} ({finding.role})")


def place(finding: AuditedGradient) -> str:
    """Where a gradient stands."""
    return visible(f"{finding.file}:{finding.line}")


def shortened(name: str, cells: int) -> str:
    """A name without the role behind it and the modules before it, as far as there is no room for them."""
    name = name if len(name) <= cells else name.partition(" (")[0]
    while len(name) > cells and "." in name:
        name = name.partition(".")[2]
    return name


def shortened_path(path: str, cells: int) -> str:
    """A path without the folders in its middle, as far as there is no room for them."""
    first, *between, last = path.split("/") if "/" in path and len(path) > cells else ("", path)
    while between[1:] and len("/".join((first, "...", *between[1:], last))) > cells:
        between = between[1:]
    return "/".join((first, "...", *between[1:], last)) if between else path


def mark(finding: AuditedGradient) -> str:
    """How a finding counts."""
    if finding.fails:
        return "FAIL"
    if finding.undecided:
        return "?"
    if finding.verdict == LOOK or (finding.verdict == "DISAGREES" and not finding.owned):
        return "look" if finding.verdict == LOOK else "note"
    return "ok" if finding.points and finding.verdict not in (UNPAIRED, "NOT JUDGED") else "-"


def reason(finding: AuditedGradient) -> str:
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


def to_paste(findings: Sequence[AuditedGradient]) -> Iterator[Block]:
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


PLAIN = ("AGREES", "IMPRECISE", "CERTIFIED", "PROVED")  # whose reason is no news
# verdicts that a user may have meant
EXPECTABLE = frozenset(
    {"DISAGREES", "SURROGATE", "SYMMETRIC", "ON THE SPHERE", "ON THE SIMPLEX", "APPROXIMATE", "STOCHASTIC",
     "STATE CHANGED", "KINK", "INCONCLUSIVE"}
)  # fmt: skip


def summary(findings: Sequence[AuditedGradient], outcome: CommandOutcome, pairs: int) -> str:
    """`5 gradients in 2 Python processes, judged in 3.1 s: 3 AGREES, 1 SURROGATE, 1 DISAGREES`; of how many pairs."""
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.verdict] = counts.get(finding.verdict, 0) + 1
    phrase = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    noun = "gradient" if len(findings) == 1 else "gradients"
    where = f"{outcome.processes} Python process{'' if outcome.processes == 1 else 'es'}"
    listed = f" of {pairs:,} pairs" if pairs else ""
    head = f"{len(findings)} {noun}{listed} in {where}, judged in {outcome.seconds:.1f} s"
    return head + (f": {phrase}" if phrase else "")


def role(findings: Sequence[AuditedGradient]) -> str:
    if any(finding.fails for finding in findings):
        return "bad"
    return "doubt" if any(finding.undecided for finding in findings) else "good"


def tidy(findings: Sequence[AuditedGradient]) -> Grid:
    """A row for each gradient, for CSV."""
    return Grid((*COLUMNS[1:], *MORE), tuple(row(finding)[1:] for finding in findings))


def payload(findings: Sequence[AuditedGradient], outcome: CommandOutcome, pairs: int) -> dict[str, Any]:
    """The findings for programs."""
    return {
        **opening("audit"),
        "exit_code_of_command": outcome.code,
        "processes": outcome.processes,
        "pairs": pairs,
        "gradients": [gradient_fields(finding) for finding in findings],
        "summary": {
            "failed": sum(finding.fails for finding in findings),
            "undecided": sum(finding.undecided for finding in findings),
            "gradients": len(findings),
        },
        "faults": outcome.faults,
        "missed": outcome.missed,
    }


def scanned(pairs: Sequence[Pair], package: str) -> dict[str, Any]:
    """The pairs of a package for programs."""
    return {**opening("audit"), "package": package, "pairs": [pair._asdict() for pair in pairs]}


def gradient_fields(finding: AuditedGradient) -> dict[str, Any]:
    """One gradient: its place and counts, its verdict, and its points with their evidence."""
    judged = check_fields(finding.check())
    return {
        "name": finding.name,
        "guessed": finding.guessed,
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
