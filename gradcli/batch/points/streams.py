"""Where the entries of an array lie in a file goes in, blocks of its rows come out; the file is read, never mapped."""

from __future__ import annotations

import zipfile
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.diagnostics import error, visible
from gradcli.execution.data import damaged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO


def require_real(dtype: Any, label: str) -> None:
    """GC615 for complex entries: points are real, and dropping a part of them would be silent."""
    if dtype.kind == "c":
        raise error("GC615", f"{visible(label)} holds complex numbers", help="save their real and imaginary parts")


class Stream(NamedTuple):
    """Where the entries of an array lie, so that blocks of its rows can be read."""

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
                f"{visible(self.label)} keeps its columns behind each other",
                help="save np.ascontiguousarray(x), or one array per leaf in an .npz file",
            )
        inner = self.shape[1:]
        each = prod(inner) * self.dtype.itemsize
        file.seek(self.start + skip * each)
        count = self.shape[0] if self.shape else 1
        for first in range(skip, count, rows):
            here = min(rows, count - first)
            content = file.read(here * each)
            if len(content) != here * each:
                raise damaged(self.label, "it ends too early")
            yield first, np.frombuffer(content, dtype=self.dtype).reshape(here, *inner).astype(np.float64, copy=False)

    def _by_columns(self, file: IO[bytes], rows: int, skip: int) -> Iterator[tuple[int, Any]]:
        """The same where each column lies behind the one before it: a piece of each."""
        count, *inner = self.shape
        width, size = prod(inner), self.dtype.itemsize
        for first in range(skip, count, rows):
            here = min(rows, count - first)
            found = np.empty((width, here))
            for column in range(width):
                file.seek(self.start + (column * count + first) * size)
                content = file.read(here * size)
                if len(content) != here * size:
                    raise damaged(self.label, "it ends too early")
                found[column] = np.frombuffer(content, dtype=self.dtype)
            yield first, np.ascontiguousarray(found.reshape(*reversed(inner), here).T)
