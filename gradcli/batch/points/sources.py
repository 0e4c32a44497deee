"""Files of points, read block by block whatever their size: CSV, NumPy arrays and archives, Parquet.

A block is read, never mapped: pages of a mapped file count as memory of the process. The content of a file is checked
before it is used.
"""

from __future__ import annotations

import csv
import os
import zipfile
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import error, visible
from gradcli.batch.points.column_names import LeafColumns, block_of, grouped, in_order, without_others
from gradcli.lowering.data_files import numpy_files
from gradcli.lowering.data_files.loading import allowed, damaged, ordinary_file, unreadable
from gradcli.lowering.data_files.text_files import is_header

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import IO, BinaryIO

    from gradcli.base.diagnostics import GradcliError

TEXT_BYTES = 1 << 21  # of a block of text
LONGEST_LINE = 1 << 24
PAGES = 1 << 20  # bytes of a column of a Parquet file that are read at once
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LISTED = 8  # arrays in an error
NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")  # types of Parquet columns
SIGNS = (  # how other files begin
    (b"\x1f\x8b", "compressed by gzip", "unpack it first"),
    (b"PK", "a zip archive", "unpack it first; NumPy's archives end in .npz"),
    (b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (b"\x93NUMPY", "an array of NumPy", "let its name end in .npy"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
)
ENDINGS = (*DELIMITERS, ".npy", ".npz", ".parquet")


class Chunk(NamedTuple):
    """Consecutive rows: numbers by leaf, or text still to be parsed, and the place where the next rows begin.

    `line` is the number of the first line of a text, else of the first row.
    """

    leaves: dict[str, Any] | None
    text: bytes
    line: int
    offset: int


class PointSource:
    """A file of points: `groups` are its leaves, `count` the number of rows if that is known beforehand.

    `shown_path` is the path as it was given.
    """

    def __init__(self, path: str, groups: Sequence[LeafColumns], count: int | None, shown_path: str) -> None:
        self.path = path
        self.shown_path = shown_path
        self.groups = tuple(groups)
        self.count = count

    def only(self, names: Collection[str]) -> None:
        """Read the columns of these leaves alone, where that saves work."""

    def chunks(self, rows: int, skip: int, offset: int) -> Iterator[Chunk]:
        """Blocks of about `rows` rows, from row `skip` on, which begins at byte `offset` where that counts."""
        raise TypeError(f"{type(self).__name__} reads no rows")  # every kind below does

    def size(self) -> tuple[int, int]:
        """The size and the time of the last change of the file."""
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns


def opened(path: str, leaves: Callable[[], Sequence[str]]) -> PointSource:
    """The source of a path; `leaves` gives the names for columns without a header.

    Raises GradcliError: GC611 if it cannot be read, GC613 for an unknown ending, GC614 to GC618 for wrong content.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        raise error("GC613", f"files of points end in {', '.join(ENDINGS)}: {visible(path)}")
    place = allowed(path, None)
    try:
        with ordinary_file(place, path) as file:
            if ending in DELIMITERS:
                return TextSource(place, path, file, DELIMITERS[ending], leaves)
            if ending == ".npy":
                return ArraySource(place, path, file, leaves)
            if ending == ".npz":
                return ArchiveSource(place, path, file)
    except OSError as problem:
        raise unreadable(path, (problem.strerror or str(problem)).lower()) from None
    return ParquetSource(place, path)


class TextSource(PointSource):
    """A table of decimals, read in blocks of whole lines."""

    def __init__(
        self, place: str, path: str, file: BinaryIO, delimiter: str, leaves: Callable[[], Sequence[str]]
    ) -> None:
        first = file.readline(LONGEST_LINE).removeprefix(b"\xef\xbb\xbf")
        if not first.strip():
            raise damaged(path, "its first line is empty" if first else "it is empty", "give it a row per point")
        try:
            cells = next(csv.reader([first.decode("utf-8")], delimiter=delimiter), [])
        except UnicodeDecodeError:
            raise not_text(path, first) from None
        except csv.Error as wrong:
            lone = "new-line" in str(wrong)
            reason = "line 1 ends with a carriage return alone" if lone else f"line 1: {visible(str(wrong), 80)}"
            raise damaged(path, reason, "end lines with a line feed" if lone else None) from wrong
        named = is_header(cells)
        groups = grouped(path, cells) if named else in_order(path, leaves(), len(cells), " in the first line")
        super().__init__(place, groups, None, path)
        self.delimiter = delimiter
        self.width = len(cells)
        self.start = file.tell() if named else 0
        self.first_line = 2 if named else 1
        self.wanted = tuple(range(self.width))

    def only(self, names: Collection[str]) -> None:
        self.groups, self.wanted = without_others(self.groups, names)

    def column(self, name: str, entry: int) -> int:
        """The column of an entry of a leaf, counted from 1."""
        return self.wanted[next(group.places[entry] for group in self.groups if group.name == name)] + 1

    def chunks(self, rows: int, skip: int, offset: int) -> Iterator[Chunk]:
        with open(self.path, "rb") as file:
            file.seek(offset or self.start)
            line = self.first_line + skip
            while text := file.read(TEXT_BYTES):
                if not text.endswith(b"\n"):
                    text += file.readline(LONGEST_LINE)
                if text.count(b'"') % 2:  # the last cell goes on behind the end of its line
                    text += rest_of_cell(file)
                yield Chunk(None, text, line, file.tell())
                line += text.count(b"\n")


def rest_of_cell(file: BinaryIO) -> bytes:
    """The lines up to the one that ends a quoted cell, if it has an end."""
    lines = b""
    while len(lines) < LONGEST_LINE and (line := file.readline(LONGEST_LINE)):
        lines += line
        if line.count(b'"') % 2:
            break
    return lines


def not_text(path: str, first: bytes) -> GradcliError:
    """The error GC614 for a file that is not a table, with its kind if its first bytes show it."""
    for sign, what, hint in SIGNS:
        if first.startswith(sign):
            return damaged(path, f"it is {what}, no UTF-8 text", hint)
    return damaged(path, "it is no UTF-8 text")


def require_real(dtype: Any, label: str) -> None:
    """Raise GC615 for complex entries: points are real, and the imaginary part must not be dropped silently."""
    if dtype.kind == "c":
        raise error("GC615", f"{visible(label)} holds complex numbers", help="save their real and imaginary parts")


class Stream(NamedTuple):
    """The place of an array's entries in the file, for reading blocks of its rows."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Any
    start: int
    label: str

    def blocks(self, file: IO[bytes], rows: int, skip: int) -> Iterator[tuple[int, Any]]:
        """The first row and the entries of each block, as floats."""
        if self.fortran and len(self.shape) > 1:
            if file.seekable() and not isinstance(file, zipfile.ZipExtFile):
                yield from self._by_columns(file, rows, skip)
                return
            raise error(
                "GC618",
                f"{visible(self.label)} stores its columns one after the other",
                help="save np.ascontiguousarray(x), or one array per leaf in an .npz file",
            )
        inner = self.shape[1:]
        each = prod(inner) * self.dtype.itemsize
        file.seek(self.start + skip * each)
        count = self.shape[0] if self.shape else 1
        for first in range(skip, count, rows):
            height = min(rows, count - first)
            content = file.read(height * each)
            if len(content) != height * each:
                raise damaged(self.label, "it ends too early")
            yield first, np.frombuffer(content, dtype=self.dtype).reshape(height, *inner).astype(np.float64, copy=False)

    def _by_columns(self, file: IO[bytes], rows: int, skip: int) -> Iterator[tuple[int, Any]]:
        """The same where each column lies behind the one before it: a piece of each."""
        count, *inner = self.shape
        width, size = prod(inner), self.dtype.itemsize
        for first in range(skip, count, rows):
            height = min(rows, count - first)
            columns = np.empty((width, height))
            for column in range(width):
                file.seek(self.start + (column * count + first) * size)
                content = file.read(height * size)
                if len(content) != height * size:
                    raise damaged(self.label, "it ends too early")
                columns[column] = np.frombuffer(content, dtype=self.dtype)
            yield first, np.ascontiguousarray(columns.reshape(*reversed(inner), height).T)


class ArraySource(PointSource):
    """An array in NumPy's format: a row per point."""

    def __init__(self, place: str, path: str, file: BinaryIO, leaves: Callable[[], Sequence[str]]) -> None:
        shape, fortran, dtype = numpy_files.read_header(file, path)
        require_real(dtype, path)
        self.stream = Stream(shape, fortran, dtype, file.tell(), path)
        numpy_files.check_promise(path, prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell())
        width = shape[1] if len(shape) == 2 else 1
        names = leaves()
        if len(shape) > 2 and len(names) == 1:
            groups: Sequence[LeafColumns] = (LeafColumns(names[0], shape[1:], tuple(range(prod(shape[1:])))),)
        elif len(shape) > 2:
            raise error("GC618", f"{visible(path)} has {len(shape)} axes", help="a row per point, a column per leaf")
        else:
            groups = in_order(path, names, width, " by saving an .npz file, an array for each leaf")
        super().__init__(place, groups, shape[0] if shape else 1, path)

    def chunks(self, rows: int, skip: int, offset: int) -> Iterator[Chunk]:
        with open(self.path, "rb") as file:
            for start, table in self.stream.blocks(file, rows, skip):
                yield Chunk(block_of(self.groups, table.reshape(len(table), -1)), b"", start + 1, 0)


class ArchiveSource(PointSource):
    """Several arrays in one file, one for each leaf, with the points along their first axis."""

    def __init__(self, place: str, path: str, file: BinaryIO) -> None:
        numpy_files.check_directory(file, path)
        self.streams: dict[str, tuple[str, Stream]] = {}
        groups = []
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    if not member.filename.endswith(".npy"):
                        continue
                    numpy_files.check_member(member, path)
                    name, label = member.filename[:-4], f"{path}:{member.filename}"
                    with archive.open(member) as content:
                        shape, fortran, dtype = numpy_files.read_header(content, label)
                        require_real(dtype, label)
                        numpy_files.check_promise(
                            label, prod(shape) * dtype.itemsize, member.file_size - content.tell()
                        )
                        self.streams[name] = member.filename, Stream(shape, fortran, dtype, content.tell(), label)
                    groups.append(LeafColumns(name, shape[1:], ()))
        except numpy_files.ZIP_ERRORS as wrong:
            raise damaged(path, f"it is not an archive of arrays ({visible(str(wrong))})") from wrong
        if not self.streams:
            raise damaged(path, "it holds no array")
        counts = {stream.shape[0] if stream.shape else 1 for _, stream in self.streams.values()}
        if len(counts) != 1:
            few = list(self.streams.items())[:LISTED]
            shown_path = ", ".join([f"{visible(name)} has {s.shape[0] if s.shape else 1}" for name, (_, s) in few])
            raise error(
                "GC617",
                f"the arrays of {visible(path)} have different numbers of points: {shown_path}",
                help="the first axis counts points; give what all points share with --at",
            )
        super().__init__(place, groups, counts.pop(), path)

    def chunks(self, rows: int, skip: int, offset: int) -> Iterator[Chunk]:
        with zipfile.ZipFile(self.path) as archive:
            files = {name: archive.open(member) for name, (member, _) in self.streams.items()}
            try:
                walks = {name: self.streams[name][1].blocks(file, rows, skip) for name, file in files.items()}
                for parts in zip(*walks.values(), strict=True):
                    yield Chunk(dict(zip(walks, [part for _, part in parts], strict=True)), b"", parts[0][0] + 1, 0)
            finally:
                for file in files.values():
                    file.close()


class ParquetSource(PointSource):
    """A Parquet file; pyarrow reads it, from the extra `parquet`: page by page, else it would keep what it has read."""

    def __init__(self, place: str, path: str) -> None:
        try:
            self.module: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise error("GC713", "Parquet files need pyarrow", help='pip install "gradcli[parquet]"') from None
        try:
            with self.module.ParquetFile(place) as file:
                names, count = list(file.schema_arrow.names), file.metadata.num_rows
        except (OSError, ValueError) as wrong:
            raise damaged(path, visible(str(wrong), 200)) from wrong
        super().__init__(place, grouped(path, names), count, path)
        self.columns = names

    def only(self, names: Collection[str]) -> None:
        self.groups, places = without_others(self.groups, names)
        self.columns = [self.columns[place] for place in places]

    def chunks(self, rows: int, skip: int, offset: int) -> Iterator[Chunk]:
        first = 0
        with self.module.ParquetFile(self.path, pre_buffer=False, buffer_size=PAGES) as file:
            for batch in self._batches(file, rows):
                last = first + batch.num_rows
                if last > skip:
                    table = self._numbers(batch)[max(0, skip - first) :]
                    yield Chunk(block_of(self.groups, table), b"", max(first, skip) + 1, 0)
                first = last

    def _batches(self, file: Any, rows: int) -> Iterator[Any]:
        try:
            yield from file.iter_batches(batch_size=rows, columns=self.columns)
        except (OSError, ValueError) as wrong:  # pages behind a sound directory
            raise damaged(self.shown_path, visible(str(wrong).strip(), 200)) from wrong

    def _numbers(self, batch: Any) -> Any:
        columns = []
        for name in self.columns:
            column = batch.column(name)
            if not str(column.type).startswith(NUMERIC):
                raise error(
                    "GC615",
                    f"{visible(self.shown_path)}: column {visible(name)} holds {column.type}, not numbers",
                    help="store it as float64",
                )
            try:
                columns.append(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64))
            except (TypeError, ValueError):
                raise error("GC615", f"{visible(self.shown_path)}: column {visible(name)} holds no numbers") from None
        return np.column_stack(columns)
