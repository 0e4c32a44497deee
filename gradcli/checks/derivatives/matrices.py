"""Eigenvalues, singular values and exponentials of matrices of balls, series or expansions.

The values at the point are python-flint's. Along a direction, simple eigenvalues and their vectors follow from those at
the point by perturbation theory, coefficient by coefficient; the coefficients of exp(A(t)) are the first row of blocks
in the exponential of a block matrix. Whether two eigenvalues are equal is decided in fractions, where all entries are
single numbers. Equal ones have one-sided slopes only, and nothing beyond the slope is enclosed. No derivative rule is
read.
"""

from __future__ import annotations

from math import ceil, lcm
from typing import TYPE_CHECKING, Any

from flint import acb_mat, arb, arb_mat, arb_series, fmpq, fmpq_mat

from gradcli.checks.evaluate.interpretation import Failed, Failure, Tie, Unclear, Undecided, Unsupported
from gradcli.checks.expansions.complex_numbers import Complex
from gradcli.checks.expansions.log_puiseux import ONE, POWERS, STEP, Expansion
from gradcli.checks.expansions.power_series import Series, capacity, coefficients
from gradcli.primitives.exact_matrices import each_matrix, product, transposed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Node

    Matrix = list[list[Any]]

SMALL = 2  # rows and columns up to which the definition is a closed form
MOST_EXACT = 16  # rows of a matrix whose eigenvalues are computed in fractions
NOT_SEPARATED = "eigenvalues that cannot be separated at this precision"


def rule_of(node: Node, closed: bool = True) -> Callable[..., Any] | None:
    """The rule for an operation on matrices, or None; with `closed`, small matrices are left to their definition."""
    rule = RULES.get(node.primitive.name)
    small = closed and rule is not None and min(node.args[0].type.shape[-2:]) <= SMALL
    return None if small else rule


# --- the entries of a matrix --------------------------------------------------------------------------------------


def kind_of(a: Matrix) -> type[Any]:
    """The type of the entries that move: Series, Expansion or Complex; arb where none does."""
    failed = next((x for row in a for x in row if isinstance(x, Failure)), None)
    if failed is not None:
        raise Failed(failed)
    moving = {type(x) for row in a for x in row} - {arb}
    if not moving <= {Series, Expansion, Complex} or len(moving) > 1:
        raise Unclear("a matrix whose entries have no power series")
    return moving.pop() if moving else arb


def symmetric(a: Matrix) -> Matrix:
    """The matrix with the entries above the diagonal below it too."""
    if kind_of(a) is Complex:
        raise Unsupported("eigenvalues of complex matrices")
    return [[a[min(i, j)][max(i, j)] for j in range(len(a))] for i in range(len(a))]


def in_series(a: Matrix) -> tuple[Matrix, int]:
    """A matrix of expansions as one of series in a root of the step, and the order of the root."""
    moving = [x for row in a for x in row if isinstance(x, Expansion)]
    root = lcm(*(key[0].denominator for x in moving for key in x.terms))
    known = [x.rest[0] * root for x in moving if x.rest is not None]
    terms = max(1, min([POWERS, *map(ceil, known)]))
    return [[Series(x.in_powers(root, terms)) if isinstance(x, Expansion) else x for x in row] for row in a], root


def by_series(rule: Callable[[Any, Matrix], Matrix]) -> Callable[[Any, Matrix], Matrix]:
    """A rule for matrices of series, on expansions too."""

    def converted(f: Any, a: Matrix) -> Matrix:
        if kind_of(a) is not Expansion:
            return rule(f, a)
        series, root = in_series(a)
        with capacity(len(coefficients(series))):
            found = rule(f, series)
        return [[Expansion.of_series(x.s, root) if isinstance(x, Series) else x for x in row] for row in found]

    return converted


# --- eigenvalues at the point ---------------------------------------------------------------------------------------


def ball_eigenvalues(a: Matrix, apart: bool = False) -> list[Any]:
    """The eigenvalues of a symmetric matrix of balls, ascending; those that are not separated share a ball.

    With `apart` it raises Tie where two are equal, and Undecided where the precision does not separate them.
    """
    exact = in_fractions(a)
    if exact is None:
        try:
            found = [x.real for x in acb_mat(arb_mat(a)).eig(multiple=not apart)]
        except ValueError:
            raise Undecided(NOT_SEPARATED) from None
        return [x for group in overlapping(found) for x in [union(group)] * len(group)]
    found = []
    for factor, times in exact.charpoly().numer().factor()[1]:
        if apart and times > 1:
            raise Tie
        roots = [arb(fmpq(-factor[0], factor[1]))]
        if factor.degree() > 1:
            roots = [root.real for root, _ in factor.complex_roots()]
        found += roots * times
    return sorted(found, key=middle)


def in_fractions(a: Matrix) -> Any:
    """A matrix of balls as one of fractions; None where an entry is not a single number."""
    if len(a) > MOST_EXACT or not all(x.is_exact() for row in a for x in row):
        return None
    return fmpq_mat([[x.fmpq() for x in row] for row in a])


def middle(x: Any) -> float:
    return float(x.mid())


def overlapping(balls: Sequence[Any]) -> list[list[Any]]:
    """Balls in ascending order, in groups that overlap."""
    groups: list[list[Any]] = []
    for x in sorted(balls, key=middle):
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


def distinct(a: Matrix) -> int | None:
    """How many different eigenvalues a matrix has; None where an entry is not a single number."""
    exact = in_fractions(a)
    if exact is None:
        return None
    polynomial = exact.charpoly()
    return int(polynomial.degree() - polynomial.gcd(polynomial.derivative()).degree())


def has_equal(a: Matrix) -> bool:
    """Whether two eigenvalues are equal for certain."""
    return (distinct(a) or len(a)) < len(a)


def eigenspaces(f: Any, a: Matrix) -> list[tuple[Any, Matrix]]:
    """Each different eigenvalue with an orthonormal basis of its space in columns; raises Undecided beside a tie."""
    groups = overlapping(ball_eigenvalues(a))
    if len(groups) != distinct(a):
        raise Undecided(NOT_SEPARATED)
    found = []
    for own, *equal in groups:
        projection = arb_mat(a) * 0 + 1
        for other, *_ in groups:
            if other is not own:
                projection *= (arb_mat(a) - other) / (own - other)
        found.append((own, orthonormal(f, transposed(projection.table()), 1 + len(equal))))
    return found


def orthonormal(f: Any, rows: Matrix, count: int) -> Matrix:
    """So many orthonormal columns that span some rows."""
    columns: list[list[Any]] = []
    for _ in range(count):
        lengths = [f.total(x * x for x in row) for row in rows]
        best = max(range(len(rows)), key=lambda i: middle(lengths[i]))
        if lengths[best].contains(0):
            raise Undecided("the eigenspace of equal eigenvalues")
        unit = [x / lengths[best].sqrt() for x in rows[best]]
        columns.append(unit)
        along = [f.total(x * y for x, y in zip(row, unit, strict=True)) for row in rows]
        rows = [[x - share * y for x, y in zip(row, unit, strict=True)] for row, share in zip(rows, along, strict=True)]
    return transposed(columns)


def ball_eigenvectors(f: Any, a: Matrix) -> Matrix:
    """The eigenvectors of a symmetric matrix, in columns by ascending eigenvalue; of length 1, with either sign."""
    size = len(a)
    try:
        values, vectors = acb_mat(arb_mat(a)).eig(right=True)
    except ValueError:
        if not has_equal(a):
            raise Undecided(NOT_SEPARATED) from None
        return [[x for _, space in eigenspaces(f, a) for x in space[i]] for i in range(size)]
    columns = []
    for j in sorted(range(size), key=lambda j: middle(values[j].real)):
        column = [vectors[i, j].real for i in range(size)]  # of a complex multiple of a real vector
        length = f.total(x * x for x in column).sqrt()
        columns.append([x / length for x in column])
    return transposed(columns)


# --- eigenvalues along a direction ------------------------------------------------------------------------------------


def perturbed(f: Any, a: Matrix) -> tuple[list[Any], Matrix]:
    """The eigenvalues of a matrix of series, all simple, as python-flint's series, and the vectors in columns.

    In the basis Q of the vectors at the point A is B = Q'AQ, and B X = X diag(s) is solved order by order for series s
    and X, where X is the unit matrix at first and its diagonal does not move (Rayleigh and Schroedinger).
    """
    parts, size = coefficients(a), len(a)
    still = parts[0].table()
    start = ball_eigenvalues(still, apart=True)
    gaps = [[other - own for other in start] for own in start]
    if any(gaps[i][j].contains(0) for i in range(size) for j in range(i)):
        raise Undecided(NOT_SEPARATED)
    values = [arb_mat([start])]
    basis = arb_mat(ball_eigenvectors(f, still))
    inverse = arb_mat(transposed(basis.table()))
    b = [inverse * part * basis for part in parts]
    x = [basis * 0 + 1]
    for k in range(1, len(parts)):
        known = b[k]
        for m in range(1, k):
            known += b[m] * x[k - m]
            known -= arb_mat([[x[k - m][i, j] * values[m][0, j] for j in range(size)] for i in range(size)])
        values.append(arb_mat([[known[j, j] for j in range(size)]]))
        x.append(arb_mat([[0 if i == j else known[i, j] / gaps[i][j] for j in range(size)] for i in range(size)]))
    moved = [basis * one for one in x]
    columns = []
    for j in range(size):
        column = [Series(arb_series([one[i, j] for one in moved], len(parts))) for i in range(size)]
        length = f.total(x * x for x in column).sqrt()
        columns.append([x / length for x in column])
    return [arb_series([one[0, j] for one in values], len(parts)) for j in range(size)], transposed(columns)


def split(f: Any, a: Matrix) -> list[Any]:
    """Eigenvalues, some equal at the point, to the first order on one side, ascending, as python-flint's series.

    In the common space of equal ones, with orthonormal columns Q, they move like the eigenvalues of Q'A_k Q, where A_k
    is the first coefficient of the matrix that is not 0.
    """
    parts = coefficients(a)
    order = next((k for k, part in enumerate(parts) if k and not all(x.is_zero() for x in part.entries())), None)
    if order is None:
        raise Unclear("a matrix that is constant to the order of the series")
    found = []
    for value, space in eigenspaces(f, parts[0].table()):
        inside = arb_mat(transposed(space)) * parts[order] * arb_mat(space)
        slopes = ball_eigenvalues(symmetric(inside.table()))
        found += [arb_series([value, *[0] * (order - 1), slope], order + 1) for slope in slopes]
    return found


def eigenvalues(f: Any, a: Matrix) -> list[Any]:
    """Of a symmetric matrix, ascending."""
    a, kind = symmetric(a), kind_of(a)
    if kind is arb:
        return ball_eigenvalues(a)
    a, root = in_series(a)
    parts = coefficients(a)
    with capacity(len(parts)):
        if kind is Series:
            return [Series(s) for s in perturbed(f, a)[0]]
        found = split(f, a) if has_equal(parts[0].table()) else perturbed(f, a)[0]
    return [Expansion.of_series(s, root) for s in found]


@by_series
def eigenvectors(f: Any, a: Matrix) -> Matrix:
    """Of a symmetric matrix, in columns, by ascending eigenvalue."""
    a = symmetric(a)
    if kind_of(a) is arb:
        return ball_eigenvectors(f, a)
    if has_equal(coefficients(a)[0].table()):
        raise Unclear("eigenvectors of equal eigenvalues along a direction")
    return perturbed(f, a)[1]


# --- singular values ----------------------------------------------------------------------------------------------


def is_wide(a: Matrix) -> bool:
    return len(a[0]) > len(a)


def gram(f: Any, a: Matrix) -> Matrix:
    """The smaller of A'A and AA'."""
    return product(f, a, transposed(a)) if is_wide(a) else product(f, transposed(a), a)


def singular_values(f: Any, a: Matrix) -> list[Any]:
    """Descending."""
    found = []
    for x in reversed(eigenvalues(f, gram(f, a))):
        if type(x) is arb and x.contains(0):
            found.append(arb(0) if x.is_zero() else arb(0).union(x.abs_upper().sqrt()))
        else:
            found.append(_turning(x).sqrt() if isinstance(x, Expansion) else x.sqrt())
    return found


def _turning(x: Any) -> Any:
    """An eigenvalue that is never negative; one that is 0 here has no first coefficient, for it turns here."""
    first = x.terms.get(STEP)
    if ONE in x.terms or first is None or not first.contains(0):
        return x
    return Expansion({key: c for key, c in x.terms.items() if key != STEP}, x.rest)


def left_vectors(f: Any, a: Matrix) -> Matrix:
    """U of A = U S V'."""
    if is_wide(a):
        return [row[::-1] for row in eigenvectors(f, gram(f, a))]
    sizes = singular_values(f, a)
    return [[x / size for x, size in zip(row, sizes, strict=True)] for row in product(f, a, right_vectors(f, a))]


def right_vectors(f: Any, a: Matrix) -> Matrix:
    """V of A = U S V', which is U of A'."""
    return left_vectors(f, transposed(a)) if is_wide(a) else [row[::-1] for row in eigenvectors(f, gram(f, a))]


# --- exponentials -------------------------------------------------------------------------------------------------


@by_series
def exponential(f: Any, a: Matrix) -> Matrix:
    """exp(A): of series through the block matrix with A's coefficient j - i in block (i, j).

    That of X + i*Y through [[X, -Y], [Y, X]].
    """
    kind, size = kind_of(a), len(a)
    if kind is Complex:
        upper = [[*(x.x for x in row), *(-x.y for x in row)] for row in a]
        lower = [[*(x.y for x in row), *(x.x for x in row)] for row in a]
        both = exponential(f, [*upper, *lower])
        return [[Complex(both[i][j], both[i + size][j]) for j in range(size)] for i in range(size)]
    parts = [part.table() for part in coefficients(a)]
    terms, zero = len(parts), [[0] * size for _ in range(size)]
    blocks = [[parts[j - i] if j >= i else zero for j in range(terms)] for i in range(terms)]
    whole = arb_mat([[x for block in row for x in block[r]] for row in blocks for r in range(size)]).exp()
    if kind is arb:
        return [list(row) for row in whole.table()]
    found = [[[whole[r, k * size + c] for k in range(terms)] for c in range(size)] for r in range(size)]
    return [[Series(arb_series(entry, terms)) for entry in row] for row in found]


def exponential_along(f: Any, a: Matrix, direction: Matrix) -> Matrix:
    """The derivative of exp at A along a direction: the corner of exp([[A, D], [0, A]])."""
    size = len(a)
    upper = [[*row, *more] for row, more in zip(a, direction, strict=True)]
    lower = [[*[f.zero] * size, *row] for row in a]
    return [row[size:] for row in exponential(f, [*upper, *lower])[:size]]


RULES: dict[str, Callable[..., Any]] = {
    "eigvalsh": each_matrix(eigenvalues),
    "eigvecs": each_matrix(eigenvectors),
    "svdvals": each_matrix(singular_values),
    "svd_u": each_matrix(left_vectors),
    "svd_v": each_matrix(right_vectors),
    "expm": each_matrix(exponential),
    "frechet": each_matrix(exponential_along),
}
