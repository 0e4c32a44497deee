"""Every entry of a large gradient is looked at: right ones are confirmed, one wrong entry among thousands is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.calculator import questions
from gradcli.checks.decide import finite_differences
from gradcli.checks.decide.floats import moving
from gradcli.graph.domain import Closed
from gradcli.structure import patterns, ripples
from gradcli.structure.flows import Flow, of_pairs
from gradcli.structure.perturbed import perturbed
from gradcli.structure.terms import terms_of

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
MORE = (
    "sum(softmax(x)**2)", "sum(sort(x)*arange(len(x)))", "max(x)*sum(x)", "var(x[3:])*x[0]",
    "sum(tanh(reshape(sin(arange(len(x))), (20, -1)) @ reshape(x, (-1, 20)))) + det(reshape(x[:9], (3, 3)))",
    "sum(pad(x, 2)[1:]*x[0])", "sum(take(x, [3, 3, 5])**3)*x[5]", "log(x @ x)*sum(where(x > x[0], x, 0.5*x))",
    "sum(cumprod(x)[:30]) + trace(expm(reshape(x[:4], (2, 2))))", "floor(4*x[0]) + sum(round(x)*x)",
)  # fmt: skip


def prepared(script: str, size: int, seed: int = 1) -> tuple[Any, Any, dict[str, np.ndarray], np.ndarray]:
    values = {"x": np.random.default_rng(seed).uniform(0.2, 1.5, size)}
    lowered = questions.prepare(script, values)
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    question = questions.gradient_question(lowered)
    gradient = np.asarray(question.run(values, "auto", "float64")[1])
    return output, target, values, gradient


def judged(script: str, size: int, change: Any = None, seed: int = 1) -> finite_differences.Numerical:
    output, target, values, gradient = prepared(script, size, seed)
    claimed = gradient.copy()
    if change is not None:
        claimed = change(claimed)
    f, x = moving(output, [target], values)
    return finite_differences.judge(
        f, x, claimed, None, seed, None, finite_differences.apart(output, target, values), True
    )


@pytest.mark.parametrize("script", [*STRUCTURED, *COUPLED])
def test_structure_is_used_and_every_entry_confirmed(script: str) -> None:
    output, target, values, _ = prepared(script, 400)
    assert finite_differences.apart(output, target, values) is not None
    found = judged(script, 400)
    assert (found.state, found.covered) == ("agrees", "400 entries and 3 random directions")
    assert found.bound < 1e-6


@pytest.mark.parametrize("script", COUPLED)
def test_what_is_too_dense_is_looked_at_entry_by_entry(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "MOST_PAIRS", 10)
    output, target, values, _ = prepared(script, 300)
    assert finite_differences.apart(output, target, values) is None
    found = judged(script, 300)
    assert (found.state, found.covered) == ("agrees", "300 entries and 3 random directions")
    wrong = judged(script, 300, lambda gradient: np.where(np.arange(300) == 7, 1.001, 1.0) * gradient)
    assert (wrong.state, wrong.entry) == ("differs", 7)


@pytest.mark.parametrize("script", [*STRUCTURED[:6], *COUPLED])
@pytest.mark.parametrize("entry", [0, 217, 299])
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


def test_entries_that_do_not_move_are_not_counted() -> None:
    """relu of what is negative: the gradient is 0, and differences say nothing of it."""
    found = judged("sum(relu(x - 0.6)**2)", 300)
    assert found.state == "agrees"
    dead = int((prepared("sum(relu(x - 0.6)**2)", 300)[2]["x"] < 0.6).sum())
    assert found.covered.startswith(f"{300 - dead} of 300 entries")
    wrong = judged("sum(relu(x - 0.6)**2)", 300, lambda gradient: np.where(gradient == 0, 1e-3, gradient))
    assert wrong.state == "differs"


@pytest.mark.parametrize("domain", [None, Closed(0.0, 2.0)])
def test_steps_are_those_of_the_ladders(domain: Any) -> None:
    x = np.concatenate([[0.0, 1e-9, 1.0, -0.75, 1.9999, 1e6], np.random.default_rng(1).uniform(-2, 2, 200)])
    x = x if domain is None else np.clip(np.abs(x), 0.0, 2.0)
    first = finite_differences.first_steps(x, domain)
    for i, step in enumerate(first):
        unit = np.eye(1, x.size, i)[0]
        assert step == finite_differences.first_step(x, unit, finite_differences.room_of(domain, float(x[i])))
        if step:
            ours = finite_differences.odd_steps(x, first / 64)[i]
            assert ours == finite_differences.off_the_grid(np.array([step / 64]), x, unit)[0]


@pytest.mark.parametrize("script", [*STRUCTURED, *COUPLED, *MORE])
def test_entries_moved_together_give_what_each_gives_alone(script: str) -> None:
    output, target, values, _ = prepared(script, 400)
    f, x = moving(output, [target], values)
    moved = finite_differences.apart(output, target, values)
    assert moved is not None
    steps = np.stack([0.01 * x, -0.02 * x])
    differing = moved(steps) - moved(np.zeros_like(steps))
    alone = finite_differences.one_at_a_time(f, x)(steps) - f(x[None])
    assert np.allclose(differing, alone, rtol=0, atol=1e-12 * max(1.0, np.abs(f(x[None]))[0]))


def test_jacobians_by_pairs() -> None:
    output, target, values, _ = prepared("sum(x)", 40)
    lowered = questions.prepare("sin(x[1:]*x[:-1])", values)
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    found = perturbed(output, [target], values)
    assert found is not None
    h = 1e-6
    above, below = found.pairs(np.full((1, 40), h))[0], found.pairs(np.full((1, 40), -h))[0]
    jacobian = np.zeros((39, 40))
    jacobian[found.rows, found.columns] = (above - below) / (2 * h)
    x = values["x"]
    want = np.zeros((39, 40))
    for i in range(39):
        want[i, i + 1] = x[i] * np.cos(x[i] * x[i + 1])
        want[i, i] = x[i + 1] * np.cos(x[i] * x[i + 1])
    assert np.allclose(jacobian, want, atol=1e-9)


def test_what_may_be_evaluated_for_every_entry_is_counted() -> None:
    assert finite_differences.affordable(prepared("log(sum(exp(x)))", 4000)[0], 4000)
    assert not finite_differences.affordable(prepared("log(sum(exp(x)))", 40_000)[0], 40_000)
    assert not finite_differences.affordable(prepared("sum(tanh(outer(x, x) @ outer(x, x)))", 500)[0], 500)


def test_terms_add_up() -> None:
    from gradcli.execution.evaluate import evaluate

    for script in STRUCTURED:
        output, _, values, _ = prepared(script, 40)
        terms = terms_of(output)
        parts = evaluate([node for node, _ in terms], values)
        total = sum(weight * float(np.sum(part)) for (_, weight), part in zip(terms, parts, strict=True))
        gap = float(evaluate([output], values)[0]) - total  # type: ignore[arg-type]
        assert abs(gap - (5 if "+ 5" in script else 0)) < 1e-12 * max(1.0, abs(total))


def test_a_pattern_that_lacks_a_pair_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk that forgets a pair confirms a gradient that forgets it too; real directions do not."""
    right = patterns.Walk.through
    script = "sum(sin(x[1:]*x[:-1]))"
    output, target, values, gradient = prepared(script, 100)
    x = values["x"]

    def wrong(walk: Any, node: Any, flows: list[Any]) -> Flow | None:
        flow = right(walk, node, flows)
        if flow is None or node.primitive.name != "sin":
            return flow
        rows, columns = flow.row_of_each(), flow.columns
        kept = ~((rows == 50) & (columns == 50))  # x[50] seems not to reach sin(x[51]*x[50])
        return of_pairs(rows[kept], columns[kept], flow.rows)

    monkeypatch.setattr(patterns.Walk, "through", wrong)
    claimed = gradient.copy()
    claimed[50] -= x[51] * np.cos(x[50] * x[51])
    f, here = moving(output, [target], values)
    moved = finite_differences.apart(output, target, values)
    assert moved is not None
    assert finite_differences.by_rungs(moved, here, claimed, None, 0.0).entries[50]
    assert finite_differences.judge(f, here, claimed, None, 1, None, moved).state == "differs"
