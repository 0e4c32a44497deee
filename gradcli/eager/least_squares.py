"""A matrix of full rank and right-hand sides go in, the solution with the least squares comes out, with a gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.eager.dispatch import record
from gradcli.eager.returned import named
from gradcli.eager.several import one_node
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


class Lstsq(NamedTuple):
    """The solution, its squared errors, the rank, and the singular values: what the driver computes of them."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _solved(A: Any, B: Any) -> Any:
    """By A = Q R, or of fewer rows than columns the shortest solution, by A^T = Q R."""
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mT if wide else A
    primitive, Q = catalogue()["solve"], catalogue()["qr_q"](tall)
    solve = primitive.call or primitive
    R = catalogue()["triu"](Q.mT @ tall, k=0)
    return Q @ solve(R.mT, B) if wide else solve(R, Q.mT @ B)


def _of_vector(A: Any, b: Any) -> Any:
    found = _solved(A, catalogue()["reshape"](b, shape=(*b.shape, 1)))
    return catalogue()["reshape"](found, shape=tuple(found.shape[:-1]))


def _errors(A: Any, B: Any) -> Any:
    away = A @ _solved(A, B) - B
    return catalogue()["sum"](away * away, axis=(-2,))


def _errors_of_vector(A: Any, b: Any) -> Any:
    return _errors(A, catalogue()["reshape"](b, shape=(*b.shape, 1)))


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X with the smallest |A X - B|: the shortest one where there are several.

    RuntimeError for shapes or formats that do not fit, for unknown drivers, and for a gradient where the rank of A is
    not full.
    """
    name = "gelsy" if driver is None else driver
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    vector = B.ndim == A.ndim - 1
    if (B.shape[-1:] if vector else B.shape[-2:-1]) != A.shape[-2:-1]:
        raise RuntimeError("torch.linalg.lstsq: the rows of A and B must be as many")
    if A.dtype is not B.dtype:
        raise RuntimeError(f"torch.linalg.lstsq: A and B need one dtype, not {A.dtype} and {B.dtype}")
    if not A.dtype.is_floating_point:
        raise RuntimeError(f"torch.linalg.lstsq: needs floats, not {A.dtype}")
    if name not in _DRIVERS:
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of ({', '.join(_DRIVERS)})")
    values = np.linalg.svd(A._array, compute_uv=False)
    bound = (np.finfo(A.dtype.np).eps * max(A.shape[-2:]) if rcond is None else rcond) * values[..., :1]
    rank = np.asarray((values > bound).sum(-1))
    none = np.zeros(0, A.dtype.np)
    if (rank == values.shape[-1]).all():
        solution = record(_of_vector if vector else _solved, (A, B), {}, "LinalgLstsqBackward0", pointwise=False)
    else:
        if A.requires_grad or B.requires_grad:
            raise RuntimeError("torch.linalg.lstsq: a gradient needs a matrix of full rank")
        right = B._array[..., None] if vector else B._array
        found = np.linalg.pinv(A._array, float(np.finfo(A.dtype.np).eps) * max(A.shape[-2:])) @ right
        solution = Tensor(found[..., 0] if vector else found)
    residuals = Tensor(none)
    if name != "gelsy" and A.shape[-2] > A.shape[-1]:
        rule = _errors_of_vector if vector else _errors
        residuals = record(rule, (A, B), {}, "LinalgLstsqBackward0", pointwise=False)
    if solution.requires_grad:
        solution, residuals = one_node("LinalgLstsqBackward0", solution, residuals)
    return named(Lstsq, "linalg_lstsq")(
        solution,
        residuals,
        Tensor(np.zeros(0, np.int64) if name == "gels" else rank.astype(np.int64)),
        Tensor(values if name in ("gelsd", "gelss") else none),
    )
