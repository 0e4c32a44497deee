"""Scripts that call a function again go in: equal calls are looked up where nothing else could come of them."""

from __future__ import annotations

import random
import time
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

import gradcli
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.lowering.constructs import remembered_calls

functions = import_module("gradcli.lowering.constructs.functions")


def described(script: str, at: dict | None = None) -> tuple:
    """Everything that lowering gives, as plain data: nodes with their places, notes, other places, errors."""
    try:
        found = lower(parse(script), at=at)
    except gradcli.GradcliError as problem:
        return tuple((one.code, one.message, one.span, one.labels, one.help) for one in problem.diagnostics)
    nodes = [
        (n.serial, n.primitive.name, [arg.serial for arg in n.args], repr(n.params), n.type, n.span)
        for n in found.program.nodes()
    ]
    others = sorted((node.serial, spans) for node, spans in found.program.other_spans.items())
    notes = [(note.code, note.message, note.span) for note in found.notes]
    return nodes, others, notes, found.uses, found.wrt, found.program.builder.count, found.text


def runs(script: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions whose bodies are run, in order."""
    met: list[str] = []
    usual = functions.run_body

    def counted(lowerer, function, values, span):
        met.append(function.name.id)
        return usual(lowerer, function, values, span)

    monkeypatch.setattr(functions, "run_body", counted)
    lower(parse(script))
    monkeypatch.undo()
    return met


# script, and how often the body of f is run
CALLS = [
    ("def f(v, i): return v[i]*2\nx = [1, 2]\nf(x, 0) + f(x, 1) + f(x, 0)", 2),
    ("def f(v): return v*2\nx = 0.5\ns = 0\nfor i in range(9):\n    s = s + f(x)\ns", 1),
    ("def f(v): return v*k\nconst k = 3\nx = 0.5\nf(x) + f(x)", 1),
    ("def f(v): return g(v) + g(v)\ndef g(v): return v*pi\nx = 0.5\nf(x) + f(x)", 1),
    # a name outside that has another value by then
    ("def f(v): return v*k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    ("def f(v): return v*i\nx = 0.5\ns = 0\nfor i in range(3):\n    s = s + f(x)\ns", 3),
    ("def f(v): return g(v)\ndef g(v): return v*k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    # the first call makes z a leaf
    ("def f(v): return v*z\nx = 0.5\nf(x) + f(x) + f(x)", 2),
    # an own name that is read before it is assigned, or that only a branch assigns, is one outside until then
    ("def f(v):\n    t = k*v\n    k = 1\n    return t*k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    ("def f(v):\n    if 0 > 1:\n        k = 2\n    return v*k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    ("def f(v):\n    for j in range(0):\n        k = 2\n    return v*k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    # what makes something new at every call
    ("def f(v): return v*randn(2)\nx = 0.5\nsum(f(x) - f(x))", 2),
    ("def f(v): return v*g(v)\ndef g(v): return randn(2)\nx = 0.5\nsum(f(x) - f(x))", 2),
    ("def f(v): return grad(v**3, v)\nx = 0.5\nf(x) + f(x)", 2),
    ("def f(v): return g(v)\ndef g(v): return v*v\ndef g.vjp(v, ct): return (2*v*ct,)\nx = 0.5\nf(x) + f(x)", 2),
    # n becomes a constant between the calls, which makes another power of it
    ("def f(v, n): return v**n\nx = 0.5\nn = 2\na = f(x, n)\nb = zeros(n)\na + f(x, n) + sum(b)", 2),
    ("def f(v, s): return v[s]\nx = [1, 2, 3]\nsum(f(x, [0, 1]) + f(x, [0, 1]))", 1),
    # names outside that are read in every other place: before +=, by keyword, as a bound, as a condition
    ("def f(v):\n    k += v\n    return k\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    ("def f(v): return g(v, b=k)\ndef g(v, b): return v*b\nx = 0.5\nk = x\na = f(x)\nk = x*x\na + f(x)", 2),
    ("def f(v):\n    for i in range(k):\n        v = v*v\n    return v\nx = 0.5\nk = 0\na = f(x)\nk = 2\na + f(x)", 2),
    ("def f(v):\n    if k > 1:\n        return v*v\n    return v\nx = 0.5\nk = 0\na = f(x)\nk = 2\na + f(x)", 2),
    # a rule is simplified as it is made; what it calls is not for others
    ("def f(v): return v*1\ndef g(v): return v*v\ndef g.vjp(v, ct): return (f(v)*ct,)\nx = 0.5\nb = grad(g(x), x)\nf(x)*b", 3),
    # two names of one value, each with its place
    ("def f(v):\n    return v*v\nx = 0.5\na = f(x)\nb = f(x)\ny = a + 3*b\ngrad(y, a)*grad(y, b)", 1),
]  # fmt: skip


@pytest.mark.parametrize(("script", "count"), CALLS)
def test_bodies_are_run_once_for_equal_calls(script: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs(script, monkeypatch).count("f") == count


@pytest.mark.parametrize("script", [script for script, _ in CALLS])
def test_the_program_is_that_of_every_call_made(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = described(script)
    monkeypatch.setattr(remembered_calls, "key_of", lambda lowerer, name, values: None)
    assert found == described(script)


def random_script(chance: random.Random) -> str:
    """Functions that call each other and read names outside, in a loop that changes some of them."""
    names = ["x", "k", "u", "i"]
    lines = ["x = 0.5", "u = [1, 2, 3]", "k = x", "s = 0"]
    for place in range(chance.randint(1, 4)):
        own = ["a", "b", *(names if chance.random() < 0.7 else [])]
        body = []
        for _ in range(chance.randint(0, 2)):
            target = chance.choice(["t", "k", "a"])
            body.append(f"    {target} = {chance.choice(own)} + {chance.choice(own)}")
            own.append(target)
        calls = (
            [f"f{chance.randint(0, place - 1)}({chance.choice(own)}, {chance.choice(own)})"] if place else ["sin(a)"]
        )
        body.append(f"    return {chance.choice(own)}*{chance.choice([*own, *calls])} + {chance.choice(calls)}")
        lines += [f"def f{place}(a, b):", *body]
    count = place + 1
    inner = [
        f"    s = s + f{chance.randrange(count)}({chance.choice(names)}, {chance.choice(names)})" for _ in range(3)
    ]
    if chance.random() < 0.5:
        inner.insert(chance.randrange(4), f"    k = {chance.choice(['x*k', 'x', 'x + i'])}")
    return "\n".join([*lines, "for i in range(4):", *inner, "sum(s)"])


@pytest.mark.parametrize("seed", range(60))
def test_random_scripts_lower_as_if_every_call_were_made(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    script = random_script(random.Random(seed))
    found = described(script)
    monkeypatch.setattr(remembered_calls, "key_of", lambda lowerer, name, values: None)
    assert found == described(script)


def test_calls_that_double_are_looked_up() -> None:
    lines = ["def f0(a): return sin(a)", *(f"def f{i}(a): return f{i - 1}(a) + f{i - 1}(a)" for i in range(1, 40))]
    start = time.process_time()
    assert gradcli.grad("\n".join([*lines, "x = 0.5", "f39(x)"])).gradient["x"] > 0
    assert time.process_time() - start < 5


def test_a_function_that_has_become_a_value_is_no_function_any_more() -> None:
    """An equal call before that does not hide the error."""
    script = "def f(v): return g(v)\ndef g(v): return v*v\nx = 0.5\na = f(x)\ng = 2*x\na + f(x)"
    with pytest.raises(gradcli.GradcliError, match="`g`"):
        lower(parse(script))


def test_a_long_loop_may_repeat_a_call() -> None:
    """More equal calls than may be made to no effect."""
    script = f"def pick(v, i): return v[i]\nx = [0.5, 2]\ns = 0\nfor i in range({functions.MOST_IDLE + 10}):\n"
    assert gradcli.grad(script + "    s = s + pick(x, 0)\ns").gradient["x"].tolist() == [functions.MOST_IDLE + 10, 0]


def test_no_more_than_so_many_calls_are_kept() -> None:
    state: Any = SimpleNamespace(known_calls={}, builder=SimpleNamespace(span=None))
    most = remembered_calls.MOST_KEPT
    for number in range(3 * most):
        remembered_calls.keep(state, number, number)
        assert len(state.known_calls) <= most
    assert state.known_calls[3 * most - 1] == (3 * most - 1, None)
