"""Many sweeps at once: the same Jacobians, Hessians and Laplacians as from a sweep for each entry, in small graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculator import questions
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms import derivatives
from gradcli.transforms.lifting import lifted
from tests.support.cases import cases, internal, public
from tests.support.graph_invariants import verify
from tests.support.random_programs import make
from tests.support.study import Study

NEVER = 10**9


def both(monkeypatch: pytest.MonkeyPatch, take: Any) -> tuple[Any, Any]:
    """What `take` gives at once, and with a sweep for each entry."""
    monkeypatch.setattr(derivatives, "FEW", 1)
    once = take()
    monkeypatch.setattr(derivatives, "FEW", NEVER)
    return once, take()


def assert_same(one: Any, other: Any, told: str) -> None:
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    assert one.shape == other.shape, told
    scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    assert np.allclose(one, other, rtol=1e-12, atol=1e-13 * scale, equal_nan=True), told


@pytest.mark.parametrize("name", [*public(), *internal()])
def test_jacobians_of_every_operation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and reverse, whatever the operation does with axes."""
    for case in cases(name):
        study = Study(case, 1)
        if not study.differentiable:
            continue
        point = study.point(0)
        for output in study.outputs:
            if output.type.kind != "float" or not output.shape:
                continue
            for leaf in study.leaves.values():
                if not leaf.shape or leaf.type.kind != "float":
                    continue
                for one in (output, derivatives.vjp([output], [output], [leaf])[0]):

                    def take(one: Node = one, leaf: Node = leaf) -> Node:
                        return derivatives.jacobian(one, leaf)

                    once, apart = both(monkeypatch, take)
                    found, want = Tape([once, apart]).run(point, backend="numpy")
                    assert_same(found, want, f"{case}")


SCRIPTS = (
    "f = sum(sin(x[1:]*x[:-1])) + sum(x**3)", "f = log(sum(exp(x))) + sum(x)**2", "f = sum(tanh(A@x)**2)",
    "f = sum(where(x > 0.5, x**2*x[0], exp(x)))", "f = sum(cumsum(x)**3)", "f = norm(x)*logsumexp(x)",
    "f = sum(reshape(x, (4, 3)) @ reshape(x, (3, 4)))*prod(x)", "f = max(x)*sum(x[[0, 0, 3]]**2)",
    "f = sum(sort(x)**2*x)", "f = det(reshape(x[:9], (3, 3))) + sum(x**2)", "f = sum(solve(outer(x, x) + eye(12), x)*x)",
    "f = sum(tril(outer(x, x))**2)", "f = 3*x[0] + 2", "f = sum(detach(x)*x**2)",
)  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    "asked", ["hessian(f, x)", "laplacian(f, x)", "jacobian(x**2*f, x)", "jacobian(outer(x, x)*f, x)"]
)
def test_scripts_that_ask_for_them(script: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    point = {"x": random.uniform(0.2, 1, 12)}
    if "A" in script:
        point["A"] = random.standard_normal((7, 12))
    once, apart = both(monkeypatch, lambda: gradcli.evaluate(f"{script}\n{asked}", at=point).value)
    assert_same(once, apart, script)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hessians in every leaf, branches and all."""
    program = make(seed, arrays=True)
    lowered = questions.prepare(program.text, program.values)
    (output,) = lowered.program.outputs[:1]
    for name in questions.leaf_names(lowered):
        leaf = lowered.program.leaves[name].node
        if leaf.shape:
            once, apart = both(monkeypatch, lambda leaf=leaf: derivatives.hessian(output, leaf))
            question = questions.PreparedScript(lowered, (), [once, apart])
            found, want = question.tape.run(question.values(program.values), backend="numpy")
            assert_same(found, want, program.text)


def test_the_graph_does_not_grow_with_the_entries() -> None:
    counts = []
    for size in (50, 200):
        lowered = questions.prepare("f = sum(sin(x[1:]*x[:-1]))\nhessian(f, x)", {"x": np.ones(size)})
        verify(lowered.program)
        counts.append(len(lowered.program.nodes()))
    assert counts[0] == counts[1] < 60


def test_branches_that_are_not_taken_stay_away() -> None:
    x = np.concatenate([np.zeros(5), np.linspace(0.5, 1, 5)])
    found = gradcli.evaluate("f = sum(where(x > 0, sqrt(x), x))\nhessian(f, x)", at={"x": x}).value
    assert np.isfinite(found).all()
    assert np.allclose(np.diag(found)[5:], -0.25 * x[5:] ** -1.5)


def test_a_derivative_of_a_hessian() -> None:
    x = np.linspace(0.5, 1, 10)
    found = gradcli.grad("f = sum(x**4)\nsum(hessian(f, x)**2)", at={"x": x}).gradient["x"]
    assert np.allclose(found, 2 * 12 * x**2 * 24 * x)


def test_what_cannot_be_lifted_is_told() -> None:
    lowered = questions.prepare("inv(reshape(x, (3, 3)))", {"x": np.eye(3).reshape(-1) + 0.1})
    output, leaf = lowered.program.outputs[0], lowered.program.leaves["x"].node
    with building(lowered.program.builder, reachable([output])) as builder:
        many = builder.fresh_leaf(builder.constant(0, (4, 9)).type)
        assert lifted(builder, output, {leaf: many}) is None
