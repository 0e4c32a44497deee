"""Laws of loops: a loop is what it is written out, in its values and in its derivatives of every order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli.transforms.loop_derivatives as rules
from gradcli.execution.evaluate import evaluate
from gradcli.graph.flat import flatten, restore
from gradcli.graph.loop import Opened, close, loop_of
from gradcli.graph.node import Builder, is_reader, reachable
from gradcli.graph.program import Program
from gradcli.graph.types import FLOAT, Type
from gradcli.primitives import catalogue
from gradcli.transforms.derivatives import grad, hessian, jvp, nth
from tests.support import loop_bodies
from tests.support.graph_invariants import verify
from tests.support.loop_bodies import (
    READINGS,
    SHARP,
    SMOOTH,
    Space,
    accumulated,
    agree,
    bodies_of,
    both,
    logistic,
    nested,
    network,
    random_loop,
    rows,
    sqrt_in_some_iterations,
    three_leaves,
    written_out,
)
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.loop_bodies import Made

    Body = Callable[[int], Made]

BODIES = [*SMOOTH, *SHARP]


def named(body: Body) -> str:
    return body.__name__


# --- derivatives -----------------------------------------------------------------------------------------------


LAST_DIGITS = 1e-15  # of exp and the like: a loop of single numbers may run on Python floats, beside arrays NumPy does


@all_rows("body", BODIES, ids=named)
@all_rows("reading", ["v", "r", "f", "rr", "fr", "rf"])
def test_a_loop_is_what_it_is_written_out(body: Body, reading: str) -> None:
    loop, flat = both(body(4), reading)
    assert agree(loop, flat, LAST_DIGITS if reading == "v" else 1e-12), (loop, flat)


@pytest.mark.parametrize("body", [three_leaves, accumulated, rows, nested, sqrt_in_some_iterations], ids=named)
def test_order_three(body: Body) -> None:
    loop, flat = both(body(3), "rrr")
    assert agree(loop, flat, 1e-11), (loop, flat)


@all_rows("body", BODIES, ids=named)
@all_rows("count", [1, 2, 33])
def test_every_count_of_iterations(body: Body, count: int) -> None:
    for reading in ("v", "r", "f"):
        loop, flat = both(body(count), reading)
        assert agree(loop, flat, LAST_DIGITS if reading == "v" else 1e-11), (reading, loop, flat)


def test_no_iteration_leaves_the_carries() -> None:
    s = Space()
    x0 = s.leaf("x", 0.3)
    t = s.iteration(0)
    x = t.carry(x0)
    after = s.sin(x)
    loop = t.loop(after, outputs=[after])
    assert loop.last(0) is x0
    assert loop.iterations(after).shape == (0,)


@all_rows("body", BODIES, ids=named)
def test_derivatives_are_graphs_that_keep_the_invariants(body: Body) -> None:
    made = body(4)
    verify([*READINGS["fr"](made.output, made.leaves), *READINGS["rf"](made.output, made.leaves)])


def test_derivatives_do_not_grow_with_the_count() -> None:
    sizes = []
    for count in (50, 50_000):
        made = logistic(count)
        sizes.append(len(reachable([*READINGS["fr"](made.output, made.leaves), hessian(made.output, made.leaves[0])])))
    assert sizes[0] == sizes[1] < 100


def test_a_series_of_a_long_loop_is_not_written_out() -> None:
    made = logistic(50_000)
    assert len(reachable(nth(made.output, made.leaves[0], 3))) < 200


@pytest.mark.parametrize("body", [three_leaves, logistic], ids=named)
def test_equal_loops_are_one(body: Body) -> None:
    """All second derivatives, forward over reverse: a tangent of each loop in each direction, and no more."""
    output, leaves, _ = body(12)
    slopes = grad(output, leaves)
    second = [jvp([slope], [leaf], [output.builder.constant(1)])[0] for slope in slopes for leaf in leaves]
    assert len(bodies_of(second)) <= 2 + 2 * len(leaves)


def test_fixed_values_are_added_up_and_not_stacked() -> None:
    made = network(40)
    shapes = [node.shape for node in reachable(grad(made.output, made.leaves))]
    assert (40, 2, 2) not in shapes


# --- random programs -------------------------------------------------------------------------------------------

# answers that are NaN where the written-out ones are infinite, or the other way round: sums of infinities in another
# order; among 12,000 answers none is NaN where the other one is finite
INFINITE = {(197, "fr"), (695, "fr"), (1163, "r"), (1780, "rr"), (1780, "rf"), (1925, "rf")}


def check_random(seed: int, readings: tuple[str, ...]) -> None:
    for reading in readings:
        with np.errstate(all="ignore"):
            loop, flat = both(random_loop(seed), reading)
        if (seed, reading) not in INFINITE:
            assert agree(loop, flat, 1e-8), (seed, reading, loop, flat)


@pytest.mark.parametrize("seed", range(24))
def test_random_loops(seed: int) -> None:
    check_random(seed, ("v", "r", "f", "fr"))


@pytest.mark.deep
@pytest.mark.parametrize("start", range(0, 2000, 50))
def test_many_random_loops(start: int) -> None:
    for seed in range(start, start + 50):
        check_random(seed, ("v", "r", "f", "fr", "rr", "rf"))


# --- batches, rules by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", ["x", "a", "d"])
def test_batch_axes_pass_through(batched: str) -> None:
    made = loop_bodies.index_backwards(5)
    slopes = grad(made.output, made.leaves)
    several = [made.values[batched] * factor for factor in (1.0, -0.5, 2.0)]
    together = evaluate(slopes, {**made.values, batched: np.stack([np.asarray(value) for value in several])})
    for k, value in enumerate(several):
        alone = evaluate(slopes, {**made.values, batched: value})
        parts = [x[k] if np.ndim(x) > len(node.shape) else x for x, node in zip(together, slopes, strict=True)]
        assert agree(parts, alone, 1e-13)


def wide(count: int) -> Made:
    """Eight numbers that move each other, with a row, outputs of the iterations and a carry that does not hang on them."""
    s = Space()
    x0, d = s.leaf("x", np.linspace(-1, 1, 8)), s.leaf("d", np.linspace(0, 1, 8 * count).reshape(count, 8))
    t = s.iteration(count)
    x, k, row = t.carry(x0), t.carry(s.leaf("k", 0.5)), t.row(d)
    seen = s.sin(x * row)
    turned = s.permute(s.reshape(seen, shape=(2, 4)), axes=(-1, -2))
    after = 0.5 * x + s.reshape(turned, shape=(8,)) * s.broadcast(s.reshape(k, shape=(1,)), shape=(8,))
    loop = t.loop(after, 0.9 * k, outputs=[seen])
    return s.made(s.total(loop.last(0) * loop.last(0)) + s.total(loop.iterations(seen)))


def test_a_hessian_of_a_loop_is_that_of_its_iterations() -> None:
    output, leaves, values = wide(5)
    second = hessian(output, leaves[0])
    (flat,) = written_out([output])
    assert agree(evaluate(second, values), evaluate(hessian(flat, leaves[0]), values), 1e-12)
    verify(second)


# --- sabotage --------------------------------------------------------------------------------------------------


def broken(body: Body, readings: tuple[str, ...] = ("r",)) -> bool:
    results = [both(body(4), reading) for reading in readings]
    return not all(agree(loop, flat, 1e-9) for loop, flat in results)


def _residual_of_the_wrong_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(builder: Any, count: int, carried: Any, nexts: Any, *, rows: Any = (), **rest: Any) -> Any:
        flipped = [(leaf, builder.call("flip", stack, axis=-len(stack.shape))) for leaf, stack in rows]
        return close(builder, count, carried, nexts, rows=flipped, **rest)

    monkeypatch.setattr(rules, "close", closed)


def _carry_off_by_one_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(builder: Any, count: int, carried: Any, nexts: Any, *, rows: Any = (), **rest: Any) -> Any:
        shorter = [
            (leaf, builder.call("slice", s, start=(0,) * len(s.shape), step=(1,) * len(s.shape),
                                size=(count - 1, *s.shape[1:])))
            for leaf, s in rows
        ]  # fmt: skip
        return close(builder, count - 1, carried, nexts, rows=shorter, **rest)

    monkeypatch.setattr(rules, "close", closed)


def _no_sum_over_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(builder: Any, count: int, carried: Any, nexts: Any, **rest: Any) -> Any:
        made = []
        for (leaf, _), after in zip(carried, nexts, strict=True):
            adds = after.primitive.name == "add" and leaf in after.args
            made.append(next(arg for arg in after.args if arg is not leaf) if adds else after)
        return close(builder, count, carried, made, **rest)

    monkeypatch.setattr(rules, "close", closed)


def _mask_cleaned_at_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    pulled = rules.pulled

    def cleaned(builder: Any, *args: Any) -> Any:
        return [(arg, (rules.clean(builder, flow), None)) for arg, flow in pulled(builder, *args)]

    monkeypatch.setattr("gradcli.transforms.loop_derivatives.pulled", cleaned)


@pytest.mark.parametrize(
    ("sabotage", "body"),
    [
        (_residual_of_the_wrong_iteration, logistic),
        (_carry_off_by_one_iteration, logistic),
        (_no_sum_over_iterations, logistic),
        (_mask_cleaned_at_the_border, loop_bodies.slope_before_init),
    ],
)
def test_sabotage_breaks_a_law(
    monkeypatch: pytest.MonkeyPatch, sabotage: Callable[[pytest.MonkeyPatch], None], body: Body
) -> None:
    assert not broken(body)
    sabotage(monkeypatch)
    assert broken(body)


# --- the node --------------------------------------------------------------------------------------------------


def test_bodies_are_equal_whatever_builder_they_come_from() -> None:
    one, other = logistic(7).output, logistic(9).output
    assert one.params["body"] == other.params["body"]
    assert hash(one.params["body"]) == hash(other.params["body"])
    assert one.params["body"] != accumulated(7).output.params["body"]


def test_the_same_iteration_traced_twice_is_one_node() -> None:
    s = Space()
    x0, a = s.leaf("x", 0.3), s.leaf("a", 0.7)
    ends = []
    for _ in range(2):
        t = s.iteration(5)
        x = t.carry(x0)
        ends.append(t.loop(s.sin(x * a)).last(0))
    assert ends[0] is ends[1]


def test_what_does_not_depend_on_the_iteration_stays_outside() -> None:
    s = Space()
    x0, a = s.leaf("x", 0.3), s.leaf("a", 0.7)
    t = s.iteration(5)
    x, still = t.carry(x0), t.carry(a)
    end = t.loop(x * s.exp(s.sin(still)), still).last(0)
    names = [step.primitive.name for step in end.params["body"].steps]
    assert names == ["leaf", "leaf", "mul"]
    assert [arg.primitive.name for arg in end.args] == ["leaf", "exp"]


def test_a_carry_may_become_a_value_that_nothing_else_reads() -> None:
    s = Space()
    x0, a = s.leaf("x", 0.3), s.leaf("a", 0.7)
    t = s.iteration(3)
    t.carry(x0)
    made = s.made(t.loop(a).last(0) * 2)
    assert both(made, "r")[0] == [0.0, 2.0]


def test_a_loop_over_numbers_alone_has_an_argument() -> None:
    s = Space()
    t = s.iteration(10)
    i = t.index()
    seen = i * i
    assert evaluate([s.total(t.loop(outputs=[seen]).iterations(seen))], {}) == [285.0]


def test_opened_is_the_iteration_again() -> None:
    made = three_leaves(4)
    reader = next(node for node in reachable([made.output]) if is_reader(node))
    opened = Opened(loop_of(reader))
    again = close(made.output.builder, 4, list(zip(opened.carried, reader.args, strict=False)), opened.nexts)
    assert again.last(reader.params["carry"]) is reader


@all_rows("body", BODIES, ids=named)
def test_the_flat_form_comes_back(body: Body) -> None:
    made = body(3)
    verify(made.output)
    program = Program(made.output.builder, {}, [made.output])
    again = restore(flatten(program), catalogue())
    verify(again)
    with np.errstate(all="ignore"):
        assert agree(evaluate(again.outputs, made.values), evaluate(made.output, made.values), 0.0)


def test_types_have_to_fit() -> None:
    builder = Builder(catalogue())
    x = builder.fresh_leaf(FLOAT)
    with pytest.raises(ValueError, match="a carry f64 that starts as f64"):
        close(builder, 3, [(x, builder.leaf("v", (2,)))], [x])
    row = builder.fresh_leaf(Type("float", (2,)))
    with pytest.raises(ValueError, match="a row"):
        close(builder, 3, [], [], rows=[(row, builder.leaf("w", (4, 2)))])


def test_the_definition_is_the_iterations_one_after_the_other() -> None:
    made = logistic(3)
    (flat,) = written_out([made.output])
    assert not any(is_reader(node) for node in reachable([flat]))
