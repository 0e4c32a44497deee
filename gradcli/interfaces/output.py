"""Writes the results of commands to standard output or a file; the only writer of the process.

It chooses the format, the width and the colours, and makes the Console where there is a table to show.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from importlib import import_module
from time import monotonic

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import IO, Any, BinaryIO

    from gradcli.interfaces.command_parts.result_views import View

# what is loaded when it is needed, by name
ROOMS = {
    "diagnostics": "gradcli.rendering.diagnostic_text",
    "document": "gradcli.rendering.document",
    "machine": "gradcli.rendering.machine",
    "plain": "gradcli.rendering.plain",
    "progress": "gradcli.rendering.progress",
    "tables": "gradcli.rendering.tables",
    "tabular": "gradcli.rendering.tabular",
}

# the formats that an ending may mean, of which the first counts that the command has
SUFFIXES = {
    ".json": ("json",), ".jsonl": ("jsonl",), ".ndjson": ("jsonl",), ".csv": ("csv",), ".tex": ("latex",),
    ".md": ("markdown", "mermaid"), ".svg": ("svg",), ".png": ("png",), ".pdf": ("pdf",), ".jpg": ("jpg",),
    ".jpeg": ("jpg",), ".html": ("html", "mathml"), ".dot": ("dot",), ".gv": ("dot",), ".mmd": ("mermaid",),
    ".tap": ("tap",), ".txt": ("plain", "tree"), ".log": ("plain", "tree"), "": ("plain", "tree", "jsonl"),
    ".mtx": ("mtx",), ".npz": ("npz",),
}  # fmt: skip
LOG_LINE = re.compile(r"^(\s*)::", re.MULTILINE)  # a command to GitHub, whatever is meant
LISTED = 40  # entries of an array that a table lists
FULL = (ENOSPC, EDQUOT)
UNLIMITED = 100_000  # the width of a table that no terminal shows


def load(name: str) -> Any:
    """A room of ROOMS."""
    return import_module(ROOMS[name])


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
    """Where a command's results go, in the chosen format; `options/shared_options.py` says what it offers."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        formats: Sequence[str],
        explicit: Collection[str],
        endings: Mapping[str, tuple[str, Sequence[object]]],
    ) -> None:
        self.settings = settings
        self.endings = endings  # of the output file beside those of formats: the setting that each needs, its values
        self.explicit = explicit  # names of the options on the command line
        self.path: str | None = settings["output"]
        self.file: IO[str] | None = None
        self.drawn = False  # whether a progress line stands on standard error
        self.bar: Any = None
        self.terminal = self.path is None and sys.stdout.isatty()
        self.format: str = settings["format"] or ("table" if self.terminal else "plain")
        if self.path is not None and "format" not in explicit and settings.get("points") is None:
            self.format = self.named(self.path, formats)

    def named(self, path: str, formats: Sequence[str]) -> str:
        """The format for the ending of the output file; raises GC721 for one that the command does not write."""
        ending = os.path.splitext(path)[1].lower()
        known = {end: form for end, forms in SUFFIXES.items() for form in forms[::-1] if form in formats}
        values = {end: (self.settings[name], fit) for end, (name, fit) in self.endings.items()}
        own = {end: self.format for end, (value, fit) in values.items() if (value in fit if fit else value)}
        if ending not in known | own or path == "-":
            written = " ".join(filter(None, sorted({**known, **own})))
            hint = f"let its name end in one of {written}, or choose a format with --format"
            raise error("GC721", f"no format for the ending of {visible(path, 200)}", help=hint)
        return (own | known)[ending]

    def emit(self, view: View, *, framed: bool = True) -> None:
        """Render a result on standard output or into the file, and its diagnostics on standard error.

        Tables that are `framed` have a blank line before and behind them.
        """
        if self.format == "table":
            self.tables(view, framed)
        else:
            self.line(self.rendered(view))
        self.note(*view.diagnostics)

    def rendered(self, view: View) -> str:
        """The text of a result in a format that needs no Console."""
        if self.format == "json":
            return str(load("machine").text(view.payload()))
        if self.format == "jsonl":
            return "\n".join(map(load("machine").text, view.records()))
        style = load("document").Style(digits=self.settings["digits"])
        if view.texts is not None:
            return view.texts(self.format, style)
        assert view.document is not None  # else there are texts
        if self.format == "csv":
            assert view.tidy is not None  # a view without has no format `csv`
            return str(load("tabular").csv(view.tidy()))
        document = view.document(style)
        if self.format == "plain":
            return str(load("plain").render(document))
        return str(getattr(load("tabular"), self.format)(document))

    def tables(self, view: View, framed: bool) -> None:
        """Rich tables; off a terminal they are as wide as they like."""
        self._wipe()
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
        assert view.document is not None  # a command without one has no format `table`
        document = view.document(
            load("document").Style(self.settings["digits"], LISTED, cells if self.terminal else None)
        )
        frame = "\n" if framed else ""
        console.print(frame, end="")
        for part in load("tables").render(document, cells):
            console.print(part)
        console.print(frame, end="")

    def line(self, text: str) -> None:
        """Write one line at once."""
        self.write((text, "\n"))

    def sink(self) -> IO[str]:
        """Standard output, or the file of --output, opened at the first use."""
        if self.path is None:
            return sys.stdout
        if self.file is None:
            self.file = opened(self.path)
        return self.file

    def close(self) -> None:
        self._wipe()
        if self.file is not None:
            self.file.close()

    def say(self, text: str) -> None:
        """One line on standard error."""
        self._wipe()
        sys.stdout.flush()
        write_error(text + "\n")

    def note(self, *diagnostics: Diagnostic) -> None:
        """Diagnostics on standard error."""
        if diagnostics:
            self.say(load("diagnostics").render(diagnostics, colourful(self.settings["color"], sys.stderr)))

    def progress(self, done: int, total: int, label: str = "", failed: int = 0) -> None:
        """One line on standard error, if that is a terminal that can draw it anew; it goes when all is done."""
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return
        if done >= total:
            self._wipe()
            self.bar = None
            return
        self.bar = self.bar or load("progress").Progress()
        line = self.bar.line(monotonic(), width(sys.stderr) - 1, done, total, label, failed)
        if line is not None:
            self.drawn = True
            write_error(f"\r{line}\x1b[K")

    def _wipe(self) -> None:
        """Take the progress line away: lines of results may go to the same terminal."""
        if self.drawn:
            write_error("\r\x1b[K")
            self.drawn = False

    def write(self, pieces: Iterable[str]) -> None:
        """Write text as it is, ending with a line break; in a log, no line of it begins with `::`."""
        self._wipe()
        sink = self.sink()
        for piece in pieces:
            sink.write(LOG_LINE.sub(r"\1\\x3a:", piece) if "::" in piece and self.path is None else piece)
        sink.flush()

    def expect(self, path: str) -> None:
        """Raise GradcliError GC690 where a report file could not be written later, or has the name of a script."""
        place = os.path.realpath(path)
        if path.endswith((".grad", ".py")) or path == "-":
            what = "is no name of a file" if path == "-" else "is the name of a script, not of a report"
            raise error("GC690", f"{visible(path, 200)} {what}", help="name another file")
        known = os.path.lexists(place)
        if os.path.isdir(place) or not os.access(place if known else os.path.dirname(place), os.W_OK):
            problem = "is a directory" if os.path.isdir(place) else "no such folder, or no permission"
            raise error("GC690", f"cannot write {visible(path, 200)}: {problem}")

    def save(self, path: str, content: Iterable[str] | bytes) -> None:
        """Write a file at once: a reader finds the earlier file or this one, never a part of it."""
        written_whole(path, content)

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
        raise error("GC601", "cannot read standard input: it is closed", help="leave out <&-, or name a file")
    return sys.stdin.buffer


def unwritable(path: str, problem: OSError) -> GradcliError:
    """The error for a file that cannot be written: GC692 where the disk is full."""
    message = f"cannot write {visible(path, 200)}: {reason(problem)}"
    if problem.errno in FULL:
        return error("GC692", message, help="make room, or write to another disk")
    return error("GC690", message)


def opened(path: str, binary: bool = False) -> IO[Any]:
    """A file for writing; GC690 where that is not possible."""
    try:
        return open(path, "wb") if binary else open(path, "w", encoding="utf-8", newline="\n")
    except OSError as problem:
        raise unwritable(path, problem) from None


def written_whole(path: str, pieces: Iterable[str] | bytes) -> None:
    """Write a file beside its place and move it there; what is not a regular file (a pipe, a device) is written to.

    Raises GradcliError GC690 where that is not possible.
    """
    binary = isinstance(pieces, bytes)
    whole: Iterable[Any] = (pieces,) if isinstance(pieces, bytes) else pieces
    place = os.path.realpath(path)
    beside = f"{place}.{os.getpid()}.part"
    try:
        if os.path.lexists(place) and not os.path.isfile(place):
            raise FileExistsError
        text = {} if binary else {"encoding": "utf-8", "newline": "\n"}
        file: IO[Any] = open(beside, "xb" if binary else "x", **text)  # type: ignore[call-overload]  # noqa: SIM115
    except OSError:  # no new file can be made there, but perhaps this one can be written
        with opened(path, binary) as direct:
            direct.writelines(whole)
        return
    try:
        with file:
            file.writelines(whole)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(place):
            os.chmod(beside, stat.S_IMODE(os.stat(place).st_mode))
        os.replace(beside, place)
    except OSError as problem:
        raise unwritable(path, problem) from None
    finally:
        with suppress(OSError):
            os.unlink(beside)  # still there only if it was not moved


def open_standard_streams() -> None:
    """Open the null device where a standard stream is closed.

    No file that is opened later gets the number of a standard stream either. `sys.stdin` stays None.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            if name != "stdin":
                setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: SIM115


def write_error(text: str) -> None:
    """Write to standard error; where that is impossible nothing is said, and the exit code still counts."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # ValueError: a script that `run` runs may close it
        discard("stderr")


def discard(name: str) -> None:
    """Send what is left of a standard stream nowhere, so that the interpreter does not complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), {"stdout": 1, "stderr": 2}[name])


def reason(problem: OSError) -> str:
    return (problem.strerror or str(problem)).lower()


def width(stream: IO[str] | None = None) -> int:
    """The width of the terminal in cells: COLUMNS if set, else what the terminal of the stream (stdout) says."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or 80
    except OSError:
        return 80
