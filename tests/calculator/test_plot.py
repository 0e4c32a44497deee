"""`gradcli plot`: the curves are right, and are shown in terminals of any width and in pictures."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.plotting import plot
from gradcli.interfaces import cli
from gradcli.rendering import plain
from gradcli.rendering.curves import plots, spy_plots, vector_plots
from gradcli.rendering.document import Style
from tests.rendering.test_schema import validator

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    ["x*exp(-x**2)"],
    ["x**2 + x*y + 2*y**2"],
    ["sum(w*x)**2", "--at", "w=[1,2],x=0.5", "--wrt", "x"],
    ["sin(x**2)", "--claim", "x = cos(x**2)", "--box", "x=0:2"],
    ["exp(x)", "--at", "x=1", "--step-sizes"],
    ["1/x"],
    ["log(x)"],
    ["3 + 0*x"],
]


def test_curves_are_the_function_and_its_derivatives() -> None:
    found = plot("sin(a*x)", at={"a": 2}, wrt=["x"], ranges={"x": (0, 1)}, claim="cos(a*x)")
    xs = found.points["x"]
    assert (xs[0], xs[-1], len(xs)) == (0.0, 1.0, 401)
    assert found.value == pytest.approx([math.sin(2 * x) for x in xs], rel=1e-12)
    assert found.gradient["x"] == pytest.approx([2 * math.cos(2 * x) for x in xs], rel=1e-12)
    assert found.claim == pytest.approx([math.cos(2 * x) for x in xs], rel=1e-12)
    both = plot("x*y**2", ranges={"x": (0, 1), "y": (1, 2)})
    spots = [(x, y) for x in both.points["x"] for y in both.points["y"]]
    assert both.value == pytest.approx([x * y * y for x, y in spots])
    assert both.gradient["y"] == pytest.approx([2 * x * y for x, y in spots])


def test_a_slope_is_shown_where_there_is_a_value() -> None:
    found = plot("log(x)", ranges={"x": (-2, 2)})
    assert all(
        math.isnan(value) == math.isnan(slope) for value, slope in zip(found.value, found.gradient["x"], strict=True)
    )
    assert any(map(math.isnan, found.value)) and any(map(math.isfinite, found.value))


@pytest.mark.parametrize(("script", "gaps"), [("tan(x)", 2), ("1/(x - 0.3)", 1), ("tanh(40*x)", 0), ("x**3", 0)])
def test_a_curve_has_a_gap_at_a_pole(script: str, gaps: int) -> None:
    found = plot(script)
    low, high = plots.margin(plots.span(found.value))
    shown = plots.without_poles(found.value, found.gradient["x"], high - low)
    assert sum(map(math.isnan, shown)) == gaps


def test_differences_by_step_come_near_to_the_derivative() -> None:
    found = plot("exp(x)", at={"x": 1}, steps=True).steps
    assert found is not None and found.rate == 2 and found.exact == pytest.approx(math.e)
    errors = [abs(slope - math.e) for slope in found.slopes]
    assert min(errors) < 1e-10 and errors[0] > 1e-3 and errors[-1] > 10 * min(errors)  # a V


@pytest.mark.parametrize(
    ("script", "sides"),
    [("abs(x)", (-1, 1)), ("x + relu(3*x)", (1, 4)), ("x**2", None), ("cos(1000*x)", None), ("abs(x)**1.5", None)],
)
def test_a_kink_has_no_exact_derivative(script: str, sides: tuple[float, float] | None) -> None:
    """Central differences do not see it: those of abs(x) at 0 are 0, as the convention of reverse mode is."""
    result = plot(script, at={"x": 0}, steps=True)
    assert result.steps is not None and (result.steps.exact is None) == (sides is not None)
    text = plain.render(plots.plot(result, Style()))
    if sides is None:
        assert result.steps.below is None and "against the exact derivative 0\n" in text
    else:
        assert (result.steps.below, result.steps.above) == pytest.approx(sides)
        assert f"a kink: the slope is {sides[0]} from below and {sides[1]} from above" in text
        assert "exact" not in text


@pytest.mark.parametrize(
    ("script", "words"),
    [("3 + 0*x", "every error is 0"), ("sqrt(x)", "there are no differences"), ("abs(x)", "a kink")],
)
def test_a_picture_says_why_there_is_no_curve(script: str, words: str) -> None:
    assert words in vector_plots.svg(plot(script, at={"x": 0}, steps=True))


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_plot_fits_its_width_and_obeys_its_schema(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", *arguments]) == 0
    told = capsys.readouterr()
    assert all(len(line) <= 80 for line in told.out.splitlines()) and len(told.out.splitlines()) > 15
    assert cli.main(["plot", *arguments, "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    validator("plot").validate(payload)
    assert cli.main(["plot", *arguments, "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(payload["value"]) + 1


@pytest.mark.parametrize(
    ("at", "low", "high"),
    [
        (["x=-10:10"], -10, 10), (["x=0:1"], 0, 1), (["x=-1e3:+.5"], -1000, 0.5), (["x = 2 : 3"], 2, 3), (["x=-3:-1"], -3, -1),
        (["x=0:1,a=2"], 0, 1), (["a=2,x=0:1"], 0, 1), (["a=2", "x=0:1"], 0, 1), (["a=2, x=0.25:0.5"], 0.25, 0.5),
        (["x=0:6.28", "a=3,b=[1,2]"], 0, 6.28),
    ],
)  # fmt: skip
def test_a_point_may_hold_a_range(at: list[str], low: float, high: float, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for text in at for word in ("--at", text)]
    expression = "sin(a*x)*sum(b)" if "b=" in "".join(at) else "sin(a*x)" if "a=" in "".join(at) else "sin(x)"
    assert cli.main(["plot", expression, *words, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["points"]) == ["x"]
    assert (told["points"]["x"][0], told["points"]["x"][-1]) == (low, high)
    assert set(told["at"]) == ({"a"} if "a=" in "".join(at) else set()) | ({"b"} if "b=" in "".join(at) else set())


def test_two_ranges_are_a_map(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", "x*y", "--at", "x=0:1,y=2:3", "--format", "json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(points[name][0], points[name][-1]) for name in ("x", "y")] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--at", "x=1:0"], "GC735"), (["--at", "x=0:0"], "GC735"), (["--at", "x=0:a"], "GC735"), (["--at", "x=:1"], "GC701"),
        (["--at", "x=0:"], "GC701"), (["--at", "x=0:1:2"], "GC7"), (["--at", "x=0:inf"], "GC735"),
        (["--at", "x=0:1", "--box", "x=0:2"], "GC735"), (["--at", "x=0:1", "--at", "x=0:2"], "GC735"),
        (["--at", "=0:1"], "GC7"), (["--at", "z=0:1"], "GC206"), (["--box", "z=0:1"], "GC206"),
    ],
)  # fmt: skip
def test_what_is_no_range(words: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", "sin(x)", *words]) == 2
    assert f"error[{code}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["grad", "eval", "check", "trace"])
def test_only_a_plot_takes_a_range_as_a_point(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "sin(x)", "--at", "x=0:1"]) == 2
    assert "--box" in capsys.readouterr().err


@pytest.mark.parametrize("cells", [40, 60, 120])
def test_a_plot_follows_the_width_of_the_terminal(cells: int) -> None:
    for script in ("sin(x)", "x*y"):
        text = plain.render(plots.plot(plot(script), Style(width=cells)))
        assert max(map(len, text.splitlines())) <= max(cells, 58)


def test_a_dot_stands_where_its_point_is() -> None:
    canvas = plots.Canvas(10, 5, (0, 1), (0, 1))
    for x, y in ((0, 0), (1, 1)):
        canvas.dot(*canvas.spot(x, y))
    rows = canvas.lines()
    assert rows[0] == " " * 9 + chr(0x2808) and rows[-1] == chr(0x2840) and not any(rows[1:-1])


def test_lines_of_equal_value_are_circles_around_a_minimum() -> None:
    xs = [at / 20 - 1 for at in range(41)]
    canvas = plots.Canvas(40, 20, (-1, 1), (-1, 1))
    plots.contours(xs, xs, [[x * x + y * y for y in xs] for x in xs], [0.49], canvas)
    dots = [
        (2 * column + across, 4 * row + down)
        for row, cells in enumerate(canvas.cells)
        for column, cell in enumerate(cells)
        for down in range(4)
        for across in range(2)
        if cell & plots.DOTS[down][across]
    ]
    assert len(dots) > 100
    for across, down in dots:
        assert math.hypot(across / 79 * 2 - 1, down / 79 * 2 - 1) == pytest.approx(0.7, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["x*y*z"], "GC721"),
        (["3"], "GC721"),
        (["x*y", "--claim", "z = x"], "GC"),
        (["exp(x)", "--step-sizes"], "GC721"),
        (["x", "--box", "x=2:1"], "GC735"),
        (["x", "--format", "png"], "GC721"),
        (["x", "--claim", "x = 1", "--step-sizes"], "GC721"),
        (["x", "--claim", "x = 1", "--spy"], "GC721"),
        (["x**2", "--spy"], "GC202"),
        (["x**2", "--at", "x=1", "--spy", "--output", "spy.png"], "GC721"),
    ],
    ids=str,
)
def test_what_cannot_be_plotted(arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", *arguments]) == 2
    assert code in capsys.readouterr().err


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_svg_needs_no_library_and_shows_the_curves(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number is finite, every curve has its color, and every text of a user is escaped."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "plot.svg"
    assert cli.main(["plot", *arguments, "--output", str(path)]) == 0
    tree = ElementTree.parse(path).getroot()
    numbers = [float(text) for one in tree.iter() for text in re.findall(r"-?[0-9.]+", one.get("d") or "")]
    assert len(numbers) > 20 and all(-2000 < value < 2000 for value in numbers)
    colours = {one.get("stroke") for one in tree.iter()}
    steps, claim = "--step-sizes" in arguments, "--claim" in arguments
    assert plots.BLUE in colours or (len(arguments) == 1 and "y" in arguments[0])
    assert steps or plots.ORANGE in colours
    assert (plots.RED in colours) == claim
    assert "".join(one.text or "" for one in tree.iter() if one.tag.endswith("text")).startswith(arguments[0][:10])


def test_an_svg_stands_where_its_points_are() -> None:
    panel = vector_plots.Panel(40, 100, (0, 10), (-1, 1))
    assert panel.spot(0, 1) == (vector_plots.LEFT, 40) and panel.spot(10, -1) == (700 - vector_plots.RIGHT, 140)
    panel.curve([0, 5, 10, 10], [0, math.nan, 1, math.inf], plots.BLUE)
    assert panel.marks[0].count("M") == 2 and "L" not in panel.marks[0].partition('"')[2].partition('"')[0]
    ticks = vector_plots.ticks(-0.33, 0.1, False)
    assert ticks == [-0.3, -0.2, -0.1, 0.0, 0.1]
    assert vector_plots.ticks(1e300, 3e300, False) == [1e300, 1.5e300, 2e300, 2.5e300, 3e300]


def test_texts_of_an_svg_are_escaped() -> None:
    text = vector_plots.svg(plot("where(x < 1 and x > 0, x, 2*x)"))
    assert "where(x &lt; 1" in text and ElementTree.fromstring(text) is not None


@pytest.mark.peers
@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("jpg", b"\xff\xd8")])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_pictures_are_drawn_by_matplotlib(arguments: list[str], form: str, magic: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"plot.{form}"
    assert cli.main(["plot", *arguments, "--output", str(path)]) == 0
    assert path.read_bytes().startswith(magic) and path.stat().st_size > 5000


@pytest.mark.parametrize("form", ["png", "pdf", "jpg", "jpeg"])
def test_without_matplotlib_the_extra_is_named(
    form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["plot", "x**2", "--output", str(tmp_path / f"plot.{form}")]) == 2
    err = capsys.readouterr().err
    assert "GC713" in err and "gradcli[plot]" in err and ".svg" in err
    assert not list(tmp_path.iterdir())
    with pytest.raises(GradcliError, match="matplotlib"):
        plots.figure(plot("x**2"), form)


ARROW = "concatenate([[sum(x**2)], x[1:]**2 + x[0]*x[1:]])"


@pytest.mark.parametrize("size", [3, 60, 3000])
def test_a_spy_plot_shows_the_entries(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An arrow: its first row, its first column and its diagonal, in a terminal and as squares."""
    arguments = ["plot", ARROW, "--at", f"x=ones({size})", "--spy"]
    assert cli.main(arguments) == 0
    lines = [line[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    dots = {
        (4 * row + y, 2 * column + x)
        for row, line in enumerate(lines)
        for column, sign in enumerate(line)
        for y, pair in enumerate(plots.DOTS)
        for x, bit in enumerate(pair)
        if sign != " " and (ord(sign) - 0x2800) & bit
    }
    down, across = (1 + max(place) for place in zip(*dots, strict=True))
    assert min(size, 100) <= across <= size
    expected = {(row * down // size, column * across // size) for row in range(size) for column in (0, row)}
    assert dots == expected | {(0, column) for column in range(across)}
    path = tmp_path / "spy.svg"
    assert cli.main([*arguments, "--output", str(path)]) == 0
    drawn = [one.get("d") or "" for one in ElementTree.parse(path).getroot().iter() if one.tag.endswith("path")]
    squares = [
        tuple(map(float, one)) for one in re.findall(r"M([0-9.]+),([0-9.]+)h([0-9.]+)v([0-9.]+)", "".join(drawn))
    ]
    width = spy_plots.SIDE
    assert len(squares) == 3 * min(size, width) - 2
    for x, y, wide, high in squares:
        assert spy_plots.LEFT <= x <= spy_plots.LEFT + width - wide + 0.02
        assert spy_plots.TOP <= y <= spy_plots.TOP + width - high + 0.02


def test_a_pattern_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for script, entries in (("x*y**2", [[0, 1], [1, 0], [1, 1]]), ("[x, x*y, 3]", [[0, 0], [1, 0], [1, 1]])):
        arguments = ["plot", script, "--at", "x=1,y=0", "--spy", "--format"]
        assert cli.main([*arguments, "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert not list(validator("plot").iter_errors(answer))
        assert answer["entries"] == entries and answer["shape"] == [3 if "[" in script else 2, 2]
        assert cli.main([*arguments, "csv"]) == 0
        assert capsys.readouterr().out.splitlines() == ["row,column", *(f"{row},{column}" for row, column in entries)]
