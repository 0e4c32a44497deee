"""The namespaces against NumPy and each other: every function of math, entries put and added, matrices that are bad."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.special

from gradcli.base.diagnostics import GradcliError
from gradcli.execution import namespaces
from gradcli.execution.namespaces import BadIndex, Unavailable, namespace
from gradcli.execution.namespaces.math_ import TABLE
from tests.support.emulated_device import COMPILER, emulated
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_FUNCTIONS = {"pi", "e", "inf", "nan", "cast", "where", "full_like", "clip"}


def ulps(one: float, other: float) -> float:
    if one == other or (one != one and other != other):
        return 0.0
    return abs(one - other) / max(math.ulp(abs(one)), math.ulp(abs(other)))


SEEDED = np.random.default_rng(1)
NUMBERS = np.concatenate([
    [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, -0.25, -0.5, -1.0, -1.5, -2.5, 40.0, -40.0, 1e-9, -1e-9, 0.3, 0.65],
    SEEDED.uniform(-6, 6, 300),
    SEEDED.uniform(-25, 25, 100),
    np.exp(SEEDED.uniform(-40, 3, 100)),
    SEEDED.uniform(-1, 1, 300),
])  # fmt: skip
LOOSE = {"erfc": 600}  # SciPy's tail, not Python's, which is right within 3 ulp
ARITY = {"round": 1, "zeros_like": 1, "ones_like": 1}


@all_rows("name", sorted(set(TABLE) - NOT_FUNCTIONS))
def test_math_is_numpy_on_floats(name: str) -> None:
    """Within 4 ulp where `math` answers at all; where it raises, NumPy is asked by the evaluator."""
    function, reference = getattr(namespace("math"), name), getattr(namespace("numpy"), name)
    others = np.roll(NUMBERS, 7)
    columns = (NUMBERS, others)[: ARITY.get(name) or reference.nin]
    with np.errstate(all="ignore"):
        expected = reference(*columns)
    compared = 0
    for position, operands in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        try:
            found = function(*operands)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        there = expected[position]
        assert isinstance(found, (float, bool)), (name, found)
        assert isinstance(found, bool) == (there.dtype == bool)
        assert ulps(float(found), float(there)) <= LOOSE.get(name, 4), (name, operands, found, there)
        if found == 0 and there == 0 and name not in {"mod", "remainder", "fmod"}:
            assert math.copysign(1, found) == math.copysign(1, there), (name, operands)
        compared += 1
    assert compared > 150


@pytest.mark.parametrize("name", ["maximum", "minimum", "sign", "heaviside", "abs"])
def test_math_passes_nan_on_as_numpy_does(name: str) -> None:
    function, reference = getattr(namespace("math"), name), getattr(np, name)
    arity = 1 if name in ("sign", "abs") else 2
    for operands in [(math.nan, 1.0)[:arity], (1.0, math.nan)[:arity], (math.nan, math.nan)[:arity]]:
        assert str(function(*operands)) == str(float(reference(*operands)))


def test_math_says_what_it_lacks() -> None:
    xp = namespace("math")
    for name in ("digamma", "concatenate", "erfinv", "inv"):
        with pytest.raises(Unavailable):
            getattr(xp, name)
    with pytest.raises(Unavailable):
        xp.cast(1.0, "int")
    assert xp.where(True, 1.0, 2.0) == 1.0
    assert xp.cast(True, "float") == 1.0
    assert xp.cast(0.5, "bool") is True


# --- array namespaces ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["numpy", "jax", "cupy", "stand-in"])
def xp(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Every array namespace; one whose library is missing is shown as skipped."""
    if request.param == "stand-in":
        if COMPILER is None:
            pytest.skip("no g++ to compile kernels with")
        with emulated():
            yield namespace("cupy")
        return
    if request.param != "numpy":
        pytest.importorskip(request.param)
    made = namespace(request.param)
    with made.arithmetic():
        yield made


def near(xp: Any, found: Any, expected: Any) -> None:
    np.testing.assert_allclose(xp.fetch(found), expected, rtol=1e-12, atol=1e-13)


def test_numbers_and_constants(xp: Any) -> None:
    assert xp.array(1.0) / xp.array(0.0) == math.inf
    assert xp.fetch(xp.spread(xp.array(2.5), (2, 3))).tolist() == [[2.5] * 3] * 2
    assert xp.array([1, 2]).dtype == np.float64
    assert xp.kind_of(xp.array(True, "bool")) == "bool"
    assert xp.kind_of(xp.array([1, 2], "int")) == "int"


def test_casts(xp: Any) -> None:
    x = xp.array([1.0, 0.0, -2.0])
    assert xp.fetch(xp.cast(x > 0, "float")).tolist() == [1.0, 0.0, 0.0]
    assert xp.fetch(xp.cast(x, "int")).tolist() == [1, 0, -2]
    assert xp.kind_of(xp.cast(x, "int")) == "int"
    for wrong in (1.5, math.nan, math.inf, 1e300):
        with pytest.raises(BadIndex, match="is not a whole number"):
            xp.cast(xp.array([0.0, wrong]), "int")


def test_entries_put_and_added(xp: Any) -> None:
    x = xp.array(np.arange(6.0).reshape(2, 3))
    placed = xp.fetch(xp.place(x, (2, 5), (..., slice(4, None, -2))))
    assert placed.tolist() == [[2, 0, 1, 0, 0], [5, 0, 4, 0, 3]]
    once = xp.fetch(xp.put_add(x, xp.positions((3, 0, 1)), -1, 4))
    assert once.tolist() == [[1, 2, 0, 0], [4, 5, 0, 3]]
    twice = xp.fetch(xp.put_add(x, xp.positions((1, 1, 0)), -1, 2))
    assert twice.tolist() == [[2, 1], [5, 7]]
    rows = xp.fetch(xp.put_add(x, xp.positions((1, 1)), -2, 3))
    assert rows.tolist() == [[0, 0, 0], [3, 5, 7], [0, 0, 0]]
    assert xp.fetch(xp.put_add(x[:, :0], xp.positions(()), -1, 2)).tolist() == [[0, 0], [0, 0]]


def test_entries_by_an_index_array(xp: Any) -> None:
    x = xp.array(np.arange(6.0).reshape(2, 3))
    index = xp.array([[2, 0], [-1, -1]], "int")
    assert xp.fetch(xp.take_along_axis(x, index, axis=-1)).tolist() == [[2, 0], [5, 5]]
    added = xp.put_along_add(xp.array([[1.0, 2.0], [3.0, 4.0]]), index, -1, 3)
    assert xp.fetch(added).tolist() == [[2, 0, 1], [0, 0, 7]]
    columns = xp.array([[1, 0, 1]], "int")
    assert xp.fetch(xp.take_along_axis(x, columns, axis=-2)).tolist() == [[3, 1, 5]]
    assert xp.fetch(xp.put_along_add(x[:1], columns, -2, 2)).tolist() == [[0, 1, 0], [0, 0, 2]]
    for wrong in (3, -4):
        with pytest.raises(BadIndex, match=f"index {wrong} is out of range for an axis of 3"):
            xp.take_along_axis(x, xp.array([[wrong], [0]], "int"), axis=-1)
        with pytest.raises(BadIndex):
            xp.put_along_add(xp.array([[1.0], [1.0]]), xp.array([[wrong], [0]], "int"), -1, 3)


def test_alignment_of_batch_axes(xp: Any) -> None:
    x, y = xp.array(np.ones((4, 3))), xp.array(np.ones((2, 1, 5, 6)))
    one, other = xp.aligned([x, y], (1, 2))
    assert one.shape == (2, 4, 3)
    assert other.shape == (2, 4, 5, 6)


def test_special_functions(xp: Any) -> None:
    x = np.array([0.3, 1.7, 2.5])
    for name in ("erf", "erfc", "gammaln", "digamma", "gamma", "lgamma"):
        expected = getattr(scipy.special, "gammaln" if name == "lgamma" else name)(x)
        np.testing.assert_allclose(xp.fetch(getattr(xp, name)(xp.array(x))), expected, rtol=1e-11)
    near(xp, xp.zeta(xp.array(2.0), xp.array(x)), scipy.special.zeta(2.0, x))
    assert xp.fetch(xp.argsort(xp.array([2.0, 1.0, 1.0]), axis=-1, stable=True)).tolist() == [1, 2, 0]
    with pytest.raises(Unavailable, match="has no no_such_function"):
        _ = xp.no_such_function


GOOD = np.array([[2.0, 1.0], [1.0, 3.0]])
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
UNKNOWN = np.array([[1.0, math.nan], [0.0, 1.0]])
ENDLESS = np.array([[math.inf, 0.0], [0.0, 1.0]])


def test_a_singular_matrix_is_nan_alone(xp: Any) -> None:
    batch = xp.array(np.stack([GOOD, SINGULAR, 2 * GOOD, UNKNOWN, ENDLESS]).reshape(5, 1, 2, 2))
    found = xp.fetch(xp.inv(batch))
    assert found.shape == (5, 1, 2, 2)
    np.testing.assert_allclose(found[0, 0], np.linalg.inv(GOOD), rtol=1e-13)
    np.testing.assert_allclose(found[2, 0], np.linalg.inv(GOOD) / 2, rtol=1e-13)
    assert np.isnan(found[[1, 3, 4]]).all()
    b = np.arange(6.0).reshape(2, 3)
    solved = xp.fetch(xp.solve(batch, xp.array(b)))
    assert solved.shape == (5, 1, 2, 3)
    np.testing.assert_allclose(solved[0, 0], np.linalg.solve(GOOD, b), rtol=1e-13)
    assert np.isnan(solved[[1, 3, 4]]).all()
    assert np.isnan(xp.fetch(xp.inv(xp.array(SINGULAR)))).all()
    many = xp.fetch(xp.solve(xp.array(GOOD), xp.array(np.stack([b, 2 * b]))))
    np.testing.assert_allclose(many[1], 2 * many[0], rtol=1e-14)


def test_factors_of_bad_matrices_are_nan(xp: Any) -> None:
    batch = xp.array(np.stack([GOOD, INDEFINITE, UNKNOWN]))
    lower = xp.fetch(xp.cholesky(batch))
    np.testing.assert_allclose(lower[0], np.linalg.cholesky(GOOD), rtol=1e-14)
    assert np.isnan(lower[1:]).all()
    with_nan = xp.array(np.stack([GOOD, UNKNOWN]))
    near(xp, xp.eigvalsh(with_nan), np.stack([np.linalg.eigvalsh(GOOD), [math.nan] * 2]))
    values, vectors = map(xp.fetch, xp.eigh(with_nan))
    np.testing.assert_allclose(vectors[0] @ np.diag(values[0]) @ vectors[0].T, GOOD, rtol=1e-13)
    assert np.isnan(vectors[1]).all()
    q, r = map(xp.fetch, xp.qr(with_nan))
    np.testing.assert_allclose(q[0] @ r[0], GOOD, rtol=1e-13)
    assert np.isnan(q[1]).all()
    assert np.isnan(r[1]).all()
    u, s, v = map(xp.fetch, xp.svd(with_nan))
    np.testing.assert_allclose(u[0] @ np.diag(s[0]) @ v[0], GOOD, rtol=1e-13)
    assert np.isnan(s[1]).all()
    wide = xp.array(np.arange(6.0).reshape(2, 3))
    assert [x.shape for x in xp.svd(wide)] == [(2, 2), (2,), (2, 3)]
    assert [x.shape for x in xp.qr(wide)] == [(2, 2), (2, 3)]


def test_determinants_and_exponentials(xp: Any) -> None:
    batch = xp.array(np.stack([GOOD, SINGULAR]))
    near(xp, xp.det(batch), [5.0, 0.0])
    sign, logarithm = map(xp.fetch, xp.slogdet(batch))
    assert sign.tolist() == [1.0, 0.0]
    assert logarithm == pytest.approx([math.log(5), -math.inf])
    turn = np.array([[0.0, -3.0], [3.0, 0.0]])
    expected = [[math.cos(3), -math.sin(3)], [math.sin(3), math.cos(3)]]
    found = xp.fetch(xp.expm(xp.array(np.stack([turn, UNKNOWN, 0 * turn]))))
    np.testing.assert_allclose(found[0], expected, rtol=1e-13, atol=1e-14)
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[2], np.eye(2))
    nilpotent = np.triu(np.full((3, 3), 40.0), 1)
    near(xp, xp.expm(xp.array(nilpotent)), np.eye(3) + nilpotent + nilpotent @ nilpotent / 2)


def test_numbers_from_outside(xp: Any) -> None:
    from fractions import Fraction

    from gradcli.graph.arrays import ArrayData

    exact = ArrayData((2, 2), (1, Fraction(1, 3), 10**400, -0.0))
    assert xp.fetch(xp.numbers(exact)).tolist() == [[1.0, 1 / 3], [math.inf, -0.0]]
    assert xp.fetch(xp.numbers([Fraction(1, 3), 10**30])).tolist() == [1 / 3, 1e30]
    for wrong in ("text", [["1"]], [object()], [1j], 1j, np.array([1j]), np.array(["a"]), [None]):
        with pytest.raises(TypeError):
            xp.numbers(wrong)
    with pytest.raises(ValueError, match="inhomogeneous"):
        xp.numbers([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_widths(name: str) -> None:
    pytest.importorskip(name)
    for dtype in ("float32", "complex128"):
        xp = namespace(name, dtype)
        with xp.arithmetic():
            x = xp.array([1.5, 2.0])
            assert str(x.dtype) == dtype
            assert str(xp.sqrt(x * xp.array(2.0)).dtype) == dtype
            assert str(xp.put_along_add(x, xp.array([1, 1], "int"), -1, 2).dtype) == dtype
            assert str(xp.inv(xp.array(GOOD)).dtype) == dtype
            assert str(xp.cast(x == x, "float").dtype) == dtype


# --- what is not there ---------------------------------------------------------------------------------------------


def code_of(action: Any) -> tuple[str, str, str | None]:
    with pytest.raises(GradcliError) as caught:
        action()
    diagnostic = caught.value.diagnostics[0]
    return diagnostic.code, diagnostic.message, diagnostic.help


def test_unknown_names_are_proposed() -> None:
    assert code_of(lambda: namespace("numpi"))[::2] == ("GC711", "did you mean numpy?")
    assert code_of(lambda: namespace("numpy", "float63"))[::2] == ("GC712", "did you mean float64?")
    assert "choose one of" in str(code_of(lambda: namespace("tensorflow"))[2])


@pytest.mark.parametrize(("library", "extra"), [("cupy", "cuda"), ("jax", "jax")])
def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch, library: str, extra: str) -> None:
    monkeypatch.setattr(namespaces, "_namespaces", {})
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"gradcli.execution.namespaces.{library}_", raising=False)
    code, message, help = code_of(lambda: namespace(library))
    assert code == "GC713"
    assert library in message
    assert help == f'pip install "gradcli[{extra}]"'
