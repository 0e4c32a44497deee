"""What a whole routine reads, and how far that may move, go in; how far its results may move comes out.

Products, recurrences, sorting, functions of matrices: by inequalities that hold for moves of any size, never to first
order. Infinity where nothing is known. It knows neither graphs nor plans.

Routines of LAPACK are taken to be exact for a matrix within BACKWARD n u of theirs, in the Frobenius norm, as functions
of numbers are taken to be right within a few units in the last place. SciPy's matrix exponential is not: it has been
seen 2,000 u away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Gap = Any  # an array

BACKWARD = 10  # times n u: how far from a matrix the one lies for which a routine is exact
MARGIN = 4  # powers of two between what products may reach and the ends of the range


def _running(x: Any, gap: Gap, unit: float, add: Callable[[Any], Any], multiply: Callable[[Any], Any]) -> Gap:
    """Products along an axis, whole or running: `add` and `multiply` do that along the axis."""
    info, size = np.finfo(x.dtype), np.abs(x.astype(np.float64))
    most, count = size + gap, add(np.ones(x.shape))
    moved = add(np.where(size > 0, np.log1p(gap / np.where(size > 0, size, 1)), 0.0))
    whole = multiply(most)
    inner = np.where(add((size == 0) * 1.0) > 0, whole, multiply(size) * np.expm1(moved))
    high = add(np.maximum(np.log2(np.where(most > 0, most, 1)), 0))
    least = np.where(size > gap, size - gap, 1)
    low = add(np.minimum(np.log2(least), 0))
    nearly = add((((size <= gap) & (gap > 0)) | ((size > 0) & (size < info.tiny))) * 1.0) > 0  # may be any small number
    fits = (high < info.maxexp - MARGIN) & (low > info.minexp + MARGIN) & ~nearly
    return np.where(fits, inner + 4 * unit * count * whole, np.inf)


def product(x: Any, gap: Gap, axis: Any, unit: float) -> Gap:
    """Of all entries along axes."""
    return _running(x, gap, unit, lambda part: np.sum(part, axis), lambda part: np.prod(part, axis))


def running_product(x: Any, gap: Gap, axis: int, unit: float) -> Gap:
    """Of the first entries along an axis."""
    return _running(x, gap, unit, lambda part: np.cumsum(part, axis), lambda part: np.cumprod(part, axis))


def recurrence(a: Any, c: Any, moves: Sequence[Gap], y: Any, unit: float) -> Gap:
    """y = a y + c along the last axis; both recurrences round two times a turn."""
    da, dc = moves
    found, tiny = np.zeros(y.shape), float(np.finfo(y.dtype).smallest_subnormal)
    found[..., :1] = dc[..., :1]
    for i in range(1, y.shape[-1]):
        before, most = found[..., i - 1], np.abs(y[..., i - 1]) + found[..., i - 1]
        term = (np.abs(a[..., i]) + da[..., i]) * most
        moved = np.abs(a[..., i]) * before + da[..., i] * most + dc[..., i]
        found[..., i] = moved + 4 * unit * (term + np.abs(c[..., i]) + dc[..., i]) + 4 * tiny
    return np.where(np.isfinite(found), found, np.inf)


def ordered(gap: Gap, axis: int) -> Gap:
    """Entries in order: none moves farther than the farthest of its lane."""
    return np.broadcast_to(np.max(gap, axis, keepdims=True, initial=0), gap.shape)


def order_is_certain(x: Any, gap: Gap, axis: int) -> bool:
    """Whether no two entries of a lane may change places."""
    order = np.argsort(x, axis, kind="stable")
    x, gap = np.take_along_axis(x, order, axis), np.take_along_axis(gap, order, axis)
    apart = np.diff(x, axis=axis)
    front, back = [np.take(gap, range(*ends), axis) for ends in ((0, x.shape[axis] - 1), (1, x.shape[axis]))]
    return bool(np.all((apart > front + back) | ((front == 0) & (back == 0))))


# --- matrices -------------------------------------------------------------------------------------------------


def _norm(a: Any) -> Any:
    """The Frobenius norm of each matrix, as a matrix of one entry."""
    return np.sqrt(np.sum(np.square(a), (-2, -1), keepdims=True))


def _steps(a: Any, unit: float) -> Any:
    """How far from it the matrix lies for which a routine is exact."""
    return BACKWARD * max(a.shape[-2:]) * unit * _norm(a)


def spectrum(a: Any, gap: Gap, unit: float) -> Gap:
    """Eigenvalues of symmetric matrices, singular values of any: none moves farther than the matrix (Weyl, Mirsky).

    A routine may read one triangle, so what moves there counts twice.
    """
    far = np.sqrt(2) * _norm(gap)
    moved = far + 2 * _steps(np.abs(a) + gap, unit)
    return np.broadcast_to(moved[..., 0], (*a.shape[:-2], min(a.shape[-2:])))


def factor(a: Any, gap: Gap, value: Any, unit: float) -> Gap:
    """The triangle of Cholesky's decomposition (J. Sun, 1991)."""
    step = _steps(np.abs(a) + gap, unit)
    made, far = _inverses(a, gap + step, unit)
    share = _norm(np.abs(made) + far) * (np.sqrt(2) * _norm(gap) + 2 * step)
    moved = _norm(value) * np.sqrt(0.5) * share / np.where(share < 1, 1 - share, 1)
    return _known(np.where(np.tri(a.shape[-1], dtype=bool), np.where(share < 1, moved, np.inf), 0.0))


def _inverses(a: Any, gap: Gap, unit: float) -> tuple[Any, Any]:
    """An approximate inverse R, and how far the inverse of any matrix within the gap may be from it, entry by entry.

    With D at least |I - R A|, and d < 1 the largest sum of a row of D: |inv(A) - R| <= D |R| + d / (1 - d) times the
    largest entry of each column of D |R|.
    """
    n, made = a.shape[-1], np.full(a.shape, np.nan)
    for place in np.ndindex(a.shape[:-2]):
        try:
            made[place] = np.linalg.inv(a[place].astype(np.float64))
        except np.linalg.LinAlgError:
            continue
    size, eps = np.abs(made), np.finfo(np.float64).eps
    off = np.abs(np.eye(n) - made @ a.astype(np.float64)) + 2 * (n + 1) * eps * (size @ np.abs(a)) + size @ gap
    share = np.max(np.sum(off, -1, keepdims=True), -2, keepdims=True, initial=0)
    first = off @ size
    rest = share / np.where(share < 1, 1 - share, 1) * np.max(first, -2, keepdims=True, initial=0)
    return made, np.where(share < 1, first + rest, np.inf)


def inverse(a: Any, gap: Gap, value: Any, unit: float) -> Gap:
    """The inverse as a routine finds it, which solves for each column by itself."""
    made, far = _inverses(a, gap, unit)
    most = np.abs(made) + far
    rows, columns = [np.sqrt(np.sum(np.square(most), axis, keepdims=True)) for axis in (-1, -2)]
    slip = _slip(a, gap, most, rows, columns, unit)
    return _known(np.abs(value - made) + far + slip)


def _slip(a: Any, gap: Gap, most: Any, rows: Any, solved: Any, unit: float) -> Any:
    """How far a solution x that is exact for A + F, |F| <= f, is from the right one: inv(A) F x.

    `most` bounds inv(A), `rows` its rows, `solved` the columns of the right solution.
    """
    f = _steps(np.abs(a) + gap, unit)
    share = f * _norm(most)
    return np.where(share < 1, f * rows * solved / np.where(share < 1, 1 - share, 1), np.inf)


def solution(a: Any, b: Any, moves: Sequence[Gap], value: Any, unit: float) -> Gap:
    """x of A x = b, from the residual of the known x."""
    da, db = moves
    made, far = _inverses(a, da, unit)
    most, n = np.abs(made) + far, a.shape[-1]
    size, eps = np.abs(value), np.finfo(np.float64).eps
    exact = value.astype(np.float64)
    residual = np.abs(b - a.astype(np.float64) @ exact)
    residual = residual + 2 * (n + 1) * eps * (np.abs(a) @ size + np.abs(b)) + db + da @ size
    moved = most @ residual
    rows, solved = np.sqrt(np.sum(np.square(most), -1, keepdims=True)), size + moved
    columns = np.sqrt(np.sum(np.square(solved), -2, keepdims=True))
    return _known(moved + _slip(a, da, most, rows, columns, unit))


def logarithm(a: Any, gap: Gap, value: Any, unit: float) -> Gap:
    """log|det(A)|: det(A + E) = det(A) det(I + Z), Z = inv(A) E, and |det(I + Z) - 1| <= exp(s) - 1, s the sum of
    the singular values of Z. It is found as a sum of logarithms of pivots: at most 2**(n - 1) times the largest entry.
    """
    n, step = a.shape[-1], _steps(np.abs(a) + gap, unit)
    made, far = _inverses(a, gap + step, unit)
    moved = np.sqrt(n) * _norm(np.abs(made) + far) * (_norm(gap) + 2 * step)
    share = np.expm1(np.minimum(moved[..., 0, 0], 1.0))
    largest = np.log(np.maximum(np.max(np.abs(a) + gap, (-2, -1)), 1.0)) + (n - 1) * np.log(2)
    slips = 4 * unit * (n + 5) * (2 * n * largest + np.abs(value) + n)
    return _known(np.where(share < 1, -np.log1p(-np.where(share < 1, share, 0)) + slips, np.inf))


def determinant(a: Any, gap: Gap, value: Any, unit: float) -> Gap:
    """The exponential of that sum, with a sign."""
    size, info = np.abs(value), np.finfo(value.dtype)
    with np.errstate(all="ignore"):
        moved = logarithm(a, gap, np.log(size), unit) + 8 * unit
    fits = (size > info.tiny**0.5) & (size < info.max**0.5) & (moved < 1)
    return np.where(fits, size * np.expm1(np.where(fits, moved, 0)), np.inf)


def cofactors(a: Any, gap: Gap, value: Any, unit: float) -> Gap:
    """det(A) inv(A).T, from both; it is found from a decomposition of A, whose factors are multiplied."""
    whole = gap + _steps(np.abs(a) + gap, unit)
    det = np.asarray(np.linalg.det(a.astype(np.float64)))
    made, far = _inverses(a, whole, unit)
    moved = determinant(a, whole, det, unit)[..., None, None]
    size = np.abs(det)[..., None, None]
    near = np.abs(value - (det[..., None, None] * made).mT)
    off = near + (moved * (np.abs(made) + far) + size * far).mT
    return _known(off + _steps(np.abs(value) + off, unit))


def _known(gap: Gap) -> Gap:
    return np.where(np.isfinite(gap), gap, np.inf)
