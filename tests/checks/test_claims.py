"""Right claims are proved or certified, wrong ones refuted with a counterexample and a reading of the error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import Check, check_script

MEAN = "mean((A@w - t)**2)"
TWO = {"A": [[1, 2], [3, 4]], "w": [0.5, -1], "t": [1, 0]}
THREE = {"A": [[1, 2], [3, 4], [5, 6]], "w": [0.5, -1], "t": [1, 0, -1]}


def claim(text: str, at: dict[str, Any], leaf: str, formula: str, **options: Any) -> Check:
    report = check_script(text, at=at, claims={leaf: formula}, **options)
    found = [check for check in report.checks if check.kind == "claim"]
    assert len(found) == 1
    return found[0]


def claims(script: str, **options: Any) -> list[Check]:
    return [check for check in check_script(script, **options).checks if check.kind != "gradient"]


@pytest.mark.parametrize(
    ("text", "at", "leaf", "formula"),
    [
        ("x**2*sin(y)", {"x": 1.3, "y": 0.4}, "x", "2*x*sin(y)"),
        ("x**2*sin(y)", {"x": 1.3, "y": 0.4}, "y", "x**2*cos(y)"),
        (MEAN, TWO, "w", "A.T @ (A@w - t)"),
        (MEAN, THREE, "w", "2*A.T @ (A@w - t)/len(t)"),
        ("log(exp(x) + 1)", {"x": 800.0}, "x", "sigmoid(x)"),
        ("softmax(x)[0]", {"x": [0.1, 1.2]}, "x", "s = softmax(x)\ns[0]*([1, 0] - s)"),
        ("logdet(X)", {"X": [[2.0, 0.5], [-0.3, 1.5]]}, "X", "inv(X).T"),
        ("x**y", {"x": 1.3, "y": 0.4}, "y", "x**y*log(x)"),
        ("3", {"x": 1.0}, "x", "0"),
        ("x**3*y", {"x": 2.0, "y": 3.0}, "hessian(x)", "6*x*y"),
        ("w@A@w", {"A": [[1, 2], [3, 4]], "w": [0.5, -1]}, "hessian(w)", "A + A.T"),
        ("sum(exp(w))", {"w": [0.5, -1]}, "hessian(w)", "s = exp(w)\ndiag(s)"),
    ],
)
def test_right_claims_are_proved(text: str, at: dict[str, Any], leaf: str, formula: str) -> None:
    if text == "3":
        text = "3 + 0*x"
    found = claim(text, at, leaf, formula, wrt=[leaf.removeprefix("hessian(").removesuffix(")")])
    assert found.verdict == "PROVED"
    assert found.passed
    assert found.leaf == leaf


def test_a_wrong_hessian_is_refuted_and_its_factor_named() -> None:
    found = claim("x**3*y", {"x": 2.0, "y": 3.0}, "hessian(x)", "3*x*y")
    assert (found.verdict, found.leaf) == ("DISAGREES", "hessian(x)")
    readings: Any = found.evidence["diagnosis"]
    assert (readings[0]["name"], readings[0]["factor"]) == ("constant factor", "2")


def test_the_hessian_of_an_array_is_refused() -> None:
    with pytest.raises(GradcliError, match="GC307"):
        claim("[x, x**2]", {"x": 2.0}, "hessian(x)", "2")


@pytest.mark.parametrize(
    ("text", "at", "leaf", "formula", "reading", "factor"),
    [
        (MEAN, THREE, "w", "A.T @ (A@w - t)", "constant factor", "2/3"),
        (MEAN, THREE, "w", "0*w", "zero", None),
        (MEAN, THREE, "w", "-2*A.T @ (A@w - t)/3", "wrong sign", "-1"),
        ("1e-9*x**2", {"x": 3.0}, "x", "0", "zero", None),
        ("x**2", {"x": 3.0}, "x", "x", "constant factor", "2"),
        ("logdet(X)", {"X": [[2.0, 0.5], [-0.3, 1.5]]}, "X", "inv(X)", "transposed", None),
        ("x**2 + y**3", {"x": 3.0, "y": 2.0}, "x", "3*y**2", "swapped", None),
        ("sum(w**2)", {"w": [1.0, -2.0]}, "w", "2*abs(w)", "mistake in the claim", None),
    ],
)
def test_wrong_claims_are_refuted(
    text: str, at: dict[str, Any], leaf: str, formula: str, reading: str, factor: str | None
) -> None:
    found = claim(text, at, leaf, formula)
    assert found.verdict == "DISAGREES"
    assert not found.passed
    readings: Any = found.evidence["diagnosis"]
    assert reading in [one["name"] for one in readings]
    assert factor is None or readings[0]["factor"] == factor
    example: Any = found.evidence["counterexample"]
    assert example["exact"] != example["claimed"]
    assert set(example["at"]) >= {leaf}


def test_readings_are_no_more_than_consistent() -> None:
    assert (
        "consistent with a constant factor: the right gradient is 2/3 of the claim"
        in claim(MEAN, THREE, "w", "A.T @ (A@w - t)").message
    )


@pytest.mark.parametrize("error", ["1.000000000001", "(1 + 1e-20)", "-1", "2", "0"])
def test_any_relative_error_is_caught(error: str) -> None:
    assert claim("sin(x)*exp(y)", {"x": 0.7, "y": 1.1}, "x", f"{error}*cos(x)*exp(y)").verdict == "DISAGREES"


def test_zero_stands_for_what_no_double_can_hold() -> None:
    found = claim("exp(-x**2)", {"x": 100.0}, "x", "0*x")
    assert (found.verdict, "rounds to 0" in found.message) == ("AGREES", True)
    assert claim("exp(-x**2)", {"x": 10.0}, "x", "0*x").verdict == "DISAGREES"


@pytest.mark.parametrize(
    ("source", "at", "formula"),
    [
        ("2*x", 1.0, "2 + exp(-100)*x"),
        ("2*x", 1.0, "2*tanh(1000*x)"),
        ("2*x", 1.0, "2 - 2*erfc(30*x)"),
        ("2*x", 1.0, "2 + (x - 1)*1e-200"),
        ("sin(x)", 1.0, "cos(x)*sigmoid(2000*x)"),
        ("softplus(x)", -2000.0, "exp(x)"),
        ("gamma(x)", 2.5, "gamma(x)*digamma(x)*(1 + exp(-400*x))"),
    ],
)
def test_an_error_far_behind_the_first_digits_is_seen(source: str, at: float, formula: str) -> None:
    found = claim(source, {"x": at}, "x", formula)
    assert (found.verdict, "off by about" in found.message) == ("DISAGREES", True), found.message


@pytest.mark.parametrize("formula", ["2 + exp(-1000)", "2 + 1e-50", "2*cos(1e-300)"])
def test_a_number_with_such_an_error_agrees_and_is_not_certified(formula: str) -> None:
    assert claim("2*x", {"x": 1.0}, "x", formula).verdict == "AGREES"
    assert check_script(f"x = 1; f = 2*x; assert f == {formula}; f").checks[-1].verdict not in ("PROVED", "CERTIFIED")


def test_a_lucky_point_does_not_help() -> None:
    """At 2 the claim x*x of the derivative 2*x is right; beside it it is not."""
    found = claim("x**2", {"x": 2.0}, "x", "x*x")
    assert found.verdict == "DISAGREES"
    example: Any = found.evidence["counterexample"]
    assert example["at"] != {"x": 2.0}


def test_a_symmetric_point_stays_symmetric() -> None:
    """The gradient of logdet is inv(X).T; for a symmetric X nobody can tell inv(X) from it."""
    found = claim("logdet(X)", {"X": [[2.0, 1.0], [1.0, 3.0]]}, "X", "inv(X)")
    assert found.verdict == "CERTIFIED"
    assert "symmetric" in found.message


def test_data_never_move() -> None:
    """The claim uses a fact of the data, that A'A is the identity."""
    at = {"A": [[0.0, 1.0], [1.0, 0.0]], "w": [0.5, -1.0], "t": [1.0, 0.0]}
    assert claim("sum((A@w - t)**2)/2", at, "w", "w - A.T@t", wrt=["w"]).verdict == "PROVED"


@pytest.mark.parametrize(
    ("formula", "verdict"),
    [
        ("6", "CERTIFIED"),
        ("6.0001", "DISAGREES"),
        ("x + 3", "DISAGREES"),
    ],
)
def test_bare_numbers_are_claimed_at_one_point(formula: str, verdict: str) -> None:
    assert claim("x**2", {"x": 3.0}, "x", formula).verdict == verdict


@pytest.mark.parametrize(
    ("digits", "verdict"),
    [("0.5403", "AGREES"), ("0.540302305868", "AGREES"), ("0.5403023058681398", "AGREES"), ("0.5413", "DISAGREES")],
)
def test_numbers_count_to_their_digits(digits: str, verdict: str) -> None:
    assert claim("sin(x)", {"x": 1.0}, "x", digits).verdict == verdict


def test_decimals_may_be_meant_as_written() -> None:
    """0.1 is no double: the gradient of x**2 there is 0.2 for the reader, not for the machine."""
    found = claims("x = 0.1\nassert grad(x**2, x) == 2*x\nassert grad(x**2, x) == 0.2\nx**2")
    assert [check.verdict for check in found] == ["PROVED", "AGREES"]
    found = claims("x = 0.1\nassert grad(x**2, x) + y == 0.2 + y\nx**2", at={"y": 1.0})
    assert found[0].verdict == "DISAGREES", "where x moves it is wrong, and no bare number is claimed"
    found = claims("const c = 0.3\nx = 2\nassert grad(c*x, x) == 3*0.1*x/x\nc*x")
    assert found[0].verdict == "CERTIFIED"


def test_a_constant_of_many_digits_may_be_rounded() -> None:
    text = "assert grad(e**x, x) == {} *e**x\ne**x"
    for digits, verdict in [("0.9999999999999999", "CERTIFIED"), ("0.999999999999", "DISAGREES")]:
        assert claims(text.format(digits), at={"x": 0.5})[0].verdict == verdict


def test_a_claim_that_is_undefined_where_the_derivative_is_not() -> None:
    found = claim("x**2", {"x": 0.0}, "x", "2*x**2/x")
    assert found.verdict == "UNDEFINED"
    assert not found.passed


def test_tolerances() -> None:
    good = "assert grad(sin(x), x) == 1 - x**2/2 # rtol=1e-3\nsin(x)"
    assert claims(good, at={"x": 0.1})[0].verdict == "CERTIFIED"
    assert claims(good.replace("1e-3", "1e-9"), at={"x": 0.1})[0].verdict == "DISAGREES"


@pytest.mark.parametrize(
    ("script", "verdict", "passed"),
    [
        ("assert sin(x)**2 + cos(x)**2 == 1\nx", "PROVED", True),
        ("assert exp(x)*exp(y) == exp(x + y)\nx*y", "PROVED", True),
        ("assert (x + y)**2 == x**2 + y**2\nx*y", "DISAGREES", False),
        ("assert (x + y)**2 == x**2 + y**2 # expect: fail\nx*y", "DISAGREES", True),
        ("assert x == x # expect: fail\nx*y", "PROVED", False),
        ("assert sqrt(x - 9) == 1 # expect: undefined\nx*y", "UNDEFINED", True),
        ("assert grad(relu(x - x0), x) == 0 # expect: kink\nx*y", "KINK", True),
        ("assert grad(relu(x - x0), x) == 2 # expect: kink\nx*y", "KINK", False),
        ("assert grad(x**2, x) == 2*x # expect: kink\nx*y", "PROVED", False),
        ("assert hessian(x**3*y, x) == 6*x*y\nx*y", "PROVED", True),
    ],
)
def test_equalities_and_expectations(script: str, verdict: str, passed: bool) -> None:
    found = claims(f"const x0 = 1.3\n{script}", at={"x": 1.3, "y": 0.4})
    assert [(check.verdict, check.passed) for check in found] == [(verdict, passed)]
    if not passed and found[0].expected:
        assert found[0].message.startswith(f"expected {found[0].expected}")


def test_a_remark_at_the_output_speaks_of_the_point() -> None:
    report = check_script("abs(x)*y # expect: kink", at={"x": 0.0, "y": 2.0})
    assert [check.passed for check in report.checks] == [True, True]
    report = check_script("abs(x)*y # expect: kink", at={"x": 1.0, "y": 2.0})
    assert [check.passed for check in report.checks] == [False, False]


def test_intermediate_targets() -> None:
    script = "p = x**2\ny = sin(p)*x\nassert grad(y, p) == cos(p)*x\nassert grad(y, p) == cos(p) # expect: fail\ny"
    assert [check.verdict for check in claims(script, at={"x": 1.3})] == ["PROVED", "DISAGREES"]


def test_hand_written_rules_are_judged_on_a_cotangent() -> None:
    script = "def f(a, b): return a*b**2\ndef f.vjp(a, b, ct): return (ct*b**2, {})\nf(x, y)"
    right = claims(script.format("2*ct*a*b"), at={"x": 2.0, "y": 3.0})
    assert [(check.kind, check.leaf, check.verdict) for check in right] == [
        ("vjp", "a", "PROVED"),
        ("vjp", "b", "PROVED"),
    ]
    wrong = claims(script.format("ct*a*b"), at={"x": 2.0, "y": 3.0})
    assert [check.verdict for check in wrong] == ["PROVED", "DISAGREES"]
    assert "2 times the claim" in wrong[1].message


def test_a_whole_script_may_be_expected_to_fail() -> None:
    script = "# expect: fail\nassert grad(x**2, x) == x\nx**2"
    assert all(check.passed for check in check_script(script, at={"x": 3.0}).checks)
    script = "# expect: fail\nassert grad(x**2, x) == 2*x\nx**2"
    assert not any(check.passed for check in check_script(script, at={"x": 3.0}).checks)


def test_an_expected_error() -> None:
    report = check_script("# expect: error GC201\nsine(x)", at={"x": 1.0})
    assert [(check.verdict, check.passed) for check in report.checks] == [("ERROR", True)]
    report = check_script("# expect: error GC301\nsine(x)", at={"x": 1.0})
    assert [check.passed for check in report.checks] == [False]
    report = check_script("# expect: error GC301\nsin(x)", at={"x": 1.0})
    assert [check.passed for check in report.checks] == [False]


def test_a_large_wrong_gradient_is_refuted_at_one_entry() -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=300).tolist()
    assert claim("sum(sin(w)*w)", {"w": w}, "w", "sin(w) + w*cos(w)").verdict == "PROVED"
    wrong = claim("sum(sin(w)*w)", {"w": w}, "w", "sin(w) - w*cos(w)")
    assert wrong.verdict == "DISAGREES"
    planted = claim("sum(sin(w)*w)", {"w": w}, "w", "(sin(w) + w*cos(w))*(1 + 1e-12*(w == w[17]))")
    assert planted.verdict == "DISAGREES"
    example: Any = planted.evidence["counterexample"]
    assert example["entry"] == "[17]"


def test_frozen_entries_stay_where_they_are() -> None:
    """A leaf of many entries: every one of them is proved, and judged at points nearby."""
    rng = np.random.default_rng(1)
    at = {"W": rng.normal(size=(6, 4)).tolist(), "x": rng.normal(size=(5, 6)).tolist()}
    report = check_script("mean(relu(x@W)**2)", at=at, wrt=["W"])
    assert {check.verdict for check in report.checks} == {"PROVED"}


LOGISTIC = {"X": [[1, 2], [3, 4.0]], "w": [0.1, 0.2], "y": [0, 1]}
PATH = "path = [t]\nfor i in range(3):\n    path.append(path[-1]*t)\nsum(path)"
SEEN: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("N(x) = 0.5*erfc(-x/sqrt(2)); N(a)*b", {"a": 1, "b": 2}, "b", "N(a)", "PROVED"),
    ("N(x) = 0.5*erfc(-x/sqrt(2)); N(a)*b", {"a": 1, "b": 2}, "b", "2*N(a)", "DISAGREES"),
    ("s = exp(t); s**2", {"t": 0.3}, "t", "2*s*s", "PROVED"),
    ("s = exp(t); s**2", {"t": 0.3}, "t", "2*s", "DISAGREES"),
    ("s = exp(t); s = s**2; s", {"t": 0.3}, "t", "2*s", "PROVED"),  # the last value
    ("p = sigmoid(X@w); -mean(y*log(p) + (1-y)*log(1-p))", LOGISTIC, "w", "X.T @ (p - y)/len(y)", "PROVED"),
    ("A[m,n] in real; x[n] in real; r = A@x; mean(r**2)", {}, "x", "2/m*A.T @ r", "PROVED"),
    ("def f(x): return x**3\ndef f.vjp(x, ct): return 3*x**2*ct\nf(t)", {"t": 2}, "t", "3*f(t)/t", "PROVED"),
    (PATH, {"t": 0.3}, "t", "1 + 2*path[0] + 3*path[1] + 4*path[2]", "PROVED"),
    # what a claim assigns or defines is its own, for the functions of the script too
    ("s = exp(t); s**2", {"t": 0.3}, "t", "s = 2*t; s", "DISAGREES"),
    ("s = exp(t); s**2", {"t": 0.3}, "t", "s = 2*s**2; s", "PROVED"),
    ("k = 2*t; f(x) = k*x; f(t)", {"t": 0.3}, "t", "k = 4; k*t", "PROVED"),
    ("k = 2*t; f(x) = k*x; f(t)", {"t": 0.3}, "t", "k = 3; 2*f(t)/t", "PROVED"),
    ("k = 2*t; f(x) = k*x; f(t)", {"t": 0.3}, "t", "k = 4; f(u) = k*u; f(t)", "PROVED"),
    ("k = 2*t; f(x) = k*x; f(t)", {"t": 0.3}, "t", "f(k) = 4*k; f(k=t)", "PROVED"),
    ("g(x) = x**2; f(x) = g(x); f(t)", {"t": 0.3}, "t", "g(x) = 5*x; 2*f(t)/t", "PROVED"),
    ("x**2*y", {"x": 3, "y": 2}, "y", "x = x**2; x", "PROVED"),
    (PATH, {"t": 0.3}, "t", "path = [1.0]\nfor i in range(3):\n    path.append((i+2)*t**(i+1))\nsum(path)", "PROVED"),
    ("s = exp(t); s**2", {"t": 0.3, "N": 2}, "t", "N*s*s", "PROVED"),
    ("N = 2 + 0*t; s = exp(t); s**2", {"t": 0.3, "N": 5}, "t", "N*s*s", "PROVED"),
]


@pytest.mark.parametrize(("script", "at", "leaf", "text", "verdict"), SEEN)
def test_a_claim_sees_the_names_of_the_script(
    script: str, at: dict[str, Any], leaf: str, text: str, verdict: str
) -> None:
    (judged,) = [check for check in check_script(script, at=at, claims={leaf: text}).checks if check.kind == "claim"]
    assert judged.verdict == verdict
    if verdict == "DISAGREES":
        assert str(judged.evidence["claim"]).endswith(f"== {text.rpartition('; ')[2]}")


@pytest.mark.parametrize("text", ["2*ss*s", "k = ss; k*s", "ss(t)", "s = ss(t); s"])
def test_what_a_claim_does_not_see_is_named(text: str) -> None:
    with pytest.raises(GradcliError, match="ss") as problem:
        check_script("s = exp(t); s**2", at={"t": 0.3}, claims={"t": text})
    assert "′" not in str(problem.value)


PASTED = [  # a formula without a point, a claim, the verdict on it, and a shape that is told
    (r"\sum_i x_i y_i", {"x": "y"}, "PROVED", "x[n] in real; y[n] in real"),
    ("norm(A@x - b)**2", {"x": "2*A.T@(A@x - b)"}, "PROVED", "A[m, n] in real"),
    (r"\sum_{i=1}^n (y_i - w^\top x_i)^2", {"w": "-2*x.T@(y - x@w)"}, "PROVED", "x[n, m] in real"),
    (r"x^\top A x", {"x": "2*A@x"}, "DISAGREES", "A[n, n] in real"),
    ("x*y", {"x": "y"}, "PROVED", ""),
    # of one number these would be other claims
    ("sum(x)**2", {"x": "2*x"}, "DISAGREES", "x[n] in real"),
    ("sum(x)**2", {"x": "2*sum(x)"}, "PROVED", "x[n] in real"),
    ("mean(x**2)", {"x": "2*x"}, "DISAGREES", "x[n] in real"),
    ("mean(x**2)", {"x": "2*x/len(x)"}, "PROVED", "x[n] in real"),
    ("norm(A)**2", {"A": "2*A"}, "PROVED", "A[m, n] in real"),
    ("var(x)", {"x": "0"}, "DISAGREES", "x[n] in real"),
    ("logsumexp(a*x)", {"x": "a"}, "DISAGREES", "x[n] in real"),
    ("max(x)", {"x": "1"}, "DISAGREES", "x[n] in real"),
    ("mse_loss(x, y)", {"x": "2*(x - y)"}, "DISAGREES", "x[n] in real"),
    ("y = a*x; mean(y**2)", {"x": "2*a**2*x"}, "DISAGREES", "x[n] in real"),
    ("f(x) = mean(x**2)", {"x": "2*x"}, "DISAGREES", "x[n] in real"),
    ("x - mean(x)", {"x": "0"}, "DISAGREES", "x[n] in real"),
    ("x/norm(x)", {"x": "0"}, "DISAGREES", "x[n] in real"),
    ("log(softmax(x))", {"x": "0"}, "DISAGREES", "x[n] in real"),
    ("log(softmax(x))", {"x": "eye(len(x)) - softmax(x)"}, "PROVED", "x[n] in real"),
    # numbers are meant
    ("mean([x, y])", {"x": "1/2"}, "PROVED", ""),
    ("norm([x, y])", {"x": "x/norm([x, y])"}, "PROVED", ""),
    ("max(x, y)", {"x": "x > y"}, "PROVED", ""),
    ("x in (0, 1); mean(x**2)", {"x": "2*x"}, "PROVED", ""),
    ("x = 3; mean(x**2)", {"x": "2*x"}, "PROVED", ""),
    ("sum([x**i for i in range(3)])", {"x": "1 + 2*x"}, "PROVED", ""),
    # sizes at which there is a value
    ("logdet(X.T@X)", {"X": "2*X@inv(X.T@X)"}, "PROVED", "X[m, n] in real"),
    ("logdet(X.T@X)", {"X": "X@inv(X.T@X)"}, "DISAGREES", "X[m, n] in real"),
    ("log(det(X@X.T))", {"X": "2*inv(X@X.T)@X"}, "PROVED", "X[m, n] in real"),
]


@pytest.mark.parametrize("claim", ["assert grad(f, x) == 2*x", "assert f == x**2"])
def test_what_is_right_but_for_a_small_branch_is_no_rounded_constant(claim: str) -> None:
    check = check_script(f"x = 0.0; f = where((x > 0)*(x < 0.02), x**3, x**2); {claim}; f").checks[-1]
    assert check.verdict == "DISAGREES" and "rounded" not in check.message


@pytest.mark.parametrize(("text", "claims", "verdict", "shapes"), PASTED)
def test_shapes_of_a_pasted_formula_are_those_that_derive_assumes(
    text: str, claims: dict[str, str], verdict: str, shapes: str
) -> None:
    report = check_script(text, claims=claims)
    (claim,) = [check for check in report.checks if check.kind == "claim"]
    assert claim.verdict == verdict
    shown = [note.source.text for note in report.diagnostics if note.source is not None and note.code == "GC311"]
    assert bool(shown) == bool(shapes) and all(shapes in text for text in shown)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("y = mean(x**2)\nassert grad(y, x) == 2*x", True),
        ("y = mean(x**2)\nassert y == x**2", True),
        ("x[n] in real\ny = mean(x**2)\nassert grad(y, x) == 2*x/len(x)", False),
        ("y = mean([x, z])\nassert grad(y, x) == 1/2", False),
        ("x = 3\ny = mean(x**2)\nassert grad(y, x) == 2*x", False),
    ],
)
def test_a_claim_in_a_script_is_told_that_a_free_name_is_a_number(text: str, told: bool) -> None:
    """There a free name counts as a number: `mean(x**2)` is x**2."""
    notes = [note for note in check_script(text).diagnostics if note.code == "GC307"]
    assert bool(notes) == told and all("counts as a number" in note.message for note in notes)


@pytest.mark.parametrize(
    ("text", "claims"), [("sin(A@x)", {"x": "cos(A@x)"}), ("x**2", {"x": "2*y@x"}), ("x[2] + y @ x", {"q": "1"})]
)
def test_a_problem_that_no_shapes_cure_stays(text: str, claims: dict[str, str]) -> None:
    with pytest.raises(GradcliError, match="GC"):
        check_script(text, claims=claims)


def test_a_mistake_is_found_at_symmetric_matrices_where_the_claim_is_about_these() -> None:
    at = {"S": [[2.0, 0.5], [0.5, 1.0]], "B": [[1.0, 2.0], [3.0, 4.0]]}
    found = claim("trace(inv(S)@B)", at, "S", "-inv(S)@B@inv(S)", wrt=["S"])
    readings: Any = found.evidence["diagnosis"]
    assert [one["name"] for one in readings] == ["transposed", "transposed operand"]
