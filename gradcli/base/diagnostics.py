"""Diagnostics: errors, warnings and notes with a code, a message and a span, which any room can raise or collect.

This module does no output. What a code means is documented in `codes`.
"""

from __future__ import annotations

import os
import re
import sys

from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class SourceText(Protocol):
        """The text that a diagnostic points into."""

        @property
        def name(self) -> str:
            """The name to print in front of the line number."""

        def line(self, number: int, /) -> str:
            """Return line `number` (1-based) without its line ending."""


class Span(NamedTuple):
    """A span of source text: 1-based lines and columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


__all__ = [
    "Diagnostic",
    "GradcliError",
    "Span",
    "cover",
    "did_you_mean",
    "error",
    "shadowing",
    "visible",
]

ERROR, WARNING, NOTE = "error", "warning", "note"


class Diagnostic(NamedTuple):
    """One problem: its code, a headline, where it is, and what to do next.

    `labels` are further places to underline, each with a few words. `source` may be filled in later by
    whoever knows the text. `sizes` are two sizes of axes that would have to be equal.

    >>> Diagnostic("GC112", "unexpected `)`", Span(1, 3, 1, 4)).as_json()
    {'code': 'GC112', 'message': 'unexpected `)`', 'span': [1, 3, 1, 4]}
    """

    code: str
    message: str
    span: Span | None = None
    labels: tuple[tuple[Span, str], ...] = ()
    help: str | None = None
    severity: str = ERROR
    source: SourceText | None = None
    sizes: tuple[int, int] | None = None

    def as_json(self) -> dict[str, object]:
        """Return the three fields of the machine formats; `span` is [line, column, end line, end column]."""
        span = None if self.span is None else list(self.span)
        return {"code": self.code, "message": self.message, "span": span}

    def with_source(self, source: SourceText) -> Diagnostic:
        """Return this diagnostic, pointing into `source` unless it already has a source."""
        if self.source is not None:
            return self
        return self._replace(source=source)

    def __str__(self) -> str:
        place = "" if self.span is None else f" at {self.span.line}:{self.span.column}"
        text = f"{self.severity}[{self.code}]{place}: {self.message}"
        return text if self.help is None else f"{text}\nhelp: {self.help}"

    def __repr__(self) -> str:
        return f"<{self.code} {self.message!r} {tuple(self.span) if self.span else None}>"


class GradcliError(Exception):
    """What cannot be evaluated, as one or more diagnostics: every error of a script at once.

    >>> problem = error("GC202", "`x` has no value", Span(1, 1, 1, 2), help="give it a value: --at x=1")
    >>> print(problem)
    error[GC202] at 1:1: `x` has no value
    help: give it a value: --at x=1
    >>> [diagnostic.code for diagnostic in problem.diagnostics]
    ['GC202']
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("a GradcliError needs at least one diagnostic")
        super().__init__(*diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics

    def with_source(self, source: SourceText) -> GradcliError:
        """Return the same error with `source` filled in where a diagnostic has none."""
        return GradcliError(*(diagnostic.with_source(source) for diagnostic in self.diagnostics))

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


class pointing_into:
    """A context whose errors point into this text, where they do not point into another already."""

    __slots__ = ("source",)

    def __init__(self, source: SourceText) -> None:
        self.source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, GradcliError):
            raise problem.with_source(self.source) from None


def error(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    help: str | None = None,
    labels: tuple[tuple[Span, str], ...] = (),
    source: SourceText | None = None,
    sizes: tuple[int, int] | None = None,
) -> GradcliError:
    """Return a GradcliError with one diagnostic, to be raised by the caller."""
    return GradcliError(Diagnostic(code, message, span, labels, help, ERROR, source, sizes))


def cover(first: Span, last: Span) -> Span:
    """Return the span from the start of `first` to the end of `last`."""
    return Span(first[0], first[1], last[2], last[3])


LOG_COMMAND = re.compile(r"#(?=#\w*\[)")


def visible(text: str, limit: int = 60) -> str:
    """Return untrusted text in a form that is safe to print: one line, no control characters, not long.

    Characters that a terminal does not draw (controls, escapes, bidi and zero-width marks, lone surrogates)
    are written as their code points, and so is a `#` that begins a command to a build server; text over `limit`
    characters is cut in the middle.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    >>> visible("x" * 100, 11)
    'xxxxx…xxxxx'
    """
    if len(text) > limit:
        tail = (limit - 1) // 2
        text = f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"
    text = without_commands(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped(char) for char in text)


def without_commands(text: str) -> str:
    """The text in which build servers find no command: `##[...]` (GitHub), `##vso[...]` (Azure), `##teamcity[...]`.

    >>> without_commands("a/##[error]x.grad")
    'a/\\\\x23#[error]x.grad'
    """
    return LOG_COMMAND.sub(lambda mark: escaped(mark[0]), text) if "##" in text else text


def escaped(char: str) -> str:
    """Return one character as an ASCII escape, such as \\x1b or \\u202e."""
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


LONGEST_NAME = 40  # a longer name is never compared: the cost grows with the square of the length


def shadowing(problem: Exception) -> Diagnostic | None:
    """What to say of an import that failed because a file of the user's is named like a module of Python's own."""
    name, path = getattr(problem, "name", None), str(getattr(problem, "path", None) or "")
    own = isinstance(problem, ImportError) and str(name).partition(".")[0] in sys.stdlib_module_names
    if not own or not path or path.startswith(os.path.dirname(os.__file__)):
        return None
    message = f"{visible(path, 200)} is imported in place of Python's own module `{name}`"
    return Diagnostic("GC748", message, help="rename the file, or run gradcli from another folder")


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `name` was most likely meant to be, or None.

    Spelling that differs only in case or underscores always counts; else at most 1 edit for short names,
    2 from 5 letters, 3 from 9. Ties go to a candidate that `name` begins with, then to the nearer length,
    then to the longer common beginning, then to the first in the alphabet.

    >>> did_you_mean("sine", ["sinh", "sin", "cos"])
    'sin'
    """
    length = len(name)
    if not 0 < length <= LONGEST_NAME:
        return None
    folded = name.replace("_", "").lower()
    allowed = 0 if length == 1 else 1 if length < 5 else 2 if length < 9 else 3
    best: tuple[int, bool, int, int, str] | None = None
    for candidate in candidates:
        if candidate == name or abs(len(candidate) - length) > max(allowed, 2):
            continue
        if candidate.replace("_", "").lower() == folded:
            distance = 0
        else:
            distance = edit_distance(name, candidate, allowed)
            if distance > allowed or (length == 2 and candidate[:1] != name[0]):
                continue
        common = 0
        for left, right in zip(name, candidate, strict=False):
            if left != right:
                break
            common += 1
        rank = (distance, not name.startswith(candidate), abs(len(candidate) - length), -common, candidate)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[4]


def edit_distance(left: str, right: str, allowed: int) -> int:
    """Return how many insertions, deletions, substitutions or swaps of neighbours part two words.

    Stops early and returns allowed + 1 when the distance is larger than `allowed`.
    """
    if abs(len(left) - len(right)) > allowed:
        return allowed + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        last, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == right[j - 2] and left[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > allowed and (not before or min(before) > allowed):
            return allowed + 1
    return min(row[-1], allowed + 1)
