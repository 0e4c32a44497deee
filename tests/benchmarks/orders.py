"""Row 10: derivatives of a nested composite: orders 1 to 8 and how they grow, and the eighth one beside peers.

The first lines are ours alone: making the derivatives of orders 1 to n, and the nodes that they have, against forward
mode n times, which is what a library without series does. The eighth is then computed at a point, over and over, and
once from nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.driver import Row, interleaved, raced, row, rows

FORMULA = "tanh(exp(sin(x**2)))*log(1 + x**2)"
X = 0.7
HIGHEST = 8
BOTH = 3.0  # up to order 4, where a series is as large as forward mode, and both are made
Found = tuple[Callable[[], Any], Any]


def ours(order: int) -> Found:
    import gradcli

    f = gradcli.compile(f"y = {FORMULA}\ngrad(y, x, {order})")
    for _ in range(3):
        f(x=X)
    return lambda: f(x=X), f(x=X)


def ours_once(order: int) -> Found:
    import gradcli

    def work() -> Any:
        return gradcli.grad(FORMULA, at={"x": X}, order=order).derivatives

    return work, work()["x"][-1]


def series(order: int) -> Callable[[float], float]:
    """The last derivative by jax's own Taylor mode: gradients of gradients do not compile in minutes."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.jet import jet

    jax.config.update("jax_enable_x64", True)

    def f(x: Any) -> Any:
        return jnp.tanh(jnp.exp(jnp.sin(x**2))) * jnp.log(1 + x**2)

    along = [1.0] + [0.0] * (order - 1)
    return lambda x: jet(f, (x,), (along,))[1][-1]


def jax(order: int) -> Found:
    import jax

    f = jax.jit(series(order))
    return lambda: float(f(X)), float(f(X))


def jax_once(order: int) -> Found:
    f = series(order)
    return lambda: float(f(X)), float(f(X))


def torch(order: int) -> Found:
    import torch

    torch.set_num_threads(1)

    def work() -> float:
        x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
        y = torch.tanh(torch.exp(torch.sin(x**2))) * torch.log(1 + x**2)
        for _ in range(order):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
        return y.item()

    return work, work()


def made(order: int, series: bool) -> tuple[float, int]:
    """The seconds in which the derivatives of orders 1 to n are made, and their nodes."""
    from gradcli.calculator.questions import prepare
    from gradcli.graph.node import reachable
    from gradcli.transforms import derivatives

    lowered = prepare(FORMULA, {"x": X})
    output, target = lowered.program.outputs[0], lowered.program.leaves["x"].node
    start = time.perf_counter()
    found = (derivatives.nth if series else repeated)(output, target, order)
    return time.perf_counter() - start, len(reachable(found))


def repeated(output: Any, target: Any, order: int) -> list[Any]:
    """Forward mode n times: each sweep goes over the whole graph of the order before, as a sweep does."""
    from gradcli.graph.building import building
    from gradcli.graph.node import reachable
    from gradcli.transforms import derivatives

    found: list[Any] = []
    with building(output.builder, reachable([output, target])) as builder:
        one = builder.constant(1, target.shape)
        for _ in range(order):
            output = derivatives.jvp([output], [target], [one])[0]
            found.append(output)
    return found


def growth(rounds: int, highest: int) -> list[Row]:
    """A line for each order."""
    found = []
    for order in range(1, highest + 1):
        times = interleaved(
            {"ours": lambda n=order: made(n, True)[0], "forward": lambda n=order: made(n, False)[0]}, rounds
        )
        name = f"10 orders 1-{order}, {made(order, True)[1]} nodes"
        against = f"forward, {made(order, False)[1]:,} nodes"
        found.append(row(name, times["ours"], times["forward"], 1.0 if order > 4 else BOTH, against))
    return found


def run(rounds: int, small: bool) -> list[Row]:
    """A hundredth of gradients of gradients, which double with every order, a tenth at once; no slower than jax's jet."""
    order = 4 if small else HIGHEST
    lines = growth(rounds, order)
    places = {"ours": "ours", "torch": "torch", "jax.jit": "jax"}
    times = raced({name: f"{__name__}:{place}" for name, place in places.items()}, rounds, order, 1e-8)
    found = rows(f"10 order {order}", times, {"torch": 0.01, "jax.jit": 1.0})
    places = {"ours": "ours_once", "torch": "torch", "jax": "jax_once"}
    times = raced({name: f"{__name__}:{place}" for name, place in places.items()}, min(rounds, 3), order, 1e-8)
    return lines + found + rows(f"10 order {order}, once", times, {"torch": 0.1, "jax": 1.0})
