"""Source text from bytes, a file or a string, with lines that diagnostics can show."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from itertools import pairwise

from gradcli.base.diagnostics import GradcliError, Span, error, visible
from gradcli.language.limits import DEFAULT_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.limits import Limits

LINE_END = re.compile(r"\r\n|\n|\r")
BYTE_ORDER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class Source:
    """A script's text, with a name to print in front of line numbers and the path it came from, if any.

    A byte order mark at the start is dropped. Lines end with LF, CR LF or CR. `mathematics` are the numbers of lines
    that were written in LaTeX, `scalars` names that are known to be numbers.

    >>> Source("x = 2\\nx**2").line(2)
    'x**2'
    """

    __slots__ = ("_ends", "_starts", "mathematics", "name", "path", "scalars", "text")

    def __init__(self, text: str, name: str = "<expression>", path: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(text, str):
            raise no_script(text)
        self.text = text[1:] if text[:1] == "\ufeff" else text
        self.name = name
        self.path: str | None = None if path is None else os.fspath(path)
        self.mathematics: frozenset[int] = frozenset()
        self.scalars: frozenset[str] = frozenset()
        self._starts: list[int] | None = None
        self._ends: list[int] = []

    def __repr__(self) -> str:
        return f"<Source {visible(self.name)!r}, {len(self.text)} characters>"

    def _index(self) -> list[int]:
        if self._starts is None:
            starts = [0]
            for match in LINE_END.finditer(self.text):
                self._ends.append(match.start())
                starts.append(match.end())
            self._ends.append(len(self.text))
            self._starts = starts
        return self._starts

    @property
    def line_count(self) -> int:
        """The number of lines; the text after the last line ending counts as one, even if empty."""
        return len(self._index())

    @property
    def first_line(self) -> int:
        """The number of the first line that is not empty: above a block of a document there are empty ones.

        >>> Source("\\n\\n x**2").first_line
        3
        """
        return bisect_right(self._index(), len(self.text) - len(self.text.lstrip("\r\n")))

    def line(self, number: int, /) -> str:
        """Return line `number` (1-based) without its ending; pass it to `visible` before printing it."""
        starts = self._index()
        if not 1 <= number <= len(starts):
            return ""
        return self.text[starts[number - 1] : self._ends[number - 1]]

    def lines(self) -> list[str]:
        """Return all lines, each with its ending; an empty one at the end is left out."""
        starts = [*self._index(), len(self.text)]
        return [self.text[start:end] for start, end in pairwise(starts) if start < end]

    def span(self, start: int, end: int) -> Span:
        """Return the span of the text from offset `start` up to `end`."""
        starts = self._index()
        first, last = bisect_right(starts, start), bisect_right(starts, end)
        return Span(first, start - starts[first - 1] + 1, last, end - starts[last - 1] + 1)


def no_script(value: object) -> GradcliError:
    """Return the error for a value that is not the text of a script: a function, a SymPy expression, a path."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "sympy":
        hint = "give its text: str(expression)"
    elif callable(value):
        hint = "gradcli.check judges functions, gradcli.eager differentiates them; a script is a text such as 'x**2'"
    elif isinstance(value, os.PathLike):
        hint = "give the text of the file: path.read_text()"
    else:
        hint = "give the text of a script, such as 'x**2 + y'"
    return error("GC133", f"a script is a text, not an object of type {visible(kind.__name__)}", help=hint)


def decode_source(
    data: bytes,
    name: str = "<stdin>",
    path: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Source:
    """Return the Source in UTF-8 bytes.

    Raises GC501 if there are more than `limits.text` bytes, and GC102, with line and column, if they are not UTF-8.
    """
    if len(data) > limits.text:
        raise text_too_long(name, limits)
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise error(
                "GC102",
                f"{visible(name)} is {encoding}, not UTF-8",
                Span(1, 1, 1, 1),
                help="save it as UTF-8",
            )
    try:
        return Source(data.decode("utf-8"), name, path)
    except UnicodeDecodeError as problem:
        readable = Source(data[: problem.start].decode("utf-8"), name, path)
        span = readable.span(len(readable.text), len(readable.text))
        span = Span(span.line, span.column, span.line, span.column + 1)
        byte = data[problem.start]
        hint = "save it as UTF-8"
        text: Source | None = Source(data.decode("utf-8", "replace"), name, path)
        if data[1:2] == b"\x00" or data[:1] == b"\x00":
            hint = "the file looks like UTF-16: save it as UTF-8"
        elif b"\x00" in data:
            hint, text = "it is not a text", None
        raise error(
            "GC102",
            f"{visible(name)} is not UTF-8: byte 0x{byte:02x} at line {span.line}, column {span.column}",
            span,
            help=hint,
            source=text,
        ) from None


def read_source(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Source:
    """Return the Source of a file.

    Reads at most one byte beyond the limit, so that devices and endless pipes do no harm. Raises GC601 if the file
    cannot be read, GC501 if it is too long, GC102 if it is not UTF-8.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(limits.text + 1)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise error("GC601", f"cannot read {visible(name, 200)}: {reason.lower()}") from None
    return decode_source(data, name, name, limits)


def words(text: str) -> set[str]:
    """Every name that stands in a text."""
    return {word for word in re.findall(r"\w+", text) if word.isidentifier()}


def text_too_long(name: str, limits: Limits) -> GradcliError:
    """Return the error of a text over the limit."""
    return error(
        "GC501",
        f"{visible(name)} is longer than the limit of {limits.text} bytes",
        help=f"raise it with --limit text={max(1, limits.text * 16 >> 20)}MiB",
    )
