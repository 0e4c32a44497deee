"""Hostile files of points, full disks and killed processes: an error with a place, no traceback, nothing half-written."""

from __future__ import annotations

import importlib
import io
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.points import answer_points

ENTRY = "import sys; from gradcli.interfaces.cli import entry; sys.exit(entry())"

TEXTS: dict[str, tuple[bytes, str, str]] = {
    "several empty lines at the end": (b"x,y\n1,2\n\n\n \n", "GC617", ":3 is empty"),
    "an empty first line": (b"\nx,y\n1,2\n", "GC614", "its first line is empty"),
    "nothing but line ends": (b"\n\n", "GC614", "first line is empty"),
    "a remark as a header": (b"# c\nx,y\n1,2\n", "GC618", "the file has # c"),
    "carriage returns alone": (b"x,y\r1,2\r3,4\r", "GC614", "carriage return alone"),
    "NUL": (b"x,y\n1,\x002\n", "GC616", "in.csv:2, column 2"),
    "an open quote": (b'x,y\n1,"2\n3,4\n', "GC616", "column 2"),
    "UTF-16": ("x,y\n1,2\n".encode("utf-16"), "GC614", "UTF-8"),
    "bytes that are no UTF-8": (b"x,y\n1,2\n\xff\xfe,3\n", "GC614", "UTF-8"),
    "a hexadecimal number": (b"x,y\n0x10,2\n", "GC616", "in.csv:2, column 1: '0x10' is not a number"),
    "digits of another script": ("x,y\n\u0661,2\n".encode(), "GC616", "in.csv:2, column 1"),
    "a formula of a spreadsheet": (b"x,y\n=1+1,2\n", "GC616", "'=1+1' is not a number"),
    "a decimal comma": (b'x,y\n"1,5",2\n', "GC616", "'1,5' is not a number"),
    "a word for nothing": (b"x,y\nNA,2\n", "GC616", "'NA' is not a number"),
    "semicolons": (b"x;y\n1;2\n", "GC618", "the file has x;y"),
    "tabs in a .csv": (b"x\ty\n1\t2\n", "GC618", "the file has x\\x09y"),
    "a control sequence in a name": (b"x,\x1b[31my\n1,2\n", "GC202", "\\x1b[31my"),
    "text that runs backwards in a name": ("x,\u202ey\n1,2\n".encode(), "GC202", "\\u202ey"),
    "a column without a name": (b"x,\n1,2\n", "GC202", "it has x, column 2"),
    "an array with holes": (b"w[3],y\n1,2\n", "GC618", "not a whole array"),
    "an index below 0": (b"w[-1],y\n1,2\n", "GC202", "it has w[-1], y"),
    "thousands of columns": (b",".join(b"a%d" % i for i in range(3000)) + b"\n", "GC618", "no column belongs"),
    "noise": (np.random.default_rng(1).bytes(4000), "GC614", "UTF-8"),
    "a last line that is longer": (b"x,y\n" + b"1,2\n" * 1000 + b"1,2,3\n", "GC617", "in.csv:1002 has 3 cells"),
    "a last cell that is text": (b"x,y\n" + b"1,2\n" * 9000 + b"1,zz\n", "GC616", "in.csv:9002, column 2: 'zz'"),
    "a cell of a million characters": (b"x,y\n1,z" + b"2" * 1_000_000 + b"\n", "GC614", "in.csv:2 is damaged"),
    "empty cells": (b"x,y\n1,2\n,\n", "GC616", "in.csv:3, column 1: the cell is empty"),
    "a header alone": (b"x,y", "GC614", "holds no point"),
}


def array_file(array: Any, **options: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array, **options)
    return content.getvalue()


def header_only(shape: str, data: bytes = b"") -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def archive(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, inside in members.items():
            made.writestr(f"{name}.npy", inside)
    return content.getvalue()


THREE = array_file(np.ones(3))
TWO_COLUMNS = array_file(np.ones((5, 2)))
BINARY: dict[str, tuple[bytes, str]] = {
    "a header of 2**40 rows.npy": (header_only("(1099511627776, 2)"), "GC614"),
    "a negative size.npy": (header_only("(-1, 2)", b"\0" * 16), "GC614"),
    "code in the header.npy": (header_only("(__import__('os').getpid(), 2)"), "GC614"),
    "cut off.npy": (TWO_COLUMNS[:-5], "GC614"),
    "too long.npy": (TWO_COLUMNS + b"xxx", "GC614"),
    "of a later version.npy": (b"\x93NUMPY\x09\x00" + TWO_COLUMNS[8:], "GC614"),
    "empty.npy": (b"", "GC614"),
    "objects.npy": (array_file(np.array([[{}, 1]], dtype=object), allow_pickle=True), "GC615"),
    "text.npy": (array_file(np.array([["a", "b"]])), "GC615"),
    "dates.npy": (array_file(np.array([["2020-01-01"] * 2], dtype="M8[D]")), "GC615"),
    "records.npy": (array_file(np.zeros(3, dtype=[("x", "f8"), ("y", "f8")])), "GC615"),
    "complex.npy": (array_file(np.ones((3, 2), complex)), "GC615"),
    "no rows.npy": (array_file(np.zeros((0, 2))), "GC614"),
    "one number.npy": (array_file(np.float64(3)), "GC618"),
    "of different lengths.npz": (archive(x=THREE, y=array_file(np.ones(4))), "GC617"),
    "without y.npz": (archive(x=THREE), "GC202"),
    "of no arrays.npz": (archive(), "GC614"),
    "out of its folder.npz": (archive(**{"../x": THREE, "y": THREE}), "GC202"),
    "a bomb.npz": (archive(x=header_only("(10000000,)", b"\0" * 80_000_000), y=THREE), "GC507"),
    "cut off.npz": (archive(x=THREE, y=THREE)[:-30], "GC614"),
    "of objects.npz": (archive(x=array_file(np.array([{}]), allow_pickle=True), y=THREE), "GC615"),
    "complex.npz": (archive(x=array_file(np.ones(3, complex)), y=THREE), "GC615"),
    "no rows.npz": (archive(x=array_file(np.zeros(0)), y=array_file(np.zeros(0))), "GC614"),
    "text.parquet": (b"hello", "GC614"),
    "empty.parquet": (b"", "GC614"),
}


def refused(path: Path, out: Path, code: str, told: str = "") -> None:
    """The file ends in this error, soon, and nothing stands beside it afterwards."""
    start = time.process_time()
    with pytest.raises(GradcliError) as problem:
        answer_points("x*y", str(path), str(out))
    first = problem.value.diagnostics[0]
    assert first.code == code, first.message
    assert told in first.message
    assert "\x1b" not in first.message and len(first.message) < 600
    assert [one.name for one in out.parent.iterdir()] == [path.name], "nothing half-written"
    assert time.process_time() - start < 5


@pytest.mark.parametrize("out", [".csv", ".npz"])
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_tables(name: str, out: str, tmp_path: Path) -> None:
    content, code, told = TEXTS[name]
    (tmp_path / "in.csv").write_bytes(content)
    refused(tmp_path / "in.csv", tmp_path / f"out{out}", code, told)


@pytest.mark.parametrize("name", BINARY)
def test_hostile_arrays(name: str, tmp_path: Path) -> None:
    content, code = BINARY[name]
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, tmp_path / "out.npy", code)


def test_hostile_parquet(tmp_path: Path) -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    write = importlib.import_module("pyarrow.parquet").write_table
    y = [1.0, 2.0]
    columns = {
        "GC615": [["a", "b"], [[1.0], [2.0]], arrow.array([1, 2], arrow.timestamp("s")), arrow.array([b"1", b"2"])],
        "GC614": [],
    }
    for code, cases in columns.items():
        for x in cases:
            write(arrow.table({"x": x, "y": y}), tmp_path / "in.parquet")
            refused(tmp_path / "in.parquet", tmp_path / "out.csv", code, "column x holds")
    write(arrow.table({"x": y, "y": y}), tmp_path / "in.parquet")
    sound = (tmp_path / "in.parquet").read_bytes()
    (tmp_path / "in.parquet").write_bytes(sound[:20] + b"\xff" * 30 + sound[50:])  # a page behind a sound directory
    refused(tmp_path / "in.parquet", tmp_path / "out.csv", "GC614", "is damaged")


# --- the machine fails ---------------------------------------------------------------------------------------------


def command(folder: Path, out: str, **options: Any) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", ENTRY, "grad", "x*y", "--points", "in.npy", "--output", out]
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, timeout=120, **options)


@pytest.mark.parametrize("out", ["out.csv", "out.npy", "out.npz", "out.parquet"])
def test_a_full_disk(out: str, tmp_path: Path) -> None:
    if out.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    np.save(tmp_path / "in.npy", np.random.default_rng(1).uniform(size=(60_000, 2)))

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = command(tmp_path, out, preexec_fn=small_files)
    assert done.returncode in (2, 4)
    assert "Traceback" not in done.stderr and "error[GC690]" in done.stderr
    assert not (tmp_path / out).exists()
    again = command(tmp_path, out)  # the disk has room again
    assert again.returncode == 0, again.stderr
    assert (tmp_path / out).exists() and len(list(tmp_path.iterdir())) == 2


def test_a_killed_process_leaves_no_result_and_is_gone_on_with(tmp_path: Path) -> None:
    points = np.random.default_rng(1).uniform(size=(2_000_000, 2))
    np.save(tmp_path / "in.npy", points)
    call = [sys.executable, "-c", ENTRY, "grad", "sin(x)*y", "--points", "in.npy", "--output", "out.npy"]
    first = subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.DEVNULL)
    while first.poll() is None and not (tmp_path / "out.npy.part.json").exists():
        time.sleep(0.005)
    first.kill()
    first.wait()
    assert not (tmp_path / "out.npy").exists()
    subprocess.run(call, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    found = np.load(tmp_path / "out.npy")
    assert found.shape == (2_000_000, 3)
    np.testing.assert_allclose(found[:, 2], np.sin(points[:, 0]), rtol=1e-14)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.npy", "out.npy"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones((3, 2)))
    for out in ("none/out.csv", "in.npy/out.csv", "."):
        done = command(tmp_path, out)
        assert done.returncode in (2, 4)
        assert "Traceback" not in done.stderr and "error[GC" in done.stderr, done.stderr
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        done = command(tmp_path, "locked/out.csv")
        assert done.returncode in (2, 4) and "error[GC" in done.stderr
