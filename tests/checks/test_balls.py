"""Enclosures hold the exact value, literals are decimals, failures are entries, untaken branches do no harm."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Entries, Failure, Tie, Unclear, Undecided, Undefined
from gradcli.execution.evaluate import evaluate
from gradcli.graph.node import Builder
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.primitives import catalogue


def enclosed(text: str, at: dict[str, Any] | None = None, **literals: bool) -> Entries:
    lowered = lower(parse(text), at=at or {})
    leaves = lowered.program.leaves
    point = {}
    for name, value in lowered.values.items():
        array = np.asarray(value.nested() if hasattr(value, "nested") else value, dtype=float)
        point[name] = (array.reshape(-1).tolist(), leaves[name].node.type.shape)
    if literals:
        return balls.read(balls.BallField(balls.Literals(**literals)), lowered.program.outputs, point)[0]
    return balls.enclose(lowered.program.outputs, point)[0]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("sin(x)*exp(x) + sqrt(x)", {"x": 0.7}),
        ("A @ w", {"A": [[1.0, 2.0], [3.0, 4.0]], "w": [0.5, -1.0]}),
        ("softmax(x)", {"x": [1.0, 2.0, 0.3]}),
        ("cumsum(x[::-1])", {"x": [1.0, 2.0, 0.3]}),
        ("logdet(X)", {"X": [[3.0, 1.0], [-2.0, 0.5]]}),
        ("concatenate([x, 2*x])", {"x": [1.0, 2.0]}),
        ("gamma(x) + erf(x) + digamma(x)", {"x": 1.3}),
    ],
)
def test_float_values_lie_near_the_enclosures(text: str, at: dict[str, Any]) -> None:
    found = enclosed(text, at)
    floats = np.asarray(evaluate(lower(parse(text), at=at).program, at)[0]).reshape(-1)
    for ball, value in zip(found.flat, floats, strict=True):
        assert ball.rel_accuracy_bits() >= 56
        assert abs(float(ball) - value) <= 1e-13 * max(1.0, abs(value))


def test_literals_are_decimals_and_leaves_are_doubles() -> None:
    assert enclosed("3*0.1 - 0.3").flat[0].contains(0)
    assert enclosed("x - 0.1", {"x": 0.1}).flat[0] != 0
    assert enclosed("x - 0.1", {"x": 0.1}, decimal=True).flat[0].contains(0)


def test_a_literal_of_many_digits_is_a_rounded_constant() -> None:
    text = "log(2.718281828459045) - 1"
    assert not enclosed(text).flat[0].contains(0)
    assert enclosed(text, wide=True).flat[0].contains(0)
    assert not enclosed("log(2.7182818) - 1", wide=True).flat[0].contains(0)


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("2.718281828459045", Fraction(1, 10**15)),
        ("0.1", None),
        ("6.02214076e23", None),
        ("9007199254740992", None),
        ("1.2345678901234567e30", Fraction(10**14)),
    ],
)
def test_last_unit(value: str, unit: Fraction | None) -> None:
    assert balls.last_unit(Fraction(value)) == unit


@pytest.mark.parametrize(
    ("text", "x", "reason"),
    [
        ("log(x)", -2.0, "log is undefined at -2"),
        ("sqrt(x)", -1.0, "sqrt is undefined at -1"),
        ("1/(x - 2)", 2.0, "div is undefined at 1, 0"),
        ("x**(1/3)", -8.0, "negative"),
    ],
)
def test_undefined_entries(text: str, x: float, reason: str) -> None:
    found = enclosed(text, {"x": x}).flat[0]
    assert isinstance(found, Failure)
    assert found.kind == "undefined"
    assert reason in found.reason


def test_only_the_entry_that_fails_fails() -> None:
    found = enclosed("log(x)", {"x": [1.0, -1.0, 2.0]}).flat
    assert [isinstance(entry, Failure) for entry in found] == [False, True, False]


@pytest.mark.parametrize(("x", "value"), [(-1.0, 0), (0.0, 0)])
def test_an_untaken_branch_never_fails(x: float, value: int) -> None:
    assert enclosed("where(x > 0, log(x), 0)", {"x": x}).flat[0] == value


def test_infinite_leaves_are_no_numbers() -> None:
    assert isinstance(enclosed("x*0", {"x": float("inf")}).flat[0], Failure)


@pytest.mark.parametrize("kind", [Undefined, Undecided, Tie, Unclear])
def test_a_failure_passes_through_arithmetic_and_ends_every_decision(kind: type[Failure]) -> None:
    one, field = kind("a reason"), balls.BallField()
    assert all(found is one for found in (one + arb(1), arb(1) - one, one * one, arb(1) / one, -one, field.sqrt(one)))
    assert field.total([arb(1), one]) is one
    for decide in (field.sign, field.index, field.vanishes):
        with pytest.raises(kind, match="a reason"):
            decide(one)


def test_a_failure_names_the_node_whose_rule_raised_it_and_keeps_it() -> None:
    builder = Builder(catalogue())
    x = builder.leaf("x")
    first, second = builder.call("log", x), builder.call("exp", x)
    fresh = Tie()
    named = fresh.at(first)
    assert (type(named), named.node, named.reason) == (Tie, first, "log")
    assert named.at(second) is named and fresh.node is None


def test_a_hidden_zero_becomes_tiny() -> None:
    found = enclosed("exp(log(x)) - x", {"x": 3.0})
    assert ball_numbers.is_tiny(found.flat[0])


def test_signs() -> None:
    with ball_numbers.precision(128):
        assert [ball_numbers.sign(arb(x)) for x in (-2, 0, 3)] == [-1, 0, 1]
        with pytest.raises(Undecided):
            ball_numbers.sign(arb(0, 1))


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e3, 1e3, allow_subnormal=False), st.floats(-1e3, 1e3, allow_subnormal=False))
def test_arithmetic_encloses_the_exact_rational(x: float, y: float) -> None:
    found = enclosed("(x + y)*(x - y) + 0.1", {"x": x, "y": y}).flat[0]
    exact = Fraction(x) ** 2 - Fraction(y) ** 2 + Fraction(1, 10)
    with ball_numbers.precision(4096):
        assert found.contains(balls.BallField().number(exact))
