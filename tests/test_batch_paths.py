"""Folders of scripts: found in one order, checked by workers that may die, reported the same whatever their number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradcli.batch import check_paths
from gradcli.batch.discovery import scripts
from gradcli.batch.transport import report_from_json, report_to_json
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
    found = [str(Path(path).relative_to(folder)) for path in scripts([str(folder), str(folder / "b.grad")])]
    assert found == list(EXPECTED)


def test_reports_do_not_depend_on_the_number_of_workers(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    one = check_paths([str(folder)], {"jobs": 1, "progress": lambda done, total, label: seen.append((done, total))})
    assert summary(one, folder) == EXPECTED
    assert seen == [(i, 5) for i in range(1, 6)]
    two = check_paths([str(folder)], jobs=2, at=(), limits=Limits(), timeout=10.0, samples=3)
    packed = [json.dumps([report_to_json(report) for report in reports]) for reports in (one, two)]
    assert packed[0] == packed[1]


def test_no_scripts(tmp_path: Path) -> None:
    assert check_paths([str(tmp_path)]) == []


def test_a_report_survives_its_journey() -> None:
    report = check_script("1 + log(x - 3)", at={"x": 1.0})
    after = report_from_json(json.loads(json.dumps(report_to_json(report))))
    assert after.summary == report.summary
    one, other = report.checks[0], after.checks[0]
    assert (one.id, one.verdict, one.evidence, one.message) == (other.id, other.verdict, other.evidence, other.message)
    assert one.diagnostics[0].span == other.diagnostics[0].span
    source: Any = other.diagnostics[0].source
    assert source.line(1) == "1 + log(x - 3)"


@pytest.mark.deep
def test_the_samples_pass() -> None:
    samples = Path(__file__).parent.parent / "samples"
    reports = check_paths([str(samples)], jobs=2)
    assert len(reports) > 60
    for report in reports:
        assert report.checks or not any(one.severity == "error" for one in report.diagnostics), report.file
        assert all(check.passed for check in report.checks), report.file
