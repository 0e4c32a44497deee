"""The determinant with derivatives that are exact at every rank, its logarithm and its sign.

The derivative of det is the matrix of cofactors. cof0, cof1 and cof2 are that matrix and its first two derivatives,
evaluated in an SVD frame with products of singular values of which one, two or three are left out: nothing is
divided, so a singular matrix is like any other up to the third order. Each is symmetric in its matrices, so each is
its own transpose. From the fourth order on, the formula for regular matrices is used.
"""

from __future__ import annotations

from typing import Any

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, composite, nondifferentiable, structured
from gradcli.graph.types import Type
from gradcli.primitives.arithmetic import real_part
from gradcli.primitives.axes import diagonal, identity_matrix, require_square, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.exact_matrices import cofactors, each_matrix
from gradcli.primitives.exact_matrices import determinant as exact_determinant
from gradcli.primitives.exponential import log
from gradcli.primitives.matrix_functions import inv
from gradcli.primitives.movement import sum_
from gradcli.primitives.steps import abs_, sign

_SQUARE = [(Closed(-2, 2), (3, 3))]
NEAR = 1e3  # condition number, by Frobenius norms, up to which an inverse is as good as singular values
LEAST = 1e-280  # of a determinant that has all its digits


def _number_type(x: Type) -> Type:
    return Type(x.kind, x.shape[:-2])


def _pairing(x: Any, y: Any) -> Any:
    """The sum of products of entries, for each matrix."""
    return sum_(x * y, axis=(-2, -1))


# --- values in an SVD frame --------------------------------------------------------------------------------


def _frame(xp: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """U, s and V with a = U diag(s) V.T, and the sign det(U) det(V); complex matrices conjugate U and V."""
    u, s, vh = xp.svd(a, real=False)
    return u, s, xp.swapaxes(vh, -1, -2), xp.sign(xp.det(xp.matmul(u, vh)))


def _without_each(xp: Any, s: Any) -> Any:
    """For each entry of the last axis, the product of the others; from the left times from the right."""
    ones = xp.ones_like(s[..., :1])
    left = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    right = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)
    return left * right[..., ::-1]


def _without_pairs(xp: Any, s: Any) -> Any:
    """p[i, j]: the product of all but s[i] and s[j]; 0 where i = j."""
    size = s.shape[-1]
    same = xp.eye(size, dtype=bool)
    others = xp.where(same, 1.0, s[..., None, :])
    return xp.where(same, 0.0, _without_each(xp, others))


def _without_triples(xp: Any, s: Any) -> Any:
    """p[i, j, k]: the product of all but s[i], s[j] and s[k]; 0 unless these are three."""
    size = s.shape[-1]
    same = xp.eye(size, dtype=bool)
    ij, ik, jk = same[:, :, None], same[:, None, :], same[None, :, :]
    others = xp.where(ik | jk, 1.0, s[..., None, None, :])
    return xp.where(ij | ik | jk, 0.0, _without_each(xp, others))


def _regular(xp: Any, a: Any) -> Any:
    """det(a) inv(a).T, the cofactors of matrices far from singular ones, by NumPy; None for any other."""
    if xp.name != "numpy" or a.dtype != "float64" or not a.size:
        return None
    try:
        inverse = xp.library.linalg.inv(a)
    except xp.library.linalg.LinAlgError:
        return None
    whole = xp.det(a)
    if a.ndim == 2:  # Python's numbers, which take a fraction of the time
        near = float(xp.library.vdot(a, a)) * float(xp.library.vdot(inverse, inverse)) < NEAR**2
        return inverse.T * whole if near and LEAST < abs(float(whole)) < 1 / LEAST else None
    flat, other = a.reshape(*a.shape[:-2], -1), inverse.reshape(*a.shape[:-2], -1)
    squares = xp.library.vecdot(flat, flat) * xp.library.vecdot(other, other)
    size = xp.abs(whole)
    if not ((squares < NEAR**2) & (size > LEAST) & (size < 1 / LEAST)).all():  # NaN is not below it
        return None
    return xp.swapaxes(inverse, -1, -2) * whole[..., None, None]


def _cof0_value(xp: Any, a: Any, *, ranks: Any) -> Any:
    regular = _regular(xp, a)
    if regular is not None:
        return regular
    u, s, v, sign = _frame(xp, a)
    scaled = xp.conj(u) * (sign[..., None] * _without_each(xp, s))[..., None, :]
    return xp.matmul(scaled, xp.conj(xp.swapaxes(v, -1, -2)))


def _inside(xp: Any, u: Any, v: Any, t: Any) -> Any:
    """A direction seen in the frame."""
    return xp.matmul(xp.conj(xp.swapaxes(u, -1, -2)), xp.matmul(t, xp.conj(v)))


def _outside(xp: Any, u: Any, v: Any, sign: Any, cofactor: Any) -> Any:
    return sign[..., None, None] * xp.matmul(xp.conj(u), xp.matmul(cofactor, xp.conj(xp.swapaxes(v, -1, -2))))


def _diagonal_matrix(xp: Any, d: Any) -> Any:
    return xp.where(xp.eye(d.shape[-1], dtype=bool), d[..., None, :], 0.0)


def _cof1_value(xp: Any, a: Any, t: Any, *, ranks: Any) -> Any:
    """For a diagonal matrix: c[i, i] = sum of p[i, j] t[j, j], c[i, j] = -p[i, j] t[j, i]."""
    u, s, v, sign = _frame(xp, a)
    inner = _inside(xp, u, v, t)
    p = _without_pairs(xp, s)
    own = xp.diagonal(inner, axis1=-2, axis2=-1)
    straight = xp.einsum("...ij,...j->...i", p, own)
    cofactor = _diagonal_matrix(xp, straight) - p * xp.swapaxes(inner, -1, -2)
    return _outside(xp, u, v, sign, cofactor)


def _cof2_value(xp: Any, a: Any, t: Any, w: Any, *, ranks: Any) -> Any:
    """For a diagonal matrix, with three different indices throughout:

    c[i, i] = sum of p[i, j, k] (t[j, j] w[k, k] - t[j, k] w[k, j]),
    c[i, j] = sum of p[i, j, k] (t[j, k] w[k, i] + w[j, k] t[k, i] - t[j, i] w[k, k] - w[j, i] t[k, k]).
    """
    u, s, v, sign = _frame(xp, a)
    t, w = _inside(xp, u, v, t), _inside(xp, u, v, w)
    p = _without_triples(xp, s)
    tt, ww = xp.diagonal(t, axis1=-2, axis2=-1), xp.diagonal(w, axis1=-2, axis2=-1)
    pairs = tt[..., :, None] * ww[..., None, :] - t * xp.swapaxes(w, -1, -2)
    straight = xp.einsum("...ijk,...jk->...i", p, pairs)
    crossed = xp.einsum("...ijk,...jk,...ki->...ij", p, t, w) + xp.einsum("...ijk,...jk,...ki->...ij", p, w, t)
    crossed = crossed - xp.swapaxes(t, -1, -2) * xp.einsum("...ijk,...k->...ij", p, ww)
    crossed = crossed - xp.swapaxes(w, -1, -2) * xp.einsum("...ijk,...k->...ij", p, tt)
    return _outside(xp, u, v, sign, _diagonal_matrix(xp, straight) + crossed)


# --- the family --------------------------------------------------------------------------------------------


def _cof2_push(direction: Any, x: Any, t: Any, w: Any, *, out: Any) -> Any:
    """The third derivative of the cofactors, for a regular matrix.

    With B the inverse, X = B t, Y = B w, Z = B d, the adjugate is det * K * B, where K starts as 1 and each direction
    adds: K is multiplied by tr(Z), X becomes -Z X, and B becomes -Z B.
    """
    b = inv(x)
    size = x.shape[-1]

    def tr(m: Any) -> Any:
        return sum_(diagonal(m), axis=(-1,))

    def times(number: Any, m: Any) -> Any:
        return stretch(reshaped(number, (*number.shape, 1, 1)), m.shape) * m

    X, Y, Z = b @ t, b @ w, b @ direction
    eye = stretch(identity_matrix(x, size), x.shape)
    XY, YX, ZX, ZY = X @ Y, Y @ X, Z @ X, Z @ Y
    second = times(tr(X) * tr(Y) - tr(XY), eye) - times(tr(Y), X) - times(tr(X), Y) + XY + YX  # K after two directions
    moved = (
        times(tr(Z @ (XY + YX)) - tr(ZX) * tr(Y) - tr(X) * tr(ZY), eye)
        + times(tr(ZY), X)
        + times(tr(Y), ZX)
        + times(tr(ZX), Y)
        + times(tr(X), ZY)
        - Z @ (XY + YX)
        - X @ ZY
        - Y @ ZX
    )
    third = times(tr(Z), second) + moved - second @ Z
    return times(det(x), (third @ b).mT)


det: Primitive = structured(
    "det",
    "The determinant of a square matrix.",
    impl=lambda xp, x, *, ranks: xp.det(x),
    entries=each_matrix(exact_determinant),
    pushforward=[lambda t, x, *, out: _pairing(cof0(x), t)],
    type_rule=_number_type,
    call=lambda x: _checked(det, x, "det"),
    domain=[REAL],
    sample=_SQUARE,
    formula="det(x)",
    examples=[("det([[1, 2], [3, 4]])", -2), ("det([[1, 2], [2, 4]])", 0)],
    node="LinalgDetBackward0",
    names="latex. numpy.linalg. torch.linalg.",
    traits="every_size",
)

cof0: Primitive = structured(
    "cof0",
    "The matrix of cofactors: the derivative of the determinant, at every rank.",
    impl=_cof0_value,
    entries=each_matrix(cofactors),
    pushforward=[lambda t, x, *, out: cof1(x, t)],
    internal=True,
    domain=[REAL],
    sample=_SQUARE,
    formula="det(x) * x⁻¹.T",
    closed=lambda x: stretch(reshaped(det(x), (*x.shape[:-2], 1, 1)), x.shape) * inv(x).mT,
)

cof1: Primitive = structured(
    "cof1",
    "The derivative of the cofactors along t, at every rank.",
    impl=_cof1_value,
    entries=each_matrix(cofactors),
    pushforward=[
        lambda d, x, t, *, out: cof2(x, t, d),
        lambda d, x, t, *, out: cof1(x, d),
    ],
    transpose={1: lambda ct, x, t: cof1(x, ct)},
    aligned=True,
    internal=True,
    domain=[REAL, REAL],
    sample=_SQUARE * 2,
)

cof2: Primitive = structured(
    "cof2",
    "The second derivative of the cofactors along t and w, at every rank.",
    impl=_cof2_value,
    entries=each_matrix(cofactors),
    pushforward=[
        _cof2_push,
        lambda d, x, t, w, *, out: cof2(x, d, w),
        lambda d, x, t, w, *, out: cof2(x, t, d),
    ],
    transpose={1: lambda ct, x, t, w: cof2(x, ct, w), 2: lambda ct, x, t, w: cof2(x, t, ct)},
    aligned=True,
    internal=True,
    domain=[REAL, REAL, REAL],
    sample=_SQUARE * 3,
)

# --- logarithm and sign ------------------------------------------------------------------------------------


def _checked(primitive: Any, x: Any, what: str) -> Any:
    require_square(x, what)
    return primitive(x)


def _logdet_value(xp: Any, x: Any, *, ranks: Any) -> Any:
    sign, logarithm = xp.slogdet(x)
    return xp.where(sign == 0, logarithm, logarithm + xp.log(sign))  # the logarithm of a negative sign is NaN


logdet: Primitive = structured(
    "logdet",
    "The logarithm of the determinant; NaN where that is negative.",
    impl=_logdet_value,
    definition=lambda x: log(det(x)),  # for exact readings; derivatives come from the pushforward
    pushforward=[lambda t, x, *, out: _pairing(inv(x).mT, t)],
    type_rule=_number_type,
    call=lambda x: _checked(logdet, x, "logdet"),
    domain=[REAL],
    sample=[(Closed(-1, 1), (3, 3), "positive definite")],
    formula="log(det(x))",
    examples=[("logdet([[2, 1], [1, 2]])", 1.0986122886681098)],
    node="LinalgSlogdetBackward0",
    traits="every_size",
)


def _slogdet(x: Any) -> tuple[Any, Any]:
    require_square(x, "slogdet")
    return slogdet_sign(x), logabsdet(x)


slogdet = composite(
    "slogdet",
    "Two values: the sign of the determinant and the logarithm of its absolute value.",
    definition=_slogdet,
    domain=[REAL],
    sample=_SQUARE,
    formula="sign(det(x)), log(|det(x)|)",
    examples=[("slogdet([[0, 1], [2, 0]])[0]", -1), ("slogdet([[1, 0], [0, -2]])[1]", 0.6931471805599453)],
    node="LinalgSlogdetBackward0",
    traits="every_size",
)

slogdet_sign = nondifferentiable(
    "slogdet_sign",
    "The sign of the determinant: -1, 0 or 1.",
    impl=lambda xp, x, *, ranks: xp.slogdet(x)[0],
    definition=lambda x: sign(det(x)),
    plane=lambda z: sign(det(z)),
    type_rule=_number_type,
    arity=1,
    internal=True,
    domain=[REAL],
    sample=_SQUARE,
)

logabsdet: Primitive = structured(
    "logabsdet",
    "The logarithm of the absolute value of the determinant.",
    impl=lambda xp, x, *, ranks: xp.slogdet(x)[1],
    definition=lambda x: log(abs_(det(x))),
    plane=lambda z: real_part(logdet(z)),
    pushforward=[lambda t, x, *, out: _pairing(inv(x).mT, t)],
    type_rule=_number_type,
    internal=True,
    domain=[REAL],
    sample=_SQUARE,
    formula="log(|det(x)|)",
)
