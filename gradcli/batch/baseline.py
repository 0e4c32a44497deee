"""Baselines: files that list the failing checks of a project, which later runs accept.

An entry is the path of the script (relative to the folder of the baseline, with /), the id of the check, its leaf, its
verdict, and a digest of what it judges (`judged_content.py`); no lines, so that an edit elsewhere in the script changes
nothing. The same check with another verdict or of another claim is not covered. A script that cannot be read, or that
crashed, is never accepted, because it may hide anything.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from json import dumps, loads
from typing import TYPE_CHECKING, NamedTuple

from gradcli.base.diagnostics import NOTE, Diagnostic, GradcliError, error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gradcli.checks.report import Check, Report

VERSION = 2
MOST_LISTED = 5  # entries that a note names
UNJUDGED = frozenset(("ERROR", "CRASHED"))


class BaselineEntry(NamedTuple):
    """A check that failed when the baseline was written. Entries have an order; a check without a leaf has ""."""

    path: str
    id: str
    leaf: str
    verdict: str
    content: str

    def same(self) -> BaselineEntry:
        """The entry without its id: that of a claim counts those before it."""
        return self._replace(id="")


class Baseline:
    """The entries of the file `name`, and which of them occurred in a run. Their paths are relative to its folder."""

    def __init__(self, entries: Iterable[BaselineEntry], name: str) -> None:
        self.entries = frozenset(entries)
        self.name = name
        self.folder = folder_of(name)
        self.accepted = {entry.same() for entry in self.entries}
        self.places = {(entry.path, entry.id) for entry in self.entries}
        self.checked: set[str] = set()  # paths of the scripts that this run has checked
        self.failing: set[BaselineEntry] = set()
        self.changed: set[tuple[str, str]] = set()  # paths and ids of checks that fail otherwise

    def fixed(self) -> list[BaselineEntry]:
        """The entries that no longer fail: those of scripts that this run has checked, or that no longer exist."""
        left = [entry for entry in sorted(self.entries) if entry.same() not in self.failing]
        left = [entry for entry in left if (entry.path, entry.id) not in self.changed]
        return [entry for entry in left if entry.path in self.checked or not os.path.exists(self.place(entry.path))]

    def place(self, path: str) -> str:
        """The path of the script of an entry."""
        return os.path.join(self.folder, *path.split("/"))

    def notes(self) -> list[Diagnostic]:
        """A note on the entries that no longer fail, for the end of a run."""
        fixed = self.fixed()
        if not fixed:
            return []
        phrase = ", ".join(visible(f"{entry.path} {entry.id}", 200) for entry in fixed[:MOST_LISTED])
        phrase += f" and {len(fixed) - MOST_LISTED} more" if len(fixed) > MOST_LISTED else ""
        count = f"{len(fixed)} {'entry' if len(fixed) == 1 else 'entries'} of the baseline no longer fail"
        count += "s" if len(fixed) == 1 else ""
        return [Diagnostic("GC640", f"{count}: {phrase}", help="run --write-baseline again", severity=NOTE)]


def entries(report: Report, folder: str, digest: Callable[[Check], str]) -> Iterator[BaselineEntry]:
    """The failing checks of one report as entries of a baseline in a folder."""
    for check, entry in named(report, folder, digest):
        if not check.passed and check.verdict not in UNJUDGED:
            yield entry


def named(report: Report, folder: str, digest: Callable[[Check], str]) -> Iterator[tuple[Check, BaselineEntry]]:
    """Each check of a report with its entry. Claims by one leaf are numbered: their ids hold lines."""
    path = relative(report.file or "", folder)
    block = report.block
    counts: Counter[str] = Counter()
    for check in report.checks:
        name, leaf = check.id, check.leaf or ""
        if check.kind == "claim":
            counts[leaf] += 1
            name = "claim" if counts[leaf] == 1 else f"claim#{counts[leaf]}"
        content = "" if check.passed else digest(check)
        yield check, BaselineEntry(path, f"block {block}: {name}" if block else name, leaf, check.verdict, content)


def relative(path: str, folder: str) -> str:
    """A path relative to a folder, with /; on another drive it stays as it is."""
    if not path:
        return ""
    try:
        path = os.path.relpath(path, folder)
    except ValueError:
        path = os.path.abspath(path)
    return path.replace(os.sep, "/")


def folder_of(path: str) -> str:
    """The folder of a baseline file, as an absolute path."""
    return os.path.dirname(os.path.abspath(path))


def text(entries: Iterable[BaselineEntry]) -> str:
    """The text of a baseline file: JSON with one entry on each line, sorted, so that diffs are small."""
    lines = ",".join(f"\n{dumps(entry._asdict())}" for entry in sorted(set(entries)))
    return f'{{"baseline": {VERSION}, "checks": [{lines}\n]}}\n'


def read(path: str) -> Baseline:
    """The baseline in a file.

    Raises GradcliError: GC601 where it cannot be read, GC640 where it is not a baseline.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as problem:
        reason = (problem.strerror or "").lower()
        hint = "--write-baseline makes one"
        raise error("GC601", f"cannot read {visible(path, 200)}: {reason}", help=hint) from None
    try:
        data = loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        raise malformed(path, f"it is not JSON: {visible(str(problem), 120)}") from None
    if isinstance(data, dict) and data.get("baseline") == 1 and data.get("checks"):
        raise malformed(path, "it is of an earlier version, whose entries would accept any other gradient too")
    if (
        not isinstance(data, dict)
        or data.get("baseline") not in (1, VERSION)
        or not isinstance(data.get("checks"), list)
    ):
        raise malformed(path, f'it is not an object with "baseline": {VERSION} and a list "checks"')
    items = []
    for number, item in enumerate(data["checks"], 1):
        fields = set(item) if isinstance(item, dict) else set()
        if fields != set(BaselineEntry._fields) or not all(isinstance(value, str) for value in item.values()):
            raise malformed(path, f"entry {number} has other fields than the texts {', '.join(BaselineEntry._fields)}")
        items.append(BaselineEntry(**item))
    return Baseline(items, path)


def malformed(path: str, why: str) -> GradcliError:
    """The error for a file that is not a baseline."""
    return error(
        "GC640", f"{visible(path, 200)} is not a baseline: {why}", help="write it again: --write-baseline FILE"
    )


def applied(report: Report, baseline: Baseline, digest: Callable[[Check], str]) -> Report:
    """The report with the failing checks of the baseline marked as passed, with its file as evidence "baseline"."""
    baseline.checked.add(relative(report.file or "", baseline.folder))
    checks = []
    for check, known in named(report, baseline.folder, digest):
        if not check.passed and known.same() in baseline.accepted:
            baseline.failing.add(known.same())
            if check.verdict not in UNJUDGED:
                evidence = {**check.evidence, "baseline": baseline.name}
                check = replace(check, passed=True, evidence=evidence, message=f"{check.message}; in the baseline")
        elif not check.passed and (known.path, known.id) in baseline.places:
            baseline.changed.add((known.path, known.id))
            check = replace(check, message=f"changed since the baseline: {check.message}")
        checks.append(check)
    return replace(report, checks=tuple(checks))
