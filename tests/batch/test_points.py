"""Files of points: every format in and out, wrong rows named, nothing half-written, bounded memory, runs gone on with."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.batch.points import answer_points, decimals, sources, sweep
from gradcli.batch.points.result_table import columns_of
from gradcli.interfaces.cli import main

SCRIPT = "sin(x*y)*exp(-x) + log(1 + y**2)*x"
COUNT = 1000


def some_points(count: int = COUNT) -> Any:
    return np.random.default_rng(3).uniform(0.5, 2.0, (count, 2))


def saved(path: Path, points: Any, names: tuple[str, ...] = ("x", "y")) -> Path:
    """The points in the format of the path's ending."""
    if path.suffix in (".csv", ".tsv"):
        mark = "," if path.suffix == ".csv" else "\t"
        lines = [mark.join(names), *(mark.join(map(repr, row)) for row in points.tolist())]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".npy":
        np.save(path, points)
    elif path.suffix == ".npz":
        np.savez(path, **{name: points[:, at] for at, name in enumerate(names)})
    else:
        parquet: Any = importlib.import_module("pyarrow.parquet")
        arrow: Any = importlib.import_module("pyarrow")
        parquet.write_table(arrow.table({name: points[:, at] for at, name in enumerate(names)}), path)
    return path


def loaded(path: Path) -> Any:
    """The rows of a file of results."""
    if path.suffix in (".csv", ".tsv"):
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else "\t", skiprows=1, ndmin=2)
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            assert list(arrays) == ["value", "d_x", "d_y"]
            return np.column_stack(list(arrays.values()))
    table = importlib.import_module("pyarrow.parquet").read_table(path)
    return np.column_stack([column.to_numpy() for column in table.columns])


def right(points: Any, dtype: str = "float64") -> Any:
    f = gradcli.compile(SCRIPT, dtype=dtype)
    value, slopes = f.at_points(x=points[:, 0], y=points[:, 1])
    return np.column_stack([value, slopes["x"], slopes["y"]])


def formats() -> list[Any]:
    missing = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs the extra parquet")
    return [".csv", ".tsv", ".npy", ".npz", pytest.param(".parquet", marks=missing)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("out", formats())
@pytest.mark.parametrize("source", formats())
def test_every_format_in_and_out(source: str, out: str, dtype: str, tmp_path: Path) -> None:
    points, path = some_points(), tmp_path / f"out{out}"
    done = answer_points(SCRIPT, str(saved(tmp_path / f"in{source}", points)), str(path), dtype=dtype)
    assert (done.points, done.resumed) == (COUNT, 0)
    results = loaded(path)
    assert np.array_equal(results, right(points, dtype))
    assert results.dtype == ("float64" if out in (".csv", ".tsv") else dtype)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"in{source}", f"out{out}"])


@pytest.mark.parametrize("out", formats())
@pytest.mark.parametrize("script", ["x > y", "floor(x) + 0*y", "[x > 1, y < 1]", "argmax([x, y])"])
def test_truth_values_and_integers_are_numbers_in_a_file(script: str, out: str, tmp_path: Path) -> None:
    points, path = some_points(), tmp_path / f"out{out}"
    answer_points(script, str(saved(tmp_path / "in.csv", points)), str(path), gradient=False, dtype="float32")
    expected = [gradcli.evaluate(script, at={"x": x, "y": y}).value for x, y in points[:20]]
    values = np.load(path)["value"] if out == ".npz" else loaded(path)
    assert np.array_equal(values[:20].reshape(20, -1), np.reshape(np.array(expected, float), (20, -1)))


def test_complex_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GradcliError, match="GC712"):
        columns_of(np.ones(2, complex), {})
    source = str(saved(tmp_path / "in.csv", some_points(2)))
    with pytest.raises(GradcliError, match="GC712"):
        answer_points(SCRIPT, source, str(tmp_path / "out.npy"), dtype="complex128")
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("source", [".csv", ".npy", ".npz"])
def test_blocks_make_no_difference(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, many of them, the last one short: the same rows in the same order."""
    monkeypatch.setattr(sweep, "ENTRIES", 1)  # 64 rows, the least
    monkeypatch.setattr(sources, "TEXT_BYTES", 700)
    points = some_points()
    answer_points(SCRIPT, str(saved(tmp_path / f"in{source}", points)), str(tmp_path / "out.npy"))
    assert np.array_equal(loaded(tmp_path / "out.npy"), right(points))


def test_workers_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WORTH_HELP", 1)
    monkeypatch.setattr(decimals, "text_library", lambda: None)
    monkeypatch.setattr(sources, "TEXT_BYTES", 4000)
    points = some_points()
    source = saved(tmp_path / "in.csv", points)
    answer_points(SCRIPT, str(source), str(tmp_path / "out.csv"), jobs=2)
    assert np.array_equal(loaded(tmp_path / "out.csv"), right(points))
    with open(source, "a") as text:
        text.write("1,2\n3,oops\n")
    with pytest.raises(GradcliError, match=rf"in.csv:{COUNT + 3}, column 2: 'oops' is not a number"):
        answer_points(SCRIPT, str(source), str(tmp_path / "other.csv"), jobs=2)


def test_polars_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of all magnitudes, blanks behind numbers, columns that are not used, gaps, an unfinished file."""
    pytest.importorskip("polars")
    monkeypatch.setattr(sources, "TEXT_BYTES", 4000)
    source = tmp_path / "in.csv"
    rows = [f"{x!r},{name},{y!r}" for (x, y), name in zip(some_points().tolist(), "abcd" * COUNT, strict=False)]
    source.write_text("\n".join(["x,name,y", *rows, "0.5,e,nan", "-3e2 ,f, 1e-3", "1,g,0"]) + "\n")
    results = []
    for worth in (1 << 40, 1):
        monkeypatch.setattr(sweep, "WORTH_HELP", worth)
        out = tmp_path / f"{worth}.csv"
        answer_points("exp(-40*x**4)*y/3", str(source), str(out), jobs=1)
        results.append(out.read_bytes())
    assert results[0] == results[1] and b"e-" in results[0] and b"nan" in results[0]
    with open(source, "a") as text:
        text.write("1,h,2\n3,i\n")
    with pytest.raises(GradcliError, match=rf"in.csv:{COUNT + 6} has 2 cells"):
        answer_points("x*y", str(source), str(tmp_path / "other.csv"))


def cell(random: np.random.Generator) -> str:
    """A cell as tables have them, or nearly one."""
    number = random.normal() * 10.0 ** random.integers(-25, 25)
    texts = [repr(number), f"{number:.20f}", f"{number:.3g}", f"{number:+E}", "nan", "-inf", "0", "-0.0", ".5", "7."]
    if random.random() < 0.97:
        return str(random.choice(texts))
    return str(
        random.choice(["", " ", "1e", "0x1", "1_0", "1 ", " 2", "-", "None", "1;2", "1e5.5", "#", "1d2", "\u0664"])
    )


@pytest.mark.parametrize("mark", [",", "\t"])
def test_polars_reads_and_writes_as_python_does(mark: str) -> None:
    polars, random = pytest.importorskip("polars"), np.random.default_rng(7)
    read = 0
    for _ in range(1000):
        rows = [[cell(random) for _ in range(3 + (random.random() < 0.01))] for _ in range(4)]
        text = ("\n".join(map(mark.join, rows)) + random.choice(["", "\n", "\r\n", "\n\n"])).encode()
        own, theirs = [
            decimals.parsed_or_problem(text, mark, 3, "in.csv", 2, None, library) for library in (None, polars)
        ]
        if not isinstance(own, np.ndarray):
            assert own == theirs
            continue
        assert own.tobytes() == theirs.tobytes(), text
        assert decimals.written(own, mark, polars) == decimals.written(own, mark)
        read += 1
    assert read > 150
    anything = random.integers(0, 2**64, 30_000, dtype=np.uint64).view(np.float64).reshape(-1, 3)
    assert decimals.written(anything, mark, polars) == decimals.written(anything, mark)


def test_arrays_have_a_column_for_each_entry(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('w[1],x,w[0],"A[0,1]","A[0,0]"\n3,1,2,5,4\n6,4,5,8,7\n')
    out = tmp_path / "out.csv"
    assert main(["grad", "x*sum(w*w) + sum(A*[1, 10])", "--points", str(path), "--output", str(out)]) == 0
    head, *rows = out.read_text().splitlines()
    assert head == 'value,d_x,d_w[0],d_w[1],"d_A[0,0]","d_A[0,1]"'
    assert [list(map(float, row.split(","))) for row in rows] == [
        [13 + 54, 13, 4, 6, 1, 10],
        [4 * 61 + 87, 61, 40, 48, 1, 10],
    ]


def test_columns_without_names_are_the_leaves_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.csv"
    path.write_text("2,3\n4,5\n")
    assert main(["grad", "b**2 + a", "--points", str(path)]) == 0
    assert capsys.readouterr().out == "value,d_b,d_a\n7.0,4.0,1.0\n21.0,8.0,1.0\n"
    np.save(tmp_path / "w.npy", np.arange(12.0).reshape(3, 2, 2))
    assert main(["eval", "sum(M, axis=-1)", "--points", str(tmp_path / "w.npy"), "--at", "M=[[1,2],[3,4]]"]) == 2
    capsys.readouterr()
    done = answer_points("sum(w*w)", str(tmp_path / "w.npy"), str(tmp_path / "out.npz"), gradient=True)
    assert done.points == 3
    with np.load(tmp_path / "out.npz") as arrays:
        assert np.array_equal(arrays["d_w"], 2 * np.arange(12.0).reshape(3, 2, 2))


def test_shared_values_and_values_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path / "in.csv", np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert main(["eval", "[x*k, y]", "--points", str(path), "--at", "k=10"]) == 0
    assert capsys.readouterr().out == "value[0],value[1]\n10.0,2.0\n30.0,4.0\n"


@pytest.mark.parametrize(
    ("text", "script", "code", "told"),
    [
        ("x,y\n1,2\n3\n", "x*y", "GC617", "in.csv:3 has 1 cell, the first row has 2"),
        ("x,y\n1,2,\n3\n", "x*y", "GC617", "in.csv:2 has 3 cells"),
        ("x,y\n1,2\n3,abc\n", "x*y", "GC616", "in.csv:3, column 2: 'abc' is not a number"),
        ("x,y\n1,2\n3,\n", "x*y", "GC616", "in.csv:3, column 2: the cell is empty"),
        ("x,y\n1,2\n1_0,2\n", "x*y", "GC616", "in.csv:3, column 1: '1_0' is not a number"),
        ("x,y\n1,2\n\n3,4\n", "x*y", "GC617", "in.csv:3"),
        ("x,y\n", "x*y", "GC614", "holds no point"),
        ("", "x*y", "GC614", "empty"),
        ("x\n1\n", "x*y", "GC202", "`y` has no value"),
        ("u,v\n1,2\n", "x*y", "GC618", "no column belongs to a leaf"),
        ("x,x\n1,2\n", "x*y", "GC618", "two columns x"),
        ("w[0],w[2]\n1,2\n", "sum(w)", "GC618", "not a whole array"),
        ("x+1,y\n1,2\n", "x*y", "GC202", "no such column (it has x+1, y)"),
        ("1,2,3\n", "x*y", "GC618", "3 columns, and the script has x, y"),
        ("x,y\n1,2\n", "[x, y]", "GC307", "scalar"),
    ],
)
def test_wrong_files_are_named_by_line_and_column(text: str, script: str, code: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises(GradcliError) as refused:
        answer_points(script, str(path), str(tmp_path / "out.csv"))
    first = refused.value.diagnostics[0]
    assert first.code == code
    assert told in first.message
    assert [one.name for one in tmp_path.iterdir()] == ["in.csv"], "nothing half-written"


def test_wrong_binary_files(tmp_path: Path) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("a.npy", lambda p: np.save(p, np.array([{}], dtype=object), allow_pickle=True), "GC615"),
        ("b.npy", lambda p: np.save(p, np.array(["x"])), "GC615"),
        ("c.npy", lambda p: p.write_bytes(b"nothing"), "GC614"),
        ("d.npz", lambda p: np.savez(p, x=np.zeros((5, 2), order="F"), y=np.zeros(5)), "GC618"),
        ("e.npy", lambda p: np.save(p, np.zeros((4, 3))), "GC618"),
        ("f.npz", lambda p: np.savez(p, x=np.zeros(3), y=np.zeros(4)), "GC617"),
        ("g.npz", lambda p: p.write_bytes(b"PK\3\4 and nothing"), "GC614"),
        ("h.json", lambda p: p.write_text("[1]"), "GC613"),
        ("i.npy", lambda p: np.save(p, np.zeros((0, 2))), "GC614"),
    ]
    for name, write, code in cases:
        write(tmp_path / name)
        with pytest.raises(GradcliError) as refused:
            answer_points("x*y", str(tmp_path / name), str(tmp_path / "out.npy"))
        assert refused.value.diagnostics[0].code == code, name
    with pytest.raises(GradcliError, match="results end in"):
        answer_points("x*y", str(saved(tmp_path / "in.csv", some_points(3))), str(tmp_path / "out.txt"))


def test_what_is_not_finite_is_noted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.csv"
    path.write_text("x,y\n1,2\n3,nan\ninf,2\n")
    assert main(["grad", "x*y", "--points", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1:] == ["2.0,2.0,1.0", "nan,nan,3.0", "inf,2.0,inf"]
    assert "in.csv:3, column 2: y is not a finite number (2 such values)" in err
    path.write_text("note,w[1],w[0],x\nhi,1,2,3\nho,nan,inf,1\n,2,2,2\n")
    assert main(["grad", "x*sum(w)", "--points", str(path)]) == 0
    assert "in.csv:3, column 3: w[0] is not a finite number (2 such values)" in capsys.readouterr().err
    np.savez(tmp_path / "in.npz", x=np.ones(3), w=[[1, 2], [3, 4], [5, np.nan]])
    assert main(["grad", "x*sum(w)", "--points", str(tmp_path / "in.npz")]) == 0
    assert "in.npz, row 3: w[1] is not a finite number\n" in capsys.readouterr().err


# --- interrupted runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", formats())
@pytest.mark.parametrize("source", [".csv", ".npy", ".npz"])
def test_an_interrupted_run_goes_on(source: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ENTRIES", 1)
    monkeypatch.setattr(sources, "TEXT_BYTES", 2000)
    points = some_points()
    path, place = saved(tmp_path / f"in{source}", points), tmp_path / f"out{out}"
    seen = []

    def stop(done: int, total: int, label: str) -> None:
        seen.append(done)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_points(SCRIPT, str(path), str(place), progress=stop)
    assert not place.exists()
    assert (tmp_path / f"out{out}.part").exists()
    with open(tmp_path / f"out{out}.part", "ab") as torn:
        torn.write(b"half a row")
    done = answer_points(SCRIPT, str(path), str(place))
    assert 0 < done.resumed < done.points == COUNT
    assert np.array_equal(loaded(place), right(points))
    assert {one.name for one in tmp_path.iterdir()} == {f"in{source}", f"out{out}"}


def test_another_question_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ENTRIES", 1)
    path, place = saved(tmp_path / "in.npy", some_points()), tmp_path / "out.npy"

    def stop(done: int, total: int, label: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_points(SCRIPT, str(path), str(place), progress=stop)
    done = answer_points("x*y", str(path), str(place))
    assert done.resumed == 0
    assert np.array_equal(np.load(place)[:, 0], some_points().prod(axis=1))


# --- memory ---------------------------------------------------------------------------------------------------------

PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]), int(sys.argv[3])))
from gradcli.batch.points import answer_points
if __name__ == "__main__":
    print(answer_points(sys.argv[4], sys.argv[1], sys.argv[2], jobs=1).points)
"""


def bounded(tmp_path: Path, count: int, limit: int) -> None:
    points = np.lib.format.open_memmap(tmp_path / "in.npy", mode="w+", dtype=np.float64, shape=(count, 2))
    for start in range(0, count, 1 << 20):
        points[start : start + (1 << 20)] = 0.5 + np.arange(2.0) / 4
    del points
    (tmp_path / "run.py").write_text(PROGRAM)
    places = [str(tmp_path / name) for name in ("run.py", "in.npy", "out.npy")]
    command = [sys.executable, *places, str(limit), SCRIPT]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.stdout.strip() == str(count), found.stderr[-2000:]
    assert np.load(tmp_path / "out.npy", mmap_mode="r").shape == (count, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts all private memory on Linux")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Two million points, 32 MB in and 48 MB out, whose whole arrays would take 300 MB, with 128 MB of memory."""
    bounded(tmp_path, 2_000_000, 128 << 20)


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts all private memory on Linux")
def test_a_hundred_million_points_in_a_gigabyte(tmp_path: Path) -> None:
    bounded(tmp_path, 100_000_000, 1 << 30)


# --- from Python -----------------------------------------------------------------------------------------------------


def test_results_in_arrays_of_the_caller() -> None:
    points = some_points()
    f = gradcli.compile(SCRIPT)
    value, slopes = np.empty(COUNT), {"x": np.empty(COUNT), "y": np.empty(COUNT)}
    found = f.at_points(x=points[:, 0], y=points[:, 1], out=(value, slopes))
    assert found[0] is value and found[1] is slopes
    assert np.array_equal(np.column_stack([value, slopes["x"], slopes["y"]]), right(points))
    with pytest.raises(GradcliError, match=r"`out\[0\]` has shape"):
        f.at_points(x=points[:, 0], y=points[:, 1], out=(np.empty(3), slopes))
    values, none = gradcli.compile("[x, y]").at_points(x=points[:, 0], y=points[:, 1], gradient=False)
    assert np.array_equal(values, points) and none == {}


def arrays_of_one_table() -> Any:
    table = np.empty((COUNT, 3))
    return table[:, 0], {"x": table[:, 1], "y": table[::-1, 2]}


def locked() -> Any:
    place = np.empty(COUNT)
    place.flags.writeable = False
    return place


def overlapping() -> Any:
    memory = np.empty(COUNT + 1)
    return memory[1:], {"x": memory[:-1], "y": np.empty(COUNT)}


def room(**others: Any) -> Any:
    return np.empty(COUNT), {"x": np.empty(COUNT), "y": np.empty(COUNT), **others}


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (lambda: np.empty(COUNT), "not a pair"),
        (lambda: (np.empty(COUNT), {"x": np.empty(COUNT)}), "with the leaves x, y"),
        (lambda: room(y=np.empty(COUNT, int)), r"`out\[1\]\['y'\]` holds int64, the results are float64"),
        (lambda: room(y=[0.0] * COUNT), "holds list"),
        (lambda: room(x=np.empty((COUNT, 1))), r"`out\[1\]\['x'\]` has shape \[1000, 1\], the result \[1000\]"),
        (lambda: room(x=locked()), "read-only"),
        (overlapping, "lie in the same memory"),
    ],
)
def test_what_cannot_hold_the_results_is_refused_before_the_work(out: Any, told: str) -> None:
    """Whole numbers would have cut the results off, and one result would have overwritten another."""
    points = some_points()
    with pytest.raises(GradcliError, match=told):
        gradcli.compile(SCRIPT).at_points(x=points[:, 0], y=points[:, 1], out=out())


def test_views_of_one_table_may_hold_the_results() -> None:
    points = some_points()
    out = arrays_of_one_table()
    value, slopes = gradcli.compile(SCRIPT).at_points(x=points[:, 0], y=points[:, 1], out=out)
    assert value is out[0] and slopes is out[1]
    assert np.array_equal(np.column_stack([value, slopes["x"], slopes["y"]]), right(points))
    single = room(x=np.empty(COUNT, np.float32))
    gradcli.compile(SCRIPT).at_points(x=points[:, 0], y=points[:, 1], out=single)
    assert np.array_equal(single[1]["x"], right(points)[:, 1].astype(np.float32))


def test_points_in_rows_of_different_lengths() -> None:
    with pytest.raises(GradcliError, match="rows of different lengths"):
        gradcli.compile("sum(w)*y").at_points(w=[[1.0, 2.0], [1.0]], y=[1.0, 2.0])
