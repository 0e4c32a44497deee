"""The prompt: `gradcli` on a terminal without arguments; `gradcli < FILE` answers the lines of a file.

Commands are those of the command line, with a colon or without one where no name of the session is meant. Names,
functions and `ans` are kept as lines of a script, which stands before every expression that is typed. Editing, history
and completion are readline's, where Python has it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress
from importlib import import_module

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.interfaces.output import colourful, write_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Run = Callable[..., int]  # of a command line, or of an action as its second argument; returns an exit code

# what is loaded when it is needed, by name
ROOMS = {
    "calculator": "gradcli.calculator",
    "diagnostics": "gradcli.rendering.diagnostic_text",
    "parser": "gradcli.language.parser",
    "package": "gradcli",
    "primitives": "gradcli.primitives",
    "source": "gradcli.language.source",
    "values": "gradcli.rendering.value_text",
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
    "explain": "what an error code or a verdict means",
}
OWN = {"names": "what is defined", "forget": "forget all names", "help": "this list", "quit": "leave; so does Ctrl-D"}
BRACKETS = {"(": ")", "[": "]", "{": "}"}
MOST_ENTRIES = 1000  # of an array that `ans` holds
MOST_HISTORY = 1000
NO_VALUE = "GC202"  # of a free name
PROMPT, MORE = ">>> ", "... "
WORD = re.compile(
    r"([a-z]+)(?:\(\)$|$|[ \t]+(?!=|[-+*/^%@<>,;)\]](?![-\w.(])))"
)  # a command, and no part of an expression
SIGNALLED = 128  # exit codes from here on are those of signals


def load(name: str) -> Any:
    """A room of ROOMS."""
    return import_module(ROOMS[name])


class Prompt:
    """What was defined, and what is done with a line. `run` reports errors itself; `code` is the first one but 0."""

    def __init__(self, run: Run) -> None:
        self.runs = run
        self.code = 0
        self.following: list[str] = []  # the command line that answers what was typed
        self.lines: list[tuple[str, set[str]]] = []  # statements that were typed, with the names that they define
        self.names: dict[str, None] = {}
        self.last = ""  # the expression that a command without one is about
        self.ans: str | None = None

    # --- a line ----------------------------------------------------------------------------------------------------

    def answer(self, text: str) -> bool:
        """Do what a line says; False where it says to leave."""
        line = text.strip()
        if not line or line.startswith("#"):
            return True
        word = WORD.match(line)
        if word is not None and word[1] not in self.names and word[1] in (*COMMANDS, *OWN, "exit"):
            line = f":{line.removesuffix('()')}"
        if line.startswith(":"):
            return self.command(line[1:])
        self.run(lambda: self.statement(text))
        return True

    def run(self, action: Callable[[], int]) -> None:
        """Run an action, and the command line that it leaves; keep the first exit code that is not 0."""
        code = self.runs([], action)
        if self.following and not code:
            code = self.runs(self.following)
        self.code, self.following = self.code or code, []

    def statement(self, text: str) -> int:
        """Evaluate an expression or keep statements; returns an exit code."""
        script = load("parser").parse(load("source").Source(text))
        last = script.statements[-1]
        formula = len(script.statements) > 1 and last.span == script.statements[-2].span  # f(x) = ..., which is kept
        if type(last).__name__ == "ExpressionStatement" and not formula:
            self.evaluate(text)
        else:
            self.define(text, script)
        return 0

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
                raise GradcliError(*wrong) from None
        self.lines.insert(place, (text.rstrip(), names))
        self.names.update(dict.fromkeys(names))

    def evaluate(self, text: str) -> None:
        """Show the value of an expression, and keep it as `ans`; with free names its gradient is shown as a formula."""
        if self.ans is None and "ans" not in self.names and re.search(r"\bans\b", text):
            raise error("GC721", "`ans` has no value yet", help="it is the value of the last expression that had one")
        self.last = text
        script = self.script(text)
        try:
            result = load("calculator").evaluate(script)
        except GradcliError as problem:
            if any(note.code != NO_VALUE for note in problem.diagnostics):
                raise
            self.following = ["derive", "-e", script]
            return
        value = result.value
        sys.stdout.write(load("values").inline(value, None, 40) + "\n")
        if result.diagnostics:
            write_error(load("diagnostics").render(result.diagnostics, colourful("auto", sys.stderr)) + "\n")
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
        name, rest = (*text.split(None, 1), "", "")[:2]
        if name in ("quit", "q", "exit"):
            return False
        if name == "help" and rest not in COMMANDS:
            self.help()
        elif name == "names":
            known = "\n".join([*[text for text, _ in self.lines], *([f"ans = {self.ans}"] if self.ans else [])])
            sys.stdout.write("".join([f"{visible(line)}\n" for line in known.splitlines()]))
        elif name == "forget":
            self.lines, self.names, self.ans = [], {}, None
        else:
            self.run(lambda: self.named(name, rest))
        return True

    def named(self, name: str, rest: str) -> int:
        """Leave the command line of a command of gradcli."""
        if name == "help":
            self.following = [rest, "--help"]
            return 0
        if name not in COMMANDS:
            near = did_you_mean(name, [*COMMANDS, *OWN])
            hint = f"did you mean :{near}?" if near else ":help lists the commands"
            raise error("GC721", f"unknown command :{visible(name, 40)}", help=hint)
        expression, options = divided(rest)
        self.last = self.last if name in ("ops", "explain") else expression or self.last
        if name in ("ops", "explain"):
            self.following = [name, *expression.split(), *options]
        elif not self.last:
            raise error("GC721", f":{name} needs an expression", help=f":{name} x**2 --at x=3")
        elif os.path.splitext(self.last)[1] in (".grad", ".py") and os.path.exists(self.last):
            self.following = [name, self.last, *options]
        else:
            self.following = [name, "-e", self.script(self.last), *options]
        return 0

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
            "The colon may be left out where the word is no name of yours.",
        ]
        sys.stdout.write("\n".join(lines) + "\n")


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
    """What is typed until it is complete, or until the end of the input."""
    text = ask(PROMPT)
    with suppress(EOFError):
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


def answered(run: Run, text: str) -> int:
    """Answer the lines of a text; returns the first exit code that is not 0."""
    prompt, lines = Prompt(run), iter(text.splitlines())

    def ask(_: str) -> str:
        line = next(lines, None)
        if line is None:
            raise EOFError
        return line.removeprefix(PROMPT)

    with suppress(EOFError):
        while prompt.code < SIGNALLED and prompt.answer(read(ask)):
            pass
    return prompt.code
