"""Long loops where people look at them: trace, graph and why."""

from __future__ import annotations

import json
import math

import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.calculations import Trace
from gradcli.interfaces.cli import main
from gradcli.lowering.iteration import loops

LOGISTIC = """a = 0.7
x0 = 0.1
x = x0
for i in range(50):
    x = x + 0.05*a*x*(1 - x/3)
x**2
"""


@pytest.fixture(autouse=True)
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of 50 iterations are as long as those that become nodes."""
    monkeypatch.setattr(loops, "NODE_FROM", {math.inf: 0})


def written_out(monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.setattr(loops, "NODE_FROM", {math.inf: 10**9})
    try:
        return calculator.trace(LOGISTIC)
    finally:
        monkeypatch.setattr(loops, "NODE_FROM", {math.inf: 0})


@pytest.mark.parametrize("iteration", [1, 2, 23, 49, 50])
def test_an_iteration_that_is_shown_has_the_values_and_cotangents_of_the_loop_written_out(
    monkeypatch: pytest.MonkeyPatch, iteration: int
) -> None:
    shown, whole = calculator.trace(LOGISTIC, iteration=iteration), written_out(monkeypatch)
    assert len(shown.forward) < len(whole.forward) / 5
    states = [step for step in whole.forward if step.primitive == "add" and step.span and step.span.line == 5]
    (state,) = [
        step
        for step in shown.forward
        if step.primitive == "add" and step.iteration == iteration and step.value == states[iteration - 1].value
    ]
    sent = {step.index: step.cotangent for step in shown.backward}
    known = {step.index: step.cotangent for step in whole.backward}
    assert sent[state.index] == pytest.approx(known[states[iteration - 1].index], rel=1e-12)
    assert shown.value == whole.value
    assert shown.gradient == pytest.approx(whole.gradient, rel=1e-12)


def test_the_iterations_between_are_one_step() -> None:
    between = [step for step in calculator.trace(LOGISTIC, iteration=23).forward if step.primitive == "last"]
    assert [step.params["iterations"] for step in between] == [21, 26]


def test_an_iteration_that_no_loop_has_is_refused() -> None:
    for script, iteration in ((LOGISTIC, 51), ("x = 2\nx**2", 1)):
        with pytest.raises(GradcliError) as refused:
            calculator.trace(script, iteration=iteration)
        assert [one.code for one in refused.value.diagnostics] == ["GC728"]


def test_the_command_shows_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", LOGISTIC, "--iteration", "7"]) == 0
    told = capsys.readouterr().out
    assert "last(iterations=5)" in told
    assert "add one by --iteration" in told
    assert main(["trace", LOGISTIC, "--iteration", "7", "--format", "json"]) == 0
    steps = json.loads(capsys.readouterr().out)["forward"]
    assert {step["iteration"] for step in steps if "iteration" in step} == {1, 7, 50}
    assert [step["params"]["iterations"] for step in steps if step["primitive"] == "last"] == [5, 42]


def test_a_graph_has_a_box_for_the_loop_that_says_what_an_iteration_does(capsys: pytest.CaptureFixture[str]) -> None:
    (loop,) = [one for one in calculator.graph(LOGISTIC).vertices if one.iterations]
    assert (loop.iterations, loop.label) == (49, "x")
    assert loop.body.startswith("x = x + (0.05*a)*x*(1 - x/3)")
    for form in ("json", "dot", "mermaid", "svg", "html"):
        assert main(["graph", LOGISTIC, "--format", form]) == 0
        assert "49" in capsys.readouterr().out


@pytest.mark.parametrize("most", [0, 20_000])
def test_why_names_the_iteration_in_which_a_value_stops_being_finite(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    from gradcli.calculator.traces import shown_iterations

    monkeypatch.setattr(shown_iterations, "MOST_STEPS", most)
    script = "a = 1.0\nx = 1.0\nfor i in range(60):\n    x = sqrt(x) - 0.01*a*i\nx"
    found = calculator.why(script).findings
    assert found
    assert any("iteration" in one.message and "line 4" in one.message for one in found)


def test_why_names_the_iteration_around_an_inner_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcli.calculator.traces import shown_iterations

    monkeypatch.setattr(shown_iterations, "MOST_STEPS", 0)
    script = "a = 1.5\nx = a\nfor t in range(40):\n    y = x\n    for j in range(35):\n        y = y + 0.01*sqrt(x + 40 - j - 0.2*t)\n    x = 0.1*y/(1 + y)\nx"
    (found,) = calculator.why(script).findings
    assert "line 6, iteration 32: `sqrt(" in found.message


def test_the_text_of_a_body_with_many_shared_parts_stays_short() -> None:
    inner = "    for j in range(14): y = y + 0.01*y*log(3 - y)\n"  # written out in an iteration of the outer loop
    drawn = calculator.graph("a = 1.5\nx = a\nfor t in range(500):\n    y = x\n" + inner + "    x = y - 0.3*x\nx")
    (loop,) = [one for one in drawn.vertices if one.iterations]
    assert len(loop.body) <= 400 and "..." in loop.body
