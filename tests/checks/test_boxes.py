"""Boxes, points beside kinks and ladders of steps: what a check says of more than one point."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from gradcli.checks.decide.boxes import shortest_inside
from gradcli.interfaces.cli import main


def verdicts(script: str, **options: Any) -> list[Any]:
    return list(check_script(script, **options).checks)


@pytest.mark.parametrize(
    ("script", "box"),
    [
        ("x**2*sin(x)", {"x": (0.5, 3.0)}),
        ("exp(x*y)/(1 + x**2)", {"x": (0.0, 1.0), "y": (0.0, 2.0)}),
        ("gamma(x)*erf(x)", {"x": (1.0, 2.0)}),
        ("abs(x - 2)", {"x": (2.125, 9.0)}),
        ("sum(x*x*x)", {"x": (-1.0, 2.0)}),
    ],
)
def test_a_right_gradient_is_proved_on_the_box(script: str, box: Any) -> None:
    at = {"x": [0.5, -0.25]} if "sum" in script else {}
    for one in verdicts(script, at=at, box=box):
        assert one.verdict == "PROVED", one
        assert "whole box" in one.message
        assert one.evidence["box"] == {name: list(sides) for name, sides in box.items()}


def test_two_regions_are_proved_apart() -> None:
    """abs has another derivative on each side; between them lies the kink."""
    one = verdicts("sqrt((x - 3)**2 + where(x > 1, x, x*x)*0)", box={"x": (1.5, 2.5)})[0]
    assert one.verdict in ("PROVED", "CERTIFIED")


@pytest.mark.parametrize(
    ("script", "claim", "box", "at", "verdict", "where"),
    [
        ("abs(x - 2)", None, (1.0, 4.5), 1.5, "KINK", 2.0),
        ("relu(x)", None, (-1.0, 1.0), 0.5, "KINK", 0.0),
        ("sqrt(x)", None, (0.0, 1.0), 0.5, "BOUNDARY", 0.0),
        ("floor(x)", None, (0.5, 1.5), 0.75, "DISCONTINUOUS", 1.0),
        ("log(x)", None, (-1.0, 2.0), 1.0, "UNDEFINED", None),
        ("x**3", "3*x*abs(x)", (-2.0, 2.0), 1.0, "DISAGREES", None),
        ("sin(x)", "cos(x) + max(x - 2, 0)", (0.0, 3.0), 1.0, "DISAGREES", None),
    ],
)
def test_what_is_wrong_somewhere_in_the_box_is_found(
    script: str, claim: str | None, box: Any, at: float, verdict: str, where: float | None
) -> None:
    claims = None if claim is None else {"x": claim}
    point = verdicts(script, at={"x": at}, claims=claims)[-1]
    assert point.verdict in ("PROVED", "CERTIFIED"), "at the point all is well"
    found = verdicts(script, at={"x": at}, claims=claims, box={"x": box})[-1]
    assert found.verdict == verdict, found
    assert not found.passed
    assert box[0] <= found.evidence["at"]["x"] <= box[1]
    if where is not None:
        assert found.evidence["at"]["x"] == where


NEAR = [  # singular at a point that no float is, in a box from 0 to 1, and how
    ("abs(x - 0.3333)", "KINK", 0.3333),
    ("abs(x - 0.3333)*y", "KINK", 0.3333),
    ("1/(x - 0.3333)", "UNDEFINED", 0.3333),
    ("sqrt(abs(x - 0.3333))", "BOUNDARY", 0.3333),
    ("cbrt(x - 0.3)", "BOUNDARY", 0.3),
    ("log(abs(x - 0.3))", "UNDEFINED", 0.3),
    ("where(x > 0.3, x**2, 0.6*x - 0.1)", "DISCONTINUOUS", 0.3),
    ("sin(1000*x) + 0.001*abs(x - 0.3)", "KINK", 0.3),
    ("maximum(x**2, 0.7*x)", "KINK", 0.7),
    ("1/(x - 0.3333)**2", "UNDEFINED", 0.3333),
    ("tan(x + pi/2 - 0.3333)", "UNDEFINED", 0.3333),
    ("where(x > 0.3, x, -inf)", "DISCONTINUOUS", 0.3),
]


@pytest.mark.parametrize(("script", "verdict", "where"), NEAR, ids=[row[0] for row in NEAR])
def test_a_singularity_between_two_floats_is_named(script: str, verdict: str, where: float) -> None:
    start = 0.5 if "maximum" in script else 0.0
    found = verdicts(
        script, at={"x": 0.9, **({"y": 2.0} if "y" in script else {})}, wrt=["x"], box={"x": (start, 1.0)}
    )[0]
    assert found.verdict == verdict, found.message
    assert not found.passed
    assert f"in the box, near x = {where}: " in found.message
    low, high = found.evidence["between"]
    assert low <= where <= high and found.evidence["at"]["x"] == where


ONES = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("script", "at", "verdict", "where"),
    [
        ("relu(x*y - 0.37)", {"x": 1.0, "y": 1.0}, "KINK", "x = 0.37, y = 1.0"),
        ("1/(x*y - 0.31)", {"x": 1.0, "y": 1.0}, "UNDEFINED", "x = 0.31, y = 1.0"),
        ("sum(relu(A - 0.3721))", {"A": ONES}, "KINK", "A = [[0.3721, 1.0], [1.0, 1.0]]"),
        ("abs(sum(A) - 0.31)", {"A": ONES}, "KINK", "A = "),
        ("where(x < y - 0.1, x*y, 1)", {"x": 0.3, "y": 0.9}, "DISCONTINUOUS", "x = 0.8, y = 0.9"),
    ],
)
def test_a_singularity_of_several_entries_is_named(script: str, at: Any, verdict: str, where: str) -> None:
    for found in verdicts(script, at=at, box=dict.fromkeys(at, (0.0, 1.0))):
        assert found.verdict == verdict and not found.passed, found.message
        assert found.leaf == "y" or f"in the box, near {where}" in found.message
        assert found.message.startswith("in the box, near ")


def test_a_singularity_of_several_entries_at_a_float_is_found_at_once() -> None:
    for found in verdicts("abs(x - y)", at={"x": 1.0, "y": 0.75}, box={"x": (0.0, 1.0), "y": (0.0, 1.0)}):
        assert found.verdict == "KINK" and "pieces" not in found.evidence
        assert found.message.startswith("in the box, at x = 0.75, y = 0.75: ") or found.leaf == "y"


@pytest.mark.parametrize(
    ("script", "slope", "where"),
    [
        ("where(x > 0.5, x**2, x - 0.25)", "where(x > 0.5, 2*x, 1)", 0.5),
        ("where(x > 0.3, x**2, 0.6*x - 0.09)", "where(x > 0.3, 2*x, 0.6)", 0.3),
        ("(x - 0.3)*abs(x - 0.3)", "2*abs(x - 0.3)", 0.3),
        ("where(x > sqrt(0.5), x**2, sqrt(2)*x - 0.5)", "where(x > sqrt(0.5), 2*x, sqrt(2))", 0.7071067811865475),
        ("where(sin(x) > 0.5, x**2, pi/3*x - (pi/6)**2)", "where(sin(x) > 0.5, 2*x, pi/3)", 0.5235987755982988),
    ],
)
def test_a_smooth_join_is_decided(script: str, slope: str, where: float) -> None:
    """Every number of the box lies in a part that is proved, and the remark says where the parts meet."""
    for one in verdicts(script, at={"x": 0.9}, claims={"x": f"{slope} + 0*x"}, box={"x": (0.0, 1.0)}):
        assert one.verdict == "PROVED", one.message
        assert f"smooth across x = {where:g}" in one.message
    claims = {"x": f"{slope} + relu({where} - x)*1e-3"}
    assert verdicts(script, at={"x": 0.9}, claims=claims)[-1].passed, "at the point all is well"
    assert verdicts(script, at={"x": 0.9}, claims=claims, box={"x": (0.0, 1.0)})[-1].verdict == "DISAGREES"


@pytest.mark.parametrize("power", [1.1, 1.5])
def test_a_power_is_smooth_at_its_zero_as_far_as_exact_numbers_show(power: float) -> None:
    """Up to the zero no ball encloses a power that is not whole."""
    found = verdicts(f"abs(x - 0.3)**{power}", at={"x": 0.9}, box={"x": (0.0, 1.0)})[0]
    assert found.verdict == "AGREES"
    assert found.message.endswith("smooth across x = 0.3, as far as exact numbers show")


def test_a_quotient_without_a_value_inside_a_box_is_undefined() -> None:
    claims = {"x": "1 + 0*x"}
    found = verdicts("(x**2 - 0.09)/(x - 0.3)", at={"x": 0.9}, claims=claims, box={"x": (0.0, 1.0)})[-1]
    assert found.verdict == "UNDEFINED" and "div is undefined at 0, 0" in found.message


def test_a_box_of_a_matrix_ends_by_a_count() -> None:
    """Among the points that are looked at is a singular matrix; without it the count of pieces ends the search."""
    found = verdicts("sum(inv(A))", at={"A": [[4.0, 1.0], [1.0, 3.0]]}, box={"A": (0.5, 5.0)}, timeout=90.0)[0]
    assert found.verdict == "UNDEFINED"
    (a, b), (c, d) = found.evidence["at"]["A"]
    assert a * d == b * c


MATRIX = (0.1 + 0.12 * np.arange(20.0).reshape(4, 5)).tolist()


@pytest.mark.parametrize(
    ("script", "claim", "verdict", "told"),
    [
        ("sum(A*tanh(A))", "tanh(A) + A*(1 - tanh(A)**2)", "PROVED", "on the whole box"),
        ("sum(exp(A.T @ A))", None, "PROVED", "on the whole box"),
        ("norm(A)", None, "KINK", "every entry is 0"),
        ("sum(A**2)", "2*A + relu(A - 2.99)", "INCONCLUSIVE", "pieces are undecided after"),
    ],
)
def test_a_box_of_a_matrix_of_many_entries(script: str, claim: str | None, verdict: str, told: str) -> None:
    """A box of twenty entries is decided, or given up by a count of pieces."""
    claims = None if claim is None else {"A": claim}
    found = verdicts(script, at={"A": MATRIX}, claims=claims, box={"A": (0.0, 3.0)})[-1]
    assert found.verdict == verdict, found.message
    assert told in found.message


def test_a_box_around_zero_is_one_piece() -> None:
    """Whole powers have values on a ball with 0 in its middle."""
    claims = {"A": "2*A + 3*A**2"}
    found = verdicts("sum(A**2) + sum(A**3)", at={"A": MATRIX}, claims=claims, box={"A": (-3.0, 3.0)})[-1]
    assert found.verdict == "PROVED", found.message
    assert found.evidence["pieces"] == 1


def test_a_claim_without_a_proof_is_certified_to_a_bound() -> None:
    """The claim differs from the derivative by a constant of many digits: no proof, but a bound on the whole box."""
    script = "x**2*2.718281828459045"
    found = verdicts(script, at={"x": 1.0}, claims={"x": "2*exp(1)*x"}, box={"x": (1.0, 1.5)})[-1]
    assert found.verdict == "CERTIFIED", found
    assert 0 < found.evidence["bound_on_the_box"] <= 1e-3


def test_a_box_that_is_too_large_for_its_budget_stays_open() -> None:
    script = "x**2*2.718281828459045*sin(1000*x) + y*0"
    found = verdicts(script, at={"x": 1.0, "y": 1.0}, wrt=["x"], box={"x": (0.5, 40.0)},
                     claims={"x": "2*exp(1)*x*sin(1000*x) + exp(1)*x**2*1000*cos(1000*x)"})[-1]  # fmt: skip
    assert found.verdict == "INCONCLUSIVE", found
    assert "on the box" in found.message


@pytest.mark.parametrize(
    ("box", "at", "code"),
    [({"z": (0.0, 1.0)}, {}, "GC206"), ({"x": (0.0, 1.0)}, {"x": 3.0}, "GC735")],
)
def test_a_box_that_does_not_fit(box: Any, at: Any, code: str) -> None:
    with pytest.raises(GradcliError) as refused:
        verdicts("x**2", at=at, box=box)
    assert refused.value.diagnostics[0].code == code


def test_a_singular_matrix_is_found_among_the_first_open_pieces() -> None:
    found = verdicts("sum(inv(A))", at={"A": [[2, 1], [1, 3]]}, box={"A": (0.9, 3.1)})[0]
    assert found.verdict == "UNDEFINED"
    assert found.evidence["pieces"] <= 100


@pytest.mark.parametrize("text", ["x", "x=1", "x=2:1", "x=a:b", "x=0:inf", "=0:1", "x=0:nan"])
def test_boxes_that_cannot_be_read(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "x**2", "--box", text]) == 2
    assert "GC735" in capsys.readouterr().err


def test_dodge_leaves_a_kink_and_says_so() -> None:
    plain = verdicts("abs(x - 2)*y", at={"x": 2.0, "y": 1.0})[0]
    assert plain.verdict == "KINK"
    found = verdicts("abs(x - 2)*y", at={"x": 2.0, "y": 1.0}, dodge=True)[0]
    assert found.verdict in ("PROVED", "CERTIFIED")
    assert found.passed
    assert found.evidence["dodged"]["verdict"] == "KINK"
    assert found.evidence["at"]["x"] != 2.0
    assert found.message.endswith(f"moved off a KINK at x = 2.0 to {found.evidence['at']['x']}")
    wrong = verdicts("abs(x - 2)", at={"x": 2.0}, claims={"x": "2*sign(x - 2)"}, dodge=True)[-1]
    assert wrong.verdict == "DISAGREES"


def test_steps_show_how_the_error_falls() -> None:
    found = verdicts("sin(x)*exp(x)", at={"x": 1.0}, steps=True)[0].evidence["ladder"]
    assert found["rate"] == pytest.approx(2, abs=0.1)
    assert found["exact"] == pytest.approx(found["claimed"], rel=1e-15)
    assert len(found["steps"]) == len(found["slopes"]) > 10
    assert min(abs(slope - found["exact"]) for slope in found["slopes"]) < 1e-9
    assert "ladder" not in verdicts("sin(x)", at={"x": 1.0})[0].evidence


def test_steps_of_a_wrong_claim_are_measured_against_the_exact_derivative() -> None:
    found = verdicts("x**3", at={"x": 2.0}, claims={"x": "3*x**2 + 0.5"}, steps=True)[-1].evidence["ladder"]
    assert (found["exact"], found["claimed"]) == (12.0, 12.5)


def test_the_card_has_a_plot_and_a_command_that_replays(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["check", "x**2*sin(y)", "--at", "x=2,y=3", "--claim", "y = 1.00001*x**2*cos(y)"]
    assert main([*asked, "--step-sizes"]) == 1
    shown = capsys.readouterr().out
    assert "differs from here" in shown
    assert "the error falls as step**" in shown
    assert "\n2.0e-01 " in shown
    again = next(line for line in shown.splitlines() if line.startswith("reproduce "))
    assert again.split("gradcli ")[1].startswith("check 'x**2*sin(y)' --at x=2,y=3 --claim 'y = 1.00001")
    assert main([*asked, "--seed", again.rsplit(" ", 1)[1], "--format", "json"]) == 1
    replayed = json.loads(capsys.readouterr().out)["checks"]
    assert main([*asked, "--format", "json"]) == 1
    assert replayed == json.loads(capsys.readouterr().out)["checks"]


def test_the_number_somebody_would_try() -> None:
    assert shortest_inside(-1.0, 1.0) == 0.0
    assert shortest_inside(1.9999999, 2.0000002) == 2.0
    assert shortest_inside(0.1249, 0.12501) == 0.125
