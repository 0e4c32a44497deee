"""The examples of the README go in: each command is run and its output compared, each Python block is executed.

A console block holds lines `$ gradcli ...`; the lines up to the next one are what it prints. A command without such
lines only has to end with the exit code that the text around it leads one to expect. Scripts are checked.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from gradcli import cli
from gradcli.checks import check_script
from gradcli.language import parse
from gradcli.lowering import lower

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
FAILING = ('--claim "w = A.T @ (A@w - t)"', "--box x=0:4")  # what fails on purpose: exit code 1


def commands() -> list[tuple[str, str]]:
    """Each command of the console blocks, and what is printed below it."""
    found: list[tuple[str, list[str]]] = []
    for kind, block in BLOCKS:
        for line in block.splitlines() if kind == "console" else ():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return [(command, "\n".join(printed).rstrip()) for command, printed in found]


@pytest.mark.parametrize(("command", "printed"), commands(), ids=lambda text: text[:60])
def test_command(command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *arguments = shlex.split(command)
    assert program == "gradcli"
    monkeypatch.chdir(ROOT)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(arguments)
    assert code == (1 if any(text in command for text in FAILING) else 0), err.getvalue()
    if printed:
        assert [line.rstrip() for line in out.getvalue().rstrip().splitlines()] == printed.splitlines()


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "python"], ids=lambda b: b.split("\n")[0])
def test_python(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize(
    "block", [b for kind, b in BLOCKS if not kind and "$" not in b and "=" in b and "venv" not in b]
)
def test_script(block: str) -> None:
    lowered = lower(parse(block))
    assert lowered.claims
    report = check_script(block)
    assert report.checks
    assert all(one.passed for one in report.checks), report.checks


def test_the_set_up_is_two_commands_that_need_nothing_else() -> None:
    lines = [line for kind, block in BLOCKS if not kind for line in block.splitlines() if "venv" in line]
    assert lines == [
        'python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/gradcli grad "(x*y+x)**2" --at x=2,y=3',
        'python3 -m venv .venv && .venv/bin/pip install -q ".[test]" && .venv/bin/pytest -q',
    ]


def test_files_and_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert os.path.exists(ROOT / target), target


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"`((?:gradcli|tests|samples)/[\w./]*)`", text) if not path.endswith("/...")]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
