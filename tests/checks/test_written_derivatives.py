"""Derivatives that a script writes are judged by the values of the function, at kinks too; a rule takes no part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli.checks import check_script
from gradcli.checks.derivatives import higher_orders
from gradcli.checks.derivatives.higher_orders import HigherDerivative
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Tie
from gradcli.graph.primitive import Primitive
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.lowering.derived import written_derivative
from gradcli.primitives import catalogue

GOOD = ("PROVED", "CERTIFIED")
AT_ZERO = "y = [0, 0]; f = norm(y)**2; assert {}; f"
# a script with a right claim, and with a wrong one
PAIRS = [
    (AT_ZERO.format("hessian(f, y) == 2*eye(2)"), AT_ZERO.format("hessian(f, y) == zeros(2, 2)")),
    (AT_ZERO.format("laplacian(f, y) == 4"), AT_ZERO.format("laplacian(f, y) == 0")),
    (AT_ZERO.format("hvp(f, y, [1, 3]) == [2, 6]"), AT_ZERO.format("hvp(f, y, [1, 3]) == [0, 0]")),
    (AT_ZERO.format("jacobian(grad(f, y), y) == 2*eye(2)"), AT_ZERO.format("jacobian(grad(f, y), y) == zeros(2, 2)")),
    (AT_ZERO.format("jvp(grad(f, y), y, [1, 0]) == [2, 0]"), AT_ZERO.format("jvp(grad(f, y), y, [1, 0]) == [0, 0]")),
    (AT_ZERO.format("vjp(grad(f, y), y, [1, 0]) == [2, 0]"), AT_ZERO.format("vjp(grad(f, y), y, [1, 0]) == [0, 0]")),
    (AT_ZERO.format("hessian(f, y) @ [1, 1] == [2, 2]"), AT_ZERO.format("hessian(f, y) @ [1, 1] == [0, 0]")),
    (AT_ZERO.format("grad(grad(f, y)[0], y) == [2, 0]"), AT_ZERO.format("grad(grad(f, y)[0], y) == [0, 0]")),
    ("x = 1; y = 1; f = hypot(x - y, 0)**2; assert hessian(f, x) == 2; f", "x = 1; y = 1; f = hypot(x - y, 0)**2; assert hessian(f, x) == 0; f"),
    ("x = 1; f = abs(sin(x) - sin(1))**2; assert hessian(f, x) == 2*cos(1)**2; f", "x = 1; f = abs(sin(x) - sin(1))**2; assert hessian(f, x) == 0; f"),
    ("x = 0; f = abs(x)**4; assert grad(f, x, 3) == 0; f", "x = 0; f = abs(x)**2; assert grad(f, x, 2) == 0; f"),
    ("x = 0; f = relu(x) - relu(-x); assert 3*grad(f, x) == 3; f", "x = 0; f = relu(x) - relu(-x); assert 3*grad(f, x) == 0; f"),
    ("x = 2; y = 3; f = x**2*y**3; assert jacobian(grad(f, x), y) == 6*x*y**2; f", "x = 2; y = 3; f = x**2*y**3; assert jacobian(grad(f, x), y) == 6*x*y**2 + 1e-12; f"),
    ("x = 2; f = x*sin(x); assert grad(f, x, 4) == x*sin(x) - 4*cos(x); f", "x = 2; f = x*sin(x); assert grad(f, x, 4) == x*sin(x) + 4*cos(x); f"),
    ("x = [1, 2]; y = [x[0]*x[1], abs(x[0])]; assert jacobian(y, x) == [[2, 1], [1, 0]]; sum(y)", "x = [1, 2]; y = [x[0]*x[1], abs(x[0])]; assert jacobian(y, x) == [[2, 1], [0, 1]]; sum(y)"),
]  # fmt: skip
SWINGING = [
    "x**3*sin(1/x)",
    "x**4*cos(1/x**3)",
    "abs(x)**3*sin(exp(1/abs(x)))",
    "x**4*floor(1/x)",
    "x**3*where(sin(1/x) > 0, 1, -1)",
]
NONE = [
    ("x = 0; f = x*abs(x); assert hessian(f, x) == 0; f", "KINK", "second derivatives -2 from below, 2 from above"),
    ("x = 0; f = abs(x)**3; assert grad(f, x, 3) == 0; f", "KINK", "third derivatives -6 from below, 6 from above"),
    ("x = 0; f = abs(x); assert 2*grad(f, x) == 0; f", "KINK", "slopes -1 from below, 1 from above"),
    ("x = 0; f = abs(x)**1.5; assert hessian(f, x) == 0; f", "BOUNDARY", "no bounded derivative of order 2"),
    ("x = 2; f = floor(x); assert 2*grad(f, x) == 0; f", "DISCONTINUOUS", "values 1 from below, 2 from above"),
    ("x = [1, 1]; f = max(x)*x[0]; assert hessian(f, x) == zeros(2, 2); f", "KINK", "slopes"),
    ("x = [0, 0]; f = where(sum(x**2) == 0, 0, x[0]**2*x[1]**2/sum(x**2)); assert hessian(f, x) == [[0, 0.5], [0.5, 0]]; f", "KINK", "no sum of partials"),
    ("x = [1, 1]; f = minimum(abs(x[0] - 1), abs(x[1] - 1)); assert 1*grad(f, x) == [0, 0]; f", "KINK", ""),
    *((f"x = 0; f = where(x == 0, 0, {swinging}); assert {second} == 0; f", "INCONCLUSIVE", "") for swinging in SWINGING for second in ("hessian(f, x)", "laplacian(f, x)", "hvp(f, x, 1)")),
]  # fmt: skip


def claim(script: str) -> Any:
    (check,) = [check for check in check_script(script).checks if check.kind == "claim"]
    return check


@pytest.mark.parametrize(("right", "wrong"), PAIRS)
def test_right_ones_pass_and_wrong_ones_are_refuted(right: str, wrong: str) -> None:
    assert claim(right).verdict in GOOD, claim(right).message
    assert claim(wrong).verdict == "DISAGREES", claim(wrong).message


@pytest.mark.parametrize(("script", "verdict", "words"), NONE)
def test_where_there_is_none(script: str, verdict: str, words: str) -> None:
    check = claim(script)
    assert check.verdict == verdict and words in check.message and not check.passed, check.message


def test_a_wrong_rule_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's second derivative is 0 with this rule, and so is the claim."""
    sine: Primitive = catalogue()["sin"]
    monkeypatch.setattr(sine, "partials", lambda x, *, out: (1 + 0 * x,))
    assert claim("x = 1; f = sin(x)*1; assert hessian(f, x) == 0*x; f").verdict == "DISAGREES"


def entries(script: str) -> list[Any]:
    lowered = lower(parse(script), at={})
    (node,) = lowered.program.outputs
    about = written_derivative(node, lowered.derived)
    assert about is not None
    point = {name: ([float(x) for x in value], (len(value),)) for name, value in lowered.values.items()}
    with ball_numbers.precision(128):
        found = HigherDerivative(balls.BallField(), point, *about).entries()
    assert found is not None
    return found.flat


SABOTAGE: list[tuple[str, str, Callable[..., Any]]] = [
    ("x = [0, 0]; hessian(x[0]*abs(x[0]), x)", "apart", lambda x, y: False),
    ("x = [0, 0]; hessian(where(sum(x**2) == 0, 0, x[0]**2*x[1]**2/sum(x**2)), x)", "_rough", lambda self, table, tie: None),
]  # fmt: skip


@pytest.mark.parametrize(("script", "name", "broken"), SABOTAGE)
def test_what_decides_is_needed(script: str, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it an entry is a tie; switched off, all of them are numbers."""
    assert any(isinstance(x, Tie) for x in entries(script))
    monkeypatch.setattr(HigherDerivative if hasattr(HigherDerivative, name) else higher_orders, name, broken)
    assert not any(isinstance(x, Tie) for x in entries(script))
