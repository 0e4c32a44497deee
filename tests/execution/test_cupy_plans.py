"""Plans for the GPU without one: every kernel is compiled by g++ and run thread by thread, and compared with NumPy.

The emulation refuses an index outside an array, threads that part ways where they must meet, and arrays of NumPy among
those of the device. NVIDIA's compiler takes every text, where it is there.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.calculator.questions import gradient_question, prepare, value_question
from gradcli.execution.cuda import emit, kernels
from gradcli.execution.cuda.device_plan import DevicePlan, device_plan, is_steady
from gradcli.execution.cuda.kernels import Kernel
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.primitive import Primitive
from gradcli.primitives import bessel, catalogue, gamma_functions, hypergeometric, integrals
from tests.benchmarks import devices
from tests.support.cases import cases
from tests.support.emulated_device import COMPILER, MACHINE, SIGNATURE, Array, Counts, emulated, units_of
from tests.support.random_programs import make
from tests.support.rows import every
from tests.support.study import study

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ to compile the kernels with")
BOUNDS = {"float64": 1e-12, "float32": 3e-4}


class Program(NamedTuple):
    """A script, and a function of a random generator that gives its point."""

    name: str
    script: str
    point: Callable[[np.random.Generator], dict[str, Any]]


def _normal(**shapes: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda random: {name: random.normal(size=shape) for name, shape in shapes.items()}


def _positive(**shapes: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda random: {name: random.uniform(0.5, 2.0, size=shape) for name, shape in shapes.items()}


GMM = """
Q = exp(q)
d = (x - m)*Q
sum(logsumexp(log(w) - sum(d**2, axis=-1)/2, axis=-1)) - sum(Q**2)/2
"""
PROGRAMS = [
    Program("rosenbrock", "sum(100*(x[1:]-x[:-1]**2)**2+(1-x[:-1])**2)", _normal(x=1003)),
    Program("rosenbrock in pieces", "sum(100*(x[1:]-x[:-1]**2)**2+(1-x[:-1])**2)", _normal(x=9001)),
    Program("logsumexp of rows", "sum(logsumexp(A, axis=-1))", _normal(A=(50, 40))),
    Program("logsumexp of columns", "sum(logsumexp(A, axis=0)**2)", _normal(A=(70, 45))),
    Program("logsumexp of all", "logsumexp(x)", _normal(x=9000)),
    Program("softmax", "sum(softmax(A@w)*B)", _normal(A=(50, 40), w=(40, 10), B=(50, 10))),
    Program("sine beside cosine", "sum(concatenate([x, sin(x[::-1]) + y*cos(x[::-1])])**2)", _normal(x=200, y=())),
    Program("positions", "sum(x[[0, 3, 3, 1]]**2*A[[1, 1], :][0, :4])", _normal(x=90, A=(3, 7))),
    Program("extremes", "sum(max(A, axis=0)*min(A, axis=0)*exp(sum(A, axis=0)/100))", _normal(A=(200, 70))),
    Program("extremes of all", "max(A)*min(A) + sum(abs(A))", _normal(A=(200, 70))),
    Program("axes around", "sum(sum(A, axis=(0, 2))**2)", _normal(A=(13, 7, 50))),
    Program("axes inside", "sum(sum(A, axis=1)**2 * B)", _normal(A=(6, 90, 5), B=(6, 5))),
    Program("long rows", "sum(sum(A**2, axis=1)**3)", _normal(A=(3, 9000))),
    Program("many columns", "sum(sum(A**2, axis=0)**3)", _normal(A=(90, 33))),
    Program("transposed", "sum(sum(A.T*B, axis=0)**2) + det(C)", _normal(A=(30, 20), B=(20, 30), C=(3, 3))),
    Program(
        "network", "sum(tanh(tanh(X@W1 + b1)@W2 + b2)**2)", _normal(X=(60, 20), W1=(20, 12), b1=12, W2=(12, 5), b2=5)
    ),
    Program(
        "mean and variance",
        "sum((A - mean(A, axis=-1, keepdims=True))**2 / (1 + var(A, axis=-1, keepdims=True)))",
        _normal(A=(30, 50)),
    ),
    Program(
        "equal rows and columns in products",
        "sum(sum(A @ B, axis=0)**2) + sum(sum(A @ B, axis=1)**2)",
        _normal(A=(40, 30), B=(30, 20)),
    ),
    Program("stencil of two axes", "sum((A[1:, 1:] + A[:-1, :-1] - A[1:, :-1]*A[:-1, 1:])**2)", _normal(A=(31, 33))),
    Program("steps of two", "sum(x[::2]**2*x[1::2]) + sum(x[::-3])", _normal(x=200)),
    Program(
        "mixture",
        GMM,
        lambda random: {
            "x": random.normal(size=(40, 1, 3)),
            "m": random.normal(size=(5, 3)),
            "q": random.normal(size=(5, 3)) / 9,
            "w": random.uniform(0.5, 2, size=5),
        },
    ),
    Program("reshaped", "sum(reshape(A, [6, 10])[1:, 2:]**3) + sum(reshape(A.T, [60])[:50]**2)", _normal(A=(4, 15))),
    Program("choices", "sum(where(A > 0, sin(A), exp(A)) * relu(A) + sign(A)*floor(A))", _normal(A=(17, 19))),
    Program("points as one array", "sum(sin(x*y)*exp(-x) + log(1 + y**2)*x)", _positive(x=5000, y=5000)),
    Program("one number", "x**3*y + sum(z)", lambda random: {"x": 1.5, "y": -2.0, "z": random.normal(size=3)}),
    Program("chain", "y = u\nfor i in range(60):\n    y = y + 0.1*sin(y)\nsum(y**2)", _normal(u=300)),
    Program("heavy, repeated", "sum(exp(sin(x)*cos(x)*tanh(x)) * A)", _normal(x=40, A=(30, 40))),
]


@pytest.fixture
def device() -> Iterator[Counts]:
    with emulated() as counts:
        yield counts


def near(found: Any, expected: Any, bound: float, what: str, least: float = 1e-300) -> None:
    """Within a bound of the largest finite entry, or of `least`; the same entries are NaN and infinite."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape, what
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), what)
    far = np.isinf(expected)
    np.testing.assert_array_equal(found[far], expected[far], what)
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=least)
    assert np.abs(found[finite] - expected[finite]).max(initial=0) <= bound * scale, what


@cache
def planned(program: Program, dtype: str) -> tuple[Tape, dict[str, Any], DevicePlan]:
    point = program.point(np.random.default_rng(5))
    question = gradient_question(prepare(program.script, point))
    plan = device_plan(question.tape, dtype)
    assert plan is not None, program.name
    return question.tape, question.values(point), plan


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program, dtype: str, device: Counts) -> None:
    MACHINE.build(units_of([planned(one, dtype)[2] for one in PROGRAMS]))  # in one go, for the first of them
    tape, values, plan = planned(program, dtype)
    found = plan.answer(values)
    assert found is not None
    for one, expected in zip(found, tape.run(values, backend="numpy", dtype=dtype), strict=True):
        near(one, expected, BOUNDS[dtype], program.name)
        assert type(one) is float or (type(one) is np.ndarray and one.dtype == dtype)
    again = plan.answer(values)
    assert again is not None
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


def all_near(given: Sequence[tuple[str, dict[str, Any]]], bound: float) -> None:
    """Value and gradient of scripts at points; their kernels are compiled in one go."""
    questions = [(script, point, gradient_question(prepare(script, point))) for script, point in given]
    plans = [device_plan(question.tape) for *_, question in questions]
    MACHINE.build(units_of(plans))
    for (script, point, question), plan in zip(questions, plans, strict=True):
        assert plan is not None, script
        values = question.values(point)
        what = f"{script} at { ({name: np.shape(value) for name, value in point.items()}) }"
        for one, expected in zip(plan.answer(values) or (), question.tape.run(values, backend="numpy"), strict=True):
            near(one, expected, bound, what)


def test_scales_of_norms(device: Counts) -> None:
    """The power of two below the largest entry comes from the distance to the next number."""
    random = np.random.default_rng(3)
    points = [random.normal(size=(40, 7)) * 10.0**power for power in (-300, -3, 0, 5, 300)]
    all_near([("sum(norm(X, axis=1))", {"X": point}) for point in points], 1e-14)


def test_lengths_of_sums(device: Counts) -> None:
    """Around the length of a warp, a block and a piece."""
    sizes = [1, 2, 31, 32, 33, 255, 257, 1023, 1024, 1025, 4095, 4096, 4097, 12289]
    random = np.random.default_rng(1)
    all_near([("sum(x**2) + max(x)*min(x)", {"x": random.normal(size=size)}) for size in sizes], 1e-14)


def test_axes_of_sums(device: Counts) -> None:
    random, given = np.random.default_rng(1), []
    for shape in ((2, 3, 4, 5), (40, 1, 3), (3, 40, 2), (1, 1), (35, 2, 36)):
        for axes in ((0,), (1,), (-1,), (0, -1), (0, 1)):
            given.append((f"sum(sum(A**2, axis={axes})**2 + max(A, axis={axes}))", {"A": random.normal(size=shape)}))
    all_near(given, 1e-13)


def test_sums_do_not_depend_on_the_number_of_blocks(device: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).normal(size=30_000)
    f = gradcli.compile("sum(x**3)", backend="cupy")
    expected = f(x=x)
    monkeypatch.setattr(kernels, "MOST_BLOCKS", 2)
    assert gradcli.compile("sum(x**3)", backend="cupy")(x=x) == expected


# --- every operation --------------------------------------------------------------------------------------------


def plans_of(name: str, dtype: str) -> Iterator[tuple[Any, dict[str, Any], Tape, DevicePlan]]:
    """The smallest and the largest case of an operation, value and gradient at one point."""
    found = sorted(cases(name), key=lambda case: sum(math.prod(leaf.shape) for leaf in case.leaves.values()))
    for case in dict.fromkeys([*found[:1], *found[-1:]]):
        it = study(case)
        tape = Tape([*it.outputs, *(it.programs["gradient"] if it.differentiable else [])])
        values = {**it.point(0), **getattr(it, "tangents", {})}
        plan = device_plan(tape, dtype)
        if plan is not None:
            yield case, values, tape, plan


@pytest.mark.parametrize("group", range(12))
def test_operations(group: int, device: Counts) -> None:
    """Values and gradients of all operations; what the device's library lacks is left to the evaluator."""
    names = sorted(catalogue())[group::12]
    made = [(name, *one) for name in names for one in plans_of(name, "float64")]
    MACHINE.build(units_of([plan for *_, plan in made]))
    compared = 0
    for name, case, values, tape, plan in made:
        try:
            found = plan.answer(values)
        except Unavailable:
            continue
        if found is None:
            continue
        plain = tape.run(values, backend="numpy")
        least = max(float(np.nanmax(np.abs(one), initial=0, where=np.isfinite(one))) for one in plain)
        for one, expected in zip(found, plain, strict=True):
            near(one, expected, 1e-11, f"{name}: {case}", 1e-3 * least + 1e-300)
        compared += 1
    assert compared > len(names) / 2


EDGES = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        3.0,
        1e-310,
        -1e-310,
        1e300,
        -1e300,
        math.inf,
        -math.inf,
        math.nan,
        710.0,
        -746.0,
    )
]
BY_GAMMA = (
    "gamma gammainc gammaincc lgamma gammaln factorial t_logpdf gamma_logpdf chi2_logpdf poisson_logpmf betaln".split()
)
# at infinities and far out the libraries differ, where they have the function at all
DIFFERENT = {
    one.name
    for room in (bessel, gamma_functions, hypergeometric, integrals)
    for one in vars(room).values()
    if isinstance(one, Primitive) and one.name not in ("j0", "j1", "i0", "i1")
}


def test_edges(device: Counts) -> None:
    """Entry-by-entry operations at zeros, subnormal and huge numbers, infinities and NaN: what NumPy gives."""
    known = [
        name for name, one in catalogue().items()
        if one.pointwise and not one.internal and not one.static and name not in {*BY_GAMMA, *DIFFERENT, "erfinv"}
    ]  # fmt: skip
    left, right = (np.array(one).reshape(-1) for one in np.meshgrid(EDGES, EDGES))
    made = []
    for given in ({"x": np.array(EDGES)}, {"x": left, "y": right}):
        for name in known:
            call = f"{name}({', '.join(given)})"
            try:
                question = value_question(prepare(call, given))
            except gradcli.GradcliError:
                continue
            plan = device_plan(question.tape)
            assert plan is not None, call
            made.append((call, given, question, plan))
    MACHINE.build(units_of([plan for *_, plan in made]))
    for call, given, question, plan in made:
        expected = question.tape.run(given, backend="numpy")[0]
        found = (plan.answer(given) or [None])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0, err_msg=call)
    assert len(made) > 50


# --- what moves, and what is left to others -----------------------------------------------------------------------


def test_data_move_once(device: Counts) -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(size=900), random.normal(size=900)
    f = gradcli.compile("sum(x**2*y)", backend="cupy")
    f.value_and_grad(x=x, y=y)
    assert (device.sent, device.fetched) == (2, 3)
    x[0] = 7.0  # an array that may be written is sent again
    assert f.value_and_grad(x=x, y=y)[1]["x"][0] == 14 * y[0]
    assert device.sent == 4
    x.flags.writeable = y.flags.writeable = False
    f(x=x, y=y), f(x=x, y=y)
    f.value_and_grad(x=x, y=y)
    before = device.sent
    f.value_and_grad(x=x, y=y)
    assert device.sent == before


def test_only_what_cannot_change_is_steady() -> None:
    x = np.ones(3)
    assert not is_steady(x)
    view = x[:]
    view.flags.writeable = False
    assert not is_steady(view), "the array that it shows may be written"
    x.flags.writeable = False
    assert is_steady(x)
    assert is_steady(x[1:])
    assert not is_steady([1.0])
    assert not is_steady(np.frombuffer(bytearray(16))), "memory of somebody else"


def test_results_stay_where_the_values_are(device: Counts) -> None:
    x = np.random.default_rng(4).normal(size=500)
    there = x.copy().view(Array)
    f = gradcli.compile("sum(sin(x)*exp(y))", backend="cupy")
    value, slopes = f.value_and_grad(x=there, y=0.5)
    assert device.sent == device.fetched == 0
    assert type(value) is type(slopes["x"]) is type(slopes["y"]) is Array
    near(slopes["x"].view(np.ndarray), np.cos(x) * np.exp(0.5), 1e-14, "slope")


def test_many_points(device: Counts) -> None:
    random = np.random.default_rng(6)
    x, y = random.uniform(0.5, 2, (2, 3001))
    script = "sin(x*y)*exp(-x) + log(1 + y**2)*x*k"
    f = gradcli.compile(script, backend="cupy")
    for given in ({"x": x, "y": y, "k": 1.5}, {"x": x[:5], "y": 0.25, "k": 2.0}):
        values, slopes = f.at_points(**given)
        expected = gradcli.compile(script).at_points(**given)
        near(values, expected[0], 1e-14, "values")
        for name, slope in slopes.items():
            near(slope, expected[1][name], 1e-14, name)
    assert device.kernels == 2, "one kernel for value and gradient, whatever the number of points"
    matrices = random.normal(size=(4, 3, 3))
    g = gradcli.compile("sum(A@A)", backend="cupy")
    near(g.at_points(A=matrices)[1]["A"], gradcli.compile("sum(A@A)").at_points(A=matrices)[1]["A"], 1e-13, "by parts")


def test_errors_are_those_of_the_evaluator(device: Counts) -> None:
    with pytest.raises(gradcli.GradcliError, match="GC406"):
        gradcli.compile("sum(take_along_axis(x, i, -1)**2)", wrt=("x",), backend="cupy")(x=[1.0, 2.0], i=[5.0, 0.0])
    with pytest.raises(gradcli.GradcliError, match="GC3"):
        gradcli.compile("sum(x*y)", backend="cupy")(x=[1.0, 2.0], y=[1.0, 2.0, 3.0])
    f = gradcli.compile("sum(x)", backend="cupy")
    assert f(x=np.zeros((0,))) == 0.0, "arrays without entries are for the evaluator"


def test_long_programs_are_cut(device: Counts) -> None:
    """No kernel grows without bound: what is long, or reads far beside itself over and over, is put into memory."""
    script = "y = u\nfor i in range(40):\n    y = y[1:] * y[:-1] + y[1:]\nsum(y)"
    program = Program("cut", script, lambda random: {"u": random.normal(size=80)})
    tape, values, plan = planned(program, "float64")
    kernels = [item for item in plan.work if isinstance(item, Kernel)]
    assert len(kernels) > 3
    assert max(len(kernel.text.splitlines()) for kernel in kernels) < 4 * 400
    for one, expected in zip(plan.answer(values) or (), tape.run(values, backend="numpy"), strict=True):
        near(one, expected, 1e-11, "cut")


@pytest.mark.parametrize("work", every(2, devices.SMALL))
def test_rows_of_the_benchmark(work: str, device: Counts) -> None:
    """What is measured where there is a GPU: values on the device, results that stay there, the numbers of NumPy."""
    given = devices.data(work, devices.SMALL[work])
    turn, told = devices.ours(work, devices.SMALL[work])
    before = device.sent, device.fetched
    found = turn()
    assert (device.sent, device.fetched) == before
    assert all(type(slope) is Array for slope in found[1].values())
    f = gradcli.compile(devices.text_of(work), wrt=devices.WRT[work])
    plain = f.at_points(**given) if work == "points" else f.value_and_grad(**given)
    for one, other in zip(told, devices.shown(work, np.asarray(plain[0]), plain[1]), strict=True):
        assert math.isclose(one, other, rel_tol=1e-11), work


def test_without_a_device_the_benchmark_says_so() -> None:
    if devices.gpu() is not None:
        pytest.skip("there is a GPU")
    assert devices.run(1, small=True) == []


def test_entries_that_meet_are_added_in_order(device: Counts) -> None:
    """No atomics: the same bits each time, and those of adding one after the other."""
    random = np.random.default_rng(8)
    xp = namespace("cupy")
    for shape, axis, size in (((5000,), -1, 7), ((4, 300, 3), -2, 11), ((2, 50), -2, 2)):
        x = random.normal(size=shape) * 10.0 ** random.integers(-8, 8, shape)
        positions = random.integers(-size, size, shape[axis])
        found = xp.put_add(xp.array(x), xp.positions(positions), axis, size)
        expected = np.zeros((*shape[: len(shape) + axis], size, *shape[len(shape) + axis + 1 :]))
        where = (slice(None),) * (len(shape) + axis) + (positions,)
        np.add.at(expected, where, x)
        np.testing.assert_array_equal(xp.fetch(found), expected)


def test_a_machine_without_a_gpu_is_told(device: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def none() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", none)
    with pytest.raises(gradcli.GradcliError, match=r"GC713.*finds no GPU"):
        gradcli.compile("sum(x)", backend="cupy")(x=np.ones(3))
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    with pytest.raises(gradcli.GradcliError, match=r"GC713.*finds no GPU"):
        gradcli.evaluate("x", at={"x": 1.0}, backend="cupy")


def test_a_result_does_not_change_with_the_next_run(device: Counts) -> None:
    f = gradcli.compile("y = u\nfor i in range(6):\n    y = y*sum(y**2)/len(y) + max(y)\nsum(y**2)", backend="cupy")
    random = np.random.default_rng(9)
    first = f.value_and_grad(u=random.normal(size=1100).view(Array))[1]["u"]
    kept = np.array(first.view(np.ndarray))
    f.value_and_grad(u=random.normal(size=1100).view(Array))
    np.testing.assert_array_equal(first.view(np.ndarray), kept)


@pytest.mark.parametrize("start", [0, *[pytest.param(start, marks=pytest.mark.deep) for start in (40, 80)]])
def test_random_programs(start: int, device: Counts) -> None:
    """Value and gradient of programs that nobody wrote."""
    made = []
    for seed in range(start, start + 40):
        program = make(seed, arrays=True)
        question = gradient_question(prepare(program.text, program.values))
        plan = device_plan(question.tape)
        assert plan is not None, seed
        made.append((seed, question.values(program.values), question, plan))
    MACHINE.build(units_of([plan for *_, plan in made]))
    for seed, values, question, plan in made:
        plain = question.tape.run(values, backend="numpy")
        least = max(float(np.nanmax(np.abs(one), initial=0, where=np.isfinite(one))) for one in plain)
        for one, expected in zip(plan.answer(values) or (), plain, strict=True):
            near(one, expected, 1e-11, f"seed {seed}", 1e-3 * least + 1e-300)


# --- texts ---------------------------------------------------------------------------------------------------------


NVCC = shutil.which("nvcc")
TARGETS = ("70", "80", "90")  # generations of GPUs; new compilers leave out the first
WORDS = {
    "const", "whole", "double", "float", "bool", "int", "long", "if", "for", "true", "false", "typedef", "return",
    "extern", "__global__", "void", "__launch_bounds__", "__restrict__", "__shared__", "__device__", "__forceinline__",
    "threadIdx", "blockIdx", "gridDim", "x", "y", "r", "d", "e", "i", "j", "k", "row", "piece", "stop", "step", "base",
    "unit", "lane", "last", "other", "C", "within_", "__syncthreads", "__shfl_down_sync", "__shfl_sync", "__longlong_as_double",
    "__int_as_float", "sincos", "count", "pragma", "unroll",
}  # fmt: skip
TOKEN = re.compile(
    r"[A-Za-z_]\w*|0x[0-9a-f]+(?:ll|u)?|(?:\d+\.?\d*(?:e[-+]?\d+)?)(?:f|ll)?|[-+*/%<>=!&|?:;,(){}\[\].\"#]|\s+"
)
OWN = re.compile(r"[aonrqst]\d+|v\d+[sc]?|gradcli_\d+(_rest)?")


@cache
def every_kernel(operations: bool = True) -> tuple[Kernel, ...]:
    """The kernels of all programs in both widths, and of all operations; equal texts once."""
    found: dict[str, Kernel] = {}
    with emulated():
        plans = [planned(program, dtype)[2] for program in PROGRAMS for dtype in ("float64", "float32")]
        plans += [plan for name in sorted(catalogue() if operations else ()) for *_, plan in plans_of(name, "float64")]
        for plan in plans:
            for kernel in plan.work:
                for one in (kernel, kernel.rest) if isinstance(kernel, Kernel) else ():
                    if one is not None:
                        found.setdefault(one.text, one)
    return tuple(found.values())


def tokens(text: str) -> set[str]:
    place, found = 0, set()
    while place < len(text):
        match = TOKEN.match(text, place)
        assert match is not None, text[place : place + 40]
        found.add(match[0].strip())
        place = match.end()
    return found - {""}


def test_the_alphabet() -> None:
    """Words of the language, functions of our table, names that we number, numbers: no name of a user's gets in."""
    functions = set(re.findall(r"[a-z_]\w*", " ".join([*emit.FORMS.values(), *emit.SPECIAL.values(), emit.FUNCTIONS])))
    names: set[str] = set()
    for kernel in every_kernel():
        names |= {one for one in tokens(kernel.text) if re.match(r"[A-Za-z_]", one)}
    strange = {one for one in names - WORDS - functions if not OWN.fullmatch(one)}
    assert not strange, strange


def test_names_of_leaves_stay_out() -> None:
    with emulated():
        question = gradient_question(prepare("sum(secret_name**2 * σ)", {"secret_name": np.ones(3), "σ": 2.0}))
        plan = device_plan(question.tape)
        assert plan is not None
        text = "".join(kernel.text for kernel in plan.work if isinstance(kernel, Kernel))
        assert "double" in text and "secret" not in text and "σ" not in text


def test_no_sum_depends_on_who_comes_first() -> None:
    for kernel in every_kernel():
        assert "atomic" not in kernel.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.1), "0.1"), (np.float32(0.1), "1.0e-01f"), (np.float64(-2), "(-2.0)"), (np.int64(-3), "(-3ll)"),
        (np.float64(np.inf), "__longlong_as_double(0x7ff0000000000000ll)"), (np.bool_(False), "false"),
        (np.float32(np.nan), "__int_as_float(0x7fc00000)"), (np.float64(5e-324), "5e-324"),
    ],
)  # fmt: skip
def test_numbers(value: Any, text: str) -> None:
    assert emit.number(value) == text


def as_one_file(found: tuple[Kernel, ...]) -> str:
    """All kernels in one file, each in a namespace of its own and under a name of its own."""
    parts = []
    for number, kernel in enumerate(found):
        text = re.sub(rf"\b{kernel.name}\(", f"kernel_{number}(", kernel.text)
        parts.append(f"namespace own_{number} {{\n{text}\n}}")
    return "\n".join(parts)


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("target", [*[pytest.param(one, marks=pytest.mark.deep) for one in TARGETS[:-1]], TARGETS[-1]])
def test_nvcc_takes_every_kernel(target: str, tmp_path: Path) -> None:
    assert NVCC is not None
    known = subprocess.run([NVCC, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout.split()
    if f"compute_{target}" not in known:
        pytest.skip(f"this nvcc does not know compute_{target}")
    source = tmp_path / "kernels.cu"
    found = every_kernel(operations=target == TARGETS[-1])
    source.write_text(as_one_file(found))
    quick = ["-Xcicc", "-O0"] if target == TARGETS[-1] else []  # all texts; those of programs alone are optimised too
    command = [
        NVCC,
        "--ptx",
        f"-arch=compute_{target}",
        *emit.OPTIONS,
        *quick,
        str(source),
        "-o",
        f"{tmp_path}/out.ptx",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    code = (tmp_path / "out.ptx").read_text()
    assert code.count(".entry") == len(found)
    assert "fma.rn" in code, "the functions of CUDA's library use it"
    assert not re.search(r"\b(atom|red)\.", code)


def test_signatures_are_read() -> None:
    found = every_kernel()
    assert len(found) > 50 and all(SIGNATURE.search(kernel.text) for kernel in found)
