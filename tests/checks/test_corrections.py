"""The formula that a refuted claim gets as `correct`: parsed and confirmed before it is shown, and in the user's terms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradcli
from gradcli.checks import check_script
from gradcli.checks.diagnosis import formula_text
from gradcli.execution.evaluate import Tape
from gradcli.formulas.index_reading import RULES
from gradcli.graph.building import building
from gradcli.graph.node import Builder
from gradcli.language.source import words
from gradcli.primitives import catalogue
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from gradcli.checks.report import Check
    from gradcli.graph.primitive import Primitive

PASSING = {"PROVED", "CERTIFIED", "IMPRECISE"}


def claimed(script: str, leaf: str, claim: str, at: dict[str, Any]) -> Check:
    """The check of one claim."""
    report = check_script(script, at=at, wrt=[leaf], claims={leaf: claim})
    return next(one for one in report.checks if one.kind == "claim")


def shown(script: str, leaf: str, at: dict[str, Any], claim: str | None = None) -> str | None:
    """The formula that a wrong claim gets."""
    check = claimed(script, leaf, claim or f"3*{leaf}*{leaf} + 1.25", at)
    assert check.verdict == "DISAGREES"
    found = [one.get("correction") for one in check.evidence.get("diagnosis", [])]
    return next((text for text in found if text), None)


DAMAGED = [
    "2*x",  # another number
    "3*x**2*(1 + 1e-9*x)",  # nearly right
    "3*x**2*y/y",  # of a name that is not a leaf
    "3*x**2 +",  # no formula
    "3*x**2*step(x)",  # an operation that no script can call
    "3*x**2*(1 if x > 0 else 0)",
    "3*√x**2",
    "12",  # right at the point only
    "6*x",
    "[3*x**2, 1]",
    "3*x**2; 1",
    "f(x)",  # a function of the script
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_formula_is_never_shown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_text, "formula_texts", lambda *_: iter([text]))
    assert shown("def f(x): return 3*x**2\nx**3", "x", {"x": 2.0}) is None


def test_the_first_formula_that_holds_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_text, "formula_texts", lambda *_: iter([*DAMAGED, "3*x**2", "x**2*3"]))
    assert shown("x**3", "x", {"x": 2.0}) == "3*x**2"


def test_a_name_of_the_script_is_no_library_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_text, "formula_texts", lambda *_: iter(["exp(x)"]))
    assert shown("exp(x)", "x", {"x": 2.0}) == "exp(x)"
    assert shown("def exp(u): return u**2\nexp(x)", "x", {"x": 2.0}) is None


def test_symmetric_matrices_do_not_excuse_a_missing_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    at = {"A": [[2.0, 1.0], [1.0, 3.0]], "x": [1.0, 2.0]}
    monkeypatch.setattr(formula_text, "formula_texts", lambda *_: iter(["2*A @ x"]))
    assert shown("x @ A @ x", "x", at) is None


def test_words_are_names() -> None:
    assert words("2*exp(x_1) - 1e-3*sum(A @ b)") == {"exp", "x_1", "sum", "A", "b"}
    assert all(re.fullmatch(r"\w+", word) for word in words("a.T @ b"))


# --- what users see: read by a person ---------------------------------------------------------------------------------

FORMULAS: list[tuple[str, str, dict[str, Any], str]] = [
    ("x @ A @ x", "x", {"A": (3, 3), "x": (3,)}, "(A + A.T) @ x"),
    ("x.T @ A @ y", "x", {"A": (3, 3), "x": (3,), "y": (3,)}, "A @ y"),
    ("x.T @ A @ y", "A", {"A": (3, 3), "x": (3,), "y": (3,)}, "outer(x, y)"),
    ("norm(A @ x - b)**2", "x", {"A": (3, 2), "x": (2,), "b": (3,)}, "2*A.T @ (A @ x - b)"),
    ("norm(A @ x - b)", "x", {"A": (3, 2), "x": (2,), "b": (3,)}, "A.T @ (A @ x - b)/norm(A @ x - b)"),
    ("mean((A @ x - b)**2)", "x", {"A": (3, 2), "x": (2,), "b": (3,)}, "2/3*A.T @ (A @ x - b)"),
    ("sum((A @ x - b)**2)", "A", {"A": (3, 2), "x": (2,), "b": (3,)}, "2*outer(A @ x - b, x)"),
    ("trace(A @ B)", "A", {"A": (2, 3), "B": (3, 2)}, "B.T"),
    ("trace(A.T @ A)", "A", {"A": (2, 3)}, "2*A"),
    ("trace(A @ B @ A.T)", "A", {"A": (2, 3), "B": (3, 3)}, "A @ (B + B.T)"),
    ("log(det(A))", "A", {"A": "regular 3"}, "inv(A).T"),
    ("det(A)", "A", {"A": "regular 3"}, "det(A)*inv(A).T"),
    ("a @ inv(A) @ b", "A", {"A": "regular 3", "a": (3,), "b": (3,)}, "-outer(inv(A).T @ a, inv(A) @ b)"),
    ("log(sum(exp(x)))", "x", {"x": (3,)}, "softmax(x)"),
    ("sum(log(1 + exp(-y*(X @ w))))", "w", {"X": (3, 2), "y": (3,), "w": (2,)}, "-X.T @ (y*sigmoid(-y*(X @ w)))"),
    (
        "-mean(y*log(sigmoid(X @ w)) + (1 - y)*log(1 - sigmoid(X @ w)))",
        "w",
        {"X": (3, 2), "y": (3,), "w": (2,)},
        "-1/3*X.T @ (y - sigmoid(X @ w))",
    ),
    ("sum(softmax(x)*y)", "x", {"x": (3,), "y": (3,)}, "softmax(x)*(y - y @ softmax(x))"),
    ("norm(x)", "x", {"x": (3,)}, "x/norm(x)"),
    ("(x @ y)/(norm(x)*norm(y))", "x", {"x": (3,), "y": (3,)}, "(y - (x @ y)*x/sum(x**2))/(norm(x)*norm(y))"),
    ("sum(tanh(W @ x + b))", "W", {"W": (2, 3), "x": (3,), "b": (2,)}, "outer(1 - tanh(W @ x + b)**2, x)"),
    ("sum(relu(W @ x + b))", "W", {"W": (2, 3), "x": (3,), "b": (2,)}, "outer(where(W @ x + b > 0, 1, 0), x)"),
    ("sum((X @ W - Y)**2)", "W", {"X": (3, 2), "W": (2, 2), "Y": (3, 2)}, "2*X.T @ (X @ W - Y)"),
    ("sum((Y - U @ V.T)**2)", "U", {"Y": (3, 4), "U": (3, 2), "V": (4, 2)}, "-2*(Y - U @ V.T) @ V"),
    ("sum(A*B)", "A", {"A": (2, 3), "B": (2, 3)}, "B"),
    ("sum(cumsum(x)**2)", "x", {"x": (4,)}, "2*cumsum(cumsum(x)[::-1])[::-1]"),
    ("x[0]*x[1]", "x", {"x": (3,)}, "[x[1], x[0], 0]"),
    ("sum(x[1:3]**2)", "x", {"x": (4,)}, "2*pad(x[1:3], (1, 1))"),
    ("var(x)", "x", {"x": (4,)}, "(x - mean(x))/2"),
    ("std(x)", "x", {"x": (4,)}, "(x - mean(x))/(4*std(x))"),
    ("max(x)", "x", {"x": (4,)}, "where(x == max(x), 1, 0)"),
    ("sum(abs(x))", "x", {"x": (4,)}, "sign(x)"),
    ("prod(x)", "x", {"x": (4,)}, "[x[1]*x[2]*x[3], x[0]*x[2]*x[3], x[0]*x[1]*x[3], x[0]*x[1]*x[2]]"),
    ("sum(outer(x, y)**2)", "x", {"x": (3,), "y": (2,)}, "2*sum(y**2)*x"),
    (
        "cross(a, b) @ c",
        "a",
        {"a": (3,), "b": (3,), "c": (3,)},
        "[b[1]*c[2] - b[2]*c[1], b[2]*c[0] - b[0]*c[2], b[0]*c[1] - b[1]*c[0]]",
    ),
    ("einsum('i,ij,j->', x, A, x)", "x", {"A": (3, 3), "x": (3,)}, "(A + A.T) @ x"),
    ("x/(x**2 + y**2)", "x", {"x": (), "y": ()}, "(y**2 - x**2)/(x**2 + y**2)**2"),
    ("sqrt(x**2 + 1)", "x", {"x": ()}, "x/sqrt(x**2 + 1)"),
    ("1/(1 + exp(-x))", "x", {"x": ()}, "exp(-x)/(1 + exp(-x))**2"),
    ("x**y", "x", {"x": "positive", "y": ()}, "y*x**(y - 1)"),
    ("x**y", "y", {"x": "positive", "y": ()}, "x**y*log(x)"),
    ("log(1 + exp(x))", "x", {"x": ()}, "sigmoid(x)"),
    (
        "4*eps*((s/r)**12 - (s/r)**6)",
        "r",
        {"eps": "positive", "s": "positive", "r": "positive"},
        "24*eps*s**6*(r**6 - 2*s**6)/r**13",
    ),
    (
        "1/(exp(E/(k*T)) - 1)",
        "T",
        {"E": "positive", "k": "positive", "T": "positive"},
        "E*exp(E/(k*T))/(k*T**2*(exp(E/(k*T)) - 1)**2)",
    ),
    ("erf(x/sqrt(2))", "x", {"x": ()}, "sqrt(2)*exp(-x**2/2)/sqrt(pi)"),
    ("atan2(y, x)", "x", {"x": (), "y": ()}, "-y/(x**2 + y**2)"),
    ("sqrt(x**2 + y**2)", "x", {"x": (), "y": ()}, "x/sqrt(x**2 + y**2)"),
]


MORE_FORMULAS: list[tuple[str, str, dict[str, Any], str]] = [
    ("det(A @ X @ B)", "X", {"A": "regular 2", "X": "regular 2", "B": "regular 2"}, "det(A)*det(X)*det(B)*inv(X).T"),
    ("det(X @ X @ X)", "X", {"X": "regular 2"}, "3*det(X)**3*inv(X).T"),
    ("log(det(X.T @ X))", "X", {"X": "regular 2"}, "2*inv(X).T"),
    ("log(det(D.T @ D))", "D", {"D": (4, 2)}, "2*D @ inv(D.T @ D)"),
    ("det(inv(X))", "X", {"X": "regular 2"}, "-inv(X).T/det(X)"),
    ("trace(inv(X) @ A)", "X", {"X": "regular 2", "A": (2, 2)}, "-inv(X).T @ A.T @ inv(X).T"),
    ("trace(A @ X @ B @ X.T)", "X", {"A": (2, 2), "X": (2, 2), "B": (2, 2)}, "A @ X @ B + A.T @ X @ B.T"),
    ("sum((D - mean(D, axis=0))**2)", "D", {"D": (4, 2)}, "2*(D - mean(D, axis=0))"),
    ("sum(where(x > 0, x**2, exp(x)))", "x", {"x": (3,)}, "where(x > 0, 2*x, exp(x))"),
    (
        "sum(softmax(D)*Z)",
        "D",
        {"D": (2, 3), "Z": (2, 3)},
        "softmax(D)*(Z - sum(Z*softmax(D), axis=-1)[:, None])",
    ),
    (
        "(x - A @ y) @ W.T @ W @ (x - A @ y)",
        "y",
        {"x": (3,), "A": (3, 2), "y": (2,), "W": (2, 3)},
        "-2*A.T @ (W.T @ (W @ (x - A @ y)))",
    ),
    ("m = max(x); m + log(sum(exp(x - m)))", "x", {"x": (3,)}, "softmax(x)"),
    ("logsumexp(A @ x)", "x", {"A": (3, 2), "x": (2,)}, "A.T @ softmax(A @ x)"),
    ("sum(relu(x)**2)", "x", {"x": (3,)}, "2*relu(x)"),
    ("-sum(y*log(softmax(A @ x)))", "x", {"y": (3,), "A": (3, 2), "x": (2,)}, "A.T @ (sum(y)*softmax(A @ x) - y)"),
]


def values_of(shapes: dict[str, Any], seed: int = 2) -> dict[str, Any]:
    """Distinct eighths for leaves of these shapes; `positive` numbers, and `regular` matrices of a size."""
    generator = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for name, shape in shapes.items():
        if shape == "positive":
            found[name] = 1.25 + 0.25 * len(found)
        elif isinstance(shape, str):
            size = int(shape.split()[1])
            found[name] = (generator.permutation(size * size).reshape(size, size) / 8 + 2 * np.eye(size)).tolist()
        else:
            count = int(np.prod(shape))
            entries = (generator.permutation(3 * count + 3)[:count] - (3 * count + 3) // 2) / 16 + 1 / 32
            found[name] = entries.reshape(shape).tolist()
    return found


@all_rows(("script", "leaf", "shapes", "formula"), [*FORMULAS, *MORE_FORMULAS], ids=lambda one: str(one)[:30])
def test_the_formula_of_a_wrong_claim(script: str, leaf: str, shapes: dict[str, Any], formula: str) -> None:
    at = values_of(shapes)
    printed = shown(script, leaf, at)
    assert printed == formula
    assert claimed(script, leaf, printed, at).verdict in PASSING


@pytest.mark.parametrize(("script", "leaf", "shapes", "formula"), FORMULAS[::4], ids=lambda one: str(one)[:30])
def test_the_formula_does_not_depend_on_the_claim(script: str, leaf: str, shapes: dict[str, Any], formula: str) -> None:
    assert shown(script, leaf, values_of(shapes), f"2*({formula})") == formula


@all_rows(("script", "leaf", "shapes", "formula"), FORMULAS, ids=lambda one: str(one)[:30])
def test_compiled_functions_give_the_same_formula(script: str, leaf: str, shapes: dict[str, Any], formula: str) -> None:
    assert gradcli.compile(script).gradient_formula(leaf, **values_of(shapes)) == formula


# --- what internal operations are in public ones -------------------------------------------------------------------


def internal_operations() -> list[Primitive]:
    """Every internal operation that says what it is, and every one of numbers that no rule of the reader writes."""
    everything = dict(catalogue().items()).values()
    return [
        one
        for one in everything
        if one.closed is not None or (one.internal and one.kind == "elementwise" and one.name not in RULES)
    ]


PARAMS: dict[str, list[dict[str, Any]]] = {
    "pow_derivative": [{"k": k, "m": m} for k in range(3) for m in range(3)],
    "sinc_derivative": [{"n": n} for n in (1, 2, 3)],
    "is_max": [{"axis": -1}],
    "is_min": [{"axis": -1}],
    **{f"{name}_derivative": [{"orders": (1,)}] for name in ("erfcx", "dawsn", "ellipk", "ellipe")},
    **{f"{name}_derivative": [{"orders": (0, 1)}] for name in ("jn", "yn", "iv", "kv", "hyp0f1", "zeta")},
    **{f"{name}_derivative": [{"orders": (0, 1)}, {"orders": (1, 1)}] for name in ("gammainc", "gammaincc")},
    "betainc_derivative": [{"orders": orders} for orders in ((0, 0, 1), (1, 0, 1), (0, 1, 1))],
    "hyp1f1_derivative": [{"orders": (0, 0, 1)}],
    "hyp2f1_derivative": [{"orders": (0, 0, 0, 1)}],
}
NO_CLOSED_FORM = {  # derivatives by parameters, of which there is none in public operations
    **{f"{name}_derivative": [(1, 0), (2, 0)] for name in ("jn", "yn", "iv", "kv", "hyp0f1", "zeta")},
    **{f"{name}_derivative": [(1, 0), (2, 0), (2, 1)] for name in ("gammainc", "gammaincc")},
    "betainc_derivative": [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1)],
    "hyp1f1_derivative": [(1, 0, 0), (0, 1, 0), (1, 0, 1)],
    "hyp2f1_derivative": [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 1)],
}
NO_TEMPLATE = {"hyp2f1_derivative"}  # templates name the operands x, y and z, and it has four
CANCELLING = {"peak", "magnitude"}  # exact readings take 0 and 1


@all_rows("primitive", internal_operations(), ids=lambda one: one.name)
def test_an_internal_operation_says_what_it_is(primitive: Primitive) -> None:
    assert primitive.closed is not None, "fill in `closed`: the same in public operations, where it is smooth"
    if primitive.name in CANCELLING:
        return
    generator = np.random.default_rng(1)
    ranges = [(own.low, own.high) for own in primitive.sample or ()] if "orders" in primitive.static else []
    ranges = ranges or [(0.3, 0.9 if primitive.name == "beta_density" else 2)] * (primitive.arity or 1)
    for params in PARAMS.get(primitive.name, [{}]):
        shape = (3, 3) if primitive.kind == "structured" else (4,) if "axis" in params else ()
        builder = Builder(catalogue())
        xs = [builder.leaf(f"x{i}", shape) for i in range(primitive.arity or 1)]
        own = builder.apply(primitive, tuple(xs), params)
        with building(builder, [*xs, own]):
            closed = primitive.closed(*xs, **params)
        for _ in range(4):
            values = {f"x{i}": generator.uniform(*inside, shape) for i, inside in enumerate(ranges)}
            right, found = (np.asarray(one, dtype=float) for one in Tape([own, closed]).run(values))
            assert np.allclose(found, right, rtol=1e-12, atol=1e-14)


def test_every_derivative_of_orders_is_in_a_list() -> None:
    of_orders = {name for name, one in catalogue().items() if "orders" in one.static}
    assert of_orders == {name for name, each in PARAMS.items() if "orders" in each[0]}
    one_argument = {f"{name}_derivative" for name in ("erfcx", "dawsn", "ellipk", "ellipe")}
    assert of_orders - NO_CLOSED_FORM.keys() == one_argument


@pytest.mark.parametrize("name", NO_CLOSED_FORM)
def test_a_derivative_by_a_parameter_has_no_formula(name: str) -> None:
    primitive = dict(catalogue().items())[name]
    for orders in NO_CLOSED_FORM[name]:
        builder = Builder(catalogue())
        xs = [builder.leaf(f"x{i}") for i in range(len(orders))]
        assert primitive.closed is not None
        with building(builder, xs):
            assert primitive.closed(*xs, orders=orders) is None
        assert primitive.written({"orders": orders}) == ""


def test_where_there_is_no_formula_the_answer_says_so() -> None:
    for script in ("jn(x, 2)", "gammainc(x, 2)", "betainc(2, x, 0.25)", "hyp2f1(1, 2, x, 0.5)"):
        with pytest.raises(gradcli.GradcliError) as caught:
            gradcli.compile(script).gradient_formula("x", x=1.5)
        assert [one.code for one in caught.value.diagnostics] == ["GC511"]
    assert claimed("jn(x, 2)", "x", "2*x", {"x": 1.5}).verdict == "DISAGREES"


# --- random scripts ----------------------------------------------------------------------------------------------------

SHAPES = {"x": (3,), "y": (3,), "A": (3, 3), "B": (3, 2), "C": (2, 3), "s": ()}
FUNCTIONS = ("sin", "exp", "tanh", "sigmoid", "relu", "abs", "softplus")


def scripts(draw: Any, shape: tuple[int, ...], depth: int) -> str:
    """A random script of a shape: products, sums, reductions, slices, functions applied entry by entry."""
    if depth == 0:
        leaves = [name for name, own in SHAPES.items() if own == shape]
        return draw(st.sampled_from(leaves)) if leaves else f"({scripts(draw, (3,), 0)})[1:]"

    def part(own: tuple[int, ...]) -> str:
        return scripts(draw, own, depth - 1)

    ways = [
        lambda: f"({part(shape)} + {part(shape)})",
        lambda: f"({part(shape)} - {part(shape)})",
        lambda: f"({part(shape)})*({part(shape)})",
        lambda: f"({part(shape)})/(({part(shape)})**2 + 1)",
        lambda: f"{draw(st.sampled_from(FUNCTIONS))}({part(shape)})",
        lambda: f"({part(shape)})**2",
        lambda: f"({part(())})*({part(shape)})",
    ]
    if shape == ():
        ways += [
            lambda: f"sum({part((3, 3))})",
            lambda: f"mean({part((3,))})",
            lambda: f"({part((3,))}) @ ({part((3,))})",
            lambda: f"norm({part((3,))})",
            lambda: f"trace({part((3, 3))})",
            lambda: f"var({part((3,))})",
            lambda: f"({part((3,))})[1]",
            lambda: f"logsumexp({part((3,))})",
        ]
    elif len(shape) == 1:
        (n,) = shape
        ways += [
            lambda: f"({part((n, 5 - n))}) @ ({part((5 - n,))})",
            lambda: f"sum({part((n, 5 - n))}, axis=1)",
            lambda: f"softmax({part(shape)})",
            lambda: f"({part(shape)})[::-1]",
            lambda: f"cumsum({part(shape)})",
        ]
    elif shape != (2, 2):
        rows, columns = shape
        inner = 2 if shape == (3, 3) else 3
        ways += [
            lambda: f"({part((rows, inner))}) @ ({part((inner, columns))})",
            lambda: f"({part((columns, rows))}).T",
            lambda: f"outer({part((rows,))}, {part((columns,))})",
            lambda: f"({part(shape)} + {part((columns,))})",
        ]
    return draw(st.sampled_from(ways))()


@st.composite
def scalar_scripts(draw: Any) -> str:
    return scripts(draw, (), draw(st.integers(1, 3)))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(scalar_scripts(), st.integers(0, 100))
def test_the_formula_of_a_random_script_holds(script: str, seed: int) -> None:
    names = [name for name in SHAPES if name in words(script)]
    leaf = names[seed % len(names)]
    at = values_of({name: SHAPES[name] for name in names}, seed)
    check = claimed(script, leaf, f"3*{leaf}*{leaf} + 1.25", at)
    found = (
        [one.get("correction") for one in check.evidence.get("diagnosis", [])] if check.verdict == "DISAGREES" else []
    )
    for text in filter(None, found):
        assert claimed(script, leaf, text, at).verdict in PASSING, (script, leaf, text)
    try:
        formula = gradcli.compile(script).gradient_formula(leaf, **at)
    except gradcli.GradcliError as problem:
        assert [one.code for one in problem.diagnostics] == ["GC511"]
        return
    if check.verdict == "DISAGREES":  # not at a kink
        assert claimed(script, leaf, formula, at).verdict in {*PASSING, "AGREES"}, (script, leaf, formula)


def test_texts_do_not_depend_on_hash_seeds() -> None:
    program = (
        "import gradcli; f = gradcli.compile('sum(softmax(x)*y) + norm(A @ x - y)*exp(s*x @ y)');"
        "print(f.gradient_formula('x', A=[[1, 2, 3], [4, 5, 6], [7, 8, 10]], x=[1, 2, 3], y=[4, 5, 6], s=1))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1


# --- other advice ------------------------------------------------------------------------------------------------------


TEMPLATES = [(one, params) for one in internal_operations() for params in PARAMS.get(one.name, [{}]) if one.pointwise]


@all_rows(("primitive", "params"), TEMPLATES, ids=lambda one: getattr(one, "name", str(one)))
def test_formulas_of_internal_operations_are_script_language(primitive: Primitive, params: dict[str, Any]) -> None:
    text = primitive.written(params)
    if not text and primitive.name in NO_TEMPLATE:
        assert primitive.arity is not None and primitive.arity > 3
        return
    if not text:
        assert params.get("m", 0) + params.get("k", 0) > 2 or params.get("n", 0) > 1, "people read it in reports"
        return
    names = "xyz"[: primitive.arity]
    values = dict(zip(names, (2.5 if primitive.name == "zeta_derivative" else 0.75, 1.5, 0.5), strict=False))
    builder = Builder(catalogue())
    node = builder.apply(primitive, tuple(builder.leaf(name) for name in names), params)
    read = {name: value for name, value in values.items() if name in words(text)}
    assert gradcli.evaluate(text, at=read).value == pytest.approx(float(Tape([node]).run(values)[0]), rel=1e-13)


@pytest.mark.parametrize("change", ["2*{}", "{} ...", "{} + 1e-6", "foo({})"])
def test_a_rewrite_whose_text_says_something_else_is_not_shown(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rewrites() -> list[str]:
        check = check_script("log(1 - sigmoid(x))", at={"x": 60.0}).checks[0]
        assert check.verdict == "IMPRECISE"
        return [one["text"] for one in check.evidence.get("rewrite", [])]

    assert rewrites()[0] == "sigmoid(-x) for 1 - sigmoid(x)"
    text = formula_text.node_text
    monkeypatch.setattr(formula_text, "node_text", lambda *args: change.format(text(*args)))
    assert rewrites() == []


def test_a_local_rule_is_written_in_the_script_language() -> None:
    check = claimed("x*erf(x**2)", "x", "erf(x**2) + x*2*x*2*exp(x**4)/sqrt(pi)", {"x": 0.7})
    (rule,) = [one["rule"] for one in check.evidence["diagnosis"] if one.get("rule")]
    assert rule == "the derivative of `erf(x**2)` by `x**2` is `2*exp(-(x**2)**2)/sqrt(pi)`"
