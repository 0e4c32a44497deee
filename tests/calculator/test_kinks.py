"""Numbers at kinks: what is a convention says so, what has a true value has it, and smooth points are left alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import calculator

CONVENTIONS = [
    ("abs(x)", {"x": 0.0}, "slopes -1 from below, 1 from above"), ("norm(x)", {"x": [0.0, 0.0]}, "slopes -1 from below, 1 from above"),
    ("max(x)", {"x": [2.0, 2.0]}, "slopes 0 from below, 1 from above"), ("relu(x)", {"x": 0.0}, "slopes 0 from below, 1 from above"),
    ("atan2(y, x)", {"x": 0.0, "y": 0.0}, "jumps here"), ("sum(sort(x)*[1, 2])", {"x": [1.0, 1.0]}, "slopes 1 from below, 2 from above"),
    ("where(x > 1, x, x**2)", {"x": 1.0}, "slopes 2 from below, 1 from above"), ("floor(x)", {"x": 2.0}, "values 1 from below, 2 from above"),
    ("maximum(x, y)", {"x": 1.0, "y": 1.0}, "the gradient by x; by y is a convention"), ("std(x)", {"x": [1.0, 1.0]}, "slopes"),
    ("hypot(x, y)", {"x": 0.0, "y": 0.0}, "slopes -1 from below, 1 from above"), ("clamp(x, 0, 1)", {"x": 1.0}, "slopes 1 from below, 0 from above"),
    ("abs(sin(x) - sin(1))", {"x": 1.0}, "slopes -0.540302 from below, 0.540302 from above"), ("median(x)", {"x": [1.0, 1.0, 2.0]}, "slopes"),
    ("relu(x) - relu(-x)", {"x": 0.0}, "the derivative is 1.0"), ("abs(x - 0.3)", {"x": 0.3}, "the derivative is -1.0"), ("sign(x)*x**2 + abs(y)", {"x": 0.0, "y": 0.0}, "the gradient by y is"),
]  # fmt: skip
SMOOTH = [
    ("abs(x)", {"x": 1.0}), ("abs(x)**2", {"x": 0.0}), ("norm(x)**2", {"x": [0.0, 0.0]}), ("x*abs(x)", {"x": 0.0}), ("relu(x)**2", {"x": 0.0}),
    ("max(x)", {"x": [1.0, 2.0]}), ("sum(sort(x))", {"x": [1.0, 1.0]}), ("maximum(x, x)", {"x": 1.0}), ("x**2*floor(x)", {"x": 0.5}),
    ("where(x > 1, x**2, 2*x - 1)", {"x": 1.0}), ("sin(x)", {"x": 0.0}), ("x**2.5", {"x": 0.0}),
]  # fmt: skip
SECOND = [
    ("norm(y)**2", {"y": [0.0, 0.0]}, [[2, 0], [0, 2]]), ("hypot(y[0], y[1])**2", {"y": [0.0, 0.0]}, [[2, 0], [0, 2]]), ("abs(y)**2", {"y": 0.0}, 2),
    ("norm(y - [1, 2])**2", {"y": [1.0, 2.0]}, [[2, 0], [0, 2]]), ("sum(maximum(y, 0)**2 + minimum(y, 0)**2)", {"y": [0.0, 1.0]}, [[2, 0], [0, 2]]),
    ("norm(y)**2*y[0]", {"y": [0.0, 0.0]}, [[0, 0], [0, 0]]), ("abs(exp(y) - 1)**2", {"y": 0.0}, 2), ("y**3", {"y": 0.0}, 0), ("sqrt(y**2)**2", {"y": 0.0}, 2),
]  # fmt: skip


def said(result: Any) -> list[str]:
    return [note.message for note in result.diagnostics if note.code == "GC410"]


@pytest.mark.parametrize(("text", "at", "words"), CONVENTIONS)
def test_a_convention_is_said_in_one_line(text: str, at: dict[str, Any], words: str) -> None:
    notes = said(calculator.grad(text, at=at))
    assert len(notes) <= len(at) and any(words in note for note in notes), notes
    assert all("\n" not in note and note.startswith("the gradient by ") for note in notes)


@pytest.mark.parametrize(("text", "at"), SMOOTH)
def test_nothing_is_said_where_the_gradient_is_one(text: str, at: dict[str, Any]) -> None:
    assert said(calculator.grad(text, at=at)) == []


@pytest.mark.parametrize(("text", "at", "expected"), SECOND)
def test_second_derivatives_have_their_true_values(text: str, at: dict[str, Any], expected: Any) -> None:
    result = calculator.hessian(text, at=at)
    assert np.array_equal(result.hessian["y"]["y"], expected) and said(result) == []
    trace = np.trace(np.atleast_2d(expected))
    script = f"y = {np.asarray(at['y']).tolist()}; f = {text}; "
    assert calculator.evaluate(f"{script}laplacian(f, y)").value == trace
    assert np.array_equal(calculator.evaluate(f"{script}hessian(f, y)").value, expected)


def test_second_derivatives_that_do_not_exist_are_conventions() -> None:
    for text in ("x*abs(x)", "relu(x)**2", "maximum(x, 0)*x"):
        (note,) = said(calculator.hessian(text, at={"x": 0.0}))
        assert note.startswith("the second derivative by x is a convention") and "from below" in note
    mixed = said(calculator.hessian("x*abs(y)", at={"x": 1.0, "y": 0.0}))
    assert any("the second derivative by x and y" in note for note in mixed)
    (note,) = said(calculator.evaluate("x = 0; grad(abs(x), x) + 1"))
    assert note.startswith("the value is a convention: abs(x) has a kink here")


def test_an_ordinary_gradient_imports_no_exact_arithmetic() -> None:
    """Nor does one whose kinks are elsewhere."""
    for text, at in (("x*sin(y)", {"x": 2.0, "y": 3.0}), ("abs(x) + relu(y)", {"x": 2.0, "y": -3.0})):
        code = f"import sys; from gradcli import calculator; calculator.grad({text!r}, at={at!r})"
        code += "; print([name for name in ('flint', 'numpy', 'gradcli.checks') if name in sys.modules])"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_script_that_is_asked_often_says_it_each_time() -> None:
    """That the points before it were smooth changes nothing, nor do many points fill the graph."""
    often = gradcli.compile("sum(abs(x)**2) + x[0]*x[1]")
    for at in ([1.0, 2.0], [3.0, 4.0], [0.0, 4.0], [0.0, 0.0], [5.0, 0.0]) * 3:
        assert np.array_equal(often.hessian(x=at).hessian["x"]["x"], [[2, 1], [1, 2]])
    kinked = gradcli.compile("sum(x*abs(x))")
    for at in ([1.0, 2.0], [3.0, 4.0], [0.0, 4.0], [1.0, 2.0]):
        assert len(said(kinked.hessian(x=at))) == (0.0 in at)
