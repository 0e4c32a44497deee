"""`derive --emit`: the files run, and their functions give the engine's numbers at points that they do not hold."""

from __future__ import annotations

import contextlib
import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.calculations import SelfContained
from gradcli.derivation.deriving import derive, emitted
from gradcli.derivation.self_contained import fold_constants
from gradcli.interfaces import cli
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.substitution import expression_of
from gradcli.language.syntax import names_in
from gradcli.rendering.code import TARGETS, own_names, source_file
from gradcli.rendering.code.python_code import PythonCode

SCRIPTS = [
    "mean((A@x - b)**2)",
    "x**2*exp(-x)",
    "sum(relu(W@x + b))",
    "logsumexp(A@x)",
    "norm(A@x - b)",
    r"\sum_{i=1}^n \log(1 + e^{-y_i w^\top x_i})",
    "loss = sum(X[i, j]*v[j] for i in range(len(X)) for j in range(len(v)) if i < j)\nloss**2",
    "trace(X.T@B@X@C)",
    "sum((triu(A, 1) - 2*tril(B, -1))@x)**2",
    "log(det(X.T@X))",
    "a @ inv(X) @ b",
    "r = A@x - b\ns = norm(r)\ns**2 + sin(s)",
    "w @ tanh(V@x+b)",
    "var(x)*std(y)",
    "sum(cumsum(x)**2)",
    "x = [1, 2, 4]; x[0]*x[1] + max(x)",
    "sum((Y - U@V.T)**2)",
    "sum((x[1:] - x[:-1])**2) + sum(A[1:-1, :-1]**2)",
    "-sum(Y*log_softmax(X@W, axis=1))",
    "-mean(y*log(sigmoid(X@w)) + (1 - y)*log(1 - sigmoid(X@w)))",
    "sum(sqrt(abs(x)) + maximum(x, y)*(x > 0))",
    "erf(x)*atan2(y, x)**3 + hypot(x, y)/pi",
    "x in (0, 1); asin(x)*log1p(x)",
    "def f(u): return u**2\nf(x)*f(y)",
    "w = [1, 2]; mean((X@w - y)**2)",
    "x in (0, 3); x*((x > 0) + (x > -1)) - -(x > 0)*(x > 5)",
    "cross_entropy(tanh(X@W), labels)",
    "nll_loss(log_softmax(Z), labels)",
    "h = gelu(W@x + b)\nhuber_loss(V@h, y)",
    "binary_cross_entropy_with_logits(X@w, y) + mse_loss(w, z) + sum(clamp(z, 0, 1)) + logdet(X.T@X)",
    "x*hardsigmoid(x)*logit(y)",
    "sum(mul(leaky_relu(x), hardsigmoid(x)) + elu(x, 0.5)*hard_tanh(x) + logit(sigmoid(neg(x))))",
    "x in (1, 3); y in (1, 4); x*(((x > 0) + (y > 5))/((x > 0) + (y > 0)))*(0 < x < 9)",
]
LACKING = "x in (0.2, 0.8); sinc(x)*logaddexp(x, y) + mod(y, 2) + xlogy(x, x)*cbrt(y)"  # in some of the languages
SCRIPTS.append(LACKING)
FAST = [*SCRIPTS[:4], LACKING, "cross_entropy(tanh(X@W), labels)"]
PEERS = [SCRIPTS[0], "w @ tanh(V@x+b)", "sum((x[1:] - x[:-1])**2) + sum(A[1:-1, :-1]**2)"]


def function_of(script: str) -> SelfContained:
    return emitted(script, derive(script))


def numbers(script: str, found: SelfContained) -> tuple[dict[str, Any], float, dict[str, Any]]:
    """Another point, inside the same domains, with what the engine gives there."""
    at = {
        name: value
        if name == "labels"  # which are positions
        else (np.asarray(value) * 0.75 + 0.01 * (1 + np.arange(np.size(value)).reshape(np.shape(value)))).tolist()
        for name, value in found.at.items()
    }
    result = calculator.grad(script, at=at, wrt=list(found.gradient))
    return at, float(result.value), dict(result.gradient)


def runs(script: str, target: str, found: SelfContained | None = None) -> None:
    found = found or function_of(script)
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
    runs_c(script, function_of(script), tmp_path)


def runs_c(script: str, found: SelfContained, tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(source_file(found, "c"))
    subprocess.run(["cc", "-std=c99", "-O1", *STRICT, "-o", tmp_path / "f", source, "-lm"], check=True)
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


# --- random expressions ----------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[str, ...]] = {
    "s": (), "t": (), "x": ("n",), "y": ("n",), "A": ("n", "n"), "B": ("n", "n"), "W": ("m", "n"), "b": ("m",),
}  # fmt: skip
UNARY = "exp log log1p sqrt square sin atan abs sign tanh asinh erf sigmoid softplus relu floor cbrt".split()
BINARY = ["maximum", "minimum", "hypot", "atan2", "pow"]


def number_text(pick: Random, depth: int) -> str:
    """A random expression whose value is a number."""

    def one() -> str:
        return number_text(pick, depth - 1)

    def vector() -> str:
        return vector_text(pick, depth - 1)

    if depth < 1:
        return pick.choice(["s", "t", "2", "0.5", "3", "pi", "x[0]", "y[-1]", "A[0, 1]", "1/3", "len(x)"])
    ways = [
        lambda: f"({one()} {pick.choice('+-*/')} {one()})",
        lambda: f"{pick.choice(UNARY)}({one()})",
        lambda: f"{pick.choice(BINARY)}({one()}, {one()})",
        lambda: f"where({one()} {pick.choice(['<', '>', '<=', '>='])} {one()}, {one()}, {one()})",
        lambda: f"(({one()} > {one()}) {pick.choice('+-')} ({one()} < {one()} or {one()} > 1))",
        lambda: f"{pick.choice(['sum', 'mean', 'norm', 'max', 'min', 'var', 'std', 'logsumexp', 'prod'])}({vector()})",
        lambda: f"{pick.choice(['sum', 'mean', 'trace', 'norm'])}({matrix_text(pick, depth - 1)})",
        lambda: f"(({vector()}) @ ({vector()}))",
    ]
    return pick.choice(ways)()


def vector_text(pick: Random, depth: int) -> str:
    """A random expression whose value is a vector."""

    def one() -> str:
        return vector_text(pick, depth - 1)

    def number() -> str:
        return number_text(pick, depth - 1)

    if depth < 1:
        return pick.choice(["x", "y", "A @ x", "B.T @ y", "x[::-1]", "A[0]", "W.T @ b", "ones(len(x))", "A[:, 1]"])
    ways = [
        lambda: f"({one()} {pick.choice('+-*/')} {one()})",
        lambda: f"({number()} {pick.choice('+-*/')} {one()})",
        lambda: f"{pick.choice(UNARY)}({one()})",
        lambda: f"{pick.choice(BINARY)}({one()}, {number()})",
        lambda: f"({matrix_text(pick, depth - 1)}) @ ({one()})",
        lambda: f"{pick.choice(['softmax', 'cumsum'])}({one()})",
        lambda: f"where({one()} > {number()}, {number()}, {one()})",
        lambda: f"(({one()} > 0) + ({one()} > {number()}))",
        lambda: f"sum({matrix_text(pick, depth - 1)}, axis={pick.choice([0, 1, -1])})",
    ]
    return pick.choice(ways)()


def matrix_text(pick: Random, depth: int) -> str:
    """A random expression whose value is a square matrix."""

    def one() -> str:
        return matrix_text(pick, depth - 1)

    if depth < 1:
        return pick.choice(["A", "B", "A.T", "outer(x, y)", "A @ B", "eye(len(x))", "diag(x)", "W.T @ W"])
    ways = [
        lambda: f"({one()} {pick.choice('+-*/')} {one()})",
        lambda: f"{pick.choice(UNARY)}({one()})",
        lambda: f"({one()}) @ ({one()})",
        lambda: f"inv({one()})",
        lambda: f"({one()}*{vector_text(pick, depth - 1)})",
    ]
    return pick.choice(ways)()


def run_random(target: str, seed: int, count: int, tmp_path: Path) -> None:
    """Functions of random expressions give the engine's numbers; most of the expressions have one."""
    if target in ("torch", "jax"):
        pytest.importorskip(target)
    pick = Random(seed)
    ran = 0
    for _ in range(count):
        script = number_text(pick, pick.choice([1, 2, 2, 3]))
        names = names_in(parse(Source(script)))
        try:
            found = emitted(script, derive(script, shapes={name: SHAPES[name] for name in names & SHAPES.keys()}))
            source_file(found, target)
            numbers(script, found)
        except GradcliError:  # no leaf, no closed form, no counterpart in the target, no value at the other point
            continue
        if target == "c":
            folder = tmp_path / str(ran)  # a library of the same name would not be loaded again
            folder.mkdir()
            runs_c(script, found, folder)
        else:
            runs(script, target, found)
        ran += 1
    assert ran > 0.4 * count


@pytest.mark.parametrize("target", ["numpy", pytest.param("torch", marks=pytest.mark.peers), "c"])
def test_random_expressions(target: str, tmp_path: Path) -> None:
    if target == "c" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    run_random(target, 1, 4, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize(
    "target", ["numpy", *(pytest.param(peer, marks=pytest.mark.peers) for peer in ("torch", "jax")), "c"]
)
def test_many_random_expressions(target: str, tmp_path: Path) -> None:
    if target == "c" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    run_random(target, 2, 80, tmp_path)


def test_negative_steps_and_columns_of_parts() -> None:
    """PyTorch has no negative steps; a column may be one of a part of a vector."""
    code = source_file(function_of("sum((A[:, ::-1] @ x)**2)"), "torch")
    assert "torch.flip(A, (1,))" in code and "::-1]" not in code.partition('"""\n\nimport')[2]
    with pytest.raises(GradcliError, match="GC512"):
        source_file(function_of("sum(A*x[None, :])"), "c")
    of_two = "sum(A[:, ::-1][:, 0]**2 * x)"  # whose gradient is another formula for more columns
    found = emitted(of_two, derive(of_two, shapes={"A": (3, 2)}))
    assert "torch.flip(A, (1,))[:, 0]" in source_file(found, "torch")


@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_sums_over_three_axes(target: str) -> None:
    script = r"\sum_{i=1}^n \log \sum_{k=1}^K \pi_k e^{-\|x_i - \mu_k\|^2}"
    written = source_file(function_of(script), target)
    assert "x[:, None]" in written
    if target == "numpy":
        exec(written, values := {"__name__": "written"})
        values["test_values"]()


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
        source_file(function_of("median(x)"), target)


@pytest.mark.parametrize(
    ("script", "sizes"), [("median(x)", "x=3"), ("median(x)*sum(A @ x)", "x=2"), ("median(x + y)", "x=3")]
)
def test_a_formula_of_one_size_is_no_function_of_all(script: str, sizes: str) -> None:
    with pytest.raises(GradcliError, match=f"another formula at other sizes\nhelp: .* --shape {sizes}"):
        function_of(script)


NAMES = """
NULL EOF NAN INFINITY HUGE_VAL HUGE_VALF FP_NAN FP_INFINITE FP_ZERO FP_NORMAL FP_SUBNORMAL FP_FAST_FMA FP_ILOGB0
MATH_ERRNO MATH_ERREXCEPT RAND_MAX BUFSIZ SEEK_SET SEEK_CUR SEEK_END EXIT_FAILURE EXIT_SUCCESS MB_CUR_MAX TMP_MAX
FOPEN_MAX FILENAME_MAX L_tmpnam P_tmpdir WNOHANG WUNTRACED M_PI M_E M_LN2 SIZE_MAX OVERFLOW UNDERFLOW DOMAIN SING
_IONBF _IOFBF _Bool _Complex _Alignas __func__ __LINE__ __FILE__ __linux__ _x x_ linux unix i386 stdin stdout stderr
errno far near huge small min max bool true false nullptr asm typeof constexpr complex auto break case char const do
double else enum extern float for goto if inline int long register restrict return short signed size_t sizeof static
struct switch union unsigned void volatile while default main value value_and_gradient wrong differs puts calloc free
pow fmax fabs sin exp sqrt log gamma lgamma tgamma y0 y1 yn j0 j1 jn isnan isinf signbit signgam exit abs div index
grad_x right_x grad_x_ i i1 t1 s1 det from to square sigmoid relu inverse np torch jax jnp math gradient test_values
numpy print float int len repr list dict lambda class def import None pass raise yield global nonlocal with try as
assert async await del elif except finally is from in and or not while self type object property sum range E PI
""".split()
SCRIPT = "{0}**2*sin(x) + relu({0})*square(x)"


def accepted(names: Iterable[str]) -> dict[str, SelfContained]:
    """The functions of the scripts with these names, where a script may have such a name."""
    functions = {}
    for name in names:
        script = SCRIPT.format(name)
        with contextlib.suppress(GradcliError):
            functions[name] = function_of(script)
    return functions


@pytest.mark.parametrize("target", TARGETS)
def test_a_name_that_means_something_in_a_language_is_another_name_there(target: str) -> None:
    kept = {"x", "A", "W1", "AB", "rate", "grad_x", "x_", "i1", "gamma", "y1"}
    names = [*NAMES, *kept, "float_", "NAN_", "sin_"]
    chosen = own_names(names, target)
    assert chosen.keys() == {*names} and len({*chosen.values()}) == len({*names})
    assert all(chosen[name] == name for name in kept)
    assert all(chosen[word] != word for word in ("value", "float", *(["NAN", "_x"] if target == "c" else ["lambda"])))


def test_files_with_names_of_python_run() -> None:
    """The gradient has the names of the script, whatever the arguments are called."""
    for name, function in accepted(["float", "int", "np", "math", "value", "relu", "sin", "print", "grad_x"]).items():
        runs_renamed(name, function, "numpy")


@pytest.mark.deep
@pytest.mark.parametrize(
    "target", ["numpy", *(pytest.param(peer, marks=pytest.mark.peers) for peer in ("torch", "jax"))]
)
def test_files_with_all_names_run(target: str) -> None:
    if target != "numpy":
        pytest.importorskip(target)
    functions = accepted(NAMES)
    assert len(functions) > 120
    for name, function in functions.items():
        runs_renamed(name, function, target)


def runs_renamed(name: str, function: SelfContained, target: str) -> None:
    module: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(source_file(function, target), f"<{name}>", "exec"), module)
    module["test_values"]()
    _, partials = module["value_and_gradient"](*function.at.values())
    assert partials.keys() == {name, "x"}


STRICT = ["-Wall", "-Wextra", "-Werror"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("standard", ["-std=c99", "-std=gnu17"])
def test_files_with_names_of_c_compile_and_are_right(standard: str, tmp_path: Path) -> None:
    names = ["NAN", "linux", "M_E", "grad_x", "right_x", "double", "sin", "_Bool", "i", "EOF", "wrong"]
    compile_and_run(accepted(names), standard, tmp_path)


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("standard", ["-std=c99", "-std=gnu17", "-std=gnu2x"])
def test_files_with_all_names_compile_and_are_right(standard: str, tmp_path: Path) -> None:
    compile_and_run(accepted(NAMES), standard, tmp_path)


def compile_and_run(functions: dict[str, SelfContained], standard: str, tmp_path: Path) -> None:
    assert len(functions) > 5
    for name, function in functions.items():
        source = tmp_path / f"of_{name}.c"
        source.write_text(source_file(function, "c"))
        command = ["cc", standard, "-O0", *STRICT, "-o", tmp_path / f"of_{name}", source, "-lm"]
        subprocess.run(command, check=True)
        assert b"are right" in subprocess.run([tmp_path / f"of_{name}"], check=True, capture_output=True).stdout, name


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("x**(4/2)*(1+2) + 2*3*y", "x**2*3 + 6*y"),
        ("x**3*2**3*sin(0)", "x**3*8*0"),
        ("exp(log(2))*x", "2*x"),
        ("x*(0.1 + 0.2)", "x*0.3"),
        ("sin(2*pi*3)*x + cos(pi/3)", "0*x + 0.5"),
        ("x*exp(2*log(3))*tan(pi/4)", "x*9*1"),
        ("x*(1/3 + 1e-15)", "x*0.3333333333333343"),
        ("--x*2", "x*2"),
        ("x - -2", "x - -2"),
        ("x*sqrt(pi/4)", "x*0.8862269254527579"),
        ("x*(-2)**3", "x*-8"),
        ("x*pi", "x*pi"),
        ("x/0 + x*log(0)", "x/0 + x*log(0)"),
        ("x*2**0.5", "x*1.4142135623730951"),
        ("x*(1/3)*10**400", "x*0.3333333333333333*10**400"),
        ("sum(x, axis=-1)*x[2*1]", "sum(x, axis=-1)*x[2]"),
    ],
)
def test_operations_on_constants_are_done_before(script: str, written: str) -> None:
    assert fold_constants(script, {"x", "y"}) == written
    assert fold_constants("e*2*x", {"x", "e"}) == "e*2*x"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loss.py"
    assert cli.main(["derive", "mean((A@x - b)**2)", "--emit", "numpy", "--output", str(path)]) == 0
    assert "right" in subprocess.run([sys.executable, path], check=True, capture_output=True, text=True).stdout
    assert cli.main(["derive", "x**2", "--emit", "c", "--hessian"]) == 2
    assert "GC721" in capsys.readouterr().err
    assert cli.main(["derive", "x**2", "--emit", "numpy", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["emitted"].startswith('"""The value and the gradient of x**2.')


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_jax_functions_broadcast(name: str) -> None:
    """Those of jax.lax do not."""
    assert PythonCode("jax", frozenset("x")).text(expression_of(f"{name}(0, x)")) == f"jnp.{name}(0, x)"
