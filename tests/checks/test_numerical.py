"""Every entry of a large gradient is looked at: right ones are confirmed, one wrong entry among thousands is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import questions
from gradcli.checks import check_script
from gradcli.checks.decide.floats import moving
from tests.support.rows import all_rows
from tests.support.surveys import Told, surveyed

STRUCTURED = (
    "sum(exp(-x)*sin(x))", "mean(sin(x[1:]*x[:-1]))", "x @ x", "sum((x[2:] - 2*x[1:-1] + x[:-2])**4)/2 - 3*sum(tanh(x))",
    "sum(x**3) - sum(x[::2]) + x[0]*x[5]", "-x @ exp(x)/7", "sum(log(1 + x**2)) + 5",
    "sum(logsumexp(reshape(x, (-1, 4)), axis=1))", "sum(detach(x)*x)", "trace(outer(x[:40], x[:40])) + sum(x**2)",
)  # fmt: skip
COUPLED = (
    "log(sum(exp(x)))", "sum(tanh(x))**2", "norm(x)", "logsumexp(x)*x[3]", "std(x)", "sum(cumsum(x)**2)",
    "prod(1 + x/len(x))", "sum((reshape(x, (20, -1)) @ reshape(x, (-1, 20)))**2)",
    "sum(tanh(reshape(x, (20, -1)) @ reshape(sin(arange(len(x))), (-1, 20))))",
)  # fmt: skip


def prepared(script: str, size: int, seed: int = 1) -> tuple[Any, Any, dict[str, np.ndarray], np.ndarray]:
    values = {"x": np.random.default_rng(seed).uniform(0.2, 1.5, size)}
    lowered = questions.prepare(script, values)
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    question = questions.gradient_question(lowered)
    gradient = np.asarray(question.run(values, "auto", "float64")[1])
    return output, target, values, gradient


def judged(script: str, size: int, change: Any = None, seed: int = 1) -> Told:
    output, target, values, gradient = prepared(script, size, seed)
    claimed = gradient.copy()
    if change is not None:
        claimed = change(claimed)
    f, x = moving(output, target, values)
    return surveyed(f, x, claimed, seed)


@pytest.mark.parametrize("script", [*STRUCTURED, *COUPLED])
def test_every_entry_is_confirmed(script: str) -> None:
    found = judged(script, 400)
    assert (found.state, found.covered) == ("agrees", "all 400 entries in 25 groups and 3 random directions")
    assert found.bound < 1e-6


@all_rows("script", [*STRUCTURED[:6], *COUPLED])
@all_rows("entry", [0, 217, 299])
def test_one_wrong_entry_is_found(script: str, entry: int) -> None:
    def change(gradient: np.ndarray) -> np.ndarray:
        gradient[entry] *= 1.001
        return gradient

    found = judged(script, 300, change)
    assert found.state == "differs", found
    assert found.entry == entry


def test_an_entry_that_is_a_little_wrong_among_thousands() -> None:
    def change(gradient: np.ndarray) -> np.ndarray:
        gradient[3210] *= 1 + 1e-7
        return gradient

    found = judged("sum(exp(-x)*sin(x)) + sum(x[1:]*x[:-1])", 4000, change)
    assert (found.state, found.entry) == ("differs", 3210)
    assert judged("sum(exp(-x)*sin(x)) + sum(x[1:]*x[:-1])", 4000).state == "agrees"


def test_all_wrong() -> None:
    assert judged("sum(exp(x))", 500, lambda gradient: 2 * gradient).state == "differs"
    assert judged("log(sum(exp(x)))", 500, lambda gradient: -gradient).state == "differs"
    assert judged("sum(exp(x))", 500, lambda gradient: np.full_like(gradient, np.nan)).state == "differs"
    assert judged("sum(exp(x))", 500, np.zeros_like).state == "differs"


def test_entries_that_do_not_move_have_the_slope_zero() -> None:
    """relu of what is negative: the gradient is 0, and so it is to the bound that the other entries set."""
    found = judged("sum(relu(x - 0.6)**2)", 300)
    assert found.state == "agrees"
    wrong = judged("sum(relu(x - 0.6)**2)", 300, lambda gradient: np.where(gradient == 0, 1e-3, gradient))
    assert wrong.state == "differs"


SINES: dict[str, Any] = {"source": "sum(sin(x))", "at": {"x": [1.0, 2.0]}}


def test_differences_alone_agree_and_refute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.checks.decide.verdict.compare_derivative", lambda case: None)
    monkeypatch.setattr("gradcli.checks.decide.verdict.in_index_notation", lambda case: None)
    right, wrong = (check_script(**SINES, claims={"x": claim}).checks[-1] for claim in ("cos(x)", "1.01*cos(x)"))
    assert right.verdict == "AGREES" and right.evidence["points"] == 4
    assert wrong.verdict == "INCONCLUSIVE" and wrong.message.startswith("x[1]: the claim gives")
    assert wrong.evidence["wrong"] == "2 of 2 entries that were checked"


@pytest.mark.parametrize(("factor", "words"), [(1.1283791, "it agrees at the given point only"), (1.13, "df gives")])
def test_a_constant_of_few_digits_is_not_called_right_at_the_point(factor: float, words: str) -> None:
    report = gradcli.check(
        lambda x: math.erf(float(x)), lambda x: factor * math.exp(-(float(x) ** 2)), at={"x": np.array(0.5)}
    )
    assert not report.ok
    assert "it is right" not in str(report)
    assert words.removeprefix("df ") in str(report)
