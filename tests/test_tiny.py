"""One script through every stage, from text to printed page: `pytest tests/test_tiny.py` takes seconds.

The right answers are written out here by hand; every other test is a law over many scripts.
"""

from __future__ import annotations

import contextlib
import io
import json
from math import cos, exp, sin

import pytest

import gradcli
from gradcli.execution.evaluate import Tape
from gradcli.interfaces import cli
from gradcli.language.parser import parse
from gradcli.language.unparse import unparse
from gradcli.lowering import lower
from gradcli.transforms import derivatives

SCRIPT = "x**2*sin(y) + exp(-x)"
X, Y = 2.0, 3.0
VALUE = X**2 * sin(Y) + exp(-X)
GRADIENT = {"x": 2 * X * sin(Y) - exp(-X), "y": X**2 * cos(Y)}
HESSIAN = {
    "x": {"x": 2 * sin(Y) + exp(-X), "y": 2 * X * cos(Y)},
    "y": {"x": 2 * X * cos(Y), "y": -(X**2) * sin(Y)},
}
FORMULAS = {"x": "2*x*sin(y) - exp(-x)", "y": "x**2*cos(y)"}


def approximately(expected: object) -> object:
    return pytest.approx(expected, rel=1e-14)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code of a command and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main([*arguments])
    return code, out.getvalue()


def test_parse() -> None:
    script = parse(SCRIPT)
    assert unparse(script) == SCRIPT
    assert unparse(parse("(x**(2)) * sin( y )+exp(- x)")) == SCRIPT
    with pytest.raises(gradcli.GradcliError) as caught:
        parse("x**2*sin(y")
    assert caught.value.diagnostics[0].code.startswith("GC")


def test_lower_and_transform() -> None:
    program = lower(parse(SCRIPT)).program
    (output,) = program.outputs
    leaves = [program.leaves[name].node for name in ("x", "y")]
    assert Tape([output, *derivatives.grad(output, leaves)]).run({"x": X, "y": Y}) == approximately(
        [VALUE, *GRADIENT.values()]
    )


def test_value_gradient_hessian() -> None:
    at = {"x": X, "y": Y}
    assert gradcli.evaluate(SCRIPT, at=at).value == approximately(VALUE)
    assert gradcli.grad(SCRIPT, at=at).gradient == approximately(GRADIENT)
    found = gradcli.hessian(SCRIPT, at=at).hessian
    assert {name: approximately(row) for name, row in HESSIAN.items()} == found


def test_check_right() -> None:
    report = gradcli.check(SCRIPT, at={"x": X, "y": Y}, claims=FORMULAS)
    assert report.ok
    assert {check.verdict for check in report.checks} == {"PROVED"}


@pytest.mark.parametrize("wrong", ["x*cos(y)", "-x**2*cos(y)", "x**2*cos(y) + 1e-9"])
def test_check_wrong(wrong: str) -> None:
    report = gradcli.check(SCRIPT, at={"x": X, "y": Y}, claims={"y": wrong})
    assert not report.ok
    assert [check.verdict for check in report.checks if check.verdict != "PROVED"] == ["DISAGREES"]


def test_derive() -> None:
    derivation = gradcli.derive(SCRIPT)
    assert derivation.formula == FORMULAS
    assert derivation.verdict == {"x": "PROVED", "y": "PROVED"}


def test_print() -> None:
    code, text = run("grad", SCRIPT, "--at", "x=2,y=3")
    assert code == 0
    assert [line.split() for line in text.splitlines()[-2:]] == [
        ["x", "2.0", repr(GRADIENT["x"])],
        ["y", "3.0", repr(GRADIENT["y"])],
    ]
    code, text = run("grad", SCRIPT, "--at", "x=2,y=3", "--format", "json")
    assert code == 0
    assert json.loads(text)["gradient"] == GRADIENT
    assert run("check", SCRIPT, "--at", "x=2,y=3", "--claim", f"y = {FORMULAS['y']}")[0] == 0
    assert run("check", SCRIPT, "--at", "x=2,y=3", "--claim", "y = x*cos(y)")[0] == 1
