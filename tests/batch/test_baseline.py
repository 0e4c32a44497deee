"""Baselines: what is written, what a later run lets pass, and what it does not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gradcli.batch import baseline
from gradcli.checks import Check, Report, check_script
from gradcli.checks.report import refused
from gradcli.diagnostics import GradcliError
from gradcli.language import read_source

WRONG = "x = 2\nassert grad(x**2, x) == x\nassert grad(x**3, x) == 3*x**2\nassert grad(x**4, x) == x\nabs(x - 2)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "loss.grad").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(path: str = os.path.join("models", "loss.grad")) -> Report:
    return check_script(read_source(path))


def known(report: Report, folder: Path) -> baseline.Baseline:
    """The failures of a report, written and read again."""
    path = folder / "baseline.json"
    path.write_text(baseline.text(baseline.entries(report, str(folder))))
    return baseline.read(str(path))


def test_a_baseline_names_failing_checks_without_lines_and_numbers(folder: Path) -> None:
    found = json.loads(baseline.text(baseline.entries(checked(), str(folder))))
    path = "models/loss.grad"
    assert found == {
        "baseline": 1,
        "checks": [
            {"path": path, "id": "claim", "leaf": "x", "verdict": "DISAGREES"},
            {"path": path, "id": "claim#3", "leaf": "x", "verdict": "DISAGREES"},
            {"path": path, "id": "gradient:x", "leaf": "x", "verdict": "KINK"},
        ],
    }


def test_the_text_is_sorted_and_the_same_from_every_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = list(baseline.entries(checked(), str(folder)))
    text = baseline.text(entries)
    assert baseline.text([*entries[::-1], *entries]) == text
    monkeypatch.chdir(folder / "models")
    assert baseline.text(baseline.entries(checked("loss.grad"), str(folder))) == text
    assert baseline.text(baseline.entries(checked(str(folder / "models" / "loss.grad")), str(folder))) == text
    assert len(text.splitlines()) == 5
    assert json.loads(baseline.text([])) == {"baseline": 1, "checks": []}


def test_exactly_what_is_in_the_baseline_passes(folder: Path) -> None:
    known_ones = known(checked(), folder)
    report = baseline.applied(checked(), known_ones)
    assert report.summary["failed"] == 0 and report.summary["passed"] == 4
    assert [one.evidence.get("baseline") for one in report.checks] == [True, True, None, True]
    assert [one.message.endswith("; in the baseline") for one in report.checks] == [True, True, False, True]
    assert [one.verdict for one in report.checks] == ["KINK", "DISAGREES", "PROVED", "DISAGREES"]
    assert known_ones.fixed() == [] and known_ones.notes() == []


def test_an_edit_elsewhere_changes_nothing(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text("# a new line\n\n" + WRONG.replace("x = 2", "x = 2  # two"))
    assert baseline.applied(checked(), known_ones).summary["failed"] == 0


def test_another_verdict_of_the_same_check_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("abs(x - 2)", "sqrt(x - 2)"))
    report = baseline.applied(checked(), known_ones)
    failing = [one for one in report.checks if not one.passed]
    assert [(one.id, one.verdict) for one in failing] == [("gradient:x", "BOUNDARY")]
    assert "baseline" not in failing[0].evidence
    assert [one.id for one in known_ones.fixed()] == ["gradient:x"]


def test_a_new_failure_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("3*x**2", "3*x"))
    assert [one.line for one in baseline.applied(checked(), known_ones).checks if not one.passed] == [3]


def test_a_script_that_cannot_be_read_is_never_covered(folder: Path) -> None:
    """Neither listed, nor let pass where a file lists it all the same; nor is such an entry one that no longer fails."""
    with pytest.raises(GradcliError) as failed:
        check_script("x +")
    report = refused(failed.value.diagnostics, file=os.path.join("models", "loss.grad"))
    assert [one.verdict for one in report.checks] == ["ERROR"]
    assert list(baseline.entries(report, str(folder))) == []
    listed = baseline.Baseline([one for _, one in baseline.named(report, str(folder))], str(folder))
    assert listed.entries and baseline.applied(report, listed).summary["failed"] == 1
    assert listed.fixed() == []


def test_another_file_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "other.grad").write_text(WRONG)
    assert baseline.applied(checked("models/other.grad"), known_ones).summary["failed"] == 3
    assert known_ones.fixed() == []  # loss.grad was not part of the run


def test_what_is_fixed_is_told(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("abs(x - 2)", "x"))
    baseline.applied(checked(), known_ones)
    (note,) = known_ones.notes()
    assert (note.code, note.severity) == ("GC640", "note")
    assert note.message == "1 entry of the baseline no longer fails: models/loss.grad gradient:x"
    assert "--write-baseline" in (note.help or "")


def test_a_script_that_is_gone_is_fixed(folder: Path) -> None:
    known_ones = known(checked(), folder)
    assert known_ones.fixed() == []
    (folder / "models" / "loss.grad").unlink()
    assert len(known_ones.fixed()) == 3
    assert known_ones.notes()[0].message.startswith("3 entries of the baseline no longer fail: ")


def test_blocks_of_a_document_are_told_apart(folder: Path) -> None:
    second = replace(checked(), block=2)
    assert {one.id for one in baseline.entries(second, str(folder))} == {
        "block 2: claim", "block 2: claim#3", "block 2: gradient:x",
    }  # fmt: skip


def test_a_check_that_passed_stays_as_it_is() -> None:
    one = Check("gradient:x", "a.grad", 1, "gradient", "x", "KINK", {}, "a kink")
    report = Report("", (one,), file="a.grad")
    known_ones = baseline.Baseline(baseline.entries(Report("", (replace(one, passed=False),), file="a.grad"), "."), ".")
    assert baseline.applied(report, known_ones) == report


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b'{"baseline": 2, "checks": []}', b'{"baseline": 1}', b'{"baseline": 1, "checks": {}}',
        b'{"baseline": 1, "checks": [3]}', b'{"baseline": 1, "checks": [{"path": "a", "id": "b", "leaf": ""}]}',
        b'{"baseline": 1, "checks": [{"path": "a", "id": "b", "leaf": null, "verdict": "KINK"}]}', b"\xff\xfe", b"[" * 100000,
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(content)
    with pytest.raises(GradcliError) as caught:
        baseline.read(str(path))
    (one,) = caught.value.diagnostics
    assert one.code == "GC640" and one.help and "baseline.json" in one.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GradcliError, match="GC601"):
        baseline.read(str(tmp_path / "missing.json"))
