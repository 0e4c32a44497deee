"""Factors, inverses and determinants of stacks of matrices, with NaN for a matrix that has none.

The library takes the whole batch at once. Only where it refuses, the matrices are taken one by one, so
that a bad matrix costs its neighbours nothing. A matrix with an entry that is not finite is never passed to an
iterative routine, which might not end; its result is NaN.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gradcli.graph.types import broadcast_shapes

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Arrays = tuple[Any, ...]


class LinearAlgebra:
    """Linear algebra over the last two axes, for a namespace with a `library`."""

    library: Any
    float_type: Any

    def strict(self) -> AbstractContextManager[Any]:
        """A context in which the library's routines raise for a bad matrix, rather than return anything."""
        return nullcontext()

    # --- one result -------------------------------------------------------------------------------------

    def inv(self, a: Any) -> Any:
        """The inverse; NaN for a singular matrix."""
        return self.guarded(lambda a: (self.library.linalg.inv(a),), a)[0]

    def pinv(self, a: Any) -> Any:
        """The pseudoinverse."""
        return self.of_real(lambda a: (self.library.linalg.pinv(a),), a)[0]

    def solve(self, a: Any, b: Any) -> Any:
        """x with a @ x = b, for a matrix b; NaN where a is singular."""
        return self.guarded(lambda a, b: (self.library.linalg.solve(a, b),), a, b)[0]

    def cholesky(self, a: Any) -> Any:
        """The lower triangular L with L @ L.mT = a; NaN where a is not positive definite."""
        return self.of_real(lambda a: (self.library.linalg.cholesky(a),), a)[0]

    def det(self, a: Any) -> Any:
        """The determinant; 0 for a singular matrix."""
        return self.library.linalg.det(a)

    def eigvalsh(self, a: Any) -> Any:
        """The eigenvalues of a symmetric matrix, ascending."""
        return self.of_real(lambda a: (self.library.linalg.eigvalsh(a),), a)[0]

    def expm(self, a: Any) -> Any:
        """The matrix exponential."""
        return self.guarded(lambda a: (self.exponential(a),), a)[0]

    # --- several results ----------------------------------------------------------------------------------

    def slogdet(self, a: Any) -> Arrays:
        """The sign and the logarithm of the absolute determinant; 0 and -inf for a singular matrix."""
        sign, logarithm = self.library.linalg.slogdet(a)
        return sign, logarithm

    def eigh(self, a: Any) -> Arrays:
        """Eigenvalues, ascending, and eigenvectors in columns, of a symmetric matrix."""
        return self.of_real(lambda a: tuple(self.library.linalg.eigh(a)), a)

    def qr(self, a: Any) -> Arrays:
        """Q with orthonormal columns and upper triangular R with Q @ R = a."""
        return self.of_real(lambda a: tuple(self.library.linalg.qr(a)), a)

    def svd(self, a: Any, real: bool = True) -> Arrays:
        """U, singular values, descending, and V.mH with a = U @ diag(s) @ V.mH."""
        a = self.as_real(a) if real else a
        return self.guarded(lambda a: tuple(self.library.linalg.svd(a, full_matrices=False)), a)

    # --- the guard ------------------------------------------------------------------------------------------

    def guarded(self, routine: Callable[..., Arrays], a: Any, *others: Any) -> Arrays:
        """The routine's results, with NaN where a matrix of `a` is not finite or the routine refuses it."""
        xp = self.library
        finite = xp.isfinite(a).all(axis=(-2, -1))
        if not bool(finite.all()):
            chosen = finite[..., None, None]
            results = self.guarded(routine, xp.where(chosen, a, self.harmless(a)), *others)
            return tuple(self.masked(x, finite, x.ndim - self.lead_of(a, others)) for x in results)
        try:
            with self.strict():
                return routine(a, *others)
        except self.refusal():
            return self.one_by_one(routine, a, others)

    def of_real(self, routine: Callable[..., Arrays], a: Any) -> Arrays:
        """The routine's results for real matrices: their derivatives hold for no others."""
        return self.guarded(routine, self.as_real(a))

    def as_real(self, x: Any) -> Any:
        """The real numbers that an array holds."""
        return x

    def refusal(self) -> type[Exception]:
        """What the library raises for a matrix that it refuses."""
        error: type[Exception] = self.library.linalg.LinAlgError
        return error

    def one_by_one(self, routine: Callable[..., Arrays], a: Any, others: Arrays) -> Arrays:
        """The routine on each matrix of a batch: a refusal is NaN, in the shapes of other results."""
        xp = self.library
        leads = broadcast_shapes(a.shape[:-2], *(x.shape[:-2] for x in others)) or ()
        stacks = [xp.broadcast_to(x, leads + x.shape[-2:]).reshape((-1, *x.shape[-2:])) for x in (a, *others)]
        pattern = routine(self.harmless(a), *(x[0] for x in stacks[1:]))
        missing = tuple(xp.full_like(x, float("nan")) for x in pattern)
        rows = []
        for matrices in zip(*stacks, strict=True):
            try:
                with self.strict():
                    rows.append(routine(*matrices))
            except self.refusal():
                rows.append(missing)
        columns = [xp.stack(column) for column in zip(*rows, strict=True)]
        return tuple(x.reshape(leads + x.shape[1:]) for x in columns)

    def harmless(self, a: Any) -> Any:
        """A matrix that every routine accepts, of the shape and type of those in `a`."""
        return self.library.eye(a.shape[-2], a.shape[-1], dtype=a.dtype)

    def lead_of(self, a: Any, others: Arrays) -> int:
        """How many batch axes the results have."""
        return max(a.ndim, *(x.ndim for x in others)) - 2 if others else int(a.ndim) - 2

    def masked(self, x: Any, finite: Any, core: int) -> Any:
        """x with NaN for the matrices that are not finite."""
        chosen = finite.reshape(finite.shape + (1,) * core)
        return self.library.where(chosen, x, x.dtype.type(float("nan")))

    # --- the matrix exponential, for libraries that have none -----------------------------------------------

    def exponential(self, a: Any) -> Any:
        """Scaling and squaring with the Pade approximant of degree 13 (Higham 2005), one scaling for all."""
        xp = self.library
        identity = self.harmless(a)
        norm = float(abs(a).sum(axis=-2).max()) if a.size else 0.0
        halvings = 0
        while norm > PADE_RADIUS:
            norm /= 2
            halvings += 1
        a = a / 2.0**halvings
        a2 = a @ a
        a4 = a2 @ a2
        a6 = a4 @ a2
        b = PADE
        odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
        even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
        result = xp.linalg.solve(even - odd, even + odd)
        for _ in range(halvings):
            result = result @ result
        return result


PADE_RADIUS = 5.371920351148152
PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
