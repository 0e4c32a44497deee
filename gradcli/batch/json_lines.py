"""JSON Lines requests and their answers, one each and in order; one bad line never stops the rest.

An answer has the id of its request and an outcome: a result, a report, or the diagnostic of an error. Prepared scripts
are cached, so a script that comes again with another point is only evaluated. A stream of scalar requests needs only
the standard library.
"""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from json import JSONDecodeError, JSONDecoder

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.calculator.answers import ask_gradient, ask_hessian, ask_value
from gradcli.calculator.questions import gradient_question, hessian_question, prepare, value_question
from gradcli.lowering.points import read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.lowering import Lowered

COMMANDS = ("eval", "grad", "hessian", "check")
MOST_SCRIPTS = 512
MOST_NODES = 400_000  # over all cached scripts

MAKE: dict[str, Callable[[Lowered], PreparedScript]] = {
    "eval": value_question,
    "grad": gradient_question,
    "hessian": hessian_question,
}
ASK: dict[str, Callable[..., Any]] = {"eval": ask_value, "grad": ask_gradient, "hessian": ask_hessian}


class Answer:
    """The answer to one request: `outcome` is a result, a report, or the Diagnostic of an error."""

    __slots__ = ("id", "outcome")

    def __init__(self, id: Any, outcome: Any) -> None:
        self.id = id
        self.outcome = outcome

    def __repr__(self) -> str:
        return f"Answer({self.id!r}, {self.outcome!r})"


def serve(lines: Iterable[str], write: Callable[[Answer], object]) -> int:
    """Answer each line by one call of `write`, and return the number of answers.

    Blank lines are skipped. The answer to a line that is not a JSON object has the id None. Raises only what `lines`
    and `write` raise.
    """
    cache = QuestionCache()
    count = 0
    for number, line in enumerate(lines, 1):
        if line.isspace() or not line:
            continue
        write(answered(line, number, cache))
        count += 1
    return count


def answered(line: str, number: int, cache: QuestionCache) -> Answer:
    """The answer to one line."""
    try:
        request = DECODER.decode(line)
    except (JSONDecodeError, ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        hint = "a request is one line such as " + '{"id": 1, "command": "grad", "script": "x**2", "at": {"x": 3}}'
        return Answer(None, Diagnostic("GC901", f"line {number} is not a JSON object", help=hint))
    identity = request.get("id")
    try:
        return Answer(identity, outcome(request, cache))
    except GradcliError as problem:
        return Answer(identity, problem.diagnostics[0])
    except (MemoryError, RecursionError) as full:
        return Answer(identity, Diagnostic("GC506", f"the request needs too much memory ({type(full).__name__})"))
    except Exception as bug:  # a fault of this request must not affect the next one
        return Answer(identity, Diagnostic("GC999", f"internal error: {type(bug).__name__}: {visible(str(bug), 200)}"))


def outcome(request: Mapping[str, Any], cache: QuestionCache) -> Any:
    """The result or report of a request; raises GradcliError."""
    command = request.get("command")
    if command not in COMMANDS:
        if command is None:
            phrase = "the request has no command"
        else:
            phrase = (
                f"unknown command `{visible(command)}`" if isinstance(command, str) else "the command is not a string"
            )
        raise error("GC902", phrase, help=f"the commands are {', '.join(COMMANDS)}")
    script = request.get("script")
    if not isinstance(script, str):
        raise error("GC903", "`script` must be a text", help='such as "script": "x**2 + y"')
    at = request.get("at")
    if at is None:
        at = {}
    elif not isinstance(at, dict):
        raise error("GC903", "`at` must be an object of names and values", help='such as "at": {"x": 2}')
    wrt = request.get("wrt")
    if wrt is not None and not (isinstance(wrt, list) and all(isinstance(name, str) for name in wrt)):
        raise error("GC903", "`wrt` must be a list of names", help='such as "wrt": ["x", "y"]')
    if command != "check":
        return cache.answer(command, script, at, wrt)
    claims = request.get("claims")
    if claims is None:
        claims = {}
    elif not isinstance(claims, dict) or not all(isinstance(text, str) for text in claims.values()):
        raise error("GC903", "`claims` must be an object of leaves and scripts", help='such as "claims": {"x": "2*x"}')
    options = {name: request[name] for name in CHECK_OPTIONS if request.get(name) is not None}
    for name, value in options.items():
        if not isinstance(value, CHECK_OPTIONS[name]) or (isinstance(value, bool) and name in NUMBERS):
            raise error("GC903", f"`{name}` has a value of the wrong kind")
    return import_module("gradcli.checks").check_script(script, at=at, wrt=wrt, claims=claims, **options)


NUMBERS = ("samples", "seed", "timeout")
CHECK_OPTIONS: dict[str, Any] = {
    "samples": int,
    "seed": int,
    "timeout": (int, float),
    "allow_kink": bool,
    "lenient": bool,
}


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


DECODER = JSONDecoder(parse_constant=_refuse)


# --- prepared scripts ---------------------------------------------------------------------------------------


class QuestionCache:
    """Prepared questions by script, command, names to differentiate with respect to, and the shapes of the point.

    A script whose program depends on a value (a loop bound, an index) is prepared again for another value.
    """

    def __init__(self) -> None:
        self._questions: OrderedDict[Any, PreparedScript] = OrderedDict()
        self._sizes: dict[Any, int] = {}
        self._nodes = 0

    def answer(self, command: str, script: str, at: Mapping[str, Any], wrt: Sequence[str] | None) -> Any:
        """The result of a command at a point; raises GradcliError."""
        point = read_point(at)[0]
        question = self.question(command, script, point, wrt)
        return ASK[command](question, point)

    def question(
        self, command: str, script: str, point: Mapping[str, Any], wrt: Sequence[str] | None
    ) -> PreparedScript:
        """The prepared question, from the cache if it is there."""
        key = (
            command,
            script,
            None if wrt is None else tuple(wrt),
            tuple([(name, None if type(value) is float else _shape(value)) for name, value in point.items()]),
        )
        question = self._questions.get(key)
        if question is not None:
            statics = question.lowered.program.statics
            if not statics or all(point.get(name, value) == value for name, value in statics.items()):
                self._questions.move_to_end(key)
                return question
        question = MAKE[command](prepare(script, point, wrt))
        self._keep(key, question)
        return question

    def _keep(self, key: Any, question: PreparedScript) -> None:
        self._drop(key)
        self._questions[key] = question
        self._sizes[key] = size = question.size()
        self._nodes += size
        while self._questions and (len(self._questions) > MOST_SCRIPTS or self._nodes > MOST_NODES):
            self._drop(next(iter(self._questions)))

    def _drop(self, key: Any) -> None:
        if self._questions.pop(key, None) is not None:
            self._nodes -= self._sizes.pop(key)


def _shape(value: Any) -> Any:
    """The part of a value that determines the program: the lengths of its lists, and whether it is complex."""
    lengths = []
    while isinstance(value, list):
        lengths.append(len(value))
        if not value:
            break
        if any(isinstance(item, list) for item in value):
            inner = {len(item) if isinstance(item, list) else -1 for item in value}
            if len(inner) != 1:
                return ("ragged", *lengths)
        value = value[0]
    return (*lengths, type(value).__name__)
