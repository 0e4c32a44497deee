"""`trace --symbolic`: every local partial as a formula beside its number, and both are the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gradcli import calculator
from gradcli.calculator.traces import local_partials
from gradcli.interfaces import cli
from gradcli.primitives import functions
from tests.rendering.test_schema import validator
from tests.support.rows import all_rows

POINT = {"x": 0.3, "y": 0.4, "z": 0.6, "w": 0.7}
ELEMENTWISE = sorted(
    name
    for name, one in functions().items()
    if one.kind == "elementwise" and not one.internal and name == one.name and not one.static
)
ELSEWHERE = {"acosh": 1.5, "zeta": 1.5}  # the first argument of those that 0.3 is no argument of
NO_CLOSED_FORM = {  # arguments by which there is no derivative in public operations
    **dict.fromkeys(("iv", "ive", "jn", "kv", "yn", "hyp0f1", "gammainc", "gammaincc", "zeta"), (0,)),
    "betainc": (0, 1),
    "hyp1f1": (0, 1),
    "hyp2f1": (0, 1, 2),
}


@all_rows("name", ELEMENTWISE)
def test_every_partial_has_a_formula_with_its_number(name: str) -> None:
    names = list(POINT)[: functions()[name].arity]
    at = {one: POINT[one] for one in names}
    at["x"] = ELSEWHERE.get(name, at["x"])
    trace = calculator.trace(f"{name}({', '.join(names)})", at=at, symbolic=True)
    for step in trace.backward:
        for place, sent in enumerate(step.contributions):
            if place in NO_CLOSED_FORM.get(name, ()):
                assert not sent.formula
                continue
            assert sent.formula
            assert calculator.evaluate(sent.formula, at=at).value == pytest.approx(sent.partial, rel=1e-9)


ARRAYS = [  # script, for each operation what it sends to each operand
    ("sum(A @ x)", [["ct*ones(3)"], ["outer(ct, x)", "A.T @ ct"]]),
    ("norm(x)", [["ct*x/norm(x)"]]),
    ("r = A @ x - b; r @ r", [["ct*r", "ct*r"], ["1", "-1"], ["outer(ct, x)", "A.T @ ct"]]),
    ("mean(x*b[0])", [["1/2"], ["ct*ones(2)"], ["b[0]", "x"], ["[ct, 0, 0]"]]),
]


@pytest.mark.parametrize(("script", "formulas"), ARRAYS)
def test_formulas_of_arrays(script: str, formulas: list[list[str]]) -> None:
    at = {"A": np.arange(6.0).reshape(3, 2) / 7, "x": [1.0, 2.0], "b": [1.0, 2.0, 4.0]}
    trace = calculator.trace(script, at=at, symbolic=True)
    passes = trace.written or trace
    found = [[sent.formula for sent in step.contributions] for step in passes.backward if step.contributions]
    assert found == formulas


def test_at_a_kink_a_formula_that_has_another_number_is_left_out() -> None:
    trace = calculator.trace("maximum(x, 0) + abs(x)", at={"x": 0.0}, symbolic=True)
    assert {step.primitive: [sent.formula for sent in step.contributions] for step in trace.backward} == {
        "add": ["1", "1"],
        "maximum": [""],  # a half, by convention
        "abs": ["sign(x)"],
    }


def test_a_formula_that_reads_back_as_something_else_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_partials, "entries_text", lambda *_: "sin(operand_0)")
    trace = calculator.trace("sin(x)", at={"x": 2.0}, symbolic=True)
    assert [sent.formula for step in trace.backward for sent in step.contributions] == [""]


def test_long_operands_are_steps() -> None:
    trace = calculator.trace("exp(sin(x)*cos(x) + tanh(x))**2", at={"x": 0.5}, symbolic=True)
    first = next(step for step in trace.backward if step.contributions)
    assert first.contributions[0].formula == f"2*v{first.contributions[0].to}"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "sin(x)*x", "--at", "x=2", "--symbolic", "--digits", "4"]) == 0
    assert "cos(x) = -0.4161" in capsys.readouterr().out
    assert cli.main(["trace", "sin(x)*x", "--at", "x=2", "--symbolic", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    validator("trace").validate(payload)
    assert payload["backward"][1]["contributions"][0]["formula"] == "cos(x)"
    assert cli.main(["trace", "sin(x)", "--at", "x=2", "--symbolic", "--plan"]) == 2
    assert "GC721" in capsys.readouterr().err
