"""Files of points: what is said about those that are not as they should be, and those of other layouts."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.points import answer_points, sources, sweep
from gradcli.interfaces.cli import main
from gradcli.interfaces.output import Output

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
        (b"x;y\n1;2\n", "the file has x;y", "semicolons"),
        (b"x\ty\n1\t2\n", "the file has x\\x09y", ".tsv"),
        (b"x|y\n1|2\n", "the file has x|y", "bars"),
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


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"x,y\n1,NA\n", "write nan for a missing number"),
        (b"x,y\n1,\n", "write nan for a missing number"),
        (b'x,y\n1,"2,5"\n', "decimals with a point"),
        (b"x,y\n1,0x10\n", "write decimals, such as 0.5"),
        (b"x,y\n1\n", "as many cells; nan stands for a missing number"),
        (b"x,y\n1,2,5\n", "one that holds a comma stands in double quotes"),
        (b"x,y\n", "a row per point"),
        (b"", "a row per point"),
        (b"x,x\n1,2\n", "a name of its own"),
        (b"X,Y\n1,2\n", "is X meant as x?"),
        (b"p,q\n1,2\n", "named like leaves"),
        (b"1,2,3\n", "name the columns in the first line"),
    ],
)
def test_a_next_step_is_named(content: bytes, hint: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    assert hint in (refusal(tmp_path / "in.csv").help or "")


def test_a_next_step_for_arrays_is_one_that_arrays_can_take(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones((4, 3)))
    assert "saving an .npz file" in refusal(tmp_path / "in.npy").help
    np.save(tmp_path / "in.npy", np.array([(1.0, 2.0)], dtype=[("x", "f8"), ("y", "f8")]))
    assert "np.savez" in refusal(tmp_path / "in.npy").help
    (tmp_path / "in.npy").unlink()
    np.savez(tmp_path / "in.npz", x=np.ones(3), y=np.ones(4))
    found = refusal(tmp_path / "in.npz")
    assert "x has 3, y has 4" in found.message and "--at" in found.help


def test_columns_that_no_leaf_can_be_called_are_left_alone(tmp_path: Path) -> None:
    """An index without a name as pandas writes it, units, formulas, and names that come twice."""
    path = tmp_path / "in.csv"
    path.write_text(",x,time (s),y,x*y,time (s)\n0,2,a,3,6,b\n1,4,c,5,20,d\n")
    notes = answer_points("x*y", str(path), str(tmp_path / "out.npy")).diagnostics
    assert np.load(tmp_path / "out.npy").tolist() == [[6, 3, 2], [20, 5, 4]]
    assert [one.code for one in notes] == ["GC211"]
    assert "`column 1`, `time (s)`, `x*y` of" in notes[0].message


def test_a_quoted_cell_of_several_lines_may_lie_between_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.csv"
    path.write_text("x,y,note\n" + "".join(f'{i},2,"a\nb, ""c""\n"\n' for i in range(200)))
    for size in (7, 20, 50, 333):
        monkeypatch.setattr(sources, "TEXT_BYTES", size)
        answer_points("x*y", str(path), str(tmp_path / "out.npy"))
        assert np.load(tmp_path / "out.npy")[:, 0].tolist() == [2.0 * i for i in range(200)]


def test_a_folder_in_the_place_of_the_results_is_seen_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("x,y\n1,2\n")
    (tmp_path / "out.npy").mkdir()
    seen: list[int] = []
    with pytest.raises(GradcliError, match="is a directory"):
        answer_points("x*y", str(tmp_path / "in.csv"), str(tmp_path / "out.npy"), progress=lambda *a: seen.append(1))
    assert not seen
    with pytest.raises(GradcliError) as refused:
        answer_points("x*y", str(tmp_path / "in.csv"), str(tmp_path / "none" / "out.npy"))
    assert refused.value.diagnostics[0].help == "make the folder first"


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "latex"])
def test_formats_of_one_result_are_refused(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV in the place of what was asked for would be read by a program that expects something else."""
    (tmp_path / "in.csv").write_text("x,y\n1,2\n")
    assert main(["grad", "x*y", "--points", str(tmp_path / "in.csv"), "--format", form]) == 2
    out, err = capsys.readouterr()
    assert f"--format {form} does not go with --points" in (out if form.startswith("json") else err)
    assert main(["grad", "x*y", "--points", str(tmp_path / "in.csv"), "--format", "csv"]) == 0


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


ROWS = "value,d_x,d_y\n" + "1.0,1.0,1.0\n" * 200


@pytest.mark.parametrize("place", ["terminal", "pipe", "file"])
def test_the_bar_does_not_stand_between_results(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on the terminal show by themselves how far the work is; where they go elsewhere, the bar does."""
    monkeypatch.setattr(sweep, "ENTRIES", 1)  # 64 rows in a block
    monkeypatch.delenv("TERM", raising=False)
    np.save(tmp_path / "in.npy", np.ones((200, 2)))
    screen, pipe, out = Terminal(), io.StringIO(), tmp_path / "out.csv"
    monkeypatch.setattr(sys, "stdout", pipe if place == "pipe" else screen)
    monkeypatch.setattr(sys, "stderr", screen)
    options = ["--output", str(out)] if place == "file" else []
    assert main(["grad", "x*y", "--points", str(tmp_path / "in.npy"), "--color", "never", *options]) == 0
    if place == "terminal":
        assert screen.getvalue() == ROWS
        return
    assert (out.read_text() if place == "file" else pipe.getvalue()) == ROWS
    assert "#" in screen.getvalue(), "there is a bar"
    seen = [line.rpartition("\r\x1b[K")[2] for line in screen.getvalue().split("\n")]
    assert seen == ([""] if place == "pipe" else [f"200 points in {out}", ""])


def test_who_interrupts_is_told_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweep, "ENTRIES", 1)
    np.save(tmp_path / "in.npy", np.ones((200, 2)))

    def stop(*told: Any) -> None:
        raise KeyboardInterrupt

    call = ["grad", "x*y", "--points", str(tmp_path / "in.npy"), "--output", str(tmp_path / "out.npy")]
    with monkeypatch.context() as pressed:
        pressed.setattr(Output, "progress", stop)
        assert main(call) == 130
    assert "out.npy.part: the same command continues from there" in capsys.readouterr().err
    assert main(call) == 0
    assert "200 points in" in (told := capsys.readouterr().err) and "64 of them before" in told
