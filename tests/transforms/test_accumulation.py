"""Cotangents of parts of an array: gathered into one node, with the values and the order of additions of dense sums."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import check, grad
from gradcli.base.diagnostics import Diagnostic
from gradcli.batch.json_lines import QuestionCache, answered
from gradcli.calculator.questions import gradient_question, prepare
from gradcli.graph.node import Builder, Node
from gradcli.primitives import catalogue
from gradcli.transforms import accumulation
from tests.support.graph_invariants import verify

N = 24
X = np.random.default_rng(5).normal(size=N)
A = np.random.default_rng(6).normal(size=(6, 5))

LOOPS = {
    "entries": ("s = 0\nfor i in range(24):\n    s = s + x[i]**2*(i + 1)\ns", {"x": X}),
    "backward": ("s = 1\nfor i in range(23, -1, -1):\n    s = s*cos(x[i])\ns", {"x": X}),
    "gaps": ("s = 0\nfor i in range(3, 24, 2):\n    s = s + sin(x[i])\ns", {"x": X}),
    "steps": ("s = 0\nfor i in range(23):\n    s = s + (x[i + 1] - x[i]**2)**2 + x[i]*x[i + 1]\ns", {"x": X}),
    "windows": ("s = 0\nfor i in range(22):\n    s = s + sum(x[i:i+3])**3/x[i]\ns", {"x": X}),
    "strided": ("s = 0\nfor i in range(12):\n    s = s + sum(x[i:i+10:3]**2)*exp(x[i])\ns", {"x": X}),
    "reversed": ("s = 0\nfor i in range(12):\n    s = s + sum(x[i:i+4][::-1]*[1, 2, 3, 4])\ns", {"x": X}),
    "dense after": ("s = sum(x**2)\nfor i in range(24):\n    s = s + x[i]**3\ns", {"x": X}),
    "dense before": ("s = 0\nfor i in range(24):\n    s = s + x[i]**3\ns*sum(x**2)", {"x": X}),
    "dense between": (
        "s = 0\nfor i in range(12):\n    s = s + x[i]**3\ns = s*sum(x)\nfor i in range(12):\n    s = s + sin(x[i+2])\ns",
        {"x": X},
    ),
    "matrix": ("s = 0\nfor i in range(6):\n    for j in range(5):\n        s = s + A[i, j]**(2 + i)\ns", {"A": A}),
    "rows": ("s = 0\nfor i in range(6):\n    s = s + sum(A[i]**2)*A[i, 2]\ns", {"A": A}),
    "columns": ("s = 0\nfor j in range(5):\n    s = s + sum(A[:, j]**3)*sum(A[:2, j])\ns", {"A": A}),
    "branches": ("s = 0\nfor i in range(24):\n    s = s + where(x[i] > 0, x[i]**2, 3*x[i])\ns", {"x": X}),
    "untaken": ("s = 0\nfor i in range(24):\n    s = s + where(x[i] > 0, x[i]**1.5, 0)\ns", {"x": X}),
    "roots": ("h = sqrt(x)\ns = 0\nfor i in range(24):\n    s = s + where(x[i] > 0, h[i], 0)\ns", {"x": X.clip(0)}),
    "branches after": (
        "h = sqrt(x)\ns = sum(where(x > 0.5, h, 0))\nfor i in range(24):\n    s = s + where(x[i] > 0, h[i]**3, 0)\ns",
        {"x": X.clip(0)},
    ),
    "branches between": (
        "h = sqrt(x)\ns = 0\nfor i in range(20):\n    s = s + where(x[i] > 0, sum(h[i:i+3]), h[i])\ns + sum(h)",
        {"x": X**2},
    ),
    "named": ("h = x**2\ns = 0\nfor i in range(24):\n    s = s + h[i]*x[23 - i]\ns", {"x": X}),
}  # fmt: skip


def gradients(script: str, at: dict[str, Any]) -> tuple[list[Any], list[Node]]:
    lowered = prepare(script, at)
    question = gradient_question(lowered)
    verify(lowered.program.with_outputs(question.tape.outputs))
    return question.run(question.values(at), "auto", "float64")[1:], question.tape.nodes


@pytest.mark.parametrize("name", LOOPS)
def test_every_bit_is_that_of_dense_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, at = LOOPS[name]
    found, _ = gradients(script, at)
    monkeypatch.setattr(accumulation, "is_part", lambda flow: False)
    dense, _ = gradients(script, at)
    for one, other in zip(found, dense, strict=True):
        assert np.isfinite(one).all()
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in ("roots", "branches after")])  # kinks at 0
def test_plans_and_second_derivatives_agree(name: str) -> None:
    script, at = LOOPS[name]
    f = gradcli.compile(script)
    first = grad(script, at=at).gradient
    for _ in range(3):
        _, again = f.value_and_grad(**at)
        assert all(np.allclose(again[leaf], first[leaf], rtol=1e-12, atol=1e-13) for leaf in at)
    (leaf,) = at
    second = f.hessian(**at).hessian[leaf][leaf].reshape(at[leaf].size, -1)
    assert np.allclose(second, second.T, rtol=1e-9, atol=1e-9)
    way = np.random.default_rng(1).normal(size=at[leaf].shape)
    ends = [grad(script, at={leaf: at[leaf] + h * way}).gradient[leaf] for h in (1e-5, -1e-5)]
    assert np.allclose(second @ way.reshape(-1), (ends[0] - ends[1]).reshape(-1) / 2e-5, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["entries", "windows", "matrix", "dense between"])
def test_oracles_agree(name: str) -> None:
    script, at = LOOPS[name]
    report = check(script, at={leaf: np.round(value * 64) / 64 for leaf, value in at.items()})
    assert report.checks and all(one.passed and one.verdict != "INCONCLUSIVE" for one in report.checks), report


@pytest.mark.parametrize(
    "term", ["x[i]**2", "where(x[i] > 0, x[i]**2, 3*x[i])", "x[i]*max(x[i], 0)", "sum(x[i:i+2]**3)"]
)
def test_a_loop_is_linear(term: str) -> None:
    counts = []
    for n in (100, 400):
        _, nodes = gradients(f"s = 0\nfor i in range({n} - 1):\n    s = s + {term}\ns", {"x": np.ones(n)})
        counts.append(sum(node.type.size for node in nodes))
    assert counts[1] < 5 * counts[0]  # quadratic: 15


def test_few_parts_stay_as_they_are() -> None:
    _, nodes = gradients("x[0]*x[1] + x[2]*x[3]*x[4] + sum(x[1:])", {"x": X})
    assert not any(node.primitive.name == "concat" for node in nodes)


def test_single_entries_come_out_exactly() -> None:
    weights = [-0.0, np.inf, -np.inf, np.nan, 1e-320, 5.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0]
    script = "s = 0\nfor i in range(12):\n    s = s + x[i]*w[i]\ns"
    (found,), _ = gradients(f"const w = {[0] * 12}\n{script}", {"x": np.ones(12), "w": np.array(weights)})
    assert np.array_equal(found, weights, equal_nan=True)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (2, 3, 4)])
def test_random_parts(shape: tuple[int, ...]) -> None:
    """Any parts with any steps, as one node and one by one."""
    from gradcli.execution.evaluate import evaluate

    random = np.random.default_rng(len(shape))
    for _ in range(60):
        builder = Builder(catalogue())
        places, parts, values = [], [], {}
        for number in range(int(random.integers(1, 14))):
            start, step, size = [], [], []
            for n in shape:
                count, stride = int(random.integers(1, n + 1)), int(random.choice([1, 1, 1, 2, -1]))
                count = min(count, (n - 1) // abs(stride) + 1)
                reach = (count - 1) * abs(stride)
                low = int(random.integers(0, n - reach))
                start.append(low if stride > 0 else low + reach)
                step.append(stride)
                size.append(count)
            leaf = builder.leaf(f"v{number}", tuple(size))
            values[f"v{number}"] = random.normal(size=size)
            places.append((leaf, tuple(start), tuple(step), shape))
            parts.append(builder.call("unslice", leaf, shape=shape, start=tuple(start), step=tuple(step)))
        builder.simplifying = True
        whole = accumulation.gathered(builder, places)
        assert whole is not None
        builder.simplifying = False
        dense = parts[0]
        for part in parts[1:]:
            dense = builder.call("add", dense, part)
        found, expected = evaluate([whole, dense], values)
        assert np.array_equal(found, expected)


def test_scripts_are_freed_without_the_collector() -> None:
    """A prepared script is part of no cycle: in a stream of scripts nothing of ours waits for the collector."""
    lines = [
        json.dumps({"id": i, "command": command, "script": f"y = x*{i}\nif n > 2:\n    y = y**n\nsin(y)", "at": at})
        for i in range(4)
        for command, at in (("grad", {"x": 1.5, "n": 3}), ("hessian", {"x": 0.5, "n": 4}), ("eval", {"x": 2, "n": 1}))
    ]
    assert unreachable(lambda: setattr(cycle := Knot(), "itself", cycle)) == [Knot]

    def answer() -> None:
        for line in lines:
            assert not isinstance(answered(line, 1, QuestionCache()).outcome, Diagnostic)

    answer()
    assert unreachable(answer) == []


class Knot:
    """An object that only the collector can free, when it is made to hold itself."""


def unreachable(run: Callable[[], object]) -> list[type]:
    """The types of the objects of this package and of this file that only the collector frees after a call."""
    gc.collect()
    gc.disable()
    try:
        run()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [getattr(thing, "__module__", None) or type(thing).__module__ for thing in gc.garbage]
        return [
            type(thing) for thing, kind in zip(gc.garbage, kinds, strict=True) if kind.startswith(("gradcli", __name__))
        ]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
