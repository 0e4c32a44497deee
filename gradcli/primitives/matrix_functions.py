"""Inverses, linear systems, matrix functions, and the factors of Cholesky and QR.

Everything works on the last two axes. A bad matrix gives NaN for itself alone. What a symmetric routine would
read from one triangle is read from both: cholesky(A) is that of (A + A.T)/2.
"""

from __future__ import annotations

from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, composite, structured
from gradcli.graph.types import broadcast_shapes
from gradcli.primitives.axes import (
    described,
    filled,
    identity_matrix,
    part,
    require_matrix,
    require_option,
    require_square,
    reshaped,
)
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.closed_forms import exponential, exponential_along
from gradcli.primitives.exact_matrices import cholesky_factor, each_matrix, inverse, orthonormal_columns
from gradcli.primitives.movement import concat, unslice
from gradcli.primitives.size_arguments import whole_number
from gradcli.primitives.triangles import tril, triu

_SQUARE = [(Closed(-2, 2), (3, 3))]
POSITIVE_DEFINITE = "positive definite"  # a sample: the matrix is multiplied by its transpose, and I added


def symmetric(x: Any) -> Any:
    """(x + x.T)/2."""
    return (x + x.mT) / 2


# --- inverse and linear systems ----------------------------------------------------------------------------


def _inv_call(x: Any) -> Any:
    require_square(x, "inv")
    return inv(x)


inv: Primitive = structured(
    "inv",
    "The inverse of a square matrix.",
    impl=lambda xp, x, *, ranks: xp.inv(x),
    entries=each_matrix(inverse),
    pushforward=[lambda t, x, *, out: -(out @ t @ out)],
    call=_inv_call,
    domain=[REAL],
    sample=_SQUARE,
    formula="x⁻¹",
    examples=[("inv([[2, 0], [0, 4]])", [[0.5, 0], [0, 0.25]])],
    node="LinalgInvExBackward0",
    names="numpy.linalg. torch.linalg.",
    traits="every_size",
)


def _solve_call(A: Any, b: Any) -> Any:
    require_square(A, "solve")
    right = reshaped(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    if len(right.shape) < 2 or right.shape[-2] != A.shape[-1]:
        sizes = (A.shape[-1], right.shape[-2]) if len(right.shape) > 1 else None
        raise error("GC302", f"cannot solve {described(A)} @ x = {described(b)}", sizes=sizes)
    stacks = broadcast_shapes(A.shape[:-2], right.shape[:-2])
    if stacks is None:
        raise error("GC302", f"cannot solve {described(A)} @ x = {described(b)}")
    x = solve(stretch(A, (*stacks, *A.shape[-2:])), stretch(right, (*stacks, *right.shape[-2:])))
    return reshaped(x, x.shape[:-1]) if len(b.shape) == 1 else x


solve: Primitive = composite(
    "solve",
    "The solution x of A @ x = b, for a vector b or the columns of a matrix.",
    definition=lambda A, b: inv(A) @ b,  # one inverse serves all orders of derivatives
    impl=lambda xp, A, b, *, ranks: xp.solve(A, b),
    type_rule=lambda A, b: b,
    aligned=True,
    arity=2,
    call=_solve_call,
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (3, 3)), (Closed(-2, 2), (3, 2))],
    formula="A⁻¹ @ b",
    examples=[("solve([[2, 0], [0, 4]], [2, 2])", [1, 0.5])],
    node="LinalgSolveExBackward0",
    names="numpy.linalg. torch.linalg.",
    traits="every_size",
)


def _solve_triangular(A: Any, b: Any, lower: bool = False) -> Any:
    require_square(A, "solve_triangular")
    return _solve_call((tril if lower else triu)(A, k=0), b)


solve_triangular = composite(
    "solve_triangular",
    "The solution x of T @ x = b, where T is the upper triangle of A, or with `lower` the lower one.",
    definition=_solve_triangular,
    static=("lower",),
    domain=[REAL, REAL],
    sample=[(Closed(1, 2), (3, 3)), (Closed(-2, 2), (3,))],
    formula="triu(A)⁻¹ @ b",
    examples=[
        ("solve_triangular([[2, 4], [9, 4]], [2, 4])", [-1, 1]),
        ("solve_triangular([[2, 9], [4, 4]], [2, 8], lower=True)", [1, 1]),
    ],
    traits="every_size",
)

# --- factors -----------------------------------------------------------------------------------------------


def _half_lower(x: Any) -> Any:
    """The lower triangle with half of the diagonal."""
    return (tril(x, k=0) + tril(x, k=-1)) / 2


def _cholesky_push(t: Any, x: Any, *, out: Any) -> Any:
    inverted = inv(out)
    return out @ _half_lower(inverted @ t @ inverted.mT)


def _cholesky_call(x: Any) -> Any:
    require_square(x, "cholesky")
    return cholesky(symmetric(x))


cholesky: Primitive = structured(
    "cholesky",
    "The lower triangular L with L @ L.T = (A + A.T)/2, which has to be positive definite.",
    impl=lambda xp, x, *, ranks: xp.cholesky(x),
    entries=each_matrix(cholesky_factor),
    pushforward=[_cholesky_push],
    call=_cholesky_call,
    domain=[REAL],
    sample=[(Closed(-1, 1), (3, 3), POSITIVE_DEFINITE)],
    formula="L with L @ L.T = (A + A.T)/2",
    examples=[("cholesky([[4, 2], [2, 5]])", [[2, 0], [1, 2]])],
    node="LinalgCholeskyExBackward0",
)


def _qr_push(t: Any, x: Any, *, out: Any) -> Any:
    moved = t @ inv(out.mT @ x)
    inside = out.mT @ moved
    below = tril(inside, k=-1)
    return moved - out @ (inside - below + below.mT)


qr_q = structured(
    "qr_q",
    "The orthonormal columns Q of A = Q @ R, for a matrix with at least as many rows as columns.",
    impl=lambda xp, x, *, ranks: xp.qr(x)[0],
    entries=each_matrix(orthonormal_columns),
    pushforward=[_qr_push],
    internal=True,
    domain=[REAL],
    sample=[(Closed(-2, 2), (4, 3))],
    formula="Q with Q.T @ Q = I",
    node="LinalgQrBackward0",
)


def _qr(x: Any, mode: str = "reduced") -> Any:
    require_matrix(x, "qr")
    require_option(mode, ("reduced", "r"), "mode", "qr")
    rows, columns = x.shape[-2:]
    q = qr_q(x if columns <= rows else part(x, -1, 0, rows))
    r = triu(q.mT @ x, k=0)
    return r if mode == "r" else (q, r)


qr = composite(
    "qr",
    "Two values: Q with orthonormal columns and upper triangular R with Q @ R = A.",
    definition=_qr,
    static=("mode",),
    domain=[REAL],
    sample=[(Closed(-2, 2), (4, 3))],
    formula="Q @ R = A",
    examples=[("Q, R = qr([[3, 1], [4, 2]]); abs(R[0, 0])", 5)],
    node="LinalgQrBackward0",
)

# --- matrix functions --------------------------------------------------------------------------------------


def _matrix_power(x: Any, n: int) -> Any:
    require_square(x, "matrix_power")
    whole_number(n, "the exponent of matrix_power")
    if n == 0:
        identity = identity_matrix(x, x.shape[-1])
        return stretch(identity, x.shape)
    base = inv(x) if n < 0 else x
    result, rest = None, abs(n)
    while rest:
        if rest % 2:
            result = base if result is None else result @ base
        rest //= 2
        base = base @ base if rest else base
    return result


matrix_power = composite(
    "matrix_power",
    "The n-th power of a square matrix; for a negative n, that of its inverse.",
    definition=_matrix_power,
    static=("n",),
    domain=[REAL],
    formula="x @ x @ ... @ x",
    examples=[("matrix_power([[1, 1], [0, 1]], 3)", [[1, 3], [0, 1]])],
    node="LinalgMatrixPowerBackward0",
    names="numpy.linalg. torch.linalg.",
)


def _blocks(a: Any, b: Any) -> Any:
    """The matrix [[a, b], [0, a]]."""
    size = a.shape[-1]
    upper = concat(a, b, axis=-1)
    rank = len(a.shape)
    shape = (*a.shape[:-1], 2 * size)
    lower = unslice(a, shape=shape, start=(*(0,) * (rank - 1), size), step=(1,) * rank)
    return concat(upper, lower, axis=-2)


def _corner(x: Any) -> Any:
    """The upper right quarter of a matrix."""
    size = x.shape[-1] // 2
    return part(part(x, -2, 0, size), -1, size, size)


def _frechet_value(xp: Any, x: Any, direction: Any, *, ranks: tuple[int, int]) -> Any:
    size = x.shape[-1]
    upper = xp.concatenate([x, direction], axis=-1)
    lower = xp.concatenate([xp.zeros_like(x), x], axis=-1)
    return xp.expm(xp.concatenate([upper, lower], axis=-2))[..., :size, size:]


def _frechet_push(t: Any, x: Any, direction: Any, *, out: Any) -> Any:
    """exp of [[x, d], [0, x]] holds the derivative in its corner; this is the derivative of that exp."""
    nothing = filled(x, 0, x.shape)
    return _corner(frechet(_blocks(x, direction), _blocks(t, nothing)))


frechet: Primitive = structured(
    "frechet",
    "The derivative of the matrix exponential at x in a direction.",
    impl=_frechet_value,
    definition=exponential_along,  # for exact readings; derivatives come from the pushforwards
    pushforward=[_frechet_push, lambda t, x, direction, *, out: frechet(x, t)],
    transpose={1: lambda ct, x, direction: frechet(x.mT, ct)},
    type_rule=lambda x, direction: direction,
    aligned=True,
    internal=True,
    domain=[REAL, REAL],
    sample=[(Closed(-1, 1), (3, 3)), (Closed(-1, 1), (3, 3))],
    formula="integral of exp(s*x) @ direction @ exp((1 - s)*x) for s from 0 to 1",
)


def _expm_call(x: Any) -> Any:
    require_square(x, "expm")
    return expm(x)


expm: Primitive = structured(
    "expm",
    "The matrix exponential.",
    impl=lambda xp, x, *, ranks: xp.expm(x),
    definition=exponential,
    pushforward=[lambda t, x, *, out: frechet(x, t)],
    call=_expm_call,
    domain=[REAL],
    sample=[(Closed(-1, 1), (3, 3))],
    formula="I + x + x @ x/2! + ...",
    examples=[("expm([[0, 1], [0, 0]])", [[1, 1], [0, 1]])],
    node="LinalgMatrixExpBackward0",
)
