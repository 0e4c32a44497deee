"""Tapes go in; a recording that repeats what it knows of an operation has the steps of one that does not."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from gradcli.calculator.questions import gradient_question, prepare, value_question
from gradcli.execution.evaluate import Tape
from gradcli.execution.plans.recording import record
from gradcli.execution.plans.templates import Template, Templates
from gradcli.primitives import functions

OPERANDS = ["x", "y", "-x", "-y", "x + y", "-(x + y)", "x*y", "2*x", "-(2*x)", "sin(x)", "exp(x)", "1 - x", "abs(x)"]
OPERANDS += ["where(x > 0, x, y)", "x[::-1]", "sum(x) + y", "-(-x)", "x/4", "0.5", "x*(y > 0)"]


def steps(tape: Tape, dtype: str, faithful: bool = False, held: dict | None = None) -> list[tuple]:
    """A recording as plain data."""
    found = record(tape, dtype, held, faithful)
    rows = []
    for op in found.ops:
        function = op.function if isinstance(op.function, str) else getattr(op.function, "__name__", type(op.function))
        args = tuple((arg.serial, arg.shape, repr(arg.number)) for arg in op.args)
        out = (op.out.serial, op.out.shape, op.out.dtype, op.out.constant)
        rows.append((op.kind, function, args, repr(op.params) if op.kind != "call" else "", out, op.node))
    return [*rows, *((value.serial, value.shape, value.dtype) for value in found.outputs)]


def same_steps(tape: Tape, monkeypatch: pytest.MonkeyPatch, held: dict | None = None) -> None:
    for dtype in ("float64", "float32"):
        for faithful in (False, True):
            found = steps(tape, dtype, faithful, held)
            with monkeypatch.context() as patch:
                patch.setattr(Templates, "value", lambda self, node, args: None)
                assert found == steps(tape, dtype, faithful, held)


ELEMENTWISE = sorted(
    name for name, one in functions().items() if name == one.name and one.kind == "elementwise" and one.call is None
)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_each_operation_has_the_steps_of_its_impl(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arity = functions()[name].arity
    chance = random.Random(name)
    calls = [", ".join([first, *chance.choices(OPERANDS, k=arity - 1)]) for first in OPERANDS for _ in range(3)]
    calls += [", ".join([one] * arity) for one in OPERANDS]
    text = " + ".join(f"sum({name}({call}))" for call in calls)
    lowered = prepare(text, {"x": np.linspace(0.1, 0.9, 5), "y": np.linspace(0.2, 0.6, 5)})
    same_steps(value_question(lowered).tape, monkeypatch)
    same_steps(gradient_question(lowered).tape, monkeypatch)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_have_the_same_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations on what others gave, some of it many times, and with directions that are constants."""
    chance = random.Random(seed)
    known = ["x", "y"]
    lines = []
    for place in range(25):
        one, other = chance.choices(known, k=2)
        form = chance.choice(["sigmoid({})", "-{}", "tanh({})*{}", "softplus({}) - {}", "{}*{}", "{} + {}", "2*{}",
                              "logaddexp({}, {})", "where({} > {}, 1, 2)", "relu({})", "silu({})", "{}**3", "gelu({})",
                              "abs({})", "maximum({}, {})", "exp(-{}**2)", "sum({}) + {}"])  # fmt: skip
        lines.append(f"t{place} = {form.format(one, other)}")
        known.append(f"t{place}")
    text = "\n".join([*lines, f"sum({' + '.join(known[-6:])})"])
    lowered = prepare(text, {"x": np.linspace(-1, 1, 4), "y": np.linspace(-2, 1, 4)})
    tape = gradient_question(lowered).tape
    same_steps(tape, monkeypatch)
    same_steps(tape, monkeypatch, {"y": np.ones((3, 4))})


def test_operands_of_other_types_do_not_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of numbers, counts and truth values beside x, in every order."""
    sums = ["sum(y)", "sum(y > 0)", "any(y > 0)", "all(y > 0)", "max(y)"]
    forms = ["sum({}*{})", "where({}, {}, z)", "({} > {})*z", "(not {})*({} + z)"]
    text = " + ".join(form.format(*pair) for form in forms for pair in product(sums, ["z", *sums]))
    lowered = prepare(text, {"y": np.linspace(-1, 1, 4), "z": np.float64(0.5)})
    same_steps(value_question(lowered).tape, monkeypatch)
    same_steps(gradient_question(lowered).tape, monkeypatch)


def test_an_impl_is_called_once_for_operands_that_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = []
    usual = Template.filled
    monkeypatch.setattr(Template, "filled", lambda self, *rest: filled.append(self) or usual(self, *rest))
    text = "h = x\nfor i in range(50):\n    h = sigmoid(h*y + i)\nsum(h)"
    record(value_question(prepare(text, {"x": np.ones(3), "y": np.ones(3)})).tape, "float64")
    assert max(filled.count(one) for one in filled) == 49  # the first of a kind is recorded as it stands
