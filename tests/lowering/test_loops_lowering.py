"""Loops of scripts as nodes of the graph: what they mean is what their iterations mean when they are written out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import evaluate
from gradcli.graph.building import building
from gradcli.graph.node import LEAF, is_reader, reachable
from gradcli.language.limits import Limits
from gradcli.language.parser import parse
from gradcli.lowering import Lowered, LoweringMode, lower
from gradcli.lowering.iteration import loops
from gradcli.transforms.derivatives import grad
from gradcli.transforms.unroll import unrolled
from tests.support import loop_scripts
from tests.support.rows import all_rows

SAMPLES = Path(__file__).parents[2] / "samples"


def lowered(text: str, how: str, at: Any = None, **limits: int) -> Lowered | list[str]:
    """A script as a program, or its errors."""
    try:
        return lower(parse(text), at=at, mode=LoweringMode(loops=how), limits=Limits(**limits))
    except GradcliError as problem:
        return [f"{one.code} {one.message} {one.span}" for one in problem.diagnostics]


def nodes_of(found: Lowered) -> list[int]:
    """How often the loops of a program run, that are nodes of it."""
    return sorted({node.params["count"] for node in reachable(found.program.outputs) if is_reader(node)})


def alike(text: str, at: Any = None, *, gradients: bool = False) -> list[int]:
    """Compare the loops as nodes with the iterations written out: values to the bit, errors, notes and what is kept of names."""
    node, unroll = (lowered(text, how, at) for how in ("node", "unroll"))
    if isinstance(node, list) or isinstance(unroll, list):
        assert node == unroll
        return []
    assert not nodes_of(unroll)
    outputs = node.program.outputs
    with building(node.program.builder, reachable(outputs)) as builder:
        iterations = unrolled(builder, outputs)
    values = [
        evaluate(nodes, node.values)
        for nodes in ([iterations[one] for one in outputs], unroll.program.outputs, outputs)
    ]
    assert [np.asarray(x).tobytes() for x in values[0]] == [np.asarray(x).tobytes() for x in values[1]]
    if gradients:  # a loop may be run in another namespace, with other last digits
        for mine, other in zip(values[2], values[1], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)
    for name in ("text", "wrt", "several", "expect"):
        assert getattr(node, name) == getattr(unroll, name)
    assert [(one.code, one.message, one.span) for one in node.notes] == [
        (one.code, one.message, one.span) for one in unroll.notes
    ]
    assert list(node.program.leaves) == list(unroll.program.leaves)
    for name in node.program.leaves:
        assert node.uses.get(name) == unroll.uses.get(name)
    assert node.program.statics == unroll.program.statics
    assert [leaf.const for leaf in node.program.leaves.values()] == [
        leaf.const for leaf in unroll.program.leaves.values()
    ]
    closed(node)
    if gradients and not node.program.outputs[0].shape:
        slopes = []
        for one in (node, unroll):
            output, leaves = one.program.outputs[0], one.program.leaves
            slopes.append(evaluate(grad(output, [leaves[name].node for name in one.wrt]), one.values))
        for mine, other in zip(*slopes, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    return nodes_of(node)


def closed(found: Lowered) -> None:
    """No leaf of an iteration is left outside of bodies, and the numbers of nodes grow from arguments to results."""
    claims = [side for claim in found.claims for side in (claim.left, claim.right)]
    for node in reachable([*found.program.outputs, *claims]):
        assert node.primitive is not LEAF or node.params["name"] in found.program.leaves
        assert all(arg.serial < node.serial for arg in node.args)


HEAD = "a = 1.5\nb = 0.7\nv = linspace(0, 1, 60)\nX = reshape(arange(3600), (60, 60))/3600\n"

NODES: list[tuple[str, list[int]]] = [
    ("x = a\nfor i in range(50): x = x + 0.1*a*x*(1 - x/3)\nx", [49]),
    ("x = a\nfor i in range(50): x = x + 0.1*i*sin(x)\nx", [49]),
    ("x = 0\nfor i in range(60): x = x*0.9 + v[i]*a\nx", [59]),
    ("x = 0\nfor i in range(59, 0, -1): x = x*0.9 + v[i]*a + v[59 - i]\nx", [58]),
    ("x = 0\nfor i in range(40): x = x*a*0.5 + v[i - 1] + v[-i]\nx", [39]),
    ("x = 0\nfor i in range(3, 40): x = x*a*0.5 + v[mod(i, 7)] + v[floor(i/2)]\nx", [36]),
    ("x = b\nfor i in range(50): x = tanh(x)*X[i, 3] + sum(X[:, i])*a + X[i, i] + X[i, 59 - i]\nx", [49]),
    ("x = a*v\nfor i in range(40): x = 0.5*x + X[i] + X[i:i + 1, 2]\nsum(x)", []),
    ("x, y = a, b\nfor i in range(40): x, y = y, 0.9*x + b\nx*y", [39]),
    ("s = 0\nfor i in range(40): s = s + a*v\nsum(s)", [39]),
    ("s, t = 0, 0\nfor i in range(40):\n  s = t + b\n  t = s + v*a\nsum(s)", [38]),
    ("x = a\nfor i in range(40):\n  y = 2*x\n  x = sin(y)\nx + i + y", [39]),
    ("x = a\nfor i in range(40):\n  y = 2\n  x = x/y\nx + y + sum(ones(y))", [39]),
    ("x = a\nfor i in range(80):\n  if i < 40: x = x*b\n  else: x = sin(x)\nx", [39]),
    ("x = a\nfor i in range(80):\n  if i == 0 or i > 70: x = x*b\n  elif i != 45: x = sin(x)\n  else: x = 2*x\nx", [44]),
    ("x = a\nfor i in range(80):\n  if i <= 39: x = x*b\n  elif i >= 60: x = sin(x)\nx", [39]),
    ("x, y = a, b\nfor i in range(80):\n  if i < 40: x = x*y\n  else: x = sin(y)\n  y = cos(x)\nx", [39]),
    ("x = a\nfor i in range(80):\n  if mod(i, 2) == 0: x = x*b\n  else: x = sin(x)\nx", []),
    ("x = a\nfor i in range(40):\n  for j in range(34): x = x*0.99 + b*j + i*X[i, j]\nx", [33, 39]),
    ("x = a\nfor i in range(40):\n  for j in range(i): x = x*0.9 + b\nx", list(range(31, 39))),
    ("x = a\nfor i in range(40):\n  for j in range(3): x = x*0.9 + b*v[i + j]\nx", [39]),
    ("x = a\nfor i in range(40): x = x**i + b\nx", []),
    ("x, k = a, 1\nfor i in range(40):\n  k = k + 1\n  x = sin(x)**k\nx", []),
    ("x, k = a, b\nfor i in range(40):\n  k = k + 1\n  x = sin(x)**k\nx", [39]),
    ("x, k = a, 0\nfor i in range(40):\n  k = k + 1/10\n  x = sin(x)\nx*sum(ones(k))", [39]),
    ("x, k = a, 0\nfor i in range(40):\n  k = k + 1\n  x = sin(x) + v[k]\nx", []),
    ("g = 0\nfor i in range(40): g = g + i*grad(sin(a*b), a)\ng", [39]),
    ("g = 0\nfor i in range(40): g = g + grad(sin(a*v[i]), a)\ng", [39]),
    ("g, x = 0, b\nfor i in range(40):\n  x = sin(a*x)\n  g = g + grad(x, a)\ng", []),
    ("def f(p, t): return grad(sin(p*t)*b, p)\nx = a\nfor i in range(40): x = x - 0.1*f(x, v[i])\nx", [39]),
    ("def f(p):\n  q = p*a\n  return q, sin(q)\nx = b\nfor i in range(40): x, y = f(x)\nx + y", [39]),
    ("def f(n):\n  x = b\n  for i in range(n): x = sin(x) + a\n  return x\nf(40) + f(50)", [39, 49]),
    ("k = a\ndef f(x): return x*k\nx = b\nfor i in range(40):\n  k = 0.9*k\n  x = f(x)\nx", [39]),
    ("def f(x):\n  return x*x\ndef f.vjp(x, ct): return (2*x*ct,)\nx = b\nfor i in range(40): x = f(sin(x))\nx*a", [39]),
    ("x = a\nfor i in range(40): x = x + sum(randn(3))\nx", []),
    ("x = a\nfor i in range(40): x = x + sum(randn(3, seed=2))\nx", []),
    ("x = a\nfor i in range(40): x = concatenate([[b], v])[i]*x\nx", [39]),
    ("y = [a]\nfor i in range(40): y = concatenate([y, [b*i]])\nsum(y)", []),
    ("x = a\nfor i in range(40): x = sin(x)", [39]),
    ("x = a\nfor i in range(40): x, y = sin(x), b", [39]),
    ("x = a\nfor i in range(40):\n  x = sin(x)\n  x + i\n", []),
    ("x = a\nfor i in range(40):\n  y = sin(x)\n  x = y*b\nassert grad(x, b) == grad(x, b)\nx", [39]),
    ("x = a\nfor i in range(40):\n  x = x + i\n  i = 2*i\nx + i", [39]),
    ("def f(x):\n  for i in range(40):\n    x = x*b\n    if i > 35: return x\n  return x\nf(a)", [35]),
    ("i = [2, 1, 0]\nfor j in range(20): i = concatenate([i, [1, 2]])\nx = a\nfor t in range(40): x = x + v[i[t]]\nx", [39]),
    ("x = a*v\nfor i in range(40): x = sort(x)[::-1]*0.9 + x[3]\nsum(x)", [39]),
    ("x = a\nflag = x > 1\nfor i in range(40):\n  flag = not flag\n  x = where(flag, x*b, x + b)\nx", [39]),
]  # fmt: skip


@all_rows(("text", "counts"), NODES)
def test_a_loop_is_its_iterations(text: str, counts: list[int]) -> None:
    assert alike(HEAD + text + "\n", gradients=True) == counts


@pytest.mark.parametrize("loop", NODES[2:10])
def test_loops_in_loops_that_are_written_out(loop: tuple[str, list[int]]) -> None:
    """An attempt at the outer loop is thrown away with all that the inner one left."""
    lines = loop[0].split("\n")
    body = "\n".join("  " + line for line in lines[:-1])
    alike(f"{HEAD}r = 0\nfor o in range(34):\n{body}\n  r = r + b**o*{lines[-1]}\nr\n")


@pytest.mark.parametrize(
    "text",
    [
        "x = a\nfor i in range(100): x = x*v[i]\nx",
        "x = a\nfor i in range(40): x = x*v[i - 70]\nx",
        "x = a\nfor i in range(40): x = x*v[i/2]\nx",
        "x = a\nfor i in range(40): x = x*X[i, i + 30]\nx",
        "x = a\nfor i in range(40): x = x @ [1, 2]\nx",
        "x = a\nfor i in range(40):\n  if i > 35: y = unknown(x)\n  x = x*b\nx",
        "x = a\nfor i in range(40):\n  if i > 35: x = x + z\n  z = 2\nx",
        "x = a\nfor i in range(40):\n  if x > 2: x = b\nx",
        "const x = 2\nfor i in range(40): y = grad(x, x)\ny",
        "for i in range(40):\n  if i > 3: x = a*q\n  else: q = b\nx",
    ],
)
def test_errors_are_those_of_the_iterations(text: str) -> None:
    alike(HEAD + text + "\n")


@pytest.mark.parametrize(
    "path",
    [one for one in sorted(SAMPLES.rglob("*.grad")) if re.search(r"^ *for ", one.read_text(), re.M)],
    ids=lambda one: one.stem,
)
def test_samples(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "ten million" not in path.read_text() and path.stem != "GC505_loop":
        monkeypatch.setattr(loops, "FEWEST", 4)
        monkeypatch.chdir(path.parent)
        alike(path.read_text())


@pytest.mark.parametrize("seed", [*range(14), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(14, 400))])
def test_random_scripts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FEWEST", 4)
    program = loop_scripts.make(seed)
    alike(program.text, program.values)


# --- which loops become nodes, and what they cost ------------------------------------------------------------


def test_only_long_loops_become_nodes() -> None:
    for iterations, counts in ((40, []), (4_000, []), (20_000, [19_999])):
        found = lowered(f"x = 0.3\ny = x\nfor i in range({iterations}): y = sin(y*x)\ny", "auto")
        assert not isinstance(found, list) and nodes_of(found) == counts
    found = lowered("x = 0.3\ny = x\nfor i in range(10**6): y = sin(y*x)\ny", "auto")
    assert not isinstance(found, list)
    assert len(nodes_of(found)) == 1
    assert found.program.builder.count < 300


def test_iterations_inside_of_iterations_count_together() -> None:
    found = lowered("x = 0.3\ny = x\nfor i in range(1000):\n  for j in range(1000): y = sin(y*x)\ny", "auto")
    assert not isinstance(found, list)
    assert found.program.builder.count < 5000


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(10**12): s = s + x",
        "for i in range(10**7): s = s + x*sin(s + x)*cos(s) - exp(s - x)*s*s*s*s*s*s",
        "for i in range(10**6):\n  for j in range(1000): s = s + sin(x*i*j)",
        "for i in range(0, 10**300): s = s + 1",
    ],
)
def test_too_much_work_is_refused_at_once(text: str) -> None:
    """Counted in nodes: no more than some iterations are built."""
    errors = lowered(f"x = 2\ns = x\n{text}\ns", "auto", nodes=10_000)
    assert isinstance(errors, list)
    assert [one[:5] for one in errors] == ["GC505"]
    assert "steps are allowed" in errors[0] or "nodes" in errors[0]


def test_the_limit_of_work_counts_steps() -> None:
    text = "x = 2\ns = x\nfor i in range(101): s = s + sin(x*s)\ns"
    assert not isinstance(lowered(text, "node", work=300), list)
    assert isinstance(lowered(text, "node", work=299), list)
    assert not isinstance(lowered(text, "unroll", work=299), list)


def test_a_loop_that_cannot_be_traced_has_the_limit_of_nodes() -> None:
    errors = lowered("x = 2\ns = x\nfor i in range(10**7): s = s + x**i\ns", "auto")
    assert isinstance(errors, list)
    assert errors[0].startswith("GC505 the loop would run 10,000,000 times; 1,000,000 nodes are allowed")


# --- an attempt that is thrown away leaves nothing --------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text, counts in NODES if not counts])
def test_nothing_is_left_of_an_attempt(text: str) -> None:
    """Nodes, their numbers and their other places are those of iterations that were never traced."""
    found = [lowered(HEAD + text + "\n", how) for how in ("node", "unroll")]
    node, unroll = found
    assert not isinstance(node, list) and not isinstance(unroll, list)
    described = [[repr(one) for one in reachable(each.program.outputs)] for each in (node, unroll)]
    assert described[0] == described[1]
    assert node.program.builder.count == unroll.program.builder.count
    assert node.program.builder.data.keys() == unroll.program.builder.data.keys()
    spans = [{repr(one): spans for one, spans in each.program.other_spans.items()} for each in (node, unroll)]
    assert spans[0] == spans[1]


def test_spans_of_a_body_are_those_of_the_iteration() -> None:
    found = lowered("x = 0.3\ny = x\nfor i in range(40):\n  y = sin(y*x) + cos(y*x)\ny", "node")
    assert not isinstance(found, list)
    (last,) = [node for node in reachable(found.program.outputs) if is_reader(node)]
    steps = {step.primitive.name: step for step in last.params["body"].steps}
    assert last.span is not None and last.span.line == 3
    assert {steps[name].span.line for name in ("sin", "mul", "add")} == {4}  # type: ignore[union-attr]
    assert [span.column for span in found.program.other_spans[steps["mul"]]] == [22]


# the inner loop ends in its second carry, which reads the first one twice: as text it would double with each iteration
CARRIED_BY_TWO = """\
x = 0.3
s = x
t = 0
for i in range(33):
    for j in range(33):
        t = 0.3*t + s*i/40 + x*j/33
        s = sin(t)*s
    s = s + t*0.01
s + t
"""


def test_the_code_of_a_loop_does_not_grow_with_the_iterations_of_a_loop_inside() -> None:
    alike(CARRIED_BY_TWO, gradients=True)
