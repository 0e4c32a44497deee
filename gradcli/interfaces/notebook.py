"""The magic of notebooks: `%load_ext gradcli`, then `%%grad` above a script or `%grad EXPRESSION --at x=2`.

A check that does not pass, and an error, fail their cell.
"""

from __future__ import annotations

import shlex
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.interfaces.options.declaration import Option

QUESTIONS = ("grad", "eval", "hessian", "jacobian", "trace", "graph", "plot", "derive", "check")
FREE = ("plot", "derive")  # these need no point: names of the notebook give them none
FUNCTIONS = {"eval": "evaluate", "graph": "draw"}  # of the package, where it has another name than the command
# of a function, by option
PARAMETERS = {
    "limit": "limits", "claim": "claims", "box": "ranges", "shape": "shapes", "allow": "lenient",
    "avoid_kinks": "dodge", "step_sizes": "steps",
}  # fmt: skip


class FailedCell(Exception):
    """What is wrong in a cell; a notebook shows the text alone."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def register(shell: Any) -> None:
    """Make `%grad` and `%%grad` known to a notebook."""

    def grad(line: str, cell: str | None = None) -> Any:
        """Value and gradient of a script; `%%grad hessian` and the like compute other results.

        The options are those of the command, such as --at, --wrt, --dtype, and for check --claim and --box.
        """
        try:
            result = answer(line, cell, shell.user_ns)
        except GradcliError as problem:
            raise FailedCell(str(problem)) from None
        if getattr(result, "ok", True):
            return result
        raise FailedCell(str(result))

    shell.register_magic_function(grad, "line_cell", "grad")


def answer(line: str, cell: str | None, names: Mapping[str, Any]) -> Any:
    """The result for a line and a cell; free names of the script have the values of the notebook's names.

    Raises GradcliError for a word or an option that means nothing (GC721), and as the question does.
    """
    try:
        words = shlex.split(line)
    except ValueError as wrong:
        raise error("GC721", f"cannot read the options: {wrong}".lower(), help="close the quotation marks") from None
    question = words.pop(0) if words and words[0] in QUESTIONS else "grad"
    if question == "check":
        function: Callable[..., Any] = import_module("gradcli.interfaces.checking").check_script
    else:
        function = getattr(import_module("gradcli"), FUNCTIONS.get(question, question))
    parameters = signature(function).parameters
    declared = {
        spelling: option
        for spelling, option in import_module("gradcli.interfaces.commands").declaration(question).spelled().items()
        if option.name in parameters or PARAMETERS.get(option.name) in parameters
    }
    expression, values = divided(words, question, declared)
    if cell is not None and expression:
        raise left_over(expression[0], declared, QUESTIONS)
    script = " ".join(expression) if cell is None else cell
    arguments = arguments_of(question, values)
    if "at" in parameters and (question not in FREE or "at" in values):
        point, _ = import_module("gradcli.lowering.points").read_point(values.get("at", ()))
        arguments["at"] = {**numbers_used(script, names), **point}
    return function(script, **arguments)


def divided(words: list[str], question: str, declared: Mapping[str, Option]) -> tuple[list[str], dict[str, Any]]:
    """The words of an expression, and the values of options by name; raises GC721 for what is neither."""
    expression: list[str] = []
    values: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("--") and f"-{name}" not in declared:
            if values and expression:
                raise left_over(word, declared, ())
            expression.append(word)
            continue
        if name not in declared:
            raise error("GC721", f"{question} has no option {visible(name, 40)}", help=meant(name, declared))
        option = declared[name]
        if option.kind == "flag" and not equals:
            values[option.name] = True
            continue
        text = value if equals else next(rest, None)
        known = None if text is None or option.kind == "flag" else option.plain(text)
        if known is None or (option.name in values and not option.many):
            once = "once, with " if option.name in values else ""
            raise error("GC721", f"cannot read {visible(word, 40)}", help=f"give it {once}{option.expected()}")
        values[option.name] = (*values.get(option.name, ()), known) if option.many else known
    return expression, values


def left_over(word: str, declared: Mapping[str, Option], questions: Sequence[str]) -> GradcliError:
    """The error for a word that is neither a question, an option nor a part of the expression."""
    guess = did_you_mean(word, questions)
    hint = f"did you mean {guess}?" if guess else meant(word.partition("=")[0], declared)
    if "=" in word and word.partition("=")[0].isidentifier():
        hint = "separate the values of a point by commas: --at x=2,y=3"
    return error("GC721", f"`{visible(word, 40)}` means nothing here", help=hint)


def meant(word: str, declared: Mapping[str, Option]) -> str:
    """Which option a word may stand for, in words."""
    name = f"--{word.lstrip('-')}"
    guess = name if name in declared else did_you_mean(name, declared)
    return f"did you mean {guess}?" if guess else f"options are {', '.join(sorted(declared))}"


def arguments_of(question: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a question's function, from the values of the options but for the point."""
    inputs = import_module("gradcli.interfaces.command_parts.check_inputs")
    arguments = {name: value for name, value in values.items() if name != "at"}
    if "wrt" in values:
        arguments["wrt"] = import_module("gradcli.interfaces.options.shared_options").names(values["wrt"])
    if "limit" in values:
        arguments["limits"] = ",".join(arguments.pop("limit"))
    if "shape" in values:
        arguments["shapes"] = import_module("gradcli.interfaces.commands.derive").shapes_of(arguments.pop("shape"))
    for name in ("avoid_kinks", "step_sizes"):
        if name in values:
            arguments[PARAMETERS[name]] = arguments.pop(name)
    if "allow" in values:
        allow = inputs.permitted(arguments.pop("allow"))
        arguments |= {"allow_kink": "kink" in allow, "lenient": "inconclusive" in allow}
    if "box" in values:
        arguments["box" if question == "check" else "ranges"] = inputs.boxes(arguments.pop("box"))
    if question == "check" and "claim" in values:
        arguments["claims"] = inputs.claims(arguments.pop("claim"))
    elif "claim" in values:
        leaf, arguments["claim"] = inputs.one_claim(values["claim"])
        arguments["wrt"] = [leaf]
    return arguments


def numbers_used(script: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and arrays of a notebook that the script uses, and gives no value itself."""
    tree = import_module("gradcli").parse(script)
    words = import_module("gradcli.language.syntax").names_in(tree)
    words -= {*import_module("gradcli.lowering.assigned_names").assigned_names(tree.statements)}
    return {name: value for name, value in names.items() if name in words and is_numeric(value)}


def is_numeric(value: object) -> bool:
    """Whether a value is a number, or an array of numbers."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("i", "u", "f", "c") or (isinstance(value, int | float | complex) and not isinstance(value, bool))
