"""What `check` reads as a path and what as an expression, and which options are for which kind of check.

A folder that was renamed, an option that is unknown or a pattern that matches nothing never passes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces import cli
from gradcli.interfaces.command_parts.check_inputs import for_this_kind
from gradcli.interfaces.commands import declaration
from gradcli.interfaces.options.check_options import EXPRESSION, FILE, FILES, FUNCTION, KINDS
from tests.support.rows import every

WRONG = "x = 2\nassert grad(x**2, x) == 3*x\nx**2\n"
ROOT = Path(cli.__file__).parents[2]
RIGHT = "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "grads").mkdir()
    (tmp_path / "grads" / "w.grad").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADCLI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


PATHS = [
    "nothing-here", "nothing_here", "nothing", "nothing.here", "nothing/here", "./nothing", "../nothing", "nothing/", "a/b", "a/b/c",
    "x", "x-y", "x-1", "2", "1.5", "1e-3", "-2", "x.y", "a-b/c-d", "~/grads", "~user/grads", "$HOME/grads", "%TEMP%/x", "C:/grads",
    "C:\\grads", "\\\\server\\share", "grads:w", "a,b", "grads/[ab].grad", "grads/?.grad", "grads/{a,b}", "@org/grads", "packages/@org/grads", "|x|",
    "x²", "√x", "file.grad", "grads/missing.grad", "missing(1).grad", "a+b.grad", "'x'", '"x"', "x!", "x#y", "x&y", "x;y", ".", "..x",
    "...", "π", "naïve", "x'", "[1,2]", "`x`", "grads/w*d", "grads/(a)", "./a*b", "../a*b", "/a*b", "~/a*b", "jobs=4", "x = 2", "x=[1, 2]", "f = x", "grads ", " grads/w.grad ", " ", "grads\t", "x\u200by", "grad\u00adient",
]  # fmt: skip


@pytest.mark.parametrize("operand", PATHS)
@pytest.mark.parametrize("point", [(), ("--at", "x=2,y=3")])
def test_what_could_be_a_path_is_one(operand: str, point: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["check", operand, *point])
    out, err = capsys.readouterr()
    if operand == ".":
        assert code == 1
        return
    assert code == 2 and not out and "error[GC601]: no such file or folder" in err, err


EXPRESSIONS = [
    "x*y", "x**2", "x^2", "(x)", "x + y", "x+y", "x - y", "x / y", "a*(b)", "x>0", "x < 1", "sin(x)", "-x**2", "-(x)",
    "-x + y", "f = x*y", "x\n", "x = 2\nx", "2*x", "1/(x)", "(a/b)", "[x*y, x]", "norm(x)", "x.T @ A @ x + 0", "x@y", "x.T@A@y", "x[0]@y", "-sin(x)", "where(x>0, x, 0)",
    "$x^2$", "x == y",
]  # fmt: skip


@pytest.mark.parametrize("operand", EXPRESSIONS)
def test_what_holds_an_operator_or_a_blank_is_an_expression(operand: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", operand])
    out, err = capsys.readouterr()
    assert "no such file or folder" not in err and "GC721" not in err
    assert "w.grad" not in out


@pytest.mark.parametrize("text", ["x", "a/b", "nothing-here", "-x", "grads", "w.grad", "--lenient", "2", "x + 1"])
def test_dash_e_is_an_expression_whatever_it_looks_like(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["check", "-e", text])
    out, err = capsys.readouterr()
    assert "GC601" not in err and "DISAGREES" not in out and "GC721" not in err
    assert code in (0, 2, 5)
    if text == "a/b":
        assert code == 0 and out.startswith("a/b\n")
    assert cli.main(["check", f"--expression={text}"]) == code


@pytest.mark.parametrize("name", ["x**2", "a+b", "unit tests", "x - y (copy)", "f(x)", "a=b", "x>0", "-x"])
def test_what_exists_is_a_path(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).mkdir()
    (folder / name / "w.grad").write_text(WRONG)
    assert cli.main(["check", "--", name]) == 1
    out, _ = capsys.readouterr()
    assert "w.grad" in out and "DISAGREES" in out
    (folder / name / "w.grad").unlink()
    assert cli.main(["check", "--", name]) == 5  # and does not become an expression when it is empty


@pytest.mark.parametrize(
    ("operand", "hint"),
    [
        ("./grds", "did you mean ./grads?"),
        ("grads/v.grad", "did you mean grads/w.grad?"),
        ("Grads", "did you mean grads?"),
        ("grads ", "did you mean grads?"),
        (" grads/w.grad", "did you mean grads/w.grad?"),
        ("jobs=4", "write --jobs 4"),
        ("fail-fast=1", "write --fail-fast"),
        ("x = 2", "a point stands behind --at, as --at x=2"),
        ("grads/a*b", "to check the expression write -e 'grads/a*b'"),
        ("", "name a .grad file or a folder; without an argument the current folder is checked"),
        ("nothing-here", "to check the expression write -e 'nothing - here'"),
        ("a/b", "to check the expression write -e a/b"),
        ("x", "to check the expression write -e x"),
        ("|x|", "to check the expression write -e 'abs(x)'"),
    ],
)
def test_the_way_out_is_named(operand: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", operand]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"help: {hint}"
    if "write -e" in hint:
        assert cli.main(["check", *shlex.split(hint.partition("write ")[2])]) == 0


@pytest.mark.parametrize(
    "words",
    every(4, [
        ["-x"], ["-q"], ["-v"], ["-vv"], ["-j4"], ["-j", "4"], ["-xq"], ["-xvj2"], ["--fail-fast"], ["-k", "w"], ["-kw"], ["-k", "W or z"], ["grads/w.grad", "-k", "claim"], ["-k", "grads and not gradient"],
        ["--show", "failing"], ["--show=all"], ["--no-cache"], ["."], ["grads"], ["grads", "-x"], ["-x", "grads"], ["./grads/"],
        ["--", "grads"], ["grads/w.grad"], ["grads/w.grad", "-q"], ["--select", "*.grad"], ["--last-failed"], ["--shard", "1/1"],
        ["-fjson"], ["-f", "tap"], ["--json", "a.json"], ["--memory", "500"], ["--allow", "kink,inconclusive,empty"], ["--lenient"],
    ]),
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_script_fails_with_all_short_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", *words]) == 1
    assert "1 check failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["-k"],
        ["-k", ""],
        ["-k", "a b"],
        ["-k", "not"],
        ["-k", "(a"],
        ["-z"],
        ["-xz"],
        ["-s"],
        ["-n4"],
        ["-j"],
        ["-jx"],
        ["-kx*y"],
        ["-x.grad"],
        ["--verbos"],
        ["-V"],
        ["-Q"],
        ["--x"],
        ["-"],
    ],
    ids=" ".join,
)
def test_an_option_that_is_none_judges_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert cli.main(["check", *words]) == 2
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["x**2", "--at", "x=1", "--wrt", ""], "--wrt '' has an empty name"),
        (["x**2", "--at", "x=1", "--wrt", "x,,"], "--wrt 'x,,' has an empty name"),
        (["--watch", "nothing-here"], "no such file or folder `nothing-here`"),
        (["grads", "--no-cache", "--cache", "kept"], "--no-cache does not go with --cache"),
        (["--json", "w.grad"], "w.grad is the name of a script"),
        (["grads", "--write-baseline", "w.grad"], "w.grad is the name of a script"),
        (["grads", "--json", "r.txt", "--junit", "r.txt"], "two reports cannot be written to r.txt"),
        (["grads", "--json", ""], "--json has no name"),
        (["grads", "--baseline", ""], "--baseline has no name"),
        (["grads", "--cache="], "--cache has no name"),
        (["grads", "-o", ""], "--output has no name"),
        (["grads", "-o", "-"], "no format for the ending of -"),
        (["grads", "--junit", "-"], "- is no name of a file"),
        (["pipe.grad"], "pipe.grad is neither a file nor a folder"),
        (["grads", "pipe.grad"], "pipe.grad is neither a file nor a folder"),
        (["link.grad"], "help: it is a link to nowhere, which does not exist"),
    ],
)
def test_what_would_do_nothing_or_overwrite_a_script_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo("pipe.grad")
    os.symlink("nowhere", "link.grad")
    assert cli.main(["check", *words]) == 2
    printed = capsys.readouterr()
    assert not printed.out and problem in printed.err and "help: " in printed.err


@pytest.mark.parametrize(("script", "at"), [("relu(x)", "X=0"), ("abs(x)*y", "y=1,z=0"), ("x**2", "z=2")])
def test_a_point_of_other_names_judges_nothing(script: str, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The leaf that is meant would have a random value."""
    assert cli.main(["check", script, "--at", at]) == 2
    assert "error[GC202]: `x` has no value" in capsys.readouterr().err
    with pytest.raises(GradcliError, match="GC202"):
        gradcli.check(script, at=[at])


def test_a_value_that_nothing_uses_is_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "x**2", "--at", "x=1,z=2"]) == 0
    assert "note[GC211]: the script does not use `z`" in capsys.readouterr().err
    (folder / "grads" / "free.grad").write_text("v**2\n")
    assert cli.main(["check", "grads", "--at", "q=2", "-k", "free"]) == 0  # a point may be for some scripts of a folder


def test_a_leaf_that_no_output_reads_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "-e", "x\n1"]) == cli.main(["check", "-e", "x*y\ny"]) == 0
    assert "1 check: 1 passed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_judged_where_it_is_a_pipe(name: str) -> None:
    words = [sys.executable, "-m", "gradcli", "check", name]
    done = subprocess.run(words, input=WRONG, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 1 and "2 checks: 1 passed, 1 failed" in done.stdout


def test_the_ending_of_a_script_may_be_in_capitals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "grads" / "w.grad").rename(folder / "grads" / "W.GRAD")
    assert cli.main(["check"]) == 1
    assert "W.GRAD" in capsys.readouterr().out


def test_one_file_keeps_its_report_in_the_folder_of_cache(tmp_path: Path) -> None:
    (tmp_path / "good.grad").write_text("x = 2\nassert grad(x**2, x) == 2*x\nx**2\n")
    assert cli.main(["check", str(tmp_path / "good.grad"), "--cache", str(tmp_path / "kept")]) == 0
    assert any((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("operands", [["nothing-here"], ["a/b"], ["grads", "nothing-here"]])
@pytest.mark.parametrize("option", [("--claim", "x = 1"), ("--box", "x=0:1")])
def test_a_path_that_is_missing_comes_before_an_option_that_does_not_fit(
    operands: list[str], option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", *operands, *option]) == 2
    assert f"no such file or folder `{operands[-1]}`" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-k", "nothing"], ["--select", "nothing"], ["--exclude", "*"], ["--shard", "2/2"]])
def test_a_selection_of_nothing_is_code_5(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", *words]) == 5


# --- which options are for which kind ---------------------------------------------------------------------------------

TARGETS = {
    EXPRESSION: ["x**2"],
    FILE: ["grads/w.grad"],
    FILES: ["grads"],
    FUNCTION: ["--python", "m.py:f", "--grad", "m.py:df", "--at", "x=[1,2]"],
}
OPTIONS = [option for option in declaration("check").options if option.name != "expression"]


@pytest.mark.parametrize("kind", TARGETS)
def test_an_option_that_does_nothing_is_refused(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.py").write_text("import numpy as np\ndef f(x): return np.sum(x**2)\ndef df(x): return 2*x\n")
    values = {"int": "800", "float": "9", "table": "a=b"}
    refused = 0
    for option in OPTIONS:
        if option.name in ("python", "grad"):
            continue
        if kind in KINDS.get(option.name, (kind,)):
            for_this_kind(kind, [option.name], OPTIONS)
            continue
        value = (
            [] if option.kind == "flag" else [values.get(option.kind, "x = 1" if option.name == "claim" else "x=1:2")]
        )
        value = ["numpy"] if option.name == "backend" else value
        assert cli.main(["check", *TARGETS[kind], option.spellings[0], *value]) == 2, option.name
        out, err = capsys.readouterr()
        assert f"{option.spellings[0]} does not go with {kind}" in err and not out
        refused += 1
    assert refused == sum(kind not in kinds for name, kinds in KINDS.items() if name not in ("python", "grad"))


def test_every_row_is_an_option() -> None:
    assert KINDS.keys() <= {option.name for option in OPTIONS}


def test_settings_are_not_refused(folder: Path) -> None:
    """They are for all checks of a project: what does not concern one does nothing there."""
    (folder / "gradcli.toml").write_text(
        "[check]\njobs = 2\ndocs = true\nexclude = ['a']\njunit = 'report.xml'\nmemory = 900\n"
    )
    for words in (["x**2"], ["-e", "x"]):
        assert cli.main(["check", *words]) == 0
        assert not (folder / "report.xml").exists()  # reports of the project are about its files
    assert cli.main(["check", "grads"]) == 1
    assert (folder / "report.xml").exists()
