"""Row 8: value, gradient and Hessian of 300 entries as full matrices: two sparse chains, and a dense one.

Every peer has one compiled function for the three; the polynomial is as little work as a chain can be. A turn is some
calls, as Newton's method makes them: the first one after a rest measures how a sleeping processor wakes up (it takes five
to ten times as long, for whoever works for less than a millisecond).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.driver import Row, raced, rows

CHAIN = "sum(exp(-x[1:]*x[:-1])*sin(x[1:] + x[:-1]) + log(1 + x[1:]**2)*tanh(x[:-1]))"
POLYNOMIAL = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
DENSE = "log(sum(exp(x[1:]*x[:-1]))) + sum(x)**2"
CALLS = {"chain": 10, "polynomial": 200, "dense": 20}  # in a turn
Found = tuple[Callable[[], Any], Any]


def often(work: Callable[[], Any], kind: str) -> Callable[[], None]:
    """A turn."""

    def turn() -> None:
        for _ in range(CALLS[kind]):
            work()

    return turn


def data(size: int) -> Any:
    return np.random.default_rng(1).uniform(0.5, 1.5, size)


def summed(matrix: Any) -> list[float]:
    """The trace and a weighted sum of all entries."""
    found = np.asarray(matrix)
    weights = np.cos(np.arange(found.size)).reshape(found.shape)
    return [float(np.trace(found)), float((weights * found).sum())]


def ours(script: str, kind: str, size: int) -> Found:
    import gradcli

    f, x = gradcli.compile(script), data(size)
    return often(lambda: f.hessian(x=x), kind), summed(f.hessian(x=x).hessian["x"]["x"])


def ours_chain(size: int) -> Found:
    return ours(CHAIN, "chain", size)


def ours_polynomial(size: int) -> Found:
    return ours(POLYNOMIAL, "polynomial", size)


def ours_dense(size: int) -> Found:
    return ours(DENSE, "dense", size)


def jax(function: Callable[[Any], Callable[[Any], Any]], kind: str, size: int) -> Found:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    f = function(jnp)
    three = jax.jit(lambda x: (*jax.value_and_grad(f)(x), jax.hessian(f)(x)))
    x = data(size)
    return often(lambda: jax.block_until_ready(three(x)), kind), summed(three(x)[2])


def torch(function: Callable[[Any], Callable[[Any], Any]], kind: str, size: int) -> Found:
    import torch

    f = function(torch)
    x = torch.from_numpy(data(size))
    second = torch.func.hessian(f)

    def work() -> Any:
        slope, value = torch.func.grad_and_value(f)(x)
        return value, slope, second(x)

    return often(work, kind), summed(work()[2].numpy())


def chain(xp: Any) -> Callable[[Any], Any]:
    return lambda x: xp.sum(xp.exp(-x[1:] * x[:-1]) * xp.sin(x[1:] + x[:-1]) + xp.log(1 + x[1:] ** 2) * xp.tanh(x[:-1]))


def polynomial(xp: Any) -> Callable[[Any], Any]:
    return lambda x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def coupled(xp: Any) -> Callable[[Any], Any]:
    return lambda x: xp.log(xp.sum(xp.exp(x[1:] * x[:-1]))) + xp.sum(x) ** 2


def jax_chain(size: int) -> Found:
    return jax(chain, "chain", size)


def jax_polynomial(size: int) -> Found:
    return jax(polynomial, "polynomial", size)


def jax_dense(size: int) -> Found:
    return jax(coupled, "dense", size)


def torch_chain(size: int) -> Found:
    return torch(chain, "chain", size)


def torch_polynomial(size: int) -> Found:
    return torch(polynomial, "polynomial", size)


def torch_dense(size: int) -> Found:
    return torch(coupled, "dense", size)


def run(rounds: int, small: bool) -> list[Row]:
    """Sparse at most a fifth of jax, dense at most 2.5 times jax."""
    size = 40 if small else 300
    found: list[Row] = []
    for kind, limit in (("chain", 0.2), ("polynomial", 0.2), ("dense", 2.5)):
        names = {"ours": f"ours_{kind}", "jax.jit": f"jax_{kind}", "torch": f"torch_{kind}"}
        turns = raced({name: f"{__name__}:{place}" for name, place in names.items()}, rounds, size)
        times = {name: seconds / CALLS[kind] for name, seconds in turns.items()}
        found += rows(f"8 Hessian, {kind}", times, {"jax.jit": limit, "torch": limit})
    return found
