"""Data files: what is read, and from where; columns, headers, notes."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import Diagnostic, GradcliError, Span
from gradcli.calculator import evaluate
from gradcli.language.source import Source
from gradcli.lowering.data_files.loading import load, load_array

if TYPE_CHECKING:
    from pathlib import Path


def refused(action: Any) -> Diagnostic:
    with pytest.raises(GradcliError) as caught:
        action()
    return caught.value.diagnostics[0]


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


# --- tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_with_a_header(tmp_path: Path, end: str) -> None:
    path = written(tmp_path, "points.csv", end.join(["x,y,label", "1,2.5,0", "-3,4e2,1", "", "5, .5,1"]))
    whole = load_array(path)
    assert whole.dtype == np.float64
    assert whole.tolist() == [[1, 2.5, 0], [-3, 400, 1], [5, 0.5, 1]]
    assert load_array(path, columns=slice(0, 2)).tolist() == [[1, 2.5], [-3, 400], [5, 0.5]]
    assert load_array(path, column=2).tolist() == [0, 1, 1]
    assert load_array(path, column=-1).tolist() == [0, 1, 1]
    assert load_array(path, columns=[2, 0]).tolist() == [[0, 1], [1, -3], [1, 5]]
    assert load_array(path, columns=slice(None, None, -2)).tolist() == [[0, 1], [1, -3], [1, 5]]
    assert load_array(path, columns=slice(1, 2)).shape == (3, 1)


def test_tables_without_a_header_with_a_mark_remarks_and_tabs(tmp_path: Path) -> None:
    assert load_array(written(tmp_path, "a.csv", "\ufeff1,2\n3,4")).tolist() == [[1, 2], [3, 4]]
    assert load_array(written(tmp_path, "b.csv", "# made by hand\n1\n2\n# end\n3\n")).tolist() == [1, 2, 3]
    assert load_array(written(tmp_path, "c.TSV", "a\tb\n1\t2\n")).tolist() == [[1, 2]]
    assert load_array(written(tmp_path, "d.csv", '"a","b ""c"""\n"1","2"\n')).tolist() == [[1, 2]]
    assert load_array(written(tmp_path, "e.csv", ",x,y\n0,1,2\n1,3,4\n"), columns=slice(1, 3)).tolist() == [
        [1, 2],
        [3, 4],
    ]


def test_text_columns_may_stay_unread(tmp_path: Path) -> None:
    path = written(tmp_path, "people.csv", "name,age,height\nAda,36,1.6\nAlan,41,\n")
    assert load_array(path, column=1).tolist() == [36, 41]
    bad = refused(lambda: load_array(path))
    assert (bad.code, bad.message.split(", ", 1)[1]) == ("GC616", "line 2, column 0: `Ada` is not a number")
    bad = refused(lambda: load_array(path, column=2))
    assert bad.message.endswith("line 3, column 2: the cell is empty")
    assert "columns=0:2" in (bad.help or "")


@pytest.mark.parametrize("cell", ["abc", "1_000", "١", "0x10", "1;5", "--1", "1e", "True", "None"])
def test_cells_that_are_no_numbers(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path, "x.csv", f"1,2\n3,{cell}\n")
    assert refused(lambda: load_array(path)).code == "GC616"


def test_a_typing_error_in_the_first_line_is_no_header(tmp_path: Path) -> None:
    assert refused(lambda: load_array(written(tmp_path, "x.csv", "1.0,2.O\n3,4\n"))).code == "GC616"


def test_ragged_rows_name_their_line(tmp_path: Path) -> None:
    bad = refused(lambda: load_array(written(tmp_path, "x.csv", "a,b\n1,2\n3\n")))
    assert bad.code == "GC617"
    assert bad.message.endswith("line 3 has 1 cell, the lines before have 2")


def test_nan_and_infinity_are_noted_by_line_and_column(tmp_path: Path) -> None:
    path = written(tmp_path, "gaps.csv", "a,b\n1,nan\n-inf,2\nNaN,Infinity\n")
    loaded = load(path)
    assert np.isnan(loaded.array[0, 1])
    assert loaded.array[1, 0] == -math.inf
    (note,) = loaded.notes
    assert (note.code, note.severity) == ("GC619", "note")
    assert "line 2, column 1; line 3, column 0; line 4, column 0 and more" in note.message
    assert load(path, column=1).notes[0].message.endswith("line 2, column 1; line 4, column 1")
    assert load(written(tmp_path, "full.csv", "1,2\n")).notes == ()


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", "1,2\n3,4\n")
    for options in ({"column": 2}, {"column": -3}, {"columns": slice(2, 4)}, {"columns": [0, 5]}):
        bad = refused(lambda options=options: load_array(path, **options))
        assert bad.code == "GC618"
        assert "2 columns" in bad.message


def test_tables_without_numbers(tmp_path: Path) -> None:
    for text in ("", "\n\n", "a,b\n", "# nothing\n"):
        assert refused(lambda text=text: load_array(written(tmp_path, "x.csv", text))).code == "GC614"


# --- NumPy's formats ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f8", ">f8", "f4", "f2", "i8", "u1", "?", "g"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numpy(tmp_path: Path, kind: str, order: Any) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=kind, order=order)
    np.save(tmp_path / "x.npy", array)
    found = load_array(str(tmp_path / "x.npy"))
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    assert found.tolist() == array.astype(float).tolist()
    np.savez_compressed(tmp_path / "x.npz", X=array)
    assert load_array(str(tmp_path / "x.npz")).tolist() == array.astype(float).tolist()


def test_other_shapes_and_complex_arrays(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npy")
    for shape in ((), (0,), (3, 0), (2, 3, 4)):
        np.save(path, np.ones(shape))
        assert load_array(path).shape == shape
    np.save(path, np.array([1j, 2]))
    assert load_array(path).dtype == np.complex128
    np.save(path, np.arange(6.0).reshape(2, 3))
    assert load_array(path, columns=slice(1, 3)).tolist() == [[1, 2], [4, 5]]
    assert load_array(path, column=0).tolist() == [0, 3]
    np.save(path, np.arange(3.0))
    assert refused(lambda: load_array(path, column=0)).code == "GC618"


def test_archives_of_several_arrays(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    np.savez(path, X=np.ones(2), y=np.zeros(3))
    assert load_array(path, name="y").tolist() == [0, 0, 0]
    bad = refused(lambda: load_array(path))
    assert bad.code == "GC618"
    assert "holds X, y: one array is wanted" in bad.message
    script = Source('const y = load("x.npz")\nX = load("x.npz")\nsum(X) + len(y)', path=str(tmp_path / "a.grad"))
    assert evaluate(script).value == 5.0
    np.savez(path)
    assert refused(lambda: load_array(path)).code == "GC618"


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_json_arrays(tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    for value, expected in [
        ([1, 2.5, -3], [1, 2.5, -3]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (7, 7.0),
        ([], []),
        ([[[0.1]], [[0.2]]], [[[0.1]], [[0.2]]]),
        ([10**400, "-inf"], [math.inf, -math.inf]),
    ]:
        written(tmp_path, "x.json", json.dumps(value))
        assert load_array(path).tolist() == expected
    assert math.isnan(load_array(written(tmp_path, "x.json", '["nan", NaN]'))[1])
    assert load_array(written(tmp_path, "x.json", "\ufeff[[1, 2], [3, 4]]"), column=1).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("[1, 2", "GC614", "is no JSON"),
        ("", "GC614", "is no JSON"),
        ("[[1, 2], [3]]", "GC617", "entry [1] is not a list of 2"),
        ("[[1, 2], 3]", "GC617", "entry [1] is not a list of 2"),
        ("[1, [2]]", "GC617", "entry [1] is a list"),
        ("[[1, 2], [3, null]]", "GC616", "entry [1][1] is null"),
        ("[1, true]", "GC616", "entry [1] is true or false"),
        ('[1, "2"]', "GC616", "entry [1] is the text '2'"),
        ('{"x": 1}', "GC616", "the content is an object"),
        ("[{}]", "GC616", "entry [0] is an object"),
    ],
)
def test_json_that_is_no_array(tmp_path: Path, text: str, code: str, words: str) -> None:
    bad = refused(lambda: load_array(written(tmp_path, "x.json", text)))
    assert bad.code == code
    assert words in bad.message


# --- where files may be ---------------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A script's folder with data in it, and data beside it."""
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    written(inside, "a.csv", "1\n")
    written(inside / "deep", "b.csv", "2\n")
    written(tmp_path, "secret.csv", "3\n")
    written(tmp_path, "insidemore.csv", "4\n")
    os.symlink(tmp_path / "secret.csv", inside / "link.csv")
    os.symlink(tmp_path, inside / "door")
    os.symlink(inside / "a.csv", inside / "near.csv")
    return inside


def test_a_script_reads_only_its_folder(house: Path) -> None:
    script = str(house / "loss.grad")
    assert load_array("a.csv", base=script).tolist() == [1]
    assert load_array("deep/b.csv", base=script).tolist() == [2]
    assert load_array("deep/../a.csv", base=script).tolist() == [1]
    assert load_array("near.csv", base=script).tolist() == [1]
    assert load_array("a.csv", base=str(house)).tolist() == [1]
    for path in (
        "../secret.csv",
        "link.csv",
        "door/secret.csv",
        "deep/../../secret.csv",
        "../insidemore.csv",
        str(house / "a.csv"),
        str(house.parent / "secret.csv"),
    ):
        bad = refused(lambda path=path: load_array(path, base=script))
        assert bad.code == "GC612", path
        assert "--at" in (bad.help or "")


def test_a_script_without_a_file_reads_the_working_folder(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(house)
    assert load_array("a.csv", base=".").tolist() == [1]
    assert refused(lambda: load_array("../secret.csv", base=".")).code == "GC612"


def test_a_point_may_name_any_file(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(house)
    assert load_array("../secret.csv").tolist() == [3]
    assert load_array("link.csv").tolist() == [3]


def test_errors_point_at_the_script(house: Path) -> None:
    span = Span(1, 5, 1, 20)
    for path in ("missing.csv", "../x.csv", "a.xlsx"):
        assert refused(lambda path=path: load_array(path, base=str(house), span=span)).span == span


def test_endings(tmp_path: Path) -> None:
    bad = refused(lambda: load_array(str(tmp_path / "x.xlsx")))
    assert bad.code == "GC613"
    bad = refused(lambda: load_array(str(tmp_path / "x.cvs")))
    assert bad.help == "did you mean .csv?"
    assert refused(lambda: load_array("csv")).code == "GC613"


def test_an_array_is_taken_by_the_name_of_its_own_variable_only(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.ones(2), y=np.zeros(3))
    script = Source('X = load("x.npz")\nsum(load("x.npz"))', path=str(tmp_path / "a.grad"))
    assert refused(lambda: evaluate(script)).code == "GC618"


@pytest.mark.parametrize(
    ("text", "told"),
    [("1;2\n3;4\n", "semicolons"), ("x,y\n'1,5',2\n".replace("'", '"'), "decimals with a point"), ("1|2\n3|4", "bars"),
     ("1\t2\n", "tabs"), ("\u22121,2\n", "minus sign")],
)  # fmt: skip
def test_tables_of_other_conventions_are_told_how_to_be_written(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    bad = refused(lambda: load_array(str(path)))
    assert bad.code == ("GC614" if "\t" in text else "GC616") and told in (bad.help or "")  # one row may be a header


@pytest.mark.parametrize("columns", ["1.5", "[0, 1.5]", "[[0]]", "inf"])
def test_columns_are_whole_numbers(columns: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n")
    script = Source(f'load("a.csv", columns={columns})', path=str(tmp_path / "a.grad"))
    assert refused(lambda: evaluate(script)).code == "GC306"
