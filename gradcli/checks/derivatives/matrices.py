"""Eigenvalues, singular values and exponentials of matrices of balls or series: what no closed form of entries gives.

Whether eigenvalues are equal is decided in fractions, where the entries are single numbers; from balls alone it never
is. Along a direction an eigenvalue that is simple is the root of the characteristic polynomial, found by Newton's
iteration in power series; the coefficients of exp(A(t)) are the first row of blocks in the exponential of a block
matrix. Where eigenvalues meet, their slopes on one side are those of the step in their common space, and no more is
claimed. No derivative rule is read.
"""

from __future__ import annotations

from math import ceil, lcm
from typing import TYPE_CHECKING, Any

from flint import acb_mat, arb, arb_mat, arb_series, fmpq, fmpq_mat

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Entries, Failure, Tie, TooShort, Unbounded, Undecided, Unsupported
from gradcli.checks.expansions.complex_numbers import Complex
from gradcli.checks.expansions.log_puiseux import ONE, POWERS, STEP, Expansion
from gradcli.checks.expansions.power_series import Series, capacity, replaced
from gradcli.primitives.exact_matrices import cofactors, matrices, product, transposed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Node

    Matrix = list[list[Any]]

MOST_EXACT = 16  # rows of a matrix whose eigenvalues are found in fractions
NOT_PARTED = "eigenvalues that cannot be separated at this precision"


def mirrored(a: Matrix) -> Matrix:
    """The matrix with its upper half below the diagonal too."""
    return [[a[min(i, j)][max(i, j)] for j in range(len(a))] for i in range(len(a))]


def ball_eigenvalues(a: Matrix, apart: bool = False) -> list[Any]:
    """Ascending; with `apart` each in a ball of its own: raises Tie where two are equal, Undecided where bits miss.

    Without, eigenvalues that are not parted share a ball.
    """
    a = mirrored(a)
    exact = exactly(a)
    if exact is not None:
        return exact_eigenvalues(exact, apart)
    try:
        found = [x.real for x in acb_mat(arb_mat(a)).eig(multiple=not apart)]
    except ValueError:
        raise Undecided(NOT_PARTED) from None
    return [x for one in clusters(found) for x in [union(one)] * len(one)]


def exact_eigenvalues(exact: Any, apart: bool) -> list[Any]:
    """Those of a matrix of fractions, by the factors of its characteristic polynomial; rational ones are exact."""
    found = []
    for factor, times in exact.charpoly().numer().factor()[1]:
        if apart and times > 1:
            raise Tie
        if factor.degree() == 1:
            roots = [arb(fmpq(-factor[0], factor[1]))]
        else:
            roots = [root.real for root, _ in factor.complex_roots()]
        found += [root for root in roots for _ in range(times)]
    return sorted(found, key=lambda x: float(x.mid()))


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


# --- equal ones ---------------------------------------------------------------------------------------------------


def exactly(a: Matrix) -> Any:
    """A matrix of balls as one of fractions; None where an entry is not a single number."""
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
    groups = clusters(ball_eigenvalues(a))
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
            raise Undecided("the eigenspace of equal eigenvalues")
        unit = [x / lengths[best].sqrt() for x in rest[best]]
        columns.append(unit)
        rest = [_without(f, column, unit) for column in rest]
    return transposed(columns)


def _without(f: Any, column: Sequence[Any], unit: Sequence[Any]) -> list[Any]:
    along = f.total(x * y for x, y in zip(column, unit, strict=True))
    return [x - along * y for x, y in zip(column, unit, strict=True)]


def ball_eigenvectors(f: Any, a: Matrix) -> Matrix:
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


SMALL = 2  # rows that closed forms are known for


def rule_of(node: Node, closed: bool = True) -> Callable[..., Any] | None:
    """The rule for an operation on matrices, or None; where there is a closed form it is preferred."""
    made = RULES.get(node.primitive.name)
    if made is None or (closed and min(node.args[0].type.shape[-2:]) <= SMALL):
        return None
    return made


def each(rule: Callable[..., Matrix]) -> Callable[..., Any]:
    """A rule for stacks of matrices from one for a matrix."""

    def entries(f: Any, *xs: Entries) -> Any:
        failed = next((x for one in xs for x in one.flat if isinstance(x, Failure)), None)
        found: list[Matrix] = []
        for one in zip(*map(matrices, xs), strict=True):
            found.append(rule(f, *one) if failed is None else [[failed]])
        if failed is not None:
            return failed
        shape = xs[0].shape[:-2]
        columns = found[0] and isinstance(found[0][0], list)
        flat = [x for one in found for row in one for x in (row if columns else [row])]
        tail = (len(found[0]), len(found[0][0])) if columns else (len(found[0]),)
        return Entries(flat, (*shape, *tail))

    return entries


def kind_of(a: Matrix) -> type[Any]:
    """What the entries of a matrix are: arb, Series, Expansion or Complex."""
    moving = {type(x) for row in a for x in row} - {arb}
    if not moving <= {Series, Expansion, Complex} or len(moving) > 1:
        raise Unbounded("a matrix whose entries have no power series")
    return moving.pop() if moving else arb


def in_series(a: Matrix) -> tuple[Matrix, int]:
    """A matrix of expansions as one of series in a root of the step, and the order of the root."""
    moving = [x for row in a for x in row if isinstance(x, Expansion)]
    root = lcm(*(key[0].denominator for x in moving for key in x.terms))
    known = [x.rest[0] * root for x in moving if x.rest is not None]
    terms = max(1, min([POWERS, *map(ceil, known)]))
    return [[Series(x.in_powers(root, terms)) if isinstance(x, Expansion) else x for x in row] for row in a], root


def by_series(rule: Callable[[Any, Matrix], Any]) -> Callable[[Any, Matrix], Any]:
    """A rule for matrices of balls or series, on expansions too."""

    def converted(f: Any, a: Matrix) -> Any:
        if kind_of(a) is not Expansion:
            return rule(f, a)
        series, root = in_series(a)
        with capacity(series_terms(series)):
            found = rule(f, series)
        return [[Expansion.of_series(x.s, root) if isinstance(x, Series) else x for x in row] for row in found]

    return converted


def series_terms(a: Matrix) -> int:
    """How many coefficients all entries have."""
    terms: int = min(x.s.prec for row in a for x in row if type(x) is not arb)
    return terms


# --- eigenvalues --------------------------------------------------------------------------------------------------


def eigenvalues(f: Any, a: Matrix) -> list[Any]:
    """Of a symmetric matrix, ascending."""
    kind = kind_of(a)
    if kind is Complex:
        raise Unsupported("eigenvalues of complex matrices")
    if kind is arb:
        return ball_eigenvalues(a)
    a, root = in_series(a) if kind is Expansion else (a, 1)
    still = mirrored([[x if type(x) is arb else x.constant for x in row] for row in a])
    terms = series_terms(a)
    with capacity(terms):
        if kind is Expansion and meet(still):
            return [Expansion.of_series(s, root) for s in parted(f, a, still)]
        starts = ball_eigenvalues(still, apart=True)
        polynomial = characteristic(f, a, terms)
        found = [followed(polynomial, start, terms) for start in starts]
    return [Expansion.of_series(s, root) if kind is Expansion else Series(s) for s in found]


def parted(f: Any, a: Matrix, still: Matrix) -> list[Any]:
    """Eigenvalues, some of them equal at the point, to the first order on one side, ascending, as python-flint's.

    In the common space of equal ones, with orthonormal columns Q, they move like the eigenvalues of Q'A_k Q, where A_k
    is the first coefficient of the matrix that is not 0.
    """
    entries = [x for row in a for x in row if type(x) is not arb]
    terms = min(x.s.prec for x in entries)
    order = next((k for k in range(1, terms) if any(not x.s[k].is_zero() for x in entries)), None)
    if order is None:
        raise TooShort("a matrix that is constant to the order of the series")
    step = [[_coefficient(x, order) for x in row] for row in a]
    found = []
    for value, space in spaces(f, still):
        inside = product(f, product(f, transposed(space), step), space)
        slopes = ball_eigenvalues(inside)
        found += [arb_series([value, *[0] * (order - 1), slope], order + 1) for slope in slopes]
    return found


def characteristic(f: Any, a: Matrix, terms: int) -> list[Any]:
    """The coefficients of det(x - A), from the constant one up, as series of python-flint (Faddeev and LeVerrier)."""
    size = len(a)
    parts = [arb_mat([[_coefficient(x, k) for x in row] for row in a]) for k in range(terms)]
    unit = arb_mat(size, size, [int(i == j) for i in range(size) for j in range(size)])
    nothing = arb_mat(size, size, [0] * (size * size))
    m = [unit, *[nothing] * (terms - 1)]
    found = [arb_series([1], terms)]
    for step in range(1, size + 1):
        moved = []
        for k in range(terms):
            total = parts[0] * m[k]
            for j in range(1, k + 1):
                total = total + parts[j] * m[k - j]
            moved.append(total)
        shares = [-moved[k].trace() / step for k in range(terms)]
        found.append(arb_series(shares, terms))
        m = [moved[k] + unit * shares[k] for k in range(terms)]
    return found[::-1]


def _coefficient(x: Any, k: int) -> Any:
    if type(x) is arb:
        return x if k == 0 else arb(0)
    return x.s[k]


def followed(polynomial: Sequence[Any], start: Any, terms: int) -> Any:
    """The simple root of a polynomial with series for coefficients that starts in a ball."""
    root, known = arb_series([start], terms), 1
    while known < terms:
        value = slope = arb_series([0], terms)
        for c in reversed(polynomial):
            slope = slope * root + value
            value = value * root + c
        if slope[0].contains(0):
            raise Undecided("eigenvalues that cannot be separated at this precision")
        root = replaced(root - replaced(value, arb(0)) / slope, start)
        known *= 2
    return root


@by_series
def eigenvectors(f: Any, a: Matrix) -> Matrix:
    """Of a symmetric matrix, in columns, by ascending eigenvalue; along a direction the columns of adjugates.

    The adjugate of A - x for a simple eigenvalue x is a multiple of v v'. Its sign is that of the vector at the point.
    """
    if kind_of(a) is arb:
        return ball_eigenvectors(f, a)
    size = len(a)
    still = [[x if type(x) is arb else x.constant for x in row] for row in a]
    if meet(mirrored(still)):
        raise Unbounded("eigenvectors of equal eigenvalues along a direction")
    here = transposed(ball_eigenvectors(f, still))
    columns = []
    for value, start in zip(eigenvalues(f, a), here, strict=True):
        shifted = [[x - value if i == j else x for j, x in enumerate(row)] for i, row in enumerate(a)]
        adjugate = cofactors(f, shifted)
        best = max(range(size), key=[float(abs(x).mid()) for x in start].__getitem__)
        column = [row[best] for row in adjugate]
        length = f.total(x * x for x in column).sqrt()
        along = f.total(_coefficient(x, 0) * y for x, y in zip(column, start, strict=True))
        side = ball_numbers.sign(along)
        columns.append([side * x / length for x in column])
    return transposed(columns)


# --- singular values ----------------------------------------------------------------------------------------------


def _gram(f: Any, a: Matrix) -> tuple[Matrix, Matrix]:
    """The smaller of A'A and AA', and the matrix that leads from its vectors to those of the other side."""
    if len(a[0]) <= len(a):
        return product(f, transposed(a), a), a
    return product(f, a, transposed(a)), transposed(a)


def singular_values(f: Any, a: Matrix) -> list[Any]:
    """Descending."""
    found = []
    for x in reversed(eigenvalues(f, _gram(f, a)[0])):
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


def _singular_vectors(f: Any, a: Matrix) -> tuple[Matrix, Matrix]:
    """Those of the smaller Gram matrix, and those of the other side, in columns."""
    gram, across = _gram(f, a)
    own = [row[::-1] for row in eigenvectors(f, gram)]
    sizes = singular_values(f, a)
    other = [[x / size for x, size in zip(row, sizes, strict=True)] for row in product(f, across, own)]
    return own, other


def left_vectors(f: Any, a: Matrix) -> Matrix:
    """U of A = U S V'."""
    own, other = _singular_vectors(f, a)
    return other if len(a[0]) <= len(a) else own


def right_vectors(f: Any, a: Matrix) -> Matrix:
    """V of A = U S V'."""
    own, other = _singular_vectors(f, a)
    return own if len(a[0]) <= len(a) else other


# --- exponentials -------------------------------------------------------------------------------------------------


@by_series
def exponential(f: Any, a: Matrix) -> Matrix:
    """exp(A): of series through the block matrix with A's coefficient j - i in block (i, j).

    That of X + i*Y through [[X, -Y], [Y, X]].
    """
    kind = kind_of(a)
    if kind is arb:
        return [list(row) for row in arb_mat(a).exp().table()]
    size = len(a)
    if kind is Complex:
        upper = [[*(x.x for x in row), *(-x.y for x in row)] for row in a]
        lower = [[*(x.y for x in row), *(x.x for x in row)] for row in a]
        both = exponential(f, [*upper, *lower])
        return [[Complex(both[i][j], both[i + size][j]) for j in range(size)] for i in range(size)]
    terms = series_terms(a)
    blocks = [[[_coefficient(x, k) for x in row] for row in a] for k in range(terms)]
    zero = [[0] * size for _ in range(size)]
    rows = [
        [x for j in range(terms) for x in (blocks[j - i] if j >= i else zero)[r]]
        for i in range(terms)
        for r in range(size)
    ]
    whole = arb_mat(rows).exp()
    found = [[[whole[r, k * size + c] for k in range(terms)] for c in range(size)] for r in range(size)]
    return [[Series(arb_series(coefficients, terms)) for coefficients in row] for row in found]


def exponential_along(f: Any, a: Matrix, direction: Matrix) -> Matrix:
    """The derivative of exp at A along a direction: the corner of exp([[A, D], [0, A]])."""
    size = len(a)
    zero = f.zero
    upper = [[*row, *more] for row, more in zip(a, direction, strict=True)]
    lower = [[*[zero] * size, *row] for row in a]
    return [row[size:] for row in exponential(f, [*upper, *lower])[:size]]


RULES: dict[str, Callable[..., Any]] = {
    "eigvalsh": each(eigenvalues),
    "eigvecs": each(eigenvectors),
    "svdvals": each(singular_values),
    "svd_u": each(left_vectors),
    "svd_v": each(right_vectors),
    "expm": each(exponential),
    "frechet": each(exponential_along),
}
