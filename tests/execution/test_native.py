"""Loops in machine code (extra `fast`): errors in ulp, special values, NumPy's bits where arithmetic is IEEE's, and absence."""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.base import user_cache
from gradcli.calculator.repeated.compiled import _gradient
from gradcli.execution.compiler import emit_numba
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.execution.compiler.schedule import BlockLoop
from tests.primitives.test_four_ulps import exactly, ulps
from tests.support.forced import BLOCKS, patches

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra fast (numba)")
LENGTH = 403
LIMITS = {"exp_": 1.5, "log_": 1.5, "tanh_": 2.5, "sin": 2.5, "cos": 2.5}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("GRADCLI_FAST", raising=False)


def applied(name: str, x: Any) -> Any:
    """One of the functions on an array, in a loop that is compiled as ours are."""
    njit, functions = emit_numba.jit_compiler()
    one = functions.get(name, functions["sincos_far_"])
    place = {"sin": 0, "cos": 1}.get(name)
    loops: dict[Any, Any] = applied.__dict__.setdefault("loops", {})
    if name not in loops:
        if place is None:

            def loop(x: Any, out: Any) -> None:
                for i in range(len(x)):
                    out[i] = one(x[i])
        else:

            def loop(x: Any, out: Any) -> None:
                for i in range(len(x)):
                    out[i] = one(x[i])[place]

        loops[name] = njit(nogil=True, error_model="numpy")(loop)
    out = np.empty_like(x)
    loops[name](x, out)
    return out


def worst(name: str, x: Any) -> float:
    found = applied(name, x)
    return max(ulps(a, exactly(name.rstrip("_"), b)) for a, b in zip(found.tolist(), x.tolist(), strict=True))


def angles() -> dict[str, Any]:
    """Angles of all sizes up to `FARTHEST`, and those at and beside places where a reduction changes its mind."""
    random = np.random.default_rng(8)
    limit, places = emit_numba.FARTHEST, 1024
    quarters = np.arange(-63_660, 63_660, 7) * (math.pi / 2)
    parts = np.arange(-3 * places, 3 * places) * (2 * math.pi / places)
    return {
        "short": random.uniform(-4, 4, 8_000),
        "far": random.uniform(-limit, limit, 8_000),
        "multiples of a right angle": quarters.clip(-limit, limit),
        "beside them": np.nextafter(quarters.clip(-99_999, 99_999), random.choice([-1e9, 1e9], len(quarters))),
        "parts of the circle": parts,
        "half-way between": parts + math.pi / places,
        "beside parts": random.choice(parts, 8_000) + random.uniform(-0.003, 0.003, 8_000),
        "whole numbers": np.arange(-4_000.0, 4_000.0),
        "small": random.choice([-1.0, 1.0], 2_000) * 2.0 ** random.uniform(-1074, 0, 2_000),
        "the ends": np.array([limit, -limit, np.nextafter(limit, 0), 0.0, 5e-324, 2.2e-308, 1e-310]),
    }


def signed(random: Any, low: float, high: float, count: int) -> Any:
    return random.choice([-1.0, 1.0], count) * 2.0 ** random.uniform(low, high, count)


@pytest.mark.parametrize("name", LIMITS)
def test_errors(name: str) -> None:
    random = np.random.default_rng(11)
    tried = [random.uniform(-1, 1, 6_000), random.uniform(-700, 700, 6_000), signed(random, -1074, 0, 3_000)]
    if name == "exp_":
        tried += [np.linspace(-745.1, -708, 2_000), np.linspace(709, 709.78, 1_000)]
    if name == "log_":
        tried = [np.abs(one) for one in tried] + [
            1 + random.uniform(-1e-3, 1e-3, 5_000),
            2.0 ** random.uniform(-1074, 1024, 6_000),
        ]
    if name == "tanh_":
        tried += [random.uniform(0.5, 0.6, 4_000), random.uniform(-25, 25, 4_000)]
    if name in ("sin", "cos"):
        tried = list(angles().values())
    assert max(worst(name, x[x != 0]) for x in tried) <= LIMITS[name]


def test_special_values() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, -5e-324])
    with np.errstate(all="ignore"):
        for name, right in (("exp_", np.exp), ("log_", np.log), ("tanh_", np.tanh), ("sin", np.sin), ("cos", np.cos)):
            found, expected = applied(name, x), right(x)
            assert np.allclose(found, expected, rtol=1e-15, atol=0, equal_nan=True), name
            zero = ~np.isnan(expected)
            assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero])), name


def codes(made: Any) -> list[Any]:
    """The machine code of the loops of a plan."""
    return [event.code for event in made.schedule.events if isinstance(event, BlockLoop)]


def native_and_plain(script: str, point: dict[str, Any], **options: Any) -> tuple[Any, Any]:
    """The outputs with machine code, which has to be used, and without."""
    question, _ = gradcli.compile(script)._question("grad", _gradient, point)
    values, found = question.values(point), []
    for least in (1, 1 << 62):
        with pytest.MonkeyPatch.context() as patch:
            patches(patch, *BLOCKS, (emit_numba, "WORK", least))
            made = Plan(question.tape, **options)
            assert any(code is not None for code in codes(made)) == (least == 1), script
            found.append(made.answer(values))
    return found[0], found[1]


def some_point(script: str, length: int = LENGTH) -> dict[str, Any]:
    random = np.random.default_rng(5)
    point = {"x": random.uniform(-1, 1, length), "y": random.uniform(0.5, 1, length), "k": 0.7}
    return {name: value for name, value in point.items() if name in re.findall(r"\b[a-z]\b", script)}


@pytest.mark.parametrize(
    "script",
    [
        "sum(100*(x[1:]-x[:-1]**2)**2 + (1-x[:-1])**2)",
        "sum(where(x > 0, x**2*k, -x)) + sum(x[2:5]**3)",
        "sum((x[2:] - 2*x[1:-1] + x[:-2])**2 * y[1:-1]) / sum(y**2)",
        "sum(abs(x[1:]*y[:-1])) + sqrt(sum(maximum(x, y)**2))",
    ],
)
def test_plain_arithmetic_has_numpys_bits(script: str) -> None:
    for threads in (1, 2):
        fast, plain = native_and_plain(script, some_point(script), threads=threads)
        for one, other in zip(fast, plain, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), script


@pytest.mark.parametrize(
    "script",
    [
        "sum(tanh(x[1:]*y[:-1])/(2 + cos(x[1:])**2)) + x[0]**2 + sum(exp(-x)*sin(3*y) + log(2 + x))",
        "sum(where(sin(x) > y - 1/3, y**3, cos(k*x))[2:]*x[:-2]) + mean(x*y) + sum(exp(y))",
        "sum((sin(y)[1:] - 0.5*tanh(x)[:-1])**2)*log(sum(exp(k*x))) + x[-1]*k",
    ],
)
def test_functions_are_near_numpys(script: str) -> None:
    fast, plain = native_and_plain(script, some_point(script), threads=2)
    for one, other in zip(fast, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12, err_msg=script)


def test_threads_change_no_bit() -> None:
    script = "sum(exp(x[1:])*sin(y[:-1]*50) + cos(x[:-1])*x[1:])"
    point = some_point(script, 5_001)
    found = [native_and_plain(script, point, threads=threads)[0] for threads in (1, 2, 3)]
    assert all(
        [np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, found[0], strict=True)]
        for one in found
    )


def test_angles_that_are_far_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "WORK", 1)
    f = gradcli.compile("sin(x)*exp(-x*1e-9)")
    x = np.linspace(-40, 40, 20_001)
    near, _ = f.at_points(x=x)
    far = x.copy()
    far[[0, 77, 20_000]] = 1e6, np.inf, -1e17
    value, slopes = f.at_points(x=far)
    others = np.isin(np.arange(len(x)), [0, 77, 20_000], invert=True)
    assert np.array_equal(value[others], near[others])
    assert np.isnan(value[77]) and abs(value[0] - math.sin(1e6) * math.exp(-1e-3)) < 1e-15
    assert abs(slopes["x"][20_000]) > 0


def test_other_types_and_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "WORK", 1)
    table = np.random.default_rng(0).uniform(1, 2, (10_000, 2))
    f = gradcli.compile("exp(x)*y")
    one, other = f.at_points(x=table[:, 0], y=table[:, 1]), f.at_points(x=table[:, 0].copy(), y=table[:, 1].copy())
    assert np.array_equal(one[0], other[0])
    fixed = table[:, 0].copy()
    fixed.flags.writeable = False
    assert np.array_equal(f.at_points(x=fixed, y=table[:, 1])[0], one[0])
    single = gradcli.compile("exp(x)*y", dtype="float32").at_points(x=table[:, 0], y=table[:, 1])
    assert single[0].dtype == np.float32


def test_what_cannot_be_printed_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "WORK", 1)
    x = np.linspace(0.1, 3, 70_000)
    value, _ = gradcli.compile("erf(x)*x").at_points(x=x)
    monkeypatch.setattr(emit_numba, "WORK", 1 << 62)
    assert np.array_equal(value, gradcli.compile("erf(x)*x").at_points(x=x)[0])


def test_the_text_holds_nothing_but_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    whole = emit_numba.compiled_text
    monkeypatch.setattr(emit_numba, "compiled_text", lambda text: texts.append(text) or whole(text))  # type: ignore[func-returns-value]
    monkeypatch.setattr(emit_numba, "WORK", 1)
    script = "import_os = sin(x)*exp(-evil)\nimport_os + log(2 + x**2)*tanh(evil)"
    gradcli.compile(script).at_points(x=np.linspace(0, 1, 70_000), evil=np.linspace(0, 1, 70_000))
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", "\n".join(texts)))
    ours = r"[abcsx]\d+|loop|count|beyond|wide|for|i|in|range|if|else|def|abs|far|e\d*|not|sqrt|copysign|floor|ceil|rint|trunc|INF|NAN"
    assert texts and all(re.fullmatch(ours + r"|(exp|log|tanh|sincos|sincos_far)_", word) for word in words), words


def test_the_machine_code_is_kept(tmp_path: Path) -> None:
    code = (
        "import numpy as np, gradcli, time\nfrom gradcli.execution.compiler import emit_numba\nemit_numba.WORK = 1\n"
        "x = np.linspace(0, 1, 70_000)\n"
        "print(gradcli.compile('exp(x)*x').at_points(x=x)[0].tobytes().hex())\n"
        "print([sum(one.stats.cache_hits.values()) for one in emit_numba._loops.values()])\n"
    )
    found = []
    for _ in range(2):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        found.append(ran.stdout.splitlines())
    assert found[0][0] == found[1][0] and found[0][1] == "[0]" and found[1][1] == "[1]"
    (entry,) = (tmp_path / "gradcli" / "loops").iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert {stat.S_IMODE(place.stat().st_mode) for place in (entry.parent, entry.parent.parent)} == {0o700}


class Harm:
    """What a pickle would do if somebody opened it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["HARM"],)


def planted(entry: Path, fits: bool) -> None:
    """Another's code as an entry, with a digest that fits or does not."""
    content = pickle.dumps(Harm())
    key = bytes.fromhex(entry.name)
    entry.write_bytes(user_cache.digest(key if fits else b"", content) + content)


def belongs_to_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, -1)


def linked(entry: Path) -> None:
    entry.rename(entry.with_name("elsewhere"))
    planted(entry, True)
    entry.rename(entry.with_name("planted"))
    entry.symlink_to("planted")


def folder_linked(entry: Path) -> None:
    planted(entry, True)
    entry.parent.rename(entry.parent.with_name("elsewhere"))
    entry.parent.symlink_to("elsewhere")


TROUBLE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda entry: entry.write_bytes(b""),
    "cut": lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
    "shorter than its digest": lambda entry: entry.write_bytes(entry.read_bytes()[:7]),
    "one bit": lambda entry: entry.write_bytes(entry.read_bytes()[:-1] + bytes([entry.read_bytes()[-1] ^ 1])),
    "no digest": lambda entry: entry.write_bytes(pickle.dumps(Harm())),
    "another digest": lambda entry: planted(entry, False),
    "others may write": lambda entry: (planted(entry, True), entry.chmod(0o602)),
    "the group may write": lambda entry: (planted(entry, True), entry.chmod(0o620)),
    "another's": lambda entry: (planted(entry, True), belongs_to_another(entry)),
    "another's folder": lambda entry: (planted(entry, True), belongs_to_another(entry.parent)),
    "an open folder": lambda entry: (planted(entry, True), entry.parent.chmod(0o777)),
    "an open folder above": lambda entry: (planted(entry, True), entry.parent.parent.chmod(0o777)),
    "a link": linked,
    "a link to a folder": folder_linked,
    "a folder": lambda entry: (entry.unlink(), entry.mkdir()),
    "a pipe": lambda entry: (entry.unlink(), os.mkfifo(entry)),
    "a file for a folder": lambda entry: (entry.unlink(), entry.parent.rmdir(), entry.parent.write_text("")),
    "fits, but is no machine code": lambda entry: entry.write_bytes(
        user_cache.digest(bytes.fromhex(entry.name), b"x") + b"x"
    ),
}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are POSIX's")
@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_cache_in_trouble_costs_time_only(trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was damaged, or written by another, is not opened; the loop is compiled again, and gives the same bits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HARM", str(tmp_path / "harm"))
    monkeypatch.setattr(emit_numba, "_loops", {})
    text = "def loop(count, a0, a1):\n    for i in range(count):\n        a1[i] = a0[i]*3.0\n"
    hits = []
    for run in range(2):
        emit_numba._loops.clear()
        found = np.zeros(5)
        emit_numba.compiled_text(text)(5, np.arange(5.0), found)
        assert found.tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]
        hits.append(sum(emit_numba._loops[text].stats.cache_hits.values()))
        if not run:
            (entry,) = (tmp_path / "gradcli" / "loops").iterdir()
            TROUBLE[trouble](entry)
    assert hits == [0, 0]
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("home", ["relative", "~", ""])
def test_a_cache_has_an_absolute_place(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", "also_relative")
    assert user_cache.private_folder("loops") is None
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    code = (
        "import resource, numpy as np\nfrom gradcli.execution.compiler import emit_numba\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "x, y = np.arange(3.0), np.zeros(3)\n"
        "emit_numba.compiled_text('def loop(n, a, b):\\n    for i in range(n):\\n        b[i] = a[i] + 1.0\\n')(3, x, y)\n"
        "print(y.tolist())\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert (ran.stdout, ran.stderr) == ("[1.0, 2.0, 3.0]\n", "")
    assert not list((tmp_path / "gradcli" / "loops").iterdir())


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(emit_numba, "WORK", 1)
    value, _ = gradcli.compile("exp(x) - x*3").at_points(x=np.zeros(70_000))
    assert np.array_equal(value, np.ones(70_000))
    assert not any(path.is_dir() for path in tmp_path.iterdir())


def test_one_answer_is_not_worth_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "compiled_text", lambda text: pytest.fail("not wanted"))
    x = np.linspace(0, 1, 1_000_000)
    found = gradcli.grad("sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", at={"x": x})
    assert found.gradient["x"].shape == x.shape


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "compiled_text", lambda text: pytest.fail("not wanted"))
    monkeypatch.setenv("GRADCLI_FAST", "0")
    monkeypatch.setattr(emit_numba, "WORK", 1)
    gradcli.compile("exp(x) + 1").at_points(x=np.zeros(70_000))


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Any:
        raise ImportError("numba")

    monkeypatch.setattr(emit_numba, "_there", [])
    monkeypatch.setattr(emit_numba, "jit_compiler", absent)
    monkeypatch.setattr(emit_numba, "WORK", 1)
    value, _ = gradcli.compile("exp(x) + 2").at_points(x=np.zeros(70_000))
    assert np.array_equal(value, np.full(70_000, 3.0)) and emit_numba._there == [False]
