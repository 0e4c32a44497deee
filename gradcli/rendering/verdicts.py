"""Reports of `check` in, documents out: a row per verdict, a card of evidence where it matters, a summary.

It repeats what the checks found and weighs nothing.
"""

from __future__ import annotations

from gradcli.rendering.diagnostics import headline
from gradcli.rendering.document import GAP, Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.machine import summary
from gradcli.rendering.values import inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.rendering.document import Block

GOOD = ("PROVED", "CERTIFIED", "AGREES")
DOUBTFUL = ("IMPRECISE", "KINK", "INCONCLUSIVE")

SENTENCES = {
    "PROVED": "equal by algebra wherever both sides are defined, on the region of the point",
    "CERTIFIED": "the exact derivative is enclosed and the number agrees with it",
    "AGREES": "numerical evidence only: no difference seen",
    "IMPRECISE": "the rule is right, the floating-point number is not",
    "DISAGREES": "not the derivative",
    "KINK": "the derivative is not unique at this point",
    "BOUNDARY": "the derivative is not finite at this point",
    "DISCONTINUOUS": "the value jumps at this point",
    "UNDEFINED": "the value is not a real number at this point",
    "INCONCLUSIVE": "could not be decided",
    "ERROR": "could not be run",
}

EVIDENCE_ENTRIES = 12


def reports(found: Sequence[Any], style: Style, show: str = "failing") -> Document:
    """All reports: a file that passed is one line among several files, every other one lists its checks."""
    blocks: list[Block] = []
    for report in found:
        brief = len(found) > 1 and show == "failing" and report.checks and all(one.passed for one in report.checks)
        blocks += [passed_line(report)] if brief else [*([GAP] if blocks else []), *one_report(report, style, show)]
    counts = summary(found)
    role = "bad" if counts["failed"] else "doubt" if counts["inconclusive"] else "good"
    blocks += [GAP, Line(totals(found), role)]
    return document(*blocks)


def title(report: Any) -> str:
    """What was checked: the file, or the expression as it was parsed."""
    return str(getattr(report, "file", None) or report.expression)


def passed_line(report: Any) -> Line:
    counts: dict[str, int] = {}
    for one in report.checks:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return Line(f"ok    {title(report)}: {told}", "good")


def one_report(report: Any, style: Style, show: str) -> Iterator[Block]:
    """The checks of one file as rows, then a card for each that failed (or for each, with `--show all`)."""
    yield Line(title(report), "code")
    rows = tuple((mark(one), one.verdict, subject(one), place(one), sentence(one)) for one in report.checks)
    if rows:
        columns = (
            Column("", "verdict"),
            Column("verdict", "verdict"),
            Column("of", "code"),
            Column("line", "number", 1),
            Column("because"),
        )
        yield Grid(columns, rows)
    for one in report.checks:
        if show == "all" or not one.passed:
            yield from card(one, style)


def mark(check: Any) -> str:
    """How a check counts: ok, FAIL, or ? where nothing could be decided."""
    return "ok" if check.passed else "?" if check.verdict == "INCONCLUSIVE" else "FAIL"


def subject(check: Any) -> str:
    return f"{check.kind} {check.leaf}" if check.leaf else str(check.kind)


def place(check: Any) -> str:
    return "" if check.line is None else str(check.line)


def sentence(check: Any) -> str:
    """What was found, in words; with what the script expected where it says so."""
    told = check.message or SENTENCES.get(check.verdict, "")
    return f"{told} (expected: {check.expected})" if check.expected else told


def card(check: Any, style: Style) -> Iterator[Block]:
    """The evidence of one check, a fact per entry, and what was reported while it ran."""
    facts = tuple(evidence_facts(check.evidence, style))
    notes = tuple((one.code, headline(one), "note") for one in check.diagnostics if check.verdict != "ERROR")
    if facts or notes:
        yield GAP
        yield Line(f"{check.verdict} {subject(check)}" + (f", line {check.line}" if check.line else ""), "title")
        yield Facts((*facts, *notes))


def evidence_facts(evidence: dict[str, Any], style: Style) -> Iterator[tuple[str, str, str]]:
    """Evidence as name and text: a line per text of a list and per part of a structure; what is empty is left out."""
    for name, value in evidence.items():
        label = str(name).replace("_", " ")
        for line in evidence_lines(value, style):
            yield (label, line, "text")
            label = ""


def evidence_lines(value: Any, style: Style) -> Iterator[str]:
    """A value as the lines that a reader wants: numbers of a point beside each other, everything else in turn."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):  # a reading: its sentence says it all
        yield value["text"]
    elif isinstance(value, dict) and not all(map(is_number, value.values())):
        parts = {str(key): evidence_text(item, style) for key, item in value.items() if not is_empty(item)}
        cells = max(map(len, parts), default=0)
        yield from (f"{key.ljust(cells)}  {text}" for key, text in parts.items())
    elif isinstance(value, list | tuple) and any(isinstance(one, str | dict) for one in value):
        for one in value[:EVIDENCE_ENTRIES]:
            yield from evidence_lines(one, style)
        if len(value) > EVIDENCE_ENTRIES:
            yield f"... {len(value) - EVIDENCE_ENTRIES} more"
    elif not is_empty(value):
        yield evidence_text(value, style)


def is_number(value: object) -> bool:
    return isinstance(value, int | float | complex)


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | dict | list | tuple) and not value)


def evidence_text(value: Any, style: Style) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {evidence_text(item, style)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        shown = [evidence_text(item, style) for item in value[:EVIDENCE_ENTRIES]]
        rest = len(value) - len(shown)
        return f"[{', '.join(shown)}{f', ... {rest} more' if rest else ''}]"
    return inline(value, style.digits, EVIDENCE_ENTRIES) if not isinstance(value, str) else value


def totals(found: Sequence[Any]) -> str:
    """The summary line: `5 checks in 2 files: 4 passed, 1 failed`."""
    counts = summary(found)
    checks = sum(len(report.checks) for report in found)
    files = sum(1 for report in found if getattr(report, "file", None))
    where = f" in {files} files" if files > 1 else ""
    told = [
        f"{counts[name]} {name}" for name in ("passed", "failed", "inconclusive") if counts[name] or name == "passed"
    ]
    return f"{checks} check{'' if checks == 1 else 's'}{where}: {', '.join(told)}"


def tidy(found: Sequence[Any]) -> Grid:
    """One row per check, for CSV."""
    titles = ("id", "file", "line", "kind", "leaf", "verdict", "passed", "message")
    rows = tuple(
        (
            one.id,
            one.file or "",
            place(one),
            one.kind,
            one.leaf or "",
            one.verdict,
            str(one.passed).lower(),
            sentence(one),
        )
        for report in found
        for one in report.checks
    )
    return Grid(tuple(map(Column, titles)), rows)
