"""Functions of arrays beyond the cases of their declarations: other ranks, axes and indices; edges, kinks and errors."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator import evaluate, grad
from gradcli.execution.evaluate import Tape
from tests.support.case_tables import DEFAULT
from tests.support.cases import Case, Leaf
from tests.support.laws import CASE_LAWS
from tests.support.rows import all_rows
from tests.support.study import Study

A, T, V, S, B = (2, 3), (2, 3, 4), (3,), (3, 3), (2, 3, 3)
MODES = ("edge", "reflect", "symmetric", "wrap")
REDUCTIONS = ("sum", "mean", "prod", "max", "amin", "var", "std", "median", "logsumexp")

# Shapes of x, y and z, and calls on arrays of these shapes.
ROWS: list[tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]] = [
    ((T,), ("transpose(x, (1, -1, 0))", "swapaxes(x, 0, -1)", "concatenate(x, axis=1)", "repeat(x, 3, axis=1)", "hstack(x)",
            "moveaxis(x, (0, -1), (-1, 0))", "diff(x, 2)", "tril(x, 1)", "trace(x, 1, 2, 0)", "dsplit(x, (1, -1))[1]",
            "sort(x, axis=1)", "cumsum(x, axis=1)", "cumprod(x, axis=1)", "log_softmax(x, axis=0)", "norm(x, 1, axis=(2, 0))",
            'norm(x, ord="fro", axis=(0, 1))')),
    ((T,), ("x[0]", "x[1:, 0::2]", "x[-1, :, 3:0:-2]", "x[None, :, None, 1]", "x[[1, 0, 1]]", "x[0, :, [1, 3]]",
            "x[:, [2, 0], [1, 1]]", "x[:, None, [1, 2], 5::-1]", "x[[0, 1], None, :, 0]")),
    ((T, (2,)), ("x[argsort(y)]", "x[0, argsort(y)]", "take(x, argsort(y), axis=1)")),
    ((T, (2,), (2,)), ("x[argsort(y), argsort(z)]", "x[argsort(y), :, argsort(z)]")),
    ((T,), tuple(f"{name}(x, axis=(0, 2), keepdims=True)" for name in REDUCTIONS)),
    ((A,), tuple(f'pad(x, ((1, 2), (5, 0)), mode="{mode}")' for mode in MODES)),
    ((A,), ("reshape(x, 3, -1)", "expand_dims(x, (0, -1))", "broadcast_to(x, (4, 2, 3))", "roll(x, -1)", "diagonal(x, 5)",
            "roll(x, (1, -2), (0, 1))", "tile(x, (2, 1, 3))", "repeat(x, (2, 0, 1), axis=1)", "pad(x, ((1, 2), (0, 3)))",
            "take(x, [[0, 2], [5, -1]])", "std(x, axis=0, ddof=1)", "norm(x, 2)", 'einsum("ji", x)', 'einsum("ij->", x)')),
    ((V,), ("diag(x, -1)", "diff(x, 0)", "array_split(x, 5)[4]", "norm(x, 1)")),
    (((3, 4),), ("diag(x, 1)", "triu(x, -1)", "trace(x)")),
    (((2, 4),), ("split(x, (1, -1), 1)[1]", "array_split(x, 3, 1)[0]")),
    ((A, A), ("gather(x, argsort(y), axis=1)", 'einsum("ij,ij->i", x, y)')),
    ((A, V), ("concatenate((x, y), axis=None)", "tensordot(x, y, 0)", "outer(x, y)", "cross(x, y)", "kron(x, y)")),
    ((A, T), ("dstack((x, y))",)),
    (((3, 2), (3, 2)), ("cross(x, y, axis=0)",)),
    (((2, 1, 2), (1, 3)), ("kron(x, y)",)),
    *((shapes, ("x @ y",)) for shapes in ((V, V), (A, (5, 3, 4)), (B, V), (B, (2, 3, 2)), (V, (2, 3, 2)), ((1, 2, 3), (2, 3, 2)))),
    ((A, (2, 3, 4)), ("dot(x, y)",)),
    ((T, (3, 4, 2)), ("tensordot(x, y)",)),
    (((), V), ("dot(x, y)", "inner(x, y)")),
    ((B, (4, 3)), ("inner(x, y)",)),
    ((V, (2,)), ('einsum("i,j->ji", x, y)', "kron(x, y)")),
    ((V, V, V), ('einsum("i,i,i->i", x, y, z)',)),
    (((3, 2), (2, 2), (4, 2)), ('einsum("ia,ab,jb->ij", x, y, z)',)),
    (((2, 2, 3), (3, 2, 2)), ('einsum("aab,bcc->ac", x, y)',)),
    (((2, 1), (3, 4)), ('einsum("ij,jk->ik", x, y)',)),
    (((3, 3, 3),), ('einsum("iii->i", x)',)),
    ((B, (3, 2)), ("solve(x, y)",)),
    ((B,), ("inv(x)", "det(x)")),
    ((S,), ("det(x)", "qr(x)[0]", "qr(x)[1]", "matrix_power(x, -2)")),
    (((1, 1),), ("det(x)", "eigvalsh(x)", "expm(x)")),
    (((4, 4),), ("det(x)",)),
    (((3, 1),), ("svdvals(x)",)),
]  # fmt: skip
CALLS = [
    Case(text.split("(")[0], text, {name: Leaf(shape, DEFAULT) for name, shape in zip("xyz", shapes, strict=False)})
    for shapes, texts in ROWS
    for text in texts
]
LAWS = ("value_by_numpy", "value_by_balls", "derivatives_to_80_digits", "batch", "well_formed")


@all_rows("law", LAWS)
@all_rows("call", CALLS, ids=repr)
def test_law(call: Case, law: str) -> None:
    """The laws of `test_primitives.py` that depend on shapes."""
    CASE_LAWS[law](call)


# --- edges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinant_of_any_rank(rank: int) -> None:
    random = np.random.default_rng(rank)
    study = Study(Case("det", "det(x)", {"x": Leaf((4, 4), DEFAULT)}))
    study.points = {"x": random.standard_normal((3, 4, rank)) @ random.standard_normal((3, rank, 4))}
    u, v = (direction["x"] for direction in study.directions)
    # the determinant is a polynomial of degree 4, so this difference of differences is its third derivative
    corners = {
        signs: Tape(study.loss).run({"x": study.points["x"] + signs[0] * u + (signs[1] + signs[2]) * v})[0]
        for signs in itertools.product((-1, 1), repeat=3)
    }
    third = sum(np.prod(signs) * value for signs, value in corners.items()) / 8
    reverse = study.dotted("·uv reverse over forward", {"x": v})
    for found in (study.found["uvv forward"][0], reverse):
        np.testing.assert_allclose(found, third, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "bound"),
    [
        (np.random.default_rng(1).standard_normal((2, 5, 5)) + 3 * np.eye(5), 1e-13),  # far from singular
        (np.diag([1.0, 1e-9, 2.0, 3.0]), 1e-15),  # near it
        (np.diag([1.0, 0.0, 2.0, 3.0]), 1e-15),
        (1e-16 * np.eye(20), 1e-13),  # the determinant is subnormal, and below infinite
        (1e16 * np.eye(20), 1e-13),
        (np.diag([1e200, 1e-200, 1.0]), 1e-13),
    ],
)
def test_cofactors_are_right_for_their_size(matrix: Any, bound: float) -> None:
    def cofactor(a: list[list[float]], i: int, j: int) -> float:
        n = range(len(a))
        return float((-1) ** (i + j) * exact([[Fraction(a[k][m]) for m in n if m != j] for k in n if k != i]))

    def exact(rows: list[list[Fraction]]) -> Fraction:
        """Gauss."""
        found = Fraction(1)
        while rows:
            place = next((at for at, row in enumerate(rows) if row[0]), None)
            if place is None:
                return Fraction(0)
            pivot = rows.pop(place)
            found *= pivot[0] * (-1) ** place
            rows = [[x - row[0] / pivot[0] * y for x, y in zip(row[1:], pivot[1:], strict=True)] for row in rows]
        return found

    slopes = np.asarray(grad("sum(det(A))", at={"A": matrix}).gradient["A"])
    for one, found in zip(matrix.reshape(-1, *matrix.shape[-2:]), slopes.reshape(-1, *matrix.shape[-2:]), strict=True):
        places = list(np.ndindex(*one.shape))
        if len(places) > 100:  # exact fractions take their time: the diagonal and some others
            chosen = np.random.default_rng(5).choice(len(places), 20, replace=False)
            places = [place for at, place in enumerate(places) if at in chosen or place[0] == place[1]]
        right = {place: cofactor(one.tolist(), *place) for place in places}
        assert max(abs(found[place] - right[place]) for place in places) <= bound * max(map(abs, right.values()))


KINKS = [
    ("sum(amin(x, axis=1))", [[1, 1], [2, 3]], [[0.5, 0.5], [1, 0]]),
    ("max(x)", [1, np.nan], [0, 1]),
    ("norm(x, 1)", [0, -2], [0, -1]),
    ("median(x)", [3, 1, 2], [0, 0, 1]),
    ("sum(sort(x)*[1, 2, 3])", [2, 1, 1], [3, 1, 2]),
    ("prod(x)", [1, 0, 3, 0], [0, 0, 0, 0]),
    ("prod(x)", [2, 0, 3], [0, 6, 0]),
    ("sum(cumprod(x))", [1, 0, 3], [1, 4, 0]),
    ("norm(x)", [3e200, 4e200], [0.6, 0.8]),
    ("logsumexp(x)", [1000, -np.inf], [1, 0]),
    ("l1_loss(x, [1, 2])", [1, 5], [0, 0.5]),
    ("cosine_similarity(x, [1, 1])", [0, 0], [1e8 / np.sqrt(2)] * 2),
]


@pytest.mark.parametrize(("script", "x", "slopes"), KINKS)
def test_slopes_where_they_are_a_convention(script: str, x: Any, slopes: Any) -> None:
    found = grad(script, at={"x": np.array(x, dtype=float)}).gradient["x"]
    np.testing.assert_allclose(found, slopes, rtol=1e-14)


BRANCHES = [
    "logdet(M)", "sum(inv(M))", "sum(solve(M, M))", "sum(cholesky(M))", "sum(qr(M)[1])", "det(M)", "max(eigvalsh(M))",
    "sum(svdvals(M))", "trace(expm(M))", "norm(M)", "logsumexp(M)", "max(softmax(M))", "sum(cumprod(M))", "prod(M)",
    "std(M)", "median(M)", "sum(sort(M))", "max(M)", "sum(M @ M)", "cross_entropy(M, M)", "trace(matrix_power(M, -2))",
]  # fmt: skip


@pytest.mark.parametrize("inside", BRANCHES)
def test_a_branch_that_is_not_taken_has_no_influence(inside: str) -> None:
    script = f"M = log(x)*[[4, 1, 0], [0.5, 3, 1], [1, 0, 5]]; where(x > 0, {inside}, x**2)"
    assert grad(script, at={"x": -1.0}, order=2).derivatives == {"x": (-2.0, 2.0)}
    assert grad(script, at={"x": -1.0}).gradient == {"x": -2.0}


ERRORS = [
    ("zeros(20000, 20000)", "GC508"),
    ("x = ones(20000); outer(x, x)", "GC508"),
    ("tile([1, 2], 10**9)", "GC508"),
    ("randn(10**5, 10**5)", "GC508"),
    ("[1, 2, 3] @ [1, 2]", "GC302"),
    ("sum([1, 2], axis=1)", "GC303"),
    ("reshape([1, 2, 3], (2, -1))", "GC304"),
    ("x = [1, 2, 3]; x[3]", "GC305"),
    ("x = [1, 2, 3]; x[0, 1]", "GC305"),
    ("roll([1, 2], 0.5)", "GC306"),
    ("x = [1, 2, 3]; const i = [0, 3]; x[i]", "GC406"),
    ("cross_entropy([[1, 2]], [0.5])", "GC406"),
    ('pad([1], 1, mode="mirror")', "GC320"),
    ("inv([1, 2])", "GC321"),
    ("max([])", "GC322"),
    ('einsum("ij,jk", [[1]], [1])', "GC323"),
    ("split([1, 2, 3], 2)", "GC324"),
    ("u, s, vh = svd([[1, 2]]); s", "GC320"),
    ("eigh([[1, 2]])", "GC321"),
    ("pinv([1, 2])", "GC321"),
    ("dirichlet_logpdf([0.5, 0.5], [1, 2, 3])", "GC302"),
    ("multivariate_normal_logpdf([1, 2], [0, 0, 0], [[1, 0], [0, 1]])", "GC302"),
    ("multivariate_normal_logpdf([1, 2], [0, 0], [1, 1])", "GC321"),
    ("array_split([1, 2, 3], 0)", "GC306"),
    ("vsplit([1, 2], 2)", "GC321"),
    ("dsplit([[1, 2]], 1)", "GC321"),
    ("vstack(([1, 2], [1, 2, 3]))", "GC301"),
    ("hstack(([1, 2], [[1, 2]]))", "GC301"),
    ("moveaxis([[1, 2]], (0, 1), (0, 0))", "GC303"),
    ("moveaxis([[1, 2]], 0, (0, 1))", "GC303"),
    ("diagonal([1, 2])", "GC321"),
    ("diagonal([[1, 2]], 0, 1, 1)", "GC303"),
    ("diff(2)", "GC303"),
    ("diff([1, 2], -1)", "GC306"),
    ("tensordot([1, 2], [1, 2, 3], 1)", "GC302"),
    ("tensordot([1, 2], [1, 2])", "GC303"),
    ("tensordot([[1, 2]], [1, 2], axes=([0, 1, 0], [0]))", "GC303"),
]


@all_rows(("script", "code"), ERRORS)
def test_errors(script: str, code: str) -> None:
    with pytest.raises(GradcliError) as caught:
        evaluate(script)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]
