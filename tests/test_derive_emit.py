"""`derive --emit`: the files run, and their functions give the engine's numbers at points that they do not hold."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli import calculator, cli
from gradcli.calculator.deriving import derive, emitted
from gradcli.diagnostics import GradcliError
from gradcli.execution.results import SelfContained
from gradcli.rendering.code import TARGETS, source_file

SCRIPTS = [
    "mean((A@x - b)**2)",
    "x**2*exp(-x)",
    "sum(relu(W@x + b))",
    "logsumexp(A@x)",
    "norm(A@x - b)",
    "trace(X.T@B@X@C)",
    "log(det(X.T@X))",
    "a @ inv(X) @ b",
    "r = A@x - b\ns = norm(r)\ns**2 + sin(s)",
    "w @ tanh(V@x+b)",
    "var(x)*std(y)",
    "sum(cumsum(x)**2)",
    "x[0]*x[1] + max(x)",
    "sum((Y - U@V.T)**2)",
    "-mean(y*log(sigmoid(X@w)) + (1 - y)*log(1 - sigmoid(X@w)))",
    "sum(sqrt(abs(x)) + maximum(x, y)*(x > 0))",
    "erf(x)*atan2(y, x)**3 + hypot(x, y)/pi",
    "x in (0, 1); asin(x)*log1p(x)",
    "def f(u): return u**2\nf(x)*f(y)",
    "w = [1, 2]; mean((X@w - y)**2)",
]
FAST = SCRIPTS[:4]
PEERS = [SCRIPTS[0], SCRIPTS[11], SCRIPTS[16]]


def function_of(script: str) -> SelfContained:
    return emitted(script, derive(script))


def numbers(script: str, found: SelfContained) -> tuple[dict[str, Any], float, dict[str, Any]]:
    """Another point, inside the same domains, with what the engine gives there."""
    at = {name: (np.asarray(value) * 0.75 + 0.01).tolist() for name, value in found.at.items()}
    result = calculator.grad(script, at=at, wrt=list(found.gradient))
    return at, float(result.value), dict(result.gradient)


def runs(script: str, target: str) -> None:
    found = function_of(script)
    module: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(source_file(found, target), f"<{target}>", "exec"), module)
    module["test_values"]()
    at, value, gradient = numbers(script, found)
    ours, partials = module["value_and_gradient"](**at)
    assert np.allclose(float(ours), value, rtol=1e-9)
    assert partials.keys() == gradient.keys()
    for leaf, partial in partials.items():
        assert np.shape(partial) in (np.shape(gradient[leaf]), ())
        assert np.allclose(np.asarray(partial), gradient[leaf], rtol=1e-9, atol=1e-12), leaf


@pytest.mark.parametrize(
    "script", [one if one in FAST else pytest.param(one, marks=pytest.mark.deep) for one in SCRIPTS]
)
def test_numpy(script: str) -> None:
    runs(script, "numpy")


@pytest.mark.peers
@pytest.mark.parametrize("target", ["torch", "jax"])
@pytest.mark.parametrize(
    "script", [one if one in PEERS else pytest.param(one, marks=pytest.mark.deep) for one in SCRIPTS]
)
def test_peers(script: str, target: str) -> None:
    pytest.importorskip(target)
    runs(script, target)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    "script", [one if one in FAST else pytest.param(one, marks=pytest.mark.deep) for one in SCRIPTS]
)
def test_c(script: str, tmp_path: Path) -> None:
    found = function_of(script)
    source = tmp_path / "f.c"
    source.write_text(source_file(found, "c"))
    checks = ["-std=c99", "-O1", "-Wall", "-Werror", "-Wno-unused-variable"]
    subprocess.run(["cc", *checks, "-o", tmp_path / "f", source, "-lm"], check=True)
    assert b"are right" in subprocess.run([tmp_path / "f"], check=True, capture_output=True).stdout
    library = tmp_path / "f.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-DWITHOUT_TEST", "-o", library, source, "-lm"], check=True)
    at, value, gradient = numbers(script, found)
    places = {leaf: np.zeros(np.shape(one)) for leaf, one in gradient.items()}
    pointer = ctypes.POINTER(ctypes.c_double)
    given: list[Any] = [ctypes.c_size_t(found.shape_of(name)) for name in found.sizes]
    held = [np.array(at[name], dtype=float, order="C") for name in found.leaves]
    given += [one.ctypes.data_as(pointer) if one.shape else ctypes.c_double(float(one)) for one in held]
    given += [place.ctypes.data_as(pointer) for place in places.values()]
    call = ctypes.CDLL(str(library)).value_and_gradient
    call.restype = ctypes.c_double
    assert np.allclose(call(*given), value, rtol=1e-9)
    for leaf, place in places.items():
        assert np.allclose(place, gradient[leaf], rtol=1e-9, atol=1e-12), leaf


def test_a_wrong_formula_fails_its_own_test() -> None:
    text = source_file(function_of("x**2*exp(-x)"), "numpy")
    module: dict[str, Any] = {"__name__": "emitted"}
    exec(text.replace('"x": ', '"x": -'), module)
    with pytest.raises(AssertionError):
        module["test_values"]()


def test_names_of_the_script_are_kept() -> None:
    found = function_of("r = A@x - b\ns = norm(r)\ns**2 + sin(s)")
    assert found.parts["r"] == "A @ x - b" and found.parts["s"] == "norm(r)"
    assert found.value == "s**2 + sin(s)"


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_lacks_says_so(target: str) -> None:
    with pytest.raises(GradcliError, match="GC512"):
        source_file(function_of("iv(1, x)"), target)


@pytest.mark.parametrize(("target", "name"), [("numpy", "value"), ("torch", "math"), ("c", "double"), ("c", "exp")])
def test_names_that_mean_something_else_are_refused(target: str, name: str) -> None:
    with pytest.raises(GradcliError, match="cannot be a name"):
        source_file(function_of(f"{name}**2*x"), target)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loss.py"
    assert cli.main(["derive", "mean((A@x - b)**2)", "--emit", "numpy", "--output", str(path)]) == 0
    assert "right" in subprocess.run([sys.executable, path], check=True, capture_output=True, text=True).stdout
    assert cli.main(["derive", "x**2", "--emit", "c", "--hessian"]) == 2
    assert "GC721" in capsys.readouterr().err
    assert cli.main(["derive", "x**2", "--emit", "numpy", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["emitted"].startswith('"""The value and the gradient of x**2.')
