"""A branch that is not taken never touches the result, in value or any derivative; products keep their NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gradcli.graph.node import reachable
from gradcli.transforms.derivatives import grad, jvp, nth
from tests.graphs import Graph, difference, value, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node


def test_table_of_branches_not_taken() -> None:
    """Value of the gradient and the second derivative, by both modes."""
    table: list[tuple[Callable[[Graph, Node], Node], float, float, float]] = [
        (lambda g, x: g.where(x > 0, g.sqrt(x), 0), -1.0, 0.0, 0.0),
        (lambda g, x: g.where(x > 0, g.log(x), 0), 0.0, 0.0, 0.0),
        (lambda g, x: g.where(x > 0, g.exp(g.log(g.sqrt(x))), 0), -1.0, 0.0, 0.0),
        (lambda g, x: g.where(x > 0, g.where(x > 1, g.log(x), g.sqrt(x)), x * x), -1.0, -2.0, 2.0),
        (lambda g, x: g.where(x > 0, g.log(g.where(x > -2, x, x * x)), x * x), -1.0, -2.0, 2.0),
        (lambda g, x: g.where(x > 0, g.sqrt(x), 0) + g.sqrt(x + 2), -1.0, 0.5, -0.25),
        (lambda g, x: x**2, 0.0, 0.0, 2.0),
        (lambda g, x: g.pow(x, 2.0), 0.0, 0.0, 2.0),
    ]
    for formula, point, first, second in table:
        g = Graph()
        x = g.leaf("x")
        output = formula(g, x)
        once = grad(output, [x])[0]
        twice = grad(once, [x])[0]
        found = values([once, twice, *nth(output, x, 2), jvp([once], [x], [g.builder.constant(1)])[0]], {"x": point})
        assert found == [first, second, first, second, second]


def test_a_matrix_product_in_a_branch_not_taken() -> None:
    g = Graph()
    x, v = g.leaf("x"), g.leaf("v", 3)
    column = g.spread(x, 3) * v
    product = g.sum(g.reshape(g.sqrt(column), shape=(1, 3)) @ g.reshape(g.log(column), shape=(3, 1)))
    output = g.where(x > 0, product, x * x)
    at = {"x": -1.0, "v": np.array([1.0, 2.0, 3.0])}
    once, wide = grad(output, [x, v])
    found = values([once, grad(once, [x])[0], wide], at)
    assert found[:2] == [-2.0, 2.0]
    assert (found[2] == 0).all()
    inside = {**at, "x": 2.0}
    np.testing.assert_allclose(value(once, inside), difference(output, inside, "x"), rtol=1e-8)


def test_products_outside_a_branch_keep_their_nan() -> None:
    """A zero cotangent is never taken as a sign that a branch was not taken."""
    for formula in (
        lambda g, x: g.sqrt(x) ** 2,
        lambda g, x: g.exp(g.log(x)),
        lambda g, x: g.sqrt(x * x),
        lambda g, x: x * g.log(x),
    ):
        g = Graph()
        x = g.leaf("x")
        assert np.isnan(value(grad(formula(g, x), [x])[0], {"x": 0.0}))


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
