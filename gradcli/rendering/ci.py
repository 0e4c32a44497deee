"""Reports of `check` in, what build servers read out: JUnit XML, and annotations for GitHub's log."""

from __future__ import annotations

from gradcli.rendering.cards import evidence_facts
from gradcli.rendering.document import Style
from gradcli.rendering.text import visible
from gradcli.rendering.verdicts import sentence, subject, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MOST_ANNOTATIONS = 10  # GitHub shows no more per step
WORST_FIRST = (
    "CRASHED",
    "ERROR",
    "DISAGREES",
    "UNDEFINED",
    "DISCONTINUOUS",
    "BOUNDARY",
    "KINK",
    "IMPRECISE",
    "INCONCLUSIVE",
)

REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;"})


def junit(reports: Sequence[Any]) -> str:
    """A JUnit report: a suite per file, a case per check; inconclusive checks count as skipped.

    `time` is the one thing in it that differs from run to run.
    """
    suites = "\n".join(line for report in reports for line in suite(report))
    cases = [one for report in reports for one in report.checks]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="gradcli check" {counts(cases)}>\n{suites}\n</testsuites>\n'
    )


def suite(report: Any) -> Iterator[str]:
    yield f'  <testsuite name="{attribute(title(report))}" {counts(report.checks)}>'
    for one in report.checks:
        name = f"{subject(one)} line {one.line}" if one.line else subject(one)
        place = f' file="{attribute(one.file)}"' if one.file else ""
        line = f' line="{one.line}"' if one.line else ""
        took = time([one])
        head = f'<testcase classname="{attribute(title(report))}" name="{attribute(name)}"{place}{line}{took}'
        if one.passed:
            yield f"    {head}/>"
            continue
        tag = outcome(one)
        told = "\n".join(f"{label}: {text}" for label, text, _ in evidence_facts(one.evidence, Style()))
        message = attribute(f"{one.verdict}: {sentence(one)}")
        kind = "" if tag == "skipped" else f' type="{attribute(one.verdict)}"'
        yield f'    {head}><{tag} message="{message}"{kind}>{content(told)}</{tag}></testcase>'
    yield "  </testsuite>"


def outcome(check: Any) -> str:
    """The JUnit element of a check that did not pass."""
    return {"INCONCLUSIVE": "skipped", "ERROR": "error", "CRASHED": "error"}.get(check.verdict, "failure")


def counts(checks: Sequence[Any]) -> str:
    tags = [outcome(one) for one in checks if not one.passed]
    told = {"tests": len(checks), "failures": tags.count("failure")}
    told |= {"errors": tags.count("error"), "skipped": tags.count("skipped")}
    return " ".join(f'{name}="{count}"' for name, count in told.items()) + time(checks)


def time(checks: Sequence[Any]) -> str:
    """The seconds that checks took, as an attribute; 0 for one whose process died."""
    return f' time="{sum(one.seconds or 0.0 for one in checks):.3f}"'


def content(text: str) -> str:
    """Text for XML 1.0: characters that it forbids become escapes, the five special ones references."""
    return "\n".join(visible(line) for line in text.splitlines()).translate({**REFERENCES, 10: "\n"})


def attribute(text: str) -> str:
    return content(text).replace("\n", "&#10;")


def github(reports: Sequence[Any]) -> Iterator[str]:
    """Workflow commands that put the worst failures beside their lines in a pull request."""
    failed = [one for report in reports for one in report.checks if not one.passed]
    failed.sort(key=lambda one: WORST_FIRST.index(one.verdict) if one.verdict in WORST_FIRST else len(WORST_FIRST))
    for one in failed[:MOST_ANNOTATIONS]:
        level = "warning" if one.verdict == "INCONCLUSIVE" else "error"
        place = f"file={github_property(one.file)}," if one.file else ""
        line = f"line={one.line}," if one.line else ""
        told = github_text(f"{one.verdict} {subject(one)}: {sentence(one)}")
        yield f"::{level} {place}{line}title=gradcli {one.verdict}::{told}"
    if len(failed) > MOST_ANNOTATIONS:
        yield f"::notice title=gradcli::{len(failed) - MOST_ANNOTATIONS} more failed checks are in the log"


def github_text(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return visible(escaped).replace("::", ":%3A")


def github_property(text: str) -> str:
    return github_text(text).replace(":", "%3A").replace(",", "%2C")
