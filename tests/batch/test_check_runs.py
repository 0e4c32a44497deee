"""`gradcli check` on a folder, from the command line: what is selected, what is shown, and what counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradcli.interfaces.cli import main
from tests.rendering.test_schema import validator

FILES = {
    "good.grad": "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n",
    "kink.grad": "x = 0\nabs(x)\n",
    "sub/wrong.grad": "x = 2\nassert grad(x**3, x) == 3*x\nx**3\n",
    "guide.md": "# Guide\n\n```gradcli\nx = 2\nx**2\n```\n\n> text\n> ```gradcli\n> y = 0\n> abs(y)\n> ```\n",
    "plain.md": "# No scripts\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    (place / "sub").mkdir()
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = main(["check", *arguments, "--jobs", "1"])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_what_failed_and_one_summary_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, err = told(capsys)
    assert code == 1
    assert lines[-1] == "5 checks in 3 scripts: 3 passed, 2 failed"
    assert "kink.grad" in lines and "sub/wrong.grad" in lines
    assert not any("good.grad" in line for line in lines)
    assert err == "gradcli check: 2 checks failed\n"


def test_a_line_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines, _ = told(capsys, "-v")
    assert lines[0] == "ok    good.grad: 2 PROVED"
    assert lines[1] == ""
    assert lines[2] == "kink.grad"


def test_blocks_of_documents(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = told(capsys, "guide.md", "--docs", "--format", "json")
    report: dict[str, Any] = json.loads("\n".join(lines))
    validator("check").validate(report)
    found = [(one["file"], one["block"], one["line"], one["verdict"]) for one in report["checks"]]
    assert found == [("guide.md", 1, 5, "PROVED"), ("guide.md", 2, 11, "KINK")]
    assert code == 1
    code, lines, _ = told(capsys, "guide.md", "--docs")
    assert "guide.md (block 2)" in lines
    (reproduce,) = [line for line in lines if line.startswith("reproduce")]
    assert " gradcli check guide.md --docs --seed " in reproduce
    assert told(capsys, "guide.md")[0] == 2
    code, _, err = told(capsys, "plain.md", "--docs")
    assert code == 5
    assert "no gradcli blocks in plain.md" in err
    assert told(capsys, "plain.md", "--docs", "--allow", "empty")[0] == 0


def test_shards_and_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    shards = [told(capsys, "--shard", f"{k}/3", "--format", "csv")[1][1:] for k in (1, 2, 3)]
    assert all(shards)
    assert sorted(line for shard in shards for line in shard) == sorted(told(capsys, "--format", "csv")[1][1:])
    assert told(capsys, "--select", "sub/")[1][-1].startswith("2 checks: 1 passed, 1 failed")
    assert told(capsys, "--exclude", "sub/", "--allow", "kink")[0] == 0


def test_only_some_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = told(capsys, "--show", "kink", "--format", "concise")
    assert code == 1
    assert [line.partition(" ")[0] for line in lines] == ["kink.grad:2:1:"]
    _, lines, _ = told(capsys, "--show", "proved")
    assert any(line.split()[:2] == ["ok", "PROVED"] for line in lines)  # what was requested is shown, though it passed


def test_what_failed_last(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys)
    assert told(capsys, "--last-failed")[1][-1].startswith("3 checks in 2 scripts: 1 passed, 2 failed")
    told(capsys, "guide.md", "--docs")
    _, lines, _ = told(capsys, "good.grad", "guide.md", "--docs", "--last-failed")
    assert lines[-1] == "1 check: 0 passed, 1 failed"  # the second block


def test_a_baseline_lets_known_failures_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    known = str(tmp_path / "known.json")
    code, _, err = told(capsys, "--write-baseline", known)
    assert (code, err) == (0, f"gradcli check: 2 failing checks listed in {known}\n")
    assert len(json.loads(Path(known).read_text())["checks"]) == 2
    assert told(capsys, "--baseline", known)[0] == 0
    code, lines, _ = told(capsys, "--baseline", known, "--format", "jsonl")
    passed = [one["evidence"].get("baseline", False) for one in map(json.loads, lines[:-1]) if one["passed"]]
    assert (code, passed.count(known), json.loads(lines[-1])["summary"]["accepted"]) == (0, 2, 2)


def test_a_baseline_says_how_many_scripts_it_cannot_list(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "broken.grad").write_text("x +* 2\n")
    (tmp_path / "wrong.grad").write_text("x = 1\nassert grad(x**2, x) == x\nx**2\n")
    code, _, err = told(capsys, str(tmp_path), "--write-baseline", str(tmp_path / "known.json"))
    assert code == 0 and "1 failing check listed in " in err
    assert err.endswith("; 1 script could not be checked and cannot be listed\n")


def test_several_reports_of_one_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "sarif", "gitlab", "markdown")}
    code, lines, _ = told(
        capsys, "--format", "tap", *(word for form, path in paths.items() for word in (f"--{form}", str(path)))
    )
    assert code == 1
    assert lines[0] == "TAP version 13" and lines[-1] == "1..5"
    assert all(path.stat().st_size > 100 for path in paths.values())
    assert len(json.loads(paths["json"].read_text())["checks"]) == 5
    assert len(json.loads(paths["sarif"].read_text())["runs"][0]["results"]) == 2


def test_a_report_file_that_cannot_be_written_ends_the_run_before_it_begins(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, lines, err = told(capsys, "--no-cache", "--junit", str(tmp_path / "none" / "r.xml"))
    assert (code, lines) == (2, [])
    assert "GC690" in err


@pytest.mark.parametrize(("target", "step"), [("f.py", "write --python f.py:f "), ("f.py:g", "write --python f.py:g ")])
def test_a_python_file_is_not_read_as_a_script(target: str, step: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.py").write_text("def f(x):\n    return None\n")
    code, _, err = told(capsys, target)
    assert code == 2 and err.count("error[") == 1 and f"help: {step}" in err
