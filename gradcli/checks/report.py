"""The report of a check: a record per gradient, claim or rule, a report per script."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.diagnostics import Diagnostic

VERDICTS = (
    "PROVED", "CERTIFIED", "AGREES", "IMPRECISE", "DISAGREES", "KINK", "BOUNDARY", "DISCONTINUOUS", "UNDEFINED",
    "INCONCLUSIVE", "ERROR", "CRASHED",
)  # fmt: skip

# the code of a verdict that does not pass, by which reports name it and suppressions ignore it
CODE_OF_VERDICT = {
    "DISAGREES": "GC801",
    "IMPRECISE": "GC802",
    "KINK": "GC803",
    "BOUNDARY": "GC804",
    "DISCONTINUOUS": "GC805",
    "UNDEFINED": "GC806",
    "INCONCLUSIVE": "GC807",
    "ERROR": "GC808",
    "CRASHED": "GC809",
}
NOT_AS_REQUIRED = "GC810"  # a good verdict that is not what is required or expected


@dataclass(frozen=True)
class Check:
    """The verdict on one gradient, claim, hand-written rule or callable.

    `evidence` is plain JSON data; `passed` takes into account what the script expected and what the caller required.
    `seconds` is how long it took, the preparation of the script with the first check; it is no part of the verdict.
    """

    id: str
    file: str | None
    line: int | None
    kind: str
    leaf: str | None
    verdict: str
    evidence: dict[str, object]
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()
    expected: str | None = None
    passed: bool = True
    seconds: float | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Report:
    """All checks of one script. `summary` counts verdicts, and "passed", "failed" and "inconclusive" checks.

    `block` is the number of a script in the document `file`, 0 for a file of its own.
    """

    expression: str
    checks: tuple[Check, ...]
    summary: dict[str, int] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    file: str | None = None
    block: int = 0


def summarised(
    expression: str, checks: Iterable[Check], diagnostics: Iterable[Diagnostic] = (), file: str | None = None
) -> Report:
    """A report with its summary counted."""
    found = tuple(checks)
    summary = {"passed": 0, "failed": 0, "inconclusive": 0}
    for one in found:
        outcome = "passed" if one.passed else "inconclusive" if one.verdict == "INCONCLUSIVE" else "failed"
        summary[outcome] += 1
    for verdict in VERDICTS:
        count = sum(1 for one in found if one.verdict == verdict)
        if count:
            summary[verdict] = count
    return Report(expression, found, summary, tuple(diagnostics), file)


def with_checks(report: Report, checks: Iterable[Check]) -> Report:
    """The report with these checks in place of its own, counted."""
    counted = summarised(report.expression, checks)
    return replace(report, checks=counted.checks, summary=counted.summary)


def refused(diagnostics: Sequence[Diagnostic], expression: str = "", file: str | None = None) -> Report:
    """The report of a script that could not be read: one check, ERROR, with the diagnostics that say why."""
    span = diagnostics[0].span
    line = None if span is None else span.line
    codes = list(dict.fromkeys(one.code for one in diagnostics))
    message = diagnostics[0].message
    evidence: dict[str, object] = {"codes": codes}
    check = Check("error", file, line, "gradient", None, "ERROR", evidence, message, tuple(diagnostics), passed=False)
    return summarised(expression, [check], file=file)


def timed(report: Report, seconds: Iterable[float | None]) -> Report:
    """A report with the seconds that each of its checks took."""
    checks = [replace(one, seconds=took) for one, took in zip(report.checks, seconds, strict=True)]
    return replace(report, checks=tuple(checks))
