"""Kernels: programs of lines in blocks give the evaluator's bits, whatever the blocks and the threads; sums within their condition."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.compiled import _gradient
from gradcli.execution import kernels
from gradcli.execution.kernels import frames, kernel_of
from gradcli.execution.kernels.lines import Refused, flat_start

LENGTH = 403
EPS = 2.0**-53


def small_blocks(monkeypatch: pytest.MonkeyPatch, grain: int = 16, block: int = 48, threads: int = 1) -> None:
    monkeypatch.setattr(frames, "GRAIN", grain)
    monkeypatch.setattr(kernels, "SHORTEST", 2)
    monkeypatch.setattr(kernels, "LEAST_WORK", 1)
    monkeypatch.setattr(kernels, "ALONE", block)
    monkeypatch.setattr(kernels, "SHARED", block)
    monkeypatch.setattr(kernels, "processors", lambda: threads)


def asked(script: str, point: dict[str, Any], wrt: Any = None, dtype: str = "float64") -> Any:
    question, _ = gradcli.compile(script, wrt, dtype=dtype)._question("grad", _gradient, point)
    return question


def both_ways(script: str, point: dict[str, Any], wrt: Any = None, dtype: str = "float64") -> tuple[Any, Any]:
    """The outputs of the evaluator and of the kernel."""
    question = asked(script, point, wrt, dtype)
    kernel = kernel_of(question.tape, dtype)
    assert kernel is not None, script
    values = question.values(point)
    return question.tape.run(values, backend="numpy", dtype=dtype), kernel.run(question.tape.given(values))


class Writer:
    """Random scripts of the kernels' form, with lines of several lengths."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def pick(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def line(self, lost: int, depth: int) -> str:
        """A line of LENGTH - lost entries."""
        if depth == 0 or self.random.random() < 0.15:
            start = int(self.random.integers(lost + 1))
            leaf = self.pick("x", "y")
            return f"{leaf}[{start}:{LENGTH - lost + start}]" if lost else leaf
        kind = self.random.integers(9)
        if kind < 3:
            return f"({self.line(lost, depth - 1)} {self.pick('+', '-', '*')} {self.line(lost, depth - 1)})"
        if kind == 3:
            return f"{self.pick('sin', 'cos', 'tanh', 'arctan')}({self.line(lost, depth - 1)})"
        if kind == 4:
            return f"({self.pick('0.5', '3', 'k', '(1/3)')} {self.pick('*', '-', '+')} {self.line(lost, depth - 1)})"
        if kind == 5:
            return f"({self.line(lost, depth - 1)})**{self.pick(2, 3, 4, 5)}"
        if kind == 6:
            one, other = self.line(lost, depth - 1), self.line(lost, depth - 1)
            return f"where({one} > {other}, {other}, {self.line(lost, depth - 1)})"
        if kind == 7 and lost:
            return f"({self.line(lost - 1, depth - 1)})[{self.pick('1:', ':-1')}]"
        return f"({self.line(lost, depth - 1)} / (2 + {self.line(lost, depth - 1)}**2))"

    def script(self) -> str:
        """The sum of a few lines and of entries at the ends."""
        parts = [f"sum({self.line(int(self.random.integers(4)), 4)})" for _ in range(self.random.integers(1, 4))]
        if self.random.random() < 0.3:
            parts.append(self.pick("x[0]**2", "x[-1]*k", "y[7]*x[0]", "mean(x*y)"))
        return " + ".join(parts)


def close_sum(one: float, other: float, scale: float) -> bool:
    return one == other or abs(one - other) <= 64 * EPS * scale or (np.isnan(one) and np.isnan(other))


@pytest.mark.parametrize("seed", range(60))
def test_kernels_give_the_evaluators_gradient(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, threads=1 + seed % 2)
    script = Writer(seed).script()
    random = np.random.default_rng(seed)
    point = {"x": random.uniform(-1, 1, LENGTH), "y": random.uniform(-1, 1, LENGTH), "k": 0.7}
    point = {name: value for name, value in point.items() if name in script}
    before, after = both_ways(script, point)
    for one, other in zip(before, after, strict=True):
        if np.ndim(one):  # sine and cosine are the only operations of a kernel that may differ
            np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12, err_msg=script)
        else:
            assert close_sum(one, other, 1e4 * LENGTH), script


@pytest.mark.deep
def test_ten_thousand_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits, but for sines, whole powers of negative bases, and numbers that sums go into."""
    exact = 0
    for seed in range(10_000, 20_000):
        small_blocks(monkeypatch, 16, (16, 48, 160)[seed % 3], 1 + seed % 2)
        script = Writer(seed).script()
        random = np.random.default_rng(seed)
        point = {"x": random.uniform(-1, 1, LENGTH), "y": random.uniform(-1, 1, LENGTH), "k": 0.7}
        before, after = both_ways(script, {name: value for name, value in point.items() if name in script})
        free = "sin" in script or "cos" in script or re.search(r"\*\*5|\*\*\d\)?\*\*", script)
        for one, other in zip(before, after, strict=True):
            if np.ndim(one) and not free:
                exact += 1
                assert np.array_equal(one, other, equal_nan=True), script
            else:
                scale = max(1.0, float(np.abs(one).max()))
                np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * scale, err_msg=script)
    assert exact > 1_000


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


NO_ANGLES = [
    "sum(100*(x[1:]-x[:-1]**2)**2 + (1-x[:-1])**2)",
    "sum(x)",
    "sum(x*k) + k",
    "mean(exp(-x))*k",
    "log(sum(exp(x)))",
    "sum(x**5 + x**-3)",
    "sum(exp(x)/sum(exp(x))*y)",
    "sum(abs(x) + maximum(x, y)) / sum(y**2)",
    "sum(where(x > 0, x**2, -x)) + x[3]*x[-1] + sum(x[2:5]**3)",
    "sum((x[2:] - 2*x[1:-1] + x[:-2])**2 * y[1:-1])",
    "sqrt(sum((x - mean(x))**2))",
    "sum(x[5:-5])*sum(y[:10])",
    "sum(x[:1]*k) + sum(2*x)",
    "sum(tanh(x[1:]*x[:-1])*0.1 + 1)",
    "sum(round(x*3)*x)",
    "x[0]*sum(y)",
]


@pytest.mark.parametrize("script", NO_ANGLES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_of_gradients(script: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    random = np.random.default_rng(5)
    point = {"x": random.uniform(-1, 1, LENGTH), "y": random.uniform(0.5, 1, LENGTH), "k": 0.7}
    point = {name: value for name, value in point.items() if name in script.replace("exp", "").replace("max", "")}
    before, after = both_ways(script, point, dtype=dtype)
    whole = "x**5" in script  # a power of a negative base is taken by way of the positive one
    sums = any(word in script for word in ("/ sum", "/sum", "mean", "log(", "*sum(", "sqrt"))  # numbers inside
    tolerance = 1e-13 if dtype == "float64" else 3e-5
    for one, other in zip(before, after, strict=True):
        assert np.shape(one) == np.shape(other)
        if np.ndim(one) and not sums and not whole:
            assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), script
        else:
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance, err_msg=script)


@pytest.mark.parametrize("seed", range(8))
def test_neither_blocks_nor_threads_change_a_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    script = NO_ANGLES[seed] if seed < 4 else Writer(100 + seed).script()
    random = np.random.default_rng(seed)
    length = 70_001 if seed < 4 else LENGTH
    point = {"x": random.normal(size=length), "y": random.normal(size=length), "k": 0.3}
    point = {name: value for name, value in point.items() if name in script.replace("exp", "").replace("max", "")}
    found = []
    for block, threads in ((48, 1), (16, 2), (4096, 3), (64, 1), (160, 2)):
        small_blocks(monkeypatch, 16, block, threads)
        found.append([np.asarray(one).tobytes() for one in both_ways(script, point)[1]])
    assert all(one == found[0] for one in found)


def test_rows_of_a_matrix_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    random = np.random.default_rng(1)
    script = "sum((U[1:] - U[:-1])**2 * 3) + sum(U[:, :]**2)"
    before, after = both_ways(script, {"U": random.normal(size=(31, 7))})
    assert before[1].tobytes() == after[1].tobytes() and after[1].shape == (31, 7)
    turned = np.asfortranarray(random.normal(size=(31, 7)))
    before, after = both_ways(script, {"U": turned})
    assert before[1].tobytes() == after[1].tobytes()
    assert abs(before[0] - after[0]) <= 1e-13 * before[0]


def test_inputs_with_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    table = np.random.default_rng(2).normal(size=(LENGTH, 2))
    before, after = both_ways(NO_ANGLES[0], {"x": table[:, 0]})
    assert before[1].tobytes() == after[1].tobytes()
    before, after = both_ways(NO_ANGLES[0], {"x": table[::-1, 1]})
    assert before[1].tobytes() == after[1].tobytes()


def test_sine_and_cosine_of_lines_of_different_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    before, after = both_ways("sum(sin(y)) + sum(cos(y[:-1])*y[1:])", {"y": np.linspace(-2, 5, LENGTH)})
    np.testing.assert_allclose(after[1], before[1], rtol=1e-14, atol=1e-14)


OTHER_FORMS = [
    "sum((A @ x)**2)",
    "sum(x[::2])",
    "sum(x[::-1]*x)",
    "sum(cumsum(x))",
    "sum(sort(x)*x)",
    "sum(A*x)",
    "sum(sum(A + 0*sum(x), axis=0)**2)",
    "sum(A[:, 1:])",
    "sum(A.T*A)",
    "sum(take(x, [0, 3]))",
]


@pytest.mark.parametrize("script", OTHER_FORMS)
def test_other_forms_are_refused(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    random = np.random.default_rng(3)
    given = {"x": random.normal(size=6), "A": random.normal(size=(6, 6))}
    point = {name: value for name, value in given.items() if name in script}
    assert kernel_of(asked(script, point).tape) is None


def test_where_a_slice_begins() -> None:
    whole = slice(0, 4, 1)
    assert flat_start((5, 4), (slice(2, 5, 1), whole), (3, 4)) == 8
    assert flat_start((5, 4), (slice(2, 3, 1), slice(1, 3, 1)), (1, 2)) == 9
    refused = [
        ((5, 4), (slice(0, 2, 1), slice(1, 4, 1)), (2, 3)),
        ((6,), (slice(0, 6, 2),), (3,)),
        ((6,), (slice(5, None, -1),), (6,)),
    ]
    for shape, index, size in refused:
        with pytest.raises(Refused):
            flat_start(shape, index, size)


def test_a_kernel_needs_little_memory() -> None:
    count = 4_000_000
    question = asked(NO_ANGLES[0], {"x": np.ones(count)})
    kernel = kernel_of(question.tape)
    assert kernel is not None
    x = np.random.default_rng(0).uniform(-2, 2, count)
    kernel.run([x[:]])
    tracemalloc.start()
    try:
        kernel.run([x])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= x.nbytes + (64 << 20), f"{peak >> 20} MiB beside the input"
    assert peak <= x.nbytes + (16 << 20)  # what it is today


def test_compiled_functions_use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    ran = []
    whole = kernels.Kernel.run
    monkeypatch.setattr(kernels.Kernel, "run", lambda self, *args: ran.append(1) or whole(self, *args))
    f = gradcli.compile(NO_ANGLES[0])
    x = np.random.default_rng(0).uniform(-2, 2, LENGTH)
    value, slopes = f.value_and_grad(x=x)
    assert ran == [1] and type(value) is float
    assert abs(value - np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)) <= 1e-12 * value
    assert slopes["x"].shape == x.shape and slopes["x"].flags.owndata


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
