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
GOOD = ("PROVED", "CERTIFIED", "AGREES", "IMPRECISE")  # on what is right, the best first
NONSMOOTH = ("KINK", "BOUNDARY", "DISCONTINUOUS")  # on points without a derivative

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
    """All checks of one script.

    `block` is the number of a script in the document `file`, 0 for a file of its own.
    """

    expression: str
    checks: tuple[Check, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    file: str | None = None
    block: int = 0

    @property
    def summary(self) -> dict[str, int]:
        """How many checks are "passed", "failed" and "inconclusive", and how many have each verdict."""
        groups = [
            "passed" if check.passed else "inconclusive" if check.verdict == "INCONCLUSIVE" else "failed"
            for check in self.checks
        ]
        verdicts = [check.verdict for check in self.checks]
        counts = {group: groups.count(group) for group in ("passed", "failed", "inconclusive")}
        return counts | {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}


def refused(diagnostics: Sequence[Diagnostic], expression: str = "", file: str | None = None) -> Report:
    """The report of a script that could not be read: one check, ERROR, with the diagnostics that say why."""
    first = diagnostics[0]
    line = None if first.span is None else first.span.line
    evidence: dict[str, object] = {"codes": list(dict.fromkeys(diagnostic.code for diagnostic in diagnostics))}
    about = ("error", file, line, "gradient", None, "ERROR", evidence, first.message)
    return Report(expression, (Check(*about, tuple(diagnostics), passed=False),), file=file)


def timed(report: Report, seconds: Iterable[float | None]) -> Report:
    """A report with the seconds that each of its checks took."""
    checks = [replace(check, seconds=took) for check, took in zip(report.checks, seconds, strict=True)]
    return replace(report, checks=tuple(checks))
