"""The prompt: `gradcli` on a terminal without arguments. Commands are those of the command line, after a colon.

Names, functions and `ans` are kept as lines of a script, which stands before every expression that is typed. Editing,
history and completion are readline's, where Python has it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from importlib import import_module

from gradcli.diagnostics import Diagnostic, GradcliError, did_you_mean, visible
from gradcli.output import colourful, write_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Run = Callable[[Sequence[str]], int]

# what is loaded when it is needed, by name
ROOMS = {
    "calculator": "gradcli.calculator",
    "diagnostics": "gradcli.rendering.diagnostics",
    "parser": "gradcli.language.parser",
    "package": "gradcli",
    "primitives": "gradcli.primitives",
    "source": "gradcli.language.source",
    "values": "gradcli.rendering.values",
}
COMMANDS = {
    "grad": "value and gradient",
    "check": 'judge the gradient; --claim "x = 2*x" judges yours',
    "derive": "the gradient as a formula",
    "trace": "both passes, step by step",
    "graph": "the graph as a tree; --output graph.html draws it",
    "plot": "the function with its gradient",
    "hessian": "second derivatives",
    "jacobian": "all partial derivatives of an array",
    "eval": "the value",
    "ops": "the operations of the language",
    "explain": "what an error code means",
}
OWN = {"names": "what is defined", "forget": "forget all names", "help": "this list", "quit": "leave; so does Ctrl-D"}
BRACKETS = {"(": ")", "[": "]", "{": "}"}
MOST_ENTRIES = 1000  # of an array that `ans` holds
MOST_HISTORY = 1000
NO_VALUE = "GC202"  # of a free name
PROMPT, MORE = ">>> ", "... "


def load(name: str) -> Any:
    """A room of ROOMS."""
    return import_module(ROOMS[name])


class Prompt:
    """What was defined, and what is done with a line. `run` runs a command line and reports its errors itself."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.lines: list[tuple[str, set[str]]] = []  # statements that were typed, with the names that they define
        self.names: dict[str, None] = {}
        self.last = ""  # the expression that a command without one is about
        self.ans: str | None = None

    # --- a line ----------------------------------------------------------------------------------------------------

    def answer(self, text: str) -> bool:
        """Do what a line says; False where it says to leave."""
        line = text.strip()
        if not line:
            return True
        word = line.removesuffix("()")
        if word in ("quit", "exit", "help") and word not in self.names:
            line = f":{word}"
        if line.startswith(":"):
            return self.command(line[1:])
        try:
            script = load("parser").parse(load("source").Source(text))
        except GradcliError as problem:
            self.report(problem.diagnostics)
            return True
        last = script.statements[-1]
        formula = len(script.statements) > 1 and last.span == script.statements[-2].span  # f(x) = ..., which is kept
        if type(last).__name__ == "ExpressionStatement" and not formula:
            self.evaluate(text)
        else:
            self.define(text, script)
        return True

    def define(self, text: str, script: Any) -> None:
        """Keep statements, if the script with them can be read; a function takes the place of one of its name."""
        names: set[str] = set()
        functions = {
            function.name.id
            for function in script.statements
            if getattr(function, "params", None) and not function.rule
        }
        for statement in script.statements:
            for target in (
                *getattr(statement, "targets", ()),
                getattr(statement, "target", None),
                getattr(statement, "name", None),
            ):
                if getattr(target, "id", None):
                    names.add(target.id)
        before = self.lines
        places = [place for place, (_, known) in enumerate(before) if known and known <= functions]
        place = places[0] if places else len(before)
        self.lines = [line for at, line in enumerate(before) if at not in places]
        try:
            load("calculator").evaluate(self.script(f"{text.rstrip()}\n0"))
        except GradcliError as problem:
            wrong = [note for note in problem.diagnostics if note.code != NO_VALUE]
            if wrong:
                self.lines = before
                self.report(wrong)
                return
        self.lines.insert(place, (text.rstrip(), names))
        self.names.update(dict.fromkeys(names))

    def evaluate(self, text: str) -> None:
        """Show the value of an expression, and keep it as `ans`; with free names its gradient is shown as a formula."""
        if self.ans is None and "ans" not in self.names and re.search(r"\bans\b", text):
            self.complain("`ans` has no value yet", "it is the value of the last expression that had one")
            return
        self.last = text
        script = self.script(text)
        try:
            result = load("calculator").evaluate(script)
        except GradcliError as problem:
            if all(note.code == NO_VALUE for note in problem.diagnostics):
                self.run(["derive", script])
            else:
                self.report(problem.diagnostics)
            return
        value = result.value
        sys.stdout.write(load("values").inline(value, None, 40) + "\n")
        self.report(result.diagnostics)
        whole = load("values").inline(value, None, MOST_ENTRIES)
        self.ans = whole if not isinstance(value, tuple) and "j" not in whole and "array" not in whole else None

    def script(self, text: str) -> str:
        """A script of an expression with what was defined of the names that it reads, and with claims."""
        lines = [text]
        for line, names in reversed(self.lines):
            if not names or not names.isdisjoint(re.findall(r"[^\W\d]\w*", "\n".join(lines))):
                lines.insert(0, line)
        if self.ans is not None and re.search(r"\bans\b", "\n".join(lines)):
            lines.insert(0, f"const ans = {self.ans}")
        return "\n".join(lines)

    def command(self, text: str) -> bool:
        """`:grad x**2 --at x=3`: a command of gradcli about an expression, without one about the last."""
        name, _, rest = text.partition(" ")
        if name in ("quit", "q", "exit"):
            return False
        if name == "help":
            self.help()
        elif name == "names":
            known = "\n".join([*[text for text, _ in self.lines], *([f"ans = {self.ans}"] if self.ans else [])])
            sys.stdout.write("".join([f"{visible(line)}\n" for line in known.splitlines()]))
        elif name == "forget":
            self.lines, self.names, self.ans = [], {}, None
        elif name in COMMANDS:
            expression, options = divided(rest)
            if name in ("ops", "explain"):
                self.run([name, *expression.split(), *options])
            elif expression or self.last:
                self.last = expression or self.last
                self.run([name, self.script(self.last), *options])
            else:
                self.complain(f":{name} needs an expression", f":{name} x**2 --at x=3")
        else:
            near = did_you_mean(name, [*COMMANDS, *OWN])
            hint = f"did you mean :{near}?" if near else ":help lists the commands"
            self.complain(f"unknown command :{visible(name, 40)}", hint)
        return True

    def help(self) -> None:
        """The commands, and what else may be typed."""
        width = max(map(len, (*COMMANDS, *OWN))) + 1
        lines = [
            "x**2 + sin(y)        its value, or with free names its gradient as a formula",
            "x = 3                a name with a value; def f(x): ... defines a function",
            "ans                  the last value",
            "",
            *(f":{name:{width}} {summary}" for name, summary in {**COMMANDS, **OWN}.items()),
            "",
            "A command without an expression is about the last one. Options are those of the command line.",
        ]
        sys.stdout.write("\n".join(lines) + "\n")

    # --- reports ---------------------------------------------------------------------------------------------------

    def report(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Show diagnostics as the command line does."""
        if diagnostics:
            write_error(load("diagnostics").render(diagnostics, colourful("auto", sys.stderr)) + "\n")

    def complain(self, message: str, help: str) -> None:
        """Show what is wrong with a command."""
        self.report((Diagnostic("GC721", message, help=help),))


def divided(text: str) -> tuple[str, list[str]]:
    """An expression and the options behind it.

    >>> divided("x**2 --at x=3 --format json")
    ('x**2', ['--at', 'x=3', '--format', 'json'])
    """
    at = 0 if text.startswith("--") else text.find(" --")
    while at > 0 and not text[at + 3 : at + 4].isalpha():
        at = text.find(" --", at + 1)
    if at < 0:
        return text.strip(), []
    try:
        return text[:at].strip(), shlex.split(text[at:])
    except ValueError:  # a quote that is not closed
        return text[:at].strip(), text[at:].split()


def unfinished(text: str) -> bool:
    """Whether another line is to follow: brackets are open, or a block has begun that no blank line ends.

    >>> unfinished("sum([1,"), unfinished("def f(x):"), unfinished("def f(x):\\n  return x\\n"), unfinished("x + 1")
    (True, True, False, False)
    """
    closing: list[str] = []
    for character in text:
        if character in BRACKETS:
            closing.append(BRACKETS[character])
        elif closing and character == closing[-1]:
            closing.pop()
    if closing or text.endswith("\\"):
        return True
    lines = text.split("\n")
    return any(line.rstrip().endswith(":") for line in lines) and (len(lines) == 1 or bool(lines[-1].strip()))


# --- the terminal ----------------------------------------------------------------------------------------------------


def read(ask: Callable[[str], str]) -> str:
    """What is typed until it is complete."""
    text = ask(PROMPT)
    while unfinished(text):
        text += "\n" + ask(MORE)
    return text.rstrip("\n")


def completions(prompt: Prompt, line: str, word: str) -> list[str]:
    """What a word may become: a command after a colon, else a name or a function."""
    if line.lstrip().startswith(":") and " " not in line.lstrip():
        return [f":{name} " for name in (*COMMANDS, *OWN) if f":{name}".startswith(line.strip())]
    known = [*prompt.names, "ans", *(f"{name}(" for name in load("primitives").catalogue())]
    return sorted({name for name in known if name.startswith(word)}) if word else []


def edited(prompt: Prompt) -> Callable[[], None] | None:
    """Give `input` history and completion; what saves the history at the end. None where there is no readline."""
    try:
        import readline
    except ImportError:  # Windows, or a Python that was built without it
        return None
    matches: list[str] = []

    def complete(word: str, turn: int) -> str | None:
        if not turn:
            matches[:] = completions(prompt, readline.get_line_buffer(), word)
        return matches[turn] if turn < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n+-*/@%(),=<>[]{}|&~^;")
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    readline.set_history_length(MOST_HISTORY)
    path = history_path()
    try:
        readline.read_history_file(path)
    except OSError:  # the first time there is none
        readline.clear_history()

    def save() -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            readline.write_history_file(path)
        except OSError as problem:
            write_error(f"note: the history was not saved: {problem.strerror}\n")

    return save


def history_path() -> str:
    """Where the lines that were typed are kept."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "gradcli", "history")


def converse(run: Run, ask: Callable[[str], str] = input) -> int:
    """Read lines and answer them until the end of input or `:quit`."""
    prompt = Prompt(run)
    save = edited(prompt)
    sys.stdout.write(
        f"gradcli {load('package').__version__}: expressions and their gradients. :help shows how, Ctrl-D leaves.\n"
    )
    try:
        while True:
            try:
                if not prompt.answer(read(ask)):
                    return 0
            except KeyboardInterrupt:  # the line, or what it computes, is given up
                sys.stdout.write("\n")
            except EOFError:
                sys.stdout.write("\n")
                return 0
    finally:
        if save is not None:
            save()
