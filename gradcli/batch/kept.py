"""Scripts with their shapes go in, prepared questions come out, kept for the next point; the oldest are dropped."""

from __future__ import annotations

from collections import OrderedDict

from gradcli.calculator.answers import ask_gradient, ask_hessian, ask_value
from gradcli.calculator.questions import gradient_question, hessian_question, prepare, value_question
from gradcli.points import read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.calculator.prepared import Question
    from gradcli.lowering import Lowered

MOST_SCRIPTS = 512
MOST_NODES = 400_000  # over all kept scripts

MAKE: dict[str, Callable[[Lowered], Question]] = {
    "eval": value_question,
    "grad": gradient_question,
    "hessian": hessian_question,
}
ASK: dict[str, Callable[..., Any]] = {"eval": ask_value, "grad": ask_gradient, "hessian": ask_hessian}


class Kept:
    """Prepared questions by script, command, names to differentiate by, and the shapes of the point.

    A script whose shape hangs on a value (a loop bound, an index) is prepared again where that value differs.
    """

    def __init__(self) -> None:
        self._questions: OrderedDict[Any, Question] = OrderedDict()
        self._sizes: dict[Any, int] = {}
        self._nodes = 0

    def answer(self, command: str, script: str, at: Mapping[str, Any], wrt: Sequence[str] | None) -> Any:
        """The result of a command at a point; raises GradcliError."""
        point = read_point(at)[0]
        question = self.question(command, script, point, wrt)
        return ASK[command](question, point)

    def question(self, command: str, script: str, point: Mapping[str, Any], wrt: Sequence[str] | None) -> Question:
        """The prepared question, made or found."""
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

    def _keep(self, key: Any, question: Question) -> None:
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
    """What of a value decides the shape of a program: the lengths of its lists, and whether it is complex."""
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
