"""`torch.linalg`: inverses, factors, spectra and norms; the rules are those of the catalogue.

`eigh`, `qr`, `svd` and `slogdet` are one node with several outputs, as in PyTorch.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import Order, Sizes, checked
from gradcli.eager._engine.record import declared, fields, one_node, operation, record
from gradcli.eager._ops import elementwise as _elementwise
from gradcli.eager._ops import tensor_reductions as _reductions
from gradcli.eager._ops.matmul import cross, matmul  # noqa: F401 - a name of torch.linalg too
from gradcli.eager._ops.table import LINALG, formula, functions_of, op
from gradcli.eager._ops.tensor_reductions import norm, vector_norm  # noqa: F401
from gradcli.eager._ops.views import axis_of
from gradcli.primitives import catalogue
from gradcli.primitives.axes import identity_matrix
from gradcli.primitives.broadcasting import stretch


class LinAlgError(RuntimeError):
    """A matrix is singular, or not what an operation needs."""


LinAlgError.__name__ = "_LinAlgError"  # as PyTorch's is called in a traceback

Slogdet, Eigh = fields("linalg_slogdet", "sign logabsdet"), fields("linalg_eigh", "eigenvalues eigenvectors")
Qr, Svd = fields("linalg_qr", "Q R"), fields("linalg_svd", "U S Vh")


def _square(x: Tensor, name: str) -> None:
    if x.dtype.kind < 2:
        raise RuntimeError(f"linalg.{name}: expected a floating point or complex tensor as input, got {x.dtype}")
    if x.ndim < 2:
        raise RuntimeError(f"linalg.{name}: the input tensor must have at least 2 dimensions")
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"linalg.{name}: A must be batches of square matrices, but they are {list(x.shape[-2:])}")


def _of(ours: Any, function: Any, *xs: Tensor) -> Tensor:
    """An operation of whole matrices, a declared one or a formula, recorded under the node of a function."""
    return record(operation(ours) if isinstance(ours, str) else ours, xs, {}, function.node)


def _of_square(ours: str, function: Any, x: Tensor) -> Tensor:
    _square(x, function.row.name)
    return _of(ours, function, x)


def _finite(result: Tensor, reason: str, *xs: Tensor) -> Tensor:
    """A result; LinAlgError where it is not finite, although the operands are."""
    if not np.isfinite(result._raw).all() and all(np.isfinite(x._raw).all() for x in xs):
        raise LinAlgError(reason)
    return result


@op("inverse", only=LINALG, node="LinalgInvExBackward0")
def inv(A: Tensor) -> Tensor:
    """The inverse; LinAlgError for a singular matrix."""
    inverse = _of_square("inv", inv, A)
    return _finite(inverse, "linalg.inv: the matrix is singular, so it has no inverse", A)


@op(node="LinalgDetBackward0")
def det(A: Tensor) -> Tensor:
    """The determinant."""
    return _of_square("det", det, A)


@op(node="LinalgSlogdetBackward0")
def slogdet(A: Tensor) -> Any:
    """The sign of the determinant, and the logarithm of its absolute value."""
    parts = [_of_square(part, slogdet, A) for part in ("slogdet_sign", "logabsdet")]
    return Slogdet(*one_node(slogdet.node, *parts))


@op()
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where it is negative."""
    sign, size = slogdet(input)
    return _elementwise.where(Tensor(np.asarray(sign._raw < 0)), float("nan"), size)  # type: ignore[no-any-return]


@op(only=LINALG, node="LinalgSolveExBackward0")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A X = B; B is a vector, or a matrix of right-hand sides."""
    _square(A, "solve")
    if A.dtype is not B.dtype:
        raise RuntimeError(f"linalg.solve: A and B need one dtype, not {A.dtype} and {B.dtype}")
    if not left:
        return solve(A.mT, B.mT).mT
    solution = _of("solve", solve, A, B)
    return _finite(solution, "linalg.solve: the matrix is singular, so the system has no unique solution", A, B)


@op(only=LINALG, node="LinalgSolveTriangularBackward0")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The X with A X = B, or X A = B for `left=False`, of the upper or lower triangle of A.

    `unitriangular` reads ones on the diagonal. NaN for a singular triangle; RuntimeError for shapes that do not fit.
    """
    _square(A, "solve_triangular")
    if B.ndim < 2:
        raise RuntimeError("linalg.solve_triangular: B must have at least 2 dimensions")
    sides = {"upper": upper, "left": left, "unitriangular": unitriangular}
    return record(_triangular, (A, B), sides, solve_triangular.node)


def _triangular(A: Any, B: Any, *, upper: bool, left: bool, unitriangular: bool) -> Any:
    half = catalogue()["triu" if upper else "tril"]
    if unitriangular:
        A = half(A, k=1 if upper else -1) + stretch(identity_matrix(A, A.shape[-1]), tuple(A.shape))
    else:
        A = half(A, k=0)
    return declared("solve", A, B) if left else declared("solve", A.mT, B.mT).mT


@op(node="LinalgCholeskyExBackward0")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L L^T; LinAlgError unless A is positive definite."""
    factor = _of_square("cholesky", cholesky, A)
    if np.isnan(factor._raw).any():
        raise LinAlgError("linalg.cholesky: the input is not positive-definite")
    return factor.mT if upper else factor


@op(only=LINALG, node="LinalgEighBackward0")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, in ascending order."""
    return one_node(eigvalsh.node, _of_square("eigvalsh", eigvalsh, A), None)[0]


@op(only=LINALG, node="LinalgEighBackward0")
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of a symmetric matrix in ascending order, and their vectors."""
    return Eigh(*one_node(eigh.node, *[_of_square(part, eigh, A) for part in ("eigvalsh", "eigvecs")]))


@op(only=LINALG, node="LinalgQrBackward0")
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """A = Q R with orthogonal columns Q and an upper triangle R."""
    if mode != "reduced":
        raise RuntimeError(f"linalg.qr: only mode='reduced' is supported, not {mode!r}")
    return Qr(*one_node(qr.node, _of("qr_q", qr, A), _of(_triangle, qr, A)))


def _triangle(A: Any) -> Any:
    return catalogue()["triu"](catalogue()["qr_q"](A).mT @ A, k=0)  # below it there is rounding only


@op(only=LINALG, node="LinalgSvdBackward0")
def svdvals(A: Tensor) -> Tensor:
    """The singular values, in descending order."""
    return one_node(svdvals.node, None, _of("svdvals", svdvals, A), None)[0]


@op(only=LINALG, node="LinalgSvdBackward0")
def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """A = U diag(S) Vh with orthogonal columns U and rows Vh; only for `full_matrices=False` or square matrices."""
    if full_matrices and A.shape[-1] != A.shape[-2]:
        raise RuntimeError("linalg.svd: only full_matrices=False is supported for matrices that are not square")
    return Svd(*one_node(svd.node, *[_of(part, svd, A) for part in ("svd_u", "svdvals", _rows)]))


def _rows(A: Any) -> Any:
    return catalogue()["svd_v"](A).mT


@op()
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of n equal matrices, by squaring; the inverse for negative n."""
    _square(A, "matrix_power")
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return Tensor(np.broadcast_to(np.eye(A.shape[-1], dtype=A._raw.dtype), A._raw.shape).copy())
    if n == 3:
        return matmul(matmul(A, A), A)
    product: Any = None
    square: Any = None
    while n:
        square = A if square is None else matmul(square, square)
        if n & 1:
            product = square if product is None else matmul(product, square)
        n >>= 1
    return product  # type: ignore[no-any-return]


@op(node="LinalgMatrixExpBackward0")
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix."""
    return _of_square("expm", matrix_exp, A)


@op(only=LINALG)
def matrix_norm(A: Tensor, ord: Order = "fro", dim: Sizes = (-2, -1), keepdim: bool = False) -> Tensor:
    """The Frobenius norm of matrices; 'nuc' and 2 through singular values, 1 and inf through sums."""
    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim)
    if ord == "nuc":
        return _reductions.sum(svdvals(A), -1)
    if ord in (2, -2):
        return svdvals(A)[..., 0 if ord > 0 else -1]  # type: ignore[index, no-any-return]
    if ord in (1, float("inf")):
        rows, columns = (axis_of(d, A.ndim) + A.ndim for d in dim)
        first, second = (rows, columns) if ord == 1 else (columns, rows)
        sums = _reductions.sum(_elementwise.ROWS["abs"](A), first, True)
        largest: Tensor = _reductions.amax(sums, second, True)
        return largest if keepdim else largest.squeeze((rows, columns))
    raise RuntimeError(f"linalg.matrix_norm: order {ord!r} is not supported")


@formula("pinverse", pointwise=False, only=LINALG, node="LinalgPinvBackward0")
def pinv(A: Tensor) -> Any:
    """The pseudoinverse of a matrix of full rank: (A^T A)^-1 A^T, or A^T (A A^T)^-1."""
    return declared("pinv", A)


_FUNCTIONS = {name: checked(f) for name, f in functions_of(sys.modules[__name__]).items() if name in globals()}
globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)

__getattr__, __dir__ = room("linalg", ["LinAlgError", *__all__])
