"""Wrong derivations as people write them go in, not made by any program; what is read must name the mistake.

Each row: formula, leaf, claim, and what the right reading says. The rows were written down before the readings were
looked at; a row whose mistake is not found counts against the law.
"""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.checks import check_script
from gradcli.primitives import functions

FOUND, UNIQUE = 0.95, 0.75
POINT = {"x": 0.7, "y": 1.3, "z": -0.6, "a": 2.1, "b": 0.4}
GAUSS, LOGISTIC, CUBE = "exp(-x**2/(2*a**2))", "1/(1+exp(-a*x))", "(x**2+1)**3*(y-x)"
BERNOULLI, QUOTIENT, PRODUCT = "y*log(x) + (1-y)*log(1-x)", "(x+1)/(x**2+y)", "x**3*sin(y) - 2*x*cos(y)"
SCALARS: list[tuple[str, str, str, str]] = [
    ("sin(x**2*y)", "x", "2*x*cos(x**2*y)", "factor `y` is missing"),
    ("sin(x**2*y)", "x", "x**2*cos(x**2*y)*2*y", "exponent 2 was not lowered"),
    ("x*y*z", "x", "y+z", "`y + z` is a product"),
    ("x*exp(y*z)", "x", "exp(y+z)", "`y + z` is a product"),
    (GAUSS, "x", "-x/a*exp(-x**2/(2*a**2))", "the claim"),
    (GAUSS, "x", "x/a**2*exp(-x**2/(2*a**2))", "sign"),
    (GAUSS, "a", "x**2/a**2*exp(-x**2/(2*a**2))", "exponent 2 was not lowered"),
    ("log(x**2+y**2)", "x", "x/(x**2+y**2)", "factor 2 of the power rule"),
    ("log(x**2+y**2)", "x", "1/(x**2+y**2)", "factor `x*2` is missing"),
    ("sqrt(x**2+y**2)", "x", "x/(2*sqrt(x**2+y**2))", "2 times the claim"),
    ("x*exp(x*y)", "x", "exp(x*y)", "term of `exp(x*y)` in the product rule is missing"),
    ("x*exp(x*y)", "x", "exp(x*y) + x*exp(x*y)", "factor `y` is missing"),
    ("x*exp(x*y)", "y", "x*exp(x*y)", "factor `x` is missing"),
    (QUOTIENT, "x", "(x**2+y - (x+1)*2*x)/(x**2+y)", "not squared"),
    (QUOTIENT, "x", "(x**2+y + (x+1)*2*x)/(x**2+y)**2", "sign"),
    (QUOTIENT, "x", "1/(2*x)", "no quotient of derivatives"),
    ("atan(y/x)", "x", "y/(x**2+y**2)", "sign"),
    ("atan(y/x)", "y", "1/(1+(y/x)**2)", "factor `1/x` is missing"),
    ("tanh(a*x+b)", "x", "1 - tanh(a*x+b)**2", "factor `a` is missing"),
    ("tanh(a*x+b)", "x", "a*(1 + tanh(a*x+b)**2)", "1 - tanh**2, not 1 + tanh**2"),
    ("tanh(a*x+b)", "a", "a*(1 - tanh(a*x+b)**2)", "swapped leaves"),
    (PRODUCT, "x", "3*x**2*sin(y) + 2*cos(y)", "sign"),
    (PRODUCT, "y", "x**3*cos(y) - 2*x*sin(y)", "sign"),
    (PRODUCT, "x", "3*x**2*sin(y)", "term `2*x*cos(y)` is missing"),
    (LOGISTIC, "x", "exp(-a*x)/(1+exp(-a*x))**2", "factor `a`"),
    (LOGISTIC, "x", "-a*exp(-a*x)/(1+exp(-a*x))**2", "sign"),
    (LOGISTIC, "x", "a*exp(-a*x)/(1+exp(-a*x))", "not squared"),
    ("x*sigmoid(x)*y", "x", "y*sigmoid(x)*(1 + x*sigmoid(x))", "the factor `sigmoid(x)` of `x*sigmoid(x)` is subtracted from 1"),
    ("log(sigmoid(x))*y", "x", "y*(1-sigmoid(x))*sigmoid(x)*(1-sigmoid(x))", "are left out"),
    ("x**y", "x", "y*x**y", "exponent was not lowered"),
    ("x**y", "y", "y*x**(y-1)", "power rule was applied to the exponent"),
    ("x**y", "y", "x**y", "log of the base is missing"),
    ("cos(3*x)**2", "x", "-2*cos(3*x)*sin(3*x)", "3 times the claim"),
    ("cos(3*x)**2", "x", "-6*sin(3*x)", "lowered twice"),
    ("cos(3*x)**2", "x", "2*cos(3*x)", "inner derivative is missing"),
    ("log(sin(x)*y)", "x", "cos(x)/(sin(x)*y)", "factor `y` is missing"),
    ("exp(sin(x))*cos(x)", "x", "exp(sin(x))*cos(x) - exp(sin(x))*sin(x)", "factor `cos(x)` is missing"),
    ("exp(sin(x))*cos(x)", "x", "exp(sin(x))*cos(x)**2 + exp(sin(x))*sin(x)", "sign"),
    ("asin(x*b)", "x", "1/sqrt(1-(x*b)**2)", "factor `b` is missing"),
    ("asin(x*b)", "x", "b/sqrt(1+(x*b)**2)", "1 - x**2 under the root, not 1 + x**2"),
    ("sinh(x)*cosh(y)", "y", "-sinh(x)*sinh(y)", "sign"),
    ("a*x**2/2 + b*x**4/4", "x", "a*x + b*x**4", "exponent 4 was not lowered"),
    ("a*x**2/2 + b*x**4/4", "x", "a*x + b*x**3/4", "factor 4 of the power rule"),
    (BERNOULLI, "x", "y/x + (1-y)/(1-x)", "sign"),
    (BERNOULLI, "y", "log(x) + log(1-x)", "sign"),
    ("(x-y)**2*exp(-z)", "y", "2*(x-y)*exp(-z)", "sign"),
    ("(x-y)**2*exp(-z)", "z", "(x-y)**2*exp(-z)", "sign"),
    ("x/sqrt(1+x**2)", "x", "1/sqrt(1+x**2)", "in the quotient rule is missing"),
    ("x/sqrt(1+x**2)", "x", "1/(1+x**2)", "not squared"),
    ("log(1+exp(a*x))", "x", "exp(a*x)/(1+exp(a*x))", "factor `a` is missing"),
    ("log(1+exp(a*x))", "x", "a/(1+exp(a*x))", "factor `exp(a*x)` is missing"),
    (CUBE, "x", "6*x*(x**2+1)**2*(y-x) + (x**2+1)**3", "sign"),
    (CUBE, "x", "3*(x**2+1)**2*(y-x) - (x**2+1)**3", "factor `x*2` is missing"),
    (CUBE, "x", "6*x*(x**2+1)**3*(y-x) - (x**2+1)**3", "exponent 3 was not lowered"),
    ("lgamma(x+a)*y", "x", "y*digamma(x)", "at `x` instead of `x + a`"),
    ("erf(x/a)", "x", "2/sqrt(pi)*exp(-(x/a)**2)", "factor `1/a` is missing"),
    ("erf(x/a)", "x", "1/sqrt(pi)*exp(-(x/a)**2)/a", "2 times the claim"),
    ("tan(x*y)", "x", "y/cos(x*y)", "squared"),
    ("x*y*z", "x", "y+z", "product"),
    ("sqrt(x)*log(y)", "x", "log(y)/(2*x)", "root"),
]  # fmt: skip
REGRESSION: dict[str, Any] = {"A": [[1.0, 2.0], [3.0, -1.5], [0.5, 1.0]], "w": [0.5, -1.2], "t": [1.0, 0.0, -1.0]}
SQUARE: dict[str, Any] = {"X": [[1.2, 0.3], [-0.4, 0.9]], "B": [[0.7, -1.1], [0.2, 1.5]]}
TWO: dict[str, Any] = {"x": [0.3, -1.1, 0.8], "y": [1.2, 0.4, -0.7]}
ROWS: dict[str, Any] = {"X": [[1.2, 0.3, 0.5], [-0.4, 0.9, 1.1]], "b": [0.1, -0.2, 0.4]}
ARRAYS: list[tuple[dict[str, Any], str, str, str, str]] = [
    (REGRESSION, "sum((A@w - t)**2)", "w", "A.T@(A@w - t)", "2 times the claim"),
    (REGRESSION, "sum((A@w - t)**2)", "w", "2*A.T@(t - A@w)", "sign"),
    (REGRESSION, "mean((A@w - t)**2)", "w", "2*A.T@(A@w - t)", "1/3 of the claim (there are 3 entries"),
    (REGRESSION, "sum(sigmoid(A@w))", "w", "A.T@sigmoid(A@w)", "factor 1 - sigmoid is missing"),
    (REGRESSION, "sum(sigmoid(A@w))", "w", "A.T@(sigmoid(A@w)*(1+sigmoid(A@w)))", "1 - sigmoid, not 1 + sigmoid"),
    (REGRESSION, "sum(exp(A@w)*t)", "w", "A.T@exp(A@w)", "factor `t` is missing"),
    (REGRESSION, "sum(exp(A@w)*t)", "w", "A.T@t", "factor `exp(A @ w)` is missing"),
    (REGRESSION, "logsumexp(A@w)", "w", "A.T@exp(A@w)", "the derivative is softmax"),
    (REGRESSION, "-sum(t*log(sigmoid(A@w)))", "w", "A.T@(sigmoid(A@w) - t)", "another loss"),
    (REGRESSION, "sum(tanh(A@w)**2)", "w", "2*A.T@tanh(A@w)", "factor `1 - tanh(A @ w)**2` is missing"),
    (REGRESSION, "sum(tanh(A@w)*t)", "w", "A.T@(t*(1-(A@w)**2))", "`tanh(A @ w)` in place of `A @ w`"),
    (REGRESSION, "norm(A@w - t)", "w", "A.T@(A@w - t)", "division by the norm is missing"),
    (SQUARE, "trace(X@B)", "X", "B", "transpose"),
    (SQUARE, "trace(X.T@B@X)", "X", "2*B@X", "right where `B` is symmetric"),
    (SQUARE, "logdet(X.T@X)", "X", "inv(X).T", "2 times the claim"),
    (SQUARE, "det(X)", "X", "det(X)*inv(X)", "transpose"),
    (SQUARE, "trace(inv(X))", "X", "-inv(X@X)", "transpose"),
    (SQUARE, "trace(X@X)", "X", "2*X", "transpose"),
    (SQUARE, "sum((X@B)**2)", "X", "2*(X@B)", "the operand `B` is missing"),
    (SQUARE, "sum((X@B)**2)", "X", "2*B.T@(X@B)", "must be transposed in the backward pass"),
    (TWO, "sum(x*y)", "x", "x", "swapped leaves"),
    (TWO, "sum(x**3)", "x", "3*x", "lowered twice"),
    (TWO, "sum(x**2)*sum(y)", "x", "2*x", "factor `sum(y)` is missing"),
    (TWO, "sum(softmax(x)*y)", "x", "softmax(x)*y", "sum over the outputs is missing"),
    (TWO, "sum(softmax(x)*y)", "x", "softmax(x)*(1 - softmax(x))*y", "is not diagonal"),
    (TWO, "var(x)", "x", "2*(x - mean(x))", "1/3 of the claim"),
    (TWO, "prod(x)", "x", "prod(x)*x", "x*x"),
    (TWO, "sum(cumsum(x)**2)", "x", "2*cumsum(x)", "cumulative sum is missing in the backward pass"),
    (TWO, "norm(x)**2", "x", "2*norm(x)", "x/(norm(x"),
    (TWO, "dot(x,y)/norm(x)", "x", "y/norm(x)", "in the quotient rule is missing"),
    (TWO, "dot(x,y)/norm(x)", "x", "y/norm(x) - dot(x,y)*x/norm(x)**2", "not squared"),
    (ROWS, "sum((X + b)**2)", "b", "2*(X + b)[0]", "sum over the broadcast axis is missing"),
    (ROWS, "sum(log(1+exp(X*b)))", "X", "sigmoid(X*b)", "factor `b` is missing"),
]  # fmt: skip

PAIRS: dict[str, Any] = {"S": [[2.0, 0.3], [0.3, 1.0]], "a": [1.0, 2.0], "b": [3.0, 5.0]}
SCALES: dict[str, Any] = {"l": 0.75, "r": 1.5}
# derivatives by something else than the entries of the leaf
VARIABLES: list[tuple[dict[str, Any], str, str, str, str]] = [
    (PAIRS, "logdet(S)", "S", "2*inv(S) - diag(diag(inv(S)))", "G + G.T - diag(diag(G))"),
    (PAIRS, "a@S@b", "S", "outer(a, b) + outer(b, a) - diag(a*b)", "G + G.T - diag(diag(G))"),
    (PAIRS, "a@inv(S)@a", "S", "diag(inv(S)@a)**2 - 2*outer(inv(S)@a, inv(S)@a)", "G + G.T - diag(diag(G))"),
    (PAIRS, "norm(S)", "S", "(2*S - diag(diag(S)))/norm(S)", "G + G.T - diag(diag(G))"),
    (PAIRS, "a@S@b", "S", "(outer(a, b) + outer(b, a))/2", "(G + G.T)/2"),
    (PAIRS, "a@S@b", "S", "outer(a, b) + outer(b, a)", "the claim is G + G.T where"),
    (SCALES, "exp(-r/(2*l**2))", "l", "exp(-r/(2*l**2))*r/l**2", "derivative by log(l): the claim is `l` times"),
    (SCALES, "log(l) + r/(2*l**2)", "l", "1 - r/l**2", "derivative by log(l)"),
    (
        SCALES,
        "log(l) + r/(2*l**2)",
        "l",
        "1/(2*l**2) - r/(2*l**4)",
        "derivative by l**2: the claim is the right one over",
    ),
    (SCALES, "exp(-r/l)", "l", "-r*exp(-r/l)", "derivative by 1/l"),
    (SCALES, "l*exp(-l)", "l", "2*sqrt(l)*(1 - l)*exp(-l)", "derivative by sqrt(l)"),
    (SCALES, "sin(l)*exp(l)", "l", "sin(l) + cos(l)", "`exp(l)`"),
    (SCALES, "sin(l)*exp(l)", "l", "pi/180*(sin(l) + cos(l))*exp(l)", "by l in degrees"),
    (SCALES, "l*sin(l*pi/180)", "l", "sin(l*pi/180) + l*cos(l*pi/180)", "inner derivative"),
    (SCALES, "sin(l*pi/180)", "l", "cos(l*pi/180)", "by l in radians"),
    (SCALES, "sin(l)*exp(l)", "l", "180/pi*(sin(l) + cos(l))*exp(l)", "by l in radians"),
    (SCALES, "r*l**2 - log(l)", "l", "(1 - 2*r*l**2)*l**2/2", "derivative by 1/l**2"),
    (SCALES, "r*l - log(l)/2", "l", "sqrt(l) - 2*r*l*sqrt(l)", "derivative by 1/sqrt(l)"),
    (SCALES, "-r*log(l) - (1 - r)*log(1 - l)", "l", "l - r", "derivative by the logit of l"),
]


def readings(formula: str, leaf: str, claim: str, at: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    report = check_script(formula, at=at, claims={leaf: claim}, **options)
    found: Any = next(one for one in report.checks if one.kind == "claim")
    assert found.verdict == "DISAGREES"
    read: list[dict[str, Any]] = found.evidence["diagnosis"]
    assert 1 <= len(read) <= 3
    for one in read:
        assert one["name"] == "unexplained" or one["text"].startswith("consistent with ")
        assert "search for a mistake failed" not in one["text"]
    return read


def scored(rows: list[tuple[dict[str, Any], str, str, str, str]], **options: Any) -> None:
    found = unique = 0
    for at, formula, leaf, claim, text in rows:
        read = readings(formula, leaf, claim, at, **({"wrt": [leaf]} if options.get("alone") else {}))
        hit = any(text in one["text"] for one in read)
        found, unique = found + hit, unique + (hit and len(read) == 1)
        if not hit:
            print("not found:", formula, claim, [one["text"] for one in read])
    print(f"{len(rows)} wrong derivations: found {found}, the only reading {unique}")
    assert found >= FOUND * len(rows)
    assert unique >= UNIQUE * len(rows)


@pytest.mark.parametrize("alone", [False, True])
def test_scalar_derivations(alone: bool) -> None:
    """Also where the other leaves are data: what is one number there is no constant."""
    scored([(POINT, *row) for row in SCALARS], alone=alone)


def test_array_derivations() -> None:
    scored(ARRAYS)


def test_derivatives_by_another_variable() -> None:
    missed = {
        claim: texts
        for at, formula, leaf, claim, text in VARIABLES
        if text not in (texts := " ".join(one["text"] for one in readings(formula, leaf, claim, at, wrt=[leaf])))
    }
    assert not missed


def test_what_is_no_matrix_is_not_called_diagonal() -> None:
    (one,) = readings("a@S@b", "S", "diag(a*b)", PAIRS, wrt=["S"])
    assert "diagonal" in one["text"] and "`b`" not in one["text"]


def test_a_number_at_held_data_is_no_constant_factor() -> None:
    (one,) = readings("sin(x**2*y)", "x", "2*x*cos(x**2*y)", POINT, wrt=["x"])
    assert one["name"] == "chain factor dropped" and "13/10" not in one["text"]
    (sum_,) = readings("x*y*z", "x", "y+z", POINT, wrt=["x"])
    assert sum_["name"] == "mistake in the claim" and "`y + z` is a product" in sum_["text"]
    (none,) = readings("x*y*z", "x", "y+z**2/y", POINT, wrt=["x"])
    assert none["name"] == "unexplained"
    (mean,) = readings("mean((x - y)**2)", "x", "2*(x - y)", TWO, wrt=["x"])[:1]
    assert mean["name"] == "constant factor" and mean["factor"] == "1/3"


def test_a_missing_factor_is_named_once() -> None:
    (one,) = readings(LOGISTIC, "x", "exp(-a*x)/(1+exp(-a*x))**2", POINT)
    assert one["name"] == "missing factor" and "lacks the factor `a`" in one["text"]


def test_a_large_array_is_diagnosed_too() -> None:
    """Of most entries of a large array only a combination is known."""
    script = "\n".join(
        [
            "const X = randn(20, 8)",
            "W1 = randn(8, 16)",
            "const W2 = randn(16, 4)",
            "const t = randn(20, 4)",
            "h = tanh(X@W1)",
            "loss = mean((h@W2 - t)**2)",
            "assert grad(loss, W1) == X.T@(((h@W2 - t)@W2.T)*(1-h**2))",
            "loss",
        ]
    )
    found: Any = next(one for one in check_script(script).checks if one.kind == "claim")
    assert found.verdict == "DISAGREES" and found.evidence["diagnosis"][0]["factor"] == "1/40"
    assert found.evidence["claim"] == "grad(loss, W1) == X.T @ ((h @ W2 - t) @ W2.T * (1 - h**2))"


def test_a_place_in_a_long_program_is_told_by_its_line() -> None:
    script = "x = 0.7\ny = x\nfor i in range(200):\n    y = sin(y) + x*cos(y)\nassert grad(y, x) == cos(y)\ny"
    found: Any = next(one for one in check_script(script).checks if one.kind == "claim")
    assert "in line 4" in found.evidence["diagnosis"][0]["text"]


def test_corrections_speak_the_language() -> None:
    """A corrected formula can be claimed; one that would need inner operations is left out."""
    seen = 0
    for at, formula, leaf, claim, _ in ARRAYS:
        for one in readings(formula, leaf, claim, at):
            if "correction" in one:
                seen += 1
                assert "unslice" not in one["correction"] and "magnitude" not in one["correction"]
                report = check_script(formula, at=at, claims={leaf: one["correction"].replace("\n", "; ")})
                again = next(check for check in report.checks if check.kind == "claim")
                assert again.verdict in ("PROVED", "CERTIFIED", "IMPRECISE")  # imprecise: the rule is right
    assert seen >= len(ARRAYS) // 2
    assert "unslice" not in functions()


def test_a_long_right_formula_of_a_number_has_no_place_before_it() -> None:
    script = "a = 2\nx = 1\nfor k in range(3): x = (x + a/x)/2\nassert grad(x, a) == 1/(2*sqrt(a))\nx"
    found: Any = next(check for check in check_script(script).checks if check.kind == "claim")
    (reading,) = found.evidence["diagnosis"]
    assert len(reading["correction"]) > 160 and not reading["correction"].startswith("[")
