"""Taylor mode: the same derivatives as forward mode repeated and as 50-digit series, from graphs that grow slowly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import questions
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import Node, reachable
from gradcli.transforms import derivatives
from gradcli.transforms.taylor import taylor
from tests.support.graph_invariants import verify
from tests.support.random_programs import make
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

NESTED = "y = x\n" + "y = sin(y)*y + x\n" * 6 + "y"
COMPOSITES = (
    "sin(x*log(x))/x", "exp(sin(x**2))/(1 + x**4)", "tanh(exp(sin(x**2)))*log(1 + x**2)", "atan(x)*sqrt(1 + x)",
    "where(x > 0, sqrt(x), x)*erf(x)", "logsumexp([x, x**2, 1])", "norm([x, 2*x, 1])", NESTED,
)  # fmt: skip


def nodes_of(script: str, at: Any = 0.7) -> tuple[Node, Node]:
    lowered = questions.prepare(script, {"x": at})
    return lowered.program.outputs[0], lowered.program.leaves["x"].node


def repeated(output: Node, target: Node, order: int) -> list[Node]:
    """Forward mode order by order, each sweep from the beginning."""
    found: list[Node] = []
    with derivatives._building(output, target) as builder:
        one = builder.constant(1, target.shape)
        for _ in range(order):
            output = derivatives.jvp([output], [target], [one])[0]
            found.append(output)
    return found


def size(nodes: list[Node]) -> int:
    return len(reachable(nodes))


# --- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        *COMPOSITES,
        "x**x",
        "lgamma(x)",
        "1/x",
        "x**7 - 3*x",
        "sinh(x)*cbrt(x)",
        "5*x",
        "abs(x)**3",
        "max([x, x**2])",
        "sum(cumsum([x, x*x, sin(x)]))",
        "[x, 1] @ [x**2, exp(x)]",
        "sigmoid(x)*softplus(x)",
        "atan2(x, 1 + x)",
        "expm1(x)*log1p(x)",
    ],
)
def test_all_orders_are_those_of_forward_mode(script: str) -> None:
    output, target = nodes_of(script)
    found = taylor(output, target, 7)
    assert found is not None
    verify(found)
    for x in (0.3, 0.7, 1.4):
        ours, theirs = (Tape(nodes).run({"x": x}) for nodes in (found, repeated(output, target, 7)))
        assert np.allclose(ours, theirs, rtol=1e-11, atol=1e-11 * max(map(abs, theirs))), (script, x)


@pytest.mark.parametrize(
    ("script", "function"),
    [
        ("sin(x*log(x))/x", lambda mp, x: mp.sin(x * mp.log(x)) / x),
        ("exp(sin(x**2))/(1 + x**4)", lambda mp, x: mp.exp(mp.sin(x**2)) / (1 + x**4)),
        ("tanh(exp(sin(x**2)))*log(1 + x**2)", lambda mp, x: mp.tanh(mp.exp(mp.sin(x**2))) * mp.log(1 + x**2)),
        ("atan(x)*sqrt(1 + x)", lambda mp, x: mp.atan(x) * mp.sqrt(1 + x)),
        ("erf(x)*lgamma(1 + x)", lambda mp, x: mp.erf(x) * mp.loggamma(1 + x)),
        ("x**x", lambda mp, x: x**x),
    ],
)
def test_eight_orders_to_fifty_digits(script: str, function: Any) -> None:
    """Against coefficients that another library finds from values alone, with 60 digits."""
    from mpmath import mp

    found = gradcli.grad(script, at={"x": 0.75}, order=8).derivatives
    assert found is not None
    with mp.workdps(60):
        series = mp.taylor(lambda x: function(mp, x), mp.mpf("0.75"), 8)
        want = [float(mp.factorial(k) * c) for k, c in enumerate(series)][1:]
    assert np.allclose(found["x"], want, rtol=2e-12, atol=0)


@all_rows("seed", range(80))
def test_random_programs(seed: int) -> None:
    program = make(seed, arrays=False)
    lowered = questions.prepare(program.text, program.values)
    output = lowered.program.outputs[0]
    for name in questions.leaf_names(lowered):
        target = lowered.program.leaves[name].node
        found = taylor(output, target, 5)
        assert found is not None
        values = {key: float(value) for key, value in program.values.items()}
        ours, theirs = (Tape(nodes).run(values) for nodes in (found, repeated(output, target, 5)))
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9 * max(map(abs, theirs))), (k, program.text)


def test_branches_that_are_not_taken_do_not_count() -> None:
    found = gradcli.grad("where(x > 0, sqrt(x), 0) + sqrt(x + 2)", at={"x": -1.0}, order=4).derivatives
    want = gradcli.grad("sqrt(x + 2)", at={"x": -1.0}, order=4).derivatives
    assert found == want


def test_what_does_not_move_is_zero() -> None:
    assert gradcli.grad("x**3 + floor(x)", at={"x": 2.5}, order=6).derivatives == {
        "x": (18.75, 15.0, 6.0, 0.0, 0.0, 0.0)
    }
    assert gradcli.grad("detach(x)*x", at={"x": 2.5}, order=3).derivatives == {"x": (2.5, 0.0, 0.0)}


def test_structured_operations_go_through_forward_mode() -> None:
    output, target = nodes_of("inv([[x, 1], [1, 3]])[0, 0]")
    assert taylor(output, target, 4) is None
    found = gradcli.grad("inv([[x, 1], [1, 3]])[0, 0]", at={"x": 2.0}, order=4).derivatives
    assert found is not None
    k = np.arange(1, 5)
    want = 3.0 * (-3.0) ** k * np.array([math.factorial(i) for i in k]) / (3 * 2 - 1.0) ** (k + 1)
    assert np.allclose(found["x"], want)


def test_scripts_use_it() -> None:
    assert gradcli.evaluate("y = exp(sin(x**2))/(1 + x**4)\ngrad(y, x, 6)", at={"x": 0.7}).value == pytest.approx(
        gradcli.grad("exp(sin(x**2))/(1 + x**4)", at={"x": 0.7}, order=6).derivatives["x"][5], rel=1e-14
    )


# --- growth ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", COMPOSITES)
def test_graphs_grow_by_a_small_power_of_the_order(script: str) -> None:
    """Twice the order takes at most six times the nodes (n to the 2.6), and never more than forward mode."""
    output, target = nodes_of(script)
    counts = {order: size(derivatives.nth(output, target, order)) for order in (1, 2, 3, 4, 6, 8, 12)}
    for order in (2, 3, 4, 6):
        assert counts[2 * order] <= 6 * counts[order], counts
    for order in (3, 4, 6):
        assert counts[order] <= size(repeated(output, target, order))


def test_forward_mode_alone_would_explode() -> None:
    output, target = nodes_of("atan(x)*sqrt(1 + x)")
    series, forward = taylor(output, target, 10), repeated(output, target, 10)
    assert series is not None
    assert 20 * size(series) < size(forward)


def test_the_smaller_one_is_chosen() -> None:
    output, target = nodes_of("lgamma(x)")
    series = taylor(output, target, 8)
    assert series is not None
    assert size(derivatives.nth(output, target, 8)) == size(repeated(output, target, 8)) < size(series)


def test_long_chains_need_no_recursion() -> None:
    output, target = nodes_of("s = x\nfor i in range(4000):\n    s = sin(s) + x\ns")
    found = derivatives.nth(output, target, 3)
    assert len(Tape(found).run({"x": 0.2})) == 3


def test_long_chains_are_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for every node of them: eight times the length is eight times the work."""
    looked: list[int] = []

    def counted(nodes: Sequence[Node], *more: Any) -> list[Node]:
        found = reachable(nodes, *more)
        looked.append(len(found))
        return found

    monkeypatch.setattr("gradcli.transforms.taylor.reachable", counted)
    work = []
    for iterations in (50, 400):
        looked.clear()
        assert taylor(*nodes_of(f"s = x\nfor i in range({iterations}):\n    s = tanh(s) + silu(x)\ns"), 4) is not None
        work.append(sum(looked))
    assert work[1] < 9 * work[0]


# --- sabotage -------------------------------------------------------------------------------------------------


def test_a_wrong_partial_shows_at_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The series knows nothing of sin but its declaration: spoil that, and all orders are wrong."""
    from gradcli.primitives.trigonometric import sin

    output, target = nodes_of("sin(x)*exp(x)")
    right = Tape(taylor(output, target, 4) or []).run({"x": 0.4})
    rule = sin.partials
    monkeypatch.setattr(sin, "partials", lambda x, *, out: (1.25 * rule(x, out=out)[0],))  # type: ignore[misc]
    wrong = Tape(taylor(output, target, 4) or []).run({"x": 0.4})
    assert all(abs(one - other) > 0.01 for one, other in zip(right, wrong, strict=True))
