"""Eigenvalues, singular values and exponentials of matrices of balls, series or expansions.

The values at the point are python-flint's. Along a direction, simple eigenvalues and their vectors follow from those at
the point by perturbation theory, coefficient by coefficient; the coefficients of exp(A(t)) are the first row of blocks
in the exponential of a block matrix. Whether two eigenvalues are equal is decided in fractions, where all entries are
single numbers. Equal ones have one-sided slopes only, and nothing beyond the slope is enclosed. No derivative rule is
read.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache, partial
from math import ceil, lcm
from typing import TYPE_CHECKING, Any

from flint import acb_mat, arb, arb_mat, arb_series, ctx, fmpq, fmpq_mat

from gradcli.checks.evaluate.ball_numbers import precision
from gradcli.checks.evaluate.interpretation import Entries, Failure, Tie, Unclear, Undecided, Unsupported
from gradcli.checks.expansions.complex_numbers import ComplexEntry
from gradcli.checks.expansions.exact_reals import LADDER, ball_of
from gradcli.checks.expansions.log_puiseux import ONE, STEP, Expansion, TracedExpansion
from gradcli.checks.expansions.power_series import Series, coefficients
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


def of_exact_numbers(rule: Callable[..., Any], field: Any, degree: int | None) -> Callable[..., Any]:
    """A rule for matrices of balls as one for exact numbers: each entry of the result computes all of it again.

    Of a rule that is homogeneous, of a `degree`, the matrices are scaled so that as many entries as possible are binary
    fractions, of which equal eigenvalues are known to be equal.
    """

    def entries(f: Any, *xs: Any, **params: Any) -> Any:
        scale = f.number(1) if degree is None else scale_of([x for operand in xs for x in operand.flat])

        @lru_cache(maxsize=1)
        def result(bits: int) -> Any:
            with precision(bits):
                return rule(field, *[Entries([in_balls(x / scale) for x in y.flat], y.shape) for y in xs], **params)

        def exact(x: Any, at: Callable[[int], Any]) -> Any:
            if isinstance(x, ComplexEntry):
                return ComplexEntry(exact(x.x, lambda bits: at(bits).x), exact(x.y, lambda bits: at(bits).y))
            if type(x) is arb:
                return f.number(0).lifted(x) if x.is_exact() else f.number(0).apply("computed", at)
            terms = {k: exact(c, partial(lambda k, b: at(b).terms.get(k, arb(0)), k)) for k, c in x.terms.items()}
            return TracedExpansion(Expansion(terms, x.rest), f.pool, "computed", at)

        first = with_enough_bits(result)
        flat = [exact(x, partial(lambda i, bits: result(bits).flat[i], i)) for i, x in enumerate(first.flat)]
        return Entries([x * scale for x in flat] if degree else flat, first.shape)

    return entries


def scale_of(flat: Sequence[Any]) -> Any:
    """A positive number over which all entries are binary fractions, if their ratios are fractions."""
    numbers = [c for x in flat for c in (x.terms.values() if isinstance(x, Expansion) else [x])]
    first = next((abs(x) for x in numbers if not x.is_zero()), None)
    if first is None:
        return 1
    ratios = [(x / first).rational for x in numbers]
    return first / lcm(*(int(ratio.q) for ratio in ratios if ratio is not None))


def with_enough_bits(result: Callable[[int], Any]) -> Any:
    """The result with the fewest bits that decide it; raises Undecided."""
    for bits in LADDER[:-1]:
        with suppress(Undecided):
            return result(bits)
    return result(LADDER[-1])


def in_balls(x: Any) -> Any:
    """An entry of exact numbers as one of balls."""
    if isinstance(x, ComplexEntry):
        return ComplexEntry(in_balls(x.x), in_balls(x.y))
    if not isinstance(x, Expansion):
        return ball_of(x)
    return Expansion({key: ball_of(c) for key, c in x.terms.items()}, x.rest)


# --- the entries of a matrix --------------------------------------------------------------------------------------


def taylor(a: Matrix) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The coefficients of a matrix in a root of the step, and what makes an entry from coefficients of its own.

    A matrix that does not move has one coefficient, and its entries are balls.
    """
    kinds = {type(x) for row in a for x in row} - {arb}
    if not kinds:
        return [arb_mat(a)], lambda own: own[0]
    if kinds == {Series}:
        parts = coefficients(a)
        return parts, lambda own: Series(arb_series(list(own), len(parts)))
    if kinds != {Expansion}:
        raise Unclear("a matrix whose entries have no power series")
    moving = [x for row in a for x in row if isinstance(x, Expansion)]
    root = lcm(*(key[0].denominator for x in moving for key in x.terms))
    known = [x.rest[0] * root for x in moving if x.rest is not None]
    terms = max(1, min([ctx.cap, *map(ceil, known)]))
    rows = [[Series(x.in_powers(root, terms)) if isinstance(x, Expansion) else x for x in row] for row in a]
    return coefficients(rows), lambda own: Expansion.of_series(arb_series(list(own), len(own)), root)


def has_complex(a: Matrix) -> bool:
    """Whether some entries are complex; raises the failure of one that has no value."""
    entries = [x for row in a for x in row]
    for x in entries:
        if isinstance(x, Failure):
            raise x
    return any(isinstance(x, ComplexEntry) for x in entries)


def symmetric(a: Matrix) -> Matrix:
    """The matrix with the entries above the diagonal below it too."""
    if has_complex(a):
        raise Unsupported("eigenvalues of complex matrices")
    return [[a[min(i, j)][max(i, j)] for j in range(len(a))] for i in range(len(a))]


# --- eigenvalues at the point ---------------------------------------------------------------------------------------


def ball_eigenvalues(a: Matrix, apart: bool = False) -> list[Any]:
    """The eigenvalues of a symmetric matrix of balls, ascending; those that are not separated share a ball.

    With `apart` it raises Tie where two are equal, and Undecided where the precision does not separate them.
    """
    exact = in_fractions(a)
    if exact is None:
        try:
            values = [x.real for x in acb_mat(arb_mat(a)).eig(multiple=not apart)]
        except ValueError:
            raise Undecided(NOT_SEPARATED) from None
        return [x for group in overlapping(values) for x in [union(group)] * len(group)]
    values = []
    for factor, times in exact.charpoly().numer().factor()[1]:
        if apart and times > 1:
            raise Tie
        roots = [arb(fmpq(-factor[0], factor[1]))]
        if factor.degree() > 1:
            roots = [root.real for root, _ in factor.complex_roots()]
        values += roots * times
    return sorted(values, key=float)


def in_fractions(a: Matrix) -> Any:
    """A matrix of balls as one of fractions; None where an entry is not a single number, or the matrix is large."""
    if len(a) > MOST_EXACT or not all(x.is_exact() for row in a for x in row):
        return None
    return fmpq_mat([[x.fmpq() for x in row] for row in a])


def overlapping(balls: Sequence[Any]) -> list[list[Any]]:
    """Balls in ascending order, in groups that overlap."""
    groups: list[list[Any]] = []
    for x in sorted(balls, key=float):
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
    spaces = []
    for own, *equal in groups:
        projection = arb_mat(a) * 0 + 1
        for other, *_ in groups:
            if other is not own:
                projection *= (arb_mat(a) - other) / (own - other)
        spaces.append((own, orthonormal(f, transposed(projection.table()), 1 + len(equal))))
    return spaces


def orthonormal(f: Any, rows: Matrix, count: int) -> Matrix:
    """So many orthonormal columns that span some rows."""
    columns: list[list[Any]] = []
    for _ in range(count):
        lengths = [f.total(x * x for x in row) for row in rows]
        best = max(range(len(rows)), key=lambda i: float(lengths[i]))
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
    for j in sorted(range(size), key=lambda j: float(values[j].real)):
        column = [vectors[i, j].real for i in range(size)]  # of a complex multiple of a real vector
        columns.append(unit(f, column))
    return transposed(columns)


def unit(f: Any, column: Sequence[Any]) -> list[Any]:
    """A vector over its length."""
    length = f.total(x * x for x in column).sqrt()
    return [x / length for x in column]


# --- eigenvalues along a direction ------------------------------------------------------------------------------------


def perturbed(f: Any, parts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The coefficients of the eigenvalues of a matrix, all simple, in rows, and those of multiples of the vectors.

    In the basis Q of the vectors at the point A is B = Q'AQ, and B X = X diag(s) is solved order by order for series s
    and X, where X is the unit matrix at first and its diagonal does not move (Rayleigh and Schroedinger).
    """
    still = parts[0].table()
    size = len(still)
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
    return values, [basis * part for part in x]


def split(f: Any, parts: Sequence[Any]) -> list[Any]:
    """The coefficients of eigenvalues, some equal at the point, to the first order on one side, in ascending rows.

    In the common space of equal ones, with orthonormal columns Q, they move like the eigenvalues of Q'A_k Q, where A_k
    is the first coefficient of the matrix that is not 0.
    """
    order = next((k for k, part in enumerate(parts) if k and not all(x.is_zero() for x in part.entries())), None)
    if order is None:
        raise Unclear("a matrix that is constant to the order of the series")
    start, slopes = [], []
    for value, space in eigenspaces(f, parts[0].table()):
        inside = arb_mat(transposed(space)) * parts[order] * arb_mat(space)
        own = ball_eigenvalues(symmetric(inside.table()))
        start += [value] * len(own)
        slopes += own
    return [arb_mat([start]), *[arb_mat(1, len(start))] * (order - 1), arb_mat([slopes])]


def eigenvalues(f: Any, a: Matrix) -> list[Any]:
    """Of a symmetric matrix, ascending."""
    parts, entry = taylor(symmetric(a))
    still = parts[0].table()
    one_sided = any(isinstance(x, Expansion) for row in a for x in row)
    if len(parts) == 1:
        rows = [arb_mat([ball_eigenvalues(still)])]
    else:
        rows = split(f, parts) if one_sided and has_equal(still) else perturbed(f, parts)[0]
    return [entry([row[0, j] for row in rows]) for j in range(len(a))]


def eigenvectors(f: Any, a: Matrix) -> Matrix:
    """Of a symmetric matrix, in columns, by ascending eigenvalue."""
    parts, entry = taylor(symmetric(a))
    still = parts[0].table()
    if len(parts) == 1:
        return ball_eigenvectors(f, still)
    if has_equal(still):
        raise Unclear("eigenvectors of equal eigenvalues along a direction")
    vectors = perturbed(f, parts)[1]
    columns = [[entry([part[i, j] for part in vectors]) for i in range(len(a))] for j in range(len(a))]
    return transposed([unit(f, column) for column in columns])


# --- singular values ----------------------------------------------------------------------------------------------


def is_wide(a: Matrix) -> bool:
    return len(a[0]) > len(a)


def gram(f: Any, a: Matrix) -> Matrix:
    """The smaller of A'A and AA'."""
    return product(f, a, transposed(a)) if is_wide(a) else product(f, transposed(a), a)


def singular_values(f: Any, a: Matrix) -> list[Any]:
    """Descending."""
    sizes = []
    for x in reversed(eigenvalues(f, gram(f, a))):
        if type(x) is arb and x.contains(0):
            sizes.append(arb(0) if x.is_zero() else arb(0).union(x.abs_upper().sqrt()))
            continue
        if isinstance(x, Expansion) and ONE not in x.terms and STEP in x.terms and x.terms[STEP].contains(0):
            # it is never negative: where it is 0, it has a minimum, so its first coefficient is 0
            x = Expansion({key: c for key, c in x.terms.items() if key != STEP}, x.rest)
        sizes.append(x.sqrt())
    return sizes


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


def exponential(f: Any, a: Matrix) -> Matrix:
    """exp(A): of series through the block matrix with A's coefficient j - i in block (i, j).

    That of X + i*Y through [[X, -Y], [Y, X]].
    """
    size = len(a)
    if has_complex(a):
        upper = [[*(x.x for x in row), *(-x.y for x in row)] for row in a]
        lower = [[*(x.y for x in row), *(x.x for x in row)] for row in a]
        both = exponential(f, [*upper, *lower])
        return [[ComplexEntry(both[i][j], both[i + size][j]) for j in range(size)] for i in range(size)]
    parts, entry = taylor(a)
    tables, zero = [part.table() for part in parts], [[0] * size for _ in range(size)]
    terms = range(len(parts))
    blocks = [[tables[j - i] if j >= i else zero for j in terms] for i in terms]
    whole = arb_mat([[x for block in row for x in block[r]] for row in blocks for r in range(size)]).exp()
    return [[entry([whole[r, k * size + c] for k in terms]) for c in range(size)] for r in range(size)]


def exponential_along(f: Any, a: Matrix, direction: Matrix) -> Matrix:
    """The derivative of exp at A along a direction: the corner of exp([[A, D], [0, A]])."""
    size = len(a)
    upper = [[*row, *more] for row, more in zip(a, direction, strict=True)]
    lower = [[*[f.zero] * size, *row] for row in a]
    return [row[size:] for row in exponential(f, [*upper, *lower])[:size]]


DEGREES = {"eigvalsh": 1, "svdvals": 1, "eigvecs": 0, "svd_u": 0, "svd_v": 0}  # of rules that are homogeneous
RULES: dict[str, Callable[..., Any]] = {
    "eigvalsh": each_matrix(eigenvalues),
    "eigvecs": each_matrix(eigenvectors),
    "svdvals": each_matrix(singular_values),
    "svd_u": each_matrix(left_vectors),
    "svd_v": each_matrix(right_vectors),
    "expm": each_matrix(exponential),
    "frechet": each_matrix(exponential_along),
}
