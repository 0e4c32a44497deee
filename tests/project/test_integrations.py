"""The files by which other tools run gradcli: the hooks of pre-commit and the action for GitHub do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.interfaces.commands import declaration

ROOT = Path(__file__).parents[2]
HOOKS = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
MATCHERS = json.loads((ROOT / ".github" / "gradcli-matcher.json").read_text(encoding="utf-8"))["problemMatcher"]
OPTIONS = declaration("check").spelled()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A right script, and one with a wrong claim."""
    (tmp_path / "right.grad").write_text("x = 2\nassert grad(x**2, x) == 2*x\nx**2\n")
    (tmp_path / "wrong.grad").write_text("x = 2\nassert grad(x**2, x) == 3*x\nx**2\n")
    return tmp_path


def field(hook: str, name: str) -> str:
    """A field of a hook."""
    block = HOOKS.partition(f"- id: {hook}\n")[2].partition("- id:")[0]
    found = re.search(rf"^ *{name}: (.*)$", block, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize(("name", "code"), [("right.grad", 0), ("wrong.grad", 1)])
def test_the_entry_of_the_hook_judges_the_files_that_it_is_given(name: str, code: int, folder: Path) -> None:
    program, *words = field("gradcli-check", "entry").split()
    assert program == "gradcli"
    assert re.search(field("gradcli-check", "files"), name)
    done = subprocess.run([sys.executable, "-m", program, *words, name], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr


@pytest.mark.skipif("--docs" not in OPTIONS, reason="needs `check --docs`")
@pytest.mark.parametrize(("claim", "code"), [("2*x", 0), ("3*x", 1)])
def test_the_hook_for_documents_judges_their_blocks(claim: str, code: int, folder: Path) -> None:
    text = f"# Title\n\n```gradcli\nx = 2\nassert grad(x**2, x) == {claim}\nx**2\n```\n"
    (folder / "README.md").write_text(text)
    program, *words = field("gradcli-check-docs", "entry").split()
    command = [sys.executable, "-m", program, *words, "README.md"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr


def step(name: str) -> str:
    """The shell text of a step of the action."""
    block = ACTION.partition(f"- name: {name}\n")[2].partition("    - name:")[0]
    text = block.partition("run: ")[2]
    lines = text.removeprefix("|\n").splitlines() if text.startswith("|") else [text.strip()]
    return "\n".join(line.strip() for line in lines)


def environment(name: str) -> set[str]:
    """The variables that a step of the action gets."""
    block = ACTION.partition(f"- name: {name}\n")[2].partition("run: ")[0].partition("env:\n")[2]
    return set(re.findall(r"^ +(\w+): \$\{\{ inputs\.\w+ \}\}$", block, re.MULTILINE))


def ran(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The step that checks, as GitHub runs it."""
    place = os.path.dirname(sys.executable)
    found = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(ROOT), "HOME": str(folder)}
    found |= {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    found |= dict.fromkeys(environment("Check"), "")
    found |= {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), **more}
    found.pop("GRADCLI_CACHE", None)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("Check")]
    return subprocess.run(command, cwd=folder, env=found, capture_output=True, text=True)


@pytest.mark.skipif(not {"--github", "--sarif", "--markdown"} <= set(OPTIONS), reason="needs `check --github`")
@pytest.mark.parametrize(
    ("paths", "options", "code"),
    [
        ("right.grad", "", 0),
        (".", "", 1),
        (".", "--exclude wrong.grad", 0),
        ("r*.grad wrong.grad", "--jobs 1", 1),
        ("r*t", "", 2),
        ("a+b", "", 2),
    ],
)
def test_the_check_of_the_action_runs_as_it_stands(paths: str, options: str, code: int, folder: Path) -> None:
    reports = {"JUNIT": "report.xml", "SARIF": "report.sarif", "MARKDOWN": "report.md"}
    done = ran(folder, PATHS=paths, OPTIONS=options, **reports)
    assert done.returncode == code, done.stderr
    assert (folder / "output").read_text() == f"exit-code={code}\n"
    assert (folder / "report.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert json.loads((folder / "report.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert (folder / "report.md").read_text(encoding="utf-8")
    assert ("::error file=wrong.grad,line=2" in done.stdout + done.stderr) == (code == 1)


RECORDER = """#!/bin/sh
printf '%s\\0' "$GRADCLI_CACHE" "$@" > "$HOME/asked"
exit "$CODE"
"""
HOSTILE = "; touch harmed $(touch harmed) `touch harmed` ${HOME} \" ' * \\"


def asked(folder: Path, code: int = 0, **more: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """The command that the step would run, with a recorder in the place of Python, and how the step ended."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "python3").write_text(RECORDER)
    (folder / "bin" / "python3").chmod(0o755)
    done = ran(folder, CODE=str(code), PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **more)
    return (folder / "asked").read_text().split("\0")[:-1], done


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"PATHS": "."}, ["--github", "--", "."]),
        ({"PATHS": "*.grad  a/b"}, ["--github", "--", "right.grad", "wrong.grad", "./a/b"]),
        (
            {"PATHS": ".", "OPTIONS": "--exclude *.grad\n-x"},
            ["--exclude", "*.grad", "-x", "--github", "--", "."],
        ),
        (
            {"PATHS": ".", "JUNIT": "a b.xml", "SARIF": "c.sarif", "MARKDOWN": "d.md"},
            ["--github", "--junit", "a b.xml", "--sarif", "c.sarif", "--markdown", "d.md", "--", "."],
        ),
        ({"PATHS": ".", "JUNIT": HOSTILE}, ["--github", "--junit", HOSTILE, "--", "."]),
    ],
)
def test_the_action_asks_for_what_it_was_given(given: dict[str, str], words: list[str], folder: Path) -> None:
    found, done = asked(folder, **given)
    assert found == [str(folder / ".cache" / "gradcli"), "-P", "-m", "gradcli", "check", *words]
    assert done.returncode == 0
    assert done.stdout == f"::add-matcher::{ROOT}/.github/gradcli-matcher.json\n"
    assert not (folder / "harmed").exists()


HARMFUL = "import os; open('harmed', 'w').close(); os._exit(0)\n"


@pytest.mark.parametrize(
    "names",
    [
        ["json.py", "re.py", "gradcli.py", "signal.py", "numpy.py", "typer.py", "sitecustomize.py", "usercustomize.py",
         "runpy.py", "__main__.py", "flint.py"],
        ["gradcli/__init__.py", "gradcli/__main__.py", "pip/__main__.py", "sympy/__init__.py"],
    ],
    ids=["modules", "packages"],
)  # fmt: skip
def test_the_action_executes_no_file_of_the_folder(names: list[str], folder: Path) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(HARMFUL)
    done = ran(folder, PATHS=".")
    assert (done.returncode, (folder / "output").read_text()) == (1, "exit-code=1\n"), done.stderr
    assert not (folder / "harmed").exists()
    assert "python3 -P -m pip" in step("Install gradcli")


@pytest.mark.parametrize("name", ["--exclude=*.grad", "-h.grad", "--help.grad", "-kright.grad", "--allow=empty.grad"])
def test_a_file_name_is_no_option_of_the_action(name: str, folder: Path) -> None:
    (folder / name).write_text("x**2\n")
    assert ran(folder, PATHS="*").returncode in (1, 2)


@pytest.mark.parametrize("name", ["PATHS", "OPTIONS"])
def test_words_of_the_action_are_words(name: str, folder: Path) -> None:
    asked(folder, **{"PATHS": ".", name: HOSTILE})
    assert not (folder / "harmed").exists()


@pytest.mark.parametrize("code", [0, 1, 3, 4])
def test_the_action_hands_on_the_exit_code(code: int, folder: Path) -> None:
    _, done = asked(folder, code, PATHS=".")
    assert done.returncode == code
    assert (folder / "output").read_text() == f"exit-code={code}\n"


def test_inputs_reach_the_shell_by_the_environment_only() -> None:
    """An input that is pasted into a shell text would be run."""
    names = re.findall(r"^    - name: (.*)$", ACTION, re.MULTILINE)
    assert names == ["Install gradcli", "Restore verdicts", "Check"]
    for name in names:
        assert "${{" not in step(name)
    places = {line.partition(":")[0].strip() for line in ACTION.splitlines() if "${{" in line}
    assert places == {"VERSION", "PATHS", "OPTIONS", "JUNIT", "SARIF", "MARKDOWN", "key", "restore-keys", "value"}
    assert "${{ inputs." not in "".join(line for line in ACTION.splitlines() if "key" in line)  # a comma is refused


def test_every_input_of_the_action_is_used_and_explained() -> None:
    head, _, rest = ACTION.partition("inputs:\n")[2].partition("outputs:\n")
    inputs = re.findall(r"^  (\w+):\n    description: .+\n    default: ", head, re.MULTILINE)
    assert inputs == re.findall(r"^  (\w+):$", head, re.MULTILINE)
    assert set(inputs) == set(re.findall(r"inputs\.(\w+)", rest))


def matched(line: str) -> tuple[str, dict[str, str]] | None:
    """The severity of a line in GitHub's log, and what is shown where."""
    found = []
    for matcher in MATCHERS:
        (pattern,) = matcher["pattern"]
        match = re.search(pattern["regexp"], line)
        if match:
            parts = {name: match[group] for name, group in pattern.items() if name != "regexp"}
            found.append((matcher["severity"], parts))
    assert len(found) < 2  # else a line would be shown twice
    return found[0] if found else None


@pytest.mark.parametrize(
    ("line", "severity", "parts"),
    [
        ("a.grad:2:1: GC801 DISAGREES claim x: not 6", "error", ("a.grad", "2", "1", "GC801")),
        ("C:\\a b\\c.grad:12:34: GC808 ERROR: no: such", "error", ("C:\\a b\\c.grad", "12", "34", "GC808")),
        ("docs/a:1:2.md:3:4: GC803 KINK gradient x: here", "error", ("docs/a:1:2.md", "3", "4", "GC803")),
        ("a.grad:1:1: GC807 INCONCLUSIVE gradient x: open", "warning", ("a.grad", "1", "1", "GC807")),
        ("a.grad:1:1: GC811 unused", "warning", ("a.grad", "1", "1", "GC811")),
    ],
)
def test_concise_lines_are_matched(line: str, severity: str, parts: tuple[str, ...]) -> None:
    found = matched(line)
    assert found is not None
    assert found[0] == severity
    assert tuple(found[1][name] for name in ("file", "line", "column", "code")) == parts
    assert found[1]["message"] == line.partition(f"{parts[-1]} ")[2]


@pytest.mark.parametrize(
    "line", ["5 checks: 5 passed", " --> a.grad:1:4", "error[GC112]: a value is missing", "a:1:2: GC80 x"]
)
def test_other_lines_are_not_matched(line: str) -> None:
    assert matched(line) is None
