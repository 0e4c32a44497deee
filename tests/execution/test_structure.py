"""Patterns, colours and compressed sweeps: never too small a pattern, and the same numbers as all unit vectors give."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradcli
from gradcli.calculator import questions
from gradcli.calculator.answers import ask_hessian, ask_jacobian
from gradcli.calculator.sweeping import Blocks
from gradcli.execution.evaluate import Tape
from gradcli.execution.sparsity import compressed, patterns
from gradcli.execution.sparsity.compressed import coloured, without_hubs
from gradcli.execution.sparsity.flows import Flow, gathered, identity, of_pairs, transposed
from gradcli.transforms import derivatives
from tests.support.cases import cases, internal, public
from tests.support.rows import all_rows
from tests.support.study import Study

EVERYTHING = float("inf")


def as_matrix(flow: Flow, columns: int) -> np.ndarray:
    found = np.zeros((flow.rows, columns), dtype=bool)
    found[flow.row_of_each(), flow.columns] = True
    return found


# --- patterns -----------------------------------------------------------------------------------------------


@all_rows("name", [*public(), *internal()])
def test_no_operation_reaches_further_than_its_pattern(name: str) -> None:
    """Every entry that moves a value, and every derivative that is not 0, is a pair of the pattern."""
    for case in cases(name):
        study = Study(case, 1)
        if not study.differentiable:
            continue
        leaves, outputs = list(study.leaves.values()), study.outputs
        sizes = [leaf.type.size for leaf in leaves]
        moves = patterns.pattern(outputs, leaves, values=True, most=EVERYTHING)
        slopes = patterns.pattern(outputs, leaves, most=EVERYTHING)
        assert moves is not None
        assert slopes is not None
        may_move, may_slope = as_matrix(moves, sum(sizes)), as_matrix(slopes, sum(sizes))
        tape, point = Tape(outputs), study.point(0)

        def values(at: dict[str, np.ndarray], tape: Tape = tape, outputs: list[Any] = outputs) -> np.ndarray:
            found = tape.run(at, backend="numpy")
            return np.concatenate(
                [np.broadcast_to(one, node.shape).reshape(-1) for one, node in zip(found, outputs, strict=True)]
            )

        here, column = values(point), 0
        for leaf_name, leaf in study.leaves.items():
            for entry in range(leaf.type.size):
                moved = {key: np.array(value) for key, value in point.items()}
                moved[leaf_name].reshape(-1)[entry] += 2.0**-6
                changed = (values(moved) != here) & np.isfinite(here)
                assert not (changed & ~may_move[:, column]).any(), f"{case}: {leaf_name}[{entry}]"
                column += 1
        floats = [node for node in outputs if node.type.kind == "float"]
        rows = np.concatenate([np.full(node.type.size, node.type.kind == "float") for node in outputs])
        tangents = [study.builder.fresh_leaf(leaf.type) for leaf in leaves] if study.builder.table is not None else None
        if tangents is None:
            study.builder.reopen(outputs)
            tangents = [study.builder.fresh_leaf(leaf.type) for leaf in leaves]
        pushed = Tape(derivatives.jvp(floats, leaves, tangents))
        units = np.eye(sum(sizes))
        given_units, first = {}, 0
        for tangent in tangents:
            given_units[tangent.params["name"]] = units[:, first : first + tangent.type.size].reshape(
                -1, *tangent.shape
            )
            first += tangent.type.size
        found = pushed.run({**point, **given_units}, backend="numpy")
        jacobian = np.concatenate(
            [
                np.broadcast_to(one, (len(units), *node.shape)).reshape(len(units), -1).T
                for one, node in zip(found, floats, strict=True)
            ]
        )
        wrong = (np.nan_to_num(jacobian) != 0) & ~may_slope[rows]
        assert not wrong.any(), f"{case}: derivative at {np.argwhere(wrong)[0]}"


def pattern_of(script: str, size: int, **options: Any) -> np.ndarray:
    lowered = questions.prepare(script, {"x": np.linspace(0.1, 1, size)})
    found = patterns.pattern(lowered.program.outputs, [lowered.program.leaves["x"].node], most=EVERYTHING, **options)
    assert found is not None
    return as_matrix(found, size)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("tanh(x)", np.eye(6)),
        ("flip(x)", np.eye(6)[::-1]),
        ("x[1:]*x[:-1]", np.eye(5, 6) + np.eye(5, 6, 1)),
        ("reshape(x, (2, 3)).T", np.eye(6)[[0, 3, 1, 4, 2, 5]]),
        ("sum(reshape(x, (2, 3)), axis=0)", np.hstack([np.eye(3), np.eye(3)])),
        ("sum(reshape(x, (2, 3)), axis=1)", np.kron(np.eye(2), np.ones(3))),
        ("reshape(x[:4], (2, 2)) @ [[1, 2], [3, 4]]", np.hstack([np.kron(np.eye(2), np.ones((2, 2))), np.zeros((4, 2))])),
        ("x[[0, 0, 5]]", np.eye(6)[[0, 0, 5]]),
        ("concat([x[3:], x[:3]])", np.roll(np.eye(6), 3, axis=1)),
        ("detach(x)*x[0]", np.hstack([np.ones((6, 1)), np.zeros((6, 5))])),
        ("where(x[0] > 0, x[1:3], x[3:5])", np.eye(2, 6, 1) + np.eye(2, 6, 3)),
        ("floor(argmax(x)) + x[:1]", np.eye(1, 6)),
        ("logsumexp(reshape(x, (2, 3)), axis=1)", np.kron(np.eye(2), np.ones(3))),
    ],
)  # fmt: skip
def test_patterns_are_no_larger_than_they_have_to_be(script: str, expected: np.ndarray) -> None:
    assert (pattern_of(script, 6) == expected.astype(bool)).all()


def test_what_carries_no_derivative_still_carries_values() -> None:
    assert pattern_of("detach(x)*x[0]", 6, values=True).sum() == 11
    assert pattern_of("where(x[0] > 0, x[1:3], x[3:5])", 6, values=True)[:, 0].all()


def test_positions_that_are_data_are_followed() -> None:
    assert (
        pattern_of("const i = [3, 0, 0]\nx[i]**2", 5, held={"i": np.array([3, 0, 0])})
        == np.eye(5)[[3, 0, 0]].astype(bool)
    ).all()


# --- colours ------------------------------------------------------------------------------------------------


@st.composite
def flows(draw: Any) -> tuple[Flow, int]:
    rows, columns = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    count = draw(st.integers(0, 60))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), min_size=count, max_size=count)
    )
    at = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return of_pairs(at[:, 0], at[:, 1], rows), columns


@given(flows())
def test_no_row_has_a_colour_twice(made: tuple[Flow, int]) -> None:
    flow, columns = made
    colours = coloured(flow, columns)
    here = colours.of[flow.columns]
    assert (here >= 0).all()
    assert len(set(zip(flow.row_of_each().tolist(), here.tolist(), strict=True))) == flow.pairs
    assert colours.number <= columns
    assert (transposed(transposed(flow, columns), flow.rows).columns == flow.columns).all()


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_bands_need_as_many_colours_as_they_are_wide(width: int) -> None:
    rows = np.repeat(np.arange(200), width)
    columns = (rows + np.tile(np.arange(width), 200)) % 1000
    assert coloured(of_pairs(rows, columns, 200), 1000).number == width


def test_an_arrow_needs_two_sweeps() -> None:
    size = 500
    rows = np.concatenate([np.arange(size), np.zeros(size, dtype=np.int64), np.arange(size)])
    columns = np.concatenate([np.arange(size), np.arange(size), np.zeros(size, dtype=np.int64)])
    flow = of_pairs(rows, columns, size)
    assert without_hubs(flow).tolist() == [0]
    assert compressed.symmetric(flow).sweeps == 2


ARROWS = {
    "concatenate([[sum(x**2)], x[1:]**2 + x[0]*x[1:]])": 3,  # a long row and a long column
    "concatenate([[sum(sin(x)), prod(x/2)], x[1:]*x[:-1] + x[0]])": 5,
}


@pytest.mark.parametrize("script", ARROWS)
@pytest.mark.parametrize("sparse", [True, False])
def test_long_rows_are_swept_in_reverse(script: str, sparse: bool) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, 60)
    f, expected = gradcli.compile(script), gradcli.compile(f"jacobian({script}, x)")(x=x)
    for _ in range(3):
        found: Any = f.jacobian(sparse=sparse, x=x).jacobian["x"]
        assert np.allclose(found.toarray() if sparse else found, expected, rtol=1e-14, atol=0)
    ((question, *_),) = f._recent.values()
    sweeps = question.compressed
    assert sweeps is not None and sweeps.trusted and sweeps._back is not None
    assert sweeps._compression.sweeps + sweeps._back._compression.sweeps == ARROWS[script]


def test_an_arrow_of_any_size_is_linear() -> None:
    size = 100_000
    f = gradcli.compile("concatenate([[sum(x**2)], x[1:]**2 + x[0]*x[1:]])")
    x = np.linspace(1, 2, size)
    matrix: Any = f.jacobian(sparse=True, x=x).jacobian["x"]
    assert matrix.shape == (size, size) and matrix.nnz == 3 * size - 2
    assert np.array_equal(matrix[[0]].toarray()[0], 2 * x)
    assert np.array_equal(matrix.diagonal()[1:], 2 * x[1:] + x[0])
    assert np.array_equal(matrix[:, [0]].toarray()[1:, 0], x[1:])


@given(flows(), st.integers(0, 2**31))
def test_compressed_matrices_come_back(made: tuple[Flow, int], seed: int) -> None:
    flow, columns = made
    random = np.random.default_rng(seed)
    matrix = np.zeros((flow.rows, columns))
    matrix[flow.row_of_each(), flow.columns] = random.standard_normal(flow.pairs)
    forward, reverse = compressed.by_columns(flow, columns), compressed.by_rows(flow, columns)
    for one, swept, across in ((forward, forward.seeds() @ matrix.T, False), (reverse, reverse.seeds() @ matrix, True)):
        entries = one.entries(swept)
        block = Blocks(one, [flow.rows], [columns]).filled(entries)[0][0]
        assert (block.reshape(matrix.shape) == matrix).all()
        probes = one.probes()
        assert one.agrees(entries, probes, probes @ (matrix if across else matrix.T), across)
    both = compressed.both_ways(flow, columns)
    if both is not None:
        one, back = both
        assert one.sweeps + back.sweeps < min(forward.sweeps, reverse.sweeps)
        swept = np.concatenate([one.seeds() @ matrix.T, back.seeds() @ matrix], axis=None)
        assert (
            Blocks(one, [flow.rows], [columns]).filled(one.entries(swept))[0][0].reshape(matrix.shape) == matrix
        ).all()
    if flow.rows == columns:
        size = columns
        whole = matrix + matrix.T
        one = compressed.symmetric(flow)
        cut = [size // 3, size - size // 3]
        blocks = Blocks(one, cut, cut).filled(one.entries(one.seeds() @ whole))
        parts = [[b.reshape(h, w) for b, w in zip(row, cut, strict=True)] for row, h in zip(blocks, cut, strict=True)]
        assert (np.block(parts) == whole).all()


# --- Hessians and Jacobians -----------------------------------------------------------------------------------

PIECES = (
    "sum(sin({0}[1:]*{0}[:-1]))", "sum(({0}[2:] - 2*{0}[1:-1] + {0}[:-2])**2)", "sum({0}**3)", "sum(exp(-{0})*{1})",
    "sum(tanh({0}*{1})**2)", "sum(log(1 + {0}**2))", "sum({0}[::2]**2)*s", "s**2*sum({1})",
    "sum(where({0} > 0, {0}**2, {1}**3))", "sum(reshape({0}, (4, 6)) @ [[1, 2], [0, 1], [2, 0], [1, 1], [0, 3], [1, 0]])**2",
    "sum(logsumexp(reshape({0}, (8, 3)), axis=1))", "{0}[0]*{0}[23]*s", "sum({0}[[0, 5, 5, 7]]**3)",
    "sum(concat([{0}[12:], {1}[:12]])**2)", "cosh({0}[3] - {1}[20])", "sum(roll({0}, 3)*{1})", "s*sum({0}*detach({1}))",
    "sum(prod(reshape(tanh({0}), (12, 2)), axis=1))", "sum(({0}[:12] + {0}[12:])**4)", "logsumexp({0})",
    "sum(norm(2 + reshape(sin({1}), (6, 4)), axis=1))", "sum(sqrt(1 + {0}*{0})*{1}[0])", "max({0})*s",
)  # fmt: skip


def forced(question: questions.PreparedScript) -> questions.PreparedScript:
    """The same question, answered by all unit vectors."""
    question.compressed = None
    question.by_leaf = {}
    return question


def point_from(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"x": random.uniform(-1.5, 1.5, 24), "y": random.uniform(0.2, 2, 24), "s": float(random.uniform(0.5, 2))}


def hessians(script: str, point: dict[str, Any], dtype: str = "float64") -> tuple[Any, Any, Any]:
    """The answer as it is given, that of all unit vectors, and the question."""
    lowered = questions.prepare(script, point)
    question = questions.hessian_question(lowered)
    told = ask_hessian(question, point, dtype)
    again = ask_hessian(question, point, dtype)
    planned = questions.hessian_question(lowered)
    first, second = (ask_hessian(planned, point, dtype, again=True) for _ in range(2))
    entries = np.concatenate([np.ravel(one) for line in told.hessian.values() for one in line.values()])
    largest = np.abs(entries[np.isfinite(entries)]).max(initial=0.0)
    for row, columns in told.hessian.items():
        for column, block in columns.items():
            assert np.array_equal(block, again.hessian[row][column], equal_nan=True)
            assert np.array_equal(first.hessian[row][column], second.hessian[row][column], equal_nan=True)
            gap = 1e-5 if dtype == "float32" else 1e-12
            assert np.allclose(first.hessian[row][column], block, rtol=gap, atol=gap * largest, equal_nan=True)
    full = ask_hessian(forced(questions.hessian_question(questions.prepare(script, point))), point, dtype)
    return told, full, question


def assert_sparse(script: str, point: dict[str, Any], derivative: str = "hessian") -> None:
    """Sparse arrays hold what the dense ones hold, in canonical CSR format, first and again, at other points too."""
    from scipy.sparse import csr_array

    f = gradcli.compile(script)
    other = {name: value if name == "i" else np.asarray(value) * 0.75 for name, value in point.items()}
    for at in (point, point, other):
        sparse, dense = (getattr(getattr(f, derivative)(sparse=choice, **at), derivative) for choice in (True, False))
        once = getattr(getattr(gradcli, derivative)(script, at=at, sparse=True), derivative)
        for ours, again, full in zip(*(leaf_blocks(table) for table in (sparse, once, dense)), strict=True):
            assert type(ours) is csr_array and ours.indices.dtype == ours.indptr.dtype == np.int32
            assert ours.has_canonical_format and ours.shape[0] * ours.shape[1] == np.size(full)
            assert (ours.indptr == again.indptr).all() and (ours.indices == again.indices).all()
            matrix = np.reshape(full, ours.shape)
            for block in (ours, again):
                assert np.allclose(block.toarray(), matrix, rtol=1e-12, atol=1e-12 * np.abs(matrix).max(initial=1)), (
                    script
                )
            ours.indices[:] = 0  # what a caller does to a result changes no later one


def leaf_blocks(table: Any) -> list[Any]:
    """The blocks of nested tables, in order."""
    if isinstance(table, dict):
        table = list(table.values())
    return [block for part in table for block in leaf_blocks(part)] if isinstance(table, (list, tuple)) else [table]


def assert_same(told: Any, full: Any, exact: bool) -> None:
    assert np.shape(told) == np.shape(full)
    assert type(told) is type(full)
    if exact:
        assert np.array_equal(told, full, equal_nan=True), np.abs(np.asarray(told) - full).max()
    else:
        assert np.allclose(told, full, rtol=1e-12, atol=1e-13 * np.abs(full).max(initial=1.0), equal_nan=True)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.booleans()), min_size=1, max_size=5), st.integers(0, 2**31))
def test_hessians_of_random_programs(parts: list[tuple[str, bool]], seed: int) -> None:
    """Sparse or not: the same numbers as from all unit vectors, mirror images within rounding."""
    script = " + ".join(piece.format(*(("y", "x") if swap else ("x", "y"))) for piece, swap in parts)
    script += " + 0*s + 0*sum(x) + 0*sum(y)"
    told, full, question = hessians(script, point_from(seed))
    if question.compressed is not None:
        assert question.compressed.trusted, script
    assert told.value == full.value
    for row, columns in full.hessian.items():
        assert np.array_equal(told.gradient[row], full.gradient[row])
        for column, block in columns.items():
            assert_same(told.hessian[row][column], block, False)


X24 = {"x": np.linspace(-1.2, 1.7, 24)}
LOOP = "z = x\nfor k in range(300):\n  z = z + 0.001*sin(z)*x\n"
SPARSE = {
    "hessian": (
        ("3*sum(x) + 1", X24), ("sum(x**3)", X24), ("sum(x[1:]*x[:-1])", {"x": np.ones(2)}), ("x**3", {"x": 2.0}),
        ("x*y**2", {"x": 2.0, "y": 3.0}), ("s*sum(x**2)", {**X24, "s": 2.0}), ("x[0]*x[23] + 0*sum(x)", X24),
        ("sum(where(x > 0, x**2, x**3))", X24), ("sum(x[[0, 5, 5, 7]]**3)", X24), ("logsumexp(x)", X24),
        ("sum((x[:, None] - y)**4)", {"x": np.ones(3), "y": np.arange(4.0)}), ("sum(tanh(A @ x)**2)", {"A": np.eye(4), "x": np.ones(4)}),
        ("sum(x)**2 + sum(x**4)", X24), ("x[0]*sum(x) + sum(x[1:]**2*x[:-1])", X24), (LOOP + "sum(z**2)", X24),
        ("sum(x[1:]*x[:-1]) + sum(A**2*s)", {**X24, "A": np.ones((2, 3)), "s": 1.5}), ("sum(max(x, 0)**2)", X24),
    ),
    "jacobian": (
        ("[1.0, 2.0] + 0*detach(x[:2])", X24), ("x**2", X24), ("x**2", {"x": 2.0}), ("x*y", {"x": 2.0, "y": np.ones(3)}),
        ("x[1:]*x[:-1], sum(x), 3*x[0]", X24), ("reshape(x, (4, 6))**2 * s", {**X24, "s": 2.0}), ("roll(x, 2)*x", X24),
        ("where(x > 0, x, y)", {**X24, "y": np.ones(24)}), ("A @ x", {"A": np.eye(3), "x": np.ones(3)}),
        ("x[:, None]*y", {"x": np.ones(3), "y": np.arange(4.0)}), ("concat([x*x[0], [sum(x)]])", X24), (LOOP + "z[2:] - z[:-2]", X24),
        ("floor(x)", X24), ("sum(x, axis=0)", {"x": np.ones((3, 5))}), ("x[:12]*y[0], sin(y)", {**X24, "y": np.ones(2)}),
    ),
}  # fmt: skip


@all_rows(
    ("derivative", "script", "point"),
    [(kind, script, point) for kind, rows in SPARSE.items() for script, point in rows],
)
def test_sparse_arrays_equal_dense_ones(derivative: str, script: str, point: dict[str, Any]) -> None:
    assert_sparse(script, point, derivative)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.booleans()), min_size=1, max_size=4), st.integers(0, 2**31))
def test_sparse_hessians_of_random_programs(parts: list[tuple[str, bool]], seed: int) -> None:
    script = " + ".join(piece.format(*(("y", "x") if swap else ("x", "y"))) for piece, swap in parts)
    assert_sparse(script + " + 0*s + 0*sum(x) + 0*sum(y)", point_from(seed))


def test_sparse_patterns_do_not_depend_on_values() -> None:
    f, x = gradcli.compile("sum(x[1:]**2*x[:-1])"), np.ones(40)
    blocks = [f.hessian(sparse=True, x=at).hessian["x"]["x"] for at in (x, 0 * x)]
    assert [block.nnz for block in blocks] == [117, 117]


CHAIN = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"


@pytest.mark.parametrize(("derivative", "script"), [("hessian", CHAIN), ("jacobian", "x[2:] - 2*x[1:-1]**2 + x[:-2]")])
def test_matrices_beyond_the_limit_are_sparse_by_themselves(derivative: str, script: str) -> None:
    point = {"x": np.linspace(0.5, 1.5, 20_000)}
    blocks = [
        leaf_blocks(getattr(call, derivative))[0]
        for call in (
            getattr(gradcli.compile(script), derivative)(**point),
            getattr(gradcli, derivative)(script, at=point),
        )
    ]
    assert all(block.nnz < 60_001 for block in blocks)
    small = {"x": point["x"][:50]}
    dense = leaf_blocks(getattr(getattr(gradcli, derivative)(script, at=small), derivative))[0]
    height = 40
    assert np.array_equal(blocks[0][:height, :height].toarray(), dense[:height, :height])
    with pytest.raises(gradcli.GradcliError, match="entries") as caught:
        getattr(gradcli, derivative)(script, at=point, sparse=False)
    assert "sparse=True" in str(caught.value)


@pytest.mark.parametrize("method", ["by_trust_region", "by_least_squares", "by_differences"])
def test_optimisers_of_scipy_take_sparse_arrays(method: str) -> None:
    sample = runpy.run_path(str(Path(__file__).parents[2] / "samples" / "python" / "sparse_optimisers.py"))
    assert np.allclose(sample[method](np.full(60, 1.2)), 1, atol=1e-6)


def test_a_band_is_the_same_bit_for_bit() -> None:
    script = "sum((x[1:] - x[:-1]**2)**2 + sin(x[:-1]*x[1:])/x[1:])"
    for seed in range(20):
        point = {"x": np.random.default_rng(seed).uniform(0.1, 3, 300)}
        told, full, question = hessians(script, point)
        assert question.compressed is not None
        assert question.compressed.trusted
        assert_same(told.hessian["x"]["x"], full.hessian["x"]["x"], True)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_formats(dtype: str) -> None:
    told, full, question = hessians("sum(x[1:]**2*x[:-1]) + s*sum(x)", point_from(4), dtype)
    assert question.compressed is not None
    assert question.compressed.trusted
    for row, columns in full.hessian.items():
        for column, block in columns.items():
            assert_same(told.hessian[row][column], block, True)


def test_where_something_is_not_finite_all_unit_vectors_answer() -> None:
    point = {"x": np.concatenate([[0.0], np.linspace(0.1, 1, 29)])}
    told, full, question = hessians("sum(sqrt(x)) + sum(x[1:]*x[:-1])", point)
    assert question.compressed is not None
    assert_same(told.hessian["x"]["x"], full.hessian["x"]["x"], True)
    assert np.isnan(told.hessian["x"]["x"]).any() or np.isinf(told.hessian["x"]["x"]).any()


OUTPUTS = (
    "x**2", "x[1:]*y[:-1]", "s*x[:5]", "sum(reshape(x, (4, 6)), axis=0)*s", "sum(x)", "x[0] + y[3]**2", "sin(x)*y",
    "concat([x, y, x])**2", "reshape(x, (4, 6))**2", "cumsum(x[:3])", "[[1, 2, 0], [0, 1, 1]] @ x[4:7]", "roll(x, 2)*x",
    "logsumexp(reshape(y, (12, 2)), axis=1)", "where(x > 0, x, y)", "sum(outer(x, y), axis=0)",
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(OUTPUTS), min_size=1, max_size=3), st.integers(0, 2**31))
def test_jacobians_of_random_programs(outputs: list[str], seed: int) -> None:
    point = point_from(seed)
    script = "a = 0*s + 0*sum(x) + 0*sum(y)\n" + ", ".join(f"{one} + a" for one in outputs)
    question = questions.jacobian_question(questions.prepare(script, point))
    told = ask_jacobian(question, point).jacobian
    planned = questions.jacobian_question(questions.prepare(script, point))
    first, second = (ask_jacobian(planned, point, again=True).jacobian for _ in range(2))
    for ones in zip(*((t if isinstance(t, tuple) else (t,)) for t in (told, first, second)), strict=True):
        for name in ones[0]:
            assert_same(ones[1][name], ones[0][name], False)
            assert np.array_equal(ones[1][name], ones[2][name])
    full = ask_jacobian(forced(questions.jacobian_question(questions.prepare(script, point))), point).jacobian
    if question.compressed is not None:
        assert question.compressed.trusted, script
    for one, other in zip(*((t if isinstance(t, tuple) else (t,)) for t in (told, full)), strict=True):
        for name, block in other.items():
            assert_same(one[name], block, False)


def test_jacobians_choose_the_cheaper_side() -> None:
    wide = questions.jacobian_question(questions.prepare("sum(reshape(x, (40, 10)), axis=1)**2", {"x": np.ones(400)}))
    assert wide.compressed is not None
    assert wide.compressed._across
    assert wide.compressed._compression.sweeps == 1
    tall = questions.jacobian_question(questions.prepare("concat([x, x, x])**2", {"x": np.ones(400)}))
    assert tall.compressed is not None
    assert not tall.compressed._across
    assert tall.compressed._compression.sweeps == 1


def test_leaves_are_taken_apart_where_all_together_have_no_structure() -> None:
    """A layer: each output reads its own row of A, but all of x."""
    random = np.random.default_rng(3)
    point = {"A": random.standard_normal((14, 20)), "x": random.standard_normal(20), "b": random.standard_normal(14)}
    question = questions.jacobian_question(questions.prepare("tanh(A @ x + b), b**2", point))
    assert question.compressed is None
    assert set(question.by_leaf) == {"A", "b"}
    told = ask_jacobian(question, point).jacobian
    assert all(one.trusted for one in question.by_leaf.values())
    other = questions.jacobian_question(questions.prepare("tanh(A @ x + b), b**2", point))
    other.by_leaf = {}
    full = ask_jacobian(other, point).jacobian
    for one, two in zip(told, full, strict=True):
        assert list(one) == list(two)
        for name, block in two.items():
            assert_same(one[name], block, False)


# --- sabotage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", range(0, 58, 5))
def test_a_pattern_that_lacks_a_pair_is_found_out(missing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk that forgets a pair (and its mirror image) does not change an answer: the probe sees it."""
    right = patterns.pattern

    def wrong(*args: Any, **options: Any) -> Flow | None:
        flow = right(*args, **options)
        assert flow is not None
        rows, columns = flow.row_of_each(), flow.columns
        row, column = rows[missing], columns[missing]
        kept = ~(((rows == row) & (columns == column)) | ((rows == column) & (columns == row)))
        return of_pairs(rows[kept], columns[kept], flow.rows)

    point = {"x": np.random.default_rng(missing).uniform(0.5, 2, 30)}
    script = "sum(sin(x[1:]*x[:-1])) + sum(x**3)"
    full = ask_hessian(forced(questions.hessian_question(questions.prepare(script, point))), point)
    monkeypatch.setattr(patterns, "pattern", wrong)
    question = questions.hessian_question(questions.prepare(script, point))
    assert question.compressed is not None
    told = ask_hessian(question, point)
    assert question.compressed.trusted is False
    assert np.array_equal(told.hessian["x"]["x"], full.hessian["x"]["x"])
    jacobian = questions.jacobian_question(questions.prepare("sin(x[1:]*x[:-1])", point))
    assert jacobian.compressed is not None
    ask_jacobian(jacobian, point)
    assert jacobian.compressed.trusted is False


def test_colours_that_clash_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcli.execution.sparsity.compressed import Colours

    monkeypatch.setattr(compressed, "coloured", lambda flow, columns: Colours(np.arange(columns) % 2, 2))
    point = {"x": np.linspace(0.5, 1, 30)}
    question = questions.hessian_question(questions.prepare("sum(sin(x[1:]*x[:-1]))", point))
    ask_hessian(question, point)
    assert question.compressed is not None
    assert question.compressed.trusted is False


def test_the_compiled_function_and_the_commands_use_it() -> None:
    f = gradcli.compile("sum((x[1:] - x[:-1]**2)**2)")
    x = np.linspace(0.1, 1, 40)
    found = f.hessian(x=x).hessian["x"]["x"]
    want = np.zeros((40, 40))
    for i in range(39):
        want[i + 1, i + 1] += 2
        want[i, i] += -4 * (x[i + 1] - x[i] ** 2) + 8 * x[i] ** 2
        want[i, i + 1] += -4 * x[i]
        want[i + 1, i] += -4 * x[i]
    assert np.allclose(found, want, rtol=1e-14, atol=0)
    question = next(iter(f._kept.values()))
    assert question.compressed is not None
    assert question.compressed.trusted


def test_a_wrong_value_for_a_compiled_hessian_is_told_each_time() -> None:
    f = gradcli.compile("sum(x[1:]**2*x[:-1])")
    x = np.linspace(0.1, 1, 30)
    for _ in range(3):
        f.hessian(x=x)
    longer = f.hessian(x=np.linspace(0.1, 1, 31)).hessian["x"]["x"]
    assert longer.shape == (31, 31)
    assert np.array_equal(f.hessian(x=x.astype(np.float32)).hessian["x"]["x"].shape, (30, 30))
    assert np.array_equal(f.hessian(x=x.tolist()).hessian["x"]["x"], f.hessian(x=x).hessian["x"]["x"])
    for wrong in ({"x": "text"}, {"z": x}, {"x": x, "z": 1.0}, {}):
        with pytest.raises(gradcli.GradcliError):
            f.hessian(**wrong)
    x[3] = np.nan
    assert f.hessian(x=x).diagnostics


def test_flows_that_are_empty() -> None:
    nothing = gathered(identity(0), np.zeros(0, dtype=np.int64))
    assert (nothing.rows, nothing.pairs) == (0, 0)
    assert coloured(gathered(identity(2), np.array([-1, -1])), 2).number == 0
