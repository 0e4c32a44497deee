"""Arguments in, a command run and an exit code out. Only this file exits; `output` writes.

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
from gradcli.diagnostics import Diagnostic, GradcliError, visible
from gradcli.output import Output, colourful, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

# what is loaded when it is needed, by name
ROOMS = {
    "diagnostics": "gradcli.rendering.diagnostics",
    "full": "gradcli.commands._full",
    "machine": "gradcli.rendering.machine",
    "package": "gradcli",
    "settings": "gradcli.commands._settings",
}

FINE, USAGE, INTERNAL, INTERRUPTED, BROKEN_PIPE, TERMINATED = 0, 2, 4, 130, 141, 143
DEBUG = "GRADCLI_DEBUG"
# Graphs are many small objects without cycles. The collector looks at new objects once; a second look at all of a graph
# of a million nodes would take as long as its making.
COLLECTION = (100_000, 1_000, 100)


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
    gc.set_threshold(*COLLECTION)
    if argv[:1] not in (["run"], ["why"]):  # a training step needs them again at once
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
    formats = declared.spelled()["--format"].choices
    output = Output({**values, "limits": settings.get("limits")}, formats, "format" in call.given)
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
