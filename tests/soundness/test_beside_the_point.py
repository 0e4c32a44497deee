"""Comparisons beside the point are needed: each switched off, a case comes out wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.checks import check_script
from gradcli.checks.callables import recorded
from gradcli.checks.decide import assumptions, chosen_points, numerical, refutation, verdict
from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.survey import Survey
from tests.support.rows import all_rows

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
    return check_script("sqrt((x**3-8)**2)", at={"x": 2.0625}, claims={"x": "3*x**2"}).checks[-1]


def at_the_point_only() -> Check:
    def f(x: Any) -> float:
        return sum(float(entry) ** 2 for entry in x)

    return gradcli.check(f, lambda x: 2 * x * x[0], at=np.array([1.0, 2.0, 3.0])).checks[0]


def of_steps() -> Check:
    return gradcli.check(lambda x: np.floor(x * 1e5) / 1e5, lambda x: 1.0, at=0.3333333).checks[0]


def of_steps_by_values() -> Check:
    return gradcli.check(lambda x: math.floor(float(x) * 3e4) / 3e4, lambda x: 1.0, at=0.3333333).checks[0]


def of_decimals() -> Check:
    return gradcli.check(lambda x: 1e6 + round(float(x), 9), lambda x: 1.0, at=1.3).checks[0]


def of_single_precision() -> Check:
    """Whose values are those of float32 near the point alone."""
    return gradcli.check(lambda x: math.floor(float(x) * 2**24) / 2**24, lambda x: 1.0, at=0.7).checks[0]


def of_a_smooth_tie() -> Check:
    return check_script("x*abs(x)", at={"x": 0.0}, claims={"x": "3*abs(x)"}).checks[-1]


def of_a_smooth_tie_recorded() -> Check:
    return gradcli.check(lambda x: np.sum(np.maximum(x, 0) ** 2), lambda x: 2 * x, at=np.array([0.0, 1.0])).checks[0]


def of_decimals_of_the_point() -> Check:
    return check_script("x**2", at={"x": 1.1}, claims={"x": "round(2*x*1e15)/1e15"}).checks[-1]


def of_a_branch() -> Check:
    return gradcli.check(lambda x: float(x) ** 2, lambda x: 2 * float(x) if x >= 1 else 3 * float(x), at=1.0).checks[0]


def of_differences() -> Check:
    return gradcli.check(wave, richardson(wave, 1e-3), at=0.7).checks[0]


def of_a_box_of_data() -> Check:
    """Of more entries than a proof has symbols for; what is wrong is 0 at the point, and where the box is proved."""
    about: Any = {"at": {"z": 2.0, "y": np.full(30, 1.0)}, "box": {"y": (0, 1.6180339887498947)}}
    return check_script("z*sum(y**2)", claims={"z": "sum(y**2) + 1e-40*(y[0] - 1)"}, **about).checks[-1]


def central(f: Any, h: float) -> Any:
    return lambda x: (f(x + h) - f(x - h)) / (2 * h)


def richardson(f: Any, h: float) -> Any:
    return lambda x: (4 * central(f, h / 2)(x) - central(f, h)(x)) / 3


def wave(x: Any) -> Any:
    return np.exp(x) * np.sin(x)


OFF = [
    (refutation, "right_here_only", lambda *_: None, of_structure, "DISAGREES", "CERTIFIED"),
    (verdict, "leave_other_branches", lambda *_: None, of_a_square, "PROVED", "DISAGREES"),
    (numerical.ByDifferences, "only_here", lambda *_: None, at_the_point_only, "DISAGREES", "INCONCLUSIVE"),
    (Survey, "seen_closer", lambda *_: False, of_steps, "DISAGREES", "INCONCLUSIVE"),
    (step_sequences, "stepped", lambda *_: False, of_steps_by_values, "INCONCLUSIVE", "AGREES"),
    (step_sequences, "in_decimals", lambda *_: False, of_decimals, "INCONCLUSIVE", "AGREES"),
    (Survey, "in_single", lambda *_: True, of_single_precision, "INCONCLUSIVE", "AGREES"),
    (refutation, "right_here_only", lambda *_: None, of_a_smooth_tie, "DISAGREES", "CERTIFIED"),
    (refutation, "right_here_only", lambda *_: None, of_a_smooth_tie_recorded, "DISAGREES", "CERTIFIED"),
    (refutation, "by_luck", lambda *_: False, of_decimals_of_the_point, "DISAGREES", "CERTIFIED"),
    (chosen_points, "rescaled", lambda x, *_: [x * 1.02, x * 1.03], of_a_branch, "INCONCLUSIVE", "AGREES"),
    (recorded, "error_of_differences", lambda *_: 0.0, of_differences, "IMPRECISE", "DISAGREES"),
    (assumptions.Proof, "texts", lambda *_: [], of_a_box_of_data, "INCONCLUSIVE", "PROVED"),
]


@pytest.mark.parametrize(
    ("place", "name", "off", "case", "right", "wrong"), OFF, ids=[f"{row[1]} {row[3].__name__}" for row in OFF]
)
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
        ("1e6*x**2", 1.0, "round(2e6*x)", "DISAGREES"),
        ("1e8*exp(x)", 0.0, "floor(1e8*exp(x))", "DISAGREES"),
        ("x**3", 1.1, "round(3*x**2*1e9)/1e9", "DISAGREES"),
        ("x**3", 1.1, "3*x**2 - mod(3*x**2, 1e-6)", "DISAGREES"),
        ("x**2", 2.5, "2*x + 1e-30*sin(1000*pi*x)", "DISAGREES"),
        ("x**3*exp(-x)", 1.25, "3*x**2*exp(-x) - x**3*exp(-x) + 1e-100*sin(100*pi*x)", "DISAGREES"),
        ("x - mod(x, 1e-7)", 0.123456789, "1", "DISAGREES"),
        ("x - mod(x, 1e-7)", 0.123456789, "0", "PROVED"),
        ("mod(x, 1e-7)", 0.123456789, "1", "PROVED"),
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


FLOOR = {
    "floor": lambda n: lambda x: np.floor(x * n) / n,
    "ceil": lambda n: lambda x: np.ceil(x * n) / n,
    "round": lambda n: lambda x: np.rint(x * n) / n,
    "trunc": lambda n: lambda x: np.trunc(x * n) / n,
    "a remainder": lambda n: lambda x: x - np.mod(x, 1 / n),
    "a quotient": lambda n: lambda x: (x // (1 / n)) / n,
    "another remainder": lambda n: lambda x: x - np.fmod(x, 1 / n),
    "decimals": lambda n: lambda x: np.round(x, round(math.log10(n))),
    "integers": lambda n: lambda x: np.asarray(x * n).astype(int) / n,
    "a sum": lambda n: lambda x: x * 0 + np.floor(x * n) / n,
    "a black box": lambda n: lambda x: math.floor(float(x) * n) / n,
}


@all_rows("name", FLOOR)
@all_rows("n", [1e2, 1e4, 1e5, 1e6, 1e9, 1e12])
def test_steps_have_the_slope_0_at_any_scale(name: str, n: float) -> None:
    f = FLOOR[name](n)
    assert gradcli.check(f, lambda x: 0.0, at=0.3333333).checks[0].verdict in ("PROVED", "AGREES", "INCONCLUSIVE")
    wrong = gradcli.check(f, lambda x: 1.0, at=0.3333333).checks[0]
    if name != "a black box":
        assert wrong.verdict == "DISAGREES"
    elif n <= 1e6:  # what is finer may come from an iteration
        assert wrong.verdict == "INCONCLUSIVE"


def each(f: Any, h: float) -> Any:
    return lambda x: np.stack([central(lambda t, way=way: f(x + t * way), h)(0.0) for way in np.eye(len(x))])


def bowl(x: Any) -> Any:
    return np.sum(np.sin(x) * x) + x[0] * x[1]


DIFFERENCES: dict[str, tuple[Any, Any, Any]] = {
    "central": (wave, central(wave, 1e-5), 0.7),
    "Richardson": (wave, richardson(wave, 1e-3), 0.7),
    "Richardson, of large steps": (wave, richardson(wave, 1e-2), 1.5),
    "forward": (wave, lambda x: (wave(x + 1e-6) - wave(x)) / 1e-6, 0.7),
    "entry by entry": (bowl, each(bowl, 1e-5), np.array([0.7, 1.5, -0.3])),
    "in place": (lambda x: np.sin(x) * x, lambda x: (np.sin(x + 1e-5) * (x + 1e-5) - np.sin(x - 1e-5) * (x - 1e-5)) / 2e-5, 0.7),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_finite_difference_is_imprecise_and_an_error_beyond_its_own_does_not_pass(name: str) -> None:
    f, df, at = DIFFERENCES[name]
    assert gradcli.check(f, df, at=at).checks[0].verdict == "IMPRECISE"
    for slip in (1e-3, 6e-5):
        wrong = gradcli.check(f, lambda x, k=slip: (1 + k) * df(x), at=at).checks[0]
        assert wrong.verdict in ("DISAGREES", "INCONCLUSIVE"), wrong


@pytest.mark.parametrize("slip", [1e-6, 1e-9, 2e-13])
@pytest.mark.parametrize("noise", [0.0, 1e4, 1e8])
def test_the_noise_of_a_formula_excuses_no_error_of_it(slip: float, noise: float) -> None:
    check = gradcli.check(lambda x: x**3, lambda x: 3 * ((noise + x * x) - noise) * (1 + slip), at=0.7).checks[0]
    assert check.verdict in ("DISAGREES", "INCONCLUSIVE")


def test_what_is_cut_to_whole_numbers_swallows_no_small_entry() -> None:
    at = np.array([1e6, 1e-6, 1.0])
    for cut in (lambda x: np.asarray(x, int) * 1.0, np.rint, np.floor, lambda x: np.around(x, 3)):
        check = gradcli.check(lambda x: np.sqrt(np.sum(x * x)), lambda x, c=cut: c(x) / np.sqrt(np.sum(x * x)), at=at)
        assert check.checks[0].verdict in ("DISAGREES", "INCONCLUSIVE"), check


@pytest.mark.parametrize("error", ["1e-4", "1e-9", "1e-12", "1e-40"])
def test_what_is_right_in_the_middle_of_a_box_is_not_right_on_it(error: str) -> None:
    check = check_script(
        "x**2 + y**2", at={"x": 1.0, "y": 1.0}, claims={"x": f"2*x + {error}*(y - 1)"}, box={"y": (0, 2)}
    ).checks[-1]
    assert check.verdict == "DISAGREES", check


@pytest.mark.parametrize(
    ("text", "claim", "right"),
    [("relu(x)**2", "2*relu(x)", "PROVED"), ("x*abs(x)", "2*abs(x)", "PROVED"), ("abs(x)", "sign(x)", "KINK")],
)
@pytest.mark.parametrize("box", [(-1, 2), (-0.3, 2), (-1, 1), (-1e-9, 3)], ids=["1", "2", "3", "4"])
def test_a_zero_of_a_box_is_found_wherever_it_lies_in_it(
    text: str, claim: str, right: str, box: tuple[float, float]
) -> None:
    assert check_script(text, at={"x": 0.5}, claims={"x": claim}, box={"x": box}).checks[-1].verdict == right


RIGHT_AT_TIES = {  # smooth at the point, where kinks cancel: a right slope, and others that are right there alone
    ("x*abs(x)", "x=0"): ("2*abs(x)", "2*x", "3*abs(x)", "x**2"),
    ("relu(x)**2", "x=0"): ("2*relu(x)", "2*x", "3*relu(x)"),
    ("abs(x)**3", "x=0"): ("3*x*abs(x)", "3*x**2", "3*abs(x)"),
    ("norm(x)**2", "x=[0,0]"): ("2*x", "3*x", "2*abs(x)"),
    ("hypot(x, y)**2", "x=0,y=0"): ("2*x", "3*x"),
    ("sqrt(x**4)", "x=0"): ("2*x", "3*x"),
    ("where(x == 0, 1, sin(x)/x)", "x=0"): ("where(x == 0, 0, cos(x)/x - sin(x)/x**2)", "x", "-sin(x)"),
    ("where(x >= 1, x**2, 2*x - 1)", "x=1"): ("where(x >= 1, 2*x, 2)", "2*x", "2*x**2"),
    ("where(x == 0, 0, exp(-1/x**2))", "x=0"): ("where(x == 0, 0, 2*exp(-1/x**2)/x**3)", "x", "x**9"),
    ("elu(x)", "x=0"): ("where(x > 0, 1, exp(x))", "1 + x**2", "where(x > 0, 1, 1 + x)"),
    ("maximum(x, y)*minimum(x, y)", "x=1,y=1"): ("y", "x", "x*y"),
    ("sum(sort(x)**2)", "x=[1,1]"): ("2*x", "2*x[0]*ones(2)", "2*x**2"),
    ("sum(svdvals(A)**2)", "A=[[1,0],[0,1]]"): ("2*A", "2*A@A"),
}


@pytest.mark.parametrize(("text", "at"), RIGHT_AT_TIES, ids=[text for text, _ in RIGHT_AT_TIES])
def test_where_kinks_cancel_a_claim_is_right_on_both_sides_too(text: str, at: str) -> None:
    right, *wrong = RIGHT_AT_TIES[text, at]
    leaf = at[0]
    assert check_script(text, at=[at], claims={leaf: right}).checks[-1].passed
    for claim in wrong:
        assert check_script(text, at=[at], claims={leaf: claim}).checks[-1].verdict == "DISAGREES", claim


@pytest.mark.parametrize(("leaf", "equality"), [
    ("x = [1, 1]", "max(x) == x[0]"), ("x = [1, 1]", "sort(x) == x"), ("x = [0, 0]", "relu(x) == x"), ("x = 0", "abs(x) == x"),
])  # fmt: skip
@pytest.mark.parametrize("factor", range(6))
def test_an_equality_at_a_tie_holds_on_both_sides(leaf: str, equality: str, factor: int) -> None:
    """Whatever the seed of the points nearby, which comes from the text."""
    check = check_script(f"{leaf}; assert {equality}; {factor + 1}*sum(x)", samples=1).checks[-1]
    assert check.kind == "claim" and check.verdict == "DISAGREES", check


@pytest.mark.parametrize(("slope", "right"), [("6*abs(x)", True), ("6*x", False), ("5*abs(x)", False), ("x", False)])
def test_where_kinks_of_a_derivative_cancel_a_second_one_is_right_on_both_sides_too(slope: str, right: bool) -> None:
    for left in ("grad(grad(f, x), x)", "hessian(f, x)"):
        check = check_script(f"x = 0; f = abs(x)**3; assert {left} == {slope}; f").checks[-1]
        assert check.kind == "claim" and (check.verdict != "DISAGREES") is right, check


@pytest.mark.parametrize(
    ("text", "at", "claim", "warned"),
    [
        ("x**2*y", "x=3,y=1", "2*x", True),
        ("x**2*y", "x=3,y=1", "2*x*y**2", True),
        ("x**2*y", "x=3,y=2", "x*y**2", True),
        ("sum(w*x**2)", "x=[1,2],w=[1,1]", "2*x", True),
        ("x**2*y", "x=3,y=1", "2*x*y", False),
        ("x**2*abs(y)", "x=3,y=1", "2*x*y", False),
    ],
)
def test_a_claim_that_needs_the_value_of_another_leaf_has_a_warning(
    text: str, at: str, claim: str, warned: bool
) -> None:
    check = check_script(text, at=[at], claims={"x": claim}).checks[-1]
    assert check.passed and ("; warning: wrong where " in check.message) is warned, check.message
