"""The content of report files about a check that did not pass: its code, place, severity and fingerprint.

A check that passed because it is suppressed or in the baseline is an issue too, for the formats that show suppressions.
"""

from __future__ import annotations

import os
from collections import Counter
from hashlib import sha256

from gradcli.base.records import NamedTuple
from gradcli.checks.report import CODE_OF_VERDICT, NOT_AS_REQUIRED
from gradcli.rendering.documents.cards import subject
from gradcli.rendering.documents.verdicts import sentence, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.batch.totals import Totals

UNUSED = "unused suppression"
EXPRESSION = "<expression>"  # stands for the path of an expression


class Rule(NamedTuple):
    """A code with its level in GitHub and SARIF, and its severity in GitLab."""

    code: str
    level: str
    severity: str


# the rule of each verdict, worst first; a good verdict that did not pass is NOT_AS_REQUIRED
RULES: dict[str, Rule] = {
    "CRASHED": Rule(CODE_OF_VERDICT["CRASHED"], "error", "blocker"),
    "ERROR": Rule(CODE_OF_VERDICT["ERROR"], "error", "blocker"),
    "DISAGREES": Rule(CODE_OF_VERDICT["DISAGREES"], "error", "critical"),
    "UNDEFINED": Rule(CODE_OF_VERDICT["UNDEFINED"], "error", "major"),
    "DISCONTINUOUS": Rule(CODE_OF_VERDICT["DISCONTINUOUS"], "error", "major"),
    "BOUNDARY": Rule(CODE_OF_VERDICT["BOUNDARY"], "error", "major"),
    "KINK": Rule(CODE_OF_VERDICT["KINK"], "error", "major"),
    "not as required": Rule(NOT_AS_REQUIRED, "error", "major"),
    "IMPRECISE": Rule(CODE_OF_VERDICT["IMPRECISE"], "error", "minor"),
    "INCONCLUSIVE": Rule(CODE_OF_VERDICT["INCONCLUSIVE"], "warning", "minor"),
    UNUSED: Rule("GC811", "warning", "info"),
}
BY_CODE = {rule.code: rule for rule in RULES.values()}
RANKS = {code: rank for rank, code in enumerate(BY_CODE)}


class Issue(NamedTuple):
    """One check as report files show it.

    `path` is None for an expression; `span` is that of a diagnostic of the check, if any. `fingerprint` depends on
    path, case and leaf, not on the line or on values. `suppression` is the reason why the check passed in spite of its
    verdict, `external` whether the reason is a baseline rather than a pragma in the script. Texts are not escaped.
    """

    rule: Rule
    verdict: str
    path: str | None
    line: int | None
    span: Span | None
    subject: str
    message: str
    fingerprint: str
    suppression: str | None = None
    external: bool = False

    def place(self) -> str:
        """Path and line, such as `models/loss.grad:9`."""
        path = self.path or EXPRESSION
        return path if self.line is None else f"{path}:{self.line}"


def issues(report: Any, suppressed: bool = False) -> Iterator[Issue]:
    """The issues of a report in the order of its checks; with `suppressed`, those that are suppressed as well."""
    name = posix(report.file) if report.file else title(report)
    block = str(report.block or "")
    repeated: Counter[tuple[str, str]] = Counter()
    for check in report.checks:
        case = (case_of(check), check.leaf or "")
        repeated[case] += 1
        reason, external = suppression(check)
        if check.passed and not (suppressed and reason is not None):
            continue
        span = span_of(check)
        line = check.line if check.line is not None or span is None else span.line
        yield Issue(
            rule_of(check),
            check.verdict,
            posix(check.file) if check.file else None,
            line,
            span,
            subject(check),
            sentence(check),
            fingerprint(name, block, *case, str(repeated[case])),
            reason,
            external,
        )
    yield from unused(report, name)


def unused(report: Any, name: str) -> Iterator[Issue]:
    """The suppressions in a script that suppress nothing."""
    for count, note in enumerate(note for note in report.diagnostics if note.code == RULES[UNUSED].code):
        yield Issue(
            RULES[UNUSED],
            "UNUSED",
            posix(report.file) if report.file else None,
            None if note.span is None else note.span.line,
            note.span,
            "suppression",
            note.message,
            fingerprint(name, str(report.block or ""), note.code, str(count)),
        )


def fingerprint(*parts: str) -> str:
    """A key of an issue that is the same in every run."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def rule_of(check: Any) -> Rule:
    """The rule of a check: that of a diagnostic which names one of these codes, or that of its verdict."""
    named = next((note.code for note in check.diagnostics if note.code in BY_CODE), None)
    return RULES.get(check.verdict, RULES["not as required"]) if named is None else BY_CODE[named]


def case_of(check: Any) -> str:
    """The id of a check without the line number in the id of a claim."""
    return "claim" if check.kind == "claim" else str(check.id)


def suppression(check: Any) -> tuple[str | None, bool]:
    """Why a check passed in spite of its verdict (None if it did not), and whether because of a baseline."""
    if not check.passed:
        return None, False
    if check.evidence.get("suppressed"):
        return str(check.evidence["suppressed"]), False
    baseline = check.evidence.get("baseline")
    return (f"accepted by the baseline {baseline}", True) if baseline else (None, False)


def span_of(check: Any) -> Span | None:
    """The first span of the diagnostics of a check that lies on its line."""
    spans = (note.span for note in check.diagnostics if note.span is not None)
    return next((span for span in spans if check.line in (None, span.line)), None)


def posix(path: str) -> str:
    """A path with forward slashes, relative to the working folder if it lies there."""
    inside = path.removeprefix(os.path.join(os.getcwd(), "")) if os.path.isabs(path) else path
    inside = inside.replace(os.sep, "/")
    while inside.startswith("./"):
        inside = inside[2:].lstrip("/")
    return inside


def incomplete(totals: Totals) -> str:
    """Why a run ended early, and after how many cases; empty for a complete run."""
    if totals.complete:
        return ""
    return f"{totals.stopped}: {totals.files} of {totals.selected} cases were checked"
