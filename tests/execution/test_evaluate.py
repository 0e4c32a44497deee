"""The evaluator: exact constants, floats or arrays, IEEE where Python raises, batches, memory, long chains, errors."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import time
import tracemalloc
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape, evaluate
from gradcli.execution.namespaces import Unavailable
from gradcli.graph.arrays import ArrayData, digest_of, nearest_float
from gradcli.graph.primitive import elementwise, nondifferentiable
from gradcli.graph.program import Leaf, Program
from gradcli.graph.types import Type
from gradcli.transforms.derivatives import grad
from tests.support.graphs import Graph, value, values

if TYPE_CHECKING:
    from gradcli.graph.node import Node


def problem(action: Any) -> Any:
    with pytest.raises(GradcliError) as caught:
        action()
    return caught.value.diagnostics[0]


def data(g: Graph, array: Any, kind: str = "float") -> Node:
    return g.builder.array(digest_of(array), array, Type(kind, tuple(array.shape)))


# --- constants and data ----------------------------------------------------------------------------------------------


def test_exact_numbers_are_rounded_once() -> None:
    assert nearest_float(Fraction(1, 10)) == 0.1
    assert nearest_float(Fraction(2**54 + 3, 2)) == (2**54 + 3) / 2
    assert nearest_float(Fraction(10**400, 10**399)) == 10.0
    assert nearest_float(Fraction(10**500)) == math.inf
    assert nearest_float(Fraction(-(10**500))) == -math.inf
    assert nearest_float(Fraction(1, 10**400)) == 0.0
    assert nearest_float("pi") == math.pi
    assert math.isnan(nearest_float("nan"))


@pytest.mark.parametrize("backend", ["auto", "numpy", "jax"])
def test_constants(backend: str) -> None:
    if backend == "jax":
        pytest.importorskip("jax")
    g = Graph()
    x = g.leaf("x")
    nodes = [x * 0 + g.builder.constant(name) for name in ("pi", "e", "inf", "-inf")]
    assert values(nodes, {"x": 1.0}, backend=backend) == [math.pi, math.e, math.inf, -math.inf]
    assert math.isnan(value(x + g.builder.constant("nan"), {"x": 1.0}, backend=backend))
    assert value(x * 0.1, {"x": 1.0}, backend=backend) == 0.1
    whole = g.leaf("v", 2) + g.builder.constant(Fraction(1, 3), (2,))
    assert value(whole, {"v": [0.0, 1.0]}, backend=backend).tolist() == [1 / 3, 1 + 1 / 3]


def test_arrays_of_constants() -> None:
    g = Graph()
    x = g.leaf("x", 2)
    exact = ArrayData((2,), (Fraction(1, 3), 10**30))
    found = values([x * data(g, exact), x + data(g, np.array([1.5, 2.5]))], {"x": [1.0, 2.0]})
    assert [one.tolist() for one in found] == [[1 / 3, 2e30], [2.5, 4.5]]
    assert data(g, exact) is data(g, ArrayData((2,), (Fraction(1, 3), 10**30)))
    other = evaluate(x + data(g, exact), {"x": [0, 0]}, data={digest_of(exact): np.array([7.0, 8.0])})
    assert other[0].tolist() == [7.0, 8.0]


def test_digests_tell_content_apart() -> None:
    contents = [
        ArrayData((2,), (0, 1)),
        ArrayData((2, 1), (0, 1)),
        ArrayData((2,), (0.0, 1)),
        ArrayData((2,), (-0.0, 1)),
        ArrayData((2,), (Fraction(1, 3), 1)),
        ArrayData((1,), (12,)),
        ArrayData((2,), (1, 2)),
        ArrayData((500,), range(500)),
        ArrayData((500,), range(1, 501)),
        np.array([0.0, 1.0]),
        np.array([-0.0, 1.0]),
        np.array([[0.0, 1.0]]),
        np.array([0, 1]),
    ]
    assert len({digest_of(content) for content in contents}) == len(contents)
    assert digest_of(np.arange(3.0)) == digest_of(np.arange(3.0).copy())
    assert all(len(digest_of(content)) < 500 for content in contents)


def test_array_data_as_nested_lists() -> None:
    assert ArrayData((2, 2, 1), (1, 2, 3, 4)).nested() == [[[1], [2]], [[3], [4]]]
    assert ArrayData((), (5,)).nested() == 5
    assert ArrayData((0,), ()).nested() == []
    assert ArrayData((2, 0), ()).nested() == [[], []]
    with pytest.raises(ValueError, match="do not fill"):
        ArrayData((3,), (1, 2))


# --- Python floats and IEEE ------------------------------------------------------------------------------------------


def test_a_scalar_program_needs_no_numpy() -> None:
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from gradcli.graph.building import Builder\n"
        "from gradcli.primitives import arithmetic, movement, comparison\n"
        "from gradcli.graph.primitive import Primitive\n"
        "from gradcli.transforms.derivatives import grad\n"
        "from gradcli.execution.evaluate import evaluate\n"
        "found = [vars(m).values() for m in (arithmetic, movement, comparison)]\n"
        "b = Builder({p.name: p for ps in found for p in ps if isinstance(p, Primitive)})\n"
        "x, y = b.leaf('x'), b.leaf('y')\n"
        "f = (x*y + x)**2\n"
        "assert evaluate([f, *grad(f, [x, y])], {'x': 2, 'y': 3}) == [64.0, 64.0, 32.0]\n"
        "assert not {'numpy', 'scipy', 'hashlib', 'dataclasses', 'inspect'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-S", "-E", "-c", code], check=True, timeout=60)


def test_where_python_raises_numpy_answers() -> None:
    """The same value and the same sign as NumPy gives, without a warning."""
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y")
    table = [
        (g.log(x), 0.0, -math.inf),
        (g.log(x), -2.0, math.nan),
        (g.exp(x), 800.0, math.inf),
        (1 / x, 0.0, math.inf),
        (1 / x, -0.0, -math.inf),
        (x / x, 0.0, math.nan),
        (g.sqrt(x), -1.0, math.nan),
        (g.pow(x, 1 / 3), -8.0, math.nan),
        (x**-3, 0.0, math.inf),
        (x**7, -1e300, -math.inf),
        (g.sin(x), math.inf, math.nan),
        (g.exp(x), -math.inf, 0.0),
        (x * y, math.nan, math.nan),
        (g.cosh(x), -1e4, math.inf),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for node, point, expected in table:
            for backend in ("auto", "numpy"):
                found = value(node, {"x": point, "y": 1.0}, backend=backend)
                assert type(found) is float
                assert str(found) == str(expected), (node, point, found)


def test_the_math_backend_alone_raises() -> None:
    g = Graph()
    x = g.leaf("x")
    assert value(g.sin(x), {"x": 0.5}, backend="math") == math.sin(0.5)
    with pytest.raises(ZeroDivisionError):
        value(1 / x, {"x": 0.0}, backend="math")
    with pytest.raises(Unavailable):
        value(g.sum(g.leaf("v", 2)), {"v": [1, 2]}, backend="math")


def test_what_math_lacks_is_computed_by_numpy() -> None:
    g = Graph()
    x = g.leaf("x")
    digamma = elementwise("test_digamma", "", impl=lambda xp, x: xp.digamma(x), partials=lambda x, *, out: (x,))
    tape = Tape(g.builder.bind(digamma, (x,), {}))
    assert tape.run({"x": 1.0})[0] == pytest.approx(-0.5772156649015329)
    assert not tape.scalar
    assert tape.run({"x": 1.0})[0] == pytest.approx(-0.5772156649015329)


def test_kinds_of_numbers_that_a_leaf_takes() -> None:
    g = Graph()
    x = g.leaf("x")
    given = [
        2,
        2.0,
        True + 1,
        Fraction(2),
        np.float64(2),
        np.int64(2),
        np.array(2.0),
        np.float32(2),
        ArrayData((), (2,)),
    ]
    for number in given:
        found = value(x * x, {"x": number})
        assert type(found) is float
        assert found == 4.0
    assert value(x, {"x": 10**400}) == math.inf
    assert value(x * 1, {"x": 1 + 2j}, dtype="complex128") == 1 + 2j
    for wrong in ("2", None, [None], 1j, object()):
        assert problem(lambda wrong=wrong: value(x, {"x": wrong})).code in ("GC333", "GC202")


def test_truth_values_come_out_as_numbers() -> None:
    g = Graph()
    x, v = g.leaf("x"), g.leaf("v", 3)
    assert value(x > 0, {"x": 1.0}) == 1.0
    assert type(value(x > 0, {"x": 1.0})) is float
    found = value(v > 0, {"v": [1.0, -1.0, math.nan]})
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 0.0, 0.0]


# --- arrays and batches -----------------------------------------------------------------------------------------------


def test_operations_that_align_their_operands() -> None:
    g = Graph()
    x, y = g.leaf("x", 2), g.leaf("y", 1)
    joined = g.concat(x, y, axis=-1)
    found = value(joined, {"x": [1.0, 2.0], "y": np.array([[3.0], [4.0]])})
    assert found.tolist() == [[1, 2, 3], [1, 2, 4]]
    both = value(joined, {"x": np.ones((3, 1, 2)), "y": np.zeros((2, 1))})
    assert both.shape == (3, 2, 3)
    index = data(g, np.array([1.0, 0.0, 1.0]))
    taken = g.take_along(x, g.cast(index, kind="int"), axis=-1)
    assert value(taken, {"x": np.array([[1.0, 2.0], [3.0, 4.0]])}).tolist() == [[2, 1, 2], [4, 3, 4]]
    gradient = grad(g.sum(taken * taken), [x])[0]
    assert value(gradient, {"x": [1.0, 2.0]}).tolist() == [2.0, 8.0]


def test_positions_that_are_data_are_checked() -> None:
    g = Graph()
    span: Any = (3, 1, 3, 9)
    x = g.leaf("x", 2)
    g.builder.span = span
    for entries, words in (([0.0, 2.0], "out of range for an axis of 2"), ([0.5, 0.0], "0.5 is not a whole number")):
        taken = g.take_along(x, g.cast(data(g, np.array(entries)), kind="int"), axis=-1)
        found = problem(lambda taken=taken: value(taken, {"x": [1.0, 2.0]}))
        assert found.code == "GC406"
        assert words in found.message
        assert found.span == span


def test_values_of_the_wrong_shape() -> None:
    g = Graph()
    x, y = g.leaf("x", 2), g.leaf("y")
    found = problem(lambda: value(x * 2, {"x": [1.0, 2.0, 3.0]}))
    assert (found.code, found.message) == ("GC313", "the value of x has shape [3], the script expects [2]")
    assert problem(lambda: value(x * 2, {"x": 1.0})).code == "GC313"
    assert problem(lambda: value(x * 2, {"x": [[1.0], [2.0]]})).code == "GC313"
    ragged = problem(lambda: value(x, {"x": [[1.0, 2.0], [3.0]]}))
    assert ragged.code == "GC333"
    leads = problem(lambda: value(g.sum(x) * y, {"x": np.ones((3, 2)), "y": np.ones(4)}))
    assert leads.code == "GC332"
    assert "x has [3], y has [4]" in leads.message
    missing = problem(lambda: value(g.sum(x) * y, {}))
    assert (missing.code, missing.message, missing.help) == (
        "GC202",
        "no value for x, y",
        "give a value, e.g. --at x=1,y=1",
    )


def test_defaults_of_a_program() -> None:
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y", 2)
    leaves = {"x": Leaf("x", x, 3.0), "y": Leaf("y", y, ArrayData((2,), (1, Fraction(1, 4))))}
    program = Program(g.builder, leaves, [x * x, g.sum(y) * x])
    assert evaluate(program, {}) == [9.0, 3.75]
    assert evaluate(program, {"x": 2.0}) == [4.0, 2.5]


def test_results_are_the_callers_own() -> None:
    """No result shares memory with an input, a constant or another run; all of them can be changed."""
    g = Graph()
    x = g.leaf("x", 3)
    table = np.arange(3.0)
    doubled = x * 2
    outputs = [
        x,
        g.reshape(x, shape=(3, 1)),
        g.spread(g.sum(x), 2, 2),
        data(g, table),
        g.builder.constant(1, (3,)),
        doubled,
        doubled,
        g.reshape(doubled, shape=(1, 3)),
    ]
    tape = Tape(outputs)
    given = np.array([1.0, 2.0, 3.0])
    first = tape.run({"x": given})
    for found in first:
        found[...] = -1.0
    assert given.tolist() == [1.0, 2.0, 3.0]
    assert table.tolist() == [0.0, 1.0, 2.0]
    second = tape.run({"x": given})
    assert [float(one.sum()) for one in second] == [6.0, 6.0, 24.0, 3.0, 3.0, 12.0, 12.0, 12.0]
    for position, found in enumerate(second):
        found[...] = -1.0 - position
    assert [float(one.max()) for one in second] == [-1.0 - position for position in range(8)]


def test_intermediates_are_freed() -> None:
    g = Graph()
    x = g.leaf("x", 1_000_000)
    node = x
    for _ in range(30):
        node = g.sin(node) + x
    tape = Tape(g.sum(node))
    at = {"x": np.ones(1_000_000)}
    tracemalloc.start()
    tape.run(at)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 8_000_000


def test_other_widths() -> None:
    g = Graph()
    x = g.leaf("x", 2)
    node = g.sin(x) * 0.1 + g.where(x > 0, x, 1)
    assert value(node, {"x": [1.0, -1.0]}, dtype="float32").dtype == np.float32
    found = value(g.sqrt(x), {"x": [-1.0, 4.0]}, dtype="complex128")
    assert found.tolist() == [1j, 2]
    assert problem(lambda: value(data(g, np.array([1j])), {})).code == "GC333"


@pytest.mark.parametrize("backend", ["jax", "cupy"])
def test_other_backends_give_the_values_of_numpy(backend: str) -> None:
    pytest.importorskip(backend)
    g = Graph()
    x, A = g.leaf("x", 3), g.leaf("A", 3, 3)
    column = g.reshape(g.tanh(x), shape=(3, 1))
    part = g.slice(x, start=(2,), step=(-2,), size=(2,))
    output = g.sum(A @ column) * g.sum(g.exp(g.concat(part, x, axis=-1))) + g.sum(g.where(x > 0, g.log(x), 0))
    nodes = [output, *grad(output, [x, A])]
    random = np.random.default_rng(5)
    at = {"x": random.normal(size=(4, 3)), "A": random.normal(size=(3, 3))}
    for found, expected in zip(values(nodes, at, backend=backend), values(nodes, at), strict=True):
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    odd = nondifferentiable("test_odd", "", impl=lambda xp, x: xp.spherical_jn(0, x), pointwise=True)
    missing = problem(lambda: value(g.builder.bind(odd, (x,), {}), at, backend=backend))
    assert (missing.code, missing.help) == ("GC714", "use --backend numpy")


# --- all values, long chains, speed ------------------------------------------------------------------------------


def test_every_value_is_there_for_a_trace() -> None:
    g = Graph()
    x = g.leaf("x")
    inner = g.log(x)
    found = Tape(inner * inner + 1).run_all({"x": 2.0})
    assert found[x] == 2.0
    assert found[inner] == math.log(2)
    assert all(type(one) is float for one in found.values())
    broken = Tape(inner * inner).run_all({"x": 0.0})
    assert broken[inner] == -math.inf
    wide = Tape(g.sum(g.leaf("v", 2) * 2)).run_all({"v": [1.0, 2.0]})
    assert sorted(np.asarray(one).shape for one in wide.values()) == [(), (2,), (2,), (2,)]


def test_small_gradients_are_fast() -> None:
    """A server answers 2,000 new small gradients a second, a known one in microseconds."""
    g = Graph()
    x, y = g.leaf("x"), g.leaf("y")
    output = (x * y + x) ** 2 + g.sin(x) * g.exp(y)
    nodes = [output, *grad(output, [x, y])]
    at = {"x": 2.0, "y": 3.0}
    gc.collect()
    best = many = math.inf
    tape = Tape(nodes)
    for _ in range(5):
        start = time.process_time()
        for _ in range(1000):
            tape.run(at)
        best = min(best, (time.process_time() - start) / 1000)
        start = time.process_time()
        for _ in range(200):
            evaluate(nodes, at)
        many = min(many, (time.process_time() - start) / 200)
    assert best / len(tape.nodes) < 1e-6
    assert many < 5e-4
