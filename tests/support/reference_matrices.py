"""The functions of matrices to 80 digits, for `reference_arrays`: written from their definitions, not from any library."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support.reference import NUMBERS, exact, mp

if TYPE_CHECKING:
    from collections.abc import Callable


def product(x: Any, y: Any) -> Any:
    return np.matmul(np.asarray(x, dtype=object), np.asarray(y, dtype=object))


def per_matrix(function: Callable[..., Any], many: int = 1) -> Callable[..., Any]:
    """A function of matrices, on the last two axes of its first operands."""

    def batched(*xs: Any, **params: Any) -> Any:
        first, rest = [np.asarray(x, dtype=object) for x in xs[:many]], xs[many:]
        lead = first[0].shape[:-2]
        made = {
            place: np.asarray(function(*(x[place] for x in first), *rest, **params), dtype=object)
            for place in np.ndindex(*lead)
        }
        if not lead:
            return made[()]
        core = next(iter(made.values())).shape
        result = np.empty(lead + core, dtype=object)
        for place, entries in made.items():
            result[place] = entries if core else entries[()]
        return result

    return batched


def determinant(a: Any) -> Any:
    """Leibniz' sum over permutations: no division, right for singular matrices."""
    n = len(a)
    total = mp.zero
    for order in permutations(range(n)):
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        term = mp.mpf(-1) ** swaps
        for i, j in enumerate(order):
            term *= a[i][j]
        total += term
    return total


def determinant_derivative(a: Any, *directions: Any) -> Any:
    """The mixed derivative of the determinant: each direction takes the place of a row of its own, in every way."""
    total = mp.zero
    for rows in permutations(range(len(a)), len(directions)):
        replaced = np.array(a, dtype=object)
        for row, direction in zip(rows, directions, strict=True):
            replaced[row] = direction[row]
        total += determinant(replaced)
    return total


def cofactors(a: Any, *directions: Any) -> Any:
    """The cofactors, or their mixed derivative along directions."""
    n = len(a)
    made = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            minors = [np.delete(np.delete(m, i, 0), j, 1) for m in (a, *directions)]
            made[i, j] = (-1) ** (i + j) * determinant_derivative(*minors)
    return made


def inverse(a: Any) -> Any:
    d = determinant(a)
    return cofactors(a).T / d


def cholesky(a: Any) -> Any:
    n = len(a)
    made = np.full((n, n), mp.zero, dtype=object)
    for j in range(n):
        made[j, j] = mp.sqrt(a[j][j] - mp.fsum(made[j, k] ** 2 for k in range(j)))
        for i in range(j + 1, n):
            made[i, j] = (a[i][j] - mp.fsum(made[i, k] * made[j, k] for k in range(j))) / made[j, j]
    return made


def orthonormal(a: Any) -> Any:
    """Q of A = QR by Gram and Schmidt, with the signs that LAPACK gives."""
    rows, columns = np.shape(a)
    signs = np.sign(np.sum(np.linalg.qr(a.astype(float))[0] * gram_schmidt(a).astype(float), axis=0))
    made = gram_schmidt(a)
    for j in range(columns):
        made[:, j] = made[:, j] * int(signs[j])
    return made


def gram_schmidt(a: Any) -> Any:
    made = np.array(a, dtype=object)
    for j in range(made.shape[1]):
        for k in range(j):
            made[:, j] = made[:, j] - made[:, k] * mp.fsum(made[:, k] * made[:, j])
        made[:, j] = made[:, j] / mp.sqrt(mp.fsum(made[:, j] ** 2))
    return made


def qr(x: Any, mode: str = "reduced") -> Any:
    rows, columns = np.shape(x)
    q = orthonormal(x if columns <= rows else x[:, :rows])
    r = product(q.T, x)
    return r if mode == "r" else (q, r)


def exponential(a: Any) -> Any:
    n = len(a)
    small = a / mp.mpf(2) ** 8
    term = total = exact(np.eye(n))
    for k in range(1, 60):
        term = product(term, small) / k
        total = total + term
        if max(map(abs, np.ravel(term))) < mp.mpf(10) ** -84:
            break
    for _ in range(8):
        total = product(total, total)
    return total


def frechet(a: Any, direction: Any) -> Any:
    n = len(a)
    zero = exact(np.zeros((n, n)))
    return exponential(np.block([[a, direction], [zero, a]]))[:n, n:]


def eigenvalues(a: Any) -> Any:
    a = (np.asarray(a) + np.asarray(a).T) / 2
    return np.array(sorted(mp.eigsy(mp.matrix(a.tolist()), eigvals_only=True)), dtype=object)


def singular_values(a: Any) -> Any:
    return np.array(sorted(mp.svd_r(mp.matrix(a.tolist()), compute_uv=False), reverse=True), dtype=object)


def aligned(columns: Any, plain: Any) -> Any:
    """Columns with the signs that LAPACK gave them: a vector of norm 1 is only known up to its sign."""
    signs = np.sign(np.sum(columns.astype(float) * plain, axis=0))
    return columns * np.array([int(sign) for sign in signs], dtype=object)


def eigenvectors(a: Any) -> Any:
    values, vectors = mp.eigsy(mp.matrix(a.tolist()))
    order = sorted(range(len(a)), key=lambda i: values[i])
    columns = np.array(vectors.tolist(), dtype=object)[:, order]
    return aligned(columns, np.linalg.eigh(a.astype(float))[1])


def singular_vectors(a: Any, left: bool) -> Any:
    """Eigenvectors of the Gram matrix, which need 60 digits to spare and have them."""
    u, _, vh = np.linalg.svd(a.astype(float), full_matrices=False)
    gram = product(a, a.T) if left else product(a.T, a)
    values, vectors = mp.eigsy(mp.matrix(gram.tolist()))
    order = sorted(range(len(gram)), key=lambda i: -values[i])[: min(a.shape)]
    columns = np.array(vectors.tolist(), dtype=object)[:, order]
    return aligned(columns, u if left else vh.T)


def matrix_power(x: Any, n: int) -> Any:
    base = inverse(x) if n < 0 else x
    result = exact(np.eye(len(x)))
    for _ in range(abs(n)):
        result = product(result, base)
    return result


def solve(a: Any, b: Any) -> Any:
    b = np.asarray(b, dtype=object)
    if a.ndim > b.ndim > 1:
        b = np.broadcast_to(b, (*a.shape[: a.ndim - b.ndim], *b.shape))
    return per_matrix(lambda m, r: product(inverse(m), r), 2)(a, b) if b.ndim > 1 else product(inverse(a), b)


def slogdet(x: Any) -> Any:
    d = determinant(x)
    return NUMBERS["sign"](d), mp.log(abs(d))
