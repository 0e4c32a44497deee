"""`--quiz`: answers through a pipe, right ones in any form, wrong ones with what is wrong with them."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from gradcli import calculator
from gradcli.derivation.quiz import partial_questions
from gradcli.interfaces import cli


def asked(
    arguments: list[str], answers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(answers.encode()), isatty=lambda: False))
    code = cli.main([*arguments, "--quiz"])
    return code, capsys.readouterr().out


TRACE = ["trace", "exp(-x**2)", "--at", "x=2"]
SQUARE = ["trace", "(x*y + x)**2", "--at", "x=2,y=3"]
CASES = [  # command, answers, exit code, what is said
    (
        TRACE,
        "exp(-x**2)\n2*x\n",
        0,
        ["1 of 2: What is the local partial of exp(-x**2) with respect to -x**2?", "Right.", "2 of 2 right"],
    ),
    (TRACE, "0.01831563888873418\n4\n", 0, ["2 of 2 right"]),
    (TRACE, "-exp(-x**2)\nexp(-x**2)\n", 0, ["Not right.", "wrong sign", "1 of 1 right"]),
    (TRACE, "exp(-x**2)\nx\nx\nx\n", 1, ["factor", "The answer: 2*x", "1 of 2 right"]),
    (TRACE, "exp(-x**2) +\n\n", 1, ["I cannot read exp(-x**2) +", "The answer: exp(-x**2)"]),
    (TRACE, "", 0, ["1 of 2"]),
    (SQUARE, "2*(x*y + x)\ny\nx\n", 0, ["3 of 3 right"]),
    (SQUARE, "2*x*y + 2*x\ny\nx\n", 0, ["3 of 3 right"]),
    (["derive", "exp(-x**2)"], "-2*x*exp(-x**2)\n", 0, ["What is d/dx?", "1 of 1 right"]),
    (["derive", "exp(-x**2)"], "exp(-x**2)\n", 1, ["the inner derivative is missing", "0 of 1 right"]),
    (
        ["derive", "mean((A@x - b)**2)", "--wrt", "x"],
        "2*A.T @ (A@x - b)\n2/m*A.T @ (A@x - b)\n",
        0,
        ["factor", "1 of 1"],
    ),
    (["derive", "x**2*y"], "2*x*y\nx**2\n", 0, ["2 of 2 right"]),
]


@pytest.mark.parametrize(("command", "answers", "code", "said"), CASES)
def test_a_quiz(
    command: list[str],
    answers: str,
    code: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, text = asked(command, answers, monkeypatch, capsys)
    assert all(one in text for one in said), text
    assert found == code


def test_nothing_to_ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = asked(["trace", "x + y", "--at", "x=2,y=3"], "1\n", monkeypatch, capsys)
    assert code == 5 and "No questions" in text


@pytest.mark.parametrize("more", [["--format", "json"], ["--plan"]])
def test_what_does_not_go_together(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "x**2", "--at", "x=2", "--quiz", *more]) == 2
    assert "GC721" in capsys.readouterr().err
    assert cli.main(["derive", "-", "--quiz"]) == 2


def test_every_answer_is_right() -> None:
    """What a quiz calls right is, and the same with another sign is not."""
    at = {"x": 0.5, "A": [[1.0, 2.0], [3.0, 5.0]], "b": [0.5, 0.25]}
    trace = calculator.trace("r = A@b - x; sum(tanh(r)**2*exp(r)) + sqrt(x)/(1 + x)", at=at, symbolic=True)
    found = list(partial_questions(trace))
    assert len(found) == 5
    for question in found:
        assert question.judged(question.answer).right
        assert question.judged(f"-({question.answer})").right is False
