"""Reverse and forward mode against each other and against differences, the operators built on them, branches not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.graph.node import reachable
from gradcli.transforms.derivatives import grad, hessian, hvp, jacobian, jvp, laplacian
from tests.support.graph_invariants import verify
from tests.support.graphs import Graph, difference, value, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node

    Case = Callable[[Graph], tuple[Node, dict[str, Node], dict[str, Any]]]

RANDOM = np.random.default_rng(7)


def mixed(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x = g.leaf("x", 3)
    A = g.leaf("A", 3, 3)
    column = g.reshape(x, shape=(3, 1))
    product = g.tanh(A @ column) * column
    return g.sum(product * product), {"x": x, "A": A}, {"x": RANDOM.normal(size=3), "A": RANDOM.normal(size=(3, 3))}


def moves(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x = g.leaf("x", 2, 3)
    turned = g.permute(x, axes=(-1, -2))
    part = g.slice(x, start=(1, 2), step=(1, -1), size=(1, 3))
    joined = g.concat(part, x, part, axis=-2)
    picked = g.take_static(joined, indices=(0, 3, 0, 1), axis=-2)
    return g.sum(g.exp(picked) @ turned * 0.1), {"x": x}, {"x": RANDOM.normal(size=(2, 3))}


def branches(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x = g.leaf("x", 4)
    chosen = g.where(x > 0, g.log(x) * x, g.where(x > -1, x**3, g.sin(x)))
    return g.sum(chosen * chosen), {"x": x}, {"x": np.array([0.5, -0.4, -1.7, 2.0])}


def shared(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x, s = g.leaf("x", 3), g.leaf("s")
    inner = g.exp(x * g.spread(s, 3))
    total = g.sum(inner)
    return total * g.sum(inner * x) + total**2, {"x": x, "s": s}, {"x": np.array([0.1, -0.5, 0.3]), "s": 0.8}


CASES: list[Case] = [mixed, moves, branches, shared]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


# --- the operators ---------------------------------------------------------------------------------------


def test_jacobian_is_right_from_either_side() -> None:
    g = Graph()
    x, y = g.leaf("x", 2), g.leaf("y", 4)
    A = g.leaf("A", 4, 2)
    wide = g.reshape(g.tanh(A @ g.reshape(x, shape=(2, 1))), shape=(4,))  # 4 outputs of 2 entries: forward
    tall = g.reshape(g.permute(A, axes=(-1, -2)) @ g.reshape(g.sin(y), shape=(4, 1)), shape=(2,))  # reverse
    at = {"x": RANDOM.normal(size=2), "y": RANDOM.normal(size=4), "A": RANDOM.normal(size=(4, 2))}
    for output, target, name, shape in (
        (wide, x, "x", (4, 2)),
        (tall, y, "y", (2, 4)),
        (wide, A, "A", (4, 4, 2)),
        (g.sum(wide), x, "x", (2,)),
        (x * 2, x, "x", (2, 2)),
    ):
        made = jacobian(output, target)
        verify([made])
        assert made.shape == shape
        np.testing.assert_allclose(value(made, at), difference(output, at, name), rtol=1e-8, atol=1e-10)


def test_jacobian_of_scalars_and_of_what_does_not_depend() -> None:
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y", 3)
    assert value(jacobian(x**3, x), {"x": 2.0}) == 12.0
    assert jacobian(x * x, y).shape == (3,)
    assert (value(jacobian(g.spread(x, 2) * 1, y), {"x": 1.0, "y": np.zeros(3)}) == np.zeros((2, 3))).all()


@cases
def test_hessian_is_symmetric_and_a_difference_of_the_gradient(case: Case) -> None:
    g = Graph()
    output, leaves, at = case(g)
    for one, first in leaves.items():
        gradient = grad(output, [first])[0]
        for other, second in leaves.items():
            block = hessian(output, first, second)
            assert block.shape == first.shape + second.shape
            found = np.asarray(value(block, at))
            np.testing.assert_allclose(found, difference(gradient, at, other), rtol=2e-6, atol=1e-7)
            if one == other:
                size = first.type.size
                square = found.reshape(size, size)
                np.testing.assert_allclose(square, square.T, rtol=1e-9, atol=1e-11)


@cases
def test_laplacian_is_the_trace_and_hvp_the_product_of_the_hessian(case: Case) -> None:
    g = Graph()
    output, leaves, at = case(g)
    for name, leaf in leaves.items():
        direction = g.leaf(f"v{name}", *leaf.shape)
        at[f"v{name}"] = np.cos(np.arange(leaf.type.size)).reshape(leaf.shape)
        whole, trace, product = values(
            [hessian(output, leaf), laplacian(output, leaf), hvp(output, leaf, direction)], at
        )
        size = leaf.type.size
        square = np.asarray(whole).reshape(size, size)
        np.testing.assert_allclose(trace, np.trace(square), rtol=1e-10)
        expected = square @ np.asarray(at[f"v{name}"]).reshape(-1)
        np.testing.assert_allclose(np.asarray(product).reshape(-1), expected, rtol=1e-9, atol=1e-11)


def test_what_is_not_reached_has_zeros_in_its_shape() -> None:
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y", 2)
    gradient = grad(x * x, [x, y])[1]
    assert gradient.constant == 0
    assert gradient.shape == (2,)
    assert hessian(x, x).constant == 0
    assert laplacian(x, y).constant == 0
    detached = g.detach(x * x) * x
    assert values(grad(detached, [x]), {"x": 3.0}) == [9.0]


def test_a_named_value_is_a_variable_of_its_own() -> None:
    g = Graph()
    x = g.leaf("x")
    a, c = g.named(x * x, id="a"), g.named(x * x, id="c")
    y = a + 3 * c
    assert values([*grad(y, [a]), *grad(y, [c]), *grad(y, [x])], {"x": 2.0}) == [1.0, 3.0, 16.0]


def test_gradient_in_an_inner_node_and_through_it() -> None:
    g = Graph()
    x = g.leaf("x")
    inner = g.exp(x)
    y = inner * inner * x
    found = values(grad(y, [inner, x]), {"x": 0.5})
    e = np.exp(0.5)
    assert found == pytest.approx([2 * e * 0.5, 2 * e * e * 0.5 + e * e])


# --- branches ------------------------------------------------------------------------------------------------------


def test_random_programs_with_nested_branches_have_no_wrong_gradient() -> None:
    """Where forward mode is finite, reverse is too, and both are what differences say."""
    random = np.random.default_rng(11)
    compared = 0
    for _ in range(150):
        g = Graph()
        x, y = g.leaf("x"), g.leaf("y")
        pool = [x, y, x + y]
        for _ in range(12):
            a, b, c = (pool[random.integers(len(pool))] for _ in range(3))
            kind = random.integers(8)
            step = random.uniform(-1, 1)
            if kind == 0:
                made = g.sqrt(a)
            elif kind == 1:
                made = g.log(a)
            elif kind == 2:
                made = a * b
            elif kind == 3:
                made = g.sin(a)
            elif kind == 4:
                made = a / (b * b + 1)
            else:
                made = g.where(c > round(step, 2), a, b)
            pool.append(made)
        output = pool[-1] + pool[-2]
        forward = [jvp([output], [leaf], [g.builder.constant(1)])[0] for leaf in (x, y)]
        reverse = grad(output, [x, y])
        at = {"x": float(random.uniform(-2, 2)), "y": float(random.uniform(-2, 2))}
        found = values([*forward, *reverse], at)
        for name, ahead, back in zip("xy", found[:2], found[2:], strict=True):
            if np.isfinite(ahead):
                assert back == pytest.approx(ahead, rel=1e-9, abs=1e-11)
                slope = difference(output, at, name, 1e-5)
                if np.isfinite(slope) and abs(slope - difference(output, at, name, 2e-5)) < 1e-6:
                    assert ahead == pytest.approx(slope, rel=1e-4, abs=1e-5)
                    compared += 1
    assert compared > 60


def test_a_program_without_branches_pays_nothing_for_them() -> None:
    g = Graph()
    x = g.leaf("x")
    gradient = grad(g.exp(g.log(g.sqrt(x)) * x), [x])[0]
    names = {node.primitive.name for node in reachable([gradient])}
    assert names.isdisjoint({"where", "and", "not", "cast", "not_equal"})
