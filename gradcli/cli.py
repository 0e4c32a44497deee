"""Arguments in, a command run and an exit code out. Only this file exits, prints and makes a Console.

Two readers share one declaration of each command. The direct reader knows only the plain spelling and
needs nothing but the standard library; whatever else stands on the line goes to the full reader, which is
typer. The direct reader could be deleted without changing one output: it exists because importing typer
takes longer than a small calculation.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module

from gradcli.commands import declaration
from gradcli.commands._direct import Call, direct
from gradcli.diagnostics import Diagnostic, GradcliError, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType
    from typing import IO, Any, BinaryIO

    from gradcli.commands._views import View

# what is loaded when it is needed, by name
ROOMS = {
    "diagnostics": "gradcli.rendering.diagnostics",
    "document": "gradcli.rendering.document",
    "full": "gradcli.commands._full",
    "machine": "gradcli.rendering.machine",
    "package": "gradcli",
    "plain": "gradcli.rendering.plain",
    "settings": "gradcli.commands._settings",
    "tables": "gradcli.rendering.tables",
    "tabular": "gradcli.rendering.tabular",
}

FINE, USAGE, INTERNAL, INTERRUPTED, BROKEN_PIPE, TERMINATED = 0, 2, 4, 130, 141, 143
SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".md": "markdown", ".tex": "latex"}
LISTED = 40  # entries of an array that a table lists
UNLIMITED = 100_000  # the width of a table that no terminal shows
DEBUG = "GRADCLI_DEBUG"


class Terminated(BaseException):
    """The process was asked to end."""


def load(name: str) -> Any:
    """A room of ROOMS."""
    return import_module(ROOMS[name])


def entry() -> None:
    """The command `gradcli`."""
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command line; every outcome is an exit code, nothing escapes as a traceback."""
    gc.set_threshold(100_000, 50, 100)  # graphs are many small objects and few cycles: building them costs half
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # read when NumPy loads; idle BLAS threads do not spin
    signal.signal(signal.SIGTERM, terminate)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = guarded(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader is gone: nothing more to say
        silence()
        return BROKEN_PIPE
    except OSError as problem:
        silence()
        where = f"{visible(str(problem.filename), 200)}: " if problem.filename else ""
        return complain(where + reason(problem), INTERNAL)


def guarded(argv: Sequence[str]) -> int:
    """Run one command line and turn what goes wrong into messages; a failure of the system is raised."""
    try:
        return run(argv)
    except OSError:  # the environment, not the script
        raise
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except Terminated:
        return complain("terminated", TERMINATED)
    except GradcliError as refusal:
        return refuse(argv, refusal.diagnostics, USAGE)
    except MemoryError:
        return refuse(
            argv,
            (Diagnostic("GC506", "out of memory", help="use smaller arrays, or lower --limit nodes=..."),),
            INTERNAL,
        )
    except Exception as problem:
        if os.environ.get(DEBUG):
            raise
        told = f"{type(problem).__name__}: {visible(str(problem), 300)}".rstrip(": ")
        hint = f"this is a fault in gradcli; {DEBUG}=1 shows where"
        return refuse(argv, (Diagnostic("GC999", told, help=hint),), INTERNAL)


def silence() -> None:
    """Send what is left of standard output nowhere, so that the interpreter does not complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def run(argv: Sequence[str]) -> int:
    """Read the arguments, run the command."""
    call = direct(argv) or load("full").full(argv)
    if call is None:  # typer has printed the help
        return FINE
    if call.command == "--version":
        sys.stdout.write(f"gradcli {load('package').__version__}\n")
        return FINE
    if call.command == "--show-settings":
        sys.stdout.write("\n".join(load("settings").shown(os.getcwd(), os.environ)) + "\n")
        return FINE
    return perform(call)


def perform(call: Call) -> int:
    """Call the command's function with what was given, what is configured, and the defaults."""
    declared = declaration(call.command)
    settings = load("settings").load(call.command, declared, os.getcwd(), os.environ).values
    values = {**declared.defaults(), **settings, **call.given}
    output = Output({**values, "limits": settings.get("limits")}, "format" in call.given)
    try:
        return declared.function(output, **{name: values[name] for name in declared.taken()})
    finally:
        output.close()


def refuse(argv: Sequence[str], diagnostics: Sequence[Diagnostic], code: int) -> int:
    """Report errors on standard error, and as an object on standard output where JSON was asked for."""
    sys.stderr.write(load("diagnostics").render(diagnostics, colourful(option(argv, "--color"), sys.stderr)) + "\n")
    if option(argv, "--format", "-f") in ("json", "jsonl"):
        machine = load("machine")
        command = argv[0] if argv and not argv[0].startswith("-") else None
        sys.stdout.write(machine.text(machine.refusal(command, diagnostics)) + "\n")
    return code


def option(argv: Sequence[str], *spellings: str) -> str | None:
    """The last value of an option on a command line that may not be readable as a whole."""
    found = None
    for token, after in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, value = token.partition("=")
        if name in spellings:
            found = value if equals else after
    return found


def complain(text: str, code: int) -> int:
    sys.stderr.write(f"gradcli: {text}\n")
    return code


def colourful(choice: str | None, stream: IO[str]) -> bool:
    """Whether a stream gets colours: --color decides, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    if choice in ("always", "never"):
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced is not None:
        return forced.lower() not in ("", "0", "false", "no")
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Output:
    """Where a command's results go, in the chosen format; `commands/_shared.py` says what it offers."""

    def __init__(self, settings: Mapping[str, Any], explicit: bool) -> None:
        self.settings = settings
        self.path: str | None = settings["output"]
        self.file: IO[str] | None = None
        self.drawn = False
        terminal = self.path is None and sys.stdout.isatty()
        self.format: str = settings["format"] or ("table" if terminal else "plain")
        if self.path is not None and not explicit:
            self.format = SUFFIXES.get(os.path.splitext(self.path)[1], self.format)
        self.terminal = terminal

    def emit(self, view: View) -> None:
        """Render a result on standard output or into the file, and its diagnostics on standard error."""
        if self.format == "table":
            self.tables(view)
        else:
            self.line(self.rendered(view))
        self.note(*view.diagnostics)

    def rendered(self, view: View) -> str:
        """The text of a result in a format that needs no Console."""
        if self.format == "json":
            return str(load("machine").text(view.payload()))
        if self.format == "jsonl":
            return "\n".join(map(load("machine").text, view.lines()))
        if self.format == "csv":
            return str(load("tabular").csv(view.tidy()))
        document = view.document(load("document").Style(digits=self.settings["digits"]))
        if self.format == "plain":
            return str(load("plain").render(document))
        return str(getattr(load("tabular"), self.format)(document))

    def tables(self, view: View) -> None:
        """Rich tables; off a terminal they are as wide as they like."""
        colour = self.path is None and colourful(self.settings["color"], sys.stdout)
        cells = width() if self.terminal else UNLIMITED
        console = import_module("rich.console").Console(
            file=self.sink(),
            width=cells,
            color_system="standard" if colour else None,
            force_terminal=colour,
            no_color=not colour,
            markup=False,
            highlight=False,
            emoji=False,
        )
        document = view.document(load("document").Style(self.settings["digits"], LISTED, cells))
        console.print()
        for part in load("tables").render(document, cells):
            console.print(part)
        console.print()

    def line(self, text: str) -> None:
        """Write one line at once."""
        sink = self.sink()
        sink.write(text + "\n")
        sink.flush()

    def sink(self) -> IO[str]:
        """Standard output, or the file of --output, opened at the first use."""
        if self.path is None:
            return sys.stdout
        if self.file is None:
            self.file = opened(self.path)
        return self.file

    def close(self) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
        if self.file is not None:
            self.file.close()

    def say(self, text: str) -> None:
        """One line on standard error."""
        sys.stdout.flush()
        sys.stderr.write(text + "\n")

    def note(self, *diagnostics: Diagnostic) -> None:
        """Diagnostics on standard error."""
        if diagnostics:
            self.say(load("diagnostics").render(diagnostics, colourful(self.settings["color"], sys.stderr)))

    def progress(self, done: int, total: int, label: str = "") -> None:
        """A bar on standard error, if that is a terminal."""
        if sys.stderr.isatty():
            self.drawn = done < total
            filled = 20 * done // max(total, 1)
            bar = f"\r[{'#' * filled}{'.' * (20 - filled)}] {done}/{total} {visible(label, 40)}\x1b[K"
            sys.stderr.write(bar if self.drawn else "\r\x1b[K")
            sys.stderr.flush()

    def save(self, path: str, text: str) -> None:
        """Write a report file."""
        with opened(path) as file:
            file.write(text if text.endswith("\n") else text + "\n")

    def read(self, most: int) -> bytes:
        """Standard input, but no more than so many bytes."""
        return standard_input().read(most)

    def lines(self, path: str) -> Iterator[str]:
        """The lines of a file or of standard input as they come; what is not UTF-8 is a lone surrogate."""
        try:
            stream = standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115
        except OSError as problem:
            raise error("GC601", f"cannot read {visible(path, 200)}: {reason(problem)}") from None
        with stream:
            for number, line in enumerate(stream):
                text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
                yield text if number else text.removeprefix("\ufeff")


def standard_input() -> BinaryIO:
    """Standard input as bytes; GC601 where it is closed."""
    if sys.stdin is None:
        raise error("GC601", "cannot read standard input: it is closed")
    return sys.stdin.buffer


def opened(path: str) -> IO[str]:
    """A file for writing; GC690 where that is not possible."""
    try:
        return open(path, "w", encoding="utf-8", newline="\n")
    except OSError as problem:
        raise error("GC690", f"cannot write {visible(path, 200)}: {reason(problem)}") from None


def reason(problem: OSError) -> str:
    return (problem.strerror or str(problem)).lower()


def width() -> int:
    """The width of the terminal in cells: COLUMNS if set, else what the terminal says."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80
