"""Files that mean harm: each is refused within a second and 256 MB, by a diagnostic of its own."""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import time
import tracemalloc
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.lowering.data_files.loading import load_array, ordinary_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS, BYTES = 1.0, 256 << 20
MAGIC = b"\x93NUMPY"


def header(text: str, version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    size = len(text) if length is None else length
    return MAGIC + bytes(version) + size.to_bytes(2 if version == (1, 0) else 4, "little") + text.encode()


def described(shape: str, kind: str = "'<f8'") -> bytes:
    return header(f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n")


def sparse(path: Path, start: bytes, size: int) -> None:
    """A file of `size` bytes that takes no place on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


def archive(path: Path, member: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr(member, content)


class Harm:
    """What a pickle would do if somebody opened it."""

    def __reduce__(self) -> Any:
        return os.abort, ()


def object_array(path: Path) -> None:
    np.save(path, np.array([Harm()], dtype=object), allow_pickle=True)


def object_archive(path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Harm()], dtype=object), allow_pickle=True)
    archive(path, "x.npy", buffer.getvalue())


def zip_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made, made.open("x.npy", "w") as file:
        start = described("(33554432,)")
        file.write(start)
        for _ in range(64):
            file.write(bytes(4 << 20))


def lying_member(path: Path) -> None:
    """The directory of the archive promises less than the member's header."""
    archive(path, "x.npy", described("(100000000,)") + bytes(64))


def huge_directory(path: Path) -> None:
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 3_000_000_000, 0, 0)
    path.write_bytes(bytes(4096) + end)


def long_directory(path: Path) -> None:
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1 << 40, 1 << 40, 1 << 40, 0)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, 0, 1)
    path.write_bytes(record + locator + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0, 0, 0, 0, 0))


def many_members(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as made:
        for index in range(30_000):
            made.writestr(f"{index}.npy", b"")


def broken_member(path: Path) -> None:
    archive(path, "x.npy", described("(1000,)") + np.random.default_rng(0).bytes(8000))
    content = bytearray(path.read_bytes())
    content[200:300] = bytes(100)
    path.write_bytes(bytes(content))


def encrypted(path: Path) -> None:
    archive(path, "x.npy", described("(1,)") + bytes(8))
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.rfind(b"PK\1\2") + 8] |= 1
    path.write_bytes(bytes(content))


HOSTILE: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    # name: code, ending, what writes the file
    "objects": ("GC615", ".npy", object_array),
    "objects in an archive": ("GC615", ".npz", object_archive),
    "a pickle with another ending": ("GC614", ".npy", lambda p: p.write_bytes(pickle.dumps(Harm()))),
    "text entries": ("GC615", ".npy", lambda p: np.save(p, np.array(["a"]))),
    "dates": ("GC615", ".npy", lambda p: np.save(p, np.array(["2020-01-01"], dtype="M8[D]"))),
    "records": ("GC615", ".npy", lambda p: np.save(p, np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]))),
    "a shape of a petabyte": ("GC507", ".npy", lambda p: p.write_bytes(described("(1000000, 1000000, 1000)"))),
    "a shape larger than the file": ("GC614", ".npy", lambda p: p.write_bytes(described("(1000,)") + bytes(64))),
    "a shape that overflows": ("GC507", ".npy", lambda p: p.write_bytes(described(f"({2**64}, {2**64})"))),
    "a shape with a negative size": ("GC614", ".npy", lambda p: p.write_bytes(described("(-1, -8)") + bytes(64))),
    "a shape of zeros and more": ("GC614", ".npy", lambda p: p.write_bytes(described("(0, 1000)") + bytes(64))),
    "more than one array": ("GC614", ".npy", lambda p: p.write_bytes(2 * (described("(1,)") + bytes(8)))),
    "a sparse file of a terabyte": ("GC507", ".npy", lambda p: sparse(p, described(f"({2**37},)"), 2**40)),
    "a header of 4 GB": ("GC614", ".npy", lambda p: sparse(p, header("", (2, 0), 2**32 - 1), 2**33)),
    "a header of nested brackets": ("GC614", ".npy", lambda p: p.write_bytes(header("(" * 5000 + ")" * 5000 + "\n"))),
    "a header that is a program": ("GC614", ".npy", lambda p: p.write_bytes(header("__import__('os').abort()\n"))),
    "a header with a long number": ("GC614", ".npy", lambda p: p.write_bytes(described(f"(1{'0' * 6000},)"))),
    "a header without an end": ("GC614", ".npy", lambda p: p.write_bytes(header("[" * 5000 + "\n"))),
    "a header that is a text without an end": ("GC614", ".npy", lambda p: p.write_bytes(header("'''\n"))),
    "a header of minus signs": ("GC614", ".npy", lambda p: p.write_bytes(header("-" * 9000 + "1\n"))),
    "a type that is an empty tuple": ("GC614", ".npy", lambda p: p.write_bytes(described("(3,)", "()"))),
    "a long axis beside none": ("GC507", ".npy", lambda p: p.write_bytes(described(f"(0, {2**63 - 1})"))),
    "a product that overflows beside none": ("GC507", ".npy", lambda p: p.write_bytes(described(f"({2**62}, 4, 0)"))),
    "seventy axes": ("GC614", ".npy", lambda p: p.write_bytes(described(f"({'1,' * 70})") + bytes(8))),
    "an unknown version": ("GC614", ".npy", lambda p: p.write_bytes(header("{}", (9, 9)))),
    "an empty array file": ("GC614", ".npy", lambda p: p.write_bytes(b"")),
    "half a magic": ("GC614", ".npy", lambda p: p.write_bytes(MAGIC[:4])),
    "a zip bomb": ("GC507", ".npz", zip_bomb),
    "a member that lies": ("GC614", ".npz", lying_member),
    "a member that swells beyond the limit": (
        "GC507",
        ".npz",
        lambda p: archive(p, "x.npy", described("(999999999,)") + bytes(1 << 20)),
    ),
    "a directory of gigabytes": ("GC507", ".npz", huge_directory),
    "a directory in the long form": ("GC507", ".npz", long_directory),
    "thirty thousand members": ("GC507", ".npz", many_members),
    "a damaged member": ("GC614", ".npz", broken_member),
    "an encrypted member": ("GC614", ".npz", encrypted),
    "a member packed otherwise": (
        "GC614",
        ".npz",
        lambda p: archive(p, "x.npy", described("(1,)") + bytes(8), zipfile.ZIP_LZMA),
    ),
    "an archive cut off": ("GC614", ".npz", lambda p: p.write_bytes(b"PK\3\4" + bytes(1000))),
    "an empty archive": ("GC614", ".npz", lambda p: p.write_bytes(b"")),
    "a member that leaves the folder": ("GC618", ".npz", lambda p: archive(p, "../../etc/passwd", b"x")),
    "a line without an end": ("GC507", ".csv", lambda p: p.write_bytes(b"1" * (9 << 20))),
    "a sparse table": ("GC507", ".csv", lambda p: sparse(p, b"1,2\n", 2**40)),
    "a cell without an end": ("GC614", ".csv", lambda p: p.write_bytes(b'1,"' + b"2\n" * (1 << 20))),
    "a line of millions of cells": ("GC507", ".csv", lambda p: p.write_bytes(b"12," * (3 << 20))),
    "NUL characters": ("GC614", ".csv", lambda p: p.write_bytes(b"1,2\n3,\0\n")),
    "UTF-16": ("GC614", ".csv", lambda p: p.write_bytes("1,2\n".encode("utf-16"))),
    "Latin-1": ("GC614", ".csv", lambda p: p.write_bytes("größe\n1\n".encode("latin-1"))),
    "an image": ("GC614", ".csv", lambda p: p.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")),
    "a formula": ("GC616", ".csv", lambda p: p.write_bytes(b"1,=cmd|' /C calc'!A0\n")),
    "deep JSON": ("GC614", ".json", lambda p: p.write_bytes(b"[" * 900_000)),
    "JSON of millions of lists": ("GC507", ".json", lambda p: p.write_bytes(b"[" + b"[]," * 5_000_000 + b"[]]")),
    "JSON of many bytes": ("GC507", ".json", lambda p: sparse(p, b"[1", 2**40)),
    "JSON with a long number": ("GC614", ".json", lambda p: p.write_bytes(b"[1" + b"0" * 100_000 + b"]")),
    "JSON that is not UTF-8": ("GC614", ".json", lambda p: p.write_bytes(b'["\xff"]')),
    "a folder": ("GC611", ".csv", lambda p: p.mkdir()),
    "nothing": ("GC611", ".csv", lambda p: None),
    "a link to itself": ("GC611", ".csv", lambda p: p.symlink_to(p)),
    "a link to nothing": ("GC611", ".csv", lambda p: p.symlink_to(p.parent / "nowhere")),
    "a link to a device": ("GC611", ".csv", lambda p: p.symlink_to("/dev/zero")),
}


def code_within_bounds(action: Callable[[], object]) -> str:
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(GradcliError) as caught:
            action()
        seconds = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seconds < SECONDS
    assert peak < BYTES
    (problem,) = caught.value.diagnostics
    assert problem.message.isprintable()
    assert len(problem.message) < 300
    return problem.code


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, name: str) -> None:
    code, ending, write = HOSTILE[name]
    path = tmp_path / f"data{ending}"
    write(path)
    assert code_within_bounds(lambda: load_array(str(path))) == code


def test_pipes_and_sockets_do_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert code_within_bounds(lambda: load_array(str(tmp_path / "pipe.csv"))) == "GC611"
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.csv")
        assert code_within_bounds(lambda: load_array("socket.csv")) == "GC611"


def test_a_file_exchanged_for_a_pipe_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.csv"
    path.write_text("1\n")
    true_stat = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_, **__: true_stat)
    assert code_within_bounds(lambda: ordinary_file(str(path), "data.csv")) == "GC611"


def test_a_file_that_vanishes_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.csv"
    path.write_text("1\n")
    true_stat = os.stat(path)
    path.unlink()
    monkeypatch.setattr(os, "stat", lambda *_, **__: true_stat)
    assert code_within_bounds(lambda: load_array(str(path))) == "GC611"


def test_paths_that_are_no_paths() -> None:
    for path in ("a\0b.csv", "x" * 5000 + ".csv", "\ud800.csv", "a\n\x1b[31m.csv"):
        assert code_within_bounds(lambda path=path: load_array(path)) == "GC611"


def test_the_limit_on_elements(tmp_path: Path) -> None:
    class Limits:
        elements = 5

    for ending, write in {
        ".npy": lambda p: np.save(p, np.ones(6)),
        ".npz": lambda p: np.savez(p, x=np.ones((2, 3))),
        ".csv": lambda p: p.write_text("1,2\n3,4\n5,6\n"),
        ".json": lambda p: p.write_text("[[1,2,3],[4,5,6]]"),
    }.items():
        path = tmp_path / f"x{ending}"
        write(path)
        assert code_within_bounds(lambda path=path: load_array(str(path), limits=Limits)) == "GC507"
        assert load_array(str(path)).size == 6
    assert load_array(str(tmp_path / "x.csv"), column=0, limits=Limits).tolist() == [1, 3, 5]
