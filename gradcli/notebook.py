"""The magic of notebooks: `%load_ext gradcli`, then `%%grad` above a script or `%grad EXPRESSION --at x=2`."""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import GradcliError, error, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

QUESTIONS = ("grad", "eval", "hessian", "jacobian", "trace", "graph", "plot", "derive", "check")
FREE = ("plot", "derive", "check")  # these need no point: names of the notebook give them none
OPTIONS = ("--at", "--wrt", "--claim", "--box")
JUDGED = ("plot", "check")  # these take claims and boxes


def register(shell: Any) -> None:
    """Make `%grad` and `%%grad` known to a notebook."""

    def grad(line: str, cell: str | None = None) -> Any:
        """Value and gradient of a script; `%%grad hessian` and the like compute other results. Options: --at, --wrt,
        and for check and plot --claim and --box."""
        try:
            return answer(line, cell, shell.user_ns)
        except GradcliError as problem:
            sys.stderr.write(f"{problem}\n")
            return None

    shell.register_magic_function(grad, "line_cell", "grad")


def answer(line: str, cell: str | None, names: Mapping[str, Any]) -> Any:
    """The result for a line and a cell; free names of the script have the values of the notebook's names.

    Raises GradcliError for an option that there is not (GC721), and as the question does.
    """
    words, options = divided(line)
    question = words.pop(0) if words and words[0] in QUESTIONS else "grad"
    script = " ".join(words) if cell is None else cell
    package = import_module("gradcli")
    arguments: dict[str, Any] = {}
    if "--wrt" in options:
        arguments["wrt"] = [name.strip() for name in ",".join(options["--wrt"]).split(",")]
    if question not in FREE or "--at" in options:
        point, _ = import_module("gradcli.points").read_point(options.get("--at", ()))
        arguments["at"] = {**numbers_used(script, names), **point}
    arguments |= judged(question, options)
    return getattr(package, "evaluate" if question == "eval" else question)(script, **arguments)


def judged(question: str, options: Mapping[str, list[str]]) -> dict[str, Any]:
    """The claims and boxes for `check` and `plot`; of a plot one claim, which names the leaf."""
    named = [name for name in ("--claim", "--box") if name in options]
    if named and question not in JUDGED:
        raise error("GC721", f"{question} has no option {named[0]}", help=f"{' and '.join(JUDGED)} have it")
    inputs = import_module("gradcli.commands._check_inputs")
    arguments: dict[str, Any] = {}
    if "--box" in options:
        arguments["box" if question == "check" else "ranges"] = inputs.boxes(tuple(options["--box"]))
    if "--claim" in options:
        claims = inputs.claims(tuple(options["--claim"]))
        leaf, claim = next(iter(claims.items()))
        arguments |= {"claims": claims} if question == "check" else {"wrt": [leaf], "claim": claim}
    return arguments


def divided(line: str) -> tuple[list[str], dict[str, list[str]]]:
    """The words of a line, and the values of its options.

    >>> divided("hessian x*y --at x=2 --at y=3")
    (['hessian', 'x*y'], {'--at': ['x=2', 'y=3']})
    """
    words: list[str] = []
    options: dict[str, list[str]] = {}
    rest = iter(shlex.split(line))
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            words.append(word)
        elif name in OPTIONS:
            options.setdefault(name, []).append(value if equals else next(rest, ""))
        else:
            raise error("GC721", f"unknown option {visible(name, 40)}", help=f"options are {', '.join(OPTIONS)}")
    return words, options


def numbers_used(script: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and arrays of a notebook that the script uses."""
    words = import_module("gradcli.language.syntax").names_in(import_module("gradcli").parse(script))
    return {name: value for name, value in names.items() if name in words and is_numeric(value)}


def is_numeric(value: object) -> bool:
    """Whether a value is a number, or an array of numbers."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("i", "u", "f", "c") or (isinstance(value, int | float | complex) and not isinstance(value, bool))
