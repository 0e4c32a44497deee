"""SymPy's derivative as a witness: its numbers are right, its formulas short, and where it cannot answer it says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

from gradcli.checks.evaluate.interpretation import Undecided, Unsupported
from gradcli.checks.oracle.sympy_witness import derivative, tree_size
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower


def witness(text: str, at: dict[str, Any], leaf: str = "x", entry: int = 0) -> dict[str, Any]:
    lowered = lower(parse(Source(text)), at=at)
    point = {name: (np.ravel(value).tolist(), np.shape(value)) for name, value in at.items()}
    leaves = lowered.program.leaves
    return derivative(lowered.program.outputs[0], leaves[leaf].node, entry, point)


ANSWERS = [
    ("x**2*sin(y)", {"x": 2.0, "y": 3.0}, "2*x*sin(y)", 4 * np.sin(3.0)),
    ("(x*y + x)**2", {"x": 2.0, "y": 3.0}, "(2*y + 2)*(x*y + x)", 64.0),
    ("x/10 + x**2/3", {"x": 1.5}, "2*x/3 + 1/10", 1.1),
    ("abs(x)*detach(x)", {"x": -2.0}, "-detach1[0]", 2.0),
    ("relu(x)**2", {"x": 1.5}, "2*x", 3.0),
    ("where(x > 1, x**3, x)", {"x": 0.5}, "1", 1.0),
    ("det(x)", {"x": [[1.0, 2.0], [2.0, 5.0]]}, "x[1, 1]", 5.0),
    ("(1 - cos(x))/x**2", {"x": 1e-4}, "sin(x)/x**2 - 2*(1 - cos(x))/x**3", -8.333333327777778e-6),
    ("logsumexp(x)", {"x": [1.0, 2.0]}, "exp(x[0])/(exp(x[0]) + exp(x[1]))", 1 / (1 + np.e)),
]


@pytest.mark.parametrize(("text", "at", "formula", "value"), ANSWERS)
def test_formulas_and_numbers(text: str, at: dict[str, Any], formula: str, value: float) -> None:
    found = witness(text, at)
    assert found["formula"] == formula
    assert float(found["value"]) == pytest.approx(value, rel=1e-14)


def test_what_the_output_does_not_read_has_derivative_0() -> None:
    assert witness("x in real; y in real; x**2", {"x": 1.5, "y": 2.0}, "y") == {"value": "0", "formula": "0"}


def test_a_long_formula_is_left_out() -> None:
    found = witness("sum(softmax(x)*[1, 2, 3])", {"x": [1.0, 2.0, 3.0]}, entry=2)
    assert "formula" not in found
    assert float(found["value"]) == pytest.approx(0.28259, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "x", "error", "reason"),
    [
        ("relu(x)", 0.0, Undecided, "branches meet"),
        ("where(x > 1, x**2, x)", 1.0, Undecided, "branches meet"),
        ("log(x)", -1.0, Undecided, "no real number"),
        ("1/(x - x)", 1.0, Unsupported, "ComplexInfinity"),
    ],
)
def test_where_it_cannot_answer_it_says_why(text: str, x: float, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        witness(text, {"x": x})


def test_shared_parts_are_not_written_out_without_end() -> None:
    text = "y = x\n" + "y = sin(y)*y + 1\n" * 40 + "y"
    with pytest.raises(Unsupported, match="more than 2,000 operations"):
        witness(text, {"x": 0.5})


def test_a_large_program_is_not_begun() -> None:
    with pytest.raises(Unsupported, match="more than 4,000"):
        witness("sum(x**2)", {"x": [1.0] * 5000})


def test_a_size_counts_shared_parts_as_often_as_they_are_read() -> None:
    x = sympy.Symbol("x")
    nest = x
    for _ in range(20):
        nest = sympy.sin(nest) * sympy.cos(nest)
    assert tree_size(nest) > 2**20
