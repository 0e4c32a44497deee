"""The line and the source text of a place in code; reads files, runs nothing."""

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import CodeType

    from gradcli.eager._core.modes import Place

LONGEST = 60


class Line(NamedTuple):
    """A line of a file, and what of it was running."""

    file: str
    number: int
    text: str


def filename_of(path: str) -> str:
    """The name that code from a path carries; `-` is standard input."""
    return "<stdin>" if path == "-" else os.path.abspath(path)


MOST_CODES = 1024  # functions whose lines are kept
_known: dict[int, tuple[CodeType, dict[int, Line]]] = {}  # by the code's identity: its hash reads all its constants


def line_of(place: Place) -> Line | None:
    """The line of a place; the text is empty where the source cannot be read."""
    return None if place is None else line_in(*place)


def line_in(code: CodeType, at: int) -> Line:
    """The line of an instruction of some code."""
    known = _known.get(id(code))
    if known is None:
        if len(_known) >= MOST_CODES:
            _known.clear()
        known = _known[id(code)] = (code, {})
    found = known[1].get(at)
    if found is None:
        found = known[1][at] = _read(code, at)
    return found


def _read(code: CodeType, at: int) -> Line:
    first, last, start, stop = next(
        (position for i, position in enumerate(code.co_positions()) if 2 * i == at), (None, None, None, None)
    )
    if first is None:
        return Line(code.co_filename, code.co_firstlineno, "")
    lines = [linecache.getline(code.co_filename, number) for number in range(first, (last or first) + 1)]
    text = "".join(lines)
    if start is not None and stop is not None and lines[-1]:
        before = "".join(lines[:-1]).encode()
        text = (before + lines[-1].encode()[:stop])[start:].decode(errors="replace")
    return Line(code.co_filename, first, _shortened(text))


def statement_in(code: CodeType, at: int) -> Line:
    """The line of an instruction with all that stands on it."""
    line = line_in(code, at)
    return line._replace(text=_shortened(linecache.getline(line.file, line.number)))


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
