"""Leaves that are declared symmetric: entries [i, j] and [j, i] are one variable, in values, derivatives and claims."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.unparse import unparse

Matrix = NDArray[np.float64]
X = np.array([[0.7, -0.4, 1.1], [0.2, 0.9, -0.6]])
A = np.array([0.3, -1.2, 0.8])
POINT = np.array([[2.0, 0.5, -0.3], [0.5, 1.5, 0.4], [-0.3, 0.4, 3.0]])

# a script, the function of NumPy, and the gradient by a symmetric S in the words of the field
FORMULAS: tuple[tuple[str, Any, str], ...] = (
    ("logdet(S)", lambda s: np.linalg.slogdet(s)[1], "2*inv(S) - diag(diag(inv(S)))"),
    ("det(S)", np.linalg.det, "det(S)*(2*inv(S) - diag(diag(inv(S))))"),
    ("trace(S @ S)", lambda s: np.trace(s @ s), "4*S - 2*diag(diag(S))"),
    ("sum(S**3)", lambda s: (s**3).sum(), "6*S**2 - 3*diag(diag(S)**2)"),
    ("a @ S @ a", lambda s: A @ s @ A, "2*outer(a, a) - diag(a**2)"),
    ("a @ inv(S) @ a", lambda s: A @ np.linalg.inv(s) @ A, "diag((inv(S)@a)**2) - 2*outer(inv(S)@a, inv(S)@a)"),
    (
        "trace(X @ S @ X.T)",
        lambda s: np.trace(X @ s @ X.T),
        "2*X.T@X - diag(diag(X.T@X))",
    ),
    ("S[0, 1]*S[1, 2]", lambda s: s[0, 1] * s[1, 2], "[[0, S[1,2], 0], [S[1,2], 0, S[0,1]], [0, S[0,1], 0]]"),
    ("sum(S)", np.sum, "2*ones(3, 3) - eye(3)"),
)


def moved_in_pairs(function: Any, at: Matrix, step: float = 1e-6) -> Matrix:
    """The gradient by differences in which the entries [i, j] and [j, i] move together."""
    gradient = np.zeros_like(at)
    for i, j in product(range(len(at)), repeat=2):
        moved = np.zeros_like(at)
        moved[i, j] = moved[j, i] = step
        gradient[i, j] = (function(at + moved) - function(at - moved)) / (2 * step)
    return gradient


def declared(text: str) -> str:
    return f"S[3, 3] in symmetric\n{text}"


def point(text: str) -> dict[str, Any]:
    return {name: value for name, value in {"S": POINT, "X": X, "a": A}.items() if name in text}


@pytest.mark.parametrize(("text", "function", "formula"), FORMULAS, ids=[row[0] for row in FORMULAS])
def test_derivatives_move_pairs(text: str, function: Any, formula: str) -> None:
    script, at = declared(text), point(text)
    result = gradcli.grad(script, at=at)
    assert result.value == pytest.approx(function(POINT), rel=1e-12)
    np.testing.assert_allclose(result.gradient["S"], moved_in_pairs(function, POINT), rtol=1e-6, atol=1e-8)
    right = gradcli.check(script, at=at, claims={"S": formula})
    assert [check.verdict for check in right.checks if check.kind == "claim"] in (["PROVED"], ["CERTIFIED"]), right


@pytest.mark.parametrize("text", ["logdet(S)", "sum(S**3)", "a @ inv(S) @ a"])
def test_second_derivatives_move_pairs_twice(text: str) -> None:
    script, at = declared(text), point(text)
    hessian = np.array(gradcli.hessian(script, at=at, wrt=["S"]).hessian["S"]["S"]).reshape(3, 3, 3, 3)
    for i, j in product(range(3), repeat=2):

        def entry(s: Matrix, i: int = i, j: int = j) -> float:
            return float(np.asarray(gradcli.grad(script, at={**at, "S": s}).gradient["S"])[i, j])

        np.testing.assert_allclose(hessian[i, j], moved_in_pairs(entry, POINT, 1e-4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("formula", ["inv(S)", "inv(S).T", "(inv(S) + inv(S).T)/2"])
def test_the_gradient_by_independent_entries_is_named(formula: str) -> None:
    report = gradcli.check(declared("logdet(S)"), at={"S": POINT}, claims={"S": formula})
    (claim,) = [check for check in report.checks if check.kind == "claim"]
    assert claim.verdict == "DISAGREES"
    assert "independent entries" in str(report) and "G + G.T - diag(diag(G))" in str(report)


@pytest.mark.parametrize("formula", ["2*inv(S)", "2*inv(S) - diag(inv(S))", "tril(2*inv(S)) - diag(diag(inv(S)))"])
def test_other_gradients_are_refuted(formula: str) -> None:
    report = gradcli.check(declared("logdet(S)"), at={"S": POINT}, claims={"S": formula})
    assert [check.verdict for check in report.checks if check.kind == "claim"] == ["DISAGREES"]


DERIVED = (
    ("symmetric S; logdet(S)", "2*inv(S) - diag(diag(inv(S)))"),
    ("S[n, n] in symmetric; trace(S @ S)", "2*(2*S - diag(diag(S)))"),
    ("S[n, n] in symmetric; a[n] in real; a @ S @ a", "2*outer(a, a) - diag(a**2)"),
    ("S[n, n] in symmetric; a[n] in real; exp(a @ inv(S) @ a)", None),
)


@pytest.mark.parametrize(("text", "formula"), DERIVED)
def test_formulas_are_derived_for_all_sizes(text: str, formula: str | None) -> None:
    derivation = gradcli.derive(text, wrt=["S"])
    (derivative,) = derivation.derivatives
    assert derivative.verdict in ("PROVED", "CERTIFIED")
    assert ".T" not in derivative.text
    assert formula is None or derivative.text == formula


def test_a_derivative_in_the_script_is_of_the_leaf() -> None:
    text = declared("y = logdet(S)\nassert grad(y, S) == 2*inv(S) - diag(diag(inv(S)))\ngrad(y, S)[0, 1]")
    assert gradcli.evaluate(text, at={"S": POINT}).value == pytest.approx(2 * np.linalg.inv(POINT)[0, 1], rel=1e-12)
    assert all(check.verdict in ("PROVED", "CERTIFIED") for check in gradcli.check(text, at={"S": POINT}).checks)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("S[2, 2] in symmetric = [[1, 2], [3, 4]]; sum(S)", "GC413"),
        ("S[2, 3] in symmetric = ones(2, 3); sum(S)", "GC321"),
        ("S in symmetric = 2; S", "GC321"),
        ("symmetric S, T; S", "GC123"),
        ("symmetric S + 1; S", "GC123"),
        ("S[2, 2] in symmetric = eye(2); laplacian(det(S), S)", "GC207"),
        ("S[2, 2] in symmetric = eye(2); sum(jvp(det(S), S, eye(2)))", "GC207"),
        ("S[2, 2] in symmetric = eye(2); sum(hvp(det(S), S, eye(2)))", "GC207"),
    ],
)
def test_what_is_no_symmetric_leaf_is_refused(text: str, code: str) -> None:
    with pytest.raises(GradcliError, match=code):
        gradcli.grad(text)


@pytest.mark.parametrize("text", ["symmetric S[n, n] = eye(n)", "symmetric S", "S[3, 3] in symmetric"])
def test_both_spellings_are_one_declaration(text: str) -> None:
    written = unparse(parse(Source(text)))
    assert "in symmetric" in written
    assert unparse(parse(Source(written))) == written


def test_a_variable_may_be_called_symmetric() -> None:
    assert gradcli.grad("symmetric = 3\nsymmetric**2").gradient == {"symmetric": 6.0}
