"""Row 3: value and gradient at millions of points, float64: by NumPy alone, and with the extra `fast`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.driver import Row, raced, row, rows
from tests.benchmarks.scalar import SCRIPT

Found = tuple[Callable[[], None], Any]


def data(count: int) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return random.uniform(0.5, 2.0, count), random.uniform(0.5, 2.0, count)


def summed(*parts: Any) -> list[float]:
    return [float(np.asarray(part).sum()) / len(part) for part in parts]


def ours(count: int) -> Found:
    os.environ["GRADCLI_FAST"] = "0"
    return fast(count)


def with_numba(count: int) -> Found:
    import numba

    assert numba.__version__
    return fast(count)


def fast(count: int) -> Found:
    import gradcli

    f = gradcli.compile(SCRIPT)
    x, y = data(count)
    value, slopes = f.at_points(x=x, y=y)
    return lambda: f.at_points(x=x, y=y), summed(value, slopes["x"], slopes["y"])


def naive(count: int) -> Found:
    x, y = data(count)

    def f() -> tuple[Any, Any, Any]:
        angle = x * y
        fall = np.exp(-x)
        wave = np.sin(angle) * fall
        slope = np.cos(angle) * fall
        inside = 1 + y * y
        part = np.log(inside)
        return wave + part * x, y * slope - wave + part, x * slope + 2 * y * x / inside

    return f, summed(*f())


def jax(count: int) -> Found:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    one = jax.value_and_grad(lambda x, y: jnp.sin(x * y) * jnp.exp(-x) + jnp.log(1 + y**2) * x, argnums=(0, 1))
    both = jax.jit(jax.vmap(one))
    x, y = data(count)

    def f() -> Any:
        return jax.block_until_ready(both(x, y))

    value, slopes = f()
    return f, summed(value, *slopes)


def torch(count: int) -> Found:
    import torch

    x, y = (torch.from_numpy(part).requires_grad_() for part in data(count))

    def f() -> Any:
        value = torch.sin(x * y) * torch.exp(-x) + torch.log(1 + y**2) * x
        return (value, *torch.autograd.grad(value.sum(), (x, y)))

    return f, summed(*(part.detach().numpy() for part in f()))


def torch_compiled(count: int) -> Found:
    import torch

    x, y = (torch.from_numpy(part).requires_grad_() for part in data(count))
    forward = torch.compile(lambda x, y: torch.sin(x * y) * torch.exp(-x) + torch.log(1 + y**2) * x)

    def f() -> Any:
        value = forward(x, y)
        return (value, *torch.autograd.grad(value.sum(), (x, y)))

    return f, summed(*(part.detach().numpy() for part in f()))


def run(rounds: int, small: bool) -> list[Row]:
    """At most 0.4 times plain NumPy, 0.75 times jax, below torch; with numba at most 0.7 times torch.compile."""
    names = {"ours": "ours", "plain NumPy": "naive", "jax.jit": "jax", "torch": "torch", "numba": "with_numba"}
    if not small and shutil.which("g++"):
        names["torch.compile"] = "torch_compiled"
    places = {name: f"{__name__}:{place}" for name, place in names.items()}
    times = raced(places, rounds, 1000 if small else 4_000_000)
    found = rows("3 many points", times, {"plain NumPy": 0.4, "jax.jit": 0.75, "torch": 1.0})
    if "numba" in times:
        for peer, limit in {"plain NumPy": 0.4, "torch.compile": 0.7}.items():
            if peer in times:
                found.append(row("3 with the extra fast", times["numba"], times[peer], limit, peer))
    return found
