"""The eigenvalues and eigenvectors of a symmetric matrix of balls go in the order of their size; equal ones are told.

Whether eigenvalues are equal is decided in fractions, where the entries are single numbers; from balls alone it never
can be. Vectors of equal eigenvalues are some orthonormal basis of their space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz

from gradcli.checks.entries import Undecided
from gradcli.checks.series.numbers import Tie
from gradcli.primitives.exact_matrices import product, transposed

if TYPE_CHECKING:
    from collections.abc import Sequence

    Matrix = list[list[Any]]

MOST_EXACT = 12  # rows of a matrix whose eigenvalues are compared in fractions
GRID = 2**20  # eigenvalues on this grid are recognised
NOT_PARTED = "eigenvalues that the digits do not part"
SWEEPS = 60
MOST_KNOWN = 64
_KNOWN: dict[Any, list[Any]] = {}  # the last eigenvalues: all directions through a point share them


def mirrored(a: Matrix) -> Matrix:
    """The matrix with its upper half below the diagonal too."""
    return [[a[min(i, j)][max(i, j)] for j in range(len(a))] for i in range(len(a))]


def eigenvalues(a: Matrix, apart: bool = False) -> list[Any]:
    """Ascending; with `apart` each in a ball of its own: raises Tie where two are equal, Undecided where bits miss.

    Without, eigenvalues that are not parted share a ball.
    """
    a = mirrored(a)
    key = (ctx.prec, apart, tuple(named(x) for row in a for x in row))
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) > MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _eigenvalues(a, apart)
    return list(known)


def named(x: Any) -> tuple[Any, ...]:
    """A ball as what can be looked up."""
    return (*x.mid().man_exp(), *x.rad().man_exp())


def _eigenvalues(a: Matrix, apart: bool) -> list[Any]:
    try:
        found = [x.real for x in acb_mat(arb_mat(a)).eig(multiple=not apart)]
    except ValueError:
        if not apart:
            found = by_rotations(a)
        elif meet(a):
            raise Tie from None
        else:
            raise Undecided(NOT_PARTED) from None
    crowded = len(clusters(found)) < len(found) or any(x.contains(0) for x in found)
    exact = exactly(a) if crowded else None
    if exact is not None:
        polynomial = exact.charpoly()
        found = [sharpened(x, polynomial) for x in found]
    return [x for one in clusters(found) for x in [union(one)] * len(one)]


def clusters(found: Sequence[Any]) -> list[list[Any]]:
    """Balls in order, those that overlap together."""
    groups: list[list[Any]] = []
    for x in sorted(found, key=lambda x: float(x.mid())):
        if groups and any(x.overlaps(other) for other in groups[-1]):
            groups[-1].append(x)
        else:
            groups.append([x])
    return groups


def union(balls: Sequence[Any]) -> Any:
    """A ball around all of some balls; the ball itself where they are one and the same number."""
    whole = balls[0]
    for x in balls[1:]:
        whole = whole if whole.is_exact() and x.is_exact() and whole == x else whole.union(x)
    return whole


def sharpened(x: Any, polynomial: Any) -> Any:
    """An eigenvalue as the one short binary number that it is, where it is one."""
    scaled = (x.mid() * GRID + fmpq(1, 2)).floor()
    if not scaled.is_integer():
        return x
    short = fmpq(scaled.unique_fmpz(), fmpz(GRID))
    return arb(short) if x.contains(arb(short)) and polynomial(short) == 0 else x


def by_rotations(a: Matrix) -> list[Any]:
    """The eigenvalues of any symmetric matrix, equal or not: Jacobi's rotations, and what they leave over as radii.

    Rotations are computed without radii; that the result is nearly diagonal and the basis nearly orthonormal is then
    measured in balls. By Weyl and Ostrowski each diagonal entry d encloses an eigenvalue to |d|*e + r, in order.
    """
    size = len(a)
    work = [[x.mid() for x in row] for row in a]
    basis = [[arb(int(i == j)) for j in range(size)] for i in range(size)]
    for _ in range(SWEEPS):
        done = True
        for p in range(size):
            for q in range(p + 1, size):
                if not work[p][q].is_zero():
                    done = False
                    _rotate(work, basis, p, q)
        if done:
            break
    rows = [[x.mid() for x in row] for row in basis]
    v, across = arb_mat(rows), arb_mat(transposed(rows))
    middle, unit = across * arb_mat(a) * v, across * v
    off = max((_size(unit[i, j] - int(i == j)) for i in range(size) for j in range(size)), default=arb(0)) * size
    if not off < 1:
        raise Undecided(NOT_PARTED)
    rest = max((_size(middle[i, j]) for i in range(size) for j in range(size) if i != j), default=arb(0)) * size
    slack = off / (1 - off)
    found = []
    for i in range(size):
        d = middle[i, i]
        found.append(d + arb(0, 1) * (_size(d) * slack + rest * (1 + slack)))
    return found


def _size(x: Any) -> Any:
    return abs(x).abs_upper()


def _rotate(work: Matrix, basis: Matrix, p: int, q: int) -> None:
    """One of Jacobi's rotations, on middles of balls; a tiny entry is dropped."""
    scale = abs(work[p][p]) + abs(work[q][q])
    if scale > 0 and abs(work[p][q]) < scale * arb(2) ** -300:
        work[p][q] = work[q][p] = arb(0)
        return
    theta = ((work[q][q] - work[p][p]) / (2 * work[p][q])).mid()
    side = -1 if theta < 0 else 1
    t = (side / (abs(theta) + (theta * theta + 1).sqrt())).mid()
    c = (1 / (t * t + 1).sqrt()).mid()
    s = (t * c).mid()
    for k in range(len(work)):
        x, y = work[k][p], work[k][q]
        work[k][p], work[k][q] = (c * x - s * y).mid(), (s * x + c * y).mid()
    for k in range(len(work)):
        x, y = work[p][k], work[q][k]
        work[p][k], work[q][k] = (c * x - s * y).mid(), (s * x + c * y).mid()
        x, y = basis[k][p], basis[k][q]
        basis[k][p], basis[k][q] = (c * x - s * y).mid(), (s * x + c * y).mid()


# --- equal ones ---------------------------------------------------------------------------------------------------


def exactly(a: Matrix) -> Any:
    """A matrix of balls as one of fractions; None where an entry is no single number."""
    if len(a) > MOST_EXACT or not all(x.is_exact() for row in a for x in row):
        return None
    return fmpq_mat([[x.fmpq() for x in row] for row in a])


def meet(a: Matrix) -> bool:
    """Whether two eigenvalues are equal for certain."""
    exact = exactly(a)
    return exact is not None and distinct(exact) < len(a)


def distinct(exact: Any) -> int:
    """How many different eigenvalues a matrix of fractions has."""
    polynomial = exact.charpoly()
    return int(polynomial.degree() - polynomial.gcd(polynomial.derivative()).degree())


def spaces(f: Any, a: Matrix) -> list[tuple[Any, Matrix]]:
    """Each different eigenvalue with an orthonormal basis of its space, in columns; raises Undecided beside a tie."""
    exact = exactly(a)
    groups = clusters(eigenvalues(a))
    if exact is None or len(groups) != distinct(exact):
        raise Undecided(NOT_PARTED)
    values = [group[0] for group in groups]
    found = []
    for j, group in enumerate(groups):
        others = [value for i, value in enumerate(values) if i != j]
        found.append((values[j], _space(f, a, others, values[j], len(group))))
    return found


def _space(f: Any, a: Matrix, others: Sequence[Any], own: Any, count: int) -> Matrix:
    """Orthonormal columns of the space of an eigenvalue: what is left when the other eigenvalues are projected out."""
    size = len(a)
    left: Matrix = [[arb(int(i == j)) for j in range(size)] for i in range(size)]
    for other in others:
        shifted = [[(x - other if i == j else x) / (own - other) for j, x in enumerate(row)] for i, row in enumerate(a)]
        left = product(f, shifted, left)
    columns: list[list[Any]] = []
    rest = transposed(left)
    for _ in range(count):
        lengths = [f.total(x * x for x in column) for column in rest]
        best = max(range(len(rest)), key=lambda i: float(lengths[i].mid()))
        if lengths[best].contains(0):
            raise Undecided("the common space of equal eigenvalues")
        unit = [x / lengths[best].sqrt() for x in rest[best]]
        columns.append(unit)
        rest = [_without(f, column, unit) for column in rest]
    return transposed(columns)


def _without(f: Any, column: Sequence[Any], unit: Sequence[Any]) -> list[Any]:
    along = f.total(x * y for x, y in zip(column, unit, strict=True))
    return [x - along * y for x, y in zip(column, unit, strict=True)]


def eigenvectors(f: Any, a: Matrix) -> Matrix:
    """In columns, by ascending eigenvalue; each of length 1, its sign by accident."""
    size = len(a)
    a = mirrored(a)
    try:
        values, vectors = acb_mat(arb_mat(a)).eig(right=True)
    except ValueError:
        if not meet(a):
            raise Undecided(NOT_PARTED) from None
        return [[x for _, space in spaces(f, a) for x in space[i]] for i in range(size)]
    columns = []
    for j in sorted(range(size), key=lambda j: float(values[j].real.mid())):
        column = [vectors[i, j].real for i in range(size)]  # of a complex multiple of a real vector
        length = f.total(x * x for x in column).sqrt()
        columns.append([x / length for x in column])
    return transposed(columns)


__all__ = ["distinct", "eigenvalues", "eigenvectors", "meet", "mirrored", "spaces"]
