"""`derive --steps`: the lines of a derivation, each compared with numbers of the engine as well."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.calculations import DerivationStep
from gradcli.derivation import derivation_steps
from gradcli.derivation.deriving import derive
from gradcli.interfaces import cli
from tests.formulas.test_derive import scripts
from tests.rendering.test_schema import validator

LINES = [  # script, leaf, (rule, line, result) of each operation
    (
        "x**2*exp(-x)",
        "x",
        [
            ("power rule", "d(x**2)/dx = 2*x", ""),
            ("constant factor", "d(-x)/dx = -1", ""),
            ("chain rule, exp", "d(exp(-x))/dx = exp(-x)*d(-x)/dx", "-exp(-x)"),
            ("product rule", "d(x**2*exp(-x))/dx = exp(-x)*d(x**2)/dx + x**2*d(exp(-x))/dx", "x*exp(-x)*(2 - x)"),
        ],
    ),
    (
        "mean((A@x - b)**2)",
        "x",
        [
            ("constant factor", "d(A @ x) = A @ dx", ""),
            ("sum rule", "d(A @ x - b) = d(A @ x)", "A @ dx"),
            ("power rule, chain rule", "d((A @ x - b)**2) = 2*(A @ x - b)*d(A @ x - b)", "2*(A @ x - b)*(A @ dx)"),
            (
                "mean is linear",
                "d(mean((A @ x - b)**2)) = mean(d((A @ x - b)**2))",
                "2/m*((A @ x - b) @ (A @ dx))",
            ),
        ],
    ),
    (
        "log(det(X))",
        "X",
        [
            ("derivative of det", "d(det(X)) = det(X)*trace(inv(X) @ dX)", ""),
            ("chain rule, log", "d(log(det(X))) = d(det(X))/det(X)", "trace(inv(X) @ dX)"),
        ],
    ),
    (
        "r = A@x - b\ns = norm(r)\ns**2",
        "x",
        [
            ("constant factor", "d(A @ x) = A @ dx", ""),
            ("sum rule", "dr = d(A @ x)", "A @ dx"),
            ("chain rule, norm", "ds = r @ dr / norm(r)", "(A @ x - b) @ (A @ dx) / norm(A @ x - b)"),
            ("power rule, chain rule", "d(s**2) = 2*s*ds", "2*((A @ x - b) @ (A @ dx))"),
        ],
    ),
    (
        "2**x/log(x)",
        "x",
        [
            ("exponential rule", "d(2**x)/dx = 2**x*log(2)", ""),
            ("derivative of log", "d(log(x))/dx = 1/x", ""),
            (
                "quotient rule",
                "d(2**x/log(x))/dx = (d(2**x)/dx - 2**x*d(log(x))/dx/log(x))/log(x)",
                "2**x*(log(2) - 1/(x*log(x)))/log(x)",
            ),
        ],
    ),
]


@pytest.mark.parametrize(("script", "leaf", "lines"), LINES)
def test_lines(script: str, leaf: str, lines: list[tuple[str, str, str]]) -> None:
    steps = derive(script, wrt=[leaf], steps=True).steps
    assert steps is not None
    assert [(step.rule, f"{step.left} = {step.line}", step.result) for step in steps[leaf]] == lines
    assert {step.proof for step in steps[leaf]} == {"reverse mode"}


SIZES = {"n": 3}
SQUARE = {"A": ("n", "n"), "B": ("n", "n"), "x": ("n",), "y": ("n",)}


def numbers(step: DerivationStep, leaf: str, point: dict[str, np.ndarray]) -> None:
    """The result of a line at a point is the engine's own derivative of the operation along a direction."""
    text = re.sub(r"\bn\b", "3", step.result or step.line)
    if step.letter or re.search(r"d\(|\bd[A-Zu]\d", text):
        return
    place = {name: value.tolist() for name, value in point.items()}
    place[f"d{leaf}"] = (point[leaf] * 0.5 + 0.25).tolist()
    found = calculator.evaluate(text, at=place).value
    right = calculator.evaluate(f"jvp({step.of}, {leaf}, d{leaf})", at=place).value
    assert np.allclose(found, right, rtol=1e-9, atol=1e-12), step


@settings(max_examples=6, deadline=None, derandomize=True)
@given(scripts())
def test_random_expressions(script: str) -> None:
    holds(script)


@pytest.mark.deep
@settings(max_examples=80, deadline=None, derandomize=True)
@given(scripts())
def test_many_random_expressions(script: str) -> None:
    holds(script)


def holds(script: str) -> None:
    generator = np.random.default_rng(3)
    point = {name: generator.uniform(0.2, 0.9, (3,) * len(axes)) for name, axes in SQUARE.items()}
    try:
        found = derive(script, shapes=SQUARE, steps=True, wrt=["x"])
    except GradcliError as problem:
        assert problem.diagnostics[0].code == "GC206"  # it does not read x
        return
    assert found.steps is not None and found.steps.keys() == found.formula.keys()
    for leaf, steps in found.steps.items():
        assert steps
        for step in steps:
            numbers(step, leaf, point)


def test_a_wrong_line_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation_steps, "formula_texts", lambda *_: iter(["3*x", "2*x*tangent_0"]))
    found = derive("sin(x)**2", steps=True)
    assert found.text == {"x": "2*sin(x)*cos(x)"} and found.steps == {"x": []}


def test_long_operations_have_letters() -> None:
    found = derive("u1 = 2\nsin(x**2 + x + exp(x) + u1*x)*x", wrt=["x"], steps=True)
    assert found.steps is not None
    named = [(step.letter, step.of, step.left) for step in found.steps["x"] if step.letter]
    assert named[0] == ("u2", "sin(x**2 + x + exp(x) + u1*x)", "du2/dx") and named[1][1] == "u2*x"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["derive", "x**2*exp(-x)", "--steps"]) == 0
    assert "3 chain rule, exp  d(exp(-x))/dx = exp(-x)*d(-x)/dx" in capsys.readouterr().out
    assert cli.main(["derive", "tanh(W@x)", "--jacobian", "--steps", "--wrt", "x", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    validator("derive").validate(payload)
    assert payload["steps"]["x"][1]["result"] == "(1 - tanh(W @ x)**2)*(W @ dx)"
    assert cli.main(["derive", "x**2", "--steps", "--hessian"]) == 2
    assert "GC721" in capsys.readouterr().err
