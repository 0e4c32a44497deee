"""JUnit XML: a suite per file, a case per check; valid by the schema of Jenkins' xUnit plugin (junit-10.xsd).

That schema has a file for suites only, so the name of a case and its text contain the line.
Inconclusive checks, and failures that a baseline accepts, count as skipped. A run that ended early has one more suite,
empty, with the property `incomplete`.
"""

from __future__ import annotations

from gradcli.rendering.document import Style
from gradcli.rendering.documents.cards import evidence_facts, subject
from gradcli.rendering.documents.verdicts import sentence, title
from gradcli.rendering.formats.issues import incomplete, suppression
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.batch.totals import Totals

REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


class JUnit:
    """Writer of the format."""

    def head(self, totals: Totals) -> str:
        errors = totals.unreadable + totals.broken
        counts = f'tests="{totals.checks}" failures="{totals.summary["failed"] - errors}" errors="{errors}"'
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuites name="gradcli check" {counts} time="{totals.seconds:.3f}">\n'
        )

    def part(self, report: Any) -> str:
        return "".join(f"{line}\n" for line in suite(report))

    def tail(self, totals: Totals) -> str:
        if totals.complete:
            return "</testsuites>\n"
        why = f'<property name="incomplete" value="{attribute(incomplete(totals))}"/>'
        return (
            f'  <testsuite name="incomplete" {counts(())}><properties>{why}</properties></testsuite>\n</testsuites>\n'
        )


def suite(report: Any) -> Iterator[str]:
    name = attribute(title(report))
    file = f' file="{attribute(report.file)}"' if report.file else ""
    yield f'  <testsuite name="{name}"{file} {counts(report.checks)}>'
    for check in report.checks:
        what = attribute(f"{subject(check)} line {check.line}" if check.line else subject(check))
        head = f'<testcase classname="{name}" name="{what}"{time([check])}'
        reason, accepted = suppression(check)
        if check.passed:
            yield (
                f'    {head}><skipped message="{attribute(str(reason))}"/></testcase>' if accepted else f"    {head}/>"
            )
            continue
        tag = outcome(check)
        facts = [f"{label}: {text}" for label, text, _ in evidence_facts(check.evidence, Style())]
        if check.file:
            facts.insert(0, visible(f"{check.file}:{check.line}" if check.line else check.file))
        message = attribute(f"{check.verdict}: {sentence(check)}")
        kind = "" if tag == "skipped" else f' type="{attribute(check.verdict)}"'
        text = "\n".join(content(line) for fact in facts for line in fact.splitlines())
        yield f'    {head}><{tag} message="{message}"{kind}>{text}</{tag}></testcase>'
    yield "  </testsuite>"


def outcome(check: Any) -> str:
    """The element of a check that did not pass."""
    return {"INCONCLUSIVE": "skipped", "ERROR": "error", "CRASHED": "error"}.get(check.verdict, "failure")


def counts(checks: Sequence[Any]) -> str:
    tags = [outcome(check) for check in checks if not check.passed]
    tags += ["skipped" for check in checks if suppression(check)[1]]
    numbers = {"tests": len(checks), "failures": tags.count("failure")}
    numbers |= {"errors": tags.count("error"), "skipped": tags.count("skipped")}
    return " ".join(f'{name}="{count}"' for name, count in numbers.items()) + time(checks)


def time(checks: Sequence[Any]) -> str:
    """The seconds that checks took, as an attribute; 0 for one whose process died."""
    return f' time="{sum(check.seconds or 0.0 for check in checks):.3f}"'


def content(text: str) -> str:
    """A line for XML 1.0: forbidden characters become escapes, special ones references, as does what a log obeys."""
    line = visible(text).translate(REFERENCES)
    return line.replace(":", "&#58;", 1) if line.lstrip().startswith("::") else line


def attribute(text: str) -> str:
    """Text of one or more lines as the value of an attribute."""
    return "&#10;".join(map(content, text.splitlines()))
