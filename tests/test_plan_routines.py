"""How far whole routines may move: every result within the gaps of the operands lies within the gap of the result.

Operands are moved to the ends of their gaps and to random places within them; the results that they give come from the
routine itself and from mpmath with 40 digits. Gaps that are far too large are no news, so their share that is used is
looked at too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest

from gradcli import calculator
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import namespace
from gradcli.execution.plans import gaps, routines
from gradcli.execution.plans.bounds import bounds
from gradcli.primitives import catalogue
from gradcli.rendering import planned
from tests.test_plans import question, reordered

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = float(np.finfo(float).eps) / 2
SIZES = [0.0, 1e-15, 1e-9, 1e-4, 3e-2]


def ends(random: np.random.Generator, x: Any, gap: Any) -> Any:
    """Each entry somewhere within its gap, mostly at an end."""
    moved = x + random.choice([-1.0, -1.0, 1.0, 1.0, 0.3], np.shape(x)) * gap
    return np.where(np.abs(moved - x) <= gap, moved, x)


def held(found: Any, value: Any, gap: Any) -> Any:
    """The share of the gap that is used; an assertion fails where it is not enough."""
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(found, float) - np.asarray(value, float))
    assert np.all((off <= gap) | np.isinf(gap)), (np.max(off - gap), np.max(off))
    known = np.isfinite(gap) & (gap > 0)
    return np.max(off[known] / gap[known], initial=0) if np.ndim(off) else off / gap


def exact_product(x: Any) -> float:
    return float(mpmath.fprod([mpmath.mpf(float(one)) for one in x]))


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(size: float, dtype: Any) -> None:
    random, unit, used = np.random.default_rng(0), float(np.finfo(dtype).eps) / 2, []
    for _ in range(200):
        x = (random.uniform(0.2, 3, 9) * random.choice([-1, 1], 9)).astype(dtype)
        gap = size * np.abs(x).astype(float) * random.random(9)
        value, told = np.prod(x), routines.product(x, gap, None, unit)
        running, along = np.cumprod(x), routines.running_product(x, gap, 0, unit)
        for _ in range(10):
            moved = ends(random, x.astype(float), gap).astype(dtype)
            moved = np.clip(moved, x - gap, x + gap) if dtype is np.float64 else moved
            if np.any(np.abs(moved - x.astype(float)) > gap):
                continue
            order = random.permutation(9)
            used.append(held(np.prod(moved[order]), value, told))
            held(exact_product(moved), value, told)
            held(np.cumprod(moved), running, along)
    if used and size > 1e-14 and dtype is np.float64:
        assert max(used) > 0.2


def test_products_that_leave_the_range_are_not_known() -> None:
    x, gap = np.array([1e200, 1e200, 1e-200, 1e-200]), np.full(4, 1e-220)
    with np.errstate(over="ignore"):
        assert np.isinf(routines.product(x, gap, None, UNIT))
        assert np.isinf(routines.running_product(x[2:], gap[2:], 0, UNIT)[-1])
    assert routines.product(np.array([0.0, 2.0]), np.array([0.0, 0.1]), None, UNIT) == 0
    assert np.isinf(routines.product(np.array([0.0, 2.0]), np.array([0.1, 0.1]), None, UNIT))


@pytest.mark.parametrize("size", SIZES[1:])
def test_recurrences(size: float) -> None:
    random, used = np.random.default_rng(1), []
    for _ in range(200):
        a, c = random.normal(size=(2, 3, 12))
        da, dc = [size * np.abs(x) * random.integers(0, 2, x.shape) for x in (a, c)]

        def run(a: Any, c: Any) -> Any:
            rows = [c[..., 0]]
            for i in range(1, c.shape[-1]):
                rows.append(a[..., i] * rows[-1] + c[..., i])
            return np.stack(rows, -1)

        value = run(a, c)
        told = routines.recurrence(a, c, (da, dc), value, UNIT)
        used += [held(run(ends(random, a, da), ends(random, c, dc)), value, told) for _ in range(10)]
    assert max(used) > 0.05


@pytest.mark.parametrize("size", SIZES[1:])
def test_orders(size: float) -> None:
    random, certain = np.random.default_rng(2), 0
    for _ in range(300):
        x = random.normal(size=(4, 6))
        gap = size * random.random((4, 6))
        told = routines.ordered(gap, 1)
        sure = routines.order_is_certain(x, gap, 1)
        certain += sure
        for _ in range(10):
            moved = ends(random, x, gap)
            held(np.sort(moved, 1), np.sort(x, 1), told + 1e-15)
            assert not sure or np.array_equal(np.argsort(moved, 1), np.argsort(x, 1))
    assert certain or size > 1e-3
    assert not routines.order_is_certain(np.array([1.0, 1.0]), np.array([0.0, 1e-16]), 0)
    assert routines.order_is_certain(np.array([1.0, 1.0]), np.zeros(2), 0)


GAMMAS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("gamma", "gamma", mpmath.gamma), ("lgamma", "gammaln", mpmath.loggamma), ("digamma", "psi", mpmath.digamma),
    ("polygamma1", "", lambda x: mpmath.polygamma(1, x)), ("polygamma2", "", lambda x: mpmath.polygamma(2, x)),
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize(("name", "word", "exact"), GAMMAS, ids=[row[0] for row in GAMMAS])
def test_gamma_functions(name: str, word: str, exact: Any, size: float) -> None:
    import scipy.special

    order = int(name[-1]) if name[-1].isdigit() else 0

    def function(x: Any) -> Any:
        return scipy.special.polygamma(order, x) if order else getattr(scipy.special, word)(x)

    random = np.random.default_rng(3)
    x = np.concatenate([10.0 ** random.uniform(-2, 1.8, 300), 1.4616321449683622 + 0.01 * random.normal(size=60)])
    gap = size * x * random.random(x.shape)
    gap[::9] = 0
    value = function(x)
    told = gaps.of_gamma(word, function, value, x, gap, UNIT)
    assert np.isfinite(told).all() and not told[::9].any()
    for _ in range(3):
        moved = ends(random, x, gap)
        held(function(moved), value, told)
        with mpmath.workdps(40):
            right = [float(exact(mpmath.mpf(float(one))).real) for one in moved]
            held(np.array(right)[gap > 0], value[gap > 0], told[gap > 0])
    assert np.isinf(gaps.of_gamma(word, function, function(np.array([0.5])), np.array([0.5]), np.array([0.6]), UNIT))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_sinc_and_its_derivatives(n: int) -> None:
    random = np.random.default_rng(4)
    primitive: Any = catalogue()["sinc_derivative" if n else "sinc"]
    xp, params = namespace("numpy", "float64"), {"n": n} if n else {}
    x = random.normal(size=400) * 10.0 ** random.integers(-4, 2, 400)
    gap = np.abs(x) * 10.0 ** random.uniform(-16, -3, 400)
    value = primitive.impl(xp, x, **params)
    told = gaps.of_sinc(n, gap, UNIT)
    for _ in range(5):
        moved = ends(random, x, gap)
        held(primitive.impl(xp, moved, **params), value, told)
    with mpmath.workdps(60):
        right = []
        for one in moved[:120]:
            t = mpmath.mpf(float(one))
            right.append(float(mpmath.quad(lambda s, t=t: (mpmath.pi * s) ** n * mpmath.cos(mpmath.pi * s * t + n * mpmath.pi / 2), [0, 0.5, 1]) if abs(t) < 3 else mpmath.diff(mpmath.sincpi, t, n)))  # fmt: skip
        held(np.array(right), value[:120], told[:120])


def test_remainders_and_steps() -> None:
    random = np.random.default_rng(5)
    x, y = random.normal(size=2_000) * 3, np.full(2_000, 0.3)
    gap = 10.0 ** random.uniform(-16, -1, 2_000)
    for ufunc, other in ((np.remainder, y), (np.heaviside, y), (np.heaviside, np.ones(2_000))):
        value = ufunc(x, other)
        told = gaps.of_function(ufunc, value, [x, other], [gap, None])
        for _ in range(20):
            held(ufunc(ends(random, x, gap), other), value, told)
    assert np.median(gaps.of_function(np.remainder, np.remainder(x, y), [x, y], [gap, None])) < 0.01


# --- matrices -------------------------------------------------------------------------------------------------


def matrices(random: np.random.Generator, n: int, condition: float) -> Any:
    left, right = [np.linalg.qr(random.normal(size=(n, n)))[0] for _ in range(2)]
    return left @ np.diag(condition ** -np.linspace(0, 1, n)) @ right * 10.0 ** random.integers(-2, 3)


def in_digits(function: Callable[[Any], Any], *arrays: Any) -> Any:
    with mpmath.workdps(40):
        found = function(*[mpmath.matrix(array.tolist()) for array in arrays])
        return np.array(found.tolist(), float) if isinstance(found, mpmath.matrix) else float(found)


@pytest.mark.parametrize("size", SIZES[:4])
@pytest.mark.parametrize("condition", [2.0, 1e3, 1e7])
def test_inverses_solutions_and_determinants(size: float, condition: float) -> None:
    random, used = np.random.default_rng(6), {"inv": [0.0], "solve": [0.0], "det": [0.0]}
    for n in (1, 2, 3, 5, 8):
        a = matrices(random, n, condition if n > 1 else 1.0)
        b = random.normal(size=(n, 2))
        da, db = [size * np.abs(x) * random.random(x.shape) / condition for x in (a, b)]
        inverse, x = np.linalg.inv(a), np.linalg.solve(a, b)
        det, log = np.asarray(np.linalg.det(a)), np.asarray(np.linalg.slogdet(a)[1])
        told = {
            "inv": routines.inverse(a, da, inverse, UNIT), "solve": routines.solution(a, b, (da, db), x, UNIT),
            "det": routines.determinant(a, da, det, UNIT), "log": routines.logarithm(a, da, log, UNIT),
        }  # fmt: skip
        assert all(np.isfinite(one).all() for one in told.values()), (n, condition, told)
        for _ in range(6):
            moved, right = ends(random, a, da), ends(random, b, db)
            used["inv"].append(held(np.linalg.inv(moved), inverse, told["inv"]))
            used["solve"].append(held(np.linalg.solve(moved, right), x, told["solve"]))
            used["det"].append(held(np.linalg.det(moved), det, told["det"]))
            held(np.linalg.slogdet(moved)[1], log, told["log"])
        held(in_digits(lambda m: m**-1, moved), inverse, told["inv"])
        held(in_digits(mpmath.lu_solve, moved, right[:, :1]), x[:, :1], told["solve"][:, :1])
        held(in_digits(mpmath.det, moved), det, told["det"])
    if size == SIZES[3]:
        assert min(max(one) for one in used.values()) > 1e-3, used


@pytest.mark.parametrize("size", SIZES[:4])
def test_spectra_and_factors(size: float) -> None:
    random, used = np.random.default_rng(7), []
    for n in (1, 2, 4, 7):
        a = random.normal(size=(n, n + 1))
        da = size * random.random(a.shape) * np.abs(a)
        values = np.linalg.svd(a)[1]
        told = routines.spectrum(a, da, UNIT)
        s, ds = a @ a.T + np.eye(n), size * np.ones((n, n))
        roots, lower = np.linalg.eigvalsh(s), np.linalg.cholesky(s)
        for _ in range(10):
            used.append(held(np.linalg.svd(ends(random, a, da))[1], values, told))
            moved = ends(random, s, ds)
            moved = np.tril(moved) + np.tril(moved, -1).T
            held(np.linalg.eigvalsh(moved), roots, routines.spectrum(s, ds, UNIT))
            held(np.linalg.cholesky(moved), lower, routines.factor(s, ds, lower, UNIT))
    assert size < 1e-10 or max(used) > 0.1


@pytest.mark.parametrize("size", SIZES[:4])
def test_cofactors(size: float) -> None:
    random, used = np.random.default_rng(8), []
    cofactors: Any = catalogue()["cof0"].impl
    xp = namespace("numpy")
    for n in (1, 2, 4, 7):
        a = random.normal(size=(n, n)) + 2 * np.eye(n)
        da = size * random.random(a.shape) * np.abs(a)
        value = cofactors(xp, a, ranks=(2,))
        told = routines.cofactors(a, da, value, UNIT)
        for _ in range(10):
            moved = ends(random, a, da)
            used.append(held(cofactors(xp, moved, ranks=(2,)), value, told))
            held(in_digits(lambda right: mpmath.det(right) * (right**-1).T, moved), value, told)
    assert size < 1e-10 or max(used) > 0.1
    assert np.isfinite(told).all() or size > 1e-9


def test_singular_matrices_have_no_bound() -> None:
    a, gap = np.ones((2, 2)), np.full((2, 2), 1e-16)
    assert np.isinf(routines.inverse(a, gap, np.full((2, 2), np.nan), UNIT)).all()
    assert np.isinf(routines.determinant(a, gap, np.array(0.0), UNIT))
    assert np.isinf(routines.factor(a, gap, np.tril(a), UNIT)[0, 0])
    stack = np.stack([a, np.eye(2)])
    told = routines.inverse(stack, np.stack([gap, gap]), np.stack([a, np.eye(2)]), UNIT)
    assert np.isinf(told[0]).all() and np.isfinite(told[1]).all()


# --- whole programs -------------------------------------------------------------------------------------------

LEAVES = {"X": (5, 7), "Y": (5, 7), "M": (4, 6), "N": (6, 4)}
VECTOR, SQUARE = "y = sum(X*Y, axis=1)/9\n", "A = M@N + 9*eye(4)\n"
KNOWN = [
    *(VECTOR + text for text in (
        "sum(cumprod(y)**2)", "prod(y)", "sum(lgamma(y))", "sum(gamma(y))", "sum(polygamma(1, y))", "sum(sinc(y))",
        "median(y)", "sum(sort(y)*arange(5))", "sum(heaviside(y, 1)*y)", "sum(mod(y, 0.3))", "norm(y)",
    )),
    *(SQUARE + text for text in (
        "sum(inv(A)**2)", "sum(solve(A, ones(4))**2)", "logdet(A@A.T)", "sum(cholesky(A@A.T))", "sum(tril(A)**2)",
        "s, l = slogdet(A)\nl", "sum(matrix_power(A, -1))", "det(A)",
    )),
]  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_bounds_are_known_and_hold_for_any_order_of_additions(text: str) -> None:
    random = np.random.default_rng(8)
    used = []
    for _ in range(5):
        names = "XY" if text.startswith(VECTOR) else "MN"
        tape, values = question(text, {name: random.uniform(0.5, 1.5, LEAVES[name]) for name in names})
        found = bounds(tape, values)
        assert all(np.isfinite(bound.gap).all() for bound in found)
        for seed in range(5):
            with reordered(seed):
                noisy = Tape(tape.outputs, tape.data).run(values, backend="numpy")
            used += [held(one, bound.value, bound.gap) for one, bound in zip(noisy, found, strict=True)]
    assert max(map(float, used)) > 1e-4


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("sum(qr(X@X.T)[1])", "qr_q"),
        ("sum(eigvalsh(X@X.T))", "eigvecs"),
        ("sum(X)/(sum(X) - sum(X))", "div"),
        ("sum(expm(X@X.T))", "frechet"),
    ],
)
def test_what_nobody_bounds_says_so(text: str, lost: str) -> None:
    report = calculator.plan(text, at={"X": np.random.default_rng(0).normal(size=(3, 4))})
    assert report.bounds[1].kind == "unknown"
    assert ", ".join(report.bounds[1].lost) == lost
    remarks = [line for line in planned.remarks(report) if line.startswith("No bound is known")]
    assert len(remarks) == 1 and f"{lost}: sums in front of them" in remarks[0]


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ("sum(inv(A@A.T + eye(3))**2)", "inv"),
        ("det(A@A.T + eye(3))", "cof0, det"),
        ("sum(A@A.T)", None),
        ("sum(inv(A[:,:3] + eye(3))**2)", None),  # it reads what cannot move
    ],
)
def test_what_is_taken_for_granted_is_told(text: str, trusted: str | None) -> None:
    report = calculator.plan(text, at={"A": np.random.default_rng(0).uniform(size=(3, 4))})
    told = [line for line in planned.remarks(report) if line.startswith("Taken to be exact")]
    assert told == (
        [] if trusted is None else [f"Taken to be exact for a matrix within 10 n u |A| of theirs: {trusted}."]
    )
