"""Folders of scripts: found in one order, checked by workers that may die, reported the same whatever their number."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gradcli.batch import check_run
from gradcli.batch.check_run import Handling, Run, Workforce
from gradcli.batch.discovery.walk import find_cases
from gradcli.batch.journal import Journal
from gradcli.batch.workers import supervisor
from gradcli.batch.workers.transport import report_from_json, report_to_json
from gradcli.checks import check_script
from gradcli.language.limits import Limits

FILES = {
    "b.grad": "x = 2\nassert grad(x**2, x) == 2*x\nx**2",
    "a/wrong.grad": "x = 2\nassert grad(x**2, x) == x\nx**2",
    "a/error.grad": "x = 2\nsine(x)",
    "a/expected.grad": "# expect: error GC201\nsine(x)",
    "c/kink.grad": "x = 0\nabs(x) # expect: kink",
    ".hidden/skip.grad": "nonsense (",
    "c/readme.txt": "no script",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def summary(reports: list[Any], folder: Path) -> dict[str, Any]:
    return {
        str(Path(report.file).relative_to(folder)): [(one.verdict, one.passed) for one in report.checks]
        for report in reports
    }


EXPECTED = {
    "a/error.grad": [("ERROR", False)],
    "a/expected.grad": [("ERROR", True)],
    "a/wrong.grad": [("PROVED", True), ("DISAGREES", False)],
    "b.grad": [("PROVED", True), ("PROVED", True)],
    "c/kink.grad": [("KINK", True)],
}


def test_discovery(folder: Path) -> None:
    found = [str(Path(case.path).relative_to(folder)) for case in find_cases([str(folder), str(folder / "b.grad")])]
    assert found == list(EXPECTED)


def reports_of(folder: Path, options: dict[str, Any] | None = None, **run: Any) -> tuple[list[Any], Run]:
    work = Run(find_cases([str(folder)]), options, **run)
    return list(work.reports()), work


def packed(reports: list[Any]) -> str:
    return json.dumps([report_to_json(report) for report in reports])


def test_reports_do_not_depend_on_the_number_of_workers(folder: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    progress = lambda done, total, name, failed: seen.append((done, total, failed))  # noqa: E731
    one, work = reports_of(folder, workers=Workforce(1), progress=progress)
    assert summary(one, folder) == EXPECTED
    assert seen == sorted(seen)
    assert seen[0] == (0, 5, 0)
    assert seen[-1] == (5, 5, 2)
    told = work.totals
    assert (told.files, told.selected, told.checks, told.unreadable, told.broken) == (5, 5, 7, 1, 0)
    assert told.complete
    two, _ = reports_of(folder, {"at": (), "limits": Limits(), "timeout": 10.0, "samples": 3}, workers=Workforce(2))
    assert packed(one) == packed(two)


def test_what_the_journal_knows_is_not_judged_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(str(folder / "journal")) as journal:
        first, _ = reports_of(folder, workers=Workforce(2), journal=journal)
        assert {name for name, _ in journal.failed()} == {str(folder / "a/wrong.grad"), str(folder / "a/error.grad")}
    asked: list[str] = []

    def watched(tasks: Any, *args: Any, **kwargs: Any) -> Any:
        return supervisor.supervise((asked.append(task.path) or task for task in tasks), *args, **kwargs)

    monkeypatch.setattr(check_run, "supervise", watched)
    with Journal(str(folder / "journal")) as journal:
        again, _ = reports_of(folder, workers=Workforce(2), journal=journal)
        assert packed(again) == packed(first)
        assert asked == []
        (folder / "b.grad").write_text("x = 2\nassert grad(x**3, x) == 3*x**2\nx**3", encoding="utf-8")
        changed, _ = reports_of(folder, workers=Workforce(2), journal=journal)
        assert asked == [str(folder / "b.grad")]
        assert packed(changed) != packed(first)


def test_a_run_ends_at_the_first_failure(folder: Path) -> None:
    found, work = reports_of(folder, workers=Workforce(1), fail_fast=True)
    assert work.totals.stopped == "first failure"
    assert not work.totals.complete
    assert list(summary(found, folder)) == ["a/error.grad"]


def test_reports_of_an_interrupted_run(folder: Path) -> None:
    work = Run(find_cases([str(folder)]), workers=Workforce(1))
    stream = work.reports()
    taken = [next(stream), next(stream)]
    stream.close()
    taken += work.rest()
    assert list(summary(taken, folder)) == list(EXPECTED)[: len(taken)]
    assert work.totals.files == len(taken)


def test_a_signal_waits_until_a_report_is_delivered_and_counted(folder: Path) -> None:
    """Else a report that is counted and not written makes a partial report file look complete."""
    delivered = []

    def deliver(report: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        delivered.append(report)

    work = Run(find_cases([str(folder)]), workers=Workforce(1), handling=Handling(deliver=deliver))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(work.reports())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(delivered) == work.totals.files == 1


def test_no_scripts(tmp_path: Path) -> None:
    assert reports_of(tmp_path)[0] == []


def test_a_report_survives_its_journey() -> None:
    report = check_script("1 + log(x - 3)", at={"x": 1.0})
    after = report_from_json(json.loads(json.dumps(report_to_json(report))), [one.seconds for one in report.checks])
    assert after.summary == report.summary
    one, other = report.checks[0], after.checks[0]
    assert (one.id, one.verdict, one.evidence, one.message) == (other.id, other.verdict, other.evidence, other.message)
    assert one.diagnostics[0].span == other.diagnostics[0].span
    source: Any = other.diagnostics[0].source
    assert source.line(1) == "1 + log(x - 3)"


@pytest.mark.deep
def test_the_samples_pass() -> None:
    samples = Path(__file__).parents[2] / "samples"
    reports, _ = reports_of(samples, workers=Workforce(2))
    assert len(reports) > 60
    for report in reports:
        assert report.checks or not any(one.severity == "error" for one in report.diagnostics), report.file
        assert all(check.passed for check in report.checks), report.file
