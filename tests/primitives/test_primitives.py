"""Every law on every operation. `pytest -k NAME` runs all laws of one; a new declaration is covered as it stands."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from gradcli.primitives import catalogue, functions
from tests.support.cases import cases
from tests.support.laws import CASE_LAWS, EXEMPT, KNOWN, PRIMITIVE_LAWS
from tests.support.rows import judged

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
    "named": "only a script that differentiates with respect to an intermediate makes it: tests/lowering/test_lowering.py",
    "real_part": "only a program on complex numbers has it: the law complex_gradient runs through it",
    "times_i": "only a program on complex numbers has it: the law complex_gradient runs through it",
    "fftfreq": "made of numbers known while lowering",
    "rfftfreq": "made of numbers known while lowering",
    "last": "only loops make it, with a body: tests/transforms/test_loops.py holds its laws",
    "iterations": "only loops make it, with a body: tests/transforms/test_loops.py holds its laws",
    "larger_than_2x2": "it stands for the absence of a closed form",
    **{
        name: f"the laws of {name.removesuffix('_derivative')} run through it"
        for name, primitive in catalogue().items()
        if primitive.static == ("orders",)
    },
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
# Laws that need a library.
LIBRARIES = {"cupy_equals_numpy": "cupy", "jax_equals_numpy": "jax"}


def laws_of(name: str, laws: Iterable[str]) -> Iterator[str]:
    """The laws that apply to an operation, without those whose library is missing."""
    for law in laws:
        if law in LIBRARIES and find_spec(LIBRARIES[law]) is None:
            continue
        if law in CASE_LAWS and name in CASELESS:
            continue
        if law in APPLIES and not APPLIES[law][0](catalogue()[name]):
            continue
        if (law, name) not in EXEMPT:
            yield law


def expected_of(name: str, law: str, test: Callable[[], None]) -> None:
    """Run a law; one that is known to fail has to."""
    if (law, name) not in KNOWN:
        test()
        return
    with pytest.raises(Exception, match=""):
        test()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CASELESS])
def test_law(name: str) -> None:
    """Every law on all cases of one operation."""
    judged((law, partial(expected_of, name, law, partial(on_all_cases, name, law))) for law in laws_of(name, CASE_LAWS))


def on_all_cases(name: str, law: str) -> None:
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


@pytest.mark.parametrize("name", [name for name in NAMES if any(laws_of(name, PRIMITIVE_LAWS))])
def test_declaration(name: str) -> None:
    """Every law of a declaration as a whole."""
    laws = laws_of(name, PRIMITIVE_LAWS)
    judged((law, partial(expected_of, name, law, partial(PRIMITIVE_LAWS[law], catalogue()[name]))) for law in laws)


@pytest.mark.parametrize("law", LIBRARIES)
def test_a_law_has_its_library(law: str) -> None:
    """Where it is missing, this test is skipped instead of one for each operation."""
    pytest.importorskip(LIBRARIES[law])


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
    "logdet slogdet inv solve solve_triangular cholesky qr eigvalsh svdvals matrix_power expm kron cross vecdot mse_loss l1_loss "
    "huber_loss binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss kl_div "
    "cosine_similarity arcsin arccos arctan arctan2 arcsinh arccosh arctanh power absolute diff moveaxis diagonal "
    "vstack hstack dstack column_stack array_split vsplit hsplit dsplit tensordot fft ifft rfft irfft fft2 "
    "fftfreq rfftfreq fftshift real imag angle conj eigh svd pinv array zeros_like ones_like reciprocal radians "
    "degrees factorial trapezoid logit betaln erfcinv norm_logpdf norm_pdf norm_cdf norm_ppf t_logpdf "
    "gamma_logpdf beta_logpdf chi2_logpdf poisson_logpmf dirichlet_logpdf multivariate_normal_logpdf j0 j1 jn i0 "
    "i1 iv gammainc gammaincc betainc quantile cummax cummin convolve interp vander"
).split()


def test_promised_functions_exist() -> None:
    """Whatever has a name in scripts obeys the laws above, under this name or another one."""
    assert set(PROMISED) <= set(functions())
