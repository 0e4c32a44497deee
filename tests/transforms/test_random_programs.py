"""Random smooth programs: reverse = forward, both = differences and 80 digits; and shapes as NumPy has them.

The first 1,000 seeds run always, 100,000 with `pytest -m deep`. A failure names its seed: `make(seed).text` is the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.transforms import derivatives
from tests.support import numpy_reading, reference
from tests.support.graph_invariants import verify
from tests.support.random_programs import built, make
from tests.support.reference_arrays import CALLS

SEEDS = 400
BLOCK = 100
EXACT_EVERY = 25


def check(seed: int) -> None:
    """All that must hold of the program of a seed."""
    program = make(seed)
    random = np.random.default_rng([8, seed])
    ways = {name: np.round(random.uniform(-1, 1, v.shape) * 1024) / 1024 for name, v in program.values.items()}
    output, leaves = built(program)
    values = program.values
    targets = list(leaves.values())
    nodes = [output, *derivatives.grad(output, targets)]
    with building(output.builder, reachable([output, *targets])) as builder:
        tangents = [builder.fresh_leaf(target.type) for target in targets]
        along = derivatives.jvp([output], targets, tangents)[0]
    given_tangents = {t.params["name"]: ways[name] for t, name in zip(tangents, values, strict=True)}
    value, *gradient = Tape(nodes).run(values)
    forward = Tape(along).run({**values, **given_tangents})[0]

    parts = [np.asarray(g) * ways[name] for g, name in zip(gradient, values, strict=True)]
    size = max(1.0, *(float(np.abs(part).max()) for part in parts))
    backward = sum(float(part.sum()) for part in parts)
    assert abs(backward - forward) <= 1e-12 * size * 10, f"reverse {backward}, forward {forward}"

    slope, bound = difference(output, values, ways)
    assert abs(forward - slope) <= bound + 1e-12 * size, f"forward {forward}, differences {slope} +- {bound}"
    decided = bound <= 1e-5 * max(1.0, abs(slope))  # not where the value swings within the smallest step
    if seed % EXACT_EVERY == 0 or not decided:
        verify(nodes)
        exactly(program, value, forward, ways, size)


def difference(output: Any, values: Any, ways: Any) -> tuple[float, float]:
    """The slope along a direction by 5-point differences: of a ladder of steps the one that agrees best."""
    steps = 2.0 ** -np.arange(4, 20)
    by = (steps[:, None] * np.array([-2.0, -1.0, 1.0, 2.0])).reshape(-1)
    moved = {n: v + by.reshape((-1,) + (1,) * v.ndim) * ways[n] for n, v in values.items()}
    found = np.broadcast_to(Tape(output).run(moved, backend="numpy")[0], by.shape).reshape(-1, 4)
    slopes = (found[:, 0] - 8 * found[:, 1] + 8 * found[:, 2] - found[:, 3]) / (12 * steps)
    rounding = 32 * np.finfo(float).eps * np.abs(found).max() / steps
    away = np.abs(slopes[1:] - slopes[:-1]) + rounding[1:]
    best = int(np.argmin(away))
    return float(slopes[1:][best]), 3 * float(away[best])


def exactly(program: Any, value: float, forward: float, ways: Any, size: float) -> None:
    """Value and slope to 80 digits, read from the text."""

    def at(by: Any) -> Any:
        point = reference.moved(program.values, [ways], by)
        return numpy_reading.read(program.text, point, CALLS, reference.number)

    exact = float(at([reference.mp.zero]))
    assert abs(value - exact) <= 1e-12 * max(1.0, abs(exact)), f"value {value}, exactly {exact}"
    slope = float(reference.along(at, 1))
    assert abs(forward - slope) <= 1e-11 * size, f"slope {forward}, exactly {slope}"


def run(seeds: range) -> None:
    for seed in seeds:
        try:
            check(seed)
        except Exception as problem:
            problem.add_note(f"seed {seed}:\n{make(seed).text}\nat {make(seed).values_list()}")
            raise


@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_random_programs(start: int) -> None:
    """A block of seeds."""
    run(range(start, start + BLOCK))


@pytest.mark.deep
@pytest.mark.parametrize("start", range(SEEDS, 100_000, 1_000))
def test_many_random_programs(start: int) -> None:
    """All other seeds up to 100,000."""
    run(range(start, start + 1_000))


def test_higher_orders_of_random_scalars() -> None:
    """Second and third derivatives of one scalar: n times forward = reverse, then forward = 80 digits."""
    for seed in range(40):
        program = make(10_000 + seed, size=5, arrays=False)
        name, at = next(iter(program.values.items()))
        output, leaves = built(program)
        target = leaves[name]
        orders = derivatives.nth(output, target, 3)
        second = derivatives.jacobian(derivatives.grad(output, [target])[0], target)
        first, twice, thrice, hess = Tape([*orders, second]).run(program.values)
        assert abs(twice - hess) <= 1e-11 * max(1.0, abs(twice)), program.text

        def value(t: Any, program: Any = program, name: str = name, at: Any = at) -> Any:
            point = {**{n: reference.exact(v) for n, v in program.values.items()}, name: reference.exact(at + 0.0)}
            point[name] = np.asarray(reference.mp.mpf(float(at)) + t, dtype=object)
            found = numpy_reading.read(program.text, point, CALLS, reference.number)
            return np.asarray(found, dtype=object)[()]

        for order, found in ((1, first), (2, twice), (3, thrice)):
            exact = float(reference.mp.diff(value, 0, order, h=reference.STEP))
            assert abs(found - exact) <= 1e-9 * max(1.0, abs(exact)), f"order {order}\n{program.text}\n{found} {exact}"


# --- shapes and broadcasting, as NumPy has them -----------------------------------------------------------------

SIZES = st.sampled_from([1, 2, 3])
SHAPES = st.lists(SIZES, max_size=3).map(tuple)
AXES = st.integers(-3, 2)


@st.composite
def expressions(draw: Any, depth: int = 3) -> str:
    """The text of an expression over a, b, c; many of them do not fit together, which both readers must see."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(["a", "b", "c", "2", "0.5"]))
    x = draw(expressions(depth - 1))
    kind = draw(st.integers(0, 9))
    if kind < 4:
        y = draw(expressions(depth - 1))
        op = draw(st.sampled_from(["+", "-", "*", "/", "@", ">"]))
        return f"({x} {op} {y})" if op != "/" else f"({x}/(2 + cos({y})))"
    if kind == 4:
        name = draw(st.sampled_from(["sum", "mean", "max", "min", "prod", "var", "any", "all", "logsumexp", "median"]))
        axis = draw(st.one_of(st.none(), AXES.map(str), st.tuples(AXES, AXES).map(str)))
        keep = draw(st.sampled_from(["", ", keepdims=True"]))
        return f"{name}({x}{'' if axis is None else f', axis={axis}'}{keep})"
    if kind == 5:
        items = draw(st.lists(st.sampled_from(
            ["0", "-1", ":", "::-1", "1:", ":2", "None", "::2", "[0, 0]", "[1, 0, -1]", "5", "2"]), min_size=1,
            max_size=3))  # fmt: skip
        return f"({x})[{', '.join(items)}]"
    if kind == 6:
        return draw(st.sampled_from([
            f"({x}).T", f"flatten({x})", f"squeeze({x})", f"sort({x})", f"cumsum({x}, axis=-1)", f"flip({x})",
            f"expand_dims({x}, 0)", f"expand_dims({x}, -1)", f"abs({x})", f"sin({x})", f"softmax({x})",
            f"roll({x}, 1)", f"roll({x}, 1, axis=0)", f"tile({x}, 2)", f"repeat({x}, 2, axis=-1)", f"cumsum({x})",
            f"argmax({x}, axis=0)", f"argsort(flatten({x}))", f"norm({x})", f"len({x})", f"broadcast_to({x}, (2, 3))",
            f"swapaxes({x}, 0, -1)", f"reshape({x}, -1)", f"reshape({x}, (3, -1))", f"trace({x})", f"tril({x})",
            f"diag({x})", f"pad({x}, 1)",
        ]))  # fmt: skip
    y = draw(expressions(depth - 1))
    return draw(st.sampled_from([
        f"concatenate(({x}, {y}))", f"concatenate(({x}, {y}), axis=-1)", f"stack(({x}, {y}))",
        f"stack(({x}, {y}), axis=-1)", f"where({x} > 0, {x}, {y})", f"maximum({x}, {y})", f"[{x}, {y}]",
        f"outer({x}, {y})", f"dot({x}, {y})", f"inner({x}, {y})", f"kron({x}, {y})", f"hypot({x}, {y})",
    ]))  # fmt: skip


NUMPY_ERRORS = (ValueError, IndexError, TypeError, np.exceptions.AxisError, np.linalg.LinAlgError)

# Where the language is kinder or stricter than NumPy on purpose, by a part of the message.
KINDER = ("array of dimension 0", "duplicate value in 'axis'")  # a number takes the axes of a reduction, or any sort
STRICTER = ("tril needs a matrix", "out of range for a scalar")  # NumPy makes a matrix of equal rows of a vector


@settings(max_examples=600, deadline=None, derandomize=True)
@given(text=expressions(), a=SHAPES, b=SHAPES, c=SHAPES)
def test_shapes_as_numpy_has_them(text: str, a: Any, b: Any, c: Any) -> None:
    """The same text by NumPy and by us: the same shape, kind and numbers, or an error from both."""
    random = np.random.default_rng(1)
    point = {name: random.uniform(-2, 2, shape) for name, shape in zip("abc", (a, b, c), strict=True)}
    point = {name: value for name, value in point.items() if name in text}
    compare(text, point)


def compare(text: str, point: dict[str, np.ndarray]) -> None:
    try:
        with np.errstate(all="ignore"):
            expected = numpy_reading.read(text, point)
    except NUMPY_ERRORS as refused:
        try:
            found = calculator.evaluate(text, at=point).value
        except GradcliError:
            return
        assert any(part in str(refused) for part in KINDER), f"NumPy refuses {text}: {refused}; we give {found}"
        return
    try:
        found = calculator.evaluate(text, at=point).value
    except GradcliError as refused:
        assert any(part in str(refused) for part in STRICTER), f"{text}: {refused}; NumPy gives {expected}"
        return
    assert np.shape(found) == np.shape(expected), f"{text}: {np.shape(found)}, NumPy {np.shape(expected)}"
    assert np.allclose(found, np.asarray(expected, float), rtol=1e-12, atol=1e-12, equal_nan=True), text
