"""Slips on the command line that people make; the help line is what they meant, and works."""

from __future__ import annotations

import re
import shlex

import pytest

from gradcli.interfaces import cli

MEANT = [
    (["grad", "x*y", "--at", "x=2", "y=3"], "write --at x=2,y=3"),
    (["grad", "x*y", "--at=x=2", "y=3"], "write --at x=2,y=3"),
    (["grad", "x*y*z", "--at", "x=2", "y=3", "z=[1,2]"], "write --at x=2,y=3,z=[1,2]"),
    (["eval", "x*y", "--at", "x=2", "--at", "y=3", "z=4"], "write --at x=2,y=3,z=4"),
    (["check", "x*y", "--at", "x=2", "y=3"], "write --at x=2,y=3"),
    (["grad", "sum(x)", "--at", "x=2,3"], "write x=[2,3] for an array"),
    (["grad", "y*sum(x)", "--at", "y=1,x=2,3,-1e3"], "write x=[2,3,-1e3] for an array"),
    (["grad", "y*sum(x)", "--at", "x=2,3,y=1"], "write x=[2,3] for an array"),
    (["grad", "sin x", "--at", "x=1"], "write sin(x)"),
    (["grad", "x y", "--at", "x=1"], "write x*y for a product"),
    (["grad", "sin 2"], "write sin(2)"),
    (["grad", "sin", "x"], 'an expression with spaces stands in quotes: gradcli grad "x + 1"'),
    (["derive", "x**2", "--at", "x=2"], 'for numbers at one, run gradcli grad "x*y" --at x=2,y=3'),
    (["grad", "x", "y=3"], 'a point stands after --at: gradcli grad "x*y" --at x=2,y=3'),
]


@pytest.mark.parametrize(("line", "meant"), MEANT, ids=[shlex.join(line) for line, _ in MEANT])
def test_the_help_line_is_what_was_meant(line: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == 2
    assert meant in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("line", [["grad", "x", "--at", "x=2", "z"], ["grad", "x", "--foo"]])
def test_other_operands_are_no_part_of_a_point(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == 2
    assert "--at" not in capsys.readouterr().err.splitlines()[-1]


def test_help_is_grouped_and_coloured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command stands under one heading, a command's own options before the shared ones; colours change no text."""
    from gradcli.interfaces.commands import COMMANDS, GROUPS

    named = [name for names in GROUPS.values() for name in names]
    assert len(named) == len(set(named)) and set(named) <= set(COMMANDS)
    for arguments, headings in (
        (["--help"], ["Compute:", "Check:", "Look up:"]),
        (["grad", "--help"], ["Arguments:", "Options:", "Point and numbers:", "Output:"]),
        (["check", "--help"], ["What to check:", "Which files:", "Report files:", "Point and numbers:", "Output:"]),
    ):
        shown = []
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv("NO_COLOR", raising=False)
            monkeypatch.delenv("FORCE_COLOR", raising=False)
            monkeypatch.setenv(name, "1")
            assert cli.main(arguments) == 0
            shown.append(capsys.readouterr().out)
        plain, coloured = shown
        assert "\x1b" not in plain and re.sub(r"\x1b\[\d*m", "", coloured) == plain
        assert [plain.index(f"\n{one}\n") for one in headings] == sorted(plain.index(f"\n{one}\n") for one in headings)
        assert f"\x1b[1m{headings[0]}\x1b[0m" in coloured
