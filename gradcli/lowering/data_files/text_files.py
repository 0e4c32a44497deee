"""Reads tables and JSON arrays; an error for a cell that is not a number gives its place."""

from __future__ import annotations

import codecs
import csv
import json
import os
from array import array
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import Diagnostic, error, visible
from gradcli.lowering.data_files.loading import Loaded, check_count, chosen, damaged, finished, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from gradcli.lowering.data_files.loading import Request

LONGEST_LINE = 1 << 22
LARGEST_JSON = 1 << 24
MOST_BRACKETS = 1_000_000
SHOWN_NOTES = 3
WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def read_csv(file: BinaryIO, request: Request) -> Loaded:
    """A table with commas. A first line without numbers is a header; lines that start with # are remarks."""
    return read_table(file, request, ",")


def read_tsv(file: BinaryIO, request: Request) -> Loaded:
    """A table with tabs; else like `read_csv`."""
    return read_table(file, request, "\t")


def read_table(file: BinaryIO, request: Request, delimiter: str) -> Loaded:
    """The wanted columns of a table as rows of an array; a vector for a single column."""
    cells = array("d")
    width = count = 0
    wanted: Sequence[int] = ()
    single = False
    header: list[str] = []
    notes: list[str] = []
    for line, row in rows(file, request, delimiter):
        if not width:
            width = len(row)
            picked = chosen(request, width)
            single = isinstance(picked, int) or (request.columns is None and width == 1)
            wanted = [picked] if isinstance(picked, int) else picked
            if is_header(row):
                header = row
                continue
        elif len(row) != width:
            raise error(
                "GC617",
                f"{visible(request.path)}, line {line} has {len(row)} cell{'s' * (len(row) != 1)}, "
                f"the lines before have {width}",
            )
        count += 1
        check_count(request.path, count * len(wanted), request.elements)
        for column in wanted:
            value = number(row[column])
            if value is None:
                raise no_number(request, line, column, row[column])
            if value - value != 0 and len(notes) <= SHOWN_NOTES:
                notes.append(f"line {line}, column {column}")
            cells.append(value)
    if not count:
        raise damaged(request.path, "it holds no numbers", next(filter(None, map(separator_hint, header)), None))
    shape = (count,) if single else (count, len(wanted))
    return Loaded(np.frombuffer(cells, dtype=np.float64).reshape(shape).copy(), noted(request, notes))


def rows(file: BinaryIO, request: Request, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the number of the line on which each ends."""
    reader = csv.reader(lines(file, request), delimiter=delimiter, strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as wrong:
            raise damaged(request.path, f"line {reader.line_num}: {visible(str(wrong))}") from wrong
        if row is None:
            return
        if row and not (len(row) == 1 and not row[0].strip()) and not row[0].startswith("#"):
            yield reader.line_num, row


def lines(file: BinaryIO, request: Request) -> Iterator[str]:
    """The lines of a text file in UTF-8; the length of a line is limited."""
    start = file.read(3)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise damaged(request.path, "it is UTF-16 text", "save it as UTF-8")
    file.seek(len(codecs.BOM_UTF8) if start == codecs.BOM_UTF8 else 0)
    text = TextIOWrapper(file, encoding="utf-8", newline=None)
    line = 0
    while True:
        line += 1
        try:
            content = text.readline(LONGEST_LINE)
        except UnicodeDecodeError as wrong:
            raise damaged(request.path, f"line {line} is not UTF-8", "save it as UTF-8") from wrong
        if not content:
            return
        if len(content) == LONGEST_LINE and not content.endswith("\n"):
            raise too_large(request.path, f"line {line} is longer than {LONGEST_LINE:,} characters")
        if "\0" in content:
            raise damaged(request.path, f"line {line} holds NUL characters")
        yield content


def is_header(row: Sequence[str]) -> bool:
    """Whether a first row names the columns: no cell is a number, and not all are empty."""
    return all(number(cell) is None for cell in row) and any(cell.strip() for cell in row)


def number(cell: str) -> float | None:
    """The number in a cell, or None; only forms that NumPy writes, no underscores or digits of other scripts."""
    if not cell.isascii() or "_" in cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def no_number(request: Request, line: int, column: int, cell: str) -> Exception:
    what = f"`{visible(cell.strip(), 30)}` is not a number" if cell.strip() else "the cell is empty"
    hint = separator_hint(cell) or "choose other columns, as in columns=0:2 (they count from 0), or correct the cell"
    if number(cell.replace(",", ".", 1)) is not None:
        hint = "write decimals with a point"
    if number(cell.replace("\u2212", "-")) is not None:
        hint = "write the minus sign as -"
    return error("GC616", f"{visible(request.path)}, line {line}, column {column}: {what}", help=hint)


def separator_hint(cell: str) -> str | None:
    """What to change where a cell holds a whole row, because something else than commas separates its numbers."""
    for sign, separators in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        parts = cell.split(sign)
        if len(parts) > 1 and all(number(part.replace(",", ".")) is not None for part in parts):
            return f"the cells are separated by {separators}: separate them by commas, and write decimals with a point"
    return None


def noted(request: Request, places: Sequence[str]) -> tuple[Diagnostic, ...]:
    """A note on entries that are NaN or infinite."""
    if not places:
        return ()
    more = " and more" if len(places) > SHOWN_NOTES else ""
    message = f"{visible(request.path)} holds nan or inf: {'; '.join(places[:SHOWN_NOTES])}{more}"
    return (Diagnostic("GC619", message, severity="note"),)


# --- JSON ---------------------------------------------------------------------------------------------------


def read_json(file: BinaryIO, request: Request) -> Loaded:
    """A number or nested lists of numbers; the strings "nan", "inf" and "-inf" stand for numbers that JSON lacks."""
    size = os.fstat(file.fileno()).st_size
    if size > LARGEST_JSON:
        raise too_large(request.path, f"{size:,} bytes of JSON, the limit is {LARGEST_JSON:,}; use .npy")
    try:
        text = file.read(LARGEST_JSON).decode("utf-8-sig")
        if text.count("[") + text.count("{") > MOST_BRACKETS:
            raise too_large(request.path, f"more than {MOST_BRACKETS:,} lists; use .npy")
        content = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise damaged(request.path, f"it is no JSON ({visible(str(wrong), 80)})") from wrong
    flat, shape = flattened(content, request)
    return finished(request, np.array(flat, dtype=np.float64).reshape(shape))


def flattened(content: Any, request: Request) -> tuple[list[float], tuple[int, ...]]:
    """The numbers of nested lists in order, and their shape; GC616 and GC617 name an entry that is wrong."""
    level: list[Any] = [content]
    shape: list[int] = []
    while level and isinstance(level[0], list):
        size = len(level[0])
        for index, item in enumerate(level):
            if not isinstance(item, list) or len(item) != size:
                raise error(
                    "GC617",
                    f"{visible(request.path)}: {place(index, shape)} is not a list of {size} like the others",
                )
        shape.append(size)
        check_count(request.path, len(level) * size, request.elements)
        level = [entry for item in level for entry in item]
    flat = []
    for index, item in enumerate(level):
        value = WORDS.get(item) if isinstance(item, str) else item
        if value is None or isinstance(value, (bool, dict, list)):
            raise error(
                "GC617" if isinstance(value, list) else "GC616",
                f"{visible(request.path)}: {place(index, shape)} is {kind(item)}, not a number",
            )
        flat.append(as_float(value))
    return flat, tuple(shape)


def as_float(value: float) -> float:
    """The nearest double; a whole number beyond the doubles is infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def place(index: int, shape: Sequence[int]) -> str:
    """A flat index as indices of nested lists, such as entry [3][1]."""
    if not shape:
        return "the content"
    indices: list[str] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        indices.append(f"[{place}]")
    return "entry " + "".join(reversed(indices))


def kind(item: Any) -> str:
    """The kind of an entry, in words."""
    if isinstance(item, str):
        return f"the text {visible(item, 30)!r}"
    words = {"NoneType": "null", "bool": "true or false", "dict": "an object", "list": "a list"}
    return words.get(type(item).__name__, type(item).__name__)
