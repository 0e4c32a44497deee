"""`gradcli batch`: answer JSON Lines requests with one JSON line each, in order."""

from __future__ import annotations

from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, PositionalArgument
from gradcli.interfaces.options.shared_options import presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli import batch as service
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.rendering import machine
else:
    machine, service = room("machine"), room("batch")


def batch(output: CommandOutput, requests: str) -> int:
    """Answer JSON Lines requests, one line each.

    A request is an object: "id", "command" (eval, grad, hessian, check), "script", "at" (names to
    numbers, nested lists, or the strings "nan", "inf", "-inf"), "wrt" (a list of names), "claims" (leaf
    to script). The answers come in the order of the requests, each as soon as it is ready. A request that
    cannot be answered gets an "error"; it never stops the rest, and the exit code is 0 once every line
    has been answered.

    Examples:
      gradcli batch requests.jsonl > answers.jsonl
      echo '{"command": "eval", "script": "1/3 + 1/6"}' | gradcli batch -
    """

    service.serve(output.lines(requests), lambda answer: output.line(written(answer)))
    return 0


def written(answer: Any) -> str:
    """An answer as a line: a text as it is, a mapping, or an object with an id and an outcome."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict):
        return machine.answer(answer.get("id"), {name: value for name, value in answer.items() if name != "id"})
    return machine.answer(answer.id, answer.outcome)


REQUESTS = PositionalArgument("requests", "FILE|-", "A file of requests, or - for standard input.")
DECLARATION = Declaration(batch, (REQUESTS,), presentation("jsonl"))
