"""Short arrays at many points as lines of their entries: the evaluator's numbers, in any memory, for any form that is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import blocks
from gradcli.execution import kernels
from gradcli.execution.kernels import gathered, unrolled
from tests.random_programs import make

COUNT = 101


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MANY", 1)
    monkeypatch.setattr(unrolled, "MOST_CALLS", 4000)
    monkeypatch.setattr(kernels, "MOST_ENTRIES", 300)


class NoKernels:
    def run(self, *args: Any) -> None:
        return None


def both(script: str, points: dict[str, Any], shared: tuple[str, ...] = (), **options: Any) -> tuple[Any, Any, Any]:
    """All results by the kernel (None where there is none) and by the evaluator."""
    f, g = gradcli.compile(script, **options), gradcli.compile(script, **options)
    g._kernels = NoKernels()  # type: ignore[assignment]
    value, slopes = f.at_points(**points, shared=shared)
    right, others = g.at_points(**points, shared=shared)
    (kernel,) = f._kernels.kept.values()
    assert slopes.keys() == others.keys()
    return kernel, [value, *slopes.values()], [right, *others.values()]


EXACT = [  # no product of matrices, and sums of at most eight entries along the last axes: bit by bit
    "sum(x**2)*exp(-sum(x))",
    "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)",
    "sqrt((p[0] - q[0])**2 + (p[1] - q[1])**2 + p[2]*k)",
    "log(sum(exp(x)))",
    "max(x)*min(p)",
    "sum(where(p > q, p*q, -q)) + sum(abs(p - q))",
    "sum(concatenate([p, q])[1:5]**3)",
    "sum(p[::-1]*q) + sum(stack([p, q])[:, 1])",
    "sum(M[:, 1:]*p[:2]) + M[0, 1]",
    "sum(mean(M, axis=0)*q)",
    "sum(erf(p)*x[0])",
    "sum(tanh(p)*0 + 1)",
]
REORDERED = [
    "sum(M.T[1:, :]*p) + M[0, 1]",
    "sum((A @ p - q)**2)",
    "p @ A @ q",
    "sum((M @ M.T)**2)*k",
    "sum(A @ M) + det(A)*0",
    "sum(cumsum(p)*q)",
    "var(x) + std(p)",
]


def points(script: str, seed: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {"x": (6,), "p": (3,), "q": (3,), "M": (3, 3), "A": (3, 3), "k": ()}
    found = {name: random.uniform(0.3, 1.2, (COUNT, *shape)) for name, shape in shapes.items()}
    names = gradcli.compile(script)
    used = [name for name in shapes if name in set(_words(names.source.text))]
    return {name: found[name] for name in used}


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


@pytest.mark.parametrize("script", EXACT)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits(script: str, dtype: str) -> None:
    kernel, found, right = both(script, points(script), dtype=dtype)
    assert type(kernel) is gathered.Gathered, script
    for one, other in zip(found, right, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(one, other), script


@pytest.mark.parametrize("script", REORDERED)
def test_sums_in_another_order(script: str) -> None:
    given = points(script)
    if "A" in given:
        given["A"] = given["A"][0]
    kernel, found, right = both(script, given, ("A",) if "A" in given else ())
    if "det" not in script and "cumsum" not in script:
        assert type(kernel) is gathered.Gathered, script
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13, err_msg=script)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    program = make(91_000 + seed, size=10)
    random = np.random.default_rng(seed)
    given = {
        name: np.asarray(value)[None] + random.uniform(-0.01, 0.01, (COUNT, *np.shape(value)))
        for name, value in program.values.items()
    }
    _, found, right = both(program.text, given)
    for one, other in zip(found, right, strict=True):
        scale = float(np.nanmax(np.abs(other), initial=1.0, where=np.isfinite(other)))
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * scale, err_msg=program.text)


def test_sums_take_numpys_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits for every number of neighbours up to where NumPy halves, and beyond."""
    random = np.random.default_rng(0)
    for count in (1, 2, 7, 8, 9, 15, 16, 17, 64, 127, 128, 129, 200, 257):
        x = random.normal(size=(33, count)) * 10.0 ** random.integers(-8, 8, (33, count))
        kernel, found, right = both("sum(x)", {"x": x})
        assert type(kernel) is gathered.Gathered and found[0].tobytes() == right[0].tobytes(), count


def test_special_numbers() -> None:
    x = np.array([[0.0, -0.0, 1.0], [np.inf, -np.inf, 2.0], [np.nan, 1.0, 5e-324], [1e308, 1e308, -1e308]])
    for script in ("sum(x**2)", "sum(1/x)", "max(x)", "sum(x[1:]*x[:-1])", "sum(exp(x)) - prod(x)"):
        _, found, right = both(script, {"x": x})
        for one, other in zip(found, right, strict=True):
            assert np.array_equal(one, other, equal_nan=True), script


def test_inputs_and_results_in_memory_of_any_form() -> None:
    script = "sum(p*q) + k*q[0]"
    given = points(script)
    plain = both(script, given)[1]
    turned = {name: np.asfortranarray(value) for name, value in given.items()}
    wide = {
        name: np.repeat(value, 2, axis=-1)[..., ::2] if value.ndim > 1 else value[::-1][::-1]
        for name, value in given.items()
    }
    for other in (turned, wide):
        assert all(np.array_equal(a, b) for a, b in zip(both(script, other)[1], plain, strict=True))
    f = gradcli.compile(script)
    room = np.empty(COUNT), {"p": np.empty((COUNT, 3)), "q": np.empty((COUNT, 3)), "k": np.empty(COUNT)}
    filled = f.at_points(**given, out=room)
    assert filled[0] is room[0] and filled[1]["p"] is room[1]["p"]
    assert np.array_equal(room[1]["q"], plain[1 + list(filled[1]).index("q")])
    over = given["p"].copy()  # a result over its own input
    f.at_points(**{**given, "p": over}, out=(np.empty(COUNT), {**room[1], "p": over}))
    assert np.array_equal(over, plain[1 + list(filled[1]).index("p")])


def test_machine_code_does_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    pytest.importorskip("numba")
    script = "sum(p*q - p[1:2]*q[0]) + sqrt(sum(p**2))*k"
    given = points(script)
    monkeypatch.setattr(kernels, "NATIVE_WORK", 1 << 62)
    plain = both(script, given)[1]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GRADCLI_FAST", raising=False)
    monkeypatch.setattr(kernels, "NATIVE_WORK", 1)
    kernel, found, _ = both(script, given)
    assert any(made is not None for made in kernel.kernel._native.values())
    assert all(one.tobytes() == other.tobytes() for one, other in zip(found, plain, strict=True))


def test_neither_blocks_nor_threads_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "sum(sin(p*q)*exp(-q)) + cos(p[0]*q[0])"
    given = points(script)
    found = []
    for block, threads in ((8, 1), (16, 2), (64, 3), (4096, 1)):
        monkeypatch.setattr(kernels, "LEAST_WORK", 1)
        monkeypatch.setattr(kernels, "ALONE", block)
        monkeypatch.setattr(kernels, "SHARED", block)
        monkeypatch.setattr(kernels, "processors", lambda threads=threads: threads)
        monkeypatch.setattr(kernels.frames, "GRAIN", 8)
        found.append(b"".join(one.tobytes() for one in both(script, given)[1]))
    assert all(one == found[0] for one in found)


def test_long_rows_and_few_points_are_left_to_the_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MANY", 1000)
    f = gradcli.compile("sum(p*q)")
    f.at_points(p=np.ones((100, 3)), q=np.ones((100, 3)))
    assert not f._kernels.kept
    monkeypatch.setattr(kernels, "MOST_ENTRIES", 8)
    f.at_points(p=np.ones((120, 9)), q=np.ones((120, 9)))
    assert list(f._kernels.kept.values()) == [None]


def test_blocks_are_as_long_as_what_differs_from_point_to_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST_ENTRIES", 1)
    f = gradcli.compile("sum((A @ p)**2)", wrt=("p",))
    asked: list[int] = []
    whole = blocks._largest
    monkeypatch.setattr(blocks, "_largest", lambda tape, moving: asked.append(whole(tape, moving)) or asked[-1])  # type: ignore[func-returns-value]
    f.at_points(p=np.ones((50, 3)), A=np.ones((40, 3)), shared=("A",))
    assert set(asked) == {40}


def test_a_large_array_that_all_points_share_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "scalar", lambda node: pytest.fail("taken apart"))
    f = gradcli.compile("p*D[3, 1]", wrt=("p",))
    value, _ = f.at_points(p=np.ones(50), D=np.full((20_000, 2), 7.0), shared=("D",))
    assert np.array_equal(value, np.full(50, 7.0)) and list(f._kernels.kept.values()) == [None]
