"""The page on Python functions goes in: its commands and its blocks are run, and its figures are those of the tests."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from gradcli.interfaces import cli
from tests.support.callable_cases import cases

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "samples" / "python" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line[2:] for kind, block in BLOCKS if kind == "console" for line in block.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(shlex.split(command)[1:])
    assert code == 0, err.getvalue()
    assert "PROVED" in out.getvalue()


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "python"])
def test_python(block: str) -> None:
    exec(compile(block, "samples/python/README.md", "exec"), {})


def test_the_table_has_as_many_functions_as_it_says() -> None:
    assert f"{len(cases())} functions of NumPy" in TEXT
    assert len(COMMANDS) == 3 and len([kind for kind, _ in BLOCKS if kind == "python"]) == 4
