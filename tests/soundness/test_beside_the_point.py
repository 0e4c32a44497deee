"""Comparisons beside the point are needed: each switched off, a case comes out wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.checks import check_script
from gradcli.checks.decide import numerical, refutation, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.checks.report import Check


def smallest(x: Any) -> Any:
    """A gradient whose smallest entry is tripled, which is 0 at the point."""
    slope = np.sin(x) + x * np.cos(x)
    return slope * (1 + 2.0 * (np.abs(slope) == np.min(np.abs(slope))))


def of_structure() -> Check:
    return gradcli.check(lambda x: np.sum(np.sin(x) * x), smallest, at=np.array([1.0, 0.0, 2.0])).checks[0]


def of_a_square() -> Check:
    return check_script("sqrt((x**3-8)**2)", at={"x": 2.25}, claims={"x": "3*x**2"}).checks[-1]


def at_the_point_only() -> Check:
    def f(x: Any) -> float:
        return sum(float(entry) ** 2 for entry in x)

    return gradcli.check(f, lambda x: 2 * x * x[0], at=np.array([1.0, 2.0, 3.0])).checks[0]


OFF = [
    (refutation, "right_by_structure", lambda *_: None, of_structure, "DISAGREES", "CERTIFIED"),
    (verdict, "leave_other_branches", lambda *_: None, of_a_square, "PROVED", "DISAGREES"),
    (numerical.ByDifferences, "only_here", lambda *_: None, at_the_point_only, "DISAGREES", "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("place", "name", "off", "case", "right", "wrong"), OFF, ids=[row[1] for row in OFF])
def test_each_comparison_beside_the_point_is_needed(
    place: Any, name: str, off: Any, case: Callable[[], Check], right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert case().verdict == right
    monkeypatch.setattr(place, name, off)
    assert case().verdict == wrong


@pytest.mark.parametrize(
    ("text", "at", "claim", "right"),
    [
        ("1e-320*sin(x)", 30.0, "0.0", "DISAGREES"),
        ("1e-320*sin(x)", 30.0, "1.54e-321", "AGREES"),
        ("x**2*1e-160*1e-160", 1.0, "2.00001e-320", "AGREES"),
        ("where(floor(x) == 2, x**2, x)", 2.05, "2*x", "PROVED"),
        ("where(floor(x) == 2, x**2, x)", 2.05, "3*x - 2.05", "DISAGREES"),
        ("sqrt((x**3-8)**2)", 2.25, "3*x**2 + (x - 2.25)", "DISAGREES"),
    ],
)
def test_numbers_below_the_normal_ones_and_points_in_other_branches(
    text: str, at: float, claim: str, right: str
) -> None:
    assert check_script(text, at={"x": at}, claims={"x": claim}).checks[-1].verdict == right


def test_steps_are_no_noise() -> None:
    """A gradient that is cut to whole numbers has jumps, which are not the noise of differences."""
    check = gradcli.check(
        lambda x: np.sum(np.exp(x)), lambda x: np.exp(np.asarray(x, int) * 1.0), at=np.array([1.0, 1e-10])
    ).checks[0]
    assert check.verdict == "DISAGREES"


def test_every_undecided_part_of_a_box_needs_its_singularity() -> None:
    text = "where((x) == (0.3333), (0.3333), (x))"
    check = check_script(
        text, at={"x": 0.32705}, claims={"x": "where((x) == (0.3333), 0, (1))"}, box={"x": (0.2833, 0.4583)}
    ).checks[-1]
    assert check.verdict in ("DISAGREES", "INCONCLUSIVE")


def test_digits_of_a_sum_do_not_pass_an_entry_that_was_not_measured() -> None:
    check = gradcli.check(
        lambda x: np.sum(np.abs(x)),
        lambda x: np.where(np.asarray(x) > 0.25, np.sign(x), 0.0),
        at=np.array([1.0, 1e-10]),
    ).checks[0]
    assert check.verdict == "INCONCLUSIVE"
