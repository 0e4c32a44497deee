"""Runs a Python file as `python FILE` would run it.

It is a real `__main__`, with its folder first on the path. An exception ends in a traceback that shows the file's own
frames only, and in Python's exit code.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import error, visible
from gradcli.recording.runs.source_lines import PACKAGE, filename_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from gradcli.recording.runs.run_record import Watch


DISPATCHED = "handle_torch_function"
DEBUG = "GRADCLI_DEBUG"  # set: tracebacks show the frames of this package too
INTERRUPTED = 130


class RunOutcome(NamedTuple):
    """What a run left: the exit code, the exception that ended it, and the names of the file."""

    code: int
    error: BaseException | None
    names: dict[str, Any]


class _Source(SourceFileLoader):
    """Has the source already: nothing is written beside the file, and no cached code is taken for it."""

    def __init__(self, path: str, source: bytes, name: str = "__main__") -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.source, self.get_filename(fullname))


def run_file(
    path: str,
    args: Sequence[str] = (),
    *,
    inside: AbstractContextManager[None] | None = None,
    watch: Watch | None = None,
    tell: bool = True,
    texts: Mapping[str, str] | None = None,
) -> RunOutcome:
    """Run a Python file as a script; an exception is reported on standard error as Python reports it.

    `inside`: a context for the run, which may give `torch` a meaning. `watch` records the run. `tell`: print the
    traceback. `texts` stand in the place of files of these names, which are not read. The path `-` is standard input.
    Raises GradcliError where the file cannot be read (GC601) or is not a Python file (GC721).
    """
    where, texts = filename_of(path), texts or {}
    source = texts[where].encode() if where in texts else read(path)
    module, loader = ModuleType("__main__"), _Source(where, source)
    module.__dict__.update(__loader__=loader, __cached__=None)
    if path == "-":
        _show_lines(source, where)
    else:
        module.__file__ = where
    linecache.checkcache()  # files may have changed since an earlier run
    folder = "" if path == "-" else os.path.dirname(os.path.realpath(path))
    with _process(module, folder, [path, *args]), _replaced(texts):
        try:
            with inside or nullcontext(), nullcontext() if watch is None else watch.watching(module.__dict__):
                loader.exec_module(module)
        except SystemExit as end:
            return RunOutcome(_exit_code(end), end, module.__dict__)
        except BrokenPipeError:  # the reader of the output is gone
            raise
        except BaseException as problem:
            if not isinstance(problem, Exception) and type(problem).__module__.startswith("gradcli."):
                raise  # the process was asked to end
            sys.stdout.flush()
            if tell:
                report(problem)
            return RunOutcome(INTERRUPTED if isinstance(problem, KeyboardInterrupt) else 1, problem, module.__dict__)
    return RunOutcome(0, None, module.__dict__)


def read(path: str) -> bytes:
    """The source of a Python file, or standard input for `-`; refuses what is none."""
    shown = visible(path, 200)
    if path == "-":
        if sys.stdin is None:
            raise error("GC601", "cannot read standard input: it is closed", help="leave out <&-, or name a file")
        return sys.stdin.buffer.read()
    if path.endswith(".grad"):
        raise error("GC721", f"{shown} is a script, not a Python file", help=f"gradcli grad {shown}")
    if os.path.isdir(path):
        raise error("GC601", f"cannot read {shown}: is a directory", help="name one file in it")
    if not path.endswith(".py"):
        raise error("GC721", f"{shown} is not a Python file: its name does not end in .py")
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise error("GC601", f"cannot read {shown}: {(problem.strerror or str(problem)).lower()}") from None


def lines(path: str) -> list[str]:
    """The lines of a Python file that ran, for those who show them; none of standard input that is read."""
    return [line.rstrip("\r\n") for line in linecache.getlines(filename_of(path))]


def _show_lines(source: bytes, where: str) -> None:
    """Let tracebacks show lines of a source that is not a file."""
    try:
        text = decode_source(source)
    except (SyntaxError, UnicodeDecodeError):  # the compiler says what is wrong
        return
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)


class _Texts(MetaPathFinder):
    """Finds modules whose text is not that of their file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        spec = PathFinder.find_spec(fullname, path, target)
        origin = "" if spec is None else spec.origin or ""
        if origin not in self.texts:
            return None
        return spec_from_file_location(fullname, origin, loader=_Source(origin, self.texts[origin].encode(), fullname))


@contextmanager
def _replaced(texts: Mapping[str, str]) -> Iterator[None]:
    """While it lasts, texts stand in the place of files."""
    for name, text in texts.items():
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    finder = _Texts(texts)
    sys.meta_path[:0] = [finder] if texts else []
    try:
        yield
    finally:
        sys.meta_path[:] = [each for each in sys.meta_path if each is not finder]


@contextmanager
def _process(module: ModuleType, folder: str, argv: list[str]) -> Iterator[None]:
    """What a script finds in `sys`, and takes away with it."""
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv, sys.path[:] = argv, [folder, *sys.path[1:]]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before


def _exit_code(end: SystemExit) -> int:
    """The code of `sys.exit(...)`, as Python reads it: none is 0, a text is printed and is 1."""
    if end.code is None or isinstance(end.code, int):
        return 0 if end.code is None else end.code & 0xFF
    sys.stdout.flush()
    sys.stderr.write(f"{end.code}\n")
    return 1


def report(problem: BaseException) -> None:
    """Print a traceback without the frames of this package and of the import system."""
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        return
    shown = traceback.TracebackException(type(problem), problem, problem.__traceback__, compact=True)
    if not os.environ.get(DEBUG):
        _strip(shown)
    sys.stderr.write("".join(shown.format()))


def _strip(shown: traceback.TracebackException) -> None:
    seen, waiting = set(), [shown]
    while waiting:
        exception = waiting.pop()
        if id(exception) in seen:
            continue
        seen.add(id(exception))
        kept: list[traceback.FrameSummary] = []
        for frame in exception.stack:
            if not frame.filename.startswith((PACKAGE, "<frozen importlib", "<gradcli ")):
                kept.append(frame)
            elif kept and kept[-1].name == DISPATCHED:  # PyTorch's way to the recorder, with the function it is for
                del kept[-2:]
        exception.stack[:] = kept
        related = (exception.__cause__, exception.__context__, *(exception.exceptions or ()))
        waiting += [other for other in related if other is not None]


@contextmanager
def silenced() -> Iterator[None]:
    """While it lasts, what is printed goes nowhere, and warnings with it."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def one_line(problem: BaseException) -> str:
    """An exception on one line, with the name of its class."""
    text = str(problem).partition("\n")[0]
    return f"{type(problem).__name__}: {visible(text, 300)}" if text else type(problem).__name__
