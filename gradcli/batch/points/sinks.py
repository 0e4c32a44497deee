"""The files that results are written to: CSV, NumPy arrays and archives, Parquet.

A file is written next to its place and moved there when it is complete. An unfinished file is called FILE.part; next to
it, FILE.part.json records the question and how far it goes, so that a run of the same question continues from there.
"""

from __future__ import annotations

import json
import os
import zipfile
from errno import EACCES, EISDIR, ENOENT, ENOSPC
from importlib import import_module
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

HEADER = 128  # bytes of an .npy header, whatever the shape
COPY_ROWS = 1 << 16


class ResultColumns(NamedTuple):
    """The results of one point: names of columns, by name of an array its columns and shape, and the type of all."""

    names: tuple[str, ...]
    arrays: Mapping[str, tuple[slice, tuple[int, ...]]]
    dtype: str = "<f8"


def recorded_columns(columns: ResultColumns) -> dict[str, Any]:
    """Columns as the record of an unfinished file keeps them, for a run that finds all rows written."""
    arrays = {name: [where.start, where.stop, list(shape)] for name, (where, shape) in columns.arrays.items()}
    return {"names": list(columns.names), "arrays": arrays, "dtype": columns.dtype}


def read_columns(kept: dict[str, Any]) -> ResultColumns:
    """The columns that a record keeps."""
    arrays = {name: (slice(start, stop), tuple(shape)) for name, (start, stop, shape) in kept["arrays"].items()}
    return ResultColumns(tuple(kept["names"]), arrays, kept["dtype"])


class Sink:
    """A file that grows by rows; `raw` says whether rows come as bytes of text or as a table of numbers."""

    delimiter: str | None = None  # of a text

    def __init__(self, path: str, columns: ResultColumns, key: str) -> None:
        self.path = path
        self.columns = columns
        self.key = key
        self.part, self.record = f"{path}.part", f"{path}.part.json"
        self.rows = 0  # that are written
        self.offset = 0  # of the source, where the next row begins
        self.file: IO[bytes] | None = None

    def begin(self) -> None:
        """Open the file, or continue an unfinished one of the same question.

        Raises GC690 if neither is possible, or if another run is writing the file.
        """
        try:
            if os.path.isdir(self.path):
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self.file = os.fdopen(os.open(self.part, flags, 0o666), "r+b")  # closed by `finish` or `leave`
        except OSError as problem:
            raise cannot(self.path, problem) from None
        if not self._locked():
            self.leave()
            hint = "wait until it ends, or choose another file"
            raise error("GC690", f"cannot write {visible(self.path, 200)}: another run is writing it", help=hint)
        try:
            if not self._continues():
                self.file.truncate(0)
                self._head()
        except OSError as problem:
            self.discard()
            raise cannot(self.path, problem) from None

    def _locked(self) -> bool:
        """Whether the unfinished file is this run's alone. The system takes the lock of a run that is killed."""
        assert self.file is not None
        try:
            locks: Any = import_module("fcntl")
            locks.flock(self.file, locks.LOCK_EX | locks.LOCK_NB)
            return os.path.samestat(os.stat(self.part), os.fstat(self.file.fileno()))  # else it has been finished
        except (BlockingIOError, FileNotFoundError):
            return False
        except (ImportError, OSError):  # there are no locks here
            return True

    def resume_point(self) -> tuple[int, int]:
        """The rows of an unfinished file of the same question, and where its source continues; zeros without one."""
        record = self._record()
        return (0, 0) if record is None else (record["rows"], record["offset"])

    def _record(self) -> dict[str, Any] | None:
        try:
            with open(self.record, encoding="utf-8") as text:
                known: dict[str, Any] = json.load(text)
            fits = known["key"] == self.key and os.path.getsize(self.part) >= known["bytes"]
            known["columns"] = read_columns(known["columns"])
            return known if fits and known["rows"] >= 0 and known["offset"] >= 0 else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _continues(self) -> bool:
        known = self._record()
        if known is None:
            return False
        assert self.file is not None
        self.file.truncate(known["bytes"])
        self.file.seek(known["bytes"])
        self.rows, self.offset, self.columns = known["rows"], known["offset"], known["columns"]
        return True

    def _head(self) -> None:
        """The bytes before the rows."""

    def write(self, content: Any, rows: int, offset: int) -> None:
        """Add rows; raises GC690 if the disk is full."""
        assert self.file is not None
        try:
            self.file.write(content if isinstance(content, bytes) else self._bytes(content))
            self.file.flush()
            self.rows, self.offset = self.rows + rows, offset
            known = {"key": self.key, "rows": self.rows, "bytes": self.file.tell(), "offset": offset}
            known["columns"] = recorded_columns(self.columns)
            with open(f"{self.record}.new", "w", encoding="utf-8") as text:
                json.dump(known, text)
            os.replace(f"{self.record}.new", self.record)
        except OSError as problem:
            raise cannot(self.path, problem) from None

    def _bytes(self, table: Any) -> Any:
        """The numbers of a table in the type that the header names."""
        return np.ascontiguousarray(table, dtype=self.columns.dtype).data

    def finish(self) -> None:
        """Move the whole file to its place."""
        assert self.file is not None
        try:
            whole = self._end()
            self.file.close()
            os.replace(whole, self.path)
            self._clear()
        except OSError as problem:
            raise cannot(self.path, problem) from None

    def _end(self) -> str:
        """Write what is only known when all rows are written; returns the name of the complete file."""
        return self.part

    def _passing(self) -> tuple[str, ...]:
        """The files that exist only until the complete file is in its place."""
        return self.part, self.record

    def _clear(self) -> None:
        for path in self._passing():
            if os.path.exists(path):
                os.remove(path)

    def discard(self) -> None:
        """Close an unfinished file and remove it."""
        self.leave()
        self._clear()

    def leave(self) -> None:
        """Close an unfinished file and keep it, so that a later run can continue it."""
        if self.file is not None:
            self.file.close()


class TextSink(Sink):
    """A table of decimals with a header."""

    def __init__(self, path: str, columns: ResultColumns, key: str) -> None:
        super().__init__(path, columns, key)
        self.delimiter = "\t" if path.lower().endswith(".tsv") else ","

    def _head(self) -> None:
        assert self.file is not None and self.delimiter is not None
        self.file.write(heading(self.columns, self.delimiter))


def heading(columns: ResultColumns, delimiter: str) -> bytes:
    """The first line of a table."""
    quoted = [f'"{name}"' if delimiter in name else name for name in columns.names]
    return (delimiter.join(quoted) + "\n").encode()


class ArraySink(Sink):
    """An array [points, columns] in NumPy's format; the number of points is written at the end."""

    def _head(self) -> None:
        assert self.file is not None
        self.file.write(header((0, len(self.columns.names)), self.columns.dtype))

    def _end(self) -> str:
        assert self.file is not None
        self.file.seek(0)
        self.file.write(header((self.rows, len(self.columns.names)), self.columns.dtype))
        return self.part


def header(shape: Sequence[int], dtype: str) -> bytes:
    """A header of NumPy's format in HEADER bytes, for numbers in rows."""
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": tuple(shape)})
    text = file.getvalue()
    assert len(text) <= HEADER and prod(shape) >= 0
    padded = text[10:].rstrip(b"\n ").ljust(HEADER - 11) + b"\n"
    return text[:8] + len(padded).to_bytes(2, "little") + padded


class GatheredSink(ArraySink):
    """A file of another format, which is written from the finished rows at the end.

    The rows are kept until that file is in its place, so an interrupted run can write it again.
    """

    def _passing(self) -> tuple[str, ...]:
        return *super()._passing(), self.gathered

    @property
    def gathered(self) -> str:
        """The path of the file that is being made of the rows."""
        return f"{self.part}.whole"

    def _end(self) -> str:
        assert self.file is not None
        with open(self.part, "rb") as rows:
            self._gather(rows)
        return self.gathered

    def _gather(self, rows: IO[bytes]) -> None:
        """Write the file from the rows, which are in NumPy's format."""

    def _tables(self, rows: IO[bytes]) -> Iterator[Any]:
        """The rows, some thousands at a time."""
        dtype, width = np.dtype(self.columns.dtype), len(self.columns.names)
        rows.seek(HEADER)
        for _ in range(0, self.rows, COPY_ROWS):
            yield np.frombuffer(rows.read(COPY_ROWS * width * dtype.itemsize), dtype=dtype).reshape(-1, width)


class ArchiveSink(GatheredSink):
    """An array for the value and for each gradient, in one file."""

    def _gather(self, rows: IO[bytes]) -> None:
        with zipfile.ZipFile(self.gathered, "w", zipfile.ZIP_STORED) as archive:
            for name, (where, shape) in self.columns.arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(header((self.rows, *shape), self.columns.dtype))
                    for table in self._tables(rows):
                        member.write(self._bytes(table[:, where]))


class ParquetSink(GatheredSink):
    """A Parquet file, written by pyarrow, a group of rows at a time."""

    def begin(self) -> None:
        """Open the file of the rows; raises GC713 without pyarrow."""
        try:
            self.arrow: Any = import_module("pyarrow")
            self.parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise error("GC713", "Parquet files need pyarrow", help='pip install "gradcli[parquet]"') from None
        super().begin()

    def _gather(self, rows: IO[bytes]) -> None:
        kind = self.arrow.from_numpy_dtype(self.columns.dtype)
        schema = self.arrow.schema([(name, kind) for name in self.columns.names])
        with self.parquet.ParquetWriter(self.gathered, schema, use_dictionary=False) as file:  # few values are equal
            for table in self._tables(rows):
                columns = [np.ascontiguousarray(column) for column in table.T]
                file.write_table(self.arrow.table(columns, schema=schema))


SINKS: dict[str, type[Sink]] = {
    ".csv": TextSink, ".tsv": TextSink, ".npy": ArraySink, ".npz": ArchiveSink, ".parquet": ParquetSink,
}  # fmt: skip


def sink_of(path: str, columns: ResultColumns, key: str) -> Sink:
    """The sink for a path; raises GradcliError (GC690) for another ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in SINKS:
        raise error("GC690", f"cannot write {visible(path)}: results end in {', '.join(SINKS)}")
    return SINKS[ending](path, columns, key)


ADVICE = {  # by the number of the error
    ENOENT: "make the folder first",
    ENOSPC: "make room on the disk, or write to another one",
    EACCES: "choose a folder where you may write",
    EISDIR: "choose another name",
}


def cannot(path: str, problem: OSError) -> Exception:
    """The error GC690 for a file that cannot be written."""
    reason = (problem.strerror or str(problem)).lower()
    return error("GC690", f"cannot write {visible(path, 200)}: {reason}", help=ADVICE.get(problem.errno or 0))
