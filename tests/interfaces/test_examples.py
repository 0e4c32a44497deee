"""The command line against the real engine: the documented answers, and every example that a help text shows."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from gradcli.interfaces.cli import main
from gradcli.interfaces.commands import COMMANDS, declaration
from tests.rendering.test_schema import validator

ELSEWHERE = (".grad", ".py", "|", ">", "models/", "--output", "--pairs")  # examples that need a file, or write one
EXAMPLES = [
    line.strip().removeprefix("gradcli ")
    for command in COMMANDS
    for line in (declaration(command).function.__doc__ or "").splitlines()
    if line.strip().startswith("gradcli ") and not any(part in line for part in ELSEWHERE)
]
BESIDE = {"jacobian", "trace", "hessian", "eval", "grad", "ops", "explain"}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    """The JSON answer of a command that succeeds."""
    assert main([*argv, "--format", "json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_the_documented_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grad", "(x*y+x)**2", "--at", "x=2,y=3", "--format", "json"]) == 0
    assert capsys.readouterr().out == (
        '{"schema_version": 1, "command": "grad", "expression": "(x*y + x)**2", "at": {"x": 2.0, "y": 3.0}, '
        '"value": 64.0, "gradient": {"x": 64.0, "y": 32.0}}\n'
    )


def test_an_expression_with_a_minus_in_front(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "grad", "-x**2", "--at", "x=3")["gradient"] == {"x": -6.0}


def test_no_point_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "grad", "log(x)", "--at", "x=-2")
    assert (found["value"], found["gradient"]) == ("nan", {"x": -0.5})
    assert found["diagnostics"][0]["code"].startswith("GC4")


def test_an_error_points_into_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grad", "-sine(x)", "--at", "x=1", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    problem = json.loads(out)["error"]
    assert problem["code"].startswith("GC2")
    assert problem["span"] == [1, 2, 1, 6]
    assert "  1 | -sine(x)\n    |  ^^^^\n" in err


def test_trace_ends_with_the_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "trace", "h = x**2; h*sin(h)", "--at", "x=2", "--why-topo")
    validator("trace").validate(found)
    straight = answer(capsys, "grad", "x**2*sin(x**2)", "--at", "x=2")["gradient"]["x"]
    assert found["gradient"]["x"] == pytest.approx(straight, rel=1e-14)
    assert found["naive"]["gradient"]["x"] != pytest.approx(straight, rel=1e-3)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_texts(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = shlex.split(example)
    code = main(argv)
    out, err = capsys.readouterr()
    assert code == 0, err
    assert out.strip()
    if argv[0] in BESIDE and "--format" not in argv:
        validator(argv[0]).validate(answer(capsys, *argv))


def test_every_operation_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "ops")
    validator("ops").validate(found)
    assert len(found["operations"]) > 100
    for one in found["operations"]:
        assert one["summary"], one["name"]
    for name in ("sin", "atan2", "clamp", "polygamma", "solve", "softmax", "cross_entropy"):
        told = answer(capsys, "ops", name)
        validator("ops").validate(told)
        assert told["examples"]
