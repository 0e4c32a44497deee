"""`gradcli explain` knows codes and verdicts in any case, and what it says of a verdict is true."""

from __future__ import annotations

import json
import shlex

import pytest

from gradcli.audit import audit_report
from gradcli.base.codes import CODES
from gradcli.base.codes.verdict_codes import WORDS
from gradcli.checks.report import CODE_OF_VERDICT, VERDICTS
from gradcli.interfaces import cli


@pytest.mark.parametrize("verdict", [*VERDICTS, *sorted({*audit_report.ORDER} - {*VERDICTS})])
def test_every_verdict_is_explained(verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    for spelling in (verdict, verdict.lower(), f" {verdict.title()} "):
        assert cli.main(["explain", spelling]) == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert first.startswith(f"{CODE_OF_VERDICT.get(verdict, verdict if verdict in WORDS else 'SYMMETRIC')}: ")


@pytest.mark.parametrize(
    ("text", "shown"), [("GC803", "GC803: KINK"), ("803", "GC803: KINK"), ("gc301", "GC301: "), ("kInK", "GC803: KINK")]
)
def test_codes_in_any_spelling(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", text]) == 0
    assert capsys.readouterr().out.startswith(shown)


@pytest.mark.parametrize(("text", "hint"), [("kinks", "KINK"), ("proven", "PROVED"), ("GC30", "GC"), ("tanh", "lists")])
def test_what_is_unknown_has_a_hint(text: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", text]) == 2
    assert hint in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("verdict", ["PROVED", "CERTIFIED", "AGREES"])
def test_an_example_has_the_verdict(verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = WORDS[verdict].example
    script, _, options = example.partition("  # with ")
    words = shlex.split(example)[1:] if example.startswith("gradcli") else ["check", script, *shlex.split(options)]
    assert cli.main([*words, "--format", "json"]) == 0
    assert verdict in {check["verdict"] for check in json.loads(capsys.readouterr().out)["checks"]}


def test_words_and_codes_are_apart() -> None:
    assert not WORDS.keys() & CODES.keys()
