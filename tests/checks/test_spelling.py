"""Programs whose floats are poor go in: the spelling that helps is shown, proved equal and measured to be better."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.checks import Check, check_script
from gradcli.checks.decide import rewrites
from gradcli.graph.node import Node
from tests.support.rows import all_rows

# text, point, leaf, what is to be written instead
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("(1 - cos(x))/x**2", {"x": 1e-4}, "x", "2*sin(x/2)**2"),
    ("(exp(x) - 1)/x", {"x": 1e-9}, "x", "expm1(x)"),
    ("(1 - exp(-x))/x", {"x": 1e-9}, "x", "-expm1(-x)"),
    ("log(1 + x)/x", {"x": 1e-9}, "x", "log1p(x)"),
    ("log(exp(x) + 1)", {"x": 800.0}, "x", "softplus(x)"),
    ("log(exp(x) + exp(y))", {"x": 800.0, "y": 1.0}, "x", "logaddexp(x, y)"),
    ("log(sum(exp(w)))", {"w": [800.0, 1.0]}, "w", "logsumexp(w"),
    ("sqrt(x**2 + y**2)", {"x": 3e200, "y": 4e200}, "x", "hypot(x, y)"),
    ("sqrt(sum(v**2))", {"v": [3e200, 4e200]}, "v", "norm(v"),
    ("exp(x)/(1 + exp(x))", {"x": 800.0}, "x", "sigmoid(x)"),
    ("1/(1 + exp(-x))", {"x": -800.0}, "x", "sigmoid(x)"),
    ("sqrt(x + 1) - sqrt(x)", {"x": 1e12}, "x", "1/(sqrt(x + 1) + sqrt(x))"),
    ("(sqrt(1 + x) - 1)/x", {"x": 1e-9}, "x", "x/(sqrt(1 + x) + 1)"),
    ("(-b + sqrt(b**2 - 4*a*c))/(2*a)", {"a": 1.0, "b": 1e8, "c": 1.0}, "b", "-(4*a*c)/(sqrt(b**2 - 4*a*c) + b)"),
    ("(x + y)**2 - x**2", {"x": 1e9, "y": 1e-4}, "x", "y*(x + y + x)"),
    ("log(sigmoid(x))", {"x": -800.0}, "x", "logsigmoid(x)"),
    ("log(1 - sigmoid(x))", {"x": 800.0}, "x", "logsigmoid(-x)"),
    ("log(softmax(x)[0])", {"x": [-800.0, 0.0]}, "x", "log_softmax(x"),
    ("exp(w)[0]/sum(exp(w))", {"w": [800.0, 1.0]}, "w", "softmax(w"),
    ("sin(x)/x", {"x": 1e-8}, "x", "sinc(x/pi)"),
    ("1 - tanh(x)**2", {"x": 20.0}, "x", "1/cosh(x)**2"),
    ("log(x + 1) - log(x)", {"x": 1e12}, "x", "log1p(1/x)"),
    ("1/x - 1/(x + 1)", {"x": 1e9}, "x", "1/(x*(x + 1))"),
    ("exp(x)/exp(y)", {"x": 800.0, "y": 790.0}, "x", "exp(x - y)"),
    ("sin(x + y) - sin(x)", {"x": 1.2, "y": 1e-11}, "x", "*sin(y/2)"),
    ("cos(x + y) - cos(x)", {"x": 1.2, "y": 1e-11}, "x", "*sin(y/2)"),
    ("exp(x + y) - exp(x)", {"x": 1.2, "y": 1e-12}, "x", "exp(x)*expm1(y)"),
    ("(cosh(x) - 1)/x**2", {"x": 1e-5}, "x", "2*sinh(x/2)**2"),
    ("((1 + x)**5 - 1)/x", {"x": 1e-9}, "x", "expm1(5*log1p(x))"),
    ("mean(x**2) - mean(x)**2", {"x": [1e8, 1e8 + 1, 1e8 + 2]}, "x", "(x - sum(x)/3)"),
]


def imprecise(text: str, at: dict[str, Any], leaf: str, **options: Any) -> Check:
    found = [check for check in check_script(text, at=at, **options).checks if check.leaf == leaf]
    assert found[-1].verdict == "IMPRECISE", found[-1].message
    return found[-1]


@all_rows(("text", "at", "leaf", "new"), CASES)
def test_the_better_spelling_is_shown(text: str, at: dict[str, Any], leaf: str, new: str) -> None:
    check = imprecise(text, at, leaf)
    shown: Any = check.evidence["rewrite"]
    before = float(check.evidence["ulps"])  # type: ignore[arg-type]
    assert new in shown[0]["text"]
    assert shown[0]["ulps"] * 8 <= before
    assert shown[0]["proved"]
    new, _, old = shown[0]["text"].partition(" for ")
    assert f"better: {new}" in check.message and old in check.message
    assert 0 < float(check.evidence["digits_lost"]) <= 16  # type: ignore[arg-type]


def test_a_claim_is_rewritten_itself() -> None:
    check = imprecise("softplus(x)", {"x": 800.0}, "x", claims={"x": "exp(x)/(1 + exp(x))"})
    shown: Any = check.evidence["rewrite"]
    assert shown[0]["text"] == "sigmoid(x) for exp(x)/(1 + exp(x))"


@pytest.mark.parametrize(("text", "at"), [("sin(1e15*x)*cos(x)", {"x": 1.1}), ("(x + 1e9)**2 - x", {"x": 0.3})])
def test_where_nothing_helps_nothing_is_shown(text: str, at: dict[str, Any]) -> None:
    for check in check_script(text, at=at).checks:
        assert "rewrite" not in check.evidence


def nearly(node: Node) -> Node | None:
    """A series cut off: better in floats beside 0, and not equal."""
    if node.primitive.name != "log":
        return None
    x = node.args[0].args[1]
    return x - x**2 / 2 + x**3 / 3


def no_better(node: Node) -> Node | None:
    """Equal, and as poor."""
    return 0 + (node.args[1] + node.args[0]) if node.primitive.name == "add" else None


@pytest.mark.parametrize("rule", [nearly, no_better])
def test_what_is_not_proved_or_no_better_is_not_shown(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "RULES", (rule,))
    assert "rewrite" not in imprecise("log(1 + x)/x", {"x": 1e-9}, "x").evidence
