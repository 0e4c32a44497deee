"""Questions about derivatives; an answer is judged like a hand-written claim."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.formula_values import CLOSE, entry_pairs
from gradcli.checks import check_script
from gradcli.checks.report import GOOD
from gradcli.language.source import Source
from gradcli.language.substitution import expression_of, replaced
from gradcli.language.syntax import Name, Number, names_in
from gradcli.language.unparse import unparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.base.results.calculations import Passes, Trace
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Syntax

CONSTANTS = {"pi", "e", "inf", "nan"}
SEED = 7


class Judgement(NamedTuple):
    """Whether an answer is right; None for one that cannot be read. The remarks say why not."""

    right: bool | None
    remarks: list[str]


class Question(NamedTuple):
    """A derivative to be found: that of `script` by `leaf`, at points of which `at` is the first.

    `operand` is shown in place of `leaf`; `answer` is the right answer, and `number` its value, if the question is
    about one point.
    """

    text: str
    script: Source
    leaf: str
    at: dict[str, Any]
    operand: str
    answer: str
    number: Any = None
    limits: Limits | None = None

    def judged(self, answer: str) -> Judgement:
        """Whether a typed formula, or at a point a number, is the derivative; if not, with a diagnosis."""
        try:
            claim = renamed(answer, self.operand, self.leaf)
            for name in sorted(names_in(expression_of(claim)) - {*self.at} - self.names() - CONSTANTS):
                return Judgement(None, [f"{name} is not a name of the script"])
            report = check_script(
                self.script, at=self.at, wrt=[], claims={self.leaf: claim}, limits=self.limits, seed=SEED
            )
        except (GradcliError, ValueError, AssertionError) as problem:
            reason = problem.diagnostics[0].message if isinstance(problem, GradcliError) else "it is not an expression"
            return Judgement(None, [reason])
        (check,) = [entry for entry in report.checks if entry.kind == "claim"]
        if check.verdict in GOOD:
            return Judgement(True, [])
        own = names_in(expression_of(claim))  # a formula in other names is judged at the point, a number as well
        if self.number is not None and not (own and own <= {*self.at} & self.names()) and self.has_the_number(claim):
            return Judgement(True, ["that is the number at this point"])
        readings = check.evidence.get("diagnosis") or ()
        remarks = [str(reading["text"]) for reading in readings]  # type: ignore[attr-defined]
        return Judgement(False, remarks or [check.message])

    def names(self) -> set[str]:
        """The names that the local script reads."""
        return names_in(expression_of(self.script.text))

    def has_the_number(self, claim: str) -> bool:
        """Whether an answer has the right value at the point of the question."""
        pairs = entry_pairs(claim, self.at, self.number, self.limits)
        return pairs is not None and all(abs(x - y) <= CLOSE * max(1.0, abs(y)) for x, y in pairs)


def renamed(text: str, part: str, name: str) -> str:
    """A formula with a name in place of a part."""
    if part == name:
        return text
    span = expression_of(part).span

    def change(node: Syntax) -> Syntax | None:
        known = isinstance(node, (Name, Number)) or unparse(node) != part
        return None if known else Name(name, span)

    return unparse(replaced(expression_of(text), change))


def partial_questions(trace: Trace) -> Iterator[Question]:
    """A question for each local partial of a trace that has a formula and is not a constant."""
    passes: Trace | Passes = trace if trace.written is None else trace.written
    forward = {step.index: step for step in passes.forward}
    values = {(step.text if not step.inputs else f"v{step.index}"): step.value for step in passes.forward}
    for step in passes.backward:
        receivers = [sent.to for sent in step.contributions]
        for sent in step.contributions:
            own, to = forward.get(step.index), forward.get(sent.to)
            if own is None or to is None or sent.partial is None or sent.summed or receivers.count(sent.to) > 1:
                continue
            operand = to.text
            leaf = operand if operand.isidentifier() else f"v{sent.to}"
            read = names_in(expression_of(sent.formula)) if sent.formula else set()
            script = renamed(own.text, operand, leaf)
            unknown = (read | names_in(expression_of(script))) - values.keys() - CONSTANTS
            if not operand.isidentifier() and len(unknown) == 1:
                (leaf,) = unknown  # the name that the script gave the operand
                script = renamed(own.text, operand, leaf)
            if not read or unknown - {leaf}:
                continue
            shown = f"{leaf} = {operand}" if leaf in read and leaf != operand else operand
            at = {name: value for name, value in {**values, leaf: to.value}.items() if name.isidentifier()}
            question = Question(
                f"What is the local partial of {own.text} with respect to {shown}?",
                Source(f"sum({script})" if getattr(sent.partial, "shape", ()) else script),
                leaf,
                at,
                operand,
                sent.formula,
                sent.partial,
            )
            if question.has_the_number(sent.formula):  # the name was that of the operand
                yield question
