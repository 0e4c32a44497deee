"""Comprehensions, generators and append: their values and gradients, and that all ways to collect agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator import evaluate, grad
from gradcli.execution.evaluate import evaluate as run
from gradcli.graph.building import building
from gradcli.graph.loop import readers_by_loop
from gradcli.graph.node import reachable
from gradcli.language import parse, parse_expression, unparse
from gradcli.language import syntax as s
from gradcli.lowering import LoweringMode, lower
from gradcli.transforms import derivatives
from tests.support.rows import all_rows

LOOP = "path = {start}\nfor i in range({n}):\n    path.append({item})\n"

# A script with the leaf x, its value, and the gradient of the sum of its entries by x.
FORMS: list[tuple[str, Any, Any]] = [
    ("x = 2.0\n[x**i for i in range(4)]", [1, 2, 4, 8], 17),
    ("x = 2.0\n[x*i for i in range(5, 0, -2)]", [10, 6, 2], 9),
    ("x = 2.0\n[x for i in range(0)]", [], 0),
    ("x = [1.0, 2, 3]\n[v**2 for v in x]", [1, 4, 9], [2, 4, 6]),
    ("x = [[1.0, 2], [3, 4]]\n[row[0]*row[1] for row in x]", [2, 12], [[2, 1], [4, 3]]),
    ("x = [[1.0, 2], [3, 4]]\n[2*row for row in x]", [[2, 4], [6, 8]], [[2, 2], [2, 2]]),
    ("x = 2.0\n[x*v for v in (3, 4)]", [6, 8], 7),
    ("x = 2.0\n[[x*i*j for j in range(3)] for i in range(2)]", [[0, 0, 0], [0, 2, 4]], 3),
    ("x = 2.0\n[x*i + j for i in range(2) for j in range(i + 1)]", [0, 2, 3], 2),
    ("x = 2.0\n[x*i for i in range(6) if i > 1 if i != 3]", [4, 8, 10], 11),
    ("x = 2.0\ni = 3*x\n[i for i in range(2)]\ni", 6, 3),
    ("x = 2.0\ni = 2*x\ndef f(a): return a*i\n[f(i) for i in range(3)]", [0, 4, 8], 6),
    ("x = [1.0, 2]\n[grad(sin(v), v) for v in x]", np.cos([1, 2]), -np.sin([1, 2])),
    ("x = 3.0\nsum(x**i for i in range(4))", 40, 34),
    ("x = [1.0, 2]\nsum(x*i for i in range(4))", [6, 12], [6, 6]),
    ("x = 2.0\nmean(x*i for i in range(3)) + max(x*i for i in range(3)) - min(i*x for i in range(1, 3))", 4, 2),
    ("x = 2.0\nprod(x + i for i in range(3))", 24, 26),
    ("x = 2.0\nany(i > 1 for i in range(3))*x + all(i > 1 for i in range(3))", 2, 1),
    ("x = 2.0\nconcatenate([x*ones(i) for i in range(3)])", [2, 2, 2], 3),
    ("x = 2.0\na, b = [x*i for i in range(1, 3)]\na*b", 8, 8),
    ("x = 2.0\npath = []\npath", [], 0),
    ("x = 2.0\n" + LOOP.format(start="[]", n=3, item="x**i") + "path", [1, 2, 4], 5),
    ("x = 2.0\n" + LOOP.format(start="[x, 1]", n=2, item="path[-1]*path[i]") + "path", [2, 1, 2, 2], 3),
    ("x = 2.0\n" + LOOP.format(start="[i*x for i in range(2)]", n=2, item="x*len(path)") + "path", [0, 2, 4, 6], 6),
    ("x = 2.0\n" + LOOP.format(start="[x]", n=2, item="sum(path)") + "path", [2, 2, 4], 4),
    ("x = [1.0, 2]\n" + LOOP.format(start="[]", n=2, item="x*(i + 1)") + "path[1, 0] + path[0][1]", 4, [2, 1]),
    ("x = 2.0\npath = []\nfor i in range(4):\n    if i > 1:\n        path.append(i*x)\npath", [4, 6], 5),
    ("x = 2.0\nrows = []\nfor i in range(2):\n    row = []\n    for j in range(2): row.append(x*i + j)\n"
     "    rows.append(row)\nrows", [[0, 1], [2, 3]], 2),
    ("x = 2.0\ndef f(a):\n    out = []\n    for i in range(3): out.append(a**i)\n    return out\nf(x) + f(1)",
     [2, 3, 5], 5),
    ("x = 2.0\npath = [x, 2*x]\nsum(p**2 for p in path)", 20, 20),
    ("x = 2.0\n" + LOOP.format(start="[x]", n=2, item="path[-1]*x") + "y = sum(path**2)\ngrad(y, path)", [4, 8, 16], 34),
    ("x = 2.0\n" + LOOP.format(start="[x]", n=1, item="x**2")
     + "s = 0\nfor i in range(2): s = s + path[i]**2\ngrad(s, path)", [4, 8], 10),
]  # fmt: skip


@all_rows(("script", "value", "slope"), FORMS)
def test_forms(script: str, value: Any, slope: Any) -> None:
    found = evaluate(script).value
    assert np.shape(found) == np.shape(value)
    np.testing.assert_allclose(found, value, rtol=1e-14)
    *above, last = script.split("\n")
    if np.size(value):
        total = "\n".join([*above, f"sum({last})"])
        np.testing.assert_allclose(grad(total).gradient["x"], slope, rtol=1e-14)


# A script, the code of its error, where it is, and where the second place is.
REFUSED: list[tuple[str, str, tuple[int, int], tuple[int, int] | None]] = [
    ("x = 2\nx.append(1)\nx", "GC215", (2, 1), (1, 1)),
    ("x = 2\ny = zeros(3)\nfor i in range(2): y.append(x)", "GC215", (3, 20), (2, 1)),
    ("x = 2\nq.append(x)", "GC215", (2, 1), None),
    ("def f(a):\n    a.append(1)\n    return a\nf(x)", "GC215", (2, 5), None),
    ("path = []\ndef f(a):\n    path.append(a)\n    return a\npath.append(1)\nf(x)", "GC215", (3, 5), None),
    ("path = []\npath.append(x)\nq = path\npath.append(x)", "GC215", (4, 1), (3, 1)),
    ("path = []\na, b = path, x\npath.append(x)", "GC215", (3, 1), (2, 1)),
    ("row = [x]\nrows = []\nrows.append(row)\nrow.append(x)", "GC215", (4, 1), (3, 1)),
    ("path = []\npath += [x]\npath.append(x)", "GC215", (2, 1), None),
    ("path = []\npath.append(x)\npath.append([x, x])", "GC310", (3, 1), (2, 1)),
    ("path = [x]\npath.append([x, x])", "GC310", (2, 1), (1, 9)),
    ("[x*ones(i) for i in range(3)]", "GC310", (1, 1), None),
    ("y = path.append(x)", "GC137", (1, 5), None),
    ("norm(x*i for i in range(3))", "GC120", (1, 6), None),
    ("path = []\npath[0]\npath.append(x)", "GC305", (2, 1), None),
    ("path = []\npath.append(x)\npath[1]", "GC305", (3, 1), None),
    ("[i for i in range(2.5)]", "GC306", (1, 19), None),
    ("[v for v in x]", "GC321", (1, 13), None),
    ("[i*x for i in range(3) if x > 0]", "GC308", (1, 27), None),
    ("[x for i in range(10**9)]", "GC505", (1, 8), None),
    ("[x for i in range(10**4) for j in range(10**4)]", "GC505", (1, 30), None),
    ("sum([x for j in range(10**4)] for i in range(10**9))", "GC505", (1, 35), None),
    ("path = [x]\ny = sum(path)\npath.append(x)\ngrad(y, path)", "GC207", (4, 9), None),
]


@pytest.mark.parametrize(("script", "code", "place", "second"), REFUSED)
def test_refused(script: str, code: str, place: tuple[int, int], second: tuple[int, int] | None) -> None:
    with pytest.raises(GradcliError) as caught:
        lower(parse(script))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, (found.span.line, found.span.column)) == (code, place)
    assert [(span.line, span.column) for span, _ in found.labels] == ([] if second is None else [second])


def test_the_variable_is_free_again_after_an_error() -> None:
    with pytest.raises(GradcliError) as caught:
        lower(parse("[i*[1, 2]*[1, 2, 3] for i in range(3)]\ni + [1, 2] + [1, 2, 3]"))
    assert [one.code for one in caught.value.diagnostics] == ["GC301", "GC301"]


def test_deep_nesting_does_not_recurse() -> None:
    text = "x"
    for _ in range(190):
        text = f"sum({text} for i in range(1))" if len(text) % 2 else f"[{text} for i in range(1)][0]"
    assert evaluate("x = 3.0\n" + text).value == 3


def test_many_clauses_do_not_recurse() -> None:
    clauses = " ".join(f"for i{k} in range(1)" for k in range(1500))
    assert evaluate(f"x = 3.0\nsum(x {clauses})").value == 3


def test_a_list_costs_nodes_in_proportion_to_its_entries() -> None:
    def nodes(n: int) -> int:
        loop = LOOP.format(start="[x]", n=n, item="path[-1]*x + path[i]/len(path)")
        return len(lower(parse("x = 2.0\n" + loop + "sum(path)")).program.nodes())

    assert nodes(2000) < 2.1 * nodes(1000)


def test_a_closed_comprehension_is_a_leaf() -> None:
    assert lower(parse("w = [0.5*i for i in range(3)]\nsum(w**2)")).wrt == ("w",)
    assert lower(parse("w = [0.5*i*k for i in range(3)]\nsum(w**2)")).wrt == ("k",)


ITEMS = st.sampled_from(["x*i", "sin(x) + i", "[x, i]", "x[0]*i", "x**2", "2*i", "sum(x)*ones(2)", "outer(x, x) + i"])


@settings(max_examples=25, deadline=None)
@given(ITEMS, st.integers(0, 4), st.booleans())
def test_all_ways_to_collect_agree(item: str, n: int, vector: bool) -> None:
    if not vector and ("x[0]" in item or "outer" in item):
        return
    if vector and item == "[x, i]":
        return
    leaf = "x = [0.3, 0.7]\n" if vector else "x = 0.3\n"
    rows = ", ".join(f"[{substituted(item, i)}]" for i in range(n))
    scripts = [
        f"[{item} for i in range({n})]",
        LOOP.format(start="[]", n=n, item=item) + "path",
        f"concatenate([{rows}])" if n else "zeros(0)",
    ]
    values = [evaluate(leaf + script).value for script in scripts]
    for other in values[1:]:
        assert np.shape(other) == np.shape(values[0])
        assert np.array_equal(other, values[0])
    if not n:
        return
    parts = [script.rpartition("\n") for script in scripts]
    slopes = [grad(f"{leaf}{above}{end}sum(cos({last}))").gradient for above, end, last in parts]
    for slope in slopes[1:]:
        np.testing.assert_allclose(slope["x"], slopes[0]["x"], rtol=1e-14)


def substituted(item: str, i: int) -> str:
    """An item with a number for the variable of the loop."""
    tree = parse_expression(item)
    pending: list[s.Syntax] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, s.Name) and node.id == "i":
            node.id = str(i)
        pending.extend(s.children(node))
    return unparse(tree)


@all_rows("script", [form[0] for form in FORMS] + ["[(x or y) for v in (a, b) if (c or d) for j in [v]]"])
def test_forms_survive_printing(script: str) -> None:
    tree = parse(script)
    assert s.same(parse(unparse(tree)), tree)


# Scripts whose loops become nodes, with the counts of iterations of these nodes; comprehensions are arrays, or nodes too.
COLLECTED: list[tuple[str, list[int]]] = [
    ("[sin(x*i) + a[1]/(1 + i) for i in range(40)]", []),
    ("[a*i + x for i in range(80, 0, -2)]", []),
    ("sum(x**2*sin(i*x) for i in range(35))", []),
    ("[x*v**2 + a[0] for v in linspace(0, 1, 50)]", []),
    ("v = outer(linspace(0, 1, 40), a)\nmax(sum(row*row)*x for row in v)", []),
    ("def f(u): return [u*i + sin(u) for i in range(36)]\nsum(f(x)*f(a[0]))", []),
    ("def f(u):\n    for j in range(33): u = sin(u)\n    return u\n[f(x*i) for i in range(40)]", [32, 39]),
    ("y = x\npath = []\nfor t in range(40):\n    y = sin(y) + 0.1*a[0]\n    path.append(y*x)\nsum(path**2)", [39]),
    ("y = x\npath = [x]\nfor t in range(40):\n    path.append(y)\n    y = sin(y) + 0.1*a[0]\n    path.append(y*x)\npath", [39]),
    ("y = a\npath = []\nfor t in range(40):\n    y = 0.9*sin(y) + x*a\n    path.append(y)\npath[-1] + path[3, 0]*path[0]", [39]),
    ("path = []\nfor t in range(40): path.append(x + t)\nsum(path)*len(path)", [39]),
    ("path = []\nfor t in range(40): path.append(x*t)\nfor t in range(35): path.append(a[0]*t)\nsum(p**2 for p in path)",
     [34, 39]),
    ("rows = []\nfor t in range(40):\n    row = []\n    for j in range(3): row.append(x*j + t)\n    rows.append(row)\nrows", [39]),
    ("y = x\nall = []\nfor t in range(35):\n    for j in range(33):\n        y = 0.9*y + 0.1*sin(a[0]*j)\n        all.append(y)\nall",
     [32, 34]),
    ("path = []\nfor t in range(40):\n    if t > 1: path.append(t*x)\npath", [37]),
    ("y = x\npath = []\nfor t in range(40):\n    y = detach(y)*0.5 + x\n    path.append(where(y > 1, sqrt(y), y*a[1]))\nsum(path)", [39]),
    ("path = []\ny = 0\nfor t in range(40):\n    y = y + x\n    path.append(y**2)\nloss = sum(sin(path))\ngrad(loss, path)", [39]),
    # an inner loop over arrays in a loop over numbers, of which one carry is the same in all iterations
    ("z = a[0]\npath = []\nfor t in range(1, 40):\n    path.append(detach(x)*z)\n    for j in range(2, 36):\n"
     "        x = log(2 + sin(a[1])) + z/4\n        z = 0.5*a[0] + 0.25*a[1]\n"
     "        z = 0.9*z + sum([detach(z*x) + z/3 for i in range(2)])/40\nx + sum(path)/len(path)", [33, 38]),
    # what is read of a list while it grows, or differs from iteration to iteration, is written out
    ("path = [x]\nfor t in range(40): path.append(path[-1]*0.9)\npath", []),
    ("path = []\nfor t in range(40): path.append(x*len(path))\npath", []),
    ("concatenate([x*ones(i) for i in range(36)])", []),
    ("[grad(sin(v), v) for v in linspace(0, x, 36)]", []),
]  # fmt: skip


@pytest.mark.parametrize(("script", "counts"), COLLECTED)
def test_what_long_loops_collect_is_what_their_iterations_collect(script: str, counts: list[int]) -> None:
    """Values to the bit, gradients and second derivatives: as nodes, and written out."""
    text = f"x = 0.75\na = [0.5, -1.25]\n{script}"
    node, unroll = (lower(parse(text), mode=LoweringMode(loops=how)) for how in ("node", "unroll"))
    readers = readers_by_loop(reachable(node.program.outputs))
    assert sorted(first.params["count"] for first in readers) == sorted(counts)
    assert not readers_by_loop(reachable(unroll.program.outputs))
    values = [np.asarray(run(one.program, one.values)[0]) for one in (node, unroll)]
    np.testing.assert_allclose(values[0], values[1], rtol=2e-16 * values[1].size + 1e-15)
    assert values[0].shape == values[1].shape
    slopes = []
    for one in (node, unroll):
        (output,) = one.program.outputs
        leaves = [leaf.node for leaf in one.program.leaves.values()]
        with building(one.program.builder, reachable([output])) as builder:
            total = builder.call("sum", output, axis=tuple(range(-len(output.shape), 0))) if output.shape else output
            first = derivatives.grad(total, leaves)
            second = derivatives.grad(first[0], leaves)
        slopes.append([np.asarray(x) for x in run([*first, *second], one.values)])
    for mine, other in zip(*slopes, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)


BROKEN = [
    "path = []\nfor t in range(40):\n    path.append(x*ones(2 + (t == 20)))\npath",
    "path = [[x, x]]\nfor t in range(40): path.append(x*t)\npath",
    "path = []\nfor t in range(40):\n    path.append(x)\n    q = path\nq",
    "[x/ones(3)[i] for i in range(40)]",
]


@pytest.mark.parametrize("script", BROKEN)
def test_broken_uses_have_the_same_errors_in_long_loops(script: str) -> None:
    found = []
    for how in ("node", "unroll"):
        with pytest.raises(GradcliError) as caught:
            lower(parse(f"x = 0.75\n{script}"), mode=LoweringMode(loops=how))
        found.append([(one.code, one.message, one.span, one.help) for one in caught.value.diagnostics])
    assert found[0] == found[1]


def test_collecting_many_iterations_makes_few_nodes() -> None:
    text = "x = 0.5\ny = x\npath = []\nfor t in range(10**5):\n    y = y + 0.001*sin(y)\n    path.append(y)\nmean(path)"
    made = lower(parse(text))
    assert len(reachable(made.program.outputs)) < 40
    found = grad("x = 0.5\nmean(exp(-x*i/10**5) for i in range(10**5))")
    np.testing.assert_allclose(found.gradient["x"], (np.exp(-0.5) * 1.5 - 1) / 0.25, rtol=1e-4)
