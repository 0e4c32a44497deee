"""Why a result is not finite: the first operation to blame, in plain words, and nothing that is innocent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import Span
from gradcli.calculator.notes.undefined_values import diagnose, explain, is_finite
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import reachable
from gradcli.graph.primitive import elementwise, structured
from gradcli.transforms.derivatives import grad
from tests.support.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node

STRANGE = elementwise("strange", "", impl=lambda xp, x: xp.exp(x), partials=lambda x, *, out: (out,))


def said(nodes: Any, at: dict[str, Any], forward: Any = None) -> list[tuple[str, str]]:
    tape = Tape(nodes)
    found = explain(tape, at, tape.run(at), forward=forward)
    return [(problem.code, problem.message) for problem in found]


def test_finite_results_cost_nothing() -> None:
    g = Graph()
    x = g.leaf("x")
    assert explain(Tape(g.exp(x)), {}, [math.e]) == []  # the point is not even looked at
    assert is_finite(1.0)
    assert is_finite(np.ones(2))
    assert not is_finite(math.nan)
    assert not is_finite(np.array([1.0, math.inf]))
    assert not is_finite(complex(0, math.inf))


# What is computed of the numbers x and y and the vector v, where, and what is said of it.
SAID: list[tuple[Callable[[Graph, Node, Node, Node], Node], dict[str, Any], str, str]] = [
    (lambda g, x, y, v: g.log(x) + 1, {"x": -2.0}, "GC401", "log is undefined at -2: its argument must lie in (0, inf)"),
    (lambda g, x, y, v: g.sqrt(x - 3), {"x": 0.5}, "GC401", "sqrt is undefined at -2.5: its argument must lie in [0, inf)"),
    (lambda g, x, y, v: 1 / x, {"x": 0.0}, "GC402", "1/0 is infinite"),
    (lambda g, x, y, v: x / x, {"x": 0.0}, "GC403", "0/0 is undefined"),
    (lambda g, x, y, v: g.exp(x), {"x": 800.0}, "GC402", "exp(800) is infinite"),
    (lambda g, x, y, v: x / y, {"x": -2.0, "y": 0.0}, "GC402", "(-2)/0 is infinite"),
    (lambda g, x, y, v: g.sinh(x) * y, {"x": -1e4, "y": 1.0}, "GC402", "sinh(-10000) is infinite"),
    (lambda g, x, y, v: x**3, {"x": -1e200}, "GC402", "(-1e+200)**3 is infinite"),
    (lambda g, x, y, v: STRANGE(x), {"x": 1e4}, "GC402", "strange at 10000 is infinite"),
    (lambda g, x, y, v: x * 2, {"x": math.nan}, "GC404", "the input x is nan"),
    (lambda g, x, y, v: x + g.builder.constant("inf"), {"x": 1.0}, "GC404", "the constant is inf"),
    (lambda g, x, y, v: g.sum(v), {"v": [1.0, -math.inf, 2.0]}, "GC404", "the input v holds -inf"),
    # a branch that is not taken is innocent
    (lambda g, x, y, v: g.where(x > 0, g.log(x), 1) + 1 / y, {"x": -1.0, "y": 0.0}, "GC402", "1/0 is infinite"),
    (lambda g, x, y, v: g.sum(g.where(v > 0, 1 / v, g.sqrt(v))), {"v": [2.0, -3.0, 1.0]}, "GC401",
     "sqrt is undefined at -3: its argument must lie in [0, inf)"),
    # an entry of an array, and of a batch
    (lambda g, x, y, v: g.log(v), {"v": [1.0, -4.0, -5.0]}, "GC401", "log is undefined at -4: its argument must lie in (0, inf)"),
    (lambda g, x, y, v: g.log(x), {"x": [[1.0, 2.0], [3.0, -7.0]]}, "GC401",
     "log is undefined at -7: its argument must lie in (0, inf)"),
    (lambda g, x, y, v: g.spread(x, 3) / v, {"v": [1.0, 0.0, 2.0], "x": [0.0, 5.0]}, "GC403", "0/0 is undefined"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "at", "code", "message"), SAID, ids=[row[3] for row in SAID])
def test_what_is_said(make: Callable[..., Node], at: dict[str, Any], code: str, message: str) -> None:
    g = Graph()
    assert said(make(g, g.leaf("x"), g.leaf("y"), g.leaf("v", 3)), at) == [(code, message)]


def test_a_derivative_is_not_blamed_beside_its_value() -> None:
    g = Graph()
    x = g.leaf("x")
    g.builder.span = span = Span(1, 1, 1, 7)
    output = g.log(x)
    g.builder.span = None
    nodes = [output, *grad(output, [x])]
    tape = Tape(nodes)
    found = explain(tape, {"x": 0.0}, tape.run({"x": 0.0}), forward=set(reachable([output])))
    assert [(problem.code, problem.span) for problem in found] == [("GC401", span)]


def test_only_the_root_is_blamed_and_only_once() -> None:
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y")
    low = g.log(x)
    assert len(said(g.sin(low) * low + g.exp(low * y), {"x": -1.0, "y": 2.0})) == 1
    both = said(g.log(x) + g.sqrt(y), {"x": -1.0, "y": -1.0})
    assert [code for code, _ in both] == ["GC401", "GC401"]
    assert said(g.exp(-g.log(x) * -1), {"x": 0.0}) == []  # exp(-inf) is 0 again


def test_a_derivative_that_is_not_finite_says_so() -> None:
    g = Graph()
    x = g.leaf("x")
    output = g.sqrt(x)
    gradient = grad(output, [x])[0]
    forward = set(reachable([output]))
    assert said([output, gradient], {"x": 0.0}, forward) == [("GC405", "a derivative is infinite here: 1/0")]


def test_matrices() -> None:
    g = Graph()
    A = g.leaf("A", 2, 2)
    inverse = structured(
        "inverse", "", impl=lambda xp, x, *, ranks: xp.inv(x), pushforward=[lambda t, x, *, out: -(out @ t @ out)]
    )
    code, message = said(g.sum(inverse(A)), {"A": np.ones((2, 2))})[0]
    assert code == "GC403"
    assert message == "inverse has no finite value for this operand"


def test_complex_values() -> None:
    g = Graph()
    x = g.leaf("x")
    tape = Tape(1 / x)
    result = tape.run({"x": 0j}, dtype="complex128")
    found = explain(tape, {"x": 0j}, result, dtype="complex128")
    assert found[0].code in ("GC402", "GC403")


def test_diagnose_finds_the_outputs_itself_and_keeps_spans() -> None:
    g = Graph()
    x = g.leaf("x")
    span: Any = (2, 1, 2, 7)
    g.builder.span = span
    tape = Tape(g.log(x) * 2)
    found = diagnose(tape.nodes, tape.run_all({"x": -1.0}))
    assert [problem.span for problem in found] == [span]
    assert found[0].severity == "warning"


def test_many_causes_are_not_all_told() -> None:
    g = Graph()
    x = g.leaf("x")
    total = x
    for index in range(60):
        total = total + g.log(x - index)
    assert len(said(total, {"x": -1.0})) == pytest.approx(20)
