"""Numbers at many points, by plans and in blocks: the evaluator's numbers, whatever the blocks and threads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.repeated import blocks
from gradcli.calculator.repeated.blocks import PointPlans
from gradcli.execution.compiler import emit_numba, emit_numpy, schedule, thread_pool
from gradcli.execution.compiler import workspace as run
from tests.support.random_programs import make

COUNT = 257


def answered(script: str, points: Any, shared: tuple[str, ...] = ()) -> Any:
    value, slopes = gradcli.compile(script).at_points(**points, shared=shared)
    return [value, *slopes.values()]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(30))
def test_blocks_make_no_difference(seed: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make(70_000 + seed, size=8)
    random = np.random.default_rng(seed)
    points = {
        name: np.asarray(value)[None] + random.uniform(-0.01, 0.01, (COUNT, *np.shape(value)))
        for name, value in program.values.items()
    }
    whole = answered(program.text, points)
    monkeypatch.setattr(blocks, "ALONE", 16)
    monkeypatch.setattr(blocks, "SHARED", 16)
    monkeypatch.setattr(blocks, "FEWEST", 1)
    monkeypatch.setattr(thread_pool, "processors", lambda: threads)
    library = any(word in program.text for word in ("@", "inv", "det", "solve", "expm"))
    for one, other in zip(answered(program.text, points), whole, strict=True):
        if library:  # libraries may choose another order of sums for another count
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
        else:
            assert np.array_equal(one, other, equal_nan=True), program.text


def test_the_whole_is_used_for_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(blocks, "rooms", lambda *args: asked.append(args))
    answered("x*y", {"x": np.ones(100), "y": np.ones(100)})
    assert not asked


def test_what_does_not_depend_on_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    x = np.arange(40.0)
    value, slopes = gradcli.compile("x + k**2", wrt=("x", "k")).at_points(x=x, k=3.0)
    assert np.array_equal(value, x + 9)
    assert np.array_equal(slopes["x"], np.ones(40)) and np.array_equal(slopes["k"], np.full(40, 6.0))
    shared = gradcli.compile("sum(W @ v)").at_points(W=np.ones((2, 3)), v=np.ones((40, 3)), shared=("W",))
    assert shared[0].shape == (40,) and shared[1]["W"].shape == (40, 2, 3)


def test_an_error_in_a_block_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    monkeypatch.setattr(blocks, "SHARED", 4)
    monkeypatch.setattr(blocks, "FEWEST", 1)
    places = np.zeros((64, 1))
    places[50] = 7
    with pytest.raises(gradcli.GradcliError) as refused:
        gradcli.compile("sum(take(x, p))", wrt=("x",)).at_points(x=np.ones((64, 3)), p=places)
    assert refused.value.diagnostics[0].code == "GC406"


def test_single_precision_stays_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE", 4)
    x = np.linspace(0.5, 2.0, 40)
    value, slopes = gradcli.compile("sin(x)*0.1", dtype="float32").at_points(x=x)
    whole = gradcli.compile("sin(x)*0.1", dtype="float32").at_points(x=x[:7])
    assert value.dtype == whole[0].dtype
    assert np.array_equal(value[:7], whole[0]) and np.array_equal(slopes["x"][:7], whole[1]["x"])


@pytest.mark.parametrize(("told", "threads"), [("1", 1), ("3", 3), ("99", thread_pool.MOST_THREADS)])
def test_threads_are_told_by_the_environment(told: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADCLI_THREADS", told)
    assert thread_pool.processors() == threads


@pytest.mark.parametrize("told", ["", "0", "many", "-2"])
def test_what_is_no_number_of_threads_is_not_heard(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLI_THREADS", raising=False)
    own = thread_pool.processors()
    monkeypatch.setenv("GRADCLI_THREADS", told)
    assert thread_pool.processors() == own


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Unix")
def test_a_child_process_has_threads_of_its_own() -> None:
    code = (
        "import os, signal, numpy as np, gradcli\nf = gradcli.compile('x*x + 1')\nx = np.linspace(0, 1, 2_000_000)\n"
        "f.at_points(x=x)\nchild = os.fork()\n"
        "if child == 0:\n    signal.alarm(60)\n    f.at_points(x=x)\n    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    environment = {**os.environ, "GRADCLI_FAST": "0"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ran.stdout.strip() == "7"


def test_results_in_the_callers_arrays() -> None:
    f = gradcli.compile("sin(x)*y")
    x, y = np.linspace(0, 1, 1000), np.linspace(1, 2, 1000)
    plain = f.at_points(x=x, y=y)
    room = np.empty(1000), {"x": np.empty(1000), "y": np.empty(1000)}
    filled = f.at_points(x=x, y=y, out=room)
    assert filled[0] is room[0] and np.array_equal(room[0], plain[0]) and np.array_equal(room[1]["y"], plain[1]["y"])
    over = x.copy()  # a result over its own input
    f.at_points(x=over, y=y, out=(np.empty(1000), {"x": over, "y": np.empty(1000)}))
    assert np.array_equal(over, plain[1]["x"])
    wide = np.empty((1000, 3))
    f.at_points(x=x, y=y, out=(wide[:, 0], {"x": wide[:, 1], "y": wide[:, 2]}))
    assert np.array_equal(wide[:, 1], plain[1]["x"])
    single = np.empty(1000, np.float32)
    f.at_points(x=x, y=y, out=(single, {"x": np.empty(1000), "y": np.empty(1000)}))
    assert np.array_equal(single, plain[0].astype(np.float32))


def test_points_do_not_know_of_each_other() -> None:
    """The same bits for a point alone, in a short array and in a long one, sine and cosine included."""
    f = gradcli.compile("sin(x*y)*exp(-x) + log(1 + y**2)*x")
    random = np.random.default_rng(4)
    x, y = random.normal(size=50_000), random.normal(size=50_000)
    x[40_000], x[40_001], x[40_002], x[40_003] = np.inf, np.nan, 1e9, -1e6
    value, slopes = f.at_points(x=x, y=y)
    for first, last in ((0, 1), (7, 9), (39_990, 40_010), (49_999, 50_000)):
        part, part_slopes = f.at_points(x=x[first:last], y=y[first:last])
        assert part.tobytes() == value[first:last].tobytes()
        assert all(part_slopes[name].tobytes() == slopes[name][first:last].tobytes() for name in "xy")


# --- random programs at points -------------------------------------------------------------------------------------

ONE = (
    "exp log sin cos tan tanh sqrt arctan arcsin sinh cosh erf log1p expm1 abs sign floor softplus sigmoid relu "
    "silu gelu exp2 log2 log10 cbrt arcsinh reciprocal square ceil round"
).split()
TWO = ["maximum({}, {})", "minimum({}, {})", "arctan2({}, {})", "hypot({}, {})", "logaddexp({}, {})"]
POWERS = ["2", "3", "(-1)", "0.5", "(-2)", "4", "k"]
SPECIAL = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308, 1e-300, 1e17, -1e6, 1.0, -1.0, 0.5),
)


class PointWriter:
    """Random scripts of scalar leaves x, y, z and a number k."""

    leaves = ("x", "y", "z", "k")

    def __init__(self, seed: int, ones: Any = ONE, twos: Any = TWO, powers: Any = POWERS) -> None:
        self.random = np.random.default_rng(seed)
        self.ones, self.twos, self.powers = ones, twos, powers

    def pick(self, choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def term(self, depth: int) -> str:
        """An expression."""
        if not depth or self.random.random() < 0.12:
            return str(self.pick([*self.leaves, *self.leaves, "0.1", "3", "(-2)", "0.5"]))
        kind = self.random.integers(8)
        below = depth - 1
        if kind < 3:
            return f"({self.term(below)} {self.pick('+-*/')} {self.term(below)})"
        if kind < 5:
            return f"{self.pick(self.ones)}({self.term(below)})"
        if kind == 5:
            return str(self.pick(self.twos)).format(self.term(below), self.term(below))
        if kind == 6:
            test = f"{self.term(below)} {self.pick(['<', '>', '<=', '>=', '==', '!='])} {self.term(below)}"
            return f"where({test}, {self.term(below)}, {self.term(below)})"
        return f"({self.term(below)})**{self.pick(self.powers)}"


def columns(random: Any, count: int, shape: tuple[int, ...] = ()) -> Any:
    """Numbers of all sizes, every seventh a special one."""
    found = random.normal(size=(count, *shape)) * 10.0 ** random.integers(-3, 3, (count, *shape))
    odd = random.random((count, *shape)) < 1 / 7
    found[odd] = random.choice(SPECIAL, int(odd.sum()))
    return found


class NoPlans(PointPlans):
    def planned(self, *args: Any) -> None:
        return None


def attack(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a plan was attacked, and held."""
    random = np.random.default_rng(seed)
    count = int(random.choice([1, 2, 7, 8, 9, 63, 64, 65, 130]))
    monkeypatch.setattr(schedule, "ENTRIES", int(random.choice([8, 16, 64])))
    monkeypatch.setattr(schedule, "MOST_ENTRIES", 64)
    monkeypatch.setattr(run, "WORTH_A_THREAD", 0)
    script = PointWriter(seed).term(int(random.integers(2, 6)))
    points = {name: columns(random, count) for name in "xyz"}
    points["k"] = float(columns(random, 1)[0])
    options: Any = {"dtype": "float32" if seed % 4 == 0 else "float64", "relax": seed % 3 == 0}
    given = {name: value for name, value in points.items() if name in script.replace("exp", "").replace("max", "")}
    try:
        f, g = gradcli.compile(script, **options), gradcli.compile(script, **options)
        g._point_plans = NoPlans("auto", options["dtype"])
        right, others = g.at_points(**given)
    except gradcli.GradcliError as refused:
        with pytest.raises(gradcli.GradcliError) as again:
            f.at_points(**given)
        assert again.value.diagnostics[0].code == refused.diagnostics[0].code, script
        return False
    value, slopes = f.at_points(**given)
    (plan,) = f._point_plans.kept.values()
    for one, other in zip([value, *slopes.values()], [right, *others.values()], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, script
        same = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
        if not same.all():
            places = np.flatnonzero(~same)
            at = {name: np.broadcast_to(value, count)[places[0]] for name, value in points.items()}
            raise AssertionError(f"{script} {options} at {at}: {one[places[0]]!r}, not {other[places[0]]!r}")
    return plan is not None


@pytest.fixture
def plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own powers in the place of those that may differ from them in the last bits."""
    monkeypatch.setattr(emit_numpy, "_is_whole", lambda exponent: False)
    monkeypatch.setattr(emit_numba, "WORK", 1 << 62)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_at_points(seed: int, plain_words: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(attack(50_000 + 10 * seed + at, monkeypatch) for at in range(10)) >= 3


@pytest.mark.deep
def test_ten_thousand_random_programs(plain_words: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(attack(100_000 + seed, monkeypatch) for seed in range(10_000)) >= 5_000
