"""The samples for Python functions go in: every command of their first lines gives the verdict that stands below it."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from gradcli.interfaces import cli

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "samples" / "python").glob("*.py"))
PEERS = {"torch_function.py": "torch", "jax_rule.py": "jax"}


def commands() -> list[object]:
    found = []
    for path in FILES:
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines = [line.strip() for line in told.splitlines()]
        for line, after in zip(lines, lines[1:], strict=False):
            if line.startswith("$ gradcli "):
                marks = [pytest.mark.peers] if path.name in PEERS else []
                found.append(
                    pytest.param(path, line[10:], after, marks=marks, id=line.partition("--python ")[2][15:60])
                )
    return found


@pytest.mark.parametrize(("path", "command", "expected"), commands())
def test_command(path: Path, command: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = PEERS.get(path.name)
    if library and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install gradcli[peers]")
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main([*shlex.split(command), "--format", "json", *(["--timeout", "60"] if library else [])])
    checks = json.loads(out.getvalue())["checks"]
    verdict, _, reason = expected.partition(" ")
    assert verdict in {one["verdict"] for one in checks}
    passes = verdict in ("AGREES", "PROVED") or reason.startswith("(passes")
    assert code == (0 if passes else 3 if verdict == "INCONCLUSIVE" else 1)
    if verdict == "DISAGREES":
        assert reason.startswith(("(numerical)", "exactly"))
        basis = "numerical" if reason.startswith("(") else None
        assert all(one["evidence"].get("basis") == basis for one in checks)
        assert all(text in one["message"] for one in checks for text in re.findall(r"(?<=: ).+", reason))


def test_every_sample_has_commands() -> None:
    assert len(FILES) >= 8
    assert {path.name for path in FILES} == {param.values[0].name for param in commands()}


def test_the_example_of_a_test_suite_is_one() -> None:
    spec = importlib.util.spec_from_file_location("testing_example", ROOT / "samples/python/testing_example.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.test_force_is_the_gradient_of_the_energy()
