"""The files by which other tools run gradcli: the hook of pre-commit and the action for GitHub do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOOK = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A right script, and one with a wrong claim."""
    (tmp_path / "right.grad").write_text("x = 2\nassert grad(x**2, x) == 2*x\nx**2\n")
    (tmp_path / "wrong.grad").write_text("x = 2\nassert grad(x**2, x) == 3*x\nx**2\n")
    return tmp_path


def field(name: str) -> str:
    """A field of the hook."""
    found = re.search(rf"^[ -]*{name}: (.*)$", HOOK, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize(("name", "code"), [("right.grad", 0), ("wrong.grad", 1)])
def test_the_entry_of_the_hook_judges_the_files_that_it_is_given(name: str, code: int, folder: Path) -> None:
    program, *words = field("entry").split()
    assert program == "gradcli"
    assert re.search(field("files"), name)
    done = subprocess.run([sys.executable, "-m", program, *words, name], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr


def step(name: str) -> str:
    """The shell text of a step of the action."""
    block = ACTION.partition(f"- name: {name}\n")[2].partition("    - name:")[0]
    text = block.partition("run: ")[2]
    lines = text.removeprefix("|\n").splitlines() if text.startswith("|") else [text.strip()]
    return "\n".join(line.strip() for line in lines)


@pytest.mark.parametrize(
    ("paths", "options", "code"),
    [("right.grad", "", 0), (".", "", 1), (".", "--exclude wrong.grad", 0), ("right.grad wrong.grad", "--jobs 1", 1)],
)
def test_the_check_of_the_action_runs_as_it_stands(paths: str, options: str, code: int, folder: Path) -> None:
    report = folder / "report.xml"
    place = os.path.dirname(sys.executable)
    found = {**os.environ, "PATHS": paths, "OPTIONS": options, "JUNIT": str(report), "GITHUB_ACTIONS": "true"}
    found |= {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", step("Check")], cwd=folder, env=found, capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    assert report.read_text(encoding="utf-8").startswith("<?xml")
    assert (b"::error file=wrong.grad,line=2" in done.stdout + done.stderr) == (code == 1)


def test_inputs_reach_the_shell_by_the_environment_only() -> None:
    """An input that is pasted into a shell text would be run."""
    for name in ("Install gradcli", "Check"):
        assert "${{" not in step(name)
