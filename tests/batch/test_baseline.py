"""Baselines: what is written, what a later run lets pass, and what it does not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.batch import baseline, judged_content
from gradcli.checks import Check, Report, check_script
from gradcli.checks.report import refused
from gradcli.language import Source, read_source

if TYPE_CHECKING:
    from collections.abc import Callable

WRONG = "x = 2\nassert grad(x**2, x) == x\nassert grad(x**3, x) == 3*x**2\nassert grad(x**4, x) == x\nabs(x - 2)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "loss.grad").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


OPTIONS = {"at": (), "limits": None, "claims": {}, "dtype": "float64"}


def checked(path: str = os.path.join("models", "loss.grad")) -> Report:
    return check_script(read_source(path))


def digest(report: Report) -> Callable[[Check], str]:
    return judged_content.digests(read_source(report.file or ""), (), OPTIONS)


def entries(report: Report, folder: str) -> list[baseline.BaselineEntry]:
    return list(baseline.entries(report, folder, digest(report)))


def applied(report: Report, known_ones: baseline.Baseline) -> Report:
    return baseline.applied(report, known_ones, digest(report))


def known(report: Report, folder: Path) -> baseline.Baseline:
    """The failures of a report, written and read again."""
    path = folder / "baseline.json"
    path.write_text(baseline.text(entries(report, str(folder))))
    return baseline.read(str(path))


def test_a_baseline_names_failing_checks_without_lines_and_numbers(folder: Path) -> None:
    found = json.loads(baseline.text(entries(checked(), str(folder))))
    contents = [check.pop("content") for check in found["checks"]]
    assert len(set(contents)) == 3 and all(len(content) == 32 for content in contents)
    path = "models/loss.grad"
    assert found == {
        "baseline": 2,
        "checks": [
            {"path": path, "id": "claim", "leaf": "x", "verdict": "DISAGREES"},
            {"path": path, "id": "claim#3", "leaf": "x", "verdict": "DISAGREES"},
            {"path": path, "id": "gradient:x", "leaf": "x", "verdict": "KINK"},
        ],
    }


def test_the_text_is_sorted_and_the_same_from_every_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = entries(checked(), str(folder))
    text = baseline.text(listed)
    assert baseline.text([*listed[::-1], *listed]) == text
    monkeypatch.chdir(folder / "models")
    assert baseline.text(entries(checked("loss.grad"), str(folder))) == text
    assert baseline.text(entries(checked(str(folder / "models" / "loss.grad")), str(folder))) == text
    assert len(text.splitlines()) == 5
    assert json.loads(baseline.text([])) == {"baseline": 2, "checks": []}


def test_exactly_what_is_in_the_baseline_passes(folder: Path) -> None:
    known_ones = known(checked(), folder)
    report = applied(checked(), known_ones)
    assert report.summary["failed"] == 0 and (report.summary["passed"], report.summary["accepted"]) == (1, 3)
    assert [one.evidence.get("baseline") for one in report.checks] == [
        known_ones.name,
        known_ones.name,
        None,
        known_ones.name,
    ]
    assert [one.message.endswith("; in the baseline") for one in report.checks] == [True, True, False, True]
    assert [one.verdict for one in report.checks] == ["KINK", "DISAGREES", "PROVED", "DISAGREES"]
    assert known_ones.fixed() == [] and known_ones.notes() == []


def test_an_edit_elsewhere_changes_nothing(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text("# a new line\n\n" + WRONG.replace("x = 2", "x = 2  # two"))
    assert applied(checked(), known_ones).summary["failed"] == 0


def test_another_verdict_of_the_same_check_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("abs(x - 2)", "sqrt(x - 2)"))
    report = applied(checked(), known_ones)
    failing = [one for one in report.checks if not one.passed]
    assert [(one.id, one.verdict) for one in failing] == [("gradient:x", "BOUNDARY")]
    assert "baseline" not in failing[0].evidence and known_ones.fixed() == []


def test_a_new_failure_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("3*x**2", "3*x"))
    assert [one.line for one in applied(checked(), known_ones).checks if not one.passed] == [3]


def test_a_script_that_cannot_be_read_is_never_covered(folder: Path) -> None:
    """Neither listed, nor let pass where a file lists it all the same; nor is such an entry one that no longer fails."""
    with pytest.raises(GradcliError) as failed:
        check_script("x +")
    report = refused(failed.value.diagnostics, file=os.path.join("models", "loss.grad"))
    assert [one.verdict for one in report.checks] == ["ERROR"]
    assert entries(report, str(folder)) == []
    listed = baseline.Baseline(
        [one for _, one in baseline.named(report, str(folder), lambda check: "")], str(folder / "b.json")
    )
    assert listed.entries and baseline.applied(report, listed, lambda check: "").summary["failed"] == 1
    assert listed.fixed() == []


def test_another_file_is_not_covered(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "other.grad").write_text(WRONG)
    assert applied(checked("models/other.grad"), known_ones).summary["failed"] == 3
    assert known_ones.fixed() == []  # loss.grad was not part of the run


def test_what_is_fixed_is_told(folder: Path) -> None:
    known_ones = known(checked(), folder)
    (folder / "models" / "loss.grad").write_text(WRONG.replace("abs(x - 2)", "x"))
    applied(checked(), known_ones)
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
    assert {one.id for one in entries(second, str(folder))} == {
        "block 2: claim", "block 2: claim#3", "block 2: gradient:x",
    }  # fmt: skip


def test_a_check_that_passed_stays_as_it_is() -> None:
    one = Check("gradient:x", "a.grad", 1, "gradient", "x", "KINK", {}, "a kink")
    report = Report("", (one,), file="a.grad")
    failed = Report("", (replace(one, passed=False),), file="a.grad")
    known_ones = baseline.Baseline(baseline.entries(failed, ".", lambda check: ""), "b.json")
    assert baseline.applied(report, known_ones, lambda check: "") == report


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b'{"baseline": 3, "checks": []}', b'{"baseline": 2}', b'{"baseline": 2, "checks": {}}',
        b'{"baseline": 2, "checks": [3]}', b'{"baseline": 2, "checks": [{"path": "a", "id": "b", "leaf": ""}]}',
        b'{"baseline": 1, "checks": [{"path": "a", "id": "b", "leaf": "", "verdict": "KINK"}]}',
        b'{"baseline": 2, "checks": [{"path": "a", "id": "b", "leaf": null, "verdict": "KINK", "content": ""}]}', b"\xff\xfe", b"[" * 100000,
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(content)
    with pytest.raises(GradcliError) as caught:
        baseline.read(str(path))
    (one,) = caught.value.diagnostics
    assert one.code == "GC640" and one.help and "baseline.json" in one.message


def test_an_empty_baseline_of_an_earlier_version_accepts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text('{"baseline": 1, "checks": []}')
    assert not baseline.read(str(path)).accepted


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GradcliError, match="GC601"):
        baseline.read(str(tmp_path / "missing.json"))


# --- what an entry accepts ------------------------------------------------------------------------------------------------

SCRIPT = """def f(u):
    return k*u**3
k = 2
x = 1.5
w = load("w.csv")
for i in range(2):
    k = k + i
y = f(x)*sum(w)
z = x**2
assert grad(y, x) == 3*x
assert grad(z, x) == 2*x
y
"""
ELSEWHERE = [
    ("y = f(x)", "# a comment\ny = f(x)"), ("def f", "\n\ndef f"), ("k*u**3", "k * u**3"), ("2*x\n", "x + x\n"),
    ("assert grad(z, x) == 2*x\n", ""), ("z = x**2", "z = x**2 + 1"), ("assert grad(y", "assert z == x*x\nassert grad(y"),
    ("grad(y, x) == 3*x", "grad(y, x)  == (3*x)  # as the book has it"), ("\ny\n", "\ny + 0\n"),
    ("assert grad(y, x)", "assert grad(z, x) == x + x\nassert grad(y, x)"),
]  # fmt: skip
CHANGED = [
    ("3*x", "7*x"), ("3*x", "3*x + 0"), ("3*x", "3.0*x"), ("3*x", "4.5"), ("k*u**3", "k*u**4"), ("k = 2", "k = 3"),
    ("x = 1.5", "x = 1.25"), ("x = 1.5", "x = 1.50000000000000000"), ("k + i", "k + 2*i"), ("range(2)", "range(3)"),
    ("*sum(w)", "*max(w)"), ("grad(y, x) ==", "grad(y, x) == grad(y, x) - grad(y, x) +"), ("3*x\n", "3*x  # rtol=1e-6\n"),
    ("assert grad(y", "# gradcli: rtol=1e-7\nassert grad(y"), ("def f", "# gradcli: samples=5\ndef f"), ("1,2", "1,3"),
]  # fmt: skip


def failures(text: str, data: str = "1,2\n") -> Report:
    Path("s.grad").write_text(text)
    Path("w.csv").write_text(data)
    return check_script(read_source("s.grad"))


@pytest.mark.parametrize(("old", "new"), [*ELSEWHERE, *CHANGED])
def test_an_entry_accepts_what_it_was_written_for(folder: Path, old: str, new: str) -> None:
    """The claim, what it needs, data files and settings count; other claims, other names, comments and lines do not."""
    before = known(failures(SCRIPT), folder)
    assert old in SCRIPT + "1,2"
    report = applied(failures(SCRIPT.replace(old, new), "1,2\n".replace(old, new)), before)
    summary = (report.summary["failed"] + report.summary["inconclusive"], report.summary.get("accepted", 0))
    assert summary == ((0, 1) if (old, new) in ELSEWHERE else (1, 0)), report.checks
    changed = [check for check in report.checks if check.message.startswith("changed since the baseline: ")]
    assert len(changed) == ((old, new) in CHANGED)


@pytest.mark.parametrize("options", [{"at": ("x=2",)}, {"dtype": "float32"}, {"claims": {"x": "1"}}, {"seed": 3}])
def test_options_are_content(options: dict[str, Any]) -> None:
    report = check_script("x = 1\nassert grad(x**2, x) == 3*x\nx", claims=None)
    digest_of = [judged_content.digests(Source(report.expression), (), {**OPTIONS, **more}) for more in ({}, options)]
    assert len({one(report.checks[-1]) for one in digest_of}) == 2
    same = judged_content.digests(Source(report.expression), (), {**OPTIONS, "require": "certified", "timeout": 9.0})
    assert same(report.checks[-1]) == digest_of[0](report.checks[-1])


def test_python_functions_are_content(folder: Path) -> None:
    """The file of the function, that of its gradient, and what they import beside them."""
    Path("m.py").write_text("from helper import g\ndef f(x): return g(x)\n")
    Path("helper.py").write_text("def g(x): return x**2\n")
    Path("d.py").write_text("def df(x): return 3*x\n")
    check = Check("callable:x", "m.py", 2, "callable", "x", "DISAGREES", {}, "", passed=False)

    def content() -> str:
        return judged_content.digests(None, ("m.py:f", "d:df"), OPTIONS)(check)

    seen = {content()}
    for path in ("m.py", "helper.py", "d.py"):
        Path(path).write_text(Path(path).read_text() + "# changed\n")
        seen.add(content())
    assert len(seen) == 4 and content() in seen


def test_a_baseline_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text('{"baseline": 1, "checks": [{"path": "a", "id": "claim", "leaf": "x", "verdict": "DISAGREES"}]}')
    with pytest.raises(GradcliError, match="earlier version") as caught:
        baseline.read(str(path))
    assert "--write-baseline" in str(caught.value.diagnostics[0].help)
