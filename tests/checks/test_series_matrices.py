"""Eigenvalues, singular values and exponentials beyond closed forms: enclosures, ties, verdicts.

The reference is NumPy's idea of none of it: mpmath's own decompositions with 60 digits, and differences of their values.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from gradcli.checks import check_script
from gradcli.checks.derivatives import matrices
from gradcli.checks.derivatives.jets import coefficient
from gradcli.checks.evaluate import ball_numbers
from tests.support.series_lines import exact_lines, lines

flint = pytest.importorskip("flint")
GENERATOR = np.random.default_rng(11)


def matrix(rows: int, columns: int) -> Any:
    return np.round(GENERATOR.normal(size=(rows, columns)), 2)


def symmetric(size: int) -> Any:
    a = matrix(size, size)
    return (a + a.T) / 2


def eigenvalues(a: Any) -> list[Any]:
    return sorted(mpmath.eigsy((a + a.T) / 2, eigvals_only=True))


def singular(a: Any) -> list[Any]:
    return sorted(mpmath.svd_r(a, compute_uv=False), reverse=True)


FUNCTIONS = [
    ("eigvalsh(x)[0]*eigvalsh(x)[2]", symmetric(3), lambda a: eigenvalues(a)[0] * eigenvalues(a)[2]),
    ("sum(exp(eigvalsh(x)))", symmetric(4), lambda a: sum(mpmath.exp(x) for x in eigenvalues(a))),
    ("max(eigvalsh(x))", symmetric(5), lambda a: eigenvalues(a)[-1]),
    ("svdvals(x)[1]", matrix(4, 3), lambda a: singular(a)[1]),
    ("sum(log(svdvals(x)))", matrix(3, 5), lambda a: sum(mpmath.log(x) for x in singular(a))),
    ("norm(x, 2)", matrix(3, 3), lambda a: singular(a)[0]),
    ("expm(x)[0, 2]", matrix(3, 3), lambda a: mpmath.expm(a)[0, 2]),
    ("trace(expm(x) @ x)", matrix(4, 4), lambda a: sum((mpmath.expm(a) * a)[i, i] for i in range(4))),
]  # fmt: skip
IDS = [text for text, *_ in FUNCTIONS]


@pytest.mark.parametrize(("text", "value", "f"), FUNCTIONS, ids=IDS)
def test_partials_and_second_derivatives(text: str, value: Any, f: Any) -> None:
    with ball_numbers.precision(200):
        through = lines(text, {"x": value.tolist()})
        places = [0, value.size // 2, value.size - 1]
        partials = {i: through.partial(i) for i in places}
        second = 2 * coefficient(through.along({places[0]: 1}, 2)[0], 2)
    with mpmath.workdps(80):
        h = mpmath.mpf(10) ** -20

        def moved(i: int, by: int) -> Any:
            a = mpmath.matrix(value.tolist())
            a[divmod(i, value.shape[1])] += by * h
            return f(a)

        for i, ball in partials.items():
            slope = (8 * (moved(i, 1) - moved(i, -1)) - (moved(i, 2) - moved(i, -2))) / (12 * h)
            near = flint.arb(mpmath.nstr(slope, 50), 1e-30 * (1 + abs(float(slope))))
            assert ball.overlaps(near), (i, ball, slope)
            assert ball.rel_accuracy_bits() > 60
        bend = (moved(0, 1) - 2 * moved(0, 0) + moved(0, -1)) / h**2
        assert second.overlaps(flint.arb(mpmath.nstr(bend, 30), 1e-15 * (1 + abs(float(bend)))))


@pytest.mark.parametrize(("text", "value", "f"), FUNCTIONS, ids=IDS)
def test_verdicts_are_certified_and_slips_are_not(text: str, value: Any, f: Any) -> None:
    found = check_script(text, at={"x": value.tolist()}).checks[0]
    assert found.verdict in ("CERTIFIED", "IMPRECISE"), found.message
    assert found.evidence["agree_bits"] >= 56
    wrong = f"y = {text}\nassert grad(y, x) == grad({text}, x)*(1 + 1e-12)\ny"
    assert check_script(wrong, at={"x": value.tolist()}).checks[-1].verdict == "DISAGREES"


EQUAL = [
    ("eigvalsh(x)[0]", np.eye(3), "KINK", (1, 0)),
    ("eigvalsh(x)[2]", np.eye(3), "KINK", (0, 1)),
    ("eigvalsh(x)[1]", np.diag([1.0, 2.0, 2.0]), "smooth", (0, 0)),
    ("eigvalsh(x)[0]", np.diag([1.0, 2.0, 2.0]), "smooth", (1, 1)),
    ("sum(eigvalsh(x))", np.eye(4), "smooth", (1, 1)),
    ("eigvalsh(x)[0]", np.ones((3, 3)) + np.eye(3), "KINK", (2 / 3, 0)),
    ("eigvalsh(x)[2]", np.ones((3, 3)) + np.eye(3), "smooth", (1 / 3, 1 / 3)),
    ("svdvals(x)[0]", np.eye(3), "KINK", (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "kind", "slopes"), EQUAL)
def test_equal_eigenvalues(text: str, value: Any, kind: str, slopes: tuple[float, float]) -> None:
    with ball_numbers.precision(256):
        found = exact_lines(text, {"x": value.tolist()}).sides({0: 1})
    assert found.kind == kind, found
    assert [float(found.left.slope), float(found.right.slope)] == pytest.approx(slopes, abs=1e-30)


def test_verdicts_where_eigenvalues_are_equal() -> None:
    assert check_script("sum(eigvalsh(x))", at={"x": np.eye(4).tolist()}).checks[0].verdict == "CERTIFIED"
    found = check_script("eigvalsh(x)[0]", at={"x": np.eye(3).tolist()}).checks[0]
    assert found.verdict == "KINK" and found.evidence["basis"] == "series"
    assert (
        check_script("max(eigvalsh(x))", at={"x": (np.ones((3, 3)) + np.eye(3)).tolist()}).checks[0].verdict
        == "CERTIFIED"
    )
    vanishing = check_script("svdvals(x)[2]", at={"x": [[1, 2, 3], [2, 4, 6], [1, 0, 1.0]]}).checks[0]
    assert vanishing.verdict == "KINK"


def test_eigenvalues_are_enclosed_whether_equal_or_not() -> None:
    with ball_numbers.precision(128):
        for size in range(2, 7):
            for turn in range(6):
                a = np.diag(GENERATOR.integers(-1, 2, size).astype(float)) if turn % 2 else symmetric(size)
                rows = [[flint.arb(x) for x in row] for row in a.tolist()]
                found = matrices.ball_eigenvalues(rows)
                with mpmath.workdps(50):
                    true = eigenvalues(mpmath.matrix(a.tolist()))
                for ball, x in zip(found, true, strict=True):
                    assert ball.overlaps(flint.arb(mpmath.nstr(x, 45), 1e-40)), (a, found, true)
                    assert ball.rad() < 1e-25


def test_a_complex_exponential() -> None:
    m = [[1 + 1j, 0.5, 0], [0.25j, 2 - 1j, 1], [0, 0.5, 1j]]
    assert check_script("sum(expm(m))", at={"m": m}, dtype="complex128").checks[0].verdict == "CERTIFIED"
    two = [[1 + 1j, 0.5], [0.25j, 2 - 1j]]
    assert check_script("sum(expm(m))", at={"m": two}, dtype="complex128").checks[0].verdict == "CERTIFIED"
    wrong = "y = sum(expm(m))\nassert grad(y, m) == grad(sum(expm(m)), m)*(1 + 1e-12)\ny"
    assert check_script(wrong, at={"m": m}, dtype="complex128").checks[-1].verdict == "DISAGREES"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum(grad(sum(eigvalsh(x)**3), x)**2)", symmetric(3)),
        ("sum(grad(svdvals(x)[0], x)*[[1, 2, 3], [4, 5, 6]])", matrix(2, 3)),
        ("sum(grad(svdvals(x)[2], x)*x**2)", matrix(3, 4)),
        ("sum(hessian(svdvals(x)[0], x)**2)", matrix(3, 3)),
        ("sum(grad(sum(expm(x)), x)**2)", matrix(3, 3)),
    ],
)
def test_vectors_along_a_direction(text: str, value: Any) -> None:
    """Derivatives of derivatives: there the eigenvectors themselves move."""
    found = check_script(text, at={"x": value.tolist()}).checks[0]
    assert found.verdict in ("CERTIFIED", "IMPRECISE"), found.message
    assert found.evidence["agree_bits"] >= 56
    wrong = f"y = {text}\nassert grad(y, x) == grad({text}, x)*(1 + 1e-12)\ny"
    assert check_script(wrong, at={"x": value.tolist()}).checks[-1].verdict == "DISAGREES"
