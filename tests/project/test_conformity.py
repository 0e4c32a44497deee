"""Sentences of the documentation that fit in no other table: what they promise is run from Python."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli.language.limits import limits_of


def problem(call: object) -> gradcli.Diagnostic:
    with pytest.raises(gradcli.GradcliError) as caught:
        call()
    return caught.value.diagnostics[0]


# --- declared sizes ---------------------------------------------------------------------------------------

# script, point, value, gradient
SIZES = [
    ("W[m, n] in real = 1; sum(W)/m", {}, 3, {"W": [[0.5] * 3] * 2}),
    (
        "W[m, n] in real; v[n] in real; sum(W @ v)/n",
        {"W": [[1, 2]], "v": [3, 4]},
        5.5,
        {"W": [[1.5, 2]], "v": [0.5, 1]},
    ),
    ("v[n] in real; w[n + 1] in real = 1; sum(v)*sum(w)", {"v": [1, 1]}, 6, {"v": [3, 3], "w": [2, 2, 2]}),
    ("W[m, n] in real; sum(W)", {"W": [[1]], "m": 1, "n": 1}, 1, {"W": [[1]]}),
    ("w[3] in real; sum(w)", {"w": 2}, 6, {"w": [1, 1, 1]}),
    ("W[m, n] in real; 2*m", {}, 4, {"W": [[0] * 3] * 2}),  # no value is needed of what nothing reads
]


@pytest.mark.parametrize(("script", "at", "value", "gradient"), SIZES, ids=[row[0] for row in SIZES])
def test_free_sizes_come_from_the_point_or_are_chosen(
    script: str, at: dict[str, object], value: float, gradient: dict[str, object]
) -> None:
    found = gradcli.grad(script, at=at)
    assert found.value == value
    assert {name: np.asarray(entry).tolist() for name, entry in found.gradient.items()} == gradient


def test_chosen_sizes_are_named() -> None:
    notes = [one.message for one in gradcli.grad("W[m, n] in real = 1; sum(W)").diagnostics]
    assert notes == ["`m` is a free size: 2 is chosen here", "`n` is a free size: 3 is chosen here"]


def test_a_size_has_one_value() -> None:
    at = {"W": [[1, 2]], "v": [1, 2, 3]}
    assert problem(lambda: gradcli.evaluate("W[m, n] in real; v[n] in real; sum(v)", at=at)).code == "GC313"


@pytest.mark.parametrize("script", ["A @ b", "sum(A.T @ A)", "trace(A)", "A[0]"])
def test_a_shape_error_with_a_free_name_proposes_a_declaration(script: str) -> None:
    assert "A[m, n] in real" in str(problem(lambda: gradcli.evaluate(script)).help)


# --- labels and positions ----------------------------------------------------------------------------------

POSITIONS = [
    ("cross_entropy(X, y)", {"X": [[1, 2], [3, 4]], "y": [0, 1]}),
    ("nll_loss(X, y)", {"X": [[1, 2], [3, 4]], "y": [0, 1]}),
    ("sum(take(X, y))", {"X": [1, 2], "y": [0, 1]}),
    ("sum(X[y])", {"X": [1, 2], "y": [0, 1]}),
]


@pytest.mark.parametrize(("script", "at"), POSITIONS, ids=[row[0] for row in POSITIONS])
def test_labels_and_positions_are_never_differentiated(script: str, at: dict[str, object]) -> None:
    assert list(gradcli.grad(script, at=at).gradient) == ["X"]
    assert problem(lambda: gradcli.grad(script, at=at, wrt=["y"])).code == "GC207"
    for wrong in ([0, 0.5], [0, 7]):
        assert problem(lambda wrong=wrong: gradcli.grad(script, at={**at, "y": wrong})).code == "GC406"


# --- complex numbers ---------------------------------------------------------------------------------------

Z = np.array([0.3 + 0.4j, 0.2 - 0.1j])


@pytest.mark.parametrize(
    "script",
    ["max(z)", "sum(sort(z))", "sum(z*(z > 0))", "sum(relu(z))", "argmax(z)", "sum(floor(z))", "sum(hypot(z, 1))"],
)
def test_complex_values_have_no_order(script: str) -> None:
    assert problem(lambda: gradcli.grad(script, at={"z": Z}, dtype="complex128")).code == "GC401"


def test_real_values_keep_their_order_among_complex_ones() -> None:
    found = gradcli.grad("sum(maximum(abs(z), 0.45))", at={"z": Z}, dtype="complex128")
    assert np.allclose(found.gradient["z"], [0.6 + 0.8j, 0])


def test_a_compiled_function_has_the_same_complex_convention() -> None:
    found = gradcli.compile("abs(z)**2", dtype="complex128").value_and_grad(z=1 + 2j)
    assert np.allclose(found[1]["z"], 2 + 4j)
    assert gradcli.grad("abs(z)**2", at={"z": 1 + 2j}, dtype="complex128").gradient["z"] == found[1]["z"]


# --- from Python ---------------------------------------------------------------------------------------------


def test_limits_are_taken_as_people_give_them() -> None:
    for limits in ("nodes=3", {"nodes": 3}, limits_of("nodes=3")):
        assert problem(lambda limits=limits: gradcli.grad("x*x*x + x", at={"x": 1}, limits=limits)).code == "GC505"


def test_wrt_may_be_a_text() -> None:
    assert list(gradcli.grad("ab*a*b", at={"ab": 1, "a": 2, "b": 3}, wrt="ab").gradient) == ["ab"]


def test_a_result_keeps_its_point() -> None:
    x = np.ones(3)
    found = gradcli.grad("sum(x)", at={"x": x})
    x[0] = 5
    assert found.at["x"].tolist() == [1, 1, 1]


def test_a_keyword_that_is_no_leaf_is_refused() -> None:
    f = gradcli.compile("rate = 0.1; rate*x")
    assert "did you mean `rate`?" in str(problem(lambda: f(x=1, rat=2)).help)


def test_a_scalar_counts_for_all_points() -> None:
    values, gradients = gradcli.compile("sin(x)*y").at_points(x=np.zeros(2), y=2.0)
    assert values.tolist() == [0, 0]
    assert {name: entry.tolist() for name, entry in gradients.items()} == {"x": [2, 2], "y": [0, 0]}


def test_a_vector_has_no_gradient_but_three_ways_out() -> None:
    hint = str(problem(lambda: gradcli.compile("2*x").value_and_grad(x=[1.0, 2.0])).help)
    assert all(way in hint for way in ("sum", "jacobian", "at_points"))


def test_values_that_are_no_numbers_are_named() -> None:
    for value in (10**400, [1, [2]], "a", None, object(), np.array(["a"])):
        assert "`x`" in problem(lambda value=value: gradcli.compile("sum(x)")(x=value)).message


# --- what no script may bring down ----------------------------------------------------------------------------

# script, code
REFUSED = [
    ("x[::0]", "GC306"),
    ("arange(inf)", "GC306"),
    ("arange(0, -inf)", "GC306"),
    ("argmin([], zeros(0))", "GC303"),
    ("x(y + 1)", "GC203"),
]


@pytest.mark.parametrize(("script", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_evaluated_is_refused_by_name(script: str, code: str) -> None:
    assert problem(lambda: gradcli.evaluate(script, at={"x": [1.0, 2.0], "y": 1.0})).code == code


def test_a_diagonal_beyond_the_corner_is_empty() -> None:
    assert not gradcli.evaluate("triu(ones(2, 2), 10**30)").value.any()
    assert gradcli.evaluate("tril(ones(2, 2), 10**30)").value.all()


def test_a_product_is_proposed_with_its_factor() -> None:
    assert problem(lambda: gradcli.evaluate("x(3)", at={"x": 2})).help == "to multiply, write x*(3)"


def test_a_leaf_that_only_decides_is_named_where_nothing_else_is_left() -> None:
    found = problem(lambda: gradcli.grad("x = 3\nif x > 2:\n    y = x\nelse:\n    y = 0\ny"))
    assert found.code == "GC209"
    assert "`x` is read" in found.message


def test_only_the_command_line_notes_a_name_that_nothing_uses() -> None:
    from gradcli.batch import serve

    answers: list[object] = []
    serve(['{"id": 1, "command": "grad", "script": "rate*x", "at": {"rate": 1, "x": 2, "rat": 3}}'], answers.append)
    assert answers[0].outcome.diagnostics == ()  # type: ignore[attr-defined]
    (note,) = gradcli.grad("rate*x", at=["rate=1,x=2,rat=3"]).diagnostics
    assert (note.code, note.help) == ("GC211", "did you mean `rate`?")


def test_every_public_name_can_be_had() -> None:
    for name in gradcli.__all__:
        assert getattr(gradcli, name) is not None
    assert callable(gradcli.check)
