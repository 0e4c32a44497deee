"""Every law on every operation. `pytest -k NAME` runs all laws of one; a new declaration is covered as it stands."""

from __future__ import annotations

import math
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from gradcli.primitives import catalogue
from tests.cases import cases
from tests.laws import CASE_LAWS, EXEMPT, KNOWN, PRIMITIVE_LAWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gradcli.graph.primitive import Primitive

NAMES = tuple(catalogue())

# Operations without a case, and why.
CASELESS = {
    "zeros": "made of sizes, it has no operand",
    "ones": "made of sizes, it has no operand",
    "eye": "made of sizes, it has no operand",
    "arange": "made of numbers known while lowering",
    "linspace": "made of numbers known while lowering",
    "rand": "made of sizes and a seed",
    "randn": "made of sizes and a seed",
    "name": "only a script that differentiates with respect to an intermediate makes it: tests/test_lowering.py",
    "fftfreq": "made of numbers known while lowering",
    "rfftfreq": "made of numbers known while lowering",
    "last": "only loops make it, with a body: tests/test_loops.py holds its laws",
    "turns": "only loops make it, with a body: tests/test_loops.py holds its laws",
    "larger_than_2x2": "it stands for the absence of a closed form",
}


# Laws that say nothing about whole kinds of operations: to which they apply, and why not to the others.
APPLIES: dict[str, tuple[Callable[[Primitive], bool], str]] = {
    "adjoint": (lambda p: p.kind != "elementwise", "both modes read the same partials, so it could not fail"),
    "math_equals_numpy": (lambda p: p.pointwise, "math computes single numbers"),
    "higher_by_sympy": (lambda p: p.pointwise, "arrays are judged to 80 digits"),
    "operands_are_opaque": (lambda p: not p.internal, "no script can call it"),
    "value_by_numpy": (lambda p: not p.internal, "no script can call it"),
    "jax_equals_numpy": (lambda p: not p.internal, "the functions that are made of it run on JAX"),
    "outside_is_diagnosed": (
        lambda p: not p.internal and any(map(math.isfinite, (x for d in p.domain for x in (d.low, d.high)))),
        "its domain is every number, or no script can call it",
    ),
    "examples": (lambda p: not p.internal or bool(p.examples), "no script can call it"),
    "refuses_what_numpy_refuses": (lambda p: bool(p.static), "it has no static argument"),
    "documented": (lambda p: not p.internal, "no script can call it"),
    "kinks": (lambda p: bool(p.kinks), "it has none"),
}
# Laws that need a library: one test stands for all of them where it is missing.
LIBRARIES = {"cupy_equals_numpy": "cupy", "jax_equals_numpy": "jax"}


def grid(laws: Iterable[str]) -> Iterator[object]:
    """A test for each operation and each law that applies to it."""
    for law in laws:
        library = LIBRARIES.get(law)
        if library is not None and find_spec(library) is None:
            absent = pytest.mark.skip(reason=f"{library} is not installed")
            yield pytest.param("*", law, id=f"all-{law}", marks=absent)
            continue
        for name, primitive in catalogue().items():
            if law in CASE_LAWS and name in CASELESS:
                continue
            if law in APPLIES and not APPLIES[law][0](primitive):
                continue
            if (law, name) in EXEMPT:
                continue
            known = KNOWN.get((law, name))
            marks = [pytest.mark.xfail(strict=True, reason=known)] if known else []
            yield pytest.param(name, law, id=f"{name}-{law}", marks=marks)


@pytest.mark.parametrize(("name", "law"), list(grid(CASE_LAWS)))
def test_law(name: str, law: str) -> None:
    """One law on all cases of one operation."""
    found = cases(name)
    assert found, f"{name} has no case: give it a sample, an example or a row in CASELESS"
    skipped: list[str] = []
    for case in found:
        try:
            CASE_LAWS[law](case)
        except pytest.skip.Exception as reason:
            skipped.append(str(reason))
        except Exception as problem:
            problem.add_note(f"the case: {case!r}")
            raise
    if len(skipped) == len(found):
        pytest.skip(skipped[0])


@pytest.mark.parametrize(("name", "law"), list(grid(PRIMITIVE_LAWS)))
def test_declaration(name: str, law: str) -> None:
    """One law on one declaration as a whole."""
    PRIMITIVE_LAWS[law](catalogue()[name])


def test_tables_name_what_exists() -> None:
    """A row about an operation or a law that is gone would hide something."""
    for law, name in (*EXEMPT, *KNOWN):
        assert name in catalogue(), name
        assert law in CASE_LAWS or law in PRIMITIVE_LAWS, law
    for name in CASELESS:
        assert name in catalogue()
        assert not cases(name), f"{name} has cases now"


def test_every_operation_has_two_oracles() -> None:
    """Each value is confirmed by at least two of: 80 digits, NumPy, symbols, balls; the table is printed."""
    counted: Counter[str] = Counter()
    poor = []
    laws = ("value_to_80_digits", "value_by_numpy", "value_by_sympy", "value_by_balls")
    for name in NAMES:
        if not cases(name):
            continue
        confirmed = []
        for law in laws:
            if (law, name) in EXEMPT or (law, name) in KNOWN:
                continue
            for case in cases(name):
                try:
                    CASE_LAWS[law](case)
                except pytest.skip.Exception:
                    continue
                confirmed.append(law)
                counted[law] += 1
                break
        excused = any((law, name) in EXEMPT for law in laws)  # for the reasons that stand there
        if len(confirmed) < 2 and not excused:
            poor.append((name, confirmed))
    print(f"\n{len(NAMES)} operations; values confirmed by: {dict(counted)}")
    assert not poor, poor


# --- the list of functions that the language promises ------------------------------------------------------------

PROMISED = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt "
    "cbrt rsqrt square abs sign pow hypot erf erfc erfinv gamma lgamma digamma polygamma beta sinc floor ceil "
    "round trunc mod sigmoid logsigmoid softplus relu leaky_relu elu selu gelu silu mish hardtanh hardsigmoid "
    "logaddexp xlogy minimum maximum clamp where heaviside sum mean prod max min amax amin var std norm logsumexp "
    "softmax log_softmax cumsum cumprod argmax argmin any all median sort reshape transpose swapaxes squeeze "
    "expand_dims broadcast_to flatten concatenate concat stack split pad roll flip tile repeat take gather diag "
    "triu tril zeros ones full eye arange linspace randn rand len shape dot matmul outer inner einsum trace det "
    "logdet slogdet inv solve cholesky qr eigvalsh svdvals matrix_power expm kron cross vecdot mse_loss l1_loss "
    "huber_loss binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss kl_div "
    "cosine_similarity arcsin arccos arctan arctan2 arcsinh arccosh arctanh power absolute diff moveaxis diagonal "
    "vstack hstack dstack column_stack array_split vsplit hsplit dsplit tensordot fft ifft rfft irfft fft2 "
    "fftfreq rfftfreq fftshift real imag angle conj eigh svd pinv array zeros_like ones_like reciprocal radians "
    "degrees factorial trapezoid logit betaln erfcinv norm_logpdf norm_pdf norm_cdf norm_ppf t_logpdf "
    "gamma_logpdf beta_logpdf chi2_logpdf poisson_logpmf dirichlet_logpdf multivariate_normal_logpdf j0 j1 jn i0 "
    "i1 iv gammainc gammaincc betainc"
).split()

# Calls of the functions that take something else than one array.
CALLED = {
    "atan2": "atan2(x, 2)", "arctan2": "arctan2(x, 2)", "pow": "pow(x, 2.5)", "power": "power(x, 2)",
    "hypot": "hypot(x, 2)", "polygamma": "polygamma(1, x)", "beta": "beta(x, 2)", "mod": "mod(x, 2)",
    "logaddexp": "logaddexp(x, 2)", "xlogy": "xlogy(x, 2)", "minimum": "minimum(x, 2)", "maximum": "maximum(x, 2)",
    "clamp": "clamp(x, 0, 1)", "where": "where(x > 0.5, x, 2)", "heaviside": "heaviside(x, 0.5)",
    "asin": "asin(x/4)", "acos": "acos(x/4)", "atanh": "atanh(x/4)", "erfinv": "erfinv(x/4)",
    "arcsin": "arcsin(x/4)", "arccos": "arccos(x/4)", "arctanh": "arctanh(x/4)",
    "acosh": "acosh(x + 1)", "arccosh": "arccosh(x + 1)",
    "reshape": "reshape(X, 4)", "swapaxes": "swapaxes(X, 0, 1)", "expand_dims": "expand_dims(X, 0)",
    "broadcast_to": "broadcast_to(x, (2, 3))", "concatenate": "concatenate((x, x))", "concat": "concat((x, x))",
    "stack": "stack((x, x))", "split": "split(x, 3)[0]", "pad": "pad(x, 1)", "roll": "roll(x, 1)",
    "tile": "tile(x, 2)", "repeat": "repeat(x, 2)", "take": "take(x, [0, 2])",
    "moveaxis": "moveaxis(X, 0, 1)", "tensordot": "tensordot(X, X, 1)", "array_split": "array_split(x, 2)[0]",
    **{name: f"{name}((x, x))" for name in ("vstack", "hstack", "dstack", "column_stack")},
    "diagonal": "diagonal(X)", "vsplit": "vsplit(X, 2)[0]", "hsplit": "hsplit(X, 2)[0]",
    "dsplit": "dsplit([X], 2)[0]",
    "logit": "logit(x/4)", "betaln": "betaln(x, 2)", "erfcinv": "erfcinv(x/4)", "norm_ppf": "norm_ppf(x/4)",
    **{name: f"{name}(x, 2)" for name in ("t_logpdf", "gamma_logpdf", "chi2_logpdf", "poisson_logpmf")},
    "beta_logpdf": "beta_logpdf(x/4, 2, 3)", "dirichlet_logpdf": "dirichlet_logpdf(x/4, [1, 2, 3])",
    "multivariate_normal_logpdf": "multivariate_normal_logpdf([1, 2], [0, 1], X)",
    "jn": "jn(2, x)", "iv": "iv(2, x)", "gammainc": "gammainc(2.5, x)", "gammaincc": "gammaincc(2, x)",
    "betainc": "betainc(2, 1.5, x/4)",
    "eigh": "eigh(X)[1]", "svd": "svd(X)[0]", "pinv": "pinv(X)",
    **{name: f"{name}(fft(x*x))" for name in ("real", "angle")}, "imag": "imag(fft(x + [0, 1, 3]))",
    **{name: f"abs({name}(x))" for name in ("fft", "ifft", "rfft")}, "conj": "abs(conj(fft(x)))",
    "fft2": "abs(fft2(X))", "fftfreq": "x*fftfreq(3)", "rfftfreq": "sum(x)*rfftfreq(4)",
    "gather": "gather(X, [[0, 1]], axis=0)", "diag": "diag(X)", "triu": "triu(X)", "tril": "tril(X)",
    "zeros": "x[0]*zeros(2)", "ones": "x[0]*ones(2)", "full": "full(3, x[0])", "eye": "x[0]*eye(2)",
    "arange": "x*arange(3)", "linspace": "x*linspace(0, 1, 3)", "randn": "x*randn(3, seed=1)",
    "rand": "x*rand(3, seed=1)", "len": "x*len(x)", "shape": "x*shape(x)[0]",
    "dot": "dot(x, x)", "matmul": "matmul(X, X)", "outer": "outer(x, x)", "inner": "inner(x, x)",
    "einsum": 'einsum("ij,jk->ik", X, X)', "trace": "trace(X)", "det": "det(X)", "logdet": "logdet(X)",
    "slogdet": "slogdet(X)[1]", "inv": "inv(X)", "solve": "solve(X, X)", "cholesky": "cholesky(X)", "qr": "qr(X)[1]",
    "eigvalsh": "eigvalsh(X)", "svdvals": "svdvals(X)", "matrix_power": "matrix_power(X, 3)", "expm": "expm(X)",
    "kron": "kron(X, X)", "cross": "cross(x, [1, 2, 3])", "vecdot": "vecdot(x, x)",
    "binary_cross_entropy": "binary_cross_entropy(x/4, [0, 1, 0])", "cross_entropy": "cross_entropy(X, [0, 1])",
    "nll_loss": "nll_loss(X, [0, 1])", "cosine_similarity": "cosine_similarity(x, [1, 2, 3])",
    **{name: f"{name}(x, [1, 2, 3])" for name in ("mse_loss", "l1_loss", "huber_loss", "kl_div")},
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits(x, [0, 1, 0])",
}  # fmt: skip

POINT = {"x": [0.75, 1.25, 2.5], "X": [[3.0, 0.5], [0.25, 2.0]]}


@pytest.mark.parametrize("name", PROMISED)
def test_promised_function(name: str) -> None:
    """Each name of the language's list can be called; value, gradient and Hessian of the sum are finite numbers."""
    import numpy as np

    from gradcli import calculator

    text = CALLED.get(name, f"{name}(x)")
    at = {leaf: value for leaf, value in POINT.items() if leaf in text.replace("exp", "").replace("max", "")}
    total = f"sum({text})"
    assert np.isfinite(calculator.evaluate(text, at=at).value).all()
    gradient = calculator.grad(total, at=at)
    assert all(np.isfinite(value).all() for value in gradient.gradient.values())
    second = calculator.hessian(total, at=at)
    assert all(np.isfinite(value).all() for row in second.hessian.values() for value in row.values())
    for prefix in ("np.",) if name in ("std", "var") else ("np.", "torch.") if text.startswith(name) else ():
        assert np.array_equal(calculator.evaluate(prefix + text, at=at).value, calculator.evaluate(text, at=at).value)
