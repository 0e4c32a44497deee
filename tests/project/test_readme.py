"""The examples of the README go in: each command is run and its output compared, each Python block is executed.

A console block holds lines `$ gradcli ...`; the lines up to the next one are what it prints. A command without such
lines only has to end with the exit code that the text around it leads one to expect.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from gradcli.interfaces import cli

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
FAILING = ('--claim "x = exp(-x**2)*(1 - x**2)"', ":summed_backward")  # what fails on purpose: exit code 1


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


def test_scripts_of_the_documentation_pass(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["check", "--docs", "docs", "--jobs", "1"]) == 0
    assert re.search(r"^(\d+) checks in \d+ scripts: \1 passed$", capsys.readouterr().out, re.MULTILINE)


def test_the_set_up_is_commands_that_need_nothing_else() -> None:
    lines = [line for kind, block in BLOCKS if not kind for line in block.splitlines() if "venv" in line]
    assert lines == [
        'python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/gradcli grad "(x*y+x)**2" --at x=2,y=3',
        "source .venv/bin/activate",
        'python3 -m venv .venv && .venv/bin/pip install -q ".[test]" && .venv/bin/pytest -q',
    ]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert os.path.exists(page.parent / target), target


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"`((?:gradcli|tests|samples)/[\w./]*)`", text) if not path.endswith("/...")]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_of_a_package_index_needs_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    interface = ModuleType("hatchling.metadata.plugin.interface")  # the build backend is not installed here
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    monkeypatch.syspath_prepend(ROOT)
    standalone = import_module("hatch_build").standalone
    del sys.modules["hatch_build"]
    shown = standalone(TEXT)
    assert "![" in TEXT and "![" not in shown
    served = standalone(TEXT, "https://files.example/gradcli/v1/")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", TEXT)
    assert re.findall(r"!\[[^]]*\]\(([^)]*)\)", served) == [
        f"https://files.example/gradcli/v1/{one}" for one in pictures
    ]
    assert re.sub(r"!\[.*\n\n", "", served) == shown
    assert "](" in TEXT
    assert not re.findall(r"\]\((?!https:)[^)]*\)", shown)
    assert "why is it None? (`docs/tutorials/why.md`)" in shown
    assert "`CONTRIBUTING.md`, `CHANGELOG.md`" in shown
    assert re.findall(r"^```(\w*)\n(.*?)^```$", shown, re.MULTILINE | re.DOTALL) == BLOCKS
