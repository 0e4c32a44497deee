"""Files of points: what is said about those that are not as they should be, and those of other layouts."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.batch.points import answer_points, sweep
from gradcli.diagnostics import GradcliError

POINTS = np.arange(12.0).reshape(6, 2)


def refusal(path: Path, script: str = "x*y") -> Any:
    with pytest.raises(GradcliError) as refused:
        answer_points(script, str(path), str(path.parent / "out.npy"))
    assert [one.name for one in path.parent.iterdir()] == [path.name], "nothing half-written"
    return refused.value.diagnostics[0]


@pytest.mark.parametrize(
    ("content", "told", "hint"),
    [
        (gzip.compress(b"x,y\n1,2\n", mtime=0), "compressed by gzip", "unpack"),
        ("x,y\n1,2\n".encode("utf-16"), "UTF-16", "UTF-8"),
        (b"x;y\n1;2\n", "'x;y'", "semicolons"),
        (b"x\ty\n1\t2\n", "column 1", ".tsv"),
        (b"x|y\n1|2\n", "'x|y'", "bars"),
        (b"\x93NUMPY\x01\x00", "an array of NumPy", ".npy"),
        (b"x,z\n1,2\n", "has no such column (it has x, z)", "--at y=1"),
    ],
)
def test_the_cure_is_named(content: bytes, told: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    found = refusal(path)
    assert told in found.message
    assert hint in (found.help or "")


def test_points_are_not_overwritten(tmp_path: Path) -> None:
    path, link = tmp_path / "in.csv", tmp_path / "link.csv"
    path.write_text("x,y\n1,2\n")
    link.symlink_to(path)
    for out in (path, link):
        with pytest.raises(GradcliError, match="take their place"):
            answer_points("x*y", str(path), str(out))
    assert path.read_text() == "x,y\n1,2\n"


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(",".join(["x", *(f"a{i}" for i in range(3_000))]) + "\n")
    assert len(refusal(path).message) < 500


def test_columns_that_nothing_reads_are_noted(tmp_path: Path) -> None:
    for count, told in ((1, "`a0` of"), (5, "`a0`, `a1`, `a2` and 2 more columns of")):
        path = tmp_path / f"in{count}.csv"
        names = ["x", "y", *(f"a{i}" for i in range(count))]
        path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
        notes = answer_points("x*y", str(path), str(tmp_path / "out.npy")).diagnostics
        assert [one.code for one in notes] == ["GC211"]
        assert told in notes[0].message


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_nothing_reads_may_hold_anything(ending: str, quoted: bool, tmp_path: Path) -> None:
    path, out = tmp_path / f"in.{ending}", tmp_path / "out.npy"
    if ending == "csv":
        name = '"a, b"' if quoted else "somebody"
        path.write_text("who,y,w[1],when,w[0],x\n" + f"{name},3,20,,10,2\n" * 5)
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        row = {"who": "a", "y": 3.0, "w[1]": 20.0, "when": None, "w[0]": 10.0, "x": 2.0}
        parquet.write_table(pyarrow.table({name: [value] * 5 for name, value in row.items()}), path)
    notes = answer_points("x*y + w[0] - w[1]/5", str(path), str(out)).diagnostics
    assert ["`who`, `when`" in one.message for one in notes] == [True]
    assert np.load(out)[:, 0].tolist() == [12.0] * 5


@pytest.mark.parametrize("shape", [(6, 2), (6, 2, 3), (6,)])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i2"])
def test_arrays_of_columns(shape: tuple[int, ...], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pandas writes them: the columns lie behind each other."""
    monkeypatch.setattr(sweep, "MOST_ROWS", 64)
    table = np.random.default_rng(0).integers(-9, 9, (200, *shape[1:])).astype(dtype)
    found = []
    for order in ("C", "F"):
        np.save(tmp_path / "in.npy", np.array(table, order=order))
        answer_points("sum(x**2)" if shape[1:] else "x**2", str(tmp_path / "in.npy"), str(tmp_path / "out.npy"))
        found.append(np.load(tmp_path / "out.npy"))
    np.testing.assert_array_equal(*found)


LIMITED = """
import sys
import pyarrow
from gradcli.batch.points import answer_points

answer_points("sin(x)*y", sys.argv[1], sys.argv[2])
print(pyarrow.default_memory_pool().max_memory())
"""


@pytest.mark.parametrize("groups", [1, 40])
def test_what_was_read_of_a_parquet_file_is_not_kept(groups: int, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    count = 2_000_000
    table = pyarrow.table({name: np.random.default_rng(0).normal(size=count) for name in "xy"})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=count // groups, use_dictionary=False)
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "in.parquet"), str(tmp_path / "out.npy")],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    assert int(told) < 12 << 20, "of 32 MB"
    assert np.load(tmp_path / "out.npy", mmap_mode="r").shape == (count, 3)
