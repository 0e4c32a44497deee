"""Depth: 100,000 operations in a row are parsed, differentiated, evaluated, printed and dropped, without recursion.

Each stage has a bound of time, generous enough for a slow machine and far below what a quadratic walk would take, and the
whole has a bound of memory. The growth of higher derivatives is bounded by numbers of nodes.
"""

from __future__ import annotations

import gc
import math
import resource
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.flat import flatten, restore
from gradcli.graph.node import reachable
from gradcli.graph.node_text import formulas, step_names
from gradcli.language.limits import Limits
from gradcli.language.parser import parse
from gradcli.language.unparse import unparse
from gradcli.lowering import lower
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from tests.support.graph_invariants import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTH = 100_000
LARGE = Limits(text=64 * 2**20, nodes=5_000_000, nesting=10**6)
SECONDS = 25.0  # for one stage; each takes 0.1 to 3 on an idle core
MEGABYTES = 1500  # for one chain with its gradient


def iterated(depth: int, x: float = 0.5) -> tuple[float, float]:
    """sin applied so many times, and its derivative."""
    slope = 1.0
    for _ in range(depth):
        slope *= math.cos(x)
        x = math.sin(x)
    return x, slope


def loop(depth: int, step: str) -> str:
    return f"y = x\nfor i in range({depth}):\n    y = {step}\ny"


# A script of so many operations, and its value and slope at 0.5.
CHAINS: dict[str, Callable[[int], tuple[str, tuple[float, float] | None]]] = {
    "sum": lambda n: ("1" + "+x" * n, (1 + n * 0.5, float(n))),
    "nested calls": lambda n: ("sin(" * n + "x" + ")" * n, iterated(n)),
    "loop": lambda n: (loop(n, "sin(y)"), iterated(n)),
    "product": lambda n: ("x" + "*x" * n, (0.0, 0.0)),
    "signs": lambda n: ("-" * n + "x", (0.5, 1.0)),
    "powers": lambda n: ("x" + "**1" * n, (0.5, 1.0)),
    "brackets": lambda n: ("(" * n + "x" + ")" * n, (0.5, 1.0)),
    "statements": lambda n: ("y = x\n" + "y = y + 1\n" * n + "y", (n + 0.5, 1.0)),
    "quotients": lambda n: ("x" + "/2" * n, (0.0, 0.0)),
    "branches": lambda n: (loop(n // 10, "where(y > 0, sin(y), y)"), None),
}
FULL = ("sum",)  # at full depth always; the others with `-m deep`


@contextmanager
def stage(name: str, times: dict[str, float]) -> Iterator[None]:
    start = time.process_time()
    yield
    times[name] = time.process_time() - start
    assert times[name] < SECONDS, f"{name} took {times[name]:.1f} s"


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *((name, DEPTH if name in FULL else DEPTH // 20) for name in CHAINS),
        *(pytest.param(name, DEPTH, marks=pytest.mark.deep) for name in CHAINS if name not in FULL),
    ],
)
def test_chain(name: str, depth: int) -> None:
    """Every stage of a long chain, in both evaluators."""
    text, expected = CHAINS[name](depth)
    before = megabytes()
    times: dict[str, float] = {}
    with stage("parse", times):
        script = parse(text, LARGE)
    with stage("lower", times):
        lowered = lower(script, at={"x": 0.5}, limits=LARGE)
    output = lowered.program.outputs[0]
    target = lowered.program.leaves["x"].node
    with stage("gradient", times):
        gradient = derivatives.grad(output, [target])[0]
    with stage("forward", times):
        forward = derivatives.nth(output, target, 1)[0]
    with stage("evaluate", times):
        value, slope, moved = Tape([output, gradient, forward]).run({"x": 0.5})
    with stage("evaluate by NumPy", times):
        batch = Tape([output, gradient]).run({"x": np.array([0.5, 0.5])}, backend="numpy")
    if expected is not None:
        assert value == pytest.approx(expected[0], rel=1e-9, abs=1e-300)
        assert slope == pytest.approx(expected[1], rel=1e-9, abs=1e-300)
    assert moved == pytest.approx(slope, rel=1e-12, abs=1e-300)
    assert np.allclose(batch[0], value, rtol=1e-12)
    assert np.allclose(np.broadcast_to(batch[1], 2), slope, rtol=1e-12)
    with stage("print", times):
        echo = unparse(script)
        order = reachable([output])
        listing = formulas(order, step_names({node: i for i, node in enumerate(order)}))
        assert len(listing) == len(order)
        assert max(map(len, listing.values())) < 500
    with stage("parse the echo", times):
        assert len(parse(echo, LARGE).statements) == len(script.statements)
    with stage("flatten and restore", times):
        flat = flatten(lowered.program)
        again = restore(flat, catalogue())
        assert len(again.nodes()) == len(order)
        del flat, again
    if len(order) <= 20_000:
        verify(output)
    used = megabytes() - before
    del echo, listing, order
    with stage("destroy", times):
        del script, lowered, output, target, gradient, forward
        gc.collect()
    assert used < MEGABYTES, f"{used:.0f} MB"
    print(
        f"\n{name}: " + ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in times.items()) + f", {used:.0f} MB"
    )


def test_library_call_on_a_chain() -> None:
    """One library call does it all, and with the default limits says which one is in the way."""
    found = calculator.grad("1" + "+x" * DEPTH, at={"x": 0.5}, limits=LARGE)
    assert found.value == 1 + DEPTH * 0.5
    assert found.gradient == {"x": float(DEPTH)}
    for text in (
        "1" + "+x" * DEPTH,
        "sin(" * 1000 + "x" + ")" * 1000,
        "y = x\nfor i in range(10**9):\n  y = sin(y)\ny",
    ):
        with pytest.raises(GradcliError) as problem:
            calculator.grad(text, at={"x": 0.5})
        assert problem.value.diagnostics[0].code.startswith("GC5"), problem.value


def test_trace_of_a_chain() -> None:
    """A trace of 20,000 steps in both directions."""
    start = time.process_time()
    found = calculator.trace("x" + "+x" * 20_000, at={"x": 0.5}, limits=LARGE)
    assert len(found.forward) == 20_001
    assert time.process_time() - start < 2 * SECONDS


# --- growth of higher derivatives ------------------------------------------------------------------------------

BOUNDS = (14, 29, 61, 115)


def test_growth_of_derivatives() -> None:
    """The n-th derivative of sin(x*log(x))/x is a graph of at most 14, 29, 61, 115 nodes; the numbers are printed."""
    lowered = lower(parse("sin(x*log(x))/x"), at={"x": 2.0})
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    orders = derivatives.nth(output, target, 6)
    counts = [len(reachable([node])) for node in orders]
    print(f"\nnodes of the derivatives of sin(x*log(x))/x: {counts}")
    assert all(count <= bound for count, bound in zip(counts, BOUNDS, strict=False)), counts
    assert all(later < 2.5 * earlier for earlier, later in zip(counts, counts[1:], strict=False)), counts
    verify(orders)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("x**10", 4),
        ("exp(2*x)", 6),
        ("sin(x)", 4),
        ("1/x", 5),
        ("log(x)", 4),
        ("x*exp(x)", 8),
        ("tanh(exp(sin(x**2)))*log(1 + x**2)", 60),
    ],
)
def test_growth_of_gradients(text: str, most: int) -> None:
    """A first derivative is a small graph: value and derivative share their nodes."""
    lowered = lower(parse(text), at={"x": 2.0})
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    count = len(reachable(derivatives.grad(output, [target])))
    print(f"\n{text}: {count} nodes in the derivative")
    assert count <= most


def test_hessian_vector_products_agree_in_size() -> None:
    """Forward over reverse of a network stays within a constant of the gradient."""
    text = "h = x\nfor i in range(50):\n    h = tanh(W @ h + b)\nsum(h**2)"
    at = {"x": [0.1, 0.2], "W": [[0.5, -0.2], [0.1, 0.3]], "b": [0.1, -0.1]}
    lowered = lower(parse(text), at=at)
    output, target = lowered.program.outputs[0], lowered.program.leaves["W"].node
    gradient = derivatives.grad(output, [target])[0]
    product = derivatives.hvp(output, target, target)
    first, second = len(reachable([gradient])), len(reachable([product]))
    print(f"\nnodes: value {len(reachable([output]))}, gradient {first}, Hessian-vector product {second}")
    assert first < 4 * len(reachable([output]))
    assert second < 4 * first
