"""Linear algebra on lists of rows over any field: what symbols and balls compute with, written apart from every `impl`.

A field `f` supplies zero, one, number, total, sign and sqrt. Determinants and inverses divide by whole numbers only
(Faddeev and LeVerrier), so a singular matrix needs no decision and no pivot has to be certain.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Matrix = list[list[Any]]
    Jet = list[Matrix]  # a matrix and its derivatives along directions: entry m along those in the bits of m


def matrices(x: Any) -> list[Matrix]:
    """The matrices in the last two axes, in C order of the others."""
    rows, columns = x.shape[-2:]
    count = len(x.flat) // (rows * columns) if rows * columns else 0
    return [
        [x.flat[(b * rows + i) * columns : (b * rows + i + 1) * columns] for i in range(rows)] for b in range(count)
    ]


def each_matrix(rule: Callable[..., Any]) -> Callable[..., Any]:
    """An `entries` rule from one on matrices: `rule(f, *matrices)` gives a matrix, a list or a single entry."""

    def entries(f: Any, *xs: Any) -> Any:
        results = [rule(f, *stack) for stack in zip(*map(matrices, xs), strict=True)]
        shape = xs[0].shape[:-2]
        sample = results[0] if results else None
        flat = results
        while isinstance(sample, list):
            shape = (*shape, len(sample))
            flat = [entry for row in flat for entry in row]
            sample = sample[0] if sample else None
        return f.array(flat, shape)

    return entries


def product(f: Any, a: Matrix, b: Matrix) -> Matrix:
    """a @ b."""
    columns = list(zip(*b, strict=True))
    return [[f.total(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]


def transposed(a: Matrix) -> Matrix:
    """The rows as columns."""
    return [list(column) for column in zip(*a, strict=True)]


# --- determinant and adjugate, with derivatives -------------------------------------------------------------------


def _plus(a: Matrix, b: Matrix) -> Matrix:
    return [[x + y for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def _jet_product(f: Any, a: Jet, b: Jet) -> Jet:
    """Leibniz: along a set of directions, the sum over its parts."""
    result = []
    for mask in range(len(a)):
        total: Matrix | None = None
        for subset in range(mask + 1):
            if subset & mask == subset:
                term = product(f, a[subset], b[mask ^ subset])
                total = term if total is None else _plus(total, term)
        assert total is not None
        result.append(total)
    return result


def determinant_and_adjugate(f: Any, a: Jet) -> tuple[list[Any], Jet]:
    """The determinant and the adjugate of a matrix with derivatives along up to two directions.

    M1 = I, c1 = -tr(A M1), M(k+1) = A Mk + ck I, c(k+1) = -tr(A M(k+1))/(k+1); then adj A = (-1)^(n-1) Mn and
    det A = (-1)^n cn (D. K. Faddeev and V. N. Faddeeva, "Computational Methods of Linear Algebra", section 47).
    """
    size = len(a[0])
    unit = [[f.number(int(i == j)) for j in range(size)] for i in range(size)]
    nothing = [[f.zero] * size for _ in range(size)]
    m: Jet = [unit, *([nothing] * (len(a) - 1))]
    am: Jet = a
    coefficients: list[Any] = []
    for k in range(1, size + 1):
        if k > 1:
            m = [
                [[x + c if i == j else x for j, x in enumerate(row)] for i, row in enumerate(part)]
                for part, c in zip(am, coefficients, strict=True)
            ]
            am = _jet_product(f, a, m)
        share = f.number(Fraction(-1, k))
        coefficients = [f.total(part[i][i] for i in range(size)) * share for part in am]
    odd = size % 2 == 1
    determinant = [-c if odd else c for c in coefficients]
    adjugate = m if odd else [[[-x for x in row] for row in part] for part in m]
    return determinant, adjugate


def determinant(f: Any, a: Matrix) -> Any:
    """det A."""
    return determinant_and_adjugate(f, [a])[0][0]


def inverse(f: Any, a: Matrix) -> Matrix:
    """The adjugate over the determinant; undefined where that is 0."""
    d, adjugate = determinant_and_adjugate(f, [a])
    return [[x / d[0] for x in row] for row in adjugate[0]]


def cofactors(f: Any, a: Matrix, *directions: Matrix) -> Matrix:
    """The matrix of cofactors, or its mixed derivative along one or two directions."""
    jet: Jet = [a, *directions]
    if len(directions) > 1:
        jet.append([[f.zero] * len(a) for _ in a])
    return transposed(determinant_and_adjugate(f, jet)[1][-1])


# --- factors ------------------------------------------------------------------------------------------------------


def cholesky_factor(f: Any, a: Matrix) -> Matrix:
    """The lower triangular L with L L' = A, column by column."""
    size = len(a)
    factor = [[f.zero] * size for _ in range(size)]
    for j in range(size):
        rest = a[j][j] - f.total(factor[j][k] * factor[j][k] for k in range(j))
        factor[j][j] = f.sqrt(rest)
        for i in range(j + 1, size):
            rest = a[i][j] - f.total(factor[i][k] * factor[j][k] for k in range(j))
            factor[i][j] = rest / factor[j][j]
    return factor


def orthonormal_columns(f: Any, a: Matrix) -> Matrix:
    """Q of A = QR by Householder reflections, with LAPACK's signs: R[j, j] has the opposite sign of its pivot.

    A column that is already zero below its pivot, the last one of a square matrix among them, is not reflected.
    """
    rows, columns = len(a), len(a[0])
    work = [list(row) for row in a]
    mirrors: list[tuple[int, list[Any], Any]] = []
    for j in range(min(rows, columns)):
        below = [work[i][j] for i in range(j + 1, rows)]
        if all(f.sign(x) == 0 for x in below):
            continue
        pivot = work[j][j]
        length = f.sqrt(f.total(x * x for x in (pivot, *below)))
        normal = [pivot - length if f.sign(pivot) < 0 else pivot + length, *below]
        share = f.number(2) / f.total(x * x for x in normal)
        mirrors.append((j, normal, share))
        _reflect(f, work, j, normal, share)
    q = [[f.number(int(i == j)) for j in range(columns)] for i in range(rows)]
    for j, normal, share in reversed(mirrors):
        _reflect(f, q, j, normal, share)
    return q


def _reflect(f: Any, a: Matrix, start: int, normal: list[Any], share: Any) -> None:
    """A - share * n (n' A), in place, for a normal that starts at a row."""
    for column in range(len(a[0])):
        along = f.total(n * a[start + i][column] for i, n in enumerate(normal)) * share
        for i, n in enumerate(normal):
            a[start + i][column] = a[start + i][column] - n * along
