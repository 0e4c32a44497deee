"""Questions and answers in a terminal or through a pipe: a line of standard input is an answer."""

from __future__ import annotations

import sys

from gradcli.base.diagnostics import error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.derivation.quiz import Question
    from gradcli.interfaces.options.shared_options import CommandOutput

TRIES = 3


def possible(output: CommandOutput, script: str) -> None:
    """Raise GradcliError if a quiz is not possible."""
    if script == "-":
        raise error("GC721", "--quiz reads the answers from standard input, so the script must be an argument")
    if output.format not in ("table", "plain"):
        raise error("GC721", f"--quiz is for people: leave out --format {output.format}")


def quiz(output: CommandOutput, questions: Sequence[Question]) -> int:
    """Print the questions and diagnose wrong answers; 1 if an answer was wrong."""
    if not questions:
        output.line("No questions: no local partial of this script has a formula with a name in it.")
        return 5
    answers = iter(output.lines("-"))
    right = asked = 0
    if sys.stdin.isatty():
        output.line("Type a formula. An empty line shows the answer; `quit` or Ctrl-D ends the quiz.")
    for number, question in enumerate(questions, 1):
        output.line(f"{number} of {len(questions)}: {question.text}")
        known = False
        left = TRIES
        while left and not known:
            output.write(["> "])
            answer = next(answers, None)
            if answer is None or answer.strip() == "quit":
                output.line("")
                return ended(output, right, asked + (left < TRIES))
            if not sys.stdin.isatty():
                output.line(visible(answer.strip(), 200))
            if not answer.strip():
                break
            judgement = question.judged(answer.strip())
            if judgement.right is None:
                output.line(f"  I cannot read {visible(answer.strip())}: {judgement.remarks[0]}.")
                continue
            left -= 1
            known = judgement.right
            output.line("  Right." if known else "  Not right.")
            for remark in judgement.remarks:
                output.line(f"  {remark[0].upper()}{remark[1:]}.")
        right += known
        asked += 1
        if not known:
            output.line(f"  The answer: {question.answer}")
    return ended(output, right, asked)


def ended(output: CommandOutput, right: int, asked: int) -> int:
    """The result of a quiz, and its exit code."""
    if asked:
        output.line(f"{right} of {asked} right")
    return int(right < asked)
