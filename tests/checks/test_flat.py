"""Programs written as flat tables and read back: equal values, plain JSON, no surprises."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from gradcli import checks
from gradcli.execution.evaluate import evaluate
from gradcli.graph.flat import Table, flatten, restore
from gradcli.graph.node import Builder
from gradcli.language.parser import parse
from gradcli.lowering import Lowered, lower
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives

SCRIPTS = [
    ("(x*y + x)**2", {"x": 2.0, "y": 3.0}),
    ("sum(A @ w, axis=0) + 0.1", {"A": [[1.0, 2.0], [3.0, 4.0]], "w": [0.5, -1.0]}),
    ("w = [1, 2, 3]\nmean(w[::-1]*[0.1, 0.2, 1/3])", {}),
    ("leaky_relu(x, 0.3) + max([x, 2*x])", {"x": -1.5}),
    ("x in (0, 1) = 0.25\nlog(x) - log(1 - x)", {}),
    ("sum(take([x, 2*x, 3*x], [2, 0]))", {"x": 0.5}),
    ("quantity = where(x > 0, log(x), 0)\nquantity", {"x": 2.0}),
]


def lowered(text: str, at: dict[str, object]) -> Lowered:
    return lower(parse(text), at=at)


@pytest.mark.parametrize(("text", "at"), SCRIPTS)
def test_values_survive(text: str, at: dict[str, object]) -> None:
    before = lowered(text, at)
    flat = json.loads(json.dumps(flatten(before.program), allow_nan=False))
    after = restore(flat, catalogue())
    one, other = evaluate(before.program, before.values), evaluate(after, before.values)
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y)
    assert list(after.leaves) == list(before.program.leaves)
    assert [leaf.const for leaf in after.leaves.values()] == [leaf.const for leaf in before.program.leaves.values()]
    assert flatten(after) == flat


def test_gradients_and_spans_survive() -> None:
    before = lowered("sin(x)*y", {"x": 1.0, "y": 2.0})
    output = before.program.outputs[0]
    x = before.program.leaves["x"].node
    gradient = derivatives.grad(output, [x])[0]
    program = before.program.with_outputs([output, gradient])
    after = restore(flatten(program), catalogue())
    assert evaluate(after, before.values) == evaluate(program, before.values)
    assert after.outputs[0].span == output.span


def test_exact_numbers_stay_exact() -> None:
    builder = Builder(catalogue())
    third = builder.constant(Fraction(1, 3))
    long = builder.constant(3**200)
    builder.close()
    table = Table([third, long], catalogue())
    program = restore(json.loads(json.dumps(table.flat)), catalogue())
    assert [node.constant for node in program.outputs] == [Fraction(1, 3), 3**200]


def test_a_hand_written_rule_is_written_as_its_value() -> None:
    text = "def f(a): return a**2\ndef f.vjp(a, ct): return ct*a\nf(x) + 1"
    before = lowered(text, {"x": 3.0})
    after = restore(flatten(before.program), catalogue())
    assert evaluate(after, {"x": 3.0}) == [10.0]
    assert all(catalogue().get(node.primitive.name) is node.primitive for node in after.nodes() if node.args)


def test_another_version_is_refused() -> None:
    flat = flatten(lowered("x", {"x": 1.0}).program)
    with pytest.raises(ValueError, match="version"):
        restore({**flat, "version": 99}, catalogue())


def test_an_unknown_operation_is_refused() -> None:
    flat = flatten(lowered("sin(x)", {"x": 1.0}).program)
    vocabulary = {name: primitive for name, primitive in catalogue().items() if name != "sin"}
    with pytest.raises(KeyError):
        restore(flat, vocabulary)


@pytest.mark.parametrize("script", ["x*sum(randn(3))", "sum(x*rand(2, 2, seed=1))"])
def test_random_arrays_are_checked(script: str) -> None:
    report = checks.check_script(f"x = 0.3\n{script}")
    assert [check.verdict for check in report.checks] == ["PROVED"]
