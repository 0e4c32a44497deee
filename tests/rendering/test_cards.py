"""Cards of failing checks: what a first look needs, rows of numbers under their titles, and a ladder that says what it saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.checks import check_callable, check_script
from gradcli.rendering import plain
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
    assert ["left", "-1.0"] in lines and ["right", "1.0"] in lines and ["returned", "0.0"] in lines
    shown = text(check_script("sum(abs(x))", at={"x": [0, 0]}))
    assert "[-1.0, -1.0]" in shown and "[1.0, 1.0]" in shown


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
    """`--steps` shows a table for every derivative; without it a check that passed has a row only."""
    claims = {"x": "cos(x)"}
    bare = text(check_script("sin(x)", at={"x": 2}, claims=claims))
    shown = text(check_script("sin(x)", at={"x": 2}, claims=claims, steps=True))
    assert "central difference" not in bare
    assert shown.count("central difference") == 2
    assert shown.count("the error falls as step**2") == 2
    assert "agree_bits" not in shown  # the rest of the evidence is for `--show all`
