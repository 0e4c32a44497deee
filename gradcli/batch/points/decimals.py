"""Tables of decimals: text to arrays and back; the error for a cell that is not a number gives its line and column.

These functions run in worker processes: reading and writing decimals takes longer than computing with them.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Table = NDArray[np.float64]


MISSING = ("", "na", "n/a", "null", "none", "missing", "<na>")


def parsed(text: bytes, delimiter: str, count: int, path: str, line: int, wanted: Sequence[int] | None = None) -> Table:
    """The numbers of whole lines, [rows, count]; `line` is the number of the first one.

    Only `wanted` columns are read; the content of other columns does not matter.

    Raises GradcliError: GC617 for a row of another length, GC616 for a cell that is not a number.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    columns = range(count) if wanted is None else wanted
    quick = _quick(text, delimiter.encode(), count, columns)
    return _careful(text, delimiter, count, path, line, columns) if quick is None else quick


def _quick(text: bytes, delimiter: bytes, count: int, columns: Sequence[int]) -> Table | None:
    """All cells at once, if every line has its delimiters and nothing is quoted; None if lines must be read singly."""
    if b'"' in text or b"_" in text or b"\r" in text.replace(b"\r\n", b"\n") or not text.isascii():
        return None
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(raw == 10)
    commas = np.flatnonzero(raw == delimiter[0])
    if len(commas) != (count - 1) * len(ends):
        return None
    if count > 1 and (np.searchsorted(commas, ends) != np.arange(1, len(ends) + 1) * (count - 1)).any():
        return None
    cells = text.replace(b"\n", delimiter).split(delimiter)
    cells.pop()
    try:
        if len(columns) == count:
            return np.array(cells, dtype="S").astype(np.float64).reshape(len(ends), count)
        return np.column_stack([np.array(cells[place::count], dtype="S").astype(np.float64) for place in columns])
    except ValueError:
        return None


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


def parsed_or_problem(
    text: bytes, delimiter: str, count: int, path: str, line: int, wanted: Sequence[int] | None = None
) -> Table | Diagnostic:
    """The same for another process: an error comes back as its diagnostic."""
    try:
        return parsed(text, delimiter, count, path, line, wanted)
    except GradcliError as problem:
        return problem.diagnostics[0]


def written(table: Table, delimiter: str) -> bytes:
    """Rows as text: the fewest digits that read back as the same numbers."""
    lines = [delimiter.join(map(repr, row)) for row in table.tolist()]
    return ("\n".join(lines) + "\n").encode() if lines else b""
