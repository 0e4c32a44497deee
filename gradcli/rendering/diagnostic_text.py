"""Diagnostics as text: headline, place, the source with the culprits underlined, next step.

error[GC301]: cannot add f64[3] and f64[4]
 --> loss.grad:4:9
  4 | y = a + b
    |     - ^ - f64[4]
    |     f64[3]
help: slice one of them, e.g. b[0:3]
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from gradcli.base.diagnostics import LOG_COMMAND, escaped
from gradcli.rendering.safe_text import visible, visible_character, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.base.diagnostics import Diagnostic, Span

    Paint = Callable[[str, str], str]

WINDOW = 100  # cells of a source line that are shown around what is underlined
MOST = 20  # diagnostics printed in full

COLOURS = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "bold": "1",
    "gutter": "34",
    "label": "36",
    "help": "1;32",
}


class Mark(NamedTuple):
    """An underlined stretch of one displayed line, in terminal cells."""

    start: int
    end: int
    text: str
    primary: bool


def render(diagnostics: Sequence[Diagnostic], colour: bool = False) -> str:
    """The diagnostics, with blank lines around those that show source text; after 20, only the number of the rest."""
    paint = ansi if colour else bare
    blocks = ["\n".join(block(diagnostic, paint)) for diagnostic in diagnostics[:MOST]]
    if len(diagnostics) > MOST:
        blocks.append(f"... and {len(diagnostics) - MOST} more")
    text = ""
    for before, after in zip(["", *blocks], blocks, strict=False):
        gap = "\n\n" if "\n" in before or ("\n" in after and before) else "\n" if before else ""
        text += gap + after
    return text


def bare(text: str, role: str) -> str:
    return text


def ansi(text: str, role: str) -> str:
    return f"\x1b[{COLOURS[role]}m{text}\x1b[0m" if text else ""


def block(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    """The lines of one diagnostic."""
    head = f"{diagnostic.severity}[{diagnostic.code}]"
    yield paint(head, diagnostic.severity) + paint(f": {visible(diagnostic.message)}", "bold")
    if diagnostic.source is not None and diagnostic.span is not None:
        yield from snippet(diagnostic, diagnostic.span, paint)
    elif diagnostic.source is not None and not diagnostic.source.name.startswith("<"):
        yield f" {paint('-->', 'gutter')} {visible(diagnostic.source.name)}"
    if diagnostic.help:
        head, *rest = map(visible, diagnostic.help.splitlines())
        yield f"{paint('help', 'help')}: {head}"
        yield from (f"      {line}" for line in rest)
    elif diagnostic.severity == "error":
        yield f"{paint('help', 'help')}: gradcli explain {diagnostic.code}"


def snippet(diagnostic: Diagnostic, span: Span, paint: Paint) -> Iterator[str]:
    """The place, then each line of source with its underlines."""
    assert diagnostic.source is not None
    marks: dict[int, list[tuple[Span, str, bool]]] = {span.line: [(span, "", True)]}
    for place, text in diagnostic.labels:
        marks.setdefault(place.line, []).append((place, text, False))
    digits = len(str(max(marks)))
    yield f"{' ' * digits}{paint('-->', 'gutter')} {visible(diagnostic.source.name)}:{span.line}:{span.column}"
    previous = None
    for number in sorted(marks):
        if previous is not None and number > previous + 1:
            yield paint(f"  {'.' * digits}", "gutter")
        previous = number
        text, cell_marks = displayed(diagnostic.source.line(number), number, marks[number])
        yield f"{paint(f'  {number:>{digits}} |', 'gutter')} {text}".rstrip()
        empty = paint(f"  {' ' * digits} |", "gutter")
        for row in underlines(spread(text), cell_marks, paint):
            yield f"{empty} {row}"


def displayed(text: str, number: int, marks: list[tuple[Span, str, bool]]) -> tuple[str, list[Mark]]:
    """A source line clipped around its marks, and the marks in cells of the clipped line."""
    pieces = [visible_character(character) for character in text]
    for mark in LOG_COMMAND.finditer(text):
        pieces[mark.start()] = escaped("#")
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + width(piece))
    cell_marks: list[Mark] = []
    for span, label, primary in marks:
        last = span.end_column - 1 if span.end_line == number else len(pieces)
        cell_marks.append(placed(offsets, span.column - 1, last, label, primary))
    line = "".join(pieces)
    if offsets[-1] <= WINDOW:
        return line, cell_marks
    return clipped(pieces, offsets, cell_marks)


def spread(text: str) -> str:
    """The text with one character per terminal cell."""
    return text if text.isascii() else "".join((character + "+")[: width(character)] for character in text)


def placed(offsets: list[int], first: int, last: int, label: str, primary: bool) -> Mark:
    """The mark of characters first..last, at least one cell wide."""
    start, end = (offsets[min(place, len(offsets) - 1)] for place in (first, last))
    return Mark(start, max(start + 1, end), visible(label), primary)


def clipped(pieces: list[str], offsets: list[int], marks: list[Mark]) -> tuple[str, list[Mark]]:
    """A window of a long line that holds the first primary mark, with ... where text is left out."""
    anchor = next(mark for mark in sorted(marks, key=lambda mark: not mark.primary))
    low = max(0, min(anchor.start - WINDOW // 3, offsets[-1] - WINDOW))
    inside = [at for at in range(len(pieces)) if offsets[at] >= low and offsets[at + 1] <= low + WINDOW]
    low, high = offsets[inside[0]], offsets[inside[-1] + 1]
    head, tail = "..." if low else "", "..." if high < offsets[-1] else ""
    line = head + "".join(pieces[at] for at in inside) + tail
    moved: list[Mark] = []
    for mark in marks:
        if mark.primary or (mark.start < high and mark.end > low):
            start = min(max(mark.start, low), high) - low + len(head)
            end = max(start + 1, min(mark.end, high) - low + len(head))
            moved.append(Mark(start, end, mark.text, mark.primary))
    return line, moved


def underlines(text: str, marks: list[Mark], paint: Paint) -> Iterator[str]:
    """The rows of ^ and - under a line: the last label next to them, the others below their places.

    Labeled parts of the primary stretch are underlined with -: `a + b` gets `- ^ -`.
    """
    cells: dict[int, bool] = {}
    split = any(mark.text for mark in marks)
    for mark in sorted(marks, key=lambda mark: not mark.primary):
        for at in range(mark.start, mark.end):
            if not (mark.primary and split and text[at : at + 1] == " "):
                cells[at] = mark.primary
    end = max(cells) + 1
    row = ""
    for kind, run in groupby(map(cells.get, range(end))):
        length = sum(1 for _ in run)
        row += " " * length if kind is None else paint("^" * length, "error") if kind else paint("-" * length, "label")
    labels = sorted((mark for mark in marks if mark.text), key=lambda mark: mark.start)
    if labels and labels[-1].end >= end:
        row += " " + paint(labels.pop().text, "label")
    yield row
    for mark in reversed(labels):
        bars = "".join(
            paint("|", "label") if any(other.start == at for other in labels if other.start < mark.start) else " "
            for at in range(mark.start)
        )
        yield bars + paint(mark.text, "label")


def headline(diagnostic: Diagnostic) -> str:
    """A diagnostic on one line, for tables and reports."""
    return visible(f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}")
