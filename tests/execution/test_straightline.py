"""Straight-line code of scalar programs: the bits of the evaluator, an alphabet of its own, nothing of a user inside."""

from __future__ import annotations

import ast
import math
import re
import struct
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator.questions import gradient_question, prepare
from gradcli.calculator.repeated.compiled import CompiledScript
from gradcli.execution import emit_python
from gradcli.execution.emit_python import PIECE, printed, straight
from gradcli.execution.generated import function as generate
from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.primitives import catalogue
from tests.support.background import finish_code
from tests.support.cases import cases
from tests.support.random_programs import make
from tests.support.rows import all_rows

# What the text of a function may consist of: one definition, assignments, one `try`, expressions of numbers.
SYNTAX = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.If, ast.Return, ast.Try, ast.ExceptHandler, ast.Assign,
    ast.Name, ast.Load, ast.Store, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.And, ast.Or,
    ast.IfExp, ast.Call, ast.keyword, ast.Tuple, ast.Dict, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Not,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.Starred,
    ast.Expr, ast.List, ast.Subscript,
)  # fmt: skip
OWN = re.compile(r"_(values|more|careful|faults|\d+|\d+_\d+|r\d+|c\d+|i\d+|p\d+|v|[fc]_\w+)")
BUILTIN = {"_type", "_float"}


def question(script: str, at: dict[str, Any]) -> Any:
    return gradient_question(prepare(script, at))


def code(script: str, at: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    made = question(script, at)
    return printed(made.tape, dict.fromkeys(made.lowered.program.leaves), [None, *made.names])


def function(script: str, at: dict[str, Any], careful: Any = None) -> Any:
    made = question(script, at)
    leaves = dict.fromkeys(made.lowered.program.leaves)
    return made, straight(made.tape, leaves, [None, *made.names], careful or (lambda **leaves: "careful"))


def check(script: str, at: dict[str, Any]) -> bool:
    """Whether the code answered, with the evaluator's bits; else the evaluator's answer is not finite or not floats'."""
    made, f = function(script, at)
    if f is None:
        assert made.tape._on_floats(made.tape.input_values(at), "auto", "float64") is None
        return False
    found = f(**at)
    tape = made.tape._on_floats(made.tape.input_values(at), "auto", "float64")
    if found == "careful":
        return tape is not None and all(map(math.isfinite, made.tape.run(at)))
    value, gradient = found
    right = [float(tape[made.tape.slots[node]]) for node in made.tape.outputs] if tape else made.tape.run(at)
    mine = [value, *gradient.values()]
    if tape is None:  # a branch that is not taken is not computed here, and may be what floats could not do
        assert mine == pytest.approx(right, rel=1e-13)
    else:
        assert [one.hex() for one in mine] == [one.hex() for one in right], script
    assert list(gradient) == list(made.names)
    return False


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_random_programs_have_the_same_bits(start: int) -> None:
    declined = 0
    for seed in range(start, start + 50):
        program = make(50_000 + seed, size=8, arrays=False)
        declined += check(program.text, {name: float(value) for name, value in program.values.items()})
    assert not declined


def scalar_cases() -> list[str]:
    return sorted(name for name, one in catalogue().items() if one.pointwise and not one.internal and cases(name))


@all_rows("name", scalar_cases())
def test_every_function_of_numbers_has_the_same_bits(name: str) -> None:
    compared = 0
    for case in cases(name):
        if any(leaf.shape for leaf in case.leaves.values()):
            continue
        for number in range(3):
            at = {leaf: float(value) for leaf, value in case.one(number=number).items()}
            try:
                made = question(case.text, at)
            except gradcli.GradcliError:
                continue
            tape = made.tape
            if tape.scalar and tape._on_floats(tape.input_values(at), "auto", "float64") is not None:
                assert not check(case.text, at)
                compared += 1
    if not compared:
        pytest.skip("math alone does not compute it, or it has no gradient")


def texts() -> list[tuple[str, dict[str, Any]]]:
    found = [
        ("sin(x*y)*exp(-x) + log(1 + y**2)*x", {"x": 1.0, "y": 2.0}),
        ("where(x > 0, sqrt(x), -x)", {"x": 2.0}),
        ("max(x, y) + relu(x - y) + abs(x)", {"x": 1.0, "y": 2.0}),
        ("x**3.5 + x**7 + x**y + 1e300*x - 0.1", {"x": 1.5, "y": 2.0}),
        ("clip(x, -1, 2) + floor(x)*y + sign(y)", {"x": 0.3, "y": 2.0}),
    ]
    found += [
        (program.text, {name: float(value) for name, value in program.values.items()})
        for program in (make(60_000 + seed, size=10, arrays=False) for seed in range(60))
    ]
    return found


@pytest.mark.parametrize("piece", [PIECE, 2])
def test_the_alphabet_is_pinned(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only these kinds of syntax, and no name but leaves, our own and two of Python's; also where code is divided."""
    pieces: list[str] = []
    monkeypatch.setattr(emit_python, "PIECE", piece)
    monkeypatch.setattr(emit_python, "function", lambda text, *rest: pieces.append(text) or generate(text, *rest))
    judged = 0
    for script, at in texts():
        try:
            text, known = code(script, at)
        except Unavailable:
            continue
        judged += 1
        trees = [ast.parse(part) for part in (text, *pieces)]
        assert all(len(tree.body) == 1 for tree in trees)
        pieces.clear()
        for node in [node for tree in trees for node in ast.walk(tree)]:
            assert isinstance(node, SYNTAX), (ast.dump(node), script)
            if isinstance(node, ast.Name):
                assert node.id in at or node.id in BUILTIN or OWN.fullmatch(node.id), node.id
                if node.id.startswith(("_f_", "_c", "_i", "_p")):
                    assert node.id in known or node.id == "_careful"
            if isinstance(node, ast.Constant):
                assert type(node.value) in (int, float) or node.value is None or node.value in at
        for name, value in known.items():
            if name.startswith("_f_"):
                assert value is getattr(namespace("math"), name.removeprefix("_f_"))
    assert judged > 30


def test_what_an_operation_reads_twice_is_computed_once() -> None:
    for script in ("exp(x)**3", "exp(x)**4", "sigmoid(exp(x))", "softplus(exp(x))"):
        text, _ = code(script, {"x": 0.5})
        assert text.count("_f_exp(x)") <= 1, text


@pytest.mark.parametrize(
    "given",
    [{"x": 1, "y": 2.0}, {"x": 1.0}, {"x": 1.0, "y": 2.0, "z": 3.0}, {"x": [1.0], "y": 2.0},
     {"x": np.float64(1.0), "y": 2.0}, {"x": -1.0, "y": 2.0}, {"x": 1e308, "y": 1e308}, {"x": math.nan, "y": 1.0},
     {"x": math.inf, "y": 1.0}, {"x": True, "y": 1.0}, {"x": "1", "y": 1.0}],
)  # fmt: skip
def test_whatever_is_not_plain_goes_to_the_careful_path(given: dict[str, Any]) -> None:
    asked = []

    def careful(**leaves: Any) -> str:
        asked.append({name: value for name, value in leaves.items() if value is not None})
        return "careful"

    _, f = function("log(x)*exp(y)", {"x": 1.0, "y": 2.0}, careful)
    assert f(x=1.0, y=2.0) != "careful"
    assert f(**given) == "careful"
    assert repr(asked) == repr([given])


@pytest.mark.parametrize("name", ["pass", "del", "None_", "ω", "_x", "type", "float", "print", "straight", "self"])
def test_names_of_leaves(name: str) -> None:
    """A leaf may be called anything; where that is no plain identifier there is no code, and the answer is the same."""
    try:
        f = gradcli.compile(f"{name}**2 + y")
    except gradcli.GradcliError as refused:
        assert refused.diagnostics[0].code == "GC118"
        return
    answers = {str(f.value_and_grad(**{name: 3.0, "y": 1.0})) for _ in range(4)}
    assert len(answers) == 1
    assert answers.pop().startswith("(10.0, {")


def test_a_compiled_function_replaces_itself() -> None:
    """At the second call with scalars, on the instance alone; arrays, slips and missing values still find the way."""
    f = gradcli.compile("x**2*sin(y)\n")
    other = gradcli.compile("x**2*sin(y)\n")
    first = f.value_and_grad(x=2.0, y=3.0)
    assert "value_and_grad" not in vars(f)
    assert f.value_and_grad(x=2.0, y=3.0) == first
    assert "value_and_grad" in vars(f)
    assert "value_and_grad" not in vars(other)
    assert f.value_and_grad(x=2.0, y=3.0) == first == f.value_and_grad(x=2, y=3)
    assert f.value_and_grad.__name__ == "value_and_grad"
    with pytest.raises(TypeError, match="arguments are named, by the leaves of the script"):
        f.value_and_grad(2.0, 3.0)
    with pytest.raises(gradcli.GradcliError, match="no value"):
        f.value_and_grad(x=2.0)
    with pytest.raises(gradcli.GradcliError, match="unknown leaf"):
        f.value_and_grad(x=2.0, y=3.0, z=1.0)
    with pytest.raises(gradcli.GradcliError, match="scalar"):
        f.value_and_grad(x=[1.0, 2.0], y=3.0)
    values = {f(x=2.0, y=3.0) for _ in range(4)}
    assert values == {first[0]}
    assert f(x=[1.0, 2.0], y=0.0).shape == (2,)
    assert math.isnan(f(x=math.nan, y=1.0))


def test_defaults_of_leaves_are_kept() -> None:
    f = gradcli.compile("x = 3\ny = 0.5\nx*y")
    for _ in range(4):
        assert f.value_and_grad() == (1.5, {"x": 0.5, "y": 3.0})
        assert f.value_and_grad(x=4.0) == (2.0, {"x": 0.5, "y": 4.0})


def test_values_that_shape_a_program_have_no_code() -> None:
    """Where a leaf decides how often a loop runs, another value is another program."""
    f = gradcli.compile("n = 2\ns = 0\nfor i in range(n):\n    s = s + x\ns", wrt=("x",))
    for _ in range(3):
        assert f.value_and_grad(x=1.0) == (2.0, {"x": 2.0})
    assert f.value_and_grad(x=1.0, n=5) == (5.0, {"x": 5.0})


def test_only_double_precision_and_programs_that_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    single = gradcli.compile("x*0.1", dtype="float32")
    for _ in range(3):
        assert single.value_and_grad(x=3.0)[0] != 3.0 * 0.1
    monkeypatch.setattr(emit_python, "MOST_NODES", 100)
    long = gradcli.compile("y = x\n" + "y = y + sin(x)\n" * 100 + "y")
    for _ in range(3):
        assert long(x=0.0) == 0.0
        finish_code()
    assert long._value == long._careful_value


@pytest.mark.parametrize(
    "body", ["h = sin(h*x + {})", "h, g = g*x - {}/(1 + h*h), h + x*g", "h = h*sqrt(x)\ng = g + h*{}"]
)
def test_long_programs_are_divided(body: str) -> None:
    """Code is made in a thread, in pieces that hand on what others read; what is not plain goes the careful way."""
    script = "\n".join(["h = x", "g = x", *(body.format(i % 7 + 1) for i in range(1500)), "h + g"])
    f, careful = gradcli.compile(script), gradcli.compile(script)
    points = (0.5, 0.25, -1.0, float("inf"), 1)
    expected = [CompiledScript.value_and_grad(careful, x=x) for x in points]
    for _ in range(3):
        f.value_and_grad(x=0.5)
        finish_code()
    code = f.value_and_grad.__code__
    assert code.co_filename == "<gradcli straight line>" and sum("_p" in name for name in code.co_names) > 2
    for x, (value, gradient) in zip(points, expected, strict=True):
        own = f.value_and_grad(x=x)
        assert struct.pack("dd", own[0], own[1]["x"]) == struct.pack("dd", value, gradient["x"])
