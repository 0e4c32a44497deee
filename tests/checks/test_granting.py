"""One file grants PROVED and CERTIFIED, and only where what a proof assumes holds."""

from __future__ import annotations

import ast
from pathlib import Path

GRANTING = "checks/decide/granting.py"
GRANTED = {"PROVED", "CERTIFIED"}


def written_verdicts(source: str) -> set[str]:
    """The granted verdicts that a module makes the verdict of something: by a call, a keyword or a conditional."""
    written: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            values = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "verdict")]
        elif isinstance(node, ast.IfExp):
            values = [node.body, node.orelse]
        else:
            continue
        constants = [one.value for value in values for one in ast.walk(value) if isinstance(one, ast.Constant)]
        written |= GRANTED.intersection(one for one in constants if isinstance(one, str))
    return written


def test_one_file_grants_proofs_and_certificates() -> None:
    package = Path(__file__).parents[2] / "gradcli"
    files = {path: written_verdicts(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    assert {path.relative_to(package).as_posix() for path, written in files.items() if written} == {GRANTING}
    assert files[package / GRANTING] == GRANTED


def test_the_reader_of_sources_finds_them() -> None:
    assert written_verdicts('Outcome("PROVED", text, {})') == {"PROVED"}
    assert written_verdicts('outcome._replace(verdict="CERTIFIED")') == {"CERTIFIED"}
    assert written_verdicts('verdict = "PROVED" if proved else "CERTIFIED"') == GRANTED
    assert not written_verdicts('outcome.verdict in ("PROVED", "CERTIFIED")')
