"""Claims that are right by luck at the given decimals: wrong in general, so refuted in every form; right ones stay right."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.checks import check_script
from tests.support.rederive import rederive
from tests.support.rows import all_rows

WRONG = [
    "x = {a}\ny = x**3\nassert grad(y, x) == 3*x**2*(1 + x - {a})\ny",
    "x = {a}\ny = x**3\nassert grad(y, x) == 3*{a}*x\ny",
    "x = {a}\ny = x**3\nassert grad(y, x) == 3*x**2 + (x - {a})*1e-9\ny",
    "x = {a}\ny = x**3\nassert y == x**2*{a}\ny",
    "x = {a}\ny = x**3\nassert y == x*x*(2*x - {a})\ny",
    "x = {a}\ny = x**3\nassert x*y == x**2*y/{a}\ny",
    "x = {a}\nz = {b}\nassert x*z == z*{a}\nx*z",
    "x = [{a}, {b}, {c}]\nassert x[0] + x[1] == x[2]\nsum(x)",
    "x = {a}\ndef f(v): return v**3\ndef f.vjp(v, ct): return ct*3*{a}*v\nf(x)",
    "x = {a}\ndef f(v): return v**3\ndef f.vjp(v, ct): return ct*3*v**2*(1 + v - {a})\nf(x)",
    "x = {a}\ny = x**2\nz = y**2\nassert grad(z, y) == 2*{a}*x\nz",
    "x = {a}\ny = x**2\nz = y**3\nassert grad(z, y) == 3*y*x*{a}\nz",
    "x = {a}\ny = x**4\nassert hessian(y, x) == 12*{a}*x\ny",
    "x = {a}\ny = x**4\nassert grad(grad(y, x), x) == 12*{a}*x\ny",
    "x = [{a}, {b}]\ny = sum(x**3)\nassert grad(y, x) == 3*x**2*(1 + sum(x) - {c})\ny",
]  # fmt: skip
DECIMALS = [("0.3", "0.1", "0.4"), ("0.1", "0.7", "0.8"), ("1.1", "0.2", "1.3")]


@all_rows("script", WRONG)
@all_rows(("a", "b", "c"), DECIMALS)
def test_luck_does_not_pass(script: str, a: str, b: str, c: str) -> None:
    found = check_script(script.format(a=a, b=b, c=c)).checks
    judged = [one for one in found if one.kind != "gradient"]
    assert [one.verdict for one in judged] == ["DISAGREES"], (script, judged[0].message)


@pytest.mark.parametrize("claim", ["3*x**2*(1 + x - {a})", "3*{a}*x", "3*x**2*(1 + 1e-12*(x - {a}))"])
@pytest.mark.parametrize("a", ["0.3", "0.1", "1.1"])
def test_luck_does_not_pass_on_the_command_line(claim: str, a: str) -> None:
    found = check_script("x**3", at=[f"x={a}"], claims={"x": claim.format(a=a)}).checks[-1]
    assert found.verdict == "DISAGREES", found.message


RIGHT = [
    "const p = [0.1, 0.2, 0.7]\nx = [0.3, 0.4, 0.5]\ny = sum(p)*logsumexp(x) - sum(p*x)\nassert grad(y, x) == softmax(x) - p\ny",
    "p = [0.1, 0.2, 0.7]\nx = [0.3, 0.4, 0.5]\ny = logsumexp(x)*sum(p) - sum(p*x)\nassert grad(y, x) == softmax(x) - p\ny",
    "const d = [0.1, 0.2, 0.3]\nx = 0.5\ny = x*(d[0] + d[1] - d[2])\nassert y == 0\ny",
    "const d = [0.3, 0.7]\nx = 0.5\ny = sum(d*x**2)\nassert grad(y, x) == 2*x\ny",
    "x = 0.3\nassert 3*x == 0.9\nx**2",
    "x = 0.3\ny = x**2\nassert grad(y, x) == 0.6\ny",
    "x = 0.3\ny = x**2\nz = y**2\nassert grad(z, y) == 2*y\nz",
    "x = 0.3\ny = x**2\nz = y**2\nassert grad(z, y) == 0.18\nz",
]  # fmt: skip


@pytest.mark.parametrize("script", RIGHT)
def test_decimals_that_are_meant_as_written_are_not_refuted(script: str) -> None:
    judged = [one for one in check_script(script).checks if one.kind != "gradient"]
    assert judged[0].verdict in ("PROVED", "CERTIFIED", "AGREES"), judged[0].message


CONSTANTS = [
    ("exp(x)", "2.718281828459045**x", "2.718281828459045"),
    ("x**2*pi", "6.28318530717958647*x", "6.28318530717958647"),
    ("x**2/6", "0.333333333333333333*x", "0.333333333333333333"),
    ("log(x)/log(2)", "1.4426950408889634/x", "1.4426950408889634"),
]


@pytest.mark.parametrize(("text", "claim", "constant"), CONSTANTS)
def test_a_rounded_constant_is_named_and_never_proved(text: str, claim: str, constant: str) -> None:
    found = check_script(text, at={"x": 0.7}, claims={"x": claim}).checks[-1]
    assert (found.verdict, found.message) == ("CERTIFIED", f"equal within the digits of the constant {constant}")
    assert found.evidence["constants"] == [constant]
    assert rederive(found) == "CERTIFIED"
    last = constant[:-1] + str((int(constant[-1]) + 4) % 10)
    assert (
        check_script(text, at={"x": 0.7}, claims={"x": claim.replace(constant, last)}).checks[-1].verdict == "DISAGREES"
    )


def test_a_constant_that_both_sides_share_is_any_number() -> None:
    """Its digits are not needed: what is proved holds for every number in its place."""
    shared = check_script("2.718281828459045*x**2", at={"x": 0.7}, claims={"x": "2*2.718281828459045*x"}).checks[-1]
    assert shared.verdict == "PROVED"


GAUSS = "0.7978845608028654*exp(-x**2/2)"
ON_A_ROUNDED_BOUNDARY = [  # a condition whose boundary is the point in floats, and a claim with rounded constants
    ("where(x > 0.6931471805599453, erf(x*0.7071067811865476), erf(x/sqrt(2)))",
     "where(x > 0.6931471805599453, {g}, {g})", 0.6931471805599453),
    ("where(x > 1.4142135623730951, x*erf(x/sqrt(2)), x**2)",
     "where(x > 1.4142135623730951, erf(x*0.7071067811865476) + x*{g}, 2*x)", 1.4142135623730951),
]  # fmt: skip


@pytest.mark.parametrize(("text", "claim", "x"), ON_A_ROUNDED_BOUNDARY)
def test_a_rounded_constant_in_a_condition_refutes_nothing_on_its_boundary(text: str, claim: str, x: float) -> None:
    """Which branch the unrounded constant would take is open there; the points beside it decide."""
    found = check_script(text, at={"x": x}, claims={"x": claim.format(g=GAUSS)}).checks[-1]
    assert (found.verdict, found.evidence["reading"]) == ("CERTIFIED", "rounded"), found.message
    for wrong in (f"({GAUSS} + 1e-14*x)", GAUSS.replace("8654", "8644"), GAUSS.replace("8654", "6")):
        found = check_script(text, at={"x": x}, claims={"x": claim.format(g=wrong)}).checks[-1]
        assert found.verdict == "DISAGREES", found.message


SPECIAL = [  # a claim that holds for matrices of a kind only, where it fails, and whether algebra proves it there
    ("sum(inv(A))", "-inv(A) @ ones(2, 2) @ inv(A)", [[4.0, 1.0], [1.0, 3.0]], "A is not symmetric", "CERTIFIED"),
    ("sum(A@A)", "2*A@ones(2, 2)", [[1.0, 0.5], [0.5, 1.0]], None, "DISAGREES"),
    ("logdet(A)", "inv(A)", [[4.0, 1.0], [1.0, 3.0]], "A is not symmetric", "CERTIFIED"),
    ("logdet(A)", "inv(A).T", [[4.0, 1.0], [1.0, 3.0]], None, "PROVED"),
    ("trace(A@A)", "2*A", [[4.0, 0.0], [0.0, 3.0]], "A is not symmetric", "CERTIFIED"),
    ("logdet(A)", "diag(1/diag(A))", [[4.0, 0.0], [0.0, 3.0]], "A is not diagonal", "CERTIFIED"),
    ("sum(A**3)", "3*A**2", [[4.0, 1.0], [1.0, 3.0]], None, "PROVED"),
    ("trace(A@A)", "2*A", [[4.0, 1.0], [2.0, 3.0]], None, "DISAGREES"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "claim", "value", "where", "verdict"), SPECIAL)
def test_what_holds_for_special_matrices_only_is_a_warning(
    text: str, claim: str, value: list[list[float]], where: str | None, verdict: str
) -> None:
    """The verdict is that of the given point; where the claim is wrong off its structure, a counterexample says so."""
    check = check_script(text, at={"A": value}, claims={"A": claim}).checks[-1]
    assert check.verdict == verdict, check.message
    found = check.evidence.get("not_in_general")
    assert (found is not None) == (where is not None), check.message
    if found is not None:
        assert check.passed
        assert f"warning: wrong where {where}" in check.message
        assert found["where"] == where
        again = check_script(text, at=found["at"], claims={"A": claim}).checks[-1]  # the counterexample is one
        assert again.verdict == "DISAGREES", again.message


@pytest.mark.parametrize(
    ("script", "where"),
    [
        ("A = [[4, 1], [1, 3]]\nx = [1, 2]\ny = x@A@x\nassert grad(y, x) == 2*A@x\ny", "A is not symmetric"),
        ("const A = [[4, 1], [1, 3]]\nx = [1, 2]\ny = x@A@x\nassert grad(y, x) == 2*A@x\ny", None),
        ("A = [[4, 1], [1, 3]]\nassert A@A.T == A@A\nsum(A)", "A is not symmetric"),
        ("A = [[4, 1], [1, 3]]\nassert (A@A).T == A.T@A.T\nsum(A)", None),
    ],
)
def test_matrices_beside_the_checked_leaf_and_equalities(script: str, where: str | None) -> None:
    check = next(one for one in check_script(script).checks if one.kind != "gradient")
    assert check.passed, check.message
    assert check.evidence.get("not_in_general", {}).get("where") == where


@pytest.mark.parametrize("claim", ["2*maximum(x, 3)", "2*clamp(x, -3, 3)", "2*x + relu(x - 3)", "2*x + abs(x - 3)"])
@pytest.mark.parametrize("value", [3.0, [3.0, 1.0], [1.0, 3.0, 3.0]])
def test_a_claim_on_its_own_kink_is_right_on_both_sides_or_refuted(claim: str, value: Any) -> None:
    for seed in range(4):  # whichever points nearby are chosen
        check = check_script("sum(x**2)", at={"x": value}, claims={"x": claim}, seed=seed).checks[-1]
        assert check.verdict == "DISAGREES", (seed, check.message)
    right = check_script("sum(x**2)", at={"x": value}, claims={"x": "x + maximum(x, 3) - relu(3 - x)"}).checks[-1]
    assert right.passed, right.message


@pytest.mark.parametrize(
    ("text", "claim", "y"),
    [
        ("x**y", "y", 0.0), ("x**y", "y", 1.0), ("sin(x*y)", "y", 0.0), ("x*abs(y)", "y", 0.0), ("x*abs(y)", "-y", 0.0),
        ("x*relu(y)", "0*y", 0.0), ("x*floor(y)", "2*y - 2", 1.5), ("x*sqrt(y)", "y", 1.0), ("x*y", "maximum(y, 1)", 1.0), ("x*y", "minimum(y, 1)", 1.0),
    ],
)  # fmt: skip
def test_what_holds_for_one_value_of_another_name_is_a_warning(text: str, claim: str, y: float) -> None:
    report = check_script(text, at={"x": 2.0, "y": y}, claims={"x": claim})
    check = next(one for one in report.checks if one.kind == "claim")
    assert check.passed and "warning: wrong where y is not as given" in check.message, check.message


def test_the_warning_is_shown_in_tables_and_cards() -> None:
    from gradcli.rendering.document import Style
    from gradcli.rendering.documents.verdicts import reports
    from gradcli.rendering.plain import render

    report = check_script("sum(inv(A))", at={"A": [[4.0, 1.0], [1.0, 3.0]]}, claims={"A": "-inv(A)@ones(2, 2)@inv(A)"})
    for found, show in (([report], "failing"), ([report], "all"), ([report, report], "failing")):
        text = render(reports(found, Style(), show))
        assert "warning: wrong where A is not symmetric: at A = [[4.0, " in text
    assert "not in general" in render(reports([report], Style(), "all"))
