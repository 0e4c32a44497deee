"""Cards of failing checks: what a first look needs, rows of numbers under their titles, and a ladder that says what it saw."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gradcli.checks import check_callable, check_script
from gradcli.interfaces import cli
from gradcli.rendering import plain, tables
from gradcli.rendering.document import Style
from gradcli.rendering.documents import verdicts


def text(report: Any, show: str = "failing") -> str:
    return plain.render(verdicts.reports([report], Style(), show))


def wrong() -> Any:
    script = "x = 0.5\ny = 2.0\nf = x*sin(y)\nassert grad(f, y) == x*sin(y)\nf"
    return check_script(script)


def test_a_first_look_is_short_and_the_whole_card_has_everything() -> None:
    short, whole = text(wrong()), text(wrong(), "all")
    for part in ("claim      grad(f, y) == x*sin(y)", "exact ", "claimed ", "diagnosis ", "correct    x*cos(y)", "^^^"):
        assert part in short, short
    for part in ("oracles", "seed", "algebra"):
        assert part not in short and part in whole, whole


def test_the_reading_stands_once() -> None:
    report = wrong()
    shown = text(report)
    reading = next(one.evidence["diagnosis"][0]["text"] for one in report.checks if not one.passed)
    assert shown.count(reading) == 1
    row = next(line for line in shown.splitlines() if line.startswith("FAIL"))
    assert row.endswith("...") or row[-1].isdigit()


def test_slopes_of_a_number_are_numbers_and_those_of_a_vector_lists() -> None:
    lines = [line.split() for line in text(check_script("abs(x)", at={"x": 0})).splitlines()]
    assert ["left", "-1"] in lines and ["right", "1"] in lines and ["returned", "0"] in lines
    shown = text(check_script("sum(abs(x))", at={"x": [0, 0]}))
    assert "[-1, -1]" in shown and "[1, 1]" in shown


@pytest.mark.usefixtures("values_only")
def test_rows_of_the_worst_entries_are_a_table() -> None:
    report = check_callable(lambda x: np.sum(x**3), lambda x: 3 * x**2 + [1, 0, 100], at=np.array([1.0, 2.0, 3.0]))
    lines = text(report).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("worst"))
    assert lines[at].split() == ["worst", "entry", "claimed", "differences", "bound"]
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["x[2]", "x[0]"]
    ends = {line.index(word) + len(word) for line, word in ((lines[at], "claimed"), (lines[at + 1], "127"))}
    assert len(ends) == 1  # numbers end below their title
    assert lines[at + 3].startswith("wrong") and "2 of 3" in lines[at + 3]


@pytest.mark.usefixtures("values_only")
def test_the_ladder_says_how_far_the_claim_is_from_every_step() -> None:
    report = check_callable(lambda x: np.sum(x**3), lambda x: 4 * x**2, at=np.array([1.0, 2.0]))
    shown = text(report)
    assert "Differences of x[1] against what they settle at, 1" in shown
    assert "none comes nearer to the claim 16 than 4" in shown
    assert "to the last digit" not in shown


@pytest.mark.usefixtures("values_only")
def test_taylor_rates_are_explained() -> None:
    report = check_callable(lambda x: np.sum(x**3), lambda x: 4 * x**2, at=np.array([1.0, 2.0]))
    assert "where 2 is right and 1 is wrong" in text(report, "all")


def test_steps_are_shown_of_checks_that_passed() -> None:
    """`--step-sizes` shows a table for every derivative; without it a check that passed has a row only."""
    claims = {"x": "cos(x)"}
    bare = text(check_script("sin(x)", at={"x": 2}, claims=claims))
    shown = text(check_script("sin(x)", at={"x": 2}, claims=claims, steps=True))
    assert "central difference" not in bare
    assert shown.count("central difference") == 2
    assert shown.count("the error falls as step**2") == 2
    assert "agree_bits" not in shown  # the rest of the evidence is for `--show all`


BACKWARD = """import numpy as np
from functools import wraps

def norm(x, g):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * g

def norm_backward(x, g, dy):
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    return r * g * dy, (dy * x * r).sum(0)

def logged(f):
    @wraps(f)
    def inner(*xs):
        return f(*xs)
    return inner

@logged
def wrapped_backward(x, g, dy):
    return norm_backward(x, g, dy)

class Norm:
    def forward(self, x):
        return norm(x, 1.0)

    def backward(self, dy):
        return dy

unit = Norm()
"""
POINT = ["--at", "x=randn(4,5),g=randn(5)", "--seed", "3", "--no-cache"]


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "l.py").write_text(BACKWARD)
    (tmp_path / "others.py").write_text("from l import norm_backward as other\n")
    np.save(tmp_path / "x.npy", np.ones((4, 5)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.mark.parametrize(
    ("grad", "row"),
    [
        ("l.py:norm_backward", "norm_backward: x 7"),
        ("l.py:wrapped_backward", "wrapped_backward: x 17"),
        ("others.py:other", "norm_backward: x"),  # its line is one of another file
    ],
)
@pytest.mark.usefixtures("layers")
def test_a_wrong_backward_is_named_with_its_line(grad: str, row: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--python", "l.py:norm", "--grad", grad, *POINT]) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith(f"FAIL DISAGREES {row} the exact") for line in lines), lines
    name, _, line = row.partition(": x")
    assert f"DISAGREES {name}: x" + (f", line {line.strip()}" if line else "") in lines


@pytest.mark.usefixtures("layers")
def test_a_method_is_named_with_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--python", "l.py:unit.forward", "--grad", "l.py:unit.backward", "--at", "x=randn(2,3)"]
    assert cli.main(["check", *words, "--no-cache"]) == 1
    assert "Norm.backward: x    25" in capsys.readouterr().out


ORDERED = ("claim", "diagnosis", "correct", "entry", "exact", "claimed", "reproduce", "at")
WRONG: list[list[str]] = [
    ["--python", "l.py:norm", "--grad", "l.py:norm_backward", *POINT],
    ["x**2*sin(y)", "--at", "x=2,y=3", "--claim", "x = x*sin(y)"],
    ["sum((A@x)**2)", "--at", "A=randn(3,4),x=randn(4)", "--claim", "x = A.T @ A @ x"],
    ["x**2", "--box", "x=1:2", "--claim", "x = x"],
    ["abs(x)", "--at", "x=0"],
    ["log(x)", "--at", "x=-1"],
]


@pytest.mark.parametrize("words", WRONG, ids=str)
@pytest.mark.usefixtures("layers")
def test_a_card_begins_with_what_is_wrong_and_ends_with_the_point(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", *words]) == 1
    card = capsys.readouterr().out.split("\n\n")
    labels = [line.split()[0] for line in card[-2].splitlines() if line[:1].isalpha() and line.strip()][1:]
    known = [label for label in labels if label in ORDERED]
    assert known == [label for label in ORDERED if label in known] and {"reproduce", "at"} <= {*known}
    assert labels[labels.index("reproduce") + 1 :] in (["at"], ["at", "box"])


@pytest.mark.parametrize("cells", [50, 60, 70, 80])
def test_no_number_of_a_witness_is_broken(cells: int) -> None:
    """On a narrow terminal titles are wrapped first, then a column is left out, then each witness is a list."""
    claims = {"x": "exp(-x**2)*(1 - x**2)"}
    report = check_script("x*exp(-x**2)", at={"x": 0.7}, claims=claims, witnesses="all")
    console = Console(width=cells, file=StringIO())
    for part in tables.render(verdicts.reports([report], Style(), "all"), cells):
        console.print(part)
    shown = console.file.getvalue()
    witnesses = shown[shown.index("witness") :]
    assert "0.01225252788368839831855773" in witnesses and "0.31243946103405223" in witnesses


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("x=randn(4,5)", "x randn(4,5)"),
        ("x=randn(2)", "x randn(2)"),
        ("x=@x.npy", "x @x.npy"),
        ("x=[1,2.5]", "x [1, 2.5]"),
        (f"x={[*range(1, 20)]}", "x 19 numbers"),
        ("x=ones(3)*2", "x [2, 2, 2]"),
        ("x=2", "x = 2"),
    ],
)
@pytest.mark.usefixtures("layers")
def test_a_point_is_shown_as_it_was_written(at: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "sum(x**2)", "--at", at, "--claim", "x = x"]) == 1
    assert f"at {shown}" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["check", "sum(x**2)", "--at", at, "--claim", "x = x", "--show", "all"]) == 1
    assert "randn" not in capsys.readouterr().out.replace(at, "")  # the whole card has the numbers


def test_a_point_that_was_moved_is_shown_with_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sum(abs(x))", "--at", "x=zeros(2)", "--dodge", "--claim", "x = 2*sign(x)"]
    assert cli.main(["check", *words]) == 1
    assert "zeros(2)" not in capsys.readouterr().out.replace("--at 'x=zeros(2)'", "")


def test_numbers_of_a_screen_look_alike() -> None:
    report = check_script("x**3*y", at={"x": 2, "y": 3}, claims={"x": "3*x**2*y + 1"}, witnesses="all", steps=True)
    for show in ("failing", "all"):
        assert not re.search(r"\d\.0\b(?!\d|e)", text(report, show)), text(report, show)


@pytest.mark.parametrize("cells", range(40, 101, 5))
def test_no_word_of_a_table_is_broken(cells: int) -> None:
    """A long name of a check takes the column that it needs, or each row becomes a list of facts."""

    def backward_of_a_layer_norm(x: Any, g: Any) -> Any:
        return 2.5 * x * g, x * x

    report = check_callable(
        lambda x, g: np.sum(x**2 * g), backward_of_a_layer_norm, at={"x": np.ones(2), "g": np.ones(2)}
    )
    console = Console(file=StringIO(), width=cells)
    console.print(*tables.render(verdicts.reports([report], Style()), cells), sep="\n")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert len(re.findall(r"(?<!\S)backward_of_a_layer_norm:", shown)) == 3  # two rows and a card
    assert max(map(len, shown.splitlines())) <= cells


def test_what_is_wrong_comes_first_and_last() -> None:
    """Of a failing report the right parts have a row each, behind the wrong ones, and no witnesses below them."""
    report = check_callable(
        lambda a, b, c: a * b * c, lambda a, b, c: (b * c, 2 * a * c, a * b), at=(1.0, 2.0, 3.0), witnesses="all"
    )
    shown = text(report)
    rows = re.findall(r"^(?:FAIL|ok) +\w+ +callable (\w)", shown, re.MULTILINE)
    assert rows == ["b", "a", "c"]
    assert re.findall(r"^(\w+) callable (\w), line", shown, re.MULTILINE) == [("DISAGREES", "b")]
    assert shown.count("agrees with the claim") == 1 and "agrees with the claim" in text(report, "all")
