"""SARIF 2.1.0 for code scanning: a result per check that did not pass, and per check that is suppressed.

Paths are relative to the folder in which gradcli ran, which the log calls %SRCROOT%. An expression has no file; it is a
logical location.
"""

from __future__ import annotations

import os
from urllib.parse import quote

from gradcli import __version__
from gradcli.base.codes.verdict_codes import VERDICT_CODES
from gradcli.rendering.documents.verdicts import title
from gradcli.rendering.formats.issues import BY_CODE, incomplete, issues
from gradcli.rendering.machine import text
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.batch.totals import Totals
    from gradcli.rendering.formats.issues import Issue

    Payload = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
INDICES = {code: index for index, code in enumerate(VERDICT_CODES)}


class Sarif:
    """Writer of the format."""

    def __init__(self) -> None:
        self.separator = "\n"

    def head(self, totals: Totals) -> str:
        invocation: Payload = {"executionSuccessful": totals.complete and not totals.broken}
        if not totals.complete:
            why = {"level": "error", "message": message(f"The run is incomplete; {incomplete(totals)}")}
            invocation["toolExecutionNotifications"] = [why]
        driver = {"name": "gradcli", "semanticVersion": __version__, "rules": [rule(code) for code in VERDICT_CODES]}
        run = {
            "tool": {"driver": driver},
            "invocations": [invocation],
            "originalUriBaseIds": {ROOT: {"description": message("The folder in which gradcli ran.")}},
            "columnKind": "unicodeCodePoints",
        }
        start = text({"$schema": SCHEMA, "version": "2.1.0"})[:-1]
        return f'{start}, "runs": [{text(run)[:-1]}, "results": ['

    def part(self, report: Any) -> str:
        parts = []
        for issue in issues(report, suppressed=True):
            parts.append(self.separator + text(result(issue, title(report))))
            self.separator = ",\n"
        return "".join(parts)

    def tail(self, totals: Totals) -> str:
        return "\n]}]}\n"


def rule(code: str) -> Payload:
    """The description of a code, from the catalogue of `gradcli explain`."""
    doc = VERDICT_CODES[code]
    return {
        "id": code,
        "shortDescription": message(doc.title),
        "fullDescription": message(doc.what),
        "help": message(f"{doc.why} {doc.instead}"),
        "defaultConfiguration": {"level": BY_CODE[code].level},
    }


def result(issue: Issue, name: str) -> Payload:
    """One issue; `name` is what was checked, for an expression its text."""
    fields: Payload = {
        "ruleId": issue.rule.code,
        "ruleIndex": INDICES[issue.rule.code],
        "level": issue.rule.level,
        "message": message(f"{issue.verdict} {issue.subject}: {issue.message}"),
        "locations": [{"logicalLocations": [{"fullyQualifiedName": visible(name)}]}],
        "partialFingerprints": {"gradcliCheck/v1": issue.fingerprint},
    }
    if issue.path is not None:
        place: Payload = {"artifactLocation": artifact(issue.path)}
        if issue.line is not None:
            place["region"] = region(issue)
        fields["locations"] = [{"physicalLocation": place}]
    if issue.suppression is not None:
        kind = "external" if issue.external else "inSource"
        fields["suppressions"] = [{"kind": kind, "justification": visible(issue.suppression)}]
    return fields


def region(issue: Issue) -> Payload:
    if issue.span is None:
        return {"startLine": issue.line}
    line, column, end_line, end_column = issue.span
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def artifact(path: str) -> Payload:
    """A file as a URI; one outside the working folder has an absolute one."""
    try:
        uri = quote(os.fsencode(path))
    except UnicodeEncodeError:  # no name of a file has such surrogates
        uri = quote(path.encode("utf-8", "surrogatepass"))
    if os.path.isabs(path):
        return {"uri": f"file://{uri}" if uri.startswith("/") else f"file:///{uri}"}
    return {"uri": uri, "uriBaseId": ROOT}


def message(phrase: str) -> Payload:
    """A message, with braces and `[text](target)` escaped, which SARIF would take for arguments and links."""
    return {"text": visible(phrase).replace("{", "{{").replace("}", "}}").replace("](", "] (")}
