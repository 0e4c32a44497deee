"""Running error bounds hold, and `grad` and `eval` show exact values exactly where floats lost their digits."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from gradcli import calculator
from gradcli.calculator.notes.lost_digits import digits_are_lost, running_errors
from gradcli.checks.decide.precision import is_bad
from gradcli.checks.evaluate.balls import enclose
from gradcli.interfaces import cli
from tests.rendering.test_schema import validator

FORMULAS = [
    "(x*y + x)**2", "1/(1 + exp(-x))", "sin(x)*exp(y) - cos(y)", "log(x**2 + y**2)", "sqrt(x + 2) - sqrt(x + 1)",
    "(1 - cos(x))/x**2", "exp(x) - exp(y)", "x**3 - 3*x**2*y + 3*x*y**2 - y**3", "tanh(x)/x - 0.1", "atan2(y, x)*hypot(x, y)",
    "where(x > y, x - y, y - x)", "log1p(x)*expm1(y)", "(x + y)**7/(x - y)", "log(1 + x*1e-9)", "maximum(x, y)*relu(x - 0.3)",
    "x**y", "exp(exp(x)) - exp(exp(y))", "1/(x - y) - 1/(x + y)", "acos(x/4)*asin(y/4)", "sin(1e5*x)",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_the_bound_holds(text: str) -> None:
    """Every value of a program and its gradient is within a few of its bounds of the exact one."""
    generator = random.Random(text)
    for _ in range(12):
        point = {name: generator.choice([1.0, 1e-4, 1e-8]) * generator.uniform(0.1, 2.0) for name in "xy"}
        point["y"] = generator.choice([point["y"], point["x"] * (1 + 1e-9)])
        lowered, values, *_ = calculator._prepared(text, point, ["x"], None)
        question = calculator.gradient_question(lowered)
        if not question.tape.scalar:
            pytest.skip("needs arrays")
        floats = question.tape.run_all(question.values(values))
        errors = running_errors(question.tape.nodes, floats)
        nodes = [node for node in question.tape.nodes if node.type.kind == "float"]
        exact = enclose(nodes, {name: ([value], ()) for name, value in point.items()})
        for node, entries in zip(nodes, exact, strict=True):
            true = entries.flat[0]
            if hasattr(true, "mid"):
                gap = float(abs(true - floats[node]).upper())
                assert gap <= 4 * errors[node] + 1e-25 * abs(float(floats[node])), (
                    node,
                    floats[node],
                    gap,
                    errors[node],
                )


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main([*arguments, "--format", "json"]) == 0
    payload: dict[str, Any] = json.loads(capsys.readouterr().out)
    validator(arguments[0]).validate(payload)
    return payload


def alike(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same to 11 digits."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or (isinstance(one, float) and abs(one - other) <= 1e-11 * abs(other))


LOST = [
    ("grad", "2/(1+exp(-2*x))-1", "x=-1000", {"gradient": {"x": 0.0}, "lost_in": "exp(-2*x)"}),
    ("grad", "2/(1+exp(-2*x))-1", "x=1e-12", {"value": 1e-12, "lost_in": "2/(1 + exp(-2*x)) - 1"}),
    ("eval", "(1-cos(x))/x**2", "x=1e-7", {"value": 0.5, "lost_in": "1 - cos(x)"}),
    ("grad", "(1-cos(x))/x**2", "x=1e-7", {"value": 0.5, "gradient": {"x": -1 / 12 * 1e-7}, "lost_in": "1 - cos(x)"}),
    ("eval", "log(1 + x)", "x=1e-17", {"value": 1e-17, "lost_in": "log(1 + x)"}),
    ("eval", "exp(x)/(1 + exp(x))", "x=800", {"value": 1.0, "lost_in": "exp(x)"}),
    ("eval", "exp(x)*exp(-1500)*exp(1500)", "x=1", {"value": 2.718281828459045, "lost_in": "exp(1500)"}),
    ("grad", "exp(x)", "x=800", {"value": "2.726374572112566567364780e+347",
                                 "gradient": {"x": "2.726374572112566567364780e+347"}, "lost_in": "exp(x)"}),
    ("grad", "sum(log(exp(w)+1))", "w=[1,800]", {"value": 801.3132616875182,
                                                 "gradient": {"w": [0.7310585786300049, 1.0]}, "lost_in": "exp(w)"}),
    ("eval", "[exp(x)/exp(x), x]", "x=800", {"value": [1.0, 800.0], "lost_in": "exp(x)"}),
    ("eval", "exp(x)/exp(x), x", "x=800", {"value": [1.0, None], "lost_in": "exp(x)"}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "at", "exact"), LOST)
def test_exact_values_beside_floats_that_lost_their_digits(
    command: str, text: str, at: str, exact: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    payload = answer(capsys, command, text, "--at", at)
    found = payload["exact"]
    assert found.keys() == exact.keys()
    assert found["lost_in"] == exact["lost_in"]
    assert alike(found.get("value"), exact.get("value")), found
    assert alike(found.get("gradient"), exact.get("gradient")), found
    assert "GC409" in [one["code"] for one in payload["diagnostics"]]
    for kind in ("table", "plain", "markdown", "csv"):
        assert cli.main([command, text, "--at", at, "--format", kind]) == 0
        assert "exact" in capsys.readouterr().out


GOOD = [
    ("grad", "(x*y+x)**2", "x=2,y=3"), ("grad", "x - y", "x=1.0000000001,y=1"), ("grad", "x**2", "x=1e-200"),
    ("grad", "1 - x", "x=0.9999999999"), ("grad", "sum(w**2)", "w=[1,2,3]"), ("eval", "log1p(x)", "x=1e-17"),
    ("grad", "relu(x)", "x=0"), ("eval", "exp(-x)", "x=800"),
    ("grad", "x*0", "x=3"), ("eval", "floor(x) - x", "x=2.5"), ("grad", "where(x > 0, x, 0)", "x=-1"),
    ("grad", "(x + 1)**3 - x**3 - 3*x**2", "x=0.25"), ("eval", "3*x - 2*x - x", "x=7"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "at"), GOOD)
def test_good_digits_ask_no_oracle(
    command: str, text: str, at: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("exact arithmetic was asked")

    monkeypatch.setattr("gradcli.checks.decide.precision.lost_digits", refused)
    assert "exact" not in answer(capsys, command, text, "--at", at)


@pytest.mark.parametrize(
    "text", ["log(x)", "1/x", "sqrt(x - 1)", "where(x == 0, inf, x)", "sin(x) - sin(x)", "-inf*(x + 1)"]
)
def test_what_floats_say_rightly_has_no_exact_value(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "exact" not in answer(capsys, "eval", text, "--at", "x=0")


def test_what_counts_as_lost() -> None:
    assert digits_are_lost(1.0, 1e-7) and not digits_are_lost(1.0, 1e-9)
    assert digits_are_lost(float("nan"), 0.0) and digits_are_lost(0.0, 1e-17)
    assert not digits_are_lost(0.0, 5e-324)
    assert is_bad(float("inf"), {"digits": "2e347", "value": None})
    assert not is_bad(1.0, {"failure": "undefined", "reason": ""})
