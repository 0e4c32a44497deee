"""The entry point: reads the command line, runs the command and returns its exit code. Only this file exits.

Two readers share one declaration of each command. The direct reader handles plain `--long value` options on the
standard library alone; any other command line goes to the full reader, which is typer. The direct reader could be
deleted without changing one output: it exists because importing typer takes longer than a small calculation.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from _thread import start_new_thread
from codecs import register_error
from contextlib import contextmanager, suppress
from importlib import import_module
from time import sleep

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, shadowing, visible
from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options.direct_reader import ParsedCommand, Words, direct
from gradcli.interfaces.output import Output, colourful, discard, open_standard_streams, reason, write_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType
    from typing import Any

# what is loaded when it is needed, by name
ROOMS = {
    "diagnostics": "gradcli.rendering.diagnostic_text",
    "full": "gradcli.interfaces.options.typer_reader",
    "machine": "gradcli.rendering.machine",
    "package": "gradcli",
    "plugins": "gradcli.primitives.plugins",
    "prompt": "gradcli.interfaces.prompt",
    "settings": "gradcli.interfaces.options.settings",
    "text": "gradcli.rendering.safe_text",
}

FINE, USAGE, INTERNAL, BROKEN_PIPE, SIGNALLED = 0, 2, 4, 141, 128
ENVIRONMENT = frozenset({"GC692", "GC743", "GC999"})  # faults of the machine or of gradcli
ENDING = ("SIGINT", "SIGHUP", "SIGTERM")  # signals that end a command in order; its exit code is 128 + their number
LATER = 0.001  # seconds until a signal whose exception was lost is repeated
DEBUG = "GRADCLI_DEBUG"
# Graphs are many small objects without cycles. The collector looks at new objects once; a second look at all of a graph
# of a million nodes would take as long as its making.
COLLECTION = (100_000, 1_000, 100)


received: list[int] = []  # the signals of the command that runs: what they raise may be lost in an import or a callback


class Terminated(BaseException):
    """A signal other than Ctrl-C requested that the process end."""


def load(name: str) -> Any:
    """A room of ROOMS."""
    return import_module(ROOMS[name])


def entry() -> None:
    """The command `gradcli`."""
    try:
        code = main(sys.argv[1:])
    except (KeyboardInterrupt, Terminated) as stop:  # while signals begin or end to be handled
        code = stopped(stop)
    if sys.argv[1:2] not in (["run"], ["why"], ["graph"]):  # code of a user may leave files open in cycles
        gc.freeze()  # Python collects garbage several times while it ends: with all that is loaded, for 20 ms
    sys.exit(code)


def main(argv: Sequence[str]) -> int:
    """Run one command line; every outcome is an exit code, nothing escapes as a traceback."""
    gc.set_threshold(*COLLECTION)
    if argv[:1] not in (["run"], ["why"]):  # a training step needs them again at once
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # read when NumPy loads; idle BLAS threads do not spin
    register_error("gradcli", unencodable)
    with signals():
        try:
            open_standard_streams()
            for stream in (sys.stdout, sys.stderr):
                if hasattr(stream, "reconfigure"):
                    stream.reconfigure(errors="gradcli")
            code = guarded(argv) if argv else session()
            if not sys.stdout.closed:  # as a script that `run` runs may leave it
                sys.stdout.flush()
            return code
        except BrokenPipeError:  # the reader is gone: nothing more to say
            discard("stdout")
            return BROKEN_PIPE
        except OSError as problem:
            discard("stdout")
            where = f"{visible(str(problem.filename), 200)}: " if problem.filename else ""
            return complain(where + reason(problem), INTERNAL)
        except (KeyboardInterrupt, Terminated) as stop:  # while the last of the output is written
            discard("stdout")
            return stopped(stop)


def unencodable(problem: UnicodeError) -> tuple[str, int]:
    """What is written in place of characters that the encoding of a stream lacks, and where to go on."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    text: str = load("text").drawn_in_ascii(problem.object[problem.start : problem.end])
    return text, problem.end


def session() -> int:
    """The prompt on a terminal, the lines of standard input if there are any, else the help."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        return int(load("prompt").converse(guarded))
    typed = sys.stdin is None or sys.stdin.isatty()
    text = "" if typed else sys.stdin.buffer.read().decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return int(load("prompt").answered(guarded, text)) if text.strip() else guarded(())


@contextmanager
def signals() -> Iterator[None]:
    """A context in which the signals of ENDING end the command in order; one that is ignored (nohup) stays so."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if (handler := signal.getsignal(number)) != signal.SIG_IGN}
    hook = sys.unraisablehook

    def lost(problem: Any) -> None:
        """Repeat the signal whose exception was lost in a callback: a moment later, when the callback has ended."""
        if received and isinstance(problem.exc_value, (KeyboardInterrupt, Terminated)):
            start_new_thread(repeat, (received[-1],))
        else:
            hook(problem)

    try:
        received.clear()
        sys.unraisablehook = lost
        for number in handlers:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def repeat(number: int) -> None:
    """Send this process a signal after a moment."""
    sleep(LATER)
    os.kill(os.getpid(), number)


def end(number: int, frame: FrameType | None) -> None:
    """End the command in order; a second signal that is not Ctrl-C ends the process at once."""
    received.append(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_DFL)
    raise Terminated(number)


def guarded(argv: Sequence[str], action: Callable[[], int] | None = None) -> int:
    """Run one command line, or an action, and turn what goes wrong into messages; a failure of the system is raised.

    A command that received a signal never counts as answered, whatever became of the exception. A file that `run` runs
    has its own code: it may handle signals.
    """
    received.clear()
    try:
        code = run(argv) if action is None else action()
    except OSError:  # the environment, not the script
        raise
    except (KeyboardInterrupt, Terminated) as stop:
        return stopped(stop)
    except Exception as problem:
        return stopped() if received else explained(argv, problem)
    return stopped() if received and argv[:1] != ["run"] else code


def explained(argv: Sequence[str], problem: Exception) -> int:
    """Report what ended a command, and return its exit code."""
    if isinstance(problem, GradcliError):
        outside = any(note.code in ENVIRONMENT for note in problem.diagnostics)
        return refuse(argv, problem.diagnostics, INTERNAL if outside else USAGE)
    if isinstance(problem, MemoryError):
        hint = "use smaller arrays, or lower --limit nodes=..."
        return refuse(argv, (Diagnostic("GC506", "out of memory", help=hint),), INTERNAL)
    if (shadow := shadowing(problem)) is not None:
        return refuse(argv, (shadow,), USAGE)
    if os.environ.get(DEBUG):
        raise problem
    message = f"{type(problem).__name__}: {visible(str(problem), 300)}".rstrip(": ")
    hint = f"this is a fault in gradcli; {DEBUG}=1 shows where"
    return refuse(argv, (Diagnostic("GC999", message, help=hint),), INTERNAL)


def stopped(stop: BaseException | None = None) -> int:
    """The exit code of a command that was ended by a signal."""
    number = stop.args[0] if isinstance(stop, Terminated) else signal.SIGINT if stop else received[-1]
    return complain("interrupted" if number == signal.SIGINT else "terminated", SIGNALLED + number)


def run(argv: Sequence[str]) -> int:
    """Read the arguments, run the command."""
    call = direct(argv) or load("full").full(argv, colourful(option(argv, "--color"), sys.stdout))
    if call is None:  # typer has printed the help
        return FINE
    if call.command == "--version":
        sys.stdout.write(f"gradcli {load('package').__version__}\n")
        return FINE
    if call.command == "--show-settings":
        problems: list[Diagnostic] = []
        sys.stdout.write("\n".join(load("settings").setting_lines(current_folder(), os.environ, problems)) + "\n")
        if problems:
            raise GradcliError(*problems)
        return FINE
    return perform(call)


def perform(call: ParsedCommand) -> int:
    """Call the command's function with what was given, what is configured, and the defaults."""
    declared = declaration(call.command)
    declared.check(call.arguments)
    loaded = load("settings").load(call.command, declared, current_folder(), os.environ)
    files = loaded.files_to_import(call.arguments.get("import"))
    settings, notes = loaded.values, [*loaded.notes]
    if call.command == "check":
        notes += loaded.loosening(declared, call.arguments)
    values = {**declared.defaults(), **settings, **call.arguments}
    formats = declared.spelled()["--format"].choices
    shown = {**values, "limits": settings.get("limits"), "notes": notes}
    output = Output(shown, formats, call.arguments.keys(), declared.endings)
    try:
        output.note(*notes)
        for note in call.notes:
            output.say(f"note: {note}")
        if files and call.arguments.get("cluster"):
            raise error(
                "GC721", "--import does not reach the workers of a --cluster", help="install it as a package there"
            )
        for path in files:
            load("plugins").import_file(path)
        return declared.function(output, **declared.arguments(values))
    finally:
        output.close()


def current_folder() -> str:
    """The current folder; an error of the system that says so where it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError as problem:
        problem.strerror = "the current folder was removed; change to another one"
        raise


def refuse(argv: Sequence[str], diagnostics: Sequence[Diagnostic], code: int) -> int:
    """Report errors on standard error, and as an object on standard output for JSON."""
    write_error(load("diagnostics").render(diagnostics, colourful(option(argv, "--color"), sys.stderr)) + "\n")
    if option(argv, "--format") in ("json", "jsonl"):
        machine = load("machine")
        command = argv[0] if argv and not argv[0].startswith("-") else None
        sys.stdout.write(machine.text(machine.refusal(command, diagnostics)) + "\n")
    return code


def option(argv: Sequence[str], name: str) -> str | None:
    """The last value of an option on a command line that may not be readable as a whole."""
    words = argv
    if argv and argv[0] in COMMANDS:
        with suppress(GradcliError):
            words = Words(argv).options
    return next((word.partition("=")[2] for word in reversed(words) if word.startswith(f"{name}=")), None)


def complain(text: str, code: int) -> int:
    write_error(f"gradcli: {text}\n")
    return code
