"""Attacks on kernels: random programs of every entry-by-entry function at odd numbers of points, with infinities, NaN,
subnormals and huge numbers among them, give the evaluator's bits, whatever the type, the blocks and the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import blocks
from gradcli.execution import kernels
from gradcli.execution.kernels import frames, program, unrolled
from gradcli.execution.kernels.calls import SINCOS
from tests import test_kernels as lines

ONE = [
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sqrt",
    "arctan",
    "arcsin",
    "sinh",
    "cosh",
    "erf",
    "log1p",
    "expm1",
    "abs",
    "sign",
    "floor",
    "softplus",
    "sigmoid",
    "relu",
    "silu",
    "gelu",
    "exp2",
    "log2",
    "log10",
    "cbrt",
    "arcsinh",
    "reciprocal",
    "square",
    "ceil",
    "round",
]
TWO = ["maximum({}, {})", "minimum({}, {})", "arctan2({}, {})", "hypot({}, {})", "logaddexp({}, {})"]
POWERS = ["2", "3", "(-1)", "0.5", "(-2)", "4", "k"]
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -5e-324,
    2.2e-308,
    1e308,
    -1e308,
    1e-300,
    1e17,
    -1e6,
    1.0,
    -1.0,
    0.5,
]


class Writer:
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


class NoKernels:
    def run(self, *args: Any) -> None:
        return None


def columns(random: Any, count: int, shape: tuple[int, ...] = ()) -> Any:
    """Numbers of all sizes, every seventh a special one."""
    found = random.normal(size=(count, *shape)) * 10.0 ** random.integers(-3, 3, (count, *shape))
    odd = random.random((count, *shape)) < 1 / 7
    found[odd] = random.choice(SPECIAL, int(odd.sum()))
    return found


def plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own sine, cosine and powers in the place of the two that may differ from them in the last bits."""

    def sincos(x: Any, sine: Any, cosine: Any, *scratch: Any) -> None:
        sine[:], cosine[:] = np.sin(x), np.cos(x)

    monkeypatch.setitem(frames._WORDS, SINCOS, sincos)
    monkeypatch.setattr(program, "whole", lambda exponent: False)
    monkeypatch.setattr(kernels, "NATIVE_WORK", 1 << 62)
    monkeypatch.setattr(kernels, "LEAST_WORK", 1)
    monkeypatch.setattr(blocks, "MANY", 1)
    monkeypatch.setattr(unrolled, "MOST_CALLS", 3000)


def compared(script: str, points: dict[str, Any], **options: Any) -> tuple[Any, list[Any], list[Any]] | None:
    """The kernel, its results and the evaluator's; None for a script that neither takes."""
    try:
        f, g = gradcli.compile(script, **options), gradcli.compile(script, **options)
        g._kernels = NoKernels()  # type: ignore[assignment]
        given = {name: value for name, value in points.items() if name in script.replace("exp", "").replace("max", "")}
        right, others = g.at_points(**given)
    except gradcli.GradcliError as refused:
        with pytest.raises(gradcli.GradcliError, match=r"(?s).*") as again:
            f.at_points(**given)
        assert again.value.diagnostics[0].code == refused.diagnostics[0].code, script
        return None
    value, slopes = f.at_points(**given)
    (kernel,) = f._kernels.kept.values()
    return kernel, [value, *slopes.values()], [right, *others.values()]


def attack(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a kernel was attacked, and held."""
    random = np.random.default_rng(seed)
    count = int(random.choice([1, 2, 7, 8, 9, 63, 64, 65, 130]))
    threads, block = int(random.integers(1, 4)), int(random.choice([8, 16, 64]))
    monkeypatch.setattr(frames, "GRAIN", 8)
    monkeypatch.setattr(kernels, "ALONE", block)
    monkeypatch.setattr(kernels, "SHARED", block)
    monkeypatch.setattr(kernels, "processors", lambda: threads)
    script = Writer(seed).term(int(random.integers(2, 6)))
    points = {name: columns(random, count) for name in "xyz"}
    points["k"] = float(columns(random, 1)[0])
    dtype = "float32" if seed % 4 == 0 else "float64"
    found = compared(script, points, dtype=dtype, relax=seed % 3 == 0)
    if found is None or found[0] is None:
        return False
    for one, other in zip(found[1], found[2], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, script
        same = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
        if not same.all():
            places = np.flatnonzero(~same)
            at = {name: np.broadcast_to(value, count)[places[0]] for name, value in points.items()}
            raise AssertionError(f"{script} {dtype} at {at}: {one[places[0]]!r}, not {other[places[0]]!r}")
    return True


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_words(monkeypatch)
    assert sum(attack(50_000 + 10 * seed + at, monkeypatch) for at in range(10)) >= 3


@pytest.mark.parametrize("seed", range(30))
def test_lines_with_special_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs whose arrays are the lines, with slices and ends: infinities and NaN stay where the evaluator has them."""
    plain_words(monkeypatch)
    lines.small_blocks(monkeypatch, 16, (16, 48, 160)[seed % 3], 1 + seed % 2)
    script = lines.Writer(7_000 + seed).script()
    random = np.random.default_rng(seed)
    point: dict[str, Any] = {"k": 0.7}
    for name in "xy":
        point[name] = random.uniform(-1, 1, lines.LENGTH)
        odd = random.random(lines.LENGTH) < 0.03
        point[name][odd] = random.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e6, -1e9], int(odd.sum()))
    before, after = lines.both_ways(script, {name: value for name, value in point.items() if name in script})
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before[1:], after[1:], strict=True)), script


@pytest.mark.deep
def test_ten_thousand_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_words(monkeypatch)
    assert sum(attack(100_000 + seed, monkeypatch) for seed in range(10_000)) >= 5_000


ARITHMETIC = ["abs", "sqrt", "square", "relu", "sign", "floor", "ceil", "round"]


@pytest.mark.parametrize("seed", range(6))
def test_machine_code(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Programs of IEEE arithmetic, comparisons and choices: NumPy's bits, whatever comes in."""
    pytest.importorskip("numba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GRADCLI_FAST", raising=False)
    machine_code(seed, monkeypatch)


@pytest.mark.deep
def test_machine_code_of_many_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    pytest.importorskip("numba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GRADCLI_FAST", raising=False)
    for seed in range(1000, 1100):
        machine_code(seed, monkeypatch)


def machine_code(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program, compiled and by NumPy."""
    random = np.random.default_rng(seed)
    script = f"({Writer(seed, ARITHMETIC, TWO[:2], ['2']).term(5)}) + x*y"
    points = {"x": columns(random, 130), "y": columns(random, 130), "z": columns(random, 130), "k": 0.7}
    given = {
        name: value for name, value in points.items() if name in script.replace("max", "").replace("reciprocal", "")
    }
    found = []
    for least in (1, 1 << 62):
        monkeypatch.setattr(kernels, "NATIVE_WORK", least)
        f = gradcli.compile(script)
        value, slopes = f.at_points(**given)
        found.append([value, *slopes.values()])
        (kernel,) = f._kernels.kept.values()
        assert any(made is not None for made in kernel._native.values()) == (least == 1), script
    for one, other in zip(*found, strict=True):
        same = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
        assert same.all(), (script, one[~same][:3], other[~same][:3])
