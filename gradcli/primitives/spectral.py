"""Eigenvalues of symmetric matrices and singular values.

Where two of them are equal the function has a kink: a gap is divided by, never masked, so that what does not depend
on it stays right and what does becomes NaN. The derivatives of the vectors are those with zero diagonal; values never
depend on that choice.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, structured
from gradcli.graph.types import Type
from gradcli.primitives.axes import (
    described,
    filled,
    identity_matrix,
    part,
    placed,
    require_matrix,
    require_square,
    reshaped,
    reversed_along,
)
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.closed_forms import entry_of, from_columns, larger_than_2x2
from gradcli.primitives.comparison import where
from gradcli.primitives.contraction import matmul_call
from gradcli.primitives.joining import joined
from gradcli.primitives.matrix_functions import inv, symmetric
from gradcli.primitives.movement import broadcast, sum_
from gradcli.primitives.powers import sqrt

# --- small steps -------------------------------------------------------------------------------------------


def _across(w: Any, size: int) -> Any:
    """A number for each column, repeated down the rows."""
    return broadcast(reshaped(w, (*w.shape[:-1], 1, w.shape[-1])), shape=(*w.shape[:-1], size, w.shape[-1]))


def _gaps(w: Any) -> Any:
    """w[j] - w[i] in row i, column j, with 1 on the diagonal; and 1 off the diagonal, 0 on it."""
    size = w.shape[-1]
    across = _across(w, size)
    unit = stretch(identity_matrix(w, size), across.shape)
    return across - across.mT + unit, 1 - unit


def _neighbours(w: Any) -> Any:
    size = w.shape[-1]
    if size < 2:
        return filled(w, 1, ())
    return part(w, -1, 1, size - 1) - part(w, -1, 0, size - 1)


# --- exact forms for small matrices: what symbols and balls read -------------------------------------------


def _two_halves(x: Any) -> tuple[Any, Any, Any, Any]:
    """Of a symmetric matrix [[m + a, b], [b, m - a]]: m, a, b, and the distance of the eigenvalues from m."""
    first, last, b = entry_of(x, 0, 0), entry_of(x, 1, 1), entry_of(x, 1, 0)
    a = (first - last) / 2
    return (first + last) / 2, a, b, sqrt(a * a + b * b)


def _eigvals_exact(x: Any) -> Any:
    size = x.shape[-1]
    if size == 1:
        return reshaped(x, x.shape[:-1])
    if size > 2:
        return larger_than_2x2(x, shape=x.shape[:-1])
    middle, _, _, radius = _two_halves(x)
    lead = (*middle.shape, 1)
    return joined([reshaped(middle - radius, lead), reshaped(middle + radius, lead)], -1)


def _eigvecs_exact(x: Any) -> Any:
    """Of the two forms of a vector the one without cancellation; its sign has no influence on eigenvalues."""
    size = x.shape[-1]
    if size == 1:
        return filled(x, 1, x.shape)
    if size > 2:
        return larger_than_2x2(x, shape=x.shape)
    _, a, b, radius = _two_halves(x)
    rising = a >= 0
    first, second = where(rising, a + radius, b), where(rising, b, radius - a)
    length = sqrt(first * first + second * second)
    first, second = first / length, second / length
    return from_columns((-second, first), (first, second))


def _svd_exact(x: Any) -> tuple[Any, Any, Any]:
    """U, s and V from the smaller of x.T @ x and x @ x.T; the vectors of the other side follow from these."""
    tall = x.shape[-1] <= x.shape[-2]
    gram = x.mT @ x if tall else x @ x.mT
    s = reversed_along(sqrt(_eigvals_exact(gram)), -1)
    own = reversed_along(_eigvecs_exact(gram), -1)
    other = (x if tall else x.mT) @ own
    other = other / _across(s, other.shape[-2])
    return (other, s, own) if tall else (own, s, other)


def _eigvecs_push(t: Any, x: Any, *, out: Any) -> Any:
    gap, off = _gaps(eigvalsh(x))
    return out @ ((out.mT @ t @ out) * (off / gap))


eigvecs: Primitive = structured(
    "eigvecs",
    "The eigenvectors of a symmetric matrix, in columns, by ascending eigenvalue.",
    impl=lambda xp, x, *, ranks: xp.eigh(x)[1],
    definition=_eigvecs_exact,  # for exact readings; derivatives come from the pushforward
    pushforward=[_eigvecs_push],
    internal=True,
    domain=[REAL],
)


def _eigvalsh_push(t: Any, x: Any, *, out: Any) -> Any:
    vectors = eigvecs(x)
    return sum_(vectors * (t @ vectors), axis=(-2,))


def _eigvalsh_call(x: Any) -> Any:
    require_square(x, "eigvalsh")
    return eigvalsh(symmetric(x))


eigvalsh: Primitive = structured(
    "eigvalsh",
    "The eigenvalues of the symmetric matrix (A + A.T)/2, in ascending order.",
    impl=lambda xp, x, *, ranks: xp.eigvalsh(x),
    definition=_eigvals_exact,
    pushforward=[_eigvalsh_push],
    type_rule=lambda x: Type(x.kind, x.shape[:-1]),
    call=_eigvalsh_call,
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3), "symmetric")],
    kinks=[
        Kink(
            lambda x: _neighbours(eigvalsh(x)),
            "where two eigenvalues are equal",
            "that of an arbitrary choice of eigenvectors",
        )
    ],
    formula="λ with det((A + A.T)/2 - λ*I) = 0",
    examples=[("eigvalsh([[2, 1], [1, 2]])", [1, 3])],
    node="LinalgEighBackward0",
)

# --- vectors for scripts ---------------------------------------------------------------------------------------
#
# A vector of norm 1 is known up to its sign, and libraries choose it by chance. Here its product with fixed weights is
# positive: the same vector on every machine, and in exact readings.


def _signs(vectors: Any) -> Any:
    """1 or -1 for each column, repeated down the rows."""
    size = vectors.shape[-2]
    if not size:
        return filled(vectors, 1, vectors.shape)
    weights = joined([filled(vectors, Fraction(618, 1000) ** i, (1, 1)) for i in range(size)], -1)
    rows = stretch(weights, (*vectors.shape[:-2], 1, size))
    along = rows @ vectors
    return stretch(where(along < 0, -1, 1), vectors.shape[:-2] + (size, vectors.shape[-1]))


def _eigh(x: Any) -> tuple[Any, Any]:
    require_square(x, "eigh")
    matrix = symmetric(x)
    vectors = eigvecs(matrix)
    return eigvalsh(matrix), vectors * _signs(vectors)


eigh = composite(
    "eigh",
    "Two values: the eigenvalues of (A + A.T)/2, ascending, and eigenvectors as columns, whose signs are arbitrary.",
    definition=_eigh,
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3), "symmetric")],
    formula="(A + A.T)/2 = V @ diag(w) @ V.T",
    examples=[
        ("w, V = eigh([[2, 1], [1, 2]]); w", [1, 3]),
        ("w, V = eigh([[4, 2], [2, 1]]); abs(V[:, 1])", [0.8944271909999159, 0.4472135954999579]),
    ],
    node="LinalgEighBackward0",
)

# --- singular values ---------------------------------------------------------------------------------------


def _svd_frame(t: Any, x: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """U, s, V; the direction in their frame; s[j]**2 - s[i]**2 with 1 on the diagonal; 0 there and 1 elsewhere."""
    u, s, v = svd_u(x), svdvals(x), svd_v(x)
    gap, off = _gaps(s)
    across = _across(s, s.shape[-1])
    unit = 1 - off
    sums = across + across.mT
    return u, s, v, u.mT @ t @ v, gap * (sums * off + unit), off


def _svd_u_push(t: Any, x: Any, *, out: Any) -> Any:
    """dU = U (F * (M S + S M.T)) + (I - U U.T) dA V S^-1, with M = U.T dA V and F = 1/(s[j]**2 - s[i]**2)."""
    u, s, v, inside, gap, off = _svd_frame(t, x)
    size = s.shape[-1]
    scaled = inside * _across(s, size)
    moved = u @ ((scaled + scaled.mT) * (off / gap))
    rows = x.shape[-2]
    if rows == size:
        return moved
    beyond = t @ v
    return moved + (beyond - u @ inside) / _across(s, rows)


def _svd_v_push(t: Any, x: Any, *, out: Any) -> Any:
    """The same for the transposed matrix, in which U and V change places."""
    u, s, v, inside, gap, off = _svd_frame(t, x)
    size = s.shape[-1]
    scaled = inside.mT * _across(s, size)
    moved = v @ ((scaled + scaled.mT) * (off / gap))
    columns = x.shape[-1]
    if columns == size:
        return moved
    beyond = t.mT @ u
    return moved + (beyond - v @ inside.mT) / _across(s, columns)


svd_u: Primitive = structured(
    "svd_u",
    "The left singular vectors, in columns, by descending singular value.",
    impl=lambda xp, x, *, ranks: xp.svd(x)[0],
    definition=lambda x: _svd_exact(x)[0],
    pushforward=[_svd_u_push],
    type_rule=lambda x: Type(x.kind, (*x.shape[:-1], min(x.shape[-2:]))),
    internal=True,
    domain=[REAL],
)

svd_v: Primitive = structured(
    "svd_v",
    "The right singular vectors, in columns, by descending singular value.",
    impl=lambda xp, x, *, ranks: xp.swapaxes(xp.svd(x)[2], -1, -2),
    definition=lambda x: _svd_exact(x)[2],
    pushforward=[_svd_v_push],
    type_rule=lambda x: Type(x.kind, (*x.shape[:-2], x.shape[-1], min(x.shape[-2:]))),
    internal=True,
    domain=[REAL],
)


def _svdvals_push(t: Any, x: Any, *, out: Any) -> Any:
    return sum_(svd_u(x) * (t @ svd_v(x)), axis=(-2,))


def _svdvals_call(x: Any) -> Any:
    require_matrix(x, "svdvals")
    return svdvals(x)


def _svdvals_gaps(x: Any) -> Any:
    """s[0] - s[1], s[1] - s[2], ..., s[n-1] - 0: zero where two are equal or the last one vanishes."""
    s = svdvals(x)
    size = s.shape[-1]
    return s - placed(part(s, -1, 1, size - 1), -1, 0, size)


svdvals: Primitive = structured(
    "svdvals",
    "The singular values of a matrix, in descending order.",
    impl=lambda xp, x, *, ranks: xp.svd(x)[1],
    definition=lambda x: _svd_exact(x)[1],
    pushforward=[_svdvals_push],
    type_rule=lambda x: Type(x.kind, (*x.shape[:-2], min(x.shape[-2:]))),
    call=_svdvals_call,
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 2))],
    kinks=[
        Kink(
            _svdvals_gaps,
            "where two singular values are equal, or one is 0",
            "that of an arbitrary choice of singular vectors",
        )
    ],
    formula="the square roots of the eigenvalues of x.T @ x",
    examples=[("svdvals([[3, 0], [0, 4]])", [4, 3])],
    node="LinalgSvdBackward0",
)


def _svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    require_matrix(x, "svd")
    if not compute_uv:
        return svdvals(x)
    if full_matrices and x.shape[-1] != x.shape[-2]:
        raise error(
            "GC320",
            f"svd of {described(x)}: the vectors beyond the singular values are arbitrary",
            help="write svd(A, full_matrices=False)",
        )
    left, right = svd_u(x), svd_v(x)
    signs = _signs(left)  # one sign for both: their product stays
    first = part(signs, -2, 0, 1)
    return left * signs, svdvals(x), (right * broadcast(first, shape=right.shape)).mT


svd = composite(
    "svd",
    "Three values: U, the singular values, descending, and the transpose of V; the signs of vectors are arbitrary.",
    definition=_svd,
    static=("full_matrices", "compute_uv"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3))],
    formula="A = U @ diag(s) @ Vh",
    examples=[
        ("u, s, vh = svd([[3, 0], [0, 4]]); s", [4, 3]),
        ("u, s, vh = svd([[3, 0], [0, 4], [0, 0]], full_matrices=False); abs(vh)", [[0, 1], [1, 0]]),
        ("svd([[3, 0], [0, 4]], compute_uv=False)", [4, 3]),
    ],
    node="LinalgSvdBackward0",
)

# --- the pseudoinverse -------------------------------------------------------------------------------------


def _pinv_exact(x: Any) -> Any:
    """Of a matrix of full rank."""
    return inv(x.mT @ x) @ x.mT if x.shape[-1] <= x.shape[-2] else x.mT @ inv(x @ x.mT)


def _pinv_push(t: Any, x: Any, *, out: Any) -> Any:
    """-P T P, and what a change of the column space adds for a tall matrix, of the row space for a wide one."""
    moved = -(out @ t @ out)
    rows, columns = x.shape[-2:]
    if rows > columns:
        rest = t.mT - (t.mT @ x) @ out
        return moved + (out @ out.mT) @ rest
    if rows < columns:
        rest = t.mT - out @ (x @ t.mT)
        return moved + rest @ (out.mT @ out)
    return moved


def _pinv_call(x: Any) -> Any:
    require_matrix(x, "pinv")
    return pinv(x)


def _smallest(x: Any) -> Any:
    s = svdvals(x)
    return part(s, -1, s.shape[-1] - 1, 1)


pinv: Primitive = structured(
    "pinv",
    "The pseudoinverse of a matrix; its derivatives hold for matrices of full rank.",
    impl=lambda xp, x, *, ranks: xp.pinv(x),
    definition=_pinv_exact,
    pushforward=[_pinv_push],
    type_rule=lambda x: Type(x.kind, (*x.shape[:-2], x.shape[-1], x.shape[-2])),
    call=_pinv_call,
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 2))],
    kinks=[Kink(_smallest, "where the rank drops", "that at full rank", discontinuity=True)],
    formula="(x.T @ x)⁻¹ @ x.T, or x.T @ (x @ x.T)⁻¹",
    examples=[("pinv([[2, 0], [0, 4]])", [[0.5, 0], [0, 0.25]]), ("pinv([[1], [1]])", [[0.5, 0.5]])],
    node="LinalgPinvBackward0",
)


def _lstsq(a: Any, b: Any) -> Any:
    require_matrix(a, "lstsq")
    return matmul_call(pinv(a), b)


lstsq = composite(
    "lstsq",
    "The x of smallest norm among those with the smallest norm of a @ x - b: the pseudoinverse of a times b.",
    definition=_lstsq,
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (3, 2)), (Closed(-2, 2), (3,))],
    formula="(a.T @ a)⁻¹ @ a.T @ b",
    traits="real_only",
    examples=[("lstsq([[1], [1]], [2, 4])", [3]), ("lstsq([[2, 0], [0, 4]], [2, 8])", [1, 2])],
)
