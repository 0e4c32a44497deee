"""Reports for build servers: well-formed XML whatever the user wrote, and log commands that cannot be forged."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradcli.interfaces.cli import main

BAD = "x = 2\ny = x**\n"
GOOD = "x = 2\nx**2\n"


@pytest.mark.parametrize(
    ("files", "targets", "tests", "place"),
    [
        ({"a.grad": GOOD, "bad.grad": BAD}, ["."], 2, ("bad.grad", "2", "error")),
        ({"bad.grad": BAD}, ["bad.grad"], 1, ("bad.grad", "2", "error")),
        ({"a.grad": GOOD, "bad.grad": b"\xff\xfe"}, ["."], 2, ("bad.grad", "1", "error")),
        ({"bad.grad": b"\xff\xfe"}, ["bad.grad"], 1, ("bad.grad", "1", "error")),
        ({}, ["bad.grad"], 1, ("bad.grad", None, "error")),
    ],
)
def test_a_file_that_cannot_be_read_is_a_test_with_an_error(
    files: dict[str, str | bytes],
    targets: list[str],
    tests: int,
    place: tuple[str, str | None, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["check", *targets, "--junit", "r.xml", "--json", "r.json"]) == 2
    out, err = capsys.readouterr()
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == (str(tests), "1", "0")
    (case,) = [one for one in root.iter("testcase") if len(one)]
    (suite,) = [one for one in root if case in one]
    assert (suite.get("file"), case[0].tag) == place[::2]
    assert (case[0].text or "").splitlines()[0] == ":".join(filter(None, place[:2]))
    assert all(float(one.get("time", "-1")) >= 0 for one in root.iter() if one.tag not in ("error", "failure"))
    (annotation,) = [line for line in err.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error file=bad.grad,")
    found = json.loads((tmp_path / "r.json").read_text())
    assert [one["verdict"] for one in found["checks"] if not one["passed"]] == ["ERROR"]
    assert found["checks"][-1]["diagnostics"][0]["code"] in err
    if len(files) > 1:
        assert out.endswith("2 checks in 2 scripts: 1 passed, 1 failed\n")


FORGED = "\n::error::forged \x1b[31m\u202e"


@pytest.mark.parametrize("form", ["plain", "table", "csv", "json", "jsonl", "markdown", "latex"])
def test_a_file_name_starts_no_line(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub's log takes a line that begins with two colons for a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name, text in (("good", GOOD), ("bad", BAD), ("wrong", "x = 2\nassert grad(x**2, x) == x\nx**2\n")):
        (tmp_path / f"{name}{FORGED}.grad").write_text(text)
    for targets in (["."], [f"wrong{FORGED}.grad"], [f"missing{FORGED}.grad"], [f"missing{FORGED}"]):
        main(["check", *targets, "--format", form, "--show", "all", "--junit", "r.xml"])
        nothing_is_forged(*capsys.readouterr(), (tmp_path / "r.xml").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        [f"x{FORGED}"],
        ["grad", f"missing{FORGED}.grad"],
        ["grad", "x", "--at", f"x=@missing{FORGED}.npy"],
        ["grad", "x", "--at", "x=1", "--output", f"missing{FORGED}/x.json"],
        ["grad", "x", "--format", FORGED],
        ["grad", "x", f"--missing{FORGED}"],
        ["run", f"missing{FORGED}.py"],
        ["explain", FORGED],
        ["check", "--python", f"raises{FORGED}.py:f", "--at", "x=1.5", "--junit", "r.xml"],
    ],
    ids=lambda words: ascii(words[0])[:20],
)
def test_no_argument_starts_a_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"raises{FORGED}.py").write_text("def f(x):\n    raise ValueError\n")
    assert main(arguments) == 2
    told = [*capsys.readouterr()]
    nothing_is_forged(*told, *(path.read_text() for path in tmp_path.glob("r.xml")))


def nothing_is_forged(*texts: str) -> None:
    for text in texts:
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::error::forged")]
        assert "\x1b" not in text and "\u202e" not in text
