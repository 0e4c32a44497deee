"""Functions of arrays against NumPy, three orders of derivatives against each other and against differences; edges."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.calculator import evaluate, grad
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Failure
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import building
from gradcli.graph.node import reachable
from gradcli.graph.types import Type
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.transforms import derivatives
from tests.array_cases import CALLS, Call
from tests.graph_invariants import verify, verify_pushforwards

if TYPE_CHECKING:
    from gradcli.graph.node import Node

STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
STEP = 1e-3
each_call = pytest.mark.parametrize("call", CALLS, ids=[f"{c.script} {c.shapes}" for c in CALLS])


class Study:
    """A call as a node, its weighted sum as a scalar, and directions for each leaf."""

    def __init__(self, call: Call) -> None:
        self.values = call.values()
        text = "".join(f"const {name} = {value.astype(int).tolist()}; " for name, value in call.constants().items())
        lowered = lower(parse(text + call.script), at=self.values)
        self.program = lowered.program
        self.fixed = {name: lowered.values[name] for name in call.constants()}
        self.output = self.program.outputs[0]
        self.leaves = [self.program.leaves[name].node for name in self.values]
        self.random = np.random.default_rng(5)
        with building(self.output.builder, self.program.nodes()):
            self.scalar = self.weighted([(self.output, self.data(self.output))])
            self.directions = [[self.data(leaf) for leaf in self.leaves] for _ in range(3)]

    def data(self, like: Node) -> Node:
        value = self.random.standard_normal(like.shape)
        return like.builder.array(f"test{like.serial}{self.random.random()}", value, Type("float", like.shape))

    def weighted(self, pairs: list[tuple[Node, Node]]) -> Node:
        """The sum of products of entries."""
        total = None
        with building(pairs[0][0].builder, reachable([x for pair in pairs for x in pair])) as builder:
            for x, weight in pairs:
                term = builder.call("mul", x, weight)
                term = builder.call("sum", term, axis=tuple(range(-len(x.shape), 0))) if x.shape else term
                total = term if total is None else builder.call("add", total, term)
        assert total is not None
        return total

    def run(self, nodes: list[Node], values: dict[str, np.ndarray] | None = None) -> list[Any]:
        return Tape(nodes).run({**self.fixed, **(values or self.values)}, backend="numpy")

    def forward(self) -> list[Node]:
        """The scalar, and its derivatives along one, two and three directions: forward mode, nested."""
        found = [self.scalar]
        for along in self.directions:
            found += derivatives.jvp([found[-1]], self.leaves, along)
        return found

    def reverse(self) -> list[Node]:
        """The same by reverse mode, nested."""
        found = [self.scalar]
        for along in self.directions:
            slopes = derivatives.grad(found[-1], self.leaves)
            found.append(self.weighted(list(zip(slopes, along, strict=True))))
        return found


@each_call
def test_value_is_numpys(call: Call) -> None:
    study = Study(call)
    expected = call.reference(*study.values.values(), *call.constants().values())
    assert study.output.shape == np.shape(expected)
    np.testing.assert_allclose(study.run([study.output])[0], expected, rtol=1e-11, atol=1e-12)


@each_call
def test_three_orders(call: Call) -> None:
    study = Study(call)
    forward, reverse = study.forward(), study.reverse()
    for program in (forward[-1:], reverse[-1:]):
        verify(program)
        verify_pushforwards(program)
    ahead, back = study.run(forward), study.run(reverse)
    np.testing.assert_allclose(back, ahead, rtol=1e-9, atol=1e-9)
    for order, along in enumerate(study.directions, 1):
        data = study.output.builder.data
        moves = [data[node.params["digest"]] for node in along]
        difference = 0.0
        for times, weight in STENCIL:
            moved = {
                name: value + times * STEP * move
                for (name, value), move in zip(study.values.items(), moves, strict=True)
            }
            difference += weight * study.run([forward[order - 1]], moved)[0] / STEP
        scale = max(1.0, *(abs(value) for value in ahead[: order + 1]))
        assert abs(difference - ahead[order]) <= 3e-6 * scale, f"order {order}: {difference} and {ahead[order]}"


@each_call
def test_a_batch_is_its_points(call: Call) -> None:
    study = Study(call)
    slopes = derivatives.grad(study.scalar, study.leaves)
    nodes = [study.output, *slopes, *derivatives.jvp(slopes, study.leaves, study.directions[0])]
    for leads in itertools.product([(), (2,), (3, 2)], repeat=len(study.leaves)):
        full = np.broadcast_shapes(*leads)
        batch = {
            name: value + 0.01 * study.random.standard_normal(lead + value.shape)
            for (name, value), lead in zip(study.values.items(), leads, strict=True)
        }
        found = study.run(nodes, batch)
        spread = [np.broadcast_to(x, full + node.shape) for x, node in zip(found, nodes, strict=True)]
        for place in np.ndindex(*full):
            point = {
                name: value[place[len(full) - len(lead) :]]
                for (name, value), lead in zip(batch.items(), leads, strict=True)
            }
            for x, expected in zip(spread, study.run(nodes, point), strict=True):
                np.testing.assert_allclose(x[place], expected, rtol=1e-9, atol=1e-10)


NO_CLOSED_FORM = ("eigvalsh(x) ((3, 3),)", "svdvals(x) ((3, 3),)", "expm(x) ((3, 3),)")
read_exactly = [c for c in CALLS if f"{c.script} {c.shapes}" not in NO_CLOSED_FORM]


@pytest.mark.parametrize("call", read_exactly, ids=[f"{c.script} {c.shapes}" for c in read_exactly])
def test_balls_enclose_value_and_gradient(call: Call) -> None:
    study = Study(call)
    nodes = [study.output, *derivatives.grad(study.scalar, study.leaves)]
    values = {**study.values, **call.constants()}
    point = {name: (value.reshape(-1).tolist(), value.shape) for name, value in values.items()}
    with ball_numbers.precision(192):
        exact = balls.read(balls.BallField(), nodes, point)
    for entries, value in zip(exact, study.run(nodes), strict=True):
        assert not any(isinstance(entry, Failure) for entry in entries.flat)
        middle = [float(entry.mid()) for entry in entries.flat]
        np.testing.assert_allclose(np.reshape(middle, entries.shape), value, rtol=1e-9, atol=1e-9)


# --- edges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinant_of_any_rank(rank: int) -> None:
    random = np.random.default_rng(rank)
    singular = random.standard_normal((4, rank)) @ random.standard_normal((rank, 4))
    call = Call("det(x)", np.linalg.det, ((4, 4),))
    study = Study(call)
    study.values = {"x": singular}
    ahead = study.run(study.forward())
    np.testing.assert_allclose(study.run(study.reverse()), ahead, rtol=1e-10, atol=1e-12)
    moves = [study.output.builder.data[along[0].params["digest"]] for along in study.directions]
    # the determinant is a polynomial of degree 4, so this difference of differences is its third derivative
    corners = {
        signs: study.run([study.scalar], {"x": singular + sum(s * m for s, m in zip(signs, moves, strict=True))})[0]
        for signs in itertools.product((-1, 1), repeat=3)
    }
    third = sum(np.prod(signs) * value for signs, value in corners.items()) / 8
    np.testing.assert_allclose(ahead[3], third, rtol=1e-9, atol=1e-9)


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
    ("max(x)", [1, 3, 3], [0, 0.5, 0.5]),
    ("sum(amin(x, axis=1))", [[1, 1], [2, 3]], [[0.5, 0.5], [1, 0]]),
    ("max(x)", [1, np.nan], [0, 1]),
    ("norm(x)", [0, 0], [0, 0]),
    ("norm(x, 1)", [0, -2], [0, -1]),
    ("std(x)", [2, 2, 2], [0, 0, 0]),
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
    ("jn(0.5, 1)", "GC306"),
    ("iv(5000, 1)", "GC306"),
    ("gammainc(0, 1)", "GC306"),
    ("gammainc([1, 2], 1)", "GC306"),
    ("betainc(1, -1, 0.5)", "GC306"),
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


@pytest.mark.parametrize(("script", "code"), ERRORS)
def test_errors(script: str, code: str) -> None:
    with pytest.raises(GradcliError) as caught:
        evaluate(script)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]


def test_random_arrays() -> None:
    expected = np.random.default_rng(1).standard_normal((2, 3))
    np.testing.assert_array_equal(evaluate("randn(2, 3, seed=1)").value, expected)
    np.testing.assert_array_equal(evaluate("rand((4,), seed=2)").value, np.random.default_rng(2).random(4))
    assert np.all(evaluate("randn(3, seed=4) - randn(3, seed=4)").value == 0)
    assert np.all(evaluate("randn(3) - randn(3)").value != 0)
