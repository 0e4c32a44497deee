"""Tables of decimals: text to arrays and back; the error for a cell that is not a number gives its line and column.

Reading and writing decimals takes longer than computing with them. Large files are read and written by polars where
it is installed (extra `points`), else these functions run in worker processes. The bytes are the same either way.
"""

from __future__ import annotations

import csv
import io
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Table = NDArray[np.float64]


SHORT_FROM = 1e-4  # Python writes smaller numbers with an exponent, polars without one
MISSING = ("", "na", "n/a", "null", "none", "missing", "<na>")


def text_library() -> Any:
    """polars, if it is installed."""
    try:
        return import_module("polars")
    except ImportError:
        return None


def parsed(
    text: bytes,
    delimiter: str,
    count: int,
    path: str,
    line: int,
    wanted: Sequence[int] | None = None,
    polars: Any = None,
) -> Table:
    """The numbers of whole lines, [rows, count]; `line` is the number of the first one.

    Only `wanted` columns are read; the content of other columns does not matter.

    Raises GradcliError: GC617 for a row of another length, GC616 for a cell that is not a number.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    columns = range(count) if wanted is None else wanted
    quick = _quick(text, delimiter, count, columns, polars)
    return _careful(text, delimiter, count, path, line, columns) if quick is None else quick


def _quick(text: bytes, delimiter: str, count: int, columns: Sequence[int], polars: Any) -> Table | None:
    """All cells at once, if every line has its delimiters and nothing is quoted; None if lines must be read singly."""
    if b'"' in text or b"_" in text or text.count(b"\r") != text.count(b"\r\n") or not text.isascii():
        return None
    if polars is not None and len(columns) == count:
        return _by_polars(text, delimiter, count, columns, polars)
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(raw == 10)
    commas = np.flatnonzero(raw == ord(delimiter))
    if len(commas) != (count - 1) * len(ends):
        return None
    if count > 1 and (np.searchsorted(commas, ends) != np.arange(1, len(ends) + 1) * (count - 1)).any():
        return None
    if polars is not None:
        return _by_polars(text, delimiter, count, columns, polars)
    cells = text.replace(b"\n", delimiter.encode()).split(delimiter.encode())
    cells.pop()
    try:
        if len(columns) == count:
            return np.array(cells, dtype="S").astype(np.float64).reshape(len(ends), count)
        return np.column_stack([np.array(cells[place::count], dtype="S").astype(np.float64) for place in columns])
    except ValueError:
        return None


def _by_polars(text: bytes, delimiter: str, count: int, columns: Sequence[int], polars: Any) -> Table | None:
    """The same by polars; what it refuses, such as blanks behind a number, is read singly.

    It sees where a row has another length only if all columns are read.
    """
    schema = {str(place): polars.Float64 for place in range(count)}
    try:
        frame = polars.read_csv(text, separator=delimiter, has_header=False, schema=schema, columns=list(columns))
    except polars.exceptions.PolarsError:
        return None
    if frame.height != text.count(b"\n") or any(column.null_count() for column in frame):
        return None
    return np.column_stack([column.to_numpy() for column in frame])


def _careful(text: bytes, delimiter: str, count: int, path: str, line: int, columns: Sequence[int]) -> Table:
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise error("GC614", f"{visible(path)} is no UTF-8 text (near line {line})") from wrong
    rows = csv.reader(io.StringIO(decoded, newline=""), delimiter=delimiter)
    numbers: list[list[float]] = []
    for row in _read(rows, path, line):
        number = line + rows.line_num - 1
        if not row:
            if any(_read(rows, path, line)):
                raise error("GC617", f"{visible(path)}:{number} is empty", help="take out the empty line")
            break
        if len(row) != count:
            cells = f"{len(row)} cell{'' if len(row) == 1 else 's'}"
            raise error(
                "GC617",
                f"{visible(path)}:{number} has {cells}, the first row has {count}",
                help="give every row as many cells: one that holds a comma stands in double quotes"
                if len(row) > count
                else "give every row as many cells; nan stands for a missing number",
            )
        numbers.append([_number(row[column], path, number, column + 1) for column in columns])
    return np.array(numbers, dtype=np.float64).reshape(len(numbers), len(columns))


def _read(rows: Any, path: str, line: int) -> Iterator[list[str]]:
    """The rows of a reader; raises GC614 for anything but a table, such as a cell of a million characters."""
    try:
        yield from rows
    except csv.Error as wrong:
        place = f"{visible(path)}:{line + max(rows.line_num - 1, 0)}"
        hint = "end lines with a line feed" if "new-line" in str(wrong) else None
        reason = "a line ends with a carriage return alone" if hint else str(wrong)
        raise error("GC614", f"{place} is damaged: {reason}", help=hint) from wrong


def _number(cell: str, path: str, line: int, column: int) -> float:
    plain = cell.strip()
    try:
        if "_" in plain or not plain.isascii():
            raise ValueError(plain)
        return float(plain)
    except ValueError:
        what = f"{visible(plain, 40)!r} is not a number" if plain else "the cell is empty"
        raise error("GC616", f"{visible(path)}:{line}, column {column}: {what}", help=_advice(plain)) from None


def _advice(cell: str) -> str:
    """Advice for a cell that is not a number."""
    if cell.strip("-?.").lower() in MISSING:
        return "write nan for a missing number"
    if re.fullmatch(r"[-+]?\d+,\d+", cell):
        return "write decimals with a point"
    return "write decimals, such as 0.5 or -2e-3, or nan where a number is missing"


def parsed_or_problem(*asked: Any) -> Table | Diagnostic:
    """The same for another process: an error comes back as its diagnostic."""
    try:
        return parsed(*asked)
    except GradcliError as problem:
        return problem.diagnostics[0]


def written(table: Table, delimiter: str, polars: Any = None) -> bytes:
    """Rows as text: the fewest digits that read back as the same numbers."""
    if polars is None or table.dtype.kind != "f":
        return _rows(table, delimiter)
    file = io.BytesIO()
    polars.DataFrame(np.asarray(table, np.float64)).write_csv(file, include_header=False, separator=delimiter)
    text = file.getvalue()
    unlike = np.flatnonzero(~((np.abs(table) >= SHORT_FROM) | (table == 0)).all(1))  # NaN among them
    if not len(unlike):
        return text
    starts = np.append(0, np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + 1)
    ends, begins = starts[unlike + 1], np.append(starts[unlike], len(text))
    parts = [text[: begins[0]]]
    lines = _rows(table[unlike], delimiter).splitlines(keepends=True)
    for line, end, begin in zip(lines, ends.tolist(), begins[1:].tolist(), strict=True):
        parts += [line, text[end:begin]]
    return b"".join(parts)


def _rows(table: Table, delimiter: str) -> bytes:
    lines = [delimiter.join(map(repr, row)) for row in table.tolist()]
    return ("\n".join(lines) + "\n").encode() if lines else b""
