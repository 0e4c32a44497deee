"""Names of files write no commands into the log of a build server, in whatever format the results are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.interfaces import cli
from gradcli.interfaces.command_parts.check_report import STREAMED
from tests.support.report_views import commands_in

WRONG = "x = 2\nassert grad(x**3, x) == 3*x\nx**3\n"
NAMES = [
    "::stop-commands::tok.grad",
    " ::add-mask::secret.grad",
    "##[error]x.grad",
    "##vso[task.setvariable variable=a]b.grad",
    "##teamcity[message text='a'].grad",
    "###[command]rm.grad",
    "--exclude=*.grad",
    "section_start:0:a\r\x1b[0K.grad",
    "a\n::error::b.grad",
]
FORMS = ["plain", "table", "markdown", "latex", "csv", "json", "jsonl", "concise", "tap"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scripts" / "##[group]").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / "scripts" / name).write_text(WRONG)
    (tmp_path / "scripts" / "##[group]" / "right.grad").write_text("x = 2  # ##[error]\nx**2\n")
    (tmp_path / "scripts" / "##[group]" / "broken.grad").write_text("::add-mask::x  # ##[error]\n")
    monkeypatch.chdir(tmp_path / "scripts")
    monkeypatch.setenv("GRADCLI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    return tmp_path


def test_no_format_of_a_check_has_a_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in FORMS:
        for options in ((), ("--show", "all")) if form in ("plain", "table") else ((),):
            assert cli.main(["check", "--format", form, "--jobs", "2", *options]) == 2
            out, err = capsys.readouterr()
            assert not commands_in(out), form
            ours = [line for line in err.splitlines() if not line.startswith(("::error file=", "::notice title="))]
            assert not commands_in("\n".join(ours))
            assert len(ours) < len(err.splitlines())  # the annotations are there


@pytest.mark.parametrize("name", NAMES)
def test_no_message_about_one_file_has_a_command(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    wrong = f"./{name}"
    for arguments in (
        ["grad", wrong],
        ["check", wrong, "--diff"],
        ["freeze", wrong, "--force"],
        ["check", wrong],
        ["check", "--", name],
        ["check", f"{wrong}/nothing"],
        ["run", name],
        ["eval", "x**2", "--points", name],
        ["eval", "x**2", "--at", "x=2", "--output", f"{name}/a.json"],
    ):
        cli.main(arguments)
        out, err = capsys.readouterr()
        assert not commands_in(out + err), arguments


def test_what_a_script_says_is_no_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.grad").write_text('x = 2  # ##[error]\n"a\n::error::\nx**2 +\n')
    for command in ("grad", "check", "trace"):
        assert cli.main([command, "one.grad"]) == 2
        out, err = capsys.readouterr()
        assert not commands_in("\n".join(line for line in (out + err).splitlines() if "file=one.grad" not in line))


def test_every_streamed_format_is_tried() -> None:
    assert set(STREAMED) <= set(FORMS)


def test_a_difference_names_a_file_as_git_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "##[error]é\n.grad"
    Path(name).write_text("x = 2\nx**2\n#> value = 5\n")
    assert cli.main(["check", f"./{name}", "--diff"]) == 1
    quoted = r"\043\043[error]\303\251\012.grad"
    assert capsys.readouterr().out.startswith(f'--- "a/./{quoted}"\n+++ "b/./{quoted}"\n')
