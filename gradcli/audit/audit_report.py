"""The report of an audit: one verdict per gradient from all of its points, whose code it is, and whether it fails."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.audit import guesses
from gradcli.audit.guesses import LOOK, UNPAIRED
from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.checks.formatting import counted
from gradcli.checks.report import Check, Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.audit.command import CommandOutcome

    Row = dict[str, Any]

DISAGREES, INCONCLUSIVE, AGREES, UNJUDGED = "DISAGREES", "INCONCLUSIVE", "AGREES", "NOT JUDGED"
# classes of gradients that are no derivatives on purpose, or that cannot be judged: they never fail
SORTED = (
    "SURROGATE", "SYMMETRIC", "ON THE SPHERE", "ON THE SIMPLEX", "APPROXIMATE", "STOCHASTIC", "STATE CHANGED",
)  # fmt: skip
POINTS = ("KINK", "BOUNDARY", "UNDEFINED", "DISCONTINUOUS")  # verdicts on a point, not on a gradient
# of several points, the first of these that occurs is the verdict
PASSED = (AGREES, "IMPRECISE", "CERTIFIED", "PROVED")
ORDER = (DISAGREES, *SORTED, LOOK, *PASSED, *POINTS, INCONCLUSIVE, "ERROR", UNPAIRED, UNJUDGED)
VERSION = 2  # of files of points
# what is said where nothing was called
WATCHED = (
    "An audit watches torch.autograd.Function, jax.custom_vjp and custom_jvp, primitives of autograd, derivatives that "
    "SciPy's solvers take (jac=, hess=, fprime=), functions marked with @gradcli.gradient_of(f), and pairs of --pairs"
)
INSTALLED = ("site-packages", "dist-packages")


@dataclass
class AuditedGradient:
    """One gradient that a command called, and what its judged points say together.

    `owned`: it is of the audit's subject: under the current folder, outside installed packages, or of the package that
    is asked for. `fails` and `undecided` count for the exit code. A `guessed` pair of names never leaves a question
    open. `expected` is the verdict that the settings expect, `again` the command that judges the worst point once more.
    """

    name: str
    library: str
    role: str
    file: str
    line: int
    caller: str
    calls: int
    untracked: int
    owned: bool
    verdict: str
    message: str
    points: list[Row] = field(default_factory=list)
    worst: Row = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""
    expected: str = ""
    again: str = ""
    key: str = ""
    guessed: bool = False

    @property
    def title(self) -> str:
        """What the settings call it: its name, or the place of a function that has none."""
        return f"{self.file}:{self.line}" if "<lambda>" in self.name else self.name

    @property
    def fails(self) -> bool:
        """Whether the run fails by it."""
        if self.expected:
            return self.owned and self.expected != self.verdict
        return self.owned and self.verdict == DISAGREES

    @property
    def undecided(self) -> bool:
        """Whether it is an open question of the user's own code."""
        open_question = self.verdict in (INCONCLUSIVE, "ERROR") or (self.verdict == UNJUDGED and self.calls > 0)
        return self.owned and open_question and not self.expected and not self.guessed

    def check(self) -> Check:
        """The finding as a check of report files."""
        verdict = INCONCLUSIVE if self.undecided else self.verdict
        evidence: dict[str, object] = {"calls": self.calls, "points": len(self.points), "called_from": self.caller}
        evidence |= {name: x for name, x in self.worst.get("evidence", {}).items() if name != "function"}  # a wrapper's
        if self.again:
            evidence["again"] = self.again
        passed = not self.fails and not self.undecided
        return Check(
            f"{self.role}:{self.name}", self.file, self.line or None, self.role, self.name, verdict, evidence,
            self.message, expected=self.expected or None, passed=passed,
        )  # fmt: skip


def findings(
    outcome: CommandOutcome, expected: Mapping[str, str], packages: Sequence[str] = ()
) -> list[AuditedGradient]:
    """The findings of a run, what fails first, then by name; those of some `packages` count as the user's own."""
    answers: dict[str, list[Row]] = {key: [] for key in outcome.gradients}
    for key, call, answer in outcome.judged:
        answers.setdefault(key, []).append({**answer, "call": call})
    answers = guesses.settled(outcome.gradients, answers)
    results = [finding(key, record, answers[key], packages) for key, record in outcome.gradients.items()]
    for result in results:
        result.expected = next((word for name, word in expected.items() if name_fits(name, result.title)), "")
    rank = {word: place for place, word in enumerate(ORDER)}
    return sorted(results, key=lambda x: (not x.fails, not x.owned, rank.get(x.verdict, 0), x.name, x.key))


def expectations(stated: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """The verdict that each name is expected to have, from settings or from NAME=VERDICT of a command line.

    Raises GradcliError GC723 for what is not a verdict.
    """
    pairs = stated.items() if isinstance(stated, dict) else [text.partition("=")[::2] for text in stated]
    verdicts = {name.strip(): word.strip().upper() for name, word in pairs}
    for name, word in verdicts.items():
        if word not in ORDER:
            guess = did_you_mean(word, ORDER)
            hint = f"did you mean {guess}?" if guess else f"write one of {', '.join(ORDER)}"
            raise error("GC723", f"`{visible(name)} = {visible(word)}` is not a verdict of an audit", help=hint)
    return verdicts


def unused(findings: Sequence[AuditedGradient], expected: Mapping[str, str]) -> list[str]:
    """The expected names that no gradient has."""
    return [name for name in expected if not any(name_fits(name, finding.title) for finding in findings)]


def name_fits(asked: str, name: str) -> bool:
    """Whether an expected name means a gradient: its whole name, or the end of it behind a dot."""
    return name == asked or name.endswith("." + asked)


def finding(key: str, record: Row, answers: Sequence[Row], packages: Sequence[str]) -> AuditedGradient:
    """One gradient with the verdict of its points."""
    points, notes = [], []
    for answer in answers:
        notes += answer.get("notes", [])
        rows = answer.get("checks")
        if rows is None:
            verdict, why = (UNJUDGED, answer["unjudged"]) if "unjudged" in answer else ("ERROR", answer["error"])
            rows = [{"leaf": None, "verdict": verdict, "message": why, "evidence": {}}]
        points += [{**row, "call": answer["call"], "point": answer.get("point", {})} for row in rows]
    calls, untracked = record["calls"], record["untracked"]
    worst = min(points, key=lambda row: ORDER.index(row["verdict"]), default=None)
    if worst is None:
        without = f" where a gradient was wanted ({untracked} calls without)" if untracked else ""
        reason = record["skipped"] or ("not kept" if calls else f"never called{without}")
        worst = {"verdict": UNJUDGED, "message": reason, "evidence": {}}
    message = worst["message"]
    if worst["verdict"] == DISAGREES and worst.get("leaf"):
        message = f"they disagree: {message}" if record["pair"] else f"with respect to {worst['leaf']}: {message}"
    about = {name: record[name] for name in ("name", "library", "role", "line", "calls", "untracked", "skipped")}
    about |= {"file": shown_path(record["file"]), "caller": shown_path(record["caller"])}
    about |= {"verdict": worst["verdict"], "message": message, "points": points, "worst": worst}
    owned = any(is_own(file, packages) for file in record["files"])
    about["guessed"] = bool(record["pair"]) and not record["pair"]["confirmed"]
    return AuditedGradient(owned=owned, notes=list(dict.fromkeys(notes)), key=key, **about)


def is_own(file: str, packages: Sequence[str] = ()) -> bool:
    """Whether a file belongs to one of some packages, or lies under the current folder and in no installed package."""
    path = os.path.realpath(file)
    whole = path.removesuffix(".py") + os.sep
    if any(f"{os.sep}{name.replace('.', os.sep)}{os.sep}" in whole for name in packages):
        return True
    inside = path.startswith(os.path.realpath(os.getcwd()) + os.sep)
    return inside and not any(folder in path.split(os.sep) for folder in INSTALLED)


def shown_path(path: str) -> str:
    """A path as people write it: in the current folder, or of an installed package, relative to that folder."""
    for folder in INSTALLED:
        if f"{os.sep}{folder}{os.sep}" in path:
            return path.rpartition(f"{os.sep}{folder}{os.sep}")[2]
    return path.removeprefix(os.getcwd() + os.sep)


def reports(findings: Sequence[AuditedGradient]) -> list[Report]:
    """The findings as reports, one for each file, for report files."""
    files: dict[str, list[Check]] = {}
    for finding in findings:
        files.setdefault(finding.file, []).append(finding.check())
    return [Report(file, tuple(checks), file=file) for file, checks in sorted(files.items())]


def exit_code(
    findings: Sequence[AuditedGradient], outcome: CommandOutcome, packages: Sequence[str], lenient: bool
) -> tuple[int, str]:
    """The exit code of an audit whose command ended with 0, and its verdict in words."""
    subject, processes = " and ".join(packages) or "your own code", outcome.processes
    wrong = sum(finding.fails for finding in findings)
    undecided = sum(finding.undecided for finding in findings)
    if wrong:
        return 1, f"{counted(wrong, 'gradient')} of {subject} failed"
    if undecided and not lenient:
        return 3, f"{counted(undecided, 'gradient')} of {subject} could not be decided (--allow inconclusive)"
    if not processes:
        hint = "PYTHONPATH is ignored by `python -I` and `-E`, and by programs that clear their environment"
        return 5, f"0 Python processes reported: {hint}"
    if not findings:
        count = f"{processes} Python process{'' if processes == 1 else 'es'} reported"
        return 5, f"{count}, and no hand-written gradient was called. {WATCHED}"
    return 0, ""


# --- points at which a gradient is wrong ---------------------------------------------------------------------------
# A gradient may live in a closure or a model that no file could hold. So a file holds the command, the gradient and the
# number of the call: `gradcli audit --again FILE` runs the command again and judges the same call. The numbers of the
# point show whether the program came to the same point.


def save_points(findings: Sequence[AuditedGradient], argv: Sequence[str], folder: str, pairs: str | None) -> None:
    """Save the worst point of each gradient that is wrong, and name the file in the finding."""
    for finding in findings:
        if finding.verdict != "DISAGREES" or not folder:
            continue
        worst = finding.worst
        call = {"key": finding.key, "name": finding.name, "call": worst["call"], "point": worst["point"]}
        about = {"version": VERSION, "command": list(argv), "folder": os.getcwd(), "pairs": pairs}
        text = json.dumps({**about, **call})
        path = Path(folder, "audit", sha256(text.encode()).hexdigest()[:12] + ".json")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", "utf-8")
        except OSError:  # a cache that cannot be written: nothing is offered
            continue
        finding.again = f"gradcli audit --again {path}"


def saved_point(path: str) -> dict[str, Any]:
    """What a file holds. Raises GradcliError GC746 where it is none of these."""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as problem:
        raise error("GC746", f"cannot read {visible(path, 200)}: {(problem.strerror or '').lower()}") from None
    except ValueError:
        content = None
    names = ("command", "folder", "pairs", "key", "name", "call", "point")
    if not isinstance(content, dict) or content.get("version") != VERSION or any(name not in content for name in names):
        hint = "give one of the files that the report of the audit names"
        raise error("GC746", f"{visible(path, 200)} is not a point saved by gradcli audit", help=hint)
    return content


def compared(findings: Sequence[AuditedGradient], saved: dict[str, Any]) -> str:
    """What is to be said where the program did not come to the saved point."""
    judged = next((finding for finding in findings if finding.key == saved["key"] and finding.points), None)
    if judged is None:
        return f"{visible(saved['name'], 200)} was not called {saved['call']} times: has the program changed?"
    if judged.worst["point"] != saved["point"]:
        return "the program reached a different point this time: it is random, or it has changed"
    return ""
