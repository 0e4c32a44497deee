"""Finished rows go in, an archive or a Parquet file made of them comes out; and a path goes in, its sink comes out."""

from __future__ import annotations

import os
import zipfile
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gradcli.batch.points.sinks import HEADER, ArraySink, Columns, Sink, TextSink, header
from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_ROWS = 1 << 16


class GatheredSink(ArraySink):
    """A file of another format, made of the finished rows at the end.

    The rows stay as they are until that file is in its place: who is ended meanwhile makes it again.
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
        """Make the file of the rows, which stand in NumPy's format."""

    def _tables(self, rows: IO[bytes]) -> Iterator[Any]:
        """The rows, some thousands at a time."""
        width = len(self.columns.names)
        rows.seek(HEADER)
        for _ in range(0, self.rows, COPY_ROWS):
            yield np.frombuffer(rows.read(COPY_ROWS * width * 8), dtype=np.float64).reshape(-1, width)


class ArchiveSink(GatheredSink):
    """An array for the value and for each gradient, in one file."""

    def _gather(self, rows: IO[bytes]) -> None:
        with zipfile.ZipFile(self.gathered, "w", zipfile.ZIP_STORED) as archive:
            for name, (where, shape) in self.columns.arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(header((self.rows, *shape)))
                    for table in self._tables(rows):
                        member.write(np.ascontiguousarray(table[:, where]).data)


class ParquetSink(GatheredSink):
    """A Parquet file, written by pyarrow, a group of rows at a time."""

    def begin(self) -> None:
        """Open the file of the rows; GC713 without pyarrow."""
        try:
            self.arrow: Any = import_module("pyarrow")
            self.parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise error("GC713", "Parquet files need pyarrow", help='pip install "gradcli[parquet]"') from None
        super().begin()

    def _gather(self, rows: IO[bytes]) -> None:
        names = list(self.columns.names)
        schema = self.arrow.schema([(name, self.arrow.float64()) for name in names])
        with self.parquet.ParquetWriter(self.gathered, schema, use_dictionary=False) as file:  # hardly two are equal
            for table in self._tables(rows):
                columns = [np.ascontiguousarray(column) for column in table.T]
                file.write_table(self.arrow.table(columns, schema=schema))


SINKS: dict[str, type[Sink]] = {
    ".csv": TextSink, ".tsv": TextSink, ".npy": ArraySink, ".npz": ArchiveSink, ".parquet": ParquetSink,
}  # fmt: skip


def sink_of(path: str, columns: Columns, key: str) -> Sink:
    """The sink for a path; raises GradcliError (GC690) for another ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in SINKS:
        raise error("GC690", f"cannot write {visible(path)}: results end in {', '.join(SINKS)}")
    return SINKS[ending](path, columns, key)
