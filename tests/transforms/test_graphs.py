"""The graphs that derivatives make: how they grow, what they share, how deep they go, and operations of every kind."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.graph.primitive import composite, structured
from gradcli.transforms.derivatives import grad, hessian, jacobian, jvp, nth
from tests.support.graph_invariants import verify, verify_pushforwards
from tests.support.graphs import VOCABULARY, Graph, difference, scalarised, value, values

if TYPE_CHECKING:
    pass


def test_equal_computations_are_one_node() -> None:
    g = Graph()
    x = g.leaf("x", 3)
    assert g.sin(x) is g.sin(x)
    assert x * 2 is x * 2
    assert g.leaf("x", 3) is x
    constant = g.builder.constant
    assert constant(0.5) is constant(0.5)
    assert constant(2) is constant(2.0)
    assert constant(2) is not constant(2, (3,))
    assert constant(1) is not constant(1, (), "bool")
    first, second = grad(g.sum(g.sin(x)), [x]), grad(g.sum(g.sin(x)), [x])
    assert first[0] is second[0]


def test_a_forward_program_is_not_simplified() -> None:
    g = Graph()
    x = g.leaf("x")
    for node, name in ((x * 0, "mul"), (x / x, "div"), (x - x, "sub"), (x + 0, "add"), (g.neg(g.neg(x)), "neg")):
        assert node.primitive.name == name
    third = g.builder.constant(1) / 3
    assert third.primitive.name == "div"
    assert (g.builder.constant(1) / 4).constant is not None
    tenth = g.builder.constant(0.1)
    assert (tenth + 0.2).primitive.name == "add"
    assert (-g.builder.constant(0)).primitive.name == "neg"


def test_spans_pass_to_derivatives() -> None:
    g = Graph()
    x = g.leaf("x")
    span: Any = (1, 2, 1, 5)
    g.builder.span = span
    output = g.sin(g.exp(x))
    g.builder.span = None
    gradient = grad(output, [x])[0]
    assert gradient.span == span
    assert g.builder.span is None


# --- operations of the other kinds ----------------------------------------------------------------------

inverse = structured(
    "test_inverse",
    "The inverse matrix.",
    impl=lambda xp, x, *, ranks: xp.inv(x),
    pushforward=[lambda t, x, *, out: -(out @ t @ out)],
)
blend = composite(
    "test_blend",
    "x*exp(y) + y/x, with a value of its own.",
    impl=lambda xp, x, y: x * xp.exp(y) + y / x,
    definition=lambda x, y: x * VOCABULARY["exp"](y) + y / x,
    pointwise=True,
    arity=2,
)


def test_structured_and_composite_operations_to_third_order() -> None:
    g = Graph()
    A, x = g.leaf("A", 2, 2), g.leaf("x")
    at: dict[str, Any] = {"A": np.array([[2.0, 0.3], [-0.4, 1.5]]), "x": 0.8}
    inner = g.sum(inverse(A) @ A @ inverse(A + g.spread(x, 2, 2)))
    output = blend(g.exp(inner), blend(inner, x))
    names: list[str] = []
    verify_pushforwards(output)
    for _ in range(3):
        gradients = grad(output, [A, x])
        verify([output, *gradients])
        for name, gradient in zip("Ax", gradients, strict=True):
            np.testing.assert_allclose(value(gradient, at), difference(output, at, name), rtol=1e-6, atol=1e-7)
        direction = np.cos(np.arange(4.0)).reshape(2, 2)
        at["d"] = direction
        ahead = jvp([output], [A], [g.leaf("d", 2, 2)])[0]
        assert value(ahead, at) == pytest.approx(np.sum(direction * value(gradients[0], at)), rel=1e-9)
        output = scalarised(g, gradients[0], at, names) + gradients[1]


def test_an_operand_of_a_composite_may_depend_on_another_operand() -> None:
    g = Graph()
    x = g.leaf("x")
    output = blend(x, g.exp(x) * x)
    gradient = grad(output, [x])[0]
    found = values([gradient, nth(output, x, 1)[0]], {"x": 0.4})
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] == pytest.approx(float(difference(output, {"x": 0.4}, "x")), rel=1e-8)


def test_structured_operations_in_a_branch_not_taken() -> None:
    g = Graph()
    A, x = g.leaf("A", 2, 2), g.leaf("x")
    output = g.where(x > 0, g.sum(inverse(A * g.spread(x, 2, 2))), x * x)
    at = {"A": np.array([[2.0, 0.3], [-0.4, 1.5]]), "x": 0.0}
    dA, dx = grad(output, [A, x])
    found = values([output, dA, dx, grad(dx, [x])[0]], at)
    assert found[0] == 0.0
    assert (found[1] == 0).all()
    assert found[2:] == [0.0, 2.0]


def test_a_transform_reopens_the_builder_of_a_finished_program() -> None:
    g = Graph()
    x = g.leaf("x")
    output = g.sin(x) * x
    g.builder.close()
    gradient = grad(output, [x])[0]
    assert g.builder.table is None
    again = hessian(output, x)
    assert g.builder.table is None
    assert values([gradient, again], {"x": 0.5}) == pytest.approx(
        [np.sin(0.5) + 0.5 * np.cos(0.5), 2 * np.cos(0.5) - 0.5 * np.sin(0.5)]
    )
    with pytest.raises(RuntimeError, match="closed"):
        g.cos(x)


def test_the_limit_counts_derivative_nodes() -> None:
    g = Graph()
    g.builder.limit = 60
    x = g.leaf("x")
    node = x
    for _ in range(20):
        node = g.sin(node)
    with pytest.raises(GradcliError, match="more than 60 nodes") as caught:
        grad(node, [x])
    assert caught.value.diagnostics[0].code == "GC505"
    assert not g.builder.simplifying


def test_arrays_without_entries() -> None:
    g = Graph()
    x = g.leaf("x", 3)
    none = g.slice(x, start=(0,), step=(1,), size=(0,))
    assert jacobian(none, x).shape == (0, 3)
    assert value(jacobian(none, x), {"x": np.ones(3)}).shape == (0, 3)
    assert value(g.sum(none * none), {"x": np.ones(3)}) == 0.0
    assert (value(grad(g.sum(none * none), [x])[0], {"x": np.ones(3)}) == 0).all()


def test_numbers_of_numpy_in_a_graph() -> None:
    g = Graph()
    assert g.builder.constant(np.float64(0.1)) is g.builder.constant(0.1)
    assert (g.leaf("x") * np.float64(0.5)).args[1].constant == Fraction(1, 2)
