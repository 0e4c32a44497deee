"""Python functions that are judged by their values alone: verdicts, notes on how they behave, and diagnoses."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import gradcli
from gradcli import GradcliError, check_callable
from gradcli.checks import Report
from gradcli.testing import assert_gradient

pytestmark = pytest.mark.usefixtures("values_only")
X2 = np.array([1.0, 2.0])
A = np.array([[1.0, 2.0, -1.0], [0.5, 0.3, 2.0], [1.5, -1.0, 0.2], [0.1, 0.7, 0.9]])


def only(report: Report) -> Any:
    (found,) = report.checks
    return found


def notes(report: Report) -> str:
    return "\n".join(one.message for one in report.diagnostics)


def total(x: Any) -> Any:
    return np.sum(x**2)


def test_a_gradient_that_takes_a_cotangent_is_a_vjp() -> None:
    """As from the command line: `grad=backward` with one argument more than the function."""
    right = check_callable(
        lambda x, y: np.sin(x) * y, lambda x, y, ct: (ct * y * np.cos(x), ct * np.sin(x)), at=(X2, X2)
    )
    wrong = check_callable(
        lambda x, y: np.sin(x) * y, lambda x, y, ct: (ct * y * np.cos(x), ct * np.cos(x)), at=(X2, X2)
    )
    assert right.ok and [check.passed for check in wrong.checks] == [True, False], wrong


# --- verdicts --------------------------------------------------------------------------------------------------

VERDICTS: list[tuple[str, Any, Any, Any, str]] = [
    ("right", total, lambda x: 2 * x, X2, "AGREES"),
    ("a number", lambda x: x**3, lambda x: 3 * x**2, 2.0, "AGREES"),
    ("a whole number", lambda x: x**3, lambda x: 3 * x**2, 2, "AGREES"),
    ("at a minimum", total, lambda x: 2 * x, np.zeros(3), "AGREES"),
    ("tiny values", lambda x: 1e-9 * x**2, lambda x: 2e-9 * x, 3.0, "AGREES"),
    ("tiny values, zero", lambda x: 1e-9 * x**2, lambda x: 0.0, 3.0, "DISAGREES"),
    ("huge point", lambda x: x**2, lambda x: 2 * x, 1e12, "AGREES"),
    ("fast sine", lambda x: np.sin(1e6 * x), lambda x: 1e6 * np.cos(1e6 * x), 1.0, "AGREES"),
    ("sqrt beside 0", np.sqrt, lambda x: 0.5 / np.sqrt(x), 1e-7, "AGREES"),
    ("log beside 0", np.log, lambda x: 1 / x, 2e-6, "AGREES"),
    ("cube at 0", lambda x: x**3, lambda x: 3 * x**2, 0.0, "AGREES"),
    ("wrong", total, lambda x: 3 * x, X2, "DISAGREES"),
    ("wrong at one entry", total, lambda x: 2 * x + np.array([0, 1e-5]), X2, "DISAGREES"),
    ("right at the point only", lambda x: x**2, lambda x: 4.0, 2.0, "DISAGREES"),
    ("few digits", lambda x: np.sin(3.14159265 * x), lambda x: 3.1415926535 * np.cos(3.14159265 * x), 0.3, "IMPRECISE"),
    ("not a number", lambda x: x**2, lambda x: np.nan, 0.3, "DISAGREES"),
    ("does not move", lambda x: 1e10 + 1e-9 * x**2, lambda x: 2e-9 * x, 1.0, "INCONCLUSIVE"),
    ("constant", lambda x: 3.0, lambda x: 0.0, 1.0, "AGREES"),
    ("constant, with a slope", lambda x: 3.0, lambda x: 1.0, 1.0, "INCONCLUSIVE"),
    ("saturated", np.tanh, lambda x: 1 - np.tanh(x) ** 2, 100.0, "AGREES"),
    ("kink", abs, np.sign, 0.0, "KINK"),
    ("kink at one entry", lambda x: np.sum(np.maximum(x, 0)), lambda x: 1.0 * (x > 0), np.array([0.0, 1.0]), "KINK"),
    ("a tie", np.max, lambda x: np.array([1.0, 0.0]), np.array([2.0, 2.0]), "KINK"),
    ("kink beside", lambda x: np.maximum(x - 1, 0) + x, lambda x: 1.0 + (x > 1), 1.0001, "AGREES"),
    ("vertical", np.sqrt, lambda x: np.inf, 0.0, "BOUNDARY"),
    ("jump", lambda x: x + np.floor(x), lambda x: 1.0, 1.0, "DISCONTINUOUS"),
    ("undefined", np.log, lambda x: 1 / x, -1.0, "UNDEFINED"),
    ("undefined point", lambda x: x * 0 + 1, lambda x: x * 0, np.nan, "UNDEFINED"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "df", "at", "verdict"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_verdict(f: Any, df: Any, at: Any, verdict: str) -> None:
    found = only(check_callable(f, df, at=at))
    assert found.verdict == verdict, found
    assert found.kind == "callable"
    assert found.passed == (verdict in ("AGREES", "IMPRECISE"))


# f, an approximation of its slope, points: float64 has few digits left there, and the teeth of its rounding have slopes
SAWS: list[tuple[str, Any, Any]] = [
    ("(1 - cos x)/x^2", lambda x: (1 - np.cos(x)) / x**2, lambda x: -x / 12),
    ("(exp x - 1)/x", lambda x: (np.exp(x) - 1) / x, lambda x: 0.5 + x / 3 + x**2 / 8),
    ("log(1 + x)/x", lambda x: np.log(1 + x) / x, lambda x: -0.5 + x * 2 / 3 - 0.75 * x**2),
    ("(sqrt(1 + x) - 1)/x", lambda x: (np.sqrt(1 + x) - 1) / x, lambda x: -0.125 + x / 8),
    ("a vector", lambda x: np.sum((1 - np.cos(x)) / x**2), lambda x: -x / 12),
]


@pytest.mark.parametrize(("f", "df"), [row[1:] for row in SAWS], ids=[row[0] for row in SAWS])
def test_rounding_is_never_taken_for_a_slope(f: Any, df: Any) -> None:
    for exponent in range(-7, -3):
        at: Any = 10.0**exponent
        for x in (at, 0.7 * at, np.array([at, 3 * at, 0.4 * at])):
            if np.ndim(x) and np.ndim(f(x)):
                continue
            found = only(check_callable(f, df, at={"x": x}))
            assert found.verdict in ("AGREES", "IMPRECISE", "INCONCLUSIVE"), (x, found.message)


def halved(f: Any, low: float, high: float, tolerance: float) -> float:
    """A root by bisection."""
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return (low + high) / 2


COARSE, FINE = np.linspace(0, 10, 101), np.linspace(0, 10, 100001)
# functions that are less smooth, or less exact, than they look; their slopes as people have them
ROUGH: list[tuple[str, Any, Any]] = [
    ("table", lambda x: np.interp(x, COARSE, COARSE**2), lambda x: 0.2 * np.floor(10 * x) + 0.1),
    ("fine table", lambda x: np.interp(x, FINE, np.sin(FINE)), np.cos),
    ("rounded", lambda x: round(float(x) ** 2, 6), lambda x: 2 * x),
    ("half precision", lambda x: float(np.float16(x)) ** 2, lambda x: 2 * x),
    ("single precision", lambda x: float(np.float32(x)) ** 2, lambda x: 2 * x),
    ("bisection", lambda x: halved(lambda t: t**3 - x, 0.0, 10.0, 1e-7), lambda x: x ** (-2 / 3) / 3),
    ("a loop as long as x", lambda x: sum(np.sin(x * j) for j in range(int(10 * x))), lambda x: sum(j * np.cos(x * j) for j in range(int(10 * x)))),
    ("counted", lambda x: np.mean(np.linspace(0, 1, 100) > x / 10), lambda x: -0.1),
]  # fmt: skip


@pytest.mark.parametrize(("f", "df"), [row[1:] for row in ROUGH], ids=[row[0] for row in ROUGH])
def test_rough_functions_are_never_called_wrong(f: Any, df: Any) -> None:
    for x in np.random.default_rng(3).uniform(0.3, 9.4, 6):
        found = only(check_callable(f, df, at={"x": float(x)}))
        assert found.verdict in ("AGREES", "IMPRECISE", "INCONCLUSIVE"), (x, found.message)


def test_a_ripple_on_a_steep_slope_is_seen() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**2 - 10 * np.cos(2 * np.pi * x))

    def df(x: Any) -> Any:
        return 2 * x + 20 * np.pi * np.sin(2 * np.pi * x)

    for x in (567361.6111108611, 895899.8722174388, 234567.5):
        assert only(check_callable(f, df, at=np.array([x, 0.3]))).verdict in ("AGREES", "INCONCLUSIVE")
        assert only(check_callable(f, lambda x: 2 * x, at=np.array([x, 0.3]))).verdict != "AGREES"


def test_a_solver_in_f_is_named_as_a_reason() -> None:
    def f(k: float) -> float:
        y, n = 1.0, 400
        for _ in range(n):
            y -= k * y / n
        return y

    root = only(
        check_callable(lambda x: brentq(lambda t: t**3 - x, 0, 10, xtol=1e-6), lambda x: x ** (-2 / 3) / 3, at=5.6)
    )
    assert root.verdict == "INCONCLUSIVE" and "rtol=1e-04) allows for it" in root.message  # the gradient is right
    found = only(check_callable(f, lambda k: -np.exp(-k) * (1 - 1e-5), at=1e-3))
    assert found.verdict in ("DISAGREES", "INCONCLUSIVE") and "rtol" in found.message
    assert only(check_callable(f, lambda k: -np.exp(-k), at=1e-3, rtol=1e-4)).verdict == "AGREES"


def test_a_disagreement_carries_its_evidence() -> None:
    found = only(check_callable(total, lambda x: 2 * x + np.array([0, 1e-3]), at={"x": X2}))
    assert found.message.startswith("(numerical) x[1]")
    worst = found.evidence["worst"][0]
    assert worst["entry"] == "x[1]"
    assert abs(worst["claimed"] - 4.001) < 1e-12 and abs(worst["differences"] - 4) < worst["bound"] < 1e-9
    ladder = found.evidence["ladder"]
    assert ladder["of"] == "x[1]" and len(ladder["steps"]) == len(ladder["slopes"]) >= 10
    assert found.evidence["decades"] >= 2
    assert all(abs(rate - 1) < 0.2 for rate in found.evidence["taylor_rates"])


def test_taylor_rates_are_two_where_the_gradient_is_right() -> None:
    found = only(check_callable(lambda x: np.sum(np.exp(x)), np.exp, at=X2))
    assert len(found.evidence["taylor_rates"]) == 3
    assert all(abs(rate - 2) < 0.05 for rate in found.evidence["taylor_rates"])


def test_the_same_call_gives_the_same_report() -> None:
    first, second = (check_callable(total, lambda x: 2.1 * x, at=X2) for _ in range(2))
    assert first == second


def test_options_decide_what_passes() -> None:
    def kink(**options: Any) -> bool:
        return bool(only(check_callable(abs, np.sign, at=0.0, **options)).passed)

    assert not kink() and kink(allow_kink=True)
    assert not only(check_callable(abs, lambda x: 2.0, at=0.0, allow_kink=True)).passed
    assert only(check_callable(lambda x: 3.0, lambda x: 1.0, at=1.0, lenient=True)).passed
    assert not only(check_callable(total, lambda x: 2 * x, at=X2, require="certified")).passed
    assert only(check_callable(total, lambda x: 2.001 * x, at=X2, rtol=1e-2)).verdict == "AGREES"


# --- diagnosis -------------------------------------------------------------------------------------------------

M = np.array([[1.0, 2.0, 0.3], [-1.0, 0.5, 0.7], [0.2, 1.1, -0.9]])
READINGS: list[tuple[str, Any, Any, Any]] = [
    ("wrong sign", total, lambda x: -2 * x, X2),
    ("constant factor", total, lambda x: x, X2),
    ("should it be a mean or a sum", lambda x: np.mean(x**2), lambda x: 2 * x, np.array([1.0, 2.0, 3.0, 5.0, 7.0])),
    ("transpose", lambda X: np.linalg.slogdet(X)[1], np.linalg.inv, M),
    ("swapped arguments", lambda x, y: x @ np.sin(y), lambda x, y: (x * np.cos(y), np.sin(y)), {"x": X2, "y": X2 + 1}),
    ("zero", total, lambda x: 0 * x, X2),
    ("the claim is right except in [2]", total, lambda x: np.where(x == 3, 5, 2 * x), np.array([1.0, 2.0, 3.0, 4.0])),
    ("except in [1], where it has a wrong sign", total, lambda x: 2 * abs(x), np.array([1.0, -2.0, 3.0])),
    ("summed over axis 0", lambda X: np.sum(X**2), lambda X: np.broadcast_to(2 * X.sum(0), X.shape), M),
    ("averaged over axis 1", lambda X: np.sum(X**2), lambda X: np.broadcast_to(2 * X.mean(1)[:, None], X.shape), M),
    ("reverse order", total, lambda x: 2 * x[::-1], np.array([1.0, 2.0, 3.5])),
    ("shifted by one", total, lambda x: np.roll(2 * x, 1), np.array([1.0, 2.0, 3.5])),
    ("the claim is right except in [0], [2]", total, lambda x: 2 * x + [1, 0, 2, 0], np.array([1.0, 2.0, 3.5, 4.0])),
    ("along every axis: a kernel flipped", lambda X: np.sum(np.exp(X)), lambda X: np.exp(X[::-1, ::-1]), M),
    ("decimals that were cut off", total, lambda x: (2 * x).astype(int), np.array([1.3, -2.4, 3.9])),
    ("1/7 of the claim", lambda x: np.sum(np.exp(x)) / 7, np.exp, np.array([1.3, -2.4, 3.9])),
    ("the same", lambda x: np.sum(x**2 + x), lambda x: 2 * x, np.array([1.0, 2.0, 3.5])),
]  # fmt: skip


@pytest.mark.parametrize(("text", "f", "df", "at"), READINGS, ids=[row[0] for row in READINGS])
def test_reading(text: str, f: Any, df: Any, at: Any) -> None:
    found = check_callable(f, df, at=at).checks[0]
    assert found.verdict == "DISAGREES"
    assert any(text in one["text"] for one in found.evidence["diagnosis"]), found.evidence["diagnosis"]


JACOBIANS: list[tuple[str, Any]] = [
    ("except off the diagonal, where it is zero", lambda p: np.diag(p * (1 - p))),
    ("minus the claim", lambda p: np.outer(p, p) - np.diag(p)),
    ("1/2 of the claim", lambda p: 2 * np.diag(p) - 2 * np.outer(p, p)),
]


@pytest.mark.parametrize(("text", "jac"), JACOBIANS, ids=[row[0] for row in JACOBIANS])
def test_reading_of_a_jacobian(text: str, jac: Any) -> None:
    found = only(check_callable(softmax, jac=lambda x: jac(softmax(x)), at=np.array([0.3, -0.7, 1.1])))
    assert found.verdict == "DISAGREES" and text in found.evidence["diagnosis"][0]["text"]


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum()


def test_a_factor_is_read_only_where_it_holds_at_other_points_too() -> None:
    """One number is in a simple ratio to any other by chance."""
    by_chance = only(check_callable(lambda x: x**2, lambda x: x**2, at=3.0))
    assert by_chance.verdict == "DISAGREES" and "diagnosis" not in by_chance.evidence
    real = only(check_callable(lambda x: x**2, lambda x: 3 * x, at=3.0))
    assert "2/3 of the claim" in real.evidence["diagnosis"][0]["text"]


def test_only_wrong_entries_are_shown_as_the_worst() -> None:
    found = only(check_callable(total, lambda x: 2 * x + [1, 0, 2, 0], at=np.array([1.0, 2.0, 3.5, 4.0])))
    assert [row["entry"] for row in found.evidence["worst"]] == ["x[2]", "x[0]"]
    assert found.evidence["wrong"] == "2 of 4 entries that were checked"


def test_nothing_is_read_where_nothing_fits() -> None:
    found = only(check_callable(lambda x: np.sum(np.exp(x)), lambda x: np.cos(x), at=np.array([0.3, 1.0, -2.0])))
    assert found.verdict == "DISAGREES" and "diagnosis" not in found.evidence


# --- the forms of a derivative ---------------------------------------------------------------------------------

TWO = {"x": 2.0, "y": X2}
FORMS: list[tuple[str, dict[str, Any], Any, Any, list[str]]] = [
    ("tuple", {"grad": lambda x, y: (np.sum(y), x * np.ones(2))}, lambda x, y: x * np.sum(y), TWO, ["x", "y"]),
    ("dict", {"grad": lambda x, y: {"y": x * np.ones(2)}}, lambda x, y: x * np.sum(y), TWO, ["y"]),
    ("the first only", {"grad": lambda y, x: x * np.ones(2)}, lambda y, x: x * np.sum(y), TWO, ["y"]),
    ("list", {"grad": lambda x: [2 * x[0], 2 * x[1]]}, total, X2, ["x"]),
    ("tuple of numbers", {"grad": lambda x: (2 * x[0], 2 * x[1])}, total, X2, ["x"]),
    ("stacked numbers", {"grad": lambda a, b: np.array([b, a])}, lambda a, b: a * b, (2.0, 3.0), ["a", "b"]),
    ("none for data", {"grad": lambda x, n: (n * x ** (n - 1), None)}, lambda x, n: x**n, {"x": 2.0, "n": 3.0}, ["x"]),
    ("pair", {"grad": True}, lambda x: (total(x), 2 * x), X2, ["x"]),
    ("pair, as SciPy says it", {"jac": True}, lambda x: (total(x), 2 * x), X2, ["x"]),
    ("one number in an array", {"grad": lambda x: 2 * x}, lambda x: np.array([total(x)]), X2, ["x"]),
    ("jacobian", {"jac": lambda x: A}, lambda x: A @ x, np.ones(3), ["x"]),
    ("jacobian of a number", {"jac": lambda x: 2 * x}, total, X2, ["x"]),
    ("jacobian of a matrix", {"jac": lambda X: 2 * np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))}, lambda X: 2 * X, M, ["X"]),
    ("many outputs", {"jac": lambda x: np.diag(np.cos(x))}, np.sin, np.linspace(0.1, 2, 12), ["x"]),
    ("vjp", {"vjp": lambda x, ct: A.T @ ct}, lambda x: A @ x, np.ones(3), ["x"]),
    ("vjp of a number", {"vjp": lambda x, ct: ct * 2 * x}, total, X2, ["x"]),
    ("vjp of two", {"vjp": lambda x, y, ct: (ct * y, ct * x)}, lambda x, y: x * y, {"x": X2, "y": X2 + 1}, ["x", "y"]),
]  # fmt: skip


@pytest.mark.parametrize(("form", "f", "at", "names"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS])
def test_form(form: dict[str, Any], f: Any, at: Any, names: list[str]) -> None:
    if not callable(f):
        pytest.fail("the row is out of order")
    options = {"names": ["x"]} if isinstance(f, np.ufunc) else {}
    found = check_callable(f, **form, at=at, **options)
    assert [(one.leaf, one.verdict) for one in found.checks] == [(name, "AGREES") for name in names], found


WRONG_ROWS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("jacobian", {"jac": lambda x: A * (1 + 1e-6 * (A == 2))}, lambda x: A @ x, np.ones(3)),
    ("vjp", {"vjp": lambda x, ct: A.T @ np.abs(ct)}, lambda x: A @ x, np.ones(3)),
    ("vjp without its cotangent", {"vjp": lambda x, ct: 2 * x}, np.square, X2),
]


@pytest.mark.parametrize(("form", "f", "at"), [row[1:] for row in WRONG_ROWS], ids=[row[0] for row in WRONG_ROWS])
def test_wrong_form(form: dict[str, Any], f: Any, at: Any) -> None:
    found = check_callable(f, **form, at={"x": at}, names=["x"])
    assert only(found).verdict == "DISAGREES"
    assert "output" in only(found).message
    if "vjp" in form:
        assert "not linear in its cotangent" in notes(found)


def test_data_do_not_move() -> None:
    def f(x: Any, labels: Any, word: str, power: int = 2) -> Any:
        assert labels.dtype.kind == "i" and word == "sum"
        return np.sum(x[labels] ** power)

    def df(x: Any, labels: Any, word: str, power: int = 2) -> Any:
        found = np.zeros_like(x)
        found[labels] = power * x[labels] ** (power - 1)
        return found

    at = {"x": np.array([1.0, 2.0, 3.0]), "labels": np.array([0, 2]), "word": "sum", "power": 3}
    assert [one.leaf for one in check_callable(f, df, at=at, wrt=["x"]).checks] == ["x"]
    assert only(check_callable(f, df, at=at, wrt=["x"])).verdict == "AGREES"


@pytest.mark.parametrize("z", [1 + 2j, np.array([1 + 2j, 3.0]), [1j, 2.0], np.complex64(1j)])
def test_complex_arguments_are_spoken_of_as_such(z: Any) -> None:
    def f(z: Any, x: Any = 1.0) -> Any:
        return float(np.sum(np.abs(np.asarray(z)) ** 2) * x)

    def df(z: Any, x: Any = 1.0) -> Any:
        return np.sum(np.abs(np.asarray(z)) ** 2)

    for options in ({"at": {"z": z}}, {"at": {"z": z, "x": 2.0}, "wrt": ["z"]}):
        with pytest.raises(GradcliError) as caught:
            check_callable(f, df, **options)
        assert "holds complex numbers" in str(caught.value)
        assert "real and the imaginary part" in str(caught.value)
    beside = check_callable(f, df, at={"z": z, "x": 2.0})  # the other argument is judged, and a note says what is not
    assert [(one.leaf, one.verdict) for one in beside.checks] == [("x", "AGREES")]
    assert "z is not checked: it holds complex numbers" in notes(beside)


def test_a_count_becomes_data_where_floats_are_refused() -> None:
    found = check_callable(
        lambda x, n: sum(x**k for k in range(n)), lambda x, n: sum(k * x ** (k - 1) for k in range(n)), at=(2.5, 4)
    )
    assert [(one.leaf, one.verdict) for one in found.checks] == [("x", "AGREES")]


@pytest.mark.parametrize(
    ("size", "error"),
    [(49, 1e-5), (300, 1e-3), (2000, 1e-5), pytest.param(5000, 1e-5, marks=pytest.mark.deep), (10_000, -2.0)],
)
def test_every_entry_of_a_large_array_is_looked_at(size: int, error: float) -> None:
    """In groups that move together, down to the entry where a group does not agree, in a few thousand calls."""
    x = np.random.default_rng(0).normal(size=size)
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        return np.sum(np.sin(x) * x)

    def df(x: Any) -> Any:
        return np.cos(x) * x + np.sin(x)

    right = only(check_callable(f, df, at={"x": x}, samples=1, timeout=300))
    assert right.verdict == "AGREES"
    assert f"all {size:,} entries in " in right.evidence["covered"], right.message
    assert right.evidence["bound"] < 1e-7
    assert calls[0] < 6000
    for place in (0, int(np.argsort(np.abs(df(x) * x))[size // 20]), size // 4):

        def wrong(x: Any, place: int = place) -> Any:
            found = df(x)
            found[place] *= 1 + error
            return found

        found = only(check_callable(f, wrong, at={"x": x}, timeout=300))
        assert found.verdict in ("DISAGREES", "INCONCLUSIVE"), (place, found.message)
        assert f"x[{place}]" in found.message
        assert found.verdict == "DISAGREES" or abs(error * df(x)[place]) < 1e-4  # an entry far smaller than most


@pytest.mark.parametrize(
    ("df", "where"),
    [
        (lambda A: -np.linalg.inv(A) @ np.ones((2, 2)) @ np.linalg.inv(A), "A is not symmetric"),
        (lambda A: -np.linalg.inv(A).T @ np.ones((2, 2)) @ np.linalg.inv(A).T, None),
    ],
)
def test_a_gradient_that_is_right_for_symmetric_matrices_only(df: Any, where: str | None) -> None:
    found = only(check_callable(lambda A: np.linalg.inv(A).sum(), df, at={"A": np.array([[4.0, 1.0], [1.0, 3.0]])}))
    assert found.verdict == "AGREES" and found.passed
    assert found.evidence.get("not_in_general", {}).get("where") == where
    assert ("warning: wrong where A is not symmetric" in found.message) == (where is not None)


@pytest.mark.parametrize("claim", [0.0, 2.0, 3.0])
def test_slopes_that_approach_each_other_slowly_are_no_kink(claim: float) -> None:
    """Logarithms of logarithms: no step of a difference comes near the limit."""

    def steep(x: Any) -> Any:
        return 0.0 if x == 0 else x * np.log(abs(np.log(abs(x))))

    def flat(x: Any) -> Any:
        return 0.0 if x == 0 else abs(x) / np.log(abs(np.log(abs(x))))

    for f in (steep, flat):
        assert only(check_callable(f, lambda x: claim, at={"x": 0.0})).verdict == "INCONCLUSIVE"


def test_a_survey_that_the_clock_ends_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0.5, 2.0, 2000)
    whole = only(check_callable(lambda x: np.sum(np.sin(x)), np.cos, at={"x": x}, samples=1, timeout=300))
    assert whole.verdict == "AGREES"
    assert "not looked at" not in whole.message
    looks = iter(range(40))

    def clock() -> float:
        return 0.0 if next(looks, None) is not None else 1e9

    monkeypatch.setattr("gradcli.recording.calls.box.monotonic", clock)
    part = only(check_callable(lambda x: np.sum(np.sin(x)), np.cos, at={"x": x}, samples=1, timeout=300))
    assert part.verdict == "INCONCLUSIVE"
    assert next(looks, None) is None


# --- behaviour ---------------------------------------------------------------------------------------------------


def test_changed_arguments_are_told() -> None:
    def f(x: Any) -> Any:
        x *= 2
        return np.sum(x)

    found = check_callable(f, lambda x: 2 * np.ones_like(x), at=X2)
    assert only(found).verdict == "AGREES"
    assert "f changes its argument x in place" in notes(found)
    found = check_callable(np.sum, lambda x: x.fill(1.0) or x, at=X2, names=["x"])
    assert "df changes its argument x in place" in notes(found)
    found = check_callable(lambda x: x**2, vjp=lambda x, ct: np.multiply(ct, 2 * x, out=ct), at=X2)
    assert only(found).verdict == "AGREES" and "vjp changes its cotangent in place" in notes(found)


def test_a_changed_array_that_a_function_holds_is_named() -> None:
    """It gives other values when it is called again, and the note says why."""
    held = np.array([0.5, 0.2])

    def f(x: Any) -> Any:
        held[:] = held + 0.25
        return np.sum(x) * held[0]

    report = check_callable(f, lambda x: held[0] * np.ones_like(x), at=X2)
    assert only(report).verdict == "INCONCLUSIVE"
    assert "f changes held, which it holds, in place" in notes(report)


def test_prints_are_captured_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("x" * 10**6)
        return total(x)

    found = check_callable(f, lambda x: print("hello", file=sys.stderr) or 2 * x, at=X2)
    assert only(found).verdict == "AGREES"
    assert "f prints: xxx" in notes(found) and "df prints: hello" in notes(found)
    assert capsys.readouterr() == ("", "")
    assert all(len(one.message) < 400 for one in found.diagnostics)


def test_warnings_at_the_point_are_told() -> None:
    def f(x: Any) -> Any:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return total(x)

    assert "f warns at this point: DeprecationWarning: old" in notes(check_callable(f, lambda x: 2 * x, at=X2))
    quiet = check_callable(lambda x: np.log(x), lambda x: 1 / x, at=0.01)
    assert only(quiet).verdict == "AGREES" and not quiet.diagnostics


def test_random_functions_never_disagree() -> None:
    def noisy(size: float) -> Any:
        return lambda x: total(x) + size * np.random.default_rng().normal()

    for size, verdict in ((1e-9, "AGREES"), (10.0, "INCONCLUSIVE")):
        found = check_callable(noisy(size), lambda x: 2 * x, at=X2)
        assert only(found).verdict == verdict
        assert "different values at the same point" in notes(found)
        assert only(check_callable(noisy(size), lambda x: 3 * x, at=X2)).verdict == "INCONCLUSIVE"
    drawn = check_callable(total, lambda x: 2 * x + np.random.default_rng().normal(), at=X2)
    assert only(drawn).verdict == "INCONCLUSIVE" and "different gradients" in only(drawn).message


def test_state_never_disagrees() -> None:
    calls = [0]

    def drifting(x: Any) -> Any:
        calls[0] += 1
        return total(x) * (1 + 1e-3 * calls[0])

    found = check_callable(drifting, lambda x: 2 * x, at=X2)
    assert only(found).verdict == "INCONCLUSIVE"
    assert "different values" in notes(found)


def test_steps_of_float32_are_told() -> None:
    found = check_callable(lambda x: np.float32(np.sum(x.astype("f4") ** 2)), lambda x: 2 * x, at=X2)
    assert only(found).verdict == "AGREES" and "f returns float32" in notes(found)
    assert 1e-7 < only(found).evidence["bound"] < 1e-3
    inside = check_callable(lambda x: float(np.float32(float(x)) ** 2), lambda x: 2 * x, at=(0.7312,))
    assert only(inside).verdict == "AGREES" and "f computes in float32" in notes(inside)
    given = check_callable(total, lambda x: 2 * x, at=X2.astype("f4"))
    assert only(given).verdict == "AGREES" and "df returns float32, which has 7 digits" in notes(given)
    assert only(check_callable(total, lambda x: 2.2 * x, at=X2.astype("f4"))).verdict == "DISAGREES"


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


T = np.linspace(0.0, 3.0, 5)
FORGOTTEN = [
    ("lacks the factor `x`", lambda x: np.sum(np.exp(x**2)), {"grad": lambda x: 2 * np.exp(x**2)}),
    ("lacks the factor `(1 - the claim)`", lambda x: np.sum(sigmoid(x)), {"grad": sigmoid}),
    ("lacks the factor `(1 - f)`", sigmoid, {"jac": lambda x: np.diag(sigmoid(x))}),
    ("has an extra factor -`x`", lambda x: np.sum(1 / x), {"grad": lambda x: 1 / x}),
    (
        "lacks the factor `t` in the column 1",
        lambda x, t: x[0] * np.exp(-x[1] * t) + x[2] ** 2 - x[3],
        {"jac": lambda x, t: np.stack([np.exp(-x[1] * t), -x[0] * np.exp(-x[1] * t), 2 * x[2] + 0 * t, 0 * t - 1], 1)},
    ),
]


@pytest.mark.parametrize(("text", "f", "derivative"), FORGOTTEN, ids=[row[0] for row in FORGOTTEN])
def test_a_forgotten_factor_is_named(text: str, f: Any, derivative: dict[str, Any]) -> None:
    at: dict[str, Any] = {"x": np.array([0.3, 1.1, -1.2, 0.7])}
    if "column" in text:
        at["t"] = T
    found = check_callable(f, at=at, wrt=["x"], **derivative).checks[0]
    assert found.verdict == "DISAGREES"
    assert any(text in one["text"] for one in found.evidence["diagnosis"]), found.evidence["diagnosis"]


def test_labels_and_indices_that_were_given_as_floats_become_integers() -> None:
    def entropy(w: Any, b: Any, x: Any, y: Any) -> Any:
        z = x @ w + b
        return np.mean(np.log(np.sum(np.exp(z), axis=-1)) - z[np.arange(len(y)), y])

    def gradient(w: Any, b: Any, x: Any, y: Any) -> dict[str, Any]:
        p = np.exp(x @ w + b)
        p /= p.sum(axis=-1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        return {"w": x.T @ p / len(y), "b": p.sum(0)}  # the sum is no mean

    rng = np.random.default_rng(1)
    at = {"w": rng.normal(size=(2, 3)), "b": rng.normal(size=3), "x": [[1, 2], [3, 5], [0, 1]], "y": [0.0, 2.0, 1.0]}
    found = check_callable(entropy, gradient, at=at)
    assert {one.leaf: one.verdict for one in found.checks} == {"w": "AGREES", "b": "DISAGREES"}
    assert "y is treated as data: f accepts it as integers only" in notes(found)
    assert "x is data" not in notes(found)
    both = check_callable(lambda x, i, j: np.sum(x[i] * x[j]), lambda x, i, j: x * 0, at=(X2, [0.0, 1.0], [1.0, 0.0]))
    assert (
        only(both).verdict == "DISAGREES"
        and "i is treated as data" in notes(both)
        and "j is treated as data" in notes(both)
    )


def test_whole_numbers_in_a_gradient_are_told() -> None:
    found = check_callable(lambda x: np.sum(3 * x), lambda x: np.array([3, 3]), at=X2)
    assert only(found).verdict == "AGREES" and "rounded to whole numbers" in notes(found)
    assert only(check_callable(total, lambda x: (2 * x).astype(int), at=X2 + 0.3)).verdict == "DISAGREES"


def test_a_slow_function_is_inconclusive_and_says_what_would_help() -> None:
    import time

    found = only(check_callable(lambda x: time.sleep(0.02) or total(x), lambda x: 2 * x, at=X2, timeout=0.2))
    assert found.verdict == "INCONCLUSIVE" and "timeout" in found.message


# --- what cannot be judged ---------------------------------------------------------------------------------------


def raising(x: Any) -> Any:
    raise ValueError("no such thing")


BAD: list[tuple[str, Any, Any, str]] = [
    ("f raises", raising, total, "f raises ValueError: no such thing"),
    ("df raises", total, raising, "df raises ValueError: no such thing"),
    ("exits", lambda x: sys.exit(3), total, "f calls sys.exit(3)"),
    ("f returns None", lambda x: None, total, "f returns None"),
    ("df returns None", total, lambda x: None, "df returns None"),
    ("df returns (None,)", total, lambda x: (None,), "df returns no gradient of any argument"),
    ("df returns {}", total, lambda x: {}, "df returns no gradient of any argument"),
    ("text", lambda x: "high", total, "f returns the text 'high'"),
    ("df returns text", total, lambda x: "up", "df returns the text 'up'"),
    ("objects", lambda x: {"loss": 1}, total, "f returns a dict"),
    ("ragged", lambda x: [[1.0], [1.0, 2.0]], total, "f returns a list"),
    ("complex", lambda x: total(x) * 1j, total, "f returns complex numbers"),
    ("wrong shape", total, lambda x: np.ones(3), "df has shape [3], but `x` has [2]"),
    ("too few axes", total, lambda x: 1.0, "df has shape [], but `x` has [2]"),
    ("column", total, lambda x: 2 * x[:, None], "df has shape [2, 1], but `x` has [2]"),
    ("array with a gradient", lambda x: x**2, lambda x: 2 * x, "its derivative is not a gradient"),
    ("empty", lambda x: x[:0], lambda x: x, "f returns an empty array"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "df", "told"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_function(f: Any, df: Any, told: str) -> None:
    found = only(check_callable(f, df, at={"x": X2}))
    assert found.verdict == "ERROR" and not found.passed
    assert told in found.message
    assert [one.code for one in found.diagnostics] == ["GC733"]


@pytest.mark.parametrize(
    ("shape", "added"), [((4,), ".sum(axis=0)"), ((3, 1), ".sum(axis=1, keepdims=True)"), ((), ".sum(axis=(0, 1))")]
)
def test_a_missing_sum_of_a_broadcast_argument_is_named(shape: tuple[int, ...], added: str) -> None:
    at = {"x": np.ones((3, 4)), "b": np.full(shape, 2.0)}
    other, found = check_callable(lambda x, b: np.sum(x * b), lambda x, b: (b + 0 * x, x), at=at).checks
    assert (other.id, other.passed) == ("callable:x", True), "the gradient by another argument is judged"
    assert (found.id, found.verdict) == ("callable:b", "ERROR")
    assert str(found.evidence["help"]).endswith(f"add {added}")


def test_an_error_names_the_line() -> None:
    found = only(check_callable(raising, total, at=X2))
    line = raising.__code__.co_firstlineno + 1
    assert found.evidence["place"] == f"{__file__}:{line}"


def test_errors_beside_the_point_are_no_errors() -> None:
    def f(x: float) -> float:
        if x < 1:
            raise ValueError("below 1")
        return x**2

    assert only(check_callable(f, lambda x: 2 * x, at=1.5)).verdict == "AGREES"
    edge = only(check_callable(f, lambda x: 2 * x, at=1.0))
    assert edge.verdict == "BOUNDARY" and "undefined from below" in edge.message
    assert "raises" in edge.evidence["outside"]


REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    ("unknown argument", total, {"at": {"z": 1.0}}, "no argument `z`"),
    ("missing argument", lambda x, y: x * y, {"at": {"x": 1.0}}, "`y` has no value"),
    ("too many", total, {"at": (1.0, 2.0)}, "takes 1 arguments"),
    ("nothing moves", total, {"at": {"x": np.array([1, 2])}}, "so none can be varied"),
    ("a dict of arrays", total, {"at": {"x": {"w": X2}}}, "`x` is a dict of values"),
    ("unknown wrt", total, {"at": {"x": X2}, "wrt": ["y"]}, "`y` is not an argument"),
    ("text to move", lambda x, s: x, {"at": {"x": 1.0, "s": "a"}, "wrt": ["s"]}, "`s` cannot be varied"),
    ("two derivatives", total, {"at": X2, "jac": total}, "two derivatives"),
]


@pytest.mark.parametrize(("f", "options", "told"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(f: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(GradcliError, match=told) as caught:
        check_callable(f, total, **options)
    assert caught.value.diagnostics[0].code == "GC732"


def test_an_unknown_argument_is_told_the_others() -> None:
    with pytest.raises(GradcliError) as caught:
        check_callable(lambda weights, y: 0.0, total, at={"x": 1.0})
    assert caught.value.diagnostics[0].help == "choose one of weights, y"


def test_a_function_without_a_derivative_is_refused() -> None:
    for f in (total, "x**2", 3):
        with pytest.raises(GradcliError) as caught:
            check_callable(f, at=X2)  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code == "GC732"


# --- the other ways in -------------------------------------------------------------------------------------------


def test_check_takes_scripts_and_functions() -> None:
    assert gradcli.check("x**2", at={"x": 3}).checks[0].verdict in ("PROVED", "CERTIFIED")
    assert only(gradcli.check(total, lambda x: 2 * x, at=X2)).verdict == "AGREES"


def test_assert_gradient_is_silent_where_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert_gradient(total, lambda x: 2 * x, at=X2)
    assert_gradient(abs, np.sign, at=0.0, allow_kink=True)
    assert capsys.readouterr() == ("", "")


def test_assert_gradient_fails_with_the_report() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_gradient(total, lambda x: 4 * x, at={"x": X2})
    text = str(caught.value)
    for part in (
        "DISAGREES",
        "x[1]",
        "1/2 of the claim",
        "8.0",
        "4.0",
        "none comes nearer to the claim 8 than 4",
        "1 failed",
    ):
        assert part in text, text
    frames = [frame.name for frame in caught.traceback if not frame.ishidden(caught)]
    assert "assert_gradient" not in frames
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_gradient(lambda x: 3.0, lambda x: 1.0, at=1.0)
    with pytest.raises(AssertionError, match="prints: hello"):
        assert_gradient(lambda x: print("hello") or total(x), total, at=X2[:1])
