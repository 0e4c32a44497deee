"""Reads NumPy's .npy and .npz files; a header is compared with the size of the file."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import error, visible
from gradcli.lowering.data_files.loading import ELEMENTS, Loaded, check_count, damaged, finished, too_large

if TYPE_CHECKING:
    from typing import IO, BinaryIO

    from gradcli.lowering.data_files.loading import Request

ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError, IndexError
)  # fmt: skip
LONGEST_HEADER = 10_000
MOST_AXES = 32  # NumPy 1 has no more
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): lambda form, header: form.read_array_header_1_0(header),
    (2, 0): lambda form, header: form.read_array_header_2_0(header),
}
PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
END, END_SIZE, LONGEST_COMMENT = b"PK\5\6", 22, 1 << 16
END_64_LOCATOR, LOCATOR_SIZE = b"PK\6\7", 20
LARGEST_DIRECTORY = 1 << 20
BOMB_BYTES, BOMB_RATIO = 64 << 20, 100


def read_npy(file: BinaryIO, request: Request) -> Loaded:
    """The array of an .npy file."""
    return finished(request, read_array(file, os.fstat(file.fileno()).st_size, request, request.path))


def read_npz(file: BinaryIO, request: Request) -> Loaded:
    """The one array of an .npz file, or the one with the wanted name."""
    check_directory(file, request.path)
    try:
        with zipfile.ZipFile(file) as archive:
            member = wanted_member(archive.infolist(), request)
            check_member(member, request.path)
            with archive.open(member) as content:
                label = f"{request.path}:{member.filename}"
                return finished(request, read_array(content, member.file_size, request, label))
    except ZIP_ERRORS as wrong:
        raise damaged(request.path, f"it is not an archive of arrays ({visible(str(wrong))})") from wrong


def read_array(file: IO[bytes], size: int, request: Request, label: str) -> Any:
    """An array in NumPy's format from a stream of `size` bytes."""
    shape, fortran, dtype = read_header(file, label)
    count = prod(shape)
    check_count(label, count, request.elements)
    rest = size - file.tell()
    check_promise(label, count * dtype.itemsize, rest)
    content = file.read(rest)
    if len(content) != rest:
        raise damaged(label, f"it ends after {len(content):,} of {rest:,} bytes")
    array = np.frombuffer(content, dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")


def read_header(file: IO[bytes], label: str) -> tuple[tuple[int, ...], bool, Any]:
    """Read the header: the shape, whether the order is Fortran's, and the type of the entries. The data come next.

    Raises GradcliError: GC614 if there is no header, GC615 for entries that are not numbers.
    """
    form = np.lib.format
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a header written by Python 2, and of old names of types
            version = form.read_magic(file)
            shape, fortran, dtype = HEADERS[version](form, header_of(file, version))
    except OSError:
        raise
    except Exception as wrong:  # NumPy parses a header as Python, which may raise nearly anything
        reason = visible(str(wrong).partition(" on line")[0])  # what follows may be an address
        raise damaged(label, f"it has no header of an .npy file ({reason})") from wrong
    if dtype.hasobject or dtype.kind not in "biufc":
        what = "Python objects" if dtype.hasobject else f"entries of type {visible(str(dtype))}"
        hint = "save each field as an array: np.savez(file, x=..., y=...)" if dtype.names else "save x.astype(float)"
        raise error("GC615", f"{visible(label)} holds {what}, not numbers", help=hint)
    if any(n < 0 for n in shape):
        raise damaged(label, f"the shape {shape} is negative")
    if len(shape) > MOST_AXES:
        raise damaged(label, f"it has {len(shape)} axes")
    if 0 in shape:  # an empty array takes no memory, however long its other axes are
        check_count(label, prod(n or 1 for n in shape), ELEMENTS)
    return shape, fortran, dtype


def check_promise(label: str, promised: int, rest: int) -> None:
    """Raise GC614 if the file does not have the number of bytes that its header says."""
    if promised != rest:
        raise damaged(label, f"the header promises {promised:,} bytes of data, the file has {rest:,}")


def header_of(file: IO[bytes], version: tuple[int, int]) -> BytesIO:
    """The header, which follows its length; raises ValueError for an excessive length."""
    length = file.read(2 if version == (1, 0) else 4)
    if int.from_bytes(length, "little") > LONGEST_HEADER:
        raise ValueError("the header is too long")
    return BytesIO(length + file.read(int.from_bytes(length, "little")))


def check_directory(file: BinaryIO, path: str) -> None:
    """Raise GC614 for an archive without a directory, or GC507 if that is too large to read."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - END_SIZE - LONGEST_COMMENT - LOCATOR_SIZE, 0))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < END_SIZE:
        raise damaged(path, "it is not an archive, or is cut off")
    long_form = tail[max(at - LOCATOR_SIZE, 0) : at].startswith(END_64_LOCATOR)
    if long_form or int.from_bytes(tail[at + 12 : at + 16], "little") > LARGEST_DIRECTORY:
        raise too_large(path, "the archive's directory lists too much")
    file.seek(0)


def wanted_member(members: list[zipfile.ZipInfo], request: Request) -> zipfile.ZipInfo:
    """The archive's array of the wanted name, or its only one; raises GC618 otherwise."""
    arrays = {member.filename[:-4]: member for member in members if member.filename.endswith(".npy")}
    if request.name in arrays:
        return arrays[request.name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    names = ", ".join(visible(name) for name in list(arrays)[:8]) or "no array"
    shown = next((name for name in arrays if name.isidentifier()), "x")
    raise error(
        "GC618",
        f"{visible(request.path)} holds {names}: one array is wanted",
        help=f"give the variable the name of one, as in {visible(shown)} = load(...)",
    )


def check_member(member: zipfile.ZipInfo, path: str) -> None:
    """Raise GC614 for a member that NumPy never writes, GC507 for one that decompresses to far more than it should."""
    if member.flag_bits & 1 or member.compress_type not in PLAIN_METHODS:
        raise damaged(path, "it is encrypted, or packed in a way that NumPy does not write")
    packed, size = member.compress_size, member.file_size
    if size > BOMB_BYTES and size > BOMB_RATIO * max(packed, 1):
        raise too_large(path, f"{packed:,} bytes swell to {size:,}")
