"""Reverse and forward mode against each other and against differences, NaN safety, sharing, growth, depth, batches."""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.diagnostics import GradcliError
from gradcli.graph.node import reachable
from gradcli.graph.primitive import composite, structured
from gradcli.graph.verify import verify, verify_pushforwards
from gradcli.transforms.derivatives import (
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    laplacian,
    nth,
    vjp,
)
from tests.graphs import VOCABULARY, Graph, difference, value, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node

    Case = Callable[[Graph], tuple[Node, dict[str, Node], dict[str, Any]]]

RANDOM = np.random.default_rng(7)


def ladder(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x, y = g.leaf("x"), g.leaf("y")
    return g.sin(x * g.log(x)) / x + x * y**3, {"x": x, "y": y}, {"x": 1.3, "y": 0.7}


def quotient(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x, y = g.leaf("x"), g.leaf("y")
    return (x - 2 * y) / (x * x + g.exp(y)), {"x": x, "y": y}, {"x": 0.4, "y": -0.3}


def powers(g: Graph) -> tuple[Node, dict[str, Node], dict[str, Any]]:
    x, y = g.leaf("x"), g.leaf("y")
    return g.pow(x, y) + x**-2 + g.sqrt(x + y), {"x": x, "y": y}, {"x": 1.2, "y": 1.7}


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


CASES: list[Case] = [ladder, quotient, powers, mixed, moves, branches, shared]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def scalarised(g: Graph, node: Node, at: dict[str, Any], names: list[str]) -> Node:
    """A fixed generic combination of the entries of a node, so that its gradient can be taken again."""
    name = f"weights{len(names)}"
    names.append(name)
    at[name] = np.cos(1.0 + np.arange(node.type.size)).reshape(node.shape)
    return g.sum(node * g.leaf(name, *node.shape))


@cases
def test_gradients_to_third_order_are_differences_of_the_order_below(case: Case) -> None:
    g = Graph()
    output, leaves, at = case(g)
    names: list[str] = []
    for _ in range(3):
        gradients = grad(output, list(leaves.values()))
        verify([output, *gradients])
        for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
            assert gradient.shape == leaf.shape
            np.testing.assert_allclose(value(gradient, at), difference(output, at, name), rtol=2e-6, atol=2e-7)
        parts = [scalarised(g, gradient, at, names) for gradient in gradients]
        output = parts[0]
        for part in parts[1:]:
            output = output + part


@cases
def test_forward_and_reverse_agree_to_third_order(case: Case) -> None:
    g = Graph()
    output, leaves, at = case(g)
    targets = list(leaves.values())
    tangents = [g.leaf(f"d{name}", *leaf.shape) for name, leaf in leaves.items()]
    for name, leaf in leaves.items():
        at[f"d{name}"] = np.sin(1.0 + np.arange(leaf.type.size)).reshape(leaf.shape)
    forward = reverse = output
    for _ in range(3):
        forward = jvp([forward], targets, tangents)[0]
        products = [g.sum(ct * t) for ct, t in zip(grad(reverse, targets), tangents, strict=True)]
        reverse = products[0]
        for product in products[1:]:
            reverse = reverse + product
        verify([forward, reverse])
        np.testing.assert_allclose(*values([forward, reverse], at), rtol=1e-10, atol=1e-12)


@cases
def test_the_transpose_of_the_jvp_is_the_vjp(case: Case) -> None:
    """<ct, J t> = <J.T ct, t>, for the gradient as a map of the leaves."""
    g = Graph()
    scalar, leaves, at = case(g)
    targets = list(leaves.values())
    output = grad(scalar, targets[:1])[0]
    tangents = []
    for name, leaf in leaves.items():
        tangents.append(g.leaf(f"t{name}", *leaf.shape))
        at[f"t{name}"] = np.cos(np.arange(leaf.type.size)).reshape(leaf.shape)
    at["ct"] = np.sin(2.0 + np.arange(output.type.size)).reshape(output.shape)
    ct = g.leaf("ct", *output.shape)
    left = g.sum(ct * jvp([output], targets, tangents)[0])
    right = [g.sum(c * t) for c, t in zip(vjp([output], [ct], targets), tangents, strict=True)]
    found = values([left, *right], at)
    assert found[0] == pytest.approx(sum(found[1:]), rel=1e-11)


# --- NaN safety: a branch that is not taken never touches the result ------------------------------------------


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


# --- growth, sharing, depth --------------------------------------------------------------------------------------


def test_derivatives_grow_slowly() -> None:
    g = Graph()
    x = g.leaf("x")
    output = g.sin(x * g.log(x)) / x
    counts = [len(reachable([node])) for node in nth(output, x, 4)]
    assert all(count <= most for count, most in zip(counts, (14, 29, 61, 115), strict=True)), counts


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


def test_a_chain_of_100000_operations() -> None:
    g = Graph()
    x = g.leaf("x")
    node = x
    limit = sys.getrecursionlimit()
    start = time.perf_counter()
    for index in range(50_000):
        node = g.sin(node) if index % 2 else node * 0.999
        node = node + x
    gradient = grad(node, [x])[0]
    forward = jvp([node], [x], [g.builder.constant(1)])[0]
    found = values([node, gradient, forward], {"x": 0.3})
    assert found[1] == pytest.approx(found[2], rel=1e-9)
    assert found[1] == pytest.approx(float(difference(node, {"x": 0.3}, "x")), rel=1e-6)
    verify([node, gradient])
    assert sys.getrecursionlimit() == limit
    assert time.perf_counter() - start < 60
    del node, gradient, forward


# --- the operators --------------------------------------------------------------------------------------------------


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
    a, c = g.name(x * x, id="a"), g.name(x * x, id="c")
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


# --- operations of the other kinds ---------------------------------------------------------------------------

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


# --- batches ---------------------------------------------------------------------------------------------------------

LEADS: list[tuple[int, ...]] = [(), (5,), (2, 5)]


@cases
def test_batches_are_the_points_one_by_one(case: Case) -> None:
    """Every leaf unbatched or with one or two batch axes, in all combinations; value, gradient, second derivative."""
    g = Graph()
    output, leaves, at = case(g)
    gradients = grad(output, list(leaves.values()))
    second = jvp(gradients[:1], list(leaves.values())[:1], [g.leaf("v", *next(iter(leaves.values())).shape)])
    outputs = [output, *gradients, *second]
    at["v"] = np.ones(next(iter(leaves.values())).shape)
    random = np.random.default_rng(3)
    names = list(leaves)
    for combination in np.ndindex(*(len(LEADS),) * len(names)):
        leads = [LEADS[i] for i in combination]
        lead = np.broadcast_shapes(*leads)
        batch = dict(at)
        for name, own in zip(names, leads, strict=True):
            batch[name] = np.asarray(at[name]) + 0.05 * random.random(own + leaves[name].shape)
        found = [
            np.broadcast_to(made, lead + node.shape) for made, node in zip(values(outputs, batch), outputs, strict=True)
        ]
        for index in np.ndindex(*lead):
            point = dict(at)
            for name in names:
                full = np.broadcast_to(batch[name], lead + leaves[name].shape)
                point[name] = full[index]
            for whole, one in zip(found, values(outputs, point), strict=True):
                np.testing.assert_allclose(whole[index], one, rtol=1e-12, atol=1e-13)
