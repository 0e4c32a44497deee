"""Formulas that are built part by part: brackets keep their value, in every notation that Python can read."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli.language import trees
from gradcli.language.notation import SCRIPT, Notation
from gradcli.language.syntax import Expression
from gradcli.language.trees import GradientNotation, Growing
from gradcli.rendering.mathematics import latex

KNOWN: dict[str, Any] = {
    "a": np.float64(1.7),
    "b": np.float64(0.6),
    "c": np.float64(2.9),
    "A": np.array([[1.1, 2.0], [-0.5, 3.2]]),
    "B": np.array([[0.4, -1.3], [2.2, 0.9]]),
    "C": np.array([[-2.1, 0.7], [1.5, 0.3]]),
}
Valued = tuple[Expression, Any]


def scalar(pick: Random, depth: int) -> Valued:
    if depth == 0 or pick.random() < 0.2:
        name = pick.choice("abc")
        return trees.name(name), KNOWN[name]
    x, u = scalar(pick, depth - 1)
    y, v = scalar(pick, depth - 1)
    match pick.randrange(7):
        case 0:
            return trees.negative(x), -u
        case 1:
            n = pick.choice([2, 3, -1])
            return trees.power(x, n), u ** float(n)
        case 2:
            return trees.operation("/", x, y), u / v
        case 3:
            return trees.scaled_by(x, y), u * v
        case 4:
            return trees.chain("*", [x, y]), u * v
        case 5:
            return trees.operation("-", x, y), u - v
    return trees.operation("+", x, y), u + v


def matrix(pick: Random, depth: int) -> Valued:
    if depth == 0 or pick.random() < 0.1:
        name = pick.choice("ABC")
        return trees.name(name), KNOWN[name]
    (s, u), (x, v), (y, w) = scalar(pick, depth - 1), matrix(pick, depth - 1), matrix(pick, depth - 1)
    match pick.randrange(10):
        case 0:
            return trees.negative(x), -v
        case 1:
            return trees.transposed(x), v.T
        case 2:
            return trees.operation("/", x, s), v / u
        case 3:
            return trees.grafted(s, x), u * v
        case 4:
            return trees.scaled_by(x, y), v * w
        case 5:
            return trees.chain("*", [x, y]), v * w
        case 6:
            return trees.operation("-", x, y), v - w
        case 7:
            return trees.repeated(s, x), u * v
        case 8:
            return trees.dot(x, y, flat=True), v @ w
    return trees.dot(x, y), v @ w


@pytest.mark.parametrize("notation", [SCRIPT, Growing(), GradientNotation()], ids=["script", "growing", "gradients"])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_brackets_keep_the_value(notation: Notation) -> None:
    pick = Random(7)
    for _ in range(400):
        tree, value = matrix(pick, pick.randrange(1, 5))
        if np.isfinite(value).all() and 1e-3 < np.abs(value).max() < 1e6:
            text = notation.text(tree)
            assert np.allclose(eval(text, {}, KNOWN), value, rtol=1e-6, atol=1e-6 * np.abs(value).max()), text


def test_brackets_show_how_a_product_is_meant() -> None:
    """Twice A @ x has none; x*y times A has."""
    text = GradientNotation().text
    two, three, a, x, y = trees.number(2), trees.number(3), trees.name("A"), trees.name("x"), trees.name("y")
    product = trees.dot(a, x)
    assert text(trees.grafted(two, product)) == "2*A @ x"
    assert text(trees.dot(trees.chain("*", [x, y]), a)) == "(x*y) @ A"
    assert text(trees.chain("*", [product, y])) == "(A @ x)*y"
    assert text(trees.operation("/", product, y)) == "A @ x/y"
    assert text(trees.dot(a, product)) == "A @ (A @ x)" and text(trees.dot(a, product, flat=True)) == "A @ A @ x"
    assert text(trees.negative(trees.scaled_by(x, y))) == "-x*y"
    assert text(trees.power(trees.negative(x), -1)) == "(-x)**(-1)"
    assert text(trees.repeated(trees.operation("/", two, three), x)) == "2/3*x"


@pytest.mark.parametrize(
    ("script", "formula"),
    [
        ("(a or b) and c", r"(a \lor b) \land c"),
        ("a or b or c and d", r"a \lor b \lor c \land d"),
        ("x*2**y", r"x \cdot 2^{y}"),
        ("x*(1e-3)**2", r"x (1 \times 10^{-3})^{2}"),
        ("(a/b + c)**2", r"\left(\frac{a}{b} + c\right)^{2}"),
        ("sum(x[k/2] for k in range(n))", r"\sum_{k = 0}^{n - 1} x_{\frac{k}{2}}"),
        ("x - -2", "x - (-2)"),
    ],
)
def test_latex(script: str, formula: str) -> None:
    assert latex(script, {}) == formula
