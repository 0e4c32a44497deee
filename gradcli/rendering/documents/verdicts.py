"""Reports of `check` as documents: a row for each verdict, a card with the evidence for failures, a summary."""

from __future__ import annotations

from gradcli.batch.totals import Totals
from gradcli.rendering.document import GAP, Column, Document, Grid, Line, Style, document
from gradcli.rendering.documents.cards import TABLES, card, subject, table_card
from gradcli.rendering.safe_text import path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from gradcli.rendering.document import Block
    from gradcli.rendering.documents.cards import Replay

GOOD = ("PROVED", "CERTIFIED", "AGREES")
DOUBTFUL = ("IMPRECISE", "KINK", "INCONCLUSIVE")

READ = ("; consistent with ", "; unexplained: ", "; right but for ", "; right on the ", "; the claim ")
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
    "CRASHED": "the process that checked it failed",
}


def reports(
    reports: Sequence[Any], style: Style, show: str = "failing", replay: Callable[[Any, Any], Replay] | None = None
) -> Document:
    """All reports and the summary line.

    `replay` says of a report and a check of it how it was called.
    """
    blocks: list[Block] = []
    for report in reports:
        blocks += [*one_report(report, style, show, replay), GAP]
    counted = Totals.of(reports)
    return document(*blocks, Line(totals(counted), role(counted)))


def part(
    report: Any, style: Style, show: str, replay: Callable[[Any, Any], Replay] | None = None, line: bool = False
) -> Document:
    """One report of several; with `line` as a single line, for reports without anything remarkable."""
    return document(passed_line(report)) if line else document(*one_report(report, style, show, replay))


def closing(counted: Totals) -> Document:
    """The summary line."""
    return document(Line(totals(counted), role(counted)))


def role(counted: Totals) -> str:
    return "bad" if counted.summary["failed"] else "doubt" if counted.summary["inconclusive"] else "good"


def title(report: Any) -> str:
    """The subject of a report: the file, always on one line, or the expression as it was parsed."""
    file = getattr(report, "file", None)
    block = f" (block {report.block})" if file and report.block else ""
    return path_text(file) + block if file else str(report.expression)


def unremarkable(report: Any) -> bool:
    """Whether all checks of a report passed, and there is neither a warning nor a table to show."""
    return all(check.passed and not {"not_in_general", *TABLES} & set(check.evidence) for check in report.checks)


def passed_line(report: Any) -> Line:
    counts: dict[str, int] = {}
    for check in report.checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    phrase = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return Line(f"ok    {title(report)}: {phrase or 'nothing to check'}", "good")


def one_report(report: Any, style: Style, show: str, replay: Callable[[Any, Any], Replay] | None) -> Iterator[Block]:
    """The checks of one file as rows, then a card for each that failed (or for each, with `--show all`).

    What failed comes first. Where all passed, witnesses and differences for a sequence of steps are shown where there
    are any; those of a gradient only where a claim does not show them already.
    """
    yield Line(title(report), "code")
    kept, own = (report.checks, ()) if show == "all" else parted(report.checks)
    kept = sorted(kept, key=lambda check: ("FAIL", "?", "ok").index(mark(check)))
    failing = bool(kept) and not kept[0].passed
    rows = tuple((mark(check), check.verdict, subject(check), place(check), headline(check, show)) for check in kept)
    if rows:
        columns = (
            Column("", "verdict"),
            Column("verdict", "verdict"),
            Column("check", "code"),
            Column("line", "number", 1),
            Column("reason"),
        )
        yield Grid(columns, rows)
    if own:
        yield Line(own_line(own), "good")
    for check in (*kept, *own):  # claims first, as in the rows
        if show == "all" or not check.passed:
            yield from card(check, style, replay(report, check) if replay else None, show == "all")
        elif failing or check.evidence.keys().isdisjoint(TABLES):
            continue
        elif check not in own or not any(shows(claim, check) for claim in kept):
            yield from table_card(check, style)


def parted(checks: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The checks that have a row each, and those of gradcli's own gradients, which share a line."""
    own = [
        check
        for check in checks
        if check.kind == "gradient"
        and check.verdict in GOOD[:2]
        and not check.expected
        and "not_in_general" not in check.evidence
    ]
    claims = [check for check in checks if check not in own]
    return (claims, own) if claims else (list(checks), [])


def shows(claim: Any, gradient: Any) -> bool:
    """Whether the witnesses of a claim include all of a gradient's, at the same entry."""
    claimed, own = (check.evidence.get("witnesses") or {"entry": check.id, "rows": ()} for check in (claim, gradient))
    if claim.leaf != gradient.leaf or claimed["entry"] != own["entry"] or "ladder" in gradient.evidence:
        return False
    numbers, needed = ({(row["witness"], row.get("value")) for row in table["rows"]} for table in (claimed, own))
    return numbers >= needed


def own_line(checks: Sequence[Any]) -> str:
    """`ok  gradcli's own gradients: PROVED A, w; CERTIFIED t`."""
    leaves: dict[str, list[str]] = {}
    for check in checks:
        leaves.setdefault(check.verdict, []).append(str(check.leaf))
    phrase = "; ".join(f"{verdict} {', '.join(names)}" for verdict, names in leaves.items())
    return f"ok  gradcli's own gradient{'s' * (len(checks) != 1)}: {phrase}"


def mark(check: Any) -> str:
    """How a check counts: ok, FAIL, or ? if it is undecided."""
    return "ok" if check.passed else "?" if check.verdict == "INCONCLUSIVE" else "FAIL"


def place(check: Any) -> str:
    return "" if check.line is None else str(check.line)


def sentence(check: Any) -> str:
    """The message of a check, with the verdict that the script expected, if any."""
    phrase = check.message or SENTENCES.get(check.verdict, "")
    return f"{phrase} (expected: {check.expected})" if check.expected else phrase


def headline(check: Any, show: str) -> str:
    """The message of a check, without the diagnosis if a card below shows it."""
    on_card = "diagnosis" in check.evidence and (show == "all" or not check.passed)
    return without_diagnosis(sentence(check)) if on_card else sentence(check)


def without_diagnosis(phrase: str) -> str:
    """The message of a check up to its diagnosis."""
    return next((phrase.partition(mark)[0] for mark in READ if mark in phrase), phrase)


def totals(counted: Totals) -> str:
    """The summary line: `5 checks in 2 scripts: 4 passed, 1 failed`."""
    counts, checks, files = counted.summary, counted.checks, counted.files
    where = f" in {files:,} scripts" if files > 1 else ""
    names = {"passed": "passed", "accepted": f"accepted by {path_text(counted.baseline)}"}
    names |= {"failed": "failed", "inconclusive": "inconclusive"}
    phrase = [f"{counts[key]:,} {name}" for key, name in names.items() if counts.get(key) or key == "passed"]
    left = counted.selected - files
    rest = f"; {left:,} more not checked ({counted.stopped})" if counted.stopped and left > 0 else ""
    return f"{checks:,} check{'' if checks == 1 else 's'}{where}: {', '.join(phrase)}{rest}"
